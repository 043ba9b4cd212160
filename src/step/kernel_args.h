/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of the kernel that a row of the tables calls.
 */
#pragma once

#include "step/step_private.h"

LhKernelArgs lh_step_kernel_args(const LhStepPlan *plan, const LhStepNode *node, uint32_t layer);
