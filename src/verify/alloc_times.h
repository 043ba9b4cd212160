/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which alloc a part of a slot is of, by op.
 */
#pragma once

#include "verify/proof.h"

/* Lists the allocs of every cell; the last one of a part of a slot before @op of its
 * rank, or LH_NONE. */
void lh_proof_list_allocs(LhProof *proof);
uint32_t lh_proof_last_alloc(const LhProof *proof, uint32_t op, uint32_t slot, uint32_t part);
