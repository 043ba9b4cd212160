/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of TCP, as control plane and transport set them.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/socket.h>

/* Never blocks, is closed by exec, sends small frames at once, since they are waited for, and
 * notices some time that the other machine is gone. */
void lh_socket_set(int socket);

/* A socket that listens at the address, an IPv6 one to IPv4 as well; -1 with errno. @reused: also
 * where one has listened just before. */
int lh_socket_listen(const struct sockaddr *address, socklen_t length, bool reused);

/* Whether only this computer is reached there. */
bool lh_socket_is_loopback(const struct sockaddr *address);

/* As many files as the system allows: every connection has one. */
void lh_socket_raise_limit(void);

/* Whether bytes are the same, in a time that does not say which differ. */
bool lh_same_secret(const unsigned char *a, const unsigned char *b, gsize bytes);
