/*
 * The event loop. Each rank has a host that issues the ops of its program and in-order streams that
 * run them; an op starts when its stream reaches it, the ops it names in `after` are complete and
 * the host has issued it.
 *
 * All events of one instant are handled before the network is solved again, and ranks with news
 * wait in a list instead of calling each other, so depth and order do not depend on who woke whom.
 * A rank holds only the ops that its host is ahead of its device (at most QUEUE_DEPTH), never the
 * whole program.
 */
#include "sim/sim.h"

#include "base/error.h"
#include "base/rng.h"
#include "sim/collective.h"
#include "sim/cost.h"
#include "sim/flows.h"

#include <string.h>

#define NONE UINT32_MAX
#define QUEUE_DEPTH 64 /* ops a host may be ahead while some stream of its rank still has work */
#define PROGRESS_EVENTS (1u << 16)
#define REPORTED_RANKS 4

typedef enum {
    NODE_QUEUED,
    NODE_RUNNING,
    NODE_DONE,
} NodeState;

/* An op between its issue and its completion. What every op needs comes first: a cache line. */
typedef struct {
    uint8_t state; /* NodeState */
    uint8_t kind;  /* LhOpKind */
    uint8_t stream;
    uint8_t after_count;
    uint32_t next;    /* id of the next op of its stream, or NONE */
    uint32_t gate;    /* id of the sync that its host waits for before issuing it, or NONE */
    uint32_t pending; /* messages not yet delivered */
    uint32_t posts;   /* first message, or NONE; collectives: their ticket */
    uint16_t ctas;
    uint8_t tier; /* highest tier of its messages; LH_TIERS: none */
    uint8_t kernel;
    LhTime issued_ps; /* with a gate: relative to the end of that sync */
    double work_ps;   /* compute: what is left, in time alone on the device, as of updated_ps */
    uint32_t after[LH_OP_AFTER_MAX];
    uint32_t step;
    uint8_t phase;
    bool timed; /* a collective whose end is in the queue */
    LhTime start_ps, updated_ps;
    double occupancy; /* compute: share of the SMs that it fills when alone, (0, 1] */
    double rate;      /* compute: of work_ps, while it runs; 1: as if alone */
    uint64_t bytes, flops;
} Node;

/* One message of an exchange, from issue until its partner is there too. */
typedef struct {
    uint32_t rank, node;
    uint32_t peer;
    uint16_t tag;
    bool send;
    uint32_t next;        /* of the same op */
    uint32_t bucket_next; /* of the same bucket, once posted */
    uint64_t bytes;
} Post;

/* Both ends of a message on the network. */
typedef struct {
    uint32_t ranks[2], nodes[2]; /* sender, receiver */
    uint8_t tier;
    bool hop; /* of a collective: Engine.hops says which */
} Ends;

typedef struct {
    LhCollective *collective;
    LhHop hop;
} CollectiveHop;

/* Why a rank is not computing, or that it is. */
#define BUSY LH_IDLE_PARTS

#define SPANS 8 /* a power of two */

/* A stretch of a rank's past: what it did from one moment to another. */
typedef struct {
    LhTime from_ps, to_ps;
    uint8_t why; /* LhIdlePart or BUSY */
} Span;

/* A stream's queue: ids of the op that is due and of the last one, or NONE. */
typedef struct {
    uint32_t head, tail;
} Stream;

typedef struct {
    Node *nodes; /* ring buffer by op id */
    uint32_t nodes_mask;
    uint32_t first;  /* oldest op that is not done */
    uint32_t issued; /* id of the next op to come */
    uint32_t gate;   /* sync the host waits for, or NONE */
    LhTime host_ps; /* when the host has issued its last op; relative to the gate's end, if there is
                       one */
    bool ended;     /* the program has no more ops */
    bool listed;    /* in Engine.news */
    uint8_t why;    /* LhIdlePart or BUSY, since accounted_ps */
    uint8_t computing, communicating; /* streams of each kind with a running op */
    uint32_t ctas;                    /* SMs held by running communication */
    LhTime accounted_ps, communicating_ps;
    Stream streams[LH_STREAMS_MAX];
    uint32_t moving[LH_TIERS]; /* messages on the way, by tier */
    double speed;              /* of all compute, of full */
    Span spans[SPANS];         /* the latest ones; spans_count of all so far */
    uint32_t spans_count;
    LhCursor cursor;
    uint64_t memory_bytes;
    uint64_t memory_by_tensor[LH_TENSOR_KINDS];
} Rank;

typedef struct {
    const LhSimParams *params;
    const LhProgram *program;
    LhNetwork network;
    LhCost cost;
    bool free_network;
    bool contention;
    uint32_t ranks_count, streams_count, streams_shift;
    LhTime now;
    Rank *ranks;
    LhRankResult *results;
    double *slowdown; /* per rank; NULL: none */
    LhHeap heap;      /* item rank << streams_shift | stream, then flows */
    LhFlows *flows;
    Ends *ends;          /* by flow */
    CollectiveHop *hops; /* likewise */
    uint32_t ends_count;
    Post *posts;
    uint32_t posts_count, posts_capacity, posts_free;
    uint32_t *buckets; /* posted messages without a partner, by (source, destination, tag) */
    uint32_t buckets_mask;
    uint32_t *news; /* ranks to look at, first in first out */
    uint32_t news_first, news_count, news_mask;
    LhOpBuffer buffer;
    LhCollectives *collectives;
    LhTime launch_ps, sync_ps;
    uint32_t tiers_used; /* bit set */
    uint64_t events, ops;
    uint32_t queue_depth;
    GError *error;
} Engine;

static inline Node *
node_of(Rank *rank, uint32_t id)
{
    return &rank->nodes[id & rank->nodes_mask];
}

