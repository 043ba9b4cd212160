/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The most that a step holds at a time.
 */
#pragma once

#include "step/step.h"

/* What the rank of @program, a step's, that needs most holds at its peak, to the byte; sets what of
 * it is what. */
uint64_t lh_step_peak(const LhProgram *program, uint64_t by_category[LH_CATEGORIES]);
