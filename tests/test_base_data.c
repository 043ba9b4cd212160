/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding data files, in a folder made for the test.
 */
#include "base/error.h"
#include "base/files/data_files.h"
#include "config.h"
#include "run_tests.h"

#include <glib/gstdio.h>
#include <string.h>

static const char *const files[] = { "ring-8.json", "dgx-a100.json", "notes.txt", ".hidden.json",
                                     "Upper.json" };

/* Makes <tmp>/topologies with the files above and sets LONGHAUL_DATA_DIR to <tmp>. */
static char *
make_data_dir(void)
{
    char *root = g_dir_make_tmp("longhaul-test-XXXXXX", NULL);
    g_autofree char *kind = g_build_filename(root, "topologies", NULL);

    ck_assert_int_eq(g_mkdir(kind, 0700), 0);
    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(kind, files[i], NULL);

        ck_assert(g_file_set_contents(path, "{}", -1, NULL));
    }
    ck_assert(g_setenv("LONGHAUL_DATA_DIR", root, TRUE));
    return root;
}

static void
remove_data_dir(const char *root)
{
    g_autofree char *kind = g_build_filename(root, "topologies", NULL);

    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(kind, files[i], NULL);

        g_unlink(path);
    }
    g_rmdir(kind);
    g_rmdir(root);
}

START_TEST(data_lists_names_sorted)
{
    g_autofree char *root = make_data_dir();
    g_auto(GStrv) names = lh_data_list("topologies");
    g_auto(GStrv) none = lh_data_list("models");

    remove_data_dir(root);
    ck_assert_uint_eq(g_strv_length(names), 3);
    ck_assert_str_eq(names[0], "Upper");
    ck_assert_str_eq(names[1], "dgx-a100");
    ck_assert_str_eq(names[2], "ring-8");
    ck_assert_uint_eq(g_strv_length(none), 0);
}
END_TEST

START_TEST(data_finds_names_and_paths)
{
    g_autofree char *root = make_data_dir();
    g_autoptr(GError) error = NULL;
    g_autofree char *path = lh_data_find("topologies", "ring-8", &error);
    g_autofree char *expected = g_build_filename(root, "topologies", "ring-8.json", NULL);
    g_autofree char *file = lh_data_find("topologies", "mine.json", &error);
    g_autofree char *relative = lh_data_find("topologies", "./mine", &error);

    remove_data_dir(root);
    ck_assert_str_eq(path, expected);
    ck_assert_str_eq(file, "mine.json");
    ck_assert_str_eq(relative, "./mine");
    ck_assert_ptr_null(error);
}
END_TEST

START_TEST(data_words_unknown_names)
{
    static const struct {
        const char *kind;
        const char *name;
        const char *end;
    } cases[] = {
        { "topologies", "rnig-8",
          "/topologies; did you mean \"ring-8\"? available: Upper, dgx-a100, ring-8 (a name with "
          "'/' or ending in \".json\" is a path)" },
        { "topologies", "torus",
          "/topologies; available: Upper, dgx-a100, ring-8 (a name with '/' or ending in \".json\" "
          "is a path)" },
        { "topologies", "",
          "/topologies; available: Upper, dgx-a100, ring-8 (a name with '/' or ending in \".json\" "
          "is a path)" },
        { "models", "llama",
          "/models; available: none (a name with '/' or ending in \".json\" is a path)" },
    };
    g_autofree char *root = make_data_dir();

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *start = g_strdup_printf("no file \"%s.json\" in %s/", cases[i].name, root);

        ck_assert_ptr_null(lh_data_find(cases[i].kind, cases[i].name, &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
        ck_assert_msg(g_str_has_prefix(error->message, start), "%s", error->message);
        ck_assert_msg(g_str_has_suffix(error->message, cases[i].end), "%s", error->message);
    }
    remove_data_dir(root);
}
END_TEST

/* Without the variable, test programs in the build tree use the source tree; a relocatable build
 * does not know it. */
START_TEST(data_uses_the_source_tree_when_not_installed)
{
    g_autofree char *source_dir = g_strdup(g_getenv("LONGHAUL_SOURCE_DIR"));
    g_autofree char *found = NULL;
    g_autofree char *found_if_empty = NULL;

    g_unsetenv("LONGHAUL_DATA_DIR");
    found = lh_data_dir();
    g_setenv("LONGHAUL_DATA_DIR", "", TRUE);
    found_if_empty = lh_data_dir();
    if (source_dir != NULL && *LH_SOURCE_DIR != '\0')
        ck_assert_str_eq(found, source_dir);
    ck_assert_str_eq(found, found_if_empty);
}
END_TEST

LH_TEST_MAIN("base_data", data_lists_names_sorted, data_finds_names_and_paths,
             data_words_unknown_names, data_uses_the_source_tree_when_not_installed)
