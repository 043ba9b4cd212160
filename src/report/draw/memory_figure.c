/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory over time. Permanent categories are at the bottom, temporary ones above.
 */
#include "report/draw/memory_figure.h"

#include "report/base/text.h"
#include "report/data/describe_options.h"
#include "report/data/labels.h"
#include "report/draw/figure.h"

#include <string.h>

#define MEMORY_HEIGHT 560
#define PEAK_ROOM 1.18 /* top of the y axis relative to the peak, with room for its label */
#define LIMIT_SHOWN                                                                                \
    4            /* a limit beyond this multiple of the peak would leave no room for the areas */
#define NEAR 0.1 /* share of the peak: a line so close above crosses its label */
#define BYTES_PER_KIB 1024.0

/* From the bottom up. Colours of Okabe and Ito's palette and two greys. */
static const struct {
    LhCategory category;
    const char *colour;
} layers[] = {
    { LH_CATEGORY_OTHER, "#BBBBBB" },     { LH_CATEGORY_WEIGHTS, "#0072B2" },
    { LH_CATEGORY_CACHE, "#882255" },     { LH_CATEGORY_OPTIMIZER, "#E69F00" },
    { LH_CATEGORY_GRADIENTS, "#56B4E9" }, { LH_CATEGORY_SAVED, "#009E73" },
    { LH_CATEGORY_WORKING, "#F0E442" },   { LH_CATEGORY_ATTENTION, "#CC79A7" },
    { LH_CATEGORY_LOGITS, "#555555" },    { LH_CATEGORY_COMMUNICATION, "#D55E00" },
};

G_STATIC_ASSERT(G_N_ELEMENTS(layers) == LH_CATEGORIES);

/* --- envelope -----------------------------------------------------------------------------------
 */

LhMemoryEnvelope *
lh_memory_envelope_new(uint32_t rank, LhTime end_ps)
{
    LhMemoryEnvelope *e = g_new0(LhMemoryEnvelope, 1);

    e->rank = rank;
    e->end_ps = end_ps;
    return e;
}

static void
keep_moment(LhMemoryEnvelope *e, uint32_t bin)
{
    memcpy(e->most[bin], e->now, sizeof(e->now));
    e->most_bytes[bin] = e->now_bytes;
}

/* Starts bins up to @bin, each with the memory at its start. */
static void
go_to_bin(LhMemoryEnvelope *e, uint32_t bin)
{
    while (e->bin < bin)
        keep_moment(e, ++e->bin);
}

void
lh_memory_envelope_add(void *data, const LhMemoryRecord *record)
{
    LhMemoryEnvelope *e = data;
    LhWide bin;

    if (record->rank != e->rank || record->on_host)
        return;
    bin = (LhWide)record->time_ps * LH_MEMORY_BINS / MAX(e->end_ps, 1);
    go_to_bin(e, (uint32_t)MIN(bin, LH_MEMORY_BINS - 1));
    e->now[record->op.category] = record->category_bytes;
    e->now_bytes = record->bytes;
    if (e->now_bytes > e->most_bytes[e->bin])
        keep_moment(e, e->bin);
}

void
lh_memory_envelope_finish(LhMemoryEnvelope *e)
{
    go_to_bin(e, LH_MEMORY_BINS - 1);
}

/* --- script -------------------------------------------------------------------------------------
 */

/* A figure being drawn. */
typedef struct {
    const LhMemoryFigure *of;
    const LhRankResult *rank;
    LhTimeScale scale;
    const char *unit; /* unit of the y axis */
    double unit_bytes;
    uint64_t limit_bytes; /* 0: not drawn */
    bool shown[LH_CATEGORIES];
} MemoryChart;

static void
choose_bytes_unit(MemoryChart *chart)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    guint i = 0;

    chart->unit_bytes = 1;
    while (i + 1 < G_N_ELEMENTS(units) &&
           (double)chart->rank->peak_bytes >= chart->unit_bytes * BYTES_PER_KIB) {
        chart->unit_bytes *= BYTES_PER_KIB;
        i++;
    }
    chart->unit = units[i];
}

