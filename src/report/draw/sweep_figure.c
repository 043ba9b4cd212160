/* SPDX-License-Identifier: Apache-2.0 */
#include "report/draw/sweep_figure.h"

#include "base/error.h"
#include "report/base/text.h"
#include "report/data/labels.h"

#include <math.h>
#include <string.h>

#define CURVES_WIDTH 1100
#define CURVES_HEIGHT 560
#define CELL_WIDTH 105
#define CELL_HEIGHT 52
#define MAP_WIDTH_BASE 420
#define MAP_HEIGHT_BASE 190
#define MAP_WIDTH_MIN 900
#define MAP_SIDE_MAX 40    /* values per field of a map */
#define LETTERS_MAX 24     /* of an axis value or a name */
#define LABEL_LETTERS 7    /* width of the axis label beside them */
#define CURVES_MARGIN 1.15 /* factor beyond the first and last point of a logarithmic axis */
#define TIMES_MARGIN 1.4   /* factor beyond the shortest and longest time */
#define NOTHING_COLOUR "#E8E8E8"

static const unsigned markers[] = { 7, 5, 9, 13, 11, 6, 4, 8 };

/* ---- requirements ---- */

/* Finds the axes with several values. */
static guint
wide_axes(const GPtrArray *axes, guint wide[2])
{
    guint count = 0;

    for (guint i = 0; i < axes->len; i++) {
        if (((const LhScenarioAxis *)g_ptr_array_index(axes, i))->values->len < 2)
            continue;
        if (count < 2)
            wide[count] = i;
        count++;
    }
    return count;
}

/* "hgx-h100" for "hgx-h100:4"; caller frees. */
static char *
cluster_name(const char *value)
{
    const char *colon = strrchr(value, ':');

    return colon != NULL ? g_strndup(value, (gsize)(colon - value)) : g_strdup(value);
}

/* Whether the axis has sizes of one cluster, drawn as numbers of GPUs. */
static bool
is_cluster_sizes(const LhScenarioAxis *axis)
{
    g_autofree char *first = cluster_name(g_ptr_array_index(axis->values, 0));

    for (guint i = 1; i < axis->values->len; i++) {
        g_autofree char *name = cluster_name(g_ptr_array_index(axis->values, i));

        if (strcmp(name, first) != 0)
            return false;
    }
    return strcmp(axis->field->name, "cluster") == 0;
}

/* Whether all values are numbers above 0, which a logarithmic axis needs. */
static bool
is_numbers(const LhScenarioAxis *axis)
{
    for (guint i = 0; i < axis->values->len; i++) {
        const char *value = g_ptr_array_index(axis->values, i);
        char *end;

        if (!(g_ascii_strtod(value, &end) > 0) || *end != '\0')
            return false;
    }
    return true;
}

static bool
refuse_to_draw(GError **error, const char *what)
{
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "--figure: %s", what);
    return false;
}

bool
lh_sweep_figure_check(const LhScenario *scenario, GError **error)
{
    g_autoptr(GPtrArray) axes = lh_scenario_axes(scenario);
    guint wide[2];
    const guint count = wide_axes(axes, wide);
    const LhScenarioAxis *axis;

    if (count == 0)
        return refuse_to_draw(error, "no field has several values to draw against");
    if (count > 2)
        return refuse_to_draw(error, "more than two fields have several values; set the others to "
                                     "one value each by their options");
    for (guint i = 0; i < count; i++) {
        axis = g_ptr_array_index(axes, wide[i]);
        if (count == 2 && axis->values->len > MAP_SIDE_MAX)
            return refuse_to_draw(error, "a map has room for 40 values per field; list fewer");
    }
    axis = g_ptr_array_index(axes, wide[0]);
    if (count == 1 && !is_numbers(axis) && !is_cluster_sizes(axis))
        return refuse_to_draw(error, "curves need a field with numbers above 0, or sizes of one "
                                     "cluster; with a second field this would be a map");
    return true;
}

static char *
title_of(const LhSweep *sweep, const char *what)
{
    const LhModel *model = sweep->setup->model;
    const bool step = sweep->setup->step != NULL;

    return g_strdup_printf(
        "%s: %s%s%s%s", what, step ? lh_step_word(sweep->setup) : "one attention module",
        step ? "s" : "", model != NULL ? " of " : "", model != NULL ? model->name : "");
}

