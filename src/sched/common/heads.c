/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not modelled: additional copies that public code needs for some layouts (sequence first or batch
 * first).
 */
#include "sched/common/heads.h"

#include "kernels/sizes.h"
#include "sched/common/heads_forms.h"

/* Picks a number of heads that the ranks do not divide: one too few for two each. */
static void
make_odd(LhProgramParams *p)
{
    p->attention.heads = p->attention.groups = 2 * p->ranks - 1;
    p->attention.hidden_size = 0;
}

const LhOption lh_option_hierarchy = {
    .name = "hierarchical_context_parallel_sizes",
    .category = LH_ABOUT_SCHEDULE_RANKS,
    .type = LH_OPTION_SIZES,
    .help = "Two numbers U,R: ranks that exchange tokens for heads with each other, and ranks in a "
            "ring between these groups. Their product is the number of ranks.",
};

const LhOption lh_option_pad_heads = {
    .name = "pad_heads",
    .category = LH_ABOUT_SCHEDULE_RANKS,
    .type = LH_OPTION_FLAG,
    .help = "Add idle heads until the ranks divide the heads evenly.",
    .shape = make_odd,
};

static const char *const te_versions[] = {
    [LH_TE_2_15] = "2.15",
    [LH_TE_2_8] = "2.8",
    [LH_TE_2_7] = "2.7",
    NULL,
};

const LhOption lh_option_te_version = {
    .name = "te_version",
    .category = LH_ABOUT_SCHEDULE_WORK,
    .type = LH_OPTION_CHOICE,
    .choices = te_versions,
    .help = "TransformerEngine version whose backward pass is modelled: 2.15 or later (2.15, "
            "default), 2.8 to 2.14 (2.8), or 2.7 or earlier (2.7).",
};

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
is_gradient_sum(LhHeadsTensor t)
{
    return t == LH_HEADS_DQ || t == LH_HEADS_DKV;
}

static uint32_t
slices_of(const LhHeadsCut *cut, LhHeadsTensor t)
{
    return lh_heads_is_kv(t) ? cut->kv_slices : cut->slices;
}

/* The number of slices of a segment in the layout that is sent. */
static uint32_t
staged_slices(const LhHeadsCut *cut, LhHeadsTensor t)
{
    return MAX(slices_of(cut, t), cut->members);
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
    return (lh_heads_is_kv(t) ? z->kv : z->q) / z->e * element_bytes / parts;
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

/* The role of a slot that holds a tensor saved by heads between the passes. */
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

/* Declares a tensor in all layouts needed. */
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

/* Frees the tensors saved by heads, in the last pass that needs them. */
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

    /* Linear attention is called with a causal mask even for one token: its decay depends on
     * distances. */
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
