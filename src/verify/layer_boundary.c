/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations outside attention. If a program states how they relate to attention (calls that stand
 * for the projections of the layer), each part of them has a value: a rank's share of the tokens of
 * an input; or a share of the output projection of a complete result, for some slices of the heads,
 * which is summed over ranks. Then no given tensor is used before its input could be there, and no
 * output leaves before its source is complete.
 *
 * Otherwise only the rows of these activations are tracked; and if the program computes the layer
 * itself, only whether they have been written.
 */
#include "verify/layer_boundary.h"

#include <string.h>

#define ANYWHERE(rank, slot, ...)                                                                  \
    lh_proof_find(cover->proof, LH_FINDING_COVERAGE,                                               \
                  (LhFindingPlace){ rank, LH_NONE, (int32_t)(slot), LH_NONE }, __VA_ARGS__)

static uint32_t
shares(const LhSymbolicExec *cover)
{
    return cover->proof->program->params.ranks;
}

void
lh_boundary_scan(LhProof *proof, LhOpRange ops)
{
    for (uint32_t g = ops.first; g < ops.end; g++) {
        const LhOp *op = &proof->ops[g];
        LhEffect effect;

        if (op->kind != LH_OP_COMPUTE)
            continue;
        effect = lh_proof_kernel(op)->effect;
        proof->projects |= effect == LH_EFFECT_PROJECT_IN || effect == LH_EFFECT_PROJECT_OUT;
        proof->computes_layer |= effect == LH_EFFECT_LAYER;
    }
}

void
lh_boundary_begin(LhSymbolicExec *cover)
{
    cover->projects = cover->proof->projects;
    cover->computes_layer = cover->proof->computes_layer;
    cover->taken = g_new0(uint8_t, MAX(cover->proof->program->slots_count, 1));
}

/* Whether a given tensor comes from a projection. A backward pass alone takes q, k and v as the
 * forward pass has left them. */
bool
lh_boundary_gives(const LhSymbolicExec *cover, const LhSlot *slot)
{
    const LhProgramParams *p = &cover->proof->program->params;

    if (!cover->projects || slot->by_heads)
        return false;
    if (slot->kind == LH_TENSOR_Q || slot->kind == LH_TENSOR_KV)
        return lh_pass_has(p, LH_PASS_FWD);
    return slot->kind == LH_TENSOR_DO;
}

void
lh_boundary_overwrite(LhSymbolicExec *cover, uint32_t op, const LhRegion *region,
                      const LhCell *cell)
{
    if (cell->unread && cell->state == LH_CELL_DEFINED)
        COVERAGE(op, region->slot,
                 "overwrites slot %s, which holds received data that nothing has used",
                 cover->slots[region->slot].name);
}

void
lh_boundary_arrive(const LhSymbolicExec *cover, const LhRegion *region, LhCell *cell)
{
    const LhSlot *slot = &cover->slots[region->slot];

    cell->unread = cover->projects && slot->kind == LH_TENSOR_HIDDEN && slot->role == LH_SLOT_TEMP;
}

/* Joins adjacent slices to a sum of both. */
static bool
join_slices(LhCell *sum, const LhCell *from)
{
    if (from->first == sum->end)
        sum->end = from->end;
    else if (from->end == sum->first)
        sum->first = from->first;
    else
        return false;
    return true;
}

bool
lh_boundary_add(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, bool first, LhCell *sum,
                const LhCell *from)
{
    const char *name = cover->slots[region->slot].name;
    const bool same = lh_rows_equal(from->rows, sum->rows);

    if (cover->projects && from->result == 0) {
        COVERAGE(op, region->slot, "adds slot %s, which is not the result of a projection", name);
        return false;
    }
    if (first) {
        sum->result = from->result;
        sum->first = from->first;
        sum->end = from->end;
        return true;
    }
    if (from->result == 0 && sum->result == 0) {
        if (from->rows.segment != LH_ROW_ANY && !same)
            sum->rows = (LhHolding){ .segment = LH_ROW_NONE };
        return true;
    }
    if (from->result != sum->result || !same) {
        COVERAGE(op, region->slot, "adds slot %s to a sum that it does not belong to", name);
        return false;
    }
    if (join_slices(sum, from))
        return true;
    COVERAGE(
        op, region->slot,
        "adds slices [%u, %u) of the heads in slot %s to a sum of [%u, %u): they are not adjacent",
        from->first, from->end, name, sum->first, sum->end);
    return false;
}

