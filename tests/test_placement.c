/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placements and masks, compared with counting token by token.
 */
#include "program/placement.h"
#include "run_tests.h"

#include <glib.h>

static uint64_t
position(LhSegment segment, uint64_t i)
{
    return segment.start + i * segment.stride;
}

/* Every token belongs to one segment, and every segment to one part of one rank. */
static void
check_partition(LhPlacement p)
{
    const uint32_t parts = lh_placement_parts(&p);
    g_autofree unsigned *owners = g_new0(unsigned, p.seq_length);
    g_autofree unsigned *held = g_new0(unsigned, lh_placement_segments(&p));

    ck_assert_uint_eq(lh_placement_segments(&p), p.ranks * parts);
    for (uint32_t rank = 0; rank < p.ranks; rank++) {
        for (uint32_t part = 0; part < parts; part++) {
            const uint32_t id = lh_placement_segment_id(&p, rank, part);
            const LhSegment segment = lh_placement_segment(&p, id);

            ck_assert_uint_lt(id, lh_placement_segments(&p));
            held[id]++;
            for (uint64_t i = 0; i < segment.count; i++)
                owners[position(segment, i)]++;
        }
    }
    for (uint32_t id = 0; id < lh_placement_segments(&p); id++)
        ck_assert_uint_eq(held[id], 1);
    for (uint64_t token = 0; token < p.seq_length; token++)
        ck_assert_uint_eq(owners[token], 1);
}

START_TEST(placement_is_a_partition)
{
    for (uint32_t ranks = 1; ranks <= 9; ranks++) {
        for (uint64_t n = 1; n <= 4; n++) {
            LhPlacement p = { .ranks = ranks, .seq_length = 2 * ranks * n };

            for (p.kind = LH_PLACE_CONTIGUOUS; p.kind <= LH_PLACE_STRIPED; p.kind++)
                check_partition(p);
            for (p.split = 1; p.split <= ranks; p.split++) {
                p.kind = LH_PLACE_ZIGZAG;
                if (ranks % p.split == 0)
                    check_partition(p);
            }
        }
    }
}
END_TEST

START_TEST(placement_knows_who_holds_what)
{
    const LhPlacement zigzag = { .kind = LH_PLACE_ZIGZAG, .ranks = 4, .seq_length = 64 };
    const LhPlacement split = { .kind = LH_PLACE_ZIGZAG, .ranks = 6, .seq_length = 60, .split = 3 };
    const LhPlacement striped = { .kind = LH_PLACE_STRIPED, .ranks = 4, .seq_length = 64 };

    /* Two groups of three: half-chunks 0 and 3, and 1 and 2, in three pieces each. */
    ck_assert_uint_eq(lh_placement_segment_id(&split, 1, 0), 1);
    ck_assert_uint_eq(lh_placement_segment_id(&split, 1, 1), 10);
    ck_assert_uint_eq(lh_placement_segment_id(&split, 5, 0), 5);
    ck_assert_uint_eq(lh_placement_segment_id(&split, 5, 1), 8);
    ck_assert_uint_eq(lh_placement_segment_id(&zigzag, 1, 0), 1);
    ck_assert_uint_eq(lh_placement_segment_id(&zigzag, 1, 1), 6);
    ck_assert_uint_eq(lh_placement_segment(&zigzag, 6).start, 48);
    ck_assert_uint_eq(lh_placement_segment(&zigzag, 6).count, 8);
    ck_assert_uint_eq(lh_placement_segment(&striped, 3).start, 3);
    ck_assert_uint_eq(lh_placement_segment(&striped, 3).stride, 4);
    ck_assert_uint_eq(lh_placement_segment(&striped, 3).count, 16);
}
END_TEST

static uint64_t
count_causal_pairs(uint64_t nq, uint64_t nk, int64_t shift)
{
    uint64_t pairs = 0;

    for (int64_t i = 0; i < (int64_t)nq; i++) {
        for (int64_t j = 0; j < (int64_t)nk; j++)
            pairs += j <= i + shift ? 1 : 0;
    }
    return pairs;
}

START_TEST(placement_counts_causal_pairs)
{
    for (uint64_t nq = 0; nq <= 7; nq++) {
        for (uint64_t nk = 0; nk <= 7; nk++) {
            for (int64_t shift = -9; shift <= 9; shift++)
                ck_assert_uint_eq(lh_causal_pairs(nq, nk, shift),
                                  count_causal_pairs(nq, nk, shift));
        }
    }
    ck_assert_uint_eq(lh_causal_pairs(UINT64_C(1) << 31, UINT64_C(1) << 31, 0),
                      ((UINT64_C(1) << 31) + 1) << 30);
}
END_TEST

