/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units, and the search for the nearest name. */
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "run_tests.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *text;
    uint64_t value;
} UintCase;

static void
check_uints(LhUnit unit, const UintCase *cases, gsize count)
{
    for (gsize i = 0; i < count; i++) {
        g_autoptr(GError) error = NULL;
        uint64_t value = 7;

        ck_assert_msg(lh_unit_parse(cases[i].text, unit, &value, &error), "%s",
                      error != NULL ? error->message : "no message");
        ck_assert_msg(value == cases[i].value, "%s gave %" G_GUINT64_FORMAT, cases[i].text, value);
    }
}

START_TEST(units_parses_counts)
{
    static const UintCase cases[] = {
        { "0", 0 },
        { "4096", 4096 },
        { "512K", 512 * 1024 },
        { "1M", 1 << 20 },
        { "2G", UINT64_C(2) << 30 },
        { "007", 7 },
        { "18446744073709551615", UINT64_MAX },
        { "17179869183G", UINT64_C(17179869183) << 30 },
        { "512k", 512 * 1024 },
        { "1m", 1 << 20 },
        { "2g", UINT64_C(2) << 30 },
    };

    check_uints(LH_UNIT_COUNT, cases, G_N_ELEMENTS(cases));
}
END_TEST

START_TEST(units_parses_bytes)
{
    static const UintCase cases[] = {
        { "67108864", 67108864 },
        { "3B", 3 },
        { "1KiB", 1024 },
        { "64MiB", 67108864 },
        { "64 MiB", 67108864 },
        { "1.5GiB", UINT64_C(1610612736) },
        { "2TiB", UINT64_C(2) << 40 },
        { "1kB", 1000 },
        { "1.024kB", 1024 },
        { "7MB", 7000000 },
        { "80GB", UINT64_C(80000000000) },
        { "1TB", UINT64_C(1000000000000) },
        { "512K", 524288 },
        { "128M", 134217728 },
        { "1G", 1 << 30 },
        { "1T", UINT64_C(1) << 40 },
        { "0.5K", 512 },
        { "128m", 134217728 },
        { "1t", UINT64_C(1) << 40 },
        { "1.000000000000000000000000", 1 },
    };

    check_uints(LH_UNIT_BYTES, cases, G_N_ELEMENTS(cases));
}
END_TEST

START_TEST(units_parses_times)
{
    static const UintCase cases[] = {
        { "250ps", 250 },
        { "300ns", 300000 },
        { "2us", 2000000 },
        { "1.5ms", UINT64_C(1500000000) },
        { "1s", UINT64_C(1000000000000) },
        { "0.1us", 100000 },
        { "0s", 0 },
        { "0.4ps", 0 },
        { "0.5ps", 1 },
        { "0.0015 ns", 2 },
        { "9223372.036854775806s", UINT64_C(9223372036854775806) },
    };

    check_uints(LH_UNIT_TIME, cases, G_N_ELEMENTS(cases));
}
END_TEST

typedef struct {
    const char *text;
    LhUnit unit;
    double value;
} RateCase;

