/*
 * The submitting engine: a program as GPUs run it. A thread walks the programs of its ranks and
 * enqueues their ops on streams of the device; what an op comes after are marks on other streams.
 * It learns that an op is complete by asking for the mark behind it, and never waits in a call.
 *
 * An op is issued when its host gets there, submitted when all of it is enqueued, and done when the
 * device says so. It is submitted only when all that it comes after has been submitted, and a
 * message only when both its ends are there, if its links need them: so every mark that a stream
 * waits for is enqueued already, and whatever has been submitted can run, on any number of hardware
 * queues. Links that need no other end get the ops of a rank in the order of its program.
 */
#include "runtime/execution.h"

#include "base/error.h"

#define SPINS_MAX 1000 /* without rest, when nothing moves */
#define REST_US 20
#define TELL_US (2 * G_USEC_PER_SEC) /* that others have to say what they see */

/* A rank that is being driven. */
typedef struct {
    LhRunner *runner;
    LhCursor cursor;
    LhOpBuffer buffer;
    uint32_t next;    /* in the buffer */
    GPtrArray *items; /* by op id, from issue until done; NULL: done, or the host's own */
    void *joined;
} Rank;

typedef struct _Submission Submission;

/* A thread, and its ranks. */
typedef struct {
    Submission *all;
    Rank *ranks;
    uint32_t count;
    uint32_t flying;    /* ops that are submitted and not done */
    LhDeviceMark epoch; /* times are counted from here, on the device ... */
    LhTime epoch_ps;    /* ... and on the host */
    GThread *thread;
} Driver;

struct _Submission {
    LhExecution *x;
    void *links;
    Rank *ranks; /* [x->place.count] */
    Driver *drivers;
    uint32_t drivers_count;
    pthread_mutex_t lock; /* of what follows */
    GString *seen;        /* what drivers wait for that nothing moves for */
    uint32_t told;        /* drivers that have ended or said what they wait for */
    bool stuck;           /* one of them waits */
};

static bool
fail_run(const Driver *d, GError *error)
{
    lh_execution_fail(d->all->x, error);
    return false;
}

/* ---- hosts ---- */

static bool
issue_item(Driver *d, Rank *rank, const LhOp *op)
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

/* Whether memory may be given back that is not free now. */
static bool
may_be_freed(const Driver *d)
{
    bool ends = false;

    for (uint32_t i = 0; i < d->count; i++)
        ends = ends || !g_queue_is_empty(&d->ranks[i].runner->endings);
    return ends || d->flying > 0;
}

/* What the host does itself; @later: there is no memory yet. */
static bool
do_host_op(Driver *d, Rank *rank, const LhOp *op, bool *later)
{
    if (op->kind == LH_OP_ALLOC)
        return lh_runner_alloc(rank->runner, op, may_be_freed(d) ? later : NULL);
    return op->kind != LH_OP_FREE || lh_runner_free(rank->runner, op);
}

/* The next op of the host, if it may be issued. False: nothing has moved. */
static bool
host_op(Driver *d, Rank *rank)
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
host_step(Driver *d, Rank *rank)
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
may_be_submitted(const Rank *rank, const LhItem *item)
{
    for (unsigned i = 0; i < item->op.after_count; i++) {
        const LhItem *before = g_ptr_array_index(rank->items, item->op.after[i]);

        if (before != NULL && before->end == NULL)
            return false;
    }
    return true;
}

/* Has the stream wait for what the op comes after, and for the memory that it uses. */
static bool
enqueue_waits(const Rank *rank, const LhRunStream *s, const LhItem *item, GError **error)
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
post_messages(Driver *d, const Rank *rank, LhRunStream *s, LhItem *item)
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
           fail_run(d, error);
}

/* Asks the links' library for its own collectives. */
static bool
post_collectives(Driver *d, const Rank *rank, const LhItem *item)
{
    const LhLinks *links = d->all->x->params->backend->links;
    GError *error = NULL;

    return item->native_count == 0 ||
           links->collectives(rank->joined, &item->op, item->native, item->native_count, &error) ||
           fail_run(d, error);
}

