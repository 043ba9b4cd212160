/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works are simulations that several cases share. Threads take one work after the other; cases read
 * the answers once all are done.
 */
#include "papers/paper_run.h"

#include "base/error.h"
#include "base/threads.h"
#include "compare/compare_pool.h"
#include "compare/error_bar.h"
#include "compare/step_plan.h"
#include "compare/time_range.h"
#include "papers/paper_collective.h"
#include "planner/capacity.h"
#include "scenario/setup.h"
#include "scenario/step/setup_step.h"
#include "step/formulas.h"

#include <math.h>
#include <string.h>

/* Error bar of numbers that follow from a step's shape, which are published with two or three
 * digits. */
#define COUNT_ERROR 0.01
#define RANKS_OF_A_PAPER 1024 /* to estimate the memory of a simulation */
#define SHORTEST_TOKENS UINT64_C(1024)
#define LONGEST_TOKENS (UINT64_C(1) << 40)

typedef enum {
    WORK_STEP,
    WORK_COUNTS, /* what is known of a step without simulating it */
    WORK_MODULE,
    WORK_LONGEST,
    WORK_COLLECTIVE,
    WORK_LEFT_OUT,     /* a collective whose size is held out */
    WORK_LINKS_EDITED, /* a collective by another cluster's file with this one's links */
} WorkKind;

typedef struct {
    WorkKind kind;
    uint64_t granularity;
    const LhPaperOptions *options; /* borrowed from the first case */
    /* The answer. */
    GError *error; /* why there is none */
    bool fits;
    double value[LH_METRICS];
    GArray *peak_bytes;     /* of uint64_t, by rank of a step; NULL: not a step */
    LhTimeError time_error; /* of values that are or derive from times */
} Work;

typedef struct {
    GPtrArray *works; /* of Work * */
    const LhConstants *constants;
    bool serving;
} WorkPool;

/* --- one module ---------------------------------------------------------------------------------
 */

/* Flops of the pairs that the mask allows: 4 d per pair and head forward, 10 d backward. */
static double
model_flops(const LhProgramParams *p)
{
    const LhAttention *a = &p->attention;
    const LhSegment all = { .start = 0, .stride = 1, .count = a->seq_length };
    const double pairs = (double)lh_mask_keys_count(&p->mask, all, a->seq_length);
    const double each =
        4.0 * ((p->pass & LH_PASS_FWD) != 0) + 10.0 * ((p->pass & LH_PASS_BWD) != 0);

    return each * pairs * a->batch * a->heads * a->head_dim * p->data_parallel_size;
}

/* Sets the values that derive from a module's time and its ranks' compute times. */
static void
set_module_values(const LhSetup *setup, const LhSimResult *result, double *value)
{
    const double seconds = (double)result->makespan_ps / (double)LH_PS_PER_S;
    double busiest_s = 0, sum_s = 0;

    for (uint32_t r = 0; r < result->ranks_count; r++) {
        const double busy_s = (double)result->ranks[r].busy_ps / (double)LH_PS_PER_S;

        busiest_s = MAX(busiest_s, busy_s);
        sum_s += busy_s;
    }
    value[LH_METRIC_ATTENTION] = seconds;
    value[LH_METRIC_ITERATIONS_PER_S] = 1 / seconds;
    value[LH_METRIC_COMPUTE] = busiest_s;
    value[LH_METRIC_COMMUNICATION] = seconds - busiest_s;
    value[LH_METRIC_TIME_OVER_COMPUTE] = seconds / busiest_s;
    value[LH_METRIC_IDLE_SHARE] = 1 - sum_s / result->ranks_count / seconds;
    value[LH_METRIC_TFLOPS_PER_GPU] =
        model_flops(&setup->params) / seconds / setup->network.ranks / 1e12;
}

static bool
play_module(const LhScenario *scenario, Work *work, GError **error)
{
    g_autoptr(LhSetup) setup = lh_setup_new(scenario, error);
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhSimResult) result = NULL;

    if (setup == NULL)
        return false;
    if (setup->schedules->len != 1) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO, "%u schedules; exactly one must be named",
                    setup->schedules->len);
        return false;
    }
    program = lh_program_new(g_ptr_array_index(setup->schedules, 0), &setup->params, error);
    if (program == NULL)
        return false;
    result = lh_time_range_simulate(setup, program, NULL, error);
    if (result == NULL)
        return false;
    work->fits = true; /* memory outside the module is unknown */
    work->time_error = lh_time_error(setup, result);
    set_module_values(setup, result, work->value);
    return true;
}

/* --- a step -------------------------------------------------------------------------------------
 */

static double
gib(uint64_t bytes)
{
    return (double)bytes / (double)(UINT64_C(1) << 30);
}

