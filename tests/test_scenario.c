/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios: the table of fields and the options generated from it, every shipped file, defaults,
 * profiles, comparisons.
 */
#include "compare/compare.h"
#include "compare/totals.h"
#include "data_files.h"
#include "options.h"
#include "program/explicit/explicit_fields.h"
#include "scenario/profile.h"
#include "scenario/setting.h"
#include "scenario/setup_model.h"
#include "scenario/setup_params.h"
#include "scenario/setup_weights.h"

#include <math.h>

static LhScenario *
scenario_of(const char *text)
{
    g_autoptr(GError) error = NULL;
    LhScenario *scenario = lh_scenario_parse("s.json", text, strlen(text), &error);

    ck_assert_msg(scenario != NULL, "%s", error != NULL ? error->message : text);
    return scenario;
}

static LhSetup *
setup_of(const LhScenario *scenario)
{
    g_autoptr(GError) error = NULL;
    LhSetup *setup = lh_setup_new(scenario, &error);

    ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "no setup");
    return setup;
}

static void
set(LhScenario *scenario, const char *option, const char *text)
{
    const LhField *field = lh_setting_find(lh_scenario_options(), option);
    g_autoptr(GError) error = NULL;

    ck_assert_msg(field != NULL, "%s", option);
    ck_assert_msg(lh_scenario_set(scenario, field, text, &error), "%s",
                  error != NULL ? error->message : option);
}

/* The scenario with the first value of every list. Caller frees. */
static LhScenario *
first_point(const LhScenario *scenario)
{
    LhScenario *first = lh_scenario_copy(scenario);
    g_autoptr(GPtrArray) axes = lh_scenario_axes(scenario);

    for (guint i = 0; i < axes->len; i++)
        lh_scenario_choose(first, g_ptr_array_index(axes, i), 0);
    return first;
}

/* A flag that is not set stays unset in a copy. */
START_TEST(copies_keep_flags)
{
    g_autoptr(LhScenario) scenario =
        scenario_of("{\"schema\": \"longhaul.scenario/1\", \"step\": false, \"pad_heads\": true}");
    g_autoptr(LhScenario) copy = lh_scenario_copy(scenario);

    ck_assert(!copy->step);
    ck_assert(!lh_scenario_has(copy, "step"));
    ck_assert(lh_scenario_has(copy, "pad_heads"));
}
END_TEST

START_TEST(scenario_files_run)
{
    g_auto(GStrv) names = lh_data_list("scenarios");

    ck_assert_uint_ge(g_strv_length(names), 4);
    for (char **name = names; *name != NULL; name++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhScenario) scenario = lh_scenario_load(*name, &error);
        g_autoptr(LhScenario) first = NULL;
        g_autoptr(LhSetup) setup = NULL;
        g_autoptr(LhComparison) comparison = NULL;

        ck_assert_msg(scenario != NULL, "%s", error != NULL ? error->message : *name);
        ck_assert_ptr_nonnull(scenario->description);
        first = first_point(scenario);
        setup = setup_of(first);
        comparison = lh_compare(setup, NULL, &error);
        ck_assert_msg(comparison != NULL && comparison->fit_count > 0, "%s runs nothing", *name);
    }
}
END_TEST

/* The given input of a schedule's option, unchanged. */
static const LhOptionInput *
given(const LhScenario *scenario, const char *name)
{
    const LhOption *option = option_named(name);
    unsigned i = 0;

    while (lh_schedule_options()[i] != option)
        i++;
    return &scenario->options[i];
}

