/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests: all events of a dependence graph at once, with their slack. */
#pragma once

#include "sim/causes/slack.h"

typedef struct {
    GArray *events;  /* of LhEvent */
    GArray *waits;   /* of LhWait */
    GArray *slack;   /* of LhTime, by event */
    GArray **places; /* by rank, of uint32_t: place in `events` of its event of an index */
    uint32_t ranks_count;
} RunEvents;

static inline void
run_events_add(void *data, const LhEvent *event, const LhWait *waits)
{
    RunEvents *run = data;
    const uint32_t place = run->events->len;
    LhEvent own = *event;

    own.waits_first = run->waits->len;
    g_assert(event->index == run->places[event->rank]->len);
    g_array_append_val(run->places[event->rank], place);
    g_array_append_val(run->events, own);
    g_array_append_vals(run->waits, waits, event->waits_count);
}

static inline void
run_events_add_slack(void *data, const LhEvent *event, LhTime slack_ps)
{
    RunEvents *run = data;
    const uint32_t place = g_array_index(run->places[event->rank], uint32_t, event->index);

    g_assert(place + run->slack->len + 1 == run->events->len);
    g_array_append_val(run->slack, slack_ps);
}

/* All events of the graph. The caller clears them. */
static inline RunEvents
run_events_of(const LhSlackGraph *p)
{
    RunEvents run = { .events = g_array_new(FALSE, FALSE, sizeof(LhEvent)),
                      .waits = g_array_new(FALSE, FALSE, sizeof(LhWait)),
                      .slack = g_array_new(FALSE, FALSE, sizeof(LhTime)),
                      .places = g_new(GArray *, p->ranks_count),
                      .ranks_count = p->ranks_count };

    for (uint32_t r = 0; r < p->ranks_count; r++)
        run.places[r] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    lh_slack_each(p, run_events_add, &run);
    lh_slack_of(p, run_events_add_slack, &run);
    for (guint i = 0; i < run.slack->len / 2; i++) {
        LhTime *a = &g_array_index(run.slack, LhTime, i);
        LhTime *b = &g_array_index(run.slack, LhTime, run.slack->len - 1 - i);
        const LhTime slack_ps = *a;

        *a = *b;
        *b = slack_ps;
    }
    return run;
}

static inline void
run_events_clear(RunEvents *run)
{
    for (uint32_t r = 0; r < run->ranks_count; r++)
        g_array_unref(run->places[r]);
    g_free(run->places);
    g_array_unref(run->events);
    g_array_unref(run->waits);
    g_array_unref(run->slack);
}

/* The place of the event waited for. */
static inline uint32_t
run_events_place(const RunEvents *run, const LhWait *wait)
{
    return g_array_index(run->places[wait->rank], uint32_t, wait->index);
}

/* Lowers the slack of the events that event @i waits for, according to its own. */
static inline void
run_events_pass_slack(const RunEvents *run, guint i, LhTime *slack)
{
    const LhEvent *event = &g_array_index(run->events, LhEvent, i);

    for (uint32_t w = event->waits_first; w < event->waits_first + event->waits_count; w++) {
        const LhWait *wait = &g_array_index(run->waits, LhWait, w);
        const uint32_t before = run_events_place(run, wait);
        const LhTime early_ps =
            event->time_ps - wait->takes_ps - g_array_index(run->events, LhEvent, before).time_ps;

        slack[before] = MIN(slack[before], slack[i] + early_ps);
    }
}

/* The slack of an op; false if it never ended. */
static inline bool
run_events_slack(const RunEvents *run, uint32_t rank, uint32_t op, LhTime *slack_ps)
{
    for (guint i = 0; i < run->places[rank]->len; i++) {
        const uint32_t place = g_array_index(run->places[rank], uint32_t, i);
        const LhEvent *event = &g_array_index(run->events, LhEvent, place);

        if (event->op != op || event->end != LH_EVENT_DONE)
            continue;
        *slack_ps = g_array_index(run->slack, LhTime, place);
        return true;
    }
    return false;
}
