/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executed run is a graph of events like a simulated one (sim/causes/slack.h): the issue, start
 * and end of each op. An event happens after the last of the events that it waits for, plus a
 * measured delay. Not modelled: what happens between start and end of a message, since the links
 * that its bytes shared are not recorded.
 */
#include "critical_path/executed_path.h"

#include "program/cursor.h"
#include "program/pairing.h"

enum { ISSUED, BEGAN, ENDED, MOMENTS };

/* An op on a stream, and the records that it waits for on its rank. */
typedef struct {
    guint after[LH_OP_AFTER_MAX + 1]; /* the previous op of its stream, and those named by the op */
    guint after_count;
    guint before_host; /* the op issued before it by the host; NONE: it is the first */
    guint held_first,
        held_end;  /* must be complete before it is issued: because of a sync, or of the window */
    uint8_t tier;  /* of its slowest message or hop; LH_TIERS: none */
    uint16_t call; /* of the graph */
} Op;

#define NONE G_MAXUINT

/* Time of an event. */
typedef struct {
    LhTime at_ps;
    guint record;
    uint8_t what; /* ISSUED, BEGAN, ENDED */
} Moment;

typedef struct {
    const LhSetup *setup;
    const LhProgram *program;
    const GArray *records;
    LhTime makespan_ps;
    Op *ops;             /* by record */
    LhPairing *meetings; /* of the records */
    LhSlackGraph *precedence;
    LhEventRef *events; /* [record][MOMENTS] */
    LhEventRef begin;   /* start of the run */
    LhEventRef last;    /* latest end */
    uint32_t last_op;   /* its op */
} Graph;

static const LhTimelineRecord *
graph_record(const Graph *g, guint index)
{
    return &g_array_index(g->records, LhTimelineRecord, index);
}

/* ---- dependencies ---- */

static uint8_t
tier_of_exchange(const Graph *g, uint32_t rank, const LhOp *op, const LhOpBuffer *buffer)
{
    uint8_t tier = LH_TIERS;

    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        LhRoute route;

        lh_network_route(&g->setup->network, rank, buffer->parts[op->exchange.parts_first + i].peer,
                         &route);
        tier = tier == LH_TIERS ? route.tier : MAX(tier, route.tier);
    }
    return tier;
}

static uint8_t
tier_of_collective(const Graph *g, uint32_t rank, const LhOp *op)
{
    const LhGroup *group = &op->collective.group;
    const uint64_t size = lh_group_size(group);
    uint8_t tier = LH_TIERS;

    for (uint64_t i = 0; i < size; i++) {
        const uint32_t other = (uint32_t)lh_group_member(group, i);
        LhRoute route;

        if (other == rank)
            continue;
        lh_network_route(&g->setup->network, rank, other, &route);
        tier = tier == LH_TIERS ? route.tier : MAX(tier, route.tier);
    }
    return tier;
}

/* State of reading a rank's program. */
typedef struct {
    uint32_t rank;
    guint first, next; /* its records: the first, and that of the next op */
    guint held,
        synced; /* all records before these are complete: before the last op; before the next one */
    guint last[LH_STREAMS_MAX]; /* last record of each stream, or NONE */
    GArray *by_id;              /* of guint: record by op id, or NONE */
} RankReader;

static void
wait_for(Op *op, guint record)
{
    if (record != NONE)
        op->after[op->after_count++] = record;
}

/* The number of the calls that the op is one of. */
static uint16_t
call_of(const Graph *g, uint32_t rank, const LhOp *op, uint8_t tier)
{
    LhSlackCalls calls = {
        .kind = op->kind, .phase = op->phase, .tier = LH_TIERS, .rank = rank, .op = op->id
    };

    if (op->kind == LH_OP_COMPUTE)
        calls.kernel = (uint8_t)op->compute.kernel;
    else if (op->kind == LH_OP_COLLECTIVE)
        calls.kernel = (uint8_t)op->collective.kind;
    else
        calls.tier = tier;
    return lh_slack_calls(g->precedence, calls);
}

static void
read_op(const Graph *g, RankReader *r, const LhOp *from, const LhOpBuffer *buffer)
{
    Op *op = &g->ops[r->next];

    g_assert(graph_record(g, r->next)->rank == r->rank && graph_record(g, r->next)->op == from->id);
    *op = (Op){ .before_host = r->next > r->first ? r->next - 1 : NONE, .tier = LH_TIERS };
    wait_for(op, r->last[from->stream]);
    for (uint32_t i = 0; i < from->after_count; i++)
        wait_for(op, g_array_index(r->by_id, guint, from->after[i]));
    op->held_first = op->held_end = r->held;
    while (op->held_end < r->next &&
           (guint64)graph_record(g, op->held_end)->op + LH_HOST_WINDOW < from->id)
        op->held_end++;
    op->held_end = MAX(op->held_end, r->synced);
    r->held = op->held_end;
    if (from->kind == LH_OP_EXCHANGE)
        op->tier = tier_of_exchange(g, r->rank, from, buffer);
    else if (from->kind == LH_OP_COLLECTIVE)
        op->tier = tier_of_collective(g, r->rank, from);
    op->call = call_of(g, r->rank, from, op->tier);
    r->last[from->stream] = r->next++;
}

