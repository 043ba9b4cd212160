/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines whose lists repeat micro-batches: the program is, op by op, the one of which every
 * micro-batch was recorded.
 */
#include "kernels/kernel.h"
#include "program/cursor.h"
#include "random_pipeline.h"
#include "share.h"
#include "step/call_ops.h"
#include "step/memory/peak_memory.h"
#include "step/step_private.h"

/* ---- ops ---- */

static void
check_region(const char *members, LhRegion a, LhRegion b)
{
    ck_assert_msg(a.slot == b.slot && a.part == b.part && a.count == b.count && a.half == b.half,
                  "%s: a region is %u[%u, +%u), and not %u[%u, +%u)", members, a.slot, a.part,
                  a.count, b.slot, b.part, b.count);
}

static void
check_compute(const char *members, const LhOp *a, const LhOp *b)
{
    const LhArgsKind kind = lh_kernels[a->compute.kernel]->args;

    ck_assert_int_eq(a->compute.kernel, b->compute.kernel);
    ck_assert_uint_eq(a->compute.regions_count, b->compute.regions_count);
    for (uint32_t i = 0; i < a->compute.regions_count; i++)
        check_region(members, a->compute.regions[i], b->compute.regions[i]);
    /* Those of a module name masks of its own program, which both embed. */
    ck_assert_msg(a->module > 0 || lh_kernel_args_mix(0, kind, &a->compute.args) ==
                                       lh_kernel_args_mix(0, kind, &b->compute.args),
                  "%s: arguments of %s, op %u of layer %u, micro-batch %u; first %d, and not %d",
                  members, lh_kernels[a->compute.kernel]->name, a->id, a->layer, a->micro_batch,
                  a->compute.args.first, b->compute.args.first);
}

static void
check_exchange(const char *members, const LhOp *a, const LhPart *of_a, const LhOp *b,
               const LhPart *of_b)
{
    ck_assert_uint_eq(a->exchange.parts_count, b->exchange.parts_count);
    for (uint32_t i = 0; i < a->exchange.parts_count; i++) {
        const LhPart *x = &of_a[a->exchange.parts_first + i];
        const LhPart *y = &of_b[b->exchange.parts_first + i];

        ck_assert(x->peer == y->peer && x->tag == y->tag && x->send == y->send &&
                  x->wire_bytes == y->wire_bytes && x->regions_count == y->regions_count);
        for (uint32_t k = 0; k < x->regions_count; k++)
            check_region(members, x->regions[k], y->regions[k]);
    }
}

static void
check_collective(const char *members, const LhOp *a, const LhOp *b)
{
    const LhGroup *x = &a->collective.group, *y = &b->collective.group;

    ck_assert_int_eq(a->collective.kind, b->collective.kind);
    ck_assert(x->base == y->base && x->count == y->count && x->stride == y->stride &&
              x->outer_count == y->outer_count && x->outer_stride == y->outer_stride);
    ck_assert_uint_eq(a->collective.wire_bytes, b->collective.wire_bytes);
    ck_assert_uint_eq(a->collective.tensors_count, b->collective.tensors_count);
    for (uint32_t i = 0; i < a->collective.tensors_count; i++) {
        check_region(members, a->collective.send[i], b->collective.send[i]);
        check_region(members, a->collective.receive[i], b->collective.receive[i]);
    }
}

static void
check_op(const char *members, const LhOpBuffer *in_a, const LhOpBuffer *in_b, uint32_t i)
{
    const LhOp *a = &in_a->ops[i], *b = &in_b->ops[i];

    ck_assert_msg(a->id == b->id && a->kind == b->kind && a->stream == b->stream &&
                      a->phase == b->phase && a->step == b->step && a->layer == b->layer &&
                      a->micro_batch == b->micro_batch && a->module == b->module &&
                      a->communicator == b->communicator && a->after_count == b->after_count,
                  "%s: op %u of layer %u, micro-batch %u, and not %u of %u, %u", members, a->id,
                  a->layer, a->micro_batch, b->id, b->layer, b->micro_batch);
    for (uint32_t k = 0; k < a->after_count; k++)
        ck_assert_msg(a->after[k] == b->after[k], "%s: op %u waits for %u, and not %u", members,
                      a->id, a->after[k], b->after[k]);
    if (a->kind == LH_OP_COMPUTE)
        check_compute(members, a, b);
    else if (a->kind == LH_OP_EXCHANGE)
        check_exchange(members, a, in_a->parts, b, in_b->parts);
    else if (a->kind == LH_OP_COLLECTIVE)
        check_collective(members, a, b);
    else if (a->kind != LH_OP_SYNC)
        check_region(members, a->memory.region, b->memory.region);
}

static void
check_ops_of(const char *members, const LhProgram *few, const LhProgram *all, uint32_t rank)
{
    LhOpBuffer in_few = { 0 }, in_all = { 0 };
    LhCursor of_few, of_all;
    bool more;

    lh_cursor_init(&of_few, few, rank);
    lh_cursor_init(&of_all, all, rank);
    do {
        more = lh_cursor_step(&of_all, &in_all);
        ck_assert_msg(lh_cursor_step(&of_few, &in_few) == more, "%s: steps of rank %u", members,
                      rank);
        ck_assert_uint_eq(in_few.ops_count, in_all.ops_count);
        for (uint32_t i = 0; i < in_all.ops_count; i++)
            check_op(members, &in_few, &in_all, i);
    } while (more);
    lh_op_buffer_clear(&in_few);
    lh_op_buffer_clear(&in_all);
}

