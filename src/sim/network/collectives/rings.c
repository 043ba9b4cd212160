/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ring has the group's ranks in ascending order. On one node whose PCIe groups are not
 * consecutive, it goes group by group if that is faster, as NCCL searches for rings that leave each
 * switch once. With several rings, ring c has the members of each node rotated: the first member is
 * the first one at the c-th NIC in use, and the last is at the NIC before. Every other node is
 * traversed in reverse, so that a message leaves and arrives by NICs of the same index and stays on
 * its rail (NCCL: "alternate rings to avoid crossing rails", src/graph/connect.cc). No two rings
 * leave a node by the same NIC, or enter it. If the GPUs of a NIC are not consecutive, that
 * requires an order of members NIC by NIC, which is used if rings are faster that way.
 *
 * Where some GPUs of a node reach each other faster than the rest (pairs on NVLink), these groups
 * are rotated, and then the members within each: a ring traverses a whole group before it leaves
 * it, as in NCCL's search, which tries the nearest GPU first (src/graph/search.cc).
 */
#include "sim/network/collectives/rings.h"

#include "sim/network/collectives/ring_hops.h"

#include <math.h>
#include <string.h>

static int
by_rank(gconstpointer x, gconstpointer y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

    return a < b ? -1 : a > b;
}

uint32_t *
lh_sorted_ranks(const LhGroup *group)
{
    const uint64_t count = lh_group_size(group);
    uint32_t *ranks = g_new(uint32_t, count);

    for (uint64_t i = 0; i < count; i++)
        ranks[i] = (uint32_t)lh_group_member(group, i);
    qsort(ranks, count, sizeof(*ranks), by_rank);
    return ranks;
}

void
lh_rings_init_plain(LhRings *rings, uint32_t size, bool pairs)
{
    *rings = (LhRings){ .count = 1, .size = size, .pairs = pairs };
}

/* Whether a new node begins at @place of @ranks. */
static bool
begins_node(const LhNetwork *n, const uint32_t *ranks, uint32_t place)
{
    return place == 0 || ranks[place] / n->gpus_per_node != ranks[place - 1] / n->gpus_per_node;
}

bool *
lh_first_at_nics(const LhNetwork *network, const uint32_t *ranks, uint64_t count)
{
    const uint32_t nics = MAX(network->nics_per_node, 1);
    g_autofree uint32_t *node_seen = g_new(uint32_t, nics);
    bool *first = g_new(bool, count);

    memset(node_seen, 0xff, nics * sizeof(*node_seen));
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t nic = lh_network_nic(network, ranks[i]) % nics;
        const uint32_t node = ranks[i] / network->gpus_per_node;

        first[i] = node_seen[nic] != node;
        node_seen[nic] = node;
    }
    return first;
}

/* The smallest number of NICs that a node's members use. Also counts nodes. */
static uint32_t
fewest_nics(const LhNetwork *network, const uint32_t *ranks, uint32_t size, uint32_t *nodes)
{
    g_autofree bool *first = lh_first_at_nics(network, ranks, size);
    uint32_t fewest = UINT32_MAX, nics = 0;

    *nodes = 0;
    for (uint32_t i = 0; i < size; i++) {
        if (begins_node(network, ranks, i)) {
            fewest = i > 0 ? MIN(fewest, nics) : fewest;
            nics = 0;
            ++*nodes;
        }
        nics += first[i];
    }
    return MIN(fewest, nics);
}

static void
find_entries(LhRings *rings, const LhNetwork *network, const uint32_t *ranks, uint32_t nodes)
{
    g_autofree bool *first = lh_first_at_nics(network, ranks, rings->size);
    uint32_t node = 0, nics = 0;

    rings->nodes = g_new(uint32_t, rings->size);
    rings->firsts = g_new0(uint32_t, nodes + 1);
    rings->entries = g_new(uint32_t, (gsize)nodes * rings->count);
    for (uint32_t i = 0; i < rings->size; i++) {
        if (begins_node(network, ranks, i)) {
            node += i > 0;
            rings->firsts[node] = i;
            nics = 0;
        }
        if (first[i] && nics < rings->count)
            rings->entries[(gsize)node * rings->count + nics++] = i - rings->firsts[node];
        rings->nodes[i] = node;
    }
    rings->firsts[nodes] = rings->size;
}

/* Number of members in each group of @size GPUs; UINT32_MAX if not equal. */
static uint32_t
members_of_groups(const uint32_t *ranks, uint32_t count, uint32_t size)
{
    uint32_t unit = 0, run = 0;

    for (uint32_t i = 0; i < count; i++) {
        run++;
        if (i + 1 < count && ranks[i + 1] / size == ranks[i] / size)
            continue;
        if (unit > 0 && run != unit)
            return UINT32_MAX;
        unit = run;
        run = 0;
    }
    return unit;
}

