/* SPDX-License-Identifier: Apache-2.0 */
#include "synth/result_routing.h"

uint32_t
lh_synth_result_at(const LhSynthSite *site, LhSynthResult kind, uint32_t entry, uint32_t *stage)
{
    switch (kind) {
    case LH_SYNTH_DQ:
        *stage = site->dq_stage[entry];
        return site->row_at[entry];
    case LH_SYNTH_DKV:
        *stage = site->dkv_stage[entry];
        return site->column_at[entry];
    default:
        *stage = site->result_stage[entry];
        return site->result_at[entry];
    }
}

/* Sorts results within a place first, then by stage and output, so that neighbours can be merged
 * by one call. */
static int
by_order(gconstpointer a, gconstpointer b)
{
    const LhSynthArrival *x = a, *y = b;

    if (x->remote != y->remote)
        return x->remote ? 1 : -1;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    if (x->output != y->output)
        return x->output < y->output ? -1 : 1;
    return x->source < y->source ? -1 : x->source > y->source;
}

/* Adds what place @from has for segment @segment. */
static void
add_arrivals(const LhSynthLayout *layout, LhSynthResult kind, GArray *arrivals, uint32_t segment,
             uint32_t from)
{
    const LhSynthProblem *p = layout->problem;
    const uint32_t chunk = segment / p->pieces, slices = lh_synth_result_slices(p, kind);
    const uint32_t first = p->seats[segment].part * slices * p->gpus;

    for (uint32_t slice = 0; slice < slices; slice++) {
        uint32_t stage;
        const uint32_t at =
            lh_synth_result_at(&layout->sites[from], kind, slice * p->chunks + chunk, &stage);

        if (at == LH_SYNTH_NONE)
            continue;
        for (uint32_t gpu = 0; gpu < p->gpus; gpu++) {
            const LhSynthArrival a = { .remote = p->homes[chunk] != from,
                                       .stage = stage,
                                       .output = first + gpu * slices + slice,
                                       .source = from * p->gpus + gpu,
                                       .from = at + segment % p->pieces };

            g_array_append_val(arrivals, a);
        }
    }
}

/* --- reuse of parts
 * ----------------------------------------------------------------------------- */

/* Parts of a buffer used by the results of a stage. */
typedef struct {
    uint32_t stage, first, count;
} Lease;

typedef struct {
    GArray *leases; /* of Lease */
    uint32_t most;  /* total parts */
} Buffer;

/* Assigns @count parts to a stage: the first ones not used by a nearby stage. */
static uint32_t
lease(Buffer *buffer, uint32_t stage, uint32_t count)
{
    Lease given = { stage, 0, count };
    guint i = 0;

    while (i < buffer->leases->len) {
        const Lease *l = &g_array_index(buffer->leases, Lease, i++);
        const uint32_t apart = MAX(l->stage, stage) - MIN(l->stage, stage);

        if (apart < LH_SYNTH_REUSE && given.first < l->first + l->count &&
            l->first < given.first + count) {
            given.first = l->first + l->count;
            i = 0;
        }
    }
    g_array_append_val(buffer->leases, given);
    buffer->most = MAX(buffer->most, given.first + count);
    return given.first;
}

/* Assigns parts to the arrivals of rank @rank from other ranks; those of a stage are adjacent.
 * Returns the number of parts needed. */
static uint32_t
place_arrivals(GArray *arrivals, uint32_t rank)
{
    Buffer buffer = { g_array_new(FALSE, FALSE, sizeof(Lease)), 0 };
    guint end;

    for (guint first = 0; first < arrivals->len; first = end) {
        const LhSynthArrival *a = &g_array_index(arrivals, LhSynthArrival, first);
        uint32_t count = 0, at;

        for (end = first; end < arrivals->len; end++) {
            const LhSynthArrival *b = &g_array_index(arrivals, LhSynthArrival, end);

            if (b->remote != a->remote || b->stage != a->stage)
                break;
            count += b->source != rank;
        }
        at = lease(&buffer, a->stage, count);
        for (guint i = first; i < end; i++) {
            LhSynthArrival *b = &g_array_index(arrivals, LhSynthArrival, i);

            if (b->source != rank)
                b->at = at++;
        }
    }
    g_array_unref(buffer.leases);
    return buffer.most;
}

/* A departure, in the order in which parts are rounded. */
typedef struct {
    const LhSynthArrival *arrival;
    LhSynthDeparture *departure;
} Leaver;

