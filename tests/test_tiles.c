/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention kernels by tiles: blocks against every pair of the mask, tile schedules against
 * straightforward ones, and the times of a device's rows.
 */
#include "base/rng.h"
#include "run_tests.h"
#include "sim/cost/cost.h"

#include <math.h>
#include <string.h>

/* --- blocks -------------------------------------------------------------------------------------
 */

#define TOKENS_MAX 96

/* Positions of the rows of one side, as in LH_MASK_POSITIONS. */
typedef struct {
    LhKernelArgs args;
    uint32_t q_parts, k_parts;
    uint64_t document_ends[3];
    LhMaskRule rule;
} Case;

static uint64_t
draw(uint64_t seed, uint64_t what, uint64_t low, uint64_t high)
{
    return low + lh_rng_bits(seed, what, 7) % (high - low + 1);
}

static uint64_t
position_of(const LhRowsPosition *at, uint64_t stride, uint64_t part_rows, uint64_t row)
{
    return (uint64_t)(at->start + (int64_t)(row / part_rows) * at->part_step) +
           row % part_rows * stride;
}

static bool
sees(const Case *c, uint64_t i, uint64_t j)
{
    const LhKernelArgs *a = &c->args;

    if (a->mask == LH_MASK_CAUSAL)
        return (int64_t)j <= (int64_t)i + a->shift;
    if (a->mask == LH_MASK_POSITIONS)
        return lh_mask_sees(&c->rule, position_of(&a->q_at, a->stride, a->nq / c->q_parts, i),
                            position_of(&a->k_at, a->stride, a->nk / c->k_parts, j));
    return a->mask == LH_MASK_FULL;
}

static void
draw_positions(Case *c, uint64_t seed)
{
    LhKernelArgs *a = &c->args;

    c->q_parts = (uint32_t)draw(seed, 1, 1, 2);
    c->k_parts = (uint32_t)draw(seed, 2, 1, 2);
    a->nq = draw(seed, 3, 1, TOKENS_MAX / 2) * c->q_parts;
    a->nk = draw(seed, 4, 1, TOKENS_MAX / 2) * c->k_parts;
    a->stride = draw(seed, 5, 1, 2) == 1 ? 1 : 3;
    a->q_at = (LhRowsPosition){ (int64_t)draw(seed, 6, 0, 40), (int64_t)draw(seed, 7, 150, 200) };
    a->k_at = (LhRowsPosition){ (int64_t)draw(seed, 8, 0, 40), (int64_t)draw(seed, 9, 150, 200) };
    if (draw(seed, 18, 0, 2) == 0) /* parts that follow each other */
        a->k_at.part_step = (int64_t)(a->nk / c->k_parts * a->stride);
    if (draw(seed, 19, 0, 2) == 0)
        a->q_at.part_step = (int64_t)(a->nq / c->q_parts * a->stride);
    c->document_ends[0] = draw(seed, 10, 1, 60);
    c->document_ends[1] = draw(seed, 11, 61, 120);
    c->document_ends[2] = 1000;
    c->rule = (LhMaskRule){ .causal = draw(seed, 12, 0, 2) > 0 };
    if (c->rule.causal && draw(seed, 13, 0, 1) == 0)
        c->rule.window = draw(seed, 14, 1, 50);
    if (draw(seed, 15, 0, 1) == 0) {
        c->rule.document_ends = c->document_ends;
        c->rule.documents_count = 3;
    }
    a->rule = &c->rule;
}

static void
draw_case(Case *c, uint64_t seed)
{
    static const LhMaskKind masks[] = { LH_MASK_FULL, LH_MASK_CAUSAL, LH_MASK_POSITIONS };

    *c = (Case){ .q_parts = 1, .k_parts = 1 };
    c->args.mask = (uint8_t)masks[seed % 3];
    c->args.nq = draw(seed, 3, 1, TOKENS_MAX);
    c->args.nk = draw(seed, 4, 1, TOKENS_MAX);
    c->args.shift = (int8_t)(draw(seed, 16, 0, 1) == 0 ? 0 : -1);
    if (c->args.mask == LH_MASK_POSITIONS)
        draw_positions(c, seed);
    c->args.batch = 1;
    c->args.groups = 2;
    c->args.heads = 2 * (uint32_t)draw(seed, 17, 1, 5);
}

