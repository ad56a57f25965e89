// In front of a kernel when clang only looks at its address spaces: declarations, nothing to run. Types are as near to
// Metal's as pointers need; whatever else clang dislikes here is not reported.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef decltype(sizeof(0)) size_t;
typedef long ptrdiff_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef float half;  // of which every clang can make vectors; no size matters here
typedef half float16_t;
typedef half bfloat16_t;
#define bfloat half

#define thread
#define device __attribute__((address_space(1)))
#define constant __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#define METAL_FUNC inline
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define MAXFLOAT __FLT_MAX__
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define HALF_MAX 65504.0f
#define M_PI_F 3.14159265f
#define M_LN2_F 0.69314718f
#define M_LOG2E_F 1.44269504f
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u

namespace metal {
template <typename T, int N> using vec = T __attribute__((ext_vector_type(N)));
template <typename T> struct atomic { T value; };
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;
template <typename A, typename B> struct is_same { static constexpr bool value = false; };
template <typename A> struct is_same<A, A> { static constexpr bool value = true; };
template <typename A, typename B> constexpr bool is_same_v = is_same<A, B>::value;
enum class mem_flags { mem_none, mem_device, mem_threadgroup, mem_texture, mem_threadgroup_imageblock };
mem_flags operator|(mem_flags, mem_flags);
enum memory_order { memory_order_relaxed };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };
void threadgroup_barrier(mem_flags);
void simdgroup_barrier(mem_flags);
void atomic_thread_fence(mem_flags, memory_order, thread_scope = thread_scope_device);

#define MR_NAMES(T)                                           \
    typedef T T##2 __attribute__((ext_vector_type(2)));       \
    typedef T T##3 __attribute__((ext_vector_type(3)));       \
    typedef T T##4 __attribute__((ext_vector_type(4)));       \
    typedef T##2 packed_##T##2;                               \
    typedef T##3 packed_##T##3;                               \
    typedef T##4 packed_##T##4;
MR_NAMES(char)
MR_NAMES(uchar)
MR_NAMES(short)
MR_NAMES(ushort)
MR_NAMES(int)
MR_NAMES(uint)
MR_NAMES(long)
MR_NAMES(ulong)
MR_NAMES(half)
MR_NAMES(float)
#undef MR_NAMES
typedef char2 bool2;
typedef char3 bool3;
typedef char4 bool4;

template <typename To, typename... From> To mr_make(From...);

#define MR_FUNCTIONS(M)                                                                                             \
    M(abs) M(acos) M(acosh) M(asin) M(asinh) M(atan) M(atan2) M(atanh) M(ceil) M(clamp) M(copysign) M(cos) M(cosh)  \
    M(cospi) M(exp) M(exp2) M(exp10) M(fabs) M(fdim) M(floor) M(fma) M(fmax) M(fmin) M(fmod) M(fract) M(ldexp)      \
    M(log) M(log2) M(log10) M(max) M(max3) M(min) M(min3) M(mix) M(pow) M(powr) M(rint) M(round) M(rsqrt)           \
    M(saturate) M(select) M(sign) M(sin) M(sinh) M(sinpi) M(smoothstep) M(sqrt) M(step) M(tan) M(tanh) M(trunc)     \
    M(absdiff) M(popcount) M(clz) M(ctz) M(extract_bits) M(rotate) M(mulhi) M(mul24) M(normalize) M(cross)
#define MR_DECLARE(name) template <typename A, typename... Rest> constexpr A name(A, Rest...);
MR_FUNCTIONS(MR_DECLARE)
namespace fast { MR_FUNCTIONS(MR_DECLARE) }
namespace precise { MR_FUNCTIONS(MR_DECLARE) }
#define MR_LANES(M)                                                                                                 \
    M(simd_sum) M(simd_product) M(simd_max) M(simd_min) M(simd_and) M(simd_or) M(simd_xor)                          \
    M(simd_prefix_inclusive_sum) M(simd_prefix_exclusive_sum) M(simd_prefix_inclusive_product)                      \
    M(simd_prefix_exclusive_product) M(simd_shuffle) M(simd_broadcast) M(simd_broadcast_first) M(simd_shuffle_xor)  \
    M(simd_shuffle_down) M(simd_shuffle_up) M(simd_shuffle_rotate_down) M(simd_shuffle_rotate_up)
MR_LANES(MR_DECLARE)
#undef MR_DECLARE
#undef MR_LANES
#undef MR_FUNCTIONS
template <typename A> float dot(A, A);
template <typename A> float length(A);
template <typename A> float distance(A, A);
template <typename A> bool isnan(A);
template <typename A> bool isinf(A);
template <typename A> bool isfinite(A);
template <typename A> bool all(A);
template <typename A> bool any(A);
bool simd_all(bool);
bool simd_any(bool);
bool simd_is_first();

