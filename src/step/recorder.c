/* SPDX-License-Identifier: Apache-2.0 */
#include "step/recorder.h"

uint32_t
lh_step_add_tensor(LhStepRecorder *r, LhStepTensor tensor)
{
    tensor.stage = (uint16_t)r->stage;
    g_array_append_val(r->list->tensors, tensor);
    return r->list->tensors->len - 1;
}

LhStepCall *
lh_step_add_call(LhStepRecorder *r, LhStepCallKind does, LhStepStream stream, uint32_t layer)
{
    GArray *calls = r->list->calls;

    g_array_set_size(calls, calls->len + 1);
    LhStepCall *call = &g_array_index(calls, LhStepCall, calls->len - 1);

    *call = (LhStepCall){
        .does = (uint8_t)does,
        .stream = (uint8_t)stream,
        .phase = r->phase,
        .layer = (uint16_t)layer,
        .micro_batch = r->micro_batch,
        .replicas = 1,
    };
    return call;
}

void
lh_step_set_args(LhStepRecorder *r, LhStepCall *call, const LhKernelArgs *args)
{
    g_array_append_val(r->plan->args, *args);
    call->args = r->plan->args->len - 1;
}

void
lh_step_add_use(LhStepRecorder *r, LhStepCall *call, LhStepUse use)
{
    GArray *uses = r->list->uses;

    if (call->uses_count == 0)
        call->uses = uses->len;
    g_assert(call->uses_count < LH_STEP_USES_MAX && call->uses + call->uses_count == uses->len);
    g_array_append_val(uses, use);
    call->uses_count++;
}
