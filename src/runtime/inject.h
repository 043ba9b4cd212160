/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on purpose, to show that they are found: mutants that compute something else and must fail
 * the gates, a rank that never sends, and delays that must not change a bit. They wrap the
 * executor's calls; kernels and schedules know nothing of them.
 */
#pragma once

#include "runtime/executor.h"

typedef enum {
    LH_INJECT_DROP_PAIR,      /* a block of attention, or its sum, is left out */
    LH_INJECT_DUPLICATE_PAIR, /* ... or counted twice */
    LH_INJECT_MASK_SHIFT,     /* a causal mask is off by one */
    LH_INJECT_LOCAL_LSE,      /* a backward block uses the lse of its own keys only */
    LH_INJECT_STALE_BUFFER,   /* a message does not land, the buffer keeps what it had */
    LH_INJECT_WRONG_KV_HEAD,  /* a block attends to the next head's keys and values */
    LH_INJECT_MUTANTS,
    LH_INJECT_STALL = LH_INJECT_MUTANTS, /* stall:RANK: the rank's sends are never posted */
    LH_INJECT_DELAY,                     /* delay:SEED: random pauses before every op */
    LH_INJECT_KINDS
} LhInjectKind;

/* "drop-pair", ..., "stall", "delay"; NULL-terminated. */
extern const char *const lh_inject_names[];

typedef struct {
    LhInjectKind kind;
    uint32_t rank, op; /* what is hit */
    uint32_t peer, tag;
    uint64_t seed;
} LhFault;

/* Faults that are inserted together. */
typedef struct {
    LhRunHooks hooks; /* for lh_execute; its data is the injection */
    uint32_t count;
    LhFault faults[];
} LhInjection;

/*
 * Reads @text, one fault or several with commas between them ("stale-buffer,delay:1"), and finds
 * the op of @program that each one hits: of the first pass that is run, the last one of the last
 * rank that has any. LH_ERROR_USAGE if a fault has none of the names or is given twice, LH_ERROR_NO
 * if the program has nothing of the kind. Caller frees with g_free.
 */
LhInjection *lh_injection_new(const LhProgram *program, const char *text, GError **error);
