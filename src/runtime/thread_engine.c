/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of threads: hosts, streams, and a watcher. What an op does is in run_op.c and
 * run_collective.c. Measured times include the machine's other load.
 */
#include "runtime/runtime_private.h"

#include "base/error.h"
#include "base/time_units.h"
#include "runtime/bind.h"
#include "runtime/deadlock_report.h"
#include "runtime/process/clocks.h"
#include "runtime/run_op.h"
#include "runtime/thread_affinity.h"

#define POLL_US 1000
#define OTHERS_US 20000 /* interval of checking other processes */

/* ---- the start ---- */

/* Blocks a thread until the run starts. */
static void
wait_for_start(LhExecution *x)
{
    pthread_mutex_lock(&x->lock);
    while (!x->started)
        pthread_cond_wait(&x->start, &x->lock);
    pthread_mutex_unlock(&x->lock);
}

/* Starts the threads at the same time in all processes. */
static void
let_go(LhExecution *x)
{
    const LhOpenControl control = { lh_control_resolve(x->params->backend->control), x->control,
                                    x->place };
    GError *error = NULL;

    lh_execution_begin(x);
    if (!lh_execution_stopping(x) && !lh_clocks_meet(&control, &x->epoch_ns, &error))
        lh_execution_fail(x, error);
    lh_clocks_sleep_until(x->epoch_ns);
    pthread_mutex_lock(&x->lock);
    x->started = true;
    pthread_cond_broadcast(&x->start);
    pthread_mutex_unlock(&x->lock);
}

/* ---- streams ---- */

static bool
may_start(const LhRunner *rank, const LhItem *item)
{
    for (unsigned i = 0; i < item->op.after_count; i++) {
        if (!rank->done[item->op.after[i]])
            return false;
    }
    return true;
}

/* Waits until the stream's next op may start and returns it; NULL if there will be none. */
static LhItem *
next_item(LhRunStream *s)
{
    LhRunner *rank = s->rank;
    LhItem *item = NULL;

    pthread_mutex_lock(&rank->lock);
    while (!lh_execution_stopping(rank->execution)) {
        if (s->first != NULL && may_start(rank, s->first)) {
            item = s->first;
            item->start_ps = lh_execution_now(rank->execution);
            s->running = true;
            break;
        }
        if (s->first == NULL && rank->ended)
            break;
        pthread_cond_wait(&rank->changed, &rank->lock);
    }
    pthread_mutex_unlock(&rank->lock);
    return item;
}

static void
finish_item(LhRunStream *s, LhItem *item)
{
    LhRunner *rank = s->rank;
    const LhOp op = item->op;

    item->end_ps = lh_execution_now(rank->execution);
    lh_execution_record(rank, item);
    pthread_mutex_lock(&rank->lock);
    s->first = item->next;
    if (s->first == NULL)
        s->last = NULL;
    s->running = false;
    pthread_mutex_unlock(&rank->lock);
    /* The op releases its memory before it counts as complete, so that a failed check names this
     * op. */
    lh_item_free(rank, &s->at, item);
    lh_runner_done(rank, op.id, lh_execution_now(rank->execution));
}

/* Whether the stream is a compute stream. */
static bool
computes(const LhRunStream *s)
{
    return s->rank->execution->program->streams[s->index].kind == LH_STREAM_COMPUTE;
}

/* Opens the device stream on the thread that uses it. */
static bool
open_stream(LhRunStream *s)
{
    GError *error = NULL;

    if (s->at.stream != NULL)
        return true;
    s->at = s->rank->at;
    s->at.stream = s->at.device->stream(s->at.state, computes(s), &error);
    if (s->at.stream == NULL)
        lh_execution_fail(s->rank->execution, error);
    return s->at.stream != NULL;
}

static bool
is_execution_stopping(void *execution)
{
    return lh_execution_stopping(execution);
}

/* Waits until everything enqueued on the stream is done. */
static bool
finish_stream(LhRunStream *s)
{
    LhExecution *x = s->rank->execution;
    GError *error = NULL;

    if (lh_device_finish(s->at.device, s->at.state, s->at.stream, is_execution_stopping, x, &error))
        return true;
    if (error != NULL)
        lh_execution_fail(x, error);
    return false;
}

