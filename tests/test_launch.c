/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes started by torchrun or Slurm: their environment, valid and hostile frames, and a star
 * of processes forked here.
 */
#include "base/error.h"
#include "run_tests.h"
#include "runtime/api/control.h"
#include "runtime/process/handshake.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the environment ---- */

static void
set(const char *name, const char *value)
{
    if (value == NULL)
        g_unsetenv(name);
    else
        g_setenv(name, value, TRUE);
}

static void
set_torchrun(const char *rank, const char *size, const char *port)
{
    set("RANK", rank);
    set("WORLD_SIZE", size);
    set("MASTER_ADDR", "127.0.0.1");
    set("MASTER_PORT", port);
}

START_TEST(torchrun_says_where)
{
    LhLauncherEnv launch, other;

    set_torchrun("3", "8", "29500");
    ck_assert(lh_launcher_env_torchrun(&launch, NULL));
    ck_assert_uint_eq(launch.rank, 3);
    ck_assert_uint_eq(launch.size, 8);
    ck_assert_uint_eq(launch.port, 29501);
    ck_assert_str_eq(launch.host, "127.0.0.1");
    /* All ranks of a job have one token, which differs between jobs. */
    set("RANK", "4");
    ck_assert(lh_launcher_env_torchrun(&other, NULL));
    ck_assert_mem_eq(launch.token, other.token, LH_TOKEN_BYTES);
    lh_launcher_env_clear(&other);
    set("TORCHELASTIC_RUN_ID", "job-7");
    ck_assert(lh_launcher_env_torchrun(&other, NULL));
    ck_assert_mem_ne(launch.token, other.token, LH_TOKEN_BYTES);
    lh_launcher_env_clear(&other);
    lh_launcher_env_clear(&launch);
}
END_TEST

static void
refuses_torchrun(const char *name, const char *value, const char *words)
{
    g_autoptr(GError) error = NULL;
    LhLauncherEnv launch;

    set_torchrun("3", "8", "29500");
    set(name, value);
    ck_assert(!lh_launcher_env_torchrun(&launch, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_USAGE));
    ck_assert_msg(g_str_has_prefix(error->message, name) && strstr(error->message, words) != NULL,
                  "%s", error->message);
}

START_TEST(torchrun_may_be_wrong)
{
    refuses_torchrun("RANK", NULL, "is not set; allowed: a number");
    refuses_torchrun("RANK", "8", "from 0 to 7");
    refuses_torchrun("RANK", "-1", "allowed: a number");
    refuses_torchrun("WORLD_SIZE", "0", "from 1 to");
    refuses_torchrun("WORLD_SIZE", "99999999999", "allowed: a number");
    refuses_torchrun("MASTER_PORT", "65535", "from 1 to 65534");
    refuses_torchrun("MASTER_ADDR", NULL, "is not set");
    refuses_torchrun("MASTER_ADDR", "", "is \"\"");
    refuses_torchrun("MASTER_ADDR", "a b", "is \"a b\"");
}
END_TEST

START_TEST(slurm_says_where)
{
    LhLauncherEnv launch, step;

    set("SLURM_PROCID", "1");
    set("SLURM_NTASKS", "4");
    set("SLURM_JOB_ID", "4000000000");
    set("SLURM_STEP_ID", "2");
    set("SLURM_STEP_NODELIST", "gpu[007-010,12],login");
    ck_assert(lh_launcher_env_slurm(&launch, NULL));
    ck_assert_str_eq(launch.host, "gpu007");
    ck_assert_uint_eq(launch.rank, 1);
    ck_assert_uint_eq(launch.size, 4);
    ck_assert_uint_ge(launch.port, 15000);
    ck_assert_uint_lt(launch.port, 30000);
    /* Concurrent steps of a job have different tokens. */
    set("SLURM_STEP_ID", "3");
    ck_assert(lh_launcher_env_slurm(&step, NULL));
    ck_assert_uint_ne(launch.port, step.port);
    ck_assert_mem_ne(launch.token, step.token, LH_TOKEN_BYTES);
    lh_launcher_env_clear(&launch);
    lh_launcher_env_clear(&step);
    set("SLURM_STEP_NODELIST", "gpu[");
    ck_assert(!lh_launcher_env_slurm(&launch, NULL));
}
END_TEST

