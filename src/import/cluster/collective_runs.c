/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates of collectives and sends between GPUs of one node, from their logs. A link carries at least
 * what was measured over it.
 */
#include "import/cluster/topology_private.h"

#include "sim/network/link_bound.h"

#define US_PER_S 1e6
#define SHORT_BYTES 1024 /* up to this size, messages take only latency */
#define TOLERANCE 1.05   /* a row may exceed its links by this factor; see measured.c */

/* Highest rate over the sizes of a row. */
static double
fastest_of(const LhCollectiveTimes *row)
{
    const double share = lh_ring_share((LhCollectiveKind)row->op, (double)row->ranks);
    double fastest = 0;

    for (guint i = 0; i < row->bytes->len; i++) {
        const double rate = share * (double)g_array_index(row->bytes, uint64_t, i) * US_PER_S /
                            g_array_index(row->us, double, i); /* nocheck:unit: bytes/s */

        fastest = MAX(fastest, rate);
    }
    return fastest;
}

/* Latency of sends; 0: unknown. */
static double
latency_of(const LhCollectiveTimes *row)
{
    return row->op == LH_TIMES_OF_SENDS && g_array_index(row->bytes, uint64_t, 0) <= SHORT_BYTES
               ? g_array_index(row->us, double, 0) / US_PER_S
               : 0;
}

/* Adds sends whose times make no row. */
static void
add_peer(const LhToolDraft *d, GArray *runs)
{
    const LhToolOutput *rate = lh_tool_of(d, LH_TOOL_PEER_RATE),
                       *latency = lh_tool_of(d, LH_TOOL_PEER_LATENCY);
    const LhToolOutput *peer = rate != NULL ? rate : latency;

    if (peer != NULL && peer->ranks <= d->t.gpus_per_node) {
        const bool same = latency != NULL && latency->ranks == peer->ranks;
        const LhToolRun run = { LH_TIMES_OF_SENDS, peer->ranks, rate != NULL ? rate->value : 0,
                                same ? latency->value : 0, peer->source };

        g_array_append_val(runs, run);
    }
}

GArray *
lh_tool_runs(const LhToolDraft *d)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(LhToolRun));
    bool sends = false;

    for (guint i = 0; i < d->told->times->len; i++) {
        const LhCollectiveTimes *row = &g_array_index(d->told->times, LhCollectiveTimes, i);
        const LhToolRun run = { row->op, row->ranks, fastest_of(row), latency_of(row),
                                row->from.source };

        if (row->ranks > d->t.gpus_per_node)
            continue;
        sends = sends || row->op == LH_TIMES_OF_SENDS;
        g_array_append_val(runs, run);
    }
    if (!sends)
        add_peer(d, runs);
    return runs;
}

LhToolFound
lh_tool_take_sends(const LhToolDraft *d, bool latency, bool nvlink)
{
    g_autoptr(GArray) runs = lh_tool_runs(d);
    LhToolFound found = { 0 };

    for (guint i = 0; i < runs->len; i++) {
        const LhToolRun *run = &g_array_index(runs, LhToolRun, i);
        const double value = latency ? run->latency_s : run->rate; /* nocheck:unit: as asked */

        if (run->op != LH_TIMES_OF_SENDS || lh_tool_is_over_nvlink(d, run->ranks) != nvlink ||
            value == 0 || (found.source != NULL && (latency || value <= found.value)))
            continue;
        found = (LhToolFound){ value, LH_PROVENANCE_MEASURED, run->source, run->source };
    }
    return found;
}

LhToolFound
lh_tool_at_least(const LhToolRun *fastest, LhToolFound rate)
{
    if (fastest == NULL || fastest->rate <= TOLERANCE * rate.value)
        return rate;
    return (LhToolFound){ fastest->rate, LH_PROVENANCE_MEASURED, fastest->source, fastest->source };
}
