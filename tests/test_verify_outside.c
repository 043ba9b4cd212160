/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations outside attention have values where calls stand for the layer's projections: reading,
 * adding or sending them too early, from the wrong place or not at all is detected. Each test
 * changes one thing in megatron-tp-sp with full recomputation, on 4 ranks.
 */
#include "recording.h"
#include "run_tests.h"
#include "verifying.h"

#include <string.h>

#define RANKS 4

typedef struct {
    LhProgram *program;
    Recording *recording;
} World;

static World
world_new(LhPass pass)
{
    LhProgramParams p = params_of(RANKS, pass, true, true, false);
    World w;

    set_option(&p, "recompute_granularity", 2);
    w.program = lh_program_new(lh_schedule_find("megatron-tp-sp", NULL), &p, NULL);
    ck_assert_ptr_nonnull(w.program);
    w.recording = recording_new(w.program);
    return w;
}

/* Proves the changed program and frees it. */
static void
expect(World w, const char *message)
{
    g_autoptr(LhVerdict) verdict = lh_verify(&w.recording->program);

    ck_assert_msg(strstr(first_message(verdict), message) != NULL, "found: %s; wanted: %s",
                  first_message(verdict), message);
    recording_free(w.recording);
    lh_program_free(w.program);
}

/* The @number-th call of @kernel on @rank. */
static LhOp *
call_of(World w, uint32_t rank, LhKernelId kernel, unsigned number)
{
    for (uint32_t i = 0; i < w.recording->ops[rank]->len; i++) {
        LhOp *op = recording_op(w.recording, rank, i);

        if (op->kind == LH_OP_COMPUTE && op->compute.kernel == kernel && number-- == 0)
            return op;
    }
    ck_abort_msg("no such call");
}

/* The @number-th collective of @kind on @rank. */
static LhOp *
collective_of(World w, uint32_t rank, LhCollectiveKind kind, unsigned number)
{
    for (uint32_t i = 0; i < w.recording->ops[rank]->len; i++) {
        LhOp *op = recording_op(w.recording, rank, i);

        if (op->kind == LH_OP_COLLECTIVE && op->collective.kind == kind && number-- == 0)
            return op;
    }
    ck_abort_msg("no such collective");
}

static uint16_t
slot_of(World w, const char *name)
{
    for (uint32_t i = 0; i < w.program->slots_count; i++) {
        if (strcmp(w.program->slots[i].name, name) == 0)
            return (uint16_t)i;
    }
    ck_abort_msg("no slot %s", name);
}

/* Replaces an op by one without effect: later ops keep their numbers. */
static void
drop(LhOp *op)
{
    op->kind = LH_OP_SYNC;
    op->after_count = 0;
}

static void
on_every_rank(World w, void (*change)(World w, uint32_t rank))
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        change(w, rank);
}

START_TEST(outside_is_proven_as_it_is)
{
    for (int pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++)
        expect(world_new((LhPass)pass), "no finding");
}
END_TEST

START_TEST(outside_waits_for_what_it_reads)
{
    World w = world_new(LH_PASS_BOTH);

    call_of(w, 2, LH_KERNEL_ID_qkv_projection, 0)->after_count = 0;
    expect(w, "rank 2, op 2 (qkv_projection, stream compute) reads slot x_all[0] while op 1 "
              "(all-gather, stream comm) may still be writing it");
    w = world_new(LH_PASS_BOTH);
    collective_of(w, 1, LH_COLL_REDUCE_SCATTER, 0)->after_count = 0;
    expect(w, "rank 1, op 5 (reduce-scatter, stream comm) reads slot x_all[0] while op 4 "
              "(out_projection, stream compute) may still be writing it");
}
END_TEST

