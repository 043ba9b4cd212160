/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory limits of the process: each limit alone, then the smallest of all, from files as Linux
 * writes them and from setrlimit(2); and the estimated memory of a run.
 */
#include "base/allocation.h"
#include "base/available_memory.h"
#include "base/error.h"
#include "base/saturate.h"
#include "execute/memory_estimate.h"
#include "machine_files.h"
#include "reference/reference.h"
#include "run_tests.h"
#include "sched/schedule.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/resource.h>

#define GIB (UINT64_C(1) << 30)

static void
check_room(uint64_t bytes, const char *limit)
{
    const LhAvailableMemory room = lh_available_memory(root);

    ck_assert_uint_eq(room.memory.bytes, bytes);
    ck_assert_str_eq(room.memory.limit, limit);
}

START_TEST(room_of_nothing_is_unlimited)
{
    begin_machine();
    check_room(UINT64_MAX, "nothing");
    end_machine();
}
END_TEST

START_TEST(room_reads_the_machine)
{
    begin_machine();
    put("/proc/meminfo", "MemTotal:       16 kB\nMemFree: 1 kB\nMemAvailable:    2097152 kB\n");
    check_room(2 * GIB, "what this machine has free");
    end_machine();
}
END_TEST

/* The group has no limit of its own but its parent has; cached files do not count as used. */
START_TEST(room_reads_groups_of_version_2)
{
    begin_machine();
    put("/proc/self/cgroup", "0::/user/job\n");
    put("/proc/meminfo", "MemAvailable: 8388608 kB\n");
    put("/sys/fs/cgroup/user/job/memory.max", "max\n");
    put("/sys/fs/cgroup/user/job/memory.current", "4096\n");
    put("/sys/fs/cgroup/user/memory.max", "4294967296\n");
    put("/sys/fs/cgroup/user/memory.current", "2147483648\n");
    put("/sys/fs/cgroup/user/memory.stat", "anon 5\ninactive_file 1073741824\nactive_file 7\n");
    check_room(3 * GIB, "the control group");
    put("/sys/fs/cgroup/user/memory.current", "6442450944\n");
    check_room(0, "the control group");
    end_machine();
}
END_TEST

