// CUDA's spelling of the words of Metal that paged_attention.metal uses: with this before it, the same text is a CUDA
// kernel. A SIMD group is a warp, a threadgroup a block, threadgroup memory shared memory; lanes add up by exchanging
// values in five rounds, 16 lanes apart, then 8, 4, 2 and 1.

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#define threadgroup __shared__
#define threadgroup_barrier(flags) __syncthreads()
#define threadgroup_position_in_grid blockIdx
#define threadgroups_per_grid gridDim
#define thread_index_in_threadgroup int(threadIdx.x)
#define simdgroup_index_in_threadgroup int(threadIdx.x / 32)
#define thread_index_in_simdgroup int(threadIdx.x % 32)

inline __device__ float simd_sum(float x) {
    for (int apart = 16; apart > 0; apart /= 2) {
        x += __shfl_xor_sync(0xffffffff, x, apart);
    }
    return x;
}

inline __device__ float simd_max(float x) {
    for (int apart = 16; apart > 0; apart /= 2) {
        x = max(x, __shfl_xor_sync(0xffffffff, x, apart));
    }
    return x;
}
