/* SPDX-License-Identifier: Apache-2.0 */
#include "remedy/remedies.h"

#include "step/behaviour.h"

#include <string.h>

bool
lh_remedies_equal(const LhRemedies *a, const LhRemedies *b)
{
    return a->loss == b->loss && a->tiled == b->tiled && a->modules == b->modules &&
           a->method == b->method && a->layers == b->layers && a->offload == b->offload &&
           a->moments == b->moments && a->params == b->params && a->grads == b->grads;
}

bool
lh_remedies_any(const LhRemedies *r)
{
    static const LhRemedies none = { 0 };

    return !lh_remedies_equal(r, &none);
}

#define TAKE(member)                                                                               \
    if (more->member != 0)                                                                         \
    r->member = more->member

void
lh_remedies_add(LhRemedies *r, const LhRemedies *more)
{
    r->modules |= more->modules;
    TAKE(loss);
    TAKE(tiled);
    TAKE(method);
    TAKE(layers);
    TAKE(offload);
    TAKE(moments);
    TAKE(params);
    TAKE(grads);
}

/* ---- in a setup ---- */

static void
take_types(const LhRemedies *r, LhFramework *framework)
{
    if (r->moments != 0)
        framework->states_moments =
            r->moments - 1 == LH_EXP_AVG_8BIT ? LH_STATE_8BIT : LH_STATE_ACTIVATION;
    if (r->params != 0)
        framework->states_master = r->params - 1 == LH_MAIN_PARAMS_FP32;
    if (r->grads != 0)
        framework->states_gradient = framework->ddp_gradient_reduce =
            framework->fsdp_gradient_reduce = LH_TYPE_ACTIVATION;
}

LhCheckpoint
lh_remedies_checkpoint(const LhRemedies *r, LhCheckpoint checkpoint)
{
    if (r->modules != 0)
        return LH_CHECKPOINT_SELECTIVE;
    return r->method != 0 ? LH_CHECKPOINT_LAYER : checkpoint;
}

void
lh_remedies_apply(const LhRemedies *r, LhSetupStep *step)
{
    LhStepParams *p = &step->params;
    LhFramework *framework = step->framework, changed = *framework; /* what it owns is shared */

    if (!lh_remedies_any(r))
        return;
    if (r->loss != 0) {
        p->loss = (LhLoss)(r->loss - 1);
        p->loss_chunk_rows = 0;
    }
    if (r->tiled != 0)
        p->mlp_tile_rows = step->model.hidden_size;
    if (r->modules != 0)
        p->recompute = (LhRecompute){ .modules = r->modules };
    if (r->method != 0)
        p->recompute =
            (LhRecompute){ .layers = r->layers, .method = (LhRecomputeMethod)(r->method - 1) };
    if (r->offload != 0)
        p->offload_layers = r->offload == LH_REMEDIES_ALL_LAYERS ? LH_STEP_OFFLOAD_ALL : r->offload;
    take_types(r, &changed);
    step->framework = &changed;
    lh_setup_step_policy(step, p->shard, lh_remedies_checkpoint(r, p->checkpoint));
    step->framework = framework;
}

/* ---- as options ---- */

char *
lh_remedies_value(const LhRemedies *r, LhRemedyOption option)
{
    switch (option) {
    case LH_REMEDY_LOSS:
        return r->loss != 0 ? g_strdup(lh_loss_names[r->loss - 1]) : NULL;
    case LH_REMEDY_TILED_MLP:
        return r->tiled != 0 ? g_strdup("auto") : NULL;
    case LH_REMEDY_MODULES:
        return r->modules != 0 ? lh_recompute_text(r->modules, ",") : NULL;
    case LH_REMEDY_METHOD:
        return r->method != 0 ? g_strdup(lh_recompute_method_names[r->method - 1]) : NULL;
    case LH_REMEDY_OFFLOAD:
        if (r->offload == LH_REMEDIES_ALL_LAYERS)
            return g_strdup("all");
        return r->offload != 0 ? g_strdup_printf("%u", r->offload) : NULL;
    case LH_REMEDY_MOMENTS:
        return r->moments != 0 ? g_strdup(lh_exp_avg_names[r->moments - 1]) : NULL;
    case LH_REMEDY_PARAMS:
        return r->params != 0 ? g_strdup(lh_main_params_names[r->params - 1]) : NULL;
    case LH_REMEDY_GRADS:
        return r->grads != 0 ? g_strdup(lh_dtype_names[r->grads - 1]) : NULL;
    default:
        return NULL;
    }
}

