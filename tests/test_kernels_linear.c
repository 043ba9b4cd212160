/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of linear attention against results known without a reference: differences, joined
 * chunks, carried states.
 */
#include "kernel_runs.h"
#include "run_tests.h"

/* Linear attention with an initial state: o and the final state; fp64 except the state. */
typedef struct {
    LhKernelArgs args;
    LhView q, kv, o, dout, dq, dkv, before, behind, dstate;
} Linear;

static LhView
filled(uint64_t count, enum lh_storage storage)
{
    const uint64_t bytes = count * lh_storage_bytes(storage);
    LhView view = { .data = g_malloc(bytes), .parts = 1, .part_bytes = bytes, .storage = storage };

    for (uint64_t i = 0; i < count; i++)
        lh_element_put(view.data, storage, i, normal());
    return view;
}

static void
linear_init(Linear *l, const LhKernelArgs *args, enum lh_storage storage)
{
    const uint64_t q = args->batch * args->nq * args->heads * args->head_dim;
    const uint64_t kv = 2 * args->batch * args->nk * args->groups * args->head_dim;
    const uint64_t state = (uint64_t)args->batch * args->heads * args->head_dim * args->head_dim;

    *l = (Linear){ *args,
                   filled(q, storage),
                   filled(kv, storage),
                   filled(q, storage),
                   filled(q, storage),
                   filled(q, storage),
                   filled(kv, storage),
                   filled(state, LH_STORAGE_FP32),
                   filled(state, LH_STORAGE_FP32),
                   filled(state, LH_STORAGE_FP32) };
}

static void
linear_clear(Linear *l)
{
    LhView *const views[] = { &l->q,   &l->kv,     &l->o,      &l->dout,  &l->dq,
                              &l->dkv, &l->before, &l->behind, &l->dstate };

    for (unsigned i = 0; i < G_N_ELEMENTS(views); i++)
        g_free(views[i]->data);
}

static void
call_linear(const char *name, Version version, const LhKernelArgs *args, bool first,
            const LhView *operands)
{
    const LhKernelId id = lh_kernel_find(name);
    LhKernelArgs of_call = *args;
    LhCall call = { .args = &of_call };

    of_call.first = first;
    for (unsigned i = 0; lh_kernels[id]->operands[i].access != LH_OPERAND_END; i++)
        call.operands[i] = operands[i];
    run_kernel(id, version, &call);
}

static void
linear_forward(const Linear *l, Version version)
{
    const LhKernelArgs *a = &l->args;

    call_linear("linear_intra", version, a, true, (const LhView[]){ l->q, l->kv, l->o });
    call_linear("linear_inter", version, a, false, (const LhView[]){ l->q, l->before, l->o });
    call_linear("linear_state", version, a, true, (const LhView[]){ l->kv, l->behind });
    {
        LhKernelArgs tokens = *a;

        tokens.nk = 0;
        call_linear("linear_carry", version, &tokens, false,
                    (const LhView[]){ l->before, l->behind });
    }
}

/* dq, dkv, and, in place, the gradient of the final state turned into that of the initial one. */
static void
linear_backward(const Linear *l, Version version)
{
    const LhKernelArgs *a = &l->args;

    call_linear("linear_intra_bwd", version, a, true,
                (const LhView[]){ l->q, l->dout, l->kv, l->dq, l->dkv });
    call_linear("linear_inter_bwd", version, a, false,
                (const LhView[]){ l->dout, l->before, l->dq });
    call_linear("linear_state_bwd", version, a, false,
                (const LhView[]){ l->kv, l->dstate, l->dkv });
    call_linear("linear_dstate", version, a, false, (const LhView[]){ l->q, l->dout, l->dstate });
}

static double
linear_loss(const Linear *l, const double *dstate)
{
    const uint64_t state = l->behind.part_bytes / sizeof(float);
    double sum = loss((const double *)(const void *)l->dout.data,
                      (const double *)(const void *)l->o.data, l->o.part_bytes / sizeof(double));

    for (uint64_t i = 0; i < state; i++)
        sum += dstate[i] * (double)((const float *)(const void *)l->behind.data)[i];
    return sum;
}

/* The loss is linear in every input, so differences over a step of 1 are exact. */
static void
check_linear_gradient(const Linear *l, const LhView *input, const LhView *gradient,
                      const double *dstate)
{
    for (uint64_t i = 0; i < input->part_bytes / lh_storage_bytes(input->storage); i++) {
        const double before = lh_element_get(input->data, input->storage, i);
        double low;

        linear_forward(l, REFERENCE);
        low = linear_loss(l, dstate);
        lh_element_put(input->data, input->storage, i, before + 1);
        linear_forward(l, REFERENCE);
        ck_assert_double_eq_tol(linear_loss(l, dstate) - low,
                                lh_element_get(gradient->data, gradient->storage, i), 5e-5);
        lh_element_put(input->data, input->storage, i, before);
    }
}

