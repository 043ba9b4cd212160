/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members and algorithms of collectives, and the closed forms. With s bytes per rank, n ranks and
 * t(x) the time of the slowest hop from one member to the next, which is the latency + the time of
 * its busiest link in one step, with 1/k of x for each of the k rings that cross it: all-gather and
 * reduce-scatter (n-1) t(s); all-reduce 2 (n-1) t(s); all-to-all (n-1) t(s/n); broadcast in c
 * pieces (n-1) latency + (n-2+c)/c s / bandwidth, for the tier of links with the largest result.
 * Links are not shared with anything else.
 */
#include "sim/network/collectives/collectives.h"

#include "program/collective_semantics.h"
#include "sim/network/collectives/collective_measured.h"
#include "sim/network/collectives/collectives_private.h"
#include "sim/network/collectives/script.h"
#include "sim/network/traffic.h"

#include <math.h>

/* NULL: closed form. */
static const LhAlgorithm *const algorithms[][LH_COLL_KINDS] = {
    [LH_COLLECTIVES_RING] = { [LH_COLL_ALL_GATHER] = &lh_algorithm_ring,
                              [LH_COLL_REDUCE_SCATTER] = &lh_algorithm_ring,
                              [LH_COLL_ALL_REDUCE] = &lh_algorithm_ring,
                              [LH_COLL_ALL_TO_ALL] = &lh_algorithm_one_shot,
                              [LH_COLL_BROADCAST] = &lh_algorithm_chain },
    [LH_COLLECTIVES_TREE] = { [LH_COLL_ALL_GATHER] = &lh_algorithm_ring,
                              [LH_COLL_REDUCE_SCATTER] = &lh_algorithm_ring,
                              [LH_COLL_ALL_REDUCE] = &lh_algorithm_tree,
                              [LH_COLL_ALL_TO_ALL] = &lh_algorithm_one_shot,
                              [LH_COLL_BROADCAST] = &lh_algorithm_chain },
    [LH_COLLECTIVES_PAIRWISE] = { [LH_COLL_ALL_GATHER] = &lh_algorithm_ring,
                                  [LH_COLL_REDUCE_SCATTER] = &lh_algorithm_ring,
                                  [LH_COLL_ALL_REDUCE] = &lh_algorithm_ring,
                                  [LH_COLL_ALL_TO_ALL] = &lh_algorithm_pairwise,
                                  [LH_COLL_BROADCAST] = &lh_algorithm_chain },
    [LH_COLLECTIVES_DIRECT] = { [LH_COLL_ALL_GATHER] = &lh_algorithm_one_shot,
                                [LH_COLL_REDUCE_SCATTER] = &lh_algorithm_one_shot,
                                [LH_COLL_ALL_REDUCE] = &lh_algorithm_one_shot,
                                [LH_COLL_ALL_TO_ALL] = &lh_algorithm_one_shot,
                                [LH_COLL_BROADCAST] = &lh_algorithm_chain },
    [LH_COLLECTIVES_NCCL] = { [LH_COLL_ALL_TO_ALL] =
                                  &lh_algorithm_one_shot }, /* if the time is not known */
    [LH_COLLECTIVES_CLOSED_FORM] = { NULL },
    [LH_COLLECTIVES_FLUID] = { [LH_COLL_ALL_GATHER] = &lh_algorithm_fluid,
                               [LH_COLL_REDUCE_SCATTER] = &lh_algorithm_fluid,
                               [LH_COLL_ALL_REDUCE] = &lh_algorithm_fluid,
                               [LH_COLL_ALL_TO_ALL] = &lh_algorithm_one_shot,
                               [LH_COLL_BROADCAST] = &lh_algorithm_chain },
};

static guint
communicator_hash(gconstpointer c)
{
    return lh_communicator_hash(&((const LhCommunicator *)c)->key);
}

static gboolean
communicator_equal(gconstpointer a, gconstpointer b)
{
    return lh_communicator_compare(&((const LhCommunicator *)a)->key,
                                   &((const LhCommunicator *)b)->key) == 0;
}

