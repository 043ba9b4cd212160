/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/common/config_names.h"

#include <string.h>

static const char *
last_word(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot != NULL ? dot + 1 : path;
}

/* The name for a path with this ending; NULL: no alias. */
static const char *
name_by_alias(const LhConfigSystem *system, const char *path)
{
    for (const LhConfigAlias *alias = system->aliases; alias->path != NULL; alias++) {
        const char *end = path + strlen(path) - MIN(strlen(path), strlen(alias->path));

        if (strcmp(end, alias->path) == 0 && (end == path || end[-1] == '.'))
            return alias->name;
    }
    return NULL;
}

char *
lh_config_name_of(const LhConfigSystem *system, const char *path)
{
    const bool whole =
        !system->last_word || system->aliases != NULL || g_str_has_prefix(path, LH_CONFIG_BESIDE);
    const char *last = whole ? path : last_word(path);
    GString *name = g_string_new(NULL);

    for (const char *at = last + strspn(last, "-"); *at != '\0'; at++) {
        if (*at == '[' && at[1 + strspn(at + 1, "0123456789")] == ']')
            at += 1 + strspn(at + 1, "0123456789");
        else
            g_string_append_c(name, *at == '_' ? '-' : g_ascii_tolower(*at));
    }
    if (system->aliases != NULL && !g_str_has_prefix(path, LH_CONFIG_BESIDE)) {
        const char *known = name_by_alias(system, name->str);
        char *found = g_strdup(known != NULL       ? known
                               : system->last_word ? last_word(name->str)
                                                   : name->str);

        g_string_free(name, TRUE);
        return found;
    }
    return g_string_free(name, FALSE);
}

const char *
lh_config_own_path(const LhConfigSystem *system, const char *path)
{
    for (const LhConfigAlias *alias = system->aliases; alias != NULL && alias->path != NULL;
         alias++) {
        if (strcmp(alias->name, path) == 0)
            return alias->path;
    }
    return path;
}

const LhConfigKey *
lh_config_find_key(const LhConfigSystem *system, const char *name)
{
    for (const LhConfigKey *key = system->keys; key->name != NULL; key++) {
        if (strcmp(key->name, name) == 0)
            return key;
    }
    return system->base != NULL ? lh_config_find_key(system->base, name) : NULL;
}
