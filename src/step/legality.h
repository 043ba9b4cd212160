/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which steps are possible.
 */
#pragma once

#include "step/step.h"

/* Checks that the step is possible; else LH_ERROR_NO. */
bool lh_step_check(const LhStepParams *params, GError **error);