/* Returns the first record of the next rank. */
static guint
read_rank(const Graph *g, uint32_t rank, guint first, LhOpBuffer *buffer)
{
    g_autoptr(GArray) by_id = g_array_new(FALSE, FALSE, sizeof(guint));
    RankReader r = {
        .rank = rank, .first = first, .next = first, .held = first, .synced = first, .by_id = by_id
    };
    LhCursor cursor;

    for (int s = 0; s < LH_STREAMS_MAX; s++)
        r.last[s] = NONE;
    lh_cursor_init(&cursor, g->program, rank);
    while (lh_cursor_step(&cursor, buffer)) {
        for (uint32_t i = 0; i < buffer->ops_count; i++) {
            const LhOp *op = &buffer->ops[i];
            const guint record = lh_op_on_stream(op) ? r.next : NONE;

            g_array_append_val(by_id, record);
            if (record != NONE)
                read_op(g, &r, op, buffer);
            else if (op->kind == LH_OP_SYNC)
                r.synced = r.next;
        }
    }
    return r.next;
}

static void
read_program(Graph *g)
{
    LhOpBuffer buffer = { 0 };
    guint record = 0;

    g->ops = g_new(Op, g->records->len);
    for (uint32_t rank = 0; rank < lh_program_ranks(g->program); rank++)
        record = read_rank(g, rank, record, &buffer);
    g_assert(record == g->records->len);
    lh_op_buffer_clear(&buffer);
}

/* ---- event times ---- */

/* Clamps times to the run and orders the events of an op: clocks may differ slightly, and device
 * times may precede the host's. */
static LhTime
time_of(const Graph *g, guint record, uint8_t what)
{
    const LhTimelineRecord *r = graph_record(g, record);
    const LhTime began_ps = CLAMP(r->start_ps, 0, g->makespan_ps);

    if (what == ISSUED)
        return CLAMP(r->issued_ps, 0, began_ps);
    return what == BEGAN ? began_ps : CLAMP(r->end_ps, began_ps, g->makespan_ps);
}

/* Sorts by time. At equal times the earlier op of a rank comes first, since the later one may wait
 * for it; dependencies on other ranks have earlier times. */
static int
moments_by_time(const void *a, const void *b)
{
    const Moment *x = a, *y = b;

    if (x->at_ps != y->at_ps)
        return x->at_ps < y->at_ps ? -1 : 1;
    if (x->record != y->record)
        return x->record < y->record ? -1 : 1;
    return (int)x->what - (int)y->what;
}

static GArray *
all_moments(const Graph *g)
{
    GArray *moments = g_array_sized_new(FALSE, FALSE, sizeof(Moment), g->records->len * MOMENTS);

    for (guint i = 0; i < g->records->len; i++) {
        for (int what = ISSUED; what < MOMENTS; what++) {
            const Moment moment = { time_of(g, i, (uint8_t)what), i, (uint8_t)what };

            g_array_append_val(moments, moment);
        }
    }
    g_array_sort(moments, moments_by_time);
    return moments;
}

/* ---- events ---- */

/* Returns the event; LH_NO_EVENT if by the clocks it has not happened yet. */
static LhEventRef
event_of(const Graph *g, guint record, uint8_t what)
{
    return record == NONE ? LH_NO_EVENT : g->events[record * (gsize)MOMENTS + what];
}

/* Collects the events that an event waits for; the delay is known only afterwards. */
static void
collect_wait(GArray *waits, LhEventRef event, LhTime *latest_ps)
{
    if (event.index == LH_NO_INDEX)
        return;
    g_array_append_val(waits, event);
    *latest_ps = MAX(*latest_ps, event.time_ps);
}

static void
issue_waits(const Graph *g, const Moment *m, GArray *waits, LhTime *latest_ps)
{
    const Op *op = &g->ops[m->record];

    collect_wait(waits, event_of(g, op->before_host, ISSUED), latest_ps);
    for (guint i = op->held_first; i < op->held_end; i++)
        collect_wait(waits, event_of(g, i, ENDED), latest_ps);
    if (waits->len == 0)
        collect_wait(waits, g->begin, latest_ps);
}

static void
begin_waits(const Graph *g, const Moment *m, GArray *waits, LhTime *latest_ps)
{
    const Op *op = &g->ops[m->record];

    for (guint i = 0; i < op->after_count; i++)
        collect_wait(waits, event_of(g, op->after[i], ENDED), latest_ps);
    collect_wait(waits, event_of(g, m->record, ISSUED), latest_ps);
}

/* Waits for the start of the matching ops. Matching ops that seem to start after this one ended are
 * ignored: their clock differs, or the message was sent before they requested it. */
