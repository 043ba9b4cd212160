/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adapters of the reference: y += (x A) B, and gradients. An A that the model does not have makes
 * all of these do nothing.
 */
#pragma once

#include "reference/model_reference.h"

typedef struct {
    LhModelReference *model;
    const LhModelTensor *a;
    uint64_t rows;
    unsigned threads;
} LhAdapter;

/* Returns x A; NULL without an adapter. Caller frees. */
double *lh_adapter_in(const LhAdapter *adapter, const double *x);
/* y += low B, where low is x A. */
void lh_adapter_out(const LhAdapter *adapter, const LhModelTensor *b, const double *low, double *y);

/* dlow += dy B^T, and adds the gradient of B. */
void lh_adapter_out_back(const LhAdapter *adapter, const LhModelTensor *b, const double *low,
                         const double *dy, double *dlow);
/* dx += dlow A^T, and adds the gradient of A. */
void lh_adapter_in_back(const LhAdapter *adapter, const double *x, const double *dlow, double *dx);
