/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/submit_rank.h"

#include "runtime/bind.h"
#include "runtime/run_op.h"

bool
lh_submit_fail(const LhSubmitDriver *d, GError *error)
{
    lh_execution_fail(d->all->x, error);
    return false;
}

/* ---- hosts ---- */

static bool
issue_item(LhSubmitDriver *d, LhSubmitRank *rank, const LhOp *op)
{
    LhRunStream *s = &rank->runner->streams[op->stream];
    LhItem *item = lh_item_new(rank->runner, op, &rank->buffer);

    if (item == NULL)
        return false;
    item->issued_ps = MAX(item->issued_ps - d->epoch_ps, 0);
    g_ptr_array_index(rank->items, op->id) = item;
    if (s->last != NULL)
        s->last->next = item;
    else
        s->first = item;
    s->last = item;
    return true;
}

/* Whether memory in use may still be released later. */
static bool
may_be_freed(const LhSubmitDriver *d)
{
    bool ends = false;

    for (uint32_t i = 0; i < d->count; i++)
        ends = ends || !g_queue_is_empty(&d->ranks[i].runner->endings);
    return ends || d->flying > 0;
}

/* Runs an op of the host; sets @later if there is no memory yet. */
static bool
do_host_op(LhSubmitDriver *d, LhSubmitRank *rank, const LhOp *op, bool *later)
{
    if (op->kind == LH_OP_ALLOC)
        return lh_runner_alloc(rank->runner, op, may_be_freed(d) ? later : NULL);
    return op->kind != LH_OP_FREE || lh_runner_free(rank->runner, op);
}

/* Issues the next op of the host if it may be. False if nothing moved. */
static bool
host_op(LhSubmitDriver *d, LhSubmitRank *rank)
{
    const LhOp *op = &rank->buffer.ops[rank->next];
    LhRunner *runner = rank->runner;
    bool later = false;

    runner->host_op = op->id;
    runner->host_waits =
        op->id - runner->first_open > (op->kind == LH_OP_SYNC ? 0 : LH_HOST_WINDOW);
    if (runner->host_waits)
        return false;
    lh_runner_pause_at(rank->runner, op->id, 0);
    g_ptr_array_set_size(rank->items, (gint)op->id + 1);
    if (lh_op_on_stream(op)) {
        lh_runner_issued(runner, op->id);
        rank->next++;
        return issue_item(d, rank, op);
    }
    if (!do_host_op(d, rank, op, &later))
        return true;
    runner->host_waits = later;
    if (later)
        return false;
    rank->next++;
    lh_runner_issued(runner, op->id);
    lh_runner_done(runner, op->id, 0);
    return true;
}

static bool
host_step(LhSubmitDriver *d, LhSubmitRank *rank)
{
    if (rank->next < rank->buffer.ops_count)
        return host_op(d, rank);
    if (rank->runner->ended)
        return false;
    rank->next = 0;
    rank->runner->ended = !lh_cursor_step(&rank->cursor, &rank->buffer);
    return true;
}

/* ---- submitting ---- */

static bool
may_be_submitted(const LhSubmitRank *rank, const LhItem *item)
{
    for (unsigned i = 0; i < item->op.after_count; i++) {
        const LhItem *before = g_ptr_array_index(rank->items, item->op.after[i]);

        if (before != NULL && before->end == NULL)
            return false;
    }
    return true;
}

/* Makes the stream wait for the dependencies of the op, and for the memory that it uses. */
static bool
enqueue_waits(const LhSubmitRank *rank, const LhRunStream *s, const LhItem *item, GError **error)
{
    const LhPlaceOfWork *at = &s->at;

    for (unsigned i = 0; i < item->op.after_count; i++) {
        const LhItem *before = g_ptr_array_index(rank->items, item->op.after[i]);

        if (before != NULL && before->op.stream != item->op.stream &&
            !at->device->wait(at->state, at->stream, before->end, error))
            return false;
    }
    for (guint i = 0; i < item->buffers->len; i++) {
        if (!lh_buffer_wait(g_ptr_array_index(item->buffers, i), at, error))
            return false;
    }
    return true;
}

/* Posts the messages of a round. */
static bool
post_messages(LhSubmitDriver *d, const LhSubmitRank *rank, LhRunStream *s, LhItem *item)
{
    const LhLinks *links = d->all->x->params->backend->links;
    g_autofree LhMessage **posted = g_new(LhMessage *, MAX(item->messages_count, 1));
    GError *error = NULL;
    uint32_t count = 0;

    for (uint32_t i = 0; i < item->messages_count; i++) {
        bool post = false;

        if (!lh_run_ready_message(s, item, &item->messages[i], &post))
            return false;
        if (post)
            posted[count++] = &item->messages[i];
    }
    return count == 0 || links->exchange(rank->joined, &item->op, posted, count, &error) ||
           lh_submit_fail(d, error);
}

