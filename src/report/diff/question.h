/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was asked, read from a result, and the questions of two results beside each other.
 */
#pragma once

#include "base/json/json.h"

/* What the name of a file's digest begins with; behind it stands what it is the file of. */
#define LH_DIGEST_OF "SHA-256 of "

/* One thing that was asked. */
typedef struct {
    char *name;    /* owned: a field's, "--top" of an option, "SHA-256 of model" of a file */
    char *is;      /* owned: what it came to; NULL: nothing */
    char *given;   /* owned: what was given, or what it is if nothing is; NULL: nothing */
    bool is_known; /* whether the document says what it came to */
    bool on_line;  /* of options: given */
} LhQueryStamp;

/* What a document says of one question; and one that is older than that member. */
typedef struct {
    GPtrArray *all; /* of LhQueryStamp * */
    bool told;      /* the document has "asked"; else that is what its "argv" has */
} LhQueryStampWhole;

/* Something that two questions have otherwise, and the values: borrowed, NULL: none. */
typedef struct {
    const char *name, *a, *b;
} LhQueryStampOtherwise;

/*
 * The question of @json, whose object at @of_case ("case"; "": the document itself) has what fields
 * came to, of which only those in @members count (NULL: all). LH_ERROR_INPUT for what "asked"
 * cannot have. Caller frees.
 */
LhQueryStampWhole *lh_question_read(const LhJson *json, const char *of_case,
                                    const char *const *members, GError **error);
void lh_question_free(LhQueryStampWhole *question);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhQueryStampWhole, lh_question_free)

/* Adds what something came to: both are taken over. */
void lh_question_add(LhQueryStampWhole *question, char *name, char *is);

/* What was given of a field, as a document that is not `told` shows otherwise. */
void lh_question_give(LhQueryStampWhole *question, const char *field, const char *given);

/* All of it: of LhQueryStampOtherwise. Both must outlive it. Caller unrefs. */
GArray *lh_question_compare(const LhQueryStampWhole *a, const LhQueryStampWhole *b);
