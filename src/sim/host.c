/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts issue the ops of their programs in order, one launch time apart, and wait at a sync until
 * their device is done. A host is at most LH_HOST_WINDOW ops ahead of its device. The simulator
 * keeps it only as far ahead as necessary: it reads the next step when some stream has nothing left
 * to do.
 */
#include "sim/sim_private.h"

#include "base/error.h"
#include "program/work.h"

static void
malformed(LhEngine *e, const LhSimRank *rank, const LhOp *op, const char *what)
{
    if (e->error == NULL)
        g_set_error(&e->error, LH_ERROR, LH_ERROR_INPUT, "rank %u, op %u: %s", rank->index,
                    op->id + rank->skipped_ops, what);
}

/* @read: whether the op has been read ahead, and so was counted then. */
static void
issue_memory(LhEngine *e, LhSimRank *rank, LhNode *node, const LhOp *op, bool read)
{
    node->state = LH_NODE_DONE;
    node->after_count = 0;
    node->after_all = 0;
    node->region = op->memory.region;
    if (rank->gate == LH_NO_NODE && !read)
        lh_memory_changes(e, rank, op->id + rank->skipped_ops, node,
                          MAX(rank->host_ps, e->now) + e->skipped_ps);
    lh_nodes_retire(&rank->nodes);
}

/* Initialises the part of an exchange or a collective. */
static void
init_communication(LhEngine *e, const LhSimRank *rank, LhNode *node, const LhOp *op)
{
    node->share = lh_engine_time_share(e, rank->index, op->id + rank->skipped_ops, op, &e->buffer);
    node->bytes = 0;
    node->pending = 0;
    node->posts = LH_NO_POST;
    node->ctas = 0;
}

/* The time of an op that was summed when it was read. */
static LhTime
cost_again(LhEngine *e, const LhOp *op, double *occupancy)
{
    const LhCost cost = e->cost;
    const LhTime time = lh_cost_compute(&e->cost, e->program, op, occupancy);

    e->cost.spent_s = cost.spent_s;
    e->cost.uncertain_s = cost.uncertain_s;
    e->cost.judged_s = cost.judged_s;
    return time;
}

static void
issue_compute(LhEngine *e, LhSimRank *rank, LhNode *node, const LhOp *op, bool read)
{
    const LhSimParams *p = e->params;
    const uint32_t r = rank->index;
    LhTime time;

    node->flops = lh_op_flops(op);
    node->kernel = (uint8_t)op->compute.kernel;
    node->on_cpu = lh_op_on_cpu(e->program, op);
    node->occupancy = 1;
    if (p->compute_time != NULL)
        time = p->compute_time(p->compute_time_data, r, op);
    else if (read)
        time = cost_again(e, op, &node->occupancy);
    else
        time = lh_cost_compute(&e->cost, e->program, op, &node->occupancy);
    node->work_ps = (double)time;
    if (!lh_node_is_of_host(node))
        node->work_ps *= lh_sim_variation(p, r, op->id);
    if (e->slowdown != NULL && !lh_node_is_of_host(node))
        node->work_ps *= e->slowdown[r];
    node->work_ps *= lh_engine_time_share(e, r, op->id + rank->skipped_ops, op, &e->buffer);
    e->results[r].flops += node->flops;
    e->results[r].dense_flops += lh_op_dense_flops(op);
}

static void
issue_exchange(LhEngine *e, LhSimRank *rank, LhNode *node, const LhOp *op)
{
    const uint32_t r = rank->index;
    uint32_t last = LH_NO_POST;

    init_communication(e, rank, node, op);
    node->pending = op->exchange.parts_count;
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &e->buffer.parts[op->exchange.parts_first + i];
        const uint32_t index = lh_matcher_add(&e->matcher);
        LhPost *post = &e->matcher.posts[index];

        if (part->peer >= e->ranks_count || part->peer == r)
            malformed(e, rank, op, "the peer of a message must be another existing rank");
        post->rank = r;
        post->node = op->id;
        post->peer = part->peer;
        post->communicator = op->communicator;
        post->send = part->send;
        post->next = LH_NO_POST;
        post->bytes = part->wire_bytes;
        if (last == LH_NO_POST)
            node->posts = index;
        else
            e->matcher.posts[last].next = index;
        last = index;
    }
}

