/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing symbolic contents, and the results that the mask requires.
 */
#include "verify/symbolic_cells.h"

#include "verify/alloc_times.h"
#include "verify/layer_boundary.h"

#include <string.h>

const LhFamily lh_families[LH_TENSOR_KINDS] = {
    [LH_TENSOR_ACC] = LH_FAMILY_OUTPUT,    [LH_TENSOR_OUT] = LH_FAMILY_OUTPUT,
    [LH_TENSOR_O] = LH_FAMILY_OUTPUT,      [LH_TENSOR_LSE] = LH_FAMILY_OUTPUT,
    [LH_TENSOR_DELTA] = LH_FAMILY_OUTPUT,  [LH_TENSOR_DQ] = LH_FAMILY_DQ,
    [LH_TENSOR_DKV] = LH_FAMILY_DKV,       [LH_TENSOR_STATE] = LH_FAMILY_STATE,
    [LH_TENSOR_DSTATE] = LH_FAMILY_DSTATE, [LH_TENSOR_DK] = LH_FAMILY_DKV,
    [LH_TENSOR_DV] = LH_FAMILY_DKV,        [LH_TENSOR_SCORES] = LH_FAMILY_SCORES,
    [LH_TENSOR_PROBS] = LH_FAMILY_SCORES,  [LH_TENSOR_DSCORES] = LH_FAMILY_SCORES,
};

char *
lh_symbolic_rows_text(const LhSymbolicExec *cover, LhHolding rows)
{
    if (rows.segment >= LH_ROW_NONE)
        return g_strdup("no segment in particular");
    if (cover->proof->program->head_slices <= 1)
        return g_strdup_printf("segment %u", rows.segment);
    return g_strdup_printf("slice %u of segment %u", rows.slice, rows.segment);
}

char *
lh_symbolic_source_text(const LhSymbolicExec *cover, LhFamily family, uint32_t source,
                        uint32_t slice)
{
    const uint32_t replicas = cover->replicas;

    if (family != LH_FAMILY_DKV || replicas == 1)
        return g_strdup_printf("segment %u", source);
    return g_strdup_printf("slice %u of segment %u", slice * replicas + source % replicas,
                           source / replicas);
}

/* Which contributions a family requires: of keys, of queries, or of the keys before a border. */
static unsigned
required_of(LhFamily family)
{
    return family == LH_FAMILY_DKV || family == LH_FAMILY_DSTATE ? 1
           : family == LH_FAMILY_STATE                           ? 2
                                                                 : 0;
}

const uint64_t *
lh_symbolic_complete(const LhSymbolicExec *cover, LhFamily family, uint32_t segment)
{
    const uint64_t *sets[] = { cover->keys_of, cover->queries_of, cover->before };

    return &sets[required_of(family)][(size_t)segment * cover->words];
}

uint32_t
lh_symbolic_complete_number(const LhSymbolicExec *cover, LhFamily family, uint32_t segment)
{
    return cover->complete[(size_t)required_of(family) * cover->segments + segment];
}

void
lh_symbolic_number_complete(LhSymbolicExec *cover)
{
    const uint64_t *sets[] = { cover->keys_of, cover->queries_of, cover->before };

    cover->complete = g_new(uint32_t, G_N_ELEMENTS(sets) * (size_t)cover->segments);
    for (uint32_t i = 0; i < G_N_ELEMENTS(sets); i++) {
        for (uint32_t s = 0; s < cover->segments; s++)
            cover->complete[(size_t)i * cover->segments + s] =
                lh_symbolic_sets_store(&cover->contents, &sets[i][(size_t)s * cover->words]);
    }
}

void
lh_symbolic_add_set(LhSymbolicExec *cover, LhCell *cell, const uint64_t *more)
{
    cell->set = lh_symbolic_sets_join(&cover->contents, cell->set, more);
}

LhBlock
lh_symbolic_normalise(LhMaskKind kind, int64_t shift, uint64_t rows)
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
lh_symbolic_block(const LhSymbolicExec *cover, uint32_t q, uint32_t k)
{
    LhBlock block;

    if (cover->blocks != NULL)
        return cover->blocks[(size_t)q * cover->segments + k];
    block = lh_block(cover->segment[q], cover->segment[k], &cover->proof->program->params.mask);
    if (block.kind == LH_MASK_POSITIONS)
        return block;
    return lh_symbolic_normalise(block.kind, block.shift, cover->rows);
}

/* Whether part @part of a slot holds nothing when @op begins. */
static bool
is_unwritten(const LhSymbolicExec *cover, uint32_t op, uint32_t slot, uint32_t part)
{
    const LhCell *cell = lh_symbolic_cell(cover, cover->proof->op_rank[op], slot, part);
    uint32_t alloc;

    if (cell->state == LH_CELL_UNDEFINED || cover->slots[slot].role != LH_SLOT_TEMP)
        return cell->state == LH_CELL_UNDEFINED;
    if (cover->writers == NULL)
        return false; /* in program order, where allocs themselves make cells undefined */
    alloc = lh_proof_last_alloc(cover->proof, op, slot, part);
    return alloc != LH_NONE && cover->writers[cell - cover->cells] < alloc;
}

