/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a call's tensors to launcher arguments, for the C files of this folder.
 */
#pragma once

#include "kernels/cpu/rows.h"
#include "kernels/cuda/rows/rows.h"

static inline LhCudaRows
lh_cuda_rows(LhRows rows)
{
    return (LhCudaRows){ .data = rows.data,
                         .part_bytes = rows.part_bytes,
                         .part_rows = (uint32_t)rows.part_rows,
                         .heads = rows.heads };
}
