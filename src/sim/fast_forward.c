/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/fast_forward.h"

#include "sim/cost/op_hash.h"
#include "sim/run_counts.h"
#include "sim/sim_private.h"
#include "sim/state_hash.h"

#include <string.h>

#define WINDOWS 1024   /* windows remembered */
#define PERIOD_MAX 256 /* longest period, in windows */
#define REST_MAX 64    /* most windows to wait after a failed attempt */
#define PERIODS_MAX 4  /* most periods recorded as one, until the state recurs */
#define AHEAD 16       /* periods to look ahead at first */
#define KINDS_OF_EVENTS 8

/* An alloc or a free as it was issued in the recorded period. */
typedef struct {
    LhRegion region;
    uint32_t id; /* node id */
    uint8_t kind, phase;
    uint16_t layer, micro_batch;
    uint16_t layers, micro_batches; /* increments from one period to the next, modulo 2^16 */
    LhTime at_ps,
        host_ps; /* when its host issued it, and when its host reached it: the later counts */
} Change;

/* The ops of a rank that were issued in the recorded period. */
typedef struct {
    GArray *hashes;   /* of uint64_t */
    GArray *changes;  /* of Change */
    uint32_t periods; /* how often the program repeats them, as far as looked ahead */
    LhCursor behind;  /* position after these repetitions */
} Issued;

struct _LhFastForward {
    uint32_t reference;          /* the rank whose layers and micro-batches delimit windows */
    uint16_t layer, micro_batch; /* of its first stream */
    bool begun;                  /* the first window has begun */
    bool due;                    /* a window ends in this instant */
    uint64_t hash;               /* of the current window so far */
    LhTime began_ps;             /* start of the current window */
    uint32_t *bases;             /* number of ops of each rank that had been issued then */
    uint64_t hashes[WINDOWS];    /* of the latest windows, by number modulo WINDOWS */
    uint32_t windows; /* windows that have ended since the last complete period was recorded */
    /* Length of the period being recorded, and windows recorded so far; 0: none is recorded. */
    uint32_t period, recorded;
    /* Windows to wait before recording again; the wait grows with failed attempts. */
    uint32_t rest, rests;
    bool left_out; /* periods were skipped after the recorded one */
    LhTime since_ps;
    uint64_t state;     /* lh_state_hash() when it began */
    bool sync;          /* a host waits for a sync in it */
    Issued *issued;     /* [ranks] */
    LhRunCounts counts; /* as of its beginning */
    GArray *seconds;    /* of LhOpSeconds: kernels issued in it, in order of issue on all ranks */
    LhOpBuffer buffer;
};

/* ---- events ---- */

static void
note_event(LhEngine *e, LhFastForwardEvent event, uint64_t subject, uint64_t what)
{
    LhFastForward *p = e->repeat;

    p->hash = lh_mix(p->hash, (uint64_t)(e->now - p->began_ps));
    p->hash = lh_mix(p->hash, subject * KINDS_OF_EVENTS + (uint64_t)event);
    p->hash = lh_mix(p->hash, what);
}

/* Names op @id of rank @r, or of its representative, by its position relative to the first op
 * issued in the window. */
static uint64_t
name_of(const LhEngine *e, uint32_t r, uint32_t id)
{
    return (uint64_t)r << 32 | (id - e->repeat->bases[lh_engine_like(e, r)]);
}

void
lh_fast_forward_note_op(LhEngine *e, LhFastForwardEvent event, const LhSimRank *rank, uint32_t id)
{
    LhFastForward *p = e->repeat;
    const LhNode *node = lh_node(&rank->nodes, id);

    if (p->begun)
        note_event(e, event, name_of(e, rank->index, id), node->stream);
    if (event != LH_EVENT_OP_ENDS || rank->index != p->reference || node->stream != 0 ||
        (node->layer == p->layer && node->micro_batch == p->micro_batch))
        return;
    p->layer = node->layer;
    p->micro_batch = node->micro_batch;
    p->due = true;
}

void
lh_fast_forward_note_flow(LhEngine *e, LhFastForwardEvent event, uint32_t flow)
{
    const LhEnds *ends = &e->moving.ends[flow];

    if (!e->repeat->begun)
        return;
    note_event(e, event, name_of(e, ends->ranks[0], ends->nodes[0]),
               name_of(e, ends->ranks[1], ends->nodes[1]));
}

/* The hash of an op in @buffer, which has number @id in the program of rank @r. @first: first op of
 * its step. */
static uint64_t
content_hash(const LhEngine *e, uint32_t r, uint32_t id, const LhOp *op, const LhOpBuffer *buffer,
             bool first)
{
    const uint64_t hash = lh_op_hash(e->program, op, buffer, first);
    const double share = lh_engine_time_share(e, r, id, op, buffer);

    return e->params->time_share == NULL ? hash : lh_mix_bytes(hash, &share, sizeof(share));
}

