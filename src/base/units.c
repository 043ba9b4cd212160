/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers with units. One table per unit lists the accepted suffixes; parsing is exact integer
 * arithmetic (a decimal fraction is a 64-bit numerator over a power of ten), so that "0.1us" is
 * 100,000 ps on every machine and in every locale.
 */
#include "base/units.h"

#include "base/error.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct {
    const char *text;
    uint64_t numerator; /* base units per suffix, as a fraction */
    uint64_t denominator;
} Suffix;

#define KI (UINT64_C(1) << 10)
#define MI (UINT64_C(1) << 20)
#define GI (UINT64_C(1) << 30)
#define TI (UINT64_C(1) << 40)
#define KILO UINT64_C(1000)
#define MEGA UINT64_C(1000000)
#define GIGA UINT64_C(1000000000)
#define TERA UINT64_C(1000000000000)
#define PETA UINT64_C(1000000000000000)

static const Suffix count_suffixes[] = {
    { "", 1, 1 },   { "K", KI, 1 }, { "M", MI, 1 }, { "G", GI, 1 },
    { "k", KI, 1 }, { "m", MI, 1 }, { "g", GI, 1 }, { NULL, 0, 0 },
};

static const Suffix bytes_suffixes[] = {
    { "", 1, 1 },     { "B", 1, 1 },     { "KiB", KI, 1 },  { "MiB", MI, 1 },  { "GiB", GI, 1 },
    { "TiB", TI, 1 }, { "kB", KILO, 1 }, { "MB", MEGA, 1 }, { "GB", GIGA, 1 }, { "TB", TERA, 1 },
    { "K", KI, 1 },   { "M", MI, 1 },    { "G", GI, 1 },    { "T", TI, 1 },    { "k", KI, 1 },
    { "m", MI, 1 },   { "g", GI, 1 },    { "t", TI, 1 },    { NULL, 0, 0 },
};

#define BYTE_RATE_SUFFIXES                                                                         \
    { "B/s", 1, 1 }, { "kB/s", KILO, 1 }, { "MB/s", MEGA, 1 }, { "GB/s", GIGA, 1 },                \
        { "TB/s", TERA, 1 }, { "KiB/s", KI, 1 }, { "MiB/s", MI, 1 }, { "GiB/s", GI, 1 },           \
    {                                                                                              \
        "TiB/s", TI, 1                                                                             \
    }

static const Suffix bandwidth_suffixes[] = {
    { "bps", 1, 8 },     { "Kbps", KILO, 8 }, { "Mbps", MEGA, 8 }, { "Gbps", GIGA, 8 },
    { "Tbps", TERA, 8 }, BYTE_RATE_SUFFIXES,  { NULL, 0, 0 },
};

/* Usable bytes per nominal bit of a port. */
#define PORT(bits) (bits) * LH_PORT_REACHED_PERCENT, 800

static const Suffix port_suffixes[] = {
    { "bps", PORT(1) },     { "Kbps", PORT(KILO) }, { "Mbps", PORT(MEGA) }, { "Gbps", PORT(GIGA) },
    { "Tbps", PORT(TERA) }, { "Mb/s", PORT(MEGA) }, { "Gb/s", PORT(GIGA) }, { "Tb/s", PORT(TERA) },
    { "M", PORT(MEGA) },    { "G", PORT(GIGA) },    { "T", PORT(TERA) },    BYTE_RATE_SUFFIXES,
    { NULL, 0, 0 },
};

static const Suffix time_suffixes[] = {
    { "ps", 1, 1 },    { "ns", KILO, 1 }, { "us", MEGA, 1 },
    { "ms", GIGA, 1 }, { "s", TERA, 1 },  { NULL, 0, 0 },
};

static const Suffix flops_suffixes[] = {
    { "FLOP/s", 1, 1 },     { "GFLOP/s", GIGA, 1 }, { "TFLOP/s", TERA, 1 },
    { "PFLOP/s", PETA, 1 }, { "FLOPS", 1, 1 },      { "GFLOPS", GIGA, 1 },
    { "TFLOPS", TERA, 1 },  { "PFLOPS", PETA, 1 },  { NULL, 0, 0 },
};

