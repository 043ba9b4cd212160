/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes, by example. fuzz/fuzz_escape.c checks their guarantees for any text. */
#include "base/escape.h"
#include "base/json/json_writer.h"
#include "report/base/table.h"
#include "run_tests.h"

START_TEST(escape_shows_what_terminals_obey)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        { "plain, ä and 中", "plain, ä and 中" },
        { "\033]0;title\007", "\\x1b]0;title\\x07" },
        { "\x7f\t\r", "\\x7f\\t\\r" },
        { "\xc2\x9b"
          "31m",
          "\\u009b31m" },
        { "\u202egnp.exe", "\\u202egnp.exe" },
        { "\u2066\u200f\u2028", "\\u2066\\u200f\\u2028" },
        { "\xff\xc3(", "\\xff\\xc3(" },
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" }, /* half of a character */
        { "a\nb", "a\\nb" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *shown = lh_escaped_line(rows[i].text);

        ck_assert_str_eq(shown, rows[i].shown);
    }
}
END_TEST

static void
check_csv(const char *text, bool formulas, const char *expected)
{
    g_autoptr(GString) out = g_string_new(NULL);

    lh_escape_csv(out, text, formulas);
    ck_assert_str_eq(out->str, expected);
}

START_TEST(escape_csv_has_no_formulas)
{
    check_csv("=cmd|' /C calc'!A0", false, "'=cmd|' /C calc'!A0");
    check_csv("@SUM(1,2)", false, "\"'@SUM(1,2)\"");
    check_csv(" +1", false, "' +1");
    check_csv("\uff1d1", false, "'\uff1d1");
    check_csv("-1.5", true, "-1.5");
    check_csv("-", false, "-");
    check_csv("a \"b\"; c", false, "\"a \"\"b\"\"; c\"");
    check_csv("zigzag", false, "zigzag");
}
END_TEST

START_TEST(escape_md_is_text)
{
    g_autoptr(GString) cell = g_string_new(NULL);
    g_autoptr(GString) words = g_string_new(NULL);

    lh_escape_md_cell(cell, "a|b\\|c\n<img src=x> [l](u) `x` &lt;");
    ck_assert_str_eq(cell->str, "a\\|b\\\\\\|c\\\\n\\<img src=x\\> \\[l\\](u) \\`x\\` \\&lt;");
    g_string_truncate(cell, 0);
    lh_escape_md_cell(cell, "attn_fwd _a_ b_ c");
    ck_assert_str_eq(cell->str, "attn_fwd \\_a\\_ b\\_ c");
    lh_escape_md(words, "# no heading\n- no *list*\nplain 1-2");
    ck_assert_str_eq(words->str, "\\# no heading\n\\- no \\*list\\*\nplain 1-2");
}
END_TEST

START_TEST(escape_html_is_text)
{
    g_autoptr(GString) out = g_string_new("<p>");

    lh_escape_html(out, "<script>alert('1')</script>&amp; \"x\"\nü\x1b\xff");
    ck_assert_str_eq(out->str, "<p>&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp; "
                               "&quot;x&quot;\\nü\\x1b\\xff");
}
END_TEST

START_TEST(escape_gnuplot_is_one_string)
{
    g_autoptr(GString) out = g_string_new(NULL);

    lh_escape_gnuplot(out, "it's `date`\nplot '< date'\\");
    ck_assert_str_eq(out->str, "'it''s `date`\\nplot ''< date''\\'");
}
END_TEST

/* JSON keeps the text: its own escapes are equivalent. */
START_TEST(escape_json_keeps_the_text)
{
    g_autoptr(GString) out = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(out, true);

    lh_jsonw_string(w, NULL, "\033\xc2\x9b\u202e\U000e0041ä");
    lh_jsonw_free(w);
    ck_assert_str_eq(out->str, "\"\\u001b\\u009b\\u202e\\udb40\\udc41ä\"\n");
}
END_TEST

START_TEST(escape_tables_of_every_form)
{
    static const struct {
        LhFormat format;
        const char *expected;
    } rows[] = {
        { LH_FORMAT_TABLE, "name             n\n\\x1b[2J\\n=1|2   -1   \\x07\n" },
        { LH_FORMAT_CSV, "name,n,note\n\\x1b[2J\\n=1|2,-1,\\x07\n" },
        { LH_FORMAT_MD, "| name | n | note |\n| --- | ---: | --- |\n"
                        "| \\\\x1b\\[2J\\\\n=1\\|2 | -1 | \\\\x07 |\n" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(LhTable) table = lh_table_new();
        g_autoptr(GString) out = g_string_new(NULL);

        lh_table_column(table, "name", "name", NULL, false);
        lh_table_column(table, "n", "n", NULL, true);
        lh_table_row(table);
        lh_table_cell(table, "\033[2J\n=1|2", NULL);
        lh_table_cell(table, "-1", NULL);
        lh_table_note(table, "\007");
        lh_table_print(table, rows[i].format, out);
        ck_assert_str_eq(out->str, rows[i].expected);
    }
}
END_TEST

LH_TEST_MAIN("escape", escape_shows_what_terminals_obey, escape_csv_has_no_formulas,
             escape_md_is_text, escape_html_is_text, escape_gnuplot_is_one_string,
             escape_json_keeps_the_text, escape_tables_of_every_form)
