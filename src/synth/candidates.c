/* SPDX-License-Identifier: Apache-2.0 */
#include "synth/candidates.h"

#include "base/rng.h"
#include "base/threads.h"
#include "synth/anneal.h"
#include "synth/synth.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define EXPLORED 0.6   /* share of the budget for the portfolio */
#define NEAR_SHARE 0.8 /* share of the rest that uses the grain of the best candidate ... */
#define WARM_SHARE 0.4 /* ... and starts from it */
#define USUAL_ROUNDS 3
/* Every other candidate that uses the best grain with a new start weighs bytes as much as time,
 * with many rounds. This favours effects that the pipeline of rounds does not model. */
#define HEAVY_ROUNDS 6
#define HEAVY_WEIGHT 1.0
#define MOVES_LEAST UINT64_C(100000)
#define MOVES_PER_BLOCK UINT64_C(5000)
#define MOVES_MOST UINT64_C(2000000)
#define LOAD_WEIGHT 0.1

#define HOT 0.03 /* relative to the objective */
#define WARM 0.004
#define COLD 0.0002

/* Streams of the random generator, by use. */
enum {
    DRAW_ORDER,
    DRAW_START,
    DRAW_SEED,
    DRAW_NEAR,
};

/* --- the portfolio ------------------------------------------------------------------------------
 */

static void
add_tried(LhSynthSearch *s, const LhSynthProblem *problem, uint32_t rounds, double mean_weight)
{
    const LhSynthPortfolioEntry tried = { problem, rounds, mean_weight };

    g_array_append_val(s->portfolio, tried);
}

/* Documents and windows end anywhere, so fine chunks are worth their additional messages. */
static void
find_grains(LhSynthSearch *s)
{
    const LhSynthPlaces at = lh_synth_places(s->setup);
    const bool plain = lh_mask_is_plain(&s->setup->params.mask);
    const uint32_t fines[] = { 1, 2, at.gpus };

    for (gsize f = 0; f < (plain || at.gpus <= 2 ? 2 : 3); f++) {
        for (uint32_t slices = 1; slices <= 8; slices *= 2) {
            for (int zigzag = 0; zigzag < 2; zigzag++) {
                LhSynthProblem *p =
                    lh_synth_problem_new(s->setup, (LhSynthGrain){ zigzag != 0, slices, fines[f] });

                if (p != NULL)
                    g_ptr_array_add(s->problems, p);
            }
        }
    }
}

static void
shuffle(GArray *portfolio, guint first, uint64_t seed)
{
    for (guint i = portfolio->len; i > first + 1; i--) {
        const guint k = first + (guint)(lh_rng_bits(seed, i, DRAW_ORDER) % (i - first));
        const LhSynthPortfolioEntry kept = g_array_index(portfolio, LhSynthPortfolioEntry, i - 1);

        g_array_index(portfolio, LhSynthPortfolioEntry, i - 1) =
            g_array_index(portfolio, LhSynthPortfolioEntry, k);
        g_array_index(portfolio, LhSynthPortfolioEntry, k) = kept;
    }
}

void
lh_synth_make_portfolio(LhSynthSearch *s)
{
    static const uint32_t rounds[] = { 1, 2, 3, 4, 6 };
    static const double weights[] = { 0.05, 0.5 };

    find_grains(s);
    for (guint i = 0; i < s->problems->len; i++)
        add_tried(s, g_ptr_array_index(s->problems, i), USUAL_ROUNDS, weights[0]);
    for (guint i = 0; i < s->problems->len; i++)
        for (gsize r = 0; r < G_N_ELEMENTS(rounds); r++)
            for (gsize w = 0; w < G_N_ELEMENTS(weights); w++)
                add_tried(s, g_ptr_array_index(s->problems, i), rounds[r], weights[w]);
    shuffle(s->portfolio, s->problems->len, s->options->seed);
    s->found->grains = s->problems->len;
}

/* --- candidates ---------------------------------------------------------------------------------
 */

/* Draws candidate @number. */
static LhSynthCandidate
draw_candidate(const LhSynthSearch *s, uint32_t number)
{
    const uint64_t seed = s->options->seed;
    const LhSynthPortfolioEntry *tried =
        &g_array_index(s->portfolio, LhSynthPortfolioEntry, number % s->portfolio->len);
    const double near = lh_rng_uniform(seed, number, DRAW_NEAR);
    LhSynthCandidate c = {
        .problem = tried->problem,
        .recipe = { .rounds = tried->rounds,
                    .mean_weight = tried->mean_weight,
                    .start =
                        (LhSynthStart)(lh_rng_bits(seed, number, DRAW_START) % LH_SYNTH_STARTS),
                    .seed = lh_rng_bits(seed, number, DRAW_SEED) },
        .time_ps = LH_TIME_NEVER,
    };

    for (uint32_t i = 0; i < LH_SYNTH_STYLES; i++)
        c.times_ps[i] = LH_TIME_NEVER;
    if (number >= EXPLORED * s->budget && s->kept_count > 0 && near < NEAR_SHARE) {
        c.problem = s->kept[0].problem;
        c.warm = near < WARM_SHARE;
        if (!c.warm && number % 2 == 1) {
            c.recipe.rounds = HEAVY_ROUNDS;
            c.recipe.mean_weight = HEAVY_WEIGHT;
        }
    }
    if (c.warm) {
        c.recipe.rounds = s->kept[0].recipe.rounds;
        c.recipe.mean_weight = s->kept[0].recipe.mean_weight;
    }
    c.recipe.grain = c.problem->grain;
    return c;
}

