/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacked bars, the fastest schedule on top.
 */
#include "report/draw/bars.h"

#include "compare/totals.h"
#include "report/base/text.h"
#include "report/data/describe_options.h"
#include "report/data/labels.h"
#include "report/data/memory_limit.h"
#include "report/data/time_breakdown.h"
#include "report/draw/figure.h"

#define MARGIN_LETTERS 18U /* for the names of schedules */
#define HEIGHT_BESIDE_BARS 180
#define HEIGHT_BAR 44
#define BAR_HALF 0.34
#define LABEL_ROOM 1.12    /* length of the axis / longest bar, for its label */
#define HAIR 0.0005        /* smallest visible part, relative to the longest bar */
#define REASON_LETTERS 105 /* after a name, within the figure's width */

/* Caller frees. */
static char *
part_title(const LhSetup *setup, int part)
{
    if (lh_part_is_exposed(part))
        return g_strdup_printf(
            "exposed %s",
            lh_topology_link_name(setup->topology, (LhTier)(part - 1 - LH_IDLE_COMM)));
    return g_strdup(lh_part_name(part));
}

static const char *
part_colour(int part)
{
    const int idle = part - 1;

    if (part == 0)
        return LH_COLOUR_FORWARD;
    if (idle == LH_IDLE_IMBALANCE)
        return LH_COLOUR_IMBALANCE;
    if (idle == LH_IDLE_HOST)
        return LH_COLOUR_HOST;
    return lh_tier_colours[idle - LH_IDLE_COMM];
}

/* Order within a bar: compute, exposed communication, host, imbalance. */
static const int drawing_order[LH_TIME_PARTS] = { 0, 2, 3, 4, 5, 6, 1 };

static LhWide
part_of(const LhTotals *totals, int part)
{
    return part == 0 ? totals->busy_ps : totals->idle_ps[part - 1];
}

typedef struct {
    const LhSetup *setup;
    const LhComparison *comparison;
    LhTime longest_ps; /* longest bar */
    LhTimeScale scale;
    double unit_ps;
} Bars;

static const LhCompareRow *
bar_row(const Bars *bars, guint index)
{
    return g_ptr_array_index(bars->comparison->rows, index);
}

/* Whether the schedule has a bar, which needs that it can run here. */
static bool
has_bar(const LhCompareRow *row)
{
    return row->state == LH_ROW_RAN;
}

/* Appends the box of one part of one bar; false if it is too small to see. */
static bool
append_part_box(GString *data, const Bars *bars, guint index, int position)
{
    const LhCompareRow *row = bar_row(bars, index);
    const double unit = bars->unit_ps * row->result->ranks_count;
    LhTotals totals;
    double start = 0;
    double length;

    lh_totals(row->result, &totals);
    for (int before = 0; before < position; before++)
        start += (double)part_of(&totals, drawing_order[before]);
    length = (double)part_of(&totals, drawing_order[position]);
    if (length < HAIR * (double)bars->longest_ps * row->result->ranks_count)
        return false;
    start /= unit;
    length /= unit;
    lh_text_append(data, start + length / 2);
    lh_text_append(data, index);
    lh_text_append(data, start);
    lh_text_append(data, start + length);
    lh_text_append(data, index - BAR_HALF);
    lh_text_append(data, index + BAR_HALF);
    data->str[data->len - 1] = '\n';
    return true;
}

/* Appends a data set with the boxes of one part; false if there are none. */
static bool
append_part(GString *data, const Bars *bars, int position)
{
    g_autofree char *title = part_title(bars->setup, drawing_order[position]);
    g_autofree char *heading = g_strdup_printf("# %s: x y x_low x_high y_low y_high\n", title);
    const gsize before = data->len;
    bool any = false;

    g_string_append(data, heading);
    for (guint i = 0; i < bars->comparison->rows->len; i++) {
        if (has_bar(bar_row(bars, i)))
            any = append_part_box(data, bars, i, position) || any;
    }
    if (any)
        g_string_append(data, "\n\n");
    else
        g_string_truncate(data, before);
    return any;
}

/* Text after a name instead of a bar. Caller frees. */
static char *
no_bar_reason(const Bars *bars, const LhCompareRow *row)
{
    g_autofree char *limit = NULL;

    if (row->state != LH_ROW_NO_MEMORY)
        return g_strdup_printf("%s: %s", lh_row_state_names[row->state], row->reason);
    limit = lh_describe_memory_limit(bars->setup, row->result);
    return g_strdup_printf("out of memory: %s", limit);
}

/* Appends the reason, in two lines if it is too long for one. */
static void
append_reason(GString *script, const char *reason)
{
    const char *space =
        g_utf8_strlen(reason, -1) <= REASON_LETTERS
            ? NULL
            : g_utf8_strrchr(reason, g_utf8_offset_to_pointer(reason, REASON_LETTERS) - reason,
                             ' ');
    g_autofree char *first =
        space == NULL ? g_strdup(reason) : g_strndup(reason, (gsize)(space - reason));

    lh_figure_append_text(script, first, REASON_LETTERS);
    if (space == NULL)
        return;
    g_string_append(script, ".\"\\n\".");
    lh_figure_append_text(script, space + 1, REASON_LETTERS);
}

