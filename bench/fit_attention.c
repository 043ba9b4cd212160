/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits the row of a device file for one library's attention kernel to measured times:
 *
 *   fit_attention TABLE.csv DEVICE LIBRARY [--split-keys] [--l2 BYTES] [--tile ROWSxKEYS]
 *                 [--packed] [--resident N] [--training] [--judge COLUMN=VALUE]...
 *                 COLUMN=VALUE...
 *
 * The table has columns batch, seq, q_heads, kv_heads, head_dim and time_ms; rows are forward and
 * causal. With --training it also has direction (fwd or bwd) and mask (full or causal), which
 * conditions fix, and only rates are fitted, no terms of a serving system. Uses the rows for which
 * every COLUMN=VALUE holds and prints the device's row. Tile, prologue, order and packing are
 * searched among those of known libraries; a tile and packing known from a library's source can be
 * given. Rates and the serving system's terms are the non-negative weights with the least mean
 * absolute relative error, by iterative reweighting. Rows for which a
 * --judge holds are held-out: they only measure the error. Nothing is random.
 */
#include "base/files/csv.h"
#include "sim/cost/attention_cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TERMS 8
#define REWEIGHTINGS 20
#define SWEEPS 4000
#define QUANTILE 0.8
#define QUANTILE_ROWS 12 /* fewer rows give no 80 % quantile */
#define QUANTILE_FIRST_S 64e-6
#define ALONE_STEPS 11 /* from 1 down to 0.5 */
#define ALONE_STEP 0.05
#define LONGEST_SHARE 0.9 /* of the longest call's time: as long */
#define ERROR_FLOOR 0.004 /* smaller relative errors have equal weight */

typedef enum { LAUNCH, COOL, HOT, APPEND, QUERIES, ELEMENTS, PARTIALS, SPILLED } Term;

typedef struct {
    LhKernelArgs args;
    double seconds;
    bool judges;
} Measured;

typedef struct {
    double weight[TERMS];
    double mean, worst;
} Fitted;

/* --- non-negative least squares -----------------------------------------------------------------
 */

/* Minimises |x w - y|^2 over w >= 0 by coordinate descent on the normal equations. */
static void
solve(double normal[TERMS][TERMS], const double right[TERMS], double w[TERMS])
{
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double moved = 0;

        for (int i = 0; i < TERMS; i++) {
            double sum = right[i];
            double before = w[i];

            if (normal[i][i] <= 0)
                continue;
            for (int k = 0; k < TERMS; k++)
                sum -= k == i ? 0 : normal[i][k] * w[k];
            w[i] = fmax(sum / normal[i][i], 0);
            moved = fmax(moved, fabs(w[i] - before) * sqrt(normal[i][i]));
        }
        if (moved < 1e-9)
            break;
    }
}

static LhAttentionRow
weighted(const LhAttentionRow *row, const double w[TERMS])
{
    LhAttentionRow r = *row;

    r.rate = w[COOL] > 0 ? 1 / w[COOL] : 1e18;
    r.sustained_rate = 1 / fmax(w[COOL] + w[HOT], 1e-18);
    r.serving.launch_ps = (LhTime)llround(w[LAUNCH] * 1e12);
    r.serving.append = w[APPEND] > 0 ? 1 / w[APPEND] : 0;
    r.serving.queries = w[QUERIES] > 0 ? 1 / w[QUERIES] : 0;
    r.serving.append_token_ps = (LhTime)llround(w[ELEMENTS] * LH_APPEND_ELEMENTS * 1e12);
    r.serving.partials = w[PARTIALS] > 0 ? 1 / w[PARTIALS] : 0;
    r.serving.beyond_l2 = w[SPILLED] > 0 ? 1 / w[SPILLED] : 0;
    return r;
}

static double
seconds_of(LhTime time_ps)
{
    return (double)time_ps / (double)LH_PS_PER_S;
}

static void
fill_terms(const LhAttentionLoad *load, double tiles_s, bool training, double x[TERMS])
{
    const double knee = seconds_of(LH_ATTENTION_KNEE_PS);

    x[LAUNCH] = training ? 0 : 1;
    x[COOL] = load->flops;
    x[HOT] = load->flops * tiles_s / (tiles_s + knee);
    x[APPEND] = load->append_bytes;
    x[QUERIES] = load->query_bytes;
    x[ELEMENTS] = load->append_elements;
    x[PARTIALS] = load->partial_bytes;
    x[SPILLED] = load->spilled_bytes;
}

/* The measured rows that are held-out, or those that are not. */
typedef struct {
    const GArray *measured;
    const LhAttentionLoad *loads;
    bool training; /* loads have no terms of a serving system */
    bool judges;
} Part;

