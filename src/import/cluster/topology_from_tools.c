/*
 * See topology_from_tools.h. What was measured is taken before what links and wires imply, and both
 * before what the base has; options come before all. A latency between nodes is that of a whole
 * route: what the base says of PCIe is subtracted from it. Left out: NICs that are not alike.
 */
#include "import/cluster/topology_from_tools.h"

#include "base/error.h"
#include "import/cluster/topology_fields.h"
#include "sim/cost/device.h"

#include <math.h>
#include <string.h>

#define TEXT_MAX 1000  /* characters of a field */
#define NVLINK_CTAS 32 /* what shipped clusters have, where nothing is told */
#define GB 1e9
#define NVLS_CAPABILITY 90

/* What NCCL counts with for one NVLink, by compute capability (NCCL's src/graph/topo.h), GB/s. */
static const struct {
    uint64_t capability;
    double rate; /* nocheck:unit: GB/s */
} nvlink_rates[] = { { 60, 18 }, { 70, 20 }, { 80, 20 }, { 86, 12 }, { 90, 20.6 }, { 100, 40.1 } };

/* --- a node -------------------------------------------------------------------------------------
 */

/* NVSwitch may join GPUs of several hosts: of such a base, what tools print on one of its hosts is
 * of a tray. */
static bool
find_trays(LhToolDraft *d, GError **error)
{
    const LhToolOutput *gpus = lh_tool_of(d, LH_TOOL_GPUS), *kind = lh_tool_of(d, LH_TOOL_SCALE_UP);
    const LhTopology *base = d->params->base;

    d->trays = 1;
    if (base == NULL || gpus == NULL || base->scale_up != LH_SCALE_UP_SWITCH ||
        lh_topology_hosts(base) == 1 || gpus->value > (double)lh_topology_gpus_per_host(base) ||
        (kind != NULL && kind->value != LH_SCALE_UP_SWITCH))
        return true;
    d->trays = base->gpus_per_node / (uint64_t)gpus->value;
    if (d->trays * (uint64_t)gpus->value == base->gpus_per_node)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: %.0f GPUs, a host of the NVLink domain of %" G_GUINT64_FORMAT
                " GPUs that %s is, do not divide these; give a base whose hosts are like this one",
                gpus->place, gpus->value, base->gpus_per_node, base->name);
    return false;
}

static bool
has_nvlink(const LhTopology *base)
{
    return base != NULL &&
           (base->scale_up == LH_SCALE_UP_SWITCH || base->scale_up == LH_SCALE_UP_PAIRS);
}

/* NVLinks that lead nowhere join what the base or another file says; they cannot be none. */
static bool
check_lost(const LhToolDraft *d, GError **error)
{
    const LhToolOutput *kind = lh_tool_of(d, LH_TOOL_SCALE_UP);

    if (d->told->lost_nvlinks == NULL ||
        (kind != NULL ? kind->value != LH_SCALE_UP_NONE : has_nvlink(d->params->base)))
        return true;
    if (kind != NULL)
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s; and there is no NVLink in %s; give files "
                    "that agree",
                    d->told->lost_nvlinks, kind->place);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s; so no file says what NVLink joins: give what nvidia-smi topo -m prints as "
                    "well, or --base NAME, a cluster with NVLink whose GPUs are joined likewise",
                    d->told->lost_nvlinks);
    return false;
}

/* A file of several hosts says how many; else a base of as many GPUs does, or one of whose hosts
 * the file is. */
static void
fill_hosts(LhToolDraft *d)
{
    const LhToolOutput *hosts = lh_tool_of(d, LH_TOOL_HOSTS);
    const LhTopology *base = d->params->base;
    const bool like_base = base != NULL && d->t.gpus_per_node == base->gpus_per_node &&
                           d->t.scale_up == base->scale_up;

    d->t.hosts = hosts != NULL                ? (uint64_t)hosts->value
                 : like_base && d->trays == 1 ? base->hosts
                                              : d->trays;
    if (hosts != NULL)
        lh_tool_note_count(d, "node.hosts", d->t.hosts, hosts);
}

