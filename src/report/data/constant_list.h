/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the constants of a simulation come from, as documents list them.
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

/* All of the setup's device and links; empty if none are used. Of LhConstantValues, to be cleared
 * by lh_constant_fields. */
GArray *lh_constant_values(const LhSetup *setup);
