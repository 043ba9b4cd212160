/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof that holds one step of every rank at a time says the same as the one that holds the
 * whole program: it proves what that proves, with the same counts, and nothing else. Programs of
 * every schedule, as they are and with one op of one rank changed at random.
 */
#include "fitting.h"
#include "recording.h"
#include "run_tests.h"
#include "share.h"
#include "verify/verify.h"
#include "verifying.h"

#define SEED 44
#define CHANGES_PER_SCHEDULE 120
#define STEP_OPS_MAX 9

static void
compare_arrays(const uint64_t *a, const uint64_t *b, uint32_t count, const char *what)
{
    for (uint32_t i = 0; i < count; i++)
        ck_assert_msg(a[i] == b[i], "%s: rank %u", what, i);
}

static void
compare_findings(const LhVerdict *a, const LhVerdict *b, const char *what)
{
    ck_assert_msg(a->findings_total == b->findings_total && a->findings->len == b->findings->len,
                  "%s: %" G_GUINT64_FORMAT " findings (%s), whole %" G_GUINT64_FORMAT " (%s)", what,
                  a->findings_total, first_message(a), b->findings_total, first_message(b));
    for (guint i = 0; i < a->findings->len; i++)
        ck_assert_str_eq(g_array_index(a->findings, LhFinding, i).message,
                         g_array_index(b->findings, LhFinding, i).message);
}

/* Verifies @program in both ways. Returns whether it is proven. */
static bool
compare(const LhProgram *program, const char *what, bool *in_order)
{
    g_autoptr(LhVerdict) a = lh_verify(program);
    g_autoptr(LhVerdict) b = lh_verify_whole(program);

    ck_assert(!b->in_order);
    compare_findings(a, b, what);
    ck_assert_msg(a->one_queue == b->one_queue && g_strcmp0(a->queue_cycle, b->queue_cycle) == 0,
                  "%s: one queue", what);
    ck_assert_msg(a->ops == b->ops && a->messages == b->messages &&
                      a->orders_checked == b->orders_checked &&
                      a->pairs_checked == b->pairs_checked,
                  "%s: counts", what);
    ck_assert_uint_eq(a->attends, b->attends);
    ck_assert_uint_eq(a->unchecked->len, b->unchecked->len);
    ck_assert_uint_eq(a->ranks, b->ranks);
    compare_arrays(a->bytes_sent, b->bytes_sent, a->ranks, what);
    compare_arrays(a->flops, b->flops, a->ranks, what);
    compare_arrays(a->peak_bytes, b->peak_bytes, a->ranks, what);
    *in_order = a->in_order;
    return a->findings_total == 0;
}

/* Parameters of case @index: ranks that are odd, no powers of two, or divide into grids; all
 * passes; full and causal masks, windows, and documents of uneven lengths. */
static LhProgramParams
params_of_case(uint32_t index, uint64_t ends[3])
{
    static const uint32_t ranks[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 20, 24, 36 };
    const uint32_t kind = index / 3 % 4;
    LhProgramParams p = params_of(ranks[index / 12 % G_N_ELEMENTS(ranks)], (LhPass)(index % 3),
                                  kind > 0, index % 2 == 0, index % 5 == 0);
    const uint64_t n = p.attention.seq_length;

    if (kind == 2)
        p.mask.window = n / 3 + 1;
    ends[0] = n / 5 + 1;
    ends[1] = n - n / 7;
    ends[2] = n;
    if (kind == 3 && ends[0] < ends[1] && ends[1] < ends[2]) {
        p.mask.document_ends = ends;
        p.mask.documents_count = 3;
    }
    return p;
}

