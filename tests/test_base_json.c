/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict JSON reading: every syntax error with its position and message, exact integers,
 * table-driven decoding with every message, clean-up on failure, and schemas.
 */
#include "base/error.h"
#include "base/json/json_private.h"
#include "base/json/json_same.h"
#include "base/json/json_schema.h"
#include "base/rng.h"
#include "run_tests.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

static LhJson *
parse(const char *text, GError **error)
{
    return lh_json_parse("t.json", text, strlen(text), error);
}

static LhJson *
parse_ok(const char *text)
{
    g_autoptr(GError) error = NULL;
    LhJson *json = parse(text, &error);

    ck_assert_msg(json != NULL, "%s: %s", text, error != NULL ? error->message : "no message");
    return json;
}

static void
check_message(const GError *error, const char *expected)
{
    ck_assert_ptr_nonnull(error);
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
    ck_assert_str_eq(error->message, expected);
}

START_TEST(json_accepts_the_grammar)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        " \t\r\n{ } \n",
        "null",
        "true",
        "false",
        "\"text\"",
        "0",
        "-0",
        "-1.5e+10",
        "1E-5",
        "[1, 2,3 , [ ] , { \"a\" : [ { } ] } ]",
        "\"\\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u00e9 \\ud83d\\ude00\"",
        "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80 \x7f\"",
        "{\"a\": 1, \"A\": 2, \"\": 3}",
        "123456789012345678901234567890123456789012345678901234567890",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(LhJson) json = parse_ok(texts[i]);

        ck_assert_uint_eq(strlen(lh_json_sha256(json)), 64);
    }
}
END_TEST

typedef struct {
    const char *text;
    const char *message;
} ErrorCase;

static void
check_parse_errors(const ErrorCase *cases, gsize count)
{
    for (gsize i = 0; i < count; i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *expected = g_strdup_printf("t.json:%s", cases[i].message);

        ck_assert_msg(parse(cases[i].text, &error) == NULL, "accepted: %s", cases[i].text);
        check_message(error, expected);
    }
}

START_TEST(json_words_errors_of_structure)
{
    static const ErrorCase cases[] = {
        { "", "1:1: error: the file is empty" },
        { " \n ", "1:1: error: the file is empty" },
        { "\xef\xbb\xbf{}",
          "1:1: error: the file starts with a byte order mark; save it as UTF-8 without one" },
        { "{", "1:2: error: expected a key in double quotes or '}' but found the end of the file" },
        { "{\n  a: 1}", "2:3: error: expected a key in double quotes or '}' but found \"a\"" },
        { "{'a': 1}", "1:2: error: expected a key in double quotes or '}' but found ''' (JSON "
                      "strings need double quotes)" },
        { "{\"a\" 1}", "1:6: error: expected ':' after the key but found \"1\"" },
        { "{\"a\"", "1:5: error: expected ':' after the key but found the end of the file" },
        { "{\"a\":}", "1:6: error: expected a value after ':' but found '}'" },
        { "{\"a\": 1 \"b\": 2}", "1:9: error: expected ',' or '}' but found '\"'" },
        { "{\"a\": 1,}", "1:9: error: expected a key in double quotes after ',' but found '}' "
                         "(JSON has no trailing comma)" },
        { "{\"a\": 1", "1:8: error: expected ',' or '}' but found the end of the file" },
        { "[1, 2", "1:6: error: expected ',' or ']' but found the end of the file" },
        { "[1 2]", "1:4: error: expected ',' or ']' but found \"2\"" },
        { "[1,]", "1:4: error: expected a value after ',' but found ']' (JSON has no trailing "
                  "comma)" },
        { "[,1]", "1:2: error: expected a value or ']' but found ','" },
        { "[1}", "1:3: error: expected ',' or ']' but found '}'" },
        { "{} x", "1:4: error: expected the end of the file but found \"x\"" },
        { "{}\n{}", "2:1: error: expected the end of the file but found '{'" },
        { "]", "1:1: error: expected a JSON value but found ']'" },
        { "// hi\n{}", "1:1: error: expected a JSON value but found '/' (JSON has no comments)" },
        { "{\"a\": 1} # x",
          "1:10: error: expected the end of the file but found '#' (JSON has no comments)" },
        { "[NaN]", "1:2: error: expected a value or ']' but found \"NaN\"" },
        { "[1, Infinity]", "1:5: error: expected a value after ',' but found \"Infinity\"" },
        { "[True]", "1:2: error: expected a value or ']' but found \"True\"" },
        { "[truey]", "1:2: error: expected a value or ']' but found \"truey\"" },
        { "[nul]", "1:2: error: expected a value or ']' but found \"nul\"" },
        { "[\xc3\xbc]", "1:2: error: expected a value or ']' but found the character U+00FC" },
        { "[\xff]", "1:2: error: expected a value or ']' but found the byte 0xff" },
        { "[\x01]", "1:2: error: expected a value or ']' but found the byte 0x01" },
        { "{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}}",
          "1:24: error: the key \"c\" appears here for the second time" },
        { "{\"a\": 1,\n \"\\u0061\": 2}",
          "2:2: error: the key \"a\" appears here for the second time" },
    };

    check_parse_errors(cases, G_N_ELEMENTS(cases));
}
END_TEST

