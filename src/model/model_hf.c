/*
 * Hugging Face config.json. Families spell the same size in different ways, and what they leave out
 * follows from `model_type`; the tables below hold both. Left out: shapes that differ between
 * layers beyond linear and softmax attention. A model with a few dense layers among its MoE layers
 * is read as MoE throughout, and latent attention (MLA) as the attention that it expands to.
 */
#include "base/error.h"
#include "model/model_private.h"

#include <string.h>

/* The sizes that a config may state; 0 stands for absent. */
typedef enum {
    HF_HIDDEN,
    HF_LAYERS,
    HF_HEADS,
    HF_GROUPS,
    HF_HEAD_DIM,
    HF_FFN,
    HF_EXPERT_FFN,
    HF_EXPERTS,
    HF_EXPERTS_PER_TOKEN,
    HF_SHARED_EXPERTS,
    HF_VOCAB,
    HF_POSITIONS,
    HF_WINDOW,
    HF_WINDOW_PATTERN,
    HF_WINDOW_FIRST,
    HF_QK_NOPE,
    HF_QK_ROPE,
    HF_V_DIM,
    HF_Q_RANK,
    HF_KV_RANK,
    HF_DENSE_FIRST,
    HF_SIZES
} HfSize;

typedef struct {
    char *model_type;
    uint64_t sizes[HF_SIZES];
    bool tied;
    bool use_sliding_window;
    bool multi_query;
    double rotary_base;
    GPtrArray *layer_types;
    GArray *attn_type_list;
} HfConfig;

#define SIZE(key, size, high)                                                                      \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_UINT, .offset = offsetof(HfConfig, sizes[size]),           \
        .flags = LH_FIELD_OR_NULL, .min = 0, .max = (high)                                         \
    }

#define OTHER(key, kind, member)                                                                   \
    {                                                                                              \
        .name = (key), .type = (kind), .offset = offsetof(HfConfig, member),                       \
        .flags = LH_FIELD_OR_NULL                                                                  \
    }

#define ROTARY_BASE(key)                                                                           \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_DOUBLE, .offset = offsetof(HfConfig, rotary_base),         \
        .flags = LH_FIELD_OR_NULL, .min = 0, .max = LH_MODEL_ROTARY_BASE_MAX                       \
    }

