/* SPDX-License-Identifier: Apache-2.0 */
/* The fabric between nodes: leaves and levels of switches, and the number of nodes. */
#include "import/cluster/topology_private.h"

#include "base/error.h"

#include <string.h>

/* Converts hosts, which Slurm counts, to nodes; with an NVLink domain they are trays. */
static bool
count_nodes(const LhToolDraft *d, const LhToolOutput *hosts, uint64_t *nodes, GError **error)
{
    *nodes = (uint64_t)hosts->value / d->trays;
    if (*nodes * d->trays == (uint64_t)hosts->value)
        return true;
    g_set_error(
        error, LH_ERROR, LH_ERROR_INPUT,
        "%s: error: %.0f hosts are not a whole number of NVLink domains of %" G_GUINT64_FORMAT
        " hosts, as in %s",
        hosts->place, hosts->value, d->trays, d->params->base->name);
    return false;
}

static void
keep_fabric(LhToolDraft *d)
{
    const LhTopology *base = d->params->base;

    d->t.oversubscription = 1;
    if (base == NULL)
        return;
    d->t.fabric = base->fabric;
    d->t.nodes_per_leaf = base->nodes_per_leaf;
    d->t.oversubscription = base->oversubscription;
    memcpy(d->t.above, base->above, sizeof(d->t.above));
    d->t.fabric_levels = base->fabric_levels;
    d->t.switch_latency_ps = base->switch_latency_ps;
    d->t.max_nodes = base->nics_per_node > 0 ? base->max_nodes : 0;
}

/* Checks the fabric "rail": rails are crossed inside a node. */
static bool
check_rail(const LhToolDraft *d, GError **error)
{
    const LhToolOutput *kind = lh_tool_of(d, LH_TOOL_SCALE_UP);

    if (d->t.fabric != LH_FABRIC_RAIL || d->t.nics_per_node < 2 ||
        d->t.scale_up == LH_SCALE_UP_SWITCH || kind == NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: no NVSwitch, which the fabric \"rail\" of %s needs to cross rails; "
                "give a base with another fabric, or a topology.conf",
                kind->place, d->params->base->name);
    return false;
}

/* Checks that the base's other levels still apply, since they group the base's leaves. */
static bool
check_leaves(const LhToolDraft *d, const LhToolOutput *leaf, GError **error)
{
    const LhTopology *base = d->params->base;

    if (d->t.fabric_levels == NULL || d->t.nodes_per_leaf == base->nodes_per_leaf)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: leaves of %" G_GUINT64_FORMAT
                " nodes, but the first of the fabric \"levels\" of %s has %" G_GUINT64_FORMAT
                " nodes; give a base with the same leaves, or one without levels",
                leaf->place, d->t.nodes_per_leaf, base->name, base->nodes_per_leaf);
    return false;
}

bool
lh_tool_fill_fabric(LhToolDraft *d, GError **error)
{
    const LhToolOutput *leaf = lh_tool_of(d, LH_TOOL_NODES_PER_LEAF),
                       *nodes = lh_tool_of(d, LH_TOOL_NODES);
    const double given = d->params->change.oversubscription;
    char digits[G_ASCII_DTOSTR_BUF_SIZE];

    keep_fabric(d);
    if (leaf != NULL) {
        d->t.fabric = LH_FABRIC_FAT_TREE;
        if (!count_nodes(d, leaf, &d->t.nodes_per_leaf, error) || !check_leaves(d, leaf, error))
            return false;
        lh_tool_note(d, "fabric.nodes_per_leaf",
                     g_strdup_printf("%" G_GUINT64_FORMAT, d->t.nodes_per_leaf), -1, leaf->source);
    }
    if (nodes != NULL) {
        if (!count_nodes(d, nodes, &d->t.max_nodes, error))
            return false;
        lh_tool_note(d, "max_nodes", g_strdup_printf("%" G_GUINT64_FORMAT, d->t.max_nodes), -1,
                     nodes->source);
    }
    if (given > 0) {
        d->t.oversubscription = given;
        lh_tool_note(d, "fabric.oversubscription", g_strdup(lh_double_to_text(given, digits)), -1,
                     "--oversubscription");
    }
    if (d->t.nics_per_node == 0)
        d->t.max_nodes = 1;
    return check_rail(d, error);
}
