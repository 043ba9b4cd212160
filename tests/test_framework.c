/* SPDX-License-Identifier: Apache-2.0 */
/* Framework files: every shipped one, defaults of omitted members, sums, invalid files. */
#include "data_files.h"
#include "model/framework_states.h"

static LhFramework *
parse(const char *text, GError **error)
{
    return lh_framework_parse("dir/f.json", text, strlen(text), error);
}

static LhFramework *
load(const char *name)
{
    g_autoptr(GError) error = NULL;
    LhFramework *framework = lh_framework_load(name, &error);

    ck_assert_msg(framework != NULL, "%s", error != NULL ? error->message : name);
    return framework;
}

/* Whether a member concerns only what surrounds calls of attention. */
static bool
is_of_a_module(const LhFrameworkFact *fact)
{
    return strcmp(fact->group, "attention_call") == 0 || strcmp(fact->name, "merge_slice") == 0;
}

/* Whether @framework states nothing about steps. */
static bool
is_for_modules(const LhFramework *framework)
{
    for (guint i = 0; i < framework->facts->len; i++) {
        const LhFrameworkFact *fact = &g_array_index(framework->facts, LhFrameworkFact, i);

        if (fact->source != NULL && !is_of_a_module(fact))
            return false;
    }
    return true;
}

/* Shipped files leave nothing to defaults, unless they are for attention modules only, and every
 * value has a source. */
START_TEST(framework_files_are_valid)
{
    g_auto(GStrv) names = lh_data_list("frameworks");

    ck_assert_uint_ge(g_strv_length(names), 6);
    for (char **name = names; *name != NULL; name++) {
        g_autoptr(LhFramework) framework = load(*name);

        ck_assert_str_eq(framework->name, *name);
        ck_assert_ptr_nonnull(framework->description);
        ck_assert_uint_eq(strlen(framework->sha256), 64);
        for (guint i = 0; i < framework->facts->len; i++) {
            const LhFrameworkFact *fact = &g_array_index(framework->facts, LhFrameworkFact, i);

            if (strcmp(fact->name, "attention_kernel") == 0 ||
                (fact->source == NULL && is_for_modules(framework)))
                continue;
            ck_assert_msg(fact->source != NULL, "%s: %s.%s", *name, fact->group, fact->name);
            ck_assert(*fact->text != '\0');
        }
    }
}
END_TEST

static const char framework_text[] =
    "{\n"
    "  \"schema\": \"longhaul.framework/1\",\n"
    "  \"name\": \"f\",\n"
    "  \"source\": \"s\",\n"
    "  \"fsdp\": {\n"
    "    \"unit\": { \"value\": \"model\", \"provenance\": \"code\", \"source\": \"a\" },\n"
    "    \"prefetch\": { \"value\": 2, \"provenance\": \"fitted\", \"source\": \"b\" },\n"
    "    \"halves\": { \"value\": true, \"provenance\": \"code\", \"source\": \"c\" }\n"
    "  },\n"
    "  \"ddp\": { \"bucket_bytes\": { \"value\": \"25MiB\", \"provenance\": \"code\", \"source\": "
    "\"d\" } },\n"
    "  \"kernels\": { \"norm\": { \"value\": 36, \"provenance\": \"measured\", \"source\": \"e\" } "
    "},\n"
    "  \"host\": { \"attention_kernel\": { \"value\": \"triton\", \"provenance\": \"code\", "
    "\"source\": \"g\" } }\n"
    "}\n";

static const LhFrameworkFact *
fact_of(const LhFramework *framework, const char *group, const char *name)
{
    for (guint i = 0; i < framework->facts->len; i++) {
        const LhFrameworkFact *fact = &g_array_index(framework->facts, LhFrameworkFact, i);

        if (strcmp(fact->group, group) == 0 && strcmp(fact->name, name) == 0)
            return fact;
    }
    ck_abort_msg("there is no %s.%s", group, name);
}

static void
check_fact(const LhFramework *f, const char *group, const char *name, const char *text,
           LhOrigin origin, const char *source)
{
    const LhFrameworkFact *fact = fact_of(f, group, name);

    ck_assert_str_eq(fact->text, text);
    ck_assert_uint_eq(fact->origin, origin);
    ck_assert_msg(g_strcmp0(fact->source, source) == 0, "%s.%s", group, name);
}

