/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PTX interpreter compared with C: every family of instructions on random and on extreme bits,
 * faults that it must detect (races, accesses out of bounds, copies not waited for), its counters,
 * and programs that it must reject. The references here are written from the manual, not from the
 * interpreter.
 */
#include "ptx.h"

#include "base/rng.h"
#include "run_tests.h"

#include <fenv.h>
#include <glib.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LANES 32
#define ROUNDS 40

typedef struct {
    uint64_t seed, drawn;
} Rng;

static Rng
rng_new(uint64_t seed)
{
    return (Rng){ seed, 0 };
}

static uint64_t
rng_next(Rng *rng)
{
    return lh_rng_bits(rng->seed, rng->drawn++, 0);
}

static double
rng_unit(Rng *rng)
{
    return lh_rng_uniform(rng->seed, rng->drawn++, 0);
}

/* Replaces each # in @text by the next of the strings, which end with NULL. */
static char *
made(const char *text, ...)
{
    GString *all = g_string_new(NULL);
    va_list list;

    /* NOLINTBEGIN(clang-analyzer-valist.Uninitialized): the analyzer misses va_start(). */
    va_start(list, text);
    for (; *text != 0; text++)
        if (*text == '#')
            g_string_append(all, va_arg(list, const char *));
        else
            g_string_append_c(all, *text);
    ck_assert(va_arg(list, const char *) == NULL);
    va_end(list);
    /* NOLINTEND(clang-analyzer-valist.Uninitialized) */
    return g_string_free(all, FALSE);
}

/* ---- running a program ---- */

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define ENTRY ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
#define REGISTERS ".reg .pred %p<16>;\n.reg .b16 %h<32>;\n.reg .b32 %w<64>;\n.reg .b64 %d<64>;\n"
/* %d0: in, %d1: out, %w0: thread */
#define START                                                                                      \
    "ld.param.u64 %d0, [in];\nld.param.u64 %d1, [out];\nmov.u32 %w0, %tid.x;\n"                    \
    "cvta.to.global.u64 %d0, %d0;\ncvta.to.global.u64 %d1, %d1;\n"
#define KERNEL(body) HEAD ENTRY REGISTERS START body "ret;\n}\n"

#define MEMORY_BYTES 65536

typedef struct {
    _Alignas(256) unsigned char in[MEMORY_BYTES];
    _Alignas(256) unsigned char out[MEMORY_BYTES];
} Memory;

static bool
touch(void *data, const void *at, uint32_t bytes, bool write)
{
    const Memory *memory = data;
    const unsigned char *from = at;

    if (from >= memory->out && from + bytes <= memory->out + MEMORY_BYTES)
        return true;
    return !write && from >= memory->in && from + bytes <= memory->in + MEMORY_BYTES;
}

static Memory *
memory_new(Rng *rng)
{
    Memory *memory = aligned_alloc(256, sizeof(Memory));

    for (size_t i = 0; i < MEMORY_BYTES; i += 8) {
        const uint64_t x = rng_next(rng);

        memcpy(memory->in + i, &x, 8);
    }
    memset(memory->out, 0xcd, MEMORY_BYTES);
    return memory;
}

static ptx_module *
module_of(const char *text)
{
    char error[256];
    ptx_module *module = ptx_module_new(text, strlen(text), error);

    ck_assert_msg(module != NULL, "%s\nin\n%s", error, text);
    return module;
}

typedef struct {
    uint32_t blocks, threads;
    uint64_t seed;
} Launch;

/* Runs kernel k(in, out) of @text. */
static bool
run_launch(const char *text, Memory *memory, const Launch *l, ptx_counts *counts, char error[256])
{
    ptx_module *module = module_of(text);
    void *in = memory->in, *out = memory->out, *args[] = { &in, &out };
    const ptx_memory access = { memory, touch };
    const ptx_launch launch = { .grid = { l->blocks, 1, 1 },
                                .block = { l->threads, 1, 1 },
                                .shared_bytes = 4096,
                                .args = args,
                                .seed = l->seed,
                                .instructions_max = 1000000 };
    const bool good = ptx_run(ptx_find(module, "k"), &launch, &access, counts, error);

    ptx_module_free(module);
    return good;
}

/* Runs it in one block. */
static bool
run_text(const char *text, Memory *memory, uint32_t threads, uint64_t seed, ptx_counts *counts,
         char error[256])
{
    return run_launch(text, memory, &(Launch){ 1, threads, seed }, counts, error);
}

static void
run_well(const char *text, Memory *memory, uint32_t threads, ptx_counts *counts)
{
    char error[256];

    ck_assert_msg(run_text(text, memory, threads, 1, counts, error), "%s\nin\n%s", error, text);
}

/* Checks that it stops with an error that contains @reason, for every seed. */
static void
run_badly(const char *text, uint32_t threads, const char *reason)
{
    Rng rng = rng_new(3);
    Memory *memory = memory_new(&rng);
    char error[256];

    for (uint64_t seed = 1; seed <= 8; seed++) {
        ck_assert_msg(!run_text(text, memory, threads, seed, NULL, error), "seed %u\n%s",
                      (unsigned)seed, text);
        ck_assert_msg(strstr(error, reason) != NULL, "\"%s\" is not in \"%s\"", reason, error);
    }
    free(memory);
}

static void
run_well_always(const char *text, uint32_t threads)
{
    Rng rng = rng_new(3);
    Memory *memory = memory_new(&rng);
    char error[256];

    for (uint64_t seed = 1; seed <= 8; seed++)
        ck_assert_msg(run_text(text, memory, threads, seed, NULL, error), "%s\nin\n%s", error,
                      text);
    free(memory);
}

/* ---- one instruction against C ---- */

typedef uint64_t (*Reference)(const uint64_t *x);
enum kind { BITS, FLOAT, DOUBLE, HALF, BHALF }; /* type of the operands */

typedef struct {
    const char *instruction; /* D is the result; A, B, C are operands */
    const char *widths;      /* of D, A, B, C: h w d, p for the result */
    Reference reference;
    uint8_t kind;
} Case;

static uint32_t
bytes_of(char width)
{
    return width == 'h' ? 2 : width == 'w' || width == 'p' ? 4 : 8;
}

static uint64_t
cut(uint64_t x, char width)
{
    return width == 'd' ? x : x & ((UINT64_C(1) << 8 * bytes_of(width)) - 1);
}

static uint64_t
of_float(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, 4);
    return bits;
}

static float
float_at(uint64_t x)
{
    const uint32_t bits = (uint32_t)x;
    float f;

    memcpy(&f, &bits, 4);
    return f;
}

static uint64_t
of_double(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, 8);
    return bits;
}

static double
double_at(uint64_t x)
{
    double d;

    memcpy(&d, &x, 8);
    return d;
}

/* The value of a half by definition: sign, 5 bits of exponent, 10 of fraction. */
static double
half_at(uint64_t x)
{
    const int exponent = (int)(x >> 10 & 31);
    const double fraction = (double)(x & 1023), sign = x & 0x8000 ? -1 : 1;

    if (exponent == 31)
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    return exponent == 0 ? sign * ldexp(fraction, -24)
                         : sign * ldexp(1024 + fraction, exponent - 25);
}

static double
bhalf_at(uint64_t x)
{
    return (double)float_at((x & 0xffff) << 16);
}

/* The nearest number of a 16-bit format, by binary search among all of them. */
static uint64_t
nearest_16(double x, double (*at)(uint64_t), uint64_t infinity)
{
    const uint64_t sign = signbit(x) ? 0x8000 : 0;
    uint64_t low = 0, high = infinity;
    double below, above;

    if (x != x)
        return 0x7fff;
    x = fabs(x);
    if (x == (double)INFINITY)
        return sign | infinity;
    while (high - low > 1) {
        const uint64_t middle = (low + high) / 2;

        if (at(middle) <= x)
            low = middle;
        else
            high = middle;
    }
    below = x - at(low);
    /* as if the exponent range continued above the largest number */
    above = (high == infinity ? 2 * at(infinity - 1) - at(infinity - 2) : at(high)) - x;
    if (below < above || (below == above && (low & 1) == 0))
        return sign | low;
    return sign | high;
}

static uint64_t
of_half(double x)
{
    return nearest_16(x, half_at, 0x7c00);
}

static uint64_t
of_bhalf(double x)
{
    return nearest_16(x, bhalf_at, 0x7f80);
}

static uint64_t
operand(Rng *rng, uint8_t kind, char width)
{
    static const uint64_t corners[] = { 0,
                                        1,
                                        2,
                                        31,
                                        32,
                                        33,
                                        63,
                                        64,
                                        0x7f,
                                        0x80,
                                        0xff,
                                        0x7fff,
                                        0x8000,
                                        0xffff,
                                        0x7fffffff,
                                        0x80000000,
                                        0xffffffff,
                                        0x7fffffffffffffff,
                                        0x8000000000000000,
                                        UINT64_MAX };
    static const float floats[] = {
        0.0f,     -0.0f,     1.0f,     -1.0f,     0.5f,          1.5f,           2.5f,
        INFINITY, -INFINITY, NAN,      0x1p-126f, -0x1p-126f,    0x1p-149f,      -0x1.8p-140f,
        0x1p127f, 3.4e38f,   65504.0f, 65520.0f,  2147483648.0f, -2147483904.0f, 4294967296.0f
    };
    const uint64_t bits = rng_next(rng);
    const uint32_t choice = (uint32_t)(rng_next(rng) >> 32);
    const float f = floats[(choice >> 8) % G_N_ELEMENTS(floats)];

    if (choice % 3 == 0 && kind == BITS)
        return cut(corners[(choice >> 8) % G_N_ELEMENTS(corners)], width);
    if (choice % 3 == 0)
        return kind == FLOAT    ? of_float(f)
               : kind == DOUBLE ? of_double((double)f)
               : kind == HALF   ? of_half((double)f)
                                : of_bhalf((double)f);
    if (choice % 3 == 1 && kind == FLOAT) /* of similar size, so that sums matter */
        return of_float((float)((double)(int32_t)bits * 0x1p-28));
    if (choice % 3 == 1 && kind == DOUBLE)
        return of_double((double)(int64_t)bits * 0x1p-58);
    if (choice % 3 == 1 && kind != BITS)
        return kind == HALF ? of_half((double)(int16_t)bits * 0x1p-12)
                            : of_bhalf((double)(int16_t)bits * 0x1p-12);
    return cut(bits, width);
}

static bool
is_nan(uint64_t x, uint8_t kind, char width)
{
    if (kind == BITS)
        return false;
    if (width == 'd')
        return double_at(x) != double_at(x);
    if (width == 'w')
        return float_at(x) != float_at(x);
    return kind == HALF ? half_at(x) != half_at(x) : bhalf_at(x) != bhalf_at(x);
}

/* A kernel that loads A, B, C of each thread, executes the instruction and stores D. */
static char *
case_text(const Case *c)
{
    g_autoptr(GString) text =
        g_string_new(HEAD ENTRY REGISTERS START "mul.wide.u32 %d3, %w0, 32;\n"
                                                "add.s64 %d4, %d0, %d3;\nadd.s64 %d5, %d1, %d3;\n");
    const size_t operands = strlen(c->widths) - 1;

    for (size_t i = 0; i < operands; i++)
        g_string_append_printf(text, "ld.global.b%u %%%c%u, [%%d4+%u];\n",
                               8 * bytes_of(c->widths[1 + i]), c->widths[1 + i], 20 + (unsigned)i,
                               8 * (unsigned)i);
    for (const char *at = c->instruction; *at != 0; at++) {
        if (*at == 'D')
            g_string_append_printf(text, "%%%c10", c->widths[0]);
        else if (*at >= 'A' && *at <= 'C')
            g_string_append_printf(text, "%%%c%u", c->widths[1 + *at - 'A'],
                                   20 + (unsigned)(*at - 'A'));
        else
            g_string_append_c(text, *at);
    }
    if (c->widths[0] == 'p')
        g_string_append(text, ";\nselp.b32 %w10, 1, 0, %p10;\nst.global.b32 [%d5], %w10;\n");
    else
        g_string_append_printf(text, ";\nst.global.b%u [%%d5], %%%c10;\n",
                               8 * bytes_of(c->widths[0]), c->widths[0]);
    g_string_append(text, "ret;\n}\n");
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void
check_case(const Case *c, uint64_t seed)
{
    Rng rng = rng_new(seed);
    g_autofree char *text = case_text(c);
    const size_t operands = strlen(c->widths) - 1;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        Memory *memory = memory_new(&rng);
        uint64_t x[LANES][3] = { { 0 } };

        for (uint32_t lane = 0; lane < LANES; lane++)
            for (size_t i = 0; i < operands; i++) {
                x[lane][i] = operand(&rng, c->kind, c->widths[1 + i]);
                memcpy(memory->in + 32 * lane + 8 * i, &x[lane][i], 8);
            }
        run_well(text, memory, LANES, NULL);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            uint64_t got = 0;
            const uint64_t due = cut(c->reference(x[lane]), c->widths[0]);

            memcpy(&got, memory->out + 32 * lane, bytes_of(c->widths[0]));
            if (is_nan(got, c->kind, c->widths[0]) && is_nan(due, c->kind, c->widths[0]))
                continue;
            ck_assert_msg(got == due, "%s of %llx, %llx, %llx: %llx, expected %llx", c->instruction,
                          (unsigned long long)x[lane][0], (unsigned long long)x[lane][1],
                          (unsigned long long)x[lane][2], (unsigned long long)got,
                          (unsigned long long)due);
        }
        free(memory);
    }
}

#define REF(name, expression)                                                                      \
    static uint64_t ref_##name(const uint64_t *x)                                                  \
    {                                                                                              \
        const uint64_t a = x[0], b = x[1], c = x[2];                                               \
                                                                                                   \
        (void)a, (void)b, (void)c;                                                                 \
        return (uint64_t)(expression);                                                             \
    }
#define S32(x) ((int64_t)(int32_t)(uint32_t)(x))
#define S16(x) ((int64_t)(int16_t)(uint16_t)(x))
#define S64(x) ((int64_t)(x))
#define U32(x) ((uint64_t)(uint32_t)(x))

