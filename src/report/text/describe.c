/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes the simulated case.
 */
#include "report/text/describe.h"

#include "base/escape.h"
#include "compare/error_bar.h"
#include "model/parameters.h"
#include "report/base/text.h"
#include "report/data/constants.h"
#include "report/data/describe_options.h"
#include "report/data/labels.h"
#include "report/data/notes.h"
#include "scenario/profile_links.h"
#include "scenario/schedule_pairs.h"
#include "scenario/setup_weights.h"
#include "scenario/step/setup_step.h"
#include "sim/network/fabric.h"
#include "sim/network/sends.h"
#include "step/layer_info.h"
#include "step/lora.h"
#include "step/packs.h"
#include "step/pipeline/pipeline.h"

void
lh_describe_model(const LhSetup *setup, GString *out)
{
    if (setup->model == NULL)
        return;
    g_string_append(out, " of ");
    lh_escape_line(out, setup->model->name);
    if (setup->model_defaulted)
        g_string_append(out, " (the default: no --model is given)");
}

/* "causal, 16 packs of 3 to 12 documents"; caller frees. */
static char *
describe_packs_mask(const LhStepParams *p)
{
    const LhMaskRule rule = lh_step_pack_mask(p->module.mask, (LhDocumentPack){ 0 });
    g_autofree char *mask = lh_describe_mask(&rule);
    uint32_t least = UINT32_MAX, most = 0;

    for (uint32_t i = 0; i < p->packs_count; i++) {
        least = MIN(least, p->packs[i].count);
        most = MAX(most, p->packs[i].count);
    }
    return least == most ? g_strdup_printf("%s, %u packs of %u document%s", mask, p->packs_count,
                                           most, most == 1 ? "" : "s")
                         : g_strdup_printf("%s, %u packs of %u to %u documents", mask,
                                           p->packs_count, least, most);
}

/* Describes the imbalance of packs. */
static void
describe_imbalance(const LhStepParams *p, GString *out)
{
    const LhStepPackImbalance imbalance = lh_step_pack_imbalance(p);

    g_string_append_printf(out, "query-key pairs, most over mean: %.2f of micro-batches",
                           imbalance.micro_batches);
    if (p->data_parallel > 1)
        g_string_append_printf(out, ", %.2f of data-parallel ranks", imbalance.ranks);
    g_string_append_c(out, '\n');
}

static void
describe_shape(const LhSetup *setup, GString *out)
{
    const LhProgramParams *p = &setup->params;
    const LhAttention *a = &p->attention;
    static const char *const passes[] = { "forward", "backward", "forward + backward" };
    g_autofree char *tokens = lh_format_count(a->seq_length);
    g_autofree char *asked = lh_format_count(setup->asked_length);
    g_autofree char *share = lh_format_count(a->seq_length / p->ranks);
    g_autofree char *mask = lh_describe_mask(&p->mask);

    if (setup->step != NULL && setup->step->params.packs != NULL) {
        g_free(mask);
        mask = describe_packs_mask(&setup->step->params);
    }
    if (setup->step != NULL)
        g_string_append_printf(out, "one %s", lh_step_word(setup));
    else
        g_string_append_printf(out, "one%s attention module", a->linear ? " linear" : "");
    lh_describe_model(setup, out);
    if (setup->step != NULL)
        g_string_append_printf(out, ": %s tokens", tokens);
    else
        g_string_append_printf(out, ", %s: %s tokens", passes[p->pass - 1], tokens);
    if (setup->asked_length != 0)
        g_string_append_printf(out, " (rounded from %s)", asked);
    g_string_append_printf(out, ", %s a rank", share);
    if (a->batch > 1)
        g_string_append_printf(out, ", %u sequences", a->batch);
    g_string_append_printf(out, "; %u heads of %u", a->heads, a->head_dim);
    if (a->groups != a->heads)
        g_string_append_printf(out, " in %u groups", a->groups);
    g_string_append_printf(out, ", %s, %s\n", lh_dtype_names[a->dtype], mask);
}

/* Describes a schedule that is tensor parallelism itself: it uses the ranks that other schedules
 * use for context parallelism. */
