/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mixture of experts in fp64, forward and backward, written down from the definition: for the
 * reference of training steps. A router's logits choose for each row the experts of the largest
 * ones (of equal ones the first), whose MLPs' outputs are added up by the softmax of the chosen.
 */
#pragma once

#include "reference/model_reference.h"

typedef struct {
    uint64_t rows, hidden, ffn;
    uint32_t experts, choices;
    bool gated;
    unsigned threads;
    LhModelReference *model;           /* borrowed: whose noise it has */
    LhModelTensor *router, *up, *down; /* borrowed */
} LhMixture;

/* Of one expert: its rows, in the order in which they chose it, and what it made of them. */
typedef struct {
    uint64_t count;
    uint64_t *choice; /* [count]: row x choices + the number of the choice */
    double *x, *up, *p, *m;
} LhMixtureExpert;

/* What the forward pass leaves for the backward pass. */
typedef struct {
    double *weights; /* [rows][choices] */
    LhMixtureExpert *experts;
    uint32_t experts_count;
} LhMixturePass;

/* y += the mixture of x; both [rows][hidden]. */
void lh_mixture_forward(const LhMixture *mixture, const double *x, double *y, LhMixturePass *pass);

/* dx += its gradient, and those of the weights. */
void lh_mixture_backward(const LhMixture *mixture, const LhMixturePass *pass, const double *x,
                         const double *dy, double *dx);

void lh_mixture_clear(LhMixturePass *pass);
