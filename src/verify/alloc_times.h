/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The alloc that a slot part belongs to, at the time of an op.
 */
#pragma once

#include "verify/proof.h"

/* lh_proof_list_allocs lists the allocs of every cell. lh_proof_last_alloc returns the last
 * alloc of a slot part before @op of its rank, or LH_NONE. */
void lh_proof_list_allocs(LhProof *proof);
uint32_t lh_proof_last_alloc(const LhProof *proof, uint32_t op, uint32_t slot, uint32_t part);
