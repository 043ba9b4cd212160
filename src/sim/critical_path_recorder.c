/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps are kept in a pool with reference counts. References are held by the steps that a step
 * caused, by ops and messages in flight, and by each rank: for the ops that ended in this instant,
 * and for the step after which its host last went on. That suffices, because an op starts either
 * when something of its rank ends or when its host has issued it.
 */
#include "sim/critical_path_recorder.h"

#include "program/program.h"

typedef struct {
    LhPathStep step;
    uint32_t cause; /* index of a step, or LH_NO_STEP; while free: the next free one */
    uint32_t refs;
} Cause;

/* An op that ended in this instant. */
typedef struct {
    uint32_t id, step;
    uint8_t stream;
} Ended;

typedef struct {
    LhTime at_ps; /* when they all ended */
    Ended *ended;
    uint32_t count, capacity;
    uint32_t host; /* after which the host last went on */
    /* Events, if they are recorded: */
    uint32_t ends[LH_STREAMS_MAX]; /* of the last op of each stream */
    uint32_t gate;                 /* after which the host last went on */
    uint32_t retired;              /* event: all ops before `retired_ops` are complete */
    uint32_t retired_ops;
} RankCauses;

/* A message in flight, since the last of its steps. */
typedef struct {
    LhPathStep next; /* step to come; `from_ps` is when it began */
    uint32_t last;
    uint32_t event; /* its latest event */
    bool hop;
} FlowCauses;

struct _LhPathRecorder {
    const LhNetwork *network;
    LhSaturatedLinks *binding;
    Cause *pool;
    uint32_t pool_count, pool_capacity, pool_free;
    RankCauses *ranks;
    FlowCauses *flows;
    uint32_t flows_count;
    LhSlackGraph *events; /* NULL: not recorded */
    uint32_t now;         /* current cause, a step */
    uint32_t event_now;   /* likewise, an event */
    uint32_t last;        /* step of the latest end */
};

/* ---- steps ---- */

/* Releases @slot's step and every step that no other reference keeps. */
static void
drop(LhPathRecorder *c, uint32_t *slot)
{
    uint32_t step = *slot;

    *slot = LH_NO_STEP;
    while (step != LH_NO_STEP && --c->pool[step].refs == 0) {
        const uint32_t cause = c->pool[step].cause;

        c->pool[step].cause = c->pool_free;
        c->pool_free = step;
        step = cause;
    }
}

static void
hold(LhPathRecorder *c, uint32_t *slot, uint32_t step)
{
    if (step != LH_NO_STEP)
        c->pool[step].refs++;
    drop(c, slot);
    *slot = step;
}

static uint32_t
take_link(LhPathRecorder *c)
{
    const uint32_t index = c->pool_free;

    if (index != LH_NO_STEP) {
        c->pool_free = c->pool[index].cause;
        return index;
    }
    if (c->pool_count == c->pool_capacity) {
        c->pool_capacity = MAX(64, 2 * c->pool_capacity);
        c->pool = g_renew(Cause, c->pool, c->pool_capacity);
    }
    return c->pool_count++;
}

/* Appends @step to @slot's step. Does nothing if @step took no time. */
static void
follow(LhPathRecorder *c, uint32_t *slot, const LhPathStep *step)
{
    uint32_t index;

    if (step->to_ps <= step->from_ps)
        return;
    index = take_link(c);
    /* The slot's reference to its step passes to the new step. */
    c->pool[index] = (Cause){ .step = *step, .cause = *slot, .refs = 1 };
    *slot = index;
}

static LhTime
end_of_step(const LhPathRecorder *c, uint32_t step)
{
    return step == LH_NO_STEP ? 0 : c->pool[step].step.to_ps;
}

/* ---- setting up ---- */

static void
watch(void *data, uint32_t flow, LhTime now)
{
    LhPathRecorder *c = data;
    FlowCauses *f = &c->flows[flow];
    const uint8_t tiers = lh_saturated_links_of_flow(c->binding, flow);

    if (tiers == 0 || tiers == f->next.tiers)
        return;
    f->next.to_ps = now;
    follow(c, &f->last, &f->next);
    f->next.from_ps = now;
    f->next.tiers = tiers;
}

