/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time, throughput and memory of a training step.
 */
#include "compare/step_plan.h"

#include "base/error.h"
#include "compare/error_bar.h"
#include "compare/time_range.h"
#include "model/parameters.h"
#include "scenario/setup_weights.h"
#include "scenario/step/setup_step.h"
#include "step/formulas.h"
#include "step/lora.h"
#include "step/packs.h"

#include <math.h>

#define FEW_MICRO_BATCHES 2   /* from here on micro-batches are equal, if they ever are */
#define MANY_MICRO_BATCHES 16 /* fewest for which simulating a few pays off */

/* ---- model flops ---- */

/* Parameters multiplied per token: all but those of the input embedding, and of experts that the
 * token is not routed to. */
static double
multiplied_parameters(const LhModel *model)
{
    const double embedding = (double)model->vocab_size * (double)model->hidden_size;

    return (double)lh_model_active_parameters(model) - (model->tied_embeddings ? 0 : embedding);
}

/* Attention's forward flops of all sequences in a layer: two products of d per pair; with linear
 * attention two of d^2 per token. */
static double
attention_flops(const LhStepParams *p, const LhLayerRun *run)
{
    const LhModel *m = p->model;
    const double heads = (double)m->num_attention_heads, d = (double)m->kv_channels;
    const uint64_t n = p->module.attention.seq_length;
    const LhSegment all = { .stride = 1, .count = n };
    const uint32_t packs = p->packs != NULL ? p->packs_count : 1;
    const double of_pack =
        (double)p->module.attention.batch * p->data_parallel * p->micro_batches / packs;
    LhMaskRule mask = p->module.mask;
    double pairs = 0;

    if (run->kind == LH_LAYER_LINEAR)
        return 4 * heads * d * d * (double)n * packs * of_pack;
    if (p->window > 0 && !run->whole)
        mask.window = p->window;
    for (uint32_t i = 0; i < packs; i++) {
        if (p->packs != NULL)
            mask = lh_step_pack_mask(mask, p->packs[i]);
        pairs += of_pack * (double)lh_mask_pairs(&mask, all, all);
    }
    return 4 * heads * d * pairs;
}

double
lh_step_model_flops(const LhStepParams *p, const LhModel *model)
{
    const double sequences =
        (double)p->module.attention.batch * p->data_parallel * p->micro_batches;
    const double tokens = (double)p->module.attention.seq_length;
    const double logits = (double)model->vocab_size * (double)model->hidden_size;
    const double each = p->lora_rank == 0 ? 6 : 4; /* a frozen weight has no gradient */
    double attention = 0, adapters = 0;

    for (uint64_t i = 0; i < model->num_layers; i++) {
        const LhLayerRun *run = lh_model_layer(model, i);

        attention += attention_flops(p, run);
        adapters += (double)lh_step_adapter_parameters(p, run->kind == LH_LAYER_LINEAR);
    }
    if (p->forward_only)
        return sequences * (2 * (multiplied_parameters(model) - logits) * tokens + 2 * logits) +
               attention;
    return sequences * (each * multiplied_parameters(model) + 6 * adapters) * tokens +
           3 * attention;
}

/* ---- result ---- */

LhTime
lh_step_overhead_ps(const LhSetup *setup)
{
    const LhSetupStep *step = setup->step;

    /* The unexplained time of training steps does not tell that of a forward pass. */
    return step->params.shard == LH_SHARD_FSDP && !step->params.forward_only
               ? lh_time_from_ps(step->framework->fsdp_overhead_s * (double)LH_PS_PER_S)
               : 0;
}

LhStepAnswer
lh_step_answer_of(const LhSetup *setup, const LhProgram *program, const LhSimResult *result)
{
    const LhStepParams *p = &setup->step->params;
    const double ranks = (double)lh_step_ranks(p);
    const double tokens = (double)p->module.attention.batch *
                          (double)p->module.attention.seq_length * p->data_parallel *
                          p->micro_batches;
    const LhModel model = *setup->model; /* unpadded */
    LhStepParams unpadded = *p;
    LhStepAnswer answer = { .ranks = (uint32_t)ranks, .forward_only = p->forward_only };
    double executed = 0;

    unpadded.model = &model;
    answer.iteration_s =
        (double)(result->makespan_ps + lh_step_overhead_ps(setup)) / (double)LH_PS_PER_S;
    answer.tokens_per_s = tokens / answer.iteration_s;
    answer.model_flops_per_s_per_gpu =
        lh_step_model_flops(&unpadded, &model) / answer.iteration_s / ranks;
    answer.tokens_per_s_per_gpu = answer.tokens_per_s / ranks;
    answer.mfu = answer.model_flops_per_s_per_gpu / setup->device->matrix_rate;
    for (uint32_t r = 0; r < result->ranks_count; r++) {
        answer.peak_bytes = MAX(answer.peak_bytes, result->ranks[r].peak_bytes);
        answer.host_peak_bytes = MAX(answer.host_peak_bytes, result->ranks[r].host_peak_bytes);
        executed += (double)result->ranks[r].flops + (double)result->ranks[r].dense_flops;
        answer.cache_bytes = MAX(answer.cache_bytes, lh_step_state_bytes(program, r).cache);
    }
    answer.hfu = executed / answer.iteration_s / ranks / setup->device->matrix_rate;
    lh_step_exposed(result, answer.exposed_s);
    answer.time_error = lh_time_error(setup, result);
    answer.limit_bytes = lh_setup_memory_limit_bytes(setup, program);
    answer.host_memory = result->host_memory;
    answer.fits =
        answer.peak_bytes <= answer.limit_bytes && lh_host_memory_fits(&answer.host_memory);
    return answer;
}