START_TEST(scenario_option_equals_field)
{
    g_autoptr(LhScenario) file = scenario_of(
        "{\"schema\": \"longhaul.scenario/1\", \"seq_length\": \"64K\", \"dtype\": \"fp16\","
        " \"schedule\": [\"ring\", \"zigzag\"], \"jitter\": 0.25, \"no_overlap\": true,"
        " \"seed\": 18446744073709551615, \"grid\": \"2x4\", \"window_size\": \"4K\","
        " \"hierarchical_context_parallel_sizes\": [4, 2], \"recompute_granularity\": \"full\","
        " \"attention\": \"linear\", \"pad_heads\": true,"
        " \"straggler\": [{\"rank\": 3, \"factor\": 1.5}],"
        " \"link_fault\": [{\"tier\": \"nic\", \"node\": 1, \"factor\": 0.5}]}");
    g_autoptr(LhScenario) options = lh_scenario_new();
    const GArray *sizes;

    set(options, "--seq-length", "64K");
    set(options, "--dtype", "fp16");
    set(options, "--schedule", "ring");
    set(options, "--schedule", "zigzag");
    set(options, "--jitter", "0.25");
    set(options, "--no-overlap", NULL);
    set(options, "--seed", "18446744073709551615");
    set(options, "--grid", "2x4");
    set(options, "--window-size", "4K");
    set(options, "--hierarchical-context-parallel-sizes", "4,2");
    set(options, "--recompute-granularity", "full");
    set(options, "--attention", "linear");
    set(options, "--pad-heads", NULL);
    set(options, "--straggler", "3:1.5");
    set(options, "--link-fault", "nic:1:0.5");
    ck_assert_uint_eq(file->seq_length, 65536);
    ck_assert_uint_eq(options->seq_length, file->seq_length);
    ck_assert_int_eq(options->dtype, file->dtype);
    ck_assert_uint_eq(options->schedule->len, file->schedule->len);
    ck_assert_str_eq(g_ptr_array_index(options->schedule, 1), g_ptr_array_index(file->schedule, 1));
    ck_assert(options->jitter == file->jitter);
    ck_assert(given(options, "no_overlap")->flag && given(file, "no_overlap")->flag);
    ck_assert_uint_eq(options->seed, file->seed);
    ck_assert_str_eq(given(options, "grid")->grid, given(file, "grid")->grid);
    ck_assert_uint_eq(options->window_size, file->window_size);
    sizes = given(options, "hierarchical_context_parallel_sizes")->sizes;
    ck_assert_uint_eq(sizes->len, 2);
    ck_assert_mem_eq(sizes->data, given(file, "hierarchical_context_parallel_sizes")->sizes->data,
                     2 * sizeof(uint64_t));
    ck_assert_int_eq(given(file, "recompute_granularity")->choice, 2); /* full */
    ck_assert_int_eq(given(options, "recompute_granularity")->choice, 2);
    ck_assert(options->attention == 1 && file->attention == 1);
    ck_assert(given(options, "pad_heads")->flag && given(file, "pad_heads")->flag);
    ck_assert_mem_eq(options->straggler->data, file->straggler->data, sizeof(LhStraggler));
    ck_assert_mem_eq(options->link_fault->data, file->link_fault->data, sizeof(LhLinkFault));
}
END_TEST

/* Every option is a field, and every field but two is an option. */
START_TEST(scenario_options_are_the_fields)
{
    guint count = 0, options = 0;

    for (const LhField *field = lh_scenario_options(); field->name != NULL; field++) {
        g_autofree char *option = lh_setting_option(field);
        g_autofree char *placeholder = lh_setting_placeholder(field);

        ck_assert(lh_setting_is_flag(field) || strlen(placeholder) > 0);
        ck_assert_ptr_eq(lh_setting_find(lh_scenario_fields(), option), field);
        ck_assert_ptr_nonnull(field->description);
        ck_assert_ptr_null(strchr(option, '_'));
        count++;
    }
    while (lh_schedule_options()[options] != NULL)
        options++;
    ck_assert_uint_gt(count, options);
    ck_assert_str_eq(lh_scenario_fields()[0].name, "schema");
    ck_assert_ptr_eq(lh_scenario_options(), &lh_scenario_fields()[3]);
}
END_TEST

START_TEST(scenario_option_replaces_list_of_file)
{
    g_autoptr(LhScenario) scenario =
        scenario_of("{\"schema\": \"longhaul.scenario/1\", \"schedule\": [\"ring\", \"zigzag\"]}");

    set(scenario, "--schedule", "striped");
    ck_assert_uint_eq(scenario->schedule->len, 1);
    ck_assert_str_eq(g_ptr_array_index(scenario->schedule, 0), "striped");
}
END_TEST

