/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the commands that a shell script would run and their arguments, without running anything.
 * Supported: quotes, comments, variables and arrays with +=, "$1" and "${NAME:-value}",
 * $((arithmetic)), if, case, for, &&, functions, eval and expr. Commands have no effect: their
 * files, output and status are unknown, so "$(command)" stays as written.
 *
 * Scripts within the script are followed, too: here-documents ("<<END") read by a shell or a queue,
 * files written by them and run, the text after "bash -c", and what is sent to another host.
 *
 * A condition that the script does not decide (it needs a variable that nothing sets, or a file)
 * leaves the settings of its branches undecided ("open"). This matters only if such a word reaches
 * a command, and the word is then marked. The common prefix of a variable's values in all branches
 * stays certain; options that it has only in some branches become words that are open.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define LH_SHELL_WORD_BYTES_MAX 65536

/* A word of a command. */
typedef struct {
    GString *text;
    guint line, column; /* position of its text */
    /* A variable in it that the script does not set; "": something only a shell can compute; NULL:
     * none. */
    char *unknown;
    guint open_line;           /* line of the condition that leaves it open; 0: none */
    const char *open_variable; /* variable that would decide it; interned; "": none */
    /* Where the open part of the text begins: the part before is certain. */
    gsize open_from;
} LhShellWord;

/* An undecided command: the line of its condition, and the variable that would decide it ("" if
 * none). */
typedef struct {
    guint line; /* 0: it is certainly run */
    const char *variable;
} LhShellOpen;

/* Called for a command; @words: of LhShellWord *, at least one. */
typedef bool LhShellCommand(void *data, const GPtrArray *words, LhShellOpen open, GError **error);

/* What to report of a script. */
typedef struct {
    const GPtrArray *variables; /* "NAME=VALUE": fixed values, whatever the script sets; or NULL */
    LhShellCommand *call;       /* called for each command */
    /* Called for each variable that begins with "-" and that the script never uses, by position:
     * @word is its first word, with its position. NULL: not wanted. */
    void (*unused)(void *data, const char *name, const LhShellWord *word);
    /* Called at the end for each file that the script certainly writes. NULL: not wanted. */
    void (*written)(void *data, const char *path, const char *text);
    /* Called if an "exit" with a status other than 0 ends the script. NULL: not wanted. */
    void (*ended)(void *data, guint line);
    void *data; /* for all callbacks */
} LhShellAsked;

/* Follows the script. Messages are "FILE:LINE:COLUMN: error: ...", LH_ERROR_INPUT. */
bool lh_shell_run(const char *file, const char *text, gsize length, const LhShellAsked *asked,
                  GError **error);