static void
check_used(LhSymbolicExec *cover, uint32_t rank, uint32_t slot)
{
    const char *name = cover->slots[slot].name;

    for (uint32_t part = 0; part < cover->slots[slot].parts; part++) {
        const LhCell *cell = lh_symbolic_cell(cover, rank, slot, part);

        if (!cell->unread || cell->state != LH_CELL_DEFINED)
            continue;
        if (cover->slots[slot].role == LH_SLOT_INPUT)
            ANYWHERE(rank, slot, "ends without having used its input %s", name);
        else
            ANYWHERE(rank, slot, "ends without having used the data received in slot %s", name);
        return;
    }
}

void
lh_boundary_end(LhSymbolicExec *cover)
{
    const LhProof *proof = cover->proof;

    for (uint32_t rank = 0; cover->projects && rank < proof->ranks; rank++) {
        for (uint32_t slot = 0; slot < proof->program->slots_count; slot++) {
            if (cover->slots[slot].kind == LH_TENSOR_HIDDEN)
                check_used(cover, rank, slot);
        }
    }
    g_free(cover->taken);
}

void
lh_boundary_check_output(LhSymbolicExec *cover, uint32_t rank, uint32_t slot, const LhCell *cell)
{
    const uint32_t slices = lh_program_slices(cover->proof->program, LH_TENSOR_Q);
    const char *name = cover->slots[slot].name;

    if (!cover->projects || (cell->result != 0 && cell->first == 0 && cell->end == slices))
        return;
    if (cell->result == 0)
        ANYWHERE(rank, slot, "ends with an output %s that comes from no projection", name);
    else
        ANYWHERE(rank, slot,
                 "ends with an output %s of slices [%u, %u) of the heads; it has %u slices", name,
                 cell->first, cell->end, slices);
}

/* Checks that a projection takes or produces the shares of all ranks, in a program whose ranks
 * have some heads of all tokens. */
static bool
check_call(LhSymbolicExec *cover, uint32_t g, const LhRegion *hidden)
{
    if (cover->proof->program->placement.kind != LH_PLACE_HEADS) {
        COVERAGE(g, hidden->slot, "is for programs whose ranks have some heads of all tokens");
        return false;
    }
    if (hidden->count == shares(cover))
        return true;
    COVERAGE(g, hidden->slot, "takes %u parts of slot %s; the tokens have %u shares", hidden->count,
             cover->slots[hidden->slot].name, shares(cover));
    return false;
}

/* The input slot of which @region holds all shares in order; LH_NONE, with a finding, if none. */
static uint32_t
input_of(LhSymbolicExec *cover, uint32_t g, const LhRegion *region)
{
    uint16_t input = 0;

    for (uint32_t i = 0; i < region->count; i++) {
        const LhCell *cell = lh_symbolic_read(cover, g, region, i);

        if (cell == NULL)
            return LH_NONE;
        input = i == 0 ? cell->input : input;
        if (cell->input == 0 || cell->input != input || cell->rows.slice != i) {
            COVERAGE(g, region->slot, "needs share %u of one input in part %u of slot %s", i,
                     region->part + i, cover->slots[region->slot].name);
            return LH_NONE;
        }
    }
    return input - 1u;
}

/* Checks that an input feeds one projection only, not two different given tensors. */
static bool
take(LhSymbolicExec *cover, uint32_t g, uint32_t input, LhTensorKind given)
{
    const uint8_t now = (uint8_t)(given + 1), before = cover->taken[input];

    cover->taken[input] = now;
    if (before == 0 || before == now)
        return true;
    COVERAGE(g, input, "projects %s from input %s, from which %s has already been projected",
             lh_tensor_names[given], cover->slots[input].name, lh_tensor_names[before - 1]);
    return false;
}

