/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remedies: as options they are the same step, the ladder's set fits and costs hardly more than the
 * best of all sets, bounds of points stay below any set, and plans find what trying everything
 * finds.
 */
#include "base/files/data_files.h"
#include "base/rng.h"
#include "compare/step_plan.h"
#include "planner/estimate_all.h"
#include "planner/plan.h"
#include "planner/search_record.h"
#include "remedy/ladder.h"
#include "remedy/remedy_menu.h"
#include "run_tests.h"
#include "scenario/setting.h"
#include "scenario/setup_simulate.h"
#include "share.h"

#include <math.h>
#include <string.h>

#define THREADS 2

/* ---- cases ---- */

typedef struct {
    LhScenario *scenario;
    LhSetup *setup;
    LhLadder ladder;
} Case;

static LhScenario *
scenario_of(const char *members)
{
    g_autofree char *text =
        g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", \"step\": true, %s}", members);
    g_autoptr(GError) error = NULL;
    LhScenario *s = lh_scenario_parse("s.json", text, strlen(text), &error);

    ck_assert_msg(s != NULL, "%s: %s", members, error != NULL ? error->message : "");
    return s;
}

static Case
case_of(const char *members)
{
    Case c = { .scenario = scenario_of(members) };
    g_autoptr(GError) error = NULL;

    c.setup = lh_setup_new(c.scenario, &error);
    ck_assert_msg(c.setup != NULL, "%s: %s", members, error != NULL ? error->message : "");
    c.ladder = (LhLadder){ .setup = c.setup, .schedule = g_ptr_array_index(c.setup->schedules, 0) };
    return c;
}

static void
case_clear(Case *c)
{
    lh_setup_free(c->setup);
    lh_scenario_free(c->scenario);
}

/* Small steps of all frameworks that have remedies. */
static const char *const cases[] = {
    "\"model\": \"llama-3-70b-12l\", \"cluster\": \"hgx-h100:1\", \"seq_length\": \"32K\", "
    "\"schedule\": [\"zigzag\"], \"framework\": \"megatron-lm\", \"shard\": \"zero1\", "
    "\"tensor_model_parallel_size\": \"2\"",
    "\"model\": \"llama-3-70b-12l\", \"cluster\": \"hgx-h100:1\", \"seq_length\": \"16K\", "
    "\"schedule\": [\"ring\"], \"framework\": \"megatron-lm\", \"shard\": \"zero1\", "
    "\"pipeline_model_parallel_size\": 2, \"num_micro_batches\": 3",
    "\"model\": \"qwen3-8b\", \"cluster\": \"hgx-h100:1\", \"seq_length\": \"64K\", "
    "\"schedule\": [\"ulysses\"], \"framework\": \"trl\"",
    "\"model\": \"gpt3-125m\", \"cluster\": \"dgx-a100-80g:1\", \"seq_length\": \"64K\", "
    "\"schedule\": [\"te-p2p\"], \"framework\": \"deepspeed\", \"checkpoint\": \"layer\", "
    "\"shard\": \"fsdp\"",
    "\"model\": \"llama-3-8b\", \"cluster\": \"hgx-h100:1\", \"seq_length\": \"64K\", "
    "\"schedule\": [\"zigzag\"], \"framework\": \"torchtitan\", \"checkpoint\": \"selective\"",
    "\"model\": \"mixtral-8x7b\", \"cluster\": \"hgx-h100:1\", \"seq_length\": \"16K\", "
    "\"schedule\": [\"ring\"], \"framework\": \"megatron-lm\", \"shard\": \"fsdp\"",
};

static LhScenario *
with_remedies(const LhScenario *s, const LhRemedies *r)
{
    LhScenario *with = lh_scenario_copy(s);

    lh_remedies_replace(r, with);
    return with;
}

/* The step with @r, by options. */
static LhStepAnswer
answer_of(const LhScenario *s, const LhRemedies *r)
{
    g_autoptr(LhScenario) with = with_remedies(s, r);
    g_autofree char *options = lh_remedies_options(r);
    g_autoptr(GError) error = NULL;
    LhStepAnswer answer;

    if (!lh_step_answer(with, &answer, &error))
        ck_abort_msg("%s: %s", options, error->message);
    return answer;
}