typedef struct {
    const char *expected; /* for messages: "... is not <expected>" */
    const char *allowed;  /* the suffixes, spelt out */
    const Suffix *suffixes;
    bool digits_only; /* no decimal fraction */
} UnitInfo;

static const UnitInfo unit_infos[] = {
    [LH_UNIT_COUNT] = { "a count such as 4096, 512K or 1M",
                        "digits, then nothing, K, M or G (1024-based; k, m and g are the same)",
                        count_suffixes, true },
    [LH_UNIT_BYTES] = { "a size such as 64MiB, 80GB or 512K",
                        "a number, then nothing, B, KiB, MiB, GiB, TiB, kB, MB, GB, TB, "
                        "or K, M, G, T (1024-based; k, m, g and t are the same)",
                        bytes_suffixes, false },
    [LH_UNIT_BANDWIDTH] = { "a bandwidth such as 100Gbps, 300GB/s or 12.5GiB/s",
                            "a number, then bps, Kbps, Mbps, Gbps, Tbps (bits), B/s, kB/s, MB/s, "
                            "GB/s, TB/s, KiB/s, MiB/s, GiB/s or TiB/s",
                            bandwidth_suffixes, false },
    [LH_UNIT_PORT] = { "a rate such as 400G, 400Gb/s or 48GB/s",
                       "a number, then M, G, T, bps, Kbps, Mbps, Gbps, Tbps, Mb/s, Gb/s, Tb/s "
                       "(bits), B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s or TiB/s",
                       port_suffixes, false },
    [LH_UNIT_TIME] = { "a time such as 2us, 1.5ms or 300ns", "a number, then ps, ns, us, ms or s",
                       time_suffixes, false },
    [LH_UNIT_FLOPS] = { "a speed such as 312TFLOP/s or 19.5TFLOPS",
                        "a number, then FLOP/s, GFLOP/s, TFLOP/s, PFLOP/s, FLOPS, GFLOPS, TFLOPS "
                        "or PFLOPS",
                        flops_suffixes, false },
};

static const UnitInfo *
unit_info(LhUnit unit)
{
    g_assert((gsize)unit < G_N_ELEMENTS(unit_infos));
    return &unit_infos[unit];
}

const char *
lh_unit_expected(LhUnit unit)
{
    return unit_info(unit)->expected;
}

static bool
fail_number(const char *text, const char *reason, const UnitInfo *info, GError **error)
{
    g_autofree char *shown = g_strndup(text, 40);
    g_autofree char *valid = g_utf8_make_valid(shown, -1);
    g_autofree char *escaped = g_strescape(valid, NULL);

    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "\"%s%s\" is not %s: %s; allowed: %s", escaped,
                strlen(text) > 40 ? "..." : "", info->expected, reason, info->allowed);
    return false;
}

/* digits / 10^decimals, both exact. */
typedef struct {
    uint64_t digits;
    unsigned decimals;
} Decimal;

static bool
append_decimal(Decimal *number, char digit)
{
    return g_uint64_checked_mul(&number->digits, number->digits, 10) &&
           g_uint64_checked_add(&number->digits, number->digits, (guint64)(digit - '0'));
}

/*
 * Reads digits with an optional fraction; returns the end, or NULL with a reason. Trailing zeros of
 * a fraction are dropped, so that they cannot overflow.
 */