static int
by_rounding(gconstpointer a, gconstpointer b)
{
    const LhSynthArrival *x = ((const Leaver *)a)->arrival, *y = ((const Leaver *)b)->arrival;

    if (x->remote != y->remote)
        return x->remote ? 1 : -1;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Likewise for what rank @rank sends. */
static uint32_t
place_departures(LhSynthRouting *r, uint32_t rank)
{
    GArray *departures = r->departures[rank];
    g_autoptr(GArray) leavers = g_array_new(FALSE, FALSE, sizeof(Leaver));
    Buffer buffer = { g_array_new(FALSE, FALSE, sizeof(Lease)), 0 };
    guint end;

    for (guint i = 0; i < departures->len; i++) {
        LhSynthDeparture *d = &g_array_index(departures, LhSynthDeparture, i);
        const Leaver leaver = { &g_array_index(r->arrivals[d->peer], LhSynthArrival, d->index), d };

        g_array_append_val(leavers, leaver);
    }
    g_array_sort(leavers, by_rounding);
    for (guint first = 0; first < leavers->len; first = end) {
        const LhSynthArrival *a = g_array_index(leavers, Leaver, first).arrival;
        uint32_t at;

        for (end = first + 1; end < leavers->len; end++) {
            const LhSynthArrival *b = g_array_index(leavers, Leaver, end).arrival;

            if (b->remote != a->remote || b->stage != a->stage)
                break;
        }
        at = lease(&buffer, a->stage, end - first);
        for (guint i = first; i < end; i++)
            g_array_index(leavers, Leaver, i).departure->at = at++;
    }
    g_array_unref(buffer.leases);
    return buffer.most;
}

/* --- routing
 * ------------------------------------------------------------------------------------ */

/* The number of outputs that arrive in several contributions. */
static uint32_t
count_sums(const LhSynthProblem *p, LhSynthResult kind, const GArray *arrivals)
{
    const uint32_t outputs =
        lh_placement_parts(&p->form->placement) * p->gpus * lh_synth_result_slices(p, kind);
    g_autofree uint32_t *counts = g_new0(uint32_t, outputs);
    uint32_t sums = 0;

    for (guint i = 0; i < arrivals->len; i++)
        if (++counts[g_array_index(arrivals, LhSynthArrival, i).output] == 2)
            sums++;
    return sums;
}

LhSynthRouting *
lh_synth_routing_new(const LhSynthLayout *layout, LhSynthResult kind)
{
    const LhSynthProblem *p = layout->problem;
    LhSynthRouting *r = g_new0(LhSynthRouting, 1);

    r->ranks = p->places * p->gpus;
    r->arrivals = g_new(GArray *, r->ranks);
    r->departures = g_new(GArray *, r->ranks);
    for (uint32_t rank = 0; rank < r->ranks; rank++) {
        r->arrivals[rank] = g_array_new(FALSE, FALSE, sizeof(LhSynthArrival));
        r->departures[rank] = g_array_new(FALSE, FALSE, sizeof(LhSynthDeparture));
    }
    for (uint32_t segment = 0; segment < p->segments; segment++)
        for (uint32_t from = 0; from < p->places; from++)
            add_arrivals(layout, kind, r->arrivals[p->seats[segment].rank], segment, from);
    for (uint32_t rank = 0; rank < r->ranks; rank++) {
        g_array_sort(r->arrivals[rank], by_order);
        for (guint i = 0; i < r->arrivals[rank]->len; i++) {
            const LhSynthArrival *a = &g_array_index(r->arrivals[rank], LhSynthArrival, i);
            const LhSynthDeparture d = { rank, i, 0 };

            if (a->source != rank)
                g_array_append_val(r->departures[a->source], d);
        }
        r->came = MAX(r->came, place_arrivals(r->arrivals[rank], rank));
        r->sums = MAX(r->sums, count_sums(p, kind, r->arrivals[rank]));
    }
    for (uint32_t rank = 0; rank < r->ranks; rank++)
        r->sent = MAX(r->sent, place_departures(r, rank));
    return r;
}

void
lh_synth_routing_free(LhSynthRouting *r)
{
    if (r == NULL)
        return;
    for (uint32_t rank = 0; rank < r->ranks; rank++) {
        g_array_unref(r->arrivals[rank]);
        g_array_unref(r->departures[rank]);
    }
    g_free(r->arrivals);
    g_free(r->departures);
    g_free(r);
}
