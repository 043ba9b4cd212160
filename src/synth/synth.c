/*
 * Candidates come in batches: those of a batch are independent, and the next batch
 * knows the best of all before it, so the number of threads changes nothing. The first part of the
 * budget goes through the portfolio, the rest stays near the best.
 */
#include "synth/synth.h"

#include "base/error.h"
#include "base/rng.h"
#include "base/threads.h"
#include "compare/compare_pool.h"
#include "synth/anneal.h"
#include "verify/verify.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define BATCH 16U
#define EXPLORED 0.6   /* of the budget */
#define NEAR_SHARE 0.8 /* of the rest: it has the grain of the best ... */
#define WARM_SHARE 0.4 /* ... and begins with it */
#define USUAL_ROUNDS 3
/* Of those near the best that begin anew, every other one counts bytes as much as time, in many
 * rounds: that leaves more to what the pipeline of rounds does not see. */
#define HEAVY_ROUNDS 6
#define HEAVY_WEIGHT 1.0
#define MOVES_LEAST UINT64_C(100000)
#define MOVES_PER_BLOCK UINT64_C(5000)
#define MOVES_MOST UINT64_C(2000000)
#define LOAD_WEIGHT 0.1
#define KEPT 16U /* candidates for the judges; one without them */
#define HOT 0.03 /* of the objective */
#define WARM 0.004
#define COLD 0.0002

/* Of the generator's words, what each draws. */
enum {
    DRAW_ORDER,
    DRAW_START,
    DRAW_SEED,
    DRAW_NEAR,
};

/* What an annealing has come to. */
typedef struct {
    LhSynthRecipe recipe;
    const LhSynthProblem *problem;
    bool warm;                        /* it begins with the best */
    LhTime times_ps[LH_SYNTH_STYLES]; /* LH_TIME_NEVER: not simulated to the end, or too large */
    LhTime time_ps;                   /* the least of them */
    uint32_t simulated, too_large;
    uint64_t moves;
    LhSynthAssignment *state; /* owned */
} Candidate;

typedef struct {
    const LhSetup *setup;
    const LhSynthOptions *options;
    LhSynthesis *found;
    GPtrArray *problems;  /* of LhSynthProblem * */
    GArray *portfolio;    /* of Tried */
    Candidate kept[KEPT]; /* by time, all different; the first `kept_count` of `kept_most` */
    uint32_t kept_count, kept_most;
    Candidate batch[BATCH];
    _Atomic LhTime limit_ps; /* slower programs are not simulated to their end */
    uint32_t budget, done;
    pthread_mutex_t lock; /* of the progress */
    bool interrupted;
} Search;

/* An entry of the portfolio. */
typedef struct {
    const LhSynthProblem *problem;
    uint32_t rounds;
    double mean_weight;
} Tried;

static void
row_free(gpointer data)
{
    lh_compare_row_free(data);
}

static void
problem_free(gpointer data)
{
    lh_synth_problem_free(data);
}

void
lh_synthesis_free(LhSynthesis *s)
{
    if (s == NULL)
        return;
    g_clear_pointer(&s->rows, g_ptr_array_unref);
    lh_compare_row_free(s->best);
    g_clear_pointer(&s->cells, g_array_unref);
    g_clear_pointer(&s->homes, g_array_unref);
    g_free(s);
}

static guint
threads_of(const Search *s, guint work)
{
    return lh_compare_threads(s->options->threads, work, s->setup->network.ranks);
}

static bool
goes_on(Search *s)
{
    LhSynthProgress progress = { 0, s->budget, s->found->candidate_ps };
    bool on;

    pthread_mutex_lock(&s->lock);
    progress.candidates = s->done;
    if (!s->interrupted && s->options->progress != NULL)
        s->interrupted = !s->options->progress(s->options->progress_data, &progress);
    on = !s->interrupted;
    pthread_mutex_unlock(&s->lock);
    return on;
}

/* --- what is judged -----------------------------------------------------------------------------
 */

static bool
fits(const Search *s, const LhSimResult *result)
{
    return lh_synth_result_fits(result, s->options->memory_limit_bytes);
}

static bool
plays_on(void *data, const char *what, uint64_t events, LhTime now_ps)
{
    (void)what;
    (void)events;
    (void)now_ps;
    return goes_on(data);
}