void
lh_remedies_replace(const LhRemedies *r, LhScenario *s)
{
    if (r->modules != 0 || r->method != 0)
        lh_scenario_replace(s, "checkpoint",
                            lh_checkpoint_names[lh_remedies_checkpoint(r, LH_CHECKPOINT_NONE)]);
    for (int option = 0; option < LH_REMEDY_OPTIONS; option++) {
        g_autofree char *value = lh_remedies_value(r, (LhRemedyOption)option);

        if (value != NULL)
            lh_scenario_replace(s, lh_remedy_option_names[option], value);
    }
    if (r->method != 0) {
        g_autofree char *layers = g_strdup_printf("%u", r->layers);

        lh_scenario_replace(s, "recompute_num_layers", layers);
    }
}

bool
lh_remedies_part(const LhRemedies *r, LhRemedyOption option, LhRemedies *part)
{
    *part = (LhRemedies){
        .loss = option == LH_REMEDY_LOSS ? r->loss : 0,
        .tiled = option == LH_REMEDY_TILED_MLP ? r->tiled : 0,
        .modules = option == LH_REMEDY_MODULES ? r->modules : 0,
        .method = option == LH_REMEDY_METHOD ? r->method : 0,
        .layers = option == LH_REMEDY_METHOD ? r->layers : 0,
        .offload = option == LH_REMEDY_OFFLOAD ? r->offload : 0,
        .moments = option == LH_REMEDY_MOMENTS ? r->moments : 0,
        .params = option == LH_REMEDY_PARAMS ? r->params : 0,
        .grads = option == LH_REMEDY_GRADS ? r->grads : 0,
    };
    return lh_remedies_any(part);
}

/* The option as on a command line: "--loss fused". Caller frees. */
static char *
option_text(const LhRemedies *r, LhRemedyOption option)
{
    g_autofree char *value = lh_remedies_value(r, option);
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "--%s %s", lh_remedy_option_names[option], value);
    if (option == LH_REMEDY_METHOD)
        g_string_append_printf(text, " --recompute-num-layers %u", r->layers);
    for (char *at = text->str; *at != '\0' && *at != ' '; at++)
        *at = *at == '_' ? '-' : *at;
    return g_string_free(text, FALSE);
}

char *
lh_remedies_options(const LhRemedies *r)
{
    GString *text = g_string_new(NULL);
    LhRemedies part;

    for (int option = 0; option < LH_REMEDY_OPTIONS; option++) {
        g_autofree char *said = NULL;

        if (!lh_remedies_part(r, (LhRemedyOption)option, &part))
            continue;
        said = option_text(r, (LhRemedyOption)option);
        g_string_append_printf(text, "%s%s", text->len > 0 ? " " : "", said);
    }
    return g_string_free(text, FALSE);
}

/* ---- for people ---- */

static const char *const descriptions[LH_REMEDY_OPTIONS] = {
    [LH_REMEDY_LOSS] = "loss",           [LH_REMEDY_TILED_MLP] = "MLP tiled",
    [LH_REMEDY_MODULES] = "recomputed",  [LH_REMEDY_METHOD] = "recomputed",
    [LH_REMEDY_OFFLOAD] = "offloaded",   [LH_REMEDY_MOMENTS] = "moments",
    [LH_REMEDY_PARAMS] = "main weights", [LH_REMEDY_GRADS] = "gradients",
};

char *
lh_remedies_text(const LhRemedies *r)
{
    GString *text = g_string_new(NULL);

    for (int option = 0; option < LH_REMEDY_OPTIONS; option++) {
        g_autofree char *value = lh_remedies_value(r, (LhRemedyOption)option);

        if (value == NULL)
            continue;
        g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : "", descriptions[option]);
        if (option == LH_REMEDY_OFFLOAD)
            g_string_append_printf(text, " %s layer%s", value, r->offload == 1 ? "" : "s");
        else if (option == LH_REMEDY_METHOD)
            g_string_append_printf(text, " layers %s %u", value, r->layers);
        else if (option != LH_REMEDY_TILED_MLP)
            g_string_append_printf(text, " %s", value);
    }
    return g_string_free(text, FALSE);
}

