/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/fabric.h"

#include "base/error.h"
#include "sim/network/topology_change.h"

const LhField lh_fabric_level_fields[] = {
    { .name = "nodes",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhFabricLevel, nodes),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = LH_NODES_MAX,
      .description =
          "Nodes per group: those of a leaf switch, then multiples of the level before." },
    { .name = "oversubscription",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhFabricLevel, oversubscription),
      .flags = LH_FIELD_STATED,
      .min = 1,
      .max = LH_OVERSUBSCRIPTION_MAX,
      .description = "Bandwidth of the links into a group's switches from below over that of its "
                     "uplinks; 1 if absent. The values of all levels multiply." },
    { .name = NULL },
};

void
lh_fabric_level_init(void *level)
{
    ((LhFabricLevel *)level)->oversubscription = 1;
}

uint32_t
lh_fabric_levels_count(const LhTopology *topology)
{
    uint32_t count = 1;

    if (topology->fabric != LH_FABRIC_FAT_TREE)
        return 0;
    while (count < LH_FABRIC_LEVELS_MAX && topology->above[count - 1].nodes > 0)
        count++;
    return count;
}

LhFabricLevel
lh_fabric_level(const LhTopology *topology, uint32_t level)
{
    return level == 0 ? (LhFabricLevel){ topology->nodes_per_leaf, topology->oversubscription }
                      : topology->above[level - 1];
}

double
lh_fabric_oversubscription(const LhTopology *topology, uint32_t level)
{
    double product = topology->oversubscription;

    for (uint32_t i = 0; i < level; i++)
        product *= topology->above[i].oversubscription;
    return product;
}

double
lh_fabric_trunk(const LhTopology *topology, uint32_t level)
{
    return (double)lh_fabric_level(topology, level).nodes * (double)topology->nics_per_node *
           topology->nic.bandwidth / lh_fabric_oversubscription(topology, level);
}

/* Checks that a group consists of several whole groups of the level before, and does not hold all
 * nodes: its trunk would lead nowhere. */
static bool
check_level(const LhJson *json, const LhTopology *t, guint index, GError **error)
{
    const LhFabricLevel *level = &g_array_index(t->fabric_levels, LhFabricLevel, index);
    g_autofree char *path = g_strdup_printf("fabric.levels[%u].nodes", index);

    if (index > 0 && (level->nodes <= level[-1].nodes || level->nodes % level[-1].nodes != 0))
        return lh_json_error(json, path, error,
                             "\"%s\" is %" G_GUINT64_FORMAT
                             "; allowed: a larger multiple of the %" G_GUINT64_FORMAT
                             " nodes of the level before",
                             path, level->nodes, level[-1].nodes);
    return t->max_nodes == 0 || level->nodes < t->max_nodes ||
           lh_json_error(
               json, path, error,
               "\"%s\" is %" G_GUINT64_FORMAT ", and \"max_nodes\" %" G_GUINT64_FORMAT
               ": a group of all nodes has no uplinks; allowed: fewer nodes, or no such level",
               path, level->nodes, t->max_nodes);
}

bool
lh_fabric_read_levels(const LhJson *json, LhTopology *t, GError **error)
{
    static const char *const others[] = { "fabric.nodes_per_leaf", "fabric.oversubscription" };

    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        if (lh_json_has(json, others[i]))
            return lh_json_error(
                json, others[i], error,
                "\"%s\" and \"fabric.levels\" cannot both be given: the first level states it",
                others[i]);
    }
    for (guint i = 0; i < t->fabric_levels->len; i++) {
        if (!check_level(json, t, i, error))
            return false;
    }
    t->nodes_per_leaf = g_array_index(t->fabric_levels, LhFabricLevel, 0).nodes;
    t->oversubscription = g_array_index(t->fabric_levels, LhFabricLevel, 0).oversubscription;
    for (guint i = 1; i < t->fabric_levels->len; i++)
        t->above[i - 1] = g_array_index(t->fabric_levels, LhFabricLevel, i);
    return true;
}
