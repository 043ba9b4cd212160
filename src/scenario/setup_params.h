/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program parameters of one attention module, from a scenario.
 */
#pragma once

#include "model/model.h"
#include "scenario/documents.h"
#include "scenario/scenario.h"

/* Files that a scenario names, loaded. */
typedef struct {
    const LhModel *model;
    const LhDocuments *documents; /* NULL: one document */
    uint32_t gpus_per_node;       /* 0: unknown */
} LhSources;

/* Fills @params for @ranks ranks in total. The documents are borrowed. */
bool lh_setup_params(const LhScenario *scenario, const LhSources *from, uint32_t ranks,
                     LhProgramParams *params, GError **error);

/* Decides softmax or linear attention. First that applies: the scenario; the named model; the named
 * schedules (linear if all support it and one supports nothing else); the default @model. */
bool lh_setup_is_linear(const LhScenario *scenario, const LhModel *model);

/* Whether the mask is the model's sliding window: all its layers of softmax attention have it, the
 * sequence is longer, and the scenario gives neither mask nor window. */
bool lh_setup_takes_window(const LhScenario *scenario, const LhModel *model, const LhAttention *a);

/* Total number of ranks that options of the scenario imply (--grid 4x8: 32 in every data-parallel
 * group); 0 if none does. */
bool lh_setup_ranks(const LhScenario *scenario, uint64_t *ranks, GError **error);
