/*
 * A topology that is being made of what was told: topology_from_tools.c decides on its fields,
 * topology_writer.c writes them.
 */
#pragma once

#include "import/cluster/topology_from_tools.h"

typedef struct {
    const LhToolCluster *told;
    const LhToolParams *params;
    LhTopology t; /* strings are borrowed from @strings or the base */
    GStringChunk *strings;
    GArray *times;      /* of const LhCollectiveTimes *, borrowed */
    GArray *fields;     /* of LhToolField */
    GArray *nic_of_gpu; /* of uint64_t: that of @t, if files tell it */
    GArray *levels;     /* of LhPcieLevel: those of @t.tree, if files tell them */
    GPtrArray *notes;   /* of char *: what to know of the topology, a line each */
    uint64_t trays;     /* of a node, which is an NVLink domain of several hosts; else 1 */
} LhToolDraft;

/* Remarks on files of which no field has anything, with the reason. */
void lh_tool_note_unused(const LhToolDraft *draft);

/* Appends the document. */
void lh_tool_write(const LhToolDraft *draft, GString *out);