template <typename T> struct mr_identity { typedef T type; };
template <typename T> using mr_value = typename mr_identity<T>::type;
#define MR_ATOMICS(space)                                                                                 \
    template <typename T> T atomic_load_explicit(const volatile space atomic<T>*, memory_order);         \
    template <typename T> void atomic_store_explicit(volatile space atomic<T>*, mr_value<T>, memory_order); \
    template <typename T> T atomic_exchange_explicit(volatile space atomic<T>*, mr_value<T>, memory_order); \
    template <typename T> bool atomic_compare_exchange_weak_explicit(                                     \
        volatile space atomic<T>*, T*, mr_value<T>, memory_order, memory_order);                         \
    template <typename T> T atomic_fetch_add_explicit(volatile space atomic<T>*, mr_value<T>, memory_order); \
    template <typename T> T atomic_fetch_sub_explicit(volatile space atomic<T>*, mr_value<T>, memory_order); \
    template <typename T> T atomic_fetch_max_explicit(volatile space atomic<T>*, mr_value<T>, memory_order); \
    template <typename T> T atomic_fetch_min_explicit(volatile space atomic<T>*, mr_value<T>, memory_order); \
    template <typename T> T atomic_fetch_and_explicit(volatile space atomic<T>*, mr_value<T>, memory_order); \
    template <typename T> T atomic_fetch_or_explicit(volatile space atomic<T>*, mr_value<T>, memory_order);  \
    template <typename T> T atomic_fetch_xor_explicit(volatile space atomic<T>*, mr_value<T>, memory_order);
MR_ATOMICS(device)
MR_ATOMICS(threadgroup)
#undef MR_ATOMICS
}  // namespace metal
using namespace metal;

template <typename To, typename From> To as_type(From);
template <typename U> struct Limits { static constexpr U max{}, min{}, finite_max{}, finite_min{}; };
template <typename IdxT = int64_t, typename E>
IdxT elem_to_loc(E, constant const int* shape, constant const int64_t* strides, int ndim);
template <typename IdxT = int64_t, typename StrideT> IdxT elem_to_loc_1(uint, constant const StrideT&);
template <typename IdxT = int64_t, typename StrideT> IdxT elem_to_loc_2(uint2, constant const StrideT*);
template <typename IdxT = int64_t, typename StrideT> IdxT elem_to_loc_3(uint3, constant const StrideT*);
template <typename T, typename U> T ceildiv(T, U);
template <typename T> T log1p(T);

// A vector's constructor: `float4(1, v.xyz)` is a call, `float4 v` is none.
#define char2(...) mr_make<char2>(__VA_ARGS__)
#define char3(...) mr_make<char3>(__VA_ARGS__)
#define char4(...) mr_make<char4>(__VA_ARGS__)
#define uchar2(...) mr_make<uchar2>(__VA_ARGS__)
#define uchar3(...) mr_make<uchar3>(__VA_ARGS__)
#define uchar4(...) mr_make<uchar4>(__VA_ARGS__)
#define short2(...) mr_make<short2>(__VA_ARGS__)
#define short3(...) mr_make<short3>(__VA_ARGS__)
#define short4(...) mr_make<short4>(__VA_ARGS__)
#define ushort2(...) mr_make<ushort2>(__VA_ARGS__)
#define ushort3(...) mr_make<ushort3>(__VA_ARGS__)
#define ushort4(...) mr_make<ushort4>(__VA_ARGS__)
#define int2(...) mr_make<int2>(__VA_ARGS__)
#define int3(...) mr_make<int3>(__VA_ARGS__)
#define int4(...) mr_make<int4>(__VA_ARGS__)
#define uint2(...) mr_make<uint2>(__VA_ARGS__)
#define uint3(...) mr_make<uint3>(__VA_ARGS__)
#define uint4(...) mr_make<uint4>(__VA_ARGS__)
#define half2(...) mr_make<half2>(__VA_ARGS__)
#define half3(...) mr_make<half3>(__VA_ARGS__)
#define half4(...) mr_make<half4>(__VA_ARGS__)
#define float2(...) mr_make<float2>(__VA_ARGS__)
#define float3(...) mr_make<float3>(__VA_ARGS__)
#define float4(...) mr_make<float4>(__VA_ARGS__)
#define bfloat2 half2
#define bfloat3 half3
#define bfloat4 half4
