/*
 * See the header. A protocol's time is a straight line in bytes, as Hockney has it (Parallel
 * Computing 20, 1994): its latency and its rate. Between two sizes NCCL has one protocol, and the
 * time lies on the line that joins them, or changes from one to another, and then those of the
 * pieces beside meet in between. Which it is cannot be told, and so the time is between the two.
 * Between two numbers of ranks it is a straight line in the ranks, at equal bytes of a rank. Left
 * out: other traffic on the links of the node.
 */
#include "sim/network/collective_table.h"

#include "sim/device.h"

#include <math.h>

#define SIZES_MIN 2
#define SIZES_MAX 256
#define RANKS_MAX 4096
#define US_MAX 1e9
#define BYTES_MAX 1e15
/* Of the way from the line that joins two sizes to where those beside meet. */
#define BEND (2.0 / 3)

#define OP(owner)                                                                                  \
    {                                                                                              \
        .name = "op", .type = LH_FIELD_CHOICE, .offset = offsetof(owner, op),                      \
        .flags = LH_FIELD_REQUIRED, .choices = lh_collective_names,                                \
        .description = "The collective."                                                           \
    }
#define TRUST(owner)                                                                               \
    { .name = "provenance",                                                                        \
      .type = LH_FIELD_CHOICE,                                                                     \
      .offset = offsetof(owner, provenance),                                                       \
      .flags = LH_FIELD_REQUIRED,                                                                  \
      .choices = lh_provenance_names,                                                              \
      .description = "How far the times can be trusted." },                                        \
    {                                                                                              \
        .name = "source", .type = LH_FIELD_STRING, .offset = offsetof(owner, source),              \
        .flags = LH_FIELD_REQUIRED, .min = 1, .max = LH_TOPOLOGY_TEXT_MAX,                         \
        .description = "Where the numbers come from."                                              \
    }

const LhField lh_collective_times_fields[] = {
    OP(LhCollectiveTimes),
    { .name = "ranks",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhCollectiveTimes, ranks),
      .flags = LH_FIELD_REQUIRED,
      .min = 2,
      .max = RANKS_MAX,
      .description = "GPUs that took part, at most those of a node." },
    { .name = "nccl",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhCollectiveTimes, nccl),
      .min = 1,
      .max = LH_TOPOLOGY_TEXT_MAX,
      .description = "The versions of NCCL that were measured, newest last, \", \" between them." },
    { .name = "bytes",
      .type = LH_FIELD_UINTS,
      .offset = offsetof(LhCollectiveTimes, bytes),
      .flags = LH_FIELD_REQUIRED,
      .min = SIZES_MIN,
      .max = SIZES_MAX,
      .description = "Sizes as nccl-tests prints them, rising." },
    { .name = "us",
      .type = LH_FIELD_DOUBLES,
      .offset = offsetof(LhCollectiveTimes, us),
      .flags = LH_FIELD_REQUIRED,
      .min = SIZES_MIN,
      .max = SIZES_MAX,
      .description = "Microseconds at these sizes." },
    TRUST(LhCollectiveTimes),
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
    LINE_TIME("base", base_ps, "Time of a collective of no bytes and no hops."),
    LINE_TIME("hop", hop_ps,
              "What each hop adds: n - 1 of them, all-reduce twice that, all-to-all log2 n."),
    LINE_RATE(bandwidth, "What the bytes that a rank sends are sent at; no such part if absent."),
    LINE_RATE(copy, "What 1 / (n - 1) of them are copied at; no such part if absent."),
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
    OP(LhCollectiveLines),
    LINE(ll, "Of short messages."),
    LINE(ll128, "Of middle ones."),
    LINE(simple, "Of long ones."),
    LIMIT(ll_bytes, "Bytes that a rank sends up to which messages are short."),
    LIMIT(ll128_bytes, "Bytes that a rank sends up to which they are middle ones."),
    TRUST(LhCollectiveLines),
    { .name = NULL },
};

/* ---- rules ---- */

static const LhCollectiveTimes *
times_at(const GArray *times, guint index)
{
    return &g_array_index(times, LhCollectiveTimes, index);
}

static uint64_t
bytes_at(const LhCollectiveTimes *row, guint index)
{
    return g_array_index(row->bytes, uint64_t, index);
}

static double
us_at(const LhCollectiveTimes *row, guint index)
{
    return g_array_index(row->us, double, index);
}