static void
describe_shared_weights(const LhSetup *setup, GString *out)
{
    for (guint i = 0; i < setup->schedules->len; i++) {
        const LhSchedule *schedule = g_ptr_array_index(setup->schedules, i);
        LhModel model;
        const LhStepParams p = lh_setup_step_params(setup, schedule, &model);

        if (p.tensor_parallel != setup->step->params.tensor_parallel)
            g_string_append_printf(out, " (%s: tensor parallel %u)", schedule->name,
                                   p.tensor_parallel);
    }
}

void
lh_describe_tiles(const LhStepParams *params, GString *out)
{
    g_autofree char *loss = lh_step_loss_text(params);

    if (params->loss != LH_LOSS_EAGER)
        g_string_append_printf(out, ", loss %s", loss);
    if (params->mlp_tile_rows > 0)
        g_string_append_printf(out, ", MLPs in tiles of %" G_GUINT64_FORMAT " rows",
                               params->mlp_tile_rows);
    if (params->lora_rank > 0) {
        g_autofree char *targets = lh_step_lora_text(params);

        g_string_append_printf(out, ", LoRA of rank %u (%s)", params->lora_rank, targets);
    }
}

void
lh_describe_optimizer(const LhStepParams *params, GString *out)
{
    const LhStepBehaviour *b = &params->behaviour;

    if (params->muon.optimizer == LH_OPTIMIZER_MUON) {
        g_string_append_printf(out, ", Muon (%u Newton-Schulz steps", params->muon.steps);
        if (params->tensor_parallel > 1)
            g_string_append_printf(out, ", %s", lh_muon_tp_mode_names[params->muon.tp_mode]);
        g_string_append(out, ")");
    }
    if (b->moments != LH_MOMENTS_FP32)
        g_string_append_printf(out, ", %s moments",
                               b->moments == LH_MOMENTS_8BIT ? "8-bit" : "16-bit");
    if (b->no_master)
        g_string_append(out, ", no fp32 copy of the weights");
}

/* Describes parallelism and schedule of a training step. */
static void
describe_step(const LhSetup *setup, GString *out)
{
    const LhStepParams *p = &setup->step->params;
    g_autofree char *modules = lh_recompute_text(p->recompute.modules, ", ");
    g_autofree char *layers =
        p->recompute.layers > 0
            ? g_strdup_printf("%s %u", lh_recompute_method_names[p->recompute.method],
                              p->recompute.layers)
            : g_strdup("");

    g_string_append_printf(out, "tensor parallel %u, context parallel %u, data parallel %u",
                           p->tensor_parallel, p->module.ranks, p->data_parallel);
    describe_shared_weights(setup, out);
    if (lh_step_stages(p) > 1)
        g_string_append_printf(out, ", pipeline parallel %u (%s", lh_step_stages(p),
                               p->forward_only ? "forward only"
                                               : lh_pipeline_order_names[p->pipeline_order]);
    if (p->embedding_counts || p->loss_counts)
        g_string_append_printf(
            out, ", %s%s%s counted as layers", p->embedding_counts ? "embedding" : "",
            p->embedding_counts && p->loss_counts ? " and " : "", p->loss_counts ? "loss" : "");
    if (lh_step_chunks(p) > 1)
        g_string_append_printf(out, ", interleaved: %u chunks of layers per stage",
                               lh_step_chunks(p));
    g_string_append_printf(out, "%s; %u micro-batch%s of %u sequence%s; %s",
                           lh_step_stages(p) > 1 ? ")" : "", p->micro_batches,
                           p->micro_batches == 1 ? "" : "es", p->module.attention.batch,
                           p->module.attention.batch == 1 ? "" : "s", lh_shard_names[p->shard]);
    if (!p->forward_only)
        g_string_append_printf(out, ", recomputed: %s%s%s",
                               p->recompute.modules != 0 ? modules
                                                         : lh_checkpoint_names[p->checkpoint],
                               layers[0] != '\0' ? ", " : "", layers);
    if (p->offload_layers > 0)
        g_string_append_printf(out, ", layers offloaded: %s",
                               setup->scenario->cpu_offloading_num_layers);
    if (p->optimizer_offload > 0)
        g_string_append_printf(out, ", optimizer offloaded: %g%s%s", p->optimizer_offload,
                               p->overlap_optimizer_copies ? " with overlap" : "",
                               p->offload_param ? ", with the weights" : "");
    lh_describe_tiles(p, out);
    lh_describe_optimizer(p, out);
    g_string_append_printf(out, "; framework %s\n", setup->step->framework->name);
    if (p->packs != NULL)
        describe_imbalance(p, out);
}

