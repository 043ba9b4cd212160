/*
 * Finding a cluster; see the header. Every process takes the same decisions from the same numbers,
 * which is what keeps their programs alike.
 */
#include "calibrate/cluster_shape.h"

#include "base/error.h"
#include "base/json/json_writer.h"
#include "measure/fit.h"
#include "program/program.h"
#include "sim/network/collectives/collective.h"

#include <math.h>
#include <string.h>

#define APART_BYTES (32U << 10) /* tells memory from networks, and is still one packet's worth */
#define APART_ROUNDS 5
#define APART_RATIO 1.5 /* between times of two tiers, at least */
#define ROUNDS_MIN 4
#define ROUNDS_MAX 15
#define ROUNDS_S 0.5       /* the rounds of one size, about */
#define LONGEST_S 0.1      /* no larger messages than the first that takes so long */
#define NODES_ALL_MAX 6    /* so many nodes are measured in all pairs */
#define NIC_TOLERANCE 0.15 /* adapters that differ by less are alike */

typedef struct {
    uint64_t bytes;
    bool holdout;
} MessageSize;

static const MessageSize message_sizes[] = {
    { 4 << 10, false },   { 16 << 10, false }, { 64 << 10, false },  { 128 << 10, false },
    { 256 << 10, false }, { 384 << 10, true }, { 512 << 10, false }, { 1 << 20, false },
    { 2 << 20, true },    { 4 << 20, false },  { 16 << 20, false },
};

typedef struct {
    const LhClusterParams *params;
    LhCluster *cluster;
    uint32_t *to; /* [ranks] */
} Search;

static void
tell_progress(const Search *s, const char *what)
{
    if (s->params->progress != NULL)
        s->params->progress(s->params->progress_data, what);
}

/* ---- who shares a host ---- */

/* In round @round every rank meets another one: each pair once in ranks - 1 rounds (ranks even). */
static uint32_t
partner(uint32_t rank, uint32_t round, uint32_t ranks)
{
    const uint32_t others = ranks - 1;

    if (rank == others)
        return (uint32_t)((uint64_t)round * (ranks / 2) % others);
    if ((2 * (uint64_t)rank) % others == round % others)
        return others;
    return (uint32_t)((round + 2 * (uint64_t)others - rank) % others);
}

/* Fills @apart_s[a * ranks + b] with what a message between a and b takes, with its answer. */
static bool
measure_apart(Search *s, double *apart_s, GError **error)
{
    const uint32_t ranks = s->params->ranks, even = ranks + ranks % 2;
    g_autofree double *seconds = g_new(double, ranks);

    tell_progress(s, "which ranks share a host");
    for (uint32_t round = 0; round + 1 < even; round++) {
        const LhClusterFlows flows = { s->to, true, APART_BYTES, APART_ROUNDS };

        for (uint32_t r = 0; r < ranks; r++) {
            const uint32_t peer = partner(r, round, even);

            s->to[r] = peer < ranks && r < peer ? peer : LH_RANKS_MAX;
        }
        if (!s->params->measure(s->params->data, &flows, seconds, error))
            return false;
        for (uint32_t r = 0; r < ranks; r++) {
            if (s->to[r] < LH_RANKS_MAX)
                apart_s[r * ranks + s->to[r]] = apart_s[s->to[r] * ranks + r] = seconds[r];
        }
    }
    return true;
}

/* Whether ranks are nearer than @limit_s exactly if they are of one node. */
static bool
limit_tells(const double *apart_s, const uint32_t *node_of, uint32_t ranks, double limit_s)
{
    for (uint32_t a = 0; a < ranks; a++) {
        for (uint32_t b = a + 1; b < ranks; b++) {
            if ((apart_s[a * ranks + b] < limit_s) != (node_of[a] == node_of[b]))
                return false;
        }
    }
    return true;
}

