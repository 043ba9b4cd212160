/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits that follow from others are left out: they change neither slack nor the makespan if delays
 * shrink. That an op waits for all ops before its host's window follows for each stream whose last
 * op there is complete before something that the op waits for anyway.
 */
#include "sim/causes/wait_recorder.h"

#define OPS_MIN 64u
#define NO_STREAM UINT8_MAX

/* For each stream: all of its ops with smaller ids are complete. */
typedef struct {
    uint32_t before[LH_STREAMS_MAX];
} Complete;

/* An op that was issued. */
typedef struct {
    uint32_t done; /* index of its last event, or LH_NO_INDEX */
    uint16_t call;
    uint8_t stream; /* NO_STREAM: it takes no time */
} IssuedOp;

/* The op that a stream runs, or ran last. */
typedef struct {
    uint32_t id;
    LhEventRef start;
    LhEventRef done;   /* the latest arrival at the op, or its end */
    LhEventRef left;   /* the last message that it has sent */
    Complete complete; /* when it started */
} Running;

typedef struct {
    Running running[LH_STREAMS_MAX];
    LhEventRef ends[LH_STREAMS_MAX]; /* of the last op of each stream */
    Complete ended[LH_STREAMS_MAX];  /* when that op had ended */
    LhEventRef gate;                 /* after which the host last went on */
    Complete gate_complete;
    uint32_t window;                     /* ops before this are complete when a later one starts */
    LhEventRef last[LH_STREAMS_MAX];     /* end of the last of these on each stream, ... */
    uint32_t last_after[LH_STREAMS_MAX]; /* ... and its id + 1; 0: none */
    IssuedOp *ops;                       /* by id, modulo the capacity */
    uint32_t first, count, capacity;     /* ids kept */
} RankWaits;

/* A message in flight. */
typedef struct {
    LhEventRef event;  /* its latest event */
    uint32_t rank, op; /* of its sender */
    bool hop;
} FlowWaits;

struct _LhWaitRecorder {
    const LhNetwork *network;
    LhSlackGraph *graph;
    RankWaits *ranks;
    uint32_t streams; /* those with ops so far are below this */
    FlowWaits *flows;
    uint32_t flows_count;
    LhEventRef now; /* the current cause */
};

LhWaitRecorder *
lh_wait_recorder_new(const LhNetwork *network, const LhSymmetryGroups *fold)
{
    LhWaitRecorder *w = g_new0(LhWaitRecorder, 1);

    w->network = network;
    w->graph = lh_slack_new(network->ranks, fold);
    w->ranks = g_new0(RankWaits, network->ranks);
    /* The start of the run. */
    w->now = lh_slack_event(w->graph, 0, 0, 0, 0, LH_STEP_HOST);
    for (uint32_t r = 0; r < network->ranks; r++) {
        RankWaits *rank = &w->ranks[r];

        rank->gate = w->now;
        for (uint32_t s = 0; s < LH_STREAMS_MAX; s++) {
            rank->ends[s] = rank->last[s] = LH_NO_EVENT;
            rank->running[s].id = LH_NO_NODE;
        }
    }
    return w;
}

void
lh_wait_recorder_free(LhWaitRecorder *w)
{
    if (w == NULL)
        return;
    for (uint32_t r = 0; r < w->network->ranks; r++)
        g_free(w->ranks[r].ops);
    lh_slack_free(w->graph);
    g_free(w->ranks);
    g_free(w->flows);
    g_free(w);
}

LhSlackGraph *
lh_wait_recorder_take(LhWaitRecorder *w)
{
    lh_slack_close(w->graph);
    return g_steal_pointer(&w->graph);
}

/* ---- ops ---- */

static inline IssuedOp *
issued_op(const RankWaits *rank, uint32_t id)
{
    return &rank->ops[id % rank->capacity];
}

/* Makes room for one more op: drops those before the window. The first ops are kept until none of
 * them can start any more, because they have no window. */
