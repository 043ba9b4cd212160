/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random training steps, each a function of its seed: all options of steps, schedules, models and
 * frameworks, at sizes that a test executes in an instant. Sizes mostly fit each other; the step
 * rejects what does not.
 */
#pragma once

#include "base/rng.h"
#include "model/recomputation.h"
#include "scenario/scenario.h"

#include <inttypes.h>
#include <string.h>

#define RANDOM_STEP_RANKS_MAX 16

typedef struct {
    uint64_t seed, drawn;
} Dice;

/* A number below @sides. */
static inline uint32_t
roll(Dice *dice, uint32_t sides)
{
    g_assert(sides > 0);
    return (uint32_t)(lh_rng_bits(dice->seed, 11, dice->drawn++) >> 32) % sides;
}

static inline bool
one_in(Dice *dice, uint32_t sides)
{
    return roll(dice, sides) == 0;
}

#define ROLL_OF(dice, ...)                                                                         \
    (((const uint32_t[]){                                                                          \
        __VA_ARGS__ })[roll(dice, sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))])

typedef struct {
    uint32_t tensor, context, data, stages;
    uint32_t chunks, layers, embedding, loss; /* of the pipeline */
    bool linear, softmax;                     /* kinds of layers in the model */
} RandomSizes;

static inline RandomSizes
random_sizes(Dice *dice)
{
    RandomSizes s = { 1, 1, 1, 1, .chunks = 1 };
    const uint32_t kinds = roll(dice, 6);

    do {
        s.tensor = ROLL_OF(dice, 1, 1, 2, 2, 4);
        s.context = ROLL_OF(dice, 1, 1, 2, 2, 3, 4);
        s.data = ROLL_OF(dice, 1, 1, 2, 3);
        s.stages = ROLL_OF(dice, 1, 1, 1, 2, 4);
    } while (s.tensor * s.context * s.data * s.stages > RANDOM_STEP_RANKS_MAX);
    s.linear = kinds >= 4;
    s.softmax = kinds != 4;
    if (s.stages > 1) {
        s.chunks = ROLL_OF(dice, 1, 1, 2);
        s.embedding = one_in(dice, 4);
        s.loss = one_in(dice, 4);
    }
    s.layers = s.stages * s.chunks;
    if (s.layers <= 4)
        s.layers *= ROLL_OF(dice, 1, 2, 2);
    if (s.layers >= s.embedding + s.loss + s.stages * s.chunks)
        s.layers -= s.embedding + s.loss;
    if (s.layers == 1 && s.softmax)
        s.linear = false;
    return s;
}

/* ---- the model ---- */

static inline const char *
yes(bool is)
{
    return is ? "true" : "false";
}

/* Writes one or two runs of layers: all layers, or a repeated part. */
static inline void
add_random_layers(Dice *dice, const RandomSizes *s, GString *out)
{
    const uint32_t pattern = s->layers % 2 == 0 && one_in(dice, 2) ? 2 : s->layers;
    const uint32_t runs = MIN(s->linear && s->softmax ? 2 : 1 + roll(dice, 2), pattern);
    const uint32_t first = runs == 1 ? pattern : 1 + roll(dice, pattern - 1);

    g_string_append(out, ", \"layers\": [");
    for (uint32_t i = 0; i < runs; i++) {
        const bool linear = s->linear && (i == 0 || !s->softmax);

        g_string_append_printf(
            out, "%s{\"attention\": \"%s\", \"count\": %u, \"output_gate\": %s%s}",
            i > 0 ? ", " : "", linear ? "linear" : "softmax", i == 0 ? first : pattern - first,
            yes(one_in(dice, linear ? 2 : 5)), one_in(dice, 3) ? ", \"whole_sequence\": true" : "");
    }
    g_string_append_c(out, ']');
}

