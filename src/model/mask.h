/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention masks: the keys that a query attends to. Under every rule these are an interval of
 * token positions: a causal mask ends it at the query, windows and documents begin it after token
 * 0. Exact counts of pairs, and hence flops and imbalance, follow from this.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The mask of a sequence; the same for all sequences of a batch. */
typedef struct {
    bool causal; /* false: a query also attends to later keys */
    /* A causal query attends to itself and the window - 1 keys before it; 0: no window. */
    uint64_t window;
    /*
     * Packed documents: document i ends before token document_ends[i], and queries attend only to
     * keys of their own document. Ascending; the last one is the sequence length; borrowed. NULL:
     * one document.
     */
    const uint64_t *document_ends;
    uint32_t documents_count;
} LhMaskRule;

/* Packed documents of one sequence, as in LhMaskRule: a pack; none: one document. */
typedef struct {
    const uint64_t *ends;
    uint32_t count;
} LhDocumentPack;

/* Token positions start + i * stride, i in [0, count). */
typedef struct {
    uint64_t start;
    uint64_t stride;
    uint64_t count;
} LhSegment;

/* Positions [first, end). */
typedef struct {
    uint64_t first, end;
} LhInterval;

/* Whether the mask is purely causal or full. */
static inline bool
lh_mask_is_plain(const LhMaskRule *rule)
{
    return rule->window == 0 && rule->documents_count <= 1;
}

/* Whether two masks allow the same pairs. */
bool lh_mask_rules_equal(const LhMaskRule *a, const LhMaskRule *b);

/* The keys that the query at @position attends to, in a sequence of @seq_length tokens. */
LhInterval lh_mask_keys(const LhMaskRule *rule, uint64_t position, uint64_t seq_length);

/* Whether the query at position @q attends to the key at position @k. */
bool lh_mask_sees(const LhMaskRule *rule, uint64_t q, uint64_t k);

/*
 * Number of pairs of queries @q and keys @k that the mask allows; exact. Both segments have the
 * same stride (or at most one token). O(1); with documents O(log(documents) + documents that both
 * touch).
 */
uint64_t lh_mask_pairs(const LhMaskRule *rule, LhSegment q, LhSegment k);

/*
 * Total number of keys that the queries @q attend to, in a sequence of @seq_length tokens; exact.
 * O(1); with documents O(log(documents) + documents that @q touches).
 */
uint64_t lh_mask_keys_count(const LhMaskRule *rule, LhSegment q, uint64_t seq_length);

/* Number of pairs with j <= i + shift, of @nq rows i and @nk keys j; both at most 2^31. */
uint64_t lh_causal_pairs(uint64_t nq, uint64_t nk, int64_t shift);
