/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A topology under construction, and the helpers that fill its fields and record where values come
 * from.
 */
#pragma once

#include "import/cluster/topology_from_tools.h"
#include "sim/cost/device.h"

typedef struct {
    const LhToolCluster *told;
    const LhToolParams *params;
    LhTopology t; /* borrows strings from @strings or the base */
    GStringChunk *strings;
    GArray *times;      /* of const LhCollectiveTimes *, borrowed */
    GArray *fields;     /* of LhToolField */
    GArray *nic_of_gpu; /* of uint64_t: array of @t, if files give it */
    GArray *levels;     /* of LhPcieLevel: array of @t.tree, if files give it */
    GPtrArray *notes;   /* of char *: remarks on the topology, one line each */
    uint64_t trays;     /* hosts per node if that is an NVLink domain of several hosts; else 1 */
} LhToolDraft;

/* Defaults of links other than NVLink, as in the shipped clusters. */
#define LH_TOOL_OTHER_CTAS 2
#define LH_TOOL_PCIE_LATENCY_S 3e-6
#define LH_TOOL_NIC_LATENCY_S 13e-6

/* Output of a kind; NULL: no file has it. */
const LhToolOutput *lh_tool_of(const LhToolDraft *draft, LhToolKind kind);

/* A copy of at most @max characters of @text, owned by the draft. */
char *lh_tool_cut(const LhToolDraft *draft, const char *text, glong max);

/* Records the source of a field; takes ownership of @value. @provenance is -1 if the field has
 * none. */
void lh_tool_note(const LhToolDraft *draft, const char *path, char *value, int provenance,
                  const char *source);

/* lh_tool_note() for a number of things per node; @from is NULL if it comes from the base. */
void lh_tool_note_count(const LhToolDraft *draft, const char *path, uint64_t count,
                        const LhToolOutput *from);

/* Sets the error that no file gives the field; @tool says which tools do. Returns false. */
bool lh_tool_missing(const char *path, const char *tool, GError **error);

/* A rate or a latency, with its source. */
typedef struct {
    double value; /* nocheck:unit: bytes/s or seconds */
    int provenance;
    const char *source; /* NULL: not found */
    const char *shown;  /* short form of the source */
} LhToolFound;

typedef struct {
    LhToolFound rate, latency; /* nocheck:unit: likewise */
} LhToolFoundLink;

typedef struct {
    const char *name;           /* "node.nics" */
    const char *bandwidth_path; /* nocheck:unit: "node.nics.bandwidth" */
    const char *latency_path;   /* nocheck:unit: likewise */
    const char *bandwidth_tool; /* nocheck:unit: which tool gives it */
    const char *latency_tool;   /* nocheck:unit: likewise */
    uint64_t ctas;              /* used without a base */
    double latency_s;           /* assumed if no source gives one; 0: then it is an error */
} LhToolLinkText;

/* Converts an output; not found if @from is NULL. */
LhToolFound lh_tool_take(const LhToolOutput *from);

/* Value of an option; 0: not given. */
LhToolFound lh_tool_take_option(double value, const char *option);

/*
 * Fills a class of links with the rate and latency found, or with those of @base (may be NULL)
 * where their source is NULL.
 */
bool lh_tool_fill_link(LhToolDraft *draft, LhLinkClass *link, const LhLinkClass *base,
                       const LhToolLinkText *text, LhToolFoundLink found, GError **error);

/* Adds a remark on the topology; takes ownership of @line. */
void lh_tool_remark(const LhToolDraft *draft, char *line);

/* ---- collective_runs.c ---- */

/* One measured run on GPUs of a node: a collective, or sends in a ring. */
typedef struct {
    int op; /* op of LhCollectiveTimes */
    uint64_t ranks;
    double rate;      /* bytes/s that each rank sends, best size: busbw; nocheck:unit: likewise */
    double latency_s; /* of sends; 0: unknown */
    const char *source;
} LhToolRun;

/* Returns all runs on GPUs of a node (LhToolRun); caller unrefs. */
GArray *lh_tool_runs(const LhToolDraft *draft);

/* Rate of the fastest sends, or latency of the first ones, among those over NVLink or not. */
LhToolFound lh_tool_take_sends(const LhToolDraft *draft, bool latency, bool nvlink);

/* Replaces the rate by that of the fastest run if the run exceeds it. */
LhToolFound lh_tool_at_least(const LhToolRun *fastest, LhToolFound rate);

/* ---- node_fields.c ---- */

/* Fill in the number of GPUs and what joins them; the device, which the caller frees; NVLink. */
bool lh_tool_fill_shape(LhToolDraft *d, GError **error);
bool lh_tool_fill_device(LhToolDraft *d, LhDevice **device, GError **error);
bool lh_tool_fill_nvlink(LhToolDraft *d, const LhDevice *device, GError **error);

/* ---- pcie_rates.c ---- */

/* Whether GPUs of a node never communicate over PCIe. */
bool lh_tool_is_joined(const LhToolDraft *draft);

/* Whether all messages of a ring on @ranks GPUs of a node went over NVLink. */
bool lh_tool_is_over_nvlink(const LhToolDraft *draft, uint64_t ranks);

/* Fills in PCIe: the GPU's own link, and the tree above it. */
bool lh_tool_fill_pcie(LhToolDraft *draft, GError **error);

/* Whether the base's rows were measured on a PCIe tree of the same form. */
bool lh_tool_keeps_tree(const LhToolDraft *draft);

/* ---- nics.c ---- */

/* Whether any source has NICs, hence more than one node. */
bool lh_tool_has_nics(const LhToolDraft *draft);

/* Fill in the NICs of a node, and the bandwidth of rings over several nodes. */
bool lh_tool_fill_nics(LhToolDraft *draft, GError **error);
bool lh_tool_fill_rings(LhToolDraft *draft, GError **error);

/* ---- node_collectives.c ---- */

/* Whether the base's GPUs are joined in the same way; else its rows do not apply. */
bool lh_tool_is_joined_as_base(const LhToolDraft *d);

/* Fills in times of collectives, from files or from the base. */
bool lh_tool_fill_times(LhToolDraft *d, GError **error);

/* ---- topology_fabric.c ---- */

bool lh_tool_fill_fabric(LhToolDraft *d, GError **error);

/* ---- topology_writer.c ---- */

/* Appends the topology file. */
void lh_tool_write(const LhToolDraft *draft, GString *out);

/* ---- unused_files.c ---- */

/* Adds a remark for each file that no field uses, with the reason. */
void lh_tool_note_unused(const LhToolDraft *draft);