static bool
lacks_half(const LhCell *cell, const LhRegion *region)
{
    return cell->half != LH_HALF_BOTH && cell->half != region->half;
}

/* Reports a read part that is not written, or only in its other half. */
static void
find_unwritten(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t part,
               bool nothing)
{
    LhCell *cell = lh_symbolic_cell(cover, cover->proof->op_rank[op], region->slot, part);
    const char *wanted = lh_half_suffixes[region->half];
    g_autofree char *name = lh_cell_text(cover->proof->program, region->slot, part);

    if (nothing)
        COVERAGE(op, region->slot, "reads slot %s%s, which has not been written", name, wanted);
    else
        COVERAGE(op, region->slot, "reads slot %s%s, of which only %s has been written", name,
                 wanted, lh_half_suffixes[cell->half] + 1);
    cell->state = LH_CELL_SUSPECT;
    lh_symbolic_note_writer(cover, cell, op);
}

LhCell *
lh_symbolic_read_checked(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i)
{
    const uint32_t part = region->part + i;
    LhCell *cell = lh_symbolic_cell(cover, cover->proof->op_rank[op], region->slot, part);
    const bool unwritten = is_unwritten(cover, op, region->slot, part);

    if (unwritten || (cell->state == LH_CELL_DEFINED && lacks_half(cell, region)))
        find_unwritten(cover, op, region, part, unwritten);
    return cell->state == LH_CELL_SUSPECT ? NULL : cell;
}

LhCell *
lh_symbolic_read_rows(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i)
{
    LhCell *cell = lh_symbolic_read(cover, op, region, i);

    if (cell == NULL || cell->rows.segment < LH_ROW_NONE)
        return cell;
    COVERAGE(op, region->slot,
             "needs the rows of a segment in slot %s, which holds no particular one",
             cover->slots[region->slot].name);
    return NULL;
}

LhCell *
lh_symbolic_write(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i,
                  LhHolding rows)
{
    LhCell *cell =
        lh_symbolic_cell(cover, cover->proof->op_rank[op], region->slot, region->part + i);

    lh_symbolic_clear_set(cover, cell);
    *cell = (LhCell){ .rows = rows, .state = LH_CELL_DEFINED };
    lh_symbolic_note_writer(cover, cell, op);
    return cell;
}

LhCell *
lh_symbolic_write_none(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i,
                       uint32_t row)
{
    return lh_symbolic_write(cover, op, region, i, (LhHolding){ .segment = row });
}

/* Whether a half in @from belongs to the contents of @cell. */
static bool
go_together(const LhCell *cell, const LhCell *from)
{
    return lh_rows_equal(cell->rows, from->rows) && cell->ended == from->ended &&
           cell->norm == from->norm && cell->set == from->set;
}

/* Adds a half to the existing contents; false if they do not belong together. */
static bool
join_half(const LhSymbolicExec *cover, uint32_t op, const LhRegion *region, LhCell *cell,
          const LhCell *from)
{
    if (cell->state == LH_CELL_DEFINED) {
        if (!go_together(cell, from))
            return false;
        if (cell->half != region->half)
            cell->half = LH_HALF_BOTH;
    }
    lh_symbolic_note_writer(cover, cell, op);
    return true;
}

void
lh_symbolic_put(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i,
                const LhCell *from)
{
    const uint32_t part = region->part + i;
    LhCell *cell = lh_symbolic_cell(cover, cover->proof->op_rank[op], region->slot, part);

    if (cell->unread)
        lh_boundary_overwrite(cover, op, region, cell);
    if (from == NULL) {
        lh_symbolic_write_none(cover, op, region, i, LH_ROW_NONE)->state = LH_CELL_SUSPECT;
        return;
    }
    if (region->half != LH_HALF_BOTH && !is_unwritten(cover, op, region->slot, part) &&
        join_half(cover, op, region, cell, from))
        return;
    lh_symbolic_give_set(cover, cell, from->set);
    *cell = *from;
    cell->half = region->half & 3u;
    lh_symbolic_note_writer(cover, cell, op);
    if (cover->projects)
        lh_boundary_arrive(cover, region, cell);
    else
        cell->unread = false;
}

static void
find_twice(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, const LhCell *cell,
           uint32_t source)
{
    const LhSlot *slot = &cover->slots[region->slot];
    g_autofree char *rows = lh_symbolic_rows_text(cover, cell->rows);
    g_autofree char *what =
        lh_symbolic_source_text(cover, lh_families[slot->kind], source, cell->rows.slice);

    COVERAGE(op, region->slot, "adds %s to the rows of %s in slot %s a second time", what, rows,
             slot->name);
}

