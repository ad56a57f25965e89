// What the parts of the runtime library share: the launch in progress and how it fails.
#pragma once
#ifdef __APPLE__  // before any system header: contexts that can be made
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#endif
#include <setjmp.h>

#include "interface.h"

enum mr_kind {
    MR_OK,
    MR_OUT_OF_RANGE,         // an address beside a buffer
    MR_WRITE_TO_INPUT,
    MR_WILD_ADDRESS,         // an address that belongs to no buffer
    MR_STACK_OVERFLOW,
    MR_BARRIER_RETURNED,     // some threads wait at a barrier that others never reach
    MR_BARRIER_DIFFERENT,    // threads wait at two different barriers
    MR_SIMD_DIVERGED,        // a lane waits at a SIMD operation, another one elsewhere
    MR_ABSENT_LANE,
    MR_THREADGROUP_MEMORY,   // more than a threadgroup has
    MR_RACE,
    MR_UNINITIALISED,
    MR_FIXED_ARRAY_INDEX,
    MR_DIVISION_BY_ZERO,
    MR_ILLEGAL_INSTRUCTION,
    MR_INTERRUPTED,
    MR_TIMEOUT,
    MR_NO_MEMORY,
};

// An "instruction" with MR_LINE set is a line of the source, or of the header.
enum : mr_u32 { MR_LINE = 1u << 31, MR_LINE_OF_HEADER = 1u << 30 };
enum { MR_MAX_THREADS = 1024, MR_MAX_BUFFERS = 128, MR_ARENA = -1, MR_NOWHERE = -2 };

// A place in the kernel: a line where the compiler passed one, else an instruction's offset in the kernel's library.
struct mr_place_info {
    mr_u64 instruction;
    const char* file;
    const char* operation;
    int line;
    int is_write;
    mr_attributes thread;
};

struct mr_report {
    int kind;
    int buffer;          // index, MR_ARENA or MR_NOWHERE
    long long offset;    // bytes from the start of the buffer, or of the threadgroup variable `name`
    int num_bytes;
    int has_other;
    long long first, second;  // two numbers that depend on the kind
    mr_place_info here, other;
    char name[128];
};

struct mr_launch {
    void (*entry)(void* const* buffers, const mr_attributes*);
    void* const* buffers;
    mr_u32 grid[3], threadgroup[3];
    int order;            // 0 forward, 1 reverse, 2 random
    int is_checked;
    int allows_stray_reads;
    int num_arena_bytes;
    mr_u64 seed;
    double timeout_s;
};

// An access as the shadow memory keeps it.
struct mr_access {
    mr_u32 group;         // number of the threadgroup, from 1; 0: never
    mr_u16 thread;
    mr_u32 epoch;         // barriers that ordered this memory before, of the threadgroup
    mr_u32 simd_epoch;    // the same of the SIMD group
    mr_u32 instruction;
};
struct mr_cell {
    mr_access write, reads[2], atomics[2];
};

struct mr_buffer {
    mr_u8 *window, *begin, *end;
    mr_u32 itemsize;
    int is_output, is_initialised;
    mr_cell* cells;       // one for each item of an output, in the check mode
};

struct mr_memory_epochs {
    mr_u32 threadgroup, simd[MR_MAX_THREADS / MR_SIMD_WIDTH];
};

extern mr_launch mr_now;
extern mr_u32 mr_num_groups[3];
extern mr_report mr_result;
extern mr_buffer mr_buffers[MR_MAX_BUFFERS];
extern int mr_num_buffers;
extern mr_u8* mr_arena;
extern mr_u8 *mr_stacks_begin, *mr_stacks_end;
extern mr_memory_epochs mr_device_epochs, mr_arena_epochs;
extern volatile int mr_is_uninterruptible;

int mr_buffer_at(const void* address);                 // index, or MR_NOWHERE
mr_u32 mr_current_thread();
mr_u32 mr_current_group();                             // from 1
const mr_attributes* mr_attributes_now();
void mr_attributes_of(mr_u32 group, mr_u32 thread, mr_attributes* result);
mr_u64 mr_instruction(const void* return_address);     // its offset in the kernel's library
void mr_locate_arena(const void* address, mr_report* report);
void mr_forget_variables();                            // those of the last threadgroup
void mr_start_checks();
[[noreturn]] void mr_fail(mr_kind kind);               // the rest of mr_result is filled in
[[noreturn]] void mr_fail_at(mr_kind kind, const void* address, int num_bytes, int is_write, mr_u64 instruction);
