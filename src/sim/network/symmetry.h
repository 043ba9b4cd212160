/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folding: of ranks that are equivalent, on equivalent parts of the network, one is simulated as
 * the representative of all. All of them would do the same at the same times, so a folded run has
 * the results of the full run to the picosecond.
 *
 * The program declares which of its ranks are equivalent (LhSymmetry). The network must have the
 * same symmetry, which lh_symmetry_choose() checks. So must the routes of collectives among folded
 * ranks, which is checked when they are first called. Ranks of a row are within a node and exchange
 * messages only in collectives that all of them finish at once. Ranks a shift apart are on other
 * nodes. A message to a rank that is not simulated stands for one from the sender's equivalent to
 * the receiver's representative, and crosses the links of the representative.
 */
#pragma once

#include "program/program.h"
#include "sim/network/network.h"

typedef struct {
    LhSymmetry of;  /* a row, or shifts, of 1: not folded */
    uint32_t kept;  /* number of shifts that are simulated; divides `shifts` */
    uint32_t ranks; /* of the program */
} LhSymmetryGroups;

/* No folding of @ranks. */
static inline LhSymmetryGroups
lh_symmetry_none(uint32_t ranks)
{
    return (LhSymmetryGroups){ .of = { 1, 1, 1 }, .kept = 1, .ranks = ranks };
}

/* The largest folding that the network allows. The caller must make sure that no parameter
 * distinguishes single ranks or links. */
LhSymmetryGroups lh_symmetry_choose(const LhProgram *program, const LhNetwork *network,
                                    LhNetworkModel model);

static inline bool
lh_symmetry_equal(const LhSymmetryGroups *a, const LhSymmetryGroups *b)
{
    return a->of.row == b->of.row && a->of.shift == b->of.shift && a->of.shifts == b->of.shifts &&
           a->kept == b->kept && a->ranks == b->ranks;
}

/* Whether any rank is represented by another. */
static inline bool
lh_symmetry_is_any(const LhSymmetryGroups *fold)
{
    return fold->of.row > 1 || fold->of.shifts > fold->kept;
}

/* The representative of @rank within its row: the first rank represents itself, the second all
 * others. */
static inline uint32_t
lh_symmetry_in_row(const LhSymmetryGroups *fold, uint32_t rank)
{
    const uint32_t place = rank % fold->of.row;

    return rank - (place > 1 ? place - 1 : 0);
}

/* The representative of @rank among ranks a shift apart. */
static inline uint32_t
lh_symmetry_in_shifts(const LhSymmetryGroups *fold, uint32_t rank)
{
    const uint32_t shift = rank / fold->of.shift % fold->of.shifts;

    return rank - (shift - shift % fold->kept) * fold->of.shift;
}

/* The representative of @rank. */
static inline uint32_t
lh_symmetry_rank(const LhSymmetryGroups *fold, uint32_t rank)
{
    return lh_symmetry_in_shifts(fold, lh_symmetry_in_row(fold, rank));
}

static inline bool
lh_symmetry_plays(const LhSymmetryGroups *fold, uint32_t rank)
{
    return lh_symmetry_rank(fold, rank) == rank;
}

/* The number of ranks that a simulated rank represents, including itself. */
static inline uint32_t
lh_symmetry_weight(const LhSymmetryGroups *fold, uint32_t rank)
{
    return (rank % fold->of.row == 1 ? fold->of.row - 1 : 1) * (fold->of.shifts / fold->kept);
}

/* The link that represents @link. */
uint32_t lh_symmetry_link(const LhSymmetryGroups *fold, const LhNetwork *network, uint32_t link);

/* A smaller folding, after collectives over a row (@row) or over shifts turned out not to be the
 * same for all. */
LhSymmetryGroups lh_symmetry_less(const LhSymmetryGroups *fold, bool row);
