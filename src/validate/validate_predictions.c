/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates every schedule before any is run. */
#include "validate/validate_private.h"

#include "base/error.h"
#include "execute/execute.h"
#include "program/explicit/digest.h"
#include "scenario/setup_simulate.h"
#include "verify/verify.h"

static LhValidateCase *
case_new(const LhValidateJob *job, LhValidation *row, LhProgram *made, const LhProgram *program)
{
    LhValidateCase *c = g_new0(LhValidateCase, 1);

    c->row = row;
    c->made = made;
    c->program = program;
    c->joined = (LhJoinedRuns){
        .predicted = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord)),
        .times = g_array_new(FALSE, TRUE, sizeof(double)),
        .makespans = g_array_new(FALSE, FALSE, sizeof(double)),
        .starts = g_array_new(FALSE, FALSE, sizeof(double)),
        .repeat = MAX(job->params->repeat, 1),
        .tick_s = job->params->backend->device->tick_s,
    };
    return c;
}

/* Keeps only the records of the rank that runs alone. */
static bool
take_rank(const LhValidateJob *job, LhValidateCase *c, GError **error)
{
    LhJoinedRuns *j = &c->joined;
    GArray *own;
    uint32_t rank;

    if (!lh_single_rank_choose(&job->params->alone, j->predicted, &rank, error))
        return false;
    own = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    j->replay = lh_single_rank_replay(j->predicted, j->meetings, rank, own);
    g_clear_pointer(&j->meetings, lh_pairing_free);
    g_array_unref(j->predicted);
    j->predicted = own;
    c->predicted_ps = 0;
    for (guint i = 0; i < j->predicted->len; i++)
        c->predicted_ps = MAX(c->predicted_ps, lh_joined_record(j->predicted, i)->end_ps);
    c->row->rank = rank;
    c->row->ranks = 1;
    return true;
}

static bool
predicts_on(const LhValidateJob *job)
{
    return lh_task_tell(&job->params->task, &(LhProgress){ 0 });
}

/* Sets the error of a failed or interrupted prediction: there is no partial result to report. */
static bool
fail_prediction(const LhValidateJob *job, const LhValidateCase *c, GError **error)
{
    if (predicts_on(job)) {
        g_prefix_error(error, "%s: ", c->row->schedule);
        return false;
    }
    g_clear_error(error);
    g_set_error_literal(error, LH_ERROR, LH_ERROR_INTERRUPTED,
                        "interrupted while predicting: nothing was run");
    return false;
}

static bool
predict_case(const LhValidateJob *job, LhValidateCase *c, GError **error)
{
    const LhHooks hooks = { .task = job->params->task,
                            .timeline = lh_attribution_collect,
                            .timeline_data = c->joined.predicted };
    g_autoptr(LhSimResult) sim = NULL;

    sim = lh_setup_simulate(job->setup, c->program, NULL, NULL, &hooks, error);
    if (sim == NULL || !predicts_on(job))
        return fail_prediction(job, c, error);
    g_array_sort(c->joined.predicted, lh_timeline_by_rank_and_op);
    c->joined.meetings = lh_pairing_new(c->program, c->joined.predicted);
    c->predicted_ps = sim->makespan_ps;
    c->row->ranks = lh_program_ranks(c->program);
    if (job->params->alone.choice != LH_SINGLE_RANK_NONE && !take_rank(job, c, error))
        return false;
    c->row->predicted_s = lh_joined_seconds(c->predicted_ps);
    g_array_set_size(c->joined.times, (guint)(c->joined.predicted->len * c->joined.repeat));
    return true;
}

/* Why the program cannot be run; NULL: it can. Caller frees. */
static char *
refusal_of(const LhVerdict *verdict, const LhBackend *backend)
{
    if (verdict->findings->len > 0)
        return g_strdup("not run: not proven; see longhaul verify");
    if (backend->links == NULL || !backend->links->one_queue || verdict->one_queue)
        return NULL;
    return g_strdup_printf(
        "not proven free of deadlock over %s, where streams may have to wait for each other",
        backend->name);
}

/* Adds a schedule. One that cannot run gets a row only; one that cannot be simulated is an
 * error. */
static bool
add_schedule(LhValidateJob *job, const LhSchedule *schedule, GError **error)
{
    LhValidation *v = g_new0(LhValidation, 1);
    LhProgram *made = NULL;
    const LhProgram *program;
    g_autoptr(LhVerdict) verdict = NULL;
    g_autoptr(GError) refusal = NULL;

    v->kernels = g_array_new(FALSE, FALSE, sizeof(LhKernelErrors));
    v->tiers = g_array_new(FALSE, FALSE, sizeof(LhKernelErrors));
    v->rank = -1;
    g_ptr_array_add(job->validated->rows, v);
    if (schedule != NULL) {
        program = made = lh_program_new(schedule, &job->setup->params, &refusal);
        v->schedule = schedule->name;
    } else {
        program = job->setup->program;
        g_assert(program != NULL);
        v->schedule = program->name;
    }
    if (program == NULL) {
        v->refused = g_strdup(refusal->message);
        return true;
    }
    verdict = lh_verify(program);
    v->refused = refusal_of(verdict, &job->backend);
    if (v->refused != NULL) {
        lh_program_free(made);
        return true;
    }
    g_ptr_array_add(job->cases, case_new(job, v, made, program));
    return predict_case(job, g_ptr_array_index(job->cases, job->cases->len - 1), error);
}

/* Records the predictions. All processes must have predicted the same. */
static bool
stamp(LhValidateJob *job, GError **error)
{
    LhValidated *validated = job->validated;
    GString *lines = g_string_new(NULL);

    for (guint i = 0; i < job->cases->len; i++) {
        const LhValidateCase *c = g_ptr_array_index(job->cases, i);
        g_autofree char *digest = lh_program_digest(c->program);

        g_string_append_printf(lines, "%s %s %" G_GINT64_FORMAT, c->row->schedule, digest,
                               (gint64)c->predicted_ps);
        if (c->row->rank >= 0)
            g_string_append_printf(lines, " rank %" G_GINT64_FORMAT, c->row->rank);
        g_string_append_c(lines, '\n');
    }
    validated->prediction_sha256 =
        g_compute_checksum_for_string(G_CHECKSUM_SHA256, lines->str, (gssize)lines->len);
    validated->prediction = g_string_free(lines, FALSE);
    return lh_processes_agree(&job->processes, "prediction", validated->prediction_sha256, error);
}

/* Chooses how collectives run. For a rank alone they are replayed, whatever they are made of. */
static bool
choose_way(LhValidateJob *job, GError **error)
{
    const LhLinks *links = job->backend.links;

    if (job->params->alone.choice == LH_SINGLE_RANK_NONE)
        return lh_execute_way(job->setup, &job->backend, &job->way, error);
    job->way = links != NULL && links->collectives != NULL ? LH_WAY_NATIVE : LH_WAY_DIRECT;
    return true;
}

bool
lh_validate_predict(LhValidateJob *job, GError **error)
{
    const LhSetup *setup = job->setup;

    if (!choose_way(job, error) || (setup->program != NULL && !add_schedule(job, NULL, error)))
        return false;
    for (guint i = 0; i < setup->schedules->len; i++) {
        if (!add_schedule(job, g_ptr_array_index(setup->schedules, i), error))
            return false;
    }
    return stamp(job, error) &&
           (!job->validated->first || job->params->predicted == NULL ||
            job->params->predicted(job->params->predicted_data, job->validated, error));
}
