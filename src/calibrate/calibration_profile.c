/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/calibration_profile.h"

#include "calibrate/cluster_topology.h"

#include <math.h>

static GArray *
messages_of(const LhCluster *cluster)
{
    GArray *rows = g_array_new(FALSE, TRUE, sizeof(LhProfileMessage));

    for (guint i = 0; i < cluster->points->len; i++) {
        const LhClusterPoint *p = &g_array_index(cluster->points, LhClusterPoint, i);
        const LhProfileMessage message = { (int)p->kind,  p->node,     p->peer,   p->bytes,
                                           p->measured_s, p->fitted_s, p->holdout };

        g_array_append_val(rows, message);
    }
    return rows;
}

static GArray *
checks_of(const GArray *checks)
{
    GArray *rows = g_array_new(FALSE, TRUE, sizeof(LhProfileCheck));

    for (guint i = 0; i < checks->len; i++) {
        const LhCollectiveCheck *c = &g_array_index(checks, LhCollectiveCheck, i);
        const LhProfileCheck row = { (int)c->kind, c->members, c->vector_bytes, c->measured_s,
                                     c->predicted_s };

        g_array_append_val(rows, row);
    }
    return rows;
}

static LhTime
time_of(double seconds)
{
    return lh_time_from_ps(fmax(seconds, 0) * (double)LH_PS_PER_S);
}

/* What GPUs have beside links. */
static void
fill_gpus(const LhCalibration *c, LhProfile *p)
{
    p->host =
        (LhProfileHost){ time_of(c->calls.op), time_of(c->calls.compute), time_of(c->calls.wait),
                         time_of(c->calls.group), time_of(c->calls.sync) };
    p->collective_times = c->collectives;
}

/* Nothing, if it was not measured. */
static LhLinkClass
measured_link(const LhLinkClass *link)
{
    return link->bandwidth > 0 ? *link : (LhLinkClass){ .bandwidth = 0 };
}

static void
fill_constants(const LhCalibration *c, LhProfile *p)
{
    p->device = c->device;
    p->device.memory_efficiency = 1;
    p->device.memory_provenance = LH_PROVENANCE_MEASURED;
    p->device.messages_hold = fmax(c->device.messages_hold, 0);
    p->nvlink = measured_link(&c->link);
    p->pcie = measured_link(&c->pcie);
    p->nic = measured_link(&c->nic);
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
    g_autofree char *source = source_of(c, date);
    g_autoptr(GArray) of_messages = c->cluster == NULL ? NULL : messages_of(c->cluster);
    g_autoptr(GArray) checks = c->checks == NULL ? NULL : checks_of(c->checks);
    LhProfile profile = *lh_profile_nothing();

    profile.schema = LH_PROFILE_SCHEMA;
    profile.name = (char *)(guintptr)name;
    profile.description = (char *)(guintptr)describe_ranks(c);
    profile.source = source;
    profile.messages = of_messages;
    profile.collective_checks = checks;
    fill_constants(c, &profile);
    if (c->gpus)
        fill_gpus(c, &profile);
    lh_profile_write(&profile, false, out);
}

void
lh_calibration_write_topology(const LhCalibration *c, const char *name, const char *date,
                              GString *out)
{
    g_autofree char *source = source_of(c, date);

    lh_cluster_write(c->cluster, name, source, out);
}
