/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes, the communicators of programs: every message and collective of every schedule has one,
 * equal at both ends, on which matching by order alone equals matching by tags.
 */
#include "program/explicit/digest.h"
#include "runtime/gpu/nccl_communicators.h"

#include "base/error.h"
#include "built.h"
#include "fitting.h"
#include "recording.h"
#include "run_tests.h"
#include "share.h"
#include "steps.h"
#include "verifying.h"

#include <string.h>

/* One end of a message, in posting order of its rank. */
typedef struct {
    uint32_t lane, peer;
    bool send;
    uint16_t tag;
    uint64_t bytes;
} End;

typedef struct {
    const LhProgram *program;
    const LhNcclComms *lanes;
    GArray **ends;     /* [ranks] of End */
    uint16_t *streams; /* [lanes] bits of the streams seen */
    uint32_t messages, collectives;
} Check;

static void
check_message(Check *c, uint32_t rank, const LhOp *op, const LhPart *part)
{
    const uint32_t at = lh_nccl_comm_of_message(c->lanes, op, rank, part->peer);
    const LhNcclComm *lane = lh_nccl_comms_at(c->lanes, at);
    const uint32_t own = lh_nccl_comm_position(lane, rank),
                   other = lh_nccl_comm_position(lane, part->peer);
    const LhNcclCommPair pair = { part->send ? own : other, part->send ? other : own };
    const End end = { at, part->peer, part->send, part->tag, part->wire_bytes };
    bool listed = false;

    ck_assert(!lane->collectives);
    ck_assert_uint_eq(lane->number, op->communicator);
    ck_assert_uint_lt(own, lane->count);
    ck_assert_uint_lt(other, lane->count);
    for (uint32_t i = 0; i < lane->pairs_count; i++)
        listed = listed || memcmp(&lane->pairs[i], &pair, sizeof(pair)) == 0;
    ck_assert(listed);
    c->streams[at] |= (uint16_t)(1U << op->stream);
    g_array_append_val(c->ends[rank], end);
    c->messages++;
}

static void
check_collective(Check *c, uint32_t rank, const LhOp *op)
{
    const uint32_t at = lh_nccl_comm_of_collective(c->lanes, op);
    const LhNcclComm *lane = lh_nccl_comms_at(c->lanes, at);

    ck_assert(lane->collectives);
    ck_assert_uint_eq(lane->number, op->communicator);
    ck_assert_uint_eq(lane->count, lh_group_size(&op->collective.group));
    ck_assert_uint_eq(lh_nccl_comm_position(lane, rank),
                      lh_group_position(&op->collective.group, rank));
    for (uint32_t i = 0; i < lane->count; i++)
        ck_assert_uint_eq(lane->members[i], lh_group_member(&op->collective.group, i));
    c->streams[at] |= (uint16_t)(1U << op->stream);
    c->collectives++;
}

static void
check_rank(Check *c, uint32_t rank)
{
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    lh_cursor_init(&cursor, c->program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];

            for (uint32_t k = 0; op->kind == LH_OP_EXCHANGE && k < op->exchange.parts_count; k++)
                check_message(c, rank, op, &buffer.parts[op->exchange.parts_first + k]);
            if (op->kind == LH_OP_COLLECTIVE)
                check_collective(c, rank, op);
        }
    }
    lh_op_buffer_clear(&buffer);
}

/* Asserts that the end at @at of @rank has the label and size of its peer's end with the same index
 * on this lane and direction. */
static void
check_order(const Check *c, uint32_t rank, guint at)
{
    const End *own = &g_array_index(c->ends[rank], End, at);
    const GArray *theirs = c->ends[own->peer];
    uint32_t before = 0;

    for (guint i = 0; i < at; i++) {
        const End *end = &g_array_index(c->ends[rank], End, i);

        before += end->lane == own->lane && end->peer == own->peer && end->send == own->send;
    }
    for (guint i = 0; i < theirs->len; i++) {
        const End *end = &g_array_index(theirs, End, i);

        if (end->lane != own->lane || end->peer != rank || end->send == own->send || before-- > 0)
            continue;
        ck_assert_uint_eq(end->tag, own->tag);
        ck_assert_uint_eq(end->bytes, own->bytes);
        return;
    }
    ck_abort_msg("rank %u: no match for message %u to or from rank %u", rank, at, own->peer);
}

