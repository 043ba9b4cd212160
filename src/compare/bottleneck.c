/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources are compute, latency, hosts, and sets of tiers of links that carry traffic. Several
 * tiers are one resource only if speeding them up together saves more than the sum of speeding them
 * up separately: links in series with equal bandwidth, where speeding up one alone does not help,
 * and links of chains of equal length.
 */
#include "compare/bottleneck.h"

#include "base/threads.h"
#include "scenario/setup_simulate.h"
#include "sim/network/collectives/measured.h"

#include <pthread.h>

/* Savings within this ratio are equal: the resource with fewer tiers is preferred. */
#define SAME_SAVING 0.95

/* --- resources ----------------------------------------------------------------------------------
 */

/* Time of the critical path spent on the resource. */
static LhTime
path_of(const LhBottleneck *bound, uint8_t kind, uint8_t tiers)
{
    LhTime time_ps = 0;

    for (guint i = 0; i < bound->shares->len; i++) {
        const LhPathShare *share = &g_array_index(bound->shares, LhPathShare, i);

        if ((share->kind == kind && (share->tiers & ~tiers) == 0) ||
            (share->kind == LH_STEP_LATENCY && tiers & LH_WITH_LATENCY))
            time_ps += share->time_ps;
    }
    return time_ps;
}

static const LhWhatIf *
what_if_of(const LhBottleneck *bound, uint8_t kind, uint8_t tiers)
{
    for (guint i = 0; i < bound->what_ifs->len; i++) {
        const LhWhatIf *w = &g_array_index(bound->what_ifs, LhWhatIf, i);

        if (w->kind == kind && w->tiers == tiers)
            return w;
    }
    return NULL;
}

/* The run and its analysis. */
typedef struct {
    const LhSetup *setup;
    const LhProgram *program;
    const LhHooks *hooks; /* of each simulation; called on its thread */
    guint threads;
    LhBottleneck *bound;
} Question;

/* Adds a what-if with faster @kind and @tiers; play_asked() simulates it. */
static void
ask_what_if(const Question *q, uint8_t kind, uint8_t tiers)
{
    const LhWhatIf what_if = { .kind = kind,
                               .tiers = tiers,
                               .path_ps = path_of(q->bound, kind, tiers),
                               .makespan_ps = LH_TIME_NEVER };

    if (what_if_of(q->bound, kind, tiers) == NULL)
        g_array_append_val(q->bound->what_ifs, what_if);
}

/* Simulates a what-if that has no result yet. */
static void
play_one(void *data, guint index)
{
    const Question *q = data;
    LhWhatIf *what_if = &g_array_index(q->bound->what_ifs, LhWhatIf, index);
    const LhPathShare resource = { .kind = what_if->kind, .tiers = what_if->tiers };

    if (what_if->makespan_ps == LH_TIME_NEVER)
        what_if->makespan_ps = lh_bottleneck_play_faster(q->setup, q->program, &resource, q->hooks);
}

/* Simulates all what-ifs and drops those that failed or were interrupted. */
static void
play_asked(Question *q)
{
    GArray *what_ifs = q->bound->what_ifs;

    lh_on_threads_each("bound", q->threads, what_ifs->len, play_one, q);
    for (guint i = what_ifs->len; i-- > 0;) {
        if (g_array_index(what_ifs, LhWhatIf, i).makespan_ps == LH_TIME_NEVER)
            g_array_remove_index(what_ifs, i);
    }
}

/* Largest known saving from speeding up @tiers in separate groups instead of together. */
static LhTime
saved_apart(const LhBottleneck *bound, uint8_t tiers)
{
    LhTime most = 0;

    for (uint8_t part = (uint8_t)((tiers - 1) & tiers); part != 0;
         part = (uint8_t)((part - 1) & tiers)) {
        const LhWhatIf *known = what_if_of(bound, LH_STEP_LINKS, part);
        const uint8_t rest = (uint8_t)(tiers & ~part);
        const LhWhatIf *other = what_if_of(bound, LH_STEP_LINKS, rest);
        LhTime saved = saved_apart(bound, rest);

        if (other != NULL)
            saved = MAX(saved, lh_what_if_saved(bound, other));
        if (known != NULL)
            most = MAX(most, saved + lh_what_if_saved(bound, known));
    }
    return most;
}

/* Whether speeding up the tiers together saves more than separately. */
static bool
is_resource(const LhBottleneck *bound, const LhWhatIf *what_if)
{
    const double saved = (double)lh_what_if_saved(bound, what_if);

    return (what_if->tiers & (what_if->tiers - 1)) == 0 ||
           (double)saved_apart(bound, what_if->tiers) < SAME_SAVING * saved;
}

