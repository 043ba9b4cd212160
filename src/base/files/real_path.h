/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves a path: follows symbolic links to their end, also if the file does not exist.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/stat.h>

typedef struct {
    char *path; /* for regular and new files, with symbolic links resolved; owned */
    bool exists;
    struct stat info; /* if it exists */
} LhRealPath;

/* False with errno. Ends with lh_real_path_clear() in either case. */
bool lh_real_path_find(LhRealPath *place, const char *path);
void lh_real_path_clear(LhRealPath *place);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhRealPath, lh_real_path_clear)

/* Whether it exists and is not a regular file: a pipe, a terminal, a folder. */
bool lh_real_path_is_special(const LhRealPath *place);
