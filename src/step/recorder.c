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
    GArray *all = r->plan->args;
    const LhArgsKind kind = lh_kernels[call->kernel]->args;
    const gpointer hash = (gpointer)(guintptr)lh_kernel_args_mix(kind, kind, args);
    gpointer at;

    if (g_hash_table_lookup_extended(r->plan->args_at, hash, NULL, &at)) {
        call->args = GPOINTER_TO_UINT(at);
        if (lh_kernel_args_equal(kind, &g_array_index(all, LhKernelArgs, call->args), args))
            return;
    }
    g_array_append_val(all, *args);
    call->args = all->len - 1;
    g_hash_table_insert(r->plan->args_at, hash, GUINT_TO_POINTER(call->args));
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
