/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The explicit JSON form: every program survives writing and reading unchanged, handwritten ones
 * can use every kind of op, and invalid ones give an error with a position.
 */
#include "base/error.h"
#include "base/rng.h"
#include "fitting.h"
#include "program/explicit/explicit.h"
#include "program/explicit/explicit_read.h"
#include "program/explicit/explicit_write.h"
#include "run_tests.h"
#include "share.h"
#include "verify/verify.h"

#include <string.h>

static LhProgramParams
make_params(uint32_t ranks, LhPass pass)
{
    return (LhProgramParams){
        .attention = {
            .batch = 1,
            .seq_length = 4 * (uint64_t)ranks,
            .heads = 4,
            .groups = 2,
            .head_dim = 8,
            .dtype = LH_DTYPE_BF16,
        },
        .ranks = ranks,
        .mask.causal = true,
        .pass = pass,
    };
}

static char *
to_json(const LhProgram *program)
{
    g_autoptr(GError) error = NULL;
    GString *text = g_string_new(NULL);

    ck_assert_msg(lh_program_write(program, text, &error), "%s",
                  error == NULL ? "" : error->message);
    return g_string_free(text, FALSE);
}

static LhProgram *
parse(const char *text, GError **error)
{
    return lh_program_parse("t.json", text, strlen(text), error);
}

static LhProgram *
parse_ok(const char *text)
{
    g_autoptr(GError) error = NULL;
    LhProgram *program = parse(text, &error);

    ck_assert_msg(program != NULL, "%s", error == NULL ? "" : error->message);
    return program;
}

static void
check_region(LhRegion a, LhRegion b)
{
    ck_assert(a.slot == b.slot && a.part == b.part && a.count == b.count && a.half == b.half);
}

static void
check_attention_args(const LhKernelArgs *a, const LhKernelArgs *b)
{
    ck_assert(a->pairs == b->pairs && a->nq == b->nq && a->nk == b->nk);
    ck_assert(a->batch == b->batch && a->heads == b->heads && a->groups == b->groups);
    ck_assert(a->head_dim == b->head_dim && a->mask == b->mask && a->shift == b->shift);
    ck_assert(a->reversed == b->reversed);
    ck_assert_uint_eq(a->states, b->states);
    ck_assert(a->scale == b->scale && a->decay == b->decay);
    if (a->mask != LH_MASK_POSITIONS)
        return;
    ck_assert(a->q_at.start == b->q_at.start && a->q_at.part_step == b->q_at.part_step);
    ck_assert(a->k_at.start == b->k_at.start && a->k_at.part_step == b->k_at.part_step);
    ck_assert(a->stride == b->stride);
    ck_assert_ptr_nonnull(b->rule);
}

static void
check_args(LhArgsKind kind, const LhKernelArgs *a, const LhKernelArgs *b)
{
    ck_assert(a->first == b->first);
    if (kind == LH_ARGS_ATTENTION)
        check_attention_args(a, b);
    else if (kind == LH_ARGS_PRODUCT)
        ck_assert_mem_eq(&a->product, &b->product, sizeof(a->product));
    else if (kind == LH_ARGS_ELEMENTS)
        ck_assert_mem_eq(&a->elements, &b->elements, sizeof(a->elements));
    else if (kind == LH_ARGS_ROWS)
        ck_assert_mem_eq(&a->rows, &b->rows, sizeof(a->rows));
    else if (kind == LH_ARGS_HEADS)
        ck_assert_mem_eq(&a->to_heads, &b->to_heads, sizeof(a->to_heads));
    else if (kind == LH_ARGS_EXPERTS)
        ck_assert_mem_eq(&a->experts, &b->experts, sizeof(a->experts));
    else if (kind == LH_ARGS_OPTIMIZER)
        ck_assert_mem_eq(&a->optimizer, &b->optimizer, sizeof(a->optimizer));
    else if (kind == LH_ARGS_MUON)
        ck_assert(lh_kernel_args_equal(kind, a, b));
}

static void
check_parts(const LhOp *a, const LhPart *in_a, const LhOp *b, const LhPart *in_b)
{
    ck_assert_uint_eq(a->exchange.parts_count, b->exchange.parts_count);
    for (uint32_t i = 0; i < a->exchange.parts_count; i++) {
        const LhPart *x = &in_a[a->exchange.parts_first + i];
        const LhPart *y = &in_b[b->exchange.parts_first + i];

        ck_assert(x->peer == y->peer && x->tag == y->tag && x->send == y->send);
        ck_assert(x->wire_bytes == y->wire_bytes && x->regions_count == y->regions_count);
        for (unsigned k = 0; k < x->regions_count; k++)
            check_region(x->regions[k], y->regions[k]);
    }
}

static void
check_collective(const LhOp *a, const uint32_t *in_a, const LhOp *b, const uint32_t *in_b)
{
    const uint64_t counts = 2 * lh_group_size(&a->collective.group) * a->collective.tensors_count;

    ck_assert(a->collective.kind == b->collective.kind &&
              a->collective.reduction == b->collective.reduction);
    ck_assert_mem_eq(&a->collective.group, &b->collective.group, sizeof(LhGroup));
    ck_assert_uint_eq(a->collective.wire_bytes, b->collective.wire_bytes);
    ck_assert_uint_eq(a->collective.tensors_count, b->collective.tensors_count);
    for (unsigned i = 0; i < a->collective.tensors_count; i++) {
        check_region(a->collective.send[i], b->collective.send[i]);
        check_region(a->collective.receive[i], b->collective.receive[i]);
    }
    ck_assert(a->collective.uneven == b->collective.uneven);
    for (uint64_t i = 0; a->collective.uneven && i < counts; i++)
        ck_assert_uint_eq(in_a[a->collective.counts_first + i],
                          in_b[b->collective.counts_first + i]);
}

/* All ops of a rank, over all steps. */
typedef struct {
    GArray *ops, *parts, *counts;
} Ops;

static void
check_op(const Ops *in_a, const LhOp *a, const Ops *in_b, const LhOp *b)
{
    const bool memory = a->kind == LH_OP_ALLOC || a->kind == LH_OP_FREE;

    ck_assert(a->id == b->id && a->kind == b->kind && a->phase == b->phase && a->step == b->step);
    ck_assert(a->layer == b->layer && a->micro_batch == b->micro_batch && a->module == b->module);
    ck_assert_uint_eq(a->after_count, b->after_count);
    for (unsigned i = 0; i < a->after_count; i++)
        ck_assert_uint_eq(a->after[i], b->after[i]);
    if (!memory && a->kind != LH_OP_SYNC)
        ck_assert_uint_eq(a->stream, b->stream);
    if (memory) {
        check_region(a->memory.region, b->memory.region);
    } else if (a->kind == LH_OP_COMPUTE) {
        ck_assert_int_eq(a->compute.kernel, b->compute.kernel);
        ck_assert_uint_eq(a->compute.regions_count, b->compute.regions_count);
        for (unsigned i = 0; i < a->compute.regions_count; i++)
            check_region(a->compute.regions[i], b->compute.regions[i]);
        check_args(lh_kernels[a->compute.kernel]->args, &a->compute.args, &b->compute.args);
    } else if (a->kind == LH_OP_EXCHANGE) {
        ck_assert_uint_eq(a->communicator, b->communicator);
        check_parts(a, (LhPart *)(void *)in_a->parts->data, b, (LhPart *)(void *)in_b->parts->data);
    } else if (a->kind == LH_OP_COLLECTIVE) {
        ck_assert_uint_eq(a->communicator, b->communicator);
        check_collective(a, (uint32_t *)(void *)in_a->counts->data, b,
                         (uint32_t *)(void *)in_b->counts->data);
    }
}

