/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/setup_simulate.h"

#include "scenario/setup_weights.h"

LhSimParams
lh_setup_sim_params(const LhSetup *setup, const LhProgram *program)
{
    return (LhSimParams){
        .program = program,
        .network = &setup->network,
        .device = setup->device,
        .network_model = setup->network_model,
        .collectives = setup->collectives,
        .cost = setup->cost,
        .framework = setup->framework,
        .serving = setup->scenario->serving,
        .jitter = setup->scenario->jitter,
        .seed = setup->scenario->seed,
        .stragglers = setup->scenario->straggler,
        .memory_limit_bytes = lh_setup_memory_limit_bytes(setup, program),
    };
}

LhSimResult *
lh_setup_simulate(const LhSetup *setup, const LhProgram *program, const LhNetwork *network,
                  const LhDevice *device, const LhHooks *hooks, GError **error)
{
    LhSimParams params = lh_setup_sim_params(setup, program);

    if (network != NULL)
        params.network = network;
    if (device != NULL)
        params.device = device;
    if (hooks != NULL) {
        params.timeline = hooks->timeline;
        params.timeline_data = hooks->timeline_data;
        params.exposed_stride = hooks->exposed_stride;
        params.exposed_dimension = hooks->exposed_dimension;
        params.memory = hooks->memory;
        params.memory_data = hooks->memory_data;
        params.links = hooks->links;
        params.links_data = hooks->links_data;
        params.path = hooks->path;
        params.precedence = hooks->precedence;
        params.unfolded = hooks->unfolded;
        params.time_share = hooks->time_share;
        params.time_share_data = hooks->time_share_data;
        params.time_share_alike = hooks->time_share_alike;
        params.fold = hooks->fold;
        params.limit_ps = hooks->limit_ps;
        params.tails = hooks->tails;
        params.ended_ps = hooks->ended_ps;
        params.task = hooks->task;
    }
    return lh_simulate(&params, error);
}
