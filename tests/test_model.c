/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model files: every shipped one, Hugging Face files of every family, and broken ones.
 */
#include "data_files.h"
#include "model/families.h"
#include "model/model_file.h"
#include "model/model_rules.h"
#include "model/parameters.h"

#include <math.h>

START_TEST(model_files_are_valid)
{
    g_auto(GStrv) names = lh_data_list("models");

    ck_assert_uint_ge(g_strv_length(names), 25);
    for (char **name = names; *name != NULL; name++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhModel) model = lh_model_load(*name, &error);
        g_autofree char *path = lh_data_find("models", *name, NULL);

        ck_assert_msg(model != NULL, "%s", error != NULL ? error->message : *name);
        ck_assert_str_eq(model->name, *name);
        ck_assert_ptr_nonnull(model->description);
        ck_assert_uint_eq(strlen(model->sha256), 64);
        check_round_trip(path, lh_model_fields, sizeof(LhModel));
    }
}
END_TEST

/* Counts matrices only: norms and biases are less than a thousandth of the parameters. */
static double
parameters(const LhModel *m)
{
    const double h = (double)m->hidden_size;
    const double heads = (double)(2 * m->num_attention_heads + 2 * m->num_query_groups);
    const double attention = h * heads * (double)m->kv_channels;
    const double mlp =
        h * (double)m->ffn_hidden_size * (m->gated_mlp ? 3 : 2) * (double)MAX(m->num_experts, 1);
    const double embeddings = (double)m->vocab_size * h * (m->tied_embeddings ? 1 : 2);

    return (double)m->num_layers * (attention + mlp) + embeddings;
}

START_TEST(model_shapes_give_published_sizes)
{
    static const struct {
        const char *name;
        double billions;
    } published[] = {
        { "llama-7b", 6.738 },     { "llama-13b", 13.016 },     { "llama-33b", 32.529 },
        { "llama-65b", 65.286 },   { "llama-2-70b", 68.977 },   { "llama-3-8b", 8.030 },
        { "llama-3-70b", 70.554 }, { "llama-3.1-405b", 405.9 }, { "qwen3-8b", 8.19 },
        { "qwen3-32b", 32.76 },    { "qwen3-235b", 235.1 },     { "gpt3-13b", 12.85 },
        { "gpt3-175b", 174.6 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(published); i++) {
        g_autoptr(LhModel) model = lh_model_load(published[i].name, NULL);
        const double ratio = parameters(model) / 1e9 / published[i].billions;

        ck_assert_msg(fabs(ratio - 1) < 0.01, "%s: %g times the published parameters",
                      published[i].name, ratio);
    }
}
END_TEST

/* Formats the layer pattern, e.g. "7 linear gate, 1 softmax". */
static char *
describe_layers(const LhModel *m)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < m->layers->len; i++) {
        const LhLayerRun *run = &g_array_index(m->layers, LhLayerRun, i);

        g_string_append_printf(text, "%s%u %s%s", i > 0 ? ", " : "", (unsigned)run->count,
                               lh_layer_kind_names[run->kind],
                               run->output_gate ? " gate"
                               : run->whole     ? " whole"
                                                : "");
    }
    return g_string_free(text, FALSE);
}

/* L, linear, h, a, g, d, f, gated, experts, per token, V, tied, positions, window, pattern */
static char *
describe(const LhModel *m)
{
    g_autofree char *layers = describe_layers(m);

    return g_strdup_printf(
        "%s: L %u/%u h %u a %u/%u d %u f %u%s x %u/%u V %u%s N %u/%u of %s", m->name,
        (unsigned)m->num_layers, (unsigned)lh_model_count(m, LH_LAYER_LINEAR),
        (unsigned)m->hidden_size, (unsigned)m->num_attention_heads, (unsigned)m->num_query_groups,
        (unsigned)m->kv_channels, (unsigned)m->ffn_hidden_size, m->gated_mlp ? " gated" : "",
        (unsigned)m->num_experts, (unsigned)m->experts_per_token, (unsigned)m->vocab_size,
        m->tied_embeddings ? " tied" : "", (unsigned)m->max_position_embeddings,
        (unsigned)m->sliding_window, layers);
}

static char *
hf_path(const char *name)
{
    return g_build_filename(g_getenv("LONGHAUL_SOURCE_DIR"), "tests", "data", "hf", name,
                            "config.json", NULL);
}

