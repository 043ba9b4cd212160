/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank alone: its program is executed with real kernels on one device, and what all other ranks
 * do is played from what was predicted of them. Wherever the rank meets others, the other ends are
 * there when they were predicted to be; from the later start of both ends on, messages take what
 * was predicted. So the rank is never held up by the others' real delays, nor they by its own: what
 * is compared is one rank's own time. What messages bring has no meaning.
 */
#pragma once

#include "base/units.h"

#include <glib.h>
#include <stdbool.h>

/* What was predicted of an exchange or a collective of the rank. */
typedef struct {
    LhTime others_ps; /* from the start of the run until the last one begins that it meets */
    LhTime took_ps;   /* from then on, or from its own start, if that is later */
} LhReplayOp;

typedef struct {
    uint32_t rank;
    GArray *ops; /* of LhReplayOp, by op id: of others than exchanges and collectives all 0 */
} LhReplay;

/* What messages bring: every byte. In every storage it is a small normal number. */
#define LH_REPLAY_BYTE 0x3c

/* Those of @rank, of which nothing is known yet. Caller frees. */
LhReplay *lh_replay_new(uint32_t rank);
void lh_replay_free(LhReplay *replay);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhReplay, lh_replay_free)

/* Of an op of the rank; one that is not there is all 0. */
LhReplayOp lh_replay_op(const LhReplay *replay, uint32_t op);
void lh_replay_set(LhReplay *replay, uint32_t op, LhReplayOp predicted);

/* When an op is over that began at @begun_ps after the start of the run. */
LhTime lh_replay_end(const LhReplay *replay, uint32_t op, LhTime begun_ps);
