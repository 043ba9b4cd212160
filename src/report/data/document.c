/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query comes from the tables of scenarios and of the command's options, so new fields are
 * written, read and compared without being named here. A field of two documents is compared by its
 * effective value if both state it: an explicit default equals an omitted one. If one document is
 * older than the member, given values are compared, and omitted fields have their defaults.
 */
#include "report/data/document.h"

#include "config.h"
#include "report/data/notes.h"
#include "scenario/setting.h"

/* ---- the tables ---- */

const LhField lh_document_input_fields[] = {
    LH_FIELD_ROW(STRING, LhInput, of, "of", ALWAYS,
                 .description = "Kind of the file: model, topology, ..."),
    LH_FIELD_ROW(STRING, LhInput, path, "path", ALWAYS, .description = "Path as given."),
    LH_FIELD_ROW(STRING, LhInput, sha256, "sha256", ALWAYS, .description = "SHA-256 of the file."),
    { .name = NULL },
};

const LhField lh_document_tool_fields[] = {
    LH_FIELD_ROW(STRING, LhDocumentTool, name, "name", ALWAYS, .description = "longhaul"),
    LH_FIELD_ROW(STRING, LhDocumentTool, version, "version", ALWAYS, .description = "0.2.0"),
    { .name = NULL },
};

static const LhField asked_values[] = {
    { .name = "text", .type = LH_FIELD_STRING },
    { .name = "flag", .type = LH_FIELD_BOOL },
    { .name = "texts", .type = LH_FIELD_STRINGS },
    { .name = NULL },
};

static const LhField option_values[] = {
    { .name = "text", .type = LH_FIELD_STRING, .flags = LH_FIELD_OR_NULL },
    { .name = "flag", .type = LH_FIELD_BOOL },
    { .name = "texts", .type = LH_FIELD_STRINGS },
    { .name = NULL },
};

const LhField lh_document_asked_fields[] = {
    LH_FIELD_ROW(MEMBERS, LhDocumentAsked, scenario, "scenario", ALWAYS, .fields = asked_values,
                 .description = "Given fields of longhaul.scenario/1, from a file or options, as "
                                "texts of options; a flag is true. Absent fields were not given."),
    LH_FIELD_ROW(MEMBERS, LhDocumentAsked, options, "options", ALWAYS, .fields = option_values,
                 .description = "Options of the command that affect the answer, beside those of "
                                "scenarios: given or default values; null: none."),
    { .name = NULL },
};

typedef struct {
    LhDocumentHead head;
} Head;

static const LhField head_fields[] = {
    LH_DOCUMENT_HEAD(Head, head, NULL),
    { .name = NULL },
};

static const LhField asked_fields[] = {
    LH_DOCUMENT_ASKED(Head, head),
    { .name = NULL },
};

/* ---- the query ---- */

static bool
is_list(const LhField *field)
{
    return field->type == LH_FIELD_STRINGS || field->type == LH_FIELD_ARRAY;
}

/* @texts is from lh_setting_texts(). */
static LhFieldMember
member_of_texts(const LhField *field, const GPtrArray *texts)
{
    LhFieldMember member = { .field = { .name = field->name, .type = LH_FIELD_STRING } };

    if (is_list(field)) {
        member.field.type = LH_FIELD_STRINGS;
        member.value.strings = g_ptr_array_new_with_free_func(g_free);
        for (guint i = 0; i < texts->len; i++)
            g_ptr_array_add(member.value.strings, g_strdup(texts->pdata[i]));
    } else if (field->type == LH_FIELD_BOOL) {
        member.field.type = LH_FIELD_BOOL;
        member.field.flags = LH_FIELD_REQUIRED;
        member.value.flag = texts->len > 0;
    } else {
        member.field.flags = LH_FIELD_OR_NULL;
        member.value.string = g_strdup(texts->len > 0 ? texts->pdata[0] : NULL);
    }
    return member;
}

static GArray *
asked_scenario(const LhScenario *s)
{
    GArray *members = g_array_new(FALSE, TRUE, sizeof(LhFieldMember));

    for (const LhField *field = lh_scenario_options(); field->name != NULL; field++) {
        g_autoptr(GPtrArray) texts =
            lh_scenario_has(s, field->name) ? lh_setting_texts(field, s) : NULL;

        if (texts != NULL && texts->len > 0) {
            const LhFieldMember member = member_of_texts(field, texts);

            g_array_append_val(members, member);
        }
    }
    return members;
}

/* Options are all zero if not given. */
static bool
is_given(const LhField *field, const void *options)
{
    const void *at = (const char *)options + field->offset;
    const bool counts = field->type == LH_FIELD_UNIT &&
                        (field->unit == LH_UNIT_COUNT || field->unit == LH_UNIT_BYTES);

    if (is_list(field) || field->type == LH_FIELD_UINTS || field->type == LH_FIELD_STRING)
        return *(void *const *)at != NULL;
    if (field->type == LH_FIELD_UINT || counts)
        return *(const uint64_t *)at != 0;
    if (field->type == LH_FIELD_UNIT && field->unit == LH_UNIT_TIME)
        return *(const LhTime *)at != 0;
    if (field->type == LH_FIELD_UNIT || field->type == LH_FIELD_DOUBLE)
        return *(const double *)at != 0;
    return true; /* flags, and choices whose first is the default */
}

