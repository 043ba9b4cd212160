/*
 * A topology that is being made of what was told: told_topology.c decides on its fields,
 * told_write.c writes them.
 */
#pragma once

#include "import/told_topology.h"

typedef struct {
    const LhToldCluster *told;
    const LhToldParams *params;
    LhTopology t; /* strings are borrowed from @strings or the base */
    GStringChunk *strings;
    GArray *times;  /* of const LhCollectiveTimes *, borrowed */
    GArray *fields; /* of LhToldField */
    uint64_t trays; /* of a node, which is an NVLink domain of several hosts; else 1 */
} LhToldDraft;

/* Files of which no field has anything: a line for each, with the reason. Caller unrefs. */
GPtrArray *lh_told_unused(const LhToldDraft *draft);

/* Appends the document. */
void lh_told_write(const LhToldDraft *draft, GString *out);
