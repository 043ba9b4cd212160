/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to another process: frames in both directions over a non-blocking socket. Nothing
 * here blocks; lh_peer_move() makes progress.
 */
#pragma once

#include "runtime/process/frames.h"

#include <poll.h>

typedef struct {
    int socket;           /* -1: none */
    GByteArray *received; /* owned: an incomplete frame */
    GQueue sending;       /* of GBytes: not yet sent */
    gsize sent;           /* bytes of the first that have been sent */
    bool gone;            /* closed by the other end, or broken */
    int cause;            /* errno of the failure; 0: closed */
    bool full;            /* the receive limit is reached */
} LhPeer;

/* Takes over a connected socket. */
void lh_peer_open(LhPeer *peer, int socket);
/* Closes the socket; unsent data is lost. */
void lh_peer_close(LhPeer *peer);

/* Queues a frame for sending; no effect if the connection is closed. */
void lh_peer_send(LhPeer *peer, LhControlFrameKind kind, GBytes *content);
/* Whether everything queued has been sent. */
bool lh_peer_is_idle(const LhPeer *peer);

/* Whether the network lost the connection, rather than the other end closing it. */
bool lh_peer_is_lost(const LhPeer *peer);

/* Events for poll(). */
short lh_peer_events(const LhPeer *peer);
/* Sends and receives what the socket allows now, at most a few MiB at a time, so that frames are
 * processed in between, and never more than @limit received bytes not yet taken. */
void lh_peer_move(LhPeer *peer, gsize limit);
