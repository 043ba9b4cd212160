/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One tensor of a matched collective: the send and receive regions of each member.
 */
#pragma once

#include "verify/proof.h"

typedef struct {
    const LhProof *proof;
    const LhMeeting *meeting;
    uint32_t tensor;
} LhMovement;

/* The op of the rank at @position of the group. */
static inline uint32_t
lh_movement_op(const LhMovement *m, uint32_t position)
{
    return m->proof->meeting_ops[m->meeting->first + position];
}

static inline const LhRegion *
lh_movement_send(const LhMovement *m, uint32_t position)
{
    return &m->proof->ops[lh_movement_op(m, position)].collective.send[m->tensor];
}

static inline const LhRegion *
lh_movement_receive(const LhMovement *m, uint32_t position)
{
    return &m->proof->ops[lh_movement_op(m, position)].collective.receive[m->tensor];
}

static inline LhCollectiveCall
lh_movement_call(const LhMovement *m, uint32_t position)
{
    const uint32_t g = lh_movement_op(m, position);

    return lh_collective_call(&m->proof->ops[g], m->proof->counts, m->proof->op_rank[g]);
}
