/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of perftest: the bandwidth of one NIC and the latency of a short message. Left out: runs
 * with several service levels or over two ports, and atomics.
 */
#include "base/error.h"
#include "import/cluster/readers_private.h"

#include <string.h>

#define MIB 1048576.0
#define GBIT 1.25e8
#define LATENCY_BYTES 1024
#define LONG_MESSAGE_BYTES 65536 /* shortest message whose bandwidth counts */
#define US_PER_S 1e6
#define US_MAX 1e9

typedef enum { NOTHING, BANDWIDTH, LATENCY } What;

typedef struct {
    What what;     /* of the current table */
    double unit;   /* nocheck:unit: bytes/s per unit of the table */
    guint column;  /* of the value */
    guint columns; /* of a row with a bandwidth */
    bool both;     /* both directions, summed */
    bool two_ways; /* the latency is a round trip */
    double rate;   /* nocheck:unit: bytes/s, best row */
    guint rate_line;
    uint64_t least_bytes;
    double latency_us;
    guint latency_line; /* 0: none */
} PerftestRun;

static bool
is_perftest_table(const LhToolReader *r)
{
    return lh_tool_is(lh_tool_word(r, 0), "#bytes");
}

/* "RDMA_Write Bidirectional BW Test". */
static void
find_title(LhToolReader *r, PerftestRun *run)
{
    static const char *const programs[][3] = {
        { "RDMA_Write", "ib_write_bw", "ib_write_lat" },
        { "Send", "ib_send_bw", "ib_send_lat" },
        { "RDMA_Read", "ib_read_bw", "ib_read_lat" },
    };
    const bool latency = lh_tool_line_has(r, "Latency Test");

    if (!latency && !lh_tool_line_has(r, "BW Test"))
        return;
    run->both = lh_tool_line_has(r, "Bidirectional");
    run->two_ways = latency && lh_tool_is(lh_tool_word(r, 0), "RDMA_Read");
    for (gsize i = 0; i < G_N_ELEMENTS(programs); i++) {
        if (lh_tool_is(lh_tool_word(r, 0), programs[i][0]))
            r->tool = programs[i][latency ? 2 : 1];
    }
}

/* Reads the unit of the average: "average[Gb/sec]"; releases before 2024 print MiB as MB. */
static bool
find_unit(LhToolReader *r, PerftestRun *run)
{
    guint columns = 0;

    for (guint i = 0; i < r->words->len; i++) {
        const LhToolWord word = lh_tool_word(r, i);

        columns += !lh_tool_is(word, "BW"); /* "BW average[Gb/sec]" is one column */
        run->columns = columns;
        if (!lh_tool_begins(word, "average["))
            continue;
        run->what = BANDWIDTH;
        run->column = columns - 1;
        run->unit = lh_tool_is(word, "average[Gb/sec]") ? GBIT : MIB;
        if (run->unit != GBIT && !lh_tool_is(word, "average[MB/sec]") &&
            !lh_tool_is(word, "average[MiB/sec]"))
            return lh_text_fail(&r->text, word.at,
                                "unknown unit; allowed: [Gb/sec], [MB/sec] or [MiB/sec]");
    }
    return true;
}

static bool
read_head(LhToolReader *r, PerftestRun *run)
{
    const LhToolWord second = lh_tool_word(r, 1);

    run->what = NOTHING;
    run->column = 0;
    if (!lh_tool_is(second, "#iterations"))
        return lh_text_fail(&r->text, r->text.line_start,
                            "a table with another column than #iterations after #bytes; give a run "
                            "without service levels");
    if (!find_unit(r, run))
        return false;
    if (run->what == BANDWIDTH)
        return true;
    for (guint i = 0; i < r->words->len; i++) {
        const LhToolWord word = lh_tool_word(r, i);

        if (lh_tool_is(word, "t_typical[usec]") ||
            (run->column == 0 && lh_tool_is(word, "t_avg[usec]")))
            run->column = i;
    }
    if (run->column == 0)
        return lh_text_fail(&r->text, r->text.line_start,
                            "a table without BW average, t_typical[usec] or t_avg[usec]");
    if (run->two_ways)
        return lh_text_fail(&r->text, r->text.line_start,
                            "ib_read_lat times a message and its answer; give ib_write_lat or "
                            "ib_send_lat");
    run->what = LATENCY;
    return true;
}

