/*
 * The exchange of heads for tokens; see the header. Not modelled: additional copies that public
 * code needs for some layouts (sequence first or batch first).
 */
#include "sched/common/heads.h"

#include "kernels/sizes.h"

static const struct {
    LhTensorKind kind;
    LhPass pass; /* the pass that moves it */
    bool to_heads;
    const char *tokens, *stage, *arrived, *heads;
} tensors[LH_HEADS_TENSORS] = {
    [LH_HEADS_Q] = { LH_TENSOR_Q, LH_PASS_FWD, true, "q", "q_stage", "q_arrived", "q_heads" },
    [LH_HEADS_KV] = { LH_TENSOR_KV, LH_PASS_FWD, true, "kv", "kv_stage", "kv_arrived", "kv_heads" },
    [LH_HEADS_O] = { LH_TENSOR_O, LH_PASS_FWD, false, "o", "o_stage", "o_arrived", "o_heads" },
    [LH_HEADS_DO] = { LH_TENSOR_DO, LH_PASS_BWD, true, "do", "do_stage", "do_arrived", "do_heads" },
    [LH_HEADS_DQ] = { LH_TENSOR_DQ, LH_PASS_BWD, false, "dq", "dq_stage", "dq_arrived",
                      "dq_heads" },
    [LH_HEADS_DKV] = { LH_TENSOR_DKV, LH_PASS_BWD, false, "dkv", "dkv_stage", "dkv_arrived",
                       "dkv_heads" },
};

static const LhHeadsTensor inputs[] = { LH_HEADS_Q, LH_HEADS_KV };
static const LhHeadsTensor output[] = { LH_HEADS_O };
static const LhHeadsTensor output_gradients[] = { LH_HEADS_DO, LH_HEADS_O };
static const LhHeadsTensor input_gradients[] = { LH_HEADS_DQ, LH_HEADS_DKV };

/* ---- shapes ---- */

static bool
is_kv(LhHeadsTensor t)
{
    return lh_tensor_is_kv(tensors[t].kind);
}

static bool
is_gradient_sum(LhHeadsTensor t)
{
    return t == LH_HEADS_DQ || t == LH_HEADS_DKV;
}

static uint32_t
slices_of(const LhHeadsCut *cut, LhHeadsTensor t)
{
    return is_kv(t) ? cut->kv_slices : cut->slices;
}

/* Number of slices of a segment in the layout that is sent. */
static uint32_t
staged_slices(const LhHeadsCut *cut, LhHeadsTensor t)
{
    return MAX(slices_of(cut, t), cut->members);
}

static LhGroup
group_of(const LhHeadsCut *cut, uint32_t rank)
{
    return (LhGroup){
        .base = rank - rank % cut->members, .stride = 1, .count = cut->members, .outer_count = 1
    };
}

/* ---- declarations ---- */

/* Bytes of a part: one segment of one slice. */
static uint64_t
part_bytes(const LhProgram *program, const LhHeads *heads, const LhPassSizes *z, LhHeadsTensor t,
           uint32_t element_bytes)
{
    const uint64_t parts =
        (uint64_t)lh_placement_parts(&program->placement) * slices_of(&heads->cut, t);

    g_assert(parts > 0 && z->e > 0);
    return (is_kv(t) ? z->kv : z->q) / z->e * element_bytes / parts;
}

static void
add_between(LhProgram *program, LhHeads *heads, const LhPassSizes *z, LhHeadsTensor t)
{
    const uint32_t segments = lh_placement_parts(&program->placement);
    const uint32_t bytes = is_gradient_sum(t) ? z->w : z->e;
    const uint32_t parts = segments * staged_slices(&heads->cut, t);
    const uint64_t part = part_bytes(program, heads, z, t, bytes);

    heads->stage[t] = lh_pass_add_slot(program, tensors[t].stage, tensors[t].kind, LH_SLOT_TEMP,
                                       parts, part, bytes);
    if (heads->two_stages)
        heads->arrived[t] = lh_pass_add_slot(program, tensors[t].arrived, tensors[t].kind,
                                             LH_SLOT_TEMP, parts, part, bytes);
}

