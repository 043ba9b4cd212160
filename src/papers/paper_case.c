/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes cases of rows. Every option text is a template, filled only with cells of its row.
 */
#include "papers/paper_case.h"

#include "base/error.h"
#include "papers/paper_collective.h"
#include "papers/paper_options.h"
#include "scenario/setting.h"

#include <math.h>
#include <string.h>

const char *const lh_case_state_names[] = { "judged",        "fitted",           "left out",
                                            "not predicted", "not the greatest", NULL };

/* Largest whole number that a double represents exactly, with all smaller ones. */
#define WHOLE_MAX 9007199254740992.0
#define OUT_OF_MEMORY "OOM"

/* --- templates ----------------------------------------------------------------------------------
 */

/* Input of a template. */
typedef struct {
    const LhCsv *rows;
    guint row;
    const char *captured; /* replaces '*'; NULL: '*' stays */
    GError **error;
} Source;

/* The value of @word: a column of this row, or a number. */
static bool
read_operand(const Source *s, const char *word, double *value)
{
    char *end;
    int column;

    *value = g_ascii_strtod(word, &end);
    if (g_ascii_isdigit(*word) && *end == '\0')
        return true;
    column = lh_csv_column(s->rows, word, s->error);
    return column >= 0 && lh_csv_number(s->rows, s->row, (guint)column, value, s->error);
}

/* Adds the product at @at, "a*b/2", to @sum, or subtracts it if @sign is '-'; returns its end. */
static const char *
add_product(const Source *s, const char *at, char sign, double *sum)
{
    double result = 1;
    char operator= '*';

    for (;;) {
        const gsize length = strcspn(at, "*/+-");
        g_autofree char *word = g_strndup(at, length);
        double operand;

        if (!read_operand(s, word, &operand))
            return NULL;
        result = operator== '*' ? result * operand : result / operand;
        at += length;
        if (*at != '*' && *at != '/')
            break;
        operator= * at++;
    }
    *sum += sign == '-' ? -result : result;
    return at;
}

/* Appends the value of the sum @text, "a*b/2+c", which must be a whole number. */
static bool
append_sum(const Source *s, const char *text, GString *out)
{
    double result = 0;
    const char *at = add_product(s, text, '+', &result);

    while (at != NULL && *at != '\0')
        at = add_product(s, at + 1, *at, &result);
    if (at == NULL)
        return false;
    if (!(result >= 1 && result <= WHOLE_MAX) || result != floor(result))
        return lh_csv_error(s->rows, s->row, s->error,
                            "{%s} is %g; allowed: a whole number of at least 1", text, result);
    g_string_append_printf(out, "%.0f", result);
    return true;
}

