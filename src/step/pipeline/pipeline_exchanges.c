/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline as its turns: each stage works on one stream and exchanges on another, both in order.
 * An exchange starts when the stream is free and what it sends is made; a message takes its time
 * once both of its ends have started. Left out: hosts, links shared with others, the embedding, the
 * optimizer.
 */
#include "step/pipeline/pipeline_exchanges.h"

#include "step/step_private.h"

/* A message: when it was made, when each of its ends started, when it arrived. */
typedef struct {
    LhTime made_ps, started_ps[2], arrived_ps; /* LH_TIME_NEVER: not yet */
} Message;

typedef struct {
    const GArray *turns; /* of LhStepTurn */
    guint at;            /* next turn */
    bool posted;         /* the next turn is an exchange that has started */
    LhTime posted_ps;
    LhTime work_ps, exchange_ps; /* end of the last work, and of the last exchange */
} StageTurns;

typedef struct {
    const LhStepLayerTimes *of;
    const LhStepStageTimes *ends;
    uint32_t stages, places, micro_batches;
    bool overlap;      /* gradients of a layer are reduced right after it */
    uint32_t *layers;  /* [places] */
    Message *messages; /* [2][places of the sender][micro-batches] */
    StageTurns *stage; /* [stages] */
} Exchanges;

static Message *
message_from(const Exchanges *x, bool backward, uint32_t place, uint32_t micro_batch)
{
    return &x->messages[((size_t)(backward ? x->places : 0) + place) * x->micro_batches +
                        micro_batch];
}

/* The message of an exchange of @stage, and the stage that sends it. */
static Message *
message_of(const Exchanges *x, uint32_t stage, const LhStepMessage *m, uint32_t *sender)
{
    const uint32_t own = m->chunk * x->stages + stage;
    const uint32_t place = m->send ? own : m->backward ? own + 1 : own - 1;

    *sender = place % x->stages;
    return message_from(x, m->backward, place, m->micro_batch);
}

/* ---- works ---- */

/* Accumulation after the gradient for the previous place: of one layer, or of all layers if it
 * happens at the end of the chunk's backward pass. */
static LhTime
after_gradient(const Exchanges *x, uint32_t place)
{
    return (x->overlap ? MIN(x->layers[place], 1) : (LhTime)x->layers[place]) *
           x->of->accumulate_ps;
}

/* Forward work waits for the rows of the previous place. */
static void
work_forward(const Exchanges *x, StageTurns *s, uint32_t place, uint32_t micro_batch)
{
    const LhTime given_ps =
        place == 0 ? 0 : message_from(x, false, place - 1, micro_batch)->arrived_ps;
    const LhTime begin_ps = MAX(s->work_ps, given_ps);

    if (x->layers[place] > 0)
        s->work_ps = begin_ps + (LhTime)x->layers[place] * x->of->forward_ps;
    message_from(x, false, place, micro_batch)->made_ps = MAX(begin_ps, s->work_ps);
}

/* Backward work of the last place begins with the head. Elsewhere it waits for the gradients of the
 * next place, except for the recomputation of its last layer, which comes first. */
static void
work_backward(const Exchanges *x, StageTurns *s, uint32_t place, uint32_t micro_batch)
{
    const LhTime layers = x->layers[place], backward_ps = layers * x->of->backward_ps;
    const LhTime again_ps = layers == 0 ? 0 : (layers - 1) * x->of->recompute_ps;
    LhTime given_ps = 0;

    if (place + 1 < x->places)
        given_ps = message_from(x, true, place + 1, micro_batch)->arrived_ps;
    else
        s->work_ps = MAX(s->work_ps, message_from(x, false, place - 1, micro_batch)->arrived_ps) +
                     x->ends->head_ps;
    s->work_ps = MAX(s->work_ps + layers * x->of->recompute_ps + backward_ps,
                     given_ps + backward_ps + again_ps);
    message_from(x, true, place, micro_batch)->made_ps = s->work_ps - after_gradient(x, place);
}

/* ---- exchanges ---- */

