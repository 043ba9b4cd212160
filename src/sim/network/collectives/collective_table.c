/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/collectives/collective_table.h"

#include "sim/network/link_bound.h"

#define SIZES_MAX 256
#define RANKS_MAX 4096
#define US_MAX 1e9
#define BYTES_MAX 1e15

const char *const lh_times_op_names[] = {
    [LH_COLL_ALL_GATHER] = "all-gather",
    [LH_COLL_REDUCE_SCATTER] = "reduce-scatter",
    [LH_COLL_ALL_REDUCE] = "all-reduce",
    [LH_COLL_ALL_TO_ALL] = "all-to-all",
    [LH_COLL_BROADCAST] = "broadcast",
    [LH_TIMES_OF_SENDS] = "sendrecv",
    NULL,
};

#define MEASURED_ON(owner)                                                                         \
    {                                                                                              \
        .name = "measured_on", .type = LH_FIELD_OBJECT, .offset = offsetof(owner, on),             \
        .fields = lh_measured_on_fields,                                                           \
        .description = "Links that this row was measured on; those of the node's "                 \
                       "\"measured_on\" if absent."                                                \
    }

#define OP(owner, names, text)                                                                     \
    {                                                                                              \
        .name = "op", .type = LH_FIELD_CHOICE, .offset = offsetof(owner, op),                      \
        .flags = LH_FIELD_REQUIRED, .choices = (names), .description = (text)                      \
    }
#define EVIDENCE(owner)                                                                            \
    LH_FIELDS_EVIDENCE(owner, from, LH_FIELD_REQUIRED, LH_TOPOLOGY_TEXT_MAX, "the times",          \
                       "the numbers come")

const LhField lh_collective_times_fields[] = {
    OP(LhCollectiveTimes, lh_times_op_names,
       "The collective; or sendrecv: each GPU sends to the next, all at once."),
    { .name = "ranks",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhCollectiveTimes, ranks),
      .flags = LH_FIELD_REQUIRED,
      .min = 2,
      .max = RANKS_MAX,
      .description = "Number of GPUs of the group, at most those of a node." },
    { .name = "nccl",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhCollectiveTimes, nccl),
      .min = 1,
      .max = LH_TOPOLOGY_TEXT_MAX,
      .description = "Versions of NCCL that were measured, newest last, separated by \", \"." },
    { .name = "bytes",
      .type = LH_FIELD_UINTS,
      .offset = offsetof(LhCollectiveTimes, bytes),
      .flags = LH_FIELD_REQUIRED,
      .min = LH_COLLECTIVE_SIZES_MIN,
      .max = SIZES_MAX,
      .description = "Sizes as nccl-tests prints them, ascending." },
    { .name = "us",
      .type = LH_FIELD_DOUBLES,
      .offset = offsetof(LhCollectiveTimes, us),
      .flags = LH_FIELD_REQUIRED,
      .min = LH_COLLECTIVE_SIZES_MIN,
      .max = SIZES_MAX,
      .description = "Microseconds at these sizes." },
    { .name = "algorithm",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhCollectiveTimes, algorithm),
      .choices = lh_link_algorithm_names,
      .description = "Algorithm that carried the bytes. Default: pairs for an all-to-all, else "
                     "rings, but NVLS for an all-reduce that was faster than rings can be." },
    MEASURED_ON(LhCollectiveTimes),
    EVIDENCE(LhCollectiveTimes),
    { .name = NULL },
};

#define LINE_TIME(key, member, text)                                                               \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_UNIT, .unit = LH_UNIT_TIME,                                \
        .offset = offsetof(LhCollectiveLine, member), .flags = LH_FIELD_REQUIRED, .min = 0,        \
        .max = LH_LATENCY_MAX_S, .description = (text)                                             \
    }
#define LINE_RATE(key, text)                                                                       \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_UNIT, .unit = LH_UNIT_BANDWIDTH,                            \
        .offset = offsetof(LhCollectiveLine, key), .min = LH_BANDWIDTH_MIN,                        \
        .max = LH_BANDWIDTH_MAX, .description = (text)                                             \
    }

