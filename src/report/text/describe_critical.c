/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/describe_critical.h"

#include "report/base/text.h"
#include "report/text/number_cells.h"

#define RANKS_SHOWN 8 /* ranks shown, those with most of the path */

/* --- cells --------------------------------------------------------------------------------------
 */

static LhTimeScale
path_scale(const LhCritical *c)
{
    return lh_text_scale(c->makespan_ps);
}

static double
fraction_of(const LhCritical *c, LhTime time_ps)
{
    return (double)time_ps / (double)MAX(c->makespan_ps, 1);
}

/* A time in quanta of the scale; half a quantum is rounded up. */
static void
time_cell(LhTable *table, LhTimeScale scale, LhTime time_ps)
{
    const LhTime size_ps = ABS(time_ps);
    const int64_t quanta = (size_ps + scale.quantum_ps / 2) / scale.quantum_ps;
    char text[LH_TEXT_SIZE], exact[LH_WIDE_TEXT_SIZE];

    lh_table_cell(table, lh_text_scaled(scale, time_ps < 0 ? -quanta : quanta, text),
                  lh_wide_seconds(time_ps, exact));
}

static void
share_row(LhTable *table, const LhCritical *c, const char *name, LhTime time_ps)
{
    lh_table_row(table);
    lh_table_cell(table, name, NULL);
    time_cell(table, path_scale(c), time_ps);
    lh_cell_percent(table, fraction_of(c, time_ps));
}

static LhTable *
share_table(LhTimeScale scale, const char *key, const char *title)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, key, title, NULL, false);
    lh_table_column(table, "path_s", "path", scale.unit, true);
    lh_table_column(table, "path_fraction", "share", "%", true);
    return table;
}

static const LhCallGroup *
group_at(const LhCritical *c, uint32_t index)
{
    return &g_array_index(c->groups, LhCallGroup, index);
}

/* "attention_fwd forward". */
static char *
group_title(const LhCallGroup *group)
{
    g_autofree char *name = lh_call_group_name(group);

    return g_strdup_printf("%s, %s", name, lh_phase_names[group->phase]);
}

/* --- composition of the path --------------------------------------------------------------------
 */

LhTable *
lh_describe_path_resources(const LhCritical *c)
{
    LhTable *table = share_table(path_scale(c), "resource", "critical path, by resource");

    for (guint i = 0; i < c->resources->len; i++) {
        const LhPathShare *share = &g_array_index(c->resources, LhPathShare, i);
        g_autofree char *name = lh_resource_name(share->kind, share->tiers);

        share_row(table, c, name, share->time_ps);
    }
    share_row(table, c, "makespan", c->makespan_ps);
    return table;
}

LhTable *
lh_describe_path_phases(const LhCritical *c)
{
    LhTable *table = share_table(path_scale(c), "phase", "by phase");

    for (int phase = 0; phase < LH_PHASES; phase++)
        if (c->phases_ps[phase] > 0)
            share_row(table, c, lh_phase_names[phase], c->phases_ps[phase]);
    return table;
}

typedef struct {
    LhTime path_ps;
    uint32_t rank;
} RankShare;