static void
make_room(RankWaits *rank)
{
    const uint32_t first = rank->window > LH_HOST_WINDOW ? rank->window : 0;
    RankWaits larger = *rank;

    rank->count -= first - rank->first;
    rank->first = first;
    if (rank->count < rank->capacity)
        return;
    larger.capacity = MAX(OPS_MIN, rank->capacity + rank->capacity / 4);
    larger.ops = g_new(IssuedOp, larger.capacity);
    for (uint32_t id = rank->first; id < rank->first + rank->count; id++)
        *issued_op(&larger, id) = *issued_op(rank, id);
    g_free(rank->ops);
    rank->ops = larger.ops;
    rank->capacity = larger.capacity;
}

static uint8_t
tier_of(const LhWaitRecorder *w, uint32_t rank, const LhOp *op, const LhOpBuffer *buffer)
{
    uint8_t tier = LH_TIERS;

    for (uint32_t i = 0; op->kind == LH_OP_EXCHANGE && i < op->exchange.parts_count; i++) {
        const LhPart *part = &buffer->parts[op->exchange.parts_first + i];
        LhRoute route;

        lh_network_route(w->network, rank, part->peer, &route);
        tier = tier == LH_TIERS ? route.tier : MAX(tier, route.tier);
    }
    return tier;
}

static uint8_t
kernel_of(const LhOp *op)
{
    if (op->kind == LH_OP_COMPUTE)
        return (uint8_t)op->compute.kernel;
    return op->kind == LH_OP_COLLECTIVE ? (uint8_t)op->collective.kind : 0;
}

void
lh_wait_recorder_issued(LhWaitRecorder *w, uint32_t r, const LhOp *op, const LhOpBuffer *buffer)
{
    RankWaits *rank = &w->ranks[r];
    IssuedOp issued = { .done = LH_NO_INDEX, .stream = NO_STREAM };

    g_assert(op->id == rank->first + rank->count);
    if (lh_op_on_stream(op)) {
        issued.stream = op->stream;
        w->streams = MAX(w->streams, op->stream + 1u);
        issued.call = lh_slack_calls(w->graph, (LhSlackCalls){ .kind = op->kind,
                                                               .phase = op->phase,
                                                               .kernel = kernel_of(op),
                                                               .tier = tier_of(w, r, op, buffer),
                                                               .rank = r,
                                                               .op = op->id });
    }
    if (rank->count == rank->capacity)
        make_room(rank);
    rank->count++;
    *issued_op(rank, op->id) = issued;
}

/* An op of a rank, as its representative issued it. */
static inline const IssuedOp *
op_of(const LhWaitRecorder *w, uint32_t r, uint32_t id)
{
    return issued_op(&w->ranks[lh_symmetry_rank(&w->graph->fold, r)], id);
}

/* The running op, or one that ended without its stream going on. That of a rank that is not
 * simulated begins with that of its representative. */
static Running *
running_op(const LhWaitRecorder *w, uint32_t r, uint32_t id)
{
    const uint32_t like = lh_symmetry_rank(&w->graph->fold, r);
    const uint8_t stream = op_of(w, r, id)->stream;
    Running *running = &w->ranks[r].running[stream];

    if (like != r && running->id != id)
        *running = (Running){ .id = id,
                              .start = running_op(w, like, id)->start,
                              .done = LH_NO_EVENT,
                              .left = LH_NO_EVENT };
    g_assert(running->id == id);
    return running;
}

static void
merge(const LhWaitRecorder *w, Complete *into, const Complete *other)
{
    for (uint32_t s = 0; s < w->streams; s++)
        into->before[s] = MAX(into->before[s], other->before[s]);
}

/* Moves the window on to op @id. */
static void
move_window(RankWaits *rank, uint32_t r, uint32_t id)
{
    for (; rank->window < id; rank->window++) {
        const IssuedOp *op = issued_op(rank, rank->window);

        if (op->done == LH_NO_INDEX)
            continue;
        rank->last[op->stream] = (LhEventRef){ .rank = r, .index = op->done };
        rank->last_after[op->stream] = rank->window + 1;
    }
}

/* The latest event is the start of op @id, which waits for ops of its rank. Sets what is complete
 * by then. */
