/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_params.h"

#include "sim/network/network.h"

/* So slow that a picosecond exceeds the longest run; keeps products finite. */
#define RANK_SLOWDOWN_MAX 1e18

void
lh_sim_begin_cost(LhCost *cost, const LhSimParams *params)
{
    lh_cost_init(cost, params->cost, params->device);
    cost->framework = params->framework;
    cost->trust = lh_call_trust(params->framework);
    cost->serving = params->serving;
    if (params->network != NULL && params->network->topology != NULL) {
        cost->host_link = &params->network->topology->host_link;
        cost->host_cpu = &params->network->topology->host_cpu;
        cost->node_ranks = MAX(params->network->topology->gpus_per_node, 1);
    }
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
