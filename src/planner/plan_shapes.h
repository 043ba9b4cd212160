/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of a plan: all divisions of the GPUs and the batch.
 */
#pragma once

#include "planner/design_space.h"

/* Frees an LhPlanShape *. */
void lh_plan_shape_free(gpointer data);

/* Sets @field of the scenario to @count. */
void lh_plan_replace_count(LhScenario *s, const char *field, uint64_t count);

/* Layers of the model. */
uint64_t lh_plan_layers(const LhPlanSpace *space);

/* Layers to split into stages: embedding and loss included if they count as layers. */
uint64_t lh_plan_places(uint64_t layers, bool embedding, bool loss);

/* Adds every shape of the space. */
void lh_plan_add_shapes(LhPlanSpace *space);

/* Sets up shape @index, or records why it is rejected. */
void lh_plan_set_up_shape(void *data, guint index);
