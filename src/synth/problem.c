/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks have equal size and consist of whole rank segments. */
#include "synth/problem.h"

#include "base/error.h"
#include "program/holding.h"
#include "sched/common/pass.h"
#include "sim/cost/cost.h"

#define CHUNKS_MAX 1024U
#define BLOCKS_MAX (1U << 17)

LhSynthPlaces
lh_synth_places(const LhSetup *setup)
{
    const LhNetwork *n = &setup->network;

    if (n->ranks <= n->gpus_per_node)
        return (LhSynthPlaces){ n->ranks, 1 };
    return (LhSynthPlaces){ n->ranks / n->gpus_per_node, n->gpus_per_node };
}

/* --- scenarios without synthesis
 * ---------------------------------------------------------------- */

static bool
refuse(GError **error, const char *reason)
{
    g_set_error(error, LH_ERROR, LH_ERROR_NO, "%s", reason);
    return false;
}

static bool
check_kind(const LhSetup *setup, GError **error)
{
    if (setup->step != NULL)
        return refuse(
            error,
            "synthesis supports one attention module, not a whole training step: leave out --step");
    if (setup->params.attention.linear)
        return refuse(error, "synthesis supports softmax attention, not linear attention");
    if (setup->params.pass == LH_PASS_BWD)
        return refuse(
            error,
            "synthesis supports both passes or the forward pass alone: leave out --pass bwd");
    if (setup->params.keep_saved || setup->params.data_parallel_size > 1)
        return refuse(error,
                      "synthesis supports one group of ranks: leave out --data-parallel-size");
    if (setup->cost != LH_COST_DEVICE)
        return refuse(error,
                      "with free communication there is nothing to search: leave out --cost");
    return true;
}

bool
lh_synth_check(const LhSetup *setup, GError **error)
{
    const LhNetwork *n = &setup->network;
    const LhSynthPlaces at = lh_synth_places(setup);
    const LhAttention *a = &setup->params.attention;

    if (!check_kind(setup, error))
        return false;
    if (n->ranks < 2)
        return refuse(error, "a single rank has nothing to exchange: use more ranks");
    if (n->ranks % at.places != 0 || n->ranks != at.places * at.gpus) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "synthesis needs whole nodes: %u ranks do not fill nodes of %u GPUs", n->ranks,
                    n->gpus_per_node);
        return false;
    }
    if (at.places > LH_SYNTH_PLACES_MAX) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "synthesis supports at most %u nodes, or GPUs of one node; this is %u",
                    LH_SYNTH_PLACES_MAX, at.places);
        return false;
    }
    if (a->heads % at.gpus != 0 || a->groups % at.gpus != 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "the GPUs of a node share the heads: %u heads in %u groups do not divide among "
                    "%u of them",
                    a->heads, a->groups, at.gpus);
        return false;
    }
    if (a->seq_length % n->ranks != 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "every rank needs equally many tokens: %" G_GUINT64_FORMAT
                    " do not divide among %u ranks",
                    a->seq_length, n->ranks);
        return false;
    }
    return true;
}

/* --- the program without its ops ----------------------------------------------------------------
 */

/* The largest number of slices of k and v that divides both the groups and the slices of q; 0:
 * none that the GPUs can share. */
static uint32_t
count_kv_slices(const LhAttention *a, uint32_t slices, uint32_t gpus)
{
    uint32_t kv = MIN(a->groups, slices);

    while (slices % kv != 0 || a->groups % kv != 0)
        kv--;
    return kv % gpus == 0 ? kv : 0;
}

static LhProgram *
new_form(const LhSetup *setup, LhSynthGrain grain, LhSynthPlaces at)
{
    const LhAttention *a = &setup->params.attention;
    const uint32_t slices = at.gpus * grain.slices;
    const LhPlacementKind kind = grain.zigzag ? LH_PLACE_ZIGZAG : LH_PLACE_CONTIGUOUS;
    const uint64_t segments = (uint64_t)setup->network.ranks * (grain.zigzag ? 2 : 1);
    LhPassSizes sizes;
    LhProgram *form;

    if (a->heads % slices != 0 || count_kv_slices(a, slices, at.gpus) == 0 ||
        a->seq_length % segments != 0)
        return NULL;
    form = lh_program_create("synth", &lh_explicit_generator, &setup->params, kind);
    form->params.options_count = 0;
    form->head_slices = slices;
    form->kv_slices = count_kv_slices(a, slices, at.gpus);
    if (grain.zigzag && at.gpus > 1)
        form->placement.split = at.gpus;
    sizes = lh_pass_sizes(&form->params, 0);
    lh_pass_declare(form, &sizes);
    return form;
}

/* --- placement of tokens
 * ------------------------------------------------------------------------ */

