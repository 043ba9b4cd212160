/*
 * The words of a script: quotes, variables, and what is made of them. See the header.
 */
#include "base/shell/shell_private.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#define BYTES_OF_WORD 8    /* that a word counts for beside its own */
#define BYTES_OF_OPEN 1024 /* likewise of what is open: so few of them that they may nest */
#define WORK_OF_BYTE 16    /* bytes that are compared, for one that is kept */

/* Words that are being made. */
typedef struct {
    GPtrArray *words;
    LhShellWord *word; /* the one that is not complete; NULL: none has begun */
    bool splits;
    bool document;      /* quotes are text, and escaped line ends stay */
    guint line, column; /* where it all began */
    gsize opened;       /* bytes of what is open */
} Making;

static bool take_up_to(LhShell *sh, Making *m, bool quoted, const char *end);

/* ---- words ---- */

void
lh_shell_word_free(gpointer data)
{
    LhShellWord *word = data;

    g_string_free(word->text, TRUE);
    g_free(word->unknown);
    g_free(word);
}

LhShellWord *
lh_shell_word_new(const char *text, guint line, guint column)
{
    LhShellWord *word = g_new0(LhShellWord, 1);

    word->text = g_string_new(text);
    word->line = line;
    word->column = column;
    return word;
}

LhShellWord *
lh_shell_word_copy(const LhShellWord *word)
{
    LhShellWord *copy = lh_shell_word_new(word->text->str, word->line, word->column);

    copy->unknown = g_strdup(word->unknown);
    copy->open_line = word->open_line;
    copy->open_variable = word->open_variable;
    copy->open_from = word->open_from;
    return copy;
}

/* The word that text is added to, which stands at this place if it begins now. */
static LhShellWord *
begin_word(Making *m, guint line, guint column)
{
    if (m->word == NULL)
        m->word = lh_shell_word_new("", line, column);
    return m->word;
}

static void
finish_word(Making *m)
{
    if (m->word != NULL)
        g_ptr_array_add(m->words, g_steal_pointer(&m->word));
}

static void
taint(LhShellWord *word, const char *unknown)
{
    if (unknown != NULL && (word->unknown == NULL || word->unknown[0] == '\0')) {
        g_free(word->unknown);
        word->unknown = g_strdup(unknown);
    }
}

/* @word is from here on as open as @value; what left it open first is named. */
static void
taint_open(LhShellWord *word, const LhShellWord *value)
{
    if (value->open_line == 0 || word->open_line != 0)
        return;
    word->open_from = word->text->len;
    word->open_line = value->open_line;
    word->open_variable = value->open_variable;
}

/* What is open, of the mark at @at; NULL: it is none. *@behind: where the mark ends. */
static const LhShellWord *
open_at(const LhShell *sh, const char *at, const char **behind)
{
    char *end;
    guint64 number;

    if (*at != LH_SHELL_OPENS || !g_ascii_isdigit(at[1]))
        return NULL;
    number = g_ascii_strtoull(at + 1, &end, 10);
    if (*end != LH_SHELL_CLOSES || number >= sh->opens->len)
        return NULL;
    *behind = end + 1;
    return g_ptr_array_index(sh->opens, (guint)number);
}

static void add_value(const LhShell *sh, Making *m, const LhShellWord *value, bool quoted);

/* NOLINTBEGIN(misc-no-recursion): what is open has only marks of what was open before it, and all
 * of it has at most LH_SHELL_BYTES_MAX bytes */

/* Where words are split it becomes words; else its mark is kept. */
static void
add_open(const LhShell *sh, Making *m, const LhShellWord *open, const char *mark, gsize length,
         bool quoted)
{
    if (!quoted && m->splits) {
        m->opened += open->text->len + 1;
        if (m->opened <= LH_SHELL_BYTES_MAX)
            add_value(sh, m, open, false);
        return;
    }
    g_string_append_len(begin_word(m, m->line, m->column)->text, mark, (gssize)length);
    taint(m->word, open->unknown);
}

