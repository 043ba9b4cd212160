/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of lines. The unmatched posts of a pair on a communicator are of one side and form a
 * line in order of posting, so that a post is matched or joins in constant time, however many
 * messages of its pair are outstanding.
 */
#include "sim/message_matching.h"

#include <glib.h>
#include <string.h>

#define POSTS_MIN 256

void
lh_matcher_init(LhMatcher *m, uint32_t ranks)
{
    *m = (LhMatcher){ .free = LH_NO_POST, .mask = 3 };
    while (m->mask / 4 + 1 < ranks)
        m->mask = 2 * m->mask + 1;
    m->buckets = g_new(uint32_t, m->mask + 1);
    memset(m->buckets, 0xff, sizeof(uint32_t) * (m->mask + 1)); /* LH_NO_POST */
}

void
lh_matcher_clear(LhMatcher *m)
{
    g_free(m->posts);
    g_free(m->buckets);
}

void
lh_matcher_grow(LhMatcher *m)
{
    m->capacity = MAX(POSTS_MIN, m->capacity * 2);
    m->posts = g_renew(LhPost, m->posts, m->capacity);
}

static inline void
release(LhMatcher *m, uint32_t index)
{
    m->posts[index].next = m->free;
    m->free = index;
}

/* Pairs of equal distance map to neighbouring buckets, so regular patterns neither collide nor miss
 * the cache. */
static inline uint32_t
bucket_of(const LhMatcher *m, const LhPost *post)
{
    const uint32_t source = lh_post_source(post), destination = lh_post_destination(post);
    const uint32_t mixed =
        (destination - source) * UINT32_C(0x9E3779B1) + post->communicator * UINT32_C(0x85EBCA6B);

    return (destination + (mixed ^ mixed >> 15)) & m->mask;
}

static inline bool
are_of_one_pair(const LhPost *a, const LhPost *b)
{
    return a->communicator == b->communicator && lh_post_source(a) == lh_post_source(b) &&
           lh_post_destination(a) == lh_post_destination(b);
}

/* Takes the front of the line that @link refers to. */
static inline void
take_front(LhMatcher *m, uint32_t *link)
{
    const uint32_t index = *link;
    const LhPost *front = &m->posts[index];

    if (front->next == LH_NO_POST) {
        *link = front->bucket_next;
    } else {
        m->posts[front->next].bucket_next = front->bucket_next;
        m->posts[front->next].last = front->last;
        *link = front->next;
    }
    release(m, index);
}

const LhPost *
lh_matcher_post(LhMatcher *m, uint32_t index)
{
    LhPost *own = &m->posts[index];
    uint32_t *link = &m->buckets[bucket_of(m, own)];

    for (; *link != LH_NO_POST; link = &m->posts[*link].bucket_next) {
        LhPost *front = &m->posts[*link];

        if (!are_of_one_pair(front, own))
            continue;
        if (front->send != own->send) {
            take_front(m, link);
            release(m, index);
            return front;
        }
        m->posts[front->last].next = index;
        front->last = index;
        own->next = LH_NO_POST;
        return NULL;
    }
    own->next = LH_NO_POST;
    own->bucket_next = LH_NO_POST;
    own->last = index;
    *link = index;
    return NULL;
}
