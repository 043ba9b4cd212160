/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Equivalent members of a communicator, by the symmetry of the run (symmetry.h): one is simulated
 * as the representative of the others.
 */
#pragma once

#include "program/group.h"
#include "sim/network/network.h"
#include "sim/network/symmetry.h"

/* Equivalence of members, by position. */
typedef struct {
    uint32_t *stands;        /* the representative of a member */
    uint32_t *first, *likes; /* the members that a member represents: entries of `likes` up to the
                                next one's first */
    uint32_t *shifted;       /* the next of the members a shift apart, cyclically ... */
    uint32_t shifts;         /* ... and their number */
    bool rows;               /* some members are equivalent within rows */
    bool alien;              /* a member's representative is not a member */
    bool rails_same;         /* equivalent members have equivalent neighbours in all rings */
} LhSymmetricMembers;

/* NULL: every member is simulated, also if @fold is NULL. Caller frees. */
LhSymmetricMembers *lh_symmetric_members_new(const LhSymmetryGroups *fold, const LhNetwork *network,
                                             const LhGroup *group);
void lh_symmetric_members_free(LhSymmetricMembers *likes);
