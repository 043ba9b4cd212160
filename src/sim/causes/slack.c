/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/causes/slack.h"

#include <math.h>
#include <string.h>

LhSlackGraph *
lh_slack_new(uint32_t ranks, const LhSymmetryGroups *fold)
{
    LhSlackGraph *p = g_new0(LhSlackGraph, 1);

    p->blocks = lh_event_blocks_new(ranks);
    p->calls = g_array_new(FALSE, FALSE, sizeof(LhSlackCalls));
    p->known = g_hash_table_new(NULL, NULL);
    p->waits = g_array_new(FALSE, FALSE, sizeof(LhWait));
    p->ranks_count = ranks;
    p->fold = fold != NULL ? *fold : lh_symmetry_none(ranks);
    return p;
}

void
lh_slack_free(LhSlackGraph *p)
{
    if (p == NULL)
        return;
    lh_event_blocks_free(p->blocks);
    g_array_unref(p->calls);
    g_hash_table_unref(p->known);
    g_array_unref(p->waits);
    g_free(p);
}

uint16_t
lh_slack_calls(LhSlackGraph *p, LhSlackCalls like)
{
    const guint key = 1 + ((guint)like.kind << 24 | (guint)like.phase << 16 |
                           (guint)like.kernel << 8 | like.tier);
    guint index = GPOINTER_TO_UINT(g_hash_table_lookup(p->known, GUINT_TO_POINTER(key)));
    LhSlackCalls *calls;

    if (index == 0) {
        g_assert(p->calls->len < UINT16_MAX);
        g_array_append_val(p->calls, like);
        index = p->calls->len;
        g_hash_table_insert(p->known, GUINT_TO_POINTER(key), GUINT_TO_POINTER(index));
    }
    calls = &g_array_index(p->calls, LhSlackCalls, index - 1);
    if (like.rank < calls->rank || (like.rank == calls->rank && like.op < calls->op)) {
        calls->rank = like.rank;
        calls->op = like.op;
    }
    return (uint16_t)(index - 1);
}

/* A host that continues after the last op does not extend the run. */
static inline bool
ends_run(const LhEvent *event)
{
    return event->kind != LH_STEP_HOST;
}

void
lh_slack_close(LhSlackGraph *p)
{
    if (!p->begun)
        return;
    p->event.waits_count = p->waits->len;
    lh_event_blocks_add(p->blocks, &p->event, (const LhWait *)(const void *)p->waits->data);
    if (ends_run(&p->event))
        p->makespan_ps = MAX(p->makespan_ps, p->event.time_ps);
    g_array_set_size(p->waits, 0);
    p->begun = false;
}

LhEventRef
lh_slack_event(LhSlackGraph *p, LhTime time_ps, uint32_t rank, uint32_t op, uint16_t call,
               LhPathStepKind kind)
{
    lh_slack_close(p);
    p->begun = true;
    p->event = (LhEvent){
        .time_ps = time_ps, .rank = rank, .op = op, .call = call, .kind = (uint8_t)kind
    };
    return (LhEventRef){ time_ps, rank, lh_event_blocks_of_rank(p->blocks, rank) };
}

static void
add_wait(LhSlackGraph *p, LhEventRef event, LhTime takes_ps, bool host)
{
    const LhWait wait = {
        .takes_ps = takes_ps, .rank = event.rank, .index = event.index, .host = host
    };

    if (event.index != LH_NO_INDEX)
        g_array_append_val(p->waits, wait);
}

void
lh_slack_wait(LhSlackGraph *p, LhEventRef event, LhTime takes_ps)
{
    add_wait(p, event, takes_ps, false);
}

void
lh_slack_wait_host(LhSlackGraph *p, LhEventRef event, LhTime takes_ps)
{
    add_wait(p, event, takes_ps, true);
}

void
lh_slack_over(LhSlackGraph *p, uint8_t tiers)
{
    p->event.tiers = tiers;
}

void
lh_slack_starts(LhSlackGraph *p)
{
    p->event.end = LH_EVENT_START;
}

void
lh_slack_joins(LhSlackGraph *p)
{
    p->event.end = LH_EVENT_JOINS;
}

void
lh_slack_ends(LhSlackGraph *p, LhTime start_ps)
{
    LhSlackCalls *calls = &g_array_index(p->calls, LhSlackCalls, p->event.call);
    const uint32_t weight = lh_slack_weight(p, p->event.rank);

    p->event.end = LH_EVENT_DONE;
    calls->calls += weight;
    calls->time_ps += (LhWide)weight * (p->event.time_ps - start_ps);
}

/* ---- reading ---- */

static const LhWait *
waits_of(const LhEventBlock *block, const LhEvent *event)
{
    return (const LhWait *)(const void *)block->waits->data + event->waits_first;
}

void
lh_slack_each(const LhSlackGraph *p, LhEventVisit visit, void *data)
{
    LhEventBlock block = { NULL, NULL };

    for (uint32_t k = 0; k < lh_event_blocks_count(p->blocks); k++) {
        lh_event_blocks_read(p->blocks, k, &block);
        for (guint i = 0; i < block.events->len; i++) {
            const LhEvent *event = &g_array_index(block.events, LhEvent, i);

            visit(data, event, waits_of(&block, event));
        }
    }
    lh_event_block_clear(&block);
}

