/*
 * The table of kernels, from the list in meson.build.
 */
#include "kernels/kernel.h"

#include "base/mix.h"

#include <string.h>

#define LH_KERNEL(id) extern const LhKernel lh_kernel_##id;
#include "kernels.def"
#undef LH_KERNEL

const LhKernel *const lh_kernels[LH_KERNELS_COUNT] = {
#define LH_KERNEL(id) [LH_KERNEL_ID_##id] = &lh_kernel_##id,
#include "kernels.def"
#undef LH_KERNEL
};

LhKernelId
lh_kernel_find(const char *name)
{
    for (unsigned i = 0; i < LH_KERNELS_COUNT; i++) {
        if (strcmp(lh_kernels[i]->name, name) == 0)
            return (LhKernelId)i;
    }
    return LH_KERNELS_COUNT;
}

/* ---- what a call is called with ---- */

static uint64_t
mix_real(uint64_t hash, double value)
{
    return lh_mix_bytes(hash, &value, sizeof(value));
}

static uint64_t
mix_pair(uint64_t hash, uint32_t first, uint32_t second)
{
    return lh_mix(hash, (uint64_t)first << 32 | second);
}

static uint64_t
mix_position(uint64_t hash, LhRowsPosition at)
{
    return lh_mix(lh_mix(hash, (uint64_t)at.start), (uint64_t)at.part_step);
}

static uint64_t
mix_attention(uint64_t hash, const LhKernelArgs *a)
{
    hash = lh_mix(lh_mix(lh_mix(hash, a->pairs), a->nq), a->nk);
    hash = mix_pair(mix_pair(hash, a->batch, a->heads), a->groups, a->head_dim);
    hash = mix_position(mix_position(hash, a->q_at), a->k_at);
    hash = lh_mix(lh_mix(hash, a->stride), (uint64_t)(uintptr_t)a->rule);
    hash = mix_real(mix_real(hash, a->scale), a->decay);
    hash = mix_pair(hash, a->states, a->traffic);
    return lh_mix(hash, (uint64_t)a->mask << 16 | (uint64_t)(uint8_t)a->shift << 8 | a->reversed);
}

static uint64_t
mix_layout(uint64_t hash, LhHeadsLayout layout)
{
    return mix_pair(hash, layout.batch, layout.members);
}

static uint64_t
mix_rows(uint64_t hash, const LhKernelArgs *args)
{
    hash = lh_mix(lh_mix(hash, args->rows.rows), args->rows.width);
    hash = lh_mix(lh_mix(hash, args->rows.vocabulary), args->rows.first);
    hash = lh_mix(lh_mix(hash, args->rows.count), args->rows.tokens);
    return mix_pair(mix_real(hash, args->rows.epsilon), args->rows.traffic, args->rows.adds);
}

static uint64_t
mix_heads(uint64_t hash, const LhKernelArgs *args)
{
    hash = lh_mix(lh_mix(hash, args->to_heads.rows), args->to_heads.start);
    hash = mix_real(lh_mix(hash, args->to_heads.stride), args->to_heads.base);
    hash = mix_layout(hash, args->to_heads.layout);
    hash = mix_pair(hash, args->to_heads.heads, args->to_heads.groups);
    return mix_pair(hash, args->to_heads.head_dim, args->to_heads.traffic);
}

static uint64_t
mix_optimizer(uint64_t hash, const LhKernelArgs *args)
{
    hash = mix_real(lh_mix(hash, args->optimizer.count), args->optimizer.learning_rate);
    hash = mix_real(mix_real(hash, args->optimizer.beta1), args->optimizer.beta2);
    hash = mix_real(mix_real(hash, args->optimizer.epsilon), args->optimizer.weight_decay);
    return lh_mix(mix_real(hash, args->optimizer.clip), args->optimizer.traffic);
}

uint64_t
lh_kernel_args_mix(uint64_t hash, LhArgsKind kind, const LhKernelArgs *args)
{
    hash = lh_mix(hash, args->first);
    switch (kind) {
    case LH_ARGS_ATTENTION:
        return mix_attention(hash, args);
    case LH_ARGS_PRODUCT:
        hash = lh_mix(lh_mix(lh_mix(hash, args->product.m), args->product.n), args->product.k);
        return mix_layout(lh_mix(hash, args->product.experts), args->product.layout);
    case LH_ARGS_ELEMENTS:
        return lh_mix(lh_mix(hash, args->elements.count), args->elements.traffic);
    case LH_ARGS_ROWS:
        return mix_rows(hash, args);
    case LH_ARGS_HEADS:
        return mix_heads(hash, args);
    case LH_ARGS_EXPERTS:
        hash = lh_mix(lh_mix(hash, args->experts.rows), args->experts.width);
        return mix_pair(hash, args->experts.experts, args->experts.choices);
    case LH_ARGS_OPTIMIZER:
        return mix_optimizer(hash, args);
    default:
        return hash;
    }
}