void
lh_describe_experts(const LhModel *m, uint32_t tensor, int shard, GString *out)
{
    static const char *const sharded[] = {
        [LH_SHARD_DDP] = "", /* not sharded */
        [LH_SHARD_ZERO1] = ", with sharded optimizer states",
        [LH_SHARD_ZERO2] = ", with sharded gradients and optimizer states",
        [LH_SHARD_FSDP] = ", sharded like the other weights",
    };
    const uint64_t routed = m->num_experts - MIN(m->num_experts, m->weights.shared_experts);

    if (m->num_experts == 0)
        return;
    g_string_append_printf(
        out, "experts per token: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT,
        m->experts_per_token - MIN(m->experts_per_token, m->weights.shared_experts), routed);
    if (m->weights.shared_experts > 0)
        g_string_append_printf(out, " and %" G_GUINT64_FORMAT " shared", m->weights.shared_experts);
    g_string_append(out, "; assumes balanced routing without dropped tokens; no expert "
                         "parallelism: each rank holds all experts of its layers");
    if (tensor > 1)
        g_string_append_printf(out, ", 1/%u of the width of each", tensor);
    else if (tensor == 0)
        g_string_append(out, ", split like an MLP by tensor parallelism");
    g_string_append(out, shard >= 0 ? sharded[shard] : ", sharded like its other weights");
    g_string_append_c(out, '\n');
}

/* Describes how the model's file was read, and an unusual mask. */
static void
describe_reading(const LhSetup *setup, GString *out)
{
    const LhModel *model = setup->model;

    lh_describe_notes(model, out);
    if (model != NULL && model->bidirectional && !lh_scenario_has(setup->scenario, "mask"))
        g_string_append(
            out, "mask: full, since the model is an encoder; use --mask causal for the other\n");
}

/* For a model with different layers: describes which of them is simulated. */
static void
describe_layers(const LhSetup *setup, GString *out)
{
    const LhModel *model = setup->model;
    const LhProgramParams *p = &setup->params;
    const uint64_t linear = model == NULL ? 0 : lh_model_count(model, LH_LAYER_LINEAR);
    const uint64_t windowed = model == NULL ? 0 : lh_model_windowed(model);
    const uint64_t softmax = model == NULL ? 0 : model->num_layers - linear;
    const bool said =
        lh_scenario_has(setup->scenario, "mask") || lh_scenario_has(setup->scenario, "window_size");

    if (linear > 0 && softmax > 0)
        g_string_append_printf(out,
                               "layers: %" G_GUINT64_FORMAT " have softmax attention and "
                               "%" G_GUINT64_FORMAT
                               " linear attention; this is one of the %s ones; "
                               "see --attention\n",
                               softmax, linear, p->attention.linear ? "linear" : "softmax");
    if (p->attention.linear || said || windowed == 0 ||
        model->sliding_window >= p->attention.seq_length)
        return;
    if (windowed == softmax)
        g_string_append(out, "window: the model's; remove it with --window-size 0\n");
    else
        g_string_append_printf(
            out,
            "layers: %" G_GUINT64_FORMAT
            " attend to the whole sequence, as this one does, and %" G_GUINT64_FORMAT
            " have a sliding window; use --window-size %" G_GUINT64_FORMAT " for one of those\n",
            softmax - windowed, windowed, model->sliding_window);
}

/* Warns about a model too large for the cluster, however it is split. */
static void
describe_weights(const LhSetup *setup, GString *out)
{
    const uint64_t bytes = lh_setup_weight_bytes(setup);
    const double has = (double)setup->device->memory_capacity * setup->network.ranks;
    g_autofree char *count = NULL;
    g_autofree char *needs = lh_format_bytes(bytes);
    g_autofree char *all = lh_format_bytes((uint64_t)has);

    if ((double)bytes <= has)
        return;
    count = lh_format_count(lh_model_parameters(setup->model));
    g_string_append_printf(out,
                           "memory: the weights of %s alone, %s parameters or %s in %s, exceed the "
                           "total %s of these GPUs: it cannot run here\n",
                           setup->model->name, count, needs,
                           lh_dtype_names[setup->params.attention.dtype], all);
}

