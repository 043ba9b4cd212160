/* SPDX-License-Identifier: Apache-2.0 */
/* Stand-ins for MPI's control plane and transport in a build without MPI; they return an error. */
#include "base/error.h"
#include "runtime/api/control.h"
#include "runtime/api/transport.h"

static bool
refuse_mpi(GError **error)
{
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "this longhaul was built without MPI: install libopenmpi-dev and "
                        "openmpi-bin (Debian), then meson setup --reconfigure -Dmpi=enabled");
    return false;
}

static char *
find_library(GError **error)
{
    refuse_mpi(error);
    return NULL;
}

static void *
refuse_control(uint32_t ranks, int64_t deadline_us, LhControlPlace *place, GError **error)
{
    (void)ranks;
    (void)deadline_us;
    (void)place;
    refuse_mpi(error);
    return NULL;
}

static void *
refuse_transport(const LhTransportParams *params, GError **error)
{
    (void)params;
    refuse_mpi(error);
    return NULL;
}

const LhControl lh_control_mpi = { .name = "mpi", .open = refuse_control };

const LhTransport lh_transport_mpi = { .name = "mpi",
                                       .describe = find_library,
                                       .open = refuse_transport };
