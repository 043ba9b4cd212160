/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of attention that materialises its scores. A cell of scores holds the rows of one query
 * segment; its set is the one key segment that they are scored against. Probabilities and gradients
 * of scores are the same but marked as ended: only softmax makes them, from rows that have every
 * key segment that the mask allows. All scores are computed; the mask is applied by softmax.
 */
#include "verify/verify_private.h"

#include <string.h>

/* Contents of a part of scores. */
typedef struct {
    LhHolding rows; /* query rows */
    uint32_t keys;  /* key segment */
    bool ended;
} Block;

/* The only member of a set; LH_NONE if it is empty or has several. */
static uint32_t
only_source(const LhSymbolicExec *cover, const uint64_t *set)
{
    uint32_t found = LH_NONE, count = 0;

    for (uint32_t w = 0; w < cover->words; w++) {
        count += (uint32_t)__builtin_popcountll(set[w]);
        if (set[w] != 0)
            found = w * 64 + (uint32_t)__builtin_ctzll(set[w]);
    }
    return count == 1 ? found : LH_NONE;
}

static bool
read_block(LhSymbolicExec *cover, uint32_t g, const LhRegion *region, uint32_t i, Block *block)
{
    const LhCell *cell = lh_symbolic_read_rows(cover, g, region, i);

    if (cell == NULL)
        return false;
    *block = (Block){ .rows = cell->rows,
                      .keys = only_source(cover, lh_symbolic_set(cover, cell)),
                      .ended = cell->ended };
    if (block->keys != LH_NONE)
        return true;
    COVERAGE(g, region->slot, "takes a sum from slot %s for scores",
             cover->slots[region->slot].name);
    return false;
}

static void
write_block(LhSymbolicExec *cover, uint32_t g, const LhRegion *region, uint32_t i,
            const Block *block)
{
    LhCell *cell = lh_symbolic_write(cover, g, region, i, block->rows);

    lh_symbolic_contribute(cover, g, region, cell, block->keys); /* the first one */
    cell->ended = block->ended;
}

static bool
check_count(LhSymbolicExec *cover, uint32_t g, const LhRegion *region, uint32_t count)
{
    if (region->count == count)
        return true;
    COVERAGE(g, region->slot, "takes %u parts of slot %s; needed: %u", region->count,
             cover->slots[region->slot].name, count);
    return false;
}

/* Checks that the arguments have the rows of one query segment and of @segments key segments. */
static bool
check_args(LhSymbolicExec *cover, uint32_t g, uint32_t segments, uint64_t pairs)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhKernelArgs *args = &op->compute.args;

    if (args->nq == cover->rows && args->nk == segments * cover->rows && args->pairs == pairs)
        return true;
    COVERAGE(g, op->compute.regions[0].slot,
             "is called for %" G_GUINT64_FORMAT " queries, %" G_GUINT64_FORMAT
             " keys and %" G_GUINT64_FORMAT " pairs, but its operands have %" G_GUINT64_FORMAT
             ", %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT,
             args->nq, args->nk, args->pairs, cover->rows, segments * cover->rows, pairs);
    return false;
}

/* Checks calls that compute every pair of one query segment with @segments key segments. */
static bool
check_all_pairs(LhSymbolicExec *cover, uint32_t g, uint32_t segments)
{
    const LhOp *op = &cover->proof->ops[g];

    if (op->compute.args.mask == LH_MASK_FULL)
        return check_args(cover, g, segments, cover->rows * segments * cover->rows);
    COVERAGE(g, op->compute.regions[0].slot, "has a mask; only softmax applies the mask");
    return false;
}

/* Checks that the rows in part @i of @region are @wanted. */
static bool
check_part_rows(LhSymbolicExec *cover, uint32_t g, const LhRegion *region, uint32_t i,
                LhHolding wanted)
{
    const LhCell *cell = lh_symbolic_read_rows(cover, g, region, i);
    g_autofree char *text = NULL;
    g_autofree char *found = NULL;

    if (cell == NULL || lh_rows_equal(cell->rows, wanted))
        return cell != NULL;
    text = lh_symbolic_rows_text(cover, wanted);
    found = lh_symbolic_rows_text(cover, cell->rows);
    COVERAGE(g, region->slot, "needs the rows of %s, but slot %s has those of %s", text,
             cover->slots[region->slot].name, found);
    return false;
}

static LhHolding
keys_of(const LhSymbolicExec *cover, const Block *block)
{
    return (LhHolding){ block->keys, lh_symbolic_kv_slice(cover, block->rows.slice) };
}