/* Asserts that the list has exactly the lanes that the program needs. */
static void
check_lanes(const Check *c)
{
    const uint32_t ranks = lh_program_ranks(c->program);

    for (uint32_t round = 0; round < lh_nccl_comms_rounds(c->lanes); round++) {
        g_autofree bool *taken = g_new0(bool, ranks);
        uint32_t members = 0;

        for (uint32_t i = 0; i < lh_nccl_comms_count(c->lanes); i++) {
            const LhNcclComm *lane = lh_nccl_comms_at(c->lanes, i);

            for (uint32_t k = 0; lane->round == round && k < lane->count; k++) {
                ck_assert(!taken[lane->members[k]]);
                taken[lane->members[k]] = true;
                members++;
            }
        }
        ck_assert_uint_gt(members, 0);
    }
    for (uint32_t i = 0; i < lh_nccl_comms_count(c->lanes); i++) {
        const LhNcclComm *lane = lh_nccl_comms_at(c->lanes, i);
        const bool several = (lane->streams & (lane->streams - 1)) != 0;

        ck_assert_uint_lt(lane->round, lh_nccl_comms_rounds(c->lanes));
        ck_assert_uint_eq(lane->streams, c->streams[i]);
        ck_assert(lane->collectives || !several || lane->count == 2);
        ck_assert_int_eq(lane->pairs_count == 0, lane->collectives);
        for (uint32_t k = 0; k < lane->pairs_count; k++)
            ck_assert_uint_ne(lane->pairs[k].from, lane->pairs[k].to);
    }
}

/* Asserts that two lists of one program are equal. */
static void
check_again(const LhProgram *program, const LhNcclComms *lanes)
{
    g_autoptr(LhNcclComms) again = lh_nccl_comms_new(program, NULL);

    ck_assert_uint_eq(lh_nccl_comms_count(again), lh_nccl_comms_count(lanes));
    for (uint32_t i = 0; i < lh_nccl_comms_count(lanes); i++) {
        const LhNcclComm *a = lh_nccl_comms_at(lanes, i), *b = lh_nccl_comms_at(again, i);

        ck_assert_uint_eq(a->count, b->count);
        ck_assert_mem_eq(a->members, b->members, a->count * sizeof(*a->members));
        ck_assert_uint_eq(a->round, b->round);
        ck_assert_uint_eq(a->pairs_count, b->pairs_count);
        ck_assert_mem_eq(a->pairs, b->pairs, a->pairs_count * sizeof(*a->pairs));
    }
}

static void
check_program(const LhProgram *program, uint32_t *messages, uint32_t *collectives)
{
    const uint32_t ranks = lh_program_ranks(program);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhNcclComms) lanes = lh_nccl_comms_new(program, &error);
    g_autofree GArray **ends = g_new0(GArray *, ranks);
    g_autofree uint16_t *streams = NULL;
    Check c = { .program = program, .lanes = lanes, .ends = ends };

    ck_assert_msg(lanes != NULL, "%s: %s", program->name, error != NULL ? error->message : "");
    c.streams = streams = g_new0(uint16_t, MAX(lh_nccl_comms_count(lanes), 1));
    for (uint32_t rank = 0; rank < ranks; rank++) {
        ends[rank] = g_array_new(FALSE, FALSE, sizeof(End));
        check_rank(&c, rank);
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        for (guint i = 0; i < ends[rank]->len; i++)
            check_order(&c, rank, i);
    }
    check_lanes(&c);
    check_again(program, lanes);
    for (uint32_t rank = 0; rank < ranks; rank++)
        g_array_unref(ends[rank]);
    *messages += c.messages;
    *collectives += c.collectives;
}

START_TEST(schedules_have_lanes)
{
    uint32_t messages = 0, collectives = 0;

    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        for (uint32_t ranks = 1; ranks <= 16; ranks++) {
            for (int pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
                LhProgramParams params =
                    params_of(ranks, (LhPass)pass, ranks % 3 != 0, ranks % 5 != 0, ranks % 2 != 0);
                g_autoptr(LhProgram) program = NULL;

                if ((ranks > 6 && (uint32_t)pass != ranks % 3 + 1) || !test_takes_of(s + ranks, 4))
                    continue;
                params.data_parallel_size = ranks <= 4 ? ranks % 2 + 1 : 1;
                program = fitting_program(lh_schedules[s], &params);
                if (program != NULL)
                    check_program(program, &messages, &collectives);
            }
        }
    }
    ck_assert_uint_gt(messages, 10000 / MIN(test_every(), 4));
    ck_assert_uint_gt(collectives, 1000 / MIN(test_every(), 4));
}
END_TEST

START_TEST(steps_have_lanes)
{
    static const TinyStep steps[] = {
        { .schedule = "zigzag", .tensor = 2, .context = 2, .data = 2 },
        { .schedule = "te-p2p", .tensor = 1, .context = 4, .data = 2 },
        { .schedule = "usp", .tensor = 2, .context = 4, .shard = LH_SHARD_FSDP, .data = 2 },
        { .schedule = "attention2d-no", .context = 4, .data = 2, .micro_batches = 2 },
    };
    uint32_t messages = 0, collectives = 0;

    for (uint32_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhProgram) program = tiny_step(&steps[i], &error);

        ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
        check_program(program, &messages, &collectives);
    }
    ck_assert_uint_gt(messages, 100);
    ck_assert_uint_gt(collectives, 100);
}
END_TEST

