/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table-driven encoding: every type, null values, omitted values, and that decoding with the same
 * table restores everything.
 */
#include "base/json/json.h"
#include "base/json/json_encode.h"
#include "base/json/json_schema.h"
#include "run_tests.h"

#include <math.h>
#include <string.h>

typedef struct {
    uint64_t count;
    double rate;
    int sure;
} Part;

typedef struct {
    char *word;
    uint64_t count, bytes;
    int64_t offset;
    LhTime time_ps, wait_ps;
    LhWide sum;
    double share;
    bool on;
    int colour, known;
    uint64_t by_colour[3];
    Part part;
    const Part *other;
    GArray *parts; /* of Part */
    GPtrArray *others;
    GArray *uints, *times, *doubles;
    GPtrArray *words;
    GArray *members;
} Whole;

static const char *const colours[] = { "red", "green", "blue", NULL };

static void
init_part(void *part)
{
    *(Part *)part = (Part){ .count = 7, .sure = -1 };
}

static const LhField part_fields[] = {
    LH_FIELD_ROW(UINT, Part, count, "count", IF_ANY, .description = "how many"),
    LH_FIELD_ROW(DOUBLE, Part, rate, "rate", OR_NULL, .description = NULL),
    LH_FIELD_ROW(TRUTH, Part, sure, "sure", IF_ANY, .description = NULL),
    { .name = NULL },
};

static void
derive_twice(const void *of, void *value)
{
    *(uint64_t *)value = 2 * ((const Whole *)of)->count;
}

static void
derive_text(const void *of, void *value)
{
    const Whole *whole = of;

    *(char **)value = whole->on ? g_strdup_printf("%s!", whole->word) : NULL;
}

/* Returns a part whose members the writer does not free. */
static void
derive_part(const void *of, void *value)
{
    *(Part *)value = (Part){ .count = ((const Whole *)of)->bytes, .rate = 0.5 };
}

static const LhField member_values[] = {
    { .name = "text", .type = LH_FIELD_STRING, .flags = LH_FIELD_OR_NULL },
    { .name = "number", .type = LH_FIELD_UINT },
    { .name = NULL },
};

#define ROW(kind, member, when, ...) LH_FIELD_ROW(kind, Whole, member, #member, when, __VA_ARGS__)

static const LhField whole_fields[] = {
    ROW(STRING, word, OR_NULL, .description = "a word"),
    ROW(UINT, count, OR_NULL, .description = NULL),
    ROW(UNIT, bytes, ALWAYS, .unit = LH_UNIT_BYTES),
    ROW(INT, offset, IF_ANY, .description = NULL),
    LH_FIELD_ROW(UNIT, Whole, time_ps, "time", ALWAYS, .unit = LH_UNIT_TIME),
    LH_FIELD_SECONDS_ROW(INT, Whole, wait_ps, "wait_s", OR_NULL, .description = NULL),
    ROW(WIDE, sum, ALWAYS, .description = NULL),
    ROW(DOUBLE, share, OR_NULL, .description = NULL),
    ROW(BOOL, on, IF_ANY, .description = NULL),
    ROW(CHOICE, colour, OR_NULL, .choices = colours),
    ROW(TRUTH, known, OR_NULL, .description = NULL),
    ROW(COUNTS, by_colour, ALWAYS, .choices = colours),
    ROW(OBJECT, part, ALWAYS, .fields = part_fields),
    ROW(POINTER, other, OR_NULL, .fields = part_fields),
    ROW(ARRAY, parts, IF_ANY, .fields = part_fields, .element_size = sizeof(Part),
        .element_init = init_part),
    ROW(POINTERS, others, IF_ANY, .fields = part_fields),
    ROW(UINTS, uints, IF_ANY, .description = NULL),
    LH_FIELD_SECONDS_ROW(UINTS, Whole, times, "times_s", IF_ANY, .description = NULL),
    ROW(DOUBLES, doubles, IF_ANY, .description = NULL),
    ROW(STRINGS, words, OR_NULL, .description = NULL),
    ROW(MEMBERS, members, IF_ANY, .fields = member_values),
    LH_FIELD_ROW(UINT, Whole, count, "twice", ALWAYS, .derive = derive_twice),
    LH_FIELD_ROW(STRING, Whole, word, "loud", IF_ANY, .derive = derive_text),
    LH_FIELD_ROW(OBJECT, Whole, part, "derived", ALWAYS, .derive = derive_part,
                 .fields = part_fields, .element_size = sizeof(Part)),
    { .name = NULL },
};

