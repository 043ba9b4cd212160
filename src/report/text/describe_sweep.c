/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/describe_sweep.h"

#include "base/escape.h"
#include "compare/error_bar.h"
#include "report/base/text.h"
#include "report/data/labels.h"
#include "report/data/notes.h"
#include "report/text/describe.h"
#include "report/text/number_cells.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define PERCENT 100

/* ---- query ---- */

static bool
is_axis(const LhSweep *sweep, const char *field)
{
    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        if (strcmp(axis->field->name, field) == 0)
            return true;
    }
    return false;
}

/* Describes the values that override the topology file at all points. */
static void
describe_common_change(const LhSweep *sweep, GString *out)
{
    const LhTopologyChange *change = &sweep->setup->scenario->change;
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *nics = g_strdup_printf("%" G_GUINT64_FORMAT, change->nics);
    g_autofree char *nic_rate = lh_format_bandwidth(change->nic_rate);
    g_autofree char *nvlink_rate = lh_format_bandwidth(change->nvlink_rate);
    const struct {
        bool given;
        const char *field, *value;
    } said[] = {
        { change->nics > 0, "nics", nics },
        { change->nic_rate > 0, "nic_rate", nic_rate },
        { change->nvlink_rate > 0, "nvlink_rate", nvlink_rate },
        { change->oversubscription > 0, "oversubscription",
          lh_double_to_text(change->oversubscription, digits) },
    };
    const char *separator = "; overriding the file: ";

    for (gsize i = 0; i < G_N_ELEMENTS(said); i++) {
        if (!said[i].given || is_axis(sweep, said[i].field))
            continue;
        g_string_append_printf(out, "%s%s %s", separator, said[i].field, said[i].value);
        separator = ", ";
    }
}

/* Appends "8 x 4 = 32 points: seq-length x ranks". */
void
lh_describe_sweep_question(const LhSweep *sweep, GString *out)
{
    const LhSetup *setup = sweep->setup;

    if (setup->step != NULL)
        g_string_append_printf(out, "%ss", lh_step_word(setup));
    else
        g_string_append(out, "one attention module");
    lh_describe_model(setup, out);
    g_string_append_printf(out, ", %u point%s", sweep->points->len,
                           sweep->points->len == 1 ? "" : "s");
    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        g_string_append_printf(out, "%s %u of %s", i == 0 ? ":" : " x", axis->values->len,
                               axis->field->name);
    }
    describe_common_change(sweep, out);
    g_string_append_c(out, '\n');
    if (setup->step != NULL)
        lh_describe_experts(setup->model, 0, -1, out);
    lh_describe_notes(setup->model, out);
    lh_describe_link_notes(setup, out);
}

/* ---- points ---- */

static void
add_columns(LhTable *table, const LhSweep *sweep)
{
    char heading[LH_CELL_HEADING];

    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        lh_table_column(table, axis->field->name, axis->field->name, NULL,
                        axis->field->type == LH_FIELD_UNIT);
    }
    lh_table_column(table, "fastest", "fastest", NULL, false);
    lh_table_column(table, "time", "time", NULL, true);
    if (sweep->setup->cost == LH_COST_DEVICE)
        lh_table_column(table, "error_bar", "error bar", NULL, true);
    if (sweep->setup->step != NULL) {
        lh_table_column(table, "tokens_per_s", "tokens/s", NULL, true);
        lh_table_column(table, "mfu", "MFU", "%", true);
    }
    lh_table_column(table, "exposed", "exposed", "%", true);
    lh_table_column(table, "memory", "memory",
                    lh_cell_peak_heading("GiB", lh_memory_error(sweep->setup), heading), true);
    lh_table_column(table, "next", "next", NULL, false);
    lh_table_column(table, "vs_best", "vs best", NULL, true);
    lh_table_column(table, "told_apart", "distinct", NULL, false);
}

