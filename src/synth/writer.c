/* See the header. */
#include "synth/writer.h"

#include "program/work.h"
#include "sched/common/pass.h"

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
    return w->calls++ % 2 == 0 ? LH_SYNTH_STREAM_FIRST : LH_SYNTH_STREAM_SECOND;
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
    LhSynthWaits waits = w->copied;
    uint32_t local = 0;

    for (uint32_t i = 0; i < call->rows; i++)
        local = MAX(local, w->gathered[lh_synth_row_entry(w, call, i) % chunks]);
    for (uint32_t j = 0; j < call->columns; j++)
        local = MAX(local, w->gathered[lh_synth_column_entry(w, call, j) % chunks]);
    waits.last[LH_SYNTH_STREAM_LOCAL] = MAX(waits.last[LH_SYNTH_STREAM_LOCAL], local);
    if (turn != LH_SYNTH_LOCAL)
        lh_synth_join(&waits, &w->arrived[turn + 1]);
    return waits;
}

/* --- exchanges ----------------------------------------------------------------------------------
 */

/* An exchange that is there once it has a message. */
typedef struct {
    LhSynthWriter *w;
    uint8_t stream;
    const LhSynthWaits *waits; /* NULL: for nothing */
    uint32_t id;               /* + 1; 0: not there */
} Exchange;

/* One part of each of @count slots. */
typedef struct {
    bool send; /* else receive */
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
        /* Results and inputs of one pair of ranks have no order: they need not meet. */
        emitter->communicator = x->stream == LH_SYNTH_STREAM_RESULTS;
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

/* A label of a message: what it carries. */
static uint16_t
label_of(const LhSynthWriter *w, const LhSynthInput *input, uint32_t segment, uint32_t slice)
{
    return (uint16_t)((segment * w->e->p->grain.slices + slice) * 3 + input->label);
}

/* Where place @place has a chunk, and from which round on. */
static uint32_t
needed_at(const LhSynthSite *site, const LhSynthInput *input, uint32_t entry, uint32_t *turn)
{
    *turn = (input->rows ? site->row_turn : site->column_turn)[entry];
    return (input->rows ? site->row_at : site->column_at)[entry];
}

/* The part of a rank's segment @segment that GPU @gpu's slice @slice is. */
static uint32_t
part_of(const LhSynthWriter *w, const LhSynthInput *input, uint32_t segment, uint32_t gpu,
        uint32_t slice)
{
    return w->e->p->seats[segment].part * input->width + gpu * input->slices + slice;
}

/* The rank's own segment @segment goes to the GPUs of place @to that need it. */
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

/* Whether what a place @distance places on first needs in round @needed goes now, over @stream. */
static bool
goes_now(uint32_t distance, uint32_t needed, int turn, uint8_t stream)
{
    if (turn == LH_SYNTH_LOCAL)
        return distance == 0;
    return distance != 0 && needed == (uint32_t)turn &&
           LH_SYNTH_STREAM_DISTANCE + (distance - 1) % LH_SYNTH_DISTANCES == stream;
}

/* Messages of one slice: what @turn needs of chunk @chunk (LH_SYNTH_LOCAL: within the place) and
 * goes over the stream of the exchange. */
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

static void
move_chunks(Exchange *x, const LhSynthInput *inputs, uint32_t count, uint32_t first, uint32_t end,
            int turn)
{
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t slice = 0; slice < inputs[k].slices; slice++)
            for (uint32_t chunk = first; chunk < end; chunk++)
                move_chunk(x, &inputs[k], slice, chunk, turn);
}

