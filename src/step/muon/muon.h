/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Muon in a step: which weights it updates, in which matrices, and which rank orthogonalises them.
 *
 * Muon updates every matrix of a layer; embedding, head and norms are AdamW's. A momentum is cut
 * into pieces among data- and context-parallel ranks as all states are, but is orthogonalised
 * whole: matrices of one shape are dealt to these ranks one by one, and an all-to-all of as many
 * matrices as ranks brings each rank all pieces of its own one, a second one its pieces of all
 * results (as torchtitan's DistMuon and Dion do). If states are not sharded every rank
 * orthogonalises all matrices of its stage.
 *
 * q, k, v, gate, up and every expert are matrices of their own. Not modelled: Megatron-LM's
 * linear_fc1, which is gate and up in one matrix, and its layer-wise layout, in which gradients are
 * reduced to the rank that has a matrix whole.
 */
#pragma once

#include "step/tensor_sizes.h"

/* Whether Muon updates the weight, which is trained. */
bool lh_muon_has(const LhStepParams *params, LhStepWeight weight);

/* Checks that a step with Muon is possible; else LH_ERROR_NO. With a plan, also that each rank has
 * a piece of every matrix. */
bool lh_muon_check(const LhStepParams *params, GError **error);
bool lh_muon_check_pieces(const LhStepPlan *plan, GError **error);

/* Whether a weight's slices are gathered from tensor-parallel ranks, to be orthogonalised whole. */
bool lh_muon_gathers(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer);

/* The matrices of a weight as they are orthogonalised, their slices and the factor of the result;
 * without coefficients and the rank's own slice. */
LhKernelArgs lh_muon_args(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer);

/* The same with the coefficients of Newton-Schulz step @step. */
LhKernelArgs lh_muon_step_args(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer,
                               uint32_t step);

/* Share of the momentum, not the gradient, in the update. */
double lh_muon_mixture(const LhMuonParams *muon);

/*
 * Matrices of one shape that are orthogonalised at the same time: weight `weight` of `count`
 * layers, in order; the i-th belongs to rank (first + i) modulo ranks, of the data- and context-
 * parallel ones. Batches of a stage follow one another; LH_STEP_W_LAYER ends them. If states are
 * not sharded, a batch is one matrix and belongs to all ranks.
 */
typedef struct {
    LhStepWeight weight;
    uint8_t variant; /* of its shape (memory/liveness.h) */
    uint32_t layer;  /* the first one */
    uint32_t count, first;
} LhMuonBatch;

/* Batches of a stage. Caller unrefs. */
GArray *lh_muon_batches(const LhStepPlan *plan, uint32_t stage);
/* The next layer of the batch, from @layer on. */
uint32_t lh_muon_next(const LhStepPlan *plan, const LhMuonBatch *batch, uint32_t stage,
                      uint32_t layer);

/* Whether all ranks of a stage orthogonalise as many matrices. */
bool lh_muon_is_even(const LhStepPlan *plan);
