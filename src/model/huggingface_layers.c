/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derives the layers of a Hugging Face model from its keys: kind of attention, window, experts, and
 * parameters in addition to the matrices.
 */
#include "model/huggingface_layers.h"

#include "base/error.h"
#include "base/saturate.h"

#include <string.h>

static const LhHfValue *
value_of(const LhHfReader *r, LhHfSlot slot)
{
    return &r->values[slot];
}

/* ---- experts ---- */

static bool
has_number(const GArray *list, uint64_t number)
{
    for (guint i = 0; i < list->len; i++) {
        if (g_array_index(list, uint64_t, i) == number)
            return true;
    }
    return false;
}

/* Whether the text "4,5,6" contains @number. */
static bool
text_has_number(const char *text, uint64_t number)
{
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    g_autofree char *word = g_strdup_printf("%" G_GUINT64_FORMAT, number);

    for (char **w = words; *w != NULL; w++) {
        if (strcmp(g_strstrip(*w), word) == 0)
            return true;
    }
    return false;
}

/* Whether layer @i of a model with experts has a dense MLP. */
static bool
is_dense(const LhHfReader *r, uint64_t i)
{
    const LhHfValue *layers = value_of(r, LH_HF_MOE_LAYERS);
    const LhHfValue *mask = value_of(r, LH_HF_MOE_PHASE_FIRST);
    const LhHfValue *dense = value_of(r, LH_HF_DENSE_LAYERS);
    const LhHfValue *types = value_of(r, LH_HF_MLP_TYPES);
    const uint64_t last = lh_hf_number(r, LH_HF_MOE_LAST);
    const uint64_t every = MAX(lh_hf_number(r, LH_HF_MOE_PHASE_FIRST), 1);
    const uint64_t step = lh_hf_number(r, LH_HF_MOE_PHASE_LAST);

    if (layers->word != NULL)
        return !text_has_number(layers->word, i);
    if (layers->list != NULL && layers->list->len > 0)
        return !has_number(layers->list, i);
    if (types->words != NULL && i < types->words->len)
        return strcmp(g_ptr_array_index(types->words, i), "dense") == 0;
    if (mask->list != NULL && i < mask->list->len)
        return g_array_index(mask->list, uint64_t, i) == 0;
    if (dense->list != NULL && has_number(dense->list, i))
        return true;
    return i < lh_hf_number(r, LH_HF_DENSE_FIRST) || (last > 0 && i > last) || i % every != 0 ||
           (step > 1 && (i + 1) % step != 0);
}

/* ---- attention ---- */

static bool
take_layer_type(LhHfReader *r, const char *type, guint i, LhLayerRun *layer, GError **error)
{
    static const char *const whole[] = { "full_attention", "attention", "global", NULL };
    static const char *const less[] = { "sliding_attention", "chunked_attention", "local", NULL };
    g_autofree char *path = NULL;

    layer->whole = g_strv_contains(whole, type);
    if (layer->whole || g_strv_contains(less, type))
        return true;
    if (strcmp(type, "linear_attention") == 0 && lh_hf_number(r, LH_HF_LINEAR_GATE) != 0) {
        layer->kind = LH_LAYER_LINEAR;
        return true;
    }
    path = g_strdup_printf("%s[%u]", lh_hf_slot_path(r, LH_HF_LAYER_TYPES), i);
    return lh_json_error(r->json, path, error,
                         "\"%s\" is \"%.40s\", which is not supported; allowed: full_attention, "
                         "sliding_attention, chunked_attention%s",
                         path, type,
                         lh_hf_number(r, LH_HF_LINEAR_GATE) != 0 ? ", linear_attention" : "");
}

