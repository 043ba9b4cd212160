/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants and formulas of NVIDIA/nccl v2.30.7, src/graph/tuning.cc, for its ring and tree with
 * the protocols LL, LL128 and Simple:
 *
 *   time = latency + bytes / bandwidth, with the bytes of the whole vector
 *
 * Bandwidths of links are the network's; channels are derived from them. The hosts are unknown and
 * assumed to be AMD's, as in DGX A100. NCCL assumes twice the rate of the NICs for trees over two
 * nodes, which published runs show for vectors of a gigabyte and not below: here trees have the
 * rate of all NICs together (an assumption). Not modelled: NVLS, CollNet and PAT, and NCCL's use of
 * fewer channels for short messages.
 */
#include "sim/network/collectives/nccl_model.h"

#include "sim/network/collectives/collective_table.h"
#include "sim/network/collectives/ring_hops.h"

#include <math.h>
#include <string.h>

#define GIGA 1e9
#define CHANNELS_MAX 64
#define CHANNELS_PER_NIC 2
#define NET_OVERHEAD_US 2.0 /* AMD; Intel: 1 */
#define CORRECTIONS 24      /* powers of two from 64 bytes */

enum { HW_NVLINK, HW_PCI, HW_NET, HW_KINDS };
enum { VOLTA, AMPERE, HOPPER, BLACKWELL, GENERATIONS };
enum { ONE_NODE, TWO_NODES, MORE_NODES, SIZES };

/* Microseconds: by algorithm (tree, ring) and protocol (LL, LL128, Simple). */
static const double base_us[LH_NCCL_ALGORITHMS][LH_NCCL_PROTOCOLS] = { { 6.8, 14, 8.4 },
                                                                       { 6.6, 14, 8.4 } };
static const double hop_us[HW_KINDS][LH_NCCL_ALGORITHMS][LH_NCCL_PROTOCOLS] = {
    [HW_NVLINK] = { { 0.6, 1.25, 4 }, { 0.6, 1.9, 3.4 } },
    [HW_PCI] = { { 1, 1.9, 4 }, { 1, 2.5, 5.7 } },
    [HW_NET] = { { 5, 8.5, 14 }, { 2.7, 4, 14 } },
};

/* GB/s, by GPU generation and number of nodes (1, 2, more). */
typedef double Caps[GENERATIONS][SIZES];

static const Caps ring_ll128_per_channel = {
    { 20, 20, 20 }, { 20, 20, 20 }, { 36.7, 36.7, 36.7 }, { 40, 40, 40 }
};
static const Caps tree_ll128_per_channel = {
    { 20, 20, 20 }, { 20, 20, 20 }, { 36.7, 36.7, 29 }, { 55.6, 31.7, 20 }
};
static const Caps tree_per_channel = {
    { 26.5, 18.5, 10 }, { 24, 23.6, 17.8 }, { 38.7, 41.4, 36 }, { 70, 42.8, 24 }
};
static const double ll_one_node[GENERATIONS] = { 39, 87.7, 141, 282 };
static const double ll_by_nodes[SIZES] = { 0, 22.5, 19 }; /* AMD; Intel: 39, 20.4 */

/* GB/s of one NVLink: src/graph/topo.h. */
static const double nvlink_gbps[GENERATIONS] = { 20, 20, 20.6, 40.1 };

/* "Trees are not perfectly sticking to the model for medium sizes." */
static const double tree_correction[LH_NCCL_PROTOCOLS]
                                   [CORRECTIONS] = {
                                       { 1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7,  .7,  .7,  .6,  .5,
                                         .4,  .4,  .5,  .6,  .7, .8, .9, 1.0, 1.0, 1.0, 1.0, 1.0 },
                                       { 1.0, 1.0, 1.0, 1.0, 1.0, .9, .8, .8, .8, .7,  .6,  .6,
                                         .6,  .6,  .6,  .6,  .8,  .9, .9, .9, .9, 1.0, 1.0, 1.0 },
                                       { .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                         .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9 },
                                   };

/* ---- NCCL's view of the group ---- */

