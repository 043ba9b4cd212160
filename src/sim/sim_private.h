/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the engine share. The state of a rank consists of parts that can be read alone:
 * its ops in flight (inflight_ops.h), its time accounting (idle_accounting.h), its memory
 * (program/live_states.h). Unmatched messages belong to the matcher (message_matching.h), links to
 * the network (network/flows.h). The files:
 *
 *     engine.c    event loop; streams: which op starts when
 *     op_end.c    completion of ops
 *     host.c      issue: from cursors to ops in queues
 *     host_copies.c  copies between device and host
 *     lookahead.c    hosts that read ahead of the ops in queues
 *     memory_account.c    memory of ranks over time
 *     fast_forward.c, run_counts.c, state_hash.c    skipping of repeated layers and micro-batches
 *     causes/     causes, for the critical path and slack
 *     sm_sharing.c     kernels that share the SMs of a device, ranks that share the cores of a
 * machine messages.c  messages of exchanges, from posting to arrival collective_ops.c collectives
 * simulated as hops; dispatch to the other kinds: measured_collectives.c, closed_form_collectives.c
 *     collective_members.c    actions on all members of a collective
 *     transfers.c    what messages and hops have in common
 *     transit.c   when the bytes of an op are in flight, for timelines
 *     result.c    set-up and summary
 */
#pragma once

#include "base/heap.h"
#include "program/cursor.h"
#include "program/live_states.h"
#include "sim/causes/critical_path_recorder.h"
#include "sim/cost/cost.h"
#include "sim/exposed.h"
#include "sim/fast_forward.h"
#include "sim/idle_accounting.h"
#include "sim/inflight_ops.h"
#include "sim/lookahead.h"
#include "sim/message_matching.h"
#include "sim/network/collectives/collectives.h"
#include "sim/network/flows.h"
#include "sim/network/symmetry.h"
#include "sim/sim.h"

/* A stream's queue: ids of the next op and of the last one, or LH_NO_NODE. */
typedef struct {
    uint32_t head, tail;
} LhQueue;

/* Data in flight of the op that a stream runs. */
typedef struct {
    uint32_t messages;
    GArray *motions; /* of LhMotion; while messages are in flight, the last one is still open */
} LhTransit;

/* The state of a rank, in whole cache lines. */
typedef struct {
    LhNodes nodes;
    LhQueue *queues; /* of its streams; borrowed */
    LhTime host_ps;  /* when the host has issued its last op; relative to the end of the gate, if
                        there is one */
    uint32_t index;
    uint32_t gate;                    /* sync that the host waits for, or LH_NO_NODE */
    bool ended;                       /* the program has no more ops to issue */
    bool listed;                      /* is in LhEngine.news */
    bool read;                        /* the next step has been read ahead: lookahead.h */
    uint8_t computing, communicating; /* number of streams of each kind with a running op */
    uint8_t copying;                  /* of the latter, those that run a host copy */
    uint16_t waiting;                 /* bit set of streams whose head has not started */
    uint16_t empty;                   /* bit set of streams without ops */
    uint16_t ahead; /* bit set of streams with ops that were read ahead, but are not issued */
    double speed;   /* of all compute, as a fraction of full speed */
    LhIdleAccounting account;
    LhTime communicating_ps;
    uint32_t moving[LH_TIERS]; /* messages in flight, by tier */
    uint32_t skipped_ops;      /* ops skipped by fast-forward: program id = node id + skipped_ops */
    uint32_t ctas;             /* SMs held by running communication */
} LhSimRank;

G_STATIC_ASSERT(sizeof(LhSimRank) % LH_CACHE_LINE_BYTES == 0);

/* Kinds of flows on the network. */
enum {
    LH_ENDS_MESSAGE,
    LH_ENDS_HOP,      /* hop of a collective: see LhMoving.hops */
    LH_ENDS_MEASURED, /* traffic of a measured collective on a link: likewise */
};

/* Both ends of a message on the network. */
typedef struct {
    uint32_t ranks[2], nodes[2]; /* sender, receiver */
    uint8_t tier;
    uint8_t of; /* LH_ENDS_... */
    bool whole; /* of a collective all of whose hops are simulated, not only the representatives' */
    uint32_t stands; /* number of messages that it represents, including itself */
} LhEnds;

typedef struct {
    LhCollective *collective;
    LhHop hop;
} LhMovingHop;

/* Flows on the network, by index. */
typedef struct {
    LhFlows *flows;
    LhLinkUtilization *load; /* NULL: not requested */
    LhEnds *ends;
    LhMovingHop *hops;     /* of flows of collectives */
    uint32_t count;        /* allocated length of `ends` ... */
    uint32_t hops_count;   /* ... and of `hops` */
    uint32_t under_way[2]; /* number of messages and folded hops in flight; of hops with `whole` */
} LhMoving;