void
lh_synth_gather(LhSynthWriter *w, const LhSynthInput *inputs, uint32_t count,
                const LhSynthWaits *waits)
{
    const LhSynthProblem *p = w->e->p;
    const uint32_t rounds = w->e->layout->state->rounds;
    uint32_t last = 0;

    for (uint32_t chunk = 0; chunk < p->chunks; chunk++) {
        Exchange x = { .w = w, .stream = LH_SYNTH_STREAM_LOCAL, .waits = waits };

        if (p->homes[chunk] != w->place)
            continue;
        move_chunks(&x, inputs, count, chunk, chunk + 1, LH_SYNTH_LOCAL);
        last = MAX(last, x.id);
        w->gathered[chunk] = last;
    }
    for (uint32_t t = 0; t < rounds; t++) {
        w->arrived[t + 1] = t > 0 ? w->arrived[t] : (LhSynthWaits){ { 0 } };
        for (uint32_t d = 0; d < w->e->streams; d++) {
            Exchange x = { .w = w,
                           .stream = (uint8_t)(LH_SYNTH_STREAM_DISTANCE + d),
                           .waits = waits };

            move_chunks(&x, inputs, count, 0, p->chunks, (int)t);
            if (x.id > 0)
                lh_synth_note(w, &w->arrived[t + 1], x.id - 1);
        }
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

/* Parts of results that go the same way: neighbours in their slot and among the outputs. */
typedef struct {
    uint16_t slot;
    uint32_t part, output, count;
    bool alone, first;
} Run;

static const GArray *
arrivals_of(const LhSynthWriter *w, const LhSynthOutput *output)
{
    return w->e->returns[output->kind]->arrivals[w->rank];
}

void
lh_synth_output_init(const LhSynthWriter *w, LhSynthOutput *o)
{
    const uint32_t parts = w->e->program->slots[o->outputs[0]].parts;
    const GArray *arrivals = arrivals_of(w, o);

    o->missing = g_new0(uint32_t, parts);
    o->alone = g_new0(bool, parts);
    o->summed = g_new0(bool, parts);
    for (guint i = 0; i < arrivals->len; i++)
        o->missing[g_array_index(arrivals, LhSynthArrival, i).output]++;
    for (uint32_t i = 0; i < parts; i++)
        o->alone[i] = o->missing[i] == 1;
}

void
lh_synth_output_clear(LhSynthOutput *o)
{
    g_free(o->missing);
    g_free(o->alone);
    g_free(o->summed);
}

LhKernelArgs
lh_synth_result_args(const LhSynthWriter *w, LhSynthResult kind, uint32_t parts)
{
    return kind == LH_SYNTH_DKV ? lh_synth_column_args(w->e, parts)
                                : lh_synth_row_args(w->e, parts);
}

bool
lh_synth_completes(const LhSynthWriter *w, LhSynthResult kind, uint32_t entry, int turn,
                   bool remote)
{
    const LhSynthProblem *p = w->e->p;
    int complete;

    return lh_synth_result_at(w->site, kind, entry, &complete) != LH_SYNTH_NONE &&
           complete == turn && (p->homes[entry % p->chunks] != w->place) == remote;
}

/* @waits: NULL where streams are order enough. */
static void
finish(LhSynthWriter *w, const LhSynthOutput *o, LhKernelId kernel, const Run *run,
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

/* Outputs whose sums are complete now, in runs. */
static void
finish_complete(LhSynthWriter *w, const LhSynthOutput *o, const Run *run)
{
    uint32_t i = 0;

    while (i < run->count) {
        uint32_t end = i;

        while (end < run->count && o->missing[run->output + end] == 0)
            end++;
        if (end > i) {
            const Run sum = {
                .slot = o->sum, .part = run->output + i, .output = run->output + i, .count = end - i
            };

            finish(w, o, o->finish, &sum, NULL);
        }
        i = end + 1;
    }
}

static void
merge_run(LhSynthWriter *w, LhSynthOutput *o, const Run *run, const LhSynthWaits *waits)
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
    lh_emit_operand(w->emitter, o->sum, run->output, run->count);
    lh_synth_wait(w, waits);
    finish_complete(w, o, run);
}

static Run
run_of(const LhSynthWriter *w, const LhSynthOutput *o, const LhSynthArrival *a)
{
    const bool own = a->source == w->rank;

    return (Run){ .slot = own ? o->own : o->came,
                  .part = own ? a->from : a->at,
                  .output = a->output,
                  .count = 1,
                  .alone = o->alone[a->output],
                  .first = !o->summed[a->output] };
}

static bool
is_of_turn(const LhSynthArrival *a, int turn, bool remote)
{
    return a->turn == turn && a->remote == remote;
}

/* Merges the arrivals of a turn that come from the rank itself, or (@own false) from others. */
static void
merge_arrivals(LhSynthWriter *w, LhSynthOutput *o, int turn, bool remote, bool own,
               const LhSynthWaits *waits)
{
    const GArray *arrivals = arrivals_of(w, o);
    Run run = { .count = 0 };

    for (guint i = 0; i < arrivals->len; i++) {
        const LhSynthArrival *a = &g_array_index(arrivals, LhSynthArrival, i);
        Run next;

        if (!is_of_turn(a, turn, remote) || (a->source == w->rank) != own)
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
            next = run_of(w, o, a); /* it may have begun with that */
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
send_results(Exchange *x, const LhSynthOutput *o, int turn)
{
    const LhSynthReturns *returns = x->w->e->returns[o->kind];
    const GArray *departures = returns->departures[x->w->rank];

    for (guint i = 0; i < departures->len; i++) {
        const LhSynthDeparture *d = &g_array_index(departures, LhSynthDeparture, i);
        const LhSynthArrival *a =
            &g_array_index(returns->arrivals[d->peer], LhSynthArrival, d->index);

        if (is_of_turn(a, turn, x->stream == LH_SYNTH_STREAM_RESULTS))
            post(x, (Message){ true, d->peer, result_label(o, a), &o->sent, 1, a->from });
    }
}

static void
receive_results(Exchange *x, const LhSynthOutput *o, int turn)
{
    const LhSynthWriter *w = x->w;
    const GArray *arrivals = arrivals_of(w, o);

    for (guint i = 0; i < arrivals->len; i++) {
        const LhSynthArrival *a = &g_array_index(arrivals, LhSynthArrival, i);

        if (a->source != w->rank && is_of_turn(a, turn, x->stream == LH_SYNTH_STREAM_RESULTS))
            post(x, (Message){ false, a->source, result_label(o, a), &o->came, 1, a->at });
    }
}

void
lh_synth_return(LhSynthWriter *w, LhSynthOutput *outputs, uint32_t count,
                const LhSynthLeaving *leaving)
{
    const int turn = leaving->turn;
    const bool remote = leaving->remote;
    LhSynthWaits received = { { 0 } };
    Exchange x = { .w = w,
                   .stream = remote ? LH_SYNTH_STREAM_RESULTS : LH_SYNTH_STREAM_LOCAL,
                   .waits = &leaving->sendable };

    for (uint32_t i = 0; i < count; i++)
        merge_arrivals(w, &outputs[i], turn, remote, true, &leaving->computed);
    for (uint32_t i = 0; i < count; i++)
        send_results(&x, &outputs[i], turn);
    for (uint32_t i = 0; i < count; i++)
        receive_results(&x, &outputs[i], turn);
    if (x.id > 0)
        lh_synth_note(w, &received, x.id - 1);
    for (uint32_t i = 0; i < count; i++)
        merge_arrivals(w, &outputs[i], turn, remote, false, &received);
}
