/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA kernels: every row of lh_cuda_kernels against the CPU reference in fp64, on the shapes of
 * the CPU test and on shapes around tile sizes. Built twice: on the stand-in, which interprets the
 * PTX in the objects and counts its work (STANDIN), and on CUDA for machines with a GPU; without a
 * GPU that program exits with 77.
 */
#include "kernel_compare.h"
#include "kernel_shapes.h"
#include "kernels/cuda/attention/mask.h"
#include "kernels/cuda/attention/rows_of_tensors.h"
#include "kernels/cuda/rows/elementwise.h"
#include "kernels/cuda/table.h"
#include "kernels/layer.h"
#include "reference/tolerance.h"
#include "run_tests.h"
#include "share.h"
#include "skip.h"

#include <cuda_runtime_api.h>
#ifdef STANDIN
#include "standin.h"
#include "standin_kernels.h"
#endif

static const char *const attend[] = { "attention", "attention_fwd", "attention_block",
                                      "attention_bwd", "attention_bwd_o" };

/* ---- the device ---- */

static cudaStream_t stream;

static void
check_cuda(cudaError_t code)
{
    ck_assert_msg(code == cudaSuccess, "CUDA: %s", cudaGetErrorString(code));
}

static void
stream_start(void)
{
    check_cuda(cudaSetDevice(0));
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

static void
device_start(uint64_t seed)
{
#ifdef STANDIN
    const StandinOptions options = { .seed = seed, .devices = 1 };

    standin_start(&options);
#else
    (void)seed;
#endif
    stream_start();
}

static void
device_end(void)
{
    check_cuda(cudaStreamDestroy(stream));
#ifdef STANDIN
    standin_end();
    ck_assert_str_eq(standin_findings(), "");
#endif
}

static void
device_finish(const char *kernel)
{
    const cudaError_t code = cudaStreamSynchronize(stream);

#ifdef STANDIN
    ck_assert_msg(code == cudaSuccess, "%s: %s", kernel, standin_findings());
#else
    ck_assert_msg(code == cudaSuccess, "%s: %s", kernel, cudaGetErrorString(code));
#endif
}

/* Device memory with guards, and the same contents as @bytes at @data; starts @odd bytes behind an
 * address aligned to LH_SCRATCH_ALIGN. */
typedef struct {
    unsigned char *memory;          /* on the device, with guards */
    unsigned char *sent, *received; /* on the host: two buffers, since copies may be deferred */
    uint64_t bytes;
    uint64_t odd;
} Remote;

static unsigned char *
remote_new(Remote *m, const void *data, uint64_t bytes, uint64_t odd)
{
    void *memory;

    *m = (Remote){ .bytes = bytes, .odd = odd };
    m->sent = g_malloc(bytes + odd + 2 * GUARD_BYTES);
    m->received = g_malloc(bytes + odd + 2 * GUARD_BYTES);
    memset(m->sent, GUARD, bytes + odd + 2 * GUARD_BYTES);
    memcpy(m->sent + GUARD_BYTES + odd, data, bytes);
    check_cuda(cudaMalloc(&memory, bytes + odd + 2 * GUARD_BYTES));
    m->memory = memory;
    check_cuda(cudaMemcpyAsync(memory, m->sent, bytes + odd + 2 * GUARD_BYTES,
                               cudaMemcpyHostToDevice, stream));
    return m->memory + GUARD_BYTES + odd;
}

static void
remote_fetch(Remote *m)
{
    check_cuda(cudaMemcpyAsync(m->received, m->memory, m->bytes + m->odd + 2 * GUARD_BYTES,
                               cudaMemcpyDeviceToHost, stream));
}

/* Call after device_finish(). */
static void
remote_end(Remote *m, void *data)
{
    for (uint64_t i = 0; i < GUARD_BYTES + m->odd; i++)
        ck_assert_uint_eq(m->received[i], GUARD);
    for (uint64_t i = 0; i < GUARD_BYTES; i++)
        ck_assert_uint_eq(m->received[GUARD_BYTES + m->odd + m->bytes + i], GUARD);
    if (data != NULL)
        memcpy(data, m->received + GUARD_BYTES + m->odd, m->bytes);
    check_cuda(cudaFree(m->memory));
    g_free(m->sent);
    g_free(m->received);
}

/* Misalignment of an odd operand: one element, or one float if fp32 statistics follow the
 * elements. */
static uint64_t
odd_bytes(const Run *r, unsigned operand)
{
    return stats_of(r->kernel->operands[operand].kind) > 0
               ? sizeof(float)
               : lh_storage_bytes(r->call.operands[operand].storage);
}

/* Runs a call on the device and copies its operands back. */
static enum lh_status
run_with(const LhCudaKernel *kernel, Run *r, bool odd)
{
    const uint64_t scratch_bytes =
        kernel->scratch_bytes == NULL ? 0 : kernel->scratch_bytes(r->call.args);
    g_autofree unsigned char *poisoned = g_malloc(scratch_bytes + 1);
    Remote operands[LH_KERNEL_OPERANDS_MAX], scratch;
    LhCall call = r->call;
    enum lh_status status;

    for (unsigned i = 0; i < r->count; i++)
        call.operands[i].data = remote_new(&operands[i], r->call.operands[i].data, r->bytes[i],
                                           odd ? odd_bytes(r, i) : 0);
    poison(poisoned, scratch_bytes);
    call.scratch = remote_new(&scratch, poisoned, scratch_bytes, 0);
    status = kernel->run(&call, stream);
    for (unsigned i = 0; i < r->count; i++)
        remote_fetch(&operands[i]);
    remote_fetch(&scratch);
    device_finish(r->c->kernel);
    for (unsigned i = 0; i < r->count; i++)
        remote_end(&operands[i], r->call.operands[i].data);
    remote_end(&scratch, NULL);
    return status;
}

static enum lh_status
run_on_device(Run *r, bool odd)
{
    return run_with(lh_cuda_kernels[r->id], r, odd);
}

/* ---- against the reference ---- */

/* Error permitted for tensor cores on 16-bit elements: weights are rounded to them before the
 * products. With few columns these roundings do not average out. */
static double
limit_of_products(const Run *r, enum lh_storage storage)
{
    const bool gradients = r->kernel->effect == LH_EFFECT_ATTEND_GRAD;
    const double few = r->c->args.head_dim < 8 ? 2 : 1;
    const double of_inputs = few * (gradients ? 5e-3 : 3e-3), of_output = few * 4e-3;

    if (r->c->storage == LH_STORAGE_FP16)
        return (storage == LH_STORAGE_FP32 ? of_inputs : fmax(of_inputs, of_output)) / 8;
    return storage == LH_STORAGE_FP32 ? of_inputs : fmax(of_inputs, of_output);
}

static double
limit(const Run *r, unsigned operand)
{
    const enum lh_storage storage = r->call.operands[operand].storage;
    const double by_storage[] = {
        [LH_STORAGE_FP32] = 1e-5, [LH_STORAGE_BF16] = 4e-3, [LH_STORAGE_FP16] = 1e-3
    };

    if (r->c->storage != LH_STORAGE_FP32 && g_str_has_prefix(r->c->kernel, "attention") &&
        !is_stat(r->kernel->operands[operand].kind))
        return limit_of_products(r, storage);
    g_assert(storage < G_N_ELEMENTS(by_storage));
    /* Twice the tolerance of the CPU's fast versions: exponentials are less exact here. */
    return by_storage[storage] * (r->c->variant == LOGITS_20 && storage == LH_STORAGE_FP32 ? 6 : 1);
}

static bool operands_are_odd;

/* LONGHAUL_TEST_KERNELS lists prefixes of kernel names to run; all run without it. */
static bool
is_asked_for(const char *kernel)
{
    const char *const asked = g_getenv("LONGHAUL_TEST_KERNELS");
    g_auto(GStrv) words = g_strsplit(asked != NULL ? asked : "", " ", -1);

    for (char **word = words; *word != NULL; word++) {
        if (g_str_has_prefix(kernel, *word))
            return true;
    }
    return asked == NULL;
}

static void
check_case(const Case *c)
{
    Run input, want, got;

    if (!is_asked_for(c->kernel))
        return;
    run_init(&input, c);
    run_copy(&want, &input);
    run_kernel(want.id, REFERENCE, &want.call);
    run_copy(&got, &input);
    ck_assert_int_eq(run_on_device(&got, operands_are_odd), LH_STATUS_OK);
    compare(&got, &want, "gpu", limit);
#ifndef STANDIN
    /* The stand-in draws what the hardware leaves undefined; a GPU behaves the same every time. */
    {
        Run again;

        run_copy(&again, &input);
        ck_assert_int_eq(run_on_device(&again, operands_are_odd), LH_STATUS_OK);
        for (unsigned i = 0; i < got.count; i++)
            ck_assert_mem_eq(got.call.operands[i].data, again.call.operands[i].data, got.bytes[i]);
        run_clear(&again);
    }
#endif
    run_clear(&got);
    run_clear(&want);
    run_clear(&input);
}

static void
check_shape(const Case *shape, const char *name)
{
    each_case(shape, name, check_case);
}

/* On the stand-in each kernel runs each shape with one of the three types. */
static bool
is_run(unsigned shape, unsigned kernel, enum lh_storage storage)
{
#ifdef STANDIN
    if ((shape + kernel + (unsigned)storage) % 3 != 0)
        return false;
#else
    (void)storage;
#endif
    return test_takes(shape + kernel);
}

static void
check_kernels(enum lh_storage storage)
{
    device_start(storage);
    for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
        for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
            Case c = shapes[s];

            c.storage = storage;
            if (lh_cuda_kernels[k] != NULL && lh_kernels[k]->args == LH_ARGS_ATTENTION &&
                is_run(s, k, storage))
                check_shape(&c, lh_kernels[k]->name);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(others); i++) {
        Case c = others[i];

        if (lh_cuda_kernels[lh_kernel_find(c.kernel)] == NULL || !test_takes(i))
            continue;
        c.storage = storage;
        check_case(&c);
        c.narrow = true;
        check_case(&c);
    }
    device_end();
}

