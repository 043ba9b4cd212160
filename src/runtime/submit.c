/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The submission engine: runs a program the way GPUs do. A thread walks the programs of its ranks
 * and enqueues their ops on streams of the device; dependencies are marks on other streams. It
 * polls the mark after an op to learn that the op is complete, and never waits in a call.
 *
 * An op is issued when its host reaches it, submitted when all of it is enqueued, and done when the
 * device says so. It is submitted only after all its dependencies have been submitted, and a
 * message only when both its ends have been posted, if its links need them. So every mark that a
 * stream waits for is already enqueued, and all submitted work can run on any number of hardware
 * queues. Links that do not need the other end get the ops of a rank in program order.
 */
#include "runtime/runtime_private.h"

#include "base/error.h"
#include "runtime/deadlock_report.h"
#include "runtime/submit_rank.h"

#define SPINS_MAX 1000 /* polls without a pause while nothing moves */
#define REST_US 20
#define TELL_US (2 * G_USEC_PER_SEC) /* time for other threads to report a stall */

/* ---- a thread ---- */

static bool
open_streams(LhSubmitDriver *d, LhSubmitRank *rank)
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
            return lh_submit_fail(d, error);
    }
    return true;
}

static bool
join_rank(LhSubmitDriver *d, LhSubmitRank *rank)
{
    LhExecution *x = d->all->x;
    const LhLinksRank place = { .rank = rank->runner->index,
                                .device = rank->runner->at.state,
                                .host = rank->runner->at.stream };
    GError *error = NULL;

    rank->joined = x->params->backend->links->join(d->all->links, &place, &error);
    return rank->joined != NULL || lh_submit_fail(d, error);
}

/* Sets the origin of times. */
static bool
set_epoch(LhSubmitDriver *d)
{
    const LhLinks *links = d->all->x->params->backend->links;
    const LhPlaceOfWork *at = &d->ranks[0].runner->at;
    GError *error = NULL;

    d->epoch = at->device->mark(at->state, at->stream, &error);
    if (d->epoch == NULL)
        return lh_submit_fail(d, error);
    for (uint32_t i = 0; links->begin != NULL && i < d->count; i++) {
        if (!links->begin(d->ranks[i].joined, &error))
            return lh_submit_fail(d, error);
    }
    if (!lh_device_pass(at->device, at->state, d->epoch, NULL, NULL, &error))
        return lh_submit_fail(d, error);
    d->epoch_ps = lh_execution_now(d->all->x);
    return links->begin == NULL ||
           lh_device_finish(at->device, at->state, at->stream, NULL, NULL, &error) ||
           lh_submit_fail(d, error);
}

static bool
prepare(LhSubmitDriver *d)
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

static bool
is_over(const LhSubmitDriver *d)
{
    for (uint32_t i = 0; i < d->count; i++) {
        LhRunner *runner = d->ranks[i].runner;

        if (!runner->ended || runner->first_open < runner->issued ||
            !g_queue_is_empty(&runner->endings))
            return false;
    }
    return true;
}

/* Fails the run with the reports of all drivers; the caller holds the lock. */
static void
give_up_submission(LhSubmission *all)
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

/* Reports what this thread's ranks wait for. Ends the run when it is the last thread to report, or
 * after the time of the others has passed. */
static void
tell_waiting(LhSubmitDriver *d)
{
    LhSubmission *all = d->all;
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

/* Reports that this thread has ended, for others that may wait. */
static void
tell_end(LhSubmitDriver *d)
{
    LhSubmission *all = d->all;

    pthread_mutex_lock(&all->lock);
    g_string_append_printf(all->seen, "\n  rank %u: has ended", d->ranks[0].runner->index);
    if (++all->told == all->drivers_count && all->stuck)
        give_up_submission(all);
    pthread_mutex_unlock(&all->lock);
}

/* Whether the run is being stopped, or another process has failed. Only a process with one driver,
 * the thread that opened the control plane, asks the control plane. */
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
look_at_links(LhSubmitDriver *d)
{
    const LhLinks *links = d->all->x->params->backend->links;
    GError *error = NULL;

    if (is_submission_stopping(d->all->x))
        return;

    for (uint32_t i = 0; i < d->count; i++) {
        if (links->failed != NULL && links->failed(d->ranks[i].joined, &error))
            lh_submit_fail(d, error);
    }
}

static void
drive(LhSubmitDriver *d)
{
    LhExecution *x = d->all->x;
    gint64 since_us = g_get_monotonic_time();
    uint32_t idle = 0;

    while (!lh_execution_stopping(x) && !is_over(d)) {
        bool moved = false;

        for (uint32_t i = 0; i < d->count; i++)
            moved = lh_submit_step(d, &d->ranks[i]) || moved;
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
leave_links(LhSubmitDriver *d)
{
    const LhLinks *links = d->all->x->params->backend->links;
    const LhPlaceOfWork *at = &d->ranks[0].runner->at;

    for (uint32_t i = 0; i < d->count; i++) {
        LhSubmitRank *rank = &d->ranks[i];

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
    LhSubmitDriver *d = data;

    if (prepare(d))
        drive(d);
    if (!lh_execution_stopping(d->all->x))
        tell_end(d);
    leave_links(d);
    return NULL;
}

/* ---- the run ---- */

static void
init_rank(LhSubmission *all, uint32_t r)
{
    LhSubmitRank *rank = &all->ranks[r];

    rank->runner = &all->x->ranks[r];
    rank->items = g_ptr_array_new();
    lh_cursor_init(&rank->cursor, all->x->program, rank->runner->index);
}

static void
clear_rank(LhSubmitRank *rank)
{
    g_ptr_array_unref(rank->items);
    lh_op_buffer_clear(&rank->buffer);
}

static void
start_drivers(LhSubmission *all)
{
    const uint32_t ranks = all->x->place.count / all->drivers_count;

    for (uint32_t i = 0; i < all->drivers_count; i++) {
        LhSubmitDriver *d = &all->drivers[i];
        GError *error = NULL;

        *d =
            (LhSubmitDriver){ .all = all, .ranks = &all->ranks[i * (size_t)ranks], .count = ranks };
        if (all->drivers_count == 1) {
            driver_main(d);
            return;
        }
        d->thread = g_thread_try_new("submit", driver_main, d, &error);
        if (d->thread == NULL)
            lh_submit_fail(d, error);
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
    LhSubmission all = { .x = x,
                         .drivers_count = links->needs_both ? 1 : x->place.count,
                         .seen = g_string_new(NULL) };
    GError *error = NULL;

    lh_execution_begin(x);
    pthread_mutex_init(&all.lock, NULL);
    all.ranks = g_new0(LhSubmitRank, x->place.count);
    all.drivers = g_new0(LhSubmitDriver, all.drivers_count);
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
