/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to shell*.c: the state of a script that is followed, and what each part of it is read by.
 */
#pragma once

#include "base/shell/shell.h"

#define LH_SHELL_DEPTH_MAX 32              /* of what stands within another */
#define LH_SHELL_BYTES_MAX (4 * (1 << 20)) /* of all words together */
/* What something open counts for beside its own bytes: so few of them that they may nest. */
#define LH_SHELL_BYTES_OF_OPEN 1024

/* Around the number of what is open, in the text of a word: so it stays what it is through
 * assignments, documents and eval. */
#define LH_SHELL_OPENS '\002'
#define LH_SHELL_CLOSES '\003'

typedef enum {
    LH_SHELL_RUNS,
    LH_SHELL_MAY_RUN, /* it depends on what the script does not say */
    LH_SHELL_SKIPS,
} LhShellMode;

typedef enum { LH_SHELL_YES, LH_SHELL_NO, LH_SHELL_OPEN } LhShellStatus;

/* Where in the text a reader is. */
typedef struct {
    const char *at, *end;
    guint line, column;
} LhShellPlace;

typedef struct {
    GPtrArray *words; /* of LhShellWord *: one, or those of a list */
    bool list;
    bool given; /* from outside: it stays */
    bool named; /* the script sets or reads it */
    bool used;  /* the script reads it */
} LhShellVariable;

/* Text that a script holds for a command: "<<END", or what it has written into a file. */
typedef struct {
    char *text;
    guint line, column; /* where it begins */
    bool lines;         /* its lines are those of the script: else all of it has one place */
    bool used;          /* a command has run it, or been given it */
    LhShellOpen open;   /* whether it has been written */
} LhShellText;

typedef struct {
    const char *file;
    LhShellPlace here;
    bool within;           /* a string that a command runs: all of it has one place */
    GHashTable *variables; /* name -> LhShellVariable */
    GHashTable *functions; /* name -> LhShellPlace, behind its "{" */
    GHashTable *files;     /* path -> LhShellText, which the script has written into it */
    GPtrArray *opens;      /* of LhShellWord *: what is open, by its number */
    GPtrArray *kept;       /* of char *: texts that functions may stand in */
    GPtrArray *arguments;  /* of LhShellWord *: "$1" and so on */
    gsize bytes;           /* of words so far */
    unsigned depth;
    LhShellMode mode;
    LhShellStatus status; /* of the last command */
    /* The condition that the mode, or the status, is open for. */
    guint open_line, status_line;
    const char *open_variable, *status_variable; /* interned; "": none */
    bool ended;
    guint ended_line;
    LhShellPlace behind; /* the documents that begin behind this line; `at` NULL: there are none */
    LhShellText *piped;  /* what the command before "|" hands on; NULL: it is not known */
    const LhShellAsked *asked;
    GError **error;
} LhShell;

/* ---- reading ---- */

