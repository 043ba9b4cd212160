/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live ranges of a step's tensors, and their places in slots.
 */
#pragma once

#include "step/graph.h"

/* Variant of a tensor whose shape differs between layers, or that not all layers
 * have. */
typedef struct {
    uint8_t number;   /* equal for layers with the same shape */
    const char *name; /* suffix of the slot's name: "_lin"; "" for the usual shape */
} LhStepVariant;
LhStepVariant lh_step_variant(const LhStepPlan *plan, LhStepFamily family, uint8_t what,
                              uint32_t layer);

/* Whether the tensor of @family, of a weight (@what) of a layer of @stage, is in host memory. */
bool lh_step_has_on_host(const LhStepPlan *plan, LhStepFamily family, uint32_t stage, uint8_t what,
                         uint32_t layer);

/* Adds allocs and frees to all lists and assigns every tensor its place. */
void lh_step_place(LhStepPlan *plan);
