/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop. Each rank has a host that issues the ops of its program, and in-order streams
 * that run them. An op starts when its stream reaches it, the ops that it names in `after` are
 * complete and the host has issued it.
 *
 * All events of one instant are handled before the rates of the network are solved again.
 */
#include "sim/sim_private.h"

#include "base/error.h"

#include <stdatomic.h>

#define PROGRESS_EVENTS (1u << 16)
#define REPORTED_RANKS 4

/* ---- streams ---- */

static void
start_compute(LhEngine *e, LhSimRank *rank, LhNode *node, uint32_t id)
{
    const LhTime time = lh_time_from_ps(node->work_ps / rank->speed);

    if (lh_node_is_of_host(node)) {
        lh_host_copy_start(e, rank, node, id);
        return;
    }
    node->updated_ps = e->now;
    node->rate = rank->speed;
    if (rank->computing++ == 0 && e->machines != NULL)
        lh_engine_machine(e, rank)->computing++;
    if (time == 0)
        lh_engine_complete(e, rank, id);
    else if (rank->computing > 1)
        lh_share_sms(e, rank);
    else if (e->machines != NULL)
        lh_share_cores(e, rank);
    else
        lh_heap_set(&e->heap, lh_queue_index(e, rank, node->stream), e->now + time);
}

/* Starts the op at the head of a waiting stream if it may run; true if the stream moved on at
 * once. */
static bool
try_start(LhEngine *e, LhSimRank *rank, uint32_t stream)
{
    LhQueue *queue = lh_queue(rank, stream);
    const uint32_t id = queue->head;
    LhNode *node = lh_node(&rank->nodes, id);

    if (node->gate != LH_NO_NODE || !lh_node_is_free(&rank->nodes, node) ||
        !lh_nodes_in_window(&rank->nodes, id))
        return false;
    if (node->issued_ps > e->now) {
        lh_heap_set(&e->heap, lh_queue_index(e, rank, stream), node->issued_ps);
        return false;
    }
    node->state = LH_NODE_RUNNING;
    rank->waiting &= (uint16_t) ~(1u << stream);
    node->start_ps = e->now;
    if (e->causes != NULL)
        lh_path_recorder_op_starts(e->causes, rank->index, id, node, e->now);
    if (lh_engine_exposed(e, rank) != NULL)
        lh_exposed_start(lh_engine_exposed(e, rank), id, e->now);
    if (e->repeat != NULL)
        lh_fast_forward_note_op(e, LH_EVENT_OP_STARTS, rank, id);
    if (node->kind == LH_OP_COMPUTE) {
        start_compute(e, rank, node, id);
        return queue->head != id;
    }
    if (rank->communicating++ == 0)
        rank->communicating_ps = e->now;
    if (e->transits != NULL)
        lh_transit_begin(e, rank, stream);
    if (node->kind == LH_OP_COLLECTIVE)
        lh_collective_start(e, rank, id);
    else if (node->pending == 0)
        lh_engine_complete(e, rank, id);
    else
        lh_exchange_start(e, rank, id);
    return queue->head != id;
}

/* Starts what can start, stream by stream; true if some stream moved on at once. */
static bool
start_heads(LhEngine *e, LhSimRank *rank)
{
    uint32_t passed = 0, open; /* the streams up to the current one; the open ones behind these */
    bool moved = false;

    while ((open = lh_open_streams(rank) & ~passed) != 0) {
        const uint32_t s = lh_first_stream(open);
        const bool again = lh_next_op(e, rank, s) != LH_NO_NODE && try_start(e, rank, s);

        passed = ((again ? 1u : 2u) << s) - 1;
        moved |= again;
    }
    return moved;
}

/* Advances the rank as far as it gets in this instant. */
static void
advance(LhEngine *e, LhSimRank *rank)
{
    bool moved;

    do {
        moved = rank->gate != LH_NO_NODE && lh_host_pass_sync(e, rank);
        moved |= start_heads(e, rank);
        moved |= lh_host_pull(e, rank);
    } while (moved && e->error == NULL);
    lh_engine_classify(e, rank);
}

static void
handle_stream_event(LhEngine *e, uint32_t item)
{
    const uint32_t r = item >> e->streams_shift;
    LhSimRank *rank = &e->ranks[r];
    const uint32_t id = e->queues[item].head;
    LhNode *node = lh_node(&rank->nodes, id);

    if (node->state == LH_NODE_RUNNING && node->timed) {
        rank->moving[node->tier]--;
        e->events += lh_engine_weight(e, r);
        if (e->causes != NULL)
            lh_path_recorder_because(e->causes, node);
    }
    if (node->state == LH_NODE_RUNNING && (node->kind == LH_OP_COMPUTE || node->timed))
        lh_engine_complete(e, rank, id);
    lh_news_add(e, r);
}

/* ---- the loop ---- */

static void
handle_flow_event(LhEngine *e, uint32_t flow)
{
    if (!lh_flows_event(e->moving.flows, flow, e->now))
        return;
    if (e->causes != NULL)
        lh_path_recorder_flow_left(e->causes, flow, e->now);
    if (e->repeat != NULL)
        lh_fast_forward_note_flow(e, LH_EVENT_FLOW_LEAVES, flow);
    if (e->moving.ends[flow].of == LH_ENDS_HOP)
        lh_hop_left(e, flow);
}

/* Handles all events at e->now: ops and transfers that end, in insertion order, then messages that
 * arrive. */
