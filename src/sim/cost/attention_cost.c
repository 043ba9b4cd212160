/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel's time is the makespan of its tiles at the rate of its SMs. The rate falls from R0 to Rs
 * within milliseconds, as power limits the clocks. Training never lets a device cool, so
 * simulations use Rs. The terms of serving systems, which append keys to a cache and split long
 * ones among SMs, are only for comparison with their measurements.
 */
#include "sim/cost/attention_cost.h"

#include <math.h>
#include <string.h>

#define ELEMENT_BYTES 2 /* rates are those of 16-bit kernels */
/* FlashAttention-3's rule for split keys (hopper/heuristics.h). */
#define SPLIT_BUSY 0.8        /* fraction of the SMs with a tile from which on nothing is split */
#define SPLIT_BLOCKS 4        /* up to this many blocks are not split */
#define SPLIT_EFFICIENCY 0.85 /* of the best one's, sufficient */

static uint64_t
count_tiles(const GArray *runs)
{
    uint64_t tiles = 0;

    for (guint i = 0; i < runs->len; i++)
        tiles += g_array_index(runs, LhTileRun, i).tiles;
    return tiles;
}

static double
wave_efficiency(uint64_t tiles, uint64_t sms)
{
    const double waves = (double)tiles / (double)sms;

    return waves / ceil(waves);
}

/* The smallest number of parts that is nearly as efficient as the best one. */
static uint64_t
split_parts(uint64_t tiles, uint64_t blocks, uint64_t sms)
{
    const uint64_t most = MIN(blocks, sms);
    double best = 0;
    uint64_t parts = 1;

    if ((double)tiles >= SPLIT_BUSY * (double)sms || blocks <= SPLIT_BLOCKS)
        return 1;
    for (uint64_t s = 1; s <= most; s++)
        best = fmax(best, wave_efficiency(tiles * s, sms));
    while (wave_efficiency(tiles * parts, sms) < SPLIT_EFFICIENCY * best)
        parts++;
    return parts;
}

static void
add_serving(const LhAttentionRow *row, const LhKernelArgs *args, uint64_t parts,
            LhAttentionLoad *load)
{
    const double tokens = (double)args->nk * args->batch;
    const uint64_t width = (uint64_t)args->groups * args->head_dim;
    const double queries = (double)args->nq * args->batch * args->heads * args->head_dim;

    load->append_bytes = 2 * tokens * (double)width * ELEMENT_BYTES;
    load->query_bytes = queries * ELEMENT_BYTES;
    load->append_elements = tokens * (double)MIN(width, LH_APPEND_ELEMENTS);
    if (parts > 1)
        load->partial_bytes = (double)parts * load->query_bytes;
    if (row->serving.l2_bytes > 0)
        load->spilled_bytes =
            fmax(load->append_bytes + 2 * load->query_bytes - (double)row->serving.l2_bytes / 2, 0);
}

/* Per pair of a block 4 d flops forward, 10 d backward. */
static double
block_flops(const LhAttentionRow *row, const LhKernelArgs *args)
{
    return (row->direction == LH_ATTENTION_BWD ? 10.0 : 4.0) * (double)row->tiling.rows *
           (double)row->tiling.columns * args->head_dim;
}

LhAttentionLoad
lh_attention_load(const LhAttentionRow *row, uint64_t sms, const LhKernelArgs *args,
                  uint32_t q_parts, uint32_t k_parts, bool serving)
{
    g_autoptr(GArray) runs = lh_tiles_runs(&row->tiling, args, q_parts, k_parts);
    const uint64_t copies = lh_tiles_copies(&row->tiling, args);
    uint64_t parts = 1;
    LhAttentionLoad load = { 0 };
    LhTileTimes times;

    if (serving && row->serving.split_keys)
        parts = split_parts(count_tiles(runs) * copies,
                            (args->nk + row->tiling.columns - 1) / row->tiling.columns, sms);
    if (parts > 1) {
        GArray *split = lh_tiles_split(runs, parts);

        g_array_unref(runs);
        runs = split;
    }
    times = lh_tiles_makespan(&row->tiling, runs, copies, sms);
    load.flops = times.makespan_blocks * block_flops(row, args) * (double)sms;
    if (times.makespan_blocks > 0)
        load.busy = fmin(times.work_blocks / (times.makespan_blocks * (double)sms), 1);
    if (serving)
        add_serving(row, args, parts, &load);
    return load;
}

/* 1 / rate(t) = 1 / R0 + (1 / Rs - 1 / R0) t / (t + knee), for a kernel of t = flops / rate(t). */
double
lh_attention_tiles_seconds(const LhAttentionRow *row, double flops, bool cool)
{
    const double first = flops / row->rate;
    const double more = flops / row->sustained_rate - first;
    const double knee = (double)row->knee_ps / (double)LH_PS_PER_S;
    const double half = (first + more - knee) / 2;

    return cool ? half + sqrt(half * half + first * knee) : flops / row->sustained_rate;
}

static double
at(double bytes, double bytes_per_s)
{
    return bytes_per_s > 0 ? bytes / bytes_per_s : 0;
}

double
lh_attention_seconds(const LhAttentionRow *row, const LhAttentionLoad *load, bool serving)
{
    const LhServing *s = &row->serving;
    const double token_s = (double)s->append_token_ps / (double)LH_PS_PER_S;

    if (!serving)
        return lh_attention_tiles_seconds(row, load->flops, false);
    return (double)s->launch_ps / (double)LH_PS_PER_S +
           lh_attention_tiles_seconds(row, load->flops, true) + at(load->append_bytes, s->append) +
           at(load->query_bytes, s->queries) +
           load->append_elements * token_s / LH_APPEND_ELEMENTS +
           at(load->partial_bytes, s->partials) + at(load->spilled_bytes, s->beyond_l2);
}

double
lh_attention_quantile(const LhAttentionRow *row, double seconds)
{
    const GArray *quantiles = row->residuals.quantiles;

    for (guint i = 0; quantiles != NULL && i < quantiles->len; i++) {
        const LhAttentionQuantile *q = &g_array_index(quantiles, LhAttentionQuantile, i);

        if (q->until_ps == 0 || seconds * (double)LH_PS_PER_S < (double)q->until_ps)
            return q->error;
    }
    return 0;
}

static bool
has_mask(const LhAttentionRow *row, bool causal)
{
    for (guint i = 0; i < row->masks->len; i++) {
        const char *mask = g_ptr_array_index(row->masks, i);

        if (strcmp(mask, causal ? "causal" : "full") == 0)
            return true;
    }
    return false;
}

const LhAttentionRow *
lh_attention_find(const LhDevice *device, const char *library, bool bwd, uint32_t head_dim,
                  bool causal)
{
    for (guint i = 0; device->attention != NULL && i < device->attention->len; i++) {
        const LhAttentionRow *row = &g_array_index(device->attention, LhAttentionRow, i);

        if ((library == NULL || strcmp(row->library, library) == 0) &&
            (row->direction == LH_ATTENTION_BWD) == bwd && row->head_dim == head_dim &&
            has_mask(row, causal))
            return row;
    }
    return NULL;
}

bool
lh_attention_has(const LhDevice *device, const char *library)
{
    for (guint i = 0; device->attention != NULL && i < device->attention->len; i++) {
        const LhAttentionRow *row = &g_array_index(device->attention, LhAttentionRow, i);

        if (strcmp(row->library, library) == 0)
            return true;
    }
    return false;
}
