/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peak memory of a step.
 */
#pragma once

#include "step/step.h"

/* Exact peak memory of the rank of @program (a step's) that needs most, in bytes. Fills in its
 * split by category. */
uint64_t lh_step_peak(const LhProgram *program, uint64_t by_category[LH_CATEGORIES]);
