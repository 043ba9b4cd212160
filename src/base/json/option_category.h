/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What options are about: the sections of help and of man pages, in this order. An option says its
 * own in the row that defines it, whichever commands have it.
 */
#pragma once

typedef enum {
    LH_ABOUT_NOTHING, /* a field of files, and no option */
    LH_ABOUT_INPUT,
    LH_ABOUT_MODEL,
    LH_ABOUT_ATTENTION,
    LH_ABOUT_CLUSTER,
    LH_ABOUT_SCHEDULE,
    LH_ABOUT_SCHEDULE_RANKS, /* options that only some schedules have: ranks, heads */
    LH_ABOUT_SCHEDULE_WORK,  /* likewise: what is sent, kept and computed */
    LH_ABOUT_PARALLELISM,
    LH_ABOUT_STEP,
    LH_ABOUT_MEMORY,
    LH_ABOUT_SIMULATION,
    LH_ABOUT_SEARCH,
    LH_ABOUT_PRICE,
    LH_ABOUT_MEASUREMENT,
    LH_ABOUT_RUNNING,
    LH_ABOUT_OUTPUT,
    LH_ABOUT_FILES, /* that are written beside the result */
    LH_OPTION_CATEGORIES
} LhOptionCategory;

typedef struct {
    const char *name;  /* for programs, "model" */
    const char *title; /* of its section, without a colon */
} LhOptionSection;

/* By category; of LH_ABOUT_NOTHING both are NULL. */
extern const LhOptionSection lh_option_sections[LH_OPTION_CATEGORIES];
