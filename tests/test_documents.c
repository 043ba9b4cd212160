/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lengths of packed documents: valid files, rejected ones with positions, and the setups made from
 * them.
 */
#include "base/error.h"
#include "run_tests.h"
#include "scenario/documents.h"
#include "scenario/setting.h"
#include "scenario/setup.h"

#include <glib/gstdio.h>
#include <string.h>

START_TEST(documents_reads_lengths)
{
    static const char text[] = "# three documents\n512 4K\t# the long one\n\r\n\n  1\n#1\n3#4 5";
    g_autoptr(GError) error = NULL;
    g_autoptr(LhDocuments) d = lh_documents_parse("d.txt", text, strlen(text), &error);

    ck_assert_msg(d != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_eq(d->count, 4);
    ck_assert_uint_eq(d->ends[0], 512);
    ck_assert_uint_eq(d->ends[1], 4608);
    ck_assert_uint_eq(d->ends[2], 4609);
    ck_assert_uint_eq(d->ends[3], 4612);
    ck_assert_uint_eq(strlen(d->sha256), 64);
}
END_TEST

START_TEST(documents_says_where_it_is_wrong)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        { "", "d.txt:1:1: error: the file contains no document" },
        { "# 512\n\n", "d.txt:3:1: error: the file contains no document" },
        { "512\n 4 0 7", "d.txt:2:4: error: \"0\" is not a document length" },
        { "12\n13,14", "d.txt:2:1: error: \"13,14\" is not a document length" },
        { "-1", "d.txt:1:1: error: \"-1\"" },
        { "1.5", "d.txt:1:1: error: \"1.5\"" },
        { "4 \xc3\xa4\xff 5", "d.txt:1:3: error: \"\xc3\xa4\xef\xbf\xbd\" is not" },
        { "1 1099511627776",
          "d.txt:1:3: error: the documents have more than 1099511627776 tokens" },
        { "18446744073709551615 18446744073709551615",
          "d.txt:1:1: error: the documents have more" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(lh_documents_parse("d.txt", rows[i].text, strlen(rows[i].text), &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
        ck_assert_msg(g_str_has_prefix(error->message, rows[i].message), "%s", error->message);
    }
}
END_TEST

START_TEST(documents_takes_bytes_that_are_no_text)
{
    static const char text[] = { '4', ' ', '5', '\0', '6' };
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(lh_documents_parse("d.txt", text, sizeof(text), &error));
    ck_assert_msg(g_str_has_prefix(error->message, "d.txt:1:3: error: \"5\" is not"), "%s",
                  error->message);
}
END_TEST

static void
set(LhScenario *scenario, const char *option, const char *text)
{
    ck_assert(
        lh_scenario_set(scenario, lh_setting_find(lh_scenario_options(), option), text, NULL));
}

/* The sequence length is the sum of its documents by default. */
START_TEST(documents_make_a_sequence)
{
    g_autofree char *folder = g_dir_make_tmp("documents-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "lengths.txt", NULL);
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSetup) wrong = NULL;

    ck_assert(g_file_set_contents(path, "1K 2K\n1K\n", -1, NULL));
    set(scenario, "--ranks", "8");
    set(scenario, "--document-lengths", path);
    setup = lh_setup_new(scenario, &error);
    ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_eq(setup->params.attention.seq_length, 4096);
    ck_assert_uint_eq(setup->params.mask.documents_count, 3);
    ck_assert_uint_eq(setup->params.mask.document_ends[1], 3072);
    ck_assert_str_eq(((LhInput *)g_ptr_array_index(setup->inputs, setup->inputs->len - 1))->path,
                     path);
    set(scenario, "--seq-length", "8K");
    wrong = lh_setup_new(scenario, &error);
    ck_assert_ptr_null(wrong);
    ck_assert_msg(strstr(error->message, "have 4096 tokens, the sequence has 8192") != NULL, "%s",
                  error->message);
    g_unlink(path);
    g_rmdir(folder);
}
END_TEST

LH_TEST_MAIN("documents", documents_reads_lengths, documents_says_where_it_is_wrong,
             documents_takes_bytes_that_are_no_text, documents_make_a_sequence)
