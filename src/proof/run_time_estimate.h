/* SPDX-License-Identifier: Apache-2.0 */
/*
 * About how long simulations and proofs take, told before they begin: the ops of one rank, counted,
 * stand for those of every rank. The constants are those of one core of 2.5 GHz
 * (run_time_estimate.c); the answer is right within a factor of a few.
 */
#pragma once

#include "proof/proof_cases.h"

/* Where nothing else is said, work beyond this is refused. */
#define LH_RUN_TIME_PS_DEFAULT (INT64_C(24) * 3600 * LH_PS_PER_S)

/* Seconds to simulate @program, and to prove it. */
double lh_run_time_simulate(const LhProgram *program);
double lh_run_time_prove(const LhProgram *program);

/* Seconds to compare what is in @setup: its program and its schedules, and then the fastest of them
 * with each resource made faster. Schedules that refuse cost nothing. */
double lh_run_time_compare(const LhSetup *setup);

/* "about 40 s", "about 3 h"; caller frees. */
char *lh_run_time_text(double seconds);

/* LH_ERROR_NO with both times if @seconds are more than @most_ps (0: the default). */
bool lh_run_time_check(double seconds, LhTime most_ps, GError **error);
