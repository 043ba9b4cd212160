/*
 * The executor: every schedule against fp64 attention of the whole sequence, counts against
 * verifier and simulator, faults that must be found, delays that must change nothing.
 */
#include "base/error.h"
#include "plan/execute.h"
#include "run_tests.h"
#include "sched/verify.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *schedule;
    uint32_t ranks;
    uint64_t tokens; /* of a rank */
    uint32_t heads, groups, head_dim, batch;
    LhDtype dtype;
    bool full;
    LhPass pass;
    bool no_overlap, published_code;
    int gradient_wire; /* LhWireDtype */
    LhKernelSet kernels;
    LhInputKind inputs;
    const char *inject;
    uint64_t repeat;
    double deadline_s;
} Case;

static LhScenario *
scenario_of(const Case *c)
{
    LhScenario *s = lh_scenario_new();

    s->schedule = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(s->schedule, g_strdup(c->schedule));
    s->ranks = c->ranks;
    s->seq_length = c->tokens * c->ranks;
    s->num_attention_heads = c->heads;
    s->num_query_groups = c->groups;
    s->kv_channels = c->head_dim;
    s->micro_batch_size = MAX(c->batch, 1);
    s->dtype = (int)c->dtype;
    s->mask = c->full ? 1 : 0;
    s->pass = (int)(c->pass == 0 ? LH_PASS_BOTH : c->pass) - 1;
    s->no_overlap = c->no_overlap;
    s->published_code = c->published_code;
    s->gradient_wire = c->gradient_wire;
    s->seed = 7;
    return s;
}

/* NULL with @error. */
static LhExecuted *
run_case(const Case *c, GError **error)
{
    g_autoptr(LhScenario) scenario = scenario_of(c);
    g_autoptr(LhSetup) setup = lh_setup_new(scenario, error);
    const LhExecuteParams params = {
        .transport = &lh_transport_threads,
        .kernels = c->kernels,
        .inputs = c->inputs,
        .inject = c->inject,
        .repeat = c->repeat,
        .deadline_ps = (LhTime)(c->deadline_s * 1e12),
    };

    if (setup == NULL)
        return NULL;
    return lh_execute_setup(setup, &params, error);
}

static char *
text_of(const Case *c)
{
    return g_strdup_printf(
        "%s, P %u, n %u, h %u, g %u, d %u, B %u, %s, %s, pass %d, kernels %s, %s%s%s", c->schedule,
        c->ranks, (unsigned)c->tokens, c->heads, c->groups, c->head_dim, MAX(c->batch, 1),
        lh_dtype_names[c->dtype], c->full ? "full" : "causal", (int)c->pass,
        lh_kernel_set_names[c->kernels], lh_input_names[c->inputs],
        c->inject != NULL ? ", injected " : "", c->inject != NULL ? c->inject : "");
}

