/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of a step as ops of its ranks.
 */
#pragma once

#include "step/step.h"

/* Calls @visit with ops of the first and of the last rank of each stage: those of each call that
 * differs from all calls before it in more than which of several equal tensors it touches. Their
 * ids and waits mean nothing. */
typedef void LhStepVisit(void *data, uint32_t rank, const LhOpBuffer *ops);
void lh_step_visit_forms(const LhProgram *program, LhStepVisit *visit, void *data);

/* LH_DIMENSIONS: it computes. */
LhDimension lh_step_dimension(const LhOp *op);