START_TEST(framework_values_are_read)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhFramework) f = parse(framework_text, &error);

    ck_assert_msg(f != NULL, "%s", error != NULL ? error->message : "no message");
    ck_assert_int_eq(f->fsdp_unit, LH_FSDP_MODEL);
    ck_assert_uint_eq(f->fsdp_prefetch, 2);
    ck_assert(f->fsdp_halves);
    ck_assert_uint_eq(f->ddp_bucket_bytes, UINT64_C(25) << 20);
    ck_assert_double_eq(f->kernels_norm, 36);
    ck_assert_str_eq(f->attention_kernel, "triton");
    check_fact(f, "fsdp", "unit", "model", LH_ORIGIN_CODE, "a");
    check_fact(f, "fsdp", "prefetch", "2", LH_ORIGIN_FITTED, "b");
    check_fact(f, "fsdp", "halves", "yes", LH_ORIGIN_CODE, "c");
    check_fact(f, "ddp", "bucket_bytes", "25 MiB", LH_ORIGIN_CODE, "d");
    check_fact(f, "kernels", "norm", "36", LH_ORIGIN_MEASURED, "e");
    check_fact(f, "host", "attention_kernel", "triton", LH_ORIGIN_CODE, "g");
    check_fact(f, "fsdp", "reshard_after_forward", "yes", LH_ORIGIN_ASSUMED, NULL);
}
END_TEST

/* Defaults of lh_framework_new(): ZeRO's 16 bytes per parameter, no overlap. */
START_TEST(framework_defaults_hold)
{
    g_autoptr(LhFramework) f = parse(framework_text, NULL);
    g_autoptr(LhFramework) none = lh_framework_new();

    ck_assert_uint_eq(f->facts->len, none->facts->len);
    for (guint i = 0; i < none->facts->len; i++) {
        const LhFrameworkFact *fact = &g_array_index(none->facts, LhFrameworkFact, i);

        ck_assert(fact->source == NULL);
        ck_assert_uint_eq(fact->origin, LH_ORIGIN_ASSUMED);
    }
    ck_assert_double_eq(2 + lh_framework_gradient_bytes(none) + lh_framework_optimizer_bytes(none),
                        16);
    ck_assert_int_eq(none->fsdp_unit, LH_FSDP_LAYER);
    ck_assert_uint_eq(none->fsdp_prefetch, 0);
    ck_assert(none->fsdp_reshard && !none->fsdp_halves && none->fsdp_reduce_every_micro_batch);
    ck_assert(!none->ddp_overlap && !none->zero_gather_overlap);
    ck_assert(!none->tp_overlap_gather && !none->tp_overlap_scatter);
    ck_assert_int_eq(none->states_checkpoint, LH_CHECKPOINT_NONE);
    ck_assert_int_eq(none->states_shard, LH_SHARD_DDP);
    ck_assert_double_eq(lh_framework_logit_bytes(none), 10);
    ck_assert_double_eq(none->fsdp_overhead_s, 0);
    ck_assert(none->attention_kernel == NULL);
    ck_assert(!none->call_gather && !none->call_pad);
    ck_assert_double_eq(none->call_slowdown, 1);
    ck_assert_double_eq(none->call_host_s + none->kernels_merge_slice, 0);
    ck_assert_double_eq(f->kernels_glu, none->kernels_glu);
    ck_assert_int_eq(f->states_gradient, none->states_gradient);
}
END_TEST