static bool
fill_shape(LhToolDraft *d, GError **error)
{
    static const char *const tool = "nvidia-smi topo -m and NCCL's topology XML tell it";
    static const char *const kinds[] = { "none", "nvswitch", "pairs", "memory" };
    const LhToolOutput *gpus = lh_tool_of(d, LH_TOOL_GPUS), *kind = lh_tool_of(d, LH_TOOL_SCALE_UP);
    const LhTopology *base = d->params->base;

    if (gpus == NULL && base == NULL)
        return lh_tool_missing("node.gpus", tool, error);
    if (!find_trays(d, error) || !check_lost(d, error))
        return false;
    if (kind == NULL && base == NULL)
        return lh_tool_missing("node.scale_up.kind", tool, error);
    d->t.gpus_per_node = gpus != NULL ? (uint64_t)gpus->value * d->trays : base->gpus_per_node;
    d->t.scale_up = kind != NULL ? (int)kind->value : base->scale_up;
    fill_hosts(d);
    lh_tool_note_count(d, "node.gpus", d->t.gpus_per_node, gpus);
    lh_tool_note(d, "node.scale_up.kind", g_strdup(kinds[d->t.scale_up]), -1,
                 kind != NULL ? kind->source : base->name);
    return true;
}

/* The path of a device that stands in the file is relative to the file. */
static void
place_device(LhToolDraft *d)
{
    const char *name = d->t.device_name, *folder = d->params->folder;
    g_autofree char *path = NULL;

    if ((strchr(name, '/') == NULL && !g_str_has_suffix(name, ".json")) || folder == NULL ||
        g_path_is_absolute(name) || strcmp(folder, ".") == 0)
        return;
    path = g_canonicalize_filename(name, NULL);
    d->t.device_name = g_string_chunk_insert(d->strings, path);
}

static bool
fill_device(LhToolDraft *d, LhDevice **device, GError **error)
{
    const LhTopology *base = d->params->base;
    const LhToolOutput *capability = lh_tool_of(d, LH_TOOL_CAPABILITY);

    if (d->params->device == NULL && base == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "no file says \"device\", the GPU: give --device NAME, a word of longhaul list "
                    "devices, or --base NAME, a cluster whose fields are kept where no file says "
                    "them");
        return false;
    }
    d->t.device_name = g_string_chunk_insert(
        d->strings, d->params->device != NULL ? d->params->device : base->device_name);
    *device = lh_device_load(d->t.device_name, error);
    if (*device == NULL)
        return false;
    place_device(d);
    lh_tool_note(d, "device", g_strdup(d->t.device_name), -1,
                 d->params->device != NULL ? "--device" : base->name);
    if (capability == NULL || (*device)->compute_capability == 0 ||
        capability->value == (double)(*device)->compute_capability)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: the GPUs have compute capability %.0f, and the device %s has %" //
                G_GUINT64_FORMAT "; choose another one with --device",
                capability->place, capability->value, (*device)->name,
                (*device)->compute_capability);
    return false;
}

/* What the number of links implies. */
static LhToolFound
count_nvlinks(const LhToolDraft *d, const LhDevice *device)
{
    const LhToolOutput *links = lh_tool_of(d, LH_TOOL_NVLINKS);

    for (guint i = 0; links != NULL && i < G_N_ELEMENTS(nvlink_rates); i++) {
        if (nvlink_rates[i].capability == device->compute_capability) {
            g_autofree char *source =
                g_strdup_printf("%.0f links, %s, of %g GB/s, NCCL's src/graph/topo.h", links->value,
                                links->source, nvlink_rates[i].rate);

            const char *kept = g_string_chunk_insert(d->strings, source);

            return (LhToolFound){ links->value * nvlink_rates[i].rate * GB, LH_PROVENANCE_DATASHEET,
                                  kept, kept };
        }
    }
    return (LhToolFound){ 0 };
}

/* Bytes/s of a run on a GPU's NVLinks. An NVSwitch that sums has a vector once up, and once down.
 */