static const Measured *
row_of(const Part *p, guint i)
{
    const Measured *m = &g_array_index(p->measured, Measured, i);

    return m->judges == p->judges ? m : NULL;
}

static double
error_of(const Part *p, const LhAttentionRow *row, guint i)
{
    return lh_attention_seconds(row, &p->loads[i], true) /
               g_array_index(p->measured, Measured, i).seconds -
           1;
}

static guint
judge(const Part *p, const LhAttentionRow *row, double *mean, double *worst)
{
    guint rows = 0;

    *mean = *worst = 0;
    for (guint i = 0; i < p->measured->len; i++) {
        const double error = row_of(p, i) != NULL ? fabs(error_of(p, row, i)) : 0;

        rows += row_of(p, i) != NULL;
        *mean += error;
        *worst = fmax(*worst, error);
    }
    *mean /= MAX(rows, 1);
    return rows;
}

/* The normal equations; terms are scaled to at most 1. */
typedef struct {
    double normal[TERMS][TERMS], right[TERMS], scale[TERMS];
} Equations;

/* Adds an equation of weight @weight with terms @x and measured time @seconds. */
static void
add_equation(Equations *e, const double x[TERMS], double seconds, double weight)
{
    double scaled[TERMS];

    for (int a = 0; a < TERMS; a++)
        scaled[a] = e->scale[a] > 0 ? x[a] / seconds / e->scale[a] : 0;
    for (int a = 0; a < TERMS; a++) {
        e->right[a] += weight * scaled[a];
        for (int b = 0; b < TERMS; b++)
            e->normal[a][b] += weight * scaled[a] * scaled[b];
    }
}

/* The terms of row @i. How much the device heats up depends on @row's prediction, or on the
 * measured time if @first. */
static void
terms_of(const Part *p, const LhAttentionRow *row, guint i, bool first, double x[TERMS])
{
    const double seconds = g_array_index(p->measured, Measured, i).seconds;

    fill_terms(&p->loads[i],
               first ? seconds : lh_attention_tiles_seconds(row, p->loads[i].flops, true),
               p->training, x);
}

/* One round of reweighting, by the errors of @row. */
static void
reweigh(const Part *p, const LhAttentionRow *row, bool first, double w[TERMS])
{
    Equations e = { 0 };
    double x[TERMS];

    for (guint i = 0; i < p->measured->len; i++) {
        if (row_of(p, i) == NULL)
            continue;
        terms_of(p, row, i, first, x);
        for (int a = 0; a < TERMS; a++)
            e.scale[a] = fmax(e.scale[a], x[a] / row_of(p, i)->seconds);
    }
    for (guint i = 0; i < p->measured->len; i++) {
        if (row_of(p, i) == NULL)
            continue;
        terms_of(p, row, i, first, x);
        add_equation(&e, x, row_of(p, i)->seconds,
                     first ? 1 : 1 / fmax(fabs(error_of(p, row, i)), ERROR_FLOOR));
    }
    for (int a = 0; a < TERMS; a++)
        w[a] *= e.scale[a];
    solve(e.normal, e.right, w);
    for (int a = 0; a < TERMS; a++)
        w[a] = e.scale[a] > 0 ? w[a] / e.scale[a] : 0;
}

static Fitted
fit(const Part *p, const LhAttentionRow *tiles)
{
    Fitted best = { .mean = INFINITY };
    LhAttentionRow row = *tiles;
    double w[TERMS] = { 0 };

    for (int i = 0; i < REWEIGHTINGS; i++) {
        double mean, worst;

        reweigh(p, &row, i == 0, w);
        row = weighted(tiles, w);
        judge(p, &row, &mean, &worst);
        if (mean < best.mean) {
            best = (Fitted){ .mean = mean, .worst = worst };
            memcpy(best.weight, w, sizeof(w));
        }
    }
    return best;
}

/* Values known from the library's source; 0: searched. */
typedef struct {
    uint64_t rows, columns;
    bool packed;
    uint64_t resident;        /* thread blocks per SM; the rate of a single one is searched */
    bool training, full, bwd; /* the latter two only with the first */
} Options;

/* --- search -------------------------------------------------------------------------------------
 */

static LhAttentionLoad *
load_all(const GArray *measured, const LhAttentionRow *row, uint64_t sms, bool training)
{
    LhAttentionLoad *loads = g_new(LhAttentionLoad, measured->len);

    for (guint i = 0; i < measured->len; i++)
        loads[i] = lh_attention_load(row, sms, &g_array_index(measured, Measured, i).args, 1, 1,
                                     !training);
    return loads;
}

