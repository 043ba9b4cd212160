/*
 * What the files of the executor share.
 *
 * Locks: a rank's lock guards its op states, its queues and its counters of messages; the
 * execution's lock guards the first error and the records. No thread holds two locks. They are
 * POSIX locks, not GLib's, because ThreadSanitizer understands those.
 */
#pragma once

#include "runtime/buffer.h"
#include "runtime/executor.h"

#include <pthread.h>

typedef struct _LhExecution LhExecution;
typedef struct _LhRunner LhRunner;

/* An op from its issue to its completion. */
typedef struct _LhItem LhItem;
struct _LhItem {
    LhItem *next;
    LhOp op;
    LhPart *parts;      /* of an exchange, owned */
    LhBuffer **buffers; /* held, one for each region in order */
    uint32_t buffers_count;
    LhMessage *messages; /* under way, owned */
    uint32_t messages_count;
    uint32_t pending;  /* of them */
    GPtrArray *memory; /* pieces and scratch memory that must outlive the messages */
    LhTime issued_ps, start_ps;
    uint64_t bytes, flops;
};

typedef struct {
    LhRunner *rank;
    uint32_t index;
    GThread *thread;
    LhItem *first, *last; /* the first one runs, or waits for what it comes after */
    bool running;         /* the first one */
    void *scratch;        /* for kernels */
    uint64_t scratch_bytes;
} LhRunStream;

/* A rank. */
struct _LhRunner {
    LhExecution *execution;
    uint32_t index;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint8_t *done; /* by op id */
    uint32_t done_capacity;
    uint32_t issued, first_open; /* ids: the next to come; the oldest not complete */
    bool ended;                  /* the host has issued everything */
    bool host_waits;             /* for its own device, in op host_op */
    uint32_t host_op;
    GThread *host;
    LhBuffer **slots; /* the host's */
    uint64_t memory_bytes;
    LhRunStream streams[LH_STREAMS_MAX];
    LhRunRank counted;
};

struct _LhExecution {
    const LhRunParams *params;
    const LhProgram *program;
    void *transport;
    uint32_t first, count; /* ranks of this process */
    LhRunner *ranks;       /* [count] */
    int64_t epoch_ns;
    gint stopping, moved, alive; /* atomic; alive: threads */
    pthread_mutex_t lock;
    GError *error;
    GArray *records; /* of LhTimelineRecord */
};

/* Since the start of the run. */
LhTime lh_execution_now(const LhExecution *x);
bool lh_execution_stopping(LhExecution *x);
/* Takes @error (the first one stays) and stops all threads. */
void lh_execution_fail(LhExecution *x, GError *error);

/* Each runs the first op of @stream to its end; false: the run is being stopped. */
bool lh_run_compute(LhRunStream *stream, LhItem *item);
bool lh_run_exchange(LhRunStream *stream, LhItem *item);
bool lh_run_collective(LhRunStream *stream, LhItem *item);

/* Posts @count messages (taken over) and waits for all of them. False: the run is being stopped. */
bool lh_run_messages(LhRunStream *stream, LhItem *item, LhMessage *messages, uint32_t count);

/* Memory that lives as long as the item; never freed by the caller. */
void *lh_item_memory(LhItem *item, uint64_t bytes);
/* Byte range [from, from + bytes) of a region's parts laid end to end; sets pieces and bytes. */
void lh_item_range(LhItem *item, const LhBuffer *buffer, LhRegion region, uint64_t from,
                   uint64_t bytes, LhMessage *message);

/* At least @bytes for the kernel that the stream runs next; NULL for none. */
void *lh_stream_scratch(LhRunStream *stream, uint64_t bytes);

void lh_item_free(LhItem *item, bool *whole);

/* What every blocked rank of this process waits for. Caller frees. */
char *lh_execution_describe_blocked(LhExecution *x);
/* Op @id of a queue, "op 12 (exchange, stream comm)". Caller frees. */
char *lh_execution_op_text(const LhExecution *x, const LhOp *op);
