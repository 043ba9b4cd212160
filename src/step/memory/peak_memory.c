/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the calls of a stage as its cursors do, except for attention: its largest own memory over
 * the ranks is added on top. Tensor- and data-parallel ranks hold the same.
 */
#include "step/memory/peak_memory.h"

#include "program/live.h"
#include "step/step_private.h"

#include <string.h>

/* Memory that attention holds in addition to its inputs and outputs, on the context-parallel rank
 * and under the pack of documents that need most. */
typedef struct {
    uint64_t bytes[LH_STEP_KINDS][2];
} Own;

static uint64_t
own_bytes(const LhProgram *attention)
{
    uint64_t most = 0;

    for (uint32_t rank = 0; attention != NULL && rank < lh_program_ranks(attention); rank++) {
        LhLive live;
        uint64_t given_bytes;

        lh_live_init(&live, attention, rank);
        given_bytes = live.bytes;
        lh_live_walk(&live, attention, rank);
        most = MAX(most, live.peak_bytes - given_bytes);
    }
    return most;
}

static Own
own_of(const LhStepPlan *plan)
{
    Own own = { 0 };

    for (uint32_t i = 0; i < plan->packs_count * LH_STEP_KINDS; i++) {
        uint64_t *bytes = own.bytes[i % LH_STEP_KINDS];

        bytes[0] = MAX(bytes[0], own_bytes(plan->modules[i].forward));
        bytes[1] = MAX(bytes[1], own_bytes(plan->modules[i].backward));
    }
    return own;
}

static LhRegion
call_region(const LhStepPlan *plan, const LhStepList *list, const LhStepCall *call)
{
    const LhStepUse *use = lh_step_uses(list, call);
    const LhStepTensor *tensor = &g_array_index(list->tensors, LhStepTensor, use->tensor);

    return (LhRegion){ .slot = g_array_index(plan->classes, LhStepClass, tensor->class_index).slot,
                       .count = use->count };
}

/* Allocates and frees the memory of attention. */
static void
call_attention(LhLive *live, uint64_t bytes)
{
    if (live->bytes + bytes <= live->peak_bytes)
        return;
    live->peak_bytes = live->bytes + bytes;
    memcpy(live->peak_by_category, live->by_category, sizeof(live->by_category));
    live->peak_by_category[LH_CATEGORY_ATTENTION] += bytes;
}

static void
walk(LhLive *live, const LhProgram *program, const LhStepList *list, const Own *own)
{
    for (guint i = 0; i < list->calls->len; i++) {
        const LhStepCall *call = &g_array_index(list->calls, LhStepCall, i);

        if (call->does == LH_STEP_CALL_MODULE)
            call_attention(live, own->bytes[call->kind][call->backward]);
        else if (call->does == LH_STEP_CALL_ALLOC || call->does == LH_STEP_CALL_FREE)
            lh_live_change(live, program, call_region(program->step, list, call),
                           call->does == LH_STEP_CALL_ALLOC);
    }
}

/* Stops when a micro-batch begins with the same memory as the previous one, since it then
 * repeats. */
static void
walk_inner(LhLive *live, const LhProgram *program, const LhStepList *list, const Own *own)
{
    const uint32_t count = list->calls == NULL ? 0 : program->step->params.micro_batches - 1;
    bool same = false;

    for (uint32_t i = 0; i < count && !same; i++) {
        const LhLive before = *live;

        walk(live, program, list, own);
        same = memcmp(before.by_category, live->by_category, sizeof(live->by_category)) == 0 &&
               before.host_bytes == live->host_bytes;
    }
}

void
lh_step_stage_peaks(const LhProgram *program, LhStepPeak *peaks)
{
    const LhStepPlan *plan = program->step;
    const Own own = own_of(plan);

    for (uint32_t stage = 0; stage < lh_step_stages(&plan->params); stage++) {
        LhLive live;

        lh_live_init(&live, program, stage * (uint32_t)lh_step_stage_ranks(&plan->params));
        walk_inner(&live, program, &plan->stages[stage].inner, &own);
        walk(&live, program, &plan->stages[stage].last, &own);
        peaks[stage].bytes = live.peak_bytes;
        peaks[stage].host_bytes = live.host_peak_bytes;
        memcpy(peaks[stage].by_category, live.peak_by_category, sizeof(live.peak_by_category));
    }
}

uint64_t
lh_step_peak(const LhProgram *program, uint64_t by_category[LH_CATEGORIES])
{
    const uint32_t stages = lh_step_stages(&program->step->params);
    g_autofree LhStepPeak *peaks = g_new(LhStepPeak, stages);
    uint32_t most = 0;

    lh_step_stage_peaks(program, peaks);
    for (uint32_t stage = 1; stage < stages; stage++)
        most = peaks[stage].bytes > peaks[most].bytes ? stage : most;
    memcpy(by_category, peaks[most].by_category, sizeof(peaks[most].by_category));
    return peaks[most].bytes;
}
