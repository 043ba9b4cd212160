/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contributions to an error bar: how far the error of each constant moves a time, and which
 * measurements would narrow the bar. To first order, as in error_bar.h. Kernels are split by kind,
 * using the ops of one rank.
 */
#pragma once

#include "compare/error_bar.h"

typedef enum {
    LH_CONSTANT_OF_LINK,        /* bandwidth of a tier */
    LH_CONSTANT_OF_COLLECTIVES, /* NCCL's efficiency on it, by its model */
    LH_CONSTANT_OF_FORWARD,     /* kernels: attention, forward */
    LH_CONSTANT_OF_BACKWARD,    /* kernels: attention, backward */
    LH_CONSTANT_OF_GEMM, /* kernels: products within attention, linear or of materialized scores */
    LH_CONSTANT_OF_PRODUCTS, /* kernels: products with weights */
    LH_CONSTANT_OF_CPU,      /* kernels of the optimizer on the host's CPU */
    LH_CONSTANT_OF_MEMORY,   /* kernels bound by memory */
    LH_CONSTANT_OF_HOST,     /* launch and synchronisation */
    LH_CONSTANT_OF_SENDS, /* bandwidth of messages and collectives on links without measurements */
    LH_CONSTANT_KINDS
} LhConstantKind;

typedef struct {
    LhConstantKind kind;
    int tier;                /* for links and collectives */
    LhProvenance provenance; /* the weakest among the kind */
    double share;            /* share of the time that depends on it */
    double error;            /* its relative error, mean weighted by time */
    double moves;            /* share x error: how far the time moves, as a share */
} LhSensitivity;

typedef struct {
    GArray *constants; /* of LhSensitivity with an effect, largest first */
    double bar;        /* error bar of the time */
    double model;      /* contribution of the model itself, which no constant narrows */
} LhSensitivities;

/*
 * Analyses a run of @program with these parts and this error bar (error_bar.h). NULL if times are
 * no machine's. Caller frees.
 */
LhSensitivities *lh_sensitivities(const LhSetup *setup, const LhProgram *program,
                                  const LhErrorParts *parts, double time_error);
void lh_sensitivities_free(LhSensitivities *sensitivities);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSensitivities, lh_sensitivities_free)

/* Error bar if the first @count constants were measured. */
double lh_sensitivities_measured(const LhSensitivities *s, guint count);

/* Number of constants to measure, in this order, to halve the bar; 0: impossible. */
guint lh_sensitivities_to_halve(const LhSensitivities *s);
