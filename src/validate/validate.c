/*
 * Validation. Kernels' errors compare durations; where an op starts is judged by the makespan
 * alone. Results are not looked at: that is longhaul run. With processes every one of them predicts
 * and runs everything; the first one has the measurements, and says when the time is over.
 */
#include "validate/validate.h"

#include "base/allocation.h"
#include "base/error.h"
#include "base/rng.h"
#include "execute/execute.h"
#include "kernels/cpu/rows.h"
#include "measure/fit.h"
#include "measure/microbenchmarks.h"
#include "program/explicit/digest.h"
#include "program/pairing.h"
#include "runtime/process/processes.h"
#include "runtime/thread_affinity.h"
#include "verify/verify.h"

#include <math.h>
#include <string.h>

#define DEADLINE_DEFAULT_US INT64_C(120000000)
#define EXPLAINED_OPS_MAX 50000 /* which are simulated a few hundred times */

/* ---- one program ---- */

static const LhTimelineRecord *
record_at(const GArray *records, guint index)
{
    return &g_array_index(records, LhTimelineRecord, index);
}

static double
seconds(LhTime time_ps)
{
    return (double)time_ps / (double)LH_PS_PER_S;
}

/* Numbers that are valid as any tensor; a log-sum-exp is that of all keys with logits of about 0.
 */
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

/* All repeats of one program. */
typedef struct {
    GArray *predicted;          /* of LhTimelineRecord, by rank and op */
    LhPairing *meetings;        /* of these; what they take is without waiting for others; NULL: of
                                    a rank alone */
    LhReplay *replay;           /* of a rank alone, whose records are all there are; else NULL */
    GArray *times;              /* of double: [record][repeat], measured */
    GArray *makespans, *starts; /* of double: [repeat] */
    uint64_t repeat;
    double tick_s; /* the device's: an op that took less is as one that took so long */
} Joined;

static void
clear_joined(Joined *j)
{
    g_clear_pointer(&j->predicted, g_array_unref);
    g_clear_pointer(&j->meetings, lh_pairing_free);
    g_clear_pointer(&j->replay, lh_replay_free);
    g_clear_pointer(&j->times, g_array_unref);
    g_clear_pointer(&j->makespans, g_array_unref);
    g_clear_pointer(&j->starts, g_array_unref);
}

/* What record @i of @records took once it and all that it meets had begun. */
static double
took(const Joined *j, const GArray *records, guint i)
{
    const LhTimelineRecord *r = record_at(records, i);
    LhTime start_ps = r->start_ps;

    if (j->replay == NULL)
        return fmax(seconds(lh_pairing_took(j->meetings, records, i)), j->tick_s);
    start_ps = MAX(start_ps, lh_replay_op(j->replay, r->op).others_ps);
    return fmax(seconds(r->end_ps - (start_ps < r->end_ps ? start_ps : r->start_ps)), j->tick_s);
}

/* Adds one run: the same ops, or something is wrong with one of the two readers of the program. */
static bool
join(Joined *j, uint64_t run, GArray *measured, const LhRunResult *result, GError **error)
{
    double makespan = seconds(result->makespan_ps);
    double start = 0, issued = 0;
    LhTime last_ps = 0;

    g_array_sort(measured, lh_timeline_by_rank_and_op);
    if (measured->len != j->predicted->len) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%u ops were executed, %u simulated",
                    measured->len, j->predicted->len);
        return false;
    }
    for (guint i = 0; i < measured->len; i++) {
        const LhTimelineRecord *m = record_at(measured, i);
        const LhTimelineRecord *p = record_at(j->predicted, i);

        if (m->rank != p->rank || m->op != p->op || m->kernel != p->kernel) {
            g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "op %u of rank %u was executed where op %u of rank %u was simulated", m->op,
                        m->rank, p->op, p->rank);
            return false;
        }
        g_array_index(j->times, double, i * j->repeat + run) = took(j, measured, i);
        if (i == 0 || m->rank != record_at(measured, i - 1)->rank)
            issued = seconds(MIN(m->issued_ps, m->start_ps)); /* in virtual time hosts are late */
        if (m->end_ps > last_ps) {
            last_ps = m->end_ps;
            start = issued;
        }
    }
    g_array_append_val(j->makespans, makespan);
    g_array_append_val(j->starts, start);
    return true;
}

