/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k and v transferred one after the other, each as one half of the parts that hold both: mistakes
 * with halves in all-to-alls (ulysses with --published-code) and in messages (the same with heads
 * that do not divide evenly), and the finding for each.
 */
#include "options.h"
#include "recording.h"
#include "run_tests.h"
#include "verify/verify.h"

#include <string.h>

#define RANKS 4

static LhProgram *
program_of(uint32_t heads)
{
    LhProgramParams p = {
        .attention = { .batch = 1,
                       .seq_length = 4 * RANKS,
                       .heads = heads,
                       .groups = heads,
                       .head_dim = 8,
                       .dtype = LH_DTYPE_BF16 },
        .ranks = RANKS,
        .mask.causal = true,
        .pass = LH_PASS_BOTH,
    };
    g_autoptr(GError) error = NULL;
    LhProgram *program;

    set_option(&p, "published_code", 1);
    program = lh_program_new(lh_schedule_find("ulysses", NULL), &p, &error);
    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    return program;
}

/* ---- targets ---- */

/* The half that an op moves, by its first region. */
static LhHalf
half_of(Recording *recording, uint32_t rank, const LhOp *op)
{
    if (op->kind == LH_OP_COLLECTIVE)
        return (LhHalf)op->collective.send[0].half;
    if (op->kind == LH_OP_EXCHANGE)
        return (LhHalf)recording_part(recording, rank, op, 0)->regions[0].half;
    return LH_HALF_BOTH;
}

/* The op of @phase that moves @half. */
static LhOp *
mover(Recording *recording, uint32_t rank, LhPhase phase, LhHalf half)
{
    for (uint32_t i = 0; i < recording_count(recording, rank); i++) {
        LhOp *op = recording_op(recording, rank, i);

        if (op->phase == phase && half_of(recording, rank, op) == half)
            return op;
    }
    ck_abort_msg("no op moves that half");
}

static LhOp *
first_of(Recording *recording, uint32_t rank, LhOpKind kind)
{
    for (uint32_t i = 0; i < recording_count(recording, rank); i++) {
        if (recording_op(recording, rank, i)->kind == kind)
            return recording_op(recording, rank, i);
    }
    ck_abort_msg("no such op");
}

static void
set_half(Recording *recording, uint32_t rank, LhOp *op, LhHalf half)
{
    for (uint32_t i = 0; op->kind == LH_OP_COLLECTIVE && i < op->collective.tensors_count; i++)
        op->collective.send[i].half = op->collective.receive[i].half = (uint8_t)half;
    for (uint32_t i = 0; op->kind == LH_OP_EXCHANGE && i < op->exchange.parts_count; i++) {
        LhPart *part = recording_part(recording, rank, op, i);

        for (uint32_t k = 0; k < part->regions_count; k++)
            part->regions[k].half = (uint8_t)half;
    }
}

/* ---- the mistakes ---- */

static void
v_not_moved(Recording *r)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        mover(r, rank, LH_PHASE_FORWARD, LH_HALF_V)->kind = LH_OP_SYNC;
}

static void
k_not_moved(Recording *r)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        mover(r, rank, LH_PHASE_FORWARD, LH_HALF_K)->kind = LH_OP_SYNC;
}

static void
dv_not_moved(Recording *r)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        mover(r, rank, LH_PHASE_BACKWARD, LH_HALF_V)->kind = LH_OP_SYNC;
}

static void
k_moved_twice(Recording *r)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        set_half(r, rank, mover(r, rank, LH_PHASE_FORWARD, LH_HALF_V), LH_HALF_K);
}

/* The order of the two does not matter if all ranks agree. */
static void
v_before_k(Recording *r)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        LhOp *k = mover(r, rank, LH_PHASE_FORWARD, LH_HALF_K);
        LhOp *v = mover(r, rank, LH_PHASE_FORWARD, LH_HALF_V);

        set_half(r, rank, k, LH_HALF_V);
        set_half(r, rank, v, LH_HALF_K);
    }
}