/* Sets the error at a place; returns false. */
bool lh_shell_fail(const LhShell *sh, guint line, guint column, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

char lh_shell_look(const LhShell *sh);
bool lh_shell_sees(const LhShell *sh, const char *text); /* whether @text stands here */
void lh_shell_step(LhShell *sh);                         /* over one byte */
/* Over blanks, comments and, if @lines, line ends with the documents that begin behind them. */
void lh_shell_skip(LhShell *sh, bool lines);
bool lh_shell_ends_word(char c);
gsize lh_shell_name_length(const char *text); /* of the variable's name that it begins with */
/* Whether this very word stands here, in no quotes. */
bool lh_shell_sees_word(const LhShell *sh, const char *word);
void lh_shell_step_over(LhShell *sh, const char *word); /* as many bytes as it has */

/* ---- what may be run ---- */

/* What is left of the mode when a command follows one that ended with this status, which must be
 * @wanted for it. */
LhShellMode lh_shell_mode_after(const LhShell *sh, LhShellStatus wanted);
/* Enters @mode, and returns the one before; the condition that is open is the last command's,
 * unless one was already. */
LhShellMode lh_shell_enter_mode(LhShell *sh, LhShellMode mode);
/* Leaves the status open. @variable: that would decide it, or NULL. */
void lh_shell_leave_open(LhShell *sh, guint line, const char *variable);

/* ---- words ---- */

void lh_shell_word_free(gpointer word);
LhShellWord *lh_shell_word_new(const char *text, guint line, guint column);
LhShellWord *lh_shell_word_copy(const LhShellWord *word);
/* A copy of @word in whose text what is open stands itself, and not its mark; *@whole: not more
 * than a word may have. */
LhShellWord *lh_shell_word_plain(const LhShell *sh, const LhShellWord *word, bool *whole);

/* What of @word cannot be worked out: the variable @unknown, unless another is named already. */
void lh_shell_taint(LhShellWord *word, const char *unknown);
/* @word is from here on as open as @value; what left it open first is named. */
void lh_shell_taint_open(LhShellWord *word, const LhShellWord *value);

/* Its text, or where it is open, a mark of it. Caller frees. */
char *lh_shell_marked(LhShell *sh, const LhShellWord *word);
/* What is open, of the mark at @at; NULL: it is none. *@behind: where the mark ends. */
const LhShellWord *lh_shell_open_at(const LhShell *sh, const char *at, const char **behind);

/* ---- words in the making ---- */

/* Words that are being made. */
typedef struct {
    GPtrArray *words;
    LhShellWord *word; /* the one that is not complete; NULL: none has begun */
    bool splits;
    bool document;      /* quotes are text, and escaped line ends stay */
    guint line, column; /* where it all began */
    gsize opened;       /* bytes of what is open */
} LhShellMaking;

/* The word that text is added to, which stands at this place if it begins now. */
LhShellWord *lh_shell_begin_word(LhShellMaking *m, guint line, guint column);
void lh_shell_finish_word(LhShellMaking *m);
/* Adds what is open, which has this @mark: where words are split it becomes words; else its mark is
 * kept. */
void lh_shell_add_open(const LhShell *sh, LhShellMaking *m, const LhShellWord *open,
                       const char *mark, gsize length, bool quoted);
/* Adds what a variable has. */
void lh_shell_add_value(const LhShell *sh, LhShellMaking *m, const LhShellWord *value, bool quoted);
/* Adds what a list has. @star: in quotes, all of it is one word. */
void lh_shell_add_list(const LhShell *sh, LhShellMaking *m, const GPtrArray *words, bool quoted,
                       bool star);
void lh_shell_add_text(LhShellMaking *m, const char *text);
/* What cannot be worked out stays as it is written. */
void lh_shell_add_unknown(LhShellMaking *m, const char *from, const char *to, const char *variable);

/* "${NAME...}". */
bool lh_shell_take_braced(LhShell *sh, LhShellMaking *m, bool quoted);
/* Behind "$": "(cat <<END ...)", where it begins with "(cat <<": the document. *@taken: it was
 * one. */
bool lh_shell_take_cat(LhShell *sh, LhShellMaking *m, bool quoted, bool *taken);
/* Behind "$": "(command)", of which nobody runs any but "expr", or "((1 + 2))". */
bool lh_shell_take_substitution(LhShell *sh, LhShellMaking *m);
/* "`command`", likewise. */
bool lh_shell_take_backquotes(LhShell *sh, LhShellMaking *m);
/* Up to what ends the word, or in quotes up to @end; NULL: up to the end of a range. */
bool lh_shell_take_up_to(LhShell *sh, LhShellMaking *m, bool quoted, const char *end);

/* ---- words and documents of the script ---- */

/* Appends the word here to @words: none, one, or as many as its variables have. Where not @splits,
 * exactly one. */
bool lh_shell_take_word(LhShell *sh, bool splits, GPtrArray *words);
/* The text between two places as a document has it: variables are replaced, quotes are not. */
bool lh_shell_take_document(LhShell *sh, const LhShellPlace *from, const char *end,
                            LhShellText *out);
/* Over the text in parentheses, from "(" on, which is appended as it is written. */
bool lh_shell_take_parentheses(LhShell *sh, GString *out);

/* ---- variables ---- */

/* One that the script reads here, and one that it only sets; NULL: there is none. */
LhShellVariable *lh_shell_variable(const LhShell *sh, const char *name);
LhShellVariable *lh_shell_set_variable(const LhShell *sh, const char *name);
/* Takes @words over. */
void lh_shell_set(LhShell *sh, const char *name, GPtrArray *words, bool list);
/* The value of "NAME", of an element of a list, or of an argument; NULL: it has none. */
const LhShellWord *lh_shell_value_of(const LhShell *sh, const char *name, guint index);

/* Whether "NAME=", "NAME+=" or "NAME[1]=" stands here. */
bool lh_shell_sees_assignment(const LhShell *sh);
bool lh_shell_run_assignment(LhShell *sh); /* the one that stands here */

/* ---- texts ---- */

void lh_shell_text_free(gpointer text); /* or NULL */
LhShellText *lh_shell_text_new(const char *text, const LhShellWord *word);
LhShellText *lh_shell_text_copy(const LhShellText *text); /* or NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhShellText, lh_shell_text_free)
/* What stands behind this line, or the documents before, up to a line of @end; leaves where that is
 * to be skipped. @tabs: that lines begin with are taken away; @expands: variables are replaced.
 * NULL, with the error set: a variable in it cannot be. Caller frees. */
LhShellText *lh_shell_take_body(LhShell *sh, const char *end, bool tabs, bool expands);
/* Takes @text over. */
void lh_shell_write(LhShell *sh, const char *path, LhShellText *text, bool appends);
LhShellText *lh_shell_written(const LhShell *sh, const char *path); /* NULL: the script has not */

/* What a command reads and writes. */
typedef struct {
    LhShellText *input; /* NULL: it is not known */
    char *output;       /* NULL: no file */
    bool appends;
} LhShellStreams;

/* Whether digits and "<" or ">", or "&>", stand here. */
bool lh_shell_sees_redirection(const LhShell *sh);
/* "> file", "2>&1", "<<END", of the stream @number. */
bool lh_shell_take_redirection(LhShell *sh, guint64 number, LhShellStreams *streams);

/* A script within a command. */
typedef struct {
    guint own; /* how many words are the command's: the others are of the script */
    LhShellText *text;
    guint first; /* of the words that are its arguments */
    bool within; /* it is part of this script, as "source" has it */
} LhShellInner;

/* The script that a command of @words runs, @input being what it reads (or NULL); caller frees
 * its text. */
bool lh_shell_find_inner(const LhShell *sh, const GPtrArray *words, const LhShellText *input,
                         LhShellInner *inner);
/* What the command prints, and what it writes of it; NULL: it is not known. Caller frees. */
LhShellText *lh_shell_output_of(LhShell *sh, const GPtrArray *words, const LhShellText *input);
const char *lh_shell_text_at(const GPtrArray *words, guint index); /* "": there is none */

/* ---- conditions ---- */

/* The value of an expression; false: it is none, or has an @unknown variable (interned). */
bool lh_shell_arithmetic(const LhShell *sh, const char *text, gint64 *value, const char **unknown);

/* Sets the status to that of "[", of whose words "]" has been taken away. */
void lh_shell_test(LhShell *sh, const GPtrArray *words, guint line);

/* ---- commands ---- */

/* Commands with "&&" and "||" between them, up to one of @ends, which is left. */
bool lh_shell_run_list(LhShell *sh, const char *const *ends);
bool lh_shell_run_simple(LhShell *sh); /* the command that stands here, which is not compound */
/* Behind "NAME()" and before "{": remembers where the function's body is. */
bool lh_shell_define(LhShell *sh, const char *name);
