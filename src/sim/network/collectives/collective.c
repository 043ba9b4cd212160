/*
 * Who takes part in which collective, and the closed forms. With s bytes per rank, n ranks and t(x)
 * the time of the slowest hop from one member to the next, which is the latency + what its busiest
 * link carries in one step, 1/k of x for each of the k rings that cross it: all-gather and
 * reduce-scatter (n-1) t(s); all-reduce 2 (n-1) t(s); all-to-all (n-1) t(s/n); broadcast in c
 * pieces (n-1) latency + (n-2+c)/c s / bandwidth. Links are not shared with anything else.
 */
#include "program/collective_semantics.h"
#include "sim/network/collectives/script.h"
#include "sim/network/traffic.h"

#include <math.h>
#include <string.h>

/* One of the eight steps of NCCL's 4 MiB buffer (NVIDIA/nccl src/include/device.h). */
#define PIECE_BYTES (UINT64_C(512) << 10)
#define PIECES_MAX 64

/* LhCollective.delay_ps of what carries the same. */
typedef struct {
    uint32_t steps;
    uint64_t shard_bytes;
    LhTime ps;
} Delay;

/* The rings of a communicator, of one kind. */
typedef struct {
    bool made;
    LhRings rings;
    LhNeighbours neighbours;
    LhRingHop *hops;     /* by ring and place; NULL: not asked for yet */
    LhRingHop *slowest;  /* of them, by tier, per byte of a shard; NULL: not asked for yet */
    LhRingShare *shares; /* by position and ring; likewise NULL */
    GArray *delays;      /* of Delay; likewise NULL */
} Ways;

struct _LhCommunicator {
    LhCommunicatorKey key;
    uint32_t number; /* from 0, as they are asked for */
    uint32_t size;
    LhSpan span;
    uint32_t *turns;                   /* by position: collectives issued so far */
    Ways pairs;                        /* one ring in group order: all-to-all */
    Ways chain;                        /* likewise: broadcast */
    Ways rails;                        /* a ring for each NIC of a node: the others */
    LhNcclMeasured *native;            /* likewise NULL */
    LhTraffic *traffic[LH_COLL_KINDS]; /* of measured ones; likewise NULL */
    LhLikes *likes;                    /* NULL: every member is simulated */
    LhCollective *open;
};

/* An op between its issue and its start. */
typedef struct {
    LhCommunicator *communicator;
    LhCollectiveKind kind;
    uint32_t turn, position;
    uint64_t bytes;
    uint64_t *pieces; /* of an uneven all-to-all, owned: bytes to each member */
} Ticket;

struct _LhCollectives {
    const LhNetwork *network;
    const LhDevice *device;
    LhCollectiveModel model;
    bool shared;                  /* links are, by the messages of an instant */
    const LhSymmetryGroups *fold; /* NULL: none */
    GHashTable *communicators;    /* a set */
    Ticket *tickets;
    uint32_t tickets_count, tickets_capacity;
    uint32_t *free; /* tickets */
    uint32_t free_count;
};

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
    [LH_COLLECTIVES_NCCL] = { [LH_COLL_ALL_TO_ALL] = &lh_algorithm_one_shot }, /* if not known */
    [LH_COLLECTIVES_CLOSED_FORM] = { NULL },
    [LH_COLLECTIVES_FLUID] = { [LH_COLL_ALL_GATHER] = &lh_algorithm_fluid,
                               [LH_COLL_REDUCE_SCATTER] = &lh_algorithm_fluid,
                               [LH_COLL_ALL_REDUCE] = &lh_algorithm_fluid,
                               [LH_COLL_ALL_TO_ALL] = &lh_algorithm_one_shot,
                               [LH_COLL_BROADCAST] = &lh_algorithm_chain },
};

/* ---- communicators ---- */

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
collective_free(LhCollective *c)
{
    for (uint32_t i = 0; c->pieces != NULL && i < c->size; i++)
        g_free(c->pieces[i]);
    g_free(c->pieces);
    lh_traffic_free(c->traffic);
    g_free(c->members);
    g_free(c->state);
    g_free(c->hops);
    g_free(c);
}

static void
ways_clear(Ways *ways)
{
    lh_rings_clear(&ways->rings);
    g_free(ways->hops);
    g_free(ways->slowest);
    g_free(ways->shares);
    g_clear_pointer(&ways->delays, g_array_unref);
}

