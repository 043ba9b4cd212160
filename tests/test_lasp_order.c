/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear attention on 64 A100 of the LASP paper's cluster (arXiv 2404.02882),
 * scenarios/lasp-64.json: the fastest schedule by length, in a single module and in as many modules
 * as TNL-1B has layers. docs/results/accuracy.md shows the numbers; the tables lasp_claims and
 * lasp_figure4 compare with the paper's whole training steps.
 */
#include "compare/compare.h"
#include "recording.h"
#include "run_tests.h"
#include "scenario/setting.h"
#include "share.h"

enum {
    LASP,
    LASP2,
    ZECO,
    ULYSSES,
    MEGATRON,
    SCHEDULES,
};

#define LAYERS 16 /* of TNL-1B */

static const char *const lengths[] = { "4K", "16K", "64K", "256K", "1M", "4M" };

typedef enum {
    PADDED,  /* TNL-1B: 16 heads of 128, padded to 64 where every rank needs one */
    DIVIDED, /* the same width in 64 heads of 32 */
} Shape;

typedef struct {
    LhScenario *scenario;
    LhSetup *setup;
} Case;

static void
set(const Case *c, const char *option, const char *text)
{
    const LhField *field = lh_setting_find(lh_scenario_options(), option);

    ck_assert(lh_scenario_set(c->scenario, field, text, NULL));
}

static void
case_init(Case *c, Shape shape, const char *length, const char *pass)
{
    g_autoptr(GError) error = NULL;

    c->scenario = lh_scenario_load("lasp-64", &error);
    ck_assert_msg(c->scenario != NULL, "%s", error != NULL ? error->message : "");
    set(c, "--seq-length", length);
    set(c, "--pass", pass);
    if (shape == DIVIDED) {
        set(c, "--num-attention-heads", "64");
        set(c, "--kv-channels", "32");
    }
    c->setup = lh_setup_new(c->scenario, &error);
    ck_assert_msg(c->setup != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_eq(c->setup->schedules->len, SCHEDULES);
    ck_assert_uint_eq(c->setup->params.ranks, 64);
}

static void
case_clear(Case *c)
{
    lh_setup_free(c->setup);
    lh_scenario_free(c->scenario);
}

static LhProgram *
make(const Case *c, unsigned schedule)
{
    g_autoptr(GError) error = NULL;
    LhProgram *program =
        lh_program_new(g_ptr_array_index(c->setup->schedules, schedule), &c->setup->params, &error);

    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    return program;
}

static LhSimResult *
simulate(const Case *c, const LhProgram *program)
{
    g_autoptr(GError) error = NULL;
    LhSimResult *result = lh_setup_simulate(c->setup, program, NULL, NULL, NULL, &error);

    ck_assert_msg(result != NULL, "%s", error != NULL ? error->message : "");
    return result;
}

/* One module: time in milliseconds, and bytes sent by a middle rank. */
static void
play(Shape shape, const char *length, double ms[SCHEDULES], uint64_t bytes[SCHEDULES])
{
    Case c;

    case_init(&c, shape, length, "both");
    for (unsigned s = 0; s < SCHEDULES; s++) {
        g_autoptr(LhProgram) program = make(&c, s);
        g_autoptr(LhSimResult) result = simulate(&c, program);

        ms[s] = (double)result->makespan_ps / 1e9;
        bytes[s] = result->ranks[31].bytes_sent;
    }
    case_clear(&c);
}

/* Repeats the recording's ops, @times times in all. */
static void
repeat(Recording *r, uint32_t times)
{
    for (uint32_t rank = 0; rank < r->program.params.ranks; rank++) {
        const uint32_t count = recording_count(r, rank), parts = r->parts[rank]->len;
        const uint32_t counts = r->counts[rank]->len;

        for (uint32_t i = count; i < times * count; i++) {
            LhOp op = *recording_op(r, rank, i - count);

            op.id += count;
            for (uint32_t k = 0; k < op.after_count; k++)
                op.after[k] += count;
            if (op.kind == LH_OP_EXCHANGE)
                op.exchange.parts_first += parts;
            if (op.kind == LH_OP_COLLECTIVE && op.collective.uneven)
                op.collective.counts_first += counts;
            g_array_append_val(r->ops[rank], op);
        }
        for (uint32_t i = parts; i < times * parts; i++) {
            const LhPart part = g_array_index(r->parts[rank], LhPart, i - parts);

            g_array_append_val(r->parts[rank], part);
        }
        for (uint32_t i = counts; i < times * counts; i++) {
            const uint32_t number = g_array_index(r->counts[rank], uint32_t, i - counts);

            g_array_append_val(r->counts[rank], number);
        }
    }
}

/* Time of one pass of as many modules as the model has layers, with nothing between them. */
static double
layers_ms(const Case *c, unsigned schedule)
{
    g_autoptr(LhProgram) program = make(c, schedule);
    Recording *recording = recording_new(program);
    g_autoptr(LhSimResult) result = NULL;

    repeat(recording, LAYERS);
    result = simulate(c, &recording->program);
    recording_free(recording);
    return (double)result->makespan_ps / 1e9;
}

/* All forward passes, then all backward passes. */
static void
play_layers(Shape shape, const char *length, double ms[SCHEDULES])
{
    Case forward, backward;

    case_init(&forward, shape, length, "fwd");
    case_init(&backward, shape, length, "bwd");
    for (unsigned s = 0; s < SCHEDULES; s++)
        ms[s] = layers_ms(&forward, s) + layers_ms(&backward, s);
    case_clear(&forward);
    case_clear(&backward);
}

/* A state has 4 bytes per element, h d^2 elements. The other schedules send the activations of n
 * tokens, including padded heads. */
START_TEST(lasp_sends_the_same_at_any_length)
{
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(lengths); i++) {
        const Shape shape = i % 2 == 0 ? PADDED : DIVIDED;
        const uint64_t state = 4 * (shape == PADDED ? 16 * 128 * 128 : 64 * 32 * 32);
        const uint64_t n = (UINT64_C(4096) << i / 2 * 2) / 64;
        const uint64_t q = n * 2 * (shape == PADDED ? 64 * 128 : 64 * 32), x = n * 2 * 2048;
        uint64_t bytes[SCHEDULES];
        double ms[SCHEDULES];

        play(shape, lengths[i / 2], ms, bytes);
        ck_assert_uint_eq(bytes[LASP], 2 * state);
        ck_assert_uint_eq(bytes[ZECO], 2 * state);
        ck_assert_uint_eq(bytes[LASP2], 2 * 63 * state);
        ck_assert_uint_eq(bytes[ULYSSES], 2 * 4 * q / 64 * 63);
        ck_assert_uint_eq(bytes[MEGATRON], 5 * 63 * x);
    }
}
END_TEST

