/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would help where nothing fits in memory, as documents have it.
 */
#pragma once

#include "base/json/field.h"

/* Of an LhReliefs. */
extern const LhField lh_relief_fields[];

/* The row of `relief`, a pointer to one. */
#define LH_RELIEF_ROW(of, relief)                                                                  \
    LH_FIELD_ROW(POINTER, of, relief, "relief", OR_NULL, .fields = lh_relief_fields,               \
                 .description =                                                                    \
                     "Where nothing fits in memory: what what needs least of it needs, and what "  \
                     "would help, one change at a time; null where something fits, or it is not "  \
                     "known.")
