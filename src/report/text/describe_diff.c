/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/describe_diff.h"

#include "base/escape.h"
#include "report/base/text.h"
#include "report/data/document.h"
#include "report/diff/question.h"

#include <math.h>
#include <string.h>

#define SECONDS_FROM 10.0 /* shorter times are in ms */

/* --- numbers ------------------------------------------------------------------------------------
 */

/* Format of times. */
typedef struct {
    const char *unit;
    double per_s;
} Scale;

static Scale
scale_of(const LhDiff *diff)
{
    const LhOutcome *const sides[] = { diff->a, diff->b };
    double longest_s = 0;

    for (int side = 0; side < 2; side++)
        for (guint i = 0; i < sides[side]->entries->len; i++) {
            const LhEntry *entry = g_ptr_array_index(sides[side]->entries, i);

            if (entry->quantities->len > 0)
                longest_s = fmax(longest_s, g_array_index(entry->quantities, LhQuantity, 0).value);
        }
    return longest_s < SECONDS_FROM ? (Scale){ "ms", 1e3 } : (Scale){ "s", 1 };
}

static double
value_of(const LhEntry *entry, const LhQuantity *like)
{
    const LhQuantity *q = lh_entry_quantity(entry, like);

    return q != NULL ? q->value : NAN;
}

/* A missing value counts as 0. */
static double
difference(double a, double b)
{
    return (isnan(b) ? 0 : b) - (isnan(a) ? 0 : a);
}

/* Change as a share of @a; NAN if that is 0. */
static double
change_of(double a, double b)
{
    return isnan(a) || isnan(b) || a <= 0 ? NAN : b / a - 1;
}

static void
scaled_cell(LhTable *table, const char *format, double value, double per_unit)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE], exact[G_ASCII_DTOSTR_BUF_SIZE];

    if (isnan(value)) {
        lh_table_cell(table, "-", "");
        return;
    }
    g_ascii_formatd(text, sizeof(text), format, fabs(value) < 1e15 ? value * per_unit : value);
    lh_table_cell(table, text, lh_double_to_text(value, exact));
}

static void
value_cell(LhTable *table, Scale scale, bool bytes, const char *format, double value)
{
    scaled_cell(table, format, value, bytes ? 1.0 / LH_MIB : scale.per_s);
}

static void
change_cell(LhTable *table, double change)
{
    scaled_cell(table, "%+.2f", change, 100);
}

/* --- text ---------------------------------------------------------------------------------------
 */

static void
case_row(LhTable *table, const char *field, const char *a, const char *b)
{
    g_autofree char *safe_a = lh_escaped_line(a != NULL ? a : "-");
    g_autofree char *safe_b = lh_escaped_line(b != NULL ? b : "-");

    lh_table_row(table);
    lh_table_cell(table, field, NULL);
    lh_table_cell(table, safe_a, NULL);
    lh_table_cell(table, safe_b, NULL);
}

#define DIGITS_SHOWN 12 /* of a SHA-256 */

/* Digests are shortened. */
static void
otherwise_row(LhTable *table, const LhQueryStampOtherwise *d)
{
    const bool digest = g_str_has_prefix(d->name, LH_DIGEST_OF);
    g_autofree char *a = digest && d->a != NULL ? g_strndup(d->a, DIGITS_SHOWN) : g_strdup(d->a);
    g_autofree char *b = digest && d->b != NULL ? g_strndup(d->b, DIGITS_SHOWN) : g_strdup(d->b);
    g_autofree char *name = lh_escaped_line(d->name);

    case_row(table, name, a, b);
}

LhTable *
lh_describe_diff_case(const LhDiff *diff)
{
    LhTable *table = lh_table_new();
    bool any = strcmp(diff->a->version, diff->b->version) != 0;

    lh_table_column(table, "field", "different input", NULL, false);
    lh_table_column(table, "a", "A", NULL, false);
    lh_table_column(table, "b", "B", NULL, false);
    if (any)
        case_row(table, "version of longhaul", diff->a->version, diff->b->version);
    for (guint i = 0; i < diff->otherwise->len; i++)
        otherwise_row(table, &g_array_index(diff->otherwise, LhQueryStampOtherwise, i));
    any = any || diff->otherwise->len > 0;
    if (any)
        return table;
    lh_table_free(table);
    return NULL;
}