/* Of several names for one size, the first is the one that messages use. */
static const LhField hf_fields[] = {
    SIZE("hidden_size", HF_HIDDEN, LH_MODEL_WIDTH_MAX),
    SIZE("n_embd", HF_HIDDEN, LH_MODEL_WIDTH_MAX),
    SIZE("d_model", HF_HIDDEN, LH_MODEL_WIDTH_MAX),
    SIZE("decoder_embed_dim", HF_HIDDEN, LH_MODEL_WIDTH_MAX),
    SIZE("num_hidden_layers", HF_LAYERS, LH_MODEL_LAYERS_MAX),
    SIZE("n_layer", HF_LAYERS, LH_MODEL_LAYERS_MAX),
    SIZE("decoder_layers", HF_LAYERS, LH_MODEL_LAYERS_MAX),
    SIZE("num_attention_heads", HF_HEADS, LH_MODEL_HEADS_MAX),
    SIZE("n_head", HF_HEADS, LH_MODEL_HEADS_MAX),
    SIZE("decoder_attention_heads", HF_HEADS, LH_MODEL_HEADS_MAX),
    SIZE("num_key_value_heads", HF_GROUPS, LH_MODEL_HEADS_MAX),
    SIZE("num_kv_heads", HF_GROUPS, LH_MODEL_HEADS_MAX),
    SIZE("head_dim", HF_HEAD_DIM, LH_MODEL_HEADS_MAX),
    SIZE("intermediate_size", HF_FFN, LH_MODEL_WIDTH_MAX),
    SIZE("ffn_dim", HF_FFN, LH_MODEL_WIDTH_MAX),
    SIZE("n_inner", HF_FFN, LH_MODEL_WIDTH_MAX),
    SIZE("glu_dim", HF_FFN, LH_MODEL_WIDTH_MAX),
    SIZE("moe_intermediate_size", HF_EXPERT_FFN, LH_MODEL_WIDTH_MAX),
    SIZE("num_experts", HF_EXPERTS, LH_MODEL_HEADS_MAX),
    SIZE("num_local_experts", HF_EXPERTS, LH_MODEL_HEADS_MAX),
    SIZE("n_routed_experts", HF_EXPERTS, LH_MODEL_HEADS_MAX),
    SIZE("num_experts_per_tok", HF_EXPERTS_PER_TOKEN, LH_MODEL_HEADS_MAX),
    SIZE("n_shared_experts", HF_SHARED_EXPERTS, LH_MODEL_HEADS_MAX),
    SIZE("vocab_size", HF_VOCAB, LH_MODEL_VOCAB_MAX),
    SIZE("max_position_embeddings", HF_POSITIONS, LH_MODEL_POSITIONS_MAX),
    SIZE("n_positions", HF_POSITIONS, LH_MODEL_POSITIONS_MAX),
    SIZE("sliding_window", HF_WINDOW, LH_MODEL_POSITIONS_MAX),
    SIZE("sliding_window_pattern", HF_WINDOW_PATTERN, LH_MODEL_LAYERS_MAX),
    SIZE("_sliding_window_pattern", HF_WINDOW_PATTERN, LH_MODEL_LAYERS_MAX),
    SIZE("max_window_layers", HF_WINDOW_FIRST, LH_MODEL_LAYERS_MAX),
    SIZE("qk_nope_head_dim", HF_QK_NOPE, LH_MODEL_HEADS_MAX),
    SIZE("qk_rope_head_dim", HF_QK_ROPE, LH_MODEL_HEADS_MAX),
    SIZE("v_head_dim", HF_V_DIM, LH_MODEL_HEADS_MAX),
    SIZE("q_lora_rank", HF_Q_RANK, LH_MODEL_WIDTH_MAX),
    SIZE("kv_lora_rank", HF_KV_RANK, LH_MODEL_WIDTH_MAX),
    SIZE("first_k_dense_replace", HF_DENSE_FIRST, LH_MODEL_LAYERS_MAX),
    OTHER("model_type", LH_FIELD_STRING, model_type),
    OTHER("tie_word_embeddings", LH_FIELD_BOOL, tied),
    OTHER("use_sliding_window", LH_FIELD_BOOL, use_sliding_window),
    OTHER("multi_query", LH_FIELD_BOOL, multi_query),
    ROTARY_BASE("rope_theta"),
    ROTARY_BASE("rotary_emb_base"),
    OTHER("layer_types", LH_FIELD_STRINGS, layer_types),
    OTHER("attn_type_list", LH_FIELD_UINTS, attn_type_list),
    { .name = NULL },
};

/* What a family does not say. Families that are not listed are like Llama. */
typedef struct {
    const char *model_type;
    bool gated_mlp;
    bool tied_embeddings;  /* where tie_word_embeddings is absent */
    bool ffn_is_4_hidden;  /* where the MLP's width is absent */
    bool linear_attention; /* in all layers, unless the file says which */
    bool linear_gate;      /* layers of linear attention have an output gate */
    bool window_if_asked;  /* no sliding window where use_sliding_window is absent */
    uint64_t window_first; /* the first layer with a window, where max_window_layers is absent */
    /* Every so many layers one sees the whole sequence, where the file does not say: 0: none. */
    uint64_t window_pattern;
    bool learned_positions; /* as many as there are at most */
    LhModelWeights weights;
} HfFamily;

