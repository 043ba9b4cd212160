/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a compute op takes on a device, and from where that is known. Formulas:
 * docs/reference/model.md, "Compute time".
 */
#pragma once

#include "sim/cost/attention_cost.h"
#include "sim/cost/call_cost.h"

typedef enum {
    LH_COST_DEVICE, /* the device's kernel curves */
    LH_COST_FLOPS,  /* exact attention flops at 1 PFLOP/s; everything else, communication included,
                       is free */
    LH_COST_UNIT,   /* every attention block takes 1 s; everything else is free */
} LhCostMode;

/* "device", "flops", "unit"; NULL-terminated. */
extern const char *const lh_cost_mode_names[];

/* Blocks beyond those that the curves of attention were fitted to, in tokens; 0: none. */
typedef struct {
    double shortest, fitted_from; /* the shortest, and where its curve's points begin */
    double longest, fitted_to;    /* the longest, and where they end */
} LhExtrapolation;

/* Makes @all reach as far as @other, too. */
void lh_extrapolation_join(LhExtrapolation *all, const LhExtrapolation *other);

/* The device's curve for each kernel and mask (0 full, 1 causal) at one head dimension; rate 0:
 * none, roofline instead. */
typedef struct {
    uint32_t head_dim; /* 0: not filled */
    LhKernelRate rate[LH_KERNELS_COUNT][2];
} LhCostCurves;

#define LH_COST_HEAD_DIMS 4 /* that curves are kept for; more are looked up again and again */

typedef struct {
    LhCostMode mode;
    const LhDevice *device;
    bool serving;      /* kernels are those of serving systems, one at a time */
    GHashTable *loads; /* of attention kernels by their shapes; NULL: none yet; owned */
    LhCostCurves curves[LH_COST_HEAD_DIMS];
    const LhKernelTraffic *traffic[LH_KERNELS_COUNT]; /* NULL: by the device's memory */
    LhProvenance provenance;                          /* the weakest of what was asked for so far */
    double op_error; /* of the constants of the present op, the largest */
    bool op_judged;  /* it is of measurements of such calls: the model's error is in it */
    double spent_s, uncertain_s; /* of all ops so far: their time, and that times its error */
    double judged_s;             /* time of those whose error is of such measurements */
    LhExtrapolation beyond;
    const LhFramework *framework; /* what is done around calls of attention; NULL: nothing */
    LhCallTrust trust;            /* of that */
    LhCallHistory calls;
} LhCost;

/*
 * Attention takes the rows of the device's attention_kernel where there are any, for the pass, the
 * head dimension and the mask; else curves of this very head dimension; else the first row for
 * these; else the nearest curves. @device is borrowed.
 */
void lh_cost_init(LhCost *cost, LhCostMode mode, const LhDevice *device);
void lh_cost_clear(LhCost *cost);

/* Whether an attention block takes the curve of triangles, and the length of its keys there. */
bool lh_cost_is_triangle(const LhKernelArgs *args, double *keys);

/* Seconds that @curve, of a kernel of attention, makes of a call on the device, alone. */
double lh_cost_curve_call(const LhDevice *device, const LhKernelRate *curve, LhKernelId kernel,
                          const LhKernelArgs *args);

/*
 * Picoseconds of compute op @op of @program alone on its device, without jitter or stragglers.
 * @occupancy is set to the share of the SMs that it keeps busy meanwhile, (0, 1]: the rest idles in
 * its last wave.
 */
LhTime lh_cost_compute(LhCost *cost, const LhProgram *program, const LhOp *op, double *occupancy);

/* Whether an op only stands for what somebody else issues. */
static inline bool
lh_op_is_outside(const LhOp *op)
{
    return op->kind == LH_OP_COMPUTE && lh_kernels[op->compute.kernel]->cost == LH_COST_OUTSIDE;
}
