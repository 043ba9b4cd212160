/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP sockets of control plane and transport.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/socket.h>

/* Makes the socket non-blocking and close-on-exec, disables Nagle's algorithm (small frames are
 * waited for), and enables keep-alive, so that the loss of the other machine is noticed
 * eventually. */
void lh_socket_set(int socket);

/* Opens a socket that listens at the address; an IPv6 socket accepts IPv4, too. -1 with errno.
 * @reused: allow an address that was in use just before (SO_REUSEADDR). */
int lh_socket_listen(const struct sockaddr *address, socklen_t length, bool reused);

/* Whether the address is loopback. */
bool lh_socket_is_loopback(const struct sockaddr *address);

/* Raises the limit of open files to the most the system allows: every connection needs one. */
void lh_socket_raise_limit(void);

/* Compares bytes in constant time. */
bool lh_same_secret(const unsigned char *a, const unsigned char *b, gsize bytes);
