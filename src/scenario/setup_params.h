/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a scenario says of the program of one attention module: its parameters.
 */
#pragma once

#include "model/model.h"
#include "scenario/documents.h"
#include "scenario/scenario.h"

/* What a scenario names, loaded. */
typedef struct {
    const LhModel *model;
    const LhDocuments *documents; /* NULL: one document */
    uint32_t gpus_per_node;       /* 0: unknown */
} LhSources;

/* What the scenario says of the program, for @ranks ranks in all. Its documents are borrowed. */
bool lh_setup_params(const LhScenario *scenario, const LhSources *from, uint32_t ranks,
                     LhProgramParams *params, GError **error);

/* Whether attention is linear: as was said, else as the model named, else as the schedules named
 * have it, linear if one of them has nothing else and all have that, else as @model, the default.
 */
bool lh_setup_is_linear(const LhScenario *scenario, const LhModel *model);

/* Whether the mask is the model's sliding window: all its layers of softmax attention have it, the
 * sequence is longer, and nothing was said of the mask. */
bool lh_setup_takes_window(const LhScenario *scenario, const LhModel *model, const LhAttention *a);

/* The number of ranks in all that options of the scenario ask for (--grid 4x8: 32 in every group);
 * 0 if none does. */
bool lh_setup_ranks(const LhScenario *scenario, uint64_t *ranks, GError **error);
