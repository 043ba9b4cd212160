/* SPDX-License-Identifier: Apache-2.0 */
/* All counters are integers, so that undoing a move restores them exactly. */
#include "synth/assignment.h"

#include <math.h>
#include <string.h>

#define SQUARE_WEIGHT 0.01 /* of the squared loads: a slope where their maximum is flat */

const char *const lh_synth_start_names[] = { "rows at home", "columns at home",
                                             "heads across places",
                                             "heads across places, own blocks at home", NULL };

/* Number of blocks of a place that need a chunk, by round. */
typedef struct {
    uint32_t *counts; /* [rounds] */
    uint32_t place, chunk;
    bool row; /* otherwise a column */
} Need;

static void
carry(const LhSynthAssignment *s, LhSynthCounters *counters, uint32_t slot, uint32_t from,
      uint32_t to, int64_t bytes)
{
    counters->out[slot * s->problem->places + from] += bytes;
    counters->in[slot * s->problem->places + to] += bytes;
}

/* Counts the transfers of a chunk that a place needs: to the place in the slot of the first
 * round, and results back two slots after the last. */
static void
travel(LhSynthAssignment *s, const Need *need, int64_t sign)
{
    const LhSynthProblem *p = s->problem;
    const uint32_t home = p->homes[need->chunk], place = need->place;
    uint32_t first = UINT32_MAX, last = 0;

    if (home == place)
        return;
    for (uint32_t t = 0; t < s->rounds; t++) {
        if (need->counts[t] == 0)
            continue;
        first = MIN(first, t);
        last = t;
    }
    if (first == UINT32_MAX)
        return;
    carry(s, &s->forward, first, home, place,
          sign * (int64_t)(need->row ? p->q_bytes : p->kv_bytes));
    if (need->row)
        carry(s, &s->forward, last + 2, place, home, sign * (int64_t)p->result_bytes);
    if (!p->backward)
        return;
    if (need->row) {
        carry(s, &s->backward, first, home, place, sign * (int64_t)p->do_bytes);
        carry(s, &s->backward, first + 2, place, home, sign * (int64_t)p->q_bytes);
    } else {
        carry(s, &s->backward, last + 2, place, home, sign * (int64_t)p->kv_bytes);
    }
}

/* The first and the last round that need the chunk, and so its transfers, change only when a round
 * gets its first block or loses its last one. */
static void
count(LhSynthAssignment *s, Need need, uint32_t turn, int sign)
{
    const uint32_t counted = need.counts[turn] + (uint32_t)sign;

    if (need.counts[turn] > 0 && counted > 0) {
        need.counts[turn] = counted;
        return;
    }
    travel(s, &need, -1);
    need.counts[turn] = counted;
    travel(s, &need, 1);
}

static void
add(LhSynthAssignment *s, uint32_t index, int sign)
{
    const LhSynthProblem *p = s->problem;
    const LhSynthBlock *block = &p->blocks[index];
    const uint32_t place = s->owners[index], turn = s->turns[index];
    const uint32_t slices = p->grain.slices;
    const uint32_t row = (place * p->chunks + block->row) * slices + block->slice;
    const uint32_t column =
        (place * p->chunks + block->column) * slices + lh_synth_kv_slice(p, block->slice);
    const uint32_t when = lh_synth_is_local(p, block, place) ? 0 : turn + 1;
    const LhTime work_ps = lh_synth_work(p, block->work_ps, place);
    const LhTime back_ps = lh_synth_work(p, block->back_ps, place);
    const uint32_t back = p->homes[block->row] == place ? 0 : turn + 1; /* k and v are kept */

    count(s, (Need){ &s->rows[row * s->rounds], place, block->row, true }, turn, sign);
    count(s, (Need){ &s->columns[column * s->rounds], place, block->column, false }, turn, sign);
    s->forward.work_ps[when * p->places + place] += sign * work_ps;
    s->backward.work_ps[back * p->places + place] += sign * back_ps;
    s->load_ps[place] += sign * (work_ps + back_ps);
}

void
lh_synth_assignment_move(LhSynthAssignment *s, uint32_t block, uint32_t owner, uint32_t turn)
{
    g_assert(owner < s->problem->places && turn < s->rounds);
    add(s, block, -1);
    s->owners[block] = owner;
    s->turns[block] = (uint8_t)turn;
    add(s, block, 1);
}

static void
init_counters(const LhSynthAssignment *s, LhSynthCounters *counters)
{
    const gsize places = s->problem->places;

    counters->in = g_new0(int64_t, (s->rounds + 2) * places);
    counters->out = g_new0(int64_t, (s->rounds + 2) * places);
    counters->work_ps = g_new0(int64_t, (s->rounds + 1) * places);
}

static void
clear_counters(LhSynthCounters *counters)
{
    g_free(counters->in);
    g_free(counters->out);
    g_free(counters->work_ps);
}