/* Groups of ranks that are nearer than @limit_s to the first one of them. */
static void
group_by_limit(const double *apart_s, uint32_t ranks, double limit_s, uint32_t *node_of)
{
    uint32_t nodes = 0;

    for (uint32_t a = 0; a < ranks; a++)
        node_of[a] = LH_RANKS_MAX;
    for (uint32_t a = 0; a < ranks; a++) {
        if (node_of[a] < LH_RANKS_MAX)
            continue;
        for (uint32_t b = a; b < ranks; b++) {
            if (node_of[b] == LH_RANKS_MAX && (a == b || apart_s[a * ranks + b] < limit_s))
                node_of[b] = nodes;
        }
        nodes++;
    }
}

static void
group_by_name(const LhClusterParams *p, uint32_t *node_of)
{
    uint32_t nodes = 0;

    for (uint32_t a = 0; a < p->ranks; a++) {
        uint32_t same = 0;

        while (strcmp(p->hosts[same], p->hosts[a]) != 0)
            same++;
        node_of[a] = same < a ? node_of[same] : nodes++;
    }
}

static int
ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The gaps in the times of all pairs that may lie between a host and the network: limits in
 * @limits_s, the widest gap first. Returns their number. */
static size_t
find_limits(const double *apart_s, uint32_t ranks, double *limits_s)
{
    g_autofree double *sorted = g_new(double, (size_t)ranks *ranks);
    g_autofree double *ratios = g_new(double, (size_t)ranks *ranks);
    size_t count = 0, found = 0;

    for (uint32_t a = 0; a < ranks; a++) {
        for (uint32_t b = a + 1; b < ranks; b++)
            sorted[count++] = apart_s[a * ranks + b];
    }
    qsort(sorted, count, sizeof(double), ascending);
    for (size_t i = 1; i < count; i++) {
        const double ratio = sorted[i] / sorted[i - 1];
        size_t at = found;

        if (ratio < APART_RATIO)
            continue;
        for (; at > 0 && ratios[at - 1] < ratio; at--) {
            ratios[at] = ratios[at - 1];
            limits_s[at] = limits_s[at - 1];
        }
        ratios[at] = ratio;
        limits_s[at] = sqrt(sorted[i] * sorted[i - 1]);
        found++;
    }
    return found;
}

/* Nodes of equal size, of ranks in a row; the number of nodes, 0: they are not. */
static uint32_t
count_nodes(const uint32_t *node_of, uint32_t ranks)
{
    const uint32_t nodes = node_of[ranks - 1] + 1;

    if (ranks % nodes != 0)
        return 0;
    for (uint32_t r = 0; r < ranks; r++) {
        if (node_of[r] != r / (ranks / nodes))
            return 0;
    }
    return nodes;
}

static bool
refuse_nodes(const LhClusterParams *p, const uint32_t *node_of, GError **error)
{
    uint32_t r = 1;

    while (r + 1 < p->ranks && node_of[r] <= node_of[r - 1] + 1 && node_of[r] >= node_of[r - 1])
        r++;
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "the ranks are not spread evenly over the hosts, in a row on each (rank %u is on "
                "%s): a topology file cannot say so; start as many on every host, such as mpirun "
                "--map-by ppr:2:node",
                r, p->hosts[r]);
    return false;
}