START_TEST(json_words_errors_of_numbers)
{
    static const ErrorCase cases[] = {
        { "01", "1:1: error: a number must not start with a superfluous 0" },
        { "-01", "1:1: error: a number must not start with a superfluous 0" },
        { "[+1]", "1:2: error: a number must not start with '+'" },
        { "[.5]", "1:2: error: a number must have a digit before its decimal point" },
        { "1.", "1:3: error: expected a digit after the decimal point but found the end of the "
                "file" },
        { "[1.e5]", "1:4: error: expected a digit after the decimal point but found \"e5\"" },
        { "1e", "1:3: error: expected a digit after the exponent sign but found the end of the "
                "file" },
        { "[1e+]", "1:5: error: expected a digit after the exponent sign but found ']'" },
        { "-", "1:2: error: expected a digit after '-' but found the end of the file" },
        { "[-x]", "1:3: error: expected a digit after '-' but found \"x\"" },
        { "[-Infinity]", "1:3: error: expected a digit after '-' but found \"Infinity\"" },
        { "0x10", "1:2: error: expected the end of the file but found \"x10\"" },
        { "1e999", "1:1: error: the number 1e999 is too large" },
        { "-1e999", "1:1: error: the number -1e999 is too large" },
        { "1234567890123456789012345678901234567890123456789012345678901",
          "1:1: error: a number of more than 60 characters" },
    };

    check_parse_errors(cases, G_N_ELEMENTS(cases));
}
END_TEST

START_TEST(json_words_errors_of_strings)
{
    static const ErrorCase cases[] = {
        { "\"abc", "1:1: error: a string is not closed before the end of the file" },
        { "[\"abc\n\"]", "1:2: error: a string is not closed before the end of its line" },
        { "\"a\tb\"", "1:3: error: control character 0x09 in a string; write it as \\u0009" },
        { "\"\\x\"", "1:3: error: expected one of \" \\ / b f n r t u after a backslash but found "
                     "\"x\"" },
        { "\"\\", "1:3: error: expected one of \" \\ / b f n r t u after a backslash but found the "
                  "end of the file" },
        { "\"\\u12g4\"", "1:6: error: expected four hexadecimal digits after \\u but found "
                         "\"g4\"" },
        { "\"\\u12", "1:6: error: expected four hexadecimal digits after \\u but found the end of "
                     "the file" },
        { "\"\\u0000\"", "1:2: error: \\u0000 is not allowed in a string" },
        { "\"\\ud800\"", "1:2: error: half of a surrogate pair in a string" },
        { "\"\\udc00\\ud800\"", "1:2: error: half of a surrogate pair in a string" },
        { "\"\\ud800\\u0041\"", "1:2: error: half of a surrogate pair in a string" },
        { "\"a\x80\"", "1:3: error: the byte 0x80 is not valid UTF-8" },
        { "\"\xc0\xaf\"", "1:2: error: the byte 0xc0 is not valid UTF-8" },
        { "\"\xed\xa0\x80\"", "1:2: error: the byte 0xed is not valid UTF-8" },
        { "\"\xf0\x9f\x98\"", "1:2: error: the byte 0xf0 is not valid UTF-8" },
        { "\"\xc3\xbc\xc3\xbc\" x", "1:6: error: expected the end of the file but found \"x\"" },
    };

    check_parse_errors(cases, G_N_ELEMENTS(cases));
}
END_TEST

START_TEST(json_rejects_nul_bytes)
{
    static const struct {
        const char *text;
        gsize length;
        const char *message;
    } cases[] = {
        { "{}\0", 3, "t.json:1:3: error: expected the end of the file but found the byte 0x00" },
        { "[\0]", 3, "t.json:1:2: error: expected a value or ']' but found the byte 0x00" },
        { "\"a\0b\"", 5,
          "t.json:1:3: error: control character 0x00 in a string; write it as \\u0000" },
        { "\"\\\0\"", 4,
          "t.json:1:3: error: expected one of \" \\ / b f n r t u after a backslash but found the "
          "byte 0x00" },
        { "\0", 1, "t.json:1:1: error: expected a JSON value but found the byte 0x00" },
        { "1\0", 2, "t.json:1:2: error: expected the end of the file but found the byte 0x00" },
        { "[1\0,2]", 6, "t.json:1:3: error: expected ',' or ']' but found the byte 0x00" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(lh_json_parse("t.json", cases[i].text, cases[i].length, &error));
        check_message(error, cases[i].message);
    }
}
END_TEST

static char *
nested(int depth)
{
    GString *text = g_string_new(NULL);

    for (int i = 0; i < depth; i++)
        g_string_append_c(text, '[');
    for (int i = 0; i < depth; i++)
        g_string_append_c(text, ']');
    return g_string_free(text, FALSE);
}

START_TEST(json_limits_depth)
{
    g_autofree char *deepest = nested(64);
    g_autofree char *too_deep = nested(65);
    g_autofree char *absurd = nested(1000000);
    g_autoptr(LhJson) json = parse_ok(deepest);
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) second = NULL;

    ck_assert_ptr_nonnull(json);
    ck_assert_ptr_null(parse(too_deep, &error));
    check_message(error, "t.json:1:65: error: nested more than 64 levels deep");
    ck_assert_ptr_null(parse(absurd, &second));
    check_message(second, "t.json:1:65: error: nested more than 64 levels deep");
}
END_TEST

/* --- decoding --- */

typedef struct {
    char *kind;
    double bandwidth_bytes_per_s;
    LhTime latency_ps;
    uint64_t count;
} Link;

typedef struct {
    double weight;
    char *label;
} Inner;

typedef struct {
    char *name;
    uint64_t ranks;
    int64_t offset;
    double factor;
    bool exact;
    uint64_t tokens;
    uint64_t memory_bytes;
    double speed;
    int mode;
    Inner inner;
    GArray *links;
    GArray *sizes;
    GPtrArray *tags;
} Sample;

static void
link_init(void *element)
{
    Link *link = element;

    link->count = 1;
}

static const char *const modes[] = { "fast", "exact", "off", NULL };