static void
likes_free(LhLikes *likes)
{
    if (likes == NULL)
        return;
    g_free(likes->stands);
    g_free(likes->first);
    g_free(likes->likes);
    g_free(likes->shifted);
    g_free(likes);
}

static void
communicator_free(gpointer data)
{
    LhCommunicator *communicator = data;

    while (communicator->open != NULL) {
        LhCollective *c = communicator->open;

        communicator->open = c->next;
        collective_free(c);
    }
    lh_nccl_measured_free(communicator->native);
    for (uint32_t kind = 0; kind < LH_COLL_KINDS; kind++)
        lh_traffic_free(communicator->traffic[kind]);
    likes_free(communicator->likes);
    ways_clear(&communicator->pairs);
    ways_clear(&communicator->chain);
    ways_clear(&communicator->rails);
    g_free(communicator->turns);
    g_free(communicator);
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
        g_hash_table_new_full(communicator_hash, communicator_equal, communicator_free, NULL);
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

static uint32_t
member(const LhCommunicator *c, uint32_t position)
{
    return (uint32_t)lh_group_member(&c->key.group, position);
}

/* ---- those that others stand for ---- */

/* Lists whom each member stands for. */
static void
list_likes(LhLikes *likes, uint32_t size)
{
    g_autofree uint32_t *filled = g_new0(uint32_t, size);

    likes->first = g_new0(uint32_t, size + 1);
    likes->likes = g_new(uint32_t, size);
    for (uint32_t i = 0; i < size; i++)
        likes->first[likes->stands[i] + 1]++;
    for (uint32_t i = 0; i < size; i++)
        likes->first[i + 1] += likes->first[i];
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t of = likes->stands[i];

        likes->likes[likes->first[of] + filled[of]++] = i;
    }
}

/* The position of the next of those that are a shift apart, in turn; UINT32_MAX: it is no member.
 */
static uint32_t
shifted(const LhSymmetryGroups *fold, const LhCommunicator *c, uint32_t position)
{
    const uint32_t rank = member(c, position);
    const uint32_t shift = rank / fold->of.shift % fold->of.shifts;
    const uint32_t next = (shift + fold->kept) % fold->of.shifts;

    return lh_group_position(&c->key.group, rank - shift * fold->of.shift + next * fold->of.shift);
}

/* What the members' likes are; false if there are none. */
static bool
find_likes(const LhSymmetryGroups *fold, const LhCommunicator *c, LhLikes *likes)
{
    bool any = false;

    likes->stands = g_new(uint32_t, c->size);
    likes->shifted = g_new0(uint32_t, c->size);
    likes->shifts = fold->of.shifts / fold->kept;
    for (uint32_t i = 0; i < c->size; i++) {
        const uint32_t rank = member(c, i), stands = lh_symmetry_rank(fold, rank);

        likes->stands[i] = lh_group_position(&c->key.group, stands);
        likes->shifted[i] = shifted(fold, c, i);
        any |= stands != rank;
        likes->rows |= stands % fold->of.row != rank % fold->of.row;
        likes->alien |= likes->stands[i] == UINT32_MAX;
        if (likes->shifted[i] == UINT32_MAX)
            likes->shifts = 1;
    }
    return any;
}

/* Whether the next member of a like is the like of the next one, in every ring. */
static bool
is_same_in_rings(const LhLikes *likes, const LhRings *rings)
{
    if (likes->rows || likes->alien || likes->shifts == 1)
        return false;
    for (uint32_t ring = 0; ring < rings->count; ring++) {
        for (uint32_t i = 0; i < rings->size; i++) {
            if (likes->shifted[lh_rings_next(rings, ring, i)] !=
                lh_rings_next(rings, ring, likes->shifted[i]))
                return false;
        }
    }
    return true;
}

/* NULL: every member is simulated. */
static LhLikes *
likes_new(const LhCollectives *cs, const LhCommunicator *c)
{
    LhLikes *likes;
    LhRings rings;

    if (cs->fold == NULL)
        return NULL;
    likes = g_new0(LhLikes, 1);
    if (!find_likes(cs->fold, c, likes)) {
        likes_free(likes);
        return NULL;
    }
    if (!likes->alien)
        list_likes(likes, c->size);
    lh_rings_init(&rings, cs->network, &c->key.group);
    likes->rails_same = is_same_in_rings(likes, &rings);
    lh_rings_clear(&rings);
    return likes;
}

