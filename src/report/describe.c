/*
 * What is simulated, in words.
 */
#include "report/describe.h"

#include "base/escape.h"
#include "report/describe_options.h"
#include "report/text.h"

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

    g_string_append_printf(out, "one%s attention module", a->linear ? " linear" : "");
    if (setup->model != NULL) {
        g_string_append(out, " of ");
        lh_escape_line(out, setup->model->name);
    }
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

/* Of a model whose layers differ: which of them this is. */
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
        g_string_append(out, "window: the model's; --window-size 0 asks for none\n");
    else
        g_string_append_printf(out,
                               "layers: %" G_GUINT64_FORMAT " see the whole sequence, as this one "
                               "does, and %" G_GUINT64_FORMAT " have a sliding window; "
                               "--window-size %" G_GUINT64_FORMAT " asks for one of those\n",
                               softmax - windowed, windowed, model->sliding_window);
}

char *
lh_describe_memory_limit(const LhSetup *setup, const LhTotals *totals)
{
    const uint64_t share = lh_setup_weight_bytes_per_rank(setup);
    g_autofree char *buffers = lh_format_bytes(totals->peak_bytes);
    g_autofree char *weights = lh_format_bytes(share);
    g_autofree char *has = lh_format_bytes(setup->device->memory_capacity);

    return g_strdup_printf("rank %u needs %s of attention buffers%s%s%s, a GPU has %s",
                           totals->peak_rank, buffers, share > 0 ? " and at least " : "",
                           share > 0 ? weights : "", share > 0 ? " of weights" : "", has);
}

/* A model that the cluster cannot hold, however it is cut. */
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
                           "%s of these GPUs together: it cannot run here\n",
                           setup->model->name, count, needs,
                           lh_dtype_names[setup->params.attention.dtype], all);
}

static void
describe_links(const LhTopology *t, GString *out)
{
    if (t->scale_up != LH_SCALE_UP_NONE) {
        g_autofree char *rate = lh_format_bandwidth(t->nvlink.bandwidth);

        g_string_append_printf(out, "%s %s%s", lh_topology_link_name(t, LH_TIER_NVLINK), rate,
                               t->scale_up == LH_SCALE_UP_PAIRS ? " in pairs" : "");
    } else if (t->pcie.bandwidth > 0) {
        g_autofree char *rate = lh_format_bandwidth(t->pcie.bandwidth);

        g_string_append_printf(out, "PCIe %s", rate);
    }
    if (t->nics_per_node > 0) {
        g_autofree char *rate = lh_format_bandwidth(t->nic.bandwidth);

        g_string_append_printf(out, "; %" G_GUINT64_FORMAT " x %s to the network", t->nics_per_node,
                               rate);
    }
    if (t->nic.flow_bandwidth > 0) {
        g_autofree char *rate = lh_format_bandwidth(t->nic.flow_bandwidth);

        g_string_append_printf(out, ", %s from GPU to GPU", rate);
    }
}

static void
describe_cluster(const LhSetup *setup, GString *out)
{
    const LhTopology *t = setup->topology;
    g_autofree char *groups = lh_describe_groups(&setup->params);
    g_autofree char *cluster = lh_escaped_line(t->name);
    g_autofree char *device = lh_escaped_line(setup->device->name);

    g_string_append_printf(out, "%s on %s%s: %u node%s of %" G_GUINT64_FORMAT " x %s (", groups,
                           cluster, setup->cluster_defaulted ? " (the default; see --cluster)" : "",
                           setup->network.nodes, setup->network.nodes == 1 ? "" : "s",
                           t->gpus_per_node, device);
    describe_links(t, out);
    g_string_append(out, ")\n");
}

/* Adds the options of the program, beyond its shape. */
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

static char *
collectives_words(LhCollectiveModel model)
{
    if (model == LH_COLLECTIVES_AUTO)
        return g_strdup_printf("collectives of more than %d ranks fluid", LH_RING_MEMBERS_MAX);
    return g_strdup_printf("collectives %s", lh_collective_model_names[model]);
}

static void
describe_conditions(const LhSetup *setup, GString *out)
{
    const LhScenario *s = setup->scenario;
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *joined = NULL;
    char buffer[LH_TEXT_SIZE];

    add_options(setup, words);
    if (setup->cost == LH_COST_DEVICE && setup->network_model != LH_NETWORK_FAIR)
        g_ptr_array_add(words, g_strdup_printf("network model %s",
                                               lh_network_model_names[setup->network_model]));
    if (setup->cost == LH_COST_DEVICE && setup->collectives != LH_COLLECTIVES_RING)
        g_ptr_array_add(words, collectives_words(setup->collectives));
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

/* Whether one of the schedules reads @option with this kind of attention. */
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

/* Options that were given and that none of the schedules reads. */
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
        g_string_append_printf(out, "without effect here: %s\n", unread->str);
}

/* Options that were given and that only some of the schedules read. */
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
        g_string_append_printf(out, "read only: %s\n", text->str);
}

void
lh_describe_left_out(const LhSetup *setup, GString *out)
{
    if (setup->left_out > 0)
        g_string_append_printf(out, "left out: %u schedule%s for %s attention\n", setup->left_out,
                               setup->left_out == 1 ? "" : "s",
                               setup->params.attention.linear ? "softmax" : "linear");
}

void
lh_describe_case(const LhSetup *setup, GString *out)
{
    g_autofree char *groups = lh_describe_groups(&setup->params);

    describe_shape(setup, out);
    describe_layers(setup, out);
    if (setup->cost == LH_COST_DEVICE)
        describe_cluster(setup, out);
    else
        g_string_append_printf(out, "%s; communication is free, %s\n", groups,
                               setup->cost == LH_COST_UNIT
                                   ? "every attention block takes 1 s"
                                   : "attention runs its exact flops at 1 PFLOP/s");
    if (setup->cost == LH_COST_DEVICE)
        describe_weights(setup, out);
    describe_conditions(setup, out);
    if (setup->program == NULL) {
        describe_unread(setup, out);
        describe_partly_read(setup, out);
    }
    lh_describe_left_out(setup, out);
}
