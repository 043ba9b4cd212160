/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier on slices of heads, masks by position and collectives of several tensors: a small
 * schedule written by hand that exchanges sequence for heads and back. It is proven under every
 * mask, and rejected after each of many changes.
 */
#include "base/rng.h"
#include "recording.h"
#include "run_tests.h"
#include "sched/common/pass.h"
#include "verify/verify.h"
#include "verifying.h"

#include <string.h>

static const uint64_t rows = 4; /* per segment */

/* Slots in the order of lh_pass_declare and toy_declare. */
enum {
    SLOT_Q,
    SLOT_KV,
    SLOT_O,
    SLOT_LSE,
    SLOT_DO,
    SLOT_DQ,
    SLOT_DKV,
    SLOT_KV_DEALT, /* the key-value slices, one for each query slice */
    SLOT_Q_ALL,    /* from here on: all segments of one slice */
    SLOT_KV_ALL,
    SLOT_DO_ALL,
    SLOT_O_ALL,
    SLOT_LSE_ALL,
    SLOT_DQ_ALL,
    SLOT_DKV_ALL,
    SLOT_DKV_DEALT, /* what each query slice adds to the gradient of the own segment */
    SLOTS,
};

#define RANKS 4 /* of damaged programs */

/* Ops of the damaged programs; their order does not depend on the rank: allocs, a copy of each
 * dealt slice, these, frees. */
enum {
    OP_DEAL = SLOTS - SLOT_KV_DEALT, /* a copy of each dealt slice */
    OP_SCATTER_HEADS = OP_DEAL + RANKS,
    OP_ATTEND,
    OP_GATHER_OUTPUT,
    OP_ATTEND_BACKWARD,
    OP_GATHER_GRADIENTS,
    OP_ADD, /* an addition per dealt gradient */
};

/* As many slices as ranks; with fewer key-value heads, ranks share them. */
static void
toy_declare(LhProgram *p)
{
    const LhPassSizes z = lh_pass_sizes(&p->params, 0);
    const uint32_t ranks = p->params.ranks;
    const uint32_t kv_slices = MIN(ranks, p->params.attention.groups);
    const struct {
        const char *name;
        LhTensorKind kind;
        uint64_t bytes;
        uint32_t element_bytes;
    } temps[] = {
        { "kv_dealt", LH_TENSOR_KV, z.kv / kv_slices, 2 },
        { "q_all", LH_TENSOR_Q, z.q / ranks, 2 },
        { "kv_all", LH_TENSOR_KV, z.kv / kv_slices, 2 },
        { "do_all", LH_TENSOR_DO, z.q / ranks, 2 },
        { "o_all", LH_TENSOR_O, z.q / ranks, 2 },
        { "lse_all", LH_TENSOR_LSE, z.s / ranks, 4 },
        { "dq_all", LH_TENSOR_DQ, z.q / ranks, 2 },
        { "dkv_all", LH_TENSOR_DKV, z.kv / kv_slices, 2 },
        { "dkv_dealt", LH_TENSOR_DKV, z.kv / kv_slices, 2 },
    };

    p->head_slices = ranks;
    p->kv_slices = kv_slices;
    lh_pass_declare(p, &z);
    for (uint32_t i = 0; i < G_N_ELEMENTS(temps); i++)
        lh_pass_add_slot(p, temps[i].name, temps[i].kind, LH_SLOT_TEMP, ranks, temps[i].bytes,
                         temps[i].element_bytes);
}

static LhKernelArgs
toy_kv_args(const LhProgram *p, bool first)
{
    LhKernelArgs args = lh_pass_kv_args(&p->params, rows);

    args.heads /= p->head_slices;
    args.groups /= p->kv_slices;
    args.first = first;
    return args;
}

/* All tokens with all tokens. */
static LhKernelArgs
toy_attend_args(const LhProgram *p)
{
    const bool striped = p->placement.kind == LH_PLACE_STRIPED;
    const LhPassRows all = {
        .first = { .start = 0, .stride = striped ? p->params.ranks : 1, .count = rows },
        .part_step = striped ? 1 : (int64_t)rows,
        .parts = p->params.ranks,
    };
    LhKernelArgs args = lh_pass_position_args(p, all, all);

    args.first = true;
    return args;
}

static void
toy_tensor(LhEmitter *e, uint16_t send, uint16_t receive)
{
    const uint32_t ranks = e->program->params.ranks;

    lh_emit_tensor(e, (LhRegion){ send, 0, ranks }, (LhRegion){ receive, 0, ranks });
}