static double
load_on_nvlink(const LhToolDraft *d, const LhDevice *device, const LhToolRun *run)
{
    const double n = (double)run->ranks;
    const bool sums = run->op == LH_COLL_ALL_REDUCE && d->t.scale_up == LH_SCALE_UP_SWITCH &&
                      device->compute_capability >= NVLS_CAPABILITY;

    return sums ? run->rate * fmin(1, (n + 1) / (2 * (n - 1))) : run->rate;
}

/* The run with most of what GPUs of a node sent over NVLink; false if there is none. */
static bool
fastest_over_nvlink(const LhToolDraft *d, const LhDevice *device, LhToolRun *fastest)
{
    g_autoptr(GArray) runs = lh_tool_runs(d);

    *fastest = (LhToolRun){ .rate = 0 };
    for (guint i = 0; i < runs->len; i++) {
        LhToolRun run = g_array_index(runs, LhToolRun, i);

        run.rate = load_on_nvlink(d, device, &run);
        if (lh_tool_is_over_nvlink(d, run.ranks) && run.rate > fastest->rate)
            *fastest = run;
    }
    return fastest->rate > 0;
}

/* What messages reached, or what the links imply, and no less than went over them; an option holds
 * whatever was measured. */
static LhToolFound
find_nvlink_rate(const LhToolDraft *d, const LhDevice *device)
{
    const LhTopology *base = d->params->base;
    LhToolFound rate = lh_tool_take_option(d->params->change.nvlink_rate, "--nvlink-rate");
    LhToolRun fastest;

    if (rate.source != NULL)
        return rate;
    rate = lh_tool_take_sends(d, false, true);
    if (rate.source == NULL)
        rate = count_nvlinks(d, device);
    if (rate.source == NULL && base != NULL)
        rate.value = base->nvlink.bandwidth;
    return rate.value > 0 && fastest_over_nvlink(d, device, &fastest)
               ? lh_tool_at_least(&fastest, rate)
               : rate;
}

static bool
fill_nvlink(LhToolDraft *d, const LhDevice *device, GError **error)
{
    static const LhToolLinkText text = {
        "node.scale_up",
        "node.scale_up.bandwidth",
        "node.scale_up.latency",
        "sendrecv_perf on one host tells it, and nvidia-smi topo -m does of GPUs of a compute "
        "capability whose links are known, and --nvlink-rate",
        "sendrecv_perf -b 8 on one host tells it",
        NVLINK_CTAS,
        0, /* generations differ by three times */
    };
    LhToolFoundLink found;

    if (d->t.scale_up == LH_SCALE_UP_NONE)
        return true;
    found.rate = find_nvlink_rate(d, device);
    found.latency = lh_tool_take_sends(d, true, true);
    return lh_tool_fill_link(d, &d->t.nvlink,
                             d->params->base != NULL ? &d->params->base->nvlink : NULL, &text,
                             found, error);
}

/* --- collectives of a node -----------------------------------------------------------------------
 */

static bool
is_of_case(const LhCollectiveTimes *a, const LhCollectiveTimes *b)
{
    return a->op == b->op && a->ranks == b->ranks;
}

/* Two runs of one operation, on as many GPUs, with one version of NCCL, or with one that is not
 * known. */
static bool
check_twice(const LhToolDraft *d, guint index, GError **error)
{
    const GArray *rows = d->told->times;
    const LhCollectiveTimes *row = &g_array_index(rows, LhCollectiveTimes, index);

    for (guint i = 0; i < index; i++) {
        const LhCollectiveTimes *before = &g_array_index(rows, LhCollectiveTimes, i);

        if (!is_of_case(before, row) ||
            (before->nccl != NULL && row->nccl != NULL && strcmp(before->nccl, row->nccl) != 0))
            continue;
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: %s on %" G_GUINT64_FORMAT
                    " GPUs is measured here and in %s; give one of them, or runs of different "
                    "versions of NCCL",
                    (const char *)g_ptr_array_index(d->told->places, index),
                    lh_times_op_names[row->op], row->ranks,
                    (const char *)g_ptr_array_index(d->told->places, i));
        return false;
    }
    return true;
}

