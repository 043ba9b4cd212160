/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a path names, whatever it is written as: symbolic links are followed to their end, also
 * where there is no file yet.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/stat.h>

typedef struct {
    char *path; /* of regular files and new ones with symbolic links followed; owned */
    bool exists;
    struct stat info; /* if it exists */
} LhRealPath;

/* False with errno. Ends with lh_real_path_clear() in either case. */
bool lh_real_path_find(LhRealPath *place, const char *path);
void lh_real_path_clear(LhRealPath *place);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhRealPath, lh_real_path_clear)

/* Whether it is there and no regular file: a pipe, a terminal, a folder. */
bool lh_real_path_is_special(const LhRealPath *place);