static LhAttentionRow
search(const GArray *measured, const LhAttentionRow *from, const Options *given, uint64_t sms)
{
    static const uint64_t tiles[][2] = { { 128, 64 }, { 128, 128 }, { 192, 128 }, { 256, 128 } };
    LhAttentionRow best = *from;
    double best_mean = INFINITY;

    for (unsigned i = 0; i < 2 * 2 * 3 * G_N_ELEMENTS(tiles) * ALONE_STEPS; i++) {
        const unsigned kind = i / ALONE_STEPS, step = i % ALONE_STEPS;
        LhAttentionRow row = *from;
        g_autofree LhAttentionLoad *loads = NULL;
        Fitted fitted;

        row.tiling.order = kind & 1 ? LH_TILES_LINEAR : LH_TILES_LONGEST_FIRST;
        row.tiling.pack_groups = (kind & 2) != 0;
        row.tiling.prologue = kind / 4 % 3;
        row.tiling.rows = tiles[kind / 12][0];
        row.tiling.columns = tiles[kind / 12][1];
        row.tiling.resident = MAX(given->resident, 1);
        row.tiling.alone = 1 - ALONE_STEP * step;
        if (given->resident > 1 ? row.tiling.order != LH_TILES_LINEAR : step > 0)
            continue;
        if ((given->packed && !row.tiling.pack_groups) ||
            (given->rows > 0 &&
             (row.tiling.rows != given->rows || row.tiling.columns != given->columns)))
            continue;
        loads = load_all(measured, &row, sms, given->training);
        fitted = fit(&(Part){ measured, loads, given->training, false }, &row);
        fprintf(stderr, "%3d x %3d, prologue %g, %s%s, alone %g: %.2f %% / %.1f %%\n",
                (int)row.tiling.rows, (int)row.tiling.columns, row.tiling.prologue,
                row.tiling.order == LH_TILES_LINEAR ? "linear" : "longest first",
                row.tiling.pack_groups ? ", packed" : "", row.tiling.alone, 100 * fitted.mean,
                100 * fitted.worst);
        if (fitted.mean < best_mean) {
            best_mean = fitted.mean;
            best = weighted(&row, fitted.weight);
        }
    }
    return best;
}

/* The rate that the longest calls sustain. The curve to it from that of a cool device has one knee;
 * devices that heat for seconds, as in training, are slower than it says for calls of 100 ms. */
static void
take_longest(const Part *p, LhAttentionRow *row)
{
    double longest_s = 0, ratio = 0;
    guint rows = 0;

    for (guint i = 0; i < p->measured->len; i++)
        longest_s = fmax(longest_s, row_of(p, i) != NULL ? row_of(p, i)->seconds : 0);
    for (guint i = 0; i < p->measured->len; i++) {
        if (row_of(p, i) == NULL || row_of(p, i)->seconds < LONGEST_SHARE * longest_s)
            continue;
        ratio += lh_attention_tiles_seconds(row, p->loads[i].flops, false) / row_of(p, i)->seconds;
        rows++;
    }
    row->sustained_rate *= ratio / rows;
}

/* --- input and output ---------------------------------------------------------------------------
 */

static bool
holds(const LhCsv *csv, guint row, int argc, char **argv, GError **error)
{
    for (int i = 0; i < argc; i++) {
        g_auto(GStrv) parts = g_strsplit(argv[i], "=", 2);
        const int column = lh_csv_column(csv, parts[0], error);

        if (column < 0 || strcmp(lh_csv_cell(csv, row, (guint)column), parts[1]) != 0)
            return false;
    }
    return true;
}

static double
number(const LhCsv *csv, guint row, const char *name, GError **error)
{
    const int column = *error == NULL ? lh_csv_column(csv, name, error) : -1;
    double value = 0;

    if (column >= 0)
        lh_csv_number(csv, row, (guint)column, &value, error);
    return value;
}

