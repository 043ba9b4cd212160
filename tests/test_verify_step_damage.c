/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No damage to a proven step goes undetected. Calls are dropped, doubled and swapped, on one rank
 * or on all members; operands are moved to other layers, micro-batches, pieces and buffers; groups,
 * flags, arguments, labels and waits are changed. What the verifier accepts must be harmless: a
 * plain interpreter (tags.h) must compute the same weights and states, and a quadratic race
 * detector decides about waits. One change in many is made, the same ones in every run;
 * LONGHAUL_TEST_ALL makes all.
 */
#include "race_judge.h"
#include "run_tests.h"
#include "share.h"
#include "steps.h"
#include "tags.h"
#include "verify/verify.h"
#include "verifying.h"

typedef enum {
    MUST_BE_FOUND,
    JUDGED_BY_TAGS,
    JUDGED_BY_RACES,
} Judge;

/* Ops that a change applies to; `own` are those of the step itself. */
typedef enum {
    ANY_OP,
    OWN_OP,
    OWN_CALL,
    OWN_COLLECTIVE, /* which all its members do in the same way */
    OP_OF_ATTENTION,
} Target;

/* Changes op @id of @rank; @variant chooses among several changes. Returns false if there is no
 * such change. */
typedef bool (*Change)(Recording *r, uint32_t rank, uint32_t id, uint32_t variant);

typedef struct {
    const char *name;
    Target target;
    Change change;
    uint32_t variants;
    Judge judge;
} Damage;

/* ---- changes of a rank's ops ---- */

/* Shifts ids from @from on by @by. */
static void
renumber(Recording *r, uint32_t rank, uint32_t from, int by)
{
    for (uint32_t i = 0; i < recording_count(r, rank); i++) {
        LhOp *op = recording_op(r, rank, i);

        op->id = i;
        for (uint32_t k = 0; k < op->after_count; k++)
            op->after[k] = op->after[k] >= from ? (uint32_t)((int)op->after[k] + by) : op->after[k];
    }
}

/* Removes the waits for an op; its waiters no longer inherit what it waited for. */
static void
drop_op(Recording *r, uint32_t rank, uint32_t id)
{
    for (uint32_t i = id + 1; i < recording_count(r, rank); i++) {
        LhOp *op = recording_op(r, rank, i);
        uint8_t kept = 0;

        for (uint32_t k = 0; k < op->after_count; k++) {
            if (op->after[k] != id)
                op->after[kept++] = op->after[k];
        }
        op->after_count = kept;
    }
    g_array_remove_index(r->ops[rank], id);
    renumber(r, rank, id + 1, -1);
}

static bool
is_own(const LhOp *op, LhOpKind kind)
{
    return op->module == 0 && op->kind == kind;
}

static bool
drop(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    (void)variant;
    drop_op(r, rank, id);
    return true;
}

static bool
repeat(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    const LhOp copy = *recording_op(r, rank, id);

    (void)variant;
    renumber(r, rank, id + 1, 1);
    g_array_insert_val(r->ops[rank], id + 1, copy);
    renumber(r, rank, UINT32_MAX, 0);
    return true;
}

/* Swaps two consecutive calls, with their waits. */
static bool
exchange_calls(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *a = recording_op(r, rank, id), *b;
    LhOp first;

    (void)variant;
    if (id + 1 >= recording_count(r, rank))
        return false;
    b = recording_op(r, rank, id + 1);
    if (!is_own(b, LH_OP_COMPUTE))
        return false;
    for (uint32_t k = 0; k < b->after_count; k++) {
        if (b->after[k] == id)
            return false;
    }
    first = *a;
    *a = *b;
    *b = first;
    a->id = id;
    b->id = id + 1;
    return true;
}

static bool
drop_wait(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *op = recording_op(r, rank, id);

    if (variant >= op->after_count)
        return false;
    op->after[variant] = op->after[--op->after_count];
    return true;
}

/* ---- regions ---- */

static bool
fits(const Recording *r, const LhRegion *region)
{
    return (uint64_t)region->part + region->count <= r->program.slots[region->slot].parts;
}

/* Moves a region by its own number of parts, forwards or back: to another layer, micro-batch,
 * piece or member. */
static bool
move_region(const Recording *r, LhRegion *region, uint32_t by)
{
    LhRegion moved = *region;

    moved.part += by * region->count;
    if (!fits(r, &moved)) {
        if (region->part < by * region->count)
            return false;
        moved.part = region->part - by * region->count;
    }
    *region = moved;
    return true;
}

/* The @which-th other slot that would fit. */
static bool
replace_slot(const Recording *r, LhRegion *region, uint32_t which)
{
    const LhSlot *slots = r->program.slots, *slot = &slots[region->slot];
    LhRegion other = *region;

    for (uint32_t i = 0; i < r->program.slots_count; i++) {
        other.slot = (uint16_t)i;
        if (i == region->slot || slots[i].kind != slot->kind || slots[i].dtype != slot->dtype ||
            slots[i].part_bytes != slot->part_bytes || !fits(r, &other) || which-- > 0)
            continue;
        *region = other;
        return true;
    }
    return false;
}

#define MOVES 3
#define SLOTS 4

/* Variants: operands x (moves and slots). */
static bool
change_operand(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *op = recording_op(r, rank, id);
    const uint32_t operand = variant / (MOVES + SLOTS), how = variant % (MOVES + SLOTS);
    LhRegion *region = &op->compute.regions[operand];

    if (operand >= op->compute.regions_count)
        return false;
    return how < MOVES ? move_region(r, region, how + 1) : replace_slot(r, region, how - MOVES);
}

