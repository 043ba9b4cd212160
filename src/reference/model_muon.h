/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Muon in fp64: orthogonal updates of the matrices of a weight, by Newton-Schulz steps written from
 * their definition, without the kernels' code.
 */
#pragma once

#include "reference/model_reference.h"

/* Whether Muon updates the weight. */
bool lh_model_muon_has(const LhModelShape *shape, LhModelWeight weight);

/*
 * Sets @update, of all elements of a weight of layer @layer, to the scaled orthogonal update in
 * direction @direction. Every number that a step in the arithmetic of @noise would store is
 * disturbed by it; NULL: none is.
 */
void lh_model_muon_update(const LhModelShape *shape, LhModelWeight weight, uint32_t layer,
                          const double *direction, const LhModelNoise *noise, double *update);