static int
generation(uint64_t compute_capability)
{
    return compute_capability >= 100  ? BLACKWELL
           : compute_capability >= 90 ? HOPPER
           : compute_capability >= 80 ? AMPERE
                                      : VOLTA;
}

/* Result of the walk along the sorted ranks. */
typedef struct {
    double intra, inter; /* GB/s: narrowest link between neighbours within a node, between nodes */
    uint64_t nics;
} Survey;

static void
survey_hop(const LhNetwork *network, const LhGroup *group, const uint32_t *hop, LhNcclGroup *g,
           Survey *survey)
{
    LhRoute route;
    double narrowest;

    lh_network_collective_route(network, hop[0], hop[1], &route);
    lh_network_route_in(network, group, &route);
    narrowest = lh_network_route_bandwidth(network, &route) / GIGA;
    if (route.tier == LH_TIER_NVLINK || route.tier == LH_TIER_PCIE) {
        survey->intra = fmin(survey->intra, narrowest);
        g->nvlink &= route.tier == LH_TIER_NVLINK;
    } else {
        survey->inter = fmin(survey->inter, narrowest);
    }
}

/* Rate of rings within nodes whose GPUs share PCIe links beyond their own. */
static double
tree_gbps(const LhNetwork *network, const LhGroup *group)
{
    g_autofree LhRingHop *hops = NULL;
    LhRings rings;
    double slowest_s_per_byte = 0, gbps;

    lh_rings_init(&rings, network, group);
    hops = lh_ring_hops_new(network, group, &rings);
    for (uint64_t i = 0; i < lh_ring_hops_count(&rings); i++) {
        if (hops[i].tier == LH_TIER_PCIE)
            slowest_s_per_byte = fmax(slowest_s_per_byte, hops[i].s_per_byte);
    }
    gbps = slowest_s_per_byte > 0 ? rings.count / slowest_s_per_byte / GIGA : INFINITY;
    lh_rings_clear(&rings);
    return gbps;
}

/* Rings enter and leave a node by all NICs that its members use, up to the limit of collectives
 * there. */
static void
set_bandwidths(LhNcclGroup *g, const Survey *survey, double limit_gbps)
{
    const double nics = survey->inter * (double)survey->nics / (double)g->nodes;
    const double inter = limit_gbps > 0 ? fmin(nics, limit_gbps) : nics;

    g->bus_gbps = g->nodes > 1 ? fmin(survey->intra, inter) : survey->intra;
    if (g->nodes > 1)
        g->channels = CHANNELS_PER_NIC * survey->nics / g->nodes;
    else if (g->nvlink)
        g->channels =
            2 * (uint64_t)(survey->intra / nvlink_gbps[generation(g->compute_capability)] + 1e-9);
    g->channels = CLAMP(g->channels, CHANNELS_PER_NIC, CHANNELS_MAX);
}

/* Rate of rings over the links of a node where that was measured, scaled to the network's links.
 * From all-gathers, which do not use NVLS. */
static double
measured_gbps(const LhTopology *topology, double intra)
{
    for (guint i = 0; topology->collective_lines != NULL && i < topology->collective_lines->len;
         i++) {
        const LhCollectiveLines *row =
            &g_array_index(topology->collective_lines, LhCollectiveLines, i);

        if (row->op == LH_COLL_ALL_GATHER && row->simple.bandwidth > 0 &&
            row->on.scale_up.bandwidth > 0)
            return fmin(intra, row->simple.bandwidth * intra / row->on.scale_up.bandwidth);
    }
    return intra;
}

LhProvenance
lh_nccl_provenance(const LhDevice *device)
{
    return device->compute_capability > 0 ? LH_PROVENANCE_DATASHEET : LH_PROVENANCE_ASSUMED;
}

