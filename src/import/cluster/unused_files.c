/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files added nothing to a topology that is made, and why: a reader of the file learns it
 * here and not from numbers that do not change.
 */
#include "import/cluster/topology_private.h"

#include "import/cluster/readers_private.h"

#include <string.h>

/* Why a value that no other file has is in no field; NULL: an option or a better measurement says
 * it. */
static const char *const reasons[LH_TOOL_KINDS] = {
    [LH_TOOL_RINGS_RATE] = "is no less than what the NICs of a node reach together, which is taken",
    [LH_TOOL_PCIE_RATE] = "has no part here, since no traffic of GPUs crosses PCIe",
    [LH_TOOL_CAPABILITY] = "only has to be that of the device",
    [LH_TOOL_PEER_RATE] = "has no part here, since no link of such GPUs is in the topology",
    [LH_TOOL_PEER_LATENCY] = "has no part here, since no link of such GPUs is in the topology",
};

static bool
is_used(const LhToolDraft *d, const char *source)
{
    for (guint i = 0; i < d->fields->len; i++) {
        if (strstr(g_array_index(d->fields, LhToolField, i).source, source) != NULL)
            return true;
    }
    return false;
}

static void
append_reason(const LhToolDraft *d, const LhToolSaid *said, GString *line)
{
    const LhToolOutput *told = &d->told->told[said->kind];

    g_string_append(line, lh_tool_kind_name(said->kind));
    if (strcmp(told->source, said->source) != 0)
        g_string_append_printf(line, " is that of %s", told->source);
    else if (reasons[said->kind] != NULL)
        g_string_append_printf(line, " %s", reasons[said->kind]);
    else
        g_string_append(line, " is said by an option, or measured in another way");
}

/* Caller frees. */
static char *
explain(const LhToolDraft *d, const char *source)
{
    GString *line = g_string_new(NULL);
    const char *separator = ": ";

    g_string_append_printf(line, "%s adds nothing", source);
    for (guint i = 0; i < d->told->said->len; i++) {
        const LhToolSaid *said = &g_array_index(d->told->said, LhToolSaid, i);

        if (strcmp(said->source, source) != 0)
            continue;
        g_string_append(line, separator);
        append_reason(d, said, line);
        separator = "; ";
    }
    return g_string_free(line, FALSE);
}

void
lh_tool_note_unused(const LhToolDraft *d)
{
    for (guint i = 0; i < d->told->sources->len; i++) {
        const char *source = g_ptr_array_index(d->told->sources, i);

        if (!is_used(d, source))
            lh_tool_remark(d, explain(d, source));
    }
}
