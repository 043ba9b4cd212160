/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/scenario_fields.h"

#include "model/framework.h"
#include "scenario/scenario.h"
#include "scenario/scenario_options.h"
#include "step/pipeline.h"
#include "step/step.h"

#include <stddef.h>

#define AT(member) offsetof(LhScenario, member)
/* Bounds of the numbers. RANKS_MAX is the largest cluster that op ids and tags are tested with. */
#define RANKS_MAX 65536
#define HEADS_MAX 65536
#define BATCH_MAX 65536
#define SLOWDOWN_MAX 1000000
#define JITTER_MAX 0.999
#define NODES_MAX 65535
#define DECAY_MIN 1e-6
#define OWN_FIRST 3   /* past "schema", "description" and "sweep", which are no options */
#define SWEEP 2       /* its place in the table */
#define LIST_MAX 1000 /* values of a field in a sweep */

static const char *const mask_names[] = { "causal", "full", NULL };
static const char *const pad_names[] = { [LH_PAD_HEADS] = "heads", [LH_PAD_WIDTH] = "width", NULL };
static const char *const attention_names[] = { "softmax", "linear", NULL };

static const char *const scenario_schemas[] = { "longhaul.scenario/1", NULL };

const LhField lh_straggler_fields[] = {
    { .name = "rank",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhStraggler, rank),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = RANKS_MAX - 1,
      .description = "The slow rank." },
    { .name = "factor",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhStraggler, slowdown),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = SLOWDOWN_MAX,
      .description = "Its compute takes this many times as long." },
    { .name = NULL },
};

void
lh_link_fault_init(void *fault)
{
    ((LhLinkFault *)fault)->part = LH_FAULT_OF_ALL;
}

const LhField lh_link_fault_fields[] = {
    { .name = "tier",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhLinkFault, tier),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_tier_names,
      .description = "The kind of link." },
    { .name = "node",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhLinkFault, node),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = NODES_MAX,
      .description = "The node that the links belong to; for the tier fabric, the leaf, or the "
                     "group of another level." },
    { .name = "factor",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhLinkFault, factor),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = 1,
      .description =
          "The share of their bandwidth that the links still have; 0 if they have failed." },
    { .name = "part",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhLinkFault, part),
      .min = 0,
      .max = NODES_MAX,
      .description = "For the tier fabric, the level of the group, from 0; that of leaves if "
                     "absent. For other tiers, the host of a node of several; all if absent." },
    { .name = NULL },
};

