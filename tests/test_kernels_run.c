/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels on data: every fast version on every instruction level of this CPU against its reference
 * in fp64; the pairs of masks by position; conversions; rejected calls. test_kernels_answers.c and
 * test_kernels_linear.c compare with results known without a reference.
 */
#include "kernel_compare.h"
#include "kernel_shapes.h"
#include "run_tests.h"
#include "share.h"

static double
tolerance(const Run *r, unsigned operand)
{
    const Case *c = r->c;
    const enum lh_storage storage = r->call.operands[operand].storage;
    const double by_storage[] = { [LH_STORAGE_FP32] = 1e-5,
                                  [LH_STORAGE_BF16] = 4e-3,
                                  [LH_STORAGE_FP16] = 1e-3,
                                  [LH_STORAGE_FP64] = 1e-12,
                                  [LH_STORAGE_INT8] = 1e-3 };

    ck_assert_uint_lt(storage, G_N_ELEMENTS(by_storage));
    /* Logits of 80 and more have an absolute error of their last digit. */
    return by_storage[storage] * (c->variant == LOGITS_20 && storage == LH_STORAGE_FP32 ? 3 : 1);
}

/* Runs the reference and all levels; each level twice, with identical bits. */
static void
check_case(const Case *c)
{
    Run input, want, got, again;

    run_init(&input, c);
    run_copy(&want, &input);
    run_kernel(want.id, REFERENCE, &want.call);
    for (const LhCpuLevel *const *level = lh_cpu_levels; *level != NULL; level++) {
        if (!lh_cpu_set(*level))
            continue;
        run_copy(&got, &input);
        run_copy(&again, &input);
        run_kernel(got.id, FAST, &got.call);
        run_kernel(again.id, FAST, &again.call);
        compare(&got, &want, (*level)->name, tolerance);
        for (unsigned i = 0; i < got.count; i++)
            ck_assert_mem_eq(got.call.operands[i].data, again.call.operands[i].data, got.bytes[i]);
        run_clear(&got);
        run_clear(&again);
    }
    lh_cpu_set(NULL);
    run_clear(&want);
    run_clear(&input);
}

static void
check_shape(const Case *shape, const char *name)
{
    each_case(shape, name, check_case);
}

/* Every kernel runs with each type, though possibly on one shape only. */
static void
check_kernels(enum lh_storage storage)
{
    for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
        for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
            Case c = shapes[s];

            c.storage = storage;
            if (lh_kernels[k]->args == LH_ARGS_ATTENTION &&
                test_takes_of(s + k + storage, G_N_ELEMENTS(shapes)))
                check_shape(&c, lh_kernels[k]->name);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(others); i++) {
        for (unsigned narrow = 0; narrow < 2; narrow++) {
            Case c = others[i];

            c.storage = storage;
            c.narrow = narrow != 0;
            if (test_takes_of(i + 2 * storage + narrow, 7))
                check_case(&c);
        }
    }
}

#define COPY_PARTS 3U
#define COPY_BYTES 10U
#define COPY_GAP 6U /* behind each part of the source */

/* Copies between device and host move whole parts and nothing beside them. */
START_TEST(copies)
{
    static const LhKernelId kernels[] = { LH_KERNEL_ID_to_host, LH_KERNEL_ID_from_host };

    for (unsigned i = 0; i < G_N_ELEMENTS(kernels); i++) {
        unsigned char from[COPY_PARTS * (COPY_BYTES + COPY_GAP)], to[COPY_PARTS * COPY_BYTES + 1];
        LhKernelArgs args = { .copy = { COPY_PARTS * COPY_BYTES, 4 } };
        const LhCall call = {
            .args = &args,
            .operands = { { .data = from,
                            .parts = COPY_PARTS,
                            .part_bytes = COPY_BYTES + COPY_GAP,
                            .held_bytes = COPY_BYTES },
                          { .data = to, .parts = COPY_PARTS, .part_bytes = COPY_BYTES } },
        };

        for (unsigned k = 0; k < sizeof(from); k++)
            from[k] = (unsigned char)(k + 1);
        memset(to, 0, sizeof(to));
        ck_assert_int_eq(lh_cpu_kernels[kernels[i]]->fast(&call), LH_STATUS_OK);
        for (unsigned k = 0; k < COPY_PARTS * COPY_BYTES; k++)
            ck_assert_uint_eq(to[k], k / COPY_BYTES * (COPY_BYTES + COPY_GAP) + k % COPY_BYTES + 1);
        ck_assert_uint_eq(to[COPY_PARTS * COPY_BYTES], 0);
        args.copy.bytes--;
        ck_assert_int_eq(lh_cpu_kernels[kernels[i]]->fast(&call), LH_STATUS_UNSUPPORTED);
    }
}
END_TEST

