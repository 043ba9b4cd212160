/* SPDX-License-Identifier: Apache-2.0 */
#include "synth/writer.h"

#include "program/work.h"
#include "sched/common/pass.h"
#include "synth/generator_backward.h"

/* --- waits --------------------------------------------------------------------------------------
 */

void
lh_synth_note(const LhSynthWriter *w, LhSynthWaits *waits, uint32_t id)
{
    const uint8_t stream = w->emitter->buffer->ops[id].stream;

    waits->last[stream] = MAX(waits->last[stream], id + 1);
}

void
lh_synth_join(LhSynthWaits *waits, const LhSynthWaits *others)
{
    for (unsigned i = 0; i < LH_STREAMS_MAX; i++)
        waits->last[i] = MAX(waits->last[i], others->last[i]);
}

void
lh_synth_wait(const LhSynthWriter *w, const LhSynthWaits *waits)
{
    const uint8_t own = lh_emit_last(w->emitter)->stream;

    for (unsigned i = 0; i < LH_STREAMS_MAX; i++)
        if (i != own && waits->last[i] > 0)
            lh_emit_after(w->emitter, waits->last[i] - 1);
}

/* --- calls --------------------------------------------------------------------------------------
 */

LhKernelArgs
lh_synth_row_args(const LhSynthEmission *e, uint64_t parts)
{
    return lh_pass_slice_args(e->program,
                              lh_pass_q_args(&e->program->params, parts * e->p->segment_tokens));
}

LhKernelArgs
lh_synth_column_args(const LhSynthEmission *e, uint64_t parts)
{
    return lh_pass_slice_args(e->program,
                              lh_pass_kv_args(&e->program->params, parts * e->p->segment_tokens));
}

uint8_t
lh_synth_next_stream(LhSynthWriter *w)
{
    return w->e->attend[w->calls++ % w->e->attend_count];
}

uint32_t
lh_synth_row_entry(const LhSynthWriter *w, const LhSynthCall *call, uint32_t index)
{
    const uint32_t base = call->slice * w->e->p->chunks;

    return base + w->site->rows[base + call->row + index];
}

uint32_t
lh_synth_column_entry(const LhSynthWriter *w, const LhSynthCall *call, uint32_t index)
{
    const uint32_t base = lh_synth_kv_slice(w->e->p, call->slice) * w->e->p->chunks;

    return base + w->site->columns[base + call->column + index];
}

LhSynthWaits
lh_synth_inputs_of(const LhSynthWriter *w, const LhSynthCall *call, int turn)
{
    const uint32_t chunks = w->e->p->chunks;
    const uint32_t *gathered = &w->gathered[call->slice * chunks];
    LhSynthWaits waits = w->copied;
    uint32_t local = 0;

    for (uint32_t i = 0; i < call->rows; i++)
        local = MAX(local, gathered[lh_synth_row_entry(w, call, i) % chunks]);
    for (uint32_t j = 0; j < call->columns; j++)
        local = MAX(local, gathered[lh_synth_column_entry(w, call, j) % chunks]);
    waits.last[LH_SYNTH_STREAM_LOCAL] = MAX(waits.last[LH_SYNTH_STREAM_LOCAL], local);
    if (turn != LH_SYNTH_LOCAL)
        lh_synth_join(&waits, &w->arrived[turn + 1]);
    return waits;
}

/* --- exchanges ----------------------------------------------------------------------------------
 */

/* An exchange, created when it gets its first message. */
typedef struct {
    LhSynthWriter *w;
    uint8_t stream;
    const LhSynthWaits *waits; /* NULL: none */
    uint32_t id;               /* + 1; 0: not created */
} Exchange;

/* One part of each of @count slots. */
typedef struct {
    bool send; /* otherwise receive */
    uint32_t peer;
    uint16_t tag;
    const uint16_t *slots;
    uint32_t count, part;
} Message;

static void
post(Exchange *x, Message m)
{
    LhEmitter *emitter = x->w->emitter;
    uint64_t bytes = 0;

    if (x->id == 0) {
        /* Results and inputs of a pair of ranks are not ordered, so they use different
         * communicators. */
        emitter->communicator =
            x->stream == LH_SYNTH_STREAM_RESULTS || x->stream == LH_SYNTH_STREAM_CAME;
        x->id = lh_emit_exchange(emitter, x->stream) + 1;
        if (x->waits != NULL)
            lh_synth_wait(x->w, x->waits);
    }
    for (uint32_t i = 0; i < m.count; i++)
        bytes += emitter->program->slots[m.slots[i]].part_bytes;
    lh_emit_part(emitter, m.send, m.peer, m.tag, bytes);
    for (uint32_t i = 0; i < m.count; i++)
        lh_emit_region(emitter, m.slots[i], m.part, 1);
}

