/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings as fluids: everything that one member sends to the next during a whole collective, p pieces
 * in each ring, is one flow. Flows start when all members have arrived and share links with all
 * other traffic. All members end when the last flow has arrived. That takes O(n k) events for n
 * members and k rings, where rings of pieces take O(n^2 k).
 *
 * A ring also pays hop latency wherever the next piece is not there when the previous one has left.
 * On an idle network that is a longest path: piece 0 starts at some hop at time 0; the next piece
 * starts t_j later at the same hop j (the previous piece has left), or t_j + l_j later at the
 * following hop (the piece has arrived there). t_j is the time of a piece at the hop's share of its
 * links, l_j its latency. A path over the hops a .. b that stays where t_j is longest, T, takes
 *
 *     p T + sum over a .. b of (t_j + l_j - T),    1 to p hops
 *
 * and the flows alone take max (p t_j + l_j). The difference delays the arrival of all flows. Rings
 * do not wait for one another (LhRingShare), so the slowest of several counts.
 *
 * Not modelled: members far behind the slowest hop, which end earlier in a ring of pieces; and
 * members that start sending before the last one has arrived.
 */
#include "sim/network/collectives/collectives_private.h"
#include "sim/network/collectives/script.h"

#include <math.h>

/* Sends one flow to the member that follows in @ring, for all rings in which it follows. */
static void
send_flow(LhCollective *c, uint32_t ring, uint32_t position)
{
    const uint32_t next = lh_rings_next(c->rings, ring, position);
    const LhRingShare *shares =
        c->shares == NULL ? NULL : &c->shares[(gsize)position * c->rings->count];
    LhHop hop = { .from = position, .to = next, .delay_ps = c->delay_ps };

    for (uint32_t r = 0; r < c->rings->count; r++) {
        if (lh_rings_next(c->rings, r, position) != next)
            continue;
        if (r < ring)
            return; /* included in the flow of that ring */
        hop.pieces++;
        hop.bytes += c->steps * lh_piece_bytes(c->shard_bytes, r, c->rings->count);
        hop.share.bytes_per_s += shares == NULL ? 0 : shares[r].bytes_per_s;
        hop.share.tiers |= shares == NULL ? 0 : shares[r].tiers;
    }
    lh_collective_send_hop(c, hop);
}

static void
fluid_joined(LhCollective *c, uint32_t position)
{
    (void)position;
    if (c->joined < c->size || c->size == 1)
        return;
    for (uint32_t i = 0; i < c->size; i++)
        for (uint32_t ring = 0; ring < c->rings->count; ring++)
            send_flow(c, ring, i);
}

static uint32_t
fluid_ends(const LhCollective *c, uint32_t position)
{
    (void)position;
    return c->size == 1 ? 0 : 2 * c->rings->count + 1; /* plus one for the common end */
}

/* The bytes of the rings in which @b follows @a. */
static uint64_t
flow_bytes(const LhCollective *c, uint32_t a, uint32_t b)
{
    uint64_t bytes = 0;

    for (uint32_t r = 0; r < c->rings->count; r++)
        if (lh_rings_next(c->rings, r, a) == b)
            bytes += c->steps * lh_piece_bytes(c->shard_bytes, r, c->rings->count);
    return bytes;
}

/* Whether a ring before @ring has the same neighbour. */
static bool
is_told(const LhCollective *c, uint32_t ring, uint32_t position,
        uint32_t (*neighbour)(const LhRings *, uint32_t, uint32_t))
{
    for (uint32_t r = 0; r < ring; r++)
        if (neighbour(c->rings, r, position) == neighbour(c->rings, ring, position))
            return true;
    return false;
}

static void
fluid_script(const LhCollective *c, uint32_t position, LhScript *script)
{
    for (uint32_t r = 0; r < c->rings->count && c->size > 1; r++) {
        const uint32_t next = lh_rings_next(c->rings, r, position);
        const uint32_t before = lh_rings_previous(c->rings, r, position);

        if (!is_told(c, r, position, lh_rings_next))
            lh_script_add(script, LH_SCRIPT_SEND, next, flow_bytes(c, position, next), NULL, 0);
        if (!is_told(c, r, position, lh_rings_previous))
            lh_script_add(script, LH_SCRIPT_RECEIVE, before, flow_bytes(c, before, position), NULL,
                          0);
    }
}

const LhAlgorithm lh_algorithm_fluid = {
    .together = true, .ends = fluid_ends, .joined = fluid_joined, .script = fluid_script
};

/* ---- latency ---- */

/* The largest sum of 1 to @longest consecutive values of @hops - @less, around the ring repeatedly
 * if necessary. Computed from prefix sums: the current one minus the minimum of those before it in
 * the window, which is at the front of a monotonic queue. */
static double
largest_sum(const double *hops, uint32_t size, uint32_t longest, double less)
{
    const uint32_t count = size + longest;
    g_autofree double *sums = g_new(double, (gsize)count + 1);
    g_autofree uint32_t *queue = g_new0(uint32_t, (gsize)count + 1);
    uint32_t first = 0, end = 0;
    double largest = -INFINITY;

    sums[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        while (end > first && sums[queue[end - 1]] >= sums[i])
            end--;
        queue[end++] = i;
        if (queue[first] + longest <= i)
            first++;
        sums[i + 1] = sums[i] + hops[i % size] - less;
        largest = fmax(largest, sums[i + 1] - sums[queue[first]]);
    }
    return largest;
}

/* Time of a hop's flow at its share of its links, together with the other rings that follow the
 * same way in one flow. */
static double
flow_seconds(const LhCollective *c, const LhRingHop *hops, uint32_t ring, uint32_t place)
{
    const LhRings *rings = c->rings;
    const uint32_t from = lh_rings_member(rings, ring, place);
    const uint32_t to = lh_rings_next(rings, ring, from);
    double bytes_per_s = 0;

    for (uint32_t r = 0; r < rings->count; r++)
        if (lh_rings_next(rings, r, from) == to)
            bytes_per_s +=
                1 / hops[(gsize)r * rings->size + lh_rings_place(rings, r, from)].s_per_byte;
    return (double)flow_bytes(c, from, to) / bytes_per_s;
}

LhTime
lh_fluid_delay(const LhCollective *c, const LhRingHop *hops)
{
    g_autofree double *times = g_new(double, c->size);
    double pieces_s = 0, flows_s = 0;

    for (uint32_t ring = 0; ring < c->rings->count && c->size > 1; ring++) {
        const double bytes = (double)lh_piece_bytes(c->shard_bytes, ring, c->rings->count);
        double longest = 0;

        for (uint32_t i = 0; i < c->size; i++) {
            const LhRingHop *hop = &hops[(gsize)ring * c->size + i];
            const double move_s = bytes * hop->s_per_byte;

            if (!isfinite(hop->s_per_byte))
                return 0; /* a link has failed; the run reports it when it starts */
            times[i] = move_s + hop->latency_s;
            longest = fmax(longest, move_s);
            flows_s = fmax(flows_s, flow_seconds(c, hops, ring, i) + hop->latency_s);
        }
        pieces_s =
            fmax(pieces_s, c->steps * longest + largest_sum(times, c->size, c->steps, longest));
    }
    return lh_time_from_ps(fmax(pieces_s - flows_s, 0) * (double)LH_PS_PER_S);
}
