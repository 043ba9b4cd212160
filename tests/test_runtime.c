/*
 * The executor: every schedule against fp64 attention of the whole sequence, counts against
 * verifier and simulator, faults that must be found, delays that must change nothing.
 */
#include "base/error.h"
#include "fitting.h"
#include "plan/execute.h"
#include "run_tests.h"

#include <math.h>
#include <string.h>

typedef struct {
    const LhSchedule *schedule;
    LhProgramParams wanted; /* made to fit the schedule */
    bool documents;         /* several, in place of one */
    LhKernelSet kernels;
    LhInputKind inputs;
    const char *inject;
    uint64_t repeat;
    double deadline_s;
} Case;

/* Ends of documents: some lie within segments, one is of one token. */
#define DOCUMENTS 5

/* NULL if the schedule cannot do it at all. */
static LhProgram *
program_of(const Case *c)
{
    const uint64_t n = c->wanted.attention.seq_length;
    const uint64_t ends[DOCUMENTS] = { n / 7, n / 3, n / 3 + 1, 2 * n / 3, n };
    LhProgramParams wanted = c->wanted;

    if (c->documents) {
        wanted.mask.document_ends = ends;
        wanted.mask.documents_count = DOCUMENTS;
    }
    return fitting_program(c->schedule, &wanted);
}

/* NULL with @error. The program may go at once: what is looked at are results. */
static LhExecuted *
run_program(const Case *c, LhProgram *program, GError **error)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    const LhExecuteParams params = {
        .transport = &lh_transport_threads,
        .kernels = c->kernels,
        .inputs = c->inputs,
        .inject = c->inject,
        .repeat = c->repeat,
        .deadline_ps = (LhTime)(c->deadline_s * 1e12),
    };

    scenario->ranks = lh_program_ranks(program);
    scenario->seed = 7;
    setup = lh_setup_new(scenario, error);
    return setup == NULL ? NULL : lh_execute_program(setup, program, &params, error);
}

static char *
text_of(const Case *c)
{
    const LhProgramParams *p = &c->wanted;
    const LhAttention *a = &p->attention;

    return g_strdup_printf(
        "%s, P %u, N %u, h %u, g %u, d %u, B %u, %s, %s, window %u, %u documents, pass %s, kernels "
        "%s, %s%s%s",
        c->schedule->name, p->ranks, (unsigned)a->seq_length, a->heads, a->groups, a->head_dim,
        a->batch, lh_dtype_names[a->dtype], p->mask.causal ? "causal" : "full",
        (unsigned)p->mask.window, c->documents ? DOCUMENTS : 1, lh_pass_names[p->pass - 1],
        lh_kernel_set_names[c->kernels], lh_input_names[c->inputs],
        c->inject != NULL ? ", injected " : "", c->inject != NULL ? c->inject : "");
}

static void
check_errors(const Case *c, const LhExecuted *executed)
{
    const bool fp32 = c->wanted.attention.dtype == LH_DTYPE_FP32;
    g_autofree char *text = text_of(c);

    ck_assert_uint_gt(executed->errors.rows_count, 0);
    for (uint32_t i = 0; i < executed->errors.rows_count; i++) {
        const LhErrorRow *row = &executed->errors.rows[i];

        ck_assert_msg(row->ok, "%s: %s: rel L2 %g, worst row %g, largest %g", text, row->name,
                      row->rel_l2, row->row_max, row->abs_max);
        /* The gates are made for 16 bits. So near to one fp64 answer at every P, results of any
         * two P are within 2e-5 of each other, and lse within 5e-5: P-invariance. */
        if (fp32 && c->inputs == LH_INPUTS_NORMAL)
            ck_assert_msg(row->rel_l2 < 1e-5 && (row->abs_max_gate <= 0 || row->abs_max < 2.5e-5),
                          "%s: %s: rel L2 %g, largest %g in fp32", text, row->name, row->rel_l2,
                          row->abs_max);
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

/* False if the schedule cannot do it. */
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

static int
schedules_count(void)
{
    int count = 0;

    while (lh_schedules[count] != NULL)
        count++;
    return count;
}

/* ---- every schedule; tests below are called with its index ---- */

static const uint32_t rank_counts[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16 };

/* Everything but schedule and ranks goes round, each at its own pace: all lengths below, of lists
 * that lie in a Case, have no common factor. */
static const uint32_t shapes[][3] = {
    /* Multi-head, grouped 4:1, one key-value head; head sizes that fill no tile. */
    { 2, 2, 64 }, { 8, 2, 80 }, { 3, 1, 96 }, { 4, 1, 128 }, { 8, 2, 72 },
};
static const LhDtype dtypes[] = { LH_DTYPE_BF16, LH_DTYPE_FP32, LH_DTYPE_FP16 };
static const LhKernelSet kernel_sets[] = { LH_KERNEL_SET_CPU, LH_KERNEL_SET_REFERENCE };
static const struct {
    bool full;
    unsigned window;
    bool documents;
} masks[] = {
    { false, 0, false }, { true, 0, false },  { false, 17, false }, { false, 0, true },
    { true, 0, true },   { false, 11, true }, { false, 0, false },
};

#define MANY_RANKS 8
#define TOKENS 72 /* about */

static Case
turn_case(const LhSchedule *schedule, uint32_t ranks, unsigned turn)
{
    const uint32_t *shape = shapes[turn % G_N_ELEMENTS(shapes)];
    const unsigned mask = turn % G_N_ELEMENTS(masks);
    const uint64_t tokens = 2 * MAX(1, (TOKENS / 2 + turn % 11) / ranks); /* of a rank */

    return (Case){
        .schedule = schedule,
        .wanted = { .attention = { .batch = 1 + turn % 13 / 10,
                                   .seq_length = tokens * ranks,
                                   .heads = shape[0],
                                   .groups = shape[1],
                                   /* Schedules by heads need some for every rank. */
                                   .head_dim = shape[2] / (ranks == 1           ? 1
                                                           : ranks < MANY_RANKS ? 2
                                                                                : 4),
                                   .dtype = dtypes[turn % G_N_ELEMENTS(dtypes)] },
                    .ranks = ranks,
                    .mask = { .causal = !masks[mask].full,
                              .window = (schedule->masks & LH_MASKS_WINDOW) != 0
                                            ? masks[mask].window
                                            : 0 },
                    .pass = LH_PASS_BOTH,
                    .overlap = true },
        .documents = masks[mask].documents && (schedule->masks & LH_MASKS_DOCUMENTS) != 0,
        .kernels = kernel_sets[turn % G_N_ELEMENTS(kernel_sets)],
    };
}

/* Some schedules have no full mask. */
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
        const bool ran = passes_turn(schedule, ranks, (unsigned)_i * 3 + r);

        ck_assert_msg(ran || (ranks & (ranks - 1)) != 0, "%s refuses %u ranks", schedule->name,
                      ranks);
    }
}
END_TEST

