/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes a program with real data, walked by the same cursors that verifier and simulator use.
 * Each rank has a host that issues the ops in program order and streams that run them. An op starts
 * when its stream reaches it and all ops in its `after` list are complete; it is complete when the
 * device says so.
 */
#pragma once

#include "program/program.h"
#include "program/timeline.h"
#include "runtime/backend.h"
#include "runtime/run_result.h"

/* Hooks for fault injection; each may be NULL. Called from many threads concurrently. */
typedef struct {
    void *data;
    /* Replaces the kernel call: may call it with @call or something else, or not at all. */
    enum lh_status (*call)(void *data, uint32_t rank, const LhOp *op, const LhPlaceOfWork *at,
                           const LhCall *call);
    /* False: this end of a message (of an exchange or a collective) is never posted. */
    bool (*post)(void *data, uint32_t rank, const LhOp *op, const LhMessage *message);
    /* False: the data of this message is discarded. */
    bool (*land)(void *data, uint32_t rank, const LhOp *op, const LhMessage *message);
    /* Called before an op is issued or started; may sleep. */
    void (*pause)(void *data, uint32_t rank, uint32_t op, uint32_t where);
} LhRunHooks;

typedef struct {
    const LhProgram *program; /* borrowed; proven by lh_verify */
    const LhBackend *backend;
    LhCollectiveWay collectives;
    uint32_t kernel_set; /* of the backend's device */
    int64_t deadline_us; /* the run is aborted when nothing has completed for this long */
    bool unguarded; /* omit the guards of memory (slot_memory.h), which cost time: for runs that
                       only measure times */
    bool pin;       /* pin compute streams of rank r to core r, where the system allows it */
    const LhReplay *replay; /* single-rank replay of its rank; NULL: all ranks run */
    const LhRunHooks *hooks;
    /* Fills a part of an input slot or persistent slot: part_bytes at @data, initially 0. */
    void (*load)(void *load_data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *data);
    void *load_data;
    LhTimelineSink timeline; /* NULL: none. Called by one thread at a time, in the first process */
    void *timeline_data;
} LhRunParams;

/*
 * Runs the program. LH_ERROR_RUNTIME if no op and no message completed within the deadline (the
 * error names, for every blocked rank, the op, peer and slot that it waits for), or if a kernel
 * failed or wrote outside its slots; LH_ERROR_NO if the device lacks an implementation of an op.
 * Caller frees.
 */
LhRunResult *lh_execute(const LhRunParams *params, GError **error);
