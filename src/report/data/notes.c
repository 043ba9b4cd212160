/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/notes.h"

#include "base/escape.h"
#include "scenario/profile_links.h"
#include "sim/network/sends.h"

static guint
count_notes(const LhModel *model)
{
    return model == NULL || model->notes == NULL ? 0 : model->notes->len;
}

void
lh_describe_notes(const LhModel *model, GString *out)
{
    for (guint i = 0; i < count_notes(model); i++) {
        g_string_append(out, "note: ");
        lh_escape_line(out, g_ptr_array_index(model->notes, i));
        g_string_append_c(out, '\n');
    }
}

char *
lh_notes_text(const LhModel *model)
{
    GString *text;

    if (count_notes(model) == 0)
        return NULL;
    text = g_string_new(NULL);
    for (guint i = 0; i < count_notes(model); i++) {
        g_string_append(text, i > 0 ? "; " : "");
        lh_escape_line(text, g_ptr_array_index(model->notes, i));
    }
    return g_string_free(text, FALSE);
}

GPtrArray *
lh_link_notes(const LhSetup *setup)
{
    const LhNetwork *n = &setup->network;
    GPtrArray *notes;

    if (setup->cost != LH_COST_DEVICE)
        return g_ptr_array_new();
    notes = lh_measured_doubts(setup->topology, MIN(n->ranks, n->gpus_per_node));
    g_ptr_array_extend_and_steal(notes, lh_profile_link_notes(setup->topology));
    return notes;
}

void
lh_describe_link_notes(const LhSetup *setup, GString *out)
{
    g_autoptr(GPtrArray) notes = lh_link_notes(setup);

    for (guint i = 0; i < notes->len; i++)
        g_string_append_printf(out, "note: %s\n", (const char *)g_ptr_array_index(notes, i));
}

char *
lh_link_notes_text(const LhSetup *setup)
{
    g_autoptr(GPtrArray) notes = lh_link_notes(setup);
    g_autofree char *text = NULL;

    if (notes->len == 0)
        return NULL;
    g_ptr_array_add(notes, NULL);
    text = g_strjoinv("; ", (char **)notes->pdata);
    return g_steal_pointer(&text);
}
