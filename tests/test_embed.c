/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs embedded in programs: the forward and backward passes of every schedule, generated
 * separately and concatenated, are equivalent to both passes for verifier, simulator and runtime;
 * and a program of two ranks runs on every second rank of another one.
 */
#include "base/error.h"
#include "built.h"
#include "execute/execute.h"
#include "fitting.h"
#include "program/subprogram.h"
#include "running.h"
#include "verify/verify.h"

#include <string.h>

#define PASSES 2

/* ---- forward, then backward ---- */

/* The plan of the containing program. */
typedef struct {
    LhProgram *passes[PASSES]; /* owned */
    LhSubprogram embeddings[PASSES];
    uint16_t *slots[PASSES]; /* owned */
} Both;

static void
both_free(gpointer data)
{
    Both *both = data;

    for (unsigned i = 0; i < PASSES; i++) {
        lh_program_free(both->passes[i]);
        g_free(both->slots[i]);
    }
    g_free(both);
}

static uint32_t
both_steps(const LhProgram *program, uint32_t rank)
{
    const Both *both = program->plan;

    return 1 + lh_subprogram_steps(&both->embeddings[0], rank) +
           lh_subprogram_steps(&both->embeddings[1], rank);
}

static void
both_emit(LhEmitter *e, uint32_t step)
{
    const Both *both = e->program->plan;
    const uint32_t forward = lh_subprogram_steps(&both->embeddings[0], e->rank);

    e->layer = 3;
    e->micro_batch = 1;
    if (step == 0)
        lh_subprogram_begin(e, &both->embeddings[0], e->rank, LH_OP_NONE);
    if (step == forward) { /* the forward pass saved these */
        lh_emit_sync(e);
        return;
    }
    if (step == forward + 1)
        lh_subprogram_begin(e, &both->embeddings[1], e->rank, LH_OP_NONE);
    lh_subprogram_step(e, &both->embeddings[step > forward]);
}

static const LhGenerator both_generator = { .steps = both_steps,
                                            .emit = both_emit,
                                            .embeds = true };

