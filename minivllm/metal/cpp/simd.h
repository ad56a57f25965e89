// Barriers and SIMD-group operations. A lane parks a pointer to its operand; when every live lane has arrived, the
// last one combines them all. The default arguments name the line that called.
#pragma once
#include "interface.h"
#include "maths.h"

#define MR_HERE int line = __builtin_LINE(), const char* file = __builtin_FILE()
#define MR_UNCHECKED __attribute__((no_sanitize("thread", "bounds")))

namespace metal {

enum class mem_flags {
    mem_none = 0,
    mem_device = MR_MEM_DEVICE,
    mem_threadgroup = MR_MEM_THREADGROUP,
    mem_texture = 4,
    mem_threadgroup_imageblock = 8,
    mem_object_data = 16,
};
constexpr mem_flags operator|(mem_flags a, mem_flags b) {
    return static_cast<mem_flags>(static_cast<int>(a) | static_cast<int>(b));
}
enum memory_order { memory_order_relaxed };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

inline void threadgroup_barrier(mem_flags flags, MR_HERE) { mr_barrier(static_cast<int>(flags), line, file); }
inline void simdgroup_barrier(mem_flags flags, MR_HERE) { mr_simd_barrier(static_cast<int>(flags), line, file); }

namespace runner {

template <typename T> struct swizzle_value { typedef T type; };
template <typename Vector, typename T, int N, int... I> struct swizzle_value<swizzle_as<Vector, T, N, I...>> {
    typedef Vector type;
};

// All lanes fold their operands, in the order of the lanes, into one value that each of them gets.
template <typename T, typename Fold> MR_UNCHECKED void fold_lanes(void* const* operands) {
    T total{};
    bool first = true;
    for (int lane = 0; lane < MR_SIMD_WIDTH; lane++) {
        if (!operands[lane]) continue;
        T value = *static_cast<T*>(operands[lane]);
        total = first ? value : Fold::of(total, value);
        first = false;
    }
    for (int lane = 0; lane < MR_SIMD_WIDTH; lane++)
        if (operands[lane]) *static_cast<T*>(operands[lane]) = total;
}

// Lane i gets the fold of the lanes up to itself; `exclusive` leaves itself out.
template <typename T, typename Fold, bool exclusive> MR_UNCHECKED void scan_lanes(void* const* operands) {
    T total = Fold::template neutral<T>();
    for (int lane = 0; lane < MR_SIMD_WIDTH; lane++) {
        if (!operands[lane]) continue;
        T value = *static_cast<T*>(operands[lane]), before = total;
        total = Fold::of(total, value);
        *static_cast<T*>(operands[lane]) = exclusive ? before : total;
    }
}

template <typename T> struct exchange {
    T value, result;
    int source;  // the lane whose value this lane gets; -1: keep `result`
};

template <typename T> MR_UNCHECKED void exchange_lanes(void* const* operands) {
    for (int lane = 0; lane < MR_SIMD_WIDTH; lane++) {
        auto mine = static_cast<exchange<T>*>(operands[lane]);
        if (!mine || mine->source == -1) continue;
        auto theirs = mine->source >= 0 && mine->source < MR_SIMD_WIDTH
            ? static_cast<exchange<T>*>(operands[mine->source]) : nullptr;
        if (!theirs) mr_absent_lane(lane, mine->source);
        mine->result = theirs->value;
    }
}

template <typename T>
MR_UNCHECKED T from_lane(T value, T otherwise, int source, const char* operation, int line, const char* file) {
    exchange<T> mine = {value, otherwise, source};
    mr_simd(&mine, exchange_lanes<T>, operation, line, file);
    return mine.result;
}

// Every lane gets a mask of the lanes whose operand is true.
MR_UNCHECKED inline void ballot_lanes(void* const* operands) {
    ulong mask = 0;
    for (int lane = 0; lane < MR_SIMD_WIDTH; lane++)
        if (operands[lane] && *static_cast<ulong*>(operands[lane])) mask |= 1ul << lane;
    for (int lane = 0; lane < MR_SIMD_WIDTH; lane++)
        if (operands[lane]) *static_cast<ulong*>(operands[lane]) = mask;
}
MR_UNCHECKED inline ulong ballot(bool vote, const char* operation, int line, const char* file) {
    ulong mask = vote;
    mr_simd(&mask, ballot_lanes, operation, line, file);
    return mask;
}

extern "C" mr_u32 mr_current_lane();

#define MR_FOLD(name, expression, start)                                                            \
    struct name {                                                                                   \
        template <typename T> static constexpr T of(T a, T b) { return static_cast<T>(expression); } \
        template <typename T> static constexpr T neutral() { return static_cast<T>(start); }        \
    };
MR_FOLD(sum, a + b, 0)
MR_FOLD(product, a * b, 1)
MR_FOLD(maximum, max(a, b), 0)
MR_FOLD(minimum, min(a, b), 0)
MR_FOLD(bit_and, a & b, 0)
MR_FOLD(bit_or, a | b, 0)
MR_FOLD(bit_xor, a ^ b, 0)
#undef MR_FOLD

}  // namespace runner

#define MR_SIMD_FOLD(name, fold)                                                                    \
    template <typename A> MR_UNCHECKED inline auto name(A value, MR_HERE) {                         \
        typename runner::swizzle_value<A>::type operand = value;                                    \
        mr_simd(&operand, runner::fold_lanes<decltype(operand), runner::fold>, #name, line, file);  \
        return operand;                                                                             \
    }
MR_SIMD_FOLD(simd_sum, sum)
MR_SIMD_FOLD(simd_product, product)
MR_SIMD_FOLD(simd_max, maximum)
MR_SIMD_FOLD(simd_min, minimum)
MR_SIMD_FOLD(simd_and, bit_and)
MR_SIMD_FOLD(simd_or, bit_or)
MR_SIMD_FOLD(simd_xor, bit_xor)
#undef MR_SIMD_FOLD

#define MR_SIMD_SCAN(name, fold, exclusive)                                                         \
    template <typename T> MR_UNCHECKED inline T name(T value, MR_HERE) {                            \
        mr_simd(&value, runner::scan_lanes<T, runner::fold, exclusive>, #name, line, file);         \
        return value;                                                                               \
    }
MR_SIMD_SCAN(simd_prefix_inclusive_sum, sum, false)
MR_SIMD_SCAN(simd_prefix_exclusive_sum, sum, true)
MR_SIMD_SCAN(simd_prefix_inclusive_product, product, false)
MR_SIMD_SCAN(simd_prefix_exclusive_product, product, true)
#undef MR_SIMD_SCAN

#define MR_LANE static_cast<int>(runner::mr_current_lane())
template <typename T> inline T simd_shuffle(T value, ushort lane, MR_HERE) {
    return runner::from_lane(value, value, lane, "simd_shuffle", line, file);
}
template <typename T> inline T simd_broadcast(T value, ushort lane, MR_HERE) {
    return runner::from_lane(value, value, lane, "simd_broadcast", line, file);
}
template <typename T> inline T simd_shuffle_xor(T value, ushort mask, MR_HERE) {
    return runner::from_lane(value, value, MR_LANE ^ mask, "simd_shuffle_xor", line, file);
}
// The lanes at the edge keep their own value.
template <typename T> inline T simd_shuffle_down(T value, ushort delta, MR_HERE) {
    int source = MR_LANE + delta;
    return runner::from_lane(value, value, source < MR_SIMD_WIDTH ? source : -1, "simd_shuffle_down", line, file);
}
template <typename T> inline T simd_shuffle_up(T value, ushort delta, MR_HERE) {
    int source = MR_LANE - delta;
    return runner::from_lane(value, value, source >= 0 ? source : -1, "simd_shuffle_up", line, file);
}
template <typename T> inline T simd_shuffle_rotate_down(T value, ushort delta, MR_HERE) {
    return runner::from_lane(value, value, (MR_LANE + delta) % MR_SIMD_WIDTH, "simd_shuffle_rotate_down", line, file);
}
template <typename T> inline T simd_shuffle_rotate_up(T value, ushort delta, MR_HERE) {
    return runner::from_lane(value, value, (MR_LANE + MR_SIMD_WIDTH - delta % MR_SIMD_WIDTH) % MR_SIMD_WIDTH,
                             "simd_shuffle_rotate_up", line, file);
}

class simd_vote {
   public:
    typedef ulong vote_t;
    explicit constexpr simd_vote(vote_t mask = 0) : mask_(mask) {}
    explicit constexpr operator vote_t() const { return mask_; }
    constexpr bool all() const { return mask_ == 0xfffffffful; }
    constexpr bool any() const { return mask_ != 0; }

   private:
    vote_t mask_;
};
inline simd_vote simd_ballot(bool vote, MR_HERE) {
    return simd_vote(runner::ballot(vote, "simd_ballot", line, file));
}
inline simd_vote simd_active_threads_mask(MR_HERE) {
    return simd_vote(runner::ballot(true, "simd_active_threads_mask", line, file));
}
inline bool simd_all(bool vote, MR_HERE) { return runner::ballot(!vote, "simd_all", line, file) == 0; }
inline bool simd_any(bool vote, MR_HERE) { return runner::ballot(vote, "simd_any", line, file) != 0; }
inline bool simd_is_first(MR_HERE) {
    ulong active = runner::ballot(true, "simd_is_first", line, file);
    return __builtin_ctzll(active) == MR_LANE;
}
template <typename T> inline T simd_broadcast_first(T value, MR_HERE) {
    ulong active = runner::ballot(true, "simd_broadcast_first", line, file);
    return runner::from_lane(value, value, __builtin_ctzll(active), "simd_broadcast_first", line, file);
}
#undef MR_LANE

}  // namespace metal
