/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/collectives/measured.h"

#include "sim/network/collectives/collective_times.h"
#include "sim/network/link_bound.h"

#include <string.h>

/* A table may be faster than its links by this factor: rates in files are rounded, and so are
 * times. */
#define TOLERANCE 1.05

static LhCollectiveTimes *
measured_row(const LhTopology *t, guint i)
{
    return &g_array_index(t->collective_times, LhCollectiveTimes, i);
}

static guint
times_count(const LhTopology *t)
{
    return t->collective_times == NULL ? 0 : t->collective_times->len;
}

static LhCollectiveLines *
lines_at(const LhTopology *t, guint i)
{
    return &g_array_index(t->collective_lines, LhCollectiveLines, i);
}

static guint
lines_count(const LhTopology *t)
{
    return t->collective_lines == NULL ? 0 : t->collective_lines->len;
}

/* ---- links of measured rows ---- */

static void
fill_link(LhMeasuredLink *link, const LhMeasuredLink *of_node, const LhLinkClass *of_file)
{
    if (link->bandwidth > 0)
        return;
    *link = of_node->bandwidth > 0 ? *of_node
                                   : (LhMeasuredLink){ of_file->bandwidth, of_file->latency_ps };
}

static void
fill_measured(LhMeasuredOn *on, const LhTopology *t)
{
    fill_link(&on->scale_up, &t->measured_on.scale_up, &t->nvlink);
    if (on->pcie.bandwidth == 0)
        on->tree = t->measured_on.pcie.bandwidth > 0 ? t->measured_on.tree : t->tree.rates;
    fill_link(&on->pcie, &t->measured_on.pcie, &t->pcie);
}

void
lh_measured_topology(const LhTopology *topology, const LhMeasuredOn *on, LhTopology *reference)
{
    *reference = *topology;
    reference->nvlink.bandwidth = on->scale_up.bandwidth;
    reference->nvlink.latency_ps = on->scale_up.latency_ps;
    reference->pcie.bandwidth = on->pcie.bandwidth;
    reference->pcie.latency_ps = on->pcie.latency_ps;
    reference->tree.rates = on->tree;
}

/* Sets the lower bound of the row from the links that it was measured on. */
static void
bind_row(const LhTopology *t, LhCollectiveTimes *row)
{
    const LhGroup group = { 0, 1, (uint32_t)row->ranks, 0, 1 };
    LhTopology reference;
    LhNetwork network;
    bool ok;

    lh_measured_topology(t, &row->on, &reference);
    ok = lh_network_init(&network, &reference, 1, (uint32_t)t->gpus_per_node, NULL, NULL);
    g_assert(ok); /* one node, with as many ranks as GPUs */
    row->bound_s_per_byte = lh_link_bound_s_per_byte(&network, &group, (LhCollectiveKind)row->op,
                                                     (LhLinkAlgorithm)row->algorithm);
    if (row->op != LH_COLL_ALL_REDUCE || row->algorithm != LH_ALGORITHM_DEFAULT ||
        t->scale_up != LH_SCALE_UP_SWITCH || !lh_collective_times_is_faster(row))
        return;
    row->algorithm = LH_ALGORITHM_NVLS;
    row->bound_s_per_byte =
        lh_link_bound_s_per_byte(&network, &group, LH_COLL_ALL_REDUCE, LH_ALGORITHM_NVLS);
}

void
lh_measured_bind(LhTopology *topology)
{
    for (guint i = 0; i < times_count(topology); i++) {
        LhCollectiveTimes *row = measured_row(topology, i);

        fill_measured(&row->on, topology);
        bind_row(topology, row);
        if (row->reached == 0)
            row->reached = lh_collective_times_reached(row);
    }
    for (guint i = 0; i < lines_count(topology); i++)
        fill_measured(&lines_at(topology, i)->on, topology);
}

/* ---- PCIe trees of measured rows ---- */

static const LhMeasuredLevel *
measured_level(const LhMeasuredOn *on, const char *name)
{
    for (guint i = 0; on->levels != NULL && i < on->levels->len; i++) {
        const LhMeasuredLevel *level = &g_array_index(on->levels, LhMeasuredLevel, i);

        if (strcmp(level->name, name) == 0)
            return level;
    }
    return NULL;
}

