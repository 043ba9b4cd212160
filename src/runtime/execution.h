/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run, its ranks, and ops between issue and completion: shared by the files of the executor.
 *
 *     executor.c           a run from beginning to results
 *     execution_open.c     setup and teardown: processes, devices, memory
 *     thread_engine.c      engine of threads: hosts, streams, and a watcher
 *     submit.c             engine of submission: a thread enqueues the ops of its ranks
 *     bind.c               binds the regions of an op to memory
 *     run_op.c             what an op does; run_collective.c for collectives
 *     deadlock_report.c    what each rank waits for when nothing moves
 *     execution_results.c  gathers the results of all ranks
 *
 * Locks: a rank's lock guards its op states, queues and message counters; the execution's lock
 * guards the first error and the records. No thread holds two locks. They are POSIX locks, not
 * GLib's, because ThreadSanitizer understands those.
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

/* A region bound to memory: the address of each of its parts, or of the half that the region
 * names. */
typedef struct {
    LhRegion region;
    unsigned char **parts; /* [region.count], owned by the item */
    uint64_t part_bytes;   /* bytes of each part (or half) */
    uint64_t stride_bytes; /* from part to part; 0: the parts come from several allocs */
} LhBoundRegion;

/* A collective in progress. */
typedef struct _LhCollectiveRun LhCollectiveRun;

/* An op from issue to completion. */
typedef struct _LhItem LhItem;
struct _LhItem {
    LhItem *next;
    LhOp op;
    LhPart *parts;        /* of an exchange, owned */
    uint32_t *counts;     /* of an uneven collective, owned */
    LhBoundRegion *bound; /* owned; one for each region, in order */
    uint32_t bound_count;
    GPtrArray *buffers;  /* of LhBuffer *; a hold on each */
    LhMessage *messages; /* in transit; owned */
    uint32_t messages_count;
    uint32_t pending;     /* messages not complete */
    LhNativeCall *native; /* collectives of the links' library; owned */
    uint32_t native_count;
    GPtrArray *memory;    /* host memory that must outlive the messages; NULL: none */
    GPtrArray *temporary; /* device memory, likewise */
    LhTime issued_ps, start_ps, end_ps;
    uint64_t bytes, flops;
    unsigned round;          /* rounds completed */
    LhCollectiveRun *run;    /* state of a collective; part of @memory */
    LhDeviceMark start, end; /* submission engine; owned; NULL: not submitted */
};

typedef struct {
    LhRunner *rank;
    uint32_t index;
    GThread *thread;
    LhPlaceOfWork at;
    LhItem *first, *last;         /* queue; the first runs, or waits for its dependencies */
    bool running;                 /* whether the first one runs */
    LhItem *flying, *flying_last; /* submission engine: submitted, oldest first */
    unsigned char *scratch;       /* device memory of kernels */
    uint64_t scratch_bytes;
} LhRunStream;

/* The host's view of a part of a slot. */
typedef struct {
    LhBuffer *buffer; /* NULL: not allocated */
    uint32_t part;    /* index within the buffer */
} LhRunCell;

/* A buffer without holders, and the op that released it last. */
typedef struct {
    LhOp op;
    LhBufferEnd *end; /* owned */
} LhEnding;

/* An interval of time. */
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
    uint32_t issued, first_open; /* op ids: the next to issue; the oldest incomplete */
    bool ended;                  /* the host has issued all ops */
    bool host_waits;             /* the host waits for the device before op host_op */
    uint32_t host_op;
    GThread *host;
    LhRunCell *cells; /* the host's */
    LhLive live;
    GQueue endings; /* of LhEnding *; owned; oldest first; submission engine */
    LhRunStream streams[LH_STREAMS_MAX];
    LhRunRank counted;
    GArray *kernels; /* of LhSpan: when kernels ran, unordered */
};

struct _LhExecution {
    const LhRunParams *params;
    const LhProgram *program;
    gint64 said_us; /* when progress was last reported */
    void *control, *transport;
    LhChannels *channels;
    LhControlPlace place; /* ranks of this process */
    LhRunner *ranks;      /* [place.count] */
    int64_t epoch_ns;
    gint stopping, moved, alive; /* atomic; alive: number of threads */
    pthread_mutex_t lock;
    pthread_cond_t start; /* signals started to the threads */
    bool started;
    GError *error;
    GArray *records; /* of LhTimelineRecord */
};

/* Sets the start of the run to now. */
void lh_execution_begin(LhExecution *x);
/* Time since the start. */
LhTime lh_execution_now(const LhExecution *x);
bool lh_execution_stopping(LhExecution *x);
/* Takes @error (the first one is kept) and stops all threads. */
void lh_execution_fail(LhExecution *x, GError *error);
/* Records the op from item->start_ps to item->end_ps, and counts its bytes and FLOPs. */
void lh_execution_record(LhRunner *rank, const LhItem *item);
/* Fails the run with a message about an op of a rank. Returns false. */
bool lh_execution_fail_op(const LhRunner *rank, const LhOp *op, int code, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* Calls the pause hook before op @op is issued (@where 0) or started (1). */
void lh_runner_pause_at(const LhRunner *rank, uint32_t op, uint32_t where);
/* Records that op @id is issued; that it completed at @end_ps. */
void lh_runner_issued(LhRunner *rank, uint32_t id);
void lh_runner_done(LhRunner *rank, uint32_t id, LhTime end_ps);
