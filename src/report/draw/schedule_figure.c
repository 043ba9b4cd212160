/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks: queries go down and keys go right, in the order of tokens; strips beside the rows and
 * above the columns have the colour of the rank that holds the tokens. A segment is drawn in as
 * many pieces as show the edge of the mask. Striped segments, whose tokens alternate, are drawn of
 * a short sequence, token by token.
 */
#include "report/draw/schedule_figure.h"

#include "base/error.h"
#include "report/draw/map_figure.h"
#include "scenario/step/setup_step.h"
#include "verify/verify.h"

#define PIECES_AIM 32    /* along an edge, if segments are fewer */
#define STRIPED_TOKENS 4 /* ranks per group */
#define GROUP_PANELS 4   /* tensor, context, data, pipeline */

static bool
refuse(GError **error, const char *name, const char *why)
{
    g_set_error(error, LH_ERROR, LH_ERROR_NO, "show: no figure of %s: %s", name, why);
    return false;
}

/* --- blocks of attention ------------------------------------------------------------------------
 */

typedef struct {
    LhMap *map;
    const LhProgram *program;
    LhPlacement placement; /* of one data-parallel group */
    uint32_t pieces;       /* of a segment */
} Blocks;

/* Piece @piece of a segment: a contiguous part, or one token of a striped segment. */
static LhSegment
piece_of(const Blocks *b, uint32_t segment, uint32_t piece)
{
    LhSegment s = lh_placement_segment(&b->placement, segment);

    s.count /= b->pieces;
    s.start += piece * s.count * s.stride;
    return s;
}

/* Position of that piece in the figure, in pieces from the first token. */
static double
position_of(LhSegment piece)
{
    const uint64_t position = piece.start / piece.count;

    return (double)position;
}

static void
add_block(const Blocks *b, const LhAttentionBlock *block)
{
    bool labelled = false;

    for (uint32_t i = 0; i < b->pieces; i++) {
        for (uint32_t k = 0; k < b->pieces; k++) {
            const LhSegment query = piece_of(b, block->query, i);
            const LhSegment key = piece_of(b, block->key, k);
            const double x = position_of(key), y = position_of(query);
            const LhMapBox box = { block->slice, block->rank, x, y, 1, 1 };
            const LhMapLabel label = { block->slice, block->step, x, y };

            if (lh_mask_pairs(&b->program->params.mask, query, key) == 0)
                continue;
            g_array_append_val(b->map->boxes, box);
            if (!labelled || query.count == 1)
                g_array_append_val(b->map->labels, label);
            labelled = true;
        }
    }
}

static void
add_home(const Blocks *b, uint32_t panel, uint32_t rank, double at)
{
    const double strip = LH_MAP_STRIP, thickness = LH_MAP_STRIP_THICKNESS;
    const LhMapBox boxes[] = { { panel, rank, at, strip, 1, thickness },
                               { panel, rank, strip, at, thickness, 1 } };

    g_array_append_vals(b->map->boxes, boxes, G_N_ELEMENTS(boxes));
}

/* If each rank has all tokens of its heads, no rank is the home of a token. */
static void
add_rank_strips(const Blocks *b, uint32_t panel)
{
    const LhPlacement *p = &b->placement;

    for (uint32_t rank = 0; rank < p->ranks && p->kind != LH_PLACE_HEADS; rank++) {
        for (uint32_t part = 0; part < lh_placement_parts(p); part++) {
            const uint32_t segment = lh_placement_segment_id(p, rank, part);

            for (uint32_t piece = 0; piece < b->pieces; piece++)
                add_home(b, panel, rank, position_of(piece_of(b, segment, piece)));
        }
    }
}

/* The largest number of equal pieces per segment for about PIECES_AIM pieces of all segments. */
static uint32_t
pieces_of(const LhPlacement *placement)
{
    const uint32_t segments = lh_placement_segments(placement);
    const uint64_t tokens = lh_placement_segment(placement, 0).count;
    uint32_t pieces =
        placement->kind == LH_PLACE_STRIPED ? (uint32_t)tokens : MAX(PIECES_AIM / segments, 1);

    while (tokens % pieces != 0)
        pieces--;
    return pieces;
}

