/*
 * What a training step comes to: its time, and what of the machine's peak that is.
 */
#include "plan/step_plan.h"

#include "base/error.h"
#include "plan/apart.h"
#include "plan/ends.h"

/* ---- flops of the mathematics ---- */

/* Parameters that products multiply for a token: all but those of the input embedding, and of
 * experts that it does not go to. */
static double
multiplied_parameters(const LhModel *model)
{
    const double embedding = (double)model->vocab_size * (double)model->hidden_size;

    return (double)lh_model_active_parameters(model) - (model->tied_embeddings ? 0 : embedding);
}

/* Attention's forward flops of one sequence in a layer: two products of d for each pair; of linear
 * attention two of d^2 for each token. */
static double
attention_flops(const LhStepParams *p, const LhLayerRun *run)
{
    const LhModel *m = p->model;
    const double heads = (double)m->num_attention_heads, d = (double)m->kv_channels;
    const uint64_t n = p->module.attention.seq_length;
    const LhSegment all = { .stride = 1, .count = n };
    LhMaskRule mask = p->module.mask;

    if (run->kind == LH_LAYER_LINEAR)
        return 4 * heads * d * d * (double)n;
    if (p->window > 0 && !run->whole)
        mask.window = p->window;
    return 4 * heads * d * (double)lh_mask_pairs(&mask, all, all);
}

double
lh_step_model_flops(const LhStepParams *p, const LhModel *model)
{
    const double sequences =
        (double)p->module.attention.batch * p->data_parallel * p->micro_batches;
    double attention = 0;

    for (uint64_t i = 0; i < model->num_layers; i++)
        attention += attention_flops(p, lh_model_layer(model, i));
    return sequences * (6 * multiplied_parameters(model) * (double)p->module.attention.seq_length +
                        3 * attention);
}

/* ---- the answer ---- */

LhTime
lh_step_overhead_ps(const LhSetup *setup)
{
    const LhSetupStep *step = setup->step;

    return step->params.shard == LH_SHARD_FSDP
               ? lh_time_from_ps(step->framework->fsdp_overhead_s * (double)LH_PS_PER_S)
               : 0;
}

LhStepAnswer
lh_step_answer_of(const LhSetup *setup, const LhProgram *program, const LhSimResult *result,
                  const LhStepWatch *watch)
{
    const LhStepParams *p = &setup->step->params;
    const double ranks = (double)lh_step_ranks(p);
    const double tokens = (double)p->module.attention.batch *
                          (double)p->module.attention.seq_length * p->data_parallel *
                          p->micro_batches;
    const LhModel model = *setup->model; /* as published, not as padded */
    LhStepParams unpadded = *p;
    LhStepAnswer answer = { .ranks = (uint32_t)ranks };
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
        executed += (double)result->ranks[r].flops + (double)result->ranks[r].dense_flops;
    }
    answer.hfu = executed / answer.iteration_s / ranks / setup->device->matrix_rate;
    if (watch != NULL)
        lh_step_watch_exposed(watch, answer.exposed_s);
    answer.time_error = lh_time_error(setup, result);
    answer.fits = answer.peak_bytes <= lh_setup_memory_limit_bytes(setup, program);
    return answer;
}

bool
lh_step_answer(const LhScenario *scenario, LhStepAnswer *answer, GError **error)
{
    g_autoptr(GArray) peak_bytes = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    return lh_step_answer_of_ranks(scenario, answer, peak_bytes, error);
}

bool
lh_step_answer_of_ranks(const LhScenario *scenario, LhStepAnswer *answer, GArray *peak_bytes,
                        GError **error)
{
    g_autoptr(LhSetup) setup = lh_setup_new(scenario, error);
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhSimResult) result = NULL;

    if (setup == NULL || !lh_setup_check_one(setup, error))
        return false;
    program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), error);
    if (program == NULL)
        return false;
    result = lh_ends_simulate(setup, program, NULL, error);
    if (result == NULL)
        return false;
    *answer = lh_step_answer_of(setup, program, result, NULL);
    for (uint32_t r = 0; r < result->ranks_count; r++)
        g_array_append_val(peak_bytes, result->ranks[r].peak_bytes);
    return true;
}
