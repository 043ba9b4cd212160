/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/common/heads_moves.h"

#include "kernels/sizes.h"
#include "sched/common/heads_forms.h"

static LhGroup
group_of(const LhHeadsCut *cut, uint32_t rank)
{
    return (LhGroup){
        .base = rank - rank % cut->members, .stride = 1, .count = cut->members, .outer_count = 1
    };
}

/* Arguments of an elementwise call on @count parts of a slot. */
static LhKernelArgs
rows_args(const LhProgram *program, uint16_t slot, uint32_t count)
{
    const LhProgramParams *p = &program->params;
    const uint64_t rows =
        count * (p->attention.seq_length / lh_placement_segments(&program->placement));

    if (lh_tensor_is_kv(program->slots[slot].kind))
        return lh_pass_slice_args(program, lh_pass_kv_args(p, rows));
    return lh_pass_slice_args(program, lh_pass_q_args(p, rows));
}

/* Copies parts between two slots and converts them if the types differ; with @reversed, in
 * reverse order of parts. Between fp32 and 16-bit activations the copy uses the kernel that
 * starts a sum. */
static void
copy(LhEmitter *e, uint8_t stream, LhRegion from, LhRegion to, bool reversed)
{
    const LhSlot *slots = e->program->slots;
    const uint32_t activation = lh_dtype_bytes(e->program->params.attention.dtype);
    const uint32_t bytes = lh_slot_element_bytes(&slots[to.slot]);
    LhKernelArgs args = rows_args(e->program, to.slot, to.count);
    LhKernelId kernel = LH_KERNEL_ID_cast;

    if (lh_slot_element_bytes(&slots[from.slot]) == bytes)
        kernel = bytes == activation ? LH_KERNEL_ID_copy : LH_KERNEL_ID_add_to_fp32;
    args.first = kernel == LH_KERNEL_ID_add_to_fp32;
    args.reversed = reversed;
    if (stream == LH_PASS_STREAM_COMPUTE)
        lh_pass_compute(e, kernel, &args);
    else
        lh_emit_compute(e, stream, kernel, &args);
    lh_emit_operand(e, from.slot, from.part, from.count);
    lh_emit_operand(e, to.slot, to.part, to.count);
}

static LhRegion
whole(const LhEmitter *e, uint16_t slot)
{
    return (LhRegion){ slot, 0, e->program->slots[slot].parts };
}

/* One all-to-all: slot `from` arrives in slot `to`. */
typedef struct {
    uint16_t from, to;
    bool to_heads;
    LhHalf half;
} Trip;

/* Posts the all-to-all. Each of the rank's segments is a tensor of its own, which consists of
 * the members' parts in member order. */
static void
all_to_all(LhEmitter *e, const LhHeads *heads, const Trip *trip)
{
    const uint32_t members = heads->cut.members;
    uint32_t *marks = e->marks;

    marks[LH_MARK_EXCHANGE] = lh_emit_collective(e, LH_PASS_STREAM_COMM, LH_COLL_ALL_TO_ALL,
                                                 group_of(&heads->cut, e->rank));
    lh_emit_after(e, marks[LH_MARK_COMPUTE]);
    for (uint32_t part = 0; part < heads->parts; part += members)
        lh_emit_tensor(e, (LhRegion){ trip->from, part, members, (uint8_t)trip->half },
                       (LhRegion){ trip->to, part, members, (uint8_t)trip->half });
}

/* The parts of one group member in a slot: by tokens its slices of the rank's segment, by heads
 * the rank's slices of its segment. */
typedef struct {
    uint16_t slot;
    uint32_t first, stride, count;
} Parts;

static Parts
parts_of(const LhEmitter *e, const LhHeadsCut *cut, uint16_t slot, bool by_heads, uint32_t member)
{
    if (by_heads)
        return (Parts){ slot, member, cut->members, lh_heads_own(cut, e->rank) };
    return (Parts){ slot, lh_slices_first(cut->slices, cut->members, member), 1,
                    lh_heads_own(cut, member) };
}

