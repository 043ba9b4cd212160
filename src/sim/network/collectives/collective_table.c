/*
 * See the header. A protocol's time is a straight line in bytes, as Hockney has it (Parallel
 * Computing 20, 1994): its latency and its rate. Between two sizes NCCL has one protocol, and the
 * time lies on the line that joins them, or changes from one to another, and then those of the
 * pieces beside meet in between. Which it is cannot be told, and so the time is between the two.
 * Between two numbers of ranks it is a straight line in the ranks, at equal bytes of a rank. On
 * other links than those of the row, a time has parts that change along, and others that do not.
 * Left out: other traffic on the links of the node.
 */
#include "sim/network/collectives/collective_table.h"

#include "sim/cost/provenance.h"
#include "sim/network/link_bound.h"

#include <math.h>

#define SIZES_MIN 2
#define SIZES_MAX 256
#define RANKS_MAX 4096
#define US_MAX 1e9
#define BYTES_MAX 1e15
/* Of the way from the line that joins two sizes to where those beside meet. */
#define BEND (2.0 / 3)

/* Below this size an edit of links is no change of GPU, whose floors differ: what times are off by
 * at least, of the logarithm of what links are slower. */
#define EDITED_BELOW_BYTES (16 << 20)
#define EDITED_ERROR 0.4

const char *const lh_times_op_names[] = {
    [LH_COLL_ALL_GATHER] = "all-gather",
    [LH_COLL_REDUCE_SCATTER] = "reduce-scatter",
    [LH_COLL_ALL_REDUCE] = "all-reduce",
    [LH_COLL_ALL_TO_ALL] = "all-to-all",
    [LH_COLL_BROADCAST] = "broadcast",
    [LH_TIMES_OF_SENDS] = "sendrecv",
    NULL,
};

#define LINK_FIELDS(owner, member)                                                                 \
    { .name = "bandwidth",                                                                         \
      .type = LH_FIELD_UNIT,                                                                       \
      .unit = LH_UNIT_BANDWIDTH,                                                                   \
      .offset = offsetof(owner, member.bandwidth),                                                 \
      .flags = LH_FIELD_REQUIRED,                                                                  \
      .min = LH_BANDWIDTH_MIN,                                                                     \
      .max = LH_BANDWIDTH_MAX,                                                                     \
      .description = "What transfers reached there in each direction." },                          \
    {                                                                                              \
        .name = "latency", .type = LH_FIELD_UNIT, .unit = LH_UNIT_TIME,                            \
        .offset = offsetof(owner, member.latency_ps), .flags = LH_FIELD_REQUIRED, .min = 0,        \
        .max = LH_LATENCY_MAX_S, .description = "The latency of such a link there."                \
    }

static const LhField measured_scale_up_fields[] = {
    LINK_FIELDS(LhMeasuredOn, scale_up),
    { .name = NULL },
};

static const LhField measured_level_fields[] = {
    { .name = "name",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhMeasuredLevel, name),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = LH_TOPOLOGY_TEXT_MAX,
      .description = "A level of \"node.pcie.levels\"." },
    LH_PCIE_RATE("up", LhMeasuredLevel, up,
                 "What a group's link outwards carried there; never the limit if absent."),
    LH_PCIE_LATENCY(LhMeasuredLevel, "Its latency there; 0 if absent."),
    { .name = NULL },
};

static const LhField measured_host_fields[] = {
    LH_PCIE_RATE("per_gpu", LhMeasuredOn, tree.per_gpu,
                 "What each GPU reached there through memory; its own link's rate if absent."),
    LH_PCIE_RATE("bandwidth", LhMeasuredOn, tree.memory,
                 "What all messages reached there through one memory; never the limit if absent."),
    { .name = "gpus",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhMeasuredOn, tree.memory_gpus),
      .min = 1,
      .max = UINT32_MAX,
      .description = "GPUs in a row that had one memory; all of the node if absent." },
    { .name = NULL },
};

