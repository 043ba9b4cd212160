/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of schedules, for training steps of models with layers of linear and of softmax attention:
 * selects the pairs to consider.
 */
#pragma once

#include "model/model.h"
#include "scenario/scenario.h"
#include "sched/schedule.h"

/* Whether the scenario is a training step of a model that has both kinds of attention. */
bool lh_pairs_wanted(const LhScenario *scenario, const LhModel *model);

/*
 * Replaces @schedules (those that the scenario names, or all) by the pairs to consider. Every named
 * schedule of linear attention is paired with every named one of softmax attention. If none of a
 * kind is named, all of that kind are used. Named pairs are kept. The order is that of the schedule
 * table, not of the names. Pairs that were not named and that place tokens differently are
 * impossible; they are dropped and counted in @left_out (may be NULL). With @context = 1 the
 * sequence is not distributed, and one schedule represents all that were not named.
 *
 * Without both kinds of layers there are no pairs: LH_ERROR_INPUT if one is named.
 */
bool lh_pairs_of(const LhScenario *scenario, const LhModel *model, uint32_t context,
                 GPtrArray *schedules, guint *left_out, GError **error);

/* Replaces two schedules that a step's scenario names by their pair, for commands that take one.
 * LH_ERROR_INPUT if they do not form a pair, or if both orders do. Other scenarios stay as they
 * are. */
bool lh_pairs_join(LhScenario *scenario, GError **error);

/* Checks that at most one of @schedules is left; else LH_ERROR_INPUT with their names. */
bool lh_pairs_check_one(const LhScenario *scenario, const GPtrArray *schedules, GError **error);

/* Default schedule of a kind where the sequence is not distributed: the first that places tokens as
 * @other does (NULL: a fixed default). */
const LhSchedule *lh_pairs_default(bool linear, const LhSchedule *other);