/* Blocks of tile @tile that contain any pair, by testing each pair. */
static uint64_t
plain_blocks(const Case *c, const LhTiling *t, uint64_t packed, uint64_t tile)
{
    const LhKernelArgs *a = &c->args;
    const uint64_t rows = t->of_keys ? a->nk : a->nq, columns = t->of_keys ? a->nq : a->nk;
    const uint64_t end = MIN((tile + 1) * t->rows, rows * packed);
    uint64_t blocks = 0;

    for (uint64_t first = 0; first < columns; first += t->columns) {
        bool any = false;

        for (uint64_t r = tile * t->rows; r < end; r++) {
            for (uint64_t k = first; k < MIN(first + t->columns, columns); k++)
                any |= t->of_keys ? sees(c, k, r / packed) : sees(c, r / packed, k);
        }
        blocks += any;
    }
    return blocks;
}

START_TEST(tiles_blocks_are_those_with_pairs)
{
    uint64_t touched = 0;

    for (uint64_t seed = 0; seed < 3000; seed++) {
        const LhTiling t = { .rows = draw(seed, 20, 1, 24),
                             .columns = draw(seed, 21, 1, 24),
                             .of_keys = draw(seed, 22, 0, 1) == 1,
                             .pack_groups = draw(seed, 23, 0, 1) == 1 };
        g_autoptr(GArray) runs = NULL;
        uint64_t packed, tiles, at = 0, left = 0;
        Case c;

        draw_case(&c, seed);
        packed = t.pack_groups && !t.of_keys ? c.args.heads / 2 : 1;
        tiles = ((t.of_keys ? c.args.nk : c.args.nq) * packed + t.rows - 1) / t.rows;
        ck_assert_uint_eq(lh_tiles_copies(&t, &c.args) * packed, c.args.heads);
        runs = lh_tiles_runs(&t, &c.args, c.q_parts, c.k_parts);
        for (uint64_t i = 0; i < tiles; i++) {
            const uint64_t blocks = plain_blocks(&c, &t, packed, i);
            const LhTileRun *run;

            if (blocks == 0 && c.args.stride <= 1)
                continue;
            if (c.args.stride > 1) /* keys between visible ones count as visible, so there may be
                                    * more */
                continue;
            left += left == 0 ? g_array_index(runs, LhTileRun, at++).tiles : 0;
            run = &g_array_index(runs, LhTileRun, at - 1);
            ck_assert_msg(run->blocks == blocks, "seed %d, tile %d: %d, not %d", (int)seed, (int)i,
                          (int)run->blocks, (int)blocks);
            left--;
            touched += blocks;
        }
        ck_assert(c.args.stride > 1 || (left == 0 && at == runs->len));
    }
    ck_assert_uint_gt(touched, 10000);
}
END_TEST

/* With tiles and blocks of one row, blocks are pairs, for any positions. */
START_TEST(tiles_of_one_row_are_the_pairs)
{
    for (uint64_t seed = 0; seed < 1500; seed++) {
        const LhTiling t = { .rows = 1, .columns = 1, .of_keys = seed % 2 == 1 };
        g_autoptr(GArray) runs = NULL;
        uint64_t pairs = 0, blocks = 0;
        Case c;

        draw_case(&c, seed);
        runs = lh_tiles_runs(&t, &c.args, c.q_parts, c.k_parts);
        for (uint64_t i = 0; i < c.args.nq; i++) {
            for (uint64_t j = 0; j < c.args.nk; j++)
                pairs += sees(&c, i, j);
        }
        for (guint i = 0; i < runs->len; i++)
            blocks +=
                g_array_index(runs, LhTileRun, i).blocks * g_array_index(runs, LhTileRun, i).tiles;
        ck_assert_msg(blocks == pairs, "seed %d: %d blocks, %d pairs", (int)seed, (int)blocks,
                      (int)pairs);
    }
}
END_TEST

