/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of the optimizer, which is not in the table.
 */
#pragma once

#include "verify/step/step_values.h"

bool lh_step_optimizer_has(const LhOp *op);
void lh_step_optimizer_apply(LhStepValues *v, uint32_t op);

/* For step_muon.c. Each is false with a finding. The complete gradient of a piece, in a call for
 * it; whether operand @operand is the norm of all gradients; moves a state of the weight of @of to
 * its value after the step. */
bool lh_step_optimizer_takes_gradient(LhStepValues *values, uint32_t op, LhValue *gradient);
bool lh_step_optimizer_has_norm(LhStepValues *values, uint32_t op, uint32_t operand);
bool lh_step_optimizer_raises(LhStepValues *values, uint32_t op, uint32_t operand, LhValueKind kind,
                              const LhValue *of);
/* Reports an operand that is not the required value; always false. */
bool lh_step_optimizer_finds_other(LhStepValues *values, uint32_t op, uint32_t operand,
                                   const LhValue *have, const char *needed);