/* --- inputs -------------------------------------------------------------------------------------
 */

/* Label of a message by its contents. */
static uint16_t
label_of(const LhSynthWriter *w, const LhSynthInput *input, uint32_t segment, uint32_t slice)
{
    return (uint16_t)((segment * w->e->p->grain.slices + slice) * 3 + input->label);
}

/* The part of a chunk at a place, and the round from which it is needed. */
static uint32_t
needed_at(const LhSynthSite *site, const LhSynthInput *input, uint32_t entry, uint32_t *turn)
{
    *turn = (input->rows ? site->row_turn : site->column_turn)[entry];
    return (input->rows ? site->row_at : site->column_at)[entry];
}

/* The part of a rank's segment @segment for slice @slice of GPU @gpu. */
static uint32_t
part_of(const LhSynthWriter *w, const LhSynthInput *input, uint32_t segment, uint32_t gpu,
        uint32_t slice)
{
    return w->e->p->seats[segment].part * input->width + gpu * input->slices + slice;
}

/* Sends the rank's own segment @segment to the GPUs of place @to that need it. */
static void
send_segment(Exchange *x, const LhSynthInput *input, uint32_t slice, uint32_t segment, uint32_t to)
{
    const LhSynthWriter *w = x->w;
    const LhSynthProblem *p = w->e->p;

    for (uint32_t gpu = 0; gpu < p->gpus; gpu++) {
        const uint32_t peer = to * p->gpus + gpu;

        if (peer != w->rank)
            post(x, (Message){ true, peer, label_of(w, input, segment, slice), input->from,
                               input->slots, part_of(w, input, segment, gpu, slice) });
    }
}

/* Whether data for a place at distance @distance that needs it in round @needed is sent in this
 * turn, over @stream. */
static bool
goes_now(uint32_t distance, uint32_t needed, int turn, uint8_t stream)
{
    if (turn == LH_SYNTH_LOCAL)
        return distance == 0;
    return distance != 0 && needed == (uint32_t)turn &&
           LH_SYNTH_STREAM_DISTANCE + (distance - 1) % LH_SYNTH_DISTANCES == stream;
}

/* Adds the messages of one slice: what @turn needs of chunk @chunk (LH_SYNTH_LOCAL: within the
 * place) on the stream of the exchange. */
static void
move_chunk(Exchange *x, const LhSynthInput *input, uint32_t slice, uint32_t chunk, int turn)
{
    const LhSynthWriter *w = x->w;
    const LhSynthProblem *p = w->e->p;
    const uint32_t entry = slice * p->chunks + chunk, home = p->homes[chunk];
    uint32_t needed;

    for (uint32_t to = 0; to < p->places; to++) {
        const uint32_t at = needed_at(&w->e->layout->sites[to], input, entry, &needed);

        if (at == LH_SYNTH_NONE || (home != w->place && to != w->place) ||
            !goes_now((to + p->places - home) % p->places, needed, turn, x->stream))
            continue;
        for (uint32_t piece = 0; piece < p->pieces; piece++) {
            const uint32_t segment = chunk * p->pieces + piece;
            const uint32_t owner = p->seats[segment].rank;

            if (owner == w->rank)
                send_segment(x, input, slice, segment, to);
            else if (to == w->place)
                post(x, (Message){ false, owner, label_of(w, input, segment, slice), input->to,
                                   input->slots, at + piece });
        }
    }
}

/* Range of slices of a GPU's heads. */
typedef struct {
    uint32_t first, end;
} Slices;

/* Gathers chunk @chunk in slices of q, and of the k and v slices that begin there. */
static void
gather_chunk(LhSynthWriter *w, const LhSynthGathering *g, Slices slices, uint32_t chunk)
{
    const LhSynthProblem *p = w->e->p;
    Exchange x = { .w = w, .stream = LH_SYNTH_STREAM_LOCAL, .waits = &g->waits };

    for (uint32_t k = 0; k < g->count; k++) {
        const uint32_t group = p->grain.slices / g->inputs[k].slices;
        const uint32_t first = (slices.first + group - 1) / group;
        const uint32_t end = (slices.end + group - 1) / group;

        for (uint32_t slice = first; slice < end; slice++)
            move_chunk(&x, &g->inputs[k], slice, chunk, LH_SYNTH_LOCAL);
    }
    if (x.id > 0)
        w->local = x.id;
    for (uint32_t slice = slices.first; slice < slices.end; slice++)
        w->gathered[slice * p->chunks + chunk] = w->local;
}

