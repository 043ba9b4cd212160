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

void
lh_doctor_json(const LhDoctor *doctor, bool ok, const LhStamp *stamp, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);

    lh_stamp_json(w, "longhaul.doctor/1", stamp, NULL);
    lh_jsonw_bool(w, "ok", ok);
    lh_jsonw_array_begin(w, "parts");
    for (guint i = 0; i < doctor->rows->len; i++) {
        const LhDoctorRow *row = &g_array_index(doctor->rows, LhDoctorRow, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "part", row->part);
        lh_jsonw_string(w, "state", lh_health_names[row->health]);
        lh_jsonw_string(w, "found", row->found[0] != '\0' ? row->found : NULL);
        lh_jsonw_string(w, "advice", row->advice[0] != '\0' ? row->advice : NULL);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
    lh_jsonw_array_begin(w, "backends");
    for (guint i = 0; i < doctor->backends->len; i++) {
        const LhDoctorBackend *row = &g_array_index(doctor->backends, LhDoctorBackend, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "backend", row->backend->name);
        lh_jsonw_bool(w, "works", row->works);
        lh_jsonw_string(w, "why", row->works ? NULL : row->why);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}
