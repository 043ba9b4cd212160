/*
 * What rings of pieces pay on an idle network that flows in their place do not. One ring whose hops
 * share no link has a formula (collective_fluid.c). Others are played, because their pieces wait
 * for one another. What makes this O(n k) for most of n members is that all pairs of nodes do the
 * same: one pair stands for them. Else all pieces are played if these are few, or as many as show
 * the pace at which the others follow.
 *
 * Communicators with equal hops take equal times; each time is found once.
 */
#include "sim/network/collective.h"

#include <math.h>

/* Hops of pieces that a play may take: some seconds. */
#define PLAYED_MAX (UINT64_C(1) << 24)

typedef struct {
    const LhRingHop *hops; /* of all rings; borrowed */
    uint64_t hops_count;
    uint32_t rings_count, steps;
    uint64_t shard_bytes;
    LhTime delay_ps;
} Known;

struct _LhRingDelays {
    const LhNetwork *network;
    GArray *known; /* of Known */
};

LhRingDelays *
lh_ring_delays_new(const LhNetwork *network)
{
    LhRingDelays *delays = g_new(LhRingDelays, 1);

    *delays = (LhRingDelays){ network, g_array_new(FALSE, FALSE, sizeof(Known)) };
    return delays;
}

void
lh_ring_delays_free(LhRingDelays *delays)
{
    if (delays == NULL)
        return;
    g_array_unref(delays->known);
    g_free(delays);
}

/* ---- pairs of nodes ---- */

static bool
equal_hops(const LhRingHop *a, const LhRingHop *b, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (a[i].latency_s != b[i].latency_s || a[i].s_per_byte != b[i].s_per_byte ||
            a[i].alone_s_per_byte != b[i].alone_s_per_byte)
            return false;
    return true;
}

/* Whether the @hops of each ring are those of the shorter one in @part, over and over. */
static bool
repeats(const LhRingHop *hops, uint32_t size, const LhRingHop *part, uint32_t part_size,
        uint32_t rings)
{
    for (uint32_t ring = 0; ring < rings; ring++)
        for (uint32_t i = 0; i < size; i += part_size)
            if (!equal_hops(&hops[(gsize)ring * size + i], &part[(gsize)ring * part_size],
                            part_size))
                return false;
    return true;
}

/*
 * The rings of the first two nodes of @round, if those of all of it are many of these one after the
 * other: then every pair of nodes sends and receives what this one sends and receives, at the same
 * times. Caller clears @rings if so.
 */
static bool
find_pair(const LhRound *round, const LhRingHop *hops, LhGroup *group, LhRings *rings)
{
    const LhRings *all = round->rings;
    const uint32_t size = all->count > 1 ? all->firsts[2] : 0;
    g_autofree LhRingHop *part = NULL;

    if (size == 0 || all->size <= size || all->size % size != 0 || round->group->outer_count > 1)
        return false;
    *group = *round->group;
    group->count = size;
    lh_rings_init(rings, round->network, group);
    part = lh_ring_hops_new(round->network, group, rings);
    if (rings->count == all->count && repeats(hops, all->size, part, size, all->count))
        return true;
    lh_rings_clear(rings);
    return false;
}

/* ---- times ---- */

static LhRingTimes
played_times(const LhRound *round, const LhRingHop *hops, uint32_t steps)
{
    LhRound played = *round;
    LhRingTimes times;
    LhGroup group;
    LhRings rings;
    const bool pair = find_pair(round, hops, &group, &rings);

    if (pair) {
        played.group = &group;
        played.rings = &rings;
    }
    times.pieces_s = lh_round_pieces_seconds(&played, steps, PLAYED_MAX);
    times.flows_s = lh_round_seconds(&played, &lh_algorithm_fluid, steps);
    if (pair)
        lh_rings_clear(&rings);
    return times;
}

/* A link that has failed carries nothing, and the run says so when it starts. */
static bool
all_work(const LhRingHop *hops, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(hops[i].alone_s_per_byte))
            return false;
    return true;
}

/* Whether a formula says it all. */
static bool
pieces_go_alone(const LhCollective *c, const LhRingHop *hops)
{
    for (uint32_t i = 0; i < c->size; i++)
        if (hops[i].s_per_byte > hops[i].alone_s_per_byte)
            return false;
    return c->rings->count == 1;
}

static LhTime
find_delay(const LhNetwork *network, const LhCollective *c, const LhRingHop *hops)
{
    const LhRound round = { network, lh_collective_group(c), c->rings, c->shard_bytes };
    LhRingTimes times = lh_fluid_times(c, hops);

    if (!pieces_go_alone(c, hops)) {
        const LhRingTimes played = played_times(&round, hops, c->steps);

        times.pieces_s = fmax(times.pieces_s, played.pieces_s);
        times.flows_s = played.flows_s;
    }
    return lh_time_from_ps(fmax(times.pieces_s - times.flows_s, 0) * (double)LH_PS_PER_S);
}

static bool
equal(const Known *a, const Known *b)
{
    return a->steps == b->steps && a->shard_bytes == b->shard_bytes &&
           a->rings_count == b->rings_count && a->hops_count == b->hops_count &&
           (a->hops == b->hops || equal_hops(a->hops, b->hops, a->hops_count));
}

LhTime
lh_ring_delays_get(LhRingDelays *delays, const LhCollective *c, const LhRingHop *hops)
{
    Known wanted = { .hops = hops,
                     .hops_count = lh_ring_hops_count(c->rings),
                     .rings_count = c->rings->count,
                     .steps = c->steps,
                     .shard_bytes = c->shard_bytes };

    if (c->size == 1 || !all_work(hops, wanted.hops_count))
        return 0;
    for (guint i = 0; i < delays->known->len; i++) {
        const Known *known = &g_array_index(delays->known, Known, i);

        if (equal(known, &wanted))
            return known->delay_ps;
    }
    wanted.delay_ps = find_delay(delays->network, c, hops);
    g_array_append_val(delays->known, wanted);
    return wanted.delay_ps;
}
