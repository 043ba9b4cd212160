/* What a build without MPI says instead. */
#include "base/error.h"
#include "runtime/transport.h"

static void *
absent_open(uint32_t ranks, uint32_t *first, uint32_t *count, GError **error)
{
    (void)ranks;
    (void)first;
    (void)count;
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "this longhaul was built without MPI: install libopenmpi-dev and "
                        "openmpi-bin (Debian), then meson setup --reconfigure -Dmpi=enabled");
    return NULL;
}

const LhTransport lh_transport_mpi = {
    .name = "mpi",
    .summary = "one rank a process, by mpirun (not built in)",
    .open = absent_open,
};