LhNcclGroup *
lh_nccl_group_new(const LhNetwork *network, const LhDevice *device, const LhGroup *group)
{
    LhNcclGroup *g = g_new0(LhNcclGroup, 1);
    Survey survey = { INFINITY, INFINITY, 1 };
    g_autofree uint32_t *ranks = lh_sorted_ranks(group);
    g_autofree bool *first = lh_first_at_nics(network, ranks, lh_group_size(group));

    g->ranks = lh_group_size(group);
    g->nodes = 1;
    g->nvlink = true;
    g->compute_capability = device->compute_capability;
    for (uint64_t i = 1; i < g->ranks; i++) {
        survey_hop(network, group, &ranks[i - 1], g, &survey);
        g->nodes += ranks[i] / network->gpus_per_node != ranks[i - 1] / network->gpus_per_node;
        survey.nics += first[i];
    }
    if (g->nodes > 1 && g->nvlink && g->ranks > g->nodes)
        survey.intra = measured_gbps(network->topology, survey.intra);
    if (g->ranks > 1 && !network->tree.is_plain)
        survey.intra = fmin(survey.intra, tree_gbps(network, group));
    if (g->ranks > 1)
        set_bandwidths(g, &survey, network->topology->collective_bandwidth / GIGA);
    return g;
}

void
lh_nccl_group_free(LhNcclGroup *group)
{
    g_free(group);
}

/* ---- formulas ---- */

static uint64_t
steps(const LhNcclGroup *g, LhCollectiveKind kind)
{
    if (kind == LH_COLL_BROADCAST)
        return g->ranks;
    return (kind == LH_COLL_ALL_REDUCE ? 2 : 1) * (g->ranks - 1);
}

static int
size_index(const LhNcclGroup *g)
{
    return g->nodes == 1 ? ONE_NODE : g->nodes == 2 ? TWO_NODES : MORE_NODES;
}

/* GB/s of the vector. */
static double
ring_bandwidth(const LhNcclGroup *g, LhCollectiveKind kind, LhNcclProtocol protocol)
{
    const int age = generation(g->compute_capability), size = size_index(g);
    const double ll_max = g->nodes == 1 ? ll_one_node[age] : ll_by_nodes[size];
    double bus = g->bus_gbps;

    if (protocol == LH_NCCL_LL)
        bus = fmin(ll_max, 0.5 * bus);
    else if (protocol == LH_NCCL_LL128)
        bus = fmin(0.92 * bus, (double)g->channels * ring_ll128_per_channel[age][size]);
    return bus * (double)g->ranks / (double)steps(g, kind);
}

