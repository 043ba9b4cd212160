/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work and exchanges of pipeline stages. Orders are those of GPipe (arXiv 1811.06965: all forward,
 * then all backward), PipeDream-Flush (1F1B) and Megatron-LM's interleaved 1F1B (arXiv 2104.04473).
 * The forward pass alone is the same in all: with chunks, in the interleaved order.
 *
 * Without chunks, exchanges are found by simulating the pipeline once with works of equal length
 * (ticks). A message is exchanged after the tick in which it is made, or after the tick of its
 * receiver's preceding work, whichever is later. Both ends use the same tick, so exchanges complete
 * without anything else running beside them. A stage receives as late as possible, as Megatron-LM
 * does without overlap.
 *
 * With chunks, stages exchange as Megatron-LM does unless overlap is switched off: after forward
 * work its rows go, and those of the next forward work come; after backward work the same of
 * gradients; the first gradient is awaited from the last warm-up work on. The k-th exchange of rows
 * of a stage is the (k - 1)-th of the next one, and so for gradients, which come between the same
 * exchanges of rows at both ends.
 */
#include "step/pipeline/pipeline.h"

#include "step/step_private.h"

const char *const lh_pipeline_order_names[] = {
    [LH_PIPELINE_1F1B] = "1f1b",
    [LH_PIPELINE_GPIPE] = "gpipe",
    [LH_PIPELINE_ORDERS] = NULL,
};

/* One work of a stage: a chunk and a micro-batch, and its tick. */
typedef struct {
    bool backward;
    uint32_t chunk, micro_batch;
    uint32_t tick;
} Work;

/* One end of a message: the tick after which it is exchanged, and its order among those. */
typedef struct {
    uint32_t round, number;
    LhStepMessage message;
} End;

typedef struct {
    uint32_t stages, chunks, micro_batches;
    bool forward_only;
    GArray **work;   /* [stages] of Work */
    GArray **ends;   /* [stages] of End */
    uint32_t *ticks; /* [2][stages x chunks][micro-batches]: tick of each work */
} Pipeline;

/* ---- chunks ---- */

uint32_t
lh_step_places_of_chunk(const LhStepParams *p)
{
    const uint32_t more = (p->embedding_counts ? 1u : 0) + (p->loss_counts ? 1u : 0);

    return ((uint32_t)p->model->num_layers + more) / (lh_step_stages(p) * lh_step_chunks(p));
}

uint32_t
lh_step_chunk_begins(const LhStepParams *p, uint32_t place)
{
    if (place == 0)
        return 0;
    if (place == lh_step_stages(p) * lh_step_chunks(p))
        return (uint32_t)p->model->num_layers;
    return place * lh_step_places_of_chunk(p) - (p->embedding_counts ? 1 : 0);
}

uint32_t
lh_step_stage_layers(const LhStepParams *p, uint32_t stage)
{
    uint32_t layers = 0;

    for (uint32_t chunk = 0; chunk < lh_step_chunks(p); chunk++) {
        const uint32_t place = chunk * lh_step_stages(p) + stage;

        layers += lh_step_chunk_begins(p, place + 1) - lh_step_chunk_begins(p, place);
    }
    return layers;
}

/* ---- orders ---- */

uint32_t
lh_step_warmup(const LhStepParams *params, uint32_t stage)
{
    const uint32_t behind = lh_step_stages(params) - stage - 1;
    const uint32_t chunks = lh_step_chunks(params), all = params->micro_batches * chunks;

    if (params->pipeline_order == LH_PIPELINE_GPIPE || params->forward_only)
        return all;
    return MIN(chunks > 1 ? 2 * behind + (chunks - 1) * lh_step_stages(params) : behind, all);
}

/* The forward or backward work @number of a stage: chunks alternate every `stages` micro-batches,
 * backward from the last chunk to the first. */
