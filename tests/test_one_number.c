/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One number for one quantity: a configuration has the same numbers in plan, sim and compare, when
 * given to these by options alone; and no two configurations of a plan have the same description.
 */
#include "compare/compare.h"
#include "compare/error_bar.h"
#include "planner/plan.h"
#include "report/base/field_cells.h"
#include "report/data/plan_values.h"
#include "report/data/result_values.h"
#include "report/text/describe_plan.h"
#include "run_tests.h"
#include "scenario/setting.h"
#include "step/pipeline/pipeline.h"

#include <string.h>

#define THREADS 2
#define WAYS 3

static const struct {
    const char *members; /* further members of the scenario */
    uint64_t sequences;
} questions[] = {
    { "\"model\": \"llama-2h\", \"cluster\": \"hgx-h100:1\", \"ranks\": 4, \"seq_length\": \"32K\"",
      4 },
    { "\"model\": \"gpt3-350m\", \"cluster\": \"dfa-2node:1\", \"ranks\": 4, "
      "\"seq_length\": \"8K\", \"tensor_model_parallel_size\": \"2\"",
      2 },
    { "\"cluster\": \"hgx-h100:1\", \"ranks\": 4, \"seq_length\": \"16K\", "
      "\"schedule\": [\"lasp2\", \"zeco\", \"ring\", \"ulysses\"]",
      1 },
    { "\"model\": \"gpt3-125m\", \"cluster\": \"hgx-h100:1\", \"ranks\": 4, "
      "\"seq_length\": \"4K\", \"pipeline_model_parallel_size\": 2, \"shard\": \"ddp\"",
      8 },
};

/* The model of questions that name none: it has both kinds of attention. */
static const char hybrid[] =
    "{\"schema\": \"longhaul.model/1\", \"name\": \"hybrid\", \"source\": \"this test\", "
    "\"num_layers\": 8, \"layers\": [{\"attention\": \"linear\", \"count\": 3}, "
    "{\"attention\": \"softmax\"}], \"hidden_size\": 1024, \"num_attention_heads\": 8, "
    "\"num_query_groups\": 8, \"kv_channels\": 128, \"ffn_hidden_size\": 4096, "
    "\"gated_mlp\": true, \"vocab_size\": 1024, \"tied_embeddings\": false}";

typedef struct {
    LhScenario *scenario;
    LhPlanSpace *space;
} Case;

static Case
case_of(int index)
{
    g_autofree char *text =
        g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", %s}", questions[index].members);
    g_autoptr(GError) error = NULL;
    Case c = { .scenario = lh_scenario_parse("s.json", text, strlen(text), &error) };

    ck_assert_msg(c.scenario != NULL, "%s", error != NULL ? error->message : "");
    if (c.scenario->model == NULL) {
        c.scenario->model_text = g_strdup(hybrid);
        c.scenario->model_file = g_strdup("hybrid.json");
    }
    c.space = lh_plan_space_new(c.scenario, NULL, questions[index].sequences, THREADS, &error);
    ck_assert_msg(c.space != NULL, "%s", error != NULL ? error->message : "");
    return c;
}

static void
case_clear(Case *c)
{
    lh_plan_space_free(c->space);
    lh_scenario_free(c->scenario);
}

/* ---- what sim and compare say of a configuration ---- */

static void
set(LhScenario *s, const char *option, const char *text)
{
    const LhField *field = lh_setting_find(lh_scenario_options(), option);
    g_autoptr(GError) error = NULL;

    ck_assert_msg(lh_scenario_set(s, field, text, &error), "%s",
                  error != NULL ? error->message : "");
}

static void
set_number(LhScenario *s, const char *option, uint64_t number)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, number);

    set(s, option, text);
}

/* The question with the configuration as options, as a user would give it to sim. */
static LhScenario *
asked_of_sim(const Case *c, guint point)
{
    const LhPlanPoint *p = lh_plan_point(c->space, point);
    const LhPlanShape *shape = lh_plan_shape(c->space, p);
    LhScenario *s = lh_scenario_copy(c->scenario);
    LhPlanCase of;

    lh_scenario_forget(s, "schedule");
    set(s, "--step", NULL);
    set(s, "--schedule", p->schedule->name);
    lh_scenario_forget(s, "tensor_model_parallel_size");
    set_number(s, "--tensor-model-parallel-size", shape->sizes.tensor);
    set_number(s, "--context-parallel-size", shape->sizes.context);
    set_number(s, "--data-parallel-size", shape->sizes.data);
    set_number(s, "--micro-batch-size", shape->micro_batch_size);
    set_number(s, "--num-micro-batches", shape->micro_batches);
    lh_scenario_forget(s, "checkpoint");
    lh_scenario_forget(s, "shard");
    set(s, "--checkpoint", lh_checkpoint_names[p->checkpoint]);
    set(s, "--shard", lh_shard_names[p->shard]);
    if (shape->sizes.pipeline > 1) {
        lh_scenario_forget(s, "pipeline_model_parallel_size");
        set_number(s, "--pipeline-model-parallel-size", shape->sizes.pipeline);
        if (p->chunks > 1)
            set_number(s, "--num-layers-per-virtual-pipeline-stage",
                       c->space->setup->model->num_layers / shape->sizes.pipeline / p->chunks);
        set(s, "--pipeline-schedule", lh_pipeline_order_names[p->order]);
    }
    ck_assert(lh_plan_case_init(&of, c->space, point, NULL));
    for (uint32_t i = 0; i < of.step.params.module.options_count; i++) {
        const LhOptionSetting *o = &of.step.params.module.options[i];
        g_autofree char *text = lh_option_text(o->option, o->value);
        g_auto(GStrv) words = g_strsplit(text, " ", 2);
        g_autofree char *option = g_strconcat("--", words[0], NULL);

        set(s, option, words[1]);
    }
    return s;
}

