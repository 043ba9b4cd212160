/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward pass and declarations common to all ranks; the rest is in writer.c.
 */
#include "synth/generator.h"

#include "program/work.h"
#include "sched/common/pass.h"
#include "synth/generator_backward.h"
#include "synth/writer.h"

#define STAGES 3U /* per turn, if results leave early */

const LhSynthStyle lh_synth_styles[LH_SYNTH_STYLES] = {
    { LH_SYNTH_ACCUMULATE, 2, false }, { LH_SYNTH_BLOCKS, 2, false },
    { LH_SYNTH_ACCUMULATE, 4, false }, { LH_SYNTH_BLOCKS, 4, false },
    { LH_SYNTH_ACCUMULATE, 2, true },  { LH_SYNTH_BLOCKS, 2, true },
    { LH_SYNTH_ACCUMULATE, 4, true },  { LH_SYNTH_BLOCKS, 4, true },
};

/* Results of the rank's place while they are computed. */
typedef struct {
    LhSynthWaits *waits; /* [slices * chunks]: ops that a result waits for */
    bool *begun;         /* [slices * chunks]: a first contribution is in it */
} Results;

/* --- inputs -------------------------------------------------------------------------------------
 */

static LhSynthInput
rows_input(const LhSynthEmission *e)
{
    return (LhSynthInput){ .rows = true,
                           .label = 0,
                           .slices = e->p->grain.slices,
                           .width = e->program->head_slices,
                           .slots = 1,
                           .from = { e->slots.q },
                           .to = { e->slots.rows } };
}

static LhSynthInput
columns_input(const LhSynthEmission *e)
{
    return (LhSynthInput){ .label = 1,
                           .slices = e->p->kv_slices,
                           .width = e->program->kv_slices,
                           .slots = 1,
                           .from = { e->slots.kv },
                           .to = { e->slots.columns } };
}

/* Copies the rank's own pieces to where received ones are placed. */
static void
copy_piece(LhSynthWriter *w, const LhSynthInput *input, uint32_t from, uint32_t at)
{
    const LhKernelArgs args =
        input->rows ? lh_synth_row_args(w->e, 1) : lh_synth_column_args(w->e, 1);

    lh_synth_note(w, &w->copied,
                  lh_emit_compute(w->emitter, LH_SYNTH_STREAM_FIRST, LH_KERNEL_ID_copy, &args));
    lh_emit_operand(w->emitter, input->from[0], from, 1);
    lh_emit_operand(w->emitter, input->to[0], at, 1);
    if (input->rows)
        w->own_rows[from] = at;
}

/* --- attention ----------------------------------------------------------------------------------
 */

/* Merges the block's output into that of the row. */
static void
merge_block(LhSynthWriter *w, LhSynthWaits *result, uint32_t entry, uint32_t at, uint8_t stream)
{
    const LhSynthEmission *e = w->e;
    const LhKernelArgs args = lh_synth_row_args(e, e->p->pieces);
    const uint32_t id = lh_emit_compute(w->emitter, stream, LH_KERNEL_ID_merge_lse, &args);

    lh_emit_operand(w->emitter, e->slots.block, at, e->p->pieces);
    lh_emit_operand(w->emitter, e->slots.block, w->site->result_at[entry], e->p->pieces);
    lh_synth_wait(w, result);
    lh_synth_note(w, result, id);
}

