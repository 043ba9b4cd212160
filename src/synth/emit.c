/*
 * See the header. Streams: two that attend in turn, so that one uses what the other's last wave
 * leaves idle; one that merges; one for messages within a place, one for results, and one for each
 * distance between places, modulo a few: places do not wait for each other's rounds.
 */
#include "synth/emit.h"

#include "program/emit.h"
#include "program/work.h"
#include "sched/common/pass.h"

#include <string.h>

#define DISTANCES 3U

enum {
    STREAM_FIRST, /* "compute" and "comm" are lh_pass_declare's */
    STREAM_LOCAL,
    STREAM_SECOND,
    STREAM_MERGE,
    STREAM_RESULTS,
    STREAM_DISTANCE, /* and the next ones */
};

typedef struct {
    uint16_t q, kv, o, lse;                   /* as lh_pass_declare has them */
    uint16_t rows, columns, block, came, sum; /* of this file */
} Slots;

/* A part of a result that comes to the rank that has its rows. */
typedef struct {
    bool remote;
    int turn;             /* in which it is sent */
    uint32_t part, slice; /* of the rank's outputs: part * head slices + slice */
    uint32_t source;      /* the rank that sends it; may be the receiver */
    uint32_t entry;       /* of the source's tables: slice * chunks + chunk */
    uint32_t piece;
    uint32_t at; /* where it arrives, if it comes from another rank */
} Arrival;

/* The same, as its source sees it. */
typedef struct {
    uint32_t peer;
    guint index; /* among the arrivals of the peer */
} Departure;

typedef struct {
    const LhSynthLayout *layout;
    const LhSynthProblem *p;
    LhProgram *program;
    Slots slots;
    uint32_t streams;    /* for distances */
    GArray **arrivals;   /* [ranks]: of Arrival, in their order */
    GArray **departures; /* [ranks]: of Departure; those to one peer in the order of its arrivals */
} Emission;

/* The last ops of each stream that something waits for. */
typedef struct {
    uint32_t last[LH_STREAMS_MAX]; /* op + 1; 0: none */
} Waits;

/* One rank's program, as it is written. */
typedef struct {
    const Emission *e;
    LhEmitter *emitter;
    const LhSynthSite *site;
    uint32_t rank, place, gpu;
    Waits copied;       /* the rank's own pieces are in the layout */
    uint32_t *gathered; /* [chunks]: the exchange behind which a local one is there, + 1; 0: none */
    Waits arrived;      /* inputs of the rounds so far */
    Waits *results;     /* [slices * chunks]: what a result waits for */
    bool *begun;        /* likewise: something is in it */
    uint32_t *missing;  /* [parts * head slices]: what an output still waits for */
    bool *alone;        /* likewise: it has one contribution only */
    bool *summed;       /* likewise: its sum has begun */
    uint32_t calls;
} Writer;

/* --- ops ----------------------------------------------------------------------------------------
 */

static void
note(const Writer *w, Waits *waits, uint32_t id)
{
    const uint8_t stream = w->emitter->buffer->ops[id].stream;

    waits->last[stream] = MAX(waits->last[stream], id + 1);
}

static void
join(Waits *waits, const Waits *others)
{
    for (unsigned i = 0; i < LH_STREAMS_MAX; i++)
        waits->last[i] = MAX(waits->last[i], others->last[i]);
}

/* The last op waits; its own stream is in order anyway. */
static void
wait_for(const Writer *w, const Waits *waits)
{
    const uint8_t own = lh_emit_last(w->emitter)->stream;

    for (unsigned i = 0; i < LH_STREAMS_MAX; i++)
        if (i != own && waits->last[i] > 0)
            lh_emit_after(w->emitter, waits->last[i] - 1);
}

static LhKernelArgs
row_args(const Emission *e, uint64_t parts)
{
    return lh_pass_slice_args(e->program,
                              lh_pass_q_args(&e->program->params, parts * e->p->segment_tokens));
}

