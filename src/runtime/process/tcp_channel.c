/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/tcp_channel.h"

#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define LENGTH_BYTES 8
#define IOVECS 64
#define SIGNS 64 /* credits and receipts per call */
#define CREDIT 'C'
#define RECEIPT 'R'
/* Bytes that a socket gathers before it wakes the receiver, unless the message ends earlier. */
#define LOW_WATER (INT32_C(64) << 10)

void
lh_tcp_channel_init(LhTcpChannel *wire, bool sends, uint32_t rank, uint32_t peer, uint32_t channel)
{
    *wire = (LhTcpChannel){
        .sends = sends, .rank = rank, .peer = peer, .channel = channel, .socket = -1, .low_water = 1
    };
}

void
lh_tcp_channel_clear(LhTcpChannel *wire)
{
    if (wire->socket >= 0)
        close(wire->socket);
    g_free(wire->failure);
}

bool
lh_tcp_channel_is_idle(const LhTcpChannel *wire)
{
    return wire->first == NULL;
}

uint32_t
lh_tcp_channel_events(const LhTcpChannel *wire)
{
    const bool writes = wire->sends ? wire->moving != NULL && (wire->moved > 0 || wire->credits > 0)
                                    : wire->due_credits + wire->due_receipts > 0;

    return EPOLLIN | (writes ? (uint32_t)EPOLLOUT : 0);
}

/* ---- completion ---- */

static void
complete_first(LhTcpChannel *wire, GError *error)
{
    LhMessage *message = wire->first;

    wire->first = message->next;
    if (wire->first == NULL)
        wire->last = NULL;
    if (wire->moving == message)
        wire->moving = wire->first;
    message->complete(message, error);
}

void
lh_tcp_channel_fail(LhTcpChannel *wire, const char *why)
{
    if (wire->failure == NULL)
        wire->failure = g_strdup(why);
    if (wire->socket >= 0)
        close(wire->socket);
    wire->socket = -1;
    while (wire->first != NULL)
        complete_first(wire, g_error_new(LH_WAITED, LH_ERROR_RUNTIME, "%s rank %u: %s",
                                         wire->sends ? "cannot send to" : "cannot receive from",
                                         wire->peer, wire->failure));
}

static void
fail_by_error(LhTcpChannel *wire, int cause)
{
    g_autofree char *why =
        cause == 0 ? g_strdup("its process is gone")
                   : g_strdup_printf("its process is gone, or cannot be reached any more: %s",
                                     g_strerror(cause));

    lh_tcp_channel_fail(wire, why);
}

/* ---- the message in transit ---- */

static void
begin_message(LhTcpChannel *wire)
{
    wire->moved = 0;
    wire->piece = 0;
    wire->piece_moved = 0;
    for (unsigned i = 0; wire->sends && i < LENGTH_BYTES; i++)
        wire->length[i] = (unsigned char)(wire->moving->bytes >> (LH_BYTE_BITS * i));
}

void
lh_tcp_channel_post(LhTcpChannel *wire, LhMessage *message)
{
    message->next = NULL;
    if (wire->last != NULL)
        wire->last->next = message;
    else
        wire->first = message;
    wire->last = message;
    if (wire->failure != NULL) {
        lh_tcp_channel_fail(wire, NULL);
        return;
    }
    if (!wire->sends)
        wire->due_credits++;
    if (wire->moving == NULL) {
        wire->moving = message;
        begin_message(wire);
    }
}

/* Gives the remaining bytes of the message, as far as the vectors reach. */
static int
remaining(LhTcpChannel *wire, struct iovec vectors[IOVECS])
{
    const LhMessage *m = wire->moving;
    uint64_t begin = wire->piece_moved;
    int count = 0;

    if (wire->moved < LENGTH_BYTES)
        vectors[count++] =
            (struct iovec){ wire->length + wire->moved, (size_t)(LENGTH_BYTES - wire->moved) };
    if (wire->moved < LENGTH_BYTES && !wire->sends)
        return count; /* the receiver checks the length first */
    for (uint32_t i = wire->piece; i < m->pieces_count && count < IOVECS; i++, begin = 0)
        vectors[count++] =
            (struct iovec){ m->pieces[i].data + begin, (size_t)(m->pieces[i].bytes - begin) };
    return count;
}

/* Accounts for @bytes more. Returns whether the message is complete. */
static bool
advance(LhTcpChannel *wire, uint64_t bytes)
{
    const LhMessage *m = wire->moving;
    const uint64_t of_length = MIN(bytes, LENGTH_BYTES - MIN(wire->moved, LENGTH_BYTES));

    wire->moved += bytes;
    wire->piece_moved += bytes - of_length;
    while (wire->piece < m->pieces_count && wire->piece_moved >= m->pieces[wire->piece].bytes) {
        wire->piece_moved -= m->pieces[wire->piece].bytes;
        wire->piece++;
    }
    return wire->moved == LENGTH_BYTES + m->bytes;
}

/* Whether a call that moved nothing may be repeated later; otherwise the channel fails. */
static bool
is_later(LhTcpChannel *wire, ssize_t result)
{
    const int cause = result == 0 ? 0 : errno;

    if (result < 0 && (cause == EAGAIN || cause == EWOULDBLOCK || cause == EINTR))
        return true;
    fail_by_error(wire, cause);
    return false;
}

/* ---- the sender ---- */