static inline bool
is_done(Rank *rank, uint32_t id)
{
    return id < rank->first || node_of(rank, id)->state == NODE_DONE;
}

static inline uint32_t
rank_index(const Engine *e, const Rank *rank)
{
    return (uint32_t)(rank - e->ranks);
}

static inline uint32_t
item_of(const Engine *e, const Rank *rank, uint32_t stream)
{
    return rank_index(e, rank) << e->streams_shift | stream;
}

static inline bool
stream_is_compute(const Engine *e, uint32_t stream)
{
    return e->program->streams[stream].kind == LH_STREAM_COMPUTE;
}

/* Puts the rank on the list of those to look at in this instant. */
static inline void
touch(Engine *e, uint32_t r)
{
    if (e->ranks[r].listed)
        return;
    e->ranks[r].listed = true;
    e->news[(e->news_first + e->news_count++) & e->news_mask] = r;
}

/* ---- accounting ---- */

static inline void
spend(Engine *e, Rank *rank, uint8_t why, LhTime from, LhTime to)
{
    LhRankResult *result = &e->results[rank_index(e, rank)];

    if (why == BUSY)
        result->busy_ps += to - from;
    else
        result->idle_ps[why] += to - from;
    rank->spans[rank->spans_count++ % SPANS] = (Span){ from, to, why };
    rank->accounted_ps = to;
}

static inline void
account(Engine *e, Rank *rank)
{
    if (rank->accounted_ps < e->now)
        spend(e, rank, rank->why, rank->accounted_ps, e->now);
}

/*
 * The rank has waited for @other and nothing moved: it was idle for whatever reason @other was
 * late. Where that one computed, the work is out of balance; where it was idle itself, its reason
 * is passed on, so that a slow link is charged to the link by everyone it holds up. Beyond what is
 * remembered of its past: imbalance.
 */
static void
account_wait(Engine *e, Rank *rank, Rank *other)
{
    LhTime from = rank->accounted_ps;
    uint32_t oldest;

    account(e, other);
    oldest = other->spans_count > SPANS ? other->spans_count - SPANS : 0;
    for (uint32_t i = oldest; i < other->spans_count; i++) {
        Span span = other->spans[i % SPANS];

        if (span.to_ps <= from)
            continue;
        if (span.from_ps > from)
            spend(e, rank, LH_IDLE_IMBALANCE, from, span.from_ps);
        spend(e, rank, span.why == BUSY ? LH_IDLE_IMBALANCE : span.why, rank->accounted_ps,
              span.to_ps);
        from = span.to_ps;
    }
    account(e, rank);
}

/* Every op named in `after` is complete. Those that are leave the list. */
static inline bool
is_free(Rank *rank, Node *node)
{
    while (node->after_count > 0) {
        if (!is_done(rank, node->after[node->after_count - 1]))
            return false;
        node->after_count--;
    }
    return true;
}

/* The op that is due next on the stream could run, had its host issued it. */
static inline bool
waits_for_host(Engine *e, Rank *rank, uint32_t stream)
{
    Node *node;

    if (rank->streams[stream].head == NONE)
        return false;
    node = node_of(rank, rank->streams[stream].head);
    return node->state == NODE_QUEUED && node->gate == NONE && node->issued_ps > e->now &&
           is_free(rank, node);
}

/*
 * Why the rank computes nothing right now: its host is late with the op that is due; or data for it
 * is on the way (the highest tier that moves); or it waits for another rank to get there.
 */
static uint8_t
why_idle(Engine *e, Rank *rank)
{
    for (uint32_t s = 0; s < e->streams_count; s++)
        if (stream_is_compute(e, s) && waits_for_host(e, rank, s))
            return LH_IDLE_HOST;
    for (uint32_t tier = LH_TIERS; tier-- > 0;)
        if (rank->moving[tier] > 0)
            return (uint8_t)(LH_IDLE_COMM + tier);
    if (rank->communicating > 0)
        return LH_IDLE_IMBALANCE;
    for (uint32_t s = 0; s < e->streams_count; s++)
        if (waits_for_host(e, rank, s))
            return LH_IDLE_HOST;
    return LH_IDLE_IMBALANCE;
}

static inline void
classify(Engine *e, Rank *rank)
{
    uint8_t why = rank->computing > 0 ? BUSY : why_idle(e, rank);

    if (why == rank->why)
        return;
    account(e, rank);
    rank->why = why;
}

/*
 * Kernels of several compute streams share the SMs that communication leaves, max-min fairly: none
 * gets more than it fills when alone, and what one cannot fill goes to the others.
 */
static void
share_sms(Engine *e, Rank *rank)
{
    Node *running[LH_STREAMS_MAX];
    uint32_t count = 0, open;
    double left = 1, share;
    bool capped;

    for (uint32_t s = 0; s < e->streams_count; s++) {
        Node *node;

        if (rank->streams[s].head == NONE)
            continue;
        node = node_of(rank, rank->streams[s].head);
        if (node->state != NODE_RUNNING || node->kind != LH_OP_COMPUTE)
            continue;
        node->work_ps -= (double)(e->now - node->updated_ps) * node->rate;
        node->work_ps = MAX(node->work_ps, 0);
        node->updated_ps = e->now;
        node->rate = 0;
        running[count++] = node;
    }
    open = count;
    do {
        share = left / open;
        capped = false;
        for (uint32_t i = 0; i < count; i++) {
            if (running[i]->rate > 0 || running[i]->occupancy > share)
                continue;
            running[i]->rate = rank->speed;
            left -= running[i]->occupancy;
            open--;
            capped = true;
        }
    } while (capped && open > 0);
    for (uint32_t i = 0; i < count; i++) {
        Node *node = running[i];

        if (node->rate <= 0)
            node->rate = rank->speed * share / node->occupancy;
        lh_heap_set(&e->heap, item_of(e, rank, node->stream),
                    e->now + lh_time_from_ps(node->work_ps / node->rate));
    }
}