/* ---- collectives ---- */

/* Variants: tensors x both regions x (moves and slots). */
static bool
change_tensor(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *op = recording_op(r, rank, id);
    const uint32_t how = variant % (MOVES + SLOTS), which = variant / (MOVES + SLOTS);
    LhRegion *region = which % 2 == 0 ? &op->collective.send[which / 2 % LH_COLLECTIVE_TENSORS_MAX]
                                      : &op->collective.receive[which / 2];
    const bool changed =
        which / 2 < op->collective.tensors_count &&
        (how < MOVES ? move_region(r, region, how + 1) : replace_slot(r, region, how - MOVES));

    if (changed)
        recording_rewire(r, op);
    return changed;
}

static bool
drop_tensor(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *op = recording_op(r, rank, id);
    const uint32_t last = op->collective.tensors_count - 1u;

    if (last == 0 || variant > last)
        return false;
    op->collective.send[variant] = op->collective.send[last];
    op->collective.receive[variant] = op->collective.receive[last];
    op->collective.tensors_count--;
    recording_rewire(r, op);
    return true;
}

static bool
swap_tensors(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *op = recording_op(r, rank, id);
    LhRegion *a = &op->collective.receive[variant], *b = &op->collective.receive[variant + 1];
    const LhRegion first = *a;

    if (variant + 1 >= op->collective.tensors_count || a->count != b->count)
        return false;
    *a = *b;
    *b = first;
    return r->program.slots[a->slot].part_bytes == r->program.slots[b->slot].part_bytes;
}

static bool
change_reduction(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *op = recording_op(r, rank, id);

    (void)variant;
    op->collective.reduction = LH_REDUCE_ATTENTION;
    return lh_collective_reduces(op->collective.kind);
}

/* Copies the first member's part instead of adding up. */
static bool
copy_sum(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *op = recording_op(r, rank, id);

    (void)variant;
    if (op->collective.kind != LH_COLL_ALL_REDUCE)
        return false;
    op->collective.kind = LH_COLL_BROADCAST;
    recording_rewire(r, op);
    return true;
}

/* The number of a collective among the rank's own, and the op of that number on another rank. */
static uint32_t
own_collective(const Recording *r, uint32_t rank, uint32_t turn)
{
    for (uint32_t id = 0; id < recording_count(r, rank); id++) {
        if (is_own(recording_op(r, rank, id), LH_OP_COLLECTIVE) && turn-- == 0)
            return id;
    }
    return LH_OP_NONE;
}

static uint32_t
turn_of(const Recording *r, uint32_t rank, uint32_t id)
{
    uint32_t turn = 0;

    for (uint32_t i = 0; i < id; i++)
        turn += is_own(recording_op(r, rank, i), LH_OP_COLLECTIVE);
    return turn;
}

/* Changes the groups of all ranks: columns of the grid of ranks instead of rows. */
static bool
change_groups(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    const uint32_t ranks = lh_program_ranks(&r->program);
    const LhOp *op = recording_op(r, rank, id);
    const LhGroup group = op->collective.group;
    uint32_t turn;

    (void)variant;
    if (rank != 0 || !is_own(op, LH_OP_COLLECTIVE) || group.count * group.count != ranks ||
        group.outer_count != 1)
        return false;
    turn = turn_of(r, rank, id);
    for (uint32_t i = 0; i < ranks; i++) {
        LhGroup *g = &recording_op(r, i, own_collective(r, i, turn))->collective.group;

        g->stride = group.stride == 1 ? group.count : 1;
        g->base = group.stride == 1 ? i % group.count : i / group.count * group.count;
    }
    return true;
}

/* ---- messages between stages ---- */

#define MESSAGES 3 /* per exchange, at most */

/* A message of a rank's own exchanges. */
typedef struct {
    uint32_t rank, id, i;
} Message;

static LhPart *
message_part(const Recording *r, const Message *m)
{
    return recording_part(r, m->rank, recording_op(r, m->rank, m->id), m->i);
}

/* Finds the message; the digits of @variant are the change and the message. Returns false if
 * there is none. */
static bool
is_message(const Recording *r, uint32_t rank, uint32_t id, uint32_t i)
{
    const LhOp *op = recording_op(r, rank, id);

    return is_own(op, LH_OP_EXCHANGE) && i < op->exchange.parts_count;
}

/* The @turn-th message that @rank sends to @peer, or receives; returns false if there are fewer. */
static bool
find_message(const Recording *r, uint32_t rank, uint32_t peer, bool send, uint32_t turn, Message *m)
{
    for (uint32_t id = 0; id < recording_count(r, rank); id++) {
        for (uint32_t i = 0; is_message(r, rank, id, i); i++) {
            *m = (Message){ rank, id, i };
            if (message_part(r, m)->peer == peer && message_part(r, m)->send == send && turn-- == 0)
                return true;
        }
    }
    return false;
}

/* The number of like messages before this one. */
static uint32_t
turn_of_message(const Recording *r, const Message *m)
{
    const LhPart *part = message_part(r, m);
    uint32_t turn = 0;
    Message other;

    while (find_message(r, m->rank, part->peer, part->send, turn, &other) &&
           (other.id != m->id || other.i != m->i))
        turn++;
    return turn;
}

static void
remove_message(Recording *r, const Message *m)
{
    LhOp *op = recording_op(r, m->rank, m->id);

    for (uint32_t i = m->i; i + 1 < op->exchange.parts_count; i++)
        *recording_part(r, m->rank, op, i) = *recording_part(r, m->rank, op, i + 1);
    if (--op->exchange.parts_count == 0)
        drop_op(r, m->rank, m->id);
}

