/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listening port for handshakes (handshake.h), open to members and strangers. A stranger that
 * sends nothing, or not enough, blocks no member: the queue of connections not yet accepted is
 * bounded, and the oldest are closed when more arrive or the process runs out of descriptors.
 * Rejected connections are counted by address.
 *
 * Nothing here blocks, and all calls are made by one thread.
 */
#pragma once

#include "runtime/process/endpoint.h"
#include "runtime/process/handshake.h"

#include <sys/socket.h>

typedef struct _LhListener LhListener;

typedef struct {
    LhAnswer answer;
    /* Takes over the socket, for lh_socket_set(); @owner is that of @answer. */
    void (*let_in)(void *owner, const LhHello *hello, int socket);
} LhListenerParams;

/* Creates a listener without an address. NULL with @error (LH_ERROR_RUNTIME). */
LhListener *lh_listener_open(const LhListenerParams *params, GError **error);
void lh_listener_close(LhListener *door); /* NULL: nothing */

/* Adds an address, as lh_socket_listen(). False with errno. */
bool lh_listener_listen(LhListener *door, const struct sockaddr *address, socklen_t length,
                        bool reused);
/*
 * Listens at one free port: on the interfaces the user chose and on loopback, or else on all
 * addresses, IPv6 and IPv4 where available. Sets the port of @here. False with errno.
 */
bool lh_listener_listen_here(LhListener *door, LhEndpoint *here);
/* The port of the first address; 0 without one. */
uint16_t lh_listener_port(const LhListener *door);

/* A descriptor that becomes readable when lh_listener_move() has work. */
int lh_listener_events(const LhListener *door);
/* Processes pending connections and their input. */
void lh_listener_move(LhListener *door);
/* Processes the backlog that built up while nobody called lh_listener_move(); the system accepts no
 * further connections until then. */
void lh_listener_catch_up(LhListener *door);
/* Closes connections that timed out; makes no system call if there are none. */
void lh_listener_look(LhListener *door);
/* Closes one connection not yet accepted to free a descriptor; false: there is none. */
bool lh_listener_make_room(LhListener *door);

/* Describes the rejected connections: count, addresses and reasons; NULL: none. Caller frees. */
char *lh_listener_strangers(const LhListener *door);
