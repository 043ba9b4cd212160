/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/megatron/megatron_shape.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_values.h"
#include "step/step.h"

#include <inttypes.h>
#include <string.h>

/* Reads the kind of positions; the default is learned ones. */
static bool
read_positions(LhConfig *c, LhMegatronShape *s, GError **error)
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
        lh_config_note(
            c, entry, "not modelled: position-embedding-type %.20s: rotary positions are predicted",
            type);
    if (most != NULL && count < length)
        lh_config_note(c, most,
                       "%" PRIu64 " positions are fewer than the %" PRIu64
                       " tokens of a sequence; %s stops",
                       count, length, c->system->name);
    return true;
}

/* Reads whether matrices and norms have biases; there are two options for this. */
static bool
read_biases(const LhConfig *c, LhMegatronShape *s, GError **error)
{
    bool none = false;

    s->biases = true;
    if (!lh_config_flag(c, "disable-bias-linear", &none, error) ||
        !lh_config_flag(c, "add-bias-linear", &s->biases, error))
        return false;
    s->biases = s->biases && !none;
    return true;
}

bool
lh_config_megatron_read_shape(LhConfig *c, LhMegatronShape *s, GError **error)
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

void
lh_config_megatron_fill_shape(LhConfig *c, LhMegatronShape *s)
{
    const bool arguments = c->arguments;

    if (arguments && s->groups != 0 && !s->grouped) {
        lh_config_note(c, lh_config_entry(c, "num-query-groups"),
                       "Megatron-LM ignores --num-query-groups without --group-query-attention: "
                       "every head has keys and values of its own");
        s->groups = 0;
    }
    if (s->groups == 0)
        s->groups = arguments && s->grouped ? 1 : s->heads;
    if (s->channels == 0)
        s->channels = s->hidden / s->heads;
    if (s->ffn == 0) /* Megatron-LM's default */
        s->ffn = s->gated ? 4 * s->hidden * 2 / 3 / 64 * 64 : 4 * s->hidden;
    s->dense_ffn = s->ffn;
    if (s->experts > 0 && s->expert_ffn != 0)
        s->ffn = s->expert_ffn;
}

/* Expands "([0]*3+[1]*58)" to 0001...1, one digit per layer; a number n to every n-th layer. NULL:
 * neither. Caller frees. */
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

bool
lh_config_megatron_take_dense_layers(LhConfig *c, LhMegatronShape *s, GError **error)
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
                              "with a 0 or 1 for each of the %" PRIu64 " layers",
                              shown, s->layers);
    if (strchr(digits, '1') == NULL) {
        s->experts = s->shared_ffn = 0;
        s->ffn = s->dense_ffn;
    } else if (strchr(digits, '0') != NULL) {
        s->dense = g_steal_pointer(&digits);
    }
    return true;
}

bool
lh_config_megatron_take_shared_experts(const LhConfig *c, const LhMegatronShape *s, GError **error)
{
    const char *name = "moe-shared-expert-intermediate-size";

    if (s->shared_ffn == 0 || s->experts > 0)
        return true;
    return lh_config_fail(c, lh_config_entry(c, name), error,
                          "\"%s\": found \"%" PRIu64
                          "\" in a model without experts; add --num-experts N, or remove it",
                          name, s->shared_ffn);
}

bool
lh_config_megatron_take_deepspeed_experts(const LhConfig *c, LhMegatronShape *s, GError **error)
{
    if (lh_config_entry(c, "deepspeed") == NULL)
        return true;
    if (s->experts == 1)
        s->experts = 0;
    return s->experts == 0 ||
           lh_config_fail(c, lh_config_entry(c, "num-experts"), error,
                          "\"num-experts\": found \"%" PRIu64
                          "\": Megatron-DeepSpeed's experts, in every n-th layer, are not "
                          "supported; remove the option and name a similar model with --model",
                          s->experts);
}