START_TEST(model_reads_hugging_face)
{
    static const char *const expected[] = {
        "deepseek-v3: L 61/0 h 7168 a 128/128 d 160 f 2048 gated x 257/9 V 129280 N 163840/0"
        " of 1 softmax",
        "gemma-2-9b: L 42/0 h 3584 a 16/8 d 256 f 14336 gated x 0/0 V 256000 tied N 8192/4096"
        " of 1 softmax, 1 softmax whole",
        "gemma-3-12b: L 48/0 h 3840 a 16/8 d 256 f 15360 gated x 0/0 V 262208 tied N 131072/1024"
        " of 5 softmax, 1 softmax whole",
        "gpt-oss-20b: L 24/0 h 2880 a 64/8 d 64 f 2880 gated x 32/4 V 201088 N 131072/128"
        " of 1 softmax, 1 softmax whole",
        "gpt-neox-20b: L 44/0 h 6144 a 64/64 d 96 f 24576 x 0/0 V 50432 N 2048/0"
        " of 1 softmax",
        "gpt2: L 12/0 h 768 a 12/12 d 64 f 3072 x 0/0 V 50257 tied N 1024/0"
        " of 1 softmax",
        "llama-3-8b: L 32/0 h 4096 a 32/8 d 128 f 14336 gated x 0/0 V 128256 N 8192/0"
        " of 1 softmax",
        "llava-text-config: L 32/0 h 4096 a 32/32 d 128 f 11008 gated x 0/0 V 32064 tied N 4096/0"
        " of 1 softmax",
        "minimax-small: L 16/14 h 6144 a 64/8 d 128 f 9216 gated x 32/2 V 200064 N 10240000/0"
        " of 7 linear gate, 1 softmax",
        "minimax-text-01: L 80/70 h 6144 a 64/8 d 128 f 9216 gated x 32/2 V 200064 N 10240000/0"
        " of 7 linear gate, 1 softmax",
        "mistral-7b: L 32/0 h 4096 a 32/8 d 128 f 14336 gated x 0/0 V 32000 N 32768/4096"
        " of 1 softmax",
        "mixtral-8x7b: L 32/0 h 4096 a 32/8 d 128 f 14336 gated x 8/2 V 32000 N 32768/0"
        " of 1 softmax",
        "opt-350m: L 24/0 h 1024 a 16/16 d 64 f 4096 x 0/0 V 50272 tied N 2048/0"
        " of 1 softmax",
        "qwen2-window: L 24/0 h 896 a 14/2 d 64 f 4864 gated x 0/0 V 151936 tied N 32768/0"
        " of 1 softmax",
        "qwen2-window-used: L 24/0 h 896 a 14/2 d 64 f 4864 gated x 0/0 V 151936 tied N 32768/4096"
        " of 12 softmax whole, 12 softmax",
        "qwen3-235b: L 94/0 h 4096 a 64/4 d 128 f 1536 gated x 128/8 V 151936 N 40960/0"
        " of 1 softmax",
        "qwen3-32b: L 64/0 h 5120 a 64/8 d 128 f 25600 gated x 0/0 V 151936 N 40960/0"
        " of 1 softmax",
        "starcoder: L 40/0 h 6144 a 48/1 d 128 f 24576 x 0/0 V 49152 tied N 8192/0"
        " of 1 softmax",
        "transnormer-7b: L 30/30 h 4096 a 32/32 d 128 f 11008 gated x 0/0 V 64000 N 2048/0"
        " of 1 linear gate",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(expected); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *name = g_strndup(expected[i], strcspn(expected[i], ":"));
        g_autofree char *path = hf_path(name);
        g_autoptr(LhModel) model = lh_model_load(path, &error);
        g_autofree char *found = NULL;

        ck_assert_msg(model != NULL, "%s", error != NULL ? error->message : path);
        found = describe(model);
        ck_assert_str_eq(found, expected[i]);
        ck_assert_str_eq(model->source, path);
    }
}
END_TEST

/* A pattern that is written out, and one that does not repeat. */
START_TEST(model_folds_layers)
{
    static const char list[] = "0010010011";
    static const struct {
        guint layers;
        const char *pattern;
    } cases[] = {
        { 9, "2 softmax, 1 linear" },
        { 6, "2 softmax, 1 linear" },
        { 10, "2 softmax, 1 linear, 2 softmax, 1 linear, 2 softmax, 2 linear" },
        { 2, "1 softmax" },
        { 1, "1 softmax" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GArray) each = g_array_new(FALSE, FALSE, sizeof(LhLayerRun));
        LhModel model = { .num_layers = cases[i].layers };
        g_autofree char *found = NULL;

        for (guint k = 0; k < cases[i].layers; k++) {
            const LhLayerRun layer = { .kind = list[k] - '0', .count = 1 };

            g_array_append_val(each, layer);
        }
        lh_model_fold_layers(&model, each);
        found = describe_layers(&model);
        ck_assert_str_eq(found, cases[i].pattern);
        for (guint k = 0; k < cases[i].layers; k++)
            ck_assert_int_eq(lh_model_layer(&model, k)->kind, list[k] - '0');
        ck_assert_uint_eq(lh_model_count(&model, LH_LAYER_SOFTMAX) +
                              lh_model_count(&model, LH_LAYER_LINEAR),
                          cases[i].layers);
        g_array_unref(model.layers);
    }
}
END_TEST