static const LhField own_fields[] = {
    { .name = "schema",
      .type = LH_FIELD_CHOICE,
      .offset = AT(schema),
      .flags = LH_FIELD_REQUIRED,
      .choices = scenario_schemas,
      .description = "The format and its version." },
    { .name = "description",
      .type = LH_FIELD_STRING,
      .offset = AT(description),
      .description = "What the scenario is about; a place for comments." },
    { .name = "sweep",
      .type = LH_FIELD_OBJECT,
      .offset = AT(lists),
      .description = "Fields of the scenario, each with a list of values: `longhaul sweep` goes "
                     "through all combinations." },
    { .name = "schedule",
      .category = LH_ABOUT_SCHEDULE,
      .type = LH_FIELD_STRINGS,
      .offset = AT(schedule),
      .min = 1,
      .max = -1,
      .names = "schedules",
      .description =
          "Schedule to use (see `longhaul list schedules`); of a step of a model with layers "
          "of linear and of softmax attention a pair, such as lasp2+ring." },
    { .name = "schedule_file",
      .category = LH_ABOUT_SCHEDULE,
      .type = LH_FIELD_STRING,
      .offset = AT(schedule_file),
      .min = 1,
      .max = -1,
      .placeholder = "FILE",
      .names = "files",
      .description = "Explicit program to use: a file in the format longhaul.schedule/1." },
    { .name = "unproven",
      .category = LH_ABOUT_SCHEDULE,
      .type = LH_FIELD_BOOL,
      .offset = AT(unproven),
      .flags = LH_SCENARIO_OF_PROOF,
      .description = "Take the program of --schedule-file even if it is not proven; every output "
                     "says so." },
    { .name = "cluster",
      .category = LH_ABOUT_CLUSTER,
      .type = LH_FIELD_STRING,
      .offset = AT(cluster),
      .min = 1,
      .max = -1,
      .placeholder = "NAME[:NODES]",
      .names = "topologies",
      .flags = LH_SCENARIO_OF_CLUSTER,
      .description = "Topology and number of nodes (see `longhaul list topologies`)." },
    LH_TOPOLOGY_CHANGE_FIELDS(AT(change), LH_SCENARIO_OF_SIMULATION | LH_SCENARIO_OF_CLUSTER),
    { .name = "ranks",
      .category = LH_ABOUT_CLUSTER,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(ranks),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = RANKS_MAX,
      .description =
          "Number of GPUs, over all data-parallel groups; default: all GPUs of the cluster." },
    { .name = "data_parallel_size",
      .category = LH_ABOUT_PARALLELISM,
      .absent = "1",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(data_parallel_size),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = RANKS_MAX,
      .description = "Number of groups of consecutive ranks, each with a batch of its own; divides "
                     "the ranks; default 1." },
    { .name = "assume",
      .category = LH_ABOUT_MODEL,
      .type = LH_FIELD_STRING,
      .offset = AT(assume),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = 100,
      .placeholder = "MODEL_TYPE",
      .description = "Model type whose keys the model's config.json is read by, in place of its "
                     "own; every output says so." },
    { .name = "ignore_key",
      .category = LH_ABOUT_MODEL,
      .type = LH_FIELD_STRINGS,
      .offset = AT(ignore_key),
      .flags = LH_FIELD_OR_ONE | LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = 100,
      .placeholder = "KEY",
      .description = "Key of the model's config.json that is not read though it may say its shape; "
                     "every output says so; may be repeated." },
    { .name = "model",
      .category = LH_ABOUT_MODEL,
      .type = LH_FIELD_STRING,
      .offset = AT(model),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = -1,
      .names = "models",
      .description =
          "Model whose attention is computed (see `longhaul list models`); default llama-7b." },
    { .name = "seq_length",
      .category = LH_ABOUT_ATTENTION,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(seq_length),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = LH_TOKENS_MAX,
      .description = "Tokens of one sequence; default 4096 for each rank that shares it." },
    { .name = "round_seq_length",
      .category = LH_ABOUT_ATTENTION,
      .type = LH_FIELD_BOOL,
      .offset = AT(round_seq_length),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_ONE_CASE,
      .description = "Round the sequence length to the nearest one that every schedule in question "
                     "can cut." },
    { .name = "num_attention_heads",
      .category = LH_ABOUT_MODEL,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(num_attention_heads),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = HEADS_MAX,
      .description = "Number of query heads; default: the model's." },
    { .name = "num_query_groups",
      .category = LH_ABOUT_MODEL,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(num_query_groups),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = HEADS_MAX,
      .description = "Number of key-value heads; default: the model's." },
    { .name = "kv_channels",
      .category = LH_ABOUT_MODEL,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(kv_channels),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = HEADS_MAX,
      .description = "Dimension of one head; default: the model's." },
    { .name = "micro_batch_size",
      .category = LH_ABOUT_STEP,
      .absent = "1",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(micro_batch_size),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = BATCH_MAX,
      .description = "Number of sequences in a batch; default 1." },
    { .name = "dtype",
      .category = LH_ABOUT_MODEL,
      .absent = "bf16",
      .type = LH_FIELD_CHOICE,
      .offset = AT(dtype),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .choices = lh_dtype_names,
      .description = "Element type of q, k, v, o and their gradients; default bf16." },
    { .name = "mask",
      .category = LH_ABOUT_ATTENTION,
      .absent = "causal",
      .type = LH_FIELD_CHOICE,
      .offset = AT(mask),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .choices = mask_names,
      .description =
          "Whether a query sees the keys up to its own token, or all keys; default causal." },
    { .name = "window_size",
      .category = LH_ABOUT_ATTENTION,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(window_size),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 0,
      .max = LH_TOKENS_MAX,
      .description = "Length of the sliding window, with the query's own token; 0: none; default: "
                     "the model's, unless --mask is given or some of its layers have none." },
    { .name = "document_lengths",
      .category = LH_ABOUT_ATTENTION,
      .type = LH_FIELD_STRING,
      .offset = AT(document_lengths),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = -1,
      .placeholder = "FILE",
      .names = "files",
      .description = "File with the lengths of packed documents, such as 512 4K 1K; a query sees "
                     "its own document only." },
    { .name = "attention",
      .category = LH_ABOUT_ATTENTION,
      .type = LH_FIELD_CHOICE,
      .offset = AT(attention),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .choices = attention_names,
      .description = "Kind of attention; default: the model's if one is named, else what the "
                     "schedules named need." },
    { .name = "linear_decay",
      .category = LH_ABOUT_ATTENTION,
      .absent = "1",
      .type = LH_FIELD_DOUBLE,
      .offset = AT(linear_decay),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = DECAY_MIN,
      .max = 1,
      .description = "Factor by which linear attention discounts a token with each later one; "
                     "default 1: not at all." },
    { .name = "pass",
      .category = LH_ABOUT_ATTENTION,
      .absent = "both",
      .type = LH_FIELD_CHOICE,
      .offset = AT(pass),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .choices = lh_pass_names,
      .description = "Forward pass, backward pass, or both; default both." },
    { .name = "cost",
      .category = LH_ABOUT_SIMULATION,
      .absent = "device",
      .type = LH_FIELD_CHOICE,
      .offset = AT(cost),
      .flags = LH_SCENARIO_OF_SIMULATION,
      .choices = lh_cost_mode_names,
      .description = "Kernel times: the device's (default), flops at 1 PFLOP/s, or 1 s a block; "
                     "the last two with free communication." },
    { .name = "network",
      .category = LH_ABOUT_SIMULATION,
      .absent = "fair",
      .type = LH_FIELD_CHOICE,
      .offset = AT(network),
      .flags = LH_SCENARIO_OF_SIMULATION | LH_SCENARIO_OF_CLUSTER,
      .choices = lh_network_model_names,
      .description = "How transfers share links: fairly (default), as if each were alone, or first "
                     "come, first served." },
    { .name = "collectives",
      .category = LH_ABOUT_SIMULATION,
      .absent = "auto",
      .type = LH_FIELD_CHOICE,
      .offset = AT(collectives),
      .flags = LH_SCENARIO_OF_COLLECTIVES,
      .choices = lh_collective_model_names,
      .description = "How collectives run: in rings, all-reduce in trees, all-to-all in pairs, all "
                     "straight to their destinations, by NCCL's measured times and time model, by "
                     "closed forms, or in rings as fluids; auto (default): in measured times where "
                     "the cluster has them, else in rings, as fluids those of more than 64 ranks. "
                     "Executed are ring, pairwise, direct (default), and nccl by NCCL itself." },
    { .name = "step",
      .category = LH_ABOUT_STEP,
      .type = LH_FIELD_BOOL,
      .offset = AT(step),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .description = "Take a whole training step: all layers forward and backward, the loss, the "
                     "exchange of gradients and the optimizer; without it, one attention module." },
    { .name = "framework",
      .category = LH_ABOUT_STEP,
      .type = LH_FIELD_STRING,
      .offset = AT(framework),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = -1,
      .names = "frameworks",
      .description = "Training system whose ways a step follows (see `longhaul list frameworks`); "
                     "default pytorch-fsdp, with tensor parallelism megatron-lm. Of a module of "
                     "attention: what is done around its kernels; default: nothing." },
    { .name = "attention_kernel",
      .category = LH_ABOUT_SIMULATION,
      .type = LH_FIELD_STRING,
      .offset = AT(attention_kernel),
      .flags = LH_SCENARIO_OF_SIMULATION,
      .min = 1,
      .max = 64,
      .placeholder = "KERNEL",
      .description =
          "Time attention as the kernels of this library of the device file (fa3; see "
          "docs/reference/devices.md), or all forward attention as this kernel that it has curves "
          "of (attention_fwd: one that merges into its result; attention_block: the "
          "library's)." },
    { .name = "tensor_model_parallel_size",
      .category = LH_ABOUT_PARALLELISM,
      .absent = "1",
      .type = LH_FIELD_STRING,
      .offset = AT(tensor_model_parallel_size),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .min = 1,
      .max = 16,
      .placeholder = "N",
      .description = "Tensor-parallel ranks of a step, with sequence parallelism: a number, or all "
                     "for all ranks; default 1." },
    { .name = "context_parallel_size",
      .category = LH_ABOUT_PARALLELISM,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(context_parallel_size),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .min = 1,
      .max = RANKS_MAX,
      .description = "Ranks among which a step spreads one sequence; default: all that tensor and "
                     "data parallelism leave." },
    { .name = "pipeline_model_parallel_size",
      .category = LH_ABOUT_PARALLELISM,
      .absent = "1",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(pipeline_model_parallel_size),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .min = 1,
      .max = RANKS_MAX,
      .description = "Stages of a pipeline, which share a step's layers; default 1: no pipeline." },
    { .name = "num_layers_per_virtual_pipeline_stage",
      .category = LH_ABOUT_PARALLELISM,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(num_layers_per_virtual_pipeline_stage),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .min = 1,
      .max = 65535,
      .description = "Layers of each of several chunks that a pipeline stage has, which take turns "
                     "(interleaved 1F1B); default: all of a stage's layers are one chunk." },
    { .name = "account_for_embedding_in_pipeline_split",
      .category = LH_ABOUT_PARALLELISM,
      .type = LH_FIELD_BOOL,
      .offset = AT(account_for_embedding_in_pipeline_split),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .description = "The embedding counts as a layer where layers are shared among pipeline "
                     "stages: the first one, or its first chunk, has one layer less." },
    { .name = "account_for_loss_in_pipeline_split",
      .category = LH_ABOUT_PARALLELISM,
      .type = LH_FIELD_BOOL,
      .offset = AT(account_for_loss_in_pipeline_split),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .description = "The head and the loss count as a layer where layers are shared among "
                     "pipeline stages: the last one, or its last chunk, has one layer less." },
    { .name = "pipeline_schedule",
      .category = LH_ABOUT_PARALLELISM,
      .absent = "1f1b",
      .type = LH_FIELD_CHOICE,
      .offset = AT(pipeline_schedule),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .choices = lh_pipeline_order_names,
      .description = "Order in which pipeline stages work on micro-batches: one forward, one "
                     "backward (1f1b, default); or all forward, then all backward (gpipe)." },
    { .name = "num_micro_batches",
      .category = LH_ABOUT_STEP,
      .absent = "1",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(num_micro_batches),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .min = 1,
      .max = 65535,
      .description = "Micro-batches that a data-parallel rank works on in a step, one after the "
                     "other; default 1." },
    { .name = "shard",
      .category = LH_ABOUT_MEMORY,
      .type = LH_FIELD_CHOICE,
      .offset = AT(shard),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .choices = lh_shard_names,
      .description = "What data- and context-parallel ranks share of a step's weights, gradients "
                     "and optimizer; default: the framework's." },
    { .name = "checkpoint",
      .category = LH_ABOUT_MEMORY,
      .type = LH_FIELD_CHOICE,
      .offset = AT(checkpoint),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .choices = lh_checkpoint_names,
      .description = "Which activations of a step are recomputed in the backward pass: none; "
                     "attention (selective); whole layers (layer); or all but attention (remat); "
                     "default: the framework's." },
    { .name = "pad",
      .category = LH_ABOUT_PARALLELISM,
      .type = LH_FIELD_CHOICE,
      .offset = AT(pad),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .choices = pad_names,
      .description = "What becomes wider where the heads cannot be shared evenly among "
                     "tensor-parallel ranks, or among the context-parallel ranks of a schedule "
                     "that shares heads: the projections of attention (heads), or the whole model "
                     "(width); without it, such a tensor-parallel size is refused." },
    { .name = "jitter",
      .category = LH_ABOUT_SIMULATION,
      .absent = "0",
      .type = LH_FIELD_DOUBLE,
      .offset = AT(jitter),
      .flags = LH_SCENARIO_OF_SIMULATION,
      .min = 0,
      .max = JITTER_MAX,
      .description =
          "Random variation of compute times, as a share of them, such as 0.05; default 0." },
    { .name = "seed",
      .category = LH_ABOUT_SIMULATION,
      .absent = "0",
      .type = LH_FIELD_UINT,
      .offset = AT(seed),
      .flags = LH_SCENARIO_OF_CHANCE,
      .description = "Seed of the jitter, and of the inputs of `longhaul run`; default 0." },
    { .name = "straggler",
      .category = LH_ABOUT_SIMULATION,
      .type = LH_FIELD_ARRAY,
      .offset = AT(straggler),
      .flags = LH_SCENARIO_OF_SIMULATION,
      .fields = lh_straggler_fields,
      .element_size = sizeof(LhStraggler),
      .description = "Make the kernels of RANK take FACTOR times as long." },
    { .name = "link_fault",
      .category = LH_ABOUT_SIMULATION,
      .type = LH_FIELD_ARRAY,
      .offset = AT(link_fault),
      .flags = LH_SCENARIO_OF_SIMULATION | LH_SCENARIO_OF_CLUSTER,
      .fields = lh_link_fault_fields,
      .element_size = sizeof(LhLinkFault),
      .element_init = lh_link_fault_init,
      .description = "Run the links of TIER (nvlink, pcie, nic, fabric) on NODE at FACTOR of their "
                     "bandwidth; 0: they have failed. PART: one host of several, or the level of "
                     "the fabric." },
    { .name = "profile",
      .category = LH_ABOUT_CLUSTER,
      .type = LH_FIELD_STRING,
      .offset = AT(profile),
      .flags = LH_SCENARIO_OF_SIMULATION | LH_SCENARIO_OF_CLUSTER,
      .min = 1,
      .max = -1,
      .placeholder = "FILE",
      .names = "files",
      .description = "Measured constants to use in place of the data files': a file in the format "
                     "longhaul.profile/2." },
    { .name = NULL },
};

