/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the data files that come with longhaul.
 */
#include "base/files/data_files.h"

#include "base/error.h"
#include "base/files/file_uses.h"
#include "config.h"

#include <stdbool.h>
#include <string.h>

/* Kinds of names, their folders, and their description in messages. */
static const struct {
    const char *names; /* as in `longhaul list` */
    const char *kind;
    const char *word;
} kinds[] = {
    { "topologies", "topologies", "the cluster's file" },
    { "devices", "devices", "the device's file" },
    { "models", "models", "the model's file" },
    { "frameworks", "frameworks", "the framework's file" },
    { "scenarios", "scenarios", "the scenario" },
    { "tables", "scenarios/papers", "the table's file" },
    { "checklists", "scenarios/checklists", "the checklist" },
};

const char *
lh_data_kind(const char *names)
{
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].names, names) == 0)
            return kinds[i].kind;
    }
    return NULL;
}

static bool
is_dir(const char *path)
{
    return g_file_test(path, G_FILE_TEST_IS_DIR);
}

char *
lh_data_dir(void)
{
    const char *chosen = g_getenv("LONGHAUL_DATA_DIR");
    g_autofree char *program = NULL;
    g_autofree char *program_dir = NULL;
    g_autofree char *beside = NULL;

    if (chosen != NULL && *chosen != '\0')
        return g_strdup(chosen);
    program = g_file_read_link("/proc/self/exe", NULL);
    if (program == NULL)
        return g_strdup(LH_DATA_DIR);
    if (*LH_SOURCE_DIR != '\0' && g_str_has_prefix(program, LH_BUILD_DIR "/") &&
        is_dir(LH_SOURCE_DIR))
        return g_strdup(LH_SOURCE_DIR);
    program_dir = g_path_get_dirname(program);
    beside = g_build_filename(program_dir, "..", "share", "longhaul", NULL);
    return is_dir(beside) ? g_canonicalize_filename(beside, NULL) : g_strdup(LH_DATA_DIR);
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **
lh_data_list(const char *kind)
{
    g_autofree char *root = lh_data_dir();
    g_autofree char *path = g_build_filename(root, kind, NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    const char *file;

    while (dir != NULL && (file = g_dir_read_name(dir)) != NULL) {
        if (g_str_has_suffix(file, ".json") && *file != '.')
            g_ptr_array_add(names, g_strndup(file, strlen(file) - strlen(".json")));
    }
    g_ptr_array_sort(names, compare_names);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_steal(names, NULL);
}

static char *
fail_not_found(const char *kind, const char *name, GError **error)
{
    g_autofree char *root = lh_data_dir();
    g_auto(GStrv) names = lh_data_list(kind);
    g_autofree char *listed = g_strjoinv(", ", names);
    g_autofree char *escaped = g_strescape(name, NULL);
    const char *nearest = lh_nearest_word(name, (const char *const *)names);
    g_autofree char *advice = NULL;

    if (nearest != NULL)
        advice = g_strdup_printf("did you mean \"%s\"? ", nearest);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "no file \"%.60s.json\" in %s/%s; %savailable: %s (a name with '/' or ending in "
                "\".json\" is a path)",
                escaped, root, kind, advice != NULL ? advice : "",
                *listed != '\0' ? listed : "none");
    return NULL;
}

static char *
find_path(const char *kind, const char *name, GError **error)
{
    g_autofree char *root = NULL;
    g_autofree char *file = NULL;
    g_autofree char *path = NULL;

    if (strchr(name, '/') != NULL || g_str_has_suffix(name, ".json"))
        return g_strdup(name);
    root = lh_data_dir();
    file = g_strconcat(name, ".json", NULL);
    path = g_build_filename(root, kind, file, NULL);
    if (*name == '\0' || !g_file_test(path, G_FILE_TEST_IS_REGULAR))
        return fail_not_found(kind, name, error);
    return g_steal_pointer(&path);
}

char *
lh_data_find(const char *kind, const char *name, GError **error)
{
    char *path = find_path(kind, name, error);

    for (guint i = 0; path != NULL && i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) == 0)
            lh_file_uses_name(path, kinds[i].word);
    }
    return path;
}
