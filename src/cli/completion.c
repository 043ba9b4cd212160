/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion scripts. Options and their choices are written out; names of schedules, clusters and
 * models are listed by the program itself (longhaul list KIND --format names), so that added data
 * files are completed as well.
 */
#include "cli/completion.h"
#include "cli/options.h"
#include "scenario/setting.h"

#include <string.h>

const char *const lh_shell_names[] = { "bash", "zsh", "fish", NULL };

/* A command and the script being written for it. */
typedef struct {
    GString *out;
    const LhCommand *command;
} Script;

static bool
names_files(const char *names)
{
    return strcmp(names, "files") == 0;
}

/* Escapes "'", and puts a backslash before the characters of @special, which zsh specifications
 * treat specially. Caller frees. */
static char *
escape(const char *text, const char *special)
{
    GString *out = g_string_new(NULL);

    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\'')
            g_string_append(out, "'\\'");
        else if (strchr(special, *c) != NULL)
            g_string_append_c(out, '\\');
        g_string_append_c(out, *c);
    }
    return g_string_free(out, FALSE);
}

/* "table json csv"; NULL for a field without choices. Caller frees. */
static char *
choices_of(const LhField *field)
{
    return field->type == LH_FIELD_CHOICE ? g_strjoinv(" ", (char **)field->choices) : NULL;
}

/* Kinds of names that a command's arguments may be: "schedules scenarios". Caller frees. */
static char *
arguments_of(const LhCommand *command)
{
    const bool scenarios = command->scenario && !command->no_file;

    return g_strdup_printf("%s%s%s", command->names != NULL ? command->names : "",
                           command->names != NULL && scenarios ? " " : "",
                           scenarios ? "scenarios" : "");
}

/* --- bash ---------------------------------------------------------------------------------------
 */

static void
bash_option_word(const LhField *field, bool scenario, void *data)
{
    const Script *w = data;
    g_autofree char *option = lh_setting_option(field);

    (void)scenario;
    g_string_append_printf(w->out, " %s", option);
}

static void
bash_values(const LhField *field, bool scenario, void *data)
{
    const Script *w = data;
    g_autofree char *option = lh_setting_option(field);
    g_autofree char *choices = choices_of(field);

    (void)scenario;
    if (lh_setting_is_flag(field))
        return;
    g_string_append(w->out, "    ");
    if (lh_options_letter(field) != 0)
        g_string_append_printf(w->out, "%s:-%c | ", w->command->name, lh_options_letter(field));
    g_string_append_printf(w->out, "%s:%s)", w->command->name, option);
    if (choices != NULL)
        g_string_append_printf(w->out, " words='%s'", choices);
    if (field->names != NULL && !names_files(field->names))
        g_string_append_printf(w->out, " kinds=%s", field->names);
    if (lh_options_use(field) != LH_FILE_USE_NONE)
        g_string_append(w->out, " files=1");
    g_string_append(w->out, " ;;\n");
}

static void
bash_command(Script *w)
{
    g_autofree char *arguments = arguments_of(w->command);

    lh_options_each(w->command, bash_values, w);
    g_string_append_printf(w->out, "    %s:*) options='--help", w->command->name);
    lh_options_each(w->command, bash_option_word, w);
    g_string_append_printf(w->out, "' kinds='%s'%s ;;\n", arguments,
                           w->command->scenario && !w->command->no_file ? " files=1" : "");
}

