/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binds the regions of an op to memory: allocs and frees, binding, and further memory of an op.
 */
#pragma once

#include "runtime/execution.h"

/* Creates the item of an op; NULL if the run has failed. */
LhItem *lh_item_new(LhRunner *rank, const LhOp *op, const LhOpBuffer *buffer);

/* Binds the op to the memory that its slots have now; on failure returns false, and the run has
 * failed. */
bool lh_item_bind(LhRunner *rank, LhItem *item);
/* Allocates or frees a region. If there is no memory, sets @later, so that it is tried again; with
 * @later NULL, the run fails. */
bool lh_runner_alloc(LhRunner *rank, const LhOp *op, bool *later);
bool lh_runner_free(LhRunner *rank, const LhOp *op);
/* Handles the oldest released buffer; false if there is nothing to do. */
bool lh_runner_look_at_ending(LhRunner *rank);
/* Allocates host memory that lives as long as the item; device memory likewise, NULL if the run has
 * failed. Never freed by the caller. */
void *lh_item_memory(LhItem *item, uint64_t bytes);
unsigned char *lh_item_temporary(LhRunStream *stream, LhItem *item, uint64_t bytes);
/* Frees the device memory @memory together with the item. */
void lh_item_keep(LhItem *item, unsigned char *memory);
/* Frees the item and everything it holds. */
void lh_item_free(LhRunner *rank, const LhPlaceOfWork *at, LhItem *item);
