/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attention of a layer as embedded programs.
 */
#pragma once

#include "step/graph.h"

/* Attention of a layer of @kind in one micro-batch, with all of the model's heads: a
 * tensor-parallel rank's programs have its share of these, and are the same in all else. */
typedef struct {
    LhAttention attention;
    LhMaskRule mask; /* its documents are borrowed */
} LhStepKindAttention;
LhStepKindAttention lh_step_kind_attention(const LhStepPlan *plan, LhStepKind kind);

/* What input or output slot @slot of attention is to the step; LH_STEP_ROLES: nothing. */
LhStepRole lh_step_slot_role(const LhSlot *slot);

/*
 * Programs that take the place of @attention in a step of which only what is around attention
 * matters: with the same inputs and outputs, and with one op, which takes no time and touches
 * nothing (LH_KERNEL_ID_outside). Caller clears.
 */
LhStepAttention lh_step_hollow(const LhStepAttention *attention);
void lh_step_attention_clear(LhStepAttention *attention);