START_TEST(cuda_kernels_run_fp32)
{
    check_kernels(LH_STORAGE_FP32);
}
END_TEST

START_TEST(cuda_kernels_run_bf16)
{
    check_kernels(LH_STORAGE_BF16);
}
END_TEST

START_TEST(cuda_kernels_run_fp16)
{
    check_kernels(LH_STORAGE_FP16);
}
END_TEST

START_TEST(cuda_kernels_run_on_extreme_inputs)
{
    unsigned turn = 0;

    device_start(4);
    for (unsigned variant = LOGITS_4; variant < VARIANTS; variant++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(attend); k++, turn++) {
            Case c = shapes[0];

            c.variant = (enum variant)variant;
            c.args.nq = c.args.nk = 90;
            c.args.mask = k % 2 == 0 ? LH_MASK_CAUSAL : LH_MASK_FULL;
            c.storage = (enum lh_storage)(turn % 3);
            if (test_takes(turn))
                check_shape(&c, attend[k]);
        }
    }
    device_end();
}
END_TEST

/* ---- attention: tiles, masks, unaligned operands ---- */

/* Whole tiles of 64 and 128 columns, partial ones, and a row of one element. */
START_TEST(cuda_kernels_attend_with_any_dimension)
{
    const uint32_t dims[] = { 1, 8, 18, 32, 64, 72, 88, 96, 104, 128, 200, 256 };

    device_start(5);
    for (unsigned i = 0; i < G_N_ELEMENTS(dims); i++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(attend); k++) {
            Case c = { .kernel = attend[k],
                       .args = { .nq = 40 + 5 * i,
                                 .nk = 70,
                                 .batch = 1,
                                 .heads = 2,
                                 .groups = 1,
                                 .head_dim = dims[i],
                                 .mask = LH_MASK_CAUSAL,
                                 .first = i % 2 == 0 },
                       .storage = (enum lh_storage)((i + k) % 3),
                       .narrow = k % 2 == 0,
                       .q_parts = 1,
                       .k_parts = 2 };

            if (test_takes(i + k))
                check_case(&c);
        }
    }
    device_end();
}
END_TEST

