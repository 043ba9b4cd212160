/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/setup_weights.h"

#include "model/parameters.h"
#include "scenario/setup_model.h"

uint64_t
lh_setup_weight_bytes(const LhSetup *setup)
{
    const LhScenario *s = setup->scenario;
    uint64_t bytes;

    if (setup->model == NULL || lh_setup_has_sizes(s))
        return 0;
    return __builtin_mul_overflow(lh_model_parameters(setup->model),
                                  lh_dtype_bytes(setup->params.attention.dtype), &bytes)
               ? UINT64_MAX
               : bytes;
}

uint64_t
lh_setup_weight_bytes_per_rank(const LhSetup *setup)
{
    const uint64_t bytes = lh_setup_weight_bytes(setup), ranks = setup->network.ranks;

    return bytes / ranks + (bytes % ranks != 0);
}

static bool
is_attention_alone(const LhProgram *program)
{
    for (uint32_t i = 0; i < program->slots_count; i++) {
        if (program->slots[i].category != LH_CATEGORY_ATTENTION)
            return false;
    }
    return true;
}

uint64_t
lh_setup_memory_limit_bytes(const LhSetup *setup, const LhProgram *program)
{
    const uint64_t has = setup->device->memory_capacity;
    const uint64_t weights = lh_setup_weight_bytes_per_rank(setup);

    if (setup->cost != LH_COST_DEVICE)
        return 0;
    if (!is_attention_alone(program))
        return MAX(lh_device_usable_bytes(setup->device, LH_MEMORY_MARGIN), 1);
    return weights < has ? has - weights : 1;
}
