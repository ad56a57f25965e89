// The threads of a threadgroup as coroutines that take turns and meet at barriers and SIMD operations.
#include "faults.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum mr_state { RUNNABLE, AT_BARRIER, AT_SIMD, RETURNED };

struct mr_lane {
    jmp_buf resume_here;
    ucontext_t first;         // where it starts; afterwards a switch is a longjmp, which is ten times faster
    mr_attributes attributes;
    mr_state state;
    int is_started;
    int memory_flags, line;
    const char *file, *operation;
    void* operand;
    mr_combine combine;
};

mr_launch mr_now;
mr_u32 mr_num_groups[3];
mr_report mr_result;
mr_u8 *mr_stacks_begin, *mr_stacks_end;
mr_memory_epochs mr_device_epochs, mr_arena_epochs;
volatile int mr_is_uninterruptible;

static const mr_u64 stack_bytes = 256 * 1024;
static mr_lane lanes[MR_MAX_THREADS];
static jmp_buf scheduler_here;
static sigjmp_buf escape;
static mr_u32 current, num_threads, num_at_barrier, group_number;
static mr_u32 live_lanes[MR_MAX_THREADS / MR_SIMD_WIDTH], arrived_lanes[MR_MAX_THREADS / MR_SIMD_WIDTH];
static mr_u32 turns[MR_MAX_THREADS];
static mr_u64 random_state;
static const void* kernel_base;

static mr_u32 min_of(mr_u32 a, mr_u32 b) { return a < b ? a : b; }
static mr_u32 random_below(mr_u32 bound) {  // xorshift64*
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return static_cast<mr_u32>((random_state * 0x2545f4914f6cdd1dull) >> 33) % bound;
}

mr_u32 mr_current_thread() { return current; }
mr_u32 mr_current_group() { return group_number; }
const mr_attributes* mr_attributes_now() { return &lanes[current].attributes; }
extern "C" mr_u32 mr_current_lane() { return current % MR_SIMD_WIDTH; }

mr_u64 mr_instruction(const void* return_address) {
    return static_cast<const mr_u8*>(return_address) - static_cast<const mr_u8*>(kernel_base);
}

[[noreturn]] void mr_fail(mr_kind kind) {
    mr_result.kind = kind;
    mr_result.here.thread = lanes[current].attributes;
    siglongjmp(escape, 1);
}

static void note(mr_place_info& place, const mr_lane& lane) {
    place.line = lane.line;
    place.file = lane.file;
    place.operation = lane.operation;
    place.thread = lane.attributes;
}

[[noreturn]] static void fail_between(mr_kind kind, mr_u32 here, mr_u32 other) {
    note(mr_result.here, lanes[here]);
    note(mr_result.other, lanes[other]);
    mr_result.has_other = 1;
    current = here;
    mr_fail(kind);
}

static void park() {
    if (!_setjmp(lanes[current].resume_here)) _longjmp(scheduler_here, 1);
}

static void coroutine() {
    for (;;) {
        mr_now.entry(mr_now.buffers, &lanes[current].attributes);
        lanes[current].state = RETURNED;
        park();  // until the next threadgroup
    }
}

static void resume(mr_u32 thread) {
    current = thread;
    if (_setjmp(scheduler_here)) return;
    mr_lane& lane = lanes[thread];
    if (lane.is_started) _longjmp(lane.resume_here, 1);
    lane.is_started = 1;
    getcontext(&lane.first);
    lane.first.uc_stack.ss_sp = mr_stacks_begin + thread * stack_bytes + page();
    lane.first.uc_stack.ss_size = stack_bytes - page();
    lane.first.uc_link = nullptr;
    makecontext(&lane.first, coroutine, 0);
    setcontext(&lane.first);
}

static void combine(mr_u32 simd) {
    void* operands[MR_SIMD_WIDTH] = {};
    mr_u32 base = simd * MR_SIMD_WIDTH, first = base + static_cast<mr_u32>(__builtin_ctz(arrived_lanes[simd]));
    for (mr_u32 i = 0; i < MR_SIMD_WIDTH; i++) {
        if (!(arrived_lanes[simd] >> i & 1)) continue;
        mr_lane& lane = lanes[base + i];
        bool is_same = lane.combine == lanes[first].combine && lane.line == lanes[first].line &&
                       !strcmp(lane.operation, lanes[first].operation);
        if (!is_same) fail_between(MR_SIMD_DIVERGED, first, base + i);
        operands[i] = lane.operand;
        lane.state = RUNNABLE;
    }
    arrived_lanes[simd] = 0;
    if (lanes[first].combine) {
        lanes[first].combine(operands);
        return;
    }
    if (lanes[first].memory_flags & MR_MEM_DEVICE) mr_device_epochs.simd[simd]++;
    if (lanes[first].memory_flags & MR_MEM_THREADGROUP) mr_arena_epochs.simd[simd]++;
}

