/* See the header. */
#include "sim/network/native.h"

#include "sim/network/collective_table.h"
#include "sim/network/rings.h"

#include <math.h>

struct _LhNative {
    const LhNetwork *network;
    const LhDevice *device;
    const LhGroup *group;
    uint64_t ranks;
    bool in_node;
    double slower_bytes, slower_latency; /* than where the file's times were taken */
    LhNcclGroup *nccl;                   /* NULL: not asked for yet */
};

/* The links between members of the node beside those of the file. */
static void
compare_links(LhNative *n)
{
    const LhTopology *t = n->network->topology;
    g_autofree uint32_t *ranks = lh_sorted_ranks(n->group);
    LhRoute route;

    n->slower_bytes = n->slower_latency = 1;
    for (uint64_t i = 1; i < n->ranks; i++) {
        const LhCollectiveLinks *as_filed;
        double bandwidth;

        lh_network_route(n->network, ranks[i - 1], ranks[i], &route);
        as_filed = &t->collective_links[route.tier == LH_TIER_PCIE];
        bandwidth = lh_network_route_bandwidth(n->network, &route);
        if (as_filed->bandwidth > 0)
            n->slower_bytes = i == 1 ? as_filed->bandwidth / bandwidth
                                     : fmax(n->slower_bytes, as_filed->bandwidth / bandwidth);
        if (as_filed->latency_ps > 0)
            n->slower_latency = (double)route.latency_ps / (double)as_filed->latency_ps;
    }
}

LhNative *
lh_native_new(const LhNetwork *network, const LhDevice *device, const LhGroup *group)
{
    LhNative *n = g_new0(LhNative, 1);

    n->network = network;
    n->device = device;
    n->group = group;
    n->ranks = lh_group_size(group);
    n->in_node = lh_network_span(network, group) == LH_SPAN_NODE;
    if (n->in_node)
        compare_links(n);
    return n;
}

void
lh_native_free(LhNative *native)
{
    if (native == NULL)
        return;
    lh_nccl_group_free(native->nccl);
    g_free(native);
}

/* By the file: as measured, or else by its lines. */
static bool
filed_seconds(const LhNative *n, LhCollectiveKind kind, double bytes, double *seconds,
              int *provenance)
{
    const LhTopology *t = n->network->topology;

    return n->in_node && (lh_collective_times_seconds(t->collective_times, kind, n->ranks, bytes,
                                                      seconds, provenance) ||
                          lh_collective_lines_seconds(t->collective_lines, kind, n->ranks, bytes,
                                                      seconds, provenance));
}

bool
lh_native_is_measured(const LhNative *native, LhCollectiveKind kind)
{
    double seconds;
    int provenance;

    return native->in_node &&
           lh_collective_times_seconds(native->network->topology->collective_times, kind,
                                       native->ranks, 0, &seconds, &provenance);
}

bool
lh_native_is_known(const LhNative *native, LhCollectiveKind kind)
{
    double seconds;
    int provenance;

    return kind != LH_COLL_ALL_TO_ALL || filed_seconds(native, kind, 0, &seconds, &provenance);
}

double
lh_native_seconds(LhNative *native, LhCollectiveKind kind, double shard_bytes, int *provenance)
{
    const double bytes = lh_collective_printed_bytes(kind, native->ranks, shard_bytes);
    double whole, empty;

    if (filed_seconds(native, kind, bytes, &whole, provenance)) {
        filed_seconds(native, kind, 0, &empty, provenance);
        empty = fmin(empty, whole);
        return empty * native->slower_latency + (whole - empty) * native->slower_bytes;
    }
    if (native->nccl == NULL)
        native->nccl = lh_nccl_group_new(native->network, native->device, native->group);
    /* What trees over two nodes reach is not known (nccl.c). */
    *provenance = native->nccl->nodes == 2 && kind == LH_COLL_ALL_REDUCE
                      ? LH_PROVENANCE_ASSUMED
                      : (int)lh_nccl_provenance(native->device);
    return lh_nccl_seconds(native->nccl, kind, (uint64_t)shard_bytes, NULL);
}
