/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/relief_fields.h"

#include "compare/memory_relief.h"

static const LhField change_fields[] = {
    LH_FIELD_ROW(STRING, LhRelief, options, "options", ALWAYS,
                 .description = "What is given otherwise, as options."),
    LH_FIELD_ROW(UINT, LhRelief, peak_bytes, "peak_bytes", ALWAYS, .min = 1, .max = -1,
                 .description = "What is needed then."),
    LH_FIELD_ROW(BOOL, LhRelief, fits, "fits", ALWAYS, .description = "Whether there is so much."),
    { .name = NULL },
};

static void
derive_length(const void *of, void *value)
{
    const LhReliefs *reliefs = of;

    *(uint64_t *)value = reliefs->fitting_length > 0 ? reliefs->fitting_length : LH_FIELD_NO_UINT;
}

const LhField lh_relief_fields[] = {
    LH_FIELD_ROW(UINT, LhReliefs, peak_bytes, "peak_bytes", ALWAYS, .min = 1, .max = -1,
                 .description = "What it needs."),
    LH_FIELD_ROW(UINT, LhReliefs, limit_bytes, "limit_bytes", ALWAYS, .min = 1, .max = -1,
                 .description = "What there is."),
    LH_FIELD_ROW(CHOICE, LhReliefs, category, "largest", ALWAYS, .choices = lh_category_names,
                 .description = "What most of that is."),
    LH_FIELD_ROW(UINT, LhReliefs, category_bytes, "largest_bytes", ALWAYS,
                 .description = "How much."),
    LH_FIELD_ROW(POINTERS, LhReliefs, tried, "changes", ALWAYS, .fields = change_fields,
                 .description = "Neighbours of the case that have a program."),
    LH_FIELD_ROW(UINT, LhReliefs, fitting_length, "fitting_seq_length", OR_NULL, .min = 1,
                 .max = -1, .derive = derive_length,
                 .description = "If none of them fits, the largest of a half, a quarter, ... of "
                                "the sequence that does; null: none is known."),
    { .name = NULL },
};
