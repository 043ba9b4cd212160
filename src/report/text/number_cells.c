/* SPDX-License-Identifier: Apache-2.0 */
/* Cells rounded for people keep exact values for programs. */
#include "report/text/number_cells.h"

#include "report/base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FEW_MIB 100 /* below this, two decimals */

static void
share_cell(LhTable *table, const char *format, double share)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    g_ascii_formatd(text, sizeof(text), format, 100 * share);
    lh_table_cell(table, text, lh_double_to_text(share, exact));
}

void
lh_cell_percent(LhTable *table, double share)
{
    share_cell(table, "%.1f", share);
}

void
lh_cell_error(LhTable *table, double share)
{
    share_cell(table, "%+.1f", share);
}

void
lh_cell_unit(LhTable *table, char *text, double value)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];

    lh_table_cell(table, text, lh_double_to_text(value, exact));
    g_free(text);
}

void
lh_cell_time(LhTable *table, double seconds)
{
    lh_cell_unit(table, lh_format_time(lh_time_from_ps(seconds * (double)LH_PS_PER_S)), seconds);
}

void
lh_cell_mib(LhTable *table, LhWide bytes, uint32_t ranks)
{
    const LhWide per_mib = (LhWide)LH_MIB * ranks;
    char text[LH_WIDE_TEXT_SIZE], exact[LH_WIDE_TEXT_SIZE];

    lh_wide_quotient(bytes, per_mib, bytes < FEW_MIB * per_mib ? 2 : 1, text);
    lh_table_cell(table, text, ranks == 1 ? lh_wide_text(bytes, exact) : NULL);
}

void
lh_cell_count(LhTable *table, LhWide count)
{
    g_autofree char *text = lh_format_count(count);
    char exact[LH_WIDE_TEXT_SIZE];

    lh_table_cell(table, text, lh_wide_text(count, exact));
}

void
lh_cell_error_bar(LhTable *table, double seconds, LhTimeError error)
{
    g_autofree char *low = NULL, *high = NULL, *text = NULL;

    if (!(error.above > 0)) { /* NAN: unknown */
        lh_table_cell(table, "-", "");
        return;
    }
    low = lh_format_time(lh_time_from_ps(seconds / (1 + error.below) * (double)LH_PS_PER_S));
    high = lh_format_time(lh_time_from_ps(seconds * (1 + error.above) * (double)LH_PS_PER_S));
    if (strcmp(strchr(low, ' '), strchr(high, ' ')) == 0)
        *strchr(low, ' ') = '\0';
    text = g_strdup_printf("%s-%s", low, high);
    lh_table_cell(table, text, NULL);
}

const char *
lh_cell_peak_heading(const char *unit, double error, char *buffer)
{
    if (error > 0)
        snprintf(buffer, LH_CELL_HEADING, "%s +-%.0f %%", unit, 100 * error);
    else
        snprintf(buffer, LH_CELL_HEADING, "%s", unit);
    return buffer;
}

const char *
lh_share_signed(double share, char *buffer)
{
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    const double rounded = round(1000 * share) / 10;

    g_ascii_formatd(digits, sizeof(digits), "%.1f", rounded == 0 ? 0 : rounded);
    snprintf(buffer, LH_SHARE_TEXT, "%s%s %%", rounded > 0 ? "+" : "", digits);
    return buffer;
}

const char *
lh_share_text(double share, char *buffer)
{
    char digits[G_ASCII_DTOSTR_BUF_SIZE];

    snprintf(buffer, LH_SHARE_TEXT, "%s %%",
             g_ascii_formatd(digits, sizeof(digits), "%.1f", 100 * share));
    return buffer;
}

const char *
lh_four_digits(double value, char *buffer)
{
    const int decimals = (int)CLAMP(3 - floor(log10(MAX(fabs(value), 1e-9))), 0, 9);
    char format[8];

    snprintf(format, sizeof(format), "%%.%df", decimals);
    return g_ascii_formatd(buffer, LH_SHARE_TEXT, format, value);
}
