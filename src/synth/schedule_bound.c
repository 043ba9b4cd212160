/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cut bound. A node that computes the pairs of a set of A rows and B columns, of which x and y
 * are at home, receives the others and returns their results: (A - x) row + (B - y) column, in
 * units of the tokens of a node. Under the causal mask it has at most A B - t^2 / 2 pairs. Here t,
 * the size of the intersection of both sets, is at least max(A + B - M, x + y - 1, 0), with M
 * nodes' tokens in total. (A square of t also has its diagonal: t / 2 tokens more.) For any price L
 * of a pair, the traffic is at least L pairs - g(L), where g is the maximum of L pairs - traffic
 * over all A, B, x, y. So the mean over the nodes is at least L (mean pairs) - g(L), for every L.
 * The bound covers relays, multicast and any balance of the work, but not reductions within the
 * network.
 *
 * Nodes behind one trunk count as one node with all their tokens: x and y are at most their number
 * h, and the intersection is at least x + y - h. All their traffic goes through the trunk. Groups
 * need not be equal: the sum of g(L) is over all of them.
 */
#include "synth/schedule_bound.h"

#include "kernels/sizes.h"
#include "sched/common/pass.h"
#include "sim/cost/attention_cost.h"
#include "synth/problem.h"

#include <math.h>

#define PRECISION 5e-4 /* of g, relative to L (mean pairs) */
#define PRICES 16      /* steps that narrow down the interval of prices */
#define CELLS_MAX 10000U

/* --- the cut ------------------------------------------------------------------------------------
 */

typedef struct {
    double nodes, home; /* of all, of the group */
    double diagonal;    /* pairs beyond t^2 / 2, per t */
    bool causal;
    double row, column, price;
} Cut;

/* Sets of A in [low_a, low_a + size] rows, and B likewise. */
typedef struct {
    double low_a, low_b, size;
} Cell;

/* The largest price x pairs - traffic in @cell; exact if its size is 0, otherwise an upper
 * bound. */
static double
most(const Cut *c, Cell cell)
{
    const double a = cell.low_a + cell.size, b = cell.low_b + cell.size;
    const double x = fmin(a, c->home), y = fmin(b, c->home), cheap = fmin(c->row, c->column);
    const double costs = fmax(cell.low_a - x, 0) * c->row + fmax(cell.low_b - y, 0) * c->column;
    const double least = fmax(cell.low_a + cell.low_b - c->nodes, 0);
    double home, t;

    if (!c->causal)
        return c->price * a * b - costs;
    /* The intersection of both homes can be given up, the cheaper way, where that pays off. */
    home = fmax(fmin(cell.low_a, c->home) + fmin(cell.low_b, c->home) - c->home, 0);
    t = fmax(least, fmin(home, cheap / c->price));
    return c->price * (a * b - t * t / 2 + c->diagonal * fmin(a, b)) - costs -
           cheap * fmax(home - t, 0);
}

/* Maximum over all cells by branch and bound: cells whose upper bound exceeds the best value are
 * split in four, one size at a time. */
static double
largest(const Cut *c, double tolerance)
{
    g_autoptr(GArray) cells = g_array_new(FALSE, FALSE, sizeof(Cell));
    const Cell all = { 0, 0, c->nodes };
    double found = 0, upper = INFINITY;

    g_array_append_val(cells, all);
    while (upper > found + tolerance && cells->len < CELLS_MAX) {
        g_autoptr(GArray) wider = cells;
        const double half = g_array_index(wider, Cell, 0).size / 2;

        cells = g_array_new(FALSE, FALSE, sizeof(Cell));
        for (guint i = 0; i < 4 * wider->len; i++) {
            const Cell *whole = &g_array_index(wider, Cell, i / 4);
            const Cell part = { whole->low_a + (i & 1 ? half : 0),
                                whole->low_b + (i & 2 ? half : 0), half };

            found = fmax(found, most(c, (Cell){ part.low_a + half, part.low_b + half, 0 }));
            if (most(c, part) > found + tolerance)
                g_array_append_val(cells, part);
        }
        upper = found + tolerance;
        for (guint i = 0; i < cells->len; i++)
            upper = fmax(upper, most(c, g_array_index(cells, Cell, i)));
    }
    return upper;
}

/* Groups of nodes, by number of nodes. */
typedef struct {
    const uint32_t *sizes;
    uint32_t count;
} Groups;

/* Lower bound of the total traffic of the groups at one price; equal groups are computed once. */
static double
at_price(Cut *c, const Groups *groups, double price, double pairs)
{
    double sum = 0, of_size = 0;

    c->price = price;
    for (uint32_t i = 0; i < groups->count; i++) {
        const double mine = pairs * groups->sizes[i];

        if (i == 0 || groups->sizes[i] != groups->sizes[i - 1]) {
            c->home = groups->sizes[i];
            of_size = price * mine - largest(c, PRECISION * price * mine);
        }
        sum += of_size;
    }
    return sum;
}

