/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/latency_queues.h"

#include <glib.h>

#define LINE_MIN 64 /* a power of two */

struct _LhLatencyQueue {
    LhTime latency_ps;
    LhTime *times_ps; /* ring buffers */
    uint32_t *items;
    uint32_t first, count, mask;
};

void
lh_latency_queues_init(LhLatencyQueues *delays)
{
    *delays = (LhLatencyQueues){ .next_ps = LH_TIME_NEVER };
}

void
lh_latency_queues_clear(LhLatencyQueues *delays)
{
    for (uint32_t i = 0; i < delays->lines_count; i++) {
        g_free(delays->lines[i].times_ps);
        g_free(delays->lines[i].items);
    }
    g_free(delays->lines);
}

static LhLatencyQueue *
line_of(LhLatencyQueues *delays, LhTime latency_ps)
{
    LhLatencyQueue *line;

    for (uint32_t i = 0; i < delays->lines_count; i++) {
        if (delays->lines[i].latency_ps == latency_ps)
            return &delays->lines[i];
    }
    delays->lines = g_renew(LhLatencyQueue, delays->lines, delays->lines_count + 1);
    line = &delays->lines[delays->lines_count++];
    *line = (LhLatencyQueue){ .latency_ps = latency_ps,
                              .times_ps = g_new(LhTime, LINE_MIN),
                              .items = g_new(uint32_t, LINE_MIN),
                              .mask = LINE_MIN - 1 };
    return line;
}

static void
grow_line(LhLatencyQueue *line)
{
    const uint32_t capacity = 2 * (line->mask + 1);
    LhTime *times_ps = g_new(LhTime, capacity);
    uint32_t *items = g_new(uint32_t, capacity);

    for (uint32_t i = 0; i < line->count; i++) {
        times_ps[i] = line->times_ps[(line->first + i) & line->mask];
        items[i] = line->items[(line->first + i) & line->mask];
    }
    g_free(line->times_ps);
    g_free(line->items);
    line->times_ps = times_ps;
    line->items = items;
    line->first = 0;
    line->mask = capacity - 1;
}

void
lh_latency_queues_add(LhLatencyQueues *delays, LhTime now, LhTime latency_ps, uint32_t item)
{
    LhLatencyQueue *line = line_of(delays, latency_ps);
    uint32_t at;

    if (line->count > line->mask)
        grow_line(line);
    at = (line->first + line->count++) & line->mask;
    line->times_ps[at] = now + latency_ps;
    line->items[at] = item;
    delays->next_ps = MIN(delays->next_ps, now + latency_ps);
}

/* The earliest arrival of all queues. */
static LhTime
next_of(const LhLatencyQueues *delays)
{
    LhTime next_ps = LH_TIME_NEVER;

    for (uint32_t i = 0; i < delays->lines_count; i++) {
        const LhLatencyQueue *line = &delays->lines[i];

        if (line->count > 0)
            next_ps = MIN(next_ps, line->times_ps[line->first & line->mask]);
    }
    return next_ps;
}

bool
lh_latency_queues_take(LhLatencyQueues *delays, LhTime now, uint32_t *item)
{
    for (uint32_t i = 0; now == delays->next_ps && i < delays->lines_count; i++) {
        LhLatencyQueue *line = &delays->lines[i];

        if (line->count == 0 || line->times_ps[line->first & line->mask] != now)
            continue;
        *item = line->items[line->first & line->mask];
        line->first++;
        line->count--;
        delays->next_ps = next_of(delays);
        return true;
    }
    return false;
}
