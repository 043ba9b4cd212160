/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory over time: bytes of each category per rank, the time and op of the peak, and the first op
 * that runs out of memory. By hand to the byte and the picosecond, and for every schedule against
 * the verifier.
 */
#include "run_tests.h"
#include "sim_schedules.h"
#include "verify/verify.h"

#define SYNC_PS (8 * US)

/* ---- two categories by hand ---- */

enum { SLOT_SAVED = SLOT_SMALL + 1, SLOT_GRADIENTS };

enum { OP_SAVE, OP_COMPUTE, OP_SYNC, OP_GRADIENTS, OP_COMPUTE_MORE, OP_DROP_SAVED, OP_DROP };

static uint32_t
step_count(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return 1;
}

/* All in one step: ops after the sync are issued long before their time is known. */
static void
emit_step(LhEmitter *e, uint32_t step)
{
    const LhKernelArgs args = { .batch = 1, .heads = 1, .groups = 1, .head_dim = 1 };

    (void)step;
    e->layer = 2;
    lh_emit_alloc(e, SLOT_SAVED);
    lh_emit_compute(e, COMPUTE, LH_KERNEL_ID_copy, &args);
    lh_emit_sync(e);
    e->layer = 1;
    e->micro_batch = 3;
    e->phase = LH_PHASE_BACKWARD;
    lh_emit_alloc(e, SLOT_GRADIENTS);
    lh_emit_compute(e, COMPUTE, LH_KERNEL_ID_copy, &args);
    lh_emit_free(e, SLOT_SAVED);
    lh_emit_free(e, SLOT_GRADIENTS);
}

static const LhGenerator step_generator = { .steps = step_count, .emit = emit_step };

/* Rank r computes for 5 us, less r. */
static LhTime
step_time(void *data, uint32_t rank, const LhOp *op)
{
    (void)data;
    (void)op;
    return (5 - (LhTime)rank) * US;
}

/* 70 bytes of attention are permanent, 1000 are saved, 600 are gradients. */
static void
step_init(World *w, uint32_t ranks)
{
    static Script none;
    const LhSlotParams saved = { .name = "saved",
                                 .kind = LH_TENSOR_O,
                                 .role = LH_SLOT_TEMP,
                                 .dtype = LH_DTYPE_BF16,
                                 .category = LH_CATEGORY_SAVED,
                                 .parts = 2,
                                 .part_bytes = 500 };
    LhSlotParams gradients = saved;

    script_init(w, &none, ranks);
    gradients.name = "gradients";
    gradients.category = LH_CATEGORY_GRADIENTS;
    gradients.parts = 1;
    gradients.part_bytes = 600;
    ck_assert_uint_eq(lh_program_add_slot(w->program, saved), SLOT_SAVED);
    ck_assert_uint_eq(lh_program_add_slot(w->program, gradients), SLOT_GRADIENTS);
    w->program->generator = &step_generator;
    w->device.stream_sync_ps = SYNC_PS;
    w->params.compute_time = step_time;
}

static LhTime
peak_time(uint32_t rank)
{
    return (5 - (LhTime)rank) * US + SYNC_PS;
}

START_TEST(sim_memory_knows_the_moment_of_the_peak)
{
    g_autoptr(LhSimResult) result = NULL;
    World w;

    step_init(&w, 2);
    result = world_run(&w);
    for (uint32_t r = 0; r < 2; r++) {
        const LhRankResult *rank = &result->ranks[r];

        ck_assert_uint_eq(rank->peak_bytes, 70 + 1000 + 600);
        ck_assert_uint_eq(rank->peak->by_category[LH_CATEGORY_ATTENTION], 70);
        ck_assert_uint_eq(rank->peak->by_category[LH_CATEGORY_SAVED], 1000);
        ck_assert_uint_eq(rank->peak->by_category[LH_CATEGORY_GRADIENTS], 600);
        ck_assert_uint_eq(rank->peak->by_category[LH_CATEGORY_WEIGHTS], 0);
        ck_assert_int_eq(rank->peak_at_ps, peak_time(r));
        ck_assert_uint_eq(rank->peak_op.op, OP_GRADIENTS);
        ck_assert_uint_eq(rank->peak_op.layer, 1);
        ck_assert_uint_eq(rank->peak_op.micro_batch, 3);
        ck_assert_uint_eq(rank->peak_op.phase, LH_PHASE_BACKWARD);
        ck_assert_uint_eq(rank->peak_op.category, LH_CATEGORY_GRADIENTS);
    }
    ck_assert_ptr_null(result->out_of_memory);
    world_clear(&w);
}
END_TEST

