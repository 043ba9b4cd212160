/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/slack.h"

#include <math.h>

LhSlackGraph *
lh_slack_new(uint32_t ranks)
{
    LhSlackGraph *p = g_new0(LhSlackGraph, 1);

    p->events = g_array_new(FALSE, FALSE, sizeof(LhEvent));
    p->waits = g_array_new(FALSE, FALSE, sizeof(LhWait));
    p->ops = g_new0(GArray *, ranks);
    p->ranks_count = ranks;
    for (uint32_t r = 0; r < ranks; r++)
        p->ops[r] = g_array_new(FALSE, FALSE, sizeof(LhOpEvents));
    return p;
}

void
lh_slack_free(LhSlackGraph *p)
{
    if (p == NULL)
        return;
    for (uint32_t r = 0; r < p->ranks_count; r++)
        g_array_unref(p->ops[r]);
    g_free(p->ops);
    g_array_unref(p->events);
    g_array_unref(p->waits);
    g_free(p);
}

uint32_t
lh_slack_event(LhSlackGraph *p, LhTime time_ps, uint32_t rank, uint32_t op, LhPathStepKind kind)
{
    const LhEvent event = { .time_ps = time_ps,
                            .waits_first = p->waits->len,
                            .rank = rank,
                            .op = op,
                            .kind = (uint8_t)kind };

    g_array_append_val(p->events, event);
    return p->events->len - 1;
}

void
lh_slack_wait(LhSlackGraph *p, uint32_t event, LhTime takes_ps)
{
    const LhWait wait = { .takes_ps = takes_ps, .event = event };

    if (event != LH_NO_EVENT)
        g_array_append_val(p->waits, wait);
}

void
lh_slack_over(LhSlackGraph *p, uint8_t tiers)
{
    g_array_index(p->events, LhEvent, p->events->len - 1).tiers = tiers;
}

LhOpEvents *
lh_slack_op(LhSlackGraph *p, uint32_t rank, uint32_t op)
{
    const LhOpEvents none = { LH_NO_EVENT, LH_NO_EVENT, LH_NO_EVENT };
    GArray *ops = p->ops[rank];

    while (ops->len <= op)
        g_array_append_val(ops, none);
    return &g_array_index(ops, LhOpEvents, op);
}

/* ---- reading ---- */

static inline const LhEvent *
event_at(const LhSlackGraph *p, uint32_t index)
{
    return &g_array_index(p->events, LhEvent, index);
}

static inline uint32_t
waits_end(const LhSlackGraph *p, uint32_t index)
{
    return index + 1 < p->events->len ? event_at(p, index + 1)->waits_first : p->waits->len;
}

/* A host that continues after the last op does not extend the run. */
static inline bool
ends_run(const LhEvent *event)
{
    return event->kind != LH_STEP_HOST;
}

static LhTime
makespan_of(const LhSlackGraph *p)
{
    LhTime last_ps = 0;

    for (uint32_t i = 0; i < p->events->len; i++)
        if (ends_run(event_at(p, i)))
            last_ps = MAX(last_ps, event_at(p, i)->time_ps);
    return last_ps;
}

LhTime *
lh_slack_of(const LhSlackGraph *p)
{
    const uint32_t count = p->events->len;
    const LhTime makespan_ps = makespan_of(p);
    LhTime *slack = g_new(LhTime, MAX(count, 1));

    for (uint32_t i = 0; i < count; i++)
        slack[i] =
            ends_run(event_at(p, i)) ? makespan_ps - event_at(p, i)->time_ps : LH_TIME_LONGEST;
    for (uint32_t i = count; i-- > 0;) {
        const LhEvent *event = event_at(p, i);

        for (uint32_t w = event->waits_first; w < waits_end(p, i); w++) {
            const LhWait *wait = &g_array_index(p->waits, LhWait, w);
            const LhTime early_ps =
                event->time_ps - wait->takes_ps - event_at(p, wait->event)->time_ps;

            slack[wait->event] = MIN(slack[wait->event], slack[i] + early_ps);
        }
    }
    return slack;
}

bool
lh_slack_of_op(const LhSlackGraph *p, const LhTime *slack, uint32_t rank, uint32_t op,
               LhTime *slack_ps)
{
    const GArray *ops = p->ops[rank];

    if (op >= ops->len || g_array_index(ops, LhOpEvents, op).done == LH_NO_EVENT)
        return false;
    *slack_ps = slack[g_array_index(ops, LhOpEvents, op).done];
    return true;
}

LhTime
lh_slack_replay(const LhSlackGraph *p, double (*share)(void *, const LhEvent *), void *data)
{
    const uint32_t count = p->events->len;
    g_autofree LhTime *times = g_new(LhTime, MAX(count, 1));
    LhTime last_ps = 0;

    for (uint32_t i = 0; i < count; i++) {
        const LhEvent *event = event_at(p, i);
        const double part = share != NULL ? share(data, event) : 1;

        times[i] = 0;
        for (uint32_t w = event->waits_first; w < waits_end(p, i); w++) {
            const LhWait *wait = &g_array_index(p->waits, LhWait, w);
            const LhTime takes_ps = part == 1 || wait->takes_ps == 0
                                        ? wait->takes_ps
                                        : lh_time_from_ps((double)wait->takes_ps * part);

            times[i] = MAX(times[i], times[wait->event] + takes_ps);
        }
        if (ends_run(event))
            last_ps = MAX(last_ps, times[i]);
    }
    return last_ps;
}

/* ---- chains ---- */

/* The wait of the event that ended last; the first of these on a tie. */
static uint32_t
last_before(const LhSlackGraph *p, uint32_t index)
{
    const uint32_t end = waits_end(p, index);
    uint32_t last = LH_NO_EVENT;
    LhTime last_ps = 0;

    for (uint32_t w = event_at(p, index)->waits_first; w < end; w++) {
        const LhWait *wait = &g_array_index(p->waits, LhWait, w);
        const LhTime at_ps = event_at(p, wait->event)->time_ps + wait->takes_ps;

        if (last != LH_NO_EVENT && at_ps <= last_ps)
            continue;
        last = wait->event;
        last_ps = at_ps;
    }
    return last;
}

static void
reverse(GArray *path)
{
    for (guint i = 0; i < path->len / 2; i++) {
        LhPathStep *a = &g_array_index(path, LhPathStep, i);
        LhPathStep *b = &g_array_index(path, LhPathStep, path->len - 1 - i);
        const LhPathStep step = *a;

        *a = *b;
        *b = step;
    }
}

GArray *
lh_slack_chain(const LhSlackGraph *p, uint32_t event)
{
    GArray *path = g_array_new(FALSE, FALSE, sizeof(LhPathStep));
    uint32_t before;

    for (; (before = last_before(p, event)) != LH_NO_EVENT; event = before) {
        const LhEvent *to = event_at(p, event);
        const LhEvent *from = event_at(p, before);
        const LhPathStep step = { .from_ps = from->time_ps,
                                  .to_ps = to->time_ps,
                                  .rank = to->rank,
                                  .op = to->op,
                                  .peer = to->kind == LH_STEP_HOST ? to->rank : from->rank,
                                  .kind = to->kind,
                                  .tiers = to->tiers };

        if (step.to_ps > step.from_ps)
            g_array_append_val(path, step);
    }
    reverse(path);
    return path;
}
