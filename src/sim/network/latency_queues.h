/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Items whose transmission is complete and whose latency is pending. Items of one latency arrive in
 * the order in which they left, so each latency has a queue. There is only a handful of latencies.
 */
#pragma once

#include "base/units.h"

#include <stdbool.h>

typedef struct _LhLatencyQueue LhLatencyQueue;

/* Valid and empty if all zero except next_ps: lh_latency_queues_init(). */
typedef struct {
    LhLatencyQueue *lines;
    uint32_t lines_count;
    LhTime next_ps; /* when the next item arrives; LH_TIME_NEVER: none */
} LhLatencyQueues;

void lh_latency_queues_init(LhLatencyQueues *delays);
void lh_latency_queues_clear(LhLatencyQueues *delays);

/* Adds @item, which leaves at @now, no earlier than the items before it. */
void lh_latency_queues_add(LhLatencyQueues *delays, LhTime now, LhTime latency_ps, uint32_t item);

/* Takes one item that arrives at @now; false when there is none left. */
bool lh_latency_queues_take(LhLatencyQueues *delays, LhTime now, uint32_t *item);