static LhNeighbours
neighbours(const LhNetwork *network, const LhCommunicator *c, const Ways *ways)
{
    LhNeighbours hops = { 0 };

    for (uint64_t i = 0; i < lh_ring_hops_count(&ways->rings); i++) {
        const LhRoute route = lh_ring_hop_route(network, &c->key.group, &ways->rings, i);

        hops.tier = MAX(hops.tier, route.tier);
        hops.ctas = MAX(hops.ctas, route.ctas[c->span]);
    }
    return hops;
}

static Ways *
place_of_ways(LhCommunicator *c, LhCollectiveKind kind)
{
    switch (kind) {
    case LH_COLL_ALL_TO_ALL:
        return &c->pairs;
    case LH_COLL_BROADCAST:
        return &c->chain;
    default:
        return &c->rails;
    }
}

/* How the collectives of a kind go round. */
static const Ways *
ways_of(const LhNetwork *network, LhCommunicator *c, LhCollectiveKind kind)
{
    Ways *ways = place_of_ways(c, kind);

    if (ways->made)
        return ways;
    if (ways == &c->rails)
        lh_rings_init(&ways->rings, network, &c->key.group);
    else
        lh_rings_init_plain(&ways->rings, c->size, ways == &c->pairs);
    ways->neighbours = neighbours(network, c, ways);
    ways->made = true;
    return ways;
}

static const LhRingHop *
hops_of(const LhNetwork *network, const LhCommunicator *c, Ways *ways)
{
    if (ways->hops == NULL)
        ways->hops = lh_ring_hops_new(network, &c->key.group, &ways->rings);
    return ways->hops;
}

static const LhRingShare *
shares_of(const LhNetwork *network, const LhCommunicator *c, Ways *ways)
{
    const LhRings *rings = &ways->rings;
    const LhRingHop *hops = hops_of(network, c, ways);

    if (ways->shares != NULL)
        return ways->shares;
    ways->shares = g_new0(LhRingShare, (gsize)rings->size * rings->count);
    for (uint32_t ring = 0; ring < rings->count && rings->size > 1; ring++)
        for (uint32_t i = 0; i < rings->size; i++) {
            const LhRingHop *hop =
                &hops[(gsize)ring * rings->size + lh_rings_place(rings, ring, i)];

            ways->shares[(gsize)i * rings->count + ring] =
                (LhRingShare){ 1 / hop->s_per_byte, hop->tiers };
        }
    return ways->shares;
}

static LhTime
fluid_delay_of(const LhNetwork *network, const LhCommunicator *communicator, Ways *ways,
               const LhCollective *c)
{
    Delay delay = { c->steps, c->shard_bytes, 0 };

    if (ways->delays == NULL)
        ways->delays = g_array_new(FALSE, FALSE, sizeof(Delay));
    for (guint i = 0; i < ways->delays->len; i++) {
        const Delay *known = &g_array_index(ways->delays, Delay, i);

        if (known->steps == c->steps && known->shard_bytes == c->shard_bytes)
            return known->ps;
    }
    delay.ps = lh_fluid_delay(c, hops_of(network, communicator, ways));
    g_array_append_val(ways->delays, delay);
    return delay.ps;
}

/*
 * The communicator of the op; NULL if there can be none. It is taken to share the channels of one
 * that spans the whole group of @rank (ncclCommSplit with splitShare): where that spans nodes,
 * collectives within a node have no more of them.
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
    c = g_new0(LhCommunicator, 1);
    c->key = key.key;
    c->number = g_hash_table_size(cs->communicators);
    c->size = (uint32_t)lh_group_size(&c->key.group);
    c->span = lh_network_span(cs->network, &whole);
    c->turns = g_new0(uint32_t, c->size);
    c->likes = likes_new(cs, c);
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
        cs->tickets = g_renew(Ticket, cs->tickets, cs->tickets_capacity);
        cs->free = g_renew(uint32_t, cs->free, cs->tickets_capacity);
    }
    return cs->tickets_count++;
}

/* What the call sends to each member, or receives from each; NULL if its pieces are equal. */
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
    cs->tickets[ticket] = (Ticket){ .communicator = communicator,
                                    .kind = op->collective.kind,
                                    .turn = communicator->turns[call.position]++,
                                    .position = call.position,
                                    .bytes = op->collective.wire_bytes,
                                    .pieces = pieces_of(program, &call, true) };
    return ticket;
}

