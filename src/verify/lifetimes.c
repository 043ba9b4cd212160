/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffer lifetimes: no part of a slot is used outside its lifetime, none is left at the end, and
 * peak memory is counted. All in program order, which is the host's.
 */
#include "verify/verify_private.h"

#include "program/live.h"

/* The life of one cell on the current rank. */
typedef struct {
    bool live;
    uint32_t alloc, free; /* the last ones, or LH_NONE */
} CellLife;

struct LhMemoryCheck {
    LhProof *proof;
    CellLife *cells;
    LhLive live;
};

static CellLife *
life_of(const LhMemoryCheck *check, const LhRegion *region, uint32_t i)
{
    return &check->cells[check->proof->program->slots[region->slot].first_cell + region->part + i];
}

/* Reports a finding about part @i of a region. CELL and OTHER in @format are replaced by the
 * names of the part and of op @other (LH_NONE: none). */
static void
find(const LhMemoryCheck *check, uint32_t g, const LhRegion *region, uint32_t i, uint32_t other,
     const char *format)
{
    LhProof *proof = check->proof;
    g_autofree char *cell = lh_cell_text(proof->program, region->slot, region->part + i);
    g_autofree char *text =
        other == LH_NONE ? NULL : lh_op_text(proof->program, &proof->ops[other]);
    g_autoptr(GString) message = g_string_new(format);

    g_string_replace(message, "CELL", cell, 0);
    if (text != NULL)
        g_string_replace(message, "OTHER", text, 0);
    lh_proof_find(proof, LH_FINDING_MEMORY,
                  (LhFindingPlace){ proof->op_rank[g], g, region->slot, other }, "%s",
                  message->str);
}

/* Checks that all parts of a region are allocated. */
static bool
check_life(const LhMemoryCheck *check, uint32_t g, const LhRegion *region)
{
    for (uint32_t i = 0; i < region->count; i++) {
        const CellLife *life = life_of(check, region, i);

        if (life->live)
            continue;
        if (life->free == LH_NONE)
            find(check, g, region, i, LH_NONE, "uses slot CELL, which is not allocated yet");
        else
            find(check, g, region, i, life->free, "uses slot CELL after it was freed by OTHER");
        return false;
    }
    return true;
}

/* Checks that all parts of an operand come from one alloc: kernels step from part to part. */
static void
check_operand(const LhMemoryCheck *check, uint32_t g, const LhRegion *region)
{
    const CellLife *first = life_of(check, region, 0);
    uint32_t right = 0;

    while (right < region->count && first[right].live && first[right].alloc == first->alloc)
        right++;
    if (right == region->count || !check_life(check, g, region))
        return;
    for (uint32_t i = right; i < region->count; i++) {
        const CellLife *life = life_of(check, region, i);

        if (life->alloc == first->alloc)
            continue;
        find(check, g, region, i, life->alloc,
             "takes slot CELL, which OTHER has allocated separately from the parts before it: the "
             "parts of an operand must come from one alloc");
        return;
    }
}

static void
check_lives(const LhMemoryCheck *check, uint32_t g)
{
    const LhProof *proof = check->proof;
    const LhOp *op = &proof->ops[g];

    if (op->kind == LH_OP_COMPUTE) {
        for (uint32_t i = 0; i < op->compute.regions_count; i++)
            check_operand(check, g, &op->compute.regions[i]);
    } else if (op->kind == LH_OP_COLLECTIVE) {
        for (uint32_t i = 0; i < op->collective.tensors_count; i++) {
            check_life(check, g, &op->collective.send[i]);
            check_life(check, g, &op->collective.receive[i]);
        }
    } else if (op->kind == LH_OP_EXCHANGE) {
        for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
            const LhPart *part = &proof->parts[op->exchange.parts_first + i];

            for (uint32_t k = 0; k < part->regions_count; k++)
                check_life(check, g, &part->regions[k]);
        }
    }
}