static bool
same_moment(const LhMemoryEnvelope *e, uint32_t a, uint32_t b)
{
    return memcmp(e->most[a], e->most[b], sizeof(e->most[a])) == 0;
}

/* Appends a line: time, the lower edge of the first layer (0), then the upper edges of all. */
static void
append_layer_edges(GString *data, const MemoryChart *chart, uint32_t bin, uint32_t at)
{
    const LhMemoryEnvelope *e = chart->of->envelope;
    uint64_t edge = 0;

    lh_text_append(data, (double)e->end_ps / (double)chart->scale.unit_ps * at / LH_MEMORY_BINS);
    lh_text_append(data, 0);
    for (guint i = 0; i < LH_CATEGORIES; i++) {
        edge += e->most[bin][layers[i].category];
        if (chart->shown[layers[i].category])
            lh_text_append(data, (double)edge / chart->unit_bytes);
    }
    data->str[data->len - 1] = '\n';
}

/* Appends the bins; equal ones in a row are one step. */
static void
append_data(GString *data, const MemoryChart *chart)
{
    uint32_t first = 0;

    g_string_append(data, "# time, then the edges of the areas from the bottom up\n");
    while (first < LH_MEMORY_BINS) {
        uint32_t end = first + 1;

        while (end < LH_MEMORY_BINS && same_moment(chart->of->envelope, first, end))
            end++;
        append_layer_edges(data, chart, first, first);
        append_layer_edges(data, chart, first, end);
        first = end;
    }
}

static void
append_peak_title(GString *script, const MemoryChart *chart)
{
    const LhRankResult *rank = chart->rank;
    g_autofree char *line =
        lh_describe_program(chart->of->setup, chart->of->name, chart->of->program);
    g_autofree char *peak = lh_format_bytes(rank->peak_bytes);
    g_autofree char *time = lh_format_time(rank->peak_at_ps);
    g_autofree char *op = lh_describe_memory_op(&rank->peak_op);
    g_autofree char *below = g_strdup_printf("rank %u has the highest peak: %s at %s, %s",
                                             chart->of->envelope->rank, peak, time, op);

    lh_figure_append_title(script, LH_FIGURE_WIDTH_OF_TIME, line, below);
}

static const char *
axis_number(double value, char *buffer)
{
    return g_ascii_formatd(buffer, G_ASCII_DTOSTR_BUF_SIZE, "%.9g", value);
}

