/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redirections: "<", ">", "<<END" and the like.
 */
#include "base/shell/shell_private.h"

#include <string.h>

/* Reads "<<END", after the sign. */
static bool
take_input(LhShell *sh, LhShellStreams *streams)
{
    const bool tabs = lh_shell_look(sh) == '-';
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    g_autofree char *written = NULL;
    const char *from;

    if (tabs)
        lh_shell_step(sh);
    lh_shell_skip(sh, false);
    from = sh->here.at;
    if (!lh_shell_take_word(sh, false, words))
        return false;
    written = g_strndup(from, (gsize)(sh->here.at - from));
    lh_shell_text_free(streams->input);
    streams->input =
        lh_shell_take_body(sh, lh_shell_text_at(words, 0), tabs, strpbrk(written, "\"'\\") == NULL);
    return streams->input != NULL;
}

bool
lh_shell_take_redirection(LhShell *sh, guint64 number, LhShellStreams *streams)
{
    static const char *const signs[] = { "<<<", "<<", "&>>", "&>", ">>", ">&",
                                         ">|",  "<&", "<>",  ">",  "<",  NULL };
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    const LhShellWord *word;
    guint sign = 0;

    while (!lh_shell_sees(sh, signs[sign]))
        sign++;
    lh_shell_step_over(sh, signs[sign]);
    if (strcmp(signs[sign], "<<") == 0)
        return take_input(sh, streams);
    lh_shell_skip(sh, false);
    if (!lh_shell_take_word(sh, false, words))
        return false;
    word = g_ptr_array_index(words, 0);
    if (signs[sign][0] == '<' && number == 0) {
        const LhShellText *file = lh_shell_written(sh, word->text->str);

        lh_shell_text_free(streams->input);
        streams->input = strcmp(signs[sign], "<<<") == 0 ? lh_shell_text_new(word->text->str, word)
                                                         : lh_shell_text_copy(file);
    } else if (number == 1 && strcmp(signs[sign], ">&") != 0) {
        g_free(streams->output);
        streams->output = g_strdup(word->text->str);
        streams->appends = g_str_has_suffix(signs[sign], ">>");
    }
    return true;
}

bool
lh_shell_sees_redirection(const LhShell *sh)
{
    const char *at = sh->here.at;

    if (lh_shell_sees(sh, "&>"))
        return true;
    while (at < sh->here.end && g_ascii_isdigit(*at))
        at++;
    return at < sh->here.end && (*at == '<' || *at == '>');
}