static void meet_at_simd(mr_lane& lane) {
    mr_u32 simd = current / MR_SIMD_WIDTH;
    lane.state = AT_SIMD;
    arrived_lanes[simd] |= 1u << current % MR_SIMD_WIDTH;
    if (arrived_lanes[simd] == live_lanes[simd]) combine(simd);
    else park();
}

extern "C" void mr_simd(void* operand, mr_combine combine_all, const char* operation, int line, const char* file) {
    mr_lane& lane = lanes[current];
    lane.operand = operand;
    lane.combine = combine_all;
    lane.operation = operation;
    lane.line = line;
    lane.file = file;
    meet_at_simd(lane);
}

extern "C" void mr_simd_barrier(int memory_flags, int line, const char* file) {
    lanes[current].memory_flags = memory_flags;
    mr_simd(&lanes[current], nullptr, "simdgroup_barrier", line, file);
}

extern "C" void mr_absent_lane(int lane, int source_lane) {
    current = current / MR_SIMD_WIDTH * MR_SIMD_WIDTH + static_cast<mr_u32>(lane);
    note(mr_result.here, lanes[current]);
    mr_result.first = source_lane;
    mr_result.second = current / MR_SIMD_WIDTH * MR_SIMD_WIDTH + source_lane < num_threads;
    mr_fail(MR_ABSENT_LANE);
}

extern "C" void mr_barrier(int memory_flags, int line, const char* file) {
    mr_lane& lane = lanes[current];
    lane.operation = "threadgroup_barrier";
    lane.memory_flags = memory_flags;
    lane.line = line;
    lane.file = file;
    lane.state = AT_BARRIER;
    if (++num_at_barrier < num_threads) return park();
    for (mr_u32 i = 0; i < num_threads; i++) {
        if (lanes[i].line != line || lanes[i].file != file) fail_between(MR_BARRIER_DIFFERENT, current, i);
        lanes[i].state = RUNNABLE;
    }
    num_at_barrier = 0;
    if (memory_flags & MR_MEM_DEVICE) mr_device_epochs.threadgroup++;
    if (memory_flags & MR_MEM_THREADGROUP) mr_arena_epochs.threadgroup++;
    park();  // whose turn it is behind the barrier is a matter of the order
}

static void start_group(mr_u32 group) {
    group_number = group;
    mr_attributes first;
    mr_attributes_of(group, 0, &first);
    num_threads = first.threads_per_threadgroup[0] * first.threads_per_threadgroup[1] * first.threads_per_threadgroup[2];
    num_at_barrier = 0;
    mr_forget_variables();
    memset(live_lanes, 0, sizeof live_lanes);
    memset(arrived_lanes, 0, sizeof arrived_lanes);
    memset(mr_arena, 0xff, static_cast<size_t>(mr_now.num_arena_bytes));  // NaN in every floating-point type
    for (mr_u32 i = 0; i < num_threads; i++) {
        mr_attributes_of(group, i, &lanes[i].attributes);
        lanes[i].state = RUNNABLE;
        live_lanes[i / MR_SIMD_WIDTH] |= 1u << i % MR_SIMD_WIDTH;
        turns[i] = mr_now.order == 1 ? num_threads - 1 - i : i;
    }
}

static void shuffle_turns() {
    for (mr_u32 i = num_threads; i > 1; i--) {
        mr_u32 j = random_below(i), turn = turns[i - 1];
        turns[i - 1] = turns[j];
        turns[j] = turn;
    }
}

