/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has been sent whole and has its latency still to come. With one latency things arrive as
 * they left, so each latency has a queue, and there is a handful of latencies.
 */
#pragma once

#include "base/units.h"

#include <stdbool.h>

typedef struct _LhLatencyQueue LhLatencyQueue;

/* All zero but next_ps is valid and empty: lh_latency_queues_init(). */
typedef struct {
    LhLatencyQueue *lines;
    uint32_t lines_count;
    LhTime next_ps; /* when the next item arrives; LH_TIME_NEVER: there is none */
} LhLatencyQueues;

void lh_latency_queues_init(LhLatencyQueues *delays);
void lh_latency_queues_clear(LhLatencyQueues *delays);

/* @item leaves at @now, which is no earlier than what left before. */
void lh_latency_queues_add(LhLatencyQueues *delays, LhTime now, LhTime latency_ps, uint32_t item);

/* Takes one item that arrives at @now; false when there is none left. */
bool lh_latency_queues_take(LhLatencyQueues *delays, LhTime now, uint32_t *item);
