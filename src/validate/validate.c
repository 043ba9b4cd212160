/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validation. Errors of kernels compare durations; start times of ops are judged by the makespan
 * alone. Results are not checked here: longhaul run does that. If ranks are processes, every
 * process predicts and runs everything. The first one has the measurements and decides when the
 * budget is spent.
 */
#include "validate/validate.h"

#include "base/allocation.h"
#include "base/error.h"
#include "base/rng.h"
#include "execute/execute.h"
#include "kernels/cpu/rows.h"
#include "measure/microbenchmarks.h"
#include "runtime/thread_affinity.h"
#include "scenario/setup_simulate.h"
#include "validate/validate_private.h"
#include "verify/verify.h"

#include <math.h>

#define DEADLINE_DEFAULT_US INT64_C(120000000)
#define EXPLAINED_OPS_MAX 50000 /* simulated a few hundred times by attribution */

/* Values that are valid in any tensor. A log-sum-exp is that over all keys with logits near 0. */
static void
load_numbers(void *data, uint32_t rank, uint16_t index, uint32_t part, unsigned char *into)
{
    const LhProgram *program = data;
    const LhSlot *slot = &program->slots[index];
    const enum lh_storage storage = lh_dtype_storage(slot->dtype);
    const uint64_t count = slot->part_bytes / lh_storage_bytes(storage);
    const double lse = log((double)program->params.attention.seq_length);

    for (uint64_t i = 0; i < count; i++)
        lh_element_put(into, storage, i,
                       slot->kind == LH_TENSOR_LSE ? lse : 0.1 * sin((double)(i + rank + part)));
}

static void
case_free(gpointer data)
{
    LhValidateCase *c = data;

    lh_joined_clear(&c->joined);
    lh_program_free(c->made);
    g_free(c);
}

static int64_t
validate_deadline_us(const LhValidateParams *params)
{
    return params->deadline_us > 0 ? params->deadline_us : DEADLINE_DEFAULT_US;
}

/* Runs the case once. @count: index among the counted runs; -1: a warm-up. */
static bool
execute_case(const LhValidateJob *job, LhValidateCase *c, int64_t count, GError **error)
{
    g_autoptr(GArray) measured = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    g_autoptr(LhRunResult) result = NULL;
    /* Extend the deadline by the predicted time of the messages replayed to a rank alone. */
    const int64_t played_us =
        c->joined.replay == NULL ? 0 : c->predicted_ps / (LH_PS_PER_S / G_USEC_PER_SEC);
    const LhRunParams run = { .program = c->program,
                              .backend = &job->backend,
                              .collectives = job->way,
                              .kernel_set = job->params->kernel_set,
                              .deadline_us = validate_deadline_us(job->params) + played_us,
                              .unguarded = count >= 0,
                              .pin = job->params->pin,
                              .replay = c->joined.replay,
                              .load = load_numbers,
                              .load_data = (void *)c->program,
                              .timeline = lh_attribution_collect,
                              .timeline_data = measured };

    result = lh_execute(&run, error);
    if (result == NULL) {
        g_prefix_error(error, "%s: ", c->row->schedule);
        return false;
    }
    if (count < 0)
        return true;
    c->row->runs++;
    return !result->whole || lh_joined_add(&c->joined, (uint64_t)count, measured, result, error);
}

static bool
measures_on(const LhValidateJob *job)
{
    if (!lh_task_tell(&job->params->task, &(LhProgress){ 0 }))
        job->validated->interrupted = true;
    return !job->validated->interrupted;
}

/* Whether there is time for another run; the first process decides. */
static bool
has_time(const LhValidateJob *job, bool *time, GError **error)
{
    const gint64 spent_us = g_get_monotonic_time() - job->begun_us;
    double left = job->params->budget_ps == 0 ||
                  spent_us < job->params->budget_ps / (LH_PS_PER_S / G_USEC_PER_SEC);

    if (!measures_on(job))
        left = 0;
    if (job->params->budget_ps != 0 && !lh_processes_tell(&job->processes, &left, 1, error))
        return false;
    *time = left > 0;
    return true;
}

/* Shuffles the cases (Fisher-Yates), with this round's numbers of the scenario's seed. */
static void
shuffle(const LhValidateJob *job, uint64_t round)
{
    for (guint i = job->cases->len; i > 1; i--) {
        const guint other = (guint)(lh_rng_bits(job->setup->scenario->seed, round, i) % i);
        gpointer *cases = job->cases->pdata;
        gpointer last = cases[i - 1];

        cases[i - 1] = cases[other];
        cases[other] = last;
    }
}

/*
 * Runs all cases. The first round warms up caches, clocks and connections; every later round runs
 * each schedule once. When the budget is spent, the runs that are skipped are mostly repeats of
 * schedules already measured.
 */