static bool
check_sizes(const LhJson *json, const char *at, const LhCollectiveTimes *row, GError **error)
{
    const guint last = row->us->len - 1;

    for (guint i = 0; i < row->bytes->len; i++) {
        g_autofree char *path = g_strdup_printf("%s.bytes[%u]", at, i);
        const uint64_t least = i == 0 ? 1 : bytes_at(row, i - 1) + 1;

        if (bytes_at(row, i) < least || (double)bytes_at(row, i) > BYTES_MAX)
            return lh_json_error(json, path, error,
                                 "\"%s\" is %" G_GUINT64_FORMAT "; allowed: %" G_GUINT64_FORMAT
                                 " to %.0f, since sizes rise",
                                 path, bytes_at(row, i), least, BYTES_MAX);
    }
    for (guint i = 0; i < row->us->len; i++) {
        g_autofree char *path = g_strdup_printf("%s.us[%u]", at, i);

        if (!(us_at(row, i) > 0 && us_at(row, i) <= US_MAX))
            return lh_json_error(json, path, error,
                                 "\"%s\" is %g; allowed: more than 0, up to %g microseconds", path,
                                 us_at(row, i), US_MAX);
    }
    if (us_at(row, last) > us_at(row, last - 1))
        return true;
    return lh_json_error(
        json, at, error,
        "\"%s\": the time of the last size, %g us, is not above %g us, that of the "
        "one before: larger ones could not be told",
        at, us_at(row, last), us_at(row, last - 1));
}

static bool
has_version(const LhCollectiveTimes *row, const char *version)
{
    g_auto(GStrv) versions = row->nccl == NULL ? NULL : g_strsplit(row->nccl, ", ", -1);

    return versions != NULL && g_strv_contains((const char *const *)versions, version);
}

/* Whether both rows tell the same: of one operation, and not of different versions. */
static bool
is_same(const LhCollectiveTimes *a, const LhCollectiveTimes *b)
{
    g_auto(GStrv) versions = a->nccl == NULL ? NULL : g_strsplit(a->nccl, ", ", -1);

    if (a->op != b->op || a->ranks != b->ranks)
        return false;
    for (char **version = versions; version != NULL && *version != NULL; version++) {
        if (has_version(b, *version))
            return true;
    }
    return a->nccl == NULL || b->nccl == NULL;
}

static bool
check_times(const LhJson *json, const char *at, const GArray *times, guint index, uint64_t gpus,
            GError **error)
{
    const LhCollectiveTimes *row = times_at(times, index);

    if (row->ranks > gpus) {
        g_autofree char *path = g_strconcat(at, ".ranks", NULL);

        return lh_json_error(json, path, error,
                             "\"%s\" is %" G_GUINT64_FORMAT "; allowed: 2 to %" G_GUINT64_FORMAT
                             ", the GPUs of a node",
                             path, row->ranks, gpus);
    }
    if (row->bytes->len != row->us->len)
        return lh_json_error(json, at, error,
                             "\"%s\" has %u sizes (\"bytes\") and %u times (\"us\"); allowed: as "
                             "many",
                             at, row->bytes->len, row->us->len);
    for (guint i = 0; i < index; i++) {
        if (is_same(times_at(times, i), row))
            return lh_json_error(json, at, error,
                                 "\"%s\": %s on %" G_GUINT64_FORMAT
                                 " GPUs is there twice, without different versions in \"nccl\"",
                                 at, lh_collective_names[row->op], row->ranks);
    }
    return check_sizes(json, at, row, error);
}

bool
lh_collective_times_check(const LhJson *json, const char *path, const GArray *times, uint64_t gpus,
                          GError **error)
{
    for (guint i = 0; times != NULL && i < times->len; i++) {
        g_autofree char *at = g_strdup_printf("%s[%u]", path, i);

        if (!check_times(json, at, times, i, gpus, error))
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
                                 ", is above \"ll128_bytes\", %" G_GUINT64_FORMAT,
                                 at, row->ll_bytes, row->ll128_bytes);
        for (guint j = 0; j < i; j++) {
            if (g_array_index(lines, LhCollectiveLines, j).op == row->op)
                return lh_json_error(json, at, error, "\"%s\": %s is there twice", at,
                                     lh_collective_names[row->op]);
        }
    }
    return true;
}

/* ---- times ---- */

/* Whether printed bytes are of one rank, and not of all. */
static bool
is_per_rank(LhCollectiveKind kind)
{
    return kind == LH_COLL_ALL_TO_ALL || kind == LH_COLL_BROADCAST;
}

void
lh_collective_times_write(LhJsonWriter *w, const LhCollectiveTimes *row)
{
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "op", lh_collective_names[row->op]);
    lh_jsonw_uint(w, "ranks", row->ranks);
    if (row->nccl != NULL)
        lh_jsonw_string(w, "nccl", row->nccl);
    lh_jsonw_array_begin(w, "bytes");
    for (guint i = 0; i < row->bytes->len; i++)
        lh_jsonw_uint(w, NULL, g_array_index(row->bytes, uint64_t, i));
    lh_jsonw_array_end(w);
    lh_jsonw_array_begin(w, "us");
    for (guint i = 0; i < row->us->len; i++)
        lh_jsonw_double(w, NULL, g_array_index(row->us, double, i));
    lh_jsonw_array_end(w);
    lh_jsonw_string(w, "provenance", lh_provenance_names[row->provenance]);
    lh_jsonw_string(w, "source", row->source);
    lh_jsonw_object_end(w);
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
    const double low = (double)bytes_at(row, from), high = (double)bytes_at(row, from + 1);
    const double share = (bytes - low) / (high - low);

    return (1 - share) * us_at(row, from) + share * us_at(row, from + 1);
}