/* The part of the time, or resource of the path, with the largest change; NULL: none changed. */
static const LhQuantity *
changed_most(const LhEntry *a, const LhEntry *b, double *by)
{
    g_autoptr(GPtrArray) all = lh_diff_quantities(a, b);
    const LhQuantity *most = NULL;

    *by = 0;
    for (guint i = 0; i < all->len; i++) {
        const LhQuantity *q = g_ptr_array_index(all, i);
        const double change = difference(value_of(a, q), value_of(b, q));

        if ((q->kind != LH_QUANTITY_PART && q->kind != LH_QUANTITY_RESOURCE) ||
            fabs(change) <= fabs(*by))
            continue;
        most = q;
        *by = change;
    }
    return most;
}

/* "exposed nic +10.2 ms"; caller frees. */
static char *
most_text(const LhEntry *a, const LhEntry *b, Scale scale)
{
    double by;
    const LhQuantity *most = changed_most(a, b, &by);
    g_autofree char *name = NULL;
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    if (a == NULL || b == NULL || most == NULL)
        return g_strdup("");
    name = lh_escaped_line(most->name);
    g_ascii_formatd(number, sizeof(number), "%+.3f", by * scale.per_s);
    return g_strdup_printf("%s %s %s", name, number, scale.unit);
}

static void
place_cell(LhTable *table, const LhEntry *entry)
{
    g_autofree char *state = NULL;

    if (entry != NULL && entry->place > 0) {
        lh_table_cell_printf(table, "%u", entry->place);
        return;
    }
    state = lh_escaped_line(entry == NULL ? "absent" : entry->state);
    lh_table_cell(table, state, NULL);
}

LhTable *
lh_describe_diff_entries(const LhDiff *diff)
{
    const Scale scale = scale_of(diff);
    g_autoptr(GPtrArray) names = lh_diff_names(diff);
    LhTable *table = lh_table_new();

    lh_table_column(table, "entry", "what", NULL, false);
    lh_table_column(table, "place_a", "place", "A", true);
    lh_table_column(table, "place_b", "place", "B", true);
    lh_table_column(table, "a", "time A", scale.unit, true);
    lh_table_column(table, "b", "time B", scale.unit, true);
    lh_table_column(table, "change", "change", "%", true);
    lh_table_column(table, "most", "largest change", NULL, false);
    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        const LhEntry *a = lh_outcome_entry(diff->a, name), *b = lh_outcome_entry(diff->b, name);
        g_autofree char *most = most_text(a, b, scale);
        g_autofree char *safe = lh_escaped_line(name);

        lh_table_row(table);
        lh_table_cell(table, safe, NULL);
        place_cell(table, a);
        place_cell(table, b);
        value_cell(table, scale, false, "%.3f", lh_entry_time(a));
        value_cell(table, scale, false, "%.3f", lh_entry_time(b));
        change_cell(table, change_of(lh_entry_time(a), lh_entry_time(b)));
        lh_table_cell(table, most, NULL);
    }
    return table;
}

