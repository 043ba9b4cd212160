/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/step_watch.h"

#include "step/layer_info.h"

G_STATIC_ASSERT((int)LH_STEP_EXPOSED <= LH_EXPOSED_DIMENSIONS);

static uint8_t
dimension_of(const LhOp *op)
{
    const LhDimension dimension = lh_step_dimension(op);

    /* Copies, and kernels on the host's CPU, whose stream is behind that of pipelines. */
    if (op->kind == LH_OP_COMPUTE && op->module == 0 &&
        (lh_kernels[op->compute.kernel]->cost == LH_COST_HOST_LINK ||
         op->stream > LH_STEP_STREAM_PIPELINE))
        return LH_EXPOSED_OFFLOAD;
    return (uint8_t)(dimension < LH_DIMENSIONS ? (int)dimension : LH_EXPOSED_DIMENSIONS);
}

void
lh_step_watch(const LhProgram *program, LhHooks *hooks)
{
    const uint32_t ranks = lh_program_ranks(program);

    hooks->exposed_stride = (ranks + LH_STEP_WATCHED_RANKS - 1) / LH_STEP_WATCHED_RANKS;
    hooks->exposed_dimension = dimension_of;
}

void
lh_step_exposed(const LhSimResult *result, double exposed_s[LH_STEP_EXPOSED])
{
    for (int d = 0; d < LH_STEP_EXPOSED; d++)
        exposed_s[d] = result->exposed_ranks == 0 ? 0
                                                  : (double)result->exposed_ps[d] /
                                                        (double)LH_PS_PER_S / result->exposed_ranks;
}
