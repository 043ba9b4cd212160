/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport of single-rank replay (replay.h): an end completes at its predicted time. All messages
 * of an op count from its first one, so that the rounds of a collective together take its predicted
 * time.
 */
#include "runtime/api/transport.h"

#include "base/time_units.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#define YIELD_NS 100000

/* Start of an op: when its first message was posted. */
typedef struct {
    bool begun;
    LhTime begun_ps;
} Op;

typedef struct {
    LhTransportParams params;
    pthread_mutex_t lock; /* of the following fields */
    pthread_cond_t posted;
    GArray *ops; /* of Op, by id */
    LhMessage *waiting;
} Replay;

static void *
replay_open(const LhTransportParams *params, GError **error)
{
    Replay *t = g_new0(Replay, 1);
    pthread_condattr_t monotonic;

    (void)error;
    t->params = *params;
    t->ops = g_array_new(FALSE, TRUE, sizeof(Op));
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->posted, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return t;
}

static LhTime
now(const Replay *t)
{
    return t->params.now(t->params.run);
}

static LhTime
due_of(const Replay *t, const LhMessage *m)
{
    return lh_replay_end(t->params.replay, m->op, g_array_index(t->ops, Op, m->op).begun_ps);
}

/* Fills a received message before it completes: filling is part of its predicted time. */
static bool
bring_pieces(const Replay *t, const LhMessage *m, GError **error)
{
    const LhRunDevice *device = t->params.device;

    if (m->send)
        return true;
    for (uint32_t i = 0; i < m->pieces_count; i++) {
        if (!device->fill(m->device, m->pieces[i].data, LH_REPLAY_BYTE, m->pieces[i].bytes,
                          m->stream, error))
            return false;
    }
    return lh_device_finish(device, m->device, m->stream, m->stopping, m->owner, error);
}

static void
note_begin(Replay *t, uint32_t id)
{
    Op *op;

    if (id >= t->ops->len)
        g_array_set_size(t->ops, id + 1);
    op = &g_array_index(t->ops, Op, id);
    if (!op->begun)
        *op = (Op){ .begun = true, .begun_ps = now(t) };
}

static void
replay_post(void *state, LhMessage *m)
{
    Replay *t = state;
    GError *error = NULL;

    pthread_mutex_lock(&t->lock);
    note_begin(t, m->op);
    pthread_mutex_unlock(&t->lock);
    if (!bring_pieces(t, m, &error)) {
        m->complete(m, error);
        return;
    }
    pthread_mutex_lock(&t->lock);
    m->next = t->waiting;
    t->waiting = m;
    pthread_cond_signal(&t->posted);
    pthread_mutex_unlock(&t->lock);
}

/* Removes all messages that are due; sets *@left_ps to the time until the next one is. */
static LhMessage *
take_due(Replay *t, LhTime *left_ps)
{
    LhMessage *due = NULL, **at = &t->waiting;
    const LhTime now_ps = now(t);

    *left_ps = LH_TIME_NEVER;
    while (*at != NULL) {
        LhMessage *m = *at;
        const LhTime due_ps = due_of(t, m);

        if (due_ps > now_ps) {
            *left_ps = MIN(*left_ps, due_ps - now_ps);
            at = &m->next;
            continue;
        }
        *at = m->next;
        m->next = due;
        due = m;
    }
    return due;
}

/* Waits until another message is posted, or for @wait_ns. Polls for the last YIELD_NS, since waking
 * up would take longer. */
static void
wait_for_post(Replay *t, int64_t wait_ns)
{
    struct timespec until;
    int64_t ns;

    if (wait_ns <= YIELD_NS) {
        pthread_mutex_unlock(&t->lock);
        sched_yield();
        pthread_mutex_lock(&t->lock);
        return;
    }
    wait_ns -= YIELD_NS;

    clock_gettime(CLOCK_MONOTONIC, &until);
    ns = until.tv_nsec + wait_ns;
    until.tv_sec += (time_t)(ns / LH_NS_PER_S);
    until.tv_nsec = (long)(ns % LH_NS_PER_S);
    pthread_cond_timedwait(&t->posted, &t->lock, &until);
}

static bool
replay_poll(void *state, int64_t wait_us)
{
    Replay *t = state;
    LhMessage *due;
    LhTime left_ps;
    bool moved;

    pthread_mutex_lock(&t->lock);
    due = take_due(t, &left_ps);
    moved = due != NULL;
    if (!moved && wait_us > 0)
        wait_for_post(t, MIN(wait_us * LH_NS_PER_US, left_ps / LH_PS_PER_NS + 1));
    pthread_mutex_unlock(&t->lock);
    while (due != NULL) {
        LhMessage *m = due;

        due = m->next;
        m->complete(m, NULL);
    }
    return moved;
}

static void
replay_close(void *state)
{
    Replay *t = state;

    g_array_unref(t->ops);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->posted);
    g_free(t);
}

const LhTransport lh_transport_replay = {
    .name = "replay",
    .open = replay_open,
    .post = replay_post,
    .poll = replay_poll,
    .close = replay_close,
};
