/* Libraries that are loaded when they are needed: where they were found. */
#pragma once

#include <glib.h>

/* The file that a function has been loaded from; caller frees. */
char *lh_library_path(const void *function);