static void
write_bash(GString *out)
{
    g_string_append(
        out,
        "# bash completion of longhaul; made by: longhaul help completion bash\n"
        "_longhaul()\n{\n"
        "    local program=$1 current=${COMP_WORDS[COMP_CWORD]}\n"
        "    local previous=${COMP_WORDS[COMP_CWORD-1]} words='' options='' kinds='' files=''\n"
        "    local kind\n"
        "    # bash takes --option=value for three words.\n"
        "    if [ \"$current\" = = ]; then\n"
        "        current=''\n"
        "    elif [ \"$previous\" = = ]; then\n"
        "        previous=${COMP_WORDS[COMP_CWORD-2]}\n"
        "    fi\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        previous=\n"
        "    fi\n"
        "    case ${COMP_WORDS[1]}:$previous in\n"
        "    help:completion) words='");
    for (const char *const *shell = lh_shell_names; *shell != NULL; shell++)
        g_string_append_printf(out, "%s%s", shell == lh_shell_names ? "" : " ", *shell);
    g_string_append(out, "' ;;\n");
    for (guint i = 0; lh_commands[i] != NULL; i++) {
        Script w = { out, lh_commands[i] };

        bash_command(&w);
    }
    g_string_append(out, "    esac\n"
                         "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                         "        options='--help --version' kinds=commands files=''\n"
                         "    fi\n"
                         "    case $current in\n"
                         "    -*) words=$options kinds='' files='' ;;\n"
                         "    esac\n"
                         "    for kind in $kinds; do\n"
                         "        words+=\" $(\"$program\" list \"$kind\" --format names "
                         "2>/dev/null)\"\n"
                         "    done\n"
                         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\"\n"
                         "        [ -z \"$files\" ] || compgen -f -- \"$current\")\n"
                         "    [ -z \"$files\" ] || compopt -o filenames 2>/dev/null\n"
                         "}\n"
                         "complete -F _longhaul longhaul\n");
}

/* --- zsh ----------------------------------------------------------------------------------------
 */

/* Appends the action that completes a value: ":(a b)", ":_files" or a call of our own function. */
static void
zsh_action(const LhField *field, GString *out)
{
    g_autofree char *choices = choices_of(field);

    if (choices != NULL)
        g_string_append_printf(out, "(%s)", choices);
    else if (field->names != NULL && names_files(field->names))
        g_string_append(out, "_files");
    else if (field->names != NULL)
        g_string_append_printf(out, "_longhaul_names %s", field->names);
}

static void
zsh_option(const LhField *field, bool scenario, void *data)
{
    const Script *w = data;
    g_autofree char *option = lh_setting_option(field);
    g_autofree char *placeholder = lh_setting_placeholder(field);
    g_autofree char *text = lh_options_description(w->command, field);
    g_autofree char *description = escape(text, "[]\\:");
    g_autofree char *value = escape(placeholder, "[]\\:");
    const bool flag = lh_setting_is_flag(field);

    (void)scenario;
    g_string_append_printf(w->out, "        '%s", lh_options_is_list(w->command, field) ? "*" : "");
    g_string_append_printf(w->out, "%s%s[%s]", option, flag ? "" : "=", description);
    if (!flag) {
        g_string_append_printf(w->out, ":%s:", value);
        zsh_action(field, w->out);
    }
    g_string_append(w->out, "' \\\n");
    if (lh_options_letter(field) != 0) {
        g_string_append_printf(w->out, "        '-%c[%s]:%s:", lh_options_letter(field),
                               description, value);
        zsh_action(field, w->out);
        g_string_append(w->out, "' \\\n");
    }
}

static void
zsh_command(Script *w)
{
    g_autofree char *arguments = arguments_of(w->command);

    g_string_append_printf(w->out, "    %s)\n        _arguments -s \\\n", w->command->name);
    lh_options_each(w->command, zsh_option, w);
    g_string_append(w->out, "        '(-h --help)'{-h,--help}'[Print the help.]'");
    if (arguments[0] != '\0')
        g_string_append_printf(w->out, " \\\n        '*:argument:_longhaul_names %s'", arguments);
    g_string_append(w->out, "\n        ;;\n");
}

static void
write_zsh(GString *out)
{
    g_autofree char *shells = g_strjoinv(" ", (char **)(void *)lh_shell_names);

    g_string_append_printf(
        out,
        "#compdef longhaul\n"
        "# zsh completion of longhaul; made by: longhaul help completion zsh\n"
        "_longhaul_names() {\n"
        "    local kind\n"
        "    local -a names\n"
        "    for kind in $@; do\n"
        "        names+=(${(f)\"$(_call_program names $longhaul_program list $kind --format names "
        "2>/dev/null)\"})\n"
        "        case $kind in\n"
        "        (topologies|devices|models|frameworks|scenarios) _files ;;\n"
        "        esac\n"
        "    done\n"
        "    [[ ${words[1]} = help && ${words[2]} = completion ]] && names=(%s)\n"
        "    compadd -a names\n"
        "}\n\n"
        "_longhaul() {\n"
        "    local longhaul_program=$words[1]\n"
        "    if (( CURRENT == 2 )); then\n"
        "        _longhaul_names commands\n"
        "        compadd -- --help --version\n"
        "        return\n"
        "    fi\n"
        "    local command=$words[2]\n"
        "    shift words\n"
        "    (( CURRENT-- ))\n"
        "    case $command in\n",
        shells);
    for (guint i = 0; lh_commands[i] != NULL; i++) {
        Script w = { out, lh_commands[i] };

        zsh_command(&w);
    }
    g_string_append(out, "    esac\n}\n\n"
                         "if [[ $funcstack[1] = _longhaul ]]; then\n"
                         "    _longhaul \"$@\"\n"
                         "else\n"
                         "    compdef _longhaul longhaul\n"
                         "fi\n");
}

