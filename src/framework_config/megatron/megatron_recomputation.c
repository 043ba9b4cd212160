/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Granularity, method, number of layers and modules as of github:NVIDIA/Megatron-LM,
 * megatron/core/transformer/transformer_config.py and megatron/core/recompute.py. Modules that the
 * model does not have do nothing there, so they are left out with a note.
 */
#include "framework_config/megatron/megatron_recomputation.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "framework_config/megatron/megatron_policies.h"
#include "model/recomputation.h"

#include <inttypes.h>
#include <string.h>

#define EXPERTS                                                                                    \
    (LH_RECOMPUTE_BIT(MOE) | LH_RECOMPUTE_BIT(MOE_ACT) | LH_RECOMPUTE_BIT(SHARED_EXPERTS))
#define WITHIN_MOE (LH_RECOMPUTE_BIT(MOE_ACT) | LH_RECOMPUTE_BIT(SHARED_EXPERTS))

/* What the options say, with the entry that says it. */
typedef struct {
    const char *granularity, *method;
    const LhSettingsEntry *entry, *layers_entry;
    uint64_t layers; /* 0: not given */
    bool of_experts; /* --moe-layer-recompute */
} Said;

/* ---- modules ---- */

/* Removes @modules from @set, with a note, if it has any of them. */
static void
leave_out(LhConfig *c, const LhSettingsEntry *entry, uint32_t *set, uint32_t modules,
          const char *why)
{
    g_autofree char *text = lh_recompute_text(*set & modules, ", ");

    if ((*set & modules) != 0)
        lh_config_note(c, entry, "recompute-modules %s: %s", text, why);
    *set &= ~modules;
}

/* TransformerEngine has norms of their own only before experts. */
static bool
has_fused_norms(const LhConfig *c)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "transformer-impl");
    g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : NULL;

    return text == NULL || strcmp(text, "transformer_engine") == 0;
}

/* Leaves out what does nothing in the model, as far as the configuration describes it. */
static void
leave_out_absent(LhConfig *c, const LhSettingsEntry *entry, uint32_t *set)
{
    const bool described = lh_config_entry(c, "num-layers") != NULL;
    const bool experts =
        lh_config_entry(c, "num-experts") != NULL || lh_config_entry(c, "num-moe-experts") != NULL;
    const bool all = lh_config_entry(c, "moe-layer-freq") == NULL;
    const bool shared = lh_config_entry(c, "moe-shared-expert-intermediate-size") != NULL;

    leave_out(c, entry, set, LH_RECOMPUTE_BIT(MLA_UP_PROJ), "latent attention is not modelled");
    if ((*set & LH_RECOMPUTE_BIT(MOE)) != 0)
        leave_out(c, entry, set, WITHIN_MOE,
                  "moe recomputes it, too; that it runs a third time is not modelled");
    if (described && !experts)
        leave_out(c, entry, set, EXPERTS, "the model has no experts");
    if (described && experts && all)
        leave_out(c, entry, set, LH_RECOMPUTE_BIT(MLP), "all layers have experts");
    if (described && experts && !shared)
        leave_out(c, entry, set, LH_RECOMPUTE_BIT(SHARED_EXPERTS), "the model has none");
    if (has_fused_norms(c) && described && !experts)
        leave_out(c, entry, set, LH_RECOMPUTE_BIT(LAYERNORM),
                  "TransformerEngine fuses the norms of layers without experts with products, and "
                  "keeps their outputs");
    else if (has_fused_norms(c) && (*set & LH_RECOMPUTE_BIT(LAYERNORM)) != 0)
        lh_config_note(c, entry,
                       "not modelled: recompute-modules layernorm: TransformerEngine recomputes "
                       "norms before experts only; all norms of layers are predicted");
}

/* Reads the list: words of arguments, or of a list of a file. */
static bool
read_modules(const LhConfig *c, const LhSettingsEntry *entry, uint32_t *set, GError **error)
{
    g_autofree char *text = lh_settings_entry_text(entry);
    g_autoptr(GError) cause = NULL;

    *set = 0;
    g_strstrip(text);
    if (text[0] == '\0')
        return true;
    g_strdelimit(text, " ", ',');
    return lh_recompute_parse(text, set, &cause) ||
           lh_config_fail(c, entry, error, "\"recompute-modules\": %s", cause->message);
}

static bool
take_modules(LhConfig *c, const Said *said, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "recompute-modules");
    uint32_t set = LH_RECOMPUTE_BIT(CORE_ATTN);
    g_autofree char *text = NULL;

    if (entry != NULL && !read_modules(c, entry, &set, error))
        return false;
    if (said->of_experts)
        set |= LH_RECOMPUTE_BIT(MOE);
    entry = entry != NULL ? entry : said->entry;
    if (said->method != NULL || said->layers > 0)
        lh_config_note(c, said->entry,
                       "selective recomputes all layers alike; a method and a number of layers "
                       "belong to full");
    leave_out_absent(c, entry, &set);
    lh_config_set(c, said->entry, LH_CONFIG_WAY, "checkpoint",
                  lh_checkpoint_names[set == 0 ? LH_CHECKPOINT_NONE : LH_CHECKPOINT_SELECTIVE]);
    if (set == 0 || set == LH_RECOMPUTE_BIT(CORE_ATTN))
        return true;
    text = lh_recompute_text(set, ",");
    lh_config_set(c, entry, LH_CONFIG_WAY, "recompute_modules", text);
    return true;
}

