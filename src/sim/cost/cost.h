/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of a compute op on a device, and the provenance of that time. Formulas:
 * docs/reference/model.md, "Compute time".
 */
#pragma once

#include "sim/cost/attention_cost.h"
#include "sim/cost/call_cost.h"
#include "sim/cost/host_link.h"
#include "sim/cost/recent_calls.h"

typedef enum {
    LH_COST_DEVICE, /* the device's kernel curves */
    LH_COST_FLOPS,  /* exact attention flops at 1 PFLOP/s; everything else, including communication,
                       is free */
    LH_COST_UNIT,   /* every attention block takes 1 s; everything else is free */
} LhCostMode;

/* "device", "flops", "unit"; NULL-terminated. */
extern const char *const lh_cost_mode_names[];

/* Blocks outside the range that the curves of attention were fitted to, in tokens; 0: none. */
typedef struct {
    double shortest, fitted_from; /* the shortest such block, and the start of its curve's range */
    double longest, fitted_to;    /* the longest such block, and the end of that range */
} LhExtrapolation;

/* Widens @all to include @other. */
void lh_extrapolation_join(LhExtrapolation *all, const LhExtrapolation *other);

/* The device's curve for each kernel and mask (0 full, 1 causal) at one head dimension; rate 0:
 * none, use the roofline. */
typedef struct {
    uint32_t head_dim; /* 0: not computed yet */
    LhKernelRate rate[LH_KERNELS_COUNT][2];
} LhCostCurves;

/* Seconds of a compute op and of the framework's work around it, and their relative errors. */
typedef struct {
    double seconds, error;
    double around_seconds, around_error;
    bool judged; /* `error` comes from measurements of such calls */
} LhOpSeconds;

#define LH_COST_HEAD_DIMS 4 /* head dimensions cached; others are looked up each time */

typedef struct {
    LhCostMode mode;
    const LhDevice *device;
    bool serving;          /* serving systems' kernels, one at a time */
    GHashTable *loads;     /* cache of attention loads by shape; NULL: none yet; owned */
    LhRecentCalls *recent; /* likewise */
    LhCostCurves curves[LH_COST_HEAD_DIMS];
    const LhKernelTraffic *traffic[LH_KERNELS_COUNT]; /* weakest provenance used so far */
    LhProvenance provenance;                          /* the weakest used so far */
    double op_error; /* largest relative error of the constants of the current op */
    bool op_judged;  /* op_error comes from measurements of such calls, and so includes the model's
                        error */
    LhOpSeconds op_seconds;      /* of the latest op on the device */
    double spent_s, uncertain_s; /* sums over all ops: time, and time x error */
    double judged_s;             /* time of ops with op_judged */
    LhExtrapolation beyond;
    const LhHostLink *host_link;  /* for copies between device and host; NULL: they are free */
    const LhHostCpu *host_cpu;    /* for kernels on the host's CPU; likewise */
    uint64_t node_ranks;          /* that share it, at most */
    const LhFramework *framework; /* for work around attention calls; NULL: none */
    LhCallTrust trust;            /* of that work */
    LhCallHistory calls;
} LhCost;

/*
 * Attention uses, in this order: rows of the device's attention_kernel for the pass, the head
 * dimension and the mask; curves of exactly this head dimension; the first row for these; the
 * nearest curves. @device is borrowed.
 */
void lh_cost_init(LhCost *cost, LhCostMode mode, const LhDevice *device);
void lh_cost_clear(LhCost *cost);

/* Whether an attention block uses the curve of triangles; sets @keys to the length of its keys
 * there. */
bool lh_cost_is_triangle(const LhKernelArgs *args, double *keys);

/* Seconds of a call alone on the device by @curve, of an attention kernel. */
double lh_cost_curve_call(const LhDevice *device, const LhKernelRate *curve, LhKernelId kernel,
                          const LhKernelArgs *args);

/*
 * Picoseconds of compute op @op of @program alone on its device, without jitter or stragglers. Sets
 * @occupancy to the fraction of the SMs that it keeps busy, (0, 1]: the rest idles in its last
 * wave.
 */
LhTime lh_cost_compute(LhCost *cost, const LhProgram *program, const LhOp *op, double *occupancy);

/* Adds an op to the sums. lh_cost_compute() has done so for its own. */
void lh_cost_count(LhCost *cost, const LhOpSeconds *op);

/* Whether an op copies between device and host, on the device's copy engines, or runs on the host's
 * CPU. */
static inline bool
lh_op_is_of_host(const LhProgram *program, const LhOp *op)
{
    return op->kind == LH_OP_COMPUTE &&
           (lh_kernels[op->compute.kernel]->cost == LH_COST_HOST_LINK || lh_op_on_cpu(program, op));
}

/* Whether an op only represents work issued elsewhere. */
static inline bool
lh_op_is_outside(const LhOp *op)
{
    return op->kind == LH_OP_COMPUTE && lh_kernels[op->compute.kernel]->cost == LH_COST_OUTSIDE;
}