/* MiniMax's own files: 0 is lightning (linear) attention, 1 softmax. */
static bool
take_attention_type(LhHfReader *r, uint64_t type, guint i, LhLayerRun *layer, GError **error)
{
    g_autofree char *path = NULL;

    layer->kind = type == 0 ? LH_LAYER_LINEAR : LH_LAYER_SOFTMAX;
    layer->whole = true;
    if (type == 1 || (type == 0 && lh_hf_number(r, LH_HF_LINEAR_GATE) != 0))
        return true;
    path = g_strdup_printf("%s[%u]", lh_hf_slot_path(r, LH_HF_ATTENTION_LIST), i);
    return lh_json_error(r->json, path, error,
                         "\"%s\" must be 0 (linear) or 1 (softmax); found %" G_GUINT64_FORMAT, path,
                         type);
}

/* Whether layer @i attends to the whole sequence, in a file without a list of its layers. */
static bool
is_whole(const LhHfReader *r, uint64_t i)
{
    const LhHfValue *pattern = value_of(r, LH_HF_WINDOW_PATTERN);
    const LhHfValue *rope = value_of(r, LH_HF_ROPE_LAYERS);
    const uint64_t period = lh_hf_number(r, LH_HF_WINDOW_PATTERN);
    const uint64_t interval = lh_hf_number(r, LH_HF_NOPE_INTERVAL);

    /* The layers without rotary positions: SmolLM3. */
    if (interval > 0 && lh_hf_number(r, LH_HF_CHUNK) == 0)
        return rope->list != NULL && i < rope->list->len
                   ? g_array_index(rope->list, uint64_t, i) != 0
                   : (i + 1) % interval != 0;
    if (lh_hf_number(r, LH_HF_CHUNK) > 0)
        return rope->list != NULL && i < rope->list->len
                   ? g_array_index(rope->list, uint64_t, i) == 0
                   : interval > 0 && (i + 1) % interval == 0;
    if (lh_hf_number(r, LH_HF_WINDOW_ODD) != 0)
        return i % 2 == 0;
    if (pattern->word != NULL && pattern->word[0] != '\0')
        return pattern->word[i % strlen(pattern->word)] != 'L';
    if (period > 0)
        return (i + 1) % period == 0;
    return i < lh_hf_number(r, LH_HF_WINDOW_FIRST);
}

static bool
take_layer(LhHfReader *r, uint64_t i, LhLayerRun *layer, GError **error)
{
    const LhHfValue *types = value_of(r, LH_HF_LAYER_TYPES);
    const LhHfValue *list = value_of(r, LH_HF_ATTENTION_LIST);

    layer->count = 1;
    if (types->words != NULL) {
        if (!take_layer_type(r, g_ptr_array_index(types->words, i), (guint)i, layer, error))
            return false;
    } else if (list->list != NULL) {
        if (!take_attention_type(r, g_array_index(list->list, uint64_t, i), (guint)i, layer, error))
            return false;
    } else {
        layer->kind = lh_hf_number(r, LH_HF_LINEAR) != 0 ? LH_LAYER_LINEAR : LH_LAYER_SOFTMAX;
        layer->whole = is_whole(r, i);
    }
    layer->output_gate = layer->kind == LH_LAYER_LINEAR && lh_hf_number(r, LH_HF_LINEAR_GATE) != 0;
    layer->whole = layer->kind == LH_LAYER_SOFTMAX && layer->whole &&
                   (r->model->sliding_window > 0 || r->model->chunk_size > 0);
    return true;
}

/* Checks that a list of layers has an element per layer. */
static bool
check_length(LhHfReader *r, LhHfSlot slot, GError **error)
{
    const LhHfValue *value = value_of(r, slot);
    const guint listed = value->words != NULL  ? value->words->len
                         : value->list != NULL ? value->list->len
                                               : 0;

    if ((value->words == NULL && value->list == NULL) || listed == r->model->num_layers)
        return true;
    return lh_json_error(r->json, value->path, error,
                         "\"%s\" has %u elements for %" G_GUINT64_FORMAT " layers", value->path,
                         listed, r->model->num_layers);
}

