/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN as a provider of GPU kernels: attention calls against the CPU reference in fp64, and
 * rejected calls. Built twice: on the stand-ins, whose cuDNN interprets the graphs and so shows by
 * numbers what they mean (STANDIN); and on CUDA and cuDNN, for machines with a GPU; without a GPU
 * or without cuDNN that program exits with 77. test_cudnn_runs.c runs schedules.
 */
#include "kernel_compare.h"
#include "runtime/api/compute_device.h"
#include "runtime/gpu/cudnn_attention.h"
#include "skip.h"
#ifdef STANDIN
#include "standin.h"
#endif

#include <stdio.h>
#include <stdlib.h>

#define CUDNN 1 /* index among the device's kernel sets */
/* ---- the device ---- */

static LhDeviceState *device;
static LhDeviceStream stream;

/* The stand-in's findings. */
static const char *
findings(void)
{
#ifdef STANDIN
    return standin_findings();
#else
    return "";
#endif
}

static void
device_start(uint64_t seed)
{
    const LhDeviceParams params = { .kernel_set = CUDNN };
    g_autoptr(GError) error = NULL;
#ifdef STANDIN
    const StandinOptions options = { .seed = seed, .devices = 1, .eager = 20 };

    standin_start(&options);
#else
    (void)seed;
#endif
    ck_assert_str_eq(lh_device_cuda.kernel_sets[CUDNN], "cudnn");
    device = lh_device_cuda.open(&params, &error);
    ck_assert_msg(device != NULL, "%s", error != NULL ? error->message : "");
    stream = lh_device_cuda.stream(device, true, NULL);
}

static void
device_end(void)
{
    lh_device_cuda.end_stream(device, stream);
    lh_device_cuda.close(device);
#ifdef STANDIN
    standin_end();
#endif
    ck_assert_str_eq(findings(), "");
}

/* Device memory with guards, and the host memory it is loaded from and stored to. */
typedef struct {
    unsigned char *memory, *host;
    uint64_t bytes;
} Remote;

/* Allocates a copy of the @bytes at @data, @odd bytes behind an aligned address. */
static unsigned char *
remote_new(Remote *m, const void *data, uint64_t bytes, uint64_t odd)
{
    m->bytes = bytes + 2 * GUARD_BYTES + odd;
    m->host = g_malloc(m->bytes);
    memset(m->host, GUARD, m->bytes);
    memcpy(m->host + GUARD_BYTES + odd, data, bytes);
    m->memory = lh_device_cuda.alloc(device, m->bytes, NULL);
    ck_assert(lh_device_cuda.load(device, m->memory, m->host, m->bytes, stream, NULL));
    return m->memory + GUARD_BYTES + odd;
}

static void
finish(void)
{
    g_autoptr(GError) error = NULL;
    const bool done = lh_device_finish(&lh_device_cuda, device, stream, NULL, NULL, &error);

    ck_assert_msg(done, "%s: %s", error != NULL ? error->message : "", findings());
}

/* Call after finish(). */
static void
remote_end(Remote *m, void *data, uint64_t bytes, uint64_t odd)
{
    ck_assert(lh_device_cuda.store(device, m->host, m->memory, m->bytes, stream, NULL));
    finish();
    for (uint64_t i = 0; i < GUARD_BYTES; i++) {
        ck_assert_uint_eq(m->host[i], GUARD);
        ck_assert_uint_eq(m->host[m->bytes - 1 - i], GUARD);
    }
    memcpy(data, m->host + GUARD_BYTES + odd, bytes);
    lh_device_cuda.release(device, m->memory);
    g_free(m->host);
}

/* Runs a call on the device and copies its operands back. */
static enum lh_status
run_on_device(Run *r, uint64_t odd)
{
    Remote operands[LH_KERNEL_OPERANDS_MAX], scratch;
    g_autofree unsigned char *poisoned = NULL;
    uint64_t scratch_bytes;
    LhCall call = r->call;
    enum lh_status status;

    for (unsigned i = 0; i < r->count; i++)
        call.operands[i].data =
            remote_new(&operands[i], r->call.operands[i].data, r->bytes[i], odd);
    scratch_bytes = lh_device_cuda.scratch_bytes(device, r->id, &call);
    poisoned = g_malloc(scratch_bytes + 1);
    poison(poisoned, scratch_bytes);
    call.scratch = remote_new(&scratch, poisoned, scratch_bytes, 0);
    status = lh_device_cuda.call(device, r->id, &call, stream);
    finish();
    for (unsigned i = 0; i < r->count; i++)
        remote_end(&operands[i], r->call.operands[i].data, r->bytes[i], odd);
    remote_end(&scratch, poisoned, scratch_bytes, 0);
    return status;
}