static bool
play_step(const LhScenario *scenario, Work *work, GError **error)
{
    LhStepAnswer answer;

    work->peak_bytes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    if (!lh_step_answer_of_ranks(scenario, &answer, work->peak_bytes, error))
        return false;
    work->fits = answer.fits;
    work->time_error = answer.time_error;
    work->value[LH_METRIC_ITERATION] = answer.iteration_s;
    work->value[LH_METRIC_TOKENS_PER_S] = answer.tokens_per_s;
    work->value[LH_METRIC_TOKENS_PER_S_PER_GPU] = answer.tokens_per_s / answer.ranks;
    work->value[LH_METRIC_MODEL_TFLOPS_PER_GPU] = answer.model_flops_per_s_per_gpu / 1e12;
    work->value[LH_METRIC_PEAK_GIB] = gib(answer.peak_bytes);
    return true;
}

static bool
count_step(const LhScenario *scenario, Work *work, GError **error)
{
    static const LhDimension dimensions[] = { LH_DIMENSION_TENSOR, LH_DIMENSION_CONTEXT };
    g_autoptr(LhSetup) setup = lh_setup_new(scenario, error);
    g_autoptr(LhProgram) program = NULL;
    double sum = 0;

    if (setup == NULL || !lh_setup_check_one(setup, error))
        return false;
    program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), error);
    if (program == NULL)
        return false;
    for (gsize i = 0; i < G_N_ELEMENTS(dimensions) * setup->network.ranks; i++) {
        uint64_t bytes;

        if (!lh_step_bytes_sent(program, dimensions[i % G_N_ELEMENTS(dimensions)],
                                (uint32_t)(i / G_N_ELEMENTS(dimensions)), &bytes)) {
            g_set_error(error, LH_ERROR, LH_ERROR_NO, "the schedule does not state its bytes sent");
            return false;
        }
        sum += (double)bytes;
    }
    work->fits = true;
    work->time_error = (LhTimeError){ COUNT_ERROR, COUNT_ERROR };
    work->value[LH_METRIC_TENSOR_CONTEXT_BYTES] = sum / setup->network.ranks;
    work->value[LH_METRIC_HEADS_RATIO] = (double)setup->step->params.model->num_attention_heads /
                                         (double)setup->model->num_attention_heads;
    return true;
}

/* Whether a step of @tokens tokens fits, as `plan --max-seq-length` decides. Builds a new scenario,
 * since others may contain lengths. */
static bool
length_fits(const Work *work, const LhConstants *constants, uint64_t tokens, bool *fits,
            GError **error)
{
    g_autoptr(LhScenario) scenario = lh_paper_options_scenario(work->options, error);

    if (scenario == NULL)
        return false;
    scenario->constants = *constants;
    scenario->seq_length = tokens;
    return lh_plan_step_fits(scenario, fits, error);
}

/* Finds the largest power of two that fits, or with a granularity the largest multiple of it;
 * memory grows with the length. 0: not even the shortest fits. */
static bool
find_longest_tokens(Work *work, const LhConstants *constants, GError **error)
{
    const uint64_t unit = work->granularity != 0 ? work->granularity : SHORTEST_TOKENS;
    uint64_t good = 0, bad = unit;
    bool fits = true;

    for (; bad < LONGEST_TOKENS; bad *= 2) {
        if (!length_fits(work, constants, bad, &fits, error))
            return false;
        if (!fits)
            break;
        good = bad;
    }
    while (work->granularity != 0 && !fits && bad - good > unit) {
        const uint64_t middle = good + (bad - good) / unit / 2 * unit;

        if (!length_fits(work, constants, middle, &fits, error))
            return false;
        if (fits)
            good = middle;
        else
            bad = middle;
        fits = false;
    }
    work->fits = good > 0;
    work->value[LH_METRIC_LONGEST_TOKENS] = (double)good;
    return true;
}

/* --- all works
 * ---------------------------------------------------------------------------------- */

static bool
time_collective(Work *work, GError **error)
{
    static const LhJudged judged[] = { [WORK_COLLECTIVE] = LH_JUDGE_COLLECTIVE,
                                       [WORK_LEFT_OUT] = LH_JUDGE_LEFT_OUT,
                                       [WORK_LINKS_EDITED] = LH_JUDGE_LINKS_EDITED };
    LhPaperCollective collective;
    double seconds, bar;

    if (!lh_paper_collective_read(work->options, &collective, error) ||
        !lh_paper_collective_seconds(&collective, judged[work->kind], &seconds, &bar, error))
        return false;
    work->fits = true;
    work->time_error = (LhTimeError){ bar, bar };
    for (int metric = LH_METRIC_COLLECTIVE; metric <= LH_METRIC_COLLECTIVE_LINKS_EDITED; metric++)
        work->value[metric] = 1e6 * seconds;
    return true;
}