static bool
drop_end(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    if (!is_message(r, rank, id, variant))
        return false;
    remove_message(r, &(Message){ rank, id, variant });
    return true;
}

/* Drops the message on both sides. */
static bool
drop_message(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    const Message m = { rank, id, variant };
    const LhPart *part;
    Message other;

    if (!is_message(r, rank, id, variant))
        return false;
    part = message_part(r, &m);
    ck_assert(find_message(r, part->peer, rank, !part->send, turn_of_message(r, &m), &other));
    remove_message(r, &m);
    remove_message(r, &other);
    return true;
}

/* Variants: messages x (moves and slots). */
static bool
change_message(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    const uint32_t how = variant % (MOVES + SLOTS);
    const Message m = { rank, id, variant / (MOVES + SLOTS) };
    LhRegion *region;

    if (!is_message(r, rank, id, m.i))
        return false;
    region = message_part(r, &m)->regions;
    return how < MOVES ? move_region(r, region, how + 1) : replace_slot(r, region, how - MOVES);
}

/* Swaps the contents of messages of two micro-batches. */
static bool
swap_messages(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    const Message m = { rank, id, variant };
    LhPart *part, *next;
    LhRegion first;
    Message other;

    if (!is_message(r, rank, id, variant))
        return false;
    part = message_part(r, &m);
    first = part->regions[0];
    if (!find_message(r, rank, part->peer, part->send, turn_of_message(r, &m) + 1, &other))
        return false;
    next = message_part(r, &other);
    if (next->regions[0].slot == first.slot && next->regions[0].part == first.part)
        return false;
    part->regions[0] = next->regions[0];
    next->regions[0] = first;
    return true;
}

/* Sends the message to another stage, or expects it from another one. */
static bool
change_peer(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    const LhStepParams *p = lh_step_params(&r->program);
    const uint32_t ranks = lh_program_ranks(&r->program);
    LhPart *part;

    if (!is_message(r, rank, id, variant))
        return false;
    part = message_part(r, &(Message){ rank, id, variant });
    part->peer = (part->peer + (uint32_t)lh_step_stage_ranks(p)) % ranks;
    return part->peer != rank;
}

/* ---- flags, arguments, labels ---- */

static bool
turn_first(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *op = recording_op(r, rank, id);
    bool updates = false;

    (void)variant;
    for (uint32_t i = 0; i < op->compute.regions_count; i++)
        updates |= lh_kernels[op->compute.kernel]->operands[i].access == LH_OPERAND_UPDATE;
    op->compute.args.first = !op->compute.args.first;
    return updates;
}

static bool
turn_adds(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *op = recording_op(r, rank, id);

    (void)variant;
    op->compute.args.rows.adds = !op->compute.args.rows.adds;
    return op->compute.kernel == LH_KERNEL_ID_rms_norm_bwd ||
           op->compute.kernel == LH_KERNEL_ID_layer_norm_bwd;
}

static bool
change_optimizer(LhKernelArgs *a, uint32_t variant)
{
    switch (variant) {
    case 0:
        a->optimizer.count--;
        return true;
    case 1:
        a->optimizer.learning_rate *= 2;
        return a->optimizer.learning_rate > 0;
    case 2:
        a->optimizer.beta1 /= 2;
        return a->optimizer.beta1 > 0;
    case 3:
        a->optimizer.clip += 1;
        return true;
    default:
        return false;
    }
}

static bool
change_rows(LhKernelArgs *a, LhKernelId kernel, uint32_t variant)
{
    const bool norm = kernel == LH_KERNEL_ID_rms_norm || kernel == LH_KERNEL_ID_layer_norm ||
                      kernel == LH_KERNEL_ID_rms_norm_bwd;
    const bool loss = kernel == LH_KERNEL_ID_loss;

    if (norm && variant == 0)
        a->rows.epsilon *= 2;
    else if (loss && variant == 1)
        a->rows.tokens *= 2;
    else if ((loss || kernel == LH_KERNEL_ID_embed) && variant == 2 && a->rows.first > 0)
        a->rows.first = 0;
    else
        return false;
    return true;
}

static bool
change_muon(LhKernelArgs *a, uint32_t variant)
{
    switch (variant) {
    case 0:
        a->muon.a += 1;
        return true;
    case 1:
        a->muon.factor *= 2;
        return true;
    case 2:
        a->muon.by_rows = !a->muon.by_rows;
        return true;
    case 3:
        a->muon.slice = a->muon.slice == 0 ? 1 : 0;
        return a->muon.slices > 1;
    case 4:
        a->muon.halves = 3 - a->muon.halves;
        return true;
    default:
        return false;
    }
}

static bool
change_argument(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *op = recording_op(r, rank, id);
    LhKernelArgs *a = &op->compute.args;

    switch (lh_kernels[op->compute.kernel]->args) {
    case LH_ARGS_OPTIMIZER:
        return op->compute.kernel != LH_KERNEL_ID_grad_norm && change_optimizer(a, variant);
    case LH_ARGS_ROWS:
        return change_rows(a, op->compute.kernel, variant);
    case LH_ARGS_HEADS:
        if (variant == 0)
            a->to_heads.start++;
        else if (variant == 1)
            a->to_heads.stride++;
        else if (variant == 2)
            a->to_heads.base += 1;
        return variant < 3;
    case LH_ARGS_PRODUCT:
        if (variant == 0)
            a->product.m /= 2;
        else if (variant == 1)
            a->product.k--;
        else if (variant == 2 && a->product.experts > 1)
            a->product.experts--;
        else if (variant == 3)
            a->product.fp32 = !a->product.fp32;
        else
            return false;
        return true;
    case LH_ARGS_MUON:
        return change_muon(a, variant);
    case LH_ARGS_COPY:
        if (variant == 0)
            a->copy.bytes /= 2;
        else if (variant == 1)
            a->copy.beside += 4;
        return variant < 2;
    case LH_ARGS_EXPERTS:
        if (variant == 0)
            a->experts.choices++;
        else if (variant == 1)
            a->experts.experts--;
        else if (variant == 2)
            a->experts.rows /= 2;
        return variant < 3;
    default:
        return false;
    }
}