static void
free_communicator(gpointer communicator)
{
    lh_communicator_free(communicator);
}

LhCollectives *
lh_collectives_new(const LhNetwork *network, const LhDevice *device, LhCollectiveModel model,
                   bool shared, const LhSymmetryGroups *fold)
{
    LhCollectives *cs = g_new0(LhCollectives, 1);

    cs->network = network;
    cs->device = device;
    cs->model = model;
    cs->shared = shared;
    cs->fold = fold;
    cs->communicators =
        g_hash_table_new_full(communicator_hash, communicator_equal, free_communicator, NULL);
    return cs;
}

void
lh_collectives_free(LhCollectives *cs)
{
    if (cs == NULL)
        return;
    g_hash_table_unref(cs->communicators);
    for (uint32_t i = 0; i < cs->tickets_count; i++)
        g_free(cs->tickets[i].pieces);
    g_free(cs->tickets);
    g_free(cs->free);
    g_free(cs);
}

/*
 * Returns the communicator of the op; NULL if its group is invalid. It is assumed to share the
 * channels of one that spans the whole group of @rank (ncclCommSplit with splitShare): if that
 * spans nodes, collectives within a node have no more channels.
 */
static LhCommunicator *
communicator_of(LhCollectives *cs, const LhProgram *program, uint32_t rank, const LhOp *op)
{
    const LhGroup whole = lh_program_group(program, rank);
    LhCommunicator key;
    LhCommunicator *c;

    if (!lh_group_is_valid(&op->collective.group, cs->network->ranks))
        return NULL;
    key.key = lh_op_communicator(op);
    c = g_hash_table_lookup(cs->communicators, &key);
    if (c != NULL)
        return c;
    c = lh_communicator_new(cs->network, cs->fold, &key.key, &whole);
    c->number = g_hash_table_size(cs->communicators);
    g_hash_table_add(cs->communicators, c);
    return c;
}

static uint32_t
take_ticket(LhCollectives *cs)
{
    if (cs->free_count > 0)
        return cs->free[--cs->free_count];
    if (cs->tickets_count == cs->tickets_capacity) {
        cs->tickets_capacity = MAX(16, cs->tickets_capacity * 2);
        cs->tickets = g_renew(LhTicket, cs->tickets, cs->tickets_capacity);
        cs->free = g_renew(uint32_t, cs->free, cs->tickets_capacity);
    }
    return cs->tickets_count++;
}

/* Bytes that the call sends to each member, or receives from each; NULL if its pieces are equal. */
static uint64_t *
pieces_of(const LhProgram *program, const LhCollectiveCall *call, bool sent)
{
    uint64_t *pieces;

    if (call->counts == NULL)
        return NULL;
    pieces = g_new0(uint64_t, call->members);
    for (uint32_t t = 0; t < call->op->collective.tensors_count; t++) {
        const LhRegion region =
            sent ? call->op->collective.send[t] : call->op->collective.receive[t];
        const uint64_t part_bytes = lh_region_part_bytes(program, region);

        for (uint32_t peer = 0; peer < call->members; peer++)
            pieces[peer] += part_bytes * (sent ? lh_collective_sent_parts(call, t, peer)
                                               : lh_collective_received_parts(call, t, peer));
    }
    return pieces;
}

uint32_t
lh_collectives_issue(LhCollectives *cs, const LhProgram *program, uint32_t rank, const LhOp *op,
                     const uint32_t *counts)
{
    LhCommunicator *communicator = communicator_of(cs, program, rank, op);
    LhCollectiveCall call;
    uint32_t ticket;

    if (communicator == NULL)
        return UINT32_MAX;
    call = lh_collective_call(op, counts, rank);
    if (call.position == UINT32_MAX)
        return UINT32_MAX;
    ticket = take_ticket(cs);
    cs->tickets[ticket] = (LhTicket){ .communicator = communicator,
                                      .kind = op->collective.kind,
                                      .turn = communicator->turns[call.position]++,
                                      .position = call.position,
                                      .bytes = op->collective.wire_bytes,
                                      .pieces = pieces_of(program, &call, true) };
    return ticket;
}

