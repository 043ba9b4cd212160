/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/collectives/collective_lines.h"

#include <math.h>

static double
line_seconds(const LhCollectiveLine *line, double hops, double sent, double to_one,
             LhLinkSlowdown slowdown, double *floor_s)
{
    double seconds = ((double)line->base_ps + hops * (double)line->hop_ps * slowdown.latency) /
                     (double)LH_PS_PER_S;

    *floor_s = seconds;
    if (line->bandwidth > 0)
        seconds += sent / line->bandwidth * slowdown.bytes;
    if (line->copy > 0)
        seconds += to_one / line->copy;
    return seconds;
}

const LhCollectiveLines *
lh_collective_lines_find(const GArray *lines, LhCollectiveKind kind)
{
    for (guint i = 0; lines != NULL && i < lines->len; i++) {
        if (g_array_index(lines, LhCollectiveLines, i).op == (int)kind)
            return &g_array_index(lines, LhCollectiveLines, i);
    }
    return NULL;
}

double
lh_collective_lines_parts(const LhCollectiveLines *row, uint64_t ranks, double bytes,
                          LhLinkSlowdown slowdown, double *floor_s)
{
    const double n = (double)ranks;
    const double rounds = row->op == LH_COLL_ALL_REDUCE ? 2 : 1;
    const double hops = row->op == LH_COLL_ALL_TO_ALL ? log2(n) : rounds * (n - 1);
    const double sent = row->op == LH_COLL_BROADCAST ? bytes : rounds * bytes * (n - 1) / n;
    const LhCollectiveLine *line = sent <= (double)row->ll_bytes      ? &row->ll
                                   : sent <= (double)row->ll128_bytes ? &row->ll128
                                                                      : &row->simple;

    if (line == &row->ll) /* limited by the GPU, not by a link */
        slowdown.bytes = 1;
    return line_seconds(line, hops, sent, sent / (n - 1), slowdown, floor_s);
}

double
lh_collective_lines_seconds(const LhCollectiveLines *row, uint64_t ranks, double bytes,
                            LhLinkSlowdown slowdown)
{
    double floor_s;

    return lh_collective_lines_parts(row, ranks, bytes, slowdown, &floor_s);
}
