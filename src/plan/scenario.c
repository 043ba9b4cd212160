/*
 * Scenario files and options: one table of fields for both.
 */
#include "plan/scenario.h"

#include "base/data.h"
#include "base/error.h"
#include "plan/setting.h"

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
#define OPTION_MAX 65536 /* of numbers that count ranks, heads or pieces of a state */

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

const LhField lh_scenario_fields[] = {
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
      .description = "An explicit program, longhaul.schedule/1." },
    { .name = "cluster",
      .type = LH_FIELD_STRING,
      .offset = AT(cluster),
      .min = 1,
      .max = -1,
      .description = "A topology and its number of nodes, NAME or NAME:NODES." },
    { .name = "ranks",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(ranks),
      .min = 1,
      .max = RANKS_MAX,
      .description =
          "GPUs that share the sequence, all groups of --data-parallel-size together; default: "
          "all of the cluster." },
    { .name = "data_parallel_size",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(data_parallel_size),
      .min = 1,
      .max = RANKS_MAX,
      .description = "Groups of consecutive ranks, each of which runs the schedule on a batch of "
                     "its own; divides the ranks; default 1." },
    { .name = "model",
      .type = LH_FIELD_STRING,
      .offset = AT(model),
      .min = 1,
      .max = -1,
      .description = "The model whose attention it is; default llama-7b." },
    { .name = "seq_length",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(seq_length),
      .min = 1,
      .max = TOKENS_MAX,
      .description = "Tokens of one sequence, over all ranks; default 4096 for each rank." },
    { .name = "num_attention_heads",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(num_attention_heads),
      .min = 1,
      .max = HEADS_MAX,
      .description = "Query heads; default: the model's." },
    { .name = "num_query_groups",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(num_query_groups),
      .min = 1,
      .max = HEADS_MAX,
      .description = "Key-value heads; default: the model's." },
    { .name = "kv_channels",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(kv_channels),
      .min = 1,
      .max = HEADS_MAX,
      .description = "Size of one head; default: the model's." },
    { .name = "micro_batch_size",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(micro_batch_size),
      .min = 1,
      .max = BATCH_MAX,
      .description = "Sequences; default 1." },
    { .name = "dtype",
      .type = LH_FIELD_CHOICE,
      .offset = AT(dtype),
      .choices = lh_dtype_names,
      .description = "Of q, k, v, o and their gradients; default bf16." },
    { .name = "mask",
      .type = LH_FIELD_CHOICE,
      .offset = AT(mask),
      .choices = mask_names,
      .description = "Default causal." },
    { .name = "window_size",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(window_size),
      .min = 0,
      .max = TOKENS_MAX,
      .description = "Sliding window: a query sees itself and N - 1 tokens before it; default 0, "
                     "none, whatever the model's own window is." },
    { .name = "document_lengths",
      .type = LH_FIELD_STRING,
      .offset = AT(document_lengths),
      .min = 1,
      .max = -1,
      .description =
          "The sequence is packed of documents that do not see each other; their lengths "
          "stand in this file (512 4K ..., # begins a comment)." },
    { .name = "attention",
      .type = LH_FIELD_CHOICE,
      .offset = AT(attention),
      .choices = attention_names,
      .description = "Default: linear if all layers of the model are, or, with no model named, one "
                     "of the schedules named is for it alone and all take it; else softmax." },
    { .name = "linear_decay",
      .type = LH_FIELD_DOUBLE,
      .offset = AT(linear_decay),
      .min = DECAY_MIN,
      .max = 1,
      .description = "Of linear attention, from one token to the next; default 1, none." },
    { .name = "pass",
      .type = LH_FIELD_CHOICE,
      .offset = AT(pass),
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
    { .name = "no_overlap",
      .type = LH_FIELD_BOOL,
      .offset = AT(no_overlap),
      .description = "Communicate before computing, step by step." },
    { .name = "published_code",
      .type = LH_FIELD_BOOL,
      .offset = AT(published_code),
      .description = "With the extra traffic and host waits of the public code." },
    { .name = "gradient_wire",
      .type = LH_FIELD_CHOICE,
      .offset = AT(gradient_wire),
      .choices = lh_wire_names,
      .description = "Type of dk and dv on the wire; default: what the published system sends." },
    { .name = "grid",
      .type = LH_FIELD_STRING,
      .offset = AT(grid),
      .min = 1,
      .max = -1,
      .description = "Rows and columns of ranks that share the queries and the keys (attention2d); "
                     "default: the best for the shape." },
    { .name = "hierarchical_context_parallel_sizes",
      .type = LH_FIELD_UINTS,
      .offset = AT(hierarchical_context_parallel_sizes),
      .min = 2,
      .max = 2,
      .description =
          "Ranks that exchange heads all to all, then ranks of a ring (usp, te-a2a-p2p); "
          "their product is the number of ranks." },
    { .name = "inner_ring",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(inner_ring),
      .min = 1,
      .max = OPTION_MAX,
      .description = "Ranks of an inner ring (double-ring); divides the ranks." },
    { .name = "gather_groups",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(gather_groups),
      .min = 1,
      .max = OPTION_MAX,
      .description = "Key-value heads gathered at a time (allgather-kv); divides them." },
    { .name = "scan_blocks",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = AT(scan_blocks),
      .min = 1,
      .max = OPTION_MAX,
      .description = "Pieces that the state of linear attention travels in (zeco)." },
    { .name = "local_kv",
      .type = LH_FIELD_BOOL,
      .offset = AT(local_kv),
      .description = "No transpose of k and v before they are gathered (attention2d)." },
    { .name = "gather_delta",
      .type = LH_FIELD_BOOL,
      .offset = AT(gather_delta),
      .description = "Backward gathers delta, not o (attention2d)." },
    { .name = "state_recompute",
      .type = LH_FIELD_BOOL,
      .offset = AT(state_recompute),
      .description = "Backward computes the states of linear attention again instead of keeping "
                     "them." },
    { .name = "unfused",
      .type = LH_FIELD_BOOL,
      .offset = AT(unfused),
      .description = "Linear attention within and between blocks is written apart and added." },
    { .name = "pad_heads",
      .type = LH_FIELD_BOOL,
      .offset = AT(pad_heads),
      .description = "Heads that do not divide among the ranks are padded with idle ones." },
    { .name = "recompute_granularity",
      .type = LH_FIELD_CHOICE,
      .offset = AT(recompute_granularity),
      .choices = lh_recompute_names,
      .description = "What backward computes again: nothing (default), attention, or all of the "
                     "module with its collectives." },
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
      .description = "Measured constants laid over the device and the links, longhaul.profile/1." },
    { .name = NULL },
};