static void
refresh(void *data)
{
    lh_saturated_links_refresh(((LhPathRecorder *)data)->binding);
}

static void
keep_events(LhPathRecorder *c)
{
    c->events = lh_slack_new(c->network->ranks);
    /* The start of the run. */
    c->event_now = lh_slack_event(c->events, 0, 0, 0, LH_STEP_HOST);
    for (uint32_t r = 0; r < c->network->ranks; r++) {
        RankCauses *rank = &c->ranks[r];

        for (uint32_t s = 0; s < LH_STREAMS_MAX; s++)
            rank->ends[s] = LH_NO_EVENT;
        rank->gate = c->event_now;
        rank->retired = LH_NO_EVENT;
    }
}

LhPathRecorder *
lh_path_recorder_new(const LhNetwork *network, LhFlows *flows, bool shared, bool precedence)
{
    LhPathRecorder *c = g_new0(LhPathRecorder, 1);

    c->network = network;
    c->binding = lh_saturated_links_new(network, flows, shared);
    c->pool_free = c->now = c->last = LH_NO_STEP;
    c->ranks = g_new0(RankCauses, network->ranks);
    for (uint32_t r = 0; r < network->ranks; r++)
        c->ranks[r].host = LH_NO_STEP;
    if (precedence)
        keep_events(c);
    lh_flows_watch(flows, &(LhFlowsWatch){ .data = c, .settling = refresh, .changed = watch });
    return c;
}

void
lh_path_recorder_free(LhPathRecorder *c)
{
    if (c == NULL)
        return;
    for (uint32_t r = 0; r < c->network->ranks; r++)
        g_free(c->ranks[r].ended);
    lh_saturated_links_free(c->binding);
    lh_slack_free(c->events);
    g_free(c->ranks);
    g_free(c->flows);
    g_free(c->pool);
    g_free(c);
}

/* ---- events ---- */

/* 0 if there is no event. */
static LhTime
event_time(const LhPathRecorder *c, uint32_t event)
{
    return event == LH_NO_EVENT ? 0 : g_array_index(c->events->events, LhEvent, event).time_ps;
}

/* Returns the event at which all ops of the rank before @id are complete (LH_HOST_WINDOW). */
static uint32_t
retired_before(LhPathRecorder *c, uint32_t r, uint32_t id)
{
    RankCauses *rank = &c->ranks[r];

    for (; rank->retired_ops < id; rank->retired_ops++) {
        const uint32_t done = lh_slack_op(c->events, r, rank->retired_ops)->done;
        const uint32_t before = rank->retired;

        if (done == LH_NO_EVENT)
            continue; /* it takes no time */
        rank->retired = lh_slack_event(c->events, MAX(event_time(c, done), event_time(c, before)),
                                       r, rank->retired_ops, LH_STEP_HOST);
        lh_slack_wait(c->events, done, 0);
        lh_slack_wait(c->events, before, 0);
    }
    return rank->retired;
}

static void
event_op_starts(LhPathRecorder *c, uint32_t r, uint32_t id, const LhNode *node, LhTime now)
{
    RankCauses *rank = &c->ranks[r];
    const uint32_t window =
        id > LH_HOST_WINDOW ? retired_before(c, r, id - LH_HOST_WINDOW) : LH_NO_EVENT;
    const uint32_t start = lh_slack_event(c->events, now, r, id, LH_STEP_HOST);

    lh_slack_wait(c->events, rank->gate, node->issued_ps - event_time(c, rank->gate));
    lh_slack_wait(c->events, rank->ends[node->stream], 0);
    lh_slack_wait(c->events, window, 0);
    for (uint32_t i = 0; i < node->after_all; i++)
        lh_slack_wait(c->events, lh_slack_op(c->events, r, node->after[i])->done, 0);
    lh_slack_op(c->events, r, id)->start = start;
    c->event_now = start;
}

