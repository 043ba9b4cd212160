/* SPDX-License-Identifier: Apache-2.0 */
#include "step/parameter_counts.h"

#include "step/lora.h"
#include "step/step_private.h"

static uint64_t
attention_matrices(const LhStepPlan *plan, uint32_t layer)
{
    const LhModel *m = &plan->model;
    const bool linear = plan->kinds[layer] == LH_STEP_LINEAR;
    const uint64_t q = m->num_attention_heads * m->kv_channels;
    const uint64_t kv = (linear ? m->num_attention_heads : m->num_query_groups) * m->kv_channels;

    return m->hidden_size * (2 * q + 2 * kv + (plan->gated[plan->kinds[layer]] ? q : 0));
}

/* Parameters of one MLP, or expert, of this width. */
static uint64_t
mlp_matrices(const LhModel *m, uint64_t width)
{
    return m->hidden_size * width * (m->gated_mlp ? 3 : 2);
}

/* Parameters of a layer with experts, of which @routed are routed ones. */
static uint64_t
experts_matrices(const LhModel *m, uint64_t routed)
{
    const uint64_t shared = m->weights.shared_experts;
    const uint64_t width = m->weights.shared_ffn_hidden_size > 0 ? m->weights.shared_ffn_hidden_size
                                                                 : m->ffn_hidden_size;

    return m->hidden_size * (m->num_experts - shared) +
           routed * mlp_matrices(m, m->ffn_hidden_size) + shared * mlp_matrices(m, width);
}

static void
count_mlp(const LhStepPlan *plan, uint32_t layer, LhStepParameters *p)
{
    const LhModel *m = &plan->model;
    const uint64_t dense = m->num_experts > 0 && m->weights.dense_ffn_hidden_size > 0
                               ? m->weights.dense_ffn_hidden_size
                               : m->ffn_hidden_size;

    if (m->num_experts == 0 || plan->dense[layer]) {
        p->matrices += mlp_matrices(m, dense);
        p->active += mlp_matrices(m, dense);
        return;
    }
    p->matrices += experts_matrices(m, m->num_experts - m->weights.shared_experts);
    p->active += experts_matrices(m, m->experts_per_token - m->weights.shared_experts);
}

LhStepParameters
lh_step_parameters(const LhProgram *program)
{
    const LhStepPlan *plan = program->step;
    const LhModel *m = &plan->model;
    const uint64_t norm = m->hidden_size * (m->weights.biases ? 2 : 1);
    LhStepParameters p = {
        .matrices = m->vocab_size * m->hidden_size,
        .active = m->vocab_size * m->hidden_size,
        .norms = norm,
        .embedding = m->tied_embeddings ? 0 : m->vocab_size * m->hidden_size,
    };

    for (uint32_t layer = 0; layer < plan->layers; layer++) {
        p.matrices += attention_matrices(plan, layer);
        p.active += attention_matrices(plan, layer);
        count_mlp(plan, layer, &p);
        p.norms += 2 * norm;
        p.adapters +=
            lh_step_adapter_parameters(&plan->params, plan->kinds[layer] == LH_STEP_LINEAR);
        if (plan->gated[plan->kinds[layer]])
            p.norms += m->num_attention_heads * m->kv_channels;
    }
    return p;
}

uint64_t
lh_step_tokens(const LhStepParams *p)
{
    return p->module.attention.batch * p->module.attention.seq_length * p->data_parallel *
           p->micro_batches;
}
