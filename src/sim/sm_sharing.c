/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SM sharing: kernels of several compute streams share the SMs that communication leaves, max-min
 * fairly. No kernel gets more than it fills when alone; what one cannot fill goes to the others.
 */
#include "sim/sim_private.h"

#define HELD_MAX 0.9 /* limit of the share of the SMs that communication holds */

/* Collects the running kernels of a rank and updates their remaining work to now. */
static uint32_t
take_running(LhEngine *e, const LhSimRank *rank, LhNode *running[LH_STREAMS_MAX])
{
    uint32_t busy = e->all_streams & ~(uint32_t)(rank->waiting | rank->empty), count = 0;

    for (; busy != 0; busy &= busy - 1) {
        LhNode *node = lh_node(&rank->nodes, lh_queue(rank, lh_first_stream(busy))->head);

        if (node->kind != LH_OP_COMPUTE || lh_node_is_of_host(node))
            continue;
        node->work_ps -= (double)(e->now - node->updated_ps) * node->rate;
        node->work_ps = MAX(node->work_ps, 0);
        node->updated_ps = e->now;
        node->rate = 0;
        running[count++] = node;
    }
    return count;
}

void
lh_share_sms(LhEngine *e, LhSimRank *rank)
{
    LhNode *running[LH_STREAMS_MAX];
    const uint32_t count = take_running(e, rank, running);
    uint32_t open = count;
    double left = 1, share;
    bool capped;

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
        LhNode *node = running[i];

        if (node->rate <= 0)
            node->rate = rank->speed * share / node->occupancy;
        lh_heap_set(&e->heap, lh_queue_index(e, rank, node->stream),
                    e->now + lh_time_from_ps(node->work_ps / node->rate));
    }
}

/* The speed of each rank of the machine. Messages take cores from the whole machine, whichever rank
 * computes: the fraction `messages_hold` if all its ranks have messages in flight. */
static double
machine_speed(const LhEngine *e, const LhMachine *machine)
{
    const LhDevice *device = e->params->device;
    const double held = device->messages_hold * machine->holding / (double)device->machine_ranks;
    const double cores = (double)device->machine_cores * (1 - MIN(held, HELD_MAX));

    return MIN(1, cores / MAX(machine->computing, 1));
}

void
lh_share_cores(LhEngine *e, LhSimRank *rank)
{
    const uint64_t ranks = e->params->device->machine_ranks;
    const uint64_t first = rank->index / ranks * ranks;
    const uint64_t end = MIN(first + ranks, e->ranks_count);
    const double speed = machine_speed(e, lh_engine_machine(e, rank));

    for (uint64_t r = first; r < end; r++) {
        LhSimRank *other = &e->ranks[r];

        if (other->speed == speed && other != rank)
            continue;
        other->speed = speed;
        if (other->computing > 0)
            lh_share_sms(e, other);
    }
}

void
lh_share_change(LhEngine *e, LhSimRank *rank, int32_t ctas)
{
    const LhDevice *device = e->params->device;
    const bool had = rank->ctas > 0;
    double held;

    rank->ctas = (uint32_t)((int32_t)rank->ctas + ctas);
    if (e->machines != NULL) {
        lh_engine_machine(e, rank)->holding += (uint32_t)(rank->ctas > 0) - (uint32_t)had;
        lh_share_cores(e, rank);
        return;
    }
    held = device->messages_hold > 0 ? (rank->ctas > 0 ? device->messages_hold : 0)
                                     : (double)rank->ctas / (double)device->sm_count;
    rank->speed = 1 - MIN(held, HELD_MAX);
    if (rank->computing > 0)
        lh_share_sms(e, rank);
}
