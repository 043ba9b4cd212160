/*
 * Which options a schedule listens to, found by trying them: an option that changes none of the
 * schedule's programs is not one of its own. So no list can say other than what the code does.
 */
#pragma once

#include "base/json.h"
#include "sched/schedule.h"

/* Of const LhField *: the scenario's options that change programs of @schedule, in the order of the
 * scenario. Mask and shape are not tried. Caller unrefs. */
GPtrArray *lh_probe_options(const LhSchedule *schedule);

/* Whether the option @name (a field of the scenario that lh_probe_options tries) is one of them. */
bool lh_probe_option(const LhSchedule *schedule, const char *name);
