/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constants of a simulation with their provenance, as fields of documents.
 */
#pragma once

#include "base/json/field.h"
#include "scenario/setup.h"

typedef struct {
    char *constant;
    int provenance;
    char *source;
} LhConstantValues;

extern const LhField lh_constant_fields[];

/* All constants of the setup's device and links; empty if none are used. Array of LhConstantValues,
 * cleared by lh_constant_fields. */
GArray *lh_constant_values(const LhSetup *setup);
