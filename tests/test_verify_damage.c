/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No damage to a proven program goes undetected: ops, orders, peers, sizes, masks, flags and
 * operands are changed one at a time, in programs of every schedule. Where a change may be
 * harmless, a second judge decides: it looks at all pairs of ops and shares no code with the
 * verifier.
 */
#include "fitting.h"
#include "race_judge.h"
#include "recording.h"
#include "run_tests.h"
#include "share.h"
#include "verify/verify.h"
#include "verifying.h"

#include <string.h>

/* Counters of the damage done to a program. */
typedef struct {
    const char *schedule;
    uint32_t ranks;
    uint32_t tried; /* includes those left out */
    uint32_t made, found, harmless;
    uint32_t offered; /* changes of regions; one in REGIONS_EVERY is made */
} Damage;

static void
describe(char *buffer, size_t size, const Recording *recording, uint32_t rank, uint32_t id)
{
    const LhOp *op = recording_op(recording, rank, id);

    g_snprintf(buffer, (gulong)size, "rank %u op %u (%s)", rank, id,
               op->kind == LH_OP_COMPUTE ? lh_kernels[op->compute.kernel]->name
                                         : lh_op_kind_names[op->kind]);
}

typedef enum {
    MUST_BE_FOUND,
    IS_A_RACE, /* according to the second judge */
    IS_NO_RACE,
    MAY_BE_HARMLESS,
} Expectation;

static void
try_damage(Damage *damage, const Recording *recording, uint32_t rank, uint32_t id, const char *what,
           Expectation expectation)
{
    g_autoptr(LhVerdict) verdict = NULL;
    bool found;
    char where[96];

    /* the first of each kind is always made */
    if (test_is_short() && damage->tried++ % 3 != 0)
        return;
    verdict = lh_verify(&recording->program);
    found = verdict->findings_total > 0;
    describe(where, sizeof(where), recording, rank, MIN(id, recording_count(recording, rank) - 1));
    damage->made++;
    damage->found += found;
    damage->harmless += !found;
    if (expectation == MAY_BE_HARMLESS)
        return;
    if (found != (expectation != IS_NO_RACE))
        ck_abort_msg("%s, %u ranks, %s: %s: the verifier says: %s", damage->schedule, damage->ranks,
                     where, what, first_message(verdict));
}

static Expectation
ask_judge(const Recording *recording, uint32_t rank)
{
    return judge_finds_race(recording, rank) ? IS_A_RACE : IS_NO_RACE;
}

/* Removes op @id from its rank: later ids and references move down. */
static void
drop_op(Recording *recording, uint32_t rank, uint32_t id)
{
    g_array_remove_index(recording->ops[rank], id);
    for (uint32_t i = id; i < recording_count(recording, rank); i++) {
        LhOp *op = recording_op(recording, rank, i);
        uint8_t kept = 0;

        op->id = i;
        for (uint32_t k = 0; k < op->after_count; k++) {
            if (op->after[k] != id)
                op->after[kept++] = op->after[k] - (op->after[k] > id ? 1 : 0);
        }
        op->after_count = kept;
    }
}

static void
damage_by_dropping(Damage *damage, Recording *recording, uint32_t rank, uint32_t id)
{
    const bool sync = recording_op(recording, rank, id)->kind == LH_OP_SYNC;

    drop_op(recording, rank, id);
    try_damage(damage, recording, rank, id, "dropped the op here",
               sync ? ask_judge(recording, rank) : MUST_BE_FOUND);
}

/* Without one edge the others may still imply the order: the second judge decides. */
static void
damage_order(Damage *damage, Recording *recording, uint32_t rank, uint32_t id)
{
    LhOp *op = recording_op(recording, rank, id);
    const LhOp whole = *op;

    for (uint32_t i = 0; i < whole.after_count; i++) {
        *op = whole;
        op->after[i] = op->after[--op->after_count];
        try_damage(damage, recording, rank, id, "dropped an order", ask_judge(recording, rank));
    }
}