static LhKernelArgs
column_args(const Emission *e, uint64_t parts)
{
    return lh_pass_slice_args(e->program,
                              lh_pass_kv_args(&e->program->params, parts * e->p->segment_tokens));
}

static uint8_t
other_stream(Writer *w)
{
    return w->calls++ % 2 == 0 ? STREAM_FIRST : STREAM_SECOND;
}

/* --- exchanges ----------------------------------------------------------------------------------
 */

/* An exchange that is there once it has a message. */
typedef struct {
    Writer *w;
    uint8_t stream;
    const Waits *waits; /* NULL: for nothing */
    uint32_t id;        /* + 1; 0: not there */
} Exchange;

static void
post(Exchange *x, bool send, uint32_t peer, uint16_t tag, LhRegion region)
{
    LhEmitter *emitter = x->w->emitter;

    if (x->id == 0) {
        /* Results and inputs of one pair of ranks have no order: they need not meet. */
        emitter->communicator = x->stream == STREAM_RESULTS;
        x->id = lh_emit_exchange(emitter, x->stream) + 1;
        if (x->waits != NULL)
            wait_for(x->w, x->waits);
    }
    lh_emit_part(emitter, send, peer, tag, lh_region_bytes(emitter->program, region));
    lh_emit_part_region(emitter, region);
}

static LhRegion
one(uint16_t slot, uint32_t part)
{
    return (LhRegion){ .slot = slot, .part = part, .count = 1 };
}

/* A label of a message: what it carries. */
static uint16_t
label(const LhSynthProblem *p, unsigned kind, uint32_t segment, uint32_t slice)
{
    return (uint16_t)((segment * p->grain.slices + slice) * 3 + kind);
}

/* Inputs of rows or of columns. */
typedef struct {
    bool rows;
    uint32_t slices; /* of a GPU */
    uint16_t from, to;
    uint32_t width; /* parts of a segment in the input slot */
} Kind;

static Kind
kind_of(const Emission *e, bool rows)
{
    const LhSynthProblem *p = e->p;

    if (rows)
        return (Kind){ true, p->grain.slices, e->slots.q, e->slots.rows, e->program->head_slices };
    return (Kind){ false, p->kv_slices, e->slots.kv, e->slots.columns, e->program->kv_slices };
}

/* Where place @place has a chunk, and from which round on. */
static uint32_t
needed_at(const LhSynthSite *site, Kind kind, uint32_t entry, uint32_t *turn)
{
    *turn = (kind.rows ? site->row_turn : site->column_turn)[entry];
    return (kind.rows ? site->row_at : site->column_at)[entry];
}

/* The rank's own segment @segment goes to the GPUs of place @to that need it. */
static void
send_segment(Exchange *x, Kind kind, uint32_t slice, uint32_t segment, uint32_t to)
{
    const Writer *w = x->w;
    const LhSynthProblem *p = w->e->p;

    for (uint32_t gpu = 0; gpu < p->gpus; gpu++) {
        const uint32_t peer = to * p->gpus + gpu;
        const uint32_t part = p->seats[segment].part * kind.width + gpu * kind.slices + slice;

        if (peer != w->rank)
            post(x, true, peer, label(p, kind.rows ? 0 : 1, segment, slice), one(kind.from, part));
    }
}

/* Messages of one slice: what @turn needs of chunk @chunk (LH_SYNTH_LOCAL: within the place) and
 * goes over the stream of the exchange. */
