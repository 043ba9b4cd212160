/*
 * A step held against its closed forms: bytes by dimension, flops of products, bytes of states. The
 * sums of all bytes and of attention's flops are claims of the program, as every program has them.
 */
#include "verify/values.h"

#include "program/work.h"
#include "step/formulas.h"

#define FIND_FORM(rank, ...)                                                                       \
    lh_proof_find(proof, LH_FINDING_CLOSED_FORM, (LhPlace){ rank, LH_NONE, -1, LH_NONE },          \
                  __VA_ARGS__)

static void
check_bytes(LhProof *proof, uint32_t rank, const uint64_t sent[LH_DIMENSIONS])
{
    static const char *const names[LH_DIMENSIONS] = {
        [LH_DIMENSION_TENSOR] = "tensor",
        [LH_DIMENSION_CONTEXT] = "context",
        [LH_DIMENSION_DATA] = "data",
    };

    for (unsigned i = 0; i < LH_DIMENSIONS; i++) {
        uint64_t bytes = 0;

        if (lh_step_bytes_sent(proof->program, (LhDimension)i, rank, &bytes) && bytes != sent[i])
            FIND_FORM(rank,
                      "sends %" G_GUINT64_FORMAT " bytes for %s parallelism, but the closed form "
                      "says %" G_GUINT64_FORMAT,
                      sent[i], names[i], bytes);
    }
}

static void
check_rank(LhProof *proof, uint32_t rank)
{
    const uint64_t want = lh_step_dense_flops(proof->program);
    uint64_t sent[LH_DIMENSIONS + 1] = { 0 }, flops = 0;

    for (uint32_t g = proof->rank_first[rank]; g < proof->rank_first[rank + 1]; g++) {
        const LhOp *op = &proof->ops[g];

        flops += lh_op_dense_flops(op);
        sent[lh_step_dimension(op)] +=
            lh_op_bytes_sent(proof->program, op, proof->parts, proof->counts, rank);
    }
    check_bytes(proof, rank, sent);
    if (flops != want)
        FIND_FORM(rank,
                  "computes %" G_GUINT64_FORMAT " flops of products, but the closed form says "
                  "%" G_GUINT64_FORMAT,
                  flops, want);
}

/* Slots of states that hold a family's tensors. */
static void
check_states(LhProof *proof)
{
    const LhStepStateBytes want = lh_step_state_bytes(proof->program);
    uint64_t weights = 0, optimizer = 0;

    for (uint32_t i = 0; i < proof->program->slots_count; i++) {
        const LhSlot *slot = &proof->program->slots[i];
        const uint64_t bytes = slot->parts * slot->part_bytes;
        LhStepState state;

        if (slot->role != LH_SLOT_STATE || !lh_step_state_at(proof->program->step, i, 0, &state))
            continue;
        if (state.family == LH_STEP_OF_WEIGHT || state.family == LH_STEP_OF_WEIGHT_SHARD)
            weights += bytes;
        else if (state.family == LH_STEP_OF_MASTER || state.family == LH_STEP_OF_MOMENTS)
            optimizer += bytes;
    }
    if (weights != want.weights || optimizer != want.optimizer)
        FIND_FORM(LH_NONE,
                  "holds %" G_GUINT64_FORMAT " bytes of weights and %" G_GUINT64_FORMAT
                  " of the optimizer, but the closed forms say %" G_GUINT64_FORMAT
                  " and %" G_GUINT64_FORMAT,
                  weights, optimizer, want.weights, want.optimizer);
}

void
lh_proof_check_step_forms(LhProof *proof)
{
    for (uint32_t rank = 0; rank < proof->ranks; rank++)
        check_rank(proof, rank);
    check_states(proof);
}
