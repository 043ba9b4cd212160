/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a forward pass alone leaves, of the model on one rank in fp64: keys and values of all
 * layers, and logits of some rows.
 */
#pragma once

#include "reference/model_reference.h"
#include "reference/reference.h"

typedef struct {
    LhReference *attention; /* owned, [layers]: k and v of all tokens, as attention sees them */
    uint32_t layers;
    double *logits; /* owned, [rows][vocabulary] */
} LhModelForward;

/* Rows of logits: indices of tokens in [sequences][tokens]. */
typedef struct {
    const uint64_t *rows;
    uint64_t count;
} LhModelRows;

/* Computes the forward pass with the reference's weights and noise. Caller frees. */
LhModelForward *lh_model_forward_new(LhModelReference *reference, const uint32_t *tokens,
                                     const LhModelRows *rows, unsigned threads);
void lh_model_forward_free(LhModelForward *forward);