/* Bytes of state per parameter, as in the papers and the code. */
START_TEST(framework_states_add_up)
{
    static const struct {
        const char *name;
        double optimizer, gradient, step;
    } known[] = {
        { "megatron-lm", 12, 4, 0 }, /* its documentation: 18 bytes, 6 + 12/d distributed */
        { "deepspeed", 12, 2, 4 },   /* ZeRO's paper: 16 */
        { "fairscale", 12, 4, 0 },   /* metaseq's FP16Optimizer: 18 */
        { "lightseq", 4, 2, 2 },     /* Adam on float16 parameters */
        { "torchtitan", 12, 4, 0 },  { "pytorch-fsdp", 12, 4, 4 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
        g_autoptr(LhFramework) f = load(known[i].name);

        ck_assert_double_eq(lh_framework_optimizer_bytes(f), known[i].optimizer);
        ck_assert_double_eq(lh_framework_gradient_bytes(f), known[i].gradient);
        ck_assert_double_eq(f->states_step_bytes, known[i].step);
    }
}
END_TEST

START_TEST(framework_rejects_broken_files)
{
    static const BrokenInput broken[] = {
        { "longhaul.framework/1", "longhaul.framework/2",
          "dir/f.json:2:13: error: \"schema\" must be one of longhaul.framework/1 (did you mean "
          "\"longhaul.framework/1\"?); found the string \"longhaul.framework/2\"" },
        { "\"source\": \"s\",\n", "",
          "dir/f.json:1:1: error: missing field \"source\" at the top level; it must be a string" },
        { "\"unit\"", "\"units\"",
          "dir/f.json:6:5: error: unknown field \"units\" in \"fsdp\"; did you mean \"unit\"? "
          "allowed: unit, prefetch, reshard_after_forward, halves, gradient_reduce, "
          "reduce_every_micro_batch, overhead_s" },
        { "\"model\"", "\"modal\"",
          "dir/f.json:6:24: error: \"fsdp.unit.value\" must be one of layer, model (did you mean "
          "\"model\"?); found the string \"modal\"" },
        { "\"value\": 2, ", "",
          "dir/f.json:7:17: error: missing field \"value\" in \"fsdp.prefetch\"; it must be a "
          "non-negative integer" },
        { "\"value\": 2,", "\"value\": -2,",
          "dir/f.json:7:28: error: \"fsdp.prefetch.value\" is out of range: found the number -2; "
          "allowed: 0 to 1024" },
        { "\"value\": 2,", "\"value\": 1025,",
          "dir/f.json:7:28: error: \"fsdp.prefetch.value\" is out of range: found the number 1025; "
          "allowed: 0 to 1024" },
        { "true", "1",
          "dir/f.json:8:26: error: \"fsdp.halves.value\" must be true or false; found the number "
          "1" },
        { "\"provenance\": \"fitted\"", "\"provenance\": \"guessed\"",
          "dir/f.json:7:45: error: \"fsdp.prefetch.provenance\" must be one of measured, code, "
          "datasheet, fitted, assumed; found the string \"guessed\"" },
        { ", \"source\": \"c\"", "",
          "dir/f.json:8:15: error: missing field \"source\" in \"fsdp.halves\"; it must be a "
          "string" },
        { "\"25MiB\"", "\"25 MB/s\"",
          "dir/f.json:10:39: error: \"ddp.bucket_bytes.value\": \"25 MB/s\" is not a size such as "
          "64MiB, 80GB or 512K: its unit is unknown; allowed: a number, then nothing, B, KiB, MiB, "
          "GiB, TiB, kB, MB, GB, TB, or K, M, G, T (1024-based; k, m, g and t are the same)" },
        { "36", "1e9",
          "dir/f.json:11:35: error: \"kernels.norm.value\" is out of range: found the number 1e9; "
          "allowed: 0 to 1000" },
        { "\"triton\"", "\"\"",
          "dir/f.json:12:44: error: \"host.attention_kernel.value\" has 0 characters; allowed: 1 "
          "to 1000" },
        { "\"kernels\": {", "\"kernels\": 4, \"k\": {",
          "dir/f.json:11:14: error: \"kernels\" must be an object; found the number 4" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(broken); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *bad = break_text(framework_text, &broken[i]);

        ck_assert_msg(parse(bad, &error) == NULL, "case %zu", i);
        check_message(error, broken[i].message);
    }
}
END_TEST

START_TEST(framework_names_are_looked_up)
{
    g_autoptr(GError) error = NULL;

    ck_assert(lh_framework_load("megatron-ml", &error) == NULL);
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
    ck_assert(strstr(error->message, "did you mean \"megatron-lm\"?") != NULL);
}
END_TEST

LH_TEST_MAIN("framework", framework_files_are_valid, framework_values_are_read,
             framework_defaults_hold, framework_states_add_up, framework_rejects_broken_files,
             framework_names_are_looked_up)