static void
toy_collective(LhEmitter *e, LhCollectiveKind kind)
{
    const uint32_t before = lh_emit_last(e)->id;

    lh_emit_collective(
        e, LH_PASS_STREAM_COMM, kind,
        (LhGroup){ .stride = 1, .count = e->program->params.ranks, .outer_count = 1 });
    lh_emit_after(e, before);
}

static void
toy_attend(LhEmitter *e, LhKernelId kernel, const uint16_t *slots, unsigned count)
{
    const LhKernelArgs args = toy_attend_args(e->program);
    const uint32_t before = lh_emit_last(e)->id;

    lh_emit_compute(e, LH_PASS_STREAM_COMPUTE, kernel, &args);
    for (unsigned i = 0; i < count; i++)
        lh_emit_operand(e, slots[i], 0, e->program->params.ranks);
    lh_emit_after(e, before);
}

/* Copies a slice of k, v for each query slice, or adds up its gradients. */
static void
toy_deal(LhEmitter *e, LhKernelId kernel)
{
    const LhProgram *p = e->program;
    const uint32_t replicas = p->head_slices / p->kv_slices;
    const uint32_t before = lh_emit_last(e)->id;

    for (uint32_t slice = 0; slice < p->head_slices; slice++) {
        const LhKernelArgs args = toy_kv_args(p, slice % replicas == 0);
        const bool add = kernel == LH_KERNEL_ID_add;

        lh_emit_compute(e, LH_PASS_STREAM_COMPUTE, kernel, &args);
        lh_emit_operand(e, add ? SLOT_DKV_DEALT : SLOT_KV, add ? slice : slice / replicas, 1);
        lh_emit_operand(e, add ? SLOT_DKV : SLOT_KV_DEALT, add ? slice / replicas : slice, 1);
        lh_emit_after(e, before);
    }
}

static void
toy_emit(LhEmitter *e, uint32_t step)
{
    (void)step;
    lh_pass_alloc(e, SLOT_KV_DEALT, SLOTS);
    toy_deal(e, LH_KERNEL_ID_copy);
    toy_collective(e, LH_COLL_ALL_TO_ALL);
    toy_tensor(e, SLOT_Q, SLOT_Q_ALL);
    toy_tensor(e, SLOT_KV_DEALT, SLOT_KV_ALL);
    toy_tensor(e, SLOT_DO, SLOT_DO_ALL);
    toy_attend(e, LH_KERNEL_ID_attention,
               (const uint16_t[]){ SLOT_Q_ALL, SLOT_KV_ALL, SLOT_O_ALL, SLOT_LSE_ALL }, 4);
    toy_collective(e, LH_COLL_ALL_TO_ALL);
    toy_tensor(e, SLOT_O_ALL, SLOT_O);
    toy_tensor(e, SLOT_LSE_ALL, SLOT_LSE);
    toy_attend(e, LH_KERNEL_ID_attention_bwd_o,
               (const uint16_t[]){ SLOT_Q_ALL, SLOT_DO_ALL, SLOT_O_ALL, SLOT_LSE_ALL, SLOT_KV_ALL,
                                   SLOT_DQ_ALL, SLOT_DKV_ALL },
               7);
    toy_collective(e, LH_COLL_ALL_TO_ALL);
    toy_tensor(e, SLOT_DQ_ALL, SLOT_DQ);
    toy_tensor(e, SLOT_DKV_ALL, SLOT_DKV_DEALT);
    toy_deal(e, LH_KERNEL_ID_add);
    lh_pass_free(e, SLOT_KV_DEALT, SLOTS);
}

/* Bytes of q, do, o, dq, lse, and of k, v and their gradients once per query slice; all but the
 * own share. */
static uint64_t
toy_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t kv_dealt = z.kv / MIN(p->ranks, p->attention.groups) * p->ranks;

    (void)rank;
    return (4 * z.q + z.s + 2 * kv_dealt) / p->ranks * (p->ranks - 1);
}

static const LhSchedule toy = {
    .name = "toy",
    .placement = LH_PLACE_CONTIGUOUS,
    .masks = LH_MASKS_ALL,
    .declare = toy_declare,
    .generator = { .steps = recording_steps, .emit = toy_emit },
    .closed = { .bytes_sent = toy_bytes },
};

static const LhSchedule striped_toy = {
    .name = "striped toy",
    .placement = LH_PLACE_STRIPED,
    .masks = LH_MASKS_ALL,
    .declare = toy_declare,
    .generator = { .steps = recording_steps, .emit = toy_emit },
    .closed = { .bytes_sent = toy_bytes },
};