/* Rows [first, first + count) of the call: either all of them start a sum or none does. */
static void
attend_rows(LhSynthWriter *w, Results *r, const LhSynthCall *call, uint32_t first, uint32_t count,
            uint8_t stream)
{
    const LhSynthEmission *e = w->e;
    const LhSynthProblem *p = e->p;
    const bool blocks = e->layout->kernels == LH_SYNTH_BLOCKS;
    const uint32_t entry = lh_synth_row_entry(w, call, first);
    const uint32_t column = lh_synth_column_entry(w, call, 0);
    LhKernelArgs args =
        lh_synth_args(p, entry % p->chunks, count, column % p->chunks, call->columns);
    LhSynthWaits waits = lh_synth_inputs_of(w, call, call->forward.turn);
    uint32_t id;

    args.first = blocks || !r->begun[entry];
    args.rule = &e->program->params.mask;
    id = lh_emit_compute(w->emitter, stream,
                         blocks ? LH_KERNEL_ID_attention_block : LH_KERNEL_ID_attention_fwd, &args);
    lh_emit_operand(w->emitter, e->slots.rows, w->site->row_at[entry], count * p->pieces);
    lh_emit_operand(w->emitter, e->slots.columns, w->site->column_at[column],
                    call->columns * p->pieces);
    lh_emit_operand(w->emitter, e->slots.block, call->out + first * p->pieces, count * p->pieces);
    for (uint32_t i = first; i < first + count && !blocks; i++)
        lh_synth_join(&waits, &r->waits[lh_synth_row_entry(w, call, i)]);
    lh_synth_wait(w, &waits);
    for (uint32_t i = first; i < first + count; i++) {
        const uint32_t row = lh_synth_row_entry(w, call, i);

        lh_synth_note(w, &r->waits[row], id);
        if (blocks && r->begun[row])
            merge_block(w, &r->waits[row], row, call->out + i * p->pieces, stream);
        r->begun[row] = true;
    }
}

static void
attend(LhSynthWriter *w, Results *r, const LhSynthCall *call)
{
    const bool blocks = w->e->layout->kernels == LH_SYNTH_BLOCKS;
    const uint8_t stream = lh_synth_next_stream(w);
    uint32_t first = 0;

    while (first < call->rows) {
        const bool begun = r->begun[lh_synth_row_entry(w, call, first)];
        uint32_t end = first + 1;

        while (end < call->rows && (blocks || r->begun[lh_synth_row_entry(w, call, end)] == begun))
            end++;
        attend_rows(w, r, call, first, end - first, stream);
        first = end;
    }
}

/* Returns results of rows that live here or elsewhere and are complete after the calls of a
 * turn. */
static void
return_rows(LhSynthWriter *w, LhSynthOutput *output, const Results *r, LhSynthLeaving leaving)
{
    const LhSynthProblem *p = w->e->p;

    for (uint32_t entry = 0; entry < p->grain.slices * p->chunks; entry++)
        if (lh_synth_leaves(w, LH_SYNTH_O, entry, &leaving))
            lh_synth_join(&leaving.computed, &r->waits[entry]);
    leaving.sendable = leaving.computed;
    lh_synth_return(w, output, 1, &leaving);
}

/* Writes the calls of a turn, and returns results complete after its stages. */
static void
write_turn(LhSynthWriter *w, LhSynthOutput *output, Results *r, int turn)
{
    const GArray *calls = w->site->calls;
    const uint32_t stages = w->e->layout->stages, first = (uint32_t)(turn + 1) * stages;

    w->emitter->step = (uint32_t)(turn + 1);
    for (uint32_t stage = first; stage < first + stages; stage++) {
        for (guint i = 0; i < calls->len; i++) {
            const LhSynthCall *c = &g_array_index(calls, LhSynthCall, i);

            if (c->forward.stage == stage)
                attend(w, r, c);
        }
        return_rows(w, output, r, (LhSynthLeaving){ .stage = stage });
        return_rows(w, output, r, (LhSynthLeaving){ .stage = stage, .remote = true });
    }
}

/* --- declarations -------------------------------------------------------------------------------
 */

static void
new_program(LhSynthEmission *e)
{
    const LhProgram *form = e->p->form;
    LhProgram *program =
        lh_program_create("synth", &lh_explicit_generator, &form->params, form->placement.kind);
    const LhPassSizes sizes = lh_pass_sizes(&program->params, 0);
    LhPassSlots slots;

    program->placement.split = form->placement.split;
    program->head_slices = form->head_slices;
    program->kv_slices = form->kv_slices;
    slots = lh_pass_declare(program, &sizes);
    e->program = program;
    e->slots = (LhSynthSlots){ .q = slots.q,
                               .kv = slots.kv,
                               .o = slots.o,
                               .lse = slots.lse,
                               .dout = slots.dout,
                               .dq = slots.dq,
                               .dkv = slots.dkv };
}