/* Several tiles of queries and keys, the last ones partial, with full and causal masks. */
START_TEST(cuda_kernels_attend_over_many_tiles)
{
    const struct {
        uint32_t nq, nk, heads, groups, dim;
    } sizes[] = { { 260, 200, 2, 1, 64 }, { 130, 330, 1, 1, 96 }, { 150, 140, 3, 3, 128 } };

    device_start(6);
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(attend); k++) {
            Case c = { .kernel = attend[k],
                       .args = { .nq = sizes[i].nq,
                                 .nk = sizes[i].nk,
                                 .batch = 1,
                                 .heads = sizes[i].heads,
                                 .groups = sizes[i].groups,
                                 .head_dim = sizes[i].dim,
                                 .mask = (i + k) % 2 == 0 ? LH_MASK_FULL : LH_MASK_CAUSAL,
                                 .first = k % 2 == 0 },
                       .storage = k % 3 == 0 ? LH_STORAGE_FP16 : LH_STORAGE_BF16,
                       .q_parts = 1,
                       .k_parts = 1 };

            if (test_takes(i + k))
                check_case(&c);
        }
    }
    device_end();
}
END_TEST

/* lse of a row sums over hundreds of tiles without drift: as exact as the tolerance for runs
 * requires (reference/tolerance.h). */
START_TEST(cuda_kernels_sum_over_hundreds_of_tiles)
{
    const uint32_t dims[] = { 64, 128 };

    device_start(19);
    for (unsigned i = 0; i < G_N_ELEMENTS(dims); i++) {
        const Case c = { .kernel = "attention",
                         .args = { .nq = 4,
                                   .nk = 8192,
                                   .batch = 1,
                                   .heads = 2,
                                   .groups = 1,
                                   .head_dim = dims[i],
                                   .mask = LH_MASK_FULL,
                                   .first = true },
                         .storage = LH_STORAGE_BF16,
                         .q_parts = 1,
                         .k_parts = 1 };
        const double least = 0x1p-23 * (1 + log(8192));
        Run want, got;

        run_init(&want, &c);
        run_copy(&got, &want);
        run_kernel(want.id, REFERENCE, &want.call);
        ck_assert_int_eq(run_on_device(&got, false), LH_STATUS_OK);
        for (uint64_t row = 0; row < c.args.nq * c.args.heads; row++) {
            const double lse = ((const float *)(const void *)got.call.operands[3].data)[row];
            const double exact = ((const float *)(const void *)want.call.operands[3].data)[row];

            ck_assert_msg(fabs(lse - exact) <= LH_TOLERANCE_ROW * least,
                          "d %u: lse %.9g, expected %.9g", dims[i], lse, exact);
        }
        run_clear(&got);
        run_clear(&want);
    }
    device_end();
}
END_TEST

START_TEST(cuda_kernels_run_under_masks_by_position)
{
    unsigned turn = 0;

    device_start(7);
    for (unsigned l = 0; l < G_N_ELEMENTS(layouts); l++) {
        for (unsigned r = 0; r < G_N_ELEMENTS(rules); r++) {
            for (unsigned k = 0; k < G_N_ELEMENTS(attend); k++, turn++) {
                Case c = positions_case(attend[k], &layouts[l], &rules[r]);

                c.storage = (enum lh_storage)(turn % 3);
                c.narrow = turn % 2 != 0;
                c.one_key = rules[r].window == 1;
                if (test_takes(turn))
                    check_case(&c);
            }
        }
    }
    device_end();
}
END_TEST