static LhProgram *
toy_program(const LhSchedule *schedule, uint32_t ranks, uint32_t groups, const LhMaskRule *mask)
{
    LhProgramParams params = params_of(ranks, LH_PASS_BOTH, false, true, false);
    LhProgram *program;

    params.attention.heads = MAX(8, ranks);
    params.attention.groups = groups;
    params.attention.seq_length = ranks * rows;
    params.mask = *mask;
    program = lh_program_new(schedule, &params, NULL);
    ck_assert_ptr_nonnull(program);
    return program;
}

static const LhMaskRule full = { .causal = false };
static const LhMaskRule causal = { .causal = true };
static const LhMaskRule window = { .causal = true, .window = 6 };
static const uint64_t document_ends[] = { 3, 9, RANKS * 4 };
static const LhMaskRule documents = { .document_ends = document_ends,
                                      .documents_count = G_N_ELEMENTS(document_ends) };

/* Checks the first finding of a program. */
static void
expect(const char *name, const LhProgram *program, LhFindingKind kind, uint32_t rank,
       const char *message)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    const LhFinding *finding;

    ck_assert_msg(verdict->findings->len > 0, "%s: proven", name);
    finding = &g_array_index(verdict->findings, LhFinding, 0);
    ck_assert_msg(strcmp(finding->message, message) == 0, "%s: %s", name, finding->message);
    ck_assert_msg(finding->kind == kind && finding->rank == rank, "%s: kind %d of rank %u", name,
                  (int)finding->kind, finding->rank);
}

static void
expect_proven(const LhProgram *program)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);

    if (verdict->findings->len > 0)
        ck_abort_msg("%u ranks, %u groups: %s", program->params.ranks,
                     program->params.attention.groups, first_message(verdict));
}

START_TEST(slices_are_proven)
{
    static const LhSchedule *const toys[] = { &toy, &striped_toy };
    static const uint32_t groups[] = { 1, 2, 8 };

    for (uint32_t i = 0; i < 2 * 4 * 3; i++) {
        const uint32_t ranks = 1u << (i / 6);
        const uint64_t ends[] = { 1, ranks * rows / 2 + 1, ranks * rows };
        const LhMaskRule masks[] = {
            full,
            causal,
            window,
            { .causal = true, .window = 2, .document_ends = ends, .documents_count = 3 },
            { .document_ends = ends, .documents_count = 3 },
        };

        for (uint32_t k = 0; k < G_N_ELEMENTS(masks); k++) {
            g_autoptr(LhProgram) program =
                toy_program(toys[i % 2], ranks, groups[i / 2 % 3], &masks[k]);
            g_autoptr(LhVerdict) verdict = NULL;

            expect_proven(program);
            verdict = lh_verify(program);
            ck_assert(verdict->pairs_checked == 2 * ranks * toy_attend_args(program).pairs);
        }
    }
}
END_TEST

/* 64 slices of 64 segments, or one pair of heads that all of them share. */
START_TEST(slices_of_64_ranks_are_proven)
{
    static const uint32_t groups[] = { 1, 64 };

    for (uint32_t i = 0; i < G_N_ELEMENTS(groups); i++) {
        g_autoptr(LhProgram) program = toy_program(&toy, 64, groups[i], &causal);

        expect_proven(program);
    }
}
END_TEST

/* Pairs are always counted by the claimed rule. */
START_TEST(positions_under_another_rule)
{
    static const uint64_t other_ends[] = { 3, 10, 16 };
    const struct {
        LhMaskRule truth, claimed;
    } cases[] = {
        { window, { .causal = true, .window = 7 } },
        { causal, { .causal = true, .window = 15 } },
        { documents, { .document_ends = other_ends, .documents_count = 3 } },
        { documents, { .document_ends = document_ends, .documents_count = 3, .causal = true } },
        { window, { .causal = true } },
    };

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhProgram) program = toy_program(&toy, RANKS, 8, &cases[i].truth);
        Recording *recording = recording_new(program);
        LhKernelArgs *args = &recording_op(recording, 1, OP_ATTEND)->compute.args;
        const LhSegment all = { .stride = 1, .count = RANKS * rows };

        ck_assert_uint_eq(args->mask, LH_MASK_POSITIONS);
        args->rule = &cases[i].claimed;
        args->pairs = lh_mask_pairs(args->rule, all, all);
        expect(
            "another rule", &recording->program, LH_FINDING_COVERAGE, 1,
            "rank 1, op 14 (attention, stream compute) uses another mask rule than the program's");
        recording_free(recording);
    }
}
END_TEST