/* Sizes each temporary slot for the rank that needs most of it. */
static void
declare(LhSynthEmission *e)
{
    const bool blocks = e->layout->kernels == LH_SYNTH_BLOCKS;
    const LhTensorKind kind = blocks ? LH_TENSOR_OUT : LH_TENSOR_ACC;
    uint32_t q = 0, kv = 0, out = 0, width;
    uint64_t q_bytes, kv_bytes, stats;
    LhProgram *program;

    new_program(e);
    program = e->program;
    width = lh_dtype_bytes(program->params.attention.dtype);
    q_bytes = program->slots[e->slots.q].part_bytes;
    kv_bytes = program->slots[e->slots.kv].part_bytes;
    stats = program->slots[e->slots.lse].part_bytes * (blocks ? 1 : 2);
    for (uint32_t place = 0; place < e->p->places; place++) {
        q = MAX(q, e->layout->sites[place].q_parts);
        kv = MAX(kv, e->layout->sites[place].kv_parts);
        out = MAX(out, e->layout->sites[place].out_parts);
    }
    e->returns[LH_SYNTH_O] = lh_synth_routing_new(e->layout, LH_SYNTH_O);
    e->slots.rows = lh_synth_add_slot(program, "rows", LH_TENSOR_Q, q, q_bytes, width);
    e->slots.columns = lh_synth_add_slot(program, "columns", LH_TENSOR_KV, kv, kv_bytes, width);
    e->slots.block = lh_synth_add_slot(program, "block", kind, out, q_bytes + stats, width);
    e->slots.came = lh_synth_add_slot(program, "came", kind, e->returns[LH_SYNTH_O]->came,
                                      q_bytes + stats, width);
    e->slots.sum = lh_synth_add_slot(program, "sum", kind, e->returns[LH_SYNTH_O]->sums,
                                     q_bytes / width * 4 + stats, 4);
    if (e->p->backward)
        lh_synth_declare_backward(e, q, kv);
    lh_program_add_stream(program, "compute2", LH_STREAM_COMPUTE);
    lh_program_add_stream(program, "merge", LH_STREAM_COMPUTE);
    lh_program_add_stream(program, "results", LH_STREAM_COMM);
    lh_program_add_stream(program, "came", LH_STREAM_COMM);
    lh_program_add_stream(program, "round", LH_STREAM_COMPUTE);
    e->attend[0] = LH_SYNTH_STREAM_FIRST;
    e->attend[1] = LH_SYNTH_STREAM_SECOND;
    e->streams = MIN(e->p->places - 1, LH_SYNTH_DISTANCES);
    for (uint32_t d = 0; d < e->streams; d++) {
        g_autofree char *name = g_strdup_printf("inputs%u", d + 1);

        lh_program_add_stream(program, name, LH_STREAM_COMM);
    }
    for (uint32_t i = 2; i < e->attend_count; i++) {
        g_autofree char *name = g_strdup_printf("compute%u", i + 1);

        e->attend[i] = (uint8_t)program->streams_count;
        lh_program_add_stream(program, name, LH_STREAM_COMPUTE);
    }
}

/* --- ranks --------------------------------------------------------------------------------------
 */

static void
write_forward(LhSynthWriter *w)
{
    const LhSynthEmission *e = w->e;
    const uint32_t entries = e->p->grain.slices * e->p->chunks;
    const bool blocks = e->layout->kernels == LH_SYNTH_BLOCKS;
    const LhSynthInput inputs[] = { rows_input(e), columns_input(e) };
    LhSynthOutput output = {
        .kind = LH_SYNTH_O,
        .own = e->slots.block,
        .sent = e->slots.block,
        .came = e->slots.came,
        .sum = e->slots.sum,
        .outputs = { e->slots.o, e->slots.lse },
        .outputs_count = 2,
        .merge = blocks ? LH_KERNEL_ID_merge_lse : LH_KERNEL_ID_merge,
        .own_alone = blocks ? LH_KERNEL_ID_copy_out : LH_KERNEL_ID_normalise,
        .came_alone = blocks ? LH_KERNEL_ID_copy_out : LH_KERNEL_ID_normalise,
        .finish = blocks ? LH_KERNEL_ID_round_out : LH_KERNEL_ID_normalise,
    };
    const LhSynthGathering gathering = { .inputs = inputs, .count = G_N_ELEMENTS(inputs) };
    Results results = { g_new0(LhSynthWaits, entries), g_new0(bool, entries) };

    lh_synth_output_init(w, &output);
    lh_synth_gather_local(w, &gathering);
    lh_synth_gather_round(w, &gathering, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(inputs); i++)
        lh_synth_each_own(w, &inputs[i], copy_piece);
    for (int turn = LH_SYNTH_LOCAL; turn < (int)e->layout->state->rounds; turn++) {
        write_turn(w, &output, &results, turn);
        lh_synth_gather_round(w, &gathering, (uint32_t)(turn + 2));
    }
    lh_synth_output_clear(&output);
    g_free(results.waits);
    g_free(results.begun);
}