static const LhField line_fields[] = {
    LINE_TIME("base", base_ps, "Time of a collective without bytes and hops."),
    LINE_TIME("hop", hop_ps, "Time per hop: n - 1 hops, all-reduce twice that, all-to-all log2 n."),
    LINE_RATE(bandwidth, "Bandwidth of the bytes that a rank sends; no such term if absent."),
    LINE_RATE(copy,
              "Bandwidth at which 1 / (n - 1) of these bytes is copied; no such term if absent."),
    { .name = NULL },
};

#define LINE(key, text)                                                                            \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_OBJECT, .offset = offsetof(LhCollectiveLines, key),         \
        .flags = LH_FIELD_REQUIRED, .fields = line_fields, .description = (text)                   \
    }
#define LIMIT(key, text)                                                                           \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_UINT, .offset = offsetof(LhCollectiveLines, key),           \
        .flags = LH_FIELD_REQUIRED, .min = 0, .max = BYTES_MAX, .description = (text)              \
    }

const LhField lh_collective_lines_fields[] = {
    OP(LhCollectiveLines, lh_collective_names, "The collective."),
    LINE(ll, "Times of short messages."),
    LINE(ll128, "Times of medium messages."),
    LINE(simple, "Times of long messages."),
    LIMIT(ll_bytes, "Limit of short messages, in bytes that a rank sends."),
    LIMIT(ll128_bytes, "Limit of medium messages, in bytes that a rank sends."),
    MEASURED_ON(LhCollectiveLines),
    EVIDENCE(LhCollectiveLines),
    { .name = NULL },
};

static bool
check_sizes(const LhJson *json, const char *at, const LhCollectiveTimes *row, GError **error)
{
    const guint last = row->us->len - 1;

    for (guint i = 0; i < row->bytes->len; i++) {
        g_autofree char *path = g_strdup_printf("%s.bytes[%u]", at, i);
        const uint64_t least = i == 0 ? 1 : lh_times_bytes_at(row, i - 1) + 1;

        if (lh_times_bytes_at(row, i) < least || (double)lh_times_bytes_at(row, i) > BYTES_MAX)
            return lh_json_error(json, path, error,
                                 "\"%s\" is %" G_GUINT64_FORMAT "; allowed: %" G_GUINT64_FORMAT
                                 " to %.0f, since sizes must ascend",
                                 path, lh_times_bytes_at(row, i), least, BYTES_MAX);
    }
    for (guint i = 0; i < row->us->len; i++) {
        g_autofree char *path = g_strdup_printf("%s.us[%u]", at, i);

        if (!(lh_times_us_at(row, i) > 0 && lh_times_us_at(row, i) <= US_MAX))
            return lh_json_error(json, path, error,
                                 "\"%s\" is %g; allowed: more than 0, up to %g microseconds", path,
                                 lh_times_us_at(row, i), US_MAX);
    }
    if (lh_times_us_at(row, last) > lh_times_us_at(row, last - 1))
        return true;
    return lh_json_error(json, at, error,
                         "\"%s\": the time of the last size, %g us, does not exceed the %g us of "
                         "the one before: larger sizes could not be extrapolated",
                         at, lh_times_us_at(row, last), lh_times_us_at(row, last - 1));
}

bool
lh_collective_times_has_version(const LhCollectiveTimes *row, const char *version)
{
    g_auto(GStrv) versions = row->nccl == NULL ? NULL : g_strsplit(row->nccl, ", ", -1);

    return versions != NULL && g_strv_contains((const char *const *)versions, version);
}

/* Whether both rows state the same operation, with no different versions. */
static bool
is_same(const LhCollectiveTimes *a, const LhCollectiveTimes *b)
{
    g_auto(GStrv) versions = a->nccl == NULL ? NULL : g_strsplit(a->nccl, ", ", -1);

    if (a->op != b->op || a->ranks != b->ranks)
        return false;
    for (char **version = versions; version != NULL && *version != NULL; version++) {
        if (lh_collective_times_has_version(b, *version))
            return true;
    }
    return a->nccl == NULL || b->nccl == NULL;
}

