/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bound of the time of the first stream: a hand-worked program, and random ones, whose bounds
 * are at most the time of the stream when every op starts as early as it can.
 */
#include "sim/lower_bound/stream_lower_bound.h"

#include "base/rng.h"
#include "run_tests.h"
#include "share.h"

#define SEED 90
#define PROGRAMS 20000
#define OPS 24
#define STREAMS 3

typedef struct {
    uint8_t stream;
    uint16_t layer;
    LhTime takes_ps;
    uint32_t after; /* LH_OP_NONE: none */
} Step;

static LhOp
op_of(const Step *step, uint32_t id)
{
    return (LhOp){ .id = id,
                   .stream = step->stream,
                   .layer = step->layer,
                   .after_count = step->after != LH_OP_NONE,
                   .after = { step->after } };
}

/* Sets what each op adds to the bound; returns the sum. */
static LhTime
bound_of(const Step *steps, uint32_t count, LhTime *grown_ps)
{
    LhStreamBound bound;
    LhTime sum_ps = 0;

    lh_stream_bound_init(&bound);
    for (uint32_t i = 0; i < count; i++) {
        const LhOp op = op_of(&steps[i], i);

        grown_ps[i] = lh_stream_bound_add(&bound, &op, steps[i].takes_ps, op.stream != 2);
        sum_ps += grown_ps[i];
    }
    lh_stream_bound_clear(&bound);
    return sum_ps;
}

/* Gradients of layers 2 and 1 are reduced (stream 1) after the kernels, each behind the
 * accumulation of the one before. The stream waits for both reductions, though the op that shows
 * the cut between the layers comes after the second has begun. Stream 2 is not awaited. */
START_TEST(reductions_before_a_cut_are_waited_for)
{
    const Step steps[] = {
        { 0, 2, 10, LH_OP_NONE }, { 0, 1, 20, LH_OP_NONE }, { 1, 2, 7, 1 },  { 0, 2, 3, 2 },
        { 1, 1, 8, 3 },           { 0, 1, 4, 4 },           { 2, 1, 50, 5 }, { 0, 1, 1, 6 },
    };
    const LhTime wanted_ps[] = { 10, 20, 0, 7 + 3, 0, 8 + 4, 0, 1 };
    LhTime grown_ps[G_N_ELEMENTS(steps)];

    bound_of(steps, G_N_ELEMENTS(steps), grown_ps);
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++)
        ck_assert_int_eq(grown_ps[i], wanted_ps[i]);
}
END_TEST

/* A reduction that does not follow the last op before the cut may have run beside it. Even if it is
 * longer, it does not count: no chain crosses a cut, so that equal layers add equal amounts. */
START_TEST(reductions_beside_a_kernel_are_not)
{
    const Step steps[] = {
        { 0, 2, 10, LH_OP_NONE }, { 0, 1, 20, LH_OP_NONE }, { 1, 2, 25, 0 }, { 0, 2, 3, 2 }
    };
    LhTime grown_ps[G_N_ELEMENTS(steps)];

    bound_of(steps, G_N_ELEMENTS(steps), grown_ps);
    ck_assert_int_eq(grown_ps[3], 3);
}
END_TEST

/* End of the first stream if every op starts as soon as its stream and its `after` allow. */
static LhTime
run(const Step *steps, uint32_t count)
{
    LhTime ends_ps[OPS], stream_ps[STREAMS] = { 0 };

    for (uint32_t i = 0; i < count; i++) {
        const Step *s = &steps[i];
        const LhTime after_ps = s->after == LH_OP_NONE ? 0 : ends_ps[s->after];

        ends_ps[i] = MAX(stream_ps[s->stream], after_ps) + s->takes_ps;
        stream_ps[s->stream] = ends_ps[i];
    }
    return stream_ps[0];
}

START_TEST(bounds_are_at_most_the_time)
{
    uint32_t waits = 0;

    for (uint64_t number = 0; number < PROGRAMS; number++) {
        Step steps[OPS];
        LhTime grown_ps[OPS], kernels_ps = 0, bound_ps;

        if (!test_takes(number))
            continue;
        for (uint32_t i = 0; i < OPS; i++) {
            const uint64_t bits = lh_rng_bits(SEED, number, i);

            steps[i] = (Step){ .stream = (uint8_t)(bits % 5 < 3 ? 0 : bits % 5 - 2),
                               .layer = (uint16_t)(bits >> 8 & 1),
                               .takes_ps = (LhTime)(bits >> 16 & 15),
                               .after = i > 0 && (bits >> 24 & 3) != 0
                                            ? i - 1 - (uint32_t)(bits >> 32) % MIN(i, 4)
                                            : LH_OP_NONE };
            kernels_ps += steps[i].stream == 0 ? steps[i].takes_ps : 0;
        }
        bound_ps = bound_of(steps, OPS, grown_ps);
        ck_assert_int_ge(bound_ps, kernels_ps);
        ck_assert_int_le(bound_ps, run(steps, OPS));
        waits += bound_ps > kernels_ps;
    }
    ck_assert_uint_gt(waits, 0);
}
END_TEST

LH_TEST_MAIN("stream_bound", reductions_before_a_cut_are_waited_for,
             reductions_beside_a_kernel_are_not, bounds_are_at_most_the_time)
