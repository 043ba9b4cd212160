/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of attention on symbolic contents. Every pair of a query part and a key part is one
 * block: its mask must be the program's. The block adds the keys to the rows of the queries and,
 * backward, the queries to the rows of the keys.
 */
#include "verify/verify_private.h"

#include <string.h>

/* The operands of an attention op by role. */
typedef struct {
    LhSymbolicExec *cover;
    uint32_t op;
    const LhKernelArgs *args;
    const LhRegion *q, *kv;
    const LhRegion *stats, *stats_end; /* do and the row statistics */
    const LhRegion *acc, *acc_end; /* accumulators over the keys, by query row: acc, o, lse, dq */
    const LhRegion *dkv;           /* NULL: none */
    /* Blocks that a mask by rows claims for two parts, with the query part before, at, or after
     * the key part. */
    LhBlock before, at, behind;
} Attend;

static LhCell *
cell_of(const Attend *at, const LhRegion *region, uint32_t i)
{
    return lh_symbolic_cell(at->cover, at->cover->proof->op_rank[at->op], region->slot,
                            region->part + i);
}

static const char *
name_of(const Attend *at, const LhRegion *region)
{
    return at->cover->slots[region->slot].name;
}

static bool
check_counts(const Attend *at)
{
    LhSymbolicExec *cover = at->cover;
    const LhOp *op = &cover->proof->ops[at->op];

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        const LhRegion *region = &op->compute.regions[i];
        const LhRegion *like = region == at->kv || region == at->dkv ? at->kv : at->q;

        if (region->count != like->count) {
            COVERAGE(at->op, region->slot, "takes %u parts of slot %s beside %u of slot %s",
                     region->count, name_of(at, region), like->count, name_of(at, like));
            return false;
        }
    }
    if (at->args->mask == LH_MASK_CAUSAL && at->q->count != at->kv->count) {
        COVERAGE(at->op, at->kv->slot, "has a causal mask over %u query parts and %u key parts",
                 at->q->count, at->kv->count);
        return false;
    }
    return true;
}

bool
lh_symbolic_check_rule(LhSymbolicExec *cover, uint32_t g, const LhRegion *region)
{
    if (lh_mask_rules_equal(cover->proof->ops[g].compute.args.rule,
                            &cover->proof->program->params.mask))
        return true;
    COVERAGE(g, region->slot, "uses another mask rule than the program's");
    return false;
}

bool
lh_symbolic_check_position(LhSymbolicExec *cover, uint32_t g, const LhRegion *region,
                           uint32_t segment, int64_t start)
{
    const uint64_t stride = cover->proof->ops[g].compute.args.stride;
    const LhSegment *s = &cover->segment[segment];

    if ((uint64_t)start == s->start && (s->count == 1 || stride == s->stride))
        return true;
    COVERAGE(g, region->slot,
             "takes the rows of slot %s for the tokens from %" G_GINT64_FORMAT
             " on in steps of %" G_GUINT64_FORMAT
             ", but segment %u is those from %" G_GUINT64_FORMAT
             " on in steps of %" G_GUINT64_FORMAT,
             cover->slots[region->slot].name, start, stride, segment, s->start, s->stride);
    return false;
}

/* Checks part by part that the rows are where @claimed places them. */
static bool
check_rows_position(const Attend *at, const LhRegion *region, const LhRowsPosition *claimed)
{
    for (uint32_t i = 0; i < region->count; i++) {
        const LhCell *cell = lh_symbolic_read_rows(at->cover, at->op, region, i);

        if (cell == NULL ||
            !lh_symbolic_check_position(at->cover, at->op, region, cell->rows.segment,
                                        claimed->start + i * claimed->part_step))
            return false;
    }
    return true;
}

/* Checks that a mask by positions has the program's rule, and the positions of the rows present. */
static bool
check_positions(const Attend *at)
{
    if (at->args->mask != LH_MASK_POSITIONS)
        return true;
    return lh_symbolic_check_rule(at->cover, at->op, at->kv) &&
           check_rows_position(at, at->q, &at->args->q_at) &&
           check_rows_position(at, at->kv, &at->args->k_at);
}

/*
 * The block that the op claims for part pair (a, b). Its mask applies to the parts laid end to end,
 * unless it goes by positions; those have been checked to be the rows' own, so the claim is true.
 */
static LhBlock
claimed_block(const Attend *at, uint32_t a, uint32_t b)
{
    if (at->args->mask == LH_MASK_POSITIONS)
        return lh_symbolic_block(at->cover, cell_of(at, at->q, a)->rows.segment,
                                 cell_of(at, at->kv, b)->rows.segment);
    return a < b ? at->before : a == b ? at->at : at->behind;
}

