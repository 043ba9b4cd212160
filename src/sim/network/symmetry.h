/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folding: of ranks that do the same on parts of the network that are the same, one is simulated
 * and stands for all of them. What it does, and when, is what each of them would; so a folded run
 * has the results of the whole one, to the picosecond.
 *
 * The program says which of its ranks do the same (LhSymmetry); the network has to have the same
 * symmetry, which lh_symmetry_choose() sees to, and so do the ways of collectives among folded
 * ranks, which is found when they are first called. Ranks of a row stand within a node and do not
 * exchange messages but in collectives that all of them are through with at once. Ranks that are a
 * shift apart stand on other nodes; a message to a rank that is not simulated is one from its like
 * to the one that stands for it, and crosses the links next to that.
 */
#pragma once

#include "program/program.h"
#include "sim/network/network.h"

typedef struct {
    LhSymmetry of;  /* a row, or shifts, of 1: not folded */
    uint32_t kept;  /* shifts that are simulated, which divides all of them */
    uint32_t ranks; /* of the program */
} LhSymmetryGroups;

/* The largest fold that the network allows. Nothing may have been said of single ranks or links
 * that makes them differ: that is up to the caller. */
LhSymmetryGroups lh_symmetry_choose(const LhProgram *program, const LhNetwork *network,
                                    LhNetworkModel model);

/* Whether any rank stands for another one. */
static inline bool
lh_symmetry_is_any(const LhSymmetryGroups *fold)
{
    return fold->of.row > 1 || fold->of.shifts > fold->kept;
}

/* Who stands for @rank within its row: the first one for itself, the second one for the others. */
static inline uint32_t
lh_symmetry_in_row(const LhSymmetryGroups *fold, uint32_t rank)
{
    const uint32_t place = rank % fold->of.row;

    return rank - (place > 1 ? place - 1 : 0);
}

/* Who stands for @rank of those that are a shift apart. */
static inline uint32_t
lh_symmetry_in_shifts(const LhSymmetryGroups *fold, uint32_t rank)
{
    const uint32_t shift = rank / fold->of.shift % fold->of.shifts;

    return rank - (shift - shift % fold->kept) * fold->of.shift;
}

/* Who stands for @rank. */
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

/* How many ranks a rank that is simulated stands for, itself included. */
static inline uint32_t
lh_symmetry_weight(const LhSymmetryGroups *fold, uint32_t rank)
{
    return (rank % fold->of.row == 1 ? fold->of.row - 1 : 1) * (fold->of.shifts / fold->kept);
}

/* The link that carries what @link would. */
uint32_t lh_symmetry_link(const LhSymmetryGroups *fold, const LhNetwork *network, uint32_t link);

/* A smaller fold, after collectives over a row (@row) or over shifts have turned out not to be the
 * same for all. */
LhSymmetryGroups lh_symmetry_less(const LhSymmetryGroups *fold, bool row);
