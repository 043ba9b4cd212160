/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes the forward pass of a model alone, with the weights and tokens of the first training
 * step. Keys, values and logits are compared with the reference.
 */
#include "execute/execute_private.h"
#include "execute/prefill_compare.h"
#include "execute/step_numerics.h"

bool
lh_execute_prefill(LhExecuted *executed, const LhExecuteJob *job, const LhRunParams *params,
                   GError **error)
{
    g_autoptr(LhStepNumerics) numerics =
        lh_step_numerics_new(executed->program, job->setup->scenario->seed, false);
    const LhStepLoad load = { .numerics = numerics };
    const uint64_t before = lh_execute_unmeasured(job->params);
    const uint64_t all = before + MAX(job->params->repeat, 1);
    LhRunParams run = *params;
    gint64 started_us;

    run.load = lh_step_load;
    run.load_data = (void *)&load;
    for (uint64_t i = 0; i < all; i++) {
        LhRunResult *result;

        g_clear_pointer(&executed->run, lh_run_result_free);
        result = lh_execute_once(executed, &run, job->params, i + 1 == all, error);
        if (result == NULL)
            return false;
        lh_executed_take(executed, result, i >= before);
    }
    started_us = g_get_monotonic_time();
    if (executed->whole)
        lh_prefill_compare(numerics, executed->run, job->control->place.count, &executed->errors);
    executed->check_s = (double)(g_get_monotonic_time() - started_us) / G_USEC_PER_SEC;
    return true;
}
