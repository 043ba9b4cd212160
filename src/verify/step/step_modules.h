/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances of attention in a step.
 */
#pragma once

#include "verify/step/step_values.h"

/* Proves the embedded programs alone, and that each instance is one of them. False: findings. */
bool lh_step_modules_check(LhStepValues *v);
/* Applies the effects of an instance's op on cells, once it is done. */
void lh_step_modules_apply(LhStepValues *v, uint32_t op);
void lh_step_modules_clear(LhStepValues *v);
