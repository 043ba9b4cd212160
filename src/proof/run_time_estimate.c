/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/run_time_estimate.h"

#include "base/error.h"
#include "program/cursor.h"
#include "scenario/step/setup_step.h"

/*
 * Calibration: user time of a release build on one core, divided by the counts below.
 *   sim --schedule ring --ranks 256                                        0.09 s
 *   sim --schedule megatron-tp-sp --ranks 128 --num-attention-heads 128
 *       --num-query-groups 128                                             0.12 s
 *   sim --schedule ulysses --ranks 128 --num-attention-heads 128
 *       --num-query-groups 128                                             2.38 s
 *   verify --schedule ring --pass both --mask causal --ranks 512
 *       --num-attention-heads 64 --num-query-groups 64                     1.12 s
 */
#define SIMULATE_OP_S 0.25e-6
#define SIMULATE_MEMBER_S 1e-6 /* per member of a ring collective: one step each */
#define SIMULATE_PAIR_S 18e-6  /* per member of an all-to-all: one message each */
#define PROVE_OP_S 0.8e-6

/*
 * Calibration: peak memory of sim --critical-path without that of sim, divided by the counts below.
 *   --schedule zigzag --cluster hgx-h100:64 --seq-length 4M                51 MB
 *   --step --model llama-3-70b --cluster hgx-h100:128 --seq-length 8K
 *       --tensor-model-parallel-size 8 --pipeline-model-parallel-size 8
 *       --num-micro-batches 16 --data-parallel-size 16                     650 MB
 * (the latter before folding, which most runs have)
 */
#define WAITS_OP_BYTES 24.0
#define WAITS_MEMBER_BYTES 8.0

#define MINUTE_S 60.0
#define HOUR_S 3600.0
#define DAY_S 86400.0
#define YEAR_S (365 * DAY_S)

typedef struct {
    double ops;     /* all ops */
    double members; /* members of collectives other than all-to-alls, the rank included */
    double pairs;   /* members of all-to-alls */
} Counts;

/* Counts over all ranks, assuming that each equals the middle one. */
static Counts
count_work(const LhProgram *program)
{
    const uint32_t ranks = lh_program_ranks(program);
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    Counts c = { 0 };

    lh_cursor_init(&cursor, program, ranks / 2);
    while (lh_cursor_step(&cursor, &buffer)) {
        c.ops += buffer.ops_count;
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];
            const bool collective = op->kind == LH_OP_COLLECTIVE;
            const double size = collective ? (double)lh_group_size(&op->collective.group) : 0;

            if (collective && op->collective.kind == LH_COLL_ALL_TO_ALL)
                c.pairs += size;
            else
                c.members += size;
        }
    }
    lh_op_buffer_clear(&buffer);
    return (Counts){ c.ops * ranks, c.members * ranks, c.pairs * ranks };
}

double
lh_run_time_simulate(const LhProgram *program)
{
    const Counts c = count_work(program);

    return c.ops * SIMULATE_OP_S + c.members * SIMULATE_MEMBER_S + c.pairs * SIMULATE_PAIR_S;
}

double
lh_run_time_ops(const LhProgram *program)
{
    return count_work(program).ops;
}

double
lh_run_time_prove(const LhProgram *program)
{
    return count_work(program).ops * PROVE_OP_S;
}

double
lh_run_memory_waits(const LhProgram *program)
{
    const Counts c = count_work(program);

    return c.ops * WAITS_OP_BYTES + (c.members + c.pairs) * WAITS_MEMBER_BYTES;
}

double
lh_run_time_compare(const LhSetup *setup)
{
    double sum = setup->program == NULL ? 0 : lh_run_time_simulate(setup->program);
    guint programs = setup->program == NULL ? 0 : 1;

    for (guint i = 0; i < setup->schedules->len; i++) {
        g_autoptr(LhProgram) program =
            lh_setup_program(setup, g_ptr_array_index(setup->schedules, i), NULL);

        if (program == NULL)
            continue;
        sum += lh_run_time_simulate(program);
        programs++;
    }
    /* The fastest schedule is not known yet; the mean stands for it. */
    return programs == 0 ? 0 : sum + sum / programs * (LH_TIERS + 1);
}

char *
lh_run_time_text(double seconds)
{
    if (seconds < 10)
        return g_strdup_printf("about %.2g s", seconds);
    if (seconds < 2 * MINUTE_S)
        return g_strdup_printf("about %.0f s", seconds);
    if (seconds < 2 * HOUR_S)
        return g_strdup_printf("about %.0f min", seconds / MINUTE_S);
    if (seconds < 2 * DAY_S)
        return g_strdup_printf("about %.0f h", seconds / HOUR_S);
    if (seconds < 2 * YEAR_S)
        return g_strdup_printf("about %.0f days", seconds / DAY_S);
    return g_strdup_printf("about %.3g years", seconds / YEAR_S);
}

bool
lh_run_time_check(double seconds, LhTime most_ps, GError **error)
{
    const double most =
        (double)(most_ps > 0 ? most_ps : LH_RUN_TIME_PS_DEFAULT) / (double)LH_PS_PER_S;
    g_autofree char *needed = lh_run_time_text(seconds);
    g_autofree char *allowed = lh_format_time(most_ps > 0 ? most_ps : LH_RUN_TIME_PS_DEFAULT);

    if (seconds <= most)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "this takes %s on one core, and --max-work allows %s; use fewer ranks or "
                "schedules, or allow more",
                needed, allowed);
    return false;
}
