/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the simulator's engine share. A rank is made of owners that can be read alone:
 * its ops (inflight_ops.h), its account of time (idle_accounting.h), its memory (program/live.h);
 * messages without a partner are the matcher's (message_matching.h), links the network's
 * (network/flows.h). The files:
 *
 *     engine.c    the loop; streams: what starts when
 *     op_end.c    what follows from an end
 *     host.c      issue: from cursors to ops in queues
 *     memory_account.c    what ranks hold, over time
 *     fast_forward.c    layers and micro-batches that are left out, since they repeat:
 *     run_counts.c, state_hash.c
 *     critical_path_recorder.c    who caused what, for the critical path
 *     sm_sharing.c     kernels that share the SMs of a device, and ranks the cores of a machine
 *     messages.c  messages of exchanges, from posting to arrival
 *     collective_ops.c    collectives: those that are hops, and which others there are:
 *     measured_collectives.c, closed_form_collectives.c
 *     collective_members.c    members of a collective that have met
 *     transfers.c    what messages and hops have in common
 *     transit.c   when the bytes of an op are on their way, for timelines
 *     result.c    setting up and summing up
 */
#pragma once

#include "base/heap.h"
#include "program/cursor.h"
#include "program/live.h"
#include "sim/cost/cost.h"
#include "sim/critical_path_recorder.h"
#include "sim/fast_forward.h"
#include "sim/idle_accounting.h"
#include "sim/inflight_ops.h"
#include "sim/message_matching.h"
#include "sim/network/collectives/collectives.h"
#include "sim/network/flows.h"
#include "sim/network/symmetry.h"
#include "sim/sim.h"

/* A stream's queue: ids of the op that is due and of the last one, or LH_NO_NODE. */
typedef struct {
    uint32_t head, tail;
} LhQueue;

/* What of the op that a stream runs is on its way. */
typedef struct {
    uint32_t messages;
    GArray *motions; /* of LhMotion; while there are messages, the last one has not ended */
} LhTransit;

typedef struct {
    uint32_t index;
    LhQueue *queues; /* of its streams; borrowed */
    LhNodes nodes;
    LhIdleAccounting account;
    uint32_t gate;  /* sync the host waits for, or LH_NO_NODE */
    LhTime host_ps; /* when the host has issued its last op; relative to the gate's end, if there is
                       one */
    bool ended;     /* the program has no more ops */
    bool listed;    /* in LhEngine.news */
    uint8_t computing, communicating; /* streams of each kind with a running op */
    uint32_t ctas;                    /* SMs held by running communication */
    double speed;                     /* of all compute, of full */
    LhTime communicating_ps;
    uint32_t moving[LH_TIERS]; /* messages on the way, by tier */
    const GArray *tails_ps;    /* what follows each op takes at least; NULL: not known */
    uint32_t skipped_ops;      /* that were left out: the program's ids are so many more */
} LhSimRank;

/* What a flow on the network is. */
enum {
    LH_ENDS_MESSAGE,
    LH_ENDS_HOP,      /* of a collective: LhMoving.hops says which */
    LH_ENDS_MEASURED, /* what a collective whose time is known puts on a link: likewise */
};

/* Both ends of a message on the network. */
typedef struct {
    uint32_t ranks[2], nodes[2]; /* sender, receiver */
    uint8_t tier;
    uint8_t of; /* LH_ENDS_... */
    bool whole; /* of a collective all of whose hops are simulated */
} LhEnds;

typedef struct {
    LhCollective *collective;
    LhHop hop;
} LhMovingHop;

/* What is under way on the network, by flow. */
typedef struct {
    LhFlows *flows;
    LhLinkUtilization *load; /* NULL: nobody wants to know */
    LhEnds *ends;
    LhMovingHop *hops;
    uint32_t count;        /* of both arrays */
    uint32_t under_way[2]; /* messages; those of collectives all of whose hops are simulated */
} LhMoving;

/* Ranks that share the cores of a machine: LhDevice.machine_ranks. */
typedef struct {
    uint32_t computing, holding; /* how many of them have kernels, and messages, under way */
} LhMachine;

/* Ranks to look at, first in first out: those with news wait here instead of calling each other, so
 * that depth and order do not depend on who woke whom. */
typedef struct {
    uint32_t *ranks;
    uint32_t first, count, mask;
} LhNews;

/* Bytes of collectives over rows, over shifts, over both: likes in these may send theirs by other
 * ways, so every member's are counted. NULL: no rank stands for another one. */
enum { LH_APART_ROWS, LH_APART_SHIFTS, LH_APART_BOTH, LH_APARTS };

