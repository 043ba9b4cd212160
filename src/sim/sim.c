/* Names and results of the simulator; the work is in engine.c. */
#include "sim/sim.h"

#include "base/rng.h"

/* A picosecond takes longer than a run may; keeps products finite. */
#define RANK_SLOWDOWN_MAX 1e18

const char *const lh_idle_names[] = {
    "imbalance", "nvlink", "pcie", "nic", "fabric", "host", NULL,
};

G_STATIC_ASSERT(G_N_ELEMENTS(lh_idle_names) == LH_IDLE_PARTS + 1);

void
lh_sim_result_free(LhSimResult *result)
{
    if (result == NULL)
        return;
    g_free(result->ranks);
    g_free(result->out_of_memory);
    g_clear_pointer(&result->path, g_array_unref);
    lh_slack_free(result->precedence);
    g_free(result);
}

double
lh_sim_bubble_fraction(const LhSimResult *result)
{
    LhWide idle_ps = 0;

    if (result->makespan_ps == 0)
        return 0;
    for (uint32_t r = 0; r < result->ranks_count; r++)
        idle_ps += result->makespan_ps - result->ranks[r].busy_ps;
    return (double)idle_ps / (double)((LhWide)result->ranks_count * result->makespan_ps);
}

void
lh_sim_begin_cost(LhCost *cost, const LhSimParams *params)
{
    lh_cost_init(cost, params->cost, params->device);
    cost->framework = params->framework;
    cost->trust = lh_call_trust(params->framework);
    cost->serving = params->serving;
}

double
lh_sim_slowdown(const LhSimParams *params, uint32_t rank)
{
    double slowdown = 1;

    for (guint i = 0; params->stragglers != NULL && i < params->stragglers->len; i++) {
        const LhStraggler *s = &g_array_index(params->stragglers, LhStraggler, i);

        if (s->rank == rank)
            slowdown = MIN(slowdown * s->slowdown, RANK_SLOWDOWN_MAX);
    }
    return slowdown;
}

double
lh_sim_variation(const LhSimParams *params, uint32_t rank, uint32_t op)
{
    return params->jitter > 0
               ? 1 + params->jitter * (2 * lh_rng_uniform(params->seed, rank, op) - 1)
               : 1;
}