// Nobody can go on: say who waits for whom.
static void diagnose() {
    for (mr_u32 i = 0; i < num_threads; i++) {
        if (lanes[i].state != AT_SIMD) continue;
        mr_u32 base = i / MR_SIMD_WIDTH * MR_SIMD_WIDTH;
        for (mr_u32 other = base; other < min_of(base + MR_SIMD_WIDTH, num_threads); other++)
            if (lanes[other].state == AT_BARRIER) fail_between(MR_SIMD_DIVERGED, i, other);
    }
    mr_u32 waiting = 0, returned = 0;
    while (lanes[waiting].state != AT_BARRIER) waiting++;
    while (lanes[returned].state != RETURNED) returned++;
    mr_result.first = num_at_barrier;
    mr_result.second = num_threads;
    fail_between(MR_BARRIER_RETURNED, waiting, returned);
}

static void run_group(mr_u32 group) {
    start_group(group);
    mr_u32 num_returned = 0;
    while (num_returned < num_threads) {
        if (mr_now.order == 2) shuffle_turns();
        bool has_progress = false;
        for (mr_u32 i = 0; i < num_threads; i++) {
            mr_u32 thread = turns[i], simd = thread / MR_SIMD_WIDTH;
            if (lanes[thread].state != RUNNABLE) continue;
            has_progress = true;
            resume(thread);
            if (lanes[thread].state != RETURNED) continue;
            num_returned++;
            live_lanes[simd] &= ~(1u << thread % MR_SIMD_WIDTH);
            if (arrived_lanes[simd] && arrived_lanes[simd] == live_lanes[simd]) combine(simd);
        }
        if (!has_progress) diagnose();
    }
}

static bool make_room() {
    if (!mr_stacks_begin) {
        void* stacks = mmap(nullptr, stack_bytes * MR_MAX_THREADS, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED) return false;
        mr_stacks_begin = static_cast<mr_u8*>(stacks);
        mr_stacks_end = mr_stacks_begin + stack_bytes * MR_MAX_THREADS;
        for (int i = 0; i < MR_MAX_THREADS; i++)  // a page at the end of each, for whoever needs more
            if (mprotect(mr_stacks_begin + i * stack_bytes, page(), PROT_NONE)) return false;
    }
    static mr_u8* room;
    static mr_u64 room_bytes;
    mr_u64 needed = static_cast<mr_u64>(mr_now.num_arena_bytes) + 2 * page();
    if (!room || room_bytes < needed) {
        void* mapped = mmap(nullptr, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return false;
        room = static_cast<mr_u8*>(mapped);
        room_bytes = needed;
    }
    mr_arena = room;
    return true;
}

static mr_u32 group_in_turn(mr_u32 i, mr_u32 count) {
    if (mr_now.order == 1) return count - i;
    if (mr_now.order == 0 || count < 3) return i + 1;
    return static_cast<mr_u32>((i * 0x9e3779b1ull + mr_now.seed) % count) + 1;  // a prime larger than most counts
}

// Runs every threadgroup to its end, one after another. Returns MR_OK or what went wrong, described in `report`.
extern "C" int mr_run(const mr_launch* launch, mr_report* report) {
    mr_now = *launch;
    memset(&mr_result, 0, sizeof mr_result);
    mr_result.buffer = MR_NOWHERE;
    memset(&mr_device_epochs, 0, sizeof mr_device_epochs);
    memset(&mr_arena_epochs, 0, sizeof mr_arena_epochs);
    random_state = launch->seed * 0x9e3779b97f4a7c15ull + 1;
    current = 0;
    memset(&lanes[0].attributes, 0, sizeof lanes[0].attributes);
    Dl_info info;
    kernel_base = dladdr(reinterpret_cast<void*>(launch->entry), &info) ? info.dli_fbase : nullptr;
    if (!make_room()) {
        report->kind = MR_NO_MEMORY;
        return MR_NO_MEMORY;
    }
    mr_start_checks();
    mr_u32 count = 1;
    for (int d = 0; d < 3; d++) count *= mr_num_groups[d] = (mr_now.grid[d] + mr_now.threadgroup[d] - 1) / mr_now.threadgroup[d];
    mr_catch_faults(mr_now.timeout_s);
    if (!sigsetjmp(escape, 1)) {
        for (volatile mr_u32 i = 0; i < count; i++) run_group(group_in_turn(i, count));
    } else {
        for (int i = 0; i < MR_MAX_THREADS; i++) lanes[i].is_started = 0;  // each is somewhere inside the kernel
    }
    mr_release_faults();
    *report = mr_result;
    return mr_result.kind;
}