static void
check_encoded(const LhField *fields, const void *of, const void *usual, const char *expected)
{
    g_autoptr(GString) out = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(out, true);

    lh_json_encode(w, NULL, fields, of, usual);
    lh_jsonw_free(w);
    g_string_truncate(out, out->len - 1);
    ck_assert_str_eq(out->str, expected);
}

static GArray *
uints_of(uint64_t first, uint64_t second)
{
    GArray *numbers = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    g_array_append_val(numbers, first);
    g_array_append_val(numbers, second);
    return numbers;
}

/* A value with every member set to its largest. */
static Whole
full(void)
{
    static const Part other = { .count = 9, .rate = INFINITY };
    static char word[] = "a\n\"";
    const Part parts[] = { { 7, 1, -1 }, { 0, NAN, 0 } };
    const double half = 0.5;
    const LhFieldMember members[] = {
        { .field = { .name = "x y", .type = LH_FIELD_STRING, .flags = LH_FIELD_OR_NULL } },
        { .field = { .name = "z", .type = LH_FIELD_DOUBLE }, .value.real = 0.25 },
    };
    Whole w = { .word = word,
                .count = UINT64_MAX - 1,
                .bytes = 1 << 20,
                .offset = INT64_MIN + 1,
                .time_ps = 1500,
                .wait_ps = 1500000000000,
                .sum = (LhWide)UINT64_MAX * INT64_MAX,
                .share = 0.1,
                .on = true,
                .colour = 2,
                .known = 1,
                .by_colour = { 0, 5, 6 },
                .other = &other };

    w.parts = g_array_new(FALSE, FALSE, sizeof(Part));
    g_array_append_vals(w.parts, parts, 2);
    w.others = g_ptr_array_new();
    g_ptr_array_add(w.others, (gpointer)&other);
    w.uints = uints_of(0, UINT64_MAX);
    w.times = uints_of(1, 2000000000000);
    w.doubles = g_array_new(FALSE, FALSE, sizeof(double));
    g_array_append_val(w.doubles, half);
    w.words = g_ptr_array_new();
    g_ptr_array_add(w.words, word);
    w.members = g_array_new(FALSE, TRUE, sizeof(LhFieldMember));
    g_array_append_vals(w.members, members, 2);
    return w;
}

static void
drop(Whole *w)
{
    w->word = NULL;
    lh_json_clear(whole_fields, w);
    g_clear_pointer(&w->others, g_ptr_array_unref);
}

START_TEST(encode_writes_every_type)
{
    Whole w = full();

    check_encoded(
        whole_fields, &w, NULL,
        "{\"word\": \"a\\n\\\"\", \"count\": 18446744073709551614, \"bytes\": \"1 MiB\", "
        "\"offset\": -9223372036854775807, \"time\": \"1.5 ns\", \"wait_s\": 1.5, "
        "\"sum\": 170141183460469231704017187605319778305, \"share\": 0.1, \"on\": true, "
        "\"colour\": \"blue\", \"known\": true, \"by_colour\": {\"green\": 5, \"blue\": 6}, "
        "\"part\": {\"rate\": 0}, \"other\": {\"count\": 9, \"rate\": null}, "
        "\"parts\": [{\"rate\": 1}, {\"count\": 0, \"rate\": null, \"sure\": false}], "
        "\"others\": [{\"count\": 9, \"rate\": null}], \"uints\": [0, 18446744073709551615], "
        "\"times_s\": [0.000000000001, 2], \"doubles\": [0.5], \"words\": [\"a\\n\\\"\"], "
        "\"members\": {\"x y\": null, \"z\": 0.25}, \"twice\": 18446744073709551612, \"loud\": "
        "\"a\\n\\\"!\", "
        "\"derived\": {\"count\": 1048576, \"rate\": 0.5}}");
    drop(&w);
}
END_TEST