/* An alloc or free of other parts, or of another slot. */
static void
damage_memory(Damage *damage, Recording *recording, uint32_t rank, uint32_t id)
{
    const LhProgram *program = &recording->program;
    LhOp *op = recording_op(recording, rank, id);
    const LhRegion whole = op->memory.region;

    if ((op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE) && test_takes_of(id, 3)) {
        LhRegion *region = &op->memory.region;

        for (uint32_t slot = 0; slot < program->slots_count; slot++) {
            if (slot == whole.slot)
                continue;
            *region = (LhRegion){ (uint16_t)slot, 0, program->slots[slot].parts };
            try_damage(damage, recording, rank, id, program->slots[slot].name, MUST_BE_FOUND);
        }
        *region = whole;
        region->count--;
        try_damage(damage, recording, rank, id, "left out the last part", MUST_BE_FOUND);
        *region = whole;
        region->part++;
        region->count--;
        try_damage(damage, recording, rank, id, "left out the first part", MUST_BE_FOUND);
    }
}

static void
damage_messages(Damage *damage, Recording *recording, uint32_t rank, uint32_t id)
{
    const LhProgram *program = &recording->program;
    LhOp *op = recording_op(recording, rank, id);

    for (uint32_t i = 0; op->kind == LH_OP_EXCHANGE && i < op->exchange.parts_count; i++) {
        LhPart *part = recording_part(recording, rank, op, i);
        const LhPart whole = *part;

        part->peer = (part->peer + 1) % program->params.ranks;
        try_damage(damage, recording, rank, id, "changed a peer", MUST_BE_FOUND);
        *part = whole;
        part->wire_bytes += 2;
        try_damage(damage, recording, rank, id, "changed a size", MUST_BE_FOUND);
        *part = whole;
        part->tag++;
        try_damage(damage, recording, rank, id, "changed a tag", MUST_BE_FOUND);
        *part = whole;
        part->send = !part->send;
        try_damage(damage, recording, rank, id, "turned a message round", MUST_BE_FOUND);
        *part = whole;
        part->regions[0].half = (uint8_t)((part->regions[0].half + 1) % LH_HALVES);
        try_damage(damage, recording, rank, id, "changed a half", MUST_BE_FOUND);
        *part = whole;
    }
    op->communicator++;
    if (op->kind == LH_OP_EXCHANGE)
        try_damage(damage, recording, rank, id, "changed the communicator", MUST_BE_FOUND);
}

/* Changes one member of a group only. In a group of one, all kinds are equivalent, and full
 * attention may take its keys in any order. */
static void
damage_collective(Damage *damage, Recording *recording, uint32_t rank, uint32_t id)
{
    const LhProgram *program = &recording->program;
    LhOp *op = recording_op(recording, rank, id);
    const LhOp whole = *op;
    Expectation expectation;

    if (op->kind == LH_OP_COLLECTIVE) {
        expectation = lh_group_size(&op->collective.group) > 1 ? MUST_BE_FOUND : MAY_BE_HARMLESS;
        op->collective.kind = (LhCollectiveKind)((op->collective.kind + 1) % LH_COLL_KINDS);
        try_damage(damage, recording, rank, id, "changed the kind", expectation);
        *op = whole;
        op->collective.wire_bytes += 2;
        try_damage(damage, recording, rank, id, "changed a size", expectation);
        *op = whole;
        op->communicator++;
        try_damage(damage, recording, rank, id, "changed the communicator", expectation);
        *op = whole;
        op->collective.group.base++;
        try_damage(damage, recording, rank, id, "changed the group", MUST_BE_FOUND);
        *op = whole;
        op->collective.send[0].half = op->collective.receive[0].half =
            (uint8_t)((whole.collective.send[0].half + 1) % LH_HALVES);
        try_damage(damage, recording, rank, id, "changed the half", MUST_BE_FOUND);
        *op = whole;
        op->collective.tensors_count--;
        try_damage(damage, recording, rank, id, "dropped a tensor", MUST_BE_FOUND);
        *op = whole;
    }
    if (op->kind == LH_OP_COLLECTIVE && op->collective.tensors_count > 1) {
        op->collective.send[0] = whole.collective.send[1];
        op->collective.send[1] = whole.collective.send[0];
        try_damage(damage, recording, rank, id, "swapped two tensors",
                   program->slots[whole.collective.send[0].slot].kind ==
                           program->slots[whole.collective.send[1].slot].kind
                       ? MAY_BE_HARMLESS
                       : MUST_BE_FOUND);
    }
}

