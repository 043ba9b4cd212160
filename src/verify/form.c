/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First stage of the verifier: everything that an op names exists, in the right number and of the
 * right kind.
 *
 * Later stages index arrays by these names without checking again, so no program, however broken,
 * can make them crash.
 */
#include "verify/verify_private.h"

static bool
check_memory_op(LhProof *proof, uint32_t g)
{
    const LhRegion *region = &proof->ops[g].memory.region;

    if (!lh_form_check_region(proof, g, region) || !lh_form_check_whole(proof, g, region))
        return false;
    if (proof->program->slots[region->slot].role != LH_SLOT_TEMP)
        return MALFORMED(g, region->slot, "names slot %s, which exists for the whole program",
                         proof->program->slots[region->slot].name);
    return true;
}

static bool
check_header(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    const uint32_t id = g - proof->rank_first[proof->op_rank[g]];

    if (op->kind >= LH_OP_KINDS || op->phase >= LH_PHASES)
        return MALFORMED(g, -1, "has an unknown kind or phase");
    if (op->id != id)
        return MALFORMED(g, -1, "has id %u; ids count up from 0", op->id);
    if (lh_op_on_stream(op) && op->stream >= proof->program->streams_count)
        return MALFORMED(g, -1, "names stream %u, but there are %u", op->stream,
                         proof->program->streams_count);
    if (op->after_count > LH_OP_AFTER_MAX)
        return MALFORMED(g, -1, "comes after %u ops; at most %d are possible", op->after_count,
                         LH_OP_AFTER_MAX);
    for (uint32_t i = 0; i < op->after_count; i++) {
        if (op->after[i] >= id)
            return MALFORMED(g, -1, "comes after op %u, which is not an earlier op", op->after[i]);
    }
    return true;
}

static void
check_op(LhProof *proof, uint32_t g)
{
    switch (proof->ops[g].kind) {
    case LH_OP_COMPUTE:
        lh_form_check_compute(proof, g);
        break;
    case LH_OP_EXCHANGE:
        lh_form_check_exchange(proof, g);
        break;
    case LH_OP_COLLECTIVE:
        lh_form_check_collective(proof, g);
        break;
    case LH_OP_ALLOC:
    case LH_OP_FREE:
        check_memory_op(proof, g);
        break;
    default:
        break;
    }
}

void
lh_proof_check_form(LhProof *proof, LhOpRange ops)
{
    for (uint32_t g = ops.first; g < ops.end; g++) {
        if (check_header(proof, g))
            check_op(proof, g);
    }
}

void
lh_proof_check_loose_form(LhProof *proof)
{
    bool ok = lh_form_check_slices(proof);

    for (uint32_t i = 0; ok && i < proof->program->slots_count; i++)
        ok = lh_form_check_slot(proof, &proof->program->slots[i]);
    for (uint32_t g = 0; ok && g < proof->ops_count; g++)
        check_op(proof, g);
}
