/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of collectives, and the ops of their members.
 */
#pragma once

#include "program/program.h"
#include "sim/network/symmetry.h"

#include <glib.h>

/* The @nth call, from 0, of each member on a communicator. */
typedef struct {
    LhCommunicatorKey communicator;
    uint32_t nth;
} LhCallId;

guint lh_call_id_hash(gconstpointer id);
gboolean lh_call_id_equal(gconstpointer a, gconstpointer b);

/* Numbers the calls of a rank. */
typedef struct {
    GHashTable *counts; /* LhCommunicatorKey -> the number of its calls so far */
} LhCallCounter;

void lh_call_counter_init(LhCallCounter *counter);
void lh_call_counter_clear(LhCallCounter *counter);

/* The next op of the rank, a collective. */
LhCallId lh_call_counter_next(LhCallCounter *counter, const LhOp *op);

typedef struct {
    LhCallId id;
    /* Ranks that it represents are members if it is, with the same op; all others may differ. */
    LhSymmetryGroups fold;
    uint32_t *ops; /* the result: op of each rank; LH_OP_NONE: no member */
} LhCallOps;

/* Sets the ops of @calls. Walks the program of each member that their folding simulates. */
void lh_collective_calls_find(const LhProgram *program, LhCallOps *calls, guint count);
