/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the program of a step: the plan, its slots, and its claimed closed forms.
 */
#include "step/step.h"

#include "step/formulas.h"
#include "step/legality.h"
#include "step/memory/host_states.h"
#include "step/memory/liveness.h"
#include "step/memory/offload.h"
#include "step/memory/tiles.h"
#include "step/muon/muon.h"
#include "step/packs.h"
#include "step/pipeline/repetition.h"
#include "step/step_private.h"

#include <inttypes.h>

/* ---- the plan ---- */

/* Units of micro-batches that are left out of a stage, to be repeated. */
typedef struct {
    uint32_t micro_batches, left_out;
} LhStepUnits;

static void
free_list(LhStepList *list)
{
    g_clear_pointer(&list->calls, g_array_unref);
    g_clear_pointer(&list->uses, g_array_unref);
    g_clear_pointer(&list->tensors, g_array_unref);
    g_clear_pointer(&list->chunks, g_array_unref);
    *list = (LhStepList){ 0 };
}

/* Frees all that has been recorded. */
static void
clear_recorded(LhStepPlan *plan)
{
    for (uint32_t i = 0; plan->stages != NULL && i < lh_step_stages(&plan->params); i++) {
        free_list(&plan->stages[i].inner);
        free_list(&plan->stages[i].last);
    }
    g_clear_pointer(&plan->args, g_array_unref);
    g_clear_pointer(&plan->args_at, g_hash_table_unref);
    g_clear_pointer(&plan->classes, g_array_unref);
}

static void
free_plan(void *data)
{
    LhStepPlan *plan = data;

    lh_step_clear_modules(plan);
    lh_step_clear_packs(plan);
    clear_recorded(plan);
    g_free(plan->stages);
    g_free(plan->kinds);
    g_free(plan->dense);
    g_free(plan->host_states);
    g_free(plan);
}

/* Copies what the builder needs of the model, without its strings. */
static LhModel
copy_model(const LhModel *model)
{
    LhModel copy = *model;

    copy.name = copy.description = copy.source = copy.sha256 = NULL;
    copy.layers = NULL;
    return copy;
}

static LhStepKind
run_kind(const LhStepParams *p, const LhLayerRun *run)
{
    if (run->kind == LH_LAYER_LINEAR)
        return LH_STEP_LINEAR;
    return p->window > 0 && !run->whole ? LH_STEP_WINDOWED : LH_STEP_SOFTMAX;
}

static void
set_layers(LhStepPlan *plan, const LhStepParams *p)
{
    plan->layers = (uint32_t)p->model->num_layers;
    plan->dense = g_new0(bool, plan->layers);
    plan->kinds = g_new0(uint8_t, plan->layers);
    for (uint32_t i = 0; i < plan->layers; i++) {
        const LhLayerRun *run = lh_model_layer(p->model, i);

        plan->dense[i] =
            p->model->num_experts == 0 || i < p->model->weights.dense_layers || run->dense;
        plan->kinds[i] = (uint8_t)run_kind(p, run);
        plan->gated[plan->kinds[i]] |= run->output_gate;
        plan->kind_layers[plan->kinds[i]]++;
    }
}

static LhStepPlan *
new_plan(const LhStepParams *p)
{
    LhStepPlan *plan = g_new0(LhStepPlan, 1);

    plan->params = *p;
    plan->model = copy_model(p->model);
    plan->params.model = &plan->model;
    plan->data_ranks = p->module.ranks * p->data_parallel;
    if (plan->data_ranks == 1)
        plan->params.shard = LH_SHARD_DDP;
    /* Alone, a rank has no shards: either all gradients leave, or none does. */
    if (plan->data_ranks == 1 &&
        (p->optimizer_offload < 1 || (p->model->tied_embeddings && lh_step_stages(p) > 1)))
        plan->params.gradients_leave = false;
    plan->stages = g_new0(LhStepStage, lh_step_stages(p));
    set_layers(plan, p);
    lh_step_take_packs(plan);
    return plan;
}

/* Sets the rows of a context-parallel rank, and checks that they divide among tensor-parallel
 * ranks. */