/* The role of a slot that holds, by heads, what is saved between the passes. */
static LhSlotRole
role_of_saved(const LhProgramParams *p)
{
    if (!lh_pass_has(p, LH_PASS_FWD))
        return LH_SLOT_INPUT;
    return p->keep_saved && !lh_pass_has(p, LH_PASS_BWD) ? LH_SLOT_OUTPUT : LH_SLOT_TEMP;
}

/* Whether the forward pass saves @t by heads. */
static bool
is_saved(const LhHeads *heads, LhHeadsTensor t)
{
    return heads->cut.members > 1 && (t == LH_HEADS_Q || t == LH_HEADS_KV ||
                                      (t == LH_HEADS_O && heads->o == LH_HEADS_O_KEPT));
}

static void
add_heads(LhProgram *program, LhHeads *heads, const LhPassSizes *z, LhHeadsTensor t)
{
    const uint32_t bytes = is_gradient_sum(t) ? z->w : z->e;
    const uint32_t own = lh_slices_share(slices_of(&heads->cut, t), heads->cut.members);
    const LhSlotRole role = is_saved(heads, t) ? role_of_saved(&program->params) : LH_SLOT_TEMP;

    heads->heads[t] =
        lh_pass_add_slot(program, tensors[t].heads, tensors[t].kind, role, own * heads->parts,
                         part_bytes(program, heads, z, t, bytes), bytes);
    program->slots[heads->heads[t]].by_heads = role != LH_SLOT_TEMP;
}

/* Declares a tensor in all the layouts in which it is needed. */
static void
add_tensor(LhProgram *program, LhHeads *heads, const LhPassSizes *z, LhHeadsTensor t)
{
    const LhProgramParams *p = &program->params;
    const bool saved = tensors[t].pass == LH_PASS_FWD && !lh_pass_has(p, LH_PASS_FWD);
    const bool by_heads = saved && is_saved(heads, t);
    const bool result = !tensors[t].to_heads && !saved;
    const uint32_t parts = lh_placement_parts(&program->placement) * slices_of(&heads->cut, t);
    uint16_t slot;

    if (!by_heads) {
        slot = lh_pass_add_slot(program, tensors[t].tokens, tensors[t].kind,
                                result ? LH_SLOT_OUTPUT : LH_SLOT_INPUT, parts,
                                part_bytes(program, heads, z, t, z->e), z->e);
        heads->tokens[t] = heads->stage[t] = heads->arrived[t] = heads->heads[t] = slot;
    }
    if (heads->cut.members == 1 || (saved && t == LH_HEADS_O && heads->o == LH_HEADS_O_UNUSED))
        return;
    add_heads(program, heads, z, t);
    if (!by_heads)
        add_between(program, heads, z, t);
}

static void
add_statistics(LhProgram *program, LhHeads *heads, const LhPassSizes *z)
{
    const LhHeadsCut *cut = &heads->cut;
    const uint32_t segments = lh_placement_parts(&program->placement);
    const LhSlotRole role = role_of_saved(&program->params);

    if (!program->params.attention.linear) {
        heads->lse = lh_pass_add_slot(program, "lse_heads", LH_TENSOR_LSE, role,
                                      heads->parts * lh_slices_share(cut->slices, cut->members),
                                      z->s / (segments * cut->slices), LH_FP32_BYTES);
        program->slots[heads->lse].by_heads = role != LH_SLOT_TEMP && cut->members > 1;
    }
    if (lh_heads_replicated(cut) && lh_pass_has(&program->params, LH_PASS_BWD))
        heads->dkv_sum = lh_pass_add_slot(
            program, "dkv_sum", LH_TENSOR_DKV, LH_SLOT_TEMP, segments * cut->kv_slices,
            part_bytes(program, heads, z, LH_HEADS_DKV, LH_FP32_BYTES), LH_FP32_BYTES);
}

