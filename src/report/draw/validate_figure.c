/* SPDX-License-Identifier: Apache-2.0 */
#include "report/draw/validate_figure.h"

#include "report/base/text.h"

#include <math.h>
#include <string.h>

#define NAME_LETTERS 24
#define EDGE_MARGIN 1.6 /* factor between the points and the edge */
#define MS_PER_S 1e3
#define PANELS_HEIGHT 580 /* including the names below */

static const unsigned shapes[] = { 7, 5, 9, 13, 11 };

/* A panel of points; each data block has a name and a style. */
typedef struct {
    const char *title;
    GPtrArray *names; /* of const char *: names of blocks */
    guint first;      /* index of its first block */
    double low, high; /* range of all numbers, in ms */
} Panel;

static void
append_point(GString *data, Panel *panel, double measured_s, double predicted_s)
{
    const double measured = measured_s * MS_PER_S, predicted = predicted_s * MS_PER_S;

    panel->low = fmin(panel->low, fmin(measured, predicted));
    panel->high = fmax(panel->high, fmax(measured, predicted));
    lh_text_append(data, measured);
    lh_text_append(data, predicted);
    g_string_append_c(data, '\n');
}

static bool
was_measured(const LhValidation *v)
{
    return v->refused == NULL && v->runs > 0 && v->measured_s > 0 && v->predicted_s > 0;
}

static void
append_makespans(GString *data, Panel *panel, const GPtrArray *validations)
{
    for (guint i = 0; i < validations->len; i++) {
        const LhValidation *v = g_ptr_array_index(validations, i);

        if (!was_measured(v))
            continue;
        append_point(data, panel, v->measured_s, v->predicted_s);
        g_string_append(data, "\n\n");
        g_ptr_array_add(panel->names, (gpointer)v->schedule);
    }
}

static bool
is_named(const GPtrArray *names, const char *name)
{
    for (guint i = 0; i < names->len; i++) {
        if (strcmp(g_ptr_array_index(names, i), name) == 0)
            return true;
    }
    return false;
}

/* Appends the times of one kernel in all schedules as a block. */
static void
append_kernel(GString *data, Panel *panel, const GPtrArray *validations, const char *kernel)
{
    for (guint i = 0; i < validations->len; i++) {
        const LhValidation *v = g_ptr_array_index(validations, i);

        for (guint j = 0; was_measured(v) && j < v->kernels->len; j++) {
            const LhKernelErrors *row = &g_array_index(v->kernels, LhKernelErrors, j);

            if (strcmp(row->kernel, kernel) == 0 && row->measured_s > 0 && row->predicted_s > 0)
                append_point(data, panel, row->measured_s, row->predicted_s);
        }
    }
    g_string_append(data, "\n\n");
    g_ptr_array_add(panel->names, (gpointer)kernel);
}

/* Appends each kernel once, in order of appearance. */
static void
append_kernels(GString *data, Panel *panel, const GPtrArray *validations)
{
    for (guint i = 0; i < validations->len; i++) {
        const LhValidation *v = g_ptr_array_index(validations, i);

        for (guint j = 0; was_measured(v) && j < v->kernels->len; j++) {
            const LhKernelErrors *row = &g_array_index(v->kernels, LhKernelErrors, j);

            if (row->measured_s > 0 && row->predicted_s > 0 && !is_named(panel->names, row->kernel))
                append_kernel(data, panel, validations, row->kernel);
        }
    }
}

static void
append_range(GString *script, const char *axis, double low, double high)
{
    g_string_append_printf(script, "set %srange [", axis);
    lh_text_append(script, low / EDGE_MARGIN);
    g_string_append_c(script, ':');
    lh_text_append(script, high * EDGE_MARGIN);
    g_string_append(script, "]\n");
}

static void
append_line(GString *script, const char *start, double factor, const char *look)
{
    g_string_append(script, start);
    lh_text_append(script, factor);
    g_string_append_printf(script, "* x with lines %s notitle", look);
}

static void
append_panel(GString *script, const Panel *panel, double tolerance)
{
    static const char *const axes[] = { "x", "y" };

    if (panel->names->len == 0) {
        g_string_append(script, "set multiplot next\n");
        return;
    }
    g_string_append_printf(script, "set title '%s'\n", panel->title);
    for (guint i = 0; i < G_N_ELEMENTS(axes); i++) {
        append_range(script, axes[i], panel->low, panel->high);
        lh_figure_append_log_tics(script, axes[i], panel->low / EDGE_MARGIN,
                                  panel->high * EDGE_MARGIN);
    }
    append_line(script, "plot ", 1, "lc rgb '#555555' lw 1");
    append_line(script, ", \\\n    ", 1 + tolerance, "dt 2 lc rgb '#999999'");
    append_line(script, ", \\\n    ", fmax(1 - tolerance, 0), "dt 2 lc rgb '#999999'");
    for (guint i = 0; i < panel->names->len; i++) {
        g_string_append_printf(script,
                               ", \\\n    $data index %u using 1:2 with points pt %u ps 1.2 lc rgb "
                               "'%s' title ",
                               panel->first + i,
                               shapes[i / LH_FIGURE_COLOURS % G_N_ELEMENTS(shapes)],
                               lh_figure_colours[i % LH_FIGURE_COLOURS]);
        lh_figure_append_text(script, g_ptr_array_index(panel->names, i), NAME_LETTERS);
    }
    g_string_append_c(script, '\n');
}

bool
lh_validate_figure_has(const GPtrArray *validations)
{
    for (guint i = 0; i < validations->len; i++) {
        if (was_measured(g_ptr_array_index(validations, i)))
            return true;
    }
    return false;
}

bool
lh_validate_figure(const GPtrArray *validations, double tolerance, LhFigureTo to, GError **error)
{
    g_autoptr(GString) data = g_string_new("# measured, predicted, in ms; a block for each name\n");
    g_autoptr(GString) script = g_string_new(NULL);
    g_autoptr(GPtrArray) schedules = g_ptr_array_new();
    g_autoptr(GPtrArray) kernels = g_ptr_array_new();
    Panel makespans = { "Makespans", schedules, 0, INFINITY, 0 };
    Panel calls = { "Kernels and messages, all calls of a run", kernels, 0, INFINITY, 0 };
    LhFigure figure = { .to = to, .width = LH_FIGURE_WIDTH, .height = PANELS_HEIGHT };

    append_makespans(data, &makespans, validations);
    calls.first = makespans.names->len;
    append_kernels(data, &calls, validations);
    g_string_append(script,
                    "set encoding utf8\nset multiplot layout 1,2\nset logscale xy\n"
                    "set border 3\nset tics nomirror out\nset format '%g'\n"
                    "set grid lc rgb '#DDDDDD' lw 0.5\n"
                    "set key outside below left horizontal maxcols 4 Left reverse font key_font\n"
                    "set xlabel 'measured (ms)'\nset ylabel 'predicted (ms)'\n");
    append_panel(script, &makespans, tolerance);
    append_panel(script, &calls, tolerance);
    g_string_append(script, "unset multiplot\n");
    figure.data = data->str;
    figure.script = script->str;
    return lh_figure_draw(&figure, error);
}
