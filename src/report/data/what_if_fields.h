/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bottlenecks as fields of documents: the run simulated again with one resource 10 % faster.
 */
#pragma once

#include "base/json/field.h"
#include "compare/bottleneck.h"

typedef struct {
    char *of;
    double critical_path_fraction;
    LhTime makespan_ps;
    double saved_fraction, saved_fraction_low, saved_fraction_high;
    char *edit;
} LhWhatIfValues;

/* With the makespan, and without. */
extern const LhField lh_what_if_fields[], lh_what_if_share_fields[];

/* What-ifs of @bound (NULL: none), in its order: of LhWhatIfValues, cleared by lh_what_if_fields.
 */
GArray *lh_what_if_values(const LhTopology *topology, const LhBottleneck *bound);