/* "on dgx-a100-80g, 65,536 tokens": the constant part of the cases. Caller frees. */
static char *
fixed_of(const LhSweep *sweep)
{
    const LhSetup *setup = sweep->setup;
    g_autofree char *tokens = lh_format_count(setup->params.attention.seq_length);
    GString *text = g_string_new(NULL);
    bool length = false, cluster = false;

    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        length = length || strcmp(axis->field->name, "seq_length") == 0;
        cluster = cluster || strcmp(axis->field->name, "cluster") == 0 ||
                  strcmp(axis->field->name, "ranks") == 0;
    }
    if (setup->cost != LH_COST_DEVICE)
        g_string_append(text, "with free communication");
    else
        g_string_append_printf(text, "on %s", setup->topology->name);
    if (!cluster)
        g_string_append_printf(text, ", %u GPUs", setup->network.ranks);
    if (!length)
        g_string_append_printf(text, ", %s tokens", tokens);
    return g_string_free(text, FALSE);
}

/* "seq-length", "GPUs". Caller frees. */
static char *
axis_label(const LhScenarioAxis *axis)
{
    if (strcmp(axis->field->name, "seq_length") == 0)
        return g_strdup("sequence length (tokens)");
    if (strcmp(axis->field->name, "window_size") == 0)
        return g_strdup("window (tokens)");
    if (strcmp(axis->field->name, "ranks") == 0 || is_cluster_sizes(axis))
        return g_strdup("GPUs");
    return g_strdelimit(g_strdup(axis->field->name), "_", ' ');
}

/* "64K" for 65536; other numbers as they are. Caller frees. */
static char *
short_count(double value)
{
    static const char *const suffixes[] = { "G", "M", "K" };
    double unit = 1024.0 * 1024 * 1024;

    for (guint i = 0; i < G_N_ELEMENTS(suffixes); i++, unit /= 1024) {
        if (value >= unit && fmod(value, unit) == 0)
            return g_strdup_printf("%.0f%s", value / unit, suffixes[i]);
    }
    return g_strdup_printf("%.6g", value);
}

/* ---- schedules ---- */

static guint
find_name(const GPtrArray *names, const char *name)
{
    guint index = 0;

    while (index < names->len && strcmp(g_ptr_array_index(names, index), name) != 0)
        index++;
    return index;
}

/* Schedules that run at some point, by first appearance from the last point backwards, where
 * differences are largest; with @winners, only those that are fastest somewhere. Of char *,
 * borrowed. */
static GPtrArray *
schedules_of(const LhSweep *sweep, bool winners)
{
    GPtrArray *names = g_ptr_array_new();

    for (guint i = sweep->points->len; i-- > 0;) {
        const LhSweepPoint *point = g_ptr_array_index(sweep->points, i);
        char **row;

        for (guint k = 0; (row = lh_sweep_place(sweep, point, k)) != NULL && (k == 0 || !winners);
             k++) {
            const char *name = lh_sweep_cell(sweep, row, "schedule");

            if (find_name(names, name) == names->len)
                g_ptr_array_add(names, (gpointer)name);
        }
    }
    return names;
}

/* ---- curves ---- */

/* Coordinate of a point on the axis. */
static double
x_of(const LhSweep *sweep, guint axis, const LhSweepPoint *point)
{
    const LhScenarioAxis *a = g_ptr_array_index(sweep->axes, axis);
    char **row = lh_sweep_place(sweep, point, 0);

    if (!is_cluster_sizes(a))
        return g_ascii_strtod(point->values[axis], NULL);
    return row != NULL ? lh_sweep_number(sweep, row, "ranks") : NAN;
}

/* A figure being drawn. */
typedef struct {
    const LhSweep *sweep;
    guint axes[2];
    GPtrArray *names; /* of schedules */
    GString *data, *script;
    double unit_s; /* unit of times */
} Drawing;

/* Appends the curve of one schedule. */
static void
append_curve(const Drawing *d, const char *name)
{
    for (guint i = 0; i < d->sweep->points->len; i++) {
        const LhSweepPoint *point = g_ptr_array_index(d->sweep->points, i);
        char **row;

        for (guint k = 0; (row = lh_sweep_place(d->sweep, point, k)) != NULL; k++) {
            if (strcmp(lh_sweep_cell(d->sweep, row, "schedule"), name) != 0)
                continue;
            lh_text_append(d->data, x_of(d->sweep, d->axes[0], point));
            lh_text_append(d->data, lh_sweep_seconds(d->sweep, row) / d->unit_s);
            d->data->str[d->data->len - 1] = '\n';
        }
    }
    g_string_append(d->data, "\n\n");
}