static void
move_chunk(Exchange *x, Kind kind, uint32_t slice, uint32_t chunk, int turn)
{
    const Writer *w = x->w;
    const LhSynthProblem *p = w->e->p;
    const uint32_t entry = slice * p->chunks + chunk, home = p->homes[chunk];
    uint32_t needed;

    for (uint32_t to = 0; to < p->places; to++) {
        const uint32_t at = needed_at(&w->e->layout->sites[to], kind, entry, &needed);
        const uint32_t distance = (to + p->places - home) % p->places;

        if (at == LH_SYNTH_NONE || (home != w->place && to != w->place))
            continue;
        if (turn == LH_SYNTH_LOCAL ? distance != 0
                                   : distance == 0 || needed != (uint32_t)turn ||
                                         STREAM_DISTANCE + (distance - 1) % DISTANCES != x->stream)
            continue;
        for (uint32_t piece = 0; piece < p->pieces; piece++) {
            const uint32_t segment = chunk * p->pieces + piece;
            const uint32_t owner = p->seats[segment].rank;

            if (owner == w->rank)
                send_segment(x, kind, slice, segment, to);
            else if (to == w->place)
                post(x, false, owner, label(p, kind.rows ? 0 : 1, segment, slice),
                     one(kind.to, at + piece));
        }
    }
}

static void
move_chunks(Exchange *x, uint32_t first, uint32_t end, int turn)
{
    for (int k = 0; k < 2; k++) {
        const Kind kind = kind_of(x->w->e, k == 0);

        for (uint32_t slice = 0; slice < kind.slices; slice++)
            for (uint32_t chunk = first; chunk < end; chunk++)
                move_chunk(x, kind, slice, chunk, turn);
    }
}

/* All inputs, in the order of their rounds. */
static void
gather(Writer *w)
{
    const LhSynthProblem *p = w->e->p;
    uint32_t last = 0;

    for (uint32_t chunk = 0; chunk < p->chunks; chunk++) {
        Exchange x = { .w = w, .stream = STREAM_LOCAL };

        if (p->homes[chunk] != w->place)
            continue;
        move_chunks(&x, chunk, chunk + 1, LH_SYNTH_LOCAL);
        last = MAX(last, x.id);
        w->gathered[chunk] = last;
    }
}

/* The inputs of a round; its calls wait for these and those of earlier rounds. */
static void
gather_round(Writer *w, uint32_t turn, Waits *arrived)
{
    for (uint32_t d = 0; d < w->e->streams; d++) {
        Exchange x = { .w = w, .stream = (uint8_t)(STREAM_DISTANCE + d) };

        move_chunks(&x, 0, w->e->p->chunks, (int)turn);
        if (x.id > 0)
            note(w, arrived, x.id - 1);
    }
}

/* The rank's own pieces go where the others' arrive. */
static void
copy_own(Writer *w)
{
    const Emission *e = w->e;
    const LhSynthProblem *p = e->p;

    for (int k = 0; k < 2; k++) {
        const Kind kind = kind_of(e, k == 0);
        const LhKernelArgs args = kind.rows ? row_args(e, 1) : column_args(e, 1);

        for (uint32_t segment = 0; segment < p->segments; segment++) {
            if (p->seats[segment].rank != w->rank)
                continue;
            for (uint32_t slice = 0; slice < kind.slices; slice++) {
                const uint32_t entry = slice * p->chunks + segment / p->pieces;
                uint32_t turn;
                const uint32_t at = needed_at(w->site, kind, entry, &turn);

                if (at == LH_SYNTH_NONE)
                    continue;
                note(w, &w->copied,
                     lh_emit_compute(w->emitter, STREAM_FIRST, LH_KERNEL_ID_copy, &args));
                lh_emit_operand(w->emitter, kind.from,
                                p->seats[segment].part * kind.width + w->gpu * kind.slices + slice,
                                1);
                lh_emit_operand(w->emitter, kind.to, at + segment % p->pieces, 1);
            }
        }
    }
}

/* --- attention ----------------------------------------------------------------------------------
 */

static uint32_t
row_entry(const Writer *w, const LhSynthCall *call, uint32_t index)
{
    const uint32_t base = call->slice * w->e->p->chunks;

    return base + w->site->rows[base + call->row + index];
}

static uint32_t
column_chunk(const Writer *w, const LhSynthCall *call, uint32_t index)
{
    const LhSynthProblem *p = w->e->p;

    return w->site->columns[lh_synth_kv_slice(p, call->slice) * p->chunks + call->column + index];
}

