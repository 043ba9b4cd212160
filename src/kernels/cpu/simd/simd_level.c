/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The row of a level of the processor: its fast kernels, whether the processor has it, and how many
 * multiplications and additions it does.
 */
#include "kernels/cpu/simd/simd.h"

#define SUMS 12U

/* Every processor with AVX2 converts fp16 too (F16C); not all compilers can ask for that. */
static bool
has(void)
{
#if defined(__AVX512F__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma");
#elif defined(__AVX2__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return true;
#endif
}

/* As many chains as hide the latency of an addition at two per cycle. */
static uint64_t
multiply_adds(uint64_t rounds, float *result)
{
    LhVector sum[SUMS], x = lh_splat(*result), y = x;

    LH_UNROLL
    for (unsigned i = 0; i < SUMS; i++)
        sum[i] = lh_splat((float)i);
    for (uint64_t r = 0; r < rounds; r++) {
        /* Keeps the compiler from working the loop out. */
        __asm__ volatile("" : : "m"(x), "m"(y));
        LH_UNROLL
        for (unsigned i = 0; i < SUMS; i++)
            sum[i] = sum[i] * x + y;
    }
    LH_UNROLL
    for (unsigned i = 1; i < SUMS; i++)
        sum[0] += sum[i];
    *result = sum[0][0];
    return rounds * SUMS * LH_VL * 2;
}

#define LH_STRING_(x) #x
#define LH_STRING(x) LH_STRING_(x)

const LhCpuLevel LH_SIMD(cpu) = {
    .name = LH_STRING(LH_LEVEL),
    .lanes = LH_VL,
    .has = has,
    .to_fp32 = LH_SIMD(to_fp32),
    .from_fp32 = LH_SIMD(from_fp32),
    .forward = LH_SIMD(forward),
    .backward = LH_SIMD(backward),
    .state_apply = LH_SIMD(state_apply),
    .state_sum = LH_SIMD(state_sum),
    .gemm = LH_SIMD(gemm),
    .multiply_adds = multiply_adds,
};