/* Adds what a variable has. */
static void
add_value(const LhShell *sh, Making *m, const LhShellWord *value, bool quoted)
{
    const guint line = value->line, column = value->column;

    if (m->word != NULL && m->word->text->len == 0) { /* it begins with this */
        m->word->line = line;
        m->word->column = column;
    }
    for (const char *at = value->text->str; *at != '\0'; at++) {
        const char *behind;
        const LhShellWord *open = open_at(sh, at, &behind);

        if (!quoted && m->splits && strchr(" \t\n", *at) != NULL) {
            finish_word(m);
            continue;
        }
        if (open != NULL) {
            add_open(sh, m, open, at, (gsize)(behind - at), quoted);
            at = behind - 1;
            continue;
        }
        taint_open(begin_word(m, line, column), value);
        taint(m->word, value->unknown);
        g_string_append_c(m->word->text, *at);
        if (m->word->text->len > LH_SHELL_WORD_BYTES_MAX)
            return;
    }
}

/* Adds @text to @plain, at most as many bytes and marks as *@left says. */
static void
add_plain(const LhShell *sh, LhShellWord *plain, const char *text, gsize *left)
{
    for (const char *at = text; *at != '\0' && *left > 0; at++) {
        const char *behind;
        const LhShellWord *open = open_at(sh, at, &behind);

        --*left;
        if (open == NULL) {
            g_string_append_c(plain->text, *at);
            continue;
        }
        taint_open(plain, open);
        add_plain(sh, plain, open->text->str, left);
        at = behind - 1;
    }
}

LhShellWord *
lh_shell_word_plain(const LhShell *sh, const LhShellWord *word, bool *whole)
{
    LhShellWord *plain = lh_shell_word_new("", word->line, word->column);
    gsize left = LH_SHELL_WORD_BYTES_MAX;

    add_plain(sh, plain, word->text->str, &left);
    *whole = left > 0;
    taint(plain, word->unknown);
    taint_open(plain, word);
    return plain;
}

/* NOLINTEND(misc-no-recursion) */

static void
add_text(Making *m, const char *text)
{
    g_string_append(begin_word(m, m->line, m->column)->text, text);
}

/* What cannot be worked out stays as it is written. */
static void
add_unknown(Making *m, const char *from, const char *to, const char *variable)
{
    g_string_append_len(begin_word(m, m->line, m->column)->text, from, to - from);
    taint(m->word, variable);
}

/* ---- variables ---- */

LhShellVariable *
lh_shell_set_variable(const LhShell *sh, const char *name)
{
    LhShellVariable *variable = g_hash_table_lookup(sh->variables, name);

    if (variable != NULL)
        variable->named = true;
    return variable;
}

LhShellVariable *
lh_shell_variable(const LhShell *sh, const char *name)
{
    LhShellVariable *variable = lh_shell_set_variable(sh, name);

    if (variable != NULL)
        variable->used = true;
    return variable;
}

/* The mark of a text that the open branch sets. Caller frees. */
static char *
leave_open(LhShell *sh, const char *name, const char *text, const LhShellWord *where)
{
    LhShellWord *open = lh_shell_word_new(text, where->line, where->column);

    open->open_line = sh->open_line;
    open->open_variable = g_intern_string(sh->open_variable[0] != '\0' ? sh->open_variable : name);
    open->unknown = g_strdup(open->open_variable);
    sh->bytes += open->text->len + BYTES_OF_OPEN;
    g_ptr_array_add(sh->opens, open);
    return g_strdup_printf("%c%u%c", LH_SHELL_OPENS, sh->opens->len - 1, LH_SHELL_CLOSES);
}

char *
lh_shell_marked(LhShell *sh, const LhShellWord *word)
{
    if (word->open_line == 0)
        return g_strdup(word->text->str);
    sh->bytes += word->text->len + BYTES_OF_OPEN;
    g_ptr_array_add(sh->opens, lh_shell_word_copy(word));
    return g_strdup_printf("%c%u%c", LH_SHELL_OPENS, sh->opens->len - 1, LH_SHELL_CLOSES);
}

/* What both texts begin with, up to a blank in both. */
static gsize
common_length(const char *a, const char *b)
{
    gsize length = 0, whole = 0;

    for (;; length++) {
        if ((a[length] == '\0' || g_ascii_isspace(a[length])) &&
            (b[length] == '\0' || g_ascii_isspace(b[length])))
            whole = length;
        if (a[length] == '\0' || a[length] != b[length])
            return whole;
    }
}

