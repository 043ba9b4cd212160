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
} LhPlace;

/* False with errno. Ends with lh_place_clear() in either case. */
bool lh_place_find(LhPlace *place, const char *path);
void lh_place_clear(LhPlace *place);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhPlace, lh_place_clear)

/* Whether it is there and no regular file: a pipe, a terminal, a folder. */
bool lh_place_is_special(const LhPlace *place);