START_TEST(encode_leaves_out_what_there_is_not)
{
    const Whole nothing = { .count = LH_FIELD_NO_UINT,
                            .wait_ps = LH_FIELD_NO_INT,
                            .share = NAN,
                            .colour = -1,
                            .known = -1 };

    check_encoded(whole_fields, &nothing, NULL,
                  "{\"word\": null, \"count\": null, \"bytes\": \"0 B\", \"time\": \"0 ps\", "
                  "\"wait_s\": null, \"sum\": 0, \"share\": null, \"colour\": null, "
                  "\"known\": null, \"by_colour\": {}, \"part\": {\"rate\": 0}, \"other\": null, "
                  "\"words\": null, "
                  "\"twice\": 18446744073709551614, \"derived\": {\"rate\": 0.5}}");
}
END_TEST

/* Values equal to the reader's presets are omitted, and only those. */
START_TEST(encode_knows_what_is_usual)
{
    const Part usual = { .count = 3 }, same = { .count = 3 }, other = { .count = 0 };

    check_encoded(part_fields, &same, &usual, "{\"rate\": 0}");
    check_encoded(part_fields, &other, &usual, "{\"count\": 0, \"rate\": 0}");
    check_encoded(part_fields, &other, NULL, "{\"rate\": 0}");
}
END_TEST

typedef struct {
    Part part;
    double rate; /* nocheck:unit: bytes/s */
    LhTime time_ps;
    double work; /* nocheck:unit: flop/s */
    Part kept;
} Optional;

static const LhField asked_part_fields[] = {
    LH_FIELD_ROW(UINT, Part, count, "count", ALWAYS, .description = NULL),
    LH_FIELD_ROW(DOUBLE, Part, rate, "rate", ALWAYS, .description = NULL),
    { .name = NULL },
};

static const LhField kept_fields[] = {
    { .name = "rate",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(Part, rate),
      .flags = LH_FIELD_STATED },
    { .name = NULL },
};

static const LhField optional_fields[] = {
    LH_FIELD_ROW(OBJECT, Optional, part, "part", IF_ANY, .fields = asked_part_fields),
    LH_FIELD_ROW(UNIT, Optional, rate, "rate", IF_ANY, .unit = LH_UNIT_BANDWIDTH),
    LH_FIELD_ROW(UNIT, Optional, time_ps, "time", IF_ANY, .unit = LH_UNIT_TIME),
    LH_FIELD_ROW(UNIT, Optional, work, "work", IF_ANY, .unit = LH_UNIT_FLOPS),
    LH_FIELD_ROW(OBJECT, Optional, kept, "kept", IF_ANY, .fields = kept_fields),
    { .name = NULL },
};

/* An object is omitted with all its members, even those required when it is present. */
START_TEST(encode_leaves_out_objects)
{
    const Optional usual = { .part = { .count = 3 }, .time_ps = -1, .kept.rate = NAN };
    Optional o = usual;

    check_encoded(optional_fields, &o, &usual, "{}");
    o.part.count = 0; /* and what the decoder still accepts */
    check_encoded(optional_fields, &o, &usual, "{\"part\": {\"count\": 0, \"rate\": 0}}");
    o.part = (Part){ .count = 3, .rate = 1 };
    o.time_ps = 0;
    check_encoded(optional_fields, &o, &usual,
                  "{\"part\": {\"count\": 3, \"rate\": 1}, \"time\": \"0 ps\"}");
    o = (Optional){ .rate = 0 };
    check_encoded(optional_fields, &o, NULL, "{\"kept\": {\"rate\": 0}}");
}
END_TEST

START_TEST(encode_lines_and_fine_units)
{
    const Optional o = {
        .rate = 24512345678, .time_ps = 1234567, .work = 2.5e12, .kept.rate = NAN
    };
    const Optional slow = { .rate = 0.5, .time_ps = 1, .work = 999999999999, .kept.rate = NAN };
    g_autofree char *line = lh_json_encode_line(optional_fields, &o);
    g_autoptr(GString) fine = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(fine, true);

    ck_assert_str_eq(
        line, "{\"rate\": \"24.51 GB/s\", \"time\": \"1.235 us\", \"work\": \"2.5 TFLOP/s\"}");
    lh_jsonw_fine(w);
    lh_jsonw_array_begin(w, NULL);
    lh_json_encode(w, NULL, optional_fields, &o, NULL);
    lh_json_encode(w, NULL, optional_fields, &slow, NULL);
    lh_jsonw_array_end(w);
    lh_jsonw_free(w);
    ck_assert_str_eq(fine->str, "[{\"rate\": \"24.512346GB/s\", \"time\": \"1.234567us\", "
                                "\"work\": \"2.500000TFLOP/s\"}, {\"rate\": \"0.000000GB/s\", "
                                "\"time\": \"0.000001us\", \"work\": \"1000.000000GFLOP/s\"}]\n");
}
END_TEST

