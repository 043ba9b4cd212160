/*
 * The table of commands, and what they share.
 */
#include "cli/command.h"

#include "base/error.h"
#include "report/output.h"

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
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "there is no command \"%s\"; did you mean %s?",
                    name, near);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "there is no command \"%s\"; commands: %s",
                    name, all);
    return NULL;
}

LhFormat
lh_cli_format(const LhCli *cli)
{
    return cli->format < 0 ? LH_FORMAT_TABLE : (LhFormat)cli->format;
}

bool
lh_cli_write(const LhCli *cli, const GString *text, GError **error)
{
    if (cli->output == NULL || strcmp(cli->output, "-") == 0)
        return lh_output_stdout(text->str, text->len, error);
    return lh_output_file(cli->output, text->str, text->len, error);
}

LhStamp
lh_cli_stamp(const LhCli *cli)
{
    return (LhStamp){ .argv = cli->argv };
}