/* Adds the blocks of the group's ranks and the first slices. */
static void
add_blocks(const Blocks *b, const GArray *blocks)
{
    for (guint i = 0; i < blocks->len; i++) {
        const LhAttentionBlock *block = &g_array_index(blocks, LhAttentionBlock, i);

        if (block->rank < b->map->colours && block->slice < b->map->panels)
            add_block(b, block);
    }
    for (uint32_t panel = 0; panel < b->map->panels; panel++)
        add_rank_strips(b, panel);
}

static bool
draw_blocks(const LhProgram *program, const GArray *blocks, LhFigureTo to, GError **error)
{
    const uint32_t slices = MAX(program->head_slices, 1);
    g_autoptr(GArray) boxes = g_array_new(FALSE, FALSE, sizeof(LhMapBox));
    g_autoptr(GArray) labels = g_array_new(FALSE, FALSE, sizeof(LhMapLabel));
    LhMap map = { .across = "keys",
                  .down = "queries",
                  .colour_word = "rank",
                  .colours = program->params.ranks,
                  .panels = MIN(slices, LH_SCHEDULE_FIGURE_SLICES_MAX),
                  .per_row = 4,
                  .boxes = boxes,
                  .labels = labels };
    Blocks b = { .map = &map, .program = program, .placement = program->placement };
    g_auto(GStrv) titles = lh_map_slice_titles(map.panels);
    g_autofree char *title =
        g_strdup_printf("%s, forward: which rank computes which block of attention", program->name);
    g_autofree char *tokens = NULL;
    g_autofree char *below = NULL;

    b.pieces = pieces_of(&b.placement);
    map.width = map.height = lh_placement_segments(&b.placement) * b.pieces;
    map.panel_titles = titles;
    add_blocks(&b, blocks);
    tokens = lh_format_count(b.placement.seq_length / map.width);
    below = g_strdup_printf("%s token%s a square; edges: the rank that holds the tokens%s%s",
                            tokens, b.placement.seq_length == map.width ? "" : "s",
                            lh_map_has_labels(&map) ? "; numbers: steps" : "",
                            program->params.attention.linear ? "; other pairs go by states"
                            : map.panels < slices            ? "; further slices are not shown"
                                                             : "");
    map.title = title;
    map.below = below;
    return lh_map_draw(&map, to, error);
}

/* The program drawn: the forward pass of one data-parallel group. Caller frees. */
static LhProgram *
forward_program(const LhSetup *setup, const LhSchedule *schedule, GError **error)
{
    LhSetup one = *setup;

    one.params.data_parallel_size = 1;
    one.params.pass = LH_PASS_FWD;
    one.params.keep_saved = false;
    if (schedule->placement == LH_PLACE_STRIPED) {
        if (!lh_mask_is_plain(&one.params.mask)) {
            refuse(error, schedule->name,
                   "striped tokens are drawn one by one, under a causal or full mask only");
            return NULL;
        }
        one.params.attention.seq_length = (uint64_t)STRIPED_TOKENS * one.params.ranks;
    }
    return lh_setup_program(&one, schedule, error);
}

static bool
draw_schedule(const LhSetup *setup, const LhProgram *program, LhFigureTo to, GError **error)
{
    g_autoptr(GArray) blocks = g_array_new(FALSE, FALSE, sizeof(LhAttentionBlock));
    g_autoptr(LhProgram) made = NULL;
    g_autoptr(LhVerdict) verdict = NULL;

    if (setup->program == NULL) {
        made = forward_program(setup, g_ptr_array_index(setup->schedules, 0), error);
        if (made == NULL)
            return false;
        program = made;
    }
    if (program->params.ranks > LH_SCHEDULE_FIGURE_RANKS_MAX)
        return refuse(error, program->name,
                      "it has more than " G_STRINGIFY(LH_SCHEDULE_FIGURE_RANKS_MAX) " ranks");
    verdict = lh_verify_blocks(program, blocks);
    if (verdict->findings_total > 0)
        return refuse(error, program->name, g_array_index(verdict->findings, LhFinding, 0).message);
    if (blocks->len == 0)
        return refuse(error, program->name, "it has no blocks of softmax attention");
    return draw_blocks(program, blocks, to, error);
}