START_TEST(first_hosts_are_expanded)
{
    static const char *const lists[][2] = {
        { "a", "a" },
        { "a,b", "a" },
        { "a[1-3]", "a1" },
        { "a[01,03]", "a01" },
        { "a[7]-ib", "a7-ib" },
        { "r[1-2]n[05-06],x", "r1n05" },
        { "10.0.0.1", "10.0.0.1" },
        { "", NULL },
        { ",a", NULL },
        { "a[", NULL },
        { "a[]", NULL },
        { "a[x]", NULL },
        { "a[1", NULL },
        { "a[1;2]", NULL },
        { "a b", NULL },
        { "-a", NULL },
        { "a]", NULL },
        { "\x1b[31m", NULL },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_autofree char *host = lh_launcher_env_first_host(lists[i][0]);

        ck_assert_msg(g_strcmp0(host, lists[i][1]) == 0, "\"%s\": \"%s\"", lists[i][0], host);
    }
}
END_TEST

/* ---- choice of the control plane ---- */

START_TEST(environment_chooses)
{
    ck_assert_ptr_eq(lh_control_resolve(&lh_control_auto), &lh_control_single);
    set("SLURM_STEP_NODELIST", "a");
    set("SLURM_NTASKS", "1");
    ck_assert_ptr_eq(lh_control_resolve(&lh_control_auto), &lh_control_single);
    set("SLURM_NTASKS", "2");
    ck_assert_ptr_eq(lh_control_resolve(&lh_control_auto), &lh_control_slurm);
    set_torchrun("0", "2", "1");
    ck_assert_ptr_eq(lh_control_resolve(&lh_control_auto), &lh_control_torchrun);
    set("PMIX_RANK", "0");
    ck_assert_ptr_eq(lh_control_resolve(&lh_control_auto), &lh_control_mpi);
    ck_assert_ptr_eq(lh_control_resolve(&lh_control_slurm), &lh_control_slurm);
}
END_TEST

/* ---- frames ---- */

static void
append(GByteArray *to, GBytes *bytes)
{
    g_byte_array_append(to, g_bytes_get_data(bytes, NULL), (guint)g_bytes_get_size(bytes));
    g_bytes_unref(bytes);
}

START_TEST(frames_come_in_pieces)
{
    g_autoptr(GByteArray) all = g_byte_array_new();
    g_autoptr(GByteArray) received = g_byte_array_new();
    LhControlFrame frame;
    uint32_t rank;
    int status;
    guint taken = 0;

    append(all, lh_control_frame_header(LH_FRAME_WELCOME, 0));
    append(all, lh_control_frame_header(LH_FRAME_FAILURE, 8 + 5));
    append(all, lh_failure_pack(6, 3, "words"));
    for (guint i = 0; i < all->len; i++) {
        g_byte_array_append(received, all->data + i, 1);
        if (lh_control_frame_take(received, 100, &frame, NULL) == 0)
            continue;
        ck_assert_int_eq(frame.kind, taken == 0 ? LH_FRAME_WELCOME : LH_FRAME_FAILURE);
        if (taken++ == 1) {
            g_autofree char *text = lh_failure_unpack(frame.content, &rank, &status);

            ck_assert_str_eq(text, "words");
            ck_assert_uint_eq(rank, 6);
            ck_assert_int_eq(status, 3);
        }
        lh_control_frame_clear(&frame);
    }
    ck_assert_uint_eq(taken, 2);
    ck_assert_uint_eq(received->len, 0);
}
END_TEST

static void
refuses_frame(const char *bytes, guint count, const char *words)
{
    g_autoptr(GByteArray) received = g_byte_array_new();
    g_autoptr(GError) error = NULL;
    LhControlFrame frame;

    g_byte_array_append(received, (const guint8 *)bytes, count);
    ck_assert_int_eq(lh_control_frame_take(received, 100, &frame, &error), -1);
    ck_assert_msg(strstr(error->message, words) != NULL, "%s", error->message);
}