/* Causal: 2048 tokens in tiles of 128 x 64 have 2, 4, ... 32 blocks. */
START_TEST(tiles_of_a_triangle)
{
    const LhTiling t = { .rows = 128, .columns = 64 };
    LhKernelArgs args = { .nq = 2048, .nk = 2048, .heads = 8, .groups = 8, .batch = 1 };
    g_autoptr(GArray) runs = NULL;
    g_autoptr(GArray) split = NULL;
    uint64_t whole = 0, parts = 0;

    args.mask = LH_MASK_CAUSAL;
    runs = lh_tiles_runs(&t, &args, 1, 1);
    ck_assert_uint_eq(runs->len, 16);
    for (guint i = 0; i < runs->len; i++)
        ck_assert_uint_eq(g_array_index(runs, LhTileRun, i).blocks, 2 * (i + 1));
    split = lh_tiles_split(runs, 3);
    for (guint i = 0; i < runs->len; i++)
        whole += g_array_index(runs, LhTileRun, i).blocks;
    for (guint i = 0; i < split->len; i++) {
        ck_assert_uint_le(g_array_index(split, LhTileRun, i).blocks, 11);
        parts +=
            g_array_index(split, LhTileRun, i).blocks * g_array_index(split, LhTileRun, i).tiles;
    }
    ck_assert_uint_eq(parts, whole);
}
END_TEST

/* --- schedules ----------------------------------------------------------------------------------
 */

static GArray *
draw_runs(uint64_t seed, uint64_t runs_max, uint64_t tiles_max)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(LhTileRun));
    const uint64_t count = draw(seed, 30, 1, runs_max);

    for (uint64_t i = 0; i < count; i++) {
        const LhTileRun run = { draw(seed, 100 + i, 1, 40), draw(seed, 500 + i, 1, tiles_max) };

        g_array_append_val(runs, run);
    }
    return runs;
}

static int
falling(gconstpointer a, gconstpointer b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x > y ? -1 : x < y;
}

/* All tiles in the order of execution. */
static GArray *
expand(const LhTiling *t, const GArray *runs, uint64_t copies)
{
    GArray *tiles = g_array_new(FALSE, FALSE, sizeof(double));

    for (uint64_t c = 0; c < copies; c++) {
        for (guint i = 0; i < runs->len; i++) {
            const LhTileRun *run = &g_array_index(runs, LhTileRun, i);
            const double tile = (double)run->blocks + t->prologue;

            for (uint64_t k = 0; k < run->tiles; k++)
                g_array_append_val(tiles, tile);
        }
    }
    if (t->order == LH_TILES_LONGEST_FIRST)
        g_array_sort(tiles, falling);
    return tiles;
}

static double
plain_makespan(const GArray *tiles, uint64_t sms)
{
    g_autofree double *free_at = g_new0(double, sms);
    double end = 0;

    for (guint i = 0; i < tiles->len; i++) {
        uint64_t first = 0;

        for (uint64_t s = 1; s < sms; s++)
            first = free_at[s] < free_at[first] ? s : first;
        free_at[first] += g_array_index(tiles, double, i);
        end = fmax(end, free_at[first]);
    }
    return end;
}

START_TEST(tiles_schedules_are_exact)
{
    unsigned exact = 0;

    for (uint64_t seed = 0; seed < 600; seed++) {
        const LhTiling t = { .order = seed % 2 == 0 ? LH_TILES_LINEAR : LH_TILES_LONGEST_FIRST,
                             .prologue = (double)(seed % 3) };
        const uint64_t sms = draw(seed, 31, 1, 30), copies = draw(seed, 32, 1, 20);
        g_autoptr(GArray) runs = draw_runs(seed, 12, 4);
        g_autoptr(GArray) tiles = expand(&t, runs, copies);
        const LhTileTimes times = lh_tiles_makespan(&t, runs, copies, sms);
        const double plain = plain_makespan(tiles, sms);
        double work = 0;

        for (guint i = 0; i < tiles->len; i++)
            work += g_array_index(tiles, double, i);
        ck_assert_double_eq_tol(times.work_blocks, work, 1e-6);
        if (tiles->len < LH_TILES_EXACT * sms) {
            ck_assert_double_eq_tol(times.makespan_blocks, plain, 1e-6);
            exact++;
        } else {
            ck_assert_double_eq_tol(times.makespan_blocks, plain, 0.06 * plain);
        }
        ck_assert_double_ge(times.makespan_blocks * (double)sms, work * (1 - 1e-12));
    }
    ck_assert_uint_gt(exact, 200);
}
END_TEST

/* An SM with several thread blocks, simulated without a heap. */
typedef struct {
    double at, left[LH_TILES_RESIDENT];
    uint64_t count;
} PlainSm;

static double
plain_rate(const LhTiling *t, uint64_t count)
{
    const double filled = (double)(count - 1) / (double)(t->resident - 1);

    return t->alone + (1 - t->alone) * filled;
}