/* --- groups of a step ---------------------------------------------------------------------------
 */

/* A kind of parallelism: ranks that differ in this coordinate alone form a group. */
typedef struct {
    const char *name;
    uint32_t size;
    uint64_t stride; /* distance of neighbours in a group */
} Dimension;

/* Groups are numbered by their lowest ranks; colours repeat. */
static uint32_t
group_of(const Dimension *d, uint64_t rank)
{
    return (uint32_t)(rank / (d->stride * d->size) * d->stride + rank % d->stride);
}

static void
add_group_panel(LhMap *map, const Dimension *d, uint32_t panel, uint64_t ranks)
{
    for (uint64_t rank = 0; rank < ranks; rank++) {
        const uint64_t column = rank % map->width, row = rank / map->width;
        const uint32_t group = group_of(d, rank);
        const LhMapBox box = { .panel = panel,
                               .colour = group % map->colours,
                               .x = (double)column,
                               .y = (double)row,
                               .width = 1,
                               .height = 1 };
        const LhMapLabel label = { panel, group, box.x, box.y };

        g_array_append_val(map->boxes, box);
        g_array_append_val(map->labels, label);
    }
}

static bool
draw_groups(const LhSetup *setup, const LhProgram *program, LhFigureTo to, GError **error)
{
    const LhStepParams *p = lh_step_params(program);
    const uint64_t ranks = lh_step_ranks(p);
    const uint64_t context = p->tensor_parallel, data = context * p->module.ranks;
    const Dimension dimensions[GROUP_PANELS] = {
        { "tensor parallel", p->tensor_parallel, 1 },
        { "context parallel", p->module.ranks, context },
        { "data parallel", p->data_parallel, data },
        { "pipeline parallel", lh_step_stages(p), data * p->data_parallel },
    };
    g_autoptr(GArray) boxes = g_array_new(FALSE, FALSE, sizeof(LhMapBox));
    g_autoptr(GArray) labels = g_array_new(FALSE, FALSE, sizeof(LhMapLabel));
    char *titles[GROUP_PANELS] = { NULL };
    LhMap map = { .title = "Which GPUs form a group of each kind of parallelism",
                  .below = "equal numbers and colours of a panel: one group",
                  .across = "GPU of the node",
                  .down = "nodes",
                  .colours = 8,
                  .per_row = 2,
                  .width = (uint32_t)MIN(setup->topology->gpus_per_node, ranks),
                  .panel_titles = titles,
                  .boxes = boxes,
                  .labels = labels };
    bool ok;

    map.height = (uint32_t)((ranks + map.width - 1) / map.width);
    for (guint i = 0; i < GROUP_PANELS; i++) {
        if (dimensions[i].size < 2)
            continue;
        titles[map.panels] =
            g_strdup_printf("%s, %u ranks a group", dimensions[i].name, dimensions[i].size);
        add_group_panel(&map, &dimensions[i], map.panels++, ranks);
    }
    ok = map.panels > 0 ? lh_map_draw(&map, to, error)
                        : refuse(error, program->name, "a step of one GPU has no groups");
    for (guint i = 0; i < map.panels; i++)
        g_free(titles[i]);
    return ok;
}

bool
lh_schedule_figure_draw(const LhSetup *setup, const LhProgram *program, LhFigureTo to,
                        GError **error)
{
    return program->step != NULL ? draw_groups(setup, program, to, error)
                                 : draw_schedule(setup, program, to, error);
}
