/*
 * From a scenario to something that can run. Every default is here.
 */
#include "scenario/setup.h"

#include "base/error.h"
#include "base/files/data_files.h"
#include "base/files/file_input.h"
#include "model/parameters.h"
#include "scenario/config_check.h"
#include "scenario/profile.h"
#include "scenario/schedule_pairs.h"
#include "scenario/seq_length_rounding.h"
#include "scenario/setup_step.h"
#include "sim/cost/attention_cost.h"

#include <string.h>

static void
input_free(gpointer data)
{
    LhInput *input = data;

    g_free(input->path);
    g_free(input->sha256);
    g_free(input);
}

/* @kind is NULL for a file that is never found by name. */
static void
add_input(LhSetup *setup, const char *of, const char *kind, const char *name, const char *sha256)
{
    LhInput *input = g_new0(LhInput, 1);
    bool is_path;

    g_assert(name != NULL);
    is_path = kind == NULL || strchr(name, '/') != NULL || g_str_has_suffix(name, ".json");
    input->of = of;
    input->path = is_path ? g_strdup(name) : g_strdup_printf("%s/%s.json", kind, name);
    input->sha256 = g_strdup(sha256);
    g_ptr_array_add(setup->inputs, input);
}

/* True if @name is there; else an error at the place that names it. */
static bool
check_name(const LhScenario *s, const char *field, const char *kind, const char *name,
           GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *path = lh_data_find(kind, name, &cause);

    if (path == NULL)
        return lh_scenario_error(s, field, error, "%s", cause->message);
    return true;
}

/* ---- the model ---- */

bool
lh_setup_has_sizes(const LhScenario *s)
{
    return s->num_attention_heads != 0 || s->num_query_groups != 0 || s->kv_channels != 0;
}

bool
lh_setup_takes_default_model(const LhScenario *s)
{
    return s->model == NULL && s->model_text == NULL && !lh_setup_has_sizes(s);
}

/* What says the sizes that attention alone has: no model of a name does. Of heads that are given
 * without their width, it is that of most models. */
static LhModel *
model_of_sizes(const LhScenario *s, GError **error)
{
    const uint64_t groups = s->num_query_groups, channels = s->kv_channels;
    g_autofree char *text = NULL;

    if (s->step) {
        lh_scenario_error(s,
                          s->num_attention_heads != 0 ? "num_attention_heads"
                          : groups != 0               ? "num_query_groups"
                                                      : "kv_channels",
                          error,
                          "a training step takes a whole model, of which this is one size: give "
                          "--model, too");
        return NULL;
    }
    if (s->num_attention_heads == 0) {
        lh_scenario_error(s, groups != 0 ? "num_query_groups" : "kv_channels", error,
                          "of how many heads? Give --num-attention-heads, or --model");
        return NULL;
    }
    text = g_strdup_printf("{\"schema\": \"longhaul.model/1\", \"name\": \"the sizes given%s\", "
                           "\"source\": \"options\", \"num_layers\": 1, "
                           "\"hidden_size\": 1, \"num_attention_heads\": %" G_GUINT64_FORMAT ", "
                           "\"num_query_groups\": %" G_GUINT64_FORMAT
                           ", \"kv_channels\": %" G_GUINT64_FORMAT ", "
                           "\"ffn_hidden_size\": 1, \"gated_mlp\": true, \"vocab_size\": 1, "
                           "\"tied_embeddings\": false}",
                           channels != 0 ? "" : ", with heads as wide as most models have them",
                           s->num_attention_heads, s->num_attention_heads,
                           channels != 0 ? channels : LH_DEFAULT_KV_CHANNELS);
    return lh_model_parse("the sizes given", text, strlen(text), error);
}

/* Of a model that no config.json says, there is nothing to assume or to ignore. */
static bool
check_reading(const LhScenario *s, GError **error)
{
    const char *field = s->assume != NULL ? "assume" : s->ignore_key != NULL ? "ignore_key" : NULL;

    if (field == NULL)
        return true;
    return lh_scenario_error(s, field, error, "it is about the config.json of --model, and %s",
                             s->model_text != NULL
                                 ? "here the configuration itself says the model's shape"
                             : lh_setup_has_sizes(s) ? "here sizes are given in place of a model"
                                                     : "no model is given");
}

