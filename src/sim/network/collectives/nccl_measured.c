/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/collectives/nccl_measured.h"

#include "sim/network/collectives/collective_lines.h"
#include "sim/network/collectives/collective_times.h"
#include "sim/network/collectives/measured.h"
#include "sim/network/collectives/rings.h"

#include <math.h>

#define LONG_BYTES 1e9 /* size at which latencies are negligible */

const char *const lh_times_source_names[] = { "measured", "scaled", "modelled", NULL };

/* Measured times of the topology file for the group and one kind, and the links of the group
 * relative to those measured on. */
typedef struct {
    bool is_found;
    bool has_times; /* else lines are used, if there are any */
    LhCollectiveRows times;
    const LhCollectiveLines *lines;
    LhLinkSlowdown fewer, more; /* of the rows; for lines the first */
    double bound_s_per_byte;    /* lower bound of the links; 0: a link has failed, which ends a run
                                   elsewhere */
} Filed;

struct _LhNcclMeasured {
    const LhNetwork *network;
    const LhDevice *device;
    const LhGroup *group;
    uint64_t ranks;
    bool in_node;
    Filed filed[LH_COLL_KINDS]; /* filled on demand */
    LhNcclGroup *nccl;          /* NULL: not needed yet */
};

LhNcclMeasured *
lh_nccl_measured_new(const LhNetwork *network, const LhDevice *device, const LhGroup *group)
{
    LhNcclMeasured *n = g_new0(LhNcclMeasured, 1);

    n->network = network;
    n->device = device;
    n->group = group;
    n->ranks = lh_group_size(group);
    n->in_node = lh_network_span(network, group) == LH_SPAN_NODE;
    return n;
}

void
lh_nccl_measured_free(LhNcclMeasured *native)
{
    if (native == NULL)
        return;
    lh_nccl_group_free(native->nccl);
    g_free(native);
}

/* The links between members relative to those measured on: factors on the time of the most loaded
 * link for the bytes of the collective, and on the longest latency. */
static LhLinkSlowdown
slowdown_beside(const LhNcclMeasured *n, LhCollectiveKind kind, int algorithm,
                const LhMeasuredOn *on)
{
    LhTopology topology;
    LhNetwork measured = *n->network;
    LhTime latency_ps;
    LhLinkSlowdown slowdown = { 1, 1, n->network->protocols_on_links, n->network->collectives_end };
    bool ok;

    lh_measured_topology(n->network->topology, on, &topology);
    ok = lh_network_init(&measured, &topology, n->network->nodes, n->network->ranks, NULL, NULL);
    g_assert(ok); /* the same nodes and ranks as the network */
    slowdown.bytes =
        lh_link_bound_s_per_byte(n->network, n->group, kind, (LhLinkAlgorithm)algorithm) /
        lh_link_bound_s_per_byte(&measured, n->group, kind, (LhLinkAlgorithm)algorithm);
    latency_ps = lh_link_bound_latency_ps(&measured, n->group);
    if (latency_ps > 0)
        slowdown.latency =
            (double)lh_link_bound_latency_ps(n->network, n->group) / (double)latency_ps;
    return slowdown;
}

static double
bound_of(const LhNcclMeasured *n, LhCollectiveKind kind, const Filed *filed)
{
    const int algorithm =
        filed->has_times ? lh_collective_rows_algorithm(&filed->times) : LH_ALGORITHM_DEFAULT;
    const double bound =
        lh_link_bound_s_per_byte(n->network, n->group, kind, (LhLinkAlgorithm)algorithm);

    return isfinite(bound) ? bound : 0;
}

static const Filed *
filed_of(LhNcclMeasured *n, LhCollectiveKind kind)
{
    const LhTopology *t = n->network->topology;
    Filed *filed = &n->filed[kind];

    if (filed->is_found)
        return filed;
    filed->is_found = true;
    if (!n->in_node || n->ranks < 2)
        return filed;
    filed->has_times = lh_collective_times_find(t->collective_times, kind, n->ranks, &filed->times);
    if (filed->has_times) {
        const LhCollectiveTimes *fewer = filed->times.fewer, *more = filed->times.more;

        filed->fewer = slowdown_beside(n, kind, fewer->algorithm, &fewer->on);
        filed->more = slowdown_beside(n, kind, more->algorithm, &more->on);
        filed->bound_s_per_byte = bound_of(n, kind, filed);
        return filed;
    }
    filed->lines = lh_collective_lines_find(t->collective_lines, kind);
    if (filed->lines != NULL)
        filed->fewer = slowdown_beside(n, kind, LH_ALGORITHM_DEFAULT, &filed->lines->on);
    return filed;
}

bool
lh_nccl_measured_is_measured(LhNcclMeasured *native, LhCollectiveKind kind)
{
    return filed_of(native, kind)->has_times;
}

bool
lh_nccl_measured_is_known(LhNcclMeasured *native, LhCollectiveKind kind)
{
    const Filed *filed = filed_of(native, kind);

    return kind != LH_COLL_ALL_TO_ALL || filed->has_times || filed->lines != NULL;
}