static guint
folded_period(const LhModel *model)
{
    guint period = 0;

    for (guint i = 0; i < model->layers->len; i++)
        period += (guint)g_array_index(model->layers, LhLayerRun, i).count;
    return period;
}

/* Checks every pattern of up to 12 layers against the definition of a period, then a pattern of
 * many layers whose last one differs. */
START_TEST(model_folds_to_the_least_period)
{
    for (guint layers = 1; layers <= 12; layers++) {
        for (guint bits = 0; bits < 1U << layers; bits++) {
            g_autoptr(GArray) each = g_array_new(FALSE, FALSE, sizeof(LhLayerRun));
            LhModel model = { .num_layers = layers };
            guint least = 1;

            for (guint k = 0; k < layers; k++) {
                const LhLayerRun layer = { .kind = bits >> k & 1, .count = 1 };

                g_array_append_val(each, layer);
            }
            while (layers % least != 0 || bits >> least != (bits & ((1U << (layers - least)) - 1)))
                least++;
            lh_model_fold_layers(&model, each);
            ck_assert_uint_eq(folded_period(&model), least);
            g_array_unref(model.layers);
        }
    }
}
END_TEST

START_TEST(model_folds_many_layers)
{
    g_autoptr(GArray) each = g_array_new(FALSE, TRUE, sizeof(LhLayerRun));
    LhModel model = { .num_layers = 65536 };

    g_array_set_size(each, 65536);
    for (guint k = 0; k < each->len; k++)
        g_array_index(each, LhLayerRun, k).count = 1;
    g_array_index(each, LhLayerRun, each->len - 1).kind = LH_LAYER_LINEAR;
    lh_model_fold_layers(&model, each);
    ck_assert_uint_eq(model.layers->len, 2);
    ck_assert_uint_eq(folded_period(&model), 65536);
    g_array_unref(model.layers);
}
END_TEST

/* A model has the same shape in our file and in Hugging Face's. */
START_TEST(model_own_and_hugging_face_agree)
{
    static const char *const names[] = { "llama-3-8b",  "qwen3-32b",       "qwen3-235b",
                                         "deepseek-v3", "minimax-text-01", NULL };

    for (const char *const *name = names; *name != NULL; name++) {
        g_autofree char *path = hf_path(*name);
        g_autoptr(LhModel) own = lh_model_load(*name, NULL);
        g_autoptr(LhModel) hf = lh_model_load(path, NULL);
        g_autofree char *own_text = NULL;
        g_autofree char *hf_text = NULL;

        own->max_position_embeddings = hf->max_position_embeddings; /* our files omit it */
        own_text = describe(own);
        hf_text = describe(hf);
        ck_assert_str_eq(own_text, hf_text);
    }
}
END_TEST

static const char *const own_text = "{\n"
                                    "  \"schema\": \"longhaul.model/1\",\n"
                                    "  \"name\": \"m\",\n"
                                    "  \"source\": \"s\",\n"
                                    "  \"num_layers\": 4,\n"
                                    "  \"hidden_size\": 512,\n"
                                    "  \"num_attention_heads\": 8,\n"
                                    "  \"ffn_hidden_size\": \"2K\",\n"
                                    "  \"vocab_size\": 1000\n"
                                    "}\n";

static LhModel *
parse(const char *text, GError **error)
{
    return lh_model_parse("dir/m.json", text, strlen(text), error);
}

START_TEST(model_fills_in_defaults)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhModel) model = parse(own_text, &error);
    g_autofree char *found = NULL;

    ck_assert_msg(model != NULL, "%s", error != NULL ? error->message : "no message");
    found = describe(model);
    ck_assert_str_eq(found, "m: L 4/0 h 512 a 8/8 d 64 f 2048 x 0/0 V 1000 N 0/0 of 1 softmax");
}
END_TEST