static void
v_before_k_on_one_rank(Recording *r)
{
    LhOp *k = mover(r, 2, LH_PHASE_FORWARD, LH_HALF_K);
    LhOp *v = mover(r, 2, LH_PHASE_FORWARD, LH_HALF_V);

    set_half(r, 2, k, LH_HALF_V);
    set_half(r, 2, v, LH_HALF_K);
}

static void
k_lands_as_v(Recording *r)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        mover(r, rank, LH_PHASE_FORWARD, LH_HALF_K)->collective.receive[0].half = LH_HALF_V;
}

static void
half_of_q(Recording *r)
{
    LhOp *op = first_of(r, 1, LH_OP_COLLECTIVE);

    set_half(r, 1, op, LH_HALF_K);
}

static void
half_unknown(Recording *r)
{
    set_half(r, 1, mover(r, 1, LH_PHASE_FORWARD, LH_HALF_V), LH_HALVES);
}

static void
half_reduced(Recording *r)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        mover(r, rank, LH_PHASE_BACKWARD, LH_HALF_K)->collective.kind = LH_COLL_ALL_REDUCE;
}

static LhOp *
attention_of(Recording *r, uint32_t rank)
{
    uint32_t i = 0;

    while (recording_op(r, rank, i)->kind != LH_OP_COMPUTE ||
           recording_op(r, rank, i)->compute.kernel != LH_KERNEL_ID_attention)
        i++;
    return recording_op(r, rank, i);
}

static void
half_attended_to(Recording *r)
{
    attention_of(r, 3)->compute.regions[1].half = LH_HALF_V;
}

static void
half_allocated(Recording *r)
{
    first_of(r, 0, LH_OP_ALLOC)->memory.region.half = LH_HALF_K;
}

static void
half_size_of_both(Recording *r)
{
    mover(r, 1, LH_PHASE_FORWARD, LH_HALF_K)->collective.wire_bytes *= 2;
}

/* The second call brings v of other tokens than those of k. */
static void
v_of_another_order(Recording *r)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        LhOp *op = mover(r, rank, LH_PHASE_FORWARD, LH_HALF_V);

        op->collective.kind = LH_COLL_ALL_GATHER;
        op->collective.send[0].part = rank;
        op->collective.send[0].count = 1;
        op->collective.wire_bytes /= RANKS;
    }
}

/* dk goes directly into the output, and dv nowhere. */
static void
output_of_dk(Recording *r)
{
    uint16_t dkv = 0;

    while (strcmp(r->program.slots[dkv].name, "dkv") != 0)
        dkv++;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        LhOp *op = mover(r, rank, LH_PHASE_BACKWARD, LH_HALF_K);

        op->collective.receive[0].slot = dkv;
        mover(r, rank, LH_PHASE_BACKWARD, LH_HALF_V)->kind = LH_OP_SYNC;
        for (uint32_t i = op->id; i < recording_count(r, rank); i++) {
            LhOp *copy = recording_op(r, rank, i);

            if (copy->kind == LH_OP_COMPUTE && copy->compute.regions[1].slot == dkv)
                copy->kind = LH_OP_SYNC;
        }
    }
}

/* One rank sends v where the others expect k. */
static void
other_half_sent(Recording *r)
{
    LhOp *op = mover(r, 1, LH_PHASE_FORWARD, LH_HALF_K);

    set_half(r, 1, op, LH_HALF_V);
}

/* v is sent from a buffer that has only received k. */
static void
half_not_there(Recording *r)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        LhOp *op = mover(r, rank, LH_PHASE_FORWARD, LH_HALF_V);
        const uint16_t stage = op->collective.send[0].slot;

        op->collective.send[0].slot = op->collective.receive[0].slot;
        op->collective.receive[0].slot = stage;
    }
}

typedef struct {
    uint32_t heads; /* 8: all-to-alls; 7: messages */
    void (*make)(Recording *r);
    const char *message; /* NULL: no mistake */
} Mistake;

