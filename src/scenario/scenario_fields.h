/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of scenarios: those that every scenario may have, and the options of all schedules,
 * made from the objects that define them (program/option.h).
 */
#pragma once

#include "base/json/field.h"

/* The field table of longhaul.scenario/1: what stands below and the options of all schedules. Every
 * field of lh_scenario_options() is also an option of the command line. */
const LhField *lh_scenario_fields(void);
const LhField *lh_scenario_options(void);

/* Fields of "sweep", a list of values for each field that takes one value, in the same order. */
const LhField *lh_scenario_lists(void);

/* Of an LhStraggler and of an LhLinkFault, which begins as lh_link_fault_init() makes it. */
extern const LhField lh_straggler_fields[], lh_link_fault_fields[];
void lh_link_fault_init(void *fault);

/* Flags of these fields, beside those of base/json/field.h. */
#define LH_SCENARIO_OF_PROGRAM (1u << 16)     /* a program from a file says it itself */
#define LH_SCENARIO_OF_SCHEDULES (1u << 17)   /* only some schedules read it */
#define LH_SCENARIO_OF_SIMULATION (1u << 18)  /* how long kernels and transfers take */
#define LH_SCENARIO_OF_CHANCE (1u << 19)      /* random numbers, of the jitter or of inputs */
#define LH_SCENARIO_OF_PROOF (1u << 20)       /* what is done with a program that is not proven */
#define LH_SCENARIO_OF_ONE_CASE (1u << 21)    /* about one number of ranks, not many */
#define LH_SCENARIO_OF_STEP (1u << 22)        /* about a whole training step */
#define LH_SCENARIO_OF_COLLECTIVES (1u << 23) /* how they are made of messages */
#define LH_SCENARIO_OF_CLUSTER (1u << 24)     /* what a cluster is, whatever runs there */