static void
issue_collective(LhEngine *e, LhSimRank *rank, LhNode *node, const LhOp *op)
{
    init_communication(e, rank, node, op);
    node->posts =
        lh_collectives_issue(e->collectives, e->program, rank->index, op, e->buffer.counts);
    if (node->posts == UINT32_MAX)
        malformed(e, rank, op,
                  "its group must contain the rank, no rank twice and only existing ranks");
}

static void
enqueue(LhSimRank *rank, const LhNode *node, uint32_t id)
{
    LhQueue *queue = lh_queue(rank, node->stream);

    if (queue->tail == LH_NO_NODE) {
        queue->head = id;
        rank->empty &= (uint16_t) ~(1u << node->stream);
        rank->waiting |= (uint16_t)(1u << node->stream);
    } else {
        lh_node(&rank->nodes, queue->tail)->next = id;
    }
    queue->tail = id;
}

static LhNode *
add_node(LhEngine *e, LhSimRank *rank, const LhOp *op)
{
    LhNode *node = lh_nodes_add(&rank->nodes);

    node->state = LH_NODE_QUEUED;
    node->kind = op->kind;
    node->stream = op->stream;
    node->phase = op->phase;
    node->module = op->module;
    node->layer = op->layer;
    node->micro_batch = op->micro_batch;
    node->kernel = 0;
    node->tier = LH_TIERS;
    node->step = op->step;
    node->next = LH_NO_NODE;
    node->gate = rank->gate;
    node->timed = false;
    node->issued_ps = rank->host_ps;
    node->flops = 0;
    node->after_count = 0;
    node->cause = LH_NO_STEP;
    for (uint32_t i = 0; i < op->after_count; i++) {
        if (op->after[i] >= op->id)
            malformed(e, rank, op, "`after` names an op that is not earlier");
        else if (e->causes != NULL || !lh_node_is_done(&rank->nodes, op->after[i]))
            node->after[node->after_count++] = op->after[i];
    }
    node->after_all = node->after_count;
    e->ops += lh_engine_weight(e, rank->index);
    return node;
}

static void
take_host_time(LhEngine *e, const LhOp *op, LhTime *host_ps)
{
    const LhTime call_ps = e->free_network ? 0 : lh_call_host_ps(e->cost.framework, op);

    if (e->launch_ps > 0)
        e->host_provenance = MAX(e->host_provenance, e->params->device->host_provenance);
    if (call_ps > 0)
        e->host_provenance = MAX(e->host_provenance, (int)e->cost.trust.host);
    /* A run beyond the maximum of simulated time is rejected when it gets there. */
    *host_ps = MIN(*host_ps + e->launch_ps + call_ps, 2 * LH_TIME_LONGEST);
}

void
lh_host_read(LhEngine *e, const LhSimRank *rank, const LhOp *op, LhTime *host_ps)
{
    if (op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE) {
        const LhNode node = { .kind = op->kind,
                              .phase = op->phase,
                              .layer = op->layer,
                              .micro_batch = op->micro_batch,
                              .region = op->memory.region };

        lh_memory_changes(e, rank, op->id, &node, MAX(*host_ps, e->now));
        return;
    }
    if (op->kind == LH_OP_COMPUTE)
        lh_cost_compute(&e->cost, e->program, op, NULL);
    if (!lh_op_is_outside(op))
        take_host_time(e, op, host_ps);
}

