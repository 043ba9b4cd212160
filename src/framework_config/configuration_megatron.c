/*
 * Megatron-LM: arguments of its training scripts, and YAML of its --yaml-cfg and of Megatron
 * Bridge, whose fields have the same names. Names as of github:NVIDIA/Megatron-LM,
 * megatron/training/arguments.py; defaults likewise.
 *
 * Expert parallelism, FP8 and recomputation of single modules are not predicted, and it says so.
 */
#include "framework_config/configuration_private.h"

#include "base/files/data_files.h"
#include "base/json/json_writer.h"
#include "model/model.h"
#include "model/model_file.h"
#include "step/step.h"

#include <inttypes.h>
#include <string.h>

const char *const lh_config_megatron_schedules[] = { "te-p2p", "te-allgather", "te-a2a",
                                                     "te-a2a-p2p", NULL };

/* --cp-comm-type, by schedule. */
static const char *const comm_types[] = { "p2p", "all_gather", "a2a", "a2a+p2p", NULL };

/* ---- the model ---- */

typedef struct {
    uint64_t layers, hidden, ffn, heads, groups, channels, vocab;
    uint64_t experts, top, expert_ffn;
    uint64_t shared_ffn, dense_ffn, positions;
    char *dense; /* a digit for each layer, '0' where it has no experts; NULL: all have them */
    bool grouped, gated, untied, shared, qkv_bias, biases, qk_norm;
} Shape;

/* Positions are learned, unless the file says what they are. */
static bool
read_positions(LhConfig *c, Shape *s, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "position-embedding-type");
    const LhSettingsEntry *most = lh_config_entry(c, "max-position-embeddings");
    const char *type = "learned_absolute";
    uint64_t count = 0, length = 0;
    bool rotary = false;

    if (!lh_config_word(c, "position-embedding-type", &type, error) ||
        !lh_config_flag(c, "use-rotary-position-embeddings", &rotary, error) ||
        !lh_config_count(c, "max-position-embeddings", &count, error) ||
        !lh_config_count(c, "seq-length", &length, error))
        return false;
    if (entry == NULL && rotary)
        type = "rope";
    if (strcmp(type, "learned_absolute") == 0)
        s->positions = count;
    else if (strcmp(type, "rope") != 0 && strcmp(type, "rotary") != 0)
        lh_config_note(c, entry,
                       "not modelled: position-embedding-type %.20s: positions are rotary", type);
    if (most != NULL && count < length)
        lh_config_note(c, most,
                       "%" PRIu64 " positions are fewer than the %" PRIu64
                       " tokens of a sequence; %s stops",
                       count, length, c->system->name);
    return true;
}

/* Whether matrices and norms have biases, which only some file says, and then in one of two ways.
 */
static bool
read_biases(const LhConfig *c, Shape *s, GError **error)
{
    bool none = false;

    s->biases = true;
    if (!lh_config_flag(c, "disable-bias-linear", &none, error) ||
        !lh_config_flag(c, "add-bias-linear", &s->biases, error))
        return false;
    s->biases = s->biases && !none;
    return true;
}

static bool
read_shape(LhConfig *c, Shape *s, GError **error)
{
    const char *activation = "", *gate = "";

    if (!lh_config_count(c, "num-layers", &s->layers, error) ||
        !lh_config_count(c, "hidden-size", &s->hidden, error) ||
        !lh_config_count(c, "ffn-hidden-size", &s->ffn, error) ||
        !lh_config_count(c, "num-attention-heads", &s->heads, error) ||
        !lh_config_count(c, "num-query-groups", &s->groups, error) ||
        !lh_config_count(c, "kv-channels", &s->channels, error) ||
        !lh_config_count(c, "vocab-size", &s->vocab, error) ||
        !lh_config_count(c, "num-experts", &s->experts, error) ||
        !lh_config_count(c, "num-moe-experts", &s->experts, error) ||
        !lh_config_count(c, "moe-router-topk", &s->top, error) ||
        !lh_config_count(c, "moe-ffn-hidden-size", &s->expert_ffn, error) ||
        !lh_config_flag(c, "group-query-attention", &s->grouped, error) ||
        !lh_config_flag(c, "swiglu", &s->gated, error) ||
        !lh_config_flag(c, "gated-linear-unit", &s->gated, error) ||
        !lh_config_word(c, "activation-func", &activation, error) ||
        !lh_config_flag(c, "untie-embeddings-and-output-weights", &s->untied, error) ||
        !lh_config_flag(c, "share-embeddings-and-output-weights", &s->shared, error))
        return false;
    if (!lh_config_count(c, "moe-shared-expert-intermediate-size", &s->shared_ffn, error) ||
        !lh_config_flag(c, "add-qkv-bias", &s->qkv_bias, error) ||
        !lh_config_flag(c, "qk-layernorm", &s->qk_norm, error) ||
        !lh_config_word(c, "glu-activation", &gate, error) || !read_biases(c, s, error) ||
        !read_positions(c, s, error))
        return false;
    s->gated = s->gated || g_str_has_suffix(activation, "glu") || g_str_has_suffix(gate, "glu");
    s->untied = s->untied ||
                (lh_config_entry(c, "share-embeddings-and-output-weights") != NULL && !s->shared);
    return true;
}

/* Arguments have a flag of their own for grouped heads; YAML has not. */
static void
fill_shape(LhConfig *c, Shape *s)
{
    const bool arguments = c->arguments;

    if (arguments && s->groups != 0 && !s->grouped) {
        lh_config_note(c, lh_config_entry(c, "num-query-groups"),
                       "without --group-query-attention Megatron-LM ignores --num-query-groups: "
                       "every head has keys and values of its own");
        s->groups = 0;
    }
    if (s->groups == 0)
        s->groups = arguments && s->grouped ? 1 : s->heads;
    if (s->channels == 0)
        s->channels = s->hidden / s->heads;
    if (s->ffn == 0) /* as it does */
        s->ffn = s->gated ? 4 * s->hidden * 2 / 3 / 64 * 64 : 4 * s->hidden;
    s->dense_ffn = s->ffn;
    if (s->experts > 0 && s->expert_ffn != 0)
        s->ffn = s->expert_ffn;
}

/* "([0]*3+[1]*58)" as 0001...1, one digit for a layer; of a number, every so manieth layer. NULL:
 * it is neither. Caller frees. */
