/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A figure of what one rank holds over time: a stacked area for each category of memory.
 */
#pragma once

#include "compare/compare.h"
#include "report/draw/figure.h"

#define LH_MEMORY_BINS 2000 /* of the time axis */

/*
 * The memory of one rank over time, in bins of equal length. Of each bin the moment is kept at
 * which the rank holds most, the first of several: so the peak is there to the byte, and each bin's
 * parts are those of one moment. The size does not depend on the number of ops.
 */
typedef struct {
    uint32_t rank;
    LhTime end_ps; /* of the last bin */
    uint32_t bin;  /* of the last record */
    uint64_t now[LH_CATEGORIES], now_bytes;
    uint64_t most[LH_MEMORY_BINS][LH_CATEGORIES], most_bytes[LH_MEMORY_BINS];
} LhMemoryEnvelope;

/* Of a run that ends at @end_ps. Caller frees with g_free(). */
LhMemoryEnvelope *lh_memory_envelope_new(uint32_t rank, LhTime end_ps);

/* An LhMemorySink; @data is the LhMemoryEnvelope. Other ranks' records are passed over. */
void lh_memory_envelope_add(void *data, const LhMemoryRecord *record);

/* After the last record. */
void lh_memory_envelope_finish(LhMemoryEnvelope *envelope);

/* What is drawn. */
typedef struct {
    const LhSetup *setup;
    const char *name; /* of the row; borrowed */
    const LhProgram *program;
    const LhSimResult *result;
    const LhMemoryEnvelope *envelope; /* finished */
} LhMemoryFigure;

bool lh_memory_figure_draw(const LhMemoryFigure *figure, LhFigureTo to, GError **error);