START_TEST(verify_in_order_proves_all_schedules)
{
    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        uint32_t proven = 0;

        for (uint32_t index = 0; index < 12 * 15; index++) {
            uint64_t ends[3];
            const LhProgramParams params = params_of_case(index, ends);
            g_autoptr(LhProgram) program = NULL;
            bool in_order;

            if (!test_takes_of(index + s, 7))
                continue;
            program = fitting_program(lh_schedules[s], &params);
            if (program == NULL)
                continue;
            ck_assert(compare(program, lh_schedules[s]->name, &in_order));
            ck_assert_msg(in_order, "%s, %u ranks: not in order", lh_schedules[s]->name,
                          params.ranks);
            proven++;
        }
        ck_assert_msg(proven > 0, "%s refuses everything", lh_schedules[s]->name);
    }
}
END_TEST

/* A recording that is read @step_ops ops at a time. */
typedef struct {
    LhProgram program;
    const Recording *recording;
    uint32_t step_ops;
} Stepped;

static uint32_t
stepped_steps(const LhProgram *program, uint32_t rank)
{
    const Stepped *stepped = program->plan;

    return (recording_count(stepped->recording, rank) + stepped->step_ops - 1) / stepped->step_ops;
}

static void
stepped_emit(LhEmitter *e, uint32_t step)
{
    const Stepped *stepped = e->program->plan;
    const Recording *recording = stepped->recording;
    const uint32_t first = step * stepped->step_ops;
    const uint32_t end = MIN(first + stepped->step_ops, recording_count(recording, e->rank));
    const GArray *counts = recording->counts[e->rank];
    LhOpBuffer *b = e->buffer;

    lh_op_buffer_reserve(b, end - first, recording->parts[e->rank]->len, counts->len);
    for (guint i = 0; i < counts->len; i++)
        b->counts[b->counts_count++] = g_array_index(counts, uint32_t, i);
    for (uint32_t id = first; id < end; id++) {
        LhOp op = *recording_op(recording, e->rank, id);

        if (op.kind == LH_OP_EXCHANGE) {
            const LhPart *parts = recording_part(recording, e->rank, &op, 0);

            op.exchange.parts_first = b->parts_count;
            for (uint32_t i = 0; i < op.exchange.parts_count; i++)
                b->parts[b->parts_count++] = parts[i];
        }
        lh_emit_sync(e);
        *lh_emit_last(e) = op;
    }
}

static const LhGenerator stepped_generator = {
    .steps = stepped_steps,
    .emit = stepped_emit,
    .of_all_groups = true,
};

/* Numbers the ops of a rank again after one of them has come or gone: what came after an op
 * comes after its new place. */
static void
renumber(Recording *recording, uint32_t rank, uint32_t from, int by)
{
    for (uint32_t i = 0; i < recording_count(recording, rank); i++) {
        LhOp *op = recording_op(recording, rank, i);

        op->id = i;
        for (uint32_t k = 0; k < op->after_count; k++) {
            if (op->after[k] >= from)
                op->after[k] = (uint32_t)((int)op->after[k] + by);
        }
    }
}

static void
insert(Recording *recording, uint32_t rank, uint32_t id, LhOp op)
{
    op.after_count = 0;
    g_array_insert_val(recording->ops[rank], id, op);
    renumber(recording, rank, id, 1);
}

/* Frees what op @id allocates and allocates it again, somewhere before it is freed: what it holds
 * is lost, perhaps before it was used. */
static const char *
lose_contents(Recording *recording, GRand *random, uint32_t rank, uint32_t id)
{
    LhOp alloc = *recording_op(recording, rank, id), release = alloc;
    uint32_t end = id + 1;

    if (alloc.kind != LH_OP_ALLOC)
        return NULL;
    while (end < recording_count(recording, rank)) {
        const LhOp *op = recording_op(recording, rank, end);

        if (op->kind == LH_OP_FREE && lh_regions_overlap(&op->memory.region, &alloc.memory.region))
            break;
        end++;
    }
    release.kind = LH_OP_FREE;
    end = (uint32_t)g_rand_int_range(random, (int)id + 1, (int)end + 1);
    insert(recording, rank, end, alloc);
    insert(recording, rank, end, release);
    return "contents lost";
}

