/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of elements, each on its own: lines of operands are read and written.
 */
#pragma once

#include "kernels/cuda/operands.h"
#include "kernels/status.h"

enum {
    LH_CUDA_SUM,        /* of one line: a copy */
    LH_CUDA_SUM_OF_TWO, /* the first times `value`, and the second */
    LH_CUDA_FILL,       /* with `value` */
    LH_CUDA_GLU,
    LH_CUDA_GLU_BWD,
    LH_CUDA_GELU,
    LH_CUDA_GELU_BWD,
    LH_CUDA_GATE,
    LH_CUDA_GATE_BWD,
    LH_CUDA_ADAM, /* gradient, moments, master; moments, master, weights rounded or none */
};

#define LH_CUDA_LINES 8

/* A step of the optimizer. The norm is read from the device's memory, as is the clock: steps done
 * before, 0 if there is no clock. */
typedef struct {
    const float *norm, *clock;
    float clip;                                 /* 0: none */
    float beta1, beta2, less_beta1, less_beta2; /* less_: 1 - beta */
    float log_beta1, log_beta2;
    float rate, epsilon, keep; /* keep: 1 - rate * decay of the weights */
} LhCudaAdam;

typedef struct {
    LhCudaLine lines[LH_CUDA_LINES]; /* those that are read, then those that are written */
    uint64_t count, width;           /* lines of so many elements */
    uint32_t function;
    float value;
    LhCudaAdam adam;
} LhCudaElements;

/* sum = ((t0 factor + t1) factor + t2) ...; more terms than this are refused. */
#define LH_CUDA_TERMS 400

typedef struct {
    const unsigned char *terms[LH_CUDA_TERMS];
    unsigned char *sum;
    uint64_t elements;
    uint32_t count, storage;
    float factor;
    bool grouped;
} LhCudaTerms;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_elements(const LhCudaElements *e, void *stream);
enum lh_status lh_cuda_terms(const LhCudaTerms *t, void *stream);
/* Raises the clock of the optimizer by a step; @first: it has none yet. */
enum lh_status lh_cuda_tick(float *clock, bool first, void *stream);

/*
 * Enqueues a sum of tensors element by element: in fp32, in the order of @terms, rounded once. The
 * list @terms is borrowed until the return; @sum may be one of them.
 */
enum lh_status lh_cuda_sum(unsigned char *const *terms, uint32_t count, unsigned char *sum,
                           uint64_t elements, enum lh_storage storage, void *stream);

#ifdef __cplusplus
}
#endif