LhTable *
lh_describe_diff_parts(const LhDiff *diff, const char *name)
{
    const LhEntry *a = lh_outcome_entry(diff->a, name), *b = lh_outcome_entry(diff->b, name);
    const Scale scale = scale_of(diff);
    g_autoptr(GPtrArray) all = lh_diff_quantities(a, b);
    g_autofree char *safe = lh_escaped_line(name);
    LhTable *table = lh_table_new();
    bool any = false;

    lh_table_column(table, "kind", safe, NULL, false);
    lh_table_column(table, "quantity", "", NULL, false);
    lh_table_column(table, "unit", "", NULL, false);
    lh_table_column(table, "a", "A", NULL, true);
    lh_table_column(table, "b", "B", NULL, true);
    lh_table_column(table, "difference", "B - A", NULL, true);
    lh_table_column(table, "change", "change", "%", true);
    for (guint i = 0; i < all->len; i++) {
        const LhQuantity *q = g_ptr_array_index(all, i);
        const double before = value_of(a, q), after = value_of(b, q);
        const double by = difference(before, after);
        g_autofree char *quantity = lh_escaped_line(q->name);

        if (fabs(by) <= 0)
            continue;
        any = true;
        lh_table_row(table);
        lh_table_cell(table, lh_quantity_names[q->kind], NULL);
        lh_table_cell(table, quantity, NULL);
        lh_table_cell(table, q->bytes ? "MiB" : scale.unit, NULL);
        value_cell(table, scale, q->bytes, "%.3f", before);
        value_cell(table, scale, q->bytes, "%.3f", after);
        value_cell(table, scale, q->bytes, "%+.3f", by);
        change_cell(table, change_of(before, after));
    }
    if (any)
        return table;
    lh_table_free(table);
    return NULL;
}

static void
append_percent(GString *out, double share)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    g_ascii_formatd(number, sizeof(number), "%+.2f", 100 * share);
    g_string_append_printf(out, "%s %%", number);
}

/* Appends "zigzag takes +3.00 % (exposed nic +10.2 ms)". */
static void
append_change(const LhDiff *diff, const char *name, GString *out)
{
    const LhEntry *a = lh_outcome_entry(diff->a, name), *b = lh_outcome_entry(diff->b, name);
    const double change = change_of(lh_entry_time(a), lh_entry_time(b));
    g_autofree char *most = most_text(a, b, scale_of(diff));
    g_autofree char *safe = lh_escaped_line(name);

    if (a == NULL || b == NULL) {
        g_string_append_printf(out, "%s exists only in %s", safe, a == NULL ? "B" : "A");
        return;
    }
    if (isnan(change)) {
        g_string_append_printf(out, "%s does not run in %s", safe, a->place > 0 ? "B" : "A");
        return;
    }
    g_string_append_printf(out, "%s takes ", safe);
    append_percent(out, change);
    if (most[0] != '\0')
        g_string_append_printf(out, " (mainly %s)", most);
}

static void
append_winner(const LhDiff *diff, GString *out)
{
    const char *const a = diff->a->winner, *const b = diff->b->winner;
    g_autofree char *safe_a = lh_escaped_line(a != NULL ? a : "nothing");
    g_autofree char *safe_b = lh_escaped_line(b != NULL ? b : "nothing");
    const char *as_far = diff->a->partial || diff->b->partial ? ", among the parts that ran" : "";

    if (g_strcmp0(a, b) == 0) {
        if (a != NULL && diff->a->entries->len > 1)
            g_string_append_printf(out, "%s wins in both%s.\n", safe_a, as_far);
        return;
    }
    g_string_append_printf(out, "%s wins in A, %s in B%s", safe_a, safe_b, as_far);
    if (a != NULL && b != NULL) {
        g_string_append(out, ": ");
        append_change(diff, a, out);
        g_string_append(out, ", ");
        append_change(diff, b, out);
    }
    g_string_append(out, ".\n");
}

static void
append_regression(const LhRegression *worse, GString *out)
{
    g_autofree char *safe = lh_escaped_line(worse->entry);

    if (isnan(worse->b)) {
        g_string_append_printf(out, "Worse: %s no longer runs.\n", safe);
        return;
    }
    g_string_append_printf(out, "Worse: the %s of %s", worse->what, safe);
    if (worse->a > 0) {
        g_string_append(out, ", ");
        append_percent(out, worse->b / worse->a - 1);
    }
    g_string_append(out, ".\n");
}

