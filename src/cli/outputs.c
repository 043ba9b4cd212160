/*
 * Outputs against inputs, and against each other. Which options name outputs is a flag of their
 * fields; which files a scenario reads is a list of fields here.
 */
#include "cli/outputs.h"

#include "base/data.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/output.h"
#include "plan/setting.h"
#include "plan/setup.h"
#include "report/figure.h"
#include "sim/network/topology.h"

#include <string.h>

/* A file that is read or written. */
typedef struct {
    char *word; /* what messages call it: an option, "the scenario" */
    char *path;
} File;

static void
file_free(gpointer data)
{
    File *file = data;

    g_free(file->word);
    g_free(file->path);
    g_free(file);
}

static GPtrArray *
new_files(void)
{
    return g_ptr_array_new_with_free_func(file_free);
}

/* Takes @path, which may be NULL. */
static void
add_file(GPtrArray *files, const char *word, char *path)
{
    File *file;

    if (path == NULL)
        return;
    file = g_new(File, 1);
    *file = (File){ g_strdup(word), path };
    g_ptr_array_add(files, file);
}

/* --- what is read -------------------------------------------------------------------------------
 */

/* The cluster's file, and that of its devices, if it can be read: what is wrong with it, others
 * say. */
static void
add_cluster(GPtrArray *files, const char *cluster)
{
    const char *colon = strrchr(cluster, ':');
    g_autofree char *name =
        colon != NULL ? g_strndup(cluster, (gsize)(colon - cluster)) : g_strdup(cluster);
    g_autoptr(LhTopology) topology = lh_topology_load(name, NULL);

    add_file(files, "the cluster's file", lh_data_find("topologies", name, NULL));
    if (topology != NULL)
        add_file(files, "the device's file", lh_data_find("devices", topology->device_name, NULL));
}

/* What the command's own options read. */
static void
add_read(GPtrArray *files, const LhCommandLine *line)
{
    for (const LhField *f = line->command->options; f != NULL && f->name != NULL; f++) {
        g_autofree char *option = lh_setting_option(f);
        g_autofree char *word = g_strdup_printf("the file of %s", option);
        const void *value = (const char *)line->options + f->offset;
        g_autoptr(GPtrArray) texts = NULL;

        if ((f->flags & LH_COMMAND_INPUT) == 0 || *(const void *const *)value == NULL)
            continue;
        texts = lh_setting_texts(f, line->options);
        for (guint i = 0; i < texts->len; i++)
            add_file(files, word, g_strdup(g_ptr_array_index(texts, i)));
    }
}

static GPtrArray *
find_inputs(const LhCommandLine *line)
{
    const LhScenario *s = line->scenario;
    GPtrArray *files = new_files();

    add_read(files, line);
    if (s == NULL)
        return files;
    add_file(files, "the scenario", g_strdup(s->path));
    add_file(files, "the file of --schedule-file", g_strdup(s->schedule_file));
    add_file(files, "the file of --document-lengths", g_strdup(s->document_lengths));
    add_file(files, "the file of --profile", g_strdup(s->profile));
    add_file(files, "the file of --from-config", g_strdup(s->model_file));
    add_file(files, "the model's file",
             lh_data_find("models", s->model != NULL ? s->model : LH_DEFAULT_MODEL, NULL));
    add_cluster(files, s->cluster != NULL ? s->cluster : LH_DEFAULT_CLUSTER);
    return files;
}

/* --- what is written ----------------------------------------------------------------------------
 */

/* Whether the scenario's answer goes to standard output. */
static bool
is_printed(const char *path)
{
    return path == NULL || strcmp(path, "-") == 0;
}

static bool
find_outputs(const LhCommand *command, const LhCommandLine *line, GPtrArray *files, bool *printed,
             GError **error)
{
    for (const LhField *f = command->options; f != NULL && f->name != NULL; f++) {
        g_autofree char *option = lh_setting_option(f);
        const char *path;

        if ((f->flags & (LH_COMMAND_OUTPUT | LH_COMMAND_FIGURE)) == 0)
            continue;
        path = *(char *const *)(const void *)((const char *)line->options + f->offset);
        if (strcmp(f->name, "output") == 0)
            *printed = is_printed(path);
        if (path == NULL || (strcmp(f->name, "output") == 0 && *printed))
            continue;
        add_file(files, option, g_strdup(path));
        if ((f->flags & LH_COMMAND_FIGURE) != 0 && !lh_figure_check_path(path, error))
            return false;
        if ((f->flags & (LH_COMMAND_FIGURE | LH_COMMAND_MAYBE_FIGURE)) != 0 &&
            lh_figure_has_path(path))
            add_file(files, "the figure's script", lh_figure_script_path(path));
    }
    return true;
}

static bool
refuse_overwrite(const File *file, const char *what, GError **error)
{
    g_autofree char *shown = lh_escaped_line(file->path);

    g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "%s %s would overwrite %s; give it another name",
                file->word, shown, what);
    return false;
}

/* Whether @file is neither an input nor one of the first @before outputs. */
static bool
check_one(const File *file, const GPtrArray *inputs, const GPtrArray *outputs, guint before,
          GError **error)
{
    for (guint i = 0; i < inputs->len; i++) {
        const File *input = g_ptr_array_index(inputs, i);

        if (lh_output_same(file->path, input->path))
            return refuse_overwrite(file, input->word, error);
    }
    for (guint i = 0; i < before; i++) {
        const File *other = g_ptr_array_index(outputs, i);
        g_autofree char *what = g_strdup_printf("the file of %s", other->word);

        if (lh_output_same(file->path, other->path))
            return refuse_overwrite(file, g_str_has_prefix(other->word, "--") ? what : other->word,
                                    error);
    }
    return true;
}

bool
lh_outputs_check(const LhCommand *command, const LhCommandLine *line, GError **error)
{
    g_autoptr(GPtrArray) inputs = NULL;
    g_autoptr(GPtrArray) outputs = new_files();
    bool printed = true;

    if (!find_outputs(command, line, outputs, &printed, error))
        return false;
    if (outputs->len == 0)
        return true;
    inputs = find_inputs(line);
    for (guint i = 0; i < outputs->len; i++) {
        const File *file = g_ptr_array_index(outputs, i);

        if (!check_one(file, inputs, outputs, i, error))
            return false;
        if (printed && lh_output_is_stdout(file->path))
            return refuse_overwrite(file, "what goes to standard output", error);
        if (!lh_output_check(file->path, error))
            return false;
    }
    return true;
}
