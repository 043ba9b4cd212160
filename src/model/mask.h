/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which keys a query sees. Whatever the rule, the keys of one query are an interval of token
 * positions: causal masks end it at the query, windows and documents begin it later than token 0.
 * Everything exact about masks (pairs, and hence flops and imbalance) follows from that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The rule of a whole sequence of attention. All sequences of a batch have the same. */
typedef struct {
    bool causal;     /* else a query sees the keys behind it, too */
    uint64_t window; /* a causal query sees itself and window - 1 keys before it; 0: all of them */
    /*
     * Packed documents: document i ends before token document_ends[i], and no query sees the keys
     * of another document. Ascending, the last one the sequence length; borrowed. NULL: one
     * document.
     */
    const uint64_t *document_ends;
    uint32_t documents_count;
} LhMaskRule;

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

/* Whether it is nothing but causal or full. */
static inline bool
lh_mask_is_plain(const LhMaskRule *rule)
{
    return rule->window == 0 && rule->documents_count <= 1;
}

/* Whether two rules allow the same pairs. */
bool lh_mask_rules_equal(const LhMaskRule *a, const LhMaskRule *b);

/* The keys that the query at @position sees, in a sequence of @seq_length tokens. */
LhInterval lh_mask_keys(const LhMaskRule *rule, uint64_t position, uint64_t seq_length);

/* Whether the query at position @q sees the key at position @k. */
bool lh_mask_sees(const LhMaskRule *rule, uint64_t q, uint64_t k);

/*
 * How many of the pairs of the queries @q and the keys @k the rule allows; exact. Both segments
 * have one stride (or one token at most). Costs O(1), with documents O(log(documents) + those that
 * both touch).
 */
uint64_t lh_mask_pairs(const LhMaskRule *rule, LhSegment q, LhSegment k);

/*
 * How many keys the queries @q see in all, in a sequence of @seq_length tokens; exact. O(1), with
 * documents O(log(documents) + those that @q touches).
 */
uint64_t lh_mask_keys_count(const LhMaskRule *rule, LhSegment q, uint64_t seq_length);

/* Pairs with j <= i + shift among @nq rows i and @nk keys j; both at most 2^31. */
uint64_t lh_causal_pairs(uint64_t nq, uint64_t nk, int64_t shift);
