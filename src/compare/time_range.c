/* SPDX-License-Identifier: Apache-2.0 */
/* These runs record nothing: hooks only receive their progress. */
#include "compare/time_range.h"

#include "scenario/setup_simulate.h"
#include "sim/network/collectives/measured.h"
#include "sim/network/sends.h"

/* Sets @network to one end of the assumed range; false if nothing is assumed. */
static bool
take_end(LhNetwork *network, bool fastest)
{
    const bool of_sends = lh_sends_assume(network, fastest);
    const bool of_collectives = lh_measured_is_scaled(network);

    if (of_collectives)
        network->collectives_end = fastest ? -1 : 1;
    return of_sends || of_collectives;
}

/* Makespan at one end; @otherwise if the simulation was interrupted. */
static LhTime
makespan_at(const LhSetup *setup, const LhProgram *program, const LhNetwork *network,
            LhTime otherwise, const LhHooks *hooks)
{
    const LhHooks watched = { .task = hooks != NULL ? hooks->task : (LhTask){ 0 } };
    g_autoptr(LhSimResult) end = lh_setup_simulate(setup, program, network, NULL, &watched, NULL);

    return end != NULL ? end->makespan_ps : otherwise;
}

LhSimResult *
lh_time_range_simulate(const LhSetup *setup, const LhProgram *program, const LhHooks *hooks,
                       GError **error)
{
    LhNetwork fastest = setup->network, slowest = setup->network;
    LhSimResult *result = lh_setup_simulate(setup, program, NULL, NULL, hooks, error);
    LhTime time_ps;

    if (result == NULL)
        return NULL;
    time_ps = result->fastest_ps = result->slowest_ps = result->makespan_ps;
    if (setup->cost != LH_COST_DEVICE || !take_end(&fastest, true))
        return result;
    take_end(&slowest, false);
    result->fastest_ps = MIN(time_ps, makespan_at(setup, program, &fastest, time_ps, hooks));
    result->slowest_ps = MAX(time_ps, makespan_at(setup, program, &slowest, time_ps, hooks));
    return result;
}
