/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps are kept in a pool with reference counts. References are held by the steps that a step
 * caused, by ops and messages in flight, and by each rank: for the ops that ended in this instant,
 * and for the step after which its host last went on. That suffices, because an op starts either
 * when something of its rank ends or when its host has issued it.
 */
#include "sim/causes/critical_path_recorder.h"

#include "program/program.h"
#include "sim/causes/wait_recorder.h"

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
} RankCauses;

/* A message in flight, since the last of its steps. */
typedef struct {
    LhPathStep next; /* step to come; `from_ps` is when it began */
    uint32_t last;
} FlowCauses;

struct _LhPathRecorder {
    const LhNetwork *network;
    LhSaturatedLinks *binding;
    Cause *pool;
    uint32_t pool_count, pool_capacity, pool_free;
    RankCauses *ranks;
    FlowCauses *flows;
    uint32_t flows_count;
    LhWaitRecorder *waits; /* NULL: not recorded */
    uint32_t now;          /* current cause, a step */
    uint32_t last;         /* step of the latest end */
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

LhPathRecorder *
lh_path_recorder_new(const LhNetwork *network, LhFlows *flows, bool shared,
                     const LhSymmetryGroups *fold, bool precedence)
{
    LhPathRecorder *c = g_new0(LhPathRecorder, 1);

    c->network = network;
    c->binding = lh_saturated_links_new(network, flows, shared);
    c->pool_free = c->now = c->last = LH_NO_STEP;
    c->ranks = g_new0(RankCauses, network->ranks);
    for (uint32_t r = 0; r < network->ranks; r++)
        c->ranks[r].host = LH_NO_STEP;
    if (precedence)
        c->waits = lh_wait_recorder_new(network, fold);
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
    lh_wait_recorder_free(c->waits);
    g_free(c->ranks);
    g_free(c->flows);
    g_free(c->pool);
    g_free(c);
}

/* ---- waits ---- */

void
lh_path_recorder_issued(LhPathRecorder *c, uint32_t rank, const LhOp *op, const LhOpBuffer *buffer)
{
    if (c->waits != NULL)
        lh_wait_recorder_issued(c->waits, rank, op, buffer);
}

void
lh_path_recorder_joins(LhPathRecorder *c)
{
    if (c->waits != NULL)
        lh_wait_recorder_joins(c->waits);
}

void
lh_path_recorder_delivered(LhPathRecorder *c, uint32_t rank, uint32_t id)
{
    if (c->waits != NULL)
        lh_wait_recorder_delivered(c->waits, rank, id);
}

void
lh_path_recorder_gather(LhPathRecorder *c, uint32_t rank, uint32_t id, bool first)
{
    if (c->waits != NULL)
        lh_wait_recorder_gather(c->waits, rank, id, first);
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
    if (c->waits != NULL)
        lh_wait_recorder_op_starts(c->waits, r, id, node, now);
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
    if (c->waits != NULL)
        lh_wait_recorder_op_ends(c->waits, r, id, node, now);
    if (c->last == LH_NO_STEP || now > end_of_step(c, c->last))
        hold(c, &c->last, c->now);
}

void
lh_path_recorder_sync_ends(LhPathRecorder *c, uint32_t r, uint32_t id, const LhNode *sync,
                           LhTime now, LhTime end_ps)
{
    RankCauses *rank = &c->ranks[r];

    if (c->waits != NULL)
        lh_wait_recorder_sync_ends(c->waits, r, id, sync, now, end_ps);
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
                             const LhFlowEnds *ends, LhTime now)
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
                      .op = ends->ops[0],
                      .kind = LH_STEP_LINKS,
                      .tiers =
                          tiers != 0 ? tiers : lh_saturated_links_of_route(c->network, route) };
    if (c->waits != NULL)
        lh_wait_recorder_flow_starts(c->waits, flow, ends, now);
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
    if (c->waits != NULL)
        lh_wait_recorder_flow_left(c->waits, flow, now);
}

void
lh_path_recorder_flow_arrived(LhPathRecorder *c, uint32_t flow, LhTime now)
{
    pass(c, flow, LH_STEP_LATENCY, now);
    drop(c, &c->flows[flow].last);
    if (c->waits != NULL)
        lh_wait_recorder_flow_arrived(c->waits, flow, now);
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
    if (c->waits != NULL)
        lh_wait_recorder_meet(c->waits, route->source, op, now, end_ps);
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
    return c->waits != NULL ? lh_wait_recorder_take(c->waits) : NULL;
}
