/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provenance of constants, and the relative error that follows from it. All errors are defined
 * here; their evidence is in docs/reference/model.md, "Error bars and ties".
 */
#pragma once

#include "base/json/field.h"

typedef enum {
    LH_PROVENANCE_MEASURED,
    LH_PROVENANCE_FITTED,
    LH_PROVENANCE_DATASHEET,
    LH_PROVENANCE_ASSUMED, /* from memory or by analogy: measure before relying on it */
} LhProvenance;

/* NULL-terminated, indexed by LhProvenance. */
extern const char *const lh_provenance_names[];

/* Evidence for a number, or for several that belong together. */
typedef struct {
    int provenance; /* LhProvenance */
    char *source;   /* NULL: not stated */
} LhEvidence;

/* Rows of tables of fields, for @member of @Type: a provenance alone; or both members of an
 * LhEvidence. Descriptions use @trusted ("the bandwidth") and @come ("the numbers come"). @longest:
 * maximum length of the source in characters, -1: no limit. */
#define LH_FIELD_PROVENANCE(key, Type, member, needed, text)                                       \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_CHOICE, .offset = offsetof(Type, member),                  \
        .flags = (needed), .choices = lh_provenance_names, .description = (text)                   \
    }
#define LH_FIELDS_EVIDENCE(Type, member, needed, longest, trusted, come)                           \
    LH_FIELD_PROVENANCE("provenance", Type, member.provenance, needed,                             \
                        "Provenance of " trusted "."),                                             \
    {                                                                                              \
        .name = "source", .type = LH_FIELD_STRING, .offset = offsetof(Type, member.source),        \
        .flags = (needed), .min = 1, .max = (longest), .description = "Where " come " from."       \
    }

/* Relative errors of a fit to its data: |fitted / measured - 1|; 0: unknown. */
typedef struct {
    double median, worst;
    double holdout; /* worst of the held-out measurements */
    double spread;  /* (slowest rank - fastest) / median, if ranks were measured at the same time */
} LhFitResiduals;

/* Relative error of the model itself, with every constant known. */
#define LH_MODEL_ERROR 0.05

/* Relative error of a constant of @provenance (LhProvenance), in (0, 1). */
double lh_provenance_error(int provenance);

/* Relative error of a fit: its worst residual if known, unless @provenance is assumed. */
double lh_fit_error(int provenance, const LhFitResiduals *residuals);
