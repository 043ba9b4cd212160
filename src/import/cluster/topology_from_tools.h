/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A topology file (longhaul.topology/2) of what tools told of a cluster. What they did not tell is
 * kept from another cluster, where there is one.
 */
#pragma once

#include "import/cluster/tool_output.h"
#include "sim/network/topology_change.h"

typedef struct {
    const char *name;        /* of the new cluster */
    const LhTopology *base;  /* what it has otherwise; NULL: nothing */
    const char *device;      /* its GPU, a name of devices/ or a path; NULL: that of @base */
    const char *folder;      /* where the file will be, for paths in it; NULL: here */
    LhTopologyChange change; /* what holds whatever files and base say */
} LhToolParams;

/* A field of the file, and where its value is from. */
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
    /* Of char *, a line each: what was assumed or left out and what would tell it, and which files
     * added nothing, and why. */
    GPtrArray *notes;
} LhToolTopology;

/*
 * LH_ERROR_INPUT if a field is missing (and which tool tells it), or if what was told cannot be
 * true of one cluster. What is returned can be read as a topology file. Caller frees.
 */
LhToolTopology *lh_tool_topology(const LhToolCluster *cluster, const LhToolParams *params,
                                 GError **error);
void lh_tool_topology_free(LhToolTopology *topology);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhToolTopology, lh_tool_topology_free)
