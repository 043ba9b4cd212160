/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/setup_cluster.h"

#include "base/error.h"
#include "scenario/config_check.h"
#include "scenario/profile.h"
#include "scenario/setup_inputs.h"
#include "scenario/setup_model.h"

#include <string.h>

/* A name may be a path that contains colons: only digits after the last one are a number of
 * nodes. */
bool
lh_setup_cluster_has_nodes(const char *text)
{
    const char *colon = strrchr(text, ':');

    return colon != NULL && strchr(colon, '/') == NULL;
}

static bool
split_cluster(const LhScenario *s, const char *text, char **name, uint64_t *nodes, GError **error)
{
    const char *colon = strrchr(text, ':');

    *nodes = 0;
    if (!lh_setup_cluster_has_nodes(text)) {
        *name = g_strdup(text);
        return true;
    }
    if (!g_ascii_string_to_unsigned(colon + 1, 10, 1, UINT16_MAX, nodes, NULL))
        return lh_scenario_error(s, "cluster", error,
                                 "\"%s\" is not a number of nodes; allowed: NAME or NAME:NODES, 1 "
                                 "to 65535 nodes",
                                 colon + 1);
    *name = g_strndup(text, (gsize)(colon - text));
    return true;
}

static bool
load_cluster(LhSetup *setup, const char *name, GError **error)
{
    const LhScenario *s = setup->scenario;

    if (!lh_setup_check_name(s, "cluster", "topologies", name, error))
        return false;
    setup->topology = lh_topology_load(name, error);
    if (setup->topology == NULL)
        return false;
    lh_setup_add_input(setup, "cluster", "topologies", name, setup->topology->sha256);
    setup->device = lh_device_load(setup->topology->device_name, error);
    if (setup->device == NULL)
        return false;
    lh_setup_add_input(setup, "device", "devices", setup->topology->device_name,
                       setup->device->sha256);
    return true;
}

static bool
overlay_profile(LhSetup *setup, GError **error)
{
    g_autoptr(LhProfile) profile = NULL;

    if (setup->scenario->profile == NULL)
        return true;
    profile = lh_profile_load(setup->scenario->profile, error);
    if (profile == NULL)
        return false;
    lh_setup_add_input(setup, "profile", NULL, setup->scenario->profile, profile->sha256);
    return lh_profile_apply(profile, setup->device, setup->topology, error);
}

/* Applies the scenario's changes after the profile, which they override. */
static bool
change_cluster(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;
    const char *field;
    g_autofree char *reason = lh_topology_change_refusal(&s->change, setup->topology, &field);

    if (reason != NULL)
        return lh_scenario_error(s, field, error, "%s", reason);
    lh_topology_change(setup->topology, &s->change);
    return true;
}

char *
lh_setup_refusal_of_cluster(const LhScenario *scenario, const char *text)
{
    g_autofree char *name = NULL;
    g_autofree char *reason = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) topology = NULL;
    const char *field;
    uint64_t nodes;

    if (!split_cluster(scenario, text, &name, &nodes, NULL))
        return NULL;
    topology = lh_topology_load(name, NULL);
    if (topology == NULL)
        return NULL;
    reason = lh_topology_change_refusal(&scenario->change, topology, &field);
    if (reason == NULL)
        return NULL;
    lh_scenario_error(scenario, field, &error, "%s", reason);
    return g_strdup(error->message);
}

/* Selects the named library on the device, or drops all curves of forward attention but those of
 * the named kernel. */
static bool
choose_attention(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;
    GArray *kernels = setup->device->kernels;
    bool found = false;

    if (s->attention_kernel == NULL)
        return true;
    if (lh_attention_has(setup->device, s->attention_kernel)) {
        lh_device_use_library(setup->device, s->attention_kernel);
        return true;
    }
    for (guint i = 0; i < kernels->len; i++)
        found |= strcmp(g_array_index(kernels, LhKernelRate, i).kernel, s->attention_kernel) == 0;
    if (!found || lh_kernels[lh_kernel_find(s->attention_kernel)]->effect != LH_EFFECT_ATTEND)
        return lh_scenario_error(s, "attention_kernel", error,
                                 "the device %s has no library %s and no curve of a kernel of this "
                                 "name for forward attention",
                                 setup->device->name, s->attention_kernel);
    lh_device_use_library(setup->device, NULL);
    for (guint i = kernels->len; i-- > 0;) {
        const char *name = g_array_index(kernels, LhKernelRate, i).kernel;

        if (strcmp(name, s->attention_kernel) != 0 &&
            lh_kernels[lh_kernel_find(name)]->effect == LH_EFFECT_ATTEND)
            lh_device_drop_curve(setup->device, i);
    }
    return true;
}

