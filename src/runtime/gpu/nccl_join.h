/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a rank joins over NCCL: it creates the communicator of all ranks, splits the others off it,
 * and establishes all connections before anything is timed.
 */
#pragma once

#include "runtime/gpu/nccl_rank.h"

/* Functions of LhLinks. */
void *lh_nccl_join(void *data, const LhLinksRank *rank, GError **error);
void lh_nccl_abort(void *joined);

/* Frees everything of the rank but its communicators. */
void lh_nccl_rank_free(LhNcclRank *j);

/* Records the rank's progress, for messages that name missing ranks. */
void lh_nccl_set_stage(LhNcclRank *j, LhNcclStage stage);
