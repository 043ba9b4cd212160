/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of Muon.
 */
#pragma once

#include "step/sharding.h"

/* Shape of a tensor of a batch of matrices (LH_STEP_OF_MUON_...). */
LhStepShape lh_muon_shape(const LhStepPlan *plan, const LhStepTensor *tensor);

/* The layer of the matrix that @rank works on in a call of a batch. */
uint32_t lh_muon_layer(const LhStepPlan *plan, const LhStepCall *call, uint32_t rank);

/* Records the updates of all matrices of the stage. @gradient: location of a weight's gradient
 * after all reductions. */
void lh_muon_record(LhStepRecorder *r, LhStepUse (*gradient)(LhStepRecorder *r, LhStepHeld w));
