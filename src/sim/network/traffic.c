/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/traffic.h"

#include "program/collective_semantics.h"
#include "sim/network/path.h"

#include <math.h>
#include <string.h>

/* A traffic under construction. */
typedef struct {
    LhTraffic *traffic;
    const LhNetwork *network;
    const LhCollective *c;
    GHashTable *indices; /* link id to index + 1 */
} Sum;

static uint32_t
rank_of(const LhCollective *c, uint32_t position)
{
    return (uint32_t)lh_group_member(lh_collective_group(c), position);
}

static guint
add_link_of(Sum *sum, uint32_t id, uint32_t from, uint32_t to)
{
    LhTraffic *t = sum->traffic;
    const LhLink of = lh_network_link(sum->network, id);
    const LhTrafficLink link = { .id = id,
                                 .from = from,
                                 .to = to,
                                 .bandwidth_bytes_per_s = of.bandwidth_bytes_per_s,
                                 .tier = of.tier };

    g_array_append_val(t->links, link);
    g_array_set_size(t->loads, t->links->len * t->parts);
    g_hash_table_insert(sum->indices, GUINT_TO_POINTER(id), GUINT_TO_POINTER(t->links->len));
    return t->links->len - 1;
}

/* Index + 1 of the link; 0: it carries nothing so far. */
static guint
number_of(const Sum *sum, uint32_t id)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(sum->indices, GUINT_TO_POINTER(id)));
}

static void
load_link(Sum *sum, uint32_t id, uint32_t from, uint32_t to, uint32_t part, uint64_t count)
{
    const guint known = number_of(sum, id);
    const guint i = known > 0 ? known - 1 : add_link_of(sum, id, from, to);

    g_array_index(sum->traffic->loads, uint64_t, i * sum->traffic->parts + part) += count;
}

static void
add_sent(Sum *sum, uint32_t from, const LhRoute *route, uint32_t part, uint64_t count)
{
    LhTraffic *t = sum->traffic;

    t->tiers |= (uint8_t)(1u << route->tier);
    t->sent[((gsize)from * LH_TIERS + route->tier) * t->parts + part] += count;
}

static void
load_links_of(Sum *sum, uint32_t from, uint32_t to, const LhRoute *route, uint32_t part,
              uint64_t count)
{
    for (uint32_t i = 0; i < route->links_count; i++)
        load_link(sum, route->links[i], from, to, part, count);
}

/* ---- by algorithm ---- */

static void
add_pairs(Sum *sum)
{
    const LhCollective *c = sum->c;

    for (uint32_t from = 0; from < c->size; from++) {
        for (uint32_t further = 1; further < c->size; further++) {
            const uint32_t to = (from + further) % c->size;
            const uint64_t count = c->pieces != NULL ? c->pieces[from][to] : 1;
            LhRoute route;

            lh_network_route(sum->network, rank_of(c, from), rank_of(c, to), &route);
            lh_network_route_in(sum->network, lh_collective_group(c), &route);
            add_sent(sum, from, &route, 0, count);
            load_links_of(sum, from, to, &route, 0, count);
        }
    }
}

/* Whether the member sends data on: the last one of a chain does not. */
static bool
passes_on(const LhCollective *c, uint32_t position)
{
    return lh_collective_bytes_sent(c->kind, lh_collective_group(c), rank_of(c, position), 1) > 0;
}

/* Adds the hops of rings or a chain. A chain's root is the first member, which receives nothing.
 * Bytes are those of the program, whose chain is in group order. */
static void
add_rings(Sum *sum)
{
    const LhCollective *c = sum->c;

    for (uint32_t position = 0; position < c->size; position++) {
        for (uint32_t ring = 0; ring < c->rings->count && c->size > 1; ring++) {
            const uint32_t to = lh_rings_next(c->rings, ring, position);
            LhRoute route;

            lh_network_collective_route(sum->network, rank_of(c, position), rank_of(c, to), &route);
            lh_network_route_in(sum->network, lh_collective_group(c), &route);
            if (passes_on(c, position))
                add_sent(sum, position, &route, ring, 1);
            if (c->kind != LH_COLL_BROADCAST || to != 0)
                load_links_of(sum, position, to, &route, ring, 1);
        }
    }
}

