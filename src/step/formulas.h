/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a step amounts to, computed from the model and its parallel sizes alone: parameters, flops,
 * bytes of states and of communication. Programs of steps are held against these, so nothing here
 * looks at a step's ops. Of attention's programs the closed forms of their schedules are taken,
 * which are proven of them alone.
 */
#pragma once

#include "base/wide.h"
#include "step/step.h"

/*
 * Parameters of the model as it is run: matrices and norms, without biases of matrices. Those of
 * the input embedding, which no product multiplies, apart; a tied head counts as the head.
 */
typedef struct {
    uint64_t matrices; /* of layers and the head, with all experts */
    uint64_t active;   /* of these, those that a token meets: of the experts, its own */
    uint64_t norms;
    uint64_t embedding;
} LhStepParameters;
LhStepParameters lh_step_parameters(const LhProgram *program);

/* Tokens of a step, over all ranks. */
uint64_t lh_step_tokens(const LhStepParams *params);

/*
 * Floating-point operations of a step, over all ranks. `model` is what the mathematics needs: 6 for
 * each active parameter of a matrix and token, and three times attention's forward pass (MFU counts
 * these). The others are what is executed (HFU): recomputation, and attention's backward pass as
 * kernels do it, which computes the scores again.
 */
typedef struct {
    LhWide model;
    LhWide dense;     /* products with weights */
    LhWide attention; /* of the schedule's kernels; 0 if it states none */
} LhStepFlops;
LhStepFlops lh_step_flops(const LhProgram *program);

/* Those of one rank: products with weights; attention (false: its schedule states none). */
uint64_t lh_step_dense_flops(const LhProgram *program, uint32_t rank);
bool lh_step_attention_flops(const LhProgram *program, uint32_t rank, uint64_t *flops);

/* Bytes that @rank sends for @dimension; false: the schedule of attention states none. */
bool lh_step_bytes_sent(const LhProgram *program, LhDimension dimension, uint32_t rank,
                        uint64_t *bytes);

/*
 * Bytes of weights, gradients and states of the optimizer that a rank has all the time, as ZeRO's
 * paper counts them: 2 + 2 + 12 bytes of a parameter, or a share of these. Gathered weights and
 * buffers of gradients on their way are not among them. Pieces that do not divide are rounded up.
 */
typedef struct {
    uint64_t weights, gradients, optimizer;
} LhStepStateBytes;
LhStepStateBytes lh_step_state_bytes(const LhProgram *program, uint32_t rank);

/*
 * Micro-batches whose activations a stage of a pipeline holds at most; of a stage with several
 * chunks, those of all chunks together. Those of 1F1B are PipeDream-Flush's p - s of p stages
 * (arXiv 2104.04473, section 2.2), of its interleaved order Megatron-LM's warm-up and one more.
 */
uint32_t lh_step_in_flight(const LhStepParams *params, uint32_t stage);
