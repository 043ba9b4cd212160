/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NICs of a node: how many carry GPU traffic, their bandwidth and latency, and the bandwidth of
 * collectives over all of them. Left out: NICs that are not alike.
 */
#include "import/cluster/topology_private.h"

#include "base/error.h"

#include <math.h>

#define WIRE_SLACK 1.02 /* tolerance for rounding of a measured rate above the wire's */
#define PAIR_SHARE 0.9  /* a pair of GPUs is slower than a NIC if below this share of it */

bool
lh_tool_has_nics(const LhToolDraft *d)
{
    static const LhToolKind kinds[] = { LH_TOOL_NICS,       LH_TOOL_NIC_RATE,   LH_TOOL_NIC_LATENCY,
                                        LH_TOOL_ROUTE_RATE, LH_TOOL_RINGS_RATE, LH_TOOL_NODES };

    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (lh_tool_of(d, kinds[i]) != NULL)
            return true;
    }
    return d->params->change.nics > 0 || d->params->change.nic_rate > 0 ||
           (d->params->base != NULL && d->params->base->nics_per_node > 0);
}

/* --- NICs ---------------------------------------------------------------------------------------
 */

static bool
check_wire(const LhToolDraft *d, GError **error)
{
    const LhToolOutput *wire = lh_tool_of(d, LH_TOOL_NIC_WIRE),
                       *rate = lh_tool_of(d, LH_TOOL_NIC_RATE);
    g_autofree char *more = NULL;
    g_autofree char *limit = NULL;

    if (d->params->change.nic_rate > 0 || wire == NULL || rate == NULL ||
        rate->value <= WIRE_SLACK * wire->value)
        return true;
    more = lh_format_bandwidth(rate->value);
    limit = lh_format_bandwidth(wire->value);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: the bandwidth of a NIC is %s here, more than its wire's rate, %s in "
                "%s; give files that agree",
                rate->place, more, limit, wire->place);
    return false;
}

/* Latency of a NIC: that of a route without the PCIe or NVLink part, which every route has as
 * well. */
static LhToolFound
find_nic_latency(const LhToolDraft *d)
{
    const LhToolOutput *route = lh_tool_of(d, LH_TOOL_ROUTE_LATENCY);
    const LhLinkClass *via = d->t.pcie.bandwidth > 0 ? &d->t.pcie : &d->t.nvlink;
    LhToolFound latency = lh_tool_take(route != NULL ? route : lh_tool_of(d, LH_TOOL_NIC_LATENCY));

    if (route == NULL && latency.source != NULL) {
        g_autofree char *text = g_strconcat(latency.source, ", without what NCCL adds", NULL);

        latency.source = latency.shown = g_string_chunk_insert(d->strings, text);
    }
    if (route != NULL && via->bandwidth > 0)
        latency.value = fmax(latency.value - (double)via->latency_ps / (double)LH_PS_PER_S, 0);
    return latency;
}

/* Joint bandwidth of the NICs of one GPU, which count as one. */
static LhToolFound
join_nics(const LhToolDraft *d, const LhToolOutput *one)
{
    const LhToolOutput *joined = lh_tool_of(d, LH_TOOL_NICS_JOINED);
    LhToolFound found = lh_tool_take(one);

    if (joined != NULL && joined->value > 1 && one != lh_tool_of(d, LH_TOOL_ROUTE_RATE)) {
        g_autofree char *source =
            g_strdup_printf("%.0f NICs of each GPU as one, of %s", joined->value, one->source);

        found.value *= joined->value;
        found.source = found.shown = g_string_chunk_insert(d->strings, source);
    }
    return found;
}

static LhToolFound
find_nic_rate(const LhToolDraft *d)
{
    static const LhToolKind kinds[] = { LH_TOOL_NIC_RATE, LH_TOOL_ROUTE_RATE, LH_TOOL_NIC_WIRE };
    const LhToolFound given = lh_tool_take_option(d->params->change.nic_rate, "--nic-rate");

    for (guint i = 0; given.source == NULL && i < G_N_ELEMENTS(kinds); i++) {
        if (lh_tool_of(d, kinds[i]) != NULL) {
            LhToolFound found = join_nics(d, lh_tool_of(d, kinds[i]));

            if (kinds[i] == LH_TOOL_NIC_WIRE)
                found.value *= LH_PORT_REACHED_PERCENT / 100.0;
            return found;
        }
    }
    return given;
}

