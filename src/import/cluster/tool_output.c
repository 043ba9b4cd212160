/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises which tool printed a file. Readers are listed here and do not depend on it. */
#include "import/cluster/tool_output.h"

#include "base/files/file_input.h"
#include "import/cluster/pcie_tree.h"
#include "import/cluster/readers_private.h"

static const LhToolFormat *const formats[] = {
    &lh_tool_foreign,    &lh_tool_nccl_xml, &lh_tool_smi,
    &lh_tool_nccl_tests, &lh_tool_perftest, &lh_tool_slurm,
};

/* Finds the format by the first line that only one format has. NULL with the error set if there is
 * none. */
static const LhToolFormat *
find_format(LhToolReader *r)
{
    bool more;

    while (lh_tool_next(r, &more)) {
        for (gsize i = 0; more && i < G_N_ELEMENTS(formats); i++) {
            if (formats[i]->has_line(r))
                return formats[i];
        }
        if (more)
            continue;
        r->text.line = 1;
        r->text.line_start = r->text.end;
        lh_text_fail(&r->text, r->text.end,
                     "not the output of a known tool; allowed: nvidia-smi topo -m, NCCL's topology "
                     "XML, nccl-tests, perftest (ib_write_bw), Slurm's topology.conf");
        break;
    }
    return NULL;
}

bool
lh_tool_parse(LhToolCluster *cluster, const char *file, const char *text, gsize length,
              GError **error)
{
    g_autoptr(GArray) words = g_array_new(FALSE, FALSE, sizeof(LhToolWord));
    LhToolReader r = { { file, text, text + length, text, 0, error }, cluster, NULL, words };
    const LhToolFormat *format = NULL;

    if (lh_tool_begin(&r)) {
        text = r.text.at;
        format = find_format(&r);
    }
    if (format == NULL)
        return false;
    lh_tool_rewind(&r, text);
    r.tool = format->name;
    if (!format->read(&r))
        return false;
    g_ptr_array_add(cluster->sources, lh_tool_source(&r));
    return true;
}

bool
lh_tool_load(LhToolCluster *cluster, const char *path, GError **error)
{
    gsize length;
    g_autofree char *text = lh_input_read(path, LH_TOOL_BYTES_MAX, &length, error);

    return text != NULL && lh_tool_parse(cluster, path, text, length, error);
}

/* --- the whole ----------------------------------------------------------------------------------
 */

static void
clear_times(LhCollectiveTimes *row)
{
    lh_json_clear(lh_collective_times_fields, row);
}

static void
clear_said(gpointer said)
{
    g_free(((LhToolSaid *)said)->source);
}

LhToolCluster *
lh_tool_new(void)
{
    LhToolCluster *cluster = g_new0(LhToolCluster, 1);

    cluster->times = g_array_new(FALSE, TRUE, sizeof(LhCollectiveTimes));
    g_array_set_clear_func(cluster->times, (GDestroyNotify)clear_times);
    cluster->said = g_array_new(FALSE, FALSE, sizeof(LhToolSaid));
    g_array_set_clear_func(cluster->said, clear_said);
    cluster->places = g_ptr_array_new_with_free_func(g_free);
    cluster->sources = g_ptr_array_new_with_free_func(g_free);
    cluster->notes = g_ptr_array_new_with_free_func(g_free);
    return cluster;
}

void
lh_tool_free(LhToolCluster *cluster)
{
    if (cluster == NULL)
        return;
    for (int kind = 0; kind < LH_TOOL_KINDS; kind++) {
        g_free(cluster->told[kind].source);
        g_free(cluster->told[kind].place);
    }
    g_array_unref(cluster->times);
    g_array_unref(cluster->said);
    g_ptr_array_unref(cluster->places);
    g_ptr_array_unref(cluster->sources);
    lh_tool_tree_clear(&cluster->tree);
    g_clear_pointer(&cluster->nic_of_gpu, g_array_unref);
    g_ptr_array_unref(cluster->notes);
    g_free(cluster->lost_nvlinks);
    g_free(cluster->unlike_nics);
    g_free(cluster);
}
