/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Muon in an executed step: what the reference needs to know of it, and the update that the
 * momentum found should have made.
 */
#pragma once

#include "execute/step_numerics.h"

/* Muon as the reference has it; the caller provides the coefficients, which it borrows. */
LhModelMuon lh_step_model_muon(const LhProgram *program, double (*coefficients)[3]);

/*
 * Replaces the momentum of a weight after the first step, of the whole model, by the update of the
 * weight, in fp64. Returns the square of the error of one of its elements that rounding causes in a
 * step with the program's types. It is measured: the update is computed again with rounding noise,
 * LH_DISTURBED_STEPS times.
 */
double lh_step_muon_update(const LhStepNumerics *numerics, LhStepWeight weight, uint32_t layer,
                           double *momentum);