/* Resolves `auto`. */
static LhCollectiveModel
model_of(const LhCollectives *cs, const LhCollective *c)
{
    if (cs->model != LH_COLLECTIVES_AUTO)
        return cs->model;
    if (c->size > 1 &&
        lh_nccl_measured_is_measured(
            lh_communicator_native(cs->network, cs->device, c->communicator), c->kind))
        return LH_COLLECTIVES_NCCL;
    return c->size > LH_RING_MEMBERS_MAX ? LH_COLLECTIVES_FLUID : LH_COLLECTIVES_RING;
}

/* NULL: closed form. */
static const LhAlgorithm *
algorithm_of(const LhCollectives *cs, const LhCollective *c)
{
    if (c->model == LH_COLLECTIVES_NCCL && c->size > 1 &&
        lh_nccl_measured_is_known(lh_communicator_native(cs->network, cs->device, c->communicator),
                                  c->kind))
        return &lh_algorithm_measured;
    return algorithms[c->model][c->kind];
}

/* Describes a collective from one call, before any member has joined. */
static LhCollective
describe(LhCollectives *cs, const LhTicket *ticket)
{
    LhCommunicator *communicator = ticket->communicator;
    LhCollective c = { .communicator = communicator,
                       .kind = ticket->kind,
                       .turn = ticket->turn,
                       .size = communicator->size,
                       .likes = communicator->likes,
                       .node_ranks = cs->network->gpus_per_node,
                       .shard_bytes = ticket->bytes };
    const LhWays *ways;

    c.steps = lh_collective_steps(c.kind, c.size);
    c.model = model_of(cs, &c);
    c.algorithm = algorithm_of(cs, &c);
    /* NCCL sends a broadcast whose time is known in a chain along every ring. */
    ways = lh_communicator_ways(cs->network, communicator,
                                c.algorithm == &lh_algorithm_measured && c.kind == LH_COLL_BROADCAST
                                    ? LH_COLL_ALL_GATHER
                                    : c.kind);
    c.rings = &ways->rings;
    c.neighbours = &ways->neighbours;
    return c;
}

/* Time of a member's reduction in a one-shot collective, once everything has arrived: it reads one
 * slice per member and writes one, at memory bandwidth. All ranks that share cores are assumed to
 * reduce at the same time, each in its own group, as in a schedule. */
static LhTime
sum_of(const LhDevice *device, const LhCollective *c)
{
    const double bytes = ((double)c->size + 1) * (double)c->shard_bytes;
    const double bytes_per_s = device->memory_bandwidth * device->memory_efficiency;
    const double ranks =
        device->machine_cores == 0
            ? 1
            : fmax((double)device->machine_ranks / (double)device->machine_cores, 1);

    if (c->size < 2 || c->algorithm != &lh_algorithm_one_shot || !lh_collective_reduces(c->kind) ||
        bytes_per_s <= 0)
        return 0;
    return lh_time_from_ps(bytes * ranks / bytes_per_s * (double)LH_PS_PER_S);
}

static LhCollective *
collective_of(LhCollectives *cs, const LhTicket *ticket)
{
    LhCommunicator *communicator = ticket->communicator;
    LhCollective *c = communicator->open;

    while (c != NULL && c->turn != ticket->turn)
        c = c->next;
    if (c != NULL)
        return c;
    c = g_new(LhCollective, 1);
    *c = describe(cs, ticket);
    if (cs->shared && (c->algorithm == &lh_algorithm_ring || c->algorithm == &lh_algorithm_fluid))
        c->shares = lh_communicator_shares(cs->network, communicator, &communicator->rails);
    if (cs->shared && c->algorithm == &lh_algorithm_tree)
        c->tree_rounds =
            lh_tree_rounds_of(lh_communicator_tree_order(cs->network, &communicator->rails, c), c);
    if (c->algorithm == &lh_algorithm_fluid)
        c->delay_ps =
            lh_communicator_fluid_delay(cs->network, communicator, &communicator->rails, c);
    c->overhead_ps = cs->network->topology->nic_overhead_ps;
    c->sum_ps = sum_of(cs->device, c);
    c->members = g_new0(LhMember, c->size);
    if (ticket->pieces != NULL)
        c->pieces = g_new0(uint64_t *, c->size);
    if (c->algorithm != NULL)
        c->state = g_malloc0_n((gsize)c->size * c->rings->count, c->algorithm->member_size);
    c->next = communicator->open;
    communicator->open = c;
    return c;
}

