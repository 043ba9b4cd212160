/*
 * The fields of scenarios: what every scenario may say, and the options of all schedules, as their
 * objects say (program/option.h).
 */
#include "plan/scenario.h"

#include "sched/schedule.h"

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(LhScenario, member)
/* Bounds of the numbers; the largest cluster that op ids and tags are tested for. */
#define RANKS_MAX 65536
#define TOKENS_MAX 1099511627776.0 /* 2^40 */
#define HEADS_MAX 65536
#define BATCH_MAX 65536
#define SLOWDOWN_MAX 1000000
#define JITTER_MAX 0.999
#define NODES_MAX 65535
#define DECAY_MIN 1e-6
#define OWN_FIRST 2       /* past "schema" and "description", which are no options */
#define SCHEDULES_NAMED 5 /* by the help of an option, at most */
#define FIELDS_MAX 64     /* bits of option_bits */

static const char *const mask_names[] = { "causal", "full", NULL };
static const char *const attention_names[] = { "softmax", "linear", NULL };

static const char *const schema_names[] = { "longhaul.scenario/1", NULL };

static const LhField straggler_fields[] = {
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

static const LhField link_fault_fields[] = {
    { .name = "tier",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhLinkFault, tier),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_tier_names,
      .description = "The class of links." },
    { .name = "node",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhLinkFault, node),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = NODES_MAX,
      .description = "The node whose links they are (tier fabric: the leaf)." },
    { .name = "factor",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhLinkFault, factor),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = 1,
      .description = "The share of their bandwidth that is left; 0: failed." },
    { .name = NULL },
};