/* Requires a list of layers from a class that mixes kinds of layers. */
static bool
check_listed(LhHfReader *r, GError **error)
{
    const bool types = value_of(r, LH_HF_LAYER_TYPES)->words != NULL;
    const bool list = value_of(r, LH_HF_ATTENTION_LIST)->list != NULL;
    const char *path = lh_hf_slot_path(
        r, lh_hf_number(r, LH_HF_LINEAR_GATE) != 0 ? LH_HF_ATTENTION_LIST : LH_HF_LAYER_TYPES);

    if (lh_hf_number(r, LH_HF_LISTED) == 0 || types || list)
        return true;
    return lh_json_error(r->json, path, error,
                         "missing field \"%s\", the list of layers of model type %s: it alone "
                         "states the kind of attention of each layer",
                         path, r->model_type);
}

/* Leading layers without experts are stored as a number; others in the list of layers. */
static void
set_dense(const LhHfReader *r, GArray *each)
{
    uint64_t first = 0;

    if (lh_hf_number(r, LH_HF_EXPERTS) == 0)
        return;
    while (first < each->len && is_dense(r, first))
        first++;
    r->model->weights.dense_layers = first;
    for (uint64_t i = first; i < each->len; i++)
        g_array_index(each, LhLayerRun, i).dense = is_dense(r, i);
}

/* GPT-Neo states its pattern twice; both must be the one of the row. */
static bool
check_gpt_neo(LhHfReader *r, GError **error)
{
    const char *path = lh_hf_path(r, "attention_types");
    g_autofree char *text = lh_json_text(r->json, path);
    g_autofree char *expected = g_strdup_printf("[[[\"global\",\"local\"],%" G_GUINT64_FORMAT "]]",
                                                r->model->num_layers / 2);

    if (lh_hf_number(r, LH_HF_WINDOW_ODD) == 0 || text[0] == '\0' ||
        value_of(r, LH_HF_LAYER_TYPES)->words != NULL || strcmp(text, expected) == 0)
        return true;
    return lh_json_error(r->json, path, error, "\"%s\" must be %s; give \"attention_layers\"", path,
                         expected);
}

bool
lh_hf_read_layers(LhHfReader *r, GError **error)
{
    g_autoptr(GArray) each = g_array_new(FALSE, FALSE, sizeof(LhLayerRun));
    LhModel *model = r->model;

    if (lh_hf_number(r, LH_HF_USE_WINDOW) != 0)
        model->sliding_window = lh_hf_number(r, LH_HF_WINDOW);
    model->chunk_size = lh_hf_number(r, LH_HF_CHUNK);
    if (!check_listed(r, error) || !check_length(r, LH_HF_LAYER_TYPES, error) ||
        !check_length(r, LH_HF_ATTENTION_LIST, error) || !check_length(r, LH_HF_MLP_TYPES, error) ||
        !check_gpt_neo(r, error))
        return false;
    for (uint64_t i = 0; i < model->num_layers; i++) {
        LhLayerRun layer = { 0 };

        if (!take_layer(r, i, &layer, error))
            return false;
        g_array_append_val(each, layer);
    }
    set_dense(r, each);
    lh_model_fold_layers(model, each);
    return true;
}

/* ---- MLPs ---- */

/* Reads a number, or a list whose elements are equal: it must be the same in all layers. */
static bool
one_number(LhHfReader *r, LhHfSlot slot, uint64_t *number, GError **error)
{
    const LhHfValue *value = value_of(r, slot);
    const GArray *list = value->list;

    *number = lh_hf_number(r, slot);
    if (list == NULL || list->len == 0)
        return true;
    *number = g_array_index(list, uint64_t, 0);
    for (guint i = 1; i < list->len; i++) {
        if (g_array_index(list, uint64_t, i) != *number)
            return lh_json_error(r->json, value->path, error,
                                 "\"%s\" differs between layers, which is not supported",
                                 value->path);
    }
    return true;
}