/* Communication kernels hold SMs; compute that runs beside them has the rest. */
static void
set_contention(Engine *e, Rank *rank, int32_t ctas)
{
    if (ctas == 0)
        return;
    rank->ctas = (uint32_t)((int32_t)rank->ctas + ctas);
    rank->speed = 1 - MIN((double)rank->ctas / (double)e->params->device->sm_count, 0.9);
    if (rank->computing > 0)
        share_sms(e, rank);
}

static void
record(Engine *e, Rank *rank, uint32_t id)
{
    const Node *node = node_of(rank, id);
    LhTimelineRecord record = { .rank = rank_index(e, rank),
                                .op = id,
                                .kind = node->kind,
                                .stream = node->stream,
                                .phase = node->phase,
                                .tier = node->tier,
                                .step = node->step,
                                .kernel = (LhKernelId)node->kernel,
                                .issued_ps = node->issued_ps,
                                .start_ps = node->start_ps,
                                .end_ps = e->now,
                                .bytes = node->bytes,
                                .flops = node->flops };

    e->params->timeline(e->params->timeline_data, &record);
}

/* ---- completion ---- */

static inline void
retire(Rank *rank)
{
    while (rank->first < rank->issued && node_of(rank, rank->first)->state == NODE_DONE)
        rank->first++;
}

/* The head of its stream is done: the stream moves on. */
static void
complete(Engine *e, Rank *rank, uint32_t id)
{
    Node *node = node_of(rank, id);

    node->state = NODE_DONE;
    e->results[rank_index(e, rank)].finish_ps = e->now;
    rank->streams[node->stream].head = node->next;
    if (node->next == NONE)
        rank->streams[node->stream].tail = NONE;
    if (node->kind == LH_OP_COMPUTE) {
        if (--rank->computing > 0)
            share_sms(e, rank);
        e->events++;
    } else {
        if (--rank->communicating == 0)
            e->results[rank_index(e, rank)].comm_ps += e->now - rank->communicating_ps;
        set_contention(e, rank, -(int32_t)node->ctas);
    }
    if (e->params->timeline != NULL)
        record(e, rank, id);
    retire(rank);
}

/* The message has arrived: so many less to wait for at both ends. */
static void
deliver(Engine *e, const Ends *ends, uint32_t pieces)
{
    e->events++;
    for (uint32_t i = 0; i < 2; i++) {
        Rank *rank = &e->ranks[ends->ranks[i]];
        Node *node = node_of(rank, ends->nodes[i]);

        rank->moving[ends->tier]--;
        node->pending -= pieces;
        if (node->pending == 0) {
            complete(e, rank, ends->nodes[i]);
            touch(e, ends->ranks[i]);
        } else if (rank->why != BUSY) {
            classify(e, rank);
        }
    }
}

/* ---- messages ---- */

static uint32_t
post_new(Engine *e)
{
    uint32_t index = e->posts_free;

    if (index != NONE) {
        e->posts_free = e->posts[index].next;
        return index;
    }
    if (e->posts_count == e->posts_capacity) {
        e->posts_capacity = MAX(256, e->posts_capacity * 2);
        e->posts = g_renew(Post, e->posts, e->posts_capacity);
    }
    return e->posts_count++;
}

static inline void
post_free(Engine *e, uint32_t index)
{
    e->posts[index].next = e->posts_free;
    e->posts_free = index;
}

/* Equal distances land in neighbouring buckets, so regular patterns neither collide nor miss the
 * cache. */
static inline uint32_t
bucket_of(const Engine *e, uint32_t source, uint32_t destination, uint16_t tag)
{
    uint32_t mixed = (destination - source) * UINT32_C(0x9E3779B1) + tag * UINT32_C(0x85EBCA6B);

    return (destination + (mixed ^ mixed >> 15)) & e->buckets_mask;
}

static inline uint32_t
source_of(const Post *post)
{
    return post->send ? post->rank : post->peer;
}

static inline uint32_t
destination_of(const Post *post)
{
    return post->send ? post->peer : post->rank;
}

static void
route_failed(Engine *e, uint32_t source, uint32_t destination, uint32_t link)
{
    g_autofree char *name = lh_network_link_name(&e->network, link);

    if (e->error == NULL)
        g_set_error(&e->error, LH_ERROR, LH_ERROR_RUNTIME,
                    "rank %u cannot send to rank %u: link %s has failed", source, destination,
                    name);
}

static void
count_sent(Engine *e, Rank *rank, Node *node, uint8_t tier, uint64_t bytes)
{
    LhRankResult *result = &e->results[rank_index(e, rank)];

    result->bytes_sent += bytes;
    result->bytes_by_tier[tier] += bytes;
    node->bytes += bytes;
}

/* False, and the run is over, if a link on the way has failed. */
static bool
check_route(Engine *e, uint32_t source, uint32_t destination, const LhRoute *route)
{
    for (uint32_t i = 0; i < route->links_count && e->network.faults != NULL; i++)
        if (lh_network_link(&e->network, route->links[i]).bandwidth_bytes_per_s <= 0) {
            route_failed(e, source, destination, route->links[i]);
            return false;
        }
    return true;
}

/* Both ends learn that @bytes move from now on, for which they have waited for @late. */
static void
set_moving(Engine *e, const Ends *ends, uint64_t bytes, uint32_t late)
{
    e->tiers_used |= 1u << ends->tier;
    for (uint32_t i = 0; i < 2; i++) {
        Rank *rank = &e->ranks[ends->ranks[i]];
        Node *node = node_of(rank, ends->nodes[i]);

        node->tier = node->tier == LH_TIERS ? ends->tier : MAX(node->tier, ends->tier);
        if (i == 0)
            count_sent(e, rank, node, ends->tier, bytes);
        rank->moving[ends->tier]++;
        if (rank->why == LH_IDLE_IMBALANCE && ends->ranks[i] != late)
            account_wait(e, rank, &e->ranks[late]);
        if (rank->why != BUSY)
            classify(e, rank);
    }
}