START_TEST(outside_gives_before_attention_takes)
{
    World w = world_new(LH_PASS_FWD);
    LhOp swapped;

    drop(call_of(w, 3, LH_KERNEL_ID_qkv_projection, 0));
    expect(w, "rank 3, op 3 (attention, stream compute) reads slot q, which has not been written");
    w = world_new(LH_PASS_BWD);
    drop(call_of(w, 0, LH_KERNEL_ID_out_projection_dgrad, 0));
    expect(w, "reads slot do, which has not been written");
    w = world_new(LH_PASS_FWD); /* o is projected before it is computed */
    swapped = *recording_op(w.recording, 0, 4);
    *recording_op(w.recording, 0, 4) = *recording_op(w.recording, 0, 3);
    *recording_op(w.recording, 0, 3) = swapped;
    recording_op(w.recording, 0, 3)->id = 3;
    recording_op(w.recording, 0, 4)->id = 4;
    expect(
        w,
        "rank 0, op 3 (out_projection, stream compute) reads slot o, which has not been written");
}
END_TEST

START_TEST(outside_takes_what_belongs_together)
{
    World w = world_new(LH_PASS_BWD);
    LhRegion *send = &collective_of(w, 1, LH_COLL_ALL_GATHER, 1)->collective.send[0];

    send->slot = slot_of(w, "x"); /* one share of x among those of dy */
    expect(w,
           "op 13 (out_projection_dgrad, stream compute) needs share 1 of one input in part 1 of "
           "slot grad_all");
    w = world_new(LH_PASS_BWD);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        collective_of(w, rank, LH_COLL_ALL_GATHER, 1)->collective.send[0].slot = slot_of(w, "x");
    expect(w, "projects do from input x, from which q has already been projected");
}
END_TEST

static void
drop_out_projection(World w, uint32_t rank)
{
    drop(call_of(w, rank, LH_KERNEL_ID_out_projection, 0));
}

static void
drop_reader_of_sums(World w, uint32_t rank)
{
    drop(call_of(w, rank, LH_KERNEL_ID_outside, 0));
}

START_TEST(outside_adds_up_what_projections_leave)
{
    World w = world_new(LH_PASS_FWD);

    on_every_rank(w, drop_out_projection);
    expect(
        w,
        "(reduce-scatter, stream comm) adds slot x_all, which is not the result of a projection");
    w = world_new(LH_PASS_BWD);
    on_every_rank(w, drop_reader_of_sums);
    expect(w, "ends without having used the data received in slot y_again");
}
END_TEST

/* A reduce-scatter among some of the ranks lacks the heads of the others. */
START_TEST(outside_adds_up_all_heads)
{
    World w = world_new(LH_PASS_FWD);

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        LhOp *op = collective_of(w, rank, LH_COLL_REDUCE_SCATTER, 0);

        op->collective.group =
            (LhGroup){ .base = rank / 2 * 2, .stride = 1, .count = 2, .outer_count = 1 };
        op->collective.send[0] = (LhRegion){ op->collective.send[0].slot, rank / 2 * 2, 2 };
    }
    expect(w, "ends with an output y of slices [0, 2) of the heads; it has 4 slices");
}
END_TEST

START_TEST(outside_belongs_to_ranks_with_heads)
{
    World w = world_new(LH_PASS_FWD);

    call_of(w, 0, LH_KERNEL_ID_out_projection, 0)->compute.regions[1].count = 2;
    expect(w, "takes 2 parts of slot x_all; the tokens have 4 shares");
    w = world_new(LH_PASS_FWD);
    call_of(w, 0, LH_KERNEL_ID_qkv_projection, 0)->compute.regions[1].slot = slot_of(w, "o");
    expect(w, "which is not an input");
}
END_TEST

LH_TEST_MAIN("verify_outside", outside_is_proven_as_it_is, outside_waits_for_what_it_reads,
             outside_gives_before_attention_takes, outside_takes_what_belongs_together,
             outside_adds_up_what_projections_leave, outside_adds_up_all_heads,
             outside_belongs_to_ranks_with_heads)
