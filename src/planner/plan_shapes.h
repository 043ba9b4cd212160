/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of a plan: every way to cut the GPUs and the batch.
 */
#pragma once

#include "planner/design_space.h"

/* Of LhPlanShape *. */
void lh_plan_shape_free(gpointer data);

/* Makes the scenario have this number in @field. */
void lh_plan_replace_count(LhScenario *s, const char *field, uint64_t count);

/* Layers of the model. */
uint64_t lh_plan_layers(const LhPlanSpace *space);

/* Layers that stages share: also the embedding and the loss, if they count as one each. */
uint64_t lh_plan_places(uint64_t layers, bool embedding, bool loss);

/* Adds every shape of the space. */
void lh_plan_add_shapes(LhPlanSpace *space);

/* Makes shape @index ready, or says why it cannot be. */
void lh_plan_set_up_shape(void *data, guint index);