double
lh_synth_cut(const uint32_t *sizes, uint32_t count, uint64_t tokens, bool causal, double row,
             double column)
{
    const Groups groups = { sizes, count };
    const double one = 1 / (double)tokens;
    Cut c = { .diagonal = causal ? one / 2 : 0, .causal = causal, .row = row, .column = column };
    double low = 0, high = 4 * (row + column), best = 0, pairs;

    for (uint32_t i = 0; i < count; i++)
        c.nodes += sizes[i];
    pairs = causal ? (c.nodes + one) / 2 : c.nodes;
    /* The bound is concave in the price; every price tried gives a valid bound. */
    for (int i = 0; i < PRICES && high - low > PRECISION * high; i++) {
        const double first = low + (high - low) / 3, second = high - (high - low) / 3;
        const double left = at_price(&c, &groups, first, pairs);
        const double right = at_price(&c, &groups, second, pairs);

        best = fmax(best, fmax(left, right));
        if (left < right)
            low = first;
        else
            high = second;
    }
    return best;
}

/* Total bandwidth of the NICs of all nodes, bytes/s. */
static double
nics(const LhNetwork *n, bool up)
{
    double sum = 0;

    for (uint32_t id = 0; id < n->collective_first; id++) {
        const LhLink link = lh_network_link(n, id);

        if (link.tier == LH_TIER_NIC && link.up == up)
            sum += link.bandwidth_bytes_per_s;
    }
    return sum;
}

/* Whether messages share links, and collectives are made of messages. */
static bool
has_links(const LhSetup *setup)
{
    return setup->network_model != LH_NETWORK_ALPHA_BETA &&
           setup->collectives != LH_COLLECTIVES_NCCL &&
           setup->collectives != LH_COLLECTIVES_CLOSED_FORM;
}

/* Lower bound of the bytes exchanged between groups of nodes. */
static double
cut_bytes(const LhSetup *setup, const uint32_t *sizes, uint32_t count)
{
    const LhAttention *a = &setup->params.attention;
    const uint64_t tokens = a->seq_length / lh_synth_places(setup).places;
    const double row =
        2.0 * lh_dtype_bytes(a->dtype); /* q arrives, and a result of its size leaves */
    const double column = 2.0 * lh_dtype_bytes(a->dtype) * a->groups / a->heads;
    /* The backward pass of a pair needs do and produces dq, dk and dv: as many bytes if q, k and
     * v are still there, more if not. */
    const double passes = setup->params.pass == LH_PASS_BOTH ? 2 : 1;

    return lh_synth_cut(sizes, count, tokens, setup->params.mask.causal, row, column) * passes *
           (double)tokens * a->batch * a->heads * a->head_dim;
}

static LhTime
time_over(double bytes, double rate)
{
    return lh_time_from_ps(bytes / rate * (double)LH_PS_PER_S);
}

/* --- trunks -------------------------------------------------------------------------------------
 */

/* The links of the fabric from a node towards those farthest from it, from the node outwards. */
typedef struct {
    uint32_t links[LH_ROUTE_MAX], count;
} WayOut;

static WayOut
way_on(const LhNetwork *n, uint32_t from, uint32_t to, bool up)
{
    WayOut way = { 0 };
    LhRoute route;

    lh_network_route(n, from, to, &route);
    for (uint32_t i = 0; i < route.links_count; i++) {
        const uint32_t link = route.links[up ? i : route.links_count - 1 - i];

        if (lh_network_link(n, link).tier == LH_TIER_FABRIC && lh_network_link(n, link).up == up)
            way.links[way.count++] = link;
    }
    return way;
}

static WayOut
way_out(const LhNetwork *n, LhSynthPlaces at, uint32_t node, bool up)
{
    WayOut longest = { 0 };

    for (uint32_t other = 0; other < at.places; other++) {
        const uint32_t from = (up ? node : other) * at.gpus, to = (up ? other : node) * at.gpus;
        const WayOut way = other == node ? longest : way_on(n, from, to, up);

        if (way.count > longest.count)
            longest = way;
    }
    return longest;
}

/* Groups nodes by the trunk they share at @level, and counts the nodes per group. Returns the
 * total bandwidth of the trunks; 0: some node has none. */
