/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving tensors between the two layouts of heads.h.
 */
#pragma once

#include "sched/common/heads.h"

/* Lays out and sends each tensor, and waits for it before the next one. */
void lh_heads_move_one_by_one(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *tensors,
                              unsigned count, bool to_heads);

/*
 * Pipelined as in TransformerEngine: while a tensor is sent, the next one is laid out, and the one
 * before is put into token order on a second compute stream, which the caller declares as the
 * stream after those of lh_pass_declare. For zigzag half-chunks without a split and without
 * replicas.
 */
#define LH_HEADS_STREAM_CP 2
void lh_heads_move_pipelined(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *tensors,
                             unsigned count, bool to_heads);