/* ---- programs ---- */

/* What lh_step_visit_forms() visits, in any order. */
typedef struct {
    uint64_t ops, places;
} Visited;

static void
visit(void *data, uint32_t rank, const LhOpBuffer *buffer)
{
    Visited *v = data;

    for (uint32_t i = 0; i < buffer->ops_count; i++) {
        const LhOp *op = &buffer->ops[i];

        v->ops++;
        v->places += rank * op->kind;
        for (uint32_t k = 0; op->kind == LH_OP_COMPUTE && k < op->compute.regions_count; k++)
            v->places += op->compute.regions[k].count;
    }
}

static void
check_programs(const char *members, const LhProgram *few, const LhProgram *all)
{
    const uint32_t ranks = lh_program_ranks(all);
    uint64_t of_few[LH_CATEGORIES], of_all[LH_CATEGORIES];
    Visited by_few = { 0 }, by_all = { 0 };

    ck_assert_uint_eq(few->slots_count, all->slots_count);
    for (uint32_t i = 0; i < all->slots_count; i++)
        ck_assert_msg(strcmp(few->slots[i].name, all->slots[i].name) == 0 &&
                          few->slots[i].parts == all->slots[i].parts,
                      "%s: slot %s has %u parts, and not %u", members, all->slots[i].name,
                      few->slots[i].parts, all->slots[i].parts);
    ck_assert_uint_eq(lh_step_peak(few, of_few), lh_step_peak(all, of_all));
    ck_assert_mem_eq(of_few, of_all, sizeof(of_all));
    lh_step_visit_forms(few, visit, &by_few);
    lh_step_visit_forms(all, visit, &by_all);
    ck_assert_uint_eq(by_few.ops, by_all.ops);
    ck_assert_uint_eq(by_few.places, by_all.places);
    for (uint32_t rank = 0; rank < ranks; rank++)
        check_ops_of(members, few, all, rank);
}

/* Calls recorded for all stages. */
static uint64_t
recorded_calls(const LhProgram *program)
{
    uint64_t calls = 0;

    for (uint32_t i = 0; i < lh_step_stages(&program->step->params); i++)
        calls += program->step->stages[i].last.calls->len;
    return calls;
}

/* Returns the share of calls that were not recorded; -1: the step is refused. */
static double
check(const char *members)
{
    LhScenario *scenario;
    g_autoptr(LhSetup) setup = setup_of(members, &scenario);
    double share = -1;

    if (setup != NULL) {
        LhModel model;
        LhStepParams p =
            lh_setup_step_params(setup, g_ptr_array_index(setup->schedules, 0), &model);
        g_autoptr(LhProgram) few = lh_step_new(&p, NULL);
        g_autoptr(LhProgram) all = NULL;

        p.unrepeated = true;
        all = lh_step_new(&p, NULL);
        ck_assert_msg((few == NULL) == (all == NULL), "%s", members);
        if (all != NULL) {
            check_programs(members, few, all);
            share = 1 - (double)recorded_calls(few) / (double)recorded_calls(all);
        }
    }
    lh_setup_free(g_steal_pointer(&setup));
    lh_scenario_free(scenario);
    return share;
}

/* LONGHAUL_TEST_PIPELINES: the number of cases. */
START_TEST(repeated_micro_batches_are_recorded_ones)
{
    const char *wanted = g_getenv("LONGHAUL_TEST_PIPELINES");
    const uint64_t cases = wanted != NULL ? g_ascii_strtoull(wanted, NULL, 10) : test_share(200);
    uint64_t ran = 0, shorter = 0;

    for (uint64_t seed = 1; seed <= cases; seed++) {
        g_autofree char *members = random_pipeline(seed);
        const double share = check(members);

        ran += share >= 0;
        shorter += share > 0;
    }
    if (cases >= 40) {
        ck_assert_uint_gt(ran, cases / 2);
        ck_assert_uint_gt(shorter, ran / 3);
    }
}
END_TEST

/* A list of 1F1B, or of the forward pass alone, does not grow with the number of micro-batches. */
START_TEST(lists_are_as_long_for_any_number)
{
    uint64_t calls[4];

    for (uint32_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        g_autofree char *members = g_strdup_printf(
            "\"model\": \"gpt3-125m\", \"cluster\": \"hgx-h100\", \"ranks\": 4, "
            "\"seq_length\": \"4K\", \"pipeline_model_parallel_size\": 4, "
            "\"context_parallel_size\": 1, \"num_micro_batches\": %u, \"schedule\": [\"ring\"], "
            "\"pass\": \"%s\"",
            i % 2 == 0 ? 48 : 4800, i < 2 ? "both" : "fwd");
        LhScenario *scenario;
        g_autoptr(LhSetup) setup = setup_of(members, &scenario);
        g_autoptr(LhProgram) program =
            lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), NULL);

        calls[i] = recorded_calls(program);
        lh_program_free(g_steal_pointer(&program));
        lh_setup_free(g_steal_pointer(&setup));
        lh_scenario_free(scenario);
    }
    ck_assert_uint_eq(calls[0], calls[1]);
    ck_assert_uint_eq(calls[2], calls[3]);
}
END_TEST

LH_TEST_MAIN("repetition", repeated_micro_batches_are_recorded_ones,
             lists_are_as_long_for_any_number)
