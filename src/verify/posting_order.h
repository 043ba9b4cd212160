/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which one rank posts its messages, some ops at a time: what matching.c checks by
 * sorting the messages of all ranks.
 */
#pragma once

#include "verify/proof.h"

/* The last op with a message of one direction, peer and communicator. */
typedef struct {
    uint32_t key; /* 0: the place is free */
    uint32_t op;
} LhPosted;

typedef struct {
    LhPosted *last;       /* [room] by key; a place that is taken is followed by the next one */
    uint32_t room, count; /* room: a power of 2, at least twice the count */
} LhPostingOrder;

/* A zeroed one is valid. */
void lh_posting_order_clear(LhPostingOrder *order);

/* Before the first op of a rank. */
void lh_posting_order_begin(LhPostingOrder *order);

/* Whether the order of the messages of @ops with those before, of the same key, is fixed. Counts
 * the orders checked. The ops have passed the form check. */
bool lh_posting_order_add(LhPostingOrder *order, LhProof *proof, LhOpRange ops);