/* Index of the persistent slot @name, or -1. */
static int
find_slot(const LhProgram *program, const char *name)
{
    for (uint32_t i = 0; i < program->slots_count; i++) {
        if (program->slots[i].role != LH_SLOT_TEMP && strcmp(program->slots[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* Whether a slot is the gradient of a forward result, an input of the backward pass from
 * outside. */
static bool
is_gradient(const LhSlot *slot)
{
    return slot->kind == LH_TENSOR_DO || strcmp(slot->name, "dy") == 0;
}

/* Merges slots of both passes: what forward saves is backward's input. */
static void
add_slots(LhProgram *whole, Both *both, unsigned pass)
{
    const LhProgram *part = both->passes[pass];

    both->slots[pass] = g_new(uint16_t, part->slots_count);
    for (uint32_t i = 0; i < part->slots_count; i++) {
        const LhSlot *slot = &part->slots[i];
        const int known = slot->role == LH_SLOT_TEMP ? -1 : find_slot(whole, slot->name);

        if (known >= 0) {
            const LhSlot *other = &whole->slots[known];

            ck_assert_msg(other->kind == slot->kind && other->parts == slot->parts &&
                              other->part_bytes == slot->part_bytes &&
                              other->dtype == slot->dtype && other->by_heads == slot->by_heads,
                          "%s: %s differs between the passes", part->name, slot->name);
            both->slots[pass][i] = (uint16_t)known;
            continue;
        }
        ck_assert_msg(pass == 0 || slot->role != LH_SLOT_INPUT || is_gradient(slot),
                      "%s: forward does not save %s", part->name, slot->name);
        both->slots[pass][i] =
            lh_program_add_slot(whole, (LhSlotParams){ .name = slot->name,
                                                       .kind = slot->kind,
                                                       .role = slot->role,
                                                       .dtype = slot->dtype,
                                                       .head_dim = slot->head_dim,
                                                       .by_heads = slot->by_heads,
                                                       .parts = slot->parts,
                                                       .part_bytes = slot->part_bytes });
    }
}

static LhProgram *
make_pass(const LhSchedule *schedule, const LhProgramParams *wanted, LhPass pass)
{
    LhProgramParams p = *wanted;

    p.pass = pass;
    p.keep_saved = pass == LH_PASS_FWD;
    return fitting_program(schedule, &p);
}

static LhProgram *
make_both(const LhSchedule *schedule, const LhProgramParams *wanted)
{
    Both *both = g_new0(Both, 1);
    LhProgramParams p;
    LhProgram *whole;

    both->passes[0] = make_pass(schedule, wanted, LH_PASS_FWD);
    both->passes[1] = make_pass(schedule, wanted, LH_PASS_BWD);
    ck_assert_ptr_nonnull(both->passes[0]);
    p = both->passes[0]->params;
    p.pass = LH_PASS_BOTH;
    p.keep_saved = false;
    whole = lh_program_create(schedule->name, &both_generator, &p, both->passes[0]->placement.kind);
    whole->placement = both->passes[0]->placement;
    whole->head_slices = both->passes[0]->head_slices;
    whole->kv_slices = both->passes[0]->kv_slices;
    whole->saved_group = both->passes[0]->saved_group;
    whole->plan = both;
    whole->plan_free = both_free;
    for (unsigned pass = 0; pass < PASSES; pass++) {
        const LhProgram *part = both->passes[pass];
        LhSubprogram *embedding = &both->embeddings[pass];

        add_slots(whole, both, pass);
        *embedding = (LhSubprogram){ .program = part,
                                     .slots = both->slots[pass],
                                     .map = { .base = 0, .stride = 1 },
                                     .communicator = (uint8_t)(16 * pass),
                                     .module = (uint8_t)(pass + 1) };
        for (uint32_t s = 0; s < part->streams_count; s++) {
            if (s == whole->streams_count)
                lh_program_add_stream(whole, part->streams[s].name, part->streams[s].kind);
            embedding->streams[s] = (uint8_t)s;
        }
    }
    return whole;
}

/* Asserts that every op is labelled with its pass and its layer. */
static void
check_labels(const LhProgram *program)
{
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    lh_cursor_init(&cursor, program, 0);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];

            if (op->module == 0)
                continue;
            ck_assert_uint_eq(op->layer, 3);
            ck_assert_uint_eq(op->micro_batch, 1);
            ck_assert_uint_eq(op->module, op->phase == LH_PHASE_BACKWARD ? 2 : 1);
        }
    }
    lh_op_buffer_clear(&buffer);
}

START_TEST(forward_then_backward_is_both)
{
    const LhSchedule *schedule = lh_schedules[_i];
    const Case c = small_case(schedule, 4);
    g_autoptr(LhProgram) program = make_both(schedule, &c.wanted);
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = NULL;

    ck_assert_msg(
        verdict->findings->len == 0, "%s: %s", schedule->name,
        verdict->findings->len == 0 ? "" : g_array_index(verdict->findings, LhFinding, 0).message);
    check_labels(program);
    executed = run_program(&c, program, &error);
    ck_assert_msg(executed != NULL, "%s: %s", schedule->name, error != NULL ? error->message : "");
    ck_assert_msg(executed->errors.ok, "%s is wrong", schedule->name);
    ck_assert_msg(executed->counts_ok, "%s: counts differ", schedule->name);
}
END_TEST

/* A forward pass that saves tensors for backward sends and computes the same as one that does not,
 * and its peak memory is its closed form. */
START_TEST(what_is_kept_costs_memory_only)
{
    const LhSchedule *schedule = lh_schedules[_i];

    for (uint32_t ranks = 1; ranks <= 6; ranks++) {
        Case c = small_case(schedule, ranks);
        g_autoptr(LhProgram) plain = NULL;
        g_autoptr(LhProgram) keeping = NULL;
        g_autoptr(LhVerdict) wanted = NULL;
        g_autoptr(LhVerdict) verdict = NULL;

        c.wanted.pass = LH_PASS_FWD;
        c.wanted.attention.groups = ranks % 2 == 0 ? 4 : 8;
        plain = fitting_program(schedule, &c.wanted);
        keeping = make_pass(schedule, &c.wanted, LH_PASS_FWD);
        if (plain == NULL)
            continue;
        wanted = lh_verify(plain);
        verdict = lh_verify(keeping);
        ck_assert_msg(verdict->findings->len == 0, "%s, P %u: %s", schedule->name, ranks,
                      verdict->findings->len == 0
                          ? ""
                          : g_array_index(verdict->findings, LhFinding, 0).message);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            ck_assert_uint_eq(verdict->bytes_sent[rank], wanted->bytes_sent[rank]);
            ck_assert_uint_eq(verdict->flops[rank], wanted->flops[rank]);
            ck_assert_uint_ge(verdict->peak_bytes[rank], wanted->peak_bytes[rank]);
        }
    }
}
END_TEST

/* ---- a program of two ranks on every second rank of another one ---- */

enum { X, Y, GATHERED, OWN_SLOTS };

static uint32_t
one_step(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return 1;
}

/* The two ranks exchange x, then all ranks gather what they received, in pieces of unequal size. */
static void
pair_emit(LhEmitter *e, uint32_t step)
{
    const LhGroup both = { 0, 1, 2, 0, 1 };
    const uint32_t sent[] = { 1, 1 }, received[] = { 1, 1 };
    const LhKernelArgs args = { .elements.count = 16 };
    uint32_t id;

    (void)step;
    lh_emit_alloc(e, GATHERED);
    lh_emit_exchange(e, 1);
    lh_emit_part(e, true, 1 - e->rank, 0, 64);
    lh_emit_region(e, X, 0, 1);
    lh_emit_part(e, false, 1 - e->rank, 0, 64);
    lh_emit_region(e, GATHERED, 0, 1);
    lh_emit_collective(e, 1, LH_COLL_ALL_GATHER, both);
    lh_emit_tensor(e, (LhRegion){ X, 0, 1 }, (LhRegion){ GATHERED, 1, 2 });
    id = lh_emit_collective(e, 1, LH_COLL_ALL_TO_ALL, both);
    lh_emit_tensor_uneven(e, (LhRegion){ GATHERED, 1, 2 }, (LhRegion){ GATHERED, 3, 2 }, sent,
                          received);
    lh_emit_compute(e, 0, LH_KERNEL_ID_residual, &args);
    lh_emit_operand(e, GATHERED, 1 + e->rank, 1);
    lh_emit_operand(e, X, 0, 1);
    lh_emit_operand(e, Y, 0, 1);
    lh_emit_after(e, id);
    lh_emit_free(e, GATHERED);
}

static const LhGenerator pair_generator = { .steps = one_step, .emit = pair_emit };

static void
declare_pair(LhProgram *program)
{
    const LhSlotParams slots[OWN_SLOTS] = {
        [X] = { "x", LH_TENSOR_HIDDEN, LH_SLOT_INPUT, LH_DTYPE_FP32, .parts = 1, .part_bytes = 64 },
        [Y] = { "y", LH_TENSOR_HIDDEN, LH_SLOT_OUTPUT, LH_DTYPE_FP32, .parts = 1,
                .part_bytes = 64 },
        [GATHERED] = { "gathered", LH_TENSOR_HIDDEN, LH_SLOT_TEMP, LH_DTYPE_FP32, .parts = 5,
                       .part_bytes = 64 },
    };

    for (unsigned i = 0; i < OWN_SLOTS; i++)
        lh_program_add_slot(program, slots[i]);
    lh_program_add_stream(program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(program, "comm", LH_STREAM_COMM);
}

static void
strided_emit(LhEmitter *e, uint32_t step)
{
    static const uint16_t slots[] = { X, Y, GATHERED };
    const LhSubprogram embedding = { .program = e->program->plan,
                                     .slots = slots,
                                     .streams = { 0, 1 },
                                     .map = { .base = e->rank % 2, .stride = 2 },
                                     .module = 1 };

    (void)step;
    lh_subprogram_begin(e, &embedding, e->rank / 2, LH_OP_NONE);
    lh_subprogram_step(e, &embedding);
}

static const LhGenerator strided_generator = { .steps = one_step,
                                               .emit = strided_emit,
                                               .embeds = true };

static void
program_free(gpointer program)
{
    lh_program_free(program);
}

START_TEST(ranks_are_mapped)
{
    const LhProgramParams two = built_params(2), four = built_params(4);
    const Case c = { .repeat = 2 };
    LhProgram *pair = lh_program_create("pair", &pair_generator, &two, LH_PLACE_CONTIGUOUS);
    g_autoptr(LhProgram) whole =
        lh_program_create("two pairs", &strided_generator, &four, LH_PLACE_CONTIGUOUS);
    g_autoptr(LhVerdict) alone = NULL;
    g_autoptr(LhVerdict) verdict = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = NULL;

    declare_pair(pair);
    declare_pair(whole);
    whole->plan = pair;
    whole->plan_free = program_free;
    alone = lh_verify(pair);
    verdict = lh_verify(whole);
    ck_assert_uint_eq(alone->findings->len, 0);
    ck_assert_msg(
        verdict->findings->len == 0, "%s",
        verdict->findings->len == 0 ? "" : g_array_index(verdict->findings, LhFinding, 0).message);
    ck_assert_uint_eq(verdict->messages, 2 * alone->messages);
    for (uint32_t rank = 0; rank < 4; rank++)
        ck_assert_uint_eq(verdict->bytes_sent[rank], alone->bytes_sent[rank / 2]);
    executed = run_program(&c, whole, &error);
    ck_assert_msg(executed != NULL, "%s", error != NULL ? error->message : "");
    ck_assert(executed->counts_ok && executed->same_bits);
    ck_assert_uint_gt(executed->bytes_sent.counted, 0);
}
END_TEST

int
main(void)
{
    const TTest *const loops[] = { forward_then_backward_is_both, what_is_kept_costs_memory_only };
    const TTest *const tests[] = { ranks_are_mapped };

    return run_suite("embed", loops, G_N_ELEMENTS(loops), tests, G_N_ELEMENTS(tests));
}