START_TEST(scenario_paths_are_relative_to_file)
{
    const char *text = "{\"schema\": \"longhaul.scenario/1\", \"profile\": \"p.json\","
                       " \"cluster\": \"dgx-a100-80g:2\", \"model\": \"sub/m.json\","
                       " \"document_lengths\": \"lengths.txt\"}";
    g_autoptr(LhScenario) scenario =
        lh_scenario_parse("some/folder/s.json", text, strlen(text), NULL);

    ck_assert_str_eq(scenario->profile, "some/folder/p.json");
    ck_assert_str_eq(scenario->cluster, "dgx-a100-80g:2");
    ck_assert_str_eq(scenario->model, "some/folder/sub/m.json");
    ck_assert_str_eq(scenario->document_lengths, "some/folder/lengths.txt");
}
END_TEST

START_TEST(scenario_defaults)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;

    set(scenario, "--ranks", "12");
    setup = setup_of(scenario);
    ck_assert(setup->cluster_defaulted);
    ck_assert_str_eq(setup->topology->name, LH_DEFAULT_CLUSTER);
    ck_assert_uint_eq(setup->network.nodes, 2);
    ck_assert_uint_eq(setup->params.ranks, 12);
    ck_assert_uint_eq(setup->params.attention.seq_length, 12 * LH_DEFAULT_TOKENS_PER_RANK);
    ck_assert_uint_eq(setup->params.attention.heads, 32);
    ck_assert_uint_eq(setup->params.attention.groups, 32);
    ck_assert_uint_eq(setup->params.attention.batch, 1);
    ck_assert(setup->params.mask.causal && option_of(&setup->params, "no_overlap") == 0);
    ck_assert_uint_eq(setup->params.options_count, 0);
    ck_assert_int_eq(setup->params.pass, LH_PASS_BOTH);
}
END_TEST

START_TEST(scenario_cluster_gives_ranks)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;

    set(scenario, "--cluster", "dgx-a100-80g:3");
    set(scenario, "--num-attention-heads", "33");
    setup = setup_of(scenario);
    ck_assert_uint_eq(setup->params.ranks, 24);
    ck_assert_uint_eq(setup->params.attention.groups, 33); /* without groups: as many as heads */
}
END_TEST

/* --- options of single schedules ----------------------------------------------------------------
 */

START_TEST(scenario_fills_parameters)
{
    static const char *const settings[][2] = {
        { "--ranks", "8" },
        { "--grid", "2x4" },
        { "--hierarchical-context-parallel-sizes", "4,2" },
        { "--inner-ring", "2" },
        { "--gather-groups", "4" },
        { "--scan-blocks", "3" },
        { "--local-kv", NULL },
        { "--gather-delta", NULL },
        { "--state-recompute", NULL },
        { "--unfused", NULL },
        { "--pad-heads", NULL },
        { "--recompute-granularity", "selective" },
        { "--window-size", "1K" },
    };
    static const struct {
        const char *name;
        uint32_t first, second;
    } options[] = {
        { "grid", 2, 4 },
        { "hierarchical_context_parallel_sizes", 4, 2 },
        { "inner_ring", 2, 0 },
        { "gather_groups", 4, 0 },
        { "scan_blocks", 3, 0 },
        { "local_kv", 1, 0 },
        { "gather_delta", 1, 0 },
        { "state_recompute", 1, 0 },
        { "unfused", 1, 0 },
        { "pad_heads", 1, 0 },
        { "recompute_granularity", 1, 0 }, /* selective */
    };
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhModel) model = lh_setup_load_model(scenario, NULL);
    const LhSources sources = { .model = model, .gpus_per_node = 8 };
    LhProgramParams params;
    const LhProgramParams *p = &params;

    for (guint i = 0; i < G_N_ELEMENTS(settings); i++)
        set(scenario, settings[i][0], settings[i][1]);
    ck_assert(lh_setup_params(scenario, &sources, 8, &params, NULL));
    for (guint i = 0; i < G_N_ELEMENTS(options); i++) {
        const LhOptionValue value = lh_option_get(p, option_named(options[i].name));

        ck_assert_msg(value.first == options[i].first && value.second == options[i].second,
                      "%s: %u, %u", options[i].name, value.first, value.second);
    }
    ck_assert_uint_eq(p->options_count, G_N_ELEMENTS(options));
    ck_assert_uint_eq(p->mask.window, 1024);
    ck_assert_uint_eq(p->gpus_per_node, 8);
    ck_assert_uint_eq(p->attention.hidden_size, 4096);
    ck_assert(!p->attention.linear && p->mask.document_ends == NULL);
}
END_TEST

