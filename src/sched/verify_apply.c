/*
 * The effects of compute ops on symbolic contents: one rule for each LhEffect. A rule that finds
 * something wrong leaves what it writes suspect, so that one mistake is reported once and not again
 * by every op after it.
 */
#include "sched/verify_cover.h"

#include <string.h>

static void
suspect(LhCover *cover, uint32_t op, const LhRegion *region)
{
    for (uint32_t i = 0; i < region->count; i++)
        lh_cover_write(cover, op, region, i, LH_ROW_NONE)->state = LH_CELL_SUSPECT;
}

/* Whatever a compute op writes is suspect. */
static void
suspect_all(LhCover *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        if (lh_proof_kernel(op)->operands[i].access != LH_OPERAND_READ)
            suspect(cover, g, &op->compute.regions[i]);
    }
}

/* Accumulators that the op starts anew are empty before it does anything else. */
static void
start_accumulators(LhCover *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        const LhRegion *region = &op->compute.regions[i];

        for (uint32_t k = 0; lh_proof_overwrites(op, i) && k < region->count; k++)
            lh_cover_write(cover, g, region, k, LH_ROW_ANY);
    }
}

/* An accumulator about to take contributions to the rows of @row; NULL if it cannot. */
static LhCell *
open_accumulator(LhCover *cover, uint32_t g, const LhRegion *region, uint32_t i, uint32_t row)
{
    LhCell *cell = lh_cover_read(cover, g, region, i);

    if (cell == NULL)
        return NULL;
    if (cell->row == LH_ROW_ANY)
        cell->row = row;
    if (cell->row != row) {
        COVERAGE(g, region->slot,
                 "adds rows of segment %u to slot %s, which holds rows of segment %u", row,
                 cover->slots[region->slot].name, cell->row);
        return NULL;
    }
    cell->writer = g;
    return cell;
}

/* The block of part pair (a, b) of an op whose mask applies to the parts laid end to end. */
static LhBlock
claimed_block(const LhCover *cover, const LhKernelArgs *args, uint32_t a, uint32_t b)
{
    if (args->mask == LH_MASK_CAUSAL && a == b)
        return lh_cover_normalise(LH_MASK_CAUSAL, args->shift, cover->rows);
    if (args->mask == LH_MASK_FULL || (args->mask == LH_MASK_CAUSAL && a > b))
        return lh_cover_normalise(LH_MASK_FULL, 0, cover->rows);
    return lh_cover_normalise(LH_MASK_EMPTY, 0, cover->rows);
}

static const char *
block_text(LhBlock block, char *buffer, size_t size)
{
    if (block.kind == LH_MASK_FULL)
        return "every pair";
    if (block.kind == LH_MASK_EMPTY)
        return "no pair";
    g_snprintf(buffer, (gulong)size, "the causal pairs shifted by %d", (int)block.shift);
    return buffer;
}

/* Adds one contribution to an accumulator; repeated ones are findings. */
static bool
contribute(LhCover *cover, uint32_t g, const LhRegion *region, const LhCell *cell, uint32_t segment)
{
    uint64_t *set = lh_cover_set(cover, cell);

    if (lh_set_has(set, segment)) {
        COVERAGE(g, region->slot,
                 "adds segment %u to the rows of segment %u in slot %s a second time", segment,
                 cell->row, cover->slots[region->slot].name);
        return false;
    }
    lh_set_add(set, segment);
    return true;
}

/* Whether the op's mask on (q, k) is the program's. */
static bool
check_block(LhCover *cover, uint32_t g, const LhRegion *kv, LhBlock claimed, uint32_t q, uint32_t k)
{
    const LhBlock truth = lh_cover_block(cover, q, k);
    char claimed_buffer[64], truth_buffer[64];

    if (claimed.kind == truth.kind &&
        (claimed.kind != LH_MASK_CAUSAL || claimed.shift == truth.shift))
        return true;
    COVERAGE(g, kv->slot,
             "computes %s of query segment %u with key segment %u, where the mask has %s",
             block_text(claimed, claimed_buffer, sizeof(claimed_buffer)), q, k,
             block_text(truth, truth_buffer, sizeof(truth_buffer)));
    return false;
}

