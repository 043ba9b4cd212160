/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which steps there are.
 */
#pragma once

#include "step/step.h"

/* Whether there is such a step; refusals are LH_ERROR_NO. */
bool lh_step_check(const LhStepParams *params, GError **error);
