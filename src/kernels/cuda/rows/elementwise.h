/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise functions on lines of operands.
 */
#pragma once

#include "kernels/cuda/operands.h"
#include "kernels/status.h"

enum {
    LH_CUDA_SUM,        /* of one line: copy */
    LH_CUDA_SUM_OF_TWO, /* value * first + second */
    LH_CUDA_FILL,       /* with `value` */
    LH_CUDA_GLU,
    LH_CUDA_GLU_BWD,
    LH_CUDA_GELU,
    LH_CUDA_GELU_BWD,
    LH_CUDA_GATE,
    LH_CUDA_GATE_BWD,
    LH_CUDA_ADAM, /* gradient, moments, master; moments, master, rounded weights (optional) */
};

#define LH_CUDA_LINES 8

/*
 * An optimizer step. The norm and the clock are read from device memory. The clock counts earlier
 * steps; NULL clock: 0.
 */
typedef struct {
    const float *norm, *clock;
    float clip;                                 /* 0: no clipping */
    float beta1, beta2, less_beta1, less_beta2; /* less_: 1 - beta */
    float log_beta1, log_beta2;
    float rate, epsilon, keep; /* keep: 1 - rate * decay of the weights */
} LhCudaAdam;

typedef struct {
    LhCudaLine lines[LH_CUDA_LINES]; /* inputs, then outputs */
    uint64_t count, width;           /* `count` lines of `width` elements */
    uint32_t function;
    float value;
    LhCudaAdam adam;
} LhCudaElements;

/* sum = ((t0 factor + t1) factor + t2) ...; more terms are rejected. */
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
/* Increments the optimizer's clock; @first: it starts at 0. */
enum lh_status lh_cuda_tick(float *clock, bool first, void *stream);

/*
 * Enqueues the elementwise sum of tensors: in fp32, in the order of @terms, rounded once. The list
 * @terms is borrowed until the return; @sum may be one of them.
 */
enum lh_status lh_cuda_sum(unsigned char *const *terms, uint32_t count, unsigned char *sum,
                           uint64_t elements, enum lh_storage storage, void *stream);

#ifdef __cplusplus
}
#endif
