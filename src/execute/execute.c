/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the program of a setup. */
#include "execute/execute_private.h"

#include "base/error.h"
#include "execute/memory_estimate.h"
#include "program/explicit/digest.h"
#include "reference/row_sampling.h"
#include "runtime/process/processes.h"
#include "scenario/setup_simulate.h"
#include "scenario/step/setup_step.h"

#include <string.h>

#define DEADLINE_PS_MIN (60 * LH_PS_PER_S)
#define DEADLINE_FACTOR 20
#define FLOPS_PER_S 1e9 /* of one core, a pessimistic value */

/* ---- proof ---- */

/* Checks the proof. A program read from a file has passed lh_prove_setup already. */
static bool
check_proof(const LhExecuted *executed, const LhSetup *setup, const LhVerdict *verdict,
            GError **error)
{
    const LhFinding *finding;

    if (verdict->findings->len == 0 || executed->program == setup->program)
        return true;
    finding = &g_array_index(verdict->findings, LhFinding, 0);
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "%s is not proven, so it is not run (%" G_GUINT64_FORMAT
                " findings; see longhaul verify): %s",
                executed->program->name, verdict->findings_total, finding->message);
    return false;
}

/* Checks that the program completes on the backend if its streams share one queue. */
static bool
check_queues(const LhExecuted *executed, const LhVerdict *verdict, const LhBackend *backend,
             GError **error)
{
    if (backend->links == NULL || !backend->links->one_queue || verdict->one_queue)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "%s is not proven free of deadlock over %s, where streams may have to wait for "
                "each other: %s%s",
                executed->program->name, backend->name,
                verdict->queue_cycle != NULL ? "with all streams of a rank in one queue, " : "",
                verdict->queue_cycle != NULL ? verdict->queue_cycle : "see longhaul verify");
    return false;
}

static bool
check_memory(const LhProgram *program, const LhVerdict *verdict, const LhBackend *backend,
             GError **error)
{
    const LhMemoryEstimate need = lh_memory_estimate(program, verdict, backend);

    return lh_memory_estimate_check(&need, error);
}

/* ---- counts ---- */

static void
add_count(LhCount *count, uint64_t counted, uint64_t verified, uint64_t simulated)
{
    count->counted += counted;
    count->verified += verified;
    count->simulated += simulated;
    count->equal = count->equal && counted == verified && verified == simulated;
}

static void
compare_counts(LhExecuted *executed, const LhVerdict *verdict, const LhSimResult *sim)
{
    executed->bytes_sent.equal = true;
    executed->flops.equal = true;
    executed->peak_bytes.equal = true;
    for (uint32_t r = 0; r < executed->run->ranks_count; r++) {
        const LhRunRank *rank = &executed->run->ranks[r];

        add_count(&executed->bytes_sent, rank->bytes_sent, verdict->bytes_sent[r],
                  sim->ranks[r].bytes_sent);
        add_count(&executed->flops, rank->flops, verdict->flops[r], sim->ranks[r].flops);
        add_count(&executed->peak_bytes, rank->peak_bytes, verdict->peak_bytes[r],
                  sim->ranks[r].peak_bytes);
    }
    executed->counts_ok =
        executed->bytes_sent.equal && executed->flops.equal && executed->peak_bytes.equal;
}

/* ---- runs ---- */

static int64_t
deadline_us(const LhExecuteParams *params, const LhVerdict *verdict)
{
    double flops = 0;

    if (params->deadline_ps > 0)
        return MAX(params->deadline_ps / LH_PS_PER_US, 1);
    for (uint32_t r = 0; r < verdict->ranks; r++)
        flops += (double)verdict->flops[r];
    return MAX(DEADLINE_PS_MIN / LH_PS_PER_US,
               (int64_t)(DEADLINE_FACTOR * flops / FLOPS_PER_S * 1e6));
}

static char *
digest_of(const LhRunResult *run)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);

    for (uint32_t r = 0; r < run->ranks_count; r++)
        g_checksum_update(sum, run->outputs[r], (gssize)run->output_bytes);
    return g_strdup(g_checksum_get_string(sum));
}

void
lh_executed_take(LhExecuted *executed, LhRunResult *run, bool measured)
{
    executed->whole = run->whole;
    lh_run_result_free(executed->run);
    executed->run = run;
    if (!run->whole)
        return;
    executed->makespans_ps = g_renew(LhTime, executed->makespans_ps, executed->repeats + 1);
    executed->makespans_ps[executed->repeats] = run->makespan_ps;
    executed->repeats += measured ? 1 : 0;
    if (executed->digest == NULL) {
        executed->digest = digest_of(run);
        executed->same_bits = true;
    } else {
        g_autofree char *digest = digest_of(run);

        executed->same_bits = executed->same_bits && strcmp(digest, executed->digest) == 0;
    }
}

