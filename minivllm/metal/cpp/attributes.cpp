// Where a thread is: the values of Metal's thread attributes. Threadgroups at the edge of the grid are smaller.
#include "runtime.h"

#include <string.h>

static mr_u32 min_of(mr_u32 a, mr_u32 b) { return a < b ? a : b; }

void mr_attributes_of(mr_u32 group, mr_u32 thread, mr_attributes* result) {
    mr_attributes& a = *result;
    memset(&a, 0, sizeof a);
    mr_u32 number = group - 1, dispatched = 1, actual = 1;
    for (int d = 0; d < 3; d++) {
        a.threads_per_grid[d] = a.grid_size[d] = mr_now.grid[d];
        a.threadgroups_per_grid[d] = mr_num_groups[d];
        a.threadgroup_position_in_grid[d] = number % mr_num_groups[d];
        number /= mr_num_groups[d];
        mr_u32 begin = a.threadgroup_position_in_grid[d] * mr_now.threadgroup[d];
        a.dispatch_threads_per_threadgroup[d] = mr_now.threadgroup[d];
        a.threads_per_threadgroup[d] = min_of(mr_now.threadgroup[d], mr_now.grid[d] - begin);  // fewer at the edge
        dispatched *= mr_now.threadgroup[d];
        actual *= a.threads_per_threadgroup[d];
    }
    mr_u32 rest = thread;
    for (int d = 0; d < 3; d++) {
        a.thread_position_in_threadgroup[d] = rest % a.threads_per_threadgroup[d];
        rest /= a.threads_per_threadgroup[d];
        a.thread_position_in_grid[d] =
            a.threadgroup_position_in_grid[d] * mr_now.threadgroup[d] + a.thread_position_in_threadgroup[d];
    }
    a.dispatch_quadgroups_per_threadgroup = (dispatched + 3) / 4;
    a.dispatch_simdgroups_per_threadgroup = (dispatched + MR_SIMD_WIDTH - 1) / MR_SIMD_WIDTH;
    a.quadgroups_per_threadgroup = (actual + 3) / 4;
    a.simdgroups_per_threadgroup = (actual + MR_SIMD_WIDTH - 1) / MR_SIMD_WIDTH;
    a.quadgroup_index_in_threadgroup = thread / 4;
    a.simdgroup_index_in_threadgroup = thread / MR_SIMD_WIDTH;
    a.thread_index_in_quadgroup = thread % 4;
    a.thread_index_in_simdgroup = thread % MR_SIMD_WIDTH;
    a.thread_index_in_threadgroup = thread;
    a.thread_execution_width = a.threads_per_simdgroup = MR_SIMD_WIDTH;
}
