/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that each lane computes for itself: arithmetic, comparisons, conversions. One
 * function executes an instruction for all 32 lanes in a loop that the compiler vectorises;
 * inactive lanes compute too and their results are dropped. This file is compiled twice into two
 * tables of forms, one of them for CPUs with AVX2 and FMA.
 */
#include "ptx_float.h"
#include "ptx_private.h"

#include <stdlib.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define ALL_LANES for (uint32_t i = 0; i < PTX_LANES; i++)
#define AT(T, offset) ((T *)ptx_at(warp, (offset)))
#define FUNCTION(name) static void name(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)

#define DEFINE_KEEP(T, name)                                                                       \
    static inline void keep_##name(ptx_warp *warp, uint32_t offset, const T *r, uint32_t mask)     \
    {                                                                                              \
        T *d = AT(T, offset);                                                                      \
                                                                                                   \
        if (mask == PTX_ALL_LANES) {                                                               \
            memcpy(d, r, PTX_LANES * sizeof(T));                                                   \
            return;                                                                                \
        }                                                                                          \
        ALL_LANES                                                                                  \
        {                                                                                          \
            d[i] = mask >> i & 1 ? r[i] : d[i];                                                    \
        }                                                                                          \
    }

DEFINE_KEEP(uint16_t, u16)
DEFINE_KEEP(uint32_t, u32)
DEFINE_KEEP(uint64_t, u64)
DEFINE_KEEP(int16_t, s16)
DEFINE_KEEP(int32_t, s32)
DEFINE_KEEP(int64_t, s64)
DEFINE_KEEP(float, f32)
DEFINE_KEEP(double, f64)

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;
__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

/* d = f(a), f(a, b), f(a, b, c): types of the result and of each operand. */
#define UNARY(name, D, A, expression)                                                              \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        const A *a = AT(A, in->a);                                                                 \
        D r[PTX_LANES];                                                                            \
                                                                                                   \
        ALL_LANES                                                                                  \
        {                                                                                          \
            const A x = a[i];                                                                      \
            r[i] = (D)(expression);                                                                \
        }                                                                                          \
        keep_##D(warp, in->d, r, mask);                                                            \
    }

#define BINARY(name, D, A, B, expression)                                                          \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        const A *a = AT(A, in->a);                                                                 \
        const B *b = AT(B, in->b);                                                                 \
        D r[PTX_LANES];                                                                            \
                                                                                                   \
        ALL_LANES                                                                                  \
        {                                                                                          \
            const A x = a[i];                                                                      \
            const B y = b[i];                                                                      \
            r[i] = (D)(expression);                                                                \
        }                                                                                          \
        keep_##D(warp, in->d, r, mask);                                                            \
    }

#define TERNARY(name, D, A, B, C, expression)                                                      \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        const A *a = AT(A, in->a);                                                                 \
        const B *b = AT(B, in->b);                                                                 \
        const C *c = AT(C, in->c);                                                                 \
        D r[PTX_LANES];                                                                            \
                                                                                                   \
        ALL_LANES                                                                                  \
        {                                                                                          \
            const A x = a[i];                                                                      \
            const B y = b[i];                                                                      \
            const C z = c[i];                                                                      \
            r[i] = (D)(expression);                                                                \
        }                                                                                          \
        keep_##D(warp, in->d, r, mask);                                                            \
    }

/* ---- integers ---- */

#define FOR_UNSIGNED(X) X(u16) X(u32) X(u64)
#define FOR_INTEGERS(X) X(u16) X(u32) X(u64) X(s16) X(s32) X(s64)