START_TEST(slices_of_the_wrong_size)
{
    g_autoptr(LhProgram) program = toy_program(&toy, RANKS, 8, &causal);

    program->slots[SLOT_Q_ALL].part_bytes *= 4;
    expect("slices", program, LH_FINDING_MALFORMED, LH_OP_NONE,
           "the program has 1024 bytes in a part of slot q_all; a segment of q in elements of 2 "
           "bytes takes 256");
    program->slots[SLOT_Q_ALL].part_bytes /= 4;
    program->slots[SLOT_DKV].parts = 1;
    expect("slices", program, LH_FINDING_MALFORMED, LH_OP_NONE,
           "the program has 1 parts in its input or output slot dkv, but a rank holds 4 segments, "
           "counted per slice");
}
END_TEST

START_TEST(slices_that_cannot_be_cut)
{
    g_autoptr(LhProgram) program = toy_program(&toy, RANKS, 8, &causal);

    program->head_slices = 3;
    expect("slices", program, LH_FINDING_MALFORMED, LH_OP_NONE,
           "the program cannot split 8 query heads into 3 slices and 8 key-value heads into 4");
    program->head_slices = 2;
    expect("slices", program, LH_FINDING_MALFORMED, LH_OP_NONE,
           "the program has 2 slices of query heads, which 4 of key-value heads cannot share "
           "evenly");
    program->head_slices = 8;
    expect("slices", program, LH_FINDING_MALFORMED, LH_OP_NONE,
           "the program has 8 slices of query heads for 4 of key-value heads; slices that are "
           "shared must have one key-value head, not 2");
}
END_TEST

/* Overwrites one field of an attention op with a small or huge value. */
static void
scramble_attention(LhOp *op, uint64_t what, uint32_t value)
{
    LhKernelArgs *args = &op->compute.args;
    LhRegion *region = &op->compute.regions[value % 4];

    if (what == 0)
        args->mask = (uint8_t)(value % 5);
    else if (what == 1)
        args->q_at.start = (int64_t)value - 6;
    else if (what == 2)
        args->k_at.part_step = INT64_MAX - value;
    else if (what == 3)
        args->stride = value;
    else if (what == 4)
        region->count = value;
    else if (what == 5)
        region->part = value;
    else if (what == 6)
        region->slot = (uint16_t)value;
    else
        args->rule = value % 2 == 0 ? NULL : &documents;
}

static void
scramble_collective(LhOp *op, uint64_t what, uint32_t value)
{
    const uint32_t tensor = value % 3;

    if (what == 0)
        op->collective.kind = (LhCollectiveKind)value;
    else if (what == 1)
        op->collective.tensors_count = (uint8_t)value;
    else if (what == 2)
        op->collective.group.stride = value;
    else if (what == 3)
        op->collective.group.count = value;
    else if (what == 4)
        op->collective.send[tensor].slot = (uint16_t)value;
    else if (what == 5)
        op->collective.receive[tensor].part = value;
    else if (what == 6)
        op->collective.receive[tensor].slot = (uint16_t)value;
    else
        op->collective.send[tensor].count = value;
}

/* Whatever is wrong, on one rank or on all, the verifier must not crash. */
START_TEST(slices_broken_at_random)
{
    g_autoptr(LhProgram) program = toy_program(&toy, RANKS, 2, &window);
    uint32_t found = 0;

    for (uint64_t seed = 0; seed < 4000; seed++) {
        const uint64_t bits = lh_rng_bits(seed, 0, 0);
        const uint32_t value =
            bits % 4 == 0 ? UINT32_MAX - (uint32_t)(bits >> 8) % 3 : (uint32_t)(bits >> 8) % 17;
        const uint32_t id = OP_SCATTER_HEADS + (uint32_t)(bits >> 16) % (OP_ADD - OP_SCATTER_HEADS);
        Recording *recording = recording_new(program);
        g_autoptr(LhVerdict) verdict = NULL;

        for (uint32_t rank = 0; rank < (bits >> 24) % (RANKS + 1); rank++) {
            LhOp *op = recording_op(recording, rank, id);

            (op->kind == LH_OP_COLLECTIVE ? scramble_collective
                                          : scramble_attention)(op, (bits >> 32) % 8, value);
        }
        recording->program.head_slices = (bits >> 40) % 8 == 0 ? value : RANKS;
        verdict = lh_verify(&recording->program);
        ck_assert_uint_le(verdict->findings->len, verdict->findings_total);
        found += verdict->findings_total > 0;
        recording_free(recording);
    }
    ck_assert_uint_gt(found, 2000);
}
END_TEST

/* Ranks with all tokens of their heads, and activations outside attention that are gathered
 * before and reduced after it. */
enum {
    SLOT_X = SLOT_LSE + 1,
    SLOT_Y,
    SLOT_X_ALL,
    SLOT_Y_ALL,
    SLOT_WEIGHT,
};