/* Whether two messages are equal except for the peer. */
static bool
messages_equal(const LhPart *a, const LhPart *b)
{
    bool equal = a->send && b->send && a->tag == b->tag && a->wire_bytes == b->wire_bytes &&
                 a->regions_count == b->regions_count;

    for (uint32_t i = 0; equal && i < a->regions_count; i++)
        equal = a->regions[i].slot == b->regions[i].slot &&
                a->regions[i].part == b->regions[i].part &&
                a->regions[i].count == b->regions[i].count;
    return equal;
}

/* Swaps the peers of two messages of an exchange. */
static void
damage_peers(Damage *damage, Recording *recording, uint32_t rank, uint32_t id)
{
    const LhOp *op = recording_op(recording, rank, id);

    for (uint32_t i = 1; op->kind == LH_OP_EXCHANGE && i < op->exchange.parts_count; i++) {
        LhPart *a = recording_part(recording, rank, op, i - 1);
        LhPart *b = recording_part(recording, rank, op, i);
        const uint32_t peer = a->peer;

        if (a->peer == b->peer || messages_equal(a, b))
            continue;
        a->peer = b->peer;
        b->peer = peer;
        try_damage(damage, recording, rank, id, "swapped two peers", MUST_BE_FOUND);
        b->peer = a->peer;
        a->peer = peer;
    }
}

static bool
is_attention(const LhOp *op)
{
    const LhEffect effect = lh_kernels[op->compute.kernel]->effect;

    return effect == LH_EFFECT_ATTEND || effect == LH_EFFECT_ATTEND_GRAD ||
           effect == LH_EFFECT_SCORES || effect == LH_EFFECT_SCORES_APPLY ||
           effect == LH_EFFECT_SOFTMAX || effect == LH_EFFECT_SOFTMAX_GRAD;
}

/* Another mask with its own number of pairs. Segments have more than one token, so no two masks
 * are equal, except that positions may be causal. */
static void
damage_mask(Damage *damage, Recording *recording, uint32_t rank, uint32_t id)
{
    static const struct {
        LhMaskKind kind;
        int8_t shift;
    } masks[] = {
        { LH_MASK_EMPTY, 0 }, { LH_MASK_FULL, 0 }, { LH_MASK_CAUSAL, 0 }, { LH_MASK_CAUSAL, -1 }
    };
    LhOp *op = recording_op(recording, rank, id);
    const LhOp whole = *op;

    for (uint32_t i = 0; op->kind == LH_OP_COMPUTE && is_attention(op) && i < G_N_ELEMENTS(masks);
         i++) {
        LhKernelArgs *args = &op->compute.args;

        if (masks[i].kind == args->mask &&
            (args->mask != LH_MASK_CAUSAL || masks[i].shift == args->shift))
            continue;
        args->mask = (uint8_t)masks[i].kind;
        args->shift = masks[i].shift;
        args->pairs = masks[i].kind == LH_MASK_EMPTY ? 0
                      : masks[i].kind == LH_MASK_FULL
                          ? args->nq * args->nk
                          : lh_causal_pairs(args->nq, args->nk, args->shift);
        try_damage(damage, recording, rank, id, "changed the mask",
                   whole.compute.args.mask == LH_MASK_POSITIONS && masks[i].kind == LH_MASK_CAUSAL
                       ? MAY_BE_HARMLESS
                       : MUST_BE_FOUND);
        *op = whole;
        args->pairs++;
        try_damage(damage, recording, rank, id, "changed the pairs", MUST_BE_FOUND);
        *op = whole;
        args->nq++;
        try_damage(damage, recording, rank, id, "changed the rows", MUST_BE_FOUND);
        *op = whole;
    }
}

/* Parts of scores follow the keys. */
static bool
has_query_parts(const LhOp *op)
{
    return lh_kernels[op->compute.kernel]->effect != LH_EFFECT_SOFTMAX &&
           op->compute.regions[0].count > 1;
}

/* Other positions of rows, and another rule. */
static void
damage_positions(Damage *damage, Recording *recording, uint32_t rank, uint32_t id)
{
    LhOp *op = recording_op(recording, rank, id);
    const LhOp whole = *op;
    LhKernelArgs *args = &op->compute.args;

    if (op->kind == LH_OP_COMPUTE && is_attention(op) && args->mask == LH_MASK_POSITIONS) {
        LhMaskRule rule = *args->rule;

        args->q_at.start++;
        try_damage(damage, recording, rank, id, "moved the queries", MUST_BE_FOUND);
        *op = whole;
        args->k_at.start++;
        try_damage(damage, recording, rank, id, "moved the keys", MUST_BE_FOUND);
        *op = whole;
        args->q_at.part_step--;
        try_damage(damage, recording, rank, id, "moved the query parts",
                   has_query_parts(op) ? MUST_BE_FOUND : IS_NO_RACE);
        *op = whole;
        args->stride++;
        try_damage(damage, recording, rank, id, "changed the stride", MUST_BE_FOUND);
        *op = whole;
        rule.causal = !rule.causal;
        args->rule = &rule;
        try_damage(damage, recording, rank, id, "changed the rule", MUST_BE_FOUND);
    }
}

