/*
 * Libraries that are loaded when they are needed, so that one program starts where there are none
 * and says so.
 */
#pragma once

#include <glib.h>

/* The function @name of @file, which stays loaded; NULL with @error (LH_ERROR_RUNTIME) if there is
 * no such library, or no such function in it. */
void *lh_library_find(const char *file, const char *name, GError **error);

/* The file that a function has been loaded from; caller frees. */
char *lh_library_path(const void *function);