static const LhField measured_pcie_fields[] = {
    LINK_FIELDS(LhMeasuredOn, pcie),
    { .name = "levels",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhMeasuredOn, levels),
      .min = 1,
      .max = LH_PCIE_LEVELS_MAX,
      .fields = measured_level_fields,
      .element_size = sizeof(LhMeasuredLevel),
      .description = "The levels that the node has, as they were there." },
    { .name = "p2p",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhMeasuredOn, p2p),
      .min = 1,
      .max = LH_TOPOLOGY_TEXT_MAX,
      .description = "How far GPUs reached each other directly there; \"node\" if absent." },
    { .name = "p2p_two",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhMeasuredOn, tree.p2p_two),
      .description = "Whether communicators of two GPUs did whatever \"p2p\" says; false if "
                     "absent." },
    { .name = "host",
      .type = LH_FIELD_OBJECT,
      .offset = 0,
      .fields = measured_host_fields,
      .description = "The way through memory, as it was there." },
    { .name = NULL },
};

const LhField lh_measured_on_fields[] = {
    { .name = "scale_up",
      .type = LH_FIELD_OBJECT,
      .offset = 0,
      .fields = measured_scale_up_fields,
      .description = "The links between the GPUs of a node." },
    { .name = "pcie",
      .type = LH_FIELD_OBJECT,
      .offset = 0,
      .fields = measured_pcie_fields,
      .description = "The PCIe links of the GPUs." },
    { .name = NULL },
};

#define MEASURED_ON(owner)                                                                         \
    {                                                                                              \
        .name = "measured_on", .type = LH_FIELD_OBJECT, .offset = offsetof(owner, on),             \
        .fields = lh_measured_on_fields,                                                           \
        .description = "The links that this row was measured on; absent: those of the node's "     \
                       "\"measured_on\"."                                                          \
    }

#define OP(owner, names, text)                                                                     \
    {                                                                                              \
        .name = "op", .type = LH_FIELD_CHOICE, .offset = offsetof(owner, op),                      \
        .flags = LH_FIELD_REQUIRED, .choices = (names), .description = (text)                      \
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
    OP(LhCollectiveTimes, lh_times_op_names,
       "The collective; or sendrecv: each GPU sends to the next one, all at once."),
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
    { .name = "algorithm",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhCollectiveTimes, algorithm),
      .choices = lh_link_algorithm_names,
      .description = "What carried the bytes; by default pairs of an all-to-all, else rings, and "
                     "NVLS where an all-reduce went faster than rings could." },
    MEASURED_ON(LhCollectiveTimes),
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
    OP(LhCollectiveLines, lh_collective_names, "The collective."),
    LINE(ll, "Of short messages."),
    LINE(ll128, "Of middle ones."),
    LINE(simple, "Of long ones."),
    LIMIT(ll_bytes, "Bytes that a rank sends up to which messages are short."),
    LIMIT(ll128_bytes, "Bytes that a rank sends up to which they are middle ones."),
    MEASURED_ON(LhCollectiveLines),
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
                                 at, lh_times_op_names[row->op], row->ranks);
    }
    return check_sizes(json, at, row, error);
}

/* Whether it can be what carried @op. */
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
            !check_algorithm(json, at, times_at(times, i), has_switch, error))
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
    return kind == LH_COLL_ALL_TO_ALL || kind == LH_COLL_BROADCAST || kind == LH_TIMES_OF_SENDS;
}

static void
write_level(LhJsonWriter *w, const LhPcieRates *tree, uint32_t level)
{
    g_autofree char *up = lh_format_bandwidth(tree->up[level]);
    g_autofree char *latency = lh_format_time(tree->latency_ps[level]);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "name", tree->names[level]);
    if (tree->up[level] > 0)
        lh_jsonw_string(w, "up", up);
    if (tree->latency_ps[level] > 0)
        lh_jsonw_string(w, "latency", latency);
    lh_jsonw_object_end(w);
}

