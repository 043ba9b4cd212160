/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program and reads its output; also runs a function in a forked copy of this process, in
 * case it crashes. No shell is involved; a child is killed when this process ends or at its
 * deadline.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    const char *const *argv; /* NULL-terminated; argv[0] is searched in PATH */
    const char *input;       /* its standard input */
    gsize input_length;
    unsigned deadline_s;
} LhSubprocess;

/*
 * Runs the program to its end and appends its standard output to @output. LH_ERROR_RUNTIME if it
 * cannot be run, exceeds its deadline or fails: the message then quotes the end of its standard
 * error. One at a time.
 */
bool lh_subprocess_run(const LhSubprocess *child, GString *output, GError **error);

/* Returns the answer, or NULL with @error. Caller frees. */
typedef char *(*LhQuestion)(const void *data, GError **error);

/*
 * Calls @question in a forked copy of this process, for loading code of others: if that crashes,
 * exits or hangs, the result is an error (LH_ERROR_RUNTIME) that begins with @name. Side effects
 * are lost. No other thread may be running, and no file may be unfinished (atomic_file.h). One at a
 * time. Caller frees.
 */
char *lh_subprocess_ask(const char *name, LhQuestion question, const void *data,
                        unsigned deadline_s, GError **error);

/* Kills the running child, if any. Async-signal-safe. */
void lh_subprocess_kill(void);