typedef struct {
    char *name;
    uint64_t count;
    LhTime time_ps;
    int colour;
    Part part;
    GArray *parts;
} Document;

static void
derive_next(const void *of, void *value)
{
    *(uint64_t *)value = ((const Document *)of)->count + 1;
}

#define DOCUMENT_ROW(kind, member, when, ...)                                                      \
    LH_FIELD_ROW(kind, Document, member, #member, when, __VA_ARGS__)

static const LhField document_fields[] = {
    DOCUMENT_ROW(STRING, name, OR_NULL, .description = NULL),
    DOCUMENT_ROW(UINT, count, ALWAYS, .description = NULL),
    DOCUMENT_ROW(UNIT, time_ps, ALWAYS, .unit = LH_UNIT_TIME),
    DOCUMENT_ROW(CHOICE, colour, ALWAYS, .choices = colours),
    DOCUMENT_ROW(OBJECT, part, ALWAYS, .fields = part_fields),
    DOCUMENT_ROW(ARRAY, parts, ALWAYS, .fields = part_fields, .element_size = sizeof(Part),
                 .element_init = init_part),
    LH_FIELD_ROW(UINT, Document, count, "derived", ALWAYS, .derive = derive_next),
    { .name = NULL },
};

static const char *const documents[] = {
    "{\"name\": null, \"count\": 4, \"time_ps\": \"3 us\", \"colour\": \"green\", \"part\": "
    "{\"rate\": 2}, \"parts\": [], \"derived\": 5}",
    "{\"name\": \"n\", \"count\": 0, \"time_ps\": \"0 ps\", \"colour\": \"red\", \"part\": "
    "{\"count\": 1, \"rate\": 2, \"sure\": true}, \"parts\": [{\"rate\": 1}, {\"count\": 8, "
    "\"rate\": 1, \"sure\": false}], "
    "\"derived\": 1}",
};

/* A decoder of the same table skips derived members. */
START_TEST(encode_writes_what_is_read)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhJson) json = lh_json_parse("t.json", documents[_i], strlen(documents[_i]), &error);
    Document document = { .name = NULL };

    ck_assert_ptr_nonnull(json);
    ck_assert_msg(lh_json_decode(json, document_fields, &document, false, &error), "%s",
                  error != NULL ? error->message : "");
    check_encoded(document_fields, &document, NULL, documents[_i]);
    lh_json_clear(document_fields, &document);
}
END_TEST

/* A nullable member is still required. */
START_TEST(decode_misses_what_may_be_null)
{
    static const char text[] = "{\"count\": 1}";
    g_autoptr(LhJson) json = lh_json_parse("t.json", text, strlen(text), NULL);
    g_autoptr(GError) error = NULL;
    Part part = { 0 };

    ck_assert(!lh_json_decode(json, part_fields, &part, false, &error));
    ck_assert_str_eq(error->message,
                     "t.json:1:1: error: missing field \"rate\" at the top level; it must be a "
                     "number");
}
END_TEST

START_TEST(schema_describes_what_is_written)
{
    g_autofree char *text = lh_json_schema("t/1", "T", whole_fields);
    static const char *const parts[] = {
        "\"required\": [\n    \"word\",\n    \"count\",\n    \"bytes\",\n    \"time\",\n",
        "\"wait_s\": {\n      \"type\": [\n        \"number\",\n        \"null\"\n      ]\n    }",
        "\"known\": {\n      \"type\": [\n        \"boolean\",\n        \"null\"\n      ]\n    }",
        "\"by_colour\": {\n      \"type\": \"object\",\n      \"additionalProperties\": false,\n",
        "\"other\": {\n      \"type\": [\n        \"object\",\n        \"null\"\n      ],",
        "\"members\": {\n      \"type\": \"object\",\n      \"additionalProperties\": {\n",
        "        \"anyOf\": [\n          {\n            \"type\": [\n              \"string\",\n",
    };

    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "no %s in\n%s", parts[i], text);
}
END_TEST

