/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search for the single cause of a log: every lever of the topology file is varied, and NCCL
 * settings that change its algorithm are tried. The cause that brings most rows within their error
 * bars is reported. Rows are weighted by their error bars, in logarithms, so that twice and half
 * count the same. Causes that do not improve on the prediction are not reported; equally good ones
 * all are.
 */
#include "collective_check/log_causes.h"

#include <math.h>

/* Multiples tried first; the best one is then refined. */
static const double first_factors[] = { 0.125, 0.25, 0.5, 0.75, 0.875 };
#define FACTORS G_N_ELEMENTS(first_factors)
#define LEAST_FACTOR 0.02
#define REFINEMENTS 8
#define GOLDEN 0.6180339887498949

/* An error bar covers four rows in five. A cause must at least halve the error. Causes within
 * ALIKE_BARS are equally good. */
#define SHARE_INSIDE 0.8
#define LEAST_GAIN 0.5
#define ALIKE_BARS 0.05

/* ---- simulating a cause ---- */

/* A lever at a factor, or a setting. */
typedef struct {
    const LhLever *lever;
    double factor;
    const struct Way *way;
} Play;

/* A setting of NCCL. */
struct Way {
    const char *name;
    bool (*is_there)(const LhNcclTest *single);
    bool (*time)(const LhNcclTest *single, uint64_t bytes, double *seconds);
};

static bool
time_on(const LhNcclTest *s, const LhTopology *topology, uint64_t bytes, double *seconds)
{
    const LhNetwork *own = &s->setup->network;
    LhNetwork network;

    return lh_network_init(&network, topology, own->nodes, own->ranks, own->faults, NULL) &&
           lh_nccl_test_seconds(s, &network, bytes, seconds, NULL);
}

static bool
time_with_lever(const LhNcclTest *s, const LhLever *lever, double factor, uint64_t bytes,
                double *seconds)
{
    LhTopology topology = *s->setup->topology; /* strings belong to the setup */

    lh_lever_scale(&topology, lever, factor);
    return time_on(s, &topology, bytes, seconds);
}

/* Without NVLS an all-reduce is a ring's reduce-scatter and all-gather, with one start. */
static bool
time_without_nvls(const LhNcclTest *s, uint64_t bytes, double *seconds)
{
    const LhNetwork *network = &s->setup->network;
    LhNcclTest scatter = *s, gather = *s;
    const uint64_t grain = s->ranks * sizeof(float);
    const uint64_t whole = (bytes + grain - 1) / grain * grain;
    double summed, scattered, gathered, least;

    scatter.op = lh_nccl_test_op_find("reduce_scatter", NULL);
    gather.op = lh_nccl_test_op_find("all_gather", NULL);
    if (!lh_nccl_test_seconds(s, network, bytes, &summed, NULL) ||
        !lh_nccl_test_seconds(&scatter, network, whole, &scattered, NULL) ||
        !lh_nccl_test_seconds(&gather, network, whole, &gathered, NULL) ||
        !lh_nccl_test_seconds(&gather, network, grain, &least, NULL))
        return false;
    *seconds = fmax(summed, scattered + gathered - least);
    return true;
}

static bool
has_way_around(const LhNcclTest *s)
{
    const LhTopology *t = s->setup->topology;

    return (t->scale_up == LH_SCALE_UP_SWITCH || t->scale_up == LH_SCALE_UP_PAIRS) &&
           t->pcie.bandwidth > 0;
}

/* GPUs that do not reach each other directly go through the memory of the host, over PCIe. */
static bool
time_through_memory(const LhNcclTest *s, uint64_t bytes, double *seconds)
{
    LhTopology topology = *s->setup->topology;

    topology.nvlink.bandwidth = topology.pcie.bandwidth;
    topology.nvlink.latency_ps = topology.pcie.latency_ps;
    return time_on(s, &topology, bytes, seconds);
}

static const struct Way ways[] = {
    { "NCCL_NVLS_ENABLE=0", lh_nccl_test_is_nvls, time_without_nvls },
    { "NCCL_P2P_DISABLE=1", has_way_around, time_through_memory },
};

static bool
time_play(const LhNcclTest *s, const Play *play, uint64_t bytes, double *seconds)
{
    if (play->way != NULL)
        return play->way->time(s, bytes, seconds);
    return time_with_lever(s, play->lever, play->factor, bytes, seconds);
}

/* ---- judging ---- */

typedef struct {
    guint inside;
    double squares; /* sum of squared deviations, in error bars */
} Fit;

static void
add_fit(Fit *fit, const LhLogCheckRow *row, double seconds)
{
    const double bars = lh_log_check_bars(row, seconds);

    fit->inside += fabs(bars) <= 1;
    fit->squares += bars * bars;
}

/* Fits all rows of logs; @play NULL: as predicted. False if it cannot be simulated. */
static bool
judge_play(const LhLogCheck *held, const Play *play, Fit *fit)
{
    *fit = (Fit){ 0, 0 };
    for (guint i = 0; i < held->runs->len; i++) {
        const LhLogCheckRun *run = g_ptr_array_index(held->runs, i);
        const bool as_it_is =
            play == NULL || (play->way != NULL && !play->way->is_there(run->single));

        for (guint k = 0; k < run->rows->len; k++) {
            const LhLogCheckRow *row = &g_array_index(run->rows, LhLogCheckRow, k);
            double seconds = row->time.seconds;

            if (!as_it_is && !time_play(run->single, play, row->bytes, &seconds))
                return false;
            add_fit(fit, row, seconds);
        }
    }
    return isfinite(fit->squares);
}

