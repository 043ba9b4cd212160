/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/fit/fit.h"

#include "compare/step_plan.h"
#include "compare/time_range.h"
#include "planner/estimate.h"
#include "planner/plan_point.h"
#include "remedy/remedy_costs.h"

#include <math.h>

/* A point as it is, and the ladder of its case. */
typedef struct {
    LhPlanCase c;
    LhLadder ladder;
    const LhTask *task;
} Fitting;

static bool
init(Fitting *f, const LhPlanSpace *space, guint index)
{
    LhPlanPoint plain = *lh_plan_point(space, index);

    if (!lh_plan_case_init(&f->c, space, index, NULL))
        return false;
    plain.remedies = (LhRemedies){ 0 };
    lh_plan_case_policies(&f->c, &plain);
    f->ladder = (LhLadder){ .setup = &f->c.setup,
                            .schedule = f->c.schedule,
                            .limit_bytes = lh_plan_limit_bytes(&f->c.setup) };
    return true;
}

/* Time of a step with @on; 0 if it cannot be simulated or the task ends. */
static double
time_with(const Fitting *f, const LhRemedies *on)
{
    LhPlanCase c = f->c;
    const LhHooks hooks = { .task = *f->task };
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhSimResult) result = NULL;

    c.setup.step = &c.step;
    lh_remedies_apply(on, &c.step);
    program = lh_plan_case_program(&c, NULL);
    if (program != NULL)
        result = lh_time_range_simulate(&c.setup, program, &hooks, NULL);
    return result == NULL ? 0
                          : (double)(result->makespan_ps + lh_step_overhead_ps(&c.setup)) /
                                (double)LH_PS_PER_S;
}

/* ---- the order ---- */

typedef struct {
    LhRemedies adds;
    bool types;
    double freed_per_s; /* bytes freed for a second lost; infinite if none is */
} Part;

static int
by_freed(gconstpointer a, gconstpointer b)
{
    const Part *x = a, *y = b;

    if (x->types != y->types)
        return x->types ? 1 : -1;
    return x->freed_per_s > y->freed_per_s ? -1 : x->freed_per_s < y->freed_per_s;
}

static Part
make_part(const Fitting *f, const LhLadderPeak *plain, const LhRemedies *adds)
{
    Part part = { .adds = *adds, .types = (adds->moments | adds->params | adds->grads) != 0 };
    LhTime cost_ps = 0;
    LhLadderPeak peak;
    double freed = 0;

    if (lh_ladder_peak(&f->ladder, adds, &peak))
        freed = (double)plain->bytes - (double)peak.bytes;
    if (!part.types && !lh_remedy_cost(&f->c.setup, f->c.schedule, adds, &cost_ps))
        cost_ps = 0;
    part.freed_per_s = cost_ps <= 0 ? INFINITY : freed / (double)cost_ps;
    return part;
}

static GArray *
parts_of(const Fitting *f, const LhLadderPeak *plain, const LhRemedies *on)
{
    GArray *parts = g_array_new(FALSE, FALSE, sizeof(Part));

    for (int option = 0; option < LH_REMEDY_OPTIONS; option++) {
        LhRemedies adds;

        if (lh_remedies_part(on, (LhRemedyOption)option, &adds)) {
            const Part part = make_part(f, plain, &adds);

            g_array_append_val(parts, part);
        }
    }
    g_array_sort(parts, by_freed);
    return parts;
}

/* ---- all steps ---- */

LhPlanFit *
lh_plan_fit_new(const LhPlanSpace *space, guint index, const LhRemedies *on, const LhTask *task)
{
    LhPlanFit *fit = g_new0(LhPlanFit, 1);
    g_autoptr(GArray) parts = NULL;
    Fitting f = { .task = task };
    LhRemedies so_far = { 0 };
    LhLadderPeak before;
    double before_s;

    fit->point = index;
    fit->steps = g_array_new(FALSE, FALSE, sizeof(LhFitStep));
    if (!init(&f, space, index) || !lh_ladder_peak(&f.ladder, &so_far, &fit->peak))
        return fit;
    fit->limit_bytes = f.ladder.limit_bytes;
    fit->as_is_s = before_s = time_with(&f, &so_far);
    before = fit->peak;
    parts = parts_of(&f, &before, on);
    for (guint i = 0; i < parts->len; i++) {
        LhFitStep step = { .adds = g_array_index(parts, Part, i).adds, .before = before };
        double after_s;

        lh_remedies_add(&so_far, &step.adds);
        if (!lh_ladder_peak(&f.ladder, &so_far, &step.after))
            step.after = before;
        after_s = time_with(&f, &so_far);
        step.lost_s = after_s > 0 && before_s > 0 ? after_s - before_s : 0;
        before = step.after;
        before_s = after_s;
        g_array_append_val(fit->steps, step);
    }
    fit->fits = before.fits;
    return fit;
}

void
lh_plan_fit_free(LhPlanFit *fit)
{
    if (fit == NULL)
        return;
    g_array_unref(fit->steps);
    g_free(fit);
}

/* All that @index can turn on where it needs least memory, whether it then fits or not. */
static LhRemedies
most_of(const LhPlanSpace *space, guint index)
{
    g_autoptr(GArray) tops = NULL;
    LhRemedies most = { 0 };
    uint64_t least = UINT64_MAX;
    Fitting f = { 0 };

    if (!init(&f, space, index))
        return most;
    tops = lh_ladder_tops(&f.ladder, true);
    for (guint i = 0; i < tops->len; i++) {
        const LhRemedies *top = &g_array_index(tops, LhRemedies, i);
        LhLadderPeak peak;

        if (lh_ladder_peak(&f.ladder, top, &peak) && peak.bytes < least) {
            least = peak.bytes;
            most = *top;
        }
    }
    return most;
}

/* Whether some point may fit as it is. */
static bool
may_fit_as_is(const LhPlanSearch *search)
{
    for (guint i = 0; i < search->space->points->len; i++) {
        const LhPlanOutcome *o = &search->outcomes[i];

        if ((o->state == LH_POINT_RAN || o->state == LH_POINT_CUT) &&
            !lh_remedies_any(&o->remedies) && o->peak_bytes <= search->limit_bytes)
            return true;
    }
    return false;
}

LhPlanFit *
lh_plan_fit_of(const LhPlanSearch *search, guint fastest, bool asked, const LhTask *task)
{
    const LhPlanSpace *space = search->space;
    const bool fits = fastest != G_MAXUINT;
    guint point = fastest;
    LhRemedies on;

    if (!space->remedies || search->limit_bytes == 0 || (!fits && search->misses->len == 0) ||
        (!asked && may_fit_as_is(search)))
        return NULL;
    if (!fits)
        point = g_array_index(search->misses, guint, 0);
    on = fits ? lh_plan_point(space, point)->remedies : most_of(space, point);
    return asked || lh_remedies_any(&on) ? lh_plan_fit_new(space, point, &on, task) : NULL;
}

int
lh_fit_largest(const LhLadderPeak *peak)
{
    int most = 0;

    for (int c = 1; c < LH_CATEGORIES; c++)
        most = peak->by_category[c] > peak->by_category[most] ? c : most;
    return most;
}