/* Fills in @template; NULL with the error. Caller frees. */
static char *
fill_in(const Source *s, const char *template)
{
    g_autoptr(GString) out = g_string_new(NULL);

    for (const char *at = template; *at != '\0'; at++) {
        const char *close = *at == '{' ? strchr(at, '}') : NULL;

        if (close != NULL) {
            g_autofree char *inner = g_strndup(at + 1, (gsize)(close - at) - 1);

            if (!append_sum(s, inner, out))
                return NULL;
            at = close;
        } else if (*at == '*' && s->captured != NULL) {
            g_string_append(out, s->captured);
        } else {
            g_string_append_c(out, *at);
        }
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

/* Sets the options of @set. */
static bool
apply_options(const Source *s, const GPtrArray *set, LhPaperOptions *options)
{
    for (guint i = 0; set != NULL && i < set->len; i++) {
        const char *text = g_ptr_array_index(set, i);
        const char *equals = strchr(text, '=');
        g_autofree char *name =
            equals == NULL ? g_strdup(text) : g_strndup(text, (gsize)(equals - text));
        g_autofree char *value = equals == NULL ? NULL : fill_in(s, equals + 1);

        if (equals != NULL && value == NULL)
            return false;
        if (value != NULL && *value == '\0')
            lh_paper_options_take_back(options, name);
        else
            lh_paper_options_set(options, name, value);
    }
    return true;
}

/* --- rows ---------------------------------------------------------------------------------------
 */

typedef struct {
    const LhPaper *paper;
    const LhCsv *rows;
    GPtrArray *cases;
    GError **error;
} Builder;

/* The cell of a column that lh_paper_rows() has checked. */
static const char *
cell_of(const Builder *b, guint row, const char *column)
{
    const int index = lh_csv_column(b->rows, column, NULL);

    g_assert(index >= 0);
    return lh_csv_cell(b->rows, row, (guint)index);
}

/* Whether @cell is a number that is at least ('>') or at most @bound. */
static bool
is_within(const char *cell, char which, const char *bound)
{
    const double limit = g_ascii_strtod(bound, NULL);
    char *end;
    const double value = g_ascii_strtod(cell, &end);

    return end != cell && *end == '\0' && (which == '>' ? value >= limit : value <= limit);
}

/* Whether one condition holds: "COLUMN=VALUE", "COLUMN!=VALUE" or "COLUMN>=NUMBER"; false for a
 * missing column. */
static bool
one_holds(const LhCsv *rows, guint row, const char *text)
{
    const char *equals = strchr(text, '=');
    const bool bound = equals[-1] == '>' || equals[-1] == '<', not_equal = equals[-1] == '!';
    g_autofree char *column = g_strndup(text, (gsize)(equals - text) - (bound || not_equal));
    const int index = lh_csv_column(rows, column, NULL);
    const char *cell = index < 0 ? NULL : lh_csv_cell(rows, row, (guint)index);
    g_autofree char *match = cell == NULL || bound ? NULL : lh_paper_match(equals + 1, cell);

    if (cell == NULL)
        return false;
    if (!bound)
        return (match != NULL) != not_equal;
    return is_within(cell, equals[-1], equals + 1);
}

bool
lh_paper_row_matches(const LhCsv *rows, guint row, const GPtrArray *where)
{
    for (guint i = 0; where != NULL && i < where->len; i++) {
        if (!one_holds(rows, row, g_ptr_array_index(where, i)))
            return false;
    }
    return true;
}

/* A case of a row: a combination of the alternatives of its columns. */
typedef struct {
    guint index, of; /* `of` is a result: the number of combinations */
} Alternative;

/* Sets the options of a value, and of one of its alternatives. */
static bool
apply_value(const Source *source, const LhPaperValue *value, Alternative *which,
            LhPaperOptions *options)
{
    const LhPaperEach *each;

    if (!apply_options(source, value->set, options))
        return false;
    if (value->each == NULL)
        return true;
    each = &g_array_index(value->each, LhPaperEach, which->index / which->of % value->each->len);
    which->of *= value->each->len;
    return apply_options(source, each->set, options);
}

/* Sets the options that all metrics of one case of the row share. Sets @reason if the row is left
 * out. */
static bool
apply_columns(const Builder *b, guint row, Alternative *which, LhPaperOptions *options,
              char **reason)
{
    const GArray *columns = b->paper->columns;

    for (guint i = 0; columns != NULL && i < columns->len && *reason == NULL; i++) {
        const LhPaperColumn *column = &g_array_index(columns, LhPaperColumn, i);
        const char *cell = cell_of(b, row, column->column);
        bool known = false;

        for (guint j = 0; j < column->values->len && !known; j++) {
            const LhPaperValue *value = &g_array_index(column->values, LhPaperValue, j);
            g_autofree char *captured = lh_paper_match(value->value, cell);
            const Source source = { b->rows, row, captured, b->error };

            known = captured != NULL && lh_paper_row_matches(b->rows, row, value->where);
            if (known && value->skip != NULL)
                *reason = g_strdup(value->skip);
            else if (known && !apply_value(&source, value, which, options))
                return false;
        }
        if (!known)
            *reason = g_strdup_printf("the meaning of \"%s\" in column \"%s\" is unknown", cell,
                                      column->column);
    }
    return true;
}

/* Whether @list contains @text; NULL contains everything. */
static bool
lists(GPtrArray *list, const char *text)
{
    return list == NULL || g_ptr_array_find_with_equal_func(list, text, g_str_equal, NULL);
}

static bool
is_fitted(const Builder *b, guint row, const LhPaperMetric *metric)
{
    const GArray *fitted = b->paper->fitted_on;

    for (guint i = 0; fitted != NULL && i < fitted->len; i++) {
        const LhPaperFitted *f = &g_array_index(fitted, LhPaperFitted, i);

        if (lh_paper_row_matches(b->rows, row, f->where) && lists(f->columns, metric->column) &&
            lists(f->metrics, lh_metric_names[metric->metric]))
            return true;
    }
    return false;
}

/* The source's other numbers as "number: where", joined by "; "; NULL: none. Caller frees. */
static char *
contradictions_of(const Builder *b, guint row, const LhPaperMetric *metric)
{
    const GArray *all = b->paper->contradictions;
    GString *text = NULL;

    for (guint i = 0; all != NULL && i < all->len; i++) {
        const LhPaperContradiction *c = &g_array_index(all, LhPaperContradiction, i);

        if (!lh_paper_row_matches(b->rows, row, c->where) || !lists(c->columns, metric->column))
            continue;
        text = text == NULL ? g_string_new(NULL) : g_string_append(text, "; ");
        g_string_append_printf(text, "%s: %s", c->value, c->at);
    }
    return text == NULL ? NULL : g_string_free(text, FALSE);
}

/* The text for the number in the cell, possibly empty; NULL if the cell does not match the metric.
 * Caller frees. */
static char *
number_text(const Builder *b, guint row, const LhPaperMetric *metric)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    char *number =
        lh_paper_match(metric->cell != NULL ? metric->cell : "*", cell_of(b, row, metric->column));

    if (number == NULL || metric->number == 0)
        return number;
    g_free(number);
    return g_strdup(g_ascii_dtostr(buffer, sizeof(buffer), metric->number));
}

/* Reads the number of the metric's cell. @present: there is a number, or it is out of memory. */
static bool
read_published(const Builder *b, guint row, const LhPaperMetric *metric, LhPaperCase *c,
               bool *present)
{
    g_autofree char *number = number_text(b, row, metric);
    char *end;

    *present = number != NULL && *number != '\0';
    c->published_fits = number != NULL && g_ascii_strcasecmp(number, OUT_OF_MEMORY) != 0;
    if (!*present || !c->published_fits)
        return true;
    c->published = g_ascii_strtod(number, &end) * metric->scale;
    if (*end == '\0' && isfinite(c->published) && c->published > 0 &&
        strspn(number, "+.0123456789eE-") == strlen(number))
        return true;
    *present = false;
    if (metric->cell != NULL)
        return true;
    return lh_csv_error(b->rows, row, b->error,
                        "\"%s\" in column \"%s\" is not a published value; allowed: a number above "
                        "0, %s, or nothing",
                        number, metric->column, OUT_OF_MEMORY);
}

/* Rejects a row whose options have invalid values. */
static bool
check_scenario(const Builder *b, guint row, LhPaperCase *c, const LhPaperOptions *options)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(LhScenario) scenario = lh_paper_options_scenario(options, &cause);

    if (scenario != NULL || c->state == LH_CASE_UNPREDICTED)
        return true;
    g_assert(cause != NULL);
    if (!g_error_matches(cause, LH_ERROR, LH_ERROR_NO))
        return lh_csv_error(b->rows, row, b->error, "%s", cause->message);
    c->state = LH_CASE_UNPREDICTED;
    c->reason = g_strdup(cause->message);
    return true;
}

