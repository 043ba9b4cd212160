/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A star of TCP connections between the processes of a job: its middle is the first of them.
 *
 *     control_tcp.c        what processes tell each other by it
 *     control_tcp_meet.c   how it begins
 *     control_tcp_end.c    how it ends when something goes wrong
 *     control_mpi.c        one of processes that MPI has started
 */
#pragma once

#include "runtime/api/control.h"
#include "runtime/process/endpoint.h"
#include "runtime/process/first_failure.h"
#include "runtime/process/listener.h"
#include "runtime/process/peer.h"

#include <stdbool.h>

#define LH_STAR_LOOK_MS 20
/* That the others have for what the first process says at the deadline. */
#define LH_STAR_PATIENCE_US 2000000
#define LH_STAR_HOSTS_MAX 16 /* that a process is told of */

/* Another process. In the first one there is one for each rank; in others, the first one alone. */
typedef struct {
    LhPeer peer;
    uint32_t rank;
    GQueue received; /* of GBytes: data */
    bool ended;
    bool broken;       /* what it sends is no longer read as frames */
    bool asked;        /* what it is at, and it has not said since */
    bool elsewhere;    /* on another host ... */
    LhAddress address; /* ... which is here */
    LhRankNews news;
} LhStarMember;

/* How the processes of a job find each other. */
typedef struct {
    /* Which of them this is. Where the first one listens, too, if there is no announce(). */
    bool (*place)(LhLauncherEnv *launch, GError **error);
    /* Tells all of @first, which the first process has filled in, with port 0 if it does not
     * listen; all call it at once. NULL: they know. */
    bool (*announce)(LhEndpoint *first, GError **error);
    /* What moves no further by itself while processes wait for each other. NULL: nothing. */
    void (*progress)(void);
} LhStarter;

typedef struct {
    LhLauncherEnv launch;
    LhSecret secret;
    const char *host; /* the name of this computer; borrowed */
    int64_t deadline_us;
    const LhStarter *starter;
    LhListener *door; /* of the first process, until all are there; NULL: none */
    char *strangers;  /* who was not let in; NULL: nobody, or all have come */
    LhStarMember *members;
    uint32_t members_count;
    gsize expected_bytes;   /* that a member may tell now; 0: nothing is asked for */
    bool ending;            /* nobody takes data any more */
    char *at;               /* what this process is at; NULL: nothing that it says */
    GArray *awaited;        /* of uint32_t: the ranks that it waits for */
    int64_t said_us;        /* when it last said so */
    int64_t waited_us;      /* how long it has waited for others to come */
    GArray *hosts;          /* of struct sockaddr_storage: where other members' hosts are */
    uint32_t failures;      /* that have been noted: their order */
    char *trouble;          /* why this process cannot go on waiting for others; NULL: it can */
    bool was_told;          /* of trouble elsewhere, before it found any itself */
    LhFirstFailure verdict; /* text NULL: there is none yet */
    bool told;              /* of the end, or of a failure */
} LhStar;

/* Of LhControl, for a table of those that stand on a star; the star is made by the first open(). */
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

/* The first process lets all others in, and these join it. */
bool lh_star_meet(LhStar *star, GError **error);
/* Waits until all members have come. */
bool lh_star_wait_for_all(LhStar *star, GError **error);
/* Moves what there is to be moved; waits for @timeout_ms at most if there is nothing. */
void lh_star_move(LhStar *star, int timeout_ms);
/* What members have to say of how they stand, and of who has failed. */
void lh_star_take_news(LhStar *star, LhStarMember *member, const LhControlFrame *frame);
/* The member has come into @state, for this reason, which may be NULL; its first state stays. */
void lh_star_note(LhStar *star, LhStarMember *member, LhRankState state, int status,
                  const char *why);
/* Remembers where the member is, which has been connected. */
void lh_star_locate(LhStarMember *member);
/* Tells the first process what this one is at, if it is time. */
void lh_star_say_standing(LhStar *star);
/* The first process tells the others where their hosts are. */
void lh_star_tell_hosts(LhStar *star);
/* Sends a last frame to all, and waits a moment for it to leave. */
void lh_star_tell_last(LhStar *star, LhControlFrameKind kind, GBytes *content);
/* conclude() and last_words() of LhControl, of a star that has been made. */
char *lh_star_judge(LhStar *star, const GError *failure, int *status);
void lh_star_say_last(const LhStar *star, int status, const char *text);
