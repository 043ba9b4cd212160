/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs an op on its device and with its peers: a kernel, or messages.
 */
#include "runtime/run_op.h"

#include "base/error.h"
#include "program/work.h"
#include "runtime/bind.h"
#include "runtime/run_collective.h"
#include "runtime/run_kernel.h"

/* ---- compute ---- */

static bool
is_stream_stopping(void *stream)
{
    return lh_execution_stopping(((LhRunStream *)stream)->rank->execution);
}

static bool
ask_for_kernel(LhRunStream *s, LhItem *item)
{
    const LhProgram *program = s->rank->execution->program;
    LhCall call = { .args = &item->op.compute.args };

    for (uint32_t i = 0; i < item->bound_count; i++) {
        const LhBoundRegion *bound = &item->bound[i];

        if (bound->stride_bytes == 0)
            return lh_execution_fail_op(s->rank, &item->op, LH_ERROR_RUNTIME,
                                        "the parts of slot %s come from several allocs; the parts "
                                        "of an operand must come from one",
                                        program->slots[bound->region.slot].name);
        call.operands[i] = (LhView){
            .data = bound->parts[0],
            .parts = bound->region.count,
            .part_bytes = bound->stride_bytes,
            .storage = lh_dtype_storage(program->slots[bound->region.slot].dtype),
            .held_bytes = bound->part_bytes,
        };
    }
    if (!lh_run_kernel(s, item, item->op.compute.kernel, &call))
        return false;
    item->flops = lh_op_flops(&item->op);
    return true;
}

/* ---- messages ---- */

static void
complete(LhMessage *m, GError *error)
{
    LhRunStream *s = m->owner;
    LhRunner *rank = s->rank;

    if (error != NULL)
        lh_execution_fail(rank->execution, error);
    pthread_mutex_lock(&rank->lock);
    m->done = true;
    s->first->pending--;
    if (m->send) {
        s->first->bytes += m->bytes;
        rank->counted.messages++;
    }
    g_atomic_int_inc(&rank->execution->moved);
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
}

/* Redirects a message to memory that nobody reads. */
static bool
discard(LhRunStream *s, LhItem *item, LhMessage *m)
{
    for (uint32_t i = 0; i < m->pieces_count; i++) {
        m->pieces[i].data = lh_item_temporary(s, item, m->pieces[i].bytes);
        if (m->pieces[i].data == NULL)
            return false;
    }
    return true;
}

bool
lh_run_ready_message(LhRunStream *s, LhItem *item, LhMessage *m, bool *post)
{
    const LhRunHooks *hooks = s->rank->execution->params->hooks;

    m->rank = s->rank->index;
    m->op = item->op.id;
    m->device = s->at.state;
    m->stream = s->at.stream;
    m->owner = s;
    m->stopping = is_stream_stopping;
    m->complete = complete;
    if (hooks != NULL && hooks->land != NULL && !m->send &&
        !hooks->land(hooks->data, m->rank, &item->op, m) && !discard(s, item, m))
        return false;
    *post = hooks == NULL || hooks->post == NULL || hooks->post(hooks->data, m->rank, &item->op, m);
    return true;
}

/* Fills in a message: one piece for each part of its regions, bound in @bound. */
static void
fill_message(const LhRunStream *s, LhItem *item, const LhPart *part, const LhBoundRegion *bound,
             LhMessage *m)
{
    uint32_t pieces = 0;

    for (uint32_t i = 0; i < part->regions_count; i++)
        pieces += part->regions[i].count;
    m->pieces = lh_item_memory(item, pieces * sizeof(LhPiece));
    for (uint32_t i = 0; i < part->regions_count; i++) {
        for (uint32_t k = 0; k < part->regions[i].count; k++) {
            m->pieces[m->pieces_count++] = (LhPiece){ bound[i].parts[k], bound[i].part_bytes };
            m->bytes += bound[i].part_bytes;
        }
    }
    m->channel = lh_channel_of(s->rank->execution->channels, &item->op);
    m->send = part->send;
    m->peer = part->peer;
    m->tag = part->tag;
    m->slot = part->regions[0].slot;
}

static void
make_messages(const LhRunStream *s, LhItem *item)
{
    const LhBoundRegion *bound = item->bound;

    item->messages_count = item->op.exchange.parts_count;
    item->messages = g_new0(LhMessage, item->messages_count);
    for (uint32_t i = 0; i < item->messages_count; i++) {
        fill_message(s, item, &item->parts[i], bound, &item->messages[i]);
        bound += item->parts[i].regions_count;
    }
}

/* ---- rounds ---- */

/* Whether, in single-rank replay, the op has no messages although the prediction has it wait for
 * other ranks. */
static bool
waits_for_others(const LhRunStream *s, const LhItem *item)
{
    const LhReplay *replay = s->rank->execution->params->replay;
    LhReplayOp predicted;

    if (replay == NULL || item->op.kind == LH_OP_COMPUTE || item->round > 0 ||
        item->messages_count + item->native_count > 0)
        return false;
    predicted = lh_replay_op(replay, item->op.id);
    return predicted.others_ps > 0 || predicted.took_ps > 0;
}

/* Makes an empty message, which ends at the predicted time. */
static void
make_wait(LhItem *item)
{
    g_free(item->messages);
    item->messages = g_new0(LhMessage, 1);
    item->messages->slot = -1;
    item->messages_count = 1;
}

bool
lh_run_begin_round(LhRunStream *s, LhItem *item)
{
    bool ok = true;

    g_clear_pointer(&item->messages, g_free);
    g_clear_pointer(&item->native, g_free);
    item->messages_count = item->native_count = 0;
    if (item->op.kind == LH_OP_COMPUTE)
        ok = ask_for_kernel(s, item);
    else if (item->op.kind == LH_OP_EXCHANGE)
        make_messages(s, item);
    else
        ok = lh_collective_begin_round(s, item);
    if (ok && waits_for_others(s, item))
        make_wait(item);
    pthread_mutex_lock(&s->rank->lock);
    item->pending = ok ? item->messages_count : 0;
    pthread_mutex_unlock(&s->rank->lock);
    return ok;
}

bool
lh_run_end_round(LhItem *item)
{
    const bool ok = item->op.kind != LH_OP_COLLECTIVE || lh_collective_end_round(item);

    item->round++;
    return ok;
}

bool
lh_run_has_round(const LhItem *item)
{
    return item->op.kind == LH_OP_COLLECTIVE ? lh_collective_has_round(item) : item->round == 0;
}