static void
claim_blocks(Attend *at)
{
    const LhKernelArgs *args = at->args;
    const uint64_t rows = at->cover->rows;
    const LhBlock empty = lh_symbolic_normalise(LH_MASK_EMPTY, 0, rows);
    const LhBlock full = lh_symbolic_normalise(LH_MASK_FULL, 0, rows);

    at->before = at->at = at->behind = args->mask == LH_MASK_FULL ? full : empty;
    if (args->mask != LH_MASK_CAUSAL)
        return;
    at->at = lh_symbolic_normalise(LH_MASK_CAUSAL, args->shift, rows);
    at->behind = full;
}

/* Collects the key segments of all key parts in @keys; false if one comes twice. */
static bool
gather_keys(const Attend *at, uint64_t *keys)
{
    memset(keys, 0, at->cover->words * 8);
    for (uint32_t i = 0; i < at->kv->count; i++) {
        const uint32_t key = cell_of(at, at->kv, i)->rows.segment;

        if (lh_set_has(keys, key))
            return false;
        lh_set_add(keys, key);
    }
    return true;
}

/* Pairs of query segment @q with all @keys: whole blocks are counted, others looked up. */
static uint64_t
pairs_of_row(const Attend *at, uint32_t q, const uint64_t *keys)
{
    const LhSymbolicExec *cover = at->cover;
    const uint64_t *all_of = &cover->all_of[(size_t)q * cover->words];
    const uint64_t *keys_of = &cover->keys_of[(size_t)q * cover->words];
    uint64_t pairs = 0, whole = 0;

    for (uint32_t w = 0; w < cover->words; w++) {
        uint64_t rest = keys[w] & keys_of[w] & ~all_of[w];

        whole += (uint64_t)__builtin_popcountll(keys[w] & all_of[w]);
        for (; rest != 0; rest &= rest - 1)
            pairs += lh_symbolic_block(cover, q, w * 64 + (uint32_t)__builtin_ctzll(rest)).pairs;
    }
    return pairs + whole * cover->rows * cover->rows;
}

static uint64_t
pairs_by_positions(const Attend *at)
{
    uint64_t *keys = lh_symbolic_scratch(at->cover, 0);
    uint64_t pairs = 0;

    if (gather_keys(at, keys)) {
        for (uint32_t i = 0; i < at->q->count; i++)
            pairs += pairs_of_row(at, cell_of(at, at->q, i)->rows.segment, keys);
        return pairs;
    }
    for (uint32_t i = 0; i < at->q->count; i++) {
        for (uint32_t k = 0; k < at->kv->count; k++)
            pairs += claimed_block(at, i, k).pairs;
    }
    return pairs;
}

static uint64_t
claimed_pairs(const Attend *at)
{
    const uint64_t a = at->q->count, b = at->kv->count;

    if (at->args->mask == LH_MASK_CAUSAL)
        return a * (a - 1) / 2 * (at->before.pairs + at->behind.pairs) + a * at->at.pairs;
    return at->args->mask == LH_MASK_POSITIONS ? pairs_by_positions(at) : a * b * at->at.pairs;
}

static bool
check_pairs(const Attend *at)
{
    LhSymbolicExec *cover = at->cover;
    const LhKernelArgs *args = at->args;
    const uint64_t nq = at->q->count * cover->rows;
    const uint64_t nk = at->kv->count * cover->rows;
    const uint64_t pairs = claimed_pairs(at);

    if (args->nq == nq && args->nk == nk && args->pairs == pairs)
        return true;
    COVERAGE(at->op, at->q->slot,
             "is called for %" G_GUINT64_FORMAT " queries, %" G_GUINT64_FORMAT
             " keys and %" G_GUINT64_FORMAT " pairs, but its operands have %" G_GUINT64_FORMAT
             ", %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT,
             args->nq, args->nk, args->pairs, nq, nk, pairs);
    return false;
}

/* Opens an accumulator for all its parts, with the rows of @like. */
static bool
open_all(const Attend *at, const LhRegion *accumulator, const LhRegion *like)
{
    for (uint32_t i = 0; i < accumulator->count; i++) {
        const LhCell *rows = lh_symbolic_read_rows(at->cover, at->op, like, i);

        if (rows == NULL ||
            lh_symbolic_open_unended(at->cover, at->op, accumulator, i, rows->rows) == NULL)
            return false;
    }
    return true;
}

