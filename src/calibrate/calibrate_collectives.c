/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of processes, measured and predicted from the cluster found. They are made of
 * messages. The only constant fitted to them is the overhead of each further message of a rank; the
 * other collectives check how far the constants carry over.
 */
#include "calibrate/calibrate_private.h"

#include "calibrate/calibration_profile.h"
#include "sim/cost/device.h"
#include "sim/sim.h"

/* Sizes of the whole vector; the last one is skipped by --quick. */
static const uint64_t vectors_bytes[] = { 64 << 10, 1 << 20, 4 << 20 };

/* Message sizes of the all-gathers that the overhead is fitted to, for a rank that sends to at most
 * FAN_PEERS others on other nodes. With more peers messages are shorter, so that a rank sends as
 * much. */
static const uint64_t fan_bytes[] = { 32 << 10, 128 << 10, 512 << 10 };
#define FAN_PEERS 3

static void
collect_collectives(void *data, const LhTimelineRecord *record)
{
    if (record->kind == LH_OP_COLLECTIVE)
        g_array_append_vals(data, record, 1);
}

static bool
predict_collective(const LhCollectiveProbe *probe, const LhNetwork *network, LhDevice *device,
                   double *seconds, GError **error)
{
    g_autoptr(LhProgram) program = lh_collective_program(probe);
    g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    const LhSimParams params = { .program = program,
                                 .device = device,
                                 .network = network,
                                 .network_model = LH_NETWORK_FAIR,
                                 .collectives = LH_COLLECTIVES_DIRECT,
                                 .timeline = collect_collectives,
                                 .timeline_data = records };
    g_autoptr(LhSimResult) result = lh_simulate(&params, error);

    if (result == NULL)
        return false;
    g_array_sort(records, lh_timeline_by_rank_and_op);
    *seconds = lh_collective_seconds(probe, records);
    return true;
}

/* The cluster, written and parsed back as a topology file. Caller frees. */
static LhTopology *
topology_of(const LhCalibration *c, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);

    lh_calibration_write_topology(c, "found", "1970-01-01", text);
    return lh_topology_parse("found", text->str, text->len, error);
}

/* Predicts the time of @probe on the cluster found. */
static bool
predict_probe(const LhCalibration *c, const LhCollectiveProbe *probe, LhDevice *device,
              double *seconds, GError **error)
{
    g_autoptr(LhTopology) topology = topology_of(c, error);
    LhNetwork network;

    device->kernel_launch_ps = c->device.kernel_launch_ps;
    device->stream_sync_ps = c->device.stream_sync_ps;
    device->memory_bandwidth = c->device.memory_bandwidth;
    device->memory_efficiency = 1;
    device->machine_ranks = c->device.machine_ranks;
    device->machine_cores = c->device.machine_cores;
    return topology != NULL &&
           lh_network_init(&network, topology, c->cluster->nodes, probe->ranks, NULL, error) &&
           predict_collective(probe, &network, device, seconds, error);
}

static bool
predict_checks(LhCalibration *c, LhDevice *device, uint32_t ranks, GError **error)
{
    for (guint i = 0; i < c->checks->len; i++) {
        LhCollectiveCheck *check = &g_array_index(c->checks, LhCollectiveCheck, i);
        const LhCollectiveProbe probe = { .ranks = ranks,
                                          .kind = check->kind,
                                          .members = check->members,
                                          .shard_bytes = check->vector_bytes / check->members };

        if (!predict_probe(c, &probe, device, &check->predicted_s, error))
            return false;
    }
    return true;
}

/* ---- overhead of a further message ---- */

static LhCollectiveProbe
fan_probe(const LhCalibrateParams *params, const LhProcesses *processes, uint32_t peers, size_t i)
{
    return (LhCollectiveProbe){
        .backend = params->backend,
        .way = LH_WAY_DIRECT,
        .ranks = processes->count,
        .kind = LH_COLL_ALL_GATHER,
        .members = processes->count,
        .shard_bytes =
            fan_bytes[i] * FAN_PEERS / MAX(peers, FAN_PEERS) / sizeof(float) * sizeof(float),
    };
}

/* Finds the overhead of each further message; the first process computes it. */
static bool
find_overhead(const LhCalibrateParams *params, const LhProcesses *processes, LhCalibration *c,
              LhDevice *device, GError **error)
{
    const uint32_t peers = processes->count - c->cluster->per_node;
    LhClusterPoint points[G_N_ELEMENTS(fan_bytes)];

    if (lh_cluster_further(c->cluster) == 0)
        return true;
    lh_calibrate_tell(params, processes, "messages to all nodes");
    for (size_t i = 0; i < G_N_ELEMENTS(fan_bytes); i++) {
        const LhCollectiveProbe probe = fan_probe(params, processes, peers, i);

        points[i] = (LhClusterPoint){ .kind = LH_FLOWS_FAN, .bytes = probe.shard_bytes };
        if (!lh_measure_collective(&probe, &points[i].measured_s, error))
            return false;
    }
    if (!c->first)
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(fan_bytes); i++) {
        const LhCollectiveProbe probe = fan_probe(params, processes, peers, i);

        if (!predict_probe(c, &probe, device, &points[i].fitted_s, error))
            return false;
    }
    lh_cluster_take_overhead(c->cluster, points, G_N_ELEMENTS(fan_bytes));
    return true;
}

/* ---- collectives ---- */

/* Measures one kind of collective on the first @members ranks, at all sizes. */
static bool
measure(const LhCalibrateParams *params, const LhProcesses *processes, LhCalibration *c,
        LhCollectiveKind kind, uint32_t members, GError **error)
{
    const size_t count = G_N_ELEMENTS(vectors_bytes) - (params->quick ? 1 : 0);
    g_autofree char *what = g_strdup_printf("%s of %u ranks", lh_collective_names[kind], members);

    lh_calibrate_tell(params, processes, what);
    for (size_t i = 0; i < count; i++) {
        const uint64_t shard_bytes =
            MAX(vectors_bytes[i] / members / sizeof(float), 1) * sizeof(float);
        const LhCollectiveProbe probe = { .backend = params->backend,
                                          .way = LH_WAY_DIRECT,
                                          .ranks = processes->count,
                                          .kind = kind,
                                          .members = members,
                                          .shard_bytes = shard_bytes };
        LhCollectiveCheck check = { .kind = kind,
                                    .members = members,
                                    .vector_bytes = shard_bytes * members };

        if (!lh_measure_collective(&probe, &check.measured_s, error))
            return false;
        g_array_append_val(c->checks, check);
    }
    return true;
}

bool
lh_calibrate_collectives(const LhCalibrateParams *params, const LhProcesses *processes,
                         LhCalibration *c, LhDevice *device, GError **error)
{
    const uint32_t node = c->cluster->per_node;

    if (!find_overhead(params, processes, c, device, error))
        return false;
    c->checks = g_array_new(FALSE, FALSE, sizeof(LhCollectiveCheck));
    for (unsigned kind = 0; kind < LH_COLL_KINDS; kind++) {
        if (node > 1 && node < processes->count &&
            !measure(params, processes, c, (LhCollectiveKind)kind, node, error))
            return false;
        if (!measure(params, processes, c, (LhCollectiveKind)kind, processes->count, error))
            return false;
    }
    return !c->first || predict_checks(c, device, processes->count, error);
}
