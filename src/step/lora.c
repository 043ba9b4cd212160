/* SPDX-License-Identifier: Apache-2.0 */
#include "step/lora.h"

#include "step/step_private.h"

#include <inttypes.h>
#include <string.h>

/* ---- adapters ---- */

/* Matrices of adapters. */
static const struct {
    uint32_t target; /* LhLoraTargets */
    uint32_t feature;
    LhStepWeight of; /* the matrix that is adapted */
    bool is_a;
} adapters[LH_STEP_W_LAYER - LH_STEP_W_ADAPTERS] = {
    { LH_LORA_QKV, LH_STEP_HAS_LORA_QKV, LH_STEP_W_Q, true },
    { LH_LORA_QKV, LH_STEP_HAS_LORA_QKV, LH_STEP_W_Q, false },
    { LH_LORA_QKV, LH_STEP_HAS_LORA_QKV, LH_STEP_W_KV, false },
    { LH_LORA_PROJ, LH_STEP_HAS_LORA_PROJ, LH_STEP_W_OUT, true },
    { LH_LORA_PROJ, LH_STEP_HAS_LORA_PROJ, LH_STEP_W_OUT, false },
    { LH_LORA_FC1, LH_STEP_HAS_LORA_FC1, LH_STEP_W_UP, true },
    { LH_LORA_FC1, LH_STEP_HAS_LORA_FC1, LH_STEP_W_UP, false },
    { LH_LORA_FC2, LH_STEP_HAS_LORA_FC2, LH_STEP_W_DOWN, true },
    { LH_LORA_FC2, LH_STEP_HAS_LORA_FC2, LH_STEP_W_DOWN, false },
};

static bool
is_adapter(LhStepWeight weight)
{
    return weight >= LH_STEP_W_ADAPTERS && weight < LH_STEP_W_LAYER;
}

bool
lh_step_is_a(LhStepWeight weight)
{
    return is_adapter(weight) && adapters[weight - LH_STEP_W_ADAPTERS].is_a;
}

LhStepWeight
lh_step_adapted(LhStepWeight weight)
{
    return is_adapter(weight) ? adapters[weight - LH_STEP_W_ADAPTERS].of : weight;
}

bool
lh_step_has_adapter(LhStepWeight weight, uint32_t features)
{
    return (features & adapters[weight - LH_STEP_W_ADAPTERS].feature) != 0;
}

/* Whether a matrix is cut by rows among tensor-parallel ranks; else it is by columns. */
static bool
cuts_rows(LhStepWeight weight)
{
    return weight == LH_STEP_W_OUT || weight == LH_STEP_W_DOWN;
}

LhStepMatrix
lh_step_adapter(const LhStepParams *p, LhStepWeight weight, const LhStepMatrix *base)
{
    const bool is_a = lh_step_is_a(weight);
    const bool cut = cuts_rows(lh_step_adapted(weight)) == is_a;

    return (LhStepMatrix){ .rows = is_a ? base->rows : p->lora_rank,
                           .columns = is_a ? p->lora_rank : base->columns,
                           .replicas = cut ? base->replicas : p->tensor_parallel };
}

LhStepWeight
lh_step_cut_adapter(const LhStepParams *p)
{
    return (p->lora_targets & LH_LORA_QKV) != 0    ? LH_STEP_W_Q_B
           : (p->lora_targets & LH_LORA_PROJ) != 0 ? LH_STEP_W_OUT_A
           : (p->lora_targets & LH_LORA_FC1) != 0  ? LH_STEP_W_UP_B
                                                   : LH_STEP_W_DOWN_A;
}

