/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backward pass. Places keep the inputs that they fetched: q, k and v are in the layout. Rows
 * arrive again, in the same round as forward, with do, lse and delta = rowsum(do o); a call follows
 * as soon as all of its rows have arrived. dq of rows and dk, dv of columns are summed in fp32 at
 * each place, sent in the activation type, and summed in fp32 at home.
 */
#include "synth/generator_backward.h"
#include "program/work.h"

/* Dependencies of the sums of a site. */
typedef struct {
    LhSynthWaits prepared;        /* ops that have set them to zero */
    LhSynthWaits *rows, *columns; /* [slices * chunks]: the last calls that add to them */
} Sums;

/* --- declarations -------------------------------------------------------------------------------
 */

void
lh_synth_declare_backward(LhSynthEmission *e, uint32_t q_parts, uint32_t kv_parts)
{
    LhProgram *program = e->program;
    LhSynthSlots *s = &e->slots;
    const LhSlot *slots = program->slots;
    const uint32_t width = lh_dtype_bytes(program->params.attention.dtype);
    const uint64_t q = slots[s->q].part_bytes, kv = slots[s->kv].part_bytes;
    const uint64_t stat = slots[s->lse].part_bytes;
    const uint32_t parts = slots[s->q].parts;
    uint32_t came, kv_came;

    e->returns[LH_SYNTH_DQ] = lh_synth_routing_new(e->layout, LH_SYNTH_DQ);
    e->returns[LH_SYNTH_DKV] = lh_synth_routing_new(e->layout, LH_SYNTH_DKV);
    came = e->returns[LH_SYNTH_DQ]->came;
    kv_came = e->returns[LH_SYNTH_DKV]->came;
    s->lse_rows = lh_synth_add_slot(program, "lse_rows", LH_TENSOR_LSE, q_parts, stat, 4);
    s->spare = lh_synth_add_slot(program, "spare", LH_TENSOR_O, 1, q, width);
    s->delta = lh_synth_add_slot(program, "delta", LH_TENSOR_DELTA, parts, stat, 4);
    s->do_rows = lh_synth_add_slot(program, "do_rows", LH_TENSOR_DO, q_parts, q, width);
    s->delta_rows = lh_synth_add_slot(program, "delta_rows", LH_TENSOR_DELTA, q_parts, stat, 4);
    s->dq_rows = lh_synth_add_slot(program, "dq_rows", LH_TENSOR_DQ, q_parts, q / width * 4, 4);
    s->dkv_columns =
        lh_synth_add_slot(program, "dkv_columns", LH_TENSOR_DKV, kv_parts, kv / width * 4, 4);
    s->dq_sent = lh_synth_add_slot(program, "dq_sent", LH_TENSOR_DQ, e->returns[LH_SYNTH_DQ]->sent,
                                   q, width);
    s->dkv_sent = lh_synth_add_slot(program, "dkv_sent", LH_TENSOR_DKV,
                                    e->returns[LH_SYNTH_DKV]->sent, kv, width);
    s->dq_came = lh_synth_add_slot(program, "dq_came", LH_TENSOR_DQ, came, q, width);
    s->dkv_came = lh_synth_add_slot(program, "dkv_came", LH_TENSOR_DKV, kv_came, kv, width);
    s->dq_sum = lh_synth_add_slot(program, "dq_sum", LH_TENSOR_DQ, e->returns[LH_SYNTH_DQ]->sums,
                                  q / width * 4, 4);
    s->dkv_sum = lh_synth_add_slot(program, "dkv_sum", LH_TENSOR_DKV,
                                   e->returns[LH_SYNTH_DKV]->sums, kv / width * 4, 4);
}

void
lh_synth_begin_backward(LhSynthWriter *w)
{
    lh_emit_alloc(w->emitter, w->e->slots.lse_rows);
    lh_emit_alloc(w->emitter, w->e->slots.spare);
}

void
lh_synth_keep_statistics(LhSynthWriter *w, LhKernelId kernel, uint16_t slot, uint32_t part,
                         uint32_t output, uint32_t count)
{
    const LhKernelArgs args = lh_synth_row_args(w->e, 1);

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = w->own_rows[output + i];

        if (at == LH_SYNTH_NONE)
            continue;
        lh_emit_compute(w->emitter, LH_SYNTH_STREAM_MERGE, kernel, &args);
        lh_emit_operand(w->emitter, slot, part + i, 1);
        lh_emit_operand(w->emitter, w->e->slots.spare, 0, 1);
        lh_emit_operand(w->emitter, w->e->slots.lse_rows, at, 1);
    }
}