/* Share of exposed communication in the time. */
static double
exposed_share(const LhSweep *sweep, char **row)
{
    static const char *const keys[] = { "exposed_nvlink_sum_s", "exposed_pcie_sum_s",
                                        "exposed_nic_sum_s", "exposed_fabric_sum_s" };
    double exposed = 0;

    for (guint i = 0; i < G_N_ELEMENTS(keys); i++)
        exposed += lh_sweep_number(sweep, row, keys[i]);
    return exposed / MAX(lh_sweep_number(sweep, row, "span_sum_s"), DBL_MIN);
}

static void
add_fastest(LhTable *table, const LhSweep *sweep, char **row)
{
    const double seconds = lh_sweep_seconds(sweep, row);
    g_autofree char *time = lh_format_time((LhTime)llround(seconds * (double)LH_PS_PER_S));

    lh_table_cell(table, lh_sweep_cell(sweep, row, "schedule"), NULL);
    lh_table_cell(table, time, NULL);
    if (sweep->setup->cost == LH_COST_DEVICE)
        lh_cell_error_bar(
            table, seconds,
            (LhTimeError){ .below = seconds / lh_sweep_number(sweep, row, "time_low_s") - 1,
                           .above = lh_sweep_number(sweep, row, "time_high_s") / seconds - 1 });
    if (sweep->setup->step != NULL) {
        lh_table_cell_printf(table, "%.0f", lh_sweep_number(sweep, row, "tokens_per_s"));
        lh_table_cell_printf(table, "%.1f", PERCENT * lh_sweep_number(sweep, row, "mfu"));
    }
    lh_table_cell_printf(table, "%.1f", PERCENT * exposed_share(sweep, row));
    lh_table_cell_printf(table, "%.1f", lh_sweep_number(sweep, row, "peak_bytes_max") / LH_GIB);
}

/* Reason why nothing runs at a point; caller frees. */
static char *
reason_of_point(const LhSweep *sweep, const LhSweepPoint *point)
{
    char **row;

    if (point->rows == NULL)
        return g_strdup("not decided");
    row = g_ptr_array_index(point->rows, 0);
    return g_strdup_printf("%s%s%s: %s", lh_sweep_cell(sweep, row, "schedule"),
                           lh_sweep_cell(sweep, row, "schedule")[0] != '\0' ? " " : "",
                           lh_sweep_cell(sweep, row, "state"), lh_sweep_cell(sweep, row, "reason"));
}

static void
add_point(LhTable *table, const LhSweep *sweep, const LhSweepPoint *point)
{
    char **first = lh_sweep_place(sweep, point, 0);
    char **next = lh_sweep_place(sweep, point, 1);

    lh_table_row(table);
    for (guint i = 0; i < sweep->axes->len; i++) {
        g_autofree char *text = lh_sweep_value_text(sweep, i, point->values[i]);

        lh_table_cell(table, text, NULL);
    }
    if (first == NULL) {
        g_autofree char *reason = reason_of_point(sweep, point);

        lh_table_cell(table, "none", NULL);
        lh_table_note(table, reason);
        return;
    }
    add_fastest(table, sweep, first);
    if (next == NULL)
        return;
    lh_table_cell(table, lh_sweep_cell(sweep, next, "schedule"), NULL);
    lh_table_cell_printf(table, "%.2fx", lh_sweep_number(sweep, next, "vs_best"));
    lh_table_cell(table, lh_sweep_cell(sweep, next, "told_apart_from_best"), NULL);
}

/* ---- summary ---- */

/* Numbers of points ... */
typedef struct {
    guint missing, without_answer, tied;
} Counts;

static Counts
count(const LhSweep *sweep)
{
    Counts c = { 0 };

    for (guint i = 0; i < sweep->points->len; i++) {
        const LhSweepPoint *point = g_ptr_array_index(sweep->points, i);
        char **next = lh_sweep_place(sweep, point, 1);

        c.missing += point->rows == NULL;
        c.without_answer += point->rows != NULL && lh_sweep_place(sweep, point, 0) == NULL;
        c.tied +=
            next != NULL && strcmp(lh_sweep_cell(sweep, next, "told_apart_from_best"), "no") == 0;
    }
    return c;
}