static void
seat(LhSynthProblem *p)
{
    const LhPlacement *placement = &p->form->placement;
    const uint32_t parts = lh_placement_parts(placement);

    p->segments = lh_placement_segments(placement);
    p->segment_tokens = placement->seq_length / p->segments;
    p->seats = g_new0(LhSynthSeat, p->segments);
    for (uint32_t rank = 0; rank < placement->ranks; rank++) {
        for (uint32_t part = 0; part < parts; part++) {
            const uint32_t id = lh_placement_segment_id(placement, rank, part);
            const uint64_t start = lh_placement_segment(placement, id).start;

            p->seats[start / p->segment_tokens] = (LhSynthSeat){ rank, part };
        }
    }
    p->homes = g_new(uint32_t, p->chunks);
    for (uint32_t c = 0; c < p->chunks; c++)
        p->homes[c] = p->seats[c * p->pieces].rank / p->gpus;
}

/* Bandwidth, bytes/s, of the links of @tier between a node, or one of its GPUs, and the others. */
static double
links_of(const LhNetwork *n, LhTier tier, uint32_t node)
{
    double sum = 0;

    for (uint32_t id = 0; id < n->collective_first; id++) {
        const LhLink link = lh_network_link(n, id);

        if (link.tier == tier && link.node == node && link.up)
            sum += link.bandwidth_bytes_per_s;
    }
    return sum;
}

/* Joint bandwidth of the GPUs of a place: the NICs may offer more than its routes can use. */
static double
place_rate(const LhSynthProblem *p, uint32_t place)
{
    const LhNetwork *n = &p->setup->network;
    const uint32_t other = (place + 1) % p->places;
    double routes = 0;

    for (uint32_t gpu = 0; gpu < p->gpus; gpu++) {
        LhRoute route;

        lh_network_route(n, place * p->gpus + gpu, other * p->gpus + gpu, &route);
        routes += lh_network_route_bandwidth(n, &route);
    }
    return p->gpus == 1 && n->ranks <= n->gpus_per_node
               ? routes
               : MIN(routes, links_of(n, LH_TIER_NIC, place));
}

static void
measure(LhSynthProblem *p)
{
    const LhProgram *form = p->form;
    const uint64_t all = (uint64_t)p->gpus * p->pieces; /* segments x slices in a chunk */
    const uint64_t rows = p->segment_tokens * form->params.attention.batch *
                          (form->params.attention.heads / form->head_slices);

    p->q_bytes = all * form->slots[0].part_bytes;
    p->kv_bytes = all * form->slots[1].part_bytes;
    p->result_bytes = p->q_bytes + all * rows * sizeof(float);
    p->do_bytes = p->q_bytes + 2 * all * rows * sizeof(float);
    p->byte_ps = g_new(double, p->places);
    for (uint32_t place = 0; place < p->places; place++)
        p->byte_ps[place] = (double)LH_PS_PER_S / MAX(place_rate(p, place), 1);
}

/* Finds the slowdown of places with GPUs that compute more slowly than others. */
static void
find_slow(LhSynthProblem *p)
{
    const GArray *slow = p->setup->scenario->straggler;

    p->slowdown = g_new(double, p->places);
    for (uint32_t place = 0; place < p->places; place++)
        p->slowdown[place] = 1;
    for (guint i = 0; slow != NULL && i < slow->len; i++) {
        const LhStraggler *s = &g_array_index(slow, LhStraggler, i);
        double *place = &p->slowdown[s->rank / p->gpus];

        *place = MAX(*place, s->slowdown);
    }
}

/* --- blocks -------------------------------------------------------------------------------------
 */

LhKernelArgs
lh_synth_args(const LhSynthProblem *p, uint32_t row, uint32_t rows, uint32_t column,
              uint32_t columns)
{
    const uint64_t tokens = p->pieces * p->segment_tokens;
    const LhSegment q = { row * tokens, 1, p->segment_tokens };
    const LhSegment k = { column * tokens, 1, p->segment_tokens };
    const int64_t step = (int64_t)p->segment_tokens;
    const LhMaskKind mask =
        p->form->params.mask.causal && row == column && rows == 1 && columns == 1 ? LH_MASK_CAUSAL
                                                                                  : LH_MASK_FULL;

    if (lh_synth_by_position(p))
        return lh_pass_position_args(p->form, (LhPassRows){ q, step, rows * p->pieces },
                                     (LhPassRows){ k, step, columns * p->pieces });
    return lh_pass_slice_args(
        p->form, lh_pass_block_args(&p->form->params, rows * tokens, columns * tokens, mask, 0));
}