/* Rotary positions: stated in the file, implied by the family, or none. */
START_TEST(model_knows_rotary_positions)
{
    static const struct {
        const char *name;
        bool published; /* true: the Hugging Face file; false: ours */
        double base;
    } models[] = {
        { "llama-3-8b", false, 500000 },
        { "llama-3-8b", true, 500000 },
        { "qwen3-32b", false, 1000000 },
        { "qwen3-32b", true, 1000000 },
        { "llama-7b", false, 10000 },
        { "mistral-7b", true, 10000 },
        { "deepseek-v3", false, 10000 },
        { "deepseek-v3", true, 10000 },
        { "gpt-neox-20b", true, 10000 },
        { "gpt3-13b", false, 0 },
        { "gpt2", true, 0 },
        { "opt-350m", true, 0 },
        { "tnl-1b", false, 0 },
        { "transnormer-7b", true, 0 },
        { "minimax-text-01", false, 1e7 },
    };
    static const BrokenInput negative = {
        "1000\n",
        "1000, \"rotary_base\": -1\n",
        "dir/m.json:9:38: error: \"rotary_base\" is out of range: found the number -1; allowed: "
        "0 to 1e+18",
    };
    static const BrokenInput stated = { "1000\n", "1000, \"rotary_base\": 0\n", NULL };
    g_autofree char *none = break_text(own_text, &stated);
    g_autofree char *bad = break_text(own_text, &negative);
    g_autoptr(LhModel) without = parse(none, NULL);
    g_autoptr(GError) error = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autofree char *path =
            models[i].published ? hf_path(models[i].name) : g_strdup(models[i].name);
        g_autoptr(LhModel) model = lh_model_load(path, NULL);

        ck_assert_msg(model->rotary_base == models[i].base, "%s: %g", path, model->rotary_base);
    }
    ck_assert_double_eq(without->rotary_base, 0);
    ck_assert_ptr_null(parse(bad, &error));
    check_message(error, negative.message);
}
END_TEST

/* The larger Baichuan model uses ALiBi instead of rotary positions although no key says so. */
START_TEST(model_knows_positions_by_width)
{
    static const char small[] = "{\"model_type\": \"baichuan\"}";
    static const char large[] =
        "{\"model_type\": \"baichuan\", \"hidden_size\": 5120, \"num_attention_heads\": 40}";
    g_autoptr(LhModel) rotary = lh_model_parse("m", small, strlen(small), NULL);
    g_autoptr(LhModel) alibi = lh_model_parse("m", large, strlen(large), NULL);

    ck_assert_double_eq(rotary->rotary_base, 10000);
    ck_assert_double_eq(alibi->rotary_base, 0);
}
END_TEST

/* The model lists what its estimate leaves out. */
START_TEST(model_notes_what_is_left_out)
{
    static const char text[] =
        "{\"model_type\": \"llava\", \"vision_config\": {\"hidden_size\": 1}, "
        "\"vision_tower\": \"v\", \"num_nextn_predict_layers\": 1, \"n_predict\": 0, "
        "\"quantization_config\": {\"bits\": 4}, \"text_config\": {}}";
    g_autoptr(LhModel) model = lh_model_parse("m", text, strlen(text), NULL);

    ck_assert_ptr_nonnull(model);
    ck_assert_uint_eq(model->notes->len, 3);
    ck_assert_str_eq(g_ptr_array_index(model->notes, 0),
                     "the model's key \"vision_config\": vision and audio parts are left out");
    ck_assert_str_eq(
        g_ptr_array_index(model->notes, 1),
        "the model's key \"num_nextn_predict_layers\": multi-token prediction layers are left out");
    ck_assert_str_eq(g_ptr_array_index(model->notes, 2),
                     "the model's key \"quantization_config\": weights are counted in the "
                     "scenario's element type, not quantised");
}
END_TEST

/* The sizes of latent attention are ignored if the file says that it has none. */
START_TEST(model_drops_latent_attention)
{
    static const char with[] = "{\"model_type\": \"deepseek_v2\", \"n_routed_experts\": 0}";
    static const char without[] = "{\"model_type\": \"deepseek_v2\", \"n_routed_experts\": 0, "
                                  "\"use_mla\": false, \"kv_lora_rank\": 512}";
    g_autoptr(LhModel) latent = lh_model_parse("m", with, strlen(with), NULL);
    g_autoptr(LhModel) plain = lh_model_parse("m", without, strlen(without), NULL);

    ck_assert_uint_eq(latent->kv_channels, 160);
    ck_assert_uint_eq(plain->kv_channels, 128);
    ck_assert_uint_eq(plain->weights.attention_parameters, 0);
}
END_TEST

static void
check_broken(const char *text, const BrokenInput *broken, gsize count)
{
    for (gsize i = 0; i < count; i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *bad = break_text(text, &broken[i]);

        ck_assert_ptr_null(parse(bad, &error));
        check_message(error, broken[i].message);
    }
}