static GArray *
read_rows(const LhCsv *csv, int argc, char **argv, const GPtrArray *judges, bool full,
          GError **error)
{
    g_autoptr(GArray) measured = g_array_new(FALSE, TRUE, sizeof(Measured));

    for (guint i = 0; i < lh_csv_rows(csv) && *error == NULL; i++) {
        Measured m = { .args = { .mask = full ? LH_MASK_FULL : LH_MASK_CAUSAL } };

        if (!holds(csv, i, argc, argv, error))
            continue;
        m.args.batch = (uint32_t)number(csv, i, "batch", error);
        m.args.nq = m.args.nk = (uint64_t)number(csv, i, "seq", error);
        m.args.heads = (uint32_t)number(csv, i, "q_heads", error);
        m.args.groups = (uint32_t)number(csv, i, "kv_heads", error);
        m.args.head_dim = (uint32_t)number(csv, i, "head_dim", error);
        m.args.pairs = full ? m.args.nq * m.args.nk : lh_causal_pairs(m.args.nq, m.args.nk, 0);
        m.seconds = number(csv, i, "time_ms", error) / 1000;
        for (guint k = 0; k < judges->len; k++)
            m.judges |= holds(csv, i, 1, (char **)&judges->pdata[k], error);
        g_array_append_val(measured, m);
    }
    return *error == NULL ? g_steal_pointer(&measured) : NULL;
}