/* Permanent memory is attributed to no op. */
START_TEST(sim_memory_may_peak_before_the_first_op)
{
    Script script = SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * US });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 1);
    w.params.memory_limit_bytes = 69;
    result = world_run(&w);
    ck_assert_uint_eq(result->ranks[0].peak_bytes, 70);
    ck_assert_uint_eq(result->ranks[0].peak_op.op, LH_OP_NONE);
    ck_assert_int_eq(result->ranks[0].peak_at_ps, 0);
    ck_assert_ptr_nonnull(result->out_of_memory);
    ck_assert_uint_eq(result->out_of_memory->op.op, LH_OP_NONE);
    ck_assert_uint_eq(result->out_of_memory->needed_bytes, 70);
    ck_assert_int_eq(result->out_of_memory->time_ps, 0);
    world_clear(&w);
}
END_TEST

/* ---- limits ---- */

/* A limit does not change the run; the op that exceeds it is @op of @rank. */
static void
check_limit(uint64_t limit_bytes, uint32_t rank, uint32_t op, LhTime time_ps)
{
    g_autoptr(LhSimResult) result = NULL;
    g_autoptr(LhSimResult) free_result = NULL;
    const LhOutOfMemory *oom;
    World w;
    uint64_t sum = 0;

    step_init(&w, 3);
    free_result = world_run(&w);
    w.params.memory_limit_bytes = limit_bytes;
    result = world_run(&w);
    oom = result->out_of_memory;
    ck_assert_ptr_nonnull(oom);
    ck_assert_int_eq(result->makespan_ps, free_result->makespan_ps);
    ck_assert_uint_eq(oom->rank, rank);
    ck_assert_uint_eq(oom->op.op, op);
    ck_assert_int_eq(oom->time_ps, time_ps);
    ck_assert_uint_eq(oom->limit_bytes, limit_bytes);
    for (int c = 0; c < LH_CATEGORIES; c++)
        sum += oom->by_category[c];
    ck_assert_uint_eq(oom->needed_bytes, sum);
    ck_assert_uint_gt(sum, limit_bytes);
    if (op == OP_GRADIENTS) {
        ck_assert_uint_eq(oom->op.layer, 1);
        ck_assert_uint_eq(oom->op.micro_batch, 3);
        ck_assert_uint_eq(oom->op.phase, LH_PHASE_BACKWARD);
        ck_assert_uint_eq(oom->op.category, LH_CATEGORY_GRADIENTS);
        ck_assert_uint_eq(oom->by_category[LH_CATEGORY_SAVED], 1000);
        ck_assert_uint_eq(oom->by_category[LH_CATEGORY_GRADIENTS], 600);
    }
    world_clear(&w);
}

START_TEST(sim_memory_limit_names_the_first_op)
{
    g_autoptr(LhSimResult) result = NULL;
    World w;

    /* Rank 2 reaches it first; at equal times it is rank 0. */
    check_limit(70 + 1000 + 600 - 1, 2, OP_GRADIENTS, peak_time(2));
    check_limit(70 + 1000, 2, OP_GRADIENTS, peak_time(2));
    check_limit(70 + 1000 - 1, 0, OP_SAVE, 0);
    check_limit(70, 0, OP_SAVE, 0);
    check_limit(1, 0, LH_OP_NONE, 0);
    step_init(&w, 3);
    w.params.memory_limit_bytes = 70 + 1000 + 600;
    result = world_run(&w);
    ck_assert_ptr_null(result->out_of_memory);
    world_clear(&w);
}
END_TEST

/* ---- records ---- */

typedef struct {
    uint64_t by_category[LH_CATEGORIES];
    uint64_t bytes, most_bytes;
    LhTime time_ps;
    uint32_t op, records;
} Held;

static void
add_record(void *data, const LhMemoryRecord *record)
{
    Held *held = &((Held *)data)[record->rank];
    uint64_t sum = 0;

    ck_assert_int_ge(record->time_ps, held->time_ps);
    if (record->op.op != LH_OP_NONE && held->op != LH_OP_NONE)
        ck_assert_uint_gt(record->op.op, held->op);
    else
        ck_assert_uint_eq(held->op, LH_OP_NONE);
    held->time_ps = record->time_ps;
    held->op = record->op.op;
    held->by_category[record->op.category] = record->category_bytes;
    for (int c = 0; c < LH_CATEGORIES; c++)
        sum += held->by_category[c];
    ck_assert_uint_eq(record->bytes, sum);
    held->bytes = sum;
    held->most_bytes = MAX(held->most_bytes, sum);
    held->records++;
}