static void
handle_instant(LhEngine *e)
{
    const uint32_t queues = e->ranks_count << e->streams_shift;
    LhFlows *flows = e->moving.flows;
    uint32_t flow;

    while (lh_heap_time(&e->heap) == e->now) {
        const uint32_t item = lh_heap_pop(&e->heap);

        if (item < queues)
            handle_stream_event(e, item);
        else
            handle_flow_event(e, item - queues);
    }
    if (lh_flows_next_arrival(flows) == e->now) {
        while (lh_flows_arrive(flows, e->now, &flow))
            lh_flow_arrived(e, flow);
    }
}

static inline bool
rank_finished(const LhEngine *e, const LhSimRank *rank)
{
    return (rank->ended && rank->nodes.first == rank->nodes.issued) ||
           !lh_engine_plays(e, rank->index);
}

/* Whether the host could issue no more ops, because it is too far ahead of its device. */
static bool
window_is_full(const LhEngine *e, const LhSimRank *rank)
{
    const LhNodes *nodes = &rank->nodes;

    if (rank->gate != LH_NO_NODE)
        return false;
    if (rank->read)
        return !e->ahead[rank->index]->ended &&
               !lh_nodes_in_window(nodes, e->ahead[rank->index]->next_id);
    return !rank->ended && !lh_nodes_in_window(nodes, nodes->issued);
}

static void
describe_wait(const LhEngine *e, const LhSimRank *rank, GString *out)
{
    const LhNode *node = lh_node(&rank->nodes, rank->nodes.first);

    g_string_append_printf(out, "\n  rank %u, op %u (%s, step %u) ", rank->index,
                           rank->nodes.first + rank->skipped_ops, lh_op_kind_names[node->kind],
                           node->step);
    if (node->state == LH_NODE_RUNNING && node->kind == LH_OP_COLLECTIVE)
        g_string_append(out, "waits for the rest of its group");
    else if (node->state == LH_NODE_RUNNING)
        g_string_append_printf(out, "waits for %u messages whose other side was never posted",
                               node->pending);
    else if (node->after_count > 0)
        g_string_append_printf(out, "waits for op %u",
                               node->after[node->after_count - 1] + rank->skipped_ops);
    else
        g_string_append(out, "waits for its stream");
    if (window_is_full(e, rank))
        g_string_append_printf(out,
                               "; its host is %d ops ahead and issues no more until it completes",
                               LH_HOST_WINDOW);
}

/* Reports a deadlock: no event is left, but some rank has not finished. */
static void
deadlock(LhEngine *e)
{
    g_autoptr(GString) text = g_string_new(NULL);
    uint32_t stuck = 0;

    for (uint32_t r = 0; r < e->ranks_count; r++) {
        if (rank_finished(e, &e->ranks[r]))
            continue;
        if (stuck++ < REPORTED_RANKS)
            describe_wait(e, &e->ranks[r], text);
    }
    g_set_error(&e->error, LH_ERROR, LH_ERROR_RUNTIME,
                "the program cannot end (deadlock): %u of %u ranks wait for ever%s%s", stuck,
                e->ranks_count, text->str, stuck > REPORTED_RANKS ? "\n  ..." : "");
}

static bool
all_finished(const LhEngine *e)
{
    for (uint32_t r = 0; r < e->ranks_count; r++)
        if (!rank_finished(e, &e->ranks[r]))
            return false;
    return true;
}

static void
work_off_news(LhEngine *e)
{
    while (e->news.count > 0 && e->error == NULL) {
        LhSimRank *rank = &e->ranks[e->news.ranks[e->news.first++ & e->news.mask]];

        e->news.count--;
        rank->listed = false;
        advance(e, rank);
    }
    if (lh_flows_unsettled(e->moving.flows) && !e->free_network)
        lh_flows_settle(e->moving.flows, e->now);
}

static void
report_progress(LhEngine *e)
{
    const LhProgress at = { .what = e->params->program->name,
                            .events = e->events,
                            .now_ps = e->now + e->skipped_ps };

    if (!lh_task_tell(&e->params->task, &at))
        g_set_error(&e->error, LH_ERROR, LH_ERROR_RUNTIME, "interrupted");
}

/* Whether the next event lies beyond the time limit. A run whose ranks have all finished is not
 * abandoned: its makespan is known. */
static bool
takes_too_long(const LhEngine *e, LhTime next)
{
    return e->params->limit_ps != NULL &&
           next > atomic_load_explicit(e->params->limit_ps, memory_order_relaxed) &&
           !all_finished(e);
}

void
lh_engine_run(LhEngine *e)
{
    uint64_t reported = 0;

    for (uint32_t r = 0; r < e->ranks_count; r++) {
        if (lh_engine_plays(e, r))
            lh_news_add(e, r);
    }
    work_off_news(e);
    while (e->error == NULL) {
        const LhTime next = MIN(lh_heap_time(&e->heap), lh_flows_next_arrival(e->moving.flows));

        if (next == LH_TIME_NEVER)
            break;
        if (takes_too_long(e, MAX(next + e->skipped_ps, e->least_ps))) {
            g_set_error(&e->error, LH_ERROR, LH_ERROR_NO, "the program exceeds its time limit");
            e->now = MAX(next, e->least_ps - e->skipped_ps);
            break;
        }
        if (next >= LH_TIME_LONGEST - e->skipped_ps) {
            g_set_error(&e->error, LH_ERROR, LH_ERROR_NO,
                        "it takes more than 26 days, the maximum of simulated time");
            break;
        }
        e->now = next;
        handle_instant(e);
        work_off_news(e);
        if (e->repeat != NULL && e->error == NULL)
            lh_fast_forward_instant(e);
        if (G_UNLIKELY(e->events - reported >= PROGRESS_EVENTS)) {
            reported = e->events;
            report_progress(e);
        }
    }
    if (e->error == NULL && !all_finished(e))
        deadlock(e);
}
