/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendezvous of messages. On one communicator the k-th message that a rank sends to another matches
 * the k-th that the other receives from it, in order of posting.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LH_NO_POST UINT32_MAX

/* One end of a message, from the issue of its op until it is matched. */
typedef struct {
    uint32_t rank, node; /* the op's id */
    uint32_t peer;
    uint8_t communicator;
    bool send;
    uint32_t next;        /* next post of the same op, or LH_NO_POST; once posted, that behind it */
    uint32_t bucket_next; /* once posted, in front of its line: next line in the same bucket ... */
    uint32_t last;        /* ... and the last post of its line */
    uint64_t bytes;
} LhPost;

typedef struct {
    LhPost *posts;
    uint32_t count, capacity, free;
    uint32_t *buckets; /* unmatched posts, in lines by source and destination */
    uint32_t mask;
} LhMatcher;

void lh_matcher_init(LhMatcher *m, uint32_t ranks);
void lh_matcher_clear(LhMatcher *m);

/* Makes room for more posts. */
void lh_matcher_grow(LhMatcher *m);

/* Returns the index of a new post that is not posted yet, for the caller to fill in. */
static inline uint32_t
lh_matcher_add(LhMatcher *m)
{
    const uint32_t index = m->free;

    if (index != LH_NO_POST) {
        m->free = m->posts[index].next;
        return index;
    }
    if (m->count == m->capacity)
        lh_matcher_grow(m);
    return m->count++;
}

/* Posts @index. Returns the matching post if there is one, else NULL. On a match both are released,
 * but can be read until the next lh_matcher_add(). */
const LhPost *lh_matcher_post(LhMatcher *m, uint32_t index);

static inline uint32_t
lh_post_source(const LhPost *post)
{
    return post->send ? post->rank : post->peer;
}

static inline uint32_t
lh_post_destination(const LhPost *post)
{
    return post->send ? post->peer : post->rank;
}
