/*
 * What carries messages between ranks. The executor posts messages and is told when each is done;
 * collectives are made of messages too, so a transport knows nothing else.
 *
 * Two messages match by (source, destination, tag), in order of posting. A message is posted by any
 * thread; it may complete on any thread, also while it is being posted.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Tags of collectives start here; those of the IR are 16 bits wide. */
#define LH_TAG_COLLECTIVES (UINT32_C(1) << 16)

typedef struct {
    unsigned char *data;
    uint64_t bytes;
} LhPiece;

/* One end of a message: pieces of memory, in order. Both ends have the same number of bytes. */
typedef struct _LhMessage LhMessage;
struct _LhMessage {
    bool send; /* else receive */
    bool done; /* the owner's, set in complete() */
    uint32_t rank, peer;
    uint32_t tag;
    uint32_t pieces_count;
    LhPiece *pieces;                      /* borrowed until complete() */
    uint64_t bytes;                       /* of all pieces */
    void (*complete)(LhMessage *message); /* called once, without locks of the transport */
    void *owner;
    int32_t slot;    /* for messages about it: what is sent or received; -1: none */
    LhMessage *next; /* the transport's, until complete() */
};

typedef struct {
    const char *name;
    const char *summary;
    /*
     * Opens the transport for @ranks ranks and says which of them are this process's: [first, first
     * + count). NULL with @error (LH_ERROR_RUNTIME) if that is impossible.
     */
    void *(*open)(uint32_t ranks, uint32_t *first, uint32_t *count, GError **error);
    void (*post)(void *state, LhMessage *message);
    /*
     * Moves what can be moved and returns true if something was; called again and again by the
     * thread that opened the transport. May wait for up to @wait_us microseconds if nothing moves.
     */
    bool (*poll)(void *state, int64_t wait_us);
    /*
     * Appends @bytes of every process, in the order of its ranks, to @all of the first process, and
     * nothing elsewhere. Called by the thread that opened it, with no messages under way.
     */
    bool (*gather)(void *state, const GByteArray *bytes, GByteArray *all, GError **error);
    /* Messages that were posted and not completed are forgotten. Frees @state. */
    void (*close)(void *state);
    /* Ends all processes with exit status @status after the others had time to say what they see.
     * May be called after close(); NULL: there are no other processes. */
    void (*abandon)(int status);
} LhTransport;

extern const LhTransport lh_transport_threads;
extern const LhTransport lh_transport_mpi;

/* "cpu", "mpi"; NULL-terminated, in the order of lh_transports. */
extern const char *const lh_transport_names[];
extern const LhTransport *const lh_transports[];
