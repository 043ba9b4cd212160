/*
 * How long a compute op takes on a device, and from where that is known. Formulas: docs/model.md,
 * "Compute time".
 */
#pragma once

#include "sim/sim.h"

typedef struct {
    LhCostMode mode;
    const LhDevice *device;
    uint32_t element_bytes;
    /* The device's curve for each kernel and mask (0 full, 1 causal); rate 0: none, roofline
     * instead. */
    LhKernelRate curves[LH_KERNELS_COUNT][2];
    const LhKernelTraffic *traffic[LH_KERNELS_COUNT]; /* NULL: by the device's memory */
    LhProvenance provenance;                          /* the weakest of what was asked for so far */
} LhCost;

void lh_cost_init(LhCost *cost, LhCostMode mode, const LhDevice *device, const LhProgram *program);

/*
 * Picoseconds of compute op @op alone on its device, without jitter or stragglers. @occupancy is
 * set to the share of the SMs that it keeps busy meanwhile, (0, 1]: the rest idles in its last
 * wave.
 */
LhTime lh_cost_compute(LhCost *cost, const LhOp *op, double *occupancy);
