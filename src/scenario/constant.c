/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Efficiencies stay at most 1, and slowdowns at least: a fit that wants more has
 * another reason.
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

#define EFFICIENCIES                                                                               \
    {                                                                                              \
        LH_EFFICIENCY_MIN, 1                                                                       \
    }
#define SLOWDOWNS                                                                                  \
    {                                                                                              \
        1, LH_SLOWDOWN_MAX                                                                         \
    }
#define BANDWIDTHS                                                                                 \
    {                                                                                              \
        LH_BANDWIDTH_MIN, LH_BANDWIDTH_MAX                                                         \
    }

const LhConstantRange lh_constant_ranges[LH_CONSTANTS] = {
    [LH_CONSTANT_ATTENTION_SLOWDOWN] = SLOWDOWNS,
    [LH_CONSTANT_PRODUCT_SLOWDOWN] = SLOWDOWNS,
    [LH_CONSTANT_LINEAR_EFFICIENCY] = EFFICIENCIES,
    [LH_CONSTANT_MATRIX_EFFICIENCY] = EFFICIENCIES,
    [LH_CONSTANT_MEMORY_EFFICIENCY] = EFFICIENCIES,
    [LH_CONSTANT_NVLINK_BANDWIDTH] = BANDWIDTHS,
    [LH_CONSTANT_NIC_BANDWIDTH] = BANDWIDTHS,
    [LH_CONSTANT_COLLECTIVE_BANDWIDTH] = BANDWIDTHS,
    [LH_CONSTANT_FSDP_OVERHEAD] = { 0, LH_OVERHEAD_MAX_S },
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

/* Curves and rows by tiles are of attention alone. */
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

/* Nothing is laid over where it is 0. */
static void
lay(const LhConstants *c, LhConstant which, double *over)
{
    const LhConstantRange *range = &lh_constant_ranges[which];

    if (c->value[which] > 0)
        *over = CLAMP(c->value[which], range->least, range->most);
}

void
lh_constants_apply(const LhConstants *c, LhDevice *device, LhTopology *topology)
{
    lay(c, LH_CONSTANT_ATTENTION_SLOWDOWN, &topology->attention_slowdown);
    lay(c, LH_CONSTANT_PRODUCT_SLOWDOWN, &topology->product_slowdown);
    lay(c, LH_CONSTANT_LINEAR_EFFICIENCY, &device->linear_efficiency);
    lay(c, LH_CONSTANT_MATRIX_EFFICIENCY, &device->matrix_efficiency);
    lay(c, LH_CONSTANT_MEMORY_EFFICIENCY, &device->memory_efficiency);
    lay(c, LH_CONSTANT_NVLINK_BANDWIDTH, &topology->nvlink.bandwidth);
    lay(c, LH_CONSTANT_NIC_BANDWIDTH, &topology->nic.bandwidth);
    lay(c, LH_CONSTANT_COLLECTIVE_BANDWIDTH, &topology->collective_bandwidth);
}

void
lh_constants_apply_framework(const LhConstants *c, LhFramework *framework)
{
    if (framework->fsdp_overhead_s > 0)
        lay(c, LH_CONSTANT_FSDP_OVERHEAD, &framework->fsdp_overhead_s);
}

double
lh_constant_value(LhConstant constant, const LhDevice *device, const LhTopology *topology,
                  const LhFramework *framework)
{
    switch (constant) {
    case LH_CONSTANT_ATTENTION_SLOWDOWN:
        return MAX(topology->attention_slowdown, 1);
    case LH_CONSTANT_PRODUCT_SLOWDOWN:
        return MAX(topology->product_slowdown, 1);
    case LH_CONSTANT_LINEAR_EFFICIENCY:
        return lh_device_linear_efficiency(device);
    case LH_CONSTANT_MATRIX_EFFICIENCY:
        return device->matrix_efficiency;
    case LH_CONSTANT_MEMORY_EFFICIENCY:
        return device->memory_efficiency;
    case LH_CONSTANT_NVLINK_BANDWIDTH:
        return topology->nvlink.bandwidth;
    case LH_CONSTANT_NIC_BANDWIDTH:
        return topology->nic.bandwidth;
    case LH_CONSTANT_COLLECTIVE_BANDWIDTH:
        return topology->collective_bandwidth > 0
                   ? topology->collective_bandwidth
                   : topology->nic.bandwidth * (double)topology->nics_per_node;
    case LH_CONSTANT_FSDP_OVERHEAD:
        return framework != NULL ? framework->fsdp_overhead_s : 0;
    case LH_CONSTANTS:
        break;
    }
    g_assert_not_reached();
}
