/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a rank joins over NCCL: the communicator of all ranks, those that are split off it, and all
 * connections before anything is timed.
 */
#pragma once

#include "runtime/gpu/nccl_rank.h"

/* As LhLinks has it. */
void *lh_nccl_join(void *data, const LhLinksRank *rank, GError **error);
void lh_nccl_abort(void *joined);

/* Gives back what the rank has beside its communicators. */
void lh_nccl_rank_free(LhNcclRank *j);

/* How far the rank is, for messages about those that others wait for. */
void lh_nccl_set_stage(LhNcclRank *j, LhNcclStage stage);
