/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor runs every schedule: results are compared with fp64 attention of the whole sequence,
 * counters with the verifier and the simulator.
 */
#include "running.h"
#include "sched/common/grid.h"
#include "share.h"

static void
check_errors(const Case *c, const LhExecuted *executed)
{
    const bool fp32 = c->wanted.attention.dtype == LH_DTYPE_FP32;
    g_autofree char *text = text_of(c);

    ck_assert_uint_gt(executed->errors.rows_count, 0);
    for (uint32_t i = 0; i < executed->errors.rows_count; i++) {
        const LhErrorRow *row = &executed->errors.rows[i];

        ck_assert_msg(row->ok, "%s: %s: rel L2 %g, in units %g, worst row %g", text, row->name,
                      row->rel_l2, row->mean, row->row);
        /* Within 1e-5 of one fp64 result at every P, so results of any two P are within 2e-5 of
         * each other: P-invariance. */
        if (fp32 && c->inputs == LH_INPUTS_NORMAL)
            ck_assert_msg(row->rel_l2 < 1e-5, "%s: %s: rel L2 %g in fp32", text, row->name,
                          row->rel_l2);
    }
    ck_assert_msg(executed->counts_ok,
                  "%s: bytes %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT
                  ", flops %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT
                  ", peak %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
                  text, executed->bytes_sent.counted, executed->bytes_sent.verified,
                  executed->bytes_sent.simulated, executed->flops.counted, executed->flops.verified,
                  executed->flops.simulated, executed->peak_bytes.counted,
                  executed->peak_bytes.verified, executed->peak_bytes.simulated);
    ck_assert(executed->same_bits);
}

/* Returns false if the schedule refuses the case. */
static bool
passes(const Case *c)
{
    g_autoptr(LhProgram) program = program_of(c);
    g_autoptr(LhExecuted) executed = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = text_of(c);

    if (program == NULL)
        return false;
    executed = run_program(c, program, &error);
    ck_assert_msg(executed != NULL, "%s: %s", text, error != NULL ? error->message : "");
    check_errors(c, executed);
    return true;
}

/* ---- every schedule; the tests below get its index ---- */

static const uint32_t rank_counts[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16 };

/* All parameters but schedule and ranks cycle through lists of coprime lengths: the ones below
 * and those of a Case. */
static const uint32_t shapes[][3] = {
    /* Multi-head, grouped 4:1, one key-value head; head sizes that do not fill a tile. */
    { 2, 2, 64 }, { 8, 2, 80 }, { 3, 1, 96 }, { 4, 1, 128 }, { 8, 2, 72 },
};
static const LhDtype dtypes[] = { LH_DTYPE_BF16, LH_DTYPE_FP32, LH_DTYPE_FP16 };
static const struct {
    bool full;
    unsigned window;
    bool documents;
} masks[] = {
    { false, 0, false }, { true, 0, false },  { false, 17, false }, { false, 0, true },
    { true, 0, true },   { false, 11, true }, { false, 0, false },
};

#define KERNEL_SETS 2 /* of lh_device_cpu */
#define MANY_RANKS 8
#define TOKENS 72 /* approximately */

static Case
turn_case(const LhSchedule *schedule, uint32_t ranks, unsigned turn)
{
    const uint32_t *shape = shapes[turn % G_N_ELEMENTS(shapes)];
    const unsigned mask = turn % G_N_ELEMENTS(masks);
    const uint64_t tokens = 2 * MAX(1, (TOKENS / 2 + turn % 11) / ranks); /* per rank */

    return (Case){
        .schedule = schedule,
        .wanted = { .attention = { .batch = 1 + turn % 13 / 10,
                                   .seq_length = tokens * ranks,
                                   .heads = shape[0],
                                   .groups = shape[1],
                                   /* Schedules that split heads need some for every rank. */
                                   .head_dim = shape[2] / (ranks == 1           ? 1
                                                           : ranks < MANY_RANKS ? 2
                                                                                : 4),
                                   .dtype = dtypes[turn % G_N_ELEMENTS(dtypes)] },
                    .ranks = ranks,
                    .mask = { .causal = !masks[mask].full,
                              .window = (schedule->masks & LH_MASKS_WINDOW) != 0
                                            ? masks[mask].window
                                            : 0 },
                    .pass = LH_PASS_BOTH },
        .documents = masks[mask].documents && (schedule->masks & LH_MASKS_DOCUMENTS) != 0,
        .kernel_set = turn % KERNEL_SETS,
    };
}

/* Some schedules do not support the full mask. */
static bool
passes_turn(const LhSchedule *schedule, uint32_t ranks, unsigned turn)
{
    Case c = turn_case(schedule, ranks, turn);

    if (passes(&c))
        return true;
    c.wanted.mask.causal = true;
    return passes(&c);
}

START_TEST(runtime_at_every_number_of_ranks)
{
    const LhSchedule *schedule = lh_schedules[_i];

    for (unsigned r = 0; r < G_N_ELEMENTS(rank_counts); r++) {
        const uint32_t ranks = rank_counts[r];
        const bool ran = !test_takes_of(r + (unsigned)_i, 23) ||
                         passes_turn(schedule, ranks, (unsigned)_i * 3 + r);

        ck_assert_msg(ran || (ranks & (ranks - 1)) != 0, "%s refuses %u ranks", schedule->name,
                      ranks);
    }
}
END_TEST

