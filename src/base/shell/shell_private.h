/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to shell*.c: the state of a script that is followed, and its readers.
 */
#pragma once

#include "base/shell/shell.h"

#define LH_SHELL_DEPTH_MAX 32              /* nesting */
#define LH_SHELL_BYTES_MAX (4 * (1 << 20)) /* all words together */
/* Extra bytes charged per open text, so that the number of these, which may nest, stays small. */
#define LH_SHELL_BYTES_OF_OPEN 1024

/* Enclose the number of an open text in the text of a word, so that it survives assignments,
 * here-documents and eval. */
#define LH_SHELL_OPENS '\002'
#define LH_SHELL_CLOSES '\003'

typedef enum {
    LH_SHELL_RUNS,
    LH_SHELL_MAY_RUN, /* depends on an undecided condition */
    LH_SHELL_SKIPS,
} LhShellMode;

typedef enum { LH_SHELL_YES, LH_SHELL_NO, LH_SHELL_OPEN } LhShellStatus;

/* Position of a reader. */
typedef struct {
    const char *at, *end;
    guint line, column;
} LhShellPlace;

typedef struct {
    GPtrArray *words; /* of LhShellWord *: one, or the elements of a list */
    bool list;
    bool given; /* given from outside: it is fixed */
    bool named; /* the script sets or reads it */
    bool used;  /* the script uses it */
} LhShellVariable;

/* Text that a script provides to a command: "<<END", or the contents of a file that it wrote. */
typedef struct {
    char *text;
    guint line, column; /* where it begins */
    bool lines;         /* its lines are lines of the script; false: all of it has one position */
    bool used;          /* a command has run or read it */
    LhShellOpen open;   /* whether it was certainly written */
} LhShellText;

typedef struct {
    const char *file;
    LhShellPlace here;
    bool within;           /* in a string that a command runs: all of it has one position */
    GHashTable *variables; /* name -> LhShellVariable */
    GHashTable *functions; /* name -> LhShellPlace, after its "{" */
    GHashTable *files;     /* path -> LhShellText, the file's contents */
    GPtrArray *opens;      /* of LhShellWord *: open texts, by number */
    GPtrArray *kept;       /* of char *: texts that may contain functions */
    GPtrArray *arguments;  /* of LhShellWord *: "$1" and so on */
    gsize bytes;           /* of all words so far */
    unsigned depth;
    LhShellMode mode;
    LhShellStatus status; /* of the last command */
    /* The undecided condition of the mode, and of the status. */
    guint open_line, status_line;
    const char *open_variable, *status_variable; /* interned; "": none */
    bool ended;
    guint ended_line;
    LhShellPlace behind; /* here-documents that begin after this line; `at` NULL: none */
    LhShellText *piped;  /* output of the command before "|"; NULL: unknown */
    const LhShellAsked *asked;
    GError **error;
} LhShell;

/* ---- reading ---- */

