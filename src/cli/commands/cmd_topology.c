/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul topology: makes a topology file from the output of a cluster's tools.
 */
#include "base/error.h"
#include "base/escape.h"
#include "base/files/output.h"
#include "cli/command.h"
#include "report/text/cluster/describe_tool_output.h"

#include <stddef.h>
#include <stdio.h>

#define TOLD_FILES_MAX 256
#define NAME_BYTES_MAX 4096

typedef struct {
    GPtrArray *from; /* of char * */
    char *base;      /* NULL: none */
    char *device;    /* NULL: the base's */
    LhTopologyChange change;
    char *output; /* NULL, "-": standard output */
} TopologyOptions;

static const LhField topology_options[] = {
    LH_OPTION_FROM(TopologyOptions, from, TOLD_FILES_MAX,
                   "Output of one tool: nvidia-smi topo -m, NCCL's topology XML, a program of "
                   "nccl-tests or of perftest (ib_write_bw), or Slurm's topology.conf. The kind is "
                   "detected from the content."),
    { .name = "base",
      .category = LH_ABOUT_INPUT,
      .type = LH_FIELD_STRING,
      .offset = offsetof(TopologyOptions, base),
      .min = 1,
      .max = NAME_BYTES_MAX,
      .placeholder = "NAME",
      .names = "topologies",
      .description =
          "Base topology: a name from longhaul list topologies, or a file. Its fields are "
          "kept, with their provenance, where no file gives them." },
    { .name = "device",
      .category = LH_ABOUT_CLUSTER,
      .type = LH_FIELD_STRING,
      .offset = offsetof(TopologyOptions, device),
      .min = 1,
      .max = NAME_BYTES_MAX,
      .placeholder = "NAME",
      .names = "devices",
      .description = "Device file of the GPU: a name from longhaul list devices, or a file; "
                     "default: that of --base." },
    LH_TOPOLOGY_CHANGE_FIELDS(offsetof(TopologyOptions, change), 0),
    LH_OPTION_WRITES(TopologyOptions, LH_ABOUT_OUTPUT, "output", output,
                     "File to write the topology to, and print a table of its fields; default -, "
                     "standard output, without the table."),
    { .name = NULL },
};

static bool
check_from(const TopologyOptions *o, GError **error)
{
    if (o->from == NULL || o->from->len == 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "topology: no files given; use --from FILE, the output of a tool");
        return false;
    }
    return true;
}

/* Returns the name of the topology. Caller frees. */
static char *
valid_base_name(const char *path)
{
    g_autofree char *base = lh_command_base_name(path, "cluster");

    return g_utf8_make_valid(base, -1);
}

static LhToolTopology *
make(const TopologyOptions *o, const LhToolCluster *cluster, GError **error)
{
    g_autofree char *name = valid_base_name(o->output);
    g_autoptr(LhTopology) base = NULL;
    g_autofree char *folder = lh_command_is_file(o->output) ? g_path_get_dirname(o->output) : NULL;
    LhToolParams params = {
        .name = name, .device = o->device, .folder = folder, .change = o->change
    };

    if (o->base != NULL) {
        params.base = base = lh_topology_load(o->base, error);
        if (base == NULL)
            return NULL;
    }
    return lh_tool_topology(cluster, &params, error);
}

static bool
print_topology(const TopologyOptions *o, const LhToolTopology *topology, GError **error)
{
    g_autoptr(LhTable) table = NULL;
    g_autoptr(GString) out = NULL;

    for (guint i = 0; i < topology->notes->len; i++) {
        g_autofree char *line = lh_escaped_line(g_ptr_array_index(topology->notes, i));

        fprintf(stderr, "%s\n", line);
    }
    if (!lh_command_is_file(o->output))
        return lh_output_stdout(topology->document, topology->length, error);
    if (!lh_output_file(o->output, topology->document, topology->length, error))
        return false;
    table = lh_describe_tool_output(topology);
    out = g_string_new(NULL);
    lh_table_print(table, LH_FORMAT_TABLE, out);
    return lh_output_stdout(out->str, out->len, error);
}

static LhAnswer
run_topology(const LhCommandLine *line, GError **error)
{
    const TopologyOptions *o = line->options;
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(LhToolTopology) topology = NULL;

    if (!check_from(o, error))
        return LH_ANSWER_FAILED;
    for (guint i = 0; i < o->from->len; i++) {
        if (!lh_tool_load(cluster, g_ptr_array_index(o->from, i), error))
            return LH_ANSWER_FAILED;
    }
    topology = make(o, cluster, error);
    if (topology == NULL)
        return LH_ANSWER_FAILED;
    return print_topology(o, topology, error) ? LH_ANSWER_YES : LH_ANSWER_FAILED;
}

const LhCommand lh_command_topology = {
    .name = "topology",
    .arguments = "[OPTIONS] --from FILE... [-o FILE]",
    .summary = "Make a topology file from the output of a cluster's tools.",
    .details = "Reads the output of nvidia-smi topo -m, NCCL (NCCL_TOPO_DUMP_FILE), nccl-tests,\n"
               "perftest and Slurm on one cluster, and writes a file for --cluster. Measured\n"
               "values take precedence over values implied by links and wires. Contradicting\n"
               "files are an error that names both. Fields that no file gives are those of\n"
               "--base; without it, an error names the missing field and the tool that prints\n"
               "it. --nics, --nic-rate, --nvlink-rate and --oversubscription override all files.\n"
               "Unused files, omitted NICs, and assumed or unmeasured values are listed with the\n"
               "reason or the tool that would measure them. Names of hosts are not copied.\n"
               "docs/manual/clusters.md describes what is read from each tool.\n\n"
               "  longhaul topology --from topo.txt --from all_gather_perf.txt --base hgx-h100 \\\n"
               "      -o here.json\n"
               "  longhaul topology --from nccl.xml --from ib_write_bw.txt \\\n"
               "      --from topology.conf --base dgx-a100-80g -o here.json\n"
               "  longhaul compare --cluster ./here.json:2\n",
    .options = topology_options,
    .options_size = sizeof(TopologyOptions),
    .run = run_topology,
};