/* --- options of schedules -----------------------------------------------------------------------
 */

G_STATIC_ASSERT(G_N_ELEMENTS(own_fields) - 1 + LH_SCENARIO_OPTIONS_MAX <= LH_SCENARIO_FIELDS_MAX);

/* Whether it has one value, and says what is simulated. */
static bool
has_list(const LhField *field)
{
    return field->type != LH_FIELD_STRINGS && field->type != LH_FIELD_ARRAY &&
           (field->flags & LH_SCENARIO_OF_PROOF) == 0;
}

/* The table of "sweep", for the options of @fields. */
static const LhField *
make_lists(const LhField *fields)
{
    g_autoptr(GArray) lists = g_array_new(TRUE, TRUE, sizeof(LhField));

    for (const LhField *field = fields + OWN_FIRST; field->name != NULL; field++) {
        const LhField list = {
            .name = field->name,
            .type = LH_FIELD_VALUES,
            .offset = (size_t)(field - fields) * sizeof(LhFieldLater),
            .min = 1,
            .max = LIST_MAX,
            .fields = field,
            .element_size = sizeof(LhScenario),
            .description = field->description,
        };

        if (has_list(field))
            g_array_append_val(lists, list);
    }
    return (const LhField *)(void *)g_array_free(g_steal_pointer(&lists), FALSE);
}

/* Our own fields, then those of all schedules. */
static const LhField *
make_fields(void)
{
    const LhOption *const *options = lh_schedule_options();
    g_autoptr(GArray) fields = g_array_new(TRUE, TRUE, sizeof(LhField));
    LhField *table;

    g_array_append_vals(fields, own_fields, G_N_ELEMENTS(own_fields) - 1);
    for (unsigned i = 0; options[i] != NULL; i++) {
        const LhField field = lh_scenario_option_field(options[i], i);

        g_assert(i < LH_SCENARIO_OPTIONS_MAX);
        g_array_append_val(fields, field);
    }
    table = (LhField *)(void *)g_array_free(g_steal_pointer(&fields), FALSE);
    table[SWEEP].fields = make_lists(table);
    return table;
}

const LhField *
lh_scenario_fields(void)
{
    static const LhField *fields = NULL;

    if (g_once_init_enter(&fields))
        g_once_init_leave(&fields, make_fields());
    return fields;
}

const LhField *
lh_scenario_options(void)
{
    return lh_scenario_fields() + OWN_FIRST;
}

const LhField *
lh_scenario_lists(void)
{
    return lh_scenario_fields()[SWEEP].fields;
}