START_TEST(hostile_frames_are_refused)
{
    g_autoptr(GBytes) nothing = g_bytes_new(NULL, 0);
    LhStanding standing;
    LhHello hello;
    uint32_t rank;
    int status;

    refuses_frame("GET / HTTP/1.1", 14, "does not send longhaul frames");
    refuses_frame("x", 1, "does not send longhaul frames");
    refuses_frame("lhF1\x7f", 5, "does not send longhaul frames");
    refuses_frame("lhF1\x01\x00\x01\x00", 8, "does not send longhaul frames");
    refuses_frame("lhF1\x01\x00\x00\x00\x65\x00\x00\x00", 12, "it announces 101 bytes");
    refuses_frame("lhF1\x01\x00\x00\x00\xff\xff\xff\xff", 12, "it announces 4294967295 bytes");
    ck_assert(!lh_hello_unpack(nothing, &hello));
    ck_assert_ptr_null(lh_failure_unpack(nothing, &rank, &status));
    ck_assert(!lh_standing_unpack(nothing, &standing));
}
END_TEST

/* ---- a star of processes ---- */

#define RANKS 4
#define FAR_US (100 * G_USEC_PER_SEC) /* a deadline that is never reached */
#define NEAR_US (5 * G_USEC_PER_SEC)
#define SHORT_US (1 * G_USEC_PER_SEC)
#define WELL 0
#define GONE 7
#define WORD_BYTES 1000003
#define WORDS_MAX (RANKS * (gsize)WORD_BYTES)

static gint64 deadline_us = FAR_US;
static int others[2]; /* a pipe that closes when all ranks but 2 have ended */

/* Reserves a port that nobody listens at and that no other process gets while @held is open. The
 * variable is torchrun's; the control plane uses the next port. */
static char *
free_port(int *held)
{
    const int on = 1, one = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(at);

    ck_assert_int_eq(bind(one, (struct sockaddr *)&at, length), 0);
    ck_assert_int_eq(getsockname(one, (struct sockaddr *)&at, &length), 0);
    /* Ranks that set the same option can bind it too. */
    ck_assert_int_eq(setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    *held = one;
    return g_strdup_printf("%d", ntohs(at.sin_port) - 1);
}

/* Of the first process; 127.0.0.2 makes it a separate host to the others. */
static const char *first_address = "127.0.0.1";

/* The work of a rank's process. */
static int
be_rank(uint32_t rank, const char *port, int (*work)(uint32_t rank, void *control))
{
    char text[16];
    LhControlPlace place;
    void *control;

    g_snprintf(text, sizeof(text), "%u", rank);
    set_torchrun(text, "4", port);
    set("MASTER_ADDR", first_address);
    control = lh_control_torchrun.open(RANKS, deadline_us, &place, NULL);
    /* All ranks are connected before any of them proceeds. */
    if (control == NULL || place.first != rank || place.count != 1 ||
        !lh_control_torchrun.barrier(control, NULL))
        return 1;
    return work(rank, control);
}

/* Forks a process per rank that does @work; @status [RANKS] gets the exit statuses. */
static void
run_ranks(int (*work)(uint32_t rank, void *control), int *status)
{
    int held;
    g_autofree char *port = free_port(&held);
    pid_t pids[RANKS];

    ck_assert_int_eq(pipe(others), 0);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        pids[rank] = fork();
        ck_assert_int_ge(pids[rank], 0);
        if (pids[rank] == 0)
            exit(be_rank(rank, port, work));
    }
    close(others[0]);
    close(others[1]);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ck_assert_int_eq(waitpid(pids[rank], &status[rank], 0), pids[rank]);
        status[rank] = WIFEXITED(status[rank]) ? WEXITSTATUS(status[rank]) : -1;
    }
    close(held);
}

/* The bytes a rank shares: more than a socket takes at once; none for rank 2. */
static GByteArray *
words_of(uint32_t rank)
{
    const guint bytes = rank == 2 ? 0 : (rank + 1) * WORD_BYTES;
    GByteArray *words = g_byte_array_new();

    g_byte_array_set_size(words, bytes);
    if (bytes > 0)
        memset(words->data, 'a' + (int)rank, bytes);
    return words;
}