void
lh_synth_gather_local(LhSynthWriter *w, const LhSynthGathering *gathering)
{
    const LhSynthProblem *p = w->e->p;
    Slices slices = { 0, 0 };

    while (slices.end < p->grain.slices) {
        slices = (Slices){ slices.end, w->e->early ? slices.end + 1 : p->grain.slices };
        for (uint32_t chunk = 0; chunk < p->chunks; chunk++)
            if (p->homes[chunk] == w->place)
                gather_chunk(w, gathering, slices, chunk);
    }
}

void
lh_synth_gather_round(LhSynthWriter *w, const LhSynthGathering *gathering, uint32_t round)
{
    const LhSynthProblem *p = w->e->p;

    if (round >= w->e->layout->state->rounds)
        return;
    w->arrived[round + 1] = round > 0 ? w->arrived[round] : (LhSynthWaits){ { 0 } };
    for (uint32_t d = 0; d < w->e->streams; d++) {
        Exchange x = { .w = w,
                       .stream = (uint8_t)(LH_SYNTH_STREAM_DISTANCE + d),
                       .waits = &gathering->waits };

        for (uint32_t k = 0; k < gathering->count; k++)
            for (uint32_t slice = 0; slice < gathering->inputs[k].slices; slice++)
                for (uint32_t chunk = 0; chunk < p->chunks; chunk++)
                    move_chunk(&x, &gathering->inputs[k], slice, chunk, (int)round);
        if (x.id > 0)
            lh_synth_note(w, &w->arrived[round + 1], x.id - 1);
    }
}

void
lh_synth_each_own(LhSynthWriter *w, const LhSynthInput *input, LhSynthPieceFunc each)
{
    const LhSynthProblem *p = w->e->p;

    for (uint32_t segment = 0; segment < p->segments; segment++) {
        if (p->seats[segment].rank != w->rank)
            continue;
        for (uint32_t slice = 0; slice < input->slices; slice++) {
            const uint32_t entry = slice * p->chunks + segment / p->pieces;
            uint32_t turn;
            const uint32_t at = needed_at(w->site, input, entry, &turn);

            if (at != LH_SYNTH_NONE)
                each(w, input, part_of(w, input, segment, w->gpu, slice), at + segment % p->pieces);
        }
    }
}

/* --- results ------------------------------------------------------------------------------------
 */

/* A run of results with the same route: adjacent in their slot and among the outputs. */
typedef struct {
    uint16_t slot;
    uint32_t part, output, count;
    bool alone, first;
} CallRun;

static const GArray *
arrivals_of(const LhSynthWriter *w, const LhSynthOutput *output)
{
    return w->e->returns[output->kind]->arrivals[w->rank];
}

void
lh_synth_output_init(const LhSynthWriter *w, LhSynthOutput *o)
{
    const uint32_t parts = w->e->program->slots[o->outputs[0]].parts;
    const LhSynthRouting *returns = w->e->returns[o->kind];
    const GArray *arrivals = arrivals_of(w, o), *departures = returns->departures[w->rank];

    o->missing = g_new0(uint32_t, parts);
    o->alone = g_new0(bool, parts);
    o->summed = g_new0(bool, parts);
    o->sum_at = g_new0(uint32_t, parts);
    o->sent_at = g_new0(uint32_t, w->e->program->slots[o->own].parts);
    for (guint i = 0; i < departures->len; i++) {
        const LhSynthDeparture *d = &g_array_index(departures, LhSynthDeparture, i);

        o->sent_at[g_array_index(returns->arrivals[d->peer], LhSynthArrival, d->index).from] =
            d->at;
    }
    for (guint i = 0; i < arrivals->len; i++)
        o->missing[g_array_index(arrivals, LhSynthArrival, i).output]++;
    for (uint32_t i = 0, at = 0; i < parts; i++) {
        o->alone[i] = o->missing[i] == 1;
        o->sum_at[i] = at;
        at += !o->alone[i];
    }
}

