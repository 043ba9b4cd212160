/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads of attention kernels by their tiles, remembered for each shape.
 */
#pragma once

#include "sim/cost/attention_cost.h"
#include "sim/cost/cost.h"

/* Parts of the queries and of the keys of a call. */
void lh_attention_parts(const LhOp *op, uint32_t *q_parts, uint32_t *k_parts);

/* The load of @op under @row. Belongs to @cost; valid until the next call. */
const LhAttentionLoad *lh_attention_cached_load(LhCost *cost, const LhAttentionRow *row,
                                                const LhOp *op);
