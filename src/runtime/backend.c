/* SPDX-License-Identifier: Apache-2.0 */
/* The table of backends. */
#include "runtime/backend.h"

#include "base/error.h"

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

/* Any launcher. */
const LhBackend lh_backend_tcp = {
    .name = "tcp",
    .control = &lh_control_auto,
    .transport = &lh_transport_tcp,
    .device = &lh_device_cpu,
};

/* All ranks on one GPU. */
const LhBackend lh_backend_cuda = {
    .name = "cuda",
    .control = &lh_control_single,
    .links = &lh_links_copies,
    .device = &lh_device_cuda,
};

/* A GPU for each rank. */
const LhBackend lh_backend_nccl = {
    .name = "nccl",
    .control = &lh_control_auto,
    .links = &lh_links_nccl,
    .device = &lh_device_cuda,
};

const LhBackend *const lh_backends[] = { &lh_backend_cpu,  &lh_backend_mpi,  &lh_backend_tcp,
                                         &lh_backend_cuda, &lh_backend_nccl, NULL };

const char *const lh_backend_names[] = { "cpu", "mpi", "tcp", "cuda", "nccl", NULL };

G_STATIC_ASSERT(G_N_ELEMENTS(lh_backends) == G_N_ELEMENTS(lh_backend_names));

const char *const lh_kernel_set_names[] = { "cpu", "reference", "builtin", "cudnn", NULL };

bool
lh_backend_replaying(const LhBackend *of, LhBackend *chosen, GError **error)
{
    *chosen = *of;
    if (of->control != &lh_control_single) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "--replay-rank needs backend cpu or cuda, not %s", of->name);
        return false;
    }
    if (of->links != NULL)
        chosen->links = &lh_links_replay;
    else
        chosen->transport = &lh_transport_replay;
    return true;
}

bool
lh_backend_choose(const LhBackend *of, const LhControl *control, LhBackend *chosen, GError **error)
{
    const LhControl *own = lh_control_resolve(of->control);

    *chosen = *of;
    chosen->control = control == &lh_control_auto ? own : control;
    if (of->control == &lh_control_auto || chosen->control == own)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "--bootstrap: backend %s needs \"%s\", not \"%s\"",
                of->name, own->name, control->name);
    return false;
}
