/* See the header. */
#include "sim/network/latency_queues.h"

#include <glib.h>

#define LINE_MIN 64 /* a power of two */

struct _LhDelayLine {
    LhTime latency_ps;
    LhTime *times_ps; /* ring buffers */
    uint32_t *items;
    uint32_t first, count, mask;
};

void
lh_delays_init(LhDelays *delays)
{
    *delays = (LhDelays){ .next_ps = LH_TIME_NEVER };
}

void
lh_delays_clear(LhDelays *delays)
{
    for (uint32_t i = 0; i < delays->lines_count; i++) {
        g_free(delays->lines[i].times_ps);
        g_free(delays->lines[i].items);
    }
    g_free(delays->lines);
}

static LhDelayLine *
line_of(LhDelays *delays, LhTime latency_ps)
{
    LhDelayLine *line;

    for (uint32_t i = 0; i < delays->lines_count; i++) {
        if (delays->lines[i].latency_ps == latency_ps)
            return &delays->lines[i];
    }
    delays->lines = g_renew(LhDelayLine, delays->lines, delays->lines_count + 1);
    line = &delays->lines[delays->lines_count++];
    *line = (LhDelayLine){ .latency_ps = latency_ps,
                           .times_ps = g_new(LhTime, LINE_MIN),
                           .items = g_new(uint32_t, LINE_MIN),
                           .mask = LINE_MIN - 1 };
    return line;
}

static void
grow_line(LhDelayLine *line)
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
lh_delays_add(LhDelays *delays, LhTime now, LhTime latency_ps, uint32_t item)
{
    LhDelayLine *line = line_of(delays, latency_ps);
    uint32_t at;

    if (line->count > line->mask)
        grow_line(line);
    at = (line->first + line->count++) & line->mask;
    line->times_ps[at] = now + latency_ps;
    line->items[at] = item;
    delays->next_ps = MIN(delays->next_ps, now + latency_ps);
}

/* The earliest of the lines' first items. */
static LhTime
next_of(const LhDelays *delays)
{
    LhTime next_ps = LH_TIME_NEVER;

    for (uint32_t i = 0; i < delays->lines_count; i++) {
        const LhDelayLine *line = &delays->lines[i];

        if (line->count > 0)
            next_ps = MIN(next_ps, line->times_ps[line->first & line->mask]);
    }
    return next_ps;
}

bool
lh_delays_take(LhDelays *delays, LhTime now, uint32_t *item)
{
    for (uint32_t i = 0; now == delays->next_ps && i < delays->lines_count; i++) {
        LhDelayLine *line = &delays->lines[i];

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