/* Whether the last op before @id that wrote @region cleared it. */
static bool
is_cleared(const Recording *recording, uint32_t rank, uint32_t id, const LhRegion *region)
{
    for (uint32_t i = id; i > 0; i--) {
        const LhOp *op = recording_op(recording, rank, i - 1);
        Access accesses[ACCESSES_MAX];
        const uint32_t count = accesses_of(op, recording_parts(recording, rank), accesses);

        for (uint32_t k = 0; k < count; k++) {
            if (accesses[k].write && lh_regions_overlap(&accesses[k].region, region))
                return op->kind == LH_OP_COMPUTE &&
                       lh_kernels[op->compute.kernel]->effect == LH_EFFECT_ZERO;
        }
    }
    return false;
}

/* Accumulators that restart, or that were never initialised. Clearing one again changes nothing. */
static void
damage_first(Damage *damage, Recording *recording, uint32_t rank, uint32_t id)
{
    LhOp *op = recording_op(recording, rank, id);
    uint32_t updated = 0, cleared = 0;

    for (uint32_t i = 0; op->kind == LH_OP_COMPUTE && i < op->compute.regions_count; i++) {
        if (lh_kernels[op->compute.kernel]->operands[i].access != LH_OPERAND_UPDATE)
            continue;
        updated++;
        cleared += is_cleared(recording, rank, id, &op->compute.regions[i]);
    }
    if (updated > cleared) {
        op->compute.args.first = !op->compute.args.first;
        try_damage(damage, recording, rank, id, "turned `first` round", MUST_BE_FOUND);
    }
}

/* Whether an op copies one slot into the other on a rank: a copy, or a collective, whose result
 * contains the rank's own share. */
static bool
op_copies(const LhOp *op, uint32_t one, uint32_t other)
{
    if (op->kind == LH_OP_COMPUTE && lh_kernels[op->compute.kernel]->effect == LH_EFFECT_DERIVE) {
        const uint32_t source = op->compute.regions[0].slot;
        const uint32_t target = op->compute.regions[op->compute.regions_count - 1].slot;

        return (source == one && target == other) || (source == other && target == one);
    }
    for (uint32_t i = 0; op->kind == LH_OP_COLLECTIVE && i < op->collective.tensors_count; i++) {
        const uint32_t source = op->collective.send[i].slot;
        const uint32_t target = op->collective.receive[i].slot;

        if ((source == one && target == other) || (source == other && target == one))
            return true;
    }
    return false;
}

static bool
is_copied(const Recording *recording, uint32_t rank, uint32_t one, uint32_t other)
{
    for (uint32_t id = 0; id < recording_count(recording, rank); id++) {
        if (op_copies(recording_op(recording, rank, id), one, other))
            return true;
    }
    return false;
}

/*
 * Slots that final contents do not depend on: activations outside attention are not followed; and
 * with contiguous tokens a causal schedule forwards keys that nobody uses. @operand is NULL for a
 * message or a collective.
 */
static bool
is_unneeded(const Recording *recording, const LhOperand *operand, const LhSlot *slot)
{
    const LhProgram *program = &recording->program;

    return slot->kind == LH_TENSOR_HIDDEN ||
           (operand == NULL && slot->kind == LH_TENSOR_KV && program->params.mask.causal &&
            program->placement.kind == LH_PLACE_CONTIGUOUS);
}

/*
 * Further harmless changes: sums are associative, so that a contribution may go to another
 * accumulator (of the same type, unless the kernel writes either); and a copy equals its source,
 * which for an input may have passed through all ranks.
 */
