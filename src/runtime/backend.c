/* The table of backends. */
#include "runtime/backend.h"

const LhBackend lh_backend_cpu = {
    .name = "cpu",
    .control = &lh_control_single,
    .transport = &lh_transport_threads,
    .device = &lh_device_cpu,
};

const LhBackend lh_backend_mpi = {
    .name = "mpi",
    .control = &lh_control_mpi,
    .transport = &lh_transport_mpi,
    .device = &lh_device_cpu,
};

/* All ranks on one GPU. */
const LhBackend lh_backend_cuda = {
    .name = "cuda",
    .control = &lh_control_single,
    .links = &lh_links_copies,
    .device = &lh_device_cuda,
};

const LhBackend *const lh_backends[] = { &lh_backend_cpu, &lh_backend_mpi, &lh_backend_cuda, NULL };

const char *const lh_backend_names[] = { "cpu", "mpi", "cuda", NULL };

G_STATIC_ASSERT(G_N_ELEMENTS(lh_backends) == G_N_ELEMENTS(lh_backend_names));
