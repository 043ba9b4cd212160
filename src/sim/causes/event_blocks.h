/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a run and what each waited for, in order, in 2 to 3 bytes each where ranks and
 * layers do alike. An event is described relative to its rank: by its *shape*, which is stored
 * once. Blocks of events are read one at a time, in either direction.
 */
#pragma once

#include "base/units.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Which end of its op an event is. */
typedef enum {
    LH_EVENT_BETWEEN,
    LH_EVENT_START,
    LH_EVENT_JOINS, /* the start of a collective that moves data only when all members are there */
    LH_EVENT_DONE,
} LhEventEnd;

typedef struct {
    LhTime time_ps;
    uint32_t rank, op;    /* owner; for a message the sender's op */
    uint32_t index;       /* among the events of its rank */
    uint32_t waits_first; /* first wait, of LhEventBlock.waits */
    uint32_t waits_count; /* none: start of the run */
    uint16_t call;        /* index in LhSlackGraph.calls of its op */
    uint8_t kind;         /* LhPathStepKind: what the time of its waits is spent on */
    uint8_t tiers;        /* LINKS: tiers, as of a step; 0: not recorded */
    uint8_t end;          /* LhEventEnd */
} LhEvent;

typedef struct {
    LhTime takes_ps;      /* >= 0 */
    uint32_t rank, index; /* the event waited for, an earlier one */
    bool host;            /* on the event after which the host of the rank last went on */
} LhWait;

typedef struct {
    GArray *events; /* of LhEvent */
    GArray *waits;  /* of LhWait */
} LhEventBlock;

typedef struct _LhEventBlocks LhEventBlocks;

LhEventBlocks *lh_event_blocks_new(uint32_t ranks);
void lh_event_blocks_free(LhEventBlocks *b);

/* Appends an event with its waits; its index is set. The first one is rank 0's, at time 0. */
void lh_event_blocks_add(LhEventBlocks *b, LhEvent *event, const LhWait *waits);

uint32_t lh_event_blocks_count(const LhEventBlocks *b);

/* Reads block @index. The caller clears @block after its last use; it is overwritten by the next
 * call. */
void lh_event_blocks_read(const LhEventBlocks *b, uint32_t index, LhEventBlock *block);
void lh_event_block_clear(LhEventBlock *block);

/* The number of events of @rank so far. */
uint32_t lh_event_blocks_of_rank(const LhEventBlocks *b, uint32_t rank);

/* How many events before the last one of its rank an event waited for is, at most; without further
 * waits of a rank's host for the same event. */
uint32_t lh_event_blocks_reach(const LhEventBlocks *b);