static const Mistake mistakes[] = {
    { 8, v_before_k, NULL },
    { 8, v_not_moved,
      "rank 0, op 13 (attention, stream compute) reads slot kv_heads[0], of which only k has been "
      "written" },
    { 8, k_not_moved,
      "rank 0, op 13 (attention, stream compute) reads slot kv_heads[0], of which only v has been "
      "written" },
    { 8, dv_not_moved,
      "rank 0, op 37 (copy, stream compute) reads slot dkv_stage[0], of which only k has been "
      "written" },
    { 8, k_moved_twice, "reads slot kv_heads[0], of which only k has been written" },
    { 8, half_not_there,
      "rank 0, op 8 (all-to-all, stream comm) reads slot kv_heads[0]:v, of which only k has been "
      "written" },
    { 8, v_of_another_order, "reads slot kv_heads[1], of which only v has been written" },
    { 8, output_of_dk, "rank 0 ends with only k in its output dkv[0]" },
    { 8, v_before_k_on_one_rank,
      "rank 2, op 7 (all-to-all, stream comm) matches rank 0, op 7 (all-to-all, stream comm), "
      "which is a different collective or has different sizes or halves" },
    { 8, k_lands_as_v, "turns kv_stage:k into kv_heads:v: both must be the same half" },
    { 8, half_of_q,
      "rank 1, op 5 (all-to-all, stream comm) moves q_stage:k, but only slots of kind kv and dkv "
      "have a half k; this one is of kind q" },
    { 8, half_unknown, "names an unknown half of slot kv_stage (3)" },
    { 8, half_reduced,
      "rank 0, op 35 (all-reduce, stream comm) takes dkv_heads:k: single halves can only be sent "
      "and received, by exchanges and by collectives without a reduction" },
    { 8, half_attended_to,
      "rank 3, op 13 (attention, stream compute) takes kv_heads:v: single halves can only be "
      "sent" },
    { 8, half_allocated, "rank 0, op 0 (alloc) takes q_heads:k: single halves can only be sent" },
    { 8, half_size_of_both, "states 1024 bytes on the wire, but its regions have 512" },
    { 7, v_before_k, NULL },
    { 7, k_moved_twice, "reads slot kv_heads[1], of which only k has been written" },
    { 7, other_half_sent,
      "sends kv_stage:k (tag 0) where rank 1, op 11 (exchange, stream comm) receives kv_heads:v: "
      "not the same half" },
    { 7, half_unknown, "names an unknown half of slot kv_stage (3)" },
};

START_TEST(halves_that_travel_are_proven)
{
    for (uint32_t heads = 7; heads <= 8; heads++) {
        g_autoptr(LhProgram) program = program_of(heads);
        g_autoptr(LhVerdict) verdict = lh_verify(program);

        ck_assert_uint_eq(verdict->findings_total, 0);
    }
}
END_TEST

START_TEST(mistakes_with_halves_are_found)
{
    for (size_t i = 0; i < G_N_ELEMENTS(mistakes); i++) {
        const Mistake *mistake = &mistakes[i];
        g_autoptr(LhProgram) program = program_of(mistake->heads);
        Recording *recording = recording_new(program);
        g_autoptr(LhVerdict) verdict = NULL;
        const char *found;

        mistake->make(recording);
        verdict = lh_verify(&recording->program);
        found = verdict->findings->len == 0
                    ? NULL
                    : g_array_index(verdict->findings, LhFinding, 0).message;
        if (mistake->message == NULL)
            ck_assert_msg(found == NULL, "mistake %zu: %s", i, found);
        else
            ck_assert_msg(found != NULL && strstr(found, mistake->message) != NULL,
                          "mistake %zu: %s", i, found != NULL ? found : "proven");
        recording_free(recording);
    }
}
END_TEST

LH_TEST_MAIN("verify_halves", halves_that_travel_are_proven, mistakes_with_halves_are_found)
