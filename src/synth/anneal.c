/* SPDX-License-Identifier: Apache-2.0 */
/* Rejected moves are undone; only the best assignment is copied. */
#include "synth/anneal.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

#define STEPS 4096 /* of the temperature */
/* Probabilities of the kinds of moves, as cumulative bounds in [0, 1): one block, blocks of a
 * row, blocks of a column; the rest are swaps. */
#define BLOCK_UNTIL 0.35
#define ROW_UNTIL 0.60
#define COLUMN_UNTIL 0.85
/* Share of the single-block and line moves that ... */
#define KEEP_TURN 0.5  /* ... keep the round, ... */
#define KEEP_OWNER 0.3 /* ... otherwise keep the place, ... */
#define TO_HOME 0.3    /* ... move to the home of an input in any case */
#define OF_TURN 0.5    /* share of line moves that take the blocks of one round only */

/* A place and a round. */
typedef struct {
    uint32_t owner, turn;
} Spot;

typedef struct {
    LhSynthAssignment *state;
    const LhSynthCooling *cooling;
    uint64_t drawn;
    /* Blocks changed by the current move, with their previous spots. */
    uint32_t *moved;
    Spot *before;
    uint32_t moved_count;
    uint32_t *best_owners;
    uint8_t *best_turns;
} Run;

static double
uniform(Run *r)
{
    return lh_rng_uniform(r->cooling->seed, r->drawn++, 0);
}

static uint32_t
below(Run *r, uint32_t count)
{
    return (uint32_t)(uniform(r) * count);
}

static Spot
spot_of(const LhSynthAssignment *s, uint32_t block)
{
    return (Spot){ s->owners[block], s->turns[block] };
}

static void
move(Run *r, uint32_t block, Spot to)
{
    const Spot from = spot_of(r->state, block);

    if (from.owner == to.owner && from.turn == to.turn)
        return;
    r->moved[r->moved_count] = block;
    r->before[r->moved_count++] = from;
    lh_synth_assignment_move(r->state, block, to.owner, to.turn);
}

static void
undo(Run *r)
{
    while (r->moved_count > 0) {
        r->moved_count--;
        lh_synth_assignment_move(r->state, r->moved[r->moved_count],
                                 r->before[r->moved_count].owner, r->before[r->moved_count].turn);
    }
}

/* Draws a new spot for block @block. */
static Spot
draw_spot(Run *r, uint32_t block)
{
    const LhSynthProblem *p = r->state->problem;
    Spot to = { below(r, p->places), below(r, r->state->rounds) };

    if (uniform(r) < KEEP_TURN)
        to.turn = r->state->turns[block];
    else if (uniform(r) < KEEP_OWNER)
        to.owner = r->state->owners[block];
    if (uniform(r) < TO_HOME)
        to.owner = p->homes[uniform(r) < 0.5 ? p->blocks[block].row : p->blocks[block].column];
    return to;
}

/* Moves the blocks of a line that are at @from: those of one round, or all. */
static void
move_line(Run *r, const uint32_t *block, const uint32_t *end, Spot from, Spot to)
{
    const bool of_turn = uniform(r) < OF_TURN;

    for (; block < end; block++) {
        const Spot at = spot_of(r->state, *block);

        if (at.owner == from.owner && (!of_turn || at.turn == from.turn))
            move(r, *block, to);
    }
}

static void
try_move(Run *r)
{
    const LhSynthProblem *p = r->state->problem;
    const uint32_t block = below(r, p->blocks_count);
    const LhSynthBlock *b = &p->blocks[block];
    const uint32_t row = b->row * p->grain.slices + b->slice;
    const uint32_t column = b->column * p->grain.slices + b->slice;
    const Spot from = spot_of(r->state, block);
    const double kind = uniform(r);

    r->moved_count = 0;
    if (kind >= COLUMN_UNTIL) {
        const uint32_t other = below(r, p->blocks_count);

        move(r, block, spot_of(r->state, other));
        if (other != block)
            move(r, other, from);
    } else if (kind < BLOCK_UNTIL) {
        move(r, block, draw_spot(r, block));
    } else if (kind < ROW_UNTIL) {
        move_line(r, p->row_blocks + p->row_first[row], p->row_blocks + p->row_first[row + 1], from,
                  draw_spot(r, block));
    } else {
        move_line(r, p->column_blocks + p->column_first[column],
                  p->column_blocks + p->column_first[column + 1], from, draw_spot(r, block));
    }
}

static void
keep_order(Run *r)
{
    const uint32_t blocks = r->state->problem->blocks_count;

    memcpy(r->best_owners, r->state->owners, blocks * sizeof(*r->best_owners));
    memcpy(r->best_turns, r->state->turns, blocks * sizeof(*r->best_turns));
}

static void
cool(Run *r, double *best)
{
    const LhSynthCooling *c = r->cooling;
    const uint64_t step = MAX(c->moves / STEPS, 1);
    const double first = *best;
    double now = first, temperature = 0;

    for (uint64_t i = 0; i < c->moves; i++) {
        double next;

        if (i % step == 0)
            temperature = first * c->hot * pow(c->cold / c->hot, (double)i / (double)c->moves);
        try_move(r);
        if (r->moved_count == 0)
            continue;
        next = lh_synth_assignment_objective(r->state, &c->weights);
        if (next > now && uniform(r) >= exp((now - next) / temperature)) {
            undo(r);
            continue;
        }
        now = next;
        if (now < *best) {
            *best = now;
            keep_order(r);
        }
    }
}

double
lh_synth_anneal(LhSynthAssignment *s, const LhSynthCooling *cooling)
{
    const uint32_t blocks = s->problem->blocks_count;
    Run r = { .state = s,
              .cooling = cooling,
              .moved = g_new(uint32_t, blocks + 1),
              .before = g_new(Spot, blocks + 1),
              .best_owners = g_new(uint32_t, blocks + 1),
              .best_turns = g_new(uint8_t, blocks + 1) };
    double best = lh_synth_assignment_objective(s, &cooling->weights);

    keep_order(&r);
    if (blocks > 0)
        cool(&r, &best);
    for (uint32_t b = 0; b < blocks; b++)
        lh_synth_assignment_move(s, b, r.best_owners[b], r.best_turns[b]);
    g_free(r.moved);
    g_free(r.before);
    g_free(r.best_owners);
    g_free(r.best_turns);
    return best;
}