static void
play_work(Work *work, const WorkPool *pool)
{
    const LhConstants *constants = pool->constants;
    const bool collective = work->kind >= WORK_COLLECTIVE;
    g_autoptr(LhScenario) scenario =
        collective ? NULL : lh_paper_options_scenario(work->options, &work->error);

    if (collective)
        time_collective(work, &work->error);
    if (scenario == NULL)
        return;
    scenario->constants = *constants;
    scenario->serving = pool->serving;
    if (work->kind == WORK_STEP)
        play_step(scenario, work, &work->error);
    else if (work->kind == WORK_COUNTS)
        count_step(scenario, work, &work->error);
    else if (work->kind == WORK_MODULE)
        play_module(scenario, work, &work->error);
    else
        find_longest_tokens(work, constants, &work->error);
}

static void
play_work_at(void *data, guint index)
{
    const WorkPool *pool = data;

    play_work(g_ptr_array_index(pool->works, index), pool);
}

static void
play_all(GPtrArray *works, const LhConstants *constants, bool serving, guint jobs)
{
    WorkPool pool = { .works = works, .constants = constants, .serving = serving };

    lh_on_threads_each("reproduce", lh_compare_threads(jobs, works->len, RANKS_OF_A_PAPER),
                       works->len, play_work_at, &pool);
}

/* --- from cases to works ------------------------------------------------------------------------
 */

static void
work_free(gpointer data)
{
    Work *work = data;

    g_clear_error(&work->error);
    g_clear_pointer(&work->peak_bytes, g_array_unref);
    g_free(work);
}

/* The works by kind and options; the table borrows them. */
typedef struct {
    GPtrArray *works;
    GHashTable *known; /* char * -> Work * */
} Works;

static WorkKind
work_kind(LhMetric metric)
{
    if (metric == LH_METRIC_COLLECTIVE)
        return WORK_COLLECTIVE;
    if (metric == LH_METRIC_COLLECTIVE_LEFT_OUT)
        return WORK_LEFT_OUT;
    if (metric == LH_METRIC_COLLECTIVE_LINKS_EDITED)
        return WORK_LINKS_EDITED;
    if (metric == LH_METRIC_LONGEST_TOKENS)
        return WORK_LONGEST;
    if (lh_metric_is_count(metric))
        return WORK_COUNTS;
    return lh_metric_is_step(metric) ? WORK_STEP : WORK_MODULE;
}

static Work *
find_work(Works *works, const LhPaperMetric *metric, const LhPaperOptions *options)
{
    const WorkKind kind = work_kind((LhMetric)metric->metric);
    g_autofree char *text = lh_paper_options_text(options);
    g_autofree char *key =
        g_strdup_printf("%d %" G_GUINT64_FORMAT " %s", kind, metric->granularity, text);
    Work *work = g_hash_table_lookup(works->known, key);

    if (work != NULL)
        return work;
    work = g_new0(Work, 1);
    work->kind = kind;
    work->granularity = metric->granularity;
    work->options = options;
    g_ptr_array_add(works->works, work);
    g_hash_table_insert(works->known, g_steal_pointer(&key), work);
    return work;
}

static void
compare_published(LhPaperCase *c)
{
    c->error = c->published_fits && c->predicted_fits ? c->predicted / c->published - 1 : 0;
}

static bool
is_time(LhMetric metric)
{
    return metric == LH_METRIC_ITERATION || metric == LH_METRIC_ATTENTION ||
           (metric >= LH_METRIC_COMPUTE && metric <= LH_METRIC_IDLE_SHARE) ||
           lh_metric_is_collective(metric);
}

/* The error bar on the side of the published value; for a ratio, the wider side. */
static double
error_bar(const LhPaperMetric *metric, const Work *work, const LhPaperCase *c)
{
    const LhTimeError *error = &work->time_error;
    const bool of_memory =
        metric->metric == LH_METRIC_PEAK_GIB || metric->metric == LH_METRIC_LONGEST_TOKENS;
    const bool took_longer = (c->error < 0) == is_time((LhMetric)metric->metric);

    if (of_memory)
        return LH_MEMORY_ERROR;
    if (metric->against != NULL)
        return MAX(error->below, error->above);
    return took_longer ? error->above : error->below;
}

static void
leave(LhPaperCase *c, const char *reason)
{
    c->state = LH_CASE_UNPREDICTED;
    c->reason = g_strdup(reason);
}