static bool
read_experts(LhHfReader *r, GError **error)
{
    LhModel *m = r->model;
    uint64_t count, chosen, shared, width;

    if (!one_number(r, LH_HF_EXPERTS, &count, error) ||
        !one_number(r, LH_HF_EXPERTS_PER_TOKEN, &chosen, error) ||
        !one_number(r, LH_HF_SHARED_EXPERTS, &shared, error) ||
        !one_number(r, LH_HF_EXPERT_FFN, &width, error))
        return false;
    m->weights.dense_ffn_hidden_size = lh_hf_number(r, LH_HF_DENSE_FFN) > 0
                                           ? lh_hf_number(r, LH_HF_DENSE_FFN)
                                           : m->ffn_hidden_size;
    if (width > 0)
        m->ffn_hidden_size = width;
    m->weights.shared_ffn_hidden_size = lh_hf_number(r, LH_HF_SHARED_IS_WIDE) != 0
                                            ? m->hidden_size
                                            : lh_hf_number(r, LH_HF_SHARED_FFN);
    if (m->weights.shared_ffn_hidden_size > 0)
        shared = 1;
    if (m->weights.shared_ffn_hidden_size == m->ffn_hidden_size)
        m->weights.shared_ffn_hidden_size = 0;
    m->weights.shared_experts = shared;
    m->num_experts = count + shared;
    m->experts_per_token = chosen > 0 ? chosen + shared : 0;
    return true;
}

/* Rejects a mixture of experts whose number is missing. */
static bool
check_experts(LhHfReader *r, GError **error)
{
    const LhHfValue *chosen = value_of(r, LH_HF_EXPERTS_PER_TOKEN);
    const char *path = lh_hf_slot_path(r, LH_HF_EXPERTS);

    if (value_of(r, LH_HF_EXPERTS)->stated || lh_hf_number(r, LH_HF_EXPERTS) > 0 ||
        (chosen->number == 0 && lh_hf_number(r, LH_HF_EXPERT_FFN) == 0))
        return true;
    if (chosen->number > 0)
        return lh_json_error(r->json, chosen->path, error, "\"%s\" needs \"%s\" beside it",
                             chosen->path, path);
    return lh_json_error(r->json, path, error,
                         "missing field \"%s\", the number of experts of model type %s; allowed: "
                         "0, for a model without experts",
                         path, r->model_type);
}

bool
lh_hf_read_mlp(LhHfReader *r, GError **error)
{
    LhModel *m = r->model;
    const char *path = lh_hf_slot_path(r, LH_HF_FFN);

    m->gated_mlp = lh_hf_number(r, LH_HF_PLAIN) == 0;
    m->ffn_hidden_size = lh_hf_number(r, LH_HF_FFN);
    if (lh_hf_number(r, LH_HF_EXPERTS) == 0 && value_of(r, LH_HF_EXPERTS)->list == NULL &&
        lh_hf_number(r, LH_HF_SHARED_FFN) > 0)
        m->ffn_hidden_size = lh_hf_number(r, LH_HF_SHARED_FFN);
    if (m->ffn_hidden_size == 0)
        m->ffn_hidden_size = lh_hf_number(r, LH_HF_FFN_TIMES) * m->hidden_size;
    if (lh_hf_number(r, LH_HF_FFN_HALVES) != 0)
        m->ffn_hidden_size /= 2;
    if (!check_experts(r, error))
        return false;
    if ((lh_hf_number(r, LH_HF_EXPERTS) > 0 || value_of(r, LH_HF_EXPERTS)->list != NULL) &&
        !read_experts(r, error))
        return false;
    if (m->ffn_hidden_size > 0)
        return true;
    return lh_json_error(r->json, path, error, "missing field \"%s\", the width of the MLP", path);
}

/* ---- parameters ---- */