static double
plain_end(const LhTiling *t, const PlainSm *sm, double *least)
{
    *least = INFINITY;
    for (uint64_t i = 0; i < sm->count; i++)
        *least = fmin(*least, sm->left[i]);
    return sm->at + *least / (plain_rate(t, sm->count) / (double)sm->count);
}

static void
plain_advance(const LhTiling *t, PlainSm *sm)
{
    double least;
    uint64_t kept = 0;

    sm->at = plain_end(t, sm, &least);
    for (uint64_t i = 0; i < sm->count; i++) {
        if (sm->left[i] > least)
            sm->left[kept++] = sm->left[i] - least;
    }
    sm->count = kept;
}

/* When @sm has room for a tile, and how many thread blocks it has then. */
static double
plain_room(const LhTiling *t, const PlainSm *sm, uint64_t *staying)
{
    double least, end;

    *staying = sm->count;
    if (sm->count < t->resident)
        return sm->at;
    end = plain_end(t, sm, &least);
    *staying = 0;
    for (uint64_t i = 0; i < sm->count; i++)
        *staying += sm->left[i] > least;
    return end;
}

static double
plain_shared_makespan(const LhTiling *t, const GArray *tiles, uint64_t sms)
{
    g_autofree PlainSm *sm = g_new0(PlainSm, sms);
    double end = 0;

    for (guint i = 0; i < tiles->len; i++) {
        uint64_t best = 0, best_staying, staying;
        double best_room = plain_room(t, &sm[0], &best_staying);

        for (uint64_t s = 1; s < sms; s++) {
            const double room = plain_room(t, &sm[s], &staying);

            if (room < best_room || (room <= best_room && staying < best_staying)) {
                best = s;
                best_room = room;
                best_staying = staying;
            }
        }
        if (sm[best].count == t->resident)
            plain_advance(t, &sm[best]);
        sm[best].left[sm[best].count++] = g_array_index(tiles, double, i);
    }
    for (uint64_t s = 0; s < sms; s++) {
        while (sm[s].count > 0)
            plain_advance(t, &sm[s]);
        end = fmax(end, sm[s].at);
    }
    return end;
}

START_TEST(tiles_that_share_an_sm_share_its_rate)
{
    for (uint64_t seed = 0; seed < 400; seed++) {
        const double alone[] = { 0.5, 0.7, 1 };
        const LhTiling t = { .resident = 2 + seed % 3,
                             .alone = alone[seed % 3],
                             .prologue = (double)(seed % 2) };
        const uint64_t sms = draw(seed, 31, 1, 12), copies = draw(seed, 32, 1, 8);
        g_autoptr(GArray) runs = draw_runs(seed, 12, 3);
        g_autoptr(GArray) tiles = expand(&t, runs, copies);
        const LhTileTimes times = lh_tiles_makespan(&t, runs, copies, sms);

        if (tiles->len >= LH_TILES_EXACT * sms)
            continue;
        ck_assert_double_eq_tol(times.makespan_blocks, plain_shared_makespan(&t, tiles, sms), 1e-6);
        ck_assert_double_ge(times.makespan_blocks * (double)sms, times.work_blocks * (1 - 1e-12));
        if (sms == 1 && t.alone >= 1)
            ck_assert_double_eq_tol(times.makespan_blocks, times.work_blocks, 1e-6);
    }
}
END_TEST

/* By hand: tiles of 10 blocks, two per SM; one alone has 0.8 of the rate. */
START_TEST(tiles_that_share_an_sm_by_hand)
{
    static const struct {
        uint64_t tiles, sms;
        double blocks;
    } cases[] = {
        { 1, 1, 12.5 }, { 2, 1, 20 }, { 3, 1, 32.5 },
        { 2, 2, 12.5 }, { 3, 2, 20 }, { 6, 2, 32.5 }, /* the last two on separate SMs */
        { 8, 2, 40 },
    };
    const LhTiling t = { .resident = 2, .alone = 0.8 };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const LhTileRun run = { 10, cases[i].tiles };
        g_autoptr(GArray) runs = g_array_new(FALSE, FALSE, sizeof(run));

        g_array_append_val(runs, run);
        ck_assert_double_eq_tol(lh_tiles_makespan(&t, runs, 1, cases[i].sms).makespan_blocks,
                                cases[i].blocks, 1e-9);
    }
}
END_TEST

