/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds scripts that commands run: the text after "bash -c", a here-document read by a shell or a
 * queue, a file that the script wrote, and what is sent to another host.
 */
#include "base/shell/shell_private.h"

#include <string.h>

static const char *const shells[] = { "bash", "sh", "dash", "ksh", "zsh", NULL };
static const char *const queues[] = { "sbatch", "qsub", "bsub", "msub", NULL };
static const char *const sources[] = { "source", ".", NULL };
/* Commands that run the command after their options. */
static const char *const launchers[] = {
    "srun",   "mpirun", "mpiexec", "nohup",       "exec",      "time",    "timeout", "env", "sudo",
    "docker", "podman", "enroot",  "singularity", "apptainer", "kubectl", "numactl", NULL
};

const char *
lh_shell_text_at(const GPtrArray *words, guint index)
{
    return index < words->len ? ((LhShellWord *)g_ptr_array_index(words, index))->text->str : "";
}

static bool
is_one_of(const GPtrArray *words, guint index, const char *const *names)
{
    g_autofree char *base = g_path_get_basename(lh_shell_text_at(words, index));

    return g_strv_contains(names, base);
}

static LhShellText *
script_of(const GPtrArray *words, guint index)
{
    return lh_shell_text_new(lh_shell_text_at(words, index), g_ptr_array_index(words, index));
}

/* Index of the first word after the options of the shell at @at. *@letter: whether an option
 * contains the letter ("-xec"). */
static guint
behind_options(const GPtrArray *words, guint at, char letter, bool *has)
{
    *has = false;
    for (at++; at < words->len; at++) {
        const char *text = lh_shell_text_at(words, at);

        if (strchr("-+", text[0]) == NULL || text[0] == '\0' || text[1] == '\0')
            break;
        if (g_str_has_prefix(text, "--"))
            continue;
        *has = *has || (text[0] == '-' && strchr(text, letter) != NULL);
        if (strchr("oO", text[strlen(text) - 1]) != NULL)
            at++; /* -o pipefail */
    }
    return MIN(at, words->len);
}

/* Finds "bash -c TEXT NAME ARGUMENT...". */
static bool
find_command(const GPtrArray *words, LhShellInner *inner)
{
    for (guint i = 0; i + 2 < words->len; i++) {
        bool commands;
        guint at;

        if (!is_one_of(words, i, shells))
            continue;
        at = behind_options(words, i, 'c', &commands);
        if (!commands || at >= words->len)
            continue;
        *inner = (LhShellInner){ .own = i, .text = script_of(words, at), .first = at + 2 };
        return true;
    }
    return false;
}

/* Whether a file may be a script: settings files and programs are not. */
static bool
is_script(const char *path)
{
    static const char *const others[] = { ".json", ".toml", ".yaml", ".yml", ".py", ".txt",
                                          ".cfg",  ".conf", ".csv",  ".ini", NULL };

    for (guint i = 0; others[i] != NULL; i++) {
        if (g_str_has_suffix(path, others[i]))
            return false;
    }
    return true;
}

/* Finds a file that the script wrote. */
static bool
find_file(const LhShell *sh, const GPtrArray *words, LhShellInner *inner)
{
    bool runs = true, apart = true;

    for (guint i = 0; i < words->len; i++) {
        LhShellText *text = lh_shell_written(sh, lh_shell_text_at(words, i));

        if (text != NULL && runs && is_script(lh_shell_text_at(words, i))) {
            text->used = true;
            *inner = (LhShellInner){
                .own = i, .text = lh_shell_text_copy(text), .first = i + 1, .within = !apart
            };
            return true;
        }
        if (i == 0)
            runs = false;
        apart = apart && !is_one_of(words, i, sources);
        runs = runs || is_one_of(words, i, shells) || is_one_of(words, i, queues) ||
               is_one_of(words, i, sources) || is_one_of(words, i, launchers);
    }
    return false;
}

/* Finds a here-document for a shell without a script argument. */
static bool
find_document(const GPtrArray *words, const LhShellText *input, LhShellInner *inner)
{
    static const char *const hosts[] = { "ssh", NULL };
    guint own = words->len;
    bool reads = false;

    if (input == NULL)
        return false;
    for (guint i = 0; i < words->len && !reads; i++) {
        bool given;

        reads = is_one_of(words, i, shells) &&
                (behind_options(words, i, 's', &given) >= words->len || given);
        own = reads ? i : own;
    }
    reads = reads || is_one_of(words, 0, queues) || is_one_of(words, 0, hosts);
    if (reads)
        *inner =
            (LhShellInner){ .own = own, .text = lh_shell_text_copy(input), .first = words->len };
    return reads;
}

/* Finds "sbatch --wrap TEXT", "ssh HOST TEXT". */
static bool
find_string(const GPtrArray *words, LhShellInner *inner)
{
    static const char *const hosts[] = { "ssh", "pdsh", NULL };
    static const char wrap[] = "--wrap";
    const bool queue = is_one_of(words, 0, queues), host = is_one_of(words, 0, hosts);

    for (guint i = 1; i < words->len && (queue || host); i++) {
        const char *text = lh_shell_text_at(words, i);

        if (queue && g_str_has_prefix(text, "--wrap=")) {
            *inner = (LhShellInner){ .own = i, .first = words->len };
            inner->text = lh_shell_text_new(text + strlen("--wrap="), g_ptr_array_index(words, i));
            return true;
        }
        if (queue ? strcmp(lh_shell_text_at(words, i - 1), wrap) != 0
                  : strpbrk(text, " \n") == NULL || text[0] == '-')
            continue;
        *inner = (LhShellInner){ .own = queue ? i - 1 : i,
                                 .text = script_of(words, i),
                                 .first = words->len };
        return true;
    }
    return false;
}

bool
lh_shell_find_inner(const LhShell *sh, const GPtrArray *words, const LhShellText *input,
                    LhShellInner *inner)
{
    return find_command(words, inner) || find_file(sh, words, inner) ||
           find_document(words, input, inner) || find_string(words, inner);
}

/* ---- output of commands ---- */

/* The output of "echo WORD...". */
static LhShellText *
echoed(const GPtrArray *words)
{
    g_autoptr(GString) line = g_string_new(NULL);

    for (guint i = 1; i < words->len; i++) {
        const char *text = lh_shell_text_at(words, i);

        if (line->len > 0 || strcmp(text, "-e") != 0)
            g_string_append_printf(line, "%s%s", line->len > 0 ? " " : "", text);
    }
    g_string_append_c(line, '\n');
    return lh_shell_text_new(line->str, g_ptr_array_index(words, 0));
}

LhShellText *
lh_shell_output_of(LhShell *sh, const GPtrArray *words, const LhShellText *input)
{
    const char *name = lh_shell_text_at(words, 0), *operand = lh_shell_text_at(words, 1);
    LhShellText *file = words->len == 2 ? lh_shell_written(sh, operand) : NULL;

    if (strcmp(name, "echo") == 0)
        return echoed(words);
    if (strcmp(name, "cat") == 0 && file != NULL)
        return lh_shell_text_copy(file);
    if (strcmp(name, "cat") == 0 && (words->len == 1 || strcmp(operand, "-") == 0))
        return lh_shell_text_copy(input);
    if (strcmp(name, "tee") != 0 || input == NULL)
        return NULL;
    for (guint i = 1; i < words->len; i++) {
        if (lh_shell_text_at(words, i)[0] != '-')
            lh_shell_write(sh, lh_shell_text_at(words, i), lh_shell_text_copy(input),
                           strcmp(operand, "-a") == 0);
    }
    return lh_shell_text_copy(input);
}
