/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast CPU versions. Files simd_*.c are compiled once per level (instruction set); the best level
 * that the processor supports is used. Results of one level are bitwise equal in every run and
 * thread; two levels may differ.
 */
#pragma once

#include "kernels/cpu/attention_run.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/linear_run.h"

typedef struct {
    const char *name;  /* "avx512" */
    unsigned lanes;    /* fp32 elements per vector */
    bool (*has)(void); /* whether this processor supports it */
    /* @count elements; exact, or rounded to nearest even: the same on all levels. */
    void (*to_fp32)(float *target, const void *source, enum lh_storage storage, uint64_t count);
    void (*from_fp32)(void *target, enum lh_storage storage, const float *source, uint64_t count);
    void (*forward)(const LhForward *f);
    void (*backward)(const LhBackward *b);
    void (*state_apply)(const LhStateApply *s);
    void (*state_sum)(const LhStateSum *s);
    void (*gemm)(const LhGemm *g);
    /*
     * Runs @rounds rounds of independent multiply-adds in registers and returns their flops:
     * measures the processor's peak.
     */
    uint64_t (*multiply_adds)(uint64_t rounds, float *result);
} LhCpuLevel;

/* The levels that this program was built with, narrowest first, NULL-terminated. */
extern const LhCpuLevel *const lh_cpu_levels[];

/* Returns the level in use: the widest that the processor supports, unless one was set. */
const LhCpuLevel *lh_cpu(void);

/*
 * Selects @level, or the widest again for NULL. For tests and benchmarks, while no kernel runs.
 * Returns false, without change, if the processor does not support it.
 */
bool lh_cpu_set(const LhCpuLevel *level);

/*
 * Defines NAME_reference() and NAME_cpu() of a kernel. NAME_prepare() turns the call into a TYPE;
 * REFERENCE or FAST, which may be a function of the level, computes it.
 */
#define LH_CPU_RUNS(NAME, TYPE, REFERENCE, FAST)                                                   \
    static enum lh_status NAME##_reference(const LhCall *call)                                     \
    {                                                                                              \
        TYPE work;                                                                                 \
                                                                                                   \
        if (!NAME##_prepare(call, &work))                                                          \
            return LH_STATUS_UNSUPPORTED;                                                          \
        REFERENCE(&work);                                                                          \
        return LH_STATUS_OK;                                                                       \
    }                                                                                              \
                                                                                                   \
    static enum lh_status NAME##_cpu(const LhCall *call)                                           \
    {                                                                                              \
        TYPE work;                                                                                 \
                                                                                                   \
        if (!NAME##_prepare(call, &work))                                                          \
            return LH_STATUS_UNSUPPORTED;                                                          \
        FAST(&work);                                                                               \
        return LH_STATUS_OK;                                                                       \
    }