static const LhField link_fields[] = {
    { .name = "kind",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Link, kind),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = 8 },
    { .name = "bandwidth",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(Link, bandwidth_bytes_per_s),
      .unit = LH_UNIT_BANDWIDTH,
      .min = 1e6,
      .max = 1e13 },
    { .name = "latency",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(Link, latency_ps),
      .unit = LH_UNIT_TIME,
      .max = 1e-3,
      .description = "Time of an empty message." },
    { .name = "count", .type = LH_FIELD_UINT, .offset = offsetof(Link, count), .min = 1 },
    { .name = NULL },
};

static const LhField inner_fields[] = {
    { .name = "weight",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(Inner, weight),
      .flags = LH_FIELD_REQUIRED,
      .min = -INFINITY,
      .max = 2.5 },
    { .name = "label", .type = LH_FIELD_STRING, .offset = offsetof(Inner, label) },
    { .name = NULL },
};

static const LhField sample_fields[] = {
    { .name = "name",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Sample, name),
      .flags = LH_FIELD_REQUIRED,
      .description = "What to call it." },
    { .name = "ranks",
      .type = LH_FIELD_UINT,
      .offset = offsetof(Sample, ranks),
      .min = 1,
      .max = 64 },
    { .name = "offset", .type = LH_FIELD_INT, .offset = offsetof(Sample, offset) },
    { .name = "factor",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(Sample, factor),
      .flags = LH_FIELD_OR_NULL },
    { .name = "exact", .type = LH_FIELD_BOOL, .offset = offsetof(Sample, exact) },
    { .name = "tokens",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(Sample, tokens),
      .unit = LH_UNIT_COUNT,
      .min = 1,
      .max = 1 << 20 },
    { .name = "memory",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(Sample, memory_bytes),
      .unit = LH_UNIT_BYTES,
      .min = 1024,
      .max = 1099511627776.0 },
    { .name = "speed",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(Sample, speed),
      .unit = LH_UNIT_FLOPS,
      .min = 1e9 },
    { .name = "mode", .type = LH_FIELD_CHOICE, .offset = offsetof(Sample, mode), .choices = modes },
    { .name = "inner",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(Sample, inner),
      .fields = inner_fields },
    { .name = "links",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(Sample, links),
      .fields = link_fields,
      .element_size = sizeof(Link),
      .element_init = link_init,
      .max = 3 },
    { .name = "sizes", .type = LH_FIELD_UINTS, .offset = offsetof(Sample, sizes), .min = 2 },
    { .name = "tags",
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(Sample, tags),
      .flags = LH_FIELD_OR_NULL },
    { .name = NULL },
};

START_TEST(json_decodes_every_type)
{
    g_autoptr(LhJson) json = parse_ok(
        "{\"name\": \"x\\u00fc\", \"ranks\": 8, \"offset\": -3, \"factor\": 0.1, \"exact\": true,"
        " \"tokens\": \"512K\", \"memory\": \"80GB\", \"speed\": \"312TFLOP/s\","
        " \"mode\": \"off\", \"inner\": {\"weight\": -1e3, \"label\": \"w\"},"
        " \"links\": [{\"kind\": \"nic\", \"bandwidth\": \"100Gbps\", \"latency\": \"2us\"},"
        " {\"kind\": \"bus\", \"count\": 4}], \"sizes\": [1, 18446744073709551615],"
        " \"tags\": [\"a\", \"b\"]}");
    g_autoptr(GError) error = NULL;
    Sample s = { 0 };
    const Link *links;

    ck_assert_msg(lh_json_decode(json, sample_fields, &s, false, &error), "%s",
                  error != NULL ? error->message : "");
    ck_assert_str_eq(s.name, "x\xc3\xbc");
    ck_assert_uint_eq(s.ranks, 8);
    ck_assert_int_eq(s.offset, -3);
    ck_assert(s.factor == 0.1);
    ck_assert(s.exact);
    ck_assert_uint_eq(s.tokens, 524288);
    ck_assert(s.memory_bytes == UINT64_C(80000000000));
    ck_assert(s.speed == 312e12);
    ck_assert_int_eq(s.mode, 2);
    ck_assert(s.inner.weight == -1000);
    ck_assert_str_eq(s.inner.label, "w");
    ck_assert_uint_eq(s.links->len, 2);
    links = (const Link *)(const void *)s.links->data;
    ck_assert_str_eq(links[0].kind, "nic");
    ck_assert(links[0].bandwidth_bytes_per_s == 12.5e9);
    ck_assert(links[0].latency_ps == 2000000);
    ck_assert_uint_eq(links[0].count, 1);
    ck_assert_uint_eq(links[1].count, 4);
    ck_assert_uint_eq(s.sizes->len, 2);
    ck_assert(g_array_index(s.sizes, uint64_t, 1) == UINT64_MAX);
    ck_assert_str_eq(g_ptr_array_index(s.tags, 1), "b");
    lh_json_clear(sample_fields, &s);
    ck_assert_ptr_null(s.name);
    ck_assert_ptr_null(s.inner.label);
    ck_assert_ptr_null(s.links);
    ck_assert_ptr_null(s.sizes);
    ck_assert_ptr_null(s.tags);
}
END_TEST

