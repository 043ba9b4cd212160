/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of a step between device and host.
 */
#pragma once

#include "verify/step/step_values.h"

bool lh_step_copies_has(const LhOp *op);
/* Moves the values of a copy, with their identity. */
void lh_step_copies_apply(LhStepValues *v, uint32_t op);

/* Checks the bytes that @rank copies against the closed form, and that copied tensors leave the
 * device. */
void lh_step_copies_check(LhProof *proof, uint32_t rank);
