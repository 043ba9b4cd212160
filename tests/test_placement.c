/*
 * Placements and masks, against counting token by token.
 */
#include "run_tests.h"
#include "sched/placement.h"

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
            check_partition((LhPlacement){ LH_PLACE_CONTIGUOUS, ranks, ranks * n });
            check_partition((LhPlacement){ LH_PLACE_ZIGZAG, ranks, 2 * ranks * n });
            check_partition((LhPlacement){ LH_PLACE_STRIPED, ranks, ranks * n });
        }
    }
}
END_TEST

START_TEST(placement_knows_who_holds_what)
{
    const LhPlacement zigzag = { LH_PLACE_ZIGZAG, 4, 64 };
    const LhPlacement striped = { LH_PLACE_STRIPED, 4, 64 };

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

static bool
allows(LhBlock block, uint64_t i, uint64_t j)
{
    if (block.kind == LH_MASK_CAUSAL)
        return (int64_t)j <= (int64_t)i + block.shift;
    return block.kind == LH_MASK_FULL;
}

static void
check_block(LhSegment q, LhSegment k, bool causal)
{
    const LhBlock block = lh_block(q, k, causal);
    uint64_t pairs = 0;

    for (uint64_t i = 0; i < q.count; i++) {
        for (uint64_t j = 0; j < k.count; j++) {
            const bool allowed = !causal || position(k, j) <= position(q, i);

            ck_assert(allows(block, i, j) == allowed);
            pairs += allowed ? 1 : 0;
        }
    }
    ck_assert_uint_eq(block.pairs, pairs);
}

static void
check_blocks(const LhPlacement *p)
{
    for (uint32_t q = 0; q < lh_placement_segments(p); q++) {
        for (uint32_t k = 0; k < lh_placement_segments(p); k++) {
            check_block(lh_placement_segment(p, q), lh_placement_segment(p, k), true);
            check_block(lh_placement_segment(p, q), lh_placement_segment(p, k), false);
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
                const LhPlacement p = { kinds[kind], ranks, 2 * ranks * n };

                check_blocks(&p);
            }
        }
    }
}
END_TEST

START_TEST(placement_masks_have_kernels)
{
    const LhPlacement p = { LH_PLACE_STRIPED, 5, 50 };
    const LhBlock late = lh_block(lh_placement_segment(&p, 1), lh_placement_segment(&p, 3), true);
    const LhBlock early = lh_block(lh_placement_segment(&p, 3), lh_placement_segment(&p, 1), true);

    ck_assert_int_eq(late.kind, LH_MASK_CAUSAL);
    ck_assert_int_eq(late.shift, -1);
    ck_assert_int_eq(early.kind, LH_MASK_CAUSAL);
    ck_assert_int_eq(early.shift, 0);
}
END_TEST

LH_TEST_MAIN("placement", placement_is_a_partition, placement_knows_who_holds_what,
             placement_counts_causal_pairs, placement_masks_are_exact, placement_masks_have_kernels)