START_TEST(runtime_under_every_mask)
{
    const LhSchedule *schedule = lh_schedules[_i];

    for (unsigned m = 0; m < G_N_ELEMENTS(masks); m++)
        ck_assert(passes_turn(schedule, 3 + (m + (unsigned)_i) % 2,
                              m + (unsigned)(_i * (int)G_N_ELEMENTS(masks))));
}
END_TEST

/* Two heads for each of four ranks. */
static Case
small_case(const LhSchedule *schedule, uint32_t ranks)
{
    return (Case){ .schedule = schedule,
                   .wanted = { .attention = { .batch = 1,
                                              .seq_length = 8 * (uint64_t)ranks,
                                              .heads = 8,
                                              .groups = 8,
                                              .head_dim = 32,
                                              .dtype = LH_DTYPE_BF16 },
                               .ranks = ranks,
                               .mask.causal = true,
                               .pass = LH_PASS_BOTH,
                               .overlap = true } };
}

START_TEST(runtime_passes_alone)
{
    const LhSchedule *schedule = lh_schedules[_i];

    for (uint32_t ranks = 1; ranks <= 4; ranks += 3) {
        Case c = small_case(schedule, ranks);

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
        ck_assert(passes(&c));
    }
}
END_TEST

/* One of the things that all schedules take, or that only some know and the others ignore. */
static void
vary(LhProgramParams *p, unsigned variant)
{
    switch (variant) {
    case 0:
        p->overlap = false;
        break;
    case 1:
        p->published_code = true;
        break;
    case 2:
        p->gradient_wire = LH_WIRE_FP32;
        break;
    case 3:
        p->gradient_wire = LH_WIRE_16BIT;
        break;
    case 4:
        p->grid_rows = p->grid_columns = 2;
        break;
    case 5:
        p->grid_rows = 1, p->grid_columns = 4;
        break;
    case 6:
        p->ulysses_size = 2;
        break;
    case 7:
        p->ulysses_size = 4;
        break;
    case 8:
        p->inner_ring = 2;
        break;
    case 9:
        p->gather_groups = 2;
        break;
    case 10:
        p->scan_blocks = 2;
        break;
    case 11:
        p->local_kv = true;
        break;
    case 12:
        p->gather_delta = true;
        break;
    case 13:
        p->state_recompute = true;
        break;
    case 14:
        p->unfused = true;
        break;
    case 15:
        p->recompute = LH_RECOMPUTE_SELECTIVE;
        break;
    case 16:
        p->recompute = LH_RECOMPUTE_FULL;
        break;
    default:
        p->pad_heads = true, p->attention.heads = p->attention.groups = 6;
        break;
    }
}

#define VARIANTS 18

START_TEST(runtime_variants)
{
    const LhSchedule *schedule = lh_schedules[_i];

    for (unsigned variant = 0; variant < VARIANTS; variant++) {
        Case c = small_case(schedule, 4);
        g_autofree char *text = NULL;

        vary(&c.wanted, variant);
        text = text_of(&c);
        ck_assert_msg(passes(&c), "%s, variant %u: refused", text, variant);
    }
}
END_TEST

START_TEST(runtime_inputs_of_every_kind)
{
    const LhSchedule *schedule = lh_schedules[_i];

    for (int inputs = 0; lh_input_names[inputs] != NULL; inputs++) {
        Case c = small_case(schedule, 4);

        c.inputs = (LhInputKind)inputs;
        c.wanted.attention.dtype = (inputs + _i) % 2 == 0 ? LH_DTYPE_BF16 : LH_DTYPE_FP32;
        ck_assert(passes(&c));
    }
}
END_TEST

