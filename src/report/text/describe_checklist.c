/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/describe_checklist.h"

#include "report/text/number_cells.h"

#include <math.h>

/* Command that reproduces the line. Caller frees. */
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
    lh_table_column(t, "what", "claim", NULL, false);
    lh_table_column(t, "numbers", "numbers", NULL, true);
    lh_table_column(t, "fitted", "fitted", NULL, true);
    lh_table_column(t, "mean_abs_error", "mean", "error", true);
    lh_table_column(t, "worst_abs_error", "worst", "error", true);
    lh_table_column(t, "bounds_held", "claims", "held", true);
    lh_table_column(t, "published", "published", NULL, true);
    lh_table_column(t, "predicted", "predicted", NULL, true);
    lh_table_column(t, "command", "command", NULL, false);
    lh_table_column(t, "held_by", "test", NULL, false);
    lh_table_column(t, "reason", "why not predicted", NULL, false);
    for (guint i = 0; i < lines->len; i++)
        add_line(t, &g_array_index(lines, LhCheckedLine, i));
    return t;
}

static bool
is_published(const LhPaperCase *c)
{
    return c != NULL && c->state != LH_CASE_LEFT_OUT && c->published_fits;
}

/* ---- as JSON ---- */

typedef struct {
    char *paper, *what;
    uint64_t numbers, judged, fitted, left_out, not_predicted;
    double mean_abs_error, worst_abs_error; /* NAN: none is judged */
    uint64_t bounds, bounds_held;
    double published, predicted; /* NAN: not a single number */
    char *command;
    GPtrArray *held_by; /* of char * */
    char *reason;
} ChecklistLine;

const LhField lh_checklist_line_fields[] = {
    LH_FIELD_ROW(STRING, ChecklistLine, paper, "paper", ALWAYS,
                 .description = "The paper, with its source."),
    LH_FIELD_ROW(STRING, ChecklistLine, what, "what", ALWAYS,
                 .description = "The claim, with its place in the paper."),
    LH_FIELD_ROW(UINT, ChecklistLine, numbers, "numbers", ALWAYS,
                 .description = "Published numbers that it is about."),
    LH_FIELD_ROW(UINT, ChecklistLine, judged, "judged", ALWAYS,
                 .description = "Judged numbers: those that have an error."),
    LH_FIELD_ROW(UINT, ChecklistLine, fitted, "fitted", ALWAYS,
                 .description = "Numbers used to fit constants."),
    LH_FIELD_ROW(UINT, ChecklistLine, left_out, "left_out", ALWAYS,
                 .description = "Numbers excluded by the table's description."),
    LH_FIELD_ROW(UINT, ChecklistLine, not_predicted, "not_predicted", ALWAYS,
                 .description = "Numbers not predicted, or refused."),
    LH_FIELD_ROW(DOUBLE, ChecklistLine, mean_abs_error, "mean_abs_error", OR_NULL,
                 .description = "Mean of |predicted / published - 1|; null: none is judged."),
    LH_FIELD_ROW(DOUBLE, ChecklistLine, worst_abs_error, "worst_abs_error", OR_NULL,
                 .description = "Largest |predicted / published - 1|."),
    LH_FIELD_ROW(UINT, ChecklistLine, bounds, "bounds", ALWAYS,
                 .description = "Published lower bounds, which have no error."),
    LH_FIELD_ROW(UINT, ChecklistLine, bounds_held, "bounds_held", ALWAYS,
                 .description = "Bounds that hold."),
    LH_FIELD_ROW(DOUBLE, ChecklistLine, published, "published", OR_NULL,
                 .description = "Published number, if the claim is a single one."),
    LH_FIELD_ROW(DOUBLE, ChecklistLine, predicted, "predicted", OR_NULL,
                 .description = "Predicted number, likewise."),
    LH_FIELD_ROW(STRING, ChecklistLine, command, "command", OR_NULL,
                 .description = "Command that reproduces it."),
    LH_FIELD_ROW(STRINGS, ChecklistLine, held_by, "held_by", ALWAYS,
                 .description = "Tests that check it."),
    LH_FIELD_ROW(STRING, ChecklistLine, reason, "reason", OR_NULL,
                 .description = "Why it, or part of it, is not predicted."),
    { .name = NULL },
};

static GPtrArray *
copy_of_texts(const GPtrArray *texts)
{
    GPtrArray *copy = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; texts != NULL && i < texts->len; i++)
        g_ptr_array_add(copy, g_strdup(g_ptr_array_index(texts, i)));
    return copy;
}

static ChecklistLine
checklist_line(const LhCheckedLine *checked)
{
    const LhPaperSummary *s = &checked->summary;
    const LhPaperCase *shown = checked->shown;
    const bool predicted = has_prediction(shown) && shown->predicted_fits;

    return (ChecklistLine){
        .paper = g_strdup(checked->line->paper),
        .what = g_strdup(checked->line->what),
        .numbers = s->cases,
        .judged = s->judged,
        .fitted = s->fitted,
        .left_out = s->left_out,
        .not_predicted = s->unpredicted,
        .mean_abs_error = s->judged > 0 ? s->mean_abs_error : NAN,
        .worst_abs_error = s->judged > 0 ? s->worst_abs_error : NAN,
        .bounds = s->bounds,
        .bounds_held = s->bounds_held,
        .published = is_published(shown) ? shown->published : NAN,
        .predicted = predicted ? shown->predicted : NAN,
        .command = command_of(checked->line),
        .held_by = copy_of_texts(checked->line->held),
        .reason = g_strdup(checked->line->reason),
    };
}

GArray *
lh_checklist_values(const GArray *lines)
{
    GArray *values;

    if (lines == NULL)
        return NULL;
    values = g_array_new(FALSE, FALSE, sizeof(ChecklistLine));
    for (guint i = 0; i < lines->len; i++) {
        const ChecklistLine line = checklist_line(&g_array_index(lines, LhCheckedLine, i));

        g_array_append_val(values, line);
    }
    return values;
}
