/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ops touch, for tests that order ops or judge their order. It shares no code with the
 * verifier.
 */
#pragma once

#include "program/op.h"

/* Every region that an op touches, and how. */
typedef struct {
    LhRegion region;
    bool write;
} Access;

#define ACCESSES_MAX 256 /* of one op */

/* Those of an op, whose messages stand in @parts, into @out; how many. */
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

/* Whether two ops touch a part that one of them writes. */
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