void
lh_synth_output_clear(LhSynthOutput *o)
{
    g_free(o->missing);
    g_free(o->alone);
    g_free(o->summed);
    g_free(o->sum_at);
    g_free(o->sent_at);
}

LhKernelArgs
lh_synth_result_args(const LhSynthWriter *w, LhSynthResult kind, uint32_t parts)
{
    return kind == LH_SYNTH_DKV ? lh_synth_column_args(w->e, parts)
                                : lh_synth_row_args(w->e, parts);
}

bool
lh_synth_leaves(const LhSynthWriter *w, LhSynthResult kind, uint32_t entry,
                const LhSynthLeaving *leaving)
{
    const LhSynthProblem *p = w->e->p;
    uint32_t complete;

    return lh_synth_result_at(w->site, kind, entry, &complete) != LH_SYNTH_NONE &&
           complete == leaving->stage &&
           (p->homes[entry % p->chunks] != w->place) == leaving->remote;
}

/* @waits may be NULL if stream order suffices. */
static void
finish(LhSynthWriter *w, const LhSynthOutput *o, LhKernelId kernel, const CallRun *run,
       const LhSynthWaits *waits)
{
    const LhKernelArgs args = lh_synth_result_args(w, o->kind, run->count);

    lh_emit_compute(w->emitter, LH_SYNTH_STREAM_MERGE, kernel, &args);
    lh_emit_operand(w->emitter, run->slot, run->part, run->count);
    for (uint32_t i = 0; i < o->outputs_count; i++)
        lh_emit_operand(w->emitter, o->outputs[i], run->output, run->count);
    if (waits != NULL)
        lh_synth_wait(w, waits);
    if (o->kind == LH_SYNTH_O && w->e->p->backward)
        lh_synth_keep_statistics(w, kernel, run->slot, run->part, run->output, run->count);
}

/* Finishes outputs whose sums are now complete, in runs. */
static void
finish_complete(LhSynthWriter *w, const LhSynthOutput *o, const CallRun *run)
{
    uint32_t i = 0;

    while (i < run->count) {
        uint32_t end = i;

        while (end < run->count && o->missing[run->output + end] == 0)
            end++;
        if (end > i) {
            const CallRun sum = { .slot = o->sum,
                                  .part = o->sum_at[run->output + i],
                                  .output = run->output + i,
                                  .count = end - i };

            finish(w, o, o->finish, &sum, NULL);
        }
        i = end + 1;
    }
}

static void
merge_run(LhSynthWriter *w, LhSynthOutput *o, const CallRun *run, const LhSynthWaits *waits)
{
    LhKernelArgs args = lh_synth_result_args(w, o->kind, run->count);

    for (uint32_t i = 0; i < run->count; i++) {
        o->missing[run->output + i]--;
        o->summed[run->output + i] = true;
    }
    if (run->alone) {
        finish(w, o, run->slot == o->own ? o->own_alone : o->came_alone, run, waits);
        return;
    }
    args.first = run->first;
    lh_emit_compute(w->emitter, LH_SYNTH_STREAM_MERGE, o->merge, &args);
    lh_emit_operand(w->emitter, run->slot, run->part, run->count);
    lh_emit_operand(w->emitter, o->sum, o->sum_at[run->output], run->count);
    lh_synth_wait(w, waits);
    finish_complete(w, o, run);
}

static CallRun
run_of(const LhSynthWriter *w, const LhSynthOutput *o, const LhSynthArrival *a)
{
    const bool own = a->source == w->rank;

    return (CallRun){ .slot = own ? o->own : o->came,
                      .part = own ? a->from : a->at,
                      .output = a->output,
                      .count = 1,
                      .alone = o->alone[a->output],
                      .first = !o->summed[a->output] };
}

static bool
arrives(const LhSynthArrival *a, const LhSynthLeaving *leaving)
{
    return a->stage == leaving->stage && a->remote == leaving->remote;
}