static void
event_op_ends(LhPathRecorder *c, uint32_t r, uint32_t id, const LhNode *node, LhTime now)
{
    const LhOpEvents op = *lh_slack_op(c->events, r, id);
    const bool computes = node->kind == LH_OP_COMPUTE;
    const uint32_t end =
        lh_slack_event(c->events, now, r, id, computes ? LH_STEP_COMPUTE : LH_STEP_LATENCY);

    lh_slack_wait(c->events, op.start, computes ? now - node->start_ps : 0);
    lh_slack_wait(c->events, op.done, 0);
    lh_slack_op(c->events, r, id)->done = end;
    c->ranks[r].ends[node->stream] = end;
}

static void
event_sync_ends(LhPathRecorder *c, uint32_t r, uint32_t id, const LhNode *sync, LhTime now,
                LhTime end_ps)
{
    RankCauses *rank = &c->ranks[r];
    const LhTime sync_ps = end_ps - MAX(now, sync->issued_ps);
    const uint32_t end = lh_slack_event(c->events, end_ps, r, id, LH_STEP_HOST);

    lh_slack_wait(c->events, rank->gate, sync->issued_ps - event_time(c, rank->gate) + sync_ps);
    for (uint32_t s = 0; s < LH_STREAMS_MAX; s++)
        lh_slack_wait(c->events, rank->ends[s], sync_ps);
    rank->gate = end;
}

/* Returns a new event: @rank's op has got as far as it is now, and @before has happened. */
static uint32_t
event_of_op(LhPathRecorder *c, uint32_t rank, uint32_t id, uint32_t before)
{
    const LhOpEvents op = *lh_slack_op(c->events, rank, id);
    const LhTime of_op = MAX(event_time(c, op.start), event_time(c, op.done));
    const uint32_t event =
        lh_slack_event(c->events, MAX(of_op, event_time(c, before)), rank, id, LH_STEP_LATENCY);

    lh_slack_wait(c->events, op.start, 0);
    lh_slack_wait(c->events, op.done, 0);
    lh_slack_wait(c->events, before, 0);
    return event;
}

void
lh_path_recorder_delivered(LhPathRecorder *c, uint32_t rank, uint32_t id)
{
    uint32_t event;

    if (c->events == NULL)
        return;
    event = event_of_op(c, rank, id, c->event_now);
    lh_slack_op(c->events, rank, id)->done = event;
}

void
lh_path_recorder_gather(LhPathRecorder *c, uint32_t rank, uint32_t id, bool first)
{
    if (c->events != NULL)
        c->event_now = event_of_op(c, rank, id, first ? LH_NO_EVENT : c->event_now);
}

/* A hop also waits for what its sender has sent and received so far. It may not have had to, but it
 * did not start earlier than that. */
static void
event_flow_starts(LhPathRecorder *c, FlowCauses *f, const uint32_t ops[2], bool hop, LhTime now)
{
    const LhOpEvents from = *lh_slack_op(c->events, f->next.rank, ops[0]);
    const LhOpEvents to = *lh_slack_op(c->events, f->next.peer, ops[1]);

    f->event = lh_slack_event(c->events, now, f->next.rank, ops[0], LH_STEP_LINKS);
    lh_slack_wait(c->events, from.start, 0);
    lh_slack_wait(c->events, to.start, 0);
    f->hop = hop;
    if (!hop)
        return;
    lh_slack_wait(c->events, from.done, 0);
    lh_slack_wait(c->events, from.left, 0);
    lh_slack_wait(c->events, c->event_now, 0);
}

static void
event_flow_left(LhPathRecorder *c, FlowCauses *f, LhTime now)
{
    LhOpEvents *op = lh_slack_op(c->events, f->next.rank, f->next.op);
    const uint32_t start = f->event;
    uint32_t all;

    f->event = lh_slack_event(c->events, now, f->next.rank, f->next.op, LH_STEP_LINKS);
    lh_slack_wait(c->events, start, now - event_time(c, start));
    c->event_now = f->event;
    if (!f->hop)
        return;
    if (op->left == LH_NO_EVENT) {
        op->left = f->event;
        return;
    }
    /* Later hops wait for all that left before them; this message did not. */
    all = lh_slack_event(c->events, now, f->next.rank, f->next.op, LH_STEP_LINKS);
    lh_slack_wait(c->events, f->event, 0);
    lh_slack_wait(c->events, op->left, 0);
    op->left = all;
}