/* Sets the error at a position; returns false. */
bool lh_shell_fail(const LhShell *sh, guint line, guint column, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

char lh_shell_look(const LhShell *sh);
bool lh_shell_sees(const LhShell *sh, const char *text); /* whether @text is next */
void lh_shell_step(LhShell *sh);                         /* skips one byte */
/* Skips blanks, comments and, if @lines, line ends with the here-documents after them. */
void lh_shell_skip(LhShell *sh, bool lines);
bool lh_shell_ends_word(char c);
gsize lh_shell_name_length(const char *text); /* of the variable name at its start */
/* Whether this unquoted word is next. */
bool lh_shell_sees_word(const LhShell *sh, const char *word);
void lh_shell_step_over(LhShell *sh, const char *word); /* skips its bytes */

/* ---- what may be run ---- */

/* The mode of a command after one with the present status, if it runs only when the status is
 * @wanted. */
LhShellMode lh_shell_mode_after(const LhShell *sh, LhShellStatus wanted);
/* Enters @mode and returns the previous one; the undecided condition becomes the last command's,
 * unless there was one already. */
LhShellMode lh_shell_enter_mode(LhShell *sh, LhShellMode mode);
/* Makes the status undecided. @variable: would decide it, or NULL. */
void lh_shell_leave_open(LhShell *sh, guint line, const char *variable);

/* ---- words ---- */

void lh_shell_word_free(gpointer word);
LhShellWord *lh_shell_word_new(const char *text, guint line, guint column);
LhShellWord *lh_shell_word_copy(const LhShellWord *word);
/* Copies @word with its marks replaced by the open texts; *@whole: false if it exceeds the maximum
 * length. */
LhShellWord *lh_shell_word_plain(const LhShell *sh, const LhShellWord *word, bool *whole);

/* Records that the variable @unknown in @word is unknown, unless another one is recorded
 * already. */
void lh_shell_taint(LhShellWord *word, const char *unknown);
/* Makes the rest of @word as open as @value; the first cause is kept. */
void lh_shell_taint_open(LhShellWord *word, const LhShellWord *value);

/* Its text, or a mark if it is open. Caller frees. */
char *lh_shell_marked(LhShell *sh, const LhShellWord *word);
/* The open text of the mark at @at; NULL: no mark. *@behind: the end of the mark. */
const LhShellWord *lh_shell_open_at(const LhShell *sh, const char *at, const char **behind);

/* ---- building words ---- */

/* Words being built. */
typedef struct {
    GPtrArray *words;
    LhShellWord *word; /* the incomplete one; NULL: none */
    bool splits;
    bool document;      /* quotes are plain text, and escaped line ends are kept */
    guint line, column; /* where it began */
    gsize opened;       /* bytes of open texts */
} LhShellMaking;

/* The word to append to; if it begins now, it gets this position. */
LhShellWord *lh_shell_begin_word(LhShellMaking *m, guint line, guint column);
void lh_shell_finish_word(LhShellMaking *m);
/* Adds an open text with its @mark: where words are split it becomes words; else the mark is
 * kept. */
void lh_shell_add_open(const LhShell *sh, LhShellMaking *m, const LhShellWord *open,
                       const char *mark, gsize length, bool quoted);
/* Adds a variable's value. */
void lh_shell_add_value(const LhShell *sh, LhShellMaking *m, const LhShellWord *value, bool quoted);
/* Adds the elements of a list. @star: in quotes they form one word. */
void lh_shell_add_list(const LhShell *sh, LhShellMaking *m, const GPtrArray *words, bool quoted,
                       bool star);
void lh_shell_add_text(LhShellMaking *m, const char *text);
/* Adds text that cannot be evaluated as written. */
void lh_shell_add_unknown(LhShellMaking *m, const char *from, const char *to, const char *variable);

/* Reads "${NAME...}". */
bool lh_shell_take_braced(LhShell *sh, LhShellMaking *m, bool quoted);
/* After "$": reads the here-document of "(cat <<END ...)", if it begins with "(cat <<". *@taken:
 * whether it did. */
bool lh_shell_take_cat(LhShell *sh, LhShellMaking *m, bool quoted, bool *taken);
/* After "$": reads "(command)", which is not run except for "expr", or "((1 + 2))". */
bool lh_shell_take_substitution(LhShell *sh, LhShellMaking *m);
/* Reads "`command`", likewise. */
bool lh_shell_take_backquotes(LhShell *sh, LhShellMaking *m);
/* Reads up to the end of the word, or in quotes up to @end; NULL: up to the end of a range. */
bool lh_shell_take_up_to(LhShell *sh, LhShellMaking *m, bool quoted, const char *end);

/* ---- words and documents of the script ---- */

/* Reads a word and appends it to @words: none, one, or as many as its variables expand to. Without
 * @splits exactly one. */
bool lh_shell_take_word(LhShell *sh, bool splits, GPtrArray *words);
/* Reads the text between two positions as a here-document: variables are expanded, quotes are
 * kept. */
bool lh_shell_take_document(LhShell *sh, const LhShellPlace *from, const char *end,
                            LhShellText *out);
/* Skips text in parentheses, from "(" on, and appends it as written. */
bool lh_shell_take_parentheses(LhShell *sh, GString *out);

/* ---- variables ---- */

/* A variable that the script uses here, and one that it only sets; NULL: unknown. */
LhShellVariable *lh_shell_variable(const LhShell *sh, const char *name);
LhShellVariable *lh_shell_set_variable(const LhShell *sh, const char *name);
/* Takes over @words. */
void lh_shell_set(LhShell *sh, const char *name, GPtrArray *words, bool list);
/* The value of "NAME", of an element of a list, or of an argument; NULL: none. */
const LhShellWord *lh_shell_value_of(const LhShell *sh, const char *name, guint index);

/* Whether "NAME=", "NAME+=" or "NAME[1]=" is next. */
bool lh_shell_sees_assignment(const LhShell *sh);
bool lh_shell_run_assignment(LhShell *sh); /* runs the assignment that is next */

/* ---- texts ---- */

void lh_shell_text_free(gpointer text); /* NULL is allowed */
LhShellText *lh_shell_text_new(const char *text, const LhShellWord *word);
LhShellText *lh_shell_text_copy(const LhShellText *text); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhShellText, lh_shell_text_free)
/* Reads the lines after this one, or after earlier here-documents, up to the line @end, and records
 * that they must be skipped. @tabs: remove leading tabs; @expands: expand variables. NULL with the
 * error set if a variable cannot be expanded. Caller frees. */