/* The best assignment of tiles from @i on, by exhaustive search. */
static double
best_makespan(const GArray *tiles, guint i, double *free_at, uint64_t sms)
{
    double best = INFINITY;

    if (i == tiles->len) {
        best = 0;
        for (uint64_t s = 0; s < sms; s++)
            best = fmax(best, free_at[s]);
        return best;
    }
    for (uint64_t s = 0; s < sms; s++) {
        const double tile = g_array_index(tiles, double, i);

        free_at[s] += tile;
        best = fmin(best, best_makespan(tiles, i + 1, free_at, sms));
        free_at[s] -= tile;
    }
    return best;
}

/* Graham 1969: longest first is within 4/3 - 1/(3 m) of the optimum. */
START_TEST(tiles_longest_first_is_near_the_best)
{
    for (uint64_t seed = 0; seed < 150; seed++) {
        const LhTiling t = { .order = LH_TILES_LONGEST_FIRST, .prologue = (double)(seed % 2) };
        const uint64_t sms = 2 + seed % 2;
        g_autoptr(GArray) runs = draw_runs(seed, 8, 1);
        g_autoptr(GArray) tiles = expand(&t, runs, 1);
        double free_at[3] = { 0 };
        const double best = best_makespan(tiles, 0, free_at, sms);
        const double found = lh_tiles_makespan(&t, runs, 1, sms).makespan_blocks;

        ck_assert_double_ge(found, best - 1e-9);
        ck_assert_double_le(found, best * (4.0 / 3 - 1.0 / (3 * (double)sms)) + 1e-9);
    }
}
END_TEST

/* Kernels of realistic size, across the limit from which schedules are estimated. */
START_TEST(tiles_times_grow_with_tokens_and_shrink_with_sms)
{
    const LhTiling tilings[] = {
        { .rows = 128, .columns = 64, .order = LH_TILES_LINEAR },
        { .rows = 128, .columns = 128, .order = LH_TILES_LONGEST_FIRST, .pack_groups = true },
        { .rows = 128, .columns = 64, .of_keys = true, .order = LH_TILES_LINEAR, .prologue = 3 },
    };

    for (gsize k = 0; k < G_N_ELEMENTS(tilings); k++) {
        double last = 0;

        for (uint64_t n = 512; n <= 65536; n += 512) {
            LhKernelArgs args = { .nq = n, .nk = n, .batch = 1, .heads = 8, .groups = 2 };
            g_autoptr(GArray) runs = NULL;
            uint64_t copies;
            double few, many;

            args.mask = LH_MASK_CAUSAL;
            runs = lh_tiles_runs(&tilings[k], &args, 1, 1);
            copies = lh_tiles_copies(&tilings[k], &args);
            few = lh_tiles_makespan(&tilings[k], runs, copies, 108).makespan_blocks;
            many = lh_tiles_makespan(&tilings[k], runs, copies, 132).makespan_blocks;
            ck_assert_msg(few > 0.99 * last, "%d tokens", (int)n);
            ck_assert_double_le(many, few * 1.001);
            last = few;
        }
    }
}
END_TEST

START_TEST(tiles_of_nothing_take_no_time)
{
    const LhTiling t = { .rows = 128, .columns = 64, .prologue = 2 };
    const LhKernelArgs args = { .nq = 512, .nk = 512, .batch = 1, .heads = 1, .groups = 1 };
    g_autoptr(GArray) runs = lh_tiles_runs(&t, &args, 1, 1);

    ck_assert_uint_eq(runs->len, 0); /* LH_MASK_EMPTY */
    ck_assert_double_eq(lh_tiles_makespan(&t, runs, 1, 108).makespan_blocks, 0);
}
END_TEST

/* --- rows of devices ----------------------------------------------------------------------------
 */

static LhDevice *
load(const char *name)
{
    LhDevice *device = lh_device_load(name, NULL);

    ck_assert_ptr_nonnull(device);
    return device;
}

static double
seconds(const LhDevice *device, bool serving, const LhKernelArgs *args, LhKernelId kernel,
        double *occupancy)
{
    const LhProgram program = { .params.attention.dtype = LH_DTYPE_BF16 };
    const LhOp op = { .kind = LH_OP_COMPUTE, .compute = { .kernel = kernel, .args = *args } };
    LhCost cost;
    double first, again;

    lh_cost_init(&cost, LH_COST_DEVICE, device);
    cost.serving = serving;
    first = (double)lh_cost_compute(&cost, &program, &op, occupancy) * 1e-12;
    again = (double)lh_cost_compute(&cost, &program, &op, occupancy) * 1e-12;
    ck_assert_double_eq(first, again); /* the cached value is equal */
    lh_cost_clear(&cost);
    return first;
}