static char *
frequency_of(const char *text, uint64_t layers)
{
    g_autoptr(GString) digits = g_string_new(NULL);
    guint64 every;

    if (g_ascii_string_to_unsigned(text, 10, 1, UINT16_MAX, &every, NULL)) {
        for (uint64_t i = 0; i < MIN(layers, UINT16_MAX); i++)
            g_string_append_c(digits, i % every == 0 ? '1' : '0');
        return g_string_free(g_steal_pointer(&digits), FALSE);
    }
    for (const char *at = text; *at != '\0';) {
        const gsize from = digits->len;
        guint64 times = 1;

        if (*at != '[') {
            if (strchr("()+, \"'", *at) == NULL)
                return NULL;
            at++;
            continue;
        }
        for (at++; *at != ']'; at++) {
            if (strchr("01, ", *at) == NULL)
                return NULL;
            if (*at == '0' || *at == '1')
                g_string_append_c(digits, *at);
        }
        at++;
        if (*at == '*') {
            char *end;
            const gsize once = digits->len - from;

            times = g_ascii_strtoull(at + 1, &end, 10);
            if (end == at + 1 || times == 0 || times * MAX(once, 1) > UINT16_MAX)
                return NULL;
            at = end;
            for (guint64 k = 1; k < times; k++)
                for (gsize d = 0; d < once; d++)
                    g_string_append_c(digits, digits->str[from + d]);
        }
    }
    return g_string_free(g_steal_pointer(&digits), FALSE);
}

/* Which layers have no experts. Where none has any, the model is dense. */
static bool
take_dense_layers(LhConfig *c, Shape *s, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "moe-layer-freq");
    g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : NULL;
    g_autofree char *digits = text != NULL ? frequency_of(text, s->layers) : NULL;
    g_autofree char *shown = text != NULL ? g_strescape(text, NULL) : NULL;

    if (entry == NULL || s->experts == 0)
        return true;
    if (digits == NULL || strlen(digits) != s->layers)
        return lh_config_fail(c, entry, error,
                              "\"moe-layer-freq\": found \"%.60s\"; allowed: a number, or a list "
                              "of 0 and 1 for each of the %" PRIu64 " layers",
                              shown, s->layers);
    if (strchr(digits, '1') == NULL) {
        s->experts = s->shared_ffn = 0;
        s->ffn = s->dense_ffn;
    } else if (strchr(digits, '0') != NULL) {
        s->dense = g_steal_pointer(&digits);
    }
    return true;
}

static bool
take_shared_experts(const LhConfig *c, const Shape *s, GError **error)
{
    const char *name = "moe-shared-expert-intermediate-size";

    if (s->shared_ffn == 0 || s->experts > 0)
        return true;
    return lh_config_fail(c, lh_config_entry(c, name), error,
                          "\"%s\": found \"%" PRIu64 "\" in a model that has no experts; "
                          "add --num-experts N, or take it out",
                          name, s->shared_ffn);
}

/* What layers are that no model of longhaul's has. */
static bool
refuse_layers(const LhConfig *c, GError **error)
{
    static const struct {
        const char *name, *why;
        bool never;
    } rows[] = {
        { "multi-latent-attention", "its attention is not that of heads as wide for q and k as "
                                    "for v" },
        { "hybrid-layer-pattern", "its layers are of kinds that are not predicted" },
        { "hybrid-override-pattern", "its layers are of kinds that are not predicted" },
        { "is-hybrid-model", "its layers are of kinds that are not predicted" },
        { "experimental-attention-variant", "its attention is none that is predicted" },
        { "heterogeneous-layers-config-path", "its layers differ" },
        { "hybrid-attention-ratio", "its layers are of kinds that are not predicted" },
        { "hybrid-mlp-ratio", "its layers are of kinds that are not predicted" },
        { "encoder-num-layers", "it is an encoder with a decoder", true },
        { "decoder-num-layers", "it is an encoder with a decoder", true },
        { "bert-no-binary-head", "it is an encoder", true },
        { "bert-binary-head", "it is an encoder", true },
        { "language-model-type", "it sees images, too", true },
        { "vision-model-type", "it sees images, too", true },
        { "vision-pretraining", "it sees images", true },
        { "retro-project-dir", "it has cross-attention to what is retrieved", true },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const LhSettingsEntry *entry = lh_config_entry(c, rows[i].name);
        g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : NULL;

        if (entry != NULL &&
            (strcmp(text, "false") != 0 || strcmp(rows[i].name, "bert-binary-head") == 0))
            return lh_config_fail(c, entry, error,
                                  "\"%s\": %s, which %s; take the option out and name a model "
                                  "that comes close with --model",
                                  rows[i].name, rows[i].why,
                                  rows[i].never ? "is not predicted"
                                                : "a later version will predict");
    }
    return true;
}

/* Programs of Megatron-LM that train something else than a decoder of text. */
static bool
refuse_program(const LhConfig *c, GError **error)
{
    static const struct {
        const char *name, *why;
    } rows[] = {
        { "pretrain_bert.py", "an encoder" },
        { "pretrain_t5.py", "an encoder with a decoder" },
        { "pretrain_ict.py", "an encoder" },
        { "pretrain_retro.py", "a decoder with cross-attention" },
        { "pretrain_mamba.py", "layers of other kinds" },
        { "pretrain_vlm.py", "a model that sees images, too" },
        { "pretrain_vision_classify.py", "a model of images" },
        { "pretrain_vision_dino.py", "a model of images" },
        { "pretrain_vision_inpaint.py", "a model of images" },
    };
    const GPtrArray *programs = c->entries->programs;

    for (guint i = 0; programs != NULL && i < programs->len; i++) {
        const LhSettingsEntry *program = g_ptr_array_index(programs, i);
        g_autofree char *base = g_path_get_basename(g_ptr_array_index(program->values, 0));

        for (guint k = 0; k < G_N_ELEMENTS(rows); k++) {
            if (strcmp(base, rows[k].name) == 0)
                return lh_config_fail(c, program, error,
                                      "%s trains %s, which is not predicted; only decoders of text "
                                      "are",
                                      base, rows[k].why);
        }
    }
    return true;
}

/* NeMo's T5 has two stacks of layers. */
static bool
refuse_stacks(const LhConfig *c, GError **error)
{
    for (guint i = 0; i < c->entries->entries->len; i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(c->entries->entries, i);

        if (strstr(entry->path, "model.encoder.") != NULL)
            return lh_config_fail(c, entry, error,
                                  "\"%.60s\": it is an encoder with a decoder, which is not "
                                  "predicted; only decoders of text are",
                                  entry->path);
    }
    return true;
}

/* Whether the same layers have experts, and those beside which no router stands are as wide. */
static bool
has_experts_of(const LhModel *m, const Shape *s)
{
    const LhModelWeights *w = &m->weights;
    const uint64_t each =
        w->shared_ffn_hidden_size != 0 ? w->shared_ffn_hidden_size : m->ffn_hidden_size;
    const uint64_t routed = m->num_experts - w->shared_experts;
    const uint64_t top = m->experts_per_token - w->shared_experts;

    if (routed != s->experts || w->shared_experts * each != s->shared_ffn ||
        (routed > 0 && top != (s->top != 0 ? s->top : 2)))
        return false;
    for (uint64_t i = 0; routed > 0 && i < m->num_layers; i++) {
        if ((i < w->dense_layers || lh_model_layer(m, i)->dense) !=
            (s->dense != NULL && s->dense[i] == '0'))
            return false;
    }
    return true;
}

