/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed forms that a training step claims, checked against counts.
 */
#pragma once

#include "verify/proof.h"

/* Checks bytes by dimension, flops and states of a step; needs unrolled ops. */
void lh_proof_check_step_forms(LhProof *proof);
