/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/common/published_model.h"

#include "base/files/data_files.h"

#include <string.h>

/* Published models with the shape of another one. */
static const struct {
    const char *name, *model;
} other_names[] = {
    { "llama-2-7b", "llama-7b" },          { "llama-2-13b", "llama-13b" },
    { "llama-3.1-8b", "llama-3-8b" },      { "llama-3.1-70b", "llama-3-70b" },
    { "llama-3.3-70b", "llama-3-70b" },    { "qwen3-235b-a22b", "qwen3-235b" },
    { "deepseek-v3-base", "deepseek-v3" }, { "deepseek-r1", "deepseek-v3" },
};

char *
lh_config_model_of(const char *published)
{
    static const char *const ends[] = { "-hf",   "-2507", "-instruct", "-thinking",
                                        "-chat", "-base", "-v0.1",     NULL };
    const char *slash = strrchr(published, '/');
    g_autofree char *name = g_ascii_strdown(slash != NULL ? slash + 1 : published, -1);
    const char *from = g_str_has_prefix(name, "meta-") ? name + strlen("meta-") : name;
    g_autofree char *path = NULL;

    for (guint i = 0; ends[i] != NULL; i++) {
        if (g_str_has_suffix(name, ends[i]))
            name[strlen(name) - strlen(ends[i])] = '\0';
    }
    for (guint i = 0; i < G_N_ELEMENTS(other_names); i++) {
        if (strcmp(from, other_names[i].name) == 0)
            from = other_names[i].model;
    }
    if (from[0] == '\0' || strchr(from, '.') == from)
        return NULL;
    path = lh_data_find("models", from, NULL);
    return path != NULL ? g_strdup(from) : NULL;
}