/* Attention kernels are run by shape, kernels outside attention are not; copies above. */
START_TEST(kernels_are_all_run)
{
    for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
        bool run = lh_kernels[k]->args == LH_ARGS_ATTENTION ||
                   lh_kernels[k]->args == LH_ARGS_NONE || lh_kernels[k]->args == LH_ARGS_COPY;

        for (unsigned i = 0; i < G_N_ELEMENTS(others); i++)
            run |= strcmp(others[i].kernel, lh_kernels[k]->name) == 0;
        ck_assert_msg(run, "%s is not run", lh_kernels[k]->name);
    }
}
END_TEST

START_TEST(kernels_run_fp32)
{
    check_kernels(LH_STORAGE_FP32);
}
END_TEST

START_TEST(kernels_run_bf16)
{
    check_kernels(LH_STORAGE_BF16);
}
END_TEST

START_TEST(kernels_run_fp16)
{
    check_kernels(LH_STORAGE_FP16);
}
END_TEST

START_TEST(kernels_run_on_extreme_inputs)
{
    const char *const names[] = { "attention", "attention_fwd", "attention_block", "attention_bwd",
                                  "attention_bwd_o" };

    for (unsigned variant = LOGITS_4; variant < VARIANTS; variant++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(names); k++) {
            Case c = shapes[0];

            c.variant = (enum variant)variant;
            c.args.nq = c.args.nk = 90;
            c.args.mask = k % 2 == 0 ? LH_MASK_CAUSAL : LH_MASK_FULL;
            check_shape(&c, names[k]);
            c.storage = LH_STORAGE_BF16;
            check_shape(&c, names[k]);
        }
    }
}
END_TEST

/* ---- masks by position ---- */

START_TEST(kernels_run_under_masks_by_position)
{
    const char *const names[] = { "attention", "attention_fwd", "attention_block", "attention_bwd",
                                  "attention_bwd_o" };
    unsigned turn = 0;

    for (unsigned l = 0; l < G_N_ELEMENTS(layouts); l++) {
        for (unsigned r = 0; r < G_N_ELEMENTS(rules); r++) {
            for (unsigned k = 0; k < G_N_ELEMENTS(names); k++, turn++) {
                Case c = positions_case(names[k], &layouts[l], &rules[r]);

                if (!test_takes_of(turn, 19))
                    continue;
                c.storage = (enum lh_storage)(turn % 3);
                c.narrow = turn % 2 != 0;
                c.one_key = rules[r].window == 1;
                check_shape(&c, names[k]);
            }
        }
    }
}
END_TEST

static uint64_t
position_of(const LhRowsPosition *at, uint64_t stride, uint64_t part_rows, uint64_t row)
{
    uint64_t position = (uint64_t)at->start;

    for (; row >= part_rows; row -= part_rows)
        position += (uint64_t)at->part_step;
    return position + row * stride;
}

/* With q = 0 every visible key has the same weight: o is the mean of their values, lse the
 * logarithm of their number, and with do = 1 dv is the sum of the weights. */