static LhStepAnswer
answer_at(const LhScenario *s, const GArray *sets, guint i)
{
    return answer_of(s, &g_array_index(sets, LhRemedies, i));
}

/* Time of the step with @r turned on in its setup. */
static double
time_with(const Case *c, const LhRemedies *r)
{
    LhSetup setup = *c->setup;
    LhSetupStep step = *c->setup->step;
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhSimResult) result = NULL;

    setup.step = &step;
    lh_remedies_apply(r, &step);
    program = lh_setup_program(&setup, c->ladder.schedule, NULL);
    ck_assert_ptr_nonnull(program);
    result = lh_setup_simulate(&setup, program, NULL, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(result);
    return (double)(result->makespan_ps + lh_step_overhead_ps(&setup)) / (double)LH_PS_PER_S;
}

/* ---- sets ---- */

/* A set as options is the same step as in a setup, and its text is read back. */
START_TEST(options_are_the_same_step)
{
    Case c = case_of(cases[_i]);
    g_autoptr(GArray) sets = lh_ladder_sets(&c.ladder, true);
    const guint step = (guint)MAX(1, sets->len / (test_is_short() ? 3 : 40));

    ck_assert_uint_gt(sets->len, 1);
    for (guint i = 0; i < sets->len; i += step) {
        const LhRemedies *r = &g_array_index(sets, LhRemedies, i);
        const LhStepAnswer answer = answer_of(c.scenario, r);
        g_autofree char *options = lh_remedies_options(r);
        LhRemedies again;
        LhLadderPeak peak;

        ck_assert(lh_ladder_peak(&c.ladder, r, &peak));
        ck_assert_msg(peak.bytes == answer.peak_bytes,
                      "%s: %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, options, peak.bytes,
                      answer.peak_bytes);
        ck_assert_msg(time_with(&c, r) == answer.iteration_s, "%s: another time", options);
        ck_assert_msg(options[0] == '\0' ||
                          (lh_remedies_parse(options, &again) && lh_remedies_equal(r, &again)),
                      "%s is not read back", options);
    }
    case_clear(&c);
}
END_TEST

START_TEST(what_is_no_remedy_is_not_read)
{
    static const char *const wrong[] = { "--loss",
                                         "--loss lost",
                                         "loss fused",
                                         "--tiled-mlp 7",
                                         "--recompute-modules mlp,mlp",
                                         "--recompute-method block",
                                         "--recompute-num-layers 3",
                                         "--cpu-offloading-num-layers 0",
                                         "--cpu-offloading-num-layers 65535",
                                         "--cpu-offloading-num-layers al",
                                         "--shard fsdp",
                                         "--loss fused --loss" };
    LhRemedies r;

    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++)
        ck_assert_msg(!lh_remedies_parse(wrong[i], &r), "%s is read", wrong[i]);
}
END_TEST

/* Every remedy of a framework's file is a value of its option, and its words say so. */
START_TEST(files_name_values_of_options)
{
    g_auto(GStrv) names = lh_data_list("frameworks");
    guint remedies = 0;

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhFramework) f = lh_framework_load(names[i], NULL);

        ck_assert_ptr_nonnull(f);
        for (guint k = 0; f->remedies != NULL && k < f->remedies->len; k++) {
            const LhFrameworkRemedy *r = &g_array_index(f->remedies, LhFrameworkRemedy, k);
            g_autoptr(LhScenario) s = lh_scenario_new();
            const bool numbers = strcmp(r->value, "layers") == 0;
            const LhField *field = lh_scenario_options();
            g_autoptr(GError) error = NULL;

            while (strcmp(field->name, lh_remedy_option_names[r->option]) != 0)
                field++;
            ck_assert_msg(lh_scenario_set(s, field, numbers ? "1" : r->value, &error), "%s: %s",
                          names[i], error != NULL ? error->message : "");
            ck_assert_msg(!numbers || strstr(r->words, "{}") != NULL, "%s: %s", names[i], r->words);
            remedies++;
        }
    }
    ck_assert_uint_gt(remedies, 15);
}
END_TEST