static Ops
collect(const LhProgram *program, uint32_t rank)
{
    const Ops all = { g_array_new(FALSE, FALSE, sizeof(LhOp)),
                      g_array_new(FALSE, FALSE, sizeof(LhPart)),
                      g_array_new(FALSE, FALSE, sizeof(uint32_t)) };
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            LhOp op = buffer.ops[i];

            if (op.kind == LH_OP_EXCHANGE)
                op.exchange.parts_first += all.parts->len;
            if (op.kind == LH_OP_COLLECTIVE && op.collective.uneven)
                op.collective.counts_first += all.counts->len;
            g_array_append_val(all.ops, op);
        }
        if (buffer.parts_count > 0)
            g_array_append_vals(all.parts, buffer.parts, buffer.parts_count);
        if (buffer.counts_count > 0)
            g_array_append_vals(all.counts, buffer.counts, buffer.counts_count);
    }
    lh_op_buffer_clear(&buffer);
    return all;
}

static void
ops_free(const Ops *all)
{
    g_array_unref(all->ops);
    g_array_unref(all->parts);
    g_array_unref(all->counts);
}

static void
check_same_ops(const LhProgram *a, const LhProgram *b)
{
    ck_assert_uint_eq(lh_program_ranks(a), lh_program_ranks(b));
    for (uint32_t rank = 0; rank < lh_program_ranks(a); rank++) {
        const Ops of_a = collect(a, rank), of_b = collect(b, rank);

        ck_assert_uint_eq(of_a.ops->len, of_b.ops->len);
        for (guint i = 0; i < of_a.ops->len; i++)
            check_op(&of_a, &g_array_index(of_a.ops, LhOp, i), &of_b,
                     &g_array_index(of_b.ops, LhOp, i));
        ops_free(&of_a);
        ops_free(&of_b);
    }
}

/* Asserts equal declarations: everything except the ops. */
static void
check_same_declarations(const LhProgram *a, const LhProgram *b)
{
    const LhMaskRule *mask = &a->params.mask, *other = &b->params.mask;

    ck_assert(a->placement.kind == b->placement.kind && a->placement.split == b->placement.split);
    ck_assert(MAX(a->head_slices, 1) == b->head_slices && MAX(a->kv_slices, 1) == b->kv_slices);
    ck_assert_uint_eq(a->saved_group, b->saved_group);
    ck_assert(a->params.pass == b->params.pass && a->params.keep_saved == b->params.keep_saved);
    ck_assert(mask->causal == other->causal && mask->window == other->window);
    ck_assert_uint_eq(mask->documents_count, other->documents_count);
    for (uint32_t i = 0; i < mask->documents_count; i++)
        ck_assert_uint_eq(mask->document_ends[i], other->document_ends[i]);
    ck_assert_uint_eq(a->params.attention.hidden_size, b->params.attention.hidden_size);
    ck_assert(a->params.attention.linear == b->params.attention.linear);
    ck_assert(a->params.attention.decay == b->params.attention.decay);
    ck_assert_uint_eq(a->slots_count, b->slots_count);
    for (uint32_t i = 0; i < a->slots_count; i++) {
        const LhSlot *x = &a->slots[i], *y = &b->slots[i];

        ck_assert_str_eq(x->name, y->name);
        ck_assert(x->kind == y->kind && x->role == y->role && x->parts == y->parts);
        ck_assert(x->part_bytes == y->part_bytes && x->dtype == y->dtype);
        ck_assert(x->head_dim == y->head_dim && x->by_heads == y->by_heads);
        ck_assert_uint_eq(x->first_cell, y->first_cell);
    }
}

/* Asserts equal claims, and equal options of the generator. */
static void
check_same_words(const LhProgram *a, const LhProgram *b)
{
    const guint options = a->record == NULL ? 0 : g_strv_length(a->record);

    for (unsigned claim = 0; claim < LH_CLAIMS; claim++) {
        for (uint32_t rank = 0; rank < lh_program_ranks(a); rank++) {
            uint64_t x = 0, y = 0;
            const bool claimed = lh_program_claim(a, (LhClaim)claim, rank, &x);

            ck_assert(lh_program_claim(b, (LhClaim)claim, rank, &y) == claimed);
            ck_assert_uint_eq(x, y);
        }
    }
    ck_assert_uint_eq(b->record == NULL ? 0 : g_strv_length(b->record), options);
    for (guint i = 0; i < options; i++)
        ck_assert_str_eq(a->record[i], b->record[i]);
}

/* Returns the number of programs checked: 1, or 0 if the schedule rejects the parameters. */
static unsigned
check_round_trip(const LhSchedule *schedule, const LhProgramParams *params)
{
    g_autoptr(LhProgram) program = fitting_program(schedule, params);
    g_autoptr(LhProgram) again = NULL;
    g_autoptr(LhVerdict) verdict = NULL;
    g_autofree char *first = NULL;
    g_autofree char *second = NULL;

    if (program == NULL)
        return 0;
    first = to_json(program);
    again = parse_ok(first);
    second = to_json(again);
    ck_assert_str_eq(first, second);
    check_same_declarations(program, again);
    check_same_ops(program, again);
    check_same_words(program, again);
    ck_assert_ptr_null(again->closed);
    verdict = lh_verify(again);
    ck_assert_msg(
        verdict->findings_total == 0, "%s, %u ranks: %s", schedule->name, params->ranks,
        verdict->findings->len == 0 ? "" : g_array_index(verdict->findings, LhFinding, 0).message);
    return 1;
}

START_TEST(explicit_round_trips)
{
    for (unsigned i = 0; lh_schedules[i] != NULL; i++) {
        unsigned programs = 0;

        for (uint32_t ranks = 1; ranks <= 5; ranks++) {
            for (int pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
                LhProgramParams p = make_params(ranks, (LhPass)pass);

                if (!test_takes_of(i + ranks + (unsigned)pass, 5))
                    continue;
                programs += check_round_trip(lh_schedules[i], &p);
                p.keep_saved = true;
                programs += check_round_trip(lh_schedules[i], &p);
                p.keep_saved = false;
                p.data_parallel_size = 1 + (uint32_t)pass % 2;
                set_option(&p, "no_overlap", 1);
                p.mask.causal = !lh_schedule_takes(lh_schedules[i], false);
                set_option(&p, "gradient_wire", LH_WIRE_FP32);
                programs += check_round_trip(lh_schedules[i], &p);
                p.mask.causal = true;
                set_option(&p, "published_code", ranks % 2 == 0);
                programs += check_round_trip(lh_schedules[i], &p);
            }
        }
        ck_assert_msg(programs > 0, "%s refuses everything", lh_schedules[i]->name);
    }
}
END_TEST