/* Adds NVLS traffic: every member sends all its data to the switch once, and its own reduced slice
 * again, and receives as much. Sends go up its own first link, receives down its last one. */
static void
add_nvls(Sum *sum)
{
    const LhCollective *c = sum->c;
    LhTraffic *t = sum->traffic;

    for (uint32_t position = 0; position < c->size; position++) {
        const uint32_t to = (position + 1) % c->size;
        LhRoute route;

        lh_network_route(sum->network, rank_of(c, position), rank_of(c, to), &route);
        t->tiers |= (uint8_t)(1u << route.tier);
        t->sent[((gsize)position * LH_TIERS + route.tier) * t->parts]++;
        load_link(sum, route.links[0], position, to, 0, 1);
        load_link(sum, route.links[route.links_count - 1], position, to, 0, 1);
    }
}

/* ---- links with equal loads ---- */

static bool
is_equal(const LhTraffic *t, guint i, guint j)
{
    return memcmp(&g_array_index(t->loads, uint64_t, i * t->parts),
                  &g_array_index(t->loads, uint64_t, j * t->parts),
                  t->parts * sizeof(uint64_t)) == 0;
}

/* Whether each link carries the same as its representative. */
static bool
is_alike(const Sum *sum, const LhSymmetryGroups *fold)
{
    const LhTraffic *t = sum->traffic;

    for (guint i = 0; i < t->links->len; i++) {
        const uint32_t id = g_array_index(t->links, LhTrafficLink, i).id;
        const guint like = number_of(sum, lh_symmetry_link(fold, sum->network, id));

        if (like == 0 || !is_equal(t, i, like - 1))
            return false;
    }
    return true;
}

/* Joins opposite directions with equal loads. The links of a place are up with an even id, and down
 * with the next one (network.c). */
static void
join_directions(const Sum *sum)
{
    LhTraffic *t = sum->traffic;

    for (guint i = 0; i < t->links->len; i++) {
        LhTrafficLink *link = &g_array_index(t->links, LhTrafficLink, i);
        const guint other = number_of(sum, link->id ^ 1);

        if (other == 0 || other - 1 < i || !is_equal(t, i, other - 1))
            continue;
        link->leads = true;
        g_array_index(t->links, LhTrafficLink, other - 1).follows = true;
    }
}

/* ---- interface ---- */

static void (*const adders[])(Sum *) = { [LH_ALGORITHM_RING] = add_rings,
                                         [LH_ALGORITHM_NVLS] = add_nvls,
                                         [LH_ALGORITHM_PAIRS] = add_pairs };

/* Resolves the algorithm. All-to-all always uses pairs; NVLS applies to all-reduce only; broadcasts
 * are chains here. */
static LhLinkAlgorithm
resolve(LhCollectiveKind kind, LhLinkAlgorithm algorithm)
{
    if (kind == LH_COLL_ALL_TO_ALL)
        return LH_ALGORITHM_PAIRS;
    if (algorithm == LH_ALGORITHM_NVLS && kind == LH_COLL_ALL_REDUCE)
        return LH_ALGORITHM_NVLS;
    return algorithm == LH_ALGORITHM_PAIRS && kind != LH_COLL_BROADCAST ? LH_ALGORITHM_PAIRS
                                                                        : LH_ALGORITHM_RING;
}

static uint64_t
bytes_of(const uint64_t *counts, const uint64_t *part_bytes, uint32_t parts)
{
    uint64_t bytes = 0;

    for (uint32_t part = 0; part < parts; part++)
        bytes += counts[part] * part_bytes[part];
    return bytes;
}

uint64_t
lh_traffic_link_bytes(const LhTraffic *t, const uint64_t *part_bytes, guint i)
{
    return bytes_of(&g_array_index(t->loads, uint64_t, i * t->parts), part_bytes, t->parts);
}