static void
start(const LhSynthSearch *s, LhSynthCandidate *c)
{
    c->state = lh_synth_assignment_new(c->problem, c->recipe.rounds);
    if (!c->warm) {
        lh_synth_assignment_start(c->state, c->recipe.start);
        return;
    }
    c->recipe.start = LH_SYNTH_STARTS;
    for (uint32_t b = 0; b < c->problem->blocks_count; b++)
        lh_synth_assignment_move(c->state, b, s->kept[0].state->owners[b],
                                 s->kept[0].state->turns[b]);
}

/* Whether the program could be written to a file. */
static bool
is_writable(const LhProgram *program)
{
    const LhExplicit *all = program->plan;
    uint64_t ops = 0, parts = 0;

    for (uint32_t rank = 0; rank < all->ranks_count; rank++) {
        ops += all->ranks[rank].ops_count;
        parts += all->ranks[rank].parts_count;
    }
    return ops <= LH_EXPLICIT_OPS_MAX && parts <= LH_EXPLICIT_PARTS_MAX;
}

static void
judge(LhSynthSearch *s, LhSynthCandidate *c, uint32_t style)
{
    g_autoptr(LhProgram) program = lh_synth_emit(c->state, lh_synth_styles[style]);
    const LhHooks hooks = { .limit_ps = &s->limit_ps };
    g_autoptr(LhSimResult) result = NULL;

    if (!is_writable(program))
        return;
    result = lh_setup_simulate(s->setup, program, NULL, NULL, &hooks, NULL);
    c->simulated++;
    if (result == NULL)
        return;
    if (!lh_synth_result_is_within(s, result)) {
        c->too_large++;
        return;
    }
    c->times_ps[style] = result->makespan_ps;
    if (result->makespan_ps < c->time_ps) {
        c->time_ps = result->makespan_ps;
        c->recipe.style = lh_synth_styles[style];
    }
}

static void
try_candidate(void *data, guint index)
{
    LhSynthSearch *s = data;
    LhSynthCandidate *c = &s->batch[index];
    const uint64_t blocks = c->problem->blocks_count;
    const LhSynthCooling cooling = {
        .moves = s->options->moves > 0 ? s->options->moves
                                       : CLAMP(blocks * MOVES_PER_BLOCK, MOVES_LEAST, MOVES_MOST),
        .seed = c->recipe.seed,
        .weights = { c->recipe.mean_weight, LOAD_WEIGHT },
        .hot = c->warm ? WARM : HOT,
        .cold = COLD,
    };

    if (!lh_synth_goes_on(s))
        return;
    start(s, c);
    c->moves = cooling.moves;
    lh_synth_anneal(c->state, &cooling);
    for (uint32_t style = 0; style < LH_SYNTH_STYLES; style++)
        judge(s, c, style);
    pthread_mutex_lock(&s->lock);
    s->done++;
    pthread_mutex_unlock(&s->lock);
}

/* Keeps a candidate that is among the fastest, drops others. */
static void
keep(LhSynthSearch *s, const LhSynthCandidate *c)
{
    uint32_t at = 0;

    while (at < s->kept_count && s->kept[at].time_ps < c->time_ps)
        at++;
    if (at == s->kept_most || c->time_ps == LH_TIME_NEVER ||
        (at < s->kept_count && s->kept[at].time_ps == c->time_ps)) {
        lh_synth_assignment_free(c->state);
        return;
    }
    if (s->kept_count == s->kept_most)
        lh_synth_assignment_free(s->kept[--s->kept_count].state);
    memmove(&s->kept[at + 1], &s->kept[at], (s->kept_count - at) * sizeof(LhSynthCandidate));
    s->kept[at] = *c;
    s->kept_count++;
}

/* Takes a candidate of the batch into account. */
static void
take(LhSynthSearch *s, LhSynthCandidate *c)
{
    LhSynthesis *f = s->found;

    if (c->state == NULL)
        return;
    f->candidates++;
    f->simulated += c->simulated;
    f->too_large += c->too_large;
    f->moves += c->moves;
    if (c->time_ps < f->candidate_ps) {
        f->candidate_ps = c->time_ps;
        f->recipe = c->recipe;
    }
    keep(s, c);
    c->state = NULL;
}

void
lh_synth_try_all(LhSynthSearch *s)
{
    for (uint32_t next = 0; next < s->budget && lh_synth_goes_on(s); next += LH_SYNTH_BATCH) {
        const uint32_t count = MIN(LH_SYNTH_BATCH, s->budget - next);

        for (uint32_t i = 0; i < count; i++)
            s->batch[i] = draw_candidate(s, next + i);
        atomic_store(&s->limit_ps, s->kept_count == s->kept_most ? s->kept[s->kept_most - 1].time_ps
                                                                 : LH_TIME_NEVER);
        lh_on_threads_each("synth", lh_synth_threads(s, count), count, try_candidate, s);
        for (uint32_t i = 0; i < count; i++)
            take(s, &s->batch[i]);
    }
}