static const LhField own_fields[] = {
    { .name = "schema",
      .type = LH_FIELD_CHOICE,
      .offset = AT(schema),
      .flags = LH_FIELD_REQUIRED,
      .choices = schema_names,
      .description = "The format and its version." },
    { .name = "description",
      .type = LH_FIELD_STRING,
      .offset = AT(description),
      .description = "What the scenario is about; comments go here." },
    { .name = "schedule",
      .type = LH_FIELD_STRINGS,
      .offset = AT(schedule),
      .min = 1,
      .max = -1,
      .description = "A schedule (see `longhaul list schedules`); may be given several times." },
    { .name = "schedule_file",
      .type = LH_FIELD_STRING,
      .offset = AT(schedule_file),
      .min = 1,
      .max = -1,
      .placeholder = "FILE",
      .description = "An explicit program, longhaul.schedule/1." },
    { .name = "cluster",
      .type = LH_FIELD_STRING,
      .offset = AT(cluster),
      .min = 1,
      .max = -1,
      .placeholder = "NAME[:NODES]",
      .description = "A topology and its number of nodes, NAME or NAME:NODES." },
    { .name = "ranks",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(ranks),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = RANKS_MAX,
      .description =
          "GPUs that share the sequence, all groups of --data-parallel-size together; default: "
          "all of the cluster." },
    { .name = "data_parallel_size",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(data_parallel_size),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = RANKS_MAX,
      .description = "Groups of consecutive ranks, each of which runs the schedule on a batch of "
                     "its own; divides the ranks; default 1." },
    { .name = "model",
      .type = LH_FIELD_STRING,
      .offset = AT(model),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = -1,
      .description = "The model whose attention it is; default llama-7b." },
    { .name = "seq_length",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(seq_length),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = TOKENS_MAX,
      .description = "Tokens of one sequence, over all ranks; default 4096 for each rank." },
    { .name = "num_attention_heads",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(num_attention_heads),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = HEADS_MAX,
      .description = "Query heads; default: the model's." },
    { .name = "num_query_groups",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(num_query_groups),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = HEADS_MAX,
      .description = "Key-value heads; default: the model's." },
    { .name = "kv_channels",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(kv_channels),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = HEADS_MAX,
      .description = "Size of one head; default: the model's." },
    { .name = "micro_batch_size",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(micro_batch_size),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = BATCH_MAX,
      .description = "Sequences; default 1." },
    { .name = "dtype",
      .type = LH_FIELD_CHOICE,
      .offset = AT(dtype),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .choices = lh_dtype_names,
      .description = "Of q, k, v, o and their gradients; default bf16." },
    { .name = "mask",
      .type = LH_FIELD_CHOICE,
      .offset = AT(mask),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .choices = mask_names,
      .description = "Default causal." },
    { .name = "window_size",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(window_size),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 0,
      .max = TOKENS_MAX,
      .description = "Sliding window: a query sees itself and N - 1 tokens before it; default 0, "
                     "none, whatever the model's own window is." },
    { .name = "document_lengths",
      .type = LH_FIELD_STRING,
      .offset = AT(document_lengths),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = 1,
      .max = -1,
      .placeholder = "FILE",
      .description =
          "The sequence is packed of documents that do not see each other; their lengths "
          "stand in this file (512 4K ..., # begins a comment)." },
    { .name = "attention",
      .type = LH_FIELD_CHOICE,
      .offset = AT(attention),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .choices = attention_names,
      .description = "Default: linear if all layers of the model are, or, with no model named, one "
                     "of the schedules named is for it alone and all take it; else softmax." },
    { .name = "linear_decay",
      .type = LH_FIELD_DOUBLE,
      .offset = AT(linear_decay),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .min = DECAY_MIN,
      .max = 1,
      .description = "Of linear attention, from one token to the next; default 1, none." },
    { .name = "pass",
      .type = LH_FIELD_CHOICE,
      .offset = AT(pass),
      .flags = LH_SCENARIO_OF_PROGRAM,
      .choices = lh_pass_names,
      .description = "Default both." },
    { .name = "cost",
      .type = LH_FIELD_CHOICE,
      .offset = AT(cost),
      .choices = lh_cost_mode_names,
      .description =
          "Times of a device (default); or exact flops at 1 PFLOP/s, or 1 s a block, with free "
          "communication." },
    { .name = "network",
      .type = LH_FIELD_CHOICE,
      .offset = AT(network),
      .choices = lh_network_model_names,
      .description = "How transfers share links: max-min fairly (default), not at all, in turn." },
    { .name = "collectives",
      .type = LH_FIELD_CHOICE,
      .offset = AT(collectives),
      .choices = lh_collective_model_names,
      .description =
          "How collectives run: by rings, one for each NIC of a node (default), all-reduce "
          "by trees, all-to-all by pairs, by NCCL's model, by formulas." },
    { .name = "jitter",
      .type = LH_FIELD_DOUBLE,
      .offset = AT(jitter),
      .min = 0,
      .max = JITTER_MAX,
      .description = "Compute times vary by a factor of 1 +- X; default 0." },
    { .name = "seed",
      .type = LH_FIELD_UINT,
      .offset = AT(seed),
      .description = "Of the jitter; default 0." },
    { .name = "straggler",
      .type = LH_FIELD_ARRAY,
      .offset = AT(straggler),
      .fields = straggler_fields,
      .element_size = sizeof(LhStraggler),
      .description =
          "A rank whose compute takes FACTOR times as long; may be given several times." },
    { .name = "link_fault",
      .type = LH_FIELD_ARRAY,
      .offset = AT(link_fault),
      .fields = link_fault_fields,
      .element_size = sizeof(LhLinkFault),
      .description = "The links of TIER (nvlink, pcie, nic, fabric) on NODE run at FACTOR of their "
                     "bandwidth; 0: "
                     "failed." },
    { .name = "profile",
      .type = LH_FIELD_STRING,
      .offset = AT(profile),
      .min = 1,
      .max = -1,
      .placeholder = "FILE",
      .description = "Measured constants laid over the device and the links, longhaul.profile/1." },
    { .name = NULL },
};

/* --- options of schedules -----------------------------------------------------------------------
 */

static LhFieldType
field_type(LhOptionType type)
{
    switch (type) {
    case LH_OPTION_FLAG:
        return LH_FIELD_BOOL;
    case LH_OPTION_COUNT:
        return LH_FIELD_UNIT;
    case LH_OPTION_CHOICE:
        return LH_FIELD_CHOICE;
    case LH_OPTION_GRID:
        return LH_FIELD_STRING;
    case LH_OPTION_SIZES:
        return LH_FIELD_UINTS;
    }
    g_assert_not_reached();
}

/* The option's help, and who reads it, if those are few. Never freed. */
static char *
describe_option(const LhOption *option)
{
    g_autoptr(GString) readers = g_string_new(NULL);
    unsigned count = 0;

    for (unsigned i = 0; lh_schedules[i] != NULL; i++) {
        if (!lh_schedule_reads(lh_schedules[i], option))
            continue;
        g_string_append_printf(readers, "%s%s", count > 0 ? ", " : "", lh_schedules[i]->name);
        count++;
    }
    g_assert(g_str_has_suffix(option->help, "."));
    if (count > SCHEDULES_NAMED)
        return g_strdup(option->help);
    return g_strdup_printf("%.*s (%s).", (int)strlen(option->help) - 1, option->help, readers->str);
}