/* A model with other heads is another model, of unknown width. */
START_TEST(scenario_other_heads_have_no_hidden_size)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;

    set(scenario, "--ranks", "8");
    set(scenario, "--num-attention-heads", "8");
    setup = setup_of(scenario);
    ck_assert_uint_eq(setup->params.attention.hidden_size, 0);
}
END_TEST

START_TEST(scenario_model_gives_the_kind_of_attention)
{
    static const struct {
        const char *model, *attention;
        bool linear;
    } rows[] = {
        { "llama-7b", NULL, false },    { "tnl-1b", NULL, true },
        { "tnl-1b", "softmax", false }, { "minimax-text-01", NULL, false },
        { "llama-7b", "linear", true },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(LhScenario) scenario = lh_scenario_new();
        g_autoptr(LhSetup) setup = NULL;
        guint all = 0;

        set(scenario, "--ranks", "8");
        set(scenario, "--model", rows[i].model);
        if (rows[i].attention != NULL)
            set(scenario, "--attention", rows[i].attention);
        setup = setup_of(scenario);
        ck_assert(setup->params.attention.linear == rows[i].linear);
        while (lh_schedules[all] != NULL)
            all++;
        ck_assert_uint_eq(setup->schedules->len + setup->left_out, all);
        for (guint k = 0; k < setup->schedules->len; k++) {
            const LhSchedule *schedule = g_ptr_array_index(setup->schedules, k);

            ck_assert(lh_schedule_takes(schedule, rows[i].linear));
        }
    }
}
END_TEST

/* A schedule named explicitly is kept and refuses by itself. */
START_TEST(scenario_named_schedules_are_not_left_out)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;

    set(scenario, "--ranks", "8");
    set(scenario, "--attention", "linear");
    set(scenario, "--schedule", "ring");
    setup = setup_of(scenario);
    ck_assert_uint_eq(setup->schedules->len, 1);
    ck_assert_uint_eq(setup->left_out, 0);
    ck_assert(setup->params.attention.linear);
}
END_TEST

/* Without a model, named schedules decide the kind of attention. */
START_TEST(scenario_schedules_give_the_kind_of_attention)
{
    const LhSchedule *linear = NULL;

    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        g_autoptr(LhScenario) scenario = lh_scenario_new();
        g_autoptr(LhSetup) setup = NULL;

        set(scenario, "--ranks", "8");
        set(scenario, "--schedule", lh_schedules[i]->name);
        setup = setup_of(scenario);
        ck_assert(setup->params.attention.linear == !lh_schedule_takes(lh_schedules[i], false));
        if (setup->params.attention.linear)
            linear = lh_schedules[i];
    }
    ck_assert_ptr_nonnull(linear);
    for (int model = 0; model < 2; model++) { /* second round: beside ring, with a model of
                                               * softmax attention */
        g_autoptr(LhScenario) scenario = lh_scenario_new();
        g_autoptr(LhSetup) setup = NULL;

        set(scenario, "--ranks", "8");
        set(scenario, "--schedule", linear->name);
        if (model == 1)
            set(scenario, "--model", "llama-7b");
        else
            set(scenario, "--schedule", "ring");
        setup = setup_of(scenario);
        ck_assert(!setup->params.attention.linear);
    }
}
END_TEST

/* ulysses supports both kinds; beside a schedule of linear attention only, it is linear. */
START_TEST(scenario_one_schedule_decides_for_those_that_have_both)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhSetup) beside = NULL;

    set(scenario, "--ranks", "8");
    set(scenario, "--schedule", "ulysses");
    setup = setup_of(scenario);
    ck_assert(!setup->params.attention.linear);
    set(scenario, "--schedule", "lasp");
    beside = setup_of(scenario);
    ck_assert(beside->params.attention.linear);
}
END_TEST