/* ---- faults ---- */

/* Whether there was anything to hit. It must be found. */
static bool
is_caught(const Case *c)
{
    g_autoptr(LhProgram) program = program_of(c);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = NULL;
    g_autofree char *text = text_of(c);

    if (program == NULL)
        return false;
    executed = run_program(c, program, &error);
    if (executed == NULL) {
        ck_assert_msg(g_error_matches(error, LH_ERROR, LH_ERROR_NO), "%s: %s", text,
                      error->message);
        return false;
    }
    ck_assert_msg(!executed->errors.ok, "%s: not found", text);
    return true;
}

/* One mutant, in either pass: the backward pass alone takes o and lse from the reference, so that a
 * fault in it is not hidden by one before it. How many of the two have anything to hit. */
static unsigned
catch_mutant(const LhSchedule *schedule, uint32_t ranks, int kind)
{
    /* The last rank gathers states that lie behind all its tokens, and has no use for them. */
    const bool useless = kind == LH_INJECT_STALE_BUFFER && strcmp(schedule->name, "lasp2") == 0;
    unsigned caught = 0;

    for (unsigned pass = LH_PASS_FWD; pass <= (useless ? LH_PASS_FWD : LH_PASS_BWD); pass++) {
        Case c = small_case(schedule, ranks);

        c.wanted.pass = (LhPass)pass;
        c.inject = lh_inject_names[kind];
        caught += is_caught(&c);
    }
    return caught;
}

/* In how many passes there must be something to hit. What is left needs something special: keys of
 * a query in several calls, several key-value heads in one. */
static unsigned
least_hits(const LhSchedule *schedule, int kind)
{
    if (kind == LH_INJECT_DROP_PAIR || kind == LH_INJECT_MASK_SHIFT)
        return 2;
    if (kind == LH_INJECT_STALE_BUFFER) /* by heads, no message is about attention */
        return schedule->placement == LH_PLACE_HEADS  ? 0
               : strcmp(schedule->name, "lasp2") == 0 ? 1
                                                      : 2;
    return kind == LH_INJECT_DUPLICATE_PAIR || strcmp(schedule->name, "ring") == 0 ? 1 : 0;
}

START_TEST(runtime_mutants_fail)
{
    static const uint32_t others[] = { 2, 5, 6, 3, 8, 7 };
    const LhSchedule *schedule = lh_schedules[_i];

    for (int kind = 0; kind < LH_INJECT_MUTANTS; kind++) {
        const unsigned hits = catch_mutant(schedule, 4, kind);

        ck_assert_msg(hits >= least_hits(schedule, kind),
                      "%s: %s has something to hit in %u passes", schedule->name,
                      lh_inject_names[kind], hits);
        catch_mutant(schedule, others[(_i + kind) % (int)G_N_ELEMENTS(others)], kind);
    }
}
END_TEST

static LhExecuted *
run_case(const Case *c, GError **error)
{
    g_autoptr(LhProgram) program = program_of(c);

    ck_assert_ptr_nonnull(program);
    return run_program(c, program, error);
}

#define DELAYS 5

START_TEST(runtime_delays_change_nothing)
{
    Case c = small_case(lh_schedules[_i], 4);
    g_autoptr(LhExecuted) first = NULL;

    first = run_case(&c, NULL);
    ck_assert_ptr_nonnull(first);
    for (unsigned seed = 0; seed < DELAYS; seed++) {
        g_autofree char *inject = g_strdup_printf("delay:%u", (unsigned)_i * DELAYS + seed);
        g_autoptr(LhExecuted) later = NULL;

        c.inject = inject;
        later = run_case(&c, NULL);
        ck_assert_ptr_nonnull(later);
        ck_assert_str_eq(later->digest, first->digest);
    }
}
END_TEST

static Case
case_named(const char *schedule, uint32_t ranks)
{
    return small_case(lh_schedule_find(schedule, NULL), ranks);
}

START_TEST(runtime_repeats_are_equal)
{
    Case c = case_named("dfa-balanced", 4);
    g_autoptr(LhExecuted) executed = NULL;

    c.repeat = 20;
    executed = run_case(&c, NULL);
    ck_assert_ptr_nonnull(executed);
    ck_assert_uint_eq(executed->repeats, 20);
    ck_assert(executed->same_bits);
}
END_TEST

/* Rank 1 never sends: rank 2 waits for it, and the message says so. */
START_TEST(runtime_stall_names_rank_op_peer_slot)
{
    Case c = case_named("ring", 3);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = NULL;

    c.inject = "stall:1";
    c.deadline_s = 0.3;
    executed = run_case(&c, &error);
    ck_assert_ptr_null(executed);
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
    ck_assert_msg(strstr(error->message, "rank 2, op 4 (exchange, stream comm): receives from rank "
                                         "1, slot fwd_kv0") != NULL,
                  "%s", error->message);
    ck_assert_msg(strstr(error->message, "rank 1, op 4 (exchange, stream comm): sends to rank 2, "
                                         "slot kv") != NULL,
                  "%s", error->message);
}
END_TEST