static int
rising(gconstpointer a, gconstpointer b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The 80 % quantile of the relative errors of rows predicted within the limits; 0: too few rows. */
static double
quantile(const Part *p, const LhAttentionRow *row, double from_s, double until_s)
{
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    double place, low, high;

    for (guint i = 0; i < p->measured->len; i++) {
        const double seconds = lh_attention_seconds(row, &p->loads[i], true);
        double error;

        if (row_of(p, i) == NULL || seconds < from_s || seconds >= until_s)
            continue;
        error = fabs(log(seconds / row_of(p, i)->seconds));
        g_array_append_val(errors, error);
    }
    if (errors->len < QUANTILE_ROWS)
        return 0;
    g_array_sort(errors, rising);
    place = QUANTILE * (errors->len - 1);
    low = g_array_index(errors, double, (guint)place);
    high = g_array_index(errors, double, MIN((guint)place + 1, errors->len - 1));
    return exp(low + (high - low) * (place - floor(place))) - 1;
}

/* Prints quantiles by predicted time, in ranges of a factor of four. A range with too few rows
 * is merged with longer ones, or, at the end, with shorter ones. */
static void
print_quantiles(const Part *p, const LhAttentionRow *row)
{
    double from_s = 0, until_s = QUANTILE_FIRST_S;

    printf(", \"quantiles\": [");
    for (; quantile(p, row, from_s, INFINITY) > 0; until_s *= 4) {
        const bool last = quantile(p, row, until_s, INFINITY) <= 0;
        const double error = quantile(p, row, from_s, last ? INFINITY : until_s);

        if (error <= 0)
            continue;
        if (last)
            printf("{ \"error\": %.3f }", error);
        else
            printf("{ \"until\": \"%.0fus\", \"error\": %.3f }, ", until_s * 1e6, error);
        from_s = last ? INFINITY : until_s;
    }
    printf("] },\n");
}

static void
print_bandwidth(const char *name, double bytes_per_s)
{
    if (bytes_per_s > 0 && bytes_per_s < 1e17)
        printf(", \"%s\": \"%.0fGB/s\"", name, bytes_per_s / 1e9);
}

static void
print_serving(const LhServing *s)
{
    printf(",\n      \"serving\": { \"launch\": \"%.1fus\"", (double)s->launch_ps / 1e6);
    print_bandwidth("append", s->append);
    print_bandwidth("queries", s->queries);
    if (s->append_token_ps > 0)
        printf(", \"append_token\": \"%dps\"", (int)s->append_token_ps);
    if (s->split_keys)
        printf(", \"split_keys\": true");
    print_bandwidth("partials", s->partials);
    if (s->l2_bytes > 0 && s->beyond_l2 > 0)
        printf(", \"l2\": \"%dMiB\"", (int)(s->l2_bytes >> 20));
    print_bandwidth("beyond_l2", s->beyond_l2);
    printf(" }");
}

static void
print_row(const char *library, const LhAttentionRow *r, const Options *given, const Fitted *all,
          const Fitted *held, guint rows)
{
    const bool bwd = r->direction == LH_ATTENTION_BWD;

    printf("    {\n      \"library\": \"%s\",\n      \"direction\": \"%s\",\n", library,
           bwd ? "bwd" : "fwd");
    printf("      \"head_dim\": %d,\n      \"masks\": [%s],\n", (int)r->head_dim,
           !given->training ? "\"full\", \"causal\""
           : given->full    ? "\"full\""
                            : "\"causal\"");
    printf("      \"tile_rows\": %d,\n      \"tile_keys\": %d,\n      \"tile_of\": \"%s\",\n",
           (int)r->tiling.rows, (int)r->tiling.columns, bwd ? "keys" : "queries");
    printf("      \"pack_groups\": %s,\n      \"order\": \"%s\",\n      \"prologue\": %g,\n",
           r->tiling.pack_groups ? "true" : "false",
           r->tiling.order == LH_TILES_LINEAR ? "linear" : "longest_first", r->tiling.prologue);
    if (r->tiling.resident > 1)
        printf("      \"resident\": %d,\n      \"alone\": %g,\n", (int)r->tiling.resident,
               r->tiling.alone);
    printf("      \"rate\": \"%.1fTFLOP/s\",\n      \"sustained_rate\": \"%.1fTFLOP/s\",\n",
           r->rate / 1e12, r->sustained_rate / 1e12);
    printf("      \"knee\": \"4ms\"");
    if (!given->training)
        print_serving(&r->serving);
    printf(",\n      \"residuals\": { \"rows\": %u, \"mean\": %.3f, \"worst\": %.2f, "
           "\"holdout_mean\": %.3f, \"holdout\": %.2f",
           rows, all->mean, all->worst, held->mean, held->worst);
}

static bool
run(int argc, char **argv, GError **error)
{
    LhAttentionRow row = { .knee_ps = LH_ATTENTION_KNEE_PS };
    g_autoptr(LhCsv) csv = lh_csv_load(argv[1], error);
    g_autoptr(LhDevice) device = csv == NULL ? NULL : lh_device_load(argv[2], error);
    g_autoptr(GArray) measured = NULL;
    g_autofree LhAttentionLoad *loads = NULL;
    g_autoptr(GPtrArray) judges = g_ptr_array_new();
    Options given = { 0 };
    Fitted all = { 0 }, held = { 0 };
    guint rows;
    int at = 4;

    if (device == NULL)
        return false;
    if (at < argc && strcmp(argv[at], "--split-keys") == 0) {
        row.serving.split_keys = true;
        at++;
    }
    if (at + 1 < argc && strcmp(argv[at], "--l2") == 0) {
        row.serving.l2_bytes = (uint64_t)strtoull(argv[at + 1], NULL, 10);
        at += 2;
    }
    if (at + 1 < argc && strcmp(argv[at], "--tile") == 0) {
        char *end;

        given.rows = (uint64_t)strtoull(argv[at + 1], &end, 10);
        given.columns = *end == 'x' ? (uint64_t)strtoull(end + 1, NULL, 10) : 0;
        at += 2;
    }
    if (at < argc && strcmp(argv[at], "--packed") == 0) {
        given.packed = true;
        at++;
    }
    if (at + 1 < argc && strcmp(argv[at], "--resident") == 0) {
        given.resident = (uint64_t)strtoull(argv[at + 1], NULL, 10);
        at += 2;
    }
    if (at < argc && strcmp(argv[at], "--training") == 0) {
        given.training = true;
        at++;
    }
    for (; at + 1 < argc && strcmp(argv[at], "--judge") == 0; at += 2)
        g_ptr_array_add(judges, argv[at + 1]);
    for (int i = at; i < argc; i++) {
        given.full |= strcmp(argv[i], "mask=full") == 0;
        given.bwd |= strcmp(argv[i], "direction=bwd") == 0;
    }
    measured = read_rows(csv, argc - at, argv + at, judges, given.full, error);
    if (measured == NULL)
        return false;
    g_assert(measured->len > TERMS);
    row.direction = given.bwd ? LH_ATTENTION_BWD : LH_ATTENTION_FWD;
    row.tiling.of_keys = given.bwd;
    row.head_dim = g_array_index(measured, Measured, 0).args.head_dim;
    row = search(measured, &row, &given, device->sm_count);
    loads = load_all(measured, &row, device->sm_count, given.training);
    rows = judge(&(Part){ measured, loads, given.training, false }, &row, &all.mean, &all.worst);
    judge(&(Part){ measured, loads, given.training, true }, &row, &held.mean, &held.worst);
    if (given.training)
        take_longest(&(Part){ measured, loads, true, false }, &row);
    print_row(argv[3], &row, &given, &all, &held, rows);
    print_quantiles(&(Part){ measured, loads, given.training, false }, &row);
    printf("      \"provenance\": \"fitted\"\n    }\n");
    return true;
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;

    if (argc < 4) {
        fprintf(stderr,
                "usage: %s TABLE.csv DEVICE LIBRARY [--split-keys] [--l2 BYTES] "
                "[--tile ROWSxKEYS] [--packed] [--resident N] [--training] "
                "[--judge COLUMN=VALUE]... "
                "COLUMN=VALUE...\n",
                argv[0]);
        return 2;
    }
    if (run(argc, argv, &error))
        return 0;
    fprintf(stderr, "%s\n", error->message);
    return 1;
}