LhSynthAssignment *
lh_synth_assignment_new(const LhSynthProblem *p, uint32_t rounds)
{
    LhSynthAssignment *s = g_new0(LhSynthAssignment, 1);
    const gsize counters = (gsize)p->places * p->chunks * p->grain.slices * rounds;

    g_assert(rounds >= 1 && rounds <= LH_SYNTH_ROUNDS_MAX);
    s->problem = p;
    s->rounds = rounds;
    s->owners = g_new0(uint32_t, p->blocks_count + 1);
    s->turns = g_new0(uint8_t, p->blocks_count + 1);
    s->rows = g_new0(uint32_t, counters);
    s->columns = g_new0(uint32_t, counters);
    init_counters(s, &s->forward);
    init_counters(s, &s->backward);
    s->load_ps = g_new0(int64_t, p->places);
    for (uint32_t b = 0; b < p->blocks_count; b++) {
        s->owners[b] = p->homes[p->blocks[b].row];
        add(s, b, 1);
    }
    return s;
}

void
lh_synth_assignment_free(LhSynthAssignment *s)
{
    if (s == NULL)
        return;
    g_free(s->owners);
    g_free(s->turns);
    g_free(s->rows);
    g_free(s->columns);
    clear_counters(&s->forward);
    clear_counters(&s->backward);
    g_free(s->load_ps);
    g_free(s);
}

/* Time of slot @slot of the network, in which all places send and receive at once. */
static double
slot_ps(const LhSynthAssignment *s, const LhSynthCounters *c, uint32_t slot, double *sum)
{
    const LhSynthProblem *p = s->problem;
    double longest = 0;

    for (uint32_t n = 0; n < p->places; n++) {
        const double in = (double)c->in[slot * p->places + n];
        const double out = (double)c->out[slot * p->places + n];

        longest = fmax(longest, fmax(in, out) * p->byte_ps[n]);
        *sum += in * p->byte_ps[n];
    }
    return longest;
}

/*
 * Time of the pipeline:
 *   F(t) = max(F(t-1), max_n C(n, t-2)) + time of slot t
 *   C(n, t) = max(C(n, t-1), F(t)) + work(n, t), if there is any
 * where C(n, -1) is the work of n that has all inputs at home. The result is the time when
 * everything has finished.
 */
static double
pipeline_ps(const LhSynthAssignment *s, const LhSynthCounters *c, double *sum)
{
    const uint32_t places = s->problem->places;
    double computed[LH_SYNTH_PLACES_MAX];
    double ready[LH_SYNTH_ROUNDS_MAX] = { 0 };
    double arrived = 0, end = 0;

    for (uint32_t n = 0; n < places; n++)
        computed[n] = (double)c->work_ps[n];
    for (uint32_t t = 0; t < s->rounds + 2; t++) {
        const double slot = slot_ps(s, c, t, sum);

        if (t >= 2 && slot > 0)
            arrived = fmax(arrived, ready[t - 2]);
        arrived += slot;
        for (uint32_t n = 0; t < s->rounds && n < places; n++) {
            const double work = (double)c->work_ps[(t + 1) * places + n];

            if (work > 0)
                computed[n] = fmax(computed[n], arrived) + work;
            ready[t] = fmax(ready[t], computed[n]);
        }
    }
    for (uint32_t n = 0; n < places; n++)
        end = fmax(end, computed[n]);
    return fmax(arrived, end);
}

double
lh_synth_assignment_objective(const LhSynthAssignment *s, const LhSynthWeights *weights)
{
    const uint32_t places = s->problem->places;
    double sum = 0, most = 0, all = 0, squares = 0;
    double time = pipeline_ps(s, &s->forward, &sum);

    if (s->problem->backward)
        time += pipeline_ps(s, &s->backward, &sum);
    for (uint32_t n = 0; n < places; n++) {
        const double load = (double)s->load_ps[n];

        most = fmax(most, load);
        all += load;
        squares += load * load;
    }
    return fmax(time, most) + weights->mean_weight * sum / places + weights->load_weight * most +
           (all > 0 ? SQUARE_WEIGHT * squares / all : 0);
}

uint64_t
lh_synth_assignment_bytes(const LhSynthAssignment *s)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < (s->rounds + 2) * s->problem->places; i++)
        sum += (uint64_t)(s->forward.out[i] + s->backward.out[i]);
    return sum;
}

/* The place that computes slice @slice if places share heads; round-robin if there are fewer
 * slices than places. */
static uint32_t
place_of_slice(const LhSynthProblem *p, const LhSynthBlock *block)
{
    const uint32_t slices = p->grain.slices;

    return slices >= p->places ? block->slice * p->places / slices
                               : (block->slice + slices * block->column) % p->places;
}

void
lh_synth_assignment_start(LhSynthAssignment *s, LhSynthStart start)
{
    const LhSynthProblem *p = s->problem;

    for (uint32_t b = 0; b < p->blocks_count; b++) {
        const LhSynthBlock *block = &p->blocks[b];
        const uint32_t home = p->homes[block->row];
        uint32_t owner = home;

        if (start == LH_SYNTH_COLUMNS)
            owner = p->homes[block->column];
        else if (start == LH_SYNTH_HEADS ||
                 (start == LH_SYNTH_DIAGONALS && !lh_synth_is_local(p, block, home)))
            owner = place_of_slice(p, block);
        lh_synth_assignment_move(s, b, owner, 0);
    }
}
