/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates a program on one node whose links have only a latency and a bandwidth; hosts cost no
 * time.
 */
#pragma once

#include "checking.h"
#include "sim/cost/device.h"
#include "sim/network/topology.h"
#include "sim/sim.h"

typedef struct {
    double message_s, bytes_per_s;
    LhTime (*compute_time)(void *data, uint32_t rank, const LhOp *op);
    void *compute_time_data;
} Links;

/* @timeline may be NULL. Caller frees. */
static inline LhSimResult *
simulate_over(const LhProgram *program, const Links *links, LhCollectiveModel collectives,
              LhTimelineSink timeline, void *timeline_data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) topology = lh_topology_load("hgx-h100", &error);
    g_autoptr(LhDevice) device = lh_device_load(topology->device_name, &error);
    LhSimParams params = { .program = program,
                           .device = device,
                           .network_model = LH_NETWORK_ALPHA_BETA,
                           .collectives = collectives,
                           .compute_time = links->compute_time,
                           .compute_time_data = links->compute_time_data,
                           .timeline = timeline,
                           .timeline_data = timeline_data };
    LhSimResult *result;
    LhNetwork network;

    topology->nvlink.bandwidth = links->bytes_per_s;
    topology->nvlink.latency_ps = (LhTime)(links->message_s * (double)LH_PS_PER_S);
    topology->nvlink.ctas = 0;
    device->kernel_launch_ps = 0;
    device->stream_sync_ps = 0;
    ck_assert(lh_network_init(&network, topology, 1, lh_program_ranks(program), NULL, &error));
    params.network = &network;
    result = lh_simulate(&params, &error);
    ck_assert_msg(result != NULL, "%s", error != NULL ? error->message : "");
    return result;
}