LhModel *
lh_setup_load_model(const LhScenario *s, GError **error)
{
    const char *name = s->model != NULL ? s->model : LH_DEFAULT_MODEL;
    const LhModelReading how = { .assume = s->assume, .ignored = s->ignore_key };

    if (s->model == NULL && !check_reading(s, error))
        return NULL;
    if (s->model == NULL && s->model_text != NULL)
        return lh_model_parse(s->model_file, s->model_text, strlen(s->model_text), error);
    if (s->model == NULL && lh_setup_has_sizes(s))
        return model_of_sizes(s, error);
    if (!lh_model_is_folder(name) && !check_name(s, "model", "models", name, error))
        return NULL;
    return lh_model_load_as(name, &how, error);
}

LhDocuments *
lh_setup_load_documents(const LhScenario *s, GError **error)
{
    return s->document_lengths == NULL ? NULL : lh_documents_load(s->document_lengths, error);
}

GPtrArray *
lh_setup_schedules(const LhScenario *s, GError **error)
{
    g_autoptr(GPtrArray) schedules = g_ptr_array_new();

    if (s->schedule == NULL) {
        for (guint i = 0; s->schedule_file == NULL && lh_schedules[i] != NULL; i++)
            g_ptr_array_add(schedules, (gpointer)lh_schedules[i]);
        return g_steal_pointer(&schedules);
    }
    for (guint i = 0; i < s->schedule->len; i++) {
        g_autoptr(GError) cause = NULL;
        const LhSchedule *schedule = lh_schedule_find(g_ptr_array_index(s->schedule, i), &cause);

        if (schedule == NULL) {
            lh_scenario_error(s, "schedule", error, "%s", cause->message);
            return NULL;
        }
        if (g_ptr_array_find(schedules, schedule, NULL)) {
            lh_scenario_error(s, "schedule", error, "%s is named twice", schedule->name);
            return NULL;
        }
        g_ptr_array_add(schedules, (gpointer)schedule);
    }
    return g_steal_pointer(&schedules);
}

LhProgram *
lh_setup_load_program(const LhScenario *s, GError **error)
{
    const char *field = lh_scenario_program_field(s);

    if (s->schedule_file == NULL && s->unproven)
        lh_scenario_error(s, "unproven", error,
                          "it is about the program of --schedule-file, and none was given");
    if (s->schedule_file == NULL)
        return NULL;
    if (field != NULL) {
        lh_scenario_error(s, field, error, "the schedule file %s says this itself; leave it out",
                          s->schedule_file);
        return NULL;
    }
    return lh_program_load(s->schedule_file, error);
}

/* --- the program's parameters -------------------------------------------------------------------
 */

/* What was given is what can be given otherwise: groups that divide the heads, or heads that the
 * model's groups divide. */
static bool
refuse_groups(const LhScenario *s, uint64_t heads, uint64_t groups, GError **error)
{
    g_autofree char *near = NULL;
    uint32_t below, above;

    if (s->num_query_groups != 0) {
        lh_divisors_near((uint32_t)heads, (uint32_t)groups, (uint32_t)heads, &below, &above);
        near = lh_near_text(below, above);
    } else {
        near = lh_near_text(heads / groups * groups, (heads / groups + 1) * groups);
    }
    return lh_scenario_error(
        s, s->num_query_groups != 0 ? "num_query_groups" : "num_attention_heads", error,
        "%" G_GUINT64_FORMAT " key-value heads do not divide %" G_GUINT64_FORMAT
        " query heads; nearest legal numbers: %s",
        groups, heads, near);
}

static bool
fill_heads(const LhScenario *s, const LhModel *model, LhAttention *a, GError **error)
{
    const uint64_t heads =
        s->num_attention_heads != 0 ? s->num_attention_heads : model->num_attention_heads;
    uint64_t groups = s->num_query_groups;

    /* As in Megatron-LM, heads alone mean as many groups; a model with grouped heads keeps its
     * groups. */
    if (groups == 0)
        groups =
            s->num_attention_heads != 0 && model->num_query_groups == model->num_attention_heads
                ? heads
                : model->num_query_groups;
    if (groups > heads || heads % groups != 0)
        return refuse_groups(s, heads, groups, error);
    a->heads = (uint32_t)heads;
    a->groups = (uint32_t)groups;
    a->head_dim = (uint32_t)(s->kv_channels != 0 ? s->kv_channels : model->kv_channels);
    /* Other heads are another model's: its activations are as wide as they are. */
    if (s->num_attention_heads == 0 && s->kv_channels == 0)
        a->hidden_size = (uint32_t)model->hidden_size;
    return true;
}

