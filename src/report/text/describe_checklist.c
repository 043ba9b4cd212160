/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/describe_checklist.h"

#include "report/text/number_cells.h"

#include <math.h>

/* What shows the line. Caller frees. */
static char *
command_of(const LhChecklistLine *line)
{
    if (line->command != NULL)
        return g_strdup(line->command);
    if (line->rows == NULL)
        return NULL;
    return g_strconcat("longhaul reproduce ", g_array_index(line->rows, LhChecklistRows, 0).table,
                       NULL);
}

/* "test_a, test_b"; caller frees. */
static char *
tests_of(const LhChecklistLine *line)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; line->held != NULL && i < line->held->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "",
                               (const char *)g_ptr_array_index(line->held, i));
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void
add_value_cell(LhTable *t, bool known, bool fits, double value)
{
    char buffer[LH_SHARE_TEXT], exact[G_ASCII_DTOSTR_BUF_SIZE];

    if (!known)
        lh_table_cell(t, "", NULL);
    else if (!fits)
        lh_table_cell(t, "OOM", NULL);
    else
        lh_table_cell(t, lh_four_digits(value, buffer), lh_double_to_text(value, exact));
}

static void
add_error(LhTable *t, const LhPaperSummary *s, double error)
{
    char buffer[LH_SHARE_TEXT], exact[G_ASCII_DTOSTR_BUF_SIZE];

    if (s->judged == 0)
        lh_table_cell(t, "", NULL);
    else
        lh_table_cell(t, lh_share_text(error, buffer), lh_double_to_text(error, exact));
}

static void
add_count_cell(LhTable *t, guint count)
{
    if (count > 0)
        lh_table_cell_printf(t, "%u", count);
    else
        lh_table_cell(t, "", NULL);
}

static bool
has_prediction(const LhPaperCase *c)
{
    return c != NULL && (c->state == LH_CASE_JUDGED || c->state == LH_CASE_FITTED);
}

static void
add_line(LhTable *t, const LhCheckedLine *checked)
{
    const LhPaperSummary *s = &checked->summary;
    const LhPaperCase *shown = checked->shown;
    g_autofree char *command = command_of(checked->line), *tests = tests_of(checked->line);

    lh_table_row(t);
    lh_table_cell(t, checked->line->paper, NULL);
    lh_table_cell(t, checked->line->what, NULL);
    add_count_cell(t, s->cases);
    add_count_cell(t, s->fitted);
    add_error(t, s, s->mean_abs_error);
    add_error(t, s, s->worst_abs_error);
    if (s->bounds > 0)
        lh_table_cell_printf(t, "%u of %u", s->bounds_held, s->bounds);
    else
        lh_table_cell(t, "", NULL);
    add_value_cell(t, shown != NULL && shown->state != LH_CASE_LEFT_OUT,
                   shown != NULL && shown->published_fits, shown != NULL ? shown->published : 0);
    add_value_cell(t, has_prediction(shown), shown != NULL && shown->predicted_fits,
                   shown != NULL ? shown->predicted : 0);
    lh_table_cell(t, command != NULL ? command : "", NULL);
    lh_table_cell(t, tests, NULL);
    lh_table_cell(t, checked->line->reason != NULL ? checked->line->reason : "", NULL);
}

LhTable *
lh_describe_checklist(const GArray *lines)
{
    LhTable *t = lh_table_new();

    lh_table_column(t, "paper", "paper", NULL, false);
    lh_table_column(t, "what", "what it states", NULL, false);
    lh_table_column(t, "numbers", "numbers", NULL, true);
    lh_table_column(t, "fitted", "fitted", NULL, true);
    lh_table_column(t, "mean_abs_error", "mean", "off", true);
    lh_table_column(t, "worst_abs_error", "worst", "off", true);
    lh_table_column(t, "bounds_held", "claims", "held", true);
    lh_table_column(t, "published", "published", NULL, true);
    lh_table_column(t, "predicted", "predicted", NULL, true);
    lh_table_column(t, "command", "command", NULL, false);
    lh_table_column(t, "held_by", "held by", NULL, false);
    lh_table_column(t, "reason", "what is not predicted", NULL, false);
    for (guint i = 0; i < lines->len; i++)
        add_line(t, &g_array_index(lines, LhCheckedLine, i));
    return t;
}

static bool
is_published(const LhPaperCase *c)
{
    return c != NULL && c->state != LH_CASE_LEFT_OUT && c->published_fits;
}

static void
write_line(LhJsonWriter *w, const LhCheckedLine *checked)
{
    const LhPaperSummary *s = &checked->summary;
    const LhPaperCase *shown = checked->shown;
    g_autofree char *command = command_of(checked->line);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "paper", checked->line->paper);
    lh_jsonw_string(w, "what", checked->line->what);
    lh_jsonw_uint(w, "numbers", s->cases);
    lh_jsonw_uint(w, "judged", s->judged);
    lh_jsonw_uint(w, "fitted", s->fitted);
    lh_jsonw_uint(w, "left_out", s->left_out);
    lh_jsonw_uint(w, "not_predicted", s->unpredicted);
    lh_jsonw_double_or_null(w, "mean_abs_error", s->judged > 0 ? s->mean_abs_error : NAN);
    lh_jsonw_double_or_null(w, "worst_abs_error", s->judged > 0 ? s->worst_abs_error : NAN);
    lh_jsonw_uint(w, "bounds", s->bounds);
    lh_jsonw_uint(w, "bounds_held", s->bounds_held);
    lh_jsonw_double_or_null(w, "published", is_published(shown) ? shown->published : NAN);
    lh_jsonw_double_or_null(
        w, "predicted", has_prediction(shown) && shown->predicted_fits ? shown->predicted : NAN);
    lh_jsonw_string(w, "command", command);
    lh_jsonw_array_begin(w, "held_by");
    for (guint i = 0; checked->line->held != NULL && i < checked->line->held->len; i++)
        lh_jsonw_string(w, NULL, g_ptr_array_index(checked->line->held, i));
    lh_jsonw_array_end(w);
    lh_jsonw_string(w, "reason", checked->line->reason);
    lh_jsonw_object_end(w);
}

void
lh_checklist_json(LhJsonWriter *w, const GArray *lines)
{
    if (lines == NULL) {
        lh_jsonw_string(w, "checklist", NULL);
        return;
    }
    lh_jsonw_array_begin(w, "checklist");
    for (guint i = 0; i < lines->len; i++)
        write_line(w, &g_array_index(lines, LhCheckedLine, i));
    lh_jsonw_array_end(w);
}
