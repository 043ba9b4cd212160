/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One point of a space: made ready, as a question, and in words.
 */
#pragma once

#include "planner/design_space.h"

/* A setup of one point. It shares everything with its shape's and lives no longer; it is not
 * copied, and nothing in it is freed. */
typedef struct {
    LhSetup setup;
    LhSetupStep step;
    const LhSchedule *schedule;
    LhBoundCache *calls; /* the space's */
} LhPlanCase;

/* False, with the reason, if the point's shape is refused. */
bool lh_plan_case_init(LhPlanCase *c, const LhPlanSpace *space, guint index, GError **error);

/* The same with another setup of its shape, which only differs in the length of the sequence; it
 * must outlive the case. */
void lh_plan_case_of(LhPlanCase *c, const LhPlanSpace *space, guint index, const LhSetup *setup);

/* Turns a case into that of @point, which has the same shape and the same arrangement of the same
 * schedule. */
void lh_plan_case_policies(LhPlanCase *c, const LhPlanPoint *point);

/* Whether there is such a step, as far as sizes say: of its program alone are the refusals of
 * schedules. */
bool lh_plan_case_check(const LhPlanCase *c, GError **error);

/* The question of sim that @index is: with all of its sizes, its schedule and policies. NULL if its
 * shape is refused. Caller frees. */
LhScenario *lh_plan_point_scenario(const LhPlanSpace *space, guint index);

/* Its program; refusals are LH_ERROR_NO. Caller frees. */
LhProgram *lh_plan_case_program(const LhPlanCase *c, GError **error);

/* "4", "4, gpipe", "4, 2 chunks": stages of the pipeline, and what is not usual of it. Caller
 * frees. */
char *lh_plan_point_pipeline(const LhPlanSpace *space, guint index);

/* "te-a2a-p2p, hierarchical-context-parallel-sizes 8,2"; "none" where nothing spreads a sequence.
 * Caller frees. */
char *lh_plan_point_schedule(const LhPlanSpace *space, guint index);

/* "tp 1, cp 16, dp 1, micro-batches 1 x 1, usp ..., remat, fsdp": no two points have the same.
 * Caller frees. */
char *lh_plan_point_text(const LhPlanSpace *space, guint index);

/* The number @variant is written with one digit for each option that is searched. Sets their values
 * in @p and returns how many variants there are. */
uint32_t lh_plan_arrange(const LhScenario *s, const LhSchedule *schedule, uint32_t variant,
                         LhProgramParams *p);
