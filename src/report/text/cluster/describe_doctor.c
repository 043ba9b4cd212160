/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/cluster/describe_doctor.h"

LhTable *
lh_describe_machine_parts(const LhDoctor *doctor)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "part", "part", NULL, false);
    lh_table_column(table, "state", "state", NULL, false);
    lh_table_column(table, "found", "found", NULL, false);
    for (guint i = 0; i < doctor->rows->len; i++) {
        const LhDoctorRow *row = &g_array_index(doctor->rows, LhDoctorRow, i);

        lh_table_row(table);
        lh_table_cell(table, row->part, NULL);
        lh_table_cell(table, lh_health_names[row->health], NULL);
        if (row->found[0] != '\0')
            lh_table_cell(table, row->found, NULL);
        if (row->advice[0] != '\0')
            lh_table_note(table, row->advice);
    }
    return table;
}

LhTable *
lh_describe_backends(const LhDoctor *doctor)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "backend", "backend", NULL, false);
    lh_table_column(table, "works", "works", NULL, false);
    for (guint i = 0; i < doctor->backends->len; i++) {
        const LhDoctorBackend *row = &g_array_index(doctor->backends, LhDoctorBackend, i);

        lh_table_row(table);
        lh_table_cell(table, row->backend->name, NULL);
        lh_table_cell(table, row->works ? "yes" : "NO", NULL);
        if (!row->works)
            lh_table_note(table, row->why);
    }
    return table;
}

/* ---- as JSON ---- */

/* NULL for an empty text. */
static void
derive_text(const char *text, void *value)
{
    *(char **)value = text[0] != '\0' ? g_strdup(text) : NULL;
}

static void
derive_found(const void *of, void *value)
{
    derive_text(((const LhDoctorRow *)of)->found, value);
}

static void
derive_advice(const void *of, void *value)
{
    derive_text(((const LhDoctorRow *)of)->advice, value);
}

static const LhField part_fields[] = {
    LH_FIELD_ROW(STRING, LhDoctorRow, part, "part", ALWAYS,
                 .description = "The part; it may have several rows."),
    LH_FIELD_ROW(CHOICE, LhDoctorRow, health, "state", ALWAYS, .choices = lh_health_names),
    LH_FIELD_ROW(STRING, LhDoctorRow, found, "found", OR_NULL, .derive = derive_found,
                 .description = "Versions, rates, files, as text for people."),
    LH_FIELD_ROW(STRING, LhDoctorRow, advice, "advice", OR_NULL, .derive = derive_advice,
                 .description = "Why it does not work, and the remedy."),
    { .name = NULL },
};

static void
derive_backend(const void *of, void *value)
{
    derive_text(((const LhDoctorBackend *)of)->backend->name, value);
}

static void
derive_why(const void *of, void *value)
{
    derive_text(((const LhDoctorBackend *)of)->why, value);
}

static const LhField backend_fields[] = {
    LH_FIELD_ROW(STRING, LhDoctorBackend, backend, "backend", ALWAYS, .derive = derive_backend),
    LH_FIELD_ROW(BOOL, LhDoctorBackend, works, "works", ALWAYS, .description = NULL),
    LH_FIELD_ROW(STRING, LhDoctorBackend, why, "why", OR_NULL, .derive = derive_why,
                 .description = "Why it does not work."),
    { .name = NULL },
};

typedef struct {
    LhDocumentHead head;
    bool ok;
    const GArray *parts, *backends; /* borrowed */
} Document;

static const char *const document_schema[] = { "longhaul.doctor/1", NULL };

const LhField lh_doctor_fields[] = {
    LH_DOCUMENT_HEAD(Document, head, document_schema),
    LH_FIELD_ROW(BOOL, Document, ok, "ok", ALWAYS,
                 .description = "Whether the requested backend works."),
    LH_FIELD_ROW(ARRAY, Document, parts, "parts", ALWAYS, .fields = part_fields,
                 .element_size = sizeof(LhDoctorRow)),
    LH_FIELD_ROW(ARRAY, Document, backends, "backends", ALWAYS, .fields = backend_fields,
                 .element_size = sizeof(LhDoctorBackend)),
    { .name = NULL },
};

void
lh_doctor_json(const LhDoctor *doctor, bool ok, const LhStamp *stamp, GString *out)
{
    g_auto(LhDocumentHead) head = lh_document_head(document_schema[0], stamp, NULL);
    const Document document = {
        .head = head, .ok = ok, .parts = doctor->rows, .backends = doctor->backends
    };

    lh_json_encode_text(lh_doctor_fields, &document, out);
}
