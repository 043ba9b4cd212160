/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Efficiency of messages: rows of "sendrecv" state it. Without such a row, messages are assumed to
 * reach the bandwidth of the links, as long as rings of collectives reach it, or nearly. Otherwise
 * one of both is wrong: on some machines rings of a collective are slow and messages are not
 * (docs/reference/model.md). Messages are then assumed in between, at the geometric mean.
 */
#include "sim/network/sends.h"

#include "sim/network/collectives/collective_times.h"
#include "sim/network/link_bound.h"

#include <math.h>

/* Rings below this fraction of link bandwidth contradict it. Two GPUs are no ring to judge by:
 * where latencies dominate, NVLinks of two GPUs take as long as those of eight. */
#define RINGS_REACH 0.6
#define RING_MEMBERS_MIN 4

/* If the time falls below this fraction with more GPUs at equal bytes per rank, the rows are from
 * different machines. */
#define FALLS_TO 0.8

/* From this size on links dominate the time. */
#define LARGE_BYTES (UINT64_C(16) << 20)

static const LhCollectiveTimes *
send_row(const LhTopology *t, guint i)
{
    return &g_array_index(t->collective_times, LhCollectiveTimes, i);
}

static guint
send_rows(const LhTopology *t)
{
    return t->collective_times == NULL ? 0 : t->collective_times->len;
}

/* The tier of the links that limit a row. */
static LhTier
tier_of_row(const LhTopology *t, const LhCollectiveTimes *row)
{
    if (t->scale_up == LH_SCALE_UP_NONE || (t->scale_up == LH_SCALE_UP_PAIRS && row->ranks > 2))
        return LH_TIER_PCIE;
    return LH_TIER_NVLINK;
}

/* Whether the row is the first one for its operation and number of GPUs. */
static bool
is_first(const LhTopology *t, guint index)
{
    for (guint i = 0; i < index; i++) {
        if (send_row(t, i)->op == send_row(t, index)->op &&
            send_row(t, i)->ranks == send_row(t, index)->ranks)
            return false;
    }
    return true;
}

static bool
is_of_tier(const LhTopology *t, guint index, LhTier tier)
{
    return tier_of_row(t, send_row(t, index)) == tier && is_first(t, index);
}

static bool
is_ring(const LhCollectiveTimes *row)
{
    return row->op != LH_COLL_ALL_TO_ALL && row->op != LH_TIMES_OF_SENDS &&
           row->algorithm <= LH_ALGORITHM_RING && row->ranks >= RING_MEMBERS_MIN;
}

/* The row of sends with the same number of GPUs, else the next larger one, else the largest. */
static const LhCollectiveTimes *
timed_sends(const LhTopology *t, LhTier tier, uint64_t gpus)
{
    const LhCollectiveTimes *found = NULL;

    for (guint i = 0; i < send_rows(t); i++) {
        const LhCollectiveTimes *row = send_row(t, i);

        if (row->op != LH_TIMES_OF_SENDS || !is_of_tier(t, i, tier))
            continue;
        if (found == NULL ||
            (row->ranks >= gpus ? found->ranks < gpus || row->ranks < found->ranks
                                : row->ranks > found->ranks && found->ranks < gpus))
            found = row;
    }
    return found;
}

/* The largest number of GPUs of rows of rings that apply to a run: the GPUs used, but at least the
 * fewest of any such row. */
static uint64_t
ring_members(const LhTopology *t, LhTier tier, uint64_t gpus)
{
    uint64_t fewest = UINT64_MAX;

    for (guint i = 0; i < send_rows(t); i++) {
        if (is_ring(send_row(t, i)) && is_of_tier(t, i, tier))
            fewest = MIN(fewest, send_row(t, i)->ranks);
    }
    return gpus < 3 || fewest == UINT64_MAX ? 0 : MAX(gpus, fewest);
}

/* The ring of most GPUs, preferably an all-gather, if any ring contradicts the bandwidth of the
 * links; NULL: none does. */
