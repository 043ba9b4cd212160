/*
 * The commands of a script, in the order in which a shell would run them. See the header.
 */
#include "base/shell/shell_private.h"

#include "base/error.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <string.h>

static bool run_list(LhShell *sh, const char *const *ends);
static bool run_command(LhShell *sh);

/* ---- reading ---- */

bool
lh_shell_fail(const LhShell *sh, guint line, guint column, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(sh->error, LH_ERROR, LH_ERROR_INPUT, "%s:%u:%u: error: %s", sh->file, line, column,
                message);
    return false;
}

char
lh_shell_look(const LhShell *sh)
{
    return sh->here.at < sh->here.end ? *sh->here.at : '\0';
}

bool
lh_shell_sees(const LhShell *sh, const char *text)
{
    const gsize length = strlen(text);

    return (gsize)(sh->here.end - sh->here.at) >= length && strncmp(sh->here.at, text, length) == 0;
}

void
lh_shell_step(LhShell *sh)
{
    const char c = lh_shell_look(sh);

    if (sh->here.at >= sh->here.end)
        return;
    sh->here.at++;
    if (sh->within)
        return;
    if (c == '\n') {
        sh->here.line++;
        sh->here.column = 1;
    } else {
        sh->here.column += ((unsigned char)lh_shell_look(sh) & 0xc0) != 0x80;
    }
}

bool
lh_shell_ends_word(char c)
{
    return c == '\0' || strchr(" \t\r\n;&|()<>", c) != NULL;
}

gsize
lh_shell_name_length(const char *text)
{
    gsize length = 0;

    while (g_ascii_isalpha(text[length]) || text[length] == '_' ||
           (length > 0 && g_ascii_isdigit(text[length])))
        length++;
    return length;
}

static void
skip_line(LhShell *sh)
{
    while (sh->here.at < sh->here.end && lh_shell_look(sh) != '\n')
        lh_shell_step(sh);
}

/* Over the documents that begin behind this line end. */
static void
skip_documents(LhShell *sh)
{
    if (sh->behind.at == NULL)
        return;
    sh->here = sh->behind;
    sh->behind.at = NULL;
}

void
lh_shell_skip(LhShell *sh, bool lines)
{
    while (sh->here.at < sh->here.end) {
        const char c = lh_shell_look(sh);

        if (c == ' ' || c == '\t' || c == '\r') {
            lh_shell_step(sh);
        } else if (lh_shell_sees(sh, "\\\n") || lh_shell_sees(sh, "\\\r\n")) {
            lh_shell_step(sh);
            if (lh_shell_look(sh) == '\r')
                lh_shell_step(sh);
            lh_shell_step(sh);
        } else if (c == '#') {
            skip_line(sh);
        } else if (c == '\n' && lines) {
            lh_shell_step(sh);
            skip_documents(sh);
        } else {
            return;
        }
    }
}

/* Whether this very word stands here, in no quotes. */
static bool
sees_word(const LhShell *sh, const char *word)
{
    const char *behind = sh->here.at + strlen(word);

    return lh_shell_sees(sh, word) && (behind >= sh->here.end || lh_shell_ends_word(*behind));
}

static void
step_over(LhShell *sh, const char *word)
{
    for (gsize i = 0; i < strlen(word); i++)
        lh_shell_step(sh);
}

static bool
sees_any(const LhShell *sh, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (sees_word(sh, *words) || (strcmp(*words, ";;") == 0 && lh_shell_sees(sh, ";;")) ||
            (strcmp(*words, ")") == 0 && lh_shell_look(sh) == ')'))
            return true;
    }
    return false;
}

/* ---- what may be run ---- */

/* What is left of the mode when a command follows one that ended with this status, which must be
 * @wanted for it. */
static LhShellMode
mode_after(const LhShell *sh, LhShellStatus wanted)
{
    if (sh->mode == LH_SHELL_SKIPS || sh->ended ||
        (sh->status != LH_SHELL_OPEN && sh->status != wanted))
        return LH_SHELL_SKIPS;
    return sh->status == LH_SHELL_OPEN ? LH_SHELL_MAY_RUN : sh->mode;
}

/* Enters @mode; the condition that is open is the last command's, unless one was already. */
static LhShellMode
enter_mode(LhShell *sh, LhShellMode mode)
{
    const LhShellMode before = sh->mode;

    if (mode == LH_SHELL_MAY_RUN && before != LH_SHELL_MAY_RUN) {
        sh->open_line = sh->status_line;
        sh->open_variable = sh->status_variable;
    }
    sh->mode = mode;
    return before;
}

/* ---- variables ---- */

/* Whether "NAME=", "NAME+=" or "NAME[1]=" stands here. */
static bool
sees_assignment(const LhShell *sh)
{
    const char *at = sh->here.at;
    const gsize length = lh_shell_name_length(at);

    at += length;
    if (length > 0 && *at == '[') {
        while (at < sh->here.end && *at != ']' && !lh_shell_ends_word(*at))
            at++;
        at += *at == ']' ? 1 : 0;
    }
    return length > 0 && at < sh->here.end &&
           (*at == '=' || (*at == '+' && at + 1 < sh->here.end && at[1] == '='));
}