/* Whether options stand in it, or in what is open of it. */
static bool
has_option(const LhShell *sh, const char *text)
{
    bool whole;
    LhShellWord *word = lh_shell_word_new(text, 1, 1);
    LhShellWord *plain = lh_shell_word_plain(sh, word, &whole);
    const char *all = plain->text->str;
    const bool has = all[strspn(all, " \t\n")] == '-' || strstr(all, " -") != NULL;

    lh_shell_word_free(word);
    lh_shell_word_free(plain);
    return has;
}

/* One word that an open branch sets: what it begins with in either case, and then, open, what
 * it has in one and in the other. Where that is no options but a value, it is not known. */
static LhShellWord *
open_word(LhShell *sh, const char *name, const char *before, const LhShellWord *set)
{
    const gsize common = common_length(before, set->text->str);
    const char *one = before + common, *other = set->text->str + common;
    const bool options = has_option(sh, one) || has_option(sh, other);
    g_autofree char *text =
        options ? g_strdup_printf("%s %s", one, other) : g_strdup_printf("$%s", name);
    g_autofree char *mark = leave_open(sh, name, text, set);
    LhShellWord *word = lh_shell_word_copy(set);

    g_string_truncate(word->text, common);
    g_string_append_printf(word->text, "%s%s", common > 0 ? " " : "", mark);
    g_free(word->unknown);
    word->unknown = g_strdup(sh->open_variable[0] != '\0' ? sh->open_variable : name);
    return word;
}

/* What an open branch sets is as open as that. */
static GPtrArray *
open_words(LhShell *sh, const char *name, const GPtrArray *before, const GPtrArray *set, bool list)
{
    GPtrArray *words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    const guint had = before != NULL ? before->len : 0;
    guint same = 0;

    if (!list) {
        const LhShellWord *first = had > 0 ? g_ptr_array_index(before, 0) : NULL;
        LhShellWord *none = lh_shell_word_new("", 1, 1);

        g_ptr_array_add(words, open_word(sh, name, first != NULL ? first->text->str : "",
                                         set->len > 0 ? g_ptr_array_index(set, 0) : none));
        lh_shell_word_free(none);
        return words;
    }
    while (same < MIN(had, set->len) &&
           strcmp(((LhShellWord *)g_ptr_array_index(before, same))->text->str,
                  ((LhShellWord *)g_ptr_array_index(set, same))->text->str) == 0)
        same++;
    for (guint i = 0; i < had + set->len - same; i++) {
        LhShellWord *word = lh_shell_word_copy(i < had ? g_ptr_array_index(before, i)
                                                       : g_ptr_array_index(set, i - had + same));

        if (i >= same) {
            g_autofree char *mark = leave_open(sh, name, word->text->str, word);

            g_string_assign(word->text, mark);
        }
        g_ptr_array_add(words, word);
    }
    return words;
}

static bool
has_words(const LhShellVariable *variable, const GPtrArray *words)
{
    if (variable == NULL || variable->words->len != words->len)
        return false;
    for (guint i = 0; i < words->len; i++) {
        const LhShellWord *a = g_ptr_array_index(words, i);
        const LhShellWord *b = g_ptr_array_index(variable->words, i);

        if (strcmp(a->text->str, b->text->str) != 0)
            return false;
    }
    return true;
}

void
lh_shell_set(LhShell *sh, const char *name, GPtrArray *words, bool list)
{
    LhShellVariable *variable = lh_shell_set_variable(sh, name);
    const bool used = variable != NULL && variable->used;

    if (sh->mode == LH_SHELL_SKIPS || (variable != NULL && variable->given) ||
        (sh->mode == LH_SHELL_MAY_RUN && has_words(variable, words))) {
        g_ptr_array_unref(words);
        return;
    }
    if (sh->mode == LH_SHELL_MAY_RUN) {
        GPtrArray *open =
            open_words(sh, name, variable != NULL ? variable->words : NULL, words, list);

        g_ptr_array_unref(words);
        words = open;
    }
    variable = g_new0(LhShellVariable, 1);
    *variable = (LhShellVariable){ .words = words, .list = list, .used = used };
    g_hash_table_replace(sh->variables, g_strdup(name), variable);
}

/* "$1", "$2"; NULL: there is none. Those of a script are not known, but may be given. */
static const LhShellWord *
argument_of(const LhShell *sh, const char *name)
{
    const guint64 index = g_ascii_strtoull(name, NULL, 10);

    return index >= 1 && index <= sh->arguments->len
               ? g_ptr_array_index(sh->arguments, (guint)index - 1)
               : NULL;
}