static void
write_ops(LhSynthWriter *w)
{
    const LhSynthSlots *slots = &w->e->slots;

    for (uint16_t slot = slots->rows; slot <= slots->sum; slot++)
        lh_emit_alloc(w->emitter, slot);
    if (w->e->p->backward)
        lh_synth_begin_backward(w);
    write_forward(w);
    for (uint16_t slot = slots->block; slot <= slots->sum; slot++)
        lh_emit_free(w->emitter, slot);
    if (w->e->p->backward)
        lh_synth_write_backward(w);
    lh_emit_free(w->emitter, slots->rows);
    lh_emit_free(w->emitter, slots->columns);
}

/* Makes a rank of the ops of @buffer; takes over its arrays. */
static LhExplicitRank
rank_of(LhOpBuffer *buffer)
{
    LhExplicitRank rank = { .ops = buffer->ops,
                            .ops_count = buffer->ops_count,
                            .parts = buffer->parts,
                            .parts_count = buffer->parts_count,
                            .counts = buffer->counts };

    for (uint32_t i = 0; i < rank.ops_count; i++)
        rank.steps_count += i == 0 || rank.ops[i].step != rank.ops[i - 1].step;
    return rank;
}

static LhExplicitRank
write_rank(const LhSynthEmission *e, uint32_t rank)
{
    const LhSynthProblem *p = e->p;
    const uint32_t outputs = e->program->slots[e->slots.o].parts;
    const uint32_t stages = (e->layout->state->rounds + 1) * e->layout->stages;
    LhOpBuffer buffer = { 0 };
    LhCursorState state = { .rank = rank };
    LhEmitter emitter = { .program = e->program,
                          .buffer = &buffer,
                          .state = &state,
                          .marks = state.marks,
                          .rank = rank };
    LhSynthWriter w = { .e = e,
                        .emitter = &emitter,
                        .site = &e->layout->sites[rank / p->gpus],
                        .rank = rank,
                        .place = rank / p->gpus,
                        .gpu = rank % p->gpus,
                        .gathered = g_new0(uint32_t, p->grain.slices * p->chunks),
                        .arrived = g_new0(LhSynthWaits, e->layout->state->rounds + 1),
                        .own_rows = g_new(uint32_t, outputs),
                        .left = g_new0(LhSynthWaits, stages),
                        .merged = g_new0(LhSynthWaits, stages) };

    for (uint32_t i = 0; i < outputs; i++)
        w.own_rows[i] = LH_SYNTH_NONE;
    write_ops(&w);
    g_free(w.gathered);
    g_free(w.arrived);
    g_free(w.own_rows);
    g_free(w.left);
    g_free(w.merged);
    return rank_of(&buffer);
}

LhProgram *
lh_synth_emit(const LhSynthAssignment *state, LhSynthStyle style)
{
    const uint32_t ranks = state->problem->places * state->problem->gpus;
    g_autoptr(LhSynthLayout) layout =
        lh_synth_layout_new(state, style.kernels, style.early ? STAGES : 1);
    LhSynthEmission e = {
        .layout = layout, .p = state->problem, .attend_count = style.streams, .early = style.early
    };
    LhExplicit *all = g_new0(LhExplicit, 1);

    g_assert(style.streams >= 1 && style.streams <= LH_SYNTH_ATTEND_MAX);
    declare(&e);
    all->ranks_count = ranks;
    all->ranks = g_new0(LhExplicitRank, ranks);
    for (uint32_t rank = 0; rank < ranks; rank++)
        all->ranks[rank] = write_rank(&e, rank);
    for (int kind = 0; kind < LH_SYNTH_RESULTS; kind++)
        lh_synth_routing_free(e.returns[kind]);
    e.program->plan = all;
    e.program->plan_free = lh_explicit_free;
    return e.program;
}
