/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the control plane from the launcher's environment variables, which are the same for all
 * processes.
 */
#include "runtime/api/control.h"

#include <string.h>

const LhControl *const lh_controls[] = { &lh_control_auto,     &lh_control_single, &lh_control_mpi,
                                         &lh_control_torchrun, &lh_control_slurm,  NULL };

const char *const lh_control_names[] = { "auto", "single", "mpi", "torchrun", "slurm", NULL };

G_STATIC_ASSERT(G_N_ELEMENTS(lh_controls) == G_N_ELEMENTS(lh_control_names));

typedef struct {
    const char *variable; /* set by the launcher */
    const char *count;    /* variable with the number of processes; "1" or absent means no launcher.
                             NULL: not checked */
    const LhControl *control;
} Sign;

/* The first match decides. MPI comes first, because srun also starts MPI processes. */
static const Sign launcher_signs[] = {
    { "OMPI_COMM_WORLD_SIZE", NULL, &lh_control_mpi },
    { "PMIX_RANK", NULL, &lh_control_mpi },
    { "PMI_RANK", NULL, &lh_control_mpi },
    { "MASTER_ADDR", "WORLD_SIZE", &lh_control_torchrun },
    { "SLURM_STEP_NODELIST", "SLURM_NTASKS", &lh_control_slurm },
};

static bool
is_there(const Sign *sign)
{
    const char *count = sign->count == NULL ? "" : g_getenv(sign->count);

    return g_getenv(sign->variable) != NULL && count != NULL && strcmp(count, "1") != 0;
}

const LhControl *
lh_control_resolve(const LhControl *control)
{
    if (control != &lh_control_auto)
        return control;
    for (size_t i = 0; i < G_N_ELEMENTS(launcher_signs); i++) {
        if (is_there(&launcher_signs[i]))
            return launcher_signs[i].control;
    }
    return &lh_control_single;
}

static const LhControl *
chosen(void)
{
    return lh_control_resolve(&lh_control_auto);
}

static void *
auto_open(uint32_t ranks, int64_t deadline_us, LhControlPlace *place, GError **error)
{
    return chosen()->open(ranks, deadline_us, place, error);
}

static bool
auto_barrier(void *control, GError **error)
{
    return chosen()->barrier(control, error);
}

static bool
auto_gather(void *control, const GByteArray *bytes, gsize limit, GByteArray *all, GError **error)
{
    return chosen()->gather(control, bytes, limit, all, error);
}

static bool
auto_share(void *control, const GByteArray *bytes, gsize limit, GByteArray *all, GError **error)
{
    return chosen()->share(control, bytes, limit, all, error);
}

static void
auto_close(void *control)
{
    chosen()->close(control);
}

static bool
auto_failed(void *control, GError **error)
{
    return chosen()->failed != NULL && chosen()->failed(control, error);
}

static void
auto_standing(void *control, const char *text, const uint32_t *awaited, uint32_t count)
{
    if (chosen()->standing != NULL)
        chosen()->standing(control, text, awaited, count);
}

const LhControl lh_control_auto = {
    .name = "auto",
    .open = auto_open,
    .barrier = auto_barrier,
    .gather = auto_gather,
    .share = auto_share,
    .failed = auto_failed,
    .close = auto_close,
    .standing = auto_standing,
};
