/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links: data movement between the devices of ranks, for the engine that submits (submit.c). Like a
 * device, a link enqueues and returns: its operations run on streams, in their order. The engine of
 * threads uses a transport (transport.h) instead, which works on the host.
 */
#pragma once

#include "program/collective_semantics.h"
#include "runtime/api/channels.h"
#include "runtime/api/control.h"
#include "runtime/api/transport.h"

/* The parameters of the links of a run; borrowed until they are closed. */
typedef struct {
    const LhProgram *program;
    const LhChannels *channels; /* messages match per channel, as in transport.h */
    const LhRunDevice *device;
    const LhOpenControl *control;  /* the processes, and the ranks of this one */
    const LhReplay *replay;        /* NULL: all ranks run */
    bool native;                   /* use the library's own collectives */
    int64_t deadline_us;           /* longest wait */
    bool (*stopping)(void *owner); /* whether the run is being stopped: ends every wait */
    void *owner;
} LhLinksParams;

/* A rank's part of a collective of the library, for one tensor. Device memory; @from and @to do not
 * overlap. */
typedef struct {
    LhCollectiveKind kind;   /* not all-to-all */
    enum lh_storage storage; /* element type of a reduction */
    const unsigned char *from;
    unsigned char *to;
    uint64_t from_bytes, to_bytes;
    LhDeviceStream stream;
} LhNativeCall;

/* A rank that joins. Its device is open. */
typedef struct {
    uint32_t rank;
    LhDeviceState *device;
    LhDeviceStream host; /* the host's stream, for loads and stores */
} LhLinksRank;

typedef struct {
    const char *name;
    /*
     * Whether a message is enqueued only when both its ends have been posted. Then all ranks are in
     * this process and share its first device, and one thread drives them. Otherwise every rank has
     * its own thread and device, and enqueues its ends in program order, independent of its peers.
     */
    bool needs_both;
    /* Whether streams may block each other, so that the program must complete with a single queue
     * per rank. */
    bool one_queue;
    /* Describes the library for people: version and file; NULL with @error if it cannot be used.
     * Caller frees. NULL function: no library needed. */
    char *(*describe)(GError **error);
    /* Called once per process, before the threads of its ranks start. NULL with @error. */
    void *(*open)(const LhLinksParams *params, GError **error);
    /*
     * Adds a rank, on the thread that drives it; returns when the rank can exchange messages with
     * every peer in its program. May wait for the other ranks. NULL with @error.
     */
    void *(*join)(void *links, const LhLinksRank *rank, GError **error);
    /* Called at the origin of times: its mark has just been enqueued on the host's stream, which is
     * otherwise empty. What this function enqueues there is done before any op. NULL: nothing to
     * do. */
    bool (*begin)(void *joined, GError **error);
    /*
     * Posts the messages of an exchange, or of a round of a collective, as one group. Each message
     * is enqueued on its own stream (LhMessage's), after everything already there. complete() is
     * called when the message has been enqueued and what is enqueued next on that stream comes
     * after it: at once, or when the peer posts the other end. Messages and pieces are borrowed
     * until then.
     */
    bool (*exchange)(void *joined, const LhOp *op, LhMessage *const *messages, uint32_t count,
                     GError **error);
    /*
     * Enqueues the library's own collective for @op, all tensors as one group, on their stream
     * after everything already there. NULL: there are none.
     */
    bool (*collectives)(void *joined, const LhOp *op, const LhNativeCall *calls, uint32_t count,
                        GError **error);
    /* Whether a failure has occurred that no call has reported. Never waits. NULL: impossible. */
    bool (*failed)(void *joined, GError **error);
    /* Ends every wait of the rank; only leave() may be called after it. NULL: not needed. */
    void (*abort)(void *joined);
    void (*leave)(void *joined);
    void (*close)(void *links); /* after all ranks have left */
} LhLinks;

extern const LhLinks lh_links_copies;
extern const LhLinks lh_links_nccl;
/* For single-rank replay (replay.h). The device must have a clock. */
extern const LhLinks lh_links_replay;
