/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/file_input.h"

#include "base/allocation.h"
#include "base/error.h"
#include "base/files/file_uses.h"

#include <errno.h>

#define PIECE_BYTES 65536
#define MIB (1u << 20)

FILE *
lh_input_open(const char *path, GError **error)
{
    FILE *file;

    if (!lh_file_uses_take(path, LH_FILE_USE_READ, NULL, error))
        return NULL;
    file = fopen(path, "rb");
    if (file == NULL)
        lh_error_read(path, errno, error);
    return file;
}

/* Grows the buffer by half. */
static bool
grow(const char *path, char **text, gsize *capacity, GError **error)
{
    const gsize wanted = MAX(PIECE_BYTES, *capacity + *capacity / 2);
    char *more = g_try_realloc(*text, wanted);

    if (more == NULL) {
        lh_memory_fail(wanted, path, error);
        return false;
    }
    *text = more;
    *capacity = wanted;
    return true;
}

/* Reads until the end, or one byte more than @most. */
static bool
fill(const char *path, FILE *file, gsize most, char **text, gsize *length, GError **error)
{
    gsize capacity = 0;

    do {
        if (*length + 1 >= capacity && !grow(path, text, &capacity, error))
            return false;
        errno = 0;
        *length += fread(*text + *length, 1, capacity - *length - 1, file);
    } while (feof(file) == 0 && ferror(file) == 0 && *length <= most);
    if (ferror(file) != 0) {
        lh_error_read(path, errno, error);
        return false;
    }
    (*text)[*length] = '\0';
    return true;
}

char *
lh_input_read(const char *path, gsize most, gsize *length, GError **error)
{
    FILE *file = lh_input_open(path, error);
    g_autofree char *text = NULL;
    bool ok;

    *length = 0;
    if (file == NULL)
        return NULL;
    ok = fill(path, file, most, &text, length, error);
    fclose(file);
    if (ok && *length > most) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: larger than %" G_GSIZE_FORMAT " MiB", path, most / MIB);
        ok = false;
    }
    return ok ? g_steal_pointer(&text) : NULL;
}