static void
each_backward(const LhSlackGraph *p, LhEventVisit visit, void *data)
{
    LhEventBlock block = { NULL, NULL };

    for (uint32_t k = lh_event_blocks_count(p->blocks); k-- > 0;) {
        lh_event_blocks_read(p->blocks, k, &block);
        for (guint i = block.events->len; i-- > 0;) {
            const LhEvent *event = &g_array_index(block.events, LhEvent, i);

            visit(data, event, waits_of(&block, event));
        }
    }
    lh_event_block_clear(&block);
}

/* ---- times of some events, by rank ---- */

#define PAGE 256u

typedef struct {
    LhTime ***pages;  /* by rank, then by index / PAGE; NULL: none of its times is needed */
    uint32_t *counts; /* of pages */
    uint32_t ranks_count;
    uint32_t each; /* times of an event */
} Times;

static void
times_init(Times *times, const LhSlackGraph *p, uint32_t each)
{
    times->each = each;
    times->ranks_count = p->ranks_count;
    times->pages = g_new(LhTime **, p->ranks_count);
    times->counts = g_new(uint32_t, p->ranks_count);
    for (uint32_t r = 0; r < p->ranks_count; r++) {
        times->counts[r] = lh_event_blocks_of_rank(p->blocks, r) / PAGE + 1;
        times->pages[r] = g_new0(LhTime *, times->counts[r]);
    }
}

static void
times_clear(Times *times)
{
    for (uint32_t r = 0; r < times->ranks_count; r++) {
        for (uint32_t i = 0; i < times->counts[r]; i++)
            g_free(times->pages[r][i]);
        g_free(times->pages[r]);
    }
    g_free(times->pages);
    g_free(times->counts);
}

/* The first of the event's times, to set or read; those of a new page are LH_TIME_NEVER. */
static inline LhTime *
time_at(Times *times, uint32_t rank, uint32_t index)
{
    LhTime **page = &times->pages[rank][index / PAGE];

    if (*page == NULL) {
        *page = g_new(LhTime, PAGE * times->each);
        for (uint32_t i = 0; i < PAGE * times->each; i++)
            (*page)[i] = LH_TIME_NEVER;
    }
    return &(*page)[index % PAGE * times->each];
}

/* ---- slack ---- */

typedef struct {
    const LhSlackGraph *graph;
    void (*visit)(void *data, const LhEvent *event, LhTime slack_ps);
    void *data;
    Times latest; /* at which an event may happen, by the events after it that wait for it */
} SlackSearch;

static void
find_slack(void *data, const LhEvent *event, const LhWait *waits)
{
    SlackSearch *s = data;
    LhTime **page = &s->latest.pages[event->rank][event->index / PAGE];
    LhTime slack_ps = ends_run(event) ? s->graph->makespan_ps - event->time_ps : LH_TIME_LONGEST;

    if (*page != NULL && (*page)[event->index % PAGE] != LH_TIME_NEVER)
        slack_ps = MIN(slack_ps, (*page)[event->index % PAGE] - event->time_ps);
    if (event->index % PAGE == 0)
        g_clear_pointer(page, g_free);
    s->visit(s->data, event, slack_ps);
    if (slack_ps == LH_TIME_LONGEST)
        return;
    for (uint32_t w = 0; w < event->waits_count; w++) {
        LhTime *latest_ps = time_at(&s->latest, waits[w].rank, waits[w].index);

        *latest_ps = MIN(*latest_ps, event->time_ps + slack_ps - waits[w].takes_ps);
    }
}

void
lh_slack_of(const LhSlackGraph *p, void (*visit)(void *data, const LhEvent *event, LhTime slack_ps),
            void *data)
{
    SlackSearch s = { .graph = p, .visit = visit, .data = data };

    times_init(&s.latest, p, 1);
    each_backward(p, find_slack, &s);
    times_clear(&s.latest);
}

/* ---- replays ---- */

#define LANES 8u /* replays at once */

/* What a rank's host last waited for. */
typedef struct {
    uint32_t rank, index;
    LhTime times_ps[LANES];
} Gate;

typedef struct {
    double (*share)(void *, const LhEvent *);
    void *const *data; /* of each replay */
    uint32_t count;
    uint32_t reach;
    Times times;
    Gate *gates; /* by rank */
    LhTime *last_ps;
} Replay;

/* The new times of an event waited for. Those that hosts wait for may be far back. */
static const LhTime *
times_of_wait(Replay *replay, const LhEvent *event, const LhWait *wait)
{
    Gate *gate = &replay->gates[event->rank];

    if (!wait->host)
        return time_at(&replay->times, wait->rank, wait->index);
    if (gate->rank != wait->rank || gate->index != wait->index) {
        gate->rank = wait->rank;
        gate->index = wait->index;
        memcpy(gate->times_ps, time_at(&replay->times, wait->rank, wait->index),
               sizeof(gate->times_ps));
    }
    return gate->times_ps;
}