static bool
begin_round(Driver *d, const Rank *rank, LhRunStream *s, LhItem *item)
{
    return lh_run_begin_round(s, item) && post_messages(d, rank, s, item) &&
           post_collectives(d, rank, item);
}

/* The first op of a stream begins. */
static bool
begin(Driver *d, const Rank *rank, LhRunStream *s, LhItem *item)
{
    const LhPlaceOfWork *at = &s->at;
    GError *error = NULL;

    lh_runner_pause_at(rank->runner, item->op.id, 1);
    if (!enqueue_waits(rank, s, item, &error))
        return fail_run(d, error);
    item->start = at->device->mark(at->state, at->stream, &error);
    if (item->start == NULL)
        return fail_run(d, error);
    s->running = true;
    return begin_round(d, rank, s, item);
}

/* All of the op is enqueued. */
static bool
end(Driver *d, LhRunStream *s, LhItem *item)
{
    const LhPlaceOfWork *at = &s->at;
    GError *error = NULL;

    item->end = at->device->mark(at->state, at->stream, &error);
    if (item->end == NULL)
        return fail_run(d, error);
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

/* Submits of the stream's first op what can be submitted. False: nothing has moved. */
static bool
stream_step(Driver *d, const Rank *rank, LhRunStream *s)
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
read_times(const Driver *d, const LhRunStream *s, LhItem *item)
{
    const LhPlaceOfWork *at = &s->at;
    GError *error = NULL;

    return (at->device->time(at->state, d->epoch, item->start, &item->start_ps, &error) &&
            at->device->time(at->state, d->epoch, item->end, &item->end_ps, &error)) ||
           fail_run(d, error);
}

/* Takes the stream's oldest submitted op off if it is complete. False: nothing has moved. */
static bool
finish_one(Driver *d, Rank *rank, LhRunStream *s)
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
        fail_run(d, error);
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

/* ---- a thread ---- */

static bool
open_streams(Driver *d, Rank *rank)
{
    LhExecution *x = d->all->x;
    LhRunner *runner = rank->runner;
    GError *error = NULL;

    for (uint32_t i = 0; i < x->program->streams_count; i++) {
        LhRunStream *s = &runner->streams[i];

        s->at = runner->at;
        s->at.stream = s->at.device->stream(
            s->at.state, x->program->streams[i].kind == LH_STREAM_COMPUTE, &error);
        if (s->at.stream == NULL)
            return fail_run(d, error);
    }
    return true;
}

static bool
join_rank(Driver *d, Rank *rank)
{
    LhExecution *x = d->all->x;
    const LhLinksRank place = { .rank = rank->runner->index,
                                .device = rank->runner->at.state,
                                .host = rank->runner->at.stream };
    GError *error = NULL;

    rank->joined = x->params->backend->links->join(d->all->links, &place, &error);
    return rank->joined != NULL || fail_run(d, error);
}

/* Times are counted from here. */
static bool
set_epoch(Driver *d)
{
    const LhLinks *links = d->all->x->params->backend->links;
    const LhPlaceOfWork *at = &d->ranks[0].runner->at;
    GError *error = NULL;

    d->epoch = at->device->mark(at->state, at->stream, &error);
    if (d->epoch == NULL)
        return fail_run(d, error);
    for (uint32_t i = 0; links->begin != NULL && i < d->count; i++) {
        if (!links->begin(d->ranks[i].joined, &error))
            return fail_run(d, error);
    }
    if (!lh_device_pass(at->device, at->state, d->epoch, NULL, NULL, &error))
        return fail_run(d, error);
    d->epoch_ps = lh_execution_now(d->all->x);
    return links->begin == NULL ||
           lh_device_finish(at->device, at->state, at->stream, NULL, NULL, &error) ||
           fail_run(d, error);
}

static bool
prepare(Driver *d)
{
    for (uint32_t i = 0; i < d->count; i++) {
        if (!open_streams(d, &d->ranks[i]))
            return false;
    }
    for (uint32_t i = 0; i < d->count; i++) {
        if (!join_rank(d, &d->ranks[i]))
            return false;
    }
    return set_epoch(d);
}

/* Does what can be done for a rank. False: nothing has moved. */
static bool
rank_step(Driver *d, Rank *rank)
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

static bool
is_over(const Driver *d)
{
    for (uint32_t i = 0; i < d->count; i++) {
        LhRunner *runner = d->ranks[i].runner;

        if (!runner->ended || runner->first_open < runner->issued ||
            !g_queue_is_empty(&runner->endings))
            return false;
    }
    return true;
}

/* The run fails with what all drivers see; the caller has the lock. */
static void
give_up_submission(Submission *all)
{
    const double seconds = (double)all->x->params->deadline_us / G_USEC_PER_SEC;

    if (lh_execution_stopping(all->x))
        return;
    if (all->x->place.count == 1)
        lh_execution_say_standing(all->x, true);
    lh_execution_fail(all->x, g_error_new(LH_WAITED, LH_ERROR_RUNTIME,
                                          "no op and no message has completed for %.3g s; the "
                                          "ranks wait for:%s",
                                          seconds, all->seen->str));
}

/* Says what this thread's ranks wait for. The last thread that does so ends the run, or this one
 * when the others have had their time. */
static void
tell_waiting(Driver *d)
{
    Submission *all = d->all;
    const uint32_t first = (uint32_t)(d->ranks - all->ranks);
    g_autofree char *text = lh_execution_describe_blocked(all->x, first, d->count);
    const gint64 end_us = g_get_monotonic_time() + TELL_US;

    pthread_mutex_lock(&all->lock);
    g_string_append(all->seen, text);
    all->stuck = true;
    if (++all->told == all->drivers_count)
        give_up_submission(all);
    pthread_mutex_unlock(&all->lock);
    while (!lh_execution_stopping(all->x) && g_get_monotonic_time() < end_us)
        g_usleep(REST_US);
    pthread_mutex_lock(&all->lock);
    give_up_submission(all);
    pthread_mutex_unlock(&all->lock);
}

/* This thread waits for nothing, but others may. */
static void
tell_end(Driver *d)
{
    Submission *all = d->all;

    pthread_mutex_lock(&all->lock);
    g_string_append_printf(all->seen, "\n  rank %u: has ended", d->ranks[0].runner->index);
    if (++all->told == all->drivers_count && all->stuck)
        give_up_submission(all);
    pthread_mutex_unlock(&all->lock);
}

/* Whether the run is being stopped; another process may have failed, too. A process whose control
 * plane tells of others has one driver, which is the thread that opened it. */
static bool
is_submission_stopping(void *owner)
{
    LhExecution *x = owner;
    const LhControl *control = x->params->backend->control;
    GError *error = NULL;

    if (lh_execution_stopping(x) || x->place.count > 1 || control->failed == NULL)
        return lh_execution_stopping(x);
    lh_execution_say_standing(x, false);
    if (!control->failed(x->control, &error))
        return false;
    lh_execution_say_standing(x, true);
    lh_execution_fail(x, error);
    return true;
}

static void
look_at_links(Driver *d)
{
    const LhLinks *links = d->all->x->params->backend->links;
    GError *error = NULL;

    if (is_submission_stopping(d->all->x))
        return;

    for (uint32_t i = 0; i < d->count; i++) {
        if (links->failed != NULL && links->failed(d->ranks[i].joined, &error))
            fail_run(d, error);
    }
}

static void
drive(Driver *d)
{
    LhExecution *x = d->all->x;
    gint64 since_us = g_get_monotonic_time();
    uint32_t idle = 0;

    while (!lh_execution_stopping(x) && !is_over(d)) {
        bool moved = false;

        for (uint32_t i = 0; i < d->count; i++)
            moved = rank_step(d, &d->ranks[i]) || moved;
        if (moved) {
            since_us = g_get_monotonic_time();
            idle = 0;
            continue;
        }
        look_at_links(d);
        if (g_get_monotonic_time() - since_us > x->params->deadline_us)
            tell_waiting(d);
        else if (++idle > SPINS_MAX)
            g_usleep(REST_US);
    }
}

static void
leave_links(Driver *d)
{
    const LhLinks *links = d->all->x->params->backend->links;
    const LhPlaceOfWork *at = &d->ranks[0].runner->at;

    for (uint32_t i = 0; i < d->count; i++) {
        Rank *rank = &d->ranks[i];

        if (rank->joined != NULL && lh_execution_stopping(d->all->x) && links->abort != NULL)
            links->abort(rank->joined);
        if (rank->joined != NULL)
            links->leave(rank->joined);
    }
    if (d->epoch != NULL)
        at->device->unmark(at->state, d->epoch);
}

static void *
driver_main(void *data)
{
    Driver *d = data;

    if (prepare(d))
        drive(d);
    if (!lh_execution_stopping(d->all->x))
        tell_end(d);
    leave_links(d);
    return NULL;
}

/* ---- the run ---- */

static void
init_rank(Submission *all, uint32_t r)
{
    Rank *rank = &all->ranks[r];

    rank->runner = &all->x->ranks[r];
    rank->items = g_ptr_array_new();
    lh_cursor_init(&rank->cursor, all->x->program, rank->runner->index);
}

static void
clear_rank(Rank *rank)
{
    g_ptr_array_unref(rank->items);
    lh_op_buffer_clear(&rank->buffer);
}

static void
start_drivers(Submission *all)
{
    const uint32_t ranks = all->x->place.count / all->drivers_count;

    for (uint32_t i = 0; i < all->drivers_count; i++) {
        Driver *d = &all->drivers[i];
        GError *error = NULL;

        *d = (Driver){ .all = all, .ranks = &all->ranks[i * (size_t)ranks], .count = ranks };
        if (all->drivers_count == 1) {
            driver_main(d);
            return;
        }
        d->thread = g_thread_try_new("submit", driver_main, d, &error);
        if (d->thread == NULL)
            fail_run(d, error);
    }
    for (uint32_t i = 0; i < all->drivers_count; i++) {
        if (all->drivers[i].thread != NULL)
            g_thread_join(all->drivers[i].thread);
    }
}

static int
by_end(const void *a, const void *b)
{
    const LhTimelineRecord *x = a, *y = b;

    if (x->end_ps != y->end_ps)
        return x->end_ps < y->end_ps ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

void
lh_execution_submit(LhExecution *x)
{
    const LhLinks *links = x->params->backend->links;
    const LhOpenControl control = { x->params->backend->control, x->control, x->place };
    const LhLinksParams params = { .program = x->program,
                                   .channels = x->channels,
                                   .device = x->params->backend->device,
                                   .control = &control,
                                   .replay = x->params->replay,
                                   .native = x->params->collectives == LH_WAY_NATIVE,
                                   .deadline_us = x->params->deadline_us,
                                   .stopping = is_submission_stopping,
                                   .owner = x };
    Submission all = { .x = x,
                       .drivers_count = links->needs_both ? 1 : x->place.count,
                       .seen = g_string_new(NULL) };
    GError *error = NULL;

    lh_execution_begin(x);
    pthread_mutex_init(&all.lock, NULL);
    all.ranks = g_new0(Rank, x->place.count);
    all.drivers = g_new0(Driver, all.drivers_count);
    for (uint32_t r = 0; r < x->place.count; r++)
        init_rank(&all, r);
    all.links = links->open(&params, &error);
    if (all.links != NULL) {
        start_drivers(&all);
        links->close(all.links);
    } else {
        lh_execution_fail(x, error);
    }
    g_array_sort(x->records, by_end);
    for (uint32_t r = 0; r < x->place.count; r++)
        clear_rank(&all.ranks[r]);
    g_free(all.drivers);
    g_free(all.ranks);
    g_string_free(all.seen, TRUE);
    pthread_mutex_destroy(&all.lock);
}