/* Windows and documents for schedules that support them, and decays. */
START_TEST(explicit_round_trips_masks)
{
    for (unsigned i = 0; lh_schedules[i] != NULL; i++) {
        const LhSchedule *schedule = lh_schedules[i];

        for (uint32_t ranks = 1; ranks <= 4; ranks++) {
            const uint64_t ends[] = { 1, 2 * ranks + 1, 4 * (uint64_t)ranks };
            LhProgramParams p = make_params(ranks, LH_PASS_BOTH);

            p.attention.decay = lh_schedule_takes(schedule, false) ? 0 : 0.5;
            p.mask.window = (schedule->masks & LH_MASKS_WINDOW) != 0 ? 3 : 0;
            if ((schedule->masks & LH_MASKS_DOCUMENTS) != 0) {
                p.mask.document_ends = ends;
                p.mask.documents_count = G_N_ELEMENTS(ends);
            }
            check_round_trip(schedule, &p);
        }
    }
}
END_TEST

/* Two ranks; every kind of op, with sizes and numbers that are no defaults. */
static const char hand_made[] =
    "{\n"
    "  \"schema\": \"longhaul.schedule/1\",\n"
    "  \"params\": {\"ranks\": 2, \"batch\": 1, \"seq_length\": 8, \"heads\": 2, \"groups\": 1, "
    "\"head_dim\": 4,\n"
    "             \"dtype\": \"bf16\", \"causal\": true, \"pass\": \"fwd\"},\n"
    "  \"placement\": \"zigzag\",\n"
    "  \"closed_form\": {\"bytes_sent\": [1, 2], \"peak_bytes\": [3, 4]},\n"
    "  \"slots\": [\n"
    "    {\"name\": \"q\", \"kind\": \"q\", \"role\": \"input\", \"parts\": 2, \"part_bytes\": 32, "
    "\"element_bytes\": 2},\n"
    "    {\"name\": \"kv\", \"kind\": \"kv\", \"role\": \"input\", \"parts\": 2, \"part_bytes\": "
    "32, \"element_bytes\": 2},\n"
    "    {\"name\": \"all\", \"kind\": \"kv\", \"role\": \"temp\", \"parts\": 4, \"part_bytes\": "
    "32, \"element_bytes\": 2},\n"
    "    {\"name\": \"acc\", \"kind\": \"acc\", \"role\": \"temp\", \"part_bytes\": 96, "
    "\"element_bytes\": 2}\n"
    "  ],\n"
    "  \"streams\": [{\"name\": \"main\", \"kind\": \"compute\"}, {\"name\": \"net\", \"kind\": "
    "\"comm\"}],\n"
    "  \"ranks\": [\n"
    "    {\"ops\": [\n"
    "      {\"op\": \"alloc\", \"slot\": \"all\"},\n"
    "      {\"op\": \"collective\", \"stream\": \"net\", \"collective\": \"all-gather\",\n"
    "       \"group\": {\"base\": 0, \"stride\": 1, \"count\": 2},\n"
    "       \"send\": \"kv\", \"receive\": \"all\", \"wire_bytes\": 64},\n"
    "      {\"op\": \"sync\", \"step\": 1},\n"
    "      {\"op\": \"compute\", \"stream\": \"main\", \"step\": 1, \"after\": [1], \"kernel\": "
    "\"attention_fwd\",\n"
    "       \"regions\": [\"q[1]\", \"all[1..2]\", \"acc\"], \"mask\": \"causal\", \"shift\": -1, "
    "\"nq\": 2, \"nk\": 4,\n"
    "       \"first\": true, \"scale\": 0.25, \"decay\": 0.5},\n"
    "      {\"op\": \"exchange\", \"stream\": \"net\", \"phase\": \"backward\", \"messages\": [\n"
    "        {\"to\": 1, \"tag\": 7, \"wire_bytes\": 5, \"regions\": [\"q\", \"kv[0]:k\"]},\n"
    "        {\"from\": 1, \"wire_bytes\": 6, \"regions\": [\"all[3]\", \"all:v\"]}]},\n"
    "      {\"op\": \"free\", \"phase\": \"backward\", \"slot\": \"all\"}\n"
    "    ]},\n"
    "    {\"ops\": []}\n"
    "  ]\n"
    "}\n";

START_TEST(explicit_expresses_every_op)
{
    g_autoptr(LhProgram) program = parse_ok(hand_made);
    g_autofree char *first = to_json(program);
    g_autoptr(LhProgram) again = parse_ok(first);
    g_autofree char *second = to_json(again);
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    ck_assert_str_eq(first, second);
    ck_assert_uint_eq(program->claimed[LH_CLAIM_BYTES_SENT][1], 2);
    ck_assert_uint_eq(program->claimed[LH_CLAIM_PEAK_BYTES][0], 3);
    ck_assert_ptr_null(program->claimed[LH_CLAIM_FLOPS]);
    check_same_words(program, again);
    lh_cursor_init(&cursor, program, 0);
    ck_assert(lh_cursor_step(&cursor, &buffer));
    ck_assert_uint_eq(buffer.ops_count, 2);
    ck_assert_int_eq(buffer.ops[0].kind, LH_OP_ALLOC);
    ck_assert_int_eq(buffer.ops[1].collective.kind, LH_COLL_ALL_GATHER);
    ck_assert_uint_eq(buffer.ops[1].collective.group.outer_count, 1);
    ck_assert_uint_eq(buffer.ops[1].collective.receive[0].count, 4);
    ck_assert(lh_cursor_step(&cursor, &buffer));
    ck_assert_uint_eq(buffer.ops_count, 2);
    ck_assert_int_eq(buffer.ops[1].compute.kernel, LH_KERNEL_ID_attention_fwd);
    ck_assert_uint_eq(buffer.ops[1].compute.args.pairs, 1); /* rows 0 and 1, j <= i - 1 */
    ck_assert_uint_eq(buffer.ops[1].compute.regions[1].part, 1);
    ck_assert_uint_eq(buffer.ops[1].compute.regions[1].count, 2);
    ck_assert_double_eq(buffer.ops[1].compute.args.scale, 0.25);
    ck_assert(lh_cursor_step(&cursor, &buffer));
    ck_assert_uint_eq(buffer.ops_count, 2);
    ck_assert_uint_eq(buffer.parts_count, 2);
    ck_assert_uint_eq(buffer.parts[0].peer, 1);
    ck_assert_uint_eq(buffer.parts[0].tag, 7);
    ck_assert(buffer.parts[0].send);
    ck_assert(!buffer.parts[1].send);
    ck_assert_uint_eq(buffer.parts[0].regions[1].half, LH_HALF_K);
    check_region(buffer.parts[1].regions[0], (LhRegion){ .slot = 2, .part = 3, .count = 1 });
    check_region(buffer.parts[1].regions[1], (LhRegion){ 2, 0, 4, LH_HALF_V });
    ck_assert(!lh_cursor_step(&cursor, &buffer));
    lh_cursor_init(&cursor, program, 1);
    ck_assert(!lh_cursor_step(&cursor, &buffer));
    lh_op_buffer_clear(&buffer);
}
END_TEST

