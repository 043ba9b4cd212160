/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port at which others call (handshake.h), whoever they are: members and strangers. Who says
 * nothing, or not enough, keeps no member out: there is room for so many that have not been let in,
 * and the oldest of them go when more come. So they do when the process has no descriptors left.
 * Who is sent away is counted, with where it came from.
 *
 * Nothing waits here, and all calls are made by one thread.
 */
#pragma once

#include "runtime/process/endpoint.h"
#include "runtime/process/handshake.h"

#include <sys/socket.h>

typedef struct _LhListener LhListener;

typedef struct {
    LhAnswer answer;
    /* Takes the socket over, for lh_socket_set(); @owner is that of @answer. */
    void (*let_in)(void *owner, const LhHello *hello, int socket);
} LhListenerParams;

/* Listens nowhere yet. NULL with @error (LH_ERROR_RUNTIME). */
LhListener *lh_listener_open(const LhListenerParams *params, GError **error);
void lh_listener_close(LhListener *door); /* NULL: nothing */

/* Listens at the address, too, as lh_socket_listen(). False with errno. */
bool lh_listener_listen(LhListener *door, const struct sockaddr *address, socklen_t length,
                        bool reused);
/*
 * Listens at one port that is free: at the interfaces that somebody has chosen, and for processes
 * of this machine, or else at all addresses, of both kinds where the machine has both. Sets the
 * port of @here. False with errno.
 */
bool lh_listener_listen_here(LhListener *door, LhEndpoint *here);
/* The port of the first address; 0 if there is none. */
uint16_t lh_listener_port(const LhListener *door);

/* A descriptor that can be read when lh_listener_move() has something to do. */
int lh_listener_events(const LhListener *door);
/* Hears those that have called. */
void lh_listener_move(LhListener *door);
/* Hears all that have called while nobody did: until then the system lets nobody else call. */
void lh_listener_catch_up(LhListener *door);
/* Sends those away whose time is over; asks the system nothing if there are none. */
void lh_listener_look(LhListener *door);
/* Sends one away that has not been let in, so that there is a descriptor; false: there is none. */
bool lh_listener_make_room(LhListener *door);

/* Who has come and was not let in: how many, from where, and why not; NULL: nobody. Caller frees.
 */
char *lh_listener_strangers(const LhListener *door);
