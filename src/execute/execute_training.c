/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes consecutive training steps: weights and optimizer state pass from each step to the next.
 * The first step is compared with the reference tensor by tensor. Later ones are compared by their
 * loss only, since rounding decides the sign of small updates, so that weights diverge over time.
 */
#include "execute/execute_private.h"
#include "execute/step_compare.h"
#include "execute/step_numerics.h"

#include <math.h>

typedef struct {
    LhExecuted *executed;
    const LhExecuteJob *job;
    LhRunParams run;
    LhStepNumerics *numerics;
    uint64_t steps, repeats;
    uint64_t unmeasured; /* warm-up repeats among them */
} Training;

/* Computes the reference's step and compares with it; done in the first repeat. Each process
 * computes the reference itself, so none waits for another. */
static void
check_step(Training *t, const LhRunResult *result, uint64_t step)
{
    LhExecuted *executed = t->executed;
    const gint64 started_us = g_get_monotonic_time();

    lh_step_numerics_advance(t->numerics, t->job->control->place.count);
    executed->reference_losses[step] = t->numerics->reference->loss;
    executed->losses[step] = NAN;
    if (result->whole)
        executed->losses[step] = lh_step_loss(executed->program, result);
    if (result->whole && step == 0)
        lh_step_compare(t->numerics, result, &executed->errors);
    executed->check_s += (double)(g_get_monotonic_time() - started_us) / G_USEC_PER_SEC;
}

static bool
train(Training *t, uint64_t repeat, GError **error)
{
    g_autoptr(LhRunResult) last = NULL;

    for (uint64_t step = 0; step < t->steps; step++) {
        LhStepLoad load = { t->numerics, last, step };
        const bool is_last = repeat + 1 == t->repeats && step + 1 == t->steps;
        LhRunResult *result;

        t->run.load = lh_step_load;
        t->run.load_data = &load;
        result = lh_execute_once(t->executed, &t->run, t->job->params, is_last, error);
        if (result == NULL)
            return false;
        lh_run_result_free(last);
        last = result;
        if (repeat == 0)
            check_step(t, result, step);
    }
    lh_executed_take(t->executed, g_steal_pointer(&last), repeat >= t->unmeasured);
    return true;
}

bool
lh_execute_training(LhExecuted *executed, const LhExecuteJob *job, const LhRunParams *params,
                    GError **error)
{
    g_autoptr(LhStepNumerics) numerics = lh_step_numerics_new(
        executed->program, job->setup->scenario->seed, job->params->new_tokens);
    Training training = { .executed = executed,
                          .job = job,
                          .run = *params,
                          .numerics = numerics,
                          .steps = MAX(job->params->steps, 1),
                          .repeats = MAX(job->params->repeat, 1) };

    /* With several steps only the last step of a run counts, so no warm-up is needed. */
    training.unmeasured = training.steps > 1 ? 0 : lh_execute_unmeasured(job->params);
    training.repeats += training.unmeasured;
    executed->steps = training.steps;
    executed->losses = g_new0(double, training.steps);
    executed->reference_losses = g_new0(double, training.steps);
    for (uint64_t i = 0; i < training.repeats; i++) {
        if (!train(&training, i, error))
            return false;
    }
    if (executed->whole)
        lh_step_compare_losses(numerics, executed->losses, executed->reference_losses,
                               executed->steps, &executed->errors);
    return true;
}
