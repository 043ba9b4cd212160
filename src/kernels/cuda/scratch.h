/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates pieces of a call's scratch memory; without memory it only counts them.
 */
#pragma once

#include "kernels/call.h"

#include <stddef.h>

typedef struct {
    unsigned char *base;
    uint64_t used;
} LhCudaScratch;

static inline void *
lh_cuda_take(LhCudaScratch *s, uint64_t bytes)
{
    void *taken = s->base == NULL ? NULL : s->base + s->used;

    s->used += (bytes + LH_SCRATCH_ALIGN - 1) / LH_SCRATCH_ALIGN * LH_SCRATCH_ALIGN;
    return taken;
}