/* What was interrupted is no row. */
static void
play_published(void *data, guint index)
{
    Search *s = data;
    const LhHooks hooks = { .progress = plays_on, .progress_data = s };
    LhCompareRow *row;

    if (!goes_on(s))
        return;
    row = lh_compare_run(s->setup, g_ptr_array_index(s->setup->schedules, index), &hooks);
    if (row->state == LH_ROW_FAILED && !goes_on(s))
        g_clear_pointer(&row, lh_compare_row_free);
    g_ptr_array_index(s->found->rows, index) = row;
}

static void
find_published(Search *s)
{
    LhSynthesis *f = s->found;

    g_ptr_array_set_size(f->rows, (int)s->setup->schedules->len);
    lh_on_threads_each("published", threads_of(s, f->rows->len), f->rows->len, play_published, s);
    for (guint i = 0; i < f->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(f->rows, i);

        if (row != NULL && row->result != NULL && fits(s, row->result) &&
            (f->published == NULL || row->result->makespan_ps < f->published->result->makespan_ps))
            f->published = row;
    }
}

/* --- the portfolio ------------------------------------------------------------------------------
 */

static void
add_tried(Search *s, const LhSynthProblem *problem, uint32_t rounds, double mean_weight)
{
    const Tried tried = { problem, rounds, mean_weight };

    g_array_append_val(s->portfolio, tried);
}

/* Documents and windows end anywhere: there, fine chunks are worth their messages. */
static void
find_grains(Search *s)
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
        const Tried kept = g_array_index(portfolio, Tried, i - 1);

        g_array_index(portfolio, Tried, i - 1) = g_array_index(portfolio, Tried, k);
        g_array_index(portfolio, Tried, k) = kept;
    }
}

/* Each grain once, with what is usually good; then everything in any order. */
static void
make_portfolio(Search *s)
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