static void
check_equal_weights(const Layout *l, const LhMaskRule *rule)
{
    const Case c = positions_case("attention_bwd_o", l, rule);
    const LhKernelArgs *a = &c.args;
    g_autofree double *weights = g_new0(double, a->nk);
    LhRows q, dout, o, lse, v, dv;
    Run r;

    run_init(&r, &c);
    q = lh_rows_q(&r.call, 0);
    dout = lh_rows_q(&r.call, 1);
    o = lh_rows_q(&r.call, 2);
    lse = lh_rows_stat(&r.call, 3);
    v = lh_rows_v(&r.call, 4);
    dv = lh_rows_v(&r.call, 6);
    memset(q.data, 0, r.bytes[0]);
    for (uint64_t i = 0; i < a->nq * a->heads * a->head_dim; i++)
        ((float *)(void *)dout.data)[i] = 1;
    derive_inputs(&r);
    run_kernel(r.id, REFERENCE, &r.call);
    for (uint64_t i = 0; i < a->nq; i++) {
        const uint64_t at = position_of(&l->q_at, l->stride, l->q_rows, i);
        uint64_t seen = 0;
        double sum = 0;

        for (unsigned again = 0; again < 2; again++) {
            for (uint64_t j = 0; j < a->nk; j++) {
                if (!lh_mask_sees(rule, at, position_of(&l->k_at, l->stride, l->k_rows, j)))
                    continue;
                if (again)
                    weights[j] += a->heads / (double)seen;
                else
                    sum += (double)*(float *)lh_rows_at(&v, 0, j, 0), seen++;
            }
        }
        ck_assert_double_eq_tol((double)*(float *)lh_rows_at(&o, 0, i, 1),
                                seen > 0 ? sum / (double)seen : 0, 1e-6);
        if (seen == 0)
            ck_assert(*lh_stat_at(&lse, 0, i, 1) == -INFINITY);
        else
            ck_assert_double_eq_tol((double)*lh_stat_at(&lse, 0, i, 1), log((double)seen), 1e-6);
    }
    for (uint64_t j = 0; j < a->nk; j++)
        ck_assert_double_eq_tol((double)*(float *)lh_rows_at(&dv, 0, j, 0), weights[j], 1e-5);
    run_clear(&r);
}

START_TEST(kernels_see_what_the_rule_allows)
{
    for (unsigned l = 0; l < G_N_ELEMENTS(layouts); l++) {
        for (unsigned r = 0; r < G_N_ELEMENTS(rules); r++)
            check_equal_weights(&layouts[l], &rules[r]);
    }
}
END_TEST

/* ---- conversions ---- */

/* Every 16-bit number survives conversion to fp32; others round to nearest even. */
START_TEST(kernels_convert_exactly)
{
    for (uint32_t i = 0; i < 65536; i++) {
        const float b = lh_bf16_to_float((uint16_t)i), h = lh_fp16_to_float((uint16_t)i);

        if (!isnan(b))
            ck_assert_uint_eq(lh_bf16_from_float(b), i);
        if (!isnan(h))
            ck_assert_uint_eq(lh_fp16_from_float(h), i);
        if (isfinite(h) && (i & 0x7fff) < 0x7bff && (i & 0x8000) == 0) {
            const float next = lh_fp16_to_float((uint16_t)(i + 1)), middle = (h + next) / 2;

            ck_assert_uint_eq(lh_fp16_from_float(middle), i + (i & 1));
            ck_assert_uint_eq(lh_fp16_from_float(nextafterf(middle, h)), i);
            ck_assert_uint_eq(lh_fp16_from_float(nextafterf(middle, next)), i + 1);
        }
    }
    ck_assert_uint_eq(lh_bf16_from_float(1.00390625F), 0x3f80); /* ties to even */
    ck_assert_uint_eq(lh_bf16_from_float(1.01171875F), 0x3f82);
    ck_assert(isnan(lh_bf16_to_float(lh_bf16_from_float(NAN))));
    ck_assert(isnan(lh_fp16_to_float(lh_fp16_from_float(NAN))));
    ck_assert_uint_eq(lh_fp16_from_float(65519), 0x7bff);
    ck_assert_uint_eq(lh_fp16_from_float(65520), 0x7c00);
}
END_TEST

/* Identical bits on all levels, at lengths around the vector lengths. */
static void
check_conversion(void)
{
    for (uint64_t count = 0; count < 40; count++) {
        float source[40], back[40];
        uint16_t bf16[40], fp16[40];

        for (uint64_t i = 0; i < count; i++)
            source[i] = (float)(normal() * exp(8 * normal()));
        lh_cpu()->from_fp32(bf16, LH_STORAGE_BF16, source, count);
        lh_cpu()->from_fp32(fp16, LH_STORAGE_FP16, source, count);
        for (uint64_t i = 0; i < count; i++) {
            ck_assert_uint_eq(bf16[i], lh_bf16_from_float(source[i]));
            ck_assert_uint_eq(fp16[i], lh_fp16_from_float(source[i]));
        }
        lh_cpu()->to_fp32(back, fp16, LH_STORAGE_FP16, count);
        for (uint64_t i = 0; i < count; i++)
            ck_assert(back[i] == lh_fp16_to_float(fp16[i]));
    }
}