/* More documents than launch arguments hold. */
START_TEST(cuda_kernels_see_many_documents)
{
    const uint32_t count = 2 * LH_CUDA_NUMBERS + 3;
    g_autofree uint64_t *ends = g_new(uint64_t, count);
    const LhMaskRule rule = { .causal = true, .document_ends = ends, .documents_count = count };
    const Layout layout = { { 2 * LH_CUDA_NUMBERS - 40, LH_CUDA_NUMBERS },
                            { LH_CUDA_NUMBERS - 50, 2 * LH_CUDA_NUMBERS },
                            3,
                            2,
                            2,
                            35,
                            70 };

    for (uint32_t i = 0; i < count; i++)
        ends[i] = i / 2 * 5 + i % 2 + 1;
    device_start(8);
    for (unsigned k = 0; k < G_N_ELEMENTS(attend); k++) {
        Case c = positions_case(attend[k], &layout, &rule);

        c.storage = LH_STORAGE_BF16;
        c.one_key = true;
        check_case(&c);
    }
    device_end();
}
END_TEST

/* Operands aligned only to their elements, including those whose rows would be aligned. */
START_TEST(cuda_kernels_run_on_odd_operands)
{
    device_start(9);
    operands_are_odd = true;
    for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
        for (unsigned s = 0; s < 2; s++) {
            Case c = shapes[s];

            c.storage = (k + s) % 2 == 0 ? LH_STORAGE_FP32 : LH_STORAGE_BF16;
            if (lh_cuda_kernels[k] != NULL && lh_kernels[k]->args == LH_ARGS_ATTENTION)
                check_shape(&c, lh_kernels[k]->name);
        }
    }
    operands_are_odd = false;
    device_end();
}
END_TEST

/* ---- products, sorts, rows ---- */

/* Whole groups of elements, as tensor cores take them, in parts of tiles; by heads and by
 * experts. */
static const Case groups[] = {
    { .kernel = "product", .args.product = { 64, 64, 64 }, .q_parts = 1 },
    { .kernel = "product", .args.product = { 150, 72, 104 }, .q_parts = 1 },
    { .kernel = "product", .args.product = { 260, 136, 40 }, .q_parts = 2 },
    { .kernel = "product_dgrad", .args.product = { 150, 72, 104 }, .q_parts = 1 },
    { .kernel = "product_wgrad", .args.product = { 150, 72, 104 }, .q_parts = 2 },
    { .kernel = "product_wgrad",
      .args = { .product = { 130, 200, 136 }, .first = true },
      .q_parts = 1 },
    { .kernel = "out_product", .args.product = { 48, 24, 64, 1, { 2, 2 } }, .q_parts = 4 },
    { .kernel = "out_product_dgrad", .args.product = { 48, 24, 64, 1, { 2, 4 } }, .q_parts = 4 },
    { .kernel = "out_product_wgrad", .args.product = { 48, 24, 64, 1, { 2, 2 } }, .q_parts = 2 },
    { .kernel = "expert_product", .args.product = { 300, 72, 40, .experts = 5 }, .q_parts = 1 },
    { .kernel = "expert_product_dgrad",
      .args.product = { 300, 72, 40, .experts = 5 },
      .q_parts = 1 },
    { .kernel = "expert_product_wgrad",
      .args.product = { 300, 72, 40, .experts = 5 },
      .q_parts = 1 },
    { .kernel = "rotary_kv",
      .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 32 },
      .q_parts = 2,
      .k_parts = 4 },
    { .kernel = "silu_kv_bwd",
      .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 16 },
      .q_parts = 2,
      .k_parts = 4 },
    /* Rows are whole groups, heads or their halves are not. */
    { .kernel = "rotary_q",
      .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 24 },
      .q_parts = 2 },
    { .kernel = "silu_q_bwd", .args.to_heads = { 12, 0, 1, 0, { 1, 4 }, 8, 2, 12 }, .q_parts = 4 },
};

START_TEST(cuda_kernels_multiply_whole_groups)
{
    device_start(11);
    for (unsigned i = 0; i < G_N_ELEMENTS(groups); i++) {
        Case c = groups[i];

        c.storage = i % 2 == 0 ? LH_STORAGE_BF16 : LH_STORAGE_FP16;
        check_case(&c);
        c.storage = i % 2 == 0 ? LH_STORAGE_FP16 : LH_STORAGE_BF16;
        c.narrow = true;
        check_case(&c);
    }
    device_end();
}
END_TEST

