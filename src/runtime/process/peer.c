/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/peer.h"

#include "runtime/process/socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES (64U << 10)
#define READS_MAX 64

void
lh_peer_open(LhPeer *peer, int socket)
{
    *peer = (LhPeer){ .socket = socket, .received = g_byte_array_new() };
    g_queue_init(&peer->sending);
    lh_socket_set(socket);
}

void
lh_peer_close(LhPeer *peer)
{
    if (peer->socket < 0)
        return;
    close(peer->socket);
    peer->socket = -1;
    g_byte_array_unref(peer->received);
    g_queue_clear_full(&peer->sending, (GDestroyNotify)g_bytes_unref);
}

void
lh_peer_send(LhPeer *peer, LhControlFrameKind kind, GBytes *content)
{
    const gsize bytes = content == NULL ? 0 : g_bytes_get_size(content);

    g_assert(bytes <= UINT32_MAX);
    if (peer->socket < 0)
        return;
    g_queue_push_tail(&peer->sending, lh_control_frame_header(kind, (uint32_t)bytes));
    if (bytes > 0)
        g_queue_push_tail(&peer->sending, g_bytes_ref(content));
}

bool
lh_peer_is_idle(const LhPeer *peer)
{
    return g_queue_is_empty((GQueue *)&peer->sending);
}

short
lh_peer_events(const LhPeer *peer)
{
    return (short)((peer->full ? 0 : POLLIN) | (lh_peer_is_idle(peer) ? 0 : POLLOUT));
}

/* Whether a failed call may be repeated. */
static bool
is_transient(int cause)
{
    return cause == EAGAIN || cause == EWOULDBLOCK || cause == EINTR;
}

/* Keeps the first error. */
static void
note_error(LhPeer *peer, int cause)
{
    if (is_transient(cause) || peer->gone)
        return;
    peer->gone = true;
    peer->cause = cause;
}

bool
lh_peer_is_lost(const LhPeer *peer)
{
    return peer->cause == ETIMEDOUT || peer->cause == EHOSTUNREACH || peer->cause == ENETUNREACH;
}

static void
send_on(LhPeer *peer)
{
    while (!peer->gone && !lh_peer_is_idle(peer)) {
        GBytes *first = g_queue_peek_head(&peer->sending);
        gsize bytes;
        const char *data = g_bytes_get_data(first, &bytes);
        const ssize_t sent =
            send(peer->socket, data + peer->sent, bytes - peer->sent, MSG_NOSIGNAL);

        if (sent < 0) {
            note_error(peer, errno);
            return;
        }
        peer->sent += (gsize)sent;
        if (peer->sent < bytes)
            continue;
        peer->sent = 0;
        g_bytes_unref(g_queue_pop_head(&peer->sending));
    }
}

static void
receive_on(LhPeer *peer, gsize limit)
{
    for (uint32_t i = 0; i < READS_MAX; i++) {
        const guint before = peer->received->len;
        const guint room = (guint)MIN(limit - MIN(before, limit), READ_BYTES);
        ssize_t count;

        peer->full = room == 0;
        if (peer->full)
            return;
        g_byte_array_set_size(peer->received, before + room);
        count = recv(peer->socket, peer->received->data + before, room, 0);
        g_byte_array_set_size(peer->received, before + (guint)MAX(count, 0));
        if (count <= 0) {
            if (count == 0)
                peer->gone = true;
            else
                note_error(peer, errno);
            return;
        }
    }
}

void
lh_peer_move(LhPeer *peer, gsize limit)
{
    if (peer->socket < 0)
        return;
    /* Data sent before the connection ended can still be read, even if sending fails. */
    send_on(peer);
    receive_on(peer, limit);
}