bool
lh_setup_is_linear(const LhScenario *s, const LhModel *model)
{
    bool needed = false;

    if (s->attention >= 0)
        return s->attention == 1;
    if (s->model != NULL || s->model_text != NULL || s->schedule == NULL)
        return lh_model_count(model, LH_LAYER_LINEAR) == model->num_layers;
    for (guint i = 0; i < s->schedule->len; i++) {
        const LhSchedule *schedule = lh_schedule_find(g_ptr_array_index(s->schedule, i), NULL);

        if (schedule == NULL || !lh_schedule_takes(schedule, true))
            return false;
        needed |= !lh_schedule_takes(schedule, false);
    }
    return needed;
}

static bool
fill_attention(const LhScenario *s, const LhSources *from, uint32_t ranks, LhAttention *a,
               GError **error)
{
    const LhDocuments *documents = from->documents;
    const uint64_t packed = documents == NULL ? 0 : documents->ends[documents->count - 1];

    a->batch = (uint32_t)MAX(s->micro_batch_size, 1);
    a->seq_length = s->seq_length != 0 ? s->seq_length
                    : packed != 0      ? packed
                                       : (uint64_t)LH_DEFAULT_TOKENS_PER_RANK * ranks;
    if (packed != 0 && packed != a->seq_length)
        return lh_scenario_error(s, "document_lengths", error,
                                 "the documents of %s have %" G_GUINT64_FORMAT
                                 " tokens, the sequence has %" G_GUINT64_FORMAT,
                                 s->document_lengths, packed, a->seq_length);
    a->dtype = s->dtype < 0 ? LH_DTYPE_BF16 : (LhDtype)s->dtype;
    a->linear = lh_setup_is_linear(s, from->model);
    a->decay = s->linear_decay;
    if (!a->linear && a->decay != 0)
        return lh_scenario_error(s, "linear_decay", error,
                                 "this is softmax attention, which has no decay; see --attention");
    return fill_heads(s, from->model, a, error);
}

bool
lh_setup_takes_window(const LhScenario *s, const LhModel *model, const LhAttention *a)
{
    return !a->linear && !lh_scenario_has(s, "mask") && !lh_scenario_has(s, "window_size") &&
           model->sliding_window < a->seq_length && lh_model_windowed(model) > 0 &&
           lh_model_windowed(model) == lh_model_count(model, LH_LAYER_SOFTMAX);
}

static bool
fill_mask(const LhScenario *s, const LhSources *from, const LhAttention *a, LhMaskRule *mask,
          GError **error)
{
    mask->causal = s->mask < 0 ? !from->model->bidirectional : s->mask == 0;
    mask->window = s->window_size;
    if (lh_setup_takes_window(s, from->model, a))
        mask->window = from->model->sliding_window;
    if (mask->window != 0 && !mask->causal)
        return lh_scenario_error(s, "window_size", error, "a sliding window needs a causal mask");
    if (from->documents != NULL) {
        mask->document_ends = from->documents->ends;
        mask->documents_count = from->documents->count;
    }
    return true;
}

/* Whether an option's two numbers say how many ranks there are. */
static bool
is_shape_of_ranks(const LhOption *option)
{
    return option->type == LH_OPTION_GRID || option->type == LH_OPTION_SIZES;
}

bool
lh_setup_ranks(const LhScenario *s, uint64_t *ranks, GError **error)
{
    const LhOption *const *options = lh_schedule_options();

    *ranks = 0;
    for (guint i = 0; options[i] != NULL; i++) {
        LhOptionValue value;

        if (!lh_scenario_option(s, options[i], &value, error))
            return false;
        if (is_shape_of_ranks(options[i]) && value.first != 0)
            *ranks = (uint64_t)value.first * value.second;
    }
    if (__builtin_mul_overflow(*ranks, MAX(s->data_parallel_size, 1), ranks))
        *ranks = UINT64_MAX;
    return true;
}

