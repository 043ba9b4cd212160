/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the data files that come with longhaul. A kind is a folder: "topologies", "devices",
 * "models", "frameworks", "scenarios", "schemas"; a name is a file in it without ".json".
 *
 * The folder with the kinds is the first of: $LONGHAUL_DATA_DIR; the source tree, for a program
 * that runs from its build tree (except a relocatable build, which does not know it);
 * ../share/longhaul beside the program's folder; the install prefix.
 */
#pragma once

#include <glib.h>

/* The folder with the kinds; caller frees. */
char *lh_data_dir(void);

/*
 * The path of a data file; caller frees. A @name with '/' or ending in ".json" is a path and
 * returned as it is, whether or not it exists. An unknown name is LH_ERROR_INPUT, which lists the
 * names.
 */
char *lh_data_find(const char *kind, const char *name, GError **error);

/* The kind of the files that @names are, as in `longhaul list` ("topologies", "tables"); NULL if
 * they are not files. */
const char *lh_data_kind(const char *names);

/* The names of a kind, sorted, NULL-terminated, perhaps empty; caller frees with g_strfreev. */
char **lh_data_list(const char *kind);
