/*
 * What the files of the executor share: a run, its ranks, and ops between issue and completion.
 *
 *     executor.c        threads: hosts, streams, and the one that watches over them
 *     execution.c       what a run has before its threads and after them: memory, results
 *     bind.c            from the regions of an op to the memory that they have now
 *     run_op.c          what an op does; run_collective.c for collectives
 *     stuck.c           what a rank says when nothing moves
 *
 * Locks: a rank's lock guards its op states, its queues and its counters of messages; the
 * execution's lock guards the first error and the records. No thread holds two locks. They are
 * POSIX locks, not GLib's, because ThreadSanitizer understands those.
 */
#pragma once

#include "program/collective.h"
#include "program/cursor.h"
#include "program/live.h"
#include "runtime/channels.h"
#include "runtime/executor.h"
#include "runtime/memory.h"

#include <pthread.h>

typedef struct _LhExecution LhExecution;
typedef struct _LhRunner LhRunner;

/* A region bound to memory: where each of its parts is, or the half of it that the region names. */
typedef struct {
    LhRegion region;
    unsigned char **parts; /* [region.count], owned by the item */
    uint64_t part_bytes;   /* of what it names in each */
    uint64_t stride_bytes; /* from part to part; 0: they come from several allocs */
} LhBound;

/* An op from its issue to its completion. */
typedef struct _LhItem LhItem;
struct _LhItem {
    LhItem *next;
    LhOp op;
    LhPart *parts;    /* of an exchange, owned */
    uint32_t *counts; /* of an uneven collective, owned */
    LhBound *bound;   /* owned, one for each region in order */
    uint32_t bound_count;
    GPtrArray *buffers;  /* of LhBuffer *, held */
    LhMessage *messages; /* under way, owned */
    uint32_t messages_count;
    uint32_t pending;     /* of them */
    GPtrArray *memory;    /* host memory that must outlive the messages; NULL: none */
    GPtrArray *temporary; /* device memory, likewise */
    LhTime issued_ps, start_ps;
    uint64_t bytes, flops;
};

typedef struct {
    LhRunner *rank;
    uint32_t index;
    GThread *thread;
    LhPlaceOfWork at;
    LhItem *first, *last;   /* the first one runs, or waits for what it comes after */
    bool running;           /* the first one */
    unsigned char *scratch; /* device memory, for kernels */
    uint64_t scratch_bytes;
} LhRunStream;

/* What the host has of a part of a slot. */
typedef struct {
    LhBuffer *buffer; /* NULL: not allocated */
    uint32_t part;    /* of the buffer */
} LhRunCell;

/* A rank. */
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
    LhRunStream streams[LH_STREAMS_MAX];
    LhRunRank counted;
};

struct _LhExecution {
    const LhRunParams *params;
    const LhProgram *program;
    void *control, *transport;
    LhChannels *channels;
    LhControlPlace place; /* ranks of this process */
    LhRunner *ranks;      /* [place.count] */
    int64_t epoch_ns;
    gint stopping, moved, alive; /* atomic; alive: threads */
    pthread_mutex_t lock;
    GError *error;
    GArray *records; /* of LhTimelineRecord */
};

/* ---- executor.c ---- */

/* Since the start of the run. */
LhTime lh_execution_now(const LhExecution *x);
bool lh_execution_stopping(LhExecution *x);
/* Takes @error (the first one stays) and stops all threads. */
void lh_execution_fail(LhExecution *x, GError *error);
/* With a message about an op of a rank. Returns false. */
bool lh_execution_fail_op(const LhRunner *rank, const LhOp *op, int code, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* ---- execution.c ---- */

/* Opens control plane, transport and devices, and fills the inputs. */
bool lh_execution_open(LhExecution *x, GError **error);
/* The results of all ranks, in the first process. */
LhRunResult *lh_execution_collect(LhExecution *x, GError **error);
void lh_execution_close(LhExecution *x);

/* ---- bind.c ---- */

/* Binds the op to the memory that its slots have now; false, and the run has failed, if it cannot.
 */
bool lh_item_bind(LhRunner *rank, LhItem *item);
/* Allocates or frees a region. */
bool lh_runner_alloc(LhRunner *rank, const LhOp *op);
bool lh_runner_free(LhRunner *rank, const LhOp *op);
/* Host memory that lives as long as the item; device memory likewise, NULL if the run has failed.
 * Never freed by the caller. */
void *lh_item_memory(LhItem *item, uint64_t bytes);
unsigned char *lh_item_temporary(LhRunStream *stream, LhItem *item, uint64_t bytes);
/* Gives everything back that the item holds. */
void lh_item_free(LhRunner *rank, const LhPlaceOfWork *at, LhItem *item);

/* ---- run_op.c, run_collective.c ---- */

/* Each runs the first op of @stream to its end; false: the run is being stopped. */
bool lh_run_compute(LhRunStream *stream, LhItem *item);
bool lh_run_exchange(LhRunStream *stream, LhItem *item);
bool lh_run_collective(LhRunStream *stream, LhItem *item);

/* Posts @count messages (taken over) and waits for all of them. False: the run is being stopped. */
bool lh_run_messages(LhRunStream *stream, LhItem *item, LhMessage *messages, uint32_t count);

/* Calls a kernel and waits for its end; false: the run has failed. */
bool lh_run_kernel(LhRunStream *stream, const LhItem *item, LhKernelId kernel, LhCall *call);
/* Waits until the stream has done everything. */
bool lh_run_finish(LhRunStream *stream, const LhItem *item);

/* ---- stuck.c ---- */

/* What every blocked rank of this process waits for. Caller frees. */
char *lh_execution_describe_blocked(LhExecution *x);