bool
lh_symbolic_scores(LhSymbolicExec *cover, uint32_t g)
{
    const LhRegion *regions = cover->proof->ops[g].compute.regions;
    const LhRegion *rows = &regions[0], *keys = &regions[1], *scores = &regions[2];
    const LhCell *q;

    if (!check_count(cover, g, rows, 1) || !check_count(cover, g, keys, scores->count) ||
        !check_all_pairs(cover, g, scores->count))
        return false;
    q = lh_symbolic_read_rows(cover, g, rows, 0);
    for (uint32_t i = 0; q != NULL && i < scores->count; i++) {
        const LhCell *k = lh_symbolic_read_rows(cover, g, keys, i);
        Block block = { .rows = q->rows };

        if (k == NULL)
            return false;
        block.keys = k->rows.segment;
        if (!check_part_rows(cover, g, keys, i, keys_of(cover, &block)))
            return false;
        write_block(cover, g, scores, i, &block);
    }
    return q != NULL;
}

/* Checks that the parts of @scores are one query segment with each key segment that the mask
 * allows, none twice and none missing. */
static bool
check_all_keys(LhSymbolicExec *cover, uint32_t g, const LhRegion *scores, const Block *blocks)
{
    const uint64_t *want = lh_symbolic_complete(cover, LH_FAMILY_OUTPUT, blocks[0].rows.segment);
    g_autofree uint64_t *seen = g_new0(uint64_t, cover->words);
    const char *name = cover->slots[scores->slot].name;

    for (uint32_t i = 0; i < scores->count; i++) {
        if (!check_part_rows(cover, g, scores, i, blocks[0].rows))
            return false;
        if (lh_set_has(seen, blocks[i].keys)) {
            COVERAGE(g, scores->slot, "takes key segment %u twice from slot %s", blocks[i].keys,
                     name);
            return false;
        }
        lh_set_add(seen, blocks[i].keys);
    }
    for (uint32_t k = 0; k < cover->segments; k++) {
        if (!lh_set_has(want, k) || lh_set_has(seen, k))
            continue;
        COVERAGE(g, scores->slot, "takes rows of segment %u from slot %s that lack key segment %u",
                 blocks[0].rows.segment, name, k);
        return false;
    }
    return true;
}

/* Reads all parts of scores; caller frees. NULL, with a finding, if they are not complete rows. */
static Block *
read_complete(LhSymbolicExec *cover, uint32_t g, const LhRegion *scores)
{
    g_autofree Block *blocks = g_new(Block, scores->count);

    for (uint32_t i = 0; i < scores->count; i++) {
        if (!read_block(cover, g, scores, i, &blocks[i]))
            return NULL;
    }
    return check_all_keys(cover, g, scores, blocks) ? g_steal_pointer(&blocks) : NULL;
}

/* Checks that the mask of softmax is the program's on these blocks. For a full mask the number
 * of pairs suffices. */
static bool
check_softmax_mask(LhSymbolicExec *cover, uint32_t g, const LhRegion *scores, const Block *blocks)
{
    const LhKernelArgs *args = &cover->proof->ops[g].compute.args;
    uint64_t pairs = 0;

    for (uint32_t i = 0; i < scores->count; i++)
        pairs += lh_symbolic_block(cover, blocks[i].rows.segment, blocks[i].keys).pairs;
    if (!check_args(cover, g, scores->count, pairs))
        return false;
    cover->proof->verdict->pairs_checked += pairs;
    if (args->mask == LH_MASK_FULL && pairs == args->nq * args->nk)
        return true;
    if (args->mask != LH_MASK_POSITIONS) {
        COVERAGE(g, scores->slot, "needs the program's mask by positions");
        return false;
    }
    if (!lh_symbolic_check_rule(cover, g, scores) ||
        !lh_symbolic_check_position(cover, g, scores, blocks[0].rows.segment, args->q_at.start))
        return false;
    for (uint32_t i = 0; i < scores->count; i++) {
        if (!lh_symbolic_check_position(cover, g, scores, blocks[i].keys,
                                        args->k_at.start + i * args->k_at.part_step))
            return false;
    }
    return true;
}

