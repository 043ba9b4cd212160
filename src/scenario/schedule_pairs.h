/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of schedules for steps of models whose layers differ: which of them are in question.
 */
#pragma once

#include "model/model.h"
#include "scenario/scenario.h"
#include "sched/schedule.h"

/* Whether it is about steps of a model that has layers of linear and of softmax attention. */
bool lh_pairs_wanted(const LhScenario *scenario, const LhModel *model);

/*
 * Turns @schedules, those that the scenario names or all, into the pairs that are in question. Of
 * those named, every one of linear attention goes with every one of softmax attention; a kind of
 * which none is named has all of its schedules; pairs that are named are as they are. The order is
 * that of the table, whatever the order of names. Pairs that nobody named and that no step can
 * have, since they place tokens differently, are left out and counted in @left_out (may be NULL).
 * On @context ranks, 1, where nothing is spread, one schedule stands for all that were not named.
 *
 * Without layers of both kinds there are no pairs: LH_ERROR_INPUT if one is named.
 */
bool lh_pairs_of(const LhScenario *scenario, const LhModel *model, uint32_t context,
                 GPtrArray *schedules, guint *left_out, GError **error);

/* Turns two schedules that the scenario of a step names into their pair, for commands that take
 * one. LH_ERROR_INPUT if they are none, or if either order is one. Else nothing is done. */
bool lh_pairs_join(LhScenario *scenario, GError **error);

/* Whether one of @schedules is all that is in question; else LH_ERROR_INPUT, with their names. */
bool lh_pairs_check_one(const LhScenario *scenario, const GPtrArray *schedules, GError **error);

/* What stands for all schedules of a kind where nothing is spread: the first that places tokens as
 * @other does (NULL: none is there). */
const LhSchedule *lh_pairs_default(bool linear, const LhSchedule *other);
