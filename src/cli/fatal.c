/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exit of a process that GLib would abort. Nothing here may allocate memory. GLib formats its
 * messages in allocated memory; if that fails, it reports the failure the same way, and recurses
 * until the stack overflows. So this file replaces vasprintf(), which GLib uses.
 */
#include "cli/fatal.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512

static void (*discard_unfinished)(void);
static void (*tell_others)(const char *reason);

/* Skips the location in GLib's own source, "../glib/gmem.c:136: ". */
static const char *
without_place(const char *message)
{
    const char *space = strchr(message, ' ');

    return space != NULL && space > message && space[-1] == ':' ? space + 1 : message;
}

void
lh_fatal_tell(void (*tell)(const char *reason))
{
    tell_others = tell;
}

/* Ends the process; several threads may get here. */
G_GNUC_NORETURN static void
end(const char *message)
{
    static gint said;
    char line[LINE_MAX_BYTES];
    const char *text = without_place(message);
    const bool memory = strstr(text, "allocate") != NULL;
    const int length = snprintf(line, sizeof(line), "longhaul: %s: %s\n",
                                memory ? "out of memory" : "error", text);
    ssize_t written;

    if (!g_atomic_int_compare_and_exchange(&said, 0, 1))
        pause(); /* until the first one ends the process */
    /* If standard error is closed, the message is lost. */
    written = write(STDERR_FILENO, line, MIN((size_t)length, sizeof(line) - 1));
    (void)written;
    if (tell_others != NULL)
        tell_others(memory ? "out of memory" : text);
    if (discard_unfinished != NULL)
        discard_unfinished();
    _exit(LH_ERROR_RUNTIME);
}

static void
on_log(const char *domain, GLogLevelFlags level, const char *message, gpointer data)
{
    if ((level & G_LOG_LEVEL_ERROR) != 0)
        end(message);
    g_log_default_handler(domain, level, message, data);
}

void
lh_fatal_install(void (*discard)(void))
{
    discard_unfinished = discard;
    g_log_set_default_handler(on_log, NULL);
}

/* --- replacements of C library functions ---------------------------------------------------------
 */

/* As vasprintf(3), but without memory it ends the process, with the text as the reason. */
static G_GNUC_PRINTF(2, 0) int format_or_end(char **text, const char *format, va_list args)
{
    char start[LINE_MAX_BYTES];
    va_list again;
    int length;

    va_copy(again, args);
    length = vsnprintf(start, sizeof(start), format, again);
    va_end(again);
    *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (length < 0)
        return -1;
    if (*text == NULL)
        end(strstr(start, "failed to allocate") != NULL ? start : "failed to allocate memory");
    return vsnprintf(*text, (size_t)length + 1, format, args);
}

int
vasprintf(char **text, const char *format, va_list args)
{
    return format_or_end(text, format, args);
}

/* The variant called by libraries compiled with fortify checks. */
int __vasprintf_chk(char **text, int flag, const char *format, va_list args) /* NOLINT */
    G_GNUC_PRINTF(3, 0);

int
__vasprintf_chk(char **text, int flag, const char *format, va_list args) /* NOLINT */
{
    (void)flag;
    return format_or_end(text, format, args);
}

/* --- before main() -------------------------------------------------------------------------------
 */

/*
 * GLib's slice allocator aborts by itself. This selects malloc in its place, before GLib's own
 * initialization allocates the first slice (newer GLib has no slices and ignores it). It only sets
 * a variable.
 */
static void
use_malloc(void)
{
    G_GNUC_BEGIN_IGNORE_DEPRECATIONS
    g_slice_set_config(G_SLICE_CONFIG_ALWAYS_MALLOC, TRUE);
    G_GNUC_END_IGNORE_DEPRECATIONS
}

#ifdef __ELF__
__attribute__((section(".preinit_array"),
               used)) static void (*const before_libraries)(void) = use_malloc;
#endif

/* Makes GLib allocate its lazily created thread keys and lock now, since it aborts if it cannot
 * later. */
__attribute__((constructor)) static void
use_glib(void)
{
    const char **charsets;

    (void)g_thread_self();
    (void)g_get_charset(NULL);
    (void)g_get_filename_charsets(&charsets);
    g_debug("the first message needs a key");
    g_error_free(g_error_new_literal(LH_ERROR, LH_ERROR_RUNTIME, "the first error needs a lock"));
}
