/* See the header. What is rounded for people stays exact for machines. */
#include "report/cells.h"

#include "base/units.h"

#define BYTES_PER_MIB 1048576.0

void
lh_cell_percent(LhTable *table, double share)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *text = g_strdup_printf("%.1f", 100 * share);

    lh_table_cell(table, text, lh_double_to_text(share, exact));
}

void
lh_cell_mib(LhTable *table, double bytes)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];
    const double mib = bytes / BYTES_PER_MIB;
    g_autofree char *text = g_strdup_printf(mib < 100 ? "%.2f" : "%.1f", mib);

    lh_table_cell(table, text, lh_double_to_text(bytes, exact));
}

void
lh_cell_count(LhTable *table, uint64_t count)
{
    g_autofree char *text = lh_format_count(count);
    g_autofree char *exact = g_strdup_printf("%" G_GUINT64_FORMAT, count);

    lh_table_cell(table, text, exact);
}
