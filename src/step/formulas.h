/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed forms of a step, from the model and the parallel sizes alone: parameters, flops, bytes of
 * state and of communication. Programs are checked against them, so nothing here looks at ops. For
 * attention they use the schedules' closed forms, which are proven separately.
 */
#pragma once

#include "base/wide.h"
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

/*
 * Floating-point operations of a step, over all ranks. `model` is the mathematical minimum, as for
 * MFU: 6 per active matrix parameter and token, 4 if it is frozen, and three times attention's
 * forward pass. The
 * others are executed flops, as for HFU: they include recomputation, and attention's backward pass
 * as kernels compute it, with the scores again.
 */
typedef struct {
    LhWide model;
    LhWide dense;     /* products with weights */
    LhWide attention; /* of the schedule's kernels; 0 if it has no closed form */
} LhStepFlops;
LhStepFlops lh_step_flops(const LhProgram *program);

/* Flops of one rank: products with weights; attention (false: its schedule has no closed form). */
uint64_t lh_step_dense_flops(const LhProgram *program, uint32_t rank);
bool lh_step_attention_flops(const LhProgram *program, uint32_t rank, uint64_t *flops);

/* Bytes that @rank sends for @dimension; false: the attention schedule has no closed form. */
bool lh_step_bytes_sent(const LhProgram *program, LhDimension dimension, uint32_t rank,
                        uint64_t *bytes);

/*
 * Bytes of weights, gradients and optimizer state that a rank holds permanently, counted as in the
 * ZeRO paper: 2 + 2 + 12 bytes per parameter, or a share of these; fewer with 16- or 8-bit moments
 * or without an fp32 copy. Gathered weights and temporary
 * gradient buffers are excluded. Pieces that do not divide evenly are rounded up.
 */
typedef struct {
    uint64_t weights, gradients, optimizer;
} LhStepStateBytes;
LhStepStateBytes lh_step_state_bytes(const LhProgram *program, uint32_t rank);

/*
 * Largest number of micro-batches whose activations a pipeline stage holds; with several chunks,
 * summed over them. For 1F1B it is PipeDream-Flush's p - s of p stages (arXiv 2104.04473, section
 * 2.2); for its interleaved order Megatron-LM's warm-up plus one.
 */
uint32_t lh_step_in_flight(const LhStepParams *params, uint32_t stage);