static inline void
add_random_experts(Dice *dice, uint32_t tensor, GString *out)
{
    const uint32_t shared = roll(dice, 3), experts = 2 + roll(dice, 4);

    g_string_append_printf(out, ", \"num_experts\": %u, \"experts_per_token\": %u",
                           experts + shared, 1 + roll(dice, experts) + shared);
    if (shared > 0)
        g_string_append_printf(out, ", \"shared_experts\": %u", shared);
    if (one_in(dice, 2))
        g_string_append_printf(out, ", \"dense_layers\": %u, \"dense_ffn_hidden_size\": %u",
                               1 + roll(dice, 2), tensor * ROLL_OF(dice, 8, 12, 24));
}

/* Returns a longhaul.model/1 text. Caller frees. */
static inline char *
random_model(Dice *dice, const RandomSizes *s)
{
    const uint32_t heads = one_in(dice, 12) ? 3 : s->tensor * ROLL_OF(dice, 1, 2, 2, 3);
    const uint32_t groups = one_in(dice, 3) ? ROLL_OF(dice, 1, 2, s->tensor) : heads;
    GString *out = g_string_new("{\"schema\": \"longhaul.model/1\", \"name\": \"random\", "
                                "\"description\": \"x\", \"source\": \"x\"");

    g_string_append_printf(
        out,
        ", \"num_layers\": %u, \"hidden_size\": %u, \"num_attention_heads\": %u, "
        "\"num_query_groups\": %u, \"kv_channels\": %u, \"ffn_hidden_size\": %u, "
        "\"gated_mlp\": %s, \"vocab_size\": %u, \"tied_embeddings\": %s, \"biases\": %s, "
        "\"rotary_base\": %u",
        s->layers, ROLL_OF(dice, 8, 16, 24, 32, 64), heads,
        heads % groups == 0 || one_in(dice, 8) ? groups : heads,
        one_in(dice, 16) ? 5 : ROLL_OF(dice, 2, 4, 8, 16),
        s->tensor * ROLL_OF(dice, 4, 8, 12, 24, 31), yes(!one_in(dice, 3)),
        ROLL_OF(dice, 7, 16, 32, 61, 64, 200), yes(one_in(dice, 3)), yes(one_in(dice, 3)),
        ROLL_OF(dice, 0, 10, 10000, 10000));
    add_random_layers(dice, s, out);
    if (one_in(dice, 3))
        g_string_append_printf(out, ", \"sliding_window\": %u", ROLL_OF(dice, 1, 4, 7, 20));
    if (one_in(dice, 4))
        add_random_experts(dice, s->tensor, out);
    g_string_append_c(out, '}');
    return g_string_free(out, FALSE);
}

/* ---- the framework ---- */

static inline void
add_fact(GString *out, const char *name, const char *value)
{
    g_string_append_printf(
        out, "%s\"%s\": {\"value\": %s, \"provenance\": \"assumed\", \"source\": \"x\"}",
        g_str_has_suffix(out->str, "{") ? "" : ", ", name, value);
}

static inline void
add_number(GString *out, const char *name, uint32_t value)
{
    g_autofree char *text = g_strdup_printf("%u", value);

    add_fact(out, name, text);
}

static inline const char *
random_type(Dice *dice)
{
    return one_in(dice, 2) ? "\"activation\"" : "\"fp32\"";
}