static void
event_flow_arrived(LhPathRecorder *c, const FlowCauses *f, LhTime now)
{
    c->event_now = lh_slack_event(c->events, now, f->next.rank, f->next.op, LH_STEP_LATENCY);
    lh_slack_wait(c->events, f->event, now - event_time(c, f->event));
}

/* ---- ops ---- */

static bool
names(const LhNode *node, uint32_t id)
{
    for (uint32_t i = 0; i < node->after_all; i++)
        if (node->after[i] == id)
            return true;
    return false;
}

/* The op that ended last in this instant, of those that the op had to wait for; LH_NO_STEP: none.
 * Sets @found. */
static uint32_t
ended_before(const RankCauses *rank, const LhNode *node, LhTime now, bool *found)
{
    *found = false;
    if (rank->at_ps != now)
        return LH_NO_STEP;
    for (uint32_t i = rank->count; i-- > 0;) {
        const Ended *ended = &rank->ended[i];

        *found = ended->stream == node->stream || names(node, ended->id);
        if (*found)
            return ended->step;
    }
    /* The host could not issue the op earlier: LH_HOST_WINDOW. */
    *found = rank->count > 0 && node->issued_ps < now;
    return *found ? rank->ended[rank->count - 1].step : LH_NO_STEP;
}

void
lh_path_recorder_op_starts(LhPathRecorder *c, uint32_t r, uint32_t id, LhNode *node, LhTime now)
{
    RankCauses *rank = &c->ranks[r];
    bool found;
    uint32_t cause = ended_before(rank, node, now, &found);

    hold(c, &node->cause, found ? cause : rank->host);
    if (!found)
        follow(c, &node->cause,
               &(LhPathStep){ .from_ps = end_of_step(c, rank->host),
                              .to_ps = now,
                              .rank = r,
                              .op = id,
                              .peer = r,
                              .kind = LH_STEP_HOST });
    lh_path_recorder_because(c, node);
    if (c->events != NULL)
        event_op_starts(c, r, id, node, now);
}

void
lh_path_recorder_because(LhPathRecorder *c, const LhNode *node)
{
    hold(c, &c->now, node->cause);
}

static void
remember(LhPathRecorder *c, RankCauses *rank, uint32_t id, const LhNode *node, LhTime now)
{
    while (rank->at_ps != now && rank->count > 0)
        drop(c, &rank->ended[--rank->count].step);
    rank->at_ps = now;
    if (rank->count == rank->capacity) {
        rank->capacity = MAX(4, 2 * rank->capacity);
        rank->ended = g_renew(Ended, rank->ended, rank->capacity);
    }
    rank->ended[rank->count] = (Ended){ .id = id, .step = LH_NO_STEP, .stream = node->stream };
    hold(c, &rank->ended[rank->count++].step, c->now);
}

void
lh_path_recorder_op_ends(LhPathRecorder *c, uint32_t r, uint32_t id, LhNode *node, LhTime now)
{
    if (node->kind == LH_OP_COMPUTE) {
        lh_path_recorder_because(c, node);
        follow(c, &c->now,
               &(LhPathStep){ .from_ps = node->start_ps,
                              .to_ps = now,
                              .rank = r,
                              .op = id,
                              .peer = r,
                              .kind = LH_STEP_COMPUTE });
    }
    remember(c, &c->ranks[r], id, node, now);
    drop(c, &node->cause);
    if (c->events != NULL)
        event_op_ends(c, r, id, node, now);
    if (c->last == LH_NO_STEP || now > end_of_step(c, c->last))
        hold(c, &c->last, c->now);
}

void
lh_path_recorder_sync_ends(LhPathRecorder *c, uint32_t r, uint32_t id, const LhNode *sync,
                           LhTime now, LhTime end_ps)
{
    RankCauses *rank = &c->ranks[r];

    if (c->events != NULL)
        event_sync_ends(c, r, id, sync, now, end_ps);
    /* If the host reached the sync before its device was done, it waited for the latest end. */
    if (sync->issued_ps < now && rank->at_ps == now && rank->count > 0)
        hold(c, &rank->host, rank->ended[rank->count - 1].step);
    follow(c, &rank->host,
           &(LhPathStep){ .from_ps = end_of_step(c, rank->host),
                          .to_ps = end_ps,
                          .rank = r,
                          .op = id,
                          .peer = r,
                          .kind = LH_STEP_HOST });
}

