/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/step/setup_prefill.h"

static bool
is_prefill(const LhScenario *s)
{
    return s->step && s->pass == LH_PASS_FWD - 1;
}

bool
lh_setup_check_prefill(const LhScenario *s, GError **error)
{
    static const struct {
        const char *field, *lacks;
    } of_training[] = {
        { "checkpoint", "backward pass to recompute activations for" },
        { "recompute_modules", "backward pass to recompute activations for" },
        { "recompute_method", "backward pass to recompute activations for" },
        { "recompute_num_layers", "backward pass to recompute activations for" },
        { "pipeline_schedule", "backward pass, in which alone the orders differ" },
        { "loss", "loss" },
        { "main_params_dtype", "optimizer" },
        { "main_grads_dtype", "gradients" },
        { "exp_avg_dtype", "optimizer" },
        { "optimizer", "optimizer" },
        { "muon_num_ns_steps", "optimizer" },
        { "muon_tp_mode", "optimizer" },
        { "muon_momentum", "optimizer" },
        { "muon_nesterov", "optimizer" },
        { "muon_scale_mode", "optimizer" },
        { "muon_extra_scale_factor", "optimizer" },
        { "muon_coefficient_type", "optimizer" },
        { "lora_rank", "weights to train" },
        { "lora_targets", "weights to train" },
        { "cpu_offloading_num_layers", "backward pass to keep activations for" },
        { "optimizer_cpu_offload", "optimizer" },
        { "optimizer_offload_fraction", "optimizer" },
        { "overlap_cpu_optimizer_d2h_h2d", "optimizer" },
        { "offload_param", "optimizer, with which alone weights are offloaded" },
        { "document_lengths", "packed documents, only one prompt in each sequence" },
        { "document_distribution", "packed documents, only one prompt in each sequence" },
    };

    for (gsize i = 0; is_prefill(s) && i < G_N_ELEMENTS(of_training); i++) {
        if (lh_scenario_has(s, of_training[i].field))
            return lh_scenario_error(s, of_training[i].field, error,
                                     "--pass fwd has no %s: leave it out", of_training[i].lacks);
    }
    if (is_prefill(s) && (s->shard == LH_SHARD_ZERO1 || s->shard == LH_SHARD_ZERO2))
        return lh_scenario_error(s, "shard", error,
                                 "--pass fwd has no gradients and optimizer states to share; "
                                 "allowed: ddp, fsdp");
    return true;
}

LhShard
lh_setup_step_shard(const LhScenario *s, const LhFramework *framework)
{
    if (s->shard >= 0)
        return (LhShard)s->shard;
    return is_prefill(s) ? LH_SHARD_DDP : (LhShard)framework->states_shard;
}

void
lh_setup_prefill(LhStepParams *p)
{
    p->loss = LH_LOSS_EAGER;
    p->loss_chunk_rows = 0;
    p->recompute = (LhRecompute){ 0 };
}