START_TEST(model_rejects_broken_files)
{
    static const BrokenInput broken[] = {
        { "longhaul.model/1", "longhaul.model/2",
          "dir/m.json:2:13: error: \"schema\" must be one of longhaul.model/1 (did you mean "
          "\"longhaul.model/1\"?); found the string \"longhaul.model/2\"" },
        { "\"num_layers\": 4", "\"num_layer\": 4",
          "dir/m.json:5:3: error: unknown field \"num_layer\" at the top level; did you mean "
          "\"num_layers\"? allowed: schema, name, description, source, num_layers, layers, "
          "hidden_size, num_attention_heads, num_query_groups, kv_channels, ffn_hidden_size, "
          "gated_mlp, num_experts, experts_per_token, vocab_size, tied_embeddings, "
          "max_position_embeddings, sliding_window, rotary_base, bidirectional, biases, qkv_bias, "
          "qk_norm, "
          "norms_per_layer, "
          "learned_positions, shared_experts, dense_layers, dense_ffn_hidden_size, "
          "shared_ffn_hidden_size, embedding_width, other_parameters, attention_parameters" },
        { "  \"hidden_size\": 512,\n", "",
          "dir/m.json:1:1: error: missing field \"hidden_size\" at the top level; it must be a "
          "count such as 4096, 512K or 1M" },
        { "\"num_layers\": 4", "\"num_layers\": 0",
          "dir/m.json:5:17: error: \"num_layers\" is out of range: found the number 0; allowed: 1 "
          "to 65536" },
        { "\"num_layers\": 4", "\"num_layers\": -4",
          "dir/m.json:5:17: error: \"num_layers\" is out of range: found the number -4; allowed: 1 "
          "to 65536" },
        { "\"num_layers\": 4", "\"num_layers\": 4.5",
          "dir/m.json:5:17: error: \"num_layers\" must be a count such as 4096, 512K or 1M; found "
          "the number 4.5" },
        { "\"num_attention_heads\": 8", "\"num_attention_heads\": 7",
          "dir/m.json:7:26: error: \"num_attention_heads\" is 7, which does not divide "
          "\"hidden_size\" 512; give the head dimension, \"kv_channels\"" },
        { "\"num_attention_heads\": 8", "\"num_attention_heads\": 8, \"num_query_groups\": 3",
          "dir/m.json:7:49: error: \"num_query_groups\" is 3, which does not divide "
          "\"num_attention_heads\" 8" },
        { "\"num_layers\": 4",
          "\"num_layers\": 4, \"layers\": [{\"attention\": \"linear\", \"count\": 3}]",
          "dir/m.json:5:30: error: \"layers\" has 3 layers, which does not divide \"num_layers\" "
          "4" },
        { "\"num_layers\": 4", "\"num_layers\": 4, \"layers\": [{\"attention\": \"mamba\"}]",
          "dir/m.json:5:45: error: \"layers[0].attention\" must be one of softmax, linear; found "
          "the "
          "string \"mamba\"" },
        { "\"vocab_size\": 1000", "\"vocab_size\": 1000, \"num_experts\": 8",
          "dir/m.json:9:38: error: \"num_experts\" needs \"experts_per_token\" beside it" },
        { "\"vocab_size\": 1000",
          "\"vocab_size\": 1000, \"num_experts\": 8, \"experts_per_token\": 9",
          "dir/m.json:9:62: error: \"experts_per_token\" is 9; allowed: 1 to \"num_experts\" 8" },
        { "\"2K\"", "\"2KB\"",
          "dir/m.json:8:22: error: \"ffn_hidden_size\": \"2KB\" is not a count such as 4096, 512K "
          "or "
          "1M: its unit is unknown; allowed: digits, then nothing, K, M or G (1024-based; k, m and "
          "g are the same)" },
        { "\"s\"", "\"\"",
          "dir/m.json:4:13: error: \"source\" has 0 characters; allowed: 1 to 1000" },
        { "\"m\"", "7", "dir/m.json:3:11: error: \"name\" must be a string; found the number 7" },
    };

    check_broken(own_text, broken, G_N_ELEMENTS(broken));
}
END_TEST

