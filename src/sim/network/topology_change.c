/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates are those of transfers, as in a topology file; the wire rate of a NIC is slightly higher.
 * Limits beside a NIC's rate remain: what one pair of GPUs reaches over TCP depends on its sockets,
 * not on the wire.
 */
#include "sim/network/topology_change.h"

#include <string.h>

bool
lh_topology_change_is_empty(const LhTopologyChange *change)
{
    return change->nics == 0 && change->nic_rate == 0 && change->nvlink_rate == 0 &&
           change->oversubscription == 0;
}

char *
lh_topology_divisors(uint64_t number)
{
    GString *text = g_string_new("1");

    for (uint64_t i = 2; i <= number; i++) {
        if (number % i == 0)
            g_string_append_printf(text, ", %" G_GUINT64_FORMAT, i);
    }
    return g_string_free(text, FALSE);
}

/* ---- what cannot be ---- */

/* Reasons that apply to any change of NICs. */
static char *
refuse_any_nics(const LhTopology *t)
{
    g_autofree char *rings = lh_format_bandwidth(t->collective_bandwidth);

    if (t->nics_per_node == 0)
        return g_strdup_printf("%s has no NICs: its file describes a single node", t->name);
    if (t->collective_bandwidth > 0)
        return g_strdup_printf("collectives between nodes of %s reach %s independent of its NICs "
                               "(\"node.collectives\"), so only messages would change; use a "
                               "topology file without this field",
                               t->name, rings);
    return NULL;
}

static char *
refuse_nics(const LhTopologyChange *change, const LhTopology *t)
{
    if (change->nics > t->gpus_per_node)
        return g_strdup_printf("%" G_GUINT64_FORMAT " NICs are more than the %" G_GUINT64_FORMAT
                               " GPUs of a node; allowed: at most one per GPU",
                               change->nics, t->gpus_per_node);
    if (change->nics % lh_topology_hosts(t) != 0)
        return g_strdup_printf("%" G_GUINT64_FORMAT " NICs of a node do not divide among its %" //
                               G_GUINT64_FORMAT " hosts; allowed: a multiple of the hosts",
                               change->nics, lh_topology_hosts(t));
    if (change->nics > 1 && t->fabric == LH_FABRIC_RAIL && t->scale_up != LH_SCALE_UP_SWITCH)
        return g_strdup_printf("the fabric of %s is \"rail\", and only an NVSwitch crosses rails, "
                               "but its nodes have none; allowed: 1",
                               t->name);
    return NULL;
}

static char *
refuse_nic_rate(const LhTopology *t)
{
    return t->slower_nodes == NULL
               ? NULL
               : g_strdup_printf(
                     "the file of %s lists nodes with slower NICs (\"node.nics.slower\"), whose "
                     "rate with other NICs is unknown; use a topology file without this field",
                     t->name);
}

static char *
refuse_nvlink_rate(const LhTopology *t)
{
    return t->scale_up == LH_SCALE_UP_SWITCH || t->scale_up == LH_SCALE_UP_PAIRS
               ? NULL
               : g_strdup_printf("the GPUs of %s have no NVLink", t->name);
}

static char *
refuse_oversubscription(const LhTopology *t)
{
    return t->fabric == LH_FABRIC_FAT_TREE
               ? NULL
               : g_strdup_printf(
                     "%s has no leaf switches with uplinks (\"fabric\"); allowed with a topology "
                     "whose fabric is \"fat-tree\" with a number of nodes per leaf",
                     t->name);
}

char *
lh_topology_change_refusal(const LhTopologyChange *change, const LhTopology *t, const char **field)
{
    char *reason = NULL;

    *field = change->nics > 0 ? "nics" : "nic_rate";
    if (change->nics > 0 || change->nic_rate > 0)
        reason = refuse_any_nics(t);
    if (reason == NULL && change->nics > 0)
        reason = refuse_nics(change, t);
    if (reason == NULL && change->nic_rate > 0) {
        *field = "nic_rate";
        reason = refuse_nic_rate(t);
    }
    if (reason == NULL && change->nvlink_rate > 0) {
        *field = "nvlink_rate";
        reason = refuse_nvlink_rate(t);
    }
    if (reason == NULL && change->oversubscription > 0) {
        *field = "oversubscription";
        reason = refuse_oversubscription(t);
    }
    return reason;
}

/* ---- the change ---- */

/* Replaces the rate, which becomes an assumption. The source of the other numbers remains. */
static void
replace_rate(LhLinkClass *link, double rate, const char *option)
{
    g_autofree char *shown = lh_format_bandwidth(rate);
    g_autofree char *source = link->from.source;
    g_autofree char *whole = g_strdup_printf("bandwidth: %s %s; else: %s", option, shown, source);

    link->bandwidth = rate;
    link->from.provenance = LH_PROVENANCE_ASSUMED;
    link->from.source =
        g_utf8_substring(whole, 0, MIN(g_utf8_strlen(whole, -1), (glong)LH_TOPOLOGY_TEXT_MAX));
}

void
lh_topology_change(LhTopology *t, const LhTopologyChange *change)
{
    if (change->nics > 0 && change->nics != t->nics_per_node) {
        t->nics_per_node = change->nics;
        g_clear_pointer(&t->nic_of_gpu, g_array_unref); /* it maps GPUs to the old number of NICs */
    }
    if (change->nic_rate > 0) {
        replace_rate(&t->nic, change->nic_rate, "--nic-rate");
        t->nic.pair_p2p = MIN(t->nic.pair_p2p, change->nic_rate);
        t->nic.pair_collective = MIN(t->nic.pair_collective, change->nic_rate);
    }
    if (change->nvlink_rate > 0)
        replace_rate(&t->nvlink, change->nvlink_rate, "--nvlink-rate");
    if (change->oversubscription > 0)
        t->oversubscription = change->oversubscription;
}
