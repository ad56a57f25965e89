// Every buffer has a window of reserved addresses to itself, and ends where a page without access begins: an access
// beside it faults, and its address tells which buffer was meant.
#include "runtime.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

mr_buffer mr_buffers[MR_MAX_BUFFERS];
int mr_num_buffers;

static mr_u8* reserved;
static mr_u64 window_bytes;
static const mr_u64 largest_window = 1ull << 36, least_guard = 1ull << 20;

static mr_u64 up_to(mr_u64 value, mr_u64 multiple) { return (value + multiple - 1) / multiple * multiple; }
static mr_u64 page_bytes() { return static_cast<mr_u64>(sysconf(_SC_PAGESIZE)); }

static void* map_nothing(mr_u64 bytes) {
    void* address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return address == MAP_FAILED ? nullptr : address;
}

extern "C" void mr_close() {
    for (int i = 0; i < mr_num_buffers; i++)
        if (mr_buffers[i].cells)
            munmap(mr_buffers[i].cells, (mr_buffers[i].end - mr_buffers[i].begin) / mr_buffers[i].itemsize * sizeof(mr_cell));
    if (reserved) munmap(reserved, window_bytes * mr_num_buffers);
    reserved = nullptr;
    mr_num_buffers = 0;
    memset(mr_buffers, 0, sizeof mr_buffers);
}

// Windows for `count` buffers of at most `largest` bytes; under a limit on address space, smaller ones.
extern "C" int mr_open(int count, mr_u64 largest, int allows_stray_reads) {
    mr_close();
    if (count > MR_MAX_BUFFERS) return 0;
    for (window_bytes = largest_window; window_bytes / 2 >= largest + least_guard; window_bytes /= 2) {
        reserved = static_cast<mr_u8*>(map_nothing(window_bytes * count));
        if (!reserved) continue;
        mr_num_buffers = count;
        // Readable without being written: every page of it is the system's one page of zeros.
        if (allows_stray_reads && mprotect(reserved, window_bytes * count, PROT_READ)) return 0;
        return 1;
    }
    return 0;
}

// Room for the bytes of buffer `i`, aligned to 16 and writable until mr_seal. Null when there is no memory.
extern "C" void* mr_place(int i, mr_u64 num_bytes, mr_u32 itemsize, int is_output, int is_initialised, int is_checked) {
    mr_buffer& buffer = mr_buffers[i];
    mr_u64 room = up_to(num_bytes, 16), pages = up_to(room, page_bytes());
    mr_u8* middle = reserved + window_bytes * i + window_bytes / 2;
    buffer = {reserved + window_bytes * i, middle - room, middle - room + num_bytes, itemsize, is_output, is_initialised, nullptr};
    if (pages && mprotect(middle - pages, pages, PROT_READ | PROT_WRITE)) return nullptr;
    if (!is_checked || !is_output || !num_bytes) return buffer.begin;
    void* cells = mmap(nullptr, num_bytes / itemsize * sizeof(mr_cell), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cells == MAP_FAILED) return nullptr;
    buffer.cells = static_cast<mr_cell*>(cells);
    return buffer.begin;
}

extern "C" int mr_seal() {
    for (int i = 0; i < mr_num_buffers; i++) {
        mr_u8* middle = reserved + window_bytes * i + window_bytes / 2;
        mr_u64 pages = up_to(middle - mr_buffers[i].begin, page_bytes());
        if (!mr_buffers[i].is_output && pages && mprotect(middle - pages, pages, PROT_READ)) return 0;
    }
    return 1;
}

// How many items of an output no thread has written, and the first of them.
extern "C" mr_u64 mr_unwritten(int i, mr_u64* first) {
    mr_buffer& buffer = mr_buffers[i];
    mr_u64 count = 0, items = buffer.cells ? (buffer.end - buffer.begin) / buffer.itemsize : 0;
    for (mr_u64 item = items; item-- > 0;)
        if (!buffer.cells[item].write.group && !buffer.cells[item].atomics[0].group) count++, *first = item;
    return count;
}

int mr_buffer_at(const void* address) {
    auto at = static_cast<const mr_u8*>(address);
    if (!reserved || at < reserved || at >= reserved + window_bytes * mr_num_buffers) return MR_NOWHERE;
    return static_cast<int>((at - reserved) / window_bytes);
}
