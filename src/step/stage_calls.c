/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records one micro-batch call by call; or, in a pipeline, everything that a stage does.
 */
#include "step/memory/recomputation.h"
#include "step/memory/tiles.h"
#include "step/optimizer_calls.h"
#include "step/sharding.h"
#include "step/step_private.h"
#include "step/table_rows.h"

/* ---- a micro-batch ---- */

static void
drop(LhStepRecorder *r, uint32_t layer, uint64_t stays)
{
    const bool begins =
        layer < r->plan->layers &&
        layer == lh_step_chunk_begins(&r->plan->params, lh_step_chunk_of(r->plan, layer));

    for (uint32_t role = 0; role < LH_STEP_ROLES; role++) {
        const bool first =
            role == LH_STEP_X && begins; /* only the tokens or a message could make it again */
        const bool kept = role < LH_STEP_KEPT_BITS && (stays >> role & 1) != 0;

        if (!kept && !first)
            r->roles[layer][role] = LH_STEP_NONE;
    }
}

/* Under FSDP with separate halves, drops weights around attention. */
static void
around_attention(LhStepRecorder *r, uint32_t layer)
{
    if (r->plan->params.behaviour.halves)
        lh_step_drop_weights(r, LH_STEP_W_Q, layer);
}

/* Records layers [first, end) forward, and the embedding if @first is 0. */
static void
forward(LhStepRecorder *r, uint32_t first, uint32_t end)
{
    r->phase = LH_PHASE_FORWARD;
    if (first == 0) {
        lh_step_run_table(r, lh_step_embed, 0);
        lh_step_drop_weights(r, LH_STEP_W_EMBED, 0);
    }
    for (uint32_t layer = first; layer < end; layer++) {
        for (const LhStepNode *node = lh_step_forward; node->does != LH_STEP_END; node++) {
            lh_step_run_row(r, lh_step_forward, node, layer);
            if (node->does == LH_STEP_ATTENTION)
                around_attention(r, layer);
        }
        drop(r, layer, lh_step_kept(r->plan, layer));
        if (r->plan->params.behaviour.reshard)
            lh_step_drop_weights(r, LH_STEP_W_Q, layer);
    }
}

/* Recomputes everything that these rows read from the forward pass, before the first of them.
 * Gathered rows are excluded: they are gathered when needed, since they wait only for their
 * stream. So are rows of loops, which recompute tile by tile. */
static void
need_all(LhStepRecorder *r, const LhStepNode *table, uint32_t layer)
{
    for (; table->does != LH_STEP_END; table++) {
        if (lh_step_begins_loop(r, table))
            continue;
        for (unsigned i = 0; i < LH_STEP_OPERANDS && lh_step_has_row(r, table, layer); i++) {
            const LhStepOperand *o = &table->operands[i];
            const LhStepRole role = (LhStepRole)o->what;

            if (table->does == LH_STEP_KERNEL && o->kind == LH_STEP_IN && role < LH_STEP_E_SUM &&
                role != LH_STEP_N2_FULL && role != LH_STEP_N1_FULL)
                lh_step_need(r, role, layer);
        }
    }
}

static void
head(LhStepRecorder *r)
{
    const uint32_t behind = r->plan->layers;

    r->phase = LH_PHASE_FORWARD;
    lh_step_run_table(r, lh_step_head, behind);
    lh_step_drop_weights(r, LH_STEP_W_HEAD, 0);
    lh_step_drop_weights(r, LH_STEP_W_NORM_F, 0);
    lh_step_reduce_gradients(r, LH_STEP_W_NORM_F, 0);
    if (lh_step_is_shared(r->plan, LH_STEP_W_EMBED))
        lh_step_reduce_gradients(r, LH_STEP_W_EMBED, 0);
    drop(r, behind, 0);
}

/* The head of a forward pass alone. */
static void
last_head(LhStepRecorder *r)
{
    r->phase = LH_PHASE_FORWARD;
    lh_step_run_table(r, lh_step_last_head, r->plan->layers);
    lh_step_drop_weights(r, LH_STEP_W_HEAD, 0);
    lh_step_drop_weights(r, LH_STEP_W_NORM_F, 0);
    drop(r, r->plan->layers, 0);
}