/* --- inputs -------------------------------------------------------------------------------------
 */

static LhSynthInput
backward_rows_input(const LhSynthEmission *e)
{
    const LhSynthSlots *s = &e->slots;

    return (LhSynthInput){ .rows = true,
                           .label = 0,
                           .slices = e->p->grain.slices,
                           .width = e->program->head_slices,
                           .slots = 3,
                           .from = { s->dout, s->lse, s->delta },
                           .to = { s->do_rows, s->lse_rows, s->delta_rows } };
}

/* Copies do and delta of the rank's own rows; their lse is already there. */
static void
copy_saved_piece(LhSynthWriter *w, const LhSynthInput *input, uint32_t from, uint32_t at)
{
    const LhSynthSlots *s = &w->e->slots;
    const LhKernelArgs args = lh_synth_row_args(w->e, 1);

    (void)input;
    lh_emit_compute(w->emitter, LH_SYNTH_STREAM_MERGE, LH_KERNEL_ID_copy, &args);
    lh_emit_operand(w->emitter, s->dout, from, 1);
    lh_emit_operand(w->emitter, s->do_rows, at, 1);
    lh_synth_note(w, &w->copied,
                  lh_emit_compute(w->emitter, LH_SYNTH_STREAM_MERGE, LH_KERNEL_ID_delta, &args));
    lh_emit_operand(w->emitter, s->dout, from, 1);
    lh_emit_operand(w->emitter, s->o, from, 1);
    lh_emit_operand(w->emitter, s->delta_rows, at, 1);
}

/* Outputs of the forward pass come from the merge stream, so this runs there. */
static uint32_t
derive_delta(LhSynthWriter *w)
{
    const LhSynthSlots *s = &w->e->slots;
    const uint32_t parts = w->e->program->slots[s->o].parts;
    const LhKernelArgs args = lh_synth_row_args(w->e, parts);
    const uint32_t id =
        lh_emit_compute(w->emitter, LH_SYNTH_STREAM_MERGE, LH_KERNEL_ID_delta, &args);

    lh_emit_operand(w->emitter, s->dout, 0, parts);
    lh_emit_operand(w->emitter, s->o, 0, parts);
    lh_emit_operand(w->emitter, s->delta, 0, parts);
    return id;
}

static void
clear(LhSynthWriter *w, Sums *sums, uint16_t slot, uint32_t parts, LhKernelArgs args)
{
    if (parts == 0)
        return;
    lh_synth_note(w, &sums->prepared,
                  lh_emit_compute(w->emitter, LH_SYNTH_STREAM_FIRST, LH_KERNEL_ID_zero, &args));
    lh_emit_operand(w->emitter, slot, 0, parts);
}

/* --- attention ----------------------------------------------------------------------------------
 */

static void
attend_backward(LhSynthWriter *w, Sums *sums, const LhSynthCall *call)
{
    const LhSynthProblem *p = w->e->p;
    const LhSynthSlots *s = &w->e->slots;
    const uint32_t row = lh_synth_row_entry(w, call, 0);
    const uint32_t column = lh_synth_column_entry(w, call, 0);
    const uint32_t row_at = w->site->row_at[row], column_at = w->site->column_at[column];
    const uint32_t rows = call->rows * p->pieces, columns = call->columns * p->pieces;
    LhKernelArgs args =
        lh_synth_args(p, row % p->chunks, call->rows, column % p->chunks, call->columns);
    LhSynthWaits waits = lh_synth_inputs_of(w, call, call->backward.turn);
    uint32_t id;

    args.rule = &w->e->program->params.mask;
    id = lh_emit_compute(w->emitter, lh_synth_next_stream(w), LH_KERNEL_ID_attention_bwd, &args);
    lh_emit_operand(w->emitter, s->rows, row_at, rows);
    lh_emit_operand(w->emitter, s->do_rows, row_at, rows);
    lh_emit_operand(w->emitter, s->delta_rows, row_at, rows);
    lh_emit_operand(w->emitter, s->lse_rows, row_at, rows);
    lh_emit_operand(w->emitter, s->columns, column_at, columns);
    lh_emit_operand(w->emitter, s->dq_rows, row_at, rows);
    lh_emit_operand(w->emitter, s->dkv_columns, column_at, columns);
    lh_synth_join(&waits, &w->kept);
    lh_synth_join(&waits, &sums->prepared);
    for (uint32_t i = 0; i < call->rows; i++)
        lh_synth_join(&waits, &sums->rows[lh_synth_row_entry(w, call, i)]);
    for (uint32_t j = 0; j < call->columns; j++)
        lh_synth_join(&waits, &sums->columns[lh_synth_column_entry(w, call, j)]);
    lh_synth_wait(w, &waits);
    for (uint32_t i = 0; i < call->rows; i++)
        lh_synth_note(w, &sums->rows[lh_synth_row_entry(w, call, i)], id);
    for (uint32_t j = 0; j < call->columns; j++)
        lh_synth_note(w, &sums->columns[lh_synth_column_entry(w, call, j)], id);
}

