/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A protocol's time is linear in bytes, with a latency and a rate, after Hockney (Parallel
 * Computing 20, 1994). Between two sizes NCCL either uses one protocol, and the time lies on the
 * line that joins them; or it changes protocols, and the lines of the adjacent segments meet in
 * between. Which of the two is unknown, so the time is taken between them. Between two numbers of
 * ranks the time is linear in the ranks, at equal bytes per rank. On other links than those of the
 * row, some parts of a time scale and others do not. Not modelled: other traffic on the links of
 * the node.
 */
#include "sim/network/collectives/collective_times.h"

#include <math.h>

/* Position between the line that joins two sizes and the point where the adjacent lines meet. */
#define BEND (2.0 / 3)

/* Below this size the time depends on the GPU, and edits of links do not determine it: minimum
 * error, per logarithm of the links' slowdown. */
#define EDITED_BELOW_BYTES (16 << 20)
#define EDITED_ERROR 0.4

/* Whether printed bytes are those of one rank, not of all. */
static bool
is_per_rank(LhCollectiveKind kind)
{
    return kind == LH_COLL_ALL_TO_ALL || kind == LH_COLL_BROADCAST || kind == LH_TIMES_OF_SENDS;
}

double
lh_collective_printed_bytes(LhCollectiveKind kind, uint64_t ranks, double shard_bytes)
{
    return is_per_rank(kind) ? shard_bytes : shard_bytes * (double)ranks;
}

/* The line through the times of the sizes @from and @from + 1. */
static double
line_us(const LhCollectiveTimes *row, guint from, double bytes)
{
    const double low = (double)lh_times_bytes_at(row, from),
                 high = (double)lh_times_bytes_at(row, from + 1);
    const double share = (bytes - low) / (high - low);

    return (1 - share) * lh_times_us_at(row, from) + share * lh_times_us_at(row, from + 1);
}

/* The time between the sizes @from and @from + 1 of the row. */
static double
bent_us(const LhCollectiveTimes *row, guint from, double bytes)
{
    const double low = fmin(lh_times_us_at(row, from), lh_times_us_at(row, from + 1));
    const double high = fmax(lh_times_us_at(row, from), lh_times_us_at(row, from + 1));
    const double straight = line_us(row, from, bytes);
    double before, after, meet;

    if (from == 0 || from + 2 >= row->bytes->len)
        return straight;
    before = line_us(row, from - 1, bytes);
    after = line_us(row, from + 1, bytes);
    if (before > straight && after > straight)
        meet = fmin(before, after);
    else if (before < straight && after < straight)
        meet = fmax(before, after);
    else
        return straight;
    return straight + BEND * (CLAMP(meet, low, high) - straight);
}

double
lh_collective_times_us(const LhCollectiveTimes *row, double bytes)
{
    const guint last = row->bytes->len - 1;
    guint from = 0;

    if (bytes <= (double)lh_times_bytes_at(row, 0))
        return lh_times_us_at(row, 0);
    if (bytes >= (double)lh_times_bytes_at(row, last))
        return line_us(row, last - 1, bytes);
    while (bytes > (double)lh_times_bytes_at(row, from + 1))
        from++;
    return bent_us(row, from, bytes);
}

/* The size with equal bytes per rank on @to GPUs instead of @from. In an all-reduce each rank has
 * the whole vector. */
static double
same_of_a_rank(LhCollectiveKind kind, double bytes, uint64_t from, uint64_t to)
{
    if (kind == LH_COLL_ALL_REDUCE || is_per_rank(kind))
        return bytes;
    return bytes * (double)to / (double)from;
}

double
lh_collective_times_same_of_a_rank(const LhCollectiveTimes *row, double bytes, uint64_t ranks)
{
    return same_of_a_rank((LhCollectiveKind)row->op, bytes, row->ranks, ranks);
}

/* The rows of the closest numbers of ranks below and above @ranks, possibly the same; of several
 * versions the first. */
static bool
find_rows(const GArray *times, LhCollectiveKind kind, uint64_t ranks,
          const LhCollectiveTimes **fewer, const LhCollectiveTimes **more)
{
    *fewer = *more = NULL;
    for (guint i = 0; times != NULL && i < times->len; i++) {
        const LhCollectiveTimes *row = lh_collective_times_at(times, i);

        if (row->op != (int)kind)
            continue;
        if (row->ranks <= ranks && (*fewer == NULL || row->ranks > (*fewer)->ranks))
            *fewer = row;
        if (row->ranks >= ranks && (*more == NULL || row->ranks < (*more)->ranks))
            *more = row;
    }
    return *fewer != NULL && *more != NULL;
}

