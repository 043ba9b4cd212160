/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Savings of faster calls and ops, by simulating the run again.
 */
#include "critical_path/absorbed.h"
#include "critical_path/critical_private.h"
#include "critical_path/faster_runs.h"

/* The target of a speed-up: all ops of a group; or an op, and of a collective those of all members
 * of its call. */
typedef struct {
    const LhPathSearch *search;
    LhSpeedUp *what;
    LhSymmetryGroups fold; /* in which it includes all ranks that any of its ranks stands for */
    uint32_t *ops;         /* by rank, LH_OP_NONE: none; NULL: of a group */
    bool absorbed;         /* it is known to save nothing */
} Faster;

static double
share_of_op(void *data, uint32_t rank, uint32_t id, const LhOp *op, const LhOpBuffer *buffer)
{
    const Faster *f = data;
    const bool is = f->ops != NULL
                        ? f->ops[rank] == id
                        : lh_path_search_is_of_group(
                              f->search, lh_critical_group(f->search->answer, f->what->group), rank,
                              op, buffer);

    return is ? 1 / LH_WHAT_IF_FACTOR : 1;
}

static double
share_of_event(void *data, const LhEvent *event)
{
    const Faster *f = data;
    const bool is = f->ops != NULL
                        ? f->ops[event->rank] == event->op
                        : g_array_index(f->search->groups, uint32_t, event->call) == f->what->group;

    return is && event->kind != LH_STEP_HOST ? 1 / LH_WHAT_IF_FACTOR : 1;
}

/* Whether @group has all ranks that any of its members stands for within a row. */
static bool
has_rows(const LhGroup *group, uint32_t row)
{
    for (uint64_t i = 0; i < lh_group_size(group); i++) {
        const uint32_t rank = (uint32_t)lh_group_member(group, i), place = rank % row;

        if (place > 1 && lh_group_position(group, rank - place + 1) == UINT32_MAX)
            return false;
        for (uint32_t k = 2; place == 1 && k < row; k++)
            if (lh_group_position(group, rank - place + k) == UINT32_MAX)
                return false;
    }
    return true;
}

/* The same for ranks a shift apart. */
static bool
has_shifts(const LhGroup *group, const LhSymmetry *of)
{
    for (uint64_t i = 0; i < lh_group_size(group); i++) {
        const uint32_t rank = (uint32_t)lh_group_member(group, i);
        const uint32_t first = rank - rank / of->shift % of->shifts * of->shift;

        if (lh_group_position(group, first) == UINT32_MAX)
            return false;
        for (uint32_t k = 1; rank == first && k < of->shifts; k++)
            if (lh_group_position(group, first + k * of->shift) == UINT32_MAX)
                return false;
    }
    return true;
}

/* The part of @fold by which ranks of @group only stand for ranks of the group. */
static LhSymmetryGroups
fold_of_group(LhSymmetryGroups fold, const LhGroup *group)
{
    if (!has_rows(group, fold.of.row))
        fold.of.row = 1;
    if (!has_shifts(group, &fold.of))
        fold.of.shifts = fold.of.shift = fold.kept = 1;
    return fold;
}

/* Sets the ops of single ops, of Faster, and their folding. */
static void
find_ops(const LhPathSearch *s, GArray *all)
{
    const uint32_t ranks = s->of.precedence->ranks_count;
    g_autofree LhCallOps *calls = g_new(LhCallOps, MAX(all->len, 1));
    guint count = 0;

    for (guint i = 0; i < all->len; i++) {
        Faster *f = &g_array_index(all, Faster, i);
        const LhOnPath like = { .rank = f->what->rank, .op = f->what->op };
        const LhGroup alone = { .base = f->what->rank, .count = 1, .outer_count = 1 };
        const LhOnPath *on;

        if (f->what->op == LH_OP_NONE)
            continue;
        on = bsearch(&like, s->ops->data, s->ops->len, sizeof(LhOnPath), lh_on_path_compare);
        f->ops = g_new(uint32_t, ranks);
        f->fold = fold_of_group(f->fold, on->collective ? &on->call.communicator.group : &alone);
        if (on->collective)
            calls[count++] = (LhCallOps){ .id = on->call, .fold = f->fold, .ops = f->ops };
        for (uint32_t r = 0; r < ranks; r++)
            f->ops[r] = r == f->what->rank ? f->what->op : LH_OP_NONE;
    }
    lh_collective_calls_find(s->of.program, calls, count);
}

static bool
is_near(const LhSpeedUp *what, LhTime saved_ps)
{
    return (double)ABS(what->saved_ps - saved_ps) <=
           LH_CRITICAL_AGREES * (double)what->predicted_ps;
}

