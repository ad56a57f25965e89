// What a compiled kernel and the runtime library say to each other. Plain C, so that each can come from its own compile.
#pragma once

typedef __UINT8_TYPE__ mr_u8;
typedef __UINT16_TYPE__ mr_u16;
typedef __UINT32_TYPE__ mr_u32;
typedef __UINT64_TYPE__ mr_u64;

// One thread's place in the grid, under the names of Metal's attributes.
struct mr_attributes {
    mr_u32 dispatch_threads_per_threadgroup[3];
    mr_u32 grid_origin[3];
    mr_u32 grid_size[3];
    mr_u32 thread_position_in_grid[3];
    mr_u32 thread_position_in_threadgroup[3];
    mr_u32 threadgroup_position_in_grid[3];
    mr_u32 threadgroups_per_grid[3];
    mr_u32 threads_per_grid[3];
    mr_u32 threads_per_threadgroup[3];
    mr_u32 dispatch_quadgroups_per_threadgroup;
    mr_u32 dispatch_simdgroups_per_threadgroup;
    mr_u32 quadgroup_index_in_threadgroup;
    mr_u32 quadgroups_per_threadgroup;
    mr_u32 simdgroup_index_in_threadgroup;
    mr_u32 simdgroups_per_threadgroup;
    mr_u32 thread_execution_width;
    mr_u32 thread_index_in_quadgroup;
    mr_u32 thread_index_in_simdgroup;
    mr_u32 thread_index_in_threadgroup;
    mr_u32 threads_per_simdgroup;
};

enum { MR_SIMD_WIDTH = 32, MR_MEM_DEVICE = 1, MR_MEM_THREADGROUP = 2, MR_READS = 1, MR_WRITES = 2 };

// Runs once every live lane has arrived: operands[lane] is null for a lane that has returned or never existed.
typedef void (*mr_combine)(void* const* operands);

extern "C" {
// The storage of a threadgroup variable: the same address for every thread of the threadgroup.
void* mr_threadgroup_variable(mr_u64 num_bytes, mr_u64 alignment, int site, const char* name, int line, const char* file);
void mr_barrier(int memory_flags, int line, const char* file);
void mr_simd(void* operand, mr_combine combine, const char* operation, int line, const char* file);
void mr_simd_barrier(int memory_flags, int line, const char* file);
// A lane asked for the value of a lane that has returned or never existed. Does not return.
void mr_absent_lane(int lane, int source_lane);
// The check mode's view of an atomic access; does nothing without the check mode.
void mr_atomic_access(const volatile void* address, int num_bytes, int reads_and_writes, int line, const char* file);
}