static Work
work_at(const Pipeline *p, bool backward, uint32_t number)
{
    const uint32_t stages = p->chunks > 1 ? p->stages : 1;
    const uint32_t round = number / (stages * p->chunks), within = number % (stages * p->chunks);
    const uint32_t chunk = within / stages;

    return (Work){ .backward = backward,
                   .chunk = backward ? p->chunks - 1 - chunk : chunk,
                   .micro_batch = round * stages + within % stages };
}

/* Progress of a stage: number of completed works. */
typedef struct {
    uint32_t forward, backward;
} Progress;

/* Finds the next work; false: none. */
static bool
next_work(const Pipeline *p, uint32_t warmup, const Progress *done, Work *next)
{
    const uint32_t all = p->micro_batches * p->chunks;
    const bool backward = done->forward == all || done->forward > warmup + done->backward;

    if (p->forward_only ? done->forward == all : done->backward == all)
        return false;
    *next = work_at(p, backward, backward ? done->backward : done->forward);
    return true;
}

static void
advance(Progress *done, const Work *work)
{
    done->forward += !work->backward;
    done->backward += work->backward;
}

static void
list_work(const Pipeline *p, uint32_t stage, uint32_t warmup)
{
    Progress done = { 0 };
    Work next;

    while (next_work(p, warmup, &done, &next)) {
        g_array_append_val(p->work[stage], next);
        advance(&done, &next);
    }
}

/* ---- ticks ---- */

static uint32_t *
tick_of(const Pipeline *p, bool backward, uint32_t at, uint32_t micro_batch)
{
    return &p->ticks[((backward ? p->stages * p->chunks : 0) + at) * p->micro_batches +
                     micro_batch];
}

/* Index of a stage's chunk among all chunks. */
static uint32_t
chunk_place(const Pipeline *p, uint32_t stage, uint32_t chunk)
{
    return chunk * p->stages + stage;
}

static bool
is_ready(const Pipeline *p, uint32_t stage, const Work *work, uint32_t now)
{
    const uint32_t at = chunk_place(p, stage, work->chunk);

    if (work->backward)
        return at + 1 == p->stages * p->chunks ||
               *tick_of(p, true, at + 1, work->micro_batch) < now;
    return at == 0 || *tick_of(p, false, at - 1, work->micro_batch) < now;
}

/* Simulates all stages until all work is done; forward works come first among the ticks. */
static void
find_ticks(const Pipeline *p)
{
    g_autofree uint32_t *next = g_new0(uint32_t, p->stages);
    uint32_t left = (p->forward_only ? 1 : 2) * p->stages * p->chunks * p->micro_batches;

    for (uint32_t i = 0; i < left; i++)
        p->ticks[i] = LH_STEP_NONE;
    for (uint32_t now = 0; left > 0; now++) {
        const uint32_t before = left;

        for (uint32_t stage = 0; stage < p->stages; stage++) {
            Work *work = &g_array_index(p->work[stage], Work, next[stage]);

            if (next[stage] == p->work[stage]->len || !is_ready(p, stage, work, now))
                continue;
            work->tick = now;
            *tick_of(p, work->backward, chunk_place(p, stage, work->chunk), work->micro_batch) =
                now;
            next[stage]++;
            left--;
        }
        g_assert(left < before);
    }
}

/* ---- messages ---- */

static void
add_end(const Pipeline *p, uint32_t stage, const End *end)
{
    g_array_append_val(p->ends[stage], *end);
}

/* Adds the message that work @i of a stage needs from another stage, at both ends. */
static void
add_stage_message(const Pipeline *p, uint32_t stage, guint i)
{
    const Work *work = &g_array_index(p->work[stage], Work, i);
    const uint32_t at = chunk_place(p, stage, work->chunk), last = p->stages * p->chunks - 1;
    const uint32_t from = work->backward ? at + 1 : at - 1;
    End end = { .message = { .backward = work->backward,
                             .micro_batch = (uint16_t)work->micro_batch } };

    if (work->backward ? at == last : at == 0)
        return;
    end.number = (uint32_t)(tick_of(p, work->backward, from, work->micro_batch) - p->ticks);
    end.round = p->ticks[end.number];
    if (i > 0)
        end.round = MAX(end.round, g_array_index(p->work[stage], Work, i - 1).tick);
    end.message.chunk = (uint16_t)work->chunk;
    add_end(p, stage, &end);
    end.message.send = true;
    end.message.chunk = (uint16_t)(from / p->stages);
    add_end(p, from % p->stages, &end);
}