/* The elements in "(...)". */
static bool
take_elements(LhShell *sh, GPtrArray *words)
{
    const LhShellPlace start = sh->here;

    lh_shell_step(sh);
    for (lh_shell_skip(sh, true); lh_shell_look(sh) != ')'; lh_shell_skip(sh, true)) {
        const char *before = sh->here.at;

        if (sh->here.at >= sh->here.end)
            return lh_shell_fail(sh, start.line, start.column, "the list has no end");
        if (lh_shell_look(sh) == '(') { /* no shell takes it, but people write it */
            LhShellWord *word = lh_shell_word_new("", sh->here.line, sh->here.column);

            g_ptr_array_add(words, word);
            if (!lh_shell_take_parentheses(sh, word->text))
                return false;
            continue;
        }
        if (!lh_shell_take_word(sh, true, words))
            return false;
        if (sh->here.at == before)
            lh_shell_step(sh);
    }
    lh_shell_step(sh);
    return true;
}

/* Puts what the variable has before @words. */
static void
prepend(const LhShell *sh, const char *name, GPtrArray *words, bool *list)
{
    const LhShellVariable *variable = lh_shell_set_variable(sh, name);
    LhShellWord *first = NULL;

    if (variable == NULL)
        return;
    if (!*list && variable->words->len > 0) { /* text goes to the end of the first element */
        const LhShellWord *added = g_ptr_array_index(words, 0);

        first = lh_shell_word_copy(g_ptr_array_index(variable->words, 0));
        g_string_append(first->text, added->text->str);
        if (first->unknown == NULL)
            first->unknown = g_strdup(added->unknown);
        g_ptr_array_remove_index(words, 0);
    }
    for (guint i = 0; i < variable->words->len; i++)
        g_ptr_array_insert(words, (int)i,
                           i == 0 && first != NULL
                               ? first
                               : lh_shell_word_copy(g_ptr_array_index(variable->words, i)));
    *list = *list || variable->list;
}

/* Element @index becomes the one of @words. */
static void
replace_element(const LhShell *sh, const char *name, guint index, GPtrArray *words)
{
    const LhShellVariable *variable = lh_shell_set_variable(sh, name);
    const guint count = variable != NULL ? variable->words->len : 0;

    for (guint i = 0; i < MIN(index, count); i++)
        g_ptr_array_insert(words, (int)i,
                           lh_shell_word_copy(g_ptr_array_index(variable->words, i)));
    for (guint i = index + 1; i < count; i++)
        g_ptr_array_add(words, lh_shell_word_copy(g_ptr_array_index(variable->words, i)));
}

static bool
run_assignment(LhShell *sh)
{
    const gsize length = lh_shell_name_length(sh->here.at);
    g_autofree char *name = g_strndup(sh->here.at, length);
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    guint64 index = G_MAXUINT64;
    bool adds, list = false, ok;

    step_over(sh, name);
    if (lh_shell_look(sh) == '[')
        index = g_ascii_strtoull(sh->here.at + 1, NULL, 10);
    while (lh_shell_look(sh) != '=' && lh_shell_look(sh) != '+')
        lh_shell_step(sh);
    adds = lh_shell_look(sh) == '+';
    step_over(sh, adds ? "+=" : "=");
    list = lh_shell_look(sh) == '(';
    ok = list ? take_elements(sh, words) : lh_shell_take_word(sh, false, words);
    if (!ok)
        return false;
    if (adds)
        prepend(sh, name, words, &list);
    else if (index != G_MAXUINT64 && !list) {
        replace_element(sh, name, (guint)MIN(index, G_MAXUINT16), words);
        list = true;
    }
    lh_shell_set(sh, name, g_steal_pointer(&words), list);
    return true;
}

/* ---- functions ---- */

/* Behind "NAME()" and "{": remembers where that is. */
static bool
define(LhShell *sh, const char *name)
{
    static const char *const ends[] = { "}", NULL };
    LhShellMode before;
    LhShellPlace *body;

    lh_shell_skip(sh, true);
    if (lh_shell_look(sh) != '{')
        return true; /* a body of another kind is run as it stands */
    lh_shell_step(sh);
    body = g_memdup2(&sh->here, sizeof(sh->here));
    before = enter_mode(sh, LH_SHELL_SKIPS);
    if (!run_list(sh, ends)) {
        g_free(body);
        return false;
    }
    sh->mode = before;
    if (sh->mode != LH_SHELL_SKIPS)
        g_hash_table_replace(sh->functions, g_strdup(name), body);
    else
        g_free(body);
    if (lh_shell_look(sh) == '}')
        lh_shell_step(sh);
    return true;
}

/* Runs the text from @from on, with @arguments. */
static bool
run_elsewhere(LhShell *sh, const LhShellPlace *from, const GPtrArray *arguments, guint first)
{
    static const char *const ends[] = { "}", NULL };
    const LhShellPlace back = sh->here, behind = sh->behind;
    GPtrArray *before = sh->arguments;
    bool ok;

    if (sh->depth >= LH_SHELL_DEPTH_MAX)
        return lh_shell_fail(sh, back.line, back.column, "commands are nested too deeply");
    sh->arguments = g_ptr_array_new_with_free_func(lh_shell_word_free);
    for (guint i = first; i < arguments->len; i++)
        g_ptr_array_add(sh->arguments, lh_shell_word_copy(g_ptr_array_index(arguments, i)));
    sh->depth++;
    sh->here = *from;
    sh->behind.at = NULL;
    ok = run_list(sh, ends);
    sh->depth--;
    sh->here = back;
    sh->behind = behind;
    g_ptr_array_unref(sh->arguments);
    sh->arguments = before;
    return ok;
}