/* ---- against the reference ---- */

/* Results of a block are rounded to 16 bits before they are added, as are the weights within a
 * product. */
static double
limit(const Run *r, unsigned operand)
{
    (void)operand;
    return r->c->storage == LH_STORAGE_FP16 ? 5e-3 / 8 : 5e-3;
}

/* Normalises an accumulator: any (o, m, l) with the same o / l and m + log l is equivalent; sets l
 * to 1. */
static void
normalise(Run *r)
{
    const LhKernelArgs *a = r->call.args;
    const LhRows o = lh_rows_q(&r->call, 2), m = lh_rows_acc_stat(&r->call, 2, 0);
    const LhRows l = lh_rows_acc_stat(&r->call, 2, 1);

    for (uint64_t i = 0; i < a->batch * a->nq * a->heads; i++) {
        const uint64_t sequence = i / a->heads / a->nq, row = i / a->heads % a->nq;
        const uint32_t head = (uint32_t)(i % a->heads);
        float *sum = lh_stat_at(&l, sequence, row, head);
        void *elements = lh_rows_at(&o, sequence, row, head);

        if (*sum == 0)
            continue;
        for (uint64_t d = 0; d < a->head_dim; d++)
            lh_element_put(elements, o.storage, d,
                           lh_element_get(elements, o.storage, d) / (double)*sum);
        *lh_stat_at(&m, sequence, row, head) += logf(*sum);
        *sum = 1;
    }
}

static void
check_case(const Case *c, uint64_t odd)
{
    Run input, want, got;
    g_autofree char *why = NULL;
    enum lh_status status;

    run_init(&input, c);
    run_copy(&want, &input);
    run_kernel(want.id, REFERENCE, &want.call);
    run_copy(&got, &input);
    status = run_on_device(&got, odd);
    why = status == LH_STATUS_OK ? NULL : lh_device_cuda.why(device);
    ck_assert_msg(status == LH_STATUS_OK, "%s: %s", c->kernel, why);
    if (got.id == LH_KERNEL_ID_attention_fwd) {
        normalise(&want);
        normalise(&got);
    }
    compare(&got, &want, "cudnn", limit);
    run_clear(&got);
    run_clear(&want);
    run_clear(&input);
}

/* All kernels, types, and first or accumulating calls. */
static void
check_shape(Case c)
{
    static const char *const kernels[] = { "attention", "attention_fwd", "attention_block",
                                           "attention_bwd_o" };

    for (unsigned turn = 0; turn < 2 * 2 * G_N_ELEMENTS(kernels); turn++) {
        c.kernel = kernels[turn / 4];
        c.args.first = turn % 2 == 0;
        c.narrow = turn / 2 % 2 == 0;
        c.storage = (turn + turn / 4) % 2 == 0 ? LH_STORAGE_BF16 : LH_STORAGE_FP16;
        check_case(&c, 0);
    }
}

/* batch, nq, nk, heads, groups, dim, mask, shift; parts of queries and of keys */
static const struct {
    uint32_t batch;
    uint64_t nq, nk;
    uint32_t heads, groups, dim;
    LhMaskKind mask;
    int8_t shift;
    uint32_t q_parts, k_parts;
    double scale;
} sizes[] = {
    { 1, 24, 24, 2, 2, 16, LH_MASK_FULL, 0, 1, 1, 0 },
    { 1, 24, 24, 2, 2, 16, LH_MASK_CAUSAL, 0, 1, 1, 0.3 },
    { 1, 24, 24, 2, 2, 16, LH_MASK_CAUSAL, -1, 1, 1, 0 },
    { 1, 20, 28, 4, 2, 24, LH_MASK_FULL, 0, 2, 2, 0 },
    { 1, 28, 20, 6, 2, 8, LH_MASK_CAUSAL, 0, 2, 1, 0.5 },
    { 1, 20, 28, 4, 1, 32, LH_MASK_CAUSAL, -1, 1, 2, 0 },
    { 2, 18, 22, 4, 4, 16, LH_MASK_FULL, 0, 1, 1, 0 },
    { 2, 18, 24, 4, 2, 16, LH_MASK_CAUSAL, 0, 3, 2, 0 },
    { 3, 24, 18, 6, 3, 8, LH_MASK_CAUSAL, -1, 2, 3, 0.2 },
    { 1, 1, 1, 1, 1, 64, LH_MASK_CAUSAL, 0, 1, 1, 0 },
    { 1, 1, 9, 1, 1, 8, LH_MASK_CAUSAL, -1, 1, 1, 0 }, /* empty mask */
    { 1, 3, 2, 2, 1, 8, LH_MASK_CAUSAL, 0, 1, 1, 0 },
    { 1, 5, 7, 2, 1, 256, LH_MASK_FULL, 0, 1, 1, 0 },
    { 1, 4, 4, 2, 1, 8, LH_MASK_EMPTY, 0, 1, 1, 0 },
};

