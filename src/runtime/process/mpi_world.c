/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/mpi_world.h"

#include "base/error.h"
#include "base/time_units.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define GUARD_US 20000
#define GUARD_US_MAX                                                                               \
    1000000               /* most that one guard round counts, should the machine be suspended     \
                           */
#define ABORT_US 10000000 /* limit of MPI_Abort */
#define WORDS_GRACE_US 2000000 /* tolerance between the waits of ranks, and for their reports */

static struct {
    _Atomic int64_t deadline_us;
    _Atomic(const char *) phase; /* NULL: no MPI call in progress */
    _Atomic int64_t since_us, limit_us;
    _Atomic int status; /* exit status during MPI_Abort, else 0 */
    GMutex ending;      /* held by the guard while it ends the process */
    void (*on_end)(const char *text);
} guard;

void
lh_mpi_on_end(void (*end)(const char *text))
{
    guard.on_end = end;
}

static void
enter(const char *phase, int64_t limit_us)
{
    guard.limit_us = limit_us;
    guard.since_us = g_get_monotonic_time();
    guard.phase = phase;
}

void
lh_mpi_enter(const char *phase)
{
    enter(phase, guard.deadline_us);
}

void
lh_mpi_leave(void)
{
    g_mutex_lock(&guard.ending);
    guard.phase = NULL;
    g_mutex_unlock(&guard.ending);
}

/* The rank as the launcher's environment says, known before MPI is initialised; "?" if unknown. */
static const char *
rank_of_launcher(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                         "SLURM_PROCID" };

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *rank = g_getenv(names[i]);

        if (rank != NULL)
            return rank;
    }
    return "?";
}

/*
 * Ends the process from the guard: the thread that would report the error is blocked in MPI, and
 * functions registered with atexit() would block, too. MPI does not tell which rank it waits for;
 * only all ranks together can.
 */
static void
end_process(const char *phase, int64_t waited_us)
{
    g_autofree char *text = NULL;

    g_mutex_lock(&guard.ending);
    if (guard.phase == NULL) { /* the call returned at the last moment */
        g_mutex_unlock(&guard.ending);
        return;
    }
    text = g_strdup_printf("rank %s: MPI has not returned for %.3g s in %s: a rank that does not "
                           "print this message does not take part",
                           rank_of_launcher(), (double)waited_us / LH_US_PER_S, phase);
    guard.on_end(text);
}

void
lh_mpi_exit(int status)
{
    const int64_t rank = g_ascii_strtoll(rank_of_launcher(), NULL, 10);

    g_usleep((gulong)(WORDS_GRACE_US + MIN(rank, LH_MPI_STAGGERED_RANKS) * LH_MPI_STAGGER_US));
    _exit(status);
}

static void *
guard_main(void *data)
{
    int64_t since_us = 0, waited_us = 0, last_us = g_get_monotonic_time();

    for (;;) {
        const char *phase = guard.phase;
        const int64_t now_us = g_get_monotonic_time();

        /* Time in which this process itself was suspended does not count against others. */
        waited_us = phase != NULL && since_us == guard.since_us
                        ? waited_us + MIN(now_us - last_us, GUARD_US_MAX)
                        : 0;
        since_us = guard.since_us;
        last_us = now_us;
        if (waited_us > guard.limit_us && guard.status != 0)
            _exit(guard.status);
        if (waited_us > guard.limit_us)
            end_process(phase, waited_us);
        g_usleep(GUARD_US);
    }
    return data;
}

/* mpirun of Open MPI 4.1 can lose the abort message, but it notices that the process ends. */
void
lh_mpi_abort(int status)
{
    guard.status = status;
    enter("the end of all processes (MPI_Abort)", ABORT_US);
    MPI_Abort(MPI_COMM_WORLD, status);
}

bool
lh_mpi_ok(int code, const char *what, GError **error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    if (code == MPI_SUCCESS)
        return true;
    MPI_Error_string(code, text, &length);
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "MPI: %s: %s", what, text);
    return false;
}

static void
finalize_mpi(void)
{
    int initialized = 0, finalized = 0;

    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (!initialized || finalized)
        return;
    lh_mpi_enter("the end (MPI_Finalize)");
    MPI_Finalize();
    lh_mpi_leave();
}

static bool
init(GError **error)
{
    int provided = MPI_THREAD_SINGLE;

    lh_mpi_enter("the start (MPI_Init_thread)");
    if (!lh_mpi_ok(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), "cannot start",
                   error))
        return false;
    lh_mpi_leave();
    atexit(finalize_mpi);
    if (!lh_mpi_ok(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                   "cannot set the error handler", error))
        return false;
    if (provided >= MPI_THREAD_FUNNELED)
        return true;
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "MPI: this library does not support MPI_THREAD_FUNNELED");
    return false;
}

bool
lh_mpi_start(int64_t deadline_us, GError **error)
{
    int initialized = 0;

    guard.deadline_us = deadline_us;
    MPI_Initialized(&initialized);
    if (initialized)
        return true;
    g_thread_unref(g_thread_new("mpi guard", guard_main, NULL));
    return init(error);
}
