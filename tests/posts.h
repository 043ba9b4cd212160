/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of a run of collectives in the order of posting, derived from the graph of waits;
 * and the first place where two such runs order a link's queue differently.
 */
#pragma once

#include "run_events.h"
#include "sim/network/network.h"

#include <glib.h>

typedef struct {
    uint32_t from, to;
    uint32_t nth; /* among the messages with the same sender and receiver */
    LhTime posted_ps;
    LhRoute route;
} Post;

/* Two messages in swapped order, and how far apart they are posted in each run. */
typedef struct {
    LhTime at_ps; /* when the first of them is posted in the first run */
    LhTime apart_ps, others_apart_ps;
} Swap;

/* Sets *@rank to the rank whose op starts with the event that @wait is for; false if it is not such
 * an event. */
static inline bool
find_started(const RunEvents *run, uint32_t wait, uint32_t *rank)
{
    const uint32_t at = run_events_place(run, &g_array_index(run->waits, LhWait, wait));
    const LhEvent *event = &g_array_index(run->events, LhEvent, at);

    *rank = event->rank;
    return event->end == LH_EVENT_START || event->end == LH_EVENT_JOINS;
}

/* Whether an event posts a message: it waits for the start of its sender's op, or for what arrived
 * there since, then for the start of its receiver's. */
static inline bool
is_post(const RunEvents *run, uint32_t index, Post *post)
{
    const LhEvent *event = &g_array_index(run->events, LhEvent, index);
    const uint32_t first = event->waits_first;

    post->posted_ps = event->time_ps;
    post->from = event->rank;
    return event->kind == LH_STEP_LINKS && event->waits_count >= 2 &&
           g_array_index(run->waits, LhWait, first).rank == event->rank &&
           find_started(run, first + 1, &post->to);
}

static inline gpointer
ends_of_post(const Post *post)
{
    return GSIZE_TO_POINTER((gsize)post->from << 32 | post->to);
}

/* Returns the messages (Post) of the collectives of @group, on the routes of rings if @of_rings.
 * Caller unrefs. */
static inline GArray *
posts_of(LhSlackGraph *p, const LhNetwork *network, const LhGroup *group, bool of_rings)
{
    g_autoptr(GHashTable) counts = g_hash_table_new(NULL, NULL);
    GArray *posts = g_array_new(FALSE, TRUE, sizeof(Post));
    RunEvents run = run_events_of(p);
    Post post = { 0 };

    for (uint32_t i = 0; i < run.events->len; i++) {
        if (!is_post(&run, i, &post))
            continue;
        if (of_rings)
            lh_network_collective_route(network, post.from, post.to, &post.route);
        else
            lh_network_route(network, post.from, post.to, &post.route);
        lh_network_route_in(network, group, &post.route);
        post.nth = GPOINTER_TO_UINT(g_hash_table_lookup(counts, ends_of_post(&post)));
        g_hash_table_insert(counts, ends_of_post(&post), GUINT_TO_POINTER(post.nth + 1));
        g_array_append_val(posts, post);
    }
    run_events_clear(&run);
    return posts;
}

static inline gint
by_ends(gconstpointer x, gconstpointer y)
{
    const Post *const a = *(const Post *const *)x, *const b = *(const Post *const *)y;

    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return a->nth < b->nth ? -1 : a->nth > b->nth;
}

static inline GPtrArray *
sorted_posts(const GArray *posts)
{
    GPtrArray *sorted = g_ptr_array_new();

    for (guint i = 0; i < posts->len; i++)
        g_ptr_array_add(sorted, &g_array_index(posts, Post, i));
    g_ptr_array_sort(sorted, by_ends);
    return sorted;
}

/* Maps each message of @posts, by index, to the same message in @others, which has equally many.
 * Caller frees. */
static inline const Post **
same_posts(const GArray *posts, const GArray *others)
{
    const Post **same = g_new(const Post *, MAX(posts->len, 1));
    g_autoptr(GPtrArray) a = sorted_posts(posts);
    g_autoptr(GPtrArray) b = sorted_posts(others);

    for (guint i = 0; i < posts->len; i++) {
        const Post *post = g_ptr_array_index(a, i);

        g_assert(by_ends(&g_ptr_array_index(a, i), &g_ptr_array_index(b, i)) == 0);
        same[post - (const Post *)(const void *)posts->data] = g_ptr_array_index(b, i);
    }
    return same;
}

/* Finds the earliest two adjacent messages of a queue whose order differs in @others; false if all
 * queues have the same order. */
static inline bool
find_swap(const GArray *posts, const GArray *others, Swap *swap)
{
    g_autofree const Post **same = same_posts(posts, others);
    g_autoptr(GHashTable) last = g_hash_table_new(NULL, NULL); /* by link: 1 + index */

    *swap = (Swap){ .at_ps = LH_TIME_NEVER };
    for (guint i = 0; i < posts->len; i++) {
        const Post *post = &g_array_index(posts, Post, i);

        for (uint32_t k = 0; k < post->route.links_count; k++) {
            const gpointer link = GUINT_TO_POINTER(post->route.links[k]);
            const guint before = GPOINTER_TO_UINT(g_hash_table_lookup(last, link));

            g_hash_table_insert(last, link, GUINT_TO_POINTER(i + 1));
            if (before == 0 || same[before - 1] < same[i] ||
                g_array_index(posts, Post, before - 1).posted_ps >= swap->at_ps)
                continue;
            swap->at_ps = g_array_index(posts, Post, before - 1).posted_ps;
            swap->apart_ps = post->posted_ps - swap->at_ps;
            swap->others_apart_ps = same[before - 1]->posted_ps - same[i]->posted_ps;
        }
    }
    return swap->at_ps != LH_TIME_NEVER;
}

/* Returns the first time at which two messages between the same ends are posted within @within_ps
 * of each other: swapping these is not visible. LH_TIME_NEVER if there are none. */
static inline LhTime
first_alike_ps(const GArray *posts, double within_ps)
{
    g_autoptr(GHashTable) last = g_hash_table_new(NULL, NULL); /* of Post, by ends */

    for (guint i = 0; i < posts->len; i++) {
        Post *post = &g_array_index(posts, Post, i);
        const Post *before = g_hash_table_lookup(last, ends_of_post(post));

        if (before != NULL && (double)(post->posted_ps - before->posted_ps) <= within_ps)
            return before->posted_ps;
        g_hash_table_insert(last, ends_of_post(post), post);
    }
    return LH_TIME_NEVER;
}