/* The value of "NAME", of an element of a list, or of an argument; NULL: it has none. */
static const LhShellWord *
value_of(const LhShell *sh, const char *name, guint index)
{
    const LhShellVariable *variable = lh_shell_variable(sh, name);

    if (g_ascii_isdigit(name[0]) && argument_of(sh, name) != NULL)
        return argument_of(sh, name);
    return variable != NULL && index < variable->words->len
               ? g_ptr_array_index(variable->words, index)
               : NULL;
}

static void
add_list(const LhShell *sh, Making *m, const GPtrArray *words, bool quoted, bool star)
{
    for (guint i = 0; i < words->len; i++) {
        const LhShellWord *word = g_ptr_array_index(words, i);

        if (i > 0 && m->splits && !(quoted && star))
            finish_word(m);
        else if (i > 0)
            add_text(m, " ");
        if (quoted && m->splits && !star)
            begin_word(m, word->line, word->column);
        add_value(sh, m, word, quoted);
    }
}

/* ---- "${...}" ---- */

/* What stands behind the name in "${NAME...}". */
typedef struct {
    char *name;
    char subscript; /* '@', '*', 'i': an index, '\0': none */
    guint index;
    bool counts;            /* "${#NAME}" */
    const char *rest, *end; /* ":-value", up to "}" */
} Parameter;

/* The "}" that belongs to the "{" before @at, or NULL. */
static const char *
find_brace(const LhShell *sh, const char *at)
{
    unsigned depth = 1;

    for (; at < sh->here.end; at++) {
        if (*at == '\\' && at + 1 < sh->here.end)
            at++;
        else if (*at == '{')
            depth++;
        else if (*at == '}' && --depth == 0)
            return at;
    }
    return NULL;
}

static bool
read_parameter(const char *at, const char *end, Parameter *p)
{
    gsize length;
    char *behind;

    *p = (Parameter){ .end = end };
    p->counts = *at == '#' && at + 1 < end;
    at += p->counts ? 1 : 0;
    length = lh_shell_name_length(at);
    if (length == 0)
        length = MIN(strspn(at, "0123456789"), (gsize)(end - at));
    if (length == 0 || at + length > end)
        return false;
    p->name = g_strndup(at, length);
    at += length;
    if (at < end && *at == '[') {
        p->subscript = at[1] == '@' || at[1] == '*' ? at[1] : 'i';
        p->index = (guint)g_ascii_strtoull(at + 1, &behind, 10);
        at = p->subscript == 'i' ? behind : at + 2;
        if (at >= end || *at != ']')
            return false;
        at++;
    }
    p->rest = at;
    return true;
}

/* "%.sh", "##*x" and the like: the shortest or longest part of the text that the pattern fits is
 * taken away. */
static void
trim(LhShellWord *word, const char *pattern, bool front, bool longest)
{
    const gsize length = word->text->len;

    for (gsize i = 0; i <= length; i++) {
        const gsize taken = longest ? length - i : i;
        g_autofree char *part =
            front ? g_strndup(word->text->str, taken) : g_strdup(word->text->str + length - taken);

        if (fnmatch(pattern, part, 0) != 0)
            continue;
        if (front)
            g_string_erase(word->text, 0, (gssize)taken);
        else
            g_string_truncate(word->text, length - taken);
        return;
    }
}

/* Those operators that change text; false: it is none of them. What trying every length takes is
 * counted as bytes are. */
