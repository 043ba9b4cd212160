/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs of documents drawn from a distribution of lengths: documents follow each other until the
 * sequence is full, and the last one is cut off there, as when a stream of documents is cut into
 * sequences.
 */
#pragma once

#include "scenario/documents.h"

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
