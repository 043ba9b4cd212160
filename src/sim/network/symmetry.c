/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/symmetry.h"

#define ROW_MIN 3 /* two ranks of a row are simulated */

/* Whether ranks of a row may be permuted, equally on all nodes: each must have its own links. */
static bool
has_rows(const LhNetwork *n, uint32_t row)
{
    const LhTopology *t = n->topology;
    const bool alike = t->scale_up == LH_SCALE_UP_SWITCH || t->scale_up == LH_SCALE_UP_MEMORY;

    if (n->gpus_per_node % row != 0 || !alike)
        return false;
    return n->nodes == 1 || (n->nics_per_node == n->gpus_per_node && t->collective_bandwidth <= 0 &&
                             n->trunk_levels == 0);
}

/* Whether nodes may be shifted: the shift must be whole groups of the outermost level, and so of
 * all levels. */
static bool
has_shift(const LhNetwork *n, uint32_t shift)
{
    return shift % n->gpus_per_node == 0 &&
           (n->trunk_levels == 0 ||
            shift / n->gpus_per_node % n->trunks[n->trunk_levels - 1].nodes == 0);
}

LhSymmetryGroups
lh_symmetry_choose(const LhProgram *program, const LhNetwork *network, LhNetworkModel model)
{
    LhSymmetryGroups fold = lh_symmetry_none(lh_program_ranks(program));
    const LhSymmetry *of = &program->symmetry;

    if (model == LH_NETWORK_FIFO) /* its links carry messages in an order of ranks */
        return fold;
    if (of->row >= ROW_MIN && has_rows(network, of->row))
        fold.of.row = of->row;
    if (of->shifts > 1 && has_shift(network, of->shift)) {
        fold.of.shift = of->shift;
        fold.of.shifts = of->shifts;
    }
    return fold;
}

LhSymmetryGroups
lh_symmetry_less(const LhSymmetryGroups *fold, bool row)
{
    LhSymmetryGroups less = *fold;

    if (row && fold->of.row > 1)
        less.of.row = 1;
    else if (fold->kept == 1 && fold->of.shifts % 2 == 0 && fold->of.shifts > 2)
        less.kept = 2;
    else if (fold->of.shifts > 1)
        less.of.shifts = less.of.shift = less.kept = 1;
    else
        less.of.row = 1;
    return less;
}

/* The representative of @link, of one kind of links starting at @first, two per place. A place has
 * @gpus consecutive GPUs. */
static uint32_t
move(const LhSymmetryGroups *fold, uint32_t link, uint32_t first, uint32_t gpus)
{
    const uint32_t place = (link - first) / 2;

    if ((uint64_t)place * gpus >= fold->ranks)
        return link;
    return first + 2 * (lh_symmetry_rank(fold, place * gpus) / gpus) + (link - first) % 2;
}

/* A NIC follows the first of its GPUs. In a row each GPU has its own NIC. */
static uint32_t
move_nic(const LhSymmetryGroups *fold, const LhNetwork *n, uint32_t link)
{
    const uint32_t place = (link - n->nic_first) / 2;
    const uint32_t rank = place / n->nics_per_node * n->gpus_per_node +
                          lh_network_gpu_at_nic(n, place % n->nics_per_node);

    if (rank >= fold->ranks)
        return link;
    return n->nic_first + 2 * lh_network_nic(n, lh_symmetry_rank(fold, rank)) +
           (link - n->nic_first) % 2;
}

/* Links of PCIe trees move with their node. Ranks of a row have none: they communicate over a
 * switch. */
static uint32_t
move_in_tree(const LhSymmetryGroups *fold, const LhNetwork *n, uint32_t link)
{
    const uint32_t place = (link - n->tree.first) % n->tree.per_node;
    const uint32_t first = (link - n->tree.first) / n->tree.per_node * n->gpus_per_node;

    if (first >= fold->ranks)
        return link;
    return n->tree.first + lh_symmetry_rank(fold, first) / n->gpus_per_node * n->tree.per_node +
           place;
}

uint32_t
lh_symmetry_link(const LhSymmetryGroups *fold, const LhNetwork *n, uint32_t link)
{
    if (link >= n->collective_first)
        return move(fold, link, n->collective_first, n->gpus_per_node);
    for (uint32_t level = n->trunk_levels; level-- > 0;)
        if (link >= n->trunks[level].first)
            return move(fold, link, n->trunks[level].first,
                        n->trunks[level].nodes * n->gpus_per_node);
    if (link >= n->nic_first)
        return move_nic(fold, n, link);
    if (link >= n->tree.first)
        return move_in_tree(fold, n, link);
    if (link >= n->pcie_first)
        return move(fold, link, n->pcie_first, 1);
    return move(fold, link, 0, 1);
}
