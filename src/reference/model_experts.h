/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mixture of experts in fp64, forward and backward, directly from the definition, for the
 * reference of training steps. For each row the router selects the experts with the largest logits
 * (of equal ones the first). The result is the sum of their MLPs' outputs, weighted by the softmax
 * of the selected logits.
 */
#pragma once

#include "reference/model_reference.h"

typedef struct {
    uint64_t rows, hidden, ffn;
    uint32_t experts, choices;
    bool gated;
    unsigned threads;
    LhModelReference *model;           /* borrowed: source of the noise */
    LhModelTensor *router, *up, *down; /* borrowed */
} LhMixture;

/*
 * State of one expert: its rows, in the order of the rows that chose it, and intermediate results.
 */
typedef struct {
    uint64_t count;
    uint64_t *choice; /* [count]: row x choices + index of the choice */
    double *x, *up, *p, *m;
} LhMixtureExpert;

/* State kept by the forward pass for the backward pass. */
typedef struct {
    double *weights; /* [rows][choices] */
    LhMixtureExpert *experts;
    uint32_t experts_count;
} LhMixturePass;

/* Computes y += the mixture of x; both [rows][hidden]. */
void lh_mixture_forward(const LhMixture *mixture, const double *x, double *y, LhMixturePass *pass);

/* Computes dx += the gradient of x, and adds the gradients of the weights. */
void lh_mixture_backward(const LhMixture *mixture, const LhMixturePass *pass, const double *x,
                         const double *dy, double *dx);

void lh_mixture_clear(LhMixturePass *pass);
