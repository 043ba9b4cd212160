/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans: lower bounds of points against simulations, searches against simulating every point, the
 * longest length that fits against trying every length, files of points, and scenarios as text.
 *
 * With LONGHAUL_TEST_ALL all points are tested, otherwise a share of them.
 */
#include "base/error.h"
#include "base/files/append_log.h"
#include "base/rng.h"
#include "base/threads.h"
#include "compare/step_plan.h"
#include "planner/estimate_all.h"
#include "planner/pareto_front.h"
#include "planner/plan.h"
#include "planner/search_log.h"
#include "run_tests.h"
#include "share.h"

#include <glib/gstdio.h>
#include <string.h>

#define THREADS 2

static bool
take_all(void)
{
    return g_getenv("LONGHAUL_TEST_ALL") != NULL;
}

/* ---- spaces ---- */

/* A space and the data that it borrows. */
typedef struct {
    LhScenario *scenario;
    LhPlanSpace *space;
} Case;

/* Builds a case; @members: further members of the scenario. Returns false with @error. */
static bool
case_try(Case *c, const char *members, uint64_t sequences, GError **error)
{
    g_autofree char *text = g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", %s}", members);

    *c = (Case){ .scenario = lh_scenario_parse("s.json", text, strlen(text), error) };
    if (c->scenario == NULL)
        return false;
    c->space = lh_plan_space_new(c->scenario, NULL, sequences, THREADS, error);
    return c->space != NULL;
}

static Case
case_of(const char *members, uint64_t sequences)
{
    g_autoptr(GError) error = NULL;
    Case c;

    if (!case_try(&c, members, sequences, &error))
        ck_abort_msg("%s: %s", members, error->message);
    return c;
}

static const char *
only_fsdp(void)
{
    return test_is_short() ? ", \"shard\": \"fsdp\"" : "";
}

/* A case with fewer points for short test runs. */
static Case
case_of_few(const char *members, uint64_t sequences)
{
    g_autofree char *few = g_strconcat(members, only_fsdp(), NULL);

    return case_of(few, sequences);
}

static void
case_clear(Case *c)
{
    lh_plan_space_free(c->space);
    lh_scenario_free(c->scenario);
}

/* The simulated result of a point. */
typedef struct {
    LhTime time_ps; /* 0: refused or failed */
    uint64_t peak_bytes;
    bool fits;
} Truth;

static Truth
simulate(const LhPlanSpace *space, guint point)
{
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhSimResult) result = NULL;
    Truth truth = { 0 };
    LhPlanCase c;

    if (!lh_plan_case_init(&c, space, point, NULL))
        return truth;
    program = lh_plan_case_program(&c, NULL);
    if (program == NULL)
        return truth;
    result = lh_setup_simulate(&c.setup, program, NULL, NULL, NULL, NULL);
    if (result == NULL)
        return truth;
    for (uint32_t r = 0; r < result->ranks_count; r++)
        truth.peak_bytes = MAX(truth.peak_bytes, result->ranks[r].peak_bytes);
    truth.time_ps = result->makespan_ps + lh_step_overhead_ps(&c.setup);
    truth.fits = result->out_of_memory == NULL;
    return truth;
}

/* ---- estimates ---- */

/* Whether the program ends within @time_ps; if not, its simulation must stop as early as
 * possible. */
static bool
ends_within(const LhPlanCase *c, const LhProgram *program, LhTime time_ps)
{
    const _Atomic LhTime limit_ps = time_ps - lh_step_overhead_ps(&c->setup);
    g_autoptr(GArray) tails = lh_plan_estimate_tails(c, program);
    const LhHooks hooks = { .limit_ps = &limit_ps, .tails = tails };
    g_autoptr(LhSimResult) result = lh_setup_simulate(&c->setup, program, NULL, NULL, &hooks, NULL);

    return result != NULL;
}

/* Checks the estimates of a point; returns false if the point is refused. */
static bool
check_estimates(const LhPlanSpace *space, guint point)
{
    const Truth truth = simulate(space, point);
    g_autofree char *text = lh_plan_point_text(space, point);
    g_autoptr(LhProgram) program = NULL;
    LhPlanEstimate quick, close;
    uint64_t held_bytes = 0;
    LhPlanCase c;
    bool whole;

    if (!lh_plan_case_init(&c, space, point, NULL) || !lh_plan_estimate_quick(&c, &quick, NULL)) {
        ck_assert_msg(truth.time_ps == 0, "%s: refused, but it runs", text);
        return false;
    }
    program = lh_plan_case_program(&c, NULL);
    whole = lh_plan_estimate_close(&c, program, LH_TIME_NEVER, &close);
    ck_assert_msg(whole && truth.time_ps > 0, "%s: not refused, but it does not run", text);
    ck_assert_int_le(quick.time_ps, lh_plan_estimate_messages(&c));
    ck_assert_msg(lh_plan_estimate_refined(&c) <= truth.time_ps,
                  "%s: with exchanges %" G_GINT64_FORMAT " ps, simulated %" G_GINT64_FORMAT, text,
                  lh_plan_estimate_refined(&c), truth.time_ps);
    ck_assert_msg(quick.time_ps <= truth.time_ps && close.time_ps <= truth.time_ps &&
                      lh_plan_estimate_messages(&c) <= truth.time_ps,
                  "%s: estimates %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
                  " with messages and %" G_GINT64_FORMAT " ps, simulated %" G_GINT64_FORMAT,
                  text, quick.time_ps, lh_plan_estimate_messages(&c), close.time_ps, truth.time_ps);
    ck_assert_msg(quick.peak_bytes <= truth.peak_bytes && close.peak_bytes == truth.peak_bytes,
                  "%s: peaks %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT
                  ", simulated %" G_GUINT64_FORMAT,
                  text, quick.peak_bytes, close.peak_bytes, truth.peak_bytes);
    for (int i = 0; i < LH_CATEGORIES; i++)
        held_bytes += close.by_category[i];
    ck_assert_uint_eq(held_bytes, close.peak_bytes);
    ck_assert(truth.fits == (close.limit_bytes == 0 || close.peak_bytes <= close.limit_bytes));
    if (point % 4 == 0)
        ck_assert_msg(ends_within(&c, program, truth.time_ps) &&
                          !ends_within(&c, program, truth.time_ps - 1),
                      "%s: cut off too early or too late", text);
    return true;
}

