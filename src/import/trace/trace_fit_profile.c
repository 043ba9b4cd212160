/* SPDX-License-Identifier: Apache-2.0 */
#include "import/trace/trace_fit_profile.h"

#include "base/json/json_writer.h"
#include "import/trace/trace_fit_constants.h"

#include <math.h>

/* With more digits than people read, so that what is read back is what was found. */
static void
write_scaled(LhJsonWriter *w, const char *key, double value, const char *unit)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *text = NULL;

    g_ascii_formatd(number, sizeof(number), "%.6f", value);
    text = g_strconcat(number, unit, NULL);
    lh_jsonw_string(w, key, text);
}

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
write_curve(const LhTraceFit *t, const LhSetup *setup, const LhTraceFitted *c, const char *source,
            LhJsonWriter *w)
{
    const LhTraceFitted *half = find_constant(t, c, LH_TRACE_FIT_HALF_LENGTH);
    const double of_queries =
        lh_trace_fit_curve(setup, c)->query_half_length; /* as it was while tuning */

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "kernel", lh_kernels[c->kernel]->name);
    lh_jsonw_string(w, "mask", c->mask == 1 ? "causal" : "full");
    lh_jsonw_uint(w, "head_dim", t->head_dim);
    if (c->value >= 1e12)
        write_scaled(w, "rate", c->value / 1e12, "TFLOP/s");
    else
        write_scaled(w, "rate", c->value / 1e9, "GFLOP/s");
    lh_jsonw_double(w, "half_length", half->value);
    if (of_queries > 0)
        lh_jsonw_double(w, "query_half_length", of_queries);
    lh_jsonw_uint(w, "length_min", (uint64_t)fmax(floor(c->length_min), 1));
    lh_jsonw_uint(w, "length_max", (uint64_t)fmax(ceil(c->length_max), 1));
    lh_jsonw_string(w, "provenance", lh_provenance_names[LH_PROVENANCE_FITTED]);
    lh_jsonw_string(w, "source", source);
    lh_jsonw_object_begin(w, "residuals");
    lh_jsonw_double(w, "median", c->off_median);
    lh_jsonw_double(w, "worst", c->off_worst);
    lh_jsonw_object_end(w);
    lh_jsonw_object_end(w);
}

static void
write_tuned_link(const LhTraceFit *t, const LhTraceFitted *c, const LhSetup *setup,
                 const char *source, LhJsonWriter *w)
{
    const LhTraceFitted *latency = find_constant(t, c, LH_TRACE_FIT_LATENCY);
    g_autofree char *text =
        g_strdup_printf("%s; latency %s; residuals: median %.1f %%, worst %.1f %%", source,
                        latency->determined ? "likewise" : "as in the topology, not determined",
                        100 * c->off_median, 100 * c->off_worst);

    lh_jsonw_object_begin(w, lh_tier_names[c->tier]);
    write_scaled(w, "bandwidth", c->value / 1e9, "GB/s");
    write_scaled(w, "latency", latency->value * 1e6, "us");
    lh_jsonw_uint(w, "ctas", lh_trace_fit_link(setup->topology, c->tier)->ctas);
    lh_jsonw_string(w, "provenance", lh_provenance_names[LH_PROVENANCE_FITTED]);
    lh_jsonw_string(w, "source", text);
    lh_jsonw_object_end(w);
}

void
lh_trace_fit_write(const LhTraceFit *t, const LhSetup *setup, const char *name, const char *source,
                   GString *out)
{
    LhJsonWriter *w = lh_jsonw_new(out, false);
    g_autofree char *description =
        g_strdup_printf("Constants of %s on %s, fitted to traces of a run.", setup->device->name,
                        setup->topology->name);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schema", "longhaul.profile/2");
    lh_jsonw_string(w, "name", name);
    lh_jsonw_string(w, "description", description);
    lh_jsonw_string(w, "source", source);
    lh_jsonw_array_begin(w, "kernels");
    for (guint i = 0; i < t->constants->len; i++) {
        const LhTraceFitted *c = lh_trace_fit_constant(t, i);

        if (c->kind == LH_TRACE_FIT_RATE && c->determined)
            write_curve(t, setup, c, source, w);
    }
    lh_jsonw_array_end(w);
    for (guint i = 0; i < t->constants->len; i++) {
        const LhTraceFitted *c = lh_trace_fit_constant(t, i);

        if (c->kind == LH_TRACE_FIT_BANDWIDTH && c->determined)
            write_tuned_link(t, c, setup, source, w);
    }
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
}