/* ---- in the framework's words ---- */

/* The framework's words for an option. Caller frees. */
static char *
option_words(const LhRemedies *r, LhRemedyOption option, const LhFramework *framework)
{
    const bool list = option == LH_REMEDY_MODULES || option == LH_REMEDY_OFFLOAD;
    g_autofree char *value = lh_remedies_value(r, option);
    const LhFrameworkRemedy *known =
        lh_framework_remedy(framework->remedies, option, list ? NULL : value);
    g_auto(GStrv) parts = known != NULL ? g_strsplit(known->words, "{}", 2) : NULL;
    g_autofree char *number = NULL;

    if (known == NULL)
        return option_text(r, option);
    if (parts[1] == NULL)
        return g_strdup(known->words);
    number = option == LH_REMEDY_METHOD    ? g_strdup_printf("%u", r->layers)
             : option == LH_REMEDY_MODULES ? lh_recompute_text(r->modules, " ")
                                           : g_strdup(value);
    return g_strconcat(parts[0], number, parts[1], NULL);
}

char *
lh_remedies_words(const LhRemedies *r, const LhFramework *framework)
{
    GString *text = g_string_new(NULL);
    LhRemedies part;

    for (int option = 0; option < LH_REMEDY_OPTIONS; option++) {
        g_autofree char *words = NULL;

        if (!lh_remedies_part(r, (LhRemedyOption)option, &part))
            continue;
        words = option_words(r, (LhRemedyOption)option, framework);
        g_string_append_printf(text, "%s%s", text->len > 0 ? "; " : "", words);
    }
    return g_string_free(text, FALSE);
}

/* ---- back from options ---- */

static int
index_of(const char *const *names, const char *name)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return -1;
}

/* Reads a number from 1 to 65534. */
static bool
read_layers(const char *text, uint16_t *layers)
{
    guint64 number;

    if (!g_ascii_string_to_unsigned(text, 10, 1, UINT16_MAX - 1, &number, NULL))
        return false;
    *layers = (uint16_t)number;
    return true;
}

static bool
read_value(const char *option, const char *value, LhRemedies *r)
{
    static const struct {
        const char *option;
        const char *const *names;
        size_t offset;
    } choices[] = {
        { "loss", lh_loss_names, offsetof(LhRemedies, loss) },
        { "recompute-method", lh_recompute_method_names, offsetof(LhRemedies, method) },
        { "exp-avg-dtype", lh_exp_avg_names, offsetof(LhRemedies, moments) },
        { "main-params-dtype", lh_main_params_names, offsetof(LhRemedies, params) },
        { "main-grads-dtype", lh_dtype_names, offsetof(LhRemedies, grads) },
    };
    uint32_t modules;

    for (size_t i = 0; i < G_N_ELEMENTS(choices); i++) {
        if (strcmp(option, choices[i].option) == 0) {
            ((uint8_t *)r)[choices[i].offset] = (uint8_t)(index_of(choices[i].names, value) + 1);
            return ((uint8_t *)r)[choices[i].offset] != 0;
        }
    }
    if (strcmp(option, "tiled-mlp") == 0)
        return (r->tiled = strcmp(value, "auto") == 0) != 0;
    if (strcmp(option, "recompute-num-layers") == 0)
        return read_layers(value, &r->layers);
    if (strcmp(option, "recompute-modules") == 0 && lh_recompute_parse(value, &modules, NULL))
        return (r->modules = (uint8_t)modules) != 0;
    if (strcmp(option, "cpu-offloading-num-layers") != 0)
        return false;
    if (strcmp(value, "all") == 0)
        r->offload = LH_REMEDIES_ALL_LAYERS;
    return r->offload != 0 || read_layers(value, &r->offload);
}

bool
lh_remedies_parse(const char *text, LhRemedies *r)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    const guint count = g_strv_length(words);

    *r = (LhRemedies){ 0 };
    for (guint i = 0; i + 1 < count; i += 2) {
        if (!g_str_has_prefix(words[i], "--") ||
            !read_value(words[i] + strlen("--"), words[i + 1], r))
            return false;
    }
    return count % 2 == 0 && (r->method == 0) == (r->layers == 0);
}