static bool
is_all(const GByteArray *all)
{
    guint at = 0;

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        g_autoptr(GByteArray) words = words_of(rank);

        if (all->len - at < words->len ||
            (words->len > 0 && memcmp(all->data + at, words->data, words->len) != 0))
            return false;
        at += words->len;
    }
    return at == all->len;
}

static int
tell_each_other(uint32_t rank, void *control)
{
    g_autoptr(GByteArray) mine = words_of(rank);
    g_autoptr(GByteArray) shared = g_byte_array_new();
    g_autoptr(GByteArray) gathered = g_byte_array_new();
    LhControlPlace place;
    bool ok = true;

    for (int i = 0; ok && i < 3; i++) {
        g_byte_array_set_size(shared, 0);
        g_byte_array_set_size(gathered, 0);
        /* The same processes may open it again. */
        control = lh_control_torchrun.open(RANKS, deadline_us, &place, NULL);
        ok = control != NULL && lh_control_torchrun.barrier(control, NULL) &&
             lh_control_torchrun.share(control, mine, WORDS_MAX, shared, NULL) && is_all(shared) &&
             !lh_control_torchrun.failed(control, NULL) &&
             lh_control_torchrun.gather(control, mine, WORDS_MAX, gathered, NULL) &&
             (rank == 0 ? is_all(gathered) : gathered->len == 0);
        lh_control_torchrun.close(control);
    }
    return ok && lh_control_torchrun.open(RANKS + 1, deadline_us, &place, NULL) == NULL ? WELL : 2;
}

START_TEST(ranks_tell_each_other)
{
    int status[RANKS];

    run_ranks(tell_each_other, status);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        ck_assert_int_eq(status[rank], WELL);
}
END_TEST

/* Whether the verdict names the rank and the reason. */
static bool
is_named(const GError *error, const char *rank, const char *why)
{
    g_autofree char *name = g_strdup_printf("%s on host %s", rank, g_get_host_name());
    int status = 0;
    g_autofree char *verdict = lh_control_torchrun.conclude(error, &status);

    if (g_str_has_prefix(verdict, name) && strstr(verdict, why) != NULL &&
        status == LH_ERROR_RUNTIME)
        return true;
    fprintf(stderr, "not \"%s ... %s\": %s (%d)\n", name, why, verdict, status);
    return false;
}

/* Whether waiting ends with such a verdict before the far deadline. */
static int
waits_in_vain(void *control, const char *rank, const char *why)
{
    const gint64 began_us = g_get_monotonic_time();
    g_autoptr(GError) error = NULL;

    if (lh_control_torchrun.barrier(control, &error))
        return 1;
    return is_named(error, rank, why) && g_get_monotonic_time() - began_us < FAR_US ? WELL : 1;
}

static int
one_goes(uint32_t rank, void *control)
{
    if (rank == 2)
        _exit(GONE);
    return waits_in_vain(control, "rank 2", "its process is gone");
}

static int
one_ends(uint32_t rank, void *control)
{
    return rank == 2 ? GONE : waits_in_vain(control, "rank 2", "it has ended");
}

/* Shares more than allowed: more bytes than may arrive before they are requested. */
static int
one_floods(uint32_t rank, void *control)
{
    g_autoptr(GByteArray) words = g_byte_array_new();
    g_autoptr(GByteArray) all = g_byte_array_new();
    g_autoptr(GError) error = NULL;

    g_byte_array_set_size(words, rank == 2 ? 1000000 : 10);
    memset(words->data, 'x', words->len);
    if (lh_control_torchrun.share(control, words, 100000, all, &error))
        return 1;
    return is_named(error, "rank 2",
                    ": it announces 1000000 bytes, where at most 100000 are expected")
               ? (rank == 2 ? GONE : WELL)
               : 1;
}

/* Likewise with a number of bytes that may arrive at any time. */
static int
one_babbles(uint32_t rank, void *control)
{
    g_autoptr(GByteArray) words = g_byte_array_new();
    g_autoptr(GByteArray) all = g_byte_array_new();
    g_autoptr(GError) error = NULL;

    g_byte_array_set_size(words, rank == 2 ? 11 : 10);
    memset(words->data, 'x', words->len);
    if (lh_control_torchrun.share(control, words, 10, all, &error))
        return 1;
    return is_named(error, "rank 2",
                    ": it sends 11 bytes in the exchange between processes, where at most 10 are "
                    "expected")
               ? (rank == 2 ? GONE : WELL)
               : 1;
}