static LhNcclMeasured *
native_of(const LhCollectives *cs, LhCommunicator *c)
{
    if (c->native == NULL)
        c->native = lh_nccl_measured_new(cs->network, cs->device, &c->key.group);
    return c->native;
}

/* What `auto` stands for. */
static LhCollectiveModel
model_of(const LhCollectives *cs, const LhCollective *c)
{
    if (cs->model != LH_COLLECTIVES_AUTO)
        return cs->model;
    if (c->size > 1 && lh_nccl_measured_is_measured(native_of(cs, c->communicator), c->kind))
        return LH_COLLECTIVES_NCCL;
    return c->size > LH_RING_MEMBERS_MAX ? LH_COLLECTIVES_FLUID : LH_COLLECTIVES_RING;
}

/* NULL: closed form. */
static const LhAlgorithm *
algorithm_of(const LhCollectives *cs, const LhCollective *c)
{
    if (c->model == LH_COLLECTIVES_NCCL && c->size > 1 &&
        lh_nccl_measured_is_known(native_of(cs, c->communicator), c->kind))
        return &lh_algorithm_measured;
    return algorithms[c->model][c->kind];
}

/* What a collective is, as one call of it says, before anyone has joined. */
static LhCollective
describe(LhCollectives *cs, const Ticket *ticket)
{
    LhCommunicator *communicator = ticket->communicator;
    LhCollective c = { .communicator = communicator,
                       .kind = ticket->kind,
                       .turn = ticket->turn,
                       .size = communicator->size,
                       .likes = communicator->likes,
                       .node_ranks = cs->network->gpus_per_node,
                       .shard_bytes = ticket->bytes };
    const Ways *ways;

    c.steps = lh_collective_steps(c.kind, c.size);
    c.model = model_of(cs, &c);
    c.algorithm = algorithm_of(cs, &c);
    /* A broadcast whose time is known goes as NCCL has it: in a chain of every ring. */
    ways = ways_of(cs->network, communicator,
                   c.algorithm == &lh_algorithm_measured && c.kind == LH_COLL_BROADCAST
                       ? LH_COLL_ALL_GATHER
                       : c.kind);
    c.rings = &ways->rings;
    c.neighbours = &ways->neighbours;
    return c;
}

/* What a member of a one-shot reduction takes to add up what has come, once all is there: it reads
 * as many slices as there are members and writes one, at the speed of memory. All ranks that share
 * cores are taken to add up at the same time, each in its own group, as in a schedule. */
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
collective_of(LhCollectives *cs, const Ticket *ticket)
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
        c->shares = shares_of(cs->network, communicator, &communicator->rails);
    if (c->algorithm == &lh_algorithm_fluid)
        c->delay_ps = fluid_delay_of(cs->network, communicator, &communicator->rails, c);
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
    const LhLikes *likes = c->likes;

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

/* The member at @position is there. */
static void
join(LhCollective *c, uint32_t position, uint32_t op)
{
    c->members[position] = (LhMember){ member(c->communicator, position), op, true };
    c->joined++;
    if (c->algorithm == NULL)
        return;
    c->ends_left += c->algorithm->ends(c, position);
    c->algorithm->joined(c, position);
}