static void
heads_declare(LhProgram *p)
{
    const LhPassSizes z = lh_pass_sizes(&p->params, 0);
    const uint32_t ranks = p->params.ranks;
    const uint64_t width = z.q / z.n;

    p->head_slices = ranks;
    p->kv_slices = ranks;
    lh_pass_declare(p, &z);
    lh_pass_add_slot(p, "x", LH_TENSOR_HIDDEN, LH_SLOT_INPUT, 1, z.q, 2);
    lh_pass_add_slot(p, "y", LH_TENSOR_HIDDEN, LH_SLOT_OUTPUT, 1, z.q, 2);
    lh_pass_add_slot(p, "x_all", LH_TENSOR_HIDDEN, LH_SLOT_TEMP, ranks, z.q, 2);
    lh_pass_add_slot(p, "y_all", LH_TENSOR_HIDDEN, LH_SLOT_TEMP, ranks, z.q, 2);
    lh_pass_add_slot(p, "weight", LH_TENSOR_WEIGHT, LH_SLOT_INPUT, 1, width * width / 2, 2);
}

/* ops after two allocs */
enum {
    OP_HEADS_GATHER = 2,
    OP_HEADS_PRODUCT,
    OP_HEADS_ATTEND,
    OP_HEADS_REDUCE,
};

static void
heads_emit(LhEmitter *e, uint32_t step)
{
    const LhProgram *p = e->program;
    const uint32_t ranks = p->params.ranks;
    const uint64_t length = p->params.attention.seq_length;
    const LhPassRows all = { .first = { .stride = 1, .count = length }, .parts = 1 };
    LhKernelArgs args = lh_pass_position_args(p, all, all);
    const uint64_t width = p->slots[SLOT_X].part_bytes / (length / ranks) / 2;
    const LhKernelArgs product = { .product = { .m = length, .n = width, .k = width } };
    uint32_t gather;

    (void)step;
    lh_pass_alloc(e, SLOT_X_ALL, SLOT_Y_ALL + 1);
    toy_collective(e, LH_COLL_ALL_GATHER);
    lh_emit_tensor(e, (LhRegion){ SLOT_X, 0, 1 }, (LhRegion){ SLOT_X_ALL, 0, ranks });
    gather = lh_emit_last(e)->id;
    lh_emit_compute(e, LH_PASS_STREAM_COMPUTE, LH_KERNEL_ID_product, &product);
    lh_emit_operand(e, SLOT_X_ALL, 0, ranks);
    lh_emit_operand(e, SLOT_WEIGHT, 0, 1);
    lh_emit_operand(e, SLOT_Y_ALL, 0, ranks);
    lh_emit_after(e, gather);
    args.first = true;
    lh_emit_compute(e, LH_PASS_STREAM_COMPUTE, LH_KERNEL_ID_attention, &args);
    for (int slot = SLOT_Q; slot <= SLOT_LSE; slot++)
        lh_emit_operand(e, (uint16_t)slot, 0, 1);
    toy_collective(e, LH_COLL_REDUCE_SCATTER);
    lh_emit_tensor(e, (LhRegion){ SLOT_Y_ALL, 0, ranks }, (LhRegion){ SLOT_Y, 0, 1 });
    lh_pass_free(e, SLOT_X_ALL, SLOT_Y_ALL + 1);
}

static const LhSchedule heads_toy = {
    .name = "heads toy",
    .placement = LH_PLACE_HEADS,
    .masks = LH_MASKS_ALL,
    .declare = heads_declare,
    .generator = { .steps = recording_steps, .emit = heads_emit },
};

static LhProgram *
heads_program(uint32_t ranks, const LhMaskRule *mask)
{
    LhProgramParams params = params_of(ranks, LH_PASS_FWD, false, true, false);
    LhProgram *program;

    params.mask = *mask;
    program = lh_program_new(&heads_toy, &params, NULL);
    ck_assert_ptr_nonnull(program);
    return program;
}

START_TEST(heads_are_proven)
{
    for (uint32_t ranks = 1; ranks <= 8; ranks *= 2) {
        g_autoptr(LhProgram) whole = heads_program(ranks, &full);
        g_autoptr(LhProgram) windowed = heads_program(ranks, &window);

        expect_proven(whole);
        expect_proven(windowed);
    }
}
END_TEST

/* ---- single changes ---- */

#define ALL_RANKS RANKS