/* From 64K on LASP's family is ahead of the schedules that need padded heads; below that, a chain
 * of 126 hops is slower than four exchanges. Megatron, whose rings between servers are slow on this
 * cluster, is last at all lengths. */
START_TEST(one_module_is_in_the_order_of_the_paper)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(lengths); i++) {
        uint64_t bytes[SCHEDULES];
        double ms[SCHEDULES];

        play(PADDED, lengths[i], ms, bytes);
        ck_assert((ms[LASP] < ms[ULYSSES]) == (i >= 2));
        ck_assert((MIN(ms[LASP2], ms[ZECO]) < ms[ULYSSES]) == (i >= 1));
        ck_assert_double_lt(ms[ULYSSES], ms[MEGATRON]);
        ck_assert_double_lt(ms[LASP], ms[MEGATRON]);
        ck_assert_double_lt(MIN(ms[LASP2], ms[ZECO]), ms[LASP]);
    }
}
END_TEST

/*
 * Divisible heads are the best case for Ulysses. In a single module, which exposes the chain's
 * whole length, both are equally fast at 256K, and Ulysses is ahead below that.
 */
START_TEST(one_module_of_heads_that_divide_is_a_tie)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(lengths); i++) {
        uint64_t bytes[SCHEDULES];
        double ms[SCHEDULES];

        play(DIVIDED, lengths[i], ms, bytes);
        ck_assert((ms[LASP] < ms[ULYSSES]) == (i >= 4));
        ck_assert((ms[ZECO] < ms[ULYSSES]) == (i >= 2));
        ck_assert_double_lt(ms[ULYSSES], ms[MEGATRON] / 5);
        if (i == 3)
            ck_assert_double_lt(ms[LASP], 1.1 * ms[ULYSSES]);
    }
}
END_TEST

/* Consecutive layers form a wavefront along the chain, whose latency is paid once: the paper's
 * order at all lengths, with any heads. */
START_TEST(layers_are_in_the_order_of_the_paper)
{
    /* The shortest, 256K and the longest. */
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(lengths); i++) {
        double ms[SCHEDULES];

        if ((i / 2 != 0 && i / 2 != 3 && i / 2 != 5) || !test_takes_of(i, 6))
            continue;
        play_layers(i % 2 == 0 ? PADDED : DIVIDED, lengths[i / 2], ms);
        ck_assert_double_lt(ms[LASP], ms[ULYSSES]);
        ck_assert_double_lt(ms[ULYSSES], ms[MEGATRON]);
        if (i / 2 == 3)
            ck_assert_double_lt(ms[LASP], ms[ULYSSES] / 5);
    }
}
END_TEST

LH_TEST_MAIN("lasp_order", lasp_sends_the_same_at_any_length,
             one_module_is_in_the_order_of_the_paper, one_module_of_heads_that_divide_is_a_tie,
             layers_are_in_the_order_of_the_paper)
