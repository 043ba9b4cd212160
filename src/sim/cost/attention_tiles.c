/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles and their schedule. The keys that a row attends to are an interval of token positions whose
 * ends never decrease from row to row (model/mask.h), so the blocks of a tile follow from its first
 * and last row in each part, without looking at pairs. Not modelled: clusters of SMs that share a
 * tile.
 */
#include "sim/cost/attention_tiles.h"

#include <math.h>
#include <string.h>

const char *const lh_tile_orders[] = { "linear", "longest_first", NULL };

/* Larger than any sequence. */
#define POSITION_END (UINT64_C(1) << 62)

#define NO_TILE UINT64_MAX

/* ---- blocks of a tile ---- */

/* Positions of one side's rows in the sequence. */
typedef struct {
    LhRowsPosition at;
    uint64_t stride, part_rows;
    uint32_t parts;
} Rows;

typedef struct {
    const LhTiling *tiling;
    const LhKernelArgs *args;
    Rows tile, other; /* sides of the tiles and of the blocks */
    /* Of LhInterval: columns that a tile touches, by part, some empty; the tile that they are of,
     * or NO_TILE. */
    GArray *touched;
    uint64_t touched_of;
    GArray *current;  /* of LhInterval: those of the current tile */
    uint64_t packed;  /* rows of the tile's side per token: query heads, or 1 */
    uint64_t rows;    /* tokens of the tile's side */
    uint64_t columns; /* tokens of the other side */
} Geometry;