static uint32_t
start_flow(Engine *e, const Ends *ends, const LhRoute *route, uint64_t bytes)
{
    uint32_t flow = lh_flows_start(e->flows, e->now, route, bytes);

    if (flow >= e->ends_count) {
        e->ends_count = MAX(64, e->ends_count * 2);
        e->ends = g_renew(Ends, e->ends, e->ends_count);
        e->hops = g_renew(CollectiveHop, e->hops, e->ends_count);
    }
    e->ends[flow] = *ends;
    return flow;
}

/* Both ends are there: the message starts to move. */
static void
start_message(Engine *e, const Post *sender, const Post *receiver, uint32_t late)
{
    Ends ends = { { sender->rank, receiver->rank }, { sender->node, receiver->node }, 0, false };
    LhRoute route;

    lh_network_route(&e->network, sender->rank, receiver->rank, &route);
    if (!check_route(e, sender->rank, receiver->rank, &route))
        return;
    ends.tier = route.tier;
    set_moving(e, &ends, sender->bytes, late);
    if (e->free_network)
        deliver(e, &ends, 1);
    else
        start_flow(e, &ends, &route, sender->bytes);
}

/* Looks for the partner of a message; without one it waits in its bucket. Equal keys match in
 * posting order. */
static void
post_message(Engine *e, uint32_t index)
{
    Post *post = &e->posts[index];
    uint32_t source = source_of(post), destination = destination_of(post);
    uint32_t *link = &e->buckets[bucket_of(e, source, destination, post->tag)];

    while (*link != NONE) {
        uint32_t found = *link;
        Post *other = &e->posts[found];

        if (other->send != post->send && other->tag == post->tag && source_of(other) == source &&
            destination_of(other) == destination) {
            *link = other->bucket_next;
            post_free(e, found);
            post_free(e, index);
            start_message(e, post->send ? post : other, post->send ? other : post, post->rank);
            return;
        }
        link = &other->bucket_next;
    }
    post->bucket_next = NONE;
    *link = index;
}

/* The SMs that the op's kernel holds from now on, waiting or not. */
static void
hold_sms(Engine *e, Rank *rank, Node *node)
{
    LhRoute route;

    for (uint32_t i = node->posts; i != NONE; i = e->posts[i].next) {
        lh_network_route(&e->network, source_of(&e->posts[i]), destination_of(&e->posts[i]),
                         &route);
        node->ctas = MAX(node->ctas, route.ctas);
    }
    set_contention(e, rank, (int32_t)node->ctas);
}

/* Messages enter the network in the order of the op; `next` is read first because a match frees the
 * post. */
static void
start_exchange(Engine *e, Rank *rank, uint32_t id)
{
    Node *node = node_of(rank, id);
    uint32_t index = node->posts;

    if (e->contention)
        hold_sms(e, rank, node);
    while (index != NONE) {
        uint32_t next = e->posts[index].next;

        post_message(e, index);
        index = next;
    }
}

/* ---- collectives ---- */

static void
start_hop(Engine *e, LhCollective *c, const LhHop *hop, uint32_t late)
{
    const LhMember *from = &c->members[hop->from], *to = &c->members[hop->to];
    Ends ends = { { from->rank, to->rank }, { from->op, to->op }, 0, true };
    LhRoute route;
    uint32_t flow;

    lh_network_route(&e->network, from->rank, to->rank, &route);
    if (!check_route(e, from->rank, to->rank, &route))
        return;
    ends.tier = route.tier;
    set_moving(e, &ends, hop->bytes, late);
    flow = start_flow(e, &ends, &route, hop->bytes);
    e->hops[flow] = (CollectiveHop){ c, *hop };
}

/* Starts what the collective has found to be ready because of something that @late did. */
static void
start_hops(Engine *e, LhCollective *c, uint32_t late)
{
    for (uint32_t i = 0; i < c->hops_count; i++)
        start_hop(e, c, &c->hops[i], late);
    c->hops_count = 0;
}

static void
hop_left(Engine *e, uint32_t flow)
{
    LhCollective *c = e->hops[flow].collective;

    lh_collective_left(c, &e->hops[flow].hop);
    start_hops(e, c, e->ends[flow].ranks[0]);
}

static void
hop_arrived(Engine *e, uint32_t flow)
{
    LhCollective *c = e->hops[flow].collective;
    const uint32_t pieces = e->hops[flow].hop.pieces;

    lh_collective_arrived(c, &e->hops[flow].hop);
    start_hops(e, c, e->ends[flow].ranks[1]);
    deliver(e, &e->ends[flow], pieces);
    lh_collective_settle(c);
}

/* What the rank sends by a closed form, and over which links: as the rings or the pairs would. */
static void
count_closed_form(Engine *e, Rank *rank, Node *node, const LhCollective *c, uint32_t position)
{
    const LhGroup *group = lh_collective_group(c);
    const uint32_t r = rank_index(e, rank);
    const bool all_to_all = c->kind == LH_COLL_ALL_TO_ALL;
    const uint32_t peers = all_to_all ? c->size - 1 : c->rings->count;

    node->tier = lh_collective_neighbours(c)->tier;
    for (uint32_t k = 0; k < peers; k++) {
        const uint32_t next =
            all_to_all ? (position + 1 + k) % c->size : lh_rings_next(c->rings, k, position);
        const uint32_t to = (uint32_t)lh_group_member(group, next);
        const uint64_t bytes =
            all_to_all ? c->shard_bytes / c->size
                       : lh_collective_bytes_sent(c->kind, group, r,
                                                  lh_piece_bytes(c->shard_bytes, k, peers));
        LhRoute route;

        if (bytes == 0)
            continue;
        lh_network_route(&e->network, r, to, &route);
        if (!check_route(e, r, to, &route))
            return;
        e->tiers_used |= 1u << route.tier;
        count_sent(e, rank, node, route.tier, bytes);
        lh_flows_count(e->flows, &route, bytes);
    }
}

