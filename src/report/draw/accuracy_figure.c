/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both axes of a panel are logarithmic and equally long: exact predictions are on the diagonal, and
 * equal relative errors are equally far from it.
 */
#include "report/draw/accuracy_figure.h"

#include "report/draw/figure.h"

#include <math.h>
#include <string.h>

#define PANEL_WIDTH 460
#define PANEL_HEIGHT 430
#define TITLE_HEIGHT 50
#define PANEL_COLUMNS_MAX 3
#define OFF "1.1"       /* factor of the dashed lines beside the diagonal */
#define AXIS_MARGIN 1.3 /* of an axis beyond its points */
#define FEW_DECADES 200.0
#define MANY 500 /* points of one table, which are then drawn smaller */
#define TITLE_LETTERS 120

typedef struct {
    const char *name;
    unsigned metrics; /* bit set */
    bool ratio;       /* of two values */
} MetricPanel;

#define BIT(metric) (1U << (metric))

static const MetricPanel panels[] = {
    { "time (s)",
      BIT(LH_METRIC_ITERATION) | BIT(LH_METRIC_ATTENTION) | BIT(LH_METRIC_COMPUTE) |
          BIT(LH_METRIC_COMMUNICATION),
      false },
    { "throughput (tokens/s)", BIT(LH_METRIC_TOKENS_PER_S) | BIT(LH_METRIC_TOKENS_PER_S_PER_GPU),
      false },
    { "rate of a GPU (TFLOP/s)",
      BIT(LH_METRIC_MODEL_TFLOPS_PER_GPU) | BIT(LH_METRIC_TFLOPS_PER_GPU), false },
    { "rate (iterations/s)", BIT(LH_METRIC_ITERATIONS_PER_S), false },
    { "memory of a GPU (GiB)", BIT(LH_METRIC_PEAK_GIB), false },
    { "longest sequence (tokens)", BIT(LH_METRIC_LONGEST_TOKENS), false },
    { "time of a collective (us)",
      BIT(LH_METRIC_COLLECTIVE) | BIT(LH_METRIC_COLLECTIVE_LEFT_OUT) |
          BIT(LH_METRIC_COLLECTIVE_LINKS_EDITED),
      false },
    { "sent by a GPU (bytes)", BIT(LH_METRIC_TENSOR_CONTEXT_BYTES), false },
    { "share",
      BIT(LH_METRIC_HEADS_RATIO) | BIT(LH_METRIC_TIME_OVER_COMPUTE) | BIT(LH_METRIC_IDLE_SHARE),
      false },
    { "ratio of two values", BIT(LH_METRICS) - 1, true },
};

G_STATIC_ASSERT(LH_METRICS == 18); /* each metric is in a panel */

