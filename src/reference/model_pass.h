/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forward and backward pass of a step of the reference.
 */
#pragma once

#include "reference/model_reference.h"
#include "reference/reference.h"

/*
 * Computes the loss of [sequences][tokens] @tokens and their @targets and adds the gradients of all
 * weights, on @threads threads.
 */
void lh_model_reference_gradients(LhModelReference *reference, const uint32_t *tokens,
                                  const uint32_t *targets, unsigned threads);

/*
 * Computes the forward pass of all layers. Returns the rows behind the final norm; the attention of
 * each layer, with k and v of all tokens, goes to @attention, one for each layer. Caller frees and
 * clears.
 */
double *lh_model_reference_layers(LhModelReference *reference, const uint32_t *tokens,
                                  unsigned threads, LhReference *attention);
