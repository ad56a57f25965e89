// Relaxed atomics. The threads of the runner take turns, so a plain read, change and write is atomic.
#pragma once
#include "simd.h"

namespace metal {

template <typename T> struct atomic { T mr_value; };
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;

template <typename T> struct mr_identity { typedef T type; };
template <typename T> using mr_value_of = typename mr_identity<T>::type;

template <typename T> MR_UNCHECKED inline T atomic_load_explicit(const volatile atomic<T>* object, memory_order, MR_HERE) {
    mr_atomic_access(object, sizeof(T), MR_READS, line, file);
    return const_cast<const atomic<T>*>(object)->mr_value;
}
template <typename T>
MR_UNCHECKED inline void atomic_store_explicit(volatile atomic<T>* object, mr_value_of<T> value, memory_order, MR_HERE) {
    mr_atomic_access(object, sizeof(T), MR_WRITES, line, file);
    const_cast<atomic<T>*>(object)->mr_value = value;
}
template <typename T>
MR_UNCHECKED inline T atomic_exchange_explicit(volatile atomic<T>* object, mr_value_of<T> value, memory_order, MR_HERE) {
    mr_atomic_access(object, sizeof(T), MR_READS | MR_WRITES, line, file);
    T old = const_cast<atomic<T>*>(object)->mr_value;
    const_cast<atomic<T>*>(object)->mr_value = value;
    return old;
}
template <typename T>
MR_UNCHECKED inline bool atomic_compare_exchange_weak_explicit(
    volatile atomic<T>* object, T* expected, mr_value_of<T> desired, memory_order, memory_order, MR_HERE) {
    mr_atomic_access(object, sizeof(T), MR_READS | MR_WRITES, line, file);
    T& value = const_cast<atomic<T>*>(object)->mr_value;
    if (value == *expected) return value = desired, true;
    *expected = value;
    return false;
}
#define MR_ATOMIC_FETCH(name, expression)                                                                     \
    template <typename T>                                                                                     \
    MR_UNCHECKED inline T atomic_fetch_##name##_explicit(                                                     \
        volatile atomic<T>* object, mr_value_of<T> b, memory_order, MR_HERE) {                                \
        mr_atomic_access(object, sizeof(T), MR_READS | MR_WRITES, line, file);                                                \
        T& value = const_cast<atomic<T>*>(object)->mr_value;                                                  \
        T a = value;                                                                                          \
        value = static_cast<T>(expression);                                                                   \
        return a;                                                                                             \
    }
MR_ATOMIC_FETCH(add, a + b)
MR_ATOMIC_FETCH(sub, a - b)
MR_ATOMIC_FETCH(max, max(a, b))
MR_ATOMIC_FETCH(min, min(a, b))
MR_ATOMIC_FETCH(and, a & b)
MR_ATOMIC_FETCH(or, a | b)
MR_ATOMIC_FETCH(xor, a ^ b)
#undef MR_ATOMIC_FETCH

inline void atomic_thread_fence(mem_flags, memory_order, thread_scope = thread_scope_device) {}

}  // namespace metal