static LhFieldMember
asked_option(const LhField *field, const void *options)
{
    g_autoptr(GPtrArray) texts = NULL;

    if (!is_given(field, options))
        return (LhFieldMember){
            .field = { .name = field->name, .type = LH_FIELD_STRING, .flags = LH_FIELD_OR_NULL },
            .value.string = g_strdup(field->absent),
        };
    texts = lh_setting_texts(field, options);
    return member_of_texts(field, texts);
}

static GArray *
asked_options(const LhStamp *stamp)
{
    GArray *members = g_array_new(FALSE, TRUE, sizeof(LhFieldMember));

    for (const LhField *f = stamp->options; f != NULL && f->name != NULL; f++) {
        if ((f->flags & stamp->not_asked) == 0) {
            const LhFieldMember member = asked_option(f, stamp->values);

            g_array_append_val(members, member);
        }
    }
    return members;
}

static LhDocumentAsked *
find_asked(const LhStamp *stamp)
{
    LhDocumentAsked *asked;

    if (stamp->scenario == NULL)
        return NULL;
    asked = g_new(LhDocumentAsked, 1);
    *asked = (LhDocumentAsked){ .scenario = asked_scenario(stamp->scenario),
                                .options = asked_options(stamp) };
    return asked;
}

/* ---- the head ---- */

/* Results carry no clock time, so that equal runs give equal bytes; SOURCE_DATE_EPOCH requests a
 * date. NULL: none. Caller frees. */
static char *
find_date(void)
{
    const char *epoch = g_getenv("SOURCE_DATE_EPOCH");
    g_autoptr(GDateTime) date = NULL;
    gint64 seconds;

    if (epoch == NULL || !g_ascii_string_to_signed(epoch, 10, 0, G_MAXINT32, &seconds, NULL))
        return NULL;
    date = g_date_time_new_from_unix_utc(seconds);
    return g_date_time_format(date, "%Y-%m-%dT%H:%M:%SZ");
}

static GPtrArray *
find_arguments(const LhStamp *stamp)
{
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);

    g_ptr_array_add(argv, g_strdup("longhaul"));
    for (guint i = 1; stamp->argv[0] != NULL && stamp->argv[i] != NULL; i++)
        g_ptr_array_add(argv, g_strdup(stamp->argv[i]));
    return argv;
}

static void
input_free(gpointer data)
{
    LhInput *input = data;

    g_free(input->path);
    g_free(input->sha256);
    g_free(input);
}

static void
add_input(GPtrArray *inputs, const char *of, const char *path, const char *sha256)
{
    LhInput *input = g_new(LhInput, 1);

    *input = (LhInput){ .of = of, .path = g_strdup(path), .sha256 = g_strdup(sha256) };
    g_ptr_array_add(inputs, input);
}

/* Inputs of the stamp, or else of the setup, and the configuration. */
static GPtrArray *
find_inputs(const LhStamp *stamp, const LhSetup *setup)
{
    const GPtrArray *read = setup != NULL ? setup->inputs : NULL;
    GPtrArray *inputs = g_ptr_array_new_with_free_func(input_free);

    if (stamp->inputs != NULL)
        read = stamp->inputs;
    for (guint i = 0; read != NULL && i < read->len; i++) {
        const LhInput *input = g_ptr_array_index(read, i);

        add_input(inputs, input->of, input->path, input->sha256);
    }
    if (stamp->config != NULL)
        add_input(inputs, "configuration", stamp->config->entries->file,
                  stamp->config->entries->sha256);
    return inputs;
}

/* NULL without any. */
static GPtrArray *
find_notes(const LhStamp *stamp, const LhSetup *setup)
{
    const LhModel *model = stamp->model != NULL ? stamp->model
                           : setup != NULL      ? setup->model
                                                : NULL;

    if (model == NULL || model->notes == NULL || model->notes->len == 0)
        return NULL;
    return g_ptr_array_ref(model->notes);
}

static GPtrArray *
find_link_notes(const LhSetup *setup)
{
    g_autoptr(GPtrArray) notes = lh_link_notes(setup);

    return notes->len == 0 ? NULL : g_steal_pointer(&notes);
}

LhDocumentHead
lh_document_head(const char *schema, const LhStamp *stamp, const LhSetup *setup)
{
    LhDocumentHead head = {
        .schema = g_strdup(schema),
        .tool = { .name = g_strdup("longhaul"), .version = g_strdup(LH_VERSION) },
        .date = find_date(),
        .argv = find_arguments(stamp),
        .inputs = find_inputs(stamp, setup),
        .notes = find_notes(stamp, setup),
        .asked = find_asked(stamp),
    };

    if (setup == NULL)
        return head;
    head.seed = g_strdup_printf("%" G_GUINT64_FORMAT, setup->scenario->seed);
    head.link_notes = find_link_notes(setup);
    return head;
}

void
lh_document_head_clear(LhDocumentHead *head)
{
    lh_json_clear(head_fields, head);
    g_clear_pointer(&head->inputs, g_ptr_array_unref);
    if (head->asked != NULL)
        lh_json_clear(lh_document_asked_fields, head->asked);
    g_clear_pointer(&head->asked, g_free);
}

void
lh_document_begin(LhJsonWriter *w, const char *schema, const LhStamp *stamp, const LhSetup *setup,
                  bool asked)
{
    g_auto(LhDocumentHead) head = lh_document_head(schema, stamp, setup);

    lh_jsonw_object_begin(w, NULL);
    lh_json_encode_members(w, head_fields, &head, NULL);
    if (asked)
        lh_json_encode_members(w, asked_fields, &head, NULL);
}
