/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ops of a timeline wait for each other: the two ends of a message, the members of a
 * collective. From the moment when the last of them has begun on, what an op takes is transfer and
 * no longer waiting.
 */
#pragma once

#include "program/timeline.h"

typedef struct _LhPairing LhPairing;

/*
 * Of @records (of LhTimelineRecord, by rank and op; borrowed), which are all ops of @program that
 * run on streams. Caller frees.
 */
LhPairing *lh_pairing_new(const LhProgram *program, const GArray *records);
void lh_pairing_free(LhPairing *meetings);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPairing, lh_pairing_free)

/* What record @index of @records took once it and all that it meets had begun: of the same program
 * as those that the meetings were made of, perhaps from another run. */
LhTime lh_pairing_took(const LhPairing *meetings, const GArray *records, guint index);

/*
 * Sets @motions (of LhMotion, as LhTimelineRecord.motions) to the times in which bytes of record
 * @index can have been on their way: a message's once both ends had begun and until one of them
 * ended, a collective's once all members had begun. Nothing for what meets nobody.
 */
void lh_pairing_motions(const LhPairing *meetings, const GArray *records, guint index,
                        GArray *motions);

/* The records that record @index meets, @count of them, perhaps several times; borrowed. */
const guint *lh_pairing_with(const LhPairing *meetings, guint index, guint *count);
