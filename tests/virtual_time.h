/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in virtual time on the stand-in: a block of attention takes a second, as with `sim --cost
 * unit`.
 */
#pragma once

#include "runtime/executor.h"
#include "standin.h"

typedef struct {
    bool every_kernel; /* every kernel takes a second, not only blocks of attention */
} Costs;

/* Times as with sim --cost unit; @data: Costs, or NULL. */
static inline LhTime
unit_time(void *data, uint32_t rank, const LhOp *op)
{
    const LhEffect effect = lh_kernels[op->compute.kernel]->effect;
    const Costs *costs = data;

    (void)rank;
    return (costs != NULL && costs->every_kernel) || effect == LH_EFFECT_ATTEND ||
                   effect == LH_EFFECT_ATTEND_GRAD || effect == LH_EFFECT_SCORES
               ? LH_PS_PER_S
               : 0;
}

/* A kernel of several launches spends its time in the first one. */
static inline enum lh_status
call_with_time(void *data, uint32_t rank, const LhOp *op, const LhPlaceOfWork *at,
               const LhCall *call)
{
    standin_next_launch((double)unit_time(data, rank, op) / LH_PS_PER_S, rank);
    return at->device->call(at->state, op->compute.kernel, call, at->stream);
}

static inline void
load_zeros(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *bytes)
{
    (void)data;
    (void)rank;
    (void)slot;
    (void)part;
    (void)bytes;
}