static LhField
field_of(const LhOption *option, unsigned index)
{
    LhField field = {
        .name = option->name,
        .type = field_type(option->type),
        .offset = AT(options) + index * sizeof(LhOptionInput),
        .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_SCHEDULES,
        .choices = option->choices,
        .description = describe_option(option),
    };

    switch (option->type) {
    case LH_OPTION_COUNT:
        field.unit = LH_UNIT_COUNT;
        field.min = 1;
        field.max = LH_OPTION_COUNT_MAX;
        break;
    case LH_OPTION_GRID:
        field.min = 1;
        field.max = -1;
        field.placeholder = "ROWSxCOLUMNS";
        break;
    case LH_OPTION_SIZES:
        field.min = field.max = 2;
        break;
    default:
        break;
    }
    return field;
}

/* Our own fields, then those of all schedules. */
static const LhField *
make_fields(void)
{
    const LhOption *const *options = lh_schedule_options();
    g_autoptr(GArray) fields = g_array_new(TRUE, TRUE, sizeof(LhField));

    g_array_append_vals(fields, own_fields, G_N_ELEMENTS(own_fields) - 1);
    for (unsigned i = 0; options[i] != NULL; i++) {
        const LhField field = field_of(options[i], i);

        g_assert(i < LH_SCENARIO_OPTIONS_MAX);
        g_array_append_val(fields, field);
    }
    g_assert(fields->len <= FIELDS_MAX);
    return (const LhField *)(void *)g_array_free(g_steal_pointer(&fields), FALSE);
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

static unsigned
index_of(const LhOption *option)
{
    unsigned i = 0;

    while (lh_schedule_options()[i] != option)
        i++;
    return i;
}

/* "4x8". */
static bool
read_grid(const LhScenario *s, const LhOption *option, const char *text, LhOptionValue *value,
          GError **error)
{
    g_auto(GStrv) sides = g_strsplit(text, "x", -1);
    g_autofree char *escaped = NULL;
    guint64 rows, columns;

    if (g_strv_length(sides) == 2 &&
        g_ascii_string_to_unsigned(sides[0], 10, 1, UINT16_MAX, &rows, NULL) &&
        g_ascii_string_to_unsigned(sides[1], 10, 1, UINT16_MAX, &columns, NULL)) {
        *value = (LhOptionValue){ (uint32_t)rows, (uint32_t)columns };
        return true;
    }
    escaped = g_strescape(text, NULL);
    return lh_scenario_error(s, option->name, error,
                             "\"%.40s\" is not a grid; allowed: ROWSxCOLUMNS, such as 4x8",
                             escaped);
}

/* Both are at least 1, and their product is a number of ranks. */
static bool
read_sizes(const LhScenario *s, const LhOption *option, const GArray *sizes, LhOptionValue *value,
           GError **error)
{
    const uint64_t first = g_array_index(sizes, uint64_t, 0);
    const uint64_t second = g_array_index(sizes, uint64_t, 1);

    *value = (LhOptionValue){ (uint32_t)first, (uint32_t)second };
    if (first > 0 && second > 0 && first <= RANKS_MAX && second <= RANKS_MAX)
        return true;
    return lh_scenario_error(s, option->name, error,
                             "both sizes must be at least 1, and their product the ranks");
}

bool
lh_scenario_option(const LhScenario *s, const LhOption *option, LhOptionValue *value,
                   GError **error)
{
    const LhOptionInput *input = &s->options[index_of(option)];

    *value = (LhOptionValue){ 0 };
    switch (option->type) {
    case LH_OPTION_FLAG:
        value->first = input->flag ? 1 : 0;
        return true;
    case LH_OPTION_COUNT:
        value->first = (uint32_t)input->count;
        return true;
    case LH_OPTION_CHOICE:
        value->first = (uint32_t)MAX(input->choice, 0);
        return true;
    case LH_OPTION_GRID:
        return input->grid == NULL || read_grid(s, option, input->grid, value, error);
    case LH_OPTION_SIZES:
        return input->sizes == NULL || read_sizes(s, option, input->sizes, value, error);
    }
    g_assert_not_reached();
}
