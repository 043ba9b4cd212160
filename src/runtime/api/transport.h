/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data plane: a transport carries messages between ranks. The executor posts messages and is
 * called back when each is done. Collectives consist of messages, so a transport knows nothing of
 * them.
 *
 * Messages match in posting order: on one channel the k-th message that rank A sends to rank B is
 * the k-th that B receives from A. Any thread may post; a message may complete on any thread, even
 * while it is being posted.
 */
#pragma once

#include "runtime/api/compute_device.h"
#include "runtime/api/control.h"
#include "runtime/api/replay.h"

/* Most channels of a run. */
#define LH_CHANNELS_MAX (UINT32_C(1) << 15)

typedef struct {
    unsigned char *data; /* device memory */
    uint64_t bytes;
} LhPiece;

/* One end of a message: memory pieces, in order. Both ends have the same number of bytes. */
typedef struct _LhMessage LhMessage;
struct _LhMessage {
    bool send; /* else receive */
    bool done; /* the owner's; set in complete() */
    uint32_t rank, peer;
    uint32_t channel;
    uint32_t pieces_count;
    LhPiece *pieces; /* borrowed until complete() */
    uint64_t bytes;  /* of all pieces */
    /* The device of the pieces, and a stream of it that belongs to this message until
     * complete(). */
    LhDeviceState *device;
    LhDeviceStream stream;
    /* Called once, without locks of the transport held; @error is NULL or the failure, and is taken
     * over. */
    void (*complete)(LhMessage *message, GError *error);
    bool (*stopping)(void *owner); /* whether the message is no longer awaited */
    void *owner;
    uint32_t op;     /* that it belongs to */
    int32_t slot;    /* slot sent or received, for error messages; -1: none */
    uint16_t tag;    /* label, for error messages */
    LhMessage *next; /* the transport's, until complete() */
};

/* A contiguous copy from the sender to the receiver. */
typedef struct {
    unsigned char *to;
    const unsigned char *from;
    uint64_t bytes;
} LhPieceCopy;

/* Position of a walk over both ends: the current pieces, and the bytes of them already passed. */
typedef struct {
    uint32_t from_piece, to_piece;
    uint64_t from_bytes, to_bytes;
} LhPieceWalk;

/* Gives the next copy of a message, whose ends may be cut into pieces differently; false at the
 * end. A walk begins with zeros. */
static inline bool
lh_piece_walk(LhPieceWalk *w, const LhMessage *from, const LhMessage *to, LhPieceCopy *copy)
{
    const LhPiece *a = &from->pieces[w->from_piece], *b = &to->pieces[w->to_piece];

    if (w->from_piece == from->pieces_count || w->to_piece == to->pieces_count)
        return false;
    *copy = (LhPieceCopy){ .to = b->data + w->to_bytes,
                           .from = a->data + w->from_bytes,
                           .bytes = MIN(a->bytes - w->from_bytes, b->bytes - w->to_bytes) };
    w->from_bytes += copy->bytes;
    w->to_bytes += copy->bytes;
    if (w->from_bytes == a->bytes) {
        w->from_bytes = 0;
        w->from_piece++;
    }
    if (w->to_bytes == b->bytes) {
        w->to_bytes = 0;
        w->to_piece++;
    }
    return true;
}

/* The parameters of the transport of a run; borrowed until it is open. */
typedef struct {
    uint32_t ranks, channels;       /* in use */
    const LhRunDevice *device;      /* of all ranks; borrowed until the transport is closed */
    const LhOpenControl *control;   /* the processes, and the ranks of this one */
    const LhReplay *replay;         /* NULL: all ranks run */
    LhTime (*now)(const void *run); /* time since the start of the run, once it has begun */
    const void *run;
} LhTransportParams;

typedef struct {
    const char *name;
    bool host_memory; /* needs memory that the host can read and write */
    /* Describes the library for people; NULL with @error if it is missing. Caller frees. NULL
     * function: no library needed. */
    char *(*describe)(GError **error);
    /* Called by all processes together. NULL with @error (LH_ERROR_RUNTIME) on failure. */
    void *(*open)(const LhTransportParams *params, GError **error);
    void (*post)(void *state, LhMessage *message);
    /*
     * Makes progress, and returns true if anything moved; called repeatedly by the thread that
     * opened the transport. May wait for up to @wait_us microseconds if nothing moves.
     */
    bool (*poll)(void *state, int64_t wait_us);
    /* Lists callers that do not belong to the run, for error messages; NULL: none. Caller frees.
     * NULL function: nobody can connect. */
    char *(*strangers)(void *state);
    /* Frees @state. Messages posted and not completed are dropped. */
    void (*close)(void *state);
} LhTransport;

extern const LhTransport lh_transport_threads;
extern const LhTransport lh_transport_mpi;
extern const LhTransport lh_transport_tcp;
/* For single-rank replay (replay.h). */
extern const LhTransport lh_transport_replay;