/* Describes what a result lacks. */
static void
append_side(const LhOutcome *o, const char *side, GString *out)
{
    if (o->partial)
        g_string_append_printf(out, "%s is partial: its command was interrupted.\n", side);
    if (!o->question->told)
        g_string_append_printf(
            out,
            "%s was written by an earlier version, without all inputs: values missing both in its "
            "case and on its command line count as not given.\n",
            side);
}

void
lh_describe_diff_words(const LhDiff *diff, GString *out)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    append_side(diff->a, "A", out);
    append_side(diff->b, "B", out);
    append_winner(diff, out);
    for (guint i = 0; i < diff->regressions->len; i++)
        append_regression(&g_array_index(diff->regressions, LhRegression, i), out);
    if (diff->tolerance < 0 || diff->regressions->len > 0)
        return;
    g_ascii_formatd(number, sizeof(number), "%g", 100 * diff->tolerance);
    g_string_append_printf(out, "Nothing is worse by more than %s %%.\n", number);
}

/* --- CSV and JSON -------------------------------------------------------------------------------
 */

static bool
is_worse(const LhDiff *diff, const char *entry, const LhQuantity *q)
{
    for (guint i = 0; i < diff->regressions->len && q->gate; i++) {
        const LhRegression *worse = &g_array_index(diff->regressions, LhRegression, i);

        if (strcmp(worse->entry, entry) == 0 && strcmp(worse->what, q->name) == 0)
            return true;
    }
    return false;
}

LhTable *
lh_diff_table(const LhDiff *diff)
{
    static const char *const columns[] = { "entry", "kind", "quantity", "unit",
                                           "a",     "b",    "change",   "verdict" };
    g_autoptr(GPtrArray) names = lh_diff_names(diff);
    LhTable *table = lh_table_new();

    for (guint i = 0; i < G_N_ELEMENTS(columns); i++)
        lh_table_column(table, columns[i], "", NULL, false);
    for (guint n = 0; n < names->len; n++) {
        const char *name = g_ptr_array_index(names, n);
        const LhEntry *a = lh_outcome_entry(diff->a, name), *b = lh_outcome_entry(diff->b, name);
        g_autoptr(GPtrArray) all = lh_diff_quantities(a, b);

        for (guint i = 0; i < all->len; i++) {
            const LhQuantity *q = g_ptr_array_index(all, i);

            lh_table_row(table);
            lh_table_cell(table, name, NULL);
            lh_table_cell(table, lh_quantity_names[q->kind], NULL);
            lh_table_cell(table, q->name, NULL);
            lh_table_cell(table, q->bytes ? "bytes" : "s", NULL);
            scaled_cell(table, "%g", value_of(a, q), 1);
            scaled_cell(table, "%g", value_of(b, q), 1);
            scaled_cell(table, "%g", change_of(value_of(a, q), value_of(b, q)), 1);
            lh_table_cell(table, is_worse(diff, name, q) ? "worse" : "", NULL);
        }
    }
    return table;
}

/* ---- as JSON ---- */

typedef struct {
    const char *path, *sha256, *schema, *version, *winner;
    bool complete, says_what_was_asked;
} Side;

static const LhField side_fields[] = {
    LH_FIELD_ROW(STRING, Side, path, "path", ALWAYS, .description = "The file."),
    LH_FIELD_ROW(STRING, Side, sha256, "sha256", ALWAYS, .description = "SHA-256 of the file."),
    LH_FIELD_ROW(STRING, Side, schema, "schema", ALWAYS, .description = "Format of the file."),
    LH_FIELD_ROW(STRING, Side, version, "version", ALWAYS,
                 .description = "Version of longhaul that wrote it."),
    LH_FIELD_ROW(STRING, Side, winner, "winner", OR_NULL,
                 .description = "The fastest entry; null: none."),
    LH_FIELD_ROW(BOOL, Side, complete, "complete", ALWAYS,
                 .description = "False if the command was interrupted."),
    LH_FIELD_ROW(BOOL, Side, says_what_was_asked, "says_what_was_asked", ALWAYS,
                 .description = "Whether it states its query; earlier versions did not."),
    { .name = NULL },
};

