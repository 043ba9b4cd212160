/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of linear attention with the state; attention_run.h has those among tokens.
 *
 * Token i of n of a call adds decay^(n-1-i) k_i^T v_i to the state after the last token, and reads
 * decay^(i+1) times the state before the first.
 */
#pragma once

#include "kernels/cpu/attention_run.h"

/*
 * out_i (+)= sum over the heads that share out's head: weight_i in_i M, M the state or its
 * transpose.
 */
typedef struct {
    const LhKernelArgs *args;
    LhRows in, out;
    uint64_t rows;
    const float *state;    /* [B][h][d][d] */
    const double *weights; /* one per row */
    bool transpose, load;
    void *scratch;
} LhStateApply;

/* state = keep state + sum over i of weight_i x_i^T y_i; with keep 0 the state is not read. */
typedef struct {
    const LhKernelArgs *args;
    LhRows x, y;
    uint64_t rows;
    float *state;
    const double *weights;
    double keep;
    void *scratch;
} LhStateSum;

void lh_state_apply_reference(const LhStateApply *s);
void lh_state_sum_reference(const LhStateSum *s);

/* Returns decay^exponent, exponent >= 0; 1 if the decay is 0 or above 1. Never overflows. */
double lh_decay_power(const LhKernelArgs *args, uint64_t exponent);

/* Write the weights decay^(i+1) of queries and decay^(n-1-i) of keys to @weights of @rows. */
void lh_decay_queries(const LhKernelArgs *args, double *weights, uint64_t rows);
void lh_decay_keys(const LhKernelArgs *args, double *weights, uint64_t rows);

/*
 * Fills and returns the weights of LhForward and LhBackward, LH_DECAY_BEFORE + nq values; NULL
 * without decay.
 */
const float *lh_decay_table(const LhKernelArgs *args, float *table);

/* Scratch bytes: of the two products; of the weights of @rows rows before it. */
uint64_t lh_state_scratch(const LhKernelArgs *args);
uint64_t lh_weights_scratch(uint64_t rows);
