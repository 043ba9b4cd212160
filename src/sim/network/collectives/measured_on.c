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
      .description = "What transfers reached there in each direction." },                          \
    {                                                                                              \
        .name = "latency", .type = LH_FIELD_UNIT, .unit = LH_UNIT_TIME,                            \
        .offset = offsetof(owner, member.latency_ps), .flags = LH_FIELD_REQUIRED, .min = 0,        \
        .max = LH_LATENCY_MAX_S, .description = "The latency of such a link there."                \
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
      .description = "A level of \"node.pcie.levels\"." },
    LH_PCIE_RATE("up", LhMeasuredLevel, up,
                 "What a group's link outwards carried there; never the limit if absent."),
    LH_PCIE_LATENCY(LhMeasuredLevel, "Its latency there; 0 if absent."),
    { .name = NULL },
};

static const LhField measured_host_fields[] = {
    LH_PCIE_RATE("per_gpu", LhMeasuredOn, tree.per_gpu,
                 "What each GPU reached there through memory; its own link's rate if absent."),
    LH_PCIE_RATE("bandwidth", LhMeasuredOn, tree.memory,
                 "What all messages reached there through one memory; never the limit if absent."),
    { .name = "gpus",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhMeasuredOn, tree.memory_gpus),
      .min = 1,
      .max = UINT32_MAX,
      .description = "GPUs in a row that had one memory; all of the node if absent." },
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
      .description = "The levels that the node has, as they were there." },
    { .name = "p2p",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhMeasuredOn, p2p),
      .min = 1,
      .max = LH_TOPOLOGY_TEXT_MAX,
      .description = "How far GPUs reached each other directly there; \"node\" if absent." },
    { .name = "p2p_two",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhMeasuredOn, tree.p2p_two),
      .description = "Whether communicators of two GPUs did whatever \"p2p\" says; false if "
                     "absent." },
    { .name = "host",
      .type = LH_FIELD_OBJECT,
      .offset = 0,
      .fields = measured_host_fields,
      .description = "The way through memory, as it was there." },
    { .name = NULL },
};

const LhField lh_measured_on_fields[] = {
    { .name = "scale_up",
      .type = LH_FIELD_OBJECT,
      .offset = 0,
      .fields = measured_scale_up_fields,
      .description = "The links between the GPUs of a node." },
    { .name = "pcie",
      .type = LH_FIELD_OBJECT,
      .offset = 0,
      .fields = measured_pcie_fields,
      .description = "The PCIe links of the GPUs." },
    { .name = NULL },
};

static void
write_level(LhJsonWriter *w, const LhPcieRates *tree, uint32_t level)
{
    g_autofree char *up = lh_format_bandwidth(tree->up[level]);
    g_autofree char *latency = lh_format_time(tree->latency_ps[level]);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "name", tree->names[level]);
    if (tree->up[level] > 0)
        lh_jsonw_string(w, "up", up);
    if (tree->latency_ps[level] > 0)
        lh_jsonw_string(w, "latency", latency);
    lh_jsonw_object_end(w);
}

static void
write_tree(LhJsonWriter *w, const LhPcieRates *tree)
{
    g_autofree char *per_gpu = lh_format_bandwidth(tree->per_gpu);
    g_autofree char *memory = lh_format_bandwidth(tree->memory);
    uint32_t count = 0;

    while (count < LH_PCIE_LEVELS_MAX && tree->names[count] != NULL)
        count++;
    if (count > 0) {
        lh_jsonw_array_begin(w, "levels");
        for (uint32_t i = 0; i < count; i++)
            write_level(w, tree, i);
        lh_jsonw_array_end(w);
    }
    if (tree->reach != LH_PCIE_NODE)
        lh_jsonw_string(w, "p2p", lh_pcie_p2p_word(tree));
    if (tree->p2p_two)
        lh_jsonw_bool(w, "p2p_two", true);
    if (tree->per_gpu == 0 && tree->memory == 0)
        return;
    lh_jsonw_object_begin(w, "host");
    if (tree->per_gpu > 0)
        lh_jsonw_string(w, "per_gpu", per_gpu);
    if (tree->memory > 0)
        lh_jsonw_string(w, "bandwidth", memory);
    if (tree->memory_gpus > 0)
        lh_jsonw_uint(w, "gpus", tree->memory_gpus);
    lh_jsonw_object_end(w);
}

static void
write_link(LhJsonWriter *w, const char *key, const LhMeasuredLink *link, const LhPcieRates *tree)
{
    g_autofree char *bandwidth = lh_format_bandwidth(link->bandwidth);
    g_autofree char *latency = lh_format_time(link->latency_ps);

    if (link->bandwidth == 0)
        return;
    lh_jsonw_object_begin(w, key);
    lh_jsonw_string(w, "bandwidth", bandwidth);
    lh_jsonw_string(w, "latency", latency);
    if (tree != NULL)
        write_tree(w, tree);
    lh_jsonw_object_end(w);
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

void
lh_measured_on_write(LhJsonWriter *w, const LhMeasuredOn *on, const LhMeasuredOn *of_node)
{
    if (!is_said(on, of_node))
        return;
    lh_jsonw_object_begin(w, "measured_on");
    write_link(w, "scale_up", &on->scale_up, NULL);
    write_link(w, "pcie", &on->pcie, &on->tree);
    lh_jsonw_object_end(w);
}
