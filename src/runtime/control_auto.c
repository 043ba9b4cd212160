/*
 * However the processes were started: what the environment says decides, and it says the same to
 * all of them.
 */
#include "runtime/control.h"

typedef struct {
    const char *variable; /* set by who starts processes */
    const LhControl *control;
} Sign;

/* The first one that is there decides. */
static const Sign signs[] = {
    { "OMPI_COMM_WORLD_SIZE", &lh_control_mpi },
    { "PMIX_RANK", &lh_control_mpi },
    { "PMI_RANK", &lh_control_mpi },
};

const LhControl *
lh_control_resolve(const LhControl *control)
{
    if (control != &lh_control_auto)
        return control;
    for (size_t i = 0; i < G_N_ELEMENTS(signs); i++) {
        if (g_getenv(signs[i].variable) != NULL)
            return signs[i].control;
    }
    return &lh_control_single;
}

uint32_t
lh_control_local(void)
{
    static const char *const variables[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                             "MPI_LOCALRANKID", "SLURM_LOCALID" };

    for (size_t i = 0; i < G_N_ELEMENTS(variables); i++) {
        const char *text = g_getenv(variables[i]);
        guint64 local;

        if (text != NULL && g_ascii_string_to_unsigned(text, 10, 0, LH_LOCAL_MAX, &local, NULL))
            return (uint32_t)local;
    }
    return 0;
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
auto_gather(void *control, const GByteArray *bytes, GByteArray *all, GError **error)
{
    return chosen()->gather(control, bytes, all, error);
}

static bool
auto_share(void *control, const GByteArray *bytes, GByteArray *all, GError **error)
{
    return chosen()->share(control, bytes, all, error);
}

static void
auto_close(void *control)
{
    chosen()->close(control);
}

static void
auto_abandon(int status)
{
    if (chosen()->abandon != NULL)
        chosen()->abandon(status);
}

const LhControl lh_control_auto = {
    .name = "auto",
    .open = auto_open,
    .barrier = auto_barrier,
    .gather = auto_gather,
    .share = auto_share,
    .close = auto_close,
    .abandon = auto_abandon,
};