START_TEST(kernels_convert_the_same_on_levels)
{
    on_levels(check_conversion);
}
END_TEST

#define SUMMED 1300 /* more than a block of the kernel, and not a multiple */

/* Sums are computed in fp32 in the order of the terms and rounded once, for any terms. */
static void
check_sum(void)
{
    const enum lh_storage storages[] = { LH_STORAGE_FP32, LH_STORAGE_BF16, LH_STORAGE_FP16,
                                         LH_STORAGE_FP64 };

    for (unsigned s = 0; s < G_N_ELEMENTS(storages); s++) {
        _Alignas(8) unsigned char data[3][8 * SUMMED], sum[8 * SUMMED];
        const unsigned char *terms[3] = { data[0], data[1], data[2] };

        for (unsigned k = 0; k < 3; k++)
            for (uint64_t i = 0; i < SUMMED; i++)
                lh_element_put(data[k], storages[s], i, normal() * exp(4 * normal()));
        lh_element_put(data[0], storages[s], 7, INFINITY);
        lh_element_put(data[1], storages[s], 7, -INFINITY);
        for (uint32_t count = 1; count <= 3; count++) {
            lh_elements_sum(terms, count, storages[s], SUMMED, sum);
            for (uint64_t i = 0; i < SUMMED; i++) {
                float want = (float)lh_element_get(data[0], storages[s], i);
                _Alignas(8) unsigned char rounded[8];

                for (uint32_t k = 1; k < count; k++)
                    want += (float)lh_element_get(data[k], storages[s], i);
                lh_element_put(rounded, storages[s], 0, (double)want);
                ck_assert(isnan(want) ? isnan(lh_element_get(sum, storages[s], i))
                                      : lh_element_get(sum, storages[s], i) ==
                                            lh_element_get(rounded, storages[s], 0));
            }
        }
    }
}

START_TEST(kernels_sum_in_order)
{
    on_levels(check_sum);
}
END_TEST

/* ---- rejected calls ---- */

/* Every row has both versions; parts that do not divide the rows are rejected and outputs stay
 * untouched. */
START_TEST(kernels_refuse_what_they_cannot)
{
    float o[12] = { 0 };
    const LhKernelArgs args = { .nq = 3, .batch = 1, .heads = 1, .groups = 1, .head_dim = 4 };
    const LhCall call = { .args = &args,
                          .operands = {
                              { .data = (unsigned char *)o, .parts = 2, .part_bytes = 24 },
                              { .data = (unsigned char *)o, .parts = 2, .part_bytes = 24 } } };

    for (unsigned i = 0; i < LH_KERNELS_COUNT; i++) {
        ck_assert(lh_cpu_kernels[i]->reference != NULL);
        ck_assert(lh_cpu_kernels[i]->fast != NULL);
    }
    ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_copy]->fast(&call), LH_STATUS_UNSUPPORTED);
    ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_merge]->fast(&call), LH_STATUS_UNSUPPORTED);
    ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_zero]->reference(&call), LH_STATUS_UNSUPPORTED);
}
END_TEST

/* An empty accumulator has m = -inf and l = 0. */
START_TEST(kernels_zero_makes_empty_accumulators)
{
    float acc[4 + 2] = { 1, 1, 1, 1, 1, 1 };
    const LhKernelArgs args = { .nq = 1, .batch = 1, .heads = 1, .groups = 1, .head_dim = 4 };
    const LhCall call = { .args = &args,
                          .operands = {
                              { .data = (unsigned char *)acc, .parts = 1, .part_bytes = 24 } } };

    ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_zero]->fast(&call), LH_STATUS_OK);
    ck_assert(acc[0] == 0 && acc[3] == 0 && acc[4] == -INFINITY && acc[5] == 0);
}
END_TEST

/* Each test draws the same numbers whether or not others ran before it in the process. */
static void
draw_afresh(void)
{
    drawn = 0;
}

LH_TEST_MAIN_AFTER(draw_afresh, "kernels_run", copies, kernels_are_all_run, kernels_run_fp32,
                   kernels_run_bf16, kernels_run_fp16, kernels_run_on_extreme_inputs,
                   kernels_run_under_masks_by_position, kernels_see_what_the_rule_allows,
                   kernels_convert_exactly, kernels_convert_the_same_on_levels,
                   kernels_sum_in_order, kernels_refuse_what_they_cannot,
                   kernels_zero_makes_empty_accumulators)