static bool
add_changed(LhShell *sh, Making *m, const Parameter *p, const LhShellWord *value, bool quoted)
{
    g_autofree char *rest = g_strndup(p->rest, (gsize)(p->end - p->rest));
    LhShellWord *copy;
    const bool twice = rest[0] != '\0' && rest[1] == rest[0];

    if (strchr("%#,^", rest[0]) == NULL || strpbrk(rest, "$`'\"\\") != NULL ||
        strchr(value->text->str, LH_SHELL_OPENS) != NULL ||
        ((rest[0] == ',' || rest[0] == '^') && rest[2] != '\0'))
        return false;
    sh->bytes += value->text->len * (value->text->len / WORK_OF_BYTE + strlen(rest));
    if (sh->bytes > LH_SHELL_BYTES_MAX)
        return false;
    copy = lh_shell_word_copy(value);
    if (rest[0] == '%' || rest[0] == '#') {
        trim(copy, rest + (twice ? 2 : 1), rest[0] == '#', twice);
    } else {
        for (gsize i = 0; i < (twice ? copy->text->len : MIN(copy->text->len, 1)); i++)
            copy->text->str[i] = rest[0] == ',' ? g_ascii_tolower(copy->text->str[i])
                                                : g_ascii_toupper(copy->text->str[i]);
    }
    add_value(sh, m, copy, quoted);
    lh_shell_word_free(copy);
    return true;
}

/* The text between two places of the script, as part of the word. */
static bool
take_range(LhShell *sh, Making *m, const char *from, const char *to, bool quoted)
{
    const LhShellPlace here = sh->here;
    bool ok;

    if (sh->depth >= LH_SHELL_DEPTH_MAX)
        return lh_shell_fail(sh, here.line, here.column, "variables are nested too deeply");
    sh->depth++;
    sh->here.at = from;
    sh->here.end = to;
    ok = take_up_to(sh, m, quoted, NULL);
    sh->depth--;
    sh->here = here;
    return ok;
}

/* "${NAME:-value}" and the other operators that choose; *@taken: it was one. */
static bool
take_choice(LhShell *sh, Making *m, const Parameter *p, const LhShellWord *value, bool quoted,
            bool *taken)
{
    const char *rest = p->rest;
    const bool colon = *rest == ':' && rest + 1 < p->end && strchr("-=+?", rest[1]) != NULL;
    const char sign = colon ? rest[1] : *rest;
    const bool there = value != NULL && (!colon || value->text->len > 0);

    *taken = rest < p->end && strchr("-=+?", sign) != NULL;
    if (!*taken)
        return true;
    rest += colon ? 2 : 1;
    if (sign == '+')
        return !there || take_range(sh, m, rest, p->end, quoted);
    if (there) {
        add_value(sh, m, value, quoted);
        return true;
    }
    if (sign == '?')
        return true;
    if (sign == '=' && !g_ascii_isdigit(p->name[0])) {
        GPtrArray *words = g_ptr_array_new_with_free_func(lh_shell_word_free);
        Making inner = { .words = words, .line = m->line, .column = m->column };

        if (!take_range(sh, &inner, rest, p->end, true)) {
            g_ptr_array_unref(words);
            return false;
        }
        begin_word(&inner, m->line, m->column);
        finish_word(&inner);
        lh_shell_set(sh, p->name, words, false);
    }
    return take_range(sh, m, rest, p->end, quoted);
}

static void
add_count(const LhShell *sh, Making *m, const Parameter *p)
{
    const LhShellVariable *variable = lh_shell_variable(sh, p->name);
    const LhShellWord *value = value_of(sh, p->name, 0);
    g_autofree char *text =
        g_strdup_printf("%u", p->subscript != '\0' ? (variable != NULL ? variable->words->len : 0)
                                                   : (value != NULL ? (guint)value->text->len : 0));

    add_text(m, text);
}

static bool
take_parameter(LhShell *sh, Making *m, const Parameter *p, const char *from, bool quoted)
{
    const LhShellVariable *variable = lh_shell_variable(sh, p->name);
    const LhShellWord *value = value_of(sh, p->name, p->subscript == 'i' ? p->index : 0);
    bool taken = false, ok;

    if (p->counts) {
        add_count(sh, m, p);
        return true;
    }
    if (p->rest == p->end && (p->subscript == '@' || p->subscript == '*')) {
        if (variable != NULL)
            add_list(sh, m, variable->words, quoted, p->subscript == '*');
        return true;
    }
    ok = take_choice(sh, m, p, value, quoted, &taken);
    if (!ok || taken)
        return ok;
    if (value != NULL && p->rest == p->end)
        add_value(sh, m, value, quoted);
    else if (value == NULL || !add_changed(sh, m, p, value, quoted))
        add_unknown(m, from, p->end + 1, value == NULL ? p->name : value->unknown);
    return true;
}

