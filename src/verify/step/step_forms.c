/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a step against its closed forms: bytes by dimension, flops of products, bytes of states.
 * The totals of bytes and of attention flops are claims of the program, as in every program.
 */
#include "verify/step/step_forms.h"
#include "step/layer_info.h"
#include "verify/step/step_copies.h"
#include "verify/step/step_values.h"

#include "program/work.h"
#include "step/formulas.h"

#define FIND_FORM(rank, ...)                                                                       \
    lh_proof_find(proof, LH_FINDING_CLOSED_FORM, (LhFindingPlace){ rank, LH_NONE, -1, LH_NONE },   \
                  __VA_ARGS__)

static void
check_bytes(LhProof *proof, uint32_t rank, const uint64_t sent[LH_DIMENSIONS])
{
    static const char *const names[LH_DIMENSIONS] = {
        [LH_DIMENSION_TENSOR] = "tensor",
        [LH_DIMENSION_CONTEXT] = "context",
        [LH_DIMENSION_DATA] = "data",
        [LH_DIMENSION_PIPELINE] = "pipeline",
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
    const uint64_t want = lh_step_dense_flops(proof->program, rank);
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

/* Checks the slots of states by family of tensors. */
static void
check_states(LhProof *proof, uint32_t rank)
{
    const LhStepStateBytes want = lh_step_state_bytes(proof->program, rank);
    uint64_t weights = 0, optimizer = 0, host = 0, cache = 0;

    for (uint32_t i = 0; i < proof->program->slots_count; i++) {
        const LhSlot *slot = &proof->program->slots[i];
        const uint64_t bytes = slot->parts * slot->part_bytes;
        LhStepState state;

        if (!lh_slot_is_result(slot) || !lh_slot_is_on(slot, rank) ||
            !lh_step_state_at(proof->program->step, rank, i, 0, &state))
            continue;
        if (slot->on_host)
            host += state.family == LH_STEP_OF_HOST_WEIGHT || state.family == LH_STEP_OF_MASTER ||
                            state.family == LH_STEP_OF_MOMENTS || state.family == LH_STEP_OF_SCALES
                        ? bytes
                        : 0;
        else if (state.family == LH_STEP_OF_WEIGHT || state.family == LH_STEP_OF_WEIGHT_SHARD)
            weights += bytes;
        else if (state.family == LH_STEP_OF_MASTER || state.family == LH_STEP_OF_MOMENTS ||
                 state.family == LH_STEP_OF_SCALES || state.family == LH_STEP_OF_MOMENTUM)
            optimizer += bytes;
        else if (state.family == LH_STEP_OF_RESULT && state.role == LH_STEP_KV)
            cache += bytes;
    }
    if (weights != want.weights || optimizer != want.optimizer)
        FIND_FORM(rank,
                  "holds %" G_GUINT64_FORMAT " bytes of weights and %" G_GUINT64_FORMAT
                  " of the optimizer, but the closed forms say %" G_GUINT64_FORMAT
                  " and %" G_GUINT64_FORMAT,
                  weights, optimizer, want.weights, want.optimizer);
    if (host != want.host)
        FIND_FORM(rank,
                  "has %" G_GUINT64_FORMAT " bytes of weights and states of the optimizer in host "
                  "memory, but the closed form says %" G_GUINT64_FORMAT,
                  host, want.host);
    if (cache != want.cache)
        FIND_FORM(rank,
                  "leaves %" G_GUINT64_FORMAT " bytes of KV caches, but the closed form says "
                  "%" G_GUINT64_FORMAT,
                  cache, want.cache);
}

/* ---- micro-batches in flight ---- */

/* The chunks of a rank's layers, per micro-batch: remaining calls of the last pass, and whether the
 * forward pass has begun. */
typedef struct {
    uint32_t left;
    bool begun;
} Flight;

static Flight *
flight_of(const LhProof *proof, GArray *flights, const LhOp *op)
{
    const LhStepParams *p = lh_step_params(proof->program);
    const uint32_t layers = lh_step_layers(proof->program->step);
    const uint32_t chunks = lh_step_chunks(p);

    if (op->kind != LH_OP_COMPUTE || op->layer >= layers || op->micro_batch >= p->micro_batches)
        return NULL;
    return &g_array_index(flights, Flight,
                          op->micro_batch * chunks +
                              lh_step_chunk_of(proof->program->step, op->layer) /
                                  lh_step_stages(p));
}

/* Checks the number of micro-batches in flight, begun and not ended, against the pipeline
 * schedule. */
static void
check_in_flight(LhProof *proof, uint32_t rank)
{
    const LhStepParams *p = lh_step_params(proof->program);
    const uint32_t want = lh_step_in_flight(p, rank / (uint32_t)lh_step_stage_ranks(p));
    g_autoptr(GArray) flights = g_array_new(FALSE, TRUE, sizeof(Flight));
    const LhPhase last = p->forward_only ? LH_PHASE_FORWARD : LH_PHASE_BACKWARD;
    uint32_t now = 0, most = 0;

    g_array_set_size(flights, p->micro_batches * lh_step_chunks(p));
    for (uint32_t g = proof->rank_first[rank]; g < proof->rank_first[rank + 1]; g++) {
        Flight *flight = flight_of(proof, flights, &proof->ops[g]);

        if (flight != NULL && proof->ops[g].phase == last)
            flight->left++;
    }
    for (uint32_t g = proof->rank_first[rank]; g < proof->rank_first[rank + 1]; g++) {
        Flight *flight = flight_of(proof, flights, &proof->ops[g]);

        if (flight == NULL)
            continue;
        if (!flight->begun && proof->ops[g].phase == LH_PHASE_FORWARD)
            now++, flight->begun = true;
        most = MAX(most, now);
        if (proof->ops[g].phase == last && --flight->left == 0 && flight->begun)
            now--;
    }
    if (most != want)
        FIND_FORM(rank,
                  "has up to %u micro-batches in flight between forward and backward pass, but the "
                  "closed form says %u",
                  most, want);
}

void
lh_proof_check_step_forms(LhProof *proof)
{
    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        check_rank(proof, rank);
        check_states(proof, rank);
        check_in_flight(proof, rank);
        if (lh_step_params(proof->program)->offload_layers > 0 ||
            lh_step_params(proof->program)->optimizer_offload > 0)
            lh_step_copies_check(proof, rank);
    }
}
