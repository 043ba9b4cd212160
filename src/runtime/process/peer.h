/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to another process: frames to and fro over a socket that does not block. Nothing
 * waits here; lh_peer_move() moves what there is to be moved.
 */
#pragma once

#include "runtime/process/frames.h"

#include <poll.h>

typedef struct {
    int socket;           /* -1: none */
    GByteArray *received; /* owned: what is not yet a whole frame */
    GQueue sending;       /* of GBytes: what is not yet sent ... */
    gsize sent;           /* ... of the first of which so much is */
    bool gone;            /* the other end has closed it, or it is broken */
    int cause;            /* ... by this errno; 0: it was closed */
    bool full;            /* so much has been received as may be */
} LhPeer;

/* For a connected socket, which it takes over. */
void lh_peer_open(LhPeer *peer, int socket);
/* Closes the socket; what has not been sent is lost. */
void lh_peer_close(LhPeer *peer);

/* Appends a frame to what is to be sent; nothing if the connection is closed. */
void lh_peer_send(LhPeer *peer, LhControlFrameKind kind, GBytes *content);
/* Whether everything has been sent. */
bool lh_peer_is_idle(const LhPeer *peer);

/* Whether it was not closed by the other end, which the network has lost. */
bool lh_peer_is_lost(const LhPeer *peer);

/* What to ask poll() for. */
short lh_peer_events(const LhPeer *peer);
/* Sends and receives what the socket takes and has now, but not more than a few MiB at a time, so
 * that its frames are looked at, and not beyond @limit bytes that have been received and not taken.
 */
void lh_peer_move(LhPeer *peer, gsize limit);
