/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single-rank replay: one rank's program runs with real kernels on one device, and the other ranks
 * are replaced by their predicted times. The other end of every message or collective is ready when
 * predicted; the transfer takes its predicted time from the later start of both ends. Hence real
 * delays of other ranks never delay this rank, nor its delays them, and the comparison is of one
 * rank's own time. The data that messages bring has no meaning.
 */
#pragma once

#include "base/units.h"

#include <glib.h>
#include <stdbool.h>

/* The prediction for one exchange or collective of the rank. */
typedef struct {
    LhTime others_ps; /* from the start of the run until the last of its peers begins */
    LhTime took_ps;   /* duration from then on, or from the rank's own start if that is later */
} LhReplayOp;

typedef struct {
    uint32_t rank;
    GArray *ops; /* of LhReplayOp, by op id; all 0 for ops that are no exchange or collective */
} LhReplay;

/* Every byte that a message brings. In every storage type it is a small normal number. */
#define LH_REPLAY_BYTE 0x3c

/* Creates an empty prediction for @rank. Caller frees. */
LhReplay *lh_replay_new(uint32_t rank);
void lh_replay_free(LhReplay *replay);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhReplay, lh_replay_free)

/* The prediction for an op; all 0 if there is none. */
LhReplayOp lh_replay_op(const LhReplay *replay, uint32_t op);
void lh_replay_set(LhReplay *replay, uint32_t op, LhReplayOp predicted);

/* End of an op that began @begun_ps after the start of the run. */
LhTime lh_replay_end(const LhReplay *replay, uint32_t op, LhTime begun_ps);
