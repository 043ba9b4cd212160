/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lengths of packed documents, read from a text file or drawn. Lengths are counts ("512", "4K")
 * separated by spaces and line breaks; '#' starts a comment that ends with the line. A semicolon
 * separates packs, which have equally many tokens.
 */
#pragma once

#include "model/mask.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define LH_DOCUMENTS_MAX (UINT32_C(1) << 20)

typedef struct {
    uint64_t
        *ends; /* of all packs; of the first: document i ends before token ends[i]; ascending */
    uint32_t count;        /* documents of the first pack, >= 1 */
    LhDocumentPack *packs; /* refer to `ends` */
    uint32_t packs_count;  /* >= 1 */
    char *sha256;          /* of the file; NULL: not from a file */
} LhDocuments;

/* Makes packs of the @ends of all documents, the first of each pack at @firsts (of uint32_t);
 * empties both. Caller frees. */
LhDocuments *lh_documents_new(GArray *ends, GArray *firsts);

/* Errors are LH_ERROR_INPUT with file, line and column. Caller frees. */
LhDocuments *lh_documents_load(const char *path, GError **error);
LhDocuments *lh_documents_parse(const char *file, const char *text, gsize length, GError **error);
void lh_documents_free(LhDocuments *documents);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhDocuments, lh_documents_free)

/* ---- drawn packs ---- */

/*
 * Documents drawn from a distribution follow each other until the sequence is full, where the last
 * one is cut off, as when a stream of documents is cut into sequences.
 */
typedef enum {
    LH_DOCUMENTS_EXPONENTIAL,
    LH_DOCUMENTS_LOGNORMAL,
    LH_DOCUMENTS_EMPIRICAL, /* lengths of a file, each as likely */
} LhDocumentDistributionKind;

typedef struct {
    LhDocumentDistributionKind kind;
    double tokens; /* the mean; of a lognormal distribution the median */
    double sigma;  /* of the logarithm of the length */
} LhDocumentDistribution;

/* Reads "exponential:MEAN", "lognormal:MEDIAN,SIGMA" or "empirical". LH_ERROR_INPUT with what was
 * found and what is allowed. */
bool lh_document_distribution_parse(const char *text, LhDocumentDistribution *distribution,
                                    GError **error);

/*
 * Draws @count packs of @tokens tokens. Pack i depends on @seed and i alone. @sample: the lengths
 * of an empirical distribution, in its first pack. Caller frees. LH_ERROR_INPUT if a pack would
 * have too many documents.
 */
LhDocuments *lh_documents_draw(const LhDocumentDistribution *distribution,
                               const LhDocuments *sample, uint64_t tokens, uint32_t count,
                               uint64_t seed, GError **error);
