/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file written under a random name and then renamed to its target.
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
 * Creates an empty file in the folder of @target that no one else has open (O_EXCL), with the
 * permissions @mode less the umask. NULL with errno. Ends with lh_atomic_file_rename() or
 * lh_atomic_file_discard(); until then, lh_atomic_files_unlink() removes it.
 */
LhAtomicFile *lh_atomic_file_new(const char *target, mode_t mode);

/* Flushes it to disk and renames it to @target; on failure discards it. False with errno. */
bool lh_atomic_file_rename(LhAtomicFile *draft, const char *target);

/* Removes the file. Keeps errno. */
void lh_atomic_file_discard(LhAtomicFile *draft);

/* Removes all drafts. Async-signal-safe; keeps errno. */
void lh_atomic_files_unlink(void);

/* Writes all of @text, in as many writes as needed. False with errno. */
bool lh_write_all(int fd, const char *text, gsize length);

/* Flushes to disk, where the file supports it. False with errno. */
bool lh_sync(int fd);
