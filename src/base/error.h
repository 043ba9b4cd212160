/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of the whole tree. There is one domain; its codes are the exit codes of `longhaul`, since
 * the kind of failure is what a caller (finally the shell) needs to know. The message has the rest:
 * file, line, field, what was found, what is allowed.
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
    LH_ERROR_INTERRUPTED = 130, /* ended by Ctrl-C or SIGTERM; 128 + SIGINT, as shells report it */
} LhErrorCode;

GQuark lh_error_quark(void);

/* Domain of errors that are symptoms: another process did not do what this one waits for, and it,
 * or the connection, is the cause. The code is LH_ERROR_RUNTIME. */
#define LH_WAITED (lh_waited_quark())
GQuark lh_waited_quark(void);

/* Sets @error: the file @path cannot be read because of @cause, an errno. LH_ERROR_INPUT, or
 * LH_ERROR_RUNTIME for lack of memory. */
void lh_error_read(const char *path, int cause, GError **error);

/* g_strdup_vprintf() of a message that quotes text: valid UTF-8 even where a precision ("%.60s")
 * cuts a character in two. Caller frees. */
char *lh_error_text(const char *format, va_list args) G_GNUC_PRINTF(1, 0);

/*
 * The candidate nearest to @word, the first of several, or NULL: edit distance at most a third of
 * its length, at least 1; swapping two letters is one edit. @candidates is NULL-terminated; the
 * result is borrowed from it. For "did you mean" in messages.
 */
const char *lh_nearest_word(const char *word, const char *const *candidates);
