/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of all attention kernels, softmax and linear. Their rows in the table map operands
 * to tensors and call the reference or the level's fast version.
 */
#pragma once

#include "kernels/cpu/rows.h"

/*
 * Forward: o, with m and l or lse. Linear attention (`linear`) has no statistics; the weight of a
 * pair is q k decay[i - j]. decay NULL: 1.
 */
typedef struct {
    const LhKernelArgs *args;
    LhRows q, k, v, o;
    LhRows m, l, lse;
    bool load;      /* o, m and l hold earlier blocks */
    bool normalise; /* o is divided by l */
    bool linear;
    const float *decay; /* nq values, after LH_DECAY_BEFORE zeros */
    void *scratch;
} LhForward;

/*
 * Backward: delta is computed from o if it has no data of its own. `linear` uses neither of them
 * nor lse.
 */
typedef struct {
    const LhKernelArgs *args;
    LhRows q, dout, o, delta, lse, k, v;
    LhRows dq, dk, dv;
    bool load; /* the gradients hold earlier blocks */
    bool linear;
    const float *decay;
    void *scratch;
} LhBackward;

/* Weights of the keys after a query, which tiles read and the mask removes. */
#define LH_DECAY_BEFORE 64

void lh_attention_forward_reference(const LhForward *f);
void lh_attention_backward_reference(const LhBackward *b);

/* Scratch bytes of both versions. */
uint64_t lh_attention_forward_scratch(const LhKernelArgs *args);
uint64_t lh_attention_backward_scratch(const LhKernelArgs *args);
