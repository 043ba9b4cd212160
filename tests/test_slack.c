/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dependence graphs: of random events, in patterns that repeat and with exceptions, all come back
 * from their blocks; slack and replays equal those computed from a plain list.
 */
#include "base/rng.h"
#include "run_events.h"
#include "run_tests.h"
#include "share.h"

#include <string.h>

#define PART 0.9
#define REPLAYS 11u

/* A graph as a plain list, and where the next event may take hold. */
typedef struct {
    uint64_t seed;
    uint32_t ranks, drawn;
    GArray *events, *waits; /* of LhEvent, LhWait */
    GArray *refs;           /* of LhEventRef, by event */
    LhEventRef *gates;      /* by rank */
    uint32_t *ops;          /* by rank: of its last event */
    LhTime now;
} Plain;

static uint32_t
draw(Plain *plain, uint32_t below)
{
    return (uint32_t)(lh_rng_bits(plain->seed, plain->drawn++, 0) % below);
}

/* An event to wait for: mostly one of the latest. */
static LhEventRef
draw_before(Plain *plain)
{
    const uint32_t count = plain->refs->len;
    const uint32_t back =
        draw(plain, 50) == 0 ? draw(plain, count) : draw(plain, MIN(count, 3 * plain->ranks));

    return g_array_index(plain->refs, LhEventRef, count - 1 - back);
}

static void
add_wait(Plain *plain, LhEvent *event, LhSlackGraph *p, LhEventRef before, LhTime takes_ps,
         bool host)
{
    const LhWait wait = {
        .takes_ps = takes_ps, .rank = before.rank, .index = before.index, .host = host
    };

    (host ? lh_slack_wait_host : lh_slack_wait)(p, before, takes_ps);
    g_array_append_val(plain->waits, wait);
    event->waits_count++;
}

/* Duration of a wait: none, one of a few, or any. */
static LhTime
draw_takes(Plain *plain)
{
    const uint32_t which = draw(plain, 8);

    return which < 3 ? 0 : which < 7 ? 1000 * which : (LhTime)draw(plain, 1u << 30) << 8;
}

/* Adds an event. Those of a regular rank have a pattern that repeats. */
static void
add_event(Plain *plain, LhSlackGraph *p, bool regular)
{
    const uint32_t place = plain->events->len;
    const uint32_t rank = regular ? place % plain->ranks : draw(plain, plain->ranks);
    LhEvent event = { .rank = rank, .waits_first = plain->waits->len };
    LhEventRef waits_for[40], ref;
    LhTime takes_ps[40];
    uint32_t count = regular ? 2 : draw(plain, 40) == 0 ? 1 + draw(plain, 39) : 1 + draw(plain, 4);

    for (uint32_t i = 0; i < count; i++) {
        waits_for[i] = regular ? g_array_index(plain->refs, LhEventRef,
                                               place - MIN(place, i == 0 ? plain->ranks : 1))
                               : draw_before(plain);
        takes_ps[i] = regular ? 500 : draw_takes(plain);
        event.time_ps = MAX(event.time_ps, waits_for[i].time_ps + takes_ps[i]);
    }
    if (place == 0)
        count = 0;
    event.op = plain->ops[rank] += regular ? 1 : draw(plain, 5);
    event.kind = (uint8_t)(regular ? place % 3 : draw(plain, LH_PATH_STEP_KINDS));
    event.call = lh_slack_calls(p, (LhSlackCalls){ .kind = (uint8_t)draw(plain, 3) });
    ref = lh_slack_event(p, event.time_ps, rank, event.op, event.call, event.kind);
    event.index = ref.index;
    for (uint32_t i = 0; i < count; i++)
        add_wait(plain, &event, p, waits_for[i], takes_ps[i], false);
    if (place > 0 && plain->gates[rank].time_ps <= event.time_ps && draw(plain, 2) == 0)
        add_wait(plain, &event, p, plain->gates[rank],
                 regular ? event.time_ps - plain->gates[rank].time_ps : 0, true);
    if (draw(plain, 200) == 0)
        plain->gates[rank] = ref;
    if (draw(plain, 3) == 0)
        lh_slack_over(p, event.tiers = (uint8_t)draw(plain, 256));
    event.end = (uint8_t)draw(plain, 4);
    if (event.end == LH_EVENT_JOINS)
        lh_slack_joins(p);
    else if (event.end == LH_EVENT_START)
        lh_slack_starts(p);
    else if (event.end == LH_EVENT_DONE)
        lh_slack_ends(p, 0);
    g_array_append_val(plain->events, event);
    g_array_append_val(plain->refs, ref);
}

/* @data: the number of the replay. */
static double
share_of(void *data, const LhEvent *event)
{
    return event->op % 3 == *(uint32_t *)data ? PART : 1;
}