/* Checks that names of levels are those of the node, each once. */
static bool
check_level_names(const LhJson *json, const char *path, const LhMeasuredOn *on, const LhTopology *t,
                  GError **error)
{
    for (guint i = 0; on->levels != NULL && i < on->levels->len; i++) {
        const LhMeasuredLevel *level = &g_array_index(on->levels, LhMeasuredLevel, i);
        g_autofree char *at = g_strdup_printf("%s.pcie.levels[%u].name", path, i);
        bool is_there = false;

        for (guint k = 0; k < lh_pcie_levels_count(&t->tree); k++)
            is_there |= strcmp(level->name, t->tree.rates.names[k]) == 0;
        if (!is_there)
            return lh_json_error(json, at, error,
                                 "\"%s\" is \"%s\", which is no level of \"node.pcie.levels\"", at,
                                 level->name);
        if (measured_level(on, level->name) != level)
            return lh_json_error(json, at, error, "\"%s\" is \"%s\", which occurs twice", at,
                                 level->name);
    }
    return true;
}

/* Checks that everything that the node's PCIe has is also stated for the links measured on. */
static bool
check_told(const LhJson *json, const char *path, const LhMeasuredOn *on, const LhTopology *t,
           GError **error)
{
    static const char *const fields[] = { "p2p",          "p2p_two",        "host",
                                          "host.per_gpu", "host.bandwidth", "host.gpus" };
    const LhPcieRates *rates = &t->tree.rates;
    g_autofree char *place = g_strconcat(path, ".pcie", NULL);

    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++) {
        g_autofree char *there = g_strdup_printf("%s.%s", place, fields[i]);
        g_autofree char *here = g_strdup_printf("node.pcie.%s", fields[i]);

        if (lh_json_has(json, here) && !lh_json_has(json, there))
            return lh_json_error(json, place, error,
                                 "missing field \"%s\": the node has \"%s\", so measured times of "
                                 "collectives need its value where they were measured",
                                 there, here);
    }
    for (guint i = 0; i < lh_pcie_levels_count(&t->tree); i++) {
        const LhMeasuredLevel *level = measured_level(on, rates->names[i]);

        if ((rates->up[i] > 0 && (level == NULL || level->up == 0)) ||
            (rates->latency_ps[i] > 0 && (level == NULL || level->latency_ps == 0)))
            return lh_json_error(
                json, place, error,
                "missing field \"%s\" of level \"%s\" in \"%s.levels\": the node has it, so "
                "measured times of collectives need its value where they were measured",
                rates->up[i] > 0 ? "up" : "latency", rates->names[i], place);
    }
    return true;
}

bool
lh_measured_on_read(const LhJson *json, const char *path, LhMeasuredOn *on, const LhTopology *t,
                    GError **error)
{
    LhPcieRates *tree = &on->tree;
    g_autofree char *p2p = g_strconcat(path, ".pcie.p2p", NULL);
    g_autofree char *host = g_strconcat(path, ".pcie.host", NULL);

    if (on->pcie.bandwidth == 0)
        return true;
    tree->reach = LH_PCIE_NODE;
    if (!check_level_names(json, path, on, t, error) || !check_told(json, path, on, t, error) ||
        !lh_pcie_check_host(json, host, tree, t->gpus_per_node, error) ||
        (on->p2p != NULL && !lh_pcie_read_p2p(json, p2p, &t->tree, on->p2p, &tree->reach, error)))
        return false;
    for (guint i = 0; i < lh_pcie_levels_count(&t->tree); i++) {
        const LhMeasuredLevel *level = measured_level(on, t->tree.rates.names[i]);

        tree->names[i] = t->tree.rates.names[i];
        tree->up[i] = level == NULL ? 0 : level->up;
        tree->latency_ps[i] = level == NULL ? 0 : level->latency_ps;
    }
    return true;
}

