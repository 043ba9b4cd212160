/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of critical paths, simulated and executed: the rule for their events. */
#pragma once

#include "run_events.h"
#include "run_tests.h"
#include "sim/network/path.h"

/* Asserts that every event is as late as the latest one it waits for. */
static inline void
check_events(const RunEvents *run, const char *what)
{
    for (guint i = 0; i < run->events->len; i++) {
        const LhEvent *event = &g_array_index(run->events, LhEvent, i);
        LhTime at_ps = 0;

        for (guint w = event->waits_first; w < event->waits_first + event->waits_count; w++) {
            const LhWait *wait = &g_array_index(run->waits, LhWait, w);
            const uint32_t before = run_events_place(run, wait);

            ck_assert_uint_lt(before, i);
            ck_assert_int_ge(wait->takes_ps, 0);
            at_ps =
                MAX(at_ps, g_array_index(run->events, LhEvent, before).time_ps + wait->takes_ps);
        }
        ck_assert_msg(at_ps == event->time_ps,
                      "%s: event %u (%s of rank %u, op %u) is at %" G_GINT64_FORMAT
                      " ps, and what it waits for at %" G_GINT64_FORMAT,
                      what, i, lh_step_kind_names[event->kind], event->rank, event->op,
                      event->time_ps, at_ps);
    }
}