START_TEST(runtime_injections_are_checked)
{
    Case c = case_named("ring", 3);
    static const char *const bad[] = { "drop",    "stall", "stall:3",
                                       "stall:x", "delay", "mask-shift:1" };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;

        c.inject = bad[i];
        ck_assert_ptr_null(run_case(&c, &error));
        ck_assert_msg(g_error_matches(error, LH_ERROR, LH_ERROR_USAGE), "%s", error->message);
    }
}
END_TEST

/* ---- where inputs lie ---- */

/* Rank @rank of 4, 16 tokens, 4 query heads in 4 slices, 2 key-value heads in 2; d 2. */
static void
check_part(const LhPlacement *placement, uint32_t rank, uint32_t slice, uint32_t part,
           LhSegment holds)
{
    const LhProgramParams params = {
        .attention = { .batch = 2,
                       .seq_length = 16,
                       .heads = 4,
                       .groups = 2,
                       .head_dim = 2,
                       .dtype = LH_DTYPE_FP32 },
        .ranks = 4,
        .mask.causal = true,
    };
    LhSlot slots[] = {
        { .kind = LH_TENSOR_Q, .role = LH_SLOT_INPUT, .element_bytes = 4 },
        { .kind = LH_TENSOR_KV, .role = LH_SLOT_INPUT, .element_bytes = 4 },
    };
    const LhProgram program = { .params = params,
                                .placement = *placement,
                                .head_slices = 4,
                                .kv_slices = 2,
                                .slots = slots,
                                .slots_count = 2 };
    g_autoptr(LhNumerics) numerics = lh_numerics_new(&params, 1, LH_INPUTS_NORMAL);
    const uint64_t rows = 2 * holds.count;
    g_autofree float *q = g_new(float, rows * 2);
    g_autofree float *kv = g_new(float, 2 * rows * 2);

    slots[0].part_bytes = rows * 2 * sizeof(float);
    slots[1].part_bytes = 2 * slots[0].part_bytes;
    lh_numerics_load(numerics, &program, rank, 0, part, (unsigned char *)q);
    /* The first key-value slice has parts 0, 2, ..., the second 1, 3, ... */
    lh_numerics_load(numerics, &program, rank, 1, part / 4 * 2 + slice / 2, (unsigned char *)kv);
    for (uint64_t row = 0; row < rows; row++) {
        const uint64_t position = holds.start + row % holds.count * holds.stride;
        const uint64_t token = row / holds.count * 16 + position;

        for (uint32_t i = 0; i < 2; i++) {
            const uint64_t of_kv = (token * 2 + slice / 2) * 2 + i;

            ck_assert_double_eq((double)q[row * 2 + i],
                                numerics->reference.q[(token * 4 + slice) * 2 + i]);
            ck_assert_double_eq((double)kv[row * 2 + i], numerics->reference.k[of_kv]);
            ck_assert_double_eq((double)kv[(rows + row) * 2 + i], numerics->reference.v[of_kv]);
        }
    }
}

START_TEST(runtime_inputs_lie_by_segment_and_slice)
{
    const LhPlacement contiguous = { LH_PLACE_CONTIGUOUS, 4, 16, 0 };
    const LhPlacement striped = { LH_PLACE_STRIPED, 4, 16, 0 };
    const LhPlacement zigzag = { LH_PLACE_ZIGZAG, 4, 16, 0 };
    const LhPlacement split = { LH_PLACE_ZIGZAG, 4, 16, 2 };
    const LhPlacement heads = { LH_PLACE_HEADS, 4, 16, 0 };

    for (uint32_t slice = 0; slice < 4; slice++) {
        check_part(&contiguous, 2, slice, slice, (LhSegment){ 8, 1, 4 });
        check_part(&striped, 3, slice, slice, (LhSegment){ 3, 4, 4 });
        check_part(&zigzag, 1, slice, slice, (LhSegment){ 2, 1, 2 });
        check_part(&zigzag, 1, slice, 4 + slice, (LhSegment){ 12, 1, 2 });
        check_part(&split, 2, slice, slice, (LhSegment){ 4, 1, 2 });
        check_part(&split, 2, slice, 4 + slice, (LhSegment){ 8, 1, 2 });
        check_part(&heads, slice, slice, 0, (LhSegment){ 0, 1, 16 });
    }
}
END_TEST

/* ---- the executor alone, on programs by hand ---- */

typedef void (*ToyEmit)(LhEmitter *e);

typedef struct {
    LhSchedule schedule;
    LhProgram program;
    ToyEmit emit;
} Toy;

static uint32_t
one_step(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return 1;
}

static void
toy_emit(LhEmitter *e, uint32_t step)
{
    (void)step;
    ((const Toy *)e->program->user)->emit(e);
}

enum {
    TOY_IN,
    TOY_OUT,
};