static const LhCollectiveTimes *
contradicting_ring(const LhTopology *t, LhTier tier, uint64_t gpus)
{
    const LhCollectiveTimes *largest = NULL;
    const uint64_t members = ring_members(t, tier, gpus);
    double least = 1;

    for (guint i = 0; i < send_rows(t); i++) {
        const LhCollectiveTimes *row = send_row(t, i);
        const bool gathers = row->op == LH_COLL_ALL_GATHER;

        if (!is_ring(row) || row->ranks > members || !is_of_tier(t, i, tier) || row->reached <= 0)
            continue;
        least = fmin(least, row->reached);
        if (largest == NULL || (gathers && largest->op != LH_COLL_ALL_GATHER) ||
            (gathers == (largest->op == LH_COLL_ALL_GATHER) && row->ranks > largest->ranks))
            largest = row;
    }
    return least < RINGS_REACH ? largest : NULL;
}

LhSends
lh_sends_of(const LhTopology *topology, LhTier tier, uint64_t gpus)
{
    const LhCollectiveTimes *row = timed_sends(topology, tier, gpus);

    if (row != NULL && row->reached > 0)
        return (LhSends){ row->reached, row->reached, row->reached, row };
    row = contradicting_ring(topology, tier, gpus);
    if (row == NULL)
        return (LhSends){ 1, 1, 1, NULL };
    return (LhSends){ sqrt(row->reached), row->reached, 1, row };
}

void
lh_sends_limit(const LhNetwork *network, LhRoute *route)
{
    const double share = route->tier <= LH_TIER_PCIE ? network->sends[route->tier] : 1;

    if (share >= 1)
        return;
    g_assert(route->links_count < LH_ROUTE_MAX);
    route->flow_bandwidth_bytes_per_s = share * lh_network_route_bandwidth(network, route);
}

static uint64_t
gpus_of_node(const LhNetwork *n)
{
    return MIN(n->ranks, n->gpus_per_node);
}

bool
lh_sends_assume(LhNetwork *network, bool most)
{
    bool assumed = false;

    for (int tier = 0; tier <= LH_TIER_PCIE; tier++) {
        const LhSends sends = lh_sends_of(network->topology, (LhTier)tier, gpus_of_node(network));

        if (sends.least == sends.most)
            continue;
        network->sends[tier] = most ? sends.most : sends.least;
        assumed = true;
    }
    return assumed;
}

/* ---- warnings ---- */

/* The slowest and fastest hop rates of a ring at large sizes; @share is the fraction of the bytes
 * that a hop carries. */
static void
hop_rates(const LhCollectiveTimes *row, double share, double *slowest, double *fastest)
{
    const guint last = row->bytes->len - 1;

    *slowest = INFINITY;
    *fastest = 0;
    for (guint i = 0; i <= last; i++) {
        const uint64_t bytes = g_array_index(row->bytes, uint64_t, i);
        const double rate =
            share * (double)bytes * G_USEC_PER_SEC / g_array_index(row->us, double, i);

        if (bytes < LARGE_BYTES && i < last)
            continue;
        *slowest = fmin(*slowest, rate);
        *fastest = fmax(*fastest, rate);
    }
}

/* Rounded to two digits. */
static char *
rate_text(double bytes_per_s)
{
    const double unit = pow(10, floor(log10(bytes_per_s)) - 1);

    return lh_format_bandwidth(round(bytes_per_s / unit) * unit);
}

static char *
rates_text(double slowest, double fastest)
{
    g_autofree char *low = rate_text(slowest), *high = rate_text(fastest);

    return g_strcmp0(low, high) == 0 ? g_strdup(low) : g_strdup_printf("%s to %s", low, high);
}