/* More numbers than a sort's chunk, and more values than a digit. */
START_TEST(cuda_kernels_order_many_rows)
{
    static const Case many[] = {
        { .kernel = "dispatch", .args.experts = { 300, 16, 300, 2 }, .q_parts = 2 },
        { .kernel = "combine_bwd", .args.experts = { 150, 24, 3, 2 }, .q_parts = 1 },
        { .kernel = "embed_bwd", .args.rows = { 900, 24, 700, 0, 700 }, .q_parts = 2 },
        { .kernel = "embed_bwd",
          .args = { .rows = { 600, 8, 7, 2, 4 }, .first = true },
          .q_parts = 1 },
        { .kernel = "rms_norm_bwd", .args.rows = { 300, 40, .epsilon = 1e-5 }, .q_parts = 1 },
        { .kernel = "layer_norm_bwd", .args.rows = { 270, 9, .epsilon = 1e-5 }, .q_parts = 3 },
        { .kernel = "loss", .args.rows = { 300, 20, 38, 20, .tokens = 900 }, .q_parts = 1 },
        { .kernel = "grad_norm", .args.optimizer = { 70001 }, .q_parts = 1 },
    };

    device_start(12);
    for (unsigned i = 0; i < G_N_ELEMENTS(many); i++) {
        Case c = many[i];

        c.storage = LH_STORAGE_FP32;
        check_case(&c);
    }
    device_end();
}
END_TEST

/* Rotation angles are exact at positions where the spacing of fp32 is 64. */
START_TEST(cuda_kernels_turn_at_far_positions)
{
    const Case c = { .kernel = "rotary_q",
                     .args.to_heads = { 4, 1000000007, 1, 10000, { 1, 1 }, 2, 2, 16 },
                     .storage = LH_STORAGE_FP32,
                     .q_parts = 1 };

    device_start(13);
    check_case(&c);
    device_end();
}
END_TEST

/* Kernels that multiply pairs without tiles, and kernels that mask scores. */
START_TEST(cuda_kernels_see_pairs_by_position)
{
    const char *const names[] = { "linear_intra", "linear_intra_bwd", "scores_softmax" };
    unsigned turn = 0;

    device_start(14);
    for (unsigned l = 0; l < G_N_ELEMENTS(layouts); l++) {
        for (unsigned r = 0; r < G_N_ELEMENTS(rules); r++) {
            for (unsigned k = 0; k < G_N_ELEMENTS(names); k++, turn++) {
                Case c = positions_case(names[k], &layouts[l], &rules[r]);

                c.storage = (enum lh_storage)(turn % 3);
                c.narrow = turn % 2 != 0;
                c.args.first = turn % 4 < 2;
                if (test_takes(turn))
                    check_case(&c);
            }
        }
    }
    device_end();
}
END_TEST

/* States of blocks, from either side, with and without whole groups of elements. */
START_TEST(cuda_kernels_add_up_states)
{
    const uint32_t dims[] = { 16, 5 };

    device_start(17);
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(dims); i++) {
        Case c = { .kernel = "linear_prefix",
                   .args = { .nq = i % 2 == 0 ? 6 : 0,
                             .nk = i % 2 == 0 ? 0 : 6,
                             .batch = 2,
                             .heads = 3,
                             .groups = 1,
                             .head_dim = dims[i / 2],
                             .decay = 0.9 },
                   .storage = LH_STORAGE_BF16 };

        for (c.args.states = 1; c.args.states <= 8; c.args.states++)
            check_case(&c);
    }
    device_end();
}
END_TEST

/* Writes statistics behind the elements of all parts, a fixed number per row. */
static void
add_stats(Run *r, unsigned stats)
{
    const LhKernelArgs *a = &r->c->args;

    for (unsigned i = 0; i < r->count; i++) {
        LhView *view = &r->call.operands[i];
        const uint64_t old = view->part_bytes;
        const uint64_t numbers = stats * a->batch * a->nq * a->heads / view->parts;
        unsigned char *memory;
        unsigned char *data = guarded((old + numbers * sizeof(float)) * view->parts, &memory);

        view->part_bytes = old + numbers * sizeof(float);
        for (uint32_t part = 0; part < view->parts; part++) {
            unsigned char *to = data + part * view->part_bytes;

            memcpy(to, view->data + part * old, old);
            for (uint64_t k = 0; k < numbers; k++)
                lh_element_put(to + old, LH_STORAGE_FP32, k, normal());
        }
        g_aligned_free(r->memory[i]);
        r->memory[i] = memory;
        r->bytes[i] = view->part_bytes * view->parts;
        view->data = data;
    }
}

/* Accumulators are copied and emptied bit-exactly with their statistics. */
START_TEST(cuda_kernels_move_statistics)
{
    const char *const names[] = { "copy", "zero" };

    device_start(16);
    for (unsigned i = 0; i < 16; i++) {
        const Case c = { .kernel = names[i % 2],
                         .args = { .nq = 6,
                                   .batch = 2,
                                   .heads = 3,
                                   .groups = 1,
                                   .head_dim = 10,
                                   .reversed = i / 2 % 2 == 0 },
                         .storage = i / 4 % 2 == 0 ? LH_STORAGE_BF16 : LH_STORAGE_FP32,
                         .narrow = true,
                         .q_parts = 3 };
        Run input, want, got;

        run_init(&input, &c);
        add_stats(&input, 1 + i / 8);
        run_copy(&want, &input);
        run_copy(&got, &input);
        run_kernel(want.id, REFERENCE, &want.call);
        ck_assert_int_eq(run_on_device(&got, false), LH_STATUS_OK);
        for (unsigned k = 0; k < got.count; k++)
            ck_assert_mem_eq(got.call.operands[k].data, want.call.operands[k].data, got.bytes[k]);
        run_clear(&got);
        run_clear(&want);
        run_clear(&input);
    }
    device_end();
}
END_TEST

