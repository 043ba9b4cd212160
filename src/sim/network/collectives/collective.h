/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of rank groups. A collective is an algorithm whose hops are messages on the network
 * like any other (collective_*.c), or a closed form: its members meet, and all are through a
 * computed time after the last. Members find each other by their communicator and by how many
 * collectives each has had on it, in program order, as the ranks of an NCCL communicator do.
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

/* Bytes on the way from one member to another, by position in the group. */
typedef struct {
    uint32_t from, to;
    uint32_t lane;   /* the algorithm's own */
    uint32_t pieces; /* that go as one */
    uint64_t bytes;
    LhTime delay_ps; /* of its arrival, beside the latency of its route */
    LhRingShare share;
} LhHop;

/*
 * What has to be sent once something has happened. Every function but ends() tells of an event and
 * answers with calls of lh_collective_send(); state is O(1) per member and ring, and hops are made
 * as they come.
 */
typedef struct {
    size_t member_size; /* of one member's state in one ring, zero at first; 0: none */
    bool together;      /* members are through when all are, which is one more of their ends */
    /* Pieces that the member sends and receives in all; it is through when they have arrived. */
    uint32_t (*ends)(const LhCollective *c, uint32_t position);
    void (*joined)(LhCollective *c, uint32_t position);
    void (*left)(LhCollective *c, const LhHop *hop); /* its last byte was sent; NULL: no matter */
    void (*arrived)(LhCollective *c, const LhHop *hop); /* NULL: no matter */
    /* All that the member at @position sends and receives (script.h). */
    void (*script)(const LhCollective *c, uint32_t position, LhScript *script);
} LhAlgorithm;

#define LH_ONE_SHOT_UNDER_WAY 64 /* messages of a member, at most */

typedef struct {
    uint32_t rank, op;
    bool there; /* has started the op */
} LhMember;

/* The hops from one member of a communicator to the next, all of them, in all rings. */
typedef struct {
    uint8_t tier;  /* the highest */
    uint16_t ctas; /* the most SMs that one holds */
} LhNeighbours;

struct _LhCollective {
    LhCommunicator *communicator;
    LhCollectiveKind kind;
    uint32_t turn; /* of those on this communicator */
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
    bool whole;                      /* all of their hops are simulated */
    uint64_t ends_left;              /* of the members that are there */
    LhTime delay_ps;                 /* of flows in place of pieces */
    LhTime overhead_ps;              /* one-shot: of each further message to another node */
    LhTime sum_ps;                   /* one-shot reductions: what a member takes to add up */
    uint32_t node_ranks;             /* of every node */
    LhHop *hops;                     /* to start now */
    uint32_t hops_count, hops_capacity;
    LhTraffic *traffic;  /* of its own: uneven ones, once it is asked for; else NULL */
    uint32_t flows_left; /* measured: not yet arrived */
    LhCollective *next;  /* of the communicator's that are not through */
};

/* A hop has left or arrived: the hops that may start now are in the collective's list. */
void lh_collective_left(LhCollective *c, const LhHop *hop);
void lh_collective_arrived(LhCollective *c, const LhHop *hop);

/* Frees it, whoever has joined; or only if all of its members are through. */
void lh_collective_free(LhCollective *c);
void lh_collective_settle(LhCollective *c);

/* For algorithms: a hop that may start now, of one piece or as it is. */
void lh_collective_send(LhCollective *c, uint32_t from, uint32_t to, uint32_t lane, uint64_t bytes);
void lh_collective_send_hop(LhCollective *c, LhHop hop);

/* For rings: that of the member's hops in @ring. */
static inline LhRingShare
lh_collective_share(const LhCollective *c, uint32_t position, uint32_t ring)
{
    return c->shares != NULL ? c->shares[(size_t)position * c->rings->count + ring]
                             : (LhRingShare){ 0 };
}

/* For all-to-alls: what the member @from, which is there, sends to member @to. */
static inline uint64_t
lh_collective_piece(const LhCollective *c, uint32_t from, uint32_t to)
{
    return c->pieces != NULL ? c->pieces[from][to] : c->shard_bytes / c->size;
}

/* For scripts of all-to-alls: what comes from member @from. */
static inline uint64_t
lh_collective_incoming(const LhCollective *c, uint32_t from)
{
    return c->received != NULL ? c->received[from] : c->shard_bytes / c->size;
}

/* For algorithms: the member @distance, less than the size, behind @position in the group's order.
 */
static inline uint32_t
lh_collective_further(const LhCollective *c, uint32_t position, uint32_t distance)
{
    const uint32_t sum = position + distance;

    return sum < c->size ? sum : sum - c->size;
}

/* For algorithms: both have started the op. */
static inline bool
lh_collective_both(const LhCollective *c, uint32_t a, uint32_t b)
{
    return c->members[a].there && c->members[b].there;
}

/* Pieces that a member of a ring passes on: of all-gather, reduce-scatter, all-reduce. */
static inline uint32_t
lh_collective_steps(LhCollectiveKind kind, uint32_t size)
{
    return (kind == LH_COLL_ALL_REDUCE ? 2 : 1) * (size - 1);
}

/* Pieces that a pipeline cuts @bytes into; size of piece @piece of @count. */
uint32_t lh_pipeline_pieces(uint64_t bytes);
uint64_t lh_piece_bytes(uint64_t bytes, uint32_t piece, uint32_t count);

const LhGroup *lh_collective_group(const LhCollective *c);
