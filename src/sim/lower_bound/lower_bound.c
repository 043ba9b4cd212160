/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk: each op of the rank starts as soon as its stream, the ops that it names in `after` and
 * its host allow, and takes its lower bound of time. The engine can only add delays to that.
 */
#include "sim/lower_bound/lower_bound.h"

#include "program/cursor.h"
#include "program/subprogram.h"
#include "sim/cost/call_cost.h"
#include "sim/cost/cost.h"
#include "sim/lower_bound/stream_lower_bound.h"
#include "sim/remaining_path.h"

#define PARTS_MAX 8 /* of an exchange that is matched with other walks */

struct _LhLowerBound {
    const LhSimParams *params;
    LhCost cost;
    LhLowerBoundCalls *calls; /* NULL: not needed yet */
    LhLowerBoundCalls *own;   /* `calls`, if created here; else NULL */
    bool free_network;
    bool (*awaited)(const LhOp *op);           /* NULL: no op is awaited */
    uint32_t watched;                          /* layer; UINT32_MAX: none */
    void (*visit)(void *data, const LhOp *op); /* NULL: none */
    void *visit_data;
};

LhLowerBound *
lh_lower_bound_new(const LhSimParams *params, LhLowerBoundCalls *calls)
{
    LhLowerBound *least = g_new0(LhLowerBound, 1);

    least->params = params;
    least->calls = calls;
    least->watched = UINT32_MAX;
    least->free_network = params->cost != LH_COST_DEVICE;
    lh_sim_begin_cost(&least->cost, params);
    return least;
}

void
lh_lower_bound_await(LhLowerBound *least, bool (*awaited)(const LhOp *op))
{
    least->awaited = awaited;
}

void
lh_lower_bound_visit(LhLowerBound *least, void (*visit)(void *data, const LhOp *op), void *data)
{
    least->visit = visit;
    least->visit_data = data;
}

void
lh_lower_bound_watch(LhLowerBound *least, uint32_t layer)
{
    least->watched = layer;
}

void
lh_lower_bound_free(LhLowerBound *least)
{
    if (least == NULL)
        return;
    lh_cost_clear(&least->cost);
    lh_lower_bound_calls_free(least->own);
    g_free(least);
}

/* Posting times of both ends of the messages from one rank to another, in order of posting. */
typedef struct {
    uint32_t from, to;
    uint8_t communicator;
    GArray *sent, *received; /* of LhTime */
} Channel;

/* State of the walk of one rank. */
typedef struct {
    LhLowerBound *least;
    uint32_t rank;
    bool communication;
    bool embedded;     /* ops were issued long before */
    LhRankMap map;     /* embedded programs: where their ranks are */
    LhTime outside_ps; /* likewise: end of the last op that touches inputs or outputs, on streams
                          other than the first */
    /* Likewise: kernels of each stream so far, weighted by the share of the SMs that they fill; and
     * those of them that end before its last op that touches inputs or outputs does. */
    LhTime sms_ps[LH_STREAMS_MAX], outside_sms_ps[LH_STREAMS_MAX];
    const uint32_t *others; /* ranks walked side by side, including this one; in any order */
    uint32_t others_count;
    GHashTable *channels; /* of Channel, between these ranks; NULL: none */
    LhCursor cursor;
    LhOpBuffer buffer;
    uint32_t at;              /* next op of the buffer */
    bool posted;              /* the next op is an exchange whose start is known */
    LhTime posted_ps;         /* its start */
    guint numbers[PARTS_MAX]; /* index of each of its messages in its channel */
    bool ended;
    GArray *ends;                                  /* of LhTime, by op */
    LhStreamBound chains;                          /* used if any op is awaited */
    LhRemainingPath *tails;                        /* NULL: not requested */
    LhTime host_ps, launch_ps, sync_ps, latest_ps; /* latest_ps: maximum over all streams */
    LhTime stream_ps[LH_STREAMS_MAX];              /* end of the last op of each */
    LhLowerBoundTimes times;
} Walk;