/* Whether an op is a copy of a tensor of @kind between device and host. */
static bool
copies(const Recording *r, const LhOp *op, LhTensorKind kind)
{
    return lh_kernels[op->compute.kernel]->args == LH_ARGS_COPY &&
           r->program.slots[op->compute.regions[0].slot].kind == kind;
}

static bool
change_label(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *op = recording_op(r, rank, id);

    if (op->kind != LH_OP_COMPUTE)
        return false;
    /* Weights come for gathers, which are of any pass and micro-batch; gradients leave as they are
     * reduced. */
    if (variant > 0 && op->phase != LH_PHASE_OPTIMIZER &&
        (copies(r, op, LH_TENSOR_WEIGHT) || (variant == 1 && copies(r, op, LH_TENSOR_GRADIENT))))
        return false;
    /* the optimizer runs once, outside any micro-batch */
    if (variant == 0)
        op->layer = (uint16_t)(op->layer == 0 ? 1 : op->layer - 1);
    else if (variant == 1 && op->phase != LH_PHASE_OPTIMIZER &&
             op->compute.kernel != LH_KERNEL_ID_accumulate)
        op->micro_batch = (uint16_t)(op->micro_batch == 0 ? 1 : op->micro_batch - 1);
    else if (variant == 2)
        op->phase = (uint8_t)((op->phase + 1) % LH_PHASES);
    else
        return false;
    return true;
}

/* ---- attention ---- */

/* Names the program of another pack of documents in all ops of a call of attention. */
static bool
name_other_pack(Recording *r, uint32_t rank, uint32_t id)
{
    const LhOp begin = *recording_op(r, rank, id);
    const uint32_t of_pack = 2 * LH_STEP_KINDS;
    const uint32_t other = (begin.module - 1 + of_pack) % r->program.modules_count + 1;

    if (r->program.modules_count == of_pack ||
        (id > 0 && recording_op(r, rank, id - 1)->module != 0))
        return false;
    for (; id < recording_count(r, rank) && recording_op(r, rank, id)->module == begin.module; id++)
        recording_op(r, rank, id)->module = (uint16_t)other;
    return true;
}

/* Replaces one op of attention by another. */
static bool
change_attention(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    LhOp *op = recording_op(r, rank, id);

    if (variant == 0) {
        drop_op(r, rank, id);
        return true;
    }
    if (variant == 1 && op->kind == LH_OP_COMPUTE && op->compute.args.pairs > 0) {
        op->compute.args.decay += 1;
        return true;
    }
    if (variant == 2 && op->kind == LH_OP_COMPUTE)
        return replace_slot(r, &op->compute.regions[0], 0);
    if (variant == 3 && op->kind == LH_OP_COMPUTE)
        return move_region(r, &op->compute.regions[0], 1);
    if (variant == 4 && op->module % 2 == 1) {
        op->module += 2;
        return true;
    }
    return variant == 5 && name_other_pack(r, rank, id);
}

static void
move_if(const Recording *r, LhRegion *region, uint16_t slot, uint32_t by)
{
    if (region->slot == slot)
        region->part = (region->part + by) % r->program.slots[slot].parts;
}

/* A call of attention reads, or writes, another layer's tensors. */
static bool
move_attention(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    const LhOp *begin = recording_op(r, rank, id);
    const LhProgram *program;
    LhRegion *first;

    if (begin->kind != LH_OP_COMPUTE || variant >= begin->compute.regions_count)
        return false;
    program = r->program.modules[begin->module - 1];
    first = &recording_op(r, rank, id)->compute.regions[variant];
    const uint16_t slot = first->slot;
    const uint32_t parts = program->slots[0].parts;

    if (r->program.slots[slot].category == LH_CATEGORY_ATTENTION ||
        r->program.slots[slot].parts <= parts || r->program.slots[slot].parts % parts != 0)
        return false;
    while (id > 0 && recording_op(r, rank, id - 1)->module == begin->module)
        id--;
    for (; id < recording_count(r, rank) && recording_op(r, rank, id)->module == begin->module;
         id++) {
        LhOp *op = recording_op(r, rank, id);

        for (uint32_t i = 0; op->kind == LH_OP_COMPUTE && i < op->compute.regions_count; i++)
            move_if(r, &op->compute.regions[i], slot, parts);
        for (uint32_t i = 0; op->kind == LH_OP_EXCHANGE && i < op->exchange.parts_count; i++) {
            LhPart *part = recording_part(r, rank, op, i);

            for (uint32_t k = 0; k < part->regions_count; k++)
                move_if(r, &part->regions[k], slot, parts);
        }
    }
    return true;
}

