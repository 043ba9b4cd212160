/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP channel: the messages of one channel from one rank to another, over a TCP connection of its
 * own.
 *
 * A message is its length and its bytes. It starts when both its ends have been posted, as in the
 * simulator: the receiver sends a credit for each posted receive, and the sender waits for it. It
 * is complete at the receiver when its last byte has been read, and at the sender when the receiver
 * has acknowledged that. Credits and receipts are one byte each.
 *
 * Nothing here blocks, and all calls are made by one thread.
 */
#pragma once

#include "runtime/api/transport.h"

#define LH_BYTE_BITS 8

typedef struct {
    bool sends; /* this end sends; else it receives */
    uint32_t rank, peer, channel;
    int socket;                         /* -1: not connected */
    LhMessage *first, *last;            /* posted and not complete, oldest first */
    LhMessage *moving;                  /* the first not completely sent or received; NULL: none */
    uint64_t moved;                     /* bytes of it, including its length field */
    uint32_t piece;                     /* current piece */
    uint64_t piece_moved;               /* bytes of that piece */
    unsigned char length[8];            /* its length field; least significant byte first */
    uint64_t credits;                   /* received and unused; sender only */
    uint64_t due_credits, due_receipts; /* to be sent; receiver only */
    int low_water;                      /* SO_RCVLOWAT of the socket */
    char *failure;                      /* why the channel has failed; owned; NULL: it has not */
} LhTcpChannel;

void lh_tcp_channel_init(LhTcpChannel *wire, bool sends, uint32_t rank, uint32_t peer,
                         uint32_t channel);
/* Closes the socket; messages are dropped. */
void lh_tcp_channel_clear(LhTcpChannel *wire);

/* Appends a message. */
void lh_tcp_channel_post(LhTcpChannel *wire, LhMessage *message);

/*
 * Sends and receives what the connected socket allows now. Returns whether a message was completed.
 * After a failure all messages, present and future, complete with an error.
 */
bool lh_tcp_channel_move(LhTcpChannel *wire);
/* Completes all messages with the error @why, as well as all that are posted later. */
void lh_tcp_channel_fail(LhTcpChannel *wire, const char *why);

/* Events for epoll. */
uint32_t lh_tcp_channel_events(const LhTcpChannel *wire);
/* Whether every message that was posted is complete. */
bool lh_tcp_channel_is_idle(const LhTcpChannel *wire);
