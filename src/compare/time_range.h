/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makespans at both ends of assumptions about links. Where measured collectives contradict the
 * links' bandwidth, messages may be as slow as the collectives or as fast as the links
 * (sim/network/sends.h). Collectives measured on other links than a node's have an uncertain share
 * that scales with the links (sim/network/collectives/collective_table.h).
 */
#pragma once

#include "scenario/setup.h"
#include "scenario/setup_simulate.h"

/* Simulates @program like lh_setup_simulate() on the setup's cluster. If something is assumed,
 * simulates both ends as well, for the result's fastest_ps and slowest_ps. Caller frees. */
LhSimResult *lh_time_range_simulate(const LhSetup *setup, const LhProgram *program,
                                    const LhHooks *hooks, GError **error);
