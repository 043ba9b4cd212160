/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of schedules. A schedule makes programs for an attention module: it says what it is
 * for, refuses what it cannot do, declares slots and streams, generates ops, and has its closed
 * forms beside it. It is one file defining `const LhSchedule lh_schedule_<name>` and one word in
 * src/sched/meson.build.
 */
#pragma once

#include "program/emit.h"

/* What attention a schedule computes. */
typedef enum {
    LH_ATTENTION_SOFTMAX = 1,
    LH_ATTENTION_LINEAR = 2,
    LH_ATTENTION_ALL = 3,
} LhAttentionKinds;

/* Masks beyond the causal one, which every schedule has, and the full one (full_reason). Linear
 * attention has the causal mask only. */
typedef enum {
    LH_MASKS_WINDOW = 1,
    LH_MASKS_DOCUMENTS = 2,
    LH_MASKS_ALL = 3,
} LhMaskSupport;

/* A list of options: LH_OPTIONS(&lh_option_grid, ...). */
#define LH_OPTIONS(...)                                                                            \
    (const LhOption *const[])                                                                      \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

typedef struct _LhSchedule LhSchedule;

struct _LhSchedule {
    const char *name;               /* "dfa-balanced" */
    const char *summary;            /* one line for `longhaul list` */
    const char *details;            /* a page for `longhaul show`: idea, bytes, flops, idle, memory,
                                       restrictions, paper */
    const LhOption *const *options; /* those that it reads, NULL-terminated; NULL: none */
    const LhOption *not_varied;     /* one with which some programs are wrong: verify takes it only
                                       if it is asked for. NULL: none */
    LhPlacementKind placement;
    unsigned attention;       /* of LhAttentionKinds; 0: softmax only */
    unsigned masks;           /* of LhMaskSupport */
    const char *masks_reason; /* why not all of them, for the refusal; NULL if all */
    const char *full_reason;  /* why softmax attention cannot have the full mask; NULL: it can */
    /* Changes what the schedule runs with, before anything is checked (padded heads, defaults of
     * options). NULL: nothing. */
    void (*adapt)(LhProgramParams *p);
    /* Refuses what the schedule cannot do: LH_ERROR_NO, naming the rule and the nearest legal
     * values. NULL: the common rules only (seq_length a multiple of ranks * parts; groups divides
     * heads). */
    bool (*check)(const LhProgramParams *p, GError **error);
    /* Declares slots and streams, and before them the slices and the placement's split where there
     * are any. What it leaves as the program's plan is freed by g_free. */
    void (*declare)(LhProgram *program);
    LhGenerator generator;
    LhClosedForms closed; /* ask lh_closed_forms */
    /* One rank alone runs this, too, not the program of lh_program_new_single: it does not just
     * attend. */
    bool alone;
    /* Of a pair: what computes softmax attention, and what computes linear attention. It is then
     * in no table, and declares nothing itself. NULL: it is one schedule. */
    const LhSchedule *const *pair;
};

/* NULL-terminated, in the order of meson.build. */
extern const LhSchedule *const lh_schedules[];

/* What stands between the two names of a pair. */
#define LH_SCHEDULE_PAIRS "+"

/* NULL with @error (LH_ERROR_INPUT, listing the names and the nearest one) if there is no such
 * schedule. Pairs have names, too: pair.h. */
const LhSchedule *lh_schedule_find(const char *name, GError **error);

/* Every option that some schedule reads, each once, in the order of the table; NULL-terminated. */
const LhOption *const *lh_schedule_options(void);

/* Whether @schedule reads @option. */
bool lh_schedule_reads(const LhSchedule *schedule, const LhOption *option);

/* Whether it computes linear attention, or (@linear false) softmax attention. */
bool lh_schedule_takes(const LhSchedule *schedule, bool linear);

/* "softmax, linear". */
const char *lh_schedule_attention(const LhSchedule *schedule);

/* The parameters that @schedule runs with when given @params: options that it does not read are
 * dropped, defaults that it has chosen filled in. */
LhProgramParams lh_schedule_params(const LhSchedule *schedule, const LhProgramParams *params);

/* The closed forms that @schedule has with @params. */
const LhClosedForms *lh_closed_forms(const LhSchedule *schedule, const LhProgramParams *params);

/* Whether @schedule has a program for @params; refusals are LH_ERROR_NO. */
bool lh_schedule_check(const LhSchedule *schedule, const LhProgramParams *params, GError **error);

/* Makes the program of @schedule for @params. Refusals are LH_ERROR_NO. Caller frees. */
LhProgram *lh_program_new(const LhSchedule *schedule, const LhProgramParams *params,
                          GError **error);
