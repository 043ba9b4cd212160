/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drafts, and the list of unfinished ones.
 */
#include "base/files/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#define DRAFTS_MAX 8
#define TRIES_MAX 100
#define PIECE_MAX (1u << 30) /* a size that one write() always accepts */

/* A name is listed before its file exists, and unlisted after the file is gone. */
static _Atomic(char *) unfinished[DRAFTS_MAX];

static bool
enlist(char *path)
{
    for (int i = 0; i < DRAFTS_MAX; i++) {
        char *none = NULL;

        if (atomic_compare_exchange_strong(&unfinished[i], &none, path))
            return true;
    }
    errno = EMFILE;
    return false;
}

static void
strike(char *path)
{
    for (int i = 0; i < DRAFTS_MAX; i++) {
        char *listed = path;

        if (atomic_compare_exchange_strong(&unfinished[i], &listed, NULL))
            return;
    }
}

void
lh_atomic_files_unlink(void)
{
    const int cause = errno;

    for (int i = 0; i < DRAFTS_MAX; i++) {
        const char *path = atomic_exchange(&unfinished[i], NULL);

        if (path != NULL)
            unlink(path);
    }
    errno = cause;
}

/* An unpredictable name in the folder of @target; NULL with errno. Caller frees. */
static char *
random_name(const char *target)
{
    g_autofree char *folder = g_path_get_dirname(target);
    g_autofree char *name = NULL;
    uint64_t number;

    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return NULL;
    name = g_strdup_printf(".longhaul-%016" PRIx64, number);
    return g_build_filename(folder, name, NULL);
}

/* One attempt to create it; errno is EEXIST if the name is taken. */
static LhAtomicFile *
try(const char *target, mode_t mode)
{
    g_autofree char *path = random_name(target);
    LhAtomicFile *draft;
    int fd;

    if (path == NULL || !enlist(path))
        return NULL;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, mode);
    if (fd < 0) {
        strike(path);
        return NULL;
    }
    draft = g_new(LhAtomicFile, 1);
    *draft = (LhAtomicFile){ .fd = fd, .path = g_steal_pointer(&path) };
    return draft;
}

LhAtomicFile *
lh_atomic_file_new(const char *target, mode_t mode)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        LhAtomicFile *draft = try(target, mode);

        if (draft != NULL || errno != EEXIST)
            return draft;
    }
    return NULL;
}

static void
draft_free(LhAtomicFile *draft)
{
    strike(draft->path);
    g_free(draft->path);
    g_free(draft);
}

void
lh_atomic_file_discard(LhAtomicFile *draft)
{
    const int cause = errno;

    if (draft->fd >= 0)
        close(draft->fd);
    unlink(draft->path);
    draft_free(draft);
    errno = cause;
}

bool
lh_atomic_file_rename(LhAtomicFile *draft, const char *target)
{
    bool ok = lh_sync(draft->fd);
    const int fd = draft->fd;

    draft->fd = -1;
    if (ok)
        ok = close(fd) == 0;
    else
        close(fd);
    if (!ok || rename(draft->path, target) != 0) {
        lh_atomic_file_discard(draft);
        return false;
    }
    draft_free(draft);
    return true;
}

/* Files that cannot be flushed need no flush. */
bool
lh_sync(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOSYS || errno == ENOTSUP;
}

/* Whether to retry after a write that wrote nothing. */
static bool
wait_for_room(int fd)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

    if (errno == EINTR)
        return true;
    return errno == EAGAIN && (poll(&poll_fd, 1, -1) == 1 || errno == EINTR);
}

bool
lh_write_all(int fd, const char *text, gsize length)
{
    while (length > 0) {
        const ssize_t taken = write(fd, text, MIN(length, PIECE_MAX));

        if (taken > 0) {
            text += taken;
            length -= (gsize)taken;
        } else if (taken == 0) {
            errno = ENOSPC; /* a full device that does not report it */
            return false;
        } else if (!wait_for_room(fd)) {
            return false;
        }
    }
    return true;
}
