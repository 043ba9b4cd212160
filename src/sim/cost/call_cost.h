/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of a training system's work around calls of attention, which programs do not contain: its
 * wrappers copy inputs and outputs of the kernel, slice sums, and occupy the host. Formulas:
 * docs/reference/model.md, "Around a call of attention".
 */
#pragma once

#include "model/framework.h"
#include "program/program.h"
#include "sim/cost/device.h"

/* State from earlier calls. Initially zero. */
typedef struct {
    bool shifted; /* the last attention block omits the first query and the last key */
} LhCallHistory;

/*
 * Bytes that @framework moves around compute op @op, as equivalent contiguous bytes: copies by
 * index count call_slowdown times. 0 for ops other than calls of softmax attention and merges after
 * them. Ops of a rank come in program order; @history belongs to the rank's step.
 */
double lh_call_bytes(const LhFramework *framework, const LhProgram *program, const LhOp *op,
                     LhCallHistory *history);

/* Host time of @op beside its launch; 0 for ops other than calls of softmax attention. */
LhTime lh_call_host_ps(const LhFramework *framework, const LhOp *op);

/* Provenance of these numbers in the framework's file. What its code states is exact. */
typedef struct {
    LhProvenance copies; /* around a call */
    LhProvenance slices; /* around a merge */
    LhProvenance host;
} LhCallTrust;

/* For NULL: measured, since nothing is used. */
LhCallTrust lh_call_trust(const LhFramework *framework);
