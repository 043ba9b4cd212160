/*
 * What the parts of topology_from_tools.c share: fields that are filled, and where their values are
 * from.
 */
#pragma once

#include "import/cluster/topology_draft.h"

/* Of links but NVLink, as shipped clusters have them. */
#define LH_TOLD_OTHER_CTAS 2
#define LH_TOLD_PCIE_LATENCY_S 3e-6
#define LH_TOLD_NIC_LATENCY_S 13e-6

/* What was told of a kind; NULL: nothing. */
const LhTold *lh_told_of(const LhToldDraft *draft, LhToldKind kind);

/* At most @max characters of @text; the draft's. */
char *lh_told_cut(const LhToldDraft *draft, const char *text, glong max);

/* Says where a field is from; takes @value over. @provenance is -1 if it has none. */
void lh_told_note(const LhToldDraft *draft, const char *path, char *value, int provenance,
                  const char *source);

/* The same of a number of things of a node; @from is NULL if it is the base's. */
void lh_told_note_count(const LhToldDraft *draft, const char *path, uint64_t count,
                        const LhTold *from);

/* Sets the error: no file says the field, which a tool tells. Returns false. */
bool lh_told_missing(const char *path, const char *tool, GError **error);

/* A rate or a latency that was found. */
typedef struct {
    double value; /* nocheck:unit: bytes/s or seconds */
    int provenance;
    const char *source; /* NULL: not found */
    const char *shown;  /* the same, short */
} LhToldFound;

typedef struct {
    LhToldFound rate, latency; /* nocheck:unit: likewise */
} LhToldFoundLink;

typedef struct {
    const char *name;           /* "node.nics" */
    const char *bandwidth_path; /* nocheck:unit: "node.nics.bandwidth" */
    const char *latency_path;   /* nocheck:unit: likewise */
    const char *bandwidth_tool; /* nocheck:unit: which tool tells it */
    const char *latency_tool;   /* nocheck:unit: likewise */
    uint64_t ctas;              /* where the base says nothing */
    double latency_s;           /* where nothing says one, assumed; 0: then it is missing */
} LhToldLinkText;

/* What was told, if anything was. */
LhToldFound lh_told_take(const LhTold *from);

/* What an option gives; 0: nothing. */
LhToldFound lh_told_take_option(double value, const char *option);

/*
 * Fills a class of links of a rate and a latency that were found, if their source is not NULL, else
 * of @base, which may be NULL.
 */
bool lh_told_fill_link(LhToldDraft *draft, LhLinkClass *link, const LhLinkClass *base,
                       const LhToldLinkText *text, LhToldFoundLink found, GError **error);

/* Whether the GPUs of a node never meet over PCIe. */
bool lh_told_is_joined(const LhToldDraft *draft);

/* Whether messages of a run on so many GPUs of a node went over NVLink: all of a ring's did. */
bool lh_told_is_over_nvlink(const LhToldDraft *draft, uint64_t ranks);

/* Adds a line to what is to be known of the topology; takes it over. */
void lh_told_remark(const LhToldDraft *draft, char *line);

/* PCIe: a GPU's own link, and the tree above. */
bool lh_told_fill_pcie(LhToldDraft *draft, GError **error);

/* Whether messages of rows that @base has went over a tree of the draft's form. */
bool lh_told_keeps_tree(const LhToldDraft *draft);

/* What was measured at once of all of some GPUs of a node: a collective, or sends in a ring. */
typedef struct {
    int op; /* as of LhCollectiveTimes */
    uint64_t ranks;
    double rate;      /* bytes/s that each sends, at most: busbw; nocheck:unit: likewise */
    double latency_s; /* of sends; 0: not said */
    const char *source;
} LhToldRun;

/* Of LhToldRun: all that files have of the GPUs of a node; caller unrefs. */
GArray *lh_told_runs(const LhToldDraft *draft);

/* What sends reached that went over NVLink, or did not, or what a short one took: of several runs
 * the fastest, and the first one's latency. */
LhToldFound lh_told_take_sends(const LhToldDraft *draft, bool latency, bool nvlink);

/* Puts what the run that was fastest reached in place of a rate that would not have let it. */
LhToldFound lh_told_at_least(const LhToldRun *fastest, LhToldFound rate);

/* Whether anything tells that there is more than one node. */
bool lh_told_has_nics(const LhToldDraft *draft);

/* The NICs of a node, and what rings of several nodes reach over them. */
bool lh_told_fill_nics(LhToldDraft *draft, GError **error);
bool lh_told_fill_rings(LhToldDraft *draft, GError **error);