LhShellText *lh_shell_take_body(LhShell *sh, const char *end, bool tabs, bool expands);
/* Takes over @text. */
void lh_shell_write(LhShell *sh, const char *path, LhShellText *text, bool appends);
/* NULL: not written by the script. */
LhShellText *lh_shell_written(const LhShell *sh, const char *path);

/* Input and output of a command. */
typedef struct {
    LhShellText *input; /* NULL: unknown */
    char *output;       /* NULL: no file */
    bool appends;
} LhShellStreams;

/* Whether a redirection is next: digits and "<" or ">", or "&>". */
bool lh_shell_sees_redirection(const LhShell *sh);
/* Reads "> file", "2>&1", "<<END", for stream @number. */
bool lh_shell_take_redirection(LhShell *sh, guint64 number, LhShellStreams *streams);

/* A script within a command. */
typedef struct {
    guint own; /* number of words of the command itself; the others belong to the script */
    LhShellText *text;
    guint first; /* index of the first word that is its argument */
    bool within; /* it is part of this script, as with "source" */
} LhShellInner;

/* Finds the script that a command of @words runs; @input is its standard input (or NULL). Caller
 * frees its text. */
bool lh_shell_find_inner(const LhShell *sh, const GPtrArray *words, const LhShellText *input,
                         LhShellInner *inner);
/* The output of a command that is known; NULL: unknown. Caller frees. */
LhShellText *lh_shell_output_of(LhShell *sh, const GPtrArray *words, const LhShellText *input);
const char *lh_shell_text_at(const GPtrArray *words, guint index); /* "" if there is none */

/* ---- conditions ---- */

/* Evaluates an expression; false if it is invalid, or has an @unknown variable (interned). */
bool lh_shell_arithmetic(const LhShell *sh, const char *text, gint64 *value, const char **unknown);

/* Sets the status to that of "[", whose "]" has been removed from @words. */
void lh_shell_test(LhShell *sh, const GPtrArray *words, guint line);

/* ---- commands ---- */

/* Runs commands joined by "&&" and "||", up to one of @ends, which is not skipped. */
bool lh_shell_run_list(LhShell *sh, const char *const *ends);
bool lh_shell_run_simple(LhShell *sh); /* runs the simple command that is next */
/* After "NAME()" and before "{": records the position of the function's body. */
bool lh_shell_define(LhShell *sh, const char *name);
