/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remedies of a framework: options that it has, off by default, with which a step needs less memory
 * (or less time with as much). Each is a value of one of longhaul's options and what to write in
 * the framework's own configuration.
 */
#pragma once

#include "base/json/field.h"

/* Options of longhaul that a remedy sets. */
typedef enum {
    LH_REMEDY_LOSS,
    LH_REMEDY_TILED_MLP,
    LH_REMEDY_CHECKPOINT, /* only its words: plans search all policies */
    LH_REMEDY_MODULES,
    LH_REMEDY_METHOD,
    LH_REMEDY_OFFLOAD,
    LH_REMEDY_MOMENTS,
    LH_REMEDY_PARAMS,
    LH_REMEDY_GRADS,
    LH_REMEDY_OPTIONS
} LhRemedyOption;

/* Fields of scenarios, NULL-terminated: "loss", "tiled_mlp", ... */
extern const char *const lh_remedy_option_names[];

typedef struct {
    int option;  /* LhRemedyOption */
    char *value; /* "fused"; of modules, those that may be recomputed; of offload, all or layers */
    char *words; /* "{}" stands for a number, or for names of modules */
    bool no_recomputation, no_pipeline; /* excluded together with it */
    bool needs_recomputation;           /* of whole layers */
    bool needs_sharding;                /* of optimizer states, at least */
    int origin;                         /* LhOrigin */
    char *source;
} LhFrameworkRemedy;

extern const LhField lh_framework_remedy_fields[];

/* Clears an array of LhFrameworkRemedy and frees it; NULL is allowed. */
void lh_framework_remedies_free(GArray *remedies);

/* The remedy for @option with @value, or with any if it is NULL. NULL: there is none. Borrowed. */
const LhFrameworkRemedy *lh_framework_remedy(const GArray *remedies, LhRemedyOption option,
                                             const char *value);
