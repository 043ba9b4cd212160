/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the op's start until its rank R is idle, at most one kernel runs on R at a time, R starts
 * nothing but kernels and collectives that move data when their last member has joined, and no host
 * goes on. How fast R's kernels get on depends on where they are and on the time: on the
 * communication that R has joined and that has not ended. So if the op is faster, R stays ahead,
 * and is idle no later.
 *
 * Nothing else changes. Of each collective that R joins earlier another member is the last, at the
 * same time; if R was the last to join in that instant, nothing happened between that member and R.
 * What R starts after it was idle waits for something else.
 */
#include "critical_path/absorbed.h"

#include "program/op.h"

#define JOINS_KEPT 4u /* latest ones of a rank */
#define JOINS_MAX 32u /* of a rank that is ahead */
#define IDLE_PS 10000 /* more than the rounded picoseconds by which R may be late */

/* A rank joins a collective. */
typedef struct {
    LhTime time_ps;
    uint64_t place;  /* of its event */
    uint64_t streak; /* of the first of the events of this rank alone up to it */
    uint32_t index;  /* of its event on the rank */
} Join;

typedef enum { BEFORE, AHEAD, MET, SHARED } State;

typedef struct {
    State state;
    uint64_t joins[JOINS_MAX]; /* AHEAD: places of the joins since the op's start */
    uint32_t joins_count;
} Watch;

/* A member of the collective that has begun in the latest events. */
typedef struct {
    uint32_t rank;
    Join join;
} Member;

typedef struct {
    const LhSlackGraph *graph;
    GArray *ops; /* of LhAbsorbed */
    Watch *watches;
    bool *watched;     /* by rank: it has such ops */
    uint32_t *kernels; /* by rank: running */
    LhTime *idle_ps;   /* by rank: end of its last kernel */
    Join *joins;       /* by rank: JOINS_KEPT */
    GArray *members;   /* of Member */
    uint64_t place;    /* number of the event */
    uint64_t streak;   /* of the first event of the latest ones, all of one rank */
    uint32_t last_rank, last_index;
} Search;

static const Join *
find_join(const Search *s, const LhWait *wait)
{
    for (uint32_t i = 0; i < JOINS_KEPT; i++) {
        const Join *join = &s->joins[wait->rank * JOINS_KEPT + i];

        if (join->place > 0 && join->index == wait->index)
            return join;
    }
    return NULL;
}

/* Whether the event waited for is later than all starts of collectives of its rank. */
static bool
is_arrival(const Search *s, const LhWait *wait)
{
    const Join *latest = &s->joins[wait->rank * JOINS_KEPT];

    return latest->place == 0 || wait->index > latest->index;
}

static void
keep_join(Search *s, const LhEvent *event)
{
    Join *joins = &s->joins[event->rank * JOINS_KEPT];

    for (uint32_t i = JOINS_KEPT - 1; i > 0; i--)
        joins[i] = joins[i - 1];
    joins[0] = (Join){ event->time_ps, s->place, s->streak, event->index };
}

/* ---- the collective ---- */

/* Whether the collective would begin as it does if @early had joined earlier. */
static bool
begins_alike(const GArray *members, const Member *early)
{
    const Join *last = NULL;

    for (guint i = 0; i < members->len; i++) {
        const Member *member = &g_array_index(members, Member, i);

        if (member != early && (last == NULL || member->join.place > last->place))
            last = &member->join;
    }
    return last != NULL && last->time_ps >= early->join.time_ps &&
           (last->place > early->join.place || last->place + 1 >= early->join.streak);
}

static bool
has_joined(const Watch *watch, uint64_t place)
{
    for (uint32_t i = 0; i < watch->joins_count; i++)
        if (watch->joins[i] == place)
            return true;
    return false;
}

/* All members have joined. */
static void
end_members(Search *s)
{
    for (guint i = 0; i < s->members->len; i++) {
        const Member *member = &g_array_index(s->members, Member, i);

        for (guint k = 0; s->watched[member->rank] && k < s->ops->len; k++) {
            Watch *watch = &s->watches[k];

            if (watch->state == AHEAD && has_joined(watch, member->join.place) &&
                !begins_alike(s->members, member))
                watch->state = SHARED;
        }
    }
    g_array_set_size(s->members, 0);
}

