/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs without attention that are made to be timed, and that nobody proves: what they take is
 * what the executor, the host and the links take.
 */
#pragma once

#include "runtime/executor.h"

/* Of @ranks ranks, without streams and slots; @plan, borrowed, is what @generator reads. Caller
 * frees. */
LhProgram *lh_microbenchmark_new(const LhGenerator *generator, uint32_t ranks, void *plan);

/* A slot of fp32 whose content nobody looks at, of @parts parts of @bytes. */
void lh_microbenchmark_add_slot(LhProgram *program, const char *name, LhSlotRole role,
                                uint32_t parts, uint64_t bytes);

/* Who sends to @rank if each rank sends to @to[rank]; LH_RANKS_MAX: nobody. */
uint32_t lh_microbenchmark_sender(const uint32_t *to, uint32_t ranks, uint32_t rank);

/* Adds a message of part 0 of @slot to the exchange posted last. */
void lh_microbenchmark_emit_message(LhEmitter *e, bool send, uint32_t peer, uint16_t slot);

/* A probe gives up when nothing has completed for so long; 0: 60 s, which holds before the first
 * call. For all that this process runs from now on; not to be called while one runs. */
void lh_microbenchmark_set_deadline(int64_t deadline_us);

/* The records of a run with collectives by @way, by rank and op; none in processes other than the
 * first. @hooks may be NULL. Caller unrefs; NULL with @error (LH_ERROR_RUNTIME) if the run broke.
 */
GArray *lh_microbenchmark_run(const LhProgram *program, const LhBackend *backend,
                              LhCollectiveWay way, const LhRunHooks *hooks, GError **error);

/* Record @index of them. */
static inline const LhTimelineRecord *
lh_microbenchmark_record(const GArray *records, guint index)
{
    return &g_array_index(records, LhTimelineRecord, index);
}