/* The kernel's time at the fastest end of the jitter. */
static LhTime
compute_ps(const Walk *walk, const LhOp *op, double *occupancy)
{
    const LhSimParams *p = walk->least->params;
    const LhTime time_ps = p->compute_time != NULL
                               ? p->compute_time(p->compute_time_data, walk->rank, op)
                               : lh_cost_compute(&walk->least->cost, p->program, op, occupancy);

    return p->jitter > 0 ? (LhTime)((double)time_ps * (1 - p->jitter)) : time_ps;
}

/* Extra time of a kernel of the first micro-batch over the same kernel of a later one, which
 * accumulates: the gradients of an embedding start as zeros everywhere. */
static LhTime
only_first_ps(const Walk *walk, const LhOp *op, LhTime takes_ps)
{
    LhOp later = *op;
    double occupancy;

    if (op->micro_batch != 0 || !op->compute.args.first ||
        lh_kernels[op->compute.kernel]->cost != LH_COST_MEMORY)
        return 0;
    later.compute.args.first = false;
    return MAX(takes_ps - compute_ps(walk, &later, &occupancy), 0);
}

static LhTime
communication_ps(const Walk *walk, const LhOp *op)
{
    LhLowerBound *least = walk->least;

    if (!walk->communication || least->free_network)
        return 0;
    if (least->calls == NULL)
        least->calls = least->own = lh_lower_bound_calls_new(least->params);
    if (op->kind == LH_OP_EXCHANGE)
        return lh_lower_bound_calls_exchange(least->calls, walk->rank,
                                             &walk->buffer.parts[op->exchange.parts_first],
                                             op->exchange.parts_count);
    return lh_lower_bound_calls_collective(least->calls, least->params->program, walk->rank, op,
                                           walk->buffer.counts);
}

static LhTime
end_of(const Walk *walk, uint32_t op)
{
    return op < walk->ends->len ? g_array_index(walk->ends, LhTime, op) : 0;
}

/* @once_ps of @time_ps occur in the first micro-batch only. */
static void
add_busy(Walk *walk, const LhOp *op, uint32_t of, LhTime time_ps, LhTime once_ps)
{
    walk->times.sums_ps[of] += time_ps;
    if (op->micro_batch != 0 || op->phase == LH_PHASE_OPTIMIZER)
        return;
    time_ps -= once_ps;
    walk->times.first_ps[of] += time_ps;
    if (of == 0 && op->phase == LH_PHASE_FORWARD)
        walk->times.forward_ps += time_ps;
    if (of == 0 && op->phase == LH_PHASE_BACKWARD)
        walk->times.backward_ps += time_ps;
    if (of == 0 && op->kind == LH_OP_COMPUTE && op->compute.kernel == LH_KERNEL_ID_accumulate)
        walk->times.accumulate_ps += time_ps;
}

/* Advances the host and returns when the op was issued. */
static LhTime
issue_op(Walk *walk, const LhOp *op)
{
    const LhLowerBound *least = walk->least;
    const LhTime issued_ps = walk->host_ps;
    LhTime takes_ps = walk->launch_ps;

    if (!lh_op_on_stream(op) || lh_op_is_outside(op))
        return issued_ps;
    if (!least->free_network)
        takes_ps += lh_call_host_ps(least->cost.framework, op);
    if (!walk->embedded)
        walk->host_ps += takes_ps;
    add_busy(walk, op, LH_LEAST_HOST, takes_ps, 0);
    return issued_ps;
}

/* ---- messages between ranks walked side by side ---- */

static guint
channel_hash(gconstpointer key)
{
    const Channel *c = key;

    return c->from * UINT32_C(0x9E3779B1) + c->to + c->communicator * UINT32_C(0x85EBCA6B);
}

static gboolean
channel_equal(gconstpointer a, gconstpointer b)
{
    const Channel *x = a, *y = b;

    return x->from == y->from && x->to == y->to && x->communicator == y->communicator;
}

