/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A star of TCP connections between the processes of a job, centred on the first process.
 *
 *     control_tcp.c        data exchange over the star
 *     control_tcp_meet.c   setup
 *     control_tcp_end.c    termination after a failure
 *     control_mpi.c        the star of processes started by MPI
 */
#pragma once

#include "runtime/api/control.h"
#include "runtime/process/endpoint.h"
#include "runtime/process/first_failure.h"
#include "runtime/process/listener.h"
#include "runtime/process/peer.h"

#include <stdbool.h>

#define LH_STAR_LOOK_MS 20
/* Extra time the others allow for the first process to report at the deadline. */
#define LH_STAR_PATIENCE_US 2000000
#define LH_STAR_HOSTS_MAX 16 /* hosts of which each process gets the addresses */

/* Another process. The first process has one for each other rank; every other process has one, the
 * first. */
typedef struct {
    LhPeer peer;
    uint32_t rank;
    GQueue received; /* of GBytes: data */
    bool ended;
    bool broken;       /* its input is no longer decoded */
    bool asked;        /* asked for its progress, answer outstanding */
    bool elsewhere;    /* on another host */
    LhAddress address; /* of that host */
    LhRankNews news;
} LhStarMember;

/* How the processes of a job find each other. */
typedef struct {
    /* Sets rank and size, and, without announce(), the address of the first process. */
    bool (*place)(LhLauncherEnv *launch, GError **error);
    /* Broadcasts @first, filled in by the first process, with port 0 if it does not listen; all
     * call it at once. NULL: the address is known from place(). */
    bool (*announce)(LhEndpoint *first, GError **error);
    /* Makes progress on communication outside the star while processes wait. NULL: none needed. */
    void (*progress)(void);
} LhStarter;

typedef struct {
    LhLauncherEnv launch;
    LhSecret secret;
    const char *host; /* the name of this host; borrowed */
    int64_t deadline_us;
    const LhStarter *starter;
    LhListener *door; /* of the first process, until all have joined; NULL: none */
    char *strangers;  /* rejected connections; NULL: none, or all have joined */
    LhStarMember *members;
    uint32_t members_count;
    gsize expected_bytes;   /* that a member may send now; 0: no data is expected */
    bool ending;            /* received data is dropped */
    char *at;               /* progress of this process; NULL: none to report */
    GArray *awaited;        /* of uint32_t: the ranks that it waits for */
    int64_t said_us;        /* when it last reported */
    int64_t waited_us;      /* time spent waiting for others to join */
    GArray *hosts;          /* of struct sockaddr_storage: hosts of other members */
    uint32_t failures;      /* noted so far, in order */
    char *trouble;          /* why waiting for others is useless; NULL: it is not */
    bool was_told;          /* learnt of a failure elsewhere before any of its own */
    LhFirstFailure verdict; /* text NULL: none yet */
    bool told;              /* the others know of the end, or of a failure */
} LhStar;

/* Functions of LhControl for control planes over a star; the first open() creates the star. */
void *lh_star_open(const LhStarter *starter, uint32_t ranks, int64_t deadline_us,
                   LhControlPlace *place, GError **error);
bool lh_star_barrier(void *control, GError **error);
bool lh_star_gather(void *control, const GByteArray *bytes, gsize limit, GByteArray *all,
                    GError **error);
bool lh_star_share(void *control, const GByteArray *bytes, gsize limit, GByteArray *all,
                   GError **error);
bool lh_star_failed(void *control, GError **error);
void lh_star_standing(void *control, const char *text, const uint32_t *awaited, uint32_t count);
char *lh_star_conclude(const GError *failure, int *status);
void lh_star_last_words(int status, const char *text);
void lh_star_close(void *control);

#define LH_STAR_CONTROL                                                                            \
    .barrier = lh_star_barrier, .gather = lh_star_gather, .share = lh_star_share,                  \
    .failed = lh_star_failed, .close = lh_star_close, .standing = lh_star_standing,                \
    .conclude = lh_star_conclude, .last_words = lh_star_last_words

/* Connects the star: the first process accepts the others, which join it. */
bool lh_star_meet(LhStar *star, GError **error);
/* Waits until all members have joined. */
bool lh_star_wait_for_all(LhStar *star, GError **error);
/* Makes progress; waits at most @timeout_ms if there is nothing to do. */
void lh_star_move(LhStar *star, int timeout_ms);
/* Handles a member's frame about its progress or a failure. */
void lh_star_take_news(LhStar *star, LhStarMember *member, const LhControlFrame *frame);
/* Records that the member has entered @state, with a reason that may be NULL; its first failure
 * state stays. */
void lh_star_note(LhStar *star, LhStarMember *member, LhRankState state, int status,
                  const char *why);
/* Records the host of a connected member. */
void lh_star_locate(LhStarMember *member);
/* Reports this process's progress to the first one if due. */
void lh_star_say_standing(LhStar *star);
/* Sends the members' hosts to all; called by the first process. */
void lh_star_tell_hosts(LhStar *star);
/* Sends a last frame to all, and waits briefly for it to leave. */
void lh_star_tell_last(LhStar *star, LhControlFrameKind kind, GBytes *content);
/* conclude() and last_words() of LhControl for an existing star. */
char *lh_star_judge(LhStar *star, const GError *failure, int *status);
void lh_star_say_last(const LhStar *star, int status, const char *text);