/* Ranks that share the cores of one machine: LhDevice.machine_ranks. */
typedef struct {
    uint32_t computing, holding; /* number of ranks with kernels running; with messages in flight */
} LhMachine;

/* Ranks to advance, first in first out. Ranks with news are queued instead of advanced recursively,
 * so that depth and order do not depend on which rank woke which. */
typedef struct {
    uint32_t *ranks;
    uint32_t first, count, mask;
} LhNews;

/* Bytes of collectives whose equivalent members may send over different routes, so every member's
 * bytes are counted: by equivalence over rows, over shifts, over both. NULL: no folding. */
enum { LH_APART_ROWS, LH_APART_SHIFTS, LH_APART_BOTH, LH_APARTS };

typedef struct {
    LhSymmetryGroups fold; /* the equivalence of ranks in these collectives */
    uint64_t *sent_bytes;  /* [ranks x tiers] */
    uint64_t *link_bytes;  /* [links] */
} LhApart;

typedef struct {
    const LhSimParams *params;
    const LhProgram *program;
    const LhNetwork *network;
    LhCost cost;
    LhSymmetryGroups fold; /* ranks represented by others */
    bool folded;           /* some rank is represented by another */
    bool differ, row;      /* folding proved wrong in a collective; over a row */
    bool free_network;     /* communication takes no time */
    bool contention;       /* communication holds SMs */
    uint32_t ranks_count, streams_count, streams_shift;
    uint16_t compute_streams, all_streams; /* bit sets */
    LhTime now, launch_ps, sync_ps;
    LhTime skipped_ps;   /* time skipped by fast-forward: simulated time = now + skipped_ps */
    LhTime least_ps;     /* lower bound of the end of the run, from tails_ps of its ranks */
    int host_provenance; /* LhProvenance: the weakest of the constants used for host times */
    LhSimRank *ranks;
    LhQueue *queues;     /* [ranks << streams_shift] */
    LhTransit *transits; /* likewise; NULL: not requested */
    char *cursors;       /* [ranks] of cursor_bytes: lh_engine_cursor() */
    gsize cursor_bytes;
    LhLiveStates *memory;
    uint32_t *memory_states; /* [ranks] */
    LhRankResult *results;
    LhApart apart[LH_APARTS];
    uint64_t *whole_bytes; /* [links] the part of `apart` that the network counts as well */
    LhOutOfMemory
        *out_of_memory;  /* the first op so far that exceeds the memory limit; NULL: none */
    double *slowdown;    /* per rank; NULL: none */
    LhMachine *machines; /* NULL: each rank has cores of its own */
    LhHeap heap;         /* item rank << streams_shift | stream, then flows */
    LhMatcher matcher;
    LhMoving moving;
    LhCollectives *collectives;
    LhExposed **exposed;    /* [ranks], of some of them; NULL: not requested */
    LhPathRecorder *causes; /* NULL: the critical path is not requested */
    LhFastForward *repeat;  /* NULL: no fast-forward */
    LhLookahead **ahead;    /* [ranks] NULL: the host is not ahead of its ops; NULL: it never is */
    /* [ranks], of LhTime: lower bound of the remaining time after each op; NULL: not known. NULL:
     * of no rank. */
    const GArray **tails_ps;
    LhNews news;
    LhOpBuffer buffer;
    uint32_t tiers_used; /* bit set of LhTier */
    uint64_t events, ops;
    GError *error;
} LhEngine;

/* Folding: whether the rank is simulated itself; its representative; how many ranks it
 * represents. */
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

static inline LhCursor *
lh_engine_cursor(const LhEngine *e, uint32_t r)
{
    return (LhCursor *)(void *)(e->cursors + r * e->cursor_bytes);
}

/* The fraction of its time that @op, number @id of the program of rank @r, takes. */
static inline double
lh_engine_time_share(const LhEngine *e, uint32_t r, uint32_t id, const LhOp *op,
                     const LhOpBuffer *buffer)
{
    const LhSimParams *p = e->params;

    return p->time_share == NULL ? 1 : p->time_share(p->time_share_data, r, id, op, buffer);
}

/* The exposed communication of the rank; NULL: not requested. */
static inline LhExposed *
lh_engine_exposed(const LhEngine *e, const LhSimRank *rank)
{
    return e->exposed == NULL ? NULL : e->exposed[rank->index];
}

/* The heap item of a stream's events. */
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

