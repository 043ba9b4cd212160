/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of schedules: one for linear attention and one for softmax attention.
 */
#pragma once

#include "sched/schedule.h"

/* As lh_schedule_find(), and "lasp2 + ring", in either order and with or without the spaces, is a
 * pair. */
const LhSchedule *lh_schedule_find_pair(const char *name, GError **error);

/* "lasp2 + ring": of a model with both kinds of attention, what its layers of linear and what those
 * of softmax attention have. Two that are the same are this one. The same two are always the same
 * pair, which is never freed. */
const LhSchedule *lh_schedule_pair(const LhSchedule *linear, const LhSchedule *softmax);

/* What computes this kind of attention: a side of a pair, or @schedule; NULL: nothing does. */
const LhSchedule *lh_schedule_side(const LhSchedule *schedule, bool linear);