/* Merges contributions of the rank itself, or (@own false) of other ranks. */
static void
merge_arrivals(LhSynthWriter *w, LhSynthOutput *o, const LhSynthLeaving *leaving, bool own,
               const LhSynthWaits *waits)
{
    const GArray *arrivals = arrivals_of(w, o);
    CallRun run = { .count = 0 };

    for (guint i = 0; i < arrivals->len; i++) {
        const LhSynthArrival *a = &g_array_index(arrivals, LhSynthArrival, i);
        CallRun next;

        if (!arrives(a, leaving) || (a->source == w->rank) != own)
            continue;
        next = run_of(w, o, a);
        if (run.count > 0 && next.slot == run.slot && next.part == run.part + run.count &&
            next.output == run.output + run.count && next.alone == run.alone &&
            next.first == run.first) {
            run.count++;
            continue;
        }
        if (run.count > 0) {
            merge_run(w, o, &run, waits);
            next = run_of(w, o, a); /* it may start with that */
        }
        run = next;
    }
    if (run.count > 0)
        merge_run(w, o, &run, waits);
}

static uint16_t
result_label(const LhSynthOutput *o, const LhSynthArrival *a)
{
    return (uint16_t)(a->output * 3 + (o->kind == LH_SYNTH_DQ ? 1 : 2));
}

static void
send_results(Exchange *x, const LhSynthOutput *o, const LhSynthLeaving *leaving)
{
    const LhSynthRouting *returns = x->w->e->returns[o->kind];
    const GArray *departures = returns->departures[x->w->rank];

    for (guint i = 0; i < departures->len; i++) {
        const LhSynthDeparture *d = &g_array_index(departures, LhSynthDeparture, i);
        const LhSynthArrival *a =
            &g_array_index(returns->arrivals[d->peer], LhSynthArrival, d->index);

        if (arrives(a, leaving))
            post(x, (Message){ true, d->peer, result_label(o, a), &o->sent, 1,
                               o->sent == o->own ? a->from : d->at });
    }
}

static void
receive_results(Exchange *x, const LhSynthOutput *o, const LhSynthLeaving *leaving)
{
    const LhSynthWriter *w = x->w;
    const GArray *arrivals = arrivals_of(w, o);

    for (guint i = 0; i < arrivals->len; i++) {
        const LhSynthArrival *a = &g_array_index(arrivals, LhSynthArrival, i);

        if (a->source != w->rank && arrives(a, leaving))
            post(x, (Message){ false, a->source, result_label(o, a), &o->came, 1, a->at });
    }
}

LhSynthWaits
lh_synth_before(const LhSynthWaits *by_stage, uint32_t stage)
{
    LhSynthWaits waits = { { 0 } };

    for (uint32_t i = 0; i + LH_SYNTH_REUSE <= stage; i++)
        lh_synth_join(&waits, &by_stage[i]);
    return waits;
}

void
lh_synth_return(LhSynthWriter *w, LhSynthOutput *outputs, uint32_t count,
                const LhSynthLeaving *leaving)
{
    LhSynthWaits received = { { 0 } }, sendable = leaving->sendable;
    const LhSynthWaits again = lh_synth_before(w->merged, leaving->stage);
    Exchange out = { .w = w,
                     .stream = leaving->remote ? LH_SYNTH_STREAM_RESULTS : LH_SYNTH_STREAM_LOCAL,
                     .waits = &sendable };
    Exchange apart = { .w = w, .stream = LH_SYNTH_STREAM_CAME, .waits = &again };
    Exchange *in =
        leaving->remote ? &apart : &out; /* sending and receiving do not wait for each other */
    uint32_t merging;

    if (!leaving->remote)
        lh_synth_join(&sendable, &again);
    for (uint32_t i = 0; i < count; i++)
        merge_arrivals(w, &outputs[i], leaving, true, &leaving->computed);
    for (uint32_t i = 0; i < count; i++)
        send_results(&out, &outputs[i], leaving);
    for (uint32_t i = 0; i < count; i++)
        receive_results(in, &outputs[i], leaving);
    if (out.id > 0)
        lh_synth_note(w, &w->left[leaving->stage], out.id - 1);
    if (in->id > 0)
        lh_synth_note(w, &received, in->id - 1);
    merging = w->emitter->buffer->ops_count;
    for (uint32_t i = 0; i < count; i++)
        merge_arrivals(w, &outputs[i], leaving, false, &received);
    if (w->emitter->buffer->ops_count > merging)
        lh_synth_note(w, &w->merged[leaving->stage], w->emitter->buffer->ops_count - 1);
}

uint16_t
lh_synth_add_slot(LhProgram *program, const char *name, LhTensorKind kind, uint32_t parts,
                  uint64_t part_bytes, uint32_t element_bytes)
{
    return lh_pass_add_slot(program, name, kind, LH_SLOT_TEMP, MAX(parts, 1), part_bytes,
                            element_bytes);
}