/* Signed and unsigned give the same bits. */
#define DEFINE(T)                                                                                  \
    BINARY(add_##T, T, T, T, x + y)                                                                \
    BINARY(sub_##T, T, T, T, x - y)                                                                \
    BINARY(mul_lo_##T, T, T, T, (u64)x *(u64)y)                                                    \
    TERNARY(mad_lo_##T, T, T, T, T, (u64)x *(u64)y + z)                                            \
    BINARY(and_##T, T, T, T, x &y)                                                                 \
    BINARY(or_##T, T, T, T, x | y)                                                                 \
    BINARY(xor_##T, T, T, T, x ^ y)                                                                \
    UNARY(not_##T, T, T, ~x)                                                                       \
    UNARY(cnot_##T, T, T, x == 0)                                                                  \
    UNARY(neg_##T, T, T, (T)0 - x)                                                                 \
    UNARY(mov_##T, T, T, x)                                                                        \
    BINARY(shl_##T, T, T, u32, y >= 8 * sizeof(T) ? (T)0 : x << (y & (8 * sizeof(T) - 1)))         \
    BINARY(shr_##T, T, T, u32, y >= 8 * sizeof(T) ? (T)0 : x >> (y & (8 * sizeof(T) - 1)))         \
    FUNCTION(selp_##T)                                                                             \
    {                                                                                              \
        const T *a = AT(T, in->a), *b = AT(T, in->b);                                              \
        const u32 p = *AT(u32, in->c);                                                             \
        T r[PTX_LANES];                                                                            \
                                                                                                   \
        ALL_LANES                                                                                  \
        {                                                                                          \
            r[i] = p >> i & 1 ? a[i] : b[i];                                                       \
        }                                                                                          \
        keep_##T(warp, in->d, r, mask);                                                            \
    }                                                                                              \
    TERNARY(slct_##T##_s32, T, T, T, s32, z >= 0 ? x : y)                                          \
    TERNARY(slct_##T##_f32, T, T, T, f32, z >= 0 || ptx_flush(z) == 0 ? x : y)
FOR_UNSIGNED(DEFINE)
#undef DEFINE

#define SHIFT_MAX(T, y) ((y) >= 8 * sizeof(T) ? 8 * sizeof(T) - 1 : (y))
BINARY(shr_s16, s16, s16, u32, x >> SHIFT_MAX(s16, y))
BINARY(shr_s32, s32, s32, u32, x >> SHIFT_MAX(s32, y))
BINARY(shr_s64, s64, s64, u32, x >> SHIFT_MAX(s64, y))

/* Division by zero gives all ones, as on the device; PTX leaves it undefined. */
#define DEFINE(T)                                                                                  \
    BINARY(min_##T, T, T, T, x < y ? x : y)                                                        \
    BINARY(max_##T, T, T, T, x > y ? x : y)
FOR_INTEGERS(DEFINE)
#undef DEFINE

#define DEFINE(T)                                                                                  \
    BINARY(div_##T, T, T, T, y == 0 ? (T)-1 : x / (y == 0 ? (T)1 : y))                             \
    BINARY(rem_##T, T, T, T, y == 0 ? x : x % (y == 0 ? (T)1 : y))
FOR_UNSIGNED(DEFINE)
#undef DEFINE

/* The smallest number divided by -1 overflows. */
#define DEFINE(T, U)                                                                               \
    BINARY(div_##T, T, T, T,                                                                       \
           y == 0    ? (T)-1                                                                       \
           : y == -1 ? (T)((U)0 - (U)x)                                                            \
                     : (T)(x / (y == 0 ? (T)1 : y)))                                               \
    BINARY(rem_##T, T, T, T, y == 0 ? x : y == -1 ? (T)0 : (T)(x % (y == 0 ? (T)1 : y)))           \
    UNARY(abs_##T, T, T, x < 0 ? (T)((U)0 - (U)x) : x)
DEFINE(s16, u16)
DEFINE(s32, u32)
DEFINE(s64, u64)
#undef DEFINE

/* Pairs of 16 bits. */
#define EACH_HALF(T, op) ((u32)(u16)op((T)x, (T)y) | (u32)(u16)op((T)(x >> 16), (T)(y >> 16)) << 16)
#define LESS(x, y) ((x) < (y) ? (x) : (y))
#define MORE(x, y) ((x) > (y) ? (x) : (y))
#define PLUS(x, y) ((x) + (y))
BINARY(min_u16x2, u32, u32, u32, EACH_HALF(u16, LESS))
BINARY(min_s16x2, u32, u32, u32, EACH_HALF(s16, LESS))
BINARY(max_u16x2, u32, u32, u32, EACH_HALF(u16, MORE))
BINARY(max_s16x2, u32, u32, u32, EACH_HALF(s16, MORE))
BINARY(add_u16x2, u32, u32, u32, EACH_HALF(u16, PLUS))

BINARY(mul_hi_u16, u16, u16, u16, (u32)x *(u32)y >> 16)
BINARY(mul_hi_s16, s16, s16, s16, ((s32)x * (s32)y) >> 16)
BINARY(mul_hi_u32, u32, u32, u32, (u64)x *(u64)y >> 32)
BINARY(mul_hi_s32, s32, s32, s32, ((s64)x * (s64)y) >> 32)
BINARY(mul_hi_u64, u64, u64, u64, (u64)((u128)x *(u128)y >> 64))
BINARY(mul_hi_s64, s64, s64, s64, (s64)((s128)x *(s128)y >> 64))
TERNARY(mad_hi_u32, u32, u32, u32, u32, ((u64)x * (u64)y >> 32) + z)
TERNARY(mad_hi_s32, u32, s32, s32, u32, (u32)(((s64)x * (s64)y) >> 32) + z)
TERNARY(mad_hi_u64, u64, u64, u64, u64, (u64)((u128)x *(u128)y >> 64) + z)
TERNARY(mad_hi_s64, u64, s64, s64, u64, (u64)((s128)x *(s128)y >> 64) + z)
BINARY(mul_wide_u16, u32, u16, u16, (u32)x *(u32)y)
BINARY(mul_wide_s16, u32, s16, s16, (u32)((s32)x *(s32)y))
BINARY(mul_wide_u32, u64, u32, u32, (u64)x *(u64)y)
BINARY(mul_wide_s32, u64, s32, s32, (u64)((s64)x *(s64)y))
TERNARY(mad_wide_u16, u32, u16, u16, u32, (u32)x *(u32)y + z)
TERNARY(mad_wide_s16, u32, s16, s16, u32, (u32)((s32)x *(s32)y) + z)
TERNARY(mad_wide_u32, u64, u32, u32, u64, (u64)x *(u64)y + z)
TERNARY(mad_wide_s32, u64, s32, s32, u64, (u64)((s64)x *(s64)y) + z)
#define LOW_24(x) ((x)&0xffffffu)
#define SIGNED_24(x) ((s64)((s32)((x) << 8) >> 8))
BINARY(mul24_lo_u32, u32, u32, u32, (u64)LOW_24(x) * LOW_24(y))
BINARY(mul24_lo_s32, u32, u32, u32, SIGNED_24(x) * SIGNED_24(y))
TERNARY(mad24_lo_u32, u32, u32, u32, u32, (u64)LOW_24(x) * LOW_24(y) + z)
TERNARY(mad24_lo_s32, u32, u32, u32, u32, (u64)(SIGNED_24(x) * SIGNED_24(y)) + z)
#define CLAMP_S32(x) ((x) > INT32_MAX ? INT32_MAX : (x) < INT32_MIN ? INT32_MIN : (x))
BINARY(add_sat_s32, s32, s32, s32, CLAMP_S32((s64)x + (s64)y))
BINARY(sub_sat_s32, s32, s32, s32, CLAMP_S32((s64)x - (s64)y))
TERNARY(sad_u32, u32, u32, u32, u32, z + (x > y ? x - y : y - x))
TERNARY(sad_s32, u32, s32, s32, u32, z + (x > y ? (u32)x - (u32)y : (u32)y - (u32)x))

UNARY(popc_u32, u32, u32, __builtin_popcount(x))
UNARY(popc_u64, u32, u64, __builtin_popcountll(x))
UNARY(clz_u32, u32, u32, x == 0 ? 32 : __builtin_clz(x))
UNARY(clz_u64, u32, u64, x == 0 ? 64 : __builtin_clzll(x))

static inline u64
reverse(u64 x)
{
    x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
    x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
    return __builtin_bswap64(x);
}
UNARY(brev_u32, u32, u32, reverse(x) >> 32)
UNARY(brev_u64, u64, u64, reverse(x))

/* The highest bit that is not the sign; -1: there is none. */
#define FIND(x, bits, clz) ((x) == 0 ? UINT32_MAX : (u32)((bits)-1 - clz(x)))
UNARY(bfind_u32, u32, u32, FIND(x, 32, __builtin_clz))
UNARY(bfind_s32, u32, u32, FIND((u32)((s32)x < 0 ? ~x : x), 32, __builtin_clz))
UNARY(bfind_u64, u32, u64, FIND(x, 64, __builtin_clzll))
UNARY(bfind_s64, u32, u64, FIND((u64)((s64)x < 0 ? ~x : x), 64, __builtin_clzll))
#define FIND_SHIFT(x, bits, clz) ((x) == 0 ? UINT32_MAX : (u32)clz(x))
UNARY(bfind_shift_u32, u32, u32, FIND_SHIFT(x, 32, __builtin_clz))
UNARY(bfind_shift_s32, u32, u32, FIND_SHIFT((u32)((s32)x < 0 ? ~x : x), 32, __builtin_clz))
UNARY(bfind_shift_u64, u32, u64, FIND_SHIFT(x, 64, __builtin_clzll))
UNARY(bfind_shift_s64, u32, u64, FIND_SHIFT((u64)((s64)x < 0 ? ~x : x), 64, __builtin_clzll))

static inline u64
extract(u64 x, u32 position, u32 length, u32 bits, bool sign)
{
    u64 field;

    position &= 255;
    length &= 255;
    if (length == 0)
        return 0;
    field = position >= bits ? 0 : x >> position;
    if (sign && (position >= bits || position + length > bits)) {
        /* Bits beyond the register are copies of its top bit. */
        const u64 last = x >> (bits - 1) & 1;
        const u32 there = position >= bits ? 0 : bits - position;

        if (last != 0)
            field |= there >= 64 ? 0 : ~UINT64_C(0) << there;
    }
    if (length < 64) {
        const u64 top = field >> (length - 1) & 1;

        field &= (UINT64_C(1) << length) - 1;
        if (sign && top != 0)
            field |= ~UINT64_C(0) << length;
    }
    return field;
}
TERNARY(bfe_u32, u32, u32, u32, u32, extract(x, y, z, 32, false))
TERNARY(bfe_s32, u32, u32, u32, u32, extract(x, y, z, 32, true))
TERNARY(bfe_u64, u64, u64, u32, u32, extract(x, y, z, 64, false))
TERNARY(bfe_s64, u64, u64, u32, u32, extract(x, y, z, 64, true))

static inline u64
insert(u64 field, u64 into, u32 position, u32 length, u32 bits)
{
    u64 ones;

    position &= 255;
    length &= 255;
    if (position >= bits || length == 0)
        return into;
    ones = (length >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << length) - 1) << position;
    return (into & ~ones) | (field << position & ones);
}
#define DEFINE(T, bits)                                                                            \
    FUNCTION(bfi_##T)                                                                              \
    {                                                                                              \
        const T *a = AT(T, in->a), *b = AT(T, in->b);                                              \
        const u32 *c = AT(u32, in->c), *f = AT(u32, in->f);                                        \
        T r[PTX_LANES];                                                                            \
                                                                                                   \
        ALL_LANES                                                                                  \
        {                                                                                          \
            r[i] = (T)insert(a[i], b[i], c[i], f[i], bits);                                        \
        }                                                                                          \
        keep_##T(warp, in->d, r, mask);                                                            \
    }
DEFINE(u32, 32)
DEFINE(u64, 64)
#undef DEFINE

static inline u32
ones_at(u32 position, u32 length, bool clamp)
{
    if (!clamp) {
        position &= 31;
        length &= 31;
    } else if (position > 31) {
        return 0;
    }
    return (u32)((length >= 32 ? 0xffffffffu : (1u << length) - 1) << position);
}
BINARY(bmsk_clamp, u32, u32, u32, ones_at(x, y, true))
BINARY(bmsk_wrap, u32, u32, u32, ones_at(x, y, false))

static inline u32
permute(u32 a, u32 b, u32 selector)
{
    const u64 pool = (u64)b << 32 | a;
    u32 r = 0;

    for (u32 i = 0; i < 4; i++) {
        const u32 s = selector >> 4 * i & 15;
        u32 byte = (u32)(pool >> 8 * (s & 7)) & 255;

        if ((s & 8) != 0)
            byte = (byte & 128) != 0 ? 255 : 0;
        r |= byte << 8 * i;
    }
    return r;
}
TERNARY(prmt_b32, u32, u32, u32, u32, permute(x, y, z))

/* The other modes as selectors of the first mode, indexed by the last two bits of c. */
static const u16 prmt_f4e[] = { 0x3210, 0x4321, 0x5432, 0x6543 };
static const u16 prmt_b4e[] = { 0x5670, 0x6701, 0x7012, 0x0123 };
static const u16 prmt_rc8[] = { 0x0000, 0x1111, 0x2222, 0x3333 };
static const u16 prmt_ecl[] = { 0x3210, 0x3211, 0x3222, 0x3333 };
static const u16 prmt_ecr[] = { 0x0000, 0x1110, 0x2210, 0x3210 };
static const u16 prmt_rc16[] = { 0x1010, 0x3232, 0x1010, 0x3232 };
TERNARY(prmt_f4e_b32, u32, u32, u32, u32, permute(x, y, prmt_f4e[z & 3]))
TERNARY(prmt_b4e_b32, u32, u32, u32, u32, permute(x, y, prmt_b4e[z & 3]))
TERNARY(prmt_rc8_b32, u32, u32, u32, u32, permute(x, y, prmt_rc8[z & 3]))
TERNARY(prmt_ecl_b32, u32, u32, u32, u32, permute(x, y, prmt_ecl[z & 3]))
TERNARY(prmt_ecr_b32, u32, u32, u32, u32, permute(x, y, prmt_ecr[z & 3]))
TERNARY(prmt_rc16_b32, u32, u32, u32, u32, permute(x, y, prmt_rc16[z & 3]))

#define CLAMP_32(n) ((n) > 32 ? 32 : (n))
TERNARY(shf_l_wrap, u32, u32, u32, u32, ((u64)y << 32 | x) << (z & 31) >> 32)
TERNARY(shf_r_wrap, u32, u32, u32, u32, ((u64)y << 32 | x) >> (z & 31))
TERNARY(shf_l_clamp, u32, u32, u32, u32, ((u64)y << 32 | x) << CLAMP_32(z) >> 32)
TERNARY(shf_r_clamp, u32, u32, u32, u32, ((u64)y << 32 | x) >> CLAMP_32(z))

/* In the index of the truth table a's bit is the highest. */
FUNCTION(lop3_b32)
{
    const u32 *a = AT(u32, in->a), *b = AT(u32, in->b), *c = AT(u32, in->c);
    const u32 table = (u32)in->immediate;
    u32 r[PTX_LANES] = { 0 };

    for (u32 k = 0; k < 8; k++) {
        const u32 of_a = (k & 4) != 0 ? 0 : ~0u, of_b = (k & 2) != 0 ? 0 : ~0u,
                  of_c = (k & 1) != 0 ? 0 : ~0u;

        if ((table >> k & 1) == 0)
            continue;
        ALL_LANES
        {
            r[i] |= (a[i] ^ of_a) & (b[i] ^ of_b) & (c[i] ^ of_c);
        }
    }
    keep_u32(warp, in->d, r, mask);
}

/* Sums and products of four bytes or of two halves and bytes. */
static inline u32
dot4(u32 a, u32 b, u32 c, bool a_signed, bool b_signed)
{
    for (u32 i = 0; i < 4; i++) {
        const u32 x = a >> 8 * i & 255, y = b >> 8 * i & 255;

        c += (a_signed ? (u32)(int8_t)x : x) * (b_signed ? (u32)(int8_t)y : y);
    }
    return c;
}
TERNARY(dp4a_uu, u32, u32, u32, u32, dot4(x, y, z, false, false))
TERNARY(dp4a_us, u32, u32, u32, u32, dot4(x, y, z, false, true))
TERNARY(dp4a_su, u32, u32, u32, u32, dot4(x, y, z, true, false))
TERNARY(dp4a_ss, u32, u32, u32, u32, dot4(x, y, z, true, true))

/* ---- carries: one bit per lane, at in->f ----
 *
 * Subtraction adds the complement and leaves that sum's carry, 1 if nothing was borrowed. The
 * manual calls it a borrow, which makes no difference between subtractions; but CUDA's own 128-bit
 * division adds with the carry of a subtraction and is correct only with this definition. */

static inline void
keep_bits(ptx_warp *warp, uint32_t offset, uint32_t bits, uint32_t mask)
{
    u32 *d = AT(u32, offset);

    *d = (*d & ~mask) | (bits & mask);
}

#define CARRY(name, T, wide_expression, with, out)                                                 \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        const T *a = AT(T, in->a), *b = AT(T, in->b);                                              \
        const u32 carries = (with) ? *AT(u32, in->f) : 0;                                          \
        u32 next = 0;                                                                              \
        T r[PTX_LANES];                                                                            \
                                                                                                   \
        ALL_LANES                                                                                  \
        {                                                                                          \
            const u128 x = a[i], y = b[i], carry = carries >> i & 1;                               \
            const u128 sum = wide_expression;                                                      \
                                                                                                   \
            (void)carry;                                                                           \
                                                                                                   \
            r[i] = (T)sum;                                                                         \
            next |= (u32)(sum >> 8 * sizeof(T) & 1) << i;                                          \
        }                                                                                          \
        keep_##T(warp, in->d, r, mask);                                                            \
        if (out)                                                                                   \
            keep_bits(warp, in->f, next, mask);                                                    \
    }
#define DEFINE(T)                                                                                  \
    CARRY(add_cc_##T, T, x + y + carry, false, true)                                               \
    CARRY(addc_##T, T, x + y + carry, true, false)                                                 \
    CARRY(addc_cc_##T, T, x + y + carry, true, true)                                               \
    CARRY(sub_cc_##T, T, x + (T) ~(T)y + 1, false, true)                                           \
    CARRY(subc_##T, T, x + (T) ~(T)y + carry, true, false)                                         \
    CARRY(subc_cc_##T, T, x + (T) ~(T)y + carry, true, true)
DEFINE(u32)
DEFINE(u64)
#undef DEFINE

#define MAD_CARRY(name, T, A, high, with, out)                                                     \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        const A *a = AT(A, in->a), *b = AT(A, in->b);                                              \
        const T *c = AT(T, in->c);                                                                 \
        const u32 carries = (with) ? *AT(u32, in->f) : 0;                                          \
        u32 next = 0;                                                                              \
        T r[PTX_LANES];                                                                            \
                                                                                                   \
        ALL_LANES                                                                                  \
        {                                                                                          \
            const u128 product = (u128)((s128)a[i] * (s128)b[i]);                                  \
            const u128 part = (T)((high) ? product >> 8 * sizeof(T) : product);                    \
            const u128 sum = part + c[i] + (carries >> i & 1);                                     \
                                                                                                   \
            r[i] = (T)sum;                                                                         \
            next |= (u32)(sum >> 8 * sizeof(T) & 1) << i;                                          \
        }                                                                                          \
        keep_##T(warp, in->d, r, mask);                                                            \
        if (out)                                                                                   \
            keep_bits(warp, in->f, next, mask);                                                    \
    }
#define DEFINE(T, S)                                                                               \
    MAD_CARRY(mad_lo_cc_##T, T, T, false, false, true)                                             \
    MAD_CARRY(madc_lo_##T, T, T, false, true, false)                                               \
    MAD_CARRY(madc_lo_cc_##T, T, T, false, true, true)                                             \
    MAD_CARRY(mad_hi_cc_##T, T, T, true, false, true)                                              \
    MAD_CARRY(madc_hi_##T, T, T, true, true, false)                                                \
    MAD_CARRY(madc_hi_cc_##T, T, T, true, true, true)                                              \
    MAD_CARRY(mad_hi_cc_##S, T, S, true, false, true)                                              \
    MAD_CARRY(madc_hi_##S, T, S, true, true, false)                                                \
    MAD_CARRY(madc_hi_cc_##S, T, S, true, true, true)
DEFINE(u32, s32)
DEFINE(u64, s64)
#undef DEFINE

/* ---- predicates: a bit for each lane ---- */

FUNCTION(and_pred)
{
    keep_bits(warp, in->d, *AT(u32, in->a) & *AT(u32, in->b), mask);
}

FUNCTION(or_pred)
{
    keep_bits(warp, in->d, *AT(u32, in->a) | *AT(u32, in->b), mask);
}

FUNCTION(xor_pred)
{
    keep_bits(warp, in->d, *AT(u32, in->a) ^ *AT(u32, in->b), mask);
}

FUNCTION(not_pred)
{
    keep_bits(warp, in->d, ~*AT(u32, in->a), mask);
}

FUNCTION(mov_pred)
{
    keep_bits(warp, in->d, *AT(u32, in->a), mask);
}

static inline u32
pack_bits(const s32 truth[PTX_LANES])
{
    u32 bits = 0;

#if defined(__AVX2__)
    for (u32 i = 0; i < 4; i++) {
        const __m256i part = _mm256_loadu_si256((const __m256i *)(const void *)(truth + 8 * i));

        bits |= (u32)_mm256_movemask_ps(_mm256_castsi256_ps(part)) << 8 * i;
    }
#else
    ALL_LANES
    {
        bits |= ((u32)truth[i] & 1) << i;
    }
#endif
    return bits;
}

#define LOOP(expression)                                                                           \
    do {                                                                                           \
        ALL_LANES                                                                                  \
        {                                                                                          \
            const T x = a[i], y = b[i];                                                            \
            truth[i] = -(s32)(expression);                                                         \
        }                                                                                          \
    } while (0)

#define DEFINE_COMPARE(name)                                                                       \
    static u32 compare_##name(const ptx_instruction *in, const T *a, const T *b)                   \
    {                                                                                              \
        s32 truth[PTX_LANES];                                                                      \
                                                                                                   \
        switch (in->compare) {                                                                     \
        case PTX_EQ:                                                                               \
            LOOP(x == y);                                                                          \
            break;                                                                                 \
        case PTX_NE: /* false for NaN */                                                           \
            LOOP(x<y || x> y);                                                                     \
            break;                                                                                 \
        case PTX_LT:                                                                               \
            LOOP(x < y);                                                                           \
            break;                                                                                 \
        case PTX_LE:                                                                               \
            LOOP(x <= y);                                                                          \
            break;                                                                                 \
        case PTX_GT:                                                                               \
            LOOP(x > y);                                                                           \
            break;                                                                                 \
        case PTX_GE:                                                                               \
            LOOP(x >= y);                                                                          \
            break;                                                                                 \
        case PTX_EQU:                                                                              \
            LOOP(!(x < y || x > y));                                                               \
            break;                                                                                 \
        case PTX_NEU:                                                                              \
            LOOP(!(x == y));                                                                       \
            break;                                                                                 \
        case PTX_LTU:                                                                              \
            LOOP(!(x >= y));                                                                       \
            break;                                                                                 \
        case PTX_LEU:                                                                              \
            LOOP(!(x > y));                                                                        \
            break;                                                                                 \
        case PTX_GTU:                                                                              \
            LOOP(!(x <= y));                                                                       \
            break;                                                                                 \
        case PTX_GEU:                                                                              \
            LOOP(!(x < y));                                                                        \
            break;                                                                                 \
        case PTX_NUM:                                                                              \
            LOOP(x == x && y == y);                                                                \
            break;                                                                                 \
        default:                                                                                   \
            LOOP(x != x || y != y);                                                                \
            break;                                                                                 \
        }                                                                                          \
        return pack_bits(truth);                                                                   \
    }

/* p = (a ? b) op c, q = !(a ? b) op c */
static inline u32
combine(const ptx_instruction *in, u32 bits, u32 c)
{
    switch (in->boolean) {
    case PTX_BOOL_AND:
        return bits & c;
    case PTX_BOOL_OR:
        return bits | c;
    case PTX_BOOL_XOR:
        return bits ^ c;
    default:
        return bits;
    }
}

static inline void
keep_compared(ptx_warp *warp, const ptx_instruction *in, u32 bits, uint32_t mask)
{
    u32 c = 0;

    if (in->boolean != PTX_BOOL_NONE)
        c = in->negated ? ~*AT(u32, in->c) : *AT(u32, in->c);
    if (in->d != PTX_NONE)
        keep_bits(warp, in->d, combine(in, bits, c), mask);
    if (in->e != PTX_NONE)
        keep_bits(warp, in->e, combine(in, ~bits, c), mask);
}

/* 0 or all ones; 0 or 1 for a result of type f32. */
static inline void
keep_set(ptx_warp *warp, const ptx_instruction *in, u32 bits, uint32_t mask)
{
    const u32 yes = in->type == PTX_F32 ? ptx_bits_of(1.0f) : UINT32_MAX;
    u32 c = 0, r[PTX_LANES];

    if (in->boolean != PTX_BOOL_NONE)
        c = in->negated ? ~*AT(u32, in->c) : *AT(u32, in->c);
    bits = combine(in, bits, c);
    ALL_LANES
    {
        r[i] = bits >> i & 1 ? yes : 0;
    }
    keep_u32(warp, in->d, r, mask);
}

#define DEFINE_SETP(name)                                                                          \
    FUNCTION(setp_##name)                                                                          \
    {                                                                                              \
        keep_compared(warp, in, compare_##name(in, AT(name, in->a), AT(name, in->b)), mask);       \
    }                                                                                              \
    FUNCTION(set_##name)                                                                           \
    {                                                                                              \
        keep_set(warp, in, compare_##name(in, AT(name, in->a), AT(name, in->b)), mask);            \
    }

#define T u16
DEFINE_COMPARE(u16)
#undef T
#define T s16
DEFINE_COMPARE(s16)
#undef T
#define T u32
DEFINE_COMPARE(u32)
#undef T
#define T s32
DEFINE_COMPARE(s32)
#undef T
#define T u64
DEFINE_COMPARE(u64)
#undef T
#define T s64
DEFINE_COMPARE(s64)
#undef T
#define T f32
DEFINE_COMPARE(f32_plain)
#undef T
#define T f64
DEFINE_COMPARE(f64)
#undef T

static u32
compare_f32(const ptx_instruction *in, const f32 *a, const f32 *b)
{
    f32 x[PTX_LANES], y[PTX_LANES];

    if (!in->ftz)
        return compare_f32_plain(in, a, b);
    ALL_LANES
    {
        x[i] = ptx_flush(a[i]);
        y[i] = ptx_flush(b[i]);
    }
    return compare_f32_plain(in, x, y);
}

FOR_INTEGERS(DEFINE_SETP)
DEFINE_SETP(f32)
DEFINE_SETP(f64)

static inline f32
half_of(u16 x, bool bf16)
{
    return bf16 ? ptx_from_bf16(x) : ptx_from_f16(x);
}

#define DEFINE(name, is_bf16)                                                                      \
    FUNCTION(setp_##name)                                                                          \
    {                                                                                              \
        const u16 *a = AT(u16, in->a), *b = AT(u16, in->b);                                        \
        f32 x[PTX_LANES], y[PTX_LANES];                                                            \
                                                                                                   \
        ALL_LANES                                                                                  \
        {                                                                                          \
            x[i] = half_of(a[i], is_bf16);                                                         \
            y[i] = half_of(b[i], is_bf16);                                                         \
        }                                                                                          \
        keep_compared(warp, in, compare_f32_plain(in, x, y), mask);                                \
    }                                                                                              \
    /* The halves of a pair are compared separately: p is the lower's result, q the upper's. */    \
    FUNCTION(setp_##name##x2)                                                                      \
    {                                                                                              \
        const u32 *a = AT(u32, in->a), *b = AT(u32, in->b);                                        \
        f32 x[PTX_LANES], y[PTX_LANES];                                                            \
        u32 c = PTX_ALL_LANES;                                                                     \
                                                                                                   \
        if (in->boolean != PTX_BOOL_NONE)                                                          \
            c = in->negated ? ~*AT(u32, in->c) : *AT(u32, in->c);                                  \
        for (u32 half = 0; half < 2; half++) {                                                     \
            const uint32_t to = half == 0 ? in->d : in->e;                                         \
                                                                                                   \
            ALL_LANES                                                                              \
            {                                                                                      \
                x[i] = half_of((u16)(a[i] >> 16 * half), is_bf16);                                 \
                y[i] = half_of((u16)(b[i] >> 16 * half), is_bf16);                                 \
            }                                                                                      \
            if (to != PTX_NONE)                                                                    \
                keep_bits(warp, to, combine(in, compare_f32_plain(in, x, y), c), mask);            \
        }                                                                                          \
    }
DEFINE(f16, false)
DEFINE(bf16, true)
#undef DEFINE

/* 1.0 of the result's type, or all ones. */
static inline u32
yes_of_half(uint8_t type)
{
    switch (type) {
    case PTX_F16:
    case PTX_F16X2:
        return 0x3c00;
    case PTX_BF16:
    case PTX_BF16X2:
        return 0x3f80;
    default:
        return 0xffff;
    }
}

static inline void
set_halves(ptx_warp *warp, const ptx_instruction *in, uint32_t mask, bool bf16, u32 halves)
{
    const u32 yes = yes_of_half(in->type);

    for (u32 half = 0; half < halves; half++) {
        f32 x[PTX_LANES], y[PTX_LANES];
        u32 bits;

        ALL_LANES
        {
            x[i] = half_of(AT(u16, in->a)[i * halves + half], bf16);
            y[i] = half_of(AT(u16, in->b)[i * halves + half], bf16);
        }
        bits = compare_f32_plain(in, x, y);
        /* The sources of later halves are not overwritten here. */
        PTX_EACH_LANE(lane, mask)
        {
            AT(u16, in->d)[lane * halves + half] = (u16)(bits >> lane & 1 ? yes : 0);
        }
    }
}

FUNCTION(set_f16)
{
    set_halves(warp, in, mask, false, 1);
}

FUNCTION(set_bf16)
{
    set_halves(warp, in, mask, true, 1);
}

FUNCTION(set_f16x2)
{
    set_halves(warp, in, mask, false, 2);
}

FUNCTION(set_bf16x2)
{
    set_halves(warp, in, mask, true, 2);
}

/* ---- floating point of 32 bits ---- */

static inline f32
canonical(f32 x)
{
    return x == x ? x : ptx_float_of(PTX_NAN_F32);
}

static inline f32
saturate(f32 x)
{
    return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; /* NaN and -0 also become +0 */
}

static inline const f32 *
flushed(const ptx_instruction *in, const f32 *a, f32 *into)
{
    if (!in->ftz)
        return a;
    ALL_LANES
    {
        into[i] = ptx_flush(a[i]);
    }
    return into;
}

static inline void
keep_float(ptx_warp *warp, const ptx_instruction *in, f32 *r, uint32_t mask)
{
    if (in->ftz)
        ALL_LANES
        {
            r[i] = ptx_flush(r[i]);
        }
    if (in->sat)
        ALL_LANES
        {
            r[i] = saturate(r[i]);
        }
    keep_f32(warp, in->d, r, mask);
}

#define FLOAT_1(name, expression)                                                                  \
    FUNCTION(name##_f32)                                                                           \
    {                                                                                              \
        f32 of_a[PTX_LANES], r[PTX_LANES];                                                         \
        const f32 *a = flushed(in, AT(f32, in->a), of_a);                                          \
                                                                                                   \
        ALL_LANES                                                                                  \
        {                                                                                          \
            const f32 x = a[i];                                                                    \
            r[i] = (expression);                                                                   \
        }                                                                                          \
        keep_float(warp, in, r, mask);                                                             \
    }

#define FLOAT_2(name, expression)                                                                  \
    FUNCTION(name##_f32)                                                                           \
    {                                                                                              \
        f32 of_a[PTX_LANES], of_b[PTX_LANES], r[PTX_LANES];                                        \
        const f32 *a = flushed(in, AT(f32, in->a), of_a);                                          \
        const f32 *b = flushed(in, AT(f32, in->b), of_b);                                          \
                                                                                                   \
        ALL_LANES                                                                                  \
        {                                                                                          \
            const f32 x = a[i], y = b[i];                                                          \
            r[i] = (expression);                                                                   \
        }                                                                                          \
        keep_float(warp, in, r, mask);                                                             \
    }

#define FLOAT_3(name, expression)                                                                  \
    FUNCTION(name##_f32)                                                                           \
    {                                                                                              \
        f32 of_a[PTX_LANES], of_b[PTX_LANES], of_c[PTX_LANES], r[PTX_LANES];                       \
        const f32 *a = flushed(in, AT(f32, in->a), of_a);                                          \
        const f32 *b = flushed(in, AT(f32, in->b), of_b);                                          \
        const f32 *c = flushed(in, AT(f32, in->c), of_c);                                          \
                                                                                                   \
        ALL_LANES                                                                                  \
        {                                                                                          \
            const f32 x = a[i], y = b[i], z = c[i];                                                \
            r[i] = (expression);                                                                   \
        }                                                                                          \
        keep_float(warp, in, r, mask);                                                             \
    }

FLOAT_2(add, canonical(x + y))
FLOAT_2(sub, canonical(x - y))
FLOAT_2(mul, canonical(x *y))
FLOAT_2(div, canonical(x / y))
FLOAT_3(fma, canonical(fmaf(x, y, z)))
FLOAT_3(fma_minus, canonical(fmaf(x, y, -z)))
FLOAT_3(minus_fma, canonical(fmaf(-x, y, z)))
FLOAT_1(rcp, canonical(1.0f / x))
FLOAT_1(sqrt, canonical(sqrtf(x)))
FLOAT_1(neg, canonical(-x))
FLOAT_1(abs, canonical(fabsf(x)))

/* A number wins over a NaN; -0 is less than +0. */
static inline f32
least(f32 x, f32 y)
{
    if (x != x)
        return canonical(y);
    if (y != y)
        return x;
    if (x == y)
        return ptx_float_of(ptx_bits_of(x) | ptx_bits_of(y));
    return x < y ? x : y;
}

static inline f32
greatest(f32 x, f32 y)
{
    if (x != x)
        return canonical(y);
    if (y != y)
        return x;
    if (x == y)
        return ptx_float_of(ptx_bits_of(x) & ptx_bits_of(y));
    return x > y ? x : y;
}

static inline f32
nan_or(f32 x, f32 y, f32 r)
{
    return x != x || y != y ? ptx_float_of(PTX_NAN_F32) : r;
}
FLOAT_2(min, least(x, y))
FLOAT_2(max, greatest(x, y))
FLOAT_2(min_nan, nan_or(x, y, least(x, y)))
FLOAT_2(max_nan, nan_or(x, y, greatest(x, y)))
FLOAT_3(min3, least(least(x, y), z))
FLOAT_3(max3, greatest(greatest(x, y), z))
FLOAT_3(min3_nan, nan_or(z, nan_or(x, y, x), least(least(x, y), z)))
FLOAT_3(max3_nan, nan_or(z, nan_or(x, y, x), greatest(greatest(x, y), z)))
BINARY(copysign_f32, u32, u32, u32, (x & 0x80000000u) | (y & 0x7fffffffu))

/* Pairs of floats in 64 bits. */
#define PAIR(name, operands, expression)                                                           \
    FUNCTION(name##_f32x2)                                                                         \
    {                                                                                              \
        const f32 *a = AT(f32, in->a), *b = AT(f32, in->b), *c = AT(f32, in->c);                   \
        f32 r[2 * PTX_LANES];                                                                      \
                                                                                                   \
        for (u32 i = 0; i < 2 * PTX_LANES; i++) {                                                  \
            f32 x = a[i], y = b[i], z = (operands) > 2 ? c[i] : 0.0f;                              \
                                                                                                   \
            if (in->ftz) {                                                                         \
                x = ptx_flush(x);                                                                  \
                y = ptx_flush(y);                                                                  \
                z = ptx_flush(z);                                                                  \
            }                                                                                      \
            (void)z;                                                                               \
            r[i] = canonical(expression);                                                          \
            if (in->ftz)                                                                           \
                r[i] = ptx_flush(r[i]);                                                            \
        }                                                                                          \
        keep_u64(warp, in->d, (const u64 *)(const void *)r, mask);                                 \
    }
PAIR(add, 2, x + y)
PAIR(sub, 2, x - y)
PAIR(mul, 2, x *y)
PAIR(fma, 3, fmaf(x, y, z))

FUNCTION(testp_f32)
{
    const u32 *a = AT(u32, in->a);
    u32 bits = 0;

    ALL_LANES
    {
        const u32 magnitude = a[i] & 0x7fffffffu;
        bool is;

        switch (in->mode) {
        case 0: /* finite */
            is = magnitude < 0x7f800000u;
            break;
        case 1: /* infinite */
            is = magnitude == 0x7f800000u;
            break;
        case 2: /* number */
            is = magnitude <= 0x7f800000u;
            break;
        case 3: /* notanumber */
            is = magnitude > 0x7f800000u;
            break;
        case 4: /* normal */
            is = magnitude >= 0x00800000u && magnitude < 0x7f800000u;
            break;
        default: /* subnormal */
            is = magnitude != 0 && magnitude < 0x00800000u;
            break;
        }
        bits |= (u32)is << i;
    }
    keep_bits(warp, in->d, bits, mask);
}

FUNCTION(testp_f64)
{
    const u64 *a = AT(u64, in->a);
    const u64 infinity = UINT64_C(0x7ff) << 52, least_normal = UINT64_C(1) << 52;
    u32 bits = 0;

    ALL_LANES
    {
        const u64 magnitude = a[i] << 1 >> 1;
        const bool is[] = {
            magnitude<infinity, magnitude == infinity, magnitude <= infinity, magnitude> infinity,
            magnitude >= least_normal && magnitude < infinity,
            magnitude != 0 && magnitude < least_normal
        };

        bits |= (u32)is[in->mode % 6] << i;
    }
    keep_bits(warp, in->d, bits, mask);
}

/* ---- approximations: with a random part of the error their documentation permits ---- */

/* 32 numbers in (-1, 1). */
static inline void
draw(ptx_warp *warp, f64 noise[PTX_LANES])
{
    const u32 start = (u32)ptx_random(&warp->block->random);

    ALL_LANES
    {
        u32 x = start + i * 0x9e3779b9u;

        x ^= x >> 16;
        x *= 0x7feb352du;
        x ^= x >> 15;
        x *= 0x846ca68bu;
        x ^= x >> 16;
        noise[i] = (f64)(s32)x * 0x1p-31;
    }
}

/* @y with a random error of up to @ulps, less half an ulp that rounding to float may add. */
static inline f32
off_by_ulps(f64 y, f64 noise, f64 ulps)
{
    const u64 bits = ptx_bits_of_double(y);
    const f64 ulp = ptx_double_of(bits & UINT64_C(0x7ff0000000000000)) * 0x1p-23;

    return (f32)(y + noise * (ulps - 0.5) * ulp);
}

/* 2^x for |x| < 1000, with relative error 10^-10. */
static inline f64
power_of_two(f64 x)
{
    const f64 shifter = 0x1.8p52, shifted = x + shifter, whole = shifted - shifter;
    const f64 t = (x - whole) * 0.693147180559945309417;
    const u64 exponent = ptx_bits_of_double(shifted) << 52;
    f64 sum = 1.0 / 362880;

    sum = sum * t + 1.0 / 40320;
    sum = sum * t + 1.0 / 5040;
    sum = sum * t + 1.0 / 720;
    sum = sum * t + 1.0 / 120;
    sum = sum * t + 1.0 / 24;
    sum = sum * t + 1.0 / 6;
    sum = sum * t + 0.5;
    sum = sum * t + 1.0;
    sum = sum * t + 1.0;
    return ptx_double_of(ptx_bits_of_double(sum) + exponent);
}

/* Exact for integers: the manual does not guarantee it, but CUDA's tanh and erf depend on it. */
static inline f32
exp2_approx(f32 x, f64 noise)
{
    const f64 inside = x > 130.0f ? 130.0 : x < -160.0f ? -160.0 : (f64)x;
    const f64 exact = power_of_two(inside);

    if (x != x)
        return ptx_float_of(PTX_NAN_F32);
    return inside == nearbyint(inside) ? (f32)exact : off_by_ulps(exact, noise, 2.0);
}

static inline f32
log2_approx(f32 x, f64 noise)
{
    const f64 y = log2((f64)x);

    if (!(x > 0.0f) || x == INFINITY)
        return x == INFINITY ? x : x == 0.0f ? -INFINITY : ptx_float_of(PTX_NAN_F32);
    /* Between 1/2 and 2 the bound is absolute, elsewhere relative. */
    if (x > 0.5f && x < 2.0f)
        return (f32)(y + noise * 0x1p-23);
    return (f32)(y + y * noise * 0x1p-23);
}

static inline f32
rcp_approx(f32 x, f64 noise)
{
    if (x == 0.0f || !(fabsf(x) < INFINITY))
        return canonical(1.0f / x);
    return off_by_ulps(1.0 / (f64)x, noise, 1.0);
}

static inline f32
sqrt_approx(f32 x, f64 noise)
{
    if (!(x > 0.0f) || x == INFINITY)
        return canonical(sqrtf(x));
    return off_by_ulps(sqrt((f64)x), noise, 1.0);
}

static inline f32
rsqrt_approx(f32 x, f64 noise)
{
    if (!(x > 0.0f) || x == INFINITY)
        return canonical(1.0f / sqrtf(x));
    return off_by_ulps(1.0 / sqrt((f64)x), noise, 1.0);
}

static inline f32
div_approx(f32 x, f32 y, f64 noise)
{
    const f64 quotient = (f64)x / (f64)y;

    if (x == 0.0f || y == 0.0f || !(fabs(quotient) < INFINITY) || !(fabsf(y) < INFINITY))
        return canonical(x / y);
    return off_by_ulps(quotient, noise, 2.0);
}

static inline f32
relative(f64 y, f64 noise, f64 bound)
{
    return canonical((f32)(y + y * noise * bound));
}

#define APPROX_1(name, expression)                                                                 \
    FUNCTION(name##_approx_f32)                                                                    \
    {                                                                                              \
        f32 of_a[PTX_LANES], r[PTX_LANES];                                                         \
        const f32 *a = flushed(in, AT(f32, in->a), of_a);                                          \
        f64 noise[PTX_LANES];                                                                      \
                                                                                                   \
        draw(warp, noise);                                                                         \
        ALL_LANES                                                                                  \
        {                                                                                          \
            const f32 x = a[i];                                                                    \
            r[i] = (expression);                                                                   \
        }                                                                                          \
        keep_float(warp, in, r, mask);                                                             \
    }
APPROX_1(ex2, exp2_approx(x, noise[i]))
APPROX_1(lg2, log2_approx(x, noise[i]))
APPROX_1(rcp, rcp_approx(x, noise[i]))
APPROX_1(sqrt, sqrt_approx(x, noise[i]))
APPROX_1(rsqrt, rsqrt_approx(x, noise[i]))
APPROX_1(tanh, relative(tanh((f64)x), noise[i], 0x1p-11 - 0x1p-23))
APPROX_1(sin, canonical((f32)(sin((f64)x) + noise[i] * 0x1p-21)))
APPROX_1(cos, canonical((f32)(cos((f64)x) + noise[i] * 0x1p-21)))

FUNCTION(div_approx_f32)
{
    f32 of_a[PTX_LANES], of_b[PTX_LANES], r[PTX_LANES];
    const f32 *a = flushed(in, AT(f32, in->a), of_a), *b = flushed(in, AT(f32, in->b), of_b);
    f64 noise[PTX_LANES];

    draw(warp, noise);
    ALL_LANES
    {
        r[i] = div_approx(a[i], b[i], noise[i]);
    }
    keep_float(warp, in, r, mask);
}

/* ---- floating point of 64 bits ---- */

static inline f64
canonical_double(f64 x)
{
    return x == x ? x : ptx_double_of(UINT64_C(0xfff8000000000000));
}

BINARY(add_f64, f64, f64, f64, canonical_double(x + y))
BINARY(sub_f64, f64, f64, f64, canonical_double(x - y))
BINARY(mul_f64, f64, f64, f64, canonical_double(x *y))
BINARY(div_f64, f64, f64, f64, canonical_double(x / y))
TERNARY(fma_f64, f64, f64, f64, f64, canonical_double(fma(x, y, z)))
UNARY(rcp_f64, f64, f64, canonical_double(1.0 / x))
UNARY(sqrt_f64, f64, f64, canonical_double(sqrt(x)))
UNARY(neg_f64, u64, u64, x ^ UINT64_C(1) << 63)
UNARY(abs_f64, u64, u64, x << 1 >> 1)
BINARY(copysign_f64, u64, u64, u64, (x & UINT64_C(1) << 63) | y << 1 >> 1)

static inline f64
least_double(f64 x, f64 y)
{
    if (x != x || y != y)
        return canonical_double(x != x ? y : x);
    if (x == y)
        return ptx_double_of(ptx_bits_of_double(x) | ptx_bits_of_double(y));
    return x < y ? x : y;
}

static inline f64
greatest_double(f64 x, f64 y)
{
    if (x != x || y != y)
        return canonical_double(x != x ? y : x);
    if (x == y)
        return ptx_double_of(ptx_bits_of_double(x) & ptx_bits_of_double(y));
    return x > y ? x : y;
}
BINARY(min_f64, f64, f64, f64, least_double(x, y))
BINARY(max_f64, f64, f64, f64, greatest_double(x, y))

/* Only the upper half is computed: 20 bits of the fraction; the lower half is zero. */
static inline f64
gross(f64 y, f64 noise)
{
    const f64 moved = y * (1.0 + noise * 0x1p-21);
    const u64 bits = ptx_bits_of_double(moved == moved ? moved : y);

    if (!(fabs(y) < (f64)INFINITY) || y == 0.0)
        return canonical_double(y);
    if ((bits & UINT64_C(0x7ff0000000000000)) == 0) /* ftz */
        return ptx_double_of(bits & UINT64_C(1) << 63);
    return ptx_double_of(bits & ~UINT64_C(0xffffffff));
}

static inline f64
flush_double(f64 x)
{
    const u64 bits = ptx_bits_of_double(x);

    return (bits & UINT64_C(0x7ff0000000000000)) == 0 ? ptx_double_of(bits & UINT64_C(1) << 63) : x;
}

#define GROSS(name, expression)                                                                    \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        const f64 *a = AT(f64, in->a);                                                             \
        f64 noise[PTX_LANES], r[PTX_LANES];                                                        \
                                                                                                   \
        draw(warp, noise);                                                                         \
        ALL_LANES                                                                                  \
        {                                                                                          \
            const f64 x = in->ftz ? flush_double(a[i]) : a[i];                                     \
            r[i] = gross(expression, noise[i]);                                                    \
        }                                                                                          \
        keep_f64(warp, in->d, r, mask);                                                            \
    }
GROSS(rcp_approx_f64, 1.0 / x)
GROSS(rsqrt_approx_ftz_f64, 1.0 / sqrt(x))

/* Without ftz it is emulated, to about the last bit. */
FUNCTION(rsqrt_approx_f64)
{
    const f64 *a = AT(f64, in->a);
    f64 noise[PTX_LANES], r[PTX_LANES];

    draw(warp, noise);
    ALL_LANES
    {
        const f64 y = 1.0 / sqrt(a[i]);

        r[i] = canonical_double(fabs(y) < (f64)INFINITY ? y + y * noise[i] * 0x1p-53 : y);
    }
    keep_f64(warp, in->d, r, mask);
}

/* ---- floating point of 16 bits, one or two in a register ---- */

/* The result is rounded once, from a double that is exact, or odd if bits were lost. */
#define HALF_BODY(R, halves, is_bf16, expression)                                                  \
    {                                                                                              \
        const R *a = AT(R, in->a), *b = in->b == PTX_NONE ? a : AT(R, in->b);                      \
        const R *c = in->c == PTX_NONE ? a : AT(R, in->c);                                         \
        R r[PTX_LANES];                                                                            \
                                                                                                   \
        ALL_LANES                                                                                  \
        {                                                                                          \
            u32 packed = 0;                                                                        \
                                                                                                   \
            for (u32 half = 0; half < (halves); half++) {                                          \
                const u16 xh = (u16)(a[i] >> 16 * half);                                           \
                const u16 yh = (u16)(b[i] >> 16 * half);                                           \
                const u16 zh = (u16)(c[i] >> 16 * half);                                           \
                const f64 x = half_operand(in, xh, is_bf16);                                       \
                const f64 y = half_operand(in, yh, is_bf16);                                       \
                const f64 z = half_operand(in, zh, is_bf16);                                       \
                                                                                                   \
                (void)y;                                                                           \
                (void)z;                                                                           \
                packed |= half_result(in, (expression), is_bf16) << 16 * half;                     \
            }                                                                                      \
            r[i] = (R)packed;                                                                      \
        }                                                                                          \
        keep_##R(warp, in->d, r, mask);                                                            \
    }

#define HALF(name, expression)                                                                     \
    FUNCTION(name##_f16)                                                                           \
    HALF_BODY(u16, 1, false, expression)                                                           \
    FUNCTION(name##_bf16)                                                                          \
    HALF_BODY(u16, 1, true, expression)                                                            \
    FUNCTION(name##_f16x2)                                                                         \
    HALF_BODY(u32, 2, false, expression) FUNCTION(name##_bf16x2) HALF_BODY(u32, 2, true, expression)

static inline f64
half_operand(const ptx_instruction *in, u16 x, bool bf16)
{
    const f64 value = (f64)half_of(x, bf16);

    if (in->ftz && (x & (bf16 ? 0x7f80 : 0x7c00)) == 0)
        return value < 0 ? -0.0 : 0.0;
    return value;
}

static inline u32
half_result(const ptx_instruction *in, f64 y, bool bf16)
{
    u32 bits;

    if (in->sat)
        y = y > 0.0 ? (y < 1.0 ? y : 1.0) : 0.0;
    if (in->trans && !(y > 0.0)) /* relu; a NaN stays */
        y = y == y ? 0.0 : y;
    bits = ptx_narrow(y, bf16 ? PTX_FORMAT_BF16 : PTX_FORMAT_F16, 0);
    if (in->ftz && (bits & (bf16 ? 0x7f80 : 0x7c00)) == 0)
        bits &= 0x8000;
    return bits;
}
HALF(add, ptx_add_odd(x, y))
HALF(sub, ptx_add_odd(x, -y))
HALF(mul, x *y)
HALF(fma, ptx_add_odd(x *y, z))
HALF(min, least_double(x, y))
HALF(max, greatest_double(x, y))
HALF(min_nan, x != x || y != y ? (f64)NAN : least_double(x, y))
HALF(max_nan, x != x || y != y ? (f64)NAN : greatest_double(x, y))
HALF(tanh_approx, tanh(x))
HALF(ex2_approx, exp2(x))

/* The sign bit is flipped, also of a NaN. */
UNARY(neg_h1, u16, u16, x ^ 0x8000)
UNARY(abs_h1, u16, u16, x & 0x7fff)
UNARY(neg_h2, u32, u32, x ^ 0x80008000u)
UNARY(abs_h2, u32, u32, x & 0x7fff7fffu)

/* ---- conversions ---- */

UNARY(cvt_u64_u32, u64, u32, x)
UNARY(cvt_s64_s32, s64, s32, x)
UNARY(cvt_u32_u64, u32, u64, x)
UNARY(cvt_u32_u16, u32, u16, x)
UNARY(cvt_s32_s16, s32, s16, x)
UNARY(cvt_u16_u32, u16, u32, x)
UNARY(cvt_f32_s32, f32, s32, x)
UNARY(cvt_f32_u32, f32, u32, x)
UNARY(cvt_f32_bf16, f32, u16, canonical(ptx_from_bf16(x)))
UNARY(cvt_f32_f16, f32, u16, canonical(ptx_from_f16(x)))
UNARY(cvt_rn_bf16_f32, u16, f32, ptx_to_bf16(x))
UNARY(cvt_rn_f16_f32, u16, f32, ptx_to_f16(x))
/* The first operand goes into the upper half. */
BINARY(cvt_rn_bf16x2_f32, u32, f32, f32, (u32)ptx_to_bf16(x) << 16 | ptx_to_bf16(y))
BINARY(cvt_rn_f16x2_f32, u32, f32, f32, (u32)ptx_to_f16(x) << 16 | ptx_to_f16(y))

static inline bool
is_float(uint8_t type)
{
    return type == PTX_F16 || type == PTX_BF16 || type == PTX_F32 || type == PTX_F64 ||
           type == PTX_TF32;
}

static inline bool
is_signed(uint8_t type)
{
    return type >= PTX_S8 && type <= PTX_S64;
}

static inline u32
bits_of_type(uint8_t type)
{
    switch (type) {
    case PTX_B8:
    case PTX_U8:
    case PTX_S8:
        return 8;
    case PTX_B16:
    case PTX_U16:
    case PTX_S16:
    case PTX_F16:
    case PTX_BF16:
        return 16;
    case PTX_B64:
    case PTX_U64:
    case PTX_S64:
    case PTX_F64:
        return 64;
    default:
        return 32;
    }
}

static inline u64
lane_bits(ptx_warp *warp, uint32_t offset, u32 width, u32 lane)
{
    switch (width) {
    case 2:
        return AT(u16, offset)[lane];
    case 4:
        return AT(u32, offset)[lane];
    default:
        return AT(u64, offset)[lane];
    }
}

static inline u64
extend(u64 x, u32 bits, bool sign)
{
    if (bits >= 64)
        return x;
    x &= (UINT64_C(1) << bits) - 1;
    return sign && (x >> (bits - 1) & 1) != 0 ? x | ~UINT64_C(0) << bits : x;
}

static inline f64
float_of_bits(u64 x, uint8_t type, bool ftz)
{
    switch (type) {
    case PTX_F16:
        return (f64)ptx_from_f16((u16)x);
    case PTX_BF16:
        return (f64)ptx_from_bf16((u16)x);
    case PTX_F32:
        return (f64)(ftz ? ptx_flush(ptx_float_of((u32)x)) : ptx_float_of((u32)x));
    default:
        return ptx_double_of(x);
    }
}

static inline f64
whole_of(f64 x, int rounding)
{
    switch (rounding) {
    case PTX_RZ:
        return trunc(x);
    case PTX_RM:
        return floor(x);
    case PTX_RP:
        return ceil(x);
    default:
        return nearbyint(x); /* to even */
    }
}

/* Numbers out of range saturate. The result for a NaN depends on the widths. */
static inline u64
integer_of(f64 x, const ptx_instruction *in)
{
    const u32 bits = bits_of_type(in->type);
    const bool sign = is_signed(in->type);
    const u64 most = sign ? (UINT64_C(1) << (bits - 1)) - 1 : extend(UINT64_MAX, bits, false);
    const f64 least_value = sign ? -ldexp(1.0, (int)bits - 1) : 0.0;
    const f64 beyond = ldexp(1.0, (int)bits - (sign ? 1 : 0));

    if (x != x)
        return bits == 64 || in->type2 == PTX_F64 ? UINT64_C(1) << (bits - 1) : 0;
    x = whole_of(x, in->rounding);
    if (x >= beyond)
        return most;
    if (x <= least_value)
        return sign ? extend(UINT64_C(1) << (bits - 1), bits, true) : 0;
    return sign ? (u64)(s64)x : (u64)x;
}

static inline u64
clamp_integer(u64 x, const ptx_instruction *in)
{
    const u32 bits = bits_of_type(in->type);
    const bool to_signed = is_signed(in->type), from_signed = is_signed(in->type2);
    const u64 most = to_signed ? (UINT64_C(1) << (bits - 1)) - 1 : extend(UINT64_MAX, bits, false);

    if (from_signed && (s64)x < 0) {
        const s64 lowest = bits == 64 ? INT64_MIN : -(s64)(UINT64_C(1) << (bits - 1));

        if (!to_signed)
            return 0;
        return (s64)x < lowest ? (u64)lowest : x;
    }
    return x > most ? most : x;
}

/* An integer of 64 bits as a double that is exact or odd. */
static inline f64
odd_double(u64 x, bool sign)
{
    const bool negative = sign && (s64)x < 0;
    u64 magnitude = negative ? 0 - x : x;
    u32 shift = 0;

    while (magnitude >> 53 != 0) {
        magnitude = magnitude >> 1 | (magnitude & 1);
        shift++;
    }
    return ldexp(negative ? -(f64)magnitude : (f64)magnitude, (int)shift);
}

/* A float, rounded from an odd double without double rounding. Directed rounding is done here. */
static inline f32
float_of_double(f64 x, int rounding)
{
    const f32 nearest = (f32)x;

    if (rounding == PTX_RN || (f64)nearest == x || x != x)
        return nearest;
    if (rounding == PTX_RM || (rounding == PTX_RZ && x > 0))
        return (f64)nearest > x ? nextafterf(nearest, -INFINITY) : nearest;
    return (f64)nearest < x ? nextafterf(nearest, INFINITY) : nearest;
}

static inline u64
float_bits(f64 x, const ptx_instruction *in, int rounding)
{
    f32 narrow;

    if (in->trans && !(x > 0.0)) /* relu */
        x = x == x ? 0.0 : x;
    if (in->sat)
        x = x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0;
    switch (in->type) {
    case PTX_F16:
        return ptx_narrow(x, PTX_FORMAT_F16, rounding);
    case PTX_BF16:
        return ptx_narrow(x, PTX_FORMAT_BF16, rounding);
    case PTX_F64:
        return ptx_bits_of_double(canonical_double(x));
    default:
        narrow = canonical(float_of_double(x, rounding));
        return ptx_bits_of(in->ftz ? ptx_flush(narrow) : narrow);
    }
}

static inline u64
convert(const ptx_instruction *in, u64 x)
{
    const bool from_float = is_float(in->type2), to_float = is_float(in->type);
    f64 value;

    if (!from_float) {
        x = extend(x, bits_of_type(in->type2), is_signed(in->type2));
        if (!to_float)
            return in->sat ? clamp_integer(x, in) : x;
        if (in->type == PTX_F64 && in->rounding == PTX_RN)
            return ptx_bits_of_double(is_signed(in->type2) ? (f64)(s64)x : (f64)x);
        return float_bits(odd_double(x, is_signed(in->type2)), in, in->rounding);
    }
    value = float_of_bits(x, in->type2, in->ftz);
    if (!to_float)
        return integer_of(value, in);
    if (in->mode != 0) /* to a whole number */
        value = whole_of(value, in->rounding);
    return float_bits(value, in, in->mode != 0 ? PTX_RN : in->rounding);
}

/* Every other conversion of one number: from type2 in a register of b bytes to the type in a
 * register of width bytes. */
FUNCTION(cvt_any)
{
    const u32 bits = bits_of_type(in->type);
    const bool sign = is_signed(in->type);

    PTX_EACH_LANE(lane, mask)
    {
        const u64 x = convert(in, lane_bits(warp, in->a, in->bytes, lane));

        switch (in->width) {
        case 2:
            AT(u16, in->d)[lane] = (u16)extend(x, bits, sign);
            break;
        case 4:
            AT(u32, in->d)[lane] = (u32)extend(x, bits, sign);
            break;
        default:
            AT(u64, in->d)[lane] = extend(x, bits, sign);
            break;
        }
    }
}

/* Two floats to a pair of halves; the first becomes the upper one. */
FUNCTION(cvt_pair)
{
    const f32 *a = AT(f32, in->a), *b = AT(f32, in->b);
    ptx_instruction one = *in;
    u32 r[PTX_LANES];

    one.type = in->type == PTX_BF16X2 ? PTX_BF16 : PTX_F16;
    ALL_LANES
    {
        r[i] = (u32)float_bits((f64)b[i], &one, in->rounding) |
               (u32)float_bits((f64)a[i], &one, in->rounding) << 16;
    }
    keep_u32(warp, in->d, r, mask);
}

/* 10 bits of fraction; ties away from zero (rna) or to even. */
UNARY(cvt_rna_tf32, u32, u32,
      (x & 0x7fffffffu) > 0x7f800000u    ? PTX_NAN_F32 & ~0x1fffu
      : (x & 0x7f800000u) == 0x7f800000u ? x
                                         : (x + 0x1000u) & ~0x1fffu)
UNARY(cvt_rn_tf32, u32, u32,
      (x & 0x7fffffffu) > 0x7f800000u    ? PTX_NAN_F32 & ~0x1fffu
      : (x & 0x7f800000u) == 0x7f800000u ? x
                                         : (x + 0xfffu + (x >> 13 & 1)) & ~0x1fffu)

/* ---- moves between one register and several ---- */

/* The list at in->immediate has the parts, lowest first; `bytes` is the size of a part. */
FUNCTION(mov_pack)
{
    const uint32_t *parts = warp->block->kernel->operands + in->immediate;
    u64 r[PTX_LANES] = { 0 };

    for (u32 k = 0; k < in->vector; k++)
        ALL_LANES
        {
            r[i] |= lane_bits(warp, parts[k], in->bytes, i) << 8 * in->bytes * k;
        }
    PTX_EACH_LANE(lane, mask)
    {
        if (in->width == 4)
            AT(u32, in->d)[lane] = (u32)r[lane];
        else
            AT(u64, in->d)[lane] = r[lane];
    }
}

FUNCTION(mov_unpack)
{
    const uint32_t *parts = warp->block->kernel->operands + in->immediate;
    u64 x[PTX_LANES];

    ALL_LANES
    {
        x[i] = lane_bits(warp, in->a, in->width, i);
    }
    for (u32 k = 0; k < in->vector; k++) {
        if (parts[k] == PTX_NONE)
            continue;
        PTX_EACH_LANE(lane, mask)
        {
            const u64 part = x[lane] >> 8 * in->bytes * k;

            if (in->bytes == 2)
                AT(u16, parts[k])[lane] = (u16)part;
            else
                AT(u32, parts[k])[lane] = (u32)part;
        }
    }
}

/* Generic addresses of spaces that begin at zero. */
FUNCTION(cvta_add)
{
    const u64 *a = AT(u64, in->a);
    u64 r[PTX_LANES];

    ALL_LANES
    {
        r[i] = a[i] + in->immediate;
    }
    keep_u64(warp, in->d, r, mask);
}

FUNCTION(isspacep)
{
    const u64 *a = AT(u64, in->a);
    u32 bits = 0;

    ALL_LANES
    {
        const u64 window = a[i] >> PTX_WINDOW_SHIFT;

        bits |= (u32)(in->immediate == 0 ? window < PTX_WINDOW_SHARED : window == in->immediate)
                << i;
    }
    keep_bits(warp, in->d, bits, mask);
}

/* ---- the table ---- */

#define BITS(op, fn)                                                                               \
    { op, "b16", "h=hh", fn##_u16 }, { op, "b32", "w=ww", fn##_u32 },                              \
    {                                                                                              \
        op, "b64", "d=dd", fn##_u64                                                                \
    }
#define SAME(op, words, fn)                                                                        \
    { op, words "u16|s16", "h=hh", fn##_u16 }, { op, words "u32|s32", "w=ww", fn##_u32 },          \
    {                                                                                              \
        op, words "u64|s64", "d=dd", fn##_u64                                                      \
    }
#define EACH(op, words, fn)                                                                        \
    { op, words "u16", "h=hh", fn##_u16 }, { op, words "u32", "w=ww", fn##_u32 },                  \
        { op, words "u64", "d=dd", fn##_u64 }, { op, words "s16", "h=hh", fn##_s16 },              \
        { op, words "s32", "w=ww", fn##_s32 },                                                     \
    {                                                                                              \
        op, words "s64", "d=dd", fn##_s64                                                          \
    }
#define CARRIES(op, words, fn)                                                                     \
    { op, words "u32|s32", "w=wwC", fn##_u32 },                                                    \
    {                                                                                              \
        op, words "u64|s64", "d=ddC", fn##_u64                                                     \
    }
#define MAD_CARRIES(op, words, fn)                                                                 \
    { op, words "u32", "w=wwwC", fn##_u32 },                                                       \
    {                                                                                              \
        op, words "u64", "d=dddC", fn##_u64                                                        \
    }
#define MAD_CARRIES_SIGNED(op, words, fn)                                                          \
    { op, words "s32", "w=wwwC", fn##_s32 },                                                       \
    {                                                                                              \
        op, words "s64", "d=dddC", fn##_s64                                                        \
    }
#define SAME_OR_NOT "eq|ne ?and|or|xor "
#define ORDERS "eq|ne|lt|le|gt|ge|lo|ls|hi|hs ?and|or|xor "
#define SIGNED_ORDERS "eq|ne|lt|le|gt|ge ?and|or|xor "
#define FLOAT_ORDERS "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan ?and|or|xor "
#define FLOAT_SETS "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan "
#define SETPS(orders, type, fn, width)                                                             \
    {                                                                                              \
        "setp", orders type, "P=" width width "?c", setp_##fn                                      \
    }
#define SETS(orders, type, fn, width)                                                              \
    {                                                                                              \
        "set", orders "?ftz u32|s32|f32 " type, "w=" width width "?c", set_##fn                    \
    }
#define HALVES(op, words, fn, sig1, sig2)                                                          \
    { op, words "f16", sig1, fn##_f16 }, { op, words "f16x2", sig2, fn##_f16x2 },                  \
        { op, words "bf16", sig1, fn##_bf16 },                                                     \
    {                                                                                              \
        op, words "bf16x2", sig2, fn##_bf16x2                                                      \
    }

const ptx_form PTX_FORMS[] = {
    SAME("add", "", add),
    SAME("sub", "", sub),
    { "add", "sat s32", "w=ww", add_sat_s32 },
    { "sub", "sat s32", "w=ww", sub_sat_s32 },
    CARRIES("add", "cc ", add_cc),
    CARRIES("addc", "", addc),
    CARRIES("addc", "cc ", addc_cc),
    CARRIES("sub", "cc ", sub_cc),
    CARRIES("subc", "", subc),
    CARRIES("subc", "cc ", subc_cc),
    SAME("mul", "lo ", mul_lo),
    EACH("mul", "hi ", mul_hi),
    { "mul", "wide u16", "w=hh", mul_wide_u16 },
    { "mul", "wide s16", "w=hh", mul_wide_s16 },
    { "mul", "wide u32", "d=ww", mul_wide_u32 },
    { "mul", "wide s32", "d=ww", mul_wide_s32 },
    { "mul24", "lo u32", "w=ww", mul24_lo_u32 },
    { "mul24", "lo s32", "w=ww", mul24_lo_s32 },
    { "mad24", "lo u32", "w=www", mad24_lo_u32 },
    { "mad24", "lo s32", "w=www", mad24_lo_s32 },
    { "mad", "lo u16|s16", "h=hhh", mad_lo_u16 },
    { "mad", "lo u32|s32", "w=www", mad_lo_u32 },
    { "mad", "lo u64|s64", "d=ddd", mad_lo_u64 },
    { "mad", "hi u32", "w=www", mad_hi_u32 },
    { "mad", "hi s32", "w=www", mad_hi_s32 },
    { "mad", "hi u64", "d=ddd", mad_hi_u64 },
    { "mad", "hi s64", "d=ddd", mad_hi_s64 },
    { "mad", "wide u16", "w=hhw", mad_wide_u16 },
    { "mad", "wide s16", "w=hhw", mad_wide_s16 },
    { "mad", "wide u32", "d=wwd", mad_wide_u32 },
    { "mad", "wide s32", "d=wwd", mad_wide_s32 },
    { "mad", "lo cc u32|s32", "w=wwwC", mad_lo_cc_u32 },
    { "mad", "lo cc u64|s64", "d=dddC", mad_lo_cc_u64 },
    { "madc", "lo u32|s32", "w=wwwC", madc_lo_u32 },
    { "madc", "lo u64|s64", "d=dddC", madc_lo_u64 },
    { "madc", "lo cc u32|s32", "w=wwwC", madc_lo_cc_u32 },
    { "madc", "lo cc u64|s64", "d=dddC", madc_lo_cc_u64 },
    MAD_CARRIES("mad", "hi cc ", mad_hi_cc),
    MAD_CARRIES_SIGNED("mad", "hi cc ", mad_hi_cc),
    MAD_CARRIES("madc", "hi ", madc_hi),
    MAD_CARRIES_SIGNED("madc", "hi ", madc_hi),
    MAD_CARRIES("madc", "hi cc ", madc_hi_cc),
    MAD_CARRIES_SIGNED("madc", "hi cc ", madc_hi_cc),
    { "sad", "u32", "w=www", sad_u32 },
    { "sad", "s32", "w=www", sad_s32 },
    EACH("div", "", div),
    EACH("rem", "", rem),
    EACH("min", "", min),
    EACH("max", "", max),
    { "min", "u16x2", "w=ww", min_u16x2 },
    { "min", "s16x2", "w=ww", min_s16x2 },
    { "max", "u16x2", "w=ww", max_u16x2 },
    { "max", "s16x2", "w=ww", max_s16x2 },
    { "add", "u16x2|s16x2", "w=ww", add_u16x2 },
    { "abs", "s16", "h=h", abs_s16 },
    { "abs", "s32", "w=w", abs_s32 },
    { "abs", "s64", "d=d", abs_s64 },
    { "neg", "s16", "h=h", neg_u16 },
    { "neg", "s32", "w=w", neg_u32 },
    { "neg", "s64", "d=d", neg_u64 },
    BITS("and", and),
    BITS("or", or),
    BITS("xor", xor),
    { "not", "b16", "h=h", not_u16 },
    { "not", "b32", "w=w", not_u32 },
    { "not", "b64", "d=d", not_u64 },
    { "cnot", "b16", "h=h", cnot_u16 },
    { "cnot", "b32", "w=w", cnot_u32 },
    { "cnot", "b64", "d=d", cnot_u64 },
    { "and", "pred", "p=pp", and_pred },
    { "or", "pred", "p=pp", or_pred },
    { "xor", "pred", "p=pp", xor_pred },
    { "not", "pred", "p=p", not_pred },
    { "mov", "pred", "p=p", mov_pred },
    { "shl", "b16", "h=hw", shl_u16 },
    { "shl", "b32", "w=ww", shl_u32 },
    { "shl", "b64", "d=dw", shl_u64 },
    { "shr", "u16|b16", "h=hw", shr_u16 },
    { "shr", "u32|b32", "w=ww", shr_u32 },
    { "shr", "u64|b64", "d=dw", shr_u64 },
    { "shr", "s16", "h=hw", shr_s16 },
    { "shr", "s32", "w=ww", shr_s32 },
    { "shr", "s64", "d=dw", shr_s64 },
    { "popc", "b32", "w=w", popc_u32 },
    { "popc", "b64", "w=d", popc_u64 },
    { "clz", "b32", "w=w", clz_u32 },
    { "clz", "b64", "w=d", clz_u64 },
    { "brev", "b32", "w=w", brev_u32 },
    { "brev", "b64", "d=d", brev_u64 },
    { "bfind", "u32", "w=w", bfind_u32 },
    { "bfind", "s32", "w=w", bfind_s32 },
    { "bfind", "u64", "w=d", bfind_u64 },
    { "bfind", "s64", "w=d", bfind_s64 },
    { "bfind", "shiftamt u32", "w=w", bfind_shift_u32 },
    { "bfind", "shiftamt s32", "w=w", bfind_shift_s32 },
    { "bfind", "shiftamt u64", "w=d", bfind_shift_u64 },
    { "bfind", "shiftamt s64", "w=d", bfind_shift_s64 },
    { "bfe", "u32", "w=www", bfe_u32 },
    { "bfe", "s32", "w=www", bfe_s32 },
    { "bfe", "u64", "d=dww", bfe_u64 },
    { "bfe", "s64", "d=dww", bfe_s64 },
    { "bfi", "b32", "w=wwww", bfi_u32 },
    { "bfi", "b64", "d=ddww", bfi_u64 },
    { "bmsk", "clamp b32", "w=ww", bmsk_clamp },
    { "bmsk", "wrap b32", "w=ww", bmsk_wrap },
    { "prmt", "b32", "w=www", prmt_b32 },
    { "prmt", "b32 f4e", "w=www", prmt_f4e_b32 },
    { "prmt", "b32 b4e", "w=www", prmt_b4e_b32 },
    { "prmt", "b32 rc8", "w=www", prmt_rc8_b32 },
    { "prmt", "b32 ecl", "w=www", prmt_ecl_b32 },
    { "prmt", "b32 ecr", "w=www", prmt_ecr_b32 },
    { "prmt", "b32 rc16", "w=www", prmt_rc16_b32 },
    { "shf", "l wrap b32", "w=www", shf_l_wrap },
    { "shf", "r wrap b32", "w=www", shf_r_wrap },
    { "shf", "l clamp b32", "w=www", shf_l_clamp },
    { "shf", "r clamp b32", "w=www", shf_r_clamp },
    { "lop3", "b32", "w=wwwi", lop3_b32 },
    { "dp4a", "u32 u32", "w=www", dp4a_uu },
    { "dp4a", "u32 s32", "w=www", dp4a_us },
    { "dp4a", "s32 u32", "w=www", dp4a_su },
    { "dp4a", "s32 s32", "w=www", dp4a_ss },
    { "selp", "b16|u16|s16|f16|bf16", "h=hhp", selp_u16 },
    { "selp", "b32|u32|s32|f32", "w=wwp", selp_u32 },
    { "selp", "b64|u64|s64|f64", "d=ddp", selp_u64 },
    { "slct", "b16|u16|s16 s32", "h=hhw", slct_u16_s32 },
    { "slct", "b32|u32|s32|f32 s32", "w=www", slct_u32_s32 },
    { "slct", "b64|u64|s64|f64 s32", "d=ddw", slct_u64_s32 },
    { "slct", "?ftz b16|u16|s16 f32", "h=hhw", slct_u16_f32 },
    { "slct", "?ftz b32|u32|s32|f32 f32", "w=www", slct_u32_f32 },
    { "slct", "?ftz b64|u64|s64|f64 f32", "d=ddw", slct_u64_f32 },
    { "mov", "b16|u16|s16|f16|bf16", "h=h", mov_u16 },
    { "mov", "b32|u32|s32|f32|f16x2|bf16x2", "w=w", mov_u32 },
    { "mov", "b64|u64|s64|f64", "d=d", mov_u64 },
    { "mov", "#pack", "", mov_pack },
    { "mov", "#unpack", "", mov_unpack },
    { "cvta", "#add", "", cvta_add },
    { "isspacep", "#window", "", isspacep },
    { "mma", "#product", "", PTX_MMA },

    SETPS(SAME_OR_NOT, "b16", u16, "h"),
    SETPS(ORDERS, "u16", u16, "h"),
    SETPS(SIGNED_ORDERS, "s16", s16, "h"),
    SETS(SAME_OR_NOT, "b16", u16, "h"),
    SETS(ORDERS, "u16", u16, "h"),
    SETS(SIGNED_ORDERS, "s16", s16, "h"),
    SETPS(SAME_OR_NOT, "b32", u32, "w"),
    SETPS(ORDERS, "u32", u32, "w"),
    SETPS(SIGNED_ORDERS, "s32", s32, "w"),
    SETS(SAME_OR_NOT, "b32", u32, "w"),
    SETS(ORDERS, "u32", u32, "w"),
    SETS(SIGNED_ORDERS, "s32", s32, "w"),
    SETPS(SAME_OR_NOT, "b64", u64, "d"),
    SETPS(ORDERS, "u64", u64, "d"),
    SETPS(SIGNED_ORDERS, "s64", s64, "d"),
    SETS(SAME_OR_NOT, "b64", u64, "d"),
    SETS(ORDERS, "u64", u64, "d"),
    SETS(SIGNED_ORDERS, "s64", s64, "d"),
    SETPS(FLOAT_ORDERS, "?ftz f32", f32, "w"),
    SETPS(FLOAT_ORDERS, "f64", f64, "d"),
    SETPS(FLOAT_ORDERS, "?ftz f16", f16, "h"),
    SETPS(FLOAT_ORDERS, "bf16", bf16, "h"),
    SETPS(FLOAT_ORDERS, "?ftz f16x2", f16x2, "w"),
    SETPS(FLOAT_ORDERS, "bf16x2", bf16x2, "w"),
    SETS(FLOAT_ORDERS, "f32", f32, "w"),
    SETS(FLOAT_ORDERS, "f64", f64, "d"),

    { "set", FLOAT_SETS "f16|u16|s16 f16", "h=hh", set_f16 },
    { "set", FLOAT_SETS "bf16|u16|s16 bf16", "h=hh", set_bf16 },
    { "set", FLOAT_SETS "f16x2|u32|s32 f16x2", "w=ww", set_f16x2 },
    { "set", FLOAT_SETS "bf16x2|u32|s32 bf16x2", "w=ww", set_bf16x2 },

    { "add", PTX_ROUND "?ftz ?sat f32", "w=ww", add_f32 },
    { "sub", PTX_ROUND "?ftz ?sat f32", "w=ww", sub_f32 },
    { "mul", PTX_ROUND "?ftz ?sat f32", "w=ww", mul_f32 },
    { "fma", PTX_ROUNDED "?ftz ?sat f32", "w=www", fma_f32 },
    { "mad", "rn|rz|rm|rp ?ftz ?sat f32", "w=www", fma_f32 },
    { "fma", "#minus", "", fma_minus_f32 },
    { "fma", "#of minus", "", minus_fma_f32 },
    { "div", "rn|rz|rm|rp ?ftz f32", "w=ww", div_f32 },
    { "div", "full|approx ?ftz f32", "w=ww", div_approx_f32 },
    { "rcp", "rn|rz|rm|rp ?ftz f32", "w=w", rcp_f32 },
    { "sqrt", "rn|rz|rm|rp ?ftz f32", "w=w", sqrt_f32 },
    { "neg", "?ftz f32", "w=w", neg_f32 },
    { "abs", "?ftz f32", "w=w", abs_f32 },
    { "min", "?ftz f32", "w=ww", min_f32 },
    { "max", "?ftz f32", "w=ww", max_f32 },
    { "min", "?ftz NaN f32", "w=ww", min_nan_f32 },
    { "max", "?ftz NaN f32", "w=ww", max_nan_f32 },
    { "min", "?ftz f32", "w=www", min3_f32 },
    { "max", "?ftz f32", "w=www", max3_f32 },
    { "min", "?ftz NaN f32", "w=www", min3_nan_f32 },
    { "max", "?ftz NaN f32", "w=www", max3_nan_f32 },
    { "copysign", "f32", "w=ww", copysign_f32 },
    { "testp", "finite|infinite|number|notanumber|normal|subnormal f32", "p=w", testp_f32 },
    { "testp", "finite|infinite|number|notanumber|normal|subnormal f64", "p=d", testp_f64 },
    { "rcp", "approx ?ftz f32", "w=w", rcp_approx_f32 },
    { "sqrt", "approx ?ftz f32", "w=w", sqrt_approx_f32 },
    { "rsqrt", "approx ?ftz f32", "w=w", rsqrt_approx_f32 },
    { "ex2", "approx ?ftz f32", "w=w", ex2_approx_f32 },
    { "lg2", "approx ?ftz f32", "w=w", lg2_approx_f32 },
    { "sin", "approx ?ftz f32", "w=w", sin_approx_f32 },
    { "cos", "approx ?ftz f32", "w=w", cos_approx_f32 },
    { "tanh", "approx f32", "w=w", tanh_approx_f32 },
    { "add", PTX_ROUND "?ftz f32x2", "d=dd", add_f32x2 },
    { "sub", PTX_ROUND "?ftz f32x2", "d=dd", sub_f32x2 },
    { "mul", PTX_ROUND "?ftz f32x2", "d=dd", mul_f32x2 },
    { "fma", "rn|rz|rm|rp ?ftz f32x2", "d=ddd", fma_f32x2 },

    { "add", PTX_ROUND "f64", "d=dd", add_f64 },
    { "sub", PTX_ROUND "f64", "d=dd", sub_f64 },
    { "mul", PTX_ROUND "f64", "d=dd", mul_f64 },
    { "fma", "rn|rz|rm|rp f64", "d=ddd", fma_f64 },
    { "mad", "rn|rz|rm|rp f64", "d=ddd", fma_f64 },
    { "div", "rn|rz|rm|rp f64", "d=dd", div_f64 },
    { "rcp", "rn|rz|rm|rp f64", "d=d", rcp_f64 },
    { "sqrt", "rn|rz|rm|rp f64", "d=d", sqrt_f64 },
    { "neg", "f64", "d=d", neg_f64 },
    { "abs", "f64", "d=d", abs_f64 },
    { "min", "f64", "d=dd", min_f64 },
    { "max", "f64", "d=dd", max_f64 },
    { "copysign", "f64", "d=dd", copysign_f64 },
    { "rcp", "approx ftz f64", "d=d", rcp_approx_f64 },
    { "rsqrt", "approx ftz f64", "d=d", rsqrt_approx_ftz_f64 },
    { "rsqrt", "approx f64", "d=d", rsqrt_approx_f64 },

    HALVES("add", "?rn ?ftz ?sat ", add, "h=hh", "w=ww"),
    HALVES("sub", "?rn ?ftz ?sat ", sub, "h=hh", "w=ww"),
    HALVES("mul", "?rn ?ftz ?sat ", mul, "h=hh", "w=ww"),
    HALVES("fma", "rn ?ftz ?sat ?relu ", fma, "h=hhh", "w=www"),
    HALVES("min", "?ftz ", min, "h=hh", "w=ww"),
    HALVES("max", "?ftz ", max, "h=hh", "w=ww"),
    HALVES("min", "?ftz NaN ", min_nan, "h=hh", "w=ww"),
    HALVES("max", "?ftz NaN ", max_nan, "h=hh", "w=ww"),
    HALVES("tanh", "approx ", tanh_approx, "h=h", "w=w"),
    HALVES("ex2", "approx ?ftz ", ex2_approx, "h=h", "w=w"),
    { "neg", "?ftz f16|bf16", "h=h", neg_h1 },
    { "abs", "?ftz f16|bf16", "h=h", abs_h1 },
    { "neg", "?ftz f16x2|bf16x2", "w=w", neg_h2 },
    { "abs", "?ftz f16x2|bf16x2", "w=w", abs_h2 },

    { "cvt", "u64 u32", "d=w", cvt_u64_u32 },
    { "cvt", "s64 s32", "d=w", cvt_s64_s32 },
    { "cvt", "u32 u64", "w=d", cvt_u32_u64 },
    { "cvt", "u32 u16", "w=h", cvt_u32_u16 },
    { "cvt", "s32 s16", "w=h", cvt_s32_s16 },
    { "cvt", "u16 u32", "h=w", cvt_u16_u32 },
    { "cvt", "rn f32 s32", "w=w", cvt_f32_s32 },
    { "cvt", "rn f32 u32", "w=w", cvt_f32_u32 },
    { "cvt", "f32 bf16", "w=h", cvt_f32_bf16 },
    { "cvt", "f32 f16", "w=h", cvt_f32_f16 },
    { "cvt", "rn bf16 f32", "h=w", cvt_rn_bf16_f32 },
    { "cvt", "rn f16 f32", "h=w", cvt_rn_f16_f32 },
    { "cvt", "rn bf16x2 f32", "w=ww", cvt_rn_bf16x2_f32 },
    { "cvt", "rn f16x2 f32", "w=ww", cvt_rn_f16x2_f32 },
    { "cvt", "rna tf32 f32", "w=w", cvt_rna_tf32 },
    { "cvt", "rn tf32 f32", "w=w", cvt_rn_tf32 },
    { "cvt", "rn|rz ?relu bf16x2|f16x2 f32", "w=ww", cvt_pair },
    { "cvt", "#any", "", cvt_any },
    { NULL, NULL, NULL, NULL },
};