/* No rank runs attention of this layer and micro-batch; variant 1: only the recomputed one. */
static bool
skip_attention(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    const LhOp begin = *recording_op(r, rank, id);

    if (rank != 0 || (id > 0 && recording_op(r, rank, id - 1)->module != 0) ||
        (begin.phase == LH_PHASE_RECOMPUTE) != (variant == 1))
        return false;
    for (uint32_t i = 0; i < lh_program_ranks(&r->program); i++) {
        for (uint32_t k = recording_count(r, i); k-- > 0;) {
            const LhOp *op = recording_op(r, i, k);

            if (op->module == begin.module && op->layer == begin.layer &&
                op->micro_batch == begin.micro_batch && op->phase == begin.phase)
                drop_op(r, i, k);
        }
    }
    return true;
}

/* No rank recomputes anything of this layer. */
static bool
skip_recompute(Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    const LhOp begin = *recording_op(r, rank, id);

    (void)variant;
    if (rank != 0 || begin.phase != LH_PHASE_RECOMPUTE || id == 0 ||
        recording_op(r, rank, id - 1)->phase == LH_PHASE_RECOMPUTE)
        return false;
    for (uint32_t i = 0; i < lh_program_ranks(&r->program); i++) {
        for (uint32_t k = recording_count(r, i); k-- > 0;) {
            const LhOp *op = recording_op(r, i, k);

            if (op->phase == LH_PHASE_RECOMPUTE && op->layer == begin.layer &&
                op->micro_batch == begin.micro_batch && lh_op_on_stream(op))
                drop_op(r, i, k);
        }
    }
    return true;
}

/* Moves op @id, which waits for no op from @to on, before @to. */
static bool
move_before(Recording *r, uint32_t rank, uint32_t id, uint32_t to)
{
    LhOp op = *recording_op(r, rank, id);

    for (uint32_t k = 0; k < op.after_count; k++) {
        if (op.after[k] >= to)
            return false;
    }
    for (uint32_t i = to; i < recording_count(r, rank); i++) {
        LhOp *other = recording_op(r, rank, i);

        for (uint32_t k = 0; k < other->after_count; k++) {
            if (other->after[k] == id)
                other->after[k] = to;
            else if (other->after[k] >= to && other->after[k] < id)
                other->after[k]++;
        }
    }
    g_array_remove_index(r->ops[rank], id);
    g_array_insert_val(r->ops[rank], to, op);
    renumber(r, rank, UINT32_MAX, 0);
    return true;
}

/* Applies the change on all members of a collective; its first member decides whether there is
 * one. */
static bool
change_members(Recording *r, uint32_t rank, uint32_t id, uint32_t variant, Change change)
{
    const LhGroup group = recording_op(r, rank, id)->collective.group;
    const uint32_t members = (uint32_t)lh_group_size(&group);
    g_autofree uint32_t *ids = g_new0(uint32_t, members);
    bool changed = true;

    if (lh_group_member(&group, 0) != rank)
        return false;
    for (uint32_t i = 0; i < members; i++)
        ids[i] = recording_meets(r, rank, id, (uint32_t)lh_group_member(&group, i));
    for (uint32_t i = 0; i < members; i++)
        changed &= change(r, (uint32_t)lh_group_member(&group, i), ids[i], variant);
    return changed;
}

static bool
apply(const Damage *damage, Recording *r, uint32_t rank, uint32_t id, uint32_t variant)
{
    const LhOp *op = recording_op(r, rank, id);

    switch (damage->target) {
    case OWN_OP:
        return op->module == 0 && damage->change(r, rank, id, variant);
    case OWN_CALL:
        return is_own(op, LH_OP_COMPUTE) && damage->change(r, rank, id, variant);
    case OWN_COLLECTIVE:
        return is_own(op, LH_OP_COLLECTIVE) && change_members(r, rank, id, variant, damage->change);
    case OP_OF_ATTENTION:
        return op->module != 0 && damage->change(r, rank, id, variant);
    default:
        return damage->change(r, rank, id, variant);
    }
}

/* Waits before attention begins may be implied by others; its own waits belong to its program. */
static const Damage damages[] = {
    { "dropped the call", OWN_CALL, drop, 1, JUDGED_BY_TAGS },
    { "doubled the call", OWN_CALL, repeat, 1, JUDGED_BY_TAGS },
    { "exchanged the call with the next", OWN_CALL, exchange_calls, 1, JUDGED_BY_TAGS },
    { "dropped a wait", OWN_OP, drop_wait, 4, JUDGED_BY_RACES },
    { "changed an operand", OWN_CALL, change_operand, 8 * (MOVES + SLOTS), JUDGED_BY_TAGS },
    { "dropped the collective", OWN_COLLECTIVE, drop, 1, JUDGED_BY_TAGS },
    { "doubled the collective", OWN_COLLECTIVE, repeat, 1, JUDGED_BY_TAGS },
    { "changed a tensor of the collective", OWN_COLLECTIVE, change_tensor, 4 * (MOVES + SLOTS),
      JUDGED_BY_TAGS },
    { "dropped a tensor of the collective", OWN_COLLECTIVE, drop_tensor, 4, JUDGED_BY_TAGS },
    { "swapped two tensors of the collective", OWN_COLLECTIVE, swap_tensors, 3, JUDGED_BY_TAGS },
    { "changed the reduction", OWN_COLLECTIVE, change_reduction, 1, MUST_BE_FOUND },
    { "copied instead of adding up", OWN_COLLECTIVE, copy_sum, 1, JUDGED_BY_TAGS },
    { "changed all groups", ANY_OP, change_groups, 1, JUDGED_BY_TAGS },
    { "dropped one end of a message", ANY_OP, drop_end, MESSAGES, MUST_BE_FOUND },
    { "dropped a message", ANY_OP, drop_message, MESSAGES, JUDGED_BY_TAGS },
    { "changed what a message moves", ANY_OP, change_message, MESSAGES *(MOVES + SLOTS),
      JUDGED_BY_TAGS },
    { "swapped two messages", ANY_OP, swap_messages, MESSAGES, JUDGED_BY_TAGS },
    { "sent to another stage", ANY_OP, change_peer, MESSAGES, MUST_BE_FOUND },
    { "turned `first` round", OWN_CALL, turn_first, 1, JUDGED_BY_TAGS },
    { "turned `adds` round", OWN_CALL, turn_adds, 1, JUDGED_BY_TAGS },
    { "changed an argument", OWN_CALL, change_argument, 4, MUST_BE_FOUND },
    { "changed a label", ANY_OP, change_label, 3, MUST_BE_FOUND },
    { "changed attention", OP_OF_ATTENTION, change_attention, 6, MUST_BE_FOUND },
    { "dropped a wait of attention", OP_OF_ATTENTION, drop_wait, 4, JUDGED_BY_TAGS },
    { "moved what attention uses", OP_OF_ATTENTION, move_attention, 6, JUDGED_BY_TAGS },
    { "skipped attention", OP_OF_ATTENTION, skip_attention, 2, JUDGED_BY_TAGS },
    { "skipped the recomputation", ANY_OP, skip_recompute, 1, JUDGED_BY_TAGS },
};