bool
lh_measured_read(const LhJson *json, LhTopology *topology, GError **error)
{
    if (!lh_measured_on_read(json, "node.measured_on", &topology->measured_on, topology, error))
        return false;
    for (guint i = 0; i < times_count(topology); i++) {
        g_autofree char *at = g_strdup_printf("node.collective_times[%u].measured_on", i);

        if (!lh_measured_on_read(json, at, &measured_row(topology, i)->on, topology, error))
            return false;
    }
    for (guint i = 0; i < lines_count(topology); i++) {
        g_autofree char *at = g_strdup_printf("node.collective_lines[%u].measured_on", i);

        if (!lh_measured_on_read(json, at, &lines_at(topology, i)->on, topology, error))
            return false;
    }
    return true;
}

/* ---- rules ---- */

static bool
refuse_row(const LhJson *json, const char *at, const LhCollectiveTimes *row, uint64_t bytes,
           double efficiency, GError **error)
{
    const LhMeasuredLink *link = row->on.scale_up.bandwidth > 0 ? &row->on.scale_up : &row->on.pcie;
    const double least_us = row->bound_s_per_byte * (double)bytes * G_USEC_PER_SEC;
    g_autofree char *size = lh_format_bytes(bytes);
    g_autofree char *rate = lh_format_bandwidth(link->bandwidth);

    return lh_json_error(
        json, at, error,
        "\"%s\": %s on %" G_GUINT64_FORMAT
        " GPUs takes %.4g us for %s, but the links of %s that it was measured on allow no less "
        "than %.4g us: one of the two is wrong; state the links in \"measured_on\"",
        at, lh_times_op_names[row->op], row->ranks, least_us / efficiency, size, rate, least_us);
}

bool
lh_measured_check(const LhJson *json, const char *path, const LhTopology *topology, GError **error)
{
    for (guint i = 0; i < times_count(topology); i++) {
        g_autofree char *at = g_strdup_printf("%s[%u]", path, i);
        uint64_t bytes = 0;
        const double efficiency = lh_collective_times_efficiency(measured_row(topology, i), &bytes);

        if (efficiency > TOLERANCE)
            return refuse_row(json, at, measured_row(topology, i), bytes, efficiency, error);
    }
    return true;
}

/* ---- rows of another cluster ---- */

static bool
is_same_array(const GArray *a, const GArray *b, guint size)
{
    return a->len == b->len && memcmp(a->data, b->data, (size_t)a->len * size) == 0;
}

/* Links of the equal row of @t; NULL: none. */
static const LhMeasuredOn *
find_times(const LhTopology *t, const LhCollectiveTimes *row)
{
    for (guint i = 0; i < times_count(t); i++) {
        const LhCollectiveTimes *other = measured_row(t, i);

        if (other->op == row->op && other->ranks == row->ranks &&
            is_same_array(other->bytes, row->bytes, sizeof(uint64_t)) &&
            is_same_array(other->us, row->us, sizeof(double)))
            return &other->on;
    }
    return NULL;
}

static bool
is_same_line(const LhCollectiveLine *a, const LhCollectiveLine *b)
{
    return a->base_ps == b->base_ps && a->hop_ps == b->hop_ps && a->bandwidth == b->bandwidth &&
           a->copy == b->copy;
}

static const LhMeasuredOn *
find_lines(const LhTopology *t, const LhCollectiveLines *row)
{
    for (guint i = 0; i < lines_count(t); i++) {
        const LhCollectiveLines *other = lines_at(t, i);

        if (other->op == row->op && is_same_line(&other->ll, &row->ll) &&
            is_same_line(&other->ll128, &row->ll128) && is_same_line(&other->simple, &row->simple))
            return &other->on;
    }
    return NULL;
}

