/*
 * The table of schedules: a generator of per-rank programs with its closed forms beside it. A
 * schedule is one file defining `const LhSchedule lh_schedule_<name>` and one word in
 * src/sched/meson.build.
 */
#pragma once

#include "base/json.h"
#include "sched/emit.h"

/*
 * Closed forms, per rank, in the notation of docs/schedules.md. NULL where a schedule has none.
 * They are what the verifier holds the program against, so they must not be computed from the
 * program.
 */
typedef struct {
    uint64_t (*bytes_sent)(const LhProgramParams *p, uint32_t rank);
    uint64_t (*flops)(const LhProgramParams *p, uint32_t rank); /* attention kernels only */
    uint64_t (*peak_bytes)(const LhProgramParams *p, uint32_t rank);
    /* Idle fraction with free communication: every block costs 1; or exact causal flops. Forward
     * pass. */
    double (*idle_unit)(const LhProgramParams *p);
    double (*idle_flops)(const LhProgramParams *p);
} LhClosedForms;

/* What attention a schedule computes. */
typedef enum {
    LH_ATTENTION_SOFTMAX = 1,
    LH_ATTENTION_LINEAR = 2,
    LH_ATTENTION_ALL = 3,
} LhAttentionKinds;

/* Masks beyond causal and full. */
typedef enum {
    LH_MASKS_WINDOW = 1,
    LH_MASKS_DOCUMENTS = 2,
    LH_MASKS_ALL = 3,
} LhMaskSupport;

struct _LhSchedule {
    const char *name;    /* "dfa-balanced" */
    const char *summary; /* one line for `longhaul list` */
    const char *details; /* a page for `longhaul show`: idea, bytes, flops, idle, memory,
                            restrictions, paper */
    LhPlacementKind placement;
    unsigned attention;       /* of LhAttentionKinds; 0: softmax only */
    unsigned masks;           /* of LhMaskSupport; causal and full masks every schedule has, linear
                                 attention the causal one only */
    const char *masks_reason; /* why not all of them, for the refusal; NULL if all */
    /* Changes what the schedule runs with, before anything is checked (padded heads, defaults of
     * options). NULL: nothing. */
    void (*adapt)(LhProgramParams *p);
    /* Refuses what the schedule cannot do: LH_ERROR_NO, naming the rule and the nearest legal
     * values. NULL: the common rules only (seq_length a multiple of ranks * parts; groups divides
     * heads). */
    bool (*check)(const LhProgramParams *p, GError **error);
    /* Declares slots and streams (lh_program_add_slot, lh_program_add_stream), and before them the
     * slices and the placement's split where there are any. */
    void (*declare)(LhProgram *program);
    /* How many steps the program of one rank has. */
    uint32_t (*steps)(const LhProgram *program, uint32_t rank);
    /* Emits the ops of @step. */
    void (*emit)(LhEmitter *e, uint32_t step);
    LhClosedForms closed; /* ask lh_closed_forms */
    /* One rank alone runs this, too, not lh_single: it does not just attend. */
    bool alone;
};

/* What one rank alone runs: its program and closed forms, for every schedule. Not in the table. */
extern const LhSchedule lh_single;

/* NULL-terminated, in the order of meson.build. */
extern const LhSchedule *const lh_schedules[];

/* NULL with @error (LH_ERROR_INPUT, listing the names and the nearest one) if there is no such
 * schedule. */
const LhSchedule *lh_schedule_find(const char *name, GError **error);

/* Whether it computes linear attention, or (@linear false) softmax attention. */
bool lh_schedule_takes(const LhSchedule *schedule, bool linear);

/* "softmax, linear". */
const char *lh_schedule_attention(const LhSchedule *schedule);

/* The parameters that @schedule runs with when given @params. */
LhProgramParams lh_schedule_params(const LhSchedule *schedule, const LhProgramParams *params);

/* The closed forms that @schedule has with @params; NULL, an explicit program, has none. */
const LhClosedForms *lh_closed_forms(const LhSchedule *schedule, const LhProgramParams *params);

/* For check(): LH_ERROR_NO with a message. Returns false. */
bool lh_schedule_refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* The rules that all programs keep, explicit ones too; what fails is LH_ERROR_NO, without a name in
 * front. */
bool lh_program_check(LhPlacementKind placement, const LhProgramParams *params, GError **error);

/* Makes the program of @schedule for @params. Refusals are LH_ERROR_NO. Caller frees. */
LhProgram *lh_program_new(const LhSchedule *schedule, const LhProgramParams *params,
                          GError **error);

/* For declare(): returns the slot's or stream's index. */
uint16_t lh_program_add_slot(LhProgram *program, const char *name, LhTensorKind kind,
                             LhSlotRole role, uint32_t parts, uint64_t part_bytes,
                             uint32_t element_bytes);
uint8_t lh_program_add_stream(LhProgram *program, const char *name, LhStreamKind kind);

/* Reads the explicit JSON form (longhaul.schedule/1). Caller frees. */
LhProgram *lh_program_load(const char *path, GError **error);
LhProgram *lh_program_parse(const char *name, const char *text, gsize length, GError **error);

/* The field table of longhaul.schedule/1, for its schema. */
extern const LhField lh_program_fields[];

/* Appends the explicit JSON form of @program to @out. At most 1,048,576 ops: LH_ERROR_NO beyond. */
bool lh_program_write(const LhProgram *program, GString *out, GError **error);
