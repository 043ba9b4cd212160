/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing by tables of fields: every type, what is null, what is left out, and that what is written
 * is what the same table reads.
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

/* A part, of which the writer frees nothing. */
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

/* What there is of each, and the most of it. */
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

/* What a reader presets need not be written: and only that. */
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
      .flags = LH_FIELD_KEPT },
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

/* An object is left out with all that is in it, though a reader needs this where it is there. */
START_TEST(encode_leaves_out_objects)
{
    const Optional usual = { .part = { .count = 3 }, .time_ps = -1, .kept.rate = NAN };
    Optional o = usual;

    check_encoded(optional_fields, &o, &usual, "{}");
    o.part.count = 0; /* and what is kept, even as a reader takes it */
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

/* A reader of the same table skips what follows from the rest. */
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

/* A member that may be null must be there all the same. */
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

LH_TEST_MAIN_OF_LOOPS("base_json_encode", { encode_writes_every_type, 1 },
                      { encode_leaves_out_what_there_is_not, 1 }, { encode_knows_what_is_usual, 1 },
                      { encode_leaves_out_objects, 1 }, { encode_lines_and_fine_units, 1 },
                      { encode_writes_what_is_read, G_N_ELEMENTS(documents) },
                      { decode_misses_what_may_be_null, 1 },
                      { schema_describes_what_is_written, 1 })