static void
channel_free(gpointer data)
{
    Channel *c = data;

    g_array_unref(c->sent);
    g_array_unref(c->received);
    g_free(c);
}

/* NULL if the peer is not walked. */
static Channel *
channel_of(const Walk *walk, const LhOp *op, const LhPart *part)
{
    const Channel key = { .from = part->send ? walk->rank : part->peer,
                          .to = part->send ? part->peer : walk->rank,
                          .communicator = op->communicator };
    Channel *c = NULL;

    for (uint32_t i = 0; i < walk->others_count; i++) {
        if (walk->others[i] != part->peer)
            continue;
        c = g_hash_table_lookup(walk->channels, &key);
        if (c == NULL) {
            c = g_memdup2(&key, sizeof(key));
            c->sent = g_array_new(FALSE, FALSE, sizeof(LhTime));
            c->received = g_array_new(FALSE, FALSE, sizeof(LhTime));
            g_hash_table_add(walk->channels, c);
        }
    }
    return c;
}

/* Posts the exchange, whose own rank could start it at @start_ps. */
static void
post_exchange(Walk *walk, const LhOp *op, LhTime start_ps)
{
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &walk->buffer.parts[op->exchange.parts_first + i];
        Channel *c = channel_of(walk, op, part);
        GArray *own = c == NULL ? NULL : part->send ? c->sent : c->received;

        if (own == NULL)
            continue;
        walk->numbers[i] = own->len;
        g_array_append_val(own, start_ps);
    }
    walk->posted = true;
    walk->posted_ps = start_ps;
}

/* Lower bound of the end of the exchange; LH_TIME_NEVER: the other end of one of its messages is
 * not posted yet. */
static LhTime
meet(Walk *walk, const LhOp *op)
{
    LhTime end_ps = walk->posted_ps + communication_ps(walk, op);

    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &walk->buffer.parts[op->exchange.parts_first + i];
        const Channel *c = channel_of(walk, op, part);
        const GArray *other = c == NULL ? NULL : part->send ? c->received : c->sent;
        LhTime start_ps;

        if (other == NULL)
            continue;
        if (walk->numbers[i] >= other->len)
            return LH_TIME_NEVER;
        start_ps = MAX(walk->posted_ps, g_array_index(other, LhTime, walk->numbers[i]));
        if (!walk->least->free_network)
            start_ps += lh_lower_bound_calls_exchange(walk->least->calls, walk->rank, part, 1);
        end_ps = MAX(end_ps, start_ps);
    }
    walk->posted = false;
    return end_ps;
}

/* ---- ops ---- */

static LhTime
start_of(const Walk *walk, const LhOp *op, LhTime issued_ps)
{
    LhTime start_ps = MAX(issued_ps, walk->stream_ps[op->stream]);

    for (uint32_t i = 0; i < op->after_count; i++)
        start_ps = MAX(start_ps, end_of(walk, op->after[i]));
    return start_ps;
}

/* Adds an op with a lower bound of its time. On the first stream, its busy time includes waiting
 * for awaited ops. */
static void
add_op(Walk *walk, const LhOp *op, LhTime takes_ps, LhTime once_ps)
{
    bool (*awaited)(const LhOp *) = walk->least->awaited;
    LhTime busy_ps = takes_ps;

    if (awaited != NULL) {
        const LhTime grown_ps = lh_stream_bound_add(&walk->chains, op, takes_ps, awaited(op));

        if (op->stream == 0)
            busy_ps = grown_ps;
    }
    add_busy(walk, op, op->stream, busy_ps, once_ps);
    if (walk->tails != NULL)
        lh_remaining_path_add(walk->tails, op, takes_ps);
}

static void
add_watched(Walk *walk, const LhOp *op, LhTime takes_ps)
{
    if (op->layer == walk->least->watched && op->micro_batch == 0 && op->stream == 0 &&
        op->phase != LH_PHASE_OPTIMIZER && op->compute.kernel != LH_KERNEL_ID_accumulate)
        walk->times.watched_ps += takes_ps;
}