static void
append_memory_axes(GString *script, const MemoryChart *chart)
{
    const uint64_t top = MAX(MAX(chart->rank->peak_bytes, chart->limit_bytes), 1);
    const double end = (double)chart->of->envelope->end_ps / (double)chart->scale.unit_ps;
    char right[G_ASCII_DTOSTR_BUF_SIZE], above[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf(
        script,
        "set xrange [0:%s]\nset yrange [0:%s]\n"
        "set xlabel 'time at the host (%s)'\nset ylabel 'memory (%s)'\n"
        "set lmargin 12\nset rmargin 4\n"
        "set border 3\nset ytics nomirror out\n"
        "set grid ytics lc rgb '#DDDDDD' lw 0.5\nset style fill solid 1 noborder\n",
        axis_number(end > 0 ? end : 1, right),
        axis_number(PEAK_ROOM * (double)top / chart->unit_bytes, above), chart->scale.unit,
        chart->unit);
}

/* Whether the peak is in the left half, so that its label is to the right. */
static bool
is_left(const MemoryChart *chart)
{
    return chart->rank->peak_at_ps <= chart->of->envelope->end_ps / 2;
}

/* Appends the limit line with its label, on the side away from the peak's label; if the line does
 * not fit, a label in the corner. */
static void
append_limit(GString *script, const MemoryChart *chart)
{
    const uint64_t usable = lh_device_usable_bytes(chart->of->setup->device, LH_MEMORY_MARGIN);
    g_autofree char *words = lh_format_bytes(usable);
    char y[G_ASCII_DTOSTR_BUF_SIZE];

    if (chart->limit_bytes == 0) {
        g_string_append_printf(script, "set label 'usable: %s' at graph 0.996,0.97 right front\n",
                               words);
        return;
    }
    axis_number((double)chart->limit_bytes / chart->unit_bytes, y);
    g_string_append_printf(script,
                           "set arrow from graph 0, first %s to graph 1, first %s nohead dashtype "
                           "2 lw 1.5 lc rgb '#000000' front\n"
                           "set label 'usable: %s' at graph %s, first %s offset 0,0.6 %s front\n",
                           y, y, words, is_left(chart) ? "0.996" : "0.004", y,
                           is_left(chart) ? "right" : "left");
}

/* Appends a ring at the peak, with its label on the side with room and not on the limit line. */
static void
append_peak(GString *script, const MemoryChart *chart)
{
    const uint64_t peak_bytes = chart->rank->peak_bytes;
    const bool under_line = chart->limit_bytes >= peak_bytes &&
                            (double)(chart->limit_bytes - peak_bytes) < NEAR * (double)peak_bytes;
    const LhTime at_ps = MIN(chart->rank->peak_at_ps, chart->of->envelope->end_ps);
    const bool left = is_left(chart);
    g_autofree char *peak = lh_format_bytes(peak_bytes);
    char x[G_ASCII_DTOSTR_BUF_SIZE], y[G_ASCII_DTOSTR_BUF_SIZE];

    axis_number((double)at_ps / (double)chart->scale.unit_ps, x);
    axis_number((double)peak_bytes / chart->unit_bytes, y);
    g_string_append_printf(script,
                           "set label 'peak: %s' at %s,%s offset %s,%s %s front point "
                           "pointtype 6 pointsize 2 linecolor rgb '#000000'\n",
                           peak, x, y, left ? "1" : "-1", under_line ? "-0.4" : "0.5",
                           left ? "left" : "right");
}

static void
append_layer_plots(GString *script, const MemoryChart *chart)
{
    guint column = 2;

    for (guint i = 0; i < LH_CATEGORIES; i++) {
        if (!chart->shown[layers[i].category])
            continue;
        g_string_append_printf(script,
                               "%s using 1:%u:%u with filledcurves fillcolor rgb '%s' title '%s'",
                               column == 2 ? "plot $data" : ", \\\n    $data", column, column + 1,
                               layers[i].colour, lh_category_names[layers[i].category]);
        column++;
    }
    g_string_append(script, column == 2 ? "plot NaN notitle\n" : "\n");
}

bool
lh_memory_figure_draw(const LhMemoryFigure *of, LhFigureTo to, GError **error)
{
    const LhMemoryEnvelope *e = of->envelope;
    const uint64_t usable = lh_device_usable_bytes(of->setup->device, LH_MEMORY_MARGIN);
    g_autoptr(GString) data = g_string_new(NULL);
    g_autoptr(GString) script = g_string_new(NULL);
    MemoryChart chart = { .of = of, .rank = &of->result->ranks[e->rank] };
    LhFigure figure = { .to = to, .width = LH_FIGURE_WIDTH_OF_TIME, .height = MEMORY_HEIGHT };

    chart.scale = lh_text_scale(e->end_ps);
    choose_bytes_unit(&chart);
    if (usable / LIMIT_SHOWN <= chart.rank->peak_bytes)
        chart.limit_bytes = usable;
    for (uint32_t bin = 0; bin < LH_MEMORY_BINS; bin++) {
        for (int c = 0; c < LH_CATEGORIES; c++)
            chart.shown[c] |= e->most[bin][c] > 0;
    }
    append_peak_title(script, &chart);
    append_memory_axes(script, &chart);
    append_limit(script, &chart);
    append_peak(script, &chart);
    append_layer_plots(script, &chart);
    append_data(data, &chart);
    figure.script = script->str;
    figure.data = data->str;
    return lh_figure_draw(&figure, error);
}
