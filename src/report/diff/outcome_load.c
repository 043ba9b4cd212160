/* SPDX-License-Identifier: Apache-2.0 */
#include "report/diff/outcome_load.h"

#include "base/json/json.h"
#include "report/data/result_json.h"
#include "report/diff/outcome_fields.h"
#include "report/diff/outcome_plan.h"
#include "report/diff/outcome_run.h"

#include <string.h>

typedef struct {
    const char *schema;
    const char *written_by;
    bool (*read)(LhOutcome *o, const LhJson *json, GError **error);
} DocumentKind;

static const DocumentKind document_kinds[] = {
    { LH_RESULT_SCHEMA, "sim and compare", lh_outcome_read_result },
    { "longhaul.plan/1", "plan", lh_outcome_read_plan },
    { "longhaul.path/1", "sim --critical-path", lh_outcome_read_path },
};

typedef struct {
    char *version;
} Tool;

static const LhField tool_fields[] = {
    { .name = "version",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Tool, version),
      .flags = LH_FIELD_REQUIRED },
    { .name = NULL },
};

typedef struct {
    char *schema;
    Tool tool;
} Head;

static const LhField head_fields[] = {
    LH_OUTCOME_STRING(Head, schema, "schema"),
    { .name = "tool",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(Head, tool),
      .flags = LH_FIELD_REQUIRED,
      .fields = tool_fields },
    { .name = NULL },
};

/* Length of the schema up to the slash. */
static gsize
kind_length(const char *schema)
{
    return strcspn(schema, "/");
}

static const DocumentKind *
find_kind(const LhJson *json, const char *schema, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(document_kinds); i++)
        if (strcmp(document_kinds[i].schema, schema) == 0)
            return &document_kinds[i];
    for (guint i = 0; i < G_N_ELEMENTS(document_kinds); i++)
        if (kind_length(document_kinds[i].schema) == kind_length(schema) &&
            strncmp(document_kinds[i].schema, schema, kind_length(schema)) == 0) {
            lh_json_error(json, "schema", error, "this has version %s; this program reads %s",
                          schema, document_kinds[i].schema);
            return NULL;
        }
    lh_json_error(json, "schema", error,
                  "a %s cannot be compared; allowed are results that sim, compare and plan write "
                  "with --format json: " LH_RESULT_SCHEMA ", longhaul.plan/1, longhaul.path/1",
                  schema);
    return NULL;
}

/* Ranks the entries that ran by time; ties keep their order. */
static void
set_places(LhOutcome *o)
{
    for (guint i = 0; i < o->entries->len; i++) {
        LhEntry *entry = g_ptr_array_index(o->entries, i);

        entry->place = lh_entry_ran(entry) && !entry->stands_for ? 1 : 0;
        for (guint k = 0; k < o->entries->len && entry->place > 0; k++) {
            const LhEntry *other = g_ptr_array_index(o->entries, k);

            if (lh_entry_ran(other) && !other->stands_for &&
                (lh_entry_time(other) < lh_entry_time(entry) ||
                 (lh_entry_time(other) <= lh_entry_time(entry) && k < i)))
                entry->place++;
        }
    }
}

static LhOutcome *
read_outcome(const char *path, const LhJson *json, GError **error)
{
    g_autoptr(LhOutcome) o = g_new0(LhOutcome, 1);
    Head head = { .schema = NULL };
    const DocumentKind *kind;
    bool ok;

    o->path = path;
    o->entries = g_ptr_array_new_with_free_func(lh_diff_entry_free);
    if (!lh_json_decode(json, head_fields, &head, true, error))
        return NULL;
    kind = find_kind(json, head.schema, error);
    ok = kind != NULL && kind->read(o, json, error);
    o->schema = g_strdup(head.schema);
    o->version = g_strdup(head.tool.version);
    o->sha256 = g_strdup(lh_json_sha256(json));
    lh_json_clear(head_fields, &head);
    if (!ok)
        return NULL;
    set_places(o);
    return g_steal_pointer(&o);
}

LhOutcome *
lh_outcome_load(const char *path, GError **error)
{
    g_autoptr(LhJson) json = lh_json_load(path, error);

    return json == NULL ? NULL : read_outcome(path, json, error);
}
