/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop takes the rank's rows tile by tile through some rows of a table. A tile is a run of
 * consecutive parts: every role outside attention is cut into so many parts that all tiles are
 * whole numbers of them. Roles of the loop itself (graph.h, LhStepTiling) exist for one tile at a
 * time; the others exist for all rows, and a tile reads or writes its parts.
 *
 * Tiles are of equal size. Numbers of tiles are rounded up to the next one for which that is
 * possible, so a tile has at most as many rows as were asked for.
 */
#include "step/memory/tiles.h"

#include "step/table_rows.h"

#include <string.h>

#define CHUNK_ROWS 1024
#define TILE_OF_LOSS_BYTES (UINT64_C(1) << 30)

static uint64_t
common_divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Number of cuts of each of @parts parts, with which @tiles tiles are whole numbers of parts. */
static uint64_t
cuts_for(uint64_t tiles, uint64_t parts)
{
    return tiles / common_divisor(tiles, parts);
}

/* Smallest possible number of tiles of at most @tile_rows rows. Each of @parts parts has equally
 * many tokens of every sequence, and each cut, too. */
static uint64_t
tiles_of(const LhStepPlan *plan, uint64_t parts, uint64_t tile_rows)
{
    const uint64_t tokens = plan->rows / parts / plan->params.module.attention.batch;
    uint64_t tiles = MIN((plan->rows + tile_rows - 1) / tile_rows, parts * tokens);

    while (tokens % cuts_for(tiles, parts) != 0)
        tiles++;
    return tiles;
}

static uint64_t
chunk_rows(const LhStepPlan *plan)
{
    const uint64_t vocabulary = lh_step_vocabulary(plan), hidden = plan->model.hidden_size;
    uint64_t rows = 1;

    if (!lh_step_loss_in_chunks(&plan->params))
        return 0;
    if (plan->params.loss_chunk_rows > 0)
        return plan->params.loss_chunk_rows;
    switch (plan->params.loss) {
    case LH_LOSS_TILED:
        return MAX(TILE_OF_LOSS_BYTES / (vocabulary * lh_dtype_bytes(LH_DTYPE_FP32)), 1);
    case LH_LOSS_FUSED_LINEAR:
        while (rows * ((vocabulary + hidden - 1) / hidden) < plan->rows)
            rows *= 2;
        return rows;
    default:
        return CHUNK_ROWS;
    }
}

void
lh_step_cut_tiles(LhStepPlan *plan)
{
    const uint64_t parts = (uint64_t)plan->segments * plan->params.tensor_parallel;
    const uint64_t tile_rows[LH_STEP_TILINGS] = {
        [LH_STEP_TILES_OF_LOSS] = chunk_rows(plan),
        [LH_STEP_TILES_OF_MLP] = plan->params.mlp_tile_rows,
    };
    uint64_t cuts = 1;

    for (unsigned i = 0; i < LH_STEP_TILINGS; i++) {
        uint64_t own;

        if (tile_rows[i] == 0)
            continue;
        plan->tiles[i] = (uint32_t)tiles_of(plan, parts, tile_rows[i]);
        own = cuts_for(plan->tiles[i], parts);
        cuts = cuts / common_divisor(cuts, own) * own;
    }
    plan->cuts = (uint32_t)cuts;
}

bool
lh_step_begins_loop(const LhStepRecorder *r, const LhStepNode *node)
{
    return r->loop.tiling == LH_STEP_NO_TILES &&
           lh_step_tiles(r->plan, (LhStepTiling)node->tiling) > 0;
}

/* Forgets the roles that exist for one tile only. */
static void
forget_tile(LhStepRecorder *r, LhStepTiling tiling, uint32_t layer)
{
    for (unsigned role = 0; role < LH_STEP_ROLES; role++) {
        if (lh_step_rows((LhStepRole)role).tiling == tiling)
            r->roles[layer][role] = LH_STEP_NONE;
    }
}

void
lh_step_run_tiles(LhStepRecorder *r, const LhStepNode *table, const LhStepNode *node,
                  uint32_t layer)
{
    const LhStepTiling tiling = (LhStepTiling)node->tiling;
    const uint32_t tiles = lh_step_tiles(r->plan, tiling);
    const uint8_t phase = r->phase;

    r->loop = (LhStepLoop){ .tiling = tiling, .first_tensor = r->list->tensors->len };
    for (r->loop.tile = 0; r->loop.tile < tiles; r->loop.tile++) {
        r->phase = phase;
        r->loop.forgot = false;
        forget_tile(r, tiling, layer);
        memset(r->written, 0, sizeof(r->written));
        for (const LhStepNode *row = table; row->does != LH_STEP_END; row++) {
            if (row->tiling == tiling)
                lh_step_run_row(r, table, row, layer);
        }
    }
    forget_tile(r, tiling, layer);
    r->loop = (LhStepLoop){ .tiling = LH_STEP_NO_TILES };
}

LhStepUse
lh_step_use_of_tile(const LhStepRecorder *r, LhStepRole role, LhStepUse use)
{
    if (r->loop.tiling == LH_STEP_NO_TILES || lh_step_rows(role).tiling == r->loop.tiling)
        return use;
    use.count /= lh_step_tiles(r->plan, r->loop.tiling);
    use.part += r->loop.tile * use.count;
    return use;
}

bool
lh_step_made_in_loop(LhStepRecorder *r, LhStepRole role, uint32_t layer)
{
    const uint32_t tensor = *lh_step_role_place(r, role, layer);

    return r->loop.tiling != LH_STEP_NO_TILES && tensor != LH_STEP_NONE &&
           lh_step_rows(role).tiling != r->loop.tiling && tensor >= r->loop.first_tensor;
}
