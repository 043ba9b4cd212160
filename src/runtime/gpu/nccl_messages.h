/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of messages over NCCL, and NCCL's own collectives.
 */
#pragma once

#include "runtime/gpu/nccl_rank.h"

/* Functions of LhLinks. */
bool lh_nccl_exchange(void *joined, const LhOp *op, LhMessage *const *messages, uint32_t count,
                      GError **error);
bool lh_nccl_collectives(void *joined, const LhOp *op, const LhNativeCall *calls, uint32_t count,
                         GError **error);