/* Appends a tick at each value. */
static void
append_marks(const Drawing *d)
{
    double least = INFINITY, most = 0;
    char left[G_ASCII_DTOSTR_BUF_SIZE], right[G_ASCII_DTOSTR_BUF_SIZE];
    bool first = true;

    g_string_append(d->script, "set xtics (");
    for (guint i = 0; i < d->sweep->points->len; i++) {
        const double x = x_of(d->sweep, d->axes[0], g_ptr_array_index(d->sweep->points, i));
        g_autofree char *text = NULL;

        if (isnan(x))
            continue;
        text = short_count(x);
        g_string_append(d->script, first ? "" : ", ");
        lh_figure_append_text(d->script, text, LETTERS_MAX);
        g_string_append_printf(d->script, " %s", g_ascii_formatd(left, sizeof(left), "%.7g", x));
        least = MIN(least, x);
        most = MAX(most, x);
        first = false;
    }
    g_ascii_formatd(left, sizeof(left), "%.7g", least / CURVES_MARGIN);
    g_ascii_formatd(right, sizeof(right), "%.7g", most * CURVES_MARGIN);
    g_string_append_printf(d->script, ")\nset xrange [%s:%s]\n", left, right);
}

/* Chooses the unit of times, and the range and ticks of the axis. NULL: there are no times. */
static const char *
choose_time_unit(Drawing *d)
{
    double longest = 0, shortest = INFINITY;
    char low[G_ASCII_DTOSTR_BUF_SIZE], high[G_ASCII_DTOSTR_BUF_SIZE];
    LhTimeScale scale;

    for (guint i = 0; i < d->sweep->points->len; i++) {
        const LhSweepPoint *point = g_ptr_array_index(d->sweep->points, i);
        char **row;

        for (guint k = 0; (row = lh_sweep_place(d->sweep, point, k)) != NULL; k++) {
            longest = MAX(longest, lh_sweep_seconds(d->sweep, row));
            shortest = MIN(shortest, lh_sweep_seconds(d->sweep, row));
        }
    }
    if (!(shortest > 0 && isfinite(shortest)))
        return NULL;
    scale = lh_text_scale((LhTime)(sqrt(shortest * longest) * (double)LH_PS_PER_S));
    d->unit_s = (double)scale.unit_ps / (double)LH_PS_PER_S;
    g_ascii_formatd(low, sizeof(low), "%.7g", shortest / d->unit_s / TIMES_MARGIN);
    g_ascii_formatd(high, sizeof(high), "%.7g", longest / d->unit_s * TIMES_MARGIN);
    g_string_append_printf(d->script, "set yrange [%s:%s]\n", low, high);
    lh_figure_append_log_tics(d->script, "y", shortest / d->unit_s / TIMES_MARGIN,
                              longest / d->unit_s * TIMES_MARGIN);
    return scale.unit;
}

static void
draw_curves(Drawing *d)
{
    const LhSweep *sweep = d->sweep;
    g_autofree char *label = axis_label(g_ptr_array_index(sweep->axes, d->axes[0]));
    g_autofree char *title = title_of(sweep, "Time");
    g_autofree char *below = fixed_of(sweep);
    const char *unit = choose_time_unit(d);

    lh_figure_append_title(d->script, CURVES_WIDTH, title, below);
    g_string_append_printf(d->script,
                           "set logscale x 2\nset logscale y 10\nset xlabel '%s'\n"
                           "set border 3\nset ytics nomirror out\n"
                           "set grid ytics lc rgb '#DDDDDD' lw 0.5\n"
                           "set key outside right center vertical maxrows 24 Left reverse "
                           "samplen 2.5 width 1\n",
                           label);
    if (unit != NULL)
        g_string_append_printf(d->script, "set ylabel 'time (%s)'\n", unit);
    else
        g_string_append(d->script, "set yrange [1:10]\nunset ytics\n"
                                   "set label 'nothing runs at any of these points' at graph "
                                   "0.5,0.5 center textcolor rgb '" LH_COLOUR_WORDS "'\n");
    append_marks(d);
    for (guint i = 0; i < d->names->len; i++) {
        append_curve(d, g_ptr_array_index(d->names, i));
        g_string_append_printf(
            d->script, "%s index %u with linespoints lw 1.6 pt %u ps 0.9 dt %u lc rgb '%s' title ",
            i == 0 ? "plot $data" : ", \\\n    $data", i,
            markers[(i + i / G_N_ELEMENTS(markers)) % G_N_ELEMENTS(markers)],
            i / LH_FIGURE_COLOURS + 1, lh_figure_colours[i % LH_FIGURE_COLOURS]);
        lh_figure_append_text(d->script, g_ptr_array_index(d->names, i), LETTERS_MAX);
    }
    g_string_append(d->script, d->names->len == 0 ? "plot NaN notitle\n" : "\n");
}

/* ---- map ---- */