static bool
offers_offload(const char *more)
{
    g_autofree char *members =
        g_strconcat("\"model\": \"llama-3-8b\", \"cluster\": \"hgx-h100:1\", \"framework\": "
                    "\"megatron-lm\", \"schedule\": [\"ring\"]",
                    more, NULL);
    Case c = case_of(members);
    bool offers = false;
    LhRemedyMenu menu;

    lh_remedy_menu(c.setup, &menu);
    for (guint i = 0; i < menu.count; i++)
        offers = offers || menu.switches[i].adds.offload != 0;
    case_clear(&c);
    return offers;
}

/* Megatron-LM refuses offload with recomputation, and with pipelines. */
START_TEST(menus_keep_to_what_frameworks_refuse)
{
    ck_assert(offers_offload(""));
    ck_assert(!offers_offload(", \"checkpoint\": \"layer\""));
    ck_assert(!offers_offload(", \"pipeline_model_parallel_size\": 2, \"num_micro_batches\": 2"));
}
END_TEST

/* What the scenario gives is on no menu; types need sharded states where the framework says so. */
START_TEST(menus_leave_what_is_given)
{
    Case free = case_of(cases[0]), given;
    g_autofree char *members = g_strconcat(
        cases[0], ", \"loss\": \"eager\", \"checkpoint\": \"none\", \"exp_avg_dtype\": \"fp32\"",
        NULL);
    LhRemedyMenu all, some;

    given = case_of(members);
    lh_remedy_menu(free.setup, &all);
    lh_remedy_menu(given.setup, &some);
    for (guint i = 0; i < some.count; i++) {
        const LhRemedies *adds = &some.switches[i].adds;

        ck_assert(adds->loss == 0 && adds->modules == 0 && adds->method == 0 && adds->moments == 0);
    }
    ck_assert_uint_gt(all.count, some.count);
    ck_assert_uint_gt(some.count, 0);
    case_clear(&free);
    case_clear(&given);
    free = case_of("\"model\": \"llama-3-8b\", \"cluster\": \"hgx-h100:1\", \"framework\": "
                   "\"megatron-lm\", \"shard\": \"ddp\", \"schedule\": [\"ring\"]");
    lh_remedy_menu(free.setup, &all);
    for (guint i = 0; i < all.count; i++)
        ck_assert(!all.switches[i].types);
    case_clear(&free);
}
END_TEST

/* ---- the ladder ---- */

/* A limit between the lowest peak of all sets and the step's own; sets @answers. */
static uint64_t
random_limit(const Case *c, const GArray *sets, LhStepAnswer *answers, uint64_t seed)
{
    uint64_t least = UINT64_MAX, most;

    for (guint i = 0; i < sets->len; i++) {
        answers[i] = answer_at(c->scenario, sets, i);
        least = MIN(least, answers[i].peak_bytes);
    }
    most = answers[0].peak_bytes; /* nothing is turned on */
    ck_assert_uint_lt(least, most);
    return least + lh_rng_bits(seed, 1, 0) % (most - least);
}

/* Whether a number of layers may be lower by one. */
static bool
fits_with_less(const Case *c, LhRemedies r)
{
    LhLadderPeak peak;

    if (r.layers > 1 && r.method == 1 + LH_RECOMPUTE_BLOCK)
        r.layers--;
    else if (r.offload > 1 && r.offload != LH_REMEDIES_ALL_LAYERS)
        r.offload--;
    else
        return false;
    return lh_ladder_peak(&c->ladder, &r, &peak) && peak.fits;
}

/* Time lost against the best of all sets, as part of the step. Numbers of layers may make the
 * ladder better than that. */
#define GAP_MAX 0.01