/* Sets the bandwidth of one pair of GPUs if it is below that of a NIC. */
static void
fill_pair(LhToolDraft *d)
{
    const LhToolOutput *route = lh_tool_of(d, LH_TOOL_ROUTE_RATE);
    const LhTopology *base = d->params->base;

    if (route != NULL && route->value < PAIR_SHARE * d->t.nic.bandwidth) {
        d->t.nic.pair_p2p = route->value;
        lh_tool_note(d, "node.nics.pair_p2p", lh_format_bandwidth(route->value),
                     (int)route->provenance, route->source);
    } else if (route == NULL && base != NULL && base->nic.pair_p2p <= d->t.nic.bandwidth) {
        d->t.nic.pair_p2p = base->nic.pair_p2p;
    }
    if (base != NULL && base->nic.pair_collective <= d->t.nic.bandwidth)
        d->t.nic.pair_collective = base->nic.pair_collective;
    if (base != NULL)
        d->t.nic_overhead_ps = base->nic_overhead_ps;
}

/* Whether each GPU has the NIC of the default mapping. */
static bool
is_spread(const GArray *of_gpu, uint64_t nics)
{
    for (guint g = 0; g < of_gpu->len; g++) {
        if (g_array_index(of_gpu, uint64_t, g) != g * nics / of_gpu->len)
            return false;
    }
    return true;
}

/* Applies the mapping of one host to all hosts of the node. */
static void
take_nic_of_gpu(LhToolDraft *d, const LhToolOutput *nics)
{
    const GArray *told = d->told->nic_of_gpu;
    g_autoptr(GString) text = g_string_new(NULL);

    if (is_spread(told, (uint64_t)nics->value))
        return;
    for (uint64_t gpu = 0; gpu < d->t.gpus_per_node; gpu++) {
        const uint64_t nic = g_array_index(told, uint64_t, gpu % told->len) +
                             gpu / told->len * (uint64_t)nics->value;

        g_array_append_val(d->nic_of_gpu, nic);
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, gpu > 0 ? "," : "", nic);
    }
    d->t.nic_of_gpu = d->nic_of_gpu;
    lh_tool_note(d, "node.nics.of_gpu", g_string_free(g_steal_pointer(&text), FALSE), -1,
                 nics->source);
}

/* Sets the NIC of each GPU: from files, or from a base with as many of both; --nics uses the
 * default mapping. */
static bool
find_whose_nics(LhToolDraft *d, const LhToolOutput *nics)
{
    const LhTopology *base = d->params->base;
    const GArray *told = d->told->nic_of_gpu;
    const bool is_told = d->params->change.nics == 0 && nics != NULL && told != NULL &&
                         told->len * d->trays == d->t.gpus_per_node;
    const bool is_base = !is_told && base != NULL && base->nics_per_node == d->t.nics_per_node &&
                         base->gpus_per_node == d->t.gpus_per_node;

    if (is_told)
        take_nic_of_gpu(d, nics);
    else if (is_base)
        d->t.nic_of_gpu = base->nic_of_gpu;
    return d->params->change.nics > 0 || is_told || is_base ||
           (d->t.nics_per_node <= d->t.gpus_per_node &&
            d->t.gpus_per_node % d->t.nics_per_node == 0);
}

static bool
refuse_nic_count(const LhToolDraft *d, GError **error)
{
    const LhToolOutput *nics = lh_tool_of(d, LH_TOOL_NICS), *gpus = lh_tool_of(d, LH_TOOL_GPUS);
    g_autofree char *divisors = lh_topology_divisors(d->t.gpus_per_node);
    const char *who = nics != NULL ? nics->place : d->params->base->name;

    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%" G_GUINT64_FORMAT " NICs (%s) do not divide the %" G_GUINT64_FORMAT
                " GPUs of a node (%s), and no file tells which GPUs share one: give the number of "
                "NICs that carry GPU traffic with --nics N and the bandwidth of each with "
                "--nic-rate; allowed without: %s",
                d->t.nics_per_node, who, d->t.gpus_per_node,
                gpus != NULL ? gpus->place : d->params->base->name, divisors);
    return false;
}

static bool
fill_nic_count(LhToolDraft *d, GError **error)
{
    const LhToolOutput *nics = lh_tool_of(d, LH_TOOL_NICS);
    const LhTopology *base = d->params->base;
    const uint64_t given = d->params->change.nics;

    if (given == 0 && nics == NULL && (base == NULL || base->nics_per_node == 0))
        return lh_tool_missing("node.nics.count",
                               "nvidia-smi topo -m and NCCL's topology XML give it if some NICs "
                               "are nearer to GPUs than others, as does --nics N",
                               error);
    if (given > 0) {
        d->t.nics_per_node = given;
        lh_tool_note(d, "node.nics.count", g_strdup_printf("%" G_GUINT64_FORMAT, given), -1,
                     "--nics");
    } else {
        d->t.nics_per_node = nics != NULL ? (uint64_t)nics->value * d->trays : base->nics_per_node;
        lh_tool_note_count(d, "node.nics.count", d->t.nics_per_node, nics);
    }
    return find_whose_nics(d, nics) || refuse_nic_count(d, error);
}

