/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/cluster/describe_tool_output.h"

LhTable *
lh_describe_tool_output(const LhToolTopology *topology)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "field", "field", NULL, false);
    lh_table_column(table, "value", "value", NULL, false);
    lh_table_column(table, "provenance", "provenance", NULL, false);
    lh_table_column(table, "source", "from", NULL, false);
    for (guint i = 0; i < topology->fields->len; i++) {
        const LhToolField *field = &g_array_index(topology->fields, LhToolField, i);

        lh_table_row(table);
        lh_table_cell(table, field->path, NULL);
        lh_table_cell(table, field->value, NULL);
        lh_table_cell(table, field->provenance < 0 ? "-" : lh_provenance_names[field->provenance],
                      NULL);
        lh_table_cell(table, field->source, NULL);
    }
    return table;
}
