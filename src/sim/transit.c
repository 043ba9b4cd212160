/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the bytes of a communication op are in flight: from when both ends of a message are posted
 * to its arrival; for a closed form of a collective, from when all members have arrived to its end.
 * A stream runs one op at a time, so this is kept per stream.
 */
#include "sim/sim_private.h"

void
lh_transit_init(LhEngine *e)
{
    const uint32_t queues = e->ranks_count << e->streams_shift;

    if (e->params->timeline == NULL)
        return;
    e->transits = g_new0(LhTransit, queues);
    for (uint32_t i = 0; i < queues; i++)
        e->transits[i].motions = g_array_sized_new(FALSE, FALSE, sizeof(LhMotion), 1);
}

void
lh_transit_clear(LhEngine *e)
{
    for (uint32_t i = 0; e->transits != NULL && i < e->ranks_count << e->streams_shift; i++)
        g_array_unref(e->transits[i].motions);
    g_clear_pointer(&e->transits, g_free);
}

void
lh_transit_begin(LhEngine *e, const LhSimRank *rank, uint32_t stream)
{
    LhTransit *t = &e->transits[lh_queue_index(e, rank, stream)];

    t->messages = 0;
    g_array_set_size(t->motions, 0);
}

static LhMotion *
last_motion(const LhTransit *t)
{
    return t->motions->len == 0 ? NULL : &g_array_index(t->motions, LhMotion, t->motions->len - 1);
}

/* A message that departs in the instant in which another arrives continues the interval. */
void
lh_transit_leaves(LhEngine *e, const LhSimRank *rank, uint32_t stream)
{
    LhTransit *t = &e->transits[lh_queue_index(e, rank, stream)];
    const LhMotion *last = last_motion(t);
    const LhMotion begins = { e->now, e->now };

    if (t->messages++ == 0 && (last == NULL || last->to_ps < e->now))
        g_array_append_val(t->motions, begins);
}

void
lh_transit_arrives(LhEngine *e, const LhSimRank *rank, uint32_t stream)
{
    LhTransit *t = &e->transits[lh_queue_index(e, rank, stream)];

    g_assert(t->messages > 0);
    if (--t->messages == 0)
        last_motion(t)->to_ps = e->now;
}

void
lh_transit_end(LhEngine *e, LhTimelineRecord *record)
{
    LhTransit *t = &e->transits[lh_queue_index(e, &e->ranks[record->rank], record->stream)];

    if (record->kind != LH_OP_EXCHANGE && record->kind != LH_OP_COLLECTIVE)
        return;
    if (t->messages > 0)
        last_motion(t)->to_ps = e->now;
    record->motions = (const LhMotion *)(const void *)t->motions->data;
    record->motions_count = t->motions->len;
}
