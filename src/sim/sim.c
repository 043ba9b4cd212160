/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim.h"

#include "sim/sim_private.h"

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
    g_free(result->peaks);
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

/* Runs the engine with @fold. Returns NULL without an error if the folding proves wrong, and
 * reduces @fold. */
static LhSimResult *
play(const LhSimParams *params, LhSymmetryGroups *fold, GError **error)
{
    LhEngine engine = { 0 };
    LhSimResult *result = NULL;

    lh_engine_init(&engine, params, fold);
    lh_engine_run(&engine);
    if (engine.error == NULL)
        result = lh_engine_summarise(&engine);
    if (engine.differ) {
        *fold = lh_symmetry_less(fold, engine.row);
        g_clear_error(&engine.error);
    } else if (engine.error != NULL) {
        g_clear_pointer(&result, lh_sim_result_free);
        g_propagate_error(error, engine.error);
    }
    if (params->ended_ps != NULL)
        *params->ended_ps = engine.now + engine.skipped_ps;
    lh_engine_clear(&engine);
    return result;
}

/* Whether the parameters treat all ranks alike. */
static bool
may_fold(const LhSimParams *p)
{
    const bool stragglers = p->stragglers != NULL && p->stragglers->len > 0;
    const bool faults = p->network->faults != NULL && p->network->faults->len > 0;
    const bool watched = p->timeline != NULL || p->memory != NULL || p->links != NULL;

    return !p->unfolded && p->device->machine_ranks == 0 && !stragglers && !faults && !watched &&
           p->jitter <= 0 && p->compute_time == NULL && p->steps_max == 0 &&
           (p->time_share == NULL || p->time_share_alike);
}

/* The folding to try first. */
static LhSymmetryGroups
first_fold(const LhSimParams *params)
{
    if (!may_fold(params))
        return lh_symmetry_none(params->network->ranks);
    if (params->fold != NULL && lh_symmetry_is_any(params->fold))
        return *params->fold;
    return lh_symmetry_choose(params->program, params->network, params->network_model);
}

LhSimResult *
lh_simulate(const LhSimParams *params, GError **error)
{
    LhSymmetryGroups fold = first_fold(params);
    GError *cause = NULL;
    LhSimResult *result = NULL;

    g_assert(params->network->ranks == lh_program_ranks(params->program));
    while (result == NULL && cause == NULL)
        result = play(params, &fold, &cause);
    if (params->fold != NULL)
        *params->fold = fold;
    if (cause != NULL)
        g_propagate_error(error, cause);
    return result;
}
