/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON reader alone, with a table that has a field of every type. Decoded values are encoded
 * and decoded again.
 */
#include "fuzz.h"

#include "base/json/json_private.h"
#include "base/json/json_writer.h"

#include <string.h>

#define PLACES_CHECKED_BYTES 2048 /* longer documents would take most of the time */

typedef struct {
    char *text;
    uint64_t number;
} Element;

typedef struct {
    char *text;
    uint64_t number;
    int64_t integer;
    double real;
    bool flag;
    uint64_t bytes;
    double bandwidth_bytes_per_s;
    LhTime time;
    int choice;
    Element object;
    GArray *array;
    GArray *numbers;
    GPtrArray *texts;
} Everything;

static const char *const choices[] = { "one", "two", "three", NULL };

static const LhField element_fields[] = {
    { .name = "s", .type = LH_FIELD_STRING, .offset = offsetof(Element, text) },
    { .name = "u",
      .type = LH_FIELD_UINT,
      .offset = offsetof(Element, number),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = 100 },
    { .name = NULL },
};

#define AT(member, kind) .type = LH_FIELD_##kind, .offset = offsetof(Everything, member)

static const LhField fields[] = {
    { .name = "string", AT(text, STRING), .min = 1, .max = 20, .flags = LH_FIELD_OR_NULL },
    { .name = "uint", AT(number, UINT) },
    { .name = "int", AT(integer, INT) },
    { .name = "double", AT(real, DOUBLE) },
    { .name = "bool", AT(flag, BOOL) },
    { .name = "bytes", AT(bytes, UNIT), .unit = LH_UNIT_BYTES, .min = 1, .max = -1 },
    { .name = "bandwidth", AT(bandwidth_bytes_per_s, UNIT), .unit = LH_UNIT_BANDWIDTH },
    { .name = "time", AT(time, UNIT), .unit = LH_UNIT_TIME, .min = 0, .max = 1000 },
    { .name = "choice", AT(choice, CHOICE), .choices = choices },
    { .name = "object", AT(object, OBJECT), .fields = element_fields },
    { .name = "array",
      AT(array, ARRAY),
      .fields = element_fields,
      .element_size = sizeof(Element),
      .min = 0,
      .max = 5 },
    { .name = "uints", AT(numbers, UINTS) },
    { .name = "strings", AT(texts, STRINGS) },
    { .name = NULL },
};

static const char *const paths[] = { "",         "string",     "object",
                                     "object.u", "array[0]",   "array[1].s",
                                     "uints[2]", "strings[0]", "array[4].u.v" };

static char *
write_all(const Everything *all)
{
    GString *out = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(out, all->flag);

    lh_jsonw_object_begin(w, NULL);
    if (all->text != NULL)
        lh_jsonw_string(w, "string", all->text);
    lh_jsonw_uint(w, "uint", all->number);
    lh_jsonw_int(w, "int", all->integer);
    lh_jsonw_double(w, "double", all->real);
    lh_jsonw_bool(w, "bool", all->flag);
    if (all->numbers != NULL) {
        lh_jsonw_array_begin(w, "uints");
        for (guint i = 0; i < all->numbers->len; i++)
            lh_jsonw_uint(w, NULL, g_array_index(all->numbers, uint64_t, i));
        lh_jsonw_array_end(w);
    }
    if (all->texts != NULL) {
        lh_jsonw_array_begin(w, "strings");
        for (guint i = 0; i < all->texts->len; i++)
            lh_jsonw_string(w, NULL, g_ptr_array_index(all->texts, i));
        lh_jsonw_array_end(w);
    }
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
    return g_string_free(out, FALSE);
}

static void
check_round_trip(const Everything *all)
{
    g_autofree char *once = write_all(all);
    g_autofree char *twice = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(LhJson) json = lh_json_parse(FUZZ_NAME, once, strlen(once), &error);
    Everything again = { 0 };

    g_assert_no_error(error);
    g_assert(lh_json_decode(json, fields, &again, false, &error));
    twice = write_all(&again);
    g_assert_cmpstr(once, ==, twice);
    lh_json_clear(fields, &again);
}

static void
decode(const LhJson *json, bool allow_unknown)
{
    g_autoptr(GError) error = NULL;
    Everything all = { 0 };
    Element element = { 0 };
    bool ok = lh_json_decode(json, fields, &all, allow_unknown, &error);

    fuzz_check_file(ok, error);
    if (ok)
        check_round_trip(&all);
    lh_json_clear(fields, &all);
    g_clear_error(&error);
    ok = lh_json_decode_at(json, "object.o", element_fields, &element, allow_unknown, &error);
    fuzz_check_file(ok || error == NULL, error);
    lh_json_clear(element_fields, &element);
}

/* Parsed alone at its recorded place, every value is the same. */
static void
check_places(const LhJson *json, const cJSON *value)
{
    g_auto(LhJsonTree) alone = { NULL };

    g_assert_cmpuint(lh_json_tree_read(json, lh_json_place(value), &alone), ==,
                     lh_json_end(json->text, lh_json_place(value)));
    g_assert(alone.root->type == value->type);
    /* values within a container are checked below; cJSON would compare them once per level */
    g_assert(value->child != NULL || cJSON_Compare(alone.root, value, true));
    g_assert(value->string == NULL || json->text[lh_json_key_place(json->text, value)] == '"');
    for (const cJSON *child = value->child; child != NULL; child = child->next)
        check_places(json, child);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhJson) json = lh_json_parse(FUZZ_NAME, (const char *)data, size, &error);

    fuzz_check_file(json != NULL, error);
    if (json == NULL)
        return 0;
    g_assert(strlen(lh_json_sha256(json)) == 64);
    if (size <= PLACES_CHECKED_BYTES)
        check_places(json, lh_json_root(json));
    for (unsigned i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autoptr(GError) placed = NULL;

        lh_json_has(json, paths[i]);
        g_assert(!lh_json_error(json, paths[i], &placed, "wrong"));
        fuzz_check_file(false, placed);
    }
    decode(json, false);
    decode(json, true);
    return 0;
}