double
lh_nccl_measured_seconds(LhNcclMeasured *native, LhCollectiveKind kind, double shard_bytes,
                         int *provenance)
{
    double floor_s;

    return lh_nccl_measured_parts(native, kind, shard_bytes, &floor_s, provenance);
}

double
lh_nccl_measured_parts(LhNcclMeasured *native, LhCollectiveKind kind, double shard_bytes,
                       double *floor_s, int *provenance)
{
    const double bytes = lh_collective_printed_bytes(kind, native->ranks, shard_bytes);
    const Filed *filed = filed_of(native, kind);
    LhNcclChoice choice = { LH_NCCL_RING, LH_NCCL_SIMPLE };
    double seconds;

    if (filed->has_times) {
        *provenance = lh_collective_rows_provenance(&filed->times);
        seconds =
            lh_collective_rows_parts(&filed->times, bytes, filed->fewer, filed->more, floor_s);
        return fmax(seconds, filed->bound_s_per_byte * bytes);
    }
    if (filed->lines != NULL) {
        *provenance = filed->lines->from.provenance;
        return lh_collective_lines_parts(filed->lines, native->ranks, bytes, filed->fewer, floor_s);
    }
    if (native->nccl == NULL)
        native->nccl = lh_nccl_group_new(native->network, native->device, native->group);
    /* The rate of trees over two nodes is uncertain (nccl_model.c). */
    *provenance = native->nccl->nodes == 2 && kind == LH_COLL_ALL_REDUCE
                      ? LH_PROVENANCE_ASSUMED
                      : (int)lh_nccl_provenance(native->device);
    seconds = lh_nccl_seconds(native->nccl, kind, (uint64_t)shard_bytes, &choice);
    *floor_s = lh_nccl_latency_s(native->nccl, kind, (uint64_t)shard_bytes, choice);
    return seconds;
}

/* ---- error bars ---- */

static bool
is_as_measured(LhLinkSlowdown slowdown)
{
    return slowdown.bytes == 1 && slowdown.latency == 1;
}

/* Rows with another provenance than measured count as a model, too. */
LhTimesSource
lh_nccl_measured_source(LhNcclMeasured *native, LhCollectiveKind kind)
{
    const Filed *filed = filed_of(native, kind);

    if (!filed->has_times || lh_collective_rows_provenance(&filed->times) != LH_PROVENANCE_MEASURED)
        return LH_TIMES_MODELLED;
    return is_as_measured(filed->fewer) && is_as_measured(filed->more) ? LH_TIMES_MEASURED
                                                                       : LH_TIMES_SCALED;
}

/* Relative distance of the ends of the uncertain part (LhLinkSlowdown) from the time. */
static double
scaled_error(const Filed *filed, double bytes)
{
    double seconds[3], error;

    for (int end = -1; end <= 1; end++) {
        LhLinkSlowdown fewer = filed->fewer, more = filed->more;

        fewer.end = more.end = end;
        seconds[end + 1] = lh_collective_rows_seconds(&filed->times, bytes, fewer, more);
    }
    error = fmax(seconds[2] / seconds[1], seconds[1] / seconds[0]) - 1;
    return hypot(LH_COLLECTIVE_ERROR, error);
}

double
lh_nccl_measured_error(LhNcclMeasured *native, LhCollectiveKind kind, double shard_bytes)
{
    const double bytes = lh_collective_printed_bytes(kind, native->ranks, shard_bytes);

    switch (lh_nccl_measured_source(native, kind)) {
    case LH_TIMES_MEASURED:
        return LH_COLLECTIVE_ERROR;
    case LH_TIMES_SCALED:
        return scaled_error(filed_of(native, kind), bytes);
    default:
        return lh_modelled_error(bytes);
    }
}

/* Whether lines of an all-reduce are faster than rings can be: then the switch reduces. */
static bool
is_summed(const LhNcclMeasured *n, const Filed *filed, LhCollectiveKind kind)
{
    return kind == LH_COLL_ALL_REDUCE && filed->lines != NULL &&
           lh_collective_lines_seconds(filed->lines, n->ranks, LONG_BYTES, filed->fewer) <
               LONG_BYTES * lh_link_bound_s_per_byte(n->network, n->group, kind, LH_ALGORITHM_RING);
}

LhLinkAlgorithm
lh_nccl_measured_algorithm(LhNcclMeasured *native, LhCollectiveKind kind)
{
    const Filed *filed = filed_of(native, kind);

    if (filed->has_times)
        return (LhLinkAlgorithm)lh_collective_rows_algorithm(&filed->times);
    return is_summed(native, filed, kind) ? LH_ALGORITHM_NVLS : LH_ALGORITHM_DEFAULT;
}

double
lh_modelled_error(double bytes)
{
    static const struct {
        double below_bytes, error;
    } rows[] = { { 1 << 20, 0.66 }, { 16 << 20, 0.32 }, { 128 << 20, 0.23 } };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (bytes < rows[i].below_bytes)
            return rows[i].error;
    }
    return 0.17;
}