/* Names decide where there are several; times are held against them. */
static bool
find_nodes(Search *s, GError **error)
{
    const LhClusterParams *p = s->params;
    LhCluster *c = s->cluster;
    g_autofree double *apart_s = g_new0(double, (size_t)p->ranks * p->ranks);
    g_autofree double *limits_s = g_new(double, (size_t)p->ranks * p->ranks);
    g_autofree uint32_t *node_of = g_new(uint32_t, p->ranks);
    size_t limits;

    group_by_name(p, node_of);
    if (!measure_apart(s, apart_s, error))
        return false;
    limits = find_limits(apart_s, p->ranks, limits_s);
    for (size_t i = 0; i < limits; i++)
        c->times_agree = c->times_agree || limit_tells(apart_s, node_of, p->ranks, limits_s[i]);
    c->nodes = count_nodes(node_of, p->ranks);
    if (c->nodes == 0)
        return refuse_nodes(p, node_of, error);
    for (size_t i = 0; c->nodes == 1 && i < limits; i++) {
        uint32_t nodes;

        group_by_limit(apart_s, p->ranks, limits_s[i], node_of);
        nodes = count_nodes(node_of, p->ranks);
        if (nodes == 0 || !limit_tells(apart_s, node_of, p->ranks, limits_s[i]))
            continue;
        c->nodes = nodes;
        c->by_times = c->times_agree = true;
    }
    c->per_node = p->ranks / c->nodes;
    c->hosts = g_new0(char *, c->nodes + 1);
    for (uint32_t n = 0; n < c->nodes; n++)
        c->hosts[n] = g_strdup(p->hosts[n * c->per_node]);
    return true;
}

/* ---- what links take ---- */

static void
nobody_sends(Search *s)
{
    for (uint32_t r = 0; r < s->params->ranks; r++)
        s->to[r] = LH_RANKS_MAX;
}

static void
choose_flows(Search *s, const LhClusterPoint *point)
{
    const LhCluster *c = s->cluster;
    const uint32_t g = c->per_node;

    nobody_sends(s);
    if (point->kind == LH_FLOWS_NODE || point->kind == LH_FLOWS_CYCLE) {
        for (uint32_t r = 0; r < s->params->ranks; r++)
            s->to[r] =
                point->kind == LH_FLOWS_NODE ? r / g * g + (r + 1) % g : (r + g) % s->params->ranks;
        return;
    }
    for (uint32_t i = 0; i < (point->kind == LH_FLOWS_ONE ? 1 : g); i++) {
        s->to[point->node * g + i] = point->peer * g + i;
        s->to[point->peer * g + i] = point->node * g + i;
    }
}

/* Measures @point, in about as many rounds as there is time for after messages that took @last_s.
 */
static bool
measure_point(Search *s, LhClusterPoint *point, double last_s, GError **error)
{
    const uint32_t ranks = s->params->ranks;
    g_autofree double *seconds = g_new(double, ranks);
    const LhClusterFlows flows = {
        .to = s->to,
        .bytes = point->bytes,
        .rounds = (uint32_t)fmax(ROUNDS_MIN, fmin(ROUNDS_MAX, ROUNDS_S / last_s)),
    };
    double rates = 0;
    uint32_t count = 0;

    choose_flows(s, point);
    if (!s->params->measure(s->params->data, &flows, seconds, error))
        return false;
    for (uint32_t r = 0; r < ranks; r++) {
        if (s->to[r] >= LH_RANKS_MAX)
            continue;
        rates += 1 / seconds[r];
        count++;
    }
    /* Flows that share an adapter may not share it evenly: what counts is what passes it. */
    point->measured_s = count / rates;
    g_array_append_val(s->cluster->points, *point);
    return true;
}

/* All sizes up to those that take long, of the flows of @like. */
static bool
sweep(Search *s, LhClusterPoint like, GError **error)
{
    double last_s = 0.001;

    for (size_t i = 0; i < G_N_ELEMENTS(message_sizes) && last_s < LONGEST_S; i++) {
        like.bytes = message_sizes[i].bytes;
        like.holdout = message_sizes[i].holdout;
        if (!measure_point(s, &like, last_s, error))
            return false;
        last_s = g_array_index(s->cluster->points, LhClusterPoint, s->cluster->points->len - 1)
                     .measured_s;
    }
    return true;
}

/* ---- lines ---- */

static const LhClusterPoint *
cluster_point(const LhCluster *c, guint index)
{
    return &g_array_index(c->points, LhClusterPoint, index);
}

