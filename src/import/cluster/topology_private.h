/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A topology that is being made of what was told, and what the files share that fill its fields:
 * where values are from, and how that is said.
 */
#pragma once

#include "import/cluster/topology_from_tools.h"
#include "sim/cost/device.h"

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

/* Of links but NVLink, as shipped clusters have them. */
#define LH_TOOL_OTHER_CTAS 2
#define LH_TOOL_PCIE_LATENCY_S 3e-6
#define LH_TOOL_NIC_LATENCY_S 13e-6

/* What was told of a kind; NULL: nothing. */
const LhToolOutput *lh_tool_of(const LhToolDraft *draft, LhToolKind kind);

/* At most @max characters of @text; the draft's. */
char *lh_tool_cut(const LhToolDraft *draft, const char *text, glong max);

/* Says where a field is from; takes @value over. @provenance is -1 if it has none. */
void lh_tool_note(const LhToolDraft *draft, const char *path, char *value, int provenance,
                  const char *source);

/* The same of a number of things of a node; @from is NULL if it is the base's. */
void lh_tool_note_count(const LhToolDraft *draft, const char *path, uint64_t count,
                        const LhToolOutput *from);

/* Sets the error: no file says the field, which a tool tells. Returns false. */
bool lh_tool_missing(const char *path, const char *tool, GError **error);

/* A rate or a latency that was found. */
typedef struct {
    double value; /* nocheck:unit: bytes/s or seconds */
    int provenance;
    const char *source; /* NULL: not found */
    const char *shown;  /* the same, short */
} LhToolFound;

typedef struct {
    LhToolFound rate, latency; /* nocheck:unit: likewise */
} LhToolFoundLink;

typedef struct {
    const char *name;           /* "node.nics" */
    const char *bandwidth_path; /* nocheck:unit: "node.nics.bandwidth" */
    const char *latency_path;   /* nocheck:unit: likewise */
    const char *bandwidth_tool; /* nocheck:unit: which tool tells it */
    const char *latency_tool;   /* nocheck:unit: likewise */
    uint64_t ctas;              /* where the base says nothing */
    double latency_s;           /* where nothing says one, assumed; 0: then it is missing */
} LhToolLinkText;

/* What was told, if anything was. */
LhToolFound lh_tool_take(const LhToolOutput *from);

/* What an option gives; 0: nothing. */
LhToolFound lh_tool_take_option(double value, const char *option);

/*
 * Fills a class of links of a rate and a latency that were found, if their source is not NULL, else
 * of @base, which may be NULL.
 */
bool lh_tool_fill_link(LhToolDraft *draft, LhLinkClass *link, const LhLinkClass *base,
                       const LhToolLinkText *text, LhToolFoundLink found, GError **error);

/* Adds a line to what is to be known of the topology; takes it over. */
void lh_tool_remark(const LhToolDraft *draft, char *line);

/* ---- collective_runs.c ---- */

/* What was measured at once of all of some GPUs of a node: a collective, or sends in a ring. */
typedef struct {
    int op; /* as of LhCollectiveTimes */
    uint64_t ranks;
    double rate;      /* bytes/s that each sends, at most: busbw; nocheck:unit: likewise */
    double latency_s; /* of sends; 0: not said */
    const char *source;
} LhToolRun;

/* Of LhToolRun: all that files have of the GPUs of a node; caller unrefs. */
GArray *lh_tool_runs(const LhToolDraft *draft);

/* What sends reached that went over NVLink, or did not, or what a short one took: of several runs
 * the fastest, and the first one's latency. */
LhToolFound lh_tool_take_sends(const LhToolDraft *draft, bool latency, bool nvlink);

/* Puts what the run that was fastest reached in place of a rate that would not have let it. */
LhToolFound lh_tool_at_least(const LhToolRun *fastest, LhToolFound rate);

/* ---- node_fields.c ---- */

/* How many GPUs a node has, and what joins them; the device, which the caller frees; and NVLink. */
bool lh_tool_fill_shape(LhToolDraft *d, GError **error);
bool lh_tool_fill_device(LhToolDraft *d, LhDevice **device, GError **error);
bool lh_tool_fill_nvlink(LhToolDraft *d, const LhDevice *device, GError **error);

/* ---- pcie_rates.c ---- */

/* Whether the GPUs of a node never meet over PCIe. */
bool lh_tool_is_joined(const LhToolDraft *draft);

/* Whether messages of a run on so many GPUs of a node went over NVLink: all of a ring's did. */
bool lh_tool_is_over_nvlink(const LhToolDraft *draft, uint64_t ranks);

/* PCIe: a GPU's own link, and the tree above. */
bool lh_tool_fill_pcie(LhToolDraft *draft, GError **error);

/* Whether messages of rows that @base has went over a tree of the draft's form. */
bool lh_tool_keeps_tree(const LhToolDraft *draft);

/* ---- nics.c ---- */

/* Whether anything tells that there is more than one node. */
bool lh_tool_has_nics(const LhToolDraft *draft);

/* The NICs of a node, and what rings of several nodes reach over them. */
bool lh_tool_fill_nics(LhToolDraft *draft, GError **error);
bool lh_tool_fill_rings(LhToolDraft *draft, GError **error);

/* ---- node_collectives.c ---- */

/* Rows of the base are of another machine if its GPUs are joined otherwise. */
bool lh_tool_is_joined_as_base(const LhToolDraft *d);

/* What was measured of collectives, or kept of the base. */
bool lh_tool_fill_times(LhToolDraft *d, GError **error);

/* ---- topology_fabric.c ---- */

bool lh_tool_fill_fabric(LhToolDraft *d, GError **error);

/* ---- topology_writer.c ---- */

/* Appends the document. */
void lh_tool_write(const LhToolDraft *draft, GString *out);

/* ---- unused_files.c ---- */

/* Remarks on files of which no field has anything, with the reason. */
void lh_tool_note_unused(const LhToolDraft *draft);
