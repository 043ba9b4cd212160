/*
 * What collectives and sends of the GPUs of one node reached, as their logs have it: no link lets
 * less through than was seen to go over it.
 */
#include "import/told_fields.h"

#include "sim/network/link_bound.h"

#define US_PER_S 1e6
#define TOLERANCE 1.05 /* what a row may be faster than its links; see measured.c */

/* The fastest of a row's sizes. */
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

GArray *
lh_told_runs(const LhToldDraft *d)
{
    const LhTold *peer = lh_told_of(d, LH_TOLD_PEER_RATE);
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(LhToldRun));
    bool sends = false;

    for (guint i = 0; i < d->told->times->len; i++) {
        const LhCollectiveTimes *row = &g_array_index(d->told->times, LhCollectiveTimes, i);
        const LhToldRun run = { row->op, row->ranks, fastest_of(row), row->source };

        if (row->ranks > d->t.gpus_per_node)
            continue;
        sends = sends || row->op == LH_TIMES_OF_SENDS;
        g_array_append_val(runs, run);
    }
    if (peer != NULL && !sends) {
        const LhToldRun run = { LH_TIMES_OF_SENDS, peer->ranks, peer->value, peer->source };

        g_array_append_val(runs, run);
    }
    return runs;
}

LhToldFound
lh_told_at_least(const LhToldRun *fastest, LhToldFound rate)
{
    if (fastest == NULL || fastest->rate <= TOLERANCE * rate.value)
        return rate;
    return (LhToldFound){ fastest->rate, LH_PROVENANCE_MEASURED, fastest->source, fastest->source };
}