static LhTime
run_on_stream(Walk *walk, const LhOp *op, LhTime issued_ps)
{
    const LhTime start_ps = start_of(walk, op, issued_ps);
    double occupancy = 1;
    LhTime takes_ps, once_ps;

    if (op->kind == LH_OP_COMPUTE) {
        takes_ps = compute_ps(walk, op, &occupancy);
        once_ps = only_first_ps(walk, op, takes_ps);
        add_op(walk, op, takes_ps, once_ps);
        add_watched(walk, op, takes_ps - once_ps);
        if (lh_op_is_of_host(walk->least->params->program, op))
            return start_ps + takes_ps;
        walk->sms_ps[op->stream] += (LhTime)((double)takes_ps * occupancy);
        add_busy(walk, op, LH_LEAST_SMS, (LhTime)((double)takes_ps * occupancy),
                 (LhTime)((double)once_ps * occupancy));
    } else {
        takes_ps = communication_ps(walk, op);
        add_op(walk, op, takes_ps, 0);
    }
    return start_ps + takes_ps;
}

static void
end(Walk *walk, const LhOp *op, LhTime end_ps)
{
    if (lh_op_on_stream(op)) {
        walk->stream_ps[op->stream] = end_ps;
        walk->latest_ps = MAX(walk->latest_ps, end_ps);
        if (walk->embedded && op->stream != 0 &&
            lh_subprogram_touches_outside(walk->least->params->program, op, walk->buffer.parts)) {
            walk->outside_ps = MAX(walk->outside_ps, end_ps);
            walk->outside_sms_ps[op->stream] = walk->sms_ps[op->stream];
        }
    }
    g_array_append_val(walk->ends, end_ps);
}

/* Returns false if the op waits for another walk and must be run again. */
static bool
run_op(Walk *walk, const LhOp *op)
{
    LhTime issued_ps, end_ps = 0;

    if (walk->posted) {
        end_ps = meet(walk, op);
        if (end_ps != LH_TIME_NEVER)
            end(walk, op, end_ps);
        return end_ps != LH_TIME_NEVER;
    }
    issued_ps = issue_op(walk, op);
    if (op->kind == LH_OP_EXCHANGE && walk->channels != NULL &&
        op->exchange.parts_count <= PARTS_MAX) {
        post_exchange(walk, op, start_of(walk, op, issued_ps));
        return run_op(walk, op);
    }
    if (op->kind == LH_OP_SYNC)
        end_ps = walk->host_ps = MAX(walk->latest_ps, issued_ps) + walk->sync_ps;
    else if (lh_op_on_stream(op))
        end_ps = run_on_stream(walk, op, issued_ps);
    if (walk->tails != NULL && !lh_op_on_stream(op))
        lh_remaining_path_add(walk->tails, op, op->kind == LH_OP_SYNC ? walk->sync_ps : 0);
    end(walk, op, end_ps);
    return true;
}

/* ---- walks ---- */

static void
walk_begin(Walk *walk, LhLowerBound *least, uint32_t rank, bool communication)
{
    const LhSimParams *p = least->params;

    *walk = (Walk){ .least = least,
                    .rank = rank,
                    .communication = communication,
                    .ends = g_array_new(FALSE, FALSE, sizeof(LhTime)),
                    .launch_ps = least->free_network ? 0 : p->device->kernel_launch_ps,
                    .sync_ps = least->free_network ? 0 : p->device->stream_sync_ps };
    if (least->awaited != NULL)
        lh_stream_bound_init(&walk->chains);
    lh_cursor_init(&walk->cursor, p->program, rank);
}

