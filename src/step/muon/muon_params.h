/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of the Muon optimizer of a step, by Megatron-LM's names.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What updates the matrices of layers; all other weights are always AdamW's. */
typedef enum { LH_OPTIMIZER_ADAM, LH_OPTIMIZER_MUON, LH_OPTIMIZERS } LhOptimizer;

/* What is orthogonalised of a matrix that tensor-parallel ranks share. */
typedef enum {
    LH_MUON_DUPLICATED, /* all of it, gathered, on every rank */
    LH_MUON_BLOCKWISE,  /* each rank's slice alone */
    LH_MUON_TP_MODES
} LhMuonTpMode;

/* Factor of the update of a matrix from `in` to `out` features. */
typedef enum {
    LH_MUON_SPECTRAL,      /* sqrt(max(out, in)) */
    LH_MUON_UNIT_RMS_NORM, /* sqrt(out / in) */
    LH_MUON_SHAPE_SCALING, /* sqrt(max(1, out / in)) */
    LH_MUON_SCALE_MODES
} LhMuonScaleMode;

/* Coefficients of Newton-Schulz steps. */
typedef enum {
    LH_MUON_QUINTIC,
    LH_MUON_SIMPLE,
    LH_MUON_POLAR_EXPRESS,
    LH_MUON_COEFFICIENTS
} LhMuonCoefficients;

typedef struct {
    uint8_t optimizer; /* LhOptimizer; if it is adam the rest means nothing */
    uint8_t tp_mode, scale_mode, coefficients;
    bool nesterov;
    uint32_t steps; /* of Newton-Schulz */
    double momentum, extra_scale;
} LhMuonParams;

#define LH_MUON_STEPS_MAX 100U

/* Indexed by their enums, NULL-terminated. */
extern const char *const lh_optimizer_names[];
extern const char *const lh_muon_tp_mode_names[];
extern const char *const lh_muon_scale_mode_names[];
extern const char *const lh_muon_coefficient_names[];