static void
alloc_region(LhMemoryCheck *check, uint32_t g)
{
    const LhRegion *region = &check->proof->ops[g].memory.region;

    for (uint32_t i = 0; i < region->count; i++) {
        CellLife *life = life_of(check, region, i);

        if (life->live) {
            find(check, g, region, i, life->alloc,
                 "allocates slot CELL, which OTHER has already allocated");
            return;
        }
        life->live = true;
        life->alloc = g;
    }
    lh_live_change(&check->live, check->proof->program, *region, true);
}

static void
free_region(LhMemoryCheck *check, uint32_t g)
{
    const LhRegion *region = &check->proof->ops[g].memory.region;

    for (uint32_t i = 0; i < region->count; i++) {
        CellLife *life = life_of(check, region, i);

        if (!life->live) {
            find(check, g, region, i, life->free, "frees slot CELL, which is not allocated");
            return;
        }
        life->live = false;
        life->free = g;
    }
    lh_live_change(&check->live, check->proof->program, *region, false);
}

/* Reports one finding for each slot that is not freed. */
static void
check_leaks(const LhMemoryCheck *check, uint32_t rank)
{
    LhProof *proof = check->proof;

    for (uint32_t slot = 0; slot < proof->program->slots_count; slot++) {
        const LhSlot *s = &proof->program->slots[slot];
        uint32_t part = 0;
        g_autofree char *cell = NULL, *other = NULL;

        while (part < s->parts && !check->cells[s->first_cell + part].live)
            part++;
        if (s->role != LH_SLOT_TEMP || part == s->parts)
            continue;
        cell = lh_cell_text(proof->program, slot, part);
        other = lh_op_text(proof->program, &proof->ops[check->cells[s->first_cell + part].alloc]);
        lh_proof_find(proof, LH_FINDING_MEMORY,
                      (LhFindingPlace){ rank, LH_NONE, (int32_t)slot,
                                        check->cells[s->first_cell + part].alloc },
                      "ends with slot %s still allocated by %s", cell, other);
    }
}

LhMemoryCheck *
lh_memory_check_new(LhProof *proof)
{
    LhMemoryCheck *check = g_new0(LhMemoryCheck, 1);

    check->proof = proof;
    check->cells = g_new0(CellLife, MAX(proof->cells_count, 1));
    return check;
}

void
lh_memory_check_free(LhMemoryCheck *check)
{
    g_free(check->cells);
    g_free(check);
}

void
lh_memory_check_begin(LhMemoryCheck *check, uint32_t rank)
{
    const LhProgram *program = check->proof->program;

    for (uint32_t slot = 0; slot < program->slots_count; slot++) {
        const LhSlot *s = &program->slots[slot];

        for (uint32_t part = 0; part < s->parts; part++)
            check->cells[s->first_cell + part] =
                (CellLife){ .live = s->role != LH_SLOT_TEMP && lh_slot_is_on(s, rank),
                            .alloc = LH_NONE,
                            .free = LH_NONE };
    }
    lh_live_init(&check->live, program, rank);
}

void
lh_memory_check_add(LhMemoryCheck *check, LhOpRange ops)
{
    for (uint32_t g = ops.first; g < ops.end; g++) {
        if (check->proof->ops[g].kind == LH_OP_ALLOC)
            alloc_region(check, g);
        else if (check->proof->ops[g].kind == LH_OP_FREE)
            free_region(check, g);
        else
            check_lives(check, g);
    }
}

void
lh_memory_check_end(LhMemoryCheck *check, uint32_t rank)
{
    check->proof->verdict->peak_bytes[rank] = check->live.peak_bytes;
    check_leaks(check, rank);
}

void
lh_proof_check_memory(LhProof *proof)
{
    LhMemoryCheck *check = lh_memory_check_new(proof);

    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        lh_memory_check_begin(check, rank);
        lh_memory_check_add(check, lh_proof_ops_of(proof, rank));
        lh_memory_check_end(check, rank);
    }
    lh_memory_check_free(check);
}