/* The first stream of a set that is not empty. */
static inline uint32_t
lh_first_stream(uint32_t streams)
{
    return (uint32_t)__builtin_ctz(streams);
}

/* Queues the rank to be advanced in this instant. */
static inline void
lh_news_add(LhEngine *e, uint32_t r)
{
    if (e->ranks[r].listed)
        return;
    e->ranks[r].listed = true;
    e->news.ranks[(e->news.first + e->news.count++) & e->news.mask] = r;
}

/* engine.c */

/* Runs the simulation to its end or to e->error. */
void lh_engine_run(LhEngine *e);

/* op_end.c */

/* Reclassifies the rank's idle time from now on. The rank does not compute. */
void lh_engine_classify_idle(LhEngine *e, LhSimRank *rank);

/* Reclassifies what the rank does from now on: busy, or why it is idle. */
static inline void
lh_engine_classify(LhEngine *e, LhSimRank *rank)
{
    if (rank->computing > 0)
        lh_idle_accounting_change(&rank->account, &e->results[rank->index], e->now, LH_BUSY);
    else
        lh_engine_classify_idle(e, rank);
}

/* Completes op @id, the head of its stream, and moves the stream on. */
void lh_engine_complete(LhEngine *e, LhSimRank *rank, uint32_t id);

/* host.c */

/* The host of @rank, which has issued all earlier ops at @host_ps, reads @op, which is not a sync:
 * counts it and advances that time. */
void lh_host_read(LhEngine *e, const LhSimRank *rank, const LhOp *op, LhTime *host_ps);

/* Issues the ops of the next step of the program; false if there are none. */
bool lh_host_pull_step(LhEngine *e, LhSimRank *rank);

/* lookahead.c */

/* Lets hosts read ahead if they may in this run; frees what they have read. */
void lh_lookahead_init(LhEngine *e);
void lh_lookahead_clear(LhEngine *e);

/* lh_host_pull() for a host that reads ahead, with some empty queue: reads a step, or issues one if
 * it must. */
bool lh_lookahead_pull(LhEngine *e, LhSimRank *rank);

/* The first op that was read ahead for a stream whose queue is empty: issues it if it may be able
 * to start, else returns LH_NO_NODE. */
uint32_t lh_lookahead_head(LhEngine *e, LhSimRank *rank, uint32_t stream);

/* Op @op of the program of @rank, which was read ahead, is issued. */
void lh_lookahead_issue(LhEngine *e, LhSimRank *rank, const LhOp *op);

/* Bit set of streams that may have an op to start: their head waits, or their queue is empty and
 * the host has read ahead. */
static inline uint32_t
lh_open_streams(const LhSimRank *rank)
{
    return rank->waiting | (rank->empty & rank->ahead);
}

/* The next op of an open stream, or LH_NO_NODE if it cannot start. Nodes and unmatched messages may
 * move. */
static inline uint32_t
lh_next_op(LhEngine *e, LhSimRank *rank, uint32_t stream)
{
    const uint32_t head = lh_queue(rank, stream)->head;

    return head != LH_NO_NODE ? head : lh_lookahead_head(e, rank, stream);
}

/* Issues the next step if some stream is empty and the host may go on. Returns true if some op may
 * be able to start for that. */
static inline bool
lh_host_pull(LhEngine *e, LhSimRank *rank)
{
    const LhNodes *nodes = &rank->nodes;

    if (rank->ended || rank->gate != LH_NO_NODE || rank->empty == 0)
        return false;
    if (e->ahead != NULL && (nodes->issued - nodes->first >= LH_LOOKAHEAD_FROM || rank->read))
        return lh_lookahead_pull(e, rank);
    return lh_nodes_in_window(nodes, nodes->issued) && lh_host_pull_step(e, rank);
}

/* Passes a sync whose earlier ops are all complete: the host goes on, and ops issued after the sync
 * get their time of issue. False if there is none to pass. */
bool lh_host_pass_sync(LhEngine *e, LhSimRank *rank);

/* memory_account.c */

/* The memory of rank @r now. Valid until the next change of any rank's. */
static inline const LhLive *
lh_memory_now(const LhEngine *e, uint32_t r)
{
    return lh_live_states_get(e->memory, e->memory_states[r]);
}

/* Accounts for memory in use before the first op. */
void lh_memory_begins(LhEngine *e);

/* Accounts for @node, op @id of the program of @rank, an alloc or a free, which its host reaches at
 * @time_ps of the run. */
void lh_memory_changes(LhEngine *e, const LhSimRank *rank, uint32_t id, const LhNode *node,
                       LhTime time_ps);