uint64_t
lh_step_adapter_parameters(const LhStepParams *p, bool linear)
{
    const LhModel *m = p->model;
    const uint64_t q = m->num_attention_heads * m->kv_channels;
    const uint64_t kv = (linear ? m->num_attention_heads : m->num_query_groups) * m->kv_channels;
    uint64_t ends = 0; /* A has the rows of the matrix that is adapted, B its columns */

    if (p->lora_rank == 0)
        return 0;
    if ((p->lora_targets & LH_LORA_QKV) != 0)
        ends += m->hidden_size + q + 2 * kv;
    if ((p->lora_targets & LH_LORA_PROJ) != 0)
        ends += q + m->hidden_size;
    if ((p->lora_targets & LH_LORA_FC1) != 0)
        ends += m->hidden_size + (m->gated_mlp ? 2 : 1) * m->ffn_hidden_size;
    if ((p->lora_targets & LH_LORA_FC2) != 0)
        ends += m->ffn_hidden_size + m->hidden_size;
    return p->lora_rank * ends;
}

/* ---- what is trained ---- */

bool
lh_step_is_trained(const LhStepParams *p, LhStepWeight weight)
{
    return p->lora_rank == 0 || is_adapter(weight);
}

bool
lh_step_takes(const LhStepPlan *plan, const LhStepNode *node, uint32_t layer)
{
    if ((node->when & lh_step_features(plan, layer)) != node->when)
        return false;
    for (unsigned i = 0; i < LH_STEP_OPERANDS; i++) {
        const LhStepOperand *o = &node->operands[i];

        if (o->kind == LH_STEP_GRADIENT &&
            !lh_step_is_trained(&plan->params, (LhStepWeight)o->what))
            return false;
    }
    return true;
}

uint32_t
lh_step_lora_features(const LhStepParams *p)
{
    uint32_t features = LH_STEP_HAS_FROZEN;

    if (p->lora_rank == 0)
        return LH_STEP_HAS_TRAINED;
    for (unsigned i = 0; i < G_N_ELEMENTS(adapters); i++) {
        if ((p->lora_targets & adapters[i].target) != 0)
            features |= adapters[i].feature;
    }
    return features;
}

bool
lh_step_is_read_again(const LhStepParams *p, LhStepRole role)
{
    const uint32_t target = role == LH_STEP_N1_FULL   ? LH_LORA_QKV
                            : role == LH_STEP_N2_FULL ? LH_LORA_FC1
                                                      : 0;

    return p->lora_rank == 0 || (p->lora_targets & target) != 0;
}

/* ---- names ---- */

/* Targets by name. peft adapts the parts of a joint matrix one by one. */
static const struct {
    const char *name;
    uint32_t target;
} megatron[] = { { "linear_qkv", LH_LORA_QKV },
                 { "linear_proj", LH_LORA_PROJ },
                 { "linear_fc1", LH_LORA_FC1 },
                 { "linear_fc2", LH_LORA_FC2 } },
  peft[] = { { "all-linear", LH_LORA_ALL },
             { "o_proj", LH_LORA_PROJ },
             { "down_proj", LH_LORA_FC2 } };

static const struct {
    uint32_t target;
    unsigned count;
    const char *names[3];
} joint[] = {
    { LH_LORA_QKV, 3, { "q_proj", "k_proj", "v_proj" } },
    { LH_LORA_FC1, 2, { "gate_proj", "up_proj" } },
};

char *
lh_step_lora_text(const LhStepParams *p)
{
    GString *out = g_string_new(NULL);

    for (unsigned i = 0; i < G_N_ELEMENTS(megatron); i++) {
        if ((p->lora_targets & megatron[i].target) != 0)
            g_string_append_printf(out, "%s%s", out->len > 0 ? "," : "", megatron[i].name);
    }
    return g_string_free(out, FALSE);
}