static const LhField otherwise_fields[] = {
    LH_FIELD_ROW(STRING, LhQueryStampOtherwise, name, "field", ALWAYS, .description = "The field."),
    LH_FIELD_ROW(STRING, LhQueryStampOtherwise, a, "a", OR_NULL,
                 .description = "Value in A, as text; null: none."),
    LH_FIELD_ROW(STRING, LhQueryStampOtherwise, b, "b", OR_NULL, .description = "Likewise in B."),
    { .name = NULL },
};

static const LhField regression_fields[] = {
    LH_FIELD_ROW(STRING, LhRegression, entry, "entry", ALWAYS, .description = "The entry."),
    LH_FIELD_ROW(STRING, LhRegression, what, "quantity", ALWAYS, .description = "time or memory."),
    LH_FIELD_ROW(DOUBLE, LhRegression, a, "a", ALWAYS, .max = -1,
                 .description = "Value in A, in s or bytes."),
    LH_FIELD_ROW(DOUBLE, LhRegression, b, "b", OR_NULL, .max = -1,
                 .description = "Value in B; null: does not run."),
    { .name = NULL },
};

typedef struct {
    int kind; /* LhQuantityKind */
    const char *quantity, *unit;
    double a, b, change;
} Quantity;

static const char *const quantity_units[] = { "s", "bytes", NULL };

static const LhField quantity_fields[] = {
    LH_FIELD_ROW(CHOICE, Quantity, kind, "kind", ALWAYS, .choices = lh_quantity_names,
                 .description = "Kind of quantity."),
    LH_FIELD_ROW(STRING, Quantity, quantity, "quantity", ALWAYS, .description = "Its name."),
    LH_FIELD_ROW(STRING, Quantity, unit, "unit", ALWAYS, .choices = quantity_units,
                 .description = "Unit of a and b."),
    LH_FIELD_ROW(DOUBLE, Quantity, a, "a", OR_NULL, .max = -1,
                 .description = "Value in A; null: none."),
    LH_FIELD_ROW(DOUBLE, Quantity, b, "b", OR_NULL, .max = -1, .description = "Value in B."),
    LH_FIELD_ROW(DOUBLE, Quantity, change, "change", OR_NULL,
                 .description = "b / a - 1; null: one of them is missing, or a is 0."),
    { .name = NULL },
};

typedef struct {
    const char *entry, *state_a, *state_b;
    uint64_t place_a, place_b; /* from 1 */
    GArray *quantities;        /* of Quantity; owned */
} Entry;

static const LhField entry_fields[] = {
    LH_FIELD_ROW(STRING, Entry, entry, "entry", ALWAYS, .description = "Its name."),
    LH_FIELD_ROW(UINT, Entry, place_a, "place_a", OR_NULL, .min = 1,
                 .description = "Place in A by time, from 1; null: did not run."),
    LH_FIELD_ROW(STRING, Entry, state_a, "state_a", OR_NULL,
                 .description = "State in A; null: missing."),
    LH_FIELD_ROW(UINT, Entry, place_b, "place_b", OR_NULL, .min = 1, .description = "Place in B."),
    LH_FIELD_ROW(STRING, Entry, state_b, "state_b", OR_NULL, .description = "State in B."),
    LH_FIELD_ROW(ARRAY, Entry, quantities, "quantities", ALWAYS, .fields = quantity_fields,
                 .element_size = sizeof(Quantity), .description = "Its quantities."),
    { .name = NULL },
};

typedef struct {
    LhDocumentHead head;
    Side a, b;
    GArray *otherwise; /* of LhQueryStampOtherwise */
    double tolerance;
    GArray *worse;   /* of LhRegression */
    GArray *entries; /* of Entry */
} DiffDocument;

static const char *const diff_schema[] = { "longhaul.diff/1", NULL };

#define ROW(kind, member, key, when, ...)                                                          \
    LH_FIELD_ROW(kind, DiffDocument, member, key, when, __VA_ARGS__)

