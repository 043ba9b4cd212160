/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an error bar is made of: how far each constant moves a time by what it is good to, and what
 * would narrow the bar. To first order, as in error_bar.h. Kernels are told apart by kind, as the
 * ops of one rank have them.
 */
#pragma once

#include "compare/error_bar.h"

typedef enum {
    LH_CONSTANT_OF_LINK,        /* the rate of a tier */
    LH_CONSTANT_OF_COLLECTIVES, /* what NCCL's model makes of it */
    LH_CONSTANT_OF_FORWARD,     /* kernels: forward attention */
    LH_CONSTANT_OF_BACKWARD,    /* backward attention */
    LH_CONSTANT_OF_GEMM,        /* products within attention: linear, or of written scores */
    LH_CONSTANT_OF_PRODUCTS,    /* products with weights */
    LH_CONSTANT_OF_MEMORY,      /* whatever memory bounds */
    LH_CONSTANT_OF_HOST,        /* launches and waits */
    LH_CONSTANT_OF_SENDS, /* what messages and collectives reach of links that nobody measured them
                             on */
    LH_CONSTANT_KINDS
} LhConstantKind;

typedef struct {
    LhConstantKind kind;
    int tier;                /* of links and collectives */
    LhProvenance provenance; /* the weakest of the kind */
    double share;            /* of the time, that hangs on it */
    double error;            /* what it is good to, a mean by time */
    double moves;            /* share x error: what the time moves by, a share of it */
} LhSensitivity;

typedef struct {
    GArray *constants; /* of LhSensitivity, those that move the time, by how far, the most first */
    double bar;        /* the error bar of the time */
    double model;      /* the model's own part of it, which no constant narrows */
} LhSensitivities;

/*
 * Of a run of @program with these parts and this error bar (error_bar.h): none (NULL) where times
 * are no machine's. Caller frees.
 */
LhSensitivities *lh_sensitivities(const LhSetup *setup, const LhProgram *program,
                                  const LhErrorParts *parts, double time_error);
void lh_sensitivities_free(LhSensitivities *sensitivities);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSensitivities, lh_sensitivities_free)

/* The error bar if the first @count constants were measured. */
double lh_sensitivities_measured(const LhSensitivities *s, guint count);

/* How many of the first constants have to be measured to halve the bar; 0: no number does. */
guint lh_sensitivities_to_halve(const LhSensitivities *s);