LhRunResult *
lh_execute_once(const LhExecuted *executed, LhRunParams *run, const LhExecuteParams *params,
                bool last, GError **error)
{
    LhRunResult *result;

    run->timeline = last ? params->timeline : NULL;
    run->timeline_data = params->timeline_data;
    result = lh_execute(run, error);
    if (result == NULL)
        g_prefix_error(error, "%s: ", executed->program->name);
    return result;
}

uint64_t
lh_execute_unmeasured(const LhExecuteParams *params)
{
    return params->backend->links != NULL && params->inject == NULL ? 1 : 0;
}

static bool
run_repeats(LhExecuted *executed, LhRunParams *run, const LhExecuteParams *params, GError **error)
{
    const uint64_t before = lh_execute_unmeasured(params), all = before + MAX(params->repeat, 1);

    for (uint64_t i = 0; i < all; i++) {
        LhRunResult *result;

        g_clear_pointer(&executed->run, lh_run_result_free);
        result = lh_execute_once(executed, run, params, i + 1 == all, error);
        if (result == NULL)
            return false;
        lh_executed_take(executed, result, i >= before);
    }
    return true;
}

/* Compares the outputs of the last run with the reference. */
static bool
check_run(LhExecuted *executed, LhNumerics *numerics, const LhExecuteJob *job, GError **error)
{
    gint64 started_us;

    if (job->params->check_tokens > 0 &&
        !lh_row_sample_refer(numerics, executed->program, executed->run, job->control, error))
        return false;
    started_us = g_get_monotonic_time();
    if (!lh_tolerance_compare_shared(numerics, executed->program, executed->run, job->control,
                                     &executed->errors, error))
        return false;
    executed->check_s =
        numerics->seconds + (double)(g_get_monotonic_time() - started_us) / G_USEC_PER_SEC;
    return true;
}

static bool
run_module(LhExecuted *executed, const LhExecuteJob *job, const LhRunParams *params, GError **error)
{
    const LhExecuteParams *p = job->params;
    const uint64_t seed = job->setup->scenario->seed;
    g_autoptr(LhNumerics) numerics =
        p->check_tokens > 0
            ? lh_row_sample_new(executed->program, seed, p->inputs, p->check_tokens,
                                &job->control->place)
            : lh_numerics_new_shared(executed->program, seed, p->inputs, job->control, error);
    LhNumericsLoad load = { .program = executed->program, .numerics = numerics };
    LhRunParams run = *params;

    if (numerics == NULL)
        return false;
    run.load = lh_numerics_load_part;
    run.load_data = &load;
    return run_repeats(executed, &run, p, error) && check_run(executed, numerics, job, error);
}

static bool
run_and_check(LhExecuted *executed, const LhExecuteJob *job, const LhRunParams *params,
              const LhVerdict *verdict, GError **error)
{
    const LhStepParams *step = lh_step_params(executed->program);
    bool (*const run)(LhExecuted *, const LhExecuteJob *, const LhRunParams *, GError **) =
        step == NULL         ? run_module
        : step->forward_only ? lh_execute_prefill
                             : lh_execute_training;
    g_autoptr(LhSimResult) sim =
        lh_setup_simulate(job->setup, executed->program, NULL, NULL, NULL, error);

    if (sim == NULL || !run(executed, job, params, error))
        return false;
    if (executed->whole)
        compare_counts(executed, verdict, sim);
    return true;
}

bool
lh_execute_way(const LhSetup *setup, const LhBackend *backend, LhCollectiveWay *way, GError **error)
{
    const int asked = setup->scenario->collectives;
    const bool has_native = backend->links != NULL && backend->links->collectives != NULL;

    switch (asked) {
    case -1:
    case LH_COLLECTIVES_AUTO:
    case LH_COLLECTIVES_DIRECT:
        *way = LH_WAY_DIRECT;
        return true;
    case LH_COLLECTIVES_RING:
        *way = LH_WAY_RING;
        return true;
    case LH_COLLECTIVES_PAIRWISE:
        *way = LH_WAY_PAIRWISE;
        return true;
    case LH_COLLECTIVES_NCCL:
        *way = LH_WAY_NATIVE;
        return has_native ||
               lh_scenario_error(setup->scenario, "collectives", error,
                                 "only backend \"nccl\" runs collectives by NCCL; this one "
                                 "supports \"direct\", \"ring\" and \"pairwise\"");
    default:
        return lh_scenario_error(setup->scenario, "collectives", error,
                                 "\"%s\" is a model for simulation only; this backend executes "
                                 "\"direct\", \"ring\", \"pairwise\"%s",
                                 lh_collective_model_names[asked],
                                 has_native ? " and \"nccl\"" : "");
    }
}

