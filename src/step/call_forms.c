/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mix.h"
#include "step/step_private.h"

uint64_t
lh_step_call_form(const LhStepPlan *plan, const LhStepList *list, const LhStepCall *call,
                  uint32_t first)
{
    const bool computes = call->does == LH_STEP_CALL_COMPUTE;
    uint64_t hash = lh_mix(call->does, (uint64_t)call->kernel << 32 | (uint32_t)call->segment);

    hash = lh_mix(hash, (uint64_t)call->collective << 32 | (uint64_t)call->group << 24 |
                            (uint64_t)call->kind << 16 | (uint64_t)call->backward << 8 |
                            call->replicas);
    hash = lh_mix(hash, (uint64_t)call->owners_first << 32 | call->owners);
    if (computes)
        hash = lh_kernel_args_mix(hash, lh_kernels[call->kernel]->args,
                                  &g_array_index(plan->args, LhKernelArgs, call->args));
    for (uint32_t i = 0; i < call->uses_count; i++) {
        const LhStepUse *use = &lh_step_uses(list, call)[i];
        const LhStepTensor *tensor = &g_array_index(list->tensors, LhStepTensor, use->tensor);
        /* The last of equal tensors has its own form, since the slot ends there. */
        const uint32_t instances =
            g_array_index(plan->classes, LhStepClass, tensor->class_index).instances;

        hash = lh_mix(hash, (uint64_t)tensor->class_index << 32 | (uint64_t)use->part);
        hash = lh_mix(hash, (uint64_t)use->count << 32 | (uint64_t)use->own_piece << 3 |
                                (uint64_t)(tensor->instance + 1 >= instances) << 2 |
                                (uint64_t)use->gradient << 1 | (uint64_t)use->of_micro_batch);
        if (use->of_micro_batch)
            hash = lh_mix(hash, first + call->micro_batch);
    }
    return hash;
}