/* Okabe and Ito's, without yellow, which is hard to see in a point. */
static const char *const series_colours[] = { "#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                              "#E69F00", "#56B4E9", "#000000" };

/* Points of one table in one panel. */
typedef struct {
    const LhReproducedTable *table;
    guint index; /* of the table: gives colour and shape */
    guint points;
} Series;

typedef struct {
    const MetricPanel *panel;
    GArray *series;   /* of Series */
    guint first;      /* first of its series among the data blocks */
    double low, high; /* range of all its numbers */
} Drawn;

/* Whether a case is in the panel; a satisfied bound has no place on the diagonal. */
static bool
is_in(const MetricPanel *panel, const LhReproducedTable *table, const LhPaperCase *c)
{
    const LhPaperMetric *metric = &g_array_index(table->paper->metrics, LhPaperMetric, c->metric);

    return c->state == LH_CASE_JUDGED && !(metric->at_least && c->error >= 0) &&
           c->published_fits && c->predicted_fits && c->published > 0 && c->predicted > 0 &&
           (metric->against != NULL) == panel->ratio && (panel->metrics & BIT(metric->metric)) != 0;
}

/* Adds a block of points to @data, if there are any. */
static void
append_series(GString *data, Drawn *drawn, const LhReproducedTable *table, guint index)
{
    Series series = { .table = table, .index = index };

    for (guint i = 0; i < table->cases->len; i++) {
        const LhPaperCase *c = g_ptr_array_index(table->cases, i);
        char published[G_ASCII_DTOSTR_BUF_SIZE], predicted[G_ASCII_DTOSTR_BUF_SIZE];

        if (!is_in(drawn->panel, table, c))
            continue;
        drawn->low = MIN(drawn->low, MIN(c->published, c->predicted));
        drawn->high = MAX(drawn->high, MAX(c->published, c->predicted));
        g_ascii_formatd(published, sizeof(published), "%.6g", c->published);
        g_ascii_formatd(predicted, sizeof(predicted), "%.6g", c->predicted);
        g_string_append_printf(data, "%s %s\n", published, predicted);
        series.points++;
    }
    if (series.points == 0)
        return;
    g_string_append(data, "\n\n");
    g_array_append_val(drawn->series, series);
}

/* Appends "5m", "20", "100k": @mantissa x 10^@exponent. */
static void
append_tic(GString *tics, int mantissa, int exponent)
{
    static const char *const prefixes[] = { "p", "n", "u", "m", "", "k", "M", "G", "T" };
    const int third = (int)floor(exponent / 3.0);
    const int prefix = CLAMP(third + 4, 0, (int)G_N_ELEMENTS(prefixes) - 1);

    g_string_append_printf(tics, "%s'%g%s' %de%d", tics->len > 0 ? ", " : "",
                           mantissa * pow(10, exponent - 3 * (prefix - 4)), prefixes[prefix],
                           mantissa, exponent);
}

/* Gives both axes the same range and ticks: powers of ten and, if these are few, 2 and 5 between
 * them. */
static void
append_equal_axes(GString *script, const Drawn *drawn)
{
    const double low = drawn->low / AXIS_MARGIN, high = drawn->high * AXIS_MARGIN;
    g_autoptr(GString) tics = g_string_new(NULL);
    char from[G_ASCII_DTOSTR_BUF_SIZE], to[G_ASCII_DTOSTR_BUF_SIZE];

    for (int exponent = (int)floor(log10(low)); exponent <= (int)floor(log10(high)); exponent++) {
        append_tic(tics, 1, exponent);
        if (high / low > FEW_DECADES)
            continue;
        append_tic(tics, 2, exponent);
        append_tic(tics, 5, exponent);
    }
    g_ascii_formatd(from, sizeof(from), "%.6g", low);
    g_ascii_formatd(to, sizeof(to), "%.6g", high);
    g_string_append_printf(script,
                           "set xrange [%s:%s]\nset yrange [%s:%s]\n"
                           "set xtics (%s)\nset ytics (%s)\n",
                           from, to, from, to, tics->str, tics->str);
}

static void
append_metric_panel(GString *script, const Drawn *drawn)
{
    const char *unit = strrchr(drawn->panel->name, '(');

    g_string_append_printf(script,
                           "set title '%s'\nset xlabel 'published%s%s'\n"
                           "set ylabel 'predicted%s%s'\n",
                           drawn->panel->name, unit != NULL ? " " : "", unit != NULL ? unit : "",
                           unit != NULL ? " " : "", unit != NULL ? unit : "");
    append_equal_axes(script, drawn);
    g_string_append(script, "plot x with lines lc rgb '#555555' lw 1 notitle, \\\n"
                            "    x * " OFF " with lines dt 2 lc rgb '#999999' notitle, \\\n"
                            "    x / " OFF " with lines dt 2 lc rgb '#999999' notitle");
    for (guint i = 0; i < drawn->series->len; i++) {
        const Series *s = &g_array_index(drawn->series, Series, i);
        const guint shape = s->index / G_N_ELEMENTS(series_colours);

        g_string_append_printf(
            script, ", \\\n    $data index %u with points pt %u ps %s lc rgb '%s' title ",
            drawn->first + i, 4 + 2 * shape, s->points > MANY ? "0.25" : "0.9",
            series_colours[s->index % G_N_ELEMENTS(series_colours)]);
        lh_figure_append_text(script, s->table->paper->name, TITLE_LETTERS);
    }
    g_string_append_c(script, '\n');
}

static void
append_head(GString *script, guint panels_count, guint columns, guint points)
{
    g_autofree char *title = g_strdup_printf(
        "Published values and predictions: %u values not used by a fit (dashed: 10 %% error)",
        points);

    g_string_append(script, "set encoding utf8\n");
    g_string_append_printf(script, "set multiplot layout %u,%u title ",
                           (panels_count + columns - 1) / columns, columns);
    lh_figure_append_text(script, title, TITLE_LETTERS);
    g_string_append(script,
                    "\nset logscale xy\nset border 3\nset tics nomirror out\n"
                    "set grid lc rgb '#DDDDDD' lw 0.5\n"
                    "set key outside below left horizontal maxcols 2 Left reverse font key_font\n");
}

static void
drawn_clear(gpointer data)
{
    g_array_unref(((Drawn *)data)->series);
}

/* Returns the panels that have points. Caller unrefs. */
static GArray *
choose_panels(const GPtrArray *tables, GString *data, guint *points)
{
    GArray *chosen = g_array_new(FALSE, FALSE, sizeof(Drawn));
    guint blocks = 0;

    g_array_set_clear_func(chosen, drawn_clear);
    g_string_append(data, "# published, predicted; a block for each panel and table\n");
    for (gsize i = 0; i < G_N_ELEMENTS(panels); i++) {
        Drawn drawn = { &panels[i], g_array_new(FALSE, FALSE, sizeof(Series)), blocks, INFINITY,
                        0 };

        for (guint j = 0; j < tables->len; j++)
            append_series(data, &drawn, g_ptr_array_index(tables, j), j);
        if (drawn.series->len == 0) {
            drawn_clear(&drawn);
            continue;
        }
        for (guint j = 0; j < drawn.series->len; j++)
            *points += g_array_index(drawn.series, Series, j).points;
        blocks += drawn.series->len;
        g_array_append_val(chosen, drawn);
    }
    return chosen;
}

bool
lh_accuracy_figure_draw(const GPtrArray *tables, const char *path, GError **error)
{
    g_autoptr(GString) data = g_string_new(NULL);
    g_autoptr(GString) script = g_string_new(NULL);
    guint points = 0;
    g_autoptr(GArray) chosen = choose_panels(tables, data, &points);
    const guint columns = CLAMP(chosen->len, 1, PANEL_COLUMNS_MAX);
    const guint rows = MAX((chosen->len + columns - 1) / columns, 1);
    LhFigure figure = { .to = { .path = path },
                        .width = columns * PANEL_WIDTH,
                        .height = rows * PANEL_HEIGHT + TITLE_HEIGHT };

    append_head(script, MAX(chosen->len, 1), columns, points);
    for (guint i = 0; i < chosen->len; i++)
        append_metric_panel(script, &g_array_index(chosen, Drawn, i));
    if (chosen->len == 0)
        g_string_append(script, "set xrange [1:10]\nset yrange [1:10]\nplot x notitle\n");
    g_string_append(script, "unset multiplot\n");
    figure.script = script->str;
    figure.data = data->str;
    return lh_figure_draw(&figure, error);
}
