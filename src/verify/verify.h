/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier: proves a program for its number of ranks P, without floating point (form, matching,
 * deadlock, races, coverage, memory, closed forms). Works on generated and explicit programs alike.
 */
#pragma once

#include "base/wide.h"
#include "program/program.h"

typedef enum {
    LH_FINDING_UNMATCHED, /* a send without its receive or the reverse; bytes or tensors differ */
    LH_FINDING_DEADLOCK,  /* the happens-before graph has a cycle */
    LH_FINDING_RACE,      /* conflicting accesses without order */
    LH_FINDING_COVERAGE, /* a pair missing, repeated or outside the mask; wrong tokens in an operand
                          */
    LH_FINDING_MEMORY, /* use after free, use before alloc, double alloc, leak, peak != declared */
    LH_FINDING_CLOSED_FORM, /* bytes, flops or peak memory differ from the program's claims */
    LH_FINDING_MALFORMED,   /* an op that names something unknown, or comes after a later op */
} LhFindingKind;

typedef struct {
    LhFindingKind kind;
    uint32_t rank;
    uint32_t op;                   /* LH_OP_NONE: the end of the program */
    int32_t slot;                  /* -1: none */
    uint32_t other_rank, other_op; /* the second op; LH_OP_NONE: none */
    char *message;                 /* a full sentence, owned */
} LhFinding;

typedef struct {
    GArray *findings; /* of LhFinding; empty: proven. At most 64 are kept */
    uint64_t findings_total;
    GPtrArray *unchecked; /* of const char *, sentences: what the proof does not cover */
    /* The program also ends if every rank has all its streams in one queue, in program order: it
     * does not need a device that runs streams concurrently. */
    bool one_queue;
    bool in_order;     /* proven with one step of every rank in memory at a time */
    char *queue_cycle; /* owned: the cycle that prevents this; NULL: none, or not checked */
    uint64_t ops, messages, orders_checked;
    LhWide pairs_checked; /* over all ranks */
    bool attends; /* it has inputs or outputs of attention, so the contents of its outputs are
                     proven */
    uint64_t *bytes_sent; /* [ranks] */
    uint64_t *flops;      /* [ranks] attention flops */
    uint64_t *peak_bytes; /* [ranks] */
    uint32_t ranks;
} LhVerdict;

/* Never fails: every error in the program is a finding. Caller frees. */
LhVerdict *lh_verify(const LhProgram *program);

/* The same verdict; NULL if it takes all ops in memory at once to reach it. */
LhVerdict *lh_verify_in_order(const LhProgram *program);

/* The same verdict, proven with all ops in memory at once. lh_verify() does so only if it cannot
 * prove the program with less. */
LhVerdict *lh_verify_whole(const LhProgram *program);

/* A block of forward attention that the mask allows: the rank that computes it, the schedule's
 * step, its query and key segments, and the slice of the query heads. */
typedef struct {
    uint32_t rank, step, query, key, slice;
} LhAttentionBlock;

/* Like lh_verify(). Also appends to @blocks (of LhAttentionBlock) the blocks of a program of
 * softmax attention, rank by rank, as far as the proof gets. */
LhVerdict *lh_verify_blocks(const LhProgram *program, GArray *blocks);

/* Checks only the form of a step's program, by one call of each kind (lh_step_visit_forms()):
 * cheap, for any size. Returns false with LH_ERROR_NO if it is malformed. */
bool lh_verify_step_form(const LhProgram *program, GError **error);

void lh_verdict_free(LhVerdict *verdict);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhVerdict, lh_verdict_free)
