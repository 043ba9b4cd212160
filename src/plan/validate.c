/*
 * Validation. Kernels' errors compare durations; where an op starts is judged by the makespan
 * alone. Results are not looked at: that is longhaul run.
 */
#include "plan/validate.h"

#include "base/error.h"
#include "kernels/cpu/rows.h"
#include "plan/execute.h"
#include "runtime/fit.h"
#include "verify/verify.h"

#include <math.h>
#include <string.h>

#define DEADLINE_US INT64_C(120000000)

/* ---- one program ---- */

static void
collect(void *data, const LhTimelineRecord *record)
{
    if (record->kind == LH_OP_COMPUTE || record->kind == LH_OP_EXCHANGE ||
        record->kind == LH_OP_COLLECTIVE)
        g_array_append_vals(data, record, 1);
}

static int
by_rank_and_op(gconstpointer a, gconstpointer b)
{
    const LhTimelineRecord *x = a;
    const LhTimelineRecord *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

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
load(void *data, uint32_t rank, uint16_t index, uint32_t part, unsigned char *into)
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
    GArray *times;              /* of double: [record][repeat], measured */
    GArray *makespans, *starts; /* of double: [repeat] */
    uint64_t repeat;
} Joined;

static void
clear_joined(Joined *j)
{
    g_clear_pointer(&j->predicted, g_array_unref);
    g_clear_pointer(&j->times, g_array_unref);
    g_clear_pointer(&j->makespans, g_array_unref);
    g_clear_pointer(&j->starts, g_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Joined, clear_joined)

/* Adds one run: the same ops, or something is wrong with one of the two readers of the program. */
static bool
join(Joined *j, uint64_t run, GArray *measured, const LhRunResult *result, GError **error)
{
    double makespan = seconds(result->makespan_ps);
    double start = 0, issued = 0;
    LhTime last_ps = 0;

    g_array_sort(measured, by_rank_and_op);
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
        g_array_index(j->times, double, i * j->repeat + run) = seconds(m->end_ps - m->start_ps);
        if (i == 0 || m->rank != record_at(measured, i - 1)->rank)
            issued = seconds(m->issued_ps);
        if (m->end_ps > last_ps) {
            last_ps = m->end_ps;
            start = issued;
        }
    }
    g_array_append_val(j->makespans, makespan);
    g_array_append_val(j->starts, start);
    return true;
}

static bool
execute(Joined *j, const LhProgram *program, LhCollectiveWay collectives,
        const LhValidateParams *params, GError **error)
{
    LhRunParams run = { .program = program,
                        .backend = &lh_backend_cpu,
                        .collectives = collectives,
                        .kernel_set = params->kernel_set,
                        .deadline_us = DEADLINE_US,
                        .pin = true,
                        .load = load,
                        .load_data = (void *)program,
                        .timeline = collect };

    g_array_set_size(j->times, (guint)(j->predicted->len * j->repeat));
    /* The first one warms caches, clocks and the allocator up. */
    for (uint64_t i = 0; i <= j->repeat; i++) {
        g_autoptr(GArray) measured = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
        g_autoptr(LhRunResult) result = NULL;

        run.timeline_data = measured;
        result = lh_execute(&run, error);
        if (result == NULL || (i > 0 && !join(j, i - 1, measured, result, error)))
            return false;
    }
    return true;
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
by_time(gconstpointer a, gconstpointer b)
{
    const LhKernelErrors *x = a;
    const LhKernelErrors *y = b;

    return x->measured_s < y->measured_s ? 1 : x->measured_s > y->measured_s ? -1 : 0;
}

/* Bins of all kernels, and behind them of what is not computed. */
enum {
    EXCHANGES = LH_KERNELS_COUNT,
    COLLECTIVES,
    BINS,
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
            g_array_sort(v->kernels, by_time);
        if (bin->errors == NULL)
            continue;
        bin->row.error_median = lh_median((double *)(void *)bin->errors->data, bin->errors->len);
        bin->row.share = i >= EXCHANGES ? 0 : bin->row.measured_s / compute_s;
        g_array_append_val(v->kernels, bin->row);
        g_array_unref(bin->errors);
    }
}

