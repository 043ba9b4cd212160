/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention with data: what all its kernels, softmax and linear, have in common. Their rows in the
 * table say which tensors are which, and call the reference or the level's fast version.
 */
#pragma once

#include "kernels/cpu/rows.h"

/*
 * o, and with it m and l or lse. Of linear attention (`linear`) there are no statistics and the
 * weight of a pair is q k decay[i - j]; decay NULL is 1.
 */
typedef struct {
    const LhKernelArgs *args;
    LhRows q, k, v, o;
    LhRows m, l, lse;
    bool load;      /* o, m and l hold earlier blocks */
    bool normalise; /* o is divided by l */
    bool linear;
    const float *decay; /* nq of them, after LH_DECAY_BEFORE zeros */
    void *scratch;
} LhForward;

/* delta is computed from o if it has no data of its own. `linear`: neither they nor lse are used.
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

/* Weights of the keys right behind a query, that tiles read and the mask removes. */
#define LH_DECAY_BEFORE 64

void lh_attention_forward_reference(const LhForward *f);
void lh_attention_backward_reference(const LhBackward *b);

/* Scratch of both versions, in bytes. */
uint64_t lh_attention_forward_scratch(const LhKernelArgs *args);
uint64_t lh_attention_backward_scratch(const LhKernelArgs *args);
