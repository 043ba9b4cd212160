/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Actions on all members of a collective: joining their causes, starting and completing their ops.
 */
#include "sim/sim_private.h"

#include "sim/network/collectives/collective_measured.h"

void
lh_members_gather(LhEngine *e, const LhCollective *c)
{
    const bool hops = c->whole && c->algorithm != &lh_algorithm_measured;
    bool first = true;

    for (uint32_t i = 0; i < c->size && e->causes != NULL; i++) {
        if (!hops && !lh_engine_plays(e, c->members[i].rank))
            continue;
        lh_path_recorder_gather(e->causes, c->members[i].rank, c->members[i].op, first);
        first = false;
    }
}

void
lh_members_end(LhEngine *e, LhCollective *c, uint32_t late)
{
    lh_members_gather(e, c);
    for (uint32_t i = 0; i < c->size; i++) {
        LhSimRank *rank = &e->ranks[c->members[i].rank];

        if (!lh_engine_plays(e, rank->index))
            continue;
        lh_transfer_end_wait(e, rank, late);
        if (e->causes != NULL)
            lh_path_recorder_delivered(e->causes, rank->index, c->members[i].op);
        lh_engine_complete(e, rank, c->members[i].op);
        lh_news_add(e, rank->index);
    }
    c->ends_left = 0;
}

double
lh_members_share(const LhEngine *e, const LhCollective *c)
{
    double share = 1;

    for (uint32_t i = 0; i < c->size && e->params->time_share != NULL; i++)
        share = MIN(share, lh_transfer_share(e, c->members[i].rank, c->members[i].op));
    return share;
}

void
lh_members_meet(LhEngine *e, const LhCollective *c, uint32_t position, uint32_t late)
{
    LhSimRank *rank = &e->ranks[c->members[position].rank];

    if (!lh_engine_plays(e, rank->index))
        return;
    rank->moving[c->neighbours->tier]++;
    if (e->transits != NULL)
        lh_transit_leaves(e, rank, lh_node(&rank->nodes, c->members[position].op)->stream);
    lh_transfer_end_wait(e, rank, late);
    lh_news_add(e, rank->index);
}