static const HfFamily families[] = {
    { .model_type = "gpt2",
      .tied_embeddings = true,
      .ffn_is_4_hidden = true,
      .learned_positions = true,
      .weights.biases = true },
    { .model_type = "gpt_bigcode",
      .tied_embeddings = true,
      .ffn_is_4_hidden = true,
      .learned_positions = true,
      .weights.biases = true },
    { .model_type = "gptj", .ffn_is_4_hidden = true },
    { .model_type = "gpt_neox", .weights.biases = true },
    { .model_type = "opt",
      .tied_embeddings = true,
      .learned_positions = true,
      .weights.biases = true },
    { .model_type = "phi", .weights.biases = true },
    { .model_type = "starcoder2", .tied_embeddings = true, .weights.biases = true },
    { .model_type = "gemma", .gated_mlp = true, .tied_embeddings = true },
    { .model_type = "gemma2",
      .gated_mlp = true,
      .tied_embeddings = true,
      .window_pattern = 2,
      .weights.norms_per_layer = 4 },
    { .model_type = "gemma3_text",
      .gated_mlp = true,
      .tied_embeddings = true,
      .window_pattern = 6,
      .weights = { .norms_per_layer = 4, .qk_norm = true } },
    { .model_type = "cohere2", .gated_mlp = true, .tied_embeddings = true, .window_pattern = 4 },
    { .model_type = "qwen2",
      .gated_mlp = true,
      .window_if_asked = true,
      .window_first = 28,
      .weights.qkv_bias = true },
    { .model_type = "qwen2_moe",
      .gated_mlp = true,
      .window_if_asked = true,
      .window_first = 28,
      .weights.qkv_bias = true },
    { .model_type = "qwen3",
      .gated_mlp = true,
      .window_if_asked = true,
      .window_first = 28,
      .weights.qk_norm = true },
    { .model_type = "qwen3_moe",
      .gated_mlp = true,
      .window_if_asked = true,
      .window_first = 28,
      .weights.qk_norm = true },
    { .model_type = "transnormer",
      .gated_mlp = true,
      .linear_attention = true,
      .linear_gate = true },
    { .model_type = "minimax", .gated_mlp = true, .linear_gate = true },
    { .model_type = "minimax_m1", .gated_mlp = true, .linear_gate = true },
    { .model_type = "minimax_text_01", .gated_mlp = true, .linear_gate = true },
    { .model_type = NULL, .gated_mlp = true },
};

static const HfFamily *
find_family(const char *model_type)
{
    const HfFamily *family = families;

    while (family->model_type != NULL && g_strcmp0(family->model_type, model_type) != 0)
        family++;
    return family;
}

/* A config, the object of the file that it was read from, and the paths made for messages. */
typedef struct {
    const LhJson *json;
    const char *prefix; /* "" or "text_config." */
    GPtrArray *paths;   /* owns them */
    HfConfig config;
} HfReader;

/* The path of `key`, borrowed from the reader. */
static const char *
path_of(HfReader *r, const char *key)
{
    char *path = g_strconcat(r->prefix, key, NULL);

    g_ptr_array_add(r->paths, path);
    return path;
}

/* The path of the name under which the file states `size`, or else of the usual name. */
static const char *
size_path(HfReader *r, HfSize size)
{
    const size_t offset = offsetof(HfConfig, sizes) + (size_t)size * sizeof(uint64_t);
    const char *usual = NULL;

    for (const LhField *f = hf_fields; f->name != NULL; f++) {
        const char *path;

        if (f->offset != offset)
            continue;
        path = path_of(r, f->name);
        if (lh_json_has(r->json, path))
            return path;
        if (usual == NULL)
            usual = path;
    }
    return usual;
}

/* The size that @field alone gives. */
static uint64_t
stated_size(const HfReader *r, const LhField *field, size_t offset)
{
    const LhField fields[] = { *field, { .name = NULL } };
    HfConfig config = { 0 };

    if (r->prefix[0] == '\0')
        lh_json_decode(r->json, fields, &config, true, NULL);
    else
        lh_json_decode_at(r->json, "text_config", fields, &config, true, NULL);
    return *(const uint64_t *)(const void *)((const char *)&config + offset);
}

/* Several names for one size may stand in a file if they agree on it. */
static bool
check_names(HfReader *r, GError **error)
{
    for (const LhField *f = hf_fields; f->type == LH_FIELD_UINT; f++) {
        const char *first =
            size_path(r, (HfSize)((f->offset - offsetof(HfConfig, sizes)) / sizeof(uint64_t)));
        const char *path = path_of(r, f->name);
        const LhField *g = hf_fields;

        if (strcmp(first, path) == 0 || !lh_json_has(r->json, path))
            continue;
        while (strcmp(first + strlen(r->prefix), g->name) != 0)
            g++;
        if (stated_size(r, f, f->offset) != stated_size(r, g, f->offset))
            return lh_json_error(r->json, path, error,
                                 "\"%s\" is %" G_GUINT64_FORMAT " and \"%s\" is %" G_GUINT64_FORMAT
                                 "; both are names of one size, so leave one out",
                                 path, stated_size(r, f, f->offset), first,
                                 stated_size(r, g, f->offset));
    }
    return true;
}

