/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that a command line reads and writes. The options' fields say which options name files and
 * how these are used (lh_options_use). Files named inside other files are registered when they are
 * opened (base/files/file_uses.h).
 */
#include "cli/outputs.h"

#include "base/files/data_files.h"
#include "base/files/file_uses.h"
#include "base/files/output.h"
#include "cli/options.h"
#include "report/draw/figure.h"
#include "scenario/setting.h"

#include <string.h>

#define STDOUT_PATH "/dev/stdout"

/* --- inputs -------------------------------------------------------------------------------------
 */

/* Returns the path of the file that @text names; @names is "files" or a kind of `longhaul list`.
 * NULL: not found, which is reported elsewhere. Caller frees. */
static char *
find_file(const char *names, const char *text)
{
    const char *kind = lh_data_kind(names);
    const char *nodes = strcmp(names, "topologies") == 0 ? strrchr(text, ':') : NULL;
    g_autofree char *name = nodes != NULL ? g_strndup(text, (gsize)(nodes - text)) : g_strdup(text);

    return kind == NULL ? g_steal_pointer(&name) : lh_data_find(kind, name, NULL);
}

static bool
take_read(const char *names, const GPtrArray *texts, const char *word, GError **error)
{
    for (guint i = 0; i < texts->len; i++) {
        g_autofree char *path = find_file(names, g_ptr_array_index(texts, i));

        if (path != NULL && !lh_file_uses_take(path, LH_FILE_USE_READ, word, error))
            return false;
    }
    return true;
}

/* Registers the files that the options @fields of @options read. */
static bool
take_fields(const LhField *fields, const void *options, GError **error)
{
    for (const LhField *f = fields; f != NULL && f->name != NULL; f++) {
        const void *value = (const char *)options + f->offset;
        g_autofree char *option = NULL;
        g_autoptr(GPtrArray) texts = NULL;

        if (lh_options_use(f) != LH_FILE_USE_READ || *(const void *const *)value == NULL)
            continue;
        option = lh_setting_option(f);
        texts = lh_setting_texts(f, options);
        if (!take_read(f->names, texts, option, error))
            return false;
    }
    return true;
}

/* Registers a scenario's files, with all values of its sweep. */
static bool
take_scenario(const LhScenario *s, GError **error)
{
    if (s->path != NULL && !lh_file_uses_take(s->path, LH_FILE_USE_READ, "the scenario", error))
        return false;
    for (guint i = 0; s->axes != NULL && i < s->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(s->axes, i);
        g_autofree char *option = lh_setting_option(axis->field);

        if (lh_options_use(axis->field) == LH_FILE_USE_READ &&
            !take_read(axis->field->names, axis->values, option, error))
            return false;
    }
    return take_fields(lh_scenario_options(), s, error);
}

bool
lh_inputs_check(const LhCommand *command, const LhCommandLine *line, GError **error)
{
    return (line->scenario == NULL || take_scenario(line->scenario, error)) &&
           take_fields(command->options, line->options, error) &&
           (line->arguments == NULL || lh_options_use_of(command->names) != LH_FILE_USE_READ ||
            take_read(command->names, line->arguments, "the argument", error));
}

/* --- outputs ------------------------------------------------------------------------------------
 */

static bool
take_written(const char *path, LhFileUse use, const char *word, GError **error)
{
    return lh_file_uses_take(path, use, word, error) && lh_output_check(path, error);
}

static bool
take_output(const LhField *field, const char *path, GError **error)
{
    const bool draws = (field->flags & (LH_COMMAND_FIGURE | LH_COMMAND_MAYBE_FIGURE)) != 0 &&
                       lh_figure_has_path(path);
    g_autofree char *option = lh_setting_option(field);
    g_autofree char *script = draws ? lh_figure_script_path(path) : NULL;

    return ((field->flags & LH_COMMAND_FIGURE) == 0 || lh_figure_check_path(path, error)) &&
           take_written(path, lh_options_use(field), option, error) &&
           (script == NULL ||
            take_written(script, LH_FILE_USE_WRITTEN, "the figure's script", error));
}

/* The path that @field of @options writes to; NULL: none, or standard output. */
static const char *
output_of(const LhField *field, const void *options)
{
    const char *path;

    if ((field->flags & (LH_FIELD_WRITTEN | LH_FIELD_UPDATED)) == 0)
        return NULL;
    path = *(char *const *)(const void *)((const char *)options + field->offset);
    return lh_options_is_output(field) && !lh_command_is_file(path) ? NULL : path;
}

/* Whether the result goes to standard output. */
static bool
is_printed(const LhCommand *command, const void *options)
{
    for (const LhField *f = command->options; f != NULL && f->name != NULL; f++) {
        if (lh_options_is_output(f))
            return output_of(f, options) == NULL;
    }
    return true;
}

/* Registers standard output if it is a file; a pipe has no use. */
static bool
take_stdout(bool printed, GError **error)
{
    return printed ? lh_file_uses_take(STDOUT_PATH, LH_FILE_USE_WRITTEN,
                                       "what goes to standard output", error)
                   : lh_file_uses_check_write(STDOUT_PATH, error);
}

bool
lh_outputs_check(const LhCommand *command, const LhCommandLine *line, GError **error)
{
    lh_file_uses_forget_outputs();
    if (!lh_inputs_check(command, line, error) ||
        !take_stdout(is_printed(command, line->options), error))
        return false;
    for (const LhField *f = command->options; f != NULL && f->name != NULL; f++) {
        const char *path = output_of(f, line->options);

        if (path != NULL && !take_output(f, path, error))
            return false;
    }
    return true;
}