/* Reads one word; bits of @parts are the words of joint matrices seen so far. */
static bool
take_word(const char *word, uint32_t *targets, uint32_t parts[G_N_ELEMENTS(joint)])
{
    for (unsigned i = 0; i < G_N_ELEMENTS(megatron); i++) {
        if (strcmp(word, megatron[i].name) == 0) {
            *targets |= megatron[i].target;
            return true;
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(peft); i++) {
        if (strcmp(word, peft[i].name) == 0) {
            *targets |= peft[i].target;
            return true;
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(joint); i++) {
        for (unsigned k = 0; k < joint[i].count; k++) {
            if (strcmp(word, joint[i].names[k]) == 0) {
                parts[i] |= 1u << k;
                return true;
            }
        }
    }
    return false;
}

char *
lh_step_lora_parse(const char *text, uint32_t *targets)
{
    g_auto(GStrv) words = text != NULL ? g_strsplit(text, ",", -1) : NULL;
    uint32_t parts[G_N_ELEMENTS(joint)] = { 0 };

    *targets = text == NULL ? LH_LORA_ALL : 0;
    for (unsigned i = 0; words != NULL && words[i] != NULL; i++) {
        if (!take_word(g_strstrip(words[i]), targets, parts))
            return g_strdup_printf("found \"%s\"; allowed: linear_qkv, linear_proj, linear_fc1, "
                                   "linear_fc2; all-linear, o_proj, down_proj, and together "
                                   "q_proj,k_proj,v_proj and gate_proj,up_proj",
                                   words[i]);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(joint); i++) {
        g_autofree char *all = g_strjoin(", ", joint[i].names[0], joint[i].names[1],
                                         joint[i].count > 2 ? joint[i].names[2] : NULL, NULL);

        if (parts[i] == (1u << joint[i].count) - 1)
            *targets |= joint[i].target;
        else if (parts[i] != 0)
            return g_strdup_printf("found \"%s\": %s are one matrix here, so they have an adapter "
                                   "together or none; allowed: all of them",
                                   text, all);
    }
    return *targets != 0 ? NULL : g_strdup_printf("found \"%s\", which names no target", text);
}

/* ---- legality ---- */

/* Elements on a tensor-parallel rank of the smallest matrix that lh_step_cut_adapter() may name. */
static uint64_t
cut_elements(const LhStepParams *p)
{
    const LhModel *m = p->model;
    const LhStepWeight cut = lh_step_cut_adapter(p);
    const uint64_t width = cut == LH_STEP_W_UP_B || cut == LH_STEP_W_DOWN_A
                               ? m->ffn_hidden_size
                               : m->num_attention_heads * m->kv_channels;

    return p->lora_rank * (width / p->tensor_parallel);
}

/* Whether every data- and context-parallel rank has a piece of every cut matrix: it adds the first
 * term to the norm of all gradients. */
static bool
has_pieces(const LhStepParams *p)
{
    const uint64_t pieces = (uint64_t)p->module.ranks * p->data_parallel, all = cut_elements(p);

    return p->shard == LH_SHARD_DDP || all > (pieces - 1) * ((all + pieces - 1) / pieces);
}

bool
lh_step_check_lora(const LhStepParams *p, GError **error)
{
    const LhModel *m = p->model;

    if (p->lora_rank == 0)
        return true;
    if (p->lora_targets == 0 || (p->lora_targets & ~(uint32_t)LH_LORA_ALL) != 0)
        return lh_program_refuse(error, "LoRA needs at least one target");
    if (p->lora_rank > m->hidden_size)
        return lh_program_refuse(error,
                                 "a LoRA rank of %u exceeds the width of the model, %" PRIu64,
                                 p->lora_rank, m->hidden_size);
    if (m->num_experts > 0 && (p->lora_targets & (LH_LORA_FC1 | LH_LORA_FC2)) != 0)
        return lh_program_refuse(error, "LoRA does not adapt MLPs of models with experts: leave "
                                        "linear_fc1 and linear_fc2 out of the targets; allowed: "
                                        "linear_qkv, linear_proj");
    if (!has_pieces(p))
        return lh_program_refuse(error,
                                 "some of %u ranks would have no piece of an adapter of %" PRIu64
                                 " elements, which LoRA does not support: give a larger rank, or "
                                 "the sharding ddp",
                                 p->module.ranks * p->data_parallel, cut_elements(p));
    return true;
}
