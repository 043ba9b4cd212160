/*
 * What the parts of told_topology.c share: fields that are filled, and where their values are from.
 */
#pragma once

#include "import/told_draft.h"

#define LH_TOLD_OTHER_CTAS 2 /* of links but NVLink, as shipped clusters have them */

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

/* Whether anything tells that there is more than one node. */
bool lh_told_has_nics(const LhToldDraft *draft);

/* The NICs of a node, and what rings of several nodes reach over them. */
bool lh_told_fill_nics(LhToldDraft *draft, GError **error);
bool lh_told_fill_rings(LhToldDraft *draft, GError **error);