/* A model of models/ that has this shape, for the vocabulary that the tokenizer has. Caller frees.
 */
static LhModel *
find_model(const Shape *s)
{
    g_auto(GStrv) names = lh_data_list("models");

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhModel) m = lh_model_load(names[i], NULL);

        if (m != NULL && m->num_layers == s->layers && m->hidden_size == s->hidden &&
            m->num_attention_heads == s->heads && m->num_query_groups == s->groups &&
            m->kv_channels == s->channels && m->ffn_hidden_size == s->ffn &&
            m->gated_mlp == s->gated && lh_model_count(m, LH_LAYER_LINEAR) == 0 &&
            has_experts_of(m, s))
            return g_steal_pointer(&m);
    }
    return NULL;
}

/* The shortest part of @digits whose repetition they are. */
static gsize
period_of(const char *digits)
{
    const gsize count = strlen(digits);
    gsize period = 1;

    while (count % period != 0 || strncmp(digits, digits + period, count - period) != 0)
        period++;
    return period;
}

/* Layers that have no experts: the first ones, or those of a pattern. */
static void
write_dense_layers(LhJsonWriter *w, const Shape *s)
{
    const uint64_t first = strspn(s->dense, "0");
    const gsize period = period_of(s->dense);

    lh_jsonw_uint(w, "dense_ffn_hidden_size", s->dense_ffn);
    if (strchr(s->dense + first, '0') == NULL) {
        lh_jsonw_uint(w, "dense_layers", first);
        return;
    }
    lh_jsonw_array_begin(w, "layers");
    for (gsize i = 0; i < period;) {
        const bool dense = s->dense[i] == '0';
        const gsize count = MIN(strspn(s->dense + i, dense ? "0" : "1"), period - i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "attention", lh_layer_kind_names[LH_LAYER_SOFTMAX]);
        lh_jsonw_uint(w, "count", count);
        if (dense)
            lh_jsonw_bool(w, "dense", true);
        lh_jsonw_object_end(w);
        i += count;
    }
    lh_jsonw_array_end(w);
}

static void
write_experts(LhJsonWriter *w, const Shape *s)
{
    const uint64_t shared = s->shared_ffn > 0 ? 1 : 0;

    lh_jsonw_uint(w, "num_experts", s->experts + shared);
    lh_jsonw_uint(w, "experts_per_token", (s->top != 0 ? s->top : 2) + shared);
    if (shared > 0) {
        lh_jsonw_uint(w, "shared_experts", shared);
        lh_jsonw_uint(w, "shared_ffn_hidden_size", s->shared_ffn);
    }
    if (s->dense != NULL)
        write_dense_layers(w, s);
}

static void
write_model(LhConfig *c, const Shape *s)
{
    g_autoptr(GString) text = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(text, false);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schema", "longhaul.model/1");
    lh_jsonw_string(w, "name", "the model of the configuration");
    lh_jsonw_string(w, "source", "the configuration");
    lh_jsonw_uint(w, "num_layers", s->layers);
    lh_jsonw_uint(w, "hidden_size", s->hidden);
    lh_jsonw_uint(w, "num_attention_heads", s->heads);
    lh_jsonw_uint(w, "num_query_groups", s->groups);
    lh_jsonw_uint(w, "kv_channels", s->channels);
    lh_jsonw_uint(w, "ffn_hidden_size", s->ffn);
    lh_jsonw_bool(w, "gated_mlp", s->gated);
    if (s->experts > 0)
        write_experts(w, s);
    if (s->qkv_bias)
        lh_jsonw_bool(w, "qkv_bias", true);
    if (s->biases)
        lh_jsonw_bool(w, "biases", true);
    if (s->qk_norm)
        lh_jsonw_bool(w, "qk_norm", true);
    if (s->positions > 0)
        lh_jsonw_uint(w, "learned_positions", s->positions);
    lh_jsonw_uint(w, "vocab_size", s->vocab);
    lh_jsonw_bool(w, "tied_embeddings", !s->untied);
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
    c->model = g_string_free(g_steal_pointer(&text), FALSE);
}

/* "--model org/Name", as what is built on Megatron-LM has it in place of sizes. */
static bool
take_published(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "model");
    const char *published = "";
    g_autofree char *model = NULL;
    g_autofree char *shown = NULL;

    if (!lh_config_word(c, "model", &published, error))
        return false;
    model = lh_config_model_of(published);
    shown = g_strescape(published, NULL);
    if (model != NULL)
        lh_config_set(c, entry, LH_CONFIG_QUESTION, "model", model);
    else
        lh_config_lacks_model(c, entry,
                              "%.80s is none of longhaul list models; give its config.json", shown);
    return true;
}

/* Which of the sizes that a model cannot do without are not there. */
static void
lacks_sizes(LhConfig *c, const Shape *s)
{
    const struct {
        const char *name;
        uint64_t value;
    } sizes[] = { { "num-layers", s->layers },
                  { "hidden-size", s->hidden },
                  { "num-attention-heads", s->heads } };
    g_autoptr(GString) names = g_string_new(NULL);
    const LhSettingsEntry *any = NULL, *recipe = lh_config_entry(c, "recipe");

    if (recipe != NULL) {
        g_autofree char *text = lh_settings_entry_text(recipe);
        g_autofree char *shown = g_strescape(text, NULL);

        lh_config_lacks_model(
            c, recipe, "it is in the recipe %.60s, a program in Python; give its config.json",
            shown);
        return;
    }

    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        if (any == NULL)
            any = lh_config_entry(c, sizes[i].name);
        if (sizes[i].value == 0)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", sizes[i].name);
    }
    lh_config_lacks_model(c, any, "%s %s not there; add %s", names->str,
                          strchr(names->str, ',') != NULL ? "are" : "is",
                          strchr(names->str, ',') != NULL ? "them" : "it");
}

/* Rows of the embedding: words, and what makes their number divisible, also by tensor parallelism.
 */
static bool
pad_vocabulary(const LhConfig *c, Shape *s, GError **error)
{
    static const char *const exact[] = { "padded-vocab-size", "pad-vocab-size-to" };
    uint64_t each = 128, tensor = 1, rows = 0, multiple; /* 128 is its default */
    const char *type = "";

    for (guint i = 0; i < G_N_ELEMENTS(exact); i++) {
        if (!lh_config_count(c, exact[i], &rows, error))
            return false;
    }
    if (!lh_config_count(c, "make-vocab-size-divisible-by", &each, error) ||
        !lh_config_count(c, "tensor-model-parallel-size", &tensor, error) ||
        !lh_config_word(c, "tokenizer-type", &type, error))
        return false;
    if (rows > 0) {
        s->vocab = rows;
        return true;
    }
    if (strcmp(type, "NullTokenizer") == 0 && s->vocab > 0)
        s->vocab++; /* the end of a document */
    multiple = MAX(each, 1) * MAX(tensor, 1);
    if (multiple < UINT32_MAX)
        s->vocab = (s->vocab + multiple - 1) / multiple * multiple;
    return true;
}

