/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What input and output slots hold: which segment, and which slice of the heads, each of their
 * parts is, on each rank.
 */
#pragma once

#include "program/program.h"

/* Whether a tensor has the key-value heads (kv, dkv, and either half alone), not the query heads.
 */
bool lh_tensor_is_kv(LhTensorKind kind);

/* Slices that tensors of @kind are cut into. */
uint32_t lh_program_slices(const LhProgram *program, LhTensorKind kind);

typedef struct {
    uint32_t segment, slice;
} LhHolding;

/* How many of @slices slices one of @ranks ranks has that share them, at most; and the first one of
 * rank @index. Earlier ranks have one more where they do not divide; several ranks have the same
 * where there are more ranks. */
uint32_t lh_slices_share(uint32_t slices, uint32_t ranks);
uint32_t lh_slices_first(uint32_t slices, uint32_t ranks, uint32_t index);

/* How many parts input or output slot @slot has, or must have. */
uint32_t lh_slot_parts(const LhProgram *program, const LhSlot *slot);

/*
 * What part @part of input or output slot @slot holds on @rank, of its group's batch: with S
 * slices, part s * S + i is slice i of the rank's segment s. In the placement by heads a rank has
 * one slice; of activations outside attention it has its share of the tokens, whose number stands
 * in the place of the slice. Saved by heads, with G segments in the group, part i * G + s is the
 * rank's slice i of segment s in the order of tokens. A rank with fewer slices than others has
 * parts beyond its own, which nobody writes or looks at: lh_slot_holds() is false for them.
 */
LhHolding lh_slot_holding(const LhProgram *program, const LhSlot *slot, uint32_t rank,
                          uint32_t part);
bool lh_slot_holds(const LhProgram *program, const LhSlot *slot, uint32_t rank, uint32_t part);