/* ---- sums of several tensors ---- */

#define TERMS 5U

/* Asserts sums in the order given, in fp32, rounded once: bit-identical to the CPU's. */
static void
check_sum(enum lh_storage storage, uint64_t elements, uint64_t odd)
{
    const uint64_t bytes = elements * lh_storage_bytes(storage);
    unsigned char *terms[TERMS], *on_device[TERMS], *sum;
    Remote remote[TERMS], result;

    for (unsigned i = 0; i < TERMS; i++) {
        terms[i] = g_malloc(bytes);
        for (uint64_t k = 0; k < elements; k++)
            lh_element_put(terms[i], storage, k, normal() * exp(4 * normal()));
        on_device[i] = remote_new(&remote[i], terms[i], bytes, odd);
    }
    sum = remote_new(&result, terms[0], bytes, odd);
    ck_assert_int_eq(lh_cuda_sum(on_device, TERMS, sum, elements, storage, stream), LH_STATUS_OK);
    remote_fetch(&result);
    for (unsigned i = 0; i < TERMS; i++)
        remote_fetch(&remote[i]);
    device_finish("lh_cuda_sum");
    sum = g_malloc(bytes);
    remote_end(&result, sum);
    for (uint64_t k = 0; k < elements; k++) {
        float want = (float)lh_element_get(terms[0], storage, k);

        for (unsigned i = 1; i < TERMS; i++)
            want += (float)lh_element_get(terms[i], storage, k);
        lh_element_put(terms[0], storage, k, (double)want);
        ck_assert_double_eq(lh_element_get(sum, storage, k), lh_element_get(terms[0], storage, k));
    }
    for (unsigned i = 0; i < TERMS; i++) {
        remote_end(&remote[i], NULL);
        g_free(terms[i]);
    }
    g_free(sum);
}

START_TEST(cuda_kernels_sum_in_order)
{
    const uint64_t counts[] = { 1, 8, 1000, 2053 };

    device_start(15);
    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        for (unsigned storage = LH_STORAGE_FP32; storage < LH_STORAGE_FP64; storage++) {
            check_sum((enum lh_storage)storage, counts[i], 0);
            check_sum((enum lh_storage)storage, counts[i],
                      lh_storage_bytes((enum lh_storage)storage));
        }
    }
    device_end();
}
END_TEST

/* ---- rejected launches ---- */

static void
check_refused(const Case *c)
{
    Run r;

    run_init(&r, c);
    r.call.args = &c->args;
    ck_assert_int_eq(run_on_device(&r, false), LH_STATUS_UNSUPPORTED);
    run_clear(&r);
}

START_TEST(cuda_kernels_refuse_what_they_cannot)
{
    const Case fit = { .kernel = "attention_fwd",
                       .args = plain_args,
                       .storage = LH_STORAGE_BF16,
                       .q_parts = 1,
                       .k_parts = 1 };
    Case c = fit;

    device_start(10);
    check_case(&c);
    c.args.head_dim = 264;
    check_refused(&c);
    c = fit;
    c.args.scale = -0.5;
    check_refused(&c);
    c = fit;
    c.storage = LH_STORAGE_FP64;
    check_refused(&c);
    c = fit;
    c.args.nq = 1;
    c.args.nk = 1;
    c.args.head_dim = 1;
    c.args.heads = c.args.groups = 65536;
    check_refused(&c);
    device_end();
}
END_TEST

#ifdef STANDIN
static void
check_shared_memory(const char *kernel, uint32_t dim, enum lh_storage storage, bool fits)
{
    const Case c = { .kernel = kernel,
                     .args = { .nq = 20,
                               .nk = 20,
                               .batch = 1,
                               .heads = 1,
                               .groups = 1,
                               .head_dim = dim,
                               .mask = LH_MASK_FULL,
                               .first = true },
                     .storage = storage,
                     .q_parts = 1,
                     .k_parts = 1 };
    Run input, got;

    if (fits) {
        check_case(&c);
        return;
    }
    run_init(&input, &c);
    run_copy(&got, &input);
    ck_assert_int_eq(run_on_device(&got, false), LH_STATUS_UNSUPPORTED);
    ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
    for (unsigned i = 0; i < got.count; i++)
        ck_assert_mem_eq(got.call.operands[i].data, input.call.operands[i].data, got.bytes[i]);
    run_clear(&got);
    run_clear(&input);
}

/* GPUs differ in shared memory per block. A kernel that needs more is rejected, leaves no pending
 * error and writes nothing, even if only one of two kernels does. */
