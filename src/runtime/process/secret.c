/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/secret.h"

#include "base/error.h"
#include "base/files/file_uses.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IN_ENVIRONMENT "LONGHAUL_SECRET"
#define IN_FILE "LONGHAUL_SECRET_FILE"

/* Why the file is not acceptable as a secret's; NULL: it is. Caller frees. */
static char *
find_fault(const struct stat *file)
{
    if (!S_ISREG(file->st_mode))
        return g_strdup("is not a regular file");
    if (file->st_uid != geteuid())
        return g_strdup_printf("belongs to user %u, and this is user %u: it must be this user's "
                               "own",
                               file->st_uid, geteuid());
    if ((file->st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return g_strdup_printf("is open to others (mode %04o): allowed is mode 0600 or 0400 "
                               "(chmod 600)",
                               file->st_mode & ~(mode_t)S_IFMT);
    return NULL;
}

/* Reads at most @room bytes of the file into @text. Returns their number, or -1 with @error. */
static gssize
read_file(const char *path, char *text, gsize room, GError **error)
{
    g_autofree char *fault = NULL;
    struct stat status;
    gssize count = -1;
    int file;

    if (!lh_file_uses_take(path, LH_FILE_USE_READ, "the file of " IN_FILE, error))
        return -1;
    /* O_NONBLOCK: opening something other than a file must not block. No stdio: its buffer would
     * keep a copy. */
    file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* nocheck:read */
    if (file < 0 || fstat(file, &status) != 0)
        fault = g_strdup_printf("cannot be opened: %s", g_strerror(errno));
    else
        fault = find_fault(&status);
    if (fault == NULL && (count = read(file, text, room)) < 0)
        fault = g_strdup_printf("cannot be read: %s", g_strerror(errno));
    if (file >= 0)
        close(file);
    if (fault != NULL)
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "%s: %s %s", IN_FILE, path, fault);
    return count;
}

/* Checks the @count bytes of the secret. */
static bool
check_secret(const char *variable, const char *text, gsize count, GError **error)
{
    bool printable = true;

    for (gsize i = 0; i < count; i++)
        printable = printable && g_ascii_isgraph(text[i]);
    if (printable && count >= LH_SECRET_BYTES_MIN && count <= LH_SECRET_BYTES_MAX)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "%s: the secret %s; allowed: %u to %u characters, printable ASCII without spaces",
                variable,
                count < LH_SECRET_BYTES_MIN   ? "is too short"
                : count > LH_SECRET_BYTES_MAX ? "is too long"
                                              : "has characters that are not allowed",
                LH_SECRET_BYTES_MIN, LH_SECRET_BYTES_MAX);
    return false;
}

bool
lh_secret_read(LhSecret *secret, GError **error)
{
    const char *value = g_getenv(IN_ENVIRONMENT), *path = g_getenv(IN_FILE);
    char text[LH_SECRET_BYTES_MAX + 2] = { 0 }; /* room for a newline, or for one byte too many */
    gssize count;
    bool ok;

    *secret = (LhSecret){ .bytes = 0 };
    if (value == NULL && path == NULL)
        return true;
    if (value != NULL && path != NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "%s and %s are both in the environment: give one of them", IN_ENVIRONMENT,
                    IN_FILE);
        return false;
    }
    if (value != NULL)
        count = (gssize)g_strlcpy(text, value, sizeof(text));
    else
        count = read_file(path, text, sizeof(text), error);
    if (path != NULL && count > 0 && text[count - 1] == '\n')
        count--;
    ok = count >= 0 && check_secret(value != NULL ? IN_ENVIRONMENT : IN_FILE, text,
                                    MIN((gsize)count, sizeof(text)), error);
    if (ok) {
        memcpy(secret->text, text, (gsize)count);
        secret->bytes = (gsize)count;
        secret->given = true;
    }
    explicit_bzero(text, sizeof(text));
    return ok;
}

void
lh_secret_clear(LhSecret *secret)
{
    explicit_bzero(secret, sizeof(*secret));
}