/* Features of some programs: slices of heads, a split placement, masks by position, several
 * tensors. */
static const char hand_cut[] =
    "{\n"
    "  \"schema\": \"longhaul.schedule/1\",\n"
    "  \"params\": {\"ranks\": 2, \"batch\": 1, \"seq_length\": 8, \"heads\": 4, \"groups\": 2, "
    "\"head_dim\": 4, \"hidden_size\": 24,\n"
    "             \"dtype\": \"bf16\", \"causal\": true, \"window\": 3, \"document_ends\": [5, "
    "8], \"pass\": \"fwd\"},\n"
    "  \"placement\": \"zigzag\", \"placement_split\": 2, \"head_slices\": 4, \"kv_slices\": "
    "2,\n"
    "  \"saved_group\": 2, \"saved\": [\"q\", \"lse\"],\n"
    "  \"slots\": [\n"
    "    {\"name\": \"q\", \"kind\": \"q\", \"role\": \"input\", \"parts\": 8, \"part_bytes\": 16, "
    "\"element_bytes\": 2},\n"
    "    {\"name\": \"kv\", \"kind\": \"kv\", \"role\": \"input\", \"parts\": 4, \"part_bytes\": "
    "32, \"element_bytes\": 2},\n"
    "    {\"name\": \"acc\", \"kind\": \"acc\", \"role\": \"temp\", \"part_bytes\": 96, "
    "\"element_bytes\": 2}\n"
    "  ],\n"
    "  \"streams\": [{\"name\": \"main\", \"kind\": \"compute\"}],\n"
    "  \"ranks\": [\n"
    "    {\"ops\": [\n"
    "      {\"op\": \"collective\", \"stream\": \"main\", \"collective\": \"all-to-all\",\n"
    "       \"group\": {\"base\": 0, \"stride\": 1, \"count\": 2},\n"
    "       \"send\": [\"q\", \"kv[1]\"], \"receive\": [\"q[1]\", \"kv\"], \"wire_bytes\": 9},\n"
    "      {\"op\": \"compute\", \"stream\": \"main\", \"kernel\": \"attention_fwd\",\n"
    "       \"regions\": [\"q[1]\", \"kv[1..2]\", \"acc\"], \"mask\": \"positions\", \"pairs\": 6, "
    "\"nq\": 2, \"nk\": 4,\n"
    "       \"q_start\": 6, \"k_start\": 4, \"k_part_step\": -2, \"stride\": 2}\n"
    "    ]},\n"
    "    {\"ops\": []}\n"
    "  ]\n"
    "}\n";

START_TEST(explicit_expresses_cuts_and_positions)
{
    g_autoptr(LhProgram) program = parse_ok(hand_cut);
    g_autofree char *first = to_json(program);
    g_autoptr(LhProgram) again = parse_ok(first);
    g_autofree char *second = to_json(again);
    const LhKernelArgs *args;
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    ck_assert_str_eq(first, second);
    check_same_declarations(program, again);
    check_same_ops(program, again);
    ck_assert_uint_eq(program->placement.split, 2);
    ck_assert_uint_eq(program->head_slices, 4);
    ck_assert_uint_eq(program->saved_group, 2);
    ck_assert(program->slots[0].by_heads && !program->slots[1].by_heads); /* q is, lse is not */
    ck_assert_uint_eq(program->params.mask.window, 3);
    ck_assert_uint_eq(program->params.mask.document_ends[0], 5);
    ck_assert_uint_eq(program->params.attention.hidden_size, 24);
    lh_cursor_init(&cursor, program, 0);
    ck_assert(lh_cursor_step(&cursor, &buffer));
    ck_assert_uint_eq(buffer.ops[0].collective.tensors_count, 2);
    ck_assert_uint_eq(buffer.ops[0].collective.send[1].part, 1);
    ck_assert_uint_eq(buffer.ops[0].collective.receive[1].count, 4);
    args = &buffer.ops[1].compute.args;
    ck_assert_uint_eq(args->heads, 1); /* per slice */
    ck_assert_uint_eq(args->groups, 1);
    ck_assert_int_eq(args->mask, LH_MASK_POSITIONS);
    ck_assert_int_eq(args->q_at.start, 6);
    ck_assert_int_eq(args->q_at.part_step, 0);
    ck_assert_int_eq(args->k_at.part_step, -2);
    ck_assert_uint_eq(args->stride, 2);
    ck_assert_ptr_eq(args->rule, &program->params.mask);
    lh_op_buffer_clear(&buffer);
}
END_TEST

/* Features of training steps: kernels outside attention, parts allocated independently, uneven
 * collectives, labels. */
