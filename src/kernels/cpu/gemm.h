/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product of matrices, c = a b, that are operands of the layer outside attention, with either of
 * the factors transposed.
 */
#pragma once

#include "kernels/cpu/matrix.h"

/* Blocks that the fast version takes at a time: rows and columns of c, and the length of the sums
 * that are made in registers and then added up. */
#define LH_GEMM_ROWS 256U
#define LH_GEMM_COLUMNS 512U
#define LH_GEMM_DEPTH 256U
/* Panels of every level are parts of these. */
#define LH_GEMM_PANEL_ROWS 8U
#define LH_GEMM_PANEL_COLUMNS 32U

typedef struct {
    const LhMatrix *a, *b, *c;
    uint64_t a_row, b_row, c_row;  /* first rows of the operands */
    uint64_t rows, columns, depth; /* of c, c, and the sums */
    bool a_transposed;             /* its rows are steps of depth */
    bool b_transposed;             /* its rows are columns of c */
    bool add;                      /* to what c holds */
    void *scratch;
} LhGemm;

/* Bytes of scratch memory for the reference and for the fast version (LhCpuLevel.gemm), whichever
 * of a product's dimensions are rows, columns and depth. */
uint64_t lh_gemm_scratch_bytes(uint64_t rows, uint64_t columns, uint64_t depth);

/* In fp64. */
void lh_gemm_reference(const LhGemm *g);
