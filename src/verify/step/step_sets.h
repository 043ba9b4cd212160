/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of terms, kept once each.
 */
#pragma once

#include "verify/proof.h"

/* Sets are kept once each: equal sets have equal numbers. 0 is the empty one. */
typedef struct {
    GPtrArray *sets; /* of Set */
    GHashTable *numbers;
} LhSets;

void lh_sets_init(LhSets *sets);
void lh_sets_clear(LhSets *sets);
/* The set {0, ..., @count - 1}; or of @term alone. */
uint32_t lh_sets_all(LhSets *sets, uint32_t count);
uint32_t lh_sets_one(LhSets *sets, uint32_t term);
/* Both together; LH_NONE if they share a term. */
uint32_t lh_sets_unite(LhSets *sets, uint32_t a, uint32_t b);
/* How many terms a set has; the first of 0, 1, 2, ... that it lacks. */
uint32_t lh_sets_size(const LhSets *sets, uint32_t set);
uint32_t lh_sets_lacks(const LhSets *sets, uint32_t set);
