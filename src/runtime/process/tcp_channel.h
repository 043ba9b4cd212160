/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wire: the messages of one channel from one rank to another, over a TCP connection of its own.
 *
 * A message is its length and its bytes. It starts when both its ends have been posted, as in the
 * simulator: the receiver sends a credit for each receive that is posted, and who sends waits for
 * it. It is complete at the receiver when its last byte has been read, and at the sender when the
 * receiver has said so: one byte for each credit and each receipt.
 *
 * Nothing here waits, and all calls are made by one thread.
 */
#pragma once

#include "runtime/api/transport.h"

#define LH_BYTE_BITS 8

typedef struct {
    bool sends; /* this end does; else it receives */
    uint32_t rank, peer, channel;
    int socket;              /* -1: not connected */
    LhMessage *first, *last; /* posted and not complete, oldest first */
    LhMessage *moving;       /* the first that is not wholly sent or received; NULL: none */
    uint64_t moved;          /* of it, with its length */
    uint32_t piece;          /* where in its pieces that is ... */
    uint64_t piece_moved;    /* ... and in this one */
    unsigned char length[8]; /* of it, as sent or received; least significant byte first */
    uint64_t credits;        /* that came and are not used; the sender's */
    uint64_t due_credits, due_receipts; /* to be sent; the receiver's */
    int low_water;                      /* bytes that the socket waits for before it wakes us */
    char *failure;                      /* why nothing moves any more; owned; NULL: it may */
} LhTcpChannel;

void lh_tcp_channel_init(LhTcpChannel *wire, bool sends, uint32_t rank, uint32_t peer,
                         uint32_t channel);
/* Closes the socket; messages are forgotten. */
void lh_tcp_channel_clear(LhTcpChannel *wire);

/* Appends a message. */
void lh_tcp_channel_post(LhTcpChannel *wire, LhMessage *message);

/*
 * Sends and receives what the connected socket takes and has now. Returns whether a message was
 * completed; one that fails completes with an error, and so do all others, now and later.
 */
bool lh_tcp_channel_move(LhTcpChannel *wire);
/* Completes all messages with an error, which says @why, as will all that are posted later. */
void lh_tcp_channel_fail(LhTcpChannel *wire, const char *why);

/* What to ask epoll for. */
uint32_t lh_tcp_channel_events(const LhTcpChannel *wire);
/* Whether every message that was posted is complete. */
bool lh_tcp_channel_is_idle(const LhTcpChannel *wire);