void
lh_fast_forward_issue(LhEngine *e, const LhSimRank *rank, LhNode *node, const LhOp *op, bool first)
{
    LhFastForward *p = e->repeat;
    Issued *issued = &p->issued[rank->index];

    node->alike = 0;
    if (!p->begun)
        return;
    node->alike = content_hash(e, rank->index, op->id + rank->skipped_ops, op, &e->buffer, first);
    p->hash = lh_mix(p->hash, name_of(e, rank->index, op->id));
    p->hash = lh_mix(p->hash, node->alike);
    p->hash = lh_mix(p->hash, (uint64_t)MAX(rank->host_ps - e->now, 0));
    if (p->period == 0)
        return;
    p->sync |= rank->gate != LH_NO_NODE;
    g_array_append_val(issued->hashes, node->alike);
    if (op->kind == LH_OP_COMPUTE)
        g_array_append_val(p->seconds, e->cost.op_seconds);
    if (op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE) {
        const Change change = { .region = node->region,
                                .id = op->id,
                                .kind = node->kind,
                                .phase = node->phase,
                                .layer = node->layer,
                                .micro_batch = node->micro_batch,
                                .at_ps = e->now,
                                .host_ps = rank->host_ps };

        g_array_append_val(issued->changes, change);
    }
}

static void
end_window(LhEngine *e)
{
    LhFastForward *p = e->repeat;
    uint64_t hash = lh_mix(p->hash, (uint64_t)(e->now - p->began_ps));

    hash = lh_mix(hash, (uint64_t)e->moving.under_way[0] << 32 | e->moving.under_way[1]);
    for (uint32_t r = 0; r < e->ranks_count; r++) {
        if (!lh_engine_plays(e, r))
            continue;
        hash = lh_state_hash_rank(hash, e, &e->ranks[r], p->began_ps);
        p->bases[r] = e->ranks[r].nodes.issued;
    }
    p->hashes[p->windows++ % WINDOWS] = hash;
    p->hash = 0;
    p->began_ps = e->now;
}

/* ---- skipping ---- */

/* Whether the labels of an alloc or free continue the progression of the first two periods. */
static bool
has_labels(Change *change, const LhOp *op, uint32_t period)
{
    if (period == 1) {
        change->layers = (uint16_t)(op->layer - change->layer);
        change->micro_batches = (uint16_t)(op->micro_batch - change->micro_batch);
    }
    return op->layer == (uint16_t)(change->layer + period * change->layers) &&
           op->micro_batch == (uint16_t)(change->micro_batch + period * change->micro_batches);
}

/* Looks ahead, from where it last stopped, whether rank @r repeats the period up to @limit times.
 */
static void
look_ahead(const LhEngine *e, uint32_t r, uint32_t limit)
{
    LhFastForward *p = e->repeat;
    Issued *issued = &p->issued[r];
    LhCursor cursor = issued->behind; /* a copy, advanced on its own */
    guint at = 0, changes = 0;

    while (issued->periods < limit && lh_cursor_step(&cursor, &p->buffer)) {
        for (uint32_t i = 0; i < p->buffer.ops_count; i++, at++) {
            const LhOp *op = &p->buffer.ops[i];
            const bool memory = op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE;

            if (at == issued->hashes->len ||
                content_hash(e, r, op->id, op, &p->buffer, i == 0) !=
                    g_array_index(issued->hashes, uint64_t, at) ||
                (memory && !has_labels(&g_array_index(issued->changes, Change, changes++), op,
                                       issued->periods + 1)))
                return;
        }
        if (at == issued->hashes->len) {
            issued->periods++;
            issued->behind = cursor;
            at = changes = 0;
        }
    }
}

/* Number of periods that all ranks repeat, at most @limit. */
static uint32_t
periods_within(const LhEngine *e, uint32_t limit)
{
    uint32_t periods = limit;

    for (uint32_t r = 0; r < e->ranks_count && periods > 0; r++) {
        if (!lh_engine_plays(e, r) || e->repeat->issued[r].hashes->len == 0)
            continue;
        look_ahead(e, r, periods);
        periods = MIN(periods, e->repeat->issued[r].periods);
    }
    return periods;
}

/* Number of periods that all ranks repeat. The look-ahead starts small, since some rank may soon
 * diverge. */