static bool
is_replaced(const LhToolDraft *d, const LhCollectiveTimes *row)
{
    for (guint i = 0; i < d->told->times->len; i++) {
        if (is_of_case(&g_array_index(d->told->times, LhCollectiveTimes, i), row))
            return true;
    }
    return row->ranks > d->t.gpus_per_node;
}

/* @place: of a run on one host. */
static bool
check_ranks_fit(const LhToolDraft *d, uint64_t ranks, const char *place, GError **error)
{
    if (ranks <= d->t.gpus_per_node)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: %" G_GUINT64_FORMAT " ranks ran on one host, and a node has %" //
                G_GUINT64_FORMAT " GPUs; give files that agree",
                place, ranks, d->t.gpus_per_node);
    return false;
}

/* Sends whose times make no row. */
static bool
check_peers(const LhToolDraft *d, GError **error)
{
    static const LhToolKind kinds[] = { LH_TOOL_PEER_RATE, LH_TOOL_PEER_LATENCY };

    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const LhToolOutput *peer = lh_tool_of(d, kinds[i]);

        if (peer != NULL && !check_ranks_fit(d, peer->ranks, peer->place, error))
            return false;
    }
    return true;
}

/* Rows of the base are of another machine if its GPUs are joined otherwise. */
static bool
is_joined_as_base(const LhToolDraft *d)
{
    return d->params->base->scale_up == d->t.scale_up &&
           (lh_tool_is_joined(d) || lh_tool_keeps_tree(d));
}

static bool
fill_times(LhToolDraft *d, GError **error)
{
    const GArray *kept = d->params->base != NULL ? d->params->base->collective_times : NULL;
    const bool other = kept != NULL && !is_joined_as_base(d);
    guint dropped = 0;

    if (!check_peers(d, error))
        return false;

    for (guint i = 0; i < d->told->times->len; i++) {
        const LhCollectiveTimes *row = &g_array_index(d->told->times, LhCollectiveTimes, i);

        if (!check_twice(d, i, error))
            return false;
        if (!check_ranks_fit(d, row->ranks, g_ptr_array_index(d->told->places, i), error))
            return false;
        lh_tool_note(d, "node.collective_times",
                     g_strdup_printf("%s, %" G_GUINT64_FORMAT " GPUs, %u sizes",
                                     lh_times_op_names[row->op], row->ranks, row->bytes->len),
                     row->provenance, row->source);
        g_array_append_val(d->times, row);
    }
    for (guint i = 0; kept != NULL && i < kept->len; i++) {
        const LhCollectiveTimes *row = &g_array_index(kept, LhCollectiveTimes, i);

        if (is_replaced(d, row))
            continue;
        if (other)
            dropped++;
        else
            g_array_append_val(d->times, row);
    }
    if (dropped > 0)
        lh_tool_remark(d,
                       g_strdup_printf("node.collective_times: %u rows of %s are left out, since "
                                       "its GPUs are joined otherwise",
                                       dropped, d->params->base->name));
    return true;
}

/* --- the whole ----------------------------------------------------------------------------------
 */

/* What Slurm counts are hosts: of an NVLink domain, trays. */
static bool
count_nodes(const LhToolDraft *d, const LhToolOutput *hosts, uint64_t *nodes, GError **error)
{
    *nodes = (uint64_t)hosts->value / d->trays;
    if (*nodes * d->trays == (uint64_t)hosts->value)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: %.0f hosts are no whole number of NVLink domains of %" G_GUINT64_FORMAT
                " hosts, as %s has them",
                hosts->place, hosts->value, d->trays, d->params->base->name);
    return false;
}

static void
keep_fabric(LhToolDraft *d)
{
    const LhTopology *base = d->params->base;

    d->t.oversubscription = 1;
    if (base == NULL)
        return;
    d->t.fabric = base->fabric;
    d->t.nodes_per_leaf = base->nodes_per_leaf;
    d->t.oversubscription = base->oversubscription;
    memcpy(d->t.above, base->above, sizeof(d->t.above));
    d->t.fabric_levels = base->fabric_levels;
    d->t.switch_latency_ps = base->switch_latency_ps;
    d->t.max_nodes = base->nics_per_node > 0 ? base->max_nodes : 0;
}