static LhTime
plain_replay(const RunEvents *run, LhTime *times, uint32_t number)
{
    LhTime last_ps = 0;

    for (guint i = 0; i < run->events->len; i++) {
        const LhEvent *event = &g_array_index(run->events, LhEvent, i);

        times[i] = 0;
        for (uint32_t w = event->waits_first; w < event->waits_first + event->waits_count; w++) {
            const LhWait *wait = &g_array_index(run->waits, LhWait, w);
            const double takes_ps = (double)wait->takes_ps * share_of(&number, event);

            times[i] =
                MAX(times[i], times[run_events_place(run, wait)] + lh_time_from_ps(takes_ps));
        }
        if (event->kind != LH_STEP_HOST)
            last_ps = MAX(last_ps, times[i]);
    }
    return last_ps;
}

/* Sets the slack of each event. */
static void
plain_slack(const RunEvents *run, LhTime *slack)
{
    LhTime makespan_ps = 0;

    for (guint i = 0; i < run->events->len; i++)
        if (g_array_index(run->events, LhEvent, i).kind != LH_STEP_HOST)
            makespan_ps = MAX(makespan_ps, g_array_index(run->events, LhEvent, i).time_ps);
    for (guint i = run->events->len; i-- > 0;)
        slack[i] = g_array_index(run->events, LhEvent, i).kind == LH_STEP_HOST
                       ? LH_TIME_LONGEST
                       : makespan_ps - g_array_index(run->events, LhEvent, i).time_ps;
    for (guint i = run->events->len; i-- > 0;)
        run_events_pass_slack(run, i, slack);
}

static void
check_same(const Plain *plain, const RunEvents *run)
{
    ck_assert_uint_eq(run->events->len, plain->events->len);
    ck_assert_uint_eq(run->waits->len, plain->waits->len);
    for (guint i = 0; i < plain->events->len; i++) {
        const LhEvent *a = &g_array_index(plain->events, LhEvent, i);
        const LhEvent *b = &g_array_index(run->events, LhEvent, i);

        ck_assert_msg(a->time_ps == b->time_ps && a->rank == b->rank && a->op == b->op &&
                          a->index == b->index && a->call == b->call && a->kind == b->kind &&
                          a->tiers == b->tiers && a->end == b->end &&
                          a->waits_first == b->waits_first && a->waits_count == b->waits_count,
                      "program %u, event %u", (unsigned)plain->seed, i);
    }
    for (guint i = 0; i < plain->waits->len; i++) {
        const LhWait *a = &g_array_index(plain->waits, LhWait, i);
        const LhWait *b = &g_array_index(run->waits, LhWait, i);

        ck_assert_msg(a->takes_ps == b->takes_ps && a->rank == b->rank && a->index == b->index &&
                          a->host == b->host,
                      "program %u, wait %u", (unsigned)plain->seed, i);
    }
}

/* @regular_of: of so many events in a row, half are regular. */
static void
check_graph(uint64_t seed, uint32_t ranks, uint32_t events, uint32_t regular_of)
{
    g_autoptr(LhSlackGraph) p = lh_slack_new(ranks, NULL);
    Plain plain = { .seed = seed,
                    .ranks = ranks,
                    .events = g_array_new(FALSE, FALSE, sizeof(LhEvent)),
                    .waits = g_array_new(FALSE, FALSE, sizeof(LhWait)),
                    .refs = g_array_new(FALSE, FALSE, sizeof(LhEventRef)),
                    .gates = g_new0(LhEventRef, ranks),
                    .ops = g_new0(uint32_t, ranks) };
    g_autofree LhTime *numbers = g_new(LhTime, events);
    uint32_t replays[REPLAYS];
    void *data[REPLAYS];
    LhTime makespans[REPLAYS];
    RunEvents run;

    for (uint32_t i = 0; i < REPLAYS; i++) {
        replays[i] = i;
        data[i] = &replays[i];
    }
    g_array_append_val(plain.refs, plain.gates[0]); /* for the first one to read */
    g_array_set_size(plain.refs, 0);
    for (uint32_t i = 0; i < events; i++)
        add_event(&plain, p, i == 0 || i / regular_of % 2 == 0);
    lh_slack_close(p);
    run = run_events_of(p);
    check_same(&plain, &run);
    plain_slack(&run, numbers);
    ck_assert_mem_eq(run.slack->data, numbers, events * sizeof(LhTime));
    lh_slack_replay(p, share_of, data, REPLAYS, makespans);
    for (uint32_t i = 0; i < REPLAYS; i++)
        ck_assert_int_eq(makespans[i], plain_replay(&run, numbers, i));
    run_events_clear(&run);
    g_array_unref(plain.events);
    g_array_unref(plain.waits);
    g_array_unref(plain.refs);
    g_free(plain.gates);
    g_free(plain.ops);
}

START_TEST(slack_of_small_graphs)
{
    const uint64_t graphs = test_share(400);

    for (uint64_t seed = 1; seed <= graphs; seed++)
        check_graph(seed, 1 + (uint32_t)(seed % 37), 1 + (uint32_t)(lh_rng_bits(seed, 0, 1) % 3000),
                    (uint32_t)(1 + seed * seed % 700));
}
END_TEST

/* Several blocks, and more shapes than are kept. */
START_TEST(slack_of_large_graphs)
{
    check_graph(1, 64, 300000, 100000);
    check_graph(2, 3, 200000, 1000);
}
END_TEST

LH_TEST_MAIN("slack", slack_of_small_graphs, slack_of_large_graphs)
