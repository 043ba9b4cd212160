/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races in regions of many parts: an exchange that moves a region at once has the findings, and
 * asks for as many orders, as one that names the same parts one by one. Random programs of one rank
 * with few orders between their ops, so that parts are used in different ways.
 */
#include "verify/verify_private.h"

#include "base/rng.h"
#include "run_tests.h"
#include "share.h"
#include "verifying.h"

#define SEED 72
#define PROGRAMS 3000
#define OPS 24
#define PARTS 16
#define STREAMS 3

typedef struct {
    LhSlot slot;
    LhProgram program;
    LhOp ops[OPS];
    LhPart parts[OPS * PARTS];
    uint32_t op_rank[OPS], part_op[OPS * PARTS], rank_first[2];
    LhProof proof;
} Case;

static void
add_message(Case *c, uint32_t g, bool send, LhRegion region)
{
    LhOp *op = &c->ops[g];
    LhPart *part = &c->parts[c->proof.parts_count];

    *part = (LhPart){ .peer = 1, .send = send, .regions_count = 1, .regions = { region } };
    c->part_op[c->proof.parts_count++] = g;
    op->exchange.parts_count++;
}

/* Op @g of program @number moves parts on a random stream, most of them after the op before. */
static void
add_op(Case *c, uint32_t number, uint32_t g, bool split)
{
    const uint64_t bits = lh_rng_bits(SEED, number, g);
    const uint32_t part = (uint32_t)(bits >> 8) % PARTS;
    const uint32_t count = 1 + (uint32_t)(bits >> 16) % (PARTS - part);
    const bool send = bits % 3 != 0;
    LhOp *op = &c->ops[g];

    *op = (LhOp){ .id = g, .kind = LH_OP_EXCHANGE, .stream = (uint8_t)((bits >> 24) % STREAMS) };
    op->exchange.parts_first = c->proof.parts_count;
    op->after_count = g > 0 && (bits >> 32) % 8 != 0;
    op->after[0] = op->after_count > 0 ? g - 1 - (uint32_t)(bits >> 40) % MIN(g, 2) : 0;
    for (uint32_t i = 0; split && i < count; i++)
        add_message(c, g, send, (LhRegion){ .part = part + i, .count = 1 });
    if (!split)
        add_message(c, g, send, (LhRegion){ .part = part, .count = count });
}

static LhVerdict *
find_races(uint32_t number, bool split)
{
    g_autofree Case *c = g_new0(Case, 1);
    LhProof *proof = &c->proof;

    c->slot = (LhSlot){ .name = "kv", .parts = PARTS };
    c->program = (LhProgram){ .slots = &c->slot, .slots_count = 1, .streams_count = STREAMS };
    c->rank_first[1] = OPS;
    *proof = (LhProof){ .program = &c->program,
                        .verdict = lh_verdict_new(1),
                        .ranks = 1,
                        .ops = c->ops,
                        .ops_count = OPS,
                        .op_rank = c->op_rank,
                        .rank_first = c->rank_first,
                        .parts = c->parts,
                        .part_op = c->part_op,
                        .cells_count = PARTS };
    for (uint32_t g = 0; g < OPS; g++)
        add_op(c, number, g, split);
    lh_proof_make_clocks(proof);
    lh_proof_check_races(proof);
    g_free(proof->clocks);
    g_free(proof->position);
    return proof->verdict;
}

START_TEST(parts_are_used_as_one_by_one)
{
    uint32_t racy = 0, sound = 0;

    for (uint32_t number = 0; number < PROGRAMS; number++) {
        g_autoptr(LhVerdict) whole = NULL, single = NULL;

        if (!test_takes(number))
            continue;
        whole = find_races(number, false);
        single = find_races(number, true);
        ck_assert_uint_eq(whole->orders_checked, single->orders_checked);
        ck_assert_uint_eq(whole->findings_total, single->findings_total);
        for (guint i = 0; i < whole->findings->len; i++)
            ck_assert_str_eq(g_array_index(whole->findings, LhFinding, i).message,
                             g_array_index(single->findings, LhFinding, i).message);
        racy += whole->findings_total > 0;
        sound += whole->findings_total == 0;
    }
    ck_assert_uint_gt(racy, 0);
    if (!test_is_short()) /* few are */
        ck_assert_uint_gt(sound, 0);
}
END_TEST

LH_TEST_MAIN("verify_parts", parts_are_used_as_one_by_one)
