/*
 * Two results of longhaul beside each other: what has changed in which part, why another one wins,
 * and what has become worse by more than is tolerated. Reads the JSON that sim, compare and plan
 * write: longhaul.result/3, longhaul.plan/1, longhaul.path/1.
 */
#pragma once

#include "report/base/table.h"
#include "report/data/query_stamp.h"

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

/* LH_ERROR_INPUT with file, line and field if it cannot be used. @path must outlive it. Caller
 * frees. */
LhOutcome *lh_outcome_load(const char *path, GError **error);
void lh_outcome_free(LhOutcome *outcome);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhOutcome, lh_outcome_free)

/* Something that is worse. */
typedef struct {
    const char *entry, *what; /* borrowed */
    double a, b;              /* NAN: it does not run */
} LhRegression;

typedef struct {
    const LhOutcome *a, *b; /* borrowed */
    double tolerance;       /* a share; < 0: everything is tolerated */
    GArray *otherwise;      /* of LhQueryStampOtherwise: what was not asked alike */
    GArray *regressions;    /* of LhRegression */
} LhDiff;

/* LH_ERROR_INPUT if they are not of one kind, or if one is partial and there is a tolerance. @a and
 * @b must outlive it. Caller frees. */
LhDiff *lh_diff_new(const LhOutcome *a, const LhOutcome *b, double tolerance, GError **error);
void lh_diff_free(LhDiff *diff);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhDiff, lh_diff_free)

/* The entry of that name; NULL if there is none. */
const LhEntry *lh_outcome_entry(const LhOutcome *outcome, const char *name);

/* The time of @entry (NULL: none); NAN if it has none. */
double lh_entry_time(const LhEntry *entry);

/* The quantity of @entry (NULL: none) that is the same as @like; NULL if it has none. */
const LhQuantity *lh_entry_quantity(const LhEntry *entry, const LhQuantity *like);

/* Names of the entries of both, those of A first: of const char *. Caller unrefs. */
GPtrArray *lh_diff_names(const LhDiff *diff);

/* All quantities of an entry on both sides, those of A first: of const LhQuantity *. Caller
 * unrefs. */
GPtrArray *lh_diff_quantities(const LhEntry *a, const LhEntry *b);
