/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a program and reading what it prints, and asking what may be the end of the process that
 * is asked. There is no shell; a child ends with us, and it has a deadline.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    const char *const *argv; /* NULL-terminated; argv[0] is looked for in PATH */
    const char *input;       /* its standard input */
    gsize input_length;
    unsigned deadline_s;
} LhSubprocess;

/*
 * Runs the program until it ends, and appends what it prints to @output. LH_ERROR_RUNTIME if it
 * cannot be run, takes too long or fails: the message then quotes the end of its standard error.
 * One at a time.
 */
bool lh_subprocess_run(const LhSubprocess *child, GString *output, GError **error);

/* The answer, or NULL with @error. Caller frees. */
typedef char *(*LhQuestion)(const void *data, GError **error);

/*
 * Asks in a copy of this process, for what others do when they are loaded: one that crashes, ends
 * its process or never returns is then an error (LH_ERROR_RUNTIME), which begins with @name.
 * Nothing of what the question does stays. No other thread may be running, and no file may be in
 * the making (atomic_file.h). One at a time. Caller frees.
 */
char *lh_subprocess_ask(const char *name, LhQuestion question, const void *data,
                        unsigned deadline_s, GError **error);

/* Kills the child that is running, if one is. Async-signal-safe. */
void lh_subprocess_kill(void);
