/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between device and host. The device's copy engines run them beside kernels and without
 * SMs, one in each direction, in the order of their stream. Likewise kernels on the host's CPU,
 * which take no part of the link. While a rank computes nothing because its next kernel waits for
 * either, or because none is left, its time counts as exposed communication over PCIe. Not
 * modelled: memory bandwidth that copies take from kernels or from the CPU, and messages that take
 * the same PCIe links.
 */
#include "sim/sim_private.h"

/* Collects the running copies of a rank and updates their remaining time to now. */
static uint32_t
take_copies(LhEngine *e, const LhSimRank *rank, LhNode *running[LH_STREAMS_MAX])
{
    uint32_t busy = e->all_streams & ~(uint32_t)(rank->waiting | rank->empty), count = 0;

    for (; busy != 0; busy &= busy - 1) {
        LhNode *node = lh_node(&rank->nodes, lh_queue(rank, lh_first_stream(busy))->head);

        if (node->state != LH_NODE_RUNNING || !lh_node_is_of_host(node) || node->on_cpu)
            continue;
        node->work_ps -= (double)(e->now - node->updated_ps) * node->rate;
        node->work_ps = MAX(node->work_ps, 0);
        node->updated_ps = e->now;
        running[count++] = node;
    }
    return count;
}

/* Sets the rates of all running copies of the rank, and their end times. */
static void
share_link(LhEngine *e, LhSimRank *rank)
{
    LhNode *running[LH_STREAMS_MAX];
    const uint32_t count = take_copies(e, rank, running);
    const bool half = e->cost.host_link != NULL && e->cost.host_link->duplex == LH_DUPLEX_HALF;

    for (uint32_t i = 0; i < count; i++) {
        running[i]->rate = half ? 1.0 / count : 1;
        lh_heap_set(&e->heap, lh_queue_index(e, rank, running[i]->stream),
                    e->now + lh_time_from_ps(running[i]->work_ps / running[i]->rate));
    }
}

void
lh_host_copy_start(LhEngine *e, LhSimRank *rank, LhNode *node, uint32_t id)
{
    node->updated_ps = e->now;
    node->rate = 1;
    if (rank->communicating++ == 0)
        rank->communicating_ps = e->now;
    rank->copying++;
    if (lh_time_from_ps(node->work_ps) == 0)
        lh_engine_complete(e, rank, id);
    else if (node->on_cpu)
        lh_heap_set(&e->heap, lh_queue_index(e, rank, node->stream),
                    e->now + lh_time_from_ps(node->work_ps));
    else
        share_link(e, rank);
}

void
lh_host_copy_end(LhEngine *e, LhSimRank *rank)
{
    rank->copying--;
    if (--rank->communicating == 0)
        e->results[rank->index].comm_ps += e->now - rank->communicating_ps;
    e->events += lh_engine_weight(e, rank->index);
    share_link(e, rank);
}

/* Whether an op waits for a copy; sets @others if it waits for another op, too. */
static bool
node_waits(const LhSimRank *rank, const LhNode *node, bool *others)
{
    bool copies = false;

    for (uint32_t i = 0; i < node->after_count; i++) {
        if (lh_node_is_done(&rank->nodes, node->after[i]))
            continue;
        if (lh_node_is_of_host(lh_node(&rank->nodes, node->after[i])))
            copies = true;
        else
            *others = true;
    }
    return copies;
}

bool
lh_host_copy_is_awaited(LhEngine *e, LhSimRank *rank, bool *alone)
{
    uint32_t streams = e->compute_streams & lh_open_streams(rank);
    bool copies = false, others = false;

    /* No kernel is left, or none before the host has seen the end of all that it has issued. */
    if (rank->copying > 0 && streams == 0 && (rank->ended || rank->gate != LH_NO_NODE)) {
        *alone = rank->communicating == rank->copying;
        return true;
    }

    for (; rank->copying > 0 && streams != 0; streams &= streams - 1) {
        const uint32_t head = lh_next_op(e, rank, lh_first_stream(streams));

        if (head != LH_NO_NODE)
            copies |= node_waits(rank, lh_node(&rank->nodes, head), &others);
    }
    *alone = copies && !others;
    return copies;
}