/* ---- trials ---- */

typedef struct {
    const char *name;
    const LhProgram *program;
    Tags *whole;                    /* what the undamaged step leaves behind */
    Recording *recording, *damaged; /* equal except while damage is tried */
    uint32_t made, found, harmless;
} Trial;

static bool
is_harmless(const Trial *t, const Recording *r)
{
    Tags *tags = tags_run(r);
    const bool equal = tags_equal(tags, t->whole);

    tags_free(tags);
    return equal;
}

static void
try_damage(Trial *t, const Damage *damage, uint32_t rank, uint32_t id, uint32_t variant)
{
    const LhOp op = *recording_op(t->recording, rank, id);
    Recording *r = t->damaged;
    g_autoptr(LhVerdict) verdict = NULL;
    bool found, allowed;

    recording_restore(r, t->recording);
    if (!apply(damage, r, rank, id, variant))
        return;
    verdict = lh_verify(&r->program);
    found = verdict->findings_total > 0;
    allowed = found || damage->judge != MUST_BE_FOUND;
    if (damage->judge == JUDGED_BY_RACES)
        allowed = found == judge_finds_race(r, rank);
    else if (!found && allowed)
        allowed = is_harmless(t, r);
    ck_assert_msg(allowed, "%s: rank %u op %u (%s, layer %u, micro-batch %u): %s, variant %u: %s",
                  t->name, rank, id,
                  op.kind == LH_OP_COMPUTE ? lh_kernels[op.compute.kernel]->name
                                           : lh_op_kind_names[op.kind],
                  op.layer, op.micro_batch, damage->name, variant, first_message(verdict));
    if (!found && g_getenv("LONGHAUL_TEST_HARMLESS") != NULL)
        g_printerr("%s: rank %u op %u (%s): %s, variant %u is harmless\n", t->name, rank, id,
                   op.kind == LH_OP_COMPUTE ? lh_kernels[op.compute.kernel]->name
                                            : lh_op_kind_names[op.kind],
                   damage->name, variant);
    t->made++;
    t->found += found;
    t->harmless += !found;
}

/* Offered changes per change made, so that every kind has about as many. */
static uint32_t
one_in(const Damage *damage, uint32_t ops)
{
    const uint32_t offers = ops * damage->variants;

    if (g_getenv("LONGHAUL_TEST_ALL") != NULL)
        return 1;
    /* enough that the share of harmless ones is meaningful */
    return (uint32_t)(MAX(offers / 400, 1) * MIN(test_every(), 29)) | 1;
}

/* Damages all ops in one way, or some of them: different ones for each way. */
static void
damage_ops(Trial *t, unsigned way, uint32_t every)
{
    uint32_t offered = way;

    for (uint32_t rank = 0; rank < lh_program_ranks(t->program); rank++) {
        for (uint32_t id = 0; id < recording_count(t->recording, rank); id++) {
            for (uint32_t variant = 0; variant < damages[way].variants; variant++) {
                if (offered++ % every == 0)
                    try_damage(t, &damages[way], rank, id, variant);
            }
        }
    }
}

/* For changes that keep the program the same: counts only what may be harmless. */
static Trial
damage_step(const char *name, const TinyStep *tiny)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhProgram) program = tiny_step(tiny, &error);
    Trial t = { .name = name, .program = program };
    uint32_t ops = 0;

    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    t.recording = recording_new(program);
    t.damaged = recording_new(program);
    t.whole = tags_run(t.recording);
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++)
        ops += recording_count(t.recording, rank);
    for (unsigned i = 0; i < G_N_ELEMENTS(damages); i++)
        damage_ops(&t, i, one_in(&damages[i], ops));
    tags_free(t.whole);
    recording_free(t.recording);
    recording_free(t.damaged);
    return t;
}

static void
check_step(const char *name, const TinyStep *tiny)
{
    const Trial t = damage_step(name, tiny);

    if (g_getenv("LONGHAUL_TEST_HARMLESS") != NULL)
        g_printerr("%s: %u made, %u found, %u harmless\n", name, t.made, t.found, t.harmless);
    ck_assert_uint_ge(t.made, 200 / MIN(test_every(), 29));
    ck_assert_uint_le(t.harmless, t.made / 5);
}

