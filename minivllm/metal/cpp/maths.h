// Metal's common, integer, relational and geometric functions: single precision from libm, half and bfloat through it.
#pragma once
#include "vectors.h"

namespace metal {

// The same function for vectors and for swizzles of them, component by component.
#define MR_LIFT_1(name)                                                                              \
    template <typename T, int N> constexpr auto name(vec<T, N> a) {                                  \
        vec<decltype(name(a.data[0])), N> result{};                                                  \
        for (int i = 0; i < N; i++) result.data[i] = name(a.data[i]);                                \
        return result;                                                                               \
    }                                                                                                \
    template <typename T, int N, int... I> constexpr auto name(const swizzle<T, N, I...>& a) { return name(a.value()); }
#define MR_LIFT_2(name)                                                                              \
    template <typename T, int N> constexpr auto name(vec<T, N> a, vec<T, N> b) {                     \
        vec<decltype(name(a.data[0], b.data[0])), N> result{};                                       \
        for (int i = 0; i < N; i++) result.data[i] = name(a.data[i], b.data[i]);                     \
        return result;                                                                               \
    }                                                                                                \
    template <typename T, int N> constexpr auto name(vec<T, N> a, T b) { return name(a, vec<T, N>(b)); }
#define MR_LIFT_3(name)                                                                              \
    template <typename T, int N> constexpr auto name(vec<T, N> a, vec<T, N> b, vec<T, N> c) {        \
        for (int i = 0; i < N; i++) a.data[i] = name(a.data[i], b.data[i], c.data[i]);               \
        return a;                                                                                    \
    }                                                                                                \
    template <typename T, int N> constexpr auto name(vec<T, N> a, T b, T c) {                        \
        return name(a, vec<T, N>(b), vec<T, N>(c));                                                  \
    }

#define MR_FLOATS_1(name, expression)                                                                \
    inline float name(float a) { return expression; }                                                \
    inline half name(half a) { return static_cast<half>(name(static_cast<float>(a))); }              \
    inline bfloat name(bfloat a) { return bfloat(name(a.widened())); }                               \
    MR_LIFT_1(name)
MR_FLOATS_1(acos, __builtin_acosf(a))
MR_FLOATS_1(acosh, __builtin_acoshf(a))
MR_FLOATS_1(asin, __builtin_asinf(a))
MR_FLOATS_1(asinh, __builtin_asinhf(a))
MR_FLOATS_1(atan, __builtin_atanf(a))
MR_FLOATS_1(atanh, __builtin_atanhf(a))
MR_FLOATS_1(ceil, __builtin_ceilf(a))
MR_FLOATS_1(cos, __builtin_cosf(a))
MR_FLOATS_1(cosh, __builtin_coshf(a))
MR_FLOATS_1(cospi, __builtin_cosf(a * M_PI_F))
MR_FLOATS_1(exp, __builtin_expf(a))
MR_FLOATS_1(exp2, __builtin_exp2f(a))
MR_FLOATS_1(exp10, __builtin_powf(10.0f, a))
MR_FLOATS_1(fabs, __builtin_fabsf(a))
MR_FLOATS_1(floor, __builtin_floorf(a))
MR_FLOATS_1(fract, __builtin_fminf(a - __builtin_floorf(a), 0x1.fffffep-1f))
MR_FLOATS_1(log, __builtin_logf(a))
MR_FLOATS_1(log2, __builtin_log2f(a))
MR_FLOATS_1(log10, __builtin_log10f(a))
MR_FLOATS_1(rint, __builtin_rintf(a))
MR_FLOATS_1(round, __builtin_roundf(a))
MR_FLOATS_1(rsqrt, 1.0f / __builtin_sqrtf(a))
MR_FLOATS_1(saturate, __builtin_fminf(__builtin_fmaxf(a, 0.0f), 1.0f))
MR_FLOATS_1(sign, a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : a == 0.0f ? a : 0.0f)
MR_FLOATS_1(sin, __builtin_sinf(a))
MR_FLOATS_1(sinh, __builtin_sinhf(a))
MR_FLOATS_1(sinpi, __builtin_sinf(a * M_PI_F))
MR_FLOATS_1(sqrt, __builtin_sqrtf(a))
MR_FLOATS_1(tan, __builtin_tanf(a))
MR_FLOATS_1(tanh, __builtin_tanhf(a))
MR_FLOATS_1(trunc, __builtin_truncf(a))
#undef MR_FLOATS_1

#define MR_FLOATS_2(name, expression)                                                                       \
    inline float name(float a, float b) { return expression; }                                              \
    inline half name(half a, half b) { return static_cast<half>(name(static_cast<float>(a), static_cast<float>(b))); } \
    inline bfloat name(bfloat a, bfloat b) { return bfloat(name(a.widened(), b.widened())); }               \
    MR_LIFT_2(name)
MR_FLOATS_2(atan2, __builtin_atan2f(a, b))
MR_FLOATS_2(copysign, __builtin_copysignf(a, b))
MR_FLOATS_2(fdim, __builtin_fdimf(a, b))
MR_FLOATS_2(fmax, __builtin_fmaxf(a, b))
MR_FLOATS_2(fmin, __builtin_fminf(a, b))
MR_FLOATS_2(fmod, __builtin_fmodf(a, b))
MR_FLOATS_2(pow, __builtin_powf(a, b))
MR_FLOATS_2(powr, __builtin_powf(a, b))
MR_FLOATS_2(step, b < a ? 0.0f : 1.0f)
#undef MR_FLOATS_2

#define MR_FLOATS_3(name, expression)                                                                       \
    inline float name(float a, float b, float c) { return expression; }                                     \
    inline half name(half a, half b, half c) {                                                              \
        return static_cast<half>(name(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c))); \
    }                                                                                                       \
    inline bfloat name(bfloat a, bfloat b, bfloat c) { return bfloat(name(a.widened(), b.widened(), c.widened())); } \
    MR_LIFT_3(name)