/* B 1, h 1, g 1, d 2, @tokens a rank, fp32: an input and an output of so many parts. */
static void
toy_init(Toy *toy, uint32_t ranks, uint32_t parts_in, uint32_t parts_out, ToyEmit emit)
{
    *toy = (Toy){ .emit = emit };
    toy->schedule = (LhSchedule){ .name = "toy", .steps = one_step, .emit = toy_emit };
    toy->program = (LhProgram){ .schedule = &toy->schedule, .user = toy };
    toy->program.params.ranks = ranks;
    toy->program.params.attention = (LhAttention){ .batch = 1,
                                                   .seq_length = 3 * (uint64_t)ranks,
                                                   .heads = 1,
                                                   .groups = 1,
                                                   .head_dim = 2,
                                                   .dtype = LH_DTYPE_FP32 };
    toy->program.placement = (LhPlacement){ .kind = LH_PLACE_CONTIGUOUS,
                                            .ranks = ranks,
                                            .seq_length = 3 * (uint64_t)ranks };
    lh_program_add_stream(&toy->program, "comm", LH_STREAM_COMM);
    lh_program_add_slot(&toy->program, "in", LH_TENSOR_DQ, LH_SLOT_INPUT, parts_in, 24, 4);
    lh_program_add_slot(&toy->program, "out", LH_TENSOR_DQ, LH_SLOT_OUTPUT, parts_out, 24, 4);
}

/* Element i of part p on rank r: 100 r + 10 p + i. */
static void
toy_load(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *into)
{
    (void)data;
    (void)slot;
    for (uint32_t i = 0; i < 6; i++)
        ((float *)(void *)into)[i] = (float)(100 * rank + 10 * part + i);
}

static LhRunResult *
toy_run(Toy *toy, double deadline_s, const LhRunHooks *hooks, GError **error)
{
    const LhRunParams params = { .program = &toy->program,
                                 .transport = &lh_transport_threads,
                                 .kernels = LH_KERNEL_SET_REFERENCE,
                                 .deadline_us = (int64_t)(deadline_s * 1e6),
                                 .hooks = hooks,
                                 .load = toy_load };
    LhRunResult *result = lh_execute(&params, error);

    return result;
}

static float
toy_value(const LhRunResult *result, const Toy *toy, uint32_t rank, uint32_t part, uint32_t i)
{
    return (
        (const float *)(const void *)lh_run_output(result, &toy->program, rank, TOY_OUT, part))[i];
}

static void
emit_collective(LhEmitter *e, LhCollectiveKind kind, LhGroup group)
{
    const LhSlot *slots = e->program->slots;
    LhOp *op;

    lh_emit_exchange(e, 0);
    op = lh_emit_last(e);
    op->kind = LH_OP_COLLECTIVE;
    op->collective.kind = kind;
    op->collective.reduction = LH_REDUCE_SUM;
    op->collective.group = group;
    op->collective.tensors_count = 1;
    op->collective.send[0] = (LhRegion){ TOY_IN, 0, slots[TOY_IN].parts };
    op->collective.receive[0] = (LhRegion){ TOY_OUT, 0, slots[TOY_OUT].parts };
    op->collective.wire_bytes = 24;
}

#define TOY_RANKS 4

static LhGroup
everyone(void)
{
    return (LhGroup){ .stride = 1, .count = TOY_RANKS, .outer_count = 1 };
}

static void
emit_all_gather(LhEmitter *e)
{
    emit_collective(e, LH_COLL_ALL_GATHER, everyone());
}

static void
emit_reduce_scatter(LhEmitter *e)
{
    emit_collective(e, LH_COLL_REDUCE_SCATTER, everyone());
}

static void
emit_all_reduce(LhEmitter *e)
{
    emit_collective(e, LH_COLL_ALL_REDUCE, everyone());
}

static void
emit_all_to_all(LhEmitter *e)
{
    emit_collective(e, LH_COLL_ALL_TO_ALL, everyone());
}

static void
emit_broadcast(LhEmitter *e)
{
    emit_collective(e, LH_COLL_BROADCAST, everyone());
}

/* Ranks 0 and 2, and ranks 1 and 3. */
static void
emit_pairs(LhEmitter *e)
{
    emit_collective(e, LH_COLL_ALL_GATHER,
                    (LhGroup){ .base = e->rank % 2, .stride = 2, .count = 2, .outer_count = 1 });
}

typedef float (*ToyWant)(uint32_t rank, uint32_t part, uint32_t i);

static float
want_all_gather(uint32_t rank, uint32_t part, uint32_t i)
{
    (void)rank;
    return (float)(100 * part + i);
}

static float
want_reduce_scatter(uint32_t rank, uint32_t part, uint32_t i)
{
    (void)part;
    return (float)(600 + 4 * (10 * rank + i));
}

static float
want_all_reduce(uint32_t rank, uint32_t part, uint32_t i)
{
    (void)rank;
    return (float)(600 + 4 * (10 * part + i));
}

static float
want_all_to_all(uint32_t rank, uint32_t part, uint32_t i)
{
    return (float)(100 * part + 10 * rank + i);
}

static float
want_broadcast(uint32_t rank, uint32_t part, uint32_t i)
{
    (void)rank;
    return (float)(10 * part + i);
}

static float
want_pairs(uint32_t rank, uint32_t part, uint32_t i)
{
    return (float)(100 * (rank % 2 + 2 * part) + i);
}