/* Closed form: @late was the last to arrive and decides when all are through. */
static void
finish_meeting(Engine *e, LhCollective *c, uint32_t late)
{
    const LhTime end = e->now + (e->free_network ? 0 : lh_collective_duration(e->collectives, c));
    const uint8_t tier = lh_collective_neighbours(c)->tier;

    if (!e->free_network && e->params->collectives == LH_COLLECTIVES_NCCL)
        e->cost.provenance = MAX(e->cost.provenance, lh_nccl_provenance(e->params->device));
    for (uint32_t i = 0; i < c->size; i++) {
        Rank *rank = &e->ranks[c->members[i].rank];
        Node *node = node_of(rank, c->members[i].op);

        rank->moving[tier]++;
        if (rank->why == LH_IDLE_IMBALANCE && c->members[i].rank != late)
            account_wait(e, rank, &e->ranks[late]);
        node->timed = true;
        lh_heap_set(&e->heap, item_of(e, rank, node->stream), end);
        touch(e, c->members[i].rank);
    }
    lh_collective_settle(c);
}

static void
start_collective(Engine *e, Rank *rank, Node *node, uint32_t id)
{
    uint32_t position;
    LhCollective *c = lh_collectives_join(e->collectives, node->posts, id, &position);

    if (e->contention) {
        node->ctas = lh_collective_neighbours(c)->ctas;
        set_contention(e, rank, (int32_t)node->ctas);
    }
    if (c->algorithm == NULL) {
        count_closed_form(e, rank, node, c, position);
        if (c->joined == c->size && e->error == NULL)
            finish_meeting(e, c, rank_index(e, rank));
        return;
    }
    node->pending = c->algorithm->ends(c, position);
    if (node->pending == 0)
        complete(e, rank, id);
    start_hops(e, c, rank_index(e, rank));
    lh_collective_settle(c);
}

/* ---- issue ---- */

static void
grow_nodes(Rank *rank)
{
    uint32_t capacity = rank->nodes == NULL ? 4 : 2 * (rank->nodes_mask + 1);
    Node *nodes = g_new(Node, capacity);

    for (uint32_t id = rank->first; id < rank->issued; id++)
        nodes[id & (capacity - 1)] = *node_of(rank, id);
    g_free(rank->nodes);
    rank->nodes = nodes;
    rank->nodes_mask = capacity - 1;
}

static void
malformed(Engine *e, const Rank *rank, const LhOp *op, const char *what)
{
    if (e->error == NULL)
        g_set_error(&e->error, LH_ERROR, LH_ERROR_INPUT, "rank %u, op %u: %s", rank_index(e, rank),
                    op->id, what);
}

static void
change_memory(Engine *e, Rank *rank, uint16_t slot_index, bool alloc)
{
    const LhSlot *slot = &e->program->slots[slot_index];
    uint64_t bytes = slot->parts * slot->part_bytes;
    LhRankResult *result = &e->results[rank_index(e, rank)];

    if (!alloc) {
        rank->memory_bytes -= MIN(bytes, rank->memory_bytes);
        rank->memory_by_tensor[slot->kind] -= MIN(bytes, rank->memory_by_tensor[slot->kind]);
        return;
    }
    rank->memory_bytes += bytes;
    rank->memory_by_tensor[slot->kind] += bytes;
    if (rank->memory_bytes <= result->peak_bytes)
        return;
    result->peak_bytes = rank->memory_bytes;
    result->peak_at_ps = rank->gate == NONE ? MAX(rank->host_ps, e->now) : e->now;
    memcpy(result->peak_by_tensor, rank->memory_by_tensor, sizeof(result->peak_by_tensor));
}

static void
issue_compute(Engine *e, Rank *rank, Node *node, const LhOp *op)
{
    const LhSimParams *p = e->params;
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    uint32_t r = rank_index(e, rank);
    LhTime time;

    node->kernel = (uint8_t)op->compute.kernel;
    node->occupancy = 1;
    time = p->compute_time != NULL ? p->compute_time(p->compute_time_data, r, op)
                                   : lh_cost_compute(&e->cost, op, &node->occupancy);
    node->work_ps = (double)time;
    if (p->jitter > 0)
        node->work_ps *= 1 + p->jitter * (2 * lh_rng_uniform(p->seed, r, op->id) - 1);
    if (e->slowdown != NULL)
        node->work_ps *= e->slowdown[r];
    if (lh_kernel_counts_flops(kernel)) {
        node->flops = kernel->flops(&op->compute.args);
        e->results[r].flops += node->flops;
    }
}

static void
issue_exchange(Engine *e, Rank *rank, Node *node, const LhOp *op)
{
    uint32_t last = NONE;

    node->pending = op->exchange.parts_count;
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &e->buffer.parts[op->exchange.parts_first + i];
        uint32_t index = post_new(e);

        if (part->peer >= e->ranks_count || part->peer == rank_index(e, rank))
            malformed(e, rank, op, "a message names a peer that is not another rank");
        e->posts[index] = (Post){ .rank = rank_index(e, rank),
                                  .node = op->id,
                                  .peer = part->peer,
                                  .tag = part->tag,
                                  .send = part->send,
                                  .next = NONE,
                                  .bytes = part->wire_bytes };
        if (last == NONE)
            node->posts = index;
        else
            e->posts[last].next = index;
        last = index;
    }
}