static void
end_waits(const Graph *g, const Moment *m, GArray *waits, LhTime *latest_ps)
{
    guint count;
    const guint *others = lh_pairing_with(g->meetings, m->record, &count);

    collect_wait(waits, event_of(g, m->record, BEGAN), latest_ps);
    for (guint i = 0; i < count; i++)
        if (time_of(g, others[i], BEGAN) < m->at_ps)
            collect_wait(waits, event_of(g, others[i], BEGAN), latest_ps);
}

static LhPathStepKind
step_kind(const Graph *g, const Moment *m)
{
    if (m->what != ENDED)
        return LH_STEP_HOST;
    if (graph_record(g, m->record)->kind == LH_OP_COMPUTE)
        return LH_STEP_COMPUTE;
    return g->ops[m->record].tier < LH_TIERS ? LH_STEP_LINKS : LH_STEP_LATENCY;
}

static void
add_event(Graph *g, const Moment *m, GArray *waits)
{
    static void (*const collect[MOMENTS])(const Graph *, const Moment *, GArray *,
                                          LhTime *) = { issue_waits, begin_waits, end_waits };
    const LhTimelineRecord *r = graph_record(g, m->record);
    const Op *op = &g->ops[m->record];
    const LhPathStepKind kind = step_kind(g, m);
    LhTime latest_ps = 0;
    LhEventRef event;

    g_array_set_size(waits, 0);
    collect[m->what](g, m, waits, &latest_ps);
    event = lh_slack_event(g->precedence, m->at_ps, r->rank, r->op, op->call, kind);
    if (kind == LH_STEP_LINKS)
        lh_slack_over(g->precedence, (uint8_t)(1u << op->tier));
    for (guint i = 0; i < waits->len; i++)
        lh_slack_wait(g->precedence, g_array_index(waits, LhEventRef, i), m->at_ps - latest_ps);
    g->events[m->record * (gsize)MOMENTS + m->what] = event;
    if (m->what == BEGAN)
        lh_slack_starts(g->precedence);
    if (m->what != ENDED)
        return;
    lh_slack_ends(g->precedence, time_of(g, m->record, BEGAN));
    if (g->last.index == LH_NO_INDEX || m->at_ps > g->last.time_ps) {
        g->last = event;
        g->last_op = r->op;
    }
}

static void
add_events(Graph *g)
{
    g_autoptr(GArray) moments = all_moments(g);
    g_autoptr(GArray) waits = g_array_new(FALSE, FALSE, sizeof(LhEventRef));
    const gsize count = g->records->len * (gsize)MOMENTS;

    g->events = g_new(LhEventRef, count);
    for (gsize i = 0; i < count; i++)
        g->events[i] = LH_NO_EVENT;
    g->last = LH_NO_EVENT;
    g->begin = lh_slack_event(g->precedence, 0, 0, 0, 0, LH_STEP_HOST);
    for (guint i = 0; i < moments->len; i++)
        add_event(g, &g_array_index(moments, Moment, i), waits);
    lh_slack_close(g->precedence);
}

/* ---- critical path ---- */

/* Returns the chain to the last end. Adds the time until the rank's host notices that its last op
 * has ended. */
static GArray *
find_path(const Graph *g)
{
    GArray *path = lh_slack_chain(g->precedence, g->last);
    const LhPathStep rest = { .from_ps = g->last.time_ps,
                              .to_ps = g->makespan_ps,
                              .rank = g->last.rank,
                              .op = g->last_op,
                              .peer = g->last.rank,
                              .kind = LH_STEP_HOST };

    if (rest.to_ps > rest.from_ps)
        g_array_append_val(path, rest);
    return path;
}

LhExecutedPath *
lh_executed_path_new(const LhSetup *setup, const LhProgram *program, const GArray *records,
                     LhTime makespan_ps)
{
    LhExecutedPath *path = g_new0(LhExecutedPath, 1);
    Graph g = { .setup = setup,
                .program = program,
                .records = records,
                .makespan_ps = makespan_ps,
                .meetings = lh_pairing_new(program, records),
                .precedence = lh_slack_new(lh_program_ranks(program), NULL) };

    g_assert(records->len > 0);
    read_program(&g);
    add_events(&g);
    path->precedence = g.precedence;
    path->path = find_path(&g);
    path->critical = lh_critical_sum(&(LhCriticalOf){ .setup = setup,
                                                      .program = program,
                                                      .makespan_ps = makespan_ps,
                                                      .path = path->path,
                                                      .precedence = path->precedence });
    lh_pairing_free(g.meetings);
    g_free(g.ops);
    g_free(g.events);
    return path;
}

void
lh_executed_path_free(LhExecutedPath *path)
{
    if (path == NULL)
        return;
    lh_slack_free(path->precedence);
    g_array_unref(path->path);
    lh_critical_free(path->critical);
    g_free(path);
}
