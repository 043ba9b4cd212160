/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward and the backward pass of a step of the reference.
 */
#pragma once

#include "reference/model_reference.h"

/* Of [sequences][tokens] @tokens and their @targets, the loss; gradients are added to. On @threads
 * threads. */
void lh_model_reference_gradients(LhModelReference *reference, const uint32_t *tokens,
                                  const uint32_t *targets, unsigned threads);
