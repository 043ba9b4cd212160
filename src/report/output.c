/*
 * Writing results.
 */
#include "report/output.h"

#include "base/error.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define FILE_MODE 0666

static bool
fail(const char *what, int cause, GError **error)
{
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot write %s: %s", what, g_strerror(cause));
    return false;
}

static bool
write_directly(const char *path, const char *text, gsize length, GError **error)
{
    FILE *file = fopen(path, "wb");
    bool ok;
    int cause;

    if (file == NULL)
        return fail(path, errno, error);
    ok = fwrite(text, 1, length, file) == length && fflush(file) == 0;
    cause = errno;
    if (fclose(file) != 0 && ok)
        return fail(path, errno, error);
    return ok || fail(path, cause, error);
}

bool
lh_output_file(const char *path, const char *text, gsize length, GError **error)
{
    g_autoptr(GError) cause = NULL;
    char *target = realpath(path, NULL);
    struct stat info;
    bool ok;

    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        free(target);
        return write_directly(path, text, length, error);
    }
    ok = g_file_set_contents_full(target != NULL ? target : path, text, (gssize)length,
                                  G_FILE_SET_CONTENTS_CONSISTENT, FILE_MODE, &cause);
    free(target);
    if (!ok) {
        const int reason = errno;

        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot write %s: %s", path,
                    g_strerror(reason));
    }
    return ok;
}

bool
lh_output_stdout(const char *text, gsize length, GError **error)
{
    errno = 0;
    if (fwrite(text, 1, length, stdout) != length || fflush(stdout) != 0)
        return fail("standard output", errno, error);
    return true;
}