/* Returns a longhaul.framework/1 text with every member that changes a step. Caller frees. */
static inline char *
random_framework(Dice *dice)
{
    GString *out = g_string_new("{\"schema\": \"longhaul.framework/1\", \"name\": \"random\", "
                                "\"source\": \"x\", \"fsdp\": {");
    /* Of their own: the rest of a seed stays as it was. */
    Dice states = { .seed = dice->seed + 1 }, kept = { .seed = dice->seed + 2 };

    add_fact(out, "unit", one_in(dice, 3) ? "\"model\"" : "\"layer\"");
    add_number(out, "prefetch", roll(dice, 3));
    add_fact(out, "reshard_after_forward", yes(one_in(dice, 2)));
    add_fact(out, "halves", yes(one_in(dice, 2)));
    add_fact(out, "gradient_reduce", random_type(dice));
    add_fact(out, "reduce_every_micro_batch", yes(one_in(dice, 2)));
    g_string_append(out, "}, \"ddp\": {");
    add_fact(out, "overlap", yes(one_in(dice, 2)));
    add_fact(out, "gradient_reduce", random_type(dice));
    add_fact(out, "bucket_copies", yes(one_in(dice, 2)));
    g_string_append(out, "}, \"states\": {");
    add_fact(out, "gradient", random_type(dice));
    add_fact(out, "master", yes(one_in(&states, 2)));
    add_fact(out, "moments", one_in(&states, 3) ? "\"8bit\"" : random_type(&states));
    add_number(out, "step_bytes_per_parameter", ROLL_OF(dice, 0, 2, 4));
    add_fact(out, "alone", random_type(&kept));
    g_string_append(out, "}, \"kernels\": {");
    add_number(out, "unfused", ROLL_OF(dice, 0, 0, 5));
    add_number(out, "norm_kept", ROLL_OF(&kept, 0, 6));
    add_number(out, "glu_kept", ROLL_OF(&kept, 0, 2, 3));
    g_string_append(out, "}, \"logits\": {");
    add_fact(out, "chunk_products", random_type(&kept));
    add_number(out, "fp32_bytes", ROLL_OF(dice, 0, 4));
    add_number(out, "gradient_bytes", ROLL_OF(dice, 0, 4));
    g_string_append(out, "}, \"tp\": {");
    add_fact(out, "overlap_gather_with_dgrad", yes(one_in(dice, 2)));
    add_fact(out, "overlap_scatter_with_wgrad", yes(one_in(dice, 2)));
    g_string_append(out, "}, \"host\": {");
    add_number(out, "memory_other_bytes", ROLL_OF(dice, 0, 4096));
    g_string_append(out, "}}");
    return g_string_free(out, FALSE);
}

/* ---- the scenario ---- */

static inline const LhSchedule *
random_schedule(Dice *dice, bool linear)
{
    uint32_t count = 0, chosen;

    while (lh_schedules[count] != NULL)
        count++;
    do
        chosen = roll(dice, count);
    while (!lh_schedule_takes(lh_schedules[chosen], linear) ||
           lh_schedules[chosen]->placement == LH_PLACE_HEADS);
    return lh_schedules[chosen];
}

static inline void
set_number(LhScenario *s, const char *field, uint64_t value)
{
    g_autofree char *text = g_strdup_printf("%" PRIu64, value);

    lh_scenario_replace(s, field, text);
}

static inline void
set_choice(Dice *dice, LhScenario *s, const char *field, const char *const *names, uint32_t count)
{
    lh_scenario_replace(s, field, names[roll(dice, count)]);
}

/* Sets one of the schedule's options, half of the time. */
static inline void
set_random_option(Dice *dice, LhScenario *s, const LhSchedule *schedule, uint32_t context)
{
    const LhProgramParams p = { .ranks = context };
    uint32_t options = 0, values = 0;
    LhOptionValue value = { 0 };
    g_autofree char *text = NULL;
    const LhOption *option;

    while (schedule->options != NULL && schedule->options[options] != NULL)
        options++;
    if (options == 0 || one_in(dice, 2))
        return;
    option = schedule->options[roll(dice, options)];
    while (lh_option_value(option, &p, values, &value))
        values++;
    if (values == 0)
        return;
    lh_option_value(option, &p, roll(dice, values), &value);
    text = lh_option_value_text(option, value);
    lh_scenario_replace(s, option->name, option->type == LH_OPTION_FLAG ? "true" : text);
}

static inline void
set_pipeline_of(Dice *dice, LhScenario *s, const RandomSizes *sizes)
{
    const uint32_t cut = sizes->layers + sizes->embedding + sizes->loss;

    set_number(s, "pipeline_model_parallel_size", sizes->stages);
    if (sizes->embedding)
        lh_scenario_replace(s, "account_for_embedding_in_pipeline_split", "true");
    if (sizes->loss)
        lh_scenario_replace(s, "account_for_loss_in_pipeline_split", "true");
    if (sizes->chunks > 1)
        set_number(s, "num_layers_per_virtual_pipeline_stage",
                   MAX(cut / sizes->stages / sizes->chunks, 1));
    else if (one_in(dice, 3))
        lh_scenario_replace(s, "pipeline_schedule", "gpipe");
}

