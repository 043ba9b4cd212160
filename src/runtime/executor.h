/*
 * Executes a program with real data: the same cursors that verifier and simulator read. Each rank
 * has a host that issues the ops in program order and streams that run them; an op starts when its
 * stream reaches it and the ops it names in `after` are complete, and it is complete when the
 * device says so.
 */
#pragma once

#include "program/program.h"
#include "program/timeline.h"
#include "runtime/backend.h"

/* Hooks that disturb a run on purpose; each may be NULL. Called from many threads at once. */
typedef struct {
    void *data;
    /* In place of calling the kernel: calls it with @call, or with something else, or not. */
    enum lh_status (*call)(void *data, uint32_t rank, const LhOp *op, const LhPlaceOfWork *at,
                           const LhCall *call);
    /* False: this end of a message, of an exchange or a collective, is never posted. */
    bool (*post)(void *data, uint32_t rank, const LhOp *op, const LhMessage *message);
    /* False: what this message brings is thrown away. */
    bool (*land)(void *data, uint32_t rank, const LhOp *op, const LhMessage *message);
    /* Before an op is issued or started: may sleep. */
    void (*pause)(void *data, uint32_t rank, uint32_t op, uint32_t where);
} LhRunHooks;

/* How collectives are made of messages; run_collective.c has them. */
typedef enum {
    LH_WAY_DIRECT, /* straight to every destination; broadcasts in a chain */
    LH_WAY_RING, /* gathers and reductions in a ring, in the order of the group; the rest direct */
    LH_WAY_PAIRWISE, /* all-to-alls step by step, with a partner each; the rest as in a ring */
    LH_WAY_NATIVE,   /* by the library of the links; all-to-alls and merges of attention direct */
} LhCollectiveWay;

typedef struct {
    const LhProgram *program; /* borrowed; one that lh_verify has proven */
    const LhBackend *backend;
    LhCollectiveWay collectives;
    uint32_t kernel_set; /* of the backend's device */
    int64_t deadline_us; /* the run is given up when nothing has completed for so long */
    bool unguarded;      /* memory has no guards (slot_memory.h), which take time: for runs of which
                            times are      wanted and nothing else */
    bool pin;            /* compute streams of rank r stay on core r, where the system allows it */
    const LhReplay *replay; /* its rank runs alone; NULL: all ranks do */
    const LhRunHooks *hooks;
    /* Fills a part of an input slot, or of one that stays: part_bytes at @data, which are 0. */
    void (*load)(void *load_data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *data);
    void *load_data;
    LhTimelineSink timeline; /* NULL: none. Called by one thread at a time, of the first process */
    void *timeline_data;
} LhRunParams;

/* What was counted while a rank ran. */
typedef struct {
    uint64_t bytes_sent; /* of messages that arrived */
    uint64_t messages;   /* sent */
    uint64_t flops;      /* of attention kernels that were called */
    uint64_t peak_bytes; /* of its slots, in host order */
    uint64_t ops;
    LhTime busy_ps;   /* some kernel was running */
    LhTime finish_ps; /* when its last op was complete */
} LhRunRank;

typedef struct {
    bool whole; /* false in processes other than the first: they have their own ranks' alone */
    uint32_t ranks_count;
    LhRunRank *ranks;        /* owned */
    unsigned char **outputs; /* [ranks], owned: the output slots, and those that stay, in the order
                                of declaration; NULL of ranks that this process does not have,
                                unless it is the first */
    uint64_t output_bytes;   /* of one rank */
    LhTime makespan_ps;
    LhCollectiveWay collectives; /* as they were made */
} LhRunResult;

/*
 * Runs the program. LH_ERROR_RUNTIME if no op and no message completed for the deadline (naming for
 * every blocked rank the op, the peer and the slot that it waits for), or if a kernel failed or
 * wrote outside its slots; LH_ERROR_NO if the device lacks an implementation of an op. Caller
 * frees.
 */
LhRunResult *lh_execute(const LhRunParams *params, GError **error);
void lh_run_result_free(LhRunResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhRunResult, lh_run_result_free)

/* Part @part of @slot of @rank, an output slot or one that stays; borrowed. */
const unsigned char *lh_run_output(const LhRunResult *result, const LhProgram *program,
                                   uint32_t rank, uint16_t slot, uint32_t part);
