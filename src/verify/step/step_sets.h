/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of terms, each stored once.
 */
#pragma once

#include "verify/proof.h"

/* Equal sets have equal numbers. 0 is the empty set. */
typedef struct {
    GPtrArray *sets; /* of Set */
    GHashTable *numbers;
} LhSets;

void lh_sets_init(LhSets *sets);
void lh_sets_clear(LhSets *sets);
/* The set {0, ..., @count - 1}; the set of @term alone. */
uint32_t lh_sets_all(LhSets *sets, uint32_t count);
uint32_t lh_sets_one(LhSets *sets, uint32_t term);
/* The union; LH_NONE if they share a term. */
uint32_t lh_sets_unite(LhSets *sets, uint32_t a, uint32_t b);
/* The size of a set; the smallest of 0, 1, 2, ... not in it. */
uint32_t lh_sets_size(const LhSets *sets, uint32_t set);
uint32_t lh_sets_lacks(const LhSets *sets, uint32_t set);