typedef struct {
    LhSymmetryGroups fold; /* within which ranks do the same in them */
    uint64_t *sent_bytes;  /* [ranks x tiers] */
    uint64_t *link_bytes;  /* [links] */
} LhApart;

typedef struct {
    const LhSimParams *params;
    const LhProgram *program;
    const LhNetwork *network;
    LhCost cost;
    LhSymmetryGroups fold; /* who stands for whom */
    bool folded;           /* someone does */
    bool differ, row;      /* but must not: because of a collective, over a row */
    bool free_network;     /* communication takes no time */
    bool contention;       /* communication holds SMs */
    uint32_t ranks_count, streams_count, streams_shift;
    LhTime now, launch_ps, sync_ps;
    LhTime skipped_ps;   /* by which `now` is behind, for what was left out */
    LhTime least_ps;     /* the run does not end before, as far as the tails of its ranks say */
    int host_provenance; /* LhProvenance: the weakest of what hosts have taken time for */
    LhSimRank *ranks;
    LhQueue *queues;     /* [ranks << streams_shift] */
    LhTransit *transits; /* likewise; NULL: nobody asks */
    LhCursor *cursors;   /* [ranks] */
    LhLive *live;        /* [ranks] */
    LhRankResult *results;
    LhApart apart[LH_APARTS];
    uint64_t *whole_bytes;        /* [links] of `apart` that the network counts, too */
    LhOutOfMemory *out_of_memory; /* the first op so far that exceeds the limit; NULL: none */
    double *slowdown;             /* per rank; NULL: none */
    LhMachine *machines;          /* NULL: each rank computes on cores of its own */
    LhHeap heap;                  /* item rank << streams_shift | stream, then flows */
    LhMatcher matcher;
    LhMoving moving;
    LhCollectives *collectives;
    LhPathRecorder *causes; /* NULL: nobody asks for the critical path */
    LhFastForward *repeat;  /* NULL: nothing is left out */
    LhNews news;
    LhOpBuffer buffer;
    uint32_t tiers_used; /* bit set */
    uint64_t events, ops;
    GError *error;
} LhEngine;

/* Whether the rank is simulated itself; who stands for it; how many it stands for. */
static inline bool
lh_engine_plays(const LhEngine *e, uint32_t r)
{
    return !e->folded || lh_symmetry_plays(&e->fold, r);
}

static inline uint32_t
lh_engine_like(const LhEngine *e, uint32_t r)
{
    return e->folded ? lh_symmetry_rank(&e->fold, r) : r;
}

static inline uint32_t
lh_engine_weight(const LhEngine *e, uint32_t r)
{
    return e->folded ? lh_symmetry_weight(&e->fold, r) : 1;
}

/* The index of a stream's events in the heap. */
static inline uint32_t
lh_queue_index(const LhEngine *e, const LhSimRank *rank, uint32_t stream)
{
    return rank->index << e->streams_shift | stream;
}

static inline LhQueue *
lh_queue(const LhSimRank *rank, uint32_t stream)
{
    return &rank->queues[stream];
}

static inline bool
lh_stream_computes(const LhEngine *e, uint32_t stream)
{
    return e->program->streams[stream].kind == LH_STREAM_COMPUTE;
}

/* Puts the rank on the list of those to look at in this instant. */
static inline void
lh_news_add(LhEngine *e, uint32_t r)
{
    if (e->ranks[r].listed)
        return;
    e->ranks[r].listed = true;
    e->news.ranks[(e->news.first + e->news.count++) & e->news.mask] = r;
}

/* engine.c */

/* Plays all of it, to its end or to e->error. */
void lh_engine_run(LhEngine *e);

/* op_end.c */

/* Looks why the rank computes nothing, from now on. */
void lh_engine_classify_idle(LhEngine *e, LhSimRank *rank);

/* The same, or that it does compute. */
static inline void
lh_engine_classify(LhEngine *e, LhSimRank *rank)
{
    if (rank->computing > 0)
        lh_idle_accounting_change(&rank->account, e->now, LH_BUSY);
    else
        lh_engine_classify_idle(e, rank);
}

/* Op @id, the head of its stream, is done: the stream moves on. */
void lh_engine_complete(LhEngine *e, LhSimRank *rank, uint32_t id);

/* host.c */

/* Issues the next step of a host that may; false if there is none. */
bool lh_host_pull_step(LhEngine *e, LhSimRank *rank);