/* Modules that the model has, or some layers of a chunk; half of the time. */
static inline void
set_recomputation(Dice *dice, LhScenario *s, const RandomSizes *sizes)
{
    const bool experts = strstr(s->model_text, "num_experts") != NULL;
    const bool dense = !experts || strstr(s->model_text, "dense_layers") != NULL;
    const uint32_t inside = strstr(s->model_text, "shared_experts") != NULL
                                ? LH_RECOMPUTE_BIT(SHARED_EXPERTS) | LH_RECOMPUTE_BIT(MOE_ACT)
                                : LH_RECOMPUTE_BIT(MOE_ACT);
    const uint32_t all = LH_RECOMPUTE_BIT(CORE_ATTN) | LH_RECOMPUTE_BIT(LAYERNORM) |
                         (dense ? LH_RECOMPUTE_BIT(MLP) : 0) |
                         (!experts          ? 0
                          : one_in(dice, 2) ? LH_RECOMPUTE_BIT(MOE)
                                            : inside);
    const uint32_t modules = all & roll(dice, 1u << LH_RECOMPUTE_MODULES);
    g_autofree char *text = lh_recompute_text(modules, ",");

    if (one_in(dice, 2))
        return;
    if (s->checkpoint == LH_CHECKPOINT_SELECTIVE && modules != 0)
        lh_scenario_replace(s, "recompute_modules", text);
    if (s->checkpoint != LH_CHECKPOINT_LAYER)
        return;
    set_choice(dice, s, "recompute_method", lh_recompute_method_names, LH_RECOMPUTE_METHODS);
    set_number(s, "recompute_num_layers",
               1 + roll(dice, MAX(sizes->layers / sizes->stages / sizes->chunks, 1)));
}

/* Options that apply to an attention module too. */
static inline void
set_attention(Dice *dice, LhScenario *s, const RandomSizes *sizes)
{
    const uint32_t per_rank = 2 * sizes->tensor * ROLL_OF(dice, 1, 2, 3, 4);

    set_choice(dice, s, "dtype", lh_dtype_names, 3);
    set_number(s, "seq_length", (uint64_t)per_rank * sizes->context * ROLL_OF(dice, 1, 1, 2));
    set_number(s, "micro_batch_size", ROLL_OF(dice, 1, 1, 2, 3));
    if (!sizes->linear && one_in(dice, 6))
        lh_scenario_replace(s, "mask", "full");
    else if (!sizes->linear && one_in(dice, 4))
        set_number(s, "window_size", ROLL_OF(dice, 0, 1, 3, 8));
    if (!sizes->softmax && one_in(dice, 2))
        lh_scenario_replace(s, "linear_decay", "0.9");
    if (one_in(dice, 8))
        set_number(s, "num_attention_heads", sizes->tensor * ROLL_OF(dice, 1, 2));
    if (one_in(dice, 8))
        set_number(s, "kv_channels", ROLL_OF(dice, 2, 4, 6));
}

/* Losses in chunks and tiled MLPs, from dice of their own: the rest of a step does not depend on
 * them. */
static inline void
set_tiles(uint64_t seed, LhScenario *s)
{
    Dice dice = { .seed = seed ^ UINT64_C(0x74696c6573) };
    const uint32_t loss = roll(&dice, 2 * LH_LOSSES);
    g_autofree char *chunks = g_strdup_printf("%s:%u", lh_loss_names[loss % LH_LOSSES],
                                              ROLL_OF(&dice, 1, 2, 3, 7, 16, 100));

    if (loss < LH_LOSSES)
        lh_scenario_replace(s, "loss", loss < LH_LOSS_CHUNKED ? lh_loss_names[loss] : chunks);
    if (one_in(&dice, 4))
        lh_scenario_replace(s, "tiled_mlp", one_in(&dice, 3) ? "auto" : "5");
}