/* Latent attention: q, k and v come from low-rank projections, each with a norm. */
static uint64_t
latent_parameters(const LhHfReader *r)
{
    const uint64_t hidden = r->model->hidden_size, heads = r->model->num_attention_heads;
    const uint64_t rope = lh_hf_number(r, LH_HF_QK_ROPE), nope = lh_hf_number(r, LH_HF_QK_NOPE);
    const uint64_t v = lh_hf_number(r, LH_HF_V_DIM), q_rank = lh_hf_number(r, LH_HF_Q_RANK);
    const uint64_t rank = lh_hf_number(r, LH_HF_KV_RANK);
    const uint64_t q =
        q_rank > 0 ? q_rank * (hidden + 1 + heads * (nope + rope)) : hidden * heads * (nope + rope);
    const uint64_t kv = hidden * (rank + rope) + rank + rank * heads * (nope + v);

    return q + kv + heads * v * hidden;
}

/* Parameters of the indexer, which selects the tokens that a query attends to: its q comes from the
 * latent q; its one key, with a norm, and the weights of its heads from the hidden state. */
static uint64_t
indexer_parameters(const LhHfReader *r)
{
    const uint64_t hidden = r->model->hidden_size, rank = lh_hf_number(r, LH_HF_Q_RANK);
    const uint64_t heads = lh_hf_number(r, LH_HF_INDEX_HEADS);
    const uint64_t dim = lh_hf_number(r, LH_HF_INDEX_DIM);

    if (lh_hf_number(r, LH_HF_TOP_K) == 0)
        return 0;
    return rank * heads * dim + hidden * (dim + heads) + 2 * dim;
}

/* Multi-matrix factorisation: q comes from a low-rank projection with a norm. */
static uint64_t
shared_q_parameters(const LhHfReader *r)
{
    const LhModel *m = r->model;
    const uint64_t rank = lh_hf_number(r, LH_HF_Q_SHARED);
    const uint64_t q = m->num_attention_heads * m->kv_channels;

    return m->hidden_size * rank + rank + rank * q + q * m->hidden_size +
           2 * m->hidden_size * m->num_query_groups * m->kv_channels;
}

/* Number of layers with experts. */
static uint64_t
expert_layers(const LhHfReader *r)
{
    uint64_t count = 0;

    for (uint64_t i = 0; r->model->num_experts > 0 && i < r->model->num_layers; i++)
        count += is_dense(r, i) ? 0 : 1;
    return count;
}

/* Whether norms have biases though not all matrices and norms do. */
static bool
has_norm_biases(const LhHfReader *r)
{
    return lh_hf_number(r, LH_HF_NORM_BIAS) != 0 && lh_hf_number(r, LH_HF_BIASES) == 0;
}

/* Parameters per layer in addition to matrices and norms. */
static uint64_t
others_of_layer(const LhHfReader *r)
{
    const LhModel *m = r->model;
    const uint64_t q = m->num_attention_heads * m->kv_channels;
    const uint64_t kv = m->num_query_groups * m->kv_channels;
    uint64_t sum = 0;

    if (lh_hf_number(r, LH_HF_O_BIAS) != 0)
        sum += m->hidden_size;
    if (lh_hf_number(r, LH_HF_MLP_BIAS) != 0 && m->num_experts == 0)
        sum += (m->gated_mlp ? 2 : 1) * m->ffn_hidden_size + m->hidden_size;
    if (lh_hf_number(r, LH_HF_QK_NORM_HEADS) != 0)
        sum += q + kv;
    if (lh_hf_number(r, LH_HF_QK_NORM) != 0 && lh_hf_number(r, LH_HF_QK_NORM_BIAS) != 0)
        sum += 2 * m->kv_channels;
    if (lh_hf_number(r, LH_HF_SINKS) != 0)
        sum += m->num_attention_heads;
    if (lh_hf_number(r, LH_HF_FFN_NORM) != 0)
        sum += q + m->ffn_hidden_size;
    if (has_norm_biases(r))
        sum +=
            (lh_hf_number(r, LH_HF_NORMS) > 0 ? lh_hf_number(r, LH_HF_NORMS) : 2) * m->hidden_size;
    return sum;
}