/* ---- exact sums ---- */

typedef struct {
    uint64_t long_ps;
    int64_t late_ps;
    LhWide total_ps, sum;
    GArray *times; /* of uint64_t */
} Sums;

#define TIMES(member, kind, key)                                                                   \
    {                                                                                              \
        .name = key, .type = LH_FIELD_##kind, .offset = offsetof(Sums, member),                    \
        .flags = LH_FIELD_OR_NULL | LH_FIELD_PICOSECONDS                                           \
    }

static const LhField sum_fields[] = {
    TIMES(long_ps, UINT, "long_s"),
    TIMES(late_ps, INT, "late_s"),
    TIMES(total_ps, WIDE, "total_s"),
    LH_FIELD_ROW(WIDE, Sums, sum, "sum", IF_ANY, .description = NULL),
    TIMES(times, UINTS, "times_s"),
    { .name = NULL },
};

static bool
read_sums(const char *text, const LhField *fields, void *out, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse("t.json", text, strlen(text), error);

    ck_assert_ptr_nonnull(json);
    return lh_json_decode(json, fields, out, false, error);
}

/* Asserts that the extremes of every type and the values around each power of ten survive encoding
 * and decoding. */
static void
check_sums(const Sums *sums)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    Sums read = { 0 };

    lh_json_encode_text(sum_fields, sums, text);
    ck_assert_msg(read_sums(text->str, sum_fields, &read, &error), "%s in %s",
                  error != NULL ? error->message : "", text->str);
    ck_assert_uint_eq(read.long_ps, sums->long_ps);
    ck_assert_int_eq(read.late_ps, sums->late_ps);
    ck_assert(read.total_ps == sums->total_ps);
    ck_assert(read.sum == sums->sum);
    ck_assert_uint_eq(read.times->len, sums->times->len);
    ck_assert_mem_eq(read.times->data, sums->times->data, sums->times->len * sizeof(uint64_t));
    lh_json_clear(sum_fields, &read);
}

START_TEST(decode_reads_sums_back)
{
    const LhWide widest = (LhWide)UINT64_MAX << 63 | INT64_MAX;
    g_autoptr(GArray) extremes = uints_of(0, UINT64_MAX);
    LhWide power = 1;

    check_sums(&(Sums){ UINT64_MAX - 1, INT64_MAX, widest, widest, extremes });
    check_sums(&(Sums){ 0, INT64_MIN + 1, -widest, -widest, extremes });
    for (int digits = 0; digits < 38; digits++, power *= 10)
        for (LhWide near = power - 1; near <= power + 1; near++) {
            g_autoptr(GArray) times = uints_of((uint64_t)near, (uint64_t)(near % UINT64_MAX));

            check_sums(&(Sums){ (uint64_t)(near % UINT64_MAX), -(int64_t)(near % INT64_MAX), -near,
                                near, times });
        }
}
END_TEST

/* Any notation of a number is accepted. */
static const struct {
    const char *number;
    int64_t time_ps;
} times_read[] = {
    { "0", 0 },
    { "-0.0", 0 },
    { "0e-99", 0 },
    { "1e-12", 1 },
    { "-1.0E-12", -1 },
    { "0.000000000001000", 1 },
    { "1000000000000e-12", 1000000000000 },
    { "0.0015e+3", 1500000000000 },
    { "0e999999999999999999999", 0 },
    { "0.00000000000000000000", 0 },
    { "9223372.036854775807", INT64_MAX },
    { "-9223372.036854775807", -INT64_MAX },
    { "9223372036854775807000e-15", INT64_MAX },
};

START_TEST(decode_reads_times_exactly)
{
    g_autofree char *text = g_strdup_printf("{\"late_s\": %s}", times_read[_i].number);
    g_autoptr(GError) error = NULL;
    Sums sums = { .late_ps = 7 };

    ck_assert_msg(read_sums(text, sum_fields, &sums, &error), "%s",
                  error != NULL ? error->message : "");
    ck_assert_int_eq(sums.late_ps, times_read[_i].time_ps);
}
END_TEST

#define SECONDS "must be a number of seconds with at most 12 decimals; found "
#define BEYOND "is out of range: found the number "

