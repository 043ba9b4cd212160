/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of commands and shared functions.
 */
#include "cli/command.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/files/output.h"
#include "cli/saved.h"
#include "report/text/describe_config.h"
#include "scenario/schedule_pairs.h"

#include <stdio.h>
#include <string.h>

#define LH_COMMAND(name) extern const LhCommand lh_command_##name;
#include "commands.def"
#undef LH_COMMAND

const LhCommand *const lh_commands[] = {
#define LH_COMMAND(name) &lh_command_##name,
#include "commands.def"
#undef LH_COMMAND
    NULL,
};

const LhCommand *
lh_command_find(const char *name, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autofree char *all = NULL;
    const char *near;

    for (guint i = 0; lh_commands[i] != NULL; i++) {
        if (strcmp(lh_commands[i]->name, name) == 0)
            return lh_commands[i];
        g_ptr_array_add(names, (gpointer)lh_commands[i]->name);
    }
    g_ptr_array_add(names, NULL);
    near = lh_nearest_word(name, (const char *const *)names->pdata);
    all = g_strjoinv(", ", (char **)names->pdata);
    if (near != NULL)
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "unknown command \"%s\"; did you mean %s?",
                    name, near);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "unknown command \"%s\"; known: %s", name,
                    all);
    return NULL;
}

int
lh_answer_status(LhAnswer answer, const GError *error)
{
    static const int statuses[] = { [LH_ANSWER_YES] = 0,
                                    [LH_ANSWER_NO] = LH_ERROR_NO,
                                    [LH_ANSWER_PARTIAL] = LH_ERROR_INTERRUPTED };

    g_assert((answer == LH_ANSWER_FAILED) == (error != NULL));
    if (error == NULL)
        return statuses[answer];
    return error->domain == LH_ERROR ? error->code : LH_ERROR_RUNTIME;
}

bool
lh_command_is_file(const char *path)
{
    return path != NULL && strcmp(path, "-") != 0;
}

char *
lh_command_base_name(const char *path, const char *fallback)
{
    char *base = lh_command_is_file(path) ? g_path_get_basename(path) : g_strdup(fallback);
    char *dot = strrchr(base, '.');

    if (dot != NULL && dot != base)
        *dot = '\0';
    return base;
}

bool
lh_command_write(const LhOutputOptions *to, const GString *text, GError **error)
{
    if (to->file == NULL || strcmp(to->file, "-") == 0)
        return lh_output_stdout(text->str, text->len, error);
    return lh_output_file(to->file, text->str, text->len, error);
}

bool
lh_command_finish(const LhCommandLine *line, const LhOutputOptions *to, const GString *text,
                  GError **error)
{
    return line->saved != NULL ? lh_saved_check(line->saved, text, error)
                               : lh_command_write(to, text, error);
}

bool
lh_command_check_program(const LhCommandLine *line, GError **error)
{
    const LhCommand *command = line->command;
    const LhScenario *s = line->scenario;
    g_autoptr(GString) names = g_string_new(s->schedule_file);
    guint schedules;

    if (!lh_pairs_join(line->scenario, error))
        return false;
    schedules = s->schedule == NULL ? 0 : s->schedule->len;
    if (schedules + (s->schedule_file != NULL) == 1)
        return true;
    for (guint i = 0; i < schedules; i++)
        g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "",
                               (const char *)g_ptr_array_index(s->schedule, i));
    if (names->len == 0)
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "%s: missing schedule: give %s; see longhaul list schedules", command->name,
                    command->arguments_max > 0 ? "its name" : "--schedule NAME");
    else
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "%s takes one schedule or schedule file, found %u: %s; name one", command->name,
                    schedules + (s->schedule_file != NULL), names->str);
    return false;
}

LhStamp
lh_command_stamp(const LhCommandLine *line)
{
    return (LhStamp){
        .argv = line->argv,
        .scenario = line->scenario,
        .config = line->config,
        .options = line->command->options,
        .values = line->options,
        .not_asked = LH_FIELD_WRITTEN | LH_FIELD_UPDATED | LH_COMMAND_CONFIG | LH_COMMAND_HOW |
                     LH_COMMAND_OWN | LH_COMMAND_SHOWN,
    };
}

void
lh_command_warn_config(const LhCommandLine *line)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (line->config == NULL)
        return;
    lh_describe_config(line->config, text);
    fputs(text->str, stderr);
}

bool
lh_command_check_provenance(bool provenance, int format, GError **error)
{
    if (!provenance || format != LH_FORMAT_CSV)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "--provenance adds a table, and --format csv has room for one only; allowed with "
                "it: table, md, and json, which always has the constants");
    return false;
}

bool
lh_command_kernels(const char *name, const LhRunDevice *device, uint32_t *kernel_set,
                   GError **error)
{
    g_autofree char *escaped = NULL;
    g_autofree char *all = NULL;

    *kernel_set = 0;
    if (name == NULL)
        return true;
    for (uint32_t i = 0; device->kernel_sets[i] != NULL; i++) {
        if (strcmp(device->kernel_sets[i], name) == 0) {
            *kernel_set = i;
            return true;
        }
    }
    escaped = g_strescape(name, NULL);
    all = g_strjoinv(", ", (char **)device->kernel_sets);
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "--kernels: \"%.60s\" is not allowed; allowed: %s",
                escaped, all);
    return false;
}

bool
lh_command_share(const char *option, const char *text, bool zero, double *share, GError **error)
{
    char *end = NULL;
    double value = g_ascii_strtod(text, &end);

    if (end != text && *end == '%') {
        value /= 100;
        end++;
    }
    if (end == text || *end != '\0' || !(zero ? value >= 0 : value > 0) || value > 1) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "%s: \"%s\" is not a share; allowed: %s up to 100%%, such as 10%% or 0.1",
                    option, text, zero ? "0%" : "more than 0%");
        return false;
    }
    *share = value;
    return true;
}