static const char hand_trained[] =
    "{\n"
    "  \"schema\": \"longhaul.schedule/1\",\n"
    "  \"params\": {\"ranks\": 2, \"batch\": 1, \"seq_length\": 8, \"heads\": 4, \"groups\": 2, "
    "\"head_dim\": 4, \"dtype\": \"bf16\",\n"
    "             \"causal\": true, \"pass\": \"fwd\", \"keep_saved\": true, \"options\": "
    "[\"no-overlap\", \"grid 1x2\"]},\n"
    "  \"placement\": \"contiguous\", \"saved_group\": 2,\n"
    "  \"slots\": [\n"
    "    {\"name\": \"q\", \"kind\": \"q\", \"role\": \"output\", \"parts\": 4, \"part_bytes\": "
    "128, \"element_bytes\": 2, \"by_heads\": true},\n"
    "    {\"name\": \"x\", \"kind\": \"hidden\", \"role\": \"input\", \"part_bytes\": 128, "
    "\"element_bytes\": 2, \"dtype\": \"fp16\"},\n"
    "    {\"name\": \"w\", \"kind\": \"weight\", \"role\": \"input\", \"part_bytes\": 512, "
    "\"element_bytes\": 2, \"dtype\": \"fp16\"},\n"
    "    {\"name\": \"y\", \"kind\": \"hidden\", \"role\": \"temp\", \"parts\": 3, \"part_bytes\": "
    "128, \"element_bytes\": 2, \"dtype\": \"fp16\", \"head_dim\": 8},\n"
    "    {\"name\": \"sum\", \"kind\": \"hidden\", \"role\": \"temp\", \"part_bytes\": 256, "
    "\"element_bytes\": 4}\n"
    "  ],\n"
    "  \"streams\": [{\"name\": \"main\", \"kind\": \"compute\"}, {\"name\": \"net\", \"kind\": "
    "\"comm\"}],\n"
    "  \"ranks\": [\n"
    "    {\"ops\": [\n"
    "      {\"op\": \"alloc\", \"slot\": \"y[1..2]\", \"layer\": 3, \"micro_batch\": 2},\n"
    "      {\"op\": \"alloc\", \"slot\": \"y[0]\", \"layer\": 65535, \"micro_batch\": 65535, "
    "\"module\": 255},\n"
    "      {\"op\": \"compute\", \"phase\": \"recompute\", \"stream\": \"main\", \"kernel\": "
    "\"product\",\n"
    "       \"regions\": [\"x\", \"w\", \"y[2]\"], \"m\": 4, \"n\": 16, \"k\": 17},\n"
    "      {\"op\": \"compute\", \"phase\": \"optimizer\", \"stream\": \"main\", \"kernel\": "
    "\"residual\", \"module\": 1,\n"
    "       \"regions\": [\"x\", \"y[2]\", \"y[0]\"], \"elements\": 64},\n"
    "      {\"op\": \"collective\", \"stream\": \"net\", \"collective\": \"all-to-all\", "
    "\"communicator\": 7,\n"
    "       \"group\": {\"base\": 0, \"stride\": 1, \"count\": 2},\n"
    "       \"send\": \"y\", \"receive\": \"y[1]\", \"counts\": [1, 2, 1, 0], \"wire_bytes\": "
    "9},\n"
    "      {\"op\": \"collective\", \"stream\": \"net\", \"collective\": \"all-to-all\",\n"
    "       \"group\": {\"base\": 0, \"stride\": 1, \"count\": 2},\n"
    "       \"send\": [\"y\", \"x\"], \"receive\": [\"y\", \"x\"], \"counts\": [3, 0, 0, 3, 0, "
    "1, 1, 0], \"wire_bytes\": 9},\n"
    "      {\"op\": \"exchange\", \"stream\": \"net\", \"communicator\": 255, \"messages\": [\n"
    "        {\"to\": 1, \"wire_bytes\": 5, \"regions\": [\"y[0]\"]}]},\n"
    "      {\"op\": \"free\", \"slot\": \"y\"}\n"
    "    ]},\n"
    "    {\"ops\": []}\n"
    "  ]\n"
    "}\n";

START_TEST(explicit_expresses_training)
{
    g_autoptr(LhProgram) program = parse_ok(hand_trained);
    g_autofree char *first = to_json(program);
    g_autoptr(LhProgram) again = parse_ok(first);
    g_autofree char *second = to_json(again);
    const Ops all = collect(program, 0);
    const LhOp *ops = (const LhOp *)(void *)all.ops->data;
    const uint32_t *counts = (const uint32_t *)(void *)all.counts->data;

    ck_assert_str_eq(first, second);
    check_same_declarations(program, again);
    check_same_words(program, again);
    check_same_ops(program, again);
    ck_assert_uint_eq(all.ops->len, 8);
    ck_assert(program->params.keep_saved);
    ck_assert_str_eq(program->record[1], "grid 1x2");
    ck_assert_ptr_null(program->record[2]);
    ck_assert(program->slots[0].by_heads && program->slots[0].dtype == LH_DTYPE_BF16);
    ck_assert_int_eq(program->slots[2].dtype, LH_DTYPE_FP16);
    ck_assert_uint_eq(program->slots[3].head_dim, 8);
    ck_assert_uint_eq(program->slots[3].first_cell, 6);
    ck_assert_int_eq(program->slots[4].dtype, LH_DTYPE_FP32);
    ck_assert_uint_eq(program->slots[4].head_dim, 4);
    check_region(ops[0].memory.region, (LhRegion){ 3, 1, 2 });
    ck_assert(ops[0].layer == 3 && ops[0].micro_batch == 2 && ops[0].module == 0);
    ck_assert(ops[1].layer == 65535 && ops[1].micro_batch == 65535 && ops[1].module == 255);
    ck_assert_int_eq(ops[2].phase, LH_PHASE_RECOMPUTE);
    ck_assert(ops[2].compute.args.product.m == 4 && ops[2].compute.args.product.n == 16 &&
              ops[2].compute.args.product.k == 17);
    ck_assert_int_eq(ops[3].phase, LH_PHASE_OPTIMIZER);
    ck_assert_uint_eq(ops[3].compute.args.elements.count, 64);
    ck_assert_uint_eq(ops[4].communicator, 7);
    ck_assert(ops[4].collective.uneven && ops[5].collective.uneven);
    ck_assert_uint_eq(all.counts->len, 4 + 8);
    ck_assert_uint_eq(counts[ops[4].collective.counts_first + 1], 2);
    ck_assert_uint_eq(counts[ops[5].collective.counts_first + 3], 3);
    ck_assert_uint_eq(ops[5].communicator, 0);
    ck_assert_uint_eq(ops[6].communicator, 255);
    check_region(ops[7].memory.region, (LhRegion){ 3, 0, 3 });
    ops_free(&all);
}
END_TEST