START_TEST(kernels_linear_gradient_is_difference)
{
    const LhKernelArgs args = { .nq = 4,
                                .nk = 4,
                                .batch = 1,
                                .heads = 4,
                                .groups = 2,
                                .head_dim = 3,
                                .mask = LH_MASK_CAUSAL,
                                .decay = 0.8 };
    double dstate[4 * 3 * 3];
    Linear l;

    linear_init(&l, &args, LH_STORAGE_FP64);
    for (unsigned i = 0; i < G_N_ELEMENTS(dstate); i++)
        dstate[i] = (double)((float *)(void *)l.dstate.data)[i];
    linear_backward(&l, REFERENCE);
    check_linear_gradient(&l, &l.q, &l.dq, dstate);
    check_linear_gradient(&l, &l.kv, &l.dkv, dstate);
    check_linear_gradient(&l, &l.before, &l.dstate, dstate);
    linear_clear(&l);
}
END_TEST

/* Two halves with the state carried between them equal the whole. */
static void
check_halves(void)
{
    LhKernelArgs args = plain_args;
    LhView parts[2][4];
    uint64_t row;
    Linear l;

    args.nq = args.nk = 130;
    args.mask = LH_MASK_CAUSAL;
    args.decay = 0.9;
    row = args.head_dim * sizeof(float);
    linear_init(&l, &args, LH_STORAGE_FP32);
    linear_forward(&l, FAST);
    args.nq /= 2;
    for (unsigned half = 0; half < 2; half++) {
        Linear part;

        linear_init(&part,
                    &(LhKernelArgs){ .nq = 65,
                                     .nk = 65,
                                     .batch = 1,
                                     .heads = args.heads,
                                     .groups = 1,
                                     .head_dim = args.head_dim,
                                     .mask = LH_MASK_CAUSAL,
                                     .decay = args.decay },
                    LH_STORAGE_FP32);
        memcpy(part.q.data, l.q.data + half * 65 * args.heads * row, 65 * args.heads * row);
        memcpy(part.kv.data, l.kv.data + half * 65 * row, 65 * row);
        memcpy(part.kv.data + 65 * row, l.kv.data + (130 + half * 65) * row, 65 * row);
        memcpy(part.before.data, half == 0 ? l.before.data : parts[0][0].data,
               part.before.part_bytes);
        linear_forward(&part, FAST);
        for (uint64_t i = 0; i < 65 * args.heads * args.head_dim; i++)
            ck_assert_double_eq_tol(
                (double)((float *)(void *)part.o.data)[i],
                (double)((float *)(void *)l.o.data)[half * 65 * args.heads * args.head_dim + i],
                1e-4);
        parts[half][0] = part.behind;
        part.behind.data = NULL;
        linear_clear(&part);
    }
    for (uint64_t i = 0; i < l.behind.part_bytes / sizeof(float); i++)
        ck_assert_double_eq_tol((double)((float *)(void *)parts[1][0].data)[i],
                                (double)((float *)(void *)l.behind.data)[i], 1e-4);
    g_free(parts[0][0].data);
    g_free(parts[1][0].data);
    linear_clear(&l);
}

START_TEST(kernels_linear_chunks_join)
{
    on_levels(check_halves);
}
END_TEST

/* Three states over five tokens each equal states carried one by one, from either side. */
START_TEST(kernels_linear_prefix_carries)
{
    enum { STATES = 3, SIZE = 2 * 3 * 4 * 4 };
    float states[STATES][SIZE], found[SIZE], carried[SIZE];

    for (unsigned i = 0; i < STATES * SIZE; i++)
        states[i / SIZE][i % SIZE] = (float)normal();
    for (unsigned side = 0; side < 2; side++) {
        const LhKernelArgs args = { .nk = side == 0 ? 5 : 0,
                                    .nq = side == 0 ? 0 : 5,
                                    .batch = 2,
                                    .heads = 3,
                                    .groups = 1,
                                    .head_dim = 4,
                                    .decay = 0.9,
                                    .states = STATES };
        LhCall call = { .args = &args,
                        .operands = { view_of(states, sizeof(found)),
                                      view_of(found, sizeof(found)) } };

        call.operands[0].parts = STATES;
        ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_linear_prefix]->fast(&call), LH_STATUS_OK);
        memcpy(carried, states[side == 0 ? 0 : 2], sizeof(carried));
        for (unsigned i = 1; i < STATES; i++) {
            float next[SIZE];

            memcpy(next, states[side == 0 ? i : 2 - i], sizeof(next));
            call.operands[0] = view_of(carried, sizeof(carried));
            call.operands[1] = view_of(next, sizeof(next));
            ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_linear_carry]->fast(&call), LH_STATUS_OK);
            memcpy(carried, next, sizeof(carried));
        }
        for (unsigned k = 0; k < SIZE; k++)
            ck_assert_double_eq_tol((double)found[k], (double)carried[k], 1e-6);
    }
}
END_TEST

LH_TEST_MAIN("kernels_linear", kernels_linear_gradient_is_difference, kernels_linear_chunks_join,
             kernels_linear_prefix_carries)