static LhKernelArgs
causal(uint64_t n, uint32_t heads, uint32_t head_dim)
{
    return (LhKernelArgs){ .pairs = n * (n + 1) / 2,
                           .nq = n,
                           .nk = n,
                           .batch = 1,
                           .heads = heads,
                           .groups = heads,
                           .head_dim = head_dim,
                           .mask = LH_MASK_CAUSAL };
}

/* A long kernel reaches the sustained rate, up to its tiles' part beyond the diagonal; a single
 * head with few tiles leaves most SMs idle. */
START_TEST(rows_give_the_rate_of_busy_sms)
{
    g_autoptr(LhDevice) h100 = load("h100-sxm");
    const LhAttentionRow *row = lh_attention_find(h100, "fa3", false, 128, true);
    const LhKernelArgs big = causal(65536, 32, 128), small = causal(2048, 1, 128);
    double ideal = 4.0 * 32 * 128 * (double)big.pairs / row->sustained_rate, occupancy;

    lh_device_use_library(h100, "fa3");
    ck_assert_double_eq_tol(seconds(h100, false, &big, LH_KERNEL_ID_attention_fwd, &occupancy),
                            ideal, 0.03 * ideal);
    ck_assert_double_gt(occupancy, 0.98);
    /* 16 tiles on 132 SMs: the time of the longest one, of 16 blocks and the prologue */
    ideal = (16 + row->tiling.prologue) * 4 * 128 * 128 * 128 * 132 / row->sustained_rate;
    ck_assert_double_eq_tol(seconds(h100, false, &small, LH_KERNEL_ID_attention_fwd, &occupancy),
                            ideal, 1e-9);
    ck_assert_double_le(occupancy, 16.0 / 132);
}
END_TEST

/* Curves apply if the library has no row for the pass, the mask or the head size, or no library
 * is named; rows apply if curves lack the head size. */
START_TEST(rows_leave_the_rest_to_curves)
{
    g_autoptr(LhDevice) h100 = load("h100-sxm");
    g_autoptr(LhDevice) plain = load("h100-sxm");
    g_autoptr(LhDevice) b200 = load("b200-sxm");
    const LhKernelArgs at128 = causal(8192, 32, 128), at64 = causal(8192, 32, 64);
    const LhAttentionRow *row = lh_attention_find(b200, NULL, false, 64, true);
    const LhAttentionLoad load64 = lh_attention_load(row, b200->sm_count, &at64, 1, 1, false);
    double other;

    ck_assert(lh_attention_has(h100, "fa3"));
    ck_assert(!lh_attention_has(h100, "fa4"));
    ck_assert_ptr_null(lh_attention_find(h100, "fa3", true, 128, true));
    ck_assert_ptr_null(lh_attention_find(h100, "fa3", false, 96, true));
    lh_device_use_library(plain, NULL);
    other = seconds(plain, false, &at128, LH_KERNEL_ID_attention_fwd, NULL);
    ck_assert_double_eq(seconds(h100, false, &at128, LH_KERNEL_ID_attention_fwd, NULL), other);
    lh_device_use_library(h100, "fa3");
    ck_assert_double_ne(seconds(h100, false, &at128, LH_KERNEL_ID_attention_fwd, NULL), other);
    ck_assert_double_eq(seconds(h100, false, &at128, LH_KERNEL_ID_attention_bwd, NULL),
                        seconds(plain, false, &at128, LH_KERNEL_ID_attention_bwd, NULL));
    ck_assert_double_eq_tol(seconds(b200, false, &at64, LH_KERNEL_ID_attention_fwd, NULL),
                            lh_attention_seconds(row, &load64, false), 1e-11);
}
END_TEST

/* Serving systems: launch and copies are added, and the device runs at its cool rate; each term
 * makes a kernel slower. */