/* Prints a member of a struct by its table of fields. */
typedef struct {
    const LhField *fields;
    const void *of;
} Written;

/* Caller frees. */
static char *
text_of(const Written *written, const char *key)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    guint at = 0;

    lh_field_keys(written->fields, NULL, keys);
    lh_field_texts(written->fields, written->of, texts);
    while (strcmp(keys->pdata[at], key) != 0)
        at++;
    return g_strdup(texts->pdata[at]);
}

static void
check_field(const Written *plan, const char *key, const Written *sim, const char *other)
{
    g_autofree char *of_plan = text_of(plan, key), *of_sim = text_of(sim, other);

    ck_assert_msg(strcmp(of_plan, of_sim) == 0, "%s: plan has %s, sim %s", key, of_plan, of_sim);
}

/* Both print the same digits. */
static void
check_way(const Case *c, const LhPlanAnswer *answer, const LhPlanWay *way)
{
    static const LhPlanPrice price = { 0 };
    const LhPlanWeights weights = { .prices = &price };
    static const char *const shared[][2] = {
        { "iteration_s", "iteration_s" },
        { "time_low_s", "time_low_s" },
        { "time_high_s", "time_high_s" },
        { "tokens_per_s", "tokens_per_s" },
        { "mfu", "mfu" },
        { "peak_bytes", "peak_bytes_max" },
        { "peak_bytes_low", "peak_bytes_low" },
        { "peak_bytes_high", "peak_bytes_high" },
    };
    static const char *const of_case[] = { "framework", "micro_batch_size", "num_micro_batches" };
    g_autoptr(LhScenario) s = asked_of_sim(c, way->point);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSetup) setup = lh_setup_new(s, &error);
    g_autoptr(LhCompareRow) row = NULL;
    g_auto(LhPlanWayValues) of_plan = lh_plan_way_values(answer, &weights, 0, way, 1);
    const Written plan = { lh_plan_way_fields, &of_plan };
    LhRowValues of_sim;
    LhCaseValues of_sim_case;
    const Written sim = { lh_row_fields, &of_sim }, sim_case = { lh_case_fields, &of_sim_case };

    ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_eq(setup->schedules->len, 1);
    row = lh_compare_run(setup, g_ptr_array_index(setup->schedules, 0), NULL);
    ck_assert_int_eq(row->state, LH_ROW_RAN);
    of_sim = lh_row_values(setup, row, 0);
    of_sim_case = lh_case_values(setup);
    for (guint i = 0; i < G_N_ELEMENTS(shared); i++)
        check_field(&plan, shared[i][0], &sim, shared[i][1]);
    for (guint i = 0; i < G_N_ELEMENTS(of_case); i++)
        check_field(&plan, of_case[i], &sim_case, of_case[i]);
    lh_row_values_clear(&of_sim);
    lh_case_values_clear(&of_sim_case);
}

START_TEST(one_number_of_plan_and_sim)
{
    Case c = case_of(_i);
    const LhPlanSearchOptions options = { .top = WAYS, .task.jobs = THREADS };
    LhPlanSearch *search = lh_plan_search(c.space, &options);
    g_autoptr(GPtrArray) clusters = g_ptr_array_new();
    LhPlanCluster cluster = { .space = c.space, .search = search };
    const LhPlanAnswer answer = { .clusters = clusters };

    g_ptr_array_add(clusters, &cluster);
    ck_assert_uint_ge(search->ran->len, 1);
    for (guint i = 0; i < MIN(search->ran->len, WAYS); i++) {
        const LhPlanWay way = lh_plan_way(search, g_array_index(search->ran, guint, i));

        check_way(&c, &answer, &way);
    }
    lh_plan_search_free(search);
    case_clear(&c);
}
END_TEST

/* ---- words ---- */

START_TEST(one_number_no_two_ways_alike)
{
    Case c = case_of(_i);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint i = 0; i < c.space->points->len; i++) {
        char *way = lh_describe_way(c.space, i);

        ck_assert_msg(g_hash_table_add(seen, way), "twice: %s", way);
    }
    case_clear(&c);
}
END_TEST

/* Without a name the framework is that of sim, also in the question and in the inputs. */
START_TEST(one_number_names_the_frameworks)
{
    static const struct {
        int question;
        const char *frameworks, *inputs[2];
    } named[] = {
        { 0,
          "pytorch-fsdp (with tensor parallelism megatron-lm)",
          { "frameworks/pytorch-fsdp.json", "frameworks/megatron-lm.json" } },
        { 1, "megatron-lm", { "frameworks/megatron-lm.json" } },
    };

    for (guint i = 0; i < G_N_ELEMENTS(named); i++) {
        Case c = case_of(named[i].question);
        const GPtrArray *inputs = c.space->setup->inputs;

        ck_assert_str_eq(c.space->frameworks, named[i].frameworks);
        for (guint k = 0; k < 2 && named[i].inputs[k] != NULL; k++) {
            guint found = 0;

            for (guint n = 0; n < inputs->len; n++)
                found += strcmp(((const LhInput *)g_ptr_array_index(inputs, n))->path,
                                named[i].inputs[k]) == 0;
            ck_assert_uint_eq(found, 1);
        }
        case_clear(&c);
    }
}
END_TEST

/* ---- all questions ---- */

LH_TEST_MAIN_OF_LOOPS("one_number", { one_number_of_plan_and_sim, G_N_ELEMENTS(questions) },
                      { one_number_no_two_ways_alike, G_N_ELEMENTS(questions) },
                      { one_number_names_the_frameworks, 1 })
