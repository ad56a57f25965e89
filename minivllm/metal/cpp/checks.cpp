// The check mode. The kernel is compiled as for the thread and bounds sanitizers, and their calls end here: before
// every access of memory that threads share, this looks up who touched it since the last barrier.
#include "runtime.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

static mr_cell* arena_cells;  // one for each byte
static int num_arena_cells;
static const void *kernel_base, *known_page;

void mr_start_checks() {
    if (!mr_now.is_checked) return;
    Dl_info info;
    kernel_base = dladdr(reinterpret_cast<void*>(mr_now.entry), &info) ? info.dli_fbase : nullptr;
    known_page = nullptr;
    if (arena_cells) munmap(arena_cells, sizeof(mr_cell) * static_cast<size_t>(num_arena_cells));
    num_arena_cells = mr_now.num_arena_bytes;
    arena_cells = static_cast<mr_cell*>(mmap(nullptr, sizeof(mr_cell) * static_cast<size_t>(num_arena_cells),
                                             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (arena_cells == MAP_FAILED) arena_cells = nullptr;
}

struct mr_touch {
    const mr_u8* address;
    int num_bytes;
    bool is_write, is_atomic, is_read;
    mr_u64 instruction;
};

static bool is_ordered(const mr_access& earlier, const mr_access& now, bool is_arena) {
    if (earlier.group != now.group) return is_arena || !earlier.group;  // a threadgroup's memory begins anew
    if (earlier.thread == now.thread || earlier.epoch < now.epoch) return true;
    return earlier.thread / MR_SIMD_WIDTH == now.thread / MR_SIMD_WIDTH && earlier.simd_epoch < now.simd_epoch;
}

[[noreturn]] static void report_race(const mr_touch& touch, const mr_access& earlier, bool was_write, bool is_arena) {
    mr_result.has_other = 1;
    mr_result.other.instruction = earlier.instruction;
    mr_result.other.is_write = was_write;
    mr_attributes_of(earlier.group, earlier.thread, &mr_result.other.thread);
    if (!is_arena) mr_fail_at(MR_RACE, touch.address, touch.num_bytes, touch.is_write, touch.instruction);
    mr_locate_arena(touch.address, &mr_result);
    mr_result.buffer = MR_ARENA;
    mr_result.num_bytes = touch.num_bytes;
    mr_result.here.is_write = touch.is_write;
    mr_result.here.instruction = touch.instruction;
    mr_fail(MR_RACE);
}

static void check_order(const mr_touch& touch, const mr_access& earlier, bool was_write, const mr_access& now, bool is_arena) {
    if (!is_ordered(earlier, now, is_arena)) report_race(touch, earlier, was_write, is_arena);
}

// Two accesses by different threads that no barrier separates are enough: whoever comes differs from one of them.
static void keep(mr_access (&kept)[2], const mr_access& now, bool is_arena) {
    bool is_mine = kept[0].group == now.group && kept[0].thread == now.thread;
    kept[is_mine || is_ordered(kept[0], now, is_arena) ? 0 : 1] = now;
}

static void touch_cell(mr_cell& cell, const mr_touch& touch, const mr_access& now, bool is_arena) {
    check_order(touch, cell.write, true, now, is_arena);
    if (!touch.is_atomic)  // atomics do not race with each other
        for (const mr_access& atomic : cell.atomics) check_order(touch, atomic, true, now, is_arena);
    if (touch.is_write)
        for (const mr_access& read : cell.reads) check_order(touch, read, false, now, is_arena);
    if (touch.is_atomic && !touch.is_write) return;  // a load is forgotten: it could race with a plain write only
    if (touch.is_atomic) keep(cell.atomics, now, is_arena);
    else if (touch.is_write) cell.write = now;
    else keep(cell.reads, now, is_arena);
}

// In this threadgroup for its own memory, by anyone for an output.
static bool is_written(const mr_cell& cell, const mr_access& now, bool is_arena) {
    if (!is_arena) return cell.write.group || cell.atomics[0].group;
    return cell.write.group == now.group || cell.atomics[0].group == now.group;
}

[[noreturn]] static void report_uninitialised(const mr_touch& touch, bool is_arena) {
    if (!is_arena) mr_fail_at(MR_UNINITIALISED, touch.address, touch.num_bytes, false, touch.instruction);
    mr_locate_arena(touch.address, &mr_result);
    mr_result.buffer = MR_ARENA;
    mr_result.num_bytes = touch.num_bytes;
    mr_result.here.instruction = touch.instruction;
    mr_fail(MR_UNINITIALISED);
}

static mr_access access_now(const mr_memory_epochs& epochs, const mr_touch& touch) {
    mr_u32 thread = mr_current_thread();
    return {mr_current_group(), static_cast<mr_u16>(thread), epochs.threadgroup, epochs.simd[thread / MR_SIMD_WIDTH],
            static_cast<mr_u32>(touch.instruction)};
}

static void touch_arena(const mr_touch& touch) {
    mr_u64 offset = static_cast<mr_u64>(touch.address - mr_arena);
    mr_access now = access_now(mr_arena_epochs, touch);
    for (mr_u64 i = offset; i < offset + static_cast<mr_u64>(touch.num_bytes) && i < static_cast<mr_u64>(num_arena_cells); i++) {
        mr_cell& cell = arena_cells[i];
        if (touch.is_read && !is_written(cell, now, true)) report_uninitialised(touch, true);
        touch_cell(cell, touch, now, true);
    }
}

static void touch_buffer(int index, const mr_touch& touch) {
    mr_buffer& buffer = mr_buffers[index];
    bool is_inside = touch.address >= buffer.begin && touch.address + touch.num_bytes <= buffer.end;
    if (!is_inside) {
        if (mr_now.allows_stray_reads && !touch.is_write) return;
        mr_fail_at(MR_OUT_OF_RANGE, touch.address, touch.num_bytes, touch.is_write, touch.instruction);
    }
    if (!buffer.is_output) {
        if (touch.is_write) mr_fail_at(MR_WRITE_TO_INPUT, touch.address, touch.num_bytes, true, touch.instruction);
        return;
    }
    mr_access now = access_now(mr_device_epochs, touch);
    mr_u64 first = static_cast<mr_u64>(touch.address - buffer.begin) / buffer.itemsize;
    mr_u64 last = static_cast<mr_u64>(touch.address - buffer.begin + touch.num_bytes - 1) / buffer.itemsize;
    for (mr_u64 i = first; i <= last; i++) {
        mr_cell& cell = buffer.cells[i];
        if (touch.is_read && !buffer.is_initialised && !is_written(cell, now, false)) report_uninitialised(touch, false);
        touch_cell(cell, touch, now, false);
    }
}

// Constants of the kernel's own library may be read; anything else that is no buffer is a pointer gone astray.
static void touch_elsewhere(const mr_touch& touch) {
    auto page = reinterpret_cast<const void*>(reinterpret_cast<mr_u64>(touch.address) >> 12);
    if (page == known_page) return;
    Dl_info info;
    mr_is_uninterruptible = 1;  // the loader holds a lock
    bool is_ours = dladdr(const_cast<mr_u8*>(touch.address), &info) && info.dli_fbase == kernel_base;
    mr_is_uninterruptible = 0;
    if (!is_ours) mr_fail_at(MR_WILD_ADDRESS, touch.address, touch.num_bytes, touch.is_write, touch.instruction);
    known_page = page;
}

static void look_at(const mr_touch& touch) {
    if (touch.address >= mr_stacks_begin && touch.address < mr_stacks_end) return;
    if (touch.address >= mr_arena && touch.address < mr_arena + mr_now.num_arena_bytes) return touch_arena(touch);
    int index = mr_buffer_at(touch.address);
    if (index >= 0) touch_buffer(index, touch);
    else touch_elsewhere(touch);
}

static void look(const volatile void* address, mr_u64 num_bytes, bool is_write, const void* return_address) {
    look_at({static_cast<const mr_u8*>(const_cast<const void*>(address)), static_cast<int>(num_bytes), is_write, false,
             !is_write, mr_instruction(return_address) - 1});
}

extern "C" {

void mr_atomic_access(const volatile void* address, int num_bytes, int reads_and_writes, int line, const char* file) {
    if (!mr_now.is_checked) return;
    mr_u64 in_header = file[0] == 'h' ? static_cast<mr_u64>(MR_LINE_OF_HEADER) : 0;
    look_at({static_cast<const mr_u8*>(const_cast<const void*>(address)), num_bytes, (reads_and_writes & MR_WRITES) != 0, true,
             (reads_and_writes & MR_READS) != 0, MR_LINE | in_header | static_cast<mr_u64>(line)});
}

#define MR_CALLBACKS(n)                                                                                            \
    void __tsan_read##n(void* a) { look(a, n, false, __builtin_return_address(0)); }                        \
    void __tsan_write##n(void* a) { look(a, n, true, __builtin_return_address(0)); }                        \
    void __tsan_unaligned_read##n(void* a) { look(a, n, false, __builtin_return_address(0)); }              \
    void __tsan_unaligned_write##n(void* a) { look(a, n, true, __builtin_return_address(0)); }              \
    void __tsan_volatile_read##n(void* a) { look(a, n, false, __builtin_return_address(0)); }               \
    void __tsan_volatile_write##n(void* a) { look(a, n, true, __builtin_return_address(0)); }               \
    void __tsan_unaligned_volatile_read##n(void* a) { look(a, n, false, __builtin_return_address(0)); }     \
    void __tsan_unaligned_volatile_write##n(void* a) { look(a, n, true, __builtin_return_address(0)); }     \
    void __tsan_read_write##n(void* a) {                                                                           \
        look(a, n, false, __builtin_return_address(0));                                                     \
        look(a, n, true, __builtin_return_address(0));                                                      \
    }                                                                                                              \
    void __tsan_unaligned_read_write##n(void* a) {                                                                 \
        look(a, n, false, __builtin_return_address(0));                                                     \
        look(a, n, true, __builtin_return_address(0));                                                      \
    }
MR_CALLBACKS(1)
MR_CALLBACKS(2)
MR_CALLBACKS(4)
MR_CALLBACKS(8)
MR_CALLBACKS(16)
void __tsan_read_range(void* a, unsigned long n) { look(a, n, false, __builtin_return_address(0)); }
void __tsan_write_range(void* a, unsigned long n) { look(a, n, true, __builtin_return_address(0)); }
void* __tsan_memcpy(void* to, const void* from, unsigned long n) {
    look(from, n, false, __builtin_return_address(0));
    look(to, n, true, __builtin_return_address(0));
    return memcpy(to, from, n);
}
void* __tsan_memmove(void* to, const void* from, unsigned long n) {
    look(from, n, false, __builtin_return_address(0));
    look(to, n, true, __builtin_return_address(0));
    return memmove(to, from, n);
}
void* __tsan_memset(void* to, int value, unsigned long n) {
    look(to, n, true, __builtin_return_address(0));
    return memset(to, value, n);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

// The layouts of the bounds sanitizer's descriptors, as GCC and Clang emit them.
struct mr_source_location {
    const char* file;
    mr_u32 line, column;
};
struct mr_type_descriptor {
    mr_u16 kind, info;
    char name[1];
};
struct mr_bounds_data {
    mr_source_location location;
    const mr_type_descriptor *array, *index;
};

void __ubsan_handle_out_of_bounds(mr_bounds_data* data, mr_u64 index) {
    mr_u32 bits = 1u << (data->index->info >> 1);
    bool is_signed = data->index->info & 1;
    mr_result.first = static_cast<long long>(index);
    if (is_signed && bits == 32) mr_result.first = static_cast<int>(index);
    mr_result.here.line = static_cast<int>(data->location.line);
    mr_result.here.file = data->location.file;
    strncpy(mr_result.name, data->array->name, sizeof mr_result.name - 1);
    mr_fail(MR_FIXED_ARRAY_INDEX);
}
void __ubsan_handle_out_of_bounds_abort(mr_bounds_data* data, mr_u64 index) { __ubsan_handle_out_of_bounds(data, index); }
}
