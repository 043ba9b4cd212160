/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result of longhaul, as far as it is compared: its entries and their quantities.
 */
#pragma once

#include "report/diff/question.h"

/* What a quantity is a part of. */
typedef enum {
    LH_QUANTITY_WHOLE,    /* the time, the memory */
    LH_QUANTITY_PART,     /* of the time, as a mean over ranks */
    LH_QUANTITY_TRAFFIC,  /* bytes, all ranks together */
    LH_QUANTITY_MEMORY,   /* of the largest peak */
    LH_QUANTITY_RESOURCE, /* of the critical path */
    LH_QUANTITY_PHASE,    /* likewise */
    LH_QUANTITY_CALL,     /* likewise */
    LH_QUANTITY_KINDS
} LhQuantityKind;

/* "whole", "part", "traffic", "memory", "resource", "phase", "call"; NULL-terminated. */
extern const char *const lh_quantity_names[];

typedef struct {
    char *name; /* owned */
    uint8_t kind;
    bool bytes;   /* else seconds */
    bool gate;    /* must not grow beyond the tolerance */
    double value; /* NAN: there is none */
} LhQuantity;

/* One schedule, or one way to train. */
typedef struct {
    bool stands_for;    /* the fastest of others, whichever that is: it has no place */
    char *name, *state; /* owned; the state of ways is "ok" */
    guint place;        /* from 1, by time, among those that ran; 0: did not */
    GArray *quantities; /* of LhQuantity; the time is the first */
} LhEntry;

/* A document, as far as it is compared. */
typedef struct {
    const char *path; /* borrowed */
    char *schema, *version, *sha256;
    char *winner; /* NULL: none */
    LhQueryStampWhole *question;
    bool partial;       /* of a command that was interrupted */
    GPtrArray *entries; /* of LhEntry * */
} LhOutcome;

void lh_outcome_free(LhOutcome *outcome);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhOutcome, lh_outcome_free)

/* The entry of that name; NULL if there is none. */
const LhEntry *lh_outcome_entry(const LhOutcome *outcome, const char *name);

/* The time of @entry (NULL: none); NAN if it has none. */
double lh_entry_time(const LhEntry *entry);

/* The quantity of @entry (NULL: none) that is the same as @like; NULL if it has none. */
const LhQuantity *lh_entry_quantity(const LhEntry *entry, const LhQuantity *like);

/* Of LhEntry *. */
void lh_diff_entry_free(gpointer data);

/* Adds an entry without quantities; borrowed. */
LhEntry *lh_outcome_add_entry(LhOutcome *o, const char *name, const char *state);

/* Adds a quantity; nothing, if there is no value (NAN). */
void lh_entry_add_quantity(LhEntry *entry, LhQuantityKind kind, const char *name, bool bytes,
                           double value);

/* Whether it ran, so that it has a time. */
bool lh_entry_ran(const LhEntry *entry);
