/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed forms of a step, from the model and the parallel sizes alone: parameters, flops, bytes of
 * state and of communication. Programs are checked against them, so nothing here looks at ops. For
 * attention they use the schedules' closed forms, which are proven separately.
 */
#pragma once

#include "base/wide.h"
#include "step/graph.h"
#include "step/parameter_counts.h"
#include "step/step.h"

/*
 * Floating-point operations of a step, over all ranks. `model` is the mathematical minimum, as for
 * MFU: 6 per active matrix parameter and token, 4 if it is frozen, and three times attention's
 * forward pass; of a forward pass alone 2, with the head for one token of each sequence, and
 * attention's forward pass. The others are executed flops, as for HFU: they include recomputation,
 * and attention's backward pass as kernels compute it, with the scores again.
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

/* Number of times that a weight is gathered under FSDP, or copied in from the host. Without
 * resharding, weights in a pipeline stay gathered from the first micro-batch to the last. */
uint64_t lh_step_gathers(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer);

/*
 * Bytes of weights, gradients and optimizer state that a rank holds permanently, counted as in the
 * ZeRO paper: 2 + 2 + 12 bytes per parameter, or a share of these; fewer with 16- or 8-bit moments
 * or without an fp32 copy. Gathered weights and temporary
 * gradient buffers are excluded. Pieces that do not divide evenly are rounded up. A forward pass
 * alone has weights, and leaves a KV cache.
 */
typedef struct {
    uint64_t weights, gradients, optimizer;
    uint64_t host; /* weights and optimizer state in host memory, which the others leave out */
    uint64_t cache;
} LhStepStateBytes;
LhStepStateBytes lh_step_state_bytes(const LhProgram *program, uint32_t rank);

/*
 * Largest number of micro-batches whose activations a pipeline stage holds; with several chunks,
 * summed over them. For 1F1B it is PipeDream-Flush's p - s of p stages (arXiv 2104.04473, section
 * 2.2); for its interleaved order Megatron-LM's warm-up plus one. A forward pass alone holds one.
 */
uint32_t lh_step_in_flight(const LhStepParams *params, uint32_t stage);
