/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/cluster_flows.h"

#include "program/program.h"

#include <math.h>

#define ROUNDS_MIN 4
#define ROUNDS_MAX 15
#define ROUNDS_S 0.5 /* approximate duration of all rounds of one size */

typedef struct {
    uint64_t bytes;
    bool holdout;
} MessageSize;

static const MessageSize message_sizes[] = {
    { 4 << 10, false },   { 16 << 10, false }, { 64 << 10, false },  { 128 << 10, false },
    { 256 << 10, false }, { 384 << 10, true }, { 512 << 10, false }, { 1 << 20, false },
    { 2 << 20, true },    { 4 << 20, false },  { 16 << 20, false },
};

void
lh_cluster_tell(const LhClusterSearch *s, const char *what)
{
    lh_task_tell(&s->params->task, &(LhProgress){ .what = what });
}

static void
nobody_sends(LhClusterSearch *s)
{
    for (uint32_t r = 0; r < s->params->ranks; r++)
        s->to[r] = LH_RANKS_MAX;
}

static void
choose_flows(LhClusterSearch *s, const LhClusterPoint *point)
{
    const LhCluster *c = s->cluster;
    const uint32_t g = c->per_node;

    nobody_sends(s);
    if (point->kind == LH_FLOWS_NODE || point->kind == LH_FLOWS_CYCLE) {
        for (uint32_t r = 0; r < s->params->ranks; r++)
            s->to[r] =
                point->kind == LH_FLOWS_NODE ? r / g * g + (r + 1) % g : (r + g) % s->params->ranks;
        return;
    }
    for (uint32_t i = 0; i < (point->kind == LH_FLOWS_ONE ? 1 : g); i++) {
        s->to[point->node * g + i] = point->peer * g + i;
        s->to[point->peer * g + i] = point->node * g + i;
    }
}

bool
lh_cluster_measure(LhClusterSearch *s, LhClusterPoint *point, double last_s, GError **error)
{
    const uint32_t ranks = s->params->ranks;
    g_autofree double *seconds = g_new(double, ranks);
    const LhClusterFlows flows = {
        .to = s->to,
        .bytes = point->bytes,
        .rounds = (uint32_t)fmax(ROUNDS_MIN, fmin(ROUNDS_MAX, ROUNDS_S / last_s)),
    };
    double rates = 0;
    uint32_t count = 0;

    choose_flows(s, point);
    if (!s->params->measure(s->params->data, &flows, seconds, error))
        return false;
    for (uint32_t r = 0; r < ranks; r++) {
        if (s->to[r] >= LH_RANKS_MAX)
            continue;
        rates += 1 / seconds[r];
        count++;
    }
    /* Flows may share an adapter unevenly, so the total rate counts. */
    point->measured_s = count / rates;
    g_array_append_val(s->cluster->points, *point);
    return true;
}

bool
lh_cluster_sweep(LhClusterSearch *s, LhClusterPoint like, GError **error)
{
    double last_s = 0.001;

    for (size_t i = 0; i < G_N_ELEMENTS(message_sizes) && last_s < LH_CLUSTER_LONGEST_S; i++) {
        like.bytes = message_sizes[i].bytes;
        like.holdout = message_sizes[i].holdout;
        if (!lh_cluster_measure(s, &like, last_s, error))
            return false;
        last_s = g_array_index(s->cluster->points, LhClusterPoint, s->cluster->points->len - 1)
                     .measured_s;
    }
    return true;
}