static void
find_units(LhRings *rings, const LhNetwork *network, const uint32_t *ranks, uint32_t nodes)
{
    uint32_t sizes[LH_NESTS_MAX];

    rings->nests = lh_network_nests(network, sizes);
    rings->units = g_new(uint32_t, (gsize)nodes * rings->nests);
    for (uint32_t node = 0; node < nodes; node++) {
        const uint32_t first = rings->firsts[node], count = rings->firsts[node + 1] - first;

        for (uint32_t nest = 0; nest < rings->nests; nest++)
            rings->units[(gsize)node * rings->nests + nest] =
                members_of_groups(&ranks[first], count, sizes[nest]);
    }
}

/* The place of @offset within a node rotated by @by, group by group for each nest. */
static uint32_t
turned(const LhRings *rings, uint32_t node, uint32_t offset, uint32_t by, bool forth)
{
    uint32_t span = rings->firsts[node + 1] - rings->firsts[node], place = 0;

    for (uint32_t nest = 0; nest <= rings->nests; nest++) {
        const uint32_t unit =
            nest < rings->nests ? MIN(rings->units[(gsize)node * rings->nests + nest], span) : 1;
        const uint32_t groups = span / unit, turn = by % span / unit;

        place += (offset % span / unit + (forth ? groups - turn : turn)) % groups * unit;
        span = unit;
    }
    return place;
}

/* Maps a place in order of ranks to its place in a ring (@forth), or the inverse. */
static uint32_t
rotated(const LhRings *rings, uint32_t ring, uint32_t place, bool forth)
{
    uint32_t node, first, count, entry, offset;
    bool reverse;

    if (rings->count == 1)
        return place;
    node = rings->nodes[place];
    first = rings->firsts[node];
    count = rings->firsts[node + 1] - first;
    entry = rings->entries[(gsize)node * rings->count + ring];
    reverse = node % 2 == 1;
    offset = place - first;
    if (reverse && !forth)
        offset = count - 1 - offset;
    offset = turned(rings, node, offset, entry, forth);
    if (reverse && forth)
        offset = count - 1 - offset;
    return first + offset;
}

uint32_t
lh_rings_place(const LhRings *rings, uint32_t ring, uint32_t position)
{
    return rotated(rings, ring, rings->places == NULL ? position : rings->places[position], true);
}

uint32_t
lh_rings_member(const LhRings *rings, uint32_t ring, uint32_t place)
{
    const uint32_t first = rotated(rings, ring, place, false);

    return rings->members == NULL ? first : rings->members[first];
}

uint32_t
lh_rings_next(const LhRings *rings, uint32_t ring, uint32_t position)
{
    uint32_t place;

    if (rings->nexts != NULL)
        return rings->nexts[(gsize)position * rings->count + ring];
    place = lh_rings_place(rings, ring, position) + 1;
    return lh_rings_member(rings, ring, place < rings->size ? place : 0);
}

uint32_t
lh_rings_previous(const LhRings *rings, uint32_t ring, uint32_t position)
{
    const uint32_t place = lh_rings_place(rings, ring, position);

    return lh_rings_member(rings, ring, (place > 0 ? place : rings->size) - 1);
}

static uint32_t *
find_nexts(const LhRings *rings)
{
    uint32_t *nexts = g_new(uint32_t, (gsize)rings->size * rings->count);

    for (uint32_t i = 0; i < rings->size; i++)
        for (uint32_t ring = 0; ring < rings->count; ring++)
            nexts[(gsize)i * rings->count + ring] = lh_rings_next(rings, ring, i);
    return nexts;
}

/* Sort key of a member of a ring on one node: per level, outermost first, the smallest rank of its
 * group. */
typedef struct {
    uint32_t firsts[LH_PCIE_LEVELS_MAX];
    uint32_t rank;
} TreeSeat;

static int
by_seat(gconstpointer x, gconstpointer y)
{
    const TreeSeat *a = x, *b = y;

    for (uint32_t i = 0; i < LH_PCIE_LEVELS_MAX; i++) {
        if (a->firsts[i] != b->firsts[i])
            return a->firsts[i] < b->firsts[i] ? -1 : 1;
    }
    return by_rank(&a->rank, &b->rank);
}

/* Sorts @ranks, which are ascending, group by group of each level; the first one stays. */
static void
follow_tree(const LhNetwork *n, uint32_t *ranks, uint32_t size)
{
    const LhPcieTree *tree = &n->topology->tree;
    const uint32_t levels = lh_pcie_levels_count(tree);
    g_autofree TreeSeat *seats = g_new0(TreeSeat, size);
    g_autofree uint32_t *first = g_new(uint32_t, n->gpus_per_node);

    for (uint32_t level = 0; level < levels; level++) {
        memset(first, 0xff, n->gpus_per_node * sizeof(*first));
        for (uint32_t i = 0; i < size; i++) {
            const uint32_t group = lh_pcie_group(tree, level, ranks[i] % n->gpus_per_node);

            first[group] = MIN(first[group], ranks[i]);
            seats[i].firsts[levels - 1 - level] = first[group];
        }
    }
    for (uint32_t i = 0; i < size; i++)
        seats[i].rank = ranks[i];
    qsort(seats, size, sizeof(*seats), by_seat);
    for (uint32_t i = 0; i < size; i++)
        ranks[i] = seats[i].rank;
}

