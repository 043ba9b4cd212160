/* See the header. Nothing else is asked of these runs, so that hooks only hear of their progress.
 */
#include "plan/ends.h"

#include "sim/network/sends.h"

/* The makespan at one end; that of @result if nothing is assumed, or the run was interrupted. */
static LhTime
makespan_at_end(const LhSetup *setup, const LhProgram *program, const LhSimResult *result,
                bool most, const LhHooks *hooks)
{
    const LhHooks watched = { .progress = hooks != NULL ? hooks->progress : NULL,
                              .progress_data = hooks != NULL ? hooks->progress_data : NULL };
    LhNetwork network = setup->network;
    g_autoptr(LhSimResult) end = NULL;

    if (setup->cost == LH_COST_DEVICE && lh_sends_assume(&network, most))
        end = lh_setup_simulate(setup, program, &network, NULL, &watched, NULL);
    return end != NULL ? end->makespan_ps : result->makespan_ps;
}

LhSimResult *
lh_ends_simulate(const LhSetup *setup, const LhProgram *program, const LhHooks *hooks,
                 GError **error)
{
    LhSimResult *result = lh_setup_simulate(setup, program, NULL, NULL, hooks, error);

    if (result == NULL)
        return NULL;
    result->fastest_ps =
        MIN(result->makespan_ps, makespan_at_end(setup, program, result, true, hooks));
    result->slowest_ps =
        MAX(result->makespan_ps, makespan_at_end(setup, program, result, false, hooks));
    return result;
}