/* Which operands of an attention kernel are what; operand 0 is always q. */
typedef struct {
    uint32_t stats_first, stats_end; /* do and the row statistics */
    uint32_t kv;
    uint32_t acc_first, acc_end; /* what accumulates over the keys, by query row: acc, or o, lse, or
                                    dq */
    uint32_t dkv;                /* 0: none */
} Roles;

static bool
check_shape(LhCover *cover, uint32_t g, const Roles *roles)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhKernelArgs *args = &op->compute.args;
    const LhRegion *regions = op->compute.regions;
    const LhRegion *q = &regions[0];
    const LhRegion *kv = &regions[roles->kv];
    uint64_t pairs = 0;

    for (uint32_t i = 1; i < op->compute.regions_count; i++) {
        const LhRegion *like = i == roles->kv || i == roles->dkv ? kv : q;

        if (regions[i].count != like->count) {
            COVERAGE(g, regions[i].slot, "takes %u parts of slot %s beside %u of slot %s",
                     regions[i].count, cover->slots[regions[i].slot].name, like->count,
                     cover->slots[like->slot].name);
            return false;
        }
    }
    if (args->mask == LH_MASK_CAUSAL && q->count != kv->count) {
        COVERAGE(g, kv->slot, "has a causal mask over %u query parts and %u key parts", q->count,
                 kv->count);
        return false;
    }
    for (uint32_t a = 0; a < q->count; a++) {
        for (uint32_t b = 0; b < kv->count; b++)
            pairs += claimed_block(cover, args, a, b).pairs;
    }
    if (args->nq == q->count * cover->rows && args->nk == kv->count * cover->rows &&
        args->pairs == pairs)
        return true;
    COVERAGE(g, q->slot,
             "is called for %" G_GUINT64_FORMAT " queries, %" G_GUINT64_FORMAT
             " keys and %" G_GUINT64_FORMAT " pairs, but its operands have %" G_GUINT64_FORMAT
             ", %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT,
             args->nq, args->nk, args->pairs, q->count * cover->rows, kv->count * cover->rows,
             pairs);
    return false;
}

/* do and the statistics of part @a must be of the query rows; a statistic must be final. */
static bool
check_stats(LhCover *cover, uint32_t g, const Roles *roles, uint32_t a, uint32_t row)
{
    const LhOp *op = &cover->proof->ops[g];

    for (uint32_t i = roles->stats_first; i < roles->stats_end; i++) {
        const LhRegion *region = &op->compute.regions[i];
        const LhCell *cell = lh_cover_read_rows(cover, g, region, a);
        const LhFamily family = lh_families[cover->slots[region->slot].kind];

        if (cell == NULL)
            return false;
        if (cell->row != row) {
            COVERAGE(g, region->slot,
                     "takes query rows of segment %u, but those of segment %u from slot %s", row,
                     cell->row, cover->slots[region->slot].name);
            return false;
        }
        if (family != LH_FAMILY_PLAIN &&
            memcmp(lh_cover_set(cover, cell), lh_cover_complete(cover, family, row),
                   cover->words * 8) != 0) {
            COVERAGE(g, region->slot, "takes slot %s for segment %u before it is complete",
                     cover->slots[region->slot].name, row);
            return false;
        }
    }
    return true;
}

/* All cells that one part pair of an attention op touches. */
typedef struct {
    const LhCell *q, *kv;
    const LhCell *acc[LH_KERNEL_OPERANDS_MAX]; /* by operand */
    const LhCell *dkv;                         /* NULL: none */
} PairCells;