static double
find_bound_s(const LhTraffic *t, const uint64_t *part_bytes, uint8_t *tiers)
{
    double slowest_s = 0;

    *tiers = 0;
    for (guint i = 0; i < t->links->len; i++) {
        const LhTrafficLink *link = &g_array_index(t->links, LhTrafficLink, i);
        const double bytes = (double)lh_traffic_link_bytes(t, part_bytes, i);

        if (link->bandwidth_bytes_per_s > 0) /* a failed link ends the run elsewhere */
            slowest_s = fmax(slowest_s, bytes / link->bandwidth_bytes_per_s);
    }
    for (guint i = 0; i < t->links->len; i++) {
        const LhTrafficLink *link = &g_array_index(t->links, LhTrafficLink, i);
        const double bytes = (double)lh_traffic_link_bytes(t, part_bytes, i);

        if (bytes * LH_WHAT_IF_FACTOR > slowest_s * link->bandwidth_bytes_per_s)
            *tiers |= (uint8_t)(1u << link->tier);
    }
    return slowest_s;
}

LhTraffic *
lh_traffic_new(const LhNetwork *network, const LhCollective *c, LhLinkAlgorithm algorithm,
               const LhSymmetryGroups *fold)
{
    LhTraffic *t = g_new0(LhTraffic, 1);
    g_autoptr(GHashTable) indices = g_hash_table_new(NULL, NULL);
    Sum sum = { t, network, c, indices };
    const uint64_t a_byte = 1;

    t->size = c->size;
    t->algorithm = resolve(c->kind, algorithm);
    t->parts = t->algorithm == LH_ALGORITHM_RING ? MAX(1, c->rings->count) : 1;
    t->links = g_array_new(FALSE, FALSE, sizeof(LhTrafficLink));
    t->loads = g_array_new(FALSE, TRUE, sizeof(uint64_t));
    t->sent = g_new0(uint64_t, (gsize)c->size * LH_TIERS * t->parts);
    adders[t->algorithm](&sum);
    join_directions(&sum);
    if (t->parts == 1)
        t->bound_s_per_byte = find_bound_s(t, &a_byte, &t->bound_tiers);
    t->folds = fold == NULL || is_alike(&sum, fold);
    return t;
}

void
lh_traffic_free(LhTraffic *traffic)
{
    if (traffic == NULL)
        return;
    g_array_unref(traffic->links);
    g_array_unref(traffic->loads);
    g_free(traffic->sent);
    g_free(traffic);
}

void
lh_traffic_parts(const LhTraffic *traffic, const LhCollective *c, uint64_t *part_bytes)
{
    const LhGroup *group = lh_collective_group(c);

    if (traffic->algorithm == LH_ALGORITHM_NVLS)
        part_bytes[0] = ((uint64_t)c->size + 1) * c->shard_bytes;
    else if (c->pieces != NULL)
        part_bytes[0] = 1;
    else if (traffic->algorithm == LH_ALGORITHM_PAIRS)
        part_bytes[0] =
            lh_collective_bytes_sent(c->kind, group, rank_of(c, 0), c->shard_bytes) / (c->size - 1);
    for (uint32_t ring = 0; traffic->algorithm == LH_ALGORITHM_RING && ring < traffic->parts;
         ring++)
        part_bytes[ring] = lh_collective_bytes_sent(
            c->kind, group, rank_of(c, 0), lh_piece_bytes(c->shard_bytes, ring, traffic->parts));
}

uint64_t
lh_traffic_sent_bytes(const LhTraffic *t, const uint64_t *part_bytes, uint32_t position,
                      uint32_t tier)
{
    return bytes_of(&t->sent[((gsize)position * LH_TIERS + tier) * t->parts], part_bytes, t->parts);
}

double
lh_traffic_bound_s(const LhTraffic *t, const uint64_t *part_bytes, uint8_t *tiers)
{
    if (t->parts > 1)
        return find_bound_s(t, part_bytes, tiers);
    *tiers = t->bound_tiers;
    return t->bound_s_per_byte * (double)part_bytes[0];
}
