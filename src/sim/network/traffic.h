/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a collective puts on links and what its members send, all of its messages together: of parts
 * that are as large as each other whoever sends them. A network that carries a whole collective as
 * one flow for each link that it loads needs to know no more.
 */
#pragma once

#include "sim/network/collectives/collective.h"
#include "sim/network/link_bound.h"

typedef struct _LhTraffic LhTraffic;

/* A link that carries something, and two members whose message does. */
typedef struct {
    uint32_t id, from, to;
    double bandwidth_bytes_per_s;
    uint8_t tier;
    /* The other direction carries the same, as one flow with it: told first, or behind it. */
    bool leads, follows;
} LhTrafficLink;

struct _LhTraffic {
    LhLinkAlgorithm algorithm; /* not the default */
    uint32_t parts;            /* kinds of parts: pieces of each ring, equal pieces of pairs, ... */
    GArray *links;             /* of LhTrafficLink, each once, in the order of the messages */
    GArray *loads;             /* of uint64_t, by link and kind of part: how many cross it */
    /* If there is one kind of part: the bound of parts of one byte, and its tiers. */
    double bound_s_per_byte;
    uint8_t bound_tiers;
    uint64_t *sent; /* likewise by member, tier and kind of part */
    uint32_t size;
    uint8_t tiers; /* over which something is sent, a bit for each */
    bool folds;    /* links that one link stands for carry the same */
};

/*
 * Of collective @c, whose messages go as @algorithm says; @fold: who stands for whom (NULL:
 * nobody). Parts of uneven all-to-alls are single bytes. Caller frees.
 */
LhTraffic *lh_traffic_new(const LhNetwork *network, const LhCollective *c,
                          LhLinkAlgorithm algorithm, const LhSymmetryGroups *fold);
void lh_traffic_free(LhTraffic *traffic);

/* The bytes of each kind of part, into @part_bytes (LH_RINGS_MAX of them). */
void lh_traffic_parts(const LhTraffic *traffic, const LhCollective *c, uint64_t *part_bytes);

/* What link @i of the list carries; what the member at @position sends over @tier. */
uint64_t lh_traffic_link_bytes(const LhTraffic *traffic, const uint64_t *part_bytes, guint i);
uint64_t lh_traffic_sent_bytes(const LhTraffic *traffic, const uint64_t *part_bytes,
                               uint32_t position, uint32_t tier);

/* Seconds that the most loaded link takes at least, and in @tiers, a bit for each LhTier, the tiers
 * that would all have to be faster for it to be less. 0 and none if nothing is sent. */
double lh_traffic_bound_s(const LhTraffic *traffic, const uint64_t *part_bytes, uint8_t *tiers);