static Waits
inputs_of(const Writer *w, const LhSynthCall *call)
{
    const LhSynthProblem *p = w->e->p;
    Waits waits = w->copied;
    uint32_t local = 0;

    for (uint32_t i = 0; i < call->rows; i++)
        local = MAX(local, w->gathered[row_entry(w, call, i) % p->chunks]);
    for (uint32_t j = 0; j < call->columns; j++)
        local = MAX(local, w->gathered[column_chunk(w, call, j)]);
    waits.last[STREAM_LOCAL] = local;
    if (call->turn != LH_SYNTH_LOCAL)
        join(&waits, &w->arrived);
    return waits;
}

/* The block's output joins what the row has already. */
static void
merge_block(Writer *w, uint32_t entry, uint32_t at, uint8_t stream)
{
    const Emission *e = w->e;
    const LhKernelArgs args = row_args(e, e->p->pieces);
    const uint32_t id = lh_emit_compute(w->emitter, stream, LH_KERNEL_ID_merge_lse, &args);

    lh_emit_operand(w->emitter, e->slots.block, at, e->p->pieces);
    lh_emit_operand(w->emitter, e->slots.block, w->site->result_at[entry], e->p->pieces);
    wait_for(w, &w->results[entry]);
    note(w, &w->results[entry], id);
}

/* Rows [first, first + count) of the call; all of them begin, or none does. */
static void
attend_rows(Writer *w, const LhSynthCall *call, uint32_t first, uint32_t count, uint8_t stream)
{
    const Emission *e = w->e;
    const LhSynthProblem *p = e->p;
    const bool blocks = e->layout->kernels == LH_SYNTH_BLOCKS;
    const uint32_t entry = row_entry(w, call, first);
    const uint32_t column = column_chunk(w, call, 0);
    const uint32_t kv = lh_synth_kv_slice(p, call->slice) * p->chunks + column;
    LhKernelArgs args = lh_synth_args(p, entry % p->chunks, count, column, call->columns);
    Waits waits = inputs_of(w, call);
    uint32_t id;

    args.first = blocks || !w->begun[entry];
    args.rule = &e->program->params.mask;
    id = lh_emit_compute(w->emitter, stream,
                         blocks ? LH_KERNEL_ID_attention_block : LH_KERNEL_ID_attention_fwd, &args);
    lh_emit_operand(w->emitter, e->slots.rows, w->site->row_at[entry], count * p->pieces);
    lh_emit_operand(w->emitter, e->slots.columns, w->site->column_at[kv],
                    call->columns * p->pieces);
    lh_emit_operand(w->emitter, e->slots.block, call->out + first * p->pieces, count * p->pieces);
    for (uint32_t i = first; i < first + count && !blocks; i++)
        join(&waits, &w->results[row_entry(w, call, i)]);
    wait_for(w, &waits);
    for (uint32_t i = first; i < first + count; i++) {
        const uint32_t row = row_entry(w, call, i);

        if (blocks && w->begun[row]) {
            Waits *result = &w->results[row];

            note(w, result, id);
            merge_block(w, row, call->out + i * p->pieces, stream);
        } else {
            note(w, &w->results[row], id);
        }
        w->begun[row] = true;
    }
}

