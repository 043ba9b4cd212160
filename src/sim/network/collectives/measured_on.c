/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/collectives/measured_on.h"

#include "sim/network/pcie.h"

#define LINK_FIELDS(owner, member)                                                                 \
    { .name = "bandwidth",                                                                         \
      .type = LH_FIELD_UNIT,                                                                       \
      .unit = LH_UNIT_BANDWIDTH,                                                                   \
      .offset = offsetof(owner, member.bandwidth),                                                 \
      .flags = LH_FIELD_REQUIRED,                                                                  \
      .min = LH_BANDWIDTH_MIN,                                                                     \
      .max = LH_BANDWIDTH_MAX,                                                                     \
      .description = "Bandwidth of transfers there in each direction." },                          \
    {                                                                                              \
        .name = "latency", .type = LH_FIELD_UNIT, .unit = LH_UNIT_TIME,                            \
        .offset = offsetof(owner, member.latency_ps), .flags = LH_FIELD_REQUIRED, .min = 0,        \
        .max = LH_LATENCY_MAX_S, .description = "Latency of such a link there."                    \
    }

static const LhField measured_scale_up_fields[] = {
    LINK_FIELDS(LhMeasuredOn, scale_up),
    { .name = NULL },
};

static const LhField measured_level_fields[] = {
    { .name = "name",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhMeasuredLevel, name),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = LH_TOPOLOGY_TEXT_MAX,
      .description = "Name of a level of \"node.pcie.levels\"." },
    LH_PCIE_RATE("up", LhMeasuredLevel, up,
                 "Bandwidth of a group's uplink there; never the limit if absent."),
    LH_PCIE_LATENCY(LhMeasuredLevel, "Latency of the level there; 0 if absent."),
    { .name = NULL },
};

static const LhField measured_host_fields[] = {
    LH_PCIE_RATE("per_gpu", LhMeasuredOn, tree.per_gpu,
                 "Bandwidth of each GPU through memory there; its own link's rate if absent."),
    LH_PCIE_RATE(
        "bandwidth", LhMeasuredOn, tree.memory,
        "Bandwidth of all messages through one memory together there; never the limit if absent."),
    { .name = "gpus",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhMeasuredOn, tree.memory_gpus),
      .min = 1,
      .max = UINT32_MAX,
      .description =
          "Number of consecutive GPUs that shared one memory there; all of the node if absent." },
    { .name = NULL },
};

static const LhField measured_pcie_fields[] = {
    LINK_FIELDS(LhMeasuredOn, pcie),
    { .name = "levels",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhMeasuredOn, levels),
      .min = 1,
      .max = LH_PCIE_LEVELS_MAX,
      .fields = measured_level_fields,
      .element_size = sizeof(LhMeasuredLevel),
      .description = "The node's levels, with their values there." },
    { .name = "p2p",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhMeasuredOn, p2p),
      .min = 1,
      .max = LH_TOPOLOGY_TEXT_MAX,
      .description = "How far GPUs reached each other directly there; \"node\" if absent." },
    { .name = "p2p_two",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhMeasuredOn, tree.p2p_two),
      .description = "Whether the GPUs of a communicator of two did so regardless of \"p2p\"; "
                     "false if absent." },
    { .name = "host",
      .type = LH_FIELD_OBJECT,
      .offset = 0,
      .fields = measured_host_fields,
      .description = "Transfers through memory there." },
    { .name = NULL },
};

const LhField lh_measured_on_fields[] = {
    { .name = "scale_up",
      .type = LH_FIELD_OBJECT,
      .offset = 0,
      .fields = measured_scale_up_fields,
      .description = "Links between the GPUs of a node." },
    { .name = "pcie",
      .type = LH_FIELD_OBJECT,
      .offset = 0,
      .fields = measured_pcie_fields,
      .description = "PCIe links of the GPUs." },
    { .name = NULL },
};

static GArray *
levels_of(const LhPcieRates *tree)
{
    GArray *levels = g_array_new(FALSE, FALSE, sizeof(LhMeasuredLevel));

    for (uint32_t i = 0; i < LH_PCIE_LEVELS_MAX && tree->names[i] != NULL; i++) {
        const LhMeasuredLevel level = { (char *)(guintptr)tree->names[i], tree->up[i],
                                        tree->latency_ps[i] };

        g_array_append_val(levels, level);
    }
    if (levels->len == 0)
        g_clear_pointer(&levels, g_array_unref);
    return levels;
}

static bool
is_same_link(const LhMeasuredLink *a, const LhMeasuredLink *b)
{
    return a->bandwidth == b->bandwidth && a->latency_ps == b->latency_ps;
}

static bool
is_same_tree(const LhPcieRates *a, const LhPcieRates *b)
{
    bool same = a->per_gpu == b->per_gpu && a->memory == b->memory &&
                a->memory_gpus == b->memory_gpus && a->reach == b->reach &&
                a->p2p_two == b->p2p_two;

    for (uint32_t i = 0; i < LH_PCIE_LEVELS_MAX; i++)
        same = same && a->up[i] == b->up[i] && a->latency_ps[i] == b->latency_ps[i];
    return same;
}

static bool
is_said(const LhMeasuredOn *on, const LhMeasuredOn *of_node)
{
    if (on->scale_up.bandwidth == 0 && on->pcie.bandwidth == 0)
        return false;
    return of_node == NULL || !is_same_link(&on->scale_up, &of_node->scale_up) ||
           !is_same_link(&on->pcie, &of_node->pcie) || !is_same_tree(&on->tree, &of_node->tree);
}

static void
say_tree(LhMeasuredOn *said, const LhPcieRates *tree)
{
    said->levels = levels_of(tree);
    if (tree->reach != LH_PCIE_NODE)
        said->p2p = (char *)(guintptr)lh_pcie_p2p_word(tree);
    said->tree.p2p_two = tree->p2p_two;
    if (tree->per_gpu == 0 && tree->memory == 0)
        return;
    said->tree.per_gpu = tree->per_gpu;
    said->tree.memory = tree->memory;
    said->tree.memory_gpus = tree->memory_gpus;
}

LhMeasuredOn
lh_measured_on_said(const LhMeasuredOn *on, const LhMeasuredOn *of_node)
{
    LhMeasuredOn said = { .levels = NULL };

    if (!is_said(on, of_node))
        return said;
    if (on->scale_up.bandwidth > 0)
        said.scale_up = on->scale_up;
    if (on->pcie.bandwidth > 0) {
        said.pcie = on->pcie;
        say_tree(&said, &on->tree);
    }
    return said;
}