static const char *
scan_decimal(const char *text, bool digits_only, Decimal *number, const char **reason)
{
    const char *p = text;
    const char *end;

    *number = (Decimal){ 0 };
    *reason = "it does not start with a digit";
    if (!g_ascii_isdigit(*p))
        return NULL;
    *reason = "it has too many digits";
    for (; g_ascii_isdigit(*p); p++) {
        if (!append_decimal(number, *p))
            return NULL;
    }
    if (*p != '.')
        return p;

    *reason = digits_only ? "it has a decimal point" : "a digit must follow the decimal point";
    if (digits_only || !g_ascii_isdigit(p[1]))
        return NULL;
    *reason = "it has too many digits";
    for (end = ++p; g_ascii_isdigit(*end); end++)
        continue;
    for (const char *last = end; p < last; p++) {
        while (last > p && last[-1] == '0')
            last--;
        if (p == last)
            break;
        if (number->decimals == 19 || !append_decimal(number, *p))
            return NULL;
        number->decimals++;
    }
    return end;
}

static LhWide
wide_power_of_ten(unsigned exponent)
{
    LhWide value = 1;

    while (exponent-- > 0)
        value *= 10;
    return value;
}

static const Suffix *
find_suffix(const Suffix *suffixes, const char *text)
{
    for (const Suffix *s = suffixes; s->text != NULL; s++) {
        if (strcmp(s->text, text) == 0)
            return s;
    }
    return NULL;
}

/* Stores top / bottom in the unit's type; returns NULL, or the reason for failure. */
static const char *
store(LhWide top, LhWide bottom, LhUnit unit, void *value)
{
    if (unit == LH_UNIT_BANDWIDTH || unit == LH_UNIT_PORT || unit == LH_UNIT_FLOPS) {
        *(double *)value = (double)top / (double)bottom;
        return NULL;
    }
    if (unit == LH_UNIT_TIME) {
        LhWide time_ps = (top + bottom / 2) / bottom;

        /* LH_TIME_NEVER itself is not a duration. */
        if (time_ps >= LH_TIME_NEVER)
            return "it is too large";
        *(LhTime *)value = (LhTime)time_ps;
        return NULL;
    }
    if (top % bottom != 0)
        return "it is not a whole number";
    if (top / bottom > UINT64_MAX)
        return "it is too large";
    *(uint64_t *)value = (uint64_t)(top / bottom);
    return NULL;
}

bool
lh_unit_parse(const char *text, LhUnit unit, void *value, GError **error)
{
    const UnitInfo *info = unit_info(unit);
    const char *reason = NULL;
    const char *rest;
    const Suffix *suffix;
    Decimal number;

    rest = scan_decimal(text, info->digits_only, &number, &reason);
    if (rest == NULL)
        return fail_number(text, reason, info, error);
    if (*rest == ' ' && rest[1] != '\0')
        rest++;
    suffix = find_suffix(info->suffixes, rest);
    if (suffix == NULL)
        return fail_number(text, *rest == '\0' ? "it has no unit" : "its unit is unknown", info,
                           error);

    /* 64 bits of digits times at most 2^50 fit; 10^19 times 800 does too. */
    reason = store((LhWide)number.digits * suffix->numerator,
                   wide_power_of_ten(number.decimals) * suffix->denominator, unit, value);
    if (reason != NULL)
        return fail_number(text, reason, info, error);
    return true;
}

char *
lh_unit_pattern(LhUnit unit)
{
    const UnitInfo *info = unit_info(unit);
    GString *pattern = g_string_new(info->digits_only ? "^[0-9]+" : "^[0-9]+(\\.[0-9]+)?");
    bool bare = false;
    const char *separator = "( ?(";

    for (const Suffix *s = info->suffixes; s->text != NULL; s++) {
        if (*s->text == '\0') {
            bare = true;
            continue;
        }
        g_string_append_printf(pattern, "%s%s", separator, s->text);
        separator = "|";
    }
    g_string_append(pattern, bare ? "))?$" : "))$");
    return g_string_free(pattern, FALSE);
}

/* Four significant digits without a trailing fraction of zeros; value in [0, 10000). */
static void
write_rounded(double value, char *buffer)
{
    const char *format = value < 9.9995 ? "%.3f" : value < 99.995 ? "%.2f" : "%.1f";
    char *end;

    if (value >= 999.95)
        format = "%.0f";
    g_ascii_formatd(buffer, G_ASCII_DTOSTR_BUF_SIZE, format, value);
    if (strchr(buffer, '.') == NULL)
        return;
    end = buffer + strlen(buffer);
    while (end[-1] == '0')
        *--end = '\0';
    if (end[-1] == '.')
        end[-1] = '\0';
}