static void
check_errors(const Case *c, const LhExecuted *executed)
{
    g_autofree char *text = text_of(c);

    for (uint32_t i = 0; i < executed->errors.rows_count; i++) {
        const LhErrorRow *row = &executed->errors.rows[i];

        ck_assert_msg(row->ok, "%s: %s: rel L2 %g, worst row %g, largest %g", text, row->name,
                      row->rel_l2, row->row_max, row->abs_max);
        /* The gates are made for 16 bits. So near to one fp64 answer at every P, results of any
         * two P are within 2e-5 of each other, and lse within 5e-5: P-invariance. */
        if (c->dtype == LH_DTYPE_FP32 && c->inputs == LH_INPUTS_NORMAL)
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

/* False if the schedule refuses the case. */
static bool
passes(const Case *c)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = run_case(c, &error);
    g_autofree char *text = text_of(c);

    if (executed == NULL) {
        ck_assert_msg(g_error_matches(error, LH_ERROR, LH_ERROR_NO), "%s: %s", text,
                      error->message);
        return false;
    }
    check_errors(c, executed);
    return true;
}

/* Multi-head, grouped 4:1, one key-value head; head sizes that fill no tile. An odd number of them,
 * so that each meets both masks. */
static const uint32_t shapes[][3] = {
    { 2, 2, 64 }, { 8, 2, 80 }, { 3, 1, 96 }, { 4, 1, 128 }, { 8, 2, 72 },
};
static const uint32_t ranks_few[] = { 1, 2, 3, 4, 5, 7, 8 };

static unsigned
check_every_schedule(LhDtype dtype, LhKernelSet kernels)
{
    unsigned turn = 0, ran = 0;

    for (unsigned s = 0; lh_schedules[s] != NULL; s++) {
        for (unsigned r = 0; r < G_N_ELEMENTS(ranks_few); r++) {
            for (unsigned full = 0; full < 2; full++, turn++) {
                const uint32_t *shape = shapes[turn % G_N_ELEMENTS(shapes)];
                const Case c = { .schedule = lh_schedules[s]->name,
                                 .ranks = ranks_few[r],
                                 .tokens = 4 + 2 * (turn * 7 % 11),
                                 .heads = shape[0],
                                 .groups = shape[1],
                                 .head_dim = shape[2],
                                 .batch = 1 + turn % 5 / 4,
                                 .dtype = dtype,
                                 .full = full != 0,
                                 .kernels = kernels };

                ran += passes(&c);
            }
        }
    }
    return ran;
}

#define LEAST_RUNS 63 /* of 70 today: dfa-balanced refuses the full mask */

START_TEST(runtime_fp32_reference_kernels)
{
    ck_assert_uint_ge(check_every_schedule(LH_DTYPE_FP32, LH_KERNEL_SET_REFERENCE), LEAST_RUNS);
}
END_TEST

START_TEST(runtime_fp32_cpu_kernels)
{
    ck_assert_uint_ge(check_every_schedule(LH_DTYPE_FP32, LH_KERNEL_SET_CPU), LEAST_RUNS);
}
END_TEST

START_TEST(runtime_bf16_reference_kernels)
{
    ck_assert_uint_ge(check_every_schedule(LH_DTYPE_BF16, LH_KERNEL_SET_REFERENCE), LEAST_RUNS);
}
END_TEST

START_TEST(runtime_bf16_cpu_kernels)
{
    ck_assert_uint_ge(check_every_schedule(LH_DTYPE_BF16, LH_KERNEL_SET_CPU), LEAST_RUNS);
}
END_TEST

static Case
small_case(const char *schedule, uint32_t ranks)
{
    return (Case){ .schedule = schedule,
                   .ranks = ranks,
                   .tokens = 10,
                   .heads = 4,
                   .groups = 2,
                   .head_dim = 64,
                   .dtype = LH_DTYPE_BF16 };
}

START_TEST(runtime_passes_alone)
{
    for (unsigned s = 0; lh_schedules[s] != NULL; s++) {
        for (uint32_t ranks = 1; ranks <= 5; ranks += 2) {
            Case c = small_case(lh_schedules[s]->name, ranks);

            c.pass = LH_PASS_FWD;
            ck_assert(passes(&c));
            c.pass = LH_PASS_BWD;
            ck_assert(passes(&c));
        }
    }
}
END_TEST

START_TEST(runtime_variants)
{
    for (unsigned s = 0; lh_schedules[s] != NULL; s++) {
        Case c = small_case(lh_schedules[s]->name, 4);

        c.no_overlap = true;
        ck_assert(passes(&c));
        c.no_overlap = false;
        c.published_code = true;
        ck_assert(passes(&c));
        c.published_code = false;
        c.gradient_wire = LH_WIRE_FP32;
        ck_assert(passes(&c));
        c.gradient_wire = LH_WIRE_16BIT;
        ck_assert(passes(&c));
        c.gradient_wire = LH_WIRE_DEFAULT;
        c.dtype = LH_DTYPE_FP16;
        ck_assert(passes(&c));
    }
}
END_TEST

START_TEST(runtime_more_ranks_than_cores)
{
    for (unsigned s = 0; lh_schedules[s] != NULL; s++) {
        for (uint32_t ranks = 12; ranks <= 16; ranks += 4) {
            Case c = small_case(lh_schedules[s]->name, ranks);

            c.tokens = 4;
            ck_assert(passes(&c));
            c.head_dim = 96;
            c.full = true;
            c.dtype = LH_DTYPE_FP32;
            ck_assert(passes(&c) || strcmp(c.schedule, "dfa-balanced") == 0);
        }
    }
}
END_TEST

START_TEST(runtime_inputs_of_every_kind)
{
    for (unsigned s = 0; lh_schedules[s] != NULL; s++) {
        for (int inputs = 0; lh_input_names[inputs] != NULL; inputs++) {
            Case c = small_case(lh_schedules[s]->name, 5);

            c.inputs = (LhInputKind)inputs;
            ck_assert(passes(&c));
            c.dtype = LH_DTYPE_FP32;
            ck_assert(passes(&c));
        }
    }
}
END_TEST

/* True if it failed the gates, or there is nothing to hit. */
static bool
is_caught(const Case *c, unsigned *caught)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = run_case(c, &error);

    if (executed == NULL) {
        ck_assert_msg(g_error_matches(error, LH_ERROR, LH_ERROR_NO), "%s", error->message);
        return true;
    }
    (*caught)++;
    return !executed->errors.ok;
}

/* One mutant in every schedule and in either pass: the backward pass alone takes o and lse from the
 * reference, so that a fault in it is not hidden by one before it. */