static void
compare_ops(LhValidation *v, Joined *j, LhStatistic statistic)
{
    Bin bins[BINS] = { 0 };
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(double));

    for (guint i = 0; i < j->predicted->len; i++) {
        const LhTimelineRecord *p = record_at(j->predicted, i);
        const double measured_s =
            lh_statistic(statistic, &g_array_index(j->times, double, i * j->repeat), j->repeat);
        const double predicted_s = seconds(p->end_ps - p->start_ps);
        const double off = fabs(predicted_s / measured_s - 1);

        if (p->kind != LH_OP_COMPUTE) {
            const bool exchange = p->kind == LH_OP_EXCHANGE;

            add_to_bin(&bins[exchange ? EXCHANGES : COLLECTIVES],
                       exchange ? "exchange" : "collective", measured_s, predicted_s);
            continue;
        }
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
    uint64_t nearest = 0;

    for (uint64_t i = 1; i < j->repeat; i++) {
        if (fabs(g_array_index(j->makespans, double, i) - makespan) <
            fabs(g_array_index(j->makespans, double, nearest) - makespan))
            nearest = i;
    }
    return g_array_index(j->starts, double, nearest);
}

static void
compare(LhValidation *v, Joined *j, const LhSimResult *sim, LhStatistic statistic)
{
    g_autofree double *sorted = g_memdup2(j->makespans->data, j->repeat * sizeof(double));

    v->measured_s = lh_statistic(statistic, sorted, j->repeat);
    v->spread = sorted[j->repeat - 1] / sorted[0] - 1; /* in order now */
    v->predicted_s = seconds(sim->makespan_ps);
    v->start_s = start_of(j, v->measured_s);
    compare_ops(v, j, statistic);
}

static bool
validate(LhValidation *v, const LhSetup *setup, const LhProgram *program,
         const LhValidateParams *params, GError **error)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    g_autoptr(LhSimResult) sim = NULL;
    g_auto(Joined) j = {
        .predicted = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord)),
        .times = g_array_new(FALSE, TRUE, sizeof(double)),
        .makespans = g_array_new(FALSE, FALSE, sizeof(double)),
        .starts = g_array_new(FALSE, FALSE, sizeof(double)),
        .repeat = MAX(params->repeat, 1),
    };
    const LhHooks hooks = { .timeline = collect, .timeline_data = j.predicted };
    LhCollectiveWay collectives;

    if (verdict->findings->len > 0) {
        v->refused = g_strdup("not proven, so not run; see longhaul verify");
        return true;
    }
    if (!lh_execute_way(setup, &lh_backend_cpu, &collectives, error))
        return false;
    sim = lh_setup_simulate(setup, program, NULL, NULL, &hooks, error);
    if (sim == NULL)
        return false;
    g_array_sort(j.predicted, by_rank_and_op);
    if (!execute(&j, program, collectives, params, error))
        return false;
    compare(v, &j, sim, params->statistic);
    return true;
}

/* ---- all of them ---- */

static void
validation_free(gpointer data)
{
    LhValidation *v = data;

    g_free(v->refused);
    g_array_unref(v->kernels);
    g_free(v);
}

/* A schedule that cannot is a row; a run that breaks is an error. */
static bool
add(GPtrArray *rows, const LhSetup *setup, const LhSchedule *schedule, LhProgram *explicit_program,
    const LhValidateParams *params, GError **error)
{
    LhValidation *v = g_new0(LhValidation, 1);
    g_autoptr(LhProgram) made = NULL;
    g_autoptr(GError) refusal = NULL;
    const LhProgram *program = explicit_program;

    v->kernels = g_array_new(FALSE, FALSE, sizeof(LhKernelErrors));
    g_ptr_array_add(rows, v);
    if (program == NULL) {
        v->schedule = schedule->name;
        program = made = lh_program_new(schedule, &setup->params, &refusal);
    } else {
        v->schedule = program->name;
    }
    if (program == NULL) {
        v->refused = g_strdup(refusal->message);
        return true;
    }
    if (validate(v, setup, program, params, error))
        return true;
    g_prefix_error(error, "%s: ", v->schedule);
    return false;
}

GPtrArray *
lh_validate(const LhSetup *setup, const LhValidateParams *params, GError **error)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(validation_free);

    if (setup->program != NULL && !add(rows, setup, NULL, setup->program, params, error))
        return NULL;
    for (guint i = 0; i < setup->schedules->len; i++) {
        if (!add(rows, setup, g_ptr_array_index(setup->schedules, i), NULL, params, error))
            return NULL;
    }
    return g_steal_pointer(&rows);
}

double
lh_validation_error(const LhValidation *v)
{
    return v->predicted_s / v->measured_s - 1;
}

bool
lh_validation_within(const LhValidation *v, double tolerance)
{
    if (v->refused != NULL)
        return true;
    for (guint i = 0; i < v->kernels->len; i++) {
        const LhKernelErrors *row = &g_array_index(v->kernels, LhKernelErrors, i);

        if (row->share >= LH_VALIDATE_SHARE_MIN && fabs(row->error_median) > tolerance)
            return false;
    }
    return fabs(lh_validation_error(v)) <= tolerance;
}
