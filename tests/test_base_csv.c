/* SPDX-License-Identifier: Apache-2.0 */
/* CSV tables: accepted texts, and rejected ones with their positions. */
#include "data_files.h"

#include "base/files/csv.h"

static LhCsv *
parse(const char *text, GError **error)
{
    return lh_csv_parse("dir/t.csv", text, strlen(text), error);
}

static LhCsv *
parse_ok(const char *text)
{
    g_autoptr(GError) error = NULL;
    LhCsv *csv = parse(text, &error);

    ck_assert_msg(csv != NULL, "%s", error != NULL ? error->message : "no message");
    return csv;
}

START_TEST(csv_reads_cells)
{
    g_autoptr(LhCsv) csv = parse_ok("# a remark, with \"quotes\n"
                                    "a,b,\"c, d\"\n"
                                    "\n"
                                    "1,,\"x\"\"y\"\r\n"
                                    "# another\n"
                                    "\"two\nlines\",2e3,-4.5");

    ck_assert_uint_eq(lh_csv_columns(csv), 3);
    ck_assert_uint_eq(lh_csv_rows(csv), 2);
    ck_assert_str_eq(lh_csv_column_name(csv, 2), "c, d");
    ck_assert_int_eq(lh_csv_column(csv, "b", NULL), 1);
    ck_assert_str_eq(lh_csv_cell(csv, 0, 0), "1");
    ck_assert_str_eq(lh_csv_cell(csv, 0, 1), "");
    ck_assert_str_eq(lh_csv_cell(csv, 0, 2), "x\"y");
    ck_assert_str_eq(lh_csv_cell(csv, 1, 0), "two\nlines");
    ck_assert_uint_eq(lh_csv_line(csv, 0), 4);
    ck_assert_uint_eq(lh_csv_line(csv, 1), 6);
    ck_assert_uint_eq(strlen(lh_csv_sha256(csv)), 64);
}
END_TEST

/* CR LF, LF, a UTF-8 byte order mark and a missing last line end give the same cells. */
START_TEST(csv_does_not_mind_how_lines_end)
{
    static const char *const texts[] = {
        "a,b\n1,2\n3,4\n",
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\n1,2\n3,4",
        ("\xef\xbb\xbf"
         "a,b\n1,2\r\n3,4\n"),
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(LhCsv) csv = parse_ok(texts[i]);

        ck_assert_uint_eq(lh_csv_rows(csv), 2);
        ck_assert_str_eq(lh_csv_column_name(csv, 0), "a");
        ck_assert_str_eq(lh_csv_cell(csv, 0, 1), "2");
        ck_assert_str_eq(lh_csv_cell(csv, 1, 1), "4");
    }
}
END_TEST

START_TEST(csv_reads_numbers)
{
    g_autoptr(LhCsv) csv = parse_ok("a,b,c,d\n1.5,-3,2e6,+4\n1.5x,,inf,0x10\nnan, 1,1 ,1;5\n");
    static const double values[] = { 1.5, -3, 2e6, 4 };
    double value = 7;

    for (guint i = 0; i < 4; i++) {
        ck_assert(lh_csv_number(csv, 0, i, &value, NULL));
        ck_assert_double_eq(value, values[i]);
    }
    value = 7;
    for (guint i = 0; i < 8; i++) {
        g_autoptr(GError) error = NULL;

        ck_assert(!lh_csv_number(csv, 1 + i / 4, i % 4, &value, &error));
        ck_assert(g_str_has_prefix(error->message,
                                   i < 4 ? "dir/t.csv:3: error: \"" : "dir/t.csv:4: error: \""));
    }
    ck_assert_double_eq(value, 7);
}
END_TEST

