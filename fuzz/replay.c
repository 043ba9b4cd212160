/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzzer over files, without libFuzzer: the corpus is part of the normal tests, and a crash
 * can be reproduced with any compiler. Arguments are files and folders of files.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds a file, or all files under a folder. */
static void
add_paths(GPtrArray *paths, const char *path)
{
    g_autoptr(GDir) folder = g_dir_open(path, 0, NULL);
    const char *name;

    if (folder == NULL) {
        g_ptr_array_add(paths, g_strdup(path));
        return;
    }
    while ((name = g_dir_read_name(folder)) != NULL) {
        g_autofree char *inner = g_build_filename(path, name, NULL);

        if (*name != '.')
            add_paths(paths, inner);
    }
}

static bool
replay(const char *path)
{
    g_autofree char *text = NULL;
    g_autofree uint8_t *exact = NULL; /* without GLib's NUL, so that reads past the end are
                                       * detected */
    gsize length;

    /* printed before the run: the last line names the input that ended the program */
    printf("%s\n", path);
    fflush(stdout);
    if (!g_file_get_contents(path, &text, &length, NULL))
        return false;
    exact = g_memdup2(text, MAX(length, 1)); /* never NULL, as libFuzzer */
    LLVMFuzzerTestOneInput(exact, length);
    return true;
}

int
main(int argc, char **argv)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    bool ok = true;

    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++)
        add_paths(paths, argv[i]);
    g_ptr_array_sort(paths, compare_names);
    for (guint i = 0; i < paths->len; i++)
        ok = replay(g_ptr_array_index(paths, i)) && ok;
    printf("%u inputs%s\n", paths->len, ok ? "" : ", some of them unreadable");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
