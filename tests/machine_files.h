/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake machine for code that reads Linux's system files: they lie below a root folder of its own.
 */
#pragma once

#include "checking.h"

#include <glib.h>

static char *root;

static inline void
begin_machine(void)
{
    root = g_dir_make_tmp("longhaul-machine-XXXXXX", NULL);
    ck_assert_ptr_nonnull(root);
}

/* Writes a file below the root, with its parent folders. */
static inline void
put(const char *path, const char *text)
{
    g_autofree char *whole = g_strconcat(root, path, NULL);
    g_autofree char *folder = g_path_get_dirname(whole);

    ck_assert_int_eq(g_mkdir_with_parents(folder, 0700), 0);
    ck_assert(g_file_set_contents(whole, text, -1, NULL));
}

static inline void
end_machine(void)
{
    g_autofree char *command = g_strdup_printf("rm -r '%s'", root);

    ck_assert(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL));
    g_clear_pointer(&root, g_free);
}
