/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Representatives of members of a communicator, derived from the equivalence of ranks.
 */
#include "sim/network/collectives/symmetric_members.h"

#include "sim/network/collectives/rings.h"

void
lh_symmetric_members_free(LhSymmetricMembers *likes)
{
    if (likes == NULL)
        return;
    g_free(likes->stands);
    g_free(likes->first);
    g_free(likes->likes);
    g_free(likes->shifted);
    g_free(likes);
}

/* Lists the members that each member represents. */
static void
list_likes(LhSymmetricMembers *likes, uint32_t size)
{
    g_autofree uint32_t *filled = g_new0(uint32_t, size);

    likes->first = g_new0(uint32_t, size + 1);
    likes->likes = g_new(uint32_t, size);
    for (uint32_t i = 0; i < size; i++)
        likes->first[likes->stands[i] + 1]++;
    for (uint32_t i = 0; i < size; i++)
        likes->first[i + 1] += likes->first[i];
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t of = likes->stands[i];

        likes->likes[likes->first[of] + filled[of]++] = i;
    }
}

/* The position of the next member a shift apart, cyclically; UINT32_MAX: it is no member. */
static uint32_t
shifted(const LhSymmetryGroups *fold, const LhGroup *group, uint32_t position)
{
    const uint32_t rank = (uint32_t)lh_group_member(group, position);
    const uint32_t shift = rank / fold->of.shift % fold->of.shifts;
    const uint32_t next = (shift + fold->kept) % fold->of.shifts;

    return lh_group_position(group, rank - shift * fold->of.shift + next * fold->of.shift);
}

/* Sets the members' representatives; false if every member represents only itself. */
static bool
find_likes(const LhSymmetryGroups *fold, const LhGroup *group, LhSymmetricMembers *likes)
{
    const uint32_t size = (uint32_t)lh_group_size(group);
    bool any = false;

    likes->stands = g_new0(uint32_t, size);
    likes->shifted = g_new0(uint32_t, size);
    likes->shifts = fold->of.shifts / fold->kept;
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t rank = (uint32_t)lh_group_member(group, i);
        const uint32_t stands = lh_symmetry_rank(fold, rank);

        likes->stands[i] = lh_group_position(group, stands);
        likes->shifted[i] = shifted(fold, group, i);
        any |= stands != rank;
        likes->rows |= stands % fold->of.row != rank % fold->of.row;
        likes->alien |= likes->stands[i] == UINT32_MAX;
        if (likes->shifted[i] == UINT32_MAX)
            likes->shifts = 1;
    }
    return any;
}

/* Whether, in every ring, shifting a member and taking the next member commute. */
static bool
is_same_in_rings(const LhSymmetricMembers *likes, const LhRings *rings)
{
    if (likes->rows || likes->alien || likes->shifts == 1)
        return false;
    for (uint32_t ring = 0; ring < rings->count; ring++) {
        for (uint32_t i = 0; i < rings->size; i++) {
            if (likes->shifted[lh_rings_next(rings, ring, i)] !=
                lh_rings_next(rings, ring, likes->shifted[i]))
                return false;
        }
    }
    return true;
}

LhSymmetricMembers *
lh_symmetric_members_new(const LhSymmetryGroups *fold, const LhNetwork *network,
                         const LhGroup *group)
{
    LhSymmetricMembers *likes;
    LhRings rings;

    if (fold == NULL)
        return NULL;
    likes = g_new0(LhSymmetricMembers, 1);
    if (!find_likes(fold, group, likes)) {
        lh_symmetric_members_free(likes);
        return NULL;
    }
    if (!likes->alien)
        list_likes(likes, (uint32_t)lh_group_size(group));
    lh_rings_init(&rings, network, group);
    likes->rails_same = is_same_in_rings(likes, &rings);
    lh_rings_clear(&rings);
    return likes;
}
