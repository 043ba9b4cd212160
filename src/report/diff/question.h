/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries read from results, and their comparison.
 */
#pragma once

#include "base/json/json.h"

/* Prefix of the name of a file's digest, followed by the kind of the file. */
#define LH_DIGEST_OF "SHA-256 of "

/* An entry of a query. */
typedef struct {
    char *name;    /* owned: of a field, "--top" for an option, "SHA-256 of model" for a file */
    char *is;      /* owned: effective value; NULL: none */
    char *given;   /* owned: given value, or the default; NULL: none */
    bool is_known; /* the document has the effective value */
    bool on_line;  /* for options: given */
} LhQueryStamp;

/* The query of a document, which may be older than member "asked". */
typedef struct {
    GPtrArray *all; /* of LhQueryStamp * */
    bool told;      /* the document has "asked"; else values are those of its "argv" */
} LhQueryStampWhole;

/* A difference of two queries, with both values: borrowed, NULL: none. */
typedef struct {
    const char *name, *a, *b;
} LhQueryStampOtherwise;

/*
 * Reads the query of @json. Member @of_case ("case"; "": the document itself) has the effective
 * values, of which those in @members count (NULL: all). LH_ERROR_INPUT for an invalid "asked".
 * Caller frees.
 */
LhQueryStampWhole *lh_question_read(const LhJson *json, const char *of_case,
                                    const char *const *members, GError **error);
void lh_question_free(LhQueryStampWhole *question);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhQueryStampWhole, lh_question_free)

/* Adds an effective value; takes over both strings. */
void lh_question_add(LhQueryStampWhole *question, char *name, char *is);

/* Sets the given value of a field, for documents without "asked". */
void lh_question_give(LhQueryStampWhole *question, const char *field, const char *given);

/* Returns all differences: of LhQueryStampOtherwise. Both queries must outlive it. Caller
 * unrefs. */
GArray *lh_question_compare(const LhQueryStampWhole *a, const LhQueryStampWhole *b);