/* What passes an adapter, or a rank's way to its memory, in one round. */
static double
bytes_through(const LhCluster *c, const LhClusterPoint *point)
{
    const bool every = point->kind == LH_FLOWS_ALL || point->kind == LH_FLOWS_CYCLE;

    return (double)point->bytes * (every ? (double)c->per_node / MAX(c->nics, 1) : 1);
}

#define KIND(kind) (1U << (kind))

/* The line through all points of these kinds that are not held out. */
static bool
fit_line(const LhCluster *c, unsigned kinds, LhClusterLine *line, GError **error)
{
    g_autofree LhTransferPoint *points = g_new(LhTransferPoint, c->points->len);
    LhResiduals residuals;
    size_t count = 0;

    for (guint i = 0; i < c->points->len; i++) {
        const LhClusterPoint *p = cluster_point(c, i);

        if ((kinds & KIND(p->kind)) != 0 && !p->holdout)
            points[count++] = (LhTransferPoint){ bytes_through(c, p), p->measured_s };
    }
    if (!lh_fit_transfer(points, count, &line->alpha_s, &line->bytes_per_s, &residuals)) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "messages %s: time does not grow with size; are the machines busy?",
                    kinds == KIND(LH_FLOWS_NODE) ? "in a node" : "between nodes");
        return false;
    }
    line->residuals = (LhFitResiduals){ .median = residuals.median, .worst = residuals.worst };
    return true;
}

/* What the lines say of @point, by the slower of the adapters that it crosses. */
static double
line_seconds(const LhCluster *c, const LhClusterPoint *point)
{
    const double bytes = bytes_through(c, point);
    double bytes_per_s = c->nic.bytes_per_s;
    uint32_t at[2] = { point->node, point->peer };

    if (point->kind == LH_FLOWS_NODE)
        return c->memory.alpha_s + bytes / c->memory.bytes_per_s;
    if (point->kind == LH_FLOWS_ONE && c->pair_bytes_per_s > 0)
        bytes_per_s = c->pair_bytes_per_s;
    for (uint32_t n = 0; n < c->nodes; n++) {
        if (c->node_bytes_per_s[n] > 0 &&
            (point->kind == LH_FLOWS_CYCLE || n == at[0] || n == at[1]))
            bytes_per_s = fmin(bytes_per_s, c->node_bytes_per_s[n]);
    }
    return c->nic.alpha_s + bytes / bytes_per_s;
}

/* Fills in what the lines say of every point, and how far they are off where they were not fitted.
 */
static void
judge_points(LhCluster *c)
{
    for (guint i = 0; i < c->points->len; i++) {
        LhClusterPoint *p = &g_array_index(c->points, LhClusterPoint, i);
        LhClusterLine *line = p->kind == LH_FLOWS_NODE ? &c->memory : &c->nic;

        p->fitted_s = line_seconds(c, p);
        if (p->holdout)
            line->residuals.holdout =
                fmax(line->residuals.holdout, fabs(p->fitted_s / p->measured_s - 1));
    }
}

/* ---- memory ---- */

static bool
find_memory(Search *s, GError **error)
{
    LhCluster *c = s->cluster;

    if (c->per_node == 1)
        return true;
    tell_progress(s, "messages in a node");
    return sweep(s, (LhClusterPoint){ .kind = LH_FLOWS_NODE }, error) &&
           fit_line(c, KIND(LH_FLOWS_NODE), &c->memory, error);
}

/* ---- adapters ---- */

/* A size by which adapters are compared, so long that latency is little of it; and a shorter one.
 */
#define LARGER_BYTES (UINT64_C(512) << 10)
#define SMALLER_BYTES (UINT64_C(128) << 10)