static bool
attend_pair(LhCover *cover, uint32_t g, const Roles *roles, const PairCells *cells, LhBlock claimed)
{
    const LhRegion *regions = cover->proof->ops[g].compute.regions;
    const uint32_t q = cells->q->row;
    const uint32_t k = cells->kv->row;

    if (claimed.kind == LH_MASK_EMPTY)
        return true;
    if (!check_block(cover, g, &regions[roles->kv], claimed, q, k))
        return false;
    cover->proof->verdict->pairs_checked += claimed.pairs;
    for (uint32_t i = roles->acc_first; i < roles->acc_end; i++) {
        if (!contribute(cover, g, &regions[i], cells->acc[i], k))
            return false;
    }
    return cells->dkv == NULL || contribute(cover, g, &regions[roles->dkv], cells->dkv, q);
}

/* Opens the accumulator @operand for all its parts, whose rows are those of operand @like. */
static bool
open_all(LhCover *cover, uint32_t g, uint32_t operand, uint32_t like)
{
    const LhRegion *regions = cover->proof->ops[g].compute.regions;

    for (uint32_t i = 0; i < regions[operand].count; i++) {
        const LhCell *rows = lh_cover_read_rows(cover, g, &regions[like], i);
        const LhCell *cell =
            rows == NULL ? NULL : open_accumulator(cover, g, &regions[operand], i, rows->row);

        if (cell == NULL)
            return false;
        if (cell->ended) {
            COVERAGE(g, regions[operand].slot,
                     "adds to slot %s, which already holds a finished result",
                     cover->slots[regions[operand].slot].name);
            return false;
        }
    }
    return true;
}

static bool
open_accumulators(LhCover *cover, uint32_t g, const Roles *roles)
{
    for (uint32_t i = roles->acc_first; i < roles->acc_end; i++) {
        if (!open_all(cover, g, i, 0))
            return false;
    }
    return roles->dkv == 0 || open_all(cover, g, roles->dkv, roles->kv);
}

static bool
attend(LhCover *cover, uint32_t g, const Roles *roles)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *regions = op->compute.regions;
    const uint32_t rank = cover->proof->op_rank[g];

    start_accumulators(cover, g);
    if (!check_shape(cover, g, roles) || !open_accumulators(cover, g, roles))
        return false;
    for (uint32_t a = 0; a < regions[0].count; a++) {
        PairCells cells = { .q = lh_cover_read_rows(cover, g, &regions[0], a) };

        if (cells.q == NULL || !check_stats(cover, g, roles, a, cells.q->row))
            return false;
        for (uint32_t i = roles->acc_first; i < roles->acc_end; i++)
            cells.acc[i] = lh_cover_cell(cover, rank, regions[i].slot, regions[i].part + a);
        for (uint32_t b = 0; b < regions[roles->kv].count; b++) {
            cells.kv = lh_cover_read_rows(cover, g, &regions[roles->kv], b);
            if (cells.kv == NULL)
                return false;
            if (roles->dkv != 0)
                cells.dkv = lh_cover_cell(cover, rank, regions[roles->dkv].slot,
                                          regions[roles->dkv].part + b);
            if (!attend_pair(cover, g, roles, &cells,
                             claimed_block(cover, &op->compute.args, a, b)))
                return false;
        }
    }
    return true;
}

static bool
apply_attend(LhCover *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const uint32_t rank = cover->proof->op_rank[g];
    const Roles roles = { .kv = 1, .acc_first = 2, .acc_end = op->compute.regions_count };

    g_assert(op->compute.regions_count >= 3);
    if (!attend(cover, g, &roles))
        return false;
    /* What is only ever written stands alone, and is normalised. */
    for (uint32_t i = roles.acc_first; i < roles.acc_end; i++) {
        const LhRegion *acc = &op->compute.regions[i];
        const bool alone = lh_proof_kernel(op)->operands[i].access == LH_OPERAND_WRITE;

        for (uint32_t k = 0; k < acc->count; k++)
            lh_cover_cell(cover, rank, acc->slot, acc->part + k)->ended =
                op->compute.args.last || alone;
    }
    return true;
}

static bool
apply_attend_grad(LhCover *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const uint32_t n = op->compute.regions_count;
    const Roles roles = { .stats_first = 1,
                          .stats_end = n - 3,
                          .kv = n - 3,
                          .acc_first = n - 2,
                          .acc_end = n - 1,
                          .dkv = n - 1 };

    g_assert(n >= 5);
    return attend(cover, g, &roles);
}