bool
lh_collectives_differ(LhCollectives *cs, uint32_t ticket, bool *row)
{
    LhCollective *c = collective_of(cs, &cs->tickets[ticket]);
    const LhSymmetricMembers *likes = c->likes;

    if (likes == NULL || (c->algorithm == NULL && !likes->alien))
        return false;
    *row = likes->rows;
    if (likes->alien)
        return true;
    if (c->algorithm == &lh_algorithm_measured) {
        c->whole = c->pieces == NULL && !lh_collective_traffic(cs, c)->folds;
        return c->pieces != NULL;
    }
    if (c->algorithm == &lh_algorithm_fluid) {
        c->whole = !likes->rails_same;
        return false;
    }
    return c->algorithm != &lh_algorithm_ring || !likes->rails_same;
}

/* Joins the member at @position. */
static void
join(LhCollective *c, uint32_t position, uint32_t op)
{
    c->members[position] =
        (LhMember){ (uint32_t)lh_group_member(lh_collective_group(c), position), op, true };
    c->joined++;
    if (c->algorithm == NULL)
        return;
    c->ends_left += c->algorithm->ends(c, position);
    c->algorithm->joined(c, position);
}

LhCollective *
lh_collectives_join(LhCollectives *cs, uint32_t ticket, uint32_t op, uint32_t *position)
{
    LhTicket *t = &cs->tickets[ticket];
    LhCollective *c = collective_of(cs, t);
    const LhSymmetricMembers *likes = c->likes;

    if (c->kind != t->kind || (c->pieces != NULL) != (t->pieces != NULL))
        return NULL;
    *position = t->position;
    if (c->pieces != NULL)
        c->pieces[t->position] = g_steal_pointer(&t->pieces);
    if (likes == NULL)
        join(c, t->position, op);
    for (uint32_t i = likes != NULL ? likes->first[t->position] : 0;
         likes != NULL && i < likes->first[t->position + 1]; i++)
        join(c, likes->likes[i], op);
    cs->free[cs->free_count++] = ticket;
    return c;
}

const LhRingHop *
lh_collectives_hops(const LhCollectives *cs, const LhCollective *c)
{
    return lh_communicator_hops(cs->network, c->communicator, &c->communicator->rails);
}

/* The algorithm whose messages a known time models. */
static const LhAlgorithm *
scripted(const LhCollective *c)
{
    if (c->algorithm != NULL && c->algorithm != &lh_algorithm_measured)
        return c->algorithm;
    return algorithms[c->size > LH_RING_MEMBERS_MAX ? LH_COLLECTIVES_FLUID : LH_COLLECTIVES_RING]
                     [c->kind];
}

uint32_t
lh_collectives_number(LhCollectives *cs, const LhScriptCall *of)
{
    const LhCommunicator *communicator = communicator_of(cs, of->program, of->rank, of->op);

    if (communicator == NULL ||
        lh_group_position(&of->op->collective.group, of->rank) == UINT32_MAX)
        return UINT32_MAX;
    return communicator->number;
}

void
lh_collectives_script(LhCollectives *cs, const LhScriptCall *of,
                      void (*tell)(void *data, const LhScriptMessage *message), void *data)
{
    const LhCollectiveCall call = lh_collective_call(of->op, of->counts, of->rank);
    g_autofree uint64_t *sent = pieces_of(of->program, &call, true);
    g_autofree uint64_t *received = pieces_of(of->program, &call, false);
    g_autofree uint64_t **pieces = g_new0(uint64_t *, call.members);
    const LhTicket ticket = { .communicator = communicator_of(cs, of->program, of->rank, of->op),
                              .kind = of->op->collective.kind,
                              .bytes = of->op->collective.wire_bytes };
    LhScript script = { .tell = tell, .data = data };
    LhCollective c;

    g_assert(ticket.communicator != NULL); /* a rank calls collectives of its own groups only */
    c = describe(cs, &ticket);
    script.collective = &c;
    pieces[call.position] = sent;
    c.pieces = sent != NULL ? pieces : NULL;
    c.received = received;
    scripted(&c)->script(&c, call.position, &script);
}

