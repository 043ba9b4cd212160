/* SPDX-License-Identifier: Apache-2.0 */
#include "hand_programs.h"

#include "built.h"
#include "options.h"

#define COPIES                                                                                     \
    80 /* alloc and free ops between two halves of an exchange; larger: beyond the window */

enum { X, Y, TEMP };

/* A program of at least two ranks with an input, an output, and a temporary slot of @parts parts;
 * two communication streams. */
static Built
begin(const char *name, uint32_t ranks, uint32_t parts)
{
    const LhProgramParams params = built_params(ranks);
    Built b = built_new(name, &params);
    const LhSlotParams slots[] = {
        [X] = { "x", LH_TENSOR_HIDDEN, LH_SLOT_INPUT, LH_DTYPE_FP32, .parts = 1, .part_bytes = 64 },
        [Y] = { "y", LH_TENSOR_HIDDEN, LH_SLOT_OUTPUT, LH_DTYPE_FP32, .parts = 1,
                .part_bytes = 64 },
        [TEMP] = { "temp", LH_TENSOR_HIDDEN, LH_SLOT_TEMP, LH_DTYPE_FP32, .parts = parts,
                   .part_bytes = 64 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(slots); i++)
        lh_program_add_slot(b.program, slots[i]);
    lh_program_add_stream(b.program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(b.program, "comm", LH_STREAM_COMM);
    lh_program_add_stream(b.program, "comm2", LH_STREAM_COMM);
    return b;
}

/* y = x + x. */
static void
fill_output(LhEmitter *e)
{
    const LhKernelArgs args = { .elements.count = 16 };

    lh_emit_compute(e, 0, LH_KERNEL_ID_residual, &args);
    lh_emit_operand(e, X, 0, 1);
    lh_emit_operand(e, X, 0, 1);
    lh_emit_operand(e, Y, 0, 1);
}

static uint32_t
message(LhEmitter *e, uint8_t stream, bool send, uint32_t peer, uint16_t tag, LhRegion region)
{
    const uint32_t id = lh_emit_exchange(e, stream);

    lh_emit_part(e, send, peer, tag, lh_region_bytes(e->program, region));
    lh_emit_region(e, region.slot, region.part, region.count);
    return id;
}

static const LhRegion x = { X, 0, 1 };

/*
 * Rank 0 receives an answer that rank 1 sends only after a message from rank 0, which rank 0's host
 * posts only behind @pairs alloc and free ops.
 */
static LhProgram *
answer_behind(const char *name, uint32_t pairs)
{
    Built b = begin(name, 2, 3);
    LhEmitter *first = &b.emitters[0], *second = &b.emitters[1];
    const LhRegion answer = { TEMP, 0, 1 }, question = { TEMP, 1, 1 }, spare = { TEMP, 2, 1 };
    uint32_t asked;

    lh_emit_alloc_region(first, answer);
    message(first, 1, false, 1, 0, answer);
    for (uint32_t i = 0; i < pairs; i++) {
        lh_emit_alloc_region(first, spare);
        lh_emit_free_region(first, spare);
    }
    message(first, 2, true, 1, 1, x);
    lh_emit_free_region(first, answer);
    fill_output(first);
    lh_emit_alloc_region(second, question);
    asked = message(second, 2, false, 0, 1, question);
    message(second, 1, true, 0, 0, question);
    lh_emit_after(second, asked);
    lh_emit_free_region(second, question);
    fill_output(second);
    return built_end(&b);
}

static LhProgram *
answer_within_the_window(void)
{
    return answer_behind("answer within the window", COPIES / 2);
}

static LhProgram *
answer_beyond_the_window(void)
{
    return answer_behind("answer beyond the window", LH_HOST_WINDOW);
}

/* Two messages received in the reverse order of sending: correct with tags only. */
static LhProgram *
messages_by_tag(void)
{
    Built b = begin("messages by tag", 2, 2);
    LhEmitter *from = &b.emitters[0], *to = &b.emitters[1];
    const LhRegion all = { TEMP, 0, 2 }, one = { TEMP, 0, 1 }, other = { TEMP, 1, 1 };

    message(from, 1, true, 1, 1, x);
    message(from, 1, true, 1, 2, x);
    fill_output(from);
    lh_emit_alloc_region(to, all);
    message(to, 1, false, 0, 2, other);
    message(to, 1, false, 0, 1, one);
    lh_emit_free_region(to, all);
    fill_output(to);
    return built_end(&b);
}

/* The same on one communicator each, where the order of posting does not matter. */
static LhProgram *
messages_by_communicator(void)
{
    Built b = begin("messages by communicator", 2, 2);
    LhEmitter *from = &b.emitters[0], *to = &b.emitters[1];
    const LhRegion all = { TEMP, 0, 2 }, one = { TEMP, 0, 1 }, other = { TEMP, 1, 1 };

    from->communicator = 1;
    message(from, 1, true, 1, 1, x);
    from->communicator = 2;
    message(from, 2, true, 1, 2, x);
    fill_output(from);
    lh_emit_alloc_region(to, all);
    to->communicator = 2;
    message(to, 1, false, 0, 2, other);
    to->communicator = 1;
    message(to, 2, false, 0, 1, one);
    lh_emit_free_region(to, all);
    fill_output(to);
    return built_end(&b);
}

static void
gather(LhEmitter *e, uint8_t stream, LhGroup group, LhRegion into)
{
    lh_emit_collective(e, stream, LH_COLL_ALL_GATHER, group);
    lh_emit_tensor(e, x, into);
}

/* One group written in two ways: the stride of a dimension with count 1 has no meaning. */
static LhProgram *
group_with_idle_strides(void)
{
    Built b = begin("group with idle strides", 2, 2);
    const LhGroup groups[] = { { 0, 1, 2, 0, 1 }, { 0, 1, 2, 7, 1 } };

    for (uint32_t rank = 0; rank < 2; rank++) {
        LhEmitter *e = &b.emitters[rank];

        lh_emit_alloc(e, TEMP);
        gather(e, 1, groups[rank], (LhRegion){ TEMP, 0, 2 });
        lh_emit_free(e, TEMP);
        fill_output(e);
    }
    return built_end(&b);
}

/* Groups that share two ranks and call at the same time. A 16-bit hash once confused the two. */
static LhProgram *
groups_that_share_ranks(void)
{
    static const LhGroup groups[] = { { 0, 6, 3, 0, 1 }, { 0, 1, 1, 3, 3 } };
    Built b = begin("groups that share ranks", 14, 6);

    for (uint32_t rank = 0; rank < 14; rank++) {
        LhEmitter *e = &b.emitters[rank];

        lh_emit_alloc(e, TEMP);
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t i = rank % 4 < 2 ? k : 1 - k;

            if (lh_group_position(&groups[i], rank) != UINT32_MAX)
                gather(e, (uint8_t)(1 + i), groups[i], (LhRegion){ TEMP, 3 * i, 3 });
        }
        lh_emit_free(e, TEMP);
        fill_output(e);
    }
    return built_end(&b);
}

/* Two calls on one communicator whose order differs between ranks. */
static LhProgram *
calls_out_of_order(void)
{
    Built b = begin("calls out of order", 2, 4);
    const LhGroup both = { 0, 1, 2, 0, 1 };

    for (uint32_t rank = 0; rank < 2; rank++) {
        LhEmitter *e = &b.emitters[rank];

        lh_emit_alloc(e, TEMP);
        for (uint32_t k = 0; k < 2; k++) {
            if ((rank + k) % 2 == 0) {
                gather(e, 1, both, (LhRegion){ TEMP, 0, 2 });
            } else {
                lh_emit_collective(e, 1, LH_COLL_ALL_REDUCE, both);
                lh_emit_tensor(e, x, (LhRegion){ TEMP, 2, 1 });
            }
        }
        lh_emit_free(e, TEMP);
        fill_output(e);
    }
    return built_end(&b);
}

/* The same two calls, each on its own communicator and stream: the orders are independent. */
static LhProgram *
calls_on_two_communicators(void)
{
    Built b = begin("calls on two communicators", 2, 4);
    const LhGroup both = { 0, 1, 2, 0, 1 };

    for (uint32_t rank = 0; rank < 2; rank++) {
        LhEmitter *e = &b.emitters[rank];

        lh_emit_alloc(e, TEMP);
        for (uint32_t k = 0; k < 2; k++) {
            if ((rank + k) % 2 == 0) {
                gather(e, 1, both, (LhRegion){ TEMP, 0, 2 });
                lh_emit_last(e)->communicator = 1;
            } else {
                lh_emit_collective(e, 2, LH_COLL_ALL_REDUCE, both);
                lh_emit_tensor(e, x, (LhRegion){ TEMP, 2, 1 });
                lh_emit_last(e)->communicator = 2;
            }
        }
        lh_emit_free(e, TEMP);
        fill_output(e);
    }
    return built_end(&b);
}

/* An all-reduce of a sum cuts its data into one slice per rank. */
static LhProgram *
sum_that_cannot_be_shared(void)
{
    Built b = begin("sum that cannot be shared", 3, 1);

    for (uint32_t rank = 0; rank < 3; rank++) {
        LhEmitter *e = &b.emitters[rank];

        lh_emit_collective(e, 1, LH_COLL_ALL_REDUCE, (LhGroup){ 0, 1, 3, 0, 1 });
        lh_emit_tensor(e, x, (LhRegion){ Y, 0, 1 });
    }
    return built_end(&b);
}

/* An all-reduce that merges attention cuts its data into whole parts. */
static LhProgram *
attention_that_cannot_be_shared(void)
{
    Built b = begin("attention that cannot be shared", 2, 1);
    const uint16_t acc = lh_program_add_slot(
        b.program, (LhSlotParams){ "acc", LH_TENSOR_ACC, LH_SLOT_TEMP, LH_DTYPE_FP32, .parts = 6,
                                   .part_bytes = 32 * 4 + 2 * 4 });

    for (uint32_t rank = 0; rank < 2; rank++) {
        LhEmitter *e = &b.emitters[rank];

        lh_emit_alloc(e, acc);
        lh_emit_collective(e, 1, LH_COLL_ALL_REDUCE, (LhGroup){ 0, 1, 2, 0, 1 });
        lh_emit_last(e)->collective.reduction = LH_REDUCE_ATTENTION;
        lh_emit_tensor(e, (LhRegion){ acc, 0, 3 }, (LhRegion){ acc, 3, 3 });
        lh_emit_free(e, acc);
        fill_output(e);
    }
    return built_end(&b);
}

/* Two live ranges of one slot at a time: parts are allocated and freed independently. */
static LhProgram *
lives_of_parts(void)
{
    Built b = begin("lives of parts", 2, 2);

    for (uint32_t rank = 0; rank < 2; rank++) {
        LhEmitter *e = &b.emitters[rank];
        const LhRegion own = { TEMP, 0, 1 }, other = { TEMP, 1, 1 };
        uint32_t exchanged;

        lh_emit_alloc_region(e, other);
        exchanged = lh_emit_exchange(e, 1);
        lh_emit_part(e, true, 1 - rank, 0, 64);
        lh_emit_region(e, X, 0, 1);
        lh_emit_part(e, false, 1 - rank, 0, 64);
        lh_emit_region(e, TEMP, 1, 1);
        lh_emit_alloc_region(e, own);
        lh_emit_compute(e, 0, LH_KERNEL_ID_residual, &(LhKernelArgs){ .elements.count = 16 });
        lh_emit_operand(e, TEMP, 1, 1);
        lh_emit_operand(e, TEMP, 1, 1);
        lh_emit_operand(e, TEMP, 0, 1);
        lh_emit_after(e, exchanged);
        lh_emit_free_region(e, other);
        lh_emit_free_region(e, own);
        fill_output(e);
    }
    return built_end(&b);
}

/* ---- sums of o ---- */

enum { Q, KV, O, Q_ALL, KV_ALL, K_ALL, V_ALL, SCORES, PROBS, LSE, TERMS, O_SLOTS };

/* Two ranks that attend to each other's keys, one token and head each. */
static Built
begin_attention(const char *name)
{
    LhProgramParams params = built_params(2);
    const LhSlotParams slots[O_SLOTS] = {
        [Q] = { "q", LH_TENSOR_Q, LH_SLOT_INPUT, LH_DTYPE_BF16, .parts = 1, .part_bytes = 64 },
        [KV] = { "kv", LH_TENSOR_KV, LH_SLOT_INPUT, LH_DTYPE_BF16, .parts = 1, .part_bytes = 128 },
        [O] = { "o", LH_TENSOR_O, LH_SLOT_OUTPUT, LH_DTYPE_BF16, .parts = 1, .part_bytes = 64 },
        [Q_ALL] = { "q_all", LH_TENSOR_Q, .dtype = LH_DTYPE_BF16, .parts = 2, .part_bytes = 64 },
        [KV_ALL] = { "kv_all", LH_TENSOR_KV, .dtype = LH_DTYPE_BF16, .parts = 2,
                     .part_bytes = 128 },
        [K_ALL] = { "k_all", LH_TENSOR_K, .dtype = LH_DTYPE_BF16, .parts = 2, .part_bytes = 64 },
        [V_ALL] = { "v_all", LH_TENSOR_V, .dtype = LH_DTYPE_BF16, .parts = 2, .part_bytes = 64 },
        [SCORES] = { "scores", LH_TENSOR_SCORES, .dtype = LH_DTYPE_FP32, .parts = 2,
                     .part_bytes = 4 },
        [PROBS] = { "probs", LH_TENSOR_PROBS, .dtype = LH_DTYPE_BF16, .parts = 2, .part_bytes = 2 },
        [LSE] = { "lse", LH_TENSOR_LSE, .dtype = LH_DTYPE_FP32, .parts = 1, .part_bytes = 4 },
        [TERMS] = { "terms", LH_TENSOR_O, .dtype = LH_DTYPE_BF16, .parts = 2, .part_bytes = 64 },
    };
    Built b;

    params.mask.causal = false;
    b = built_new(name, &params);
    for (unsigned i = 0; i < O_SLOTS; i++)
        lh_program_add_slot(b.program, slots[i]);
    lh_program_add_stream(b.program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(b.program, "comm", LH_STREAM_COMM);
    return b;
}

/* A collective of both ranks, behind op @after. */
static uint32_t
meet(LhEmitter *e, LhCollectiveKind kind, uint16_t send, uint16_t receive, uint32_t after)
{
    const uint32_t id = lh_emit_collective(e, 1, kind, (LhGroup){ 0, 1, 2, 0, 1 });

    lh_emit_tensor(e, lh_region_whole(e->program, send), lh_region_whole(e->program, receive));
    lh_emit_after(e, after);
    return id;
}

/* Emits a call for @nq queries and @nk keys, all pairs, on @regions. */
static uint32_t
call(LhEmitter *e, LhKernelId kernel, uint64_t nq, uint64_t nk,
     const LhRegion regions[LH_KERNEL_OPERANDS_MAX])
{
    const LhKernelArgs args = { .pairs = nq * nk,
                                .nq = nq,
                                .nk = nk,
                                .batch = 1,
                                .heads = 1,
                                .groups = 1,
                                .head_dim = 32,
                                .mask = LH_MASK_FULL,
                                .first = true };
    const uint32_t id = lh_emit_compute(e, 0, kernel, &args);

    for (uint32_t i = 0; lh_kernels[kernel]->operands[i].access != LH_OPERAND_END; i++)
        lh_emit_operand(e, regions[i].slot, regions[i].part, regions[i].count);
    return id;
}

/* Frees all slots except inputs and results. */
static void
make_room(LhEmitter *e)
{
    for (uint16_t slot = Q_ALL; slot < (uint16_t)O_SLOTS; slot++)
        lh_emit_alloc(e, slot);
}

static void
give_room_back(LhEmitter *e)
{
    for (uint16_t slot = Q_ALL; slot < (uint16_t)O_SLOTS; slot++)
        lh_emit_free(e, slot);
}

/* Computes @row's softmax over all keys, and its term of o from @key. */
static uint32_t
term(LhEmitter *e, uint32_t row, uint32_t key)
{
    call(e, LH_KERNEL_ID_scores, 1, 2,
         (const LhRegion[LH_KERNEL_OPERANDS_MAX]){
             { Q_ALL, row, 1 }, { K_ALL, 0, 2 }, { SCORES, 0, 2 } });
    call(e, LH_KERNEL_ID_scores_softmax, 1, 2,
         (const LhRegion[LH_KERNEL_OPERANDS_MAX]){
             { SCORES, 0, 2 }, { PROBS, 0, 2 }, { LSE, 0, 1 } });
    return call(e, LH_KERNEL_ID_scores_o, 1, 1,
                (const LhRegion[LH_KERNEL_OPERANDS_MAX]){
                    { PROBS, key, 1 }, { V_ALL, key, 1 }, { TERMS, row, 1 } });
}

/* Each rank has the term of its own keys for both rows, divided by the sum over the whole row. */
static LhProgram *
terms_of_o_add_up(void)
{
    Built b = begin_attention("terms of o add up");

    for (uint32_t rank = 0; rank < 2; rank++) {
        LhEmitter *e = &b.emitters[rank];
        uint32_t done;

        make_room(e);
        meet(e, LH_COLL_ALL_GATHER, Q, Q_ALL, LH_OP_NONE);
        done = meet(e, LH_COLL_ALL_GATHER, KV, KV_ALL, LH_OP_NONE);
        call(e, LH_KERNEL_ID_take_k, 0, 2,
             (const LhRegion[LH_KERNEL_OPERANDS_MAX]){ { KV_ALL, 0, 2 }, { K_ALL, 0, 2 } });
        lh_emit_after(e, done);
        call(e, LH_KERNEL_ID_take_v, 0, 2,
             (const LhRegion[LH_KERNEL_OPERANDS_MAX]){ { KV_ALL, 0, 2 }, { V_ALL, 0, 2 } });
        term(e, 0, rank);
        done = term(e, 1, rank);
        meet(e, LH_COLL_REDUCE_SCATTER, TERMS, O, done);
        give_room_back(e);
    }
    return built_end(&b);
}

/* Each rank has its own finished o and nothing for the other one. */
static LhProgram *
nothing_adds_nothing(void)
{
    Built b = begin_attention("nothing adds nothing");

    for (uint32_t rank = 0; rank < 2; rank++) {
        LhEmitter *e = &b.emitters[rank];
        uint32_t done;

        make_room(e);
        done = meet(e, LH_COLL_ALL_GATHER, KV, KV_ALL, LH_OP_NONE);
        call(e, LH_KERNEL_ID_attention, 1, 2,
             (const LhRegion[LH_KERNEL_OPERANDS_MAX]){
                 { Q, 0, 1 }, { KV_ALL, 0, 2 }, { TERMS, rank, 1 }, { LSE, 0, 1 } });
        lh_emit_after(e, done);
        done = call(e, LH_KERNEL_ID_zero, 1, 0,
                    (const LhRegion[LH_KERNEL_OPERANDS_MAX]){ { TERMS, 1 - rank, 1 } });
        meet(e, LH_COLL_REDUCE_SCATTER, TERMS, O, done);
        give_room_back(e);
    }
    return built_end(&b);
}

const HandProgram hand_programs[] = {
    { "answer-within-the-window", answer_within_the_window, NULL, NULL },
    { "answer-beyond-the-window", answer_beyond_the_window, "cycle", "cannot end" },
    { "messages-by-tag", messages_by_tag, "match in order, whatever their tags", NULL },
    { "messages-by-communicator", messages_by_communicator, NULL, NULL },
    { "group-with-idle-strides", group_with_idle_strides, NULL, NULL },
    { "groups-that-share-ranks", groups_that_share_ranks, NULL, NULL },
    { "calls-out-of-order", calls_out_of_order, "is a different collective",
      "another rank calls a different collective" },
    { "calls-on-two-communicators", calls_on_two_communicators, NULL, NULL },
    { "sum-that-cannot-be-shared", sum_that_cannot_be_shared, "do not divide among", NULL },
    { "attention-that-cannot-be-shared", attention_that_cannot_be_shared, "do not divide among",
      NULL },
    { "lives-of-parts", lives_of_parts, NULL, NULL },
    { "terms-of-o-add-up", terms_of_o_add_up, NULL, NULL },
    { "nothing-adds-nothing", nothing_adds_nothing, NULL, NULL },
    { .name = NULL },
};
