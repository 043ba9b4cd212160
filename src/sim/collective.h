/*
 * Collectives in closed form: the ranks of a group meet, and all are through a fixed time after the
 * last arrival.
 */
#pragma once

#include "sim/sim.h"

typedef struct {
    uint32_t rank;
    uint32_t op;
} LhMember;

/* The ranks that have reached one collective of a group. */
typedef struct {
    LhCollectiveKind kind;
    LhGroup group;
    uint32_t size, arrived;
    LhMember *members;    /* [size], in order of arrival */
    uint64_t shard_bytes; /* of one rank */
    uint8_t tier;         /* highest tier that the group crosses */
    LhTime duration_ps;
    /* A failed link on the way from one member to the next: its id, or UINT32_MAX. */
    uint32_t failed_link, failed_from, failed_to;
} LhMeeting;

typedef struct _LhMeetings LhMeetings;

LhMeetings *lh_meetings_new(const LhNetwork *network);
void lh_meetings_free(LhMeetings *meetings);

/* Remembers what collective @op asks for; returns a handle for lh_meetings_join. */
uint32_t lh_meetings_add(LhMeetings *meetings, const LhOp *op);

/*
 * @rank has reached its op @op of handle @handle, which is spent: it joins the group's oldest
 * meeting that it has not joined yet. The meeting stays valid until lh_meetings_close.
 */
LhMeeting *lh_meetings_join(LhMeetings *meetings, uint32_t handle, uint32_t rank, uint32_t op);
void lh_meetings_close(LhMeetings *meetings, LhMeeting *meeting);
