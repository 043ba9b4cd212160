/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a program ends when every rank has all streams in one queue: the verifier's verdict is
 * compared with an op-by-op run, on schedules whose communication is reordered.
 */
#include "fitting.h"
#include "recording.h"
#include "run_tests.h"
#include "verify/verify.h"
#include "verifying.h"

/* ---- the second judge: every rank executes its ops one by one ---- */

typedef struct {
    const Recording *recording;
    uint32_t *at; /* [ranks]: the rank's current op */
} Queues;

/* Number of messages in direction @send between @rank and @peer on @communicator before part
 * @part of op @op. */
static uint32_t
count_before(const Recording *r, uint32_t rank, uint32_t op, uint32_t part)
{
    const LhOp *last = recording_op(r, rank, op);
    const LhPart *wanted = recording_part(r, rank, last, part);
    uint32_t count = 0;

    for (uint32_t i = 0; i <= op; i++) {
        const LhOp *o = recording_op(r, rank, i);

        if (o->kind != LH_OP_EXCHANGE || o->communicator != last->communicator)
            continue;
        for (uint32_t k = 0; k < (i == op ? part : o->exchange.parts_count); k++) {
            const LhPart *p = recording_part(r, rank, o, k);

            count += p->peer == wanted->peer && p->send == wanted->send;
        }
    }
    return count;
}

/* The op of the other rank with the other end of a message. */
static uint32_t
partner_of(const Recording *r, uint32_t rank, uint32_t op, uint32_t part)
{
    const LhOp *own = recording_op(r, rank, op);
    const LhPart *end = recording_part(r, rank, own, part);
    uint32_t left = count_before(r, rank, op, part);

    for (uint32_t i = 0; i < recording_count(r, end->peer); i++) {
        const LhOp *o = recording_op(r, end->peer, i);

        if (o->kind != LH_OP_EXCHANGE || o->communicator != own->communicator)
            continue;
        for (uint32_t k = 0; k < o->exchange.parts_count; k++) {
            const LhPart *p = recording_part(r, end->peer, o, k);

            if (p->peer == rank && p->send != end->send && left-- == 0)
                return i;
        }
    }
    ck_abort_msg("a message without its other end");
    return 0;
}

static bool
same_communicator(const LhOp *a, const LhOp *b)
{
    const LhCommunicatorKey x = lh_op_communicator(a), y = lh_op_communicator(b);

    return lh_communicator_compare(&x, &y) == 0;
}

/* The op of @member that matches collective @op of @rank. */
static uint32_t
meeting_of(const Recording *r, uint32_t rank, uint32_t op, uint32_t member)
{
    const LhOp *own = recording_op(r, rank, op);
    uint32_t left = 0;

    for (uint32_t i = 0; i < op; i++) {
        const LhOp *o = recording_op(r, rank, i);

        left += o->kind == LH_OP_COLLECTIVE && same_communicator(o, own);
    }
    for (uint32_t i = 0; i < recording_count(r, member); i++) {
        const LhOp *o = recording_op(r, member, i);

        if (o->kind == LH_OP_COLLECTIVE && same_communicator(o, own) && left-- == 0)
            return i;
    }
    ck_abort_msg("a collective without a member");
    return 0;
}

/* Whether the current op of @rank can end. */
static bool
can_end(const Queues *q, uint32_t rank)
{
    const Recording *r = q->recording;
    const uint32_t at = q->at[rank];
    const LhOp *op = recording_op(r, rank, at);

    if (op->kind == LH_OP_EXCHANGE) {
        for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
            if (q->at[recording_part(r, rank, op, i)->peer] < partner_of(r, rank, at, i))
                return false;
        }
    } else if (op->kind == LH_OP_COLLECTIVE) {
        for (uint32_t i = 0; i < lh_group_size(&op->collective.group); i++) {
            const uint32_t member = (uint32_t)lh_group_member(&op->collective.group, i);

            if (q->at[member] < meeting_of(r, rank, at, member))
                return false;
        }
    }
    return true;
}

static bool
ends_in_queues(const Recording *recording)
{
    const uint32_t ranks = lh_program_ranks(&recording->program);
    g_autofree uint32_t *at = g_new0(uint32_t, ranks);
    const Queues q = { recording, at };
    bool moved = true, all = true;

    while (moved) {
        moved = false;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            while (at[rank] < recording_count(recording, rank) && can_end(&q, rank)) {
                at[rank]++;
                moved = true;
            }
        }
    }
    for (uint32_t rank = 0; rank < ranks; rank++)
        all = all && at[rank] == recording_count(recording, rank);
    return all;
}

/* ---- other orders ---- */

static bool
communicates(const LhOp *op)
{
    return op->kind == LH_OP_EXCHANGE || op->kind == LH_OP_COLLECTIVE;
}

/* Whether ops @i and @i + 1 of a rank communicate and are ordered by the host only. */
static bool
may_swap(const Recording *r, uint32_t rank, uint32_t i)
{
    const LhOp *a = recording_op(r, rank, i), *b = a + 1;
    bool after = false;

    for (uint32_t k = 0; k < b->after_count; k++)
        after = after || b->after[k] == i;
    return communicates(a) && communicates(b) && a->stream != b->stream && !after;
}

