/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of a step copy values, or add up sums whose terms are disjoint; messages between
 * stages copy. Whether the right ranks match follows from the checks where their results are used.
 */
#include "verify/step/step_moves.h"

#include "verify/movement.h"
#include "verify/step/step_table.h"

/* A movement and the values it applies to. */
typedef struct {
    LhStepValues *v;
    LhMovement of;
} StepMovement;

/* Takes a sent value. Half of a part is not a value that a step has. */
static LhValue
take_sent(const StepMovement *m, uint32_t position, uint32_t i)
{
    const LhRegion *region = lh_movement_send(&m->of, position);

    if (region->half != LH_HALF_BOTH) {
        FIND_VALUE_OF(m->v, lh_movement_op(&m->of, position), region->slot,
                      "moves half of a tensor outside attention");
        return (LhValue){ .kind = LH_VALUE_SUSPECT };
    }
    return lh_step_values_take(m->v, lh_movement_op(&m->of, position), region->slot,
                               region->part + i);
}

static void
put_received_value(const StepMovement *m, uint32_t position, uint32_t i, LhValue value)
{
    const LhRegion *region = lh_movement_receive(&m->of, position);

    lh_step_values_put(m->v, lh_movement_op(&m->of, position), region->slot, region->part + i,
                       value);
}

static bool
is_sum(const LhValue *value)
{
    return (value->kind == LH_VALUE_ROLE && value->set != 0) || value->kind == LH_VALUE_GRADIENT ||
           value->kind == LH_VALUE_LOSS || value->kind == LH_VALUE_NORM;
}

/* sum += what member @position sends; false, with a finding or because of an earlier one. */
static bool
add_sent_value(const StepMovement *m, uint32_t position, const LhValue *from, LhValue *sum)
{
    LhStepValues *v = m->v;
    const uint32_t g = lh_movement_op(&m->of, position);
    const LhSlot *slot = &v->proof->program->slots[lh_movement_send(&m->of, position)->slot];
    const bool equal = is_sum(from) && (position == 0 || lh_step_values_equal(from, sum));
    const uint32_t set =
        equal && position > 0 ? lh_sets_unite(&v->sets, sum->set, from->set) : from->set;

    if (from->kind == LH_VALUE_SUSPECT)
        return false;
    if (!equal || set == LH_NONE) {
        g_autofree char *text = lh_proof_value_text(v, from);
        g_autofree char *other = position > 0 ? lh_proof_value_text(v, sum) : g_strdup("a sum");

        FIND_VALUE(g, lh_movement_send(&m->of, position)->slot, "adds %s (slot %s) to %s%s", text,
                   slot->name, other,
                   equal ? ", which has some of its terms" : ", to which it does not belong");
        return false;
    }
    *sum = *from;
    sum->set = set;
    return true;
}

/* The value of part @i of member @to's receive region: the sum of what all members send there. */
static LhValue
reduce_values(const StepMovement *m, uint32_t to, uint32_t i)
{
    LhStepValues *v = m->v;
    const LhValue suspect = { .kind = LH_VALUE_SUSPECT };
    LhValue sum = suspect;

    for (uint32_t j = 0; j < m->of.meeting->count; j++) {
        const LhCollectiveCall sender = lh_movement_call(&m->of, j);
        const LhValue from =
            take_sent(m, j, lh_collective_sends(&sender, m->of.tensor, to).first + i);

        if (!add_sent_value(m, j, &from, &sum))
            return suspect;
    }
    if (sum.kind == LH_VALUE_ROLE &&
        lh_sets_size(&v->sets, sum.set) == lh_table_role_terms(v, (LhStepRole)sum.what, sum.layer))
        sum.set = 0;
    return sum;
}

static void
receive_copied_values(const StepMovement *m, uint32_t to)
{
    const LhCollectiveCall receiver = lh_movement_call(&m->of, to);

    for (uint32_t j = 0; j < m->of.meeting->count; j++) {
        const LhCollectiveCall sender = lh_movement_call(&m->of, j);
        const LhShare sent = lh_collective_sends(&sender, m->of.tensor, to);
        const LhShare received = lh_collective_receives(&receiver, m->of.tensor, j);

        for (uint32_t i = 0; i < sent.count; i++)
            put_received_value(m, to, received.first + i, take_sent(m, j, sent.first + i));
    }
}

