/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Muon: every matrix is orthogonalised whole, from the momenta of all its pieces and slices, by all
 * Newton-Schulz steps in order, and each piece of the result updates its piece of the weight.
 */
#pragma once

#include "verify/step/step_values.h"

/* Whether the op is one of Muon's; applies it. */
bool lh_step_muon_has(const LhOp *op);
void lh_step_muon_apply(LhStepValues *values, uint32_t op);
