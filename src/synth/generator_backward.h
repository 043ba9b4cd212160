/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backward pass of programs of assignments.
 */
#pragma once

#include "synth/writer.h"

/* Its slots; a layout has at most @q_parts and @kv_parts. */
void lh_synth_declare_backward(LhSynthEmission *e, uint32_t q_parts, uint32_t kv_parts);

/* Before the forward pass, which leaves statistics for it; then the pass itself. */
void lh_synth_begin_backward(LhSynthWriter *w);
void lh_synth_write_backward(LhSynthWriter *w);

/* The outputs [output, output + count) were just made by @kernel from part @part of @slot on. The
 * statistics of those that the rank's own GPU attends to go to its layout, too: no kernel copies
 * statistics, so they are made there once more. */
void lh_synth_keep_statistics(LhSynthWriter *w, LhKernelId kernel, uint16_t slot, uint32_t part,
                              uint32_t output, uint32_t count);