REF(add, a + b)
REF(sub, a - b)
REF(mul, a *b)
REF(mul_hi_u32, a *b >> 32)
REF(mul_hi_s32, (S32(a) * S32(b)) >> 32)
REF(mul_wide_s32, S32(a) * S32(b))
REF(mul_wide_s16, S16(a) * S16(b))
REF(mad, a *b + c)
REF(mad_wide_s32, (uint64_t)(S32(a) * S32(b)) + c)
REF(mad_hi_u32, (a * b >> 32) + c)

/* The upper half of a 64-bit product, from its four partial products. */
static uint64_t
high_of(uint64_t a, uint64_t b)
{
    const uint64_t middle = (a >> 32) * U32(b) + (U32(a) * U32(b) >> 32);
    const uint64_t other = U32(a) * (b >> 32) + U32(middle);

    return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}
REF(mul_hi_u64, high_of(a, b))
REF(mul_hi_s64, high_of(a, b) - (S64(a) < 0 ? b : 0) - (S64(b) < 0 ? a : 0))
REF(div_u32, b == 0 ? UINT32_MAX : a / b)
REF(div_s32, b == 0 ? -1 : S32(a) / S32(b))
REF(div_u64, b == 0 ? UINT64_MAX : a / b)
REF(div_s64, b == 0 ? -1 : b == UINT64_MAX ? S64(0 - a) : S64(a) / S64(b))
REF(rem_u32, b == 0 ? a : a % b)
REF(rem_s32, b == 0 ? S32(a) : S32(a) % S32(b))
REF(rem_s64, b == 0 ? S64(a) : b == UINT64_MAX ? 0 : S64(a) % S64(b))
REF(rem_u64, b == 0 ? a : a % b)
REF(min_s32, S32(a) < S32(b) ? a : b)
REF(max_u32, a > b ? a : b)
REF(max_s64, S64(a) > S64(b) ? a : b)
REF(min_u64, a < b ? a : b)
REF(min_s16, S16(a) < S16(b) ? a : b)
REF(abs_s32, S32(a) < 0 ? 0 - a : a)
REF(neg, 0 - a)
REF(and, a &b)
REF(or, a | b)
REF(xor, a ^ b)
REF(not, ~a)
REF(shl_32, b > 31 ? 0 : a << b)
REF(shl_64, b > 63 ? 0 : a << b)
REF(shr_u32, b > 31 ? 0 : a >> b)
REF(shr_s32, S32(a) >> (b > 31 ? 31 : b))
REF(shr_u64, b > 63 ? 0 : a >> b)
REF(shr_s64, S64(a) >> (b > 63 ? 63 : b))
REF(shr_s16, S16(a) >> (b > 15 ? 15 : b))
REF(add_sat, S32(a) + S32(b) > INT32_MAX   ? INT32_MAX
             : S32(a) + S32(b) < INT32_MIN ? INT32_MIN
                                           : S32(a) + S32(b))
REF(sad_s32, c + (uint64_t)(S32(a) > S32(b) ? S32(a) - S32(b) : S32(b) - S32(a)))
REF(mul24, ((a & 0xffffff) * (b & 0xffffff)))
REF(dp4a,
    c + (uint64_t)((int64_t)(int8_t)a * (int8_t)b + (int64_t)(int8_t)(a >> 8) * (int8_t)(b >> 8) +
                   (int64_t)(int8_t)(a >> 16) * (int8_t)(b >> 16) +
                   (int64_t)(int8_t)(a >> 24) * (int8_t)(b >> 24)))

static uint64_t
count_bits(uint64_t x)
{
    uint64_t n = 0;

    for (; x != 0; x >>= 1)
        n += x & 1;
    return n;
}

static uint64_t
mirrored(uint64_t x, uint32_t bits)
{
    uint64_t r = 0;

    for (uint32_t i = 0; i < bits; i++)
        r |= (x >> i & 1) << (bits - 1 - i);
    return r;
}

static uint64_t
leading_zeros(uint64_t x, uint32_t bits)
{
    uint64_t n = 0;

    while (n < bits && (x >> (bits - 1 - n) & 1) == 0)
        n++;
    return n;
}
REF(popc, count_bits(a))
REF(brev_32, mirrored(a, 32))
REF(brev_64, mirrored(a, 64))
REF(clz_32, leading_zeros(a, 32))
REF(clz_64, leading_zeros(a, 64))
REF(bfind_u32, 31 - leading_zeros(a, 32))
REF(bfind_s32, 31 - leading_zeros(S32(a) < 0 ? U32(~a) : a, 32))

/* Transcribed from the manual, bit by bit. */
static uint64_t
field_of(uint64_t a, uint64_t b, uint64_t c, uint32_t bits, bool sign)
{
    const uint32_t position = b & 255, length = c & 255;
    uint64_t r = 0, fill = 0;

    if (sign && length != 0)
        fill = a >> (position + length - 1 < bits - 1 ? position + length - 1 : bits - 1) & 1;
    for (uint32_t i = 0; i < bits; i++)
        r |= (i < length && position + i < bits ? a >> (position + i) & 1 : fill) << i;
    return r;
}
REF(bfe_u32, field_of(a, b, c, 32, false))
REF(bfe_s32, field_of(a, b, c, 32, true))
REF(bfe_u64, field_of(a, b, c, 64, false))
REF(bfe_s64, field_of(a, b, c, 64, true))

static uint64_t
put_field(uint64_t a, uint64_t b, uint32_t position, uint32_t length, uint32_t bits)
{
    for (uint32_t i = 0; i < length && position + i < bits; i++)
        b = (b & ~(UINT64_C(1) << (position + i))) | (a >> i & 1) << (position + i);
    return b;
}
REF(bfi_3_7, put_field(a, b, 3, 7, 32))
REF(bfi_28_9, put_field(a, b, 28, 9, 32))
REF(bfi_64, put_field(a, b, c & 255, 13, 64))
REF(bfi_c, put_field(a, b, c & 255, 13, 32))

static uint64_t
chosen_bytes(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t r = 0;

    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t which = c >> 4 * i & 7;
        uint64_t byte = (which < 4 ? a >> 8 * which : b >> 8 * (which - 4)) & 255;

        if ((c >> (4 * i + 3) & 1) != 0)
            byte = byte >= 128 ? 255 : 0;
        r |= byte << 8 * i;
    }
    return r;
}
REF(prmt, chosen_bytes(a, b, c))
REF(shf_l_wrap, (c & 31) == 0 ? b : b << (c & 31) | a >> (32 - (c & 31)))
REF(shf_r_clamp, c >= 32 ? b : c == 0 ? a : a >> c | b << (32 - c))
REF(lop3_96, a ^ b ^ c)
REF(lop3_e8, (a & b) | (a & c) | (b & c))
REF(lop3_ca, (a & b) | (~a & c))
REF(slct, S32(c) >= 0 ? a : b)

static const Case integer_cases[] = {
    { "add.s32 D, A, B", "www", ref_add },
    { "add.u16 D, A, B", "hhh", ref_add },
    { "add.s64 D, A, B", "ddd", ref_add },
    { "sub.s32 D, A, B", "www", ref_sub },
    { "sub.u64 D, A, B", "ddd", ref_sub },
    { "add.sat.s32 D, A, B", "www", ref_add_sat },
    { "mul.lo.s32 D, A, B", "www", ref_mul },
    { "mul.lo.u64 D, A, B", "ddd", ref_mul },
    { "mul.lo.s16 D, A, B", "hhh", ref_mul },
    { "mul.hi.u32 D, A, B", "www", ref_mul_hi_u32 },
    { "mul.hi.s32 D, A, B", "www", ref_mul_hi_s32 },
    { "mul.hi.u64 D, A, B", "ddd", ref_mul_hi_u64 },
    { "mul.hi.s64 D, A, B", "ddd", ref_mul_hi_s64 },
    { "mul.wide.u32 D, A, B", "dww", ref_mul },
    { "mul.wide.s32 D, A, B", "dww", ref_mul_wide_s32 },
    { "mul.wide.s16 D, A, B", "whh", ref_mul_wide_s16 },
    { "mul24.lo.u32 D, A, B", "www", ref_mul24 },
    { "mad.lo.s32 D, A, B, C", "wwww", ref_mad },
    { "mad.lo.u64 D, A, B, C", "dddd", ref_mad },
    { "mad.wide.u32 D, A, B, C", "dwwd", ref_mad },
    { "mad.wide.s32 D, A, B, C", "dwwd", ref_mad_wide_s32 },
    { "mad.hi.u32 D, A, B, C", "wwww", ref_mad_hi_u32 },
    { "div.u32 D, A, B", "www", ref_div_u32 },
    { "div.s32 D, A, B", "www", ref_div_s32 },
    { "div.u64 D, A, B", "ddd", ref_div_u64 },
    { "div.s64 D, A, B", "ddd", ref_div_s64 },
    { "rem.u32 D, A, B", "www", ref_rem_u32 },
    { "rem.s32 D, A, B", "www", ref_rem_s32 },
    { "rem.u64 D, A, B", "ddd", ref_rem_u64 },
    { "rem.s64 D, A, B", "ddd", ref_rem_s64 },
    { "min.s32 D, A, B", "www", ref_min_s32 },
    { "max.u32 D, A, B", "www", ref_max_u32 },
    { "max.s64 D, A, B", "ddd", ref_max_s64 },
    { "min.u64 D, A, B", "ddd", ref_min_u64 },
    { "min.s16 D, A, B", "hhh", ref_min_s16 },
    { "abs.s32 D, A", "ww", ref_abs_s32 },
    { "neg.s64 D, A", "dd", ref_neg },
    { "neg.s16 D, A", "hh", ref_neg },
    { "sad.s32 D, A, B, C", "wwww", ref_sad_s32 },
    { "dp4a.s32.s32 D, A, B, C", "wwww", ref_dp4a },
    { "and.b32 D, A, B", "www", ref_and },
    { "or.b64 D, A, B", "ddd", ref_or },
    { "xor.b16 D, A, B", "hhh", ref_xor },
    { "not.b32 D, A", "ww", ref_not },
    { "shl.b32 D, A, B", "www", ref_shl_32 },
    { "shl.b64 D, A, B", "ddw", ref_shl_64 },
    { "shr.u32 D, A, B", "www", ref_shr_u32 },
    { "shr.s32 D, A, B", "www", ref_shr_s32 },
    { "shr.u64 D, A, B", "ddw", ref_shr_u64 },
    { "shr.s64 D, A, B", "ddw", ref_shr_s64 },
    { "shr.s16 D, A, B", "hhw", ref_shr_s16 },
    { "popc.b32 D, A", "ww", ref_popc },
    { "popc.b64 D, A", "wd", ref_popc },
    { "clz.b32 D, A", "ww", ref_clz_32 },
    { "clz.b64 D, A", "wd", ref_clz_64 },
    { "brev.b32 D, A", "ww", ref_brev_32 },
    { "brev.b64 D, A", "dd", ref_brev_64 },
    { "bfind.u32 D, A", "ww", ref_bfind_u32 },
    { "bfind.s32 D, A", "ww", ref_bfind_s32 },
    { "bfe.u32 D, A, B, C", "wwww", ref_bfe_u32 },
    { "bfe.s32 D, A, B, C", "wwww", ref_bfe_s32 },
    { "bfe.u64 D, A, B, C", "ddww", ref_bfe_u64 },
    { "bfe.s64 D, A, B, C", "ddww", ref_bfe_s64 },
    { "bfi.b32 D, A, B, 3, 7", "www", ref_bfi_3_7 },
    { "bfi.b32 D, A, B, 28, 9", "www", ref_bfi_28_9 },
    { "bfi.b32 D, A, B, C, 13", "wwww", ref_bfi_c },
    { "bfi.b64 D, A, B, C, 13", "dddw", ref_bfi_64 },
    { "prmt.b32 D, A, B, C", "wwww", ref_prmt },
    { "shf.l.wrap.b32 D, A, B, C", "wwww", ref_shf_l_wrap },
    { "shf.r.clamp.b32 D, A, B, C", "wwww", ref_shf_r_clamp },
    { "lop3.b32 D, A, B, C, 0x96", "wwww", ref_lop3_96 },
    { "lop3.b32 D, A, B, C, 0xe8", "wwww", ref_lop3_e8 },
    { "lop3.b32 D, A, B, C, 0xca", "wwww", ref_lop3_ca },
    { "slct.b32.s32 D, A, B, C", "wwww", ref_slct },
};

START_TEST(integers_as_c)
{
    for (size_t i = 0; i < G_N_ELEMENTS(integer_cases); i++)
        check_case(&integer_cases[i], i);
}
END_TEST

/* ---- floats ---- */

static float
flush(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
}

/* Rounds a double result to float in a direction; exact for one product or sum. */
static float
toward(long double x, int direction)
{
    const float near = (float)x;

    if ((long double)near == x || x != x)
        return near;
    if (direction == FE_DOWNWARD || (direction == FE_TOWARDZERO && x > 0))
        return (long double)near > x ? nextafterf(near, -INFINITY) : near;
    return (long double)near < x ? nextafterf(near, INFINITY) : near;
}
#define FA float_at(a)
#define FB float_at(b)
#define FC float_at(c)
REF(fadd, of_float(FA + FB))
REF(fsub, of_float(FA - FB))
REF(fmul, of_float(FA *FB))
REF(fma, of_float(fmaf(FA, FB, FC)))
REF(fma_minus, of_float(fmaf(FA, FB, -FC)))
REF(minus_fma, of_float(fmaf(-FA, FB, FC)))
REF(fmul_add, of_float((float)(FA *FB) + FC))
REF(fmul_minus, of_float((float)(FA *FB) - FC))
REF(fdiv, of_float(FA / FB))
REF(fadd_ftz, of_float(flush(flush(FA) + flush(FB))))
REF(fmul_ftz, of_float(flush(flush(FA) * flush(FB))))
REF(fma_ftz, of_float(flush(fmaf(flush(FA), flush(FB), flush(FC)))))
REF(fmul_rz, of_float(toward((long double)FA *(long double)FB, FE_TOWARDZERO)))
REF(fmul_rm, of_float(toward((long double)FA *(long double)FB, FE_DOWNWARD)))
REF(fmul_rp, of_float(toward((long double)FA *(long double)FB, FE_UPWARD)))
REF(fsat, of_float(FA *FB > 0 ? (FA * FB < 1 ? FA * FB : 1.0f) : 0.0f))
REF(fneg, of_float(-FA))
REF(fabs, of_float(fabsf(FA)))
REF(fsqrt, of_float(sqrtf(FA)))
REF(frcp, of_float(1.0f / FA))
/* The other operand replaces NaN; of two zeros the negative one is smaller. */
REF(fmin, FA != FA                 ? b
          : FB != FB               ? a
          : FA == FB && FA == 0.0f ? (signbit(FA) ? a : b)
          : FA < FB                ? a
                                   : b)