START_TEST(ladders_end_near_the_best_set)
{
    Case c = case_of(cases[_i]);
    g_autoptr(GArray) sets = lh_ladder_sets(&c.ladder, false);
    g_autofree LhStepAnswer *answers = g_new0(LhStepAnswer, sets->len);
    const uint64_t first = random_limit(&c, sets, answers, 100);

    for (uint64_t seed = 0; seed < (test_is_short() ? 1 : 8); seed++) {
        double best_s = INFINITY;
        guint best = 0;
        LhStepAnswer found;
        LhRemedies r;

        c.ladder.limit_bytes =
            seed == 0 ? first : answers[lh_rng_bits(seed, 2, 0) % sets->len].peak_bytes;
        if (answers[0].peak_bytes <= c.ladder.limit_bytes)
            continue;
        for (guint i = 0; i < sets->len; i++) {
            if (answers[i].peak_bytes <= c.ladder.limit_bytes && answers[i].iteration_s < best_s) {
                best_s = answers[i].iteration_s;
                best = i;
            }
        }
        ck_assert(lh_ladder_climb(&c.ladder, false, &r));
        found = answer_of(c.scenario, &r);
        ck_assert_uint_le(found.peak_bytes, c.ladder.limit_bytes);
        ck_assert(!fits_with_less(&c, r));
        if (g_getenv("LONGHAUL_TEST_GAPS") != NULL) {
            g_autofree char *by = lh_remedies_options(&r);
            g_autofree char *than = lh_remedies_options(&g_array_index(sets, LhRemedies, best));

            g_print("%d: %.5f, %s; best %s\n", _i, found.iteration_s / best_s - 1, by, than);
        }
        ck_assert_msg(found.iteration_s <= best_s * (1 + GAP_MAX), "%d: %g s, best %g s", _i,
                      found.iteration_s, best_s);
    }
    c.ladder.limit_bytes = 1;
    ck_assert(!lh_ladder_climb(&c.ladder, true, &(LhRemedies){ 0 }));
    case_clear(&c);
}
END_TEST

/* Types are turned on only if nothing else makes it fit. */
START_TEST(types_come_last)
{
    Case c = case_of(cases[0]);
    g_autoptr(GArray) plain = lh_ladder_sets(&c.ladder, false);
    uint64_t least = UINT64_MAX;
    LhRemedies r;

    for (guint i = 0; i < plain->len; i++) {
        LhLadderPeak peak;

        ck_assert(lh_ladder_peak(&c.ladder, &g_array_index(plain, LhRemedies, i), &peak));
        least = MIN(least, peak.bytes);
    }
    c.ladder.limit_bytes = least;
    ck_assert(lh_ladder_climb(&c.ladder, true, &r));
    ck_assert(r.moments == 0 && r.params == 0 && r.grads == 0);
    c.ladder.limit_bytes = least - 1;
    ck_assert(!lh_ladder_climb(&c.ladder, false, &r));
    ck_assert(lh_ladder_climb(&c.ladder, true, &r));
    ck_assert(r.moments != 0 || r.grads != 0);
    case_clear(&c);
}
END_TEST

/* ---- points of plans ---- */

static LhPlanSpace *
space_of(const LhScenario *s)
{
    g_autoptr(GError) error = NULL;
    LhPlanSpace *space = lh_plan_space_new(s, NULL, 1, THREADS, &error);

    ck_assert_msg(space != NULL, "%s", error != NULL ? error->message : "");
    space->remedies = true;
    return space;
}

/* Small questions in which few points fit as they are. */
static const char *const questions[] = {
    "\"model\": \"llama-3-8b\", \"cluster\": \"hgx-h100:1\", \"seq_length\": \"256K\", "
    "\"schedule\": [\"zigzag\", \"ulysses\"], \"framework\": \"megatron-lm\", \"shard\": \"fsdp\"",
    "\"model\": \"qwen3-8b\", \"cluster\": \"hgx-h100:1\", \"seq_length\": \"1200K\", "
    "\"schedule\": [\"ulysses\", \"ring\"], \"framework\": \"trl\", \"shard\": \"fsdp\"",
    "\"model\": \"gpt3-13b\", \"cluster\": \"dgx-a100-80g:1\", \"seq_length\": \"640K\", "
    "\"schedule\": [\"zigzag\"], \"framework\": \"deepspeed\", \"context_parallel_size\": 8",
    "\"model\": \"llama-3-8b\", \"cluster\": \"hgx-h100:1\", \"seq_length\": \"384K\", "
    "\"schedule\": [\"zigzag\"], \"framework\": \"torchtitan\", \"context_parallel_size\": 8",
};