/* Posts the item's messages and waits for them. False: the run is being stopped. */
static bool
run_messages(LhRunStream *s, LhItem *item)
{
    LhRunner *rank = s->rank;
    LhExecution *x = rank->execution;
    bool ok = true;

    for (uint32_t i = 0; ok && i < item->messages_count; i++) {
        bool post = false;

        ok = lh_run_ready_message(s, item, &item->messages[i], &post);
        if (ok && post)
            x->params->backend->transport->post(x->transport, &item->messages[i]);
    }
    pthread_mutex_lock(&rank->lock);
    while (item->pending > 0 && !lh_execution_stopping(x))
        pthread_cond_wait(&rank->changed, &rank->lock);
    ok = ok && item->pending == 0;
    pthread_mutex_unlock(&rank->lock);
    return ok && !lh_execution_stopping(x);
}

/* Runs the op to its end; false: the run is being stopped. */
static bool
run_item(LhRunStream *s, LhItem *item)
{
    const bool computes =
        item->op.kind != LH_OP_EXCHANGE; /* the device has work before the messages */
    const bool reduces = item->op.kind == LH_OP_COLLECTIVE; /* and after them */

    while (lh_run_has_round(item)) {
        if (!lh_run_begin_round(s, item) || (computes && !finish_stream(s)) ||
            !run_messages(s, item) || !lh_run_end_round(item) || (reduces && !finish_stream(s)))
            return false;
    }
    return true;
}

static void *
stream_main(void *data)
{
    LhRunStream *s = data;
    LhExecution *x = s->rank->execution;
    LhItem *item;

    if (!computes(s))
        (void)lh_wake_promptly();
    wait_for_start(x);
    while (open_stream(s) && (item = next_item(s)) != NULL) {
        lh_runner_pause_at(s->rank, item->op.id, 1);
        if (!run_item(s, item) || lh_execution_stopping(x))
            break;
        finish_item(s, item);
    }
    g_atomic_int_add(&x->alive, -1);
    return NULL;
}

/* ---- hosts ---- */

static bool
issue_stream_op(LhRunner *rank, const LhOp *op, const LhOpBuffer *buffer)
{
    LhItem *item = lh_item_new(rank, op, buffer);
    LhRunStream *s = &rank->streams[op->stream];

    if (item == NULL)
        return false;
    pthread_mutex_lock(&rank->lock);
    if (s->last != NULL)
        s->last->next = item;
    else
        s->first = item;
    s->last = item;
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    return true;
}

/* Waits until all ops that precede op @id by more than @ahead are complete. */
static bool
wait_for_device(LhRunner *rank, uint32_t id, uint32_t ahead)
{
    LhExecution *x = rank->execution;

    pthread_mutex_lock(&rank->lock);
    rank->host_op = id;
    rank->host_waits = true;
    while (!lh_execution_stopping(x) && id - rank->first_open > ahead)
        pthread_cond_wait(&rank->changed, &rank->lock);
    rank->host_waits = false;
    pthread_mutex_unlock(&rank->lock);
    return !lh_execution_stopping(x);
}

static bool
issue_op(LhRunner *rank, const LhOp *op, const LhOpBuffer *buffer)
{
    bool ok;

    lh_runner_pause_at(rank, op->id, 0);
    if (!wait_for_device(rank, op->id, op->kind == LH_OP_SYNC ? 0 : LH_HOST_WINDOW))
        return false;
    lh_runner_issued(rank, op->id);
    switch (op->kind) {
    case LH_OP_COMPUTE:
    case LH_OP_EXCHANGE:
    case LH_OP_COLLECTIVE:
        return issue_stream_op(rank, op, buffer);
    case LH_OP_ALLOC:
        ok = lh_runner_alloc(rank, op, NULL);
        break;
    case LH_OP_FREE:
        ok = lh_runner_free(rank, op);
        break;
    default:
        ok = true;
        break;
    }
    lh_runner_done(rank, op->id, lh_execution_now(rank->execution));
    return ok;
}

static void *
host_main(void *data)
{
    LhRunner *rank = data;
    LhExecution *x = rank->execution;
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    bool ok;

    (void)lh_wake_promptly();
    wait_for_start(x);
    ok = !lh_execution_stopping(x);
    lh_cursor_init(&cursor, x->program, rank->index);
    while (ok && lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; ok && i < buffer.ops_count; i++)
            ok = issue_op(rank, &buffer.ops[i], &buffer);
    }
    lh_op_buffer_clear(&buffer);
    pthread_mutex_lock(&rank->lock);
    rank->ended = true;
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    g_atomic_int_add(&x->alive, -1);
    return NULL;
}

