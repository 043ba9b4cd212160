/* SPDX-License-Identifier: Apache-2.0 */
/* Times of collectives between the GPUs of a node: from files, then from the base. */
#include "import/cluster/topology_private.h"

#include "base/error.h"

#include <string.h>

static bool
is_of_case(const LhCollectiveTimes *a, const LhCollectiveTimes *b)
{
    return a->op == b->op && a->ranks == b->ranks;
}

/* Rejects two runs of one operation on as many GPUs with the same or an unknown version of NCCL. */
static bool
check_twice(const LhToolDraft *d, guint index, GError **error)
{
    const GArray *rows = d->told->times;
    const LhCollectiveTimes *row = &g_array_index(rows, LhCollectiveTimes, index);

    for (guint i = 0; i < index; i++) {
        const LhCollectiveTimes *before = &g_array_index(rows, LhCollectiveTimes, i);

        if (!is_of_case(before, row) ||
            (before->nccl != NULL && row->nccl != NULL && strcmp(before->nccl, row->nccl) != 0))
            continue;
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: %s on %" G_GUINT64_FORMAT
                    " GPUs is measured here and in %s; give one of them, or runs of different "
                    "versions of NCCL",
                    (const char *)g_ptr_array_index(d->told->places, index),
                    lh_times_op_names[row->op], row->ranks,
                    (const char *)g_ptr_array_index(d->told->places, i));
        return false;
    }
    return true;
}

static bool
is_replaced(const LhToolDraft *d, const LhCollectiveTimes *row)
{
    for (guint i = 0; i < d->told->times->len; i++) {
        if (is_of_case(&g_array_index(d->told->times, LhCollectiveTimes, i), row))
            return true;
    }
    return row->ranks > d->t.gpus_per_node;
}

/* @place: of a run on one host. */
static bool
check_ranks_fit(const LhToolDraft *d, uint64_t ranks, const char *place, GError **error)
{
    if (ranks <= d->t.gpus_per_node)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: %" G_GUINT64_FORMAT " ranks ran on one host, and a node has %" //
                G_GUINT64_FORMAT " GPUs; give files that agree",
                place, ranks, d->t.gpus_per_node);
    return false;
}

/* Checks sends whose times make no row. */
static bool
check_peers(const LhToolDraft *d, GError **error)
{
    static const LhToolKind kinds[] = { LH_TOOL_PEER_RATE, LH_TOOL_PEER_LATENCY };

    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const LhToolOutput *peer = lh_tool_of(d, kinds[i]);

        if (peer != NULL && !check_ranks_fit(d, peer->ranks, peer->place, error))
            return false;
    }
    return true;
}

bool
lh_tool_is_joined_as_base(const LhToolDraft *d)
{
    return d->params->base->scale_up == d->t.scale_up &&
           (lh_tool_is_joined(d) || lh_tool_keeps_tree(d));
}

bool
lh_tool_fill_times(LhToolDraft *d, GError **error)
{
    const GArray *kept = d->params->base != NULL ? d->params->base->collective_times : NULL;
    const bool other = kept != NULL && !lh_tool_is_joined_as_base(d);
    guint dropped = 0;

    if (!check_peers(d, error))
        return false;

    for (guint i = 0; i < d->told->times->len; i++) {
        const LhCollectiveTimes *row = &g_array_index(d->told->times, LhCollectiveTimes, i);

        if (!check_twice(d, i, error))
            return false;
        if (!check_ranks_fit(d, row->ranks, g_ptr_array_index(d->told->places, i), error))
            return false;
        lh_tool_note(d, "node.collective_times",
                     g_strdup_printf("%s, %" G_GUINT64_FORMAT " GPUs, %u sizes",
                                     lh_times_op_names[row->op], row->ranks, row->bytes->len),
                     row->from.provenance, row->from.source);
        g_array_append_val(d->times, row);
    }
    for (guint i = 0; kept != NULL && i < kept->len; i++) {
        const LhCollectiveTimes *row = &g_array_index(kept, LhCollectiveTimes, i);

        if (is_replaced(d, row))
            continue;
        if (other)
            dropped++;
        else
            g_array_append_val(d->times, row);
    }
    if (dropped > 0)
        lh_tool_remark(d, g_strdup_printf("node.collective_times: %u rows of %s are left out, "
                                          "since its GPUs are joined differently",
                                          dropped, d->params->base->name));
    return true;
}