REF(fmax, FA != FA                 ? b
          : FB != FB               ? a
          : FA == FB && FA == 0.0f ? (signbit(FA) ? b : a)
          : FA > FB                ? a
                                   : b)
REF(fmax_nan, FA != FA || FB != FB ? 0x7fffffff : ref_fmax(x))
REF(copysign, of_float(copysignf(FB, FA)))
#define DA double_at(a)
#define DB double_at(b)
#define DC double_at(c)
REF(dadd, of_double(DA + DB))
REF(dsub, of_double(DA - DB))
REF(dmul, of_double(DA *DB))
REF(dma, of_double(fma(DA, DB, DC)))
REF(ddiv, of_double(DA / DB))
REF(dsqrt, of_double(sqrt(DA)))
REF(drcp, of_double(1 / DA))
REF(dneg, of_double(-DA))
REF(dmax, of_double(DA != DA ? DB : DB != DB || DA > DB ? DA : DB == DA && signbit(DB) ? DA : DB))
/* Sums and products of halves are exact in long double. */
#define HA ((long double)half_at(a))
#define HB ((long double)half_at(b))
#define HC ((long double)half_at(c))
#define BA ((long double)bhalf_at(a))
#define BB ((long double)bhalf_at(b))
REF(hadd, of_half((double)(HA + HB)))
REF(hmul, of_half((double)(HA *HB)))
REF(hfma, of_half((double)(HA *HB + HC)))
REF(hmul2, of_half((double)(HA *HB)) | of_half(half_at(a >> 16) * half_at(b >> 16)) << 16)
REF(badd, of_bhalf((double)(BA + BB)))
REF(bmul, of_bhalf((double)(BA *BB)))
REF(hneg, a ^ 0x8000)

static const Case float_cases[] = {
    { "add.f32 D, A, B", "www", ref_fadd, FLOAT },
    { "add.rn.f32 D, A, B", "www", ref_fadd, FLOAT },
    { "sub.f32 D, A, B", "www", ref_fsub, FLOAT },
    { "mul.f32 D, A, B", "www", ref_fmul, FLOAT },
    { "fma.rn.f32 D, A, B, C", "wwww", ref_fma, FLOAT },
    { "div.rn.f32 D, A, B", "www", ref_fdiv, FLOAT },
    { "add.ftz.f32 D, A, B", "www", ref_fadd_ftz, FLOAT },
    { "mul.rn.ftz.f32 D, A, B", "www", ref_fmul_ftz, FLOAT },
    { "fma.rn.ftz.f32 D, A, B, C", "wwww", ref_fma_ftz, FLOAT },
    { "mul.rz.f32 D, A, B", "www", ref_fmul_rz, FLOAT },
    { "mul.rm.f32 D, A, B", "www", ref_fmul_rm, FLOAT },
    { "mul.rp.f32 D, A, B", "www", ref_fmul_rp, FLOAT },
    { "mul.sat.f32 D, A, B", "www", ref_fsat, FLOAT },
    { "neg.f32 D, A", "ww", ref_fneg, FLOAT },
    { "abs.f32 D, A", "ww", ref_fabs, FLOAT },
    { "sqrt.rn.f32 D, A", "ww", ref_fsqrt, FLOAT },
    { "rcp.rn.f32 D, A", "ww", ref_frcp, FLOAT },
    { "min.f32 D, A, B", "www", ref_fmin, FLOAT },
    { "max.f32 D, A, B", "www", ref_fmax, FLOAT },
    { "max.NaN.f32 D, A, B", "www", ref_fmax_nan, FLOAT },
    { "copysign.f32 D, A, B", "www", ref_copysign, FLOAT },
    { "add.f64 D, A, B", "ddd", ref_dadd, DOUBLE },
    { "sub.rn.f64 D, A, B", "ddd", ref_dsub, DOUBLE },
    { "mul.f64 D, A, B", "ddd", ref_dmul, DOUBLE },
    { "fma.rn.f64 D, A, B, C", "dddd", ref_dma, DOUBLE },
    { "div.rn.f64 D, A, B", "ddd", ref_ddiv, DOUBLE },
    { "sqrt.rn.f64 D, A", "dd", ref_dsqrt, DOUBLE },
    { "rcp.rn.f64 D, A", "dd", ref_drcp, DOUBLE },
    { "neg.f64 D, A", "dd", ref_dneg, DOUBLE },
    { "max.f64 D, A, B", "ddd", ref_dmax, DOUBLE },
    { "add.f16 D, A, B", "hhh", ref_hadd, HALF },
    { "mul.f16 D, A, B", "hhh", ref_hmul, HALF },
    { "fma.rn.f16 D, A, B, C", "hhhh", ref_hfma, HALF },
    { "mul.f16x2 D, A, B", "www", ref_hmul2, HALF },
    { "neg.f16 D, A", "hh", ref_hneg, HALF },
    { "add.bf16 D, A, B", "hhh", ref_badd, BHALF },
    { "mul.bf16 D, A, B", "hhh", ref_bmul, BHALF },
};

/* Sums of products are contracted to a single rounding if both instructions leave the rounding
 * open and are otherwise unmodified; else they round twice. */
#define MUL "mul.f32 %w50, A, B;\n"

static const Case contracted_cases[] = {
    { MUL "add.f32 D, %w50, C", "wwww", ref_fma, FLOAT },
    { MUL "add.f32 D, C, %w50", "wwww", ref_fma, FLOAT },
    { MUL "sub.f32 D, %w50, C", "wwww", ref_fma_minus, FLOAT },
    { MUL "sub.f32 D, C, %w50", "wwww", ref_minus_fma, FLOAT },
    { MUL "mov.b32 %w51, C;\nadd.f32 D, %w50, %w51", "wwww", ref_fma, FLOAT },
    { "mul.ftz.f32 %w50, A, B;\nadd.ftz.f32 D, %w50, C", "wwww", ref_fma_ftz, FLOAT },
    { "mul.rn.f32 %w50, A, B;\nadd.f32 D, %w50, C", "wwww", ref_fmul_add, FLOAT },
    { MUL "add.rn.f32 D, %w50, C", "wwww", ref_fmul_add, FLOAT },
    { MUL "sub.rn.f32 D, %w50, C", "wwww", ref_fmul_minus, FLOAT },
    { "mov.b32 %w51, A;\nmul.f32 %w50, %w51, B;\nmov.b32 %w51, C;\nadd.f32 D, %w50, C", "wwww",
      ref_fmul_add, FLOAT },
    { "mov.b32 %w51, B;\nmul.f32 %w50, A, %w51;\nmov.b32 %w51, C;\nadd.f32 D, %w50, C", "wwww",
      ref_fmul_add, FLOAT },
    { MUL "mov.b32 %w50, A;\nadd.f32 D, %w50, B", "www", ref_fadd, FLOAT },
    { MUL "sum:\nadd.f32 D, %w50, C", "wwww", ref_fmul_add, FLOAT },
    { MUL "mov.b64 %d20, {A, C};\nmov.b64 {%w50, %w51}, %d20;\nadd.f32 D, %w50, B", "wwww",
      ref_fadd, FLOAT },
    { "setp.eq.f32 %p5, A, A;\nmov.b32 %w50, A;\n@!%p5 mul.f32 %w50, A, B;\nadd.f32 D, %w50, B",
      "www", ref_fadd, FLOAT },
};

START_TEST(sums_of_products_as_ptxas)
{
    for (size_t i = 0; i < G_N_ELEMENTS(contracted_cases); i++)
        check_case(&contracted_cases[i], 200 + i);
}
END_TEST

START_TEST(floats_as_c)
{
    for (size_t i = 0; i < G_N_ELEMENTS(float_cases); i++)
        check_case(&float_cases[i], 100 + i);
}
END_TEST

/* ---- conversions ---- */

/* Rounds towards zero to an integer of a range; NaN becomes @nan. */
static int64_t
clamped(double x, double least, double most, int64_t least_int, int64_t most_int)
{
    return x != x ? 0 : x <= least ? least_int : x >= most ? most_int : (int64_t)x;
}
REF(s32_of_f, clamped((double)FA, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX))
REF(s32_of_f_n, clamped(nearbyint((double)FA), -0x1p31, 0x1p31, INT32_MIN, INT32_MAX))
REF(s32_of_f_m, clamped(floor((double)FA), -0x1p31, 0x1p31, INT32_MIN, INT32_MAX))
REF(u32_of_f, clamped((double)FA, 0, 0x1p32, 0, UINT32_MAX))
REF(s16_of_f, clamped((double)FA, -0x1p15, 0x1p15, INT16_MIN, INT16_MAX))
REF(f_of_s32, of_float((float)S32(a)))
REF(f_of_u32, of_float((float)U32(a)))
REF(f_of_s64, of_float((float)S64(a)))
REF(f_of_u64, of_float((float)a))
REF(d_of_u64, of_double((double)a))
REF(f_of_s32_rz, of_float(toward((long double)S32(a), FE_TOWARDZERO)))
REF(f_of_d, of_float((float)DA))
REF(f_of_d_rp, of_float(toward((long double)DA, FE_UPWARD)))
REF(d_of_f, of_double((double)FA))
REF(h_of_f, of_half((double)FA))
REF(b_of_f, of_bhalf((double)FA))
REF(f_of_h, of_float((float)half_at(a)))
REF(f_of_b, of_float((float)bhalf_at(a)))
REF(b2_of_f, of_bhalf((double)FA) << 16 | of_bhalf((double)FB))
REF(h2_of_f, of_half((double)FA) << 16 | of_half((double)FB))
REF(s64_of_s32, S32(a))
REF(u64_of_u32, a)
REF(s32_of_s8, (int8_t)a)
REF(s16_of_s32_sat, S32(a) > INT16_MAX ? INT16_MAX : S32(a) < INT16_MIN ? INT16_MIN : S32(a))
REF(u8_of_s32_sat, S32(a) > 255 ? 255 : S32(a) < 0 ? 0 : S32(a))
REF(f_rni, of_float(rintf(FA)))
REF(f_sat, of_float(FA > 0 ? (FA < 1 ? FA : 1.0f) : 0.0f))
/* Rounds at bit 13, ties away from zero. */
REF(tf32, FA != FA ? 0x7fffe000 : (a & 0x7f800000) == 0x7f800000 ? a : (a + 0x1000) & 0xffffe000)

static const Case conversion_cases[] = {
    { "cvt.rzi.s32.f32 D, A", "ww", ref_s32_of_f, FLOAT },
    { "cvt.rni.s32.f32 D, A", "ww", ref_s32_of_f_n, FLOAT },
    { "cvt.rmi.s32.f32 D, A", "ww", ref_s32_of_f_m, FLOAT },
    { "cvt.rzi.u32.f32 D, A", "ww", ref_u32_of_f, FLOAT },
    { "cvt.rzi.s16.f32 D, A", "hw", ref_s16_of_f, FLOAT },
    { "cvt.rn.f32.s32 D, A", "ww", ref_f_of_s32, BITS },
    { "cvt.rn.f32.u32 D, A", "ww", ref_f_of_u32, BITS },
    { "cvt.rn.f32.s64 D, A", "wd", ref_f_of_s64, BITS },
    { "cvt.rn.f32.u64 D, A", "wd", ref_f_of_u64, BITS },
    { "cvt.rn.f64.u64 D, A", "dd", ref_d_of_u64, BITS },
    { "cvt.rz.f32.s32 D, A", "ww", ref_f_of_s32_rz, BITS },
    { "cvt.rn.f32.f64 D, A", "wd", ref_f_of_d, DOUBLE },
    { "cvt.rp.f32.f64 D, A", "wd", ref_f_of_d_rp, DOUBLE },
    { "cvt.f64.f32 D, A", "dw", ref_d_of_f, FLOAT },
    { "cvt.rn.f16.f32 D, A", "hw", ref_h_of_f, FLOAT },
    { "cvt.rn.bf16.f32 D, A", "hw", ref_b_of_f, FLOAT },
    { "cvt.f32.f16 D, A", "wh", ref_f_of_h, HALF },
    { "cvt.f32.bf16 D, A", "wh", ref_f_of_b, BHALF },
    { "cvt.rn.bf16x2.f32 D, A, B", "www", ref_b2_of_f, FLOAT },
    { "cvt.rn.f16x2.f32 D, A, B", "www", ref_h2_of_f, FLOAT },
    { "cvt.s64.s32 D, A", "dw", ref_s64_of_s32, BITS },
    { "cvt.u64.u32 D, A", "dw", ref_u64_of_u32, BITS },
    { "cvt.s32.s8 D, A", "ww", ref_s32_of_s8, BITS },
    { "cvt.sat.s16.s32 D, A", "hw", ref_s16_of_s32_sat, BITS },
    { "cvt.sat.u8.s32 D, A", "ww", ref_u8_of_s32_sat, BITS },
    { "cvt.rni.f32.f32 D, A", "ww", ref_f_rni, FLOAT },
    { "cvt.sat.f32.f32 D, A", "ww", ref_f_sat, FLOAT },
    { "cvt.rna.tf32.f32 D, A", "ww", ref_tf32, FLOAT },
};

START_TEST(conversions_as_c)
{
    for (size_t i = 0; i < G_N_ELEMENTS(conversion_cases); i++)
        check_case(&conversion_cases[i], 200 + i);
}
END_TEST

/* ---- comparisons ---- */

