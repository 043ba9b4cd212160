/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks and small fixtures shared by the fuzzers. The fixtures are texts, so that the meaning of
 * an input does not depend on the data files.
 */
#include "fuzz.h"

#include "base/error.h"
#include "sched/schedule.h"

#include <string.h>

#define EVENTS_MAX 1000000

static const char device_text[] =
    "{\"schema\": \"longhaul.device/1\", \"name\": \"small\", \"source\": \"invented\","
    " \"matrix_rate\": \"100TFLOPS\", \"matrix_efficiency\": 0.8, \"matrix_provenance\": "
    "\"assumed\","
    " \"memory_capacity\": \"16GiB\","
    " \"memory_bandwidth\": \"1TB/s\", \"memory_efficiency\": 0.9, \"memory_provenance\": "
    "\"assumed\","
    " \"sm_count\": 64, \"kernel_launch\": \"4us\", \"stream_sync\": \"10us\", \"tile_rows\": 128,"
    " \"kernels\": []}";

static const char topology_text[] =
    "{\"schema\": \"longhaul.topology/1\", \"name\": \"small\", \"source\": \"invented\","
    " \"device\": \"v100\", \"node\": {\"gpus\": 2, \"scale_up\": {\"kind\": \"nvswitch\","
    " \"bandwidth\": \"100GB/s\", \"latency\": \"5us\", \"ctas\": 16, \"provenance\": \"assumed\","
    " \"source\": \"invented\"}, \"nics\": {\"count\": 1, \"bandwidth\": \"10GB/s\","
    " \"latency\": \"10us\", \"ctas\": 2, \"provenance\": \"assumed\", \"source\": \"invented\"}}}";

/* GLib's own warnings report misuse, which is a bug. */
int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
    return 0;
}

void
fuzz_check(bool ok, const GError *error, const char *prefix)
{
    g_assert(ok == (error == NULL));
    if (error == NULL)
        return;
    g_assert(error->domain == LH_ERROR);
    g_assert(error->message[0] != '\0');
    g_assert(g_utf8_validate(error->message, -1, NULL));
    g_assert(prefix == NULL || g_str_has_prefix(error->message, prefix));
}

void
fuzz_check_file(bool ok, const GError *error)
{
    fuzz_check(ok, error, FUZZ_NAME ":");
    g_assert(ok || error->code == LH_ERROR_INPUT);
}

LhDevice *
fuzz_device(void)
{
    g_autoptr(GError) error = NULL;
    LhDevice *device = lh_device_parse(FUZZ_NAME, device_text, strlen(device_text), &error);

    g_assert_no_error(error);
    return device;
}

LhTopology *
fuzz_topology(void)
{
    g_autoptr(GError) error = NULL;
    LhTopology *topology =
        lh_topology_parse(FUZZ_NAME, topology_text, strlen(topology_text), &error);

    g_assert_no_error(error);
    return topology;
}

static bool
go_on(void *data, const LhProgress *at)
{
    (void)data;
    return at->events < EVENTS_MAX;
}

static void
check_rank(const LhRankResult *rank, LhTime makespan_ps)
{
    LhTime sum = rank->busy_ps;
    uint64_t bytes = 0;

    for (unsigned part = 0; part < LH_IDLE_PARTS; part++) {
        g_assert(rank->idle_ps[part] >= 0);
        sum += rank->idle_ps[part];
    }
    for (unsigned tier = 0; tier < LH_TIERS; tier++)
        bytes += rank->bytes_by_tier[tier];
    g_assert(rank->busy_ps >= 0 && sum == makespan_ps);
    g_assert(rank->finish_ps <= makespan_ps);
    g_assert(bytes == rank->bytes_sent);
}

static void
check_result(const LhSimResult *result, uint32_t ranks)
{
    const double bubble = lh_sim_bubble_fraction(result);

    g_assert(result->ranks_count == ranks);
    g_assert(result->makespan_ps >= 0);
    g_assert(bubble >= 0 && bubble <= 1);
    for (uint32_t r = 0; r < ranks; r++)
        check_rank(&result->ranks[r], result->makespan_ps);
}

LhSimResult *
fuzz_play(const LhProgram *program, const LhTopology *topology, const LhDevice *device,
          LhNetworkModel model, LhCostMode cost, GError **error)
{
    const uint32_t ranks = lh_program_ranks(program);
    const uint64_t nodes = (ranks + topology->gpus_per_node - 1) / topology->gpus_per_node;
    g_autoptr(GError) cause = NULL;
    LhNetwork network;
    LhSimParams params = {
        .program = program,
        .network = &network,
        .device = device,
        .network_model = model,
        .cost = cost,
        .task = { .progress = go_on },
    };
    LhSimResult *result = NULL;

    if (lh_network_init(&network, topology, (uint32_t)nodes, ranks, NULL, &cause))
        result = lh_simulate(&params, &cause);
    fuzz_check(result != NULL, cause, NULL);
    if (result != NULL)
        check_result(result, ranks);
    else
        g_propagate_error(error, g_steal_pointer(&cause));
    return result;
}

void
fuzz_play_ring(const LhTopology *topology, const LhDevice *device)
{
    const LhSchedule *ring = lh_schedule_find("ring", NULL);

    for (uint32_t ranks = 1; ranks <= 4; ranks++) {
        const LhProgramParams params = {
            .attention = { .batch = 1,
                           .seq_length = (uint64_t)1024 * ranks,
                           .heads = 8,
                           .groups = 2,
                           .head_dim = 64,
                           .dtype = LH_DTYPE_BF16 },
            .ranks = ranks,
            .mask.causal = true,
            .pass = LH_PASS_BOTH,
        };
        g_autoptr(LhProgram) program = lh_program_new(ring, &params, NULL);

        g_assert(program != NULL);
        lh_sim_result_free(
            fuzz_play(program, topology, device, LH_NETWORK_FAIR, LH_COST_DEVICE, NULL));
    }
}