/* Makes an exchange move the messages of another one. */
static const char *
share_messages(Recording *recording, GRand *random, uint32_t rank, uint32_t id)
{
    const uint32_t count = recording_count(recording, rank);
    LhOp *op = recording_op(recording, rank, id);
    const LhOp *other =
        recording_op(recording, rank, (uint32_t)g_rand_int_range(random, 0, (int)count));

    if (op->kind != LH_OP_EXCHANGE || other->kind != LH_OP_EXCHANGE || op == other)
        return NULL;
    op->exchange = other->exchange;
    return "messages of another exchange";
}

static const char *
change_program(Recording *recording, GRand *random, uint32_t rank, uint32_t id)
{
    LhOp *op = recording_op(recording, rank, id);
    const LhOp whole = *op;

    switch (g_rand_int_range(random, 0, 8)) {
    case 0:
        g_array_remove_index(recording->ops[rank], id);
        renumber(recording, rank, id + 1, -1);
        return "dropped";
    case 1:
        if (op->kind == LH_OP_EXCHANGE)
            return NULL; /* two exchanges cannot own the same messages */
        g_array_insert_val(recording->ops[rank], id, whole);
        renumber(recording, rank, id, 1);
        return "duplicated";
    case 2:
        if (id == 0)
            return NULL;
        *op = *recording_op(recording, rank, id - 1);
        *recording_op(recording, rank, id - 1) = whole;
        renumber(recording, rank, UINT32_MAX, 0);
        return "swapped with the one before";
    case 3:
        if (op->after_count == 0)
            return NULL;
        op->after[0] = op->after[--op->after_count];
        return "an order dropped";
    case 4:
    case 5:
        return lose_contents(recording, random, rank, id);
    case 6:
        return share_messages(recording, random, rank, id);
    default:
        op->stream = (uint8_t)((op->stream + 1) % recording->program.streams_count);
        return "another stream";
    }
}

static void
change_region(GRand *random, LhRegion *region)
{
    switch (g_rand_int_range(random, 0, 5)) {
    case 0:
        region->part++;
        break;
    case 1:
        region->part--;
        break;
    case 2:
        region->slot++;
        break;
    case 3:
        region->count += g_rand_boolean(random) ? 1u : UINT32_MAX;
        break;
    default:
        region->half = (uint8_t)((region->half + 1) % LH_HALVES);
        break;
    }
}

static const char *
change_compute(GRand *random, LhOp *op)
{
    LhKernelArgs *args = &op->compute.args;

    switch (g_rand_int_range(random, 0, 8)) {
    case 0:
        args->nq++;
        return "rows of queries";
    case 1:
        args->pairs += args->nq;
        return "pairs";
    case 2:
        args->mask = (uint8_t)((args->mask + 1) % (LH_MASK_POSITIONS + 1));
        return "the mask";
    case 3:
        args->q_at.start++;
        return "the position of queries";
    case 4:
        args->first = !args->first;
        return "whether it is the first";
    default:
        change_region(
            random,
            &op->compute.regions[g_rand_int_range(random, 0, MAX(op->compute.regions_count, 1))]);
        return "an operand";
    }
}

static const char *
change_exchange(Recording *recording, GRand *random, uint32_t rank, LhOp *op)
{
    LhPart *part = recording_part(
        recording, rank, op, (uint32_t)g_rand_int_range(random, 0, (int)op->exchange.parts_count));

    switch (g_rand_int_range(random, 0, 6)) {
    case 0:
        part->peer = (part->peer + 1) % recording->program.params.ranks;
        return "a peer";
    case 1:
        part->wire_bytes += 2;
        return "bytes";
    case 2:
        part->send = !part->send;
        return "the direction";
    case 3:
        part->tag++;
        return "a tag";
    case 4:
        op->communicator++;
        return "the communicator";
    default:
        change_region(random, &part->regions[0]);
        return "a region of a message";
    }
}