/* Reads a bandwidth. Some releases omit the name of the last column. */
static bool
read_bandwidth(LhToolReader *r, PerftestRun *run, LhToolWord word, uint64_t bytes)
{
    double found;

    if (r->words->len != run->columns && r->words->len != run->columns + 1)
        return lh_text_fail(&r->text, r->text.line_start,
                            "%u columns; allowed: %u, of a run over one port of one NIC",
                            r->words->len, run->columns);
    if (!lh_tool_double(word, &found) || !(found >= 0 && found <= US_MAX))
        return lh_text_fail(&r->text, word.at, "BW average is a number from 0 to %g", US_MAX);
    found *= run->unit / (run->both ? 2 : 1);
    if (bytes >= LONG_MESSAGE_BYTES && found > run->rate) {
        run->rate = found;
        run->rate_line = r->text.line;
    }
    return true;
}

static bool
read_latency(LhToolReader *r, PerftestRun *run, LhToolWord word, uint64_t bytes)
{
    double found;

    if (!lh_tool_double(word, &found) || !(found > 0 && found <= US_MAX))
        return lh_text_fail(&r->text, word.at,
                            "a latency is a number of microseconds, more than 0 and up to %g",
                            US_MAX);
    if (run->latency_line == 0 || bytes < run->least_bytes) {
        run->least_bytes = bytes;
        run->latency_us = found;
        run->latency_line = r->text.line;
    }
    return true;
}

static bool
read_perftest_lines(LhToolReader *r, PerftestRun *run)
{
    for (;;) {
        bool more;
        uint64_t bytes;

        if (!lh_tool_next(r, &more))
            return false;
        if (!more)
            return true;
        find_title(r, run);
        if (is_perftest_table(r)) {
            if (!read_head(r, run))
                return false;
        } else if (run->what != NOTHING && lh_tool_uint(lh_tool_word(r, 0), &bytes)) {
            const LhToolWord word = lh_tool_word(r, run->column);

            if (!(run->what == BANDWIDTH ? read_bandwidth(r, run, word, bytes)
                                         : read_latency(r, run, word, bytes)))
                return false;
        }
    }
}

static bool
read_perftest(LhToolReader *r)
{
    PerftestRun run = { .what = NOTHING };

    if (!read_perftest_lines(r, &run))
        return false;
    if (run.rate == 0 && run.latency_line == 0)
        return lh_text_fail(
            &r->text, r->text.line_start,
            "no row with a latency, or with a bandwidth of messages of 64 KiB or more");
    if (run.latency_line != 0 && run.least_bytes > LATENCY_BYTES)
        return lh_text_fail(&r->text, r->text.line_start,
                            "latencies start at messages of %" G_GUINT64_FORMAT
                            " bytes; give a run with one of up to %d bytes",
                            run.least_bytes, LATENCY_BYTES);
    return (run.rate == 0 ||
            lh_tool_add(r, LH_TOOL_NIC_RATE, run.rate_line,
                        (LhToolValue){ run.rate, LH_PROVENANCE_MEASURED, 0, 0 })) &&
           (run.latency_line == 0 ||
            lh_tool_add(r, LH_TOOL_NIC_LATENCY, run.latency_line,
                        (LhToolValue){ run.latency_us / US_PER_S, LH_PROVENANCE_MEASURED, 0, 0 }));
}

const LhToolFormat lh_tool_perftest = { "perftest", is_perftest_table, read_perftest };