/* --- fish ---------------------------------------------------------------------------------------
 */

static void
fish_option(const LhField *field, bool scenario, void *data)
{
    const Script *w = data;
    g_autofree char *option = lh_setting_option(field);
    g_autofree char *choices = choices_of(field);
    g_autofree char *text = lh_options_description(w->command, field);
    g_autofree char *description = escape(text, "\\");

    (void)scenario;
    g_string_append_printf(w->out, "complete -c longhaul -n '__longhaul_command %s' -l %s",
                           w->command->name, option + strlen("--"));
    if (lh_options_letter(field) != 0)
        g_string_append_printf(w->out, " -s %c", lh_options_letter(field));
    if (!lh_setting_is_flag(field))
        g_string_append(w->out, lh_options_use(field) != LH_FILE_USE_NONE ? " -r -F" : " -x");
    if (choices != NULL)
        g_string_append_printf(w->out, " -a '%s'", choices);
    else if (field->names != NULL && !names_files(field->names))
        g_string_append_printf(w->out, " -a '(__longhaul_names %s)'", field->names);
    g_string_append_printf(w->out, " -d '%s'\n", description);
}

static void
fish_command(Script *w)
{
    g_autofree char *arguments = arguments_of(w->command);
    g_autofree char *summary = escape(w->command->summary, "\\");

    g_string_append_printf(w->out, "complete -c longhaul -n __longhaul_no_command -a %s -d '%s'\n",
                           w->command->name, summary);
    if (arguments[0] != '\0')
        g_string_append_printf(
            w->out,
            "complete -c longhaul -n '__longhaul_command %s'%s -a '(__longhaul_names %s)'\n",
            w->command->name, w->command->scenario && !w->command->no_file ? " -F" : "", arguments);
    lh_options_each(w->command, fish_option, w);
}

static void
write_fish(GString *out)
{
    g_autofree char *shells = g_strjoinv(" ", (char **)(void *)lh_shell_names);

    g_string_append_printf(
        out,
        "# fish completion of longhaul; made by: longhaul help completion fish\n"
        "function __longhaul_no_command\n"
        "    test (count (commandline -opc)) -eq 1\n"
        "end\n"
        "function __longhaul_command\n"
        "    set -l words (commandline -opc)\n"
        "    test (count $words) -gt 1; and test $words[2] = $argv[1]\n"
        "end\n"
        "function __longhaul_names\n"
        "    set -l words (commandline -opc)\n"
        "    if test \"$words[2..3]\" = 'help completion'\n"
        "        string split ' ' '%s'\n"
        "        return\n"
        "    end\n"
        "    for kind in $argv\n"
        "        $words[1] list $kind --format names 2>/dev/null\n"
        "    end\n"
        "end\n"
        "complete -c longhaul -f\n"
        "complete -c longhaul -s h -l help -d 'Print the help.'\n"
        "complete -c longhaul -n __longhaul_no_command -s V -l version -d 'Print the versions.'\n",
        shells);
    for (guint i = 0; lh_commands[i] != NULL; i++) {
        Script w = { out, lh_commands[i] };

        fish_command(&w);
    }
}

void
lh_help_completion(int shell, GString *out)
{
    static void (*const writers[])(GString * out) = { write_bash, write_zsh, write_fish };

    g_assert(shell >= 0 && (gsize)shell < G_N_ELEMENTS(writers));
    writers[shell](out);
}
