/*
 * Collectives of a step: they copy values, or add up sums whose terms are disjoint. Whether the
 * right ranks meet shows in what their results are used for.
 */
#include "verify/values.h"

/* One tensor of a meeting. */
typedef struct {
    LhValues *v;
    const LhMeeting *meeting;
    uint32_t tensor;
} Movement;

static uint32_t
member(const Movement *m, uint32_t position)
{
    return m->v->proof->meeting_ops[m->meeting->first + position];
}

static const LhRegion *
send_region(const Movement *m, uint32_t position)
{
    return &m->v->proof->ops[member(m, position)].collective.send[m->tensor];
}

static const LhRegion *
receive_region(const Movement *m, uint32_t position)
{
    return &m->v->proof->ops[member(m, position)].collective.receive[m->tensor];
}

static LhCollectiveCall
call_of(const Movement *m, uint32_t position)
{
    const LhProof *proof = m->v->proof;
    const uint32_t g = member(m, position);

    return lh_collective_call(&proof->ops[g], proof->counts, proof->op_rank[g]);
}

/* Half of a part is none of the values that a step has. */
static LhValue
take_sent(const Movement *m, uint32_t position, uint32_t i)
{
    const LhRegion *region = send_region(m, position);

    if (region->half != LH_HALF_BOTH) {
        FIND_VALUE_OF(m->v, member(m, position), region->slot,
                      "moves half of a tensor outside attention");
        return (LhValue){ .kind = LH_VALUE_SUSPECT };
    }
    return lh_values_take(m->v, member(m, position), region->slot, region->part + i);
}

static void
put_received(const Movement *m, uint32_t position, uint32_t i, LhValue value)
{
    const LhRegion *region = receive_region(m, position);

    lh_values_put(m->v, member(m, position), region->slot, region->part + i, value);
}

static bool
is_sum(const LhValue *value)
{
    return (value->kind == LH_VALUE_ROLE && value->set != 0) || value->kind == LH_VALUE_GRADIENT ||
           value->kind == LH_VALUE_LOSS || value->kind == LH_VALUE_NORM;
}

/* sum += what member @position sends; false, with a finding or because of an earlier one. */
static bool
add_sent(const Movement *m, uint32_t position, const LhValue *from, LhValue *sum)
{
    LhValues *v = m->v;
    const uint32_t g = member(m, position);
    const LhSlot *slot = &v->proof->program->slots[send_region(m, position)->slot];
    const bool equal = is_sum(from) && (position == 0 || lh_values_equal(from, sum));
    const uint32_t set =
        equal && position > 0 ? lh_sets_unite(&v->sets, sum->set, from->set) : from->set;

    if (from->kind == LH_VALUE_SUSPECT)
        return false;
    if (!equal || set == LH_NONE) {
        g_autofree char *text = lh_proof_value_text(v, from);
        g_autofree char *other = position > 0 ? lh_proof_value_text(v, sum) : g_strdup("a sum");

        FIND_VALUE(g, send_region(m, position)->slot, "adds %s (slot %s) to %s%s", text, slot->name,
                   other, equal ? ", which has some of its terms" : ", where it does not belong");
        return false;
    }
    *sum = *from;
    sum->set = set;
    return true;
}

/* What lands in part @i of member @to's receive region: the sum of what all members send there. */
static LhValue
reduce(const Movement *m, uint32_t to, uint32_t i)
{
    LhValues *v = m->v;
    const LhValue suspect = { .kind = LH_VALUE_SUSPECT };
    LhValue sum = suspect;

    for (uint32_t j = 0; j < m->meeting->count; j++) {
        const LhCollectiveCall sender = call_of(m, j);
        const LhValue from = take_sent(m, j, lh_collective_sends(&sender, m->tensor, to).first + i);

        if (!add_sent(m, j, &from, &sum))
            return suspect;
    }
    if (sum.kind == LH_VALUE_ROLE &&
        lh_sets_size(&v->sets, sum.set) == lh_values_role_terms(v, (LhStepRole)sum.what, sum.layer))
        sum.set = 0;
    return sum;
}

static void
receive_copies(const Movement *m, uint32_t to)
{
    const LhCollectiveCall receiver = call_of(m, to);

    for (uint32_t j = 0; j < m->meeting->count; j++) {
        const LhCollectiveCall sender = call_of(m, j);
        const LhShare sent = lh_collective_sends(&sender, m->tensor, to);
        const LhShare received = lh_collective_receives(&receiver, m->tensor, j);

        for (uint32_t i = 0; i < sent.count; i++)
            put_received(m, to, received.first + i, take_sent(m, j, sent.first + i));
    }
}

/* Members that get the same sum get it at once: each may have sent from where it receives. */
static void
receive_sums(const Movement *m)
{
    const bool same = call_of(m, 0).op->collective.kind == LH_COLL_ALL_REDUCE;

    for (uint32_t i = 0; i < receive_region(m, 0)->count; i++) {
        const LhValue sum = same ? reduce(m, 0, i) : (LhValue){ 0 };

        for (uint32_t to = 0; to < m->meeting->count; to++)
            put_received(m, to, i, same ? sum : reduce(m, to, i));
    }
}

void
lh_values_hold_meeting(LhValues *v, const LhMeeting *meeting)
{
    const uint32_t g = v->proof->meeting_ops[meeting->first];
    const LhOp *first = &v->proof->ops[g];

    if (v->op_instance[g] != LH_NONE)
        return; /* attention's own */
    for (uint32_t i = 0; i < first->collective.tensors_count; i++) {
        const Movement m = { v, meeting, i };

        if (lh_collective_reduces(first->collective.kind)) {
            if (first->collective.reduction != LH_REDUCE_SUM)
                FIND_VALUE(g, -1, "merges what is no partial attention");
            receive_sums(&m);
            continue;
        }
        for (uint32_t to = 0; to < meeting->count; to++)
            receive_copies(&m, to);
    }
}
