/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON writer: layout, escapes, numbers, and that misuse aborts.
 */
#include "base/json/json.h"
#include "base/json/json_writer.h"
#include "base/rng.h"
#include "run_tests.h"

#include <signal.h>

static void
write_sample(LhJsonWriter *w)
{
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "name", "a \"quoted\" \\ word");
    lh_jsonw_array_begin(w, "sizes");
    lh_jsonw_uint(w, NULL, UINT64_MAX);
    lh_jsonw_int(w, NULL, INT64_MIN);
    lh_jsonw_double(w, NULL, 0.1);
    lh_jsonw_array_end(w);
    lh_jsonw_array_begin(w, "empty");
    lh_jsonw_array_end(w);
    lh_jsonw_object_begin(w, "inner");
    lh_jsonw_bool(w, "yes", true);
    lh_jsonw_bool(w, "no", false);
    lh_jsonw_string(w, "nothing", NULL);
    lh_jsonw_object_end(w);
    lh_jsonw_object_begin(w, "none");
    lh_jsonw_object_end(w);
    lh_jsonw_object_end(w);
}

START_TEST(jsonw_indents_by_two)
{
    g_autoptr(GString) out = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(out, false);

    write_sample(w);
    lh_jsonw_free(w);
    ck_assert_str_eq(out->str, "{\n"
                               "  \"name\": \"a \\\"quoted\\\" \\\\ word\",\n"
                               "  \"sizes\": [\n"
                               "    18446744073709551615,\n"
                               "    -9223372036854775808,\n"
                               "    0.1\n"
                               "  ],\n"
                               "  \"empty\": [],\n"
                               "  \"inner\": {\n"
                               "    \"yes\": true,\n"
                               "    \"no\": false,\n"
                               "    \"nothing\": null\n"
                               "  },\n"
                               "  \"none\": {}\n"
                               "}\n");
}
END_TEST

START_TEST(jsonw_writes_one_line)
{
    g_autoptr(GString) out = g_string_new("# ");
    LhJsonWriter *w = lh_jsonw_new(out, true);

    write_sample(w);
    lh_jsonw_free(w);
    ck_assert_str_eq(out->str, "# {\"name\": \"a \\\"quoted\\\" \\\\ word\", \"sizes\": "
                               "[18446744073709551615, -9223372036854775808, 0.1], \"empty\": [], "
                               "\"inner\": {\"yes\": true, \"no\": false, \"nothing\": null}, "
                               "\"none\": {}}\n");
}
END_TEST

static char *
written_string(const char *value)
{
    GString *out = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(out, true);

    lh_jsonw_string(w, NULL, value);
    lh_jsonw_free(w);
    return g_string_free(out, FALSE);
}