static void
write_tree(LhJsonWriter *w, const LhPcieRates *tree)
{
    g_autofree char *per_gpu = lh_format_bandwidth(tree->per_gpu);
    g_autofree char *memory = lh_format_bandwidth(tree->memory);
    uint32_t count = 0;

    while (count < LH_PCIE_LEVELS_MAX && tree->names[count] != NULL)
        count++;
    if (count > 0) {
        lh_jsonw_array_begin(w, "levels");
        for (uint32_t i = 0; i < count; i++)
            write_level(w, tree, i);
        lh_jsonw_array_end(w);
    }
    if (tree->reach != LH_PCIE_NODE)
        lh_jsonw_string(w, "p2p", lh_pcie_p2p_word(tree));
    if (tree->p2p_two)
        lh_jsonw_bool(w, "p2p_two", true);
    if (tree->per_gpu == 0 && tree->memory == 0)
        return;
    lh_jsonw_object_begin(w, "host");
    if (tree->per_gpu > 0)
        lh_jsonw_string(w, "per_gpu", per_gpu);
    if (tree->memory > 0)
        lh_jsonw_string(w, "bandwidth", memory);
    if (tree->memory_gpus > 0)
        lh_jsonw_uint(w, "gpus", tree->memory_gpus);
    lh_jsonw_object_end(w);
}

static void
write_link(LhJsonWriter *w, const char *key, const LhMeasuredLink *link, const LhPcieRates *tree)
{
    g_autofree char *bandwidth = lh_format_bandwidth(link->bandwidth);
    g_autofree char *latency = lh_format_time(link->latency_ps);

    if (link->bandwidth == 0)
        return;
    lh_jsonw_object_begin(w, key);
    lh_jsonw_string(w, "bandwidth", bandwidth);
    lh_jsonw_string(w, "latency", latency);
    if (tree != NULL)
        write_tree(w, tree);
    lh_jsonw_object_end(w);
}

static bool
is_same_link(const LhMeasuredLink *a, const LhMeasuredLink *b)
{
    return a->bandwidth == b->bandwidth && a->latency_ps == b->latency_ps;
}

static bool
is_same_tree(const LhPcieRates *a, const LhPcieRates *b)
{
    bool same = a->per_gpu == b->per_gpu && a->memory == b->memory &&
                a->memory_gpus == b->memory_gpus && a->reach == b->reach &&
                a->p2p_two == b->p2p_two;

    for (uint32_t i = 0; i < LH_PCIE_LEVELS_MAX; i++)
        same = same && a->up[i] == b->up[i] && a->latency_ps[i] == b->latency_ps[i];
    return same;
}

static bool
is_said(const LhMeasuredOn *on, const LhMeasuredOn *of_node)
{
    if (on->scale_up.bandwidth == 0 && on->pcie.bandwidth == 0)
        return false;
    return of_node == NULL || !is_same_link(&on->scale_up, &of_node->scale_up) ||
           !is_same_link(&on->pcie, &of_node->pcie) || !is_same_tree(&on->tree, &of_node->tree);
}

void
lh_measured_on_write(LhJsonWriter *w, const LhMeasuredOn *on, const LhMeasuredOn *of_node)
{
    if (!is_said(on, of_node))
        return;
    lh_jsonw_object_begin(w, "measured_on");
    write_link(w, "scale_up", &on->scale_up, NULL);
    write_link(w, "pcie", &on->pcie, &on->tree);
    lh_jsonw_object_end(w);
}

void
lh_collective_times_write(LhJsonWriter *w, const LhCollectiveTimes *row,
                          const LhMeasuredOn *of_node)
{
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "op", lh_times_op_names[row->op]);
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
    if (row->algorithm != LH_ALGORITHM_DEFAULT)
        lh_jsonw_string(w, "algorithm", lh_link_algorithm_names[row->algorithm]);
    lh_measured_on_write(w, &row->on, of_node);
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

