/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a training system does around calls of attention that no program has: its wrappers copy what
 * the kernel reads and writes, slice sums, and keep the host busy. A program says what is computed
 * and is proven; this is about how long a system takes for it. Formulas: docs/reference/model.md,
 * "Around a call of attention".
 */
#pragma once

#include "model/framework.h"
#include "program/program.h"
#include "sim/cost/device.h"

/* What is known of calls that came before. A zeroed one knows nothing. */
typedef struct {
    bool shifted; /* the last block of attention leaves out the first query and the last key */
} LhCallHistory;

/*
 * Bytes that @framework moves around compute op @op, as if all were moved in order: what is copied
 * by index counts call_slowdown times. 0 for ops that are no call of softmax attention and no merge
 * behind one. Ops of a rank come in program order; @history is that of the rank's step.
 */
double lh_call_bytes(const LhFramework *framework, const LhProgram *program, const LhOp *op,
                     LhCallHistory *history);

/* Time that the host spends on @op beside launching it; 0 for other ops than calls of softmax
 * attention. */
LhTime lh_call_host_ps(const LhFramework *framework, const LhOp *op);

/* How far what the framework's file says of these can be trusted. What its code says is exact. */
typedef struct {
    LhProvenance copies; /* around a call */
    LhProvenance slices; /* around a merge */
    LhProvenance host;
} LhCallTrust;

/* Of NULL: measured, since nothing is used. */
LhCallTrust lh_call_trust(const LhFramework *framework);
