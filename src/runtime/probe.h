/*
 * Programs without attention that are made to be timed, and that nobody proves: what they take is
 * what the executor, the host and the links take.
 */
#pragma once

#include "runtime/executor.h"

/* Of @ranks ranks, without streams and slots; @plan, borrowed, is what @generator reads. Caller
 * frees. */
LhProgram *lh_probe_new(const LhGenerator *generator, uint32_t ranks, void *plan);

/* A slot of fp32 whose content nobody looks at, of @parts parts of @bytes. */
void lh_probe_add_slot(LhProgram *program, const char *name, LhSlotRole role, uint32_t parts,
                       uint64_t bytes);

/* The records of a run with collectives by @way, by rank and op; none in processes other than the
 * first. @hooks may be NULL. Caller unrefs; NULL with @error (LH_ERROR_RUNTIME) if the run broke.
 */
GArray *lh_probe_run(const LhProgram *program, const LhBackend *backend, LhCollectiveWay way,
                     const LhRunHooks *hooks, GError **error);

/* Record @index of them. */
static inline const LhTimelineRecord *
lh_probe_record(const GArray *records, guint index)
{
    return &g_array_index(records, LhTimelineRecord, index);
}