typedef struct {
    LhTime time_ps;
    uint64_t peak_bytes;
} Bound;

static void
take_bound(void *data, guint point, const LhPlanEstimate *estimate, const char *reason)
{
    Bound *bounds = data;

    (void)reason;
    if (estimate != NULL)
        bounds[point] = (Bound){ estimate->time_ps, estimate->peak_bytes };
}

/* Bounds of a point's time are below those of all sets; its least memory, too. */
START_TEST(bounds_hold_for_all_sets)
{
    g_autoptr(LhScenario) s = scenario_of(questions[_i]);
    g_autoptr(LhPlanSpace) space = space_of(s);
    g_autofree Bound *bounds = g_new0(Bound, space->points->len);
    g_autofree Bound *least = g_new0(Bound, space->points->len);
    guint looked = 0;

    lh_plan_estimate_all(&(LhPlanEstimates){ .space = space,
                                             .task.jobs = THREADS,
                                             .messages = true,
                                             .found = take_bound,
                                             .data = bounds });
    lh_plan_estimate_all(&(LhPlanEstimates){ .space = space,
                                             .task.jobs = THREADS,
                                             .least = true,
                                             .types = true,
                                             .loss = 1,
                                             .found = take_bound,
                                             .data = least });
    for (guint i = 0; i < 40 && looked < (test_is_short() ? 1 : 6); i++) {
        const guint point = (guint)(lh_rng_bits(3, 4, i) % space->points->len);
        g_autoptr(LhScenario) of = lh_plan_point_scenario(space, point);
        g_autoptr(GArray) sets = NULL;
        LhPlanCase c;

        if (bounds[point].time_ps == 0 || !lh_plan_case_init(&c, space, point, NULL))
            continue;
        looked++;
        sets = lh_ladder_sets(&(LhLadder){ &c.setup, c.schedule, 0 }, true);
        for (guint k = 0; k < sets->len; k += 1 + (guint)(lh_rng_bits(3, 5, k) % 40)) {
            const LhRemedies *r = &g_array_index(sets, LhRemedies, k);
            const LhStepAnswer answer = answer_of(of, r);
            g_autofree char *options = lh_remedies_options(r);

            ck_assert_msg((double)bounds[point].time_ps / (double)LH_PS_PER_S <=
                              answer.iteration_s * (1 + 1e-12),
                          "%s: bound %g s, simulated %g s", options,
                          (double)bounds[point].time_ps / (double)LH_PS_PER_S, answer.iteration_s);
            ck_assert_msg(r->loss == 0 || least[point].peak_bytes <= answer.peak_bytes,
                          "%s: bound %" G_GUINT64_FORMAT ", simulated %" G_GUINT64_FORMAT, options,
                          least[point].peak_bytes, answer.peak_bytes);
        }
    }
    ck_assert_uint_gt(looked, 0);
}
END_TEST

/* Time of a point with the ladder's remedies; INFINITY if it does not fit even so. */
static double
time_by_hand(const LhPlanSpace *space, guint point)
{
    LhPlanPoint plain = *lh_plan_point(space, point);
    LhRemedies r = { 0 };
    LhLadderPeak peak;
    LhLadder ladder;
    LhPlanCase c;

    if (!lh_plan_case_init(&c, space, point, NULL))
        return INFINITY;
    plain.remedies = r;
    lh_plan_case_policies(&c, &plain);
    ladder = (LhLadder){ &c.setup, c.schedule, lh_plan_limit_bytes(&c.setup) };
    if (!lh_ladder_peak(&ladder, &r, &peak) || (!peak.fits && !lh_ladder_climb(&ladder, false, &r)))
        return INFINITY;
    lh_remedies_apply(&r, &c.step);
    {
        g_autoptr(LhProgram) program = lh_plan_case_program(&c, NULL);
        g_autoptr(LhSimResult) result =
            lh_setup_simulate(&c.setup, program, NULL, NULL, NULL, NULL);

        return result == NULL ? INFINITY
                              : (double)(result->makespan_ps + lh_step_overhead_ps(&c.setup)) /
                                    (double)LH_PS_PER_S;
    }
}