static bool
compares(const char *word, double x, double y)
{
    const bool nan = x != x || y != y;
    const size_t length = strlen(word);

    if (strcmp(word, "num") == 0)
        return !nan;
    if (strcmp(word, "nan") == 0)
        return nan;
    if (nan)
        return length == 3; /* equ, neu, ltu ... are true for NaN */
    switch (word[0] * 256 + word[1]) {
    case 'e' * 256 + 'q':
        return x == y;
    case 'n' * 256 + 'e':
        return x != y;
    case 'l' * 256 + 't':
    case 'l' * 256 + 'o':
        return x < y;
    case 'l' * 256 + 'e':
    case 'l' * 256 + 's':
        return x <= y;
    case 'g' * 256 + 't':
    case 'h' * 256 + 'i':
        return x > y;
    default:
        return x >= y;
    }
}

static void
check_comparison(const char *word, const char *type, const char *boolean, bool negated)
{
    const bool is_float = type[0] == 'f', is_signed = type[0] == 's';
    const char *combine = boolean[0] == 0 ? "" : negated ? ", !%p3" : ", %p3";
    g_autofree char *text =
        made(KERNEL("mul.wide.u32 %d3, %w0, 16;\nadd.s64 %d4, %d0, %d3;\nadd.s64 %d5, %d1, %d3;\n"
                    "ld.global.b32 %w1, [%d4];\nld.global.b32 %w2, [%d4+4];\n"
                    "and.b32 %w3, %w0, 1;\nsetp.eq.u32 %p3, %w3, 1;\n"
                    "setp.##.# %p1|%p2, %w1, %w2#;\n"
                    "selp.b32 %w4, 1, 0, %p1;\nselp.b32 %w5, 1, 0, %p2;\n"
                    "st.global.v2.b32 [%d5], {%w4, %w5};\n"),
             word, boolean, type, combine, NULL);
    Rng rng = rng_new(17);

    for (uint32_t round = 0; round < 20; round++) {
        Memory *memory = memory_new(&rng);

        for (uint32_t lane = 0; lane < LANES; lane++) {
            const uint32_t a = (uint32_t)operand(&rng, is_float ? FLOAT : BITS, 'w');
            const uint32_t b =
                lane % 4 == 0 ? a : (uint32_t)operand(&rng, is_float ? FLOAT : BITS, 'w');

            memcpy(memory->in + 16 * lane, &a, 4);
            memcpy(memory->in + 16 * lane + 4, &b, 4);
        }
        run_well(text, memory, LANES, NULL);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            uint32_t x[2], got[2];
            double a, b;
            bool yes, no;
            const bool c = (lane % 2 == 1) != negated;

            memcpy(x, memory->in + 16 * lane, 8);
            memcpy(got, memory->out + 16 * lane, 8);
            a = is_float ? (double)float_at(x[0]) : is_signed ? (double)S32(x[0]) : (double)x[0];
            b = is_float ? (double)float_at(x[1]) : is_signed ? (double)S32(x[1]) : (double)x[1];
            yes = compares(word, a, b);
            no = !yes;
            if (strcmp(boolean, ".and") == 0) {
                yes = yes && c;
                no = no && c;
            } else if (strcmp(boolean, ".or") == 0) {
                yes = yes || c;
                no = no || c;
            } else if (strcmp(boolean, ".xor") == 0) {
                yes = yes != c;
                no = no != c;
            }
            ck_assert_msg(got[0] == yes && got[1] == no, "setp.%s%s.%s %x %x", word, boolean, type,
                          x[0], x[1]);
        }
        free(memory);
    }
}

