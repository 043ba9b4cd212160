/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attention of a layer as embedded programs.
 */
#pragma once

#include "step/graph.h"

/* Attention of a layer of @kind in one micro-batch, with all heads of the model. The programs of a
 * tensor-parallel rank differ only in having its share of the heads. */
typedef struct {
    LhAttention attention;
    LhMaskRule mask; /* borrows its documents */
} LhStepKindAttention;
LhStepKindAttention lh_step_kind_attention(const LhStepPlan *plan, LhStepKind kind);

/* Role of an input or output slot of attention in the step; LH_STEP_ROLES: none. */
LhStepRole lh_step_slot_role(const LhSlot *slot);

/*
 * Makes placeholder programs with the inputs and outputs of @attention, for estimating a step
 * without its attention. Each has one op (LH_KERNEL_ID_outside), which takes no time and touches
 * nothing. Caller clears.
 */
LhStepAttention lh_step_hollow(const LhStepAttention *attention);
void lh_step_attention_clear(LhStepAttention *attention);
