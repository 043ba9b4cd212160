/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for tables of fields that read documents of results.
 */
#pragma once

#include "base/json/json.h"

#include <stddef.h>

/* A number that may be null; it is NAN then. */
#define LH_OUTCOME_NUMBER_OR_NULL(in, member, key)                                                 \
    {                                                                                              \
        .name = key, .type = LH_FIELD_DOUBLE, .offset = offsetof(in, member),                      \
        .flags = LH_FIELD_OR_NULL, .min = 0, .max = -1                                             \
    }
#define LH_OUTCOME_STRING(in, member, key)                                                         \
    {                                                                                              \
        .name = key, .type = LH_FIELD_STRING, .offset = offsetof(in, member),                      \
        .flags = LH_FIELD_REQUIRED                                                                 \
    }
