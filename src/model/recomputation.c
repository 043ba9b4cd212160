/* SPDX-License-Identifier: Apache-2.0 */
#include "model/recomputation.h"

#include "base/error.h"

#include <string.h>

const char *const lh_recompute_module_names[] = { "core_attn",   "layernorm", "mlp",
                                                  "moe",         "moe_act",   "shared_experts",
                                                  "mla_up_proj", NULL };
const char *const lh_recompute_method_names[] = { "block", "uniform", "every", NULL };

G_STATIC_ASSERT(G_N_ELEMENTS(lh_recompute_module_names) == LH_RECOMPUTE_MODULES + 1);
G_STATIC_ASSERT(G_N_ELEMENTS(lh_recompute_method_names) == LH_RECOMPUTE_METHODS + 1);

static bool
refuse_word(const char *word, GError **error)
{
    const char *nearest = lh_nearest_word(word, lh_recompute_module_names);
    g_autofree char *all = g_strjoinv(", ", (char **)lh_recompute_module_names);

    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "found \"%.40s\"; allowed: %s%s%s%s", word, all,
                nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                nearest != NULL ? "?" : "");
    return false;
}

bool
lh_recompute_parse(const char *text, uint32_t *modules, GError **error)
{
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    uint32_t found = 0;

    if (words[0] == NULL)
        return refuse_word("", error);
    for (guint i = 0; words[i] != NULL; i++) {
        uint32_t module = 0;

        g_strstrip(words[i]);
        while (module < LH_RECOMPUTE_MODULES &&
               strcmp(words[i], lh_recompute_module_names[module]) != 0)
            module++;
        if (module == LH_RECOMPUTE_MODULES)
            return refuse_word(words[i], error);
        if ((found >> module & 1) != 0) {
            g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "\"%s\" is named twice", words[i]);
            return false;
        }
        found |= UINT32_C(1) << module;
    }
    *modules = found;
    return true;
}

char *
lh_recompute_text(uint32_t modules, const char *between)
{
    GString *text = g_string_new(NULL);

    for (uint32_t module = 0; module < LH_RECOMPUTE_MODULES; module++) {
        if ((modules >> module & 1) != 0)
            g_string_append_printf(text, "%s%s", text->len > 0 ? between : "",
                                   lh_recompute_module_names[module]);
    }
    return g_string_free(text, FALSE);
}
