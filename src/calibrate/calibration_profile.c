/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/calibration_profile.h"

#include "base/json/json_writer.h"
#include "calibrate/cluster_topology.h"

#include <math.h>

static void
write_residuals(LhJsonWriter *w, const LhFitResiduals *r)
{
    lh_jsonw_object_begin(w, "residuals");
    lh_jsonw_double(w, "median", r->median);
    lh_jsonw_double(w, "worst", r->worst);
    lh_jsonw_double(w, "holdout", r->holdout);
    if (r->spread > 0)
        lh_jsonw_double(w, "spread", r->spread);
    lh_jsonw_object_end(w);
}

static void
write_rates(LhJsonWriter *w, const LhCalibration *c)
{
    lh_jsonw_array_begin(w, "kernels");
    for (guint i = 0; i < c->rates->len; i++) {
        const LhKernelRate *rate = &g_array_index(c->rates, LhKernelRate, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "kernel", rate->kernel);
        lh_jsonw_string(w, "mask", rate->mask == 1 ? "causal" : "full");
        lh_jsonw_uint(w, "head_dim", rate->head_dim);
        lh_cluster_write_unit(w, "rate", lh_format_flops(rate->rate));
        lh_jsonw_double(w, "half_length", rate->half_length);
        if (rate->query_half_length > 0)
            lh_jsonw_double(w, "query_half_length", rate->query_half_length);
        if (rate->length_min > 0)
            lh_jsonw_uint(w, "length_min", rate->length_min);
        if (rate->length_max > 0)
            lh_jsonw_uint(w, "length_max", rate->length_max);
        lh_evidence_write(w, &rate->from);
        write_residuals(w, &rate->residuals);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_traffic(LhJsonWriter *w, const LhCalibration *c)
{
    lh_jsonw_array_begin(w, "elementwise");
    for (guint i = 0; i < c->traffic->len; i++) {
        const LhKernelTraffic *traffic = &g_array_index(c->traffic, LhKernelTraffic, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "kernel", traffic->kernel);
        lh_cluster_write_unit(w, "bandwidth", lh_format_bandwidth(traffic->bandwidth));
        lh_evidence_write(w, &traffic->from);
        write_residuals(w, &traffic->residuals);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_link(LhJsonWriter *w, const char *name, const LhLinkClass *link)
{
    if (link->bandwidth == 0)
        return;
    lh_jsonw_object_begin(w, name);
    lh_cluster_write_unit(w, "bandwidth", lh_format_bandwidth(link->bandwidth));
    lh_cluster_write_unit(w, "latency", lh_format_time(link->latency_ps));
    lh_jsonw_uint(w, "ctas", link->ctas);
    lh_evidence_write(w, &link->from);
    lh_jsonw_object_end(w);
}

static void
write_points(LhJsonWriter *w, const LhCluster *cluster)
{
    lh_jsonw_array_begin(w, "messages");
    for (guint i = 0; i < cluster->points->len; i++) {
        const LhClusterPoint *p = &g_array_index(cluster->points, LhClusterPoint, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "flows", lh_flows_names[p->kind]);
        lh_jsonw_uint(w, "node", p->node);
        lh_jsonw_uint(w, "peer", p->peer);
        lh_jsonw_uint(w, "bytes", p->bytes);
        lh_jsonw_double(w, "measured_s", p->measured_s);
        lh_jsonw_double(w, "fitted_s", p->fitted_s);
        lh_jsonw_bool(w, "holdout", p->holdout);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_checks(LhJsonWriter *w, const GArray *checks)
{
    lh_jsonw_array_begin(w, "collective_checks");
    for (guint i = 0; i < checks->len; i++) {
        const LhCollectiveCheck *c = &g_array_index(checks, LhCollectiveCheck, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "op", lh_collective_names[c->kind]);
        lh_jsonw_uint(w, "ranks", c->members);
        lh_jsonw_uint(w, "bytes", c->vector_bytes);
        lh_jsonw_double(w, "measured_s", c->measured_s);
        lh_jsonw_double(w, "predicted_s", c->predicted_s);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

/* What GPUs have beside links. */
static void
write_gpus(LhJsonWriter *w, const LhCalibration *c)
{
    const struct {
        const char *name;
        double seconds;
    } calls[] = { { "op", c->calls.op },
                  { "compute", c->calls.compute },
                  { "wait", c->calls.wait },
                  { "group", c->calls.group },
                  { "sync", c->calls.sync } };

    lh_jsonw_object_begin(w, "host");
    for (unsigned i = 0; i < G_N_ELEMENTS(calls); i++)
        lh_cluster_write_unit(
            w, calls[i].name,
            lh_format_time(lh_time_from_ps(fmax(calls[i].seconds, 0) * (double)LH_PS_PER_S)));
    lh_jsonw_object_end(w);
    lh_jsonw_array_begin(w, "collective_times");
    for (guint i = 0; i < c->collectives->len; i++)
        lh_collective_times_write(w, &g_array_index(c->collectives, LhCollectiveTimes, i), NULL);
    lh_jsonw_array_end(w);
}

static const char *
describe_ranks(const LhCalibration *c)
{
    if (c->gpus)
        return "One GPU as a rank; for the cluster that its GPUs were said to be.";
    return c->cluster == NULL ? "One core of a machine as a rank; for the cluster this-machine."
                              : "One process as a rank; for the cluster that was measured with it.";
}

/* Method, machine and date; caller frees. */
static char *
source_of(const LhCalibration *c, const char *date)
{
    return g_strdup_printf("%s; %s; %s", c->method, c->machine, date);
}

void
lh_calibration_write(const LhCalibration *c, const char *name, const char *date, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    g_autofree char *source = source_of(c, date);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schema", "longhaul.profile/2");
    lh_jsonw_string(w, "name", name);
    lh_jsonw_string(w, "description", describe_ranks(c));
    lh_jsonw_string(w, "source", source);
    lh_cluster_write_unit(w, "memory_bandwidth", lh_format_bandwidth(c->memory_bandwidth));
    lh_jsonw_double(w, "memory_efficiency", 1);
    lh_jsonw_string(w, "memory_provenance", "measured");
    lh_cluster_write_unit(w, "kernel_launch", lh_format_time(c->kernel_launch_ps));
    lh_cluster_write_unit(w, "stream_sync", lh_format_time(c->stream_sync_ps));
    if (c->messages_hold > 0)
        lh_jsonw_double(w, "messages_hold", c->messages_hold);
    if (c->cores.ranks > 0) {
        lh_jsonw_uint(w, "machine_ranks", c->cores.ranks);
        lh_jsonw_uint(w, "machine_cores", c->cores.cores);
    }
    write_rates(w, c);
    write_traffic(w, c);
    if (c->cluster != NULL)
        write_points(w, c->cluster);
    if (c->checks != NULL)
        write_checks(w, c->checks);
    write_link(w, "nvlink", &c->link);
    write_link(w, "pcie", &c->pcie);
    write_link(w, "nic", &c->nic);
    if (c->gpus)
        write_gpus(w, c);
    lh_jsonw_object_end(w);
}

void
lh_calibration_write_topology(const LhCalibration *c, const char *name, const char *date,
                              GString *out)
{
    g_autofree char *source = source_of(c, date);

    lh_cluster_write(c->cluster, name, source, out);
}
