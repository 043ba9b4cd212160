/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mask of a call for CUDA kernels. Plain C, also for nvcc.
 *
 * All masks have one form: rows have places, and a query sees an interval of places. Under
 * LH_MASK_POSITIONS a place is a token of the sequence. Under other masks it is the row's index,
 * and a shift moves the queries.
 */
#pragma once

#include "kernels/call.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The place of row i of part p is start + p * step + i * stride, modulo 2^32: from -1 to 2^31 - 1.
 */
typedef struct {
    uint32_t start, step, stride;
    uint32_t part_rows;
} LhCudaPlaces;

typedef struct {
    LhCudaPlaces q, k;
    const uint32_t *document_ends; /* device memory; not read without documents */
    uint32_t documents;            /* 0: no separate documents */
    uint32_t window;               /* 0: unlimited */
    bool causal;
    bool empty; /* no pair is allowed */
} LhCudaMask;

/* Scratch bytes of lh_cuda_mask() for a call; a multiple of LH_SCRATCH_ALIGN. */
uint64_t lh_cuda_mask_bytes(const LhKernelArgs *args);

/*
 * Builds the mask of a call with these numbers of query and key rows per part. Document ends are
 * written to @scratch, device memory, by kernels enqueued on @stream. The numbers are passed as
 * kernel arguments, which CUDA copies at launch: the host does not wait, and nothing of @args is
 * read later. (cudaMemcpyAsync from pageable memory may wait for the stream.)
 */
enum lh_status lh_cuda_mask(const LhKernelArgs *args, uint64_t q_part_rows, uint64_t k_part_rows,
                            void *scratch, void *stream, LhCudaMask *mask);

/* Numbers per launch; kernel arguments may have 4 KiB on every GPU. */
#define LH_CUDA_NUMBERS 960U

typedef struct {
    uint32_t *to;
    uint32_t count;
    uint32_t numbers[LH_CUDA_NUMBERS];
} LhCudaNumbers;

enum lh_status lh_cuda_write_numbers(const LhCudaNumbers *numbers, void *stream);

#ifdef __cplusplus
}
#endif