static void
enqueue(Rank *rank, Node *node, uint32_t id)
{
    uint32_t tail = rank->streams[node->stream].tail;

    if (tail == NONE)
        rank->streams[node->stream].head = id;
    else
        node_of(rank, tail)->next = id;
    rank->streams[node->stream].tail = id;
}

static void
issue(Engine *e, Rank *rank, const LhOp *op)
{
    Node *node;

    if (rank->nodes == NULL || rank->issued - rank->first > rank->nodes_mask)
        grow_nodes(rank);
    node = node_of(rank, op->id);
    node->state = NODE_QUEUED;
    node->kind = op->kind;
    node->stream = op->stream;
    node->phase = op->phase;
    node->kernel = 0;
    node->tier = LH_TIERS;
    node->ctas = 0;
    node->step = op->step;
    node->next = NONE;
    node->gate = rank->gate;
    node->pending = 0;
    node->posts = NONE;
    node->timed = false;
    node->issued_ps = rank->host_ps;
    node->bytes = 0;
    node->flops = 0;
    node->after_count = 0;
    for (uint32_t i = 0; i < op->after_count; i++) {
        if (op->after[i] >= op->id)
            malformed(e, rank, op, "comes after an op that is not earlier");
        else if (!is_done(rank, op->after[i]))
            node->after[node->after_count++] = op->after[i];
    }
    rank->issued++;
    e->ops++;
    switch (op->kind) {
    case LH_OP_ALLOC:
    case LH_OP_FREE:
        change_memory(e, rank, op->memory.slot, op->kind == LH_OP_ALLOC);
        node->state = NODE_DONE;
        retire(rank);
        return;
    case LH_OP_SYNC:
        rank->gate = op->id;
        rank->host_ps = 0;
        return;
    case LH_OP_COMPUTE:
        issue_compute(e, rank, node, op);
        break;
    case LH_OP_EXCHANGE:
        issue_exchange(e, rank, node, op);
        break;
    default:
        node->posts = lh_collectives_issue(e->collectives, rank_index(e, rank), op);
        if (node->posts == NONE)
            malformed(e, rank, op,
                      "its group lacks the rank, names one twice or one that does not exist");
    }
    rank->host_ps += e->launch_ps;
    enqueue(rank, node, op->id);
}

/* The host runs ahead of the device: it issues the next step when some stream has nothing left to
 * do. */
static bool
pull(Engine *e, Rank *rank)
{
    bool hungry = false;

    if (rank->ended || rank->gate != NONE || rank->issued - rank->first >= e->queue_depth)
        return false;
    for (uint32_t s = 0; s < e->streams_count; s++)
        hungry |= rank->streams[s].head == NONE;
    if (!hungry)
        return false;
    if ((e->params->steps_max > 0 && rank->cursor.step >= e->params->steps_max) ||
        !lh_cursor_step(&rank->cursor, &e->buffer)) {
        rank->ended = true;
        return false;
    }
    for (uint32_t i = 0; i < e->buffer.ops_count; i++)
        issue(e, rank, &e->buffer.ops[i]);
    return true;
}

/* A sync whose earlier ops are all complete lets the host go on; ops issued after it learn when. */
static bool
pass_sync(Engine *e, Rank *rank)
{
    Node *sync = rank->first < rank->issued ? node_of(rank, rank->first) : NULL;
    uint32_t id = rank->first;
    LhTime end;

    if (sync == NULL || sync->kind != LH_OP_SYNC || sync->gate != NONE)
        return false;
    end = MAX(e->now, sync->issued_ps) + e->sync_ps;
    sync->state = NODE_DONE;
    for (uint32_t later = id + 1; later < rank->issued; later++) {
        Node *node = node_of(rank, later);

        if (node->gate != id)
            continue;
        node->gate = NONE;
        node->issued_ps += end;
    }
    if (rank->gate == id) {
        rank->gate = NONE;
        rank->host_ps += end;
    }
    retire(rank);
    return true;
}

/* ---- streams ---- */

static void
start_compute(Engine *e, Rank *rank, Node *node, uint32_t id)
{
    LhTime time = lh_time_from_ps(node->work_ps / rank->speed);

    node->updated_ps = e->now;
    node->rate = rank->speed;
    rank->computing++;
    if (time == 0)
        complete(e, rank, id);
    else if (rank->computing > 1)
        share_sms(e, rank);
    else
        lh_heap_set(&e->heap, item_of(e, rank, node->stream), e->now + time);
}

/* Starts the op at the head of a stream if it may run; true if the stream moved on at once. */
static bool
try_start(Engine *e, Rank *rank, uint32_t stream)
{
    uint32_t id = rank->streams[stream].head;
    Node *node = node_of(rank, id);

    if (node->state != NODE_QUEUED || node->gate != NONE || !is_free(rank, node))
        return false;
    if (node->issued_ps > e->now) {
        lh_heap_set(&e->heap, item_of(e, rank, stream), node->issued_ps);
        return false;
    }
    node->state = NODE_RUNNING;
    node->start_ps = e->now;
    if (node->kind == LH_OP_COMPUTE) {
        start_compute(e, rank, node, id);
        return rank->streams[stream].head != id;
    }
    if (rank->communicating++ == 0)
        rank->communicating_ps = e->now;
    if (node->kind == LH_OP_COLLECTIVE)
        start_collective(e, rank, node, id);
    else if (node->pending == 0)
        complete(e, rank, id);
    else
        start_exchange(e, rank, id);
    return rank->streams[stream].head != id;
}

/* Does everything that the rank can do in this instant. */
static void
advance(Engine *e, Rank *rank)
{
    bool moved;

    do {
        moved = rank->gate != NONE && pass_sync(e, rank);
        for (uint32_t s = 0; s < e->streams_count; s++)
            while (rank->streams[s].head != NONE && try_start(e, rank, s))
                moved = true;
        moved |= pull(e, rank);
    } while (moved && e->error == NULL);
    classify(e, rank);
}

