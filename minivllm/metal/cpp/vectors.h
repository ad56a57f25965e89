// Vectors of two to four components with Metal's layout, constructors, element-wise operators and swizzles.
#pragma once
#include "scalars.h"

namespace metal {

template <typename T, int N> struct vec;

// Operators as friends: argument-dependent lookup finds them for a vector, whose base this is, and for a swizzle, which
// has the vector among its template arguments. (With a base of its own it would make vectors larger.)
template <typename T, int N> struct vec_operators {
#define MR_VECTOR_OPERATOR(op)                                                                                \
    friend constexpr vec<T, N> operator op(vec<T, N> a, vec<T, N> b) {                                        \
        for (int i = 0; i < N; i++) a.data[i] = static_cast<T>(a.data[i] op b.data[i]);                       \
        return a;                                                                                             \
    }                                                                                                         \
    friend constexpr vec<T, N> operator op(vec<T, N> a, T b) { return a op vec<T, N>(b); }                    \
    friend constexpr vec<T, N> operator op(T a, vec<T, N> b) { return vec<T, N>(a) op b; }
    MR_VECTOR_OPERATOR(+)
    MR_VECTOR_OPERATOR(-)
    MR_VECTOR_OPERATOR(*)
    MR_VECTOR_OPERATOR(/)
    MR_VECTOR_OPERATOR(%)
    MR_VECTOR_OPERATOR(&)
    MR_VECTOR_OPERATOR(|)
    MR_VECTOR_OPERATOR(^)
    MR_VECTOR_OPERATOR(<<)
    MR_VECTOR_OPERATOR(>>)
#undef MR_VECTOR_OPERATOR
#define MR_VECTOR_COMPARISON(op)                                                                              \
    friend constexpr vec<bool, N> operator op(vec<T, N> a, vec<T, N> b) {                                     \
        vec<bool, N> result{};                                                                                \
        for (int i = 0; i < N; i++) result.data[i] = a.data[i] op b.data[i];                                  \
        return result;                                                                                        \
    }                                                                                                         \
    friend constexpr vec<bool, N> operator op(vec<T, N> a, T b) { return a op vec<T, N>(b); }                 \
    friend constexpr vec<bool, N> operator op(T a, vec<T, N> b) { return vec<T, N>(a) op b; }
    MR_VECTOR_COMPARISON(<)
    MR_VECTOR_COMPARISON(>)
    MR_VECTOR_COMPARISON(<=)
    MR_VECTOR_COMPARISON(>=)
    MR_VECTOR_COMPARISON(==)
    MR_VECTOR_COMPARISON(!=)
    MR_VECTOR_COMPARISON(&&)
    MR_VECTOR_COMPARISON(||)
#undef MR_VECTOR_COMPARISON
#define MR_VECTOR_UNARY(op)                                                                                   \
    friend constexpr vec<T, N> operator op(vec<T, N> a) {                                                     \
        for (int i = 0; i < N; i++) a.data[i] = static_cast<T>(op a.data[i]);                                 \
        return a;                                                                                             \
    }
    MR_VECTOR_UNARY(-)
    MR_VECTOR_UNARY(+)
    MR_VECTOR_UNARY(~)
    MR_VECTOR_UNARY(!)
#undef MR_VECTOR_UNARY
};

#define MR_ASSIGNMENTS(Self, Vector)                                                    \
    constexpr Self& operator+=(Vector b) { return *this = *this + b; }                  \
    constexpr Self& operator-=(Vector b) { return *this = *this - b; }                  \
    constexpr Self& operator*=(Vector b) { return *this = *this * b; }                  \
    constexpr Self& operator/=(Vector b) { return *this = *this / b; }                  \
    constexpr Self& operator%=(Vector b) { return *this = *this % b; }                  \
    constexpr Self& operator&=(Vector b) { return *this = *this & b; }                  \
    constexpr Self& operator|=(Vector b) { return *this = *this | b; }                  \
    constexpr Self& operator^=(Vector b) { return *this = *this ^ b; }                  \
    constexpr Self& operator<<=(Vector b) { return *this = *this << b; }                \
    constexpr Self& operator>>=(Vector b) { return *this = *this >> b; }

// Components I... of a vector of N: a view over the same storage.
template <typename Vector, typename T, int N, int... I> struct swizzle_as {
    typedef Vector value_type;
    T data[N];
    constexpr value_type value() const { return value_type(data[I]...); }
    constexpr operator value_type() const { return value(); }
    constexpr swizzle_as& operator=(value_type v) {
        int i = 0;
        ((data[I] = v.data[i++]), ...);
        return *this;
    }
    constexpr swizzle_as& operator=(const swizzle_as& other) { return *this = other.value(); }
    constexpr T operator[](int i) const { return value().data[i]; }
    MR_ASSIGNMENTS(swizzle_as, value_type)
};
template <typename T, int N, int... I> using swizzle = swizzle_as<vec<T, sizeof...(I)>, T, N, I...>;

template <typename T, int N> struct swizzles;
#define MR_W2(a, i, b, j) swizzle<T, N, i, j> a##b;
#define MR_W3(a, i, b, j, c, k) swizzle<T, N, i, j, k> a##b##c;
#define MR_W4(name, i, j, k, l) swizzle<T, N, i, j, k, l> name;
#define MR_PAIRS_OF_2 MR_W2(x, 0, x, 0) MR_W2(x, 0, y, 1) MR_W2(y, 1, x, 0) MR_W2(y, 1, y, 1)
#define MR_PAIRS_OF_3 \
    MR_PAIRS_OF_2 MR_W2(x, 0, z, 2) MR_W2(y, 1, z, 2) MR_W2(z, 2, x, 0) MR_W2(z, 2, y, 1) MR_W2(z, 2, z, 2)
#define MR_PAIRS_OF_4                                                                                    \
    MR_PAIRS_OF_3 MR_W2(x, 0, w, 3) MR_W2(y, 1, w, 3) MR_W2(z, 2, w, 3) MR_W2(w, 3, x, 0) MR_W2(w, 3, y, 1) \
        MR_W2(w, 3, z, 2) MR_W2(w, 3, w, 3)
#define MR_TRIPLES_IN_ORDER                                                                                  \
    MR_W3(x, 0, y, 1, z, 2) MR_W3(x, 0, z, 2, y, 1) MR_W3(y, 1, x, 0, z, 2) MR_W3(y, 1, z, 2, x, 0)           \
        MR_W3(z, 2, x, 0, y, 1) MR_W3(z, 2, y, 1, x, 0) MR_W3(x, 0, x, 0, x, 0) MR_W3(y, 1, y, 1, y, 1)       \
            MR_W3(z, 2, z, 2, z, 2)

template <typename T> struct alignas(2 * sizeof(T)) swizzles<T, 2> {
    static constexpr int N = 2;
    union {
        T data[2];
        struct { T x, y; };
        struct { T r, g; };
        MR_PAIRS_OF_2
    };
};
template <typename T> struct alignas(4 * sizeof(T)) swizzles<T, 3> {
    static constexpr int N = 3;
    union {
        T data[3];
        struct { T x, y, z; };
        struct { T r, g, b; };
        MR_PAIRS_OF_3 MR_TRIPLES_IN_ORDER
    };
};
template <typename T> struct alignas(4 * sizeof(T)) swizzles<T, 4> {
    static constexpr int N = 4;
    union {
        T data[4];
        struct { T x, y, z, w; };
        struct { T r, g, b, a; };
        MR_PAIRS_OF_4 MR_TRIPLES_IN_ORDER
        swizzle<T, 4, 0, 1, 2> rgb;
        MR_W3(y, 1, z, 2, w, 3) MR_W3(x, 0, y, 1, w, 3) MR_W3(x, 0, z, 2, w, 3) MR_W3(w, 3, w, 3, w, 3)
        MR_W4(xyzw, 0, 1, 2, 3) MR_W4(rgba, 0, 1, 2, 3) MR_W4(wzyx, 3, 2, 1, 0) MR_W4(yxwz, 1, 0, 3, 2)
        MR_W4(zwxy, 2, 3, 0, 1) MR_W4(yzwx, 1, 2, 3, 0) MR_W4(wxyz, 3, 0, 1, 2) MR_W4(xxxx, 0, 0, 0, 0)
        MR_W4(yyyy, 1, 1, 1, 1) MR_W4(zzzz, 2, 2, 2, 2) MR_W4(wwww, 3, 3, 3, 3) MR_W4(xyxy, 0, 1, 0, 1)
        MR_W4(zwzw, 2, 3, 2, 3) MR_W4(xxyy, 0, 0, 1, 1) MR_W4(zzww, 2, 2, 3, 3) MR_W4(xzyw, 0, 2, 1, 3)
        MR_W4(bgra, 2, 1, 0, 3)
    };
};
#undef MR_W2
#undef MR_W3
#undef MR_W4
#undef MR_PAIRS_OF_2
#undef MR_PAIRS_OF_3
#undef MR_PAIRS_OF_4
#undef MR_TRIPLES_IN_ORDER

template <typename T, int N> struct vec : swizzles<T, N>, vec_operators<T, N> {
    using swizzles<T, N>::data;

    vec() = default;
    constexpr vec(const vec& other) { for (int i = 0; i < N; i++) data[i] = other.data[i]; }
    constexpr vec& operator=(const vec& other) {  // that of the union is deleted: a swizzle's own assignment means less
        for (int i = 0; i < N; i++) data[i] = other.data[i];
        return *this;
    }
    constexpr vec(T value) { for (int i = 0; i < N; i++) data[i] = value; }
    template <typename U, enable_if_t<is_scalar_v<U> && !is_same_v<U, T>, int> = 0>
    explicit constexpr vec(U value) : vec(static_cast<T>(value)) {}
    template <typename U, enable_if_t<!is_same_v<U, T>, int> = 0>
    explicit constexpr vec(const vec<U, N>& other) { int i = 0; append(i, other); }
    template <typename U, int M, int... I, enable_if_t<!is_same_v<U, T> && sizeof...(I) == N, int> = 0>
    explicit constexpr vec(const swizzle<U, M, I...>& other) : vec(other.value()) {}
    template <typename A, typename B, typename... Rest> constexpr vec(const A& a, const B& b, const Rest&... rest) {
        static_assert(width(static_cast<A*>(nullptr)) + width(static_cast<B*>(nullptr)) +
                      (0 + ... + width(static_cast<Rest*>(nullptr))) == N, "as many components as the vector has");
        int i = 0;
        append(i, a);
        append(i, b);
        (append(i, rest), ...);
    }
    constexpr T& operator[](int i) { return data[i]; }
    constexpr const T& operator[](int i) const { return data[i]; }
    MR_ASSIGNMENTS(vec, vec)

   private:
    template <typename U> static constexpr int width(U*) { return 1; }
    template <typename U, int M> static constexpr int width(vec<U, M>*) { return M; }
    template <typename U, int M, int... I> static constexpr int width(swizzle<U, M, I...>*) { return sizeof...(I); }
    template <typename U> constexpr void append(int& i, const U& value) { data[i++] = static_cast<T>(value); }
    template <typename U, int M> constexpr void append(int& i, const vec<U, M>& other) {
        for (int j = 0; j < M; j++) data[i++] = static_cast<T>(other.data[j]);
    }
    template <typename U, int M, int... I> constexpr void append(int& i, const swizzle<U, M, I...>& other) {
        append(i, other.value());
    }
};
#undef MR_ASSIGNMENTS

// A vector without padding, aligned as one component.
template <typename T, int N> struct packed_vec {
    T data[N];
    packed_vec() = default;
    constexpr packed_vec(vec<T, N> v) { for (int i = 0; i < N; i++) data[i] = v.data[i]; }
    constexpr operator vec<T, N>() const {
        vec<T, N> v{};
        for (int i = 0; i < N; i++) v.data[i] = data[i];
        return v;
    }
    constexpr T& operator[](int i) { return data[i]; }
    constexpr const T& operator[](int i) const { return data[i]; }
};

template <typename T> constexpr bool is_vector = false;
template <typename T, int N> constexpr bool is_vector<vec<T, N>> = true;

#define MR_VECTOR_NAMES(T)                                                                       \
    typedef vec<T, 2> T##2;                                                                      \
    typedef vec<T, 3> T##3;                                                                      \
    typedef vec<T, 4> T##4;                                                                      \
    typedef packed_vec<T, 2> packed_##T##2;                                                      \
    typedef packed_vec<T, 3> packed_##T##3;                                                      \
    typedef packed_vec<T, 4> packed_##T##4;
MR_VECTOR_NAMES(bool)
MR_VECTOR_NAMES(char)
MR_VECTOR_NAMES(uchar)
MR_VECTOR_NAMES(short)
MR_VECTOR_NAMES(ushort)
MR_VECTOR_NAMES(int)
MR_VECTOR_NAMES(uint)
MR_VECTOR_NAMES(long)
MR_VECTOR_NAMES(ulong)
MR_VECTOR_NAMES(half)
MR_VECTOR_NAMES(float)
MR_VECTOR_NAMES(bfloat)
#undef MR_VECTOR_NAMES
static_assert(sizeof(float4) == 16 && sizeof(float3) == 16 && sizeof(half2) == 4 && sizeof(uchar3) == 4, "Metal's layout");

}  // namespace metal