/* @original: links of the equal row of @from; NULL: none. */
static bool
check_same_links(const LhJson *json, const char *at, const LhTopology *t, const LhTopology *from,
                 const LhMeasuredOn *original, GError **error)
{
    const bool up = t->scale_up != LH_SCALE_UP_NONE;
    const LhLinkClass *own = up ? &t->nvlink : &t->pcie;
    g_autofree char *measured = NULL, *latency = NULL, *found = NULL;
    LhMeasuredLink link;

    if (original == NULL)
        return true;
    link = up ? original->scale_up : original->pcie;
    if (link.bandwidth == own->bandwidth)
        return true;
    measured = lh_format_bandwidth(link.bandwidth);
    latency = lh_format_time(link.latency_ps);
    found = lh_format_bandwidth(own->bandwidth);
    return lh_json_error(
        json, at, error,
        "\"%s\" is a row of %s, which was measured on links of %s, but the links here have %s; use "
        "\"schema\": \"longhaul.topology/2\" and put \"measured_on\": {\"%s\": {\"bandwidth\": "
        "\"%s\", \"latency\": \"%s\"}} into \"node\"",
        at, from->name, measured, found, up ? "scale_up" : "pcie", measured, latency);
}

bool
lh_measured_check_copied(const LhJson *json, const LhTopology *topology, const LhTopology *from,
                         GError **error)
{
    for (guint i = 0; i < times_count(topology); i++) {
        g_autofree char *at = g_strdup_printf("node.collective_times[%u]", i);

        if (!check_same_links(json, at, topology, from, find_times(from, measured_row(topology, i)),
                              error))
            return false;
    }
    for (guint i = 0; i < lines_count(topology); i++) {
        g_autofree char *at = g_strdup_printf("node.collective_lines[%u]", i);

        if (!check_same_links(json, at, topology, from, find_lines(from, lines_at(topology, i)),
                              error))
            return false;
    }
    return true;
}

/* ---- better knowledge of the same links ---- */

static void
follow_link(LhMeasuredLink *link, const LhLinkClass *now, const LhLinkClass *before)
{
    if (link->bandwidth == before->bandwidth)
        link->bandwidth = now->bandwidth;
    if (link->latency_ps == before->latency_ps)
        link->latency_ps = now->latency_ps;
}

static void
follow_rate(double *rate, double now, double before)
{
    if (*rate == before)
        *rate = now;
}

static void
follow_levels(LhPcieRates *tree, const LhPcieRates *now, const LhPcieRates *before)
{
    for (uint32_t i = 0; i < LH_PCIE_LEVELS_MAX; i++) {
        follow_rate(&tree->up[i], now->up[i], before->up[i]);
        if (tree->latency_ps[i] == before->latency_ps[i])
            tree->latency_ps[i] = now->latency_ps[i];
    }
    follow_rate(&tree->per_gpu, now->per_gpu, before->per_gpu);
    follow_rate(&tree->memory, now->memory, before->memory);
}

static void
follow_measured(LhMeasuredOn *on, const LhTopology *now, const LhTopology *before)
{
    follow_link(&on->scale_up, &now->nvlink, &before->nvlink);
    follow_link(&on->pcie, &now->pcie, &before->pcie);
    follow_levels(&on->tree, &now->tree.rates, &before->tree.rates);
}

void
lh_measured_follow(LhTopology *topology, const LhTopology *before)
{
    for (guint i = 0; i < times_count(topology); i++)
        follow_measured(&measured_row(topology, i)->on, topology, before);
    for (guint i = 0; i < lines_count(topology); i++)
        follow_measured(&lines_at(topology, i)->on, topology, before);
    lh_measured_bind(topology);
}

/* ---- scaled rows ---- */

static bool
is_in_node(const LhLinkFault *fault)
{
    return fault->tier == LH_TIER_NVLINK || fault->tier == LH_TIER_PCIE;
}

bool
lh_measured_is_scaled(const LhNetwork *network)
{
    const LhTopology *t = network->topology;

    for (guint i = 0; i < times_count(t); i++) {
        const LhCollectiveTimes *row = measured_row(t, i);
        const LhGroup group = { 0, 1, (uint32_t)row->ranks, 0, 1 };

        if (row->ranks > MIN(network->ranks, network->gpus_per_node))
            continue;
        if (lh_link_bound_s_per_byte(network, &group, (LhCollectiveKind)row->op,
                                     (LhLinkAlgorithm)row->algorithm) != row->bound_s_per_byte)
            return true;
    }
    for (guint i = 0; times_count(t) > 0 && network->faults != NULL && i < network->faults->len;
         i++) {
        if (is_in_node(&g_array_index(network->faults, LhLinkFault, i)))
            return true;
    }
    return false;
}
