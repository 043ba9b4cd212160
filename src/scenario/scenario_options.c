/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/scenario_options.h"

#include "step/step.h"

#include <stddef.h>
#include <string.h>

#define SCHEDULES_NAMED 5 /* most schedules listed in an option's help */
#define RANKS_MAX 65536   /* the largest cluster for which op ids and tags are tested */

static LhFieldType
field_type(LhOptionType type)
{
    switch (type) {
    case LH_OPTION_FLAG:
        return LH_FIELD_BOOL;
    case LH_OPTION_COUNT:
        return LH_FIELD_UNIT;
    case LH_OPTION_CHOICE:
        return LH_FIELD_CHOICE;
    case LH_OPTION_GRID:
        return LH_FIELD_STRING;
    case LH_OPTION_SIZES:
        return LH_FIELD_UINTS;
    }
    g_assert_not_reached();
}

/* The option's help, followed by the schedules that read it if they are few. Never freed. */
static char *
describe_option(const LhOption *option)
{
    g_autoptr(GString) readers = g_string_new(NULL);
    unsigned count = 0;

    for (unsigned i = 0; lh_schedules[i] != NULL; i++) {
        if (!lh_schedule_reads(lh_schedules[i], option))
            continue;
        g_string_append_printf(readers, "%s%s", count > 0 ? ", " : "", lh_schedules[i]->name);
        count++;
    }
    g_assert(g_str_has_suffix(option->help, "."));
    if (count > SCHEDULES_NAMED)
        return g_strdup(option->help);
    return g_strdup_printf("%.*s (%s).", (int)strlen(option->help) - 1, option->help, readers->str);
}

LhField
lh_scenario_option_field(const LhOption *option, unsigned index)
{
    LhField field = {
        .name = option->name,
        .category = option->category,
        .type = field_type(option->type),
        .offset = offsetof(LhScenario, options) + index * sizeof(LhOptionInput),
        .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_SCHEDULES,
        .choices = option->choices,
        .description = describe_option(option),
    };

    switch (option->type) {
    case LH_OPTION_COUNT:
        field.unit = LH_UNIT_COUNT;
        field.min = 1;
        field.max = LH_OPTION_COUNT_MAX;
        break;
    case LH_OPTION_CHOICE:
        field.absent = option->choices[0];
        break;
    case LH_OPTION_GRID:
        field.min = 1;
        field.max = -1;
        field.placeholder = "ROWSxCOLUMNS";
        break;
    case LH_OPTION_SIZES:
        field.min = field.max = 2;
        break;
    default:
        break;
    }
    return field;
}

static unsigned
option_index(const LhOption *option)
{
    unsigned i = 0;

    while (lh_schedule_options()[i] != option)
        i++;
    return i;
}

/* Parses "4x8". */
static bool
read_grid(const LhScenario *s, const LhOption *option, const char *text, LhOptionValue *value,
          GError **error)
{
    g_auto(GStrv) sides = g_strsplit(text, "x", -1);
    g_autofree char *escaped = NULL;
    guint64 rows, columns;

    if (g_strv_length(sides) == 2 &&
        g_ascii_string_to_unsigned(sides[0], 10, 1, UINT16_MAX, &rows, NULL) &&
        g_ascii_string_to_unsigned(sides[1], 10, 1, UINT16_MAX, &columns, NULL)) {
        *value = (LhOptionValue){ (uint32_t)rows, (uint32_t)columns };
        return true;
    }
    escaped = g_strescape(text, NULL);
    return lh_scenario_error(s, option->name, error,
                             "\"%.40s\" is not a grid; allowed: ROWSxCOLUMNS, such as 4x8",
                             escaped);
}

/* Checks two sizes, each 1 to RANKS_MAX. */
static bool
read_sizes(const LhScenario *s, const LhOption *option, const GArray *sizes, LhOptionValue *value,
           GError **error)
{
    const uint64_t first = g_array_index(sizes, uint64_t, 0);
    const uint64_t second = g_array_index(sizes, uint64_t, 1);

    *value = (LhOptionValue){ (uint32_t)first, (uint32_t)second };
    if (first > 0 && second > 0 && first <= RANKS_MAX && second <= RANKS_MAX)
        return true;
    return lh_scenario_error(
        s, option->name, error,
        "both sizes must be at least 1, and their product must be the number of "
        "ranks");
}

bool
lh_scenario_option(const LhScenario *s, const LhOption *option, LhOptionValue *value,
                   GError **error)
{
    const LhOptionInput *input = &s->options[option_index(option)];

    *value = (LhOptionValue){ 0 };
    switch (option->type) {
    case LH_OPTION_FLAG:
        value->first = input->flag ? 1 : 0;
        return true;
    case LH_OPTION_COUNT:
        value->first = (uint32_t)input->count;
        return true;
    case LH_OPTION_CHOICE:
        value->first = (uint32_t)MAX(input->choice, 0);
        return true;
    case LH_OPTION_GRID:
        return input->grid == NULL || read_grid(s, option, input->grid, value, error);
    case LH_OPTION_SIZES:
        return input->sizes == NULL || read_sizes(s, option, input->sizes, value, error);
    }
    g_assert_not_reached();
}