START_TEST(json_keeps_presets_of_absent_fields)
{
    g_autoptr(LhJson) json =
        parse_ok("{\"name\": \"x\", \"factor\": null, \"tags\": null, \"links\": [],"
                 " \"exact\": false, \"sizes\": [-0, 0e5]}");
    Sample s = { .ranks = 5, .factor = 2.5, .exact = true, .mode = 1, .inner = { .weight = 9 } };

    ck_assert(lh_json_decode(json, sample_fields, &s, false, NULL));
    ck_assert_uint_eq(s.ranks, 5);
    ck_assert(s.factor == 2.5);
    ck_assert(!s.exact);
    ck_assert_uint_eq(g_array_index(s.sizes, uint64_t, 0), 0);
    ck_assert_int_eq(s.mode, 1);
    ck_assert(s.inner.weight == 9);
    ck_assert_ptr_null(s.tags);
    ck_assert_uint_eq(s.links->len, 0);
    lh_json_clear(sample_fields, &s);
}
END_TEST

START_TEST(json_words_errors_of_fields)
{
    static const ErrorCase cases[] = {
        { "[]", "1:1: error: the top level must be an object; found an array" },
        { "{}", "1:1: error: missing field \"name\" at the top level; it must be a string" },
        { "{\"nmae\": \"x\"}",
          "1:2: error: unknown field \"nmae\" at the top level; did you mean \"name\"? allowed: "
          "name, ranks, offset, factor, exact, tokens, memory, speed, mode, inner, links, sizes, "
          "tags" },
        { "{\"zzzzzzzz\": 1}",
          "1:2: error: unknown field \"zzzzzzzz\" at the top level; allowed: name, ranks, offset, "
          "factor, exact, tokens, memory, speed, mode, inner, links, sizes, tags" },
        { "{\"links\": [\n  {\"kind\": \"a\",\n   \"bandwith\": 1}]}",
          "3:4: error: unknown field \"bandwith\" in \"links[0]\"; did you mean \"bandwidth\"? "
          "allowed: kind, bandwidth, latency, count" },
        { "{\"links\": [{\"kind\": \"a\"}, {}]}",
          "1:27: error: missing field \"kind\" in \"links[1]\"; it must be a string" },
        { "{\"inner\": {\"weight\": null}}",
          "1:22: error: \"inner.weight\" must be a number; found null" },
        { "{\"name\": 5}", "1:10: error: \"name\" must be a string; found the number 5" },
        { "{\"name\": null}", "1:10: error: \"name\" must be a string; found null" },
        { "{\"exact\": 1}", "1:11: error: \"exact\" must be true or false; found the number 1" },
        { "{\"factor\": \"1\"}",
          "1:12: error: \"factor\" must be a number; found the string \"1\"" },
        { "{\"inner\": []}", "1:11: error: \"inner\" must be an object; found an array" },
        { "{\"links\": {}}",
          "1:11: error: \"links\" must be an array of objects; found an object" },
        { "{\"links\": [true]}", "1:12: error: \"links[0]\" must be an object; found true" },
        { "{\"sizes\": false}",
          "1:11: error: \"sizes\" must be an array of non-negative integers; found false" },
        { "{\"sizes\": [1, \"2\"]}",
          "1:15: error: \"sizes[1]\" must be a non-negative integer; found the string \"2\"" },
        { "{\"tags\": 1}",
          "1:10: error: \"tags\" must be an array of strings; found the number 1" },
        { "{\"tags\": [\"a\", {}]}", "1:16: error: \"tags[1]\" must be a string; found an object" },
        { "{\"mode\": \"exakt\"}",
          "1:10: error: \"mode\" must be one of fast, exact, off (did you mean \"exact\"?); found "
          "the string \"exakt\"" },
        { "{\"mode\": \"zzzzzzz\\n\"}",
          "1:10: error: \"mode\" must be one of fast, exact, off; found the string "
          "\"zzzzzzz\\n\"" },
        { "{\"mode\": 1}",
          "1:10: error: \"mode\" must be one of fast, exact, off; found the number 1" },
        { "{\"speed\": 5}", "1:11: error: \"speed\" must be a speed such as 312TFLOP/s or "
                            "19.5TFLOPS; found the number 5" },
        { "{\"tokens\": 1.5}",
          "1:12: error: \"tokens\" must be a count such as 4096, 512K or 1M; found the number "
          "1.5" },
        { "{\"tokens\": \"1T\"}",
          "1:12: error: \"tokens\": \"1T\" is not a count such as 4096, 512K or 1M: its unit is "
          "unknown; allowed: digits, then nothing, K, M or G (1024-based; k, m and g are the "
          "same)" },
        { "{\"memory\": []}", "1:12: error: \"memory\" must be a size such as 64MiB, 80GB or 512K; "
                              "found an array" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhJson) json = parse_ok(cases[i].text);
        g_autofree char *expected = g_strdup_printf("t.json:%s", cases[i].message);
        g_autoptr(GError) error = NULL;
        Sample s = { 0 };

        ck_assert(!lh_json_decode(json, sample_fields, &s, false, &error));
        check_message(error, expected);
        ck_assert_ptr_null(s.links);
        ck_assert_ptr_null(s.tags);
    }
}
END_TEST