/* The fastest point of a plan is that of all points with their ladders; sim says the same of each,
 * to the byte. */
START_TEST(plans_find_what_climbing_everywhere_finds)
{
    g_autoptr(LhScenario) s = scenario_of(questions[_i]);
    const LhPlanQuery query = {
        .scenario = s, .sequences = 1, .top = 3, .remedies = true, .task.jobs = THREADS
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhPlanAnswer) answer = lh_plan(&query, &error);
    const LhPlanCluster *cluster;
    double best_s = INFINITY;
    guint remedied = 0;

    ck_assert_msg(answer != NULL, "%s", error != NULL ? error->message : "");
    cluster = g_ptr_array_index(answer->clusters, 0);
    ck_assert_uint_gt(cluster->ways->len, 0);
    for (guint i = 0; i < cluster->ways->len; i++) {
        const LhPlanWay *way = g_ptr_array_index(cluster->ways, i);
        g_autoptr(LhScenario) of = lh_plan_point_scenario(cluster->space, way->point);
        const LhStepAnswer by_sim = answer_of(of, &(LhRemedies){ 0 });

        ck_assert(by_sim.fits);
        ck_assert_double_eq(by_sim.iteration_s, way->iteration_s);
        ck_assert_double_eq(by_sim.mfu, way->mfu);
        ck_assert_uint_eq(by_sim.peak_bytes, way->peak_bytes);
        remedied += lh_remedies_any(&lh_plan_point(cluster->space, way->point)->remedies);
    }
    ck_assert_uint_gt(remedied, 0);
    for (guint i = 0; i < cluster->space->points->len && !test_is_short(); i++)
        best_s = MIN(best_s, time_by_hand(cluster->space, i));
    if (!test_is_short())
        ck_assert_double_eq(best_s, lh_plan_best_way(cluster)->iteration_s);
}
END_TEST

/* The longest sequence fits with what it says is on; one unit more fits with nothing. */
START_TEST(longest_sequence_needs_what_it_says)
{
    g_autoptr(LhScenario) s =
        scenario_of(_i == 0 ? "\"model\": \"qwen3-8b\", \"cluster\": \"hgx-h100:1\", \"ranks\": 4, "
                              "\"schedule\": [\"ulysses\"], \"framework\": \"trl\", \"shard\": "
                              "\"fsdp\", \"tensor_model_parallel_size\": \"1\""
                            : "\"model\": \"llama-3-8b\", \"cluster\": \"hgx-h100:1\", \"ranks\": "
                              "4, \"schedule\": [\"zigzag\"], \"framework\": \"megatron-lm\", "
                              "\"shard\": \"fsdp\", \"tensor_model_parallel_size\": \"2\"");
    g_autoptr(LhPlanSpace) space = space_of(s);
    const LhTask task = { .jobs = THREADS };
    LhPlanLongest longest;

    ck_assert(lh_plan_longest(space, &task, &longest, NULL));
    for (guint more = 0; more < (_i > 0 && test_is_short() ? 1 : 2); more++) {
        g_autofree char *length =
            g_strdup_printf("%" G_GUINT64_FORMAT, longest.tokens + more * longest.unit);
        g_autoptr(LhScenario) at = lh_scenario_copy(s);
        g_autoptr(LhPlanSpace) there = NULL;
        bool fits = false;

        lh_scenario_replace(at, "seq_length", length);
        there = space_of(at);
        for (guint i = 0; i < there->points->len; i++) {
            LhLadderPeak peak;
            LhPlanCase c;

            if (!lh_plan_case_init(&c, there, i, NULL))
                continue;
            if (more == 0 && i == longest.point) {
                const LhLadder ladder = { &c.setup, c.schedule, longest.fits.limit_bytes };

                ck_assert(lh_ladder_peak(&ladder, &longest.on, &peak) && peak.fits);
                ck_assert_uint_eq(peak.bytes, longest.fits.peak_bytes);
                fits = true;
            } else if (more == 1) {
                const LhLadder ladder = { &c.setup, c.schedule, longest.fits.limit_bytes };
                g_autoptr(GArray) sets = lh_ladder_sets(&ladder, false);

                for (guint k = 0; k < sets->len; k++)
                    fits = fits ||
                           (lh_ladder_peak(&ladder, &g_array_index(sets, LhRemedies, k), &peak) &&
                            peak.fits);
            }
        }
        ck_assert(fits == (more == 0));
    }
}
END_TEST