static void
post(const Exchanges *x, uint32_t stage, const LhStepTurn *turn)
{
    StageTurns *s = &x->stage[stage];
    uint32_t sender;

    s->posted = true;
    s->posted_ps = s->exchange_ps;
    for (uint32_t i = 0; i < turn->messages_count; i++) {
        const Message *m = message_of(x, stage, &turn->messages[i], &sender);

        if (turn->messages[i].send)
            s->posted_ps = MAX(s->posted_ps, m->made_ps);
    }
    for (uint32_t i = 0; i < turn->messages_count; i++)
        message_of(x, stage, &turn->messages[i], &sender)->started_ps[turn->messages[i].send] =
            s->posted_ps;
}

/* Ends the exchange; false if the other end of a message has not started. */
static bool
end_exchange(const Exchanges *x, uint32_t stage, const LhStepTurn *turn)
{
    StageTurns *s = &x->stage[stage];
    LhTime end_ps = s->posted_ps;
    uint32_t sender;

    for (uint32_t i = 0; i < turn->messages_count; i++) {
        const Message *m = message_of(x, stage, &turn->messages[i], &sender);
        const LhTime both_ps = MAX(m->started_ps[0], m->started_ps[1]);

        if (both_ps == LH_TIME_NEVER)
            return false;
        end_ps = MAX(end_ps, both_ps + x->ends->message_ps[turn->messages[i].backward][sender]);
    }
    for (uint32_t i = 0; i < turn->messages_count; i++) {
        if (!turn->messages[i].send)
            message_of(x, stage, &turn->messages[i], &sender)->arrived_ps = end_ps;
    }
    s->exchange_ps = end_ps;
    s->posted = false;
    return true;
}

/* ---- all stages ---- */

/* Advances a stage as far as possible; returns whether it advanced. */
static bool
take_turns(const Exchanges *x, uint32_t stage)
{
    StageTurns *s = &x->stage[stage];
    bool moved = false;

    for (; s->at < s->turns->len; s->at++) {
        const LhStepTurn *turn = &g_array_index(s->turns, LhStepTurn, s->at);
        const uint32_t place = turn->chunk * x->stages + stage;

        if (turn->messages_count > 0) {
            moved |= !s->posted;
            if (!s->posted)
                post(x, stage, turn);
            if (!end_exchange(x, stage, turn))
                return moved;
        } else {
            (turn->backward ? work_backward : work_forward)(x, s, place, turn->micro_batch);
        }
        moved = true;
    }
    return moved;
}

static LhTime
take_all_turns(const Exchanges *x)
{
    LhTime longest_ps = 0;
    bool moved = true;

    while (moved) {
        moved = false;
        for (uint32_t stage = 0; stage < x->stages; stage++)
            moved |= take_turns(x, stage);
    }
    for (uint32_t stage = 0; stage < x->stages; stage++)
        longest_ps = MAX(longest_ps, MAX(x->stage[stage].work_ps, x->stage[stage].exchange_ps));
    return longest_ps;
}

LhTime
lh_step_pipeline_exchanged(const LhStepParams *params, const LhStepLayerTimes *of,
                           const LhStepStageTimes *ends)
{
    const uint32_t stages = lh_step_stages(params), places = stages * lh_step_chunks(params);
    const size_t messages_count = (size_t)2 * places * params->micro_batches;
    g_autoptr(GPtrArray) turns = lh_step_turns(params);
    g_autofree uint32_t *layers = g_new0(uint32_t, places);
    g_autofree Message *messages = g_new(Message, messages_count);
    g_autofree StageTurns *stage = g_new0(StageTurns, stages);
    const Exchanges x = { .of = of,
                          .ends = ends,
                          .stages = stages,
                          .places = places,
                          .micro_batches = params->micro_batches,
                          .overlap =
                              params->behaviour.overlap_reduce && !params->behaviour.unit_is_model,
                          .layers = layers,
                          .messages = messages,
                          .stage = stage };

    g_assert(stages > 1);
    for (uint32_t at = 0; at < places; at++)
        layers[at] = lh_step_chunk_begins(params, at + 1) - lh_step_chunk_begins(params, at);
    for (uint32_t i = 0; i < stages; i++)
        stage[i].turns = g_ptr_array_index(turns, i);
    for (size_t i = 0; i < messages_count; i++)
        messages[i] = (Message){ LH_TIME_NEVER, { LH_TIME_NEVER, LH_TIME_NEVER }, LH_TIME_NEVER };
    return take_all_turns(&x);
}
