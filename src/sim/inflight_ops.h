/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ops of one rank in flight, from issue to completion, by id, in a ring buffer: only as many
 * ops as the host is ahead of the device, never the whole program.
 */
#pragma once

#include "base/units.h"
#include "program/op.h"

#include <glib.h>

#define LH_NO_NODE UINT32_MAX

typedef enum {
    LH_NODE_QUEUED,
    LH_NODE_RUNNING,
    LH_NODE_DONE,
} LhNodeState;

#define LH_CACHE_LINE_BYTES 64

/* Two cache lines: what decides whether the op may start and when it ends comes first. */
typedef struct {
    uint8_t state; /* LhNodeState */
    uint8_t kind;  /* LhOpKind */
    uint8_t stream;
    uint8_t after_count;
    uint32_t next; /* id of the next op of its stream, or LH_NO_NODE */
    uint32_t gate; /* id of the sync that the host waits for before it issues the op, or
                      LH_NO_NODE */
    uint8_t tier;  /* highest tier of its messages; LH_TIERS: none */
    uint8_t kernel;
    uint8_t after_all; /* length of `after` when issued */
    bool timed;        /* a collective whose end is in the event queue */
    LhTime issued_ps;  /* time of issue; with a gate: relative to the end of that sync */
    LhTime start_ps;
    union {
        struct {            /* compute */
            double work_ps; /* remaining time if alone on the device, as of updated_ps */
            LhTime updated_ps;
            double rate;      /* progress of work_ps per time while it runs; 1: as if alone */
            double occupancy; /* share of the SMs that the kernel fills when alone, (0, 1] */
        };
        struct {              /* exchange, collective */
            double share;     /* LhSimParams.time_share of the op */
            uint64_t bytes;   /* that it has sent */
            uint32_t pending; /* messages not yet delivered */
            uint32_t posts; /* index of the first message, or LH_NO_POST; collectives: the ticket */
            uint16_t ctas;
        };
        LhRegion region; /* alloc, free */
    };
    uint32_t after[LH_OP_AFTER_MAX];
    uint32_t step;
    uint16_t layer, micro_batch;
    uint8_t phase;
    bool on_cpu; /* lh_op_on_cpu() */
    uint16_t module;
    uint32_t cause; /* cause of its start, for LhPathRecorder */
    uint64_t flops;
    uint64_t alike; /* hash of the op's content, equal for equal ops: fast_forward.c */
} LhNode;

G_STATIC_ASSERT(sizeof(LhNode) == 2 * LH_CACHE_LINE_BYTES);

typedef struct {
    LhNode *nodes;
    uint32_t capacity, mask; /* a power of two, or 0; capacity - 1 */
    uint32_t first;          /* oldest op that is not done */
    uint32_t issued;         /* id of the next op to be issued */
} LhNodes;

void lh_nodes_clear(LhNodes *nodes);

/* Makes room for one more op. */
void lh_nodes_grow(LhNodes *nodes);

static inline LhNode *
lh_node(const LhNodes *nodes, uint32_t id)
{
    return &nodes->nodes[id & nodes->mask];
}

/* Adds a node for the next op, with id nodes->issued, and advances that id. Its fields are not
 * initialised. */
static inline LhNode *
lh_nodes_add(LhNodes *nodes)
{
    if (nodes->issued - nodes->first == nodes->capacity)
        lh_nodes_grow(nodes);
    return lh_node(nodes, nodes->issued++);
}

static inline bool
lh_node_is_done(const LhNodes *nodes, uint32_t id)
{
    return id < nodes->first || lh_node(nodes, id)->state == LH_NODE_DONE;
}

/* Drops the oldest ops that are done. */
static inline void
lh_nodes_retire(LhNodes *nodes)
{
    while (nodes->first < nodes->issued && lh_node(nodes, nodes->first)->state == LH_NODE_DONE)
        nodes->first++;
}

/* Whether op @id is within the window that the host may have issued (LH_HOST_WINDOW). */
static inline bool
lh_nodes_in_window(const LhNodes *nodes, uint32_t id)
{
    return id <= nodes->first || id - nodes->first <= LH_HOST_WINDOW;
}

/* Whether every op named in `after` is complete. Removes completed ones from the end of the
 * list. */
static inline bool
lh_node_is_free(const LhNodes *nodes, LhNode *node)
{
    while (node->after_count > 0) {
        if (!lh_node_is_done(nodes, node->after[node->after_count - 1]))
            return false;
        node->after_count--;
    }
    return true;
}
