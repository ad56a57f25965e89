// Metal's scalar types on a CPU. half is the compiler's _Float16; bfloat is a class, since g++ 12 has no such type.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef decltype(sizeof(0)) size_t;
typedef decltype((char*)0 - (char*)0) ptrdiff_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef ulong uintptr_t;
typedef long intptr_t;
typedef _Float16 half;
static_assert(sizeof(long) == 8, "Metal's long has 64 bits");

namespace metal {

template <bool condition, typename T = void> struct enable_if {};
template <typename T> struct enable_if<true, T> { typedef T type; };
template <bool condition, typename T = void> using enable_if_t = typename enable_if<condition, T>::type;
template <bool condition, typename A, typename B> struct conditional { typedef A type; };
template <typename A, typename B> struct conditional<false, A, B> { typedef B type; };
template <bool condition, typename A, typename B> using conditional_t = typename conditional<condition, A, B>::type;
template <typename T, T v> struct integral_constant { static constexpr T value = v; };
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <typename A, typename B> struct is_same : false_type {};
template <typename A> struct is_same<A, A> : true_type {};
template <typename A, typename B> constexpr bool is_same_v = is_same<A, B>::value;
template <typename T> struct remove_cv { typedef T type; };
template <typename T> struct remove_cv<const T> { typedef T type; };
template <typename T> struct remove_cv<volatile T> { typedef T type; };
template <typename T> struct remove_cv<const volatile T> { typedef T type; };
template <typename T> using remove_cv_t = typename remove_cv<T>::type;
template <typename T> struct remove_reference { typedef T type; };
template <typename T> struct remove_reference<T&> { typedef T type; };
template <typename T> struct remove_reference<T&&> { typedef T type; };
template <typename T> using remove_reference_t = typename remove_reference<T>::type;

template <typename T> constexpr bool is_integral_v =
    is_same_v<T, bool> || is_same_v<T, char> || is_same_v<T, signed char> || is_same_v<T, uchar> ||
    is_same_v<T, short> || is_same_v<T, ushort> || is_same_v<T, int> || is_same_v<T, uint> || is_same_v<T, long> ||
    is_same_v<T, ulong> || is_same_v<T, long long> || is_same_v<T, unsigned long long>;
template <typename T> constexpr bool is_native_float = is_same_v<T, float> || is_same_v<T, half>;
template <typename T> struct is_integral : integral_constant<bool, is_integral_v<T>> {};

}  // namespace metal

// Metal converts a bfloat to float by itself and a float to a bfloat only when told to.
struct bfloat {
    uint16_t bits;

    bfloat() = default;
    template <typename T, metal::enable_if_t<metal::is_integral_v<T>, int> = 0>
    constexpr bfloat(T value) : bits(rounded(static_cast<float>(value))) {}
    template <typename T, metal::enable_if_t<metal::is_native_float<T>, int> = 0>
    explicit constexpr bfloat(T value) : bits(rounded(static_cast<float>(value))) {}
    // A template, so that it is taken for float alone: `flag ? value : 0` must stay a bfloat and not become an int.
    template <typename T, metal::enable_if_t<metal::is_same_v<T, float>, int> = 0>
    constexpr operator T() const { return widened(); }
    template <typename T, metal::enable_if_t<metal::is_integral_v<T> || metal::is_same_v<T, half>, int> = 0>
    explicit constexpr operator T() const { return static_cast<T>(widened()); }

    constexpr float widened() const { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }
    static constexpr uint16_t rounded(float value) {  // to the nearest, ties to even; NaN stays NaN
        uint32_t word = __builtin_bit_cast(uint32_t, value);
        if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((word >> 16) | 0x40u);
        return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
    }
};