static void
handle_stream_event(Engine *e, uint32_t item)
{
    uint32_t r = item >> e->streams_shift;
    Rank *rank = &e->ranks[r];
    uint32_t id = rank->streams[item & ((1u << e->streams_shift) - 1)].head;
    Node *node = node_of(rank, id);

    if (node->state == NODE_RUNNING && node->timed) {
        rank->moving[node->tier]--;
        e->events++;
    }
    if (node->state == NODE_RUNNING && (node->kind == LH_OP_COMPUTE || node->timed))
        complete(e, rank, id);
    touch(e, r);
}

/* Everything that happens at e->now: ops and transfers that end, in insertion order, then messages
 * that arrive. */
static void
handle_instant(Engine *e)
{
    uint32_t streams = e->ranks_count << e->streams_shift, flow;

    while (lh_heap_time(&e->heap) == e->now) {
        uint32_t item = lh_heap_pop(&e->heap);

        if (item < streams)
            handle_stream_event(e, item);
        else if (lh_flows_event(e->flows, item - streams, e->now) && e->ends[item - streams].hop)
            hop_left(e, item - streams);
    }
    while (lh_flows_arrive(e->flows, e->now, &flow)) {
        lh_flows_release(e->flows, flow);
        if (e->ends[flow].hop)
            hop_arrived(e, flow);
        else
            deliver(e, &e->ends[flow], 1);
    }
}

static inline bool
rank_finished(const Rank *rank)
{
    return rank->ended && rank->first == rank->issued;
}

static void
describe_wait(Engine *e, Rank *rank, GString *out)
{
    Node *node = node_of(rank, rank->first);

    g_string_append_printf(out, "\n  rank %u, op %u (%s, step %u) ", rank_index(e, rank),
                           rank->first, lh_op_kind_names[node->kind], node->step);
    if (node->state == NODE_RUNNING && node->kind == LH_OP_COLLECTIVE)
        g_string_append(out, "waits for the rest of its group");
    else if (node->state == NODE_RUNNING)
        g_string_append_printf(out, "waits for %u messages whose other side was never posted",
                               node->pending);
    else if (node->after_count > 0)
        g_string_append_printf(out, "waits for op %u", node->after[node->after_count - 1]);
    else
        g_string_append(out, "waits for its stream");
}

/* Nothing is left to happen, yet some rank is not through. */
static void
deadlock(Engine *e)
{
    g_autoptr(GString) text = g_string_new(NULL);
    uint32_t stuck = 0;

    for (uint32_t r = 0; r < e->ranks_count; r++) {
        if (rank_finished(&e->ranks[r]))
            continue;
        if (stuck++ < REPORTED_RANKS)
            describe_wait(e, &e->ranks[r], text);
    }
    g_set_error(&e->error, LH_ERROR, LH_ERROR_RUNTIME,
                "the program cannot end: %u of %u ranks wait for ever%s%s", stuck, e->ranks_count,
                text->str, stuck > REPORTED_RANKS ? "\n  ..." : "");
}

static bool
all_finished(const Engine *e)
{
    for (uint32_t r = 0; r < e->ranks_count; r++)
        if (!rank_finished(&e->ranks[r]))
            return false;
    return true;
}

static void
work_off_news(Engine *e)
{
    while (e->news_count > 0 && e->error == NULL) {
        Rank *rank = &e->ranks[e->news[e->news_first++ & e->news_mask]];

        e->news_count--;
        rank->listed = false;
        advance(e, rank);
    }
    if (!e->free_network)
        lh_flows_settle(e->flows, e->now);
}

/* A rank may have been waiting for its own host to look further ahead than QUEUE_DEPTH: let it,
 * once. */
static bool
look_further(Engine *e)
{
    if (e->queue_depth == UINT32_MAX || all_finished(e))
        return false;
    e->queue_depth = UINT32_MAX;
    for (uint32_t r = 0; r < e->ranks_count; r++)
        touch(e, r);
    return true;
}

static void
run(Engine *e)
{
    uint64_t reported = 0;

    for (uint32_t r = 0; r < e->ranks_count; r++)
        touch(e, r);
    do {
        work_off_news(e);
        while (e->error == NULL) {
            LhTime next = MIN(lh_heap_time(&e->heap), lh_flows_next_arrival(e->flows));

            if (next == LH_TIME_NEVER)
                break;
            if (next >= LH_TIME_LONGEST) {
                g_set_error(&e->error, LH_ERROR, LH_ERROR_RUNTIME,
                            "the program takes more than 26 days; simulated time ends there");
                break;
            }
            e->now = next;
            handle_instant(e);
            work_off_news(e);
            if (e->params->progress == NULL || e->events - reported < PROGRESS_EVENTS)
                continue;
            reported = e->events;
            if (!e->params->progress(e->params->progress_data, e->events, e->now))
                g_set_error(&e->error, LH_ERROR, LH_ERROR_RUNTIME, "interrupted");
        }
    } while (e->error == NULL && look_further(e));
    if (e->error == NULL && !all_finished(e))
        deadlock(e);
}

/* ---- set-up and result ---- */

static void
init_rank(Engine *e, uint32_t r)
{
    Rank *rank = &e->ranks[r];

    lh_cursor_init(&rank->cursor, e->program, r);
    rank->gate = NONE;
    rank->speed = 1;
    rank->why = LH_IDLE_IMBALANCE;
    for (uint32_t s = 0; s < LH_STREAMS_MAX; s++)
        rank->streams[s] = (Stream){ NONE, NONE };
    for (uint32_t i = 0; i < e->program->slots_count; i++)
        if (e->program->slots[i].role != LH_SLOT_TEMP)
            change_memory(e, rank, (uint16_t)i, true);
}

