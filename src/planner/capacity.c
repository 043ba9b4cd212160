/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/capacity.h"

#include "base/error.h"
#include "base/threads.h"
#include "model/parameters.h"
#include "planner/estimate_all.h"
#include "remedy/ladder.h"

#include <inttypes.h>
#include <string.h>

#define UNIT_MIN 1024
#define SHORT_UNITS                                                                                \
    16 /* length of the shorter of the two sequences; the other is twice as long                   \
        */

/* ---- a point that fits ---- */

/* Bytes per parameter of the optimizer's moments, at least: Muon has one. */
static double
moments_bytes(const LhSetup *setup)
{
    const LhStepParams *p = setup->step != NULL ? &setup->step->params : NULL;

    if (p != NULL && p->muon.optimizer == LH_OPTIMIZER_MUON)
        return p->behaviour.moments == LH_MOMENTS_16BIT ? 2 : 4;
    switch (p != NULL ? p->behaviour.moments : LH_MOMENTS_FP32) {
    case LH_MOMENTS_8BIT:
        return 2;
    case LH_MOMENTS_16BIT:
        return 4;
    default:
        return 8;
    }
}

bool
lh_plan_is_hopeless(const LhSetup *setup, uint32_t gpus)
{
    const LhModel *model = setup->model;
    const double element = (double)lh_dtype_bytes(setup->params.attention.dtype);
    const bool frozen = setup->step != NULL && setup->step->params.lora_rank > 0;
    const double states =
        (double)lh_model_parameters(model) * (element + (frozen ? 0 : moments_bytes(setup)));
    const double saved = (double)setup->params.attention.seq_length * (double)model->hidden_size *
                         (double)model->num_layers * element;
    const uint64_t limit_bytes = lh_plan_limit_bytes(setup);

    return limit_bytes > 0 && (states + saved) / gpus > (double)limit_bytes;
}

/* Whether the program of a case fits in memory; @estimate is exact. */
static bool
program_fits(const LhPlanCase *c, const LhProgram *program, LhPlanEstimate *estimate)
{
    *estimate = (LhPlanEstimate){ 0 };
    lh_plan_estimate_memory(c, program, estimate);
    return estimate->limit_bytes == 0 || estimate->peak_bytes <= estimate->limit_bytes;
}

static bool
fits_exactly(const LhPlanCase *c, LhPlanEstimate *estimate)
{
    g_autoptr(LhProgram) program = lh_plan_case_program(c, NULL);

    *estimate = (LhPlanEstimate){ 0 };
    return program != NULL && program_fits(c, program, estimate);
}

/* Whether the case fits, or does with all remedies (@types: also types of the optimizer's states):
 * sets what is then turned on. Else @estimate is the lowest peak. */
static bool
fits_somehow(const LhPlanCase *c, bool remedies, bool types, LhRemedies *on,
             LhPlanEstimate *estimate)
{
    const LhLadder ladder = { &c->setup, c->schedule, lh_plan_limit_bytes(&c->setup) };
    g_autoptr(GArray) tops = NULL;
    bool fits = fits_exactly(c, estimate);

    *on = (LhRemedies){ 0 };
    if (fits || !remedies)
        return fits;
    tops = lh_ladder_tops(&ladder, types);
    for (guint i = 0; i < tops->len && !fits; i++) {
        const LhRemedies *top = &g_array_index(tops, LhRemedies, i);
        LhLadderPeak peak;

        if (!lh_ladder_peak(&ladder, top, &peak) ||
            (!peak.fits && estimate->peak_bytes > 0 && peak.bytes >= estimate->peak_bytes))
            continue;
        fits = peak.fits;
        *on = *top;
        estimate->limit_bytes = ladder.limit_bytes;
        estimate->peak_bytes = peak.bytes;
        memcpy(estimate->by_category, peak.by_category, sizeof(peak.by_category));
    }
    return fits;
}

bool
lh_plan_step_fits(const LhScenario *scenario, bool *fits, GError **error)
{
    g_autoptr(LhSetup) setup = lh_setup_new(scenario, error);
    g_autoptr(LhProgram) program = NULL;
    LhPlanEstimate estimate;
    LhPlanCase c;

    if (setup == NULL)
        return false;
    c = (LhPlanCase){ .setup = *setup,
                      .step = *setup->step,
                      .schedule = g_ptr_array_index(setup->schedules, 0) };
    c.setup.step = &c.step;
    program = lh_plan_case_program(&c, error);
    if (program == NULL)
        return false;
    *fits = program_fits(&c, program, &estimate);
    return true;
}

