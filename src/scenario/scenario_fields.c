/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/scenario_fields.h"

#include "model/framework.h"
#include "model/recomputation.h"
#include "scenario/scenario.h"
#include "scenario/scenario_options.h"
#include "scenario/step/step_fields.h"
#include "step/pipeline/pipeline.h"
#include "step/step.h"

#include <stddef.h>

#define AT(member) offsetof(LhScenario, member)

/* A number of a step's program, or "all". */
#define NUMBER_OR_ALL(key, about, usual, text)                                                     \
    {                                                                                              \
        .name = #key, .category = (about), .absent = (usual), .type = LH_FIELD_STRING,             \
        .offset = AT(key), .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP, .min = 1,        \
        .max = 16, .placeholder = "N", .description = (text)                                       \
    }
/* Upper bounds. RANKS_MAX is the largest cluster for which op ids and tags are tested. */
#define RANKS_MAX 65536
#define HEADS_MAX 65536
#define BATCH_MAX 65536
#define SLOWDOWN_MAX 1000000
#define JITTER_MAX 0.999
#define NODES_MAX 65535
#define DECAY_MIN 1e-6
#define OWN_FIRST 3   /* skips "schema", "description" and "sweep", which are not options */
#define SWEEP 2       /* its index in the table */
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
      .description = "Kind of link." },
    { .name = "node",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhLinkFault, node),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = NODES_MAX,
      .description = "Node whose links are affected; for the tier fabric, the leaf or the group of "
                     "another level." },
    { .name = "factor",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhLinkFault, factor),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = 1,
      .description = "Fraction of their bandwidth that the links keep; 0: they have failed." },
    { .name = "part",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhLinkFault, part),
      .min = 0,
      .max = NODES_MAX,
      .description = "For the tier fabric: level of the group, from 0; default: leaves. For other "
                     "tiers: one host of a node with several; default: all." },
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
      .description = "Free text about the scenario." },
    { .name = "sweep",
      .type = LH_FIELD_OBJECT,
      .offset = AT(lists),
      .description = "Fields of the scenario with a list of values each; `longhaul sweep` runs all "
                     "combinations." },
    { .name = "schedule",
      .category = LH_ABOUT_SCHEDULE,
      .type = LH_FIELD_STRINGS,
      .offset = AT(schedule),
      .min = 1,
      .max = -1,
      .names = "schedules",
      .description = "Schedule (see `longhaul list schedules`). A step of a model with linear and "
                     "softmax attention takes a pair, such as lasp2+ring." },
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
      .description = "Accept the program of --schedule-file even if it is not proven; every output "
                     "states this." },
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
      .description = "Number of data-parallel groups of consecutive ranks, each with its own "
                     "batch; must divide the ranks; default 1." },
    { .name = "assume",
      .category = LH_ABOUT_MODEL,
      .type = LH_FIELD_STRING,
      .offset = AT(assume),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = 100,
      .placeholder = "MODEL_TYPE",
      .description = "Read the model's config.json as this model type instead of its own; every "
                     "output states this." },
    { .name = "ignore_key",
      .category = LH_ABOUT_MODEL,
      .type = LH_FIELD_STRINGS,
      .offset = AT(ignore_key),
      .flags = LH_FIELD_OR_ONE | LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = 100,
      .placeholder = "KEY",
      .description = "Ignore this key of the model's config.json although it may describe its "
                     "shape; every output states this; may be repeated." },
    { .name = "model",
      .category = LH_ABOUT_MODEL,
      .type = LH_FIELD_STRING,
      .offset = AT(model),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = -1,
      .names = "models",
      .description = "Model (see `longhaul list models`); default llama-7b." },
    { .name = "seq_length",
      .category = LH_ABOUT_ATTENTION,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(seq_length),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = LH_TOKENS_MAX,
      .description = "Tokens of one sequence; default 4096 per rank that shares it." },
    { .name = "round_seq_length",
      .category = LH_ABOUT_ATTENTION,
      .type = LH_FIELD_BOOL,
      .offset = AT(round_seq_length),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_ONE_CASE,
      .description = "Round the sequence length to the nearest one that every schedule considered "
                     "can split." },
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
      .choices = lh_activation_names,
      .description = "Element type of q, k, v, o and their gradients; default bf16." },
    { .name = "mask",
      .category = LH_ABOUT_ATTENTION,
      .absent = "causal",
      .type = LH_FIELD_CHOICE,
      .offset = AT(mask),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .choices = mask_names,
      .description = "Causal: a query attends to keys up to its own token. Full: to all keys. "
                     "Default causal." },
    { .name = "window_size",
      .category = LH_ABOUT_ATTENTION,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(window_size),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 0,
      .max = LH_TOKENS_MAX,
      .description =
          "Length of the sliding window, including the query's own token; 0: none. Default: the "
          "model's, unless --mask is given or some of its layers have none." },
    { .name = "document_lengths",
      .category = LH_ABOUT_ATTENTION,
      .type = LH_FIELD_STRING,
      .offset = AT(document_lengths),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = -1,
      .placeholder = "FILE",
      .names = "files",
      .description = "File with the lengths of packed documents, such as 512 4K 1K; a query "
                     "attends only to its own document. With --step, packs separated by "
                     "semicolons, one for each micro-batch of each data-parallel rank, or one for "
                     "all." },
    { .name = "document_distribution",
      .category = LH_ABOUT_ATTENTION,
      .type = LH_FIELD_STRING,
      .offset = AT(document_distribution),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .min = 1,
      .max = 64,
      .placeholder = "DISTRIBUTION",
      .description =
          "Draw documents by --seed for each micro-batch of each data-parallel rank of a step, the "
          "last one of a sequence cut off: exponential:MEAN or lognormal:MEDIAN,SIGMA, in tokens; "
          "or lengths of --document-lengths, each as likely (empirical)." },
    { .name = "attention",
      .category = LH_ABOUT_ATTENTION,
      .type = LH_FIELD_CHOICE,
      .offset = AT(attention),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .choices = attention_names,
      .description = "Kind of attention. Default: the model's if one is named, else what the named "
                     "schedules need." },
    { .name = "linear_decay",
      .category = LH_ABOUT_ATTENTION,
      .absent = "1",
      .type = LH_FIELD_DOUBLE,
      .offset = AT(linear_decay),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = DECAY_MIN,
      .max = 1,
      .description = "Decay of linear attention: factor by which a token is discounted with each "
                     "later one; default 1: no decay." },
    { .name = "pass",
      .category = LH_ABOUT_ATTENTION,
      .absent = "both",
      .type = LH_FIELD_CHOICE,
      .offset = AT(pass),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .choices = lh_pass_names,
      .description = "Forward pass, backward pass, or both; default both. With --step, fwd is a "
                     "prefill, which leaves keys and values of all layers, and the last logits." },
    { .name = "cost",
      .category = LH_ABOUT_SIMULATION,
      .absent = "device",
      .type = LH_FIELD_CHOICE,
      .offset = AT(cost),
      .flags = LH_SCENARIO_OF_SIMULATION,
      .choices = lh_cost_mode_names,
      .description = "Source of kernel times: the device (default), flops at 1 PFLOP/s, or 1 s per "
                     "block (unit). The last two have free communication." },
    { .name = "network",
      .category = LH_ABOUT_SIMULATION,
      .absent = "fair",
      .type = LH_FIELD_CHOICE,
      .offset = AT(network),
      .flags = LH_SCENARIO_OF_SIMULATION | LH_SCENARIO_OF_CLUSTER,
      .choices = lh_network_model_names,
      .description = "How transfers share links: max-min fair (default), no sharing (alpha-beta), "
                     "or first come, first served (fifo)." },
    { .name = "collectives",
      .category = LH_ABOUT_SIMULATION,
      .absent = "auto",
      .type = LH_FIELD_CHOICE,
      .offset = AT(collectives),
      .flags = LH_SCENARIO_OF_COLLECTIVES,
      .choices = lh_collective_model_names,
      .description =
          "Algorithm of collectives: ring, tree (all-reduce), pairwise (all-to-all), direct (each "
          "message straight to its destination), nccl (measured times and NCCL's time model), "
          "closed-form, or fluid (rings as fluid flows). Default auto: measured times where the "
          "cluster has them, else ring, and fluid above 64 ranks. `longhaul run` supports ring, "
          "pairwise, direct (default) and nccl." },
    { .name = "step",
      .category = LH_ABOUT_STEP,
      .type = LH_FIELD_BOOL,
      .offset = AT(step),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .description = "A whole training step instead of one attention module: forward and backward "
                     "pass of all layers, loss, gradient synchronisation and optimizer." },
    { .name = "framework",
      .category = LH_ABOUT_STEP,
      .type = LH_FIELD_STRING,
      .offset = AT(framework),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = -1,
      .names = "frameworks",
      .description = "Training framework that a step follows (see `longhaul list frameworks`); "
                     "default pytorch-fsdp, with tensor parallelism megatron-lm. For an attention "
                     "module: adds the framework's work around its kernels; default none." },
    { .name = "attention_kernel",
      .category = LH_ABOUT_SIMULATION,
      .type = LH_FIELD_STRING,
      .offset = AT(attention_kernel),
      .flags = LH_SCENARIO_OF_SIMULATION,
      .min = 1,
      .max = 64,
      .placeholder = "KERNEL",
      .description = "Time attention by the kernels of this library of the device file (fa3; see "
                     "docs/reference/devices.md), or all forward attention by this kernel's curves "
                     "(attention_fwd: merges into its result; attention_block: the library's)." },
    NUMBER_OR_ALL(tensor_model_parallel_size, LH_ABOUT_PARALLELISM, "1",
                  "Tensor-parallel ranks of a step, with sequence parallelism: a number, or all "
                  "for all ranks; default 1."),
    { .name = "context_parallel_size",
      .category = LH_ABOUT_PARALLELISM,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(context_parallel_size),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .min = 1,
      .max = RANKS_MAX,
      .description = "Ranks that share one sequence of a step; default: all that the other kinds "
                     "of parallelism leave." },
    { .name = "pipeline_model_parallel_size",
      .category = LH_ABOUT_PARALLELISM,
      .absent = "1",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(pipeline_model_parallel_size),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .min = 1,
      .max = RANKS_MAX,
      .description = "Pipeline stages that share a step's layers; default 1: no pipeline." },
    { .name = "num_layers_per_virtual_pipeline_stage",
      .category = LH_ABOUT_PARALLELISM,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(num_layers_per_virtual_pipeline_stage),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .min = 1,
      .max = 65535,
      .description = "Layers per virtual stage (model chunk) for interleaved 1F1B. Default: one "
                     "chunk with all layers of a pipeline stage." },
    { .name = "account_for_embedding_in_pipeline_split",
      .category = LH_ABOUT_PARALLELISM,
      .type = LH_FIELD_BOOL,
      .offset = AT(account_for_embedding_in_pipeline_split),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .description = "Count the embedding as a layer when layers are split into pipeline stages: "
                     "the first stage, or its first chunk, gets one layer fewer." },
    { .name = "account_for_loss_in_pipeline_split",
      .category = LH_ABOUT_PARALLELISM,
      .type = LH_FIELD_BOOL,
      .offset = AT(account_for_loss_in_pipeline_split),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .description = "Count the output head and the loss as a layer when layers are split into "
                     "pipeline stages: the last stage, or its last chunk, gets one layer fewer." },
    { .name = "pipeline_schedule",
      .category = LH_ABOUT_PARALLELISM,
      .absent = "1f1b",
      .type = LH_FIELD_CHOICE,
      .offset = AT(pipeline_schedule),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .choices = lh_pipeline_order_names,
      .description = "Order of micro-batches in a pipeline: one forward, one backward (1f1b, "
                     "default); or all forward, then all backward (gpipe)." },
    { .name = "num_micro_batches",
      .category = LH_ABOUT_STEP,
      .absent = "1",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(num_micro_batches),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .min = 1,
      .max = 65535,
      .description = "Micro-batches per data-parallel rank and step; default 1." },
    LH_STEP_MEMORY_FIELDS,
    LH_LORA_FIELDS,
    LH_OFFLOAD_FIELDS,
    { .name = "pad",
      .category = LH_ABOUT_PARALLELISM,
      .type = LH_FIELD_CHOICE,
      .offset = AT(pad),
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,
      .choices = pad_names,
      .description = "What to pad if the heads cannot be split evenly among tensor-parallel ranks, "
                     "or among the context-parallel ranks of a schedule that splits heads: the "
                     "attention projections (heads), or the whole model (width). Default: such a "
                     "tensor-parallel size is rejected." },
    { .name = "jitter",
      .category = LH_ABOUT_SIMULATION,
      .absent = "0",
      .type = LH_FIELD_DOUBLE,
      .offset = AT(jitter),
      .flags = LH_SCENARIO_OF_SIMULATION,
      .min = 0,
      .max = JITTER_MAX,
      .description = "Random variation of compute times, as a fraction such as 0.05; default 0." },
    { .name = "seed",
      .category = LH_ABOUT_SIMULATION,
      .absent = "0",
      .type = LH_FIELD_UINT,
      .offset = AT(seed),
      .flags = LH_SCENARIO_OF_CHANCE,
      .description = "Seed of the jitter, of drawn documents, and of the inputs of `longhaul run`; "
                     "default 0." },
    { .name = "straggler",
      .category = LH_ABOUT_SIMULATION,
      .type = LH_FIELD_ARRAY,
      .offset = AT(straggler),
      .flags = LH_SCENARIO_OF_SIMULATION,
      .fields = lh_straggler_fields,
      .element_size = sizeof(LhStraggler),
      .description = "Straggler: the kernels of RANK take FACTOR times as long." },
    { .name = "link_fault",
      .category = LH_ABOUT_SIMULATION,
      .type = LH_FIELD_ARRAY,
      .offset = AT(link_fault),
      .flags = LH_SCENARIO_OF_SIMULATION | LH_SCENARIO_OF_CLUSTER,
      .fields = lh_link_fault_fields,
      .element_size = sizeof(LhLinkFault),
      .element_init = lh_link_fault_init,
      .description = "Link fault: the links of TIER (nvlink, pcie, nic, fabric) on NODE keep "
                     "FACTOR of their bandwidth; 0: they have failed. PART: one host of several, "
                     "or the level of the fabric." },
    { .name = "profile",
      .category = LH_ABOUT_CLUSTER,
      .type = LH_FIELD_STRING,
      .offset = AT(profile),
      .flags = LH_SCENARIO_OF_SIMULATION | LH_SCENARIO_OF_CLUSTER,
      .min = 1,
      .max = -1,
      .placeholder = "FILE",
      .names = "files",
      .description = "Measured constants that replace the data files': a file in the format "
                     "longhaul.profile/2." },
    { .name = NULL },
};

/* --- options of schedules -----------------------------------------------------------------------
 */

G_STATIC_ASSERT(G_N_ELEMENTS(own_fields) - 1 + LH_SCENARIO_OPTIONS_MAX <= LH_SCENARIO_FIELDS_MAX);

/* Whether the field can be swept: it has one value and affects the simulation. */
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

/* Builds the table: the fixed fields, then the options of all schedules. */
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