bool
lh_collective_times_choose(GArray *times, const char *version)
{
    bool found = false;

    for (guint i = 0; times != NULL && i < times->len; i++) {
        LhCollectiveTimes *row = &g_array_index(times, LhCollectiveTimes, i);

        if (!lh_collective_times_has_version(row, version))
            continue;
        found = true;
        for (guint j = 0; j < i; j++) {
            LhCollectiveTimes *other = &g_array_index(times, LhCollectiveTimes, j);
            const LhCollectiveTimes moved = *other;

            if (other->op != row->op || other->ranks != row->ranks)
                continue;
            *other = *row;
            *row = moved;
            break;
        }
    }
    return found;
}

/* Number of sequential hops in a time. */
static double
hops_of_time(LhCollectiveKind kind, uint64_t ranks)
{
    const double rounds = kind == LH_COLL_ALL_REDUCE ? 2 : 1;

    return kind == LH_COLL_ALL_TO_ALL ? 1 : rounds * (double)(ranks - 1);
}

/* Time per hop: the slope of the times of the first sizes between the fewest and the most GPUs. 0
 * for all-to-all: all of it is floor. */
static double
hop_seconds(const GArray *times, LhCollectiveKind kind)
{
    const LhCollectiveTimes *fewest = NULL, *most = NULL;

    for (guint i = 0; i < times->len; i++) {
        const LhCollectiveTimes *row = lh_collective_times_at(times, i);

        if (row->op != (int)kind)
            continue;
        if (fewest == NULL || row->ranks < fewest->ranks)
            fewest = row;
        if (most == NULL || row->ranks > most->ranks)
            most = row;
    }
    if (fewest == most || kind == LH_COLL_ALL_TO_ALL)
        return 0;
    return fmax(0, (lh_times_us_at(most, 0) - lh_times_us_at(fewest, 0)) /
                       (hops_of_time(kind, most->ranks) - hops_of_time(kind, fewest->ranks))) /
           G_USEC_PER_SEC;
}

bool
lh_collective_times_find(const GArray *times, LhCollectiveKind kind, uint64_t ranks,
                         LhCollectiveRows *rows)
{
    const LhCollectiveTimes *fewer, *more;

    if (!find_rows(times, kind, ranks, &fewer, &more))
        return false;
    *rows = (LhCollectiveRows){ .fewer = fewer,
                                .more = more,
                                .share = fewer == more ? 0
                                                       : (double)(ranks - fewer->ranks) /
                                                             (double)(more->ranks - fewer->ranks),
                                .hop_s = hop_seconds(times, kind),
                                .ranks = ranks };
    return true;
}

/* Lower bound of the time difference between the last two sizes, from the links. */
static double
last_piece_s(const LhCollectiveTimes *row)
{
    const guint last = row->bytes->len - 1;

    return row->bound_s_per_byte *
           (double)(lh_times_bytes_at(row, last) - lh_times_bytes_at(row, last - 1));
}

static double
last_piece_efficiency(const LhCollectiveTimes *row)
{
    const guint last = row->bytes->len - 1;

    return last_piece_s(row) * G_USEC_PER_SEC /
           (lh_times_us_at(row, last) - lh_times_us_at(row, last - 1));
}

double
lh_collective_times_efficiency(const LhCollectiveTimes *row, uint64_t *bytes)
{
    double best = 0;

    for (guint i = 0; i < row->bytes->len; i++) {
        const double efficiency = row->bound_s_per_byte * (double)lh_times_bytes_at(row, i) *
                                  G_USEC_PER_SEC / lh_times_us_at(row, i);

        if (efficiency <= best)
            continue;
        best = efficiency;
        *bytes = lh_times_bytes_at(row, i);
    }
    return best;
}

double
lh_collective_times_reached(const LhCollectiveTimes *row)
{
    const guint last = row->bytes->len - 1;
    const double least_us =
        row->bound_s_per_byte * (double)lh_times_bytes_at(row, last) * G_USEC_PER_SEC;

    return fmin(1, least_us / (lh_times_us_at(row, last) -
                               fmin(lh_times_us_at(row, 0), lh_times_us_at(row, last) / 2)));
}

bool
lh_collective_times_is_faster(const LhCollectiveTimes *row)
{
    return last_piece_efficiency(row) > 1;
}

/* Efficiency of links at large sizes: the slope may jump between protocols, and the whole time may
 * not be faster than links. */
