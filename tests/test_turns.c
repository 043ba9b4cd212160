/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds over points that stand for simulations: each takes a time, or fails at one, and checks the
 * cutoff step by step, so that a lower one takes effect somewhere within. The outcomes do not
 * depend on the number of threads.
 */
#include "planner/lookahead_pool.h"

#include "base/rng.h"
#include "run_tests.h"

#define POINTS 60
#define ROUND 4
#define TOP 3
#define SEEDS 25
#define OVERHEAD 7

typedef struct {
    LhTime takes_ps, fails_ps, least_ps; /* fails_ps: LH_TIME_NEVER: it does not fail */
} Point;

typedef struct {
    Point points[POINTS];
    LhPlanOutcome outcomes[POINTS];
    LhLookaheadPool *turns;
    GArray *close; /* of guint, by least_ps */
    LhTime times_ps[POINTS];
    guint ran;
    uint64_t seed;
} World;

static void
take(void *data, LhLookahead *turn)
{
    World *w = data;
    const Point *p = &w->points[turn->point];
    const _Atomic LhTime *limit_ps = lh_lookahead_limit(w->turns, turn, OVERHEAD);
    LhPlanOutcome *outcome = &turn->outcome;

    ck_assert_int_eq(outcome->state, LH_POINT_OPEN);
    for (LhTime now_ps = 0;; now_ps++) {
        if (now_ps > *limit_ps) {
            outcome->state = LH_POINT_CUT;
            return;
        }
        if (now_ps == p->fails_ps) {
            outcome->state = now_ps >= *limit_ps ? LH_POINT_CUT : LH_POINT_FAILED;
            outcome->reason = outcome->state == LH_POINT_FAILED ? g_strdup("it fails") : NULL;
            return;
        }
        if (now_ps == p->takes_ps) {
            outcome->state = LH_POINT_RAN;
            outcome->time_ps = now_ps + OVERHEAD;
            return;
        }
        if (lh_rng_uniform(w->seed, turn->point, (uint32_t)now_ps) < 0.01)
            g_usleep(50);
    }
}

static int
by_least(gconstpointer a, gconstpointer b, gpointer data)
{
    const World *w = data;
    const guint x = *(const guint *)a, y = *(const guint *)b;
    const LhTime s = w->points[x].least_ps, t = w->points[y].least_ps;

    return s != t ? (s < t ? -1 : 1) : x < y ? -1 : x > y;
}

static void
make(World *w, uint64_t seed)
{
    *w = (World){ .seed = seed, .close = g_array_new(FALSE, FALSE, sizeof(guint)) };
    for (guint i = 0; i < POINTS; i++) {
        const LhTime takes_ps = 50 + 20 * (LhTime)(15 * lh_rng_uniform(seed, i, 0));

        w->points[i] = (Point){ .takes_ps = takes_ps,
                                .least_ps = (LhTime)((double)takes_ps *
                                                     (0.5 + 0.5 * lh_rng_uniform(seed, i, 1))),
                                .fails_ps = LH_TIME_NEVER };
        if (lh_rng_uniform(seed, i, 2) < 0.2)
            w->points[i].fails_ps = (LhTime)((double)takes_ps * lh_rng_uniform(seed, i, 3));
        w->outcomes[i] = (LhPlanOutcome){ .state = LH_POINT_OPEN, .close = true };
        g_array_append_val(w->close, i);
    }
    g_array_sort_with_data(w->close, by_least, w);
}

static int
ascending(const void *a, const void *b)
{
    const LhTime x = *(const LhTime *)a, y = *(const LhTime *)b;

    return (x > y) - (x < y);
}

static LhTime
cut_of(World *w)
{
    qsort(w->times_ps, w->ran, sizeof(w->times_ps[0]), ascending);
    return w->ran < TOP ? LH_TIME_NEVER : w->times_ps[TOP - 1];
}

static int
expected(const Point *p, LhTime cut_ps)
{
    const LhTime limit_ps = cut_ps == LH_TIME_NEVER ? cut_ps : cut_ps - OVERHEAD;

    if (p->fails_ps <= p->takes_ps)
        return p->fails_ps < limit_ps ? LH_POINT_FAILED : LH_POINT_CUT;
    return p->takes_ps <= limit_ps ? LH_POINT_RAN : LH_POINT_CUT;
}

static void
play_round(World *w)
{
    const guint count = MIN(ROUND, w->close->len);
    guint points[ROUND];
    LhPlanOutcome found[ROUND];
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(guint));
    LhLookaheadRound round = {
        .points = points,
        .places = places,
        .found = found,
        .cut_ps = cut_of(w),
        .next = w->close,
        .known = w->outcomes,
    };

    for (guint i = 0; i < count; i++) {
        points[i] = g_array_index(w->close, guint, i);
        found[i] = w->outcomes[points[i]];
        g_array_append_val(places, i);
    }
    g_array_remove_range(w->close, 0, count);
    lh_lookahead_pool_take(w->turns, &round);
    for (guint i = 0; i < count; i++) {
        w->outcomes[points[i]] = found[i];
        ck_assert_int_eq(found[i].state, expected(&w->points[points[i]], round.cut_ps));
        ck_assert(found[i].state != LH_POINT_CUT || found[i].time_ps == round.cut_ps);
        if (found[i].state == LH_POINT_RAN)
            w->times_ps[w->ran++] = found[i].time_ps;
    }
}

/* The outcomes of all points; the last rounds are left to speculative runs. */
static char *
play(uint64_t seed, guint threads)
{
    g_autofree World *w = g_new(World, 1);
    GString *text = g_string_new(NULL);

    make(w, seed);
    w->turns = lh_lookahead_pool_new(threads, take, w);
    while (w->close->len > 2 * ROUND)
        play_round(w);
    lh_lookahead_pool_free(w->turns);
    for (guint i = 0; i < POINTS; i++) {
        const LhPlanOutcome *o = &w->outcomes[i];

        g_string_append_printf(text, "%u %s %" G_GINT64_FORMAT " %s\n", i,
                               lh_point_state_names[o->state], o->time_ps,
                               o->reason == NULL ? "" : o->reason);
        g_free(o->reason);
    }
    g_array_unref(w->close);
    return g_string_free(text, FALSE);
}

START_TEST(threads_change_nothing)
{
    bool ran = false, cut = false, failed = false;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        g_autofree char *one = play(seed, 1);

        ran = ran || strstr(one, "simulated") != NULL;
        cut = cut || strstr(one, "cut") != NULL;
        failed = failed || strstr(one, "failed") != NULL;
        for (guint threads = 2; threads <= 8; threads += 3) {
            g_autofree char *some = play(seed, threads);

            ck_assert_msg(g_str_equal(one, some), "seed %u, %u threads:\n%s\none thread:\n%s",
                          (unsigned)seed, threads, some, one);
        }
    }
    ck_assert(ran && cut && failed);
}
END_TEST

LH_TEST_MAIN("turns", threads_change_nothing)