static double
squares_of(const LhLogCheck *held, const Play *play)
{
    Fit fit;

    return judge_play(held, play, &fit) ? fit.squares : INFINITY;
}

/* ---- the best factor of a lever ---- */

/* Rounds to two digits. */
static double
two_digits(double factor)
{
    const double digit = pow(10, 1 - floor(log10(factor)));

    return round(factor * digit) / digit;
}

/* Directs the factor as rows deviate: for fast rows it is inverted, above 1. */
static double
directed(double factor, bool slow)
{
    return slow ? factor : 1 / factor;
}

/* Golden-section search in [@low, @high], in logarithms. */
static double
refine(const LhLogCheck *held, Play play, double low, double high)
{
    double a = log(low), b = log(high);
    double c = b - GOLDEN * (b - a), d = a + GOLDEN * (b - a);
    double at_c, at_d;

    play.factor = exp(c);
    at_c = squares_of(held, &play);
    play.factor = exp(d);
    at_d = squares_of(held, &play);
    for (int i = 0; i < REFINEMENTS; i++) {
        const bool left = at_c < at_d;

        if (left) {
            b = d;
            d = c;
            at_d = at_c;
            c = b - GOLDEN * (b - a);
        } else {
            a = c;
            c = d;
            at_c = at_d;
            d = a + GOLDEN * (b - a);
        }
        play.factor = exp(left ? c : d);
        *(left ? &at_c : &at_d) = squares_of(held, &play);
    }
    return exp((a + b) / 2);
}

/* Returns 1 for a lever that changes nothing. */
static double
best_factor(const LhLogCheck *held, const LhLever *lever, bool slow, double predicted)
{
    double least = INFINITY, low, high;
    bool changes = false;
    size_t best = 0;

    for (size_t i = 0; i < FACTORS; i++) {
        const Play play = { lever, directed(first_factors[i], slow), NULL };
        const double squares = squares_of(held, &play);

        changes |= squares != predicted;
        if (squares < least) {
            least = squares;
            best = i;
        }
    }
    if (!changes)
        return 1;
    low = directed(best > 0 ? first_factors[best - 1] : LEAST_FACTOR, slow);
    high = directed(best + 1 < FACTORS ? first_factors[best + 1] : 1, slow);
    low = refine(held, (Play){ lever, 1, NULL }, fmin(low, high), fmax(low, high));
    return two_digits(low);
}

/* ---- all of them ---- */

static guint
logged_rows(const LhLogCheck *held)
{
    return MAX(held->logged, 1);
}

static void
try_play(LhLogCheck *held, const Play *play, const Fit *predicted)
{
    LhLogCheckCause cause = { play->lever, play->way != NULL ? play->way->name : NULL, play->factor,
                              0, 0 };
    Fit fit;

    if (!judge_play(held, play, &fit) || fit.inside <= predicted->inside ||
        fit.inside < SHARE_INSIDE * logged_rows(held) ||
        fit.squares > LEAST_GAIN * LEAST_GAIN * predicted->squares)
        return;
    cause.inside = fit.inside;
    cause.off = sqrt(fit.squares / logged_rows(held));
    g_array_append_val(held->causes, cause);
}

static int
by_fit(gconstpointer a, gconstpointer b)
{
    const LhLogCheckCause *x = a, *y = b;

    return x->off != y->off ? (x->off < y->off ? -1 : 1) : 0;
}

/* Keeps causes that explain as much as the best one. */
static void
keep_best(LhLogCheck *held)
{
    double best = 0;

    g_array_sort(held->causes, by_fit);
    for (guint i = 0; i < held->causes->len; i++) {
        const LhLogCheckCause *cause = &g_array_index(held->causes, LhLogCheckCause, i);

        best = i == 0 ? cause->off : best;
        if (cause->off > best + ALIKE_BARS) {
            g_array_set_size(held->causes, i);
            return;
        }
    }
}

/* Whether rows are slow overall. */
static bool
is_slow(const LhLogCheck *held)
{
    double sum = 0;

    for (guint i = 0; i < held->runs->len; i++) {
        const LhLogCheckRun *run = g_ptr_array_index(held->runs, i);

        for (guint k = 0; k < run->rows->len; k++) {
            const LhLogCheckRow *row = &g_array_index(run->rows, LhLogCheckRow, k);

            sum += lh_log_check_bars(row, row->time.seconds);
        }
    }
    return sum > 0;
}

void
lh_log_causes_find(LhLogCheck *held)
{
    const LhLogCheckRun *first = g_ptr_array_index(held->runs, 0);
    g_autoptr(GPtrArray) levers = lh_topology_levers(first->single->setup->topology);
    const bool slow = is_slow(held);
    Fit predicted;

    if (!judge_play(held, NULL, &predicted))
        return;
    for (guint i = 0; i < levers->len; i++) {
        const LhLever *lever = g_ptr_array_index(levers, i);
        const Play play = { lever, best_factor(held, lever, slow, predicted.squares), NULL };

        try_play(held, &play, &predicted);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(ways); i++) {
        const Play play = { NULL, 1, &ways[i] };

        try_play(held, &play, &predicted);
    }
    keep_best(held);
}