static bool
open_accumulators(const Attend *at)
{
    for (const LhRegion *acc = at->acc; acc < at->acc_end; acc++) {
        if (!open_all(at, acc, at->q))
            return false;
    }
    return at->dkv == NULL || open_all(at, at->dkv, at->kv);
}

/* Checks that do and the statistics of part @a belong to the query rows, and that a statistic is
 * final. */
static bool
check_stats(const Attend *at, uint32_t a, LhHolding rows)
{
    LhSymbolicExec *cover = at->cover;

    for (const LhRegion *region = at->stats; region < at->stats_end; region++) {
        const LhCell *cell = lh_symbolic_read_rows(cover, at->op, region, a);
        const LhFamily family = lh_families[cover->slots[region->slot].kind];

        if (cell == NULL)
            return false;
        if (!lh_rows_equal(cell->rows, rows)) {
            g_autofree char *wanted = lh_symbolic_rows_text(cover, rows);
            g_autofree char *found = lh_symbolic_rows_text(cover, cell->rows);

            COVERAGE(at->op, region->slot, "takes query rows of %s, but those of %s from slot %s",
                     wanted, found, name_of(at, region));
            return false;
        }
        if (family != LH_FAMILY_PLAIN &&
            cell->set != lh_symbolic_complete_number(cover, family, rows.segment)) {
            g_autofree char *text = lh_symbolic_rows_text(cover, rows);

            COVERAGE(at->op, region->slot, "takes slot %s for %s before it is complete",
                     name_of(at, region), text);
            return false;
        }
    }
    return true;
}

static const char *
block_text(LhBlock block, char *buffer, size_t size)
{
    if (block.kind == LH_MASK_FULL)
        return "every pair";
    if (block.kind == LH_MASK_EMPTY)
        return "no pair";
    if (block.kind == LH_MASK_POSITIONS)
        return "some pairs";
    g_snprintf(buffer, (gulong)size, "the causal pairs shifted by %d", (int)block.shift);
    return buffer;
}

/* Checks that the op's mask on segments (q, k) is the program's. */
static bool
check_block(const Attend *at, LhBlock claimed, uint32_t q, uint32_t k)
{
    LhSymbolicExec *cover = at->cover;
    const LhBlock truth = lh_symbolic_block(cover, q, k);
    char claimed_buffer[64], truth_buffer[64];

    if (claimed.kind == truth.kind &&
        (claimed.kind != LH_MASK_CAUSAL || claimed.shift == truth.shift))
        return true;
    COVERAGE(at->op, at->kv->slot,
             "computes %s of query segment %u with key segment %u, where the mask has %s",
             block_text(claimed, claimed_buffer, sizeof(claimed_buffer)), q, k,
             block_text(truth, truth_buffer, sizeof(truth_buffer)));
    return false;
}

static bool
attend_pair(const Attend *at, uint32_t a, uint32_t b)
{
    LhSymbolicExec *cover = at->cover;
    const LhHolding q = cell_of(at, at->q, a)->rows;
    const LhHolding k = cell_of(at, at->kv, b)->rows;
    const LhBlock claimed = claimed_block(at, a, b);

    if (lh_symbolic_kv_slice(cover, q.slice) != k.slice) {
        COVERAGE(at->op, at->kv->slot,
                 "attends with slice %u of the query heads to slice %u of the key-value heads; "
                 "needed: slice %u",
                 q.slice, k.slice, lh_symbolic_kv_slice(cover, q.slice));
        return false;
    }
    if (claimed.kind == LH_MASK_EMPTY)
        return true;
    if (!check_block(at, claimed, q.segment, k.segment))
        return false;
    cover->proof->verdict->pairs_checked += claimed.pairs;
    for (const LhRegion *acc = at->acc; acc < at->acc_end; acc++) {
        if (!lh_symbolic_contribute(cover, at->op, acc, cell_of(at, acc, a), k.segment))
            return false;
    }
    return at->dkv == NULL ||
           lh_symbolic_contribute(cover, at->op, at->dkv, cell_of(at, at->dkv, b),
                                  lh_symbolic_source(cover, LH_FAMILY_DKV, q));
}

/* ---- many pairs at once ---- */

/* Collects the contributions of a region's parts (queries or keys) in a set. Returns false if
 * two are the same, or if one belongs to another slice of the key-value heads than @slice. */