const LhField lh_diff_fields[] = {
    LH_DOCUMENT_HEAD(DiffDocument, head, diff_schema),
    ROW(OBJECT, a, "a", ALWAYS, .fields = side_fields, .description = "The first result."),
    ROW(OBJECT, b, "b", ALWAYS, .fields = side_fields, .description = "The second result."),
    ROW(ARRAY, otherwise, "not_asked_alike", ALWAYS, .fields = otherwise_fields,
        .element_size = sizeof(LhQueryStampOtherwise),
        .description = "Fields of the query that differ."),
    ROW(DOUBLE, tolerance, "tolerance", OR_NULL, .max = -1,
        .description = "The tolerance, as a fraction; null: none was given."),
    ROW(ARRAY, worse, "worse", ALWAYS, .fields = regression_fields,
        .element_size = sizeof(LhRegression), .description = "Regressions beyond the tolerance."),
    ROW(ARRAY, entries, "entries", ALWAYS, .fields = entry_fields, .element_size = sizeof(Entry),
        .description = "Schedules or configurations, those of A first."),
    { .name = NULL },
};

static Side
side_of(const LhOutcome *o)
{
    return (Side){ .path = o->path,
                   .sha256 = o->sha256,
                   .schema = o->schema,
                   .version = o->version,
                   .winner = o->winner,
                   .complete = !o->partial,
                   .says_what_was_asked = o->question->told };
}

/* Quantities of an entry. Caller unrefs. */
static GArray *
find_quantities(const LhEntry *a, const LhEntry *b)
{
    g_autoptr(GPtrArray) all = lh_diff_quantities(a, b);
    GArray *quantities = g_array_new(FALSE, FALSE, sizeof(Quantity));

    for (guint i = 0; i < all->len; i++) {
        const LhQuantity *q = g_ptr_array_index(all, i);
        const Quantity quantity = { .kind = q->kind,
                                    .quantity = q->name,
                                    .unit = quantity_units[q->bytes],
                                    .a = value_of(a, q),
                                    .b = value_of(b, q),
                                    .change = change_of(value_of(a, q), value_of(b, q)) };

        g_array_append_val(quantities, quantity);
    }
    return quantities;
}

static uint64_t
place_of(const LhEntry *entry)
{
    return entry != NULL && entry->place > 0 ? entry->place : LH_FIELD_NO_UINT;
}

static void
clear_entry(gpointer data)
{
    g_array_unref(((Entry *)data)->quantities);
}

/* All entries. Caller unrefs. */
static GArray *
find_entries(const LhDiff *diff)
{
    g_autoptr(GPtrArray) names = lh_diff_names(diff);
    GArray *entries = g_array_new(FALSE, FALSE, sizeof(Entry));

    g_array_set_clear_func(entries, clear_entry);
    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        const LhEntry *a = lh_outcome_entry(diff->a, name), *b = lh_outcome_entry(diff->b, name);
        const Entry entry = { .entry = name,
                              .state_a = a != NULL ? a->state : NULL,
                              .state_b = b != NULL ? b->state : NULL,
                              .place_a = place_of(a),
                              .place_b = place_of(b),
                              .quantities = find_quantities(a, b) };

        g_array_append_val(entries, entry);
    }
    return entries;
}

void
lh_diff_json(const LhDiff *diff, const LhStamp *stamp, GString *out)
{
    g_auto(LhDocumentHead) head = lh_document_head(diff_schema[0], stamp, NULL);
    g_autoptr(GArray) entries = find_entries(diff);
    const DiffDocument document = { .head = head,
                                    .a = side_of(diff->a),
                                    .b = side_of(diff->b),
                                    .otherwise = diff->otherwise,
                                    .tolerance = diff->tolerance < 0 ? NAN : diff->tolerance,
                                    .worse = diff->regressions,
                                    .entries = entries };

    lh_json_encode_text(lh_diff_fields, &document, out);
}