/* "${NAME...}". */
static bool
take_braced(LhShell *sh, Making *m, bool quoted)
{
    const char *from = sh->here.at, *end = find_brace(sh, from + 2);
    Parameter p;
    bool ok = true;

    if (end == NULL)
        return lh_shell_fail(sh, sh->here.line, sh->here.column, "the \"${\" has no end");
    if (read_parameter(from + 2, end, &p))
        ok = take_parameter(sh, m, &p, from, quoted);
    else
        add_unknown(m, from, end + 1, "");
    g_free(p.name);
    while (ok && sh->here.at <= end)
        lh_shell_step(sh);
    return ok;
}

/* ---- "$" ---- */

bool
lh_shell_take_parentheses(LhShell *sh, GString *out)
{
    const LhShellPlace start = sh->here;
    unsigned depth = 0;
    char quote = '\0';

    do {
        const char c = lh_shell_look(sh);

        if (sh->here.at >= sh->here.end)
            return lh_shell_fail(sh, start.line, start.column, "the \"(\" has no end");
        if (quote != '\0')
            quote = c == quote ? '\0' : quote;
        else if (c == '\'' || c == '"')
            quote = c;
        else if (c == '(')
            depth++;
        else if (c == ')')
            depth--;
        g_string_append_c(out, c);
        lh_shell_step(sh);
    } while (depth > 0);
    return true;
}

/* The sum that "expr A / B" works out; NULL: it is another command. Caller frees. */
static char *
sum_of_expr(const char *inner)
{
    g_auto(GStrv) words = NULL;

    inner += strspn(inner, " \t");
    if (!g_str_has_prefix(inner, "expr "))
        return NULL;
    words = g_strsplit(inner + strlen("expr "), "\\", -1); /* "\*" stands for "*" */
    return g_strjoinv("", words);
}

static bool
add_sum(LhShell *sh, Making *m, const char *sum, const char **unknown)
{
    g_autofree char *number = NULL;
    gint64 value;

    if (!lh_shell_arithmetic(sh, sum, &value, unknown))
        return false;
    number = g_strdup_printf("%" PRIi64, value);
    add_text(m, number);
    return true;
}

/* "$(cat <<END ...)", where it begins with "cat <<": the document. *@taken: it was one. */
static bool
take_cat(LhShell *sh, Making *m, bool quoted, bool *taken)
{
    const LhShellPlace back = sh->here;
    g_autoptr(GPtrArray) ends = g_ptr_array_new_with_free_func(lh_shell_word_free);
    g_autoptr(LhShellText) text = NULL;
    g_autofree char *written = NULL;
    const LhShellPlace behind = sh->behind;
    const char *from;
    bool tabs, quotes;

    *taken = false;
    if (!lh_shell_sees(sh, "(cat <<") || lh_shell_sees(sh, "(cat <<<"))
        return true;
    for (gsize i = 0; i < strlen("(cat <<"); i++)
        lh_shell_step(sh);
    tabs = lh_shell_look(sh) == '-';
    if (tabs)
        lh_shell_step(sh);
    lh_shell_skip(sh, false);
    from = sh->here.at;
    if (!lh_shell_take_word(sh, false, ends))
        return false;
    written = g_strndup(from, (gsize)(sh->here.at - from));
    quotes = strpbrk(written, "\"'\\") != NULL;
    lh_shell_skip(sh, false);
    if (lh_shell_look(sh) == '\n') {
        sh->behind.at = NULL;
        text = lh_shell_take_body(sh, ((LhShellWord *)g_ptr_array_index(ends, 0))->text->str, tabs,
                                  !quotes);
        if (text == NULL)
            return false;
        sh->here = sh->behind;
        lh_shell_skip(sh, true);
        *taken = lh_shell_look(sh) == ')';
    }
    sh->behind = behind;
    if (*taken) {
        LhShellWord *word = lh_shell_word_new(g_strchomp(text->text), text->line, text->column);

        lh_shell_step(sh);
        add_value(sh, m, word, quoted);
        lh_shell_word_free(word);
    } else {
        sh->here = back;
    }
    return true;
}

