/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options come before measurements, measurements before what links and wires imply, and all of them
 * before the base. A latency between nodes is that of a whole route, from which the base's PCIe
 * latency is subtracted. Left out: NICs that are not alike.
 */
#include "import/cluster/topology_from_tools.h"

#include "base/error.h"
#include "import/cluster/topology_private.h"

#define TEXT_MAX 1000 /* characters per field */

/* --- the whole ----------------------------------------------------------------------------------
 */

/* Rejects options that the topology does not support. */
static bool
check_options(const LhToolDraft *d, GError **error)
{
    LhTopology t = d->t;
    const char *field;
    g_autofree char *reason = NULL;
    g_autofree char *option = NULL;

    t.name = (char *)(guintptr)d->params->name;
    if (lh_tool_of(d, LH_TOOL_RINGS_RATE) != NULL)
        t.collective_bandwidth = 0; /* was measured with these NICs */
    reason = lh_topology_change_refusal(&d->params->change, &t, &field);
    if (reason == NULL)
        return true;
    option = g_strdup(field);
    g_strdelimit(option, "_", '-');
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "--%s: %s", option, reason);
    return false;
}

/* Fills in the source, with as many names of files as fit, and the description. */
static void
fill_texts(LhToolDraft *d)
{
    static const char *const shapes[] = { "without NVLink", "on NVSwitch", "with NVLink in pairs",
                                          "that share memory" };
    g_autoptr(GString) source = g_string_new("longhaul topology: ");
    g_autofree char *description = NULL;

    if (d->params->base != NULL)
        g_string_append_printf(source, "missing fields from %s; ", d->params->base->name);
    for (guint i = 0; i < d->told->sources->len; i++)
        g_string_append_printf(source, "%s%s", i == 0 ? "" : ", ",
                               (const char *)g_ptr_array_index(d->told->sources, i));
    description = g_strdup_printf("%" G_GUINT64_FORMAT " x %s %s, %" G_GUINT64_FORMAT
                                  " NICs, from the output of the cluster's tools.",
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

    ok = lh_tool_fill_shape(d, error) && lh_tool_fill_device(d, &device, error) &&
         lh_tool_fill_nvlink(d, device, error) && lh_tool_fill_pcie(d, error) &&
         lh_tool_fill_nics(d, error) && lh_tool_fill_rings(d, error) &&
         lh_tool_fill_times(d, error);
    lh_device_free(device);
    if (!ok)
        return false;
    if (base != NULL) {
        d->t.collective_lines = lh_tool_is_joined_as_base(d) ? base->collective_lines : NULL;
        d->t.product_slowdown = base->product_slowdown;
        d->t.attention_slowdown = base->attention_slowdown;
        d->t.slowdown_from = base->slowdown_from;
    }
    if (!lh_tool_fill_fabric(d, error) || !check_options(d, error))
        return false;
    fill_texts(d);
    return true;
}

/* Writes the document and parses it again, which checks rules across fields. */
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
    g_prefix_error(error, "the result is not a valid topology file:");
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