START_TEST(rows_of_serving_systems_have_terms)
{
    g_autoptr(LhDevice) h100 = load("h100-sxm");
    LhAttentionRow row = *lh_attention_find(h100, "fa3", false, 128, true);
    const LhKernelArgs args = causal(1024, 4, 128), huge = causal(131072, 64, 128);
    LhAttentionLoad load = lh_attention_load(&row, 132, &args, 1, 1, true);
    double with, without;

    ck_assert_double_eq(load.append_bytes, 2.0 * 1024 * 4 * 128 * 2);
    ck_assert_double_eq(load.query_bytes, 1024.0 * 4 * 128 * 2);
    ck_assert_double_eq(load.append_elements, 1024.0 * 512);
    ck_assert_double_gt(load.partial_bytes, 0); /* 32 tiles of at most 8 blocks are split */
    with = lh_attention_seconds(&row, &load, true);
    row.serving.append = row.serving.queries = row.serving.partials = 0;
    row.serving.append_token_ps = 0;
    without = lh_attention_seconds(&row, &load, true);
    ck_assert_double_gt(with, without);
    ck_assert_double_eq_tol(without,
                            (double)row.serving.launch_ps * 1e-12 +
                                lh_attention_tiles_seconds(&row, load.flops, true),
                            1e-15);
    load = lh_attention_load(&row, 132, &huge, 1, 1, true);
    ck_assert_double_eq(load.partial_bytes, 0);
    ck_assert_double_eq_tol(lh_attention_tiles_seconds(&row, load.flops, true),
                            lh_attention_tiles_seconds(&row, load.flops, false),
                            0.01 * lh_attention_tiles_seconds(&row, load.flops, false));
    row.serving.l2_bytes = 1 << 20;
    row.serving.beyond_l2 = 1e12;
    load = lh_attention_load(&row, 132, &args, 1, 1, true);
    ck_assert_double_eq(load.spilled_bytes, load.append_bytes + 2 * load.query_bytes - (1 << 19));
    load = lh_attention_load(&row, 132, &args, 1, 1, false);
    ck_assert_double_eq(load.append_bytes + load.query_bytes + load.spilled_bytes, 0);
}
END_TEST

/* 1 / rate is between 1 / R0 and 1 / Rs, and at the middle at the knee. */
START_TEST(rows_cool_and_sustained)
{
    LhAttentionRow row = { .rate = 800e12, .sustained_rate = 400e12, .knee_ps = 4000000000 };
    double flops = 4e-3 / ((1 / 800e12 + 1 / 400e12) / 2);

    ck_assert_double_eq_tol(lh_attention_tiles_seconds(&row, flops, true), 4e-3, 1e-12);
    ck_assert_double_eq_tol(lh_attention_tiles_seconds(&row, 1e9, true), 1e9 / 800e12, 1e-9);
    ck_assert_double_eq_tol(lh_attention_tiles_seconds(&row, 1e18, false), 1e18 / 400e12, 1e-9);
}
END_TEST

/* By predicted time; beyond the last one, the last. */
START_TEST(rows_quantiles_are_of_calls_as_long)
{
    const LhAttentionQuantile known[] = { { 64000000, 0.1 }, { 256000000, 0.05 }, { 0, 0.02 } };
    g_autoptr(GArray) quantiles = g_array_new(FALSE, FALSE, sizeof(known[0]));
    const LhAttentionRow none = { .rate = 1e12 };
    LhAttentionRow row = { .rate = 1e12, .residuals.quantiles = quantiles };

    g_array_append_vals(quantiles, known, G_N_ELEMENTS(known));
    ck_assert_double_eq(lh_attention_quantile(&none, 1e-3), 0);
    ck_assert_double_eq(lh_attention_quantile(&row, 1e-6), 0.1);
    ck_assert_double_eq(lh_attention_quantile(&row, 64.1e-6), 0.05);
    ck_assert_double_eq(lh_attention_quantile(&row, 255e-6), 0.05);
    ck_assert_double_eq(lh_attention_quantile(&row, 257e-6), 0.02);
    ck_assert_double_eq(lh_attention_quantile(&row, 10), 0.02);
}
END_TEST

LH_TEST_MAIN("tiles", tiles_blocks_are_those_with_pairs, tiles_of_one_row_are_the_pairs,
             tiles_of_a_triangle, tiles_schedules_are_exact, tiles_that_share_an_sm_share_its_rate,
             tiles_that_share_an_sm_by_hand, tiles_longest_first_is_near_the_best,
             tiles_times_grow_with_tokens_and_shrink_with_sms, tiles_of_nothing_take_no_time,
             rows_give_the_rate_of_busy_sms, rows_leave_the_rest_to_curves,
             rows_of_serving_systems_have_terms, rows_cool_and_sustained,
             rows_quantiles_are_of_calls_as_long)