static const char *
pick(const char *const *words, uint64_t seed, uint32_t what)
{
    return words[lh_rng_bits(seed, what, 0) % g_strv_length((char **)words)];
}

/* A random question; some have no answer. */
static char *
random_members(uint64_t seed)
{
    static const char *const models[] = { "gpt3-125m",
                                          "llama-3.1-405b-4l",
                                          "llama-3-70b-12l",
                                          "tnl-385m",
                                          "llama-3-8b",
                                          "mixtral-8x7b",
                                          "deepseek-v3",
                                          "minimax-text-01",
                                          "qwen3-8b",
                                          "llama-33h",
                                          NULL };
    static const char *const clusters[] = { "dfa-2node:2",     "hgx-h100:1", "dgx-a100-80g:2",
                                            "hgx-b200:1",      "nvl72:1",    "pcie-l40s:1",
                                            "fat-tree-a100:2", NULL };
    static const char *const ranks[] = { "2", "4", "6", "8", "12", "16", NULL };
    static const char *const lengths[] = { "4K", "8K", "16K", "48K", "96K", NULL };
    static const char *const networks[] = { "fair", "fair", "alpha-beta", "fifo", NULL };
    static const char *const collectives[] = { "auto", "ring",        "tree",  "pairwise", "direct",
                                               "nccl", "closed-form", "fluid", NULL };
    static const char *const frameworks[] = {
        "pytorch-fsdp", "megatron-lm", "deepspeed", "fairscale", "torchtitan", "lightseq", NULL
    };
    static const char *const jitters[] = { "0", "0", "0.1", NULL };
    static const char *const pipelines[] = { "",
                                             "",
                                             ", \"pipeline_model_parallel_size\": 2",
                                             ", \"pipeline_model_parallel_size\": 3",
                                             ", \"pipeline_model_parallel_size\": 4",
                                             NULL };
    const char *network = pick(networks, seed, 5);
    const bool fair = strcmp(network, "fair") == 0;

    return g_strdup_printf(
        "\"model\": \"%s\", \"cluster\": \"%s\", \"ranks\": %s, \"seq_length\": \"%s\", "
        "\"network\": \"%s\", \"collectives\": \"%s\", \"framework\": \"%s\", \"jitter\": %s, "
        "\"pad\": \"heads\"%s",
        pick(models, seed, 1), pick(clusters, seed, 2), pick(ranks, seed, 3),
        pick(lengths, seed, 4), network, fair ? pick(collectives, seed, 6) : "ring",
        pick(frameworks, seed, 7), pick(jitters, seed, 8), pick(pipelines, seed, 11));
}

/* Checks points of one question, spread over its shapes. Returns how many were checked. */
static guint
check_question(uint64_t seed, guint points, const char *more)
{
    g_autofree char *random = random_members(seed);
    g_autofree char *members = g_strconcat(random, more, NULL);
    guint looked = 0;
    Case c;

    if (case_try(&c, members, UINT64_C(1) << (lh_rng_bits(seed, 9, 0) % 4), NULL)) {
        for (guint i = 0; i < 4 * points && looked < points; i++)
            looked +=
                check_estimates(c.space, (guint)(lh_rng_bits(seed, 10, i) % c.space->points->len));
    }
    case_clear(&c);
    return looked;
}

/* A question whose embedding gradients are zeroed in the first of eight micro-batches. */
#define ZEROS_ONCE 276

START_TEST(estimates_never_exceed_simulations)
{
    const guint wanted = take_all() ? 2000 : (guint)test_share(120), of_each = 10;
    guint looked = check_question(ZEROS_ONCE, of_each, "");

    for (uint64_t seed = 1; looked < wanted; seed++) {
        looked += check_question(seed, of_each, "");
        ck_assert_uint_lt(seed, wanted); /* most questions have points */
    }
}
END_TEST