/*
 * Divides by `step` until the rounded value is below it or the names run out. A value too large for
 * the largest name keeps all its digits.
 */
static char *
format_scaled(double value, double step, const char *const *names)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];

    g_assert(isfinite(value) && value >= 0);
    while (names[1] != NULL && value >= (step > 1000 ? step - 0.5 : 999.95)) {
        value /= step;
        names++;
    }
    if (value < 10000)
        write_rounded(value, buffer);
    else
        g_ascii_formatd(buffer, sizeof(buffer), value < 1e15 ? "%.0f" : "%.4g", value);
    return g_strdup_printf("%s %s", buffer, names[0]);
}

char *
lh_format_bytes(uint64_t bytes)
{
    static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", NULL };

    return format_scaled((double)bytes, 1024, names);
}

char *
lh_format_bandwidth(double bytes_per_s)
{
    static const char *const names[] = { "B/s", "kB/s", "MB/s", "GB/s", "TB/s", NULL };

    return format_scaled(bytes_per_s, 1000, names);
}

char *
lh_format_flops(double flops_per_s)
{
    static const char *const names[] = { "GFLOP/s", "TFLOP/s", "PFLOP/s", NULL };

    /* There is no unit between FLOP/s and GFLOP/s; the speed of a slow machine is printed
     * exactly. */
    if (flops_per_s < 1e9) {
        static const char *const plain[] = { "FLOP/s", NULL };

        return format_scaled(flops_per_s, 1000, plain);
    }
    return format_scaled(flops_per_s / 1e9, 1000, names);
}

char *
lh_format_time(LhTime time_ps)
{
    static const char *const names[] = { "ps", "ns", "us", "ms", "s", NULL };
    g_autofree char *positive = NULL;

    if (time_ps == LH_TIME_NEVER)
        return g_strdup("never");
    if (time_ps >= 0)
        return format_scaled((double)time_ps, 1000, names);
    positive = format_scaled(-(double)time_ps, 1000, names);
    return g_strdup_printf("-%s", positive);
}

char *
lh_unit_text_fine(LhUnit unit, double value)
{
    const bool tera = unit == LH_UNIT_FLOPS && value >= 1e12;
    const double scale = unit == LH_UNIT_TIME ? (double)LH_PS_PER_US : tera ? 1e12 : 1e9;
    const char *name = unit == LH_UNIT_TIME    ? "us"
                       : unit != LH_UNIT_FLOPS ? "GB/s"
                       : tera                  ? "TFLOP/s"
                                               : "GFLOP/s";
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    g_ascii_formatd(number, sizeof(number), "%.6f", value / scale);
    return g_strconcat(number, name, NULL);
}

char *
lh_format_count(LhWide count)
{
    char digits[LH_WIDE_TEXT_SIZE];
    GString *text = g_string_new(NULL);
    const int length = (int)strlen(lh_wide_text(count, digits));

    g_assert(count >= 0);
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            g_string_append_c(text, ',');
        g_string_append_c(text, digits[i]);
    }
    return g_string_free(text, FALSE);
}

char *
lh_double_to_text(double value, char *buffer)
{
    /* Up to 15 digits survive text -> double -> text, so %.15g finds any shorter form; only below
     * the normal range do fewer digits carry the same double. */
    int digits = fabs(value) < DBL_MIN ? 1 : 15;

    g_assert(isfinite(value));
    for (; digits <= 17; digits++) {
        char format[8];

        g_snprintf(format, sizeof(format), "%%.%dg", digits);
        g_ascii_formatd(buffer, G_ASCII_DTOSTR_BUF_SIZE, format, value);
        if (g_ascii_strtod(buffer, NULL) == value)
            return buffer;
    }
    g_assert_not_reached();
}