/* Runs @text as a script, with the words from @first on as its arguments. */
static bool
run_text(LhShell *sh, const LhShellText *text, const GPtrArray *words, guint first)
{
    char *kept = g_strdup(text->text);
    const LhShellPlace from = { kept, kept + strlen(kept), text->line, text->column };
    const bool within = sh->within;
    bool ok;

    g_ptr_array_add(sh->kept, kept);
    sh->within = within || !text->lines;
    ok = run_elsewhere(sh, &from, words, first);
    sh->within = within;
    return ok;
}

/* ---- simple commands ---- */

static bool
is_any(const char *word, const char *const *words)
{
    return g_strv_contains(words, word);
}

static bool
tell(LhShell *sh, const GPtrArray *words)
{
    const LhShellOpen open = { sh->mode == LH_SHELL_MAY_RUN ? sh->open_line : 0,
                               sh->open_variable };

    g_autoptr(GPtrArray) plain = g_ptr_array_new_with_free_func(lh_shell_word_free);

    for (guint i = 0; i < words->len; i++) {
        const LhShellWord *word = g_ptr_array_index(words, i);
        bool whole;

        g_ptr_array_add(plain, lh_shell_word_plain(sh, word, &whole));
        if (!whole)
            return lh_shell_fail(sh, word->line, word->column, "a word has more than %d bytes",
                                 LH_SHELL_WORD_BYTES_MAX);
    }
    return sh->asked->call(sh->asked->data, plain, open, sh->error);
}

static void
run_test(LhShell *sh, GPtrArray *words)
{
    const LhShellWord *first = g_ptr_array_index(words, 0);
    const guint line = first->line;

    if (words->len > 1 && strcmp(lh_shell_text_at(words, words->len - 1), "]") == 0)
        g_ptr_array_remove_index(words, words->len - 1);
    g_ptr_array_remove_index(words, 0);
    lh_shell_test(sh, words, line);
}

/* Runs it as open as it is. */
static bool
run_as_open(LhShell *sh, const LhShellText *text, const GPtrArray *words, guint first)
{
    const LhShellMode before = sh->mode;
    const LhShellOpen open = { sh->open_line, sh->open_variable };
    bool ok;

    if (text->open.line != 0) {
        sh->mode = LH_SHELL_MAY_RUN;
        sh->open_line = text->open.line;
        sh->open_variable = text->open.variable;
    }
    ok = run_text(sh, text, words, first);
    sh->mode = before;
    sh->open_line = open.line;
    sh->open_variable = open.variable;
    return ok;
}

static bool
run_eval(LhShell *sh, const GPtrArray *words)
{
    const LhShellWord *word = g_ptr_array_index(words, 0);
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 1; i < words->len; i++) {
        g_autofree char *marked = lh_shell_marked(sh, g_ptr_array_index(words, i));

        g_string_append_printf(text, "%s ", marked);
    }
    return run_as_open(
        sh, &(LhShellText){ .text = text->str, .line = word->line, .column = word->column },
        sh->arguments, 0);
}

/* A script within a command, which ends alone. */
static bool
run_inner(LhShell *sh, GPtrArray *words, const LhShellInner *inner)
{
    g_autoptr(GPtrArray) own = g_ptr_array_new();
    const bool ended = sh->ended;
    bool ok;

    for (guint i = 0; i < inner->own; i++)
        g_ptr_array_add(own, g_ptr_array_index(words, i));
    if (own->len > 0 && !tell(sh, own))
        return false;
    ok = run_as_open(sh, inner->text, words, inner->first);
    if (!inner->within) {
        sh->ended = ended;
        sh->ended_line = 0;
    }
    return ok;
}

static void
set_text(LhShell *sh, const char *name, const char *text, const LhShellText *from)
{
    GPtrArray *value = g_ptr_array_new_with_free_func(lh_shell_word_free);

    g_ptr_array_add(value, lh_shell_word_new(text, from->line, from->column));
    lh_shell_set(sh, name, value, false);
}

/* "read -r A B": the parts of a line, which blanks, or the characters of IFS, stand between; the
 * last one has the rest. Behind "-d ''" it is the whole text. */
static void
run_read(LhShell *sh, const GPtrArray *words, const LhShellText *input)
{
    const LhShellVariable *between = lh_shell_variable(sh, "IFS");
    const LhShellWord *own =
        between != NULL && between->words->len > 0 ? g_ptr_array_index(between->words, 0) : NULL;
    const bool alone = /* "IFS=, read A B" is about this command alone */
        own != NULL && own->line == ((const LhShellWord *)g_ptr_array_index(words, 0))->line;
    g_autofree char *signs = g_strdup(own != NULL && own->text->len > 0 ? own->text->str : " \t");
    g_autofree char *text = input != NULL ? g_strstrip(g_strdup(input->text)) : NULL;
    char *at = text;
    bool all = false;
    guint i = 1;

    for (; lh_shell_text_at(words, i)[0] == '-'; i++) {
        all = g_str_has_suffix(lh_shell_text_at(words, i), "d");
        i += all ? 1 : 0;
    }
    if (text == NULL)
        return;
    if (!all)
        text[strcspn(text, "\n")] = '\0';
    for (; i < words->len; i++) {
        const bool last = i + 1 == words->len;
        const gsize length = last || all ? strlen(at) : strcspn(at, signs);
        g_autofree char *part = g_strndup(at, length);
        const char *name = lh_shell_text_at(words, i);

        if (name[0] != '\0' && name[lh_shell_name_length(name)] == '\0')
            set_text(sh, name, part, input);
        at += length + (at[length] != '\0' ? 1 : 0);
    }
    if (alone)
        g_hash_table_remove(sh->variables, "IFS");
}