/* A given set of modules, or some layers, leaves points of one policy, whose estimates hold. */
START_TEST(estimates_hold_for_given_recomputation)
{
    static const char *const given[] = {
        ", \"recompute_modules\": \"core_attn,layernorm\"",
        ", \"recompute_modules\": \"mlp,layernorm\"",
        ", \"checkpoint\": \"layer\", \"recompute_method\": \"block\", "
        "\"recompute_num_layers\": 2",
        ", \"checkpoint\": \"layer\", \"recompute_method\": \"uniform\", "
        "\"recompute_num_layers\": 2",
        ", \"checkpoint\": \"layer\", \"recompute_method\": \"every\", "
        "\"recompute_num_layers\": 3",
    };
    const guint wanted = (guint)test_share(60);
    guint looked = 0;

    for (uint64_t seed = 1; looked < wanted; seed++) {
        looked += check_question(seed, 3, given[seed % G_N_ELEMENTS(given)]);
        ck_assert_uint_lt(seed, 4 * wanted);
    }
}
END_TEST

static const char *
policy_at(const LhPlanSpace *space, guint point)
{
    return lh_checkpoint_names[lh_plan_point(space, point)->checkpoint];
}

START_TEST(given_recomputation_is_searched_alone)
{
    Case modules = case_of("\"model\": \"llama-3-70b-12l\", \"cluster\": \"hgx-h100:1\", "
                           "\"seq_length\": \"8K\", \"recompute_modules\": \"mlp\"",
                           4);
    Case layers = case_of("\"model\": \"llama-3-70b-12l\", \"cluster\": \"hgx-h100:1\", "
                          "\"seq_length\": \"8K\", \"checkpoint\": \"layer\", "
                          "\"recompute_method\": \"block\", \"recompute_num_layers\": 3",
                          4);

    for (guint i = 0; i < modules.space->points->len; i++)
        ck_assert_str_eq(policy_at(modules.space, i), "selective");
    for (guint i = 0; i < layers.space->points->len; i += 97) {
        g_autoptr(LhScenario) s = lh_plan_point_scenario(layers.space, i);

        ck_assert_str_eq(policy_at(layers.space, i), "layer");
        ck_assert(s == NULL || s->recompute_num_layers == 3);
    }
    case_clear(&modules);
    case_clear(&layers);
}
END_TEST

/* The results of a space, estimated together. */
typedef struct {
    const LhPlanSpace *space;
    guint *found; /* by point: number of results */
    bool messages;
    guint step; /* every @step-th point is compared */
} Each;

/* Estimating a point together with others gives the same estimate, or the same refusal, as
 * alone. */
static void
compare_with_alone(void *data, guint point, const LhPlanEstimate *estimate, const char *reason)
{
    const Each *each = data;
    g_autofree char *text = lh_plan_point_text(each->space, point);
    g_autoptr(GError) error = NULL;
    LhPlanEstimate alone;
    LhPlanCase c;

    each->found[point]++;
    if (point % each->step != 0)
        return;
    if (!lh_plan_case_init(&c, each->space, point, &error) ||
        !lh_plan_estimate_quick(&c, &alone, &error)) {
        ck_assert_msg(estimate == NULL && strcmp(reason, error->message) == 0, "%s: %s", text,
                      error->message);
        return;
    }
    if (each->messages)
        alone.time_ps = lh_plan_estimate_messages(&c);
    ck_assert_msg(estimate != NULL && estimate->time_ps == alone.time_ps &&
                      estimate->peak_bytes == alone.peak_bytes &&
                      estimate->limit_bytes == alone.limit_bytes,
                  "%s: differs from the estimate alone", text);
}

START_TEST(estimates_of_all_points_are_those_of_each)
{
    static const char *const questions[] = {
        "\"model\": \"llama-3-70b-12l\", \"cluster\": \"hgx-h100:1\", \"ranks\": 8, "
        "\"seq_length\": \"8K\"",
        "\"model\": \"minimax-text-01\", \"cluster\": \"dfa-2node:1\", \"ranks\": 4, "
        "\"seq_length\": \"4K\", \"schedule\": [\"ring\", \"lasp2\", \"zigzag\"], "
        "\"shard\": \"fsdp\"",
    };
    g_autofree char *few = g_strconcat(questions[_i], ", \"checkpoint\": \"layer\"", NULL);
    Case c = case_of(test_is_short() ? few : questions[_i], 4);
    g_autofree guint *found = g_new0(guint, c.space->points->len);
    Each each = { c.space, found, _i == 1,
                  (guint)(c.space->points->len * MIN(test_every(), 4) / 100 + 1) };

    ck_assert_uint_gt(c.space->points->len, 50);
    if (test_takes_of((uint64_t)_i + 1, 2))
        lh_plan_estimate_all(&(LhPlanEstimates){ .space = c.space,
                                                 .task.jobs = 1,
                                                 .messages = each.messages,
                                                 .found = compare_with_alone,
                                                 .data = &each });
    for (guint i = 0; test_takes_of((uint64_t)_i + 1, 2) && i < c.space->points->len; i++)
        ck_assert_uint_eq(found[i], 1);
    case_clear(&c);
}
END_TEST

/* The quick estimate extrapolates linearly in the number of layers; for kernels that nothing
 * delays it is exact. */