/* Issues the next step if some stream has nothing left to do and the host may; true if it did. */
static inline bool
lh_host_pull(LhEngine *e, LhSimRank *rank)
{
    if (rank->ended || rank->gate != LH_NO_NODE ||
        !lh_nodes_in_window(&rank->nodes, rank->nodes.issued))
        return false;
    for (uint32_t s = 0; s < e->streams_count; s++) {
        if (lh_queue(rank, s)->head == LH_NO_NODE)
            return lh_host_pull_step(e, rank);
    }
    return false;
}

/* A sync whose earlier ops are all complete lets the host go on; ops issued after it learn when. */
bool lh_host_pass_sync(LhEngine *e, LhSimRank *rank);

/* memory_account.c */

/* What is there before the first op. */
void lh_memory_begins(LhEngine *e);

/* The host of @rank gets to @node, op @id of its program, an alloc or a free, at @time_ps of the
 * run. */
void lh_memory_changes(LhEngine *e, const LhSimRank *rank, uint32_t id, const LhNode *node,
                       LhTime time_ps);

/* sm_sharing.c */

/* Sets the rates of all running kernels of the rank, and when they will end. */
void lh_share_sms(LhEngine *e, LhSimRank *rank);

/* Only where ranks share cores: how many of the rank's machine compute, or have messages, has
 * changed. Sets the speed of all of them, and the rates of their kernels. */
void lh_share_cores(LhEngine *e, LhSimRank *rank);

/* The machine of a rank. */
static inline LhMachine *
lh_engine_machine(const LhEngine *e, const LhSimRank *rank)
{
    return &e->machines[rank->index / e->params->device->machine_ranks];
}

/* Communication holds @ctas more SMs (or gives them back): compute that runs beside it has the
 * rest. */
void lh_share_change(LhEngine *e, LhSimRank *rank, int32_t ctas);

static inline void
lh_share_hold(LhEngine *e, LhSimRank *rank, int32_t ctas)
{
    if (ctas != 0)
        lh_share_change(e, rank, ctas);
}

/* transfers.c: what messages of exchanges and hops of collectives have in common */

/* The run is over: a link of the way has failed. */
void lh_transfer_refuse(LhEngine *e, uint32_t source, uint32_t destination, uint32_t link);

/* False, and the run is over, if a link on the way has failed. The first one looks at each of them.
 */
bool lh_transfer_is_open(LhEngine *e, uint32_t source, uint32_t destination, const LhRoute *route);

static inline bool
lh_transfer_check_route(LhEngine *e, uint32_t source, uint32_t destination, const LhRoute *route)
{
    return e->network->faults == NULL || lh_transfer_is_open(e, source, destination, route);
}

/* Of a hop of the collective from one rank to another. */
static inline void
lh_transfer_hop_route(const LhEngine *e, const LhCollective *c, uint32_t from, uint32_t to,
                      LhRoute *route)
{
    if (c->kind == LH_COLL_ALL_TO_ALL)
        lh_network_route(e->network, from, to, route);
    else
        lh_network_collective_route(e->network, from, to, route);
    lh_network_route_in(e->network, lh_collective_group(c), route);
}

/* The run is to be played again, with less of it folded. */
void lh_transfer_differ(LhEngine *e, bool row);

/* Rank @r sends @bytes over a route of @tier. */
static inline void
lh_transfer_count_sent(LhEngine *e, uint32_t r, uint8_t tier, uint64_t bytes)
{
    e->results[r].bytes_sent += bytes;
    e->results[r].bytes_by_tier[tier] += bytes;
}

/* Where bytes of members of a collective are counted whose likes in it may send as much by other
 * ways. */
static inline const LhApart *
lh_transfer_apart(const LhEngine *e, const LhSymmetricMembers *likes)
{
    return &e->apart[!likes->rows        ? LH_APART_SHIFTS
                     : likes->shifts > 1 ? LH_APART_BOTH
                                         : LH_APART_ROWS];
}

/* Counts what such a member sends. */
void lh_transfer_count_apart(LhEngine *e, const LhSymmetricMembers *likes, const LhRoute *route,
                             uint64_t bytes);

/* Nothing moved for the rank until @late came: what has it been idle for? */
static inline void
lh_transfer_end_wait(LhEngine *e, LhSimRank *rank, uint32_t late)
{
    if (rank->account.why == LH_IDLE_IMBALANCE && rank->index != late)
        lh_idle_accounting_wait(&rank->account, &e->ranks[late].account, e->now);
}

/* What the op takes of its time: LhSimParams.time_share. */
static inline double
lh_transfer_share(const LhEngine *e, uint32_t rank, uint32_t op)
{
    return e->params->time_share == NULL ? 1 : lh_node(&e->ranks[rank].nodes, op)->share;
}