START_TEST(json_words_errors_of_ranges)
{
    static const ErrorCase cases[] = {
        { "\"ranks\": 0", "\"ranks\" is out of range: found the number 0; allowed: 1 to 64" },
        { "\"ranks\": 65", "\"ranks\" is out of range: found the number 65; allowed: 1 to 64" },
        { "\"ranks\": -1", "\"ranks\" is out of range: found the number -1; allowed: 1 to 64" },
        { "\"ranks\": 1e30", "\"ranks\" is out of range: found the number 1e30; allowed: 1 to 64" },
        { "\"ranks\": 1.5", "\"ranks\" must be a non-negative integer; found the number 1.5" },
        { "\"offset\": 9223372036854775808",
          "\"offset\" is out of range: found the number 9223372036854775808; allowed: "
          "-9223372036854775808 to 9223372036854775807" },
        { "\"sizes\": [1, -1]", "\"sizes[1]\" is out of range: found the number -1; allowed: 0 to "
                                "18446744073709551615" },
        { "\"sizes\": [1]", "\"sizes\" has 1 elements; allowed: at least 2" },
        { "\"links\": [{}, {}, {}, {}]", "\"links\" has 4 elements; allowed: 0 to 3" },
        { "\"links\": [{\"kind\": \"\"}]", "\"links[0].kind\" has 0 characters; allowed: 1 to 8" },
        { "\"links\": [{\"count\": 0}]",
          "\"links[0].count\" is out of range: found the number 0; allowed: at least 1" },
        { "\"links\": [{\"bandwidth\": \"1bps\"}]",
          "\"links[0].bandwidth\" is out of range: found the string \"1bps\"; allowed: 1 MB/s to "
          "10 TB/s" },
        { "\"links\": [{\"latency\": \"2ms\"}]",
          "\"links[0].latency\" is out of range: found the string \"2ms\"; allowed: 0 ps to 1 "
          "ms" },
        { "\"inner\": {\"weight\": 3}",
          "\"inner.weight\" is out of range: found the number 3; allowed: at most 2.5" },
        { "\"tokens\": \"2M\"",
          "\"tokens\" is out of range: found the string \"2M\"; allowed: 1 to 1048576" },
        { "\"tokens\": 0", "\"tokens\" is out of range: found the number 0; allowed: 1 to "
                           "1048576" },
        { "\"memory\": 5",
          "\"memory\" is out of range: found the number 5; allowed: 1 KiB to 1 TiB" },
        { "\"memory\": \"2TB\"",
          "\"memory\" is out of range: found the string \"2TB\"; allowed: 1 KiB to 1 TiB" },
        { "\"speed\": \"1FLOPS\"",
          "\"speed\" is out of range: found the string \"1FLOPS\"; allowed: at least 1 GFLOP/s" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("{\"name\": \"x\", %s}", cases[i].text);
        g_autoptr(LhJson) json = parse_ok(text);
        g_autoptr(GError) error = NULL;
        Sample s = { 0 };

        ck_assert(!lh_json_decode(json, sample_fields, &s, false, &error));
        ck_assert_msg(g_str_has_suffix(error->message, cases[i].message), "%s", error->message);
        ck_assert_ptr_null(s.name);
    }
}
END_TEST

START_TEST(json_reads_integers_exactly)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t value;
    } cases[] = {
        { "0", true, 0 },
        { "-0", true, 0 },
        { "9007199254740993", true, INT64_C(9007199254740993) },
        { "9223372036854775807", true, INT64_MAX },
        { "-9223372036854775808", true, INT64_MIN },
        { "-9223372036854775809", false, 0 },
        { "9223372036854775808", false, 0 },
        { "1e3", true, 1000 },
        { "1E+3", true, 1000 },
        { "1.5e1", true, 15 },
        { "1.50", false, 0 },
        { "1.5", false, 0 },
        { "5.0", true, 5 },
        { "1000e-3", true, 1 },
        { "1001e-3", false, 0 },
        { "10.010e2", true, 1001 },
        { "0.001e3", true, 1 },
        { "0e999999", true, 0 },
        { "0.000", true, 0 },
        { "1e-400", false, 0 },
        { "1e18", true, INT64_C(1000000000000000000) },
        { "1e19", false, 0 },
        { "100000000000000000000000000000e-29", true, 1 },
        { "1e99999999999999999999", false, 0 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("{\"name\": \"x\", \"offset\": %s}", cases[i].text);
        g_autoptr(LhJson) json = parse(text, NULL);
        Sample s = { 0 };
        bool ok = json != NULL && lh_json_decode(json, sample_fields, &s, false, NULL);

        ck_assert_msg(ok == cases[i].ok, "%s", cases[i].text);
        ck_assert_msg(!ok || s.offset == cases[i].value, "%s", cases[i].text);
        lh_json_clear(sample_fields, &s);
    }
}
END_TEST

START_TEST(json_allows_unknown_fields_on_request)
{
    g_autoptr(LhJson) json =
        parse_ok("{\"torch\": [1], \"name\": \"x\", \"inner\": {\"weight\": 1, \"other\": {}}}");
    g_autoptr(LhJson) shouted = parse_ok("{\"NAME\": \"x\"}");
    g_autoptr(GError) error = NULL;
    Sample s = { 0 };

    ck_assert(lh_json_decode(json, sample_fields, &s, true, NULL));
    ck_assert_str_eq(s.name, "x");
    lh_json_clear(sample_fields, &s);
    ck_assert(!lh_json_decode(shouted, sample_fields, &s, true, &error));
    check_message(error, "t.json:1:1: error: missing field \"name\" at the top level; it must be a "
                         "string");
}
END_TEST

START_TEST(json_decodes_at_a_path)
{
    g_autoptr(LhJson) json = parse_ok("{\"a\": {\"b\": [1, {\"weight\": 2}]}, \"n\": null,\n"
                                      " \"bad\": {\"weigth\": 1}, \"s\": \"x\"}");
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) second = NULL;
    Inner inner = { 0 };

    ck_assert(lh_json_decode_at(json, "a.b[1]", inner_fields, &inner, false, &error));
    ck_assert(inner.weight == 2);
    ck_assert(!lh_json_decode_at(json, "a.c", inner_fields, &inner, false, &error));
    ck_assert(!lh_json_decode_at(json, "n", inner_fields, &inner, false, &error));
    ck_assert_ptr_null(error);
    ck_assert(!lh_json_decode_at(json, "bad", inner_fields, &inner, false, &error));
    check_message(error, "t.json:2:10: error: unknown field \"weigth\" in \"bad\"; did you mean "
                         "\"weight\"? allowed: weight, label");
    ck_assert(!lh_json_decode_at(json, "s", inner_fields, &inner, false, &second));
    check_message(second, "t.json:2:29: error: \"s\" must be an object; found the string \"x\"");
}
END_TEST