static const struct {
    ToyEmit emit;
    uint32_t parts_in, parts_out;
    ToyWant want;
    uint64_t bytes[TOY_RANKS]; /* sent */
} collectives[] = {
    { emit_all_gather, 1, 4, want_all_gather, { 72, 72, 72, 72 } },
    { emit_reduce_scatter, 4, 1, want_reduce_scatter, { 72, 72, 72, 72 } },
    { emit_all_reduce, 4, 4, want_all_reduce, { 144, 144, 144, 144 } },
    { emit_all_to_all, 4, 4, want_all_to_all, { 72, 72, 72, 72 } },
    { emit_broadcast, 2, 2, want_broadcast, { 48, 48, 48, 0 } },
    { emit_pairs, 1, 2, want_pairs, { 24, 24, 24, 24 } },
};

START_TEST(runtime_collectives)
{
    Toy toy;
    g_autoptr(LhRunResult) result = NULL;

    toy_init(&toy, TOY_RANKS, collectives[_i].parts_in, collectives[_i].parts_out,
             collectives[_i].emit);
    result = toy_run(&toy, 10, NULL, NULL);
    ck_assert_ptr_nonnull(result);
    for (uint32_t rank = 0; rank < TOY_RANKS; rank++) {
        ck_assert_uint_eq(result->ranks[rank].bytes_sent, collectives[_i].bytes[rank]);
        for (uint32_t part = 0; part < collectives[_i].parts_out; part++) {
            for (uint32_t i = 0; i < 6; i++)
                ck_assert_float_eq(toy_value(result, &toy, rank, part, i),
                                   collectives[_i].want(rank, part, i));
        }
    }
    g_free(toy.program.slots);
}
END_TEST

/* Two tensors in one collective: parts 0 and 1 of the input exchange places. */
static void
emit_two_tensors(LhEmitter *e)
{
    LhOp *op;

    emit_all_gather(e);
    op = lh_emit_last(e);
    op->collective.tensors_count = 2;
    op->collective.wire_bytes = 48;
    for (uint32_t i = 0; i < 2; i++) {
        op->collective.send[i] = (LhRegion){ TOY_IN, 1 - i, 1 };
        op->collective.receive[i] = (LhRegion){ TOY_OUT, i * TOY_RANKS, TOY_RANKS };
    }
}

START_TEST(runtime_collective_of_two_tensors)
{
    Toy toy;
    g_autoptr(LhRunResult) result = NULL;

    toy_init(&toy, TOY_RANKS, 2, 2 * TOY_RANKS, emit_two_tensors);
    result = toy_run(&toy, 10, NULL, NULL);
    ck_assert_ptr_nonnull(result);
    for (uint32_t rank = 0; rank < TOY_RANKS; rank++) {
        ck_assert_uint_eq(result->ranks[rank].bytes_sent, 2 * 72);
        for (uint32_t part = 0; part < 2 * TOY_RANKS; part++)
            ck_assert_float_eq(toy_value(result, &toy, rank, part, 3),
                               (float)(100 * (part % TOY_RANKS) + (part < TOY_RANKS ? 10 : 0) + 3));
    }
    g_free(toy.program.slots);
}
END_TEST

/* Two collectives under way at once, on a stream each, over groups that share ranks 0 and 2, 1 and
 * 3. */
static void
emit_two_streams(LhEmitter *e)
{
    LhOp *op;

    emit_all_gather(e);
    lh_emit_last(e)->collective.receive[0] = (LhRegion){ TOY_OUT, 0, TOY_RANKS };
    lh_emit_last(e)->collective.send[0] = (LhRegion){ TOY_IN, 0, 1 };
    emit_pairs(e);
    op = lh_emit_last(e);
    op->stream = 1;
    op->collective.send[0] = (LhRegion){ TOY_IN, 1, 1 };
    op->collective.receive[0] = (LhRegion){ TOY_OUT, TOY_RANKS, 2 };
}

/* The two ranks of a pair start them in another order. */
static void
pause_a_stream(void *data, uint32_t rank, uint32_t op, uint32_t where)
{
    (void)data;
    if (where == 1 && op == rank / 2)
        g_usleep(20000);
}

START_TEST(runtime_collectives_on_two_streams_do_not_mix)
{
    const LhRunHooks hooks = { .pause = pause_a_stream };
    Toy toy;
    g_autoptr(LhRunResult) result = NULL;

    toy_init(&toy, TOY_RANKS, 2, TOY_RANKS + 2, emit_two_streams);
    lh_program_add_stream(&toy.program, "other", LH_STREAM_COMM);
    result = toy_run(&toy, 10, &hooks, NULL);
    ck_assert_ptr_nonnull(result);
    for (uint32_t rank = 0; rank < TOY_RANKS; rank++) {
        for (uint32_t part = 0; part < TOY_RANKS; part++)
            ck_assert_float_eq(toy_value(result, &toy, rank, part, 1), (float)(100 * part + 1));
        for (uint32_t part = 0; part < 2; part++)
            ck_assert_float_eq(toy_value(result, &toy, rank, TOY_RANKS + part, 1),
                               (float)(100 * (rank % 2 + 2 * part) + 10 + 1));
    }
    g_free(toy.program.slots);
}
END_TEST

/* Partial attention (o, m, l) of all ranks, merged. */
static void
emit_merge(LhEmitter *e)
{
    emit_reduce_scatter(e);
    lh_emit_last(e)->collective.reduction = LH_REDUCE_ATTENTION;
}

