/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traffic of a collective: the bytes on each link and the bytes sent by each member, for all its
 * messages together, counted in parts of equal size. A network that carries a whole collective as
 * one flow per loaded link needs nothing else.
 */
#pragma once

#include "sim/network/collectives/collective.h"
#include "sim/network/link_bound.h"

typedef struct _LhTraffic LhTraffic;

/* A loaded link, and two members whose message crosses it. */
typedef struct {
    uint32_t id, from, to;
    double bandwidth_bytes_per_s;
    uint8_t tier;
    /* The other direction carries the same, as one flow with it: this link comes first, or
     * second. */
    bool leads, follows;
} LhTrafficLink;

struct _LhTraffic {
    LhLinkAlgorithm algorithm; /* not the default */
    uint32_t parts; /* number of kinds of parts: pieces of each ring, equal pieces of pairs, ... */
    GArray *links;  /* of LhTrafficLink, each once, in order of the messages */
    GArray *loads;  /* of uint64_t, by link and kind of part: number of parts that cross it */
    /* With one kind of part: the bound for parts of one byte, and its tiers. */
    double bound_s_per_byte;
    uint8_t bound_tiers;
    uint64_t *sent; /* likewise, by member, tier and kind of part */
    uint32_t size;
    uint8_t tiers; /* tiers with traffic, a bit for each */
    bool folds;    /* links with the same representative carry the same */
};

/*
 * The traffic of collective @c with @algorithm. @fold: folding of ranks, or NULL. Parts of uneven
 * all-to-alls are single bytes. Caller frees.
 */
LhTraffic *lh_traffic_new(const LhNetwork *network, const LhCollective *c,
                          LhLinkAlgorithm algorithm, const LhSymmetryGroups *fold);
void lh_traffic_free(LhTraffic *traffic);

/* Writes the bytes of each kind of part to @part_bytes (LH_RINGS_MAX entries). */
void lh_traffic_parts(const LhTraffic *traffic, const LhCollective *c, uint64_t *part_bytes);

/* Bytes on link @i of the list; bytes that the member at @position sends over @tier. */
uint64_t lh_traffic_link_bytes(const LhTraffic *traffic, const uint64_t *part_bytes, guint i);
uint64_t lh_traffic_sent_bytes(const LhTraffic *traffic, const uint64_t *part_bytes,
                               uint32_t position, uint32_t tier);

/* Lower bound in seconds: the time of the most loaded link. Sets @tiers to the tiers that would all
 * have to be faster to lower it, a bit for each LhTier. 0 and none if nothing is sent. */
double lh_traffic_bound_s(const LhTraffic *traffic, const uint64_t *part_bytes, uint8_t *tiers);