/* Time a call occupies its GPUs; the idle part of the last wave may be used by another stream. */
static LhTime
price(LhCost *cost, const LhSynthProblem *p, LhKernelId kernel, const LhKernelArgs *args)
{
    LhOp op = { .kind = LH_OP_COMPUTE,
                .compute = { .kernel = kernel, .args = *args, .regions_count = 2 } };
    double occupancy;
    LhTime time_ps;

    op.compute.regions[0] = (LhRegion){ .slot = 0, .count = p->pieces };
    op.compute.regions[1] = (LhRegion){ .slot = 1, .count = p->pieces };
    op.compute.args.first = true;
    time_ps = lh_cost_compute(cost, p->form, &op, &occupancy);
    return lh_time_from_ps((double)time_ps * occupancy);
}

/* Forward, the faster of the two kernels counts. */
static void
price_block(LhCost *cost, const LhSynthProblem *p, LhSynthBlock *block)
{
    const LhKernelArgs args = lh_synth_args(p, block->row, 1, block->column, 1);

    block->work_ps = MIN(price(cost, p, LH_KERNEL_ID_attention_fwd, &args),
                         price(cost, p, LH_KERNEL_ID_attention_block, &args));
    if (p->backward)
        block->back_ps = price(cost, p, LH_KERNEL_ID_attention_bwd, &args);
}

static bool
find_blocks(LhSynthProblem *p)
{
    const uint64_t tokens = p->pieces * p->segment_tokens;
    g_autoptr(GArray) blocks = g_array_new(FALSE, FALSE, sizeof(LhSynthBlock));
    LhCost cost;

    lh_cost_init(&cost, p->setup->cost, p->setup->device);
    for (uint32_t i = 0; i < p->chunks && blocks->len <= BLOCKS_MAX; i++) {
        for (uint32_t j = 0; j < p->chunks; j++) {
            const LhSegment q = { i * tokens, 1, tokens }, k = { j * tokens, 1, tokens };
            LhSynthBlock block = { .row = i,
                                   .column = j,
                                   .pairs = lh_mask_pairs(&p->form->params.mask, q, k) };

            if (block.pairs == 0)
                continue;
            price_block(&cost, p, &block);
            for (; block.slice < p->grain.slices; block.slice++)
                g_array_append_val(blocks, block);
        }
    }
    lh_cost_clear(&cost);
    p->blocks_count = blocks->len;
    p->blocks = (LhSynthBlock *)(void *)g_array_free(g_steal_pointer(&blocks), FALSE);
    return p->blocks_count <= BLOCKS_MAX;
}

static void
list_blocks(const LhSynthProblem *p, bool columns, uint32_t **firsts, uint32_t **list)
{
    const uint32_t lines = p->chunks * p->grain.slices;
    uint32_t *first = g_new0(uint32_t, lines + 1);
    g_autofree uint32_t *next = NULL;

    *firsts = first;
    *list = g_new(uint32_t, MAX(p->blocks_count, 1));
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t b = 0; b < p->blocks_count; b++) {
            const LhSynthBlock *block = &p->blocks[b];
            const uint32_t line =
                (columns ? block->column : block->row) * p->grain.slices + block->slice;

            if (fill == 0)
                first[line + 1]++;
            else
                (*list)[next[line]++] = b;
        }
        if (fill != 0)
            break;
        for (uint32_t i = 0; i < lines; i++)
            first[i + 1] += first[i];
        next = g_memdup2(first, (lines + 1) * sizeof(*first));
    }
}

LhSynthProblem *
lh_synth_problem_new(const LhSetup *setup, LhSynthGrain grain)
{
    const LhSynthPlaces at = lh_synth_places(setup);
    g_autoptr(LhSynthProblem) p = g_new0(LhSynthProblem, 1);

    if (at.gpus % grain.fine != 0)
        return NULL;
    p->setup = setup;
    p->grain = grain;
    p->backward = setup->params.pass == LH_PASS_BOTH;
    p->places = at.places;
    p->gpus = at.gpus;
    p->form = new_form(setup, grain, at);
    if (p->form == NULL)
        return NULL;
    p->kv_slices = p->form->kv_slices / at.gpus;
    p->pieces = at.gpus / grain.fine;
    p->chunks = lh_placement_segments(&p->form->placement) / p->pieces;
    if (p->chunks > CHUNKS_MAX)
        return NULL;
    seat(p);
    measure(p);
    find_slow(p);
    if (!find_blocks(p))
        return NULL;
    list_blocks(p, false, &p->row_first, &p->row_blocks);
    list_blocks(p, true, &p->column_first, &p->column_blocks);
    return g_steal_pointer(&p);
}

void
lh_synth_problem_free(LhSynthProblem *p)
{
    if (p == NULL)
        return;
    lh_program_free(p->form);
    g_free(p->seats);
    g_free(p->homes);
    g_free(p->blocks);
    g_free(p->row_first);
    g_free(p->row_blocks);
    g_free(p->column_first);
    g_free(p->column_blocks);
    g_free(p->byte_ps);
    g_free(p->slowdown);
    g_free(p);
}
