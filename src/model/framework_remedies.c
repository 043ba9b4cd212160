/* SPDX-License-Identifier: Apache-2.0 */
#include "model/framework_remedies.h"

#include "model/framework.h"

#include <string.h>

#define TEXT_MAX 1000

const char *const lh_remedy_option_names[] = { "loss",
                                               "tiled_mlp",
                                               "checkpoint",
                                               "recompute_modules",
                                               "recompute_method",
                                               "cpu_offloading_num_layers",
                                               "exp_avg_dtype",
                                               "main_params_dtype",
                                               "main_grads_dtype",
                                               NULL };

#define TEXT(member, text)                                                                         \
    {                                                                                              \
        .name = #member, .type = LH_FIELD_STRING, .offset = offsetof(LhFrameworkRemedy, member),   \
        .flags = LH_FIELD_REQUIRED, .min = 1, .max = TEXT_MAX, .description = (text)               \
    }
#define REMEDY_FLAG(member, text)                                                                  \
    {                                                                                              \
        .name = #member, .type = LH_FIELD_BOOL, .offset = offsetof(LhFrameworkRemedy, member),     \
        .description = (text)                                                                      \
    }

const LhField lh_framework_remedy_fields[] = {
    { .name = "option",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhFrameworkRemedy, option),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_remedy_option_names,
      .description = "The option of longhaul that it sets." },
    TEXT(value, "The value of that option; of recompute_modules, all modules that may be "
                "recomputed; of cpu_offloading_num_layers, all or layers (any number)."),
    TEXT(words, "What to write in the framework's configuration; {} stands for a number, or for "
                "names of modules."),
    REMEDY_FLAG(no_recomputation, "Whether the framework refuses it together with recomputation."),
    REMEDY_FLAG(no_pipeline, "Whether the framework refuses it together with pipeline stages."),
    REMEDY_FLAG(needs_recomputation, "Whether it needs whole layers to be recomputed."),
    REMEDY_FLAG(needs_sharding, "Whether it needs at least the optimizer states to be sharded."),
    { .name = "provenance",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhFrameworkRemedy, origin),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_origin_names,
      .description = "Provenance: measured, code, datasheet, fitted or assumed." },
    TEXT(source, "Source of the remedy."),
    { .name = NULL },
};

void
lh_framework_remedies_free(GArray *remedies)
{
    for (guint i = 0; remedies != NULL && i < remedies->len; i++) {
        LhFrameworkRemedy *remedy = &g_array_index(remedies, LhFrameworkRemedy, i);

        g_free(remedy->value);
        g_free(remedy->words);
        g_free(remedy->source);
    }
    if (remedies != NULL)
        g_array_unref(remedies);
}

const LhFrameworkRemedy *
lh_framework_remedy(const GArray *remedies, LhRemedyOption option, const char *value)
{
    for (guint i = 0; remedies != NULL && i < remedies->len; i++) {
        const LhFrameworkRemedy *remedy = &g_array_index(remedies, LhFrameworkRemedy, i);

        if (remedy->option == (int)option && (value == NULL || strcmp(remedy->value, value) == 0))
            return remedy;
    }
    return NULL;
}