START_TEST(json_knows_what_it_has)
{
    g_autoptr(LhJson) json = parse_ok("{\"a\": {\"b\": [1, [2, {\"c\": 3}]]}, \"n\": null}");
    static const struct {
        const char *path;
        bool has;
    } cases[] = {
        { "", true },
        { "a", true },
        { "a.b", true },
        { "a.b[0]", true },
        { "a.b[1][1].c", true },
        { "a.b[2]", false },
        { "a.b[1][9].c", false },
        { "a.b.c", false },
        { "a[0]", false },
        { "A", false },
        { "n", false },
        { "a.b[99999999999]", false },
        { "a.b[4294967296]", false },
        /* Keys of a file, in its order. */
        { "[share", false },
        { "a.b[", false },
        { "a.b[]", false },
        { "a.b[0", false },
        { "a.b[0x]", false },
        { "]", false },
        { "a..b", false },
        { ".", false },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        ck_assert_msg(lh_json_has(json, cases[i].path) == cases[i].has, "%s", cases[i].path);
}
END_TEST

START_TEST(json_places_the_callers_errors)
{
    g_autoptr(LhJson) json = parse_ok("{\n  \"a\": {\n    \"b\": [10, 20]\n  }\n}");
    static const struct {
        const char *path;
        const char *message;
    } cases[] = {
        { "", "t.json:1:1: error: 7 is wrong" },
        { "a", "t.json:2:8: error: 7 is wrong" },
        { "a.b[1]", "t.json:3:15: error: 7 is wrong" },
        { "a.b[2]", "t.json:3:10: error: 7 is wrong" },
        { "a.x.y[3]", "t.json:2:8: error: 7 is wrong" },
        { "x", "t.json:1:1: error: 7 is wrong" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert(!lh_json_error(json, cases[i].path, &error, "%d is wrong", 7));
        check_message(error, cases[i].message);
    }
}
END_TEST

START_TEST(json_loads_files)
{
    g_autofree char *dir = g_dir_make_tmp("longhaul-test-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "x.json", NULL);
    g_autofree char *missing = g_build_filename(dir, "y.json", NULL);
    g_autofree char *expected =
        g_strdup_printf("%s: error: cannot be read: No such file or directory", missing);
    g_autofree char *folder = g_strdup_printf("%s: error: cannot be read: Is a directory", dir);
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) second = NULL;
    g_autoptr(LhJson) json = NULL;

    ck_assert(g_file_set_contents(path, "{\"a\": 1}\n", -1, NULL));
    json = lh_json_load(path, NULL);
    ck_assert_ptr_nonnull(json);
    ck_assert_str_eq(lh_json_sha256(json),
                     "e8c628edc9968ef0c668f54e0ba2636b35503357eb1aca0ddc828aeace432f67");
    ck_assert_ptr_null(lh_json_load(missing, &error));
    check_message(error, expected);
    ck_assert_ptr_null(lh_json_load(dir, &second));
    check_message(second, folder);
    g_unlink(path);
    g_rmdir(dir);
}
END_TEST

START_TEST(json_limits_the_size_of_endless_files)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(lh_json_load("/dev/zero", &error));
    check_message(error, "/dev/zero: error: larger than 256 MiB");
}
END_TEST

/* Every prefix of a valid document and every single changed byte either parses or is rejected. */
START_TEST(json_survives_broken_documents)
{
    static const char text[] =
        "{\"name\": \"x\\u00fc\xc3\xbc\", \"ranks\": 8, \"links\": [{\"kind\": \"nic\", "
        "\"bandwidth\": \"100Gbps\"}, {\"kind\": \"b\"}], \"sizes\": [1, 2.5e3], \"exact\": true, "
        "\"inner\": {\"weight\": -0.5}}";
    const gsize length = sizeof(text) - 1;

    for (uint64_t i = 0; i < 40000; i++) {
        g_autofree char *broken = g_memdup2(text, length);
        gsize cut = i < length ? i : length;
        g_autoptr(GError) error = NULL;
        g_autoptr(LhJson) json = NULL;
        Sample s = { 0 };

        for (unsigned k = 0; i >= length && k <= i % 3; k++)
            broken[lh_rng_bits(1, i, k) % length] = (char)lh_rng_bits(2, i, k);
        json = lh_json_parse("t.json", broken, cut, &error);
        ck_assert((json == NULL) == (error != NULL));
        if (json != NULL && lh_json_decode(json, sample_fields, &s, i % 2 == 0, &error))
            lh_json_clear(sample_fields, &s);
        ck_assert(error == NULL || g_utf8_validate(error->message, -1, NULL));
    }
}
END_TEST

START_TEST(json_writes_schemas)
{
    static const LhField fields[] = {
        { .name = "name",
          .type = LH_FIELD_STRING,
          .flags = LH_FIELD_REQUIRED,
          .description = "What to call it." },
        { .name = "mode", .type = LH_FIELD_CHOICE, .choices = modes },
        { .name = "factor", .type = LH_FIELD_DOUBLE, .flags = LH_FIELD_OR_NULL, .min = 0.5 },
        { .name = "memory", .type = LH_FIELD_UNIT, .unit = LH_UNIT_COUNT },
        { .name = NULL },
    };
    g_autofree char *schema = lh_json_schema("longhaul.sample/1", "A sample", fields);

    ck_assert_str_eq(schema, "{\n"
                             "  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
                             "  \"$id\": \"longhaul.sample/1\",\n"
                             "  \"title\": \"A sample\",\n"
                             "  \"type\": \"object\",\n"
                             "  \"additionalProperties\": false,\n"
                             "  \"required\": [\n"
                             "    \"name\"\n"
                             "  ],\n"
                             "  \"properties\": {\n"
                             "    \"name\": {\n"
                             "      \"description\": \"What to call it.\",\n"
                             "      \"type\": \"string\"\n"
                             "    },\n"
                             "    \"mode\": {\n"
                             "      \"enum\": [\n"
                             "        \"fast\",\n"
                             "        \"exact\",\n"
                             "        \"off\"\n"
                             "      ]\n"
                             "    },\n"
                             "    \"factor\": {\n"
                             "      \"type\": [\n"
                             "        \"number\",\n"
                             "        \"null\"\n"
                             "      ],\n"
                             "      \"minimum\": 0.5\n"
                             "    },\n"
                             "    \"memory\": {\n"
                             "      \"type\": [\n"
                             "        \"string\",\n"
                             "        \"integer\"\n"
                             "      ],\n"
                             "      \"pattern\": \"^[0-9]+( ?(K|M|G|k|m|g))?$\",\n"
                             "      \"minimum\": 0\n"
                             "    }\n"
                             "  }\n"
                             "}\n");
}
END_TEST

/* The schema of everything is itself JSON and names every field. */
START_TEST(json_schemas_are_json)
{
    g_autofree char *schema = lh_json_schema("x/1", "x", sample_fields);
    g_autoptr(LhJson) json = parse_ok(schema);

    for (const LhField *f = sample_fields; f->name != NULL; f++) {
        g_autofree char *path = g_strdup_printf("properties.%s", f->name);

        ck_assert(lh_json_has(json, path));
    }
    ck_assert(lh_json_has(json, "properties.links.items.properties.bandwidth.pattern"));
    ck_assert(lh_json_has(json, "properties.inner.properties.weight.maximum"));
    ck_assert(!lh_json_has(json, "properties.inner.properties.weight.minimum"));
    ck_assert(lh_json_has(json, "properties.sizes.minItems"));
}
END_TEST

static bool
counts(const char *path)
{
    return !g_str_equal(path, "b") && !g_str_equal(path, "c[0].d");
}

/* @place: path of the first difference, or NULL if there is none. */
static void
check_same(const char *a, const char *b, const char *place, const char *in_a, const char *in_b)
{
    g_autoptr(LhJson) x = parse_ok(a);
    g_autoptr(LhJson) y = parse_ok(b);
    g_auto(LhJsonDifference) d = { NULL };

    ck_assert_int_eq(lh_json_same(x, y, counts, &d), place == NULL);
    ck_assert_msg(g_strcmp0(d.path, place) == 0 && g_strcmp0(d.a, in_a) == 0 &&
                      g_strcmp0(d.b, in_b) == 0,
                  "%s, %s: %s, %s, %s", a, b, d.path, d.a, d.b);
}

/* Also in the other direction. */
static void
check_differs(const char *a, const char *b, const char *place, const char *in_a, const char *in_b)
{
    check_same(a, b, place, in_a, in_b);
    check_same(b, a, place, in_b, in_a);
}

START_TEST(json_finds_the_first_difference)
{
    check_same("{\"a\":[1,{}],\"b\":2}", " { \"a\" : [ 1 , { } ] , \"b\" : [ 3 ] } ", NULL, NULL,
               NULL);
    check_same("{\"c\":[{\"d\":1,\"e\":2}]}", "{\"c\":[{\"d\":2,\"e\":2}]}", NULL, NULL, NULL);
    check_same("null", "null", NULL, NULL, NULL);
    check_same("[1.0, 25e-1, 0.1]", "[1, 2.5, 1e-1]", NULL, NULL, NULL);
    check_differs("[9007199254740993]", "[9007199254740992]", "[0]", "9007199254740993",
                  "9007199254740992");
    check_differs("[1.5]", "[1.25]", "[0]", "1.5", "1.25");
    check_differs("[1]", "[\"1\"]", "[0]", "1", "\"1\"");
    check_differs("{\"c\":[{\"d\":1,\"e\":2}]}", "{\"c\":[{\"d\":2,\"e\":20}]}", "c[0].e", "2",
                  "20");
    check_differs("{\"c\":[1,{\"d\":1}]}", "{\"c\":[1,{\"d\":\"1\"}]}", "c[1].d", "1", "\"1\"");
    check_differs("[1,2]", "[1]", "[1]", "2", "nothing");
    check_differs("{\"a\":1}", "{}", "a", "1", "nothing");
    check_differs("{\"a\":{\"x\":1}}", "{\"a\":[1]}", "a", "an object", "a list");
    check_differs("{\"a\":\"\\n\"}", "{\"a\":true}", "a", "\"\\n\"", "true");
    check_differs("1", "2", "", "1", "2");
    check_same("{\"a\":1,\"x\":2}", "{\"y\":1,\"x\":2}", "a", "1", "nothing");
    check_same("{\"a\":1}", "{\"A\":1}", "a", "1", "nothing");
}
END_TEST

/* Peak memory of the process, bytes. */
static uint64_t
peak_bytes(void)
{
    struct rusage usage;

    ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
    return (uint64_t)usage.ru_maxrss * 1024;
}

/* A document costs its text and one cJSON node per value; the shortest values have two bytes. */
START_TEST(json_costs_a_node_for_each_value)
{
    const gsize count = 4 << 20, length = 2 * count + 1;
    g_autofree char *text = g_malloc(length);
    g_autoptr(LhJson) json = NULL;
    uint64_t before;

    memset(text, ',', length);
    for (gsize i = 0; i < count; i++)
        text[2 * i + 1] = '0';
    text[0] = '[';
    text[length - 1] = ']';
    before = peak_bytes();
    json = lh_json_parse("t.json", text, length, NULL);
    ck_assert_ptr_nonnull(json);
    ck_assert(lh_json_has(json, "[4194303]") && !lh_json_has(json, "[4194304]"));
    ck_assert_uint_le(peak_bytes() - before, 64 * count + 2 * length);
}
END_TEST

typedef struct {
    LhFieldLater links;
    LhFieldLater numbers;
} Later;

static const LhField number_fields[] = {
    { .name = "number", .type = LH_FIELD_UINT, .max = 9 },
    { .name = NULL },
};

static const LhField later_fields[] = {
    { .name = "links",
      .type = LH_FIELD_LATER,
      .offset = offsetof(Later, links),
      .fields = link_fields,
      .element_size = sizeof(Link),
      .element_init = link_init,
      .max = 3 },
    { .name = "numbers",
      .type = LH_FIELD_VALUES,
      .offset = offsetof(Later, numbers),
      .fields = number_fields,
      .element_size = sizeof(uint64_t) },
    { .name = NULL },
};

START_TEST(json_decodes_elements_later)
{
    g_autoptr(LhJson) json =
        parse_ok("{\"links\": [ {\"kind\": \"a\\\"]\", \"count\": 2} ,\n {\"kind\": \"b\"},\n"
                 "  {\"kind\": \"c\", \"coun\": 1}], \"numbers\": [3, 1e0,\n 10]}");
    g_autoptr(GError) error = NULL, second = NULL, third = NULL;
    Later later = { 0 };
    Link link;
    uint64_t number;

    ck_assert(lh_json_decode(json, later_fields, &later, false, NULL));
    ck_assert_ptr_null(json->tree->root); /* freed, since it would be most of a document's memory */
    ck_assert_uint_eq(later.links.count, 3);
    ck_assert(lh_json_decode_next(json, &later_fields[0], "links", &later.links, &link, NULL));
    ck_assert_str_eq(link.kind, "a\"]");
    ck_assert_uint_eq(link.count, 2);
    lh_json_clear(link_fields, &link);
    ck_assert(lh_json_decode_next(json, &later_fields[0], "links", &later.links, &link, NULL));
    ck_assert_str_eq(link.kind, "b");
    ck_assert_uint_eq(link.count, 1);
    lh_json_clear(link_fields, &link);
    ck_assert(!lh_json_decode_next(json, &later_fields[0], "links", &later.links, &link, &error));
    check_message(error, "t.json:3:17: error: unknown field \"coun\" in \"links[2]\"; did you mean "
                         "\"count\"? allowed: kind, bandwidth, latency, count");
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(
            lh_json_decode_next(json, &later_fields[1], "numbers", &later.numbers, &number, NULL));
        ck_assert_uint_eq(number, i == 0 ? 3 : 1);
    }
    ck_assert(
        !lh_json_decode_next(json, &later_fields[1], "numbers", &later.numbers, &number, &second));
    check_message(second, "t.json:4:2: error: \"numbers[2]\" is out of range: found the number 10; "
                          "allowed: 0 to 9");
    ck_assert(!lh_json_error(json, "links[1].kind", &third, "no"));
    check_message(third, "t.json:2:11: error: no");
}
END_TEST

