/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of schedules. A schedule lists the options it reads. An option is one constant object, in
 * the file of its schedule or, if several schedules read it, in sched/common. Scenario files,
 * command lines, help, reports, the verifier's variations and the fuzzers all work from these
 * lists, so an option is defined once.
 */
#pragma once

#include "base/json/option_category.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct _LhOption LhOption;
typedef struct _LhProgramParams LhProgramParams;

typedef enum {
    LH_OPTION_FLAG,   /* first is 1 if set */
    LH_OPTION_COUNT,  /* a positive integer */
    LH_OPTION_CHOICE, /* first indexes choices; 0 is the default */
    LH_OPTION_GRID,   /* rows and columns of ranks, "4x8" */
    LH_OPTION_SIZES,  /* two numbers of ranks, "8,2", whose product is the ranks */
} LhOptionType;

#define LH_OPTION_COUNT_MAX 65536

typedef struct {
    uint32_t first, second;
} LhOptionValue;

struct _LhOption {
    const char *name;          /* the scenario's field; on the command line '-' replaces '_' */
    LhOptionCategory category; /* LH_ABOUT_SCHEDULE_*: its section of the help */
    LhOptionType type;
    const char *const *choices; /* of LH_OPTION_CHOICE, NULL-terminated */
    const char *help;           /* one or two sentences */
    /*
     * Values worth proving for @p: sets number @i, from 0; returns false if there are no more.
     * NULL: 1 for a flag, all choices, every factorisation of the ranks in two.
     */
    bool (*value)(const LhProgramParams *p, uint32_t i, LhOptionValue *value);
    /* Rejects, with LH_ERROR_NO, shapes that the option does not support. NULL: none. */
    bool (*check)(const LhProgramParams *p, GError **error);
    /* Adjusts a shape on which the option would have no effect. NULL: any shape will do. */
    void (*shape)(LhProgramParams *p);
    bool linear_only;   /* no effect on softmax attention */
    bool at_every_size; /* verify varies it at every number of ranks, not only at small ones */
};

/* The value of @option in @p; zero if not set. */
LhOptionValue lh_option_get(const LhProgramParams *p, const LhOption *option);

/* The first number of the value: whether a flag is set, a count, an index into the choices. */
uint32_t lh_option_first(const LhProgramParams *p, const LhOption *option);

/* Whether the value differs from the default. */
bool lh_option_is_set(const LhProgramParams *p, const LhOption *option);

/* Sets @option; a zero value unsets it. */
void lh_option_set(LhProgramParams *p, const LhOption *option, LhOptionValue value);

/* Calls lh_option.value, or its default if NULL. */
bool lh_option_value(const LhOption *option, const LhProgramParams *p, uint32_t i,
                     LhOptionValue *value);

/* Implementations of lh_option.value: every divisor of the ranks, alone or with its quotient; 1
 * and 2. */
bool lh_option_divisors(const LhProgramParams *p, uint32_t i, LhOptionValue *value);
bool lh_option_factors(const LhProgramParams *p, uint32_t i, LhOptionValue *value);
bool lh_option_one_and_two(const LhProgramParams *p, uint32_t i, LhOptionValue *value);

/* The divisors of @number nearest to @wanted (>= 1) from below and from above, none above @most.
 * If there is none above, @above is set to the one below. */
void lh_divisors_near(uint32_t number, uint32_t wanted, uint32_t most, uint32_t *below,
                      uint32_t *above);

/* "3, 6", or one number if both are equal or @below is 0 (none). Caller frees. */
char *lh_near_text(uint64_t below, uint64_t above);

/* "4x8", "8,2", "3", "fp32"; for a flag "" if set and "no" if not. Caller frees. */
char *lh_option_value_text(const LhOption *option, LhOptionValue value);

/* "grid 4x8", "no-overlap": as on the command line, without the leading dashes. Caller frees. */
char *lh_option_text(const LhOption *option, LhOptionValue value);