/* ---- closed forms ---- */

static LhRingHop *
slowest_by_tier(const LhNetwork *network, const LhCommunicator *c, LhWays *ways)
{
    const LhRingHop *hops = lh_communicator_hops(network, c, ways);
    LhRingHop *slowest = g_new0(LhRingHop, LH_TIERS);

    for (uint64_t i = 0; i < lh_ring_hops_count(&ways->rings); i++) {
        LhRingHop *hop = &slowest[hops[i].tier];

        hop->latency_s = fmax(hop->latency_s, hops[i].latency_s);
        hop->s_per_byte = fmax(hop->s_per_byte, hops[i].s_per_byte / ways->rings.count);
    }
    return slowest;
}

/* The slowest hop of every tier. Borrowed. */
static const LhRingHop *
tiers_of(const LhNetwork *network, const LhCollective *c)
{
    LhWays *ways = lh_communicator_ways(network, c->communicator, c->kind);

    if (ways->slowest == NULL)
        ways->slowest = slowest_by_tier(network, c->communicator, ways);
    return ways->slowest;
}

/* The largest piece of an all-to-all. */
static double
largest_piece(const LhCollective *c)
{
    uint64_t largest = 0;

    for (uint32_t from = 0; from < c->size; from++) {
        for (uint32_t to = 0; to < c->size; to++)
            largest = MAX(largest, from == to ? 0 : lh_collective_piece(c, from, to));
    }
    return (double)largest;
}

/* The closed form if all hops were like @hop. */
static double
seconds_by_hop(const LhCollective *c, const LhRingHop *hop, double bytes)
{
    const double n = c->size, s = (double)c->shard_bytes;
    const double step = hop->latency_s + bytes * hop->s_per_byte;
    double pieces;

    if (c->kind == LH_COLL_ALL_REDUCE)
        return 2 * (n - 1) * step;
    if (c->kind != LH_COLL_BROADCAST)
        return (n - 1) * step;
    pieces = lh_pipeline_pieces(c->shard_bytes);
    return (n - 1) * hop->latency_s + (n - 2 + pieces) / pieces * s * hop->s_per_byte;
}

/* The maximum over all tiers. The tier with the slowest single piece may not be the one with the
 * slowest broadcast, and a faster link handing over to it must not make it slower. */
static double
closed_form_seconds(const LhNetwork *network, const LhCollective *c)
{
    const LhRingHop *hops = tiers_of(network, c);
    const double s = (double)c->shard_bytes;
    const double bytes = c->kind != LH_COLL_ALL_TO_ALL ? s
                         : c->pieces != NULL           ? largest_piece(c)
                                                       : s / c->size;
    double longest = 0;

    for (uint32_t tier = 0; tier < LH_TIERS; tier++)
        longest = fmax(longest, seconds_by_hop(c, &hops[tier], bytes));
    return longest;
}

LhTime
lh_collectives_duration(LhCollectives *cs, LhCollective *c, int *provenance)
{
    uint64_t part_bytes[LH_RINGS_MAX];
    LhMeasuredTime time;

    *provenance = LH_PROVENANCE_MEASURED; /* no constants beside those of links */
    if (c->size == 1)
        return 0;
    if (c->algorithm == NULL)
        return lh_time_from_ps(closed_form_seconds(cs->network, c) * (double)LH_PS_PER_S);
    lh_traffic_parts(lh_collective_traffic(cs, c), c, part_bytes);
    time = lh_collective_measured(cs, c, part_bytes, provenance);
    return time.links_ps + time.floor_ps;
}