/* sm_sharing.c */

/* Sets the rates of all running kernels of the rank, and their end times. */
void lh_share_sms(LhEngine *e, LhSimRank *rank);

/* Only where ranks share cores: call when the number of ranks of this machine that compute, or have
 * messages in flight, has changed. Sets the speed of all its ranks and the rates of their kernels.
 */
void lh_share_cores(LhEngine *e, LhSimRank *rank);

/* The machine of a rank. */
static inline LhMachine *
lh_engine_machine(const LhEngine *e, const LhSimRank *rank)
{
    return &e->machines[rank->index / e->params->device->machine_ranks];
}

/* Communication takes @ctas more SMs (negative: gives them back); concurrent compute has the
 * rest. */
void lh_share_change(LhEngine *e, LhSimRank *rank, int32_t ctas);

static inline void
lh_share_hold(LhEngine *e, LhSimRank *rank, int32_t ctas)
{
    if (ctas != 0)
        lh_share_change(e, rank, ctas);
}

/* host_copies.c: copies between device and host, and kernels on the host's CPU, whose nodes are of
 * kind LH_OP_COMPUTE */

static inline bool
lh_node_is_of_host(const LhNode *node)
{
    return node->kind == LH_OP_COMPUTE &&
           (node->on_cpu || lh_kernels[node->kernel]->cost == LH_COST_HOST_LINK);
}

/* Copy or kernel @id of @rank starts; one has ended. */
void lh_host_copy_start(LhEngine *e, LhSimRank *rank, LhNode *node, uint32_t id);
void lh_host_copy_end(LhEngine *e, LhSimRank *rank);

/* Whether a kernel that is next on its stream waits for one; @alone: and for nothing else. */
bool lh_host_copy_is_awaited(LhEngine *e, LhSimRank *rank, bool *alone);

/* transfers.c: what messages of exchanges and hops of collectives share */

/* Ends the run with an error: @link on the route has failed. */
void lh_transfer_refuse(LhEngine *e, uint32_t source, uint32_t destination, uint32_t link);

/* Returns false and ends the run if a link of the route has failed. The first function checks every
 * link; the second skips that if the network has no faults. */
bool lh_transfer_is_open(LhEngine *e, uint32_t source, uint32_t destination, const LhRoute *route);

static inline bool
lh_transfer_check_route(LhEngine *e, uint32_t source, uint32_t destination, const LhRoute *route)
{
    return e->network->faults == NULL || lh_transfer_is_open(e, source, destination, route);
}

/* Sets @route to that of a hop of the collective. */
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

/* Ends the run, which must be repeated with less folding. @row: the row symmetry fails. */
void lh_transfer_differ(LhEngine *e, bool row);

/* Counts @bytes that rank @r sends over a route of @tier. */
static inline void
lh_transfer_count_sent(LhEngine *e, uint32_t r, uint8_t tier, uint64_t bytes)
{
    e->results[r].bytes_sent += bytes;
    e->results[r].bytes_by_tier[tier] += bytes;
}

/* Counters of the bytes of members of a collective whose equivalent members may send as much over
 * different routes. */
static inline const LhApart *
lh_transfer_apart(const LhEngine *e, const LhSymmetricMembers *likes)
{
    return &e->apart[!likes->rows        ? LH_APART_SHIFTS
                     : likes->shifts > 1 ? LH_APART_BOTH
                                         : LH_APART_ROWS];
}

/* Counts the bytes that such a member sends. */
void lh_transfer_count_apart(LhEngine *e, const LhSymmetricMembers *likes, const LhRoute *route,
                             uint64_t bytes);

/* Attributes the idle time of the rank, with nothing in flight for it, until @late arrived. */
static inline void
lh_transfer_end_wait(LhEngine *e, LhSimRank *rank, uint32_t late)
{
    if (rank->account.why == LH_IDLE_IMBALANCE && rank->index != late)
        lh_idle_accounting_wait(&rank->account, &e->results[rank->index], &e->ranks[late].account,
                                &e->results[late], e->now);
}

/* The fraction of its time that the op takes: LhSimParams.time_share. */
static inline double
lh_transfer_share(const LhEngine *e, uint32_t rank, uint32_t op)
{
    return e->params->time_share == NULL
               ? 1
               : lh_node(&e->ranks[lh_engine_like(e, rank)].nodes, op)->share;
}

/* CTAs of a message on devices where LhDevice.messages_hold gives what all messages of a rank hold
 * together: 1, a mark only. Else 0. */
static inline uint16_t
lh_transfer_ctas_min(const LhEngine *e)
{
    return e->params->device->messages_hold > 0 ? 1 : 0;
}