/* Past "schema" and "description". */
const LhField *const lh_scenario_options = lh_scenario_fields + 2;

static void
preset(LhScenario *s)
{
    s->dtype = s->mask = s->pass = s->cost = s->network = s->gradient_wire = -1;
    s->attention = s->recompute_granularity = s->collectives = -1;
}

LhScenario *
lh_scenario_new(void)
{
    LhScenario *s = g_new0(LhScenario, 1);

    preset(s);
    return s;
}

void
lh_scenario_free(LhScenario *scenario)
{
    if (scenario == NULL)
        return;
    lh_json_clear(lh_scenario_fields, scenario);
    lh_json_free(scenario->json);
    g_free(scenario->path);
    g_free(scenario);
}

/* Makes the path in *@value, if it is one, relative to @folder instead of to the file. */
static void
rebase(char **value, const char *folder)
{
    char *path;

    if (*value == NULL || g_path_is_absolute(*value) || strcmp(folder, ".") == 0)
        return;
    path = g_build_filename(folder, *value, NULL);
    g_free(*value);
    *value = path;
}

static bool
is_path(const char *value)
{
    return value != NULL && (strchr(value, '/') != NULL || strstr(value, ".json") != NULL);
}

static void
rebase_all(LhScenario *s)
{
    g_autofree char *folder = g_path_get_dirname(s->path);

    rebase(&s->schedule_file, folder);
    rebase(&s->profile, folder);
    rebase(&s->document_lengths, folder);
    if (is_path(s->cluster))
        rebase(&s->cluster, folder);
    if (is_path(s->model))
        rebase(&s->model, folder);
}

/* A schedule of the user's own stands for the scenario that plays it and says nothing else. */
static bool
is_schedule(const LhJson *json)
{
    static const LhField fields[] = { { .name = "schema", .type = LH_FIELD_STRING },
                                      { .name = NULL } };
    char *schema = NULL;
    bool found = lh_json_decode(json, fields, &schema, true, NULL) &&
                 g_strcmp0(schema, "longhaul.schedule/1") == 0;

    g_free(schema);
    return found;
}

/* Takes @json over in every case. */
static LhScenario *
decode(const char *path, LhJson *json, GError **error)
{
    LhScenario *s = lh_scenario_new();

    if (!lh_json_decode(json, lh_scenario_fields, s, false, error)) {
        lh_json_free(json);
        g_free(s);
        return NULL;
    }
    s->json = json;
    s->path = g_strdup(path);
    rebase_all(s);
    return s;
}

LhScenario *
lh_scenario_parse(const char *file, const char *text, gsize length, GError **error)
{
    LhJson *json = lh_json_parse(file, text, length, error);

    return json == NULL ? NULL : decode(file, json, error);
}

LhScenario *
lh_scenario_load(const char *name, GError **error)
{
    g_autofree char *path = lh_data_find("scenarios", name, error);
    LhJson *json;

    if (path == NULL)
        return NULL;
    json = lh_json_load(path, error);
    if (json != NULL && is_schedule(json)) {
        LhScenario *s = lh_scenario_new();

        lh_json_free(json);
        s->schedule_file = g_steal_pointer(&path);
        return s;
    }
    return json == NULL ? NULL : decode(path, json, error);
}

static uint64_t
option_bit(const LhField *field)
{
    return UINT64_C(1) << (field - lh_scenario_options);
}

static const LhField *
find_field(const char *name)
{
    const LhField *field = lh_scenario_options;

    while (field->name != NULL && strcmp(field->name, name) != 0)
        field++;
    g_assert(field->name != NULL);
    return field;
}

bool
lh_scenario_set(LhScenario *scenario, const LhField *field, const char *text, GError **error)
{
    const uint64_t bit = option_bit(field);

    if ((scenario->option_bits & bit) == 0)
        lh_setting_reset(field, scenario);
    if (!lh_setting_parse(field, text, scenario, error))
        return false;
    scenario->option_bits |= bit;
    return true;
}

bool
lh_scenario_has(const LhScenario *scenario, const char *name)
{
    if ((scenario->option_bits & option_bit(find_field(name))) != 0)
        return true;
    return scenario->json != NULL && lh_json_has(scenario->json, name);
}

bool
lh_scenario_error(const LhScenario *scenario, const char *name, GError **error, const char *format,
                  ...)
{
    const LhField *field = find_field(name);
    g_autofree char *message = NULL;
    g_autofree char *option = NULL;
    va_list args;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    option = lh_setting_option(field);
    if ((scenario->option_bits & option_bit(field)) != 0 || scenario->json == NULL ||
        !lh_json_has(scenario->json, name)) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: %s", option, message);
        return false;
    }
    return lh_json_error(scenario->json, name, error, "\"%s\": %s", name, message);
}