MR_FLOATS_3(fma, __builtin_fmaf(a, b, c))
MR_FLOATS_3(mix, a + (b - a) * c)
#undef MR_FLOATS_3
inline float smoothstep(float low, float high, float x) {
    float t = saturate((x - low) / (high - low));
    return t * t * (3.0f - 2.0f * t);
}
inline float ldexp(float a, int exponent) { return __builtin_ldexpf(a, exponent); }
inline float frexp(float a, int& exponent) { return __builtin_frexpf(a, &exponent); }
inline float modf(float a, float& whole) { return __builtin_modff(a, &whole); }
inline float sincos(float a, float& cosine) { return cosine = __builtin_cosf(a), __builtin_sinf(a); }

#define MR_NUMBERS_2_3(T)                                                                                   \
    constexpr T max(T a, T b) { return a < b ? b : a; }                                                     \
    constexpr T min(T a, T b) { return b < a ? b : a; }                                                     \
    constexpr T max3(T a, T b, T c) { return max(a, max(b, c)); }                                           \
    constexpr T min3(T a, T b, T c) { return min(a, min(b, c)); }                                           \
    constexpr T clamp(T a, T low, T high) { return min(max(a, low), high); }
#define MR_INTEGERS(T)                                                                                      \
    MR_NUMBERS_2_3(T)                                                                                       \
    constexpr T absdiff(T a, T b) { return static_cast<T>(a < b ? b - a : a - b); }                         \
    constexpr T popcount(T a) { return static_cast<T>(__builtin_popcountll(mask_of(a))); }                  \
    constexpr T clz(T a) { return a ? static_cast<T>(__builtin_clzll(mask_of(a)) - (64 - 8 * sizeof(T))) : static_cast<T>(8 * sizeof(T)); } \
    constexpr T ctz(T a) { return a ? static_cast<T>(__builtin_ctzll(mask_of(a))) : static_cast<T>(8 * sizeof(T)); } \
    constexpr T extract_bits(T a, uint offset, uint bits) {                                                 \
        return static_cast<T>(bits == 0 ? 0 : static_cast<T>(a << (8 * sizeof(T) - offset - bits)) >> (8 * sizeof(T) - bits)); \
    }                                                                                                       \
    constexpr T rotate(T a, T b) {                                                                          \
        constexpr int bits = 8 * sizeof(T);                                                                 \
        int by = static_cast<int>(b) & (bits - 1);                                                          \
        return by ? static_cast<T>((mask_of(a) << by) | (mask_of(a) >> (bits - by))) : a;                   \
    }
template <typename T> constexpr unsigned long long mask_of(T a) {
    return static_cast<unsigned long long>(a) & (~0ull >> (64 - 8 * sizeof(T)));
}
MR_INTEGERS(char)
MR_INTEGERS(signed char)
MR_INTEGERS(uchar)
MR_INTEGERS(short)
MR_INTEGERS(ushort)
MR_INTEGERS(int)
MR_INTEGERS(uint)
MR_INTEGERS(long)
MR_INTEGERS(ulong)
#undef MR_INTEGERS
#undef MR_NUMBERS_2_3
MR_LIFT_1(popcount)
MR_LIFT_1(clz)
MR_LIFT_1(ctz)
constexpr uint mulhi(uint a, uint b) { return static_cast<uint>((static_cast<ulong>(a) * b) >> 32); }
constexpr int mulhi(int a, int b) { return static_cast<int>((static_cast<long>(a) * b) >> 32); }
constexpr int mul24(int a, int b) { return a * b; }
constexpr uint mul24(uint a, uint b) { return a * b; }

