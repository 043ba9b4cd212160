/*
 * Stacked bars, the fastest schedule on top.
 */
#include "report/bars.h"

#include "base/error.h"
#include "report/describe_options.h"
#include "report/figure.h"
#include "report/parts.h"
#include "report/text.h"

#define WIDTH 1100
#define HEIGHT_BASE 160
#define HEIGHT_BAR 44
#define BAR_HALF 0.34
#define HEADROOM 1.12 /* of the longest bar, for its label */
#define HAIR 0.0005   /* of the longest bar: less cannot be seen */

static const char *
part_title(int part)
{
    static const char *const titles[] = { "compute",      "imbalance",   "exposed NVLink",
                                          "exposed PCIe", "exposed NIC", "exposed fabric",
                                          "host" };

    return titles[part];
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

/* The order in a bar: compute, exposed communication, host, imbalance. */
static const int drawing_order[LH_PARTS] = { 0, 2, 3, 4, 5, 6, 1 };

static LhWide
part_of(const LhTotals *totals, int part)
{
    return part == 0 ? totals->busy_ps : totals->idle_ps[part - 1];
}

typedef struct {
    GPtrArray *rows; /* of const LhCompareRow *: those with a result */
    LhTime longest_ps;
    LhTimeScale scale;
    double unit_ps;
} Bars;

/* One data set: the boxes of one part. False if there is nothing of it to be seen. */
static bool
append_part(GString *data, const Bars *bars, int position)
{
    bool any = false;

    for (guint i = 0; i < bars->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(bars->rows, i);
        LhTotals totals;
        double start = 0;
        double length;

        lh_totals(row->result, &totals);
        for (int before = 0; before < position; before++)
            start += (double)part_of(&totals, drawing_order[before]);
        length = (double)part_of(&totals, drawing_order[position]);
        if (length < HAIR * (double)bars->longest_ps * row->result->ranks_count)
            continue;
        if (!any)
            g_string_append_printf(data, "# %s: x y x_low x_high y_low y_high\n",
                                   part_title(drawing_order[position]));
        any = true;
        start /= bars->unit_ps * row->result->ranks_count;
        length /= bars->unit_ps * row->result->ranks_count;
        lh_text_append(data, start + length / 2);
        lh_text_append(data, i);
        lh_text_append(data, start);
        lh_text_append(data, start + length);
        lh_text_append(data, i - BAR_HALF);
        lh_text_append(data, i + BAR_HALF);
        data->str[data->len - 1] = '\n';
    }
    if (any)
        g_string_append(data, "\n\n");
    return any;
}

static void
append_labels(GString *script, const Bars *bars)
{
    g_string_append(script, "set ytics scale 0 (");
    for (guint i = 0; i < bars->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(bars->rows, i);

        g_string_append_printf(script, "%s\"%s\" %u", i > 0 ? ", " : "", row->name, i);
    }
    g_string_append(script, ")\n");
    for (guint i = 0; i < bars->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(bars->rows, i);
        char at[G_ASCII_DTOSTR_BUF_SIZE];
        char text[LH_TEXT_SIZE];
        const LhTime quanta =
            (row->result->makespan_ps + bars->scale.quantum_ps / 2) / bars->scale.quantum_ps;

        g_ascii_formatd(at, sizeof(at), "%.7g", (double)row->result->makespan_ps / bars->unit_ps);
        g_string_append_printf(script, "set label '%s%s' at %s,%u offset 0.6,0 left\n",
                               lh_text_scaled(bars->scale, quanta, text),
                               row->state == LH_ROW_NO_MEMORY ? " (out of memory)" : "", at, i);
    }
}

static void
append_axes(GString *script, const LhSetup *setup, const Bars *bars)
{
    g_autofree char *tokens = lh_format_count(setup->params.attention.seq_length);
    g_autofree char *groups = lh_describe_groups(&setup->params);
    char right[G_ASCII_DTOSTR_BUF_SIZE];

    g_ascii_formatd(right, sizeof(right), "%.7g",
                    HEADROOM * (double)bars->longest_ps / bars->unit_ps);
    g_string_append_printf(
        script,
        "set title \"Where the time goes: %s tokens on %s (%s), mean over ranks\" font "
        "title_font\n"
        "set xrange [0:%s]\nset yrange [%u - 0.4:-0.6]\nset xlabel 'time (%s)'\n"
        "set lmargin 18\nset rmargin 4\n",
        tokens, groups,
        setup->cost == LH_COST_DEVICE ? setup->topology->name : "free communication", right,
        bars->rows->len, bars->scale.unit);
}

static bool
collect(const LhComparison *c, Bars *bars, GError **error)
{
    for (guint i = 0; i < c->rows->len; i++) {
        LhCompareRow *row = g_ptr_array_index(c->rows, i);

        if (row->result == NULL)
            continue;
        g_ptr_array_add(bars->rows, row);
        bars->longest_ps = MAX(bars->longest_ps, row->result->makespan_ps);
    }
    if (bars->longest_ps == 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO, "there is nothing to draw: no schedule ran");
        return false;
    }
    bars->scale = lh_text_scale(bars->longest_ps);
    bars->unit_ps = (double)bars->scale.unit_ps;
    return true;
}

bool
lh_bars_draw(const LhSetup *setup, const LhComparison *c, const char *path, GError **error)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new();
    g_autoptr(GString) data = g_string_new(NULL);
    g_autoptr(GString) script = g_string_new(NULL);
    Bars bars = { .rows = rows };
    LhFigure figure = { .path = path, .width = WIDTH };
    guint index = 0;

    if (!collect(c, &bars, error))
        return false;
    append_axes(script, setup, &bars);
    append_labels(script, &bars);
    for (int position = 0; position < LH_PARTS; position++) {
        const int part = drawing_order[position];

        if (!append_part(data, &bars, position))
            continue;
        g_string_append_printf(script,
                               "%s data index %u using 1:2:3:4:5:6 with boxxyerror fillstyle "
                               "solid 1 border lc rgb '#FFFFFF' fillcolor rgb '%s' title '%s'",
                               index == 0 ? "plot" : ", \\\n    ", index, part_colour(part),
                               part_title(part));
        index++;
    }
    g_string_append_c(script, '\n');
    figure.height = HEIGHT_BASE + HEIGHT_BAR * rows->len;
    figure.script = script->str;
    figure.data = data->str;
    return lh_figure_draw(&figure, error);
}