static bool
set_rows(LhStepPlan *plan, GError **error)
{
    const LhAttention *a = &plan->params.module.attention;
    const LhPlacement *placement = &plan->modules[plan->kinds[0]].forward->placement;
    const uint64_t ranks = plan->params.module.ranks, tokens = a->seq_length / ranks;
    g_autofree char *near = NULL;
    uint64_t cut, below;

    plan->segments = lh_placement_parts(placement);
    cut = (uint64_t)plan->segments * plan->params.tensor_parallel;
    plan->rows = a->batch * tokens;
    if (tokens % cut == 0) {
        lh_step_cut_tiles(plan);
        return true;
    }
    below = a->seq_length / (cut * ranks) * cut * ranks;
    near = lh_near_text(below, below + cut * ranks);
    return lh_program_refuse(error,
                             "the number of tokens of a context-parallel rank, %" PRIu64
                             ", must be a multiple of its segments times the tensor-parallel size, "
                             "%" PRIu64 "; nearest legal sequence lengths: %s",
                             tokens, cut, near);
}

/* ---- slots ---- */

static const char *const family_names[LH_STEP_FAMILIES] = {
    [LH_STEP_OF_WEIGHT] = "w",
    [LH_STEP_OF_WEIGHT_SHARD] = "ws",
    [LH_STEP_OF_GRADIENT] = "g",
    [LH_STEP_OF_GRADIENT_SUM] = "gr",
    [LH_STEP_OF_GRADIENT_SHARD] = "gs",
    [LH_STEP_OF_MASTER] = "master",
    [LH_STEP_OF_MOMENTS] = "moments",
    [LH_STEP_OF_SCALES] = "scales",
    [LH_STEP_OF_MOMENTUM] = "momentum",
    [LH_STEP_OF_MUON_PIECES] = "muon_pieces",
    [LH_STEP_OF_MUON_SLICE] = "muon_slice",
    [LH_STEP_OF_MUON_SLICES] = "muon_slices",
    [LH_STEP_OF_MUON_WHOLE] = "muon_x",
    [LH_STEP_OF_MUON_GRAM] = "muon_a",
    [LH_STEP_OF_MUON_POLYNOMIAL] = "muon_p",
    [LH_STEP_OF_HOST_WEIGHT] = "host.w",
    [LH_STEP_OF_HOST_GRADIENT] = "host.g",
    [LH_STEP_OF_HOST_GRADIENT_SUM] = "host.gr",
    [LH_STEP_OF_CLOCK] = "clock",
    [LH_STEP_OF_STEP_COPY] = "step_copy",
    [LH_STEP_OF_FLAT_GRADIENT] = "flat_gradient",
    [LH_STEP_OF_UNFUSED] = "unfused",
    [LH_STEP_OF_GRADIENT_COPY] = "gradient_copy",
    [LH_STEP_OF_TOKENS] = "tokens",
    [LH_STEP_OF_TARGETS] = "targets",
    [LH_STEP_OF_LOSS] = "loss",
    [LH_STEP_OF_NORM] = "grad_norm",
    [LH_STEP_OF_OTHER] = "other",
    [LH_STEP_OF_HOST_UNFUSED] = "host.unfused",
    [LH_STEP_OF_HOST_NORM] = "host.grad_norm",
};

/* "saved.x", "host.x", "w.norm1", "w.kv_lin", "w.head@3": family, role or weight, variant of the
 * layers if they differ, and stage if only one has it. */
