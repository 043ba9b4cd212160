/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/real_path.h"

#include <errno.h>
#include <unistd.h>

#define LINKS_MAX 40 /* the kernel's limit */
#define LINK_BYTES_MAX 4096

void
lh_real_path_clear(LhRealPath *place)
{
    g_clear_pointer(&place->path, g_free);
}

/* Target of the symbolic link @path, relative to the working folder; NULL with errno, EINVAL if it
 * is not a link. */
static char *
read_link(const char *path)
{
    char text[LINK_BYTES_MAX + 1];
    const ssize_t length = readlink(path, text, LINK_BYTES_MAX);
    g_autofree char *folder = NULL;

    if (length < 0)
        return NULL;
    text[length] = '\0';
    folder = g_path_get_dirname(path);
    return text[0] == '/' ? g_strdup(text) : g_build_filename(folder, text, NULL);
}

/* The name at the end of @path's symbolic links, whether or not that file exists. NULL with errno.
 * Caller frees. */
static char *
follow(const char *path)
{
    g_autofree char *at = g_strdup(path);

    for (int i = 0; i < LINKS_MAX; i++) {
        char *beyond = read_link(at);

        if (beyond == NULL)
            return errno == EINVAL || errno == ENOENT ? g_steal_pointer(&at) : NULL;
        g_free(at);
        at = beyond;
    }
    errno = ELOOP;
    return NULL;
}

bool
lh_real_path_is_special(const LhRealPath *place)
{
    return place->exists && !S_ISREG(place->info.st_mode);
}

/* Calls stat() first: it handles links that we may not follow, and links whose target is not a
 * name, such as /dev/stdout for a pipe. */
bool
lh_real_path_find(LhRealPath *place, const char *path)
{
    place->path = NULL;
    place->exists = stat(path, &place->info) == 0;
    if (!place->exists && (errno != ENOENT || *path == '\0'))
        return false;
    place->path = lh_real_path_is_special(place) ? g_strdup(path) : follow(path);
    return place->path != NULL;
}
