/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed forms of a step: parameters and tokens.
 */
#pragma once

#include "step/step.h"

/*
 * Parameters of the model as it is run: matrices and norms, without biases of matrices. The input
 * embedding, which no product multiplies, is counted separately; a tied head counts as the head.
 */
typedef struct {
    uint64_t matrices; /* of layers and head, with all experts */
    uint64_t active;   /* those used by one token: of the experts, only its own */
    uint64_t norms;
    uint64_t embedding;
    uint64_t adapters; /* matrices of LoRA's adapters, which the others do not include; 0: none */
} LhStepParameters;
LhStepParameters lh_step_parameters(const LhProgram *program);

/* Tokens of a step, over all ranks. */
uint64_t lh_step_tokens(const LhStepParams *params);
