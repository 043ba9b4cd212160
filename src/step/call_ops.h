/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the calls of a step into ops of its ranks.
 */
#pragma once

#include "step/step.h"

/* Calls @visit with ops of the first and the last rank of each stage, once for each form of call.
 * Calls of one form differ only in which of several equal tensors they touch. Ids and waits of
 * these ops are meaningless. */
typedef void LhStepVisit(void *data, uint32_t rank, const LhOpBuffer *ops);
void lh_step_visit_forms(const LhProgram *program, LhStepVisit *visit, void *data);