static void
add_ring_doubt(GPtrArray *doubts, const LhTopology *t, LhTier tier, const LhSends *sends)
{
    const LhCollectiveTimes *row = sends->row;
    const double moved = lh_ring_share((LhCollectiveKind)row->op, (double)row->ranks);
    const LhLinkClass *link = tier == LH_TIER_PCIE ? &t->pcie : &t->nvlink;
    double slowest, fastest;
    g_autofree char *rates = NULL, *said = NULL, *taken = NULL;

    hop_rates(row, moved, &slowest, &fastest);
    rates = rates_text(slowest, fastest);
    said = rate_text(moved / row->bound_s_per_byte);
    taken = rate_text(sends->share * moved / row->bound_s_per_byte);
    g_ptr_array_add(
        doubts, g_strdup_printf(
                    "%s of %" G_GUINT64_FORMAT
                    " GPUs was measured at %s per hop, but the bandwidth of %s (%s) allows %s: "
                    "sends are assumed in between, at %s, with both as the error bar; to measure "
                    "them, run sendrecv_perf -g %" G_GUINT64_FORMAT,
                    lh_collective_names[row->op], row->ranks, rates, lh_topology_link_name(t, tier),
                    lh_provenance_names[link->from.provenance], said, taken, row->ranks));
}

/* The lowest ratio of the time of @more to that of @fewer, at equal bytes per rank of large sizes
 * (below, protocols differ). Sets *@bytes to the size of @fewer there. */
static double
lowest_ratio(const LhCollectiveTimes *fewer, const LhCollectiveTimes *more, uint64_t *bytes)
{
    const guint last = more->bytes->len - 1;
    double lowest = INFINITY;

    for (guint i = 0; i < fewer->bytes->len; i++) {
        const uint64_t size = g_array_index(fewer->bytes, uint64_t, i);
        const double same = lh_collective_times_same_of_a_rank(fewer, (double)size, more->ranks);
        double ratio;

        if (size < LARGE_BYTES || same > (double)g_array_index(more->bytes, uint64_t, last))
            continue;
        ratio = lh_collective_times_us(more, same) / lh_collective_times_us(fewer, (double)size);
        if (ratio >= lowest)
            continue;
        lowest = ratio;
        *bytes = size;
    }
    return lowest;
}

static void
add_falling_doubt(GPtrArray *doubts, const LhCollectiveTimes *fewer, const LhCollectiveTimes *more)
{
    uint64_t bytes = 0;
    const double ratio = lowest_ratio(fewer, more, &bytes);
    g_autofree char *size = lh_format_bytes(bytes);

    if (ratio >= FALLS_TO)
        return;
    g_ptr_array_add(doubts,
                    g_strdup_printf("%s takes %.0f %% less on %" G_GUINT64_FORMAT
                                    " GPUs than on %" G_GUINT64_FORMAT
                                    " (at %s there, with equal bytes per rank): the two were "
                                    "probably measured on different machines; measure both again",
                                    lh_times_op_names[fewer->op], 100 * (1 - ratio), more->ranks,
                                    fewer->ranks, size));
}

/* The row of the same operation with the next larger number of GPUs; NULL: none. */
static const LhCollectiveTimes *
next_row(const LhTopology *t, const LhCollectiveTimes *row)
{
    const LhCollectiveTimes *next = NULL;

    for (guint i = 0; i < send_rows(t); i++) {
        const LhCollectiveTimes *other = send_row(t, i);

        if (other->op == row->op && other->ranks > row->ranks && is_first(t, i) &&
            (next == NULL || other->ranks < next->ranks))
            next = other;
    }
    return next;
}

GPtrArray *
lh_measured_doubts(const LhTopology *topology, uint64_t gpus)
{
    GPtrArray *doubts = g_ptr_array_new_with_free_func(g_free);

    for (int tier = 0; tier <= LH_TIER_PCIE && gpus > 1; tier++) {
        const LhSends sends = lh_sends_of(topology, (LhTier)tier, gpus);

        if (sends.row != NULL && sends.least < sends.most)
            add_ring_doubt(doubts, topology, (LhTier)tier, &sends);
    }
    for (guint i = 0; i < send_rows(topology) && gpus > 1; i++) {
        const LhCollectiveTimes *row = send_row(topology, i);
        const LhCollectiveTimes *next = is_first(topology, i) ? next_row(topology, row) : NULL;

        if (next != NULL && next->algorithm == row->algorithm)
            add_falling_doubt(doubts, row, next);
    }
    return doubts;
}