/* ---- layers ---- */

static bool
take_layers(LhConfig *c, const Said *said, GError **error)
{
    const char *method = said->method;

    if (said->of_experts)
        return lh_config_fail(c, lh_config_entry(c, "moe-layer-recompute"), error,
                              "\"moe-layer-recompute\": Megatron-LM refuses it together with full; "
                              "leave one of them out");
    lh_config_set(c, said->entry, LH_CONFIG_WAY, "checkpoint",
                  lh_checkpoint_names[LH_CHECKPOINT_LAYER]);
    if (method == NULL) {
        lh_config_note(c, said->entry, "full needs --recompute-method; uniform is assumed");
        method = lh_recompute_method_names[LH_RECOMPUTE_UNIFORM];
    }
    if (strcmp(method, "block") != 0 && strcmp(method, "uniform") != 0)
        return lh_config_fail(c, lh_config_entry(c, "recompute-method"), error,
                              "\"recompute-method\": found \"%.40s\"; allowed: block, uniform",
                              method);
    if (said->layers == 0 && strcmp(method, "block") == 0)
        lh_config_note(c, said->entry,
                       "block recomputes some of a stage's layers; all are assumed");
    if (said->layers == 0 || (said->layers == 1 && strcmp(method, "uniform") == 0))
        return true;
    lh_config_set(c, said->entry, LH_CONFIG_WAY, "recompute_method", method);
    lh_config_set_count(c, said->layers_entry, LH_CONFIG_WAY, "recompute_num_layers", said->layers);
    return true;
}

/* ---- options ---- */

static bool
read_count(const LhConfig *c, Said *said, GError **error)
{
    static const char *const names[] = { "recompute-num-layers", "checkpoint-num-layers",
                                         "activations-checkpoint-num-layers" };

    for (guint i = 0; i < G_N_ELEMENTS(names) && said->layers_entry == NULL; i++) {
        said->layers_entry = lh_config_entry(c, names[i]);
        if (said->layers_entry != NULL && !lh_config_count(c, names[i], &said->layers, error))
            return false;
    }
    return true;
}

/* Reads the names that older versions, and forks of them, use for recomputing whole layers: a flag,
 * or a method. */
static bool
read_older(const LhConfig *c, Said *said, GError **error)
{
    const char *older = NULL;
    bool all = false;

    if (!lh_config_flag(c, "checkpoint-activations", &all, error) ||
        !lh_config_word(c, "activations-checkpoint-method", &older, error))
        return false;
    if (said->granularity != NULL || (!all && older == NULL))
        return true;
    said->granularity = "full";
    said->method = older != NULL ? older : "uniform";
    said->entry =
        lh_config_entry(c, all ? "checkpoint-activations" : "activations-checkpoint-method");
    return true;
}

static bool
read_said(const LhConfig *c, Said *said, GError **error)
{
    bool activations = false;

    said->entry = lh_config_entry(c, "recompute-granularity");
    if (!lh_config_word(c, "recompute-granularity", &said->granularity, error) ||
        !lh_config_word(c, "recompute-method", &said->method, error) ||
        !lh_config_flag(c, "recompute-activations", &activations, error) ||
        !lh_config_flag(c, "moe-layer-recompute", &said->of_experts, error) ||
        !read_count(c, said, error) || !read_older(c, said, error))
        return false;
    if (said->granularity == NULL && (activations || said->of_experts)) {
        said->granularity = "selective";
        said->entry =
            lh_config_entry(c, activations ? "recompute-activations" : "moe-layer-recompute");
    }
    if (said->granularity == NULL && lh_config_megatron_is_swift(c))
        said->granularity = "selective";
    return true;
}

bool
lh_config_megatron_take_recomputation(LhConfig *c, GError **error)
{
    Said said = { 0 };

    if (!read_said(c, &said, error))
        return false;
    if (said.granularity == NULL) {
        lh_config_set(c, said.entry, LH_CONFIG_WAY, "checkpoint",
                      lh_checkpoint_names[LH_CHECKPOINT_NONE]);
        return true;
    }
    if (strcmp(said.granularity, "selective") == 0)
        return take_modules(c, &said, error);
    if (strcmp(said.granularity, "full") == 0)
        return take_layers(c, &said, error);
    return lh_config_fail(c, said.entry, error,
                          "\"recompute-granularity\": found \"%.40s\"; allowed: full, selective",
                          said.granularity);
}