typedef struct {
    const char *name;
    const LhSchedule *schedule;
    uint32_t groups; /* of a program that is not by heads */
    const LhMaskRule *mask;
    uint32_t rank, op; /* the changed op */
    FieldChange changes[4];
    LhFindingKind kind;
    uint32_t found_on;
    const char *message;
    bool rewired; /* other tensors: wire bytes are recomputed */
} Damage;

#define COLLECTIVE(field, value) OP_FIELD(collective.field, value)
#define COMPUTE(field, value) OP_FIELD(compute.field, value)
#define ARGS(field, value) OP_FIELD(compute.args.field, value)

static const Damage damages[] = {
    { "a key-value slice dealt to another rank", &toy, 2, &causal, 1, OP_SCATTER_HEADS - 1,
      CHANGES(COMPUTE(regions[0].part, 0)), LH_FINDING_COVERAGE, 3,
      "rank 3, op 14 (attention, stream compute) attends with slice 3 of the query heads to slice "
      "0 of the key-value heads; needed: slice 1" },
    { "other query heads", &toy, 8, &full, 2, OP_ATTEND_BACKWARD,
      CHANGES(COMPUTE(regions[0].slot, SLOT_Q)), LH_FINDING_COVERAGE, 2,
      "rank 2, op 16 (attention_bwd_o, stream compute) takes query rows of slice 0 of segment 2, "
      "but those of slice 2 of segment 0 from slot do_all" },
    { "slices in the wrong place", &toy, 8, &causal, ALL_RANKS, OP_GATHER_OUTPUT,
      CHANGES(COLLECTIVE(kind, LH_COLL_BROADCAST)), LH_FINDING_COVERAGE, 0,
      "rank 0 ends with rows in its output o[1] that are not those of its slice 1 of segment 0" },
    { "slice 1 added to slice 0", &toy, 8, &causal, 0, OP_ADD + 1,
      CHANGES(ARGS(first, false), COMPUTE(regions[1].part, 0)), LH_FINDING_COVERAGE, 0,
      "rank 0, op 19 (add, stream compute) adds rows of slice 1 of segment 0 to slot dkv, which "
      "holds rows of slice 0 of segment 0" },
    { "a slice that is not added", &toy, 2, &causal, 1, OP_ADD + 3,
      CHANGES(OP_FIELD(kind, LH_OP_SYNC)), LH_FINDING_COVERAGE, 1,
      "rank 1 ends with an output dkv[1] for slice 1 of segment 1 that lacks the contribution of "
      "slice 3 of segment 1 and others" },
    { "a slice that is added twice", &toy, 2, &causal, 1, OP_ADD + 3,
      CHANGES(COMPUTE(regions[0].part, 2)), LH_FINDING_COVERAGE, 1,
      "rank 1, op 21 (add, stream compute) adds slice 2 of segment 1 to the rows of slice 1 of "
      "segment 1 in slot dkv a second time" },
    { "heads that are not the slice's", &toy, 8, &causal, 1, OP_ATTEND, CHANGES(ARGS(heads, 8)),
      LH_FINDING_MALFORMED, 1,
      "rank 1, op 14 (attention, stream compute) is called for batch 1, 8 heads, 2 groups, but a "
      "slice has 1, 2, 2" },
    { "another first position", &toy, 8, &window, 2, OP_ATTEND, CHANGES(ARGS(q_at.start, 1)),
      LH_FINDING_COVERAGE, 2,
      "rank 2, op 14 (attention, stream compute) takes the rows of slot q_all for the tokens from "
      "1 on in steps of 1, but segment 0 is those from 0 on in steps of 1" },
    { "other positions of segments", &toy, 8, &window, 0, OP_ATTEND_BACKWARD,
      CHANGES(ARGS(k_at.part_step, -4)), LH_FINDING_COVERAGE, 0,
      "rank 0, op 16 (attention_bwd_o, stream compute) takes the rows of slot kv_all for the "
      "tokens from -4 on in steps of 1, but segment 1 is those from 4 on in steps of 1" },
    { "another stride", &striped_toy, 8, &causal, 3, OP_ATTEND, CHANGES(ARGS(stride, 3)),
      LH_FINDING_COVERAGE, 3,
      "rank 3, op 14 (attention, stream compute) takes the rows of slot q_all for the tokens from "
      "0 on in steps of 3, but segment 0 is those from 0 on in steps of 4" },
    { "no rule", &toy, 8, &window, 0, OP_ATTEND, CHANGES(ARGS(rule, 0)), LH_FINDING_MALFORMED, 0,
      "rank 0, op 14 (attention, stream compute) has a mask by positions without a rule" },
    { "no stride", &toy, 8, &window, 0, OP_ATTEND, CHANGES(ARGS(stride, 0)), LH_FINDING_MALFORMED,
      0, "rank 0, op 14 (attention, stream compute) has a mask by positions without a stride" },
    { "a pair too few", &toy, 8, &documents, 3, OP_ATTEND_BACKWARD, CHANGES(ARGS(pairs, 93)),
      LH_FINDING_COVERAGE, 3,
      "rank 3, op 16 (attention_bwd_o, stream compute) is called for 16 queries, 16 keys and 93 "
      "pairs, but its operands have 16, 16 and 94" },
    /* masks in local indices, where the true mask is none of them */
    { "causal for a window", &toy, 8, &window, 0, OP_ATTEND,
      CHANGES(ARGS(mask, LH_MASK_CAUSAL), ARGS(pairs, 16 * 17 / 2)), LH_FINDING_COVERAGE, 0,
      "rank 0, op 14 (attention, stream compute) computes every pair of query segment 1 with key "
      "segment 0, where the mask has some pairs" },
    { "full for documents", &toy, 8, &documents, 0, OP_ATTEND,
      CHANGES(ARGS(mask, LH_MASK_FULL), ARGS(pairs, 16 * 16)), LH_FINDING_COVERAGE, 0,
      "rank 0, op 14 (attention, stream compute) computes every pair of query segment 0 with key "
      "segment 0, where the mask has some pairs" },
    { "nothing for a window", &toy, 8, &window, 0, OP_ATTEND,
      CHANGES(ARGS(mask, LH_MASK_EMPTY), ARGS(pairs, 0)), LH_FINDING_COVERAGE, 0,
      "rank 0, op 16 (attention_bwd_o, stream compute) takes slot o_all for slice 0 of segment 0 "
      "before it is complete" },
    { "fewer tensors", &toy, 8, &causal, 2, OP_SCATTER_HEADS, CHANGES(COLLECTIVE(tensors_count, 2)),
      LH_FINDING_UNMATCHED, 2,
      "rank 2, op 13 (all-to-all, stream comm) matches rank 0, op 13 (all-to-all, stream comm), "
      "which is a different collective or has different sizes or halves",
      true },
    { "tensors in another order", &toy, 8, &causal, 2, OP_SCATTER_HEADS,
      CHANGES(COLLECTIVE(send[2].slot, SLOT_Q), COLLECTIVE(receive[2].slot, SLOT_Q_ALL),
              COLLECTIVE(send[0].slot, SLOT_DO), COLLECTIVE(receive[0].slot, SLOT_DO_ALL)),
      LH_FINDING_UNMATCHED, 2,
      "rank 2, op 13 (all-to-all, stream comm) matches rank 0, op 13 (all-to-all, stream comm), "
      "which is a different collective or has different sizes or halves" },
    { "a tensor of another kind", &toy, 8, &causal, 1, OP_GATHER_GRADIENTS,
      CHANGES(COLLECTIVE(receive[1].slot, SLOT_KV_ALL)), LH_FINDING_MALFORMED, 1,
      "rank 1, op 17 (all-to-all, stream comm) turns dkv into kv" },
    { "more tensors than there can be", &toy, 8, &causal, 0, OP_SCATTER_HEADS,
      CHANGES(COLLECTIVE(tensors_count, LH_COLLECTIVE_TENSORS_MAX + 1)), LH_FINDING_MALFORMED, 0,
      "rank 0, op 13 (all-to-all, stream comm) moves 10 tensors; 1 to 9 are possible" },
    { "the second tensor going back", &toy, 8, &causal, ALL_RANKS, OP_SCATTER_HEADS,
      CHANGES(COLLECTIVE(send[1].slot, SLOT_KV_ALL), COLLECTIVE(receive[1].slot, SLOT_KV_DEALT)),
      LH_FINDING_COVERAGE, 0,
      "rank 0, op 13 (all-to-all, stream comm) reads slot kv_all[0], which has not been written" },
    { "a tensor received where it is sent", &toy, 8, &causal, 0, OP_GATHER_GRADIENTS,
      CHANGES(COLLECTIVE(receive[1].slot, SLOT_DKV_ALL)), LH_FINDING_RACE, 0,
      "rank 0, op 17 (all-to-all, stream comm) reads and writes slot dkv_all[0] at the same time" },
    { "a tensor sent where it is received", &toy, 8, &causal, 3, OP_SCATTER_HEADS,
      CHANGES(COLLECTIVE(send[1].slot, SLOT_KV_ALL)), LH_FINDING_RACE, 3,
      "rank 3, op 13 (all-to-all, stream comm) reads and writes slot kv_all[0] at the same time" },
    { "a tensor received twice", &toy, 8, &causal, ALL_RANKS, OP_GATHER_OUTPUT,
      CHANGES(COLLECTIVE(send[1].slot, SLOT_O_ALL), COLLECTIVE(receive[1].slot, SLOT_O)),
      LH_FINDING_RACE, 0, "rank 0, op 15 (all-to-all, stream comm) writes slot o[0] twice", true },
    /* Tensors after the first one need an order and a buffer as much. */
    { "no order for the second tensor", &toy, 8, &causal, 2, OP_GATHER_GRADIENTS,
      CHANGES(COLLECTIVE(send[0].slot, SLOT_DQ), COLLECTIVE(receive[0].slot, SLOT_DQ_ALL),
              OP_FIELD(after_count, 0)),
      LH_FINDING_RACE, 2,
      "rank 2, op 17 (all-to-all, stream comm) reads slot dkv_all[0] while op 16 "
      "(attention_bwd_o, stream compute) may still be writing it: nothing orders op 17 after op "
      "16" },
    { "no buffer for the third tensor", &toy, 8, &causal, 0, SLOT_DO_ALL - SLOT_KV_DEALT,
      CHANGES(OP_FIELD(kind, LH_OP_SYNC)), LH_FINDING_MEMORY, 0,
      "rank 0, op 13 (all-to-all, stream comm) uses slot do_all[0], which is not allocated yet" },
    { "a product of more rows", &heads_toy, 0, &window, 1, OP_HEADS_PRODUCT,
      CHANGES(ARGS(product.m, 33)), LH_FINDING_MALFORMED, 1,
      "rank 1, op 3 (product, stream compute) takes 4224 elements as its operand x, but 4 parts of "
      "slot x_all have 8192 bytes" },
    { "a product with no weight", &heads_toy, 0, &window, 1, OP_HEADS_PRODUCT,
      CHANGES(COMPUTE(regions[1].slot, SLOT_X)), LH_FINDING_MALFORMED, 1,
      "rank 1, op 3 (product, stream compute) takes slot x (hidden) as its operand w (weight)" },
    { "a product in place", &heads_toy, 0, &window, 1, OP_HEADS_PRODUCT,
      CHANGES(COMPUTE(regions[0].slot, SLOT_Y_ALL)), LH_FINDING_MALFORMED, 1,
      "rank 1, op 3 (product, stream compute) writes its operand y to slot y_all, which overlaps "
      "slot y_all, its operand x: they must not share a part" },
    { "a kernel of whole heads on activations outside attention", &heads_toy, 0, &window, 1,
      OP_HEADS_PRODUCT,
      CHANGES(COMPUTE(kernel, LH_KERNEL_ID_zero), COMPUTE(regions[0].slot, SLOT_Y_ALL),
              COMPUTE(regions_count, 1)),
      LH_FINDING_MALFORMED, 1,
      "rank 1, op 3 (zero, stream compute) takes slot y_all (hidden) as its operand target, which "
      "does not support that kind" },
    { "no attention", &heads_toy, 0, &window, 2, OP_HEADS_ATTEND,
      CHANGES(OP_FIELD(kind, LH_OP_SYNC)), LH_FINDING_COVERAGE, 2,
      "rank 2 ends without having written its output o" },
    { "activations merged like attention", &heads_toy, 0, &window, ALL_RANKS, OP_HEADS_REDUCE,
      CHANGES(COLLECTIVE(reduction, LH_REDUCE_ATTENTION)), LH_FINDING_COVERAGE, 0,
      "rank 0, op 5 (reduce-scatter, stream comm) cannot reduce slot y_all (hidden) this way" },
};

START_TEST(damage_is_found)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(damages); i++) {
        const Damage *d = &damages[i];
        g_autoptr(LhProgram) program = d->schedule == &heads_toy
                                           ? heads_program(RANKS, d->mask)
                                           : toy_program(d->schedule, RANKS, d->groups, d->mask);
        Recording *recording = recording_new(program);

        for (uint32_t rank = 0; rank < RANKS; rank++) {
            if (rank != d->rank && d->rank != ALL_RANKS)
                continue;
            recording_change(recording, rank, d->op, d->changes, G_N_ELEMENTS(d->changes));
            if (d->rewired)
                recording_rewire(recording, recording_op(recording, rank, d->op));
        }
        expect(d->name, &recording->program, d->kind, d->found_on, d->message);
        recording_free(recording);
    }
}
END_TEST

LH_TEST_MAIN("verify_slices", slices_are_proven, slices_of_64_ranks_are_proven, heads_are_proven,
             damage_is_found, positions_under_another_rule, slices_of_the_wrong_size,
             slices_that_cannot_be_cut, slices_broken_at_random)