/* A document and its error message after the position. */
static const char *const wrong_sums[][2] = {
    { "{\"late_s\": \"1 s\"}", "1:12: error: \"late_s\" " SECONDS "the string \"1 s\"" },
    { "{\"late_s\": [1]}", "1:12: error: \"late_s\" " SECONDS "an array" },
    { "{\"late_s\": 0.0000000000005}",
      "1:12: error: \"late_s\" " SECONDS "the number 0.0000000000005" },
    { "{\"late_s\": 1e-13}", "1:12: error: \"late_s\" " SECONDS "the number 1e-13" },
    { "{\"late_s\": 1e-99999999999999999999}",
      "1:12: error: \"late_s\" " SECONDS "the number 1e-99999999999999999999" },
    { "{\"late_s\": 9223372.036854775808}",
      "1:12: error: \"late_s\" " BEYOND
      "9223372.036854775808; allowed: -9223372.036854775807 to 9223372.036854775807" },
    { "{\"late_s\": -9223372.036854775808}",
      "1:12: error: \"late_s\" " BEYOND
      "-9223372.036854775808; allowed: -9223372.036854775807 to 9223372.036854775807" },
    { "{\"long_s\": 18446744.073709551615}",
      "1:12: error: \"long_s\" " BEYOND
      "18446744.073709551615; allowed: 0 to 18446744.073709551614" },
    { "{\"long_s\": -1e-12}",
      "1:12: error: \"long_s\" " BEYOND "-1e-12; allowed: 0 to 18446744.073709551614" },
    { "{\"long_s\": 1e300}",
      "1:12: error: \"long_s\" " BEYOND "1e300; allowed: 0 to 18446744.073709551614" },
    { "{\"total_s\": 170141183460469231731687303.715884105728}",
      "1:13: error: \"total_s\" " BEYOND "170141183460469231731687303.715884105728; allowed: "
      "-170141183460469231731687303.715884105727 to 170141183460469231731687303.715884105727" },
    { "{\"total_s\": -340282366920938463463374607.431768211456}",
      "1:13: error: \"total_s\" " BEYOND "-340282366920938463463374607.431768211456; allowed: "
      "-170141183460469231731687303.715884105727 to 170141183460469231731687303.715884105727" },
    { "{\"sum\": 340282366920938463463374607431768211455}",
      "1:9: error: \"sum\" " BEYOND "340282366920938463463374607431768211455; allowed: "
      "-170141183460469231731687303715884105727 to 170141183460469231731687303715884105727" },
    { "{\"sum\": 3402823669209384634633746074317682114565}",
      "1:9: error: \"sum\" " BEYOND "3402823669209384634633746074317682114565; allowed: "
      "-170141183460469231731687303715884105727 to 170141183460469231731687303715884105727" },
    { "{\"sum\": true}", "1:9: error: \"sum\" must be an integer; found true" },
    { "{\"sum\": 1.5}", "1:9: error: \"sum\" must be an integer; found the number 1.5" },
    { "{\"times_s\": 1}",
      "1:13: error: \"times_s\" must be an array of numbers of seconds; found the number 1" },
    { "{\"times_s\": [1, 1e-13]}", "1:17: error: \"times_s[1]\" " SECONDS "the number 1e-13" },
    { "{\"times_s\": [0, 2, 18446744.073709551616]}",
      "1:20: error: \"times_s[2]\" " BEYOND
      "18446744.073709551616; allowed: 0 to 18446744.073709551615" },
};

START_TEST(decode_words_errors_of_sums)
{
    g_autofree char *expected = g_strconcat("t.json:", wrong_sums[_i][1], NULL);
    g_autoptr(GError) error = NULL;
    Sums sums = { 0 };

    ck_assert(!read_sums(wrong_sums[_i][0], sum_fields, &sums, &error));
    ck_assert_str_eq(error->message, expected);
    ck_assert_ptr_null(sums.times);
}
END_TEST

typedef struct {
    LhTime wait_ps;
    LhWide sum;
} Bounded;

/* Bounds of times are given in seconds. */
static const LhField bounded_fields[] = {
    { .name = "wait_s",
      .type = LH_FIELD_INT,
      .offset = offsetof(Bounded, wait_ps),
      .flags = LH_FIELD_PICOSECONDS,
      .min = 0,
      .max = 2 },
    LH_FIELD_ROW(WIDE, Bounded, sum, "sum", IF_ANY, .min = -1, .max = 1e30),
    { .name = NULL },
};

