/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates of how long simulations and proofs take, and what they keep, made before they start.
 * The ops of one rank are counted and taken for those of every rank. The constants are those of
 * one 2.5 GHz core (run_time_estimate.c); estimates are correct within a factor of a few.
 */
#pragma once

#include "proof/proof_cases.h"

/* Default limit, beyond which work is refused. */
#define LH_RUN_TIME_PS_DEFAULT (INT64_C(24) * 3600 * LH_PS_PER_S)

/* Ops of @program. */
double lh_run_time_ops(const LhProgram *program);

/* Seconds to simulate @program, and to prove it. */
double lh_run_time_simulate(const LhProgram *program);
double lh_run_time_prove(const LhProgram *program);

/* Bytes of memory for all that the program's ops wait for (sim/causes/slack.h), if every rank is
 * simulated. */
double lh_run_memory_waits(const LhProgram *program);

/* Seconds to compare everything in @setup: its program and its schedules, and then the fastest
 * one with each resource made faster. Schedules that refuse cost nothing. */
double lh_run_time_compare(const LhSetup *setup);

/* "about 40 s", "about 3 h"; caller frees. */
char *lh_run_time_text(double seconds);

/* Fails with LH_ERROR_NO, naming both times, if @seconds exceeds @most_ps (0: the default). */
bool lh_run_time_check(double seconds, LhTime most_ps, GError **error);