/* How many words the tokenizer has: one that is always the same, or that of a published model. */
static void
read_tokenizer(LhConfig *c, Shape *s)
{
    static const struct {
        const char *type;
        uint64_t words;
    } types[] = { { "GPT2BPETokenizer", 50257 }, { "Llama2Tokenizer", 32000 } };
    static const char *const names[] = { "tokenizer-type", "tokenizer-model" };

    for (guint i = 0; i < G_N_ELEMENTS(names) && s->vocab == 0; i++) {
        const LhSettingsEntry *entry = lh_config_entry(c, names[i]);
        g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : g_strdup("");
        g_autofree char *name = lh_config_model_of(text);
        g_autofree char *shown = g_strescape(text, NULL);
        g_autoptr(LhModel) m = name != NULL ? lh_model_load(name, NULL) : NULL;

        for (guint k = 0; k < G_N_ELEMENTS(types); k++) {
            if (strcmp(text, types[k].type) == 0)
                s->vocab = types[k].words;
        }
        if (s->vocab == 0 && m != NULL)
            s->vocab = m->vocab_size;
        if (s->vocab != 0)
            lh_config_note(c, entry, "the vocabulary has the %" PRIu64 " words of %.60s", s->vocab,
                           shown);
    }
    if (s->vocab == 0 && lh_config_entry(c, "merge-file") != NULL &&
        lh_config_entry(c, "tokenizer-type") == NULL) {
        s->vocab = types[0].words;
        lh_config_note(c, lh_config_entry(c, "merge-file"),
                       "the vocabulary has the %" PRIu64 " words of %s", s->vocab, types[0].type);
    }
}

/* Megatron-DeepSpeed's experts stand in every so manieth layer, each token has one of them, and one
 * expert is none. */
static bool
take_deepspeed_experts(const LhConfig *c, Shape *s, GError **error)
{
    if (lh_config_entry(c, "deepspeed") == NULL)
        return true;
    if (s->experts == 1)
        s->experts = 0;
    return s->experts == 0 ||
           lh_config_fail(
               c, lh_config_entry(c, "num-experts"), error,
               "\"num-experts\": found \"%" PRIu64
               "\": experts as Megatron-DeepSpeed has them, in every second layer or so, "
               "are not predicted; take the option out and name a model that comes close "
               "with --model",
               s->experts);
}

/* The model of a shape that is read: by its vocabulary, or one that is known. */
static bool
name_model(LhConfig *c, Shape *s, GError **error)
{
    g_autoptr(LhModel) known = NULL;

    fill_shape(c, s);
    if (!take_deepspeed_experts(c, s, error) || !take_dense_layers(c, s, error) ||
        !take_shared_experts(c, s, error))
        return false;
    read_tokenizer(c, s);
    if (!pad_vocabulary(c, s, error))
        return false;
    if (s->vocab != 0) {
        write_model(c, s);
        return true;
    }
    known = find_model(s);
    if (known == NULL) {
        lh_config_lacks_model(c, lh_config_entry(c, "num-layers"),
                              "how many words the tokenizer has is not said; add vocab-size");
        return true;
    }
    lh_config_note(c, lh_config_entry(c, "num-layers"),
                   "how many words the tokenizer has is not said; the shape is that of %s, which "
                   "is taken",
                   known->name);
    lh_config_set(c, lh_config_entry(c, "num-layers"), LH_CONFIG_QUESTION, "model", known->name);
    return true;
}

static bool
take_model(LhConfig *c, GError **error)
{
    Shape s = { .layers = 0 };
    bool ok;

    if (!refuse_program(c, error) || !refuse_stacks(c, error) || !refuse_layers(c, error) ||
        !read_shape(c, &s, error))
        return false;
    if (s.layers == 0 && lh_config_entry(c, "model") != NULL && c->arguments)
        return take_published(c, error);
    if (s.layers == 0 || s.hidden == 0 || s.heads == 0) {
        lacks_sizes(c, &s);
        return true;
    }
    ok = name_model(c, &s, error);
    g_free(s.dense);
    return ok;
}

/* ---- context parallelism ---- */

/* The one way of exchange, if all layers have the same; "allgather" is another spelling. */
static bool
read_comm_type(LhConfig *c, const char **type, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "cp-comm-type");
    g_autofree char *shown = NULL;

    *type = "p2p";
    if (entry == NULL || entry->values->len == 0)
        return true;
    *type = g_ptr_array_index(entry->values, 0);
    for (guint i = 1; i < entry->values->len; i++) {
        if (strcmp(g_ptr_array_index(entry->values, i), *type) != 0) {
            lh_config_note(c, entry,
                           "layers exchange in several ways, of which only the first is taken");
            break;
        }
    }
    if (strcmp(*type, "allgather") == 0)
        *type = "all_gather";
    if (lh_config_index(comm_types, *type) >= 0)
        return true;
    shown = g_strescape(*type, NULL);
    return lh_config_fail(
        c, entry, error,
        "\"cp-comm-type\": found \"%.40s\"; allowed: p2p, all_gather, a2a, a2a+p2p", shown);
}

/* "8 2" or ["8", "2"] as "8,2"; NULL: not given. Caller frees. */
static char *
hierarchy_of(const LhConfig *c)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "hierarchical-context-parallel-sizes");
    g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : NULL;
    g_auto(GStrv) words = text != NULL ? g_strsplit_set(text, " ,", -1) : NULL;
    g_autoptr(GString) sizes = g_string_new(NULL);

    for (guint i = 0; words != NULL && words[i] != NULL; i++) {
        if (words[i][0] != '\0')
            g_string_append_printf(sizes, "%s%s", sizes->len > 0 ? "," : "", words[i]);
    }
    return sizes->len > 0 ? g_string_free(g_steal_pointer(&sizes), FALSE) : NULL;
}

static void
warn_hierarchy(LhConfig *c, const char *type, const char *sizes, uint64_t context)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "cp-comm-type");
    const LhSettingsEntry *levels = lh_config_entry(c, "hierarchical-context-parallel-sizes");
    guint64 first, second;
    g_auto(GStrv) parts = sizes != NULL ? g_strsplit(sizes, ",", -1) : NULL;

    if (strcmp(type, "a2a+p2p") == 0 && sizes == NULL)
        lh_config_note(c, entry,
                       "a2a+p2p needs --hierarchical-context-parallel-sizes: newer versions stop "
                       "without it, and older ones exchange nothing, so that every rank attends "
                       "to its own tokens alone, fast and wrong");
    else if (strcmp(type, "a2a+p2p") != 0 && sizes != NULL)
        lh_config_note(c, levels, "only a2a+p2p reads it, and the way of exchange is %s", type);
    if (parts != NULL && g_strv_length(parts) == 2 &&
        g_ascii_string_to_unsigned(parts[0], 10, 1, UINT16_MAX, &first, NULL) &&
        g_ascii_string_to_unsigned(parts[1], 10, 1, UINT16_MAX, &second, NULL) &&
        first * second != context)
        lh_config_note(c, levels,
                       "%" PRIu64 " x %" PRIu64 " are not the %" PRIu64
                       " ranks of context parallelism; Megatron-LM stops",
                       first, second, context);
}

