/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a communicator that do the same, as far as the symmetry of the run says (symmetry.h):
 * only one of them is simulated, and the others are its likes.
 */
#pragma once

#include "program/group.h"
#include "sim/network/network.h"
#include "sim/network/symmetry.h"

/* Members of a communicator that others stand for, by position. */
typedef struct {
    uint32_t *stands; /* who is simulated for a member */
    uint32_t *first,
        *likes;        /* whom a member stands for: of the likes, up to the next one's first */
    uint32_t *shifted; /* the next one of those that are a shift apart, in turn ... */
    uint32_t shifts;   /* ... and how many these are */
    bool rows;         /* there are likes within rows */
    bool alien;        /* who stands for one of them is no member */
    bool rails_same;   /* what a member does in the rings, its likes do to the likes of the other */
} LhSymmetricMembers;

/* NULL: every member is simulated, also if @fold is NULL. Caller frees. */
LhSymmetricMembers *lh_symmetric_members_new(const LhSymmetryGroups *fold, const LhNetwork *network,
                                             const LhGroup *group);
void lh_symmetric_members_free(LhSymmetricMembers *likes);
