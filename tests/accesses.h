/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regions that ops access, for tests that order ops or check their order. Shares no code with
 * the verifier.
 */
#pragma once

#include "program/op.h"

/* A region that an op accesses, and whether it writes it. */
typedef struct {
    LhRegion region;
    bool write;
} Access;

#define ACCESSES_MAX 256 /* per op */

/* Writes the accesses of an op to @out; returns their number. @parts holds the messages of
 * exchanges. */
static inline uint32_t
accesses_of(const LhOp *op, const LhPart *parts, Access *out)
{
    uint32_t count = 0;

    if (op->kind == LH_OP_COMPUTE) {
        for (uint32_t i = 0; i < op->compute.regions_count; i++)
            out[count++] =
                (Access){ op->compute.regions[i],
                          lh_kernels[op->compute.kernel]->operands[i].access != LH_OPERAND_READ };
    } else if (op->kind == LH_OP_EXCHANGE) {
        for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
            const LhPart *part = &parts[op->exchange.parts_first + i];

            for (uint32_t k = 0; k < part->regions_count; k++)
                out[count++] = (Access){ part->regions[k], !part->send };
        }
    } else if (op->kind == LH_OP_COLLECTIVE) {
        for (uint32_t i = 0; i < op->collective.tensors_count; i++) {
            out[count++] = (Access){ op->collective.send[i], false };
            out[count++] = (Access){ op->collective.receive[i], true };
        }
    }
    return count;
}

/* True if two ops access a common part and at least one of them writes it. */
static inline bool
accesses_conflict(const Access *a, uint32_t a_count, const Access *b, uint32_t b_count)
{
    for (uint32_t i = 0; i < a_count; i++) {
        for (uint32_t k = 0; k < b_count; k++) {
            if ((a[i].write || b[k].write) && lh_regions_overlap(&a[i].region, &b[k].region))
                return true;
        }
    }
    return false;
}
