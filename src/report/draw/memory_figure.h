/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure of one rank's memory over time: a stacked area per category.
 */
#pragma once

#include "compare/compare.h"
#include "report/draw/figure.h"

#define LH_MEMORY_BINS 2000 /* of the time axis */

/*
 * Memory of one rank over time, in bins of equal length. Each bin keeps the time of its highest
 * total (the first, if several): the peak is exact, and the parts of a bin are those of one time.
 * The size does not depend on the number of ops.
 */
typedef struct {
    uint32_t rank;
    LhTime end_ps; /* end of the last bin */
    uint32_t bin;  /* bin of the last record */
    uint64_t now[LH_CATEGORIES], now_bytes;
    uint64_t most[LH_MEMORY_BINS][LH_CATEGORIES], most_bytes[LH_MEMORY_BINS];
} LhMemoryEnvelope;

/* Makes an envelope for a run that ends at @end_ps. Caller frees with g_free(). */
LhMemoryEnvelope *lh_memory_envelope_new(uint32_t rank, LhTime end_ps);

/* An LhMemorySink; @data is the LhMemoryEnvelope. Records of other ranks are ignored. */
void lh_memory_envelope_add(void *data, const LhMemoryRecord *record);

/* Must be called after the last record. */
void lh_memory_envelope_finish(LhMemoryEnvelope *envelope);

/* Content of the figure. */
typedef struct {
    const LhSetup *setup;
    const char *name; /* of the row; borrowed */
    const LhProgram *program;
    const LhSimResult *result;
    const LhMemoryEnvelope *envelope; /* finished */
} LhMemoryFigure;

bool lh_memory_figure_draw(const LhMemoryFigure *figure, LhFigureTo to, GError **error);
