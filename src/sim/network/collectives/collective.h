/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of rank groups. A collective is an algorithm whose hops are ordinary messages on the
 * network (collective_*.c), or a closed form: all members end a computed time after the last has
 * arrived. Calls match by communicator and by the number of collectives that each member has called
 * on it before, in program order, as on an NCCL communicator.
 */
#pragma once

#include "program/program.h"
#include "sim/network/collectives/ring_hops.h"
#include "sim/network/collectives/rings.h"
#include "sim/network/collectives/symmetric_members.h"
#include "sim/network/collectives/tree_rounds.h"

typedef struct _LhCollective LhCollective;
typedef struct _LhCommunicator LhCommunicator;
typedef struct _LhScript LhScript;
typedef struct _LhTraffic LhTraffic;

/* A message from one member to another, by position in the group. */
typedef struct {
    uint32_t from, to;
    uint32_t lane;   /* for use by the algorithm */
    uint32_t pieces; /* number of pieces sent as one */
    uint64_t bytes;
    LhTime delay_ps; /* added to its latency, beside that of its route */
    LhRingShare share;
} LhHop;

/*
 * An algorithm: what has to be sent after each event. Every function except ends() handles an event
 * and responds with calls of lh_collective_send(). State is O(1) per member and ring, and hops are
 * created on demand.
 */
typedef struct {
    size_t member_size; /* of a member's state in one ring, initially zero; 0: none */
    bool together;      /* members end together, which counts as one more of each member's ends */
    /* Number of pieces that the member sends and receives; its op ends when all have arrived. */
    uint32_t (*ends)(const LhCollective *c, uint32_t position);
    void (*joined)(LhCollective *c, uint32_t position);
    void (*left)(LhCollective *c, const LhHop *hop); /* its last byte was sent; NULL: no matter */
    void (*arrived)(LhCollective *c, const LhHop *hop); /* NULL: no matter */
    /* All that the member at @position sends and receives (script.h). */
    void (*script)(const LhCollective *c, uint32_t position, LhScript *script);
} LhAlgorithm;

#define LH_ONE_SHOT_UNDER_WAY 64 /* limit of messages in flight per member */

typedef struct {
    uint32_t rank, op;
    bool there; /* it has started the op */
} LhMember;

/* All hops from members of a communicator to the next, in all rings. */
typedef struct {
    uint8_t tier;  /* highest of the hops */
    uint16_t ctas; /* largest number of SMs that a hop holds */
} LhNeighbours;

struct _LhCollective {
    LhCommunicator *communicator;
    LhCollectiveKind kind;
    uint32_t turn; /* index among the collectives of this communicator */
    uint32_t size, joined;
    uint32_t steps;                 /* pieces that a member of a ring passes on; not: broadcast */
    uint64_t shard_bytes;           /* of one rank */
    uint64_t **pieces;              /* of uneven all-to-alls: by member, bytes to each; else NULL */
    const uint64_t *received;       /* of a script of these: bytes from each member; else NULL */
    LhCollectiveModel model;        /* its own: not auto */
    const LhAlgorithm *algorithm;   /* NULL: closed form */
    const LhRings *rings;           /* all-to-all, broadcast: one in group order */
    const LhNeighbours *neighbours; /* of these rings */
    const LhRingShare *shares;      /* in these rings, by position and ring; NULL: none */
    LhTreeRounds *tree_rounds;      /* owned; NULL: links are not shared */
    LhMember *members;              /* by position */
    void *state;                    /* the algorithm's, by position and ring */
    const LhSymmetricMembers *likes; /* NULL: every member is simulated */
    bool whole;                      /* all hops are simulated, although ranks are folded */
    uint32_t stands;     /* then the number of communicators that it stands for; 0: not known yet */
    uint64_t ends_left;  /* sum over the members that have arrived */
    LhTime delay_ps;     /* fluid: extra delay of its flows */
    LhTime overhead_ps;  /* one-shot: per further message to another node */
    LhTime sum_ps;       /* one-shot reductions: time of a member's reduction */
    uint32_t node_ranks; /* ranks per node */
    LhHop *hops;         /* hops to start now */
    uint32_t hops_count, hops_capacity;
    LhTraffic *traffic;  /* its own, for uneven ones, created on demand; else NULL */
    uint32_t flows_left; /* measured: flows that have not arrived */
    LhCollective *next;  /* next collective of the communicator in progress */
};

/* A hop has left or arrived: the hops that may start now are in the collective's list. */
void lh_collective_left(LhCollective *c, const LhHop *hop);
void lh_collective_arrived(LhCollective *c, const LhHop *hop);

/* Frees the collective unconditionally; the second function only if all of its members have
 * ended. */
void lh_collective_free(LhCollective *c);
void lh_collective_settle(LhCollective *c);

/* For algorithms: adds a hop that may start now, of one piece or as given. */
void lh_collective_send(LhCollective *c, uint32_t from, uint32_t to, uint32_t lane, uint64_t bytes);
void lh_collective_send_hop(LhCollective *c, LhHop hop);

/* For rings: the rate limit of the member's hops in @ring. */
static inline LhRingShare
lh_collective_share(const LhCollective *c, uint32_t position, uint32_t ring)
{
    return c->shares != NULL ? c->shares[(size_t)position * c->rings->count + ring]
                             : (LhRingShare){ 0 };
}

/* For all-to-alls: bytes from member @from, which has arrived, to member @to. */
static inline uint64_t
lh_collective_piece(const LhCollective *c, uint32_t from, uint32_t to)
{
    return c->pieces != NULL ? c->pieces[from][to] : c->shard_bytes / c->size;
}

/* For scripts of all-to-alls: bytes from member @from. */
static inline uint64_t
lh_collective_incoming(const LhCollective *c, uint32_t from)
{
    return c->received != NULL ? c->received[from] : c->shard_bytes / c->size;
}

/* For algorithms: the member @distance (less than the size) after @position in group order. */
static inline uint32_t
lh_collective_further(const LhCollective *c, uint32_t position, uint32_t distance)
{
    const uint32_t sum = position + distance;

    return sum < c->size ? sum : sum - c->size;
}

/* For algorithms: whether both have started the op. */
static inline bool
lh_collective_both(const LhCollective *c, uint32_t a, uint32_t b)
{
    return c->members[a].there && c->members[b].there;
}

/* Pieces that a member of a ring passes on, for all-gather, reduce-scatter and all-reduce. */
static inline uint32_t
lh_collective_steps(LhCollectiveKind kind, uint32_t size)
{
    return (kind == LH_COLL_ALL_REDUCE ? 2 : 1) * (size - 1);
}

/* Number of pieces of a pipeline of @bytes; size of piece @piece of @count. */
uint32_t lh_pipeline_pieces(uint64_t bytes);
uint64_t lh_piece_bytes(uint64_t bytes, uint32_t piece, uint32_t count);

const LhGroup *lh_collective_group(const LhCollective *c);