/* What a message counts for where it is known what all messages of a rank hold together. */
static inline uint16_t
lh_transfer_ctas_min(const LhEngine *e)
{
    return e->params->device->messages_hold > 0 ? 1 : 0;
}

/* Both ends learn that @bytes move from now on, for which they have waited for @late. */
void lh_transfer_begin(LhEngine *e, const LhEnds *ends, uint64_t bytes, uint32_t late);

/* Puts them on the network: the flow. Of its time it takes @share. */
uint32_t lh_transfer_start(LhEngine *e, const LhEnds *ends, const LhRoute *route, uint64_t bytes,
                           double share);

/* The message has arrived: so many less to wait for at both ends. */
void lh_transfer_deliver(LhEngine *e, const LhEnds *ends, uint32_t pieces);

/* collective_members.c */

/* What happens next to the collective waits for all of its members. */
void lh_members_gather(LhEngine *e, const LhCollective *c);

/* All members of the collective are through, because of the last message, to rank @late. */
void lh_members_end(LhEngine *e, LhCollective *c, uint32_t late);

/* What the op of the collective takes of its time: the most that it may spare. */
double lh_members_share(const LhEngine *e, const LhCollective *c);

/* The member at @position and all others have met: @late was the last. */
void lh_members_meet(LhEngine *e, const LhCollective *c, uint32_t position, uint32_t late);

/* measured_collectives.c */

/* All members are there, @late as the last one. */
void lh_measured_start(LhEngine *e, LhCollective *c, uint32_t late);

/* One of the flows of a collective whose time is known has arrived. */
void lh_measured_arrived(LhEngine *e, LhCollective *c, const LhEnds *ends);

/* closed_form_collectives.c */

/* What the member at @position, and those that it stands for, send by a closed form. */
void lh_closed_form_count(LhEngine *e, LhNode *node, const LhCollective *c, uint32_t position);

/* @late was the last to arrive and decides when all are through. */
void lh_closed_form_finish(LhEngine *e, LhCollective *c, uint32_t late);

/* collective_ops.c */

void lh_collective_start(LhEngine *e, LhSimRank *rank, uint32_t id);

/* The last byte of @flow, a hop of a collective, has been sent; what it brings is there. */
void lh_hop_left(LhEngine *e, uint32_t flow);
void lh_hop_arrived(LhEngine *e, uint32_t flow);

/* messages.c */

void lh_exchange_start(LhEngine *e, LhSimRank *rank, uint32_t id);

/* What @flow brings is there. */
void lh_flow_arrived(LhEngine *e, uint32_t flow);

/* transit.c: nothing of it happens unless e->transits is there. */

/* For a timeline. Frees it. */
void lh_transit_init(LhEngine *e);
void lh_transit_clear(LhEngine *e);

/* The op at the head of a stream starts, with nothing on its way. */
void lh_transit_begin(LhEngine *e, const LhSimRank *rank, uint32_t stream);

/* A message of it is on its way; is there. */
void lh_transit_leaves(LhEngine *e, const LhSimRank *rank, uint32_t stream);
void lh_transit_arrives(LhEngine *e, const LhSimRank *rank, uint32_t stream);

/* The op is done: sets what its record says of it. */
void lh_transit_end(LhEngine *e, LhTimelineRecord *record);

/* fast_forward.c */

/* NULL if something asks for every op, or lets layers differ. */
LhFastForward *lh_fast_forward_new(const LhEngine *e);
void lh_fast_forward_free(LhFastForward *repeat, uint32_t ranks);

/* @op of the rank, by the numbers of its nodes, has been issued: @node. @first: of its step. */
void lh_fast_forward_issue(LhEngine *e, const LhSimRank *rank, LhNode *node, const LhOp *op,
                           bool first);

/* Takes note of what happens to an op, as the rank's nodes count, or to a message. */
void lh_fast_forward_note_flow(LhEngine *e, LhFastForwardEvent event, uint32_t flow);
void lh_fast_forward_note_op(LhEngine *e, LhFastForwardEvent event, const LhSimRank *rank,
                             uint32_t id);

/* All that happens in this instant has happened. */
void lh_fast_forward_instant(LhEngine *e);

/* result.c */
void lh_engine_init(LhEngine *e, const LhSimParams *params, const LhSymmetryGroups *fold);
void lh_engine_clear(LhEngine *e);
/* e->error, if a link carried more than it can, which no message may do. */
LhSimResult *lh_engine_summarise(LhEngine *e);