START_TEST(model_rejects_broken_hugging_face)
{
    static const char *const text = "{\"model_type\": \"llama\",\n"
                                    " \"hidden_size\": 512,\n"
                                    " \"num_hidden_layers\": 2,\n"
                                    " \"num_attention_heads\": 8,\n"
                                    " \"intermediate_size\": 1024,\n"
                                    " \"vocab_size\": 1000}\n";
    static const BrokenInput broken[] = {
        { "{\"model_type\": \"llama\",\n", "{",
          "dir/m.json:1:1: error: missing field \"model_type\": neither a Hugging Face config.json "
          "of a known model nor, without \"schema\": \"longhaul.model/1\", a longhaul model file; "
          "--assume llama reads it as a Llama" },
        { "\"llama\"", "\"lama\"",
          "dir/m.json:1:16: error: unknown model type \"lama\" (did you mean \"llama\"?): the "
          "meaning of its keys is not known; --assume llama reads it as a Llama, and every output "
          "states this" },
        { "\"llama\"", "\"jamba\", \"attn_layer_period\": 8",
          "dir/m.json:1:46: error: \"attn_layer_period\" of model type jamba: Mamba layers: not "
          "supported, so this model cannot be predicted" },
        { "512", "0", "dir/m.json:2:17: error: \"hidden_size\" is 0; allowed: at least 1" },
        { "512", "Infinity",
          "dir/m.json:2:17: error: \"hidden_size\" must be a non-negative integer; found "
          "Infinity" },
        { "512", "1000000000",
          "dir/m.json:2:17: error: \"hidden_size\" is out of range: found the number 1000000000; "
          "allowed: 0 to 16777216" },
        { ": 8", ": 7",
          "dir/m.json:4:25: error: \"num_attention_heads\" is 7, which does not divide "
          "\"hidden_size\" 512; give the head dimension, \"head_dim\"" },
        { ": 8", ": 8, \"num_key_value_heads\": 5",
          "dir/m.json:4:51: error: \"num_key_value_heads\" is 5, which does not divide "
          "\"num_attention_heads\" 8" },
        { "1000}", "1000, \"num_local_experts\": 8}",
          "dir/m.json:6:43: error: unknown key \"num_local_experts\" of model type llama: it may "
          "affect the model's shape; --ignore-key num_local_experts reads the model without it" },
        { "\"llama\"", "\"mistral\", \"layer_types\": []",
          "dir/m.json:1:42: error: \"layer_types\" has 0 elements for 2 layers" },
        { "\"llama\"", "\"mistral\", \"layer_types\": [\"full_attention\"]",
          "dir/m.json:1:42: error: \"layer_types\" has 1 elements for 2 layers" },
        { "\"llama\"", "\"mistral\", \"layer_types\": [\"full_attention\", \"mamba\"]",
          "dir/m.json:1:61: error: \"layer_types[1]\" is \"mamba\", which is not supported; "
          "allowed: full_attention, sliding_attention, chunked_attention" },
        { "512", "null", "dir/m.json:2:17: error: \"hidden_size\" is null; allowed: at least 1" },
        { "\"llama\"", "\"llama\", \"architectures\": [\"Qwen3ForCausalLM\"]",
          "dir/m.json:1:42: error: \"architectures\" contains Qwen3ForCausalLM, which is model "
          "type qwen3, but \"model_type\" is \"llama\": leave out the wrong one" },
        { "1000}", "1000, \"text_config\": {\"model_type\": \"llama\", \"hidden_size\": 256}}",
          "dir/m.json:2:17: error: \"hidden_size\" is 512 here and 256 in \"text_config\": model "
          "type llama reads its sizes here, so leave one out" },
        { "\"llama\"", "\"granitemoehybrid\"",
          "dir/m.json:1:1: error: missing field \"layer_types\", the list of layers of model type "
          "granitemoehybrid: it alone states the kind of attention of each layer" },
        { "\"llama\"", "\"minimax_text_01\"",
          "dir/m.json:1:1: error: missing field \"attn_type_list\", the list of layers of model "
          "type minimax_text_01: it alone states the kind of attention of each layer" },
        { "\"llama\"", "\"deepseek_v2\", \"num_experts_per_tok\": 6",
          "dir/m.json:1:54: error: \"num_experts_per_tok\" needs \"n_routed_experts\" beside it" },
        { "\"llama\"", "\"deepseek_v2\"",
          "dir/m.json:1:1: error: missing field \"n_routed_experts\", the number of experts of "
          "model type deepseek_v2; allowed: 0, for a model without experts" },
        { "\"llama\"", "\"gpt2\", \"n_head\": 16",
          "dir/m.json:4:25: error: \"num_attention_heads\" is 8 and \"n_head\" is 16; both name "
          "the same size, so leave one out" },
    };

    check_broken(text, broken, G_N_ELEMENTS(broken));
}
END_TEST

/* Two names of one size do not contradict each other if both have the same value. */
START_TEST(model_takes_two_names_that_agree)
{
    static const char *const text = "{\"text_config\": {\"model_type\": \"gpt2\", \"hidden_size\": "
                                    "512, \"n_embd\": 512, \"num_hidden_layers\": 2,"
                                    " \"num_attention_heads\": 8, \"n_head\": 8, \"n_inner\": 1024,"
                                    " \"vocab_size\": 1000}}";
    g_autoptr(GError) error = NULL;
    g_autoptr(LhModel) model = lh_model_parse("m.json", text, strlen(text), &error);

    ck_assert_msg(model != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_eq(model->hidden_size, 512);
    ck_assert_uint_eq(model->num_attention_heads, 8);
}
END_TEST

START_TEST(model_names_files_there_are)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(lh_model_load("lama-7b", &error));
    ck_assert_ptr_nonnull(strstr(error->message, "did you mean \"llama-7b\"?"));
}
END_TEST