START_TEST(estimates_of_one_rank_are_exact)
{
    Case c = case_of("\"model\": \"gpt3-125m\", \"cluster\": \"hgx-h100:1\", \"ranks\": 1, "
                     "\"seq_length\": \"8K\", \"checkpoint\": \"layer\"",
                     2);

    for (guint i = 0; i < c.space->points->len; i++) {
        const Truth truth = simulate(c.space, i);
        LhPlanEstimate quick;
        LhPlanCase of;

        ck_assert(lh_plan_case_init(&of, c.space, i, NULL));
        ck_assert(lh_plan_estimate_quick(&of, &quick, NULL));
        ck_assert_double_ge((double)quick.time_ps, 0.99 * (double)truth.time_ps);
        ck_assert_uint_eq(quick.peak_bytes, truth.peak_bytes);
    }
    case_clear(&c);
}
END_TEST

/* ---- searches ---- */

typedef struct {
    const LhPlanSpace *space;
    Truth *truths;
} Brute;

static void
simulate_one(void *data, guint point)
{
    const Brute *brute = data;

    brute->truths[point] = simulate(brute->space, point);
}

static int
by_time(gconstpointer a, gconstpointer b)
{
    const Truth *x = a, *y = b;

    if (x->time_ps != y->time_ps)
        return x->time_ps < y->time_ps ? -1 : 1;
    return x->peak_bytes < y->peak_bytes ? -1 : x->peak_bytes > y->peak_bytes;
}

/* The points that fit, by time. Caller unrefs. */
static GArray *
fitting(const Brute *brute)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(Truth));

    for (guint i = 0; i < brute->space->points->len; i++) {
        if (brute->truths[i].time_ps > 0 && brute->truths[i].fits)
            g_array_append_val(found, brute->truths[i]);
    }
    g_array_sort(found, by_time);
    return found;
}

/* States of points that do not depend on the progress of the search are the same in every
 * search. */
static void
check_states(const LhPlanSearch *search, const Brute *brute)
{
    for (guint i = 0; i < brute->space->points->len; i++) {
        const LhPlanOutcome *o = &search->outcomes[i];
        const Truth *truth = &brute->truths[i];

        ck_assert_int_ne(o->state, LH_POINT_OPEN);
        ck_assert_int_eq(o->state == LH_POINT_REFUSED, truth->time_ps == 0);
        if (o->state == LH_POINT_UNFIT)
            ck_assert(!truth->fits);
        if (o->state == LH_POINT_RAN) {
            ck_assert(truth->fits);
            ck_assert_int_eq(o->time_ps, truth->time_ps);
            ck_assert_uint_eq(o->peak_bytes, truth->peak_bytes);
        } else if (truth->time_ps > 0) {
            ck_assert_int_le(o->time_ps, truth->time_ps);
        }
    }
}

/* The Pareto front, by definition: each point needs less memory than all faster ones. */
static void
check_front(const LhPlanSearch *search, const GArray *truths)
{
    uint64_t least = UINT64_MAX;
    guint at = 0;

    for (guint i = 0; i < search->ran->len; i++) {
        const guint point = g_array_index(search->ran, guint, i);
        const LhPlanOutcome *o = &search->outcomes[point];

        if (!lh_plan_on_front(search, point))
            continue;
        while (at < truths->len && g_array_index(truths, Truth, at).peak_bytes >= least)
            at++;
        ck_assert_uint_lt(at, truths->len);
        ck_assert_int_eq(o->time_ps, g_array_index(truths, Truth, at).time_ps);
        ck_assert_uint_eq(o->peak_bytes, g_array_index(truths, Truth, at).peak_bytes);
        least = o->peak_bytes;
    }
    while (at < truths->len && g_array_index(truths, Truth, at).peak_bytes >= least)
        at++;
    ck_assert_uint_eq(at, truths->len); /* none is missing */
}

static void
check_search(const Brute *brute, guint top, bool front)
{
    const LhPlanSearchOptions options = { .top = top, .front = front, .task.jobs = THREADS };
    g_autoptr(LhPlanSearch) search = lh_plan_search(brute->space, &options);
    g_autoptr(GArray) truths = fitting(brute);

    check_states(search, brute);
    ck_assert_uint_ge(search->ran->len, MIN(top, truths->len));
    for (guint i = 0; i < MIN(top, truths->len); i++) {
        const guint point = g_array_index(search->ran, guint, i);

        ck_assert_int_eq(search->outcomes[point].time_ps, g_array_index(truths, Truth, i).time_ps);
    }
    if (front)
        check_front(search, truths);
    else if (truths->len > 100) /* else there is nothing to prune */
        ck_assert_uint_lt(search->counts[LH_POINT_RAN], truths->len / 2);
}

static void
check_brute(const char *members, uint64_t sequences, guint at_least)
{
    Case c = case_of_few(members, sequences);
    g_autofree Truth *truths = g_new0(Truth, c.space->points->len);
    Brute brute = { c.space, truths };

    ck_assert_uint_ge(c.space->points->len, at_least);
    lh_on_threads_each("brute", THREADS, c.space->points->len, simulate_one, &brute);
    check_search(&brute, 1, false);
    check_search(&brute, 5, false);
    check_search(&brute, 1, true);
    case_clear(&c);
}

