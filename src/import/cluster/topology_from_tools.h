/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a topology file (longhaul.topology/2) from the output of a cluster's tools. Fields that
 * they do not give are taken from another cluster, if there is one.
 */
#pragma once

#include "import/cluster/tool_output.h"
#include "sim/network/topology_change.h"

typedef struct {
    const char *name;        /* of the new cluster */
    const LhTopology *base;  /* source of missing fields; NULL: none */
    const char *device;      /* its GPU, a name of devices/ or a path; NULL: from @base */
    const char *folder;      /* folder of the file, for relative paths in it; NULL: here */
    LhTopologyChange change; /* options, which override files and base */
} LhToolParams;

/* A field of the file, with its source. */
typedef struct {
    const char *path; /* "node.nics.bandwidth"; static */
    char *value;
    int provenance; /* LhProvenance; -1: the field has none */
    char *source;
} LhToolField;

typedef struct {
    char *document;
    gsize length;
    GArray *fields; /* of LhToolField */
    /* Of char *, one line each: values that were assumed or left out and what would give them, and
     * files that added nothing, with the reason. */
    GPtrArray *notes;
} LhToolTopology;

/*
 * Makes the topology file, which is valid. LH_ERROR_INPUT if a field is missing (the error names
 * the tools that give it), or if the values contradict each other. Caller frees.
 */
LhToolTopology *lh_tool_topology(const LhToolCluster *cluster, const LhToolParams *params,
                                 GError **error);
void lh_tool_topology_free(LhToolTopology *topology);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhToolTopology, lh_tool_topology_free)
