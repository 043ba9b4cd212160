/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mask of a call as kernels on a GPU see it. Plain C: nvcc reads it, too.
 *
 * All masks are one: rows stand at places, and a query sees an interval of places. Under
 * LH_MASK_POSITIONS a place is a token of the sequence. Of the others it is the row's index; a
 * shift moves the queries.
 */
#pragma once

#include "kernels/call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Row i of part p stands at start + p * step + i * stride, modulo 2^32: from -1 to 2^31 - 1. */
typedef struct {
    uint32_t start, step, stride;
    uint32_t part_rows;
} LhCudaPlaces;

typedef struct {
    LhCudaPlaces q, k;
    const uint32_t *document_ends; /* device memory; not read if there are no documents */
    uint32_t documents;            /* 0: the sequence is one */
    uint32_t window;               /* 0: all that is before a query */
    bool causal;
    bool empty; /* nothing is seen */
} LhCudaMask;

/* Scratch that lh_cuda_mask needs of a call, in bytes; a multiple of LH_SCRATCH_ALIGN. */
uint64_t lh_cuda_mask_bytes(const LhKernelArgs *args);

/*
 * The mask of a call whose queries and keys have that many rows a part. Where there are documents,
 * their ends are written to @scratch, device memory, by kernels enqueued on @stream, to which the
 * numbers travel as arguments: CUDA copies these when a kernel is launched, so that nobody waits
 * and nothing of @args is read later. (cudaMemcpyAsync from memory that is not pinned may wait for
 * the stream.)
 */
enum lh_status lh_cuda_mask(const LhKernelArgs *args, uint64_t q_part_rows, uint64_t k_part_rows,
                            void *scratch, void *stream, LhCudaMask *mask);

/* Numbers that one launch carries; arguments may have 4 KiB everywhere. */
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