START_TEST(scenario_contradictions_are_errors)
{
    static const struct {
        const char *option, *value, *words;
    } rows[] = {
        { "--grid", "2", "--grid: \"2\" is not a grid; allowed: ROWSxCOLUMNS, such as 4x8" },
        { "--grid", "2x4x1", "is not a grid" },
        { "--grid", "0x8", "is not a grid" },
        { "--grid", "2x", "is not a grid" },
        { "--grid", "2 x 4", "is not a grid" },
        { "--hierarchical-context-parallel-sizes", "4,4",
          "the product of the sizes is 16, and there are 8 ranks" },
        { "--hierarchical-context-parallel-sizes", "0,8", "both sizes must be at least 1" },
        { "--hierarchical-context-parallel-sizes", "4294967296,4294967296", "their product" },
        { "--data-parallel-size", "3",
          "--data-parallel-size: 8 ranks cannot be cut into 3 equal groups; nearest legal numbers: "
          "2, 4" },
        { "--data-parallel-size", "16", "16 equal groups; nearest legal numbers: 8" },
        { "--linear-decay", "0.5", "softmax attention has no decay" },
        { "--document-lengths", "no-such-file", "no-such-file: error: cannot be read" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(LhScenario) scenario = lh_scenario_new();
        g_autoptr(GError) error = NULL;

        set(scenario, "--ranks", "8");
        set(scenario, rows[i].option, rows[i].value);
        ck_assert_ptr_null(lh_setup_new(scenario, &error));
        ck_assert_msg(strstr(error->message, rows[i].words) != NULL, "%s", error->message);
    }
}
END_TEST

/* Ranks are those of all data-parallel groups; sequences belong to one group. */
START_TEST(scenario_data_parallel_size_cuts_the_ranks)
{
    g_autoptr(LhScenario) scenario =
        scenario_of("{\"schema\": \"longhaul.scenario/1\", \"cluster\": \"dgx-a100-80g:3\","
                    " \"data_parallel_size\": 6, \"hierarchical_context_parallel_sizes\": [2, 2]}");
    g_autoptr(LhSetup) setup = setup_of(scenario);
    uint64_t ranks;

    ck_assert_uint_eq(setup->network.ranks, 24);
    ck_assert_uint_eq(setup->params.ranks, 4);
    ck_assert_uint_eq(setup->params.data_parallel_size, 6);
    ck_assert_uint_eq(setup->params.attention.seq_length, 4 * LH_DEFAULT_TOKENS_PER_RANK);
    ck_assert(lh_setup_ranks(scenario, &ranks, NULL));
    ck_assert_uint_eq(ranks, 24);
}
END_TEST

START_TEST(scenario_window_needs_a_causal_mask)
{
    g_autoptr(LhScenario) scenario =
        scenario_of("{\"schema\": \"longhaul.scenario/1\", \"ranks\": 8, \"mask\": \"full\","
                    " \"window_size\": 64}");
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(lh_setup_new(scenario, &error));
    ck_assert_str_eq(error->message,
                     "s.json:1:78: error: \"window_size\": a sliding window needs a causal mask");
}
END_TEST

/* A model's sliding window is the default mask if all its layers have it. */
START_TEST(scenario_model_gives_the_window)
{
    static const struct {
        const char *model, *more;
        uint64_t window;
    } cases[] = {
        { "mistral-7b", "", 4096 },
        { "mistral-7b", ", \"window_size\": 0", 0 },
        { "mistral-7b", ", \"window_size\": 512", 512 },
        { "mistral-7b", ", \"mask\": \"full\"", 0 },
        { "mistral-7b", ", \"mask\": \"causal\"", 0 },
        { "mistral-7b", ", \"seq_length\": 4096", 0 },
        { "qwen2-window", "", 0 },
        { "gemma-3-12b", "", 0 },
        { "gemma-3-12b", ", \"window_size\": 1024", 1024 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_build_filename(g_getenv("LONGHAUL_SOURCE_DIR"), "tests", "data",
                                                 "hf", cases[i].model, "config.json", NULL);
        g_autofree char *text =
            g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", \"cluster\": "
                            "\"dgx-a100-80g:1\", \"model\": \"%s\"%s}",
                            path, cases[i].more);
        g_autoptr(LhScenario) scenario = scenario_of(text);
        g_autoptr(LhSetup) setup = setup_of(scenario);

        ck_assert_msg(setup->params.mask.window == cases[i].window, "%s has window %u", text,
                      (unsigned)setup->params.mask.window);
    }
}
END_TEST

static const char *const profile_text =
    "{\"schema\": \"longhaul.profile/1\", \"name\": \"p\", \"source\": \"a test\","
    " \"memory_bandwidth\": \"1TB/s\", \"kernel_launch\": \"7us\","
    " \"kernels\": [{\"kernel\": \"attention_fwd\", \"mask\": \"full\", \"head_dim\": 128,"
    " \"rate\": \"100TFLOP/s\", \"half_length\": 10, \"provenance\": \"measured\","
    " \"source\": \"a test\"}],"
    " \"nic\": {\"bandwidth\": \"5GB/s\", \"latency\": \"9us\", \"ctas\": 3,"
    " \"provenance\": \"measured\", \"source\": \"a test\"}}";

START_TEST(scenario_profile_overlays)
{
    g_autoptr(LhProfile) profile =
        lh_profile_parse("p.json", profile_text, strlen(profile_text), NULL);
    g_autoptr(LhDevice) device = lh_device_load("a100-sxm-80g", NULL);
    g_autoptr(LhTopology) topology = lh_topology_load("dgx-a100-80g", NULL);
    const double efficiency = device->memory_efficiency;
    const double nvlink = topology->nvlink.bandwidth;
    LhKernelRate rate;

    ck_assert(lh_profile_apply(profile, device, topology, NULL));
    ck_assert(device->memory_bandwidth == 1e12 && device->memory_efficiency == efficiency);
    ck_assert_int_eq(device->kernel_launch_ps, 7000000);
    ck_assert(lh_device_rate(device, "attention_fwd", false, 128, &rate));
    ck_assert(rate.rate == 1e14 && rate.half_length == 10);
    ck_assert_int_eq(rate.from.provenance, LH_PROVENANCE_MEASURED);
    ck_assert(topology->nic.bandwidth == 5e9 && topology->nvlink.bandwidth == nvlink);
    ck_assert_int_eq(topology->nic.latency_ps, 9000000);
}
END_TEST

/* --- settings from text -------------------------------------------------------------------------
 */

START_TEST(scenario_reads_ranges)
{
    static const char *const wrong[] = { "",  ",",     "1,", "-3", "3-",        "4-3",
                                         "0", "1-2-3", "a",  " 1", "1-9999999", NULL };
    g_autoptr(GArray) values = lh_setting_parse_ranges("--ranks", "1-3,8", NULL);

    ck_assert_uint_eq(values->len, 4);
    ck_assert_uint_eq(g_array_index(values, uint64_t, 3), 8);
    for (guint i = 0; wrong[i] != NULL; i++) {
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(lh_setting_parse_ranges("--ranks", wrong[i], &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_USAGE));
    }
}
END_TEST

START_TEST(scenario_bad_option_changes_nothing)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(GError) error = NULL;

    set(scenario, "--seq-length", "4K");
    ck_assert(!lh_scenario_set(scenario, lh_setting_find(lh_scenario_options(), "--seq-length"),
                               "4 bananas", &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_USAGE));
    ck_assert_uint_eq(scenario->seq_length, 4096);
}
END_TEST