/* A command with its words, which is not skipped. */
static bool
run_words(LhShell *sh, GPtrArray *words, const LhShellText *input)
{
    static const char *const tests[] = { "[", "test", NULL };
    static const char *const unsure[] = { "grep", "which", "command", "cmp",        "diff",
                                          "type", "pgrep", "read",    "mountpoint", "getopts",
                                          "curl", "ping",  NULL };
    const LhShellWord *first = g_ptr_array_index(words, 0);
    const char *name = first->text->str;
    const LhShellPlace *body = g_hash_table_lookup(sh->functions, name);
    LhShellInner inner;
    bool ok;

    sh->status = LH_SHELL_YES;
    if (is_any(name, tests)) {
        run_test(sh, words);
        return true;
    }
    if (body != NULL) {
        const LhShellPlace from = *body;

        return run_elsewhere(sh, &from, words, 1);
    }
    if (strcmp(name, "eval") == 0)
        return run_eval(sh, words);
    if (strcmp(name, "exit") == 0 && sh->mode == LH_SHELL_RUNS) {
        const char *status = lh_shell_text_at(words, 1);

        sh->ended = true;
        sh->ended_line = status[0] != '\0' && strcmp(status, "0") != 0 ? first->line : 0;
    }
    if (strcmp(name, "false") == 0)
        sh->status = LH_SHELL_NO;
    if (strcmp(name, "shift") == 0 && sh->arguments->len > 0 && sh->mode == LH_SHELL_RUNS)
        g_ptr_array_remove_index(sh->arguments, 0);
    if (is_any(name, unsure))
        lh_shell_leave_open(sh, first->line, NULL);
    if (strcmp(name, "read") == 0)
        run_read(sh, words, input);
    if (!lh_shell_find_inner(sh, words, input, &inner))
        return tell(sh, words);
    ok = run_inner(sh, words, &inner);
    lh_shell_text_free(inner.text);
    return ok;
}

/* What a command reads and writes. */
typedef struct {
    LhShellText *input; /* NULL: it is not known */
    char *output;       /* NULL: no file */
    bool appends;
} Streams;

/* "<<END", behind the sign. */
static bool
take_input(LhShell *sh, Streams *streams)
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

/* "> file", "2>&1", "<<END", of the stream @number. */
static bool
take_redirection(LhShell *sh, guint64 number, Streams *streams)
{
    static const char *const signs[] = { "<<<", "<<", "&>>", "&>", ">>", ">&",
                                         ">|",  "<&", "<>",  ">",  "<",  NULL };
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    const LhShellWord *word;
    guint sign = 0;

    while (!lh_shell_sees(sh, signs[sign]))
        sign++;
    step_over(sh, signs[sign]);
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

/* Whether digits and "<" or ">", or "&>", stand here. */
static bool
sees_redirection(const LhShell *sh)
{
    const char *at = sh->here.at;

    if (lh_shell_sees(sh, "&>"))
        return true;
    while (at < sh->here.end && g_ascii_isdigit(*at))
        at++;
    return at < sh->here.end && (*at == '<' || *at == '>');
}

static bool
take_operand(LhShell *sh, GPtrArray *words, Streams *streams)
{
    static const char *const declare[] = {
        "export", "local", "declare", "typeset", "readonly", NULL
    };

    if (sees_redirection(sh)) {
        guint64 number = 0;
        const bool given = g_ascii_isdigit(lh_shell_look(sh));

        for (; g_ascii_isdigit(lh_shell_look(sh)); lh_shell_step(sh))
            number = MIN(10 * number + (guint64)(lh_shell_look(sh) - '0'), G_MAXUINT16);
        return take_redirection(sh, given ? number : lh_shell_look(sh) == '<' ? 0 : 1, streams);
    }
    if (sees_assignment(sh) && (words->len == 0 || is_any(lh_shell_text_at(words, 0), declare)))
        return run_assignment(sh);
    if (lh_shell_look(sh) == '(') {
        LhShellWord *word = lh_shell_word_new("", sh->here.line, sh->here.column);

        g_ptr_array_add(words, word);
        return lh_shell_take_parentheses(sh, word->text);
    }
    return lh_shell_take_word(sh, true, words);
}

/* Whether "()" follows the one word that there is. */
static bool
sees_definition(LhShell *sh, const GPtrArray *words)
{
    return words->len == 1 && lh_shell_sees(sh, "()") &&
           lh_shell_name_length(lh_shell_text_at(words, 0)) > 0;
}

/* The words of a command, of which none are left if it defines a function. */
static bool
take_simple(LhShell *sh, GPtrArray *words, Streams *streams)
{
    while (lh_shell_skip(sh, false), sh->here.at < sh->here.end) {
        if (sees_definition(sh, words)) {
            g_autofree char *name = g_strdup(lh_shell_text_at(words, 0));

            g_ptr_array_set_size(words, 0);
            step_over(sh, "()");
            return define(sh, name);
        }
        if (strchr("\n;|)", lh_shell_look(sh)) != NULL ||
            (lh_shell_look(sh) == '&' && !lh_shell_sees(sh, "&>")))
            break;
        if (!take_operand(sh, words, streams))
            return false;
    }
    return true;
}

static bool
run_simple(LhShell *sh)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    Streams streams = { .input = g_steal_pointer(&sh->piped) };
    bool ok = take_simple(sh, words, &streams);

    if (ok && sh->mode != LH_SHELL_SKIPS && !sh->ended && words->len > 0) {
        LhShellText *output = lh_shell_output_of(sh, words, streams.input);

        if (output != NULL && streams.output != NULL)
            lh_shell_write(sh, streams.output, lh_shell_text_copy(output), streams.appends);
        ok = run_words(sh, words, streams.input);
        lh_shell_text_free(sh->piped);
        sh->piped = NULL;
        if (ok && lh_shell_look(sh) == '|' && !lh_shell_sees(sh, "||"))
            sh->piped = g_steal_pointer(&output);
        lh_shell_text_free(output);
    } else if (ok && words->len == 0 && sh->mode != LH_SHELL_SKIPS && !sh->ended) {
        sh->status = LH_SHELL_YES;
    }
    lh_shell_text_free(streams.input);
    g_free(streams.output);
    return ok;
}