/* A schedule on its way. */
typedef struct {
    LhValidation *row; /* borrowed */
    LhProgram *made;   /* NULL: the setup's own */
    const LhProgram *program;
    LhTime predicted_ps;
    Joined joined;
} Case;

static void
case_free(gpointer data)
{
    Case *c = data;

    clear_joined(&c->joined);
    lh_program_free(c->made);
    g_free(c);
}

typedef struct {
    const LhSetup *setup;
    const LhValidateParams *params;
    LhValidated *validated;
    LhBackend backend; /* the parameters'; of a rank alone, with what plays messages */
    LhCollectiveWay way;
    GPtrArray *cases; /* of Case *: those that are run */
    LhProcesses processes;
    gint64 begun_us;
} ValidateJob;

static int64_t
validate_deadline_us(const LhValidateParams *params)
{
    return params->deadline_us > 0 ? params->deadline_us : DEADLINE_DEFAULT_US;
}

/* Runs it once; @count: the run that it is of those that count, -1: none. */
static bool
execute_case(const ValidateJob *job, Case *c, int64_t count, GError **error)
{
    g_autoptr(GArray) measured = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    g_autoptr(LhRunResult) result = NULL;
    /* What is played to a rank alone may be predicted to take as long as it likes. */
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
    return !result->whole || join(&c->joined, (uint64_t)count, measured, result, error);
}

/* ---- errors ---- */

typedef struct {
    LhKernelErrors row;
    GArray *errors; /* of double */
} Bin;

static void
add_to_bin(Bin *bin, const char *name, double measured_s, double predicted_s)
{
    const double error = predicted_s / measured_s - 1;

    if (bin->errors == NULL)
        bin->errors = g_array_new(FALSE, FALSE, sizeof(double));
    bin->row.kernel = name;
    bin->row.ops++;
    bin->row.measured_s += measured_s;
    bin->row.predicted_s += predicted_s;
    if (fabs(error) > fabs(bin->row.error_worst))
        bin->row.error_worst = error;
    g_array_append_val(bin->errors, error);
}

static int
kernels_by_time(gconstpointer a, gconstpointer b)
{
    const LhKernelErrors *x = a;
    const LhKernelErrors *y = b;

    return x->measured_s < y->measured_s ? 1 : x->measured_s > y->measured_s ? -1 : 0;
}

/* Bins of all kernels, behind them of what is not computed, and of exchanges by tier. */
enum {
    EXCHANGES = LH_KERNELS_COUNT,
    COLLECTIVES,
    TIERS,
    BINS = TIERS + LH_TIERS,
};

static void
take_bins(LhValidation *v, Bin *bins)
{
    double compute_s = 0;

    for (size_t i = 0; i < LH_KERNELS_COUNT; i++)
        compute_s += bins[i].row.measured_s;
    for (size_t i = 0; i < BINS; i++) {
        Bin *bin = &bins[i];

        if (i == EXCHANGES)
            g_array_sort(v->kernels, kernels_by_time);
        if (bin->errors == NULL)
            continue;
        bin->row.error_median = lh_median((double *)(void *)bin->errors->data, bin->errors->len);
        bin->row.share = i >= EXCHANGES ? 0 : bin->row.measured_s / compute_s;
        g_array_append_val(*(i >= TIERS ? &v->tiers : &v->kernels), bin->row);
        g_array_unref(bin->errors);
    }
}

static void
compare_ops(LhValidation *v, Joined *j, const ValidateJob *job)
{
    const LhTopology *topology = job->setup->topology;
    Bin bins[BINS] = { 0 };
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(double));

    for (guint i = 0; i < j->predicted->len; i++) {
        const LhTimelineRecord *p = record_at(j->predicted, i);
        const double measured_s = lh_statistic(
            job->params->statistic, &g_array_index(j->times, double, i * j->repeat), v->runs);
        const double predicted_s = took(j, j->predicted, i);
        const double off = fabs(predicted_s / measured_s - 1);

        if (p->kind != LH_OP_COMPUTE) {
            const bool exchange = p->kind == LH_OP_EXCHANGE;

            add_to_bin(&bins[exchange ? EXCHANGES : COLLECTIVES],
                       exchange ? "exchange" : "collective", measured_s, predicted_s);
            if (exchange && p->tier < LH_TIERS)
                add_to_bin(&bins[TIERS + p->tier], lh_topology_link_name(topology, (LhTier)p->tier),
                           measured_s, predicted_s);
            continue;
        }
        if (job->validated->hosts != NULL)
            lh_slow_hosts_add_kernel(job->validated->hosts,
                                     p->rank / job->setup->network.gpus_per_host, measured_s,
                                     predicted_s);
        add_to_bin(&bins[p->kernel], lh_kernels[p->kernel]->name, measured_s, predicted_s);
        g_array_append_val(all, off);
    }
    take_bins(v, bins);
    if (all->len > 0)
        v->op_error = lh_median((double *)(void *)all->data, all->len);
}