static guint
index_of_value(const LhScenarioAxis *axis, const char *value)
{
    guint index = 0;

    while (strcmp(g_ptr_array_index(axis->values, index), value) != 0)
        index++;
    return index;
}

/* The cluster's number of GPUs, if the axis has cluster sizes and something runs on it. */
static char *
tick_text(const Drawing *d, guint axis, const char *value)
{
    const LhScenarioAxis *a = g_ptr_array_index(d->sweep->axes, axis);

    if (a->field->type == LH_FIELD_UNIT)
        return short_count(g_ascii_strtod(value, NULL));
    for (guint i = 0; is_cluster_sizes(a) && i < d->sweep->points->len; i++) {
        const LhSweepPoint *point = g_ptr_array_index(d->sweep->points, i);

        if (strcmp(point->values[axis], value) == 0 && lh_sweep_place(d->sweep, point, 0) != NULL)
            return short_count(x_of(d->sweep, axis, point));
    }
    return g_strdup(value);
}

/* Returns the length of the longest tick label. */
static glong
append_ticks(const Drawing *d, const char *command, guint axis)
{
    const LhScenarioAxis *a = g_ptr_array_index(d->sweep->axes, axis);
    glong letters = 0;

    g_string_append_printf(d->script, "set %s scale 0 (", command);
    for (guint i = 0; i < a->values->len; i++) {
        const char *value = g_ptr_array_index(a->values, i);
        g_autofree char *text = tick_text(d, axis, value);

        g_string_append(d->script, i > 0 ? ", " : "");
        lh_figure_append_text(d->script, text, LETTERS_MAX);
        g_string_append_printf(d->script, " %u", i);
        letters = MAX(letters, MIN(g_utf8_strlen(text, -1), LETTERS_MAX));
    }
    g_string_append(d->script, ")\n");
    return letters;
}

/* Index of the fastest schedule at the point; the number of schedules: none. */
static guint
winner_of(const Drawing *d, const LhSweepPoint *point)
{
    char **row = lh_sweep_place(d->sweep, point, 0);

    return row == NULL ? d->names->len
                       : find_name(d->names, lh_sweep_cell(d->sweep, row, "schedule"));
}

static bool
is_tied(const Drawing *d, const LhSweepPoint *point)
{
    char **next = lh_sweep_place(d->sweep, point, 1);

    return next != NULL && strcmp(lh_sweep_cell(d->sweep, next, "told_apart_from_best"), "no") == 0;
}

static void
append_point_box(const Drawing *d, const LhSweepPoint *point)
{
    const LhScenarioAxis *down = g_ptr_array_index(d->sweep->axes, d->axes[0]);
    const LhScenarioAxis *across = g_ptr_array_index(d->sweep->axes, d->axes[1]);

    g_string_append_printf(d->data, "%u %u\n", index_of_value(across, point->values[d->axes[1]]),
                           index_of_value(down, point->values[d->axes[0]]));
}

/* Appends the time of the fastest schedule, in its box. */
static void
append_time(const Drawing *d, const LhSweepPoint *point)
{
    const LhScenarioAxis *down = g_ptr_array_index(d->sweep->axes, d->axes[0]);
    const LhScenarioAxis *across = g_ptr_array_index(d->sweep->axes, d->axes[1]);
    char **row = lh_sweep_place(d->sweep, point, 0);
    g_autofree char *time = NULL;

    if (row == NULL)
        return;
    time = lh_format_time((LhTime)(lh_sweep_seconds(d->sweep, row) * (double)LH_PS_PER_S));
    g_string_append(d->script, "set label ");
    lh_figure_append_text(d->script, time, LETTERS_MAX);
    g_string_append_printf(d->script, " at %u,%u center front boxed\n",
                           index_of_value(across, point->values[d->axes[1]]),
                           index_of_value(down, point->values[d->axes[0]]));
}

/* Appends a data set: the boxes of a schedule, either hatched or not; false if there are none. */
static bool
append_winner_boxes(const Drawing *d, guint winner, bool tied)
{
    bool any = false;

    for (guint i = 0; i < d->sweep->points->len; i++) {
        const LhSweepPoint *point = g_ptr_array_index(d->sweep->points, i);

        if (winner_of(d, point) != winner || is_tied(d, point) != tied)
            continue;
        append_point_box(d, point);
        any = true;
    }
    if (any)
        g_string_append(d->data, "\n\n");
    return any;
}

