/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/memory_need.h"

#include "program/live.h"
#include "scenario/setup_weights.h"
#include "scenario/step/setup_step.h"
#include "step/memory/peak_memory.h"

#include <string.h>

static void
add_stages(LhMemoryNeed *need, const LhProgram *program)
{
    const LhStepParams *params = lh_step_params(program);
    const uint32_t stages = lh_step_stages(params);
    g_autofree LhStepPeak *peaks = g_new(LhStepPeak, stages);

    lh_step_stage_peaks(program, peaks);
    for (uint32_t i = 0; i < stages; i++) {
        LhStageNeed stage = { .stage = i,
                              .rank = i * lh_step_stage_ranks(params),
                              .peak_bytes = peaks[i].bytes,
                              .host_bytes = peaks[i].host_bytes };

        memcpy(stage.by_category, peaks[i].by_category, sizeof(stage.by_category));
        g_array_append_val(need->stages, stage);
    }
}

/* The node whose ranks' peaks of host memory add up to most, as the simulator counts them. */
static void
add_host(LhMemoryNeed *need, const LhSetup *setup, const LhProgram *program)
{
    const uint64_t of_stage = lh_step_stage_ranks(lh_step_params(program));
    const uint32_t of_node = (uint32_t)MAX(setup->topology->gpus_per_node, 1);
    uint64_t bytes = 0;

    need->host.limit_bytes = setup->topology->host_memory;
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        bytes = (rank % of_node == 0 ? 0 : bytes) +
                g_array_index(need->stages, LhStageNeed, rank / of_stage).host_bytes;
        if (bytes <= need->host.needed_bytes)
            continue;
        need->host.node = rank / of_node;
        need->host.needed_bytes = bytes;
    }
}

/* The rank of a module with the highest peak. */
static void
add_module(LhMemoryNeed *need, const LhProgram *program)
{
    LhStageNeed most = { 0 };

    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        LhLive live;

        lh_live_walk(&live, program, rank);
        if (live.peak_bytes <= most.peak_bytes)
            continue;
        most.rank = rank;
        most.peak_bytes = live.peak_bytes;
        memcpy(most.by_category, live.peak_by_category, sizeof(most.by_category));
    }
    g_array_append_val(need->stages, most);
}

LhMemoryNeed *
lh_memory_need(const LhSetup *setup, bool changes, const LhTask *task, GError **error)
{
    g_autoptr(LhMemoryNeed) need = g_new0(LhMemoryNeed, 1);
    g_autoptr(LhProgram) made = NULL;
    const LhProgram *program = setup->program;

    need->stages = g_array_new(FALSE, FALSE, sizeof(LhStageNeed));
    if (program == NULL)
        program = made = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), error);
    if (program == NULL)
        return NULL;
    if (program->step != NULL) {
        add_stages(need, program);
        add_host(need, setup, program);
    } else {
        add_module(need, program);
    }
    for (guint i = 1; i < need->stages->len; i++) {
        if (g_array_index(need->stages, LhStageNeed, i).peak_bytes >
            g_array_index(need->stages, LhStageNeed, need->highest).peak_bytes)
            need->highest = i;
    }
    need->limit_bytes = lh_setup_memory_limit_bytes(setup, program);
    if (changes && made != NULL)
        need->reliefs = lh_reliefs_for(setup, task);
    return g_steal_pointer(&need);
}

bool
lh_memory_need_fits(const LhMemoryNeed *need)
{
    const LhStageNeed *highest = &g_array_index(need->stages, LhStageNeed, need->highest);

    return (need->limit_bytes == 0 || highest->peak_bytes <= need->limit_bytes) &&
           lh_host_memory_fits(&need->host);
}

void
lh_memory_need_free(LhMemoryNeed *need)
{
    if (need == NULL)
        return;
    g_array_unref(need->stages);
    lh_reliefs_free(need->reliefs);
    g_free(need);
}