/* Without context parallelism a schedule that is refused does not represent one that is not. */
START_TEST(any_schedule_stands_for_all_that_spread_nothing)
{
    Case c = case_of("\"model\": \"gpt3-125m\", \"cluster\": \"dfa-2node:1\", \"ranks\": 4, "
                     "\"seq_length\": \"8K\", \"schedule\": [\"megatron-tp-sp\", \"zigzag\"]",
                     4);
    guint alone = 0;

    for (guint i = 0; i < c.space->points->len; i++) {
        const LhPlanPoint *point = lh_plan_point(c.space, i);

        if (lh_plan_shape(c.space, point)->sizes.context > 1)
            continue;
        ck_assert_str_eq(point->schedule->name, "zigzag");
        alone++;
    }
    ck_assert_uint_gt(alone, 0);
    case_clear(&c);
}
END_TEST

#define LARGE 2000 /* points of a space in full tests */

START_TEST(searches_find_what_simulating_all_finds)
{
    static const struct {
        const char *all, *few; /* members of the scenario, in full and in short tests */
        uint64_t sequences;
    } questions[] = {
        { "\"model\": \"llama-3.1-405b-4l\", \"cluster\": \"dfa-2node:2\", "
          "\"seq_length\": \"32K\"",
          "\"model\": \"llama-3.1-405b-4l\", \"cluster\": \"dfa-2node:1\", \"ranks\": 4, "
          "\"seq_length\": \"32K\"",
          1 },
        { "\"model\": \"gpt3-125m\", \"cluster\": \"hgx-h100:1\", \"seq_length\": \"8K\"",
          "\"model\": \"gpt3-125m\", \"cluster\": \"hgx-h100:1\", \"ranks\": 4, "
          "\"seq_length\": \"8K\", \"checkpoint\": \"selective\"",
          4 },
        { "\"model\": \"llama-3-70b-12l\", \"cluster\": \"pcie-l40s:1\", "
          "\"seq_length\": \"64K\"",
          "\"model\": \"llama-3-70b-12l\", \"cluster\": \"pcie-l40s:1\", "
          "\"seq_length\": \"64K\", \"context_parallel_size\": 4",
          2 },
        { "\"model\": \"llama-3.1-405b-4l\", \"cluster\": \"hgx-h100:2\", \"ranks\": 12, "
          "\"seq_length\": \"16K\", \"schedule\": [\"zigzag\", \"usp\"]",
          "\"model\": \"llama-3.1-405b-4l\", \"cluster\": \"hgx-h100:1\", \"ranks\": 6, "
          "\"seq_length\": \"16K\", \"schedule\": [\"zigzag\"], \"checkpoint\": \"layer\", "
          "\"tensor_model_parallel_size\": \"1\"",
          12 },
    };

    if (!test_takes((uint64_t)_i))
        return;
    if (take_all())
        check_brute(questions[_i].all, questions[_i].sequences, _i == 2 ? 1000 : LARGE);
    else
        check_brute(questions[_i].few, questions[_i].sequences, 100);
}
END_TEST

#define SMALL                                                                                      \
    "\"model\": \"gpt3-125m\", \"cluster\": \"dfa-2node:1\", \"ranks\": 4, "                       \
    "\"seq_length\": \"32K\", \"tensor_model_parallel_size\": \"1\""

typedef struct {
    GString *text;
} Notes;

static bool
recall_nothing(void *data, const LhPlanSpace *space, guint index, LhPlanOutcome *outcome)
{
    (void)data;
    (void)space;
    (void)index;
    (void)outcome;
    return false;
}

static void
note(void *data, const LhPlanSpace *space, guint index, const LhPlanOutcome *o)
{
    Notes *notes = data;

    (void)space;
    g_string_append_printf(notes->text, "%u %d %" G_GINT64_FORMAT " %" G_GUINT64_FORMAT "\n", index,
                           o->state, o->time_ps, o->peak_bytes);
}

static char *
notes_of(const LhPlanSpace *space, guint jobs)
{
    Notes notes = { g_string_new(NULL) };
    const LhPlanMemory memory = { recall_nothing, note, &notes };
    const LhPlanSearchOptions options = { .top = 3, .task.jobs = jobs, .memory = &memory };
    g_autoptr(LhPlanSearch) search = lh_plan_search(space, &options);

    for (guint i = 0; i < search->ran->len; i++)
        g_string_append_printf(notes.text, "%u,", g_array_index(search->ran, guint, i));
    return g_string_free(notes.text, FALSE);
}

START_TEST(searches_do_not_depend_on_threads)
{
    Case c = case_of_few(SMALL, 1);
    g_autofree char *one = notes_of(c.space, 1), *two = notes_of(c.space, 2),
                    *five = notes_of(c.space, 5);

    ck_assert_uint_gt(strlen(one), 100);
    ck_assert_str_eq(one, two);
    ck_assert_str_eq(one, five);
    case_clear(&c);
}
END_TEST

/* Ends the search after a number of simulated points. */
static bool
end_early(void *data, const LhProgress *at)
{
    const LhPlanProgress *found = at->more;
    const guint *most = data;

    return found == NULL || found->counts[LH_POINT_RAN] < *most;
}

