/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/time_breakdown.h"

#include "compare/totals.h"

#include <string.h>

void
lh_time_breakdown(const LhTotals *totals, LhWide parts[LH_TIME_PARTS])
{
    parts[0] = totals->busy_ps;
    memcpy(parts + 1, totals->idle_ps, sizeof(totals->idle_ps));
}

const char *
lh_part_name(int part)
{
    return part == 0 ? "compute" : lh_idle_names[part - 1];
}

bool
lh_part_is_exposed(int part)
{
    return part > LH_IDLE_COMM && part <= LH_IDLE_COMM + LH_TIERS;
}
