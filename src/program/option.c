/* SPDX-License-Identifier: Apache-2.0 */
/* The options set in a program's params are a short list, searched linearly. */
#include "program/option.h"

#include "program/program.h"

#include <inttypes.h>

/* The index of @option among those set, or their number if it is not set. */
static uint32_t
index_of(const LhProgramParams *p, const LhOption *option)
{
    uint32_t i = 0;

    while (i < p->options_count && p->options[i].option != option)
        i++;
    return i;
}

LhOptionValue
lh_option_get(const LhProgramParams *p, const LhOption *option)
{
    const uint32_t i = index_of(p, option);

    return i < p->options_count ? p->options[i].value : (LhOptionValue){ 0 };
}

uint32_t
lh_option_first(const LhProgramParams *p, const LhOption *option)
{
    return lh_option_get(p, option).first;
}

bool
lh_option_is_set(const LhProgramParams *p, const LhOption *option)
{
    return index_of(p, option) < p->options_count;
}

void
lh_option_set(LhProgramParams *p, const LhOption *option, LhOptionValue value)
{
    const uint32_t i = index_of(p, option);

    if (value.first == 0 && value.second == 0) {
        if (i < p->options_count)
            p->options[i] = p->options[--p->options_count];
        return;
    }
    if (i == p->options_count) {
        g_assert(p->options_count < LH_PROGRAM_OPTIONS_MAX);
        p->options_count++;
    }
    p->options[i] = (LhOptionSetting){ option, value };
}

bool
lh_option_divisors(const LhProgramParams *p, uint32_t i, LhOptionValue *value)
{
    bool any = lh_option_factors(p, i, value);

    value->second = 0;
    return any;
}

bool
lh_option_factors(const LhProgramParams *p, uint32_t i, LhOptionValue *value)
{
    for (uint32_t factor = 1; factor <= p->ranks; factor++) {
        if (p->ranks % factor == 0 && i-- == 0) {
            *value = (LhOptionValue){ factor, p->ranks / factor };
            return true;
        }
    }
    return false;
}

bool
lh_option_one_and_two(const LhProgramParams *p, uint32_t i, LhOptionValue *value)
{
    (void)p;
    *value = (LhOptionValue){ .first = i + 1 };
    return i < 2;
}

bool
lh_option_value(const LhOption *option, const LhProgramParams *p, uint32_t i, LhOptionValue *value)
{
    if (option->value != NULL)
        return option->value(p, i, value);
    switch (option->type) {
    case LH_OPTION_GRID:
    case LH_OPTION_SIZES:
        return lh_option_factors(p, i, value);
    case LH_OPTION_CHOICE:
        *value = (LhOptionValue){ .first = i + 1 };
        return option->choices[i + 1] != NULL;
    case LH_OPTION_COUNT:
    case LH_OPTION_FLAG:
        break;
    }
    *value = (LhOptionValue){ .first = 1 };
    return i == 0;
}

/* Keeps the largest divisor up to @wanted and the smallest from there to @end. */
static void
take_divisor(uint32_t divisor, uint32_t wanted, uint32_t end, uint32_t *below, uint32_t *above)
{
    if (divisor <= wanted)
        *below = MAX(*below, divisor);
    if (divisor >= wanted && divisor <= end)
        *above = MIN(*above, divisor);
}

/* Divisors come in pairs, one of them at most the root. Searching only up to the root matters
 * because numbers from files may be large. */
void
lh_divisors_near(uint32_t number, uint32_t wanted, uint32_t most, uint32_t *below, uint32_t *above)
{
    const uint32_t end = MIN(number, most), near = MIN(wanted, end);

    *below = 1;
    *above = UINT32_MAX;
    for (uint32_t small = 1; small <= number / small; small++) {
        if (number % small != 0)
            continue;
        take_divisor(small, near, end, below, above);
        take_divisor(number / small, near, end, below, above);
    }
    if (*above > end)
        *above = *below;
}

char *
lh_near_text(uint64_t below, uint64_t above)
{
    if (below == 0 || below == above)
        return g_strdup_printf("%" PRIu64, above);
    return g_strdup_printf("%" PRIu64 ", %" PRIu64, below, above);
}

char *
lh_option_value_text(const LhOption *option, LhOptionValue value)
{
    switch (option->type) {
    case LH_OPTION_FLAG:
        return g_strdup(value.first != 0 ? "" : "no");
    case LH_OPTION_CHOICE:
        return g_strdup(option->choices[value.first]);
    case LH_OPTION_GRID:
        return g_strdup_printf("%ux%u", value.first, value.second);
    case LH_OPTION_SIZES:
        return g_strdup_printf("%u,%u", value.first, value.second);
    case LH_OPTION_COUNT:
        return g_strdup_printf("%u", value.first);
    }
    g_assert_not_reached();
}

char *
lh_option_text(const LhOption *option, LhOptionValue value)
{
    g_autofree char *name = g_strdelimit(g_strdup(option->name), "_", '-');
    g_autofree char *text = lh_option_value_text(option, value);

    return g_strconcat(name, text[0] != '\0' ? " " : "", text, NULL);
}