START_TEST(searches_end_when_they_are_told_to)
{
    Case c = case_of_few(SMALL, 1);
    guint most = 3;
    const LhPlanSearchOptions options = {
        .top = 3, .task = { .jobs = THREADS, .progress = end_early, .data = &most }
    };
    LhPlanSearch *search = lh_plan_search(c.space, &options);

    ck_assert(search->interrupted);
    ck_assert_uint_ge(search->counts[LH_POINT_RAN], 3);
    ck_assert_uint_gt(search->counts[LH_POINT_OPEN], 0);
    lh_plan_search_free(search); /* before the space, which it borrows */
    case_clear(&c);
}
END_TEST

/* Ends the search with its first simulated point; notes how many points were estimated then. */
static bool
end_with_first(void *data, const LhProgress *at)
{
    const LhPlanProgress *found = at->more;
    uint64_t *estimated = data;

    if (found == NULL || found->counts[LH_POINT_RAN] == 0)
        return true;
    *estimated = at->done;
    return false;
}

START_TEST(searches_have_a_point_before_all_are_estimated)
{
    Case c = case_of_few(SMALL ", \"micro_batch_size\": 1", 4);
    uint64_t estimated = UINT64_MAX;
    const LhPlanSearchOptions options = {
        .top = 3, .task = { .jobs = THREADS, .progress = end_with_first, .data = &estimated }
    };
    g_autoptr(LhPlanSearch) search = lh_plan_search(c.space, &options);
    const Truth truth = simulate(c.space, g_array_index(search->ran, guint, 0));

    ck_assert(search->interrupted);
    ck_assert_uint_lt(estimated, c.space->points->len);
    ck_assert_int_eq(search->outcomes[g_array_index(search->ran, guint, 0)].time_ps, truth.time_ps);
    g_clear_pointer(&search, lh_plan_search_free);
    case_clear(&c);
}
END_TEST

/* ---- longest sequences ---- */

static bool
any_fits(const char *members, uint64_t tokens)
{
    g_autofree char *with =
        g_strdup_printf("%s, \"seq_length\": %" G_GUINT64_FORMAT, members, tokens);
    Case c = case_of(with, 1);
    bool fits = false;

    for (guint i = 0; i < c.space->points->len && !fits; i++) {
        g_autoptr(LhProgram) program = NULL;
        LhPlanEstimate estimate = { 0 };
        LhPlanCase of;

        if (!lh_plan_case_init(&of, c.space, i, NULL))
            continue;
        program = lh_plan_case_program(&of, NULL);
        if (program == NULL)
            continue;
        lh_plan_estimate_memory(&of, program, &estimate);
        fits = estimate.peak_bytes <= estimate.limit_bytes;
    }
    ck_assert(fits == (lh_plan_find_fitting(c.space, THREADS) != G_MAXUINT));
    if (lh_plan_is_hopeless(c.space->setup, c.space->gpus))
        ck_assert(!fits);
    case_clear(&c);
    return fits;
}

START_TEST(longest_sequence_fits_and_no_longer_one_does)
{
    static const char *const questions[] = {
        "\"model\": \"gpt3-1.3b\", \"cluster\": \"dfa-2node:1\", \"ranks\": 4",
        "\"model\": \"llama-3.1-405b-4l\", \"cluster\": \"hgx-h100:1\", \"checkpoint\": \"none\"",
        "\"model\": \"tnl-385m\", \"cluster\": \"pcie-l40s:1\", \"ranks\": 2",
    };
    g_autofree char *any = g_strdup_printf("%s, \"seq_length\": \"64K\"", questions[_i]);
    g_autoptr(GError) error = NULL;
    LhPlanLongest longest;
    Case c;

    if (!test_takes_of((uint64_t)_i + 1, 3))
        return;
    c = case_of(any, 1);
    ck_assert(lh_plan_longest(c.space, &(LhTask){ .jobs = THREADS }, &longest, &error));
    ck_assert_uint_gt(longest.tokens, 0);
    ck_assert_uint_le(longest.fits.peak_bytes, longest.fits.limit_bytes);
    ck_assert_uint_gt(longest.beyond.peak_bytes, longest.fits.limit_bytes);
    ck_assert(any_fits(questions[_i], longest.tokens));
    ck_assert(!any_fits(questions[_i], longest.tokens + longest.unit));
    ck_assert(!any_fits(questions[_i], 2 * longest.tokens));
    case_clear(&c);
}
END_TEST

START_TEST(smallest_cluster_is_the_smallest)
{
    g_autoptr(GPtrArray) clusters = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(LhPlanAnswer) answer = NULL;
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    LhPlanQuery query = {
        .scenario = scenario, .clusters = clusters, .sequences = 1, .smallest = true, .top = 1
    };
    const LhPlanCluster *cluster;

    g_ptr_array_add(clusters, (gpointer) "dfa-2node");
    lh_scenario_replace(scenario, "model", "gpt3-13b");
    lh_scenario_replace(scenario, "seq_length", "32768");
    lh_scenario_replace(scenario, "checkpoint", "layer");
    if (test_is_short())
        lh_scenario_replace(scenario, "shard", "fsdp");
    answer = lh_plan(&query, &error);
    ck_assert_msg(answer != NULL, "%s", error != NULL ? error->message : "");
    cluster = g_ptr_array_index(answer->clusters, 0);
    ck_assert_uint_eq(cluster->space->gpus, UINT32_C(1) << cluster->sizes_tried);
    ck_assert_uint_gt(cluster->sizes_tried, 0);
    for (guint i = 0; i <= cluster->sizes_tried; i++) {
        g_autofree char *members =
            g_strdup_printf("\"model\": \"gpt3-13b\", \"cluster\": \"dfa-2node:1\", \"ranks\": %u, "
                            "\"checkpoint\": \"layer\"%s",
                            1u << i, only_fsdp());

        ck_assert(any_fits(members, 32768) == (i == cluster->sizes_tried));
    }
}
END_TEST