static const char *
change_collective(GRand *random, LhOp *op)
{
    switch (g_rand_int_range(random, 0, 6)) {
    case 0:
        op->collective.kind = (LhCollectiveKind)((op->collective.kind + 1) % LH_COLL_KINDS);
        return "the collective";
    case 1:
        op->collective.reduction = (LhReduction)(1 - (int)op->collective.reduction);
        return "the reduction";
    case 2:
        op->collective.group.base++;
        return "the group";
    case 3:
        op->communicator++;
        return "the communicator";
    case 4:
        change_region(random, &op->collective.send[0]);
        return "what it sends";
    default:
        change_region(random, &op->collective.receive[0]);
        return "what it receives";
    }
}

/* Changes one op of one rank. NULL: there was nothing to change. */
static const char *
change_one(Recording *recording, GRand *random)
{
    const uint32_t rank =
        (uint32_t)g_rand_int_range(random, 0, (int)lh_program_ranks(&recording->program));
    const uint32_t count = recording_count(recording, rank);
    const uint32_t id = (uint32_t)g_rand_int_range(random, 0, (int)MAX(count, 1));
    LhOp *op = recording_op(recording, rank, id);

    if (count == 0)
        return NULL;
    if (g_rand_int_range(random, 0, 3) == 0)
        return change_program(recording, random, rank, id);
    switch (op->kind) {
    case LH_OP_COMPUTE:
        return change_compute(random, op);
    case LH_OP_EXCHANGE:
        return change_exchange(recording, random, rank, op);
    case LH_OP_COLLECTIVE:
        return change_collective(random, op);
    case LH_OP_ALLOC:
    case LH_OP_FREE:
        change_region(random, &op->memory.region);
        return "what is allocated or freed";
    default:
        return NULL;
    }
}

typedef struct {
    uint32_t changed, found, in_order;
} Changes;

/* Changes the program of one case many times, each time one op only. */
static void
change_schedule(const LhSchedule *schedule, uint32_t index, GRand *random, Changes *total)
{
    uint64_t ends[3];
    const LhProgramParams params = params_of_case(index, ends);
    g_autoptr(LhProgram) program = fitting_program(schedule, &params);
    Recording *whole, *changed;

    if (program == NULL || program->params.ranks < 2)
        return;
    whole = recording_new(program);
    changed = recording_new(program);
    for (uint32_t i = 0; i < 4; i++) {
        Stepped stepped = { changed->program, changed,
                            (uint32_t)g_rand_int_range(random, 1, STEP_OPS_MAX + 1) };
        const char *change;
        g_autofree char *what = NULL;
        const bool whole_at_once = g_rand_int_range(random, 0, 4) == 0;
        bool proven, in_order;

        recording_restore(changed, whole);
        if (!whole_at_once) {
            stepped.program.generator = &stepped_generator;
            stepped.program.plan = &stepped;
        }
        change = change_one(changed, random);
        what = g_strdup_printf("%s, %u ranks, case %u: %s", schedule->name, params.ranks, index,
                               change != NULL ? change : "unchanged");
        proven = compare(&stepped.program, what, &in_order);
        total->changed += change != NULL;
        total->found += !proven;
        total->in_order += in_order;
        ck_assert_msg(change != NULL || (proven && in_order), "%s", what);
    }
    recording_free(whole);
    recording_free(changed);
}

START_TEST(verify_in_order_proves_no_changed_program)
{
    GRand *random = g_rand_new_with_seed(SEED);
    Changes total = { 0 };

    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        for (uint64_t i = 0; i < test_share(CHANGES_PER_SCHEDULE); i++)
            change_schedule(lh_schedules[s], (uint32_t)g_rand_int_range(random, 0, 12 * 12), random,
                            &total);
    }
    g_rand_free(random);
    /* Some changes do no harm; such programs are still proven in order, or whole. */
    ck_assert_uint_gt(total.in_order, 0);
    if (test_every() == 1)
        ck_assert_msg(total.found >= 3000 && total.in_order >= 500,
                      "%u changed, %u found, %u in order", total.changed, total.found,
                      total.in_order);
}
END_TEST

/* Lets the calls that use received data read an input instead, and frees and allocates the
 * data. */
