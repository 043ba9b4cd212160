/*
 * One rank a process, started by mpirun or srun.
 */
#include "runtime/control.h"
#include "runtime/mpi_world.h"

#include "base/error.h"

#include <mpi.h>

#define GRACE_US 1000000
/* Open MPI 4.1's mpirun can crash when several processes abort at once. */
#define STAGGER_US 250000
#define STAGGERED_RANKS 20

static void *
mpi_open(uint32_t ranks, LhControlPlace *place, GError **error)
{
    static char nothing;
    int size = 0, rank = 0;

    if (!lh_mpi_start(error))
        return NULL;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if ((uint32_t)size != ranks) {
        g_set_error(
            error, LH_ERROR, LH_ERROR_USAGE,
            "there are %d processes for %u ranks; start it as: mpirun -n %u longhaul run ...", size,
            ranks, ranks);
        return NULL;
    }
    *place = (LhControlPlace){ .first = (uint32_t)rank, .count = 1 };
    return &nothing;
}

static bool
mpi_barrier(void *control, GError **error)
{
    const int code = MPI_Barrier(MPI_COMM_WORLD);

    (void)control;
    return code == MPI_SUCCESS || lh_mpi_fail(error, "the barrier failed", code);
}

static bool
mpi_gather(void *control, const GByteArray *bytes, GByteArray *all, GError **error)
{
    g_autofree int *lengths = NULL, *places = NULL;
    const int length = (int)bytes->len;
    int size, rank, total = 0, code;

    (void)control;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    lengths = g_new0(int, (gsize)size);
    places = g_new0(int, (gsize)size);
    code = MPI_Gather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; code == MPI_SUCCESS && i < size; i++) {
        places[i] = total;
        if (__builtin_add_overflow(total, lengths[i], &total)) {
            g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                                "MPI: the results do not fit 2 GiB in one process");
            return false;
        }
    }
    if (rank == 0)
        g_byte_array_set_size(all, (guint)total);
    if (code == MPI_SUCCESS)
        code = MPI_Gatherv(bytes->data, length, MPI_BYTE, all->data, lengths, places, MPI_BYTE, 0,
                           MPI_COMM_WORLD);
    return code == MPI_SUCCESS || lh_mpi_fail(error, "cannot collect the results", code);
}

static void
mpi_close(void *control)
{
    (void)control;
}

static void
mpi_abandon(int status)
{
    int initialized = 0, rank = 0;

    MPI_Initialized(&initialized);
    if (!initialized)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    g_usleep(GRACE_US + (gulong)MIN(rank, STAGGERED_RANKS) * STAGGER_US);
    MPI_Abort(MPI_COMM_WORLD, status);
}

const LhControl lh_control_mpi = {
    .name = "mpi",
    .open = mpi_open,
    .barrier = mpi_barrier,
    .gather = mpi_gather,
    .close = mpi_close,
    .abandon = mpi_abandon,
};