/* Rails are crossed inside a node. */
static bool
check_rail(const LhToolDraft *d, GError **error)
{
    const LhToolOutput *kind = lh_tool_of(d, LH_TOOL_SCALE_UP);

    if (d->t.fabric != LH_FABRIC_RAIL || d->t.nics_per_node < 2 ||
        d->t.scale_up == LH_SCALE_UP_SWITCH || kind == NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: no NVSwitch, which the fabric \"rail\" of %s needs to cross rails; "
                "give a base of another fabric, or a topology.conf",
                kind->place, d->params->base->name);
    return false;
}

/* Groups of the base's other levels are of its own leaves. */
static bool
check_leaves(const LhToolDraft *d, const LhToolOutput *leaf, GError **error)
{
    const LhTopology *base = d->params->base;

    if (d->t.fabric_levels == NULL || d->t.nodes_per_leaf == base->nodes_per_leaf)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: leaves of %" G_GUINT64_FORMAT " nodes, and the fabric of %s has "
                "\"levels\", the first of %" G_GUINT64_FORMAT
                " nodes; give a base whose leaves are like these, or whose fabric has no levels",
                leaf->place, d->t.nodes_per_leaf, base->name, base->nodes_per_leaf);
    return false;
}

static bool
fill_fabric(LhToolDraft *d, GError **error)
{
    const LhToolOutput *leaf = lh_tool_of(d, LH_TOOL_NODES_PER_LEAF),
                       *nodes = lh_tool_of(d, LH_TOOL_NODES);
    const double given = d->params->change.oversubscription;
    char digits[G_ASCII_DTOSTR_BUF_SIZE];

    keep_fabric(d);
    if (leaf != NULL) {
        d->t.fabric = LH_FABRIC_FAT_TREE;
        if (!count_nodes(d, leaf, &d->t.nodes_per_leaf, error) || !check_leaves(d, leaf, error))
            return false;
        lh_tool_note(d, "fabric.nodes_per_leaf",
                     g_strdup_printf("%" G_GUINT64_FORMAT, d->t.nodes_per_leaf), -1, leaf->source);
    }
    if (nodes != NULL) {
        if (!count_nodes(d, nodes, &d->t.max_nodes, error))
            return false;
        lh_tool_note(d, "max_nodes", g_strdup_printf("%" G_GUINT64_FORMAT, d->t.max_nodes), -1,
                     nodes->source);
    }
    if (given > 0) {
        d->t.oversubscription = given;
        lh_tool_note(d, "fabric.oversubscription", g_strdup(lh_double_to_text(given, digits)), -1,
                     "--oversubscription");
    }
    if (d->t.nics_per_node == 0)
        d->t.max_nodes = 1;
    return check_rail(d, error);
}

/* Options that the topology has no place for. */
static bool
check_options(const LhToolDraft *d, GError **error)
{
    LhTopology t = d->t;
    const char *field;
    g_autofree char *reason = NULL;
    g_autofree char *option = NULL;

    t.name = (char *)(guintptr)d->params->name;
    if (lh_tool_of(d, LH_TOOL_RINGS_RATE) != NULL)
        t.collective_bandwidth = 0; /* what was measured was so with these NICs */
    reason = lh_topology_change_refusal(&d->params->change, &t, &field);
    if (reason == NULL)
        return true;
    option = g_strdup(field);
    g_strdelimit(option, "_", '-');
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "--%s: %s", option, reason);
    return false;
}