static const struct {
    const char *name;
    TinyStep tiny;
} steps[] = {
    { "fsdp",
      { .schedule = "zigzag",
        .tensor = 2,
        .context = 2,
        .micro_batches = 2,
        .shard = LH_SHARD_FSDP,
        .checkpoint = LH_CHECKPOINT_LAYER,
        .behaviour = { .reshard = true,
                       .prefetch = 1,
                       .overlap_tensor = true,
                       .overlap_reduce = true,
                       .reduce_each = true,
                       .clip = 1 } } },
    { "ddp",
      { .schedule = "ulysses",
        .tensor = 4,
        .data = 2,
        .groups = 2,
        .micro_batches = 2,
        .tied = true,
        .gelu = true,
        .layer_norm = true,
        .vocabulary = 61,
        .checkpoint = LH_CHECKPOINT_REMAT,
        .behaviour = { .clip = 1, .overlap_reduce = true } } },
    { "zero1",
      { .schedule = "ring",
        .context = 2,
        .data = 2,
        .batch = 2,
        .window = 12,
        .shard = LH_SHARD_ZERO1,
        .behaviour = { .logits_fp32 = true, .clip = 1 } } },
    { "linear",
      { .schedule = "lasp",
        .linear = true,
        .gate = true,
        .tensor = 2,
        .context = 2,
        .micro_batches = 2,
        .shard = LH_SHARD_ZERO2,
        .checkpoint = LH_CHECKPOINT_SELECTIVE,
        .behaviour = { .reduce_each = true } } },
    { "experts",
      { .schedule = "zigzag",
        .tensor = 2,
        .data = 2,
        .layers = 3,
        .experts = 4,
        .shared = 1,
        .dense = 1,
        .checkpoint = LH_CHECKPOINT_REMAT,
        .behaviour = { .clip = 1 } } },
    { "pipeline",
      { .schedule = "ring",
        .stages = 3,
        .data = 2,
        .layers = 4,
        .embedding_counts = true,
        .loss_counts = true,
        .micro_batches = 4,
        .tied = true,
        .shard = LH_SHARD_ZERO1,
        .behaviour = { .clip = 1 } } },
    { "interleaved",
      { .schedule = "zigzag",
        .stages = 2,
        .chunks = 2,
        .tensor = 2,
        .layers = 4,
        .micro_batches = 2,
        .checkpoint = LH_CHECKPOINT_LAYER,
        .behaviour = { .clip = 1, .overlap_reduce = true } } },
    { "tiles",
      { .schedule = "zigzag",
        .tensor = 2,
        .context = 2,
        .layers = 1,
        .micro_batches = 2,
        .checkpoint = LH_CHECKPOINT_LAYER,
        .loss = LH_LOSS_CHUNKED,
        .chunk_rows = 4,
        .tile_rows = 6,
        .behaviour = { .logits_fp32 = true, .overlap_tensor = true, .gather_again = true } } },
    { "modules",
      { .schedule = "zigzag",
        .tensor = 2,
        .layers = 2,
        .experts = 4,
        .shared = 1,
        .dense = 1,
        .checkpoint = LH_CHECKPOINT_SELECTIVE,
        .recompute.modules = LH_RECOMPUTE_BIT(CORE_ATTN) | LH_RECOMPUTE_BIT(LAYERNORM) |
                             LH_RECOMPUTE_BIT(MLP) | LH_RECOMPUTE_BIT(MOE),
        .behaviour.gather_again = true } },
    { "uniform",
      { .schedule = "ring",
        .data = 2,
        .layers = 3,
        .shard = LH_SHARD_FSDP,
        .checkpoint = LH_CHECKPOINT_LAYER,
        .recompute = { 0, 2, LH_RECOMPUTE_UNIFORM },
        .behaviour.reshard = true } },
    { "moments in 8 bits",
      { .schedule = "ring",
        .data = 2,
        .shard = LH_SHARD_ZERO1,
        .behaviour = { .moments = LH_MOMENTS_8BIT, .clip = 1 } } },
    { "weights without a copy",
      { .schedule = "ring",
        .tensor = 2,
        .data = 2,
        .shard = LH_SHARD_FSDP,
        .behaviour = { .no_master = true,
                       .moments = LH_MOMENTS_16BIT,
                       .reduce_each = true,
                       .reshard = true } } },
    { "muon",
      { .schedule = "ring",
        .tensor = 2,
        .data = 3,
        .layers = 2,
        .groups = 1,
        .shard = LH_SHARD_ZERO1,
        .muon = { .optimizer = LH_OPTIMIZER_MUON, .steps = 2, .momentum = 0.9, .extra_scale = 1 },
        .behaviour = { .clip = 1 } } },
    { "muon of slices",
      { .schedule = "zigzag",
        .tensor = 2,
        .context = 2,
        .layers = 2,
        .shard = LH_SHARD_FSDP,
        .muon = { .optimizer = LH_OPTIMIZER_MUON,
                  .tp_mode = LH_MUON_BLOCKWISE,
                  .steps = 1,
                  .momentum = 0.9,
                  .extra_scale = 1 },
        .behaviour = { .no_master = true, .moments = LH_MOMENTS_16BIT, .reshard = true } } },
    { "packs",
      { .schedule = "zigzag",
        .context = 2,
        .data = 2,
        .layers = 1,
        .micro_batches = 2,
        .documents = 2,
        .tokens = 8,
        .shard = LH_SHARD_ZERO2,
        .checkpoint = LH_CHECKPOINT_SELECTIVE,
        .behaviour = { .reduce_each = true } } },
    { "offload",
      { .schedule = "zigzag",
        .tensor = 2,
        .context = 2,
        .layers = 4,
        .micro_batches = 2,
        .offload = 3,
        .shard = LH_SHARD_FSDP,
        .behaviour = { .overlap_tensor = true, .prefetch = 1, .unfused_bytes = 3, .clip = 1 } } },
    { "offload of a pipeline",
      { .schedule = "ring",
        .stages = 2,
        .data = 2,
        .layers = 4,
        .micro_batches = 3,
        .offload = LH_STEP_OFFLOAD_ALL,
        .checkpoint = LH_CHECKPOINT_SELECTIVE,
        .behaviour = { .clip = 1 } } },
    { "offload of some layers",
      { .schedule = "zigzag",
        .context = 2,
        .layers = 4,
        .offload = LH_STEP_OFFLOAD_ALL,
        .shard = LH_SHARD_FSDP,
        .checkpoint = LH_CHECKPOINT_LAYER,
        .recompute = { 0, 2, LH_RECOMPUTE_UNIFORM },
        .behaviour = { .reshard = true } } },
    { "optimizer on the host",
      { .schedule = "ring",
        .data = 2,
        .tensor = 2,
        .layers = 1,
        .shard = LH_SHARD_ZERO1,
        .optimizer_offload = 0.6,
        .behaviour.clip = 1 } },
    { "gradients that leave",
      { .schedule = "zigzag",
        .data = 2,
        .layers = 2,
        .micro_batches = 2,
        .shard = LH_SHARD_FSDP,
        .optimizer_offload = 0.5,
        .overlap_copies = true,
        .behaviour = { .clip = 1, .reduce_each = true, .overlap_reduce = true } } },
    { "weights on the host",
      { .schedule = "zigzag",
        .context = 2,
        .layers = 2,
        .micro_batches = 2,
        .shard = LH_SHARD_FSDP,
        .optimizer_offload = 1,
        .offload_param = true,
        .offload = LH_STEP_OFFLOAD_ALL,
        .checkpoint = LH_CHECKPOINT_LAYER,
        .behaviour = { .clip = 1, .reshard = true, .prefetch = 1, .no_master = true } } },
    { "adapters",
      { .schedule = "zigzag",
        .tensor = 2,
        .data = 2,
        .layers = 1,
        .shard = LH_SHARD_ZERO1,
        .checkpoint = LH_CHECKPOINT_REMAT,
        .rank = 2,
        .behaviour = { .clip = 1, .overlap_tensor = true, .gather_again = true } } },
    { "adapters of tiles",
      { .schedule = "ring",
        .context = 2,
        .micro_batches = 2,
        .layers = 1,
        .shard = LH_SHARD_FSDP,
        .tile_rows = 6,
        .rank = 2,
        .targets = LH_LORA_FC1 | LH_LORA_FC2,
        .behaviour = { .clip = 1 } } },
    { "prefill",
      { .schedule = "zigzag",
        .forward_only = true,
        .tensor = 2,
        .context = 2,
        .micro_batches = 2,
        .groups = 4,
        .batch = 2,
        .shard = LH_SHARD_FSDP,
        .behaviour = { .reshard = true, .prefetch = 1, .overlap_tensor = true } } },
    { "prefill in stages",
      { .schedule = "ring",
        .forward_only = true,
        .stages = 2,
        .chunks = 2,
        .context = 2,
        .layers = 4,
        .window = 12,
        .micro_batches = 4,
        .tied = true } },
    { "one rank", { .schedule = "ring", .micro_batches = 2, .dtype = LH_DTYPE_FP32 } },
};