void
lh_heads_declare(LhProgram *program, LhHeads *heads)
{
    const LhProgramParams *p = &program->params;
    const LhPassSizes z = lh_heads_sizes(p, heads);

    program->head_slices = heads->cut.slices;
    program->kv_slices = heads->cut.kv_slices;
    heads->parts = heads->cut.members * lh_placement_parts(&program->placement);
    if (role_of_saved(p) != LH_SLOT_TEMP && heads->cut.members > 1)
        program->saved_group = heads->cut.members;
    lh_program_add_stream(program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(program, "comm", LH_STREAM_COMM);
    for (LhHeadsTensor t = 0; t < LH_HEADS_TENSORS; t++) {
        if (tensors[t].pass == LH_PASS_FWD || lh_pass_has(p, LH_PASS_BWD))
            add_tensor(program, heads, &z, t);
    }
    add_statistics(program, heads, &z);
}

LhPassSlots
lh_heads_slots(const LhHeads *heads)
{
    const uint16_t *x = heads->heads;

    return (LhPassSlots){ .q = x[LH_HEADS_Q],
                          .kv = x[LH_HEADS_KV],
                          .o = x[LH_HEADS_O],
                          .lse = heads->lse,
                          .dout = x[LH_HEADS_DO],
                          .dq = x[LH_HEADS_DQ],
                          .dkv = x[LH_HEADS_DKV] };
}

/* ---- moving ---- */

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

/* Copies parts between two slots and converts them where the types differ; with @reversed, from the
 * last part to the first. fp32 next to 16-bit activations is copied by the kernel that starts a
 * sum. */
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

/* What travels in one call: slot `from` arrives in slot `to`. */
typedef struct {
    uint16_t from, to;
    bool to_heads;
    LhHalf half;
} Trip;

/* Posts the all-to-all. Each of the rank's segments is a tensor of its own, which consists of the
 * members' parts in their order. */
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

/* The parts that one member of the group has in a slot: by tokens its slices of the rank's segment,
 * by heads the rank's slices of its segment. */
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

/* The rank's own share of slices that do not divide evenly is copied. */
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

/* The exchange of slices that do not divide evenly: messages to and from all other members, as
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

/* Posts the calls in which a tensor travels: one, or one for each half. */
static void
send(LhEmitter *e, const LhHeads *heads, LhHeadsTensor t, Trip trip)
{
    if (lh_heads_uneven(&heads->cut))
        keep_own(e, heads, &trip);
    if (!heads->apart || !is_kv(t)) {
        post_half(e, heads, trip, LH_HALF_BOTH);
        return;
    }
    post_half(e, heads, trip, LH_HALF_K);
    post_half(e, heads, trip, LH_HALF_V);
}

/* Copies k and v into the layout that is sent, one replica for each member. */
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
        const bool replicated = is_kv(t) && lh_heads_replicated(&heads->cut);
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

/* Copies between the order in which segments arrive and that of their tokens: the second
 * half-chunks are reversed. Returns the last op. */
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

/* As flash_attn_a2a_communicate() of TransformerEngine. */
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

/* ---- the frame of both passes ---- */

static void
set_live(LhEmitter *e, uint16_t slot, bool live)
{
    if (e->program->slots[slot].role != LH_SLOT_TEMP)
        return;
    if (live)
        lh_emit_alloc(e, slot);
    else
        lh_emit_free(e, slot);
}

static void
set_all_live(LhEmitter *e, const uint16_t *slots, const LhHeadsTensor *list, unsigned count,
             bool live)
{
    for (unsigned i = 0; i < count; i++)
        set_live(e, slots[list[i]], live);
}

static void
set_between_live(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *list, unsigned count,
                 bool live)
{
    set_all_live(e, heads->stage, list, count, live);
    if (heads->two_stages)
        set_all_live(e, heads->arrived, list, count, live);
    if (lh_heads_replicated(&heads->cut) && list == input_gradients)
        set_live(e, heads->dkv_sum, live);
}

static void
move(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *list, unsigned count, bool to_heads)
{
    if (heads->cut.members == 1)
        return;
    set_between_live(e, heads, list, count, true);
    heads->move(e, heads, list, count, to_heads);
    set_between_live(e, heads, list, count, false);
}

static void
set_statistics_live(LhEmitter *e, const LhHeads *heads, bool live)
{
    if (!e->program->params.attention.linear)
        set_live(e, heads->lse, live);
}

static void
begin(LhEmitter *e, const LhHeads *heads)
{
    const bool backward = e->phase == LH_PHASE_BACKWARD;
    const LhHeadsTensor *list = backward ? output_gradients : inputs;
    const unsigned count = backward ? lh_heads_gathered(heads) : G_N_ELEMENTS(inputs);

    set_all_live(e, heads->heads, list, count, true);
    move(e, heads, list, count, true);
    if (backward) {
        set_all_live(e, heads->heads, input_gradients, G_N_ELEMENTS(input_gradients), true);
        return;
    }
    set_live(e, heads->heads[LH_HEADS_O], true);
    set_statistics_live(e, heads, true);
}

/* Frees what is saved by heads, in the last pass that needs it. */
static void
free_saved(LhEmitter *e, const LhHeads *heads)
{
    set_all_live(e, heads->heads, inputs, G_N_ELEMENTS(inputs), false);
    if (heads->o == LH_HEADS_O_KEPT)
        set_live(e, heads->heads[LH_HEADS_O], false);
    set_statistics_live(e, heads, false);
}

static void
end(LhEmitter *e, const LhHeads *heads)
{
    if (e->phase == LH_PHASE_BACKWARD) {
        set_all_live(e, heads->heads, output_gradients, lh_heads_gathered(heads), false);
        free_saved(e, heads);
        move(e, heads, input_gradients, G_N_ELEMENTS(input_gradients), false);
        set_all_live(e, heads->heads, input_gradients, G_N_ELEMENTS(input_gradients), false);
        return;
    }
    move(e, heads, output, G_N_ELEMENTS(output), false);
    if (heads->o != LH_HEADS_O_KEPT)
        set_live(e, heads->heads[LH_HEADS_O], false);
    if (!lh_pass_has(&e->program->params, LH_PASS_BWD))
        free_saved(e, heads);
}

/* ---- attention over everything ---- */

LhKernelArgs
lh_heads_attention_args(const LhProgram *program, uint32_t parts)
{
    const LhProgramParams *p = &program->params;
    const uint64_t tokens = p->attention.seq_length / parts;
    const LhPassRows rows = {
        .first = { .stride = 1, .count = tokens },
        .part_step = (int64_t)tokens,
        .parts = parts,
    };
    LhKernelArgs args = lh_pass_position_args(program, rows, rows);

    /* Linear attention is called with a causal mask even for one token: it knows distances. */
    if (p->attention.linear || (args.mask == LH_MASK_POSITIONS && lh_mask_is_plain(&p->mask)))
        args.mask = LH_MASK_CAUSAL;
    args.first = true;
    return args;
}

static void
attend_whole(LhEmitter *e, uint32_t step)
{
    const LhHeads *heads = e->program->plan;
    const LhPassSlots slots = lh_heads_slots(heads);

    (void)step;
    for (uint32_t slice = 0; slice < lh_heads_own(&heads->cut, e->rank); slice++) {
        const uint32_t first = slice * heads->parts;

        if (e->phase == LH_PHASE_FORWARD)
            lh_pass_attend(e, &heads->attention, &slots, first, heads->parts);
        else
            lh_pass_attend_grad(e, &heads->attention, &slots, first, heads->parts);
    }
}

void
lh_heads_set_whole(const LhProgram *program, LhHeads *heads)
{
    heads->attention = lh_heads_attention_args(program, heads->parts);
    heads->attend = attend_whole;
    heads->forward_steps = heads->backward_steps = 1;
}

void
lh_heads_declare_whole(LhProgram *program, const LhHeads *heads)
{
    LhHeads *plan = g_memdup2(heads, sizeof(*heads));

    program->plan = plan;
    lh_heads_declare(program, plan);
    lh_heads_set_whole(program, plan);
}

/* ---- a pass ---- */

uint32_t
lh_heads_steps(const LhProgram *program, uint32_t rank)
{
    const LhHeads *heads = program->plan;
    const LhProgramParams *p = &program->params;

    (void)rank;
    return (lh_pass_has(p, LH_PASS_FWD) ? heads->forward_steps + 2 : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? heads->backward_steps + 2 : 0);
}

void
lh_heads_emit(LhEmitter *e, uint32_t step)
{
    const LhHeads *heads = e->program->plan;

    step = lh_pass_enter(e, step, heads->forward_steps + 2);
    if (step == 0)
        begin(e, heads);
    else if (step <= (e->phase == LH_PHASE_FORWARD ? heads->forward_steps : heads->backward_steps))
        heads->attend(e, step - 1);
    else
        end(e, heads);
}
