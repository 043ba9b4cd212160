/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The products of linear attention with the state; see attention_run.h for those among tokens.
 *
 * Token i of a call, of n, adds decay^(n-1-i) k_i^T v_i to the state behind the last token, and
 * reads decay^(i+1) of the state before the first.
 */
#pragma once

#include "kernels/cpu/attention_run.h"

/* out_i (+)= sum over the heads that share out's: weight_i in_i M, M the state or its transpose. */
typedef struct {
    const LhKernelArgs *args;
    LhRows in, out;
    uint64_t rows;
    const float *state;    /* [B][h][d][d] */
    const double *weights; /* one per row */
    bool transpose, load;
    void *scratch;
} LhStateApply;

/* state = keep state + sum over i of weight_i x_i^T y_i; keep 0: the state is not read. */
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

/* decay^exponent, exponent >= 0; a decay of 0, or above 1, is none. Never overflows. */
double lh_decay_power(const LhKernelArgs *args, uint64_t exponent);

/* Weights decay^(i+1) of queries and decay^(n-1-i) of keys, into @weights of @rows. */
void lh_decay_queries(const LhKernelArgs *args, double *weights, uint64_t rows);
void lh_decay_keys(const LhKernelArgs *args, double *weights, uint64_t rows);

/* The weights of LhForward and LhBackward, LH_DECAY_BEFORE + nq of them; NULL if there is none. */
const float *lh_decay_table(const LhKernelArgs *args, float *table);

/* Scratch in bytes: of the two products, of the weights of @rows rows before it. */
uint64_t lh_state_scratch(const LhKernelArgs *args);
uint64_t lh_weights_scratch(uint64_t rows);