static double
tree_bandwidth(const LhNcclGroup *g, LhNcclProtocol protocol)
{
    const int age = generation(g->compute_capability), size = size_index(g);
    const double ll_max = g->nodes == 1 ? ll_one_node[age] : ll_by_nodes[size];
    double bus = fmin(0.92 * g->bus_gbps, (double)g->channels * tree_per_channel[age][size]);

    if (protocol == LH_NCCL_LL)
        bus = fmin(bus / 3.8, ll_max);
    else if (protocol == LH_NCCL_LL128)
        bus = fmin(bus * (g->nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                   (double)g->channels * tree_ll128_per_channel[age][size]);
    return 0.5 * bus * (g->ranks == g->nodes ? 0.85 : 1); /* plain tree: one GPU per node */
}

static double
ring_latency_us(const LhNcclGroup *g, LhCollectiveKind kind, LhNcclProtocol protocol,
                uint64_t bytes)
{
    const int intra_hw = g->nvlink ? HW_NVLINK : HW_PCI;
    const bool all_reduce = kind == LH_COLL_ALL_REDUCE;
    const uint64_t inter_steps = (all_reduce ? 2 : 1) * (g->nodes - 1);
    /* With one GPU per node network latencies are fully exposed: use the tree's. */
    const int inter_row = g->ranks == g->nodes ? LH_NCCL_TREE : LH_NCCL_RING;
    const double inter = hop_us[HW_NET][inter_row][protocol];
    double intra = hop_us[intra_hw][LH_NCCL_RING][protocol];
    double latency = base_us[LH_NCCL_RING][protocol];

    if (kind == LH_COLL_BROADCAST)
        return latency + hop_us[g->nodes > 1 ? HW_NET : intra_hw][LH_NCCL_RING][protocol];
    if (g->nodes > 1)
        intra = fmax(intra, NET_OVERHEAD_US * (protocol == LH_NCCL_SIMPLE ? 3 : 1));
    latency += (double)(steps(g, kind) - inter_steps) * intra + (double)inter_steps * inter;
    /* "Plateau effect of ring." */
    if (all_reduce && protocol == LH_NCCL_SIMPLE && g->nodes > 1 &&
        bytes / (g->channels * g->ranks) >= 64)
        latency *= generation(g->compute_capability) == VOLTA ? 1.9 : 1.4;
    return latency;
}

static double
tree_latency_us(const LhNcclGroup *g, LhNcclProtocol protocol)
{
    const double intra = hop_us[g->nvlink ? HW_NVLINK : HW_PCI][LH_NCCL_TREE][protocol];
    const double depth = (double)(63 - __builtin_clzll(g->nodes));
    const uint64_t local = g->ranks / g->nodes; /* ranks per node */

    return base_us[LH_NCCL_TREE][protocol] +
           2 * ((double)(local - 1) * intra + depth * hop_us[HW_NET][LH_NCCL_TREE][protocol]);
}

/* LL128 needs 128-byte stores that arrive whole: NVLink, and GPUs that NVIDIA tested. */
static bool
is_allowed(const LhNcclGroup *g, LhNcclAlgorithm algorithm, LhCollectiveKind kind,
           LhNcclProtocol protocol)
{
    const uint64_t c = g->compute_capability;

    if (algorithm == LH_NCCL_TREE && kind != LH_COLL_ALL_REDUCE)
        return false;
    return protocol != LH_NCCL_LL128 || (g->nvlink && (c == 70 || c == 80 || c == 90 || c == 100));
}

/* The latency part; @bytes of the whole vector. */
static double
latency_s(const LhNcclGroup *g, LhNcclChoice by, LhCollectiveKind kind, uint64_t bytes)
{
    const double latency_us = by.algorithm == LH_NCCL_RING
                                  ? ring_latency_us(g, kind, by.protocol, bytes)
                                  : tree_latency_us(g, by.protocol);

    return latency_us / G_USEC_PER_SEC;
}

static double
seconds_of(const LhNcclGroup *g, LhNcclChoice by, LhCollectiveKind kind, uint64_t bytes)
{
    const uint64_t lines = MAX(bytes >> 6, 1);
    const int size = 63 - __builtin_clzll(lines);
    const double bandwidth =
        by.algorithm == LH_NCCL_RING
            ? ring_bandwidth(g, kind, by.protocol)
            : tree_bandwidth(g, by.protocol) *
                  (size < CORRECTIONS ? tree_correction[by.protocol][size] : 1);

    return latency_s(g, by, kind, bytes) + (double)bytes / (bandwidth * GIGA);
}

/* Bytes of the whole vector, from the bytes per rank. */
static uint64_t
vector_bytes(const LhNcclGroup *g, LhCollectiveKind kind, uint64_t shard_bytes)
{
    return kind == LH_COLL_BROADCAST ? shard_bytes : shard_bytes * g->ranks;
}

double
lh_nccl_latency_s(const LhNcclGroup *g, LhCollectiveKind kind, uint64_t shard_bytes,
                  LhNcclChoice choice)
{
    return latency_s(g, choice, kind, vector_bytes(g, kind, shard_bytes));
}

double
lh_nccl_seconds(const LhNcclGroup *g, LhCollectiveKind kind, uint64_t shard_bytes,
                LhNcclChoice *choice)
{
    const uint64_t bytes = vector_bytes(g, kind, shard_bytes);
    double least = INFINITY;

    g_assert(kind != LH_COLL_ALL_TO_ALL);
    if (g->ranks == 1)
        return 0;
    for (int a = 0; a < LH_NCCL_ALGORITHMS; a++)
        for (int p = 0; p < LH_NCCL_PROTOCOLS; p++) {
            const LhNcclChoice by = { (LhNcclAlgorithm)a, (LhNcclProtocol)p };
            double seconds;

            if (!is_allowed(g, by.algorithm, kind, by.protocol))
                continue;
            seconds = seconds_of(g, by, kind, bytes);
            if (seconds >= least)
                continue;
            least = seconds;
            if (choice != NULL)
                *choice = by;
        }
    return least;
}