static void
send_messages(LhTcpChannel *wire)
{
    while (wire->moving != NULL && (wire->moved > 0 || wire->credits > 0)) {
        struct iovec vectors[IOVECS];
        const struct msghdr header = { .msg_iov = vectors,
                                       .msg_iovlen = (size_t)remaining(wire, vectors) };
        const ssize_t sent = sendmsg(wire->socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent <= 0) {
            (void)is_later(wire, sent);
            return;
        }
        if (wire->moved == 0)
            wire->credits--;
        if (!advance(wire, (uint64_t)sent))
            continue;
        wire->moving = wire->moving->next;
        if (wire->moving != NULL)
            begin_message(wire);
    }
}

static bool
take_signs(LhTcpChannel *wire, const unsigned char *signs, ssize_t count)
{
    for (ssize_t i = 0; i < count; i++) {
        if (signs[i] == CREDIT) {
            wire->credits++;
        } else if (signs[i] == RECEIPT && wire->first != wire->moving) {
            complete_first(wire, NULL);
        } else {
            lh_tcp_channel_fail(wire, "it sent an unexpected answer");
            return false;
        }
    }
    return true;
}

static void
read_signs(LhTcpChannel *wire)
{
    unsigned char signs[SIGNS];
    ssize_t count;

    do {
        count = recv(wire->socket, signs, sizeof(signs), MSG_DONTWAIT);
        if (count <= 0) {
            (void)is_later(wire, count);
            return;
        }
    } while (take_signs(wire, signs, count) && count == SIGNS);
}

/* ---- the receiver ---- */

/* Sends due credits and receipts as soon as the socket takes them: receipts first. */
static void
write_signs(LhTcpChannel *wire)
{
    while (wire->due_receipts + wire->due_credits > 0) {
        const uint64_t receipts = MIN(wire->due_receipts, SIGNS);
        const uint64_t credits = MIN(wire->due_credits, SIGNS - receipts);
        unsigned char signs[SIGNS];
        uint64_t of_receipts;
        ssize_t sent;

        memset(signs, RECEIPT, receipts);
        memset(signs + receipts, CREDIT, credits);
        sent = send(wire->socket, signs, receipts + credits, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0) {
            (void)is_later(wire, sent);
            return;
        }
        of_receipts = MIN((uint64_t)sent, receipts);
        wire->due_receipts -= of_receipts;
        wire->due_credits -= (uint64_t)sent - of_receipts;
    }
}

/* Sets SO_RCVLOWAT, so that the socket wakes the receiver only for a worthwhile amount. */
static void
set_low_water(LhTcpChannel *wire)
{
    const uint64_t rest =
        wire->moving == NULL ? 1 : LENGTH_BYTES + wire->moving->bytes - wire->moved;
    const int low_water = (int)MIN(rest, (uint64_t)LOW_WATER);

    if (low_water != wire->low_water)
        (void)setsockopt(wire->socket, SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof(low_water));
    wire->low_water = low_water;
}

static uint64_t
told_length(const LhTcpChannel *wire)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        bytes |= (uint64_t)wire->length[i] << (LH_BYTE_BITS * i);
    return bytes;
}

/* False if the length differs from that of the posted receive. */
static bool
check_length(LhTcpChannel *wire)
{
    g_autofree char *why = NULL;

    if (wire->moved < LENGTH_BYTES || told_length(wire) == wire->moving->bytes)
        return true;
    why = g_strdup_printf("it sends %" G_GUINT64_FORMAT " bytes where %" G_GUINT64_FORMAT
                          " are expected",
                          told_length(wire), wire->moving->bytes);
    lh_tcp_channel_fail(wire, why);
    return false;
}

/* Nothing is expected but the end of the connection. */
static void
look_for_end(LhTcpChannel *wire)
{
    unsigned char byte;
    const ssize_t count = recv(wire->socket, &byte, 1, MSG_DONTWAIT);

    if (count > 0)
        lh_tcp_channel_fail(wire, "it sent unexpected data");
    else
        (void)is_later(wire, count);
}

static void
receive_messages(LhTcpChannel *wire)
{
    while (wire->moving != NULL) {
        struct iovec vectors[IOVECS];
        struct msghdr header = { .msg_iov = vectors,
                                 .msg_iovlen = (size_t)remaining(wire, vectors) };
        const ssize_t got = recvmsg(wire->socket, &header, MSG_DONTWAIT);
        bool whole;

        if (got <= 0) {
            (void)is_later(wire, got);
            return;
        }
        whole = advance(wire, (uint64_t)got);
        if (!check_length(wire))
            return;
        if (!whole)
            continue;
        wire->due_receipts++;
        write_signs(wire);
        if (wire->socket < 0)
            return;
        complete_first(wire, NULL);
        if (wire->moving != NULL)
            begin_message(wire);
    }
}

bool
lh_tcp_channel_move(LhTcpChannel *wire)
{
    const LhMessage *before = wire->first;

    if (wire->sends) {
        read_signs(wire);
        if (wire->socket >= 0)
            send_messages(wire);
        return wire->first != before;
    }
    write_signs(wire);
    if (wire->socket >= 0 && wire->moving != NULL)
        receive_messages(wire);
    else if (wire->socket >= 0)
        look_for_end(wire);
    if (wire->socket >= 0)
        set_low_water(wire);
    return wire->first != before;
}
