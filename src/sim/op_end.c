/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion of ops: the stream moves on, and the reason of the rank's idle time changes.
 */
#include "sim/sim_private.h"

/* Whether the next op of an open stream could run if its host had issued it. */
static inline bool
is_late(LhEngine *e, LhSimRank *rank, uint32_t stream)
{
    const uint32_t head = lh_next_op(e, rank, stream);
    LhNode *node;

    if (head == LH_NO_NODE)
        return false;
    node = lh_node(&rank->nodes, head);

    return node->gate == LH_NO_NODE && node->issued_ps > e->now &&
           lh_node_is_free(&rank->nodes, node);
}

/* Whether the host is late with an op that is due on one of @streams. */
static inline bool
waits_for_host(LhEngine *e, LhSimRank *rank, uint32_t streams)
{
    for (streams &= lh_open_streams(rank); streams != 0; streams &= streams - 1)
        if (is_late(e, rank, lh_first_stream(streams)))
            return true;
    return false;
}

/*
 * Why the rank computes nothing now: its host is late with the op that is due; or that op waits for
 * a copy between device and host; or data for it is in flight (the highest such tier); or it waits
 * for another rank.
 */
static uint8_t
why_idle(LhEngine *e, LhSimRank *rank)
{
    bool alone = false, copies;

    if (waits_for_host(e, rank, e->compute_streams))
        return LH_IDLE_HOST;
    copies = rank->copying > 0 && lh_host_copy_is_awaited(e, rank, &alone);
    if (alone)
        return LH_IDLE_COMM + LH_TIER_PCIE;
    for (uint32_t tier = LH_TIERS; tier-- > 0;)
        if (rank->moving[tier] > 0)
            return (uint8_t)(LH_IDLE_COMM + tier);
    if (copies)
        return LH_IDLE_COMM + LH_TIER_PCIE;
    if (rank->communicating > rank->copying)
        return LH_IDLE_IMBALANCE;
    return waits_for_host(e, rank, UINT32_MAX) ? LH_IDLE_HOST : LH_IDLE_IMBALANCE;
}

void
lh_engine_classify_idle(LhEngine *e, LhSimRank *rank)
{
    lh_idle_accounting_change(&rank->account, &e->results[rank->index], e->now, why_idle(e, rank));
}

static void
record(LhEngine *e, const LhSimRank *rank, uint32_t id)
{
    const LhNode *node = lh_node(&rank->nodes, id);
    LhTimelineRecord record = { .rank = rank->index,
                                .op = id,
                                .kind = node->kind,
                                .stream = node->stream,
                                .phase = node->phase,
                                .tier = node->tier,
                                .step = node->step,
                                .layer = node->layer,
                                .micro_batch = node->micro_batch,
                                .module = node->module,
                                .kernel = (LhKernelId)node->kernel,
                                .issued_ps = node->issued_ps,
                                .start_ps = node->start_ps,
                                .end_ps = e->now,
                                .bytes = node->kind == LH_OP_COMPUTE ? 0 : node->bytes,
                                .flops = node->flops };

    lh_transit_end(e, &record);
    e->params->timeline(e->params->timeline_data, &record);
}

void
lh_engine_complete(LhEngine *e, LhSimRank *rank, uint32_t id)
{
    LhNode *node = lh_node(&rank->nodes, id);
    LhQueue *queue = lh_queue(rank, node->stream);
    LhRankResult *result = &e->results[rank->index];

    if (e->causes != NULL)
        lh_path_recorder_op_ends(e->causes, rank->index, id, node, e->now);
    if (e->repeat != NULL)
        lh_fast_forward_note_op(e, LH_EVENT_OP_ENDS, rank, id);
    if (lh_engine_exposed(e, rank) != NULL)
        lh_exposed_end(lh_engine_exposed(e, rank), id, e->now);
    node->state = LH_NODE_DONE;
    result->finish_ps = e->now + e->skipped_ps;
    if (e->tails_ps != NULL && e->tails_ps[rank->index] != NULL)
        e->least_ps =
            MAX(e->least_ps, result->finish_ps + g_array_index(e->tails_ps[rank->index], LhTime,
                                                               id + rank->skipped_ops));
    queue->head = node->next;
    if (node->next == LH_NO_NODE) {
        queue->tail = LH_NO_NODE;
        rank->empty |= (uint16_t)(1u << node->stream);
    } else {
        rank->waiting |= (uint16_t)(1u << node->stream);
    }
    if (lh_node_is_of_host(node)) {
        lh_host_copy_end(e, rank);
    } else if (node->kind == LH_OP_COMPUTE) {
        if (--rank->computing > 0) {
            lh_share_sms(e, rank);
        } else if (e->machines != NULL) {
            lh_engine_machine(e, rank)->computing--;
            lh_share_cores(e, rank);
        }
        e->events += lh_engine_weight(e, rank->index);
    } else {
        if (--rank->communicating == 0)
            result->comm_ps += e->now - rank->communicating_ps;
        lh_share_hold(e, rank, -(int32_t)node->ctas);
    }
    if (e->params->timeline != NULL)
        record(e, rank, id);
    lh_nodes_retire(&rank->nodes);
}