/* What only some schedules ask for. */
static bool
fill_options(const LhScenario *s, LhProgramParams *p, GError **error)
{
    const LhOption *const *options = lh_schedule_options();

    for (guint i = 0; options[i] != NULL; i++) {
        LhOptionValue value;

        if (!lh_scenario_option(s, options[i], &value, error))
            return false;
        if (options[i]->type == LH_OPTION_SIZES && value.first != 0 &&
            (uint64_t)value.first * value.second != p->ranks)
            return lh_scenario_error(s, options[i]->name, error,
                                     "the product of the sizes is %" G_GUINT64_FORMAT
                                     ", and there are %u ranks",
                                     (uint64_t)value.first * value.second, p->ranks);
        lh_option_set(p, options[i], value);
    }
    return true;
}

/* Cuts @ranks into the groups of data parallelism. */
static bool
fill_groups(const LhScenario *s, uint32_t ranks, LhProgramParams *p, GError **error)
{
    const uint64_t groups = s->step && s->context_parallel_size != 0
                                ? ranks / s->context_parallel_size
                                : MAX(s->data_parallel_size, 1);
    g_autofree char *near = NULL;
    uint64_t below = groups, above = groups;

    p->data_parallel_size = (uint32_t)groups;
    p->ranks = (uint32_t)(ranks / groups);
    if (ranks % groups == 0)
        return true;
    while (ranks % below != 0)
        below--;
    while (above < ranks && ranks % above != 0)
        above++;
    near = lh_near_text(below, above > ranks ? below : above);
    return lh_scenario_error(s, "data_parallel_size", error,
                             "%u ranks cannot be cut into %" G_GUINT64_FORMAT
                             " equal groups; nearest legal numbers: %s",
                             ranks, groups, near);
}

bool
lh_setup_params(const LhScenario *s, const LhSources *from, uint32_t ranks, LhProgramParams *params,
                GError **error)
{
    LhProgramParams p = { .gpus_per_node = from->gpus_per_node };

    if (!fill_groups(s, ranks, &p, error) ||
        !fill_attention(s, from, p.ranks, &p.attention, error) ||
        !fill_mask(s, from, &p.attention, &p.mask, error) || !fill_options(s, &p, error))
        return false;
    if (from->model->refusal != NULL && p.attention.seq_length > from->model->refused_above) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_INPUT, from->model->refusal);
        return false;
    }
    p.pass = s->pass < 0 ? LH_PASS_BOTH : (LhPass)(s->pass + 1);
    *params = p;
    return true;
}

/* --- the cluster --------------------------------------------------------------------------------
 */

/* A name may be a path with colons in it: only digits after the last one count. */
bool
lh_setup_cluster_has_nodes(const char *text)
{
    const char *colon = strrchr(text, ':');

    return colon != NULL && strchr(colon, '/') == NULL;
}

static bool
split_cluster(const LhScenario *s, const char *text, char **name, uint64_t *nodes, GError **error)
{
    const char *colon = strrchr(text, ':');

    *nodes = 0;
    if (!lh_setup_cluster_has_nodes(text)) {
        *name = g_strdup(text);
        return true;
    }
    if (!g_ascii_string_to_unsigned(colon + 1, 10, 1, UINT16_MAX, nodes, NULL))
        return lh_scenario_error(s, "cluster", error,
                                 "\"%s\" is not a number of nodes; allowed: NAME or NAME:NODES, 1 "
                                 "to 65535 nodes",
                                 colon + 1);
    *name = g_strndup(text, (gsize)(colon - text));
    return true;
}

static bool
load_cluster(LhSetup *setup, const char *name, GError **error)
{
    const LhScenario *s = setup->scenario;

    if (!check_name(s, "cluster", "topologies", name, error))
        return false;
    setup->topology = lh_topology_load(name, error);
    if (setup->topology == NULL)
        return false;
    add_input(setup, "cluster", "topologies", name, setup->topology->sha256);
    setup->device = lh_device_load(setup->topology->device_name, error);
    if (setup->device == NULL)
        return false;
    add_input(setup, "device", "devices", setup->topology->device_name, setup->device->sha256);
    return true;
}

static bool
overlay_profile(LhSetup *setup, GError **error)
{
    g_autoptr(LhProfile) profile = NULL;

    if (setup->scenario->profile == NULL)
        return true;
    profile = lh_profile_load(setup->scenario->profile, error);
    if (profile == NULL)
        return false;
    add_input(setup, "profile", NULL, setup->scenario->profile, profile->sha256);
    return lh_profile_apply(profile, setup->device, setup->topology, error);
}

