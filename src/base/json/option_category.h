/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Categories of options: the sections of help and of man pages, in this order. The row that defines
 * an option gives its category, whichever commands have it.
 */
#pragma once

typedef enum {
    LH_ABOUT_NOTHING, /* a field of files, not an option */
    LH_ABOUT_INPUT,
    LH_ABOUT_MODEL,
    LH_ABOUT_ATTENTION,
    LH_ABOUT_CLUSTER,
    LH_ABOUT_SCHEDULE,
    LH_ABOUT_SCHEDULE_RANKS, /* options of some schedules only: ranks, heads */
    LH_ABOUT_SCHEDULE_WORK,  /* options of some schedules only: communication, memory and compute */
    LH_ABOUT_PARALLELISM,
    LH_ABOUT_STEP,
    LH_ABOUT_MEMORY,
    LH_ABOUT_OFFLOAD,
    LH_ABOUT_TRAINED, /* what is trained, and in which types */
    LH_ABOUT_MUON,    /* the choice of the optimizer, and Muon's options */
    LH_ABOUT_SIMULATION,
    LH_ABOUT_SEARCH,
    LH_ABOUT_PRICE,
    LH_ABOUT_MEASUREMENT,
    LH_ABOUT_RUNNING,
    LH_ABOUT_OUTPUT,
    LH_ABOUT_FILES, /* files written in addition to the result */
    LH_OPTION_CATEGORIES
} LhOptionCategory;

typedef struct {
    const char *name;  /* identifier for programs, "model" */
    const char *title; /* of its section, without a colon */
} LhOptionSection;

/* By category; both members are NULL for LH_ABOUT_NOTHING. */
extern const LhOptionSection lh_option_sections[LH_OPTION_CATEGORIES];