static void
forget_sums(LhBottleneck *bound)
{
    g_autoptr(GArray) kept = g_array_new(FALSE, FALSE, sizeof(LhWhatIf));

    for (guint i = 0; i < bound->what_ifs->len; i++)
        if (is_resource(bound, &g_array_index(bound->what_ifs, LhWhatIf, i)))
            g_array_append_val(kept, g_array_index(bound->what_ifs, LhWhatIf, i));
    g_array_unref(bound->what_ifs);
    bound->what_ifs = g_steal_pointer(&kept);
}

/* --- uncertainty of the savings ----------------------------------------------------------------
 */

/* Number of what-ifs that reports print. */
#define SAID 2

static bool
may_be_scaled(const Question *q, const LhWhatIf *what_if)
{
    const uint8_t in_node = 1u << LH_TIER_NVLINK | 1u << LH_TIER_PCIE;

    return q->setup->topology->collective_times != NULL && what_if->kind == LH_STEP_LINKS &&
           (what_if->tiers & in_node) != 0 && lh_what_if_saved(q->bound, what_if) > 0;
}

/* Saving with @protocols as the share of protocol time that scales with links. */
static double
saved_share_at(const Question *q, const LhWhatIf *what_if, double protocols)
{
    const LhPathShare resource = { .kind = what_if->kind, .tiers = what_if->tiers };
    const LhTime faster_ps =
        lh_what_if_play_raised(q->setup, q->program, &resource, protocols, q->hooks);
    LhTime as_it_is_ps = q->bound->makespan_ps;

    if (lh_measured_is_scaled(&q->setup->network))
        as_it_is_ps = lh_what_if_play_on_topology(q->setup, q->program, q->setup->topology,
                                                  protocols, q->hooks);
    if (faster_ps == LH_TIME_NEVER || as_it_is_ps == LH_TIME_NEVER || as_it_is_ps == 0)
        return lh_what_if_share(q->bound, what_if);
    return 1 - (double)faster_ps / (double)as_it_is_ps;
}

static void
play_ends(void *data, guint index)
{
    const Question *q = data;
    LhWhatIf *what_if = &g_array_index(q->bound->what_ifs, LhWhatIf, index);
    const double share = lh_what_if_share(q->bound, what_if);
    double none, all;

    what_if->least_share = what_if->most_share = share;
    if (!may_be_scaled(q, what_if))
        return;
    none = saved_share_at(q, what_if, 0);
    all = saved_share_at(q, what_if, 1);
    what_if->least_share = MIN(share, MIN(none, all));
    what_if->most_share = MAX(share, MAX(none, all));
}

/* Bounds the savings of the what-ifs that reports print. */
static void
ask_ends(Question *q)
{
    const guint count = q->bound->what_ifs->len;

    lh_on_threads_each("bound", q->threads, MIN(count, SAID), play_ends, q);
    for (guint i = SAID; i < count; i++) {
        LhWhatIf *what_if = &g_array_index(q->bound->what_ifs, LhWhatIf, i);

        what_if->least_share = what_if->most_share = lh_what_if_share(q->bound, what_if);
    }
}

/* --- ranking ------------------------------------------------------------------------------------
 */

static int
bits(uint8_t tiers)
{
    return __builtin_popcount(tiers);
}

/* Sorts by saving, largest first. */
static int
by_makespan(gconstpointer a, gconstpointer b)
{
    const LhWhatIf *x = a, *y = b;

    if (x->makespan_ps != y->makespan_ps)
        return x->makespan_ps < y->makespan_ps ? -1 : 1;
    if (x->path_ps != y->path_ps)
        return x->path_ps > y->path_ps ? -1 : 1;
    if (x->kind != y->kind)
        return (int)x->kind - (int)y->kind;
    return bits(x->tiers) != bits(y->tiers) ? bits(x->tiers) - bits(y->tiers)
                                            : (int)x->tiers - (int)y->tiers;
}

static void
move_to_front(GArray *what_ifs, guint index)
{
    const LhWhatIf moved = g_array_index(what_ifs, LhWhatIf, index);

    g_array_remove_index(what_ifs, index);
    g_array_prepend_val(what_ifs, moved);
}

/* Moves the link what-if with the fewest tiers to the front, among those with equal saving. */
static void
prefer_fewer(LhBottleneck *bound)
{
    const LhWhatIf first = g_array_index(bound->what_ifs, LhWhatIf, 0);
    guint best = 0;

    for (guint i = 1; i < bound->what_ifs->len; i++) {
        const LhWhatIf *w = &g_array_index(bound->what_ifs, LhWhatIf, i);

        if (w->kind == first.kind && (w->tiers & ~first.tiers) == 0 &&
            (double)lh_what_if_saved(bound, w) >=
                SAME_SAVING * (double)lh_what_if_saved(bound, &first) &&
            bits(w->tiers) < bits(g_array_index(bound->what_ifs, LhWhatIf, best).tiers))
            best = i;
    }
    move_to_front(bound->what_ifs, best);
}