static void
wait_for_ops(LhWaitRecorder *w, uint32_t r, uint32_t id, const LhNode *node, Complete *complete)
{
    RankWaits *rank = &w->ranks[r];

    *complete = rank->ended[node->stream];
    merge(w, complete, &rank->gate_complete);
    lh_slack_wait(w->graph, rank->ends[node->stream], 0);
    for (uint32_t i = 0; i < node->after_all; i++) {
        const uint32_t after = node->after[i];
        const IssuedOp *op = issued_op(rank, after);

        if (after < rank->first || op->done == LH_NO_INDEX)
            continue;
        lh_slack_wait(w->graph, (LhEventRef){ .rank = r, .index = op->done }, 0);
        complete->before[op->stream] = MAX(complete->before[op->stream], after + 1);
    }
    if (id <= LH_HOST_WINDOW)
        return;
    move_window(rank, r, id - LH_HOST_WINDOW);
    for (uint32_t s = 0; s < w->streams; s++)
        if (rank->last_after[s] > complete->before[s])
            lh_slack_wait(w->graph, rank->last[s], 0);
}

void
lh_wait_recorder_op_starts(LhWaitRecorder *w, uint32_t r, uint32_t id, const LhNode *node,
                           LhTime now)
{
    RankWaits *rank = &w->ranks[r];
    Running *running = &rank->running[node->stream];

    *running = (Running){ .id = id, .done = LH_NO_EVENT, .left = LH_NO_EVENT };
    running->start = lh_slack_event(w->graph, now, r, id, issued_op(rank, id)->call, LH_STEP_HOST);
    lh_slack_starts(w->graph);
    lh_slack_wait_host(w->graph, rank->gate, node->issued_ps - rank->gate.time_ps);
    wait_for_ops(w, r, id, node, &running->complete);
    w->now = running->start;
}

void
lh_wait_recorder_joins(LhWaitRecorder *w)
{
    lh_slack_joins(w->graph);
}

/* The latest event waits for the start of @op and all that has arrived at it, or its end. Each
 * arrival waits for the start. */
static void
wait_for_op(LhWaitRecorder *w, const Running *op)
{
    lh_slack_wait(w->graph, op->done.index == LH_NO_INDEX ? op->start : op->done, 0);
}

void
lh_wait_recorder_op_ends(LhWaitRecorder *w, uint32_t r, uint32_t id, const LhNode *node, LhTime now)
{
    RankWaits *rank = &w->ranks[r];
    Running *running = running_op(w, r, id);
    const bool computes = node->kind == LH_OP_COMPUTE;
    IssuedOp *op = issued_op(rank, id);
    const LhEventRef end = lh_slack_event(w->graph, now, r, id, op->call,
                                          computes ? LH_STEP_COMPUTE : LH_STEP_LATENCY);

    lh_slack_ends(w->graph, running->start.time_ps);
    if (computes)
        lh_slack_wait(w->graph, running->start, now - node->start_ps);
    else
        wait_for_op(w, running);
    op->done = end.index;
    running->done = end;
    rank->ends[node->stream] = end;
    rank->ended[node->stream] = running->complete;
    rank->ended[node->stream].before[node->stream] = id + 1;
}

void
lh_wait_recorder_sync_ends(LhWaitRecorder *w, uint32_t r, uint32_t id, const LhNode *sync,
                           LhTime now, LhTime end_ps)
{
    RankWaits *rank = &w->ranks[r];
    const LhTime sync_ps = end_ps - MAX(now, sync->issued_ps);
    const LhEventRef end = lh_slack_event(w->graph, end_ps, r, id, 0, LH_STEP_HOST);

    lh_slack_wait_host(w->graph, rank->gate, sync->issued_ps - rank->gate.time_ps + sync_ps);
    for (uint32_t s = 0; s < w->streams; s++) {
        lh_slack_wait(w->graph, rank->ends[s], sync_ps);
        merge(w, &rank->gate_complete, &rank->ended[s]);
    }
    rank->gate = end;
}

/* ---- what is delivered ---- */

static LhTime
time_of(LhEventRef event)
{
    return event.index == LH_NO_INDEX ? 0 : event.time_ps;
}