/* "$(command)", of which nobody runs any but "expr" and "cat <<END", or "$((1 + 2))". */
static bool
take_substitution(LhShell *sh, Making *m, bool quoted)
{
    const bool arithmetic = lh_shell_sees(sh, "$((");
    g_autoptr(GString) text = g_string_new("$");
    g_autofree char *inner = NULL;
    g_autofree char *sum = NULL;
    const char *unknown = "";
    bool taken;

    lh_shell_step(sh);
    if (!take_cat(sh, m, quoted, &taken))
        return false;
    if (taken)
        return true;
    if (!lh_shell_take_parentheses(sh, text))
        return false;
    inner = g_strndup(text->str + 2, text->len - 3);
    if (arithmetic && g_str_has_suffix(text->str, "))"))
        sum = g_strndup(text->str + 3, text->len - 5);
    else
        sum = sum_of_expr(inner);
    if (sum != NULL && add_sum(sh, m, sum, &unknown))
        return true;
    add_unknown(m, text->str, text->str + text->len, unknown);
    return true;
}

/* "$@", "$#" and the like, of one character. */
static void
take_special(LhShell *sh, Making *m, bool quoted)
{
    const char *at = sh->here.at;
    const char name[] = { at[1], '\0' };
    const LhShellWord *argument = value_of(sh, name, 0);
    g_autofree char *count = g_strdup_printf("%u", sh->arguments->len);

    if (at[1] == '@' || at[1] == '*')
        add_list(sh, m, sh->arguments, quoted, at[1] == '*');
    else if (at[1] == '#')
        add_text(m, count);
    else if (argument != NULL)
        add_value(sh, m, argument, quoted);
    else
        add_unknown(m, at, at + 2, g_ascii_isdigit(at[1]) ? name : "");
    lh_shell_step(sh);
    lh_shell_step(sh);
}

static bool
take_dollar(LhShell *sh, Making *m, bool quoted)
{
    const char *at = sh->here.at;
    const gsize length = at + 1 < sh->here.end ? lh_shell_name_length(at + 1) : 0;
    g_autofree char *name = NULL;
    const LhShellWord *value;

    if (lh_shell_sees(sh, "$("))
        return take_substitution(sh, m, quoted);
    if (lh_shell_sees(sh, "${"))
        return take_braced(sh, m, quoted);
    if (at + 1 < sh->here.end && strchr("@*#?$!0123456789", at[1]) != NULL && at[1] != '\0') {
        take_special(sh, m, quoted);
        return true;
    }
    if (length == 0 || at + 1 + length > sh->here.end) {
        add_text(m, "$");
        lh_shell_step(sh);
        return true;
    }
    name = g_strndup(at + 1, length);
    value = value_of(sh, name, 0);
    if (value != NULL)
        add_value(sh, m, value, quoted);
    else
        add_unknown(m, at, at + 1 + length, name);
    for (gsize i = 0; i <= length; i++)
        lh_shell_step(sh);
    return true;
}

/* ---- quotes ---- */

/* A backslash takes the meaning of the character behind it, and a line end away. */
static void
take_escaped(LhShell *sh, Making *m, bool quoted)
{
    lh_shell_step(sh);
    if (m->document && strchr("$`\\", lh_shell_look(sh)) == NULL) {
        add_text(m, "\\"); /* what stands behind it follows */
        return;
    }
    if (lh_shell_look(sh) == '\r' && sh->here.at + 1 < sh->here.end && sh->here.at[1] == '\n')
        lh_shell_step(sh);
    if (lh_shell_look(sh) == '\n') {
        lh_shell_step(sh);
        return;
    }
    if (quoted && strchr("$`\"\\", lh_shell_look(sh)) == NULL)
        add_text(m, "\\");
    g_string_append_c(begin_word(m, m->line, m->column)->text, lh_shell_look(sh));
    lh_shell_step(sh);
}

static bool
take_quoted(LhShell *sh, Making *m)
{
    const LhShellPlace start = sh->here;
    const char quote[] = { *start.at, '\0' };

    begin_word(m, m->line, m->column);
    lh_shell_step(sh);
    if (quote[0] == '"' && !take_up_to(sh, m, true, quote))
        return false;
    while (quote[0] == '\'' && sh->here.at < sh->here.end && lh_shell_look(sh) != '\'') {
        g_string_append_c(begin_word(m, m->line, m->column)->text, lh_shell_look(sh));
        lh_shell_step(sh);
    }
    if (sh->here.at >= sh->here.end)
        return lh_shell_fail(sh, start.line, start.column, "the quote has no end");
    lh_shell_step(sh);
    return true;
}