bool
lh_symbolic_softmax(LhSymbolicExec *cover, uint32_t g)
{
    const LhRegion *regions = cover->proof->ops[g].compute.regions;
    const LhRegion *scores = &regions[0], *probs = &regions[1], *lse = &regions[2];
    g_autofree Block *blocks = NULL;
    LhCell *cell;

    if (!check_count(cover, g, probs, scores->count) || !check_count(cover, g, lse, 1))
        return false;
    blocks = read_complete(cover, g, scores);
    if (blocks == NULL || !check_softmax_mask(cover, g, scores, blocks))
        return false;
    for (uint32_t i = 0; i < scores->count; i++) {
        blocks[i].ended = true;
        write_block(cover, g, probs, i, &blocks[i]);
        lh_symbolic_list_block(cover, g, blocks[i].rows, blocks[i].keys);
    }
    cell = lh_symbolic_write(cover, g, lse, 0, blocks[0].rows);
    cell->ended = true;
    lh_symbolic_give_set(
        cover, cell, lh_symbolic_complete_number(cover, LH_FAMILY_OUTPUT, blocks[0].rows.segment));
    return true;
}

bool
lh_symbolic_softmax_grad(LhSymbolicExec *cover, uint32_t g)
{
    const LhRegion *regions = cover->proof->ops[g].compute.regions;
    const LhRegion *probs = &regions[0], *before = &regions[1], *after = &regions[2];
    g_autofree Block *blocks = NULL;

    if (!check_count(cover, g, before, probs->count) ||
        !check_count(cover, g, after, probs->count) || !check_all_pairs(cover, g, probs->count))
        return false;
    blocks = read_complete(cover, g, probs);
    for (uint32_t i = 0; blocks != NULL && i < probs->count; i++) {
        Block gradient;

        if (!read_block(cover, g, before, i, &gradient))
            return false;
        if (gradient.ended || gradient.keys != blocks[i].keys ||
            !lh_rows_equal(gradient.rows, blocks[i].rows)) {
            COVERAGE(g, before->slot,
                     "takes slot %s, which is not the gradient of the probabilities in slot %s",
                     cover->slots[before->slot].name, cover->slots[probs->slot].name);
            return false;
        }
    }
    for (uint32_t i = 0; blocks != NULL && i < probs->count; i++)
        write_block(cover, g, after, i, &blocks[i]);
    return blocks != NULL;
}

/* Applies part @i of the scores in the product: its keys are added to the sum of the rows, or,
 * for a sum of keys, its rows to that of the keys. */
static bool
apply_block(LhSymbolicExec *cover, uint32_t g, uint32_t i, bool to_keys)
{
    const LhRegion *regions = cover->proof->ops[g].compute.regions;
    const LhRegion *scores = &regions[0], *operand = &regions[1], *sum = &regions[2];
    const LhAddend term = { sum, to_keys ? i : 0, LH_NORM_ROW };
    LhHolding from, to;
    LhCell *into;
    Block block;
    bool fresh;

    if (!read_block(cover, g, scores, i, &block))
        return false;
    if (!block.ended) {
        COVERAGE(g, scores->slot, "takes slot %s before softmax has been applied to it",
                 cover->slots[scores->slot].name);
        return false;
    }
    from = to_keys ? block.rows : keys_of(cover, &block);
    to = to_keys ? keys_of(cover, &block) : block.rows;
    if (!check_part_rows(cover, g, operand, to_keys ? 0 : i, from))
        return false;
    into =
        lh_symbolic_cell(cover, cover->proof->op_rank[g], sum->slot, sum->part + (to_keys ? i : 0));
    fresh = into->rows.segment == LH_ROW_ANY;
    into = lh_symbolic_open_unended(cover, g, sum, to_keys ? i : 0, to);
    /* Softmax has divided by the sum over the row. */
    if (into == NULL ||
        !lh_symbolic_join_norm(cover, g, &term, cover->slots[sum->slot].kind, fresh, into))
        return false;
    if (lh_symbolic_block(cover, block.rows.segment, block.keys).kind == LH_MASK_EMPTY)
        return true;
    return lh_symbolic_contribute(
        cover, g, sum, into,
        lh_symbolic_source(cover, to_keys ? LH_FAMILY_DKV : LH_FAMILY_OUTPUT, from));
}

bool
lh_symbolic_scores_apply(LhSymbolicExec *cover, uint32_t g)
{
    const LhRegion *regions = cover->proof->ops[g].compute.regions;
    const bool to_keys = lh_tensor_is_kv(cover->slots[regions[2].slot].kind);
    const uint32_t count = regions[0].count;

    lh_symbolic_start(cover, g);
    if (!check_count(cover, g, &regions[1], to_keys ? 1 : count) ||
        !check_count(cover, g, &regions[2], to_keys ? count : 1) ||
        !check_all_pairs(cover, g, count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!apply_block(cover, g, i, to_keys))
            return false;
    }
    return true;
}
