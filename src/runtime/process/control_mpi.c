/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control plane of processes started with MPI (mpirun, srun): one rank per process. MPI
 * provides the rank and announces the address of the first process; from then on they use a star
 * (control_tcp_private.h), which, unlike MPI, tells all processes which one failed.
 */
#include "runtime/api/control.h"
#include "runtime/process/control_tcp_private.h"
#include "runtime/process/mpi_world.h"

#include "base/error.h"
#include "base/escape.h"

#include <mpi.h>
#include <stdio.h>

#define ABORT_GRACE_US 1000000
#define START_TAG                                                                                  \
    32767 /* the largest tag MPI guarantees; programs' tags are below (transport_mpi.c) */

/* The guard is ending the process: no further MPI call may be made. */
static bool ends_within_mpi;

/* ---- the start ---- */

/* Called by the guard while this process is blocked in an MPI call. */
static void
conclude_within_mpi(const char *text)
{
    g_autoptr(GError) failure = g_error_new_literal(LH_WAITED, LH_ERROR_RUNTIME, text);
    int status = LH_ERROR_RUNTIME;
    g_autofree char *verdict = NULL;
    g_autofree char *lines = NULL;

    ends_within_mpi = true;
    verdict = lh_star_conclude(failure, &status);
    lines = lh_escaped_lines(verdict);
    fprintf(stderr, "longhaul: error: %s\n", lines);
    fflush(stderr);
    lh_mpi_exit(status);
}

static bool
place_in_mpi(LhLauncherEnv *launch, GError **error)
{
    int rank = 0, size = 0;
    bool ok;

    lh_mpi_enter("the start (MPI_Comm_size)");
    ok = lh_mpi_ok(MPI_Comm_size(MPI_COMM_WORLD, &size), "cannot count the processes", error) &&
         lh_mpi_ok(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "cannot find its rank", error);
    lh_mpi_leave();
    launch->rank = (uint32_t)rank;
    launch->size = (uint32_t)size;
    return ok;
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): the requests are given up, not waited for. */
/* Receives the first process's address, or sends it to every other process; these messages leave
 * while the first process waits for the others to connect (progress()). */
static int
tell_first(GByteArray *bytes)
{
    const int count = (int)bytes->len;
    int rank = 0, size = 0, code = MPI_SUCCESS;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != 0)
        return MPI_Recv(bytes->data, count, MPI_BYTE, 0, START_TAG, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE);
    for (int to = 1; to < size && code == MPI_SUCCESS; to++) {
        MPI_Request request;

        code = MPI_Isend(bytes->data, count, MPI_BYTE, to, START_TAG, MPI_COMM_WORLD, &request);
        if (code == MPI_SUCCESS)
            code = MPI_Request_free(&request);
    }
    return code;
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

static bool
announce_by_mpi(LhEndpoint *first, GError **error)
{
    static GByteArray *bytes; /* never freed: MPI reads it later */
    int code;

    bytes = g_byte_array_new();
    lh_endpoint_pack(first, bytes);
    lh_mpi_enter("the start (address of the first process)");
    code = tell_first(bytes);
    lh_mpi_leave();
    if (!lh_mpi_ok(code, "the first process cannot announce its address", error))
        return false;
    if (!lh_endpoint_unpack(bytes->data, first))
        first->port = 0; /* it does not listen */
    return true;
}

/* Buffered MPI messages leave only while MPI is called. */
static void
progress(void)
{
    int found;

    if (ends_within_mpi)
        return;
    lh_mpi_enter("the progress of messages (MPI_Iprobe)");
    MPI_Iprobe(MPI_ANY_SOURCE, START_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    lh_mpi_leave();
}

static void *
mpi_control_open(uint32_t ranks, int64_t deadline_us, LhControlPlace *place, GError **error)
{
    static const LhStarter starter = { .place = place_in_mpi,
                                       .announce = announce_by_mpi,
                                       .progress = progress };

    lh_mpi_on_end(conclude_within_mpi);
    if (!lh_mpi_start(deadline_us, error))
        return NULL;
    return lh_star_open(&starter, ranks, deadline_us, place, error);
}

/* ---- the end ---- */

static void
mpi_control_abandon(int status)
{
    int initialized = 0, rank = 0;

    MPI_Initialized(&initialized);
    if (!initialized)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    g_usleep(ABORT_GRACE_US + (gulong)MIN(rank, LH_MPI_STAGGERED_RANKS) * LH_MPI_STAGGER_US);
    lh_mpi_abort(status);
}

const LhControl lh_control_mpi = {
    .name = "mpi",
    .open = mpi_control_open,
    LH_STAR_CONTROL,
    .abandon = mpi_control_abandon,
};