static void
warn_context(LhConfig *c, const char *type, uint64_t context)
{
    const LhSettingsEntry *window = lh_config_entry(c, "window-size");
    uint64_t length = 0;

    lh_config_count(c, "seq-length", &length, NULL);
    if (context > 1 && length % (2 * context) != 0)
        lh_config_note(c, lh_config_entry(c, "seq-length"),
                       "%" PRIu64 " tokens cannot be cut into the %" PRIu64
                       " halves of chunks that %" PRIu64 " context-parallel ranks have",
                       length, 2 * context, context);
    if (context > 1 && window != NULL && strcmp(type, "a2a") != 0 &&
        strcmp(type, "all_gather") != 0)
        lh_config_note(c, window,
                       "with context parallelism only a2a and all_gather keep a window; with %s "
                       "TransformerEngine stops, or has the whole sequence seen",
                       type);
}

/* Of Megatron-DeepSpeed: DeepSpeed's Ulysses, in which ranks exchange heads for tokens. */
static bool
take_ulysses(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "ds-sequence-parallel-size");
    uint64_t size = 1;

    if (!lh_config_count(c, "ds-sequence-parallel-size", &size, error))
        return false;
    lh_config_set_count(c, entry, LH_CONFIG_WAY, "context_parallel_size", MAX(size, 1));
    lh_config_set(c, entry, LH_CONFIG_SCHEDULE, "schedule", "ulysses");
    return true;
}

static bool
take_context(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "cp-comm-type");
    g_autofree char *sizes = hierarchy_of(c);
    const char *type;
    uint64_t context = 1;

    if (!read_comm_type(c, &type, error) ||
        !lh_config_count(c, "context-parallel-size", &context, error))
        return false;
    if (lh_config_entry(c, "ds-sequence-parallel-size") != NULL)
        return take_ulysses(c, error);
    if (lh_config_entry(c, "context-parallel-size") == NULL)
        lh_config_set_count(c, NULL, LH_CONFIG_WAY, "context_parallel_size", 1);
    warn_context(c, type, context);
    if (context > 1)
        warn_hierarchy(c, type, sizes, context);
    lh_config_set(c, entry, LH_CONFIG_SCHEDULE, "schedule",
                  lh_config_megatron_schedules[lh_config_index(comm_types, type)]);
    if (strcmp(type, "a2a+p2p") == 0 && sizes != NULL)
        lh_config_set(c, lh_config_entry(c, "hierarchical-context-parallel-sizes"),
                      LH_CONFIG_SCHEDULE, "hierarchical_context_parallel_sizes", sizes);
    return true;
}

/* --window-size 4096,0 (before and behind the own token); of Megatron's pair only the left part
 * counts under a causal mask. */
static bool
take_window(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "window-size");
    g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : NULL;
    g_auto(GStrv) sides =
        text != NULL ? g_strsplit_set(g_strdelimit(text, "()[]", ' '), ", ", -1) : NULL;
    guint64 left;

    for (guint i = 0; sides != NULL && sides[i] != NULL; i++) {
        if (sides[i][0] == '\0')
            continue;
        if (!g_ascii_string_to_unsigned(sides[i], 10, 0, UINT32_MAX, &left, NULL))
            return lh_config_fail(c, entry, error,
                                  "\"window-size\": found \"%.40s\"; allowed: the "
                                  "tokens before and behind the own one, 4096,0",
                                  sides[i]);
        lh_config_set_count(c, entry, LH_CONFIG_QUESTION, "window_size", left + 1);
        return true;
    }
    return true;
}

/* ---- policies ---- */

/* What is recomputed of a layer, or of some layers, that is no policy of a step. */
static void
note_parts(LhConfig *c, int policy, const char *method)
{
    const LhSettingsEntry *modules = lh_config_entry(c, "recompute-modules");
    static const char *const counts[] = { "recompute-num-layers", "checkpoint-num-layers",
                                          "activations-checkpoint-num-layers" };
    const LhSettingsEntry *layers = NULL;
    g_autofree char *text = modules != NULL ? lh_settings_entry_text(modules) : NULL;
    g_autofree char *count = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(counts) && layers == NULL; i++)
        layers = lh_config_entry(c, counts[i]);
    count = layers != NULL ? lh_settings_entry_text(layers) : NULL;
    if (text != NULL && strcmp(text, "core_attn") != 0)
        lh_config_note(c, modules,
                       "not modelled: recompute-modules %.60s: attention alone is recomputed (a "
                       "later version: What makes a long step fit)",
                       text);
    if (count != NULL && policy == LH_CHECKPOINT_LAYER &&
        (g_strcmp0(method, "block") == 0 || strcmp(count, "1") != 0))
        lh_config_note(c, layers,
                       "not modelled: recompute-num-layers %.20s: every layer is recomputed, and "
                       "the input of each is kept (a later version: What makes a long step fit)",
                       count);
}

/* ms-swift's Megatron takes the model by its name, and other defaults: it shards its optimizer's
 * states, recomputes attention, and has the type of the model's weights. */
static bool
is_swift(const LhConfig *c)
{
    return c->arguments && lh_config_entry(c, "model") != NULL &&
           lh_config_entry(c, "num-layers") == NULL;
}

/* Names that older versions, and what was made of them, have for recomputing whole layers: a flag,
 * or a method. */
static bool
read_older_recomputation(const LhConfig *c, const char **granularity, const char **method,
                         const LhSettingsEntry **entry, GError **error)
{
    const LhSettingsEntry *flag = lh_config_entry(c, "checkpoint-activations");
    const char *older = NULL;
    bool all = false;

    if (!lh_config_flag(c, "checkpoint-activations", &all, error) ||
        !lh_config_word(c, "activations-checkpoint-method", &older, error))
        return false;
    if (*granularity != NULL || (!all && older == NULL))
        return true;
    *granularity = "full";
    *method = older != NULL ? older : "uniform";
    *entry = all ? flag : lh_config_entry(c, "activations-checkpoint-method");
    return true;
}

