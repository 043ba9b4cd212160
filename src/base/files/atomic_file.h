/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is being written under a random name, until it takes the name that it is meant for.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct {
    int fd;
    char *path;
} LhAtomicFile;

/*
 * A new and empty file in the folder of @target, which no one else has opened (O_EXCL), with the
 * permissions @mode less the umask. NULL with errno. Ends with lh_atomic_file_rename() or
 * lh_atomic_file_discard(); until then, lh_atomic_files_unlink() removes it.
 */
LhAtomicFile *lh_atomic_file_new(const char *target, mode_t mode);

/* Flushes it to the disk and gives it the name @target; else discards it. False with errno. */
bool lh_atomic_file_rename(LhAtomicFile *draft, const char *target);

/* Removes the file. Keeps errno. */
void lh_atomic_file_discard(LhAtomicFile *draft);

/* Removes all drafts there are. Async-signal-safe; keeps errno. */
void lh_atomic_files_unlink(void);

/* Writes all of @text, however little the system takes at a time. False with errno. */
bool lh_write_all(int fd, const char *text, gsize length);

/* Flushes to the disk what can be flushed. False with errno. */
bool lh_sync(int fd);