/* What the scenario has otherwise, over what was measured, too. */
static bool
change_cluster(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;
    const char *field;
    g_autofree char *reason = lh_topology_change_refusal(&s->change, setup->topology, &field);

    if (reason != NULL)
        return lh_scenario_error(s, field, error, "%s", reason);
    lh_topology_change(setup->topology, &s->change);
    return true;
}

char *
lh_setup_refusal_of_cluster(const LhScenario *scenario, const char *text)
{
    g_autofree char *name = NULL;
    g_autofree char *reason = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) topology = NULL;
    const char *field;
    uint64_t nodes;

    if (!split_cluster(scenario, text, &name, &nodes, NULL))
        return NULL;
    topology = lh_topology_load(name, NULL);
    if (topology == NULL)
        return NULL;
    reason = lh_topology_change_refusal(&scenario->change, topology, &field);
    if (reason == NULL)
        return NULL;
    lh_scenario_error(scenario, field, &error, "%s", reason);
    return g_strdup(error->message);
}

/* Has the device use the library that is named, or leaves it no other curves of forward attention
 * than those of the kernel that is. */
static bool
choose_attention(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;
    GArray *kernels = setup->device->kernels;
    bool found = false;

    if (s->attention_kernel == NULL)
        return true;
    if (lh_attention_has(setup->device, s->attention_kernel)) {
        lh_device_use_library(setup->device, s->attention_kernel);
        return true;
    }
    for (guint i = 0; i < kernels->len; i++)
        found |= strcmp(g_array_index(kernels, LhKernelRate, i).kernel, s->attention_kernel) == 0;
    if (!found || lh_kernels[lh_kernel_find(s->attention_kernel)]->effect != LH_EFFECT_ATTEND)
        return lh_scenario_error(s, "attention_kernel", error,
                                 "the device %s has no library %s, and no curve of a kernel of "
                                 "this name for forward attention",
                                 setup->device->name, s->attention_kernel);
    lh_device_use_library(setup->device, NULL);
    for (guint i = kernels->len; i-- > 0;) {
        const char *name = g_array_index(kernels, LhKernelRate, i).kernel;

        if (strcmp(name, s->attention_kernel) != 0 &&
            lh_kernels[lh_kernel_find(name)]->effect == LH_EFFECT_ATTEND)
            lh_device_drop_curve(setup->device, i);
    }
    return true;
}

/* Ranks and nodes from what was given of them. */
static bool
size_cluster(const LhSetup *setup, uint64_t nodes_given, uint64_t *nodes, uint64_t *ranks,
             GError **error)
{
    const LhTopology *t = setup->topology;
    const uint64_t ranks_given =
        setup->program != NULL ? lh_program_ranks(setup->program) : setup->scenario->ranks;
    const char *blame = lh_scenario_has(setup->scenario, "ranks") ? "ranks" : "cluster";

    if (nodes_given != 0)
        *nodes = nodes_given;
    else if (ranks_given != 0)
        *nodes = (ranks_given + t->gpus_per_node - 1) / t->gpus_per_node;
    else
        *nodes = MAX(t->max_nodes, 1);
    *ranks = ranks_given != 0 ? ranks_given : *nodes * t->gpus_per_node;
    if (t->max_nodes != 0 && *nodes > t->max_nodes)
        return lh_scenario_error(setup->scenario, blame, error,
                                 "%s has at most %" G_GUINT64_FORMAT " nodes of %" G_GUINT64_FORMAT
                                 " GPUs; this needs %" G_GUINT64_FORMAT " nodes",
                                 t->name, t->max_nodes, t->gpus_per_node, *nodes);
    if (*ranks > LH_RANKS_MAX)
        return lh_scenario_error(setup->scenario, blame, error,
                                 "%" G_GUINT64_FORMAT " ranks; 1 to %u are possible", *ranks,
                                 LH_RANKS_MAX);
    if (*ranks > *nodes * t->gpus_per_node)
        return lh_scenario_error(setup->scenario, blame, error,
                                 "%" G_GUINT64_FORMAT " ranks do not fit on %" G_GUINT64_FORMAT
                                 " nodes of %" G_GUINT64_FORMAT " GPUs (%s)",
                                 *ranks, *nodes, t->gpus_per_node, t->name);
    return true;
}