/* What candidate @number is. */
static Candidate
draw_candidate(const Search *s, uint32_t number)
{
    const uint64_t seed = s->options->seed;
    const Tried *tried = &g_array_index(s->portfolio, Tried, number % s->portfolio->len);
    const double near = lh_rng_uniform(seed, number, DRAW_NEAR);
    Candidate c = {
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
start(const Search *s, Candidate *c)
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

/* The file of the program could be written. */
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
judge(Search *s, Candidate *c, uint32_t style)
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
    if (!fits(s, result)) {
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
    Search *s = data;
    Candidate *c = &s->batch[index];
    const uint64_t blocks = c->problem->blocks_count;
    const LhSynthCooling cooling = {
        .moves = s->options->moves > 0 ? s->options->moves
                                       : CLAMP(blocks * MOVES_PER_BLOCK, MOVES_LEAST, MOVES_MOST),
        .seed = c->recipe.seed,
        .weights = { c->recipe.mean_weight, LOAD_WEIGHT },
        .hot = c->warm ? WARM : HOT,
        .cold = COLD,
    };

    if (!goes_on(s))
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

/* Keeps a candidate that is among the fastest, or drops it. */
static void
keep(Search *s, const Candidate *c)
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
    memmove(&s->kept[at + 1], &s->kept[at], (s->kept_count - at) * sizeof(Candidate));
    s->kept[at] = *c;
    s->kept_count++;
}

/* Takes over a candidate of the batch. */
static void
take(Search *s, Candidate *c)
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

static void
search(Search *s)
{
    for (uint32_t next = 0; next < s->budget && goes_on(s); next += BATCH) {
        const uint32_t count = MIN(BATCH, s->budget - next);

        for (uint32_t i = 0; i < count; i++)
            s->batch[i] = draw_candidate(s, next + i);
        atomic_store(&s->limit_ps, s->kept_count == s->kept_most ? s->kept[s->kept_most - 1].time_ps
                                                                 : LH_TIME_NEVER);
        lh_on_threads_each("synth", threads_of(s, count), count, try_candidate, s);
        for (uint32_t i = 0; i < count; i++)
            take(s, &s->batch[i]);
    }
}

/* --- the answer ---------------------------------------------------------------------------------
 */

bool
lh_synth_fits(const LhSetup *setup, const LhProgram *program, GError **error)
{
    const LhProgramParams *a = &setup->params, *b = &program->params;
    const LhAttention *x = &a->attention, *y = &b->attention;
    const char *differs = NULL;

    if (program->step != NULL || program->modules_count > 0 || y->linear)
        differs = "kind of attention";
    else if (lh_params_ranks(b) != setup->network.ranks || MAX(b->data_parallel_size, 1) > 1)
        differs = "number of ranks";
    else if (x->batch != y->batch || x->seq_length != y->seq_length)
        differs = "batch or length of the sequence";
    else if (x->heads != y->heads || x->groups != y->groups || x->head_dim != y->head_dim ||
             x->dtype != y->dtype || x->scale != y->scale)
        differs = "shape of the heads or type of the elements";
    else if (a->mask.causal != b->mask.causal || a->mask.window != b->mask.window ||
             a->mask.documents_count != b->mask.documents_count ||
             (a->mask.documents_count > 0 &&
              memcmp(a->mask.document_ends, b->mask.document_ends,
                     a->mask.documents_count * sizeof(uint64_t)) != 0))
        differs = "mask";
    else if (a->pass != b->pass || a->keep_saved != b->keep_saved)
        differs = "pass";
    if (differs == NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "the program is for another %s than the scenario: it cannot be gone on from",
                differs);
    return false;
}

/* Plays @program, which the row borrows. */
static LhCompareRow *
play_program(const Search *s, const char *name, const LhProgram *program)
{
    LhCompareRow *row = g_new0(LhCompareRow, 1);

    row->name = name;
    row->program = program;
    lh_compare_play(row, s->setup, NULL);
    return row;
}

/* Takes @row over if it is faster than what there is. */
static void
offer(Search *s, LhCompareRow *row, LhSynthOrigin origin)
{
    LhSynthesis *f = s->found;

    if (row->result == NULL || !fits(s, row->result) ||
        (f->best != NULL && row->result->makespan_ps >= f->best->result->makespan_ps)) {
        lh_compare_row_free(row);
        return;
    }
    lh_compare_row_free(f->best);
    f->best = row;
    f->origin = origin;
}

static bool
prove(const LhCompareRow *best, GError **error)
{
    g_autoptr(LhVerdict) verdict = lh_verify(best->program);

    if (verdict->findings_total == 0)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "the program that was found is not proven and is not written: %s",
                g_array_index(verdict->findings, LhFinding, 0).message);
    return false;
}

/* A row of the program of a candidate that was kept. */
static LhCompareRow *
play_kept(const Search *s, const Candidate *c, LhSynthStyle style)
{
    LhProgram *program = lh_synth_emit(c->state, style);
    LhCompareRow *row = play_program(s, "synth", program);

    row->made = program;
    return row;
}

/* --- the judges ---------------------------------------------------------------------------------
 */

/* A program that the judges are to hear. */
typedef struct {
    LhCompareRow *row; /* owned */
    LhSynthOrigin origin;
    LhSynthRecipe recipe; /* of LH_SYNTH_FOUND, as is ... */
    uint32_t kept;        /* ... which of the candidates that were kept it is */
} Contender;

static void
contender_clear(gpointer data)
{
    lh_compare_row_free(((Contender *)data)->row);
}

/* Takes @row over if it is faster than what is published, and none of its time is there yet. */
static void
add_contender(const Search *s, GArray *contenders, Contender c)
{
    const LhSimResult *result = c.row->result;
    bool is_new = result != NULL && fits(s, result) &&
                  result->makespan_ps < s->found->published->result->makespan_ps;

    for (guint i = 0; i < contenders->len && is_new; i++)
        is_new =
            g_array_index(contenders, Contender, i).row->result->makespan_ps != result->makespan_ps;
    if (is_new)
        g_array_append_val(contenders, c);
    else
        contender_clear(&c);
}

/* The answer of the scenario first, then what else was found. */
static GArray *
find_contenders(Search *s)
{
    GArray *contenders = g_array_new(FALSE, FALSE, sizeof(Contender));
    LhSynthesis *f = s->found;

    g_array_set_clear_func(contenders, contender_clear);
    add_contender(s, contenders, (Contender){ g_steal_pointer(&f->best), f->origin, f->recipe, 0 });
    if (s->options->from != NULL)
        add_contender(
            s, contenders,
            (Contender){ play_program(s, "from", s->options->from), LH_SYNTH_FROM, f->recipe, 0 });
    for (uint32_t i = 0; i < s->kept_count; i++) {
        const Candidate *c = &s->kept[i];

        for (uint32_t k = 0; k < LH_SYNTH_STYLES; k++) {
            Contender other = { NULL, LH_SYNTH_FOUND, c->recipe, i };

            if (c->times_ps[k] == LH_TIME_NEVER || (i > 0 && c->times_ps[k] != c->time_ps))
                continue;
            other.recipe.style = lh_synth_styles[k];
            other.row = play_kept(s, c, other.recipe.style);
            add_contender(s, contenders, other);
        }
    }
    return contenders;
}

static bool
judges_go_on(void *data)
{
    return goes_on(data);
}

/* Of the fastest programs, that which holds under all judges is the answer; else it stays. Returns
 * which of the candidates that were kept it is. */
static uint32_t
ask_judges(Search *s)
{
    LhSynthesis *f = s->found;
    g_autoptr(GArray) contenders = find_contenders(s);
    g_autoptr(GPtrArray) rows = g_ptr_array_new();
    Contender *chosen;
    const LhSynthCourt court = { .setup = s->setup,
                                 .seed = s->options->seed,
                                 .memory_limit_bytes = s->options->memory_limit_bytes,
                                 .threads = s->options->threads,
                                 .published = f->rows,
                                 .contenders = rows,
                                 .goes_on = judges_go_on,
                                 .data = s };

    for (guint i = 0; i < contenders->len; i++)
        g_ptr_array_add(rows, g_array_index(contenders, Contender, i).row);
    f->robust.fastest_ps = g_array_index(contenders, Contender, 0).row->result->makespan_ps;
    lh_synth_test_robustness(&court, &f->robust);
    chosen = &g_array_index(contenders, Contender, f->robust.chosen);
    f->best = g_steal_pointer(&chosen->row);
    f->origin = chosen->origin;
    f->recipe = chosen->recipe;
    return chosen->kept;
}

/* --- the end ------------------------------------------------------------------------------------
 */

/* Keeps how the candidate deals out its blocks. */
static void
tell_cells(LhSynthesis *f, const LhSynthAssignment *state)
{
    const LhSynthProblem *p = state->problem;

    f->cells = g_array_new(FALSE, FALSE, sizeof(LhSynthCell));
    f->homes = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_array_append_vals(f->homes, p->homes, p->chunks);
    for (uint32_t i = 0; i < p->blocks_count; i++) {
        const LhSynthBlock *b = &p->blocks[i];
        const uint32_t place = state->owners[i];
        const LhSynthCell cell = { .row = b->row,
                                   .column = b->column,
                                   .slice = b->slice,
                                   .place = place,
                                   .round =
                                       lh_synth_is_local(p, b, place) ? 0 : state->turns[i] + 1U,
                                   .pairs = b->pairs };

        g_array_append_val(f->cells, cell);
    }
}

static bool
settle(Search *s, GError **error)
{
    LhSynthesis *f = s->found;
    uint32_t kept = 0;

    if (f->published != NULL)
        offer(s, play_program(s, f->published->name, f->published->program), LH_SYNTH_PUBLISHED);
    if (s->options->from != NULL)
        offer(s, play_program(s, "from", s->options->from), LH_SYNTH_FROM);
    if (s->kept_count > 0)
        offer(s, play_kept(s, &s->kept[0], s->kept[0].recipe.style), LH_SYNTH_FOUND);
    if (f->best == NULL && s->interrupted) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_INTERRUPTED,
                            "interrupted before a program that fits was found: nothing is decided");
        return false;
    }
    if (f->best == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "no published schedule and none of %u candidates ends and fits in memory",
                    f->candidates);
        return false;
    }
    if (s->options->robust && !s->interrupted && f->published != NULL &&
        f->origin != LH_SYNTH_PUBLISHED)
        kept = ask_judges(s);
    if (s->kept_count > 0)
        tell_cells(f, s->kept[kept].state);
    return prove(f->best, error);
}