/* Between the sizes @from and @from + 1 of the row. */
static double
bent_us(const LhCollectiveTimes *row, guint from, double bytes)
{
    const double low = fmin(us_at(row, from), us_at(row, from + 1));
    const double high = fmax(us_at(row, from), us_at(row, from + 1));
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

static double
seconds_of_row(const LhCollectiveTimes *row, double bytes)
{
    const guint last = row->bytes->len - 1;
    guint from = 0;

    if (bytes <= (double)bytes_at(row, 0))
        return us_at(row, 0) / G_USEC_PER_SEC;
    if (bytes >= (double)bytes_at(row, last))
        return line_us(row, last - 1, bytes) / G_USEC_PER_SEC;
    while (bytes > (double)bytes_at(row, from + 1))
        from++;
    return bent_us(row, from, bytes) / G_USEC_PER_SEC;
}

/* The size of equal bytes of a rank on @to GPUs in place of @from. A vector that is reduced
 * everywhere is every rank's. */
static double
same_of_a_rank(LhCollectiveKind kind, double bytes, uint64_t from, uint64_t to)
{
    if (kind == LH_COLL_ALL_REDUCE || is_per_rank(kind))
        return bytes;
    return bytes * (double)to / (double)from;
}

/* The rows of the two numbers of ranks next to @ranks, which may be one; of several versions the
 * first. */
static bool
find_rows(const GArray *times, LhCollectiveKind kind, uint64_t ranks,
          const LhCollectiveTimes **fewer, const LhCollectiveTimes **more)
{
    *fewer = *more = NULL;
    for (guint i = 0; times != NULL && i < times->len; i++) {
        const LhCollectiveTimes *row = times_at(times, i);

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

        if (!has_version(row, version))
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

bool
lh_collective_times_seconds(const GArray *times, LhCollectiveKind kind, uint64_t ranks,
                            double bytes, double *seconds, int *provenance)
{
    const LhCollectiveTimes *fewer, *more;
    double low, high, share;

    if (!find_rows(times, kind, ranks, &fewer, &more))
        return false;
    low = seconds_of_row(fewer, same_of_a_rank(kind, bytes, ranks, fewer->ranks));
    high = seconds_of_row(more, same_of_a_rank(kind, bytes, ranks, more->ranks));
    share =
        fewer == more ? 0 : (double)(ranks - fewer->ranks) / (double)(more->ranks - fewer->ranks);
    *seconds = (1 - share) * low + share * high;
    *provenance = MAX(fewer->provenance, more->provenance);
    return true;
}

bool
lh_collective_times_leave_out(GArray *times, LhCollectiveKind kind, uint64_t ranks, uint64_t bytes)
{
    const LhCollectiveTimes *row, *same;

    if (!find_rows(times, kind, ranks, &row, &same) || row != same || row->bytes->len <= SIZES_MIN)
        return false;
    for (guint i = 0; i < row->bytes->len; i++) {
        if (bytes_at(row, i) != bytes)
            continue;
        g_array_remove_index(row->bytes, i);
        g_array_remove_index(row->us, i);
        return true;
    }
    return false;
}

/* ---- lines ---- */

static double
line_seconds(const LhCollectiveLine *line, double hops, double sent, double to_one)
{
    double seconds = ((double)line->base_ps + hops * (double)line->hop_ps) / (double)LH_PS_PER_S;

    if (line->bandwidth > 0)
        seconds += sent / line->bandwidth;
    if (line->copy > 0)
        seconds += to_one / line->copy;
    return seconds;
}

bool
lh_collective_lines_seconds(const GArray *lines, LhCollectiveKind kind, uint64_t ranks,
                            double bytes, double *seconds, int *provenance)
{
    const double n = (double)ranks;
    const double rounds = kind == LH_COLL_ALL_REDUCE ? 2 : 1;
    const double hops = kind == LH_COLL_ALL_TO_ALL ? log2(n) : rounds * (n - 1);
    const double sent = kind == LH_COLL_BROADCAST ? bytes : rounds * bytes * (n - 1) / n;

    for (guint i = 0; lines != NULL && i < lines->len && ranks > 1; i++) {
        const LhCollectiveLines *row = &g_array_index(lines, LhCollectiveLines, i);
        const LhCollectiveLine *line = sent <= (double)row->ll_bytes      ? &row->ll
                                       : sent <= (double)row->ll128_bytes ? &row->ll128
                                                                          : &row->simple;

        if (row->op != (int)kind)
            continue;
        *seconds = line_seconds(line, hops, sent, sent / (n - 1));
        *provenance = row->provenance;
        return true;
    }
    return false;
}