/* Checks that NICs are alike, or that options say how to treat them: a topology file has no NICs of
 * different speeds, and at most one per GPU. */
static bool
check_alike(const LhToolDraft *d, const LhToolFound *rate, GError **error)
{
    const LhToolOutput *joined = lh_tool_of(d, LH_TOOL_NICS_JOINED);
    const LhTopologyChange *change = &d->params->change;

    if (d->told->unlike_nics != NULL && (change->nics == 0 || rate->source == NULL)) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s; all NICs of a topology file are alike: give the number of NICs that carry "
                    "GPU traffic with --nics N and the bandwidth of each with --nic-rate",
                    d->told->unlike_nics);
        return false;
    }
    if (joined == NULL || joined->value == 1 || rate->source != NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: %.0f NICs are nearest to each GPU, and no file gives the bandwidth of "
                "one; a topology file has at most one NIC per GPU: give a run of ib_write_bw over "
                "one of them, or with --nic-rate the joint bandwidth of a GPU's NICs",
                joined->place, joined->value);
    return false;
}

/* Rejects a run on several hosts: those of one NVLink domain send over NVLink, those of two over
 * NICs. */
static bool
refuse_trays(const LhToolOutput *measured, GError **error)
{
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: a run on several hosts, which may be trays of one NVLink domain or of "
                "several; leave it out, and give ib_write_bw or --nic-rate for NICs",
                measured->place);
    return false;
}

bool
lh_tool_fill_nics(LhToolDraft *d, GError **error)
{
    static const LhToolLinkText text = {
        "node.nics",
        "node.nics.bandwidth",
        "node.nics.latency",
        "ib_write_bw, sendrecv_perf on two hosts and NCCL's topology XML give it, as does "
        "--nic-rate",
        "sendrecv_perf -b 8 on two hosts gives it, as does ib_write_lat",
        LH_TOOL_OTHER_CTAS,
        LH_TOOL_NIC_LATENCY_S,
    };
    const LhTopology *base = d->params->base;
    const LhToolFound rate = find_nic_rate(d);

    if (!lh_tool_has_nics(d))
        return true;
    if (d->trays > 1 &&
        (lh_tool_of(d, LH_TOOL_ROUTE_RATE) != NULL || lh_tool_of(d, LH_TOOL_ROUTE_LATENCY) != NULL))
        return refuse_trays(lh_tool_of(d, LH_TOOL_ROUTE_RATE) != NULL
                                ? lh_tool_of(d, LH_TOOL_ROUTE_RATE)
                                : lh_tool_of(d, LH_TOOL_ROUTE_LATENCY),
                            error);
    if (!check_wire(d, error) || !check_alike(d, &rate, error) || !fill_nic_count(d, error) ||
        !lh_tool_fill_link(d, &d->t.nic, base != NULL ? &base->nic : NULL, &text,
                           (LhToolFoundLink){ rate, find_nic_latency(d) }, error))
        return false;
    fill_pair(d);
    if (base != NULL && rate.source == NULL && d->params->change.nics == 0)
        d->t.slower_nodes = base->slower_nodes;
    return true;
}

/* --- collectives --------------------------------------------------------------------------------
 */

bool
lh_tool_fill_rings(LhToolDraft *d, GError **error)
{
    const LhToolOutput *rings = lh_tool_of(d, LH_TOOL_RINGS_RATE);
    const LhTopology *base = d->params->base;
    const double nics = (double)d->t.nics_per_node * d->t.nic.bandwidth; /* nocheck:unit: bytes/s */

    if (rings == NULL) {
        d->t.collective_bandwidth = base != NULL ? base->collective_bandwidth : 0;
        d->t.collective_from = base != NULL ? base->collective_from : (LhEvidence){ 0 };
        return true;
    }
    if (d->trays > 1)
        return refuse_trays(rings, error);
    if (rings->ranks != d->t.gpus_per_node) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: %" G_GUINT64_FORMAT " ranks ran on each host, which has %" //
                    G_GUINT64_FORMAT " GPUs; give a run on all GPUs of its hosts",
                    rings->place, rings->ranks, d->t.gpus_per_node);
        return false;
    }
    d->t.nic.pair_collective = 0;
    if (rings->value >= nics)
        return true;
    d->t.collective_bandwidth = rings->value;
    d->t.collective_from = (LhEvidence){ (int)rings->provenance, rings->source };
    lh_tool_note(d, "node.collectives.bandwidth", lh_format_bandwidth(rings->value),
                 (int)rings->provenance, rings->source);
    return true;
}
