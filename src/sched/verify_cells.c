/*
 * Reading and writing symbolic contents, and what the mask says that results must contain.
 */
#include "sched/verify_cover.h"

const LhFamily lh_families[LH_TENSOR_KINDS] = {
    [LH_TENSOR_ACC] = LH_FAMILY_OUTPUT,  [LH_TENSOR_O] = LH_FAMILY_OUTPUT,
    [LH_TENSOR_LSE] = LH_FAMILY_OUTPUT,  [LH_TENSOR_DELTA] = LH_FAMILY_OUTPUT,
    [LH_TENSOR_DQ] = LH_FAMILY_DQ,       [LH_TENSOR_DKV] = LH_FAMILY_DKV,
    [LH_TENSOR_STATE] = LH_FAMILY_STATE, [LH_TENSOR_DSTATE] = LH_FAMILY_DSTATE,
};

const uint64_t *
lh_cover_complete(const LhCover *cover, LhFamily family, uint32_t row)
{
    return &(family == LH_FAMILY_DKV ? cover->queries_of
                                     : cover->keys_of)[(size_t)row * cover->words];
}

LhBlock
lh_cover_normalise(LhMaskKind kind, int64_t shift, uint64_t rows)
{
    LhBlock block = { .kind = kind, .pairs = kind == LH_MASK_FULL ? rows * rows : 0 };

    if (kind != LH_MASK_CAUSAL)
        return block;
    block.pairs = lh_causal_pairs(rows, rows, shift);
    if (block.pairs == 0)
        block.kind = LH_MASK_EMPTY;
    else if (block.pairs == rows * rows)
        block.kind = LH_MASK_FULL;
    else
        block.shift = shift;
    return block;
}

LhBlock
lh_cover_block(const LhCover *cover, uint32_t q, uint32_t k)
{
    const LhBlock block =
        lh_block(cover->segment[q], cover->segment[k], &cover->proof->program->params.mask);

    return lh_cover_normalise(block.kind, block.shift, cover->rows);
}

/* The last alloc of a slot before @op, or LH_NONE. */
static uint32_t
last_alloc(const LhCover *cover, uint32_t op, uint32_t slot)
{
    const size_t key =
        (size_t)cover->proof->op_rank[op] * cover->proof->program->slots_count + slot;
    uint32_t low = cover->alloc_first[key];
    uint32_t high = cover->alloc_first[key + 1];
    const uint32_t first = low;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (cover->allocs[middle] < op)
            low = middle + 1;
        else
            high = middle;
    }
    return low == first ? LH_NONE : cover->allocs[low - 1];
}

LhCell *
lh_cover_read(LhCover *cover, uint32_t op, const LhRegion *region, uint32_t i)
{
    const uint32_t part = region->part + i;
    LhCell *cell = lh_cover_cell(cover, cover->proof->op_rank[op], region->slot, part);
    bool stale = cell->state == LH_CELL_UNDEFINED;

    if (!stale && cover->slots[region->slot].role == LH_SLOT_TEMP) {
        const uint32_t alloc = last_alloc(cover, op, region->slot);

        stale = alloc != LH_NONE && cell->writer < alloc;
    }
    if (stale) {
        g_autofree char *name = lh_proof_cell_text(cover->proof, region->slot, part);

        COVERAGE(op, region->slot, "reads slot %s, into which nothing has been written", name);
        cell->state = LH_CELL_SUSPECT;
        cell->writer = op;
        return NULL;
    }
    return cell->state == LH_CELL_SUSPECT ? NULL : cell;
}

LhCell *
lh_cover_read_rows(LhCover *cover, uint32_t op, const LhRegion *region, uint32_t i)
{
    LhCell *cell = lh_cover_read(cover, op, region, i);

    if (cell == NULL || cell->row < LH_ROW_NONE)
        return cell;
    COVERAGE(op, region->slot,
             "needs the rows of some segment in slot %s, which holds none in particular",
             cover->slots[region->slot].name);
    return NULL;
}

LhCell *
lh_cover_write(LhCover *cover, uint32_t op, const LhRegion *region, uint32_t i, uint32_t row)
{
    LhCell *cell = lh_cover_cell(cover, cover->proof->op_rank[op], region->slot, region->part + i);

    *cell = (LhCell){ .row = row, .writer = op, .state = LH_CELL_DEFINED };
    memset(lh_cover_set(cover, cell), 0, cover->words * 8);
    return cell;
}

bool
lh_cover_merge(LhCover *cover, uint32_t op, const LhRegion *target, const LhCell *into,
               const LhCell *from)
{
    uint64_t *set = lh_cover_set(cover, into);
    const uint64_t *other = lh_cover_set(cover, from);

    for (uint32_t w = 0; w < cover->words; w++) {
        const uint64_t twice = set[w] & other[w];

        if (twice != 0) {
            COVERAGE(op, target->slot,
                     "adds segment %u to the rows of segment %u in slot %s a second time",
                     w * 64 + (uint32_t)__builtin_ctzll(twice), into->row,
                     cover->slots[target->slot].name);
            return false;
        }
    }
    for (uint32_t w = 0; w < cover->words; w++)
        set[w] |= other[w];
    return true;
}