static LhRegion
one_part(Parts parts, uint32_t i, LhHalf half)
{
    return (LhRegion){ parts.slot, parts.first + i * parts.stride, 1, (uint8_t)half };
}

static void
add_messages(LhEmitter *e, const LhHeadsCut *cut, bool send, uint32_t member, Parts parts,
             LhHalf half)
{
    const uint32_t peer = e->rank - e->rank % cut->members + member;
    const uint64_t bytes = lh_region_bytes(e->program, one_part(parts, 0, half));

    for (uint32_t i = 0; i < parts.count; i++) {
        if (i % LH_PART_REGIONS_MAX == 0)
            lh_emit_part(e, send, peer, 0, MIN(parts.count - i, LH_PART_REGIONS_MAX) * bytes);
        lh_emit_part_region(e, one_part(parts, i, half));
    }
}

/* Copies the rank's own share of slices that do not divide evenly. */
static void
keep_own(LhEmitter *e, const LhHeads *heads, const Trip *trip)
{
    const LhHeadsCut *cut = &heads->cut;
    const uint32_t self = e->rank % cut->members;
    const Parts mine = parts_of(e, cut, trip->from, !trip->to_heads, self);
    const Parts kept = parts_of(e, cut, trip->to, trip->to_heads, self);

    for (uint32_t i = 0; i < mine.count; i++)
        copy(e, LH_PASS_STREAM_COMPUTE, one_part(mine, i, LH_HALF_BOTH),
             one_part(kept, i, LH_HALF_BOTH), false);
}

/* Exchanges slices that do not divide evenly: messages to and from all other members, like
 * NCCL's all-to-all with unequal counts. */
static void
exchange(LhEmitter *e, const LhHeads *heads, const Trip *trip)
{
    const LhHeadsCut *cut = &heads->cut;
    const uint32_t self = e->rank % cut->members;

    lh_pass_exchange(e);
    for (uint32_t k = 1; k < cut->members; k++) {
        const uint32_t to_member = (self + k) % cut->members;
        const uint32_t from_member = (self + cut->members - k) % cut->members;

        add_messages(e, cut, true, to_member,
                     parts_of(e, cut, trip->from, !trip->to_heads, to_member), trip->half);
        add_messages(e, cut, false, from_member,
                     parts_of(e, cut, trip->to, trip->to_heads, from_member), trip->half);
    }
}

static void
post_half(LhEmitter *e, const LhHeads *heads, Trip trip, LhHalf half)
{
    trip.half = half;
    if (lh_heads_uneven(&heads->cut))
        exchange(e, heads, &trip);
    else
        all_to_all(e, heads, &trip);
}

/* Posts the calls that send a tensor: one, or one per half. */
static void
send(LhEmitter *e, const LhHeads *heads, LhHeadsTensor t, Trip trip)
{
    if (lh_heads_uneven(&heads->cut))
        keep_own(e, heads, &trip);
    if (!heads->apart || !lh_heads_is_kv(t)) {
        post_half(e, heads, trip, LH_HALF_BOTH);
        return;
    }
    post_half(e, heads, trip, LH_HALF_K);
    post_half(e, heads, trip, LH_HALF_V);
}

/* Copies k and v into the layout that is sent, one replica per member. */
static void
replicate(LhEmitter *e, const LhHeads *heads)
{
    const LhHeadsCut *cut = &heads->cut;

    for (uint32_t i = 0; i < cut->members; i++) {
        const uint32_t slice = lh_slices_first(cut->kv_slices, cut->members, i);

        copy(e, LH_PASS_STREAM_COMPUTE, (LhRegion){ heads->tokens[LH_HEADS_KV], slice, 1 },
             (LhRegion){ heads->stage[LH_HEADS_KV], i, 1 }, false);
    }
}