/* Walks as far as the rank gets; false if it does not move. */
static bool
walk_on(Walk *walk)
{
    bool moved = false;

    while (!walk->ended) {
        if (walk->at == walk->buffer.ops_count) {
            walk->at = 0;
            walk->ended = !lh_cursor_step(&walk->cursor, &walk->buffer);
            if (walk->embedded)
                lh_ops_map_ranks(&walk->buffer, 0, 0, walk->map);
            continue;
        }
        if (!run_op(walk, &walk->buffer.ops[walk->at]))
            return moved;
        if (walk->least->visit != NULL)
            walk->least->visit(walk->least->visit_data, &walk->buffer.ops[walk->at]);
        walk->at++;
        moved = true;
    }
    walk->times.path_ps = walk->latest_ps;
    return moved;
}

static void
walk_end(Walk *walk)
{
    g_array_unref(walk->ends);
    if (walk->least->awaited != NULL)
        lh_stream_bound_clear(&walk->chains);
    lh_op_buffer_clear(&walk->buffer);
}

LhLowerBoundTimes
lh_lower_bound_of(LhLowerBound *least, uint32_t rank, bool communication)
{
    Walk walk;

    walk_begin(&walk, least, rank, communication);
    walk_on(&walk);
    walk_end(&walk);
    return walk.times;
}

GArray *
lh_lower_bound_tails(LhLowerBound *least, uint32_t rank)
{
    Walk walk;

    walk_begin(&walk, least, rank, true);
    walk.tails = lh_remaining_path_new();
    walk_on(&walk);
    walk_end(&walk);
    return lh_remaining_path_end(walk.tails);
}

/* Time that the SMs need for all kernels between the first stream's arrival and its departure. */
static LhTime
needed_sms_ps(const Walk *walk)
{
    LhTime sum_ps = walk->sms_ps[0];

    for (int s = 1; s < LH_STREAMS_MAX; s++)
        sum_ps += walk->outside_sms_ps[s];
    return sum_ps;
}

LhLowerBoundTimes
lh_lower_bound_embedded(LhLowerBound *least, uint32_t rank, LhRankMap map, bool communication,
                        LhTime *passes_ps)
{
    Walk walk;

    walk_begin(&walk, least, rank, communication);
    walk.embedded = true;
    walk.map = map;
    walk.rank = lh_rank_map(map, rank);
    walk_on(&walk);
    walk_end(&walk);
    *passes_ps = MAX(MAX(walk.stream_ps[0], walk.outside_ps), needed_sms_ps(&walk));
    return walk.times;
}

static void
join_times(LhLowerBoundTimes *all, const LhLowerBoundTimes *one)
{
    all->path_ps = MAX(all->path_ps, one->path_ps);
    all->forward_ps = MAX(all->forward_ps, one->forward_ps);
    all->backward_ps = MAX(all->backward_ps, one->backward_ps);
    for (int s = 0; s < LH_LEAST_SUMS; s++) {
        all->sums_ps[s] = MAX(all->sums_ps[s], one->sums_ps[s]);
        all->first_ps[s] = MAX(all->first_ps[s], one->first_ps[s]);
    }
}

LhLowerBoundTimes
lh_lower_bound_of_all(LhLowerBound *least, const uint32_t *ranks, uint32_t count)
{
    g_autoptr(GHashTable) channels =
        g_hash_table_new_full(channel_hash, channel_equal, channel_free, NULL);
    g_autofree Walk *walks = g_new(Walk, count);
    LhLowerBoundTimes times = { 0 };
    bool moved = true;

    for (uint32_t i = 0; i < count; i++) {
        walk_begin(&walks[i], least, ranks[i], true);
        walks[i].others = ranks;
        walks[i].others_count = count;
        walks[i].channels = channels;
    }
    while (moved) {
        moved = false;
        for (uint32_t i = 0; i < count; i++)
            moved |= walk_on(&walks[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        walks[i].times.path_ps =
            walks[i].latest_ps; /* for walks that never end: as far as they got */
        join_times(&times, &walks[i].times);
        walk_end(&walks[i]);
    }
    return times;
}