START_TEST(cudnn_attends)
{
    Case c = { .args = { .batch = sizes[_i].batch,
                         .nq = sizes[_i].nq,
                         .nk = sizes[_i].nk,
                         .heads = sizes[_i].heads,
                         .groups = sizes[_i].groups,
                         .head_dim = sizes[_i].dim,
                         .mask = sizes[_i].mask,
                         .shift = sizes[_i].shift,
                         .scale = sizes[_i].scale },
               .q_parts = sizes[_i].q_parts,
               .k_parts = sizes[_i].k_parts };

    device_start((uint64_t)_i);
    check_shape(c);
    device_end();
}
END_TEST

static const LhMaskRule causal = { .causal = true };

/* Queries at start + part * step + i * stride, keys from start on. */
static const struct {
    LhRowsPosition q_at, k_at;
    uint64_t stride;
    uint32_t batch, q_parts, k_parts;
} positions[] = {
    { { 0, 0 }, { 0, 0 }, 1, 1, 1, 1 },
    { { 6, 0 }, { 0, 0 }, 1, 1, 1, 1 },  /* more than the causal mask */
    { { 3, 0 }, { 8, 0 }, 1, 1, 1, 1 },  /* less; some rows see nothing */
    { { 40, 0 }, { 0, 0 }, 1, 1, 1, 1 }, /* everything */
    { { 0, 0 }, { 30, 0 }, 1, 1, 1, 1 }, /* nothing */
    { { 2, 0 }, { 1, 0 }, 4, 1, 1, 1 },  /* striped rows */
    { { 1, 0 }, { 2, 0 }, 4, 1, 1, 1 },
    { { 0, 18 }, { 0, 6 }, 1, 1, 2, 4 }, /* both ends of a zigzag with all keys before them */
    { { 4, 12 }, { 0, 12 }, 1, 2, 2, 2 },
    { { 12, -12 }, { 0, 0 }, 1, 1, 2, 1 }, /* the later part first */
    { { 12, 0 }, { 0, 20 }, 1, 1, 1, 2 },  /* keys in two runs, the second one behind */
    { { 6, 24 }, { 3, 20 }, 1, 2, 3, 2 },  /* queries, too; of two sequences */
    { { 1, 24 }, { 2, 24 }, 3, 1, 2, 4 },
};

START_TEST(cudnn_attends_by_position)
{
    Case c = { .args = { .batch = positions[_i].batch,
                         .nq = 12,
                         .nk = 24,
                         .heads = 4,
                         .groups = 2,
                         .head_dim = 16,
                         .mask = LH_MASK_POSITIONS,
                         .q_at = positions[_i].q_at,
                         .k_at = positions[_i].k_at,
                         .stride = positions[_i].stride,
                         .rule = &causal },
               .q_parts = positions[_i].q_parts,
               .k_parts = positions[_i].k_parts };

    device_start((uint64_t)_i);
    check_shape(c);
    device_end();
}
END_TEST

START_TEST(cudnn_attends_on_extreme_inputs)
{
    Case c = { .kernel = "attention_block",
               .args = { .batch = 1,
                         .nq = 30,
                         .nk = 30,
                         .heads = 2,
                         .groups = 1,
                         .head_dim = 16,
                         .mask = LH_MASK_CAUSAL },
               .storage = LH_STORAGE_BF16,
               .q_parts = 1,
               .k_parts = 1,
               .variant = (enum variant)_i };

    device_start((uint64_t)_i);
    check_case(&c, 0);
    c.kernel = "attention_fwd";
    check_case(&c, 0);
    device_end();
}
END_TEST

/* Calls with equal numbers of rows; in the second, the rows of sequences are one row apart. */
START_TEST(cudnn_keeps_plans_apart)
{
    Case c = { .kernel = "attention_block",
               .args = { .batch = 2,
                         .nq = 10,
                         .nk = 8,
                         .heads = 2,
                         .groups = 1,
                         .head_dim = 8,
                         .mask = LH_MASK_CAUSAL },
               .storage = LH_STORAGE_BF16,
               .q_parts = 1,
               .k_parts = 1 };

    device_start(5);
    check_case(&c, 0);
    c.args.nq = 11;
    c.args.shift = -1;
    check_case(&c, 0);
    device_end();
}
END_TEST