/* Adds part @i of a source to the target. What is normalised adds up only with what is, too. */
static bool
add_part(LhCover *cover, uint32_t g, const LhRegion *source, const LhRegion *target, uint32_t i)
{
    const LhCell *from = lh_cover_read(cover, g, source, i);
    LhCell *into = lh_cover_cell(cover, cover->proof->op_rank[g], target->slot, target->part + i);
    const bool fresh = into->row == LH_ROW_ANY;

    if (from == NULL)
        return false;
    if (from->row == LH_ROW_ANY)
        return true;
    if (from->row == LH_ROW_NONE || (!fresh && into->ended != from->ended)) {
        COVERAGE(g, source->slot, "cannot add slot %s to slot %s: one of them holds no partial sum",
                 cover->slots[source->slot].name, cover->slots[target->slot].name);
        return false;
    }
    into = open_accumulator(cover, g, target, i, from->row);
    if (into == NULL)
        return false;
    into->ended = from->ended;
    return lh_cover_merge(cover, g, target, into, from);
}

/* Elementwise kernels say how many rows they work on: key rows of k, v and their gradients, else
 * query rows. */
static bool
check_rows(LhCover *cover, uint32_t g, uint32_t operand)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *region = &op->compute.regions[operand];
    const LhTensorKind kind = cover->slots[region->slot].kind;
    const bool keys = kind == LH_TENSOR_KV || kind == LH_TENSOR_DKV;
    const uint64_t rows = region->count * cover->rows;

    if (op->compute.args.nq == (keys ? 0 : rows) && op->compute.args.nk == (keys ? rows : 0))
        return true;
    COVERAGE(g, region->slot,
             "is called for %" G_GUINT64_FORMAT " query and %" G_GUINT64_FORMAT
             " key rows, but slot %s has %" G_GUINT64_FORMAT " rows of %s there",
             op->compute.args.nq, op->compute.args.nk, cover->slots[region->slot].name, rows,
             lh_tensor_names[kind]);
    return false;
}

static bool
check_counts(LhCover *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *target = &op->compute.regions[op->compute.regions_count - 1];

    for (uint32_t i = 0; i + 1 < op->compute.regions_count; i++) {
        const LhRegion *region = &op->compute.regions[i];

        if (region->count != target->count) {
            COVERAGE(g, region->slot, "takes %u parts of slot %s beside %u of slot %s",
                     region->count, cover->slots[region->slot].name, target->count,
                     cover->slots[target->slot].name);
            return false;
        }
    }
    return check_rows(cover, g, op->compute.regions_count - 1u);
}

static bool
apply_add(LhCover *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const uint32_t last = op->compute.regions_count - 1u;
    const LhRegion *target = &op->compute.regions[last];
    const LhTensorKind kind = cover->slots[target->slot].kind;

    start_accumulators(cover, g);
    if (lh_families[kind] == LH_FAMILY_PLAIN) {
        COVERAGE(g, target->slot, "adds up slot %s (%s), which is no sum",
                 cover->slots[target->slot].name, lh_tensor_names[kind]);
        return false;
    }
    if (!check_counts(cover, g))
        return false;
    for (uint32_t source = 0; source < last; source++) {
        for (uint32_t i = 0; i < target->count; i++) {
            if (!add_part(cover, g, &op->compute.regions[source], target, i))
                return false;
        }
    }
    return true;
}

/* What the sources of one part agree on. */
typedef struct {
    const LhCell *rows;     /* any source */
    const LhCell *coverage; /* a source that is a result, or NULL */
    LhFamily family;        /* of that one */
} Origin;