START_TEST(cuda_kernels_refuse_too_little_shared_memory)
{
    static const struct {
        uint32_t shared_bytes; /* of sm_86 and sm_120; enough for dq but not for dk; of sm_80 */
        uint32_t dim;
        enum lh_storage storage;
        bool forward, backward;
    } gpus[] = {
        { 99 << 10, 128, LH_STORAGE_BF16, true, true },
        { 99 << 10, 256, LH_STORAGE_BF16, true, false },
        { 99 << 10, 128, LH_STORAGE_FP32, true, true },
        { 99 << 10, 256, LH_STORAGE_FP32, false, false },
        { 132000, 256, LH_STORAGE_FP16, true, false },
        { 163 << 10, 256, LH_STORAGE_FP16, true, true },
        { 163 << 10, 256, LH_STORAGE_FP32, true, true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(gpus); i++) {
        const StandinOptions options = { .devices = 1, .shared_bytes = gpus[i].shared_bytes };

        standin_start(&options);
        stream_start();
        for (unsigned k = 0; k < G_N_ELEMENTS(attend); k++)
            check_shared_memory(attend[k], gpus[i].dim, gpus[i].storage,
                                g_str_has_prefix(attend[k], "attention_bwd") ? gpus[i].backward
                                                                             : gpus[i].forward);
        device_end();
    }
}
END_TEST
#endif

/* ---- cost ---- */

#ifdef STANDIN
typedef struct {
    const char *kernel;
    uint32_t dim;
    enum lh_storage storage;
    double instructions; /* per warp and mma, within 2 %; 0: there is no mma */
} Cost;

/* Shared memory accesses without bank conflicts; results and inputs in whole sectors. */
START_TEST(cuda_kernels_meet_no_bank_twice)
{
    static const Cost costs[] = {
        { "attention_fwd", 64, LH_STORAGE_BF16, 13.25 },
        { "attention_fwd", 96, LH_STORAGE_BF16, 11.64 },
        { "attention_fwd", 128, LH_STORAGE_BF16, 12.28 },
        { "attention_fwd", 256, LH_STORAGE_BF16, 14.24 },
        { "attention_bwd", 64, LH_STORAGE_BF16, 10.99 },
        { "attention_bwd", 96, LH_STORAGE_BF16, 10.55 },
        { "attention_bwd", 128, LH_STORAGE_BF16, 10.29 },
        { "attention_bwd", 256, LH_STORAGE_BF16, 9.76 },
        { "attention_fwd", 64, LH_STORAGE_FP32, 0 },
        { "attention_bwd", 64, LH_STORAGE_FP32, 0 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(costs); i++) {
        const Case c = { .kernel = costs[i].kernel,
                         .args = { .nq = 256,
                                   .nk = 256,
                                   .batch = 1,
                                   .heads = 1,
                                   .groups = 1,
                                   .head_dim = costs[i].dim,
                                   .mask = LH_MASK_FULL },
                         .storage = costs[i].storage,
                         .q_parts = 1,
                         .k_parts = 1 };
        const ptx_counts *counts;

        if (!is_asked_for(c.kernel))
            continue;
        device_start(i);
        check_case(&c);
        counts = standin_kernel_counts();
        ck_assert_uint_eq(counts->shared_waves, counts->shared_waves_least);
        ck_assert_uint_le(counts->global_sectors * 100, counts->global_sectors_least * 105);
        if (costs[i].instructions > 0)
            ck_assert_double_eq_tol((double)counts->instructions / (double)counts->mma,
                                    costs[i].instructions, 0.02 * costs[i].instructions);
        else
            ck_assert_uint_eq(counts->mma, 0);
        device_end();
    }
}
END_TEST

/* Tensor cores compute 16-bit products, whichever factor is transposed. */
START_TEST(cuda_kernels_multiply_by_tensor_cores)
{
    static const char *const kernels[] = { "product", "product_dgrad", "product_wgrad" };

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(kernels); i++) {
        const Case c = { .kernel = kernels[i / 2],
                         .args.product = { 128, 128, 128 },
                         .storage = i % 2 == 0 ? LH_STORAGE_BF16 : LH_STORAGE_FP32,
                         .narrow = true,
                         .q_parts = 1 };

        if (!is_asked_for(c.kernel))
            continue;
        device_start(i);
        check_case(&c);
        ck_assert_uint_eq(standin_kernel_counts()->mma,
                          c.storage == LH_STORAGE_BF16 ? 128 / 16 * 128 / 8 * 128 / 16 : 0);
        device_end();
    }
}
END_TEST

/* Arguments of a kernel's call whose rows are whole sectors and which gives several blocks work. A
 * block of attention has one head: with several, their statistics would share sectors. */
static LhKernelArgs
whole_sizes(const LhKernel *kernel)
{
    const uint32_t heads = g_str_has_prefix(kernel->name, "attention") ? 1 : 4;

    switch (kernel->args) {
    case LH_ARGS_PRODUCT:
        return (LhKernelArgs){
            .product = { 192, 128, 160, lh_product_is_of_experts(kernel) ? 3 : 1, { 1, 1 } }
        };
    case LH_ARGS_ELEMENTS:
        return (LhKernelArgs){ .elements = { 4096 } };
    case LH_ARGS_ROWS:
        return (LhKernelArgs){ .rows = { 24, 512, 512, 0, 512, .tokens = 24, .epsilon = 1e-5,
                                         .adds = true } };
    case LH_ARGS_HEADS:
        return (LhKernelArgs){ .to_heads = { 16, 0, 1, 10000, { 1, 1 }, 8, 4, 64 } };
    case LH_ARGS_EXPERTS:
        return (LhKernelArgs){ .experts = { 64, 512, 8, 2 } };
    case LH_ARGS_OPTIMIZER:
        return (LhKernelArgs){ .optimizer = { 4096, 1e-3, 0.9, 0.95, 1e-8, 0.1, 1 } };
    default:
        return (LhKernelArgs){ .nq = 256,
                               .nk = 256,
                               .batch = 1,
                               .heads = heads,
                               .groups = heads,
                               .head_dim = 64,
                               .mask = LH_MASK_CAUSAL,
                               .decay = is_linear(kernel->name) ? 0.97 : 0,
                               .states = 3 };
    }
}

/* Rows of queries or of keys for kernels that have only one of them. */
static void
check_sectors(const Case *shape)
{
    const LhKernel *kernel = lh_kernels[lh_kernel_find(shape->kernel)];
    Case c = *shape;
    const ptx_counts *counts;

    if (kernel->args == LH_ARGS_ATTENTION && !has_pairs(c.kernel) && !is_linear(c.kernel) &&
        !is_keys(&c, kernel->operands[0].kind))
        c.args.nk = 0;
    device_start(c.storage);
    check_case(&c);
    counts = standin_kernel_counts();
    ck_assert_uint_eq(counts->shared_waves, counts->shared_waves_least);
    ck_assert_msg(counts->global_sectors * 100 <= counts->global_sectors_least * 105,
                  "%s, storage %d, narrow %d: %u sectors, minimum %u", c.kernel, (int)c.storage,
                  c.narrow, (unsigned)counts->global_sectors,
                  (unsigned)counts->global_sectors_least);
    device_end();
}

/* Every kernel; results are accumulated, so that they are read too. */
START_TEST(cuda_kernels_touch_whole_sectors)
{
    for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
        Case c = { .kernel = lh_kernels[k]->name,
                   .args = whole_sizes(lh_kernels[k]),
                   .storage = LH_STORAGE_FP32,
                   .q_parts = 1,
                   .k_parts = 1 };

        if (lh_cuda_kernels[k] == NULL || lh_kernels[k]->args == LH_ARGS_NONE ||
            !is_asked_for(c.kernel))
            continue;
        check_sectors(&c);
        c.storage = LH_STORAGE_BF16;
        check_sectors(&c);
        c.narrow = true;
        check_sectors(&c);
    }
}
END_TEST
#endif