static uint64_t
ceil_quotient(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint64_t
position(const Rows *rows, uint32_t part, uint64_t row)
{
    return (uint64_t)(rows->at.start + (int64_t)part * rows->at.part_step) + row * rows->stride;
}

/* The first row of the part at or after position @at. */
static uint64_t
row_at(const Rows *rows, uint32_t part, uint64_t at)
{
    const uint64_t start = position(rows, part, 0);

    if (at <= start)
        return 0;
    return MIN(ceil_quotient(at - start, MAX(rows->stride, 1)), rows->part_rows);
}

static void
touch_columns(Geometry *g, uint32_t part, uint64_t first, uint64_t end)
{
    const uint64_t base = part * g->other.part_rows;
    const LhInterval columns = { base + first, base + end };

    g_array_append_val(g->touched, columns);
}

/* Adds the keys that queries at positions [from, last] attend to. */
static void
touch_keys(Geometry *g, uint64_t from, uint64_t last)
{
    const LhMaskRule *rule = g->args->rule;
    const uint64_t first = lh_mask_keys(rule, from, POSITION_END).first;
    const uint64_t end = lh_mask_keys(rule, last, POSITION_END).end;

    for (uint32_t p = 0; p < g->other.parts; p++)
        touch_columns(g, p, row_at(&g->other, p, first), row_at(&g->other, p, end));
}

/* The first query of the part whose keys end after @key; with @begins, whose keys begin after
 * it. */
static uint64_t
query_behind(const Geometry *g, uint32_t part, uint64_t key, bool begins)
{
    uint64_t low = 0, high = g->other.part_rows;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const LhInterval keys =
            lh_mask_keys(g->args->rule, position(&g->other, part, middle), POSITION_END);

        if ((begins ? keys.first : keys.end - 1) >= key + (begins ? 1 : 0))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Adds the queries that attend to a key at positions [from, last]. */
static void
touch_queries(Geometry *g, uint64_t from, uint64_t last)
{
    for (uint32_t p = 0; p < g->other.parts; p++)
        touch_columns(g, p, query_behind(g, p, from, false), query_behind(g, p, last, true));
}

static int
compare_intervals(gconstpointer a, gconstpointer b)
{
    const LhInterval *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

/* The number of distinct blocks that contain the current tile's columns. */
static uint64_t
count_blocks(Geometry *g)
{
    uint64_t blocks = 0, next = 0; /* first block not counted yet */

    g_array_sort(g->current, compare_intervals);
    for (guint i = 0; i < g->current->len; i++) {
        const LhInterval *columns = &g_array_index(g->current, LhInterval, i);
        const uint64_t first = MAX(columns->first / g->tiling->columns, next);
        const uint64_t end =
            columns->end > columns->first ? (columns->end - 1) / g->tiling->columns + 1 : 0;

        if (end <= first)
            continue;
        blocks += end - first;
        next = end;
    }
    return blocks;
}

/* Tokens of the tile's side. */
static LhInterval
rows_of_tile(const Geometry *g, uint64_t tile)
{
    const uint64_t rows = g->tiling->rows;

    return (LhInterval){ tile * rows / g->packed,
                         MIN(ceil_quotient((tile + 1) * rows, g->packed), g->rows) };
}

/* Finds the columns that a tile touches by position. */
static void
touch(Geometry *g, uint64_t tile)
{
    const uint64_t part_rows = g->tile.part_rows;
    const LhInterval rows = rows_of_tile(g, tile);

    if (g->touched_of == tile)
        return;
    g->touched_of = tile;
    g_array_set_size(g->touched, 0);
    for (uint64_t row = rows.first; row < rows.end;) {
        const uint32_t part = (uint32_t)(row / part_rows);
        const uint64_t next = MIN((part + 1) * part_rows, rows.end);
        const uint64_t from = position(&g->tile, part, row - part * part_rows);
        const uint64_t last = position(&g->tile, part, next - 1 - part * part_rows);

        if (g->tiling->of_keys)
            touch_queries(g, from, last);
        else
            touch_keys(g, from, last);
        row = next;
    }
}

/* Whether @tile touches the current tile's columns. */
static bool
is_alike(Geometry *g, uint64_t tile)
{
    touch(g, tile);
    return g->touched->len == g->current->len &&
           memcmp(g->touched->data, g->current->data, g->current->len * sizeof(LhInterval)) == 0;
}

/*
 * The number of tiles from @tile on, of @tiles, that touch its columns, which become the current
 * ones. Within a part both ends of the columns never decrease from row to row. So if two tiles are
 * alike, those between are too, and the last one is found by steps that double, then halve. Most
 * keys of a long sequence come before all queries of a rank.
 */
static uint64_t
count_alike(Geometry *g, uint64_t tile, uint64_t tiles)
{
    const uint64_t part = rows_of_tile(g, tile).first / g->tile.part_rows;
    const uint64_t part_end = (part + 1) * g->tile.part_rows * g->packed / g->tiling->rows;
    const uint64_t end = MIN(part_end, tiles); /* of the tiles within this part */
    uint64_t last = tile, step = 1;

    touch(g, tile);
    g_array_set_size(g->current, 0);
    g_array_append_vals(g->current, g->touched->data, g->touched->len);
    for (; last + step < end && is_alike(g, last + step); step *= 2)
        last += step;
    while ((step /= 2) > 0)
        if (last + step < end && is_alike(g, last + step))
            last += step;
    return last - tile + 1;
}

/* Query i attends to key j if j <= i + shift. */
static uint64_t
blocks_of_triangle(const Geometry *g, uint64_t first, uint64_t end)
{
    const int64_t shift = (int)g->args->shift;

    if (g->tiling->of_keys) {
        const uint64_t from = (uint64_t)MAX((int64_t)first - shift, 0);

        return from >= g->columns
                   ? 0
                   : ceil_quotient(g->columns, g->tiling->columns) - from / g->tiling->columns;
    }
    return ceil_quotient((uint64_t)CLAMP((int64_t)end + shift, 0, (int64_t)g->columns),
                         g->tiling->columns);
}

/* Not under LH_MASK_POSITIONS. */
static uint64_t
blocks_of(const Geometry *g, LhInterval rows)
{
    switch (g->args->mask) {
    case LH_MASK_FULL:
        return ceil_quotient(g->columns, g->tiling->columns);
    case LH_MASK_CAUSAL:
        return blocks_of_triangle(g, rows.first, rows.end);
    default:
        return 0;
    }
}

static uint64_t
packed_heads(const LhTiling *tiling, const LhKernelArgs *args)
{
    return tiling->pack_groups && !tiling->of_keys ? args->heads / args->groups : 1;
}

static void
append(GArray *runs, uint64_t blocks, uint64_t tiles)
{
    LhTileRun *last = runs->len > 0 ? &g_array_index(runs, LhTileRun, runs->len - 1) : NULL;
    const LhTileRun run = { blocks, tiles };

    if (blocks == 0 || tiles == 0)
        return;
    if (last != NULL && last->blocks == blocks)
        last->tiles += tiles;
    else
        g_array_append_val(runs, run);
}

/* Parts that follow each other in the sequence are one. */
static Rows
rows_of(LhRowsPosition at, uint64_t stride, uint64_t rows, uint32_t parts)
{
    const uint64_t part_rows = rows / parts;
    const bool joined = at.part_step >= 0 && (uint64_t)at.part_step == part_rows * stride;

    return joined ? (Rows){ at, stride, part_rows * parts, 1 }
                  : (Rows){ at, stride, part_rows, parts };
}

GArray *
lh_tiles_runs(const LhTiling *tiling, const LhKernelArgs *args, uint32_t q_parts, uint32_t k_parts)
{
    const Rows queries = rows_of(args->q_at, args->stride, args->nq, q_parts);
    const Rows keys = rows_of(args->k_at, args->stride, args->nk, k_parts);
    g_autoptr(GArray) touched = g_array_new(FALSE, FALSE, sizeof(LhInterval));
    g_autoptr(GArray) current = g_array_new(FALSE, FALSE, sizeof(LhInterval));
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(LhTileRun));
    Geometry g = { .tiling = tiling,
                   .args = args,
                   .tile = tiling->of_keys ? keys : queries,
                   .other = tiling->of_keys ? queries : keys,
                   .touched = touched,
                   .touched_of = NO_TILE,
                   .current = current,
                   .packed = packed_heads(tiling, args),
                   .rows = tiling->of_keys ? args->nk : args->nq,
                   .columns = tiling->of_keys ? args->nq : args->nk };
    const uint64_t tiles = ceil_quotient(g.rows * g.packed, tiling->rows);

    if (args->mask == LH_MASK_FULL) {
        append(runs, blocks_of(&g, (LhInterval){ 0, g.rows }), tiles);
        return runs;
    }
    for (uint64_t i = 0, alike = 1; i < tiles; i += alike) {
        if (args->mask != LH_MASK_POSITIONS) {
            append(runs, blocks_of(&g, rows_of_tile(&g, i)), 1);
            continue;
        }
        alike = count_alike(&g, i, tiles);
        append(runs, count_blocks(&g), alike);
    }
    return runs;
}

uint64_t
lh_tiles_copies(const LhTiling *tiling, const LhKernelArgs *args)
{
    return (uint64_t)args->batch * args->heads / packed_heads(tiling, args);
}

GArray *
lh_tiles_split(const GArray *runs, uint64_t parts)
{
    GArray *split = g_array_new(FALSE, FALSE, sizeof(LhTileRun));

    for (guint i = 0; i < runs->len; i++) {
        const LhTileRun *run = &g_array_index(runs, LhTileRun, i);
        const uint64_t share = ceil_quotient(run->blocks, parts);
        const uint64_t whole = run->blocks / share;

        append(split, share, whole * run->tiles);
        append(split, run->blocks - whole * share, run->tiles);
    }
    return split;
}

/* ---- schedules ---- */

/* Heap of the times at which SMs are free, earliest first. */
typedef struct {
    double *free_at;
    uint64_t sms;
    double end; /* end of the last tile */
} Machine;

/* Gives a tile to the first free SM. */
static void
take_tile(Machine *m, double tile)
{
    const double done = m->free_at[0] + tile;
    uint64_t at = 0;

    m->end = fmax(m->end, done);
    for (;;) {
        uint64_t child = 2 * at + 1;

        if (child + 1 < m->sms && m->free_at[child + 1] < m->free_at[child])
            child++;
        if (child >= m->sms || m->free_at[child] >= done)
            break;
        m->free_at[at] = m->free_at[child];
        at = child;
    }
    m->free_at[at] = done;
}

static void
take_runs(Machine *m, const GArray *runs, double prologue, uint64_t copies)
{
    for (guint i = 0; i < runs->len; i++) {
        const LhTileRun *run = &g_array_index(runs, LhTileRun, i);

        for (uint64_t k = 0; k < run->tiles * copies; k++)
            take_tile(m, (double)run->blocks + prologue);
    }
}

/* An SM whose thread blocks share its rate. */
typedef struct {
    double next;                    /* when it has room for a thread block */
    double at;                      /* time of `left` */
    double left[LH_TILES_RESIDENT]; /* remaining work of each, in blocks */
    uint64_t count;
    uint64_t staying; /* thread blocks still there at `next` */
    uint64_t index;
} Shared;

typedef struct {
    Shared *sms; /* a heap by time of room; then by most room; then by index */
    uint64_t count;
    uint64_t resident;
    double alone;
    double end;
} SharedMachine;

/* The rate of each of @count thread blocks on one SM. */
static double
share_of(const SharedMachine *m, uint64_t count)
{
    const double more = (double)(count - 1) / (double)(m->resident - 1);

    return (m->alone + (1 - m->alone) * more) / (double)count;
}

static double
least(const Shared *sm)
{
    double least = sm->left[0];

    for (uint64_t i = 1; i < sm->count; i++)
        least = fmin(least, sm->left[i]);
    return least;
}

/* Advances @sm until a thread block ends, with any others that end at the same time. */
static void
finish_some(SharedMachine *m, Shared *sm)
{
    const double done = least(sm);
    uint64_t kept = 0;

    sm->at += done / share_of(m, sm->count);
    m->end = fmax(m->end, sm->at);
    for (uint64_t i = 0; i < sm->count; i++) {
        if (sm->left[i] > done)
            sm->left[kept++] = sm->left[i] - done;
    }
    sm->count = kept;
    sm->staying = kept;
    sm->next = sm->at;
}

/* Computes when the SM has room, and how much. */
static void
foresee(const SharedMachine *m, Shared *sm)
{
    const double done = least(sm);

    sm->staying = sm->count;
    sm->next = sm->at;
    if (sm->count < m->resident)
        return;
    sm->next += done / share_of(m, sm->count);
    for (uint64_t i = 0; i < sm->count; i++)
        sm->staying -= sm->left[i] <= done;
}

static bool
comes_before(const Shared *a, const Shared *b)
{
    if (a->next < b->next || a->next > b->next)
        return a->next < b->next;
    return a->staying != b->staying ? a->staying < b->staying : a->index < b->index;
}

static void
sink_first(SharedMachine *m)
{
    const Shared sm = m->sms[0];
    uint64_t at = 0;

    for (;;) {
        uint64_t child = 2 * at + 1;

        if (child + 1 < m->count && comes_before(&m->sms[child + 1], &m->sms[child]))
            child++;
        if (child >= m->count || !comes_before(&m->sms[child], &sm))
            break;
        m->sms[at] = m->sms[child];
        at = child;
    }
    m->sms[at] = sm;
}

static void
take_shared(SharedMachine *m, double tile)
{
    Shared *first = &m->sms[0];

    while (first->count == m->resident) {
        finish_some(m, first);
        sink_first(m);
    }
    first->left[first->count++] = tile;
    foresee(m, first);
    sink_first(m);
}

/* Runs all SMs to their end. */
static double
end_shared(SharedMachine *m)
{
    for (uint64_t i = 0; i < m->count; i++) {
        while (m->sms[i].count > 0)
            finish_some(m, &m->sms[i]);
    }
    return m->end;
}

static double
linear_shared(const LhTiling *tiling, const GArray *runs, uint64_t copies, uint64_t sms)
{
    g_autofree Shared *shared = g_new0(Shared, sms);
    SharedMachine m = {
        .sms = shared, .count = sms, .resident = tiling->resident, .alone = tiling->alone
    };

    for (uint64_t i = 0; i < sms; i++)
        shared[i].index = i;
    for (uint64_t i = 0; i < copies; i++) {
        for (guint k = 0; k < runs->len; k++) {
            const LhTileRun *run = &g_array_index(runs, LhTileRun, k);

            for (uint64_t t = 0; t < run->tiles; t++)
                take_shared(&m, (double)run->blocks + tiling->prologue);
        }
    }
    return end_shared(&m);
}

static int
longer_first(gconstpointer a, gconstpointer b)
{
    const LhTileRun *x = a, *y = b;

    return x->blocks > y->blocks ? -1 : x->blocks < y->blocks;
}

static double
longest_first(const LhTiling *tiling, const GArray *runs, uint64_t copies, uint64_t sms)
{
    g_autoptr(GArray) sorted = g_array_copy((GArray *)runs);
    g_autofree double *free_at = g_new0(double, sms);
    Machine m = { free_at, sms, 0 };

    g_array_sort(sorted, longer_first);
    take_runs(&m, sorted, tiling->prologue, copies);
    return m.end;
}

static double
linear(const LhTiling *tiling, const GArray *runs, uint64_t copies, uint64_t sms)
{
    g_autofree double *free_at = g_new0(double, sms);
    Machine m = { free_at, sms, 0 };

    if (tiling->resident > 1)
        return linear_shared(tiling, runs, copies, sms);
    for (uint64_t i = 0; i < copies; i++)
        take_runs(&m, runs, tiling->prologue, 1);
    return m.end;
}

LhTileTimes
lh_tiles_makespan(const LhTiling *tiling, const GArray *runs, uint64_t copies, uint64_t sms)
{
    uint64_t tiles = 0, shortest = UINT64_MAX;
    double head = 0, mean;
    LhTileTimes times = { 0 };

    for (guint i = 0; i < runs->len; i++) {
        const LhTileRun *run = &g_array_index(runs, LhTileRun, i);

        tiles += run->tiles;
        head += (double)run->tiles * ((double)run->blocks + tiling->prologue);
        shortest = MIN(shortest, run->blocks);
    }
    if (tiles == 0 || copies == 0)
        return times;
    times.work_blocks = head * (double)copies;
    mean = times.work_blocks / (double)sms;
    if (tiling->order == LH_TILES_LINEAR) {
        const uint64_t tail = tiles * copies < LH_TILES_EXACT * sms
                                  ? copies
                                  : MIN(ceil_quotient(LH_TILES_TAIL * sms, tiles), copies);

        times.makespan_blocks =
            head * (double)(copies - tail) / (double)sms + linear(tiling, runs, tail, sms);
    } else if (tiles * copies < LH_TILES_EXACT * sms) {
        times.makespan_blocks = longest_first(tiling, runs, copies, sms);
    } else {
        times.makespan_blocks = mean + ((double)shortest + tiling->prologue) / 2;
    }
    return times;
}
