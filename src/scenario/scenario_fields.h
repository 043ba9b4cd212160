/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of scenarios: the fixed ones, and the options of all schedules, built from their
 * definitions (program/option.h).
 */
#pragma once

#include "base/json/field.h"

/* The field table of longhaul.scenario/1: the fixed fields and the options of all schedules. Every
 * field of lh_scenario_options() is also a command-line option. */
const LhField *lh_scenario_fields(void);
const LhField *lh_scenario_options(void);

/* Fields of "sweep": a list of values for each field that takes one value, in the same order. */
const LhField *lh_scenario_lists(void);

/* Fields of an LhStraggler and of an LhLinkFault; lh_link_fault_init() sets the latter's defaults.
 */
extern const LhField lh_straggler_fields[], lh_link_fault_fields[];
void lh_link_fault_init(void *fault);

/* Flags of these fields, in addition to those of base/json/field.h. */
#define LH_SCENARIO_OF_PROGRAM (1u << 16)     /* an explicit program defines it */
#define LH_SCENARIO_OF_SCHEDULES (1u << 17)   /* only some schedules read it */
#define LH_SCENARIO_OF_SIMULATION (1u << 18)  /* affects the time of kernels and transfers */
#define LH_SCENARIO_OF_CHANCE (1u << 19)      /* random numbers: the jitter or the inputs */
#define LH_SCENARIO_OF_PROOF (1u << 20)       /* what to do with a program that is not proven */
#define LH_SCENARIO_OF_ONE_CASE (1u << 21)    /* applies to one number of ranks, not to a range */
#define LH_SCENARIO_OF_STEP (1u << 22)        /* applies to a whole training step */
#define LH_SCENARIO_OF_COLLECTIVES (1u << 23) /* how collectives are made of messages */
#define LH_SCENARIO_OF_CLUSTER (1u << 24)     /* describes the cluster, whatever runs on it */
