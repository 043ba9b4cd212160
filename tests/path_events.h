/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of critical paths, simulated and executed: the rule for their events. */
#pragma once

#include "run_tests.h"
#include "sim/network/path.h"
#include "sim/slack.h"

/* Asserts that every event is as late as the latest one it waits for. */
static inline void
check_events(const LhSlackGraph *p, const char *what)
{
    for (guint i = 0; i < p->events->len; i++) {
        const LhEvent *event = &g_array_index(p->events, LhEvent, i);
        const guint end = i + 1 < p->events->len
                              ? g_array_index(p->events, LhEvent, i + 1).waits_first
                              : p->waits->len;
        LhTime at_ps = 0;

        for (guint w = event->waits_first; w < end; w++) {
            const LhWait *wait = &g_array_index(p->waits, LhWait, w);

            ck_assert_uint_lt(wait->event, i);
            ck_assert_int_ge(wait->takes_ps, 0);
            at_ps =
                MAX(at_ps, g_array_index(p->events, LhEvent, wait->event).time_ps + wait->takes_ps);
        }
        ck_assert_msg(at_ps == event->time_ps,
                      "%s: event %u (%s of rank %u, op %u) is at %" G_GINT64_FORMAT
                      " ps, and what it waits for at %" G_GINT64_FORMAT,
                      what, i, lh_step_kind_names[event->kind], event->rank, event->op,
                      event->time_ps, at_ps);
    }
}