/* Packed documents, likewise: drawn for each micro-batch, for schedules that take them. */
static inline void
set_documents(uint64_t seed, LhScenario *s, const LhSchedule *schedule, bool linear)
{
    Dice dice = { .seed = seed ^ UINT64_C(0x7061636b73) };
    static const char *const distributions[] = { "exponential:5", "lognormal:4,1.5",
                                                 "lognormal:16,0.5", "exponential:40" };

    if ((schedule->masks & LH_MASKS_DOCUMENTS) != 0 && !linear && one_in(&dice, 2))
        lh_scenario_replace(s, "document_distribution",
                            distributions[roll(&dice, G_N_ELEMENTS(distributions))]);
}

/* LoRA, likewise; MLPs of models with experts have no adapters. */
static inline void
set_lora(uint64_t seed, LhScenario *s)
{
    static const char *const targets[] = {
        "linear_qkv", "linear_proj",       "linear_qkv,linear_proj",          "linear_fc1",
        "linear_fc2", "o_proj,linear_fc1", "q_proj,k_proj,v_proj,linear_fc2", "all-linear",
    };
    Dice dice = { .seed = seed ^ UINT64_C(0x6c6f7261) };
    const bool experts = strstr(s->model_text, "num_experts") != NULL;

    if (!one_in(&dice, 4))
        return;
    set_number(s, "lora_rank", ROLL_OF(&dice, 1, 2, 3, 4, 8));
    if (experts || one_in(&dice, 2))
        lh_scenario_replace(s, "lora_targets", targets[roll(&dice, experts ? 3 : 8)]);
}

/* Optimizer states and weights in host memory, likewise. */
static inline void
set_host_states(uint64_t seed, LhScenario *s)
{
    Dice dice = { .seed = seed ^ UINT64_C(0x686f7374) };
    static const char *const shares[] = { "0.01", "0.3", "0.5", "0.9" };

    if (!one_in(&dice, 4))
        return;
    if (s->shard == LH_SHARD_FSDP && one_in(&dice, 2)) {
        lh_scenario_replace(s, "offload_param", "true");
        return;
    }
    lh_scenario_replace(s, "optimizer_cpu_offload", "true");
    if (one_in(&dice, 2))
        lh_scenario_replace(s, "optimizer_offload_fraction",
                            shares[roll(&dice, G_N_ELEMENTS(shares))]);
    if (one_in(&dice, 2))
        lh_scenario_replace(s, "overlap_cpu_optimizer_d2h_h2d", "true");
}

/* Muon, likewise; not with LoRA, fp16 or offload of
 * the optimizer. */
static inline void
set_muon(uint64_t seed, LhScenario *s)
{
    Dice dice = { .seed = seed ^ UINT64_C(0x6d756f6e) };

    if (!one_in(&dice, 4) || s->lora_rank > 0 || s->dtype == LH_DTYPE_FP16 ||
        lh_scenario_has(s, "optimizer_cpu_offload") || lh_scenario_has(s, "offload_param"))
        return;
    lh_scenario_replace(s, "optimizer", "muon");
    lh_scenario_replace(s, "exp_avg_dtype", "fp32"); /* the framework may say 8bit */
    set_number(s, "muon_num_ns_steps", 1 + roll(&dice, 5));
    set_choice(&dice, s, "muon_tp_mode", lh_muon_tp_mode_names, LH_MUON_TP_MODES);
    set_choice(&dice, s, "muon_scale_mode", lh_muon_scale_mode_names, LH_MUON_SCALE_MODES);
    set_choice(&dice, s, "muon_coefficient_type", lh_muon_coefficient_names, LH_MUON_COEFFICIENTS);
    if (one_in(&dice, 2))
        lh_scenario_replace(s, "muon_nesterov", "true");
}