static uint32_t
lose_unused(Recording *recording, uint32_t rank)
{
    const LhSlot *slots = recording->program.slots;
    uint16_t input = 0;
    uint32_t lost = 0;

    while (slots[input].kind != LH_TENSOR_HIDDEN || slots[input].role != LH_SLOT_INPUT)
        input++;
    for (uint32_t id = 0; id < recording_count(recording, rank); id++) {
        LhOp *op = recording_op(recording, rank, id);
        LhOp alloc = { .kind = LH_OP_ALLOC }, release = { .kind = LH_OP_FREE };

        if (op->kind != LH_OP_COMPUTE ||
            lh_kernels[op->compute.kernel]->effect != LH_EFFECT_OUTSIDE)
            continue;
        alloc.memory.region = release.memory.region = op->compute.regions[0];
        op->compute.regions[0] = (LhRegion){ .slot = input, .count = 1 };
        insert(recording, rank, id + 1, alloc);
        insert(recording, rank, id + 1, release);
        lost++;
    }
    return lost;
}

/* Data that nothing has used must be missed, even where it has been freed. */
START_TEST(verify_in_order_misses_unused_data)
{
    const LhProgramParams params = params_of(4, LH_PASS_BOTH, true, true, false);
    g_autoptr(LhProgram) program =
        fitting_program(lh_schedule_find("megatron-tp-sp", NULL), &params);
    Recording *changed = recording_new(program);
    bool in_order;

    ck_assert_uint_gt(lose_unused(changed, 2), 0);
    ck_assert(!compare(&changed->program, "unused data", &in_order));
    ck_assert(!in_order);
    recording_free(changed);
}
END_TEST

static void
append(Recording *recording, LhOp op)
{
    op.id = recording_count(recording, 0);
    g_array_append_val(recording->ops[0], op);
}

/* A program of attention that computes the layer outside attention is refused in order, too. */
START_TEST(verify_in_order_knows_attention)
{
    const LhProgramParams params = params_of(2, LH_PASS_FWD, true, true, false);
    g_autoptr(LhProgram) program = fitting_program(lh_schedule_find("ring", NULL), &params);
    Recording *changed = recording_new(program);
    const uint32_t count = program->slots_count, last = count - 1;
    g_autofree LhSlot *slots = g_new0(LhSlot, count + 2);
    LhOp alloc = { .kind = LH_OP_ALLOC }, release = { .kind = LH_OP_FREE };
    LhOp add = { .kind = LH_OP_COMPUTE,
                 .compute = { .kernel = LH_KERNEL_ID_add_hidden,
                              .args = { .first = true, .elements.count = 32 },
                              .regions_count = 2 } };
    bool in_order;

    memcpy(slots, program->slots, count * sizeof(LhSlot));
    for (uint32_t i = count; i < count + 2; i++)
        slots[i] = (LhSlot){ .name = "hidden",
                             .kind = LH_TENSOR_HIDDEN,
                             .role = i == count ? LH_SLOT_INPUT : LH_SLOT_TEMP,
                             .dtype = LH_DTYPE_BF16,
                             .head_dim = program->params.attention.head_dim,
                             .parts = 1,
                             .first_cell = slots[last].first_cell + slots[last].parts + i - count,
                             .part_bytes = 64 };
    changed->program.slots = slots;
    changed->program.slots_count = count + 2;
    add.compute.regions[0] = (LhRegion){ .slot = (uint16_t)count, .count = 1 };
    add.compute.regions[1] = (LhRegion){ .slot = (uint16_t)(count + 1), .count = 1 };
    alloc.memory.region = release.memory.region = add.compute.regions[1];
    append(changed, alloc);
    append(changed, add);
    append(changed, release);
    ck_assert(!compare(&changed->program, "layer", &in_order));
    ck_assert(!in_order);
    recording_free(changed);
}
END_TEST

LH_TEST_MAIN("verify_in_order", verify_in_order_proves_all_schedules,
             verify_in_order_proves_no_changed_program, verify_in_order_misses_unused_data,
             verify_in_order_knows_attention)
