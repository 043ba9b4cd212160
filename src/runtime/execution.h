/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run, its ranks, and ops between issue and completion: what the files of the executor share.
 *
 *     executor.c           a run from its beginning to its results
 *     execution_open.c     what it has before its threads: processes, devices, memory
 *     thread_engine.c      threads: hosts, streams, and the one that watches over them
 *     submit.c             the other engine: a thread submits what ranks do
 *     bind.c               from the regions of an op to the memory that they have now
 *     run_op.c             what an op does; run_collective.c for collectives
 *     deadlock_report.c    what a rank says when nothing moves
 *     execution_results.c  what ranks leave, brought together
 *
 * Locks: a rank's lock guards its op states, its queues and its counters of messages; the
 * execution's lock guards the first error and the records. No thread holds two locks. They are
 * POSIX locks, not GLib's, because ThreadSanitizer understands those.
 */
#pragma once

#include "program/collective_semantics.h"
#include "program/cursor.h"
#include "program/live.h"
#include "runtime/api/channels.h"
#include "runtime/api/links.h"
#include "runtime/executor.h"
#include "runtime/slot_memory.h"

#include <pthread.h>

typedef struct _LhExecution LhExecution;
typedef struct _LhRunner LhRunner;

/* A region bound to memory: where each of its parts is, or the half of it that the region names. */
typedef struct {
    LhRegion region;
    unsigned char **parts; /* [region.count], owned by the item */
    uint64_t part_bytes;   /* of what it names in each */
    uint64_t stride_bytes; /* from part to part; 0: they come from several allocs */
} LhBoundRegion;

/* A collective under way. */
typedef struct _LhCollectiveRun LhCollectiveRun;

/* An op from its issue to its completion. */
typedef struct _LhItem LhItem;
struct _LhItem {
    LhItem *next;
    LhOp op;
    LhPart *parts;        /* of an exchange, owned */
    uint32_t *counts;     /* of an uneven collective, owned */
    LhBoundRegion *bound; /* owned, one for each region in order */
    uint32_t bound_count;
    GPtrArray *buffers;  /* of LhBuffer *, held */
    LhMessage *messages; /* under way, owned */
    uint32_t messages_count;
    uint32_t pending;     /* of them */
    LhNativeCall *native; /* collectives that the links' library is asked for, owned */
    uint32_t native_count;
    GPtrArray *memory;    /* host memory that must outlive the messages; NULL: none */
    GPtrArray *temporary; /* device memory, likewise */
    LhTime issued_ps, start_ps, end_ps;
    uint64_t bytes, flops;
    unsigned round;          /* those that are through */
    LhCollectiveRun *run;    /* of a collective: how far it is; among @memory */
    LhDeviceMark start, end; /* where threads submit; owned; NULL: not submitted */
};

typedef struct {
    LhRunner *rank;
    uint32_t index;
    GThread *thread;
    LhPlaceOfWork at;
    LhItem *first, *last;         /* the first one runs, or waits for what it comes after */
    bool running;                 /* the first one */
    LhItem *flying, *flying_last; /* where threads submit: submitted, oldest first */
    unsigned char *scratch;       /* device memory, for kernels */
    uint64_t scratch_bytes;
} LhRunStream;

/* What the host has of a part of a slot. */
typedef struct {
    LhBuffer *buffer; /* NULL: not allocated */
    uint32_t part;    /* of the buffer */
} LhRunCell;

/* A buffer that nobody holds any more, and the op that gave it up last. */
typedef struct {
    LhOp op;
    LhBufferEnd *end; /* owned */
} LhEnding;

/* From one time to another. */
typedef struct {
    LhTime start_ps, end_ps;
} LhSpan;

struct _LhRunner {
    LhExecution *execution;
    uint32_t index;
    LhPlaceOfWork at; /* the host's */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint8_t *done; /* by op id */
    uint32_t done_capacity;
    uint32_t issued, first_open; /* ids: the next to come; the oldest not complete */
    bool ended;                  /* the host has issued everything */
    bool host_waits;             /* for its own device, before op host_op */
    uint32_t host_op;
    GThread *host;
    LhRunCell *cells; /* the host's */
    LhLive live;
    GQueue endings; /* of LhEnding *, owned, oldest first; where a thread submits */
    LhRunStream streams[LH_STREAMS_MAX];
    LhRunRank counted;
    GArray *kernels; /* of LhSpan: when kernels ran, in no order */
};

struct _LhExecution {
    const LhRunParams *params;
    const LhProgram *program;
    gint64 said_us; /* when it last said what it is at */
    void *control, *transport;
    LhChannels *channels;
    LhControlPlace place; /* ranks of this process */
    LhRunner *ranks;      /* [place.count] */
    int64_t epoch_ns;
    gint stopping, moved, alive; /* atomic; alive: threads */
    pthread_mutex_t lock;
    pthread_cond_t start; /* of the threads, once they are there */
    bool started;
    GError *error;
    GArray *records; /* of LhTimelineRecord */
};

/* The run starts now. */
void lh_execution_begin(LhExecution *x);
/* Since then. */
LhTime lh_execution_now(const LhExecution *x);
bool lh_execution_stopping(LhExecution *x);
/* Takes @error (the first one stays) and stops all threads. */
void lh_execution_fail(LhExecution *x, GError *error);
/* Adds the op's record, from item->start_ps to item->end_ps, and counts what it did. */
void lh_execution_record(LhRunner *rank, const LhItem *item);
/* With a message about an op of a rank. Returns false. */
bool lh_execution_fail_op(const LhRunner *rank, const LhOp *op, int code, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* Calls the hook that may sleep before op @op is issued (@where 0) or started (1). */
void lh_runner_pause_at(const LhRunner *rank, uint32_t op, uint32_t where);
/* Op @id is there from now on; it was done at @end_ps. */
void lh_runner_issued(LhRunner *rank, uint32_t id);
void lh_runner_done(LhRunner *rank, uint32_t id, LhTime end_ps);