/* Returns a new event: @rank's op has got as far as it is now, and @before has happened. */
static LhEventRef
event_of_op(LhWaitRecorder *w, uint32_t rank, uint32_t id, LhEventRef before)
{
    const Running *op = running_op(w, rank, id);
    const LhTime of_op = MAX(time_of(op->start), time_of(op->done));
    const LhEventRef event = lh_slack_event(w->graph, MAX(of_op, time_of(before)), rank, id,
                                            op_of(w, rank, id)->call, LH_STEP_LATENCY);

    wait_for_op(w, op);
    lh_slack_wait(w->graph, before, 0);
    return event;
}

void
lh_wait_recorder_delivered(LhWaitRecorder *w, uint32_t rank, uint32_t id)
{
    const LhEventRef event = event_of_op(w, rank, id, w->now);

    running_op(w, rank, id)->done = event;
}

void
lh_wait_recorder_gather(LhWaitRecorder *w, uint32_t rank, uint32_t id, bool first)
{
    w->now = event_of_op(w, rank, id, first ? LH_NO_EVENT : w->now);
}

/* ---- messages ---- */

static LhEventRef
event_of_flow(LhWaitRecorder *w, const FlowWaits *f, LhPathStepKind kind, LhTime now)
{
    return lh_slack_event(w->graph, now, f->rank, f->op, op_of(w, f->rank, f->op)->call, kind);
}

/* A hop also waits for what its sender has sent and received so far. It may not have had to, but it
 * did not start earlier than that. */
void
lh_wait_recorder_flow_starts(LhWaitRecorder *w, uint32_t flow, const LhFlowEnds *ends, LhTime now)
{
    const Running *from = running_op(w, ends->ranks[0], ends->ops[0]);
    const Running *to = running_op(w, ends->ranks[1], ends->ops[1]);
    FlowWaits *f;

    if (flow >= w->flows_count) {
        w->flows_count = MAX(64, 2 * flow);
        w->flows = g_renew(FlowWaits, w->flows, w->flows_count);
    }
    f = &w->flows[flow];
    *f = (FlowWaits){ .rank = ends->ranks[0], .op = ends->ops[0], .hop = ends->hop };
    f->event = event_of_flow(w, f, LH_STEP_LINKS, now);
    if (ends->hop)
        wait_for_op(w, from);
    else
        lh_slack_wait(w->graph, from->start, 0);
    lh_slack_wait(w->graph, to->start, 0);
    if (!ends->hop)
        return;
    lh_slack_wait(w->graph, from->left, 0);
    lh_slack_wait(w->graph, w->now, 0);
}

void
lh_wait_recorder_flow_left(LhWaitRecorder *w, uint32_t flow, LhTime now)
{
    FlowWaits *f = &w->flows[flow];
    Running *op = running_op(w, f->rank, f->op);
    const LhEventRef start = f->event;
    LhEventRef all;

    f->event = event_of_flow(w, f, LH_STEP_LINKS, now);
    lh_slack_wait(w->graph, start, now - start.time_ps);
    w->now = f->event;
    if (!f->hop)
        return;
    if (op->left.index == LH_NO_INDEX) {
        op->left = f->event;
        return;
    }
    /* Later hops wait for all that left before them; this message did not. */
    all = event_of_flow(w, f, LH_STEP_LINKS, now);
    lh_slack_wait(w->graph, f->event, 0);
    lh_slack_wait(w->graph, op->left, 0);
    op->left = all;
}

void
lh_wait_recorder_flow_arrived(LhWaitRecorder *w, uint32_t flow, LhTime now)
{
    const FlowWaits *f = &w->flows[flow];

    w->now = event_of_flow(w, f, LH_STEP_LATENCY, now);
    lh_slack_wait(w->graph, f->event, now - f->event.time_ps);
}

void
lh_wait_recorder_meet(LhWaitRecorder *w, uint32_t rank, uint32_t op, LhTime now, LhTime end_ps)
{
    const LhEventRef all_there = w->now;

    w->now = lh_slack_event(w->graph, end_ps, rank, op, op_of(w, rank, op)->call, LH_STEP_LINKS);
    lh_slack_wait(w->graph, all_there, end_ps - now);
}