START_TEST(jsonw_escapes_strings)
{
    static const struct {
        const char *value;
        const char *written;
    } cases[] = {
        { "", "\"\"\n" },
        { "a/b", "\"a/b\"\n" },
        { "\n\t", "\"\\n\\t\"\n" },
        { "\x01\x1f\x7f\r\b", "\"\\u0001\\u001f\\u007f\\u000d\\u0008\"\n" },
        { "gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"\n" },
        { "bad \xff byte", "\"bad \xef\xbf\xbd byte\"\n" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *written = written_string(cases[i].value);

        ck_assert_str_eq(written, cases[i].written);
    }
}
END_TEST

START_TEST(jsonw_writes_exact_seconds)
{
    static const struct {
        int64_t time_ps;
        const char *written;
    } cases[] = {
        { 0, "0\n" },
        { 1, "0.000000000001\n" },
        { INT64_C(1500000000000), "1.5\n" },
        { INT64_C(1000000000000), "1\n" },
        { -INT64_C(250000000000), "-0.25\n" },
        { INT64_MAX, "9223372.036854775807\n" },
        { INT64_MIN, "-9223372.036854775808\n" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) out = g_string_new(NULL);
        LhJsonWriter *w = lh_jsonw_new(out, true);

        lh_jsonw_seconds(w, NULL, cases[i].time_ps);
        lh_jsonw_free(w);
        ck_assert_str_eq(out->str, cases[i].written);
    }
}
END_TEST

typedef struct {
    uint64_t uint_value;
    int64_t int_value;
    double double_value;
    char *string_value;
} Sample;

static const LhField sample_fields[] = {
    { .name = "u", .type = LH_FIELD_UINT, .offset = offsetof(Sample, uint_value) },
    { .name = "i", .type = LH_FIELD_INT, .offset = offsetof(Sample, int_value) },
    { .name = "d", .type = LH_FIELD_DOUBLE, .offset = offsetof(Sample, double_value) },
    { .name = "s", .type = LH_FIELD_STRING, .offset = offsetof(Sample, string_value) },
    { .name = NULL },
};

/* Random valid UTF-8 text without NUL. */
static char *
any_text(uint64_t i)
{
    GString *text = g_string_new(NULL);
    gsize length = lh_rng_bits(6, i, 0) % 12;

    for (gsize k = 0; k < length; k++) {
        gunichar c = (gunichar)(1 + lh_rng_bits(7, i, k) % (k % 2 == 0 ? 0x7f : 0x10ffff));

        if (g_unichar_validate(c))
            g_string_append_unichar(text, c);
    }
    return g_string_free(text, FALSE);
}

START_TEST(jsonw_is_read_back_exactly)
{
    for (uint64_t i = 0; i < 5000; i++) {
        g_autoptr(GString) out = g_string_new(NULL);
        g_autofree char *text = any_text(i);
        LhJsonWriter *w = lh_jsonw_new(out, i % 2 == 0);
        const uint64_t bits = lh_rng_bits(8, i, 0);
        const double number = (lh_rng_uniform(9, i, 0) - 0.5) * 1e6;
        g_autoptr(GError) error = NULL;
        g_autoptr(LhJson) json = NULL;
        Sample sample = { 0 };

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_uint(w, "u", bits);
        lh_jsonw_int(w, "i", (int64_t)bits);
        lh_jsonw_double(w, "d", number);
        lh_jsonw_string(w, "s", text);
        lh_jsonw_object_end(w);
        lh_jsonw_free(w);

        json = lh_json_parse("sample", out->str, out->len, &error);
        ck_assert_msg(json != NULL, "%s", error != NULL ? error->message : "");
        ck_assert(lh_json_decode(json, sample_fields, &sample, false, NULL));
        ck_assert(sample.uint_value == bits);
        ck_assert(sample.int_value == (int64_t)bits);
        ck_assert(sample.double_value == number);
        ck_assert_str_eq(sample.string_value, text);
        lh_json_clear(sample_fields, &sample);
        ck_assert_ptr_null(sample.string_value);
    }
}
END_TEST

/* Each misuse aborts; a loop test runs each in a child process. */
START_TEST(jsonw_aborts_on_misuse)
{
    GString *out = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(out, false);

    switch (_i) {
    case 0: /* a key at the top */
        lh_jsonw_uint(w, "key", 1);
        break;
    case 1: /* a key in an array */
        lh_jsonw_array_begin(w, NULL);
        lh_jsonw_uint(w, "key", 1);
        break;
    case 2: /* no key in an object */
        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_uint(w, NULL, 1);
        break;
    case 3: /* unclosed */
        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_free(w);
        break;
    case 4: /* wrong bracket */
        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_array_end(w);
        break;
    case 5: /* two values */
        lh_jsonw_uint(w, NULL, 1);
        lh_jsonw_uint(w, NULL, 2);
        break;
    case 6: /* not a number */
        lh_jsonw_double(w, NULL, 0.0 / (double)(out->len));
        break;
    default: /* nothing at all */
        lh_jsonw_free(w);
        break;
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("base_jsonw");
    TCase *cases = tcase_create("base_jsonw");
    SRunner *runner;
    int failed;

    tcase_add_test(cases, jsonw_indents_by_two);
    tcase_add_test(cases, jsonw_writes_one_line);
    tcase_add_test(cases, jsonw_escapes_strings);
    tcase_add_test(cases, jsonw_writes_exact_seconds);
    tcase_add_test(cases, jsonw_is_read_back_exactly);
    tcase_add_loop_test_raise_signal(cases, jsonw_aborts_on_misuse, SIGABRT, 0, 8);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
