/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast CPU versions. Files simd_*.c are compiled once per level (instruction set); the best level
 * that the processor has is used. Results are the same bits in every run and thread of one level,
 * not on two levels.
 */
#pragma once

#include "kernels/cpu/attention_run.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/linear_run.h"

typedef struct {
    const char *name;  /* "avx512" */
    unsigned lanes;    /* fp32 of one vector */
    bool (*has)(void); /* whether this processor can run it */
    /* Exact, or rounded to nearest even: the same on all levels. @count elements. */
    void (*to_fp32)(float *target, const void *source, enum lh_storage storage, uint64_t count);
    void (*from_fp32)(void *target, enum lh_storage storage, const float *source, uint64_t count);
    void (*forward)(const LhForward *f);
    void (*backward)(const LhBackward *b);
    void (*state_apply)(const LhStateApply *s);
    void (*state_sum)(const LhStateSum *s);
    void (*gemm)(const LhGemm *g);
    /* Independent multiply-adds in registers, @rounds times; returns their flops. What the
     * processor can do at most. */
    uint64_t (*multiply_adds)(uint64_t rounds, float *result);
} LhCpuLevel;

/* From the plainest to the widest, ended by NULL: those that this program was built with. */
extern const LhCpuLevel *const lh_cpu_levels[];

/* The level in use: the widest that the processor has, unless one was set. */
const LhCpuLevel *lh_cpu(void);

/* Uses @level, or the widest again for NULL; for tests and benchmarks, while no kernel runs. False,
 * and no change, if the processor does not have it. */
bool lh_cpu_set(const LhCpuLevel *level);

/* Defines NAME_reference() and NAME_cpu() of a kernel whose call NAME_prepare() turns into a TYPE:
 * the one hands it to REFERENCE, the other to FAST, which may be a function of the level. */
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