bool
lh_boundary_project_in(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *given = &op->compute.regions[1];
    uint32_t input;

    if (!check_call(cover, g, &op->compute.regions[0]))
        return false;
    input = input_of(cover, g, &op->compute.regions[0]);
    if (input == LH_NONE || !take(cover, g, input, cover->slots[given->slot].kind))
        return false;
    for (uint32_t i = 1; i < op->compute.regions_count; i++, given++) {
        for (uint32_t part = 0; part < given->count; part++)
            lh_symbolic_fill_input(cover, cover->proof->op_rank[g], given->slot, part);
    }
    return true;
}

/* The slice of the heads of a complete result; LH_NONE, with a finding, if it is not complete. */
static uint32_t
slice_of(LhSymbolicExec *cover, uint32_t g, const LhRegion *region)
{
    const LhSlot *slot = &cover->slots[region->slot];
    const LhFamily family = lh_families[slot->kind];
    uint32_t slice = 0;

    for (uint32_t i = 0; i < region->count; i++) {
        const LhCell *cell = lh_symbolic_read_rows(cover, g, region, i);

        if (cell == NULL)
            return LH_NONE;
        slice = cell->rows.slice;
        if (cell->set != lh_symbolic_complete_number(cover, family, cell->rows.segment)) {
            COVERAGE(g, region->slot, "takes slot %s, which is not complete yet", slot->name);
            return LH_NONE;
        }
    }
    return slice;
}

bool
lh_boundary_project_out(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *results = op->compute.regions;
    const LhRegion *hidden = &results[op->compute.regions_count - 1];
    const uint32_t slice = slice_of(cover, g, &results[0]);

    if (slice == LH_NONE || !check_call(cover, g, hidden))
        return false;
    for (uint32_t i = 1; &results[i] < hidden; i++) {
        if (slice_of(cover, g, &results[i]) == LH_NONE)
            return false;
    }
    for (uint32_t i = 0; i < hidden->count; i++) {
        LhCell *cell =
            lh_symbolic_cell(cover, cover->proof->op_rank[g], hidden->slot, hidden->part + i);

        lh_boundary_overwrite(cover, g, hidden, cell);
        lh_symbolic_write(cover, g, hidden, i, (LhHolding){ 0, i });
        cell->unread = true;
        cell->result = (uint8_t)(cover->slots[results[0].slot].kind + 1);
        cell->first = (uint16_t)slice;
        cell->end = (uint16_t)(slice + 1);
    }
    return true;
}

bool
lh_boundary_read(LhSymbolicExec *cover, uint32_t g)
{
    const LhRegion *region = &cover->proof->ops[g].compute.regions[0];

    for (uint32_t i = 0; i < region->count; i++) {
        if (lh_symbolic_read(cover, g, region, i) == NULL)
            return false;
    }
    return true;
}

/* Checks that every part a call reads has been written. */
static bool
read_operand(LhSymbolicExec *cover, uint32_t g, const LhRegion *region)
{
    bool read = true;

    for (uint32_t i = 0; i < region->count; i++)
        read &= lh_symbolic_read(cover, g, region, i) != NULL;
    return read;
}

bool
lh_boundary_compute(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);
    bool read = true;

    if (cover->proof->verdict->attends || cover->projects) {
        COVERAGE(g, op->compute.regions[0].slot,
                 "calls a kernel of the layer outside attention, which a program of attention "
                 "alone must not do");
        return false;
    }
    for (uint32_t i = 0; i < op->compute.regions_count; i++)
        read &= lh_proof_overwrites(op, i) || read_operand(cover, g, &op->compute.regions[i]);
    for (uint32_t i = 0; read && i < op->compute.regions_count; i++) {
        const LhRegion *region = &op->compute.regions[i];

        for (uint32_t part = 0;
             kernel->operands[i].access != LH_OPERAND_READ && part < region->count; part++)
            lh_symbolic_write_none(cover, g, region, part, LH_ROW_NONE);
    }
    return read;
}
