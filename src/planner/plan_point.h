/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One point of a space: as a setup, as a scenario, and as text.
 */
#pragma once

#include "planner/design_space.h"

/* The setup of a point. It shares everything with its shape's setup and must not outlive it; it is
 * neither copied nor freed. */
typedef struct {
    LhSetup setup;
    LhSetupStep step;
    const LhSchedule *schedule;
    LhBoundCache *calls;     /* the space's */
    const LhSetupStep *from; /* the step of its shape; NULL: not of a space */
} LhPlanCase;

/* Initialises @c; false with the reason if the point's shape is rejected. */
bool lh_plan_case_init(LhPlanCase *c, const LhPlanSpace *space, guint index, GError **error);

/* The same with another setup of its shape that differs only in the sequence length; @setup must
 * outlive the case. */
void lh_plan_case_of(LhPlanCase *c, const LhPlanSpace *space, guint index, const LhSetup *setup);

/* Changes a case to @point, which must have the same shape, schedule and arrangement. */
void lh_plan_case_policies(LhPlanCase *c, const LhPlanPoint *point);

/* Changes a case, which has no remedies, to one that takes no more time and memory, whatever loss
 * is chosen. */
void lh_plan_case_floor(LhPlanCase *c);

/* Changes it to one that needs no more memory than with any remedies that it may have and loss
 * @loss of those (LhPlanEstimates); false if there is no such loss. */
bool lh_plan_case_least(LhPlanCase *c, bool types, guint loss);

/* Checks the sizes of the step. Rejections by schedules are found only when the program is
 * built. */
bool lh_plan_case_check(const LhPlanCase *c, GError **error);

/* Point @index as a scenario for `longhaul sim`, with all sizes, schedule and policies. NULL if its
 * shape is rejected. Caller frees. */
LhScenario *lh_plan_point_scenario(const LhPlanSpace *space, guint index);

/* Its program; rejections are LH_ERROR_NO. Caller frees. */
LhProgram *lh_plan_case_program(const LhPlanCase *c, GError **error);

/* Pipeline stages and unusual settings: "4", "4, gpipe", "4, 2 chunks". Caller frees. */
char *lh_plan_point_pipeline(const LhPlanSpace *space, guint index);

/* Schedule: "te-a2a-p2p, hierarchical-context-parallel-sizes 8,2"; "none" where the sequence is not
 * distributed. Caller frees. */
char *lh_plan_point_schedule(const LhPlanSpace *space, guint index);

/* Unique description: "tp 1, cp 16, dp 1, micro-batches 1 x 1, usp ..., remat, fsdp". Caller
 * frees. */
char *lh_plan_point_text(const LhPlanSpace *space, guint index);

/* Decodes @variant, a mixed-radix number with one digit per searched option: sets the options in
 * @p. Returns the number of variants. */
uint32_t lh_plan_arrange(const LhScenario *s, const LhSchedule *schedule, uint32_t variant,
                         LhProgramParams *p);