/* Each remedy of the table has the peak and the time that sim finds with all up to it. */
START_TEST(tables_of_remedies_add_up)
{
    g_autoptr(LhScenario) s = scenario_of(questions[_i]);
    const LhPlanQuery query = {
        .scenario = s, .sequences = 1, .top = 1, .remedies = true, .fit = true, .task.jobs = THREADS
    };
    g_autoptr(LhPlanAnswer) answer = lh_plan(&query, NULL);
    const LhPlanCluster *cluster = g_ptr_array_index(answer->clusters, 0);
    const LhPlanWay *best = lh_plan_best_way(cluster);
    const LhPlanFit *fit = cluster->fit;
    LhRemedies so_far = { 0 };
    double time_s;

    ck_assert_ptr_nonnull(fit);
    ck_assert(fit->fits && fit->steps->len > 0);
    time_s = fit->as_is_s;
    ck_assert_uint_gt(fit->peak.bytes, fit->limit_bytes);
    for (guint i = 0; i < fit->steps->len; i++) {
        const LhFitStep *step = &g_array_index(fit->steps, LhFitStep, i);

        lh_remedies_add(&so_far, &step->adds);
        ck_assert(step->before.bytes == (i == 0 ? fit->peak.bytes : (step - 1)->after.bytes));
        time_s += step->lost_s;
        ck_assert(step->after.fits == (i + 1 == fit->steps->len) || step->after.fits);
        ck_assert_uint_eq(step->before.by_category[lh_fit_largest(&step->before)] > 0, 1);
    }
    ck_assert(lh_remedies_equal(&so_far, &lh_plan_point(cluster->space, best->point)->remedies));
    ck_assert_double_eq_tol(time_s, best->iteration_s, 1e-9 * time_s);
    ck_assert_uint_eq(g_array_index(fit->steps, LhFitStep, fit->steps->len - 1).after.bytes,
                      best->peak_bytes);
}
END_TEST

/* A point's remedies are part of its line in a file of points. */
START_TEST(records_keep_remedies)
{
    LhPlanOutcome outcome = { .state = LH_POINT_OPEN, .close = true, .time_ps = 5 }, again;
    g_autofree char *cluster = NULL, *text = NULL;
    guint point;

    ck_assert(lh_remedies_parse("--loss tiled --tiled-mlp auto --recompute-method every "
                                "--recompute-num-layers 2 --exp-avg-dtype 8bit "
                                "--main-params-dtype none --main-grads-dtype bf16",
                                &outcome.remedies));
    text = lh_search_record_text("c", 7, "way", &outcome);
    ck_assert(lh_search_record_read("f", text, &cluster, &point, &again, NULL));
    ck_assert(lh_remedies_equal(&outcome.remedies, &again.remedies));
    ck_assert(!lh_search_record_read("f",
                                     "{\"point\": 1, \"state\": \"open\", \"close\": true, "
                                     "\"time_ps\": 1, \"peak_bytes\": 1, \"remedies\": \"--no\"}",
                                     &cluster, &point, &again, NULL));
}
END_TEST

LH_TEST_MAIN_OF_LOOPS("remedy", { options_are_the_same_step, G_N_ELEMENTS(cases) },
                      { what_is_no_remedy_is_not_read, 1 }, { files_name_values_of_options, 1 },
                      { menus_leave_what_is_given, 1 }, { menus_keep_to_what_frameworks_refuse, 1 },
                      { ladders_end_near_the_best_set, G_N_ELEMENTS(cases) },
                      { types_come_last, 1 }, { bounds_hold_for_all_sets, G_N_ELEMENTS(questions) },
                      { plans_find_what_climbing_everywhere_finds, G_N_ELEMENTS(questions) },
                      { longest_sequence_needs_what_it_says, 2 },
                      { tables_of_remedies_add_up, G_N_ELEMENTS(questions) },
                      { records_keep_remedies, 1 })
