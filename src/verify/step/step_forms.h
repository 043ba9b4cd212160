/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a training step says of itself, against what was counted.
 */
#pragma once

#include "verify/proof.h"

/* Bytes by dimension, flops and states of a step; needs unrolled ops. */
void lh_proof_check_step_forms(LhProof *proof);
