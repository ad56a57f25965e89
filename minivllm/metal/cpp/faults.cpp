// Turns what would kill the process (a bad address, an integer division by zero, a full stack) and what would hang it
// (an endless loop, Ctrl-C that nobody hears) into a report. Signal handlers belong to the process: one kernel at a time.
#include "faults.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGINT, SIGURG};
static const int num_caught = sizeof caught / sizeof caught[0];
static struct sigaction before[num_caught];
static stack_t stack_before;
static mr_u8 signal_stack[1 << 16];
static pthread_t kernel_thread, watchdog;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static bool is_finished, has_watchdog;
static volatile sig_atomic_t is_overdue;
static double allowed_s;

mr_u64 page() {
    static mr_u64 bytes = static_cast<mr_u64>(sysconf(_SC_PAGESIZE));
    return bytes;
}

static const void* instruction_of(void* context) {
    auto machine = &static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__linux__) && defined(__x86_64__)
    return reinterpret_cast<void*>(machine->gregs[REG_RIP]);
#elif defined(__linux__) && defined(__aarch64__)
    return reinterpret_cast<void*>(machine->pc);
#elif defined(__APPLE__) && defined(__x86_64__)
    return reinterpret_cast<void*>((*machine)->__ss.__rip);
#elif defined(__APPLE__)
    return reinterpret_cast<void*>(__darwin_arm_thread_state64_get_pc((*machine)->__ss));
#endif
}

static bool is_write_fault(void* context) {
    auto machine = &static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__linux__) && defined(__x86_64__)
    return machine->gregs[REG_ERR] & 2;
#elif defined(__APPLE__) && defined(__x86_64__)
    return (*machine)->__es.__err & 2;
#elif defined(__APPLE__)
    return (*machine)->__es.__esr & 0x40;
#else
    (void)machine;
    return false;
#endif
}

void mr_fail_at(mr_kind kind, const void* address, int num_bytes, int is_write, mr_u64 instruction) {
    int index = mr_buffer_at(address);
    mr_result.here.instruction = instruction;
    mr_result.here.is_write = is_write;
    mr_result.num_bytes = num_bytes;
    mr_result.buffer = index;
    if (index >= 0) mr_result.offset = static_cast<const mr_u8*>(address) - mr_buffers[index].begin;
    mr_fail(kind);
}

static void on_bad_address(const void* address, bool is_write, mr_u64 instruction) {
    int index = mr_buffer_at(address);
    auto at = static_cast<const mr_u8*>(address);
    if (index < 0) {
        bool is_stack = at >= mr_stacks_begin && at < mr_stacks_end;
        mr_fail_at(is_stack ? MR_STACK_OVERFLOW : MR_WILD_ADDRESS, address, 0, is_write, instruction);
    }
    bool is_inside = at >= mr_buffers[index].begin && at < mr_buffers[index].end;
    mr_fail_at(is_inside ? MR_WRITE_TO_INPUT : MR_OUT_OF_RANGE, address, 0, is_write || is_inside, instruction);
}

static void on_signal(int number, siginfo_t* info, void* context) {
    if (!pthread_equal(pthread_self(), kernel_thread)) {  // not ours: as if we had never been here
        if (number == SIGINT) {
            pthread_kill(kernel_thread, SIGINT);
            return;
        }
        for (int i = 0; i < num_caught; i++)
            if (caught[i] == number) sigaction(number, &before[i], nullptr);
        return;
    }
    if (mr_is_uninterruptible && (number == SIGINT || number == SIGURG)) return;  // the watchdog asks again
    mr_u64 instruction = mr_instruction(instruction_of(context));
    switch (number) {
        case SIGURG:
            if (is_overdue) mr_fail_at(MR_TIMEOUT, nullptr, 0, 0, instruction);
            return;
        case SIGINT: mr_fail_at(MR_INTERRUPTED, nullptr, 0, 0, instruction);
        case SIGFPE: mr_fail_at(MR_DIVISION_BY_ZERO, nullptr, 0, 0, instruction);
        case SIGILL: mr_fail_at(MR_ILLEGAL_INSTRUCTION, nullptr, 0, 0, instruction);
        default: on_bad_address(info->si_addr, is_write_fault(context), instruction);
    }
}

static timespec after(double seconds) {
    timeval now;
    gettimeofday(&now, nullptr);
    double nanoseconds = static_cast<double>(now.tv_usec) * 1e3 + (seconds - static_cast<double>(static_cast<long>(seconds))) * 1e9;
    long carry = static_cast<long>(nanoseconds / 1e9);
    return {now.tv_sec + static_cast<long>(seconds) + carry, static_cast<long>(nanoseconds - static_cast<double>(carry) * 1e9)};
}

static void* watch(void*) {
    timespec deadline = after(allowed_s);
    pthread_mutex_lock(&mutex);
    while (!is_finished) {
        if (pthread_cond_timedwait(&finished, &mutex, &deadline) != ETIMEDOUT || is_finished) continue;
        is_overdue = 1;
        pthread_kill(kernel_thread, SIGURG);
        deadline = after(0.02);
    }
    pthread_mutex_unlock(&mutex);
    return nullptr;
}

void mr_catch_faults(double timeout_s) {
    kernel_thread = pthread_self();
    stack_t stack = {};
    stack.ss_sp = signal_stack;
    stack.ss_size = sizeof signal_stack;
    sigaltstack(&stack, &stack_before);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < num_caught; i++) sigaction(caught[i], &action, &before[i]);
    is_finished = false;
    is_overdue = 0;
    allowed_s = timeout_s;
    sigset_t all, mask;  // the watchdog takes no signal meant for others
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    has_watchdog = timeout_s > 0 && !pthread_create(&watchdog, nullptr, watch, nullptr);
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

void mr_release_faults() {
    pthread_mutex_lock(&mutex);
    is_finished = true;
    pthread_cond_signal(&finished);
    pthread_mutex_unlock(&mutex);
    if (has_watchdog) pthread_join(watchdog, nullptr);
    for (int i = 0; i < num_caught; i++) sigaction(caught[i], &before[i], nullptr);
    sigaltstack(&stack_before, nullptr);
}