static const uint64_t documents[] = { 1, 5, 6, 12, 13 }; /* the sequence end is added */

static LhMaskRule
rule_of(unsigned index, uint64_t length, uint64_t ends[])
{
    LhMaskRule rule = { .causal = index != 0 && index != 3, .window = index == 2 ? 5 : 0 };

    if (index < 3)
        return rule;
    for (unsigned i = 0; i < G_N_ELEMENTS(documents) && documents[i] < length; i++)
        ends[rule.documents_count++] = documents[i];
    ends[rule.documents_count++] = length;
    rule.document_ends = ends;
    rule.window = index == 5 ? 3 : 0;
    return rule;
}

#define RULES 6

/* Checks lh_mask_keys() and lh_mask_sees() against the definition of the rule; returns whether
 * @q sees @k. */
static bool
sees(const LhMaskRule *rule, uint64_t q, uint64_t k, uint64_t length)
{
    const LhInterval keys = lh_mask_keys(rule, q, length);
    uint64_t documents_q = 0, documents_k = 0;
    bool allowed;

    for (uint32_t i = 0; i < rule->documents_count; i++) {
        documents_q += rule->document_ends[i] <= q;
        documents_k += rule->document_ends[i] <= k;
    }
    allowed = documents_q == documents_k &&
              (!rule->causal || (k <= q && (rule->window == 0 || k + rule->window > q)));
    ck_assert(lh_mask_sees(rule, q, k) == allowed);
    ck_assert((k >= keys.first && k < keys.end) == allowed);
    return allowed;
}

static void
check_block(LhSegment q, LhSegment k, const LhMaskRule *rule, uint64_t length)
{
    const LhBlock block = lh_block(q, k, rule);
    uint64_t pairs = 0;

    for (uint64_t i = 0; i < q.count; i++) {
        for (uint64_t j = 0; j < k.count; j++) {
            const bool allowed = sees(rule, position(q, i), position(k, j), length);

            pairs += allowed ? 1 : 0;
            if (block.kind != LH_MASK_POSITIONS)
                ck_assert(allowed == (block.kind == LH_MASK_CAUSAL
                                          ? (int64_t)j <= (int64_t)i + block.shift
                                          : block.kind == LH_MASK_FULL));
        }
    }
    ck_assert_uint_eq(block.pairs, pairs);
    ck_assert_uint_eq(lh_mask_pairs(rule, q, k), pairs);
    ck_assert(block.kind != LH_MASK_POSITIONS || !lh_mask_is_plain(rule));
}

static void
check_blocks(const LhPlacement *p)
{
    for (unsigned index = 0; index < RULES; index++) {
        uint64_t ends[G_N_ELEMENTS(documents) + 1];
        const LhMaskRule rule = rule_of(index, p->seq_length, ends);

        for (uint32_t q = 0; q < lh_placement_segments(p); q++) {
            for (uint32_t k = 0; k < lh_placement_segments(p); k++)
                check_block(lh_placement_segment(p, q), lh_placement_segment(p, k), &rule,
                            p->seq_length);
        }
    }
}

START_TEST(placement_masks_are_exact)
{
    static const LhPlacementKind kinds[] = { LH_PLACE_CONTIGUOUS, LH_PLACE_ZIGZAG,
                                             LH_PLACE_STRIPED };

    for (unsigned kind = 0; kind < G_N_ELEMENTS(kinds); kind++) {
        for (uint32_t ranks = 1; ranks <= 6; ranks++) {
            for (uint64_t n = 1; n <= 4; n++) {
                const LhPlacement p = { .kind = kinds[kind],
                                        .ranks = ranks,
                                        .seq_length = 2 * ranks * n };

                check_blocks(&p);
            }
        }
    }
}
END_TEST

START_TEST(placement_masks_have_kernels)
{
    const LhPlacement p = { .kind = LH_PLACE_STRIPED, .ranks = 5, .seq_length = 50 };
    const LhMaskRule causal = { .causal = true };
    const LhBlock late =
        lh_block(lh_placement_segment(&p, 1), lh_placement_segment(&p, 3), &causal);
    const LhBlock early =
        lh_block(lh_placement_segment(&p, 3), lh_placement_segment(&p, 1), &causal);

    ck_assert_int_eq(late.kind, LH_MASK_CAUSAL);
    ck_assert_int_eq(late.shift, -1);
    ck_assert_int_eq(early.kind, LH_MASK_CAUSAL);
    ck_assert_int_eq(early.shift, 0);
}
END_TEST

LH_TEST_MAIN("placement", placement_is_a_partition, placement_knows_who_holds_what,
             placement_counts_causal_pairs, placement_masks_are_exact, placement_masks_have_kernels)