static double
efficiency_of(const LhCollectiveTimes *row)
{
    uint64_t bytes;

    return fmin(1, fmax(last_piece_efficiency(row), lh_collective_times_efficiency(row, &bytes)));
}

/* The time at the end of the error bar requested, around @seconds: @protocols of it may scale with
 * links or not. Never below the lower bound of the links. */
static double
at_end(double seconds, double protocols, double bytes, double least, LhLinkSlowdown slowdown)
{
    const double half = fabs(protocols * (slowdown.bytes - 1)) / 2;
    const double edited = bytes < EDITED_BELOW_BYTES ? EDITED_ERROR * fabs(log(slowdown.bytes)) : 0;
    const double width = fmax(half / seconds, edited);

    if (slowdown.end == 0 || slowdown.bytes == 1)
        return seconds;
    return slowdown.end > 0 ? seconds * (1 + width) : fmax(seconds / (1 + width), least);
}

/* The row's time scaled to other links; exact on the row's own links. Sets @floor_s to the part
 * that does not depend on bytes. */
static double
slowed_seconds(const LhCollectiveTimes *row, double bytes, double hop_s, LhLinkSlowdown slowdown,
               double *floor_s)
{
    const double whole = lh_collective_times_us(row, bytes) / G_USEC_PER_SEC;
    const double floor = fmin(lh_times_us_at(row, 0) / G_USEC_PER_SEC, whole);
    const double hops =
        fmin(hops_of_time((LhCollectiveKind)row->op, row->ranks) * hop_s, floor / 2);
    const double links = fmin(row->bound_s_per_byte * bytes / efficiency_of(row), whole - floor);
    const double protocols = whole - floor - links;
    const double least = row->bound_s_per_byte * bytes * slowdown.bytes;
    const double middle = whole + hops * (slowdown.latency - 1) +
                          (links + slowdown.protocols * protocols) * (slowdown.bytes - 1);
    const double seconds = at_end(middle, protocols, bytes, least, slowdown);

    *floor_s = fmin(floor + hops * (slowdown.latency - 1), seconds);
    return seconds;
}

double
lh_collective_rows_parts(const LhCollectiveRows *rows, double bytes, LhLinkSlowdown fewer,
                         LhLinkSlowdown more, double *floor_s)
{
    const LhCollectiveKind kind = (LhCollectiveKind)rows->fewer->op;
    double low_floor, high_floor;
    const double low =
        slowed_seconds(rows->fewer, same_of_a_rank(kind, bytes, rows->ranks, rows->fewer->ranks),
                       rows->hop_s, fewer, &low_floor);
    const double high =
        slowed_seconds(rows->more, same_of_a_rank(kind, bytes, rows->ranks, rows->more->ranks),
                       rows->hop_s, more, &high_floor);

    *floor_s = (1 - rows->share) * low_floor + rows->share * high_floor;
    return (1 - rows->share) * low + rows->share * high;
}

double
lh_collective_rows_seconds(const LhCollectiveRows *rows, double bytes, LhLinkSlowdown fewer,
                           LhLinkSlowdown more)
{
    double floor_s;

    return lh_collective_rows_parts(rows, bytes, fewer, more, &floor_s);
}

int
lh_collective_rows_algorithm(const LhCollectiveRows *rows)
{
    return rows->share > 0 ? rows->more->algorithm : rows->fewer->algorithm;
}

int
lh_collective_rows_provenance(const LhCollectiveRows *rows)
{
    return MAX(rows->fewer->from.provenance, rows->more->from.provenance);
}

bool
lh_collective_times_seconds(const GArray *times, LhCollectiveKind kind, uint64_t ranks,
                            double bytes, double *seconds, int *provenance)
{
    LhCollectiveRows rows;

    if (!lh_collective_times_find(times, kind, ranks, &rows))
        return false;
    *seconds = lh_collective_rows_seconds(&rows, bytes, LH_LINK_AS_MEASURED, LH_LINK_AS_MEASURED);
    *provenance = lh_collective_rows_provenance(&rows);
    return true;
}

bool
lh_collective_times_leave_out(GArray *times, LhCollectiveKind kind, uint64_t ranks, uint64_t bytes)
{
    const LhCollectiveTimes *row, *same;

    if (!find_rows(times, kind, ranks, &row, &same) || row != same ||
        row->bytes->len <= LH_COLLECTIVE_SIZES_MIN)
        return false;
    for (guint i = 0; i < row->bytes->len; i++) {
        if (lh_times_bytes_at(row, i) != bytes)
            continue;
        g_array_remove_index(row->bytes, i);
        g_array_remove_index(row->us, i);
        return true;
    }
    return false;
}
