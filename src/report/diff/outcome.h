/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparable part of a result: its entries and their quantities.
 */
#pragma once

#include "report/diff/question.h"

/* Kind of a quantity. */
typedef enum {
    LH_QUANTITY_WHOLE,    /* time, peak memory */
    LH_QUANTITY_PART,     /* part of the time, mean over ranks */
    LH_QUANTITY_TRAFFIC,  /* bytes sent by all ranks */
    LH_QUANTITY_MEMORY,   /* category of the highest peak */
    LH_QUANTITY_RESOURCE, /* of the critical path */
    LH_QUANTITY_PHASE,    /* of the critical path */
    LH_QUANTITY_CALL,     /* of the critical path */
    LH_QUANTITY_KINDS
} LhQuantityKind;

/* "whole", "part", "traffic", "memory", "resource", "phase", "call"; NULL-terminated. */
extern const char *const lh_quantity_names[];

typedef struct {
    char *name; /* owned */
    uint8_t kind;
    bool bytes;   /* else seconds */
    bool gate;    /* gated: must not grow beyond the tolerance */
    double value; /* NAN: none */
} LhQuantity;

/* A schedule, or a configuration of a plan. */
typedef struct {
    bool stands_for;    /* represents the fastest of several, whichever it is; it has no place */
    char *name, *state; /* owned; the state of configurations is "ok" */
    guint place;        /* from 1, by time, among those that ran; 0: did not run */
    GArray *quantities; /* of LhQuantity; the time first */
} LhEntry;

/* The comparable part of a document. */
typedef struct {
    const char *path; /* borrowed */
    char *schema, *version, *sha256;
    char *winner; /* NULL: none */
    LhQueryStampWhole *question;
    bool partial;       /* result of an interrupted command */
    GPtrArray *entries; /* of LhEntry * */
} LhOutcome;

void lh_outcome_free(LhOutcome *outcome);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhOutcome, lh_outcome_free)

/* Returns the entry of that name, or NULL. */
const LhEntry *lh_outcome_entry(const LhOutcome *outcome, const char *name);

/* Time of @entry (may be NULL); NAN without one. */
double lh_entry_time(const LhEntry *entry);

/* The quantity of @entry (may be NULL) of the same kind and name as @like; NULL if it has none. */
const LhQuantity *lh_entry_quantity(const LhEntry *entry, const LhQuantity *like);

/* Frees an LhEntry *. */
void lh_diff_entry_free(gpointer data);

/* Adds an entry without quantities; the returned entry is borrowed. */
LhEntry *lh_outcome_add_entry(LhOutcome *o, const char *name, const char *state);

/* Adds a quantity; ignored if the value is NAN. */
void lh_entry_add_quantity(LhEntry *entry, LhQuantityKind kind, const char *name, bool bytes,
                           double value);

/* Whether it ran, that is, has a time. */
bool lh_entry_ran(const LhEntry *entry);
