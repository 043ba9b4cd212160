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

typedef struct _LhDoor LhDoor;

typedef struct {
    LhAnswer answer;
    /* Takes the socket over, for lh_socket_set(); @owner is that of @answer. */
    void (*let_in)(void *owner, const LhHello *hello, int socket);
} LhDoorParams;

/* Listens nowhere yet. NULL with @error (LH_ERROR_RUNTIME). */
LhDoor *lh_door_open(const LhDoorParams *params, GError **error);
void lh_door_close(LhDoor *door); /* NULL: nothing */

/* Listens at the address, too, as lh_socket_listen(). False with errno. */
bool lh_door_listen(LhDoor *door, const struct sockaddr *address, socklen_t length, bool reused);
/*
 * Listens at one port that is free: at the interfaces that somebody has chosen, and for processes
 * of this machine, or else at all addresses, of both kinds where the machine has both. Sets the
 * port of @here. False with errno.
 */
bool lh_door_listen_here(LhDoor *door, LhWhereabouts *here);
/* The port of the first address; 0 if there is none. */
uint16_t lh_door_port(const LhDoor *door);

/* A descriptor that can be read when lh_door_move() has something to do. */
int lh_door_events(const LhDoor *door);
/* Hears those that have called. */
void lh_door_move(LhDoor *door);
/* Hears all that have called while nobody did: until then the system lets nobody else call. */
void lh_door_catch_up(LhDoor *door);
/* Sends those away whose time is over; asks the system nothing if there are none. */
void lh_door_look(LhDoor *door);
/* Sends one away that has not been let in, so that there is a descriptor; false: there is none. */
bool lh_door_make_room(LhDoor *door);

/* Who has come and was not let in: how many, from where, and why not; NULL: nobody. Caller frees.
 */
char *lh_door_strangers(const LhDoor *door);