/* Simulates all of them, of Faster, unless they are absorbed. */
static bool
play_all(const LhPathSearch *s, GArray *all, GError **error)
{
    g_autofree LhFasterRun *runs = g_new(LhFasterRun, MAX(all->len, 1));
    guint count = 0;

    for (guint i = 0; i < all->len; i++) {
        Faster *f = &g_array_index(all, Faster, i);

        if (!f->absorbed)
            runs[count++] = (LhFasterRun){ .share = share_of_op,
                                           .data = f,
                                           .alike = f->ops == NULL || lh_symmetry_is_any(&f->fold),
                                           .fold = f->ops == NULL ? NULL : &f->fold };
    }
    if (!lh_faster_runs_play(s->of.setup, s->of.program, s->task, runs, count, error))
        return false;
    for (guint i = 0; i < count; i++)
        ((Faster *)runs[i].data)->what->saved_ps = s->answer->makespan_ps - runs[i].makespan_ps;
    return true;
}

/* Finds contention among the @unsure, of Faster, in a graph of the run. */
static void
find_contention(const LhPathSearch *s, const LhSlackGraph *graph, const GPtrArray *unsure)
{
    g_autofree LhTime *makespans_ps = g_new(LhTime, MAX(unsure->len, 1));

    lh_slack_replay(graph, share_of_event, unsure->pdata, unsure->len, makespans_ps);
    for (guint i = 0; i < unsure->len; i++) {
        LhSpeedUp *what = ((Faster *)g_ptr_array_index(unsure, i))->what;

        if (!is_near(what, s->answer->makespan_ps - makespans_ps[i]))
            what->state = LH_SAVING_CONTENTION;
    }
}

/* The same for ops that are faster on some only of the ranks that the folded graph takes for
 * equivalent: in the graph of a run that simulates every rank. */
static bool
find_contention_unfolded(const LhPathSearch *s, const GPtrArray *unsure, GError **error)
{
    const LhHooks hooks = { .task = s->task != NULL ? *s->task : (LhTask){ 0 },
                            .path = true,
                            .precedence = true,
                            .unfolded = true };
    g_autoptr(LhSimResult) run = NULL;

    if (unsure->len == 0)
        return true;
    run = lh_setup_simulate(s->of.setup, s->of.program, NULL, NULL, &hooks, error);
    if (run == NULL)
        return false;
    find_contention(s, run->precedence, unsure);
    return true;
}

/* Sets the reasons of savings that differ from the prediction. */
static bool
judge(const LhPathSearch *s, GArray *all, GError **error)
{
    const LhSymmetryGroups *fold = &s->of.precedence->fold;
    g_autoptr(GPtrArray) folded = g_ptr_array_new();
    g_autoptr(GPtrArray) unfolded = g_ptr_array_new();

    for (guint i = 0; i < all->len; i++) {
        Faster *f = &g_array_index(all, Faster, i);

        f->what->state =
            is_near(f->what, f->what->predicted_ps) ? LH_SAVING_AGREES : LH_SAVING_OTHER_PATH;
        if (f->what->state != LH_SAVING_AGREES && !f->absorbed)
            g_ptr_array_add(lh_symmetry_equal(&f->fold, fold) ? folded : unfolded, f);
    }
    find_contention(s, s->of.precedence, folded);
    return find_contention_unfolded(s, unfolded, error);
}

/* Finds single kernels that save nothing, without a simulation. */
static void
find_absorbed(const LhPathSearch *s, GArray *all)
{
    g_autoptr(GArray) kernels = g_array_new(FALSE, TRUE, sizeof(LhAbsorbed));
    g_autoptr(GPtrArray) of = g_ptr_array_new(); /* Faster, of each kernel */

    for (guint i = 0; i < all->len; i++) {
        Faster *f = &g_array_index(all, Faster, i);
        const LhAbsorbed kernel = { .rank = f->what->rank, .op = f->what->op };

        if (f->what->op == LH_OP_NONE ||
            lh_critical_group(s->answer, f->what->group)->kind != LH_OP_COMPUTE)
            continue;
        g_array_append_val(kernels, kernel);
        g_ptr_array_add(of, f);
    }
    if (kernels->len > 0 && s->of.setup->device->machine_ranks == 0)
        lh_absorbed_find(s->of.precedence, kernels);
    for (guint i = 0; i < kernels->len; i++)
        ((Faster *)g_ptr_array_index(of, i))->absorbed =
            g_array_index(kernels, LhAbsorbed, i).absorbed;
}

static void
clear_faster(gpointer faster)
{
    g_free(((Faster *)faster)->ops);
}

bool
lh_speed_ups_play(const LhPathSearch *s, GError **error)
{
    GArray *const lists[] = { s->answer->by_group, s->answer->by_op };
    g_autoptr(GArray) all = g_array_new(FALSE, TRUE, sizeof(Faster));

    g_array_set_clear_func(all, clear_faster);
    for (guint k = 0; k < G_N_ELEMENTS(lists); k++)
        for (guint i = 0; i < lists[k]->len; i++) {
            const Faster f = { .search = s,
                               .what = &g_array_index(lists[k], LhSpeedUp, i),
                               .fold = s->of.precedence->fold };

            g_array_append_val(all, f);
        }
    find_ops(s, all);
    find_absorbed(s, all);
    return play_all(s, all, error) && judge(s, all, error);
}