/* Makes the step its forward pass alone. */
static inline void
set_prefill(Dice *dice, LhScenario *s)
{
    static const char *const of_training[] = { "checkpoint",
                                               "recompute_modules",
                                               "recompute_method",
                                               "recompute_num_layers",
                                               "pipeline_schedule",
                                               "loss",
                                               "document_distribution",
                                               "lora_rank",
                                               "lora_targets",
                                               "optimizer",
                                               "exp_avg_dtype",
                                               "muon_num_ns_steps",
                                               "muon_tp_mode",
                                               "muon_scale_mode",
                                               "muon_coefficient_type",
                                               "muon_nesterov",
                                               "cpu_offloading_num_layers",
                                               "optimizer_cpu_offload",
                                               "optimizer_offload_fraction",
                                               "overlap_cpu_optimizer_d2h_h2d",
                                               "offload_param" };

    lh_scenario_replace(s, "pass", "fwd");
    for (gsize i = 0; i < G_N_ELEMENTS(of_training); i++)
        lh_scenario_forget(s, of_training[i]);
    lh_scenario_replace(s, "shard", one_in(dice, 2) ? "ddp" : "fsdp");
}

/*
 * Returns the step of @seed, with inputs of the same seed; writes its framework to the path
 * @framework. Caller frees.
 */
static inline LhScenario *
random_step(uint64_t seed, const char *framework, GError **error)
{
    static const char *const ways[] = { "direct", "ring", "pairwise" };
    Dice dice = { .seed = seed };
    const RandomSizes sizes = random_sizes(&dice);
    const LhSchedule *softmax = random_schedule(&dice, false),
                     *linear = random_schedule(&dice, true);
    const LhSchedule *first = sizes.softmax ? softmax : linear;
    g_autofree char *names = g_strdup_printf(
        "{\"schema\": \"longhaul.scenario/1\", \"step\": true, \"schedule\": [\"%s\"%s%s%s]}",
        first->name, sizes.softmax && sizes.linear ? ", \"" : "",
        sizes.softmax && sizes.linear ? linear->name : "",
        sizes.softmax && sizes.linear ? "\"" : "");
    g_autofree char *ways_of_framework = random_framework(&dice);
    LhScenario *s = lh_scenario_parse("random.json", names, strlen(names), error);

    if (s == NULL || !g_file_set_contents(framework, ways_of_framework, -1, error))
        return s;
    s->model_text = random_model(&dice, &sizes);
    s->model_file = g_strdup("random.model.json");
    lh_scenario_replace(s, "framework", framework);
    lh_scenario_replace(s, "cluster", "dgx-a100-80g:2");
    set_number(s, "seed", seed);
    set_number(s, "ranks", (uint64_t)sizes.tensor * sizes.context * sizes.data * sizes.stages);
    set_number(s, "tensor_model_parallel_size", sizes.tensor);
    set_number(s, "data_parallel_size", sizes.data);
    if (sizes.stages > 1)
        set_pipeline_of(&dice, s, &sizes);
    set_number(s, "num_micro_batches", sizes.chunks > 1 ? sizes.stages : 1 + roll(&dice, 3));
    set_choice(&dice, s, "shard", lh_shard_names, LH_SHARDS);
    set_choice(&dice, s, "checkpoint", lh_checkpoint_names, LH_CHECKPOINTS);
    set_choice(&dice, s, "collectives", ways, 3);
    if (one_in(&dice, 3))
        lh_scenario_replace(s, "pad", one_in(&dice, 2) ? "heads" : "width");
    set_attention(&dice, s, &sizes);
    set_random_option(&dice, s, first, sizes.context);
    if (one_in(&dice, 3))
        lh_scenario_replace(s, "cpu_offloading_num_layers", one_in(&dice, 2) ? "1" : "all");
    set_recomputation(&dice, s, &sizes);
    set_tiles(seed, s);
    set_documents(seed, s, first, sizes.linear);
    set_lora(seed, s);
    set_host_states(seed, s);
    set_muon(seed, s);
    if (!sizes.linear && one_in(&dice, 4))
        set_prefill(&dice, s);
    return s;
}