// A bfloat beside a bfloat or an integer gives a bfloat, beside a float or half a float.
#define MR_BFLOAT_OPERATOR(op)                                                                              \
    constexpr bfloat operator op(bfloat a, bfloat b) { return bfloat(a.widened() op b.widened()); }         \
    template <typename T, metal::enable_if_t<metal::is_integral_v<T>, int> = 0>                             \
    constexpr bfloat operator op(bfloat a, T b) { return a op bfloat(b); }                                  \
    template <typename T, metal::enable_if_t<metal::is_integral_v<T>, int> = 0>                             \
    constexpr bfloat operator op(T a, bfloat b) { return bfloat(a) op b; }                                  \
    template <typename T, metal::enable_if_t<metal::is_native_float<T>, int> = 0>                           \
    constexpr float operator op(bfloat a, T b) { return a.widened() op static_cast<float>(b); }             \
    template <typename T, metal::enable_if_t<metal::is_native_float<T>, int> = 0>                           \
    constexpr float operator op(T a, bfloat b) { return static_cast<float>(a) op b.widened(); }             \
    template <typename T> constexpr bfloat& operator op##=(bfloat& a, T b) { return a = bfloat(a op b); }
MR_BFLOAT_OPERATOR(+)
MR_BFLOAT_OPERATOR(-)
MR_BFLOAT_OPERATOR(*)
MR_BFLOAT_OPERATOR(/)
#undef MR_BFLOAT_OPERATOR

#define MR_BFLOAT_COMPARISON(op)                                                                            \
    constexpr bool operator op(bfloat a, bfloat b) { return a.widened() op b.widened(); }                   \
    template <typename T, metal::enable_if_t<metal::is_integral_v<T> || metal::is_native_float<T>, int> = 0> \
    constexpr bool operator op(bfloat a, T b) { return a.widened() op static_cast<float>(b); }              \
    template <typename T, metal::enable_if_t<metal::is_integral_v<T> || metal::is_native_float<T>, int> = 0> \
    constexpr bool operator op(T a, bfloat b) { return static_cast<float>(a) op b.widened(); }
MR_BFLOAT_COMPARISON(<)
MR_BFLOAT_COMPARISON(>)
MR_BFLOAT_COMPARISON(<=)
MR_BFLOAT_COMPARISON(>=)
MR_BFLOAT_COMPARISON(==)
MR_BFLOAT_COMPARISON(!=)
#undef MR_BFLOAT_COMPARISON

constexpr bfloat operator-(bfloat a) { return bfloat(-a.widened()); }
constexpr bfloat operator+(bfloat a) { return a; }

constexpr half operator""h(long double value) { return static_cast<half>(value); }
constexpr half operator""h(unsigned long long value) { return static_cast<half>(value); }
constexpr bfloat operator""bf(long double value) { return bfloat(static_cast<float>(value)); }

typedef half float16_t;
typedef bfloat bfloat16_t;

namespace metal {
template <typename T> constexpr bool is_floating_point_v = is_native_float<T> || is_same_v<T, bfloat>;
template <typename T> struct is_floating_point : integral_constant<bool, is_floating_point_v<T>> {};
template <typename T> constexpr bool is_scalar_v = is_integral_v<T> || is_floating_point_v<T>;
template <typename T> constexpr bool is_arithmetic_v = is_scalar_v<T>;
}  // namespace metal

template <typename To, typename From> constexpr To as_type(From value) {
    static_assert(sizeof(To) == sizeof(From), "as_type needs two types of the same size");
    return __builtin_bit_cast(To, value);
}

#define INFINITY __builtin_inff()
#define HUGE_VALF __builtin_inff()
#define NAN __builtin_nanf("")
#define MAXFLOAT __FLT_MAX__
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define HALF_MAX (static_cast<half>(65504.0f))
#define MAXHALF HALF_MAX
#define HALF_EPSILON (static_cast<half>(0.0009765625f))
#define HALF_MIN (static_cast<half>(0.00006103515625f))
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-LONG_MAX - 1l)
#define ULONG_MAX 18446744073709551615ul
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_1_PI_F 0.31830988618379067154f
#define M_E_F 2.71828182845904523536f
#define M_LN2_F 0.69314718055994530942f
#define M_LOG2E_F 1.44269504088896340736f
#define M_SQRT2_F 1.41421356237309504880f
#define M_PI_H (static_cast<half>(M_PI_F))
