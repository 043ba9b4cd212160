/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with a scenario beyond its single fields: two values for one thing, options that
 * nothing would read.
 */
#pragma once

#include "scenario/scenario.h"

/* Slow ranks and links that are there, each named once. */
bool lh_check_faults(const LhScenario *scenario, uint64_t nodes, uint64_t ranks, GError **error);

/* Refuses what --cost unit and --cost flops make meaningless: they have free communication and no
 * device. */
bool lh_check_cost(const LhScenario *scenario, GError **error);

/*
 * Refuses an option of schedules that none of @schedules reads (of const LhSchedule *); @linear:
 * some of them attend linearly. A field of a file may be for another schedule than the one that an
 * option has picked.
 */
bool lh_check_read(const LhScenario *scenario, const GPtrArray *schedules, bool linear,
                   GError **error);