static bool
check_times(const LhJson *json, const char *at, const GArray *times, guint index, uint64_t gpus,
            GError **error)
{
    const LhCollectiveTimes *row = lh_collective_times_at(times, index);

    if (row->ranks > gpus) {
        g_autofree char *path = g_strconcat(at, ".ranks", NULL);

        return lh_json_error(json, path, error,
                             "\"%s\" is %" G_GUINT64_FORMAT "; allowed: 2 to %" G_GUINT64_FORMAT
                             ", the GPUs of a node",
                             path, row->ranks, gpus);
    }
    if (row->bytes->len != row->us->len)
        return lh_json_error(json, at, error,
                             "\"%s\" has %u sizes (\"bytes\") and %u times (\"us\"); allowed: the "
                             "same number of both",
                             at, row->bytes->len, row->us->len);
    for (guint i = 0; i < index; i++) {
        if (is_same(lh_collective_times_at(times, i), row))
            return lh_json_error(json, at, error,
                                 "\"%s\": %s on %" G_GUINT64_FORMAT
                                 " GPUs occurs twice, without different versions in \"nccl\"",
                                 at, lh_times_op_names[row->op], row->ranks);
    }
    return check_sizes(json, at, row, error);
}

/* Whether the algorithm is possible for @op. */
static bool
can_carry(LhLinkAlgorithm algorithm, int op, bool has_switch)
{
    switch (algorithm) {
    case LH_ALGORITHM_RING:
        return op != LH_COLL_ALL_TO_ALL;
    case LH_ALGORITHM_NVLS:
        return op == LH_COLL_ALL_REDUCE && has_switch;
    case LH_ALGORITHM_PAIRS:
        return op != LH_COLL_BROADCAST && op != LH_TIMES_OF_SENDS;
    default:
        return true;
    }
}

static bool
check_algorithm(const LhJson *json, const char *at, const LhCollectiveTimes *row, bool has_switch,
                GError **error)
{
    g_autofree char *path = g_strconcat(at, ".algorithm", NULL);
    g_autoptr(GString) allowed = g_string_new(NULL);

    if (can_carry((LhLinkAlgorithm)row->algorithm, row->op, has_switch))
        return true;
    for (unsigned i = 0; lh_link_algorithm_names[i] != NULL; i++) {
        if (can_carry((LhLinkAlgorithm)i, row->op, has_switch))
            g_string_append_printf(allowed, "%s%s", i == 0 ? "" : ", ", lh_link_algorithm_names[i]);
    }
    return lh_json_error(json, path, error, "\"%s\" is \"%s\"; allowed for %s%s: %s", path,
                         lh_link_algorithm_names[row->algorithm], lh_times_op_names[row->op],
                         row->op == LH_COLL_ALL_REDUCE ? " without an NVSwitch" : "", allowed->str);
}

bool
lh_collective_times_check(const LhJson *json, const char *path, const GArray *times, uint64_t gpus,
                          bool has_switch, GError **error)
{
    for (guint i = 0; times != NULL && i < times->len; i++) {
        g_autofree char *at = g_strdup_printf("%s[%u]", path, i);

        if (!check_times(json, at, times, i, gpus, error) ||
            !check_algorithm(json, at, lh_collective_times_at(times, i), has_switch, error))
            return false;
    }
    return true;
}

bool
lh_collective_lines_check(const LhJson *json, const char *path, const GArray *lines, GError **error)
{
    for (guint i = 0; lines != NULL && i < lines->len; i++) {
        const LhCollectiveLines *row = &g_array_index(lines, LhCollectiveLines, i);
        g_autofree char *at = g_strdup_printf("%s[%u]", path, i);

        if (row->ll_bytes > row->ll128_bytes)
            return lh_json_error(json, at, error,
                                 "\"%s\": \"ll_bytes\", %" G_GUINT64_FORMAT
                                 ", exceeds \"ll128_bytes\", %" G_GUINT64_FORMAT,
                                 at, row->ll_bytes, row->ll128_bytes);
        for (guint j = 0; j < i; j++) {
            if (g_array_index(lines, LhCollectiveLines, j).op == row->op)
                return lh_json_error(json, at, error, "\"%s\": %s occurs twice", at,
                                     lh_collective_names[row->op]);
        }
    }
    return true;
}