static Expectation
expect_slot(const Recording *recording, uint32_t rank, const LhOperand *operand, uint32_t from,
            uint32_t to)
{
    const LhSlot *slots = recording->program.slots;

    if (slots[from].kind != slots[to].kind ||
        (slots[from].dtype != slots[to].dtype &&
         (operand == NULL || operand->element != LH_ELEMENT_EITHER)))
        return MUST_BE_FOUND;
    if (operand != NULL && operand->access != LH_OPERAND_READ)
        return MAY_BE_HARMLESS;
    return is_unneeded(recording, operand, &slots[from]) || slots[from].role == LH_SLOT_INPUT ||
                   slots[to].role == LH_SLOT_INPUT || is_copied(recording, rank, from, to)
               ? MAY_BE_HARMLESS
               : MUST_BE_FOUND;
}

/* Most changes are of regions, so only one in this many is made. The number is coprime to the
 * periods of a program. */
#define REGIONS_EVERY 7

static void
damage_region(Damage *damage, const Recording *recording, uint32_t rank, uint32_t id,
              LhRegion *region, const LhOperand *operand)
{
    const LhProgram *program = &recording->program;
    const LhRegion whole = *region;

    for (uint32_t slot = 0; slot < program->slots_count; slot++) {
        if (slot == whole.slot || whole.part + whole.count > program->slots[slot].parts ||
            damage->offered++ % REGIONS_EVERY != 0)
            continue;
        region->slot = (uint16_t)slot;
        try_damage(damage, recording, rank, id, program->slots[slot].name,
                   expect_slot(recording, rank, operand, whole.slot, slot));
    }
    *region = whole;
    if (whole.count == 1 && program->slots[whole.slot].parts > 1) {
        region->part = (whole.part + 1) % program->slots[whole.slot].parts;
        try_damage(damage, recording, rank, id, "another part",
                   is_unneeded(recording, operand, &program->slots[whole.slot]) ? MAY_BE_HARMLESS
                                                                                : MUST_BE_FOUND);
    }
    *region = whole;
}

static void
damage_regions(Damage *damage, Recording *recording, uint32_t rank, uint32_t id)
{
    LhOp *op = recording_op(recording, rank, id);

    if (op->kind == LH_OP_COMPUTE) {
        for (uint32_t i = 0; i < op->compute.regions_count; i++)
            damage_region(damage, recording, rank, id, &op->compute.regions[i],
                          &lh_kernels[op->compute.kernel]->operands[i]);
    } else if (op->kind == LH_OP_EXCHANGE) {
        for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
            LhPart *part = recording_part(recording, rank, op, i);

            for (uint32_t k = 0; k < part->regions_count; k++)
                damage_region(damage, recording, rank, id, &part->regions[k], NULL);
        }
    } else if (op->kind == LH_OP_COLLECTIVE) {
        for (uint32_t i = 0; i < op->collective.tensors_count; i++) {
            damage_region(damage, recording, rank, id, &op->collective.send[i], NULL);
            damage_region(damage, recording, rank, id, &op->collective.receive[i], NULL);
        }
    }
}

static bool
names_slot(const LhRegion *regions, uint32_t count, uint32_t slot)
{
    for (uint32_t i = 0; i < count; i++) {
        if (regions[i].slot == slot)
            return true;
    }
    return false;
}

static bool
op_uses(const Recording *recording, uint32_t rank, const LhOp *op, uint32_t slot)
{
    if (op->kind == LH_OP_COMPUTE)
        return names_slot(op->compute.regions, op->compute.regions_count, slot);
    if (op->kind == LH_OP_COLLECTIVE)
        return names_slot(op->collective.send, op->collective.tensors_count, slot) ||
               names_slot(op->collective.receive, op->collective.tensors_count, slot);
    for (uint32_t i = 0; op->kind == LH_OP_EXCHANGE && i < op->exchange.parts_count; i++) {
        const LhPart *part = recording_part(recording, rank, op, i);

        if (names_slot(part->regions, part->regions_count, slot))
            return true;
    }
    return false;
}

/* Whether the slot is used: with few ranks some of the buffers in the formulas are not. */
static bool
is_used(const Recording *recording, uint32_t slot)
{
    for (uint32_t rank = 0; rank < recording->program.params.ranks; rank++) {
        for (uint32_t id = 0; id < recording_count(recording, rank); id++) {
            if (op_uses(recording, rank, recording_op(recording, rank, id), slot))
                return true;
        }
    }
    return false;
}

/* Slots of another kind, type or layout, under every op that uses them. Activations outside
 * attention have neither. */