static unsigned
catch_everywhere(const char *inject, uint32_t ranks)
{
    unsigned caught = 0;

    for (unsigned s = 0; lh_schedules[s] != NULL; s++) {
        for (unsigned pass = LH_PASS_FWD; pass <= LH_PASS_BWD; pass++) {
            Case c = small_case(lh_schedules[s]->name, ranks);
            g_autofree char *text = NULL;

            c.pass = (LhPass)pass;
            c.inject = inject;
            text = text_of(&c);
            ck_assert_msg(is_caught(&c, &caught), "%s: not found", text);
        }
    }
    return caught;
}

START_TEST(runtime_mutants_fail)
{
    for (int kind = 0; kind < LH_INJECT_MUTANTS; kind++) {
        unsigned caught = 0;

        for (uint32_t ranks = 2; ranks <= 8; ranks += 3)
            caught += catch_everywhere(lh_inject_names[kind], ranks);
        ck_assert_msg(caught >= 15, "%s: only %u programs have anything to hit",
                      lh_inject_names[kind], caught);
    }
}
END_TEST

START_TEST(runtime_delays_change_nothing)
{
    for (unsigned s = 0; lh_schedules[s] != NULL; s++) {
        Case c = small_case(lh_schedules[s]->name, 5);
        g_autoptr(LhExecuted) first = run_case(&c, NULL);

        ck_assert_ptr_nonnull(first);
        for (unsigned seed = 1; seed <= 20; seed++) {
            g_autofree char *inject = g_strdup_printf("delay:%u", seed);
            g_autoptr(LhExecuted) later = NULL;

            c.inject = inject;
            later = run_case(&c, NULL);
            ck_assert_ptr_nonnull(later);
            ck_assert_str_eq(later->digest, first->digest);
        }
    }
}
END_TEST

START_TEST(runtime_repeats_are_equal)
{
    Case c = small_case("dfa-balanced", 4);
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
    Case c = small_case("ring", 3);
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
    Case c = small_case("ring", 3);
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

/* Partial attention (o, m, l) of all ranks, merged by a reduce-scatter. */
static void
emit_merge(LhEmitter *e)
{
    emit_reduce_scatter(e);
    lh_emit_last(e)->collective.reduction = LH_REDUCE_ATTENTION;
}

/* Three rows of d 2: o = l (r, -r), m = r, l = 1 + part. */
static void
merge_load(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *into)
{
    float *x = (float *)(void *)into;

    (void)data;
    (void)slot;
    for (uint32_t i = 0; i < 3; i++) {
        x[2 * i] = (float)((1 + part) * rank);
        x[2 * i + 1] = -x[2 * i];
        x[6 + i] = (float)rank;
        x[9 + i] = (float)(1 + part);
    }
}

START_TEST(runtime_reduce_scatter_merges_attention)
{
    Toy toy;
    g_autoptr(LhRunResult) result = NULL;
    LhRunParams params;
    double weight = 0, sum = 0;

    toy_init(&toy, TOY_RANKS, TOY_RANKS, 1, emit_merge);
    for (unsigned i = 0; i < 2; i++) {
        toy.program.slots[i].kind = LH_TENSOR_ACC;
        toy.program.slots[i].part_bytes = 48;
    }
    params = (LhRunParams){ .program = &toy.program,
                            .transport = &lh_transport_threads,
                            .kernels = LH_KERNEL_SET_REFERENCE,
                            .deadline_us = 10000000,
                            .load = merge_load };
    result = lh_execute(&params, NULL);
    ck_assert_ptr_nonnull(result);
    for (int r = 0; r < TOY_RANKS; r++) {
        weight += exp(r);
        sum += exp(r) * r;
    }
    for (uint32_t rank = 0; rank < TOY_RANKS; rank++) {
        const double o = (double)toy_value(result, &toy, rank, 0, 2);
        const double l = (double)toy_value(result, &toy, rank, 0, 10);
        const double m = (double)toy_value(result, &toy, rank, 0, 7);

        ck_assert_double_eq_tol(o / l, sum / weight, 1e-6);
        ck_assert_double_eq_tol(m + log(l), log(weight * (1 + rank)), 1e-6);
    }
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
    const TTest *const tests[] = {
        runtime_fp32_reference_kernels,
        runtime_fp32_cpu_kernels,
        runtime_bf16_reference_kernels,
        runtime_bf16_cpu_kernels,
        runtime_passes_alone,
        runtime_variants,
        runtime_more_ranks_than_cores,
        runtime_inputs_of_every_kind,
        runtime_mutants_fail,
        runtime_delays_change_nothing,
        runtime_repeats_are_equal,
        runtime_stall_names_rank_op_peer_slot,
        runtime_injections_are_checked,
        runtime_reduce_scatter_merges_attention,
        runtime_deadlock_ends,
        runtime_canaries_find_a_write_beyond_a_slot,
        runtime_kernel_failure_stops_the_run,
    };
    Suite *suite = suite_create("runtime");
    TCase *cases = tcase_create("runtime");
    SRunner *runner;
    int failed;

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