static void
issue(LhEngine *e, LhSimRank *rank, const LhOp *op, bool read)
{
    LhNode *node = add_node(e, rank, op);

    switch (op->kind) {
    case LH_OP_ALLOC:
    case LH_OP_FREE:
        issue_memory(e, rank, node, op, read);
        return;
    case LH_OP_SYNC:
        rank->gate = op->id;
        rank->host_ps = 0;
        return;
    case LH_OP_COMPUTE:
        issue_compute(e, rank, node, op, read);
        break;
    case LH_OP_EXCHANGE:
        issue_exchange(e, rank, node, op);
        break;
    default:
        issue_collective(e, rank, node, op);
    }
    if (!lh_op_is_outside(op))
        take_host_time(e, op, &rank->host_ps);
    enqueue(rank, node, op->id);
}

/* Translates the ids of the op from the program's to nodes'. Ops skipped by fast-forward have no
 * nodes. */
static void
renumber(const LhSimRank *rank, LhOp *op)
{
    uint32_t kept = 0;

    op->id -= rank->skipped_ops;
    for (uint32_t i = 0; i < op->after_count; i++) {
        if (op->after[i] >= rank->skipped_ops) /* else it is long complete */
            op->after[kept++] = op->after[i] - rank->skipped_ops;
    }
    op->after_count = (uint8_t)kept;
}

bool
lh_host_pull_step(LhEngine *e, LhSimRank *rank)
{
    LhCursor *cursor = lh_engine_cursor(e, rank->index);
    const bool read = rank->read;

    if ((e->params->steps_max > 0 && cursor->own.step >= e->params->steps_max) ||
        !lh_cursor_step(cursor, &e->buffer)) {
        rank->ended = true;
        return false;
    }
    if (read)
        rank->read = e->ahead[rank->index]->cursor.own.step > cursor->own.step;
    for (uint32_t i = 0; i < e->buffer.ops_count; i++) {
        LhOp *op = &e->buffer.ops[i];

        if (rank->skipped_ops > 0)
            renumber(rank, op);
        if (e->causes != NULL)
            lh_path_recorder_issued(e->causes, rank->index, op, &e->buffer);
        issue(e, rank, op, read);
        if (read)
            lh_lookahead_issue(e, rank, op);
        if (lh_engine_exposed(e, rank) != NULL)
            lh_exposed_issue(lh_engine_exposed(e, rank), e->program, op,
                             e->params->exposed_dimension(op));
        if (e->repeat != NULL)
            lh_fast_forward_issue(e, rank, lh_node(&rank->nodes, op->id), op, i == 0);
    }
    return true;
}

bool
lh_host_pass_sync(LhEngine *e, LhSimRank *rank)
{
    LhNodes *nodes = &rank->nodes;
    LhNode *sync = nodes->first < nodes->issued ? lh_node(nodes, nodes->first) : NULL;
    const uint32_t id = nodes->first;
    LhTime end;

    if (sync == NULL || sync->kind != LH_OP_SYNC || sync->gate != LH_NO_NODE)
        return false;
    end = MAX(e->now, sync->issued_ps) + e->sync_ps;
    if (e->sync_ps > 0)
        e->host_provenance = MAX(e->host_provenance, e->params->device->host_provenance);
    if (e->causes != NULL)
        lh_path_recorder_sync_ends(e->causes, rank->index, id, sync, e->now, end);
    sync->state = LH_NODE_DONE;
    for (uint32_t later = id + 1; later < nodes->issued; later++) {
        LhNode *node = lh_node(nodes, later);

        if (node->gate != id)
            continue;
        node->gate = LH_NO_NODE;
        node->issued_ps += end;
        if (node->kind == LH_OP_ALLOC || node->kind == LH_OP_FREE)
            lh_memory_changes(e, rank, later + rank->skipped_ops, node,
                              node->issued_ps + e->skipped_ps);
    }
    if (rank->gate == id) {
        rank->gate = LH_NO_NODE;
        rank->host_ps += end;
    }
    lh_nodes_retire(nodes);
    return true;
}