bool
lh_symbolic_contribute(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, LhCell *cell,
                       uint32_t source)
{
    if (lh_set_has(lh_symbolic_set(cover, cell), source)) {
        find_twice(cover, op, region, cell, source);
        return false;
    }
    cell->set = lh_symbolic_sets_add(&cover->contents, cell->set, source);
    return true;
}

bool
lh_symbolic_merge(LhSymbolicExec *cover, uint32_t op, const LhRegion *target, LhCell *into,
                  const LhCell *from)
{
    const uint64_t *set = lh_symbolic_set(cover, into);
    const uint64_t *other = lh_symbolic_set(cover, from);

    if (into->set == LH_SYMBOLIC_SET_EMPTY) {
        lh_symbolic_give_set(cover, into, from->set);
        return true;
    }

    for (uint32_t w = 0; w < cover->words; w++) {
        const uint64_t twice = set[w] & other[w];

        if (twice != 0) {
            find_twice(cover, op, target, into, w * 64 + (uint32_t)__builtin_ctzll(twice));
            return false;
        }
    }
    lh_symbolic_add_set(cover, into, other);
    return true;
}

static bool
has_norm(LhTensorKind kind)
{
    return kind == LH_TENSOR_O || kind == LH_TENSOR_DELTA;
}

LhNorm
lh_symbolic_norm(LhTensorKind kind, const LhCell *cell)
{
    return has_norm(kind) ? (LhNorm)cell->norm : LH_NORM_OWN;
}

bool
lh_symbolic_join_norm(LhSymbolicExec *cover, uint32_t op, const LhAddend *from, LhTensorKind kind,
                      bool fresh, LhCell *into)
{
    g_autofree char *name = NULL;

    if (!has_norm(kind) || cover->proof->program->params.attention.linear)
        return true;
    if (fresh)
        into->norm = from->norm & 1u;
    if (fresh || (from->norm == LH_NORM_ROW && into->norm == LH_NORM_ROW))
        return true;
    name = lh_cell_text(cover->proof->program, from->region->slot, from->region->part + from->i);
    COVERAGE(op, from->region->slot,
             from->norm == LH_NORM_OWN
                 ? "adds slot %s, which is normalised over its own keys: only terms divided by the "
                   "sum over the whole row can be added"
                 : "adds slot %s to a result that is normalised over its own keys: only terms "
                   "divided by the sum over the whole row can be added",
             name);
    return false;
}

void
lh_symbolic_start(LhSymbolicExec *cover, uint32_t op)
{
    const LhOp *o = &cover->proof->ops[op];

    for (uint32_t i = 0; i < o->compute.regions_count; i++) {
        const LhRegion *region = &o->compute.regions[i];

        for (uint32_t k = 0; lh_proof_overwrites(o, i) && k < region->count; k++)
            lh_symbolic_write_none(cover, op, region, k, LH_ROW_ANY);
    }
}

LhCell *
lh_symbolic_open(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i,
                 LhHolding rows)
{
    LhCell *cell = lh_symbolic_read(cover, op, region, i);

    if (cell == NULL)
        return NULL;
    if (cell->rows.segment == LH_ROW_ANY)
        cell->rows = rows;
    if (!lh_rows_equal(cell->rows, rows)) {
        g_autofree char *added = lh_symbolic_rows_text(cover, rows);
        g_autofree char *held = lh_symbolic_rows_text(cover, cell->rows);

        COVERAGE(op, region->slot, "adds rows of %s to slot %s, which holds rows of %s", added,
                 cover->slots[region->slot].name, held);
        return NULL;
    }
    lh_symbolic_note_writer(cover, cell, op);
    return cell;
}

LhCell *
lh_symbolic_open_unended(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i,
                         LhHolding rows)
{
    LhCell *cell = lh_symbolic_open(cover, op, region, i, rows);

    if (cell == NULL || !cell->ended)
        return cell;
    COVERAGE(op, region->slot, "adds to slot %s, which already holds a finished result",
             cover->slots[region->slot].name);
    return NULL;
}

/* Fills inputs as the placement defines; inputs that are results are complete. */
void
lh_symbolic_fill_input(LhSymbolicExec *cover, uint32_t rank, uint32_t slot, uint32_t part)
{
    const LhTensorKind kind = cover->slots[slot].kind;
    const LhFamily family = lh_families[kind];
    LhCell *cell = lh_symbolic_cell(cover, rank, slot, part);

    cell->rows.segment = LH_ROW_NONE;
    if (!lh_tensor_is_of_model(kind))
        cell->rows = lh_slot_holding(cover->proof->program, &cover->slots[slot], rank, part);
    cell->state = LH_CELL_DEFINED;
    cell->ended = true;
    if (kind == LH_TENSOR_HIDDEN) {
        cell->input = (uint16_t)(slot + 1);
        cell->unread = cover->projects;
    }
    lh_symbolic_clear_set(cover, cell);
    if (family != LH_FAMILY_PLAIN)
        lh_symbolic_give_set(cover, cell,
                             lh_symbolic_complete_number(cover, family, cell->rows.segment));
}