static void
swap(Recording *r, uint32_t rank, uint32_t i)
{
    LhOp *ops = recording_op(r, rank, 0);
    const LhOp first = ops[i];

    ops[i] = ops[i + 1];
    ops[i + 1] = first;
    ops[i].id = i;
    ops[i + 1].id = i + 1;
    for (uint32_t k = i + 2; k < recording_count(r, rank); k++) {
        for (uint32_t j = 0; j < ops[k].after_count; j++) {
            if (ops[k].after[j] == i || ops[k].after[j] == i + 1)
                ops[k].after[j] = 2 * i + 1 - ops[k].after[j];
        }
    }
}

/* The ops of @rank that may be swapped with the next one. */
static GArray *
swaps_of(const Recording *r, uint32_t rank)
{
    GArray *swaps = g_array_new(FALSE, FALSE, sizeof(uint32_t));

    for (uint32_t i = 0; i + 1 < recording_count(r, rank); i++) {
        if (may_swap(r, rank, i)) {
            g_array_append_val(swaps, i);
            i++;
        }
    }
    return swaps;
}

typedef struct {
    uint32_t end, stop;
} Seen;

static void
judge(const Recording *r, const char *name, Seen *seen)
{
    g_autoptr(LhVerdict) verdict = lh_verify(&r->program);
    const bool ends = ends_in_queues(r);

    ck_assert_msg(verdict->findings_total == 0, "%s: %s", name, first_message(verdict));
    ck_assert_msg(verdict->one_queue == ends, "%s with %u ranks: %s in one queue, the verifier %s",
                  name, verdict->ranks, ends ? "ends" : "stops",
                  ends ? verdict->queue_cycle : "finds nothing");
    ck_assert_int_eq(verdict->queue_cycle == NULL, verdict->one_queue);
    *(ends ? &seen->end : &seen->stop) += 1;
}

/* Swaps on one rank, one at a time; then the same swap on all ranks of one parity. */
static void
try_swaps(Recording *r, const char *name, Seen *seen)
{
    const uint32_t ranks = lh_program_ranks(&r->program);

    judge(r, name, seen);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        g_autoptr(GArray) swaps = swaps_of(r, rank);

        for (guint i = 0; i < swaps->len; i++) {
            const uint32_t at = g_array_index(swaps, uint32_t, i);

            for (uint32_t other = rank; other < ranks; other += 2) {
                if (may_swap(r, other, at))
                    swap(r, other, at);
                judge(r, name, seen);
            }
            for (uint32_t other = rank; other < ranks; other += 2) {
                if (may_swap(r, other, at))
                    swap(r, other, at);
            }
        }
    }
}

START_TEST(verdict_is_that_of_a_run)
{
    static const uint32_t ranks[] = { 3, 4, 5 };
    Seen seen = { 0 };

    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        for (uint32_t i = 0; i < G_N_ELEMENTS(ranks); i++) {
            const LhProgramParams params = params_of(ranks[i], LH_PASS_BOTH, true, true, false);
            g_autoptr(LhProgram) program = fitting_program(lh_schedules[s], &params);
            Recording *r;

            if (program == NULL)
                continue;
            r = recording_new(program);
            try_swaps(r, lh_schedules[s]->name, &seen);
            recording_free(r);
        }
    }
    ck_assert_uint_gt(seen.end, 100);
    ck_assert_uint_gt(seen.stop, 10);
}
END_TEST

/* ---- messages ---- */

START_TEST(cycle_of_a_ring_that_sends_first)
{
    const LhProgramParams params = params_of(3, LH_PASS_FWD, true, true, false);
    g_autoptr(LhProgram) program = fitting_program(lh_schedule_find("te-p2p", NULL), &params);
    g_autoptr(LhVerdict) verdict = NULL;
    Recording *r = recording_new(program);
    g_autoptr(GArray) swaps = swaps_of(r, 1);

    ck_assert_uint_eq(swaps->len, 2);
    swap(r, 1, g_array_index(swaps, uint32_t, 0));
    verdict = lh_verify(&r->program);
    ck_assert_uint_eq(verdict->findings_total, 0);
    ck_assert(!verdict->one_queue);
    ck_assert_str_eq(
        verdict->queue_cycle,
        "rank 0, op 4 (exchange, stream comm) waits for rank 1, op 5 (exchange, stream comm_recv), "
        "which waits for rank 1, op 4 (exchange, stream comm), which waits for rank 2, op 5 "
        "(exchange, stream comm_recv), which waits for rank 2, op 4 (exchange, stream comm), which "
        "waits for rank 0, op 5 (exchange, stream comm_recv), which waits for rank 0, op 4 "
        "(exchange, stream comm)");
    recording_free(r);
}
END_TEST

LH_TEST_MAIN("verify_queue", verdict_is_that_of_a_run, cycle_of_a_ring_that_sends_first)