START_TEST(csv_refuses_broken_tables)
{
    static const struct {
        const char *text, *message;
    } broken[] = {
        { "", "dir/t.csv: error: there is no line with the names of columns" },
        { "# only this\n\n", "dir/t.csv: error: there is no line with the names of columns" },
        { "a,,c\n", "dir/t.csv:1: error: column 2 has no name" },
        { "#\na,b,a\n", "dir/t.csv:2: error: columns 1 and 3 are both called \"a\"" },
        { "a,b\n1,2\n1\n", "dir/t.csv:3: error: 1 cells in this row, but 2 columns have names" },
        { "a,b\n1,2,\n", "dir/t.csv:2: error: 3 cells in this row, but 2 columns have names" },
        { "a,b\n1,2\"3\n", "dir/t.csv:2:4: error: a quote inside a cell; put the whole cell in "
                           "quotes and double this one" },
        { "a,b\n\"1\"2,3\n", "dir/t.csv:2:4: error: text after a closing quote; allowed: a comma "
                             "or the end of the line" },
        { "a,b\n1,\"2\n3,4\n", "dir/t.csv:2:3: error: the quote that begins here has no end" },
        { "a,b\n1\r,2\n", "dir/t.csv:2:2: error: a carriage return that does not end a line; "
                          "allowed: LF or CR LF" },
        { "a,b\n\"1\"\r,2\n", "dir/t.csv:2:4: error: a carriage return that does not end a line; "
                              "allowed: LF or CR LF" },
        { "a\n\"\n\x1b\"\n", "dir/t.csv:3:1: error: the control character 0x1b; a cell may contain "
                             "tabs, and in quotes line breaks" },
        { "a\nx\x7f\n", "dir/t.csv:2:2: error: the control character 0x7f; a cell may contain "
                        "tabs, and in quotes line breaks" },
        { "a\n\xc3\xa4\n\xff\n", "dir/t.csv:3:1: error: not UTF-8" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(broken); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert_msg(parse(broken[i].text, &error) == NULL, "case %zu", i);
        check_message(error, broken[i].message);
    }
}
END_TEST

START_TEST(csv_refuses_nul_and_missing_files)
{
    g_autoptr(GError) nul = NULL;
    g_autoptr(GError) missing = NULL;
    g_autoptr(GError) column = NULL;
    g_autoptr(LhCsv) csv = parse_ok("a,b\n1,2\n");

    ck_assert(lh_csv_parse("t.csv", "a\n1\0002\n", 6, &nul) == NULL);
    check_message(nul, "t.csv:2:2: error: a NUL byte");
    ck_assert(lh_csv_load("no/such/file.csv", &missing) == NULL);
    ck_assert(g_error_matches(missing, LH_ERROR, LH_ERROR_INPUT));
    ck_assert(strstr(missing->message, "no/such/file.csv") != NULL);
    ck_assert_int_eq(lh_csv_column(csv, "c", &column), -1);
    check_message(column, "dir/t.csv: error: no column \"c\"; columns: a, b");
}
END_TEST

/* Every prefix of a table, and the table with each byte replaced, is read or rejected without a
 * crash. */
START_TEST(csv_survives_damage)
{
    static const char text[] = "# r\na,\"b,\n\"\"c\",d\r\n1,\"2\",3\n\"x\ny\",\"\",\n";
    static const char bytes[] = { '"', ',', '\n', '\r', '#', '\0', 'x', (char)0xff };

    for (gsize length = 0; length < sizeof(text); length++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhCsv) csv = lh_csv_parse("t", text, length, &error);

        ck_assert((csv == NULL) == (error != NULL));
    }
    for (gsize at = 0; at + 1 < sizeof(text); at++) {
        for (gsize i = 0; i < sizeof(bytes); i++) {
            g_autoptr(GError) error = NULL;
            g_autofree char *damaged = g_memdup2(text, sizeof(text) - 1);
            g_autoptr(LhCsv) csv = NULL;

            damaged[at] = bytes[i];
            csv = lh_csv_parse("t", damaged, sizeof(text) - 1, &error);
            ck_assert((csv == NULL) == (error != NULL));
        }
    }
}
END_TEST

LH_TEST_MAIN("base_csv", csv_reads_cells, csv_does_not_mind_how_lines_end, csv_reads_numbers,
             csv_refuses_broken_tables, csv_refuses_nul_and_missing_files, csv_survives_damage)