/* Writes sums to their receivers at once: each member may have sent from where it receives. */
static void
receive_summed_values(const StepMovement *m)
{
    const bool same = lh_movement_call(&m->of, 0).op->collective.kind == LH_COLL_ALL_REDUCE;

    for (uint32_t i = 0; i < lh_movement_receive(&m->of, 0)->count; i++) {
        const LhValue sum = same ? reduce_values(m, 0, i) : (LhValue){ 0 };

        for (uint32_t to = 0; to < m->of.meeting->count; to++)
            put_received_value(m, to, i, same ? sum : reduce_values(m, to, i));
    }
}

void
lh_step_moves_meet(LhStepValues *v, const LhMeeting *meeting)
{
    const uint32_t g = v->proof->meeting_ops[meeting->first];
    const LhOp *first = &v->proof->ops[g];

    if (v->op_instance[g] != LH_NONE)
        return; /* handled by attention */
    for (uint32_t i = 0; i < first->collective.tensors_count; i++) {
        const StepMovement m = { v, { v->proof, meeting, i } };

        if (lh_collective_reduces(first->collective.kind)) {
            if (first->collective.reduction != LH_REDUCE_SUM)
                FIND_VALUE(g, -1, "merges values that are not partial attention results");
            receive_summed_values(&m);
            continue;
        }
        for (uint32_t to = 0; to < meeting->count; to++)
            receive_copied_values(&m, to);
    }
}

/* ---- messages ---- */

/* Records the sent values at the start of the exchange. Changing them before they have been sent
 * is a race, which another check reports. */
static void
send_part(LhStepValues *v, uint32_t g, uint32_t i)
{
    const LhPart *part = &v->proof->parts[i];

    v->sent_first[i] = v->sent->len;
    for (uint32_t k = 0; k < part->regions_count; k++) {
        const LhRegion *region = &part->regions[k];

        if (region->half != LH_HALF_BOTH)
            FIND_VALUE(g, region->slot, "moves half of a tensor outside attention");
        for (uint32_t c = 0; c < region->count; c++) {
            LhValue value = { .kind = LH_VALUE_SUSPECT };

            if (region->half == LH_HALF_BOTH)
                value = lh_step_values_take(v, g, region->slot, region->part + c);
            g_array_append_val(v->sent, value);
        }
    }
}

void
lh_step_moves_send(LhStepValues *v, uint32_t g)
{
    const LhOp *op = &v->proof->ops[g];

    if (v->sent == NULL) {
        v->sent = g_array_new(FALSE, FALSE, sizeof(LhValue));
        v->sent_first = g_new0(uint32_t, v->proof->parts_count);
    }
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        if (v->proof->parts[op->exchange.parts_first + i].send)
            send_part(v, g, op->exchange.parts_first + i);
    }
}

/* Both ends of a message name equally many parts of a slot. */
static void
receive_part(LhStepValues *v, uint32_t g, uint32_t i)
{
    const LhPart *part = &v->proof->parts[i];
    uint32_t next = v->sent_first[v->proof->part_match[i]];

    for (uint32_t k = 0; k < part->regions_count; k++) {
        for (uint32_t c = 0; c < part->regions[k].count; c++)
            lh_step_values_put(v, g, part->regions[k].slot, part->regions[k].part + c,
                               g_array_index(v->sent, LhValue, next++));
    }
}

void
lh_step_moves_receive(LhStepValues *v, uint32_t g)
{
    const LhOp *op = &v->proof->ops[g];

    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        if (!v->proof->parts[op->exchange.parts_first + i].send)
            receive_part(v, g, op->exchange.parts_first + i);
    }
}

void
lh_step_moves_clear(LhStepValues *v)
{
    g_clear_pointer(&v->sent, g_array_unref);
    g_free(v->sent_first);
}
