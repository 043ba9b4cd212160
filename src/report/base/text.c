/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formatting of numbers. Uses integers throughout, so that printed numbers add up.
 */
#include "report/base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PARTS_MAX 16
#define DECIMALS_MAX 3
#define SECONDS_FROM_PS (4 * LH_PS_PER_S)

LhTimeScale
lh_text_scale(LhTime longest_ps)
{
    LhTimeScale scale = { "us", LH_PS_PER_US, LH_PS_PER_US, DECIMALS_MAX };
    LhTime units;

    if (longest_ps >= SECONDS_FROM_PS) {
        scale.unit = "s";
        scale.unit_ps = LH_PS_PER_S;
    } else if (longest_ps >= LH_PS_PER_MS) {
        scale.unit = "ms";
        scale.unit_ps = LH_PS_PER_MS;
    }
    units = longest_ps / scale.unit_ps;
    if (units >= 100)
        scale.decimals = 1;
    else if (units >= 10)
        scale.decimals = 2;
    scale.quantum_ps = scale.unit_ps;
    for (int i = 0; i < scale.decimals; i++)
        scale.quantum_ps /= 10;
    return scale;
}

char *
lh_text_scaled(LhTimeScale scale, int64_t quanta, char *buffer)
{
    int64_t base = 1;

    for (int i = 0; i < scale.decimals; i++)
        base *= 10;
    snprintf(buffer, LH_TEXT_SIZE, "%" G_GINT64_FORMAT ".%0*" G_GINT64_FORMAT, quanta / base,
             scale.decimals, quanta % base);
    return buffer;
}

/* Distributes the quanta lost by rounding down to the parts that lost most of one; ties: the
 * first. */
static void
hand_out(int64_t *quanta, LhWide *losses, int count, int64_t missing)
{
    for (; missing > 0; missing--) {
        int most = 0;

        for (int i = 1; i < count; i++) {
            if (losses[i] > losses[most])
                most = i;
        }
        quanta[most]++;
        losses[most] = -1;
    }
}

void
lh_text_round_parts(LhTimeScale scale, const LhWide *parts, int count, uint32_t divisor,
                    int64_t *quanta, int64_t *sum_quanta)
{
    const LhWide step = (LhWide)scale.quantum_ps * divisor;
    LhWide losses[PARTS_MAX];
    LhWide sum = 0;
    int64_t given = 0;

    g_assert(count <= PARTS_MAX);
    for (int i = 0; i < count; i++) {
        sum += parts[i];
        quanta[i] = (int64_t)(parts[i] / step);
        losses[i] = parts[i] % step;
        given += quanta[i];
    }
    *sum_quanta = (int64_t)((sum + step / 2) / step);
    hand_out(quanta, losses, count, *sum_quanta - given);
}

char *
lh_text_percent(double share, char *buffer)
{
    const double percent = 100 * share;
    char digits[G_ASCII_DTOSTR_BUF_SIZE];

    g_ascii_formatd(digits, sizeof(digits), fabs(percent) < 10 ? "%.1f" : "%.0f", percent);
    snprintf(buffer, LH_TEXT_SIZE, "%s %%", digits);
    return buffer;
}

void
lh_text_append(GString *out, double value)
{
    char digits[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append(out, g_ascii_formatd(digits, sizeof(digits), "%.9g", value));
    g_string_append_c(out, ' ');
}