/* Stores the lower bounds of peak memory by point; rejected points keep 0. */
static void
take_peak(void *data, guint point, const LhPlanEstimate *estimate, const char *reason)
{
    uint64_t *peaks_bytes = data;

    (void)reason;
    if (estimate != NULL)
        peaks_bytes[point] = MAX(estimate->peak_bytes, 1);
}

/* Order: points with most recomputation and sharding first. */
static int
by_thrift(gconstpointer a, gconstpointer b, gpointer data)
{
    const LhPlanSpace *space = data;
    const guint x = *(const guint *)a, y = *(const guint *)b;
    const LhPlanPoint *p = lh_plan_point(space, x), *q = lh_plan_point(space, y);
    const bool layer_p = p->checkpoint == LH_CHECKPOINT_LAYER;
    const bool layer_q = q->checkpoint == LH_CHECKPOINT_LAYER;

    if (layer_p != layer_q)
        return layer_p ? -1 : 1;
    if (p->shard != q->shard)
        return p->shard > q->shard ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* All points in this order; caller frees. */
static guint *
thrifty_order(const LhPlanSpace *space)
{
    guint *order = g_new(guint, space->points->len);

    for (guint i = 0; i < space->points->len; i++)
        order[i] = i;
    g_qsort_with_data(order, (int)space->points->len, sizeof(*order), by_thrift, (gpointer)space);
    return order;
}

/* Losses that a point may have on its menu, at most. */
#define LOSSES_MAX LH_LOSSES

/* The same, but the lowest of several estimates. */
static void
take_lowest_peak(void *data, guint point, const LhPlanEstimate *estimate, const char *reason)
{
    uint64_t *peaks_bytes = data;
    const uint64_t known = peaks_bytes[point];

    take_peak(data, point, estimate, reason);
    if (known > 0 && estimate != NULL)
        peaks_bytes[point] = MIN(peaks_bytes[point], known);
}

/* A point that fits with remedies other than types of the optimizer's states. */
static guint
find_fitting_with_remedies(const LhPlanSpace *space, const guint *order, guint threads)
{
    const uint64_t limit_bytes = lh_plan_limit_bytes(space->setup);
    g_autofree uint64_t *peaks_bytes = g_new0(uint64_t, space->points->len);

    for (guint loss = 0; loss <= LOSSES_MAX; loss++)
        lh_plan_estimate_all(&(LhPlanEstimates){ .space = space,
                                                 .task.jobs = threads,
                                                 .least = true,
                                                 .loss = loss,
                                                 .found = take_lowest_peak,
                                                 .data = peaks_bytes });
    for (guint i = 0; i < space->points->len; i++) {
        LhPlanEstimate exact;
        LhRemedies on;
        LhPlanCase c;

        if (peaks_bytes[order[i]] > 0 && peaks_bytes[order[i]] <= limit_bytes &&
            lh_plan_case_init(&c, space, order[i], NULL) &&
            fits_somehow(&c, true, false, &on, &exact))
            return order[i];
    }
    return G_MAXUINT;
}

guint
lh_plan_find_fitting(const LhPlanSpace *space, guint threads)
{
    const uint64_t limit_bytes = lh_plan_limit_bytes(space->setup);
    g_autofree guint *order = thrifty_order(space);
    g_autofree uint64_t *peaks_bytes = g_new0(uint64_t, space->points->len); /* 0: rejected */

    lh_plan_estimate_all(&(LhPlanEstimates){
        .space = space, .task.jobs = threads, .found = take_peak, .data = peaks_bytes });
    for (guint i = 0; i < space->points->len; i++) {
        const uint64_t peak_bytes = peaks_bytes[order[i]];
        LhPlanEstimate exact;
        LhPlanCase c;

        if (peak_bytes > 0 && (limit_bytes == 0 || peak_bytes <= limit_bytes) &&
            lh_plan_case_init(&c, space, order[i], NULL) && fits_exactly(&c, &exact))
            return order[i];
    }
    return space->remedies && limit_bytes > 0 ? find_fitting_with_remedies(space, order, threads)
                                              : G_MAXUINT;
}

/* ---- the longest sequence ---- */

/* Upper bound of a point's sequence length. */
typedef struct {
    uint64_t units_max; /* upper bound in units; 0: rejected, or no length fits */
    guint point;
} PointEnd;

typedef struct {
    const LhPlanSpace *space;
    uint64_t unit;
    const LhTask *task;
    bool types; /* remedies include types of the optimizer's states */
    PointEnd *ends;
    /* For sequences of SHORT_UNITS and twice that: setups by shape (NULL: rejected), and the lower
     * bound of each point's peak memory (0: rejected). */
    LhSetup **short_setups[2];
    uint64_t *peaks_bytes[2];
} CapacityQuestion;

static bool
goes_on(const CapacityQuestion *q)
{
    return lh_task_tell(q->task, &(LhProgress){ 0 });
}

/* The setup of a shape with another sequence length; NULL if it is rejected. Caller frees. */
static LhSetup *
setup_at(const CapacityQuestion *q, const LhPlanShape *shape, uint64_t units)
{
    g_autofree char *text = g_strdup_printf("%" PRIu64, units * q->unit);
    g_autoptr(LhScenario) scenario = lh_scenario_copy(shape->scenario);
    LhSetup *setup;

    lh_scenario_replace(scenario, "seq_length", text);
    setup = lh_setup_new(scenario, NULL);
    if (setup != NULL)
        setup->scenario = shape->scenario; /* differs only in the length, and outlives the setup */
    return setup;
}

static void
make_short_setups(void *data, guint index)
{
    const CapacityQuestion *q = data;
    const LhPlanShape *shape = g_ptr_array_index(q->space->shapes, index);

    for (guint i = 0; i < 2; i++)
        q->short_setups[i][index] = setup_at(q, shape, (uint64_t)SHORT_UNITS * (i + 1));
}

static void
take_short_peak(void *data, guint which, guint point, const LhPlanEstimate *estimate)
{
    const CapacityQuestion *q = data;

    take_peak(q->peaks_bytes[which], point, estimate, NULL);
}

static void
take_low(void *data, guint point, const LhPlanEstimate *estimate, const char *reason)
{
    (void)reason;
    take_short_peak(data, 0, point, estimate);
}

static void
take_high(void *data, guint point, const LhPlanEstimate *estimate, const char *reason)
{
    (void)reason;
    take_short_peak(data, 1, point, estimate);
}

/* Extrapolates the peaks of two lengths linearly, which is a lower bound for all longer
 * sequences. */
static PointEnd
end_of(const CapacityQuestion *q, guint point)
{
    const uint64_t limit_bytes = lh_plan_limit_bytes(q->space->setup);
    const uint64_t low = q->peaks_bytes[0][point], high = q->peaks_bytes[1][point];
    PointEnd end = { .point = point };

    if (low == 0 || high <= low)
        return end;
    end.units_max = SHORT_UNITS;
    if (low <= limit_bytes)
        end.units_max +=
            (uint64_t)((double)(limit_bytes - low) * SHORT_UNITS / (double)(high - low)) + 1;
    return end;
}

static void
find_ends(CapacityQuestion *q)
{
    const guint shapes = q->space->shapes->len, points = q->space->points->len;

    for (guint i = 0; i < 2; i++) {
        q->short_setups[i] = g_new0(LhSetup *, shapes);
        q->peaks_bytes[i] = g_new0(uint64_t, points);
    }
    lh_on_threads_each("longest", q->task->jobs, shapes, make_short_setups, q);
    for (guint loss = 0; loss <= (q->space->remedies ? LOSSES_MAX : 0); loss++) {
        for (guint i = 0; i < 2; i++) {
            memset(q->peaks_bytes[i], 0, points * sizeof(*q->peaks_bytes[i]));
            lh_plan_estimate_all(&(LhPlanEstimates){ .space = q->space,
                                                     .setups = q->short_setups[i],
                                                     .task = *q->task,
                                                     .least = q->space->remedies,
                                                     .types = q->types,
                                                     .loss = loss,
                                                     .found = i == 0 ? take_low : take_high,
                                                     .data = q });
        }
        for (guint i = 0; i < points; i++) {
            const PointEnd end = end_of(q, i);

            if (loss == 0 || end.units_max > q->ends[i].units_max)
                q->ends[i] = end;
        }
    }
    for (guint i = 0; i < 2; i++) {
        for (guint k = 0; k < shapes; k++)
            lh_setup_free(q->short_setups[i][k]);
        g_free(q->short_setups[i]);
        g_free(q->peaks_bytes[i]);
    }
}

static int
by_end(gconstpointer a, gconstpointer b)
{
    const PointEnd *x = a, *y = b;

    if (x->units_max != y->units_max)
        return x->units_max > y->units_max ? -1 : 1;
    return x->point < y->point ? -1 : x->point > y->point;
}

static bool
fits_with(const CapacityQuestion *q, guint point, uint64_t units, LhRemedies *on,
          LhPlanEstimate *estimate)
{
    g_autoptr(LhSetup) setup =
        setup_at(q, lh_plan_shape(q->space, lh_plan_point(q->space, point)), units);
    LhPlanCase c;

    *estimate = (LhPlanEstimate){ 0 };
    *on = (LhRemedies){ 0 };
    if (setup == NULL)
        return false;
    lh_plan_case_of(&c, q->space, point, setup);
    return fits_somehow(&c, q->space->remedies, q->types, on, estimate);
}

/* Whether a point fits at this length, which @longest then is. */
static bool
is_longer(const CapacityQuestion *q, guint point, uint64_t units, LhPlanLongest *longest)
{
    LhPlanEstimate estimate;
    LhRemedies on;

    if (!fits_with(q, point, units, &on, &estimate))
        return false;
    *longest = (LhPlanLongest){
        .tokens = units * q->unit, .unit = q->unit, .point = point, .on = on, .fits = estimate
    };
    return true;
}

/* Finds the longest sequence of a point by bisection, if it beats @longest. The extrapolated end
 * may be too early, as estimates of two lengths may be of different quality. */
static void
try_point(const CapacityQuestion *q, const PointEnd *end, LhPlanLongest *longest)
{
    uint64_t fits = longest->tokens / q->unit, fails = end->units_max + 1;
    LhPlanEstimate beyond;
    LhRemedies none;

    if (!is_longer(q, end->point, fits + 1, longest))
        return;
    fits++;
    while (fits < fails && is_longer(q, end->point, fails, longest)) {
        fits = fails;
        fails *= 2;
    }
    while (fails - fits > 1) {
        const uint64_t middle = fits + (fails - fits) / 2;

        if (is_longer(q, end->point, middle, longest))
            fits = middle;
        else
            fails = middle;
    }
    fits_with(q, end->point, fails, &none, &beyond);
    longest->beyond = beyond;
}

/* Turns on no more than the longest sequence needs. */
static void
turn_down(const CapacityQuestion *q, LhPlanLongest *longest)
{
    const LhPlanShape *shape = lh_plan_shape(q->space, lh_plan_point(q->space, longest->point));
    g_autoptr(LhSetup) setup = setup_at(q, shape, longest->tokens / q->unit);
    LhRemedies on;
    LhLadderPeak peak;
    LhLadder ladder;
    LhPlanCase c;

    if (!lh_remedies_any(&longest->on) || setup == NULL)
        return;
    lh_plan_case_of(&c, q->space, longest->point, setup);
    ladder = (LhLadder){ &c.setup, c.schedule, longest->fits.limit_bytes };
    if (!lh_ladder_climb(&ladder, q->types, &on) || !lh_ladder_peak(&ladder, &on, &peak))
        return;
    longest->on = on;
    longest->fits.peak_bytes = peak.bytes;
    memcpy(longest->fits.by_category, peak.by_category, sizeof(peak.by_category));
}

static void
try_all(const CapacityQuestion *q, LhPlanLongest *longest)
{
    const guint points = q->space->points->len;

    qsort(q->ends, points, sizeof(*q->ends), by_end);
    *longest = (LhPlanLongest){ .unit = q->unit };
    for (guint i = 0; i < points && q->ends[i].units_max * q->unit > longest->tokens && goes_on(q);
         i++)
        try_point(q, &q->ends[i], longest);
}

bool
lh_plan_longest(const LhPlanSpace *space, const LhTask *task, LhPlanLongest *longest,
                GError **error)
{
    const uint64_t cut = UINT64_C(2) * space->gpus; /* two segments per rank */
    g_autofree PointEnd *ends = g_new0(PointEnd, space->points->len);
    CapacityQuestion q = {
        .space = space, .unit = (UNIT_MIN + cut - 1) / cut * cut, .task = task, .ends = ends
    };

    if (lh_plan_limit_bytes(space->setup) == 0) {
        g_set_error(
            error, LH_ERROR, LH_ERROR_USAGE,
            "the longest sequence is limited by device memory, which --cost %s does not model",
            lh_cost_mode_names[space->setup->cost]);
        return false;
    }
    find_ends(&q);
    try_all(&q, longest);
    if (longest->tokens == 0 && space->remedies && goes_on(&q)) {
        q.types = true;
        find_ends(&q);
        try_all(&q, longest);
    }
    if (longest->tokens > 0)
        turn_down(&q, longest);
    if (!goes_on(&q))
        return false;
    if (longest->tokens == 0)
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "on %s, not even a sequence of %" PRIu64 " tokens fits in memory",
                    space->cluster, q.unit);
    return longest->tokens > 0;
}