/* Frees the times of @rank that no later event waits for. */
static void
forget(Replay *replay, uint32_t rank, uint32_t count)
{
    if (count % PAGE == 0 && count >= PAGE + replay->reach)
        g_clear_pointer(&replay->times.pages[rank][(count - replay->reach) / PAGE - 1], g_free);
}

static void
replay_event(void *data, const LhEvent *event, const LhWait *waits)
{
    Replay *replay = data;
    LhTime times_ps[LANES] = { 0 };
    double parts[LANES];
    bool shared = false;

    for (uint32_t w = 0; w < event->waits_count; w++) {
        const LhTime *from_ps = times_of_wait(replay, event, &waits[w]);
        const LhTime takes_ps = waits[w].takes_ps;

        for (uint32_t i = 0; takes_ps != 0 && !shared && i < replay->count; i++)
            parts[i] = replay->share != NULL ? replay->share(replay->data[i], event) : 1;
        shared |= takes_ps != 0;
        for (uint32_t i = 0; i < replay->count; i++) {
            const LhTime part_ps = takes_ps == 0 || parts[i] == 1
                                       ? takes_ps
                                       : lh_time_from_ps((double)takes_ps * parts[i]);

            times_ps[i] = MAX(times_ps[i], from_ps[i] + part_ps);
        }
    }
    forget(replay, event->rank, event->index);
    memcpy(time_at(&replay->times, event->rank, event->index), times_ps, sizeof(times_ps));
    for (uint32_t i = 0; ends_run(event) && i < replay->count; i++)
        replay->last_ps[i] = MAX(replay->last_ps[i], times_ps[i]);
}

/* At most LANES replays. */
static void
replay_some(const LhSlackGraph *p, Replay *replay)
{
    replay->reach = lh_event_blocks_reach(p->blocks);
    replay->gates = g_new0(Gate, p->ranks_count); /* the start of the run, at 0 */
    times_init(&replay->times, p, LANES);
    for (uint32_t i = 0; i < replay->count; i++)
        replay->last_ps[i] = 0;
    lh_slack_each(p, replay_event, replay);
    times_clear(&replay->times);
    g_free(replay->gates);
}

void
lh_slack_replay(const LhSlackGraph *p, double (*share)(void *, const LhEvent *), void *const *data,
                uint32_t count, LhTime *makespans_ps)
{
    for (uint32_t i = 0; i < count; i += LANES) {
        Replay replay = { .share = share,
                          .data = data + i,
                          .count = MIN(count - i, LANES),
                          .last_ps = makespans_ps + i };

        replay_some(p, &replay);
    }
}

/* ---- chains ---- */

typedef struct {
    Times times; /* of all events */
    uint32_t rank, index;
    GArray *path; /* backward */
} Chain;

static void
keep_time(void *data, const LhEvent *event, const LhWait *waits)
{
    Chain *chain = data;

    (void)waits;
    *time_at(&chain->times, event->rank, event->index) = event->time_ps;
}

/* The wait of the event that ended last; the first of these on a tie. */
static const LhWait *
last_wait(Chain *chain, const LhEvent *event, const LhWait *waits)
{
    const LhWait *last = NULL;
    LhTime last_ps = 0;

    for (uint32_t w = 0; w < event->waits_count; w++) {
        const LhTime at_ps =
            *time_at(&chain->times, waits[w].rank, waits[w].index) + waits[w].takes_ps;

        if (last != NULL && at_ps <= last_ps)
            continue;
        last = &waits[w];
        last_ps = at_ps;
    }
    return last;
}

static void
follow_chain(void *data, const LhEvent *to, const LhWait *waits)
{
    Chain *chain = data;
    const LhWait *last;
    LhPathStep step;

    if (to->rank != chain->rank || to->index != chain->index)
        return;
    last = last_wait(chain, to, waits);
    if (last == NULL)
        return;
    step = (LhPathStep){ .from_ps = *time_at(&chain->times, last->rank, last->index),
                         .to_ps = to->time_ps,
                         .rank = to->rank,
                         .op = to->op,
                         .peer = to->kind == LH_STEP_HOST ? to->rank : last->rank,
                         .kind = to->kind,
                         .tiers = to->tiers };
    if (step.to_ps > step.from_ps)
        g_array_append_val(chain->path, step);
    chain->rank = last->rank;
    chain->index = last->index;
}

static void
reverse(GArray *path)
{
    for (guint i = 0; i < path->len / 2; i++) {
        LhPathStep *a = &g_array_index(path, LhPathStep, i);
        LhPathStep *b = &g_array_index(path, LhPathStep, path->len - 1 - i);
        const LhPathStep step = *a;

        *a = *b;
        *b = step;
    }
}

GArray *
lh_slack_chain(const LhSlackGraph *p, LhEventRef event)
{
    Chain chain = { .rank = event.rank,
                    .index = event.index,
                    .path = g_array_new(FALSE, FALSE, sizeof(LhPathStep)) };

    times_init(&chain.times, p, 1);
    lh_slack_each(p, keep_time, &chain);
    each_backward(p, follow_chain, &chain);
    times_clear(&chain.times);
    reverse(chain.path);
    return chain.path;
}
