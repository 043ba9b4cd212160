/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decay of linear attention, as weights of a product on a GPU.
 */
#pragma once

#include "kernels/call.h"
#include "kernels/cuda/product/product.h"

/* Returns log2 of the decay; 0 without decay. */
float lh_cuda_log2_decay(const LhKernelArgs *args);

/* decay^(i + 1) of query i. */
LhCudaWeights lh_cuda_query_weights(const LhKernelArgs *args);

/* decay^(n - 1 - i) of key i. */
LhCudaWeights lh_cuda_key_weights(const LhKernelArgs *args, uint64_t n);