static void
damage_declarations(Damage *damage, const LhProgram *program)
{
    Recording *recording = recording_new(program);
    g_autofree LhSlot *slots =
        g_memdup2(program->slots, program->slots_count * sizeof(*program->slots));

    recording->program.slots = slots;
    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot whole = slots[i];

        if (!is_used(recording, i) || whole.kind == LH_TENSOR_HIDDEN)
            continue;
        for (uint32_t dtype = 0; lh_dtype_names[dtype] != NULL; dtype++) {
            slots[i].dtype = (LhDtype)dtype;
            if (slots[i].dtype == whole.dtype)
                continue;
            try_damage(damage, recording, 0, 0, whole.name, MUST_BE_FOUND);
        }
        slots[i] = whole;
        slots[i].head_dim *= 2;
        try_damage(damage, recording, 0, 0, whole.name, MUST_BE_FOUND);
        slots[i] = whole;
        slots[i].by_heads = !whole.by_heads;
        if (whole.role != LH_SLOT_TEMP)
            try_damage(damage, recording, 0, 0, whole.name, MUST_BE_FOUND);
        slots[i] = whole;
        for (uint32_t kind = 0; kind < LH_TENSOR_KINDS; kind++) {
            slots[i].kind = (LhTensorKind)kind;
            if (slots[i].kind != whole.kind)
                try_damage(damage, recording, 0, 0, whole.name, MUST_BE_FOUND);
        }
        slots[i] = whole;
    }
    recording_free(recording);
}

typedef void (*DamageOp)(Damage *damage, Recording *recording, uint32_t rank, uint32_t id);

/* Damages every op of a program of @schedule; at most one change in @harmless_max may be
 * harmless. Returns the number of changes: 0 if the schedule refuses @params. */
static uint32_t
damage_program(const LhSchedule *schedule, const LhProgramParams *params, DamageOp damage_op,
               uint32_t harmless_max)
{
    g_autoptr(LhProgram) program = fitting_program(schedule, params);
    Damage damage = { .schedule = schedule->name, .ranks = params->ranks };
    Recording *whole, *recording;

    if (program == NULL)
        return 0;
    whole = recording_new(program);
    recording = recording_new(program);
    for (uint32_t rank = 0; rank < params->ranks; rank++) {
        for (uint32_t id = 0; test_takes(rank) && id < recording_count(whole, rank); id++) {
            damage_op(&damage, recording, rank, id);
            recording_restore(recording, whole);
        }
    }
    recording_free(recording);
    recording_free(whole);
    ck_assert_msg(test_is_short() || (uint64_t)damage.harmless * harmless_max <= damage.made,
                  "%s, %u ranks: %u of %u changes were harmless", schedule->name, params->ranks,
                  damage.harmless, damage.made);
    return damage.made;
}

/* Damages causal programs of 4 ranks of every schedule; of every other schedule also full ones,
 * ones without overlap, or of 5 ranks. Returns how many schedules were damaged. */
static uint32_t
damage_all(DamageOp damage_op, uint32_t harmless_max)
{
    uint32_t damaged = 0;

    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        /* bits: 5 ranks, causal, with overlap */
        const uint32_t combinations[] = { 6, (const uint32_t[]){ 0, 3, 5 }[s % 3] };
        uint32_t made = 0;

        for (uint32_t c = 0; c < G_N_ELEMENTS(combinations); c++) {
            const uint32_t i = combinations[c];
            const LhProgramParams params =
                params_of(4 + i % 2, LH_PASS_BOTH, i & 2, (i & 4) != 0, true);

            if (c == 0 || test_takes_of(s, 4))
                made += damage_program(lh_schedules[s], &params, damage_op, harmless_max);
        }
        damaged += made > 0;
    }
    return damaged;
}

static uint32_t
count_schedules(void)
{
    uint32_t count = 0;

    while (lh_schedules[count] != NULL)
        count++;
    return count;
}

START_TEST(verify_finds_dropped_ops)
{
    ck_assert_uint_eq(damage_all(damage_by_dropping, 1), count_schedules());
}
END_TEST

START_TEST(verify_finds_dropped_orders)
{
    ck_assert_uint_gt(damage_all(damage_order, 1), 0);
}
END_TEST

START_TEST(verify_finds_changed_memory)
{
    ck_assert_uint_gt(damage_all(damage_memory, UINT32_MAX), 0);
}
END_TEST

