/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plan starts from: how a training system's configuration says to train, beside the fastest
 * way, which is then said in that system's words.
 */
#pragma once

#include "framework_config/configuration.h"
#include "planner/design_space.h"

/* How the configuration says to train, on one cluster. */
typedef struct {
    char *way;          /* owned: in few words; NULL: its sizes are none of these GPUs */
    char *refusal;      /* owned: why there is no such step; NULL: there is */
    double iteration_s; /* of a step, or what it would be with more memory */
    uint64_t peak_bytes;
    bool fits;
} LhBaselineConfig;

/* Plays it. Caller frees. */
LhBaselineConfig *lh_baseline_config_new(const LhConfig *config, const LhPlanSpace *space);
void lh_baseline_config_free(LhBaselineConfig *start);

/* What the file has to say for a point of the space: of LhConfigWord *. Caller unrefs. */
GPtrArray *lh_plan_words(const LhConfig *config, const LhPlanSpace *space, guint point);
