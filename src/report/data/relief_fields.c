/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/relief_fields.h"

#include "compare/memory_relief.h"

static const LhField change_fields[] = {
    LH_FIELD_ROW(STRING, LhRelief, options, "options", ALWAYS,
                 .description = "Changed settings, as options."),
    LH_FIELD_ROW(UINT, LhRelief, peak_bytes, "peak_bytes", ALWAYS, .min = 1, .max = -1,
                 .description = "Peak memory with the change."),
    LH_FIELD_ROW(BOOL, LhRelief, fits, "fits", ALWAYS, .description = "Whether it fits."),
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
                 .description = "Peak memory of the case."),
    LH_FIELD_ROW(UINT, LhReliefs, limit_bytes, "limit_bytes", ALWAYS, .min = 1, .max = -1,
                 .description = "Memory available."),
    LH_FIELD_ROW(CHOICE, LhReliefs, category, "largest", ALWAYS, .choices = lh_category_names,
                 .description = "Largest category of the peak."),
    LH_FIELD_ROW(UINT, LhReliefs, category_bytes, "largest_bytes", ALWAYS,
                 .description = "Bytes of that category."),
    LH_FIELD_ROW(POINTERS, LhReliefs, tried, "changes", ALWAYS, .fields = change_fields,
                 .description = "Changes of the case that are valid programs."),
    LH_FIELD_ROW(UINT, LhReliefs, fitting_length, "fitting_seq_length", OR_NULL, .min = 1,
                 .max = -1, .derive = derive_length,
                 .description = "If no change fits, the largest of a half, a quarter, ... of the "
                                "sequence length that fits; null: none."),
    { .name = NULL },
};
