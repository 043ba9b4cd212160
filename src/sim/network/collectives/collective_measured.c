/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives with a known total time: measured, or by a formula. When all members have arrived,
 * each link that the collective loads carries one flow of all bytes that cross it, with its own
 * rate limit: on an idle network all flows leave after the bytes' part of the time. The rest of the
 * time, which does not depend on bytes, delays their arrival. All members end when the last flow
 * has arrived. Alone a collective takes the known time; beside other traffic it shares links, and
 * no link exceeds its bandwidth.
 *
 * Not modelled: messages of one collective that cross several links are as slow on each as on the
 * slowest of them; the collective waits for the slowest link anyway. Nor are members that start
 * before the last one has arrived.
 */
#include "sim/network/collectives/collective_measured.h"

#include "sim/network/collectives/collectives_private.h"
#include "sim/network/traffic.h"

#include <math.h>

static uint32_t
end_of_all(const LhCollective *c, uint32_t position)
{
    (void)c;
    (void)position;
    return 1;
}

static void
no_hops(LhCollective *c, uint32_t position)
{
    (void)c;
    (void)position;
}

/* Scripts use the messages that it models (script.h). */
const LhAlgorithm lh_algorithm_measured = { .together = true,
                                            .ends = end_of_all,
                                            .joined = no_hops };

LhMeasuredTime
lh_measured_time(const LhTraffic *traffic, const uint64_t *part_bytes, double seconds,
                 double floor_s)
{
    LhMeasuredTime time = { 0 };
    const LhTime whole_ps = lh_time_from_ps(seconds * (double)LH_PS_PER_S);
    const LhTime floor_ps = MIN(lh_time_from_ps(floor_s * (double)LH_PS_PER_S), whole_ps);
    const double bound_s = lh_traffic_bound_s(traffic, part_bytes, &time.tiers);
    const LhTime bound_ps = lh_time_from_ps(ceil(bound_s * (double)LH_PS_PER_S));

    time.links_ps = bound_ps == 0 ? 0 : MAX(whole_ps - floor_ps, bound_ps);
    time.floor_ps = MAX(whole_ps - time.links_ps, 0);
    return time;
}

/* The bytes that a rank would send, including its own part, in an even all-to-all that keeps it as
 * busy as the busiest rank is here. Sending and receiving overlap. */
static double
busiest_bytes(const LhCollective *c)
{
    uint64_t busiest = 0;

    for (uint32_t a = 0; a < c->size; a++) {
        uint64_t sent = 0, received = 0;

        for (uint32_t b = 0; b < c->size; b++) {
            sent += a == b ? 0 : lh_collective_piece(c, a, b);
            received += a == b ? 0 : lh_collective_piece(c, b, a);
        }
        busiest = MAX(busiest, MAX(sent, received));
    }
    return (double)busiest * c->size / (c->size - 1);
}

const LhTraffic *
lh_collective_traffic(LhCollectives *cs, LhCollective *c)
{
    LhTraffic **traffic = c->pieces != NULL ? &c->traffic : &c->communicator->traffic[c->kind];

    if (*traffic == NULL)
        *traffic = lh_traffic_new(
            cs->network, c,
            lh_nccl_measured_algorithm(
                lh_communicator_native(cs->network, cs->device, c->communicator), c->kind),
            cs->fold);
    return *traffic;
}

LhMeasuredTime
lh_collective_measured(LhCollectives *cs, LhCollective *c, const uint64_t *part_bytes,
                       int *provenance)
{
    double floor_s;
    const double seconds = lh_nccl_measured_parts(
        lh_communicator_native(cs->network, cs->device, c->communicator), c->kind,
        c->pieces != NULL ? busiest_bytes(c) : (double)c->shard_bytes, &floor_s, provenance);

    return lh_measured_time(lh_collective_traffic(cs, c), part_bytes, seconds, floor_s);
}