static bool
gather_sources(const Attend *at, const LhRegion *region, LhFamily family, uint32_t slice,
               uint64_t *set)
{
    LhSymbolicExec *cover = at->cover;
    const bool queries = region == at->q;

    memset(set, 0, cover->words * 8);
    for (uint32_t i = 0; i < region->count; i++) {
        const LhHolding rows = cell_of(at, region, i)->rows;
        const uint32_t source = lh_symbolic_source(cover, family, rows);

        if ((queries ? lh_symbolic_kv_slice(cover, rows.slice) : rows.slice) != slice ||
            lh_set_has(set, source))
            return false;
        lh_set_add(set, source);
    }
    return true;
}

/* Whether @a is a subset of @b; whether they are disjoint. NULL: the full set. */
static bool
lies_within(const LhSymbolicExec *cover, const uint64_t *a, const uint64_t *b)
{
    for (uint32_t w = 0; w < cover->words; w++) {
        if ((a[w] & ~b[w]) != 0)
            return false;
    }
    return true;
}

static bool
is_apart(const LhSymbolicExec *cover, const uint64_t *a, const uint64_t *b)
{
    for (uint32_t w = 0; w < cover->words; w++) {
        if ((a[w] & b[w]) != 0)
            return false;
    }
    return true;
}

/* Calls @use for every part of one operand with the set of contributions that the call claims
 * for it from the other operand; @all is the set of them all. Returns false as soon as @use
 * does. */
static bool
for_every_row(const Attend *at, bool of_queries, const uint64_t *all, uint64_t *claimed,
              bool (*use)(const Attend *at, uint32_t i, const uint64_t *claimed))
{
    const LhSymbolicExec *cover = at->cover;
    const LhRegion *region = of_queries ? at->q : at->kv, *other = of_queries ? at->kv : at->q;
    const LhFamily family = of_queries ? LH_FAMILY_PLAIN : LH_FAMILY_DKV;
    const bool causal = at->args->mask == LH_MASK_CAUSAL;

    memcpy(claimed, all, cover->words * 8);
    if (causal && of_queries)
        memset(claimed, 0, cover->words * 8);
    for (uint32_t i = 0; i < region->count; i++) {
        const LhHolding rows = cell_of(at, region, i)->rows;
        const uint32_t own =
            causal ? lh_symbolic_source(cover, family, cell_of(at, other, i)->rows) : 0;
        const uint64_t *want = of_queries ? &cover->keys_of[(size_t)rows.segment * cover->words]
                                          : &cover->queries_of[(size_t)rows.segment * cover->words];

        for (uint32_t w = 0; at->args->mask == LH_MASK_POSITIONS && w < cover->words; w++)
            claimed[w] = all[w] & want[w];
        /* Queries attend to the keys up to their own place; keys get the queries from there on. */
        if (causal && of_queries && at->at.kind != LH_MASK_EMPTY)
            lh_set_add(claimed, own);
        if (causal && !of_queries && at->at.kind == LH_MASK_EMPTY)
            lh_set_remove(claimed, own);
        if (!use(at, i, claimed))
            return false;
        if (causal && of_queries)
            lh_set_add(claimed, own);
        else if (causal)
            lh_set_remove(claimed, own);
    }
    return true;
}

/* Checks that every pair claimed for query part @i belongs to the program and is new to it. */
static bool
row_is_right(const Attend *at, uint32_t i, const uint64_t *claimed)
{
    const LhSymbolicExec *cover = at->cover;
    const uint32_t q = cell_of(at, at->q, i)->rows.segment;
    const uint64_t *all_of = &cover->all_of[(size_t)q * cover->words];
    const bool causal = at->args->mask == LH_MASK_CAUSAL && at->at.kind != LH_MASK_EMPTY;
    const uint32_t own = causal ? cell_of(at, at->kv, i)->rows.segment : 0;
    LhBlock truth;

    for (const LhRegion *acc = at->acc; acc < at->acc_end; acc++) {
        if (!is_apart(cover, lh_symbolic_set(cover, cell_of(at, acc, i)), claimed))
            return false;
    }
    if (at->args->mask == LH_MASK_POSITIONS)
        return true;
    if (!causal)
        return lies_within(cover, claimed, all_of);
    truth = lh_symbolic_block(cover, q, own);
    if (truth.kind != at->at.kind || truth.shift != at->at.shift)
        return false;
    for (uint32_t w = 0; w < cover->words; w++) {
        const uint64_t diagonal = w == own / 64 ? UINT64_C(1) << own % 64 : 0;

        if ((claimed[w] & ~all_of[w] & ~diagonal) != 0)
            return false;
    }
    return true;
}

static bool
column_is_right(const Attend *at, uint32_t i, const uint64_t *claimed)
{
    return is_apart(at->cover, lh_symbolic_set(at->cover, cell_of(at, at->dkv, i)), claimed);
}

