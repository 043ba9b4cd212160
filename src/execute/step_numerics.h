/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an executed training step computes with, and what it should compute: initial weights and
 * tokens by seed, loaded to where the step's program has them, and the same steps on one rank in
 * fp64. A number of a weight depends on (seed, weight, place in the whole weight) and a token on
 * (seed, sequence, position) alone, so that every placement trains the same model.
 */
#pragma once

#include "reference/model_reference.h"
#include "runtime/executor.h"
#include "step/state_contents.h"

typedef struct {
    const LhProgram *program; /* borrowed; a step's */
    uint64_t seed;
    bool new_tokens; /* every step has tokens of its own; else all have those of the first */
    LhModelReference *reference;
    double **initial; /* owned: of each of the reference's tensors, in its order */
    uint32_t initial_count;
    double seconds;   /* that the reference took */
    unsigned threads; /* that it worked on */
} LhStepNumerics;

/* With the model's initial weights, before the first step. Caller frees. */
LhStepNumerics *lh_step_numerics_new(const LhProgram *program, uint64_t seed, bool new_tokens);
void lh_step_numerics_free(LhStepNumerics *numerics);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhStepNumerics, lh_step_numerics_free)

/* Bytes that lh_step_numerics_new() and steps of the reference on @threads threads take. Saturates.
 */
uint64_t lh_step_numerics_bytes(const LhProgram *program, unsigned threads);

/* The reference's first step once more, from the same weights, with @noise. Caller frees. */
LhModelReference *lh_step_numerics_disturbed(const LhStepNumerics *numerics,
                                             const LhModelNoise *noise);

/* A weight of the whole model before the first step; borrowed. */
const double *lh_step_initial(const LhStepNumerics *numerics, LhStepWeight weight, uint32_t layer);

/* Takes the reference one step on. */
void lh_step_numerics_advance(LhStepNumerics *numerics, unsigned threads);

/* The load of step @step, from 0, for LhRunParams: what stays comes from @last, the run of the step
 * before (with the ranks of this process), or, if that is NULL, is initial. Tokens are those of the
 * step. */
typedef struct {
    const LhStepNumerics *numerics;
    const LhRunResult *last;
    uint64_t step;
} LhStepLoad;
void lh_step_load(void *load_data, uint32_t rank, uint16_t slot, uint32_t part,
                  unsigned char *data);

/* The loss of a step that was run: of its first rank. */
double lh_step_loss(const LhProgram *program, const LhRunResult *result);