static void
attend(Writer *w, const LhSynthCall *call)
{
    const bool blocks = w->e->layout->kernels == LH_SYNTH_BLOCKS;
    const uint8_t stream = other_stream(w);
    uint32_t first = 0;

    while (first < call->rows) {
        const bool begun = w->begun[row_entry(w, call, first)];
        uint32_t end = first + 1;

        while (end < call->rows && (blocks || w->begun[row_entry(w, call, end)] == begun))
            end++;
        attend_rows(w, call, first, end - first, stream);
        first = end;
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

static void
finish_outputs(Writer *w, uint32_t output, uint32_t count, uint16_t slot, uint32_t part)
{
    const Emission *e = w->e;
    const LhKernelArgs args = row_args(e, count);
    const bool blocks = e->layout->kernels == LH_SYNTH_BLOCKS;
    LhKernelId kernel = LH_KERNEL_ID_normalise;

    if (blocks)
        kernel = slot == e->slots.sum ? LH_KERNEL_ID_round_out : LH_KERNEL_ID_copy_out;
    lh_emit_compute(w->emitter, STREAM_MERGE, kernel, &args);
    lh_emit_operand(w->emitter, slot, part, count);
    lh_emit_operand(w->emitter, e->slots.o, output, count);
    lh_emit_operand(w->emitter, e->slots.lse, output, count);
}

/* Outputs whose sums are complete now, in runs. */
static void
finish_complete(Writer *w, const Run *run)
{
    uint32_t i = 0;

    while (i < run->count) {
        uint32_t end = i;

        while (end < run->count && w->missing[run->output + end] == 0)
            end++;
        if (end > i)
            finish_outputs(w, run->output + i, end - i, w->e->slots.sum, run->output + i);
        i = end + 1;
    }
}

static void
merge_run(Writer *w, const Run *run, const Waits *waits)
{
    const Emission *e = w->e;
    LhKernelArgs args = row_args(e, run->count);

    for (uint32_t i = 0; i < run->count; i++) {
        w->missing[run->output + i]--;
        w->summed[run->output + i] = true;
    }
    if (run->alone) {
        finish_outputs(w, run->output, run->count, run->slot, run->part);
        wait_for(w, waits);
        return;
    }
    args.first = run->first;
    lh_emit_compute(
        w->emitter, STREAM_MERGE,
        e->layout->kernels == LH_SYNTH_BLOCKS ? LH_KERNEL_ID_merge_lse : LH_KERNEL_ID_merge, &args);
    lh_emit_operand(w->emitter, run->slot, run->part, run->count);
    lh_emit_operand(w->emitter, e->slots.sum, run->output, run->count);
    wait_for(w, waits);
    finish_complete(w, run);
}

static Run
run_of(const Writer *w, const Arrival *a)
{
    const Emission *e = w->e;
    const bool own = a->source == w->rank;
    const uint32_t output = a->part * e->program->head_slices + a->slice;
    const uint32_t at = own ? w->site->result_at[a->entry] + a->piece : a->at;

    return (Run){ .slot = own ? e->slots.block : e->slots.came,
                  .part = at,
                  .output = output,
                  .count = 1,
                  .alone = w->alone[output],
                  .first = !w->summed[output] };
}

static bool
is_of_turn(const Arrival *a, int turn, bool remote)
{
    return a->turn == turn && a->remote == remote;
}

/* Merges the arrivals of a turn that come from the rank itself, or (@own false) from others. */
static void
merge_arrivals(Writer *w, int turn, bool remote, bool own, const Waits *waits)
{
    const GArray *arrivals = w->e->arrivals[w->rank];
    Run run = { .count = 0 };

    for (guint i = 0; i < arrivals->len; i++) {
        const Arrival *a = &g_array_index(arrivals, Arrival, i);
        Run next;

        if (!is_of_turn(a, turn, remote) || (a->source == w->rank) != own)
            continue;
        next = run_of(w, a);
        if (run.count > 0 && next.slot == run.slot && next.part == run.part + run.count &&
            next.output == run.output + run.count && next.alone == run.alone &&
            next.first == run.first) {
            run.count++;
            continue;
        }
        if (run.count > 0) {
            merge_run(w, &run, waits);
            next = run_of(w, a); /* it may have begun with that */
        }
        run = next;
    }
    if (run.count > 0)
        merge_run(w, &run, waits);
}

static void
send_results(Exchange *x, int turn)
{
    const Writer *w = x->w;
    const GArray *departures = w->e->departures[w->rank];

    for (guint i = 0; i < departures->len; i++) {
        const Departure *d = &g_array_index(departures, Departure, i);
        const Arrival *a = &g_array_index(w->e->arrivals[d->peer], Arrival, d->index);

        if (is_of_turn(a, turn, x->stream == STREAM_RESULTS))
            post(x, true, d->peer, label(w->e->p, 2, a->part, a->slice),
                 one(w->e->slots.block, w->site->result_at[a->entry] + a->piece));
    }
}

static void
receive_results(Exchange *x, int turn)
{
    const Writer *w = x->w;
    const GArray *arrivals = w->e->arrivals[w->rank];

    for (guint i = 0; i < arrivals->len; i++) {
        const Arrival *a = &g_array_index(arrivals, Arrival, i);

        if (a->source != w->rank && is_of_turn(a, turn, x->stream == STREAM_RESULTS))
            post(x, false, a->source, label(w->e->p, 2, a->part, a->slice),
                 one(w->e->slots.came, a->at));
    }
}

/* Results that are complete behind the calls of a turn, for rows that live here or elsewhere. */
static void
return_results(Writer *w, int turn, bool remote)
{
    const LhSynthProblem *p = w->e->p;
    Waits computed = { { 0 } }, received = { { 0 } };
    Exchange x = { .w = w, .stream = remote ? STREAM_RESULTS : STREAM_LOCAL, .waits = &computed };

    for (uint32_t entry = 0; entry < p->grain.slices * p->chunks; entry++) {
        if (w->site->result_at[entry] != LH_SYNTH_NONE && w->site->result_turn[entry] == turn &&
            (p->homes[entry % p->chunks] != w->place) == remote)
            join(&computed, &w->results[entry]);
    }
    merge_arrivals(w, turn, remote, true, &computed);
    send_results(&x, turn);
    receive_results(&x, turn);
    if (x.id > 0)
        note(w, &received, x.id - 1);
    merge_arrivals(w, turn, remote, false, &received);
}

/* --- arrivals -----------------------------------------------------------------------------------
 */

static int
by_order(gconstpointer a, gconstpointer b)
{
    const Arrival *x = a, *y = b;

    if (x->remote != y->remote)
        return x->remote ? 1 : -1;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    if (x->slice != y->slice)
        return x->slice < y->slice ? -1 : 1;
    return x->source < y->source ? -1 : x->source > y->source;
}

/* What place @from has for segment @segment. */
static void
add_arrivals(const Emission *e, GArray *arrivals, uint32_t segment, uint32_t from)
{
    const LhSynthProblem *p = e->p;
    const LhSynthSite *site = &e->layout->sites[from];
    const uint32_t chunk = segment / p->pieces;

    for (uint32_t slice = 0; slice < p->grain.slices; slice++) {
        const uint32_t entry = slice * p->chunks + chunk;

        if (site->result_at[entry] == LH_SYNTH_NONE)
            continue;
        for (uint32_t gpu = 0; gpu < p->gpus; gpu++) {
            const Arrival a = { .remote = p->homes[chunk] != from,
                                .turn = site->result_turn[entry],
                                .part = p->seats[segment].part,
                                .slice = gpu * p->grain.slices + slice,
                                .source = from * p->gpus + gpu,
                                .entry = entry,
                                .piece = segment % p->pieces };

            g_array_append_val(arrivals, a);
        }
    }
}

/* Returns the most parts that any rank receives. */
static uint32_t
find_arrivals(Emission *e)
{
    const LhSynthProblem *p = e->p;
    const uint32_t ranks = p->places * p->gpus;
    uint32_t most = 0;

    e->arrivals = g_new(GArray *, ranks);
    e->departures = g_new(GArray *, ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        e->arrivals[rank] = g_array_new(FALSE, FALSE, sizeof(Arrival));
        e->departures[rank] = g_array_new(FALSE, FALSE, sizeof(Departure));
    }
    for (uint32_t segment = 0; segment < p->segments; segment++)
        for (uint32_t from = 0; from < p->places; from++)
            add_arrivals(e, e->arrivals[p->seats[segment].rank], segment, from);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t at = 0;

        g_array_sort(e->arrivals[rank], by_order);
        for (guint i = 0; i < e->arrivals[rank]->len; i++) {
            Arrival *a = &g_array_index(e->arrivals[rank], Arrival, i);

            const Departure d = { rank, i };

            if (a->source == rank)
                continue;
            a->at = at++;
            g_array_append_val(e->departures[a->source], d);
        }
        most = MAX(most, at);
    }
    return most;
}

/* --- declarations -------------------------------------------------------------------------------
 */

static uint16_t
add_slot(LhProgram *program, const char *name, LhTensorKind kind, uint32_t parts,
         uint64_t part_bytes, uint32_t element_bytes)
{
    return lh_pass_add_slot(program, name, kind, LH_SLOT_TEMP, MAX(parts, 1), part_bytes,
                            element_bytes);
}

static LhProgram *
new_program(const LhSynthProblem *p)
{
    const LhProgram *form = p->form;
    LhProgram *program =
        lh_program_create("synth", &lh_explicit_generator, &form->params, form->placement.kind);
    const LhPassSizes sizes = lh_pass_sizes(&program->params, 0);

    program->placement.split = form->placement.split;
    program->head_slices = form->head_slices;
    program->kv_slices = form->kv_slices;
    lh_pass_declare(program, &sizes);
    return program;
}

/* Temporary slots are as large as the rank that needs most of each has them. */
static void
declare(Emission *e)
{
    const LhSynthProblem *p = e->p;
    const uint32_t came = find_arrivals(e);
    const bool blocks = e->layout->kernels == LH_SYNTH_BLOCKS;
    const LhTensorKind kind = blocks ? LH_TENSOR_OUT : LH_TENSOR_ACC;
    uint32_t q = 0, kv = 0, out = 0;
    LhProgram *program = e->program = new_program(p);
    const LhSlot *inputs = program->slots;
    const uint32_t width = lh_dtype_bytes(program->params.attention.dtype);
    const uint64_t q_bytes = inputs[0].part_bytes, kv_bytes = inputs[1].part_bytes;
    const uint32_t parts = inputs[0].parts;
    const uint64_t stats = inputs[3].part_bytes * (blocks ? 1 : 2);

    for (uint32_t place = 0; place < p->places; place++) {
        q = MAX(q, e->layout->sites[place].q_parts);
        kv = MAX(kv, e->layout->sites[place].kv_parts);
        out = MAX(out, e->layout->sites[place].out_parts);
    }
    e->slots = (Slots){ .q = 0, .kv = 1, .o = 2, .lse = 3 };
    e->slots.rows = add_slot(program, "rows", LH_TENSOR_Q, q, q_bytes, width);
    e->slots.columns = add_slot(program, "columns", LH_TENSOR_KV, kv, kv_bytes, width);
    e->slots.block = add_slot(program, "block", kind, out, q_bytes + stats, width);
    e->slots.came = add_slot(program, "came", kind, came, q_bytes + stats, width);
    e->slots.sum = add_slot(program, "sum", kind, parts, q_bytes / width * 4 + stats, 4);
    lh_program_add_stream(program, "compute2", LH_STREAM_COMPUTE);
    lh_program_add_stream(program, "merge", LH_STREAM_COMPUTE);
    lh_program_add_stream(program, "results", LH_STREAM_COMM);
    e->streams = MIN(p->places - 1, DISTANCES);
    for (uint32_t d = 0; d < e->streams; d++) {
        g_autofree char *name = g_strdup_printf("inputs%u", d + 1);

        lh_program_add_stream(program, name, LH_STREAM_COMM);
    }
}

/* --- ranks --------------------------------------------------------------------------------------
 */

/* How many contributions each output of the rank waits for. */
static void
count_missing(Writer *w)
{
    const GArray *arrivals = w->e->arrivals[w->rank];
    const uint32_t slices = w->e->program->head_slices;

    for (guint i = 0; i < arrivals->len; i++) {
        const Arrival *a = &g_array_index(arrivals, Arrival, i);

        w->missing[a->part * slices + a->slice]++;
    }
    for (uint32_t i = 0; i < w->e->program->slots[w->e->slots.o].parts; i++)
        w->alone[i] = w->missing[i] == 1;
}

static void
write_ops(Writer *w)
{
    const uint32_t rounds = w->e->layout->state->rounds;
    g_autofree Waits *arrived = g_new0(Waits, rounds + 1);
    guint call = 0;

    for (uint16_t slot = w->e->slots.rows; slot <= w->e->slots.sum; slot++)
        lh_emit_alloc(w->emitter, slot);
    copy_own(w);
    gather(w);
    for (uint32_t t = 0; t < rounds; t++) {
        arrived[t + 1] = arrived[t];
        gather_round(w, t, &arrived[t + 1]);
    }
    for (int turn = LH_SYNTH_LOCAL; turn < (int)rounds; turn++) {
        w->emitter->step = (uint32_t)(turn + 1);
        w->arrived = arrived[turn + 1];
        for (; call < w->site->calls->len; call++) {
            const LhSynthCall *c = &g_array_index(w->site->calls, LhSynthCall, call);

            if (c->turn != turn)
                break;
            attend(w, c);
        }
        return_results(w, turn, false);
        return_results(w, turn, true);
    }
    for (uint16_t slot = w->e->slots.rows; slot <= w->e->slots.sum; slot++)
        lh_emit_free(w->emitter, slot);
}

/* The ops of @buffer, whose arrays are taken over. */
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
write_rank(const Emission *e, uint32_t rank)
{
    const LhSynthProblem *p = e->p;
    const uint32_t entries = p->grain.slices * p->chunks;
    const uint32_t outputs = e->program->slots[e->slots.o].parts;
    LhOpBuffer buffer = { 0 };
    LhCursorState state = { .rank = rank };
    LhEmitter emitter = { .program = e->program,
                          .buffer = &buffer,
                          .state = &state,
                          .marks = state.marks,
                          .rank = rank };
    Writer w = { .e = e,
                 .emitter = &emitter,
                 .site = &e->layout->sites[rank / p->gpus],
                 .rank = rank,
                 .place = rank / p->gpus,
                 .gpu = rank % p->gpus,
                 .gathered = g_new0(uint32_t, p->chunks),
                 .results = g_new0(Waits, entries),
                 .begun = g_new0(bool, entries),
                 .missing = g_new0(uint32_t, outputs),
                 .alone = g_new0(bool, outputs),
                 .summed = g_new0(bool, outputs) };

    count_missing(&w);
    write_ops(&w);
    g_free(w.gathered);
    g_free(w.results);
    g_free(w.begun);
    g_free(w.missing);
    g_free(w.alone);
    g_free(w.summed);
    return rank_of(&buffer);
}

LhProgram *
lh_synth_emit(const LhSynthState *state, LhSynthKernels kernels)
{
    const uint32_t ranks = state->problem->places * state->problem->gpus;
    g_autoptr(LhSynthLayout) layout = lh_synth_layout_new(state, kernels);
    Emission e = { .layout = layout, .p = state->problem };
    LhExplicit *all = g_new0(LhExplicit, 1);

    declare(&e);
    all->ranks_count = ranks;
    all->ranks = g_new0(LhExplicitRank, ranks);
    for (uint32_t rank = 0; rank < ranks; rank++)
        all->ranks[rank] = write_rank(&e, rank);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        g_array_unref(e.arrivals[rank]);
        g_array_unref(e.departures[rank]);
    }
    g_free(e.arrivals);
    g_free(e.departures);
    e.program->plan = all;
    e.program->plan_free = lh_explicit_free;
    return e.program;
}
