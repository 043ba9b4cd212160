/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading ahead of the ops that are issued. A host may be LH_HOST_WINDOW ops ahead of its device,
 * and it must be when a stream has nothing to do: its next op may be as far away. But most often
 * that op waits for one that has not begun, or there is none in the window. So ops are read once to
 * find that out, and issued only when a stream could start one of them: a rank keeps few ops in
 * flight.
 *
 * What the host does when it reads an op happens when it is read: memory changes, and the time of
 * kernels is summed. So results equal those of a host that issues at once, to the last bit.
 */
#pragma once

#include "base/units.h"
#include "program/cursor.h"

/* Ops in flight from which on a host reads ahead; below, it issues at once. */
#define LH_LOOKAHEAD_FROM 32

#define LH_LOOKAHEAD_KINDS 4096 /* latest ops whose kind is known; a power of two */

/* The position of a rank's host ahead of its ops in flight. */
typedef struct {
    LhCursor cursor;
    uint32_t next_id; /* id of the next op to be read */
    LhTime host_ps;   /* when the host has issued the last op read; see LhSimRank.host_ps */
    bool ended;       /* the program has no more ops to read */
    bool sync;        /* the next step has a sync: it and all before must be issued now */
    /* Per stream: ops read and not issued yet; an op on a stream that the first of them waits for,
     * or LH_OP_NONE if none is known. */
    uint32_t read[LH_STREAMS_MAX], after[LH_STREAMS_MAX];
    uint64_t on_stream[LH_LOOKAHEAD_KINDS / 64]; /* a bit per op read, by id: it runs on a stream */
} LhLookahead;