static bool
build_cluster(LhSetup *setup, uint32_t *ranks_out, GError **error)
{
    const LhScenario *s = setup->scenario;
    g_autofree char *name = NULL;
    uint64_t nodes_given, nodes, ranks;

    setup->cluster_defaulted = s->cluster == NULL;
    setup->model_defaulted = setup->program == NULL && lh_setup_takes_default_model(s);
    if (s->cluster == NULL && s->ranks == 0 && setup->program == NULL &&
        (s->cost < 0 || s->cost == LH_COST_DEVICE)) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "no cluster: give --cluster NAME[:NODES], --ranks P or a scenario file");
        return false;
    }
    if (!split_cluster(s, s->cluster != NULL ? s->cluster : LH_DEFAULT_CLUSTER, &name, &nodes_given,
                       error) ||
        !load_cluster(setup, name, error))
        return false;
    lh_constants_apply(&s->constants, setup->device, setup->topology);
    lh_slow_down(setup->topology, setup->device);
    if (!overlay_profile(setup, error) || !change_cluster(setup, error) ||
        !choose_attention(setup, error) ||
        !size_cluster(setup, nodes_given, &nodes, &ranks, error) ||
        !lh_check_faults(s, nodes, ranks, error))
        return false;
    *ranks_out = (uint32_t)ranks;
    return lh_network_init(&setup->network, setup->topology, (uint32_t)nodes, (uint32_t)ranks,
                           s->link_fault, error);
}

static bool
fill_explicit(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;
    gsize length;
    g_autofree char *text = lh_input_read(s->schedule_file, LH_JSON_BYTES_MAX, &length, error);
    g_autofree char *sha256 = NULL;

    if (text == NULL)
        return false;
    sha256 = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, length);
    add_input(setup, "schedule_file", NULL, s->schedule_file, sha256);
    setup->params = setup->program->params;
    return true;
}

static bool
load_documents(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;

    if (s->document_lengths == NULL)
        return true;
    setup->documents = lh_setup_load_documents(s, error);
    if (setup->documents == NULL)
        return false;
    add_input(setup, "document_lengths", NULL, s->document_lengths, setup->documents->sha256);
    return true;
}

/* Of schedules that nobody named, those for the other kind of attention alone are beside the
 * question. */
static void
leave_out(LhSetup *setup)
{
    for (guint i = 0; setup->scenario->schedule == NULL && i < setup->schedules->len;) {
        const LhSchedule *schedule = g_ptr_array_index(setup->schedules, i);

        if (lh_schedule_takes(schedule, setup->params.attention.linear)) {
            i++;
            continue;
        }
        g_ptr_array_remove_index(setup->schedules, i);
        setup->left_out++;
    }
}

/* Those in question: of layers of both kinds pairs, else those for the one kind that there is. */
static bool
choose_schedules(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;
    const bool pairs = lh_pairs_wanted(s, setup->model);
    const uint32_t context = setup->step != NULL ? setup->step->params.module.ranks : 0;

    if (!pairs)
        leave_out(setup);
    return lh_pairs_of(s, setup->model, context, setup->schedules, &setup->left_out, error) &&
           lh_check_read(s, setup->schedules, pairs || setup->params.attention.linear, error);
}

/* That of a module, which has one only if it was named. */
static bool
load_module_framework(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;

    if (s->framework == NULL)
        return true;
    if (!check_name(s, "framework", "frameworks", s->framework, error))
        return false;
    setup->framework = lh_framework_load(s->framework, error);
    return setup->framework != NULL;
}

/* The scenario's word is the last. */
static void
use_framework_kernels(LhSetup *setup)
{
    const char *library = setup->framework != NULL ? setup->framework->attention_kernel : NULL;

    if (library != NULL && setup->scenario->attention_kernel == NULL &&
        lh_attention_has(setup->device, library))
        lh_device_use_library(setup->device, library);
}