/* What a message of LARGER_BYTES takes where all ranks of two nodes send one, each way. */
static bool
measure_nodes(Search *s, uint32_t node, uint32_t peer, double *taken_s, GError **error)
{
    LhClusterPoint larger = {
        .kind = LH_FLOWS_ALL, .node = node, .peer = peer, .bytes = LARGER_BYTES, .holdout = true
    };

    if (!measure_point(s, &larger, LONGEST_S, error))
        return false;
    *taken_s = larger.measured_s;
    return true;
}

bool
lh_cluster_compares(uint32_t nodes, uint32_t node, uint32_t peer)
{
    const uint32_t distance = peer - node;

    return nodes <= NODES_ALL_MAX || distance == 1 || distance == nodes - 1 ||
           distance == nodes / 2;
}

/*
 * Of each node what messages take with the node with which they take least; @reference is the pair
 * of nodes of which that is least of all.
 */
static bool
compare_nodes(Search *s, double *least_s, uint32_t *reference, GError **error)
{
    const uint32_t nodes = s->cluster->nodes;
    double best_s = INFINITY;

    tell_progress(s, "adapters of nodes");
    for (uint32_t n = 0; n < nodes; n++)
        least_s[n] = INFINITY;
    for (uint32_t n = 0; n < nodes; n++) {
        for (uint32_t m = n + 1; m < nodes; m++) {
            double taken_s;

            if (!lh_cluster_compares(nodes, n, m))
                continue;
            if (!measure_nodes(s, n, m, &taken_s, error))
                return false;
            least_s[n] = fmin(least_s[n], taken_s);
            least_s[m] = fmin(least_s[m], taken_s);
            if (taken_s < best_s) {
                best_s = taken_s;
                reference[0] = n;
                reference[1] = m;
            }
        }
    }
    return true;
}

/* How many adapters a node has, by what its ranks reach together and one of them alone. */
static void
count_adapters(LhCluster *c, double together, double alone)
{
    const double ratio = together / alone;

    c->nics = 1;
    for (uint32_t d = 1; d <= c->per_node; d++) {
        if (c->per_node % d == 0 && fabs(ratio / d - 1) < NIC_TOLERANCE)
            c->nics = d;
    }
    if (fabs(ratio / c->nics - 1) >= NIC_TOLERANCE && ratio > 1)
        c->pair_bytes_per_s = alone;
}

/* The line of the adapters of the two nodes of @pair, which are not slower than others. */
static bool
fit_adapters(Search *s, const uint32_t *pair, GError **error)
{
    LhCluster *c = s->cluster;
    LhClusterPoint like = { .kind = LH_FLOWS_ONE, .node = pair[0], .peer = pair[1] };
    LhClusterLine alone, together;
    unsigned kinds = KIND(LH_FLOWS_ONE);

    tell_progress(s, "messages between nodes, of one rank of each");
    if (!sweep(s, like, error) || !fit_line(c, kinds, &alone, error))
        return false;
    if (c->per_node > 1) {
        like.kind = LH_FLOWS_ALL;
        tell_progress(s, "messages between nodes, of all ranks of each");
        if (!sweep(s, like, error) || !fit_line(c, KIND(LH_FLOWS_ALL), &together, error))
            return false;
        count_adapters(c, together.bytes_per_s, alone.bytes_per_s);
        kinds = KIND(LH_FLOWS_ALL) | (c->pair_bytes_per_s > 0 ? 0 : KIND(LH_FLOWS_ONE));
    }
    return fit_line(c, kinds, &c->nic, error);
}

/* What an adapter reaches that takes @least_s for what pairs exchange. No more than half of that is
 * taken for latency. */
static double
rate_of_pair(const LhCluster *c, double least_s)
{
    const double bytes = (double)LARGER_BYTES * c->per_node / MAX(c->nics, 1);

    return bytes / fmax(least_s - c->nic.alpha_s, least_s / 2);
}

/* Nodes whose adapters are slower than the line, and than those of other nodes: where latency is
 * most of the time, all rates of pairs are too low. */
