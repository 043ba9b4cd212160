/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof of a training step.
 */
#pragma once

#include "verify/proof.h"

/* Proves the effect of a training step on its weights and tokens; needs order. */
void lh_proof_check_step(LhProof *proof);