/* Whether gathered weights are dropped after a layer's backward pass. Without resharding they stay
 * gathered in a pipeline from the first micro-batch to the last. */
static bool
drops_behind(const LhStepRecorder *r)
{
    return r->last || r->plan->params.behaviour.reshard;
}

/* Records layers [first, end) backward, the last one first. */
static void
backward(LhStepRecorder *r, uint32_t first, uint32_t end)
{
    r->phase = LH_PHASE_BACKWARD;
    for (uint32_t layer = end; layer-- > first;) {
        lh_step_call_again(r, layer);
        need_all(r, lh_step_post_bwd, layer);
        lh_step_run_table(r, lh_step_post_bwd, layer);
        lh_step_restore_norm(r, layer);
        around_attention(r, layer);
        lh_step_run_attention(r, layer, true);
        lh_step_run_table(r, lh_step_pre_bwd, layer);
        if (drops_behind(r))
            lh_step_drop_weights(r, LH_STEP_W_Q, layer);
        lh_step_reduce_gradients(r, LH_STEP_W_Q, layer);
        drop(r, layer, layer == 0 ? UINT64_C(1) << LH_STEP_DX : 0);
    }
    if (first == 0) {
        lh_step_run_table(r, lh_step_embed_bwd, 0);
        lh_step_reduce_gradients(r, LH_STEP_W_EMBED, 0);
    }
}

/* Records what follows the forward pass: the backward pass and, in the last micro-batch, the
 * optimizer. */
static void
train(LhStepRecorder *r)
{
    head(r);
    backward(r, 0, r->plan->layers);
    lh_step_reduce_waiting(r);
    if (r->last)
        lh_step_record_optimizer(r);
}

/* ---- lists ---- */

static void
begin(LhStepRecorder *r)
{
    r->list->calls = g_array_new(FALSE, FALSE, sizeof(LhStepCall));
    r->list->uses = g_array_new(FALSE, FALSE, sizeof(LhStepUse));
    r->list->tensors = g_array_new(FALSE, FALSE, sizeof(LhStepTensor));
    lh_step_begin_weights(r);
}

/* Creates the roles of a micro-batch, all without a tensor. Caller frees. */
static uint32_t (*new_roles(const LhStepPlan *plan))[LH_STEP_ROLES]
{
    uint32_t(*roles)[LH_STEP_ROLES] = g_malloc((plan->layers + 1) * sizeof(*roles));

    for (uint32_t layer = 0; layer <= plan->layers; layer++) {
        for (uint32_t role = 0; role < LH_STEP_ROLES; role++)
            roles[layer][role] = LH_STEP_NONE;
    }
    return roles;
}

void
lh_step_record(LhStepPlan *plan, LhStepList *list, bool last)
{
    LhStepRecorder r = { .plan = plan, .list = list, .last = last, .roles = new_roles(plan) };

    begin(&r);
    forward(&r, 0, plan->layers);
    (plan->params.forward_only ? last_head : train)(&r);
    lh_step_end_weights(&r);
    g_free(r.roles);
}

/* ---- pipelines ---- */

/* State of a stage over its turns; each micro-batch has its own roles. */
typedef struct {
    LhStepRecorder r;
    uint32_t (**roles)[LH_STEP_ROLES]; /* [micro-batches] */
} Stage;

static void
enter_micro_batch(Stage *s, uint16_t micro_batch)
{
    if (s->roles[micro_batch] == NULL)
        s->roles[micro_batch] = new_roles(s->r.plan);
    s->r.roles = s->roles[micro_batch];
    s->r.micro_batch = micro_batch;
    s->r.last = micro_batch + 1u == s->r.micro_batches;
}