static void
take_answer(const LhPaperMetric *metric, LhPaperCase *c, const Work *work, const Work *against)
{
    static const char *const of[] = { [WORK_COUNTS] = "the number of bytes sent",
                                      [WORK_MODULE] = "one module",
                                      [WORK_COLLECTIVE] = "one collective",
                                      [WORK_LEFT_OUT] = "one collective",
                                      [WORK_LINKS_EDITED] = "one collective" };
    const char *of_what = of[work->kind]; /* NULL: memory is known */
    const GError *error = work->error == NULL && against != NULL ? against->error : work->error;

    if (error != NULL) {
        leave(c, error->message);
        return;
    }
    if (of_what != NULL && !c->published_fits) {
        g_autofree char *reason =
            g_strdup_printf("%s does not tell whether a run fits in memory", of_what);

        leave(c, reason);
        return;
    }
    c->predicted_fits = work->fits && (against == NULL || against->fits);
    if (c->gpu > 0 && (work->peak_bytes == NULL || c->gpu > work->peak_bytes->len)) {
        leave(c, "the step has no such GPU");
        return;
    }
    c->predicted = c->gpu > 0 ? gib(g_array_index(work->peak_bytes, uint64_t, c->gpu - 1))
                              : work->value[metric->metric];
    if (against != NULL)
        c->predicted = against->value[metric->metric] / c->predicted;
    compare_published(c);
    c->error_bar = error_bar(metric, work, c);
    if (against != NULL)
        c->error_bar = hypot(c->error_bar, error_bar(metric, against, c));
}

static bool
is_greater(const LhPaperCase *c, const LhPaperCase *than)
{
    return c->predicted_fits && (!than->predicted_fits || c->predicted > than->predicted);
}

/* Keeps the maximum of the "up to" cases of @of's row and metric; the others are not judged. A case
 * that does not fit in memory counts as less than any other. */
static void
leave_lesser(const GPtrArray *cases, const LhPaperCase *of)
{
    LhCaseState state = LH_CASE_JUDGED;
    LhPaperCase *greatest = NULL; /* found, since @of is simulated */

    for (guint i = 0; i < cases->len; i++) {
        LhPaperCase *c = g_ptr_array_index(cases, i);

        if (c->row != of->row || c->metric != of->metric || !lh_paper_case_is_asked(c))
            continue;
        if (c->state != LH_CASE_LESS)
            state = c->state;
        c->state = LH_CASE_LESS;
        if (greatest == NULL || is_greater(c, greatest))
            greatest = c;
    }
    g_assert(greatest != NULL);
    greatest->state = state;
}

/* Determines the maximum of each row, once all cases are predicted. */
static void
find_greatest(const LhPaper *paper, const GPtrArray *cases)
{
    for (guint i = 0; i < cases->len; i++) {
        const LhPaperCase *c = g_ptr_array_index(cases, i);

        if (lh_paper_case_metric(paper, c)->up_to && lh_paper_case_is_asked(c))
            leave_lesser(cases, c);
    }
}

/* A rejection is an answer; a failure of this machine, such as lack of memory, is an error. */
static bool
all_answered(const GPtrArray *works, GError **error)
{
    for (guint i = 0; i < works->len; i++) {
        const Work *work = g_ptr_array_index(works, i);

        if (work->error != NULL && g_error_matches(work->error, LH_ERROR, LH_ERROR_RUNTIME)) {
            g_propagate_error(error, g_error_copy(work->error));
            return false;
        }
    }
    return true;
}

bool
lh_paper_run(const LhPaper *paper, const GPtrArray *cases, const LhConstants *constants, guint jobs,
             GError **error)
{
    static const LhConstants of_files = { 0 };
    Works works = { g_ptr_array_new_with_free_func(work_free),
                    g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL) };
    g_autofree Work **own = g_new0(Work *, cases->len);
    g_autofree Work **against = g_new0(Work *, cases->len);
    bool ok;

    for (guint i = 0; i < cases->len; i++) {
        const LhPaperCase *c = g_ptr_array_index(cases, i);

        if (!lh_paper_case_is_asked(c))
            continue;
        own[i] = find_work(&works, lh_paper_case_metric(paper, c), c->options);
        if (c->against != NULL)
            against[i] = find_work(&works, lh_paper_case_metric(paper, c), c->against);
    }
    play_all(works.works, constants != NULL ? constants : &of_files, paper->serving, jobs);
    ok = all_answered(works.works, error);
    for (guint i = 0; ok && i < cases->len; i++) {
        LhPaperCase *c = g_ptr_array_index(cases, i);

        if (own[i] != NULL)
            take_answer(lh_paper_case_metric(paper, c), c, own[i], against[i]);
    }
    if (ok)
        find_greatest(paper, cases);
    g_hash_table_unref(works.known);
    g_ptr_array_unref(works.works);
    return ok;
}