static bool
take_recomputation(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "recompute-granularity");
    const char *granularity = NULL, *method = NULL;
    bool activations = false;
    int policy = LH_CHECKPOINT_NONE;

    if (!lh_config_word(c, "recompute-granularity", &granularity, error) ||
        !lh_config_word(c, "recompute-method", &method, error) ||
        !lh_config_flag(c, "recompute-activations", &activations, error) ||
        !read_older_recomputation(c, &granularity, &method, &entry, error))
        return false;
    if (granularity == NULL && activations) {
        granularity = "selective";
        entry = lh_config_entry(c, "recompute-activations");
    }
    if (granularity == NULL && is_swift(c))
        granularity = "selective";
    if (granularity != NULL && strcmp(granularity, "full") == 0)
        policy = LH_CHECKPOINT_LAYER;
    else if (granularity != NULL && strcmp(granularity, "selective") == 0)
        policy = LH_CHECKPOINT_SELECTIVE;
    else if (granularity != NULL)
        return lh_config_fail(
            c, entry, error, "\"recompute-granularity\": found \"%.40s\"; allowed: full, selective",
            granularity);
    if (policy == LH_CHECKPOINT_LAYER && method == NULL)
        lh_config_note(c, entry, "full needs --recompute-method; uniform is taken");
    if (policy == LH_CHECKPOINT_LAYER && g_strcmp0(method, "block") == 0)
        lh_config_note(c, entry,
                       "block recomputes some of a stage's layers; all of them are taken");
    note_parts(c, policy, method);
    lh_config_set(c, entry, LH_CONFIG_WAY, "checkpoint", lh_checkpoint_names[policy]);
    return true;
}

/* NeMo's: by the optimizer's name, or "fsdp" with a strategy. */
static bool
read_nemo_sharding(LhConfig *c, bool *distributed, bool *torch, GError **error)
{
    static const char *const optimizers[] = { "mcore_distributed_optim", "distributed_fused_adam",
                                              NULL };
    static const char *const others[] = { "fused_adam", "adam", "adamw", "adamw_optim", NULL };
    const char *optimizer = others[0], *strategy = "full";

    if (c->system->base == NULL)
        return true;
    if (!lh_config_word(c, "optim-name", &optimizer, error) ||
        !lh_config_flag(c, "fsdp", torch, error) ||
        !lh_config_word(c, "fsdp-sharding-strategy", &strategy, error))
        return false;
    *distributed = *distributed || lh_config_index(optimizers, optimizer) >= 0;
    if (!*distributed && lh_config_index(others, optimizer) < 0)
        lh_config_note(c, lh_config_entry(c, "optim-name"),
                       "not modelled: model.optim.name %.40s: the optimizer has the states of Adam",
                       optimizer);
    if (*torch && strcmp(strategy, "full") != 0)
        lh_config_note(c, lh_config_entry(c, "fsdp-sharding-strategy"),
                       "not modelled: fsdp_sharding_strategy %.20s: full is predicted in its place",
                       strategy);
    else if (!*torch && lh_config_entry(c, "fsdp-sharding-strategy") != NULL &&
             strcmp(strategy, "full") != 0)
        lh_config_note(c, lh_config_entry(c, "fsdp-sharding-strategy"),
                       "only model.fsdp reads it, and that is not set");
    return true;
}

/* Of Megatron-DeepSpeed: the stage of ZeRO, with DeepSpeed's engine. *@stage stays if it is not
 * asked for. */
static bool
read_stage(LhConfig *c, int *stage, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "zero-stage");
    const LhSettingsEntry *file = lh_config_entry(c, "deepspeed-config");
    bool engine = false;
    uint64_t number = 0;

    if (!lh_config_flag(c, "deepspeed", &engine, error) ||
        !lh_config_count(c, "zero-stage", &number, error))
        return false;
    if (entry != NULL && number > LH_SHARD_FSDP)
        return lh_config_fail(c, entry, error,
                              "\"zero-stage\": found \"%" PRIu64 "\"; allowed: 0 to 3", number);
    if (!engine && entry != NULL)
        lh_config_note(c, entry, "only --deepspeed reads it, and that is not given");
    if (!engine)
        return true;
    *stage = entry != NULL ? (int)number : -1;
    if (!lh_config_deepspeed_zero(c, stage, error))
        return false;
    if (*stage < 0)
        lh_config_lacks(c, lh_config_entry(c, "deepspeed"), "shard",
                        "the stage of ZeRO is in DeepSpeed's file, which is neither beside this "
                        "file nor in the working folder: put it there, add --zero-stage N, or give "
                        "--shard");
    if (file != NULL && file->missing && *stage >= 0) {
        g_autofree char *text = lh_settings_entry_text(file);
        g_autofree char *shown = g_strescape(text, NULL);

        lh_config_note(c, file, "the file %.80s is not there, and has not been read", shown);
    }
    lh_config_note(c, lh_config_entry(c, "deepspeed"),
                   "not modelled: deepspeed: ranks exchange gradients and weights as Megatron-LM "
                   "does for the same shards");
    return true;
}

static bool
take_sharding(LhConfig *c, GError **error)
{
    static const char *const strategies[] = { "no_shard", "optim", "optim_grads",
                                              "optim_grads_params", NULL };
    const LhSettingsEntry *entry = lh_config_entry(c, "data-parallel-sharding-strategy");
    const char *strategy = "no_shard";
    bool distributed = is_swift(c), megatron = false, torch = false;
    int shard, stage = -1;

    if (!lh_config_flag(c, "use-distributed-optimizer", &distributed, error) ||
        !lh_config_flag(c, "use-megatron-fsdp", &megatron, error) ||
        !lh_config_flag(c, "use-custom-fsdp", &megatron, error) ||
        !lh_config_flag(c, "use-torch-fsdp2", &torch, error) ||
        !read_nemo_sharding(c, &distributed, &torch, error) ||
        !lh_config_word(c, "data-parallel-sharding-strategy", &strategy, error))
        return false;
    shard = lh_config_index(strategies, strategy);
    if (shard < 0)
        return lh_config_fail(c, entry, error,
                              "\"data-parallel-sharding-strategy\": found \"%.40s\"; allowed: "
                              "no_shard, optim, optim_grads, optim_grads_params",
                              strategy);
    if (entry != NULL && !megatron)
        lh_config_note(c, entry, "only --use-megatron-fsdp reads it, and that is not given");
    if (torch)
        shard = LH_SHARD_FSDP;
    else if (!megatron)
        shard = distributed ? LH_SHARD_ZERO1 : LH_SHARD_DDP;
    if (!read_stage(c, &stage, error))
        return false;
    if (stage >= 0)
        shard = stage;
    lh_config_set(c, entry, LH_CONFIG_WAY, "shard", lh_shard_names[shard]);
    return true;
}

