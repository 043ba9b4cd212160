/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ops of a timeline match: the two ends of a message, the members of a collective. Once the
 * last of them has started, the remaining time of an op is transfer, not waiting.
 */
#pragma once

#include "program/timeline.h"

typedef struct _LhPairing LhPairing;

/*
 * Matches @records (of LhTimelineRecord, by rank and op; borrowed), which are all stream ops of
 * @program. Caller frees.
 */
LhPairing *lh_pairing_new(const LhProgram *program, const GArray *records);
void lh_pairing_free(LhPairing *meetings);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPairing, lh_pairing_free)

/* The transfer time of record @index: its time after it and all its matching ops have started.
 * @records are of the same program as those given to lh_pairing_new(), possibly from another
 * run. */
LhTime lh_pairing_took(const LhPairing *meetings, const GArray *records, guint index);

/*
 * Sets @motions (of LhMotion, as LhTimelineRecord.motions) to the intervals in which bytes of
 * record @index can be in flight: for a message from the start of both ends to the end of one of
 * them, for a collective from the start of all members. Empty if the record matches nothing.
 */
void lh_pairing_motions(const LhPairing *meetings, const GArray *records, guint index,
                        GArray *motions);

/* The @count records that record @index matches, possibly with repetitions; borrowed. */
const guint *lh_pairing_with(const LhPairing *meetings, guint index, guint *count);