/* ---- compound commands ---- */

/* "[[ ... ]]": words of which "&&", "||", "(" and "<" are some. */
static bool
run_brackets(LhShell *sh)
{
    static const char *const signs[] = { "&&", "||", "(", ")", "<", ">", NULL };
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    const LhShellPlace start = sh->here;

    step_over(sh, "[[");
    for (lh_shell_skip(sh, true); !sees_word(sh, "]]"); lh_shell_skip(sh, true)) {
        guint i = 0;

        if (sh->here.at >= sh->here.end)
            return lh_shell_fail(sh, start.line, start.column, "the \"[[\" has no end");
        while (signs[i] != NULL && !lh_shell_sees(sh, signs[i]))
            i++;
        if (signs[i] != NULL) {
            g_ptr_array_add(words, lh_shell_word_new(signs[i], sh->here.line, sh->here.column));
            step_over(sh, signs[i]);
        } else if (lh_shell_ends_word(lh_shell_look(sh))) {
            lh_shell_step(sh);
        } else if (!lh_shell_take_word(sh, false, words)) {
            return false;
        }
    }
    step_over(sh, "]]");
    if (sh->mode != LH_SHELL_SKIPS)
        lh_shell_test(sh, words, start.line);
    return true;
}

/* "((...))". */
static bool
run_arithmetic(LhShell *sh)
{
    const LhShellPlace start = sh->here;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *inner = NULL;
    const char *unknown = "";
    gint64 value;

    if (!lh_shell_take_parentheses(sh, text))
        return false;
    inner = g_strndup(text->str + 2, text->len - MIN(text->len, 4));
    if (sh->mode == LH_SHELL_SKIPS)
        return true;
    if (lh_shell_arithmetic(sh, inner, &value, &unknown))
        sh->status = value != 0 ? LH_SHELL_YES : LH_SHELL_NO;
    else
        lh_shell_leave_open(sh, start.line, unknown);
    return true;
}

/* Over @word, which must stand here. */
static bool
expect(LhShell *sh, const char *word, const LhShellPlace *start, const char *what)
{
    lh_shell_skip(sh, true);
    while (lh_shell_look(sh) == ';' && !lh_shell_sees(sh, ";;")) {
        lh_shell_step(sh);
        lh_shell_skip(sh, true);
    }
    if (!sees_word(sh, word))
        return lh_shell_fail(sh, start->line, start->column, "\"%s\" has no \"%s\"", what, word);
    step_over(sh, word);
    return true;
}

/* From behind "if" or "elif": *@left is how what follows is to be taken. */
static bool
run_branch(LhShell *sh, const LhShellPlace *start, LhShellMode *left)
{
    static const char *const thens[] = { "then", NULL };
    static const char *const ends[] = { "elif", "else", "fi", NULL };
    const LhShellMode before = enter_mode(sh, *left);
    LhShellMode taken;

    if (!run_list(sh, thens) || !expect(sh, "then", start, "if"))
        return false;
    taken = mode_after(sh, LH_SHELL_YES);
    *left = mode_after(sh, LH_SHELL_NO);
    if (sh->mode == LH_SHELL_MAY_RUN) {
        taken = taken == LH_SHELL_RUNS ? LH_SHELL_MAY_RUN : taken;
        *left = *left == LH_SHELL_RUNS ? LH_SHELL_MAY_RUN : *left;
    }
    enter_mode(sh, taken);
    if (!run_list(sh, ends))
        return false;
    sh->mode = before;
    return true;
}

static bool
run_if(LhShell *sh)
{
    static const char *const ends[] = { "fi", NULL };
    const LhShellPlace start = sh->here;
    const LhShellMode before = sh->mode;
    const guint line = sh->open_line;
    const char *variable = sh->open_variable;
    LhShellMode left = sh->mode;

    step_over(sh, "if");
    for (;;) {
        if (!run_branch(sh, &start, &left))
            return false;
        if (!sees_word(sh, "elif"))
            break;
        step_over(sh, "elif");
    }
    if (sees_word(sh, "else")) {
        step_over(sh, "else");
        enter_mode(sh, left);
        if (!run_list(sh, ends))
            return false;
    }
    sh->mode = before;
    sh->open_line = line;
    sh->open_variable = variable;
    sh->status = LH_SHELL_YES;
    return expect(sh, "fi", &start, "if");
}