/* Operands aligned only to fp32 elements are copied through scratch memory. */
START_TEST(cudnn_attends_on_odd_operands)
{
    device_start(3);
    for (unsigned i = 0; i < 3; i++) {
        static const char *const kernels[] = { "attention", "attention_block", "attention_bwd_o" };
        const Case c = { .kernel = kernels[i],
                         .args = { .batch = 2,
                                   .nq = 12,
                                   .nk = 10,
                                   .heads = 2,
                                   .groups = 1,
                                   .head_dim = 8,
                                   .mask = LH_MASK_FULL },
                         .storage = LH_STORAGE_FP16,
                         .q_parts = 1,
                         .k_parts = 1 };

        check_case(&c, sizeof(float));
    }
    device_end();
}
END_TEST

/* ---- rejected calls ---- */

static const LhMaskRule window = { .causal = true, .window = 4 };
static const LhKernelArgs fine = { .batch = 1,
                                   .nq = 12,
                                   .nk = 12,
                                   .heads = 2,
                                   .groups = 1,
                                   .head_dim = 8,
                                   .mask = LH_MASK_POSITIONS,
                                   .stride = 1,
                                   .rule = &causal,
                                   .first = true };

static void
check_refused(Case c, const char *said)
{
    g_autofree char *why = NULL;
    Run run, before;

    if (c.kernel == NULL)
        c.kernel = "attention_block";
    run_init(&run, &c);
    run_copy(&before, &run);
    ck_assert_int_eq(run_on_device(&run, 0), LH_STATUS_UNSUPPORTED);
    for (unsigned i = 0; i < run.count; i++)
        ck_assert_mem_eq(run.call.operands[i].data, before.call.operands[i].data, run.bytes[i]);
    why = lh_device_cuda.why(device);
    ck_assert_ptr_nonnull(why);
    ck_assert_msg(strstr(why, said) != NULL, "%s", why);
    run_clear(&before);
    run_clear(&run);
}

START_TEST(what_cudnn_does_not_compute_is_refused)
{
    Case c = { .args = fine, .storage = LH_STORAGE_BF16, .q_parts = 1, .k_parts = 1 };

    device_start(1);
    c.storage = LH_STORAGE_FP32;
    check_refused(c, "supports bf16 and fp16, not fp32");
    c.storage = LH_STORAGE_BF16;
    c.args.head_dim = 12;
    check_refused(c, "multiples of 8 up to 256, not 12");
    c.args.head_dim = 264;
    check_refused(c, "multiples of 8 up to 256, not 264");
    c.args.head_dim = 8;
    c.args.rule = &window;
    check_refused(c, "not with windows or documents");
    c.args.rule = &causal;
    c.kernel = "attention_bwd";
    check_refused(c, "computes delta from o");
    check_case(&(Case){ .kernel = "attention",
                        .args = fine,
                        .storage = LH_STORAGE_BF16,
                        .q_parts = 1,
                        .k_parts = 1 },
               0);
    device_end();
}
END_TEST

#ifndef STANDIN
/* A forked child of a process that has opened the device cannot use it. */
static bool
has_gpu(void)
{
    const LhDeviceParams params = { .kernel_set = CUDNN };
    g_autoptr(GError) error = NULL;
    LhDeviceState *opened = lh_device_cuda.open(&params, &error);

    if (opened == NULL) {
        fprintf(stderr, "skipped: %s\n", error->message);
        return false;
    }
    lh_device_cuda.close(opened);
    g_setenv("CK_FORK", "no", TRUE);
    return true;
}
#endif

int
main(void)
{
    Suite *suite = suite_create("cudnn");
    TCase *cases = tcase_create("cudnn");
    SRunner *runner = srunner_create(suite);
    int failed;

#ifndef STANDIN
    if (!has_gpu()) {
        suite_add_tcase(suite, cases);
        srunner_free(runner);
        return skip_test("there is no GPU here, or no cuDNN");
    }
#endif
    tcase_add_loop_test(cases, cudnn_attends, 0, G_N_ELEMENTS(sizes));
    tcase_add_loop_test(cases, cudnn_attends_by_position, 0, G_N_ELEMENTS(positions));
    tcase_add_loop_test(cases, cudnn_attends_on_extreme_inputs, NORMAL, VARIANTS);
    tcase_add_test(cases, cudnn_keeps_plans_apart);
    tcase_add_test(cases, cudnn_attends_on_odd_operands);
    tcase_add_test(cases, what_cudnn_does_not_compute_is_refused);
    suite_add_tcase(suite, cases);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