static void
forget_turns(LhRings *rings)
{
    g_clear_pointer(&rings->nodes, g_free);
    g_clear_pointer(&rings->firsts, g_free);
    g_clear_pointer(&rings->entries, g_free);
    g_clear_pointer(&rings->units, g_free);
    g_clear_pointer(&rings->nexts, g_free);
}

/* Sets the members' order to that of @ranks, which are node by node, and rotates the rings against
 * each other. */
static void
set_order(LhRings *rings, const LhNetwork *network, const LhGroup *group, const uint32_t *ranks,
          uint32_t nodes)
{
    forget_turns(rings);
    for (uint32_t i = 0; i < rings->size; i++) {
        rings->members[i] = lh_group_position(group, ranks[i]);
        rings->places[rings->members[i]] = i;
    }
    if (rings->count > 1) {
        find_entries(rings, network, ranks, nodes);
        find_units(rings, network, ranks, nodes);
        rings->nexts = find_nexts(rings);
    }
}

static double
slowest_of_order(const LhRings *rings, const LhNetwork *network, const LhGroup *group)
{
    g_autofree LhRingHop *hops = lh_ring_hops_new(network, group, rings);
    double slowest_s_per_byte = 0;

    for (uint64_t i = 0; i < lh_ring_hops_count(rings); i++)
        slowest_s_per_byte = fmax(slowest_s_per_byte, hops[i].s_per_byte);
    return slowest_s_per_byte;
}

/* Sort key of a member of rings on several nodes: its NIC in the cluster. */
typedef struct {
    uint32_t nic, rank;
} NicSeat;

static int
by_nic(gconstpointer x, gconstpointer y)
{
    const NicSeat *a = x, *b = y;

    return a->nic != b->nic ? (a->nic < b->nic ? -1 : 1) : by_rank(&a->rank, &b->rank);
}

/* Sorts @ranks NIC by NIC, hence node by node. */
static void
follow_nics(const LhNetwork *n, uint32_t *ranks, uint32_t size)
{
    g_autofree NicSeat *seats = g_new(NicSeat, size);

    for (uint32_t i = 0; i < size; i++)
        seats[i] = (NicSeat){ lh_network_nic(n, ranks[i]), ranks[i] };
    qsort(seats, size, sizeof(*seats), by_nic);
    for (uint32_t i = 0; i < size; i++)
        ranks[i] = seats[i].rank;
}

static bool
is_by_nic(const LhNetwork *n, const uint32_t *ranks, uint32_t size)
{
    for (uint32_t i = 1; i < size; i++) {
        if (lh_network_nic(n, ranks[i]) < lh_network_nic(n, ranks[i - 1]))
            return false;
    }
    return true;
}

/* Chooses between the order of ranks, which is set, and that of the PCIe tree or of NICs, whichever
 * makes rings faster: NVLink may connect GPUs of different groups. */
static void
choose_order(LhRings *rings, const LhNetwork *network, const LhGroup *group, uint32_t *ranks,
             uint32_t nodes)
{
    const double by_ranks = slowest_of_order(rings, network, group);

    if (nodes == 1)
        follow_tree(network, ranks, rings->size);
    else
        follow_nics(network, ranks, rings->size);
    set_order(rings, network, group, ranks, nodes);
    if (slowest_of_order(rings, network, group) < by_ranks)
        return;
    qsort(ranks, rings->size, sizeof(*ranks), by_rank);
    set_order(rings, network, group, ranks, nodes);
}

void
lh_rings_init(LhRings *rings, const LhNetwork *network, const LhGroup *group)
{
    const uint32_t size = (uint32_t)lh_group_size(group);
    g_autofree uint32_t *ranks = lh_sorted_ranks(group);
    uint32_t nics, nodes;

    nics = fewest_nics(network, ranks, size, &nodes);
    *rings = (LhRings){ .count = nodes > 1 ? MIN(nics, LH_RINGS_MAX) : 1,
                        .size = size,
                        .members = g_new(uint32_t, size),
                        .places = g_new(uint32_t, size) };
    set_order(rings, network, group, ranks, nodes);
    if (nodes == 1 ? lh_pcie_is_crossed(&network->topology->tree)
                   : rings->count > 1 && !is_by_nic(network, ranks, size))
        choose_order(rings, network, group, ranks, nodes);
}

void
lh_rings_clear(LhRings *rings)
{
    g_free(rings->members);
    g_free(rings->places);
    forget_turns(rings);
}