static void
emit_merge_everywhere(LhEmitter *e)
{
    emit_all_reduce(e);
    lh_emit_last(e)->collective.reduction = LH_REDUCE_ATTENTION;
}

/* Six rows of d 2: o = l (r, -r), m = r, l = 1 + part; of three tokens and half of the heads. */
static void
merge_load(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *into)
{
    float *x = (float *)(void *)into;

    (void)data;
    (void)slot;
    for (uint32_t i = 0; i < 6; i++) {
        x[2 * i] = (float)((1 + part) * rank);
        x[2 * i + 1] = -x[2 * i];
        x[12 + i] = (float)rank;
        x[18 + i] = (float)(1 + part);
    }
}

/* The last row of what all ranks hold of part @part, merged. */
static void
check_merged(const LhRunResult *result, const Toy *toy, uint32_t rank, uint32_t at, uint32_t part)
{
    const double o = (double)toy_value(result, toy, rank, at, 10);
    const double m = (double)toy_value(result, toy, rank, at, 17);
    const double l = (double)toy_value(result, toy, rank, at, 23);
    double weight = 0, sum = 0;

    for (int r = 0; r < TOY_RANKS; r++) {
        weight += exp(r);
        sum += exp(r) * r;
    }
    ck_assert_double_eq_tol(o / l, sum / weight, 1e-6);
    ck_assert_double_eq_tol(m + log(l), log(weight * (1 + part)), 1e-6);
}

/* Accumulators of half of four heads in each part. */
static LhRunResult *
run_merge(Toy *toy, uint32_t parts_out, ToyEmit emit)
{
    LhRunParams params;
    LhRunResult *result;

    toy_init(toy, TOY_RANKS, TOY_RANKS, parts_out, emit);
    toy->program.params.attention.heads = 4;
    toy->program.head_slices = 2;
    for (unsigned i = 0; i < 2; i++) {
        toy->program.slots[i].kind = LH_TENSOR_ACC;
        toy->program.slots[i].part_bytes = 96;
    }
    params = (LhRunParams){ .program = &toy->program,
                            .transport = &lh_transport_threads,
                            .kernels = LH_KERNEL_SET_REFERENCE,
                            .deadline_us = 10000000,
                            .load = merge_load };
    result = lh_execute(&params, NULL);
    ck_assert_ptr_nonnull(result);
    return result;
}

START_TEST(runtime_collectives_merge_attention)
{
    Toy toy;
    g_autoptr(LhRunResult) scattered = run_merge(&toy, 1, emit_merge);
    g_autoptr(LhRunResult) everywhere = NULL;

    for (uint32_t rank = 0; rank < TOY_RANKS; rank++)
        check_merged(scattered, &toy, rank, 0, rank);
    g_free(toy.program.slots);
    everywhere = run_merge(&toy, TOY_RANKS, emit_merge_everywhere);
    for (uint32_t rank = 0; rank < TOY_RANKS; rank++) {
        for (uint32_t part = 0; part < TOY_RANKS; part++)
            check_merged(everywhere, &toy, rank, part, part);
    }
    g_free(toy.program.slots);
}
END_TEST

/* Three accumulators cannot be cut into four whole ones. */
static void
emit_merge_of_three(LhEmitter *e)
{
    emit_merge_everywhere(e);
    lh_emit_last(e)->collective.send[0].count = 3;
    lh_emit_last(e)->collective.receive[0].count = 3;
}

START_TEST(runtime_merges_whole_parts_only)
{
    Toy toy;
    g_autoptr(LhRunResult) result = NULL;
    g_autoptr(GError) error = NULL;

    toy_init(&toy, TOY_RANKS, TOY_RANKS, TOY_RANKS, emit_merge_of_three);
    for (unsigned i = 0; i < 2; i++) {
        toy.program.slots[i].kind = LH_TENSOR_ACC;
        toy.program.slots[i].part_bytes = 24 + 2 * 12;
    }
    result = toy_run(&toy, 10, NULL, &error);
    ck_assert_ptr_null(result);
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO));
    ck_assert_msg(strstr(error->message, "whole parts") != NULL, "%s", error->message);
    g_free(toy.program.slots);
}
END_TEST

/* Both ranks receive first, then send, on one stream: a deadlock. */
static void
emit_deadlock(LhEmitter *e)
{
    const uint32_t peer = 1 - e->rank;

    lh_emit_exchange(e, 0);
    lh_emit_part(e, false, peer, 3, 24);
    lh_emit_region(e, TOY_OUT, 0, 1);
    lh_emit_exchange(e, 0);
    lh_emit_part(e, true, peer, 3, 24);
    lh_emit_region(e, TOY_IN, 0, 1);
}

