/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs without attention that are run only to be timed, and are not proven. Their times are
 * those of the executor, the host and the links.
 */
#pragma once

#include "runtime/executor.h"

/* Creates a program of @ranks ranks, without streams and slots. @generator reads @plan, which is
 * borrowed. Caller frees. */
LhProgram *lh_microbenchmark_new(const LhGenerator *generator, uint32_t ranks, void *plan);

/* Adds an fp32 slot of @parts parts of @bytes, whose content does not matter. */
void lh_microbenchmark_add_slot(LhProgram *program, const char *name, LhSlotRole role,
                                uint32_t parts, uint64_t bytes);

/* The rank that sends to @rank if each rank r sends to @to[r]; LH_RANKS_MAX: none. */
uint32_t lh_microbenchmark_sender(const uint32_t *to, uint32_t ranks, uint32_t rank);

/* Adds a message of part 0 of @slot to the latest exchange. */
void lh_microbenchmark_emit_message(LhEmitter *e, bool send, uint32_t peer, uint16_t slot);

/* Sets the time without progress after which a microbenchmark aborts; 0: 60 s, the initial value.
 * It applies to all later runs of this process. Not to be called during a run. */
void lh_microbenchmark_set_deadline(int64_t deadline_us);

/* Runs the program with collectives by @way. Returns its records by rank and op; none in processes
 * other than the first. @hooks may be NULL. Caller unrefs; NULL with @error (LH_ERROR_RUNTIME) if
 * the run fails. */
GArray *lh_microbenchmark_run(const LhProgram *program, const LhBackend *backend,
                              LhCollectiveWay way, const LhRunHooks *hooks, GError **error);

/* Record @index of @records. */
static inline const LhTimelineRecord *
lh_microbenchmark_record(const GArray *records, guint index)
{
    return &g_array_index(records, LhTimelineRecord, index);
}
