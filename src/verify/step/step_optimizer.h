/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of the optimizer, which is not in the table.
 */
#pragma once

#include "verify/step/step_values.h"

bool lh_step_optimizer_has(const LhOp *op);
void lh_step_optimizer_apply(LhStepValues *v, uint32_t op);