/* ---- the run ---- */

/* Starts a thread of a rank; NULL if the run is being stopped, or the system starts no more
 * threads. */
static GThread *
start_thread(LhExecution *x, const char *name, GThreadFunc work, void *data)
{
    g_autoptr(GError) error = NULL;
    GThread *thread = lh_execution_stopping(x) ? NULL : g_thread_try_new(name, work, data, &error);

    if (thread == NULL)
        g_atomic_int_add(&x->alive, -1);
    if (error != NULL)
        lh_execution_fail(
            x, g_error_new(
                   LH_ERROR, LH_ERROR_RUNTIME,
                   "the run needs %u threads (%u for each rank), which the system cannot start: %s",
                   x->place.count * (x->program->streams_count + 1), x->program->streams_count + 1,
                   error->message));
    return thread;
}

static void
start_threads(LhExecution *x)
{
    const uint32_t streams = x->program->streams_count;

    (void)lh_cores_count(); /* before any thread is pinned */
    x->alive = (gint)(x->place.count * (streams + 1));
    for (uint32_t r = 0; r < x->place.count; r++) {
        LhRunner *rank = &x->ranks[r];

        for (uint32_t s = 0; s < streams; s++)
            rank->streams[s].thread = start_thread(x, "stream", stream_main, &rank->streams[s]);
        rank->host = start_thread(x, "host", host_main, rank);
    }
    let_go(x);
}

static void
give_up_run(LhExecution *x, double seconds)
{
    const LhTransport *transport = x->params->backend->transport;
    g_autofree char *blocked = lh_execution_describe_blocked(x, 0, x->place.count);
    g_autofree char *strangers =
        transport->strangers == NULL ? NULL : transport->strangers(x->transport);

    lh_execution_say_standing(x, true);
    lh_execution_fail(
        x, g_error_new(LH_WAITED, LH_ERROR_RUNTIME,
                       "no op and no message has completed for %.3g s; the ranks wait for:%s%s%s",
                       seconds, blocked, strangers != NULL ? "\n  " : "",
                       strangers != NULL ? strangers : ""));
}

/* Checks for failures of other processes that no message reports. */
static void
look_at_others(LhExecution *x)
{
    const LhControl *control = x->params->backend->control;
    GError *error = NULL;

    if (lh_execution_stopping(x) || control->failed == NULL || !control->failed(x->control, &error))
        return;
    lh_execution_say_standing(x, true);
    lh_execution_fail(x, error);
}

/* Polls the transport, and aborts the run when nothing has completed for the deadline. */
static void
watch_run(LhExecution *x)
{
    const LhTransport *transport = x->params->backend->transport;
    gint moved = g_atomic_int_get(&x->moved);
    gint64 since_us = g_get_monotonic_time(), looked_us = since_us;
    uint64_t slice_ns;

    slice_ns = lh_wake_promptly();
    while (g_atomic_int_get(&x->alive) > 0) {
        const gint now_moved = g_atomic_int_get(&x->moved);
        const gint64 now_us = g_get_monotonic_time();

        if (now_moved != moved) {
            moved = now_moved;
            since_us = now_us;
        } else if (now_us - since_us > x->params->deadline_us && !lh_execution_stopping(x)) {
            give_up_run(x, (double)(now_us - since_us) / LH_US_PER_S);
        }
        if (now_us - looked_us > OTHERS_US) {
            looked_us = now_us;
            look_at_others(x);
        }
        lh_execution_say_standing(x, false);
        transport->poll(x->transport, POLL_US);
    }
    lh_wake_as_before(slice_ns);
}

static void
join_thread(GThread *thread)
{
    if (thread != NULL)
        g_thread_join(thread);
}

static void
join_threads(LhExecution *x)
{
    for (uint32_t r = 0; r < x->place.count; r++) {
        join_thread(x->ranks[r].host);
        for (uint32_t s = 0; s < x->program->streams_count; s++)
            join_thread(x->ranks[r].streams[s].thread);
    }
}

void
lh_execution_run_threads(LhExecution *x)
{
    start_threads(x);
    watch_run(x);
    join_threads(x);
}