START_TEST(decode_bounds_sums)
{
    static const char *const wrong[][2] = {
        { "{\"wait_s\": 2.1}",
          "t.json:1:12: error: \"wait_s\" is out of range: found the number 2.1; allowed: 0 to 2" },
        { "{\"wait_s\": -1e-12}",
          "t.json:1:12: error: \"wait_s\" is out of range: found the number -1e-12; allowed: 0 to "
          "2" },
        { "{\"sum\": -2}",
          "t.json:1:9: error: \"sum\" is out of range: found the number -2; allowed: -1 to 1e+30" },
        { "{\"sum\": 1e99}", "t.json:1:9: error: \"sum\" is out of range: found the number 1e99; "
                             "allowed: -1 to 1e+30" },
    };
    Bounded read = { 0 };

    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert(!read_sums(wrong[i][0], bounded_fields, &read, &error));
        ck_assert_str_eq(error->message, wrong[i][1]);
    }
    ck_assert(read_sums("{\"wait_s\": 2, \"sum\": 999999999999999999999999999999}", bounded_fields,
                        &read, NULL));
    ck_assert_int_eq(read.wait_ps, 2 * LH_PS_PER_S);
    ck_assert(read.sum == (LhWide)999999999999999 * 1000000000000000 + 999999999999999);
}
END_TEST

/* ---- members that the reader does not need ---- */

typedef struct {
    uint64_t label;
    double factor;
    GPtrArray *names;
    GArray *parts; /* of Part */
} Stated;

static const LhField stated_fields[] = {
    { .name = "label",
      .type = LH_FIELD_UINT,
      .offset = offsetof(Stated, label),
      .flags = LH_FIELD_STATED },
    LH_FIELD_ROW(DOUBLE, Stated, factor, "factor", IF_ANY, .description = NULL),
    { .name = "names",
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(Stated, names),
      .flags = LH_FIELD_OR_ONE },
    LH_FIELD_ROW(ARRAY, Stated, parts, "parts", IF_ANY, .fields = part_fields,
                 .element_size = sizeof(Part)),
    { .name = NULL },
};

START_TEST(encode_states_what_is_usual)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    Stated stated = { .factor = -0.0, .names = names };

    check_encoded(stated_fields, &stated, NULL, "{\"label\": 0, \"names\": []}");
    g_ptr_array_add(names, (gpointer) "a");
    check_encoded(stated_fields, &stated, &stated, "{\"label\": 0, \"names\": \"a\"}");
    g_ptr_array_add(names, (gpointer) "b");
    stated.label = LH_FIELD_NO_UINT;
    check_encoded(stated_fields, &stated, NULL, "{\"names\": [\"a\", \"b\"]}");
}
END_TEST

START_TEST(encode_streams_the_last_array)
{
    const Stated stated = { .label = 3 };
    const Part parts[] = { { 1, 2 }, { 3, 4 } };
    g_autoptr(GString) out = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(out, true);

    lh_json_encode_open(w, NULL, stated_fields, &stated, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        lh_json_encode(w, NULL, part_fields, &parts[i], NULL);
    lh_json_encode_close(w);
    lh_jsonw_free(w);
    ck_assert_str_eq(out->str, "{\"label\": 3, \"parts\": [{\"count\": 1, \"rate\": 2}, "
                               "{\"count\": 3, \"rate\": 4}]}\n");
}
END_TEST

LH_TEST_MAIN_OF_LOOPS("base_json_encode", { encode_writes_every_type, 1 },
                      { encode_leaves_out_what_there_is_not, 1 }, { encode_knows_what_is_usual, 1 },
                      { encode_leaves_out_objects, 1 }, { encode_lines_and_fine_units, 1 },
                      { encode_writes_what_is_read, G_N_ELEMENTS(documents) },
                      { decode_misses_what_may_be_null, 1 },
                      { schema_describes_what_is_written, 1 }, { decode_reads_sums_back, 1 },
                      { decode_reads_times_exactly, G_N_ELEMENTS(times_read) },
                      { decode_words_errors_of_sums, G_N_ELEMENTS(wrong_sums) },
                      { decode_bounds_sums, 1 }, { encode_states_what_is_usual, 1 },
                      { encode_streams_the_last_array, 1 })