static int
by_share(gconstpointer a, gconstpointer b)
{
    const RankShare *x = a, *y = b;

    if (x->path_ps != y->path_ps)
        return x->path_ps > y->path_ps ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Ranks on the path, by time on it, longest first: of RankShare. */
static GArray *
ranks_of(const LhCritical *c)
{
    GArray *ranks = g_array_new(FALSE, FALSE, sizeof(RankShare));

    for (uint32_t r = 0; r < c->ranks_ps->len; r++) {
        const RankShare share = { g_array_index(c->ranks_ps, LhTime, r), r };

        if (share.path_ps > 0)
            g_array_append_val(ranks, share);
    }
    g_array_sort(ranks, by_share);
    return ranks;
}

LhTable *
lh_describe_path_ranks(const LhCritical *c)
{
    LhTable *table = share_table(path_scale(c), "rank", "by rank");
    g_autoptr(GArray) ranks = ranks_of(c);
    LhTime rest_ps = 0;

    for (guint i = 0; i < ranks->len; i++) {
        const RankShare *share = &g_array_index(ranks, RankShare, i);
        g_autofree char *name = g_strdup_printf("rank %u", share->rank);

        if (i < RANKS_SHOWN)
            share_row(table, c, name, share->path_ps);
        else
            rest_ps += share->path_ps;
    }
    if (rest_ps > 0) {
        g_autofree char *name = g_strdup_printf("%u others", ranks->len - RANKS_SHOWN);

        share_row(table, c, name, rest_ps);
    }
    return table;
}

LhTable *
lh_describe_slack(const LhCritical *c)
{
    const LhTimeScale scale = path_scale(c);
    LhTable *table = lh_table_new();

    lh_table_column(table, "call", "calls and their slack", NULL, false);
    lh_table_column(table, "calls", "calls", "all ranks", true);
    lh_table_column(table, "path_s", "path", scale.unit, true);
    lh_table_column(table, "path_calls", "calls", "on path", true);
    lh_table_column(table, "calls_without_slack", "calls", "no slack", true);
    lh_table_column(table, "least_slack_s", "others:", "least", true);
    lh_table_column(table, "most_slack_s", "most", scale.unit, true);
    for (uint32_t i = 0; i < c->groups->len; i++) {
        const LhCallGroup *group = group_at(c, i);
        g_autofree char *title = group_title(group);

        lh_table_row(table);
        lh_table_cell(table, title, NULL);
        lh_cell_count(table, group->calls);
        time_cell(table, scale, group->path_ps);
        lh_cell_count(table, group->path_calls);
        lh_cell_count(table, group->critical);
        if (group->most_ps == 0)
            continue;
        time_cell(table, scale, group->least_ps);
        time_cell(table, scale, group->most_ps);
    }
    return table;
}

/* --- savings ------------------------------------------------------------------------------------
 */

static void
op_cell(LhTable *table, const LhCritical *c, const LhSpeedUp *what)
{
    const LhCallGroup *group = group_at(c, what->group);
    g_autofree char *name = lh_call_group_name(group);

    lh_table_cell_printf(table, "rank %u, op %u: %s (layer %u, %s)", what->rank, what->op, name,
                         what->layer, lh_phase_names[group->phase]);
}

/* Scale for single ops, which may be far shorter than the run. */
static LhTimeScale
scale_of_parts(const GArray *all)
{
    LhTime longest_ps = 0;

    for (guint i = 0; i < all->len; i++)
        longest_ps = MAX(longest_ps, g_array_index(all, LhSpeedUp, i).path_ps);
    return lh_text_scale(longest_ps);
}

static LhTable *
faster_table(const LhCritical *c, const GArray *all, const char *title)
{
    const LhTimeScale scale = scale_of_parts(all);
    LhTable *table = lh_table_new();

    lh_table_column(table, "faster", title, NULL, false);
    lh_table_column(table, "path_s", "path", scale.unit, true);
    lh_table_column(table, "predicted_s", "predicted", scale.unit, true);
    lh_table_column(table, "saved_s", "saved", scale.unit, true);
    lh_table_column(table, "saved_fraction", "saved", "%", true);
    for (guint i = 0; i < all->len; i++) {
        const LhSpeedUp *what = &g_array_index(all, LhSpeedUp, i);
        const LhCallGroup *group = group_at(c, what->group);
        g_autofree char *title_of_group = group_title(group);

        lh_table_row(table);
        if (what->op == LH_OP_NONE)
            lh_table_cell_printf(table, "%s: %u calls", title_of_group, group->calls);
        else
            op_cell(table, c, what);
        time_cell(table, scale, what->path_ps);
        time_cell(table, scale, what->predicted_ps);
        time_cell(table, scale, what->saved_ps);
        lh_cell_percent(table, fraction_of(c, what->saved_ps));
        if (what->state != LH_SAVING_AGREES)
            lh_table_note(table, lh_saving_names[what->state]);
    }
    return table;
}

LhTable *
lh_describe_faster_calls(const LhCritical *c)
{
    return faster_table(c, c->by_group, "10 % faster calls");
}

LhTable *
lh_describe_faster_ops(const LhCritical *c)
{
    return faster_table(c, c->by_op, "10 % faster single ops");
}

LhTable *
lh_describe_longest_ops(const LhCritical *c)
{
    const LhTimeScale scale = scale_of_parts(c->by_op);
    LhTable *table = share_table(scale, "op", "ops with most time on the path");

    for (guint i = 0; i < c->by_op->len; i++) {
        const LhSpeedUp *what = &g_array_index(c->by_op, LhSpeedUp, i);

        lh_table_row(table);
        op_cell(table, c, what);
        time_cell(table, scale, what->path_ps);
        lh_cell_percent(table, fraction_of(c, what->path_ps));
    }
    return table;
}

/* --- CSV and JSON -------------------------------------------------------------------------------
 */

static void
exact_row(LhTable *table, const LhCritical *c, const char *what, const char *name, LhTime path_ps)
{
    char text[LH_WIDE_TEXT_SIZE], number[G_ASCII_DTOSTR_BUF_SIZE];

    lh_table_row(table);
    lh_table_cell(table, what, NULL);
    lh_table_cell(table, name, NULL);
    lh_table_cell(table, lh_wide_seconds(path_ps, text), NULL);
    lh_table_cell(table, lh_double_to_text(fraction_of(c, path_ps), number), NULL);
}

static void
blank_cells(LhTable *table, int count)
{
    while (count-- > 0)
        lh_table_cell(table, "", NULL);
}

static void
slack_cells(LhTable *table, const LhCallGroup *group)
{
    char text[LH_WIDE_TEXT_SIZE];

    lh_table_cell_printf(table, "%u", group->calls);
    lh_table_cell_printf(table, "%u", group->path_calls);
    lh_table_cell_printf(table, "%u", group->critical);
    lh_table_cell(table, group->most_ps > 0 ? lh_wide_seconds(group->least_ps, text) : "", NULL);
    lh_table_cell(table, group->most_ps > 0 ? lh_wide_seconds(group->most_ps, text) : "", NULL);
}

static void
saving_cells(LhTable *table, const LhCritical *c, const LhSpeedUp *what)
{
    char text[LH_WIDE_TEXT_SIZE];

    lh_table_cell(table, lh_wide_seconds(what->predicted_ps, text), NULL);
    if (!c->played)
        return;
    lh_table_cell(table, lh_wide_seconds(what->saved_ps, text), NULL);
    lh_table_cell(table, lh_saving_names[what->state], NULL);
}

/* Adds a group, with its saving if that was simulated. */
static void
group_row(LhTable *table, const LhCritical *c, uint32_t index)
{
    g_autofree char *title = group_title(group_at(c, index));

    exact_row(table, c, "calls", title, group_at(c, index)->path_ps);
    slack_cells(table, group_at(c, index));
    for (guint i = 0; i < c->by_group->len; i++) {
        const LhSpeedUp *what = &g_array_index(c->by_group, LhSpeedUp, i);

        if (what->group == index)
            saving_cells(table, c, what);
    }
}

LhTable *
lh_critical_table(const LhCritical *c)
{
    static const char *const columns[] = { "part",
                                           "name",
                                           "path_s",
                                           "path_fraction",
                                           "calls",
                                           "path_calls",
                                           "calls_without_slack",
                                           "least_slack_s",
                                           "most_slack_s",
                                           "predicted_s",
                                           "saved_s",
                                           "saving" };
    g_autoptr(GArray) ranks = ranks_of(c);
    LhTable *table = lh_table_new();

    for (guint i = 0; i < G_N_ELEMENTS(columns); i++)
        lh_table_column(table, columns[i], "", NULL, false);
    for (guint i = 0; i < c->resources->len; i++) {
        const LhPathShare *share = &g_array_index(c->resources, LhPathShare, i);
        g_autofree char *name = lh_resource_name(share->kind, share->tiers);

        exact_row(table, c, "resource", name, share->time_ps);
    }
    for (int phase = 0; phase < LH_PHASES; phase++)
        if (c->phases_ps[phase] > 0)
            exact_row(table, c, "phase", lh_phase_names[phase], c->phases_ps[phase]);
    for (guint i = 0; i < ranks->len; i++) {
        const RankShare *share = &g_array_index(ranks, RankShare, i);
        g_autofree char *name = g_strdup_printf("%u", share->rank);

        exact_row(table, c, "rank", name, share->path_ps);
    }
    for (uint32_t i = 0; i < c->groups->len; i++)
        group_row(table, c, i);
    for (guint i = 0; i < c->by_op->len; i++) {
        const LhSpeedUp *what = &g_array_index(c->by_op, LhSpeedUp, i);
        g_autofree char *title = group_title(group_at(c, what->group));
        g_autofree char *name = g_strdup_printf("rank %u op %u: %s", what->rank, what->op, title);

        exact_row(table, c, "op", name, what->path_ps);
        blank_cells(table, 5);
        saving_cells(table, c, what);
    }
    return table;
}
