/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links: how ranks meet on their devices, for the engine that submits (submit.c). Like a device, a
 * link enqueues and returns: what it is asked for happens on streams, in their order. With the
 * threads of the other engine a transport (transport.h) does this on the host.
 */
#pragma once

#include "program/collective_semantics.h"
#include "runtime/api/channels.h"
#include "runtime/api/control.h"
#include "runtime/api/transport.h"

/* What a run says to its links; borrowed until they are closed. */
typedef struct {
    const LhProgram *program;
    const LhChannels *channels; /* on each, messages meet as transport.h says */
    const LhRunDevice *device;
    const LhOpenControl *control;  /* tells processes of each other, and which ranks are here */
    const LhReplay *replay;        /* NULL: all ranks run */
    bool native;                   /* collectives are those of the library */
    int64_t deadline_us;           /* nothing waits for longer ... */
    bool (*stopping)(void *owner); /* ... nor when the run is being stopped */
    void *owner;
} LhLinksParams;

/* What a rank gives to a collective of the library's own, of one tensor. Device memory; @from and
 * @to do not overlap. */
typedef struct {
    LhCollectiveKind kind;   /* not all-to-all */
    enum lh_storage storage; /* of what is added up */
    const unsigned char *from;
    unsigned char *to;
    uint64_t from_bytes, to_bytes;
    LhDeviceStream stream;
} LhNativeCall;

/* A rank that takes part. Its device is open. */
typedef struct {
    uint32_t rank;
    LhDeviceState *device;
    LhDeviceStream host; /* the host's own, of copies to and fro */
} LhLinksRank;

typedef struct {
    const char *name;
    /*
     * Whether a message needs both its ends at hand to be enqueued. Then all ranks are of this
     * process, share its first device, and one thread drives them; else a rank has a thread and a
     * device of its own, and enqueues its ends in the order of its program, whoever else is there.
     */
    bool needs_both;
    /* Whether streams may have to wait for each other, so that a program must end in one queue for
     * each rank. */
    bool one_queue;
    /* Which library they are, for people: its version and file; NULL with @error if it cannot be
     * used. Caller frees. NULL: it needs none. */
    char *(*describe)(GError **error);
    /* Called once in a process, before the threads of its ranks. NULL with @error. */
    void *(*open)(const LhLinksParams *params, GError **error);
    /*
     * A rank joins, on the thread that drives it; returns when it can exchange messages with all
     * that its program names. May wait for the other ranks. NULL with @error.
     */
    void *(*join)(void *links, const LhLinksRank *rank, GError **error);
    /* Times are counted from now on: the mark that says so has just been enqueued on the host's
     * stream, which has nothing else. What this enqueues there is done before any op. NULL: there
     * is nothing to do. */
    bool (*begin)(void *joined, GError **error);
    /*
     * Posts the messages of an exchange, or of a round of a collective, as one group. A message is
     * enqueued on its stream (LhMessage's) behind all that is there; its complete() is called when
     * that has been done and what is enqueued behind it there comes after it: at once, or when
     * another rank posts the other end. Messages and pieces are borrowed until then.
     */
    bool (*exchange)(void *joined, const LhOp *op, LhMessage *const *messages, uint32_t count,
                     GError **error);
    /*
     * Enqueues the collective @op by the library's own, of all tensors as one group, on their
     * stream behind all that is there, and returns: what is enqueued behind it comes after it.
     * NULL: there are none.
     */
    bool (*collectives)(void *joined, const LhOp *op, const LhNativeCall *calls, uint32_t count,
                        GError **error);
    /* Whether something has failed that no call has told of. Never waits. NULL: nothing can. */
    bool (*failed)(void *joined, GError **error);
    /* Ends whatever the rank still waits for; nothing else is asked for but leave(). NULL: nothing
     * needs it. */
    void (*abort)(void *joined);
    void (*leave)(void *joined);
    void (*close)(void *links); /* when all ranks have left */
} LhLinks;

extern const LhLinks lh_links_copies;
extern const LhLinks lh_links_nccl;
/* Of a rank that runs alone: messages are played (replay.h). The device has a clock. */
extern const LhLinks lh_links_replay;
