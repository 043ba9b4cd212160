/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions. Results do not depend on timing: with direct sends the owner reduces the terms in
 * group order; in a ring each member adds its own term to the partial result, rounded to the type
 * of the tensor.
 */
#include "runtime/collective_reductions.h"

#include "base/error.h"
#include "program/holding.h"
#include "runtime/bind.h"
#include "runtime/run_kernel.h"

static bool
fail_collective(const LhCollectiveRun *c, LhErrorCode code, const char *what)
{
    return lh_execution_fail_op(c->stream->rank, &c->item->op, (int)code, "%s", what);
}

/* Sums in fp32, in group order, rounded once. */
static bool
sum(const LhRunTensor *t, uint64_t bytes, unsigned char *into)
{
    const LhCollectiveRun *c = t->c;
    const LhPlaceOfWork *at = &c->stream->at;
    const LhSlot *slot = &c->program->slots[t->from->region.slot];
    const LhDeviceSum add = { .terms = t->blocks,
                              .count = t->blocks_count,
                              .sum = into,
                              .elements = bytes / lh_slot_element_bytes(slot),
                              .storage = lh_dtype_storage(slot->dtype) };

    if (at->device->sum(at->state, &add, at->stream) != LH_STATUS_OK)
        return fail_collective(c, LH_ERROR_NO, "the device cannot add up tensors of this type");
    return true;
}

/* Arguments of a merge of @parts parts of a slot of accumulators. A part has the rows of one
 * segment for one slice of the heads, as @program defines them. */
static LhKernelArgs
merge_args(const LhProgram *program, const LhSlot *slot, uint64_t parts)
{
    const LhAttention *a = &program->params.attention;
    const uint64_t rows = a->seq_length / lh_placement_segments(&program->placement);

    return (LhKernelArgs){ .nq = rows * parts,
                           .batch = a->batch,
                           .heads = a->heads / lh_program_slices(program, slot->kind),
                           .groups = 1,
                           .head_dim = slot->head_dim };
}

/* Merges attention results of the same rows, part by part: in fp32, in group order, rounded
 * once. */
static bool
merge(const LhRunTensor *t, uint64_t bytes, unsigned char *into)
{
    const LhCollectiveRun *c = t->c;
    const LhSlot *slot = &c->program->slots[t->from->region.slot];
    const LhProgram *of = lh_program_of_op(c->program, c->call.op);
    const uint32_t parts = (uint32_t)(bytes / slot->part_bytes);
    const LhKernelArgs one = merge_args(of, slot, 1);
    const LhKernelId kernel =
        slot->kind == LH_TENSOR_OUT ? LH_KERNEL_ID_merge_lse : LH_KERNEL_ID_merge;
    const uint64_t elements = one.batch * one.nq * one.heads * one.head_dim;
    const LhView view = { .parts = parts,
                          .part_bytes = slot->part_bytes,
                          .storage = lh_dtype_storage(slot->dtype) };
    LhView sum = { .parts = parts,
                   .part_bytes =
                       slot->part_bytes + elements * (sizeof(float) - lh_slot_element_bytes(slot)),
                   .storage = LH_STORAGE_FP32 };
    LhKernelArgs args = merge_args(of, slot, parts);

    sum.data = lh_run_tensor_temporary(t, parts * sum.part_bytes);
    if (sum.data == NULL)
        return false;
    for (uint32_t k = 0; k <= t->blocks_count; k++) {
        const bool rounds = k == t->blocks_count;
        LhCall call = { .args = &args };

        args.first = k == 0 || rounds;
        call.operands[0] = rounds ? sum : view;
        call.operands[1] = rounds ? view : sum;
        if (rounds)
            call.operands[1].data = into;
        else
            call.operands[0].data = t->blocks[k];
        if (!lh_run_kernel(c->stream, c->item, kernel, &call))
            return false;
    }
    return true;
}