/* Lists the values that override the topology file. */
static void
describe_change(const LhTopologyChange *change, GString *out)
{
    const struct {
        bool given;
        const char *words;
    } said[] = {
        { change->nics > 0, "NICs" },
        { change->nic_rate > 0, "their rate" },
        { change->nvlink_rate > 0, "NVLink's rate" },
        { change->oversubscription > 0, "oversubscription" },
    };
    const char *separator = "; overriding the file: ";

    for (gsize i = 0; i < G_N_ELEMENTS(said); i++) {
        if (!said[i].given)
            continue;
        g_string_append_printf(out, "%s%s", separator, said[i].words);
        separator = ", ";
    }
}

/* Appends ", 42 GB/s from socket to socket, 25.7 GB/s through memory". */
static void
describe_tree(const LhPcieRates *rates, GString *out)
{
    g_autofree char *per_gpu = lh_format_bandwidth(rates->per_gpu);
    g_autofree char *memory = lh_format_bandwidth(rates->memory);

    for (uint32_t i = 0; i < LH_PCIE_LEVELS_MAX; i++) {
        g_autofree char *up = lh_format_bandwidth(rates->up[i]);

        if (rates->up[i] > 0)
            g_string_append_printf(out, ", %s from %s to %s", up, rates->names[i], rates->names[i]);
    }
    if (rates->per_gpu > 0)
        g_string_append_printf(out, ", %s through memory", per_gpu);
    if (rates->memory > 0)
        g_string_append_printf(out, ", %s through %s memory", memory,
                               rates->memory_gpus > 0 ? "each" : "all");
}

/* Appends "; leaves oversubscribed 2 to 1; groups of 32 nodes oversubscribed 6 to 1 in all". */
static void
describe_trunks(const LhTopology *t, GString *out)
{
    char digits[G_ASCII_DTOSTR_BUF_SIZE];

    for (uint32_t i = 0; i < lh_fabric_levels_count(t); i++) {
        const double below_over_above = lh_fabric_oversubscription(t, i);
        g_autofree char *groups = i == 0 ? g_strdup("leaves")
                                         : g_strdup_printf("groups of %" G_GUINT64_FORMAT " nodes",
                                                           lh_fabric_level(t, i).nodes);

        if (below_over_above > 1)
            g_string_append_printf(out, "; %s oversubscribed %s to 1%s", groups,
                                   lh_double_to_text(below_over_above, digits),
                                   i == 0 ? "" : " in total");
    }
}

void
lh_describe_links(const LhSetup *setup, GString *out)
{
    const LhTopology *t = setup->topology;

    if (t->scale_up != LH_SCALE_UP_NONE) {
        g_autofree char *rate = lh_format_bandwidth(t->nvlink.bandwidth);

        g_string_append_printf(out, "%s %s%s", lh_topology_link_name(t, LH_TIER_NVLINK), rate,
                               t->scale_up == LH_SCALE_UP_PAIRS ? " in pairs" : "");
    } else if (t->pcie.bandwidth > 0) {
        g_autofree char *rate = lh_format_bandwidth(t->pcie.bandwidth);

        g_string_append_printf(out, "PCIe %s", rate);
    }
    describe_tree(&t->tree.rates, out);
    if (t->nics_per_node > 0) {
        g_autofree char *rate = lh_format_bandwidth(t->nic.bandwidth);

        g_string_append_printf(out, "; %" G_GUINT64_FORMAT " x %s to the network", t->nics_per_node,
                               rate);
    }
    lh_describe_pair_limits(&t->nic, ", ", " from GPU to GPU", out);
    describe_trunks(t, out);
    describe_change(&setup->scenario->change, out);
}

