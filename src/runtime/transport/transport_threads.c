/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport between ranks of one process: posting the second end of a message copies it, once, from
 * the sender's memory into the receiver's.
 */
#include "runtime/api/transport.h"

#include <pthread.h>
#include <string.h>

#define BUCKETS 256 /* a power of two; each with a lock */

/* Posted ends without a match, oldest first. */
typedef struct {
    pthread_mutex_t lock;
    LhMessage *first, *last;
} Bucket;

typedef struct {
    const LhRunDevice *device;
    Bucket buckets[BUCKETS];
} Threads;

static void *
threads_open(const LhTransportParams *params, GError **error)
{
    Threads *t = g_new0(Threads, 1);

    (void)error;
    t->device = params->device;
    for (unsigned i = 0; i < BUCKETS; i++)
        pthread_mutex_init(&t->buckets[i].lock, NULL);
    return t;
}

static uint32_t
source_of(const LhMessage *m)
{
    return m->send ? m->rank : m->peer;
}

static uint32_t
destination_of(const LhMessage *m)
{
    return m->send ? m->peer : m->rank;
}

static Bucket *
bucket_of(Threads *t, const LhMessage *m)
{
    uint32_t mixed = source_of(m) * UINT32_C(0x9E3779B1) +
                     destination_of(m) * UINT32_C(0x85EBCA6B) + m->channel * UINT32_C(0xC2B2AE35);

    return &t->buckets[(mixed ^ mixed >> 15) & (BUCKETS - 1)];
}

/* Removes the oldest match of @m from the bucket, or adds @m to it. */
static LhMessage *
meet_message(Bucket *b, LhMessage *m)
{
    LhMessage *before = NULL;

    for (LhMessage *other = b->first; other != NULL; before = other, other = other->next) {
        if (other->send == m->send || other->channel != m->channel ||
            source_of(other) != source_of(m) || destination_of(other) != destination_of(m))
            continue;
        if (before == NULL)
            b->first = other->next;
        else
            before->next = other->next;
        if (b->last == other)
            b->last = before;
        return other;
    }
    m->next = NULL;
    if (b->last == NULL)
        b->first = m;
    else
        b->last->next = m;
    b->last = m;
    return NULL;
}

/* Copies a message on the receiver's stream. */
static bool
copy_to_receiver(const LhRunDevice *device, const LhMessage *from, const LhMessage *to,
                 GError **error)
{
    LhPieceWalk walk = { 0 };
    LhPieceCopy copy;

    while (lh_piece_walk(&walk, from, to, &copy)) {
        if (!device->copy(to->device, copy.to, copy.from, copy.bytes, to->stream, error))
            return false;
    }
    return lh_device_finish(device, to->device, to->stream, to->stopping, to->owner, error);
}

static void
threads_post(void *state, LhMessage *m)
{
    Threads *t = state;
    Bucket *b = bucket_of(t, m);
    GError *error = NULL;
    LhMessage *other;

    pthread_mutex_lock(&b->lock);
    other = meet_message(b, m);
    pthread_mutex_unlock(&b->lock);
    if (other == NULL)
        return;
    copy_to_receiver(t->device, m->send ? m : other, m->send ? other : m, &error);
    other->complete(other, error);
    m->complete(m, NULL);
}

static bool
threads_poll(void *state, int64_t wait_us)
{
    (void)state;
    g_usleep((gulong)wait_us);
    return false;
}

static void
threads_close(void *state)
{
    Threads *t = state;

    for (unsigned i = 0; i < BUCKETS; i++)
        pthread_mutex_destroy(&t->buckets[i].lock);
    g_free(t);
}

const LhTransport lh_transport_threads = {
    .name = "cpu",
    .open = threads_open,
    .post = threads_post,
    .poll = threads_poll,
    .close = threads_close,
};
