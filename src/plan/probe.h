/*
 * Which options a schedule listens to, found by trying them: an option that changes none of the
 * schedule's programs is not one of its own. So no list can say other than what the code does.
 */
#pragma once

#include "plan/setup.h"

/* Of const LhField *: the scenario's options that change programs of @schedule, in the order of the
 * scenario. Mask and shape are not tried. Caller unrefs. */
GPtrArray *lh_probe_options(const LhSchedule *schedule);

/* Likewise: the options that the setup's scenario gives and none of its schedules listens to.
 * Caller unrefs. */
GPtrArray *lh_probe_unread(const LhSetup *setup);

/* Whether the option @name (a field of the scenario that lh_probe_options tries) is one of them,
 * with attention of @kinds (LhAttentionKinds). */
bool lh_probe_option(const LhSchedule *schedule, unsigned kinds, const char *name);

/* Why the schedule, of softmax attention, refuses the full mask; NULL: it takes it. Caller frees.
 */
char *lh_probe_full_mask(const LhSchedule *schedule);