static bool
take_pipeline(LhConfig *c, GError **error)
{
    uint64_t stages = 1, chunks = 0, layers = 0;
    bool embedding = false, loss = false;
    const LhSettingsEntry *entry = lh_config_entry(c, "num-virtual-stages-per-pipeline-rank");

    if (entry == NULL)
        entry = lh_config_entry(c, "virtual-pipeline-model-parallel-size");
    if (!lh_config_count(c, "pipeline-model-parallel-size", &stages, error) ||
        !lh_config_count(c, "num-layers", &layers, error) ||
        !lh_config_count(c, "virtual-pipeline-model-parallel-size", &chunks, error) ||
        !lh_config_count(c, "num-virtual-stages-per-pipeline-rank", &chunks, error) ||
        !lh_config_flag(c, "account-for-embedding-in-pipeline-split", &embedding, error) ||
        !lh_config_flag(c, "account-for-loss-in-pipeline-split", &loss, error))
        return false;
    if (embedding)
        lh_config_set(c, lh_config_entry(c, "account-for-embedding-in-pipeline-split"),
                      LH_CONFIG_WAY, "account_for_embedding_in_pipeline_split", NULL);
    if (loss)
        lh_config_set(c, lh_config_entry(c, "account-for-loss-in-pipeline-split"), LH_CONFIG_WAY,
                      "account_for_loss_in_pipeline_split", NULL);
    layers += (embedding ? 1U : 0U) + (loss ? 1U : 0U);
    if (chunks > 1 && stages > 1 && layers % (stages * chunks) == 0 && layers > 0)
        lh_config_set_count(c, entry, LH_CONFIG_WAY, "num_layers_per_virtual_pipeline_stage",
                            layers / (stages * chunks));
    else if (chunks > 1)
        lh_config_note(c, entry,
                       "%" PRIu64 " layers on %" PRIu64 " stages cannot be cut into %" PRIu64
                       " chunks each; one chunk is taken",
                       layers, stages, chunks);
    return true;
}

/* ---- the loss, and the states of the optimizer ---- */

/* TransformerEngine's fused loss puts the gradients into the place of the logits, which it reads
 * twice and writes once; Megatron-LM's own keeps what it kept. */
static bool
take_loss(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "cross-entropy-loss-fusion");
    const LhSettingsEntry *which = lh_config_entry(c, "cross-entropy-fusion-impl");
    const char *kind = "native";
    bool fused = false;

    if (!lh_config_flag(c, "cross-entropy-loss-fusion", &fused, error) ||
        !lh_config_word(c, "cross-entropy-fusion-impl", &kind, error))
        return false;
    if (which != NULL && !fused)
        lh_config_note(c, which,
                       "only --cross-entropy-loss-fusion reads it, and that is not given");
    if (!fused)
        return true;
    if (strcmp(kind, "te") != 0) {
        lh_config_note(c, entry,
                       "not modelled: cross-entropy-loss-fusion by %.20s: the loss moves and keeps "
                       "what it does without (a later version: What makes a long step fit)",
                       kind);
        return true;
    }
    lh_config_set_framework(c, "logits.fp32_bytes", "0");
    lh_config_set_framework(c, "logits.softmax_bytes", "0");
    lh_config_set_framework(c, "logits.gradient_bytes", "0");
    lh_config_set_framework(c, "kernels.loss", "6");
    return true;
}

static bool
take_states(LhConfig *c, GError **error)
{
    static const char *const names[] = { "exp-avg-dtype", "exp-avg-sq-dtype" };
    const char *types[] = { "fp32", "fp32" };
    bool aware = false, summed = true;

    if (!lh_config_flag(c, "use-precision-aware-optimizer", &aware, error) ||
        !lh_config_flag(c, "accumulate-allreduce-grads-in-fp32", &summed, error))
        return false;
    if (aware && lh_config_entry(c, names[0]) == NULL && lh_config_entry(c, names[1]) == NULL)
        lh_config_note(c, lh_config_entry(c, "use-precision-aware-optimizer"),
                       "moments stay fp32 without --exp-avg-dtype and --exp-avg-sq-dtype");
    if (!summed)
        lh_config_set_framework(c, "states.gradient", "activation");
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const LhSettingsEntry *entry = lh_config_entry(c, names[i]);

        if (!lh_config_word(c, names[i], &types[i], error))
            return false;
        if (entry != NULL && !aware)
            lh_config_note(c, entry,
                           "only --use-precision-aware-optimizer reads it, and that is not given");
        else if (strcmp(types[i], "fp32") != 0 &&
                 (strcmp(types[i], "fp8") == 0 || strcmp(types[0], types[1]) != 0) && i == 1)
            lh_config_note(c, entry,
                           "not modelled: %s %.20s: both moments have one type, fp32 or 16 bits "
                           "(a later version: FP8, MXFP8, NVFP4)",
                           names[i], types[i]);
    }
    if (aware && (strcmp(types[0], "bf16") == 0 || strcmp(types[0], "fp16") == 0) &&
        strcmp(types[0], types[1]) == 0)
        lh_config_set_framework(c, "states.moments", "activation");
    else if (aware && strcmp(types[0], "fp32") != 0)
        lh_config_note(c, lh_config_entry(c, names[0]),
                       "not modelled: %s %.20s: both moments have one type, fp32 or 16 bits (a "
                       "later version: FP8, MXFP8, NVFP4)",
                       names[0], types[0]);
    return true;
}

/* ---- the rest ---- */

static bool
take_precision(LhConfig *c, GError **error)
{
    bool bf16 = false, fp16 = false;
    const char *fp8[] = { "fp8-format", "fp8" }, *precision = "";

    if (!lh_config_flag(c, "bf16", &bf16, error) || !lh_config_flag(c, "fp16", &fp16, error) ||
        (c->system->base != NULL && !lh_config_word(c, "precision", &precision, error)))
        return false;
    bf16 = bf16 || g_str_has_prefix(precision, "bf16");
    fp16 = fp16 || g_str_has_prefix(precision, "16");
    if (!bf16 && !fp16 && !is_swift(c))
        lh_config_note(c, lh_config_entry(c, "precision"),
                       "%s, and %s trains in fp32 then; bf16 is predicted",
                       c->system->base != NULL ? "trainer.precision is neither bf16 nor 16"
                                               : "neither --bf16 nor --fp16 is given",
                       c->system->name);
    lh_config_set(c, lh_config_entry(c, fp16 && !bf16 ? "fp16" : "bf16"), LH_CONFIG_QUESTION,
                  "dtype", fp16 && !bf16 ? "fp16" : "bf16");
    for (guint i = 0; i < G_N_ELEMENTS(fp8); i++) {
        const LhSettingsEntry *entry = lh_config_entry(c, fp8[i]);
        g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : NULL;

        if (entry != NULL && strcmp(text, "false") != 0)
            lh_config_note(c, entry,
                           "not modelled: %s %.20s: products are in 16 bits (a later version: FP8, "
                           "MXFP8, NVFP4)",
                           fp8[i], text);
    }
    return true;
}

