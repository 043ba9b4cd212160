/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains why a result is out of memory.
 */
#pragma once

#include "scenario/setup.h"

/*
 * Explains why a result is out of memory: the peak on the rank with the highest one, and where
 * memory was first exceeded: "rank 0 needs 83.1 GiB (79.1 GiB to 87.3 GiB in four measurements of
 * five) of 78.7 GiB: saved 41 GiB, weights 12.6 GiB, ...; first exceeded at 1.2 s for gradients, at
 * op 12 (backward, layer 31, micro-batch 0)", or, for attention alone, "rank 0 needs 385 GiB of
 * attention buffers and at least 1.7 GiB of weights, a GPU has 80 GiB; ...". Caller frees.
 */
char *lh_describe_memory_limit(const LhSetup *setup, const LhSimResult *result);

/* Appends " (79.1 GiB to 87.3 GiB in four measurements of five)": the error bar of a peak of
 * @bytes; nothing without an error bar. */
void lh_describe_peak_interval(const LhSetup *setup, uint64_t bytes, GString *out);