/* Computes ranks and nodes from those that are given. */
static bool
size_cluster(const LhSetup *setup, uint64_t nodes_given, uint64_t *nodes, uint64_t *ranks,
             GError **error)
{
    const LhTopology *t = setup->topology;
    const uint64_t ranks_given =
        setup->program != NULL ? lh_program_ranks(setup->program) : setup->scenario->ranks;
    const char *blame = lh_scenario_has(setup->scenario, "ranks") ? "ranks" : "cluster";

    if (nodes_given != 0)
        *nodes = nodes_given;
    else if (ranks_given != 0)
        *nodes = (ranks_given + t->gpus_per_node - 1) / t->gpus_per_node;
    else
        *nodes = MAX(t->max_nodes, 1);
    *ranks = ranks_given != 0 ? ranks_given : *nodes * t->gpus_per_node;
    if (t->max_nodes != 0 && *nodes > t->max_nodes)
        return lh_scenario_error(setup->scenario, blame, error,
                                 "%s has at most %" G_GUINT64_FORMAT " nodes of %" G_GUINT64_FORMAT
                                 " GPUs; this needs %" G_GUINT64_FORMAT " nodes",
                                 t->name, t->max_nodes, t->gpus_per_node, *nodes);
    if (*ranks > LH_RANKS_MAX)
        return lh_scenario_error(setup->scenario, blame, error,
                                 "%" G_GUINT64_FORMAT " ranks; allowed: 1 to %u", *ranks,
                                 LH_RANKS_MAX);
    if (*ranks > *nodes * t->gpus_per_node)
        return lh_scenario_error(setup->scenario, blame, error,
                                 "%" G_GUINT64_FORMAT " ranks do not fit on %" G_GUINT64_FORMAT
                                 " nodes of %" G_GUINT64_FORMAT " GPUs (%s)",
                                 *ranks, *nodes, t->gpus_per_node, t->name);
    return true;
}

bool
lh_setup_build_cluster(LhSetup *setup, uint32_t *ranks_out, GError **error)
{
    const LhScenario *s = setup->scenario;
    g_autofree char *name = NULL;
    uint64_t nodes_given, nodes, ranks;

    setup->cluster_defaulted = s->cluster == NULL;
    setup->model_defaulted = setup->program == NULL && lh_setup_takes_default_model(s);
    if (s->cluster == NULL && s->ranks == 0 && setup->program == NULL &&
        (s->cost < 0 || s->cost == LH_COST_DEVICE)) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "no cluster: give --cluster NAME[:NODES], --ranks P or a scenario file");
        return false;
    }
    if (!split_cluster(s, s->cluster != NULL ? s->cluster : LH_DEFAULT_CLUSTER, &name, &nodes_given,
                       error) ||
        !load_cluster(setup, name, error))
        return false;
    lh_constants_apply(&s->constants, setup->device, setup->topology);
    lh_slow_down(setup->topology, setup->device);
    if (!overlay_profile(setup, error) || !change_cluster(setup, error) ||
        !choose_attention(setup, error) ||
        !size_cluster(setup, nodes_given, &nodes, &ranks, error) ||
        !lh_check_faults(s, nodes, ranks, error))
        return false;
    *ranks_out = (uint32_t)ranks;
    return lh_network_init(&setup->network, setup->topology, (uint32_t)nodes, (uint32_t)ranks,
                           s->link_fault, error);
}

/* The default and `auto`: rings where no communicator exceeds their limit and the topology has no
 * measured times. Fluid collectives and measured times need fair sharing of links. */
LhCollectiveModel
lh_setup_collectives(const LhSetup *setup, LhNetworkModel network_model, uint32_t ranks)
{
    const int asked = setup->scenario->collectives;

    if (asked >= 0 && asked != LH_COLLECTIVES_AUTO)
        return (LhCollectiveModel)asked;
    return network_model == LH_NETWORK_FAIR &&
                   (ranks > LH_RING_MEMBERS_MAX || setup->topology->collective_times != NULL)
               ? LH_COLLECTIVES_AUTO
               : LH_COLLECTIVES_RING;
}