double
lh_collective_times_us(const LhCollectiveTimes *row, double bytes)
{
    const guint last = row->bytes->len - 1;
    guint from = 0;

    if (bytes <= (double)bytes_at(row, 0))
        return us_at(row, 0);
    if (bytes >= (double)bytes_at(row, last))
        return line_us(row, last - 1, bytes);
    while (bytes > (double)bytes_at(row, from + 1))
        from++;
    return bent_us(row, from, bytes);
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

double
lh_collective_times_same_of_a_rank(const LhCollectiveTimes *row, double bytes, uint64_t ranks)
{
    return same_of_a_rank((LhCollectiveKind)row->op, bytes, row->ranks, ranks);
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

/* Hops of one time, one behind the other. */
static double
hops_of_time(LhCollectiveKind kind, uint64_t ranks)
{
    const double rounds = kind == LH_COLL_ALL_REDUCE ? 2 : 1;

    return kind == LH_COLL_ALL_TO_ALL ? 1 : rounds * (double)(ranks - 1);
}

/* What a hop adds: the slope of the times of the first sizes between the fewest and the most GPUs.
 * Of all-to-alls all is the floor. */
static double
hop_seconds(const GArray *times, LhCollectiveKind kind)
{
    const LhCollectiveTimes *fewest = NULL, *most = NULL;

    for (guint i = 0; i < times->len; i++) {
        const LhCollectiveTimes *row = times_at(times, i);

        if (row->op != (int)kind)
            continue;
        if (fewest == NULL || row->ranks < fewest->ranks)
            fewest = row;
        if (most == NULL || row->ranks > most->ranks)
            most = row;
    }
    if (fewest == most || kind == LH_COLL_ALL_TO_ALL)
        return 0;
    return fmax(0, (us_at(most, 0) - us_at(fewest, 0)) /
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

/* Seconds from the last size but one to the last one, at what the links allow. */
static double
last_piece_s(const LhCollectiveTimes *row)
{
    const guint last = row->bytes->len - 1;

    return row->bound_s_per_byte * (double)(bytes_at(row, last) - bytes_at(row, last - 1));
}

static double
last_piece_efficiency(const LhCollectiveTimes *row)
{
    const guint last = row->bytes->len - 1;

    return last_piece_s(row) * G_USEC_PER_SEC / (us_at(row, last) - us_at(row, last - 1));
}

double
lh_collective_times_efficiency(const LhCollectiveTimes *row, uint64_t *bytes)
{
    double best = 0;

    for (guint i = 0; i < row->bytes->len; i++) {
        const double efficiency =
            row->bound_s_per_byte * (double)bytes_at(row, i) * G_USEC_PER_SEC / us_at(row, i);

        if (efficiency <= best)
            continue;
        best = efficiency;
        *bytes = bytes_at(row, i);
    }
    return best;
}

double
lh_collective_times_reached(const LhCollectiveTimes *row)
{
    const guint last = row->bytes->len - 1;
    const double least_us = row->bound_s_per_byte * (double)bytes_at(row, last) * G_USEC_PER_SEC;

    return fmin(1, least_us / (us_at(row, last) - fmin(us_at(row, 0), us_at(row, last) / 2)));
}

bool
lh_collective_times_is_faster(const LhCollectiveTimes *row)
{
    return last_piece_efficiency(row) > 1;
}

/* What links took of a time at large sizes: a slope may jump between protocols, a whole may not be
 * faster than links. */
static double
efficiency_of(const LhCollectiveTimes *row)
{
    uint64_t bytes;

    return fmin(1, fmax(last_piece_efficiency(row), lh_collective_times_efficiency(row, &bytes)));
}

/* How long it may take at the end that is asked for, of which the middle is @seconds: @protocols of
 * it may go with links, or not. Never less than links allow. */
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

/* On the links of the row, exactly what it says. @floor_s: what of it no
 * byte takes. */
static double
slowed_seconds(const LhCollectiveTimes *row, double bytes, double hop_s, LhLinkSlowdown slowdown,
               double *floor_s)
{
    const double whole = lh_collective_times_us(row, bytes) / G_USEC_PER_SEC;
    const double floor = fmin(us_at(row, 0) / G_USEC_PER_SEC, whole);
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
    return MAX(rows->fewer->provenance, rows->more->provenance);
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

    if (line == &row->ll) /* the GPU is its limit, and not a link */
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
