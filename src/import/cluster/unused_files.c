/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remarks on files that added nothing to a topology, with the reason, so that users need not infer
 * it from unchanged numbers.
 */
#include "import/cluster/topology_private.h"

#include "import/cluster/readers_private.h"

#include <string.h>

/* Why the only value of a kind is in no field; NULL: an option or a better measurement replaces
 * it. */
static const char *const reasons[LH_TOOL_KINDS] = {
    [LH_TOOL_RINGS_RATE] =
        "is no less than the joint bandwidth of a node's NICs, which is used instead",
    [LH_TOOL_PCIE_RATE] = "is not needed, since no GPU traffic crosses PCIe",
    [LH_TOOL_CAPABILITY] = "must only match that of the device",
    [LH_TOOL_PEER_RATE] = "is not needed, since the topology has no link between these GPUs",
    [LH_TOOL_PEER_LATENCY] = "is not needed, since the topology has no link between these GPUs",
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
        g_string_append_printf(line, " is taken from %s", told->source);
    else if (reasons[said->kind] != NULL)
        g_string_append_printf(line, " %s", reasons[said->kind]);
    else
        g_string_append(line, " is given by an option, or measured in another way");
}

/* Explains why a source is unused; caller frees. */
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
