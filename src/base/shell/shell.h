/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands of a shell script are told, without running anything. Understood are quotes,
 * comments, variables and arrays with +=, "$1" and "${NAME:-value}", $((arithmetic)), if, case,
 * for, &&, functions, eval and expr. Commands themselves do nothing: their files, output and
 * status are not known, so "$(command)" stays as it is written.
 *
 * Scripts within the script are followed like it: documents ("<<END") that a shell or a queue
 * reads, files that it writes by them and runs, the text behind "bash -c", what is given to another
 * host.
 *
 * A condition that the script does not decide (it asks for a variable that nothing sets, or for a
 * file) leaves open what is set in its branches; only where that reaches a command does it matter,
 * and the word says so. What a variable begins with in every case stays certain; options that it
 * has in some of them are its words, and open.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define LH_SHELL_WORD_BYTES_MAX 65536

/* A word that a command is given. */
typedef struct {
    GString *text;
    guint line, column; /* where its text was written */
    char *unknown;   /* a variable in it that the script does not set, "" for what only a shell can
                        work out; NULL: none */
    guint open_line; /* of the condition that leaves it open; 0: none does */
    const char *open_variable; /* that would decide it; interned; "": none */
    gsize open_from;           /* where in the text that begins: what stands before is certain */
} LhShellWord;

/* Where a command stands that may not be run: the line of the condition, and the variable that
 * would decide it ("" for none). */
typedef struct {
    guint line; /* 0: it is run */
    const char *variable;
} LhShellOpen;

/* Is told of a command; @words: of LhShellWord *, at least one. */
typedef bool LhShellCommand(void *data, const GPtrArray *words, LhShellOpen open, GError **error);

/* What is asked of a script. */
typedef struct {
    const GPtrArray *variables; /* "NAME=VALUE": these have that value whatever it sets; or NULL */
    LhShellCommand *call;       /* of each command */
    /* Of each variable that begins with "-", by its place, and that nothing of the script reads:
     * @word is its first, and has its place. NULL: not asked. */
    void (*unused)(void *data, const char *name, const LhShellWord *word);
    /* Of each file that the script writes in any case, at its end. NULL: not asked. */
    void (*written)(void *data, const char *path, const char *text);
    /* Where "exit" ends the script with a status that is not 0. NULL: not asked. */
    void (*ended)(void *data, guint line);
    void *data; /* of all */
} LhShellAsked;

/* Messages are "FILE:LINE:COLUMN: error: ...", LH_ERROR_INPUT. */
bool lh_shell_run(const char *file, const char *text, gsize length, const LhShellAsked *asked,
                  GError **error);
