/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forward and backward pass of a step of the reference.
 */
#pragma once

#include "reference/model_reference.h"

/*
 * Computes the loss of [sequences][tokens] @tokens and their @targets and adds the gradients of all
 * weights, on @threads threads.
 */
void lh_model_reference_gradients(LhModelReference *reference, const uint32_t *tokens,
                                  const uint32_t *targets, unsigned threads);