LhSynthesis *
lh_synth(const LhSetup *setup, const LhSynthOptions *options, GError **error)
{
    g_autoptr(LhSynthesis) found = g_new0(LhSynthesis, 1);
    Search s = { .setup = setup,
                 .options = options,
                 .found = found,
                 .problems = g_ptr_array_new_with_free_func(problem_free),
                 .portfolio = g_array_new(FALSE, FALSE, sizeof(Tried)),
                 .kept_most = options->robust ? KEPT : 1,
                 .budget = options->budget > 0 ? options->budget : LH_SYNTH_BUDGET };
    bool ok;

    found->rows = g_ptr_array_new_with_free_func(row_free);
    found->candidate_ps = LH_TIME_NEVER;
    found->bound = lh_synth_bound(setup);
    pthread_mutex_init(&s.lock, NULL);
    if (!options->alone)
        find_published(&s);
    make_portfolio(&s);
    if (s.portfolio->len > 0)
        search(&s);
    ok = settle(&s, error);
    found->interrupted = s.interrupted;
    pthread_mutex_destroy(&s.lock);
    for (uint32_t i = 0; i < s.kept_count; i++)
        lh_synth_assignment_free(s.kept[i].state);
    g_array_unref(s.portfolio);
    g_ptr_array_unref(s.problems);
    return ok ? g_steal_pointer(&found) : NULL;
}
