/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of input and output slots: the segment and the slice of heads in each of their parts, on
 * each rank.
 */
#pragma once

#include "program/program.h"

/* Whether a tensor has the key-value heads (kv, dkv, and either half alone), not the query heads.
 */
bool lh_tensor_is_kv(LhTensorKind kind);

/* The number of slices that tensors of @kind are split into by heads. */
uint32_t lh_program_slices(const LhProgram *program, LhTensorKind kind);

typedef struct {
    uint32_t segment, slice;
} LhHolding;

/* Distributes @slices slices over @ranks ranks: the largest number of slices of one rank, and
 * the first slice of rank @index. If @ranks does not divide @slices, earlier ranks have one
 * more. With more ranks than slices, several ranks share a slice. */
uint32_t lh_slices_share(uint32_t slices, uint32_t ranks);
uint32_t lh_slices_first(uint32_t slices, uint32_t ranks, uint32_t index);

/* The number of parts that input or output slot @slot must have. */
uint32_t lh_slot_parts(const LhProgram *program, const LhSlot *slot);

/*
 * The contents of part @part of input or output slot @slot on @rank, within its group's batch. With
 * S slices, part s * S + i is slice i of the rank's segment s.
 *
 * Placement by heads: a rank has one slice; for activations outside attention it has its share of
 * the tokens, whose number takes the place of the slice. Saved by heads, with G segments in the
 * group: part i * G + s is the rank's slice i of segment s in token order. A rank with fewer slices
 * than others has unused parts at the end; lh_slot_holds() is false for them.
 */
LhHolding lh_slot_holding(const LhProgram *program, const LhSlot *slot, uint32_t rank,
                          uint32_t part);
bool lh_slot_holds(const LhProgram *program, const LhSlot *slot, uint32_t rank, uint32_t part);