static bool
take_backquotes(LhShell *sh, Making *m)
{
    const LhShellPlace start = sh->here;
    g_autofree char *inner = NULL;
    g_autofree char *sum = NULL;
    const char *unknown = "";

    do {
        lh_shell_step(sh);
        if (sh->here.at >= sh->here.end)
            return lh_shell_fail(sh, start.line, start.column, "the quote has no end");
    } while (lh_shell_look(sh) != '`');
    inner = g_strndup(start.at + 1, (gsize)(sh->here.at - start.at - 1));
    sum = sum_of_expr(inner);
    lh_shell_step(sh);
    if (sum == NULL || !add_sum(sh, m, sum, &unknown))
        add_unknown(m, start.at, sh->here.at, unknown);
    return true;
}

/* What is open, where text that has it is read again. */
static bool
take_mark(LhShell *sh, Making *m, bool quoted)
{
    const char *from = sh->here.at, *behind;
    const LhShellWord *open = open_at(sh, from, &behind);

    if (open == NULL)
        return false;
    add_open(sh, m, open, from, (gsize)(behind - from), quoted);
    while (sh->here.at < behind)
        lh_shell_step(sh);
    return true;
}

/* Up to what ends the word, or in quotes up to @end; NULL: up to the end of a range. */
static bool
take_up_to(LhShell *sh, Making *m, bool quoted, const char *end)
{
    bool ok = true;

    while (ok && sh->here.at < sh->here.end) {
        const char c = lh_shell_look(sh);

        if (end != NULL && (end[0] != '\0' ? c == end[0] : lh_shell_ends_word(c)))
            return true;
        if (m->word != NULL && m->word->text->len > LH_SHELL_WORD_BYTES_MAX)
            return lh_shell_fail(sh, m->line, m->column, "a word has more than %d bytes",
                                 LH_SHELL_WORD_BYTES_MAX);
        if (c == '$')
            ok = take_dollar(sh, m, quoted);
        else if (take_mark(sh, m, quoted))
            continue;
        else if (c == '\\' && sh->here.at + 1 < sh->here.end)
            take_escaped(sh, m, quoted);
        else if (c == '`')
            ok = take_backquotes(sh, m);
        else if (!quoted && (c == '"' || c == '\''))
            ok = take_quoted(sh, m);
        else {
            g_string_append_c(begin_word(m, m->line, m->column)->text, c);
            lh_shell_step(sh);
        }
    }
    return ok;
}

bool
lh_shell_take_document(LhShell *sh, const LhShellPlace *from, const char *end, LhShellText *out)
{
    const LhShellPlace back = sh->here;
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    Making m = { .words = words, .document = true, .line = from->line, .column = from->column };
    bool ok;

    sh->here = *from;
    sh->here.end = end;
    begin_word(&m, m.line, m.column);
    ok = take_up_to(sh, &m, true, NULL);
    finish_word(&m);
    sh->here = back;
    out->text = g_strdup(((LhShellWord *)g_ptr_array_index(words, 0))->text->str);
    sh->bytes += strlen(out->text);
    return ok;
}

static bool
check_bytes(LhShell *sh, const Making *m, guint from)
{
    for (guint i = from; i < m->words->len; i++) {
        const LhShellWord *word = g_ptr_array_index(m->words, i);

        sh->bytes += word->text->len + BYTES_OF_WORD;
        if (word->text->len > LH_SHELL_WORD_BYTES_MAX)
            return lh_shell_fail(sh, m->line, m->column, "a word has more than %d bytes",
                                 LH_SHELL_WORD_BYTES_MAX);
    }
    return sh->bytes <= LH_SHELL_BYTES_MAX ||
           lh_shell_fail(sh, m->line, m->column,
                         "up to here, words have more than %d MiB with their variables replaced",
                         LH_SHELL_BYTES_MAX >> 20);
}

bool
lh_shell_take_word(LhShell *sh, bool splits, GPtrArray *words)
{
    Making m = {
        .words = words, .splits = splits, .line = sh->here.line, .column = sh->here.column
    };
    const guint from = words->len;
    const bool ok = take_up_to(sh, &m, false, "");

    if (!splits)
        begin_word(&m, m.line, m.column);
    finish_word(&m);
    sh->bytes += m.opened;
    return ok && check_bytes(sh, &m, from);
}