static uint32_t
periods_ahead(const LhEngine *e)
{
    uint32_t limit = AHEAD, periods;
    bool any = false;

    for (uint32_t r = 0; r < e->ranks_count; r++) {
        if (!lh_engine_plays(e, r))
            continue;
        any |= e->repeat->issued[r].hashes->len > 0;
        e->repeat->issued[r].periods = 0;
        memcpy(&e->repeat->issued[r].behind, lh_engine_cursor(e, r), e->cursor_bytes);
    }
    if (!any)
        return 0;
    while ((periods = periods_within(e, limit)) == limit)
        limit *= 2;
    return periods;
}

/* Time that the rank's host has spent in the recorded period. */
static LhTime
host_time(const LhEngine *e, const LhSimRank *rank)
{
    return rank->host_ps - e->repeat->counts.host_ps[rank->index];
}

/* Applies the allocs and frees of @periods periods to the rank's memory. After a period that leaves
 * it as it was, peaks included, further ones change nothing. */
static void
change_memory(LhEngine *e, const LhSimRank *rank, uint32_t periods)
{
    LhFastForward *p = e->repeat;
    const Issued *issued = &p->issued[rank->index];
    const LhTime period_ps = e->now - p->since_ps, host_ps = host_time(e, rank);
    bool same = false;

    for (uint32_t k = 1; k <= periods && !same; k++) {
        const LhLive before = *lh_memory_now(e, rank->index);

        for (guint i = 0; i < issued->changes->len; i++) {
            const Change *change = &g_array_index(issued->changes, Change, i);
            const LhNode node = {
                .kind = change->kind,
                .phase = change->phase,
                .region = change->region,
                .layer = (uint16_t)(change->layer + k * change->layers),
                .micro_batch = (uint16_t)(change->micro_batch + k * change->micro_batches),
            };

            lh_memory_changes(
                e, rank, change->id + rank->skipped_ops + k * issued->hashes->len, &node,
                MAX(change->host_ps + k * host_ps, change->at_ps + k * period_ps) + e->skipped_ps);
        }
        same = memcmp(&before, lh_memory_now(e, rank->index), sizeof(before)) == 0;
    }
}

/* Moves the rank's program on by @periods periods. */
static void
pass_periods(LhEngine *e, LhSimRank *rank, uint32_t periods)
{
    LhFastForward *p = e->repeat;
    const LhTime host_ps = host_time(e, rank);
    const Issued *issued = &p->issued[rank->index];
    const uint32_t ops = periods * issued->hashes->len;
    LhCursor *cursor = lh_engine_cursor(e, rank->index);
    const uint32_t until = cursor->own.next_id + ops;

    change_memory(e, rank, periods);
    if (ops > 0 && issued->periods == periods)
        memcpy(cursor, &issued->behind, e->cursor_bytes);
    while (cursor->own.next_id < until)
        lh_cursor_step(cursor, &p->buffer);
    rank->skipped_ops += ops;
    rank->host_ps += periods * (host_ps - (e->now - p->since_ps));
}

/* Adds the kernels of @periods periods one by one, as a sum of floating-point numbers depends on
 * its order. */
static void
count_seconds(LhEngine *e, uint32_t periods)
{
    const GArray *seconds = e->repeat->seconds;

    for (uint32_t k = 0; k < periods; k++)
        for (guint i = 0; i < seconds->len; i++)
            lh_cost_count(&e->cost, &g_array_index(seconds, LhOpSeconds, i));
}

/* Whether the period contains all that the rank's state at its end depends on: its messages in
 * flight, and what it waits for. Also requires that the host does not lose ground to the device,
 * which would have to wait for it eventually. */
static bool
is_whole(const LhEngine *e, const LhSimRank *rank)
{
    const LhTime since_ps = e->repeat->since_ps;

    if (rank->gate != LH_NO_NODE || host_time(e, rank) > e->now - since_ps ||
        (rank->account.why == LH_IDLE_IMBALANCE && rank->account.accounted_ps < since_ps))
        return false;
    for (uint32_t s = 0; s < e->streams_count; s++) {
        const uint32_t head = lh_queue(rank, s)->head;
        const LhNode *node = head != LH_NO_NODE ? lh_node(&rank->nodes, head) : NULL;

        if (node != NULL && node->state == LH_NODE_RUNNING && node->kind != LH_OP_COMPUTE &&
            node->start_ps < since_ps)
            return false;
    }
    return true;
}