/* The patterns up to ")": whether one fits @word. */
static bool
take_patterns(LhShell *sh, const LhShellWord *word, const LhShellPlace *start, LhShellStatus *fits)
{
    *fits = LH_SHELL_NO;
    lh_shell_skip(sh, true);
    if (lh_shell_look(sh) == '(')
        lh_shell_step(sh);
    for (lh_shell_skip(sh, false); lh_shell_look(sh) != ')'; lh_shell_skip(sh, false)) {
        g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);

        if (lh_shell_look(sh) == '|') {
            lh_shell_step(sh);
            continue;
        }
        if (sh->here.at >= sh->here.end || lh_shell_ends_word(lh_shell_look(sh)))
            return lh_shell_fail(sh, start->line, start->column, "\"case\" has no \"esac\"");
        if (!lh_shell_take_word(sh, false, words))
            return false;
        if (word->unknown != NULL)
            *fits = LH_SHELL_OPEN;
        else if (fnmatch(lh_shell_text_at(words, 0), word->text->str, 0) == 0)
            *fits = LH_SHELL_YES;
    }
    lh_shell_step(sh);
    return true;
}

static bool
run_cases(LhShell *sh, const LhShellWord *word, const LhShellPlace *start)
{
    static const char *const ends[] = { ";;", "esac", NULL };
    const LhShellMode before = sh->mode;
    bool found = before == LH_SHELL_SKIPS;

    for (lh_shell_skip(sh, true); !sees_word(sh, "esac"); lh_shell_skip(sh, true)) {
        LhShellStatus fits;

        if (!take_patterns(sh, word, start, &fits))
            return false;
        sh->status = fits;
        sh->status_line = start->line;
        sh->status_variable = g_intern_string(word->unknown != NULL ? word->unknown : "");
        enter_mode(sh, found ? LH_SHELL_SKIPS : mode_after(sh, LH_SHELL_YES));
        found = found || fits == LH_SHELL_YES;
        if (!run_list(sh, ends))
            return false;
        sh->mode = before;
        while (lh_shell_look(sh) == ';')
            lh_shell_step(sh);
    }
    step_over(sh, "esac");
    return true;
}

static bool
run_case(LhShell *sh)
{
    const LhShellPlace start = sh->here;
    const guint line = sh->open_line;
    const char *variable = sh->open_variable;
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    bool ok;

    step_over(sh, "case");
    lh_shell_skip(sh, false);
    if (!lh_shell_take_word(sh, false, words) || !expect(sh, "in", &start, "case"))
        return false;
    ok = run_cases(sh, g_ptr_array_index(words, 0), &start);
    sh->open_line = line;
    sh->open_variable = variable;
    sh->status = LH_SHELL_YES;
    return ok;
}

/* What is done once, at most, of a loop: its body, with a variable that has the value of each time
 * in turn, where that is known. */
static bool
run_body(LhShell *sh, const LhShellPlace *start, LhShellMode mode)
{
    static const char *const ends[] = { "done", NULL };
    const LhShellMode before = enter_mode(sh, mode);
    bool ok = run_list(sh, ends);

    sh->mode = before;
    return ok && expect(sh, "done", start, "do");
}

static bool
run_times(LhShell *sh, const char *name, GPtrArray *values, const LhShellPlace *start)
{
    const LhShellVariable *given = lh_shell_set_variable(sh, name);
    const guint times = given != NULL && given->given ? 1 : values->len;
    const LhShellPlace body = sh->here;

    if (times == 0 || sh->mode == LH_SHELL_SKIPS)
        return run_body(sh, start, LH_SHELL_SKIPS);
    for (guint i = 0; i < times; i++) {
        if (i < values->len) {
            GPtrArray *words = g_ptr_array_new_with_free_func(lh_shell_word_free);

            g_ptr_array_add(words, lh_shell_word_copy(g_ptr_array_index(values, i)));
            lh_shell_set(sh, name, words, false);
        }
        sh->here = body;
        sh->status_line = start->line;
        sh->status_variable = g_intern_string(name);
        if (!run_body(sh, start, times > 1 ? LH_SHELL_MAY_RUN : sh->mode))
            return false;
    }
    return true;
}

static bool
run_for(LhShell *sh)
{
    const LhShellPlace start = sh->here;
    g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func(lh_shell_word_free);
    g_autofree char *name = NULL;
    gsize length;

    step_over(sh, "for");
    lh_shell_skip(sh, false);
    if (lh_shell_look(sh) == '(') { /* for ((...)) */
        g_autoptr(GString) text = g_string_new(NULL);

        return lh_shell_take_parentheses(sh, text) && expect(sh, "do", &start, "for") &&
               (lh_shell_leave_open(sh, start.line, NULL),
                run_body(sh, &start, mode_after(sh, LH_SHELL_YES)));
    }
    length = lh_shell_name_length(sh->here.at);
    name = g_strndup(sh->here.at, length);
    step_over(sh, name);
    lh_shell_skip(sh, true);
    if (sees_word(sh, "in")) {
        step_over(sh, "in");
        for (lh_shell_skip(sh, false); !lh_shell_ends_word(lh_shell_look(sh));
             lh_shell_skip(sh, false)) {
            if (!lh_shell_take_word(sh, true, values))
                return false;
        }
    }
    return expect(sh, "do", &start, "for") && run_times(sh, name, values, &start);
}