/* A call with each kind of arguments outside attention. */
static const char hand_layered[] =
    "{\n"
    "  \"schema\": \"longhaul.schedule/1\",\n"
    "  \"params\": {\"ranks\": 1, \"batch\": 2, \"seq_length\": 4, \"heads\": 4, \"groups\": 2, "
    "\"head_dim\": 4, \"dtype\": \"bf16\", \"causal\": true, \"pass\": \"fwd\"},\n"
    "  \"placement\": \"contiguous\",\n"
    "  \"slots\": [\n"
    "    {\"name\": \"x\", \"kind\": \"hidden\", \"role\": \"input\", \"part_bytes\": 512, "
    "\"element_bytes\": 2},\n"
    "    {\"name\": \"o\", \"kind\": \"o\", \"role\": \"temp\", \"part_bytes\": 256, "
    "\"element_bytes\": 2},\n"
    "    {\"name\": \"q\", \"kind\": \"q\", \"role\": \"temp\", \"part_bytes\": 256, "
    "\"element_bytes\": 2},\n"
    "    {\"name\": \"kv\", \"kind\": \"kv\", \"role\": \"temp\", \"part_bytes\": 256, "
    "\"element_bytes\": 2},\n"
    "    {\"name\": \"w\", \"kind\": \"weight\", \"role\": \"state\", \"part_bytes\": 512, "
    "\"element_bytes\": 2},\n"
    "    {\"name\": \"g\", \"kind\": \"gradient\", \"role\": \"state\", \"part_bytes\": 1024, "
    "\"element_bytes\": 4},\n"
    "    {\"name\": \"route\", \"kind\": \"hidden\", \"role\": \"temp\", \"part_bytes\": 128, "
    "\"element_bytes\": 4},\n"
    "    {\"name\": \"t\", \"kind\": \"tokens\", \"role\": \"input\", \"part_bytes\": 32, "
    "\"element_bytes\": 4},\n"
    "    {\"name\": \"one\", \"kind\": \"numbers\", \"role\": \"state\", \"part_bytes\": 4, "
    "\"element_bytes\": 4},\n"
    "    {\"name\": \"v\", \"kind\": \"moments\", \"role\": \"state\", \"part_bytes\": 2048, "
    "\"element_bytes\": 4},\n"
    "    {\"name\": \"m\", \"kind\": \"master\", \"role\": \"state\", \"part_bytes\": 1024, "
    "\"element_bytes\": 4}\n"
    "  ],\n"
    "  \"streams\": [{\"name\": \"main\", \"kind\": \"compute\"}],\n"
    "  \"ranks\": [{\"ops\": [\n"
    "    {\"op\": \"compute\", \"stream\": \"main\", \"kernel\": \"dispatch\",\n"
    "     \"regions\": [\"x\", \"route\", \"x\"], \"rows\": 8, \"width\": 16, \"experts\": 2, "
    "\"choices\": 2},\n"
    "    {\"op\": \"compute\", \"stream\": \"main\", \"kernel\": \"expert_product_wgrad\",\n"
    "     \"regions\": [\"x\", \"x\", \"g\", \"route\"], \"m\": 16, \"n\": 16, \"k\": 8, "
    "\"experts\": 2, "
    "\"first\": true},\n"
    "    {\"op\": \"compute\", \"stream\": \"main\", \"kernel\": \"out_product\",\n"
    "     \"regions\": [\"o\", \"w\", \"x\"], \"m\": 8, \"n\": 32, \"k\": 16, \"batch\": 2, "
    "\"members\": 1},\n"
    "    {\"op\": \"compute\", \"stream\": \"main\", \"kernel\": \"accumulate\",\n"
    "     \"regions\": [\"g\", \"g\"], \"elements\": 256, \"traffic\": 12},\n"
    "    {\"op\": \"compute\", \"stream\": \"main\", \"kernel\": \"embed\",\n"
    "     \"regions\": [\"t\", \"w\", \"x\"], \"rows\": 8, \"width\": 32, \"vocabulary\": 24, "
    "\"first_row\": 16, \"count\": 8, \"tokens\": 64, \"epsilon\": 1e-05, \"adds\": true, "
    "\"traffic\": 4},\n"
    "    {\"op\": \"compute\", \"stream\": \"main\", \"kernel\": \"rotary_q\",\n"
    "     \"regions\": [\"x\", \"q\"], \"rows\": 4, \"batch\": 2, \"members\": 1, "
    "\"heads\": 4, \"groups\": 2, \"head_dim\": 4, \"start\": 12, \"stride\": 3, \"base\": "
    "10000, \"traffic\": 18},\n"
    "    {\"op\": \"compute\", \"stream\": \"main\", \"kernel\": \"adam\",\n"
    "     \"regions\": [\"g\", \"one\", \"one\", \"m\", \"v\", \"w\"], \"elements\": 256, "
    "\"learning_rate\": 0.0003, \"beta1\": 0.9, \"beta2\": 0.95, \"epsilon\": 1e-08, "
    "\"weight_decay\": 0.1, \"clip\": 1, \"traffic\": 28, \"first\": true}\n"
    "  ]}]\n"
    "}\n";

START_TEST(explicit_expresses_the_layer)
{
    g_autoptr(LhProgram) program = parse_ok(hand_layered);
    g_autofree char *first = to_json(program);
    g_autoptr(LhProgram) again = parse_ok(first);
    g_autofree char *second = to_json(again);
    const Ops all = collect(program, 0);
    const LhOp *ops = (const LhOp *)(void *)all.ops->data;

    ck_assert_str_eq(first, second);
    check_same_ops(program, again);
    ck_assert_uint_eq(all.ops->len, 7);
    ck_assert(ops[0].compute.args.experts.choices == 2 && ops[0].compute.args.experts.experts == 2);
    ck_assert(ops[1].compute.args.product.experts == 2 && ops[1].compute.args.first);
    ck_assert(ops[2].compute.args.product.layout.batch == 2 &&
              ops[2].compute.args.product.layout.members == 1);
    ck_assert_uint_eq(ops[3].compute.args.elements.traffic, 12);
    ck_assert(ops[4].compute.args.rows.first == 16 && ops[4].compute.args.rows.count == 8 &&
              ops[4].compute.args.rows.tokens == 64 && ops[4].compute.args.rows.adds &&
              ops[4].compute.args.rows.epsilon == 1e-5);
    ck_assert(
        ops[5].compute.args.to_heads.start == 12 && ops[5].compute.args.to_heads.stride == 3 &&
        ops[5].compute.args.to_heads.base == 10000 && ops[5].compute.args.to_heads.groups == 2);
    ck_assert(ops[6].compute.args.optimizer.beta2 == 0.95 &&
              ops[6].compute.args.optimizer.clip == 1 &&
              ops[6].compute.args.optimizer.traffic == 28);
    ops_free(&all);
}
END_TEST

/* Returns @program with one text replaced by another. */
static char *
replaced(const char *program, const char *from, const char *to)
{
    const char *at = strstr(program, from);
    GString *text = g_string_new_len(program, at - program);

    g_string_append(text, to);
    g_string_append(text, at + strlen(from));
    return g_string_free(text, FALSE);
}

/* Older files have options as fields of their own, which are kept among the generator's options. */
START_TEST(explicit_reads_older_options)
{
    g_autofree char *text =
        replaced(hand_made, "\"pass\": \"fwd\"",
                 "\"pass\": \"fwd\", \"overlap\": false, \"published_code\": true, "
                 "\"gradient_wire\": \"16bit\"");
    g_autoptr(LhProgram) program = parse_ok(text);
    g_autofree char *written = to_json(program);
    g_autoptr(LhProgram) again = parse_ok(written);

    ck_assert_uint_eq(g_strv_length(program->record), 3);
    ck_assert_str_eq(program->record[0], "no-overlap");
    ck_assert_str_eq(program->record[1], "published-code");
    ck_assert_str_eq(program->record[2], "gradient-wire 16bit");
    check_same_words(program, again);
    ck_assert_uint_eq(program->params.options_count, 0);
}
END_TEST

typedef struct {
    const char *from, *to, *words;
} BrokenCase;