/* The names of the files that were read, as many as there is room for. */
static void
fill_texts(LhToolDraft *d)
{
    static const char *const shapes[] = { "without NVLink", "on NVSwitch", "with NVLink in pairs",
                                          "that share memory" };
    g_autoptr(GString) source = g_string_new("longhaul topology: ");
    g_autofree char *description = NULL;

    if (d->params->base != NULL)
        g_string_append_printf(source, "what no file says is of %s; ", d->params->base->name);
    for (guint i = 0; i < d->told->sources->len; i++)
        g_string_append_printf(source, "%s%s", i == 0 ? "" : ", ",
                               (const char *)g_ptr_array_index(d->told->sources, i));
    description = g_strdup_printf("%" G_GUINT64_FORMAT " x %s %s, %" G_GUINT64_FORMAT
                                  " NICs, as a cluster's own tools print it.",
                                  d->t.gpus_per_node, d->t.device_name, shapes[d->t.scale_up],
                                  d->t.nics_per_node);
    d->t.source = lh_tool_cut(d, source->str, TEXT_MAX);
    d->t.description = lh_tool_cut(d, description, TEXT_MAX);
    d->t.name = lh_tool_cut(d, d->params->name, TEXT_MAX);
}

static bool
fill_draft(LhToolDraft *d, GError **error)
{
    const LhTopology *base = d->params->base;
    LhDevice *device = NULL;
    bool ok;

    ok = fill_shape(d, error) && fill_device(d, &device, error) && fill_nvlink(d, device, error) &&
         lh_tool_fill_pcie(d, error) && lh_tool_fill_nics(d, error) &&
         lh_tool_fill_rings(d, error) && fill_times(d, error);
    lh_device_free(device);
    if (!ok)
        return false;
    if (base != NULL) {
        d->t.collective_lines = is_joined_as_base(d) ? base->collective_lines : NULL;
        d->t.product_slowdown = base->product_slowdown;
        d->t.attention_slowdown = base->attention_slowdown;
        d->t.slowdown_provenance = base->slowdown_provenance;
        d->t.slowdown_source = base->slowdown_source;
    }
    if (!fill_fabric(d, error) || !check_options(d, error))
        return false;
    fill_texts(d);
    return true;
}

/* What is written must be readable: rules that no field's value tells are held there. */
static bool
write_checked(const LhToolDraft *d, LhToolTopology *topology, GError **error)
{
    GString *out = g_string_new(NULL);
    g_autofree char *file = g_strdup_printf("%s.json", d->params->name);
    g_autoptr(LhTopology) again = NULL;

    lh_tool_write(d, out);
    topology->length = out->len;
    topology->document = g_string_free(out, FALSE);
    again = lh_topology_parse(file, topology->document, topology->length, error);
    if (again != NULL)
        return true;
    g_prefix_error(error, "what was told makes no topology file: ");
    return false;
}

static void
clear_field(gpointer data)
{
    LhToolField *field = data;

    g_free(field->value);
    g_free(field->source);
}

LhToolTopology *
lh_tool_topology(const LhToolCluster *cluster, const LhToolParams *params, GError **error)
{
    LhToolTopology *topology = g_new0(LhToolTopology, 1);
    g_autoptr(GStringChunk) strings = g_string_chunk_new(TEXT_MAX);
    g_autoptr(GArray) times = g_array_new(FALSE, FALSE, sizeof(const LhCollectiveTimes *));
    g_autoptr(GArray) levels = g_array_new(FALSE, FALSE, sizeof(LhPcieLevel));
    g_autoptr(GArray) nic_of_gpu = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    LhToolDraft draft = { .told = cluster,
                          .params = params,
                          .strings = strings,
                          .times = times,
                          .levels = levels,
                          .nic_of_gpu = nic_of_gpu };

    topology->fields = draft.fields = g_array_new(FALSE, FALSE, sizeof(LhToolField));
    g_array_set_clear_func(topology->fields, clear_field);
    topology->notes = draft.notes = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < cluster->notes->len; i++)
        lh_tool_remark(&draft, g_strdup(g_ptr_array_index(cluster->notes, i)));
    if (!fill_draft(&draft, error) || !write_checked(&draft, topology, error)) {
        lh_tool_topology_free(topology);
        return NULL;
    }
    lh_tool_note_unused(&draft);
    return topology;
}

void
lh_tool_topology_free(LhToolTopology *topology)
{
    if (topology == NULL)
        return;
    g_array_unref(topology->fields);
    g_ptr_array_unref(topology->notes);
    g_free(topology->document);
    g_free(topology);
}
