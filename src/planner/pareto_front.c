/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/pareto_front.h"

bool
lh_plan_is_beaten(const LhPlanSearch *search, guint index)
{
    const LhPlanOutcome *outcome = &search->outcomes[index];

    for (guint i = 0; i < search->ran->len; i++) {
        const guint other = g_array_index(search->ran, guint, i);
        const LhPlanOutcome *o = &search->outcomes[other];

        if (o->time_ps > outcome->time_ps)
            break;
        if (other != index && o->peak_bytes <= outcome->peak_bytes &&
            (o->peak_bytes < outcome->peak_bytes || o->time_ps < outcome->time_ps || other < index))
            return true;
    }
    return false;
}

bool
lh_plan_on_front(const LhPlanSearch *search, guint index)
{
    return !lh_plan_is_beaten(search, index);
}