/* ---- files of points ---- */

static char *
new_file(void)
{
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "longhaul-plan-XXXXXX", NULL);
    const int fd = g_mkstemp(path);

    ck_assert_int_ge(fd, 0);
    g_close(fd, NULL);
    return g_steal_pointer(&path);
}

static void
put(const char *path, const char *text, gsize length)
{
    ck_assert(g_file_set_contents(path, text, (gssize)length, NULL));
}

/* Plans with a file of points, continuing its journal; returns the file's text and @length. */
static char *
run_with_file(const char *path, gsize *length)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(LhPlanAnswer) answer = NULL;
    LhPlanQuery query = {
        .scenario = scenario, .sequences = 1, .top = 3, .task.jobs = THREADS, .points_file = path
    };
    char *text = NULL;

    lh_scenario_replace(scenario, "model", "gpt3-125m");
    lh_scenario_replace(scenario, "cluster", "dfa-2node:1");
    lh_scenario_replace(scenario, "ranks", "4");
    lh_scenario_replace(scenario, "seq_length", "32K");
    lh_scenario_replace(scenario, "tensor_model_parallel_size", "1");
    lh_scenario_replace(scenario, "shard", "fsdp");
    answer = lh_plan(&query, &error);
    ck_assert_msg(answer != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_eq(answer->best, 0);
    ck_assert(g_file_get_contents(path, &text, length, NULL));
    return text;
}

START_TEST(points_go_on_from_any_byte)
{
    g_autofree char *path = new_file();
    g_autofree char *whole = NULL;
    gsize length, again;

    whole = run_with_file(path, &length);
    ck_assert_uint_gt(length, 1000);
    for (guint i = 0; i < (take_all() ? 40 : 8 / MIN(test_every(), 4)); i++) {
        g_autofree char *text = NULL;

        put(path, whole, lh_rng_bits(7, i, 0) % length);
        text = run_with_file(path, &again);
        ck_assert_uint_eq(again, length);
        ck_assert_mem_eq(text, whole, length);
    }
    g_unlink(path);
}
END_TEST

START_TEST(points_of_another_question_are_refused)
{
    static const char *const texts[] = {
        "hello\n",
        "{\"schema\": \"longhaul.points/1\"}\n",
        "x",
    };
    g_autofree char *path = new_file();

    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *after = NULL;

        put(path, texts[i], strlen(texts[i]));
        ck_assert_ptr_null(lh_search_log_open(path, "0123", &error));
        ck_assert_int_eq(error->code, LH_ERROR_INPUT);
        ck_assert(g_file_get_contents(path, &after, NULL, NULL));
        ck_assert_str_eq(after, texts[i]);
    }
    g_unlink(path);
}
END_TEST

START_TEST(lines_that_no_plan_writes_are_refused)
{
    static const char *const lines[] = {
        "{}",
        "[1]",
        "{\"cluster\": \"a\", \"point\": 0, \"way\": \"\", \"state\": \"open\", \"close\": false, "
        "\"time_ps\": 1, \"peak_bytes\": 1}",
        "{\"cluster\": \"a\", \"point\": 0, \"way\": \"\", \"state\": \"refused\", \"close\": "
        "true, \"time_ps\": 1, \"peak_bytes\": 1}",
        "{\"cluster\": \"a\", \"point\": 0, \"way\": \"\", \"state\": \"simulated\", \"close\": "
        "true, \"time_ps\": 1, \"peak_bytes\": 1}",
        "{\"cluster\": \"a\", \"point\": 0, \"way\": \"\", \"state\": \"cut\", \"close\": true, "
        "\"time_ps\": -1, \"peak_bytes\": 1}",
    };
    g_autofree char *path = new_file();

    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhSearchLog) points = lh_search_log_open(path, "0123", &error);
        g_autofree char *begun = NULL, *text = NULL;

        ck_assert_ptr_nonnull(points);
        ck_assert(lh_search_log_close(g_steal_pointer(&points), &error));
        ck_assert(g_file_get_contents(path, &begun, NULL, NULL));
        text = g_strconcat(begun, lines[i], "\n", NULL);
        put(path, text, strlen(text));
        ck_assert_ptr_null(lh_search_log_open(path, "0123", &error));
        ck_assert_int_eq(error->code, LH_ERROR_INPUT);
        ck_assert_ptr_nonnull(strstr(error->message, "line 2"));
        put(path, "", 0);
    }
    g_unlink(path);
}
END_TEST