static double
group_nodes(const LhSetup *setup, uint32_t level, bool up, uint32_t *sizes, uint32_t *count)
{
    const LhSynthPlaces at = lh_synth_places(setup);
    uint32_t links[LH_SYNTH_PLACES_MAX];
    double rate = 0;

    *count = 0;
    for (uint32_t node = 0; node < at.places; node++) {
        const WayOut way = way_out(&setup->network, at, node, up);
        uint32_t group = 0;

        if (way.count <= level)
            return 0;
        while (group < *count && links[group] != way.links[level])
            group++;
        if (group == *count) {
            links[*count] = way.links[level];
            sizes[(*count)++] = 0;
            rate += lh_network_link(&setup->network, way.links[level]).bandwidth_bytes_per_s;
        }
        sizes[group]++;
    }
    return rate;
}

static LhTime
bound_trunks(const LhSetup *setup)
{
    uint32_t sizes[LH_SYNTH_PLACES_MAX], count;
    LhTime longest_ps = 0;

    for (uint32_t level = 0; level < LH_ROUTE_MAX; level++) {
        const double down = group_nodes(setup, level, false, sizes, &count);
        const double rate = fmin(down, group_nodes(setup, level, true, sizes, &count));

        if (rate <= 0)
            break;
        longest_ps = MAX(longest_ps, time_over(cut_bytes(setup, sizes, count), rate));
    }
    return longest_ps;
}

static void
bound_cut(const LhSetup *setup, LhSynthBound *bound)
{
    const LhSynthPlaces at = lh_synth_places(setup);
    const double rate = fmin(nics(&setup->network, true), nics(&setup->network, false));
    uint32_t nodes[LH_SYNTH_PLACES_MAX];

    if (setup->network.ranks <= setup->network.gpus_per_node || !has_links(setup) || rate <= 0 ||
        !lh_mask_is_plain(&setup->params.mask))
        return;
    for (uint32_t node = 0; node < at.places; node++)
        nodes[node] = 1;
    bound->cut_bytes = cut_bytes(setup, nodes, at.places);
    bound->cut_ps = time_over(bound->cut_bytes, rate);
    bound->trunk_ps = bound_trunks(setup);
}

/* --- compute ------------------------------------------------------------------------------------
 */

/* The best rate of any kernel of the pass, flop/s; the peak rate if none is measured. */
static double
best_rate(const LhSetup *setup, bool backward)
{
    const LhEffect effect = backward ? LH_EFFECT_ATTEND_GRAD : LH_EFFECT_ATTEND;
    const int direction = backward ? LH_ATTENTION_BWD : LH_ATTENTION_FWD;
    const LhDevice *device = setup->device;
    const uint32_t head_dim = setup->params.attention.head_dim;
    double rate = 0;

    for (uint32_t k = 0; k < LH_KERNELS_COUNT; k++) {
        for (int causal = 0; causal < 2; causal++) {
            LhKernelRate curve;

            if (lh_kernels[k]->effect == effect &&
                lh_device_rate(device, lh_kernels[k]->name, causal != 0, head_dim, &curve))
                rate = fmax(rate, curve.rate);
        }
    }
    for (guint i = 0; device->attention != NULL && i < device->attention->len; i++) {
        const LhAttentionRow *row = &g_array_index(device->attention, LhAttentionRow, i);

        if (row->direction == direction && row->head_dim == head_dim)
            rate = fmax(rate, fmax(row->rate, row->sustained_rate));
    }
    /* Without a mask, products with materialised scores need no more flops than attention. */
    if (rate <= 0 || !setup->params.mask.causal)
        rate = fmax(rate, device->matrix_rate);
    return rate;
}

static double
ranks_at_full_speed(const LhSetup *setup)
{
    const GArray *slow = setup->scenario->straggler;
    double ranks = setup->network.ranks;

    for (guint i = 0; slow != NULL && i < slow->len; i++)
        ranks -= 1 - 1 / g_array_index(slow, LhStraggler, i).slowdown;
    return ranks;
}

static LhTime
bound_compute(const LhSetup *setup)
{
    const LhAttention *a = &setup->params.attention;
    const uint64_t pairs = lh_mask_pairs(&setup->params.mask, (LhSegment){ 0, 1, a->seq_length },
                                         (LhSegment){ 0, 1, a->seq_length });
    const double products = 2.0 * a->batch * a->heads * a->head_dim * (double)pairs;
    double seconds = 2 * products / best_rate(setup, false);

    if (setup->params.pass == LH_PASS_BOTH)
        seconds += 5 * products / best_rate(setup, true);
    seconds /= ranks_at_full_speed(setup);
    return lh_time_from_ps(seconds * (1 - setup->scenario->jitter) * (double)LH_PS_PER_S);
}

LhSynthBound
lh_synth_bound(const LhSetup *setup)
{
    LhSynthBound bound = { .compute_ps = bound_compute(setup) };

    bound_cut(setup, &bound);
    bound.bound_ps = MAX(bound.compute_ps, MAX(bound.cut_ps, bound.trunk_ps));
    return bound;
}