START_TEST(units_parses_rates)
{
    static const RateCase cases[] = {
        { "8bps", LH_UNIT_BANDWIDTH, 1 },
        { "1bps", LH_UNIT_BANDWIDTH, 0.125 },
        { "8Kbps", LH_UNIT_BANDWIDTH, 1e3 },
        { "8Mbps", LH_UNIT_BANDWIDTH, 1e6 },
        { "100Gbps", LH_UNIT_BANDWIDTH, 12.5e9 },
        { "1.6Tbps", LH_UNIT_BANDWIDTH, 2e11 },
        { "3B/s", LH_UNIT_BANDWIDTH, 3 },
        { "3kB/s", LH_UNIT_BANDWIDTH, 3e3 },
        { "3MB/s", LH_UNIT_BANDWIDTH, 3e6 },
        { "300GB/s", LH_UNIT_BANDWIDTH, 300e9 },
        { "0.1 GB/s", LH_UNIT_BANDWIDTH, 1e8 },
        { "3.35TB/s", LH_UNIT_BANDWIDTH, 3.35e12 },
        { "1KiB/s", LH_UNIT_BANDWIDTH, 1024 },
        { "1MiB/s", LH_UNIT_BANDWIDTH, 1048576 },
        { "12.5GiB/s", LH_UNIT_BANDWIDTH, 12.5 * 1073741824 },
        { "1TiB/s", LH_UNIT_BANDWIDTH, 1099511627776.0 },
        { "400G", LH_UNIT_PORT, 48e9 },
        { "1.6T", LH_UNIT_PORT, 1.92e11 },
        { "400Gb/s", LH_UNIT_PORT, 48e9 },
        { "100Gbps", LH_UNIT_PORT, 12e9 },
        { "50GB/s", LH_UNIT_PORT, 50e9 },
        { "1FLOP/s", LH_UNIT_FLOPS, 1 },
        { "7GFLOP/s", LH_UNIT_FLOPS, 7e9 },
        { "312TFLOP/s", LH_UNIT_FLOPS, 312e12 },
        { "19.5TFLOPS", LH_UNIT_FLOPS, 19.5e12 },
        { "2PFLOP/s", LH_UNIT_FLOPS, 2e15 },
        { "1FLOPS", LH_UNIT_FLOPS, 1 },
        { "1GFLOPS", LH_UNIT_FLOPS, 1e9 },
        { "1 PFLOPS", LH_UNIT_FLOPS, 1e15 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        double value = -1;

        ck_assert_msg(lh_unit_parse(cases[i].text, cases[i].unit, &value, &error), "%s",
                      error != NULL ? error->message : "no message");
        ck_assert_msg(value == cases[i].value, "%s gave %.17g", cases[i].text, value);
    }
}
END_TEST

typedef struct {
    const char *text;
    LhUnit unit;
    const char *reason;
} BadCase;

START_TEST(units_rejects_what_it_does_not_know)
{
    static const BadCase cases[] = {
        { "", LH_UNIT_COUNT, "does not start with a digit" },
        { " 1", LH_UNIT_COUNT, "does not start with a digit" },
        { "-1", LH_UNIT_COUNT, "does not start with a digit" },
        { "+1", LH_UNIT_COUNT, "does not start with a digit" },
        { "K", LH_UNIT_COUNT, "does not start with a digit" },
        { "1.5K", LH_UNIT_COUNT, "decimal point" },
        { "1e3", LH_UNIT_COUNT, "unit is unknown" },
        { "1T", LH_UNIT_COUNT, "unit is unknown" },
        { "1t", LH_UNIT_COUNT, "unit is unknown" },
        { "1kb", LH_UNIT_COUNT, "unit is unknown" },
        { "1KK", LH_UNIT_COUNT, "unit is unknown" },
        { "65,536", LH_UNIT_COUNT, "unit is unknown" },
        { "1 ", LH_UNIT_COUNT, "unit is unknown" },
        { "1  K", LH_UNIT_COUNT, "unit is unknown" },
        { "18446744073709551616", LH_UNIT_COUNT, "too many digits" },
        { "17179869184G", LH_UNIT_COUNT, "too large" },
        { "0x10", LH_UNIT_BYTES, "unit is unknown" },
        { "64mib", LH_UNIT_BYTES, "unit is unknown" },
        { "64KB", LH_UNIT_BYTES, "unit is unknown" },
        { "64Gb", LH_UNIT_BYTES, "unit is unknown" },
        { "1.5", LH_UNIT_BYTES, "not a whole number" },
        { "0.3KiB", LH_UNIT_BYTES, "not a whole number" },
        { "1.", LH_UNIT_BYTES, "a digit must follow" },
        { ".5K", LH_UNIT_BYTES, "does not start with a digit" },
        { "1.2.3K", LH_UNIT_BYTES, "unit is unknown" },
        { "16777216TiB", LH_UNIT_BYTES, "too large" },
        { "100", LH_UNIT_BANDWIDTH, "it has no unit" },
        { "100G", LH_UNIT_BANDWIDTH, "unit is unknown" },
        { "100Gb/s", LH_UNIT_BANDWIDTH, "unit is unknown" },
        { "100", LH_UNIT_PORT, "it has no unit" },
        { "100K", LH_UNIT_PORT, "unit is unknown" },
        { "inf", LH_UNIT_BANDWIDTH, "does not start with a digit" },
        { "nanGB/s", LH_UNIT_BANDWIDTH, "does not start with a digit" },
        { "0.12345678901234567890123456GB/s", LH_UNIT_BANDWIDTH, "too many digits" },
        { "1", LH_UNIT_TIME, "it has no unit" },
        { "1m", LH_UNIT_TIME, "unit is unknown" },
        { "1sec", LH_UNIT_TIME, "unit is unknown" },
        { "1,5s", LH_UNIT_TIME, "unit is unknown" },
        { "9223372.036854775807s", LH_UNIT_TIME, "too large" },
        { "99999999999999999999999s", LH_UNIT_TIME, "too many digits" },
        { "1TFLOP", LH_UNIT_FLOPS, "unit is unknown" },
        { "1MFLOP/s", LH_UNIT_FLOPS, "unit is unknown" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        uint64_t untouched = 42;
        bool ok = lh_unit_parse(cases[i].text, cases[i].unit, &untouched, &error);

        ck_assert_msg(!ok, "\"%s\" was accepted", cases[i].text);
        ck_assert_msg(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT), "wrong code");
        ck_assert_msg(strstr(error->message, cases[i].reason) != NULL, "%s", error->message);
        ck_assert_msg(strstr(error->message, lh_unit_expected(cases[i].unit)) != NULL, "%s",
                      error->message);
        ck_assert(untouched == 42);
    }
}
END_TEST

START_TEST(units_words_the_whole_message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) second = NULL;
    LhTime time_ps;

    lh_unit_parse("5parsecs", LH_UNIT_TIME, &time_ps, &error);
    ck_assert_str_eq(error->message,
                     "\"5parsecs\" is not a time such as 2us, 1.5ms or 300ns: its "
                     "unit is unknown; allowed: a number, then ps, ns, us, ms or s");
    lh_unit_parse("1\n\xff 0123456789012345678901234567890123456789", LH_UNIT_TIME, &time_ps,
                  &second);
    ck_assert(g_utf8_validate(second->message, -1, NULL));
    ck_assert_ptr_null(strchr(second->message, '\n'));
    ck_assert_ptr_nonnull(strstr(second->message, "...\" is not a time"));
}
END_TEST