bool
lh_step_answer(const LhScenario *scenario, LhStepAnswer *answer, GError **error)
{
    g_autoptr(GArray) peak_bytes = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    return lh_step_answer_of_ranks(scenario, answer, peak_bytes, error);
}

/* Simulates a step of @micro_batches micro-batches; 0: as many as the scenario has. */
static bool
answer_step(const LhScenario *scenario, uint64_t micro_batches, LhStepAnswer *answer,
            GArray *peak_bytes, GError **error)
{
    LhScenario own = *scenario;
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhSimResult) result = NULL;

    if (micro_batches > 0)
        own.num_micro_batches = micro_batches;
    setup = lh_setup_new(&own, error);
    if (setup == NULL || !lh_setup_check_one(setup, error))
        return false;
    program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), error);
    if (program == NULL)
        return false;
    result = lh_time_range_simulate(setup, program, NULL, error);
    if (result == NULL)
        return false;
    *answer = lh_step_answer_of(setup, program, result);
    for (uint32_t r = 0; r < result->ranks_count; r++)
        g_array_append_val(peak_bytes, result->ranks[r].peak_bytes);
    return true;
}

/* Steps of increasing numbers of micro-batches, from FEW_MICRO_BATCHES on. */
typedef struct {
    LhStepAnswer answer[3];
    GArray *peak_bytes[3];
} FewPlayed;

static uint64_t
few_peak(const FewPlayed *few, guint which, guint rank)
{
    return g_array_index(few->peak_bytes[which], uint64_t, rank);
}

/* Whether each further micro-batch added the same time and the same memory. */
static bool
are_alike(const FewPlayed *few)
{
    const double further_s = few->answer[2].iteration_s - few->answer[1].iteration_s;
    const double before_s = few->answer[1].iteration_s - few->answer[0].iteration_s;
    bool alike = fabs(further_s - before_s) < 0.5 / (double)LH_PS_PER_S;

    for (guint r = 0; r < few->peak_bytes[0]->len; r++)
        alike = alike && few_peak(few, 2, r) + few_peak(few, 0, r) == 2 * few_peak(few, 1, r);
    return alike;
}

/* Extrapolates to @further more micro-batches than the last of @few. */
static void
go_on(const FewPlayed *few, uint64_t further, LhStepAnswer *answer, GArray *peak_bytes)
{
    const LhStepAnswer *last = &few->answer[2];
    const double each_s = last->iteration_s - few->answer[1].iteration_s;
    const double played = FEW_MICRO_BATCHES + 2;
    double rate;

    *answer = *last;
    answer->iteration_s += (double)further * each_s;
    rate = (played + (double)further) / played * last->iteration_s / answer->iteration_s;
    answer->tokens_per_s *= rate;
    answer->tokens_per_s_per_gpu *= rate;
    answer->model_flops_per_s_per_gpu *= rate;
    answer->mfu *= rate;
    answer->hfu *= rate;
    g_array_set_size(peak_bytes, 0);
    for (guint r = 0; r < few->peak_bytes[2]->len; r++) {
        const uint64_t peak =
            few_peak(few, 2, r) + further * (few_peak(few, 2, r) - few_peak(few, 1, r));

        g_array_append_val(peak_bytes, peak);
        answer->peak_bytes = MAX(answer->peak_bytes, peak);
    }
    answer->fits =
        answer->peak_bytes <= answer->limit_bytes && lh_host_memory_fits(&answer->host_memory);
}

/* Predicts many micro-batches without a pipeline from three small numbers of them: after the first
 * few, each takes as long as the one before. Sets @told to false, and nothing else, if the three
 * are not in line. */
static bool
answer_by_few(const LhScenario *scenario, LhStepAnswer *answer, GArray *peak_bytes, bool *told,
              GError **error)
{
    FewPlayed few = { 0 };
    bool played = true;

    for (guint i = 0; i < G_N_ELEMENTS(few.answer); i++) {
        few.peak_bytes[i] = g_array_new(FALSE, FALSE, sizeof(uint64_t));
        played = played && answer_step(scenario, FEW_MICRO_BATCHES + i, &few.answer[i],
                                       few.peak_bytes[i], error);
    }
    *told = played && are_alike(&few);
    if (*told)
        go_on(&few, scenario->num_micro_batches - FEW_MICRO_BATCHES - 2, answer, peak_bytes);
    for (guint i = 0; i < G_N_ELEMENTS(few.answer); i++)
        g_array_unref(few.peak_bytes[i]);
    return played;
}

bool
lh_step_answer_of_ranks(const LhScenario *scenario, LhStepAnswer *answer, GArray *peak_bytes,
                        GError **error)
{
    bool told = false;

    if (scenario->num_micro_batches >= MANY_MICRO_BATCHES && scenario->document_lengths == NULL &&
        scenario->document_distribution == NULL && scenario->pipeline_model_parallel_size <= 1 &&
        !answer_by_few(scenario, answer, peak_bytes, &told, error))
        return false;
    return told || answer_step(scenario, 0, answer, peak_bytes, error);
}
