/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX instructions without a C++ equivalent, one function each.
 */
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace lh
{

__device__ inline uint32_t
shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Copy 16 or 4 bytes from global to shared memory; zeros if not @valid. */
__device__ inline void
copy16(uint32_t to, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
                 "r"(valid ? 16 : 0)
                 : "memory");
}

__device__ inline void
copy4(uint32_t to, const void *from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(to), "l"(from),
                 "r"(valid ? 4 : 0)
                 : "memory");
}

/* Closes a group of copies: those since the last call. */
__device__ inline void
copies_commit(void)
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

/* Waits until at most the last N groups of this thread are pending. */
template <int N>
__device__ inline void
copies_wait(void)
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

/* Store two numbers, or four words, to shared memory in one access. */
__device__ inline void
store_pair(uint32_t to, float x, float y)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(to), "f"(x), "f"(y) : "memory");
}

__device__ inline void
store_words(uint32_t to, uint4 x)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(to), "r"(x.x), "r"(x.y),
                 "r"(x.z), "r"(x.w)
                 : "memory");
}

/* Loads four 8 x 8 matrices; the lanes give the addresses of their rows, 8 lanes per matrix. */
__device__ inline void
load_matrices(uint32_t (&r)[4], uint32_t row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}

__device__ inline void
load_matrices_transposed(uint32_t (&r)[4], uint32_t row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}

/* c (16 x 8) += a (16 x 16) b (16 x 8); a and b have type T. */
template <typename T>
__device__ inline void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);

template <>
__device__ inline void
multiply<__nv_bfloat16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ inline void
multiply<__half>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* 2^x with relative error 2^-22; subnormal results are 0. */
__device__ inline float
exp2_fast(float x)
{
    float y;

    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
}

/* Packs two elements in a word, the first in its low half. */
template <typename T> __device__ inline uint32_t pack(float low, float high);

template <>
__device__ inline uint32_t
pack<__nv_bfloat16>(float low, float high)
{
    const __nv_bfloat162 x = __floats2bfloat162_rn(low, high);

    return *(const uint32_t *)&x;
}

template <>
__device__ inline uint32_t
pack<__half>(float low, float high)
{
    const __half2 x = __floats2half2_rn(low, high);

    return *(const uint32_t *)&x;
}

} // namespace lh