START_TEST(room_reads_groups_of_version_1)
{
    begin_machine();
    put("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:devices,memory:/box\n0::/\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "9\n");
    put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2147483648\n");
    put("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "1073741824\n");
    check_room(GIB, "the control group");
    end_machine();
}
END_TEST

START_TEST(room_asks_for_ulimit)
{
    const uint64_t limit = UINT64_C(1) << 50; /* large enough for sanitizers */
    const struct rlimit most = { .rlim_cur = limit, .rlim_max = RLIM_INFINITY };
    LhAvailableMemory room;

    begin_machine();
    put("/proc/self/statm", "65536 0 0 0 0 32768 0\n");
    ck_assert_int_eq(setrlimit(RLIMIT_DATA, &most), 0);
    room = lh_available_memory(root);
    ck_assert_str_eq(room.address.limit, "ulimit -d");
    ck_assert_uint_eq(room.address.bytes,
                      limit - UINT64_C(32768) * (uint64_t)sysconf(_SC_PAGESIZE));
    end_machine();
}
END_TEST

/* A satisfiable limit and one beyond any address space. */
START_TEST(memory_is_refused_in_words)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *some = lh_memory_try(0, "nothing", &error);

    ck_assert_ptr_nonnull(some);
    ck_assert_ptr_null(lh_memory_try(UINT64_C(1) << 62, "a table", &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
    ck_assert_str_eq(error->message, "out of memory: a table needs 4194304 TiB, which the system "
                                     "does not give");
}
END_TEST

/* Ring on 4 ranks: the message contains the numbers of the run. */
START_TEST(need_counts_a_run)
{
    const LhProgramParams params = {
        .attention = { .batch = 2,
                       .seq_length = 1024,
                       .heads = 4,
                       .groups = 2,
                       .head_dim = 64,
                       .dtype = LH_DTYPE_BF16 },
        .ranks = 4,
        .mask.causal = true,
        .pass = LH_PASS_BOTH,
    };
    g_autoptr(LhProgram) program = lh_program_new(lh_schedule_find("ring", NULL), &params, NULL);
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    const LhMemoryEstimate threads = lh_memory_estimate(program, verdict, &lh_backend_cpu);
    const LhMemoryEstimate processes = lh_memory_estimate(program, verdict, &lh_backend_mpi);
    /* o, dq, dk, dv of 2 x 1024 tokens, 12 heads of 64 in bf16, and lse of 4 heads in fp32 */
    const uint64_t outputs = 2048 * (12 * 64 * 2 + 4 * 4);
    /* p and ds in fp64 of at least four tiles of 64 queries, two for each of at least two threads,
     * with all 1,024 keys */
    const uint64_t pairs = UINT64_C(4) * 64 * 1024 * 2 * 8;
    struct rlimit stack;

    ck_assert_uint_eq(threads.ranks_bytes, verdict->peak_bytes[0] + verdict->peak_bytes[1] +
                                               verdict->peak_bytes[2] + verdict->peak_bytes[3]);
    ck_assert_uint_le(processes.ranks_bytes, threads.ranks_bytes / 2);
    ck_assert_uint_ge(threads.results_bytes, outputs);
    ck_assert_uint_le(threads.results_bytes, 4 * outputs);
    ck_assert_uint_ge(threads.reference_bytes, UINT64_C(2048) * 64 * 8 * (4 * 4 + 4 * 2) + pairs);
    ck_assert_uint_eq(threads.stacks_bytes, 4 * processes.stacks_bytes);
    /* stacks of a rank's host thread and of its streams, each as large as the process's limit */
    ck_assert_int_eq(getrlimit(RLIMIT_STACK, &stack), 0);
    if (stack.rlim_cur != RLIM_INFINITY)
        ck_assert_uint_eq(processes.stacks_bytes, (1 + program->streams_count) * stack.rlim_cur);
}
END_TEST

/* A requirement too large to count exceeds any memory. */
START_TEST(need_refuses_what_cannot_fit)
{
    const LhMemoryEstimate small = { .ranks_bytes = 1 },
                           large = { .reference_bytes = UINT64_MAX - 5, .ranks_bytes = 100 };
    g_autoptr(GError) error = NULL;

    ck_assert(lh_memory_estimate_check(&small, &error));
    ck_assert(!lh_memory_estimate_check(&large, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO));
    ck_assert_ptr_nonnull(strstr(error->message, "fp64 reference"));
}
END_TEST

/* The same for attention whose parts could each be counted. */
START_TEST(what_is_too_large_to_count_is_the_most)
{
    const LhAttention vast = { .batch = 1U << 20,
                               .seq_length = UINT64_C(1) << 31,
                               .heads = 65536,
                               .groups = 65536,
                               .head_dim = 128 };

    ck_assert_uint_eq(lh_plus(UINT64_MAX - 1, 1), UINT64_MAX);
    ck_assert_uint_eq(lh_plus(UINT64_MAX, 1), UINT64_MAX);
    ck_assert_uint_eq(lh_times(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1),
                      ((UINT64_C(1) << 32) - 1) << 32);
    ck_assert_uint_eq(lh_times(UINT64_C(1) << 32, UINT64_C(1) << 32), UINT64_MAX);
    ck_assert_uint_eq(lh_reference_bytes(&vast), UINT64_MAX);
    ck_assert_uint_eq(lh_reference_work_bytes(&vast, 2), UINT64_MAX);
}
END_TEST

LH_TEST_MAIN("room", room_of_nothing_is_unlimited, room_reads_the_machine,
             room_reads_groups_of_version_2, room_reads_groups_of_version_1, room_asks_for_ulimit,
             memory_is_refused_in_words, need_counts_a_run, need_refuses_what_cannot_fit,
             what_is_too_large_to_count_is_the_most)
