/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of schedules. A schedule lists the options that it reads; an option is one constant
 * object, beside the schedule that owns it or, if several read it, in sched/common. Scenario files,
 * command lines, help, reports, the verifier's variations and the fuzzers all work from those
 * lists, so an option is written down once.
 */
#pragma once

#include "base/json/option_category.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct _LhOption LhOption;
typedef struct _LhProgramParams LhProgramParams;

typedef enum {
    LH_OPTION_FLAG,   /* first is 1 where it is set */
    LH_OPTION_COUNT,  /* a whole number from 1 on */
    LH_OPTION_CHOICE, /* first indexes choices; 0 is the default */
    LH_OPTION_GRID,   /* rows and columns of ranks, "4x8" */
    LH_OPTION_SIZES,  /* two numbers of ranks, "8,2", whose product is the ranks */
} LhOptionType;

#define LH_OPTION_COUNT_MAX 65536

typedef struct {
    uint32_t first, second;
} LhOptionValue;

struct _LhOption {
    const char *name;          /* of the scenario's field; the command line has '-' for '_' */
    LhOptionCategory category; /* LH_ABOUT_SCHEDULE_*: where help has it */
    LhOptionType type;
    const char *const *choices; /* of LH_OPTION_CHOICE, NULL-terminated */
    const char *help;           /* a sentence or two */
    /*
     * The values that are worth a proof for @p: sets number @i, from 0, and is false if there are
     * no more. NULL: one if it is a flag, all choices, every way to cut the ranks in two factors.
     */
    bool (*value)(const LhProgramParams *p, uint32_t i, LhOptionValue *value);
    /* Refuses, as LH_ERROR_NO, what a shape that is given the option cannot have. NULL: nothing. */
    bool (*check)(const LhProgramParams *p, GError **error);
    /* Changes a shape that the option would make no difference to. NULL: any shape will do. */
    void (*shape)(LhProgramParams *p);
    bool linear_only;   /* means nothing to softmax attention */
    bool at_every_size; /* verify tries its values for any number of ranks, not for small ones only
                         */
};

/* The value that @p has of @option; zero where none was given. */
LhOptionValue lh_option_get(const LhProgramParams *p, const LhOption *option);

/* Its first number: whether a flag is set, a count, an index into the choices. */
uint32_t lh_option_first(const LhProgramParams *p, const LhOption *option);

/* Whether it was given, or set to other than the default. */
bool lh_option_is_set(const LhProgramParams *p, const LhOption *option);

/* Zero unsets it. */
void lh_option_set(LhProgramParams *p, const LhOption *option, LhOptionValue value);

/* lh_option.value, or what stands for NULL. */
bool lh_option_value(const LhOption *option, const LhProgramParams *p, uint32_t i,
                     LhOptionValue *value);

/* For lh_option.value: every divisor of the ranks, alone or with its quotient; 1 and 2. */
bool lh_option_divisors(const LhProgramParams *p, uint32_t i, LhOptionValue *value);
bool lh_option_factors(const LhProgramParams *p, uint32_t i, LhOptionValue *value);
bool lh_option_one_and_two(const LhProgramParams *p, uint32_t i, LhOptionValue *value);

/* The divisors of @number, none above @most, that are nearest to @wanted (from 1 on) from below and
 * from above; the one below for both if there is none above. */
void lh_divisors_near(uint32_t number, uint32_t wanted, uint32_t most, uint32_t *below,
                      uint32_t *above);

/* "3, 6", or one number where both are the same or @below is 0, which is none. Caller frees. */
char *lh_near_text(uint64_t below, uint64_t above);

/* "4x8", "8,2", "3", "fp32"; "" for a flag that is set, "no" for one that is not. Caller frees. */
char *lh_option_value_text(const LhOption *option, LhOptionValue value);

/* "grid 4x8", "no-overlap": as on a command line, without the dashes in front. Caller frees. */
char *lh_option_text(const LhOption *option, LhOptionValue value);