static void
check_errors(const char *program, const BrokenCase *cases, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        g_autofree char *text = replaced(program, cases[i].from, cases[i].to);
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(parse(text, &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
        ck_assert_msg(g_str_has_prefix(error->message, "t.json:"), "%s", error->message);
        ck_assert_msg(strstr(error->message, cases[i].words) != NULL, "case %u: %s", i,
                      error->message);
    }
}

START_TEST(explicit_words_its_errors)
{
    static const BrokenCase cases[] = {
        { "schedule/1", "schedule/2",
          "t.json:2:13: error: unknown schema; expected \"longhaul.schedule/1\"" },
        { "\"seq_length\": 8", "\"seq_length\": 10", "nearest legal lengths: 8, 12" },
        { "\"ranks\": 2", "\"ranks\": 3", "t.json:3:" },
        { "\"kind\": \"q\"", "\"kind\": \"qq\"", "did you mean \"q\"" },
        { "\"name\": \"kv\"", "\"name\": \"q\"", "t.json:9:14: error: duplicate slot q" },
        { "\"name\": \"kv\"", "\"name\": \"k[v\"", "letters, digits" },
        { "\"name\": \"net\"", "\"name\": \"main\"", "duplicate stream main" },
        { "\"part_bytes\": 32", "\"part_bytes\": 0", "out of range" },
        { "[1, 2]", "[1, 2, 3]", "one number per rank is needed: 2; found 3" },
        { "\"slot\": \"all\"", "\"slot\": \"al\"", "unknown slot \"al\"; did you mean \"all\"?" },
        { "\"slot\": \"all\"", "\"stream\": \"net\"", "an op \"alloc\" takes no \"stream\"" },
        { "all-gather", "all-gathr", "did you mean \"all-gather\"" },
        { "\"base\": 0", "\"base\": 1", "must be distinct ranks below 2" },
        { "\"after\": [1]", "\"after\": [3]", "op 3 can only come after earlier ops" },
        { "\"after\": [1]", "\"after\": [0,0,0,0,0,0,0,0,0]", "9 elements" },
        { "attention_fwd", "attention_fwt", "did you mean \"attention_fwd\"?" },
        { "\"q[1]\", ", "", "attention_fwd takes 3 operands; found 2" },
        { "q[1]", "q[2]", "slot q has parts 0 to 1" },
        { "all[1..2]", "all[2..1]", "slot all has parts 0 to 3" },
        { "all[1..2]", "all[1..", "write a region as" },
        { "all:v", "all:q", "ends in :k, :v or nothing; found \":q\"" },
        { "all:v", "all:", "ends in :k, :v or nothing; found \":\"" },
        { "kv[0]:k", "kv:k[0]", "ends in :k, :v or nothing; found \":k[0]\"" },
        { "all:v", "acc:v", "slot acc is of kind acc; only slots of kind kv and dkv have halves" },
        { "\"shift\": -1", "\"shift\": 1", "out of range" },
        { "\"nq\": 2", "\"nq\": 2, \"pairs\": 4000000000000000000", "63 bits" },
        { "\"parts\": 4, \"part_bytes\": 32", "\"parts\": 1048576, \"part_bytes\": 4398046511104",
          "this op brings the rank to more than 2^63 bytes to send" },
        { "\"main\", \"step\"", "\"mian\", \"step\"", "did you mean \"main\"?" },
        { "\"to\": 1", "\"to\": 0", "another rank below 2; found 0" },
        { "\"to\": 1", "\"to\": 2", "another rank below 2; found 2" },
        { "\"to\": 1", "\"to\": 1, \"from\": 1", "one of \"to\" and \"from\"" },
        { "\"tag\": 7", "\"tag\": 70000", "out of range" },
        { "\"op\": \"sync\"", "\"op\": \"sync\", \"nq\": 1", "takes no kernel arguments" },
        { "    {\"ops\": []}\n", "    {\"ops\": []}, {\"ops\": []}\n",
          "there are 2 ranks, but programs for 3" },
        { "\"streams\": [", "\"stream\": [], \"streams\": [", "unknown field \"stream\"" },
    };

    check_errors(hand_made, cases, G_N_ELEMENTS(cases));
}
END_TEST

START_TEST(explicit_words_errors_of_cuts)
{
    static const BrokenCase cases[] = {
        { "\"placement_split\": 2", "\"placement_split\": 3",
          "placement_split needs placement zigzag and must divide the 2 ranks" },
        { "zigzag", "striped", "placement_split needs placement zigzag" },
        { "\"head_slices\": 4", "\"head_slices\": 3", "3 slices do not divide 4 heads" },
        { "\"head_slices\": 4", "\"head_slices\": 1", "and the 1 slices of heads" },
        { "\"kv_slices\": 2", "\"kv_slices\": 4", "4 slices do not divide 2 groups" },
        { "\"saved_group\": 2", "\"saved_group\": 3", "saved_group must divide the 2 ranks" },
        { "\"saved_group\": 2, ", "", "saved_group and slots with by_heads need each other" },
        { "\"q\", \"lse\"]", "\"o\", \"lse\"]",
          "saved_group and slots with by_heads need each other" },
        { "\"lse\"]", "\"lsf\"]", "unknown tensor \"lsf\"; did you mean \"lse\"?" },
        { "[5, 8]", "[5, 5, 8]", "document 1 is empty" },
        { "[5, 8]", "[5, 9]", "the documents have 9 tokens, the sequence has 8" },
        { "[5, 8]", "[]", "0 elements" },
        { "\"causal\": true", "\"causal\": false", "a sliding window needs a causal mask" },
        { "\"window\": 3", "\"linear\": true", "linear attention supports only the causal mask" },
        { "\"window\": 3", "\"decay\": 2", "out of range" },
        { "\"positions\"", "\"full\"", "are allowed only with the mask \"positions\"" },
        { "\"pairs\": 6, ", "", "requires pairs" },
        { "[\"q[1]\", \"kv\"], \"wire", "[\"q[1]\"], \"wire",
          "2 regions are sent, but 1 received" },
        { "[\"q\", \"kv[1]\"]", "[\"q\", \"kv[9]\"]", "slot kv has parts 0 to 3" },
        { "[\"q\", \"kv[1]\"]", "[]", "0 elements" },
        { "[\"q\", \"kv[1]\"]", "{}", "a string or an array of strings" },
        { "\"q_start\": 6", "\"q_start\": -1", "out of range" },
    };

    check_errors(hand_cut, cases, G_N_ELEMENTS(cases));
}
END_TEST

START_TEST(explicit_words_errors_of_the_layer)
{
    static const BrokenCase cases[] = {
        { "expert_product_wgrad\",\n     \"regions\": [\"x\", \"x\", \"g\", \"route\"]",
          "product_wgrad\", \"regions\": [\"x\", \"x\", \"g\"]",
          "product_wgrad has one matrix; expert_product has several" },
        { "\"experts\": 2", "\"experts\": 0", "out of range" },
        { "\"experts\": 2, \"first\"", "\"rows\": 2, \"first\"",
          "expert_product_wgrad takes no rows" },
        { ", \"choices\": 2", "", "dispatch needs rows, width, experts and choices" },
        { ", \"width\": 32", "", "embed needs rows and width" },
        { "\"width\": 32", "\"width\": 2147483648, \"elements\": 1", "embed takes no elements" },
        { "\"rows\": 8, \"width\": 32", "\"rows\": 2147483648, \"width\": 2147483648",
          "an operand of a call may have at most 2^48 elements" },
        { "\"rows\": 4, ", "", "rotary_q needs rows, batch, members, heads, groups and head_dim" },
        { "\"groups\": 2, \"head_dim\": 4, \"start\"", "\"groups\": 0, \"head_dim\": 4, \"start\"",
          "rotary_q needs rows, batch, members" },
        { "\"heads\": 4, \"groups\": 2, \"head_dim\": 4, \"start\"",
          "\"heads\": 4294967295, \"groups\": 4294967295, \"head_dim\": 4294967295, \"start\"",
          "an operand of a call may have at most 2^48 elements" },
        { "\"traffic\": 18", "\"traffic\": 18, \"nq\": 1", "no attention arguments" },
        { "\"traffic\": 28", "\"traffic\": 1025", "out of range" },
        { "\"beta2\": 0.95", "\"beta2\": 1.5", "out of range" },
        { "\"clip\": 1", "\"base\": 1", "adam takes no base" },
        { ", \"elements\": 256, \"traffic\"", ", \"traffic\"", "accumulate needs elements" },
    };

    check_errors(hand_layered, cases, G_N_ELEMENTS(cases));
}
END_TEST

START_TEST(explicit_words_errors_of_training)
{
    static const BrokenCase cases[] = {
        { "\"saved_group\": 2,", "", "saved_group and slots with by_heads need each other" },
        { ", \"by_heads\": true", "", "saved_group and slots with by_heads need each other" },
        { "\"dtype\": \"fp16\"", "\"dtype\": \"fp32\"",
          "t.json:8:90: error: elements of 2 bytes; the activations' type has 2, fp32 has 4" },
        { "\"dtype\": \"fp16\"", "\"dtype\": \"fp17\"", "did you mean \"fp16\"" },
        { "\"element_bytes\": 4", "\"element_bytes\": 3", "elements of 3 bytes" },
        { "\"head_dim\": 8}", "\"head_dim\": 0}", "out of range" },
        { "\"y[1..2]\"", "\"y[1..3]\"", "slot y has parts 0 to 2" },
        { "\"layer\": 65535", "\"layer\": 65536", "out of range" },
        { "\"micro_batch\": 65535", "\"micro_batch\": 65536", "out of range" },
        { "\"module\": 255", "\"module\": 256", "out of range" },
        { "\"communicator\": 255", "\"communicator\": 256", "out of range" },
        { "\"module\": 1", "\"communicator\": 1", "an op \"compute\" takes no \"communicator\"" },
        { "\"recompute\"", "\"recomputed\"", "did you mean \"recompute\"" },
        { ", \"k\": 17", "", "product needs m, n and k" },
        { "\"k\": 17", "\"k\": 17, \"nq\": 4", "product takes no attention arguments such as nq" },
        { "\"k\": 17", "\"k\": 17, \"elements\": 4", "product takes no elements" },
        { "\"m\": 4, \"n\": 16", "\"m\": 2147483648, \"n\": 2147483648",
          "a call may have at most 2^60 flops" },
        { ", \"elements\": 64", "", "residual needs elements" },
        { "\"elements\": 64", "\"elements\": 64, \"m\": 1", "residual takes no m" },
        { "\"stream\": \"net\", \"communicator\": 255,", "\"stream\": \"net\", \"elements\": 255,",
          "takes no kernel arguments" },
        { "[1, 2, 1, 0]", "[1, 2, 1]",
          "4 counts are needed, two per member of the group and tensor; found 3" },
        { "[1, 2, 1, 0]", "[1, 4294967296, 1, 0]",
          "a count exceeds the largest number of parts of a slot" },
        { "all-to-all", "all-gather", "only an all-to-all has counts" },
        { "\"to\": 1", "\"counts\": [1], \"to\": 1", "unknown field \"counts\"" },
        { "\"communicator\": 255,", "\"counts\": [1, 2],",
          "an op \"exchange\" takes no \"counts\"" },
    };

    check_errors(hand_trained, cases, G_N_ELEMENTS(cases));
}
END_TEST

/* Nothing read may crash its users: bytes are changed at random, and whatever parses is
 * verified. */
START_TEST(explicit_survives_changed_bytes)
{
    static const char *const texts[] = { hand_made, hand_cut, hand_trained };
    const uint64_t seeds = 30000 / MIN(test_every(), 4);
    unsigned parsed[G_N_ELEMENTS(texts)] = { 0 };

    for (uint64_t seed = 0; seed < seeds; seed++) {
        const uint64_t which = seed / 3 % G_N_ELEMENTS(texts);
        g_autofree char *text = g_strdup(texts[which]);
        const gsize length = strlen(text);
        g_autoptr(LhProgram) program = NULL;

        for (uint64_t k = 0; k <= seed % 3; k++) {
            const gsize at = lh_rng_bits(seed, k, 0) % length;

            text[at] = "0123456789\"[]{},:.-eqkvacl"[lh_rng_bits(seed, k, 1) % 26];
        }
        program = parse(text, NULL);
        if (program == NULL)
            continue;
        parsed[which]++;
        lh_verdict_free(lh_verify(program));
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++)
        ck_assert_uint_gt(parsed[i], seeds / 600);
}
END_TEST

START_TEST(explicit_holds_a_program_to_its_word)
{
    const LhProgramParams params = make_params(3, LH_PASS_FWD);
    g_autoptr(LhProgram) program = lh_program_new(lh_schedule_find("ring", NULL), &params, NULL);
    g_autofree char *text = to_json(program);
    g_autoptr(LhProgram) again = parse_ok(text);
    g_autoptr(LhVerdict) verdict = NULL;

    for (uint32_t rank = 0; rank < 3; rank++)
        ck_assert_uint_eq(again->claimed[LH_CLAIM_BYTES_SENT][rank],
                          program->closed->bytes_sent(&params, rank));
    again->claimed[LH_CLAIM_BYTES_SENT][1]++;
    verdict = lh_verify(again);
    ck_assert_uint_eq(verdict->findings_total, 1);
    ck_assert_int_eq(g_array_index(verdict->findings, LhFinding, 0).kind, LH_FINDING_CLOSED_FORM);
    ck_assert_uint_eq(g_array_index(verdict->findings, LhFinding, 0).rank, 1);
}
END_TEST

START_TEST(explicit_has_a_limit)
{
    LhProgramParams params = make_params(1024, LH_PASS_BOTH);
    g_autoptr(LhProgram) program = lh_program_new(lh_schedule_find("ring", NULL), &params, NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    ck_assert(!lh_program_write(program, text, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO));
    ck_assert_uint_eq(text->len, 0);
}
END_TEST

LH_TEST_MAIN("explicit", explicit_round_trips, explicit_round_trips_masks,
             explicit_expresses_every_op, explicit_expresses_cuts_and_positions,
             explicit_expresses_training, explicit_expresses_the_layer,
             explicit_words_errors_of_the_layer, explicit_reads_older_options,
             explicit_words_its_errors, explicit_words_errors_of_cuts,
             explicit_words_errors_of_training, explicit_survives_changed_bytes,
             explicit_holds_a_program_to_its_word, explicit_has_a_limit)