/* Exact parameter counts, as published with the weights (from the sizes of their tensors). */
START_TEST(model_counts_parameters)
{
    static const struct {
        const char *name; /* a file of models/; with "+" in front, of tests/data/hf */
        uint64_t parameters;
    } published[] = {
        { "llama-7b", 6738415616 },       { "llama-13b", 13015864320 },
        { "llama-33b", 32528943616 },     { "llama-65b", 65285660672 },
        { "llama-2-70b", 68976648192 },   { "llama-3-8b", 8030261248 },
        { "llama-3-70b", 70553706496 },   { "llama-3.1-405b", 405853388800 },
        { "qwen3-8b", 8190735360 },       { "qwen3-32b", 32762123264 },
        { "qwen3-4b", 4022468096 },       { "qwen3-0.6b", 596049920 },
        { "qwen3-235b", 235093634560 },   { "+gpt2", 124439808 },
        { "+gpt-neox-20b", 20554567680 }, { "+llama-3-8b", 8030261248 },
        { "+mistral-7b", 7241732096 },    { "+mixtral-8x7b", 46702792704 },
        { "+qwen2-window", 494032768 },   { "+qwen3-32b", 32762123264 },
        { "+qwen3-235b", 235093634560 },  { "+starcoder", 15517456384 },
        { "+gemma-2-9b", 9241705984 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(published); i++) {
        const char *name = published[i].name;
        g_autofree char *path = name[0] == '+' ? hf_path(name + 1) : g_strdup(name);
        g_autoptr(LhModel) model = lh_model_load(path, NULL);

        ck_assert_ptr_nonnull(model);
        ck_assert_msg(lh_model_parameters(model) == published[i].parameters,
                      "%s has %" G_GUINT64_FORMAT " parameters; published: %" G_GUINT64_FORMAT,
                      name, lh_model_parameters(model), published[i].parameters);
    }
}
END_TEST

/* longhaul's own file and the config.json that it was made from give equal counts. */
START_TEST(model_counts_latent_attention_alike)
{
    g_autofree char *path = hf_path("deepseek-v3");
    g_autoptr(LhModel) own = lh_model_load("deepseek-v3", NULL);
    g_autoptr(LhModel) published = lh_model_load(path, NULL);

    ck_assert_uint_eq(lh_model_parameters(own), lh_model_parameters(published));
}
END_TEST

/* Of these models only a rounded size is published, in the name or as listed here. */
START_TEST(model_counts_about_as_many_parameters_as_its_name_says)
{
    static const struct {
        const char *name;
        double parameters, off;
    } published[] = {
        { "gpt3-125m", 125e6, 0.01 },
        { "gpt3-350m", 350e6, 0.02 },
        { "gpt3-760m", 760e6, 0.01 },
        { "gpt3-1.3b", 1.3e9, 0.02 },
        { "gpt3-2.7b", 2.7e9, 0.02 },
        { "gpt3-6.7b", 6.7e9, 0.01 },
        { "gpt3-13b", 13e9, 0.02 },
        { "gpt3-175b", 175e9, 0.01 },
        { "minimax-text-01", 456e9, 0.01 },
        { "tnl-385m", 385e6, 0.15 },
        { "tnl-1b", 1e9, 0.2 },
        { "tnl-3b", 3e9, 0.2 },
        { "tnl-7b", 7e9, 0.05 },
        { "deepseek-v3", 671e9, 0.0001 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(published); i++) {
        g_autoptr(LhModel) model = lh_model_load(published[i].name, NULL);
        const double found = (double)lh_model_parameters(model);

        ck_assert_msg(found > published[i].parameters * (1 - published[i].off) &&
                          found < published[i].parameters * (1 + published[i].off),
                      "%s has %g parameters; published: %g", published[i].name, found,
                      published[i].parameters);
    }
}
END_TEST

/* ---- published models ---- */

/* Formats e.g. "32+0 32/8 window 32x4096 chunk 0x0 experts 0": softmax and linear layers, heads
 * and key-value heads, layers with a window and with chunks, layers with experts. */
static char *
shape_of(const LhModel *m)
{
    const uint64_t linear = lh_model_count(m, LH_LAYER_LINEAR), windowed = lh_model_windowed(m);
    uint64_t chunked = 0;

    for (uint64_t i = 0; m->chunk_size > 0 && i < m->num_layers; i++)
        chunked += lh_model_layer(m, i)->whole ? 0 : 1;
    return g_strdup_printf(
        "%u+%u %u/%u window %ux%u chunk %ux%u experts %u", (unsigned)(m->num_layers - linear),
        (unsigned)linear, (unsigned)m->num_attention_heads, (unsigned)m->num_query_groups,
        (unsigned)windowed, windowed > 0 ? (unsigned)m->sliding_window : 0, (unsigned)chunked,
        (unsigned)m->chunk_size, (unsigned)(m->num_layers - lh_model_dense(m)));
}

/* Tolerance of a published parameter count by its origin; see the data file. */
static const struct {
    const char *word;
    double share;
} origins[] = {
    { "index", 0.0001 },   { "class", 0.0001 }, { "port", 0.0001 }, { "log", 0.0001 },
    { "recalled", 0.001 }, { "card", 0.03 },    { "name", 0.03 },
};

/* Returns whether the count is within the tolerance of its origin, or within the one given
 * explicitly ("7000000000/9%"). */
static bool
counts_as(const LhModel *model, const char *published, const char *origin)
{
    const char *off = strchr(published, '/');
    const double count = g_ascii_strtod(published + strspn(published, "~"), NULL);
    double share = -1;

    for (gsize i = 0; i < G_N_ELEMENTS(origins); i++) {
        if (strcmp(origins[i].word, origin) == 0)
            share = origins[i].share;
    }
    ck_assert_msg(share > 0, "unknown origin: %s", origin);
    if (off != NULL)
        share = g_ascii_strtod(off + 1, NULL) / 100;
    return fabs((double)lh_model_parameters(model) / count - 1) < share;
}

/* The family row that @model was read with. */
static const LhHfFamily *
family_of(const LhModel *model)
{
    const char *type = strrchr(model->description, ' ') + 1;

    return lh_hf_family(type) != NULL ? lh_hf_family(type) : lh_hf_family_of_architecture(type);
}

/* Returns false if the model was rejected as expected. */
static bool
check_published(char **columns, GHashTable *families)
{
    const char *name = columns[0], *expected = columns[1], *config = columns[3];
    g_auto(GStrv) origin = g_strsplit(columns[2], " ", 2);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhModel) model = lh_model_parse("config.json", config, strlen(config), &error);
    g_auto(GStrv) words = g_strsplit(expected, " ", 2);
    g_autofree char *shape = NULL, *key = NULL;

    if (strcmp(words[0], "refused") == 0) {
        key = g_str_has_prefix(words[1], "unknown") ? g_strdup_printf("error: %s", words[1])
                                                    : g_strdup_printf("error: \"%s\"", words[1]);
        ck_assert_msg(model == NULL, "%s is read", name);
        ck_assert_msg(strstr(error->message, key) != NULL, "%s: %s", name, error->message);
        return false;
    }
    ck_assert_msg(model != NULL, "%s: %s", name, error != NULL ? error->message : "");
    shape = shape_of(model);
    ck_assert_msg(strcmp(shape, words[1]) == 0, "%s is %s, not %s", name, shape, words[1]);
    ck_assert_msg(counts_as(model, words[0], origin[0]),
                  "%s has %" G_GUINT64_FORMAT " parameters, not %s", name,
                  lh_model_parameters(model), words[0]);
    g_hash_table_add(families, (gpointer)family_of(model));
    return true;
}

/* A row states a reason if, and only if, it allows a deviation of its own. */
static void
check_reason(char **columns)
{
    const gchar *count = columns[1];
    const bool off = strchr(count, '%') != NULL;

    ck_assert_msg(off == (g_strv_length(columns) == 5), "%s: %s", columns[0], count);
}

/* Every family that is not rejected has a row with a parameter count. */
static void
check_families(GHashTable *counted)
{
    for (const LhHfFamily *const *kin = lh_hf_families; *kin != NULL; kin++) {
        for (const LhHfFamily *f = *kin; f->model_types != NULL; f++)
            ck_assert_msg(f->refused != NULL || g_hash_table_contains(counted, f), "no model of %s",
                          f->model_types);
    }
}

START_TEST(model_reads_published_ones)
{
    g_autofree char *path = g_build_filename(g_getenv("LONGHAUL_SOURCE_DIR"), "tests", "data",
                                             "published_models.tsv", NULL);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    g_autoptr(GHashTable) families = g_hash_table_new(NULL, NULL);
    guint answered = 0, refused = 0;

    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL && **line != '\0'; line++) {
        g_auto(GStrv) columns = g_strsplit(*line, "\t", 5);

        if (**line == '#')
            continue;
        check_reason(columns);
        if (check_published(columns, families))
            answered++;
        else
            refused++;
    }
    ck_assert_uint_ge(answered, 290);
    ck_assert_uint_ge(answered + refused, 390);
    check_families(families);
}
END_TEST

LH_TEST_MAIN("model", model_knows_positions_by_width, model_notes_what_is_left_out,
             model_drops_latent_attention, model_reads_published_ones, model_files_are_valid,
             model_shapes_give_published_sizes, model_reads_hugging_face,
             model_own_and_hugging_face_agree, model_folds_layers, model_folds_to_the_least_period,
             model_folds_many_layers, model_fills_in_defaults, model_knows_rotary_positions,
             model_rejects_broken_files, model_rejects_broken_hugging_face,
             model_takes_two_names_that_agree, model_names_files_there_are, model_counts_parameters,
             model_counts_latent_attention_alike,
             model_counts_about_as_many_parameters_as_its_name_says)