static void
take_exceptions(LhCluster *c, const double *least_s)
{
    double usual = 0;

    for (uint32_t n = 0; n < c->nodes; n++)
        usual = fmax(usual, rate_of_pair(c, least_s[n]));
    usual = fmin(usual, c->nic.bytes_per_s);
    for (uint32_t n = 0; n < c->nodes; n++) {
        const double rate = rate_of_pair(c, least_s[n]);

        if (rate < (1 - NIC_TOLERANCE) * usual)
            c->node_bytes_per_s[n] = rate;
    }
}

/* All nodes at once, each with the next one: whether what joins them is one more limit. */
static bool
check_cycle(Search *s, GError **error)
{
    LhClusterPoint smaller = { .kind = LH_FLOWS_CYCLE, .bytes = SMALLER_BYTES, .holdout = true };
    LhClusterPoint larger = smaller;

    larger.bytes = LARGER_BYTES;
    tell_progress(s, "messages between all nodes");
    return measure_point(s, &smaller, LONGEST_S, error) &&
           measure_point(s, &larger, smaller.measured_s, error);
}

static bool
find_adapters(Search *s, GError **error)
{
    LhCluster *c = s->cluster;
    g_autofree double *least_s = g_new(double, c->nodes);
    uint32_t pair[2] = { 0, 1 };

    c->node_bytes_per_s = g_new0(double, c->nodes);
    if (c->nodes == 1)
        return true;
    c->nics = 1;
    if (!compare_nodes(s, least_s, pair, error) || !fit_adapters(s, pair, error))
        return false;
    take_exceptions(c, least_s);
    return check_cycle(s, error);
}

/* ---- further messages ---- */

uint32_t
lh_cluster_further(const LhCluster *c)
{
    const uint32_t peers = (c->nodes - 1) * c->per_node;

    return peers == 0 ? 0 : MIN(peers, LH_ONE_SHOT_UNDER_WAY) - 1;
}

void
lh_cluster_take_overhead(LhCluster *c, const LhClusterPoint *points, size_t count)
{
    const double further = lh_cluster_further(c);
    g_autofree double *overheads_s = g_new(double, count);

    for (size_t i = 0; i < count; i++)
        overheads_s[i] = (points[i].measured_s - points[i].fitted_s) / further;
    c->overhead_s = fmax(lh_median(overheads_s, count), 0);
    for (size_t i = 0; i < count; i++) {
        LhClusterPoint point = points[i];

        point.fitted_s += further * c->overhead_s;
        g_array_append_val(c->points, point);
    }
}

/* ---- the whole ---- */

LhCluster *
lh_cluster_find(const LhClusterParams *params, GError **error)
{
    g_autoptr(LhCluster) c = g_new0(LhCluster, 1);
    g_autofree uint32_t *to = g_new(uint32_t, params->ranks);
    Search search = { params, c, to };

    g_assert(params->ranks >= 2);
    c->points = g_array_new(FALSE, FALSE, sizeof(LhClusterPoint));
    if (!find_nodes(&search, error) || !find_memory(&search, error) ||
        !find_adapters(&search, error))
        return NULL;
    /* Memory is on the way to an adapter: what takes longer there is the noise of a busy machine.
     */
    if (c->nodes > 1)
        c->memory.alpha_s = fmin(c->memory.alpha_s, c->nic.alpha_s);
    judge_points(c);
    return g_steal_pointer(&c);
}

void
lh_cluster_free(LhCluster *c)
{
    if (c == NULL)
        return;
    g_strfreev(c->hosts);
    g_free(c->node_bytes_per_s);
    g_array_unref(c->points);
    g_free(c);
}

/* ---- the file ---- */

void
lh_cluster_write_unit(LhJsonWriter *w, const char *key, char *text)
{
    lh_jsonw_string(w, key, text);
    g_free(text);
}

