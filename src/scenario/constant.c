/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Efficiencies are at most 1 and slowdowns at least 1: a fit beyond that has another cause.
 */
#include "scenario/constant.h"

#include <string.h>

const char *const lh_constant_names[] = {
    "attention_slowdown", "product_slowdown",
    "linear_efficiency",  "matrix_efficiency",
    "memory_efficiency",  "nvlink_bandwidth",
    "nic_bandwidth",      "collective_bandwidth",
    "fsdp_overhead_s",    NULL,
};

G_STATIC_ASSERT(G_N_ELEMENTS(lh_constant_names) == LH_CONSTANTS + 1);

#define OF_DEVICE(member, least, most)                                                             \
    {                                                                                              \
        (least), (most), LH_OWNER_DEVICE, offsetof(LhDevice, member)                               \
    }
#define OF_TOPOLOGY(member, least, most)                                                           \
    {                                                                                              \
        (least), (most), LH_OWNER_TOPOLOGY, offsetof(LhTopology, member)                           \
    }
#define OF_FRAMEWORK(member, least, most)                                                          \
    {                                                                                              \
        (least), (most), LH_OWNER_FRAMEWORK, offsetof(LhFramework, member)                         \
    }

const LhConstantRange lh_constant_ranges[LH_CONSTANTS] = {
    [LH_CONSTANT_ATTENTION_SLOWDOWN] = OF_TOPOLOGY(attention_slowdown, 1, LH_SLOWDOWN_MAX),
    [LH_CONSTANT_PRODUCT_SLOWDOWN] = OF_TOPOLOGY(product_slowdown, 1, LH_SLOWDOWN_MAX),
    [LH_CONSTANT_LINEAR_EFFICIENCY] = OF_DEVICE(linear_efficiency, LH_EFFICIENCY_MIN, 1),
    [LH_CONSTANT_MATRIX_EFFICIENCY] = OF_DEVICE(matrix_efficiency, LH_EFFICIENCY_MIN, 1),
    [LH_CONSTANT_MEMORY_EFFICIENCY] = OF_DEVICE(memory_efficiency, LH_EFFICIENCY_MIN, 1),
    [LH_CONSTANT_NVLINK_BANDWIDTH] =
        OF_TOPOLOGY(nvlink.bandwidth, LH_BANDWIDTH_MIN, LH_BANDWIDTH_MAX),
    [LH_CONSTANT_NIC_BANDWIDTH] = OF_TOPOLOGY(nic.bandwidth, LH_BANDWIDTH_MIN, LH_BANDWIDTH_MAX),
    [LH_CONSTANT_COLLECTIVE_BANDWIDTH] =
        OF_TOPOLOGY(collective_bandwidth, LH_BANDWIDTH_MIN, LH_BANDWIDTH_MAX),
    [LH_CONSTANT_FSDP_OVERHEAD] = OF_FRAMEWORK(fsdp_overhead_s, 0, LH_OVERHEAD_MAX_S),
};

LhConstant
lh_constant_find(const char *name)
{
    int i = 0;

    while (i < LH_CONSTANTS && strcmp(lh_constant_names[i], name) != 0)
        i++;
    return (LhConstant)i;
}

static void
weaken(int *provenance, int by)
{
    *provenance = MAX(*provenance, by);
}

/* Curves and rows by tiles only describe attention. */
void
lh_slow_down(const LhTopology *topology, LhDevice *device)
{
    if (topology->product_slowdown > 0) {
        weaken(&device->matrix_provenance, topology->slowdown_from.provenance);
        device->matrix_efficiency /= topology->product_slowdown;
    }
    if (topology->attention_slowdown > 0) {
        for (guint i = 0; i < device->kernels->len; i++) {
            LhKernelRate *curve = &g_array_index(device->kernels, LhKernelRate, i);

            weaken(&curve->from.provenance, topology->slowdown_from.provenance);
            curve->rate /= topology->attention_slowdown;
        }
        for (guint i = 0; device->attention != NULL && i < device->attention->len; i++) {
            LhAttentionRow *row = &g_array_index(device->attention, LhAttentionRow, i);

            weaken(&row->from.provenance, topology->slowdown_from.provenance);
            row->rate /= topology->attention_slowdown;
            row->sustained_rate /= topology->attention_slowdown;
        }
    }
}

/* A value of 0 replaces nothing. */
static void
lay(const LhConstants *c, LhConstantOwner owner, void *of)
{
    for (int i = 0; i < LH_CONSTANTS; i++) {
        const LhConstantRange *range = &lh_constant_ranges[i];
        double *value = (double *)(void *)((char *)of + range->offset);

        if (range->owner == owner && c->value[i] > 0)
            *value = CLAMP(c->value[i], range->least, range->most);
    }
}

void
lh_constants_apply(const LhConstants *c, LhDevice *device, LhTopology *topology)
{
    lay(c, LH_OWNER_DEVICE, device);
    lay(c, LH_OWNER_TOPOLOGY, topology);
}

void
lh_constants_apply_framework(const LhConstants *c, LhFramework *framework)
{
    if (framework->fsdp_overhead_s > 0)
        lay(c, LH_OWNER_FRAMEWORK, framework);
}

/* The file's value; 0: none. */
static double
value_at(LhConstant constant, const LhDevice *device, const LhTopology *topology,
         const LhFramework *framework)
{
    const LhConstantRange *range = &lh_constant_ranges[constant];
    const void *const owners[] = {
        [LH_OWNER_DEVICE] = device, [LH_OWNER_TOPOLOGY] = topology, [LH_OWNER_FRAMEWORK] = framework
    };
    const char *owner = owners[range->owner];

    return owner == NULL ? 0 : *(const double *)(const void *)(owner + range->offset);
}

double
lh_constant_value(LhConstant constant, const LhDevice *device, const LhTopology *topology,
                  const LhFramework *framework)
{
    const double value = value_at(constant, device, topology, framework);

    if (constant == LH_CONSTANT_ATTENTION_SLOWDOWN || constant == LH_CONSTANT_PRODUCT_SLOWDOWN)
        return MAX(value, 1);
    if (constant == LH_CONSTANT_LINEAR_EFFICIENCY)
        return lh_device_linear_efficiency(device);
    if (constant == LH_CONSTANT_COLLECTIVE_BANDWIDTH && value == 0)
        return topology->nic.bandwidth * (double)topology->nics_per_node;
    return value;
}
