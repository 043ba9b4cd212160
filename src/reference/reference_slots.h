/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps rows of the reference's tensors to positions in the parts of input and output slots.
 */
#pragma once

#include "kernels/call.h"
#include "program/holding.h"
#include "reference/reference.h"

/* A whole tensor of a slot. */
typedef struct {
    const char *name;    /* "o", "lse", "dq", "dk", "dv"; NULL: an input */
    const double *whole; /* rows of the reference */
    uint32_t heads, dim;
    bool keys; /* rows are keys; otherwise queries */
    enum lh_storage storage;
    uint64_t offset_bytes; /* in each part */
} LhReferenceSlots;

/* Sets @held to the reference's tensors that the slot holds. Returns their number: 0, 1 or 2. */
unsigned lh_reference_slots(const LhReference *reference, const LhSlot *slot,
                            LhReferenceSlots held[2]);

/* A part: the tokens of a segment, each with the heads of a slice. */
typedef struct {
    LhSegment segment;
    uint32_t slice, slices;
} LhReferencePart;

LhReferencePart lh_reference_slots_part(const LhProgram *program, uint32_t rank, uint16_t slot,
                                        uint32_t part);

/*
 * Calls @visit for every row of @held in the part: its index in the whole tensor, and the index of
 * its first element in the part.
 */
typedef void (*LhReferenceSlotsVisit)(void *data, uint64_t row, uint64_t element);
void lh_reference_slots_visit(const LhReference *reference, const LhReferenceSlots *held,
                              const LhReferencePart *part, LhReferenceSlotsVisit visit, void *data);

/* Returns the elements of row @row of the whole tensor. */
static inline const double *
lh_reference_slots_row(const LhReference *reference, const LhReferenceSlots *held, uint64_t row)
{
    return held->whole + row * (held->whole == reference->lse ? 1 : (uint64_t)reference->stride);
}