static Held *
held_new(uint32_t ranks)
{
    Held *held = g_new0(Held, ranks);

    for (uint32_t r = 0; r < ranks; r++)
        held[r].op = LH_OP_NONE;
    return held;
}

static void
collect(void *data, const LhMemoryRecord *record)
{
    g_array_append_vals(data, record, 1);
}

/* A launch takes 1 us: memory freed after the second kernel is freed 1 us after the sync. */
START_TEST(sim_memory_records_every_change)
{
    static const struct {
        uint32_t op;
        uint8_t category;
        uint64_t category_bytes, bytes;
        LhTime time_ps;
    } expected[] = {
        { LH_OP_NONE, LH_CATEGORY_ATTENTION, 70, 70, 0 },
        { OP_SAVE, LH_CATEGORY_SAVED, 1000, 1070, 0 },
        { OP_GRADIENTS, LH_CATEGORY_GRADIENTS, 600, 1670, 5 * US + SYNC_PS },
        { OP_DROP_SAVED, LH_CATEGORY_SAVED, 0, 670, 6 * US + SYNC_PS },
        { OP_DROP, LH_CATEGORY_GRADIENTS, 0, 70, 6 * US + SYNC_PS },
    };
    g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(LhMemoryRecord));
    g_autoptr(LhSimResult) result = NULL;
    World w;

    step_init(&w, 1);
    w.device.kernel_launch_ps = US;
    w.params.memory = collect;
    w.params.memory_data = records;
    result = world_run(&w);
    ck_assert_uint_eq(records->len, G_N_ELEMENTS(expected));
    for (uint32_t i = 0; i < records->len; i++) {
        const LhMemoryRecord *record = &g_array_index(records, LhMemoryRecord, i);

        ck_assert_uint_eq(record->op.op, expected[i].op);
        ck_assert_uint_eq(record->op.category, expected[i].category);
        ck_assert_uint_eq(record->category_bytes, expected[i].category_bytes);
        ck_assert_uint_eq(record->bytes, expected[i].bytes);
        ck_assert_int_eq(record->time_ps, expected[i].time_ps);
    }
    world_clear(&w);
}
END_TEST

/* Slots of all categories in turn. For any program, the records add up to the memory in use, and
 * their maximum is the verifier's peak. */
static void
check_records(LhProgram *program)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    const uint32_t ranks = lh_program_ranks(program);
    g_autofree Held *held = held_new(ranks);
    g_autoptr(LhSimResult) result = NULL;
    uint64_t stays = 0;
    World w;

    for (uint32_t i = 0; i < program->slots_count; i++) {
        program->slots[i].category = (LhCategory)(i % LH_CATEGORIES);
        if (program->slots[i].role != LH_SLOT_TEMP)
            stays += program->slots[i].parts * program->slots[i].part_bytes;
    }
    world_init(&w, "dgx-a100-80g", program);
    w.params.memory = add_record;
    w.params.memory_data = held;
    result = world_run(&w);
    for (uint32_t r = 0; r < ranks; r++) {
        const LhRankResult *rank = &result->ranks[r];
        uint64_t sum = 0;

        for (int c = 0; c < LH_CATEGORIES; c++)
            sum += rank->peak->by_category[c];
        ck_assert_uint_eq(sum, rank->peak_bytes);
        ck_assert_uint_eq(held[r].most_bytes, rank->peak_bytes);
        ck_assert_uint_eq(verdict->peak_bytes[r], rank->peak_bytes);
        ck_assert_uint_eq(held[r].bytes, stays);
        ck_assert_uint_gt(held[r].records, 1);
    }
    world_clear(&w);
}

START_TEST(sim_memory_of_schedules_adds_up)
{
    uint32_t played = 0;

    for (uint32_t i = 0; lh_schedules[i] != NULL; i++) {
        const bool linear = !lh_schedule_takes(lh_schedules[i], false);

        for (int pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
            LhProgramParams params = attention(4, 4 * 128, 8, 8, 64);
            LhProgram *program;

            params.pass = (LhPass)pass;
            params.attention.linear = linear;
            program = lh_program_new(lh_schedules[i], &params, NULL);
            if (program == NULL)
                continue;
            check_records(program);
            played++;
        }
    }
    ck_assert_uint_ge(played, 50);
}
END_TEST

LH_TEST_MAIN("sim_memory", sim_memory_knows_the_moment_of_the_peak,
             sim_memory_may_peak_before_the_first_op, sim_memory_limit_names_the_first_op,
             sim_memory_records_every_change, sim_memory_of_schedules_adds_up)
