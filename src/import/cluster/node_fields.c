/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of a node: its GPUs, their device, and NVLink. Options come before measurements,
 * measurements before what links imply, and all of them before the base.
 */
#include "import/cluster/topology_private.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

#define NVLINK_CTAS 32 /* as in the shipped clusters */
#define GB 1e9
#define NVLS_CAPABILITY 90

/* Bandwidth that NCCL assumes for one NVLink, by compute capability (NCCL's src/graph/topo.h),
 * GB/s. */
static const struct {
    uint64_t capability;
    double rate; /* nocheck:unit: GB/s */
} nvlink_rates[] = { { 60, 18 }, { 70, 20 }, { 80, 20 }, { 86, 12 }, { 90, 20.6 }, { 100, 40.1 } };

/* Finds the number of hosts per node. NVSwitch may join GPUs of several hosts; with such a base,
 * the output of tools on one host describes one tray. */
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
    g_set_error(
        error, LH_ERROR, LH_ERROR_INPUT,
        "%s: error: %.0f GPUs of a host do not divide the NVLink domain of %" G_GUINT64_FORMAT
        " GPUs of %s; give a base whose hosts are like this one",
        gpus->place, gpus->value, base->gpus_per_node, base->name);
    return false;
}

static bool
has_nvlink(const LhTopology *base)
{
    return base != NULL &&
           (base->scale_up == LH_SCALE_UP_SWITCH || base->scale_up == LH_SCALE_UP_PAIRS);
}

/* Checks NVLinks without a known other end. The base or another file says what they join, which
 * must not be nothing. */
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
        g_set_error(
            error, LH_ERROR, LH_ERROR_INPUT,
            "%s; so no file tells what NVLink joins: also give the output of nvidia-smi topo -m, "
            "or --base NAME, a cluster whose GPUs are joined by NVLink in the same way",
            d->told->lost_nvlinks);
    return false;
}

/* Sets the number of hosts: from a file of several hosts, else from a base with as many GPUs, or
 * one of whose hosts the file describes. */
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

bool
lh_tool_fill_shape(LhToolDraft *d, GError **error)
{
    static const char *const tool = "nvidia-smi topo -m and NCCL's topology XML give it";
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

/* Makes the device's path relative to the folder of the file. */
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

bool
lh_tool_fill_device(LhToolDraft *d, LhDevice **device, GError **error)
{
    const LhTopology *base = d->params->base;
    const LhToolOutput *capability = lh_tool_of(d, LH_TOOL_CAPABILITY);

    if (d->params->device == NULL && base == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "no file gives \"device\", the GPU: give --device NAME, a name from longhaul "
                    "list devices, or --base NAME, a cluster to take missing fields from");
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
                "%s: error: the GPUs have compute capability %.0f, but the device %s has %" //
                G_GUINT64_FORMAT "; choose another one with --device",
                capability->place, capability->value, (*device)->name,
                (*device)->compute_capability);
    return false;
}

/* Bandwidth implied by the number of NVLinks. */
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

/* Bytes/s of a run on a GPU's NVLinks. An NVSwitch that reduces (NVLS) needs each vector once up
 * and once down. */
static double
load_on_nvlink(const LhToolDraft *d, const LhDevice *device, const LhToolRun *run)
{
    const double n = (double)run->ranks;
    const bool sums = run->op == LH_COLL_ALL_REDUCE && d->t.scale_up == LH_SCALE_UP_SWITCH &&
                      device->compute_capability >= NVLS_CAPABILITY;

    return sums ? run->rate * fmin(1, (n + 1) / (2 * (n - 1))) : run->rate;
}

/* The run with the highest rate over NVLink; false if there is none. */
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

/* NVLink bandwidth: from sends, else implied by the links, else from the base; raised to the
 * fastest run. An option overrides it. */
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

bool
lh_tool_fill_nvlink(LhToolDraft *d, const LhDevice *device, GError **error)
{
    static const LhToolLinkText text = {
        "node.scale_up",
        "node.scale_up.bandwidth",
        "node.scale_up.latency",
        "sendrecv_perf on one host gives it, as do --nvlink-rate, and nvidia-smi topo -m for GPUs "
        "of a known compute capability",
        "sendrecv_perf -b 8 on one host gives it",
        NVLINK_CTAS,
        0, /* generations differ by a factor of three */
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