/* --- results ------------------------------------------------------------------------------------
 */

/* Parts of sums that are prepared for sending. */
typedef struct {
    const LhSynthOutput *output;
    uint32_t part, count;
} RowRun;

static void
round_run(LhSynthWriter *w, const RowRun *run, const LhSynthWaits *computed, LhSynthWaits *rounded)
{
    const LhSynthOutput *o = run->output;
    const LhKernelArgs args = lh_synth_result_args(w, o->kind, run->count);
    const uint32_t id =
        lh_emit_compute(w->emitter, LH_SYNTH_STREAM_ROUND, LH_KERNEL_ID_cast, &args);

    lh_emit_operand(w->emitter, o->own, run->part, run->count);
    lh_emit_operand(w->emitter, o->sent, o->sent_at[run->part], run->count);
    lh_synth_wait(w, computed);
    lh_synth_note(w, rounded, id);
}

/* Rounds the parts of complete sums that are sent to other ranks. */
static void
round_sums(LhSynthWriter *w, const LhSynthOutput *o, LhSynthLeaving *leaving)
{
    const LhSynthProblem *p = w->e->p;
    const uint32_t entries = lh_synth_result_slices(p, o->kind) * p->chunks;
    RowRun run = { .output = o };

    for (uint32_t entry = 0; entry < entries; entry++) {
        uint32_t stage;
        const uint32_t at = lh_synth_result_at(w->site, o->kind, entry, &stage);

        if (!lh_synth_leaves(w, o->kind, entry, leaving))
            continue;
        for (uint32_t piece = 0; piece < p->pieces; piece++) {
            if (p->seats[entry % p->chunks * p->pieces + piece].rank == w->rank)
                continue;
            if (run.count > 0 && run.part + run.count != at + piece) {
                round_run(w, &run, &leaving->computed, &leaving->sendable);
                run.count = 0;
            }
            if (run.count == 0)
                run.part = at + piece;
            run.count++;
        }
    }
    if (run.count > 0)
        round_run(w, &run, &leaving->computed, &leaving->sendable);
}

static void
return_sums(LhSynthWriter *w, LhSynthOutput *outputs, const Sums *sums, LhSynthLeaving leaving)
{
    const LhSynthProblem *p = w->e->p;
    LhSynthLeaving rounding;
    LhSynthWaits again;

    for (uint32_t entry = 0; entry < p->grain.slices * p->chunks; entry++)
        if (lh_synth_leaves(w, LH_SYNTH_DQ, entry, &leaving))
            lh_synth_join(&leaving.computed, &sums->rows[entry]);
    for (uint32_t entry = 0; entry < p->kv_slices * p->chunks; entry++)
        if (lh_synth_leaves(w, LH_SYNTH_DKV, entry, &leaving))
            lh_synth_join(&leaving.computed, &sums->columns[entry]);
    rounding = leaving;
    again = lh_synth_before(w->left, leaving.stage);
    lh_synth_join(&rounding.computed, &again);
    for (int i = 0; i < 2; i++)
        round_sums(w, &outputs[i], &rounding);
    leaving.sendable = rounding.sendable;
    lh_synth_return(w, outputs, 2, &leaving);
}

/* --- the pass -----------------------------------------------------------------------------------
 */