LhCollective *
lh_collectives_join(LhCollectives *cs, uint32_t ticket, uint32_t op, uint32_t *position)
{
    Ticket *t = &cs->tickets[ticket];
    LhCollective *c = collective_of(cs, t);
    const LhLikes *likes = c->likes;

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

/* Of a hop of a member that is simulated, that of its next like. */
static LhHop
shifted_hop(const LhCollective *c, const LhHop *hop)
{
    LhHop next = *hop;

    next.from = c->likes->shifted[hop->from];
    next.to = c->likes->shifted[hop->to];
    return next;
}

/* How many hops a hop stands for. */
static uint32_t
likes_of_hop(const LhCollective *c)
{
    return c->likes != NULL && !c->whole ? c->likes->shifts : 1;
}

/* That something has happened to a hop, and to those that it stands for. */
static void
tell_likes(LhCollective *c, const LhHop *hop, uint32_t likes,
           void (*happened)(LhCollective *c, const LhHop *hop))
{
    LhHop like;

    happened(c, hop);
    for (uint32_t i = 1; i < likes; i++) {
        like = shifted_hop(c, hop);
        hop = &like;
        happened(c, hop);
    }
}

void
lh_collective_left(LhCollective *c, const LhHop *hop)
{
    if (c->algorithm->left != NULL)
        tell_likes(c, hop, likes_of_hop(c), c->algorithm->left);
}

void
lh_collective_arrived(LhCollective *c, const LhHop *hop)
{
    const uint32_t likes = likes_of_hop(c);

    c->ends_left -= UINT64_C(2) * hop->pieces * likes;
    if (c->algorithm->arrived != NULL)
        tell_likes(c, hop, likes, c->algorithm->arrived);
}

void
lh_collective_settle(LhCollective *c)
{
    LhCollective **link = &c->communicator->open;

    if (c->joined < c->size || c->ends_left > 0)
        return;
    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
    collective_free(c);
}

void
lh_collective_send_hop(LhCollective *c, LhHop hop)
{
    if (c->likes != NULL && !c->whole && c->likes->stands[hop.from] != hop.from)
        return; /* another one's stands for it */
    if (c->hops_count == c->hops_capacity) {
        c->hops_capacity = MAX(4, c->hops_capacity * 2);
        c->hops = g_renew(LhHop, c->hops, c->hops_capacity);
    }
    c->hops[c->hops_count++] = hop;
}

void
lh_collective_send(LhCollective *c, uint32_t from, uint32_t to, uint32_t lane, uint64_t bytes)
{
    lh_collective_send_hop(
        c, (LhHop){ .from = from, .to = to, .lane = lane, .pieces = 1, .bytes = bytes });
}

uint32_t
lh_pipeline_pieces(uint64_t bytes)
{
    return (uint32_t)CLAMP((bytes + PIECE_BYTES - 1) / PIECE_BYTES, 1, PIECES_MAX);
}

uint64_t
lh_piece_bytes(uint64_t bytes, uint32_t piece, uint32_t count)
{
    return bytes / count + (piece < bytes % count);
}

const LhGroup *
lh_collective_group(const LhCollective *c)
{
    return &c->communicator->key.group;
}

const LhRingHop *
lh_collective_hops(const LhCollectives *cs, const LhCollective *c)
{
    return hops_of(cs->network, c->communicator, &c->communicator->rails);
}

/* ---- scripts ---- */

uint32_t
lh_script_add(LhScript *script, LhScriptKind kind, uint32_t peer, uint64_t bytes,
              const uint32_t *after, uint32_t after_count)
{
    uint32_t known[LH_RINGS_MAX + 1];
    LhScriptMessage message = { .kind = kind,
                                .peer = member(script->collective->communicator, peer),
                                .bytes = bytes,
                                .after = known };

    g_assert(after_count <= G_N_ELEMENTS(known));
    for (uint32_t i = 0; i < after_count; i++)
        if (after[i] != LH_SCRIPT_NONE)
            known[message.after_count++] = after[i];
    script->tell(script->data, &message);
    return script->count++;
}

void
lh_script_join(LhScript *script)
{
    lh_script_add(script, LH_SCRIPT_JOIN, 0, 0, NULL, 0);
}

/* What a time stands for. */
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
    const Ticket ticket = { .communicator = communicator_of(cs, of->program, of->rank, of->op),
                            .kind = of->op->collective.kind,
                            .bytes = of->op->collective.wire_bytes };
    LhScript script = { .tell = tell, .data = data };
    LhCollective c;

    g_assert(ticket.communicator != NULL); /* a rank calls collectives of its own groups */
    c = describe(cs, &ticket);
    script.collective = &c;
    pieces[call.position] = sent;
    c.pieces = sent != NULL ? pieces : NULL;
    c.received = received;
    scripted(&c)->script(&c, call.position, &script);
}

/* ---- closed forms ---- */

