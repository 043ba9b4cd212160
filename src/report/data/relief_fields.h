/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes that would make a case fit in memory, as fields of documents.
 */
#pragma once

#include "base/json/field.h"

/* Fields of an LhReliefs. */
extern const LhField lh_relief_fields[];

/* Row for `relief`, a pointer to an LhReliefs. */
#define LH_RELIEF_ROW(of, relief)                                                                  \
    LH_FIELD_ROW(POINTER, of, relief, "relief", OR_NULL, .fields = lh_relief_fields,               \
                 .description = "If nothing fits in memory: the smallest peak, and single "        \
                                "changes that reduce it; null if something fits, or if unknown.")