static bool
run_while(LhShell *sh)
{
    static const char *const dos[] = { "do", NULL };
    const LhShellPlace start = sh->here;
    const bool until = sees_word(sh, "until");
    LhShellMode mode;

    step_over(sh, until ? "until" : "while");
    if (!run_list(sh, dos) || !expect(sh, "do", &start, "while"))
        return false;
    mode = mode_after(sh, until ? LH_SHELL_NO : LH_SHELL_YES);
    return run_body(sh, &start, mode);
}

/* "(...)" and "{ ...; }". */
static bool
run_group(LhShell *sh, const char *end)
{
    const char *const ends[] = { end, NULL };

    lh_shell_step(sh);
    if (!run_list(sh, ends))
        return false;
    if (lh_shell_look(sh) == end[0])
        lh_shell_step(sh);
    return true;
}

static bool
run_function(LhShell *sh)
{
    g_autofree char *name = NULL;

    step_over(sh, "function");
    lh_shell_skip(sh, false);
    name = g_strndup(sh->here.at, lh_shell_name_length(sh->here.at));
    step_over(sh, name);
    lh_shell_skip(sh, false);
    if (lh_shell_sees(sh, "()"))
        step_over(sh, "()");
    return define(sh, name);
}

static bool
run_negated(LhShell *sh)
{
    lh_shell_step(sh);
    lh_shell_skip(sh, false);
    if (!run_command(sh))
        return false;
    if (sh->status != LH_SHELL_OPEN)
        sh->status = sh->status == LH_SHELL_YES ? LH_SHELL_NO : LH_SHELL_YES;
    return true;
}

static bool
run_any(LhShell *sh)
{
    static const struct {
        const char *word;
        bool (*run)(LhShell *sh);
    } compounds[] = { { "if", run_if },       { "case", run_case },   { "for", run_for },
                      { "while", run_while }, { "until", run_while }, { "function", run_function },
                      { "!", run_negated },   { "[[", run_brackets } };

    for (guint i = 0; i < G_N_ELEMENTS(compounds); i++) {
        if (sees_word(sh, compounds[i].word))
            return compounds[i].run(sh);
    }
    if (lh_shell_sees(sh, "(("))
        return run_arithmetic(sh);
    if (lh_shell_look(sh) == '(')
        return run_group(sh, ")");
    if (sees_word(sh, "{"))
        return run_group(sh, "}");
    return run_simple(sh);
}

static bool
run_command(LhShell *sh)
{
    bool ok;

    if (sh->depth >= LH_SHELL_DEPTH_MAX)
        return lh_shell_fail(sh, sh->here.line, sh->here.column, "commands are nested too deeply");
    sh->depth++;
    ok = run_any(sh);
    sh->depth--;
    return ok;
}

/* Commands with "&&" and "||" between them, up to one of @ends, which is left. */
static bool
run_list(LhShell *sh, const char *const *ends)
{
    const LhShellMode before = sh->mode;
    const guint line = sh->open_line;
    const char *variable = sh->open_variable;

    for (lh_shell_skip(sh, true); sh->here.at < sh->here.end && !sees_any(sh, ends);
         lh_shell_skip(sh, true)) {
        const char *at = sh->here.at;

        if (lh_shell_sees(sh, "&&") || lh_shell_sees(sh, "||")) {
            const bool both = lh_shell_look(sh) == '&';

            step_over(sh, "&&");
            enter_mode(sh, mode_after(sh, both ? LH_SHELL_YES : LH_SHELL_NO));
            continue;
        }
        if (strchr(";&|)", lh_shell_look(sh)) != NULL) {
            lh_shell_step(sh);
            sh->mode = before;
            continue;
        }
        if (!run_command(sh))
            return false;
        if (sh->here.at == at)
            lh_shell_step(sh);
        lh_shell_skip(sh, false);
        if (!lh_shell_sees(sh, "&&") && !lh_shell_sees(sh, "||"))
            sh->mode = before;
    }
    sh->mode = before;
    sh->open_line = line;
    sh->open_variable = variable;
    return true;
}

/* ---- the whole ---- */

static void
free_variable(gpointer data)
{
    LhShellVariable *variable = data;

    g_ptr_array_unref(variable->words);
    g_free(variable);
}

static bool
give(LhShell *sh, const char *text)
{
    const char *equals = strchr(text, '=');
    GPtrArray *words;
    LhShellVariable *variable;
    g_autofree char *shown = g_strescape(text, NULL);
    g_autofree char *name = NULL;

    if (equals == NULL || equals == text) {
        g_set_error(sh->error, LH_ERROR, LH_ERROR_USAGE,
                    "--set: found \"%.60s\"; allowed: VAR=value", shown);
        return false;
    }
    name = g_strndup(text, (gsize)(equals - text));
    words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    g_ptr_array_add(words, lh_shell_word_new(equals + 1, 1, 1));
    if (g_ascii_isdigit(name[0])) {
        const guint64 index = g_ascii_strtoull(name, NULL, 10);

        while (sh->arguments->len < MIN(index, LH_SHELL_DEPTH_MAX))
            g_ptr_array_add(sh->arguments, lh_shell_word_new("", 1, 1));
        if (index >= 1 && index <= sh->arguments->len)
            g_string_assign(
                ((LhShellWord *)g_ptr_array_index(sh->arguments, (guint)index - 1))->text,
                equals + 1);
    }
    variable = g_new(LhShellVariable, 1);
    *variable = (LhShellVariable){ .words = words, .given = true };
    g_hash_table_replace(sh->variables, g_steal_pointer(&name), variable);
    return true;
}