/* First layer of one of the stage's chunks, and the layer after its last. */
static uint32_t
first_layer(const Stage *s, uint32_t chunk)
{
    const LhStepParams *p = &s->r.plan->params;

    return lh_step_chunk_begins(p, chunk * lh_step_stages(p) + s->r.stage);
}

static uint32_t
layer_behind(const Stage *s, uint32_t chunk)
{
    const LhStepParams *p = &s->r.plan->params;

    return lh_step_chunk_begins(p, chunk * lh_step_stages(p) + s->r.stage + 1);
}

/* Records the work of a turn. The loss is computed when its gradient is needed, so a stage holds
 * the logits of one micro-batch only. */
static void
work(Stage *s, const LhStepTurn *turn)
{
    LhStepRecorder *r = &s->r;
    const uint32_t first = first_layer(s, turn->chunk);
    const uint32_t end = layer_behind(s, turn->chunk);

    enter_micro_batch(s, turn->micro_batch);
    if (!turn->backward) {
        forward(r, first, end);
        if (r->plan->params.forward_only && end == r->plan->layers)
            last_head(r);
        return;
    }
    if (end == r->plan->layers)
        head(r);
    backward(r, first, end);
    if (turn->chunk == 0)
        lh_step_reduce_model(r);
    if (lh_step_reduces_each(r->plan))
        lh_step_reduce_waiting(r);
}

/* Adds a message to an exchange: rows after or before a chunk, or their gradient. */
static void
add_message(Stage *s, const LhStepMessage *message, guint call)
{
    LhStepRecorder *r = &s->r;
    const uint32_t first = first_layer(s, message->chunk);
    const uint32_t behind = layer_behind(s, message->chunk);
    const LhStepRole role = message->backward ? LH_STEP_DX : LH_STEP_X;
    const uint32_t layer = message->send == message->backward ? first : behind;
    LhStepUse use;

    enter_micro_batch(s, message->micro_batch);
    use = lh_step_whole_role(r, role, layer,
                             message->send ? *lh_step_role_place(r, role, layer)
                                           : lh_step_new_role(r, role, layer));
    use.reads = message->send;
    use.writes = !message->send;
    use.gradient = message->backward;
    lh_step_add_use(r, &g_array_index(r->list->calls, LhStepCall, call), use);
    if (message->send)
        *lh_step_role_place(r, role, layer) = LH_STEP_NONE;
}

/* Records an exchange, labelled with the micro-batch, phase and layer of its first message. */
static void
exchange(Stage *s, const LhStepTurn *turn)
{
    LhStepRecorder *r = &s->r;
    const LhStepMessage *first = &turn->messages[0];

    enter_micro_batch(s, first->micro_batch);
    r->phase = first->backward ? LH_PHASE_BACKWARD : LH_PHASE_FORWARD;
    lh_step_add_call(r, LH_STEP_CALL_EXCHANGE, LH_STEP_STREAM_PIPELINE,
                     first_layer(s, first->chunk));
    for (uint32_t i = 0; i < turn->messages_count; i++)
        add_message(s, &turn->messages[i], r->list->calls->len - 1);
}

void
lh_step_record_turns(LhStepPlan *plan, uint32_t stage, const GArray *turns, uint32_t micro_batches)
{
    Stage s = { .r = { .plan = plan,
                       .list = &plan->stages[stage].last,
                       .stage = stage,
                       .micro_batches = micro_batches } };

    s.roles = g_malloc0(micro_batches * sizeof(*s.roles));
    begin(&s.r);
    for (guint i = 0; i < turns->len; i++) {
        const LhStepTurn *turn = &g_array_index(turns, LhStepTurn, i);

        if (turn->messages_count > 0)
            exchange(&s, turn);
        else
            work(&s, turn);
    }
    enter_micro_batch(&s, (uint16_t)(micro_batches - 1));
    if (!plan->params.forward_only) {
        lh_step_reduce_waiting(&s.r);
        lh_step_record_optimizer(&s.r);
    }
    lh_step_end_weights(&s.r);
    for (uint32_t i = 0; i < micro_batches; i++)
        g_free(s.roles[i]);
    g_free(s.roles);
}