static LhRingHop *
slowest_by_tier(const LhNetwork *network, const LhCommunicator *c, Ways *ways)
{
    const LhRingHop *hops = hops_of(network, c, ways);
    LhRingHop *slowest = g_new0(LhRingHop, LH_TIERS);

    for (uint64_t i = 0; i < lh_ring_hops_count(&ways->rings); i++) {
        LhRingHop *hop = &slowest[hops[i].tier];

        hop->latency_s = fmax(hop->latency_s, hops[i].latency_s);
        hop->s_per_byte = fmax(hop->s_per_byte, hops[i].s_per_byte / ways->rings.count);
    }
    return slowest;
}

/* The hop from one member to the next that takes longest for @bytes. */
static LhRingHop
slowest_hop(const LhNetwork *network, const LhCollective *c, double bytes)
{
    LhCommunicator *communicator = c->communicator;
    Ways *ways = place_of_ways(communicator, c->kind);
    LhRingHop slowest = { 0 };

    if (ways->slowest == NULL)
        ways->slowest = slowest_by_tier(network, communicator, ways);
    for (uint32_t tier = 0; tier < LH_TIERS; tier++) {
        const LhRingHop hop = ways->slowest[tier];

        if (hop.latency_s + bytes * hop.s_per_byte > slowest.latency_s + bytes * slowest.s_per_byte)
            slowest = hop;
    }
    return slowest;
}

/* What a rank would send, its own part included, in an all-to-all of equal pieces that keeps it as
 * busy as the busiest one is here: it sends and receives at once. */
static double
busiest_bytes(const LhCollective *c)
{
    uint64_t busiest = 0;

    for (uint32_t a = 0; a < c->size; a++) {
        uint64_t sent = 0, received = 0;

        for (uint32_t b = 0; b < c->size; b++) {
            sent += a == b ? 0 : lh_collective_piece(c, a, b);
            received += a == b ? 0 : lh_collective_piece(c, b, a);
        }
        busiest = MAX(busiest, MAX(sent, received));
    }
    return (double)busiest * c->size / (c->size - 1);
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

static double
closed_form_seconds(const LhNetwork *network, const LhCollective *c)
{
    const double n = c->size, s = (double)c->shard_bytes;
    const double bytes = c->kind != LH_COLL_ALL_TO_ALL ? s
                         : c->pieces != NULL           ? largest_piece(c)
                                                       : s / n;
    const LhRingHop hop = slowest_hop(network, c, bytes);
    const double step = hop.latency_s + bytes * hop.s_per_byte;
    double pieces;

    if (c->kind == LH_COLL_ALL_REDUCE)
        return 2 * (n - 1) * step;
    if (c->kind != LH_COLL_BROADCAST)
        return (n - 1) * step;
    pieces = lh_pipeline_pieces(c->shard_bytes);
    return (n - 1) * hop.latency_s + (n - 2 + pieces) / pieces * s * hop.s_per_byte;
}

const LhTraffic *
lh_collective_traffic(LhCollectives *cs, LhCollective *c)
{
    LhTraffic **traffic = c->pieces != NULL ? &c->traffic : &c->communicator->traffic[c->kind];

    if (*traffic == NULL)
        *traffic = lh_traffic_new(
            cs->network, c, lh_nccl_measured_algorithm(native_of(cs, c->communicator), c->kind),
            cs->fold);
    return *traffic;
}

LhMeasuredTime
lh_collective_measured(LhCollectives *cs, LhCollective *c, const uint64_t *part_bytes,
                       int *provenance)
{
    double floor_s;
    const double seconds = lh_nccl_measured_parts(
        native_of(cs, c->communicator), c->kind,
        c->pieces != NULL ? busiest_bytes(c) : (double)c->shard_bytes, &floor_s, provenance);

    return lh_measured_time(lh_collective_traffic(cs, c), part_bytes, seconds, floor_s);
}

LhTime
lh_collective_duration(LhCollectives *cs, LhCollective *c, int *provenance)
{
    uint64_t part_bytes[LH_RINGS_MAX];
    LhMeasuredTime time;

    *provenance = LH_PROVENANCE_MEASURED; /* there is no constant beside those of links */
    if (c->size == 1)
        return 0;
    if (c->algorithm == NULL)
        return lh_time_from_ps(closed_form_seconds(cs->network, c) * (double)LH_PS_PER_S);
    lh_traffic_parts(lh_collective_traffic(cs, c), c, part_bytes);
    time = lh_collective_measured(cs, c, part_bytes, provenance);
    return time.links_ps + time.floor_ps;
}