static char *
slot_name(const LhStepClass *c)
{
    GString *name = g_string_new(NULL);

    if (c->family == LH_STEP_OF_RESULT)
        g_string_printf(name, "%s%s%s", c->shape.category == LH_CATEGORY_CACHE ? "cache." : "",
                        lh_step_role_name((LhStepRole)c->what), c->name);
    else if (c->family == LH_STEP_OF_ROLE || c->family == LH_STEP_OF_HOST)
        g_string_printf(name, "%s%s%s",
                        c->family == LH_STEP_OF_HOST ? "host."
                        : c->kept                    ? "saved."
                                                     : "",
                        lh_step_role_name((LhStepRole)c->what), c->name);
    else if (c->family >= LH_STEP_OF_STEP_COPY && c->family != LH_STEP_OF_CLOCK)
        g_string_printf(name, "%s%s%s", c->kept && !lh_step_is_on_host(c->family) ? "saved." : "",
                        family_names[c->family], c->what == LH_STEP_W_HEAD ? "_loss" : "");
    else
        g_string_printf(
            name, "%s%s.%s%s", c->on_host && !lh_step_is_on_host(c->family) ? "host." : "",
            family_names[c->family], lh_step_weight_name((LhStepWeight)c->what), c->name);
    if (c->stage != LH_STEP_NONE)
        g_string_append_printf(name, "@%u", c->stage);
    return g_string_free(name, FALSE);
}

static LhSlotRole
slot_role(const LhStepClass *c)
{
    if (c->family == LH_STEP_OF_RESULT)
        return LH_SLOT_OUTPUT;
    return c->stays ? LH_SLOT_STATE : LH_SLOT_TEMP;
}

