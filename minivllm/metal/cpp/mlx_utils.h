// What MLX puts in front of every kernel of mx.fast.metal_kernel: the names of its utils.h that a kernel uses.
#pragma once
#include "atomics.h"

template <typename U> struct Limits {
    static constexpr U max = metal::is_same_v<U, bool> ? U(1) : U(-1) < U(0) ? U((metal::mask_of(U(-1))) >> 1) : U(-1);
    static constexpr U min = U(-1) < U(0) ? U(-max - 1) : U(0);
    static constexpr U finite_max = max;
    static constexpr U finite_min = min;
};
#define MR_FLOAT_LIMITS(T, largest)                                    \
    template <> struct Limits<T> {                                     \
        static constexpr T max = T(INFINITY);                          \
        static constexpr T min = T(-INFINITY);                         \
        static constexpr T finite_max = T(largest);                    \
        static constexpr T finite_min = T(-largest);                   \
    };
MR_FLOAT_LIMITS(float, FLT_MAX)
MR_FLOAT_LIMITS(half, 65504.0f)
MR_FLOAT_LIMITS(bfloat, 3.3895314e38f)
#undef MR_FLOAT_LIMITS
template <> struct Limits<bool> {
    static constexpr bool max = true, min = false, finite_max = true, finite_min = false;
};

// The position in a strided array of its element number `elem` in row-major order.
template <typename IdxT = int64_t, typename StrideT>
inline IdxT elem_to_loc(IdxT elem, const int* shape, const StrideT* strides, int ndim) {
    IdxT loc = 0;
    for (int i = ndim - 1; i >= 0 && elem > 0; --i) {
        loc += (elem % shape[i]) * IdxT(strides[i]);
        elem /= shape[i];
    }
    return loc;
}
template <typename IdxT = int64_t, typename StrideT>
inline IdxT elem_to_loc(metal::uint3 elem, const int* shape, const StrideT* strides, int ndim) {
    IdxT loc = elem.x * IdxT(strides[ndim - 1]) + elem.y * IdxT(strides[ndim - 2]);
    for (int d = ndim - 3; d >= 0; --d) {
        loc += (elem.z % shape[d]) * IdxT(strides[d]);
        elem.z /= shape[d];
    }
    return loc;
}
template <typename IdxT = int64_t, typename StrideT> inline IdxT elem_to_loc_1(uint elem, const StrideT& stride) {
    return elem * IdxT(stride);
}
template <typename IdxT = int64_t, typename StrideT>
inline IdxT elem_to_loc_2(metal::uint2 elem, const StrideT* strides) {
    return elem.x * IdxT(strides[1]) + elem.y * IdxT(strides[0]);
}
template <typename IdxT = int64_t, typename StrideT>
inline IdxT elem_to_loc_3(metal::uint3 elem, const StrideT* strides) {
    return elem.x * IdxT(strides[2]) + elem.y * IdxT(strides[1]) + elem.z * IdxT(strides[0]);
}

template <typename T, typename U> inline T ceildiv(T N, U M) { return (N + M - 1) / M; }
inline float log1p(float x) { return __builtin_log1pf(x); }
inline bfloat log1p(bfloat x) { return bfloat(__builtin_log1pf(x.widened())); }