START_TEST(runtime_under_every_mask)
{
    const LhSchedule *schedule = lh_schedules[_i];

    for (unsigned m = 0; m < G_N_ELEMENTS(masks); m++)
        ck_assert(!test_takes_of(m + (unsigned)_i, 11) ||
                  passes_turn(schedule, 3 + (m + (unsigned)_i) % 2,
                              m + (unsigned)(_i * (int)G_N_ELEMENTS(masks))));
}
END_TEST

START_TEST(runtime_passes_alone)
{
    const LhSchedule *schedule = lh_schedules[_i];

    for (uint32_t ranks = 1; ranks <= 4; ranks += 3) {
        Case c = small_case(schedule, ranks);

        if (!test_takes_of(ranks + 3 * (unsigned)_i, 7))
            continue;
        c.wanted.pass = LH_PASS_FWD;
        ck_assert(passes(&c));
        c.wanted.pass = LH_PASS_BWD;
        ck_assert(passes(&c));
    }
}
END_TEST

/* Two batches, of four ranks and of one. */
START_TEST(runtime_groups)
{
    const LhSchedule *schedule = lh_schedules[_i];

    for (uint32_t ranks = 1; ranks <= 4; ranks += 3) {
        Case c = small_case(schedule, ranks);

        c.wanted.data_parallel_size = 2;
        ck_assert(!test_takes_of(ranks / 3 + (unsigned)_i, 7) || passes(&c));
    }
}
END_TEST

/* Every value of every option that the schedule reads. */
START_TEST(runtime_variants)
{
    const LhSchedule *schedule = lh_schedules[_i];

    for (guint k = 0; schedule->options != NULL && schedule->options[k] != NULL; k++) {
        const LhOption *option = schedule->options[k];
        Case c = small_case(schedule, 4);
        LhOptionValue value;

        if (option->shape != NULL)
            option->shape(&c.wanted);
        if (option->linear_only)
            c.wanted.attention.linear = true;
        for (uint32_t i = 0; lh_option_value(option, &c.wanted, i, &value); i++) {
            Case with = c;
            g_autofree char *text = text_of(&c);
            g_autofree char *set = lh_option_text(option, value);

            if (!test_takes_of(i + k + (unsigned)_i, 13))
                continue;
            lh_option_set(&with.wanted, option, value);
            ck_assert_msg(passes(&with), "%s, %s: refused", text, set);
        }
    }
}
END_TEST

START_TEST(runtime_inputs_of_every_kind)
{
    const LhSchedule *schedule = lh_schedules[_i];

    for (int inputs = 0; lh_input_names[inputs] != NULL; inputs++) {
        Case c = small_case(schedule, 4);

        if (!test_takes_of((unsigned)inputs + (unsigned)_i, 11))
            continue;
        c.inputs = (LhInputKind)inputs;
        c.wanted.attention.dtype = (inputs + _i) % 2 == 0 ? LH_DTYPE_BF16 : LH_DTYPE_FP32;
        ck_assert(passes(&c));
    }
}
END_TEST

#define SEEDS 60

/* Small runs in which some results nearly cancel: no average hides an error, and a row may be
 * small compared with its terms. */
START_TEST(runtime_tiny_runs_are_right)
{
    for (uint64_t seed = 1; seed <= test_share(SEEDS); seed++) {
        Case c = small_case(lh_schedules[_i], 2);

        c.wanted.attention.seq_length = 8;
        c.wanted.attention.heads = c.wanted.attention.groups = 2;
        c.wanted.attention.head_dim = 2;
        c.seed = seed;
        passes(&c);
    }
}
END_TEST

/* Partial results in 16 bits, for queries that see few keys. */
START_TEST(runtime_rows_of_few_keys_are_right)
{
    Case c = small_case(lh_schedule_find("attention2d-o", NULL), 8);

    c.wanted.attention.seq_length = 512;
    c.wanted.attention.heads = c.wanted.attention.groups = 4;
    lh_option_set(&c.wanted, &lh_option_grid, (LhOptionValue){ 2, 4 });
    c.seed = 0;
    ck_assert(passes(&c));
}
END_TEST

/* Names of kernel sets that documents may contain. */
START_TEST(runtime_kernel_sets_are_named)
{
    for (guint i = 0; lh_backends[i] != NULL; i++) {
        const char *const *set = lh_backends[i]->device->kernel_sets;

        for (; *set != NULL; set++)
            ck_assert_msg(g_strv_contains(lh_kernel_set_names, *set), "%s", *set);
    }
}
END_TEST

int
main(void)
{
    const TTest *const loops[] = {
        runtime_at_every_number_of_ranks,
        runtime_under_every_mask,
        runtime_passes_alone,
        runtime_groups,
        runtime_variants,
        runtime_inputs_of_every_kind,
        runtime_tiny_runs_are_right,
    };
    const TTest *const tests[] = { runtime_rows_of_few_keys_are_right,
                                   runtime_kernel_sets_are_named };

    return run_suite("runtime", loops, G_N_ELEMENTS(loops), tests, G_N_ELEMENTS(tests));
}
