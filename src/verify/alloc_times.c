/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alloc times of slot parts, so that contents lost between a free and the next alloc are detected.
 */
#include "verify/alloc_times.h"

/* The first cell that alloc @g allocates, numbered over all ranks. */
static size_t
allocated_cell(const LhProof *proof, uint32_t g)
{
    const LhRegion *region = &proof->ops[g].memory.region;

    return (size_t)proof->op_rank[g] * proof->cells_count +
           proof->program->slots[region->slot].first_cell + region->part;
}

void
lh_proof_list_allocs(LhProof *proof)
{
    const size_t keys = (size_t)proof->ranks * proof->cells_count;
    uint32_t count = 0;

    proof->alloc_first = g_new0(uint32_t, keys + 1);
    for (uint32_t g = 0; g < proof->ops_count; g++) {
        const LhOp *op = &proof->ops[g];

        for (uint32_t i = 0; op->kind == LH_OP_ALLOC && i < op->memory.region.count; i++) {
            proof->alloc_first[allocated_cell(proof, g) + i]++;
            count++;
        }
    }
    for (size_t i = 0; i < keys; i++)
        proof->alloc_first[i + 1] += proof->alloc_first[i];
    proof->allocs = g_new(uint32_t, MAX(count, 1));
    for (uint32_t g = proof->ops_count; g > 0; g--) {
        const LhOp *op = &proof->ops[g - 1];

        for (uint32_t i = 0; op->kind == LH_OP_ALLOC && i < op->memory.region.count; i++)
            proof->allocs[--proof->alloc_first[allocated_cell(proof, g - 1) + i]] = g - 1;
    }
}

uint32_t
lh_proof_last_alloc(const LhProof *proof, uint32_t op, uint32_t slot, uint32_t part)
{
    const size_t key = (size_t)proof->op_rank[op] * proof->cells_count +
                       proof->program->slots[slot].first_cell + part;
    uint32_t low = proof->alloc_first[key];
    uint32_t high = proof->alloc_first[key + 1];
    const uint32_t first = low;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (proof->allocs[middle] < op)
            low = middle + 1;
        else
            high = middle;
    }
    return low == first ? LH_NONE : proof->allocs[low - 1];
}