/* The same for a single collective. */
static bool
check_collective(const Builder *b, guint row, const LhPaperCase *c)
{
    g_autoptr(GError) cause = NULL;
    LhPaperCollective collective;

    return lh_paper_collective_read(c->options, &collective, &cause) ||
           lh_csv_error(b->rows, row, b->error, "%s", cause->message);
}

const LhPaperMetric *
lh_paper_case_metric(const LhPaper *paper, const LhPaperCase *c)
{
    return &g_array_index(paper->metrics, LhPaperMetric, c->metric);
}

bool
lh_paper_case_is_asked(const LhPaperCase *c)
{
    return c->state != LH_CASE_LEFT_OUT && c->state != LH_CASE_UNPREDICTED;
}

static void
paper_case_free(gpointer data)
{
    LhPaperCase *c = data;

    lh_paper_options_free(c->options);
    lh_paper_options_free(c->against);
    g_free(c->contradicted);
    g_free(c->reason);
    g_free(c->group);
    g_free(c);
}

/* Reads the GPU of a case. */
static bool
read_gpu(const Source *s, const char *template, LhPaperCase *c)
{
    g_autofree char *text = fill_in(s, template);
    guint64 gpu;

    if (text == NULL)
        return false;
    if (!g_ascii_string_to_unsigned(text, 10, 1, LH_RANKS_MAX, &gpu, NULL))
        return lh_csv_error(s->rows, s->row, s->error, "\"%.40s\" is not a GPU; allowed: 1 to %u",
                            text, LH_RANKS_MAX);
    c->gpu = (uint32_t)gpu;
    return true;
}