/* Skips periods. False: not yet possible, but perhaps with one more period recorded. */
static bool
leave_out(LhEngine *e)
{
    LhFastForward *p = e->repeat;
    const LhTime period_ps = e->now - p->since_ps;
    uint32_t periods;

    for (uint32_t r = 0; r < e->ranks_count; r++)
        if (lh_engine_plays(e, r) && !is_whole(e, &e->ranks[r]))
            return false;
    if (lh_state_hash(e) != p->state)
        return false;
    periods = periods_ahead(e);
    if (period_ps >
        0) /* a run beyond the maximum of simulated time is rejected when it gets there */
        periods = (uint32_t)MIN(periods,
                                MAX(LH_TIME_LONGEST - e->skipped_ps - e->now, 0) / period_ps + 1);
    if (periods == 0)
        return true;
    for (uint32_t r = 0; r < e->ranks_count; r++)
        if (lh_engine_plays(e, r))
            pass_periods(e, &e->ranks[r], periods);
    lh_run_counts_grow(e, &p->counts, periods);
    count_seconds(e, periods);
    e->skipped_ps += periods * period_ps;
    p->left_out = true;
    return true;
}

/* ---- periods ---- */

/* The shortest period whose latest two occurrences are equal; 0: none. */
static uint32_t
find_period(const LhFastForward *p)
{
    const uint32_t known = MIN(p->windows, WINDOWS);

    for (uint32_t period = 1; period <= MIN(known / 2, PERIOD_MAX); period++) {
        uint32_t same = 0;

        while (same < period && p->hashes[(p->windows - 1 - same) % WINDOWS] ==
                                    p->hashes[(p->windows - 1 - same - period) % WINDOWS])
            same++;
        if (same == period)
            return period;
    }
    return 0;
}

static void
begin_period(LhEngine *e, uint32_t period)
{
    LhFastForward *p = e->repeat;

    p->period = period;
    p->recorded = 0;
    p->sync = false;
    p->left_out = false;
    p->since_ps = e->now;
    for (uint32_t r = 0; r < e->ranks_count; r++) {
        if (!lh_engine_plays(e, r))
            continue;
        g_array_set_size(p->issued[r].hashes, 0);
        g_array_set_size(p->issued[r].changes, 0);
    }
    g_array_set_size(p->seconds, 0);
    p->state = lh_state_hash(e);
    lh_run_counts_take(&p->counts, e);
}

static void
end_period(LhFastForward *p)
{
    p->rests = p->left_out ? 0 : MIN(2 * p->rests + 1, REST_MAX);
    p->rest = p->rests;
    p->period = 0;
}

/* Ends a window of the recorded period. */
static void
close_window(LhEngine *e)
{
    LhFastForward *p = e->repeat;

    p->recorded++;
    if (p->sync || p->hashes[(p->windows - 1) % WINDOWS] !=
                       p->hashes[(p->windows - 1 - p->period) % WINDOWS]) {
        end_period(p);
    } else if (p->recorded % p->period == 0 &&
               (leave_out(e) || p->recorded == PERIODS_MAX * p->period)) {
        end_period(p);
        p->windows = 0;
    }
}

void
lh_fast_forward_instant(LhEngine *e)
{
    LhFastForward *p = e->repeat;
    uint32_t period;

    if (!p->due)
        return;
    p->due = false;
    p->begun = true;
    end_window(e);
    if (p->period > 0)
        close_window(e);
    if (p->rest > 0)
        p->rest--;
    if (p->period > 0 || p->rest > 0)
        return;
    period = find_period(p);
    if (period > 0)
        begin_period(e, period);
}

/* ---- interface ---- */

/* The program of a schedule is one layer of one micro-batch. */
static bool
may_skip(const LhSimParams *p)
{
    return p->program->closed == NULL && !p->unskipped && p->timeline == NULL &&
           p->memory == NULL && p->links == NULL && !p->path && !p->precedence && p->jitter <= 0 &&
           p->compute_time == NULL && p->steps_max == 0;
}

LhFastForward *
lh_fast_forward_new(const LhEngine *e)
{
    LhFastForward *p;

    if (!may_skip(e->params))
        return NULL;
    p = g_new0(LhFastForward, 1);
    p->bases = g_new0(uint32_t, e->ranks_count);
    p->issued = g_new0(Issued, e->ranks_count);
    p->seconds = g_array_new(FALSE, FALSE, sizeof(LhOpSeconds));
    for (uint32_t r = e->ranks_count; r-- > 0;) {
        if (!lh_engine_plays(e, r))
            continue;
        p->issued[r].hashes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
        p->issued[r].changes = g_array_new(FALSE, FALSE, sizeof(Change));
        p->reference = r;
    }
    return p;
}

void
lh_fast_forward_free(LhFastForward *p, uint32_t ranks)
{
    if (p == NULL)
        return;
    for (uint32_t r = 0; r < ranks; r++) {
        g_clear_pointer(&p->issued[r].hashes, g_array_unref);
        g_clear_pointer(&p->issued[r].changes, g_array_unref);
    }
    lh_run_counts_clear(&p->counts);
    g_array_unref(p->seconds);
    lh_op_buffer_clear(&p->buffer);
    g_free(p->issued);
    g_free(p->bases);
    g_free(p);
}
