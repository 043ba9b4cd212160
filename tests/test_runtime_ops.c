/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor on programs written by hand: placement of inputs, collectives, and the end of runs
 * that cannot continue.
 */
#include "base/error.h"
#include "checking.h"
#include "reference/numerics.h"
#include "runtime/executor.h"
#include "sched/common/pass.h"
#include "verify/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REFERENCE = 1 }; /* index among the kernel sets of lh_device_cpu */

/* ---- placement of inputs ---- */

/* Rank @rank of 4, 16 tokens, 4 query heads in 4 slices, 2 key-value heads in 2; head size 2. */
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
        { .kind = LH_TENSOR_Q, .role = LH_SLOT_INPUT, .dtype = LH_DTYPE_FP32 },
        { .kind = LH_TENSOR_KV, .role = LH_SLOT_INPUT, .dtype = LH_DTYPE_FP32 },
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
        const LhReference *r = &numerics->reference;
        const uint64_t position = holds.start + row % holds.count * holds.stride;
        const uint64_t of_q = lh_reference_row(r, row / holds.count, slice, 4, position);
        const uint64_t of_kv = lh_reference_row(r, row / holds.count, slice / 2, 2, position);

        for (uint32_t i = 0; i < 2; i++) {
            ck_assert_double_eq((double)q[row * 2 + i], r->q[of_q * r->stride + i]);
            ck_assert_double_eq((double)kv[row * 2 + i], r->k[of_kv * r->stride + i]);
            ck_assert_double_eq((double)kv[(rows + row) * 2 + i], r->v[of_kv * r->stride + i]);
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

/* ---- the executor on programs written by hand ---- */

typedef void (*ToyEmit)(LhEmitter *e);

typedef void (*ToyLoad)(void *data, uint32_t rank, uint16_t slot, uint32_t part,
                        unsigned char *into);

typedef struct {
    LhProgram *program;
    ToyEmit emit;
    uint32_t ops; /* for emit */
    LhCollectiveWay collectives;
    bool unguarded;
    ToyLoad load;
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
    ((const Toy *)e->program->plan)->emit(e);
}

static const LhGenerator toy_generator = { .steps = one_step, .emit = toy_emit };

enum {
    TOY_IN,
    TOY_OUT,
    TOY_SPARE, /* used by some programs */
};

/* Element i of part p on rank r: 100 r + 10 p + i. */
static void
toy_load(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *into)
{
    (void)data;
    (void)slot;
    for (uint32_t i = 0; i < 6; i++)
        ((float *)(void *)into)[i] = (float)(100 * rank + 10 * part + i);
}

/* A program with B 1, h 1, g 1, d 2, three tokens per rank, fp32: one input and one output of
 * @parts parts. */
static void
toy_init(Toy *toy, uint32_t ranks, uint32_t parts_in, uint32_t parts_out, ToyEmit emit)
{
    const LhProgramParams params = { .attention = { .batch = 1,
                                                    .seq_length = 3 * (uint64_t)ranks,
                                                    .heads = 1,
                                                    .groups = 1,
                                                    .head_dim = 2,
                                                    .dtype = LH_DTYPE_FP32 },
                                     .ranks = ranks };

    *toy = (Toy){ .program = lh_program_create("toy", &toy_generator, &params, LH_PLACE_CONTIGUOUS),
                  .emit = emit,
                  .load = toy_load };
    toy->program->plan = toy;
    lh_program_add_stream(toy->program, "comm", LH_STREAM_COMM);
    lh_pass_add_slot(toy->program, "in", LH_TENSOR_DQ, LH_SLOT_INPUT, parts_in, 24, 4);
    lh_pass_add_slot(toy->program, "out", LH_TENSOR_DQ, LH_SLOT_OUTPUT, parts_out, 24, 4);
}

static LhRunResult *
toy_run(Toy *toy, double deadline_s, const LhRunHooks *hooks, GError **error)
{
    const LhRunParams params = { .program = toy->program,
                                 .backend = &lh_backend_cpu,
                                 .collectives = toy->collectives,
                                 .kernel_set = REFERENCE,
                                 .deadline_us = (int64_t)(deadline_s * 1e6),
                                 .unguarded = toy->unguarded,
                                 .hooks = hooks,
                                 .load = toy->load };

    return lh_execute(&params, error);
}

static float
toy_value(const LhRunResult *result, const Toy *toy, uint32_t rank, uint32_t part, uint32_t i)
{
    return (
        (const float *)(const void *)lh_run_output(result, toy->program, rank, TOY_OUT, part))[i];
}

/* Sends all of the input to all of the output. */
static void
emit_collective(LhEmitter *e, LhCollectiveKind kind, LhGroup group)
{
    lh_emit_collective(e, 0, kind, group);
    lh_emit_tensor(e, lh_region_whole(e->program, TOY_IN), lh_region_whole(e->program, TOY_OUT));
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

/* Sends back to the slot that it was sent from. */
static void
emit_all_to_all_in_place(LhEmitter *e)
{
    const LhRegion out = lh_region_whole(e->program, TOY_OUT);

    emit_all_to_all(e);
    lh_emit_collective(e, 0, LH_COLL_ALL_TO_ALL, everyone());
    lh_emit_tensor(e, out, out);
}

static void
emit_broadcast(LhEmitter *e)
{
    emit_collective(e, LH_COLL_BROADCAST, everyone());
}

/* Ranks 0 and 2, or ranks 1 and 3. */
static LhGroup
pair_of(uint32_t rank)
{
    return (LhGroup){ .base = rank % 2, .stride = 2, .count = 2, .outer_count = 1 };
}

static void
emit_pairs(LhEmitter *e)
{
    emit_collective(e, LH_COLL_ALL_GATHER, pair_of(e->rank));
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
want_reduce_scatter_of_two(uint32_t rank, uint32_t part, uint32_t i)
{
    return (float)(600 + 4 * (10 * (2 * rank + part) + i));
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
want_as_loaded(uint32_t rank, uint32_t part, uint32_t i)
{
    return (float)(100 * rank + 10 * part + i);
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
    uint64_t bytes[TOY_RANKS]; /* sent by each rank */
} collectives[] = {
    { emit_all_gather, 1, 4, want_all_gather, { 72, 72, 72, 72 } },
    { emit_reduce_scatter, 4, 1, want_reduce_scatter, { 72, 72, 72, 72 } },
    { emit_reduce_scatter, 8, 2, want_reduce_scatter_of_two, { 144, 144, 144, 144 } },
    { emit_all_reduce, 4, 4, want_all_reduce, { 144, 144, 144, 144 } },
    { emit_all_reduce, 8, 8, want_all_reduce, { 288, 288, 288, 288 } },
    { emit_all_to_all, 4, 4, want_all_to_all, { 72, 72, 72, 72 } },
    { emit_all_to_all_in_place, 4, 4, want_as_loaded, { 144, 144, 144, 144 } },
    { emit_broadcast, 2, 2, want_broadcast, { 48, 48, 48, 0 } },
    { emit_pairs, 1, 2, want_pairs, { 24, 24, 24, 24 } },
};

/* Rank 0 alone: one thread posts its messages. */
static bool
note_message_across(void *data, uint32_t rank, const LhOp *op, const LhMessage *message)
{
    bool *across = data;

    (void)op;
    if (rank == 0 && message->send && message->peer == 2)
        *across = true;
    return true;
}

/* Without guards, parts of 64 bytes are contiguous. */
static void
check_collective(unsigned index, LhCollectiveWay way, bool unguarded)
{
    const uint64_t part_bytes = unguarded ? 64 : 24;
    Toy toy;
    g_autoptr(LhRunResult) result = NULL;

    toy_init(&toy, TOY_RANKS, collectives[index].parts_in, collectives[index].parts_out,
             collectives[index].emit);
    toy.program->slots[TOY_IN].part_bytes = toy.program->slots[TOY_OUT].part_bytes = part_bytes;
    toy.collectives = way;
    toy.unguarded = unguarded;
    result = toy_run(&toy, 100, NULL, NULL);
    ck_assert_ptr_nonnull(result);
    for (uint32_t rank = 0; rank < TOY_RANKS; rank++) {
        ck_assert_uint_eq(result->ranks[rank].bytes_sent,
                          collectives[index].bytes[rank] / 24 * part_bytes);
        for (uint32_t part = 0; part < collectives[index].parts_out; part++) {
            for (uint32_t i = 0; i < 6; i++)
                ck_assert_float_eq(toy_value(result, &toy, rank, part, i),
                                   collectives[index].want(rank, part, i));
        }
    }
    lh_program_free(toy.program);
}

START_TEST(runtime_collectives)
{
    for (int way = LH_WAY_DIRECT; way <= LH_WAY_PAIRWISE; way++) {
        check_collective((unsigned)_i, (LhCollectiveWay)way, false);
        check_collective((unsigned)_i, (LhCollectiveWay)way, true);
    }
}
END_TEST

/* Rank 0 sends to rank 2 only in direct algorithms and in all-to-all. Every rank sends the given
 * number of messages. */
START_TEST(runtime_collectives_go_their_ways)
{
    static const struct {
        ToyEmit emit;
        uint32_t parts_in, parts_out;
        uint64_t messages[LH_WAY_PAIRWISE + 1];
        bool across[LH_WAY_PAIRWISE + 1];
    } wanted[] = {
        { emit_all_gather, 1, 4, { 3, 3, 3 }, { true, false, false } },
        { emit_reduce_scatter, 4, 1, { 3, 3, 3 }, { true, false, false } },
        { emit_all_reduce, 4, 4, { 6, 6, 6 }, { true, false, false } },
        { emit_all_to_all, 4, 4, { 3, 3, 3 }, { true, true, true } },
    };

    for (int way = LH_WAY_DIRECT; way <= LH_WAY_PAIRWISE; way++) {
        bool across = false;
        const LhRunHooks hooks = { .data = &across, .post = note_message_across };
        g_autoptr(LhRunResult) result = NULL;
        Toy toy;

        toy_init(&toy, TOY_RANKS, wanted[_i].parts_in, wanted[_i].parts_out, wanted[_i].emit);
        toy.collectives = (LhCollectiveWay)way;
        result = toy_run(&toy, 100, &hooks, NULL);
        ck_assert_ptr_nonnull(result);
        ck_assert_int_eq(across, wanted[_i].across[way]);
        for (uint32_t rank = 0; rank < TOY_RANKS; rank++)
            ck_assert_uint_eq(result->ranks[rank].messages, wanted[_i].messages[way]);
        lh_program_free(toy.program);
    }
}
END_TEST

/* One term per rank; their fp32 sum depends on the order. */
static const float terms[TOY_RANKS] = { 0x1p27F, 1, -0x1p27F, 1 };

static void
load_terms(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *into)
{
    (void)data;
    (void)slot;
    (void)part;
    for (uint32_t i = 0; i < 6; i++)
        ((float *)(void *)into)[i] = terms[rank];
}

/* The sum of the terms, beginning with that of rank @first. */
static float
sum_from(uint32_t first)
{
    volatile float sum = terms[first];

    for (uint32_t k = 1; k < TOY_RANKS; k++)
        sum += terms[(first + k) % TOY_RANKS];
    return sum;
}

/* Direct reductions add in the order of the group. In a ring the sum for a rank's part begins
 * with the next rank's term. */
START_TEST(runtime_sums_have_an_order)
{
    static const ToyEmit emits[] = { emit_reduce_scatter, emit_all_reduce };

    ck_assert_float_ne(sum_from(0), sum_from(1));
    for (int way = LH_WAY_DIRECT; way <= LH_WAY_PAIRWISE; way++) {
        const uint32_t parts_out = _i == 0 ? 1 : TOY_RANKS;
        g_autoptr(LhRunResult) result = NULL;
        Toy toy;

        toy_init(&toy, TOY_RANKS, TOY_RANKS, parts_out, emits[_i]);
        toy.collectives = (LhCollectiveWay)way;
        toy.load = load_terms;
        result = toy_run(&toy, 100, NULL, NULL);
        ck_assert_ptr_nonnull(result);
        for (uint32_t i = 0; i < TOY_RANKS * parts_out; i++) {
            const uint32_t rank = i / parts_out, part = _i == 0 ? rank : i % parts_out;

            ck_assert_float_eq(toy_value(result, &toy, rank, i % parts_out, 5),
                               sum_from(way == LH_WAY_DIRECT ? 0 : (part + 1) % TOY_RANKS));
        }
        lh_program_free(toy.program);
    }
}
END_TEST

/* Two tensors in one collective: parts 0 and 1 of the input are swapped. */
static void
emit_two_tensors(LhEmitter *e)
{
    lh_emit_collective(e, 0, LH_COLL_ALL_GATHER, everyone());
    for (uint32_t i = 0; i < 2; i++)
        lh_emit_tensor(e, (LhRegion){ TOY_IN, 1 - i, 1 },
                       (LhRegion){ TOY_OUT, i * TOY_RANKS, TOY_RANKS });
}

START_TEST(runtime_collective_of_two_tensors)
{
    Toy toy;
    g_autoptr(LhRunResult) result = NULL;

    toy_init(&toy, TOY_RANKS, 2, 2 * TOY_RANKS, emit_two_tensors);
    result = toy_run(&toy, 100, NULL, NULL);
    ck_assert_ptr_nonnull(result);
    for (uint32_t rank = 0; rank < TOY_RANKS; rank++) {
        ck_assert_uint_eq(result->ranks[rank].bytes_sent, 2 * 72);
        for (uint32_t part = 0; part < 2 * TOY_RANKS; part++)
            ck_assert_float_eq(toy_value(result, &toy, rank, part, 3),
                               (float)(100 * (part % TOY_RANKS) + (part < TOY_RANKS ? 10 : 0) + 3));
    }
    lh_program_free(toy.program);
}
END_TEST

/* Parts of a slot have two halves of three elements. v is gathered from every rank's part 1;
 * rank 0 sends k of its part 0 to rank 1. */
static void
emit_halves(LhEmitter *e)
{
    const LhRegion from = { TOY_IN, 1, 1, LH_HALF_V }, to = { TOY_OUT, 0, TOY_RANKS, LH_HALF_V };
    const LhRegion sent = { TOY_IN, 0, 1, LH_HALF_K }, received = { TOY_OUT, 2, 1, LH_HALF_K };

    lh_emit_collective(e, 0, LH_COLL_ALL_GATHER, everyone());
    lh_emit_tensor(e, from, to);
    if (e->rank > 1)
        return;
    lh_emit_exchange(e, 0);
    lh_emit_part(e, e->rank == 0, 1 - e->rank, 0, 12);
    lh_emit_part_region(e, e->rank == 0 ? sent : received);
}

START_TEST(runtime_moves_halves)
{
    Toy toy;
    g_autoptr(LhRunResult) result = NULL;

    toy_init(&toy, TOY_RANKS, 2, TOY_RANKS, emit_halves);
    result = toy_run(&toy, 100, NULL, NULL);
    ck_assert_ptr_nonnull(result);
    for (uint32_t rank = 0; rank < TOY_RANKS; rank++) {
        ck_assert_uint_eq(result->ranks[rank].bytes_sent,
                          (TOY_RANKS - 1) * 12 + (rank == 0 ? 12 : 0));
        for (uint32_t part = 0; part < TOY_RANKS; part++) {
            for (uint32_t i = 3; i < 6; i++)
                ck_assert_float_eq(toy_value(result, &toy, rank, part, i),
                                   (float)(100 * part + 10 + i));
        }
    }
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_float_eq(toy_value(result, &toy, 1, 2, i), (float)i);
    lh_program_free(toy.program);
}
END_TEST

/* Number of parts that rank @from has for rank @to, and the same in reverse. */
static uint32_t
uneven_count(uint32_t from, uint32_t to)
{
    return (from + to) % 3;
}

static uint32_t
uneven_first(uint32_t from, uint32_t to)
{
    uint32_t first = 0;

    for (uint32_t k = 0; k < to; k++)
        first += uneven_count(from, k);
    return first;
}

static void
emit_uneven(LhEmitter *e)
{
    const uint32_t all = uneven_first(e->rank, TOY_RANKS);
    uint32_t counts[TOY_RANKS];

    for (uint32_t k = 0; k < TOY_RANKS; k++)
        counts[k] = uneven_count(e->rank, k);
    lh_emit_collective(e, 0, LH_COLL_ALL_TO_ALL, everyone());
    lh_emit_tensor_uneven(e, (LhRegion){ TOY_IN, 0, all }, (LhRegion){ TOY_OUT, 0, all }, counts,
                          counts);
}

START_TEST(runtime_all_to_all_of_unequal_pieces)
{
    Toy toy;
    g_autoptr(LhRunResult) result = NULL;

    toy_init(&toy, TOY_RANKS, 5, 5, emit_uneven);
    result = toy_run(&toy, 100, NULL, NULL);
    ck_assert_ptr_nonnull(result);
    for (uint32_t rank = 0; rank < TOY_RANKS; rank++) {
        ck_assert_uint_eq(result->ranks[rank].bytes_sent,
                          24 * (uneven_first(rank, TOY_RANKS) - uneven_count(rank, rank)));
        for (uint32_t k = 0; k < TOY_RANKS; k++) {
            for (uint32_t i = 0; i < uneven_count(k, rank); i++)
                ck_assert_float_eq(toy_value(result, &toy, rank, uneven_first(rank, k) + i, 2),
                                   (float)(100 * k + 10 * (uneven_first(k, rank) + i) + 2));
        }
    }
    lh_program_free(toy.program);
}
END_TEST

/* Two collectives in flight at once, one per stream, over groups of ranks 0 and 2, and 1 and 3. */
static void
emit_two_streams(LhEmitter *e)
{
    lh_emit_collective(e, 0, LH_COLL_ALL_GATHER, everyone());
    lh_emit_tensor(e, (LhRegion){ TOY_IN, 0, 1 }, (LhRegion){ TOY_OUT, 0, TOY_RANKS });
    lh_emit_collective(e, 1, LH_COLL_ALL_GATHER, pair_of(e->rank));
    lh_emit_tensor(e, (LhRegion){ TOY_IN, 1, 1 }, (LhRegion){ TOY_OUT, TOY_RANKS, 2 });
}

/* The two ranks of a pair start them in opposite order. */
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
    lh_program_add_stream(toy.program, "other", LH_STREAM_COMM);
    result = toy_run(&toy, 100, &hooks, NULL);
    ck_assert_ptr_nonnull(result);
    for (uint32_t rank = 0; rank < TOY_RANKS; rank++) {
        for (uint32_t part = 0; part < TOY_RANKS; part++)
            ck_assert_float_eq(toy_value(result, &toy, rank, part, 1), (float)(100 * part + 1));
        for (uint32_t part = 0; part < 2; part++)
            ck_assert_float_eq(toy_value(result, &toy, rank, TOY_RANKS + part, 1),
                               (float)(100 * (rank % 2 + 2 * part) + 10 + 1));
    }
    lh_program_free(toy.program);
}
END_TEST

/* Rank 0 sends part @tag - 1 of its input; rank 1 receives it into that of its output. */
static void
emit_message(LhEmitter *e, uint8_t stream, uint16_t tag)
{
    const bool send = e->rank == 0;

    lh_emit_exchange(e, stream);
    lh_emit_part(e, send, 1 - e->rank, tag, 24);
    lh_emit_region(e, send ? TOY_IN : TOY_OUT, tag - 1U, 1);
}

/* Both in one exchange, received in the opposite order. */
static void
emit_labels(LhEmitter *e)
{
    const uint16_t first = e->rank == 0 ? 1 : 2;
    const bool send = e->rank == 0;

    emit_message(e, 0, first);
    lh_emit_part(e, send, 1 - e->rank, 3 - first, 24);
    lh_emit_region(e, send ? TOY_IN : TOY_OUT, 2U - first, 1);
}

/* From two streams on communicators of their own, received on one stream in the opposite order. */
static void
emit_communicators(LhEmitter *e)
{
    for (uint16_t i = 0; i < 2; i++) {
        const uint16_t tag = e->rank == 0 ? i + 1 : 2 - i;

        emit_message(e, e->rank == 0 ? (uint8_t)i : 0, tag);
        lh_emit_last(e)->communicator = (uint8_t)tag;
    }
}

/* Tags do not match messages: on one communicator they match in the order of posting. */
START_TEST(runtime_communicators_tell_messages_apart)
{
    static const ToyEmit emits[] = { emit_labels, emit_communicators };

    for (uint32_t i = 0; i < G_N_ELEMENTS(emits); i++) {
        Toy toy;
        g_autoptr(LhRunResult) result = NULL;

        toy_init(&toy, 2, 2, 2, emits[i]);
        lh_program_add_stream(toy.program, "other", LH_STREAM_COMM);
        result = toy_run(&toy, 100, NULL, NULL);
        ck_assert_ptr_nonnull(result);
        for (uint32_t part = 0; part < 2; part++)
            ck_assert_float_eq(toy_value(result, &toy, 1, part, 4),
                               (float)(10 * (i == 0 ? 1 - part : part) + 4));
        lh_program_free(toy.program);
    }
}
END_TEST

/* Merges partial attention (o, m, l) of all ranks. */
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

/* Six rows of head size 2, for three tokens and half of the heads: o = l (r, -r), m = r, l = 1 +
 * part. */
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

/* The last row after merging part @part of all ranks. */
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

/* Each part is the accumulator of half of four heads. */
static LhRunResult *
run_merge(Toy *toy, uint32_t parts_out, ToyEmit emit, ToyLoad load)
{
    LhRunParams params;
    LhRunResult *result;

    toy_init(toy, TOY_RANKS, TOY_RANKS, parts_out, emit);
    toy->program->params.attention.heads = 4;
    toy->program->head_slices = 2;
    for (unsigned i = 0; i < 2; i++) {
        toy->program->slots[i].kind = LH_TENSOR_ACC;
        toy->program->slots[i].part_bytes = 96;
    }
    params = (LhRunParams){ .program = toy->program,
                            .backend = &lh_backend_cpu,
                            .kernel_set = REFERENCE,
                            .deadline_us = 100000000,
                            .load = load };
    result = lh_execute(&params, NULL);
    ck_assert_ptr_nonnull(result);
    return result;
}

START_TEST(runtime_collectives_merge_attention)
{
    Toy toy;
    g_autoptr(LhRunResult) scattered = run_merge(&toy, 1, emit_merge, merge_load);
    g_autoptr(LhRunResult) everywhere = NULL;

    for (uint32_t rank = 0; rank < TOY_RANKS; rank++)
        check_merged(scattered, &toy, rank, 0, rank);
    lh_program_free(toy.program);
    everywhere = run_merge(&toy, TOY_RANKS, emit_merge_everywhere, merge_load);
    for (uint32_t rank = 0; rank < TOY_RANKS; rank++) {
        for (uint32_t part = 0; part < TOY_RANKS; part++)
            check_merged(everywhere, &toy, rank, part, part);
    }
    lh_program_free(toy.program);
}
END_TEST

/* Six rows of head size 2: o is one term each, m = 0, l = 1. */
static void
load_terms_to_merge(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *into)
{
    float *x = (float *)(void *)into;

    (void)data;
    (void)slot;
    (void)part;
    for (uint32_t i = 0; i < 24; i++)
        x[i] = i < 12 ? terms[rank] : i < 18 ? 0 : 1;
}

START_TEST(runtime_merges_have_an_order)
{
    Toy toy;
    g_autoptr(LhRunResult) result = run_merge(&toy, 1, emit_merge, load_terms_to_merge);

    for (uint32_t rank = 0; rank < TOY_RANKS; rank++)
        ck_assert_float_eq(toy_value(result, &toy, rank, 0, 10), sum_from(0));
    lh_program_free(toy.program);
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
    ck_assert_ptr_null(toy_run(&toy, 5, NULL, &error));
    ck_assert(g_error_matches(error, LH_WAITED, LH_ERROR_RUNTIME));
    for (unsigned r = 0; r < 2; r++) {
        g_autofree char *want = g_strdup_printf("rank %u, op 0 (exchange, stream comm): receives "
                                                "from rank %u, slot out (tag 3, 24 bytes)",
                                                r, 1 - r);

        ck_assert_msg(strstr(error->message, want) != NULL, "%s", error->message);
    }
    lh_program_free(toy.program);
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
emit_sum_to(LhEmitter *e, uint8_t stream, uint16_t slot)
{
    lh_emit_compute(e, stream, LH_KERNEL_ID_residual, &(LhKernelArgs){ .elements.count = 6 });
    lh_emit_operand(e, TOY_IN, 0, 1);
    lh_emit_operand(e, TOY_IN, 0, 1);
    lh_emit_operand(e, slot, 0, 1);
}

/* Rank 0 sends and, after Toy.ops ops, receives what rank 1 sends before its own receive. */
static void
emit_far_ahead(LhEmitter *e)
{
    const uint32_t peer = 1 - e->rank, ops = ((const Toy *)e->program->plan)->ops;
    const bool first = e->rank == 0;

    lh_emit_exchange(e, 0);
    lh_emit_part(e, true, peer, 0, 24);
    lh_emit_region(e, TOY_IN, 0, 1);
    if (first)
        lh_emit_alloc(e, TOY_SPARE);
    for (uint32_t i = 2; first && i < ops; i++)
        emit_sum_to(e, 2, TOY_SPARE);
    lh_emit_exchange(e, first ? 1 : 0);
    lh_emit_part(e, false, peer, 0, 24);
    lh_emit_region(e, TOY_OUT, 0, 1);
}

static bool
has_deadlock(const LhProgram *program)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);

    for (guint i = 0; i < verdict->findings->len; i++) {
        if (g_array_index(verdict->findings, LhFinding, i).kind == LH_FINDING_DEADLOCK)
            return true;
    }
    return false;
}

/* A host is at most a window of ops ahead of the oldest incomplete one; the verifier models it,
 * too. */
START_TEST(runtime_hosts_are_a_window_ahead)
{
    for (uint32_t more = 0; more < 2; more++) {
        Toy toy;
        g_autoptr(GError) error = NULL;
        g_autoptr(LhRunResult) result = NULL;

        toy_init(&toy, 2, 1, 1, emit_far_ahead);
        toy.ops = LH_HOST_WINDOW + more;
        lh_pass_add_slot(toy.program, "spare", LH_TENSOR_HIDDEN, LH_SLOT_TEMP, 1, 24, 4);
        toy.program->slots[TOY_IN].kind = toy.program->slots[TOY_OUT].kind = LH_TENSOR_HIDDEN;
        lh_program_add_stream(toy.program, "other", LH_STREAM_COMM);
        lh_program_add_stream(toy.program, "compute", LH_STREAM_COMPUTE);
        ck_assert_int_eq(has_deadlock(toy.program), more != 0);
        result = toy_run(&toy, more ? 5 : 100, NULL, &error);
        if (more) {
            ck_assert_ptr_null(result);
            ck_assert(g_error_matches(error, LH_WAITED, LH_ERROR_RUNTIME));
            ck_assert_msg(strstr(error->message,
                                 "rank 0, host: waits for its device before op "
                                 "1025; the oldest op that is not complete is 0") != NULL,
                          "%s", error->message);
        } else {
            ck_assert_msg(result != NULL, "%s", error != NULL ? error->message : "");
            ck_assert_float_eq(toy_value(result, &toy, 0, 0, 4), 104);
            ck_assert_float_eq(toy_value(result, &toy, 1, 0, 4), 4);
        }
        lh_program_free(toy.program);
    }
}
END_TEST

static void
emit_zero(LhEmitter *e)
{
    const LhKernelArgs args = { .nq = 32, .batch = 1, .heads = 1, .groups = 1, .head_dim = 1 };

    lh_emit_compute(e, 0, LH_KERNEL_ID_zero, &args);
    lh_emit_operand(e, TOY_OUT, 0, 2);
}

/* Accumulators have statistics behind their elements, which are cleared, too; gradients have
 * none, regardless of the padding between parts. */
START_TEST(runtime_zero_clears_what_a_part_holds)
{
    for (unsigned acc = 0; acc < 2; acc++) {
        Toy toy;
        g_autoptr(GError) error = NULL;
        g_autoptr(LhRunResult) result = NULL;

        toy_init(&toy, 1, 1, 2, emit_zero);
        toy.program->slots[TOY_OUT].kind = acc ? LH_TENSOR_ACC : LH_TENSOR_DQ;
        toy.program->slots[TOY_OUT].part_bytes = (acc ? 3 : 1) * 64;
        result = toy_run(&toy, 100, NULL, &error);
        ck_assert_msg(result != NULL, "%s", error != NULL ? error->message : "");
        for (uint32_t part = 0; part < 2; part++) {
            for (uint32_t i = 0; i < (acc ? 48 : 16); i++)
                ck_assert(toy_value(result, &toy, 0, part, i) ==
                          (i >= 16 && i < 32 ? -INFINITY : 0));
        }
        lh_program_free(toy.program);
    }
}
END_TEST

static enum lh_status
write_beyond(void *data, uint32_t rank, const LhOp *op, const LhPlaceOfWork *at, const LhCall *call)
{
    (void)data;
    if (rank == 1)
        call->operands[1].data[24] ^= 1;
    return at->device->call(at->state, op->compute.kernel, call, at->stream);
}

START_TEST(runtime_canaries_find_a_write_beyond_a_slot)
{
    const LhRunHooks hooks = { .call = write_beyond };
    Toy toy;
    g_autoptr(GError) error = NULL;

    toy_init(&toy, 2, 1, 1, emit_copy);
    ck_assert_ptr_null(toy_run(&toy, 100, &hooks, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
    ck_assert_msg(strstr(error->message, "rank 1") != NULL &&
                      strstr(error->message, "slot out") != NULL,
                  "%s", error->message);
    lh_program_free(toy.program);
}
END_TEST

/* Padding between parts is not checked without guards. */
START_TEST(runtime_unguarded_memory_has_no_canaries)
{
    const LhRunHooks hooks = { .call = write_beyond };
    g_autoptr(LhRunResult) result = NULL;
    Toy toy;

    toy_init(&toy, 2, 1, 1, emit_copy);
    toy.unguarded = true;
    result = toy_run(&toy, 100, &hooks, NULL);
    ck_assert_ptr_nonnull(result);
    lh_program_free(toy.program);
}
END_TEST

static enum lh_status
fail_on_rank_0(void *data, uint32_t rank, const LhOp *op, const LhPlaceOfWork *at,
               const LhCall *call)
{
    (void)data;
    return rank == 0 ? LH_STATUS_DEVICE
                     : at->device->call(at->state, op->compute.kernel, call, at->stream);
}

START_TEST(runtime_kernel_failure_stops_the_run)
{
    const LhRunHooks hooks = { .call = fail_on_rank_0 };
    Toy toy;
    g_autoptr(GError) error = NULL;

    toy_init(&toy, 2, 1, 1, emit_copy);
    ck_assert_ptr_null(toy_run(&toy, 100, &hooks, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
    ck_assert_msg(strstr(error->message, "rank 0, op 0 (copy, stream comm)") != NULL, "%s",
                  error->message);
    lh_program_free(toy.program);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        runtime_inputs_lie_by_segment_and_slice,
        runtime_collective_of_two_tensors,
        runtime_moves_halves,
        runtime_all_to_all_of_unequal_pieces,
        runtime_collectives_on_two_streams_do_not_mix,
        runtime_communicators_tell_messages_apart,
        runtime_collectives_merge_attention,
        runtime_merges_have_an_order,
        runtime_deadlock_ends,
        runtime_hosts_are_a_window_ahead,
        runtime_zero_clears_what_a_part_holds,
        runtime_canaries_find_a_write_beyond_a_slot,
        runtime_unguarded_memory_has_no_canaries,
        runtime_kernel_failure_stops_the_run,
    };
    Suite *suite = suite_create("runtime_ops");
    TCase *cases = tcase_create("runtime_ops");
    SRunner *runner = srunner_create(suite);
    int failed;

    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++)
        tcase_add_test(cases, tests[i]);
    tcase_add_loop_test(cases, runtime_collectives, 0, G_N_ELEMENTS(collectives));
    tcase_add_loop_test(cases, runtime_collectives_go_their_ways, 0, 4);
    tcase_add_loop_test(cases, runtime_sums_have_an_order, 0, 2);
    suite_add_tcase(suite, cases);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