static bool
fill_program(LhSetup *setup, uint32_t ranks, GError **error)
{
    const LhScenario *s = setup->scenario;
    LhStepSizes sizes = { .tensor = 1, .pipeline = 1 };
    LhSources sources;

    if (setup->program != NULL)
        return fill_explicit(setup, error);
    if (!lh_setup_check_step_fields(s, error) ||
        (s->step && !lh_setup_step_sizes(s, ranks, &sizes, error)))
        return false;
    setup->model = lh_setup_load_model(s, error);
    if (setup->model == NULL)
        return false;
    if (s->model == NULL && s->model_text != NULL)
        add_input(setup, "model", NULL, s->model_file, setup->model->sha256);
    else if (s->model != NULL || lh_setup_takes_default_model(s))
        add_input(setup, "model", "models", s->model != NULL ? s->model : LH_DEFAULT_MODEL,
                  setup->model->sha256);
    if (!load_documents(setup, error))
        return false;
    sources = (LhSources){
        .model = setup->model,
        .documents = setup->documents,
        .gpus_per_node = (uint32_t)setup->topology->gpus_per_node,
    };
    if (!lh_setup_params(s, &sources, s->step ? sizes.context * sizes.data : ranks, &setup->params,
                         error) ||
        (s->step && !lh_setup_fill_step(setup, &sizes, error)))
        return false;
    if (setup->step == NULL && !load_module_framework(setup, error))
        return false;
    use_framework_kernels(setup);
    if (setup->framework != NULL)
        add_input(setup, "framework", "frameworks",
                  s->framework != NULL ? s->framework : setup->framework->name,
                  setup->framework->sha256);
    return choose_schedules(setup, error) && lh_seq_length_round(setup, error);
}

/* What is not asked for, and `auto`, is rings where no group can be too large for them and nothing
 * was measured. Flows of a whole collective, and times of one, have no place where links serve one
 * message after another. */
LhCollectiveModel
lh_setup_collectives(const LhSetup *setup, LhNetworkModel network_model, uint32_t ranks)
{
    const int asked = setup->scenario->collectives;

    if (asked >= 0 && asked != LH_COLLECTIVES_AUTO)
        return (LhCollectiveModel)asked;
    return network_model == LH_NETWORK_FAIR &&
                   (ranks > LH_RING_MEMBERS_MAX || setup->topology->collective_times != NULL)
               ? LH_COLLECTIVES_AUTO
               : LH_COLLECTIVES_RING;
}

static bool
fill_setup(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;
    g_autoptr(GError) cause = NULL;
    uint32_t ranks = 0;

    if (s->json != NULL)
        add_input(setup, "scenario", NULL, s->path, lh_json_sha256(s->json));
    setup->cost = s->cost < 0 ? LH_COST_DEVICE : (LhCostMode)s->cost;
    setup->network_model = s->network < 0 ? LH_NETWORK_FAIR : (LhNetworkModel)s->network;
    setup->schedules = lh_setup_schedules(s, error);
    if (setup->schedules == NULL)
        return false;
    setup->program = lh_setup_load_program(s, &cause);
    if (cause != NULL) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return false;
    }
    if (!lh_check_cost(s, error) || !build_cluster(setup, &ranks, error))
        return false;
    setup->collectives = lh_setup_collectives(setup, setup->network_model, ranks);
    return fill_program(setup, ranks, error);
}

LhSetup *
lh_setup_new(const LhScenario *scenario, GError **error)
{
    g_autoptr(LhSetup) setup = g_new0(LhSetup, 1);

    setup->scenario = scenario;
    setup->inputs = g_ptr_array_new_with_free_func(input_free);
    if (!fill_setup(setup, error))
        return NULL;
    return g_steal_pointer(&setup);
}

LhSetup *
lh_setup_new_cluster(const LhScenario *s, GError **error)
{
    g_autoptr(LhSetup) setup = g_new0(LhSetup, 1);
    uint32_t ranks;

    setup->scenario = s;
    setup->inputs = g_ptr_array_new_with_free_func(input_free);
    setup->network_model = s->network < 0 ? LH_NETWORK_FAIR : (LhNetworkModel)s->network;
    if (!build_cluster(setup, &ranks, error))
        return NULL;
    setup->collectives = lh_setup_collectives(setup, setup->network_model, ranks);
    return g_steal_pointer(&setup);
}

bool
lh_setup_check_one(const LhSetup *setup, GError **error)
{
    /* Where nothing is spread any of them stands for all. */
    const bool alone = setup->step != NULL && setup->step->params.module.ranks == 1;

    return setup->program != NULL || alone || !lh_pairs_wanted(setup->scenario, setup->model) ||
           lh_pairs_check_one(setup->scenario, setup->schedules, error);
}