static void
declare(LhStepPlan *plan, LhProgram *program)
{
    lh_program_add_stream(program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(program, "tensor", LH_STREAM_COMM);
    lh_program_add_stream(program, "gather", LH_STREAM_COMM);
    lh_program_add_stream(program, "scatter", LH_STREAM_COMM);
    if (lh_step_stages(&plan->params) > 1)
        lh_program_add_stream(program, "pipe", LH_STREAM_COMM);
    if (plan->params.offload_layers > 0 || plan->host_states != NULL) {
        lh_program_add_stream(program, "to_host", LH_STREAM_COMM);
        lh_program_add_stream(program, "from_host", LH_STREAM_COMM);
    }
    if (plan->host_states != NULL)
        lh_program_add_stream(program, "cpu", LH_STREAM_COMM);
    for (guint i = 0; i < plan->classes->len; i++) {
        const uint32_t ranks = (uint32_t)lh_step_stage_ranks(&plan->params);
        LhStepClass *c = &g_array_index(plan->classes, LhStepClass, i);
        const bool alone = c->stage != LH_STEP_NONE;
        g_autofree char *name = slot_name(c);

        c->slot = lh_program_add_slot(program, (LhSlotParams){
                                                   .name = name,
                                                   .kind = c->shape.kind,
                                                   .role = slot_role(c),
                                                   .dtype = c->shape.dtype,
                                                   .head_dim = c->shape.head_dim,
                                                   .on_host = c->on_host,
                                                   .category = c->shape.category,
                                                   .parts = c->shape.parts * c->instances,
                                                   .part_bytes = c->shape.part_bytes,
                                                   .first_rank = alone ? c->stage * ranks : 0,
                                                   .ranks_count = alone ? ranks : 0,
                                               });
    }
    lh_step_declare_modules(plan, program);
    program->modules = plan->programs;
    program->modules_count = plan->packs_count * 2 * LH_STEP_KINDS;
}

/* Parameters of the whole program, with all ranks and all tokens. */
static LhProgramParams
program_params(const LhStepPlan *plan)
{
    LhProgramParams p = plan->params.module;

    p.ranks = (uint32_t)lh_step_ranks(&plan->params);
    p.attention.seq_length *= plan->params.data_parallel;
    p.attention.heads = (uint32_t)plan->model.num_attention_heads;
    p.attention.groups = (uint32_t)plan->model.num_query_groups;
    p.attention.head_dim = (uint32_t)plan->model.kv_channels;
    p.attention.hidden_size = (uint32_t)plan->model.hidden_size;
    p.pass = plan->params.forward_only ? LH_PASS_FWD : LH_PASS_BOTH;
    p.mask = lh_step_pack_mask(p.mask, (LhDocumentPack){ 0 }); /* the modules have the documents */
    p.data_parallel_size = 0;
    p.options_count = 0;
    return p;
}

/* Adds a class that is held for the whole step and touched by no op; for one stage or for all. */
static void
add_held(LhStepPlan *plan, LhStepFamily family, uint32_t stage)
{
    const LhStepTensor held = { .family = (uint8_t)family,
                                .stays = true,
                                .stage = (uint16_t)(stage == LH_STEP_NONE ? 0 : stage) };
    LhStepClass c = { .family = (uint8_t)family, .stays = true, .stage = stage, .instances = 1 };

    c.shape = lh_step_tensor_shape(plan, &held);
    if (c.shape.part_bytes > 0)
        g_array_append_val(plan->classes, c);
}

/* A stage has as many copies of gradients as gradients. */
static void
add_all_held(LhStepPlan *plan)
{
    const uint32_t stages = lh_step_stages(&plan->params);

    for (uint32_t stage = 0; stage < stages && !plan->params.forward_only; stage++)
        add_held(plan, LH_STEP_OF_GRADIENT_COPY, stages == 1 ? LH_STEP_NONE : stage);
    add_held(plan, LH_STEP_OF_OTHER, LH_STEP_NONE);
}

/* Records the stages of a pipeline. @units, if not NULL: leave out what repeats, which is set for
 * each stage. */
static void
record_stages(LhStepPlan *plan, LhStepUnits *units)
{
    g_autoptr(GPtrArray) turns = lh_step_turns(&plan->params);

    for (uint32_t stage = 0; stage < turns->len; stage++) {
        const GArray *all = g_ptr_array_index(turns, stage);
        LhStepShort few;

        if (units == NULL) {
            lh_step_record_turns(plan, stage, all, plan->params.micro_batches);
            continue;
        }
        few = lh_step_shorten(&plan->params, stage, all);
        units[stage] = (LhStepUnits){ few.unit, few.left_out };
        lh_step_record_turns(plan, stage, few.turns, few.micro_batches);
        g_array_unref(few.turns);
    }
}

static void
record(LhStepPlan *plan, LhStepUnits *units)
{
    plan->args = g_array_new(FALSE, FALSE, sizeof(LhKernelArgs));
    plan->args_at = g_hash_table_new(NULL, NULL);
    plan->classes = g_array_new(FALSE, FALSE, sizeof(LhStepClass));
    if (lh_step_stages(&plan->params) == 1) {
        if (plan->params.micro_batches > 1)
            lh_step_record(plan, &plan->stages->inner, false);
        lh_step_record(plan, &plan->stages->last, true);
        return;
    }
    record_stages(plan, units);
}

/* Records, places and orders all calls. False: with @units, some stage does not repeat them. */
static bool
fill(LhStepPlan *plan, LhStepUnits *units)
{
    record(plan, units);
    lh_step_offload(plan);
    lh_step_place(plan);
    add_all_held(plan);
    lh_step_order(plan);
    for (uint32_t stage = 0; units != NULL && stage < lh_step_stages(&plan->params); stage++) {
        if (units[stage].left_out > 0 &&
            !lh_step_repeat(plan, &plan->stages[stage].last, units[stage].micro_batches,
                            units[stage].left_out))
            return false;
    }
    return true;
}

/* Sets the claimed bytes and flops, unless the attention schedule has no closed form. They are
 * equal for all ranks of a stage with the same part of the sequence, the same packs and as many
 * matrices to orthogonalise. */
static void
state_claims(LhProgram *program)
{
    const LhStepPlan *plan = program->step;
    const uint32_t ranks = lh_program_ranks(program);
    g_autofree uint64_t *bytes = g_new0(uint64_t, ranks), *flops = g_new0(uint64_t, ranks);
    const bool alike = lh_step_packs_alike(plan) && lh_muon_is_even(plan);
    bool sends = true, computes = true;

    for (uint32_t rank = 0; rank < ranks; rank++) {
        const LhStepPlace place = lh_step_place_of(plan, rank);
        const uint32_t data = alike ? place.context : place.data;
        const uint32_t first = place.stage * (uint32_t)lh_step_stage_ranks(&plan->params) +
                               data * plan->params.tensor_parallel;

        bytes[rank] = bytes[first];
        flops[rank] = flops[first];
        for (unsigned dimension = 0; rank == first && dimension < LH_DIMENSIONS; dimension++) {
            uint64_t sent = 0;

            sends &= lh_step_bytes_sent(program, (LhDimension)dimension, rank, &sent);
            bytes[rank] += sent;
        }
        if (rank == first)
            computes &= lh_step_attention_flops(program, rank, &flops[rank]);
    }
    if (sends)
        program->claimed[LH_CLAIM_BYTES_SENT] = g_steal_pointer(&bytes);
    if (computes)
        program->claimed[LH_CLAIM_FLOPS] = g_steal_pointer(&flops);
}

/* Whether pieces of weights are of equal size, so that all ranks' optimizers do the same work. */
static bool
has_equal_pieces(const LhStepPlan *plan)
{
    const uint64_t pieces = lh_step_pieces(plan);

    for (guint i = 0; i < lh_step_stages(&plan->params); i++) {
        const LhStepList *list = &plan->stages[i].last;

        for (guint k = 0; k < list->calls->len; k++) {
            const LhStepCall *call = &g_array_index(list->calls, LhStepCall, k);

            if (call->does == LH_STEP_CALL_COMPUTE &&
                lh_kernels[call->kernel]->args == LH_ARGS_OPTIMIZER &&
                g_array_index(plan->args, LhKernelArgs, call->args).optimizer.count % pieces != 0)
                return false;
        }
    }
    return true;
}

/* Symmetries. Tensor-parallel ranks are equivalent unless some share key-value heads, except for
 * the first one, which also adds the squares of what all of them hold. Data-parallel ranks are
 * equivalent if their pieces are of equal size, they orthogonalise as many matrices and have the
 * same packs. */
static LhSymmetry
symmetry_of(const LhStepPlan *plan)
{
    const LhStepParams *p = &plan->params;
    const bool shared = p->tensor_parallel > MAX(plan->model.num_query_groups, 1);

    return (LhSymmetry){
        .row = shared ? 1 : p->tensor_parallel,
        .shift = p->tensor_parallel * p->module.ranks,
        .shifts = has_equal_pieces(plan) && lh_muon_is_even(plan) && lh_step_packs_alike(plan)
                      ? p->data_parallel
                      : 1,
    };
}

LhProgram *
lh_step_new(const LhStepParams *params, GError **error)
{
    LhProgramParams whole;
    LhStepPlan *plan;
    LhProgram *program;
    g_autofree LhStepUnits *units = NULL;

    if (!lh_step_check(params, error))
        return NULL;
    plan = new_plan(params);
    if (!lh_step_make_modules(plan, error) || !set_rows(plan, error) ||
        !lh_muon_check_pieces(plan, error)) {
        free_plan(plan);
        return NULL;
    }
    lh_step_choose_host_states(plan);
    units = g_new0(LhStepUnits, lh_step_stages(params));
    if (params->unrepeated || lh_step_stages(params) == 1 || !fill(plan, units)) {
        clear_recorded(plan);
        fill(plan, NULL);
    }
    whole = program_params(plan);
    program = lh_program_create("step", &lh_step_generator, &whole, LH_PLACE_CONTIGUOUS);
    program->plan = plan;
    program->step = plan;
    program->plan_free = free_plan;
    program->symmetry = symmetry_of(plan);
    declare(plan, program);
    if (params->attention == NULL) /* else the programs' closed forms are unknown */
        state_claims(program);
    return program;
}

bool
lh_step_attention(const LhStepParams *params, LhStepAttention *attention, GError **error)
{
    LhStepPlan *plan;
    bool made;

    *attention = (LhStepAttention){ 0 };
    if (!lh_step_check(params, error))
        return false;
    plan = new_plan(params);
    made = lh_step_make_modules(plan, error);
    if (made)
        lh_step_take_attention(plan, attention);
    free_plan(plan);
    return made;
}

const LhStepParams *
lh_step_params(const LhProgram *program)
{
    return program->step != NULL ? &program->step->params : NULL;
}