START_TEST(verify_finds_changed_messages)
{
    ck_assert_uint_gt(damage_all(damage_messages, UINT32_MAX), 0);
}
END_TEST

START_TEST(verify_finds_changed_collectives)
{
    damage_all(damage_collective, 4);
}
END_TEST

START_TEST(verify_finds_swapped_peers)
{
    ck_assert_uint_gt(damage_all(damage_peers, UINT32_MAX), 0);
}
END_TEST

START_TEST(verify_finds_changed_masks)
{
    ck_assert_uint_gt(damage_all(damage_mask, 8), 0);
}
END_TEST

/* Programs that use positions anyway, and those that do under a window. */
START_TEST(verify_finds_changed_positions)
{
    damage_all(damage_positions, 4);
    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        LhProgramParams params = params_of(4, LH_PASS_BOTH, true, true, true);

        params.mask.window = 11;
        if ((lh_schedules[s]->masks & LH_MASKS_WINDOW) == 0)
            continue;
        damage_program(lh_schedules[s], &params, damage_mask, 8);
        ck_assert_msg(damage_program(lh_schedules[s], &params, damage_positions, 4) > 0,
                      "%s uses no positions under a window", lh_schedules[s]->name);
    }
}
END_TEST

START_TEST(verify_finds_turned_first)
{
    ck_assert_uint_gt(damage_all(damage_first, UINT32_MAX), 0);
}
END_TEST

START_TEST(verify_finds_changed_operands)
{
    ck_assert_uint_eq(damage_all(damage_regions, 20), count_schedules());
}
END_TEST

/* A single rank may leave its gradients in fp32: the kernel supports it, and no op reads them. */
START_TEST(verify_finds_changed_declarations)
{
    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        for (uint32_t ranks = 2; ranks <= 5; ranks++) {
            const LhProgramParams params = params_of(ranks, LH_PASS_BOTH, true, true, true);
            g_autoptr(LhProgram) program = fitting_program(lh_schedules[s], &params);
            Damage damage = { .schedule = lh_schedules[s]->name, .ranks = ranks };

            if (program != NULL && test_takes_of(s + ranks, 4))
                damage_declarations(&damage, program);
            ck_assert_uint_eq(damage.found, damage.made);
        }
    }
}
END_TEST

/* A single rank writes its outputs directly, in one op per pass: no change is harmless. */
START_TEST(verify_finds_damage_to_one_rank)
{
    static const DamageOp damages[] = { damage_by_dropping, damage_mask, damage_regions };
    const LhProgramParams params = params_of(1, LH_PASS_BOTH, true, true, true);

    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        for (uint32_t i = 0; i < G_N_ELEMENTS(damages); i++)
            ck_assert_uint_gt(damage_program(lh_schedules[s], &params, damages[i], UINT32_MAX), 0);
    }
}
END_TEST

/* Schedules in which k and v travel in separate calls. */
START_TEST(verify_finds_damage_to_halves)
{
    static const char *const names[] = { "ulysses", "usp", "te-a2a" };
    static const struct {
        DamageOp damage;
        uint32_t harmless_max;
    } damages[] = { { damage_by_dropping, 1 },
                    { damage_order, 1 },
                    { damage_messages, UINT32_MAX },
                    { damage_collective, 4 },
                    { damage_regions, 20 } };

    for (uint32_t s = 0; s < G_N_ELEMENTS(names); s++) {
        LhProgramParams params = params_of(4, LH_PASS_BOTH, true, true, false);
        uint32_t made = 0;

        set_option(&params, "published_code", 1);
        for (uint32_t i = 0; i < G_N_ELEMENTS(damages); i++)
            made += damage_program(lh_schedule_find(names[s], NULL), &params, damages[i].damage,
                                   damages[i].harmless_max);
        ck_assert_uint_gt(made, 0);
    }
}
END_TEST

LH_TEST_MAIN("verify_damage", verify_finds_dropped_ops, verify_finds_dropped_orders,
             verify_finds_changed_memory, verify_finds_changed_messages,
             verify_finds_changed_collectives, verify_finds_swapped_peers,
             verify_finds_changed_masks, verify_finds_changed_positions, verify_finds_turned_first,
             verify_finds_changed_operands, verify_finds_changed_declarations,
             verify_finds_damage_to_one_rank, verify_finds_damage_to_halves)