/* The non-JSON numbers that Python writes (NaN, Infinity) are values of a kind of their own. */
START_TEST(json_reads_what_python_writes)
{
    static const char text[] = "{\"a\": [NaN, Infinity,-Infinity, -1], \"NaN\": \"Infinity\"}";
    static const char *const paths[] = { "a[0]", "a[1]", "a[2]", "a[3]", "NaN", "a[4]" };
    g_autoptr(GError) error = NULL, second = NULL;
    g_autoptr(LhJson) json = lh_json_parse_python("t.json", text, strlen(text), &error);
    g_autofree char *list = NULL, *string = NULL;

    ck_assert_ptr_nonnull(json);
    for (unsigned i = 0; i < G_N_ELEMENTS(paths); i++)
        ck_assert_int_eq(lh_json_kind(json, paths[i]), "NII0\"\0"[i]);
    list = lh_json_text(json, "a");
    ck_assert_str_eq(list, "[NaN,Infinity,-Infinity,-1]");
    string = lh_json_string_at(json, "NaN");
    ck_assert_str_eq(string, "Infinity");
    ck_assert(!lh_json_check_strict(json, &error));
    check_message(error, "t.json:1:8: error: expected a value or ']' but found \"NaN\"");
    ck_assert_ptr_null(lh_json_parse("t.json", text, strlen(text), &second));
    check_message(second, error->message);
}
END_TEST

LH_TEST_MAIN("base_json", json_accepts_the_grammar, json_words_errors_of_structure,
             json_words_errors_of_numbers, json_words_errors_of_strings, json_rejects_nul_bytes,
             json_limits_depth, json_decodes_every_type, json_keeps_presets_of_absent_fields,
             json_words_errors_of_fields, json_words_errors_of_ranges, json_reads_integers_exactly,
             json_allows_unknown_fields_on_request, json_decodes_at_a_path, json_knows_what_it_has,
             json_places_the_callers_errors, json_loads_files,
             json_limits_the_size_of_endless_files, json_survives_broken_documents,
             json_writes_schemas, json_schemas_are_json, json_finds_the_first_difference,
             json_costs_a_node_for_each_value, json_decodes_elements_later,
             json_reads_what_python_writes)