void
lh_describe_sweep_rest(const LhSweep *sweep, GString *out)
{
    const Counts c = count(sweep);

    if (c.tied > 0 && sweep->setup->cost == LH_COST_DEVICE)
        g_string_append_printf(out,
                               "At %u of the points the fastest and the next schedule are tied: "
                               "their difference is within its error bar.\n",
                               c.tied);
    if (c.without_answer > 0)
        g_string_append_printf(out,
                               "At %u of the points no schedule runs; the reason shown is that of "
                               "the first one. CSV and JSON have all of them.\n",
                               c.without_answer);
    if (c.missing > 0)
        g_string_append_printf(out, "Interrupted: %u points were not run.\n", c.missing);
}

/* A schedule that is the fastest at some points. */
typedef struct {
    const char *name; /* borrowed */
    guint points;
} Winner;

static int
by_points(gconstpointer a, gconstpointer b)
{
    const Winner *x = a, *y = b;

    return x->points != y->points ? (x->points < y->points ? 1 : -1) : strcmp(x->name, y->name);
}

/* Caller unrefs. */
static GArray *
winners_of(const LhSweep *sweep, guint *answered)
{
    GArray *winners = g_array_new(FALSE, TRUE, sizeof(Winner));

    for (guint i = 0; i < sweep->points->len; i++) {
        char **row = lh_sweep_place(sweep, g_ptr_array_index(sweep->points, i), 0);
        const char *name = row != NULL ? lh_sweep_cell(sweep, row, "schedule") : NULL;
        guint w = 0;

        if (name == NULL)
            continue;
        (*answered)++;
        while (w < winners->len && strcmp(g_array_index(winners, Winner, w).name, name) != 0)
            w++;
        if (w == winners->len)
            g_array_append_vals(winners, &(Winner){ .name = name }, 1);
        g_array_index(winners, Winner, w).points++;
    }
    g_array_sort(winners, by_points);
    return winners;
}

void
lh_describe_sweep_answer(const LhSweep *sweep, GString *out)
{
    guint answered = 0;
    g_autoptr(GArray) winners = winners_of(sweep, &answered);

    if (winners->len == 0) {
        g_string_append(out, "No schedule runs at any of the points.\n");
        return;
    }
    if (winners->len == 1) {
        g_string_append_printf(out, "%s is the fastest at %s points where anything runs (%u).\n",
                               g_array_index(winners, Winner, 0).name,
                               answered == 1 ? "the" : "all", answered);
        return;
    }
    g_string_append(out, "The fastest schedule depends on the point: ");
    for (guint i = 0; i < winners->len; i++) {
        const Winner *w = &g_array_index(winners, Winner, i);

        g_string_append_printf(out, "%s%s at %u", i > 0 ? ", " : "", w->name, w->points);
    }
    g_string_append_printf(out, " of %u.\n", answered);
}

LhTable *
lh_describe_points(const LhSweep *sweep)
{
    LhTable *table = lh_table_new();

    add_columns(table, sweep);
    for (guint i = 0; i < sweep->points->len; i++)
        add_point(table, sweep, g_ptr_array_index(sweep->points, i));
    return table;
}

void
lh_describe_sweep(const LhSweep *sweep, LhFormat format, GString *out)
{
    g_autoptr(LhTable) table = lh_describe_points(sweep);
    gsize from = out->len;

    lh_describe_sweep_question(sweep, out);
    lh_table_words(format, out, from);
    g_string_append_c(out, '\n');
    lh_table_print(table, format, out);
    g_string_append_c(out, '\n');
    from = out->len;
    lh_describe_sweep_rest(sweep, out);
    lh_table_words(format, out, from);
}
