/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table row of a processor level: its fast kernels, the check for processor support, and the
 * multiply-add peak.
 */
#include "kernels/cpu/simd/simd.h"

#define SUMS 12U

/* Every processor with AVX2 has F16C (fp16 conversion) too; not all compilers can test for it. */
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

/* Uses enough chains to hide the latency of two additions per cycle. */
static uint64_t
multiply_adds(uint64_t rounds, float *result)
{
    LhVector sum[SUMS], x = lh_splat(*result), y = x;

    LH_UNROLL
    for (unsigned i = 0; i < SUMS; i++)
        sum[i] = lh_splat((float)i);
    for (uint64_t r = 0; r < rounds; r++) {
        /* Prevents constant folding of the loop. */
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
