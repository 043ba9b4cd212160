/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix product c = a b on operands of the layer outside attention; each factor may be transposed.
 */
#pragma once

#include "kernels/cpu/matrix.h"

/*
 * Blocks of the fast version: rows and columns of c, and the length of a sum in registers before it
 * is added to c.
 */
#define LH_GEMM_ROWS 256U
#define LH_GEMM_COLUMNS 512U
#define LH_GEMM_DEPTH 256U
/* Panels of every level divide these. */
#define LH_GEMM_PANEL_ROWS 8U
#define LH_GEMM_PANEL_COLUMNS 32U

typedef struct {
    const LhMatrix *a, *b, *c;
    uint64_t a_row, b_row, c_row;  /* first rows of the operands */
    uint64_t rows, columns, depth; /* of c, c, and terms per sum */
    bool a_transposed;             /* its rows are steps of depth */
    bool b_transposed;             /* its rows are columns of c */
    bool add;                      /* adds to c */
    void *scratch;
} LhGemm;

/*
 * Scratch bytes for the reference and the fast version (LhCpuLevel.gemm). The order of the
 * product's dimensions does not matter.
 */
uint64_t lh_gemm_scratch_bytes(uint64_t rows, uint64_t columns, uint64_t depth);

/* Computes the product in fp64. */
void lh_gemm_reference(const LhGemm *g);