START_TEST(journals_need_a_regular_file)
{
    static const struct {
        const char *path, *said;
        LhErrorCode code;
    } wrong[] = {
        { "/no/such/folder/points.jsonl", "cannot be opened: No such file or directory",
          LH_ERROR_RUNTIME },
        { "/dev/null", "allowed is a regular file", LH_ERROR_INPUT },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GPtrArray) lines = NULL;
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(lh_append_log_open(wrong[i].path, "first", &lines, &error));
        ck_assert(g_error_matches(error, LH_ERROR, (int)wrong[i].code));
        ck_assert_msg(strstr(error->message, wrong[i].said) != NULL, "%s", error->message);
    }
}
END_TEST

START_TEST(journals_have_one_writer)
{
    g_autofree char *path = new_file();
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) lines = NULL, none = NULL;
    g_autoptr(LhAppendLog) first = lh_append_log_open(path, "first", &lines, &error);
    g_autoptr(LhAppendLog) second = lh_append_log_open(path, "first", &none, &error);

    ck_assert_ptr_nonnull(first);
    ck_assert_uint_eq(lines->len, 0);
    ck_assert_ptr_null(second);
    ck_assert_int_eq(error->code, LH_ERROR_RUNTIME);
    lh_append_log_append(first, "a");
    lh_append_log_append(first, "b");
    ck_assert(lh_append_log_close(g_steal_pointer(&first), NULL));
    g_clear_pointer(&lines, g_ptr_array_unref);
    first = lh_append_log_open(path, "first", &lines, NULL);
    ck_assert_uint_eq(lines->len, 2);
    ck_assert_str_eq(g_ptr_array_index(lines, 1), "b");
    g_unlink(path);
}
END_TEST

/* ---- scenarios as text ---- */

START_TEST(copies_of_scenarios_are_the_same)
{
    static const char text[] =
        "{\"schema\": \"longhaul.scenario/1\", \"cluster\": \"hgx-h100:2\", \"ranks\": 12,"
        " \"schedule\": [\"usp\", \"ring\"], \"seq_length\": \"1M\", \"jitter\": 0.125,"
        " \"straggler\": [{\"rank\": 3, \"factor\": 1.5}, {\"rank\": 4, \"factor\": 2}],"
        " \"link_fault\": [{\"tier\": \"nic\", \"node\": 1, \"factor\": 0.5}],"
        " \"hierarchical_context_parallel_sizes\": [4, 3], \"no_overlap\": true, \"step\": true,"
        " \"shard\": \"zero1\", \"grid\": \"3x4\", \"seed\": 18446744073709551615}";
    g_autoptr(LhScenario) s = lh_scenario_parse("s.json", text, strlen(text), NULL);
    g_autoptr(LhScenario) copy = NULL;
    g_autoptr(GString) lines = g_string_new(NULL), again = g_string_new(NULL);

    ck_assert_ptr_nonnull(s);
    copy = lh_scenario_copy(s);
    lh_scenario_lines(s, lines);
    lh_scenario_lines(copy, again);
    ck_assert_str_eq(lines->str, again->str);
    ck_assert_ptr_nonnull(strstr(lines->str, "straggler=4:2\n"));
    ck_assert_ptr_nonnull(strstr(lines->str, "hierarchical_context_parallel_sizes=4,3\n"));
    ck_assert_ptr_nonnull(strstr(lines->str, "schedule=ring\n"));
    ck_assert_ptr_nonnull(strstr(lines->str, "seq_length=1048576\n"));
    ck_assert_ptr_nonnull(strstr(lines->str, "seed=18446744073709551615\n"));
    ck_assert_ptr_null(strstr(lines->str, "checkpoint"));
    lh_scenario_replace(copy, "seq_length", "2048");
    ck_assert_uint_eq(copy->seq_length, 2048);
    ck_assert_uint_eq(s->seq_length, 1048576);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("plan");
    TCase *plan = tcase_create("plan");
    SRunner *runner;
    int failed;

    tcase_set_timeout(plan, 3600);
    tcase_add_test(plan, estimates_never_exceed_simulations);
    tcase_add_loop_test(plan, estimates_of_all_points_are_those_of_each, 0, 2);
    tcase_add_test(plan, estimates_of_one_rank_are_exact);
    tcase_add_test(plan, estimates_hold_for_given_recomputation);
    tcase_add_test(plan, given_recomputation_is_searched_alone);
    tcase_add_loop_test(plan, searches_find_what_simulating_all_finds, 0, 4);
    tcase_add_test(plan, any_schedule_stands_for_all_that_spread_nothing);
    tcase_add_test(plan, searches_do_not_depend_on_threads);
    tcase_add_test(plan, searches_end_when_they_are_told_to);
    tcase_add_test(plan, searches_have_a_point_before_all_are_estimated);
    tcase_add_loop_test(plan, longest_sequence_fits_and_no_longer_one_does, 0, 3);
    tcase_add_test(plan, smallest_cluster_is_the_smallest);
    tcase_add_test(plan, points_go_on_from_any_byte);
    tcase_add_test(plan, points_of_another_question_are_refused);
    tcase_add_test(plan, lines_that_no_plan_writes_are_refused);
    tcase_add_test(plan, journals_need_a_regular_file);
    tcase_add_test(plan, journals_have_one_writer);
    tcase_add_test(plan, copies_of_scenarios_are_the_same);
    suite_add_tcase(suite, plan);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
