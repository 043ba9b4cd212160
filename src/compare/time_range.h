/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run takes at both ends of what is assumed of its links: where measured collectives
 * contradict them, messages may be as slow as these or as fast as the links (sim/network/sends.h);
 * and collectives that were measured on other links than a node has now may take more or less of
 * what these do (sim/network/collectives/collective_table.h).
 */
#pragma once

#include "scenario/setup.h"
#include "scenario/setup_simulate.h"

/* Plays @program as lh_setup_simulate() does on the setup's cluster; and, where something is
 * assumed, again at both ends of it, for the result's fastest_ps and slowest_ps. Caller frees. */
LhSimResult *lh_time_range_simulate(const LhSetup *setup, const LhProgram *program,
                                    const LhHooks *hooks, GError **error);
