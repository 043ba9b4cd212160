/* SPDX-License-Identifier: Apache-2.0 */
#include "report/diff/outcome.h"

#include <math.h>
#include <string.h>

const char *const lh_quantity_names[] = { "whole",    "part",  "traffic", "memory",
                                          "resource", "phase", "call",    NULL };

/* --- building -----------------------------------------------------------------------------------
 */

static void
quantity_clear(gpointer data)
{
    g_free(((LhQuantity *)data)->name);
}

void
lh_diff_entry_free(gpointer data)
{
    LhEntry *entry = data;

    g_free(entry->name);
    g_free(entry->state);
    g_array_unref(entry->quantities);
    g_free(entry);
}

LhEntry *
lh_outcome_add_entry(LhOutcome *o, const char *name, const char *state)
{
    LhEntry *entry = g_new0(LhEntry, 1);

    entry->name = g_strdup(name);
    entry->state = g_strdup(state);
    entry->quantities = g_array_new(FALSE, FALSE, sizeof(LhQuantity));
    g_array_set_clear_func(entry->quantities, quantity_clear);
    g_ptr_array_add(o->entries, entry);
    return entry;
}

void
lh_entry_add_quantity(LhEntry *entry, LhQuantityKind kind, const char *name, bool bytes,
                      double value)
{
    const LhQuantity q = { .name = g_strdup(name),
                           .kind = (uint8_t)kind,
                           .bytes = bytes,
                           .gate = kind == LH_QUANTITY_WHOLE,
                           .value = value };

    if (isnan(value)) {
        g_free(q.name);
        return;
    }
    g_array_append_val(entry->quantities, q);
}

/* --- reading ------------------------------------------------------------------------------------
 */

double
lh_entry_time(const LhEntry *entry)
{
    const bool has = entry != NULL && entry->quantities->len > 0;

    return has ? g_array_index(entry->quantities, LhQuantity, 0).value : NAN;
}

bool
lh_entry_ran(const LhEntry *entry)
{
    return (strcmp(entry->state, "ok") == 0 || strcmp(entry->state, "unproven") == 0) &&
           !isnan(lh_entry_time(entry));
}

void
lh_outcome_free(LhOutcome *o)
{
    if (o == NULL)
        return;
    g_ptr_array_unref(o->entries);
    lh_question_free(o->question);
    g_free(o->schema);
    g_free(o->version);
    g_free(o->sha256);
    g_free(o->winner);
    g_free(o);
}

const LhEntry *
lh_outcome_entry(const LhOutcome *o, const char *name)
{
    for (guint i = 0; i < o->entries->len; i++) {
        const LhEntry *entry = g_ptr_array_index(o->entries, i);

        if (strcmp(entry->name, name) == 0)
            return entry;
    }
    return NULL;
}

const LhQuantity *
lh_entry_quantity(const LhEntry *entry, const LhQuantity *like)
{
    for (guint i = 0; entry != NULL && i < entry->quantities->len; i++) {
        const LhQuantity *q = &g_array_index(entry->quantities, LhQuantity, i);

        if (q->kind == like->kind && strcmp(q->name, like->name) == 0)
            return q;
    }
    return NULL;
}