static bool
require(HfReader *r, HfSize size, GError **error)
{
    const char *path;

    if (r->config.sizes[size] > 0)
        return true;
    path = size_path(r, size);
    if (lh_json_has(r->json, path))
        return lh_json_error(r->json, path, error, "\"%s\" is 0; allowed: at least 1", path);
    return lh_json_error(r->json, path, error,
                         "missing field \"%s\": this is no Hugging Face config.json of a "
                         "transformer, and without \"schema\": \"longhaul.model/1\" no model of "
                         "longhaul's own either",
                         path);
}

/* True if the file states `key`, beside the sizes or, as vision models do, at the top level. */
static bool
states(HfReader *r, const char *key)
{
    return lh_json_has(r->json, path_of(r, key)) || lh_json_has(r->json, key);
}

/* @whole: it has no sliding window, whatever the model has. */
static void
add_layer(GArray *each, const HfFamily *family, LhLayerKind kind, bool whole)
{
    const LhLayerRun layer = { .kind = (int)kind,
                               .count = 1,
                               .output_gate = kind == LH_LAYER_LINEAR && family->linear_gate,
                               .whole = whole };

    g_array_append_val(each, layer);
}

static bool
read_layer_types(HfReader *r, const HfFamily *family, uint64_t window, GArray *each, GError **error)
{
    static const char *const softmax[] = { "full_attention", "sliding_attention",
                                           "chunked_attention", NULL };
    const GPtrArray *types = r->config.layer_types;

    for (guint i = 0; i < types->len; i++) {
        const char *type = g_ptr_array_index(types, i);
        const bool linear = strcmp(type, "linear_attention") == 0;
        g_autofree char *path = NULL;

        if (linear || g_strv_contains(softmax, type)) {
            add_layer(each, family, linear ? LH_LAYER_LINEAR : LH_LAYER_SOFTMAX,
                      !linear && strcmp(type, "sliding_attention") != 0 && window > 0);
            continue;
        }
        path = g_strdup_printf("%slayer_types[%u]", r->prefix, i);
        return lh_json_error(r->json, path, error,
                             "\"%s\" must be one of full_attention, sliding_attention, "
                             "chunked_attention, linear_attention; found \"%.40s\"",
                             path, type);
    }
    return true;
}

/* MiniMax's own files: 0 is lightning (linear) attention, 1 softmax. */
static bool
read_attn_type_list(HfReader *r, const HfFamily *family, GArray *each, GError **error)
{
    const GArray *types = r->config.attn_type_list;

    for (guint i = 0; i < types->len; i++) {
        uint64_t type = g_array_index(types, uint64_t, i);
        g_autofree char *path = NULL;

        if (type <= 1) {
            add_layer(each, family, type == 0 ? LH_LAYER_LINEAR : LH_LAYER_SOFTMAX, false);
            continue;
        }
        path = g_strdup_printf("%sattn_type_list[%u]", r->prefix, i);
        return lh_json_error(r->json, path, error,
                             "\"%s\" must be 0 (linear) or 1 (softmax); found %" G_GUINT64_FORMAT,
                             path, type);
    }
    return true;
}

/* Which layers have the window of a file without a list of them. */
static void
add_pattern(HfReader *r, const HfFamily *family, const LhModel *model, GArray *each)
{
    const uint64_t *sizes = r->config.sizes;
    const uint64_t pattern =
        sizes[HF_WINDOW_PATTERN] > 0 ? sizes[HF_WINDOW_PATTERN] : family->window_pattern;
    const uint64_t first =
        states(r, "max_window_layers") ? sizes[HF_WINDOW_FIRST] : family->window_first;
    const LhLayerKind kind = family->linear_attention ? LH_LAYER_LINEAR : LH_LAYER_SOFTMAX;

    for (uint64_t i = 0; i < model->num_layers; i++)
        add_layer(each, family, kind,
                  model->sliding_window > 0 && ((pattern > 0 && (i + 1) % pattern == 0) ||
                                                (family->window_if_asked && i < first)));
}