/* Number of lanes and of rounds. */
START_TEST(lanes_are_few)
{
    static const struct {
        const char *schedule;
        uint32_t ranks, groups, lanes, rounds;
    } cases[] = {
        { "ring", 1, 1, 0, 0 },
        { "ring", 8, 1, 1, 1 },
        { "ring", 4, 3, 3, 1 },
        { "tokenring", 8, 1, 2, 2 }, /* results have a lane of their own */
        { "te-p2p", 2, 1, 1, 1 },
        { "te-p2p", 3, 1, 3, 3 },
        { "te-p2p", 8, 1, 8, 2 },
        { "te-allgather", 8, 1, 1, 1 },
        { "rsa", 4, 1, 2, 2 },
        { "attention2d-o", 16, 1, 14, 3 },
        { "double-ring", 16, 1, 20, 4 },
    };

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        LhProgramParams params = params_of(cases[i].ranks, LH_PASS_BOTH, true, true, false);
        g_autoptr(LhProgram) program = NULL;
        g_autoptr(LhNcclComms) lanes = NULL;

        params.data_parallel_size = cases[i].groups;
        program = fitting_program(lh_schedule_find(cases[i].schedule, NULL), &params);
        lanes = lh_nccl_comms_new(program, NULL);
        ck_assert_msg(lh_nccl_comms_count(lanes) == cases[i].lanes &&
                          lh_nccl_comms_rounds(lanes) == cases[i].rounds,
                      "%s, %u ranks: %u lanes in %u rounds", cases[i].schedule, cases[i].ranks,
                      lh_nccl_comms_count(lanes), lh_nccl_comms_rounds(lanes));
    }
}
END_TEST

/* Changes to one op of one rank. */
static void
other_kernel(Recording *r)
{
    recording_op(r, 2, 5)->compute.kernel = LH_KERNEL_ID_zero;
}

static void
other_region(Recording *r)
{
    recording_part(r, 1, recording_op(r, 1, 4), 0)->regions[0].part ^= 1;
}

static void
other_order(Recording *r)
{
    recording_op(r, 1, 7)->after_count = 0;
}

static void
other_slot(Recording *r)
{
    r->program.slots[0].part_bytes++;
}

static void
other_args(Recording *r)
{
    recording_op(r, 2, 5)->compute.args.first ^= true;
}

static void
other_mask(Recording *r)
{
    r->program.params.mask.window = 7;
}

START_TEST(digests_differ)
{
    void (*const changes[])(Recording *) = {
        other_kernel, other_region, other_order, other_args, other_mask, other_slot
    }; /* the last one: slots are the original's */
    const LhProgramParams params = params_of(3, LH_PASS_FWD, true, true, false);
    g_autoptr(LhProgram) program = fitting_program(lh_schedule_find("ring", NULL), &params);
    g_autofree char *digest = lh_program_digest(program);

    for (uint32_t i = 0; i < G_N_ELEMENTS(changes); i++) {
        Recording *r = recording_new(program);
        g_autofree char *same = lh_program_digest(&r->program);
        g_autofree char *other = NULL;

        ck_assert_str_eq(same, digest);
        changes[i](r);
        other = lh_program_digest(&r->program);
        ck_assert_msg(strcmp(other, digest) != 0, "change %u", i);
        recording_free(r);
    }
}
END_TEST

/* Applies @change to the first message of rank 0. */
static void
expect_refusal(void (*change)(LhPart *part), const char *reason)
{
    const LhProgramParams params = params_of(3, LH_PASS_FWD, true, true, false);
    g_autoptr(LhProgram) program = fitting_program(lh_schedule_find("ring", NULL), &params);
    Recording *r = recording_new(program);
    g_autoptr(GError) error = NULL;

    change(&g_array_index(r->parts[0], LhPart, 0));
    ck_assert_ptr_null(lh_nccl_comms_new(&r->program, &error));
    ck_assert_int_eq(error->code, LH_ERROR_NO);
    ck_assert_str_eq(error->message, reason);
    recording_free(r);
}

static void
to_itself(LhPart *part)
{
    part->peer = 0;
}

static void
turned(LhPart *part)
{
    part->send = !part->send;
}

START_TEST(refusals_have_reasons)
{
    expect_refusal(to_itself,
                   "rank 0, op 4 exchanges a message with itself, which NCCL cannot carry");
    expect_refusal(turned, "a send has no matching receive, or the reverse");
}
END_TEST

LH_TEST_MAIN("lanes", schedules_have_lanes, steps_have_lanes, lanes_are_few, digests_differ,
             refusals_have_reasons)