START_TEST(comparisons_as_c)
{
    static const char *const floats[] = { "eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                          "neu", "ltu", "leu", "gtu", "geu", "num", "nan" };
    static const char *const unsigneds[] = { "eq", "ne", "lt", "le", "gt",
                                             "ge", "lo", "ls", "hi", "hs" };
    static const char *const booleans[] = { "", ".and", ".or", ".xor" };

    for (size_t k = 0; k < G_N_ELEMENTS(booleans); k++) {
        for (size_t i = 0; i < G_N_ELEMENTS(floats); i++)
            check_comparison(floats[i], "f32", booleans[k], (i + k) % 2 == 1);
        for (size_t i = 0; i < G_N_ELEMENTS(unsigneds); i++)
            check_comparison(unsigneds[i], "u32", booleans[k], (i + k) % 2 == 1);
        for (size_t i = 0; i < 6; i++)
            check_comparison(unsigneds[i], "s32", booleans[k], (i + k) % 2 == 1);
    }
}
END_TEST

/* ---- carries ---- */

/* a + b, a - b and a * b of 128 bits from halves of 64 and of 32 bits, and the borrow of a
 * subtraction. */
START_TEST(carries_as_c)
{
    const char *text = KERNEL(
        "mul.wide.u32 %d3, %w0, 64;\nadd.s64 %d4, %d0, %d3;\nadd.s64 %d5, %d1, %d3;\n"
        "ld.global.v2.u64 {%d6, %d7}, [%d4];\nld.global.v2.u64 {%d8, %d9}, [%d4+16];\n"
        "add.cc.u64 %d10, %d6, %d8;\naddc.u64 %d11, %d7, %d9;\n"
        "st.global.v2.u64 [%d5], {%d10, %d11};\n"
        "sub.cc.u64 %d10, %d6, %d8;\nsubc.cc.u64 %d11, %d7, %d9;\naddc.u64 %d12, 0, 0;\n"
        "st.global.v2.u64 [%d5+16], {%d10, %d11};\nst.global.u64 [%d5+32], %d12;\n"
        "mov.b64 {%w1, %w2}, %d6;\nmov.b64 {%w3, %w4}, %d8;\n"
        "mul.lo.u32 %w5, %w1, %w3;\nmul.hi.u32 %w6, %w1, %w3;\n"
        "mad.lo.cc.u32 %w6, %w1, %w4, %w6;\nmadc.hi.u32 %w7, %w1, %w4, 0;\n"
        "mad.lo.cc.u32 %w6, %w2, %w3, %w6;\nmadc.hi.cc.u32 %w7, %w2, %w3, %w7;\n"
        "addc.u32 %w8, 0, 0;\nmad.lo.cc.u32 %w7, %w2, %w4, %w7;\n"
        "madc.hi.u32 %w8, %w2, %w4, %w8;\nst.global.v4.u32 [%d5+48], {%w5, %w6, %w7, %w8};\n");
    Rng rng = rng_new(31);

    for (uint32_t round = 0; round < 20; round++) {
        Memory *memory = memory_new(&rng);

        for (uint32_t lane = 0; lane < LANES; lane++) {
            uint64_t x[4], got[8], sum, less;

            for (uint32_t i = 0; i < 4; i++)
                x[i] = operand(&rng, BITS, 'd');
            memcpy(memory->in + 64 * lane, x, sizeof(x));
            if (lane < LANES - 1)
                continue;
            run_well(text, memory, LANES, NULL);
            for (uint32_t k = 0; k < LANES; k++) {
                memcpy(x, memory->in + 64 * k, sizeof(x));
                memcpy(got, memory->out + 64 * k, sizeof(got));
                sum = x[0] + x[2];
                less = x[0] - x[2];
                ck_assert(got[0] == sum && got[1] == x[1] + x[3] + (sum < x[0]));
                ck_assert(got[2] == less && got[3] == x[1] - x[3] - (x[0] < x[2]));
                /* 1 if the whole subtraction did not borrow */
                ck_assert(got[4] == (x[1] > x[3] || (x[1] == x[3] && x[0] >= x[2])));
                ck_assert(got[6] == x[0] * x[2] && got[7] == high_of(x[0], x[2]));
            }
        }
        free(memory);
    }
}
END_TEST

/* ---- approximations: within their bounds, inexact, and dependent on the seed ---- */

typedef struct {
    const char *instruction;
    double (*exact)(double);
    double ulps;     /* error bound relative to the result, or */
    double absolute; /* absolute */
    double low, high;
} Approximation;

static double
reciprocal(double x)
{
    return 1 / x;
}

static double
inverse_root(double x)
{
    return 1 / sqrt(x);
}

static const Approximation approximations[] = {
    { "ex2.approx.f32", exp2, 2, 0, -120, 120 },
    { "ex2.approx.ftz.f32", exp2, 2, 0, -10, 10 },
    { "rcp.approx.ftz.f32", reciprocal, 1, 0, 0.001, 1000 },
    { "sqrt.approx.f32", sqrt, 1, 0, 0.001, 1e6 },
    { "rsqrt.approx.f32", inverse_root, 1, 0, 0.001, 1e6 },
    { "lg2.approx.f32", log2, 0, 0x1p-22, 0.51, 1.99 },
    { "tanh.approx.f32", tanh, 0, 0x1p-11, -4, 4 },
    { "sin.approx.f32", sin, 0, 0x1p-20, -3, 3 },
    { "cos.approx.f32", cos, 0, 0x1p-20, -3, 3 },
};

START_TEST(approximations_within_bounds)
{
    for (size_t k = 0; k < G_N_ELEMENTS(approximations); k++) {
        const Approximation *approximation = &approximations[k];
        g_autofree char *text = made(KERNEL("mul.wide.u32 %d3, %w0, 4;\nadd.s64 %d4, %d0, %d3;\n"
                                            "add.s64 %d5, %d1, %d3;\nld.global.f32 %w1, [%d4];\n"
                                            "# %w2, %w1;\nst.global.f32 [%d5], %w2;\n"),
                                     approximation->instruction, NULL);
        Rng rng = rng_new(k);
        double worst = 0, sum = 0;
        uint32_t differ = 0;
        char error[256];

        for (uint64_t round = 0; round < 200; round++) {
            Memory *memory = memory_new(&rng);
            unsigned char first[sizeof(float) * LANES];
            float x[LANES], y[LANES];

            for (uint32_t lane = 0; lane < LANES; lane++)
                x[lane] = (float)(approximation->low +
                                  (approximation->high - approximation->low) * rng_unit(&rng));
            memcpy(memory->in, x, sizeof(x));
            ck_assert_msg(run_text(text, memory, LANES, round, NULL, error), "%s", error);
            memcpy(y, memory->out, sizeof(y));
            memcpy(first, memory->out, sizeof(first));
            ck_assert(run_text(text, memory, LANES, round + 1000, NULL, error));
            differ += memcmp(first, memory->out, sizeof(first)) != 0;
            for (uint32_t lane = 0; lane < LANES; lane++) {
                const double exact = approximation->exact((double)x[lane]);
                const double ulp = ldexp(1, ilogb(exact) - 23);
                const double off = ((double)y[lane] - exact) / (approximation->ulps != 0
                                                                    ? approximation->ulps * ulp
                                                                    : approximation->absolute);

                worst = fmax(worst, fabs(off));
                sum += off;
            }
            free(memory);
        }
        ck_assert_msg(worst <= 1.0, "%s: error is %.3f of its bound", approximation->instruction,
                      worst);
        ck_assert_msg(worst > 0.45, "%s: error is only %.3f of its bound",
                      approximation->instruction, worst);
        ck_assert_msg(fabs(sum) / (200 * LANES) < 0.05, "%s is biased", approximation->instruction);
        ck_assert_msg(differ > 150, "%s does not depend on the seed", approximation->instruction);
    }
}
END_TEST

/* ---- moves, calls, variables ---- */

/* Checks each thread's word of out. */
static void
check_words(const char *text, uint32_t threads,
            uint32_t (*due)(const Memory *memory, uint32_t thread))
{
    Rng rng = rng_new(5);
    Memory *memory = memory_new(&rng);

    run_well(text, memory, threads, NULL);
    for (uint32_t i = 0; i < threads; i++) {
        uint32_t got;

        memcpy(&got, memory->out + 4 * i, 4);
        ck_assert_msg(got == due(memory, i), "thread %u: %u, expected %u in\n%s", i, got,
                      due(memory, i), text);
    }
    free(memory);
}

#define OWN "mul.wide.u32 %d3, %w0, 4;\nadd.s64 %d4, %d0, %d3;\nadd.s64 %d5, %d1, %d3;\n"
#define STORE(register) "st.global.b32 [%d5], " register ";\n"

static uint32_t
in_word(const Memory *memory, uint32_t i)
{
    uint32_t x;

    memcpy(&x, memory->in + 4 * i, 4);
    return x;
}

static uint32_t
due_power(const Memory *memory, uint32_t i)
{
    (void)memory;
    return (uint32_t)of_float(ldexpf(1.0f, (int)i - 16));
}

/* CUDA's own functions of doubles rely on exact powers of two. */
START_TEST(powers_of_two_are_exact)
{
    check_words(KERNEL(OWN "add.s32 %w1, %w0, -16;\ncvt.rn.f32.s32 %w2, %w1;\n"
                           "ex2.approx.ftz.f32 %w3, %w2;\n" STORE("%w3")),
                LANES, due_power);
}
END_TEST

static uint32_t
due_packed(const Memory *memory, uint32_t i)
{
    const uint32_t x = in_word(memory, i);

    return x >> 16 | x << 16;
}

static uint32_t
due_called(const Memory *memory, uint32_t i)
{
    (void)memory;
    return (3 * i + 7) * 2 + (i % 2 == 1 ? 3 * i : 0);
}

static uint32_t
due_variables(const Memory *memory, uint32_t i)
{
    static const uint32_t numbers[] = { 11, 22, 33, 44 };

    (void)memory;
    return numbers[i % 4] + 5 * (i % 3) + numbers[2];
}

static uint32_t
due_local(const Memory *memory, uint32_t i)
{
    return in_word(memory, i) + i + 100;
}

static uint32_t
due_table(const Memory *memory, uint32_t i)
{
    (void)memory;
    return i % 3 == 0 ? 10 : i % 3 == 1 ? 20 : 30;
}

START_TEST(moves_calls_and_variables)
{
    check_words(KERNEL(OWN "ld.global.b32 %w1, [%d4];\nmov.b32 {%h1, %h2}, %w1;\n"
                           "mov.b32 %w2, {%h2, %h1};\n" STORE("%w2")),
                LANES, due_packed);
    check_words(HEAD
                ".func (.param .b32 r) twice(.param .b32 a)\n{\n.reg .b32 %r<4>;\n"
                ".reg .pred %p<2>;\n"
                "ld.param.b32 %r1, [a];\nsetp.eq.u32 %p1, %r1, 9999;\n@%p1 ret;\n"
                "shl.b32 %r2, %r1, 1;\nst.param.b32 [r], %r2;\nret;\n}\n" ENTRY REGISTERS START OWN
                "mul.lo.u32 %w1, %w0, 3;\nadd.u32 %w2, %w1, 7;\nmov.u32 %w9, 0;\n"
                "{\n.param .b32 p0;\n.param .b32 r0;\nst.param.b32 [p0], %w2;\n"
                "call.uni (r0), twice, (p0);\nld.param.b32 %w3, [r0];\n}\n"
                "and.b32 %w4, %w0, 1;\nsetp.eq.u32 %p1, %w4, 1;\n@%p1 mov.u32 %w9, %w1;\n"
                "add.u32 %w3, %w3, %w9;\n" STORE("%w3") "ret;\n}\n",
                LANES, due_called);
    check_words(HEAD ".global .align 4 .u32 numbers[4] = {11, 22, 33, 44};\n"
                     ".const .align 1 .b8 small[3] = {0, 5, 10};\n"
                     ".global .align 8 .u64 third = generic(numbers)+8;\n" ENTRY REGISTERS START OWN
                     "mov.u64 %d6, numbers;\nand.b32 %w1, %w0, 3;\nmul.wide.u32 %d7, %w1, 4;\n"
                     "add.s64 %d8, %d6, %d7;\nld.global.u32 %w2, [%d8];\n"
                     "rem.u32 %w3, %w0, 3;\ncvt.u64.u32 %d9, %w3;\nmov.u64 %d10, small;\n"
                     "add.s64 %d11, %d10, %d9;\nld.const.u8 %h1, [%d11];\ncvt.u32.u16 %w4, %h1;\n"
                     "ld.global.u64 %d12, [third];\nld.u32 %w5, [%d12];\n"
                     "add.u32 %w6, %w2, %w4;\nadd.u32 %w6, %w6, %w5;\n" STORE("%w6") "ret;\n}\n",
                LANES, due_variables);
    check_words(KERNEL(OWN ".local .align 8 .b8 depot[16];\nmov.u64 %d6, depot;\n"
                           "cvta.local.u64 %d7, %d6;\nld.global.b32 %w1, [%d4];\n"
                           "st.local.b32 [%d6+4], %w1;\nst.b32 [%d7+8], %w0;\n"
                           "ld.b32 %w2, [%d7+4];\nld.local.b32 %w3, [depot+8];\n"
                           "add.u32 %w4, %w2, %w3;\nadd.u32 %w4, %w4, 100;\n" STORE("%w4")),
                LANES, due_local);
    check_words(KERNEL(OWN
                       "rem.u32 %w1, %w0, 3;\ntable: .branchtargets a, b, c;\n"
                       "brx.idx %w1, table;\na: mov.u32 %w2, 10;\nbra.uni end;\n"
                       "b: mov.u32 %w2, 20;\nbra end;\nc: mov.u32 %w2, 30;\nend:\n" STORE("%w2")),
                LANES, due_table);
}
END_TEST

/* ---- divergence and reconvergence of lanes ---- */

static uint32_t
due_collatz(const Memory *memory, uint32_t i)
{
    uint32_t steps = 0;

    (void)memory;
    for (uint32_t x = i + 1; x != 1; steps++)
        x = x % 2 == 0 ? x / 2 : 3 * x + 1;
    return steps;
}

static uint32_t
due_bfly(const Memory *memory, uint32_t i)
{
    return in_word(memory, i ^ 5);
}

static uint32_t
due_up(const Memory *memory, uint32_t i)
{
    return in_word(memory, i < 3 ? i : i - 3) + (i >= 3);
}

static uint32_t
due_down(const Memory *memory, uint32_t i)
{
    return in_word(memory, i % 8 < 6 ? i + 2 : i) + (i % 8 < 6);
}

static uint32_t
due_idx(const Memory *memory, uint32_t i)
{
    return in_word(memory, (i & 16) + 11);
}

static uint32_t
due_vote(const Memory *memory, uint32_t i)
{
    uint32_t ballot = 0;

    (void)i;
    for (uint32_t k = 0; k < LANES; k++)
        ballot |= (in_word(memory, k) & 1) << k;
    return ballot;
}

static uint32_t
due_redux(const Memory *memory, uint32_t i)
{
    uint32_t sum = 0;

    (void)i;
    for (uint32_t k = 0; k < LANES; k++)
        sum += in_word(memory, k);
    return sum;
}

static uint32_t
due_halves(const Memory *memory, uint32_t i)
{
    return in_word(memory, i ^ 1);
}

START_TEST(lanes_apart_and_together)
{
    check_words(KERNEL(OWN "add.u32 %w1, %w0, 1;\nmov.u32 %w2, 0;\nagain:\n"
                           "setp.eq.u32 %p1, %w1, 1;\n@%p1 bra end;\nadd.u32 %w2, %w2, 1;\n"
                           "and.b32 %w3, %w1, 1;\nsetp.eq.u32 %p2, %w3, 0;\n@%p2 bra even;\n"
                           "mad.lo.u32 %w1, %w1, 3, 1;\nbra again;\neven:\nshr.u32 %w1, %w1, 1;\n"
                           "bra.uni again;\nend:\nbar.warp.sync -1;\n" STORE("%w2")),
                LANES, due_collatz);
    check_words(KERNEL(OWN "ld.global.b32 %w1, [%d4];\n"
                           "shfl.sync.bfly.b32 %w2, %w1, 5, 31, -1;\n" STORE("%w2")),
                LANES, due_bfly);
    check_words(KERNEL(OWN "ld.global.b32 %w1, [%d4];\n"
                           "shfl.sync.up.b32 %w2|%p1, %w1, 3, 0, -1;\n"
                           "selp.u32 %w3, 1, 0, %p1;\nadd.u32 %w2, %w2, %w3;\n" STORE("%w2")),
                LANES, due_up);
    check_words(KERNEL(OWN "ld.global.b32 %w1, [%d4];\n" /* segments of 8 */
                           "shfl.sync.down.b32 %w2|%p1, %w1, 2, 6175, -1;\n"
                           "selp.u32 %w3, 1, 0, %p1;\nadd.u32 %w2, %w2, %w3;\n" STORE("%w2")),
                LANES, due_down);
    check_words(KERNEL(OWN "ld.global.b32 %w1, [%d4];\n" /* segments of 16 */
                           "shfl.sync.idx.b32 %w2, %w1, 11, 4127, -1;\n" STORE("%w2")),
                LANES, due_idx);
    check_words(
        KERNEL(OWN "ld.global.b32 %w1, [%d4];\nand.b32 %w2, %w1, 1;\n"
                   "setp.ne.u32 %p1, %w2, 0;\nvote.sync.ballot.b32 %w3, %p1, -1;\n" STORE("%w3")),
        LANES, due_vote);
    check_words(
        KERNEL(OWN "ld.global.b32 %w1, [%d4];\nredux.sync.add.s32 %w2, %w1, -1;\n" STORE("%w2")),
        LANES, due_redux);
    /* Each half of the warp with its own mask, in two branches and in one instruction. */
    check_words(
        KERNEL(OWN
               "ld.global.b32 %w1, [%d4];\nsetp.lt.u32 %p1, %w0, 16;\n"
               "@%p1 bra low;\nshfl.sync.bfly.b32 %w2, %w1, 1, 31, 0xffff0000;\n"
               "bra end;\nlow:\nshfl.sync.bfly.b32 %w2, %w1, 1, 31, 0xffff;\nend:\n" STORE("%w2")),
        LANES, due_halves);
    check_words(KERNEL(OWN "ld.global.b32 %w1, [%d4];\nsetp.lt.u32 %p1, %w0, 16;\n"
                           "selp.b32 %w4, 0xffff, 0xffff0000, %p1;\n"
                           "shfl.sync.bfly.b32 %w2, %w1, 1, 31, %w4;\n" STORE("%w2")),
                LANES, due_halves);
    /* A shuffle waits for diverged lanes. */
    check_words(KERNEL(OWN "ld.global.b32 %w1, [%d4];\nsetp.lt.u32 %p1, %w0, 7;\n@%p1 bra late;\n"
                           "here:\nshfl.sync.bfly.b32 %w2, %w1, 5, 31, -1;\n" STORE(
                               "%w2") "ret;\nlate:\nadd.u32 %w9, %w0, 1;\nbra here;\n"),
                LANES, due_bfly);
    run_badly(KERNEL("setp.lt.u32 %p1, %w0, 7;\n@%p1 bra end;\n"
                     "shfl.sync.bfly.b32 %w2, %w0, 1, 31, -1;\nend:\nbar.warp.sync -1;\n"),
              LANES, "never come");
    run_badly(KERNEL("shfl.sync.bfly.b32 %w2, %w0, 1, 31, 1;\n"), LANES, "not in its own mask");
    run_badly(KERNEL("setp.lt.u32 %p1, %w0, 7;\n@!%p1 exit;\n"
                     "shfl.sync.idx.b32 %w2, %w0, 20, 31, -1;\n"),
              LANES, "takes no part");
    run_badly(KERNEL("again:\nbra again;\n"), LANES, "does not end");
    run_badly(KERNEL("trap;\n"), LANES, "trap");
}
END_TEST

/* ---- barriers and races in shared memory ---- */

#define SHARED                                                                                     \
    ".shared .align 16 .b8 s[2048];\nmov.u32 %w40, s;\nshl.b32 %w41, %w0, 2;\n"                    \
    "add.u32 %w42, %w40, %w41;\n"
/* Address of the word of the thread 32 away, and of the neighbouring lane. */
#define OTHER "xor.b32 %w43, %w41, 128;\nadd.u32 %w44, %w40, %w43;\n"
#define NEXT "xor.b32 %w43, %w41, 4;\nadd.u32 %w44, %w40, %w43;\n"

static uint32_t
due_other(const Memory *memory, uint32_t i)
{
    (void)memory;
    return i ^ 32;
}

static uint32_t
due_reduced(const Memory *memory, uint32_t i)
{
    (void)memory;
    (void)i;
    return 22 + 1000;
}

static uint32_t
due_nothing(const Memory *memory, uint32_t i)
{
    (void)memory;
    (void)i;
    return 0;
}

START_TEST(barriers_order_shared_memory)
{
    check_words(KERNEL(OWN SHARED OTHER "st.shared.u32 [%w42], %w0;\nbar.sync 0;\n"
                                        "ld.shared.u32 %w1, [%w44];\n" STORE("%w1")),
                128, due_other);
    check_words(KERNEL(OWN SHARED OTHER "st.shared.u32 [%w42], %w0;\nbarrier.sync 3;\n"
                                        "ld.shared.u32 %w1, [%w44];\n" STORE("%w1")),
                128, due_other);
    /* Pairs of warps at barriers of their own. */
    check_words(KERNEL(OWN SHARED OTHER "st.shared.u32 [%w42], %w0;\nshr.u32 %w2, %w0, 6;\n"
                                        "add.u32 %w2, %w2, 1;\nbar.sync %w2, 64;\n"
                                        "ld.shared.u32 %w1, [%w44];\n" STORE("%w1")),
                128, due_other);
    check_words(KERNEL(OWN "rem.u32 %w1, %w0, 3;\nsetp.eq.u32 %p1, %w1, 1;\n"
                           "bar.red.popc.u32 %w2, 0, %p1;\n"
                           "setp.lt.u32 %p2, %w0, 64;\nbar.red.and.pred %p3, 0, %p2;\n"
                           "setp.eq.u32 %p4, %w0, 63;\nbar.red.or.pred %p5, 0, %p4;\n"
                           "selp.u32 %w3, 1000, 0, %p3;\nadd.u32 %w2, %w2, %w3;\n"
                           "@!%p5 add.u32 %w2, %w2, 7;\nadd.u32 %w2, %w2, 1;\n" STORE("%w2")),
                64, due_reduced);
    /* bar.red: all but one is not "all", neither in that warp nor in the other; none is not
     * "any". */
    check_words(KERNEL(OWN "setp.ne.u32 %p2, %w0, 40;\nbar.red.and.pred %p3, 0, %p2;\n"
                           "setp.gt.u32 %p4, %w0, 63;\nbar.red.or.pred %p5, 0, %p4;\n"
                           "bar.red.popc.u32 %w4, 0, %p4;\n"
                           "selp.u32 %w2, 1, 0, %p3;\nselp.u32 %w3, 2, 0, %p5;\n"
                           "or.b32 %w2, %w2, %w3;\nadd.u32 %w2, %w2, %w4;\n" STORE("%w2")),
                64, due_nothing);
    run_well_always(KERNEL(SHARED NEXT "st.shared.u32 [%w42], %w0;\nbar.warp.sync -1;\n"
                                       "ld.shared.u32 %w1, [%w44];\n"),
                    128);
    /* One warp produces, the other consumes: bar.arrive and bar.sync, two rounds. */
    run_well_always(
        KERNEL(SHARED OTHER
               "mov.u32 %w5, 0;\nsetp.lt.u32 %p1, %w0, 32;\n@!%p1 bra taker;\nmaker:\n"
               "bar.sync 2, 64;\nst.shared.u32 [%w42], %w0;\nbar.arrive 1, 64;\n"
               "add.u32 %w5, %w5, 1;\nsetp.lt.u32 %p2, %w5, 4;\n@%p2 bra maker;\nbra end;\ntaker:\n"
               "bar.arrive 2, 64;\nagain:\nbar.sync 1, 64;\nld.shared.u32 %w1, [%w44];\n"
               "add.u32 %w5, %w5, 1;\nsetp.ge.u32 %p2, %w5, 4;\n@%p2 bra end;\n"
               "bar.arrive 2, 64;\nbra again;\nend:\n"),
        64);
    run_badly(KERNEL("setp.lt.u32 %p1, %w0, 32;\n@%p1 bra end;\nbar.sync 0;\nbar.sync 0;\nend:\n"
                     "@%p1 bar.sync 1;\n"),
              64, "never come");
    run_badly(KERNEL("and.b32 %w1, %w0, 1;\nsetp.eq.u32 %p1, %w1, 0;\n@%p1 bar.sync 0;\n"
                     "@!%p1 bar.sync 0;\n"),
              32, "never come");
    run_badly(KERNEL("mov.u32 %w1, 16;\nbar.sync %w1;\n"), 32, "barrier 16");
    run_badly(KERNEL("bar.sync 1, 40;\n"), 64, "barrier 1 of 40");
    run_badly(KERNEL("bar.sync 0, 96;\n"), 64, "barrier 0 of 96");
}
END_TEST

/* Shared memory is private to a block: accesses of one block neither order nor race with those
 * of the next, and leave nothing behind. Every other block writes the words of other warps. */
START_TEST(blocks_share_no_shared_memory)
{
    const uint32_t blocks = 6, threads = 64;
    const char *text =
        KERNEL(SHARED "mov.u32 %w1, %ctaid.x;\nand.b32 %w2, %w1, 1;\nshl.b32 %w2, %w2, 7;\n"
                      "xor.b32 %w3, %w41, %w2;\nadd.u32 %w3, %w40, %w3;\n"
                      "ld.shared.u32 %w4, [%w3];\nst.shared.u32 [%w3], %w0;\nbar.sync 0;\n"
                      "ld.shared.u32 %w5, [%w42];\nxor.b32 %w5, %w5, %w0;\n"
                      "mad.lo.u32 %w6, %w1, 64, %w0;\nmul.wide.u32 %d3, %w6, 8;\n"
                      "add.s64 %d5, %d1, %d3;\nst.global.v2.u32 [%d5], {%w4, %w5};\n");
    Rng rng = rng_new(6);
    Memory *memory = memory_new(&rng);
    char error[256];

    for (uint64_t seed = 1; seed <= 8; seed++) {
        const Launch launch = { blocks, threads, seed };

        ck_assert_msg(run_launch(text, memory, &launch, NULL, error), "%s", error);
        for (uint32_t i = 0; i < blocks * threads; i++) {
            uint32_t got[2];

            memcpy(got, memory->out + 8 * i, 8);
            ck_assert_uint_eq(got[0], UINT32_MAX);
            ck_assert_uint_eq(got[1], i / threads % 2 == 0 ? 0 : 32);
        }
    }
    free(memory);
}
END_TEST

START_TEST(races_are_found)
{
    /* Between warps: read after write, write after read, write after write, without a barrier. */
    run_badly(KERNEL(SHARED OTHER "st.shared.u32 [%w42], %w0;\nld.shared.u32 %w1, [%w44];\n"), 64,
              "race");
    run_badly(KERNEL(SHARED OTHER "ld.shared.u32 %w1, [%w44];\nst.shared.u32 [%w42], %w0;\n"), 64,
              "race");
    run_badly(KERNEL(SHARED "st.shared.u32 [s], 7;\n"), 64, "race");
    /* Between lanes of a warp: they run in lockstep here, which a device does not guarantee. */
    run_badly(KERNEL(SHARED NEXT "st.shared.u32 [%w42], %w0;\nld.shared.u32 %w1, [%w44];\n"), 32,
              "reads what was written by warp 0");
    run_badly(KERNEL(SHARED NEXT "ld.shared.u32 %w1, [%w44];\nst.shared.u32 [%w42], %w0;\n"), 32,
              "overwrites what was read by warp 0");
    run_badly(KERNEL(SHARED "ld.shared.u32 %w1, [s];\nsetp.eq.u32 %p1, %w0, 3;\n"
                            "@%p1 st.shared.u32 [s], 7;\n"),
              32, "overwrites what was read by");
    /* Only half of the warp is synchronised. */
    run_badly(KERNEL(SHARED "xor.b32 %w43, %w41, 64;\nadd.u32 %w44, %w40, %w43;\n"
                            "st.shared.u32 [%w42], %w0;\nsetp.lt.u32 %p1, %w0, 16;\n"
                            "selp.b32 %w4, 0xffff, 0xffff0000, %p1;\nbar.warp.sync %w4;\n"
                            "ld.shared.u32 %w1, [%w44];\n"),
              32, "race");
    run_well_always(KERNEL(SHARED NEXT "st.shared.u32 [%w42], %w0;\nsetp.lt.u32 %p1, %w0, 16;\n"
                                       "selp.b32 %w4, 0xffff, 0xffff0000, %p1;\n"
                                       "bar.warp.sync %w4;\nld.shared.u32 %w1, [%w44];\n"),
                    32);
    /* A barrier of other warps does not order these. */
    run_badly(KERNEL(SHARED OTHER
                     "st.shared.u32 [%w42], %w0;\nshr.u32 %w2, %w0, 6;\n"
                     "add.u32 %w2, %w2, 1;\nbar.sync %w2, 64;\nxor.b32 %w44, %w44, 256;\n"
                     "ld.shared.u32 %w1, [%w44];\n"),
              128, "race");
    /* Adjacent halves of a word do not conflict. */
    run_well_always(KERNEL(SHARED "shl.b32 %w5, %w0, 1;\nadd.u32 %w6, %w40, %w5;\n"
                                  "cvt.u16.u32 %h1, %w0;\nst.shared.u16 [%w6], %h1;\n"),
                    64);
    /* Atomics race with plain accesses but not with each other. */
    run_well_always(KERNEL(SHARED "atom.shared.add.u32 %w1, [s], 1;\n"), 64);
    run_badly(KERNEL(SHARED "atom.shared.add.u32 %w1, [s], 1;\nld.shared.u32 %w2, [s];\n"), 64,
              "race");
    /* Matrix instructions need all lanes of the warp. */
    run_badly(KERNEL(SHARED
                     "shl.b32 %w5, %w0, 4;\nadd.u32 %w6, %w40, %w5;\n"
                     "st.shared.v4.u32 [%w6], {%w0, %w0, %w0, %w0};\n"
                     "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%w1, %w2, %w3, %w4}, [%w6];\n"),
              32, "race");
    run_well_always(
        KERNEL(SHARED "shl.b32 %w5, %w0, 4;\nadd.u32 %w6, %w40, %w5;\n"
                      "st.shared.v4.u32 [%w6], {%w0, %w0, %w0, %w0};\nbar.warp.sync -1;\n"
                      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%w1, %w2, %w3, %w4}, [%w6];\n"),
        32);
    /* Two lanes write different values to one address. */
    run_badly(KERNEL("st.global.u32 [%d1], %w0;\n"), 32, "write different values");
    run_well_always(KERNEL("st.global.u32 [%d1], 5;\n"), 32);
}
END_TEST

/* ---- out of bounds ---- */

START_TEST(ends_of_memory_are_found)
{
    run_badly(KERNEL("ld.global.u32 %w1, [%d0+131072];\n"), 32, "reads");
    run_badly(KERNEL("ld.global.u32 %w1, [%d0+-4];\n"), 32, "reads");
    run_badly(KERNEL("st.global.u32 [%d0], %w0;\n"), 32, "writes");
    run_badly(KERNEL(OWN "st.global.u32 [%d5+65412], %w0;\n"), 32, "lane 31 writes");
    run_well_always(KERNEL(OWN "st.global.u32 [%d5+65408], %w0;\n"), 32);
    run_badly(KERNEL("ld.global.u32 %w1, [%d0+2];\n"), 32, "no multiple of 4");
    run_badly(KERNEL("ld.global.v4.u32 {%w1, %w2, %w3, %w4}, [%d0+8];\n"), 32, "no multiple of 16");
    run_badly(KERNEL("mov.u64 %d6, 0;\nld.global.u32 %w1, [%d6];\n"), 32, "reads");
    run_badly(KERNEL(SHARED "ld.shared.u32 %w1, [%w40+6144];\n"), 32, "beyond shared memory");
    run_well_always(KERNEL(SHARED "ld.shared.u32 %w1, [%w40+6140];\n"), 32);
    run_badly(KERNEL(SHARED "ld.shared.u16 %h1, [%w40+1];\n"), 32, "no multiple of 2");
    run_badly(KERNEL(SHARED "ld.shared.v2.u32 {%w1, %w2}, [%w42];\n"), 32, "no multiple of 8");
    run_badly(KERNEL(".local .align 4 .b8 l[16];\nst.local.u32 [l+16], %w0;\n"), 32,
              "local memory");
    run_badly(KERNEL("ld.param.u32 %w1, [in+16];\n"), 32, "parameters");
    run_badly(HEAD ".const .align 4 .u32 c[2] = {1, 2};\n" ENTRY REGISTERS START
                   "ld.const.u32 %w1, [c+8];\nret;\n}\n",
              32, "no constant");
    run_badly(HEAD ".const .align 4 .u32 c[2] = {1, 2};\n" ENTRY REGISTERS START
                   "mov.u64 %d2, c;\nst.u32 [%d2], 1;\nret;\n}\n",
              32, "writes");
    run_badly(KERNEL("cvta.to.shared.u64 %d2, %d0;\n"), 32, "no address of that space");
}
END_TEST

/* ---- asynchronous copies ---- */

#define COPY                                                                                       \
    "mul.wide.u32 %d3, %w0, 16;\nadd.s64 %d4, %d0, %d3;\nadd.s64 %d5, %d1, %d3;\n"                 \
    "shl.b32 %w5, %w0, 4;\nadd.u32 %w6, %w40, %w5;\n"                                              \
    "cp.async.cg.shared.global [%w6], [%d4], 16;\ncp.async.commit_group;\n"
#define TAKE                                                                                       \
    "ld.shared.v4.u32 {%w1, %w2, %w3, %w4}, [%w6];\n"                                              \
    "st.global.v4.u32 [%d5], {%w1, %w2, %w3, %w4};\n"

START_TEST(copies_land_late)
{
    Rng rng = rng_new(8);
    Memory *memory = memory_new(&rng);

    run_well(KERNEL(SHARED COPY "cp.async.wait_group 0;\n" TAKE), memory, 64, NULL);
    ck_assert(memcmp(memory->in, memory->out, 1024) == 0);
    memset(memory->out, 0, 1024);
    run_well(KERNEL(SHARED COPY "cp.async.wait_all;\n" TAKE), memory, 64, NULL);
    ck_assert(memcmp(memory->in, memory->out, 1024) == 0);
    /* A copy of 0 source bytes reads nothing and fills with zeros. */
    run_well(KERNEL(SHARED "shl.b32 %w5, %w0, 4;\nadd.u32 %w6, %w40, %w5;\nmov.u64 %d4, 0;\n"
                           "mul.wide.u32 %d3, %w0, 16;\nadd.s64 %d5, %d1, %d3;\nmov.u32 %w9, 0;\n"
                           "cp.async.cg.shared.global [%w6], [%d4], 16, %w9;\n"
                           "cp.async.wait_all;\n" TAKE),
             memory, 64, NULL);
    for (uint32_t i = 0; i < 1024; i++)
        ck_assert(memory->out[i] == 0);
    run_well(KERNEL(SHARED "shl.b32 %w5, %w0, 4;\nadd.u32 %w6, %w40, %w5;\n"
                           "mul.wide.u32 %d3, %w0, 16;\nadd.s64 %d5, %d1, %d3;\nmov.u32 %w9, 6;\n"
                           "add.s64 %d4, %d0, %d3;\n"
                           "cp.async.cg.shared.global [%w6], [%d4], 16, %w9;\n"
                           "cp.async.wait_all;\n" TAKE),
             memory, 64, NULL);
    for (uint32_t i = 0; i < 1024; i++)
        ck_assert(memory->out[i] == (i % 16 < 6 ? memory->in[i] : 0));
    free(memory);
    run_badly(KERNEL(SHARED COPY TAKE "cp.async.wait_all;\n"), 32, "cp.async is on its way");
    run_badly(KERNEL(SHARED COPY "cp.async.wait_group 1;\n" TAKE "cp.async.wait_all;\n"), 32,
              "cp.async is on its way");
    run_badly(KERNEL(SHARED COPY), 32, "ends with a cp.async on its way");
    /* Copied data is visible to the copying lane only, until a barrier. */
    run_badly(KERNEL(SHARED COPY "cp.async.wait_all;\nxor.b32 %w6, %w6, 16;\n" TAKE), 32, "race");
    run_badly(KERNEL(SHARED COPY "cp.async.wait_all;\nxor.b32 %w6, %w6, 512;\n" TAKE), 64, "race");
    run_well_always(
        KERNEL(SHARED COPY "cp.async.wait_all;\nbar.sync 0;\nxor.b32 %w6, %w6, 512;\n" TAKE), 64);
    /* Overwrites data that another warp still reads. */
    run_badly(KERNEL(SHARED "ld.shared.u32 %w30, [%w42];\n" COPY "cp.async.wait_all;\n"), 64,
              "race");
    run_badly(KERNEL(SHARED "mov.u64 %d4, 16;\ncp.async.cg.shared.global [%w40], [%d4], 16;\n"), 32,
              "reads");
    run_badly(KERNEL(SHARED "add.s64 %d4, %d0, 8;\ncp.async.cg.shared.global [%w40], [%d4], 16;\n"),
              32, "no multiple of 16");
    /* wait_group 1 leaves only the last group pending. */
    run_well_always(KERNEL(SHARED COPY "add.u32 %w7, %w6, 1024;\n"
                                       "cp.async.cg.shared.global [%w7], [%d4], 16;\n"
                                       "cp.async.commit_group;\ncp.async.wait_group 1;\n" TAKE
                                       "cp.async.wait_group 0;\n"),
                    32);
}
END_TEST

/* ---- matrices ---- */

/* 8 x 8 halves: the registers of ldmatrix for four matrices, against the layout of the manual. */
START_TEST(ldmatrix_by_the_manual)
{
    for (uint32_t transposed = 0; transposed < 2; transposed++) {
        g_autofree char *text = made(
            KERNEL(SHARED "mul.wide.u32 %d3, %w0, 16;\nadd.s64 %d4, %d0, %d3;\n"
                          "add.s64 %d5, %d1, %d3;\nshl.b32 %w5, %w0, 4;\n"
                          "add.u32 %w6, %w40, %w5;\n"
                          "ld.global.v4.u32 {%w1, %w2, %w3, %w4}, [%d4];\n"
                          "st.shared.v4.u32 [%w6], {%w1, %w2, %w3, %w4};\nbar.sync 0;\n"
                          "ldmatrix.sync.aligned.m8n8.x4#.shared.b16 {%w1, %w2, %w3, %w4}, [%w6];\n"
                          "st.global.v4.u32 [%d5], {%w1, %w2, %w3, %w4};\n"),
            transposed ? ".trans" : "", NULL);
        Rng rng = rng_new(9);
        Memory *memory = memory_new(&rng);

        run_well(text, memory, 32, NULL);
        for (uint32_t lane = 0; lane < 32; lane++)
            for (uint32_t k = 0; k < 8; k++) {
                const uint32_t matrix = k / 2, row = lane / 4, column = lane % 4 * 2 + k % 2;
                const uint32_t at = transposed ? column * 8 + row : row * 8 + column;
                uint16_t due, got;

                memcpy(&due, memory->in + 128 * matrix + 2 * at, 2);
                memcpy(&got, memory->out + 16 * lane + 2 * k, 2);
                ck_assert_msg(got == due, "lane %u element %u", lane, k);
            }
        free(memory);
    }
}
END_TEST

typedef struct {
    const char *words;
    uint32_t depth, a, b; /* number of registers of a and b */
    char type;            /* b: bf16, h: f16, t: tf32 */
} Product;

static const Product products[] = {
    { "m16n8k16.row.col.f32.bf16.bf16.f32", 16, 4, 2, 'b' },
    { "m16n8k8.row.col.f32.bf16.bf16.f32", 8, 2, 1, 'b' },
    { "m16n8k16.row.col.f32.f16.f16.f32", 16, 4, 2, 'h' },
    { "m16n8k8.row.col.f32.f16.f16.f32", 8, 2, 1, 'h' },
    { "m16n8k8.row.col.f32.tf32.tf32.f32", 8, 4, 2, 't' },
    { "m16n8k4.row.col.f32.tf32.tf32.f32", 4, 2, 1, 't' },
};

/* Words of a lane in memory: a at 0, b at 4, c at 8. */
static char *
product_text(const Product *product)
{
    GString *text = g_string_new(HEAD ENTRY REGISTERS START
                                 "mul.wide.u32 %d3, %w0, 64;\nadd.s64 %d4, %d0, %d3;\n"
                                 "add.s64 %d5, %d1, %d3;\n"
                                 "ld.global.v4.b32 {%w1, %w2, %w3, %w4}, [%d4];\n"
                                 "ld.global.v4.b32 {%w5, %w6, %w7, %w8}, [%d4+16];\n"
                                 "ld.global.v4.b32 {%w9, %w10, %w11, %w12}, [%d4+32];\n");

    g_string_append_printf(text, "mma.sync.aligned.%s {%%w13, %%w14, %%w15, %%w16}, {",
                           product->words);
    for (uint32_t i = 0; i < product->a; i++)
        g_string_append_printf(text, "%s%%w%u", i == 0 ? "" : ", ", 1 + i);
    g_string_append(text, "}, {");
    for (uint32_t i = 0; i < product->b; i++)
        g_string_append_printf(text, "%s%%w%u", i == 0 ? "" : ", ", 5 + i);
    g_string_append(text, "}, {%w9, %w10, %w11, %w12};\n"
                          "st.global.v4.b32 [%d5], {%w13, %w14, %w15, %w16};\nret;\n}\n");
    return g_string_free(text, FALSE);
}

/* Layout of the manual: lane, register and half of a[row][column]. */
static void
place_of_a(const Product *product, uint32_t row, uint32_t column, uint32_t *lane, uint32_t *part)
{
    const uint32_t group = row % 8, below = row / 8;

    if (product->type == 't') { /* tf32: a0 (g, t) a1 (g + 8, t) a2 (g, t + 4) a3 (g + 8, t + 4) */
        *lane = 4 * group + column % 4;
        *part = 2 * (below + 2 * (column / 4));
    } else { /* two neighbours per register: top left, bottom left, top right, bottom right */
        *lane = 4 * group + column % 8 / 2;
        *part = 2 * (below + 2 * (column / 8)) + column % 2;
    }
}

static void
place_of_b(const Product *product, uint32_t row, uint32_t column, uint32_t *lane, uint32_t *part)
{
    if (product->type == 't') {
        *lane = 4 * column + row % 4;
        *part = 2 * (row / 4);
    } else {
        *lane = 4 * column + row % 8 / 2;
        *part = 2 * (row / 8) + row % 2;
    }
}

static double
put_element(Memory *memory, const Product *product, uint32_t lane, uint32_t word, uint32_t part,
            double x)
{
    uint64_t bits;

    if (product->type == 't') {
        const float f = (float)x;

        bits = of_float(f) & 0xffffe000;
        memcpy(memory->in + 64 * lane + 4 * word + 2 * part, &bits, 4);
        return (double)float_at(bits);
    }
    bits = product->type == 'b' ? of_bhalf(x) : of_half(x);
    memcpy(memory->in + 64 * lane + 4 * word + 2 * part, &bits, 2);
    return product->type == 'b' ? bhalf_at(bits) : half_at(bits);
}

/* Operands of a product c + a b. */
typedef struct {
    double a[16][16], b[16][8], c[16][8];
} Factors;

static unsigned char *
place_of_sum(unsigned char *memory, uint32_t i, uint32_t j)
{
    return memory + 64 * (4 * (i % 8) + j / 2) + 4 * (i / 8 * 2 + j % 2);
}

static void
draw_factors(const Product *product, Rng *rng, Memory *memory, Factors *f)
{
    uint32_t lane, part;

    for (uint32_t i = 0; i < 16; i++)
        for (uint32_t j = 0; j < product->depth; j++) {
            place_of_a(product, i, j, &lane, &part);
            f->a[i][j] = put_element(memory, product, lane, 0, part, 2 * rng_unit(rng) - 1);
        }
    for (uint32_t i = 0; i < product->depth; i++)
        for (uint32_t j = 0; j < 8; j++) {
            place_of_b(product, i, j, &lane, &part);
            f->b[i][j] = put_element(memory, product, lane, 4, part, 2 * rng_unit(rng) - 1);
        }
    for (uint32_t i = 0; i < 16; i++)
        for (uint32_t j = 0; j < 8; j++) {
            const float x = (float)(2 * rng_unit(rng) - 1);

            f->c[i][j] = (double)x;
            memcpy(place_of_sum(memory->in + 32, i, j), &x, sizeof(x));
        }
}

static void
check_sum(const Product *product, const Factors *f, Memory *memory, uint32_t i, uint32_t j)
{
    double due = f->c[i][j], size = fabs(f->c[i][j]);
    float got;

    for (uint32_t n = 0; n < product->depth; n++) {
        due += f->a[i][n] * f->b[n][j];
        size += fabs(f->a[i][n] * f->b[n][j]);
    }
    memcpy(&got, place_of_sum(memory->out, i, j), sizeof(got));
    ck_assert_msg(fabs((double)got - due) <= size * 17 * 0x1p-24, "%s row %u column %u",
                  product->words, i, j);
}

START_TEST(mma_against_fp64)
{
    for (size_t k = 0; k < G_N_ELEMENTS(products); k++) {
        const Product *product = &products[k];
        g_autofree char *text = product_text(product);
        Rng rng = rng_new(k);
        uint32_t differ = 0;

        for (uint32_t round = 0; round < 30; round++) {
            Memory *memory = memory_new(&rng);
            unsigned char before[2048];
            char error[256];
            ptx_counts counts = { 0 };
            Factors factors;

            draw_factors(product, &rng, memory, &factors);
            run_well(text, memory, 32, &counts);
            ck_assert_uint_eq(counts.mma, 1);
            for (uint32_t i = 0; i < 16; i++)
                for (uint32_t j = 0; j < 8; j++)
                    check_sum(product, &factors, memory, i, j);
            memcpy(before, memory->out, sizeof(before));
            ck_assert(run_text(text, memory, 32, 77 + round, NULL, error));
            differ += memcmp(before, memory->out, sizeof(before)) != 0;
            free(memory);
        }
        ck_assert_msg(differ > 10, "%s: the order of sums does not depend on the seed",
                      product->words);
    }
}
END_TEST

/*
 * Layout of fragments as published by CUTLASS for the same instructions
 * (include/cute/atom/mma_traits_sm80.hpp). Strides in a column-major matrix of: the lowest two bits
 * of the lane, its other bits, and each bit of the element's number within the lane. CUTLASS
 * transposes b. This is a second source beside the manual, from which place_of_a() and the like are
 * written.
 */
typedef struct {
    uint32_t lane, group, bits[3];
} Strides;

static const struct {
    Strides a, b;
} cutlass[] = {
    { { 32, 1, { 16, 8, 128 } }, { 16, 1, { 8, 64 } } }, /* 16-bit types, depth 16 */
    { { 32, 1, { 16, 8 } }, { 16, 1, { 8 } } },
    { { 32, 1, { 16, 8, 128 } }, { 16, 1, { 8, 64 } } },
    { { 32, 1, { 16, 8 } }, { 16, 1, { 8 } } },
    { { 16, 1, { 8, 64 } }, { 8, 1, { 32 } } }, /* tf32 */
    { { 16, 1, { 8 } }, { 8, 1, { 0 } } },
};
static const Strides cutlass_sums = { 32, 1, { 16, 8 } };

static uint32_t
place_in(const Strides *s, uint32_t lane, uint32_t element)
{
    uint32_t place = lane % 4 * s->lane + lane / 4 * s->group;

    for (uint32_t bit = 0; bit < 3; bit++)
        place += (element >> bit & 1) * s->bits[bit];
    return place;
}

/* Integers, whose products and sums are exact in any order, in every element of a factor. */
static void
put_fragment(const Product *product, const Strides *s, uint32_t word, Rng *rng, Memory *memory,
             int32_t *matrix)
{
    const uint32_t registers = word == 0 ? product->a : product->b;
    const uint32_t elements = product->type == 't' ? registers : 2 * registers;

    for (uint32_t lane = 0; lane < LANES; lane++)
        for (uint32_t i = 0; i < elements; i++) {
            const int32_t x = (int32_t)(rng_next(rng) % 17) - 8;

            matrix[place_in(s, lane, i)] = x;
            (void)put_element(memory, product, lane, word, product->type == 't' ? 2 * i : i, x);
        }
}

START_TEST(mma_fragments_as_cutlass_has_them)
{
    for (size_t k = 0; k < G_N_ELEMENTS(products); k++) {
        const Product *product = &products[k];
        g_autofree char *text = product_text(product);
        int32_t a[16 * 16], b[16 * 8], c[16 * 8];
        Rng rng = rng_new(k);
        Memory *memory = memory_new(&rng);

        put_fragment(product, &cutlass[k].a, 0, &rng, memory, a);
        put_fragment(product, &cutlass[k].b, 4, &rng, memory, b);
        for (uint32_t lane = 0; lane < LANES; lane++)
            for (uint32_t i = 0; i < 4; i++) {
                const float x = (float)(rng_next(&rng) % 1000);

                c[place_in(&cutlass_sums, lane, i)] = (int32_t)x;
                memcpy(memory->in + 64 * lane + 32 + 4 * i, &x, 4);
            }
        run_well(text, memory, LANES, NULL);
        for (uint32_t lane = 0; lane < LANES; lane++)
            for (uint32_t i = 0; i < 4; i++) {
                const uint32_t place = place_in(&cutlass_sums, lane, i);
                int32_t due = c[place];
                float got;

                for (uint32_t n = 0; n < product->depth; n++)
                    due += a[place % 16 + 16 * n] * b[place / 16 + 8 * n];
                memcpy(&got, memory->out + 64 * lane + 4 * i, 4);
                ck_assert_msg(got == (float)due, "%s lane %u element %u: %g, expected %d",
                              product->words, lane, i, (double)got, due);
            }
        free(memory);
    }
}
END_TEST

/* ---- atomics ---- */

START_TEST(atomics_add_up)
{
    Rng rng = rng_new(4);
    Memory *memory = memory_new(&rng);
    uint32_t words[16] = { 0 };
    double sum = 0;
    float f;

    memset(memory->out, 0, 256);
    run_well(KERNEL("atom.global.add.u32 %w1, [%d1], %w0;\nred.global.max.u32 [%d1+4], %w0;\n"
                    "red.global.or.b32 [%d1+8], %w0;\natom.global.inc.u32 %w2, [%d1+12], 6;\n"
                    "mov.f32 %w3, 0f3DCCCCCD;\nred.global.add.f32 [%d1+16], %w3;\n"
                    "mov.f64 %d6, 0d3FB999999999999A;\natom.global.add.f64 %d7, [%d1+24], %d6;\n"
                    "again:\nld.global.u32 %w4, [%d1+32];\nadd.u32 %w5, %w4, 3;\n"
                    "atom.global.cas.b32 %w6, [%d1+32], %w4, %w5;\nsetp.ne.u32 %p1, %w6, %w4;\n"
                    "@%p1 bra again;\nneg.s32 %w7, %w0;\nred.global.min.s32 [%d1+36], %w7;\n"),
             memory, 64, NULL);
    memcpy(words, memory->out, sizeof(words));
    memcpy(&f, &words[4], 4);
    memcpy(&sum, &words[6], 8);
    ck_assert_uint_eq(words[0], 63 * 64 / 2);
    ck_assert_uint_eq(words[1], 63);
    ck_assert_uint_eq(words[2], 63);
    ck_assert_uint_eq(words[3], 64 % 7);
    ck_assert(fabsf(f - 6.4f) < 1e-5f);
    ck_assert(fabs(sum - 6.4) < 1e-12);
    ck_assert_uint_eq(words[8], 3 * 64);
    ck_assert_int_eq((int32_t)words[9], -63);
    free(memory);
}
END_TEST

/* ---- counters ---- */

static ptx_counts
counts_of(const char *text)
{
    Rng rng = rng_new(4);
    Memory *memory = memory_new(&rng);
    ptx_counts counts = { 0 };

    run_well(text, memory, 32, &counts);
    free(memory);
    return counts;
}

/* Words of 4 bytes at a stride of @stride bytes; expectations by hand for 32 banks of 4 bytes. */
static void
check_waves(const char *access, uint32_t stride, uint64_t waves, uint64_t least)
{
    g_autofree char *number = g_strdup_printf("%u", stride);
    g_autofree char *text =
        made(KERNEL(SHARED "mul.lo.u32 %w5, %w0, #;\nadd.u32 %w6, %w40, %w5;\n#\n"), number, access,
             NULL);
    const ptx_counts counts = counts_of(text);

    ck_assert_msg(counts.shared_requests == 1 && counts.shared_waves == waves &&
                      counts.shared_waves_least == least,
                  "%s at %u: %u waves, least %u", access, stride, (unsigned)counts.shared_waves,
                  (unsigned)counts.shared_waves_least);
}

static void
check_sectors(const char *access, uint32_t stride, uint64_t sectors, uint64_t least)
{
    g_autofree char *number = g_strdup_printf("%u", stride);
    g_autofree char *text =
        made(KERNEL("mul.lo.u32 %w5, %w0, #;\ncvt.u64.u32 %d3, %w5;\nadd.s64 %d4, %d0, %d3;\n#\n"),
             number, access, NULL);
    const ptx_counts counts = counts_of(text);

    ck_assert_msg(counts.global_requests == 1 && counts.global_sectors == sectors &&
                      counts.global_sectors_least == least,
                  "%s at %u: %u sectors, least %u", access, stride, (unsigned)counts.global_sectors,
                  (unsigned)counts.global_sectors_least);
}

START_TEST(waves_and_sectors_by_hand)
{
    check_waves("ld.shared.u32 %w1, [%w6];", 4, 1, 1);
    check_waves("ld.shared.u32 %w1, [%w6];", 0, 1, 1);  /* all lanes read one word */
    check_waves("ld.shared.u32 %w1, [%w6];", 8, 2, 1);  /* even banks only */
    check_waves("ld.shared.u32 %w1, [%w6];", 12, 1, 1); /* odd strides reach all banks */
    check_waves("ld.shared.u32 %w1, [%w6];", 64, 16, 1);
    check_waves("ld.shared.u16 %h1, [%w6];", 2, 1, 1); /* two lanes per word */
    check_waves("ld.shared.v2.u32 {%w1, %w2}, [%w6];", 8, 2, 2);
    check_waves("ld.shared.v2.u32 {%w1, %w2}, [%w6];", 16, 4, 2);
    check_waves("ld.shared.v4.u32 {%w1, %w2, %w3, %w4}, [%w6];", 16, 4, 4);
    check_waves("ld.shared.v4.u32 {%w1, %w2, %w3, %w4}, [%w6];", 32, 8, 4);
    check_waves("ld.shared.v4.u32 {%w1, %w2, %w3, %w4}, [%w6];", 128, 32, 4);
    check_waves("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%w1, %w2, %w3, %w4}, [%w6];", 128, 32,
                4);
    check_waves("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%w1, %w2, %w3, %w4}, [%w6];", 144, 4, 4);
    check_sectors("ld.global.u32 %w1, [%d4];", 4, 4, 4);
    check_sectors("ld.global.u32 %w1, [%d4];", 0, 1, 1);
    check_sectors("ld.global.u32 %w1, [%d4+4];", 4, 5, 4); /* unaligned: one sector more */
    check_sectors("ld.global.u32 %w1, [%d4];", 8, 8, 4);
    check_sectors("ld.global.u32 %w1, [%d4];", 32, 32, 4);
    check_sectors("ld.global.v4.u32 {%w1, %w2, %w3, %w4}, [%d4];", 16, 16, 16);
    ck_assert_uint_eq(counts_of(KERNEL("")).instructions, 6);
    /* An instruction whose guard is false counts; diverged lanes count twice. */
    ck_assert_uint_eq(
        counts_of(KERNEL("setp.lt.u32 %p1, %w0, 8;\n@%p1 bra a;\nadd.u32 %w1, %w0, 1;\n"
                         "a:\n"))
            .instructions,
        6 + 3);
    ck_assert_uint_eq(
        counts_of(KERNEL("setp.gt.u32 %p1, %w0, 64;\n@%p1 add.u32 %w1, %w0, 1;\n")).instructions,
        6 + 2);
}
END_TEST

/* ---- rejected programs ---- */

static void
refuse(const char *text, const char *reason)
{
    char error[256];
    ptx_module *module = ptx_module_new(text, strlen(text), error);

    ck_assert_msg(module == NULL, "accepted:\n%s", text);
    ck_assert_msg(strstr(error, reason) != NULL, "\"%s\" is not in \"%s\"", reason, error);
}

START_TEST(what_is_unknown_is_refused)
{
    refuse(KERNEL("frobnicate.u32 %w1, %w2;\n"), "frobnicate");
    refuse(KERNEL("add.wobbly.u32 %w1, %w2, %w3;\n"), "wobbly");
    refuse(KERNEL("add.u32.ftz %w1, %w2, %w3;\n"), "add");
    refuse(KERNEL("add.ftz.u32 %w1, %w2, %w3;\n"), "add");
    refuse(KERNEL("ld.global.oddly.u32 %w1, [%d0];\n"), "oddly");
    refuse(KERNEL("cvt.f32.f64 %w1, %d2;\n"), "conversion");
    refuse(KERNEL("cvt.rzi.f32.f64 %w1, %d2;\n"), "conversion");
    refuse(KERNEL("setp.hi.s32 %p1, %w1, %w2;\n"), "setp");
    refuse(KERNEL("setp.ltu.u32 %p1, %w1, %w2;\n"), "setp");
    refuse(KERNEL("setp.lt.and.u32 %p1, %w1, %w2;\n"), "operands");
    refuse(
        KERNEL("mma.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 {%w1}, {%w2}, {%w3}, {%w4};\n"),
        "mma");
    refuse(KERNEL("wgmma.fence.sync.aligned;\n"), "wgmma");
    refuse(KERNEL("add.u32 %w1, %w2;\n"), "add");
    refuse(KERNEL("add.u32 %w1, %w2, %w3, %w4;\n"), "add");
    refuse(KERNEL("add.u32 %w1, %d2, %w3;\n"), "64 bits where 32");
    refuse(KERNEL("add.u32 %w1, %w999, %w3;\n"), "%w999");
    refuse(KERNEL("add.u32 %w1, %nothing, %w3;\n"), "%nothing");
    refuse(KERNEL("add.f32 %w1, %w2, 7;\n"), "integer literal");
    refuse(KERNEL("ld.shared.u32 %w1, [in];\n"), "another space");
    refuse(KERNEL("bra nowhere;\n"), "nowhere");
    refuse(KERNEL("call.uni nobody;\n"), "nobody");
    refuse(KERNEL("@%w1 ret;\n"), "predicate");
    refuse(KERNEL("mov.u32 %w1, %envreg3;\n"), "%envreg3");
    refuse(KERNEL(".reg .b32 %many<99999999>;\n"), "registers");
    refuse(KERNEL(".shared .align 4 .b8 much[999999];\n"), "shared memory");
    refuse(KERNEL(".local .align 4 .b8 much[999999];\n"), "local memory");
    refuse(KERNEL("{ .reg .b32 %inner; }\nmov.u32 %w1, %inner;\n"), "%inner");
    refuse("", "not PTX");
    refuse("hello", "unknown directive");
    refuse(HEAD ".func loop()\n{\ncall.uni loop;\nret;\n}\n" ENTRY "call.uni loop;\nret;\n}\n",
           "calls itself");
    refuse(HEAD ".extern .global .u32 elsewhere;\n", "another module");
    refuse(HEAD ".global .u32 x[2] = {1, 2, 3};\n", "more initial values");
}
END_TEST

#define WHOLE                                                                                      \
    HEAD                                                                                           \
        ".global .align 4 .u32 numbers[4] = {11, 22, 33, 44};\n"                                   \
        ".extern .shared .align 16 .b8 more[];\n"                                                  \
        ".func (.param .b32 r) twice(.param .b32 a)\n{\n.reg .b32 %r<4>;\nld.param.b32 %r1, "      \
        "[a];\n"                                                                                   \
        "shl.b32 %r2, %r1, 1;\nst.param.b32 [r], %r2;\nret;\n}\n" ENTRY REGISTERS START COPY_TEXT  \
        "add.f32 %w9, %w1, 0f3F800000;\nsetp.lt.and.f32 %p1|%p2, %w1, %w9, %p3;\n"                 \
        "@!%p1 bra $end;\nmov.b64 %d9, {%w1, %w2};\nshfl.sync.bfly.b32 %w2|%p4, %w1, 1, 31, -1;\n" \
        "{\n.param .b32 p0;\n.param .b32 r0;\nst.param.b32 [p0], %w2;\n"                           \
        "call.uni (r0), twice, (p0);\nld.param.b32 %w3, [r0];\n}\n$end:\nbar.sync 0;\n"            \
        "mov.u32 %w7, more;\nst.shared.u32 [%w7], 3;\nret;\n}\n"
#define COPY_TEXT SHARED COPY "cp.async.wait_all;\n"

/* A truncated or corrupted program does no harm; it may even run. */
START_TEST(broken_texts_do_no_harm)
{
    const size_t length = strlen(WHOLE);
    static const char letters[] = "0123456789%.,;:[]{}()<>@!|+-_abcdefghilmnoprstuvwxyz \n\"/*$";
    Rng rng = rng_new(12);
    Memory *memory = memory_new(&rng);
    uint32_t taken = 0;
    char error[256];

    for (size_t cut_at = 0; cut_at < length; cut_at++) {
        /* In a buffer of exactly that length, so that a sanitizer detects reads beyond it. */
        g_autofree char *text = g_memdup2(WHOLE, cut_at);
        ptx_module *module = ptx_module_new(text, cut_at, error);

        ck_assert(module != NULL || error[0] != 0);
        ptx_module_free(module);
    }
    for (uint32_t round = 0; round < 4000; round++) {
        g_autofree char *text = g_strndup(WHOLE, length);
        const uint32_t changes = 1 + (uint32_t)(rng_next(&rng) % 3);
        void *in = memory->in, *out = memory->out, *args[8] = { &in, &out };
        ptx_module *module;

        for (uint32_t i = 0; i < changes; i++)
            text[rng_next(&rng) % length] = letters[rng_next(&rng) % (sizeof(letters) - 1)];
        module = ptx_module_new(text, length, error);
        if (module != NULL && ptx_find(module, "k") != NULL &&
            ptx_params_count(ptx_find(module, "k")) == 2 &&
            ptx_param_bytes(ptx_find(module, "k"), 0) == 8 &&
            ptx_param_bytes(ptx_find(module, "k"), 1) == 8) {
            const ptx_memory access = { memory, touch };
            const ptx_launch launch = { .grid = { 1, 1, 1 },
                                        .block = { 64, 1, 1 },
                                        .shared_bytes = 64,
                                        .args = args,
                                        .seed = round,
                                        .instructions_max = 10000 };

            taken++;
            (void)ptx_run(ptx_find(module, "k"), &launch, &access, NULL, error);
        }
        ptx_module_free(module);
    }
    ck_assert_uint_gt(taken, 50);
    ck_assert_uint_lt(taken, 2000);
    free(memory);
}
END_TEST

/* ---- attributes of kernels, and invalid launches ---- */

START_TEST(says_what_a_kernel_needs)
{
    const char *text =
        HEAD ".global .align 8 .b8 g[24];\n.entry first(.param .align 8 .b8 p[20], .param .u16 q,\n"
             ".param .u64 .ptr .global .align 16 r)\n.maxntid 96, 2, 1\n.minnctapersm 2\n{\n"
             ".shared .align 16 .b8 s[100];\n.shared .align 8 .b8 t[4];\n"
             ".local .align 8 .b8 l[24];\n.reg .b32 %r<2>;\nmov.u32 %r1, t;\nret;\n}\n"
             ".visible .entry second()\n{\nret;\n}\n";
    ptx_module *module = module_of(text);
    const ptx_kernel *kernel = ptx_find(module, "first");
    ptx_launch launch = { .grid = { 1, 1, 1 }, .block = { 256, 1, 1 } };
    size_t bytes = 0;
    char error[256];

    ck_assert_uint_eq(ptx_version(module), 90);
    ck_assert_str_eq(ptx_target(module), "sm_90");
    ck_assert_uint_eq(ptx_kernels_count(module), 2);
    ck_assert(ptx_kernel_at(module, 0) == kernel);
    ck_assert_str_eq(ptx_kernel_name(ptx_kernel_at(module, 1)), "second");
    ck_assert(ptx_kernel_at(module, 2) == NULL && ptx_find(module, "third") == NULL);
    ck_assert_uint_eq(ptx_kernel_threads_max(kernel), 192);
    ck_assert_uint_eq(ptx_params_count(kernel), 3);
    ck_assert_uint_eq(ptx_param_offset(kernel, 1), 20);
    ck_assert_uint_eq(ptx_param_offset(kernel, 2), 24);
    ck_assert_uint_eq(ptx_param_bytes(kernel, 0), 20);
    ck_assert_uint_eq(ptx_param_bytes(kernel, 1), 2);
    ck_assert_uint_eq(ptx_kernel_local_bytes(kernel), 32);
    ck_assert_uint_ge(ptx_kernel_shared_bytes(kernel), 4);
    ck_assert(ptx_variable(module, "g", &bytes) != NULL && bytes == 24);
    ck_assert(ptx_variable(module, "h", &bytes) == NULL);
    ck_assert(!ptx_run(kernel, &launch, NULL, NULL, error) && strstr(error, "at most 192") != NULL);
    kernel = ptx_find(module, "second");
    ck_assert(ptx_run(kernel, &launch, NULL, NULL, error));
    launch.block[0] = 1025;
    ck_assert(!ptx_run(kernel, &launch, NULL, NULL, error));
    launch.block[0] = 32;
    launch.grid[1] = 0;
    ck_assert(!ptx_run(kernel, &launch, NULL, NULL, error));
    launch.grid[1] = 1;
    launch.shared_bytes = 1 << 20;
    ck_assert(!ptx_run(kernel, &launch, NULL, NULL, error));
    ptx_module_free(module);
}
END_TEST

LH_TEST_MAIN("ptx", integers_as_c, floats_as_c, sums_of_products_as_ptxas, conversions_as_c,
             comparisons_as_c, carries_as_c, approximations_within_bounds, powers_of_two_are_exact,
             moves_calls_and_variables, lanes_apart_and_together, barriers_order_shared_memory,
             blocks_share_no_shared_memory, races_are_found, ends_of_memory_are_found,
             copies_land_late, ldmatrix_by_the_manual, mma_against_fp64,
             mma_fragments_as_cutlass_has_them, atomics_add_up, waves_and_sectors_by_hand,
             what_is_unknown_is_refused, broken_texts_do_no_harm, says_what_a_kernel_needs)
