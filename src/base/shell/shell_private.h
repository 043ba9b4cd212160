/*
 * Private to shell*.c.
 */
#pragma once

#include "base/shell/shell.h"

#define LH_SHELL_DEPTH_MAX 32              /* of what stands within another */
#define LH_SHELL_BYTES_MAX (4 * (1 << 20)) /* of all words together */

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

/* ---- words ---- */

void lh_shell_word_free(gpointer word);
LhShellWord *lh_shell_word_new(const char *text, guint line, guint column);
LhShellWord *lh_shell_word_copy(const LhShellWord *word);
/* A copy of @word in whose text what is open stands itself, and not its mark; *@whole: not more
 * than a word may have. */
LhShellWord *lh_shell_word_plain(const LhShell *sh, const LhShellWord *word, bool *whole);

/* Its text, or where it is open, a mark of it. Caller frees. */
char *lh_shell_marked(LhShell *sh, const LhShellWord *word);

/* Appends the word here to @words: none, one, or as many as its variables have. Where not @splits,
 * exactly one. */
bool lh_shell_take_word(LhShell *sh, bool splits, GPtrArray *words);
/* The text between two places as a document has it: variables are replaced, quotes are not. */
bool lh_shell_take_document(LhShell *sh, const LhShellPlace *from, const char *end,
                            LhShellText *out);
/* Over the text in parentheses, from "(" on, which is appended as it is written. */
bool lh_shell_take_parentheses(LhShell *sh, GString *out);

/* One that the script reads here, and one that it only sets; NULL: there is none. */
LhShellVariable *lh_shell_variable(const LhShell *sh, const char *name);
LhShellVariable *lh_shell_set_variable(const LhShell *sh, const char *name);
/* Takes @words over. */
void lh_shell_set(LhShell *sh, const char *name, GPtrArray *words, bool list);

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
/* Leaves the status open. @variable: that would decide it, or NULL. */
void lh_shell_leave_open(LhShell *sh, guint line, const char *variable);
