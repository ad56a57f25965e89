// Threadgroup variables: each declaration gets its place in the memory of the threadgroup when a thread first reaches it.
#include "runtime.h"

#include <string.h>

struct mr_variable {
    int site;
    mr_u32 begin, end;
    const char* name;
};

mr_u8* mr_arena;

static const int max_variables = 256;
static mr_variable variables[max_variables];
static int num_variables;

void mr_forget_variables() { num_variables = 0; }

extern "C" void* mr_threadgroup_variable(
    mr_u64 num_bytes, mr_u64 alignment, int site, const char* name, int line, const char* file) {
    for (int i = 0; i < num_variables; i++)
        if (variables[i].site == site) return mr_arena + variables[i].begin;
    mr_u64 begin = num_variables ? variables[num_variables - 1].end : 0;
    begin = (begin + alignment - 1) / alignment * alignment;
    if (begin + num_bytes > static_cast<mr_u64>(mr_now.num_arena_bytes) || num_variables == max_variables) {
        mr_result.here.line = line;
        mr_result.here.file = file;
        mr_result.first = static_cast<long long>(begin + num_bytes);
        mr_result.second = mr_now.num_arena_bytes;
        strncpy(mr_result.name, name, sizeof mr_result.name - 1);
        mr_fail(MR_THREADGROUP_MEMORY);
    }
    variables[num_variables++] = {site, static_cast<mr_u32>(begin), static_cast<mr_u32>(begin + num_bytes), name};
    return mr_arena + begin;
}

void mr_locate_arena(const void* address, mr_report* report) {
    mr_u32 offset = static_cast<mr_u32>(static_cast<const mr_u8*>(address) - mr_arena);
    for (int i = 0; i < num_variables; i++) {
        if (offset < variables[i].begin || offset >= variables[i].end) continue;
        strncpy(report->name, variables[i].name, sizeof report->name - 1);
        report->offset = offset - variables[i].begin;
    }
}