static gint
compare_ends(gconstpointer a, gconstpointer b)
{
    const End *x = a, *y = b;

    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* ---- turns ---- */

/* The exchange of all ends of one tick, starting at end @from. */
static LhStepTurn
exchange_at(const GArray *ends, guint from)
{
    const uint32_t round = g_array_index(ends, End, from).round;
    LhStepTurn turn = { 0 };

    for (; from < ends->len && g_array_index(ends, End, from).round == round; from++) {
        g_assert(turn.messages_count < LH_STEP_MESSAGES_MAX);
        turn.messages[turn.messages_count++] = g_array_index(ends, End, from).message;
    }
    return turn;
}

/* Appends exchanges before tick @until, starting at end @from; returns the next end. */
static guint
append_exchanges(const GArray *ends, guint from, uint32_t until, GArray *turns)
{
    while (from < ends->len && g_array_index(ends, End, from).round < until) {
        const LhStepTurn turn = exchange_at(ends, from);

        g_array_append_val(turns, turn);
        from += turn.messages_count;
    }
    return from;
}

static GArray *
turns_of(const Pipeline *p, uint32_t stage)
{
    GArray *turns = g_array_new(FALSE, FALSE, sizeof(LhStepTurn));
    guint next = 0;

    g_array_sort(p->ends[stage], compare_ends);
    for (guint i = 0; i < p->work[stage]->len; i++) {
        const Work *work = &g_array_index(p->work[stage], Work, i);
        const LhStepTurn turn = { .backward = work->backward,
                                  .chunk = (uint16_t)work->chunk,
                                  .micro_batch = (uint16_t)work->micro_batch };

        next = append_exchanges(p->ends[stage], next, work->tick, turns);
        g_array_append_val(turns, turn);
    }
    append_exchanges(p->ends[stage], next, UINT32_MAX, turns);
    return turns;
}

/* ---- turns with chunks ---- */

/* Adds to @turn what work makes for another stage (@send) or needs from one, if anything. */
static void
add_message(const Pipeline *p, uint32_t stage, bool send, const Work *work, LhStepTurn *turn)
{
    const uint32_t end = send == work->backward ? 0 : p->stages * p->chunks - 1;

    if (chunk_place(p, stage, work->chunk) == end)
        return;
    turn->messages[turn->messages_count++] =
        (LhStepMessage){ .send = send,
                         .backward = work->backward,
                         .chunk = (uint16_t)work->chunk,
                         .micro_batch = (uint16_t)work->micro_batch };
}

/* Adds what the stage's work @number needs from another stage, if anything. */
static void
add_receive(const Pipeline *p, uint32_t stage, bool backward, uint32_t number, LhStepTurn *turn)
{
    Work work;

    if (number == p->micro_batches * p->chunks || (backward && p->forward_only))
        return;
    work = work_at(p, backward, number);
    add_message(p, stage, false, &work, turn);
}

static void
append_exchange(GArray *turns, const LhStepTurn *turn)
{
    if (turn->messages_count > 0)
        g_array_append_vals(turns, turn, 1);
}

static GArray *
turns_of_chunks(const Pipeline *p, uint32_t stage, uint32_t warmup)
{
    GArray *turns = g_array_new(FALSE, FALSE, sizeof(LhStepTurn));
    LhStepTurn first = { 0 };
    Progress done = { 0 };
    Work work;

    add_receive(p, stage, false, 0, &first);
    append_exchange(turns, &first);
    while (next_work(p, warmup, &done, &work)) {
        const LhStepTurn turn = { .backward = work.backward,
                                  .chunk = (uint16_t)work.chunk,
                                  .micro_batch = (uint16_t)work.micro_batch };
        LhStepTurn exchange = { 0 }, gradient = { 0 };

        g_array_append_val(turns, turn);
        advance(&done, &work);
        add_message(p, stage, true, &work, &exchange);
        add_receive(p, stage, work.backward, work.backward ? done.backward : done.forward,
                    &exchange);
        append_exchange(turns, &exchange);
        if (!work.backward && done.forward == warmup) {
            add_receive(p, stage, true, 0, &gradient);
            append_exchange(turns, &gradient);
        }
    }
    return turns;
}

/* ---- all stages ---- */

static void
add_turns_by_ticks(Pipeline *p, const LhStepParams *params, GPtrArray *turns)
{
    p->ticks = g_new(uint32_t, (size_t)2 * p->stages * p->chunks * p->micro_batches);
    p->work = g_new(GArray *, p->stages);
    p->ends = g_new(GArray *, p->stages);
    for (uint32_t stage = 0; stage < p->stages; stage++) {
        p->work[stage] = g_array_new(FALSE, FALSE, sizeof(Work));
        p->ends[stage] = g_array_new(FALSE, FALSE, sizeof(End));
        list_work(p, stage, lh_step_warmup(params, stage));
    }
    find_ticks(p);
    for (uint32_t stage = 0; stage < p->stages; stage++) {
        for (guint i = 0; i < p->work[stage]->len; i++)
            add_stage_message(p, stage, i);
    }
    for (uint32_t stage = 0; stage < p->stages; stage++)
        g_ptr_array_add(turns, turns_of(p, stage));
    for (uint32_t stage = 0; stage < p->stages; stage++) {
        g_array_unref(p->work[stage]);
        g_array_unref(p->ends[stage]);
    }
    g_free(p->ticks);
    g_free(p->work);
    g_free(p->ends);
}

GPtrArray *
lh_step_turns(const LhStepParams *params)
{
    Pipeline p = {
        .stages = lh_step_stages(params),
        .chunks = lh_step_chunks(params),
        .micro_batches = params->micro_batches,
        .forward_only = params->forward_only,
    };
    GPtrArray *turns = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);

    if (p.chunks == 1)
        add_turns_by_ticks(&p, params, turns);
    for (uint32_t stage = 0; p.chunks > 1 && stage < p.stages; stage++)
        g_ptr_array_add(turns, turns_of_chunks(&p, stage, lh_step_warmup(params, stage)));
    return turns;
}

