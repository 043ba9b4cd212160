/* SPDX-License-Identifier: Apache-2.0 */
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
#include "runtime/run_result.h"

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

typedef struct {
    const LhProgram *program; /* borrowed; one that lh_verify has proven */
    const LhBackend *backend;
    LhCollectiveWay collectives;
    uint32_t kernel_set; /* of the backend's device */
    int64_t deadline_us; /* the run is given up when nothing has completed for so long */
    bool unguarded;      /* memory has no guards (slot_memory.h), which take time: for runs of which
                            times are wanted and nothing else */
    bool pin;            /* compute streams of rank r stay on core r, where the system allows it */
    const LhReplay *replay; /* its rank runs alone; NULL: all ranks do */
    const LhRunHooks *hooks;
    /* Fills a part of an input slot, or of one that stays: part_bytes at @data, which are 0. */
    void (*load)(void *load_data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *data);
    void *load_data;
    LhTimelineSink timeline; /* NULL: none. Called by one thread at a time, of the first process */
    void *timeline_data;
} LhRunParams;

/*
 * Runs the program. LH_ERROR_RUNTIME if no op and no message completed for the deadline (naming for
 * every blocked rank the op, the peer and the slot that it waits for), or if a kernel failed or
 * wrote outside its slots; LH_ERROR_NO if the device lacks an implementation of an op. Caller
 * frees.
 */
LhRunResult *lh_execute(const LhRunParams *params, GError **error);
