/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of a scenario that involve several fields: two values for one thing, options that nothing
 * reads.
 */
#pragma once

#include "scenario/scenario.h"

/* Checks that every straggler and link fault names an existing rank or node, and each only once. */
bool lh_check_faults(const LhScenario *scenario, uint64_t nodes, uint64_t ranks, GError **error);

/* Rejects fields that have no effect with --cost unit and --cost flops: these have free
 * communication and no device. */
bool lh_check_cost(const LhScenario *scenario, GError **error);

/*
 * Rejects an option of schedules that none of @schedules (of const LhSchedule *) reads. @linear:
 * some of them compute linear attention. A field of a file is allowed if an option has replaced the
 * file's schedule: it may belong to that other schedule.
 */
bool lh_check_read(const LhScenario *scenario, const GPtrArray *schedules, bool linear,
                   GError **error);