/* A variable that the script never asks for nor sets is a mistake of who gives it. */
static bool
check_given(const LhShell *sh, const GPtrArray *given)
{
    for (guint i = 0; given != NULL && i < given->len; i++) {
        const char *text = g_ptr_array_index(given, i);
        g_autofree char *name = g_strndup(text, (gsize)(strchr(text, '=') - text));
        const LhShellVariable *variable = g_hash_table_lookup(sh->variables, name);
        g_autofree char *shown = g_strescape(name, NULL);

        if (!variable->named && !g_ascii_isdigit(name[0])) {
            g_set_error(sh->error, LH_ERROR, LH_ERROR_INPUT, "--set: %s has no variable %.60s",
                        sh->file, shown);
            return false;
        }
    }
    return true;
}

/* The first word of a variable. */
typedef struct {
    const char *name;
    const LhShellWord *word;
} Unused;

static int
compare_places(gconstpointer a, gconstpointer b)
{
    const LhShellWord *x = ((const Unused *)a)->word, *y = ((const Unused *)b)->word;

    return x->line != y->line ? (x->line < y->line ? -1 : 1) : (x->column < y->column ? -1 : 1);
}

/* A file that the script writes and does not run. */
static void
add_unused_file(GArray *all, GPtrArray *words, const char *name, const LhShellText *text)
{
    const Unused one = { name, lh_shell_word_new("", text->line, text->column) };

    g_ptr_array_add(words, (gpointer)one.word);
    if (!text->used && strstr(text->text, " --") != NULL)
        g_array_append_val(all, one);
}

static void
tell_unused(const LhShell *sh)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(Unused));
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    GHashTableIter each;
    gpointer name, value;

    g_hash_table_iter_init(&each, sh->variables);
    while (g_hash_table_iter_next(&each, &name, &value)) {
        const LhShellVariable *variable = value;
        const LhShellWord *first =
            variable->words->len > 0 ? g_ptr_array_index(variable->words, 0) : NULL;
        const Unused one = { name, first };

        if (!variable->used && !variable->given && first != NULL &&
            g_str_has_prefix(first->text->str + strspn(first->text->str, " \t\n"), "--"))
            g_array_append_val(all, one);
    }
    g_hash_table_iter_init(&each, sh->files);
    while (g_hash_table_iter_next(&each, &name, &value))
        add_unused_file(all, words, name, value);
    g_array_sort(all, compare_places);
    for (guint i = 0; sh->asked->unused != NULL && i < all->len; i++) {
        const Unused *one = &g_array_index(all, Unused, i);

        sh->asked->unused(sh->asked->data, one->name, one->word);
    }
}

static void
tell_written(const LhShell *sh)
{
    GHashTableIter each;
    gpointer path, value;

    g_hash_table_iter_init(&each, sh->files); /* into a table again */
    while (sh->asked->written != NULL && g_hash_table_iter_next(&each, &path, &value)) {
        const LhShellText *text = value;

        if (text->open.line == 0)
            sh->asked->written(sh->asked->data, path, text->text);
    }
}

static bool
run_all(LhShell *sh)
{
    static const char *const ends[] = { NULL };
    const GPtrArray *variables = sh->asked->variables;

    for (guint i = 0; variables != NULL && i < variables->len; i++) {
        if (!give(sh, g_ptr_array_index(variables, i)))
            return false;
    }
    if (!run_list(sh, ends) || !check_given(sh, variables))
        return false;
    tell_unused(sh);
    tell_written(sh);
    if (sh->ended_line != 0 && sh->asked->ended != NULL)
        sh->asked->ended(sh->asked->data, sh->ended_line);
    return true;
}

bool
lh_shell_run(const char *file, const char *text, gsize length, const LhShellAsked *asked,
             GError **error)
{
    g_autofree char *copy = g_strndup(text, length); /* which ends in a NUL */
    LhShell sh = { .file = file,
                   .here = { copy, copy + length, 1, 1 },
                   .variables =
                       g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_variable),
                   .functions = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                   .files =
                       g_hash_table_new_full(g_str_hash, g_str_equal, g_free, lh_shell_text_free),
                   .arguments = g_ptr_array_new_with_free_func(lh_shell_word_free),
                   .opens = g_ptr_array_new_with_free_func(lh_shell_word_free),
                   .kept = g_ptr_array_new_with_free_func(g_free),
                   .open_variable = "",
                   .status_variable = "",
                   .asked = asked,
                   .error = error };
    const bool ok = run_all(&sh);

    g_hash_table_unref(sh.variables);
    g_hash_table_unref(sh.functions);
    g_hash_table_unref(sh.files);
    g_ptr_array_unref(sh.arguments);
    g_ptr_array_unref(sh.opens);
    g_ptr_array_unref(sh.kept);
    lh_shell_text_free(sh.piped);
    return ok;
}