static bool
take_ranks(LhConfig *c, GError **error)
{
    uint64_t tensor = 1, experts = 1;
    bool sequence = false;

    if (!lh_config_count(c, "global-batch-size", &c->global_batch_size, error) ||
        !lh_config_count(c, "world-size", &c->processes, error))
        return false;
    if (!lh_config_count(c, "tensor-model-parallel-size", &tensor, error) ||
        !lh_config_count(c, "expert-model-parallel-size", &experts, error) ||
        !lh_config_flag(c, "sequence-parallel", &sequence, error))
        return false;
    if (tensor > 1 && !sequence)
        lh_config_note(c, lh_config_entry(c, "tensor-model-parallel-size"),
                       "without --sequence-parallel every tensor-parallel rank keeps whole norms; "
                       "here they are predicted as shared");
    if (experts > 1)
        lh_config_note(c, lh_config_entry(c, "expert-model-parallel-size"),
                       "not modelled: expert parallelism of %" PRIu64
                       ": every rank has all experts "
                       "(a later version: Experts spread over ranks)",
                       experts);
    return true;
}

/* ms-swift's name of the longest sequence, as long as which all are. */
static bool
take_length(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "max-length");
    uint64_t length = 0;

    if (entry == NULL || lh_config_entry(c, "seq-length") != NULL)
        return true;
    if (!lh_config_count(c, "max-length", &length, error))
        return false;
    if (length == 0)
        return lh_config_fail(c, entry, error, "\"max-length\": found \"0\"; allowed: at least 1");
    lh_config_set_count(c, entry, LH_CONFIG_QUESTION, "seq_length", length);
    return true;
}

static bool
megatron_take(LhConfig *c, GError **error)
{
    return take_model(c, error) && take_length(c, error) && take_context(c, error) &&
           take_window(c, error) && take_recomputation(c, error) && take_sharding(c, error) &&
           take_pipeline(c, error) && take_precision(c, error) && take_loss(c, error) &&
           take_states(c, error) && take_ranks(c, error);
}

/* ---- a way in its words ---- */

static bool
megatron_allows(const LhConfigWay *way)
{
    return way->checkpoint != LH_CHECKPOINT_REMAT && way->order != LH_PIPELINE_GPIPE;
}

static void
say_context(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    const int type =
        way->context > 1 ? lh_config_index(lh_config_megatron_schedules, way->schedule) : -1;
    g_autofree char *sizes = g_strdup_printf("%u %u", way->heads, way->others);

    lh_config_say_count(c, words, "context-parallel-size", way->context);
    if (type >= 0)
        lh_config_say(c, words, "cp-comm-type", LH_SETTINGS_WORD, comm_types[type]);
    if (type >= 0 && strcmp(way->schedule, "te-a2a-p2p") == 0)
        lh_config_say(c, words, "hierarchical-context-parallel-sizes", LH_SETTINGS_LIST, sizes);
    else
        lh_config_unsay(c, words, "hierarchical-context-parallel-sizes");
}

static void
say_pipeline(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    lh_config_say_count(c, words, "pipeline-model-parallel-size", way->pipeline);
    lh_config_unsay(c, words, "num-virtual-stages-per-pipeline-rank");
    if (way->chunks == 1 || c->system->base == NULL)
        lh_config_unsay(c, words, "virtual-pipeline-model-parallel-size");
    if (way->chunks > 1 && c->system->base != NULL)
        lh_config_say_count(c, words, "virtual-pipeline-model-parallel-size", way->chunks);
    else if (way->chunks > 1)
        lh_config_say_count(c, words, "num-layers-per-virtual-pipeline-stage",
                            way->layers_of_chunk);
    else
        lh_config_unsay(c, words, "num-layers-per-virtual-pipeline-stage");
    if (way->embedding_counts)
        lh_config_say(c, words, "account-for-embedding-in-pipeline-split", LH_SETTINGS_FLAG, NULL);
    else
        lh_config_unsay(c, words, "account-for-embedding-in-pipeline-split");
    if (way->loss_counts)
        lh_config_say(c, words, "account-for-loss-in-pipeline-split", LH_SETTINGS_FLAG, NULL);
    else
        lh_config_unsay(c, words, "account-for-loss-in-pipeline-split");
}

static void
say_recomputation(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    lh_config_unsay(c, words, "recompute-activations");
    lh_config_unsay(c, words, "checkpoint-activations");
    lh_config_unsay(c, words, "activations-checkpoint-method");
    lh_config_unsay(c, words, "recompute-modules");
    if (way->checkpoint == LH_CHECKPOINT_NONE)
        lh_config_unsay(c, words, "recompute-granularity");
    else
        lh_config_say(c, words, "recompute-granularity", LH_SETTINGS_WORD,
                      way->checkpoint == LH_CHECKPOINT_LAYER ? "full" : "selective");
    if (way->checkpoint == LH_CHECKPOINT_LAYER) {
        lh_config_say(c, words, "recompute-method", LH_SETTINGS_WORD, "uniform");
        lh_config_say_count(c, words, "recompute-num-layers", 1);
    } else {
        lh_config_unsay(c, words, "recompute-method");
        lh_config_unsay(c, words, "recompute-num-layers");
    }
}

static void
say_sharding(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    lh_config_unsay(c, words, "use-torch-fsdp2");
    lh_config_unsay(c, words, "use-custom-fsdp");
    if (way->shard == LH_SHARD_DDP)
        lh_config_unsay(c, words, "use-distributed-optimizer");
    else
        lh_config_say(c, words, "use-distributed-optimizer", LH_SETTINGS_FLAG, NULL);
    if (way->shard == LH_SHARD_ZERO2 || way->shard == LH_SHARD_FSDP) {
        lh_config_say(c, words, "use-megatron-fsdp", LH_SETTINGS_FLAG, NULL);
        lh_config_say(c, words, "data-parallel-sharding-strategy", LH_SETTINGS_WORD,
                      way->shard == LH_SHARD_ZERO2 ? "optim_grads" : "optim_grads_params");
    } else {
        lh_config_unsay(c, words, "use-megatron-fsdp");
        lh_config_unsay(c, words, "data-parallel-sharding-strategy");
    }
}

void
lh_config_megatron_say_sizes(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    lh_config_say_count(c, words, "seq-length", way->seq_length);
    lh_config_say_count(c, words, "micro-batch-size", way->micro_batch_size);
    lh_config_say_count(c, words, "global-batch-size",
                        (uint64_t)way->micro_batch_size * way->micro_batches * way->data);
    lh_config_say_count(c, words, "tensor-model-parallel-size", way->tensor);
    if (way->tensor > 1)
        lh_config_say(c, words, "sequence-parallel", LH_SETTINGS_FLAG, NULL);
    else
        lh_config_unsay(c, words, "sequence-parallel");
    say_pipeline(c, way, words);
    say_context(c, way, words);
    say_recomputation(c, way, words);
}

static void
megatron_say(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    lh_config_megatron_say_sizes(c, way, words);
    say_sharding(c, way, words);
}

const LhConfigSystem lh_config_megatron = {
    .name = "Megatron-LM",
    .framework = "megatron-lm",
    .last_word = true,
    .keys = lh_config_megatron_keys,
    .schedules = lh_config_megatron_schedules,
    .take = megatron_take,
    .allows = megatron_allows,
    .say = megatron_say,
};