static bool
join_origin(LhCover *cover, uint32_t g, const LhRegion *region, uint32_t i, Origin *origin)
{
    const char *name = cover->slots[region->slot].name;
    const LhFamily family = lh_families[cover->slots[region->slot].kind];
    const LhCell *cell = lh_cover_read_rows(cover, g, region, i);

    if (cell == NULL)
        return false;
    if (origin->rows != NULL && origin->rows->row != cell->row) {
        COVERAGE(g, region->slot, "takes rows of segment %u from slot %s beside rows of segment %u",
                 cell->row, name, origin->rows->row);
        return false;
    }
    origin->rows = cell;
    if (family == LH_FAMILY_PLAIN)
        return true;
    if (origin->coverage != NULL &&
        (origin->family != family || memcmp(lh_cover_set(cover, origin->coverage),
                                            lh_cover_set(cover, cell), cover->words * 8) != 0)) {
        COVERAGE(g, region->slot,
                 "takes slot %s, which has other contributions than its other operands", name);
        return false;
    }
    origin->coverage = cell;
    origin->family = family;
    return true;
}

/* Part @i of every target holds what the sources cover. */
static bool
derive_part(LhCover *cover, uint32_t g, uint32_t i)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);
    Origin origin = { .family = LH_FAMILY_PLAIN };
    LhCell copy;

    for (uint32_t k = 0; k < op->compute.regions_count; k++) {
        if (kernel->operands[k].access == LH_OPERAND_READ &&
            !join_origin(cover, g, &op->compute.regions[k], i, &origin))
            return false;
    }
    if (origin.rows == NULL)
        return false;
    copy = *origin.rows;
    for (uint32_t k = 0; k < op->compute.regions_count; k++) {
        const LhRegion *region = &op->compute.regions[k];
        const LhFamily family = lh_families[cover->slots[region->slot].kind];
        LhCell *cell;

        if (kernel->operands[k].access == LH_OPERAND_READ)
            continue;
        g_assert(family == origin.family); /* or the kernel's row makes no sense */
        /* In place the contents stay as they are. */
        cell = lh_cover_cell(cover, cover->proof->op_rank[g], region->slot, region->part + i);
        if (cell == origin.rows || (origin.coverage != NULL && cell == origin.coverage)) {
            cell->writer = g;
            continue;
        }
        cell = lh_cover_write(cover, g, region, i, copy.row);
        cell->ended = copy.ended;
        if (origin.coverage != NULL)
            memcpy(lh_cover_set(cover, cell), lh_cover_set(cover, origin.coverage),
                   cover->words * 8);
    }
    return true;
}

static bool
apply_derive(LhCover *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *target = &op->compute.regions[op->compute.regions_count - 1];

    if (!check_counts(cover, g))
        return false;
    for (uint32_t i = 0; i < target->count; i++) {
        if (!derive_part(cover, g, i))
            return false;
    }
    return true;
}

static bool
apply_zero(LhCover *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        for (uint32_t k = 0; k < op->compute.regions[i].count; k++)
            lh_cover_write(cover, g, &op->compute.regions[i], k, LH_ROW_ANY);
    }
    return check_counts(cover, g);
}

static bool
apply_opaque(LhCover *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        for (uint32_t k = 0; k < op->compute.regions[i].count; k++) {
            if (!lh_proof_overwrites(op, i) &&
                lh_cover_read(cover, g, &op->compute.regions[i], k) == NULL)
                return false;
        }
    }
    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        for (uint32_t k = 0; k < op->compute.regions[i].count; k++) {
            if (lh_proof_kernel(op)->operands[i].access != LH_OPERAND_READ)
                lh_cover_write(cover, g, &op->compute.regions[i], k, LH_ROW_NONE);
        }
    }
    return true;
}

void
lh_cover_apply(LhCover *cover, uint32_t g)
{
    static bool (*const apply[])(LhCover * cover, uint32_t g) = {
        [LH_EFFECT_ATTEND] = apply_attend, [LH_EFFECT_ATTEND_GRAD] = apply_attend_grad,
        [LH_EFFECT_ADD] = apply_add,       [LH_EFFECT_DERIVE] = apply_derive,
        [LH_EFFECT_ZERO] = apply_zero,     [LH_EFFECT_OPAQUE] = apply_opaque,
    };

    if (!apply[lh_proof_kernel(&cover->proof->ops[g])->effect](cover, g))
        suspect_all(cover, g);
}