/* Calls the native collectives of the links' library. */
static bool
post_collectives(LhSubmitDriver *d, const LhSubmitRank *rank, const LhItem *item)
{
    const LhLinks *links = d->all->x->params->backend->links;
    GError *error = NULL;

    return item->native_count == 0 ||
           links->collectives(rank->joined, &item->op, item->native, item->native_count, &error) ||
           lh_submit_fail(d, error);
}

static bool
begin_round(LhSubmitDriver *d, const LhSubmitRank *rank, LhRunStream *s, LhItem *item)
{
    return lh_run_begin_round(s, item) && post_messages(d, rank, s, item) &&
           post_collectives(d, rank, item);
}

/* Begins the first op of a stream. */
static bool
begin(LhSubmitDriver *d, const LhSubmitRank *rank, LhRunStream *s, LhItem *item)
{
    const LhPlaceOfWork *at = &s->at;
    GError *error = NULL;

    lh_runner_pause_at(rank->runner, item->op.id, 1);
    if (!enqueue_waits(rank, s, item, &error))
        return lh_submit_fail(d, error);
    item->start = at->device->mark(at->state, at->stream, &error);
    if (item->start == NULL)
        return lh_submit_fail(d, error);
    s->running = true;
    return begin_round(d, rank, s, item);
}

/* Marks the end of an op that is completely enqueued. */
static bool
end(LhSubmitDriver *d, LhRunStream *s, LhItem *item)
{
    const LhPlaceOfWork *at = &s->at;
    GError *error = NULL;

    item->end = at->device->mark(at->state, at->stream, &error);
    if (item->end == NULL)
        return lh_submit_fail(d, error);
    s->running = false;
    s->first = item->next;
    if (s->first == NULL)
        s->last = NULL;
    item->next = NULL;
    if (s->flying_last != NULL)
        s->flying_last->next = item;
    else
        s->flying = item;
    s->flying_last = item;
    d->flying++;
    return true;
}

/* Submits as much as possible of the stream's first op. False if nothing moved. */
static bool
stream_step(LhSubmitDriver *d, const LhSubmitRank *rank, LhRunStream *s)
{
    LhItem *item = s->first;

    if (item == NULL || (item->start == NULL ? !may_be_submitted(rank, item) : item->pending > 0))
        return false;
    if (item->start == NULL && !begin(d, rank, s, item))
        return true;
    while (item->pending == 0) {
        if (!lh_run_end_round(item))
            return true;
        if (!lh_run_has_round(item))
            break;
        if (!begin_round(d, rank, s, item))
            return true;
    }
    if (item->pending == 0)
        end(d, s, item);
    return true;
}

/* ---- completion ---- */

static bool
read_times(const LhSubmitDriver *d, const LhRunStream *s, LhItem *item)
{
    const LhPlaceOfWork *at = &s->at;
    GError *error = NULL;

    return (at->device->time(at->state, d->epoch, item->start, &item->start_ps, &error) &&
            at->device->time(at->state, d->epoch, item->end, &item->end_ps, &error)) ||
           lh_submit_fail(d, error);
}

/* Retires the stream's oldest submitted op if it is complete. False if nothing moved. */
static bool
finish_one(LhSubmitDriver *d, LhSubmitRank *rank, LhRunStream *s)
{
    LhItem *item = s->flying;
    GError *error = NULL;
    uint32_t id;
    LhTime end_ps;
    int passed;

    if (item == NULL)
        return false;
    passed = s->at.device->passed(s->at.state, item->end, &error);
    if (passed < 0)
        lh_submit_fail(d, error);
    if (passed <= 0 || !read_times(d, s, item))
        return false;
    s->flying = item->next;
    if (s->flying == NULL)
        s->flying_last = NULL;
    d->flying--;
    id = item->op.id;
    end_ps = item->end_ps;
    lh_execution_record(rank->runner, item);
    g_ptr_array_index(rank->items, id) = NULL;
    lh_item_free(rank->runner, &rank->runner->at, item);
    lh_runner_done(rank->runner, id, end_ps);
    return true;
}

bool
lh_submit_step(LhSubmitDriver *d, LhSubmitRank *rank)
{
    LhExecution *x = d->all->x;
    bool moved = false, again = true;

    while (again && !lh_execution_stopping(x)) {
        again = host_step(d, rank);
        for (uint32_t i = 0; i < x->program->streams_count && !lh_execution_stopping(x); i++) {
            LhRunStream *s = &rank->runner->streams[i];

            while (!lh_execution_stopping(x) && stream_step(d, rank, s))
                again = true;
        }
        moved = moved || again;
    }
    for (uint32_t i = 0; i < x->program->streams_count; i++) {
        while (!lh_execution_stopping(x) && finish_one(d, rank, &rank->runner->streams[i]))
            moved = true;
    }
    while (!lh_execution_stopping(x) && lh_runner_look_at_ending(rank->runner))
        moved = true;
    return moved;
}