/* Appends ", 16 of 18 hosts": the number of hosts a job needs, if nodes have several. */
static void
describe_hosts(const LhNetwork *n, GString *out)
{
    if (n->hosts_per_node > 1)
        g_string_append_printf(out, ", %u of %u hosts",
                               (n->ranks + n->gpus_per_host - 1) / n->gpus_per_host,
                               n->nodes * n->hosts_per_node);
}

static void
describe_cluster(const LhSetup *setup, GString *out)
{
    const LhTopology *t = setup->topology;
    g_autofree char *groups = lh_describe_all_ranks(setup);
    g_autofree char *cluster = lh_escaped_line(t->name);
    g_autofree char *device = lh_escaped_line(setup->device->name);

    g_string_append_printf(out, "%s on %s%s: %u node%s of %" G_GUINT64_FORMAT " x %s", groups,
                           cluster, setup->cluster_defaulted ? " (the default; see --cluster)" : "",
                           setup->network.nodes, setup->network.nodes == 1 ? "" : "s",
                           t->gpus_per_node, device);
    describe_hosts(&setup->network, out);
    g_string_append(out, " (");
    lh_describe_links(setup, out);
    g_string_append(out, ")\n");
}

/* Adds the options of the program, except its shape. */
static void
add_options(const LhSetup *setup, GPtrArray *words)
{
    const LhProgramParams *p = &setup->params;
    const LhProgramParams plain = { .attention = p->attention };
    char decay[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *options = setup->program != NULL ? lh_describe_record(setup->program)
                                                      : lh_describe_options(p, &plain);

    if (p->attention.decay != 0)
        g_ptr_array_add(words,
                        g_strdup_printf("decay %s", lh_double_to_text(p->attention.decay, decay)));
    if (options[0] != '\0')
        g_ptr_array_add(words, g_steal_pointer(&options));
}

/* NULL: nothing to mention: the default, or rings on a cluster without measured times. */
static char *
collectives_words(const LhSetup *setup)
{
    if (setup->collectives == LH_COLLECTIVES_RING && setup->topology->collective_times == NULL)
        return NULL;
    if (setup->collectives != LH_COLLECTIVES_AUTO)
        return g_strdup_printf("collectives %s", lh_collective_model_names[setup->collectives]);
    return setup->network.ranks <= LH_RING_MEMBERS_MAX
               ? NULL
               : g_strdup_printf("collectives of more than %d ranks fluid", LH_RING_MEMBERS_MAX);
}

static void
describe_conditions(const LhSetup *setup, GString *out)
{
    const LhScenario *s = setup->scenario;
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *joined = NULL;
    g_autofree char *collectives = collectives_words(setup);
    char buffer[LH_TEXT_SIZE];

    add_options(setup, words);
    if (setup->cost == LH_COST_DEVICE && setup->network_model != LH_NETWORK_FAIR)
        g_ptr_array_add(words, g_strdup_printf("network model %s",
                                               lh_network_model_names[setup->network_model]));
    if (setup->cost == LH_COST_DEVICE && collectives != NULL)
        g_ptr_array_add(words, g_steal_pointer(&collectives));
    if (setup->cost == LH_COST_DEVICE && lh_topology_assumes_own_links(setup->topology))
        g_ptr_array_add(
            words,
            g_strdup("collectives as measured on similar links (the file does not specify which)"));
    if (s->jitter > 0)
        g_ptr_array_add(words, g_strdup_printf("jitter %s, seed %" G_GUINT64_FORMAT,
                                               lh_text_percent(s->jitter, buffer), s->seed));
    if (s->straggler != NULL)
        g_ptr_array_add(words, g_strdup_printf("%u slow rank%s", s->straggler->len,
                                               s->straggler->len == 1 ? "" : "s"));
    if (s->link_fault != NULL)
        g_ptr_array_add(words, g_strdup_printf("%u fault%s in links", s->link_fault->len,
                                               s->link_fault->len == 1 ? "" : "s"));
    if (s->profile != NULL)
        g_ptr_array_add(words, g_strdup_printf("profile %s", s->profile));
    if (words->len == 0)
        return;
    g_ptr_array_add(words, NULL);
    joined = g_strjoinv("; ", (char **)words->pdata);
    g_string_append(out, "with: ");
    lh_escape_line(out, joined);
    g_string_append_c(out, '\n');
}

/* Whether a schedule reads @option with this kind of attention. */
static bool
is_read(const LhSetup *setup, const LhOption *option)
{
    for (guint i = 0; i < setup->schedules->len; i++) {
        if (lh_schedule_reads(g_ptr_array_index(setup->schedules, i), option))
            return setup->params.attention.linear || !option->linear_only;
    }
    return false;
}

static void
add_unread(const LhSetup *setup, const char *name, GString *unread)
{
    g_autofree char *option = g_strdelimit(g_strdup(name), "_", '-');

    if (lh_scenario_has(setup->scenario, name))
        g_string_append_printf(unread, "%s--%s", unread->len > 0 ? ", " : "", option);
}

/* Lists given options that no schedule reads. */
static void
describe_unread(const LhSetup *setup, GString *out)
{
    const LhOption *const *options = lh_schedule_options();
    g_autoptr(GString) unread = g_string_new(NULL);

    if (!setup->params.attention.linear)
        add_unread(setup, "linear_decay", unread);
    for (; *options != NULL; options++) {
        if (!is_read(setup, *options))
            add_unread(setup, (*options)->name, unread);
    }
    if (unread->len > 0)
        g_string_append_printf(out, "no effect here: %s\n", unread->str);
}

/* Lists given options that only some schedules read. */
static void
describe_partly_read(const LhSetup *setup, GString *out)
{
    const LhOption *const *options = lh_schedule_options();
    g_autoptr(GString) text = g_string_new(NULL);

    for (; *options != NULL; options++) {
        g_autofree char *option = g_strdelimit(g_strdup((*options)->name), "_", '-');
        g_autoptr(GString) readers = g_string_new(NULL);
        guint count = 0;

        for (guint i = 0; i < setup->schedules->len; i++) {
            const LhSchedule *schedule = g_ptr_array_index(setup->schedules, i);

            if (!lh_schedule_reads(schedule, *options))
                continue;
            g_string_append_printf(readers, "%s%s", count++ > 0 ? ", " : "", schedule->name);
        }
        if (lh_scenario_has(setup->scenario, (*options)->name) && count > 0 &&
            count < setup->schedules->len)
            g_string_append_printf(text, "%s--%s by %s", text->len > 0 ? "; " : "", option,
                                   readers->str);
    }
    if (text->len > 0)
        g_string_append_printf(out, "partly read: %s\n", text->str);
}

void
lh_describe_left_out(const LhSetup *setup, GString *out)
{
    const char *plural = setup->left_out == 1 ? "" : "s";

    if (setup->left_out > 0 && lh_pairs_wanted(setup->scenario, setup->model))
        g_string_append_printf(out,
                               "left out: %u pair%s of schedules that place%s tokens differently\n",
                               setup->left_out, plural, setup->left_out == 1 ? "s" : "");
    else if (setup->left_out > 0)
        g_string_append_printf(out, "left out: %u schedule%s for %s attention\n", setup->left_out,
                               plural, setup->params.attention.linear ? "softmax" : "linear");
}

void
lh_describe_case(const LhSetup *setup, GString *out)
{
    g_autofree char *groups = lh_describe_groups(&setup->params);

    describe_shape(setup, out);
    describe_reading(setup, out);
    if (setup->step != NULL) {
        describe_step(setup, out);
        lh_describe_experts(setup->model, setup->step->params.tensor_parallel,
                            (int)setup->step->params.shard, out);
    } else {
        describe_layers(setup, out);
    }
    if (setup->cost == LH_COST_DEVICE)
        describe_cluster(setup, out);
    else
        g_string_append_printf(out, "%s; communication is free, %s\n", groups,
                               setup->cost == LH_COST_UNIT
                                   ? "every attention block takes 1 s"
                                   : "attention runs its exact flops at 1 PFLOP/s");
    if (setup->cost == LH_COST_DEVICE && setup->step == NULL)
        describe_weights(setup, out);
    describe_conditions(setup, out);
    lh_describe_link_notes(setup, out);
    if (setup->program == NULL) {
        describe_unread(setup, out);
        describe_partly_read(setup, out);
    }
    lh_describe_left_out(setup, out);
}