static void
add_replicas(LhEmitter *e, const LhHeads *heads)
{
    const LhHeadsCut *cut = &heads->cut;
    LhKernelArgs args = rows_args(e->program, heads->dkv_sum, 1);

    for (uint32_t i = 0; i < cut->members; i++) {
        args.first = i % (cut->members / cut->kv_slices) == 0;
        lh_pass_compute(e, LH_KERNEL_ID_add_to_fp32, &args);
        lh_emit_operand(e, heads->stage[LH_HEADS_DKV], i, 1);
        lh_emit_operand(e, heads->dkv_sum, lh_slices_first(cut->kv_slices, cut->members, i), 1);
    }
    copy(e, LH_PASS_STREAM_COMPUTE, whole(e, heads->dkv_sum), whole(e, heads->tokens[LH_HEADS_DKV]),
         false);
}

void
lh_heads_move_one_by_one(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *list,
                         unsigned count, bool to_heads)
{
    for (unsigned i = 0; i < count; i++) {
        const LhHeadsTensor t = list[i];
        const bool replicated = lh_heads_is_kv(t) && lh_heads_replicated(&heads->cut);
        const LhRegion tokens = whole(e, heads->tokens[t]), stage = whole(e, heads->stage[t]);

        if (to_heads && replicated)
            replicate(e, heads);
        else if (to_heads)
            copy(e, LH_PASS_STREAM_COMPUTE, tokens, stage, false);
        if (to_heads)
            send(e, heads, t, (Trip){ heads->stage[t], heads->heads[t], true });
        else
            send(e, heads, t, (Trip){ heads->heads[t], heads->stage[t], false });
        lh_pass_wait(e, e->marks[LH_MARK_EXCHANGE]);
        if (!to_heads && replicated)
            add_replicas(e, heads);
        else if (!to_heads)
            copy(e, LH_PASS_STREAM_COMPUTE, stage, tokens, false);
    }
}

/* Copies between arrival order and token order of segments: the second half-chunks are reversed.
 * Returns the last op. */
static uint32_t
reorder(LhEmitter *e, uint8_t stream, uint32_t after, uint16_t from, uint16_t to)
{
    const uint32_t half = e->program->slots[to].parts / 2;

    copy(e, stream, (LhRegion){ from, 0, half }, (LhRegion){ to, 0, half }, false);
    lh_emit_after(e, after);
    copy(e, stream, (LhRegion){ from, half, half }, (LhRegion){ to, half, half }, true);
    return lh_emit_last(e)->id;
}

static uint32_t
lay_out(LhEmitter *e, uint8_t stream, uint32_t after, uint16_t from, uint16_t to)
{
    copy(e, stream, whole(e, from), whole(e, to), false);
    lh_emit_after(e, after);
    return lh_emit_last(e)->id;
}

/* Follows flash_attn_a2a_communicate() of TransformerEngine. */
void
lh_heads_move_pipelined(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *list,
                        unsigned count, bool to_heads)
{
    const uint32_t *marks = e->marks;
    uint32_t done = LH_OP_NONE;

    for (unsigned i = 0; i < count; i++) {
        const LhHeadsTensor t = list[i];
        const uint16_t stage = heads->stage[t], arrived = heads->arrived[t];

        if (to_heads)
            lay_out(e, LH_PASS_STREAM_COMPUTE, LH_OP_NONE, heads->tokens[t], stage);
        else
            reorder(e, LH_PASS_STREAM_COMPUTE, LH_OP_NONE, heads->heads[t], stage);
        send(e, heads, t, (Trip){ stage, arrived, to_heads });
        if (to_heads)
            done =
                reorder(e, LH_HEADS_STREAM_CP, marks[LH_MARK_EXCHANGE], arrived, heads->heads[t]);
        else
            done =
                lay_out(e, LH_HEADS_STREAM_CP, marks[LH_MARK_EXCHANGE], arrived, heads->tokens[t]);
        if (!lh_pass_overlaps(&e->program->params))
            lh_pass_wait(e, done);
    }
    lh_pass_wait(e, done);
}
