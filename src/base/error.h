/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of the whole tree. One domain: what a caller (in the end, the shell) needs to know is
 * which of these things went wrong, so the codes are the exit codes of `longhaul`. The message says
 * the rest: file, line, field, what was found, what is allowed.
 */
#pragma once

#include <glib.h>

#define LH_ERROR (lh_error_quark())

/* The value of each code is the exit status of a command that ends with it. */
typedef enum {
    LH_ERROR_NO = 1,            /* the answer is no: infeasible, not proven, out of tolerance */
    LH_ERROR_USAGE = 2,         /* a command line that cannot be understood */
    LH_ERROR_INPUT = 3,         /* a file or value that cannot be used */
    LH_ERROR_RUNTIME = 4,       /* something failed while running */
    LH_ERROR_INTERRUPTED = 130, /* Ctrl-C or SIGTERM ended it, as shells put it: 128 + SIGINT */
} LhErrorCode;

GQuark lh_error_quark(void);

/* The domain of errors that are symptoms: others have not done what this process waits for, and one
 * of them, or what is between, is the reason. The code is LH_ERROR_RUNTIME. */
#define LH_WAITED (lh_waited_quark())
GQuark lh_waited_quark(void);

/* Sets @error: the file @path cannot be read, because of @cause, an errno. LH_ERROR_INPUT, or
 * LH_ERROR_RUNTIME if memory is the cause. */
void lh_error_read(const char *path, int cause, GError **error);

/*
 * The candidate nearest to @word (edit distance at most a third of its length, at least 1; two
 * letters swapped count as one edit), the first of them if several are, or NULL. @candidates is
 * NULL-terminated; the result is borrowed from it. For "did you mean" in messages.
 */
const char *lh_nearest_word(const char *word, const char *const *candidates);
