/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The baseline of a plan: the way of training of a framework's configuration, compared with the
 * fastest one, which is also written as settings of that framework.
 */
#pragma once

#include "framework_config/configuration.h"
#include "planner/design_space.h"

/* The configuration's way of training on one cluster. */
typedef struct {
    char *way;          /* owned: short description; NULL: its sizes do not fit these GPUs */
    char *refusal;      /* owned: why there is no such step; NULL: there is one */
    double iteration_s; /* of a step; if it does not fit, as if there were enough memory */
    uint64_t peak_bytes;
    bool fits;
} LhBaselineConfig;

/* Simulates it. Caller frees. */
LhBaselineConfig *lh_baseline_config_new(const LhConfig *config, const LhPlanSpace *space);
void lh_baseline_config_free(LhBaselineConfig *start);

/* The settings that the file needs for a point of the space: of LhConfigWord *. Caller unrefs. */
GPtrArray *lh_plan_words(const LhConfig *config, const LhPlanSpace *space, guint point);
