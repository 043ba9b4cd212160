/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers with units: parsing and formatting. Locale-independent. Simulated time is integer
 * picoseconds everywhere (at 900 GB/s a nanosecond is 900 bytes).
 */
#pragma once

#include "base/wide.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Simulated time or duration in picoseconds. 2^63 ps is 106 days. */
typedef int64_t LhTime;

#define LH_PS_PER_US INT64_C(1000000)
#define LH_PS_PER_S INT64_C(1000000000000)
#define LH_TIME_NEVER INT64_MAX
/* Upper bound of computed durations (26 days), so that adding a few cannot overflow. */
#define LH_TIME_LONGEST (INT64_MAX / 4)

/* Converts a computed duration: rounded, at most LH_TIME_LONGEST. @ps is not negative. */
static inline LhTime
lh_time_from_ps(double ps)
{
    return ps < (double)LH_TIME_LONGEST ? (LhTime)(ps + 0.5) : LH_TIME_LONGEST;
}

/*
 * A text is decimal digits with an optional fraction, at most 19 significant digits, then at most
 * one space, then one of the suffixes below; no sign, no exponent, no thousands separator.
 */
typedef enum {
    LH_UNIT_COUNT,     /* tokens, ranks: "4096", "512K" (1024), "1M", "1m" -> uint64_t */
    LH_UNIT_BYTES,     /* "67108864", "64MiB", "80GB", "128M" (bare K/M/G/T and k/m/g/t = 1024) ->
                          uint64_t */
    LH_UNIT_BANDWIDTH, /* "100Gbps" (bits), "300GB/s", "12.5GiB/s" -> double, bytes/s */
    LH_UNIT_TIME,      /* "2us", "1.5ms", "300ns", "1s", "250ps" -> LhTime, rounded to 1 ps */
    /* Usable rate of a network port: "48GB/s"; or its nominal bit rate: "400G", "400Gb/s",
     * "400Gbps" -> double, bytes/s. */
    LH_UNIT_PORT,
    LH_UNIT_FLOPS, /* "312TFLOP/s", "19.5TFLOPS" -> double, flop/s */
} LhUnit;

/* Usable percentage of a port's nominal bit rate. NCCL uses 12, 24 and 48 GB/s for ports of 100,
 * 200 and 400 Gb/s (src/graph/topo.h), and so do the files of topologies/. */
#define LH_PORT_REACHED_PERCENT 96

/* Description for messages and schemas: "a size such as 64MiB, 80GB or 512K". Static. */
const char *lh_unit_expected(LhUnit unit);

/*
 * Parses @text as @unit into @value (uint64_t, double or LhTime, as tabled above). The whole text
 * must match; values are finite, non-negative and fit the type. On failure @value is unchanged and
 * @error (LH_ERROR_INPUT) quotes the text and states what is allowed.
 */
bool lh_unit_parse(const char *text, LhUnit unit, void *value, GError **error);

/* Formats @value, a bandwidth, a rate or a time, with six decimals, for machine-readable files:
 * "24.500000GB/s". Caller frees. */
char *lh_unit_text_fine(LhUnit unit, double value);

/* A regular expression (ECMA 262) for what lh_unit_parse accepts, for schemas; caller frees. */
char *lh_unit_pattern(LhUnit unit);

/*
 * Human-readable text, e.g. "64 MiB", "240 GB/s", "2 us", "65,536"; caller frees. Pure ASCII.
 * Rounded to four significant digits, except counts, which are exact. lh_unit_parse reads back all
 * but counts (not a negative time, LH_TIME_NEVER, "never", or a size that rounding left without a
 * whole number of bytes).
 */
char *lh_format_bytes(uint64_t bytes);
char *lh_format_count(LhWide count);
char *lh_format_time(LhTime time_ps);
char *lh_format_bandwidth(double bytes_per_s);
char *lh_format_flops(double flops_per_s);

/*
 * Shortest decimal text that reads back as the same double ("0.1", "1e-09"), for machine formats.
 * Writes into @buffer (at least G_ASCII_DTOSTR_BUF_SIZE) and returns it. NaN and infinities are
 * programming errors: JSON has no notation for them.
 */
char *lh_double_to_text(double value, char *buffer);