/* --- comparisons --------------------------------------------------------------------------------
 */

/* The order is by time; schedules that cannot run are last, with a reason. */
START_TEST(scenario_comparison_is_ranked)
{
    g_autoptr(LhScenario) scenario =
        scenario_of("{\"schema\": \"longhaul.scenario/1\", \"cluster\": \"dfa-2node:2\","
                    " \"seq_length\": 65552}"); /* a multiple of 16 but not of 32 */
    g_autoptr(LhSetup) setup = setup_of(scenario);
    g_autoptr(LhComparison) c = lh_compare(setup, NULL, NULL);
    const LhCompareRow *last = g_ptr_array_index(c->rows, c->rows->len - 1);
    LhTime previous_ps = 0;

    ck_assert_uint_eq(c->rows->len, setup->schedules->len);
    for (guint i = 0; i < c->fit_count; i++) {
        const LhCompareRow *row = g_ptr_array_index(c->rows, i);
        LhTotals totals;
        LhWide sum_ps;

        ck_assert_int_ge(row->result->makespan_ps, previous_ps);
        previous_ps = row->result->makespan_ps;
        lh_totals(row->result, &totals);
        sum_ps = totals.busy_ps;
        for (int part = 0; part < LH_IDLE_PARTS; part++)
            sum_ps += totals.idle_ps[part];
        ck_assert(sum_ps == totals.span_ps);
    }
    ck_assert_int_eq(last->state, LH_ROW_REFUSED);
    ck_assert_ptr_nonnull(last->reason);
}
END_TEST