/* The start of the run whose makespan is nearest to @makespan. */
static double
start_of(const Joined *j, double makespan)
{
    guint nearest = 0;

    for (guint i = 1; i < j->makespans->len; i++) {
        if (fabs(g_array_index(j->makespans, double, i) - makespan) <
            fabs(g_array_index(j->makespans, double, nearest) - makespan))
            nearest = i;
    }
    return g_array_index(j->starts, double, nearest);
}

static void
compare_case(const ValidateJob *job, Case *c)
{
    LhValidation *v = c->row;
    Joined *j = &c->joined;
    g_autofree double *sorted = g_memdup2(j->makespans->data, v->runs * sizeof(double));

    v->measured_s = lh_statistic(job->params->statistic, sorted, v->runs);
    v->spread = sorted[v->runs - 1] / sorted[0] - 1; /* in order now */
    v->start_s = start_of(j, v->measured_s);
    compare_ops(v, j, job);
}

/* ---- predictions ---- */

static void
validation_free(gpointer data)
{
    LhValidation *v = data;

    g_free(v->refused);
    g_array_unref(v->kernels);
    g_array_unref(v->tiers);
    g_free(v);
}

static Case *
case_new(const ValidateJob *job, LhValidation *row, LhProgram *made, const LhProgram *program)
{
    Case *c = g_new0(Case, 1);

    c->row = row;
    c->made = made;
    c->program = program;
    c->joined = (Joined){
        .predicted = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord)),
        .times = g_array_new(FALSE, TRUE, sizeof(double)),
        .makespans = g_array_new(FALSE, FALSE, sizeof(double)),
        .starts = g_array_new(FALSE, FALSE, sizeof(double)),
        .repeat = MAX(job->params->repeat, 1),
        .tick_s = job->params->backend->device->tick_s,
    };
    return c;
}

/* Of the prediction, what is of the rank that runs alone. */
static bool
take_rank(const ValidateJob *job, Case *c, GError **error)
{
    Joined *j = &c->joined;
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
        c->predicted_ps = MAX(c->predicted_ps, record_at(j->predicted, i)->end_ps);
    c->row->rank = rank;
    c->row->ranks = 1;
    return true;
}

static bool
predicts_on(void *data, const char *what, uint64_t events, LhTime now_ps)
{
    const ValidateJob *job = data;

    (void)what;
    (void)events;
    (void)now_ps;
    return job->params->go_on == NULL || job->params->go_on();
}

/* Before everything is predicted there is nothing to tell. */
static bool
fail_prediction(const ValidateJob *job, const Case *c, GError **error)
{
    if (predicts_on((void *)job, NULL, 0, 0)) {
        g_prefix_error(error, "%s: ", c->row->schedule);
        return false;
    }
    g_clear_error(error);
    g_set_error_literal(error, LH_ERROR, LH_ERROR_INTERRUPTED,
                        "interrupted while times were predicted: nothing was run");
    return false;
}

static bool
predict_case(const ValidateJob *job, Case *c, GError **error)
{
    const LhHooks hooks = { .timeline = lh_attribution_collect,
                            .timeline_data = c->joined.predicted,
                            .progress = predicts_on,
                            .progress_data = (void *)job };
    g_autoptr(LhSimResult) sim = NULL;

    sim = lh_setup_simulate(job->setup, c->program, NULL, NULL, &hooks, error);
    if (sim == NULL || !predicts_on((void *)job, NULL, 0, 0))
        return fail_prediction(job, c, error);
    g_array_sort(c->joined.predicted, lh_timeline_by_rank_and_op);
    c->joined.meetings = lh_pairing_new(c->program, c->joined.predicted);
    c->predicted_ps = sim->makespan_ps;
    c->row->ranks = lh_program_ranks(c->program);
    if (job->params->alone.choice != LH_SINGLE_RANK_NONE && !take_rank(job, c, error))
        return false;
    c->row->predicted_s = seconds(c->predicted_ps);
    g_array_set_size(c->joined.times, (guint)(c->joined.predicted->len * c->joined.repeat));
    return true;
}

