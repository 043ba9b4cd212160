/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All collectives of a run: their members and their algorithms.
 */
#pragma once

#include "sim/cost/device.h"
#include "sim/network/collectives/collective.h"
#include "sim/network/collectives/ring_hops.h"
#include "sim/network/collectives/script.h"

typedef struct _LhCollectives LhCollectives;

/* @shared: the messages of an instant share links. @fold: folding of ranks; NULL: none. All
 * arguments are borrowed. */
LhCollectives *lh_collectives_new(const LhNetwork *network, const LhDevice *device,
                                  LhCollectiveModel model, bool shared,
                                  const LhSymmetryGroups *fold);
void lh_collectives_free(LhCollectives *cs);

/*
 * Registers, in program order, collective @op of @rank of @program, with the lists of its buffer.
 * Returns a ticket for lh_collectives_join(), or UINT32_MAX if the group lacks the rank or holds
 * ranks that do not exist.
 */
uint32_t lh_collectives_issue(LhCollectives *cs, const LhProgram *program, uint32_t rank,
                              const LhOp *op, const uint32_t *counts);

/*
 * The rank of @ticket has started its op and joins its collective; the ticket is consumed. Hops
 * that may start now are in the collective's list. Sets @position to the rank's. NULL if another
 * member called a different collective at this index. Valid until lh_collective_settle().
 */
LhCollective *lh_collectives_join(LhCollectives *cs, uint32_t ticket, uint32_t op,
                                  uint32_t *position);

/* Whether the collective that the rank of @ticket is about to join differs among folded ranks;
 * @row: over a row, else over shifts. */
bool lh_collectives_differ(LhCollectives *cs, uint32_t ticket, bool *row);

/* The costs of the hops of its rings, by ring and place; for ring algorithms. Borrowed. */
const LhRingHop *lh_collectives_hops(const LhCollectives *cs, const LhCollective *c);

/* Closed forms: time from the last arrival until all members end; measured collectives: on an idle
 * network. Sets @provenance to that of the times or constants used, without the links. */
LhTime lh_collectives_duration(LhCollectives *cs, LhCollective *c, int *provenance);

/* A collective as an op of a rank. */
typedef struct {
    const LhProgram *program;
    uint32_t rank;
    const LhOp *op;
    const uint32_t *counts; /* of the op's buffer */
} LhScriptCall;

/* The number of the communicator of such an op, from 0 in the order of first use; UINT32_MAX if its
 * group lacks the rank or holds ranks that do not exist. */
uint32_t lh_collectives_number(LhCollectives *cs, const LhScriptCall *call);

/* Reports the messages of an op that has such a number to @tell. Closed forms are reported as the
 * messages that they model. */
void lh_collectives_script(LhCollectives *cs, const LhScriptCall *call,
                           void (*tell)(void *data, const LhScriptMessage *message), void *data);