/* ---- lower bound ---- */

/* Layers of the first chunk of a stage. */
static LhTime
first_layers(const LhStepParams *params, uint32_t stage)
{
    return (LhTime)lh_step_chunk_begins(params, stage + 1) -
           (LhTime)lh_step_chunk_begins(params, stage);
}

LhTime
lh_step_pipeline_least(const LhStepParams *params, const LhStepLayerTimes *of)
{
    const bool overlap = params->behaviour.overlap_reduce && !params->behaviour.unit_is_model;
    LhTime filled_ps = 0, drained_ps = 0, longest_ps = 0;

    for (uint32_t stage = 0; stage < lh_step_stages(params); stage++) {
        const LhTime layers = first_layers(params, stage);
        const LhTime work_ps = (LhTime)lh_step_stage_layers(params, stage) *
                               (of->forward_ps + of->recompute_ps + of->backward_ps);
        /* Accumulation that follows the gradient for the previous stage: of one layer, or of all
         * layers if it happens at the end of the chunk's backward pass. */
        const LhTime after_ps = (overlap ? MIN(layers, 1) : layers) * of->accumulate_ps;

        if (stage > 0)
            drained_ps -= after_ps;
        longest_ps = MAX(longest_ps,
                         filled_ps + (LhTime)params->micro_batches * work_ps + MAX(drained_ps, 0));
        filled_ps += layers * of->forward_ps;
        /* The last layer may be recomputed before the gradient arrives. */
        drained_ps += layers * of->backward_ps + MAX(layers - 1, 0) * of->recompute_ps;
    }
    return longest_ps;
}
