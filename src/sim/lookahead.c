/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads exactly as far as a host that issues each op at once: until every stream has an op, in its
 * queue or among those read, or to the end of the window. The window begins with the oldest op in
 * flight, which is the same for both hosts while some queue is not empty; if all are, ops are
 * issued at once. An op that waits for one that has not been issued could only stand at the head of
 * its queue.
 *
 * Not where more depends on when an op is issued: fast-forward, the critical path, memory over
 * time, given times of ops.
 */
#include "sim/lookahead.h"

#include "sim/sim_private.h"

#include <string.h>

void
lh_lookahead_init(LhEngine *e)
{
    const LhSimParams *p = e->params;

    if (p->at_once || e->repeat != NULL || e->causes != NULL || p->memory != NULL ||
        p->steps_max > 0 || p->compute_time != NULL || p->time_share != NULL)
        return;
    e->ahead = g_new0(LhLookahead *, e->ranks_count);
}

void
lh_lookahead_clear(LhEngine *e)
{
    for (uint32_t r = 0; e->ahead != NULL && r < e->ranks_count; r++)
        g_free(e->ahead[r]);
    g_free(e->ahead);
}

/* The lookahead of the rank, from its next step on if there was none. */
static LhLookahead *
lookahead_of(LhEngine *e, const LhSimRank *rank)
{
    LhLookahead **at = &e->ahead[rank->index];

    if (rank->read)
        return *at;
    if (*at == NULL)
        *at = g_new(LhLookahead, 1);
    **at = (LhLookahead){ .next_id = rank->nodes.issued, .host_ps = rank->host_ps };
    memcpy(&(*at)->cursor, lh_engine_cursor(e, rank->index), e->cursor_bytes);
    return *at;
}

static bool
has_sync(const LhOpBuffer *buffer)
{
    for (uint32_t i = 0; i < buffer->ops_count; i++)
        if (buffer->ops[i].kind == LH_OP_SYNC)
            return true;
    return false;
}

static void
note_kind(LhLookahead *ahead, const LhOp *op)
{
    const uint32_t at = op->id % LH_LOOKAHEAD_KINDS;
    const uint64_t bit = UINT64_C(1) << at % 64;

    if (lh_op_on_stream(op))
        ahead->on_stream[at / 64] |= bit;
    else
        ahead->on_stream[at / 64] &= ~bit;
}

/* Whether op @id, read before op @now, is known to run on a stream. Others are complete as soon as
 * they are issued. */
static bool
is_on_stream(const LhLookahead *ahead, const LhNodes *nodes, uint32_t id, uint32_t now)
{
    const uint32_t at = id % LH_LOOKAHEAD_KINDS;

    return id >= nodes->issued && now - id < LH_LOOKAHEAD_KINDS &&
           (ahead->on_stream[at / 64] >> at % 64 & 1) != 0;
}

/* The latest op on a stream that @op waits for and that has not been issued: LH_OP_NONE if there is
 * none. */
static uint32_t
latest_before(const LhLookahead *ahead, const LhNodes *nodes, const LhOp *op)
{
    uint32_t latest = LH_OP_NONE;

    for (uint32_t i = 0; i < op->after_count; i++)
        if ((latest == LH_OP_NONE || op->after[i] > latest) &&
            is_on_stream(ahead, nodes, op->after[i], op->id))
            latest = op->after[i];
    return latest;
}

/* Reads the next step. */
static void
read_step(LhEngine *e, LhSimRank *rank, LhLookahead *ahead)
{
    const LhCursor before = ahead->cursor;

    if (!lh_cursor_step(&ahead->cursor, &e->buffer)) {
        ahead->ended = true;
        return;
    }
    ahead->sync = has_sync(&e->buffer);
    if (ahead->sync) {
        ahead->cursor = before;
        return;
    }
    rank->read = true;
    for (uint32_t i = 0; i < e->buffer.ops_count; i++) {
        const LhOp *op = &e->buffer.ops[i];

        lh_host_read(e, rank, op, &ahead->host_ps);
        note_kind(ahead, op);
        if (lh_op_on_stream(op) && ahead->read[op->stream]++ == 0) {
            ahead->after[op->stream] = latest_before(ahead, &rank->nodes, op);
            rank->ahead |= (uint16_t)(1u << op->stream);
        }
    }
    ahead->next_id += e->buffer.ops_count;
}

/* Whether the first op read on a stream may be able to start. */
static bool
may_start(const LhSimRank *rank, const LhLookahead *ahead, uint32_t stream)
{
    const uint32_t after = ahead->after[stream];

    return after == LH_OP_NONE ||
           (after < rank->nodes.issued && lh_node_is_done(&rank->nodes, after));
}

/* One step at a time, as a host that issues it: streams look for work in between. */
bool
lh_lookahead_pull(LhEngine *e, LhSimRank *rank)
{
    LhLookahead *ahead = lookahead_of(e, rank);
    const bool busy = (e->all_streams & ~rank->empty) != 0;
    const bool idle = (rank->empty & ~rank->ahead) != 0;

    if (!busy || ahead->sync)
        return lh_host_pull_step(e, rank);
    if (!idle || ahead->ended || !lh_nodes_in_window(&rank->nodes, ahead->next_id))
        return false;
    read_step(e, rank, ahead);
    if ((ahead->sync || ahead->ended) && !rank->read)
        return lh_host_pull_step(e, rank); /* nothing is left to read */
    return !ahead->ended;
}

uint32_t
lh_lookahead_head(LhEngine *e, LhSimRank *rank, uint32_t stream)
{
    const LhQueue *queue = lh_queue(rank, stream);

    if (!may_start(rank, e->ahead[rank->index], stream))
        return LH_NO_NODE;
    while (queue->head == LH_NO_NODE)
        lh_host_pull_step(e, rank);
    return queue->head;
}

void
lh_lookahead_issue(LhEngine *e, LhSimRank *rank, const LhOp *op)
{
    LhLookahead *ahead = e->ahead[rank->index];

    if (!lh_op_on_stream(op))
        return;
    if (--ahead->read[op->stream] == 0)
        rank->ahead &= (uint16_t) ~(1u << op->stream);
    ahead->after[op->stream] = LH_OP_NONE;
}
