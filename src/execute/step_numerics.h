/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs and reference of an executed training step: initial weights and tokens drawn from the
 * seed, loaded into the slots of the step's program, and the same steps on one rank in fp64. An
 * element of a weight depends only on (seed, weight, position in the whole weight), a token only on
 * (seed, sequence, position), and the step if each has its own tokens. Every placement therefore
 * trains the same model.
 */
#pragma once

#include "reference/model_forward.h"
#include "reference/model_reference.h"
#include "runtime/executor.h"
#include "step/state_contents.h"

typedef struct {
    const LhProgram *program; /* borrowed; program of a training step */
    uint64_t seed;
    bool new_tokens; /* every step has its own tokens; else all use those of the first */
    LhModelReference *reference;
    double **initial; /* owned: initial values of each tensor of the reference, in its order */
    uint32_t initial_count;
    uint32_t **blocks; /* owned: blocks of 8-bit moments, likewise; NULL: none */
    double seconds;    /* seconds spent on the reference */
    unsigned threads;  /* threads of the reference */
} LhStepNumerics;

/* Creates the state before the first step, with the model's initial weights. Caller frees. */
LhStepNumerics *lh_step_numerics_new(const LhProgram *program, uint64_t seed, bool new_tokens);
void lh_step_numerics_free(LhStepNumerics *numerics);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhStepNumerics, lh_step_numerics_free)

/* Memory of lh_step_numerics_new() and of reference steps on @threads threads, in bytes;
 * saturates. */
uint64_t lh_step_numerics_bytes(const LhProgram *program, unsigned threads);

/* Computes the reference's first step again from the initial weights, with @noise. Caller frees. */
LhModelReference *lh_step_numerics_disturbed(const LhStepNumerics *numerics,
                                             const LhModelNoise *noise);

/* Tokens of step @step, [sequences][tokens]; @next: of the positions so many further. Caller
 * frees. */
uint32_t *lh_step_numerics_tokens(const LhStepNumerics *numerics, uint64_t step, uint64_t next);

/* Computes the forward pass of the first step alone, with @noise or none (NULL). Caller frees. */
LhModelForward *lh_step_numerics_forward(const LhStepNumerics *numerics, const LhModelRows *rows,
                                         const LhModelNoise *noise, unsigned threads);

/* Initial values of a weight of the whole model; borrowed. */
const double *lh_step_initial(const LhStepNumerics *numerics, LhStepWeight weight, uint32_t layer);

/* Computes the next step of the reference. */
void lh_step_numerics_advance(LhStepNumerics *numerics, unsigned threads);

/* Load of step @step (from 0) for LhRunParams. State comes from @last, the run of the previous
 * step (with the ranks of this process), or is initial if @last is NULL. Tokens are those of the
 * step. */
typedef struct {
    const LhStepNumerics *numerics;
    const LhRunResult *last;
    uint64_t step;
} LhStepLoad;
void lh_step_load(void *load_data, uint32_t rank, uint16_t slot, uint32_t part,
                  unsigned char *data);

/* Loss of an executed step, from a rank that computes it. */
double lh_step_loss(const LhProgram *program, const LhRunResult *result);
