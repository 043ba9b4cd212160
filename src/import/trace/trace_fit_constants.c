/* SPDX-License-Identifier: Apache-2.0 */
#include "import/trace/trace_fit_constants.h"

#include "scenario/profile.h"
#include "sim/network/collectives/measured.h"

#include <string.h>

#define ROOFLINE_SHARE 0.6 /* of the peak: initial guess without a curve */
#define ROOFLINE_TOKENS 200

LhTraceFitted *
lh_trace_fit_constant(const LhTraceFit *t, guint index)
{
    return &g_array_index(t->constants, LhTraceFitted, index);
}

LhKernelRate *
lh_trace_fit_curve(const LhSetup *setup, const LhTraceFitted *c)
{
    const GArray *curves = setup->device->kernels;
    const uint64_t head_dim = setup->params.attention.head_dim;

    for (guint i = 0; i < curves->len; i++) {
        LhKernelRate *curve = &g_array_index(curves, LhKernelRate, i);

        if (strcmp(curve->kernel, lh_kernels[c->kernel]->name) == 0 && curve->mask == c->mask &&
            curve->head_dim == head_dim)
            return curve;
    }
    g_assert_not_reached();
}

LhLinkClass *
lh_trace_fit_link(LhTopology *topology, int tier)
{
    return tier == LH_TIER_NVLINK ? &topology->nvlink
           : tier == LH_TIER_PCIE ? &topology->pcie
                                  : &topology->nic;
}

static double
get_value(const LhSetup *setup, const LhTraceFitted *c)
{
    switch (c->kind) {
    case LH_TRACE_FIT_RATE:
        return lh_trace_fit_curve(setup, c)->rate;
    case LH_TRACE_FIT_HALF_LENGTH:
        return lh_trace_fit_curve(setup, c)->half_length;
    case LH_TRACE_FIT_BANDWIDTH:
        return lh_trace_fit_link(setup->topology, c->tier)->bandwidth;
    default:
        return (double)lh_trace_fit_link(setup->topology, c->tier)->latency_ps /
               (double)LH_PS_PER_S;
    }
}

/* Sets a link. If collectives were measured on this link, its record changes as well and their
 * times stay. */
static void
set_link(LhTopology *topology, const LhTraceFitted *c, double value)
{
    const LhTopology before = *topology;
    LhLinkClass *link = lh_trace_fit_link(topology, c->tier);

    if (c->kind == LH_TRACE_FIT_BANDWIDTH)
        link->bandwidth = value;
    else
        link->latency_ps = lh_time_from_ps(value * (double)LH_PS_PER_S);
    lh_measured_follow(topology, &before);
}

void
lh_trace_fit_set(LhSetup *setup, const LhTraceFitted *c, double value)
{
    if (c->kind == LH_TRACE_FIT_RATE)
        lh_trace_fit_curve(setup, c)->rate = value;
    else if (c->kind == LH_TRACE_FIT_HALF_LENGTH)
        lh_trace_fit_curve(setup, c)->half_length = value;
    else
        set_link(setup->topology, c, value);
}

static void
add_constant(LhTraceFit *t, LhTraceFitKind kind, LhKernelId kernel, int mask, int tier)
{
    const LhTraceFitted c = { .kind = kind, .kernel = kernel, .mask = mask, .tier = tier };

    g_array_append_val(t->constants, c);
}

/* Gives a kernel its own curve: a copy of the device's, or a guess. */
static void
seed_curve(LhSetup *setup, LhKernelId kernel, int mask)
{
    const char *name = lh_kernels[kernel]->name;
    const uint32_t head_dim = setup->params.attention.head_dim;
    LhDevice *device = setup->device;
    LhKernelRate curve;

    if (!lh_device_rate(device, name, mask == 1, head_dim, &curve))
        curve = (LhKernelRate){ .rate = ROOFLINE_SHARE * device->matrix_rate,
                                .half_length = ROOFLINE_TOKENS,
                                .from.provenance = LH_PROVENANCE_ASSUMED };
    else if (strcmp(curve.kernel, name) == 0 && curve.mask == mask && curve.head_dim == head_dim)
        return;
    curve.kernel = g_strdup(name);
    curve.from.source = g_strdup(curve.from.source != NULL ? curve.from.source : "a first guess");
    curve.mask = mask;
    curve.head_dim = head_dim;
    g_array_append_val(device->kernels, curve);
}

void
lh_trace_fit_find(LhTraceFit *t, LhSetup *setup, const LhTraceAlignment *match)
{
    bool curves[LH_KERNELS_COUNT][2] = { { false } };
    bool attends = false;

    for (guint i = 0; i < match->samples->len; i++) {
        const LhSample *s = &g_array_index(match->samples, LhSample, i);

        if (s->kind == LH_OP_COMPUTE)
            curves[s->kernel][s->triangle] = attends = true;
    }
    for (uint32_t k = 0; k < LH_KERNELS_COUNT; k++) {
        for (int mask = 0; mask < 2; mask++) {
            if (!curves[k][mask])
                continue;
            seed_curve(setup, (LhKernelId)k, mask);
            add_constant(t, LH_TRACE_FIT_RATE, (LhKernelId)k, mask, 0);
            add_constant(t, LH_TRACE_FIT_HALF_LENGTH, (LhKernelId)k, mask, 0);
        }
    }
    if (attends) /* as for a profile on top of the device */
        lh_device_use_library(setup->device, NULL);
    for (int tier = LH_TIER_NVLINK; tier <= LH_TIER_NIC; tier++) {
        if (lh_trace_fit_link(setup->topology, tier)->bandwidth <= 0)
            continue;
        add_constant(t, LH_TRACE_FIT_BANDWIDTH, (LhKernelId)0, 0, tier);
        add_constant(t, LH_TRACE_FIT_LATENCY, (LhKernelId)0, 0, tier);
    }
    for (guint i = 0; i < t->constants->len; i++) {
        LhTraceFitted *c = lh_trace_fit_constant(t, i);

        c->before = c->value = get_value(setup, c);
    }
}