/* Why it cannot be run; NULL: it can. Caller frees. */
static char *
refusal_of(const LhVerdict *verdict, const LhBackend *backend)
{
    if (verdict->findings->len > 0)
        return g_strdup("not proven, so not run; see longhaul verify");
    if (backend->links == NULL || !backend->links->one_queue || verdict->one_queue)
        return NULL;
    return g_strdup_printf("not proven to end over %s, where streams may have to wait for each "
                           "other",
                           backend->name);
}

/* A schedule that cannot is a row; one that cannot be simulated is an error. */
static bool
add_schedule(ValidateJob *job, const LhSchedule *schedule, GError **error)
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

/* Writes down what was predicted; all processes must have predicted the same. */
static bool
stamp(ValidateJob *job, GError **error)
{
    LhValidated *validated = job->validated;
    GString *lines = g_string_new(NULL);

    for (guint i = 0; i < job->cases->len; i++) {
        const Case *c = g_ptr_array_index(job->cases, i);
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

/* A rank alone has what it meets played, whatever that is made of. */
static bool
choose_way(ValidateJob *job, GError **error)
{
    const LhLinks *links = job->backend.links;

    if (job->params->alone.choice == LH_SINGLE_RANK_NONE)
        return lh_execute_way(job->setup, &job->backend, &job->way, error);
    job->way = links != NULL && links->collectives != NULL ? LH_WAY_NATIVE : LH_WAY_DIRECT;
    return true;
}

static bool
predict_all(ValidateJob *job, GError **error)
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

/* ---- runs ---- */

static bool
measures_on(const ValidateJob *job)
{
    if (job->params->go_on != NULL && !job->params->go_on())
        job->validated->interrupted = true;
    return !job->validated->interrupted;
}

/* Whether there is time for another run, as the first process sees it. */
static bool
has_time(const ValidateJob *job, bool *time, GError **error)
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

/* The cases in an order of this round's own: each is swapped with one that is not behind it. */
static void
shuffle(const ValidateJob *job, uint64_t round)
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
 * The first round warms caches, clocks and connections up; after that a round is one run of each
 * schedule. When the budget is spent, what is left out are runs of schedules that have some.
 */
static bool
run_cases(ValidateJob *job, GError **error)
{
    const uint64_t repeat = MAX(job->params->repeat, 1);
    LhValidated *validated = job->validated;
    bool time = true;

    for (uint64_t round = 0; round <= repeat; round++) {
        shuffle(job, round);
        for (guint i = 0; i < job->cases->len; i++) {
            Case *c = g_ptr_array_index(job->cases, i);

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

/* ---- all of them ---- */

static int
by_measured(const void *a, const void *b)
{
    const LhValidation *x = *(LhValidation *const *)a, *y = *(LhValidation *const *)b;

    return x->measured_s < y->measured_s ? -1 : x->measured_s > y->measured_s;
}

static int
by_predicted(const void *a, const void *b)
{
    const LhValidation *x = *(LhValidation *const *)a, *y = *(LhValidation *const *)b;

    return x->predicted_s < y->predicted_s ? -1 : x->predicted_s > y->predicted_s;
}

/* The place of @row in @order, from 0; that of equals is their mean. */
static double
place_in(LhValidation **order, size_t count, const LhValidation *row,
         int (*compare_rows)(const void *, const void *))
{
    size_t before = 0, equal = 0;

    for (size_t i = 0; i < count; i++) {
        const int sign = compare_rows(&order[i], &row);

        before += sign < 0;
        equal += sign == 0;
    }
    return (double)before + ((double)equal - 1) / 2;
}

/* Spearman's: the correlation of the places. */
static double
correlate(LhValidation **rows, size_t count)
{
    const double mean = ((double)count - 1) / 2;
    double both = 0, measured = 0, predicted = 0;

    for (size_t i = 0; i < count; i++) {
        const double m = place_in(rows, count, rows[i], by_measured) - mean;
        const double p = place_in(rows, count, rows[i], by_predicted) - mean;

        both += m * p;
        measured += m * m;
        predicted += p * p;
    }
    return measured > 0 && predicted > 0 ? both / sqrt(measured * predicted) : NAN;
}

static void
sum_up_errors(ValidateJob *job)
{
    LhValidated *validated = job->validated;
    g_autofree LhValidation **rows = g_new(LhValidation *, MAX(job->cases->len, 1));
    g_autofree double *off = g_new(double, MAX(job->cases->len, 1));
    size_t count = 0;

    validated->error_median = validated->error_worst = validated->rank_correlation = NAN;
    for (guint i = 0; i < job->cases->len; i++) {
        Case *c = g_ptr_array_index(job->cases, i);

        if (c->row->runs == 0) {
            c->row->refused = g_strdup(validated->interrupted ? "not run: interrupted"
                                                              : "not run: the budget was spent");
            continue;
        }
        compare_case(job, c);
        rows[count] = c->row;
        off[count++] = fabs(lh_validation_error(c->row));
    }
    if (count == 0)
        return;
    validated->error_median = lh_median(off, count);
    validated->error_worst = off[count - 1]; /* in order now */
    validated->rank_correlation = correlate(rows, count);
}

/* What each op of the case took, by the statistic of the runs; caller frees. */
static double *
took_of(const ValidateJob *job, const Case *c)
{
    const Joined *j = &c->joined;
    double *took = g_new(double, MAX(j->predicted->len, 1));

    for (guint i = 0; i < j->predicted->len; i++)
        took[i] = lh_statistic(job->params->statistic,
                               &g_array_index(j->times, double, i * j->repeat), c->row->runs);
    return took;
}

/* Which constants are off, by all that was measured. */
static bool
explain(const ValidateJob *job, GError **error)
{
    g_autofree LhAttributionCase *cases = g_new0(LhAttributionCase, MAX(job->cases->len, 1));
    LhAttributed explained;
    uint32_t count = 0;
    uint64_t ops = 0;
    bool ok;

    for (guint i = 0; i < job->cases->len; i++) {
        const Case *c = g_ptr_array_index(job->cases, i);

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
measure_hosts(ValidateJob *job, GError **error)
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
validate(ValidateJob *job, GError **error)
{
    const LhValidateParams *params = job->params;
    const LhRunDevice *device = params->backend->device;

    job->validated->first = lh_processes_first(&job->processes);
    if ((device->probe != NULL && !device->probe(error)) || !predict_all(job, error))
        return false;
    job->begun_us = g_get_monotonic_time();
    if (!run_cases(job, error) || !measure_hosts(job, error))
        return false;
    if (job->validated->first)
        sum_up_errors(job);
    if (job->validated->first && params->alone.choice == LH_SINGLE_RANK_NONE &&
        !explain(job, error))
        return false;
    if (job->validated->first && job->validated->hosts != NULL)
        lh_slow_hosts_judge(job->validated->hosts);
    return true;
}

LhValidated *
lh_validated_new(void)
{
    LhValidated *validated = g_new0(LhValidated, 1);

    validated->rows = g_ptr_array_new_with_free_func(validation_free);
    return validated;
}

LhValidated *
lh_validate(const LhSetup *setup, const LhValidateParams *params, GError **error)
{
    g_autoptr(LhValidated) validated = lh_validated_new();
    g_autoptr(GPtrArray) cases = g_ptr_array_new_with_free_func(case_free);
    ValidateJob job = { .setup = setup, .params = params, .validated = validated, .cases = cases };
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

void
lh_validated_free(LhValidated *validated)
{
    if (validated == NULL)
        return;
    g_ptr_array_unref(validated->rows);
    lh_slow_hosts_free(validated->hosts);
    g_free(validated->explained);
    g_free(validated->prediction);
    g_free(validated->prediction_sha256);
    g_free(validated);
}

double
lh_validation_error(const LhValidation *v)
{
    return v->predicted_s / v->measured_s - 1;
}

bool
lh_validation_judges(const LhValidation *v, const LhKernelErrors *row)
{
    return row->share >= LH_VALIDATE_SHARE_MIN &&
           row->measured_s >= LH_VALIDATE_SHARE_MIN * v->measured_s * v->ranks;
}

bool
lh_validation_within(const LhValidation *v, double tolerance)
{
    if (v->refused != NULL)
        return true;
    for (guint i = 0; i < v->kernels->len; i++) {
        const LhKernelErrors *row = &g_array_index(v->kernels, LhKernelErrors, i);

        if (lh_validation_judges(v, row) && fabs(row->error_median) > tolerance)
            return false;
    }
    return fabs(lh_validation_error(v)) <= tolerance;
}
