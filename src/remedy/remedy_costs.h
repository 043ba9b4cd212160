/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What remedies cost in time: estimates that order them, not bounds. Each is what the longest chain
 * of ops of one rank grows by in a step of few layers, one stage and one micro-batch.
 */
#pragma once

#include "remedy/remedy_menu.h"

/* Sets @costs_ps, by switch, to what each adds to a step in addition to the switches it needs;
 * negative if it saves time. Types of the optimizer have 0: they are ordered by what they change.
 * False if there is no such step. */
bool lh_remedy_costs(const LhSetup *setup, const LhSchedule *schedule, const LhRemedyMenu *menu,
                     LhTime *costs_ps);

/* What @r costs alone: one option. */
bool lh_remedy_cost(const LhSetup *setup, const LhSchedule *schedule, const LhRemedies *r,
                    LhTime *cost_ps);