/* A normalised block is an accumulator whose l is 1. */
START_TEST(cuda_kernels_merge_blocks)
{
    const LhCudaKernel of_blocks = { .run = lh_cuda_merge_block };

    device_start(10);
    for (unsigned i = 0; i < 6; i++) {
        const Case c = { .kernel = "merge",
                         .args = { .nq = 22,
                                   .batch = 2,
                                   .heads = 3,
                                   .groups = 1,
                                   .head_dim = 24,
                                   .first = i % 2 == 0 },
                         .storage = (enum lh_storage)(i % 3),
                         .narrow = i < 3,
                         .q_parts = 2 };
        Run want, got;
        LhRows l;

        run_init(&want, &c);
        l = lh_rows_acc_stat(&want.call, 0, 1);
        for (uint64_t row = 0; row < 2 * c.args.nq * c.args.heads; row++)
            *lh_stat_at(&l, row / 3 / c.args.nq, row / 3 % c.args.nq, (uint32_t)(row % 3)) = 1;
        run_copy(&got, &want);
        run_kernel(want.id, REFERENCE, &want.call);
        ck_assert_int_eq(run_with(&of_blocks, &got, false), LH_STATUS_OK);
        compare(&got, &want, "gpu", limit);
        run_clear(&got);
        run_clear(&want);
    }
    device_end();
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        cuda_kernels_run_fp32,
        cuda_kernels_run_bf16,
        cuda_kernels_run_fp16,
        cuda_kernels_run_on_extreme_inputs,
        cuda_kernels_attend_with_any_dimension,
        cuda_kernels_attend_over_many_tiles,
        cuda_kernels_sum_over_hundreds_of_tiles,
        cuda_kernels_run_under_masks_by_position,
        cuda_kernels_see_many_documents,
        cuda_kernels_run_on_odd_operands,
        cuda_kernels_multiply_whole_groups,
        cuda_kernels_order_many_rows,
        cuda_kernels_turn_at_far_positions,
        cuda_kernels_see_pairs_by_position,
        cuda_kernels_add_up_states,
        cuda_kernels_move_statistics,
        cuda_kernels_merge_blocks,
        cuda_kernels_sum_in_order,
        cuda_kernels_refuse_what_they_cannot,
#ifdef STANDIN
        cuda_kernels_refuse_too_little_shared_memory,
        cuda_kernels_meet_no_bank_twice,
        cuda_kernels_multiply_by_tensor_cores,
        cuda_kernels_touch_whole_sectors,
#endif
    };

    if (!lh_cuda_present())
        return skip_test("this build has no kernels for GPUs");
#ifndef STANDIN
    /* A forked child of a process that has opened the device cannot use it. */
    int devices = 0;

    g_setenv("CK_FORK", "no", TRUE);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
        return skip_test("there is no GPU here");
#endif
    return lh_run_tests("cuda_kernels", NULL, tests, G_N_ELEMENTS(tests));
}
