/* SPDX-License-Identifier: Apache-2.0 */
#include "report/diff/diff.h"

#include "base/error.h"
#include "report/diff/outcome.h"
#include "report/diff/question.h"

#include <math.h>
#include <string.h>

/* --- comparison ---------------------------------------------------------------------------------
 */

static void
add_regression(LhDiff *diff, const LhEntry *entry, const char *what, double a, double b)
{
    const LhRegression worse = { entry->name, what, a, b };

    g_array_append_val(diff->regressions, worse);
}

/* Finds regressions: entries that ran only in A, and gated quantities that grew beyond the
 * tolerance. */
static void
find_regressions(LhDiff *diff, const LhEntry *a, const LhEntry *b)
{
    if (!lh_entry_ran(a))
        return;
    if (!lh_entry_ran(b)) {
        add_regression(diff, a, "time", lh_entry_time(a), NAN);
        return;
    }
    for (guint i = 0; i < a->quantities->len; i++) {
        const LhQuantity *before = &g_array_index(a->quantities, LhQuantity, i);
        const LhQuantity *after = lh_entry_quantity(b, before);

        if (before->gate && after != NULL && after->value > before->value * (1 + diff->tolerance))
            add_regression(diff, a, before->name, before->value, after->value);
    }
}

/* Rejects a tolerance for a partial result: what an interrupted command did not run cannot be
 * compared. */
static bool
check_partial(const LhOutcome *o, double tolerance, GError **error)
{
    if (!o->partial || tolerance < 0)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s is of an interrupted command, so regressions in what it did not run are "
                "unknown; remove --tolerance, or let the command finish",
                o->path);
    return false;
}

LhDiff *
lh_diff_new(const LhOutcome *a, const LhOutcome *b, double tolerance, GError **error)
{
    LhDiff *diff;

    if (!check_partial(a, tolerance, error) || !check_partial(b, tolerance, error))
        return NULL;
    if (strcmp(a->schema, b->schema) != 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s is a %s and %s a %s; both must be of the same kind", a->path, a->schema,
                    b->path, b->schema);
        return NULL;
    }
    diff = g_new0(LhDiff, 1);
    diff->a = a;
    diff->b = b;
    diff->tolerance = tolerance;
    diff->otherwise = lh_question_compare(a->question, b->question);
    diff->regressions = g_array_new(FALSE, FALSE, sizeof(LhRegression));
    for (guint i = 0; i < a->entries->len && tolerance >= 0; i++) {
        const LhEntry *before = g_ptr_array_index(a->entries, i);
        const LhEntry *after = lh_outcome_entry(b, before->name);

        if (after != NULL)
            find_regressions(diff, before, after);
    }
    return diff;
}

void
lh_diff_free(LhDiff *diff)
{
    if (diff == NULL)
        return;
    g_array_unref(diff->otherwise);
    g_array_unref(diff->regressions);
    g_free(diff);
}

GPtrArray *
lh_diff_names(const LhDiff *diff)
{
    GPtrArray *names = g_ptr_array_new();

    for (guint i = 0; i < diff->a->entries->len; i++)
        g_ptr_array_add(names, ((LhEntry *)g_ptr_array_index(diff->a->entries, i))->name);
    for (guint i = 0; i < diff->b->entries->len; i++) {
        const LhEntry *entry = g_ptr_array_index(diff->b->entries, i);

        if (lh_outcome_entry(diff->a, entry->name) == NULL)
            g_ptr_array_add(names, entry->name);
    }
    return names;
}

GPtrArray *
lh_diff_quantities(const LhEntry *a, const LhEntry *b)
{
    GPtrArray *all = g_ptr_array_new();

    for (guint i = 0; a != NULL && i < a->quantities->len; i++)
        g_ptr_array_add(all, &g_array_index(a->quantities, LhQuantity, i));
    for (guint i = 0; b != NULL && i < b->quantities->len; i++) {
        LhQuantity *q = &g_array_index(b->quantities, LhQuantity, i);

        if (lh_entry_quantity(a, q) == NULL)
            g_ptr_array_add(all, q);
    }
    return all;
}
