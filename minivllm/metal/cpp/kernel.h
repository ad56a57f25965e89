// In front of every kernel: Metal's language as seen by a C++ compiler for the CPU.
// Address spaces are checked by another compile (address_spaces.py); here their words mean nothing.
#pragma once
#include "mlx_utils.h"

using namespace metal;

#define METAL_FUNC inline
#define device
#define constant
#define thread
#define threadgroup