/* More of any resource never slows the fastest schedule, and its gain is limited. */
START_TEST(scenario_what_ifs_are_plausible)
{
    g_autoptr(LhScenario) scenario = lh_scenario_load("dfa-2node", NULL);
    g_autoptr(LhSetup) setup = setup_of(scenario);
    g_autoptr(LhComparison) c = lh_compare(setup, NULL, NULL);
    const LhCompareRow *winner = g_ptr_array_index(c->rows, 0);
    const double before = (double)winner->result->makespan_ps;

    ck_assert_uint_ge(c->bound->what_ifs->len, 2);
    for (guint i = 0; i < c->bound->what_ifs->len; i++) {
        const LhWhatIf *what_if = &g_array_index(c->bound->what_ifs, LhWhatIf, i);

        ck_assert_double_ge((double)what_if->makespan_ps, before / LH_WHAT_IF_FACTOR - 1);
    }
    ck_assert_double_le((double)g_array_index(c->bound->what_ifs, LhWhatIf, 0).makespan_ps, before);
}
END_TEST

START_TEST(scenario_out_of_memory_is_a_state)
{
    g_autoptr(LhScenario) scenario =
        scenario_of("{\"schema\": \"longhaul.scenario/1\", \"cluster\": \"dgx-a100-80g:1\","
                    " \"seq_length\": \"8M\", \"schedule\": [\"zigzag\"]}");
    g_autoptr(LhSetup) setup = setup_of(scenario);
    g_autoptr(LhComparison) c = lh_compare(setup, NULL, NULL);
    const LhCompareRow *row = g_ptr_array_index(c->rows, 0);

    ck_assert_int_eq(row->state, LH_ROW_NO_MEMORY);
    ck_assert_uint_eq(c->fit_count, 0);
}
END_TEST

/* Memory includes the model state: 405 billion parameters exceed eight GPUs and fit on sixteen. */
START_TEST(scenario_weights_count)
{
    static const struct {
        const char *cluster;
        LhRowState state;
    } cases[] = { { "hgx-h100:1", LH_ROW_NO_MEMORY }, { "hgx-h100:2", LH_ROW_RAN } };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", \"cluster\": \"%s\", \"model\": "
                            "\"llama-3.1-405b\", \"schedule\": [\"zigzag\"]}",
                            cases[i].cluster);
        g_autoptr(LhScenario) scenario = scenario_of(text);
        g_autoptr(LhSetup) setup = setup_of(scenario);
        g_autoptr(LhComparison) c = lh_compare(setup, NULL, NULL);

        ck_assert_uint_eq(lh_setup_weight_bytes(setup), 2 * UINT64_C(405853388800));
        ck_assert_int_eq(((LhCompareRow *)g_ptr_array_index(c->rows, 0))->state, cases[i].state);
    }
}
END_TEST

LH_TEST_MAIN("scenario", copies_keep_flags, scenario_files_run, scenario_option_equals_field,
             scenario_options_are_the_fields, scenario_option_replaces_list_of_file,
             scenario_paths_are_relative_to_file, scenario_defaults, scenario_cluster_gives_ranks,
             scenario_fills_parameters, scenario_other_heads_have_no_hidden_size,
             scenario_model_gives_the_kind_of_attention, scenario_named_schedules_are_not_left_out,
             scenario_schedules_give_the_kind_of_attention,
             scenario_one_schedule_decides_for_those_that_have_both,
             scenario_contradictions_are_errors, scenario_data_parallel_size_cuts_the_ranks,
             scenario_window_needs_a_causal_mask, scenario_model_gives_the_window,
             scenario_profile_overlays, scenario_reads_ranges, scenario_bad_option_changes_nothing,
             scenario_comparison_is_ranked, scenario_what_ifs_are_plausible,
             scenario_out_of_memory_is_a_state, scenario_weights_count)
