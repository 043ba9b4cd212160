/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the regions of an op to the memory that they have now: allocs and frees, the binding of an
 * op, and what an op has besides.
 */
#pragma once

#include "runtime/execution.h"

/* An item for the op; NULL: the run has failed. */
LhItem *lh_item_new(LhRunner *rank, const LhOp *op, const LhOpBuffer *buffer);

/* Binds the op to the memory that its slots have now; false, and the run has failed, if it cannot.
 */
bool lh_item_bind(LhRunner *rank, LhItem *item);
/* Allocates or frees a region. If there is no memory, @later is set, so that it may be tried again;
 * NULL: the run fails. */
bool lh_runner_alloc(LhRunner *rank, const LhOp *op, bool *later);
bool lh_runner_free(LhRunner *rank, const LhOp *op);
/* Takes care of the oldest buffer that has been given up; false: there is nothing to do. */
bool lh_runner_look_at_ending(LhRunner *rank);
/* Host memory that lives as long as the item; device memory likewise, NULL if the run has failed.
 * Never freed by the caller. */
void *lh_item_memory(LhItem *item, uint64_t bytes);
unsigned char *lh_item_temporary(LhRunStream *stream, LhItem *item, uint64_t bytes);
/* The device memory @memory goes with the item. */
void lh_item_keep(LhItem *item, unsigned char *memory);
/* Gives everything back that the item holds. */
void lh_item_free(LhRunner *rank, const LhPlaceOfWork *at, LhItem *item);