/* Starts moving @bytes: updates both ends, which have waited for @late. */
void lh_transfer_begin(LhEngine *e, const LhEnds *ends, uint64_t bytes, uint32_t late);

/* Starts the flow on the network, which takes @share of its time. Returns the flow. */
uint32_t lh_transfer_start(LhEngine *e, const LhEnds *ends, const LhRoute *route, uint64_t bytes,
                           double share);

/* Notes the collective and the hop that @flow belongs to. */
void lh_transfer_set_hop(LhEngine *e, uint32_t flow, const LhMovingHop *hop);

/* Delivers a message: both ends have @pieces fewer to wait for. */
void lh_transfer_deliver(LhEngine *e, const LhEnds *ends, uint32_t pieces);

/* collective_members.c */

/* Joins the causes of all members: what follows in the collective waits for all of them. */
void lh_members_gather(LhEngine *e, const LhCollective *c);

/* Completes the ops of all members of the collective. The last message arrived at rank @late. */
void lh_members_end(LhEngine *e, LhCollective *c, uint32_t late);

/* The fraction of its time that the collective takes: the smallest of its members. */
double lh_members_share(const LhEngine *e, const LhCollective *c);

/* All members are there, @late last: the member at @position starts moving data. */
void lh_members_meet(LhEngine *e, const LhCollective *c, uint32_t position, uint32_t late);

/* measured_collectives.c */

/* Starts the collective: all members are there, @late last. */
void lh_measured_start(LhEngine *e, LhCollective *c, uint32_t late);

/* One of the flows of a measured collective has arrived. */
void lh_measured_arrived(LhEngine *e, LhCollective *c, const LhEnds *ends);

/* closed_form_collectives.c */

/* Counts the bytes that the member at @position, and those it represents, send in a closed form. */
void lh_closed_form_count(LhEngine *e, LhNode *node, const LhCollective *c, uint32_t position);

/* Schedules the end of the collective; @late was the last member to arrive. */
void lh_closed_form_finish(LhEngine *e, LhCollective *c, uint32_t late);

/* collective_ops.c */

void lh_collective_start(LhEngine *e, LhSimRank *rank, uint32_t id);

/* The last byte of @flow, a hop of a collective, has been sent; @flow has arrived. */
void lh_hop_left(LhEngine *e, uint32_t flow);
void lh_hop_arrived(LhEngine *e, uint32_t flow);

/* messages.c */

void lh_exchange_start(LhEngine *e, LhSimRank *rank, uint32_t id);

/* The data of @flow has arrived. */
void lh_flow_arrived(LhEngine *e, uint32_t flow);

/* transit.c: called only if e->transits is set, except for the first two */

/* Allocates e->transits if there is a timeline; frees it. */
void lh_transit_init(LhEngine *e);
void lh_transit_clear(LhEngine *e);

/* The op at the head of a stream starts, with nothing in flight. */
void lh_transit_begin(LhEngine *e, const LhSimRank *rank, uint32_t stream);

/* A message of the op departs; arrives. */
void lh_transit_leaves(LhEngine *e, const LhSimRank *rank, uint32_t stream);
void lh_transit_arrives(LhEngine *e, const LhSimRank *rank, uint32_t stream);

/* The op is done: sets the motions of its record. */
void lh_transit_end(LhEngine *e, LhTimelineRecord *record);

/* fast_forward.c */

/* NULL if every op must be simulated, or layers may differ. */
LhFastForward *lh_fast_forward_new(const LhEngine *e);
void lh_fast_forward_free(LhFastForward *repeat, uint32_t ranks);

/* @op of the rank has been issued as @node; ids are those of nodes. @first: first op of its
 * step. */
void lh_fast_forward_issue(LhEngine *e, const LhSimRank *rank, LhNode *node, const LhOp *op,
                           bool first);

/* Hash an event of a flow; of an op, by its node id. */
void lh_fast_forward_note_flow(LhEngine *e, LhFastForwardEvent event, uint32_t flow);
void lh_fast_forward_note_op(LhEngine *e, LhFastForwardEvent event, const LhSimRank *rank,
                             uint32_t id);

/* Ends an instant: closes the window if one is due. */
void lh_fast_forward_instant(LhEngine *e);

/* result.c */
void lh_engine_init(LhEngine *e, const LhSimParams *params, const LhSymmetryGroups *fold);
void lh_engine_clear(LhEngine *e);
/* Returns the result. Sets e->error if a link carried more than its bandwidth allows, which is a
 * bug. */
LhSimResult *lh_engine_summarise(LhEngine *e);