static bool
add_row(const Attend *at, uint32_t i, const uint64_t *claimed)
{
    for (const LhRegion *acc = at->acc; acc < at->acc_end; acc++)
        lh_symbolic_add_set(at->cover, cell_of(at, acc, i), claimed);
    return true;
}

static bool
add_column(const Attend *at, uint32_t i, const uint64_t *claimed)
{
    lh_symbolic_add_set(at->cover, cell_of(at, at->dkv, i), claimed);
    return true;
}

/*
 * Applies attend_pair() to all pairs at once, by sets, if all of them are correct. Otherwise it
 * does nothing, and the pairs are checked one by one to find the error.
 */
static bool
attend_at_once(const Attend *at)
{
    LhSymbolicExec *cover = at->cover;
    uint64_t *keys = lh_symbolic_scratch(cover, 0);
    uint64_t *queries = lh_symbolic_scratch(cover, 1);
    uint64_t *claimed = lh_symbolic_scratch(cover, 2);
    const uint32_t slice = cell_of(at, at->kv, 0)->rows.slice;

    if (!gather_sources(at, at->kv, LH_FAMILY_PLAIN, slice, keys) ||
        !gather_sources(at, at->q, LH_FAMILY_DKV, slice, queries) ||
        !for_every_row(at, true, keys, claimed, row_is_right) ||
        (at->dkv != NULL && !for_every_row(at, false, queries, claimed, column_is_right)))
        return false;
    cover->proof->verdict->pairs_checked += at->args->pairs;
    for_every_row(at, true, keys, claimed, add_row);
    if (at->dkv != NULL)
        for_every_row(at, false, queries, claimed, add_column);
    return true;
}

static bool
attend(Attend *at)
{
    lh_symbolic_start(at->cover, at->op);
    claim_blocks(at);
    if (!check_counts(at) || !check_positions(at) || !check_pairs(at) || !open_accumulators(at))
        return false;
    for (uint32_t a = 0; a < at->q->count; a++) {
        const LhCell *q = lh_symbolic_read_rows(at->cover, at->op, at->q, a);

        if (q == NULL || !check_stats(at, a, q->rows))
            return false;
    }
    for (uint32_t b = 0; b < at->kv->count; b++) {
        if (lh_symbolic_read_rows(at->cover, at->op, at->kv, b) == NULL)
            return false;
    }
    if (at->args->mask != LH_MASK_EMPTY && attend_at_once(at))
        return true;
    for (uint32_t a = 0; a < at->q->count; a++) {
        for (uint32_t b = 0; b < at->kv->count; b++) {
            if (!attend_pair(at, a, b))
                return false;
        }
    }
    return true;
}

static void
list_blocks(const Attend *at)
{
    for (uint32_t a = 0; a < at->q->count; a++) {
        for (uint32_t b = 0; b < at->kv->count; b++)
            lh_symbolic_list_block(at->cover, at->op, cell_of(at, at->q, a)->rows,
                                   cell_of(at, at->kv, b)->rows.segment);
    }
}

bool
lh_symbolic_attend(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *regions = op->compute.regions;
    Attend at = { .cover = cover,
                  .op = g,
                  .args = &op->compute.args,
                  .q = &regions[0],
                  .kv = &regions[1],
                  .acc = &regions[2],
                  .acc_end = &regions[op->compute.regions_count] };

    g_assert(op->compute.regions_count >= 3);
    if (!attend(&at))
        return false;
    if (cover->proof->blocks != NULL)
        list_blocks(&at);
    /* A target that is only written stands alone and is normalised. */
    for (const LhRegion *acc = at.acc; acc < at.acc_end; acc++) {
        const bool alone = lh_proof_kernel(op)->operands[acc - regions].access == LH_OPERAND_WRITE;

        for (uint32_t k = 0; k < acc->count; k++)
            cell_of(&at, acc, k)->ended = alone;
    }
    return true;
}

bool
lh_symbolic_attend_grad(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *regions = op->compute.regions;
    const uint32_t n = op->compute.regions_count;
    Attend at = { .cover = cover,
                  .op = g,
                  .args = &op->compute.args,
                  .q = &regions[0],
                  .kv = &regions[n - 3],
                  .stats = &regions[1],
                  .stats_end = &regions[n - 3],
                  .acc = &regions[n - 2],
                  .acc_end = &regions[n - 1],
                  .dkv = &regions[n - 1] };

    g_assert(n >= 5);
    return attend(&at);
}