START_TEST(damage_is_found)
{
    check_step(steps[_i].name, &steps[_i].tiny);
}
END_TEST

#define LATER 6 /* collectives that one of them is moved ahead of */

/* A rank that launches two collectives of different dimensions in another order than the others:
 * the program ends, since they are on different streams, but only if both run at once. */
START_TEST(launches_in_another_order_are_found)
{
    const TinyStep tiny = { .schedule = "zigzag",
                            .tensor = 2,
                            .data = 2,
                            .shard = LH_SHARD_FSDP,
                            .behaviour = { .overlap_tensor = true,
                                           .overlap_reduce = true,
                                           .reshard = true,
                                           .prefetch = 1 } };
    g_autoptr(LhProgram) program = tiny_step(&tiny, NULL);
    Recording *whole = recording_new(program), *r = recording_new(program);
    const uint32_t turns = turn_of(whole, 0, recording_count(whole, 0));
    uint32_t found = 0;

    for (uint32_t i = 0; i < turns * LATER; i++) {
        const uint32_t a = own_collective(whole, 0, i / LATER);
        const uint32_t b = own_collective(whole, 0, i / LATER + 1 + i % LATER);
        g_autoptr(LhVerdict) verdict = NULL;

        recording_restore(r, whole);
        if (b != LH_OP_NONE && move_before(r, 0, b, a)) {
            verdict = lh_verify(&r->program);
            if (strstr(first_message(verdict), "concurrently") != NULL) {
                ck_assert_ptr_nonnull(strstr(first_message(verdict), "tensor and data"));
                found++;
            }
        }
    }
    recording_free(whole);
    recording_free(r);
    ck_assert_uint_gt(found, 0);
}
END_TEST

/* Each step runs in its own process, since steps take long. */
LH_TEST_MAIN_OF_LOOPS("verify_step_damage", { launches_in_another_order_are_found, 1 },
                      { damage_is_found, G_N_ELEMENTS(steps) })