/* The members of a collective that begins gather one after another, each after the one before. */
static void
gather(Search *s, const LhEvent *event, const LhWait *waits)
{
    const bool follows = s->members->len > 0 && event->waits_count == 2 &&
                         waits[1].rank == s->last_rank && waits[1].index == s->last_index &&
                         !is_arrival(s, &waits[0]);
    const bool gathers = event->end == LH_EVENT_BETWEEN && event->kind == LH_STEP_LATENCY &&
                         (follows || event->waits_count == 1) && waits[0].rank == event->rank;
    const Join *join = gathers ? find_join(s, &waits[0]) : NULL;
    Member member;

    if (!follows)
        end_members(s);
    if (join == NULL)
        return;
    member = (Member){ event->rank, *join };
    g_array_append_val(s->members, member);
}

/* ---- the rank ---- */

static bool
computes(const Search *s, const LhEvent *event)
{
    return g_array_index(s->graph->calls, LhSlackCalls, event->call).kind == LH_OP_COMPUTE;
}

static bool
starts(const LhEvent *event)
{
    return event->end == LH_EVENT_START || event->end == LH_EVENT_JOINS;
}

/* An event of the rank while it is ahead. */
static State
while_ahead(const Search *s, Watch *watch, const LhEvent *event)
{
    const bool runs = s->kernels[event->rank] > 0;

    if (!starts(event)) /* a host that goes on */
        return event->kind == LH_STEP_HOST ? SHARED : AHEAD;
    if (!runs && event->time_ps - s->idle_ps[event->rank] >= IDLE_PS)
        return MET;
    if (event->end == LH_EVENT_START)
        return computes(s, event) && !runs ? AHEAD : SHARED;
    if (watch->joins_count == JOINS_MAX)
        return SHARED;
    watch->joins[watch->joins_count++] = s->place;
    return AHEAD;
}

static void
follow_op(const Search *s, const LhAbsorbed *op, Watch *watch, const LhEvent *event)
{
    if (watch->state == AHEAD)
        watch->state = while_ahead(s, watch, event);
    else if (watch->state == BEFORE && event->op == op->op && starts(event))
        watch->state = computes(s, event) && s->kernels[event->rank] == 0 ? AHEAD : SHARED;
}

static void
visit(void *data, const LhEvent *event, const LhWait *waits)
{
    Search *s = data;

    s->place++;
    if (event->rank != s->last_rank)
        s->streak = s->place;
    gather(s, event, waits);
    for (guint k = 0; s->watched[event->rank] && k < s->ops->len; k++) {
        const LhAbsorbed *op = &g_array_index(s->ops, LhAbsorbed, k);

        if (op->rank == event->rank)
            follow_op(s, op, &s->watches[k], event);
    }
    if (event->end == LH_EVENT_JOINS)
        keep_join(s, event);
    if (starts(event) && computes(s, event))
        s->kernels[event->rank]++;
    if (event->end == LH_EVENT_DONE && computes(s, event)) {
        s->kernels[event->rank]--;
        s->idle_ps[event->rank] = event->time_ps;
    }
    s->last_rank = event->rank;
    s->last_index = event->index;
}

void
lh_absorbed_find(const LhSlackGraph *graph, GArray *ops)
{
    Search s = { .graph = graph,
                 .ops = ops,
                 .watches = g_new0(Watch, MAX(ops->len, 1)),
                 .watched = g_new0(bool, graph->ranks_count),
                 .kernels = g_new0(uint32_t, graph->ranks_count),
                 .idle_ps = g_new0(LhTime, graph->ranks_count),
                 .joins = g_new0(Join, (gsize)graph->ranks_count * JOINS_KEPT),
                 .members = g_array_new(FALSE, FALSE, sizeof(Member)) };

    for (guint k = 0; k < ops->len; k++)
        s.watched[g_array_index(ops, LhAbsorbed, k).rank] = true;
    lh_slack_each(graph, visit, &s);
    end_members(&s);
    for (guint k = 0; k < ops->len; k++)
        g_array_index(ops, LhAbsorbed, k).absorbed = s.watches[k].state == MET;
    g_free(s.watches);
    g_free(s.watched);
    g_free(s.kernels);
    g_free(s.idle_ps);
    g_free(s.joins);
    g_array_unref(s.members);
}
