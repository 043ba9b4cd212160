/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/cluster_lines.h"

#include "base/error.h"
#include "measure/fit.h"

#include <math.h>

static const LhClusterPoint *
cluster_point(const LhCluster *c, guint index)
{
    return &g_array_index(c->points, LhClusterPoint, index);
}

/* Bytes through an adapter, or through a rank's path to its memory, in one round. */
static double
bytes_through(const LhCluster *c, const LhClusterPoint *point)
{
    const bool every = point->kind == LH_FLOWS_ALL || point->kind == LH_FLOWS_CYCLE;

    return (double)point->bytes * (every ? (double)c->per_node / MAX(c->nics, 1) : 1);
}

bool
lh_cluster_fit(const LhCluster *c, unsigned kinds, LhClusterLine *line, GError **error)
{
    g_autofree LhTransferPoint *points = g_new(LhTransferPoint, c->points->len);
    LhResiduals residuals;
    size_t count = 0;

    for (guint i = 0; i < c->points->len; i++) {
        const LhClusterPoint *p = cluster_point(c, i);

        if ((kinds & LH_FLOWS_BIT(p->kind)) != 0 && !p->holdout)
            points[count++] = (LhTransferPoint){ bytes_through(c, p), p->measured_s };
    }
    if (!lh_fit_transfer(points, count, &line->alpha_s, &line->bytes_per_s, &residuals)) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "messages %s: time does not grow with size; are the machines busy?",
                    kinds == LH_FLOWS_BIT(LH_FLOWS_NODE) ? "in a node" : "between nodes");
        return false;
    }
    line->residuals = (LhFitResiduals){ .median = residuals.median, .worst = residuals.worst };
    return true;
}

/* Predicted time of @point: the slowest adapter on its path decides. */
static double
line_seconds(const LhCluster *c, const LhClusterPoint *point)
{
    const double bytes = bytes_through(c, point);
    double bytes_per_s = c->nic.bytes_per_s;
    uint32_t at[2] = { point->node, point->peer };

    if (point->kind == LH_FLOWS_NODE)
        return c->memory.alpha_s + bytes / c->memory.bytes_per_s;
    if (point->kind == LH_FLOWS_ONE && c->pair_bytes_per_s > 0)
        bytes_per_s = c->pair_bytes_per_s;
    for (uint32_t n = 0; n < c->nodes; n++) {
        if (c->node_bytes_per_s[n] > 0 &&
            (point->kind == LH_FLOWS_CYCLE || n == at[0] || n == at[1]))
            bytes_per_s = fmin(bytes_per_s, c->node_bytes_per_s[n]);
    }
    return c->nic.alpha_s + bytes / bytes_per_s;
}

void
lh_cluster_judge(LhCluster *c)
{
    for (guint i = 0; i < c->points->len; i++) {
        LhClusterPoint *p = &g_array_index(c->points, LhClusterPoint, i);
        LhClusterLine *line = p->kind == LH_FLOWS_NODE ? &c->memory : &c->nic;

        p->fitted_s = line_seconds(c, p);
        if (p->holdout)
            line->residuals.holdout =
                fmax(line->residuals.holdout, fabs(p->fitted_s / p->measured_s - 1));
    }
}
