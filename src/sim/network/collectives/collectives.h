/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All collectives of a run: who takes part in which, and by which algorithm.
 */
#pragma once

#include "sim/cost/device.h"
#include "sim/network/collectives/collective.h"
#include "sim/network/collectives/ring_hops.h"
#include "sim/network/collectives/script.h"

typedef struct _LhCollectives LhCollectives;

/* @shared: links are, by the messages of an instant. @fold: who stands for whom; NULL: everyone for
 * himself. All are borrowed. */
LhCollectives *lh_collectives_new(const LhNetwork *network, const LhDevice *device,
                                  LhCollectiveModel model, bool shared,
                                  const LhSymmetryGroups *fold);
void lh_collectives_free(LhCollectives *cs);

/*
 * Takes note, in program order, of collective @op of @rank of @program, with the lists of its
 * buffer; returns a ticket for lh_collectives_join, or UINT32_MAX if the group lacks the rank or
 * holds ranks that do not exist.
 */
uint32_t lh_collectives_issue(LhCollectives *cs, const LhProgram *program, uint32_t rank,
                              const LhOp *op, const uint32_t *counts);

/*
 * The rank of @ticket, which is spent, has started its op: it joins its collective. The hops that
 * may start now are in its list. @position is the rank's. NULL if another member's call of this
 * turn is another collective. Valid until lh_collective_settle().
 */
LhCollective *lh_collectives_join(LhCollectives *cs, uint32_t ticket, uint32_t op,
                                  uint32_t *position);

/* The collective that the rank of @ticket is about to join is not the same for all that are
 * folded: it is one over a row (@row), or else over shifts. */
bool lh_collectives_differ(LhCollectives *cs, uint32_t ticket, bool *row);

/* What the hops of its rings cost, by ring and place; of algorithms of rings. Borrowed. */
const LhRingHop *lh_collectives_hops(const LhCollectives *cs, const LhCollective *c);

/* Closed forms: from the last arrival until all members are through; measured: on an idle network.
 * @provenance: of what that is made of, beside the links. */
LhTime lh_collectives_duration(LhCollectives *cs, LhCollective *c, int *provenance);

/* A rank's collective: what it is an op of. */
typedef struct {
    const LhProgram *program;
    uint32_t rank;
    const LhOp *op;
    const uint32_t *counts; /* of the op's buffer */
} LhScriptCall;

/* The number of the communicator of such an op, from 0 in the order in which they are asked for;
 * UINT32_MAX if its group lacks the rank or holds ranks that do not exist. */
uint32_t lh_collectives_number(LhCollectives *cs, const LhScriptCall *call);

/* Tells @tell the script of an op that has such a number. Times of a closed form are told as the
 * messages that it stands for. */
void lh_collectives_script(LhCollectives *cs, const LhScriptCall *call,
                           void (*tell)(void *data, const LhScriptMessage *message), void *data);