START_TEST(units_have_patterns_that_agree)
{
    static const struct {
        LhUnit unit;
        const char *good;
        const char *bad;
    } cases[] = {
        { LH_UNIT_COUNT, "512K", "1.5K" },         { LH_UNIT_BYTES, "1.5 GiB", "64Gb" },
        { LH_UNIT_BANDWIDTH, "12.5GiB/s", "100" }, { LH_UNIT_TIME, "1.5 ms", "5" },
        { LH_UNIT_FLOPS, "19.5TFLOPS", "1TFLOP" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *pattern = lh_unit_pattern(cases[i].unit);

        ck_assert(g_regex_match_simple(pattern, cases[i].good, 0, 0));
        ck_assert(!g_regex_match_simple(pattern, cases[i].bad, 0, 0));
    }
}
END_TEST

START_TEST(units_formats_for_people)
{
    static const struct {
        uint64_t value;
        const char *bytes;
        const char *count;
    } cases[] = {
        { 0, "0 B", "0" },
        { 999, "999 B", "999" },
        { 1000, "1000 B", "1,000" },
        { 1023, "1023 B", "1,023" },
        { 1024, "1 KiB", "1,024" },
        { 1536, "1.5 KiB", "1,536" },
        { 65536, "64 KiB", "65,536" },
        { 1048575, "1 MiB", "1,048,575" },
        { 67108864, "64 MiB", "67,108,864" },
        { UINT64_C(1325000000), "1.234 GiB", "1,325,000,000" },
        { UINT64_C(80) << 30, "80 GiB", "85,899,345,920" },
        { UINT64_C(1) << 50, "1024 TiB", "1,125,899,906,842,624" },
        { UINT64_MAX, "16777216 TiB", "18,446,744,073,709,551,615" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *bytes = lh_format_bytes(cases[i].value);
        g_autofree char *count = lh_format_count(cases[i].value);

        ck_assert_str_eq(bytes, cases[i].bytes);
        ck_assert_str_eq(count, cases[i].count);
    }
}
END_TEST

START_TEST(units_formats_times_for_people)
{
    static const struct {
        LhTime time_ps;
        const char *text;
    } cases[] = {
        { 0, "0 ps" },
        { 1, "1 ps" },
        { 999, "999 ps" },
        { 999940, "999.9 ns" },
        { 999960, "1 us" },
        { 2000000, "2 us" },
        { INT64_C(1500000000), "1.5 ms" },
        { INT64_C(158240000000), "158.2 ms" },
        { LH_PS_PER_S, "1 s" },
        { 90 * LH_PS_PER_S, "90 s" },
        { 123456 * LH_PS_PER_S, "123456 s" },
        { -2000, "-2 ns" },
        { INT64_MIN, "-9223372 s" },
        { LH_TIME_NEVER, "never" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = lh_format_time(cases[i].time_ps);

        ck_assert_str_eq(text, cases[i].text);
    }
}
END_TEST

START_TEST(units_formats_rates_for_people)
{
    static const struct {
        double value;
        const char *bandwidth;
        const char *flops;
    } cases[] = {
        { 0, "0 B/s", "0 FLOP/s" },
        { 240e9, "240 GB/s", "240 GFLOP/s" },
        { 12.5e9, "12.5 GB/s", "12.5 GFLOP/s" },
        { 312e12, "312 TB/s", "312 TFLOP/s" },
        { 2.5e15, "2500 TB/s", "2.5 PFLOP/s" },
        { 1234567, "1.235 MB/s", "1234567 FLOP/s" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *bandwidth = lh_format_bandwidth(cases[i].value);
        g_autofree char *flops = lh_format_flops(cases[i].value);

        ck_assert_str_eq(bandwidth, cases[i].bandwidth);
        ck_assert_str_eq(flops, cases[i].flops);
    }
}
END_TEST

/* A random number of 1 to 60 bits; all magnitudes are equally likely. */
static uint64_t
any_magnitude(uint64_t i, uint64_t what)
{
    return lh_rng_bits(1, i, what) >> (4 + lh_rng_bits(2, i, what) % 60);
}

START_TEST(units_formats_read_back)
{
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bytes = any_magnitude(i, 0);
        LhTime time_ps = (LhTime)any_magnitude(i, 1);
        double rate = (double)any_magnitude(i, 2) / 16.0;
        g_autofree char *bytes_text = g_strdup_printf("%" G_GUINT64_FORMAT, bytes);
        g_autofree char *time_text = lh_format_time(time_ps);
        g_autofree char *rate_text = lh_format_bandwidth(rate);
        uint64_t bytes_read;
        LhTime time_read;
        double rate_read;

        ck_assert(lh_unit_parse(bytes_text, LH_UNIT_BYTES, &bytes_read, NULL));
        ck_assert(bytes_read == bytes);
        ck_assert(lh_unit_parse(time_text, LH_UNIT_TIME, &time_read, NULL));
        ck_assert(fabs((double)(time_read - time_ps)) <= 0.00051 * (double)time_ps);
        ck_assert(lh_unit_parse(rate_text, LH_UNIT_BANDWIDTH, &rate_read, NULL));
        ck_assert(fabs(rate_read - rate) <= 0.00051 * rate + 0.0005);
    }
}
END_TEST

/* Whole multiples of a unit are printed and read back exactly. */
START_TEST(units_round_sizes_read_back_exactly)
{
    for (unsigned shift = 0; shift < 50; shift++) {
        for (uint64_t factor = 1; factor < 1000; factor += 37) {
            uint64_t bytes = factor << shift;
            g_autofree char *text = lh_format_bytes(factor << (shift / 10 * 10));
            uint64_t read_back;

            ck_assert(lh_unit_parse(text, LH_UNIT_BYTES, &read_back, NULL));
            ck_assert(read_back == factor << (shift / 10 * 10));
            ck_assert(bytes >= read_back);
        }
    }
}
END_TEST

/* Any text is either rejected with a message or yields a value. */
START_TEST(units_survives_noise)
{
    static const char alphabet[] = "0123456789..KMGTiBbpsFLOkmun/ -+eE\x80\xff";

    for (uint64_t i = 0; i < 50000; i++) {
        char text[24] = { 0 };
        gsize length = lh_rng_bits(3, i, 0) % 23;
        g_autoptr(GError) error = NULL;
        uint64_t value;

        for (gsize k = 0; k < length; k++)
            text[k] = alphabet[lh_rng_bits(4, i, k) % (sizeof(alphabet) - 1)];
        if (!lh_unit_parse(text, (LhUnit)(i % 5), &value, &error))
            ck_assert_ptr_nonnull(error);
    }
}
END_TEST

START_TEST(doubles_print_shortest)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        { 0, "0" },
        { -0.0, "-0" },
        { 0.1, "0.1" },
        { 1e-9, "1e-09" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { 1.0 / 3, "0.3333333333333333" },
        { 9007199254740993.0, "9007199254740992" },
        { 1e22, "1e+22" },
        { 5e-324, "5e-324" },
        { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { -2.5, "-2.5" },
    };
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        ck_assert_str_eq(lh_double_to_text(cases[i].value, buffer), cases[i].text);
}
END_TEST

START_TEST(doubles_read_back)
{
    for (uint64_t i = 0; i < 100000; i++) {
        char buffer[G_ASCII_DTOSTR_BUF_SIZE];
        uint64_t bits = lh_rng_bits(5, i, 0);
        double value;

        memcpy(&value, &bits, sizeof(value));
        if (isfinite(value))
            ck_assert(g_ascii_strtod(lh_double_to_text(value, buffer), NULL) == value);
    }
}
END_TEST

G_GNUC_PRINTF(1, 2) static char *error_text(const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = lh_error_text(format, args);
    va_end(args);
    return text;
}

/* A precision counts bytes; a character that it cuts in two is replaced. */
START_TEST(error_texts_are_valid)
{
    static const char *const smile = "ab\xf0\x9f\x98\x80"
                                     "cd";

    for (int bytes = 0; bytes <= 8; bytes++) {
        g_autofree char *text = error_text("found \"%.*s\"", bytes, smile);

        ck_assert_msg(g_utf8_validate(text, -1, NULL), "%d bytes: %s", bytes, text);
        ck_assert_int_eq(strstr(text, "\xef\xbf\xbd") != NULL, bytes > 2 && bytes < 6);
    }
}
END_TEST

START_TEST(nearest_word_finds_typing_errors)
{
    static const char *const words[] = { "bandwidth", "latency", "count", "ring", "rings", NULL };
    static const struct {
        const char *word;
        const char *nearest;
    } cases[] = {
        { "bandwith", "bandwidth" },
        { "bandwdith", "bandwidth" },
        { "latnecy", "latency" },
        { "conut", "count" },
        { "rin", "ring" },
        { "ringz", "ring" },
        { "ringss", "rings" },
        { "count", "count" },
        { "x", NULL },
        { "", NULL },
        { "throughput", NULL },
    };
    g_autofree char *huge = g_strnfill(1000000, 'a');

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *nearest = lh_nearest_word(cases[i].word, words);

        ck_assert_msg(g_strcmp0(nearest, cases[i].nearest) == 0, "%s gave %s", cases[i].word,
                      nearest != NULL ? nearest : "nothing");
    }
    ck_assert_ptr_null(lh_nearest_word(huge, words));
}
END_TEST

LH_TEST_MAIN("base_units", units_parses_counts, units_parses_bytes, units_parses_times,
             units_parses_rates, units_rejects_what_it_does_not_know, units_words_the_whole_message,
             units_have_patterns_that_agree, units_formats_for_people,
             units_formats_times_for_people, units_formats_rates_for_people,
             units_formats_read_back, units_round_sizes_read_back_exactly, units_survives_noise,
             doubles_print_shortest, doubles_read_back, error_texts_are_valid,
             nearest_word_finds_typing_errors)
