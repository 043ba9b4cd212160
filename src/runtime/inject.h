/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault injection, to show that faults are detected: mutants that compute something wrong and must
 * fail the gates, a rank that never sends, and delays that must not change a bit. They wrap the
 * executor's calls; kernels and schedules know nothing of them.
 */
#pragma once

#include "runtime/executor.h"

typedef enum {
    LH_INJECT_DROP_PAIR,      /* omits a block of attention, or its sum */
    LH_INJECT_DUPLICATE_PAIR, /* ... or counts it twice */
    LH_INJECT_MASK_SHIFT,     /* shifts a causal mask by one */
    LH_INJECT_LOCAL_LSE,      /* uses the lse of its own keys only in a backward block */
    LH_INJECT_STALE_BUFFER,   /* discards a message, so the buffer keeps its old contents */
    LH_INJECT_WRONG_KV_HEAD,  /* uses the next head's keys and values in a block */
    LH_INJECT_MUTANTS,
    LH_INJECT_STALL = LH_INJECT_MUTANTS, /* stall:RANK: never posts the rank's sends */
    LH_INJECT_DELAY,                     /* delay:SEED: random pauses before ops */
    LH_INJECT_KINDS
} LhInjectKind;

/* "drop-pair", ..., "stall", "delay"; NULL-terminated. */
extern const char *const lh_inject_names[];

typedef struct {
    LhInjectKind kind;
    uint32_t rank, op; /* the target */
    uint32_t peer, tag;
    uint64_t seed;
} LhFault;

/* Faults injected together. */
typedef struct {
    LhRunHooks hooks; /* for lh_execute; its data is the injection */
    uint32_t count;
    LhFault faults[];
} LhInjection;

/*
 * Parses @text, one fault or several separated by commas ("stale-buffer,delay:1"), and finds the op
 * of @program that each one targets: in the first pass that runs, the last suitable op of the last
 * rank that has any. LH_ERROR_USAGE if a name is unknown or given twice, LH_ERROR_NO if the program
 * has no suitable op. Caller frees with g_free.
 */
LhInjection *lh_injection_new(const LhProgram *program, const char *text, GError **error);
