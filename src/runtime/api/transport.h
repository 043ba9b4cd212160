/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What carries messages between ranks: the data plane. The executor posts messages and is told when
 * each is done; collectives are made of messages too, so a transport knows nothing else.
 *
 * On one channel the k-th message that a rank sends to another one is the k-th that the other
 * receives from it, in order of posting. A message is posted by any thread; it may complete on any
 * thread, also while it is being posted.
 */
#pragma once

#include "runtime/api/compute_device.h"
#include "runtime/api/control.h"
#include "runtime/api/replay.h"

/* Channels that a run may have. */
#define LH_CHANNELS_MAX (UINT32_C(1) << 15)

typedef struct {
    unsigned char *data; /* device memory */
    uint64_t bytes;
} LhPiece;

/* One end of a message: pieces of memory, in order. Both ends have the same number of bytes. */
typedef struct _LhMessage LhMessage;
struct _LhMessage {
    bool send; /* else receive */
    bool done; /* the owner's, set in complete() */
    uint32_t rank, peer;
    uint32_t channel;
    uint32_t pieces_count;
    LhPiece *pieces; /* borrowed until complete() */
    uint64_t bytes;  /* of all pieces */
    /* The device that the pieces are on, and a stream of it that is this message's until
     * complete().
     */
    LhDeviceState *device;
    LhDeviceStream stream;
    /* Called once, without locks of the transport; @error is NULL, or what went wrong, taken over.
     */
    void (*complete)(LhMessage *message, GError *error);
    bool (*stopping)(void *owner); /* whether nobody waits for it any more */
    void *owner;
    uint32_t op;     /* that it is of */
    int32_t slot;    /* for messages about it: what is sent or received; -1: none */
    uint16_t tag;    /* likewise, a label */
    LhMessage *next; /* the transport's, until complete() */
};

/* A piece of the sender's that goes to one place of the receiver's. */
typedef struct {
    unsigned char *to;
    const unsigned char *from;
    uint64_t bytes;
} LhPieceCopy;

/* Where a walk over both ends is: pieces, and bytes of them that have been passed. */
typedef struct {
    uint32_t from_piece, to_piece;
    uint64_t from_bytes, to_bytes;
} LhPieceWalk;

/* The next copy of a message, whose ends may be cut into pieces differently; false: the end. A walk
 * begins with zeros. */
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

/* What a run says to its transport; borrowed until it is open. */
typedef struct {
    uint32_t ranks, channels;       /* in use */
    const LhRunDevice *device;      /* of all ranks; borrowed until it is closed */
    const LhOpenControl *control;   /* tells processes of each other, and which ranks are here */
    const LhReplay *replay;         /* NULL: all ranks run */
    LhTime (*now)(const void *run); /* since the start of the run, once it has begun */
    const void *run;
} LhTransportParams;

typedef struct {
    const char *name;
    bool host_memory; /* it needs memory that the host can read and write */
    /* Which library carries them, for people; NULL with @error if it is not there. Caller frees.
     * NULL: it needs none. */
    char *(*describe)(GError **error);
    /* All processes call it together. NULL with @error (LH_ERROR_RUNTIME) if it is impossible. */
    void *(*open)(const LhTransportParams *params, GError **error);
    void (*post)(void *state, LhMessage *message);
    /*
     * Moves what can be moved and returns true if something was; called again and again by the
     * thread that opened the transport. May wait for up to @wait_us microseconds if nothing moves.
     */
    bool (*poll)(void *state, int64_t wait_us);
    /* Who has called and does not belong to the run, for messages; NULL: nobody. Caller frees.
     * NULL: nobody can call. */
    char *(*strangers)(void *state);
    /* Messages that were posted and not completed are forgotten. Frees @state. */
    void (*close)(void *state);
} LhTransport;

extern const LhTransport lh_transport_threads;
extern const LhTransport lh_transport_mpi;
extern const LhTransport lh_transport_tcp;
/* Of a rank that runs alone: messages are played (replay.h). */
extern const LhTransport lh_transport_replay;