static void
append_label(GString *script, const Bars *bars, guint index)
{
    const LhCompareRow *row = bar_row(bars, index);
    char at[G_ASCII_DTOSTR_BUF_SIZE];
    char text[LH_TEXT_SIZE];

    g_string_append(script, "set label ");
    if (has_bar(row)) {
        g_ascii_formatd(at, sizeof(at), "%.7g", (double)row->result->makespan_ps / bars->unit_ps);
        g_string_append_printf(
            script, "'%s' at %s,%u offset 0.6,0 left\n",
            lh_text_scaled(bars->scale,
                           (row->result->makespan_ps + bars->scale.quantum_ps / 2) /
                               bars->scale.quantum_ps,
                           text),
            at, index);
    } else {
        g_autofree char *reason = no_bar_reason(bars, row);

        append_reason(script, reason);
        g_string_append_printf(script, " at 0,%u offset 0.6,0 left front textcolor rgb '%s'\n",
                               index, LH_COLOUR_WORDS);
    }
}

static void
append_labels(GString *script, const Bars *bars)
{
    const guint count = bars->comparison->rows->len;

    g_string_append(script, "set ytics scale 0 (");
    for (guint i = 0; i < count; i++) {
        g_string_append(script, i > 0 ? ", " : "");
        lh_figure_append_text(script, bar_row(bars, i)->name, MARGIN_LETTERS - 2);
        g_string_append_printf(script, " %u", i);
    }
    g_string_append(script, ")\n");
    for (guint i = 0; i < count; i++)
        append_label(script, bars, i);
}

static void
append_title(GString *script, const LhSetup *setup)
{
    g_autofree char *tokens = lh_format_count(setup->params.attention.seq_length);
    g_autofree char *groups = lh_describe_all_ranks(setup);
    g_autofree char *place = setup->cost == LH_COST_DEVICE
                                 ? g_strdup_printf("on %s", setup->topology->name)
                                 : g_strdup("with free communication");
    g_autofree char *line = g_strdup_printf(
        "Where the time goes in %s%s%s%s %s", setup->step != NULL ? "a " : "",
        setup->step != NULL ? lh_step_word(setup) : "attention", setup->model != NULL ? " of " : "",
        setup->model != NULL ? setup->model->name : "", place);
    g_autofree char *below =
        g_strdup_printf("%s tokens on %s; mean over the ranks", tokens, groups);

    lh_figure_append_title(script, LH_FIGURE_WIDTH, line, below);
}

static void
append_axes(GString *script, const Bars *bars)
{
    char right[G_ASCII_DTOSTR_BUF_SIZE];
    const double longest = bars->longest_ps == 0 ? 1 : (double)bars->longest_ps / bars->unit_ps;

    g_ascii_formatd(right, sizeof(right), "%.7g", LABEL_ROOM * longest);
    g_string_append_printf(script,
                           "set xrange [0:%s]\nset yrange [%u - 0.3:-0.6]\n"
                           "set lmargin %u\nset rmargin 4\n",
                           right, bars->comparison->rows->len, MARGIN_LETTERS);
    if (bars->longest_ps == 0)
        g_string_append(script, "unset xtics\nset border 0\n");
    else
        g_string_append_printf(script, "set xlabel 'time (%s)'\n", bars->scale.unit);
}

/* Appends the plot commands; without any bar, gnuplot still needs something to plot. */
static void
append_part_plots(GString *script, GString *data, const Bars *bars)
{
    guint index = 0;

    for (int position = 0; position < LH_TIME_PARTS; position++) {
        const int part = drawing_order[position];
        g_autofree char *title = part_title(bars->setup, part);

        if (!append_part(data, bars, position))
            continue;
        g_string_append_printf(script,
                               "%s index %u using 1:2:3:4:5:6 with boxxyerror fillstyle solid 1 "
                               "noborder fillcolor rgb '%s' title '%s'",
                               index == 0 ? "plot $data" : ", \\\n    $data", index,
                               part_colour(part), title);
        index++;
    }
    g_string_append(script, index == 0 ? "plot NaN notitle\n" : "\n");
}

bool
lh_bars_draw(const LhSetup *setup, const LhComparison *c, LhFigureTo to, GError **error)
{
    g_autoptr(GString) data = g_string_new(NULL);
    g_autoptr(GString) script = g_string_new(NULL);
    Bars bars = { .setup = setup, .comparison = c };
    LhFigure figure = { .to = to,
                        .width = LH_FIGURE_WIDTH,
                        .height = HEIGHT_BESIDE_BARS + HEIGHT_BAR * c->rows->len };

    for (guint i = 0; i < c->rows->len; i++) {
        if (has_bar(bar_row(&bars, i)))
            bars.longest_ps = MAX(bars.longest_ps, bar_row(&bars, i)->result->makespan_ps);
    }
    bars.scale = lh_text_scale(bars.longest_ps);
    bars.unit_ps = (double)bars.scale.unit_ps;
    append_title(script, setup);
    append_axes(script, &bars);
    append_labels(script, &bars);
    append_part_plots(script, data, &bars);
    figure.script = script->str;
    figure.data = data->str;
    return lh_figure_draw(&figure, error);
}