/* Completes a case before it is simulated: its options, and whether a scenario can express them. */
static bool
complete(const Builder *b, const LhPaperOptions *shared, LhPaperCase *c)
{
    const LhPaperMetric *metric = &g_array_index(b->paper->metrics, LhPaperMetric, c->metric);
    const Source source = { b->rows, c->row, NULL, b->error };

    c->options = lh_paper_options_copy(shared);
    if (lh_metric_is_step((LhMetric)metric->metric))
        lh_paper_options_set(c->options, "step", NULL);
    if (!apply_options(&source, metric->set, c->options) ||
        (metric->gpu != NULL && !read_gpu(&source, metric->gpu, c)))
        return false;
    if (metric->against != NULL) {
        c->against = lh_paper_options_copy(c->options);
        if (!apply_options(&source, metric->against, c->against))
            return false;
    }
    if (c->state == LH_CASE_LEFT_OUT)
        return true;
    if (lh_metric_is_collective((LhMetric)metric->metric))
        return check_collective(b, c->row, c);
    return check_scenario(b, c->row, c, c->options) &&
           (c->against == NULL || check_scenario(b, c->row, c, c->against));
}

static char *
row_group(const Builder *b, guint row)
{
    const GPtrArray *columns = b->paper->groups;
    GString *group;

    if (columns == NULL)
        return NULL;
    group = g_string_new(NULL);
    for (guint i = 0; i < columns->len; i++)
        g_string_append_printf(group, "%s%s", i > 0 ? ", " : "",
                               cell_of(b, row, g_ptr_array_index(columns, i)));
    return g_string_free(group, FALSE);
}

/* Makes a case, without its number. */
static LhPaperCase *
new_case(const Builder *b, guint row, guint index, const char *reason)
{
    const LhPaperMetric *metric = &g_array_index(b->paper->metrics, LhPaperMetric, index);
    LhPaperCase *c = g_new0(LhPaperCase, 1);

    c->row = row;
    c->line = lh_csv_line(b->rows, row);
    c->metric = index;
    c->contradicted = contradictions_of(b, row, metric);
    c->reason = g_strdup(reason);
    c->group = row_group(b, row);
    c->bound = metric->at_least;
    c->state = reason != NULL              ? LH_CASE_LEFT_OUT
               : is_fitted(b, row, metric) ? LH_CASE_FITTED
                                           : LH_CASE_JUDGED;
    return c;
}

/* Adds a case. The number of a row that is left out is not read. */
static bool
add_case(const Builder *b, guint row, guint index, const LhPaperOptions *shared, const char *reason)
{
    const LhPaperMetric *metric = &g_array_index(b->paper->metrics, LhPaperMetric, index);
    LhPaperCase *c =
        lh_paper_row_matches(b->rows, row, metric->where) ? new_case(b, row, index, reason) : NULL;
    g_autofree char *number = number_text(b, row, metric);
    bool present = number != NULL && *number != '\0';

    if (c == NULL)
        return true;
    g_ptr_array_add(b->cases, c);
    if (reason == NULL && !read_published(b, row, metric, c, &present))
        return false;
    if (present)
        return complete(b, shared, c);
    g_ptr_array_remove_index(b->cases, b->cases->len - 1);
    return true;
}

/* Adds one of the cases of a row; sets their number in @which. */
static bool
add_alternative(const Builder *b, guint row, Alternative *which)
{
    const Source source = { b->rows, row, NULL, b->error };
    g_autoptr(LhPaperOptions) shared = lh_paper_options_new();
    g_autofree char *reason = NULL;

    which->of = 1;
    if (!apply_options(&source, b->paper->base, shared) ||
        !apply_columns(b, row, which, shared, &reason))
        return false;
    if (reason != NULL)
        which->of = 1;
    for (guint i = 0; i < b->paper->metrics->len; i++) {
        if (!add_case(b, row, i, shared, reason))
            return false;
    }
    return true;
}

static bool
add_row(const Builder *b, guint row)
{
    Alternative which = { .index = 0 };

    do {
        if (!add_alternative(b, row, &which))
            return false;
    } while (++which.index < which.of);
    return true;
}

GPtrArray *
lh_paper_cases(const LhPaper *paper, const LhCsv *rows, GError **error)
{
    g_autoptr(GPtrArray) cases = g_ptr_array_new_with_free_func(paper_case_free);
    const Builder b = { paper, rows, cases, error };

    for (guint row = 0; row < lh_csv_rows(rows); row++) {
        if (!add_row(&b, row))
            return NULL;
    }
    return g_steal_pointer(&cases);
}
