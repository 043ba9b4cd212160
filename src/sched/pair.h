/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of schedules: one for linear attention and one for softmax attention.
 */
#pragma once

#include "sched/schedule.h"

/* Like lh_schedule_find(), and also accepts pairs such as "lasp2 + ring", in either order, with
 * or without the spaces. */
const LhSchedule *lh_schedule_find_pair(const char *name, GError **error);

/* Returns the pair of @linear and @softmax, "lasp2 + ring", for a model with both kinds of
 * attention layers. If both are the same schedule, returns that schedule. Equal arguments give
 * the same pair, which is never freed. */
const LhSchedule *lh_schedule_pair(const LhSchedule *linear, const LhSchedule *softmax);

/* The schedule that computes this kind of attention: a side of a pair, or @schedule; NULL: none. */
const LhSchedule *lh_schedule_side(const LhSchedule *schedule, bool linear);