static LhSynthOutput
gradient(LhSynthResult kind, uint16_t own, uint16_t sent, uint16_t came, uint16_t sum,
         uint16_t output)
{
    return (LhSynthOutput){ .kind = kind,
                            .own = own,
                            .sent = sent,
                            .came = came,
                            .sum = sum,
                            .outputs = { output },
                            .outputs_count = 1,
                            .merge = LH_KERNEL_ID_add_to_fp32,
                            .own_alone = LH_KERNEL_ID_cast,
                            .came_alone = LH_KERNEL_ID_copy,
                            .finish = LH_KERNEL_ID_cast };
}

static void
prepare(LhSynthWriter *w, Sums *sums, LhSynthGathering *gathering)
{
    const LhSynthSlots *s = &w->e->slots;
    const LhSynthSite *site = w->site;

    for (uint16_t slot = s->delta; slot <= s->dkv_sum; slot++)
        lh_emit_alloc(w->emitter, slot);
    lh_synth_note(w, &gathering->waits, derive_delta(w));
    lh_synth_gather_local(w, gathering);
    lh_synth_gather_round(w, gathering, 0);
    clear(w, sums, s->dq_rows, site->q_parts, lh_synth_row_args(w->e, site->q_parts));
    clear(w, sums, s->dkv_columns, site->kv_parts, lh_synth_column_args(w->e, site->kv_parts));
    lh_synth_each_own(w, gathering->inputs, copy_saved_piece);
}

/* Writes the calls of a turn, and returns results complete after its stages. */
static void
write_backward_turn(LhSynthWriter *w, LhSynthOutput *outputs, Sums *sums, int turn)
{
    const GArray *calls = w->site->back_calls;
    const uint32_t stages = w->e->layout->stages, first = (uint32_t)(turn + 1) * stages;

    for (uint32_t stage = first; stage < first + stages; stage++) {
        for (guint i = 0; i < calls->len; i++) {
            const LhSynthCall *c = &g_array_index(calls, LhSynthCall, i);

            if (c->backward.stage == stage)
                attend_backward(w, sums, c);
        }
        return_sums(w, outputs, sums, (LhSynthLeaving){ .stage = stage, .remote = true });
        return_sums(w, outputs, sums, (LhSynthLeaving){ .stage = stage });
    }
}

void
lh_synth_write_backward(LhSynthWriter *w)
{
    const LhSynthEmission *e = w->e;
    const LhSynthSlots *s = &e->slots;
    const uint32_t entries = e->p->grain.slices * e->p->chunks;
    const uint32_t first_step = w->emitter->step + 1;
    LhSynthOutput outputs[] = {
        gradient(LH_SYNTH_DQ, s->dq_rows, s->dq_sent, s->dq_came, s->dq_sum, s->dq),
        gradient(LH_SYNTH_DKV, s->dkv_columns, s->dkv_sent, s->dkv_came, s->dkv_sum, s->dkv),
    };
    const LhSynthInput rows = backward_rows_input(e);
    LhSynthGathering gathering = { .inputs = &rows, .count = 1 };
    Sums sums = { .rows = g_new0(LhSynthWaits, entries), .columns = g_new0(LhSynthWaits, entries) };

    w->kept = w->arrived[e->layout->state->rounds];
    for (uint32_t i = 0; i < (e->layout->state->rounds + 1) * e->layout->stages; i++)
        w->left[i] = w->merged[i] = (LhSynthWaits){ { 0 } };
    w->emitter->phase = LH_PHASE_BACKWARD;
    w->emitter->step = first_step;
    for (gsize i = 0; i < G_N_ELEMENTS(outputs); i++)
        lh_synth_output_init(w, &outputs[i]);
    prepare(w, &sums, &gathering);
    for (int turn = LH_SYNTH_LOCAL; turn < (int)e->layout->state->rounds; turn++) {
        w->emitter->step = first_step + (uint32_t)(turn + 1);
        write_backward_turn(w, outputs, &sums, turn);
        lh_synth_gather_round(w, &gathering, (uint32_t)(turn + 2));
    }
    for (uint16_t slot = s->lse_rows; slot <= s->dkv_sum; slot++)
        lh_emit_free(w->emitter, slot);
    for (gsize i = 0; i < G_N_ELEMENTS(outputs); i++)
        lh_synth_output_clear(&outputs[i]);
    g_free(sums.rows);
    g_free(sums.columns);
}
