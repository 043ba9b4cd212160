/*
 * Running a program and reading what it prints. There is no shell; the program ends with us, and it
 * has a deadline.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    const char *const *argv; /* NULL-terminated; argv[0] is looked for in PATH */
    const char *input;       /* its standard input */
    gsize input_length;
    unsigned deadline_s;
} LhChild;

/*
 * Runs the program until it ends, and appends what it prints to @output. LH_ERROR_RUNTIME if it
 * cannot be run, takes too long or fails: the message then quotes the end of its standard error.
 * One at a time.
 */
bool lh_child_run(const LhChild *child, GString *output, GError **error);

/* Kills the program that is running, if one is. Async-signal-safe. */
void lh_child_kill(void);