/* ---- messages ---- */

void
lh_path_recorder_flow_starts(LhPathRecorder *c, uint32_t flow, const LhRoute *route,
                             const uint32_t ops[2], bool hop, LhTime now)
{
    uint8_t tiers;

    if (flow >= c->flows_count) {
        const uint32_t count = MAX(64, 2 * flow);

        c->flows = g_renew(FlowCauses, c->flows, count);
        for (; c->flows_count < count; c->flows_count++)
            c->flows[c->flows_count].last = LH_NO_STEP;
    }
    refresh(c);
    tiers = lh_saturated_links_of_flow(c->binding, flow);
    hold(c, &c->flows[flow].last, c->now);
    c->flows[flow].next =
        (LhPathStep){ .from_ps = now,
                      .rank = route->source,
                      .peer = route->destination,
                      .op = ops[0],
                      .kind = LH_STEP_LINKS,
                      .tiers =
                          tiers != 0 ? tiers : lh_saturated_links_of_route(c->network, route) };
    if (c->events != NULL)
        event_flow_starts(c, &c->flows[flow], ops, hop, now);
}

static void
pass(LhPathRecorder *c, uint32_t flow, LhPathStepKind next, LhTime now)
{
    FlowCauses *f = &c->flows[flow];

    f->next.to_ps = now;
    follow(c, &f->last, &f->next);
    f->next.from_ps = now;
    f->next.kind = (uint8_t)next;
    f->next.tiers = 0;
    hold(c, &c->now, f->last);
}

void
lh_path_recorder_flow_left(LhPathRecorder *c, uint32_t flow, LhTime now)
{
    pass(c, flow, LH_STEP_LATENCY, now);
    if (c->events != NULL)
        event_flow_left(c, &c->flows[flow], now);
}

void
lh_path_recorder_flow_arrived(LhPathRecorder *c, uint32_t flow, LhTime now)
{
    pass(c, flow, LH_STEP_LATENCY, now);
    drop(c, &c->flows[flow].last);
    if (c->events != NULL)
        event_flow_arrived(c, &c->flows[flow], now);
}

/* ---- closed forms ---- */

void
lh_path_recorder_meet(LhPathRecorder *c, const LhRoute *route, uint32_t op, LhTime now,
                      LhTime latency_ps, LhTime end_ps)
{
    LhPathStep step = { .from_ps = now,
                        .to_ps = MIN(now + latency_ps, end_ps),
                        .rank = route->source,
                        .peer = route->destination,
                        .op = op,
                        .kind = LH_STEP_LATENCY };

    follow(c, &c->now, &step);
    step.from_ps = step.to_ps;
    step.to_ps = end_ps;
    step.kind = LH_STEP_LINKS;
    step.tiers = lh_saturated_links_of_route(c->network, route);
    follow(c, &c->now, &step);
    if (c->events != NULL) {
        const uint32_t all_there = c->event_now;

        c->event_now = lh_slack_event(c->events, end_ps, route->source, op, LH_STEP_LINKS);
        lh_slack_wait(c->events, all_there, end_ps - now);
    }
}

void
lh_path_recorder_join(LhPathRecorder *c, uint32_t rank, uint32_t id, LhNode *node)
{
    hold(c, &node->cause, c->now);
    lh_path_recorder_delivered(c, rank, id);
}

/* ---- the end ---- */

GArray *
lh_path_recorder_path(const LhPathRecorder *c)
{
    GArray *path;
    guint count = 0;

    for (uint32_t i = c->last; i != LH_NO_STEP; i = c->pool[i].cause)
        count++;
    path = g_array_sized_new(FALSE, FALSE, sizeof(LhPathStep), MAX(count, 1));
    g_array_set_size(path, count);
    for (uint32_t i = c->last; i != LH_NO_STEP; i = c->pool[i].cause)
        g_array_index(path, LhPathStep, --count) = c->pool[i].step;
    return path;
}

LhSlackGraph *
lh_path_recorder_take_slack(LhPathRecorder *c)
{
    return g_steal_pointer(&c->events);
}
