/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of schedules. A schedule makes programs for an attention module: it states what it
 * supports, rejects the rest, declares slots and streams, generates ops, and has closed forms. It
 * is one file defining `const LhSchedule lh_schedule_<name>` and one word in sched/meson.build.
 */
#pragma once

#include "program/emit.h"

/* The kinds of attention a schedule supports. */
typedef enum {
    LH_ATTENTION_SOFTMAX = 1,
    LH_ATTENTION_LINEAR = 2,
    LH_ATTENTION_ALL = 3,
} LhAttentionKinds;

/* Masks that a schedule supports beyond the causal one (supported by all) and the full one
 * (full_reason). Linear attention supports only the causal mask. */
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
    const LhOption *const *options; /* options that it reads, NULL-terminated; NULL: none */
    const LhOption *not_varied; /* an option with which some programs are wrong: verify varies it
                                   only on request. NULL: none */
    LhPlacementKind placement;
    unsigned attention;       /* of LhAttentionKinds; 0: softmax only */
    unsigned masks;           /* of LhMaskSupport */
    const char *masks_reason; /* why some are not supported, for the refusal; NULL: all are */
    const char *full_reason;  /* why softmax attention lacks the full mask; NULL: it has it */
    /* Adjusts the params before anything is checked (padded heads, defaults of options). NULL:
     * none. */
    void (*adapt)(LhProgramParams *p);
    /* Rejects params that the schedule does not support: LH_ERROR_NO, naming the rule and the
     * nearest legal values. NULL: the common rules only (seq_length a multiple of ranks * parts;
     * groups divides heads). */
    bool (*check)(const LhProgramParams *p, GError **error);
    /* Declares slots and streams, and before them the slices and the placement's split, if any.
     * The program's plan that it sets is freed by g_free. */
    void (*declare)(LhProgram *program);
    LhGenerator generator;
    LhClosedForms closed; /* use lh_closed_forms */
    /* A single rank runs this program, too, instead of lh_program_new_single's, because it does
     * more than attention. */
    bool alone;
    /* For a pair: the schedules of softmax attention and of linear attention. A pair is in no
     * table and declares nothing itself. NULL: a single schedule. */
    const LhSchedule *const *pair;
};

/* NULL-terminated, in the order of meson.build. */
extern const LhSchedule *const lh_schedules[];

/* Separates the two names of a pair. */
#define LH_SCHEDULE_PAIRS "+"

/* Returns NULL with @error (LH_ERROR_INPUT, listing the names and the nearest one) if the
 * schedule is unknown. Accepts pairs, too: see pair.h. */
const LhSchedule *lh_schedule_find(const char *name, GError **error);

/* Every option that some schedule reads, once each, in table order; NULL-terminated. */
const LhOption *const *lh_schedule_options(void);

/* Whether @schedule reads @option. */
bool lh_schedule_reads(const LhSchedule *schedule, const LhOption *option);

/* Whether it supports linear attention, or (@linear false) softmax attention. */
bool lh_schedule_takes(const LhSchedule *schedule, bool linear);

/* "softmax, linear". */
const char *lh_schedule_attention(const LhSchedule *schedule);

/* Returns the parameters that @schedule runs with for @params: options that it does not read are
 * dropped, and its own defaults are filled in. */
LhProgramParams lh_schedule_params(const LhSchedule *schedule, const LhProgramParams *params);

/* The closed forms of @schedule for @params. */
const LhClosedForms *lh_closed_forms(const LhSchedule *schedule, const LhProgramParams *params);

/* Whether @schedule supports @params; refusals are LH_ERROR_NO. */
bool lh_schedule_check(const LhSchedule *schedule, const LhProgramParams *params, GError **error);

/* Creates the program of @schedule for @params. Refusals are LH_ERROR_NO. Caller frees. */
LhProgram *lh_program_new(const LhSchedule *schedule, const LhProgramParams *params,
                          GError **error);
