/* SPDX-License-Identifier: Apache-2.0 */
#include "import/trace/trace_fit_profile.h"

#include "import/trace/trace_fit_constants.h"
#include "scenario/profile.h"

#include <math.h>

static const LhTraceFitted *
find_constant(const LhTraceFit *t, const LhTraceFitted *like, LhTraceFitKind kind)
{
    for (guint i = 0; i < t->constants->len; i++) {
        const LhTraceFitted *c = lh_trace_fit_constant(t, i);

        if (c->kind == kind && c->kernel == like->kernel && c->mask == like->mask &&
            c->tier == like->tier)
            return c;
    }
    g_assert_not_reached();
}

static void
fill_curve(const LhTraceFit *t, const LhSetup *setup, const LhTraceFitted *c, const char *source,
           LhProfile *p)
{
    const LhTraceFitted *half = find_constant(t, c, LH_TRACE_FIT_HALF_LENGTH);
    const LhKernelRate curve = {
        .kernel = (char *)(guintptr)lh_kernels[c->kernel]->name,
        .mask = c->mask,
        .head_dim = t->head_dim,
        .rate = c->value,
        .half_length = half->value,
        /* unchanged by the fit */
        .query_half_length = lh_trace_fit_curve(setup, c)->query_half_length,
        .length_min = (uint64_t)fmax(floor(c->length_min), 1),
        .length_max = (uint64_t)fmax(ceil(c->length_max), 1),
        .from = { LH_PROVENANCE_FITTED, (char *)(guintptr)source },
        .residuals = { .median = c->off_median, .worst = c->off_worst, .holdout = NAN },
    };

    g_array_append_val(p->device.kernels, curve);
}

static void
fill_link(const LhTraceFit *t, const LhTraceFitted *c, const LhSetup *setup, const char *source,
          LhProfile *p)
{
    LhLinkClass *const links[] = {
        [LH_TIER_NVLINK] = &p->nvlink, [LH_TIER_PCIE] = &p->pcie, [LH_TIER_NIC] = &p->nic
    };
    const LhTraceFitted *latency = find_constant(t, c, LH_TRACE_FIT_LATENCY);

    *links[c->tier] = (LhLinkClass){
        .bandwidth = c->value,
        .latency_ps = lh_time_from_ps(latency->value * (double)LH_PS_PER_S),
        .ctas = lh_trace_fit_link(setup->topology, c->tier)->ctas,
        .from = { LH_PROVENANCE_FITTED,
                  g_strdup_printf(
                      "%s; latency %s; residuals: median %.1f %%, worst %.1f %%", source,
                      latency->determined ? "likewise" : "as in the topology, not determined",
                      100 * c->off_median, 100 * c->off_worst) },
    };
}

static void
fill_constants(const LhTraceFit *t, const LhSetup *setup, const char *source, LhProfile *p)
{
    for (guint i = 0; i < t->constants->len; i++) {
        const LhTraceFitted *c = lh_trace_fit_constant(t, i);

        if (c->kind == LH_TRACE_FIT_RATE && c->determined)
            fill_curve(t, setup, c, source, p);
        else if (c->kind == LH_TRACE_FIT_BANDWIDTH && c->determined)
            fill_link(t, c, setup, source, p);
    }
}

void
lh_trace_fit_write(const LhTraceFit *t, const LhSetup *setup, const char *name, const char *source,
                   GString *out)
{
    g_autofree char *description =
        g_strdup_printf("Constants of %s on %s, fitted to traces of a run.", setup->device->name,
                        setup->topology->name);
    g_autoptr(GArray) kernels = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    LhProfile profile = *lh_profile_nothing();

    profile.schema = LH_PROFILE_SCHEMA;
    profile.name = (char *)(guintptr)name;
    profile.description = description;
    profile.source = (char *)(guintptr)source;
    profile.device.kernels = kernels;
    fill_constants(t, setup, source, &profile);
    lh_profile_write(&profile, true, out); /* what is read back equals what was fitted */
    g_free(profile.nvlink.from.source);
    g_free(profile.pcie.from.source);
    g_free(profile.nic.from.source);
}