static bool
run_cases(LhValidateJob *job, GError **error)
{
    const uint64_t repeat = MAX(job->params->repeat, 1);
    LhValidated *validated = job->validated;
    bool time = true;

    for (uint64_t round = 0; round <= repeat; round++) {
        shuffle(job, round);
        for (guint i = 0; i < job->cases->len; i++) {
            LhValidateCase *c = g_ptr_array_index(job->cases, i);

            if (!has_time(job, &time, error))
                return false;
            if (round == 0) {
                if (time && !execute_case(job, c, -1, error))
                    return false;
                continue;
            }
            validated->runs += time;
            validated->runs_left_out += !time;
            if (time && !execute_case(job, c, (int64_t)round - 1, error))
                return false;
        }
    }
    return true;
}

/* Duration of each op of the case, by the statistic over runs; caller frees. */
static double *
took_of(const LhValidateJob *job, const LhValidateCase *c)
{
    const LhJoinedRuns *j = &c->joined;
    double *took = g_new(double, MAX(j->predicted->len, 1));

    for (guint i = 0; i < j->predicted->len; i++)
        took[i] = lh_statistic(job->params->statistic,
                               &g_array_index(j->times, double, i * j->repeat), c->row->runs);
    return took;
}

/* Finds which constants are wrong, from all measurements. */
static bool
explain(const LhValidateJob *job, GError **error)
{
    g_autofree LhAttributionCase *cases = g_new0(LhAttributionCase, MAX(job->cases->len, 1));
    LhAttributed explained;
    uint32_t count = 0;
    uint64_t ops = 0;
    bool ok;

    for (guint i = 0; i < job->cases->len; i++) {
        const LhValidateCase *c = g_ptr_array_index(job->cases, i);

        if (c->row->runs == 0)
            continue;
        ops += c->joined.predicted->len;
        cases[count++] = (LhAttributionCase){ .program = c->program,
                                              .meetings = c->joined.meetings,
                                              .makespan_s = c->row->measured_s,
                                              .took_s = took_of(job, c) };
    }
    ok = count == 0 || ops > EXPLAINED_OPS_MAX ||
         lh_attribution(job->setup, cases, count, &explained, error);
    if (ok && count > 0 && ops <= EXPLAINED_OPS_MAX)
        job->validated->explained = g_memdup2(&explained, sizeof(explained));
    for (uint32_t i = 0; i < count; i++)
        g_free((double *)cases[i].took_s);
    return ok;
}

static bool
measure_hosts(LhValidateJob *job, GError **error)
{
    const LhNetwork *network = &job->setup->network;

    if (job->processes.count < 2)
        return true;
    job->validated->hosts = lh_slow_hosts_new(&job->processes, network, error);
    return job->validated->hosts != NULL &&
           lh_slow_hosts_measure(job->validated->hosts, &job->processes, job->params->backend,
                                 network, error);
}

static bool
validate(LhValidateJob *job, GError **error)
{
    const LhValidateParams *params = job->params;
    const LhRunDevice *device = params->backend->device;

    job->validated->first = lh_processes_first(&job->processes);
    if ((device->probe != NULL && !device->probe(error)) || !lh_validate_predict(job, error))
        return false;
    job->begun_us = g_get_monotonic_time();
    if (!run_cases(job, error) || !measure_hosts(job, error))
        return false;
    if (job->validated->first)
        lh_validate_sum_up(job);
    if (job->validated->first && params->alone.choice == LH_SINGLE_RANK_NONE &&
        !explain(job, error))
        return false;
    if (job->validated->first && job->validated->hosts != NULL)
        lh_slow_hosts_judge(job->validated->hosts);
    return true;
}

LhValidated *
lh_validate(const LhSetup *setup, const LhValidateParams *params, GError **error)
{
    g_autoptr(LhValidated) validated = lh_validated_new();
    g_autoptr(GPtrArray) cases = g_ptr_array_new_with_free_func(case_free);
    LhValidateJob job = {
        .setup = setup, .params = params, .validated = validated, .cases = cases
    };
    bool ok;

    job.backend = *params->backend;
    if (params->alone.choice != LH_SINGLE_RANK_NONE &&
        !lh_backend_replaying(params->backend, &job.backend, error))
        return NULL;
    validated->cores = lh_cores_count();
    lh_memory_keep();
    lh_microbenchmark_set_deadline(validate_deadline_us(params));
    if (!lh_processes_open(&job.processes, params->backend->control, validate_deadline_us(params),
                           error))
        return NULL;
    ok = validate(&job, error);
    lh_processes_close(&job.processes);
    return ok ? g_steal_pointer(&validated) : NULL;
}