static void
append_boxes_plot(const Drawing *d, guint *sets, guint winner, bool tied)
{
    const bool nothing = winner == d->names->len;

    g_string_append_printf(
        d->script,
        "%s index %u using 1:2:(0.47):(0.46) with boxxyerror fillstyle %s "
        "border lc rgb '%s' fillcolor rgb '%s' lw 1.2 notitle",
        *sets == 0 ? "plot $data" : ", \\\n    $data", *sets, tied ? "pattern 4" : "solid 1",
        nothing ? NOTHING_COLOUR : lh_figure_colours[winner % LH_FIGURE_COLOURS],
        nothing ? NOTHING_COLOUR : lh_figure_colours[winner % LH_FIGURE_COLOURS]);
    ++*sets;
}

/* Appends a key entry for each schedule. */
static void
append_keys(const Drawing *d, bool nothing)
{
    bool tied = false;

    for (guint i = 0; i < d->names->len; i++) {
        g_string_append_printf(d->script,
                               ", \\\n    NaN with boxes fillstyle solid 1 noborder fillcolor rgb "
                               "'%s' title ",
                               lh_figure_colours[i % LH_FIGURE_COLOURS]);
        lh_figure_append_text(d->script, g_ptr_array_index(d->names, i), LETTERS_MAX);
    }
    for (guint i = 0; i < d->sweep->points->len && !tied; i++)
        tied = is_tied(d, g_ptr_array_index(d->sweep->points, i));
    if (tied)
        g_string_append(d->script, ", \\\n"
                                   "    NaN with boxes fillstyle pattern 4 border lc rgb '#444444' "
                                   "fillcolor rgb '#444444' title 'tied with the next'");
    if (nothing)
        g_string_append(d->script,
                        ", \\\n    NaN with boxes fillstyle solid 1 noborder fillcolor rgb "
                        "'" NOTHING_COLOUR "' title 'nothing runs'");
    g_string_append_c(d->script, '\n');
}

static void
draw_map(Drawing *d, LhFigure *figure)
{
    const LhSweep *sweep = d->sweep;
    const LhScenarioAxis *down = g_ptr_array_index(sweep->axes, d->axes[0]);
    const LhScenarioAxis *across = g_ptr_array_index(sweep->axes, d->axes[1]);
    g_autofree char *label_x = axis_label(across);
    g_autofree char *label_y = axis_label(down);
    g_autofree char *title = title_of(sweep, "The fastest schedule");
    g_autofree char *below = fixed_of(sweep);
    guint sets = 0;
    bool nothing = false;
    glong letters;

    figure->width = MAX(MAP_WIDTH_BASE + CELL_WIDTH * across->values->len, MAP_WIDTH_MIN);
    figure->height = MAP_HEIGHT_BASE + CELL_HEIGHT * down->values->len;
    lh_figure_append_title(d->script, figure->width, title, below);
    g_string_append_printf(d->script,
                           "set xrange [-0.5:%u - 0.5]\nset yrange [-0.5:%u - 0.5]\n"
                           "set xlabel '%s'\nset ylabel '%s'\nset border 0\nunset grid\n"
                           "set style textbox opaque noborder fillcolor rgb '#FFFFFF' "
                           "margins 0.6,0.4\n"
                           "set key outside right center vertical Left reverse samplen 1.4 "
                           "width 1 spacing 1.3\n",
                           across->values->len, down->values->len, label_x, label_y);
    append_ticks(d, "xtics", d->axes[1]);
    letters = append_ticks(d, "ytics", d->axes[0]);
    g_string_append_printf(d->script, "set lmargin %ld\n", letters + LABEL_LETTERS);
    for (guint i = 0; i < sweep->points->len; i++)
        append_time(d, g_ptr_array_index(sweep->points, i));
    for (guint winner = 0; winner <= d->names->len; winner++) {
        for (int tied = 0; tied < 2; tied++) {
            if (!append_winner_boxes(d, winner, tied != 0))
                continue;
            append_boxes_plot(d, &sets, winner, tied != 0);
            nothing = nothing || winner == d->names->len;
        }
    }
    append_keys(d, nothing);
}

bool
lh_sweep_figure(const LhSweep *sweep, LhFigureTo to, GError **error)
{
    g_autoptr(GString) data = g_string_new(NULL);
    g_autoptr(GString) script = g_string_new(NULL);
    g_autoptr(GPtrArray) names = NULL;
    Drawing d = { .sweep = sweep, .data = data, .script = script };
    LhFigure figure = { .to = to, .width = CURVES_WIDTH, .height = CURVES_HEIGHT };
    const bool map = wide_axes(sweep->axes, d.axes) == 2;

    d.names = names = schedules_of(sweep, map);
    if (map)
        draw_map(&d, &figure);
    else
        draw_curves(&d);
    figure.data = data->str;
    figure.script = script->str;
    return lh_figure_draw(&figure, error);
}
