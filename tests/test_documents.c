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

/* Packs of equally many tokens. */
START_TEST(documents_reads_packs)
{
    static const char text[] = "1 2 # 4;\n;3\n; 2 1";
    g_autoptr(GError) error = NULL;
    g_autoptr(LhDocuments) d = lh_documents_parse("d.txt", text, strlen(text), &error);

    ck_assert_msg(d != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_eq(d->count, 2);
    ck_assert_uint_eq(d->packs_count, 3);
    ck_assert_uint_eq(d->packs[0].count, 2);
    ck_assert_uint_eq(d->packs[0].ends[0], 1);
    ck_assert_uint_eq(d->packs[0].ends[1], 3);
    ck_assert_uint_eq(d->packs[1].count, 1);
    ck_assert_uint_eq(d->packs[1].ends[0], 3);
    ck_assert_uint_eq(d->packs[2].count, 2);
    ck_assert_uint_eq(d->packs[2].ends[0], 2);
    ck_assert_uint_eq(d->packs[2].ends[1], 3);
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
        { "3; 1 1", "d.txt:1:1: error: pack 2 has 2 tokens, the first one 3" },
        { "3; 1 2\n ;4;3", "d.txt:2:4: error: pack 3 has 4 tokens, the first one 3" },
        { "; 4", "d.txt:1:1: error: pack 1 has no document" },
        { "4;;4", "d.txt:1:3: error: pack 2 has no document" },
        { "4\n;", "d.txt:2:1: error: pack 2 has no document" },
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

/* ---- drawn packs ---- */

static LhDocuments *
draw(const char *text, const LhDocuments *sample, uint64_t tokens, uint32_t count, uint64_t seed)
{
    LhDocumentDistribution distribution;
    g_autoptr(GError) error = NULL;
    LhDocuments *d;

    ck_assert_msg(lh_document_distribution_parse(text, &distribution, &error), "%s", text);
    d = lh_documents_draw(&distribution, sample, tokens, count, seed, &error);
    ck_assert_msg(d != NULL, "%s", error != NULL ? error->message : "");
    return d;
}

/* Packs fill their sequences. A pack depends on its number and the seed alone. */
START_TEST(drawn_packs_fill_sequences)
{
    static const char *const texts[] = { "exponential:100", "lognormal:100,1", "lognormal:1,10",
                                         "exponential:1M" };

    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(LhDocuments) few = draw(texts[i], NULL, 4096, 3, 5);
        g_autoptr(LhDocuments) more = draw(texts[i], NULL, 4096, 7, 5);
        g_autoptr(LhDocuments) other = draw(texts[i], NULL, 4096, 7, 6);

        ck_assert_uint_eq(more->packs_count, 7);
        for (uint32_t k = 0; k < 7; k++) {
            const LhDocumentPack *pack = &more->packs[k];

            ck_assert_uint_eq(pack->ends[pack->count - 1], 4096);
            for (uint32_t e = 1; e < pack->count; e++)
                ck_assert_uint_gt(pack->ends[e], pack->ends[e - 1]);
            ck_assert(k >= 3 || (few->packs[k].count == pack->count &&
                                 memcmp(few->packs[k].ends, pack->ends,
                                        pack->count * sizeof(uint64_t)) == 0));
        }
        ck_assert(i == 3 || more->packs[0].count != other->packs[0].count ||
                  more->packs[0].ends[0] != other->packs[0].ends[0]);
    }
}
END_TEST

/* Means of many documents: those of the distributions, exp(sigma^2 / 2) times the median for a
 * lognormal one, which has as many lengths below the median as above. */
START_TEST(drawn_lengths_are_distributed)
{
    static const char lengths[] = "100 300 500";
    g_autoptr(LhDocuments) sample = lh_documents_parse("d.txt", lengths, strlen(lengths), NULL);
    static const struct {
        const char *text;
        double mean, median;
    } rows[] = { { "exponential:1000", 1000, 693.147 },
                 { "lognormal:1000,0.5", 1133.148, 1000 },
                 { "empirical", 300, 300 } };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(LhDocuments) d = draw(rows[i].text, sample, 20000000, 1, 1);
        const double mean = 20000000.0 / d->count;
        uint32_t below = 0;

        for (uint32_t k = 0; k < d->count; k++)
            below += (double)(d->ends[k] - (k == 0 ? 0 : d->ends[k - 1])) < rows[i].median;
        ck_assert_double_eq_tol(mean, rows[i].mean, rows[i].mean / 50);
        ck_assert_double_eq_tol((double)below / d->count, i == 2 ? 1.0 / 3 : 0.5, 0.02);
    }
}
END_TEST

START_TEST(wrong_distributions_are_rejected)
{
    static const char *const texts[] = { "",
                                         "exponential",
                                         "exponential:",
                                         "exponential:0",
                                         "exponential:5,1",
                                         "exponential,5",
                                         "lognormal:5",
                                         "lognormal:5,-1",
                                         "lognormal:5,11",
                                         "lognormal:5,1x",
                                         "lognormal:5,nan",
                                         "lognormal:5,1,2",
                                         "empirical:5",
                                         "uniform:5" };

    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        LhDocumentDistribution distribution;
        g_autoptr(GError) error = NULL;

        ck_assert_msg(!lh_document_distribution_parse(texts[i], &distribution, &error), "%s",
                      texts[i]);
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
        ck_assert_ptr_nonnull(strstr(error->message, "; allowed: exponential:MEAN and"));
    }
}
END_TEST

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

LH_TEST_MAIN("documents", documents_reads_lengths, documents_reads_packs,
             drawn_packs_fill_sequences, drawn_lengths_are_distributed,
             wrong_distributions_are_rejected, documents_says_where_it_is_wrong,
             documents_takes_bytes_that_are_no_text, documents_make_a_sequence)
