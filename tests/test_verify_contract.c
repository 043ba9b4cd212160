/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs and outputs of a program are fixed by its pass: the verifier detects a slot with
 * another role, a missing one and a duplicate, in every schedule.
 */
#include "fitting.h"
#include "recording.h"
#include "run_tests.h"
#include "sched/common/single.h"
#include "verifying.h"

#include <string.h>

/* The same program with slots of its own that may be changed, and room for one more. */
static Recording *
copy_of(const LhProgram *program)
{
    Recording *recording = recording_new(program);

    recording->program.slots = g_new0(LhSlot, program->slots_count + 1);
    memcpy(recording->program.slots, program->slots, program->slots_count * sizeof(LhSlot));
    return recording;
}

static void
expect_found(Recording *recording, const char *what, const LhSlot *slot)
{
    g_autoptr(LhVerdict) verdict = lh_verify(&recording->program);

    ck_assert_msg(verdict->findings->len > 0, "%s: slot %s %s, and it is proven",
                  recording->program.name, slot->name, what);
    g_free(recording->program.slots);
    recording_free(recording);
}

static void
change_slot(const LhProgram *program, uint32_t index)
{
    const LhSlot *slot = &program->slots[index];
    const bool outside = slot->kind == LH_TENSOR_HIDDEN || slot->kind == LH_TENSOR_WEIGHT;
    Recording *recording = copy_of(program);

    recording->program.slots[index].role =
        slot->role == LH_SLOT_INPUT ? LH_SLOT_OUTPUT : LH_SLOT_INPUT;
    expect_found(recording, "has changed its role", slot);
    recording = copy_of(program);
    recording->program.slots[index].role = LH_SLOT_TEMP;
    expect_found(recording, "is no input or output", slot);
    if (outside)
        return;
    recording = copy_of(program);
    recording->program.slots[program->slots_count] = *slot;
    recording->program.slots[program->slots_count].first_cell = lh_program_cells(program);
    recording->program.slots_count++;
    expect_found(recording, "is there twice", slot);
}

static void
change_slots(const LhSchedule *schedule, LhPass pass)
{
    const LhProgramParams wanted = params_of(4, pass, true, true, false);
    g_autoptr(LhProgram) program = fitting_program(schedule, &wanted);
    g_autoptr(LhVerdict) verdict = NULL;

    ck_assert_ptr_nonnull(program);
    verdict = lh_verify(program);
    ck_assert_msg(verdict->findings->len == 0, "%s: %s", schedule->name, first_message(verdict));
    ck_assert(verdict->attends);
    for (uint32_t slot = 0; slot < program->slots_count; slot++) {
        if (program->slots[slot].role != LH_SLOT_TEMP)
            change_slot(program, slot);
    }
}

START_TEST(contract_of_every_slot_is_kept)
{
    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        for (int pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++)
            change_slots(lh_schedules[i], (LhPass)pass);
    }
}
END_TEST

static void
expect_message(const LhProgram *program, const char *message)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);

    ck_assert_str_eq(first_message(verdict), message);
}

/* Results declared as inputs and copied would have the right contents. */
START_TEST(contract_results_are_no_inputs)
{
    const LhProgramParams params = params_of(1, LH_PASS_BOTH, true, true, false);
    LhProgram *program = lh_program_new_single("copies", LH_PLACE_CONTIGUOUS, &params);
    Recording *recording = copy_of(program);

    recording->program.slots[program->slots_count] = program->slots[0];
    recording->program.slots[program->slots_count].kind = LH_TENSOR_O;
    recording->program.slots[program->slots_count].first_cell = lh_program_cells(program);
    recording->program.slots_count++;
    expect_message(&recording->program, "the program has a slot of kind o as its input, which does "
                                        "not exist in the both pass of softmax attention");
    recording->program.slots_count = 0;
    expect_message(&recording->program, "the program has no output, so there is nothing to prove");
    g_free(recording->program.slots);
    recording_free(recording);
    lh_program_free(program);
}
END_TEST

/* The program defines the scale of logits, and every call must use it. */
START_TEST(contract_of_the_scale_is_kept)
{
    const LhProgramParams params = params_of(1, LH_PASS_BOTH, true, true, false);
    g_autoptr(LhProgram) program = lh_program_new_single("scaled", LH_PLACE_CONTIGUOUS, &params);
    Recording *recording = recording_new(program);
    LhOp *op = recording_op(recording, 0, 0);
    g_autoptr(LhVerdict) written_out = NULL;

    ck_assert_int_eq(op->kind, LH_OP_COMPUTE);
    op->compute.args.scale = 0.25; /* 1/sqrt(16) */
    written_out = lh_verify(&recording->program);
    ck_assert_str_eq(first_message(written_out), "no finding");
    op->compute.args.scale = 0.5;
    expect_message(&recording->program,
                   "rank 0, op 0 (attention, stream compute) multiplies logits by 0.5, where the "
                   "program's scale is 0.25");
    recording->program.params.attention.scale = 0.5;
    expect_message(&recording->program,
                   "rank 0, op 1 (attention_bwd_o, stream compute) multiplies logits by 0.25, "
                   "where the program's scale is 0.5");
    recording_free(recording);
}
END_TEST

LH_TEST_MAIN("verify_contract", contract_of_every_slot_is_kept, contract_results_are_no_inputs,
             contract_of_the_scale_is_kept)
