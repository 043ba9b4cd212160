/* SPDX-License-Identifier: Apache-2.0 */
/* Matching of messages, against a list of unmatched posts that is searched from its start. */
#include "base/rng.h"
#include "run_tests.h"
#include "sim/message_matching.h"

#include <glib.h>

#define RANKS 6
#define STEPS 20000

static bool
belong_together(const LhPost *a, const LhPost *b)
{
    return a->send != b->send && a->communicator == b->communicator &&
           lh_post_source(a) == lh_post_source(b) &&
           lh_post_destination(a) == lh_post_destination(b);
}

/* Takes the oldest post that matches @post; its `bytes`, a number of its own, or 0. */
static uint64_t
match(GArray *waiting, const LhPost *post)
{
    for (guint i = 0; i < waiting->len; i++) {
        const LhPost *other = &g_array_index(waiting, LhPost, i);
        const uint64_t bytes = other->bytes;

        if (!belong_together(other, post))
            continue;
        g_array_remove_index(waiting, i);
        return bytes;
    }
    g_array_append_val(waiting, *post);
    return 0;
}

/* Sends in bursts, so that many of one pair are outstanding. */
static LhPost
draw_post(uint64_t seed, uint64_t step)
{
    const uint64_t burst = step / 50;
    const uint32_t rank = (uint32_t)(lh_rng_bits(seed, step, 0) % RANKS);
    const uint32_t hop = 1 + (uint32_t)(lh_rng_bits(seed, step, 1) % (RANKS - 1));

    return (LhPost){ .rank = rank,
                     .peer = (rank + hop) % RANKS,
                     .communicator = (uint8_t)(lh_rng_bits(seed, step, 2) % 2),
                     .send = lh_rng_bits(seed, burst, 3) % 2 == lh_rng_bits(seed, step, 4) % 8 / 7,
                     .bytes = step + 1 };
}

START_TEST(posts_match_in_order)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        g_autoptr(GArray) waiting = g_array_new(FALSE, FALSE, sizeof(LhPost));
        LhMatcher m;
        guint most = 0;

        lh_matcher_init(&m, seed % 2 == 0 ? RANKS : 1); /* 1: all pairs in few buckets */
        for (uint64_t step = 0; step < STEPS; step++) {
            const LhPost post = draw_post(seed, step);
            const uint32_t index = lh_matcher_add(&m);
            const LhPost *found;

            m.posts[index] = post;
            m.posts[index].next = (uint32_t)step; /* of its op: the matcher does not care */
            found = lh_matcher_post(&m, index);
            ck_assert_uint_eq(found == NULL ? 0 : found->bytes, match(waiting, &post));
            most = MAX(most, waiting->len);
        }
        ck_assert_uint_gt(most, 100);
        ck_assert_uint_le(m.count, most + 1); /* released posts are used again */
        lh_matcher_clear(&m);
    }
}
END_TEST

LH_TEST_MAIN("message_matching", posts_match_in_order)