static uint64_t
other_parameters(const LhHfReader *r)
{
    const LhModel *m = r->model;
    const uint64_t h = m->hidden_size, of_experts = expert_layers(r);
    const uint64_t routed = m->num_experts - m->weights.shared_experts;
    uint64_t sum = m->num_layers * others_of_layer(r) + lh_hf_number(r, LH_HF_TYPES) * h;

    if (has_norm_biases(r))
        sum += h;
    if (lh_hf_number(r, LH_HF_HEAD_BIAS) != 0)
        sum += m->vocab_size;
    if (lh_hf_number(r, LH_HF_EMBEDDING_NORM) != 0)
        sum += 2 * h;
    if (lh_hf_number(r, LH_HF_POOLER) != 0)
        sum += h * h + h;
    if (lh_hf_number(r, LH_HF_ROUTER_BIAS) != 0)
        sum += of_experts * routed;
    if (lh_hf_number(r, LH_HF_SHARED_GATE) != 0)
        sum += of_experts * h;
    if (lh_hf_number(r, LH_HF_EXPERT_BIAS) != 0)
        sum += of_experts * routed * (2 * m->ffn_hidden_size + h + 1);
    return sum;
}

/* Positions, types and their norm have the width of the embedding; one projection with a bias leads
 * from there to the layers. The difference to the model's width, which is counted elsewhere, is
 * subtracted here. */
static void
narrow_embeddings(const LhHfReader *r)
{
    LhModel *m = r->model;
    LhModelWeights *w = &m->weights;
    const uint64_t rows = w->learned_positions + lh_hf_number(r, LH_HF_TYPES) + 2;
    const uint64_t wide = (lh_hf_number(r, LH_HF_TYPES) + 1) * m->hidden_size;

    w->embedding_once = true;
    w->learned_positions = 0;
    w->other_parameters += rows * w->embedding_width;
    w->other_parameters -= MIN(w->other_parameters, wide);
}

void
lh_hf_read_weights(LhHfReader *r)
{
    LhModel *m = r->model;
    LhModelWeights *w = &m->weights;
    const uint64_t width = lh_hf_number(r, LH_HF_EMBEDDING);

    w->biases = lh_hf_number(r, LH_HF_BIASES) != 0;
    w->qkv_bias = lh_hf_number(r, LH_HF_QKV_BIAS) != 0;
    w->qk_norm = lh_hf_number(r, LH_HF_QK_NORM) != 0;
    w->norms_per_layer = lh_hf_number(r, LH_HF_NORMS);
    if (lh_hf_number(r, LH_HF_LEARNED) != 0 && lh_hf_number(r, LH_HF_NO_ROTARY) == 0)
        w->learned_positions =
            lh_hf_number(r, LH_HF_POSITIONS) + lh_hf_number(r, LH_HF_MORE_POSITIONS);
    if (width != m->hidden_size)
        w->embedding_width = width;
    w->bare_norms = lh_hf_number(r, LH_HF_NORM_BARE) != 0;
    if (lh_hf_number(r, LH_HF_KV_RANK) > 0 && lh_hf_number(r, LH_HF_V_DIM) > 0)
        w->attention_parameters = latent_parameters(r) + indexer_parameters(r);
    else if (lh_hf_number(r, LH_HF_Q_SHARED) > 0)
        w->attention_parameters = shared_q_parameters(r);
    w->other_parameters = other_parameters(r);
    if (w->embedding_width > 0 && lh_hf_number(r, LH_HF_EMBEDDING_ALL) != 0)
        narrow_embeddings(r);
}