static void
order(LhBottleneck *bound)
{
    forget_sums(bound);
    g_array_sort(bound->what_ifs, by_makespan);
    prefer_fewer(bound);
}

static bool
computes_first(const LhBottleneck *bound)
{
    return g_array_index(bound->what_ifs, LhWhatIf, 0).kind == LH_STEP_COMPUTE;
}

/* Whether more of the critical path waits for messages than for kernels. */
static bool
waits_for_messages(const LhBottleneck *bound)
{
    return path_of(bound, LH_STEP_LINKS, UINT8_MAX) > path_of(bound, LH_STEP_COMPUTE, 0);
}

/*
 * Handles runs where faster kernels save most, although the critical path mostly waits for
 * messages, for their bytes and their latency. Adds a what-if that speeds up both. If it saves less
 * than kernels, because a chain of kernels is equally long, the best what-if for messages is still
 * ranked first.
 */
static void
look_beyond_compute(Question *q, uint8_t used)
{
    GArray *what_ifs;
    guint first = 0;

    ask_what_if(q, LH_STEP_LINKS, used | LH_WITH_LATENCY);
    play_asked(q);
    order(q->bound);
    what_ifs = q->bound->what_ifs;
    while (first < what_ifs->len &&
           g_array_index(what_ifs, LhWhatIf, first).kind != LH_STEP_LINKS &&
           g_array_index(what_ifs, LhWhatIf, first).kind != LH_STEP_LATENCY)
        first++;
    if (first < what_ifs->len)
        move_to_front(what_ifs, first);
}

/* Adds what-ifs for links; returns the tiers that carry traffic. */
static uint8_t
ask_about_links(const Question *q, const LhSimResult *result)
{
    uint8_t used = 0;

    for (unsigned tier = 0; tier < LH_TIERS; tier++)
        if (result->link_bytes[tier] > 0)
            used |= (uint8_t)(1u << tier);
    for (uint8_t tiers = used; tiers != 0; tiers = (uint8_t)((tiers - 1) & used))
        ask_what_if(q, LH_STEP_LINKS, tiers);
    return used;
}

/* Forwards progress to the caller's task, one thread at a time. */
typedef struct {
    const LhTask *task;
    pthread_mutex_t lock;
} Relay;

static bool
relay_progress(void *data, const LhProgress *at)
{
    Relay *relay = data;
    bool go_on;

    pthread_mutex_lock(&relay->lock);
    go_on = lh_task_tell(relay->task, at);
    pthread_mutex_unlock(&relay->lock);
    return go_on;
}

static LhBottleneck *
find_binding(Question *q)
{
    LhHooks traced = *q->hooks;
    g_autoptr(LhSimResult) result = NULL;
    g_autoptr(LhBottleneck) bound = g_new0(LhBottleneck, 1);
    uint8_t used;

    q->bound = bound;
    traced.path = true;
    result = lh_setup_simulate(q->setup, q->program, NULL, NULL, &traced, NULL);
    if (result == NULL)
        return NULL;
    bound->makespan_ps = result->makespan_ps;
    bound->shares = lh_path_shares(result->path);
    bound->what_ifs = g_array_new(FALSE, FALSE, sizeof(LhWhatIf));
    ask_what_if(q, LH_STEP_COMPUTE, 0);
    used = ask_about_links(q, result);
    if (path_of(bound, LH_STEP_LATENCY, 0) > 0)
        ask_what_if(q, LH_STEP_LATENCY, 0);
    if (path_of(bound, LH_STEP_HOST, 0) > 0)
        ask_what_if(q, LH_STEP_HOST, 0);
    g_clear_pointer(&result, lh_sim_result_free);
    play_asked(q);
    if (bound->what_ifs->len == 0)
        return NULL;
    order(bound);
    if (computes_first(bound) && waits_for_messages(bound))
        look_beyond_compute(q, used);
    ask_ends(q);
    return g_steal_pointer(&bound);
}

LhBottleneck *
lh_bottleneck_find(const LhSetup *setup, const LhProgram *program, const LhTask *task)
{
    Relay relay = { .task = task };
    const LhHooks watched = { .task = { .progress = relay_progress, .data = &relay } };
    Question q = { .setup = setup, .program = program, .hooks = &watched, .threads = task->jobs };
    LhBottleneck *bound;

    pthread_mutex_init(&relay.lock, NULL);
    bound = find_binding(&q);
    pthread_mutex_destroy(&relay.lock);
    return bound;
}

void
lh_bottleneck_free(LhBottleneck *bound)
{
    if (bound == NULL)
        return;
    g_clear_pointer(&bound->shares, g_array_unref);
    g_clear_pointer(&bound->what_ifs, g_array_unref);
    g_free(bound);
}