static bool
read_layers(HfReader *r, const HfFamily *family, LhModel *model, GError **error)
{
    g_autoptr(GArray) each = g_array_new(FALSE, FALSE, sizeof(LhLayerRun));
    const char *list = NULL;
    uint64_t listed = 0;

    if (!require(r, HF_LAYERS, error))
        return false;
    model->num_layers = r->config.sizes[HF_LAYERS];
    if (r->config.layer_types != NULL) {
        list = "layer_types";
        listed = r->config.layer_types->len;
    } else if (r->config.attn_type_list != NULL) {
        list = "attn_type_list";
        listed = r->config.attn_type_list->len;
    }
    if (list != NULL && listed != model->num_layers)
        return lh_json_error(r->json, path_of(r, list), error,
                             "\"%s\" has %" G_GUINT64_FORMAT " elements for %" G_GUINT64_FORMAT
                             " layers",
                             list, listed, model->num_layers);
    if (list == NULL)
        add_pattern(r, family, model, each);
    else if (r->config.layer_types != NULL
                 ? !read_layer_types(r, family, model->sliding_window, each, error)
                 : !read_attn_type_list(r, family, each, error))
        return false;
    lh_model_fold_layers(model, each);
    return true;
}

static bool
read_heads(HfReader *r, const LhModelKeys *keys, LhModel *model, GError **error)
{
    const uint64_t *sizes = r->config.sizes;
    const uint64_t qk_dim = sizes[HF_QK_NOPE] + sizes[HF_QK_ROPE];

    if (!require(r, HF_HIDDEN, error) || !require(r, HF_HEADS, error))
        return false;
    model->hidden_size = sizes[HF_HIDDEN];
    model->num_attention_heads = sizes[HF_HEADS];
    model->num_query_groups = sizes[HF_GROUPS];
    if (model->num_query_groups == 0)
        model->num_query_groups = r->config.multi_query ? 1 : model->num_attention_heads;
    /*
     * Latent attention expands to heads of different width for q, k and for v. Flops and bytes of
     * attention depend on their sum only, so the mean is exact. Its head_dim, where a file has one,
     * is the rotary part.
     */
    if (qk_dim > 0 && sizes[HF_V_DIM] > 0)
        model->kv_channels = (qk_dim + sizes[HF_V_DIM] + 1) / 2;
    else
        model->kv_channels = sizes[HF_HEAD_DIM];
    return model->kv_channels > 0 || lh_model_default_kv_channels(r->json, keys, model, error);
}

static bool
read_mlp(HfReader *r, const HfFamily *family, LhModel *model, GError **error)
{
    const uint64_t *sizes = r->config.sizes;

    model->gated_mlp = family->gated_mlp;
    model->ffn_hidden_size = sizes[HF_FFN];
    if (sizes[HF_EXPERTS] > 0) {
        model->num_experts = sizes[HF_EXPERTS] + sizes[HF_SHARED_EXPERTS];
        model->experts_per_token = sizes[HF_EXPERTS_PER_TOKEN];
        if (model->experts_per_token > 0)
            model->experts_per_token += sizes[HF_SHARED_EXPERTS];
        if (sizes[HF_EXPERT_FFN] > 0)
            model->ffn_hidden_size = sizes[HF_EXPERT_FFN];
    }
    if (model->ffn_hidden_size == 0 && family->ffn_is_4_hidden)
        model->ffn_hidden_size = 4 * model->hidden_size;
    return model->ffn_hidden_size > 0 || require(r, HF_FFN, error);
}

/* Latent attention: q and k, v come from projections of low rank, each with a norm. */
static uint64_t
latent_parameters(const HfReader *r, const LhModel *model)
{
    const uint64_t *sizes = r->config.sizes;
    const uint64_t hidden = model->hidden_size, heads = model->num_attention_heads;
    const uint64_t qk = sizes[HF_QK_NOPE] + sizes[HF_QK_ROPE];
    const uint64_t q =
        sizes[HF_Q_RANK] > 0 ? sizes[HF_Q_RANK] * (hidden + 1 + heads * qk) : hidden * heads * qk;
    const uint64_t kv = hidden * (sizes[HF_KV_RANK] + sizes[HF_QK_ROPE]) + sizes[HF_KV_RANK] +
                        sizes[HF_KV_RANK] * heads * (sizes[HF_QK_NOPE] + sizes[HF_V_DIM]);

    return q + kv + heads * sizes[HF_V_DIM] * hidden;
}

