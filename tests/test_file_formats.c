/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File formats: each format of longhaul has a schema that is valid JSON and describes all members.
 */
#include "base/error.h"
#include "base/json/json.h"
#include "cli/commands/file_formats.h"
#include "run_tests.h"

#include <string.h>

static const LhField *
fields_of(const LhFileFormat *format)
{
    return format->made != NULL ? format->made() : format->fields;
}

START_TEST(formats_have_schemas)
{
    guint schemas = 0;

    for (const LhFileFormat *format = lh_file_formats; format->name != NULL; format++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = NULL, *id = NULL;
        g_autoptr(LhJson) json = NULL;

        if (format->title == NULL)
            continue;
        text = lh_file_format_schema(format->name, &error);
        ck_assert_msg(text != NULL, "%s", error != NULL ? error->message : format->name);
        json = lh_json_parse(format->name, text, strlen(text), &error);
        ck_assert_msg(json != NULL, "%s", error != NULL ? error->message : format->name);
        id = lh_json_string_at(json, "$id");
        ck_assert_str_eq(id, format->name);
        ck_assert(lh_json_has(json, "properties.schema"));
        schemas++;
    }
    ck_assert_uint_ge(schemas, 25);
}
END_TEST

START_TEST(formats_are_named_once)
{
    for (const LhFileFormat *a = lh_file_formats; a->name != NULL; a++) {
        ck_assert_ptr_nonnull(a->line);
        ck_assert((a->title != NULL) == (fields_of(a) != NULL));
        for (const LhFileFormat *b = lh_file_formats; b < a; b++)
            ck_assert_str_ne(a->name, b->name);
    }
}
END_TEST

START_TEST(formats_go_by_short_names)
{
    g_autofree char *by_name = lh_file_format_schema("memory-timeline", NULL);
    g_autofree char *whole = lh_file_format_schema("longhaul.memory-timeline/1", NULL);

    ck_assert_ptr_nonnull(by_name);
    ck_assert_str_eq(by_name, whole);
}
END_TEST

START_TEST(formats_without_schema_are_refused)
{
    static const char *const names[] = { "", "config.json", "trace", "result/3",
                                         "longhaul.result/2" };

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(lh_file_format_schema(names[i], &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_USAGE));
        ck_assert_ptr_nonnull(strstr(error->message, "allowed: scenario, topology, device"));
    }
}
END_TEST

LH_TEST_MAIN("file_formats", formats_have_schemas, formats_are_named_once,
             formats_go_by_short_names, formats_without_schema_are_refused)