// A NaN beside a number gives the number, as fmax and fmin do.
#define MR_FLOAT_ORDER(T)                                                                        \
    inline T max(T a, T b) { return fmax(a, b); }                                                \
    inline T min(T a, T b) { return fmin(a, b); }                                                \
    inline T max3(T a, T b, T c) { return max(a, max(b, c)); }                                   \
    inline T min3(T a, T b, T c) { return min(a, min(b, c)); }                                   \
    inline T clamp(T a, T low, T high) { return min(max(a, low), high); }                        \
    inline T abs(T a) { return fabs(a); }                                                        \
    inline bool isnan(T a) { return __builtin_isnan(static_cast<float>(a)); }                    \
    inline bool isinf(T a) { return __builtin_isinf(static_cast<float>(a)); }                    \
    inline bool isfinite(T a) { return __builtin_isfinite(static_cast<float>(a)); }              \
    inline bool isnormal(T a) { return __builtin_isnormal(static_cast<float>(a)); }              \
    inline bool signbit(T a) { return __builtin_signbit(static_cast<float>(a)); }
MR_FLOAT_ORDER(float)
MR_FLOAT_ORDER(half)
MR_FLOAT_ORDER(bfloat)
#undef MR_FLOAT_ORDER
constexpr char abs(char a) { return static_cast<char>(a < 0 ? -a : a); }
constexpr signed char abs(signed char a) { return static_cast<signed char>(a < 0 ? -a : a); }
constexpr short abs(short a) { return static_cast<short>(a < 0 ? -a : a); }
constexpr int abs(int a) { return a < 0 ? -a : a; }
constexpr long abs(long a) { return a < 0 ? -a : a; }
constexpr uint abs(uint a) { return a; }
constexpr ulong abs(ulong a) { return a; }
MR_LIFT_1(abs)
MR_LIFT_1(isnan)
MR_LIFT_1(isinf)
MR_LIFT_1(isfinite)
MR_LIFT_2(max)
MR_LIFT_2(min)
MR_LIFT_3(clamp)

template <typename T> constexpr enable_if_t<is_scalar_v<T>, T> select(T a, T b, bool take_b) { return take_b ? b : a; }
template <typename T, int N> constexpr vec<T, N> select(vec<T, N> a, vec<T, N> b, vec<bool, N> take_b) {
    for (int i = 0; i < N; i++) a.data[i] = take_b.data[i] ? b.data[i] : a.data[i];
    return a;
}
constexpr bool all(bool a) { return a; }
constexpr bool any(bool a) { return a; }
template <int N> constexpr bool all(vec<bool, N> a) {
    bool result = true;
    for (int i = 0; i < N; i++) result = result && a.data[i];
    return result;
}
template <int N> constexpr bool any(vec<bool, N> a) {
    bool result = false;
    for (int i = 0; i < N; i++) result = result || a.data[i];
    return result;
}

template <typename T, int N> constexpr T dot(vec<T, N> a, vec<T, N> b) {
    T sum = static_cast<T>(a.data[0] * b.data[0]);
    for (int i = 1; i < N; i++) sum = static_cast<T>(sum + a.data[i] * b.data[i]);
    return sum;
}
template <typename T, int N, int... I, int M, int... J>
constexpr T dot(const swizzle<T, N, I...>& a, const swizzle<T, M, J...>& b) { return dot(a.value(), b.value()); }
template <typename T, int N> T length_squared(vec<T, N> a) { return dot(a, a); }
template <typename T, int N> T length(vec<T, N> a) { return sqrt(dot(a, a)); }
template <typename T, int N> T distance(vec<T, N> a, vec<T, N> b) { return length(a - b); }
template <typename T, int N> vec<T, N> normalize(vec<T, N> a) { return a * rsqrt(dot(a, a)); }
template <typename T> constexpr vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
    return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
template <typename T, int N, int... I, int M, int... J>
constexpr vec<T, 3> cross(const swizzle<T, N, I...>& a, const swizzle<T, M, J...>& b) {
    return cross(a.value(), b.value());
}
template <typename T, int N, int... I> T length(const swizzle<T, N, I...>& a) { return length(a.value()); }
template <typename T, int N, int... I> auto normalize(const swizzle<T, N, I...>& a) { return normalize(a.value()); }
#undef MR_LIFT_1
#undef MR_LIFT_2
#undef MR_LIFT_3

namespace fast { using namespace metal; }
namespace precise { using namespace metal; }

}  // namespace metal