/* Exchanges slices: receives every member's term of this rank's slice. */
bool
lh_make_slices(LhRunTensor *t)
{
    const LhCollectiveRun *c = t->c;
    const uint32_t self = c->call.position;
    const LhByteRange own = lh_run_tensor_slice(t, t->from, self);

    t->blocks_count = c->call.members;
    t->blocks = lh_item_memory(c->item, c->call.members * sizeof(*t->blocks));
    t->blocks[self] = lh_run_tensor_in_place(t, t->from, own);
    if (t->blocks[self] == NULL)
        t->blocks[self] = lh_run_tensor_copy(t, own);
    for (uint32_t k = 0; k < c->call.members; k++) {
        if (k != self)
            t->blocks[k] = lh_run_tensor_temporary(t, own.count);
        if (t->blocks[k] == NULL)
            return false;
        if (k == self)
            continue;
        lh_run_tensor_move(t, true, k, t->from, lh_run_tensor_slice(t, t->from, k));
        lh_run_tensor_move_memory(t, false, k, t->blocks[k], own.count);
    }
    return true;
}

static bool
reduce_into(const LhRunTensor *t, uint64_t bytes, unsigned char *into)
{
    return (t->c->call.op->collective.reduction == LH_REDUCE_SUM ? sum : merge)(t, bytes, into);
}

/* Place of this rank's reduced slice in the receive region: all of it (reduce-scatter), or its
 * slice. */
static LhByteRange
place_of_slice(const LhRunTensor *t)
{
    const bool scatter = t->c->call.op->collective.kind == LH_COLL_REDUCE_SCATTER;
    const LhByteRange own = lh_run_tensor_slice(t, t->from, t->c->call.position);

    return scatter ? (LhByteRange){ 0, own.count } : own;
}

bool
lh_reduce_slices(LhRunTensor *t)
{
    const LhByteRange place = place_of_slice(t);
    unsigned char *result =
        lh_run_tensor_are_apart(t) ? lh_run_tensor_in_place(t, t->to, place) : NULL;

    if (result != NULL)
        return reduce_into(t, place.count, result);
    result = lh_run_tensor_temporary(t, place.count);
    return result != NULL && reduce_into(t, place.count, result) &&
           lh_run_tensor_keep(t, place, result);
}

/* Allocates the blocks of a ring: the first is received, the second is this rank's own; their sum
 * is sent on. */
static bool
room_for_sums(LhRunTensor *t)
{
    const uint64_t bytes = lh_run_tensor_slice(t, t->from, t->c->call.position).count;

    t->blocks_count = 2;
    t->blocks = lh_item_memory(t->c->item, t->blocks_count * sizeof(*t->blocks));
    t->blocks[0] = lh_run_tensor_temporary(t, bytes);
    t->blocks[1] = lh_run_tensor_temporary(t, bytes);
    t->sum = lh_run_tensor_temporary(t, bytes);
    return t->blocks[0] != NULL && t->blocks[1] != NULL && t->sum != NULL;
}

/* A slice starts at the member after its owner and goes around the ring, so the owner adds the last
 * term. */
bool
lh_make_sum(LhRunTensor *t)
{
    const LhCollectiveRun *c = t->c;
    const LhByteRange sent = lh_run_tensor_slice(t, t->from, lh_collective_before(c, c->step + 1));

    if (c->step == 0 && !room_for_sums(t))
        return false;
    if (c->step == 0)
        lh_run_tensor_move(t, true, lh_collective_further(c, 1), t->from, sent);
    else
        lh_run_tensor_move_memory(t, true, lh_collective_further(c, 1), t->sum, sent.count);
    lh_run_tensor_move_memory(t, false, lh_collective_before(c, 1), t->blocks[0], sent.count);
    return true;
}

bool
lh_add_to_sum(LhRunTensor *t)
{
    const LhCollectiveRun *c = t->c;
    const uint32_t distance = (c->step + 2) % c->call.members;
    const LhByteRange own = lh_run_tensor_slice(t, t->from, lh_collective_before(c, distance));

    return lh_run_tensor_take(t, own, t->blocks[1]) && reduce_into(t, own.count, t->sum) &&
           (distance > 0 || lh_run_tensor_keep(t, place_of_slice(t), t->sum));
}

bool
lh_make_reduced(LhRunTensor *t)
{
    const LhCollectiveRun *c = t->c;

    for (uint32_t k = 0; k < c->call.members; k++) {
        if (k == c->call.position)
            continue;
        lh_run_tensor_move(t, true, k, t->to, lh_run_tensor_block(t, c->call.position));
        lh_run_tensor_move(t, false, k, t->to, lh_run_tensor_block(t, k));
    }
    return true;
}