static int
one_fails(uint32_t rank, void *control)
{
    g_autoptr(GError) failure =
        g_error_new_literal(LH_ERROR, LH_ERROR_RUNTIME, "rank 2 has no disk");
    int status;

    if (rank != 2)
        return waits_in_vain(control, "rank 2", ": has no disk");
    g_free(lh_control_torchrun.conclude(failure, &status));
    return GONE;
}

static int
one_sleeps(uint32_t rank, void *control)
{
    char byte;

    if (rank != 2)
        return waits_in_vain(control, "rank 2", "does not answer, though the host does");
    close(others[1]);
    return read(others[0], &byte, 1) == 0 ? GONE : 1;
}

static int
first_goes(uint32_t rank, void *control)
{
    if (rank == 0)
        _exit(GONE);
    return waits_in_vain(control, "rank 0", "its process is gone") == WELL && rank == 2 ? GONE
                                                                                        : WELL;
}

/* The others decide without it. It receives the verdict when it resumes, which by its own clock may
 * be at its deadline. */
static int
first_sleeps(uint32_t rank, void *control)
{
    g_autoptr(GError) waited = g_error_new_literal(LH_WAITED, LH_ERROR_RUNTIME, "rank 0 waited");
    char byte;

    if (rank == 0) {
        close(others[1]);
        return read(others[0], &byte, 1) == 0 &&
                       is_named(waited, "rank 0", "does not answer, though the host does")
                   ? WELL
                   : 1;
    }
    return waits_in_vain(control, "rank 0", "does not answer, though the host does") == WELL
               ? (rank == 2 ? GONE : WELL)
               : 1;
}

static int
one_is_ended(uint32_t rank, void *control)
{
    if (rank != 2)
        return waits_in_vain(control, "rank 2", ": it was ended by SIGTERM");
    lh_control_torchrun.last_words(LH_ERROR_RUNTIME, "it was ended by SIGTERM");
    _exit(GONE);
}

static int
first_is_ended(uint32_t rank, void *control)
{
    if (rank == 0) {
        lh_control_torchrun.last_words(LH_ERROR_RUNTIME, "it was ended by SIGTERM");
        _exit(GONE);
    }
    return waits_in_vain(control, "rank 0", ": it was ended by SIGTERM") == WELL && rank == 2
               ? GONE
               : WELL;
}

static const struct {
    int (*work)(uint32_t rank, void *control);
    int first; /* status of rank 0 */
    gint64 deadline_us;
    const char *address;
} troubles[] = { { one_is_ended, WELL, FAR_US },
                 { first_sleeps, WELL, SHORT_US, "127.0.0.2" },
                 { first_is_ended, GONE, FAR_US },
                 { one_goes, WELL, FAR_US },
                 { one_ends, WELL, FAR_US },
                 { one_fails, WELL, FAR_US },
                 { one_floods, WELL, FAR_US },
                 { one_babbles, WELL, FAR_US },
                 { one_sleeps, WELL, NEAR_US, "127.0.0.2" },
                 { first_goes, GONE, FAR_US } };

START_TEST(ranks_that_fail_are_named)
{
    int status[RANKS];

    deadline_us = troubles[_i].deadline_us;
    first_address = troubles[_i].address != NULL ? troubles[_i].address : "127.0.0.1";
    run_ranks(troubles[_i].work, status);
    ck_assert_int_eq(status[0], troubles[_i].first);
    ck_assert_int_eq(status[1], WELL);
    ck_assert_int_eq(status[2], GONE);
    ck_assert_int_eq(status[3], WELL);
}
END_TEST

LH_TEST_MAIN_OF_LOOPS("launch", { torchrun_says_where, 1 }, { torchrun_may_be_wrong, 1 },
                      { slurm_says_where, 1 }, { first_hosts_are_expanded, 1 },
                      { environment_chooses, 1 }, { frames_come_in_pieces, 1 },
                      { hostile_frames_are_refused, 1 }, { ranks_tell_each_other, 1 },
                      { ranks_that_fail_are_named, G_N_ELEMENTS(troubles) })