/* The fields of a link class; with @alpha_s in place of the line's own. */
static void
write_line(LhJsonWriter *w, const LhClusterLine *line, double alpha_s, const char *source)
{
    g_autofree char *text = g_strdup_printf(
        "%s; residuals: median %.1f %%, worst %.1f %%, held out %.1f %%", source,
        100 * line->residuals.median, 100 * line->residuals.worst, 100 * line->residuals.holdout);

    lh_cluster_write_unit(w, "bandwidth", lh_format_bandwidth(line->bytes_per_s));
    lh_cluster_write_unit(w, "latency",
                          lh_format_time(lh_time_from_ps(alpha_s * (double)LH_PS_PER_S)));
    lh_jsonw_uint(w, "ctas", 0);
    lh_jsonw_string(w, "provenance", "fitted");
    lh_jsonw_string(w, "source", text);
}

static void
write_nics(LhJsonWriter *w, const LhCluster *c, const char *source)
{
    bool alike = true;

    for (uint32_t n = 0; n < c->nodes; n++)
        alike = alike && c->node_bytes_per_s[n] == 0;
    lh_jsonw_object_begin(w, "nics");
    lh_jsonw_uint(w, "count", c->nics);
    /* A route also has the latency of the way to the adapter. */
    write_line(w, &c->nic, fmax(c->nic.alpha_s - c->memory.alpha_s, 0), source);
    if (c->pair_bytes_per_s > 0)
        lh_cluster_write_unit(w, "pair_p2p", lh_format_bandwidth(c->pair_bytes_per_s));
    if (c->overhead_s > 0)
        lh_cluster_write_unit(w, "overhead",
                              lh_format_time(lh_time_from_ps(c->overhead_s * (double)LH_PS_PER_S)));
    if (!alike) {
        lh_jsonw_array_begin(w, "slower");
        for (uint32_t n = 0; n < c->nodes; n++) {
            if (c->node_bytes_per_s[n] == 0)
                continue;
            lh_jsonw_object_begin(w, NULL);
            lh_jsonw_uint(w, "node", n);
            lh_cluster_write_unit(w, "bandwidth", lh_format_bandwidth(c->node_bytes_per_s[n]));
            lh_jsonw_object_end(w);
        }
        lh_jsonw_array_end(w);
    }
    lh_jsonw_object_end(w);
}

/* "4 ranks on 2 hosts: node0, node1; ..."; caller frees. */
static char *
describe_cluster(const LhCluster *c)
{
    g_autofree char *hosts = g_strjoinv(", ", c->hosts);

    return g_strdup_printf("%u rank%s on each of %u host%s%s; nodes told apart by %s", c->per_node,
                           c->per_node == 1 ? "" : "s", c->nodes,
                           c->nodes == 1 ? ": " : "s: ", hosts,
                           c->by_times      ? "the times of messages"
                           : c->times_agree ? "names, and by the times of messages"
                                            : "names alone");
}

void
lh_cluster_write(const LhCluster *c, const char *name, const char *source, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    g_autofree char *description = describe_cluster(c);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schema", "longhaul.topology/2");
    lh_jsonw_string(w, "name", name);
    lh_jsonw_string(w, "description", description);
    lh_jsonw_string(w, "source", source);
    lh_jsonw_string(w, "device", "this-cpu");
    lh_jsonw_object_begin(w, "node");
    lh_jsonw_uint(w, "gpus", c->per_node);
    lh_jsonw_object_begin(w, "scale_up");
    lh_jsonw_string(w, "kind", c->per_node > 1 ? "memory" : "none");
    if (c->per_node > 1)
        write_line(w, &c->memory, c->memory.alpha_s, source);
    lh_jsonw_object_end(w);
    if (c->nodes > 1)
        write_nics(w, c, source);
    lh_jsonw_object_end(w);
    lh_jsonw_uint(w, "max_nodes", c->nodes);
    lh_jsonw_object_end(w);
}