void
lh_setup_free(LhSetup *setup)
{
    if (setup == NULL)
        return;
    lh_setup_clear_step(setup);
    lh_framework_free(setup->framework);
    lh_model_free(setup->model);
    lh_documents_free(setup->documents);
    lh_topology_free(setup->topology);
    lh_device_free(setup->device);
    lh_program_free(setup->program);
    g_clear_pointer(&setup->schedules, g_ptr_array_unref);
    g_clear_pointer(&setup->inputs, g_ptr_array_unref);
    g_free(setup);
}

/* --- weights ------------------------------------------------------------------------------------
 */

uint64_t
lh_setup_weight_bytes(const LhSetup *setup)
{
    const LhScenario *s = setup->scenario;
    uint64_t bytes;

    if (setup->model == NULL || lh_setup_has_sizes(s))
        return 0;
    return __builtin_mul_overflow(lh_model_parameters(setup->model),
                                  lh_dtype_bytes(setup->params.attention.dtype), &bytes)
               ? UINT64_MAX
               : bytes;
}

uint64_t
lh_setup_weight_bytes_per_rank(const LhSetup *setup)
{
    const uint64_t bytes = lh_setup_weight_bytes(setup), ranks = setup->network.ranks;

    return bytes / ranks + (bytes % ranks != 0);
}

static bool
is_attention_alone(const LhProgram *program)
{
    for (uint32_t i = 0; i < program->slots_count; i++) {
        if (program->slots[i].category != LH_CATEGORY_ATTENTION)
            return false;
    }
    return true;
}

uint64_t
lh_setup_memory_limit_bytes(const LhSetup *setup, const LhProgram *program)
{
    const uint64_t has = setup->device->memory_capacity;
    const uint64_t weights = lh_setup_weight_bytes_per_rank(setup);

    if (setup->cost != LH_COST_DEVICE)
        return 0;
    if (!is_attention_alone(program))
        return MAX(lh_device_usable_bytes(setup->device, LH_MEMORY_MARGIN), 1);
    return weights < has ? has - weights : 1;
}

/* --- running ------------------------------------------------------------------------------------
 */

typedef struct {
    const LhHooks *hooks;
    const char *what;
} Progress;

static bool
report_progress(void *data, uint64_t events, LhTime now_ps)
{
    const Progress *p = data;

    return p->hooks->progress(p->hooks->progress_data, p->what, events, now_ps);
}

LhSimParams
lh_setup_sim_params(const LhSetup *setup, const LhProgram *program)
{
    return (LhSimParams){
        .program = program,
        .network = &setup->network,
        .device = setup->device,
        .network_model = setup->network_model,
        .collectives = setup->collectives,
        .cost = setup->cost,
        .framework = setup->framework,
        .serving = setup->scenario->serving,
        .jitter = setup->scenario->jitter,
        .seed = setup->scenario->seed,
        .stragglers = setup->scenario->straggler,
        .memory_limit_bytes = lh_setup_memory_limit_bytes(setup, program),
    };
}

LhSimResult *
lh_setup_simulate(const LhSetup *setup, const LhProgram *program, const LhNetwork *network,
                  const LhDevice *device, const LhHooks *hooks, GError **error)
{
    Progress progress = { hooks, program->name };
    LhSimParams params = lh_setup_sim_params(setup, program);

    if (network != NULL)
        params.network = network;
    if (device != NULL)
        params.device = device;
    if (hooks != NULL) {
        params.timeline = hooks->timeline;
        params.timeline_data = hooks->timeline_data;
        params.timeline_stride = hooks->timeline_stride;
        params.memory = hooks->memory;
        params.memory_data = hooks->memory_data;
        params.links = hooks->links;
        params.links_data = hooks->links_data;
        params.path = hooks->path;
        params.precedence = hooks->precedence;
        params.time_share = hooks->time_share;
        params.time_share_data = hooks->time_share_data;
        params.limit_ps = hooks->limit_ps;
        params.tails = hooks->tails;
        params.ended_ps = hooks->ended_ps;
        params.progress = hooks->progress != NULL ? report_progress : NULL;
        params.progress_data = &progress;
    }
    return lh_simulate(&params, error);
}