static bool
has_device(const LhRunDevice *device, GError **error)
{
    return device->probe == NULL || device->probe(error);
}

/* Checks that all processes have the same program, since its files may differ. The command line
 * compares the options. */
static bool
agree(const LhProgram *program, const LhOpenControl *control, GError **error)
{
    g_autofree char *digest = NULL;

    if (control->place.count == lh_program_ranks(program))
        return true;
    digest = lh_program_digest(program);
    return lh_processes_agree(&(LhProcesses){ *control, lh_program_ranks(program) }, "program",
                              digest, error);
}

/* There are no CUDA kernels of Muon. */
static bool
check_optimizer(const LhProgram *program, const LhBackend *backend, GError **error)
{
    const LhStepParams *p = lh_step_params(program);

    if (p == NULL || p->muon.optimizer != LH_OPTIMIZER_MUON || backend->device->host_memory)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "Muon has no kernels for GPUs, which backend %s needs; steps with --optimizer muon "
                "run on backends cpu, mpi and tcp",
                backend->name);
    return false;
}

static bool
execute(LhExecuted *executed, const LhSetup *setup, const LhExecuteParams *params, GError **error)
{
    g_autoptr(LhVerdict) verdict = lh_verify(executed->program);
    g_autofree LhInjection *injection = NULL;
    LhOpenControl control = { .table = params->backend->control };
    LhRunParams run = {
        .program = executed->program,
        .backend = params->backend,
        .kernel_set = params->kernel_set,
        .deadline_us = deadline_us(params, verdict),
    };
    bool ok;

    if (!lh_execute_way(setup, params->backend, &run.collectives, error) ||
        !check_optimizer(executed->program, params->backend, error))
        return false;
    if (!check_proof(executed, setup, verdict, error) ||
        !check_queues(executed, verdict, params->backend, error) ||
        !check_memory(executed->program, verdict, params->backend, error))
        return false;
    if (params->inject != NULL) {
        injection = lh_injection_new(executed->program, params->inject, error);
        if (injection == NULL)
            return false;
        run.hooks = &injection->hooks;
    }
    control.state = control.table->open(lh_program_ranks(executed->program), run.deadline_us,
                                        &control.place, error);
    if (control.state == NULL)
        return false;
    /* Join the control plane even without a device, so that the other processes learn of it. */
    ok = has_device(params->backend->device, error) && agree(executed->program, &control, error) &&
         run_and_check(executed, &(LhExecuteJob){ setup, params, &control }, &run, verdict, error);
    control.table->close(control.state);
    return ok;
}

LhExecuted *
lh_execute_program(const LhSetup *setup, const LhProgram *program, const LhExecuteParams *params,
                   GError **error)
{
    g_autoptr(LhExecuted) executed = g_new0(LhExecuted, 1);

    executed->program = program;
    executed->unordered = program->params.pass != LH_PASS_FWD &&
                          (params->backend->device->unordered_sets >> params->kernel_set & 1) != 0;
    if (!execute(executed, setup, params, error))
        return NULL;
    return g_steal_pointer(&executed);
}

LhExecuted *
lh_execute_setup(const LhSetup *setup, const LhExecuteParams *params, GError **error)
{
    g_autoptr(LhProgram) made = NULL;
    LhExecuted *executed;

    if (setup->program != NULL)
        return lh_execute_program(setup, setup->program, params, error);
    made = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), error);
    if (made == NULL)
        return NULL;
    executed = lh_execute_program(setup, made, params, error);
    if (executed != NULL)
        executed->made = g_steal_pointer(&made);
    return executed;
}

void
lh_executed_free(LhExecuted *executed)
{
    if (executed == NULL)
        return;
    lh_run_result_free(executed->run);
    lh_program_free(executed->made);
    g_free(executed->makespans_ps);
    g_free(executed->losses);
    g_free(executed->reference_losses);
    lh_error_report_clear(&executed->errors);
    g_free(executed->digest);
    g_free(executed);
}

bool
lh_executed_ok(const LhExecuted *executed)
{
    return executed->errors.ok && executed->counts_ok &&
           (executed->same_bits || executed->unordered);
}