START_TEST(runtime_deadlock_ends)
{
    Toy toy;
    g_autoptr(GError) error = NULL;

    toy_init(&toy, 2, 1, 1, emit_deadlock);
    ck_assert_ptr_null(toy_run(&toy, 0.2, NULL, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
    for (unsigned r = 0; r < 2; r++) {
        g_autofree char *want = g_strdup_printf("rank %u, op 0 (exchange, stream comm): receives "
                                                "from rank %u, slot out (tag 3, 24 bytes)",
                                                r, 1 - r);

        ck_assert_msg(strstr(error->message, want) != NULL, "%s", error->message);
    }
    g_free(toy.program.slots);
}
END_TEST

static void
emit_copy(LhEmitter *e)
{
    const LhKernelArgs args = { .nq = 3, .batch = 1, .heads = 1, .groups = 1, .head_dim = 2 };

    lh_emit_compute(e, 0, LH_KERNEL_ID_copy, &args);
    lh_emit_operand(e, TOY_IN, 0, 1);
    lh_emit_operand(e, TOY_OUT, 0, 1);
}

static void
emit_zero(LhEmitter *e)
{
    const LhKernelArgs args = { .nq = 32, .batch = 1, .heads = 1, .groups = 1, .head_dim = 1 };

    lh_emit_compute(e, 0, LH_KERNEL_ID_zero, &args);
    lh_emit_operand(e, TOY_OUT, 0, 2);
}

/* Accumulators have statistics to be cleared behind their elements, gradients have none, however
 * much room there is to the next part. */
START_TEST(runtime_zero_clears_what_a_part_holds)
{
    for (unsigned acc = 0; acc < 2; acc++) {
        Toy toy;
        g_autoptr(GError) error = NULL;
        g_autoptr(LhRunResult) result = NULL;

        toy_init(&toy, 1, 1, 2, emit_zero);
        toy.program.slots[TOY_OUT].kind = acc ? LH_TENSOR_ACC : LH_TENSOR_DQ;
        toy.program.slots[TOY_OUT].part_bytes = (acc ? 3 : 1) * 64;
        result = toy_run(&toy, 10, NULL, &error);
        ck_assert_msg(result != NULL, "%s", error != NULL ? error->message : "");
        for (uint32_t part = 0; part < 2; part++) {
            for (uint32_t i = 0; i < (acc ? 48 : 16); i++)
                ck_assert(toy_value(result, &toy, 0, part, i) ==
                          (i >= 16 && i < 32 ? -INFINITY : 0));
        }
        g_free(toy.program.slots);
    }
}
END_TEST

static enum lh_status
write_beyond(void *data, uint32_t rank, const LhOp *op, LhKernelRun run, const LhCall *call)
{
    (void)data;
    (void)op;
    if (rank == 1)
        call->operands[1].data[24] ^= 1;
    return run(call);
}

START_TEST(runtime_canaries_find_a_write_beyond_a_slot)
{
    const LhRunHooks hooks = { .call = write_beyond };
    Toy toy;
    g_autoptr(GError) error = NULL;

    toy_init(&toy, 2, 1, 1, emit_copy);
    ck_assert_ptr_null(toy_run(&toy, 10, &hooks, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
    ck_assert_msg(strstr(error->message, "rank 1") != NULL &&
                      strstr(error->message, "slot out") != NULL,
                  "%s", error->message);
    g_free(toy.program.slots);
}
END_TEST

static enum lh_status
fail_on_rank_0(void *data, uint32_t rank, const LhOp *op, LhKernelRun run, const LhCall *call)
{
    (void)data;
    (void)op;
    return rank == 0 ? LH_STATUS_DEVICE : run(call);
}

START_TEST(runtime_kernel_failure_stops_the_run)
{
    const LhRunHooks hooks = { .call = fail_on_rank_0 };
    Toy toy;
    g_autoptr(GError) error = NULL;

    toy_init(&toy, 2, 1, 1, emit_copy);
    ck_assert_ptr_null(toy_run(&toy, 10, &hooks, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
    ck_assert_msg(strstr(error->message, "rank 0, op 0 (copy, stream comm)") != NULL, "%s",
                  error->message);
    g_free(toy.program.slots);
}
END_TEST

int
main(void)
{
    const TTest *const for_each_schedule[] = {
        runtime_at_every_number_of_ranks,
        runtime_under_every_mask,
        runtime_passes_alone,
        runtime_groups,
        runtime_variants,
        runtime_inputs_of_every_kind,
        runtime_mutants_fail,
        runtime_delays_change_nothing,
    };
    const TTest *const tests[] = {
        runtime_repeats_are_equal,
        runtime_stall_names_rank_op_peer_slot,
        runtime_injections_are_checked,
        runtime_inputs_lie_by_segment_and_slice,
        runtime_collective_of_two_tensors,
        runtime_collectives_on_two_streams_do_not_mix,
        runtime_collectives_merge_attention,
        runtime_merges_whole_parts_only,
        runtime_deadlock_ends,
        runtime_zero_clears_what_a_part_holds,
        runtime_canaries_find_a_write_beyond_a_slot,
        runtime_kernel_failure_stops_the_run,
    };
    Suite *suite = suite_create("runtime");
    TCase *cases = tcase_create("runtime");
    SRunner *runner;
    int failed;

    for (size_t i = 0; i < G_N_ELEMENTS(for_each_schedule); i++)
        tcase_add_loop_test(cases, for_each_schedule[i], 0, schedules_count());
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++)
        tcase_add_test(cases, tests[i]);
    tcase_add_loop_test(cases, runtime_collectives, 0, G_N_ELEMENTS(collectives));
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