static void
read_weights(const HfReader *r, const HfFamily *family, LhModel *model)
{
    const uint64_t *sizes = r->config.sizes;

    model->weights = family->weights;
    if (family->learned_positions)
        model->weights.learned_positions = sizes[HF_POSITIONS];
    if (sizes[HF_KV_RANK] > 0)
        model->weights.attention_parameters = latent_parameters(r, model);
    if (sizes[HF_EXPERTS] == 0)
        return;
    model->weights.shared_experts = sizes[HF_SHARED_EXPERTS];
    model->weights.dense_layers = MIN(sizes[HF_DENSE_FIRST], model->num_layers);
    model->weights.dense_ffn_hidden_size = sizes[HF_FFN];
}

/* "llama-3-8b" from "models/llama-3-8b/config.json"; "mine" from "mine.json". Caller frees. */
static char *
name_of_file(const char *file)
{
    g_autofree char *base = g_path_get_basename(file);
    g_autofree char *folder = g_path_get_dirname(file);

    if (strcmp(base, "config.json") == 0 && strcmp(folder, ".") != 0)
        return g_path_get_basename(folder);
    if (g_str_has_suffix(base, ".json"))
        base[strlen(base) - strlen(".json")] = '\0';
    return g_steal_pointer(&base);
}

static bool
read_hf_model(HfReader *r, const char *file, LhModel *model, GError **error)
{
    const HfConfig *config = &r->config;
    const HfFamily *family = find_family(config->model_type);
    const LhModelKeys keys = {
        .hidden = size_path(r, HF_HIDDEN),
        .layers = size_path(r, HF_LAYERS),
        .heads = size_path(r, HF_HEADS),
        .groups = size_path(r, HF_GROUPS),
        .head_dim = size_path(r, HF_HEAD_DIM),
        .experts = size_path(r, HF_EXPERTS),
        .experts_per_token = size_path(r, HF_EXPERTS_PER_TOKEN),
    };

    if (states(r, "use_sliding_window") ? config->use_sliding_window : !family->window_if_asked)
        model->sliding_window = config->sizes[HF_WINDOW];
    if (!check_names(r, error) || !read_heads(r, &keys, model, error) ||
        !read_layers(r, family, model, error) || !read_mlp(r, family, model, error) ||
        !require(r, HF_VOCAB, error))
        return false;
    read_weights(r, family, model);
    if (!lh_model_check(r->json, &keys, model, error))
        return false;
    model->vocab_size = config->sizes[HF_VOCAB];
    lh_model_default_rotary(model);
    if (config->rotary_base > 0 && !family->learned_positions)
        model->rotary_base = config->rotary_base;
    model->max_position_embeddings = config->sizes[HF_POSITIONS];
    model->tied_embeddings =
        states(r, "tie_word_embeddings") ? config->tied : family->tied_embeddings;
    model->name = name_of_file(file);
    model->description =
        g_strdup_printf("Hugging Face config.json, model type %s",
                        config->model_type != NULL ? config->model_type : "not stated");
    model->source = g_strdup(file);
    return true;
}

/*
 * Reads the top level and, if the sizes stand in "text_config" (models that also see or hear),
 * that; what only the top level states stays.
 */
static bool
decode(HfReader *r, GError **error)
{
    HfConfig *config = &r->config;

    if (!lh_json_decode(r->json, hf_fields, config, true, error))
        return false;
    if (config->sizes[HF_HIDDEN] > 0 || !lh_json_has(r->json, "text_config"))
        return true;
    lh_json_clear(hf_fields, config);
    r->prefix = "text_config.";
    return lh_json_decode_at(r->json, "text_config", hf_fields, config, true, error);
}

bool
lh_model_read_hf(const LhJson *json, const char *file, LhModel *model, GError **error)
{
    HfReader r = {
        .json = json,
        .prefix = "",
        .paths = g_ptr_array_new_with_free_func(g_free),
        .config = { .use_sliding_window = true },
    };
    bool ok = decode(&r, error);

    if (ok)
        ok = read_hf_model(&r, file, model, error);
    lh_json_clear(hf_fields, &r.config);
    g_ptr_array_unref(r.paths);
    return ok;
}
