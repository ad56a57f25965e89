#pragma once
#include "runtime.h"

mr_u64 page();
void mr_catch_faults(double timeout_s);  // from here to mr_release_faults a fault of the kernel becomes a report
void mr_release_faults();