static void
init(Engine *e, const LhSimParams *params)
{
    const LhProgram *program = params->program;

    e->params = params;
    e->program = program;
    e->network = *params->network;
    if (program->params.data_parallel_size > 1)
        lh_network_set_groups(&e->network, program->params.ranks);
    e->ranks_count = lh_program_ranks(program);
    e->streams_count = program->streams_count;
    e->free_network = params->cost != LH_COST_DEVICE;
    for (uint32_t i = 0; i < LH_ROUTE_CLASSES && !e->free_network; i++)
        e->contention |= e->network.classes[i].ctas > 0;
    e->launch_ps = e->free_network ? 0 : params->device->kernel_launch_ps;
    e->sync_ps = e->free_network ? 0 : params->device->stream_sync_ps;
    e->queue_depth = QUEUE_DEPTH;
    e->posts_free = NONE;
    e->ranks = g_new0(Rank, e->ranks_count);
    e->results = g_new0(LhRankResult, e->ranks_count);
    while (e->news_mask + 1 < e->ranks_count)
        e->news_mask = 2 * e->news_mask + 1;
    e->news = g_new(uint32_t, e->news_mask + 1);
    e->buckets_mask = 4 * e->news_mask + 3;
    e->buckets = g_new(uint32_t, e->buckets_mask + 1);
    memset(e->buckets, 0xff, sizeof(uint32_t) * (e->buckets_mask + 1));
    while (1u << e->streams_shift < e->streams_count)
        e->streams_shift++;
    lh_heap_reserve(&e->heap, e->ranks_count << e->streams_shift);
    e->flows = lh_flows_new(&e->network, params->network_model, &e->heap,
                            e->ranks_count << e->streams_shift);
    e->collectives =
        lh_collectives_new(&e->network, params->device,
                           e->free_network ? LH_COLLECTIVES_CLOSED_FORM : params->collectives);
    lh_cost_init(&e->cost, params->cost, params->device, program);
    if (params->stragglers != NULL && params->stragglers->len > 0) {
        e->slowdown = g_new(double, e->ranks_count);
        for (uint32_t r = 0; r < e->ranks_count; r++)
            e->slowdown[r] = 1;
        for (uint32_t i = 0; i < params->stragglers->len; i++) {
            const LhStraggler *s = &g_array_index(params->stragglers, LhStraggler, i);

            if (s->rank < e->ranks_count)
                e->slowdown[s->rank] *= s->slowdown;
        }
    }
    for (uint32_t r = 0; r < e->ranks_count; r++)
        init_rank(e, r);
}

static void
clear(Engine *e)
{
    for (uint32_t r = 0; r < e->ranks_count; r++)
        g_free(e->ranks[r].nodes);
    g_free(e->ranks);
    g_free(e->results);
    g_free(e->slowdown);
    g_free(e->ends);
    g_free(e->hops);
    g_free(e->posts);
    g_free(e->buckets);
    g_free(e->news);
    lh_flows_free(e->flows);
    lh_collectives_free(e->collectives);
    lh_heap_clear(&e->heap);
    lh_op_buffer_clear(&e->buffer);
}

static void
summarise_links(const Engine *e, LhSimResult *result)
{
    double span_s = (double)result->makespan_ps / (double)LH_PS_PER_S;

    result->busiest_link = UINT32_MAX;
    for (uint32_t i = 0; i < e->network.links_count; i++) {
        LhLink link = lh_network_link(&e->network, i);
        uint64_t bytes = lh_flows_link_bytes(e->flows, i);
        double used;

        result->link_bytes[link.tier] += bytes;
        if (bytes == 0 || span_s <= 0)
            continue;
        used = (double)bytes / (link.bandwidth_bytes_per_s * span_s);
        if (used > result->busiest_link_utilisation) {
            result->busiest_link_utilisation = used;
            result->busiest_link = i;
        }
    }
}

static LhProvenance
link_provenance(const LhTopology *topology, uint32_t tier)
{
    const LhLinkClass *const classes[LH_TIERS] = { &topology->nvlink, &topology->pcie,
                                                   &topology->nic, &topology->nic };

    return (LhProvenance)classes[tier]->provenance;
}

static LhSimResult *
summarise(Engine *e)
{
    LhSimResult *result = g_new0(LhSimResult, 1);
    uint32_t last = 0;

    for (uint32_t r = 1; r < e->ranks_count; r++)
        if (e->results[r].finish_ps > e->results[last].finish_ps)
            last = r;
    result->makespan_ps = e->results[last].finish_ps;
    e->now = result->makespan_ps;
    for (uint32_t r = 0; r < e->ranks_count; r++)
        if (r != last)
            account_wait(e, &e->ranks[r], &e->ranks[last]);
    account(e, &e->ranks[last]);
    result->ranks_count = e->ranks_count;
    result->ranks = g_steal_pointer(&e->results);
    result->events = e->events;
    result->ops = e->ops;
    result->provenance = e->cost.provenance;
    for (uint32_t tier = 0; tier < LH_TIERS; tier++)
        if (!e->free_network && (e->tiers_used & 1u << tier))
            result->provenance =
                MAX(result->provenance, link_provenance(e->network.topology, tier));
    summarise_links(e, result);
    return result;
}

LhSimResult *
lh_simulate(const LhSimParams *params, GError **error)
{
    Engine engine = { 0 };
    LhSimResult *result = NULL;

    g_assert(params->network->ranks == lh_program_ranks(params->program));
    init(&engine, params);
    run(&engine);
    if (engine.error == NULL)
        result = summarise(&engine);
    else
        g_propagate_error(error, engine.error);
    clear(&engine);
    return result;
}
